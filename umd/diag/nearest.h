/* SPDX-License-Identifier: MIT */
/* nearest.h - how far two names are apart, to suggest the one that was probably meant. */
#ifndef UMD_DIAG_NEAREST_H
#define UMD_DIAG_NEAREST_H

#include <stddef.h>

#include <umd/umd_diag.h>

#define UMD_NEAREST_FAR 99u /* of names too long to compare */
/** Edits from the first a_B bytes of a to b. */
UMD_API size_t umd_nearest_distance(const char *a, size_t a_B, const char *b);

#endif
