/* SPDX-License-Identifier: MIT */
/* exec_half.h - handlers of half precision: all of it by integers, in fpu.c. Moves, loads and stores are with those of the other formats. */
#ifndef HW_CU_EXEC_HALF_H
#define HW_CU_EXEC_HALF_H

/*
 * A boxed half in an f register of 32 singles is a word with ones above: as a single it is a NaN, and the box of 64 bits is
 * whole. So both layouts of a register (f_single) hold halves exactly.
 */
INLINE const struct cu_uop *half(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    return cu_fp_lanes(w, u);
}

#endif
