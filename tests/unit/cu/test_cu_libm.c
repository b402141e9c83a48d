/* SPDX-License-Identifier: MIT */
/* test_cu_libm.c - picolibc's libm and libgcc on the compute units: results as near to the host's as the library's are. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cu_fixture.h"
#include "libm_cases.h"

enum { GROUPS = 4, BLOCK = 128, ITEMS = GROUPS * BLOCK };

static struct cu_fixture fixtures[2];

static uint64_t next(uint64_t *s)
{
    *s = *s * 6364136223846793005ull + 1442695040888963407ull;
    return *s >> 11;
}

/* Of all sizes, and now and then one of those that functions look at first. */
static double argument(uint64_t *s)
{
    static const double special[] = { 0, -0.0, 1, -1, 0.5, INFINITY, -INFINITY, NAN, 1e-40, 3, 88.7, -104, 1e30 };

    if (next(s) % 8 == 0)
        return special[next(s) % (sizeof(special) / sizeof(special[0]))];
    const double mantissa = (double)(int64_t)(next(s) % 2000001) - 1000000;
    return ldexp(mantissa, (int)(next(s) % 24) - 30); /* drawn one after the other: compilers choose the order of arguments */
}

static int64_t ordered(uint64_t bits, unsigned width)
{
    uint64_t sign = 1ull << (width - 1);

    return bits & sign ? -(int64_t)(bits & (sign - 1)) : (int64_t)bits;
}

/* Both are NaN, or no more than `ulp` numbers apart. */
static void check_close(const char *name, int64_t ulp, double x, double y, uint64_t got, uint64_t want, unsigned width, double g, double w)
{
    int64_t apart;

    if (isnan(g) && isnan(w))
        return;
    if (isnan(g) != isnan(w) || __builtin_sub_overflow(ordered(got, width), ordered(want, width), &apart) || apart > ulp || apart < -ulp)
        fail_msg("%s(%.17g, %.17g) is %.17g, on the host %.17g", name, x, y, g, w);
}

#define LIBM_CASE(name_, type_, call_, ulp_)                                                    \
    static void case_##name_(struct cu_fixture *f)                                              \
    {                                                                                           \
        uint64_t seed = 7, va = fixture_alloc(f, sizeof(struct libm_args));                      \
        struct libm_args *args = fixture_host(f, va);                                           \
        type_ *xs, *ys, *out;                                                                   \
                                                                                                \
        args->x = fixture_alloc(f, ITEMS * sizeof(type_));                                      \
        args->y = fixture_alloc(f, ITEMS * sizeof(type_));                                      \
        args->out = fixture_alloc(f, ITEMS * sizeof(type_));                                    \
        xs = fixture_host(f, args->x);                                                          \
        ys = fixture_host(f, args->y);                                                          \
        out = fixture_host(f, args->out);                                                       \
        for (uint32_t i = 0; i < ITEMS; i++) {                                                  \
            xs[i] = (type_)argument(&seed);                                                     \
            ys[i] = (type_)argument(&seed);                                                     \
        }                                                                                       \
        fixture_run_ok(f, fixture_kernel(f, "libm_" #name_), GROUPS, BLOCK, 0, va);             \
        for (uint32_t i = 0; i < ITEMS; i++) {                                                  \
            type_ x = xs[i], y = ys[i], want = call_;                                           \
            uint64_t g = 0, w = 0;                                                              \
                                                                                                \
            (void)y;                                                                            \
            memcpy(&g, &out[i], sizeof(type_));                                                 \
            memcpy(&w, &want, sizeof(type_));                                                   \
            check_close(#name_, ulp_, (double)x, (double)y, g, w, sizeof(type_) * 8, (double)out[i], (double)want); \
        }                                                                                       \
    }
LIBM_CASES(LIBM_CASE)

static void libm_on_lanes(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        fixture_reset_data(&fixtures[i]);
#define RUN_CASE(name_, type_, call_, ulp_) case_##name_(&fixtures[i]);
        LIBM_CASES(RUN_CASE)
    }
}

static void int128_on_lanes(void **state)
{
    struct cu_fixture *f = &fixtures[0];
    uint64_t seed = 9, va, *x, *y, *out;
    struct libm_args *args;

    (void)state;
    fixture_reset_data(f);
    va = fixture_alloc(f, sizeof(*args));
    args = fixture_host(f, va);
    args->x = fixture_alloc(f, ITEMS * 8);
    args->y = fixture_alloc(f, ITEMS * 8);
    args->out = fixture_alloc(f, ITEMS * 8);
    x = fixture_host(f, args->x);
    y = fixture_host(f, args->y);
    out = fixture_host(f, args->out);
    for (uint32_t i = 0; i < ITEMS; i++) {
        x[i] = next(&seed) >> (i % 53);
        y[i] = next(&seed) << 11 ^ next(&seed);
    }
    fixture_run_ok(f, fixture_kernel(f, "gcc_int128"), GROUPS, BLOCK, 0, va);
    for (uint32_t i = 0; i < ITEMS; i++) {
        unsigned __int128 a = (unsigned __int128)x[i] << 64 | y[i];
        uint64_t b = y[i] >> (i % 32) | 1;

        assert_int_equal(out[i], (uint64_t)(a / b) ^ (uint64_t)(a % b));
    }
}

static int setup(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        fixture_create(&fixtures[i], i == 0, i == 0);
        fixture_load(&fixtures[i], LIBM_KERNELS);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(libm_on_lanes),
        cmocka_unit_test(int128_on_lanes),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
