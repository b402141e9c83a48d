/* SPDX-License-Identifier: MIT */
/* test_cu_sync.c - barriers, locks between lanes, warp-wide operations, atomics, ids, private stacks, math. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cu_fixture.h"
#include "divergent.h"

struct test_args { uint64_t in, out; uint32_t n, m; };

static struct cu_fixture fixtures[3]; /* widest handlers, portable ones, functional */
static struct cu_fixture *f;

static int setup(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        fixture_create(&fixtures[i], i == 1, i == 2);
        fixture_load(&fixtures[i], CU_KERNELS);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        fixture_destroy(&fixtures[i]);
    return 0;
}

static struct test_args *make_args(uint64_t in_B, uint64_t out_B, uint64_t *va_out)
{
    struct test_args *args;

    fixture_reset_data(f);
    *va_out = fixture_alloc(f, sizeof(*args));
    args = fixture_host(f, *va_out);
    args->in = fixture_alloc(f, in_B + 8);
    args->out = fixture_alloc(f, out_B + 8);
    return args;
}

static void each_fixture(void (*body)(void))
{
    for (unsigned i = 0; i < 3; i++) {
        f = &fixtures[i];
        body();
    }
}

static void ids_body(void)
{
    uint64_t va;
    struct test_args *args = make_args(0, 24 * 60 * 16, &va);
    struct launch l = { .entry = fixture_kernel(f, "ids"), .grid = { 2, 3, 4 }, .block = { 5, 4, 3 }, .args = va };
    const uint32_t *out = fixture_host(f, args->out);

    assert_int_equal(fixture_run(f, &l).state, HW_CU_DONE);
    for (uint32_t g = 0; g < 24; g++) {
        for (uint32_t t = 0; t < 60; t++) {
            const uint32_t *o = out + 4 * (g * 60 + t);

            assert_int_equal(o[0], g % 2 * 5 + t % 5);
            assert_int_equal(o[1], g / 2 % 3 * 4 + t / 5 % 4);
            assert_int_equal(o[2], g / 6 * 3 + t / 20);
            assert_int_equal(o[3], t);
        }
    }
}

static void block_sum_body(void)
{
    uint64_t va;
    struct test_args *args = make_args(40 * 256 * 4, 40 * 4, &va);
    uint32_t *in = fixture_host(f, args->in), *out = fixture_host(f, args->out);

    for (uint32_t i = 0; i < 40 * 256; i++)
        in[i] = mix(i);
    fixture_run_ok(f, fixture_kernel(f, "block_sum"), 40, 256, 1024, va);
    for (uint32_t g = 0; g < 40; g++) {
        uint32_t sum = 0;

        for (uint32_t t = 0; t < 256; t++)
            sum += in[g * 256 + t];
        assert_int_equal(out[g], sum);
    }
}

static void barrier_after_return_body(void)
{
    uint64_t va;
    struct test_args *args = make_args(0, 101 * 4, &va);
    const uint32_t *out = fixture_host(f, args->out);

    fixture_run_ok(f, fixture_kernel(f, "barrier_after_return"), 1, 100, 0, va);
    for (uint32_t t = 0; t < 100; t++)
        assert_int_equal(out[1 + t], t % 3 ? 66 : 0);
}

static void barrier_wrong_body(void)
{
    uint64_t va;
    struct launch l = { .grid = { 1, 1, 1 }, .block = { 64, 1, 1 } };
    struct outcome o;

    make_args(0, 64 * 4, &va);
    l.entry = fixture_kernel(f, "barrier_wrong");
    l.args = va;
    o = fixture_run(f, &l);
    assert_int_equal(o.state, HW_CU_FAULTED);
    assert_int_equal(o.fault.fault, PETREL_FAULT_TRAP);
    assert_int_equal(o.fault.data, PETREL_TRAP_BARRIER);
    assert_int_equal(*(uint32_t *)fixture_host(f, o.fault.pc) & 0x7f, 0x0b);
}

static void locks_body(void)
{
    uint64_t va;
    struct test_args *args = make_args(0, 4096, &va);
    uint32_t *out = fixture_host(f, args->out);

    args->m = 3;
    fixture_run_ok(f, fixture_kernel(f, "spin_lock"), 2, 96, 0, va);
    assert_int_equal(out[1], 2 * 96 * 3);
    memset(out, 0, 4096);
    args->m = 8;
    fixture_run_ok(f, fixture_kernel(f, "wait_for_lane"), 4, 32, 0, va);
    for (uint32_t i = 0; i < 128; i++)
        assert_int_equal(out[8 + i], UINT32_MAX);
    memset(out, 0, 4096);
    fixture_run_ok(f, fixture_kernel(f, "lock_then_ballot"), 1, 64, 0, va);
    assert_int_equal(out[1], 64 * 3);
    for (uint32_t i = 0; i < 64; i++)
        assert_int_equal(out[2 + i], 3);
}

static void warp_ops_body(void)
{
    uint64_t va;
    struct test_args *args = make_args(0, 32 * 32 * 8, &va);
    const int64_t *out = fixture_host(f, args->out);
    int64_t sum = 0, and = -1, or = 0, xor = 0;

    for (int64_t l = 0; l < 32; l++) {
        sum += l * l + 3;
        and &= (l * l + 3) | 1;
        or |= l * l + 3;
        xor ^= l * l + 3;
    }
    args->n = 20;
    args->m = 9;
    fixture_run_ok(f, fixture_kernel(f, "warp_ops"), 1, 32, 0, va);
    for (int64_t l = 0; l < 32; l++) {
#define V(l_) ((int64_t)(l_) * (l_) + 3)
        const int64_t *o = out + 32 * l;

        assert_int_equal(o[0], 0x49249249);
        assert_int_equal(o[1], 1);
        assert_int_equal(o[2], 1);
        assert_int_equal(o[3], V((l + 5) % 32));
        assert_int_equal(o[4], l < 3 ? V(l) : V(l - 3));
        assert_int_equal(o[5], l > 28 ? V(l) : V(l + 3));
        assert_int_equal(o[6], V(l ^ 9));
        assert_int_equal(o[7], sum);
        assert_int_equal(o[8], -97);
        assert_int_equal(o[9], V(31));
        assert_int_equal(o[10], and);
        assert_int_equal(o[11], or);
        assert_int_equal(o[12], xor);
        assert_int_equal(o[13], 496);
        assert_int_equal(o[14], 0);
        assert_int_equal(o[15], l ^ 1);
        assert_int_equal(o[16], l & 1 ? 0xaaaaaaaa : 0);
        assert_int_equal(o[17], l & 1 ? V(l) : 0);
        assert_int_equal(o[18], l & 1 ? 16 : 0);
        assert_int_equal(o[19], V(31 - l) << 40);
        assert_int_equal(o[20], l < 20 ? 20 : 112);
        assert_int_equal(o[21], 9);
        assert_int_equal(o[23], l & 1 ? 17 : 18);
#undef V
    }
}

static void counting_lock_body(void)
{
    uint64_t va;
    struct test_args *args = make_args(64, 128 * 4, &va);
    const uint32_t *lock = fixture_host(f, args->in), *tries = fixture_host(f, args->out);
    uint32_t counted = 0;

    fixture_run_ok(f, fixture_kernel(f, "counting_lock"), 1, 128, 0, va);
    assert_int_equal(lock[0], 0);
    assert_int_equal(lock[1], 128);
    for (uint32_t i = 0; i < 128; i++)
        counted += tries[i] > 0;
    assert_true(counted > 64);
}

static void atomics_body(void)
{
    uint64_t va, counter, first;
    struct test_args *args = make_args(0, 64, &va);
    uint32_t *out = fixture_host(f, args->out);
    float sum, max;

    out[2] = UINT32_MAX;
    fixture_run_ok(f, fixture_kernel(f, "atomics"), 4, 250, 0, va);
    memcpy(&sum, &out[3], 4);
    memcpy(&max, &out[4], 4);
    memcpy(&counter, &out[6], 8);
    memcpy(&first, &out[8], 8);
    assert_int_equal(out[0], 999 * 1000 / 2);
    assert_int_equal(out[1], 999);
    assert_int_equal(out[2], 1);
    assert_true(sum == 500.0f && max == 999.0f);
    assert_int_equal(counter, 1000ull << 32);
    assert_true(first >= 1 && first <= 1000);
}

static void recursion_body(void)
{
    uint64_t va;
    struct test_args *args = make_args(0, 128 * 4, &va);
    const uint32_t *out = fixture_host(f, args->out);

    args->m = 40;
    fixture_run_ok(f, fixture_kernel(f, "recursion"), 2, 64, 0, va);
    for (uint32_t i = 0; i < 128; i++) {
        uint32_t x = i, sum = 0;

        for (uint32_t n = i % 41; n; n--) {
            sum += n + x - (n ^ x) + n;
            x = mix(x);
        }
        assert_int_equal(out[i], x + sum);
    }
}

static void check_near(const char *what, float x, float got, double want)
{
    double ulp = !isfinite(want) || fabs(want) < 0x1p-126 ? 0x1p-149 : ldexp(1, ilogb(want) - 23);

    if (isnan(want) ? !isnan(got) : isinf((float)want) ? got != (float)want : !(fabs((double)got - want) <= 4 * ulp))
        fail_msg("%s(%a) is %a, not %a", what, (double)x, (double)got, want);
}

static void math_body(void)
{
    static const float special[] = { 0, 1, 0.5f, 2, 10, 87.5f, -87.5f, -1, 128, -149, INFINITY, 0x1p-140f, 3.14159274f, 1000, 0.1f, 6e5f };
    uint64_t va;
    struct test_args *args = make_args(512 * 4, 8 * 512 * 4, &va);
    float *x = fixture_host(f, args->in);
    const float *o = fixture_host(f, args->out);

    args->n = 512;
    for (uint32_t i = 0; i < 512; i++)
        x[i] = i < 16 ? special[i] : (float)((int)(mix(i) % 20000) - 4000) / 200;
    fixture_run_ok(f, fixture_kernel(f, "math"), 2, 256, 0, va);
    for (uint32_t i = 0; i < 512; i++) {
        double v = x[i];

        check_near("exp2", x[i], o[i], exp2(v));
        check_near("log2", x[i], o[512 + i], log2(v));
        check_near("rsqrt", x[i], o[1024 + i], v == 0 ? INFINITY : 1 / sqrt(v));
        check_near("rcp", x[i], o[2560 + i], 1 / v);
        check_near("exp", x[i], o[3072 + i], exp(v));
        check_near("log", x[i], o[3584 + i], log(v));
        if (isinf(v))
            continue;
        assert_true(fabs((double)o[1536 + i] - sin(v)) < 1e-7);
        assert_true(fabs((double)o[2048 + i] - cos(v)) < 1e-7);
    }
}

#define CASE_(name_) static void test_##name_(void **state) { (void)state; each_fixture(name_##_body); }
CASE_(ids)
CASE_(block_sum)
CASE_(barrier_after_return)
CASE_(barrier_wrong)
CASE_(locks)
CASE_(warp_ops)
CASE_(counting_lock)
CASE_(atomics)
CASE_(recursion)
CASE_(math)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids), cmocka_unit_test(test_block_sum), cmocka_unit_test(test_barrier_after_return),
        cmocka_unit_test(test_barrier_wrong), cmocka_unit_test(test_locks), cmocka_unit_test(test_warp_ops), cmocka_unit_test(test_counting_lock),
        cmocka_unit_test(test_atomics), cmocka_unit_test(test_recursion), cmocka_unit_test(test_math),
    };

    return cmocka_run_group_tests_name("cu-sync", tests, setup, teardown);
}
