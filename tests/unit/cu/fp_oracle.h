/* SPDX-License-Identifier: MIT */
/* fp_oracle.h - what a floating point instruction of RISC-V must give, computed exactly with MPFR and rounded in all five modes. */
#ifndef TEST_FP_ORACLE_H
#define TEST_FP_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

enum { FP_NX = 1, FP_UF = 2, FP_OF = 4, FP_DZ = 8, FP_NV = 16 };

enum fp_kind {
    FP_ADD, FP_SUB, FP_MUL, FP_DIV, FP_SQRT, FP_MADD, FP_MSUB, FP_NMSUB, FP_NMADD, FP_SGNJ, FP_SGNJN, FP_SGNJX, FP_MIN, FP_MAX,
    FP_LE, FP_LT, FP_EQ, FP_CLASS, FP_CVT, FP_MV,
};

/* to, from: 'h' 's' 'd' formats, 'w' 'u' 'l' 'v' integers (u: wu, v: lu), 'x' the bits of an x register. */
struct fp_op { enum fp_kind kind; char to, from; unsigned operands; };

void oracle_init(void);
void oracle_finish(void);
/** The operation that a mnemonic names; false: it is none of floating point arithmetic. */
bool oracle_parse(const char *mnemonic, struct fp_op *op_out);
/** Register values (64 bits: f registers boxed) in and out, flags as fflags. */
uint64_t oracle(const struct fp_op *op, const uint64_t in[3], unsigned rm, unsigned *flags_out);

/** An operand for `op`, of all classes: zeros, subnormals, ties, the ends of the range, NaNs, what is not boxed. */
uint64_t oracle_operand(const struct fp_op *op);
uint64_t oracle_random(void);

#endif
