/* SPDX-License-Identifier: MIT */
/* memory.h - buffers: of the application, with their records, and of the driver itself. */
#ifndef UMD_MEMORY_H
#define UMD_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include <umd/umd.h>

struct umd_context;
struct umd_stream;

/** A GEM buffer, perhaps bound to addresses and mapped to the host. */
struct umd_bo {
    uint32_t gem;
    bool bound;
    uint64_t va, size_B;        /* va 0: none */
    void *map;                  /* NULL: not mapped */
};

struct umd_bo_desc {
    uint64_t size_B, alignment_B;
    uint32_t gem_flags;         /* DRM_PETREL_GEM_* */
    uint32_t rights;            /* DRM_PETREL_BIND_*; 0: the caller binds */
    bool map;
};
UMD_MUST_CHECK umdStatus umd_bo_create(struct umd_context *ctx, const struct umd_bo_desc *desc, struct umd_bo *bo_out);
UMD_MUST_CHECK umdStatus umd_bo_bind(struct umd_context *ctx, const struct umd_bo *bo, uint64_t offset_B, uint64_t size_B, uint32_t rights);
/** Takes half-built ones, and works on a lost device. */
void umd_bo_destroy(struct umd_context *ctx, struct umd_bo *bo);

/** An allocation of the application. */
struct umd_alloc_entry {
    struct umd_bo bo;
    uint64_t size_B;            /* as asked for */
    uint32_t flags;
    uint32_t pins;              /* calls that are about to use it */
};
struct umd_freed { uint64_t va, size_B, when_ns; uint32_t tid; };
enum { UMD_FREED_KEPT = 256, UMD_READBACK_KEPT = 4, UMD_READBACK_B = 256 * 1024 };

/** A stream takes its own out before it goes: none outlives it, and none holds it. */
struct umd_retired_slot { uint64_t key; struct umd_stream *stream; uint64_t point; };

struct umd_memory {
    struct umd_alloc_entry **live;              /* by address */
    uint32_t count, capacity;
    struct umd_freed freed[UMD_FREED_KEPT];     /* ring */
    uint32_t freed_next;
    struct umd_bo readback[UMD_READBACK_KEPT];  /* idle ones, for copies to the host */
    uint32_t readback_count;
    struct umd_bo *slot_pages;                  /* 8-byte cells for time stamps */
    uint32_t slot_page_count;
    uint64_t *slots_free;                       /* page << 16 | index */
    uint32_t slots_free_count;
    struct umd_retired_slot *slots_retired;     /* given back, but not written for the last time yet */
    uint32_t slots_retired_count;
};
void umd_memory_fini(struct umd_context *ctx);

/**
 * The allocation that holds [ptr, ptr + size_B), pinned until umd_memory_unpin: it is not freed in between.
 * UMD_ERR_MEM_POINTER, UMD_ERR_COPY_RANGE. what names the argument.
 */
UMD_MUST_CHECK umdStatus umd_memory_pin(struct umd_context *ctx, umdDevicePtr ptr, uint64_t size_B, const char *what, struct umd_alloc_entry **out);
void umd_memory_unpin(struct umd_context *ctx, struct umd_alloc_entry *e);

/** What an address that the device could not touch has to do with the context's allocations; 0 where something does not apply. */
struct umd_address {
    uint64_t live_va, live_B;           /* the live allocation that holds it, or the nearest one that it may have been meant for */
    uint64_t overrun_B, underrun_B;     /* so far behind the end of that (1: the byte behind it), or before its start; both 0: inside */
    struct umd_freed freed;             /* else the youngest freed one that held it */
    uint64_t owner_context;             /* else another context that has a live one there */
};
void umd_memory_look(struct umd_context *ctx, uint64_t va, struct umd_address *out);

UMD_MUST_CHECK umdStatus umd_readback_take(struct umd_context *ctx, struct umd_bo *bo_out);
void umd_readback_give(struct umd_context *ctx, struct umd_bo *bo);

/** A 64-bit cell that the device writes and the host reads. */
struct umd_slot { uint64_t va; volatile uint64_t *host; uint64_t key; };
UMD_MUST_CHECK umdStatus umd_slot_take(struct umd_context *ctx, struct umd_slot *slot_out);
void umd_slot_give(struct umd_context *ctx, struct umd_slot *slot);
/** As umd_slot_give, of a cell that work up to a point of the stream may write: it is not used again before that has ended. Never waits. */
void umd_slot_retire(struct umd_context *ctx, struct umd_slot *slot, struct umd_stream *stream, uint64_t point);
/** The stream goes: what it may still write, if it is not known to have ended, is not used again for the life of the context. */
void umd_slots_forget(struct umd_context *ctx, struct umd_stream *stream);

#endif
