/* SPDX-License-Identifier: MIT */
/* decode.c - instruction bits to micro-ops, by the rows of rv64.def; compressed instructions are expanded first. */
#include <assert.h>
#include <string.h>

#include "insn.h"

const struct cu_insn cu_insns[CU_OP_COUNT] = {
#define RV(id_, mnemonic_, match_, mask_, format_, kind_, latency_) \
    [CU_OP_##id_] = { mnemonic_, match_, mask_, CU_FMT_##format_, CU_LAT_##latency_ },
#include "rv64.def"
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
    case CU_FMT_I: case CU_FMT_L: case CU_FMT_FL: return sext(b >> 20, 12);
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
    [CU_FMT_N] = "---", [CU_FMT_PS] = "---", [CU_FMT_R] = "xxx", [CU_FMT_X1] = "-x-", [CU_FMT_XX] = "xx-", [CU_FMT_A] = "xxx",
    [CU_FMT_I] = "xx-", [CU_FMT_L] = "xx-", [CU_FMT_SH] = "xx-", [CU_FMT_S] = "-xx", [CU_FMT_B] = "-xx",
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
    struct cu_uop u = { .bits = bits, .op = (uint16_t)op, .reconv = CU_RECONV_NONE, .d = CU_SLOT_NONE, .rd = CU_REG_SINK };

    cu_uop_set_step(&u, 2);
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

const struct cu_rvc cu_rvcs[CU_RVC_OP_COUNT] = {
#define RVC(id_, mnemonic_, match_, mask_, format_, registers_, immediate_, rules_, full_) \
    [CU_RVC_OP_##id_] = { mnemonic_, registers_, immediate_, rules_, match_, mask_, CU_OP_##full_, CU_RVC_##format_ },
#include "rv64.def"
};

/* Bits of the immediate by format, one character each, highest first: 'a' is bit 2, 'k' bit 12. */
static const char immediate_bits[][12] = {
    [CU_RVC_CR] = "", [CU_RVC_CI] = "kedcba", [CU_RVC_CSS] = "kjihgf", [CU_RVC_CIW] = "kjihgfed", [CU_RVC_CL] = "kjied",
    [CU_RVC_CS] = "kjied", [CU_RVC_CB] = "kjiedcba", [CU_RVC_CJ] = "kjihgfedcba",
};

/* The immediate as the row's text places its bits: "5|4:0" and the like. */
static int64_t rvc_immediate(const struct cu_rvc *c, uint16_t half)
{
    const char *bit = immediate_bits[c->format];
    unsigned top = 0;
    uint64_t v = 0;

    for (const char *p = c->immediate; *p;) {
        unsigned from = 0, to;

        while (*p >= '0' && *p <= '9')
            from = from * 10 + (unsigned)(*p++ - '0');
        to = from;
        if (*p == ':')
            for (to = 0, p++; *p >= '0' && *p <= '9'; p++)
                to = to * 10 + (unsigned)(*p - '0');
        for (int at = (int)from; at >= (int)to; at--, bit++)
            v |= (uint64_t)(half >> (*bit - 'a' + 2) & 1) << at;
        top = from > top ? from : top;
        p += *p == '|';
    }
    assert(!*bit);
    return strchr(c->rules, 's') ? sext(v, top + 1) : (int64_t)v;
}

static unsigned rvc_register(char field, uint16_t half)
{
    switch (field) {
    case 'd': return half >> 7 & 31;
    case 'D': return (half >> 7 & 7) + 8;
    case 's': return half >> 2 & 31;
    case 'S': return (half >> 2 & 7) + 8;
    default: return field == '-' ? 0 : (unsigned)(field - '0');
    }
}

static bool rvc_fits(const struct cu_rvc *c, uint16_t half)
{
    if ((half & c->mask) != c->match)
        return false;
    for (const char *r = c->rules; *r; r++)
        if ((*r == 'i' && !rvc_immediate(c, half)) || (*r == 'd' && !(half >> 7 & 31)) || (*r == 't' && !(half >> 2 & 31)))
            return false;
    return true;
}

const struct cu_rvc *cu_find_rvc(uint16_t half)
{
    assert((half & 3) != 3);
    for (unsigned i = 0; i < CU_RVC_OP_COUNT; i++)
        if (rvc_fits(&cu_rvcs[i], half))
            return &cu_rvcs[i];
    return NULL;
}

/* The immediate in its place: imm_of backwards. */
static uint32_t place_immediate(enum cu_format format, int64_t imm)
{
    uint32_t v = (uint32_t)imm;

    switch (format) {
    case CU_FMT_I: case CU_FMT_L: case CU_FMT_FL: case CU_FMT_SH: return (v & 0xfff) << 20;
    case CU_FMT_S: case CU_FMT_FS: return (v & 0x1f) << 7 | (v >> 5 & 0x7f) << 25;
    case CU_FMT_B: return (v >> 12 & 1) << 31 | (v >> 5 & 0x3f) << 25 | (v >> 1 & 0xf) << 8 | (v >> 11 & 1) << 7;
    case CU_FMT_J: return (v >> 20 & 1) << 31 | (v >> 1 & 0x3ff) << 21 | (v >> 11 & 1) << 20 | (v >> 12 & 0xff) << 12;
    case CU_FMT_U: return v & 0xfffff000u;
    default: return 0;
    }
}

uint32_t cu_expand_rvc(uint16_t half)
{
    const struct cu_rvc *c = cu_find_rvc(half);
    const struct cu_insn *full;

    if (!c)
        return 0;
    full = &cu_insns[c->full];
    return full->match | rvc_register(c->registers[0], half) << 7 | rvc_register(c->registers[1], half) << 15 |
           rvc_register(c->registers[2], half) << 20 | place_immediate((enum cu_format)full->format, rvc_immediate(c, half));
}
