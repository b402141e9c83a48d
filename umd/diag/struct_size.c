/* SPDX-License-Identifier: MIT */
/* struct_size.c - reads and writes public structs by the size_B of the program's header. */
#include "struct_size.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "record.h"

/* Published sizes stay; and none ends in padding, in which a later field would lie inside the size of an older program. */
static_assert(UMD_ERROR_DETAIL_SIZE_V1 == 2848 && sizeof(umdErrorDetail) == UMD_ERROR_DETAIL_SIZE_V1, "see docs/extending.md on how a struct grows");
static_assert(UMD_ERROR_SCENE_SIZE_V1 == 7352 && sizeof(umdErrorScene) == UMD_ERROR_SCENE_SIZE_V1, "see docs/extending.md on how a struct grows");

static uint32_t size_of(const void *given)
{
    uint32_t size_B;

    memcpy(&size_B, given, sizeof(size_B));
    return size_B;
}

static bool size_fits(uint32_t size_B, uint32_t own_B, uint32_t first_B, char *figures)
{
    assert(first_B >= sizeof(size_B) && own_B >= first_B);
    if (size_B >= first_B && size_B <= own_B + UMD_STRUCT_GROWTH_B)
        return true;
    if (figures) {
        figures[0] = '\0';
        umd_figures_append(figures, UMD_STRUCT_FIGURES, "size_B=%" PRIu32 " smallest_B=%" PRIu32 " known_B=%" PRIu32 " largest_B=%u", size_B, first_B,
                           own_B, own_B + UMD_STRUCT_GROWTH_B);
    }
    return false;
}

bool umd_struct_in(void *copy_out, uint32_t own_B, const void *given, uint32_t first_B, char figures_out[UMD_STRUCT_FIGURES])
{
    const uint32_t size_B = size_of(given), both_B = size_B < own_B ? size_B : own_B;
    const uint8_t *bytes = given;

    if (!size_fits(size_B, own_B, first_B, figures_out))
        return false;
    for (uint32_t at = own_B; at < size_B; at++) {
        if (!bytes[at])
            continue;
        if (figures_out) {
            figures_out[0] = '\0';
            umd_figures_append(figures_out, UMD_STRUCT_FIGURES, "size_B=%" PRIu32 " known_B=%" PRIu32 " nonzero_at_B=%" PRIu32, size_B, own_B, at);
        }
        return false;
    }
    memcpy(copy_out, given, both_B);
    memset((uint8_t *)copy_out + both_B, 0, own_B - both_B);
    memcpy(copy_out, &own_B, sizeof(own_B));
    return true;
}

bool umd_struct_fits(uint32_t own_B, const void *given, uint32_t first_B, char figures_out[UMD_STRUCT_FIGURES])
{
    return size_fits(size_of(given), own_B, first_B, figures_out);
}

void umd_struct_out(void *given, const void *own, uint32_t own_B)
{
    const uint32_t size_B = size_of(given), both_B = size_B < own_B ? size_B : own_B, head_B = sizeof(size_B);

    if (size_B < head_B || size_B > own_B + UMD_STRUCT_GROWTH_B)
        return; /* another thread of the program has changed it since */
    memcpy((uint8_t *)given + head_B, (const uint8_t *)own + head_B, both_B - head_B);
    memset((uint8_t *)given + both_B, 0, size_B - both_B);
}

const void *umd_struct_view(void *copy_out, uint32_t own_B, const void *given, uint32_t first_B)
{
    uint32_t size_B = size_of(given);

    if (size_B >= own_B)
        return given;
    if (size_B < first_B)
        size_B = first_B;
    memcpy(copy_out, given, size_B);
    memset((uint8_t *)copy_out + size_B, 0, own_B - size_B);
    return copy_out;
}
