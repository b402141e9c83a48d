/* SPDX-License-Identifier: MIT */
/* api_codes.c - which codes a public call may return: its own list, looked up where it did not succeed (B13). */
#include <string.h>

#include "status.h"
#include "api_codes.inc"

/* Row of the function, by name; NULL: none of the public API's. */
static const uint64_t *codes_of(const char *function)
{
    size_t low = 0, high = sizeof(api_rows) / sizeof(api_rows[0]);

    while (low < high) {
        size_t mid = (low + high) / 2;
        int order = strcmp(api_rows[mid].name, function);
        if (order == 0)
            return api_rows[mid].codes;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

bool umd_api_may_return(const char *function, umdStatus st)
{
    const struct umd_status_info *info = umd_status_info(st);
    const uint64_t *codes = codes_of(function);

    if (!info)
        return false;
    if (!codes)
        return st < 0;
    size_t row = (size_t)(info - umd_status_at(0));
    return codes[row / 64] >> row % 64 & 1u;
}

const char *umd_api_function_at(uint32_t index)
{
    return index < sizeof(api_rows) / sizeof(api_rows[0]) ? api_rows[index].name : NULL;
}

_Static_assert(CODE_ROWS <= CODE_WORDS * 64, "a bit for each code");
