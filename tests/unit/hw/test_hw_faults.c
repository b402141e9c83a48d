/* SPDX-License-Identifier: MIT */
/* test_hw_faults.c - each fault site of the device fires, and shows only by what hardware would show. */
#include "hw_fixture.h"

#define C PETREL_RING_COMPUTE0
#define D PETREL_RING_COPY0
#define A_VA 0x100000000ull
#define B_VA 0x200000000ull

static struct hwt *faulty(const char *plan, enum hw_run_mode mode)
{
    struct hwt *t = hwt_boot(mode);
    assert_int_equal(umd_fault_plan_set(plan), UMD_SUCCESS);
    hwt_map(t, A_VA, HWT_DATA_AT, 16, HWT_RW);
    hwt_map(t, B_VA, HWT_DATA_AT + 0x100000, 16, HWT_RW);
    for (uint32_t r = 0; r < 2; r++)
        hwt_context(t, r, 5);
    return t;
}

static bool reset_bits_are(struct hwt *t, uint64_t bits)
{
    return hwt_r32(t, R_RESET) == (uint32_t)bits;
}

static const enum hw_run_mode modes[] = { HW_RUN_STEPPED, HW_RUN_THREADED };

/* Frozen: read pointer and counters stand, no fault, no interrupt, no preemption; the clock goes on; reset helps. */
static void check_hung(struct hwt *t, uint32_t ring, uint32_t rptr)
{
    hwt_pass(t, 3000000);
    assert_int_equal(hwt_r32(t, PETREL_RING_REG(ring, STATUS)), PETREL_RING_BUSY);
    assert_int_equal(hwt_r32(t, PETREL_RING_REG(ring, RPTR)), rptr);
    assert_int_equal(hwt_r32(t, PETREL_RING_REG(ring, FAULT)), PETREL_FAULT_NONE);
    hw_write32(t->dev, PETREL_RING_REG(ring, PREEMPT), 1);
    hwt_pass(t, 3000000);
    assert_int_equal(hwt_r32(t, PETREL_RING_REG(ring, PREEMPT)), 1);
    assert_int_equal(hwt_r32(t, PETREL_RING_REG(ring, RPTR)), rptr);
    hw_write32(t->dev, R_RESET, 1u << ring);
    assert_true(hwt_until(t, reset_bits_are, 0));
    assert_int_equal(hwt_r32(t, PETREL_RING_REG(ring, STATUS)), PETREL_RING_IDLE);
    assert_int_equal(hwt_r32(t, PETREL_RING_REG(ring, PREEMPT)), 0);
    t->wptr[ring] = 0;
    assert_true(hwt_finish(t, ring, hwt_fence(t, ring, false)));
}

static void test_cp_hang(void **state)
{
    for (int m = 0; m < 2; m++) {
        struct hwt *t = faulty("hw.cp.hang[nth=3]=fire", modes[m]);
        hwt_write(t, C, A_VA, 1);
        const uint32_t rptr = t->wptr[C];
        hwt_write(t, C, A_VA, 2);
        hwt_fence(t, C, true);
        hwt_doorbell(t, C);
        hwt_fence(t, D, false);
        assert_true(hwt_finish(t, D, 1)); /* the other ring lives */
        check_hung(t, C, rptr);
        assert_int_equal(*(uint64_t *)(t->vram + HWT_DATA_AT), 1);
        assert_int_equal(umd_fault_fired(UMD_FAULT_HW_CP_HANG), 1);
        assert_int_equal(t->event_count, 0);
        hwt_destroy(t);
    }
}

/* Copies of either ring are the copy engine's work; the ring that sent the packet hangs, the other lives. */
static void test_sdma_hang(void **state)
{
    for (int m = 0; m < 4; m++) {
        const uint32_t ring = m & 1 ? D : C, other = m & 1 ? C : D;
        struct hwt *t = faulty("hw.sdma.hang[nth=2]=fire", modes[m / 2]);
        hwt_fill(t, ring, A_VA, 4096, 0x11111111, 4);
        const uint32_t rptr = t->wptr[ring];
        hwt_copy(t, ring, A_VA, B_VA, 4096);
        hwt_fence(t, ring, true);
        hwt_doorbell(t, ring);
        /* The second copy of the two rings together must be this ring's: a loaded host may start the device late. */
        for (int i = 0; i < 5000 && umd_fault_fired(UMD_FAULT_HW_SDMA_HANG) == 0; i++)
            hwt_pass(t, 1000000);
        hwt_copy(t, other, A_VA, B_VA + 4096, 8);
        assert_true(hwt_finish(t, other, hwt_fence(t, other, false)));
        check_hung(t, ring, rptr);
        assert_int_equal(*(uint64_t *)(t->vram + HWT_DATA_AT + 0x100000), 0);
        assert_int_equal(*(uint32_t *)(t->vram + HWT_DATA_AT + 0x101000), 0x11111111);
        assert_int_equal(umd_fault_fired(UMD_FAULT_HW_SDMA_HANG), 1);
        assert_int_equal(t->event_count, 0);
        hwt_destroy(t);
    }
}

static bool gone(struct hwt *t, uint64_t arg)
{
    (void)arg;
    return hwt_r32(t, R_ID) == UINT32_MAX;
}

static void test_bus_off(void **state)
{
    for (int m = 0; m < 2; m++) {
        struct hwt *t = faulty("hw.bus.off[nth=2]=fire", modes[m]);
        hwt_copy(t, D, A_VA, B_VA, 64);
        assert_true(hwt_finish(t, D, hwt_fence(t, D, false)));
        assert_true(hw_on_bus(t->dev));
        assert_int_equal(hwt_r32(t, R_ID), 0x50455452);
        hwt_copy(t, D, A_VA, B_VA, 64);
        hwt_fence(t, D, true);
        hwt_doorbell(t, D);
        assert_true(hwt_until(t, gone, 0));
        assert_false(hw_on_bus(t->dev));
        assert_int_equal(hwt_r32(t, R_FW_STATUS), UINT32_MAX);
        assert_true(hwt_r64(t, R_CLOCK_NS) == UINT64_MAX);
        assert_int_equal(hwt_r32(t, PETREL_RING_REG(D, STATUS)), UINT32_MAX);
        assert_int_equal(hwt_r32(t, 0xfff0), UINT32_MAX); /* where no register is, too */
        hw_write32(t->dev, R_RESET, 1u << 31);
        hw_write64(t->dev, R_TIMER_NS, 1);
        hwt_fence(t, C, true);
        hwt_doorbell(t, C);
        for (int i = 0; i < 20; i++) {
            if (modes[m] == HW_RUN_STEPPED)
                assert_false(hw_device_pump(t->dev, 1000000));
        }
        assert_int_equal(hwt_r32(t, R_RESET), UINT32_MAX);
        assert_int_equal(hwt_fence_value(t, D), 1);
        assert_int_equal(hwt_fence_value(t, C), 0);
        assert_int_equal(t->event_count, 0);
        hwt_destroy(t);
    }
}

static void test_irq_lost(void **state)
{
    for (int m = 0; m < 2; m++) {
        struct hwt *t = faulty("hw.irq.lost[nth=2]=fire", modes[m]);
        assert_true(hwt_finish(t, C, hwt_fence(t, C, true)));
        assert_true(hwt_wait_event(t, PETREL_IRQ_FENCE));
        assert_true(hwt_finish(t, C, hwt_fence(t, C, true))); /* the fence is written all the same */
        hwt_pass(t, 2000000);
        assert_int_equal(t->irq_count, 1);
        assert_int_equal(t->event_count, 1);
        assert_int_equal(hwt_r32(t, R_IH_WPTR), 2); /* and so is the entry */
        assert_true(hwt_finish(t, C, hwt_fence(t, C, true))); /* the next one brings both */
        hwt_pass(t, 1000000);
        assert_int_equal(t->irq_count, 2);
        assert_int_equal(t->event_count, 3);
        hwt_destroy(t);
    }
}

static void test_reset_fail(void **state)
{
    for (int m = 0; m < 2; m++) {
        struct hwt *t = faulty("hw.cp.hang[nth=1]=fire; hw.reset.fail[nth=1]=fire", modes[m]);
        hwt_fence(t, C, true);
        hwt_doorbell(t, C);
        hwt_pass(t, 1000000);
        hw_write32(t->dev, R_RESET, 1u << C);
        hwt_pass(t, 3000000);
        assert_int_equal(hwt_r32(t, R_RESET), 1u << C); /* not acknowledged */
        assert_int_equal(hwt_r32(t, PETREL_RING_REG(C, STATUS)), PETREL_RING_BUSY);
        hw_write32(t->dev, R_RESET, 1u << 31); /* the larger hammer */
        assert_true(hwt_until(t, reset_bits_are, 0));
        assert_int_equal(hwt_r32(t, PETREL_RING_REG(C, STATUS)), PETREL_RING_IDLE);
        t->wptr[C] = 0;
        assert_true(hwt_finish(t, C, hwt_fence(t, C, false)));
        hwt_destroy(t);
    }
}

static void test_reset_never(void **state)
{
    struct hwt *t = faulty("hw.reset.fail=fire", HW_RUN_STEPPED);
    hw_write32(t->dev, R_RESET, 1u << 31);
    hwt_pass(t, 100000000);
    assert_int_equal(hwt_r32(t, R_RESET), 1u << 31);
    hwt_destroy(t);
}

static bool fw_is(struct hwt *t, uint64_t status)
{
    return hwt_r32(t, R_FW_STATUS) == status;
}

static void test_fw_version(void **state)
{
    static const struct { const char *plan; uint32_t version; } cases[] = {
        { "hw.fw.version=fire(0x00020003)", 0x00020003 }, { "hw.fw.version=fire", 0x00020000 }, { "", PETREL_FW_VERSION_EXPECTED },
    };
    for (int i = 0; i < 3; i++) {
        struct hwt *t = hwt_create(modes[i % 2]);
        assert_int_equal(umd_fault_plan_set(cases[i].plan), UMD_SUCCESS);
        hw_write32(t->dev, R_FW_CONTROL, 1);
        assert_true(hwt_until(t, fw_is, PETREL_FW_READY));
        assert_int_equal(hwt_r32(t, R_FW_VERSION), cases[i].version);
        hwt_destroy(t);
    }
}

/* From power-up on; all else is as ever, so that it is for the driver to refuse it. */
static void test_revision(void **state)
{
    static const struct { const char *plan; uint32_t revision; } cases[] = {
        { "hw.revision=fire(9)", 9 }, { "hw.revision=fire", PETREL_REVISION_NEWEST + 1 }, { "hw.revision=fire(0)", 0 }, { "", PETREL_REVISION_NEWEST },
    };
    for (int i = 0; i < 4; i++) {
        assert_int_equal(umd_fault_plan_set(cases[i].plan), UMD_SUCCESS);
        struct hwt *t = hwt_create(modes[i % 2]);
        assert_int_equal(hwt_r32(t, R_REVISION), cases[i].revision);
        assert_int_equal(hwt_r32(t, R_ID), 0x50455452u);
        hwt_destroy(t);
    }
}

static void test_fw_boot(void **state)
{
    for (int m = 0; m < 2; m++) {
        struct hwt *t = hwt_create(modes[m]);
        assert_int_equal(umd_fault_plan_set("hw.fw.boot=fire"), UMD_SUCCESS);
        hw_write32(t->dev, R_FW_CONTROL, 1);
        hwt_pass(t, 30000000);
        assert_int_equal(hwt_r32(t, R_FW_STATUS), PETREL_FW_BOOTING);
        assert_int_equal(hwt_r32(t, R_FW_VERSION), 0);
        hwt_destroy(t);
    }
}

static bool selftest_over(struct hwt *t, uint64_t arg)
{
    (void)arg;
    return hwt_r32(t, R_SELFTEST) >= PETREL_SELFTEST_PASS;
}

static void test_ecc_selftest(void **state)
{
    static const struct { const char *plan; uint64_t at; } cases[] = {
        { "hw.ecc.selftest=fire(0x123458)", 0x123458 }, { "hw.ecc.selftest=fire(0x12345f)", 0x123458 },
        { "hw.ecc.selftest=fire(0)", 0 }, { "hw.ecc.selftest=fire", HWT_VRAM_B / 2 },
    };
    for (int i = 0; i < 4; i++) {
        struct hwt *t = hwt_create(modes[i % 2]);
        assert_int_equal(umd_fault_plan_set(cases[i].plan), UMD_SUCCESS);
        hw_write32(t->dev, R_SELFTEST, 1);
        assert_true(hwt_until(t, selftest_over, 0));
        assert_int_equal(hwt_r32(t, R_SELFTEST), PETREL_SELFTEST_FAIL);
        assert_int_equal(hwt_r64(t, R_SELFTEST_ADDR), cases[i].at);
        hwt_destroy(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cp_hang),
        cmocka_unit_test(test_sdma_hang),
        cmocka_unit_test(test_bus_off),
        cmocka_unit_test(test_irq_lost),
        cmocka_unit_test(test_reset_fail),
        cmocka_unit_test(test_reset_never),
        cmocka_unit_test(test_fw_version),
        cmocka_unit_test(test_revision),
        cmocka_unit_test(test_fw_boot),
        cmocka_unit_test(test_ecc_selftest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
