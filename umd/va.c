/* SPDX-License-Identifier: MIT */
/* va.c - GPU virtual addresses: next fit over a sorted list of free ranges. */
#include "va.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "record.h"
#include "sys.h"

UMD_LOG_MODULE("umd.va");

/* Between n live ranges lie at most n + 1 free ones: with room for those, neither alloc nor free runs out of list. */
static umdStatus reserve(struct umd_va_space *va)
{
    if (va->live + 3 <= va->capacity)
        return UMD_SUCCESS;
    uint32_t capacity = va->capacity ? va->capacity * 2 : 64;
    struct umd_va_range *r = umd_alloc(capacity * sizeof(*r));
    if (!r)
        return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    if (va->count)
        memcpy(r, va->free, va->count * sizeof(*r));
    umd_free(va->free);
    va->free = r;
    va->capacity = capacity;
    return UMD_SUCCESS;
}

umdStatus umd_va_init(struct umd_va_space *va, uint64_t start, uint64_t end)
{
    *va = (struct umd_va_space){ .cursor = start };
    umdStatus st = reserve(va);
    if (st < 0)
        return UMD_HOP(st);
    va->free[0] = (struct umd_va_range){ start, end };
    va->count = 1;
    return UMD_SUCCESS;
}

void umd_va_fini(struct umd_va_space *va)
{
    umd_free(va->free);
    *va = (struct umd_va_space){ 0 };
}

/* Start of a fit in a range at or above `from`; UINT64_MAX: none. */
static uint64_t fit(struct umd_va_range r, uint64_t from, uint64_t size_B, uint64_t alignment_B)
{
    uint64_t start = r.start > from ? r.start : from;

    if (start > UINT64_MAX - alignment_B)
        return UINT64_MAX;
    start = (start + alignment_B - 1) & ~(alignment_B - 1);
    return start < r.end && r.end - start >= size_B ? start : UINT64_MAX;
}

static void take(struct umd_va_space *va, uint32_t i, uint64_t start, uint64_t end)
{
    struct umd_va_range r = va->free[i];

    if (r.start == start && r.end == end) {
        memmove(&va->free[i], &va->free[i + 1], (va->count - i - 1) * sizeof(r));
        va->count--;
    } else if (r.start == start) {
        va->free[i].start = end;
    } else if (r.end == end) {
        va->free[i].end = start;
    } else {
        memmove(&va->free[i + 2], &va->free[i + 1], (va->count - i - 1) * sizeof(r));
        va->free[i].end = start;
        va->free[i + 1] = (struct umd_va_range){ end, r.end };
        va->count++;
    }
}

umdStatus umd_va_alloc(struct umd_va_space *va, uint64_t size_B, uint64_t alignment_B, uint64_t *start_out)
{
    uint64_t total_B = 0, largest_B = 0;

    assert(size_B && alignment_B && !(alignment_B & (alignment_B - 1)));
    umdStatus st = reserve(va);
    if (st < 0)
        return UMD_HOP(st);
    for (int pass = 0; pass < 2; pass++) {
        uint64_t from = pass ? 0 : va->cursor;
        for (uint32_t i = 0; i < va->count; i++) {
            uint64_t start = fit(va->free[i], from, size_B, alignment_B);
            if (start == UINT64_MAX)
                continue;
            take(va, i, start, start + size_B);
            va->cursor = start + size_B;
            va->live++;
            *start_out = start;
            return UMD_SUCCESS;
        }
    }
    for (uint32_t i = 0; i < va->count; i++) {
        uint64_t n = va->free[i].end - va->free[i].start;
        total_B += n;
        largest_B = n > largest_B ? n : largest_B;
    }
    return UMD_FAIL(UMD_ERR_MEM_VA_EXHAUSTED, "size_B=%" PRIu64 " alignment_B=%" PRIu64 " free_B=%" PRIu64 " largest_B=%" PRIu64, size_B,
                    alignment_B, total_B, largest_B);
}

void umd_va_free(struct umd_va_space *va, uint64_t start, uint64_t size_B)
{
    uint64_t end = start + size_B;
    uint32_t i = 0;

    while (i < va->count && va->free[i].start < start)
        i++;
    assert(i == 0 || va->free[i - 1].end <= start);
    assert(i == va->count || va->free[i].start >= end);
    bool left = i > 0 && va->free[i - 1].end == start;
    bool right = i < va->count && va->free[i].start == end;
    if (left && right) {
        va->free[i - 1].end = va->free[i].end;
        memmove(&va->free[i], &va->free[i + 1], (va->count - i - 1) * sizeof(va->free[0]));
        va->count--;
    } else if (left) {
        va->free[i - 1].end = end;
    } else if (right) {
        va->free[i].start = start;
    } else {
        assert(va->count < va->capacity);
        memmove(&va->free[i + 1], &va->free[i], (va->count - i) * sizeof(va->free[0]));
        va->free[i] = (struct umd_va_range){ start, end };
        va->count++;
    }
    va->live--;
}
