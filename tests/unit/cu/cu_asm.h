/* SPDX-License-Identifier: MIT */
/* cu_asm.h - instruction words put together by the rows of rv64.def, for tests that write their programs themselves. */
#ifndef TEST_CU_ASM_H
#define TEST_CU_ASM_H

#include "insn.h"

#define MATCH(op_) cu_insns[CU_OP_##op_].match

static inline uint32_t r_type(uint32_t match, unsigned rd, unsigned rs1, unsigned rs2)
{
    return match | rd << 7 | rs1 << 15 | rs2 << 20;
}

static inline uint32_t i_type(uint32_t match, unsigned rd, unsigned rs1, int imm)
{
    return match | rd << 7 | rs1 << 15 | (uint32_t)imm << 20;
}

static inline uint32_t s_type(uint32_t match, unsigned rs1, unsigned rs2, int imm)
{
    return match | (uint32_t)(imm & 31) << 7 | rs1 << 15 | rs2 << 20 | (uint32_t)(imm >> 5 & 127) << 25;
}

static inline uint32_t b_type(uint32_t match, unsigned rs1, unsigned rs2, int offset)
{
    uint32_t o = (uint32_t)offset;

    return match | rs1 << 15 | rs2 << 20 | (o >> 12 & 1) << 31 | (o >> 5 & 0x3f) << 25 | (o >> 1 & 0xf) << 8 | (o >> 11 & 1) << 7;
}

static inline uint32_t j_type(uint32_t match, unsigned rd, int offset)
{
    uint32_t o = (uint32_t)offset;

    return match | rd << 7 | (o >> 20 & 1) << 31 | (o >> 1 & 0x3ff) << 21 | (o >> 11 & 1) << 20 | (o >> 12 & 0xff) << 12;
}

#endif
