/* SPDX-License-Identifier: MIT */
/* device.h - inside of the device model: its registers, rings and engines, and which thread may touch what. */
#ifndef HW_DEVICE_H
#define HW_DEVICE_H

#include <stdatomic.h>

#include <hw/petrel_packets.h>
#include <hw/petrel_pte.h>
#include <hw/petrel_regs.h>

#include "clock.h"
#include "cu/cu.h"
#include "hw.h"
#include "profile.h"
#include "sys.h"

/*
 * Register values are atomics, so that any thread reads and writes them without a lock; the model lock (rank 70) only guards
 * the device thread's sleep. All else belongs to the device thread: the thread of threaded mode, or whoever pumps in stepped mode.
 * A register write that asks for something (doorbell, reset, timer) stores it and kicks the device thread, which acts on it
 * between two engine steps. Interrupt callbacks run between steps as well.
 */

enum hw_reg {
#define REG(name_, ...) HW_REG_##name_,
    PETREL_REGS(REG)
#undef REG
    HW_REG_COUNT
};

/* RING_REG(name, width, access): what petrel_regs.h describes per ring. */
#define HW_RING_REGS(RING_REG)    \
    RING_REG(BASE, 64, RW)        \
    RING_REG(SIZE_DW, 32, RW)     \
    RING_REG(RPTR, 32, RO)        \
    RING_REG(WPTR, 32, RW)        \
    RING_REG(STATUS, 32, RO)      \
    RING_REG(PROGRESS, 64, RO)    \
    RING_REG(INSTR, 64, RO)       \
    RING_REG(JOB, 64, RO)         \
    RING_REG(PREEMPT, 32, RW)     \
    RING_REG(FAULT, 32, RO)       \
    RING_REG(FAULT_VA, 64, RO)    \
    RING_REG(FAULT_PC, 64, RO)    \
    RING_REG(FAULT_INFO, 64, RO)  \
    RING_REG(FAULT_WG, 64, RO)    \
    RING_REG(FAULT_DATA, 64, RO)  \
    RING_REG(MARK, 64, RO)

enum hw_ring_reg {
#define RING_REG(name_, ...) HW_RING_##name_,
    HW_RING_REGS(RING_REG)
#undef RING_REG
    HW_RING_REG_COUNT
};

#define HW_RESET_DEVICE (1u << 31)
#define HW_RESET_MASK (HW_RESET_DEVICE | ((1u << PETREL_RING_COUNT) - 1u))

/* Address spaces that are no page-table root. */
#define HW_ROOT_NONE UINT64_MAX          /* before the first SET_CONTEXT: every access faults */
#define HW_ROOT_PHYS (UINT64_MAX - 1)    /* addresses are VRAM offsets */

#define HW_NEVER UINT64_MAX

enum hw_ring_state {
    HW_STATE_FETCH,     /* between packets */
    HW_STATE_DISPATCH,  /* compute units run */
    HW_STATE_COPY,      /* copy or fill under way */
    HW_STATE_WAIT,      /* semaphore not reached yet */
    HW_STATE_HUNG,      /* broken until reset */
};

/* A copy or fill, resumable at any byte. */
struct hw_copy {
    uint64_t root, src, dst, left_B;
    bool fill;
    uint32_t pattern, element_B;
    uint64_t rate_rest;      /* cycles * bandwidth that did not make up a cycle yet */
    uint64_t progress_rest_B; /* bytes not yet counted in PROGRESS; outlives the copy */
};

struct hw_ring {
    struct hw_device *dev;
    uint32_t index;
    _Atomic(uint64_t) regs[HW_RING_REG_COUNT];
    /* Device thread only. */
    enum hw_ring_state state;
    bool active;             /* was runnable when last looked at; else t_ns is stale */
    uint64_t t_ns;           /* device time up to which this ring has worked */
    uint64_t cycle_rest;
    uint64_t root;
    uint32_t vmid;
    uint64_t context_id;     /* whose work this is: of log lines, the device makes nothing of it */
    bool in_ib;
    uint64_t ib_root, ib_va;
    uint32_t ib_dw, ib_pos;  /* dwords of the indirect buffer, and consumed */
    uint32_t packet[1 + sizeof(struct petrel_dispatch) / 4];
    struct petrel_code code; /**< of the dispatches that follow */
    struct hw_copy copy;
    uint64_t wait_root, wait_va, wait_ref;
};

struct hw_device {
    struct hw_profile profile;
    enum hw_run_mode mode;
    void (*irq)(void *priv);
    void *irq_priv;
    struct hw_aperture vram, sysmem;
    struct hw_clock clock;

    _Atomic(uint64_t) regs[HW_REG_COUNT];
    struct hw_ring rings[PETREL_RING_COUNT];
    _Atomic(bool) off_bus;

    /* Requests to the device thread. */
    _Atomic(bool) kick;          /* some register changed since the thread last looked */
    _Atomic(bool) sleeping;
    _Atomic(bool) stop;
    _Atomic(uint32_t) reset_asked;   /* bits of RESET not done yet; the register holds those that failed */
    _Atomic(bool) fw_asked, selftest_asked;
    struct umd_mutex lock;       /* rank 70: sleeping, wake */
    struct umd_cond wake;
    pthread_t thread;
    bool lock_ready, thread_started;

    /* Device thread only. */
    struct hw_cu_array *cus;
    uint64_t cu_instr_seen, cu_groups_seen;
    uint64_t last_store_ns;      /* latest time at which an engine wrote memory: a wait cannot be over before */
    uint64_t fw_due_ns, selftest_due_ns; /* HW_NEVER: not under way */
    bool irq_pending;
};

/* device.c */
void hw_kick(struct hw_device *dev);
/** A kick for work that was given: the idle clock stands until the device thread has looked. */
void hw_ask(struct hw_device *dev);
/** True on the device's own thread, and everywhere in stepped mode. */
bool hw_on_device_thread(const struct hw_device *dev);
/** Acts on asked resets. Device thread, between engine steps. */
void hw_service_reset(struct hw_device *dev);

/* mmio.c */
void hw_regs_init(struct hw_device *dev);

static inline uint64_t hw_reg(const struct hw_device *dev, enum hw_reg reg)
{
    return atomic_load(&dev->regs[reg]);
}
static inline uint64_t hw_ring_reg(const struct hw_ring *ring, enum hw_ring_reg reg)
{
    return atomic_load(&ring->regs[reg]);
}
static inline void hw_ring_set(struct hw_ring *ring, enum hw_ring_reg reg, uint64_t v)
{
    atomic_store(&ring->regs[reg], v);
}

/* mmu.c */
uint32_t hw_mmu_translate(void *dev, uint64_t root, uint64_t va, uint32_t access, struct hw_xlat *xlat_out);
/**
 * Host address of va; *run_B: bytes from there to the end of the translated run. NULL with *fault_out (enum petrel_fault).
 * *system_out: behind the link.
 */
uint8_t *hw_mmu_ptr(struct hw_device *dev, uint64_t root, uint64_t va, uint32_t access, uint64_t *run_B, bool *system_out,
                    uint32_t *fault_out);
void hw_mmu_invalidate(struct hw_device *dev);

/* ih.c */
void hw_ih_raise(struct hw_device *dev, const struct petrel_ih_entry *entry);
/** Calls the interrupt callback if an interrupt is pending. True: it did. */
bool hw_ih_deliver(struct hw_device *dev);

/* cp.c */
bool hw_ring_runnable(struct hw_ring *ring);
/** One engine step, up to about end_ns: a packet, or a slice of the work under way. The ring is runnable. */
void hw_ring_step(struct hw_ring *ring, uint64_t end_ns);
void hw_ring_init(struct hw_device *dev, uint32_t index);
void hw_ring_reset(struct hw_ring *ring);
/** Acts on an asked preemption, if it can be honoured. */
void hw_ring_service_preempt(struct hw_ring *ring);
void hw_ring_charge(struct hw_ring *ring, uint64_t cycles);
void hw_ring_fault(struct hw_ring *ring, const struct hw_cu_fault *fault);
/** The packet that the ring works on is done. */
void hw_ring_retire(struct hw_ring *ring);
/** A polled wait: no doorbell will tell. */
bool hw_ring_polls(const struct hw_ring *ring);

/* sdma.c */
/** Begins the copy or fill in ring->copy. */
void hw_sdma_start(struct hw_ring *ring);
void hw_sdma_run(struct hw_ring *ring, uint64_t end_ns);

/* fw.c */
void hw_fw_service(struct hw_device *dev);
uint64_t hw_fw_next_ns(const struct hw_device *dev);

/* ecc.c */
/** Marches over the address lines of VRAM; PETREL_SELFTEST_PASS, or FAIL with the address. */
enum petrel_selftest hw_ecc_selftest(struct hw_device *dev, uint64_t *bad_out);

#endif
