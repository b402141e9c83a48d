/* SPDX-License-Identifier: MIT */
/* hw_fixture.c - device fixture of the model's tests. */
#include "hw_fixture.h"

#include <stdlib.h>
#include <time.h>

static void hwt_irq(void *priv)
{
    struct hwt *t = priv;
    atomic_fetch_add(&t->irq_count, 1);
    uint32_t rptr = hw_read32(t->dev, R_IH_RPTR), wptr = hw_read32(t->dev, R_IH_WPTR);
    const uint32_t size = hw_read32(t->dev, R_IH_SIZE);
    const struct petrel_ih_entry *ring = (const void *)(t->vram + HWT_IH_AT);
    if (!t->leave_ring) {
        for (; rptr != wptr; rptr++) {
            uint32_t n = atomic_load(&t->event_count);
            assert_true(n < HWT_EVENTS);
            t->events[n] = ring[rptr & (size - 1)];
            atomic_store(&t->event_count, n + 1);
        }
        hw_write32(t->dev, R_IH_RPTR, rptr);
    }
    if (t->on_irq)
        t->on_irq(t);
}

struct hwt *hwt_create(enum hw_run_mode mode)
{
    struct hwt *t = calloc(1, sizeof(*t));
    assert_non_null(t);
    t->mode = mode;
    const struct hw_device_desc desc = {
        .vram_B = HWT_VRAM_B, .sysmem_B = HWT_SYSMEM_B, .mode = mode, .irq = hwt_irq, .irq_priv = t,
    };
    assert_int_equal(hw_device_create(&desc, &t->dev), UMD_SUCCESS);
    t->vram = hw_vram(t->dev).cpu;
    t->sys = hw_sysmem(t->dev).cpu;
    t->root = HWT_TABLES_AT;
    t->next_table = HWT_TABLES_AT + PETREL_PAGE_SIZE;
    return t;
}

void hwt_setup_rings(struct hwt *t)
{
    hw_write64(t->dev, R_IH_BASE, HWT_IH_AT);
    hw_write32(t->dev, R_IH_SIZE, HWT_IH_ENTRIES);
    hw_write64(t->dev, R_SCRATCH_BASE, HWT_SCRATCH_AT);
    hw_write32(t->dev, R_PRIVATE_B, 1024);
    hw_write64(t->dev, R_SCRATCH_SIZE, (uint64_t)hwt_r32(t, R_CU_COUNT) * hwt_r32(t, R_WARPS_PER_CU) * 32 * 1024);
    for (uint32_t r = 0; r < PETREL_RING_COUNT; r++) {
        hw_write64(t->dev, PETREL_RING_REG(r, BASE), HWT_RING_AT(r));
        hw_write32(t->dev, PETREL_RING_REG(r, SIZE_DW), HWT_RING_DW);
    }
}

static bool fw_up(struct hwt *t, uint64_t arg)
{
    (void)arg;
    return hwt_r32(t, R_FW_STATUS) == PETREL_FW_READY;
}

struct hwt *hwt_boot(enum hw_run_mode mode)
{
    struct hwt *t = hwt_create(mode);
    hw_write32(t->dev, R_FW_CONTROL, 1);
    assert_true(hwt_until(t, fw_up, 0));
    hwt_setup_rings(t);
    return t;
}

void hwt_destroy(struct hwt *t)
{
    hw_device_destroy(t->dev);
    free(t);
    assert_int_equal(umd_fault_plan_set(NULL), UMD_SUCCESS);
}

/* ---- Page tables ---- */

static uint64_t *table_entry(struct hwt *t, uint64_t va, int leaf_level)
{
    uint64_t table = t->root;
    for (int level = PETREL_PT_LEVELS - 1;; level--) {
        uint64_t *e = (uint64_t *)(t->vram + table) + PETREL_PT_INDEX(va, level);
        if (level == leaf_level)
            return e;
        if (!(*e & PETREL_PTE_VALID)) {
            *e = t->next_table | PETREL_PTE_VALID;
            t->next_table += PETREL_PAGE_SIZE;
            assert_true(t->next_table < HWT_SCRATCH_AT);
        }
        table = *e & PETREL_PTE_ADDR_MASK;
    }
}

void hwt_map(struct hwt *t, uint64_t va, uint64_t pa, uint32_t pages, uint64_t flags)
{
    for (uint64_t i = 0; i < pages; i++)
        *table_entry(t, va + i * PETREL_PAGE_SIZE, 0) = (pa + i * PETREL_PAGE_SIZE) | flags | PETREL_PTE_VALID | PETREL_PTE_LEAF;
}

void hwt_map_huge(struct hwt *t, uint64_t va, uint64_t pa, uint64_t flags)
{
    *table_entry(t, va, 1) = pa | flags | PETREL_PTE_VALID | PETREL_PTE_LEAF;
}

void hwt_unmap(struct hwt *t, uint64_t va)
{
    *table_entry(t, va, 0) = 0;
}

/* ---- Packets ---- */

void hwt_dw(struct hwt *t, uint32_t ring, uint32_t dw)
{
    uint32_t *at = (uint32_t *)(t->vram + HWT_RING_AT(ring)) + (t->wptr[ring]++ & (HWT_RING_DW - 1));
    *at = dw;
}

void hwt_dw64(struct hwt *t, uint32_t ring, uint64_t v)
{
    hwt_dw(t, ring, (uint32_t)v);
    hwt_dw(t, ring, (uint32_t)(v >> 32));
}

void hwt_context(struct hwt *t, uint32_t ring, uint64_t job)
{
    hwt_dw(t, ring, PETREL_PKT(PETREL_OP_SET_CONTEXT, 8));
    hwt_dw64(t, ring, t->root);
    hwt_dw(t, ring, 7);
    hwt_dw64(t, ring, job);
    hwt_dw(t, ring, 0);
    hwt_dw64(t, ring, job + HWT_CONTEXT_OF_JOB);
}

uint64_t hwt_fence(struct hwt *t, uint32_t ring, bool irq)
{
    hwt_dw(t, ring, PETREL_PKT(PETREL_OP_FENCE, 5));
    hwt_dw64(t, ring, HWT_FENCE_AT + ring * 64);
    hwt_dw64(t, ring, ++t->seq[ring]);
    hwt_dw(t, ring, irq);
    return t->seq[ring];
}

void hwt_copy(struct hwt *t, uint32_t ring, uint64_t src, uint64_t dst, uint64_t size_B)
{
    hwt_dw(t, ring, PETREL_PKT(PETREL_OP_COPY, 6));
    hwt_dw64(t, ring, src);
    hwt_dw64(t, ring, dst);
    hwt_dw64(t, ring, size_B);
}

void hwt_fill(struct hwt *t, uint32_t ring, uint64_t dst, uint64_t size_B, uint32_t pattern, uint32_t element_B)
{
    hwt_dw(t, ring, PETREL_PKT(PETREL_OP_FILL, 6));
    hwt_dw64(t, ring, dst);
    hwt_dw64(t, ring, size_B);
    hwt_dw(t, ring, pattern);
    hwt_dw(t, ring, element_B);
}

void hwt_write(struct hwt *t, uint32_t ring, uint64_t va, uint64_t v)
{
    hwt_dw(t, ring, PETREL_PKT(PETREL_OP_WRITE, 4));
    hwt_dw64(t, ring, va);
    hwt_dw64(t, ring, v);
}

void hwt_wait64(struct hwt *t, uint32_t ring, uint64_t va, uint64_t ref)
{
    hwt_dw(t, ring, PETREL_PKT(PETREL_OP_WAIT, 4));
    hwt_dw64(t, ring, va);
    hwt_dw64(t, ring, ref);
}

void hwt_indirect(struct hwt *t, uint32_t ring, uint64_t va, uint32_t dwords)
{
    hwt_dw(t, ring, PETREL_PKT(PETREL_OP_INDIRECT, 3));
    hwt_dw64(t, ring, va);
    hwt_dw(t, ring, dwords);
}

void hwt_doorbell(struct hwt *t, uint32_t ring)
{
    hw_write32(t->dev, PETREL_RING_REG(ring, WPTR), t->wptr[ring]);
}

/* ---- Waiting ---- */

bool hwt_until(struct hwt *t, bool (*cond)(struct hwt *t, uint64_t arg), uint64_t arg)
{
    for (int i = 0; i < 20000; i++) {
        if (cond(t, arg))
            return true;
        if (t->mode == HW_RUN_STEPPED)
            hw_device_pump(t->dev, 100000);
        else
            nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
    }
    return cond(t, arg);
}

static bool not_busy(struct hwt *t, uint64_t ring)
{
    return hwt_r32(t, PETREL_RING_REG((uint32_t)ring, STATUS)) != PETREL_RING_BUSY;
}

uint32_t hwt_settle(struct hwt *t, uint32_t ring)
{
    assert_true(hwt_until(t, not_busy, ring));
    return hwt_r32(t, PETREL_RING_REG(ring, STATUS));
}

uint64_t hwt_fence_value(struct hwt *t, uint32_t ring)
{
    return __atomic_load_n((uint64_t *)(t->vram + HWT_FENCE_AT + ring * 64), __ATOMIC_ACQUIRE);
}

static bool fence_is(struct hwt *t, uint64_t arg)
{
    return hwt_fence_value(t, (uint32_t)(arg >> 32)) >= (uint32_t)arg;
}

bool hwt_finish(struct hwt *t, uint32_t ring, uint64_t seq)
{
    hwt_doorbell(t, ring);
    return hwt_until(t, fence_is, (uint64_t)ring << 32 | seq) && hwt_settle(t, ring) == PETREL_RING_IDLE;
}

void hwt_pass(struct hwt *t, uint64_t ns)
{
    const uint64_t end_ns = hwt_r64(t, R_CLOCK_NS) + ns;
    while (hwt_r64(t, R_CLOCK_NS) < end_ns) {
        if (t->mode == HW_RUN_STEPPED)
            hw_device_pump(t->dev, end_ns - hwt_r64(t, R_CLOCK_NS));
        else
            nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
    }
}

static bool has_event(struct hwt *t, uint64_t source)
{
    for (uint32_t i = 0; i < atomic_load(&t->event_count); i++) {
        if (t->events[i].source == source)
            return true;
    }
    return false;
}

bool hwt_wait_event(struct hwt *t, uint32_t source)
{
    return hwt_until(t, has_event, source);
}

uint32_t hwt_r32(struct hwt *t, uint32_t off)
{
    return hw_read32(t->dev, off);
}

uint64_t hwt_r64(struct hwt *t, uint32_t off)
{
    return hw_read64(t->dev, off);
}
