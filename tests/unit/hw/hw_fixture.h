/* SPDX-License-Identifier: MIT */
/* hw_fixture.h - one powered-up device, its rings, a page-table builder and what its interrupts said. */
#ifndef HW_FIXTURE_H
#define HW_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <hw/petrel_packets.h>
#include <hw/petrel_pte.h>
#include <hw/petrel_regs.h>

#include "fault_plan.h"
#include "hw.h"

/* Where things lie in VRAM. */
#define HWT_RING_AT(ring_) (0x10000ull + (ring_) * 0x10000ull)
#define HWT_RING_DW 0x1000u
#define HWT_IH_AT 0x30000ull
#define HWT_IH_ENTRIES 64u
#define HWT_FENCE_AT 0x40000ull
#define HWT_CONTEXT_OF_JOB 1000u /* the id of a job's context is so much more than its own */
#define HWT_TABLES_AT 0x100000ull
#define HWT_SCRATCH_AT 0x800000ull
#define HWT_DATA_AT 0x2000000ull
#define HWT_VRAM_B (96ull << 20)
#define HWT_SYSMEM_B (16ull << 20)
#define HWT_EVENTS 256u

#define HWT_RW (PETREL_PTE_READ | PETREL_PTE_WRITE)

struct hwt {
    struct hw_device *dev;
    enum hw_run_mode mode;
    uint8_t *vram, *sys;
    uint64_t root, next_table;
    uint32_t wptr[PETREL_RING_COUNT];
    uint64_t seq[PETREL_RING_COUNT];
    /* Interrupts, as the callback drained them. */
    struct petrel_ih_entry events[HWT_EVENTS];
    _Atomic(uint32_t) event_count, irq_count;
    void (*on_irq)(struct hwt *t);   /* extra work inside the callback */
    _Atomic(bool) leave_ring;        /* the callback does not drain */
};

/** Off: registers only. */
struct hwt *hwt_create(enum hw_run_mode mode);
/** As hwt_create, firmware up, rings and interrupts set, an empty address space. */
struct hwt *hwt_boot(enum hw_run_mode mode);
void hwt_destroy(struct hwt *t);
void hwt_setup_rings(struct hwt *t);

/** Maps 4 KiB pages. flags: PETREL_PTE_READ, WRITE, EXEC, SYSTEM. */
void hwt_map(struct hwt *t, uint64_t va, uint64_t pa, uint32_t pages, uint64_t flags);
void hwt_map_huge(struct hwt *t, uint64_t va, uint64_t pa, uint64_t flags);
void hwt_unmap(struct hwt *t, uint64_t va);

/* Packets: written into the ring; nothing runs before hwt_doorbell. */
void hwt_dw(struct hwt *t, uint32_t ring, uint32_t dw);
void hwt_dw64(struct hwt *t, uint32_t ring, uint64_t v);
void hwt_context(struct hwt *t, uint32_t ring, uint64_t job);
uint64_t hwt_fence(struct hwt *t, uint32_t ring, bool irq);
void hwt_copy(struct hwt *t, uint32_t ring, uint64_t src, uint64_t dst, uint64_t size_B);
void hwt_fill(struct hwt *t, uint32_t ring, uint64_t dst, uint64_t size_B, uint32_t pattern, uint32_t element_B);
void hwt_write(struct hwt *t, uint32_t ring, uint64_t va, uint64_t v);
void hwt_wait64(struct hwt *t, uint32_t ring, uint64_t va, uint64_t ref);
void hwt_indirect(struct hwt *t, uint32_t ring, uint64_t va, uint32_t dwords);
void hwt_doorbell(struct hwt *t, uint32_t ring);

/** Lets the device run until cond holds; false after long enough. */
bool hwt_until(struct hwt *t, bool (*cond)(struct hwt *t, uint64_t arg), uint64_t arg);
/** Waits for the ring to leave BUSY. Value: its status. */
uint32_t hwt_settle(struct hwt *t, uint32_t ring);
/** Doorbell, then until the fence shows seq. */
bool hwt_finish(struct hwt *t, uint32_t ring, uint64_t seq);
/** Lets device time pass. */
void hwt_pass(struct hwt *t, uint64_t ns);
bool hwt_wait_event(struct hwt *t, uint32_t source);
uint64_t hwt_fence_value(struct hwt *t, uint32_t ring);

uint32_t hwt_r32(struct hwt *t, uint32_t off);
uint64_t hwt_r64(struct hwt *t, uint32_t off);

/** Offsets of the global registers, PETREL_R_CLOCK_NS and so on. */
enum {
#define REG(name_, off_, ...) R_##name_ = (off_),
    PETREL_REGS(REG)
#undef REG
};

#endif
