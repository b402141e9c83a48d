/* SPDX-License-Identifier: MIT */
/* nearest.c - the edit distance of two names. */
#include "nearest.h"

#include <string.h>

/* Levenshtein; names are short. */
size_t umd_nearest_distance(const char *a, size_t na, const char *b)
{
    size_t row[65], nb = strlen(b);

    if (na > 64 || nb > 64)
        return UMD_NEAREST_FAR;
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[nb];
}
