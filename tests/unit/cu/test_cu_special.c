/* SPDX-License-Identifier: MIT */
/* test_cu_special.c - the approximations of custom-0 against MPFR: no error is above what isa.md states, on wide sets of operands. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <mpfr.h>

#include "cu_asm.h"
#include "cu_fixture.h"
#include "cu_priv.h"

static mpfr_t vx, vy;

static int setup(void **state)
{
    (void)state;
    mpfr_inits2(160, vx, vy, (mpfr_ptr)0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mpfr_clears(vx, vy, (mpfr_ptr)0);
    mpfr_free_cache();
    return 0;
}

static uint32_t bits_of(float v) { uint32_t b; memcpy(&b, &v, 4); return b; }
static float float_of(uint32_t b) { float v; memcpy(&v, &b, 4); return v; }

static uint32_t random32(void)
{
    static uint64_t s = 0x2545f4914f6cdd1dull;

    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;
    return (uint32_t)(s * 0x9e3779b97f4a7c15ull >> 32);
}

/* The exact value into vy. */
static void exact(unsigned op, float x)
{
    mpfr_set_flt(vx, x, MPFR_RNDN);
    switch (op) {
    case CU_OP_p_exp2: mpfr_exp2(vy, vx, MPFR_RNDN); break;
    case CU_OP_p_log2: mpfr_log2(vy, vx, MPFR_RNDN); break;
    case CU_OP_p_rsqrt: mpfr_rec_sqrt(vy, vx, MPFR_RNDN); break;
    case CU_OP_p_sin: mpfr_sin(vy, vx, MPFR_RNDN); break;
    case CU_OP_p_cos: mpfr_cos(vy, vx, MPFR_RNDN); break;
    default: mpfr_ui_div(vy, 1, vx, MPFR_RNDN); break;
    }
}

/* |r - vy| in units of the last place of a float of vy's size, and as it is. An infinite r is right where vy rounds to it. */
static double error_in_units(float r, double *absolute_out)
{
    long exp;

    if (isinf(r)) {
        *absolute_out = 0;
        mpfr_set_d(vx, 0x1.ffffffp127, MPFR_RNDN);
        return mpfr_cmpabs(vy, vx) >= 0 && mpfr_signbit(vy) == (r < 0) ? 0 : 1e9;
    }
    if (mpfr_zero_p(vy)) {
        *absolute_out = fabs((double)r);
        return r == 0 ? 0 : 1e9;
    }
    exp = mpfr_get_exp(vy) - 24;
    exp = exp < -149 ? -149 : exp;
    mpfr_set_flt(vx, r, MPFR_RNDN);
    mpfr_sub(vx, vx, vy, MPFR_RNDN);
    *absolute_out = fabs(mpfr_get_d(vx, MPFR_RNDN));
    mpfr_mul_2si(vx, vx, -exp, MPFR_RNDN);
    return fabs(mpfr_get_d(vx, MPFR_RNDN));
}

/* Units that the row of the operation promises. */
static double stated(unsigned op)
{
    FILE *file = fopen(ISA_MD, "r");
    char line[1024], name[32];
    double units = -1;

    assert_non_null(file);
    snprintf(name, sizeof(name), "| `%s` | ", cu_insns[op].mnemonic);
    while (fgets(line, sizeof(line), file))
        if (!strncmp(line, name, strlen(name)) && units < 0)
            units = strtod(line + strlen(name), NULL);
    fclose(file);
    assert_true(units >= 0.5 && units < 1);
    return units + 1e-9;
}

static bool in_domain(unsigned op, float x)
{
    switch (op) {
    case CU_OP_p_log2: case CU_OP_p_rsqrt: return x > 0 && !isinf(x);
    case CU_OP_p_sin: case CU_OP_p_cos: return fabsf(x) < 0x1p22f;
    default: return !isnan(x) && !isinf(x) && x != 0;
    }
}

static void check(unsigned op, float x, double limit)
{
    double absolute, units;
    float r;

    if (!in_domain(op, x))
        return;
    r = cu_special(op, x);
    exact(op, x);
    units = error_in_units(r, &absolute);
    if (!(units <= limit))
        fail_msg("%s(%a) is %a: %.5f units off, %.5f are stated", cu_insns[op].mnemonic, (double)x, (double)r, units, limit);
}

/* All exponents, the ranges where the function does most, and every so-manieth float of where it is hardest. */
static void check_operation(unsigned op, float low, float high, uint32_t dense_low, uint32_t dense_high)
{
    double limit = stated(op);

    for (uint32_t exp = 0; exp < 255; exp++) {
        for (uint32_t k = 0; k < 80; k++) {
            uint32_t fraction = k < 8 ? (k < 4 ? k : 0x800000 - (k - 3)) : random32() & 0x7fffff;

            check(op, float_of(exp << 23 | fraction), limit);
            check(op, float_of(1u << 31 | exp << 23 | fraction), limit);
        }
    }
    for (unsigned k = 0; k < 40000; k++)
        check(op, low + (high - low) * (float)(random32() >> 8) * 0x1p-24f, limit);
    for (uint32_t b = dense_low; b < dense_high; b += 1 + random32() % ((dense_high - dense_low) / 20000))
        check(op, float_of(b), limit);
}

static void test_stated_errors(void **state)
{
    (void)state;
    check_operation(CU_OP_p_exp2, -150, 128, bits_of(0.0625f), bits_of(1));
    check_operation(CU_OP_p_log2, 0.5f, 2, bits_of(0.5f), bits_of(2));
    check_operation(CU_OP_p_rsqrt, 1, 4, bits_of(1), bits_of(4));
    check_operation(CU_OP_p_sin, -100, 100, bits_of(0x1p19f), bits_of(0x1p22f));
    check_operation(CU_OP_p_cos, -100, 100, bits_of(0x1p19f), bits_of(0x1p22f));
    check_operation(CU_OP_p_rcp, -2, 2, bits_of(1), bits_of(2));
}

/* Sine and cosine of great numbers: the absolute errors of the text. */
static void test_great_angles(void **state)
{
    (void)state;
    for (unsigned k = 0; k < 40000; k++) {
        float x = float_of(bits_of(0x1p22f) + random32() % (bits_of(0x1p30f) - bits_of(0x1p22f))) * (k & 1 ? 1 : -1);

        for (unsigned op = CU_OP_p_sin; op <= CU_OP_p_cos; op++) {
            double absolute;

            exact(op, x);
            error_in_units(cu_special(op, x), &absolute);
            if (absolute > (fabsf(x) < 0x1p28f ? 4.3e-8 : 8.2e-8))
                fail_msg("%s(%a) is %g off", cu_insns[op].mnemonic, (double)x, absolute);
        }
        assert_true(cu_special(CU_OP_p_sin, x * 0x1p30f) == 0 && cu_special(CU_OP_p_cos, x * 0x1p30f) == 0);
    }
}

static void test_special_values(void **state)
{
    const float inf = INFINITY;
    const struct { uint16_t op; float x, want; } rows[] = {
        { CU_OP_p_exp2, 128, inf }, { CU_OP_p_exp2, inf, inf }, { CU_OP_p_exp2, -150, 0 }, { CU_OP_p_exp2, -inf, 0 }, { CU_OP_p_exp2, -0.0f, 1 },
        { CU_OP_p_exp2, -149, 0x1p-149f }, { CU_OP_p_exp2, 10, 1024 }, { CU_OP_p_log2, 0, -inf }, { CU_OP_p_log2, -0.0f, -inf },
        { CU_OP_p_log2, inf, inf }, { CU_OP_p_log2, 1, 0 }, { CU_OP_p_log2, 0x1p-149f, -149 }, { CU_OP_p_rsqrt, 0, inf },
        { CU_OP_p_rsqrt, -0.0f, -inf }, { CU_OP_p_rsqrt, inf, 0 }, { CU_OP_p_rsqrt, 4, 0.5f }, { CU_OP_p_sin, 0, 0 }, { CU_OP_p_sin, -0.0f, -0.0f },
        { CU_OP_p_cos, 0, 1 }, { CU_OP_p_rcp, 0, inf }, { CU_OP_p_rcp, -0.0f, -inf }, { CU_OP_p_rcp, inf, 0 }, { CU_OP_p_rcp, 0x1p127f, 0x1p-127f },
    };
    const struct { uint16_t op; float x; } nans[] = {
        { CU_OP_p_log2, -1 }, { CU_OP_p_log2, -inf }, { CU_OP_p_rsqrt, -1 }, { CU_OP_p_rsqrt, -inf }, { CU_OP_p_sin, inf }, { CU_OP_p_cos, -inf },
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (bits_of(cu_special(rows[i].op, rows[i].x)) != bits_of(rows[i].want))
            fail_msg("%s(%a) is %a", cu_insns[rows[i].op].mnemonic, (double)rows[i].x, (double)cu_special(rows[i].op, rows[i].x));
    for (unsigned i = 0; i < sizeof(nans) / sizeof(nans[0]); i++)
        assert_int_equal(bits_of(cu_special(nans[i].op, nans[i].x)), 0x7fc00000);
    for (unsigned op = CU_OP_p_exp2; op <= CU_OP_p_rcp; op++)
        assert_int_equal(bits_of(cu_special(op, float_of(0xff812345))), 0x7fc00000);
}

/* The instructions give what the functions give, in all lanes. */
static void test_instructions(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 2; h++) {
        struct cu_fixture f;

        fixture_create(&f, h, true);
        for (unsigned op = CU_OP_p_exp2; op <= CU_OP_p_rcp; op++) {
            struct launch l = { .grid = { 1, 1, 1 }, .block = { 512, 1, 1 } };
            uint32_t code[16];
            unsigned n = 0;
            float *x;

            code[n++] = i_type(MATCH(csrrs), 5, 0, CU_CSR_LOCAL_ID_X);
            code[n++] = i_type(MATCH(slli), 5, 5, 3);
            code[n++] = r_type(MATCH(add), 5, 5, 10);
            code[n++] = i_type(MATCH(flw), 1, 5, 0);
            code[n++] = r_type(cu_insns[op].match, 2, 1, 0);
            code[n++] = s_type(MATCH(fsw), 5, 2, 4);
            code[n++] = i_type(MATCH(jalr), 0, 1, 0);
            l.entry = fixture_code(&f, code, n);
            fixture_reset_data(&f);
            l.args = fixture_alloc(&f, 512 * 8);
            x = fixture_host(&f, l.args);
            for (unsigned i = 0; i < 512; i++)
                x[2 * i] = i % 4 ? (float)(int)(random32() % 4000) / 16 - 125 : float_of(random32());
            assert_int_equal(fixture_run(&f, &l).state, HW_CU_DONE);
            for (unsigned i = 0; i < 512; i++)
                assert_int_equal(bits_of(x[2 * i + 1]), bits_of(cu_special(op, x[2 * i])));
        }
        fixture_destroy(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_stated_errors), cmocka_unit_test(test_great_angles),
                                        cmocka_unit_test(test_special_values), cmocka_unit_test(test_instructions) };

    return cmocka_run_group_tests_name("cu-special", tests, setup, teardown);
}
