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
    *va = (struct umd_va_space){ .cursor = start, .start = start, .end = end };
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

/* ---- The list's own soundness ---- */

/* What does not add up: what should be there at most or at least, and what is. check NULL: all is well. */
struct flaw { const char *check; uint64_t expected, found; };

static struct flaw flaw_of(const struct umd_va_space *va, uint32_t i)
{
    const struct umd_va_range r = va->free[i];
    const uint64_t low = i ? va->free[i - 1].end + 1 : va->start, high = i + 1 < va->count ? va->free[i + 1].start - 1 : va->end;

    if (r.start < low)
        return (struct flaw){ "start", low, r.start };
    if (r.end <= r.start)
        return (struct flaw){ "empty", r.start + 1, r.end };
    if (r.end > high)
        return (struct flaw){ "end", high, r.end };
    return (struct flaw){ 0 };
}

/* What is about to be free must have been taken. i: the first free range at or above it. */
static struct flaw flaw_of_taken(const struct umd_va_space *va, uint32_t i, uint64_t start, uint64_t end)
{
    const uint64_t low = i ? va->free[i - 1].end : va->start, high = i < va->count ? va->free[i].start : va->end;

    if (start < low)
        return (struct flaw){ "below", low, start };
    if (end > high)
        return (struct flaw){ "above", high, end };
    if (!va->live)
        return (struct flaw){ "live", 1, 0 };
    if (va->count >= va->capacity)
        return (struct flaw){ "capacity", va->capacity - 1, va->count };
    return (struct flaw){ 0 };
}

static umdStatus corrupt(struct umd_va_space *va, const char *op, const struct flaw *f, uint64_t at)
{
    umdStatus st = UMD_FAIL(UMD_ERR_MEM_CORRUPT, "list=addresses op=%s check=%s expected=0x%" PRIx64 " found=0x%" PRIx64 " at=0x%" PRIx64
                            " ranges=%u live=%u", op, f->check, f->expected, f->found, at, va->count, va->live);

    va->corrupt = umd_record_current();
    umdErrorDetail detail = { .size_B = sizeof(detail) };
    if (umdGetErrorDetailById(va->corrupt, &detail) == UMD_SUCCESS)
        umd_record_pin(&detail, false); /* each later allocation names it */
    return st;
}

void umd_va_scribble(struct umd_va_space *va)
{
    if (va->count)
        va->free[0].end = va->end + 4096;
}

/* ---- Giving out and taking back ---- */

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
    uint64_t total_B = 0, largest_B = 0, fit_B = 0;

    assert(size_B && alignment_B && !(alignment_B & (alignment_B - 1)));
    if (va->corrupt.seq)
        return UMD_FAIL_FROM(UMD_ERR_MEM_CORRUPT, va->corrupt, "list=addresses op=alloc size_B=%" PRIu64 " reason=corrupt_before", size_B);
    umdStatus st = reserve(va);
    if (st < 0)
        return UMD_HOP(st);
    for (int pass = 0; pass < 2; pass++) {
        uint64_t from = pass ? 0 : va->cursor;
        for (uint32_t i = 0; i < va->count; i++) {
            const struct flaw flaw = flaw_of(va, i);
            if (flaw.check)
                return corrupt(va, "alloc", &flaw, va->free[i].start);
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
        const uint64_t start = fit(va->free[i], 0, 1, alignment_B);
        if (start != UINT64_MAX && va->free[i].end - start > fit_B)
            fit_B = va->free[i].end - start; /* of that alignment */
    }
    return UMD_FAIL_ADVISED(UMD_ERR_MEM_VA_EXHAUSTED, umd_advice_fit(UMD_ERR_MEM_VA_EXHAUSTED, fit_B), (umdRecordId){ 0 },
                            "size_B=%" PRIu64 " alignment_B=%" PRIu64 " free_B=%" PRIu64 " largest_B=%" PRIu64, size_B, alignment_B, total_B, largest_B);
}

void umd_va_free(struct umd_va_space *va, uint64_t start, uint64_t size_B)
{
    uint64_t end = start + size_B;
    uint32_t i = 0;

    if (va->corrupt.seq)
        return;
    while (i < va->count && va->free[i].start < start)
        i++;
    const struct flaw flaw = flaw_of_taken(va, i, start, end);
    if (flaw.check) {
        umd_record_scope_begin();
        umdStatus st = corrupt(va, "free", &flaw, start);
        UMD_ABSORB(st, "the addresses stay taken, and each allocation from now on fails because of it");
        umd_record_scope_end();
        return;
    }
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
        memmove(&va->free[i + 1], &va->free[i], (va->count - i) * sizeof(va->free[0]));
        va->free[i] = (struct umd_va_range){ start, end };
        va->count++;
    }
    va->live--;
}
