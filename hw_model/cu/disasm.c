/* SPDX-License-Identifier: MIT */
/* disasm.c - text of instructions, by the rows of rv64.def and the formats of their operands; registers by csr.def. */
/*
 * As assemblers write it, without aliases: `addi a0, zero, 1`, not `li a0, 1`. Differences: the target of a jump or branch is its
 * address, and the rounding mode is left out where it is the dynamic one. Operands of custom-0 come in the same order.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "insn.h"

struct text { char *buf; size_t size_B, length; };

/* By scoreboard slot: x0 to x31, f0 to f31. */
static const char *const registers[] = {
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4", "a5",
    "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
    "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "fs0", "fs1", "fa0", "fa1", "fa2", "fa3", "fa4", "fa5",
    "fa6", "fa7", "fs2", "fs3", "fs4", "fs5", "fs6", "fs7", "fs8", "fs9", "fs10", "fs11", "ft8", "ft9", "ft10", "ft11",
};

const char *cu_register_name(unsigned slot)
{
    return slot < sizeof(registers) / sizeof(registers[0]) ? registers[slot] : "?";
}

static const struct { uint16_t number; const char *name; } csrs[] = {
#define CSR(id_, number_, name_, kind_) { number_, name_ },
#include "csr.def"
#undef CSR
};

const char *cu_csr_name(unsigned number)
{
    for (unsigned i = 0; i < sizeof(csrs) / sizeof(csrs[0]); i++)
        if (csrs[i].number == number)
            return csrs[i].name;
    return NULL;
}

static void __attribute__((format(printf, 2, 3))) put(struct text *t, const char *format, ...)
{
    size_t left = t->length < t->size_B ? t->size_B - t->length : 0;
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(left ? t->buf + t->length : NULL, left, format, args);
    va_end(args);
    t->length += n > 0 ? (size_t)n : 0;
}

/* ---- 32 bits ---- */

/* What a letter of an operand text below stands for. */
static void put_operand(struct text *t, char what, uint32_t bits, uint64_t pc, const struct cu_uop *u)
{
    static const char order[] = "iorw";
    unsigned rd = bits >> 7 & 31, rs1 = bits >> 15 & 31, rs2 = bits >> 20 & 31;
    unsigned set = what == 'P' ? bits >> 24 & 15 : bits >> 20 & 15;

    switch (what) {
    case 'd': put(t, "%s", registers[rd]); break;
    case '1': put(t, "%s", registers[rs1]); break;
    case '2': put(t, "%s", registers[rs2]); break;
    case 'D': put(t, "%s", registers[CU_SLOT_F + rd]); break;
    case 'A': put(t, "%s", registers[CU_SLOT_F + rs1]); break;
    case 'B': put(t, "%s", registers[CU_SLOT_F + rs2]); break;
    case 'C': put(t, "%s", registers[CU_SLOT_F + (bits >> 27)]); break;
    case 'i': put(t, "%" PRId64, u->imm); break;
    case 'u': put(t, "%u", bits >> 12); break;
    case 'z': put(t, "%u", rs1); break;
    case 't': put(t, "0x%" PRIx64, pc + (uint64_t)u->imm); break;
    case 'c':
        if (cu_csr_name((unsigned)u->imm))
            put(t, "%s", cu_csr_name((unsigned)u->imm));
        else
            put(t, "0x%" PRIx64, (uint64_t)u->imm);
        break;
    case 'P': case 'S':
        for (unsigned k = 0; k < 4; k++)
            if (set >> (3 - k) & 1)
                put(t, "%c", order[k]);
        put(t, "%s", set ? "" : "0");
        break;
    default: put(t, "%c", what); break;
    }
}

/* Operands as they are written, by format; a comma brings its space. */
static const char *const operand_text[] = {
    [CU_FMT_N] = "", [CU_FMT_PS] = "P,S", [CU_FMT_R] = "d,1,2", [CU_FMT_X1] = "1", [CU_FMT_XX] = "d,1", [CU_FMT_A] = "d,2,(1)",
    [CU_FMT_I] = "d,1,i", [CU_FMT_L] = "d,i(1)", [CU_FMT_SH] = "d,1,i", [CU_FMT_S] = "2,i(1)", [CU_FMT_B] = "1,2,t", [CU_FMT_U] = "d,u",
    [CU_FMT_J] = "d,t", [CU_FMT_CSR] = "d,c,1", [CU_FMT_CSRI] = "d,c,z", [CU_FMT_FL] = "D,i(1)", [CU_FMT_FS] = "B,i(1)",
    [CU_FMT_F4] = "D,A,B,C", [CU_FMT_FFF] = "D,A,B", [CU_FMT_FF] = "D,A", [CU_FMT_XFF] = "d,A,B", [CU_FMT_XF] = "d,A",
    [CU_FMT_FX] = "D,1", [CU_FMT_FFX] = "D,A,2", [CU_FMT_FXF] = "D,B,(1)", [CU_FMT_CAS] = "d,2,(1)",
};

static bool has_rounding(unsigned op)
{
    const struct cu_insn *i = &cu_insns[op];

    return (i->latency == CU_LAT_FP || i->latency == CU_LAT_FDIV) && !(i->mask & 7u << 12);
}

static void put_insn(struct text *t, uint32_t bits, uint64_t pc)
{
    static const char *const modes[] = { "rne", "rtz", "rdn", "rup", "rmm", "rm5", "rm6" };
    static const char *const order[] = { "", ".rl", ".aq", ".aqrl" };
    const char *operands;
    struct cu_uop u;

    if (!cu_decode(bits, 0, &u)) {
        put(t, ".insn 0x%08x", bits);
        return;
    }
    const struct cu_insn *i = &cu_insns[u.op];

    if (u.op == CU_OP_fence && bits >> 20 == 0x833) {
        put(t, "fence.tso");
        return;
    }
    operands = operand_text[i->format];
    if (i->format == CU_FMT_A && i->mask >> 20 & 31) /* a load: no second source */
        operands = "d,(1)";
    put(t, "%s%s%s", i->mnemonic, i->format == CU_FMT_A ? order[bits >> 25 & 3] : "", *operands ? " " : "");
    for (const char *p = operands; *p; p++)
        if (*p == ',')
            put(t, ", ");
        else
            put_operand(t, *p, bits, pc, &u);
    if (has_rounding(u.op) && u.rm != 7)
        put(t, ", %s", modes[u.rm]);
}

/* ---- 16 bits: registers and immediate as the full instruction has them, named once where they are the same ---- */

static void put_compressed(struct text *t, uint16_t half, uint64_t pc)
{
    const struct cu_rvc *c = cu_find_rvc(half);
    uint32_t full = cu_expand_rvc(half);
    struct cu_uop u;

    if (!c || !cu_decode(full, 0, &u)) {
        put(t, ".insn 0x%04x", half);
        return;
    }
    const char *operands = operand_text[cu_insns[u.op].format];

    if (cu_insns[u.op].format == CU_FMT_R)
        operands = "d,2";
    else if (u.op == CU_OP_jalr)
        operands = "1";
    else if (u.op == CU_OP_jal)
        operands = "t";
    else if (u.op == CU_OP_beq || u.op == CU_OP_bne)
        operands = "1,t";
    else if (c->registers[0] == '0' || *operands == '\0')
        operands = "";
    else if (cu_insns[u.op].format != CU_FMT_L && (c->registers[0] == c->registers[1] || c->registers[1] == '0'))
        operands = "d,i";
    put(t, "%s%s", c->mnemonic, *operands ? " " : "");
    for (const char *p = operands; *p; p++)
        if (*p == ',')
            put(t, ", ");
        else
            put_operand(t, *p, full, pc, &u);
}

size_t cu_disasm(uint32_t bits, uint64_t pc, char *buf, size_t buf_B)
{
    struct text t = { .buf = buf, .size_B = buf_B };

    if (buf_B)
        buf[0] = '\0';
    if ((bits & 3) == 3)
        put_insn(&t, bits, pc);
    else
        put_compressed(&t, (uint16_t)bits, pc);
    return t.length;
}
