/* SPDX-License-Identifier: MIT */
/* struct_size.h - public structs that begin with size_B, from programs built with an older or a newer header (requirement B8). */
#ifndef UMD_DIAG_STRUCT_SIZE_H
#define UMD_DIAG_STRUCT_SIZE_H

#include <umd/umd_diag.h>

/*
 * size_B is the sizeof of the program's header. A struct only grows, at its end, so all sizes are beginnings of one another:
 *   first_B  that of the first published version (UMD_..._SIZE_V1); nobody passes less
 *   own_B    the library's
 *   given    what the program says
 * given < own_B: an older program. What it does not have reads zero, and is not written.
 * given > own_B: a newer program. What it asks for beyond must be zero, which means "as before"; what it wants to know beyond is zero.
 */

/* A size that was never set is some number, and one of another struct is a mistake: a newer program's is larger than the library's by no more. */
#define UMD_STRUCT_GROWTH_B 1024u
#define UMD_STRUCT_FIGURES 128u

/**
 * A struct that the program filled in: copy_out is all of own_B, with size_B own_B. False: the size cannot be, or the tail that this library
 * does not know is not zero; copy_out is then untouched, and figures_out (which may be NULL) says why, for UMD_ERR_PARAM_STRUCT_SIZE:
 *   if (!umd_struct_in(&d, sizeof(d), desc, UMD_LAUNCH_DESC_SIZE_V1, figures))
 *       return UMD_FAIL(UMD_ERR_PARAM_STRUCT_SIZE, "argument=desc %s", figures);
 */
UMD_API bool umd_struct_in(void *copy_out, uint32_t own_B, const void *given, uint32_t first_B, char figures_out[UMD_STRUCT_FIGURES]);
/** A struct that is to be filled in has a size that can be: asked before anything is done. As umd_struct_in. */
UMD_API bool umd_struct_fits(uint32_t own_B, const void *given, uint32_t first_B, char figures_out[UMD_STRUCT_FIGURES]);
/** Fills in what umd_struct_fits has let pass: as much of own as there is room for, zero behind it. Its size_B stays the program's. */
UMD_API void umd_struct_out(void *given, const void *own, uint32_t own_B);
/**
 * A struct that a call of before has filled in, and that the program hands back to be looked at: given itself if all of it is there, else copy_out
 * with zero for what is not. Refuses nothing: a size below first_B is taken for first_B.
 */
UMD_API const void *umd_struct_view(void *copy_out, uint32_t own_B, const void *given, uint32_t first_B);

#endif
