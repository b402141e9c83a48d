/* SPDX-License-Identifier: MIT */
/* test_cu_divergence.c - lanes that part and meet: results against the host, and all together again at the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cu_fixture.h"
#include "divergent.h"

struct test_args { uint64_t in, out; uint32_t n, m; };

static struct cu_fixture fixtures[2]; /* the host's widest handlers, the portable ones */

static int setup(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        fixture_create(&fixtures[i], i == 1, false);
        fixture_load(&fixtures[i], CU_KERNELS);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++)
        fixture_destroy(&fixtures[i]);
    return 0;
}

static const struct { const char *name; uint32_t (*reference)(uint32_t); } cases[] = {
#define CASE(name_) { #name_, div_##name_ },
    DIVERGENT_CASES(CASE)
#undef CASE
};

static struct test_args *make_args(struct cu_fixture *f, uint32_t items, uint64_t *va_out)
{
    struct test_args *args;

    fixture_reset_data(f);
    *va_out = fixture_alloc(f, sizeof(*args));
    args = fixture_host(f, *va_out);
    args->n = items;
    args->out = fixture_alloc(f, 2ull * items * 4 + 4096);
    return args;
}

static void check_case(struct cu_fixture *f, unsigned c, uint32_t grid, uint32_t block)
{
    uint64_t va;
    uint32_t items = grid * block;
    struct test_args *args = make_args(f, items, &va);
    const uint32_t *out = fixture_host(f, args->out);

    fixture_run_ok(f, fixture_kernel(f, cases[c].name), grid, block, 0, va);
    for (uint32_t i = 0; i < items; i++) {
        uint32_t in_warp = block - i % block / 32 * 32, all = in_warp >= 32 ? UINT32_MAX : (1u << in_warp) - 1;

        if (out[i] != cases[c].reference(i))
            fail_msg("%s(%u) is %u, not %u", cases[c].name, i, out[i], cases[c].reference(i));
        if (out[items + i] != all)
            fail_msg("%s: lanes 0x%08x of 0x%08x are together at the end of item %u", cases[c].name, out[items + i], all, i);
    }
}

static void test_results(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 2; h++) {
        for (unsigned c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
            check_case(&fixtures[h], c, 4, 256);
            check_case(&fixtures[h], c, 3, 77);
        }
    }
}

/* A warp must not need much more than its longest lane: here all lanes take both sides of every branch once at most. */
static void test_cost(void **state)
{
    struct cu_fixture *f = &fixtures[0];
    struct hw_cu_counters one, many, before;
    uint64_t va;

    (void)state;
    make_args(f, 32, &va);
    hw_cu_get_counters(f->cus, &before);
    fixture_run_ok(f, fixture_kernel(f, "variable_loop"), 1, 32, 0, va);
    hw_cu_get_counters(f->cus, &many);
    /* lane 13 alone has the most rounds: 22 */
    assert_int_equal(13 * 7 % 23, 22);
    make_args(f, 32, &va);
    fixture_run_ok(f, fixture_kernel(f, "variable_loop"), 1, 14, 0, va);
    hw_cu_get_counters(f->cus, &one);
    assert_true(many.warp_instr - before.warp_instr < (one.warp_instr - many.warp_instr) * 13 / 10);
    assert_true(many.divergent_branches > before.divergent_branches);
}

static void test_slices(void **state)
{
    struct cu_fixture *f = &fixtures[0];

    (void)state;
    for (unsigned c = 0; c < sizeof(cases) / sizeof(cases[0]); c += 3) {
        uint64_t va, cycles[2];
        uint32_t sums[2] = { 0, 0 };

        for (unsigned k = 0; k < 2; k++) {
            struct test_args *args = make_args(f, 512, &va);
            struct launch l = { .entry = fixture_kernel(f, cases[c].name), .grid = { 4, 1, 1 }, .block = { 128, 1, 1 }, .args = va,
                                .slice = k };
            struct outcome o = fixture_run(f, &l);
            const uint32_t *out = fixture_host(f, args->out);

            assert_int_equal(o.state, HW_CU_DONE);
            cycles[k] = o.cycles;
            if (k)
                assert_true(o.slices >= o.cycles);
            for (uint32_t i = 0; i < 1024; i++)
                sums[k] = sums[k] * 31 + out[i];
        }
        assert_int_equal(sums[0], sums[1]);
        /* the second run finds a warm L2, so cycles may differ; but not by slicing */
        assert_true(cycles[1] <= cycles[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_cost),
        cmocka_unit_test(test_slices),
    };

    return cmocka_run_group_tests_name("cu-divergence", tests, setup, teardown);
}
