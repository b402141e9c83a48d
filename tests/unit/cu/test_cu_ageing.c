/* SPDX-License-Identifier: MIT */
/* test_cu_ageing.c - how long some lanes take decides nothing: warp-wide operations and barriers see whom they would see without ageing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ageing.h"
#include "cu_fixture.h"

enum { IMPATIENT = 500 };

typedef void (*expect_fn)(uint32_t i, uint32_t o[AGEING_WORDS]);

static void expect_behind_branch(uint32_t i, uint32_t *o) { o[0] = i != 5 ? 31 : 0; }

static void expect_tail_guard(uint32_t i, uint32_t *o)
{
    o[0] = i < 29 ? 0x1fffffff : 0;
    o[1] = i < 29 ? 0x0aaaaaaa : 0;
}

static void expect_one_then_all(uint32_t i, uint32_t *o)
{
    o[0] = i & 1 ? 16 : 0;
    o[1] = 32;
}

static void expect_inside_of_branch(uint32_t i, uint32_t *o)
{
    o[0] = i < 16 && i & 1 ? 8 : 0;
    o[1] = 32;
}

static void expect_two_barriers(uint32_t i, uint32_t *o)
{
    o[0] = i & 1 ? 1 : 2;
    o[1] = i & 1 ? 0xaaaaaaaa : 0x55555555;
    o[2] = UINT32_MAX;
}

static void expect_recursion(uint32_t i, uint32_t *o)
{
    o[0] = i ? 31 : 1;
    o[1] = i ? 3 : 2;
    o[2] = 32;
}

static void expect_round_of_loop(uint32_t i, uint32_t *o)
{
    o[0] = 3 * 32;
    o[1] = i & 1 ? 3 * 16 : 0;
    o[2] = 32;
}

static void expect_skipped_round(uint32_t i, uint32_t *o)
{
    o[0] = i ? 31 : 0;
    o[1] = 32;
}

static void expect_two_calls(uint32_t i, uint32_t *o)
{
    o[0] = i & 1 ? 16 + 1 : 2 * 16 + 3;
    o[1] = 32;
}

static void expect_from_function(uint32_t i, uint32_t *o)
{
    o[0] = i < 8 ? 1 : i < 16 ? 2 : 3;
    o[1] = i < 20 ? 20 : 0;
    o[2] = 32;
}

static void expect_both_sides(uint32_t i, uint32_t *o)
{
    o[0] = i & 2 ? 16 : 0x33333333;
    o[1] = i & (i & 2 ? 4 : 8) ? 8 : 0;
    o[2] = UINT32_MAX;
}

static void expect_growing_loop(uint32_t i, uint32_t *o)
{
    for (uint32_t k = 0; k < i; k++)
        o[0] += 31 - k;
    o[1] = 32;
}

static void expect_shuffle(uint32_t i, uint32_t *o)
{
    o[0] = i == 31 ? 0 : 3 * (i == 30 ? 30 : i ^ 1);
    o[1] = 31 * 32 / 2;
}

static void expect_warp_sync(uint32_t i, uint32_t *o) { o[0] = 32; }

static void expect_unresolved(uint32_t i, uint32_t *o)
{
    o[0] = 32;
    o[1] = UINT32_MAX;
    o[3] = 11;
}

static void expect_unresolved_loop(uint32_t i, uint32_t *o)
{
    o[0] = 32;
    o[1] = 3 * 32;
    o[3] = 11;
}

static void expect_early_return(uint32_t i, uint32_t *o)
{
    o[0] = i % 8 < 4 ? i % 8 : 9;
    o[1] = i % 8 < 4 ? 0 : 0xf0f0f0f0;
    o[2] = UINT32_MAX;
}

static void expect_nested_long(uint32_t i, uint32_t *o)
{
    o[0] = i < 8 && i & 1 ? 0xaa : 0;
    o[1] = i < 16 && i & 2 ? 0xcccc : 0;
    o[2] = i < 24 ? 0xffffff : 0;
    o[3] = i & 8 ? 0xff00ff00 : 0;
}

static void expect_spin_side(uint32_t i, uint32_t *o)
{
    o[0] = i < 16 ? 0xffff : 0;
    o[1] = 32;
}

static void expect_spin_in_call(uint32_t i, uint32_t *o) { expect_spin_side(i, o); }

static void expect_return_in_branch(uint32_t i, uint32_t *o)
{
    o[0] = o[2] = 32;
    o[1] = i & 1 ? 3 : 0;
    o[3] = 2;
}

static void expect_two_sides(uint32_t i, uint32_t *o)
{
    o[0] = i < 8 ? 8 : 124;
    o[1] = i ? 0 : 15;
    o[2] = 32;
}

static void expect_round_else(uint32_t i, uint32_t *o)
{
    o[0] = i < 16 ? 16 : 0;
    o[1] = i & 1 ? 1 + (i >= 16) : 0;
    o[2] = 32;
    o[3] = 9;
}

static void expect_long_in_two_calls(uint32_t i, uint32_t *o)
{
    o[0] = 16;
    o[1] = i & 1 ? 0 : 7;
    o[2] = 32;
}

static const struct shape { const char *name; expect_fn expect; bool whole; } shapes[] = {
#define SHAPE(name_) { "shape_" #name_, expect_##name_, false },
    AGEING_SHAPES(SHAPE)
#undef SHAPE
#define SHAPE(name_) { "shape_" #name_, expect_##name_, true },
    AGEING_WHOLE_SHAPES(SHAPE)
#undef SHAPE
};

/* Either side of what impatient fixtures give a path, so that these tear lanes apart. */
static const uint32_t rounds[] = { 1, 60, 200, 1000, 3000, 30000 };

static void run_shape(struct cu_fixture *f, unsigned s, uint32_t n, bool sync)
{
    struct ageing_args *args;
    uint64_t va;
    const uint32_t *out;

    fixture_reset_data(f);
    va = fixture_alloc(f, sizeof(*args));
    args = fixture_host(f, va);
    args->out = fixture_alloc(f, 32 * AGEING_WORDS * 4);
    args->word = fixture_alloc(f, 8);
    args->rounds = n;
    args->sync = sync;
    out = fixture_host(f, args->out);
    fixture_run_ok(f, fixture_kernel(f, shapes[s].name), 1, 32, 0, va);
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t want[AGEING_WORDS] = { 0 };

        shapes[s].expect(i, want);
        for (unsigned k = 0; k < AGEING_WORDS; k++)
            if (out[i * AGEING_WORDS + k] != want[k])
                fail_msg("%s, %u rounds %s atomics, way %u: lane %u has 0x%x for word %u, not 0x%x", shapes[s].name, n, sync ? "with" : "without",
                         (unsigned)(f - fixture_ways), i, out[i * AGEING_WORDS + k], k, want[k]);
    }
}

static void test_shapes(void **state)
{
    (void)state;
    for (unsigned w = 0; w < FIXTURE_WAYS; w++) {
        fixture_load(&fixture_ways[w], AGEING_KERNELS);
        for (unsigned s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
            for (unsigned n = 0; n < sizeof(rounds) / sizeof(rounds[0]); n++)
                for (unsigned sync = 0; sync < 2; sync++)
                    if (!fixture_age_instr || !shapes[s].whole)
                        run_shape(&fixture_ways[w], s, rounds[n], sync);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
    };

    int failed = cmocka_run_group_tests_name("cu-ageing", tests, fixture_ways_create, fixture_ways_destroy);

    fixture_age_instr = IMPATIENT; /* what gets on is taken for waiting */
    return failed + cmocka_run_group_tests_name("cu-ageing, impatient", tests, fixture_ways_create, fixture_ways_destroy);
}
