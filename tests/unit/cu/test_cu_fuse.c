/* SPDX-License-Identifier: MIT */
/* test_cu_fuse.c - instructions that run as one leave what they leave one by one: registers, memory, counts, faults, with jumps into their midst. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cu_asm.h"
#include "cu_fixture.h"
#include "cu_priv.h"
#include "random_code.h"

#define WINDOW_B 65536u
#define PROGRAMS 400u
enum { WIDE, PORTABLE, TRACED, WAYS }; /* traced: one at a time */

static struct cu_fixture ways[WAYS];
static uint64_t traced;

static void on_trace(void *observer, const struct hw_cu_trace *t)
{
    (void)observer;
    (void)t;
    traced++;
}

static int setup(void **state)
{
    (void)state;
    for (unsigned i = 0; i < WAYS; i++)
        fixture_create(&ways[i], i == PORTABLE, true);
    hw_cu_array_destroy(ways[TRACED].cus);
    ways[TRACED].config.on_trace = on_trace;
    return hw_cu_array_create(&ways[TRACED].config, &ways[TRACED].cus) == UMD_SUCCESS ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < WAYS; i++)
        fixture_destroy(&ways[i]);
    return 0;
}

static const struct cu_uop *uop_at(const struct cu_fixture *f, uint64_t va)
{
    for (const struct cu_region *rg = f->cus->regions; rg; rg = rg->next)
        if (va - rg->va < rg->size_B)
            return rg->uops + (va - rg->va) / 2;
    fail();
    return NULL;
}

/* ---- What a run leaves, by way of running ---- */

struct left {
    struct outcome o;
    struct hw_cu_counters counters;
};

static void run(struct cu_fixture *f, const uint32_t *code, unsigned n, struct launch l, struct left *out)
{
    struct hw_cu_counters before;

    l.entry = fixture_code(f, code, n);
    fixture_reset_data(f);
    l.args = fixture_alloc(f, WINDOW_B);
    for (unsigned i = 0; i < WINDOW_B / 4; i++)
        ((uint32_t *)fixture_host(f, l.args))[i] = i * 2654435761u;
    hw_cu_get_counters(f->cus, &before);
    out->o = fixture_run(f, &l);
    hw_cu_get_counters(f->cus, &out->counters);
    out->counters.warp_instr -= before.warp_instr;
    out->counters.lane_instr -= before.lane_instr;
    out->counters.cycles -= before.cycles;
}

static void check_warp(const struct cu_warp *a, const struct cu_warp *b)
{
    if (a->fflags != b->fflags || a->instr != b->instr || a->f_single != b->f_single || memcmp(&a->x[1], &b->x[1], 31 * sizeof(a->x[1])) ||
        memcmp(a->f, b->f, sizeof(a->f)))
        fail_msg("warp %u of unit %u is left otherwise than one by one", a->slot, a->cu->index);
}

/* Runs all ways and compares with the last. */
static struct outcome check_all(const uint32_t *code, unsigned n, const struct launch *l)
{
    struct left want, got;

    run(&ways[TRACED], code, n, *l, &want);
    for (unsigned h = 0; h < TRACED; h++) {
        struct cu_fixture *f = &ways[h];

        run(f, code, n, *l, &got);
        assert_int_equal(got.o.state, want.o.state);
        assert_int_equal(got.o.cycles, want.o.cycles);
        assert_memory_equal(&got.o.fault, &want.o.fault, sizeof(want.o.fault));
        assert_int_equal(got.counters.warp_instr, want.counters.warp_instr);
        assert_int_equal(got.counters.lane_instr, want.counters.lane_instr);
        assert_memory_equal(fixture_host(f, FLAT_DATA_VA), fixture_host(&ways[TRACED], FLAT_DATA_VA), WINDOW_B);
        for (unsigned u = 0; u < f->config.cu_count; u++)
            for (unsigned w = 0; w < f->config.warps_per_cu; w++)
                check_warp(&f->cus->cus[u].warps[w], &ways[TRACED].cus->cus[u].warps[w]);
    }
    return want.o;
}

/* ---- Each row of fuse.def ---- */

static uint32_t first_of(unsigned op, unsigned rd, unsigned rs1, unsigned rs2, int imm)
{
    switch (cu_insns[op].format) {
    case CU_FMT_R: return r_type(cu_insns[op].match, rd, rs1, rs2);
    case CU_FMT_U: return cu_insns[op].match | rd << 7 | (uint32_t)imm << 12;
    default: return i_type(cu_insns[op].match, rd, rs1, imm);
    }
}

static uint32_t access_of(unsigned op, unsigned reg, unsigned base, int imm)
{
    return cu_insns[op].format == CU_FMT_S || cu_insns[op].format == CU_FMT_FS ? s_type(cu_insns[op].match, base, reg, imm)
                                                                               : i_type(cu_insns[op].match, reg, base, imm);
}

/* x10 memory, x12 lane, x13 a random word of it, x14 32 bits that are no sign extension, x18 rounds. f1, f2: values. */
static unsigned put_prologue(uint32_t *code)
{
    unsigned n = 0;

    code[n++] = i_type(MATCH(csrrs), 12, 0, CU_CSR_LANE);
    code[n++] = i_type(MATCH(slli), 13, 12, 3);
    code[n++] = i_type(MATCH(andi), 13, 13, 255);
    code[n++] = r_type(MATCH(add), 13, 10, 13);
    code[n++] = i_type(MATCH(lwu), 14, 13, 0);
    code[n++] = i_type(MATCH(lw), 13, 13, 4);
    code[n++] = r_type(MATCH(fmv_w_x), 1, 14, 0);
    code[n++] = r_type(MATCH(fmv_d_x), 2, 13, 0);
    code[n++] = i_type(MATCH(addi), 18, 0, 3);
    return n;
}

/* The instructions of a row, with x6 as what is passed on, over memory at base. Value: their number. */
static unsigned put_row(unsigned row, uint32_t *code, unsigned base)
{
    unsigned n = 0;

    switch (row) {
#define FUSE_ALU(first_, second_)                                                                                                        \
    case CU_FUSED_##first_##_##second_:                                                                                                  \
        code[n++] = first_of(CU_OP_##first_, 6, 14, 13, 32);                                                                             \
        code[n++] = first_of(CU_OP_##second_, 6, cu_insn_format(CU_OP_##second_) == CU_FMT_R ? 12 : 6, 6, 30);                           \
        break;
#define FUSE_ADDRESS(access_, kind_)                                                                                                     \
    case CU_FUSED_add_##access_:                                                                                                         \
        code[n++] = r_type(MATCH(add), 6, 19, base);                                                                                     \
        code[n++] = access_of(CU_OP_##access_, 2, 6, 16);                                                                                \
        break;
#define FUSE_INDEX(access_, kind_)                                                                                                       \
    case CU_FUSED_slli_add_##access_:                                                                                                    \
        code[n++] = i_type(MATCH(slli), 6, 12, cu_insns[CU_OP_##access_].match >> 12 & 1 ? 3 : 2);                                       \
        code[n++] = r_type(MATCH(add), 6, base, 6);                                                                                      \
        code[n++] = access_of(CU_OP_##access_, 2, 6, -8);                                                                                \
        break;
#define FUSE_COUNT(first_, branch_)                                                                                                      \
    case CU_FUSED_##first_##_##branch_:                                                                                                  \
        code[n++] = i_type(MATCH(first_), 6, 6, 1);                                                                                      \
        code[n++] = b_type(MATCH(branch_), 6, 18, 8);                                                                                    \
        code[n++] = i_type(MATCH(addi), 20, 20, 1);                                                                                      \
        break;
#include "fuse.def"
    default: fail();
    }
    return n;
}

static bool is_address(unsigned row)
{
    return row <= CU_FUSED_add_fsd; /* the first of the table */
}

/* In a loop, so that it runs decoded; entered at its begin, or at a later instruction the second time. */
static void check_row(unsigned row, unsigned enter, unsigned length)
{
    struct launch l = { .grid = { 9, 1, 1 }, .block = { 64, 1, 1 } };
    uint32_t code[40];
    unsigned n = put_prologue(code), at, back;

    code[n++] = MATCH(lui) | 19u << 7 | 1u << 12; /* 4096 */
    code[n++] = r_type(MATCH(add), 17, 10, 19);   /* in the midst of the window, for negative offsets */
    code[n++] = is_address(row) && enter == length - 1 ? i_type(MATCH(addi), 6, 17, 64) : i_type(MATCH(slli), 6, 12, 3);
    back = n++;
    at = n;
    n += put_row(row, &code[n], 17);
    code[n++] = i_type(MATCH(addi), 18, 18, -1);
    code[n] = b_type(MATCH(beq), 18, 0, 8);
    n++;
    code[n] = j_type(MATCH(jal), 0, ((int)at - (int)n) * 4);
    n++;
    code[n++] = i_type(MATCH(jalr), 0, 1, 0);
    code[back] = j_type(MATCH(jal), 0, (int)(at + enter - back) * 4);
    for (l.slice = 0; l.slice < 12; l.slice += 5)
        assert_int_equal(check_all(code, n, &l).state, HW_CU_DONE);
    for (unsigned h = 0; h < TRACED; h++) {
        const struct cu_uop *u = uop_at(&ways[h], FLAT_CODE_VA + 4 * at);

        assert_true(u->flags & CU_UOP_FUSED);
        assert_ptr_equal(u->fn[0], ways[h].cus->exec->fused[row]);
    }
}

static void test_rows(void **state)
{
    (void)state;
    for (unsigned row = 0; row < CU_FUSED_COUNT; row++)
        for (unsigned length = row < CU_FUSED_add_lw ? 3 : 2, enter = 0; enter < length; enter++)
            check_row(row, enter, length);
}

/* The access faults: what was before it is done, the counts are those of the place. */
static void test_faults(void **state)
{
    struct launch l = { .grid = { 1, 1, 1 }, .block = { 32, 1, 1 } };
    struct outcome o;

    (void)state;
    for (unsigned row = 0; row < CU_FUSED_COUNT; row++) {
        uint32_t code[40];
        unsigned n = put_prologue(code);

        if (!is_address(row))
            continue;
        code[n++] = MATCH(lui) | 17u << 7 | 0x7000u << 12; /* no memory there */
        code[n++] = MATCH(lui) | 19u << 7 | 1u << 12;
        n += put_row(row, &code[n], 17);
        code[n++] = i_type(MATCH(jalr), 0, 1, 0);
        o = check_all(code, n, &l);
        assert_int_equal(o.state, HW_CU_FAULTED);
        assert_int_equal(o.fault.pc, FLAT_CODE_VA + 4 * (n - 2));
        assert_int_equal(ways[WIDE].cus->cus[0].warps[0].instr, n - 1);
    }
}

/* ---- Random programs of the same instructions ---- */

static unsigned any_of(struct rng *r, const uint8_t *list, unsigned count)
{
    return list[rng_below(r, count)];
}

static unsigned put_random(struct rng *r, uint32_t *code)
{
    static const uint8_t results[] = { 6, 7, 8, 0 }, sources[] = { 6, 7, 12, 13, 14, 20 }, bases[] = { 10, 17 }, shifts[] = { 0, 1, 2, 3 };
    const unsigned row = rng_below(r, CU_FUSED_COUNT + 2), rd = any_of(r, results, 4), source = any_of(r, sources, 6), other = any_of(r, sources, 6);
    unsigned n = 0;

    switch (row) {
#define FUSE_ALU(first_, second_)                                                                                                        \
    case CU_FUSED_##first_##_##second_:                                                                                                  \
        code[n++] = first_of(CU_OP_##first_, rd, source, other, (int)rng_below(r, 64));                                                  \
        code[n++] = first_of(CU_OP_##second_, rng_below(r, 4) ? rd : 20, rng_below(r, 3) ? rd : other, rng_below(r, 3) ? other : rd, (int)rng_below(r, 64)); \
        break;
#define FUSE_ADDRESS(access_, kind_)                                                                                                     \
    case CU_FUSED_add_##access_:                                                                                                         \
        code[n++] = r_type(MATCH(add), rd ? rd : 6, rng_below(r, 2) ? 12 : 0, any_of(r, bases, 2));                                      \
        code[n++] = access_of(CU_OP_##access_, 1 + rng_below(r, 2) + (cu_insns[CU_OP_##access_].format < CU_FMT_FL ? 20 : 0), rd ? rd : 6, (int)rng_below(r, 64)); \
        break;
#define FUSE_INDEX(access_, kind_)                                                                                                       \
    case CU_FUSED_slli_add_##access_:                                                                                                    \
        code[n++] = i_type(MATCH(slli), rd ? rd : 7, 12, any_of(r, shifts, 4));                                                          \
        code[n++] = r_type(MATCH(add), rd ? rd : 7, any_of(r, bases, 2), rd ? rd : 7);                                                   \
        code[n++] = access_of(CU_OP_##access_, 1 + rng_below(r, 2) + (cu_insns[CU_OP_##access_].format < CU_FMT_FL ? 20 : 0), rd ? rd : 7, (int)rng_below(r, 64)); \
        break;
#define FUSE_COUNT(first_, branch_)                                                                                                      \
    case CU_FUSED_##first_##_##branch_:                                                                                                  \
        code[n++] = i_type(MATCH(first_), rd, source, (int)rng_below(r, 64));                                                            \
        code[n++] = b_type(MATCH(branch_), rng_below(r, 2) ? rd : other, source, 8 + 4 * (int)rng_below(r, 3));                          \
        break;
#include "fuse.def"
    default:
        code[n++] = i_type(MATCH(andi), any_of(r, sources, 2), source, 127);
        break;
    }
    return n;
}

static void test_random(void **state)
{
    struct rng r = { .s = 20260 };
    unsigned done = 0, fused = 0;

    (void)state;
    for (unsigned p = 0; p < PROGRAMS; p++) {
        struct launch l = { .grid = { 1 + p % 5, 1, 1 }, .block = { p % 7 ? 64 : 45, 1, 1 }, .slice = p % 3 * 37 };
        uint32_t code[200];
        unsigned n = put_prologue(code), at;

        code[n++] = i_type(MATCH(addi), 18, 0, 60);
        code[n++] = MATCH(lui) | 17u << 7 | 2u << 12;
        code[n++] = r_type(MATCH(add), 17, 17, 10);
        at = n;
        for (unsigned k = 0; k < 20; k++)
            n += put_random(&r, &code[n]);
        for (unsigned k = 0; k < 4; k++) /* what jumps pass over */
            code[n++] = MATCH(addi);
        code[n++] = i_type(MATCH(addi), 18, 18, -1);
        code[n] = b_type(MATCH(beq), 18, 0, 8);
        n++;
        code[n] = j_type(MATCH(jal), 0, ((int)at - (int)n) * 4);
        n++;
        code[n++] = i_type(MATCH(jalr), 0, 1, 0);
        done += check_all(code, n, &l).state == HW_CU_DONE;
        for (unsigned k = at; k < n; k++)
            fused += (uop_at(&ways[WIDE], FLAT_CODE_VA + 4 * k)->flags & CU_UOP_FUSED) != 0;
    }
    assert_true(done > PROGRAMS / 4);
    assert_true(fused > 4 * PROGRAMS);
    assert_true(traced > PROGRAMS * 20);
}

/* ---- Places that change ---- */

/* A function that only a run finds makes the second instruction a meeting point: what ran as one does not any more. */
static void test_meeting_point(void **state)
{
    struct launch l = { .grid = { 1, 1, 1 }, .block = { 32, 1, 1 } };
    uint32_t code[40];
    unsigned n = put_prologue(code), here, call, first, found;

    (void)state;
    code[n++] = i_type(MATCH(addi), 9, 1, 0);
    code[n++] = i_type(MATCH(addi), 18, 0, 2);
    here = n++;
    code[here] = MATCH(auipc) | 15u << 7;
    call = ++n;
    code[n++] = i_type(MATCH(jalr), 1, 15, 0); /* the first time to the shared end, the second time to what was not known */
    n++;
    code[n++] = i_type(MATCH(addi), 18, 18, -1);
    code[n++] = b_type(MATCH(beq), 18, 0, 8);
    code[n] = j_type(MATCH(jal), 0, ((int)call - (int)n) * 4);
    n++;
    code[n++] = i_type(MATCH(addi), 1, 9, 0);
    code[n++] = i_type(MATCH(jalr), 0, 1, 0);
    found = n;
    code[n++] = i_type(MATCH(slli), 6, 12, 1);
    code[n++] = b_type(MATCH(beq), 12, 0, 12); /* lane 0 to the second instruction of the shared end at once */
    code[n++] = i_type(MATCH(addi), 6, 6, 5);
    first = n;
    code[n++] = i_type(MATCH(slli), 6, 12, 2);
    code[n++] = r_type(MATCH(add), 6, 6, 14);
    code[n++] = i_type(MATCH(addi), 7, 0, 1);
    code[n++] = r_type(MATCH(p_ballot), 8, 7, 0);
    code[n++] = i_type(MATCH(jalr), 0, 1, 0);
    code[call - 1] = i_type(MATCH(addi), 15, 15, (int)(first - here) * 4);
    code[call + 1] = i_type(MATCH(addi), 15, 15, -(int)(first - found) * 4);
    assert_int_equal(check_all(code, n, &l).state, HW_CU_DONE);
    for (unsigned h = 0; h < TRACED; h++) {
        assert_true(uop_at(&ways[h], FLAT_CODE_VA + 4 * (first + 1))->flags & CU_UOP_JOIN);
        assert_false(uop_at(&ways[h], FLAT_CODE_VA + 4 * first)->flags & CU_UOP_FUSED);
        assert_int_equal(ways[h].cus->cus[0].warps[0].x[8].u[31], UINT32_MAX);
    }
}

/* The second instruction is written over, and behind fence.i the new one runs. */
static void test_written_second(void **state)
{
    struct launch l = { .grid = { 1, 1, 1 }, .block = { 32, 1, 1 } };
    uint32_t code[40];
    unsigned n = put_prologue(code), at;

    (void)state;
    code[n++] = i_type(MATCH(addi), 18, 0, 2);
    at = n;
    code[n++] = MATCH(auipc) | 15u << 7;
    code[n++] = i_type(MATCH(slli), 6, 12, 4);
    code[n++] = i_type(MATCH(srli), 6, 6, 1);  /* becomes srli by 2 */
    code[n++] = r_type(MATCH(add), 16, 16, 6);
    code[n++] = i_type(MATCH(lw), 7, 15, 8);
    code[n++] = MATCH(lui) | 8u << 7 | 1u << 20;
    code[n++] = r_type(MATCH(add), 7, 7, 8);
    code[n++] = s_type(MATCH(sw), 15, 7, 8);
    code[n++] = MATCH(fence_i);
    code[n++] = i_type(MATCH(addi), 18, 18, -1);
    code[n] = b_type(MATCH(bne), 18, 0, ((int)at - (int)n) * 4);
    n++;
    code[n++] = i_type(MATCH(jalr), 0, 1, 0);
    for (unsigned h = 0; h < WAYS; h++)
        ways[h].code_writable = true;
    assert_int_equal(check_all(code, n, &l).state, HW_CU_DONE);
    for (unsigned h = 0; h < WAYS; h++) {
        assert_int_equal(ways[h].cus->cus[0].warps[0].x[16].u[3], 3 * 8 + 3 * 4);
        ways[h].code_writable = false;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows), cmocka_unit_test(test_faults), cmocka_unit_test(test_random),
                                        cmocka_unit_test(test_meeting_point), cmocka_unit_test(test_written_second) };

    return cmocka_run_group_tests_name("cu-fuse", tests, setup, teardown);
}
