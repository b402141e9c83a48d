/* SPDX-License-Identifier: MIT */
/* test_cu_insn.c - single instructions by class: edge values, NaN boxing, rounding modes, flags, full and partial warps. */
#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cu_asm.h"
#include "cu_fixture.h"

/* What each lane brings and takes away. */
#define FIRST_PC (FLAT_CODE_VA + 4 * 13)
struct lane_io { uint64_t a, b, c, x_out, f_out, flags, pad[2]; };

static struct cu_fixture fixtures[2]; /* widest handlers, portable ones */
static struct cu_fixture *f;
static const uint64_t edges[] = {
    0, 1, 2, 3, 7, 31, 32, 63, 64, 0x7f, 0x80, 0x7fff, 0x8000, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000ull,
    0x7fffffffffffffffull, 0x8000000000000000ull, 0x8000000000000001ull, UINT64_MAX, UINT64_MAX - 1, 0xffffffff80000000ull,
    0xffffffff00000000ull, 0x123456789abcdef0ull, 0xfedcba9876543210ull, 0x5555555555555555ull, 0xaaaaaaaaaaaaaaaaull,
    0x00000000deadbeefull, 0xdeadbeef00000000ull, 1000000007, 0xfffffffffffffff9ull,
};

static int setup(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++)
        fixture_create(&fixtures[i], i == 1, true);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++)
        fixture_destroy(&fixtures[i]);
    return 0;
}

/*
 * Runs instructions, from FIRST_PC on: a, b, c in x6, x7, x28 and f1, f2, f3, results in x29 and f4. With `lanes` below 32 only that many
 * work-items exist, so the partial handlers run.
 */
static void run_insns(const uint32_t *insns, unsigned count, unsigned frm, struct lane_io io[32], unsigned lanes)
{
    struct launch l = { .grid = { 1, 1, 1 }, .block = { lanes, 1, 1 } };
    uint32_t code[32];
    unsigned n = 0;
    struct outcome o;

    code[n++] = i_type(MATCH(csrrs), 5, 0, 0xccc);
    code[n++] = i_type(MATCH(slli), 5, 5, 6);
    code[n++] = r_type(MATCH(add), 5, 10, 5);
    code[n++] = i_type(MATCH(ld), 6, 5, 0);
    code[n++] = i_type(MATCH(ld), 7, 5, 8);
    code[n++] = i_type(MATCH(ld), 28, 5, 16);
    code[n++] = i_type(MATCH(ld), 29, 5, 24);
    code[n++] = i_type(MATCH(fld), 1, 5, 0);
    code[n++] = i_type(MATCH(fld), 2, 5, 8);
    code[n++] = i_type(MATCH(fld), 3, 5, 16);
    code[n++] = i_type(MATCH(fld), 4, 5, 32);
    code[n++] = i_type(MATCH(csrrwi), 0, frm, 2);
    code[n++] = i_type(MATCH(csrrwi), 0, 0, 1);
    memcpy(code + n, insns, count * sizeof(*insns));
    n += count;
    code[n++] = i_type(MATCH(csrrs), 30, 0, 1);
    code[n++] = s_type(MATCH(sd), 5, 29, 24);
    code[n++] = s_type(MATCH(fsd), 5, 4, 32);
    code[n++] = s_type(MATCH(sd), 5, 30, 40);
    code[n++] = i_type(MATCH(jalr), 0, 1, 0);
    l.entry = fixture_code(f, code, n);
    fixture_reset_data(f);
    l.args = fixture_alloc(f, 32 * sizeof(*io));
    memcpy(fixture_host(f, l.args), io, 32 * sizeof(*io));
    o = fixture_run(f, &l);
    assert_true(o.started);
    assert_int_equal(o.state, HW_CU_DONE);
    memcpy(io, fixture_host(f, l.args), 32 * sizeof(*io));
}

static void run_insn(uint32_t insn, unsigned frm, struct lane_io io[32], unsigned lanes)
{
    run_insns(&insn, 1, frm, io, lanes);
}

static uint32_t r_insn(unsigned op)
{
    return cu_insns[op].match | 29u << 7 | 6u << 15 | 7u << 20;
}

/* What RISC-V says, written from the manual and not as the handlers are. */
static uint64_t expect_int(unsigned op, uint64_t a, uint64_t b)
{
    int64_t sa = (int64_t)a, sb = (int64_t)b;
    int32_t wa = (int32_t)a, wb = (int32_t)b;

    switch (op) {
    case CU_OP_add: return a + b;
    case CU_OP_sub: return a - b;
    case CU_OP_sll: return a << (b % 64);
    case CU_OP_srl: return a >> (b % 64);
    case CU_OP_sra: return (uint64_t)(sa >> (b % 64));
    case CU_OP_slt: return sa < sb;
    case CU_OP_sltu: return a < b;
    case CU_OP_xor: return a ^ b;
    case CU_OP_or: return a | b;
    case CU_OP_and: return a & b;
    case CU_OP_addw: return (uint64_t)(int64_t)(int32_t)((uint32_t)a + (uint32_t)b);
    case CU_OP_subw: return (uint64_t)(int64_t)(int32_t)((uint32_t)a - (uint32_t)b);
    case CU_OP_sllw: return (uint64_t)(int64_t)(int32_t)((uint32_t)a << (b % 32));
    case CU_OP_srlw: return (uint64_t)(int64_t)(int32_t)((uint32_t)a >> (b % 32));
    case CU_OP_sraw: return (uint64_t)(int64_t)(wa >> (b % 32));
    case CU_OP_mul: return a * b;
    case CU_OP_mulw: return (uint64_t)(int64_t)(int32_t)((uint32_t)a * (uint32_t)b);
    case CU_OP_mulh: return (uint64_t)((__int128)sa * sb >> 64);
    case CU_OP_mulhu: return (uint64_t)((unsigned __int128)a * b >> 64);
    case CU_OP_mulhsu: return (uint64_t)((unsigned __int128)a * b >> 64) - (sa < 0 ? b : 0);
    case CU_OP_div: return b == 0 ? UINT64_MAX : sa == INT64_MIN && sb == -1 ? a : (uint64_t)(sa / sb);
    case CU_OP_rem: return b == 0 ? a : sa == INT64_MIN && sb == -1 ? 0 : (uint64_t)(sa % sb);
    case CU_OP_divu: return b == 0 ? UINT64_MAX : a / b;
    case CU_OP_remu: return b == 0 ? a : a % b;
    case CU_OP_divw: return wb == 0 ? UINT64_MAX : wa == INT32_MIN && wb == -1 ? (uint64_t)(int64_t)wa : (uint64_t)(int64_t)(wa / wb);
    case CU_OP_remw: return wb == 0 ? (uint64_t)(int64_t)wa : wa == INT32_MIN && wb == -1 ? 0 : (uint64_t)(int64_t)(wa % wb);
    case CU_OP_divuw: return wb == 0 ? UINT64_MAX : (uint64_t)(int64_t)(int32_t)((uint32_t)a / (uint32_t)b);
    case CU_OP_remuw: return wb == 0 ? (uint64_t)(int64_t)wa : (uint64_t)(int64_t)(int32_t)((uint32_t)a % (uint32_t)b);
    default: fail(); return 0;
    }
}

static void check_int_op(unsigned op, unsigned shift, unsigned lanes)
{
    struct lane_io io[32] = { 0 };

    for (unsigned l = 0; l < 32; l++) {
        io[l].a = edges[l];
        io[l].b = edges[(l + shift) % 32];
        io[l].x_out = 0x77;
    }
    run_insn(r_insn(op), 0, io, lanes);
    for (unsigned l = 0; l < 32; l++) {
        uint64_t want = l < lanes ? expect_int(op, edges[l], edges[(l + shift) % 32]) : 0x77;

        if (io[l].x_out != want)
            fail_msg("%s lane %u: 0x%llx, not 0x%llx", cu_insns[op].mnemonic, l, (unsigned long long)io[l].x_out, (unsigned long long)want);
    }
}

static void test_integer(void **state)
{
    static const uint16_t ops[] = {
        CU_OP_add, CU_OP_sub, CU_OP_sll, CU_OP_srl, CU_OP_sra, CU_OP_slt, CU_OP_sltu, CU_OP_xor, CU_OP_or, CU_OP_and, CU_OP_addw,
        CU_OP_subw, CU_OP_sllw, CU_OP_srlw, CU_OP_sraw, CU_OP_mul, CU_OP_mulw, CU_OP_mulh, CU_OP_mulhu, CU_OP_mulhsu, CU_OP_div,
        CU_OP_rem, CU_OP_divu, CU_OP_remu, CU_OP_divw, CU_OP_remw, CU_OP_divuw, CU_OP_remuw,
    };

    (void)state;
    for (unsigned h = 0; h < 2; h++) {
        f = &fixtures[h];
        for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
            for (unsigned shift = 0; shift < 32; shift += 3)
                check_int_op(ops[i], shift, shift % 2 ? 32 : 19);
    }
}

static void check_lanes(const char *name, const struct lane_io io[32], const uint64_t want[32], unsigned lanes)
{
    for (unsigned l = 0; l < 32; l++)
        if (io[l].x_out != (l < lanes ? want[l] : 0x77))
            fail_msg("%s of 0x%llx 0x%llx, lane %u of %u: 0x%llx, not 0x%llx", name, (unsigned long long)io[l].a, (unsigned long long)io[l].b, l,
                     lanes, (unsigned long long)io[l].x_out, (unsigned long long)want[l]);
}

static void fill(struct lane_io io[32], unsigned shift)
{
    for (unsigned l = 0; l < 32; l++)
        io[l] = (struct lane_io){ .a = edges[l], .b = edges[(l + shift) % 32], .x_out = 0x77 };
}

/* Each as its form with two registers, of the sign-extended immediate. */
static void test_immediates(void **state)
{
    static const struct { uint16_t op, as; } ops[] = {
        { CU_OP_addi, CU_OP_add }, { CU_OP_slti, CU_OP_slt }, { CU_OP_sltiu, CU_OP_sltu }, { CU_OP_xori, CU_OP_xor }, { CU_OP_ori, CU_OP_or },
        { CU_OP_andi, CU_OP_and }, { CU_OP_addiw, CU_OP_addw }, { CU_OP_slli, CU_OP_sll }, { CU_OP_srli, CU_OP_srl }, { CU_OP_srai, CU_OP_sra },
        { CU_OP_slliw, CU_OP_sllw }, { CU_OP_srliw, CU_OP_srlw }, { CU_OP_sraiw, CU_OP_sraw },
    };
    static const int immediates[] = { 0, 1, -1, 5, 2047, -2048, 0x555, -1366 };

    (void)state;
    for (unsigned h = 0; h < 2; h++) {
        f = &fixtures[h];
        for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
            bool shifts = cu_insns[ops[i].op].format == CU_FMT_SH, word = cu_insns[ops[i].op].mask == 0xfe00707f;

            for (unsigned k = 0; k < (shifts ? (word ? 32 : 64) : 8); k++) {
                int imm = shifts ? (int)k : immediates[k];
                unsigned lanes = k % 2 ? 32 : 23;
                struct lane_io io[32];
                uint64_t want[32];

                fill(io, 0);
                for (unsigned l = 0; l < 32; l++)
                    want[l] = expect_int(ops[i].as, edges[l], (uint64_t)(int64_t)imm);
                run_insn(cu_insns[ops[i].op].match | 29u << 7 | 6u << 15 | (uint32_t)imm << 20, 0, io, lanes);
                check_lanes(cu_insns[ops[i].op].mnemonic, io, want, lanes);
            }
        }
    }
}

static void test_upper_immediates(void **state)
{
    static const uint32_t immediates[] = { 0, 0x1000, 0x7ffff000, 0x80000000, 0xfffff000, 0x12345000 };

    (void)state;
    for (unsigned k = 0; k < 24; k++) {
        uint32_t imm = immediates[k % 6];
        struct lane_io io[32];
        uint64_t want[32];

        f = &fixtures[k / 12];
        fill(io, 0);
        for (unsigned l = 0; l < 32; l++)
            want[l] = (uint64_t)(int64_t)(int32_t)imm + (k / 6 % 2 ? FIRST_PC : 0);
        run_insn((k / 6 % 2 ? MATCH(auipc) : MATCH(lui)) | 29u << 7 | imm, 0, io, 17);
        check_lanes(k / 6 % 2 ? "auipc" : "lui", io, want, 17);
    }
}

static bool expect_branch(unsigned op, uint64_t a, uint64_t b)
{
    switch (op) {
    case CU_OP_beq: return a == b;
    case CU_OP_bne: return a != b;
    case CU_OP_blt: return (int64_t)a < (int64_t)b;
    case CU_OP_bge: return !((int64_t)a < (int64_t)b);
    case CU_OP_bltu: return a < b;
    default: return !(a < b);
    }
}

/* Forward over one instruction, back over two: lanes part, and come to the end all the same. */
static void test_branches(void **state)
{
    static const uint16_t ops[] = { CU_OP_beq, CU_OP_bne, CU_OP_blt, CU_OP_bge, CU_OP_bltu, CU_OP_bgeu };

    (void)state;
    for (unsigned k = 0; k < 2 * 6 * 16; k++) {
        unsigned op = ops[k / 2 % 6], shift = k / 12 * 2 % 32, lanes = k % 3 ? 32 : 15;
        uint32_t code[6];
        struct lane_io io[32];
        uint64_t want[32];

        f = &fixtures[k % 2];
        fill(io, k % 5 ? shift : 0);
        code[0] = i_type(MATCH(addi), 29, 0, 1);
        code[1] = j_type(MATCH(jal), 0, 12);
        code[2] = i_type(MATCH(addi), 29, 29, 2);                   /* where the branch back leads */
        code[3] = j_type(MATCH(jal), 0, 12);
        code[4] = b_type(cu_insns[op].match, 6, 7, k & 4 ? -8 : 8);
        code[5] = i_type(MATCH(addi), 29, 29, 4);
        for (unsigned l = 0; l < 32; l++) {
            bool taken = expect_branch(op, io[l].a, io[l].b);

            want[l] = !taken ? 5 : k & 4 ? 3 : 1;
        }
        run_insns(code, 6, 0, io, lanes);
        check_lanes(cu_insns[op].mnemonic, io, want, lanes);
    }
}

/* The link, the lowest bit of a target, rd that is rs1. */
static void test_jumps(void **state)
{
    const struct { uint32_t code[4]; uint64_t want; } rows[] = {
        { { j_type(MATCH(jal), 29, 16), 0, 0, 0 }, FIRST_PC + 4 },
        { { MATCH(auipc) | 7u << 7, i_type(MATCH(jalr), 29, 7, 17), 0, 0 }, FIRST_PC + 8 },
        { { MATCH(auipc) | 29u << 7, i_type(MATCH(jalr), 29, 29, 16), 0, 0 }, FIRST_PC + 8 },
        { { j_type(MATCH(jal), 0, 8), 0, i_type(MATCH(addi), 29, 0, 9), j_type(MATCH(jal), 0, 4) }, 9 },
    };

    (void)state;
    for (unsigned k = 0; k < 4 * sizeof(rows) / sizeof(rows[0]); k++) {
        struct lane_io io[32];
        uint64_t want[32];

        f = &fixtures[k % 2];
        fill(io, 0);
        for (unsigned l = 0; l < 32; l++)
            want[l] = rows[k / 4].want;
        run_insns(rows[k / 4].code, 4, 0, io, k & 2 ? 32 : 9); /* 0 in between is no instruction: nobody comes there */
        check_lanes("jump", io, want, k & 2 ? 32 : 9);
    }
}

static uint32_t f32_bits(float v) { uint32_t b; memcpy(&b, &v, 4); return b; }
static uint64_t f64_bits(double v) { uint64_t b; memcpy(&b, &v, 8); return b; }
static float f32_of(uint32_t b) { float v; memcpy(&v, &b, 4); return v; }
static double f64_of(uint64_t b) { double v; memcpy(&v, &b, 8); return v; }
#define BOX(w_) (0xffffffff00000000ull | (uint32_t)(w_))

/* One row: an instruction on one set of operands, and all that comes out. Run in lane `l` of a warp whose other lanes do the same. */
struct fp_row { uint16_t op; uint8_t rm; uint64_t a, b, c, out; uint8_t flags; };
enum { NX = 1, UF = 2, OF = 4, DZ = 8, NV = 16 };
#define SNAN32 BOX(0x7f800001u)
#define QNAN32 BOX(0xffc12345u)
#define CNAN32 BOX(0x7fc00000u)
#define CNAN64 0x7ff8000000000000ull
#define INF32 BOX(0x7f800000u)
#define ONE32 BOX(0x3f800000u)
#define TWO32 BOX(0x40000000u)
#define MAX32 BOX(0x7f7fffffu)
#define NEG(v_) ((v_) ^ 0x80000000ull)
#define ONE64 0x3ff0000000000000ull

static const struct fp_row fp_rows[] = {
    /* NaN boxing: what is not boxed is the canonical NaN; results are canonical */
    { CU_OP_fadd_s, 0, ONE32, ONE32, 0, TWO32, 0 },
    { CU_OP_fadd_s, 0, 0x3f800000u, ONE32, 0, CNAN32, 0 },
    { CU_OP_fadd_s, 0, QNAN32, ONE32, 0, CNAN32, 0 },
    { CU_OP_fadd_s, 0, SNAN32, ONE32, 0, CNAN32, NV },
    { CU_OP_fsub_s, 0, INF32, INF32, 0, CNAN32, NV },
    { CU_OP_fmul_s, 0, INF32, BOX(0), 0, CNAN32, NV },
    { CU_OP_fdiv_s, 0, ONE32, BOX(0), 0, INF32, DZ },
    { CU_OP_fdiv_s, 0, BOX(0), BOX(0), 0, CNAN32, NV },
    { CU_OP_fsqrt_s, 0, NEG(ONE32), 0, 0, CNAN32, NV },
    { CU_OP_fmul_s, 0, MAX32, TWO32, 0, INF32, OF | NX },
    { CU_OP_fmul_s, 1, MAX32, TWO32, 0, MAX32, OF | NX },
    { CU_OP_fmul_s, 0, BOX(0x00800000u), BOX(0x3f000001u), 0, BOX(0x00400000u), UF | NX },
    { CU_OP_fmadd_s, 0, INF32, BOX(0), QNAN32, CNAN32, NV },
    { CU_OP_fmadd_d, 0, 0, 0x7ff0000000000000ull, CNAN64, CNAN64, NV },
    { CU_OP_fnmadd_s, 0, TWO32, ONE32, ONE32, BOX(0xc0400000u), 0 },
    { CU_OP_fnmsub_s, 0, TWO32, ONE32, ONE32, BOX(0xbf800000u), 0 },
    { CU_OP_fmsub_s, 0, TWO32, ONE32, ONE32, ONE32, 0 },
    /* rounding modes on 1 + 2^-24, a tie */
    { CU_OP_fadd_s, 0, ONE32, BOX(0x33800000u), 0, ONE32, NX },
    { CU_OP_fadd_s, 1, ONE32, BOX(0x33800000u), 0, ONE32, NX },
    { CU_OP_fadd_s, 2, ONE32, BOX(0x33800000u), 0, ONE32, NX },
    { CU_OP_fadd_s, 3, ONE32, BOX(0x33800000u), 0, BOX(0x3f800001u), NX },
    { CU_OP_fadd_s, 4, ONE32, BOX(0x33800000u), 0, BOX(0x3f800001u), NX },
    { CU_OP_fadd_d, 4, ONE64, 0x3ca0000000000000ull, 0, 0x3ff0000000000001ull, NX },
    { CU_OP_fadd_d, 0, ONE64, 0x3ca0000000000000ull, 0, ONE64, NX },
    { CU_OP_fsub_s, 2, ONE32, ONE32, 0, BOX(0x80000000u), 0 },
    { CU_OP_fdiv_s, 3, ONE32, BOX(0x40400000u), 0, BOX(0x3eaaaaabu), NX },
    { CU_OP_fdiv_s, 2, ONE32, BOX(0x40400000u), 0, BOX(0x3eaaaaaau), NX },
    { CU_OP_fmadd_s, 4, ONE32, ONE32, BOX(0x33800000u), BOX(0x3f800001u), NX },
    /* minimum and maximum, comparisons, sign injection */
    { CU_OP_fmin_s, 0, BOX(0x80000000u), BOX(0), 0, BOX(0x80000000u), 0 },
    { CU_OP_fmax_s, 1, BOX(0x80000000u), BOX(0), 0, BOX(0), 0 },
    { CU_OP_fmin_s, 0, QNAN32, ONE32, 0, ONE32, 0 },
    { CU_OP_fmax_s, 1, ONE32, SNAN32, 0, ONE32, NV },
    { CU_OP_fmax_s, 1, QNAN32, QNAN32, 0, CNAN32, 0 },
    { CU_OP_fmin_d, 0, 0x8000000000000000ull, 0, 0, 0x8000000000000000ull, 0 },
    { CU_OP_fmax_d, 1, 0x7ff0000000000001ull, ONE64, 0, ONE64, NV },
    { CU_OP_flt_s, 1, QNAN32, ONE32, 0, 0, NV },
    { CU_OP_fle_s, 0, ONE32, ONE32, 0, 1, 0 },
    { CU_OP_feq_s, 2, QNAN32, ONE32, 0, 0, 0 },
    { CU_OP_feq_s, 2, SNAN32, ONE32, 0, 0, NV },
    { CU_OP_feq_d, 2, ONE64, ONE64, 0, 1, 0 },
    { CU_OP_fsgnj_s, 0, ONE32, NEG(TWO32), 0, NEG(ONE32), 0 },
    { CU_OP_fsgnjn_s, 1, ONE32, NEG(TWO32), 0, ONE32, 0 },
    { CU_OP_fsgnjx_s, 2, NEG(ONE32), NEG(TWO32), 0, ONE32, 0 },
    { CU_OP_fsgnj_s, 0, 0x3f800000u, ONE32, 0, CNAN32, 0 },
    { CU_OP_fsgnjn_d, 1, ONE64, ONE64, 0, 0xbff0000000000000ull, 0 },
    /* classes */
    { CU_OP_fclass_s, 1, NEG(INF32), 0, 0, 1 << 0, 0 },
    { CU_OP_fclass_s, 1, BOX(0x80000001u), 0, 0, 1 << 2, 0 },
    { CU_OP_fclass_s, 1, BOX(0), 0, 0, 1 << 4, 0 },
    { CU_OP_fclass_s, 1, ONE32, 0, 0, 1 << 6, 0 },
    { CU_OP_fclass_s, 1, SNAN32, 0, 0, 1 << 8, 0 },
    { CU_OP_fclass_s, 1, ONE64, 0, 0, 1 << 9, 0 },
    { CU_OP_fclass_d, 1, 1, 0, 0, 1 << 5, 0 },
    /* to integers: rounding, saturation */
    { CU_OP_fcvt_w_s, 1, BOX(0x3fe00000u), 0, 0, 1, NX },
    { CU_OP_fcvt_w_s, 0, BOX(0x40200000u), 0, 0, 2, NX },
    { CU_OP_fcvt_w_s, 4, BOX(0x40200000u), 0, 0, 3, NX },
    { CU_OP_fcvt_w_s, 2, BOX(0xbf000000u), 0, 0, UINT64_MAX, NX },
    { CU_OP_fcvt_w_s, 3, BOX(0x3f000000u), 0, 0, 1, NX },
    { CU_OP_fcvt_w_s, 1, BOX(0x4f000000u), 0, 0, 0x7fffffff, NV },
    { CU_OP_fcvt_w_s, 1, BOX(0xcf000000u), 0, 0, 0xffffffff80000000ull, 0 },
    { CU_OP_fcvt_w_s, 1, QNAN32, 0, 0, 0x7fffffff, NV },
    { CU_OP_fcvt_wu_s, 1, BOX(0xbf800000u), 0, 0, 0, NV },
    { CU_OP_fcvt_wu_s, 1, BOX(0xbf000000u), 0, 0, 0, NX },
    { CU_OP_fcvt_wu_s, 1, BOX(0x4f000000u), 0, 0, 0xffffffff80000000ull, 0 },
    { CU_OP_fcvt_wu_s, 1, INF32, 0, 0, UINT64_MAX, NV },
    { CU_OP_fcvt_l_d, 1, 0x43e0000000000000ull, 0, 0, INT64_MAX, NV },
    { CU_OP_fcvt_lu_d, 1, 0x43e0000000000000ull, 0, 0, 0x8000000000000000ull, 0 },
    { CU_OP_fcvt_l_s, 1, NEG(INF32), 0, 0, 0x8000000000000000ull, NV },
    /* from integers, between formats */
    { CU_OP_fcvt_s_w, 0, 0xffffffffull, 0, 0, NEG(ONE32), 0 },
    { CU_OP_fcvt_s_wu, 0, 0xffffffffull, 0, 0, BOX(0x4f800000u), NX },
    { CU_OP_fcvt_s_w, 0, 16777217, 0, 0, BOX(0x4b800000u), NX },
    { CU_OP_fcvt_s_w, 4, 16777217, 0, 0, BOX(0x4b800001u), NX },
    { CU_OP_fcvt_s_w, 3, 16777217, 0, 0, BOX(0x4b800001u), NX },
    { CU_OP_fcvt_s_lu, 0, UINT64_MAX, 0, 0, BOX(0x5f800000u), NX },
    { CU_OP_fcvt_s_lu, 1, UINT64_MAX, 0, 0, BOX(0x5f7fffffu), NX },
    { CU_OP_fcvt_d_lu, 0, UINT64_MAX, 0, 0, 0x43f0000000000000ull, NX },
    { CU_OP_fcvt_d_l, 0, 0x8000000000000000ull, 0, 0, 0xc3e0000000000000ull, 0 },
    { CU_OP_fcvt_s_d, 0, 0x3ff0000010000000ull, 0, 0, ONE32, NX },
    { CU_OP_fcvt_s_d, 4, 0x3ff0000010000000ull, 0, 0, BOX(0x3f800001u), NX },
    { CU_OP_fcvt_s_d, 3, 0x3ff0000010000000ull, 0, 0, BOX(0x3f800001u), NX },
    { CU_OP_fcvt_s_d, 0, 0x7ff0000000000001ull, 0, 0, CNAN32, NV },
    { CU_OP_fcvt_s_d, 0, 0x4800000000000000ull, 0, 0, INF32, OF | NX },
    { CU_OP_fcvt_d_s, 0, ONE32, 0, 0, ONE64, 0 },
    { CU_OP_fcvt_d_s, 0, ONE64, 0, 0, CNAN64, 0 },
    /* moves: the bits as they are */
    { CU_OP_fmv_x_w, 0, 0x12345678deadbeefull, 0, 0, 0xffffffffdeadbeefull, 0 },
    { CU_OP_fmv_x_d, 0, 0x12345678deadbeefull, 0, 0, 0x12345678deadbeefull, 0 },
    { CU_OP_fmv_w_x, 0, 0x12345678deadbeefull, 0, 0, BOX(0xdeadbeefu), 0 },
    { CU_OP_fmv_d_x, 0, 0x12345678deadbeefull, 0, 0, 0x12345678deadbeefull, 0 },
};

static bool result_is_f(unsigned op)
{
    switch (cu_insns[op].format) {
    case CU_FMT_XFF: case CU_FMT_XF: return false;
    default: return true;
    }
}

/* rm of the row goes into the instruction where that has the field free, and into frm where `dynamic`. */
static uint32_t fp_insn(const struct fp_row *r, bool dynamic)
{
    const struct cu_insn *i = &cu_insns[r->op];
    bool result_f = result_is_f(r->op), source_f = i->format != CU_FMT_FX;
    uint32_t bits = i->match | (result_f ? 4u : 29u) << 7 | (source_f ? 1u : 6u) << 15;

    if (!(i->mask & 31u << 20))
        bits |= 2u << 20;
    if (i->format == CU_FMT_F4)
        bits |= 3u << 27;
    if (!(i->mask & 7u << 12))
        bits |= (dynamic ? 7u : r->rm) << 12;
    return bits;
}

static void check_fp_row(const struct fp_row *r, bool dynamic, unsigned lanes)
{
    struct lane_io io[32] = { 0 };

    for (unsigned l = 0; l < 32; l++)
        io[l] = (struct lane_io){ .a = r->a, .b = r->b, .c = r->c, .x_out = 0x55, .f_out = 0x66 };
    run_insn(fp_insn(r, dynamic), dynamic ? r->rm : 0, io, lanes);
    for (unsigned l = 0; l < 32; l++) {
        uint64_t got = result_is_f(r->op) ? io[l].f_out : io[l].x_out;
        uint64_t want = l < lanes ? r->out : result_is_f(r->op) ? 0x66 : 0x55;

        if (got != want || (l < lanes && io[l].flags != r->flags))
            fail_msg("row %d: %s rm %u lane %u of %u: 0x%llx flags 0x%llx, not 0x%llx flags 0x%x", (int)(r - fp_rows),
                     cu_insns[r->op].mnemonic, r->rm, l, lanes, (unsigned long long)got, (unsigned long long)io[l].flags,
                     (unsigned long long)want, r->flags);
    }
}

static void test_floating_point(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 2; h++) {
        f = &fixtures[h];
        for (unsigned i = 0; i < sizeof(fp_rows) / sizeof(fp_rows[0]); i++) {
            check_fp_row(&fp_rows[i], false, 32);
            check_fp_row(&fp_rows[i], true, 32);
            check_fp_row(&fp_rows[i], true, 13);
        }
    }
}

static uint64_t rng_state = 88172645463325252ull;

static uint64_t rng(void)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return rng_state;
}

/* A float of any class, near 1 often enough that sums round. */
static uint32_t random_float(void)
{
    uint64_t r = rng();

    return r & 7 ? (uint32_t)(r >> 32 & 0x807fffff) | (uint32_t)(118 + (r >> 8) % 20) << 23 : (uint32_t)(r >> 32);
}

static int host_flags(void)
{
    int e = fetestexcept(FE_ALL_EXCEPT);

    return (e & FE_INEXACT ? NX : 0) | (e & FE_UNDERFLOW ? UF : 0) | (e & FE_OVERFLOW ? OF : 0) | (e & FE_DIVBYZERO ? DZ : 0) |
           (e & FE_INVALID ? NV : 0);
}

static float host_op(unsigned op, float a, float b, float c)
{
    volatile float x = a, y = b, z = c, r;

    switch (op) {
    case CU_OP_fadd_s: r = x + y; break;
    case CU_OP_fsub_s: r = x - y; break;
    case CU_OP_fmul_s: r = x * y; break;
    case CU_OP_fdiv_s: r = x / y; break;
    case CU_OP_fsqrt_s: r = sqrtf(x); break;
    default: r = fmaf(x, y, z); break;
    }
    return r;
}

/* Random operands against the host's scalar unit, in the four modes that it has. Flags are the union over lanes. */
static void test_random(void **state)
{
    static const uint16_t ops[] = { CU_OP_fadd_s, CU_OP_fsub_s, CU_OP_fmul_s, CU_OP_fdiv_s, CU_OP_fsqrt_s, CU_OP_fmadd_s };
    static const int modes[] = { FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD };

    (void)state;
    for (unsigned round = 0; round < 400; round++) {
        struct fp_row row = { .op = ops[round % 6], .rm = (uint8_t)(round / 6 % 4) };
        struct lane_io io[32] = { 0 };
        uint32_t want[32];
        int flags = 0;

        f = &fixtures[round / 24 % 2];
        for (unsigned l = 0; l < 32; l++)
            io[l] = (struct lane_io){ .a = BOX(random_float()), .b = BOX(random_float()), .c = BOX(random_float()) };
        for (unsigned l = 0; l < 32; l++) {
            float r;

            fesetround(modes[row.rm]);
            feclearexcept(FE_ALL_EXCEPT);
            r = host_op(row.op, f32_of((uint32_t)io[l].a), f32_of((uint32_t)io[l].b), f32_of((uint32_t)io[l].c));
            flags |= host_flags();
            fesetround(FE_TONEAREST);
            want[l] = r == r ? f32_bits(r) : 0x7fc00000u;
        }
        run_insn(fp_insn(&row, round & 1), round & 1 ? row.rm : 0, io, 32);
        for (unsigned l = 0; l < 32; l++)
            if (io[l].f_out != BOX(want[l]) || (int)io[l].flags != flags)
                fail_msg("%s rm %u: %a %a %a is 0x%llx flags 0x%llx, not 0x%x flags 0x%x", cu_insns[row.op].mnemonic, row.rm,
                         (double)f32_of((uint32_t)io[l].a), (double)f32_of((uint32_t)io[l].b), (double)f32_of((uint32_t)io[l].c),
                         (unsigned long long)io[l].f_out, (unsigned long long)io[l].flags, want[l], flags);
    }
    assert_true(f64_of(f64_bits(1.5)) == 1.5);
}

/* Each 32-bit row decodes to itself, and to nothing else in the table. */
static void test_decode(void **state)
{
    struct cu_uop u;

    (void)state;
    for (unsigned op = 0; op < CU_OP_COUNT; op++) {
        assert_true(cu_decode(cu_insns[op].match, 0, &u));
        assert_int_equal(u.op, op);
        assert_true(cu_decode(cu_insns[op].match | ~cu_insns[op].mask, 0, &u));
        assert_int_equal(u.op, op);
    }
    assert_false(cu_decode(0xffffffff, 0, &u));
    assert_false(cu_decode(0, 0, &u));
}

/* Compressed forms next to what an assembler makes of them. */
static void test_compressed(void **state)
{
    static const struct { uint16_t half; uint32_t full; } rows[] = {
        { 0x1141, 0xff010113 }, /* c.addi sp, -16 */
        { 0x0808, 0x01010513 }, /* c.addi4spn a0, 16 */
        { 0x4188, 0x0005a503 }, /* c.lw a0, 0(a1) */
        { 0x6588, 0x0085b503 }, /* c.ld a0, 8(a1) */
        { 0xe188, 0x00a5b023 }, /* c.sd a0, 0(a1) */
        { 0x2588, 0x0085b507 }, /* c.fld fa0, 8(a1) */
        { 0x852e, 0x00b00533 }, /* c.mv a0, a1 */
        { 0x952e, 0x00b50533 }, /* c.add a0, a1 */
        { 0x8d0d, 0x40b50533 }, /* c.sub a0, a1 */
        { 0x9d2d, 0x00b5053b }, /* c.addw a0, a1 */
        { 0x8082, 0x00008067 }, /* ret */
        { 0x9502, 0x000500e7 }, /* c.jalr a0 */
        { 0x9002, 0x00100073 }, /* c.ebreak */
        { 0x050a, 0x00251513 }, /* c.slli a0, 2 */
        { 0x8109, 0x00255513 }, /* c.srli a0, 2 */
        { 0x8909, 0x00257513 }, /* c.andi a0, 2 */
        { 0xe406, 0x00113423 }, /* c.sdsp ra, 8 */
        { 0x60a2, 0x00813083 }, /* c.ldsp ra, 8 */
        { 0x557d, 0xfff00513 }, /* c.li a0, -1 */
        { 0x657d, 0x0001f537 }, /* c.lui a0, 31 */
        { 0xa001, 0x0000006f }, /* c.j 0 */
        { 0xc101, 0x00050063 }, /* c.beqz a0, 0 */
        { 0x0000, 0 }, { 0x8002, 0 },
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (cu_expand_rvc(rows[i].half) != rows[i].full)
            fail_msg("0x%04x is 0x%08x, not 0x%08x", rows[i].half, cu_expand_rvc(rows[i].half), rows[i].full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode), cmocka_unit_test(test_compressed), cmocka_unit_test(test_integer),
        cmocka_unit_test(test_immediates), cmocka_unit_test(test_upper_immediates), cmocka_unit_test(test_branches), cmocka_unit_test(test_jumps),
        cmocka_unit_test(test_floating_point), cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests_name("cu-insn", tests, setup, teardown);
}
