/* SPDX-License-Identifier: MIT */
/* decode.c - instruction bits to micro-ops, by the rows of rv64.def; compressed instructions are expanded first. */
#include <assert.h>
#include <string.h>

#include "insn.h"

const struct cu_insn cu_insns[CU_OP_COUNT] = {
#define RV(id_, mnemonic_, match_, mask_, format_, kind_, latency_) \
    [CU_OP_##id_] = { mnemonic_, match_, mask_, CU_FMT_##format_, CU_LAT_##latency_ },
#include "rv64.def"
#undef RV
};

static int64_t sext(uint64_t v, unsigned bits)
{
    return (int64_t)(v << (64 - bits)) >> (64 - bits);
}

static int64_t imm_b(uint32_t b)
{
    return sext((b >> 31 & 1) << 12 | (b >> 7 & 1) << 11 | (b >> 25 & 0x3f) << 5 | (b >> 8 & 0xf) << 1, 13);
}

static int64_t imm_j(uint32_t b)
{
    return sext((b >> 31 & 1) << 20 | (b >> 12 & 0xff) << 12 | (b >> 20 & 1) << 11 | (b >> 21 & 0x3ff) << 1, 21);
}

static int64_t imm_of(uint32_t b, enum cu_format format)
{
    switch (format) {
    case CU_FMT_I: case CU_FMT_FL: return sext(b >> 20, 12);
    case CU_FMT_SH: return b >> 20 & 0x3f;
    case CU_FMT_S: case CU_FMT_FS: return sext((b >> 25) << 5 | (b >> 7 & 0x1f), 12);
    case CU_FMT_B: return imm_b(b);
    case CU_FMT_U: return (int64_t)(int32_t)(b & 0xfffff000u);
    case CU_FMT_J: return imm_j(b);
    case CU_FMT_CSR: case CU_FMT_CSRI: return b >> 20;
    default: return 0;
    }
}

/* Register files of rd, rs1, rs2 by format: 'x', 'f' or '-'. */
static const char operand_files[][4] = {
    [CU_FMT_N] = "---", [CU_FMT_R] = "xxx", [CU_FMT_I] = "xx-", [CU_FMT_SH] = "xx-", [CU_FMT_S] = "-xx", [CU_FMT_B] = "-xx",
    [CU_FMT_U] = "x--", [CU_FMT_J] = "x--", [CU_FMT_CSR] = "xx-", [CU_FMT_CSRI] = "x--", [CU_FMT_FL] = "fx-", [CU_FMT_FS] = "-xf",
    [CU_FMT_F4] = "fff", [CU_FMT_FFF] = "fff", [CU_FMT_FF] = "ff-", [CU_FMT_XFF] = "xff", [CU_FMT_XF] = "xf-", [CU_FMT_FX] = "fx-",
    [CU_FMT_FFX] = "ffx", [CU_FMT_FXF] = "fxf", [CU_FMT_CAS] = "xxx",
};

static uint8_t source_slot(char file, unsigned reg)
{
    return file == 'x' ? (uint8_t)reg : file == 'f' ? (uint8_t)(CU_SLOT_F + reg) : 0;
}

static enum cu_op match_op(uint32_t bits)
{
    for (unsigned op = 0; op < CU_OP_COUNT; op++)
        if ((bits & cu_insns[op].mask) == cu_insns[op].match)
            return (enum cu_op)op;
    return CU_OP_ILLEGAL;
}

bool cu_decode(uint32_t bits, uint64_t pc, struct cu_uop *uop_out)
{
    enum cu_op op = match_op(bits);
    struct cu_uop u = { .bits = bits, .op = (uint16_t)op, .step = 2, .reconv = CU_RECONV_NONE, .d = CU_SLOT_NONE, .rd = CU_REG_SINK };

    if (op == CU_OP_ILLEGAL) {
        *uop_out = u;
        return false;
    }
    enum cu_format format = (enum cu_format)cu_insns[op].format;
    const char *files = operand_files[format];
    unsigned rd = bits >> 7 & 31, rs1 = bits >> 15 & 31, rs2 = bits >> 20 & 31;

    u.rs1 = (uint8_t)rs1;
    u.rs2 = (uint8_t)rs2;
    u.rs3 = (uint8_t)(bits >> 27);
    u.rm = bits >> 12 & 7;
    u.imm = imm_of(bits, format);
    if (op == CU_OP_auipc)
        u.imm += (int64_t)pc;
    u.s1 = source_slot(files[1], rs1);
    u.s2 = source_slot(files[2], rs2);
    u.s3 = format == CU_FMT_F4 ? (uint8_t)(CU_SLOT_F + u.rs3) : format == CU_FMT_CAS ? (uint8_t)rd : 0;
    if (files[0] == 'f') {
        u.rd = (uint8_t)rd;
        u.d = (uint8_t)(CU_SLOT_F + rd);
    } else if (files[0] == 'x' && rd) {
        u.rd = (uint8_t)rd;
        u.d = (uint8_t)rd;
    }
    if (cu_insns[op].latency == CU_LAT_MEM)
        u.flags |= CU_UOP_MEMORY;
    *uop_out = u;
    return true;
}

/* ---- Compressed instructions: assembled into the 32-bit form ---- */

static uint32_t asm_i(uint32_t op, unsigned f3, unsigned rd, unsigned rs1, int64_t imm)
{
    return op | rd << 7 | f3 << 12 | rs1 << 15 | (uint32_t)(imm & 0xfff) << 20;
}

static uint32_t asm_s(uint32_t op, unsigned f3, unsigned rs1, unsigned rs2, uint32_t imm)
{
    return op | (imm & 0x1f) << 7 | f3 << 12 | rs1 << 15 | rs2 << 20 | (imm >> 5 & 0x7f) << 25;
}

static uint32_t asm_r(uint32_t op, unsigned f3, unsigned f7, unsigned rd, unsigned rs1, unsigned rs2)
{
    return op | rd << 7 | f3 << 12 | rs1 << 15 | rs2 << 20 | f7 << 25;
}

static uint32_t asm_j(unsigned rd, int64_t off)
{
    uint32_t o = (uint32_t)off;

    return 0x6f | rd << 7 | (o >> 20 & 1) << 31 | (o >> 1 & 0x3ff) << 21 | (o >> 11 & 1) << 20 | (o >> 12 & 0xff) << 12;
}

static uint32_t asm_b(unsigned f3, unsigned rs1, int64_t off)
{
    uint32_t o = (uint32_t)off;

    return 0x63 | f3 << 12 | rs1 << 15 | (o >> 12 & 1) << 31 | (o >> 5 & 0x3f) << 25 | (o >> 1 & 0xf) << 8 | (o >> 11 & 1) << 7;
}

/* Bits hi..lo of h, moved to position `to`. */
static uint32_t field(uint32_t h, unsigned hi, unsigned lo, unsigned to)
{
    return (h >> lo & ((1u << (hi - lo + 1)) - 1)) << to;
}

static uint32_t expand_q0(uint32_t h)
{
    unsigned rd = (h >> 2 & 7) + 8, rs1 = (h >> 7 & 7) + 8;
    uint32_t off_w = field(h, 12, 10, 3) | field(h, 6, 6, 2) | field(h, 5, 5, 6);
    uint32_t off_d = field(h, 12, 10, 3) | field(h, 6, 5, 6);
    uint32_t addi4 = field(h, 12, 11, 4) | field(h, 10, 7, 6) | field(h, 6, 6, 2) | field(h, 5, 5, 3);

    switch (h >> 13) {
    case 0: return addi4 ? asm_i(0x13, 0, rd, 2, addi4) : 0;
    case 1: return asm_i(0x07, 3, rd, rs1, off_d);
    case 2: return asm_i(0x03, 2, rd, rs1, off_w);
    case 3: return asm_i(0x03, 3, rd, rs1, off_d);
    case 5: return asm_s(0x27, 3, rs1, rd, off_d);
    case 6: return asm_s(0x23, 2, rs1, rd, off_w);
    case 7: return asm_s(0x23, 3, rs1, rd, off_d);
    default: return 0;
    }
}

static uint32_t expand_q1_alu(uint32_t h, unsigned rd, int64_t imm)
{
    unsigned rs2 = (h >> 2 & 7) + 8, shamt = (unsigned)imm & 0x3f;
    static const struct { uint8_t f3, f7; } ops[4] = { { 0, 0x20 }, { 4, 0 }, { 6, 0 }, { 7, 0 } };
    unsigned sel = h >> 5 & 3;

    switch (h >> 10 & 3) {
    case 0: return asm_i(0x13, 5, rd, rd, shamt);
    case 1: return asm_i(0x13, 5, rd, rd, shamt | 0x400);
    case 2: return asm_i(0x13, 7, rd, rd, imm);
    default:
        if (!(h >> 12 & 1))
            return asm_r(0x33, ops[sel].f3, ops[sel].f7, rd, rd, rs2);
        return sel < 2 ? asm_r(0x3b, 0, sel ? 0 : 0x20, rd, rd, rs2) : 0;
    }
}

static uint32_t expand_q1(uint32_t h)
{
    unsigned rd = h >> 7 & 31, rdc = (h >> 7 & 7) + 8;
    int64_t imm = sext(field(h, 12, 12, 5) | field(h, 6, 2, 0), 6);
    int64_t sp = sext(field(h, 12, 12, 9) | field(h, 6, 6, 4) | field(h, 5, 5, 6) | field(h, 4, 3, 7) | field(h, 2, 2, 5), 10);
    int64_t off_j = sext(field(h, 12, 12, 11) | field(h, 11, 11, 4) | field(h, 10, 9, 8) | field(h, 8, 8, 10) | field(h, 7, 7, 6) |
                         field(h, 6, 6, 7) | field(h, 5, 3, 1) | field(h, 2, 2, 5), 12);
    int64_t off_b = sext(field(h, 12, 12, 8) | field(h, 11, 10, 3) | field(h, 6, 5, 6) | field(h, 4, 3, 1) | field(h, 2, 2, 5), 9);

    switch (h >> 13) {
    case 0: return asm_i(0x13, 0, rd, rd, imm);
    case 1: return rd ? asm_i(0x1b, 0, rd, rd, imm) : 0;
    case 2: return asm_i(0x13, 0, rd, 0, imm);
    case 3:
        if (rd == 2)
            return sp ? asm_i(0x13, 0, 2, 2, sp) : 0;
        return imm ? 0x37 | rd << 7 | ((uint32_t)imm << 12) : 0;
    case 4: return expand_q1_alu(h, rdc, imm);
    case 5: return asm_j(0, off_j);
    case 6: return asm_b(0, rdc, off_b);
    default: return asm_b(1, rdc, off_b);
    }
}

static uint32_t expand_q2(uint32_t h)
{
    unsigned rd = h >> 7 & 31, rs2 = h >> 2 & 31;
    uint32_t lw = field(h, 12, 12, 5) | field(h, 6, 4, 2) | field(h, 3, 2, 6);
    uint32_t ld = field(h, 12, 12, 5) | field(h, 6, 5, 3) | field(h, 4, 2, 6);
    uint32_t sw = field(h, 12, 9, 2) | field(h, 8, 7, 6), sd = field(h, 12, 10, 3) | field(h, 9, 7, 6);

    switch (h >> 13) {
    case 0: return asm_i(0x13, 1, rd, rd, field(h, 12, 12, 5) | field(h, 6, 2, 0));
    case 1: return asm_i(0x07, 3, rd, 2, ld);
    case 2: return rd ? asm_i(0x03, 2, rd, 2, lw) : 0;
    case 3: return rd ? asm_i(0x03, 3, rd, 2, ld) : 0;
    case 4:
        if (!(h >> 12 & 1))
            return rs2 ? asm_r(0x33, 0, 0, rd, 0, rs2) : rd ? asm_i(0x67, 0, 0, rd, 0) : 0;
        if (!rs2)
            return rd ? asm_i(0x67, 0, 1, rd, 0) : 0x00100073;
        return asm_r(0x33, 0, 0, rd, rd, rs2);
    case 5: return asm_s(0x27, 3, 2, rs2, sd);
    case 6: return asm_s(0x23, 2, 2, rs2, sw);
    default: return asm_s(0x23, 3, 2, rs2, sd);
    }
}

uint32_t cu_expand_rvc(uint16_t half)
{
    assert((half & 3) != 3);
    if (!half)
        return 0;
    switch (half & 3) {
    case 0: return expand_q0(half);
    case 1: return expand_q1(half);
    default: return expand_q2(half);
    }
}
