/* SPDX-License-Identifier: MIT */
/* insn.h - instructions of the compute unit: what rv64.def's columns mean, and the decoded form. */
#ifndef HW_CU_INSN_H
#define HW_CU_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cu_warp;
struct cu_uop;
/** Carries out one instruction on a warp. Value: what comes next; NULL: this warp cannot go on (blocked, done, faulted). */
typedef const struct cu_uop *(*cu_handler)(struct cu_warp *w, const struct cu_uop *u);

enum cu_op {
#define RV(id_, mnemonic_, match_, mask_, format_, kind_, latency_) CU_OP_##id_,
#include "rv64.def"
    CU_OP_COUNT,
    CU_OP_ILLEGAL = CU_OP_COUNT,
};

/** Operand fields. x and f say which file; the fields not named are not operands. */
enum cu_format {
    CU_FMT_N,    /**< none */
    CU_FMT_PS,   /**< predecessors, successors */
    CU_FMT_R,    /**< x rd, x rs1, x rs2 */
    CU_FMT_X1,   /**< x rs1 */
    CU_FMT_XX,   /**< x rd, x rs1 */
    CU_FMT_A,    /**< x rd, x rs1, x rs2 */
    CU_FMT_I,    /**< x rd, x rs1, imm12 */
    CU_FMT_L,    /**< x rd, x rs1, imm12 */
    CU_FMT_SH,   /**< x rd, x rs1, shamt6 */
    CU_FMT_S,    /**< x rs1, x rs2, store offset */
    CU_FMT_B,    /**< x rs1, x rs2, branch offset */
    CU_FMT_U,    /**< x rd, imm20 */
    CU_FMT_J,    /**< x rd, jump offset */
    CU_FMT_CSR,  /**< x rd, x rs1, csr number */
    CU_FMT_CSRI, /**< x rd, uimm5 in rs1, csr number */
    CU_FMT_FL,   /**< f rd, x rs1, imm12 */
    CU_FMT_FS,   /**< x rs1, f rs2, store offset */
    CU_FMT_F4,   /**< f rd, f rs1, f rs2, f rs3 */
    CU_FMT_FFF,  /**< f rd, f rs1, f rs2 */
    CU_FMT_FF,   /**< f rd, f rs1 */
    CU_FMT_XFF,  /**< x rd, f rs1, f rs2 */
    CU_FMT_XF,   /**< x rd, f rs1 */
    CU_FMT_FX,   /**< f rd, x rs1 */
    CU_FMT_FFX,  /**< f rd, f rs1, x rs2 */
    CU_FMT_FXF,  /**< f rd, x rs1, f rs2 */
    CU_FMT_CAS,  /**< x rd in and out, x rs1, x rs2 */
};

/** Where a compressed instruction has its immediate. */
enum cu_rvc_format {
    CU_RVC_CR,  /**< nowhere */
    CU_RVC_CI,  /**< bits 12, 6:2 */
    CU_RVC_CSS, /**< bits 12:7 */
    CU_RVC_CIW, /**< bits 12:5 */
    CU_RVC_CL,  /**< bits 12:10, 6:5 */
    CU_RVC_CS,  /**< bits 12:10, 6:5 */
    CU_RVC_CB,  /**< bits 12:10, 6:2 */
    CU_RVC_CJ,  /**< bits 12:2 */
};

enum cu_latency { CU_LAT_ALU, CU_LAT_MUL, CU_LAT_DIV, CU_LAT_FP, CU_LAT_FDIV, CU_LAT_SPEC, CU_LAT_MEM, CU_LAT_COUNT };

struct cu_insn {
    const char *mnemonic;
    uint32_t match, mask;
    uint8_t format, latency;
};
extern const struct cu_insn cu_insns[CU_OP_COUNT];

/** A compressed instruction: the columns of RVC rows. */
struct cu_rvc {
    const char *mnemonic, *registers, *immediate, *rules;
    uint16_t match, mask, full;
    uint8_t format;
};
enum cu_rvc_op {
#define RVC(id_, mnemonic_, match_, mask_, format_, registers_, immediate_, rules_, full_) CU_RVC_OP_##id_,
#include "rv64.def"
    CU_RVC_OP_COUNT,
};
extern const struct cu_rvc cu_rvcs[CU_RVC_OP_COUNT];

/** Format of an operation; folds for a constant. */
static inline __attribute__((always_inline)) enum cu_format cu_insn_format(unsigned op)
{
    switch (op) {
#define RV(id_, mnemonic_, match_, mask_, format_, kind_, latency_) case CU_OP_##id_: return CU_FMT_##format_;
#include "rv64.def"
    default: return CU_FMT_N;
    }
}

/** Fixed bits of an operation; folds for a constant. */
static inline __attribute__((always_inline)) uint32_t cu_insn_match(unsigned op)
{
    switch (op) {
#define RV(id_, mnemonic_, match_, mask_, format_, kind_, latency_) case CU_OP_##id_: return match_;
#include "rv64.def"
    default: return 0;
    }
}

/** Field fmt of a floating point operation: the format of its result or, where that is in an x register, of its operands. */
enum { CU_FP_S, CU_FP_D, CU_FP_H };
static inline __attribute__((always_inline)) unsigned cu_insn_fmt(unsigned op)
{
    return cu_insn_match(op) >> 25 & 3;
}

/* Scoreboard slots: x0..x31, f0..f31, then a slot that takes what nobody reads. Slot 0 (x0) is always ready. */
#define CU_SLOT_F 32u
#define CU_SLOT_NONE 64u
#define CU_SLOT_COUNT 65u
/* Register that results for x0 go to. */
#define CU_REG_SINK 32u

enum cu_uop_flag {
    CU_UOP_JOIN = 1,      /**< some branch reconverges here */
    CU_UOP_FAR = 2,       /**< branch target lies outside the region */
    CU_UOP_ENTRY = 4,     /**< a function whose branches have been analysed starts here */
    CU_UOP_DECODED = 8,
    CU_UOP_MEMORY = 16,
    CU_UOP_MERGE = 32,    /**< paths may meet here before the place where they must */
    CU_UOP_NO_RETURN = 64, /**< the function that starts here has no way to its return */
    CU_UOP_FUSED = 128,    /**< runs as one with what follows, where all lanes are active */
};

/* Where a branch's paths meet again: index of a micro-op, or one of these. */
#define CU_RECONV_NONE UINT32_MAX        /**< not known */
#define CU_RECONV_EXIT (UINT32_MAX - 1u) /**< the function's return */

struct cu_uop {
    cu_handler fn[2];          /**< all 32 lanes, some lanes */
    int64_t imm;               /**< immediate; AUIPC: the sum; CSR: number */
    uint32_t bits;             /**< as fetched (16 bits for a compressed one) */
    int32_t target_B;          /**< branch, jal: distance in bytes of micro-ops */
    uint32_t reconv;
    uint16_t op;
    uint16_t lat;
    uint16_t flags;            /**< enum cu_uop_flag */
    uint8_t rd, rs1, rs2, rs3; /**< register numbers; rd may be CU_REG_SINK */
    uint8_t d, s1, s2, s3;     /**< scoreboard slots */
    uint8_t step;              /**< halfwords to the next instruction, */
    uint8_t next_B;            /**< and bytes of micro-ops: what the loops add */
    uint8_t rm;                /**< rounding mode field */
};
_Static_assert(sizeof(struct cu_uop) == 56, "next_B holds two of them");

static inline __attribute__((always_inline)) void cu_uop_set_step(struct cu_uop *u, unsigned halves)
{
    u->step = (uint8_t)halves;
    u->next_B = (uint8_t)(halves * sizeof(*u));
}
/** What follows in memory, and where a branch or jal inside the region leads. */
static inline __attribute__((always_inline)) const struct cu_uop *cu_uop_next(const struct cu_uop *u)
{
    return (const struct cu_uop *)((const char *)u + u->next_B);
}
static inline __attribute__((always_inline)) const struct cu_uop *cu_uop_target(const struct cu_uop *u)
{
    return (const struct cu_uop *)((const char *)u + u->target_B);
}

/** Operation and fields from 32 instruction bits. False: no such instruction (uop becomes CU_OP_ILLEGAL). */
bool cu_decode(uint32_t bits, uint64_t pc, struct cu_uop *uop_out);
/** The row of a compressed instruction; NULL: there is none. */
const struct cu_rvc *cu_find_rvc(uint16_t half);
/** The 32-bit form of a compressed instruction; 0: there is none. */
uint32_t cu_expand_rvc(uint16_t half);

/** Numbers of control and status registers. */
enum cu_csr {
#define CSR(id_, number_, name_, kind_) CU_CSR_##id_ = number_,
#include "csr.def"
#undef CSR
};

#define CU_DISASM_MAX 64u
/**
 * Text of an instruction of 32 bits, or of 16 where bits 1:0 are not 3, at pc: mnemonic, a space, operands with ABI names, targets
 * as addresses; `.insn` and the bits where there is no such instruction. Value: its length; what does not fit is cut off.
 */
size_t cu_disasm(uint32_t bits, uint64_t pc, char *buf, size_t buf_B);
/** Name of a control and status register (csr.def); NULL: it has none. */
const char *cu_csr_name(unsigned number);
/** ABI name of a register by its scoreboard slot; "?" for what is none. */
const char *cu_register_name(unsigned slot);

#endif
