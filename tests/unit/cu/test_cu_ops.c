/* SPDX-License-Identifier: MIT */
/* test_cu_ops.c - every function of petrel_device_ops.h against what the host says, by whole warps and by some lanes of them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <hw/petrel_pte.h>

#include "cu_fixture.h"
#include "ops_cases.h"

enum { GROUPS = 12, ITEMS = 64 };

struct place { uint32_t g[3], t[3]; };

/* The warp that is looked at, for the host's column of the tables. */
static const struct ops_item *warp;
static uint32_t active, l;

static int setup(void **state)
{
    fixture_ways_create(state);
    for (unsigned i = 0; i < FIXTURE_WAYS; i++)
        fixture_load(&fixture_ways[i], OPS_KERNELS);
    return 0;
}

static uint32_t voted(uint64_t bits)
{
    uint32_t votes = 0;

    for (uint32_t k = 0; k < 32; k++)
        votes |= (uint32_t)(active >> k & 1 && warp[k].v & bits) << k;
    return votes;
}

/* Whose value a shuffle gives. */
static const struct ops_item *from(uint64_t lane)
{
    return &warp[lane < 32 && active >> lane & 1 ? lane : l];
}

/* As fmin.s. */
static float smaller(float a, float b)
{
    return isnan(b) || a < b || (a == b && signbit(a)) ? a : b;
}

#define FOLD(type_, field_, step_) ({                                                       \
    type_ a = (type_)warp[__builtin_ctz(active)].field_;                                    \
    for (uint32_t k = (uint32_t)__builtin_ctz(active) + 1; k < 32; k++) {                   \
        type_ b = (type_)warp[k].field_;                                                    \
        a = active >> k & 1 ? (step_) : a;                                                  \
    }                                                                                       \
    a; })

static bool equal_float(float a, float b)
{
    return isnan(a) ? isnan(b) : !memcmp(&a, &b, sizeof(a));
}

#define EQUAL(a_, b_) _Generic((a_), float: equal_float((float)(a_), (float)(b_)), default: (a_) == (b_))
#define FAIL(name_) fail_msg("petrel_%s, lane %u of those in 0x%x: not what the host says", #name_, l, active)
#define CHECK(name_, type_, device_, want_)                     \
    {                                                           \
        type_ got, want = (want_);                              \
                                                                \
        memcpy(&got, &out[OPS_##name_], sizeof(got));           \
        if (!EQUAL(got, want))                                  \
            FAIL(name_);                                        \
    }
#define CHECK_OLD(name_, type_, device_, want_)                 \
    {                                                           \
        type_ got, now, old;                                    \
                                                                \
        memcpy(&got, &out[OPS_##name_], sizeof(got));           \
        memcpy(&now, &words[OPS_##name_], sizeof(now));         \
        memcpy(&old, &before[OPS_##name_], sizeof(old));        \
        const type_ want = (want_);                             \
        if (!EQUAL(got, old) || !EQUAL(now, want))              \
            FAIL(name_);                                        \
    }
#define CHECK_MATH(name_, device_, want_, ulp_)                                                     \
    {                                                                                               \
        const double want = (want_), ulp = ldexp(1, want == 0 ? -149 : ilogb(want) - 23);           \
        float got;                                                                                  \
                                                                                                    \
        memcpy(&got, &out[OPS_##name_], sizeof(got));                                               \
        if (!((ulp_) == 0 ? equal_float(got, (float)want) : fabs((double)got - want) <= (ulp_) * ulp)) \
            FAIL(name_);                                                                            \
    }

static void check_ids(const struct place *at, const uint64_t *out)
{
    OPS_ID(CHECK)
}

static void check_warp(const struct ops_item *in, const uint64_t *out)
{
    uint64_t by32 = (uint32_t)in->by;

    OPS_WARP(CHECK)
}

static void check_atomic(const struct ops_item *in, const uint64_t *before, const uint64_t *words, const uint64_t *out)
{
    OPS_ATOMIC(CHECK_OLD)
}

static void check_math(const struct ops_item *in, const uint64_t *out)
{
    OPS_MATH(CHECK_MATH)
}

static void check_half(const struct ops_item *in, const uint64_t *out)
{
    static const uint16_t by_lane[2][6] = {
        { 0x3e00, 0x4080, 0x3c00, 0x3c00, 0x3e00, 0x3ce6 },     /* 1.5 and 1.5: 1.5, 2.25, 1, 1, 1.5, the root rounded */
        { 0xc500, 0xcb80, 0xbeab, 0x4200, 0xc500, 0x3eee },     /* -5 and 3: -5, -15, -5/3 rounded, 3, -5, the root rounded */
    };
    float difference;

    memcpy(&difference, (const char *)&out[OPS_half] + 12, sizeof(difference));
    if (l < 2) {
        assert_memory_equal(&out[OPS_half], by_lane[l], sizeof(by_lane[l]));
        assert_true(difference == in->x - in->y);
    }
}

static uint64_t next(uint64_t *s)
{
    *s = *s * 6364136223846793005ull + 1442695040888963407ull;
    return *s >> 11;
}

static struct ops_item draw(uint64_t *s, uint32_t lane)
{
    struct ops_item item = { .v = next(s) << 20 };

    item.v ^= next(s);
    item.by = next(s);
    item.by = item.by % 8 ? item.by % 33 : item.by; /* mostly of a lane, now and then beyond */
    item.x = (float)((int)(next(s) % 20001) - 10000) / 128 + 0.001f;
    item.y = (float)(next(s) % 20001 + 1) / 128;
    item.z = lane % 5 == 2 ? NAN : lane % 5 == 3 ? -0.0f : lane % 5 == 4 ? 0.0f : item.x;
    if (lane < 2) {
        item.x = lane ? -5 : 1.5f;
        item.y = lane ? 3 : 1.5f;
    }
    return item;
}

static void run(struct cu_fixture *f, uint32_t mask, uint32_t code)
{
    uint64_t seed = mask + code, va, words_B = GROUPS * ITEMS * OPS_COUNT * 8ull;
    uint64_t *before = malloc(words_B);
    struct ops_args *args;

    assert_non_null(before);
    fixture_reset_data(f);
    va = fixture_alloc(f, sizeof(*args));
    args = fixture_host(f, va);
    *args = (struct ops_args){ .in = fixture_alloc(f, GROUPS * ITEMS * sizeof(struct ops_item)), .words = fixture_alloc(f, words_B),
                               .out = fixture_alloc(f, words_B), .mask = mask, .code = code };
    struct ops_item *in = fixture_host(f, args->in);
    uint64_t *words = fixture_host(f, args->words);
    for (uint32_t i = 0; i < GROUPS * ITEMS; i++) {
        in[i] = draw(&seed, i % 32);
        for (uint32_t k = 0; k < OPS_COUNT; k++) /* as floats: 12 to 15 */
            words[i * OPS_COUNT + k] = next(&seed) % (1u << 21) + 0x41400000;
    }
    memcpy(before, words, words_B);

    const struct launch launch = { .entry = fixture_kernel(f, "ops"), .grid = OPS_GRID, .block = OPS_BLOCK, .local_B = 256, .args = va };
    const struct outcome o = fixture_run(f, &launch);
    assert_true(o.started);
    if (code) {
        assert_int_equal(o.state, HW_CU_FAULTED);
        assert_int_equal(o.fault.fault, PETREL_FAULT_TRAP);
        assert_int_equal(o.fault.data, code);
        free(before);
        return;
    }
    assert_int_equal(o.state, HW_CU_DONE);
    for (uint32_t i = 0; i < GROUPS * ITEMS; i++) {
        const uint64_t *out = (const uint64_t *)fixture_host(f, args->out) + i * OPS_COUNT;
        const uint32_t t = i % ITEMS, g = i / ITEMS;
        const struct place at = { .g = { g % 2, g / 2 % 3, g / 6 }, .t = { t % 8, t / 8 % 4, t / 32 } };

        warp = in + i / 32 * 32;
        active = mask;
        l = i % 32;
        check_ids(&at, out);
        if (mask >> l & 1)
            check_warp(&in[i], out);
        check_atomic(&in[i], before + i * OPS_COUNT, words + i * OPS_COUNT, out);
        check_math(&in[i], out);
        check_half(&in[i], out);
        assert_int_equal(out[OPS_barrier], ITEMS - t);
        assert_int_equal(out[OPS_warp_sync], UINT32_MAX);
        if (!f->config.functional)
            assert_true(out[OPS_cycles] > OPS_COUNT);
    }
    free(before);
}

static void test_all_lanes(void **state)
{
    (void)state;
    for (unsigned i = 0; i < FIXTURE_WAYS; i++)
        run(&fixture_ways[i], UINT32_MAX, 0);
}

static void test_some_lanes(void **state)
{
    static const uint32_t masks[] = { 0x5a5a0ff1, 0xffff0000, 0x7fffffff, 0x00000012, 1, 0x80000000 };

    (void)state;
    for (unsigned i = 0; i < FIXTURE_WAYS; i++)
        for (unsigned k = 0; k < sizeof(masks) / sizeof(masks[0]); k++)
            run(&fixture_ways[i], masks[k], 0);
}

static void test_trap(void **state)
{
    (void)state;
    for (unsigned i = 0; i < FIXTURE_WAYS; i++)
        run(&fixture_ways[i], UINT32_MAX, 4711);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_lanes), cmocka_unit_test(test_some_lanes), cmocka_unit_test(test_trap),
    };

    return cmocka_run_group_tests_name("cu-ops", tests, setup, fixture_ways_destroy);
}
