/* SPDX-License-Identifier: MIT */
/* test_cu_converge.c - what divergence costs: instructions counted to the last one, and a warp against its longest lane. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <hw/petrel_csr.h>

#include "cu_asm.h"
#include "cu_fixture.h"
#include "cu_priv.h"
#include "divergent.h"

struct test_args { uint64_t in, out; uint32_t n, m; };

static const char *const cases[] = {
#define CASE(name_) #name_,
    DIVERGENT_CASES(CASE)
#undef CASE
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

struct cost { uint64_t warp, lane; };

static struct cost run_cost(struct cu_fixture *f, uint64_t entry, uint32_t grid, uint32_t block, uint64_t args)
{
    struct hw_cu_counters before, after;

    hw_cu_get_counters(f->cus, &before);
    fixture_run_ok(f, entry, grid, block, 0, args);
    hw_cu_get_counters(f->cus, &after);
    return (struct cost){ after.warp_instr - before.warp_instr, after.lane_instr - before.lane_instr };
}

/*
 * The first 16 lanes go through a loop that could end in a trap, in a function that does not come back, or in ecall, which none of them
 * does: no such way keeps the lanes from meeting behind the loop.
 */
static void test_ends_are_no_ways(void **state)
{
    enum { ZERO, RA, T0 = 5, T1, T2, A0 = 10, A1, A2, A3, END = 14 };
    const uint32_t unimp = 0xc0001073, nop = MATCH(addi), back = i_type(MATCH(jalr), ZERO, RA, 0);
    const uint32_t ends[][4] = {
        { unimp, nop, back },
        { MATCH(ebreak), nop, back },
        { MATCH(ecall), nop, j_type(MATCH(jal), ZERO, 0) },
        { j_type(MATCH(jal), RA, 12), nop, back, unimp },
        { j_type(MATCH(jal), RA, 12), nop, back, j_type(MATCH(jal), ZERO, 0) },
        { j_type(MATCH(jal), RA, 12), nop, back, MATCH(ecall) },
    };

    (void)state;
    for (unsigned i = 0; i < 2 * sizeof(ends) / sizeof(ends[0]); i++) {
        struct cu_fixture f;
        uint32_t code[END + 4] = {
            i_type(MATCH(csrrs), T0, ZERO, PETREL_CSR_LANE),
            i_type(MATCH(sltiu), T1, T0, 16),
            i_type(MATCH(addi), A2, ZERO, 100),
            i_type(MATCH(addi), A3, ZERO, 1000),
            b_type(MATCH(beq), T1, ZERO, 4 * (8 - 4)),
            i_type(MATCH(addi), T2, T2, 1),
            b_type(MATCH(blt), A3, T2, 4 * (END - 6)),
            b_type(MATCH(blt), T2, A2, 4 * (5 - 7)),
            i_type(MATCH(addi), A1, ZERO, 1),
            r_type(MATCH(p_ballot), A1, A1, ZERO),
            s_type(MATCH(sd), A0, A1, 0),
            back, nop, nop,
        };

        memcpy(code + END, ends[i / 2], sizeof(ends[0]));
        fixture_create(&f, i % 2, false);
        const uint64_t entry = fixture_code(&f, code, sizeof(code) / sizeof(code[0])), args = fixture_alloc(&f, 8);
        fixture_run_ok(&f, entry, 1, 32, 0, args);
        if (*(const uint64_t *)fixture_host(&f, args) != 0xffffffff)
            fail_msg("end %u: lanes 0x%llx are together", i / 2, (unsigned long long)*(const uint64_t *)fixture_host(&f, args));
        fixture_destroy(&f);
    }
}

/*
 * Functions that fall one into the next share all that comes behind: looking at each as a whole would take as many looks at the last
 * as there are functions. The start of a dispatch must not keep the host for that; what is not looked at is slower, and not wrong.
 */
static void test_shared_tails(void **state)
{
    enum { ZERO, RA, T0 = 5, T1, T2, A0 = 10, FUNCTIONS = 500, TAIL = 16000, CALLS = 3, BODIES = CALLS + FUNCTIONS + 4, COUNT = BODIES + FUNCTIONS + 3 * TAIL + 1 };
    static uint32_t code[COUNT];
    struct cu_fixture f;
    uint32_t n = 0;

    (void)state;
    code[n++] = i_type(MATCH(addi), T2, RA, 0);
    code[n++] = i_type(MATCH(csrrs), T0, ZERO, PETREL_CSR_LANE);
    code[n++] = b_type(MATCH(beq), ZERO, ZERO, FUNCTIONS * 4); /* to the last call: what runs is one of them, what is seen are all */
    for (uint32_t k = 0; k < FUNCTIONS; k++)
        code[n++] = j_type(MATCH(jal), RA, (BODIES - CALLS) * 4);
    code[n++] = r_type(MATCH(p_ballot), T1, T2, ZERO);
    code[n++] = s_type(MATCH(sd), A0, T1, 0);
    code[n++] = i_type(MATCH(addi), RA, T2, 0);
    code[n++] = i_type(MATCH(jalr), ZERO, RA, 0);
    for (uint32_t k = 0; k < FUNCTIONS; k++)
        code[n++] = i_type(MATCH(addi), T1, T1, 1);
    for (uint32_t k = 0; k < TAIL; k++) {
        code[n++] = i_type(MATCH(andi), T1, T0, 1 << k % 5);
        code[n++] = b_type(MATCH(beq), T1, ZERO, 8);
        code[n++] = i_type(MATCH(addi), T0, T0, 1);
    }
    code[n++] = i_type(MATCH(jalr), ZERO, RA, 0);
    assert_int_equal(n, COUNT);
    fixture_create(&f, false, true);
    const uint64_t entry = fixture_code(&f, code, n), args = fixture_alloc(&f, 8);
    fixture_run_ok(&f, entry, 1, 32, 0, args);
    assert_int_equal(*(const uint64_t *)fixture_host(&f, args), 0xffffffff);
    fixture_destroy(&f);
}

/* First decodes, waits at a meeting point and the hand-over to another path are no instructions; instret agrees. */
static void test_counts(void **state)
{
    enum { ZERO, RA, T0 = 5, T1, T2, A0 = 10, A1 };
    const uint32_t code[] = {
        i_type(MATCH(csrrs), T0, ZERO, PETREL_CSR_LANE),
        i_type(MATCH(andi), T1, T0, 1),
        b_type(MATCH(beq), T1, ZERO, 12),           /* 16 even lanes to the meeting point */
        i_type(MATCH(addi), T2, T2, 1),             /* odd lanes only, and they come to the meeting point by a jump */
        j_type(MATCH(jal), ZERO, 4),
        i_type(MATCH(csrrs), A1, ZERO, 0xc02),      /* instret: 5 before it */
        i_type(MATCH(slli), T0, T0, 3),
        r_type(MATCH(add), A0, A0, T0),
        s_type(MATCH(sd), A0, A1, 0),
        i_type(MATCH(jalr), ZERO, RA, 0),
    };

    (void)state;
    for (unsigned mode = 0; mode < 4; mode++) {
        struct cu_fixture f;
        uint64_t entry, args;
        const uint64_t *out;

        fixture_create(&f, mode & 1, mode & 2);
        entry = fixture_code(&f, code, sizeof(code) / 4);
        args = fixture_alloc(&f, 4096);
        out = fixture_host(&f, args);
        for (unsigned again = 0; again < 2; again++) {
            struct cost c = run_cost(&f, entry, 1, 32, args);

            assert_int_equal(c.warp, 10);
            assert_int_equal(c.lane, 8 * 32 + 2 * 16);
            for (unsigned l = 0; l < 32; l++)
                assert_int_equal(out[l], 5);
        }
        fixture_destroy(&f);
    }
}

/* Warp instructions of 32 lanes over those of the longest lane alone. */
static double ratio_of(struct cu_fixture *f, const char *name)
{
    uint64_t va, entry = fixture_kernel(f, name), all, longest = 0;
    struct test_args *args;

    fixture_reset_data(f);
    va = fixture_alloc(f, sizeof(*args));
    args = fixture_host(f, va);
    args->n = 32;
    args->out = fixture_alloc(f, 4096);
    all = run_cost(f, entry, 1, 32, va).warp;
    for (args->m = 0; args->m < 32; args->m++) {
        uint64_t one = run_cost(f, entry, 1, 1, va).warp;

        longest = one > longest ? one : longest;
    }
    return (double)all / (double)longest;
}

static void test_convergence(void **state)
{
    struct cu_fixture f;
    double sum = 0, worst = 0;

    (void)state;
    fixture_create(&f, false, false);
    fixture_load(&f, CU_KERNELS);
    for (unsigned c = 0; c < CASES; c++) {
        double r = ratio_of(&f, cases[c]);

        printf("%-20s %5.2f\n", cases[c], r);
        sum += log(r);
        worst = r > worst ? r : worst;
    }
    printf("%-20s %5.2f, worst %.2f of %u\n", "geometric mean", exp(sum / (double)CASES), worst, (unsigned)CASES);
    assert_true(CASES >= 15);
    assert_true(exp(sum / (double)CASES) <= 1.5);
    assert_true(worst <= 3);
    fixture_destroy(&f);
}

static struct test_args *make_args(struct cu_fixture *f, uint32_t m, uint64_t *va_out)
{
    struct test_args *args;

    fixture_reset_data(f);
    *va_out = fixture_alloc(f, sizeof(*args));
    args = fixture_host(f, *va_out);
    args->m = m;
    args->out = fixture_alloc(f, 4096);
    return args;
}

/* Ageing gets everybody on, and tears no group apart at a warp-wide operation. */
static void test_ageing(void **state)
{
    (void)state;
    for (unsigned mode = 0; mode < 4; mode++) {
        struct cu_fixture f;
        uint64_t va;
        const uint32_t *out;

        fixture_create(&f, mode & 1, mode & 2);
        fixture_load(&f, CU_KERNELS);
        for (uint32_t rounds = 1; rounds <= 100000; rounds *= 10) {
            out = fixture_host(&f, make_args(&f, rounds, &va)->out);
            fixture_run_ok(&f, fixture_kernel(&f, "long_half"), 1, 32, 0, va);
            for (unsigned l = 0; l < 32; l++) {
                assert_int_equal(out[l], 32 * 33 / 2);
                assert_int_equal(out[32 + l], UINT32_MAX);
            }
        }
        out = fixture_host(&f, make_args(&f, 3, &va)->out);
        fixture_run_ok(&f, fixture_kernel(&f, "ticket_lock"), 2, 64, 0, va);
        assert_int_equal(out[0], 3 * 128);
        assert_int_equal(out[1], 3 * 128);
        assert_int_equal(out[2], 3 * 128);
        out = fixture_host(&f, make_args(&f, 0, &va)->out);
        fixture_run_ok(&f, fixture_kernel(&f, "wait_for_warp"), 4, 128, 0, va);
        for (unsigned g = 0; g < 4; g++)
            assert_int_equal(out[8 * g + 3], 2);
        fixture_destroy(&f);
    }
}

/* A trace of a run: a number of all that was told. */
struct trace_sum { uint64_t hash, count; };

static void add_up(void *observer, const struct hw_cu_trace *t)
{
    struct trace_sum *s = observer;
    const uint64_t told[] = { t->pc, t->mask, t->bits, t->rd };

    for (unsigned i = 0; i < sizeof(told) / sizeof(told[0]); i++)
        s->hash = (s->hash ^ told[i]) * 0x100000001b3ull;
    for (uint32_t m = t->after ? t->mask : 0; m; m &= m - 1)
        s->hash = (s->hash ^ t->after[__builtin_ctz(m)]) * 0x100000001b3ull;
    s->count++;
}

/* A trace tells what is carried out, by which lanes, whether time is kept or not: as much as is counted. */
static void test_traces(void **state)
{
    (void)state;
    for (unsigned c = 0; c < CASES; c++) {
        struct trace_sum sums[2] = { { 0 } };

        for (unsigned functional = 0; functional < 2; functional++) {
            struct cu_fixture f;
            struct test_args *args;
            uint64_t va;

            fixture_create(&f, false, functional);
            hw_cu_array_destroy(f.cus);
            f.config.on_trace = add_up;
            f.config.observer = &sums[functional];
            assert_int_equal(hw_cu_array_create(&f.config, &f.cus), UMD_SUCCESS);
            fixture_load(&f, CU_KERNELS);
            args = make_args(&f, 0, &va);
            args->n = 32;
            const struct cost cost = run_cost(&f, fixture_kernel(&f, cases[c]), 1, 32, va);
            if (sums[functional].count != cost.warp)
                fail_msg("%s: %llu instructions told, %llu carried out", cases[c], (unsigned long long)sums[functional].count,
                         (unsigned long long)cost.warp);
            fixture_destroy(&f);
        }
        if (sums[0].hash != sums[1].hash)
            fail_msg("%s: functional: %llu instructions, timed: %llu, or they differ", cases[c], (unsigned long long)sums[1].count,
                     (unsigned long long)sums[0].count);
    }
}

/* Two functions in regions of their own of which one calls the other again and again: all lanes go the same way, and no nodes are left behind. */
static void test_far_calls(void **state)
{
    enum { ZERO, RA, T0 = 5, T1, T2, A0 = 10, A1, A2, PAGE = 1024 };
    static uint32_t code[2 * PAGE];

    (void)state;
    for (unsigned w = 0; w < 2 * FIXTURE_WAYS; w++) {
        const bool through_register = w >= FIXTURE_WAYS;
        struct cu_fixture f;
        uint32_t n = 0;

        code[n++] = MATCH(auipc) | A2 << 7 | PAGE * 4;
        code[n++] = i_type(MATCH(addi), A1, RA, 0);
        code[n++] = MATCH(lui) | T0 << 7 | 5 << 12; /* 20,480 */
        code[n] = through_register ? i_type(MATCH(jalr), RA, A2, 0) : j_type(MATCH(jal), RA, 4 * (PAGE - (int)n));
        n++;
        code[n++] = i_type(MATCH(addi), T0, T0, -1);
        code[n++] = b_type(MATCH(blt), ZERO, T0, -8);
        code[n++] = i_type(MATCH(csrrs), T1, ZERO, PETREL_CSR_LANE);
        code[n++] = i_type(MATCH(slli), T1, T1, 3);
        code[n++] = r_type(MATCH(add), T1, T1, A0);
        code[n++] = s_type(MATCH(sd), T1, T2, 0);
        code[n++] = i_type(MATCH(jalr), ZERO, A1, 0);
        memset(code + n, 0, sizeof(code) - 4 * n);
        n = PAGE;
        code[n++] = i_type(MATCH(andi), T1, T0, 1);      /* some lanes part in the function: it was analysed, though only jal leads here */
        code[n++] = i_type(MATCH(csrrs), T1, ZERO, PETREL_CSR_LANE);
        code[n++] = i_type(MATCH(andi), T1, T1, 1);
        code[n++] = b_type(MATCH(beq), T1, ZERO, 8);
        code[n++] = i_type(MATCH(addi), T2, T2, 1);
        code[n++] = i_type(MATCH(addi), T2, T2, 1);
        code[n++] = i_type(MATCH(jalr), ZERO, RA, 0);
        fixture_create(&f, w & 1, w & 2);
        const uint64_t entry = fixture_code(&f, code, sizeof(code) / 4), args = fixture_alloc(&f, 4096);
        f.code_B = 0; /* by the page */
        const struct cost c = run_cost(&f, entry, 1, 32, args);
        const uint64_t *out = fixture_host(&f, args);
        for (unsigned l = 0; l < 32; l++)
            assert_int_equal(out[l], 20480 * (l & 1 ? 2 : 1));
        assert_int_equal(c.warp, 8 + 20480 * 10);
        assert_true(!f.cus->cus[0].node_chunks || !f.cus->cus[0].node_chunks->next);
        fixture_destroy(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends_are_no_ways), cmocka_unit_test(test_shared_tails), cmocka_unit_test(test_counts),
        cmocka_unit_test(test_convergence),
        cmocka_unit_test(test_ageing), cmocka_unit_test(test_traces), cmocka_unit_test(test_far_calls),
    };

    return cmocka_run_group_tests_name("cu-converge", tests, NULL, NULL);
}
