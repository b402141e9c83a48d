/* SPDX-License-Identifier: MIT */
/*
 * vram.c - contiguous ranges of VRAM and of the system aperture. Simplified: first fit over a list of blocks; nothing is moved or
 * evicted. Free memory is always zero: what is freed goes back to the host, which hands out zeroes.
 */
#include <string.h>
#include <sys/mman.h>

#include "fault_plan.h"
#include "kmd_priv.h"

UMD_LOG_MODULE("kmd.vram");

umdStatus petrel_heap_init(struct petrel_heap *heap, const char *name, struct hw_aperture aperture)
{
    struct petrel_block *block = umd_alloc(sizeof(*block));
    if (!block)
        return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    *block = (struct petrel_block){.size_B = aperture.size_B};
    heap->name = name;
    heap->blocks = block;
    heap->cpu = aperture.cpu;
    heap->size_B = heap->free_B = aperture.size_B;
    umd_mutex_init(&heap->lock, "kmd.vram", 60);
    return UMD_SUCCESS;
}

void petrel_heap_fini(struct petrel_heap *heap)
{
    if (!heap->blocks)
        return;
    assert(heap->corrupt.seq || (!heap->blocks->next && !heap->blocks->used));
    for (struct petrel_block *b = heap->blocks, *next; b; b = next) {
        next = b->next && b->next->prev == b ? b->next : NULL; /* as far as the list can be trusted */
        umd_free(b);
    }
    heap->blocks = NULL;
    umd_mutex_fini(&heap->lock);
}

static void stats_locked(const struct petrel_heap *heap, struct petrel_heap_stats *stats)
{
    *stats = (struct petrel_heap_stats){.free_B = heap->free_B};
    for (const struct petrel_block *b = heap->blocks; b; b = b->next) {
        stats->blocks++;
        stats->holes += !b->used;
        if (!b->used && b->size_B > stats->largest_B)
            stats->largest_B = b->size_B;
    }
}

void petrel_heap_get_stats(struct petrel_heap *heap, struct petrel_heap_stats *stats_out)
{
    umd_mutex_lock(&heap->lock);
    stats_locked(heap, stats_out);
    umd_mutex_unlock(&heap->lock);
}

/* ---- The bookkeeping's own soundness ---- */

/* What does not add up: what should be there, and what is. check NULL: all is well. */
struct flaw { const char *check; uint64_t expected, found; };

/* The block between its neighbours, or at the end of the heap. */
static struct flaw flaw_of_locked(const struct petrel_heap *heap, const struct petrel_block *b, bool used)
{
    const uint64_t start = b->prev ? b->prev->start + b->prev->size_B : 0, end = b->next ? b->next->start : heap->size_B;
    const uint64_t free_B = heap->free_B + (used ? b->size_B : 0), least_B = used ? 0 : b->size_B;
    if ((b->prev ? b->prev->next : heap->blocks) != b || (b->next && b->next->prev != b))
        return (struct flaw){"links", 1, 0};
    if (b->used != used)
        return (struct flaw){"used", used, b->used};
    if (b->start != start)
        return (struct flaw){"start", start, b->start};
    if (b->start + b->size_B != end)
        return (struct flaw){"end", end, b->start + b->size_B};
    if (free_B > heap->size_B || free_B < least_B)
        return (struct flaw){"free_B", free_B < least_B ? least_B : heap->size_B, free_B};
    return (struct flaw){0};
}

void petrel_heap_stats_short_of(struct petrel_heap_stats *stats, uint64_t size_B)
{
    const uint64_t left_B = (size_B - 1) & ~(uint64_t)(PETREL_PAGE_SIZE - 1);
    stats->free_B = stats->free_B < left_B ? stats->free_B : left_B;
    stats->largest_B = stats->largest_B < left_B ? stats->largest_B : left_B;
    if (!left_B)
        stats->holes = 0;
}

/* The heap is all contexts': what helps is a new start of the device. */
static umdAdvice corrupt_advice(void)
{
    umdAdvice advice = umd_advice_do(UMD_ERR_MEM_CORRUPT, UMD_ACTION_RESET_DEVICE);
    advice.scope = UMD_SCOPE_DEVICE;
    return advice;
}

static umdStatus corrupt_locked(struct petrel_heap *heap, const struct petrel_block *b, const char *op, const struct flaw *f)
{
    umdStatus st = UMD_FAIL_ADVISED(UMD_ERR_MEM_CORRUPT, corrupt_advice(), (umdRecordId){0},
                                    "heap=%s op=%s check=%s expected=0x%" PRIx64 " found=0x%" PRIx64 " block=0x%" PRIx64 " block_B=%" PRIu64
                                    " free_B=%" PRIu64 " total_B=%" PRIu64, heap->name, op, f->check, f->expected, f->found, b->start, b->size_B,
                                    heap->free_B, heap->size_B);
    heap->corrupt = umd_record_current();
    umdErrorDetail detail = {.size_B = sizeof(detail)};
    if (umdGetErrorDetailById(heap->corrupt, &detail) == UMD_SUCCESS)
        umd_record_pin(&detail, true); /* each later allocation names it */
    return st;
}

/* Where in a free block the range would go; UINT64_MAX: nowhere. */
static uint64_t place(const struct petrel_block *b, uint64_t size_B, uint64_t align_B, bool from_top)
{
    if (b->used || b->size_B < size_B)
        return UINT64_MAX;
    if (from_top)
        return ((b->start + b->size_B - size_B) & ~(align_B - 1)) >= b->start ? (b->start + b->size_B - size_B) & ~(align_B - 1) : UINT64_MAX;
    uint64_t at = (b->start + align_B - 1) & ~(align_B - 1);
    return at + size_B <= b->start + b->size_B ? at : UINT64_MAX;
}

static struct petrel_block *find_fit_locked(struct petrel_heap *heap, uint64_t size_B, uint64_t align_B, bool from_top, uint64_t *at_out)
{
    struct petrel_block *found = NULL;
    for (struct petrel_block *b = heap->blocks; b; b = b->next) {
        uint64_t at = place(b, size_B, align_B, from_top);
        if (at == UINT64_MAX)
            continue;
        found = b;
        *at_out = at;
        if (!from_top)
            break;
    }
    return found;
}

static struct petrel_block *find_locked(struct petrel_heap *heap, uint64_t size_B, uint64_t align_B, bool from_top, uint64_t *at_out)
{
    struct petrel_block *b = find_fit_locked(heap, size_B, align_B, from_top, at_out);
    if (!b && align_B > PETREL_PAGE_SIZE) /* small pages will do */
        b = find_fit_locked(heap, size_B, PETREL_PAGE_SIZE, from_top, at_out);
    return b;
}

/* Cuts [at, at + size) out of a free block with the spare blocks that the caller brought. */
static struct petrel_block *carve_locked(struct petrel_heap *heap, struct petrel_block *b, uint64_t at, uint64_t size_B, struct petrel_block *spare[2])
{
    uint64_t head_B = at - b->start, tail_B = b->start + b->size_B - at - size_B;
    if (head_B) {
        struct petrel_block *rest = spare[0];
        spare[0] = NULL;
        *rest = (struct petrel_block){.start = at, .size_B = b->size_B - head_B, .prev = b, .next = b->next};
        if (rest->next)
            rest->next->prev = rest;
        b->next = rest;
        b->size_B = head_B;
        b = rest;
    }
    if (tail_B) {
        struct petrel_block *rest = spare[1];
        spare[1] = NULL;
        *rest = (struct petrel_block){.start = at + size_B, .size_B = tail_B, .prev = b, .next = b->next};
        if (rest->next)
            rest->next->prev = rest;
        b->next = rest;
        b->size_B = size_B;
    }
    b->used = true;
    heap->free_B -= size_B;
    return b;
}

static umdStatus fail_locked(struct petrel_heap *heap, uint64_t size_B, uint64_t align_B, bool injected)
{
    struct petrel_heap_stats stats;
    stats_locked(heap, &stats);
    if (injected)
        petrel_heap_stats_short_of(&stats, size_B);
    const bool fragmented = stats.free_B >= size_B;
    const umdStatus code = fragmented ? UMD_ERR_MEM_FRAGMENTED : UMD_ERR_MEM_ALLOC_FAILED;
    return UMD_FAIL_ADVISED(code, umd_advice_fit(code, stats.largest_B & ~(uint64_t)(PETREL_PAGE_SIZE - 1)), (umdRecordId){0},
                            "heap=%s size_B=%" PRIu64 " align_B=%" PRIu64 " total_B=%" PRIu64 " free_B=%" PRIu64 " largest_B=%" PRIu64
                            " holes=%u blocks=%u", heap->name, size_B, align_B, heap->size_B, stats.free_B, stats.largest_B, stats.holes, stats.blocks);
}

umdStatus petrel_heap_alloc(struct petrel_heap *heap, uint64_t size_B, uint64_t align_B, bool from_top, struct petrel_block **block_out)
{
    assert(size_B && size_B % PETREL_PAGE_SIZE == 0 && (align_B & (align_B - 1)) == 0);
    struct petrel_block *spare[2] = {umd_alloc(sizeof(**spare)), NULL};
    if (spare[0])
        spare[1] = umd_alloc(sizeof(**spare));
    umdStatus st = UMD_SUCCESS;
    uint64_t at = 0;
    if (!spare[1]) {
        umd_free(spare[0]);
        return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    }
    umd_mutex_lock(&heap->lock);
    struct petrel_block *b = heap->corrupt.seq ? NULL : find_locked(heap, size_B, align_B, from_top, &at);
    const struct flaw flaw = b ? flaw_of_locked(heap, b, false) : (struct flaw){0};
    if (heap->corrupt.seq)
        st = UMD_FAIL_ADVISED(UMD_ERR_MEM_CORRUPT, corrupt_advice(), heap->corrupt, "heap=%s op=alloc size_B=%" PRIu64 " reason=corrupt_before", heap->name,
                              size_B);
    else if (flaw.check)
        st = corrupt_locked(heap, b, "alloc", &flaw);
    else if (b)
        *block_out = carve_locked(heap, b, at, size_B, spare);
    else
        st = fail_locked(heap, size_B, align_B, false);
    umd_mutex_unlock(&heap->lock);
    umd_free(spare[0]);
    umd_free(spare[1]);
    return st;
}

static struct petrel_block *merge_locked(struct petrel_block *a, struct petrel_block *b)
{
    a->size_B += b->size_B;
    a->next = b->next;
    if (a->next)
        a->next->prev = a;
    return b;
}

/* Nobody is there to return a failure to: the next allocation does. */
static bool free_is_sound_locked(struct petrel_heap *heap, const struct petrel_block *block)
{
    const struct flaw flaw = flaw_of_locked(heap, block, true);
    if (!flaw.check)
        return true;
    umd_record_scope_begin();
    umdStatus st = corrupt_locked(heap, block, "free", &flaw);
    UMD_ABSORB(st, "the block stays taken, and each allocation from now on fails because of it");
    umd_record_scope_end();
    return false;
}

void petrel_heap_free(struct petrel_heap *heap, struct petrel_block *block)
{
    struct petrel_block *gone[2] = {NULL, NULL};
    if (!block)
        return;
    umd_mutex_lock(&heap->lock);
    const bool sound = !heap->corrupt.seq && free_is_sound_locked(heap, block);
    umd_mutex_unlock(&heap->lock);
    if (!sound)
        return;
    if (madvise(heap->cpu + block->start, block->size_B, MADV_REMOVE) != 0)
        memset(heap->cpu + block->start, 0, block->size_B);
    umd_mutex_lock(&heap->lock);
    if (heap->corrupt.seq) { /* found out meanwhile, by another's call: the list is left alone */
        umd_mutex_unlock(&heap->lock);
        return;
    }
    block->used = false;
    heap->free_B += block->size_B;
    if (block->next && !block->next->used)
        gone[0] = merge_locked(block, block->next);
    if (block->prev && !block->prev->used)
        gone[1] = merge_locked(block->prev, block);
    umd_mutex_unlock(&heap->lock);
    umd_free(gone[0]);
    umd_free(gone[1]);
}

/* ---- Buffers ---- */

static void bo_free(struct drm_gem_object *obj)
{
    struct petrel_bo *bo = petrel_bo_of(obj);
    petrel_heap_free(bo->heap, bo->block);
    umd_free(bo);
}

static const struct drm_gem_ops bo_ops = {.free = bo_free};

int petrel_bo_create(struct petrel_device *dev, uint64_t size_B, bool system, bool cpu_visible, bool from_top, uint64_t align_B, struct petrel_bo **bo_out)
{
    struct petrel_bo *bo = umd_alloc(sizeof(*bo));
    if (!bo)
        return -ENOMEM;
    drm_gem_init(&bo->base, &bo_ops, size_B);
    bo->dev = dev;
    bo->heap = system ? &dev->sysmem : &dev->vram;
    bo->system = system;
    bo->cpu_visible = cpu_visible;
    bo->map_id = cpu_visible ? atomic_fetch_add(&dev->next_map_id, 1) : 0;
    umdStatus st = petrel_heap_alloc(bo->heap, size_B, align_B, from_top, &bo->block);
    if (st < 0) {
        umd_free(bo);
        return -umdStatusErrno(st);
    }
    *bo_out = bo;
    return 0;
}

/* A fault of ours: the size of the block that the next allocation would be cut from is overwritten. */
static void corrupt_injected(struct petrel_heap *heap, uint64_t size_B, uint64_t align_B)
{
    struct umd_fault_hit hit;
    uint64_t at;
    if (!umd_fault(UMD_FAULT_KMD_VRAM_CORRUPT, (struct umd_fault_where){0}, &hit))
        return;
    umd_mutex_lock(&heap->lock);
    struct petrel_block *b = find_locked(heap, size_B, align_B, false, &at);
    if (b)
        b->size_B += PETREL_PAGE_SIZE;
    umd_mutex_unlock(&heap->lock);
}

static int gem_injected(struct petrel_device *dev, uint64_t size_B, uint64_t align_B)
{
    struct umd_fault_hit hit;
    if (!umd_fault(UMD_FAULT_KMD_VRAM_ALLOC, (struct umd_fault_where){0}, &hit))
        return 0;
    umd_mutex_lock(&dev->vram.lock);
    umdStatus st = fail_locked(&dev->vram, size_B, align_B, true);
    umd_mutex_unlock(&dev->vram.lock);
    return -umdStatusErrno(st);
}

int petrel_gem_create_ioctl(struct drm_file *drm, void *data)
{
    struct drm_petrel_gem_create *args = data;
    struct petrel_device *dev = petrel_device_of(drm->dev);
    const uint32_t place_flags = args->flags & (DRM_PETREL_GEM_VRAM | DRM_PETREL_GEM_SYSTEM);
    KMD_FIELD(args->flags & ~(DRM_PETREL_GEM_VRAM | DRM_PETREL_GEM_SYSTEM | DRM_PETREL_GEM_CPU_VISIBLE), "field=flags value=0x%x", args->flags);
    KMD_FIELD(place_flags != DRM_PETREL_GEM_VRAM && place_flags != DRM_PETREL_GEM_SYSTEM, "field=flags value=0x%x reason=one_of_vram_system", args->flags);
    int ret = petrel_check_lost(dev);
    if (ret)
        return ret;
    const bool system = place_flags == DRM_PETREL_GEM_SYSTEM;
    const uint64_t heap_B = system ? dev->sysmem.size_B : dev->vram.size_B;
    if (args->size_B == 0 || args->size_B > heap_B)
        return -umdStatusErrno(UMD_FAIL_ADVISED(UMD_ERR_MEM_SIZE, umd_advice_fit(UMD_ERR_MEM_SIZE, heap_B), (umdRecordId){0},
                                                "field=size_B value=%" PRIu64 " max=%" PRIu64, (uint64_t)args->size_B, heap_B));
    const uint64_t size_B = (args->size_B + PETREL_PAGE_SIZE - 1) & ~(uint64_t)(PETREL_PAGE_SIZE - 1);
    const uint64_t align_B = size_B >= 1ull << PETREL_HUGE_SHIFT ? 1ull << PETREL_HUGE_SHIFT : PETREL_PAGE_SIZE;
    ret = system ? 0 : gem_injected(dev, size_B, align_B);
    if (ret)
        return ret;
    if (!system)
        corrupt_injected(&dev->vram, size_B, align_B);
    struct petrel_bo *bo;
    ret = petrel_bo_create(dev, size_B, system, args->flags & DRM_PETREL_GEM_CPU_VISIBLE, false, align_B, &bo);
    if (ret)
        return ret;
    uint32_t handle = 0;
    ret = drm_gem_handle_create(drm, &bo->base, &handle);
    if (ret) {
        drm_gem_put(&bo->base);
        return ret;
    }
    args->handle = handle;
    args->size_B = size_B;
    return 0;
}

int petrel_gem_mmap_ioctl(struct drm_file *drm, void *data)
{
    struct drm_petrel_gem_mmap *args = data;
    KMD_FIELD(args->pad, "field=pad value=%u", args->pad);
    struct drm_gem_object *obj = drm_gem_lookup(drm, args->handle);
    if (!obj)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_HANDLE, "object=gem handle=%u", args->handle);
    const struct petrel_bo *bo = petrel_bo_of(obj);
    bool visible = bo->cpu_visible;
    uint64_t offset = petrel_bo_offset(bo, args->handle);
    drm_gem_put(obj);
    KMD_FIELD(!visible, "field=handle value=%u reason=not_cpu_visible", args->handle);
    args->offset = offset;
    return 0;
}
