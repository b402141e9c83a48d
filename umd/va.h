/* SPDX-License-Identifier: MIT */
/* va.h - ranges of GPU virtual addresses of one address space. */
#ifndef UMD_VA_H
#define UMD_VA_H

#include <stdint.h>

#include <umd/umd_diag.h>

struct umd_va_range { uint64_t start, end; };

/** Free ranges, sorted, never touching. Not locked: the owner's lock covers it. */
struct umd_va_space {
    struct umd_va_range *free;
    uint32_t count, capacity;
    uint32_t live;              /* ranges given out */
    uint64_t cursor;            /* where the last search ended: addresses are not used again soon */
};

UMD_MUST_CHECK umdStatus umd_va_init(struct umd_va_space *va, uint64_t start, uint64_t end);
void umd_va_fini(struct umd_va_space *va);
/** size_B and alignment_B: multiples of 4 KiB, alignment a power of two. UMD_ERR_MEM_VA_EXHAUSTED, UMD_ERR_MEM_HOST_ALLOC_FAILED. */
UMD_MUST_CHECK umdStatus umd_va_alloc(struct umd_va_space *va, uint64_t size_B, uint64_t alignment_B, uint64_t *start_out);
/** Cannot fail: room for the range was kept at umd_va_alloc. */
void umd_va_free(struct umd_va_space *va, uint64_t start, uint64_t size_B);

#endif
