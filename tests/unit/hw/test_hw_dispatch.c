/* SPDX-License-Identifier: MIT */
/* test_hw_dispatch.c - dispatches through the compute ring: results, faults, preemption, reset, sabotage, sharing with copies. */
#include "hw_fixture.h"

#define C PETREL_RING_COMPUTE0
#define D PETREL_RING_COPY0
#define CODE_VA 0x100000000ull
#define ARGS_VA 0x180000000ull
#define OUT_VA 0x200000000ull
#define CODE_AT HWT_DATA_AT
#define ARGS_AT (HWT_DATA_AT + 0x10000)
#define OUT_AT (HWT_DATA_AT + 0x20000)
#define OUT_PAGES 64u

/* out[global id] = 3 * global id after a loop of so many turns; args: u64 out, u64 turns. RV64IM. */
static const uint32_t kernel_triple[] = {
    0x00053583, /*    ld   a1, 0(a0)      */
    0x00853603, /*    ld   a2, 8(a0)      */
    0xfff60613, /* 1: addi a2, a2, -1     */
    0xfec04ee3, /*    bgtz a2, 1b         */
    0xcc3026f3, /*    csrr a3, group_id_x */
    0xcc602773, /*    csrr a4, block_x    */
    0x02e686b3, /*    mul  a3, a3, a4     */
    0xcc002773, /*    csrr a4, local_id_x */
    0x00e686b3, /*    add  a3, a3, a4     */
    0x00169713, /*    slli a4, a3, 1      */
    0x00d70733, /*    add  a4, a4, a3     */
    0x00269693, /*    slli a3, a3, 2      */
    0x00d585b3, /*    add  a1, a1, a3     */
    0x00e5a023, /*    sw   a4, 0(a1)      */
    0x00008067, /*    ret                 */
};
#define KERNEL_B sizeof(kernel_triple)

static struct hwt *dispatch_fixture(enum hw_run_mode mode, const char *plan)
{
    struct hwt *t = hwt_boot(mode);
    assert_int_equal(umd_fault_plan_set(plan), UMD_SUCCESS);
    hwt_map(t, CODE_VA, CODE_AT, 1, PETREL_PTE_READ | PETREL_PTE_EXEC);
    hwt_map(t, ARGS_VA, ARGS_AT, 1, PETREL_PTE_READ);
    hwt_map(t, OUT_VA, OUT_AT, OUT_PAGES, HWT_RW);
    memcpy(t->vram + CODE_AT, kernel_triple, KERNEL_B);
    hwt_context(t, C, 0xc0de);
    return t;
}

static void set_args(struct hwt *t, uint64_t slot, uint64_t out, uint64_t turns)
{
    const uint64_t args[2] = { out, turns };
    memcpy(t->vram + ARGS_AT + slot * 16, args, 16);
}

static void dispatch(struct hwt *t, uint64_t slot, uint32_t groups, uint32_t block, uint32_t local_B)
{
    const struct petrel_dispatch d = {
        .entry_va = CODE_VA, .args_va = ARGS_VA + slot * 16, .grid = { groups, 1, 1 }, .block = { block, 1, 1 },
        .local_B = local_B, .code_va = CODE_VA, .code_B = KERNEL_B,
    };
    uint32_t dw[16];
    memcpy(dw, &d, sizeof(d));
    hwt_dw(t, C, PETREL_PKT(PETREL_OP_DISPATCH, 16));
    for (int i = 0; i < 16; i++)
        hwt_dw(t, C, dw[i]);
}

static void check_out(struct hwt *t, uint32_t n)
{
    const uint32_t *out = (const uint32_t *)(t->vram + OUT_AT);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(out[i], 3 * i);
    assert_int_equal(out[n], 0);
}

static void test_results(void **state)
{
    static const struct { uint32_t groups, block; } cases[] = { { 1, 1 }, { 3, 33 }, { 40, 256 }, { 7, 512 }, { 513, 64 } };
    for (size_t i = 0; i < 5; i++) {
        struct hwt *t = dispatch_fixture(i % 2 ? HW_RUN_THREADED : HW_RUN_STEPPED, NULL);
        set_args(t, 0, OUT_VA, 3);
        dispatch(t, 0, cases[i].groups, cases[i].block, 0);
        assert_true(hwt_finish(t, C, hwt_fence(t, C, true)));
        check_out(t, cases[i].groups * cases[i].block);
        assert_int_equal(hwt_r64(t, PETREL_RING_REG(C, PROGRESS)), cases[i].groups);
        assert_true(hwt_r64(t, PETREL_RING_REG(C, INSTR)) >= 15 * cases[i].groups);
        hwt_destroy(t);
    }
}

static uint64_t fence_ns(struct hwt *t, uint32_t ring)
{
    return *(uint64_t *)(t->vram + HWT_FENCE_AT + ring * 64 + 8);
}

/* More turns take more device time; two stepped runs take the same. */
static void test_time_of_a_dispatch(void **state)
{
    uint64_t took_ns[3];
    static const uint64_t turns[3] = { 10, 5000, 5000 };
    for (int i = 0; i < 3; i++) {
        struct hwt *t = dispatch_fixture(HW_RUN_STEPPED, NULL);
        set_args(t, 0, OUT_VA, turns[i]);
        const uint64_t from_ns = hwt_r64(t, R_CLOCK_NS);
        dispatch(t, 0, 16, 64, 0);
        assert_true(hwt_finish(t, C, hwt_fence(t, C, false)));
        took_ns[i] = fence_ns(t, C) - from_ns;
        hwt_destroy(t);
    }
    assert_true(took_ns[0] >= 2000); /* the launch alone */
    assert_true(took_ns[1] > took_ns[0] + 2000);
    assert_int_equal(took_ns[1], took_ns[2]);
}

/* A long kernel and copies share device time: the copies do not wait for it. */
static void test_copies_beside_a_kernel(void **state)
{
    struct hwt *t = dispatch_fixture(HW_RUN_STEPPED, NULL);
    set_args(t, 0, OUT_VA, 200000);
    dispatch(t, 0, 8, 32, 0);
    const uint64_t kernel = hwt_fence(t, C, true);
    hwt_doorbell(t, C);
    hw_device_pump(t->dev, 20000);
    hwt_context(t, D, 2);
    hwt_copy(t, D, CODE_VA, OUT_VA + 32 * 4096, 4096);
    const uint64_t from_ns = hwt_r64(t, R_CLOCK_NS);
    assert_true(hwt_finish(t, D, hwt_fence(t, D, false)));
    assert_true(hwt_fence_value(t, C) < kernel);
    assert_true(fence_ns(t, D) - from_ns < 40000);
    assert_true(hwt_finish(t, C, kernel));
    assert_true(fence_ns(t, C) > fence_ns(t, D) + 100000);
    hwt_destroy(t);
}

static void check_fault(struct hwt *t, uint32_t fault, uint64_t va, uint64_t pc)
{
    assert_int_equal(hwt_settle(t, C), PETREL_RING_FAULTED);
    assert_int_equal(hwt_r32(t, PETREL_RING_REG(C, FAULT)), fault);
    if (va)
        assert_int_equal(hwt_r64(t, PETREL_RING_REG(C, FAULT_VA)), va);
    if (pc)
        assert_int_equal(hwt_r64(t, PETREL_RING_REG(C, FAULT_PC)), pc);
    assert_int_equal(hwt_r64(t, PETREL_RING_REG(C, JOB)), 0xc0de);
    assert_true(hwt_wait_event(t, PETREL_IRQ_FAULT));
    assert_int_equal(t->events[0].data, fault);
    assert_int_equal(hwt_fence_value(t, C), 0);
}

/* The ring works again after reset. */
static void check_recovers(struct hwt *t)
{
    hw_write32(t->dev, R_RESET, 1u << C);
    for (int i = 0; i < 1000 && hwt_r32(t, R_RESET) != 0; i++)
        hwt_pass(t, 100000);
    assert_int_equal(hwt_r32(t, R_RESET), 0);
    t->wptr[C] = 0;
    hwt_context(t, C, 1);
    memset(t->vram + OUT_AT, 0, OUT_PAGES * 4096);
    set_args(t, 0, OUT_VA, 1);
    dispatch(t, 0, 4, 64, 0);
    assert_true(hwt_finish(t, C, hwt_fence(t, C, false)));
    check_out(t, 256);
}

static void test_kernel_faults(void **state)
{
    struct hwt *t = dispatch_fixture(HW_RUN_THREADED, NULL);
    set_args(t, 0, OUT_VA + OUT_PAGES * 4096, 1); /* the store runs off the mapping */
    dispatch(t, 0, 1, 32, 0);
    hwt_fence(t, C, true);
    hwt_doorbell(t, C);
    check_fault(t, PETREL_FAULT_PAGE, OUT_VA + OUT_PAGES * 4096, CODE_VA + 13 * 4);
    assert_int_equal(PETREL_FAULT_INFO_ACCESS(hwt_r64(t, PETREL_RING_REG(C, FAULT_INFO))), PETREL_ACCESS_WRITE);
    check_recovers(t);
    hwt_destroy(t);

    t = dispatch_fixture(HW_RUN_STEPPED, NULL);
    set_args(t, 0, CODE_VA, 1); /* mapped, but not for writing */
    dispatch(t, 0, 1, 32, 0);
    hwt_doorbell(t, C);
    check_fault(t, PETREL_FAULT_ACCESS, CODE_VA, CODE_VA + 13 * 4);
    hwt_destroy(t);

    t = dispatch_fixture(HW_RUN_STEPPED, NULL);
    dispatch(t, 0, 1, 32, 65536 + 16); /* more local memory than there is */
    hwt_doorbell(t, C);
    check_fault(t, PETREL_FAULT_RESOURCES, 0, 0);
    hwt_destroy(t);

    t = dispatch_fixture(HW_RUN_STEPPED, NULL);
    dispatch(t, 0, 1, 1024, 0); /* 32 warps, where a compute unit of this profile holds 16 */
    hwt_doorbell(t, C);
    check_fault(t, PETREL_FAULT_RESOURCES, 0, 0);
    hwt_destroy(t);

    t = dispatch_fixture(HW_RUN_STEPPED, NULL);
    hw_write64(t->dev, R_SCRATCH_SIZE, 4096); /* no private memory for so many lanes */
    dispatch(t, 0, 1, 32, 0);
    hwt_doorbell(t, C);
    check_fault(t, PETREL_FAULT_RESOURCES, 0, 0);
    hwt_destroy(t);

    t = dispatch_fixture(HW_RUN_STEPPED, NULL);
    hwt_map(t, CODE_VA, CODE_AT, 1, PETREL_PTE_READ);
    dispatch(t, 0, 1, 32, 0);
    hwt_doorbell(t, C);
    check_fault(t, PETREL_FAULT_ACCESS, CODE_VA, CODE_VA);
    hwt_destroy(t);
}

static void test_preempt_and_resume(void **state)
{
    for (int m = 0; m < 2; m++) {
        struct hwt *t = dispatch_fixture(m ? HW_RUN_THREADED : HW_RUN_STEPPED, NULL);
        set_args(t, 0, OUT_VA, 300000);
        dispatch(t, 0, 8, 32, 0);
        const uint64_t seq = hwt_fence(t, C, true);
        hwt_doorbell(t, C);
        while (hwt_r64(t, PETREL_RING_REG(C, INSTR)) < 1000)
            hwt_pass(t, 1000);
        hw_write32(t->dev, PETREL_RING_REG(C, PREEMPT), 1);
        assert_true(hwt_wait_event(t, PETREL_IRQ_PREEMPTED));
        const uint64_t pc = hwt_r64(t, PETREL_RING_REG(C, FAULT_PC));
        assert_in_range(pc, CODE_VA, CODE_VA + KERNEL_B - 4); /* it spins in there */
        const uint64_t instr = hwt_r64(t, PETREL_RING_REG(C, INSTR));
        hwt_pass(t, 1000000);
        assert_int_equal(hwt_r64(t, PETREL_RING_REG(C, INSTR)), instr);
        hw_write32(t->dev, PETREL_RING_REG(C, PREEMPT), 0);
        assert_true(hwt_finish(t, C, seq));
        check_out(t, 256);
        hwt_destroy(t);
    }
}

static void test_reset_kills_a_kernel(void **state)
{
    for (int m = 0; m < 2; m++) {
        struct hwt *t = dispatch_fixture(m ? HW_RUN_THREADED : HW_RUN_STEPPED, NULL);
        set_args(t, 0, OUT_VA, 1ull << 40); /* for ever */
        dispatch(t, 0, 8, 32, 0);
        hwt_fence(t, C, true);
        hwt_doorbell(t, C);
        while (hwt_r64(t, PETREL_RING_REG(C, INSTR)) < 1000)
            hwt_pass(t, 1000);
        check_recovers(t);
        assert_int_equal(t->event_count, 0);
        hwt_destroy(t);
    }
}

/* ---- Sabotage ---- */

static void test_cu_hang(void **state)
{
    for (int m = 0; m < 2; m++) {
        struct hwt *t = dispatch_fixture(m ? HW_RUN_THREADED : HW_RUN_STEPPED, "hw.cu.hang[nth=2]=fire");
        set_args(t, 0, OUT_VA, 100);
        dispatch(t, 0, 4, 64, 0);
        assert_true(hwt_finish(t, C, hwt_fence(t, C, false)));
        dispatch(t, 0, 4, 64, 0);
        hwt_fence(t, C, true);
        hwt_doorbell(t, C);
        hwt_pass(t, 5000000);
        const uint64_t instr = hwt_r64(t, PETREL_RING_REG(C, INSTR)), from_ns = hwt_r64(t, R_CLOCK_NS);
        hw_write32(t->dev, PETREL_RING_REG(C, PREEMPT), 1);
        hwt_pass(t, 5000000);
        assert_int_equal(hwt_r32(t, PETREL_RING_REG(C, STATUS)), PETREL_RING_BUSY);
        assert_int_equal(hwt_r64(t, PETREL_RING_REG(C, INSTR)), instr);
        assert_int_equal(hwt_r32(t, PETREL_RING_REG(C, PREEMPT)), 1); /* it does not answer */
        assert_true(hwt_r64(t, R_CLOCK_NS) >= from_ns + 5000000);
        assert_int_equal(t->event_count, 0);
        hw_write32(t->dev, PETREL_RING_REG(C, PREEMPT), 0);
        t->seq[C] = 1;
        check_recovers(t);
        hwt_destroy(t);
    }
}

static void test_cu_wild_access(void **state)
{
    struct hwt *t = dispatch_fixture(HW_RUN_STEPPED, "hw.cu.wild_access[nth=1]=fire(0x123456789000)");
    set_args(t, 0, OUT_VA, 100);
    dispatch(t, 0, 4, 64, 0);
    hwt_fence(t, C, true);
    hwt_doorbell(t, C);
    check_fault(t, PETREL_FAULT_PAGE, 0x123456789000, 0);
    check_recovers(t);
    hwt_destroy(t);
    t = dispatch_fixture(HW_RUN_STEPPED, "hw.cu.wild_access=fire");
    dispatch(t, 0, 1, 1, 0);
    hwt_doorbell(t, C);
    check_fault(t, PETREL_FAULT_PAGE, 0, 0);
    hwt_destroy(t);
}

static void test_cu_illegal(void **state)
{
    struct hwt *t = dispatch_fixture(HW_RUN_THREADED, "hw.cu.illegal[nth=1]=fire(0)");
    set_args(t, 0, OUT_VA, 1000);
    dispatch(t, 0, 4, 64, 0);
    hwt_fence(t, C, true);
    hwt_doorbell(t, C);
    check_fault(t, PETREL_FAULT_ILLEGAL, 0, 0);
    assert_int_equal(hwt_r64(t, PETREL_RING_REG(C, FAULT_DATA)), 0);
    assert_in_range(hwt_r64(t, PETREL_RING_REG(C, FAULT_PC)), CODE_VA, CODE_VA + KERNEL_B - 4);
    check_recovers(t);
    hwt_destroy(t);
}

static bool gone(struct hwt *t, uint64_t arg)
{
    (void)arg;
    return hwt_r32(t, R_ID) == UINT32_MAX;
}

static void test_bus_off_by_dispatch(void **state)
{
    struct hwt *t = dispatch_fixture(HW_RUN_THREADED, "hw.bus.off[nth=1]=fire");
    dispatch(t, 0, 1, 1, 0);
    hwt_doorbell(t, C);
    assert_true(hwt_until(t, gone, 0));
    hwt_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_time_of_a_dispatch),
        cmocka_unit_test(test_copies_beside_a_kernel),
        cmocka_unit_test(test_kernel_faults),
        cmocka_unit_test(test_preempt_and_resume),
        cmocka_unit_test(test_reset_kills_a_kernel),
        cmocka_unit_test(test_cu_hang),
        cmocka_unit_test(test_cu_wild_access),
        cmocka_unit_test(test_cu_illegal),
        cmocka_unit_test(test_bus_off_by_dispatch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
