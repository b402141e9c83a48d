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
    uint64_t start, end;        /* of the whole space */
    umdRecordId corrupt;        /* seq not 0: the list does not add up; it is left as it is, and gives out nothing more */
};

UMD_MUST_CHECK umdStatus umd_va_init(struct umd_va_space *va, uint64_t start, uint64_t end);
void umd_va_fini(struct umd_va_space *va);
/** size_B and alignment_B: multiples of 4 KiB, alignment a power of two. UMD_ERR_MEM_VA_EXHAUSTED, UMD_ERR_MEM_HOST_ALLOC_FAILED,
 *  UMD_ERR_MEM_CORRUPT now and from then on where the list of ranges does not add up. */
UMD_MUST_CHECK umdStatus umd_va_alloc(struct umd_va_space *va, uint64_t size_B, uint64_t alignment_B, uint64_t *start_out);
/** Cannot fail: room for the range was kept at umd_va_alloc. One that does not fit into the list stays taken; the next umd_va_alloc says so. */
void umd_va_free(struct umd_va_space *va, uint64_t start, uint64_t size_B);
/** For fault injection: overwrites the first free range. */
void umd_va_scribble(struct umd_va_space *va);

#endif
