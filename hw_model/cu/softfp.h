/* SPDX-License-Identifier: MIT */
/* softfp.h - IEEE 754 arithmetic by integers, as RISC-V wants it: half, single and double, five rounding modes, exact flags. */
#ifndef HW_CU_SOFTFP_H
#define HW_CU_SOFTFP_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Values are raw bits in the low end of a uint64_t; what stands above the format's width is not looked at, and is 0 in results.
 * NaN results are the canonical one. Flags are added to *flags, as in fflags. No state, no host floating point: thread-safe.
 */

enum sf_format { SF_H, SF_S, SF_D };
/** As in frm. */
enum sf_rounding { SF_RNE, SF_RTZ, SF_RDN, SF_RUP, SF_RMM };
/** As in fflags. */
enum sf_flag { SF_NX = 1, SF_UF = 2, SF_OF = 4, SF_DZ = 8, SF_NV = 16 };
/** As the rs2 field of conversions has them. Results of 32 bits are sign-extended to 64, arguments taken from the low half. */
enum sf_integer { SF_INT_W, SF_INT_WU, SF_INT_L, SF_INT_LU };

uint64_t sf_add(enum sf_format f, uint64_t a, uint64_t b, enum sf_rounding rm, uint32_t *flags);
uint64_t sf_sub(enum sf_format f, uint64_t a, uint64_t b, enum sf_rounding rm, uint32_t *flags);
uint64_t sf_mul(enum sf_format f, uint64_t a, uint64_t b, enum sf_rounding rm, uint32_t *flags);
uint64_t sf_div(enum sf_format f, uint64_t a, uint64_t b, enum sf_rounding rm, uint32_t *flags);
uint64_t sf_sqrt(enum sf_format f, uint64_t a, enum sf_rounding rm, uint32_t *flags);
/** a * b + c, rounded once. Infinity times zero is invalid whatever c is. */
uint64_t sf_fma(enum sf_format f, uint64_t a, uint64_t b, uint64_t c, enum sf_rounding rm, uint32_t *flags);

uint64_t sf_convert(enum sf_format to, enum sf_format from, uint64_t a, enum sf_rounding rm, uint32_t *flags);
/** Saturates, with NV alone; a NaN becomes the greatest number. */
uint64_t sf_to_int(enum sf_format f, uint64_t a, enum sf_integer kind, enum sf_rounding rm, uint32_t *flags);
uint64_t sf_from_int(enum sf_format f, uint64_t v, enum sf_integer kind, enum sf_rounding rm, uint32_t *flags);

/** Quiet comparison: NV for signalling NaNs only. */
bool sf_eq(enum sf_format f, uint64_t a, uint64_t b, uint32_t *flags);
/** Signalling comparisons: NV for every NaN. */
bool sf_lt(enum sf_format f, uint64_t a, uint64_t b, uint32_t *flags);
bool sf_le(enum sf_format f, uint64_t a, uint64_t b, uint32_t *flags);
/** A NaN loses, -0 is below +0. */
uint64_t sf_min(enum sf_format f, uint64_t a, uint64_t b, uint32_t *flags);
uint64_t sf_max(enum sf_format f, uint64_t a, uint64_t b, uint32_t *flags);
/** The one bit of fclass, as its number 0 to 9. */
unsigned sf_class(enum sf_format f, uint64_t a);

/** The canonical NaN and the bits of a format. */
uint64_t sf_nan(enum sf_format f);
unsigned sf_width(enum sf_format f);

#endif
