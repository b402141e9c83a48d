/* SPDX-License-Identifier: MIT */
/* test_hw_copy.c - copies and fills: sizes, alignments, pages, host memory, time, faults at the exact byte, reset half-way. */
#include "hw_fixture.h"

#define D PETREL_RING_COPY0
#define SRC_VA 0x100000000ull
#define DST_VA 0x200000000ull
#define PAGES 64u

static int both_modes[] = { HW_RUN_STEPPED, HW_RUN_THREADED };

/* Scattered on purpose: the page that follows in virtual space does not follow in memory. */
static struct hwt *copy_fixture(enum hw_run_mode mode)
{
    struct hwt *t = hwt_boot(mode);
    for (uint32_t i = 0; i < PAGES; i++) {
        hwt_map(t, SRC_VA + i * 4096ull, HWT_DATA_AT + (uint64_t)(i * 37 % PAGES) * 8192, 1, HWT_RW);
        hwt_map(t, DST_VA + i * 4096ull, HWT_DATA_AT + 0x400000 + (uint64_t)(i * 29 % PAGES) * 8192, 1, HWT_RW);
    }
    hwt_context(t, D, 0x77);
    return t;
}

static uint8_t *src_byte(struct hwt *t, uint64_t off)
{
    return t->vram + HWT_DATA_AT + off / 4096 * 37 % PAGES * 8192 + off % 4096;
}

static uint8_t *dst_byte(struct hwt *t, uint64_t off)
{
    return t->vram + HWT_DATA_AT + 0x400000 + off / 4096 * 29 % PAGES * 8192 + off % 4096;
}

static void fill_pattern(struct hwt *t)
{
    for (uint64_t i = 0; i < PAGES * 4096ull; i++) {
        *src_byte(t, i) = (uint8_t)(i * 7 + i / 251);
        *dst_byte(t, i) = 0xee;
    }
}

static void test_copy_sizes(void **state)
{
    static const struct { uint64_t src, dst, size_B; } cases[] = {
        { 0, 0, 0 }, { 0, 0, 1 }, { 1, 3, 1 }, { 5, 9, 7 }, { 4095, 0, 2 }, { 0, 4095, 2 }, { 4090, 4093, 20 },
        { 0, 0, 4096 }, { 1, 0, 4096 }, { 100, 4000, 9000 }, { 0, 0, 65536 }, { 3, 11, 200001 }, { 0, 0, PAGES * 4096 },
    };
    for (size_t m = 0; m < 2; m++) {
        struct hwt *t = copy_fixture(both_modes[m]);
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            fill_pattern(t);
            hwt_copy(t, D, SRC_VA + cases[i].src, DST_VA + cases[i].dst, cases[i].size_B);
            assert_true(hwt_finish(t, D, hwt_fence(t, D, false)));
            for (uint64_t b = 0; b < PAGES * 4096ull; b++) {
                const uint64_t off = b - cases[i].dst;
                const uint8_t want = off < cases[i].size_B ? *src_byte(t, cases[i].src + off) : 0xee;
                if (*dst_byte(t, b) != want)
                    fail_msg("case %zu byte %zu: %u, wanted %u", i, (size_t)b, *dst_byte(t, b), want);
            }
        }
        hwt_destroy(t);
    }
}

static void test_fill(void **state)
{
    static const struct { uint64_t dst, size_B; uint32_t element_B; } cases[] = {
        { 0, 4, 4 }, { 0, 8192, 4 }, { 2, 8000, 4 }, { 4094, 12, 4 }, { 4095, 6, 2 }, { 1, 77, 1 }, { 0, 0, 2 }, { 4093, 100000, 4 },
    };
    const uint32_t pattern = 0x44332211u;
    struct hwt *t = copy_fixture(HW_RUN_STEPPED);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fill_pattern(t);
        hwt_fill(t, D, DST_VA + cases[i].dst, cases[i].size_B, pattern, cases[i].element_B);
        assert_true(hwt_finish(t, D, hwt_fence(t, D, false)));
        for (uint64_t b = 0; b < PAGES * 4096ull; b++) {
            const uint64_t off = b - cases[i].dst;
            const uint8_t want = off < cases[i].size_B ? (uint8_t)(pattern >> off % cases[i].element_B * 8) : 0xee;
            if (*dst_byte(t, b) != want)
                fail_msg("case %zu byte %zu: %u, wanted %u", i, (size_t)b, *dst_byte(t, b), want);
        }
    }
    hwt_destroy(t);
}

static void test_system_memory_and_huge_pages(void **state)
{
    struct hwt *t = copy_fixture(HW_RUN_STEPPED);
    const uint64_t sys_va = 0x300000000ull, huge_va = 0x340000000ull, size_B = 300000;
    hwt_map(t, sys_va, 0x5000, 128, HWT_RW | PETREL_PTE_SYSTEM);
    hwt_map_huge(t, huge_va, HWT_DATA_AT + 0x800000, HWT_RW);
    for (uint64_t i = 0; i < size_B; i++)
        t->sys[0x5000 + i] = (uint8_t)(i * 13 + 1);
    hwt_copy(t, D, sys_va, huge_va + 1000000, size_B);
    hwt_copy(t, D, huge_va + 1000000, sys_va + 4096 * 74, 4096 * 50);
    assert_true(hwt_finish(t, D, hwt_fence(t, D, false)));
    assert_memory_equal(t->sys + 0x5000, t->vram + HWT_DATA_AT + 0x800000 + 1000000, 4096 * 73);
    assert_memory_equal(t->sys + 0x5000, t->sys + 0x5000 + 4096 * 74, 4096 * 50);
    hwt_destroy(t);
}

/* Time of one copy of size_B, ns. */
static uint64_t copy_ns(struct hwt *t, uint64_t src, uint64_t dst, uint64_t size_B)
{
    assert_true(hwt_finish(t, D, hwt_fence(t, D, false)));
    const uint64_t from_ns = *(uint64_t *)(t->vram + HWT_FENCE_AT + D * 64 + 8);
    hwt_copy(t, D, src, dst, size_B);
    assert_true(hwt_finish(t, D, hwt_fence(t, D, false)));
    return *(uint64_t *)(t->vram + HWT_FENCE_AT + D * 64 + 8) - from_ns;
}

/* The profile says 256 B/clk in VRAM and 16 B/clk over the link, at 1.4 GHz: long copies must show it. */
static void test_bandwidth(void **state)
{
    struct hwt *t = copy_fixture(HW_RUN_STEPPED);
    const uint64_t a = 0x400000000ull, b = 0x480000000ull, s = 0x500000000ull, size_B = 8ull << 20;
    for (uint64_t i = 0; i < 4; i++) {
        hwt_map_huge(t, a + (i << 21), HWT_DATA_AT + 0x1000000 + (i << 21), HWT_RW);
        hwt_map_huge(t, b + (i << 21), HWT_DATA_AT + 0x1800000 + (i << 21), HWT_RW);
        hwt_map_huge(t, s + (i << 21), i << 21, HWT_RW | PETREL_PTE_SYSTEM);
    }
    const double clk = 1.4, vram_ns = (double)copy_ns(t, a, b, size_B), link_ns = (double)copy_ns(t, s, b, size_B);
    assert_true(vram_ns > (double)size_B / (256 * clk) && vram_ns < (double)size_B / (256 * clk) * 1.1);
    assert_true(link_ns > (double)size_B / (16 * clk) && link_ns < (double)size_B / (16 * clk) * 1.1);
    /* A small one is all latency. */
    assert_in_range(copy_ns(t, a, b, 64), 300, 2000);
    assert_int_equal(hwt_r64(t, PETREL_RING_REG(D, PROGRESS)), 2 * size_B / 1024);
    hwt_destroy(t);
}

static void check_fault(struct hwt *t, uint32_t fault, uint64_t va, uint32_t access)
{
    assert_int_equal(hwt_settle(t, D), PETREL_RING_FAULTED);
    assert_int_equal(hwt_r32(t, PETREL_RING_REG(D, FAULT)), fault);
    assert_int_equal(hwt_r64(t, PETREL_RING_REG(D, FAULT_VA)), va);
    assert_int_equal(PETREL_FAULT_INFO_ACCESS(hwt_r64(t, PETREL_RING_REG(D, FAULT_INFO))), access);
    assert_int_equal(hwt_r64(t, PETREL_RING_REG(D, FAULT_PC)), 0);
    assert_int_equal(hwt_r64(t, PETREL_RING_REG(D, JOB)), 0x77);
    assert_true(hwt_wait_event(t, PETREL_IRQ_FAULT));
    assert_int_equal(t->events[0].data, fault);
    assert_int_equal(t->events[0].ring, D);
    assert_int_equal(t->events[0].job, 0x77);
}

static void test_fault_address(void **state)
{
    static const struct { uint64_t src, dst; uint64_t va; uint32_t access; uint64_t done_B; } cases[] = {
        { SRC_VA + 100, DST_VA, SRC_VA + 5 * 4096, PETREL_ACCESS_READ, 5 * 4096 - 100 },
        { SRC_VA + 8 * 4096, DST_VA + 8 * 4096 + 7, DST_VA + 13 * 4096, PETREL_ACCESS_WRITE, 5 * 4096 - 7 },
        { SRC_VA + 5 * 4096 + 17, DST_VA, SRC_VA + 5 * 4096 + 17, PETREL_ACCESS_READ, 0 },
    };
    for (size_t i = 0; i < 3; i++) {
        struct hwt *t = copy_fixture(both_modes[i % 2]);
        fill_pattern(t);
        hwt_unmap(t, SRC_VA + 5 * 4096);
        hwt_unmap(t, DST_VA + 13 * 4096);
        hwt_copy(t, D, cases[i].src, cases[i].dst, 20 * 4096);
        const uint64_t seq = hwt_fence(t, D, true);
        hwt_doorbell(t, D);
        check_fault(t, PETREL_FAULT_PAGE, cases[i].va, cases[i].access);
        assert_true(hwt_fence_value(t, D) < seq);
        for (uint64_t b = 0; b < cases[i].done_B; b++)
            assert_int_equal(*dst_byte(t, cases[i].dst - DST_VA + b), *src_byte(t, cases[i].src - SRC_VA + b));
        assert_int_equal(*dst_byte(t, cases[i].dst - DST_VA + cases[i].done_B), 0xee);
        hwt_destroy(t);
    }
}

static void test_fault_rights_and_bounds(void **state)
{
    struct hwt *t = copy_fixture(HW_RUN_STEPPED);
    hwt_map(t, DST_VA, HWT_DATA_AT, 1, PETREL_PTE_READ);
    hwt_copy(t, D, SRC_VA, DST_VA + 8, 64);
    hwt_doorbell(t, D);
    check_fault(t, PETREL_FAULT_ACCESS, DST_VA + 8, PETREL_ACCESS_WRITE);
    hwt_destroy(t);

    t = copy_fixture(HW_RUN_STEPPED);
    hwt_map(t, SRC_VA, HWT_VRAM_B, 1, HWT_RW); /* a table entry that points past VRAM */
    hwt_copy(t, D, SRC_VA, DST_VA, 64);
    hwt_doorbell(t, D);
    check_fault(t, PETREL_FAULT_PAGE, SRC_VA, PETREL_ACCESS_READ);
    hwt_destroy(t);

    t = copy_fixture(HW_RUN_STEPPED);
    hwt_copy(t, D, SRC_VA, PETREL_LOCAL_BASE, 64); /* apertures are not for the copy engine */
    hwt_doorbell(t, D);
    check_fault(t, PETREL_FAULT_PAGE, PETREL_LOCAL_BASE, PETREL_ACCESS_WRITE);
    hwt_destroy(t);
}

static bool progressed(struct hwt *t, uint64_t arg)
{
    return hwt_r64(t, PETREL_RING_REG(D, PROGRESS)) > arg;
}

static bool reset_done(struct hwt *t, uint64_t arg)
{
    (void)arg;
    return hwt_r32(t, R_RESET) == 0;
}

static void reset_half_way(enum hw_run_mode mode, uint32_t bits)
{
    struct hwt *t = copy_fixture(mode);
    const uint64_t big_va = 0x400000000ull;
    for (uint64_t i = 0; i < 512; i++) /* 1 GiB of virtual space onto few pages: a long copy */
        hwt_map_huge(t, big_va + (i << 21), HWT_DATA_AT + 0x1000000 + (i % 8 << 21), HWT_RW);
    for (uint32_t i = 0; i < 50; i++)
        hwt_copy(t, D, big_va, big_va + (256ull << 21), 256ull << 21);
    hwt_fence(t, D, true);
    hwt_doorbell(t, D);
    assert_true(hwt_until(t, progressed, 16));
    assert_int_equal(hwt_r32(t, PETREL_RING_REG(D, STATUS)), PETREL_RING_BUSY);
    hw_write32(t->dev, R_RESET, bits);
    assert_true(hwt_until(t, reset_done, 0));
    assert_int_equal(hwt_r32(t, PETREL_RING_REG(D, STATUS)), PETREL_RING_IDLE);
    assert_int_equal(hwt_r32(t, PETREL_RING_REG(D, RPTR)), 0);
    assert_int_equal(hwt_r32(t, PETREL_RING_REG(D, WPTR)), 0);
    assert_int_equal(hwt_r64(t, PETREL_RING_REG(D, JOB)), 0x77); /* stays: it tells what had started */
    assert_int_equal(hwt_fence_value(t, D), 0);
    const uint64_t progress = hwt_r64(t, PETREL_RING_REG(D, PROGRESS));
    hwt_pass(t, 2000000);
    assert_int_equal(hwt_r64(t, PETREL_RING_REG(D, PROGRESS)), progress);
    t->wptr[D] = 0; /* and it works again */
    fill_pattern(t);
    hwt_context(t, D, 1);
    hwt_copy(t, D, SRC_VA, DST_VA, 100);
    assert_true(hwt_finish(t, D, hwt_fence(t, D, false)));
    assert_int_equal(*dst_byte(t, 99), *src_byte(t, 99));
    hwt_destroy(t);
}

static void test_reset_half_way(void **state)
{
    reset_half_way(HW_RUN_STEPPED, 1u << D);
    reset_half_way(HW_RUN_THREADED, 1u << D);
    reset_half_way(HW_RUN_THREADED, 1u << 31);
}

/* Frozen between slices, then goes on; nothing is lost. */
static void test_preempt(void **state)
{
    struct hwt *t = copy_fixture(HW_RUN_STEPPED);
    const uint64_t s = 0x500000000ull, size_B = 8ull << 20, b = 0x480000000ull;
    for (uint64_t i = 0; i < 4; i++) {
        hwt_map_huge(t, b + (i << 21), HWT_DATA_AT + 0x1800000 + (i << 21), HWT_RW);
        hwt_map_huge(t, s + (i << 21), i << 21, HWT_RW | PETREL_PTE_SYSTEM);
    }
    for (uint64_t i = 0; i < size_B; i += 8)
        *(uint64_t *)(t->sys + i) = i;
    hwt_copy(t, D, s, b, size_B);
    const uint64_t seq = hwt_fence(t, D, true);
    hwt_doorbell(t, D);
    hw_device_pump(t->dev, 50000);
    hw_write32(t->dev, PETREL_RING_REG(D, PREEMPT), 1);
    assert_true(hwt_wait_event(t, PETREL_IRQ_PREEMPTED));
    assert_int_equal(hwt_r32(t, PETREL_RING_REG(D, PREEMPT)), 2);
    const uint64_t progress = hwt_r64(t, PETREL_RING_REG(D, PROGRESS));
    assert_in_range(progress, 1, size_B / 1024 - 1);
    hwt_pass(t, 5000000);
    assert_int_equal(hwt_r64(t, PETREL_RING_REG(D, PROGRESS)), progress);
    assert_int_equal(hwt_fence_value(t, D), 0);
    hw_write32(t->dev, PETREL_RING_REG(D, PREEMPT), 0);
    assert_true(hwt_finish(t, D, seq));
    assert_memory_equal(t->sys, t->vram + HWT_DATA_AT + 0x1800000, size_B);
    hwt_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copy_sizes),
        cmocka_unit_test(test_fill),
        cmocka_unit_test(test_system_memory_and_huge_pages),
        cmocka_unit_test(test_bandwidth),
        cmocka_unit_test(test_fault_address),
        cmocka_unit_test(test_fault_rights_and_bounds),
        cmocka_unit_test(test_reset_half_way),
        cmocka_unit_test(test_preempt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
