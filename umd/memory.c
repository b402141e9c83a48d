/* SPDX-License-Identifier: MIT */
/* memory.c - device memory: one GEM buffer an allocation, bound read-write; who freed what is remembered. */
#include "memory.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "context.h"
#include "error.h"
#include "fault_plan.h"
#include "library.h"
#include "stream.h"

UMD_LOG_MODULE("umd.mem");

enum { PAGE_B = 4096, HUGE_B = 2 << 20, SLOTS_PER_PAGE = PAGE_B / 8 };
enum { REACH_MIN_B = 64 * 1024 }; /* so far from an allocation, or as far as it is large, an address may have been meant for it */

static uint64_t round_up(uint64_t v, uint64_t to)
{
    return (v + to - 1) & ~(to - 1);
}

/* ---- Buffers ---- */

static umdStatus bo_map(struct umd_context *ctx, struct umd_bo *bo)
{
    struct drm_petrel_gem_mmap m = { .handle = bo->gem };

    umdStatus st = umd_device_ioctl(ctx->dev, DRM_IOCTL_PETREL_GEM_MMAP, &m);
    if (st < 0)
        return UMD_HOP(st);
    st = umd_winsys_mmap(ctx->dev->file, m.offset, bo->size_B, &bo->map);
    return st < 0 ? UMD_HOP(st) : UMD_SUCCESS;
}

umdStatus umd_bo_bind(struct umd_context *ctx, const struct umd_bo *bo, uint64_t offset_B, uint64_t size_B, uint32_t rights)
{
    struct drm_petrel_vm_bind b = {
        .vm_id = ctx->vm_id, .op = DRM_PETREL_BIND_MAP, .handle = bo->gem, .flags = rights, .offset_B = offset_B,
        .va = bo->va + offset_B, .size_B = size_B,
    };
    umdStatus st = umd_device_ioctl(ctx->dev, DRM_IOCTL_PETREL_VM_BIND, &b);
    return st < 0 ? UMD_HOP(st) : UMD_SUCCESS;
}

umdStatus umd_bo_create(struct umd_context *ctx, const struct umd_bo_desc *desc, struct umd_bo *bo_out)
{
    struct umd_bo bo = { .size_B = round_up(desc->size_B, PAGE_B) };
    struct drm_petrel_gem_create c = { .size_B = bo.size_B, .flags = desc->gem_flags };
    uint64_t align_B = desc->alignment_B > PAGE_B ? desc->alignment_B : PAGE_B;
    struct umd_fault_hit hit;

    assert(desc->size_B && !(align_B & (align_B - 1)));
    umdStatus st = umd_device_ioctl(ctx->dev, DRM_IOCTL_PETREL_GEM_CREATE, &c);
    if (st < 0)
        return UMD_HOP(st);
    bo.gem = c.handle;
    umd_device_account(ctx->dev, (int64_t)bo.size_B);
    if (bo.size_B >= HUGE_B && align_B < HUGE_B)
        align_B = HUGE_B; /* large pages */
    umd_mutex_lock(&ctx->mem_lock);
    if (umd_fault(UMD_FAULT_UMD_VA_CORRUPT, (struct umd_fault_where){ .ctx = ctx->id }, &hit))
        umd_va_scribble(&ctx->va);
    st = umd_va_alloc(&ctx->va, bo.size_B, align_B, &bo.va);
    umd_mutex_unlock(&ctx->mem_lock);
    if (st < 0)
        goto fail;
    if (desc->rights) {
        st = umd_bo_bind(ctx, &bo, 0, bo.size_B, desc->rights);
        if (st < 0)
            goto fail;
        bo.bound = true;
    }
    if (desc->map) {
        st = bo_map(ctx, &bo);
        if (st < 0)
            goto fail;
    }
    *bo_out = bo;
    return UMD_SUCCESS;
fail:
    umd_error_keep(st, umd_bo_destroy(ctx, &bo));
    return UMD_HOP(st);
}

void umd_bo_destroy(struct umd_context *ctx, struct umd_bo *bo)
{
    bool free_va = bo->va;
    umdStatus st;

    if (!bo->gem)
        return;
    if (bo->map)
        umd_winsys_munmap(ctx->dev->file, bo->map, bo->size_B);
    if (bo->bound) {
        struct drm_petrel_vm_bind b = { .vm_id = ctx->vm_id, .op = DRM_PETREL_BIND_UNMAP, .va = bo->va, .size_B = bo->size_B };
        st = umd_device_ioctl(ctx->dev, DRM_IOCTL_PETREL_VM_BIND, &b);
        if (st < 0) {
            UMD_ABSORB(st, "the buffer is closed all the same; its addresses go with the address space");
            free_va = false; /* still mapped: nothing else can be bound there */
        }
    }
    struct drm_gem_close c = { .handle = bo->gem };
    st = umd_winsys_core_ioctl(ctx->dev->file, DRM_IOCTL_GEM_CLOSE, &c);
    if (st < 0)
        UMD_ABSORB(st, "the buffer goes with the device file");
    if (free_va) {
        umd_mutex_lock(&ctx->mem_lock);
        umd_va_free(&ctx->va, bo->va, bo->size_B);
        umd_mutex_unlock(&ctx->mem_lock);
    }
    umd_device_account(ctx->dev, -(int64_t)bo->size_B);
    *bo = (struct umd_bo){ 0 };
}

/* ---- The table of allocations, under mem_lock ---- */

/* Index of the first allocation whose end lies above ptr. */
static uint32_t find_locked(const struct umd_memory *m, uint64_t ptr)
{
    uint32_t lo = 0, hi = m->count;

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (m->live[mid]->bo.va + m->live[mid]->bo.size_B <= ptr)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static umdStatus insert_locked(struct umd_memory *m, struct umd_alloc_entry *e)
{
    if (m->count == m->capacity) {
        uint32_t capacity = m->capacity ? m->capacity * 2 : 64;
        struct umd_alloc_entry **live = umd_alloc(capacity * sizeof(struct umd_alloc_entry *));
        if (!live)
            return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
        if (m->count)
            memcpy(live, m->live, m->count * sizeof(struct umd_alloc_entry *));
        umd_free(m->live);
        m->live = live;
        m->capacity = capacity;
    }
    uint32_t i = find_locked(m, e->bo.va);
    memmove(&m->live[i + 1], &m->live[i], (m->count - i) * sizeof(struct umd_alloc_entry *));
    m->live[i] = e;
    m->count++;
    return UMD_SUCCESS;
}

static void remove_locked(struct umd_memory *m, uint32_t i)
{
    memmove(&m->live[i], &m->live[i + 1], (m->count - i - 1) * sizeof(struct umd_alloc_entry *));
    m->count--;
}

/* The newest freed allocation that held ptr; its last page was all its own. */
static bool find_freed_locked(const struct umd_memory *m, uint64_t ptr, struct umd_freed *out)
{
    for (uint32_t k = 1; k <= UMD_FREED_KEPT; k++) {
        const struct umd_freed *f = &m->freed[(m->freed_next - k) % UMD_FREED_KEPT];
        if (f->va && ptr >= f->va && ptr - f->va < round_up(f->size_B, PAGE_B)) {
            *out = *f;
            return true;
        }
    }
    return false;
}

/* Another context of the device that has ptr in a live allocation, 0: none. Contexts have address spaces of their own, so it is a hint. */
static uint64_t other_owner(struct umd_context *ctx, uint64_t ptr)
{
    struct umd_device *dev = ctx->dev;
    uint64_t id = 0;

    umd_mutex_lock(&dev->lock);
    for (struct umd_context *c = dev->contexts; c && !id; c = c->next) {
        if (c == ctx)
            continue;
        umd_mutex_lock(&c->mem_lock);
        uint32_t i = find_locked(&c->mem, ptr);
        if (i < c->mem.count && c->mem.live[i]->bo.va <= ptr)
            id = c->id;
        umd_mutex_unlock(&c->mem_lock);
    }
    umd_mutex_unlock(&dev->lock);
    return id;
}

/* Why a pointer is not the start of a live allocation; drops mem_lock. */
static umdStatus bad_pointer_unlock(struct umd_context *ctx, umdDevicePtr ptr, const char *what, bool freeing)
{
    struct umd_memory *m = &ctx->mem;
    struct umd_freed f;
    uint32_t i = find_locked(m, ptr);
    uint64_t va = 0, size_B = 0;

    if (i < m->count && m->live[i]->bo.va <= ptr) {
        va = m->live[i]->bo.va;
        size_B = m->live[i]->size_B;
    }
    bool freed = !va && find_freed_locked(m, ptr, &f);
    umd_mutex_unlock(&ctx->mem_lock);
    if (va)
        return UMD_FAIL(UMD_ERR_MEM_POINTER, "argument=%s ptr=0x%" PRIx64 " inside=0x%" PRIx64 " size_B=%" PRIu64, what, ptr, va, size_B);
    if (freed && freeing && f.va == ptr)
        return UMD_FAIL(UMD_ERR_MEM_DOUBLE_FREE, "ptr=0x%" PRIx64 " size_B=%" PRIu64 " freed_ns=%" PRIu64 " freed_by_tid=%u", ptr, f.size_B,
                        f.when_ns, f.tid);
    if (freed)
        return UMD_FAIL(UMD_ERR_MEM_POINTER, "argument=%s ptr=0x%" PRIx64 " freed=0x%" PRIx64 " freed_ns=%" PRIu64 " freed_by_tid=%u", what,
                        ptr, f.va, f.when_ns, f.tid);
    uint64_t owner = other_owner(ctx, ptr);
    if (owner)
        return UMD_FAIL(UMD_ERR_MEM_POINTER, "argument=%s ptr=0x%" PRIx64 " context=%" PRIu64 " owner_context=%" PRIu64
                        " reason=\"an allocation of another context\"", what, ptr, ctx->id, owner);
    return UMD_FAIL(UMD_ERR_MEM_POINTER, "argument=%s ptr=0x%" PRIx64, what, ptr);
}

umdStatus umd_memory_pin(struct umd_context *ctx, umdDevicePtr ptr, uint64_t size_B, const char *what, struct umd_alloc_entry **out)
{
    struct umd_memory *m = &ctx->mem;

    umd_mutex_lock(&ctx->mem_lock);
    uint32_t i = find_locked(m, ptr);
    if (i == m->count || m->live[i]->bo.va > ptr)
        return bad_pointer_unlock(ctx, ptr, what, false);
    struct umd_alloc_entry *e = m->live[i];
    uint64_t offset_B = ptr - e->bo.va;
    if (offset_B > e->size_B || size_B > e->size_B - offset_B) {
        uint64_t va = e->bo.va, has_B = e->size_B;
        umd_mutex_unlock(&ctx->mem_lock);
        return UMD_FAIL(UMD_ERR_COPY_RANGE, "argument=%s ptr=0x%" PRIx64 " size_B=%" PRIu64 " allocation=0x%" PRIx64 " allocation_B=%" PRIu64
                        " fits_B=%" PRIu64, what, ptr, size_B, va, has_B, offset_B > has_B ? 0 : has_B - offset_B);
    }
    e->pins++;
    umd_mutex_unlock(&ctx->mem_lock);
    *out = e;
    return UMD_SUCCESS;
}

void umd_memory_unpin(struct umd_context *ctx, struct umd_alloc_entry *e)
{
    umd_mutex_lock(&ctx->mem_lock);
    assert(e->pins);
    if (!--e->pins)
        umd_cond_broadcast(&ctx->mem_changed);
    umd_mutex_unlock(&ctx->mem_lock);
}

/* The live allocation at va, or the nearer of those beside it, if it is within reach. */
static void look_beside_locked(const struct umd_memory *m, uint64_t va, struct umd_address *out)
{
    uint32_t i = find_locked(m, va);
    const struct umd_alloc_entry *above = i < m->count ? m->live[i] : NULL, *below = i ? m->live[i - 1] : NULL;

    if (above && above->bo.va <= va) { /* holds it */
        below = above;
        above = NULL;
    }
    const uint64_t end = below ? below->bo.va + below->size_B : 0;
    const uint64_t over_B = below && va >= end ? va - end + 1 : 0, under_B = above ? above->bo.va - va : 0;
    const bool before = above && (!below || under_B < over_B);
    const struct umd_alloc_entry *e = before ? above : below;
    const uint64_t far_B = before ? under_B : over_B;
    if (!e || far_B > (e->size_B > REACH_MIN_B ? e->size_B : REACH_MIN_B))
        return;
    out->live_va = e->bo.va;
    out->live_B = e->size_B;
    out->overrun_B = before ? 0 : over_B;
    out->underrun_B = before ? under_B : 0;
}

void umd_memory_look(struct umd_context *ctx, uint64_t va, struct umd_address *out)
{
    *out = (struct umd_address){ 0 };
    umd_mutex_lock(&ctx->mem_lock);
    look_beside_locked(&ctx->mem, va, out);
    const bool inside = out->live_va && !out->overrun_B && !out->underrun_B;
    const bool freed = !inside && find_freed_locked(&ctx->mem, va, &out->freed);
    umd_mutex_unlock(&ctx->mem_lock);
    if (!out->live_va && !freed)
        out->owner_context = other_owner(ctx, va);
}

/* ---- Allocate, free, map ---- */

static umdStatus check_alloc(struct umd_context *ctx, uint64_t size_B, uint64_t alignment_B, uint32_t flags)
{
    const struct drm_petrel_info *info = &ctx->dev->info;
    uint64_t limit_B = flags & UMD_MEM_SYSTEM ? info->sysmem_size_B : info->vram_size_B;

    if (flags & ~(UMD_MEM_HOST_VISIBLE | UMD_MEM_SYSTEM))
        return UMD_FAIL(UMD_ERR_PARAM_FLAGS, "argument=flags value=0x%x known=0x%x", flags, UMD_MEM_HOST_VISIBLE | UMD_MEM_SYSTEM);
    if (!size_B || size_B > limit_B)
        return UMD_FAIL_ADVISED(UMD_ERR_MEM_SIZE, umd_advice_fit(UMD_ERR_MEM_SIZE, limit_B), (umdRecordId){ 0 }, "size_B=%" PRIu64 " limit_B=%" PRIu64,
                                size_B, limit_B);
    if (alignment_B & (alignment_B - 1) || alignment_B > HUGE_B)
        return UMD_FAIL(UMD_ERR_MEM_ALIGNMENT, "alignment_B=%" PRIu64 " max_B=%d", alignment_B, HUGE_B);
    return UMD_SUCCESS;
}

static umdStatus mem_alloc(struct umd_context *ctx, uint64_t size_B, uint64_t alignment_B, uint32_t flags, umdDevicePtr *ptr_out)
{
    bool visible = flags & (UMD_MEM_HOST_VISIBLE | UMD_MEM_SYSTEM);
    struct umd_bo_desc desc = {
        .size_B = size_B, .alignment_B = alignment_B, .rights = DRM_PETREL_BIND_READ | DRM_PETREL_BIND_WRITE,
        .gem_flags = (flags & UMD_MEM_SYSTEM ? DRM_PETREL_GEM_SYSTEM : DRM_PETREL_GEM_VRAM) | (visible ? DRM_PETREL_GEM_CPU_VISIBLE : 0),
    };
    umdStatus st = check_alloc(ctx, size_B, alignment_B, flags);
    if (st < 0)
        return UMD_HOP(st);
    struct umd_alloc_entry *e = umd_alloc(sizeof(*e));
    if (!e)
        return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    e->size_B = size_B;
    e->flags = flags | (visible ? UMD_MEM_HOST_VISIBLE : 0);
    st = umd_bo_create(ctx, &desc, &e->bo);
    if (st < 0) {
        umd_free(e);
        return UMD_HOP(st);
    }
    umd_mutex_lock(&ctx->mem_lock);
    st = insert_locked(&ctx->mem, e);
    umd_mutex_unlock(&ctx->mem_lock);
    if (st < 0) {
        umd_error_keep(st, umd_bo_destroy(ctx, &e->bo));
        umd_free(e);
        return UMD_HOP(st);
    }
    *ptr_out = e->bo.va;
    UMD_LOG(UMD_LOG_DEBUG, "allocated ptr=0x%" PRIx64 " size_B=%" PRIu64 " flags=0x%x", e->bo.va, size_B, flags);
    return UMD_SUCCESS;
}

umdStatus umdMemAlloc(umdContext context, uint64_t size_B, uint64_t alignment_B, uint32_t flags, umdDevicePtr *ptr_out)
{
    struct umd_call call;
    struct umd_context *ctx;

    umdStatus st = UMD_CALL_ENTER(&call, "context=0x%" PRIx64 " size_B=%" PRIu64 " alignment_B=%" PRIu64 " flags=0x%x", context.id, size_B,
                                  alignment_B, flags);
    if (st < 0)
        return umd_call_leave(&call, st);
    if (!ptr_out)
        return umd_call_leave(&call, UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=ptr_out"));
    st = umd_context_get(context, &ctx);
    if (st == UMD_SUCCESS) {
        st = mem_alloc(ctx, size_B, alignment_B, flags, ptr_out);
        umd_object_put(&ctx->obj);
    }
    return umd_call_leave(&call, st);
}

static void entry_destroy(struct umd_context *ctx, struct umd_alloc_entry *e)
{
    umd_bo_destroy(ctx, &e->bo);
    umd_free(e);
}

static umdStatus mem_free(struct umd_context *ctx, umdDevicePtr ptr)
{
    struct umd_memory *m = &ctx->mem;

    umd_mutex_lock(&ctx->mem_lock);
    uint32_t i = find_locked(m, ptr);
    if (i == m->count || m->live[i]->bo.va != ptr)
        return bad_pointer_unlock(ctx, ptr, "ptr", true);
    struct umd_alloc_entry *e = m->live[i];
    remove_locked(m, i);
    struct umd_freed *f = &m->freed[m->freed_next++ % UMD_FREED_KEPT];
    *f = (struct umd_freed){ .va = ptr, .size_B = e->size_B, .when_ns = umd_sys()->mono_ns(), .tid = umd_sys()->tid() };
    while (e->pins)
        (void)umd_cond_wait(&ctx->mem_changed, &ctx->mem_lock, UINT64_MAX);
    umd_mutex_unlock(&ctx->mem_lock);
    umd_context_idle(ctx);
    UMD_LOG(UMD_LOG_DEBUG, "freed ptr=0x%" PRIx64 " size_B=%" PRIu64, ptr, e->size_B);
    entry_destroy(ctx, e);
    return UMD_SUCCESS;
}

umdStatus umdMemFree(umdContext context, umdDevicePtr ptr)
{
    struct umd_call call;
    struct umd_context *ctx;

    umdStatus st = UMD_CALL_ENTER(&call, "context=0x%" PRIx64 " ptr=0x%" PRIx64, context.id, ptr);
    if (st < 0)
        return umd_call_leave(&call, st);
    /* A destroy call: it works in failed contexts and on lost devices too. */
    st = umd_context_get_any(context, &ctx);
    if (st == UMD_SUCCESS) {
        st = ptr ? mem_free(ctx, ptr) : UMD_SUCCESS;
        umd_object_put(&ctx->obj);
    }
    return umd_call_leave(&call, st);
}

static umdStatus mem_map(struct umd_context *ctx, umdDevicePtr ptr, void **host_out)
{
    struct umd_memory *m = &ctx->mem;
    umdStatus st = UMD_SUCCESS;

    umd_mutex_lock(&ctx->mem_lock);
    uint32_t i = find_locked(m, ptr);
    if (i == m->count || m->live[i]->bo.va != ptr)
        return bad_pointer_unlock(ctx, ptr, "ptr", false);
    struct umd_alloc_entry *e = m->live[i];
    if (!(e->flags & UMD_MEM_HOST_VISIBLE)) {
        uint32_t flags = e->flags;
        umd_mutex_unlock(&ctx->mem_lock);
        return UMD_FAIL(UMD_ERR_PARAM_FLAGS, "ptr=0x%" PRIx64 " flags=0x%x needed=UMD_MEM_HOST_VISIBLE", ptr, flags);
    }
    if (!e->bo.map)
        st = bo_map(ctx, &e->bo);
    if (st == UMD_SUCCESS)
        *host_out = e->bo.map;
    umd_mutex_unlock(&ctx->mem_lock);
    return st < 0 ? UMD_HOP(st) : UMD_SUCCESS;
}

umdStatus umdMemMap(umdContext context, umdDevicePtr ptr, void **host_out)
{
    struct umd_call call;
    struct umd_context *ctx;

    umdStatus st = UMD_CALL_ENTER(&call, "context=0x%" PRIx64 " ptr=0x%" PRIx64, context.id, ptr);
    if (st < 0)
        return umd_call_leave(&call, st);
    if (!host_out)
        return umd_call_leave(&call, UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=host_out"));
    st = umd_context_get(context, &ctx);
    if (st == UMD_SUCCESS) {
        st = mem_map(ctx, ptr, host_out);
        umd_object_put(&ctx->obj);
    }
    return umd_call_leave(&call, st);
}

/* ---- Pools of the driver ---- */

umdStatus umd_readback_take(struct umd_context *ctx, struct umd_bo *bo_out)
{
    struct umd_bo_desc desc = {
        .size_B = UMD_READBACK_B, .gem_flags = DRM_PETREL_GEM_VRAM | DRM_PETREL_GEM_CPU_VISIBLE,
        .rights = DRM_PETREL_BIND_READ | DRM_PETREL_BIND_WRITE, .map = true,
    };

    umd_mutex_lock(&ctx->mem_lock);
    if (ctx->mem.readback_count) {
        *bo_out = ctx->mem.readback[--ctx->mem.readback_count];
        umd_mutex_unlock(&ctx->mem_lock);
        return UMD_SUCCESS;
    }
    umd_mutex_unlock(&ctx->mem_lock);
    umdStatus st = umd_bo_create(ctx, &desc, bo_out);
    return st < 0 ? UMD_HOP(st) : UMD_SUCCESS;
}

void umd_readback_give(struct umd_context *ctx, struct umd_bo *bo)
{
    umd_mutex_lock(&ctx->mem_lock);
    bool kept = ctx->mem.readback_count < UMD_READBACK_KEPT;
    if (kept)
        ctx->mem.readback[ctx->mem.readback_count++] = *bo;
    umd_mutex_unlock(&ctx->mem_lock);
    if (!kept)
        umd_bo_destroy(ctx, bo);
}

/* One more page of cells. */
static umdStatus slots_grow(struct umd_context *ctx)
{
    struct umd_bo_desc desc = {
        .size_B = PAGE_B, .gem_flags = DRM_PETREL_GEM_VRAM | DRM_PETREL_GEM_CPU_VISIBLE,
        .rights = DRM_PETREL_BIND_READ | DRM_PETREL_BIND_WRITE, .map = true,
    };
    struct umd_memory *m = &ctx->mem;
    struct umd_bo page;

    umdStatus st = umd_bo_create(ctx, &desc, &page);
    if (st < 0)
        return UMD_HOP(st);
    umd_mutex_lock(&ctx->mem_lock);
    uint32_t pages = m->slot_page_count + 1;
    struct umd_bo *page_list = umd_alloc(pages * sizeof(*page_list));
    uint64_t *free_list = page_list ? umd_alloc(pages * SLOTS_PER_PAGE * sizeof(*free_list)) : NULL;
    struct umd_retired_slot *retired = free_list ? umd_alloc(pages * SLOTS_PER_PAGE * sizeof(*retired)) : NULL; /* to retire cannot fail */
    if (!retired) {
        umd_mutex_unlock(&ctx->mem_lock);
        umd_free(page_list);
        umd_free(free_list);
        st = UMD_ERR_MEM_HOST_ALLOC_FAILED;
        umd_error_keep(st, umd_bo_destroy(ctx, &page));
        return UMD_HOP(st);
    }
    if (m->slot_page_count)
        memcpy(page_list, m->slot_pages, m->slot_page_count * sizeof(*page_list));
    if (m->slots_free_count)
        memcpy(free_list, m->slots_free, m->slots_free_count * sizeof(*free_list));
    if (m->slots_retired_count)
        memcpy(retired, m->slots_retired, m->slots_retired_count * sizeof(*retired));
    umd_free(m->slot_pages);
    umd_free(m->slots_free);
    umd_free(m->slots_retired);
    m->slot_pages = page_list;
    m->slots_free = free_list;
    m->slots_retired = retired;
    m->slot_pages[m->slot_page_count] = page;
    for (uint32_t i = SLOTS_PER_PAGE; i-- > 0;)
        m->slots_free[m->slots_free_count++] = (uint64_t)m->slot_page_count << 16 | i;
    m->slot_page_count++;
    umd_mutex_unlock(&ctx->mem_lock);
    return UMD_SUCCESS;
}

/* What has ended is free again. A stream: all of its own leave the list. */
static void collect_locked(struct umd_memory *m, const struct umd_stream *gone)
{
    for (uint32_t i = 0; i < m->slots_retired_count;) {
        const struct umd_retired_slot r = m->slots_retired[i];
        const bool ended = umd_stream_ended(r.stream, r.point);
        if (!ended && r.stream != gone) {
            i++;
            continue;
        }
        if (ended)
            m->slots_free[m->slots_free_count++] = r.key;
        m->slots_retired[i] = m->slots_retired[--m->slots_retired_count];
    }
}

/* The first and the last point of a retired cell, of the stream with the lowest number above *above_io. NULL: there is none. */
static struct umd_stream *retired_of(struct umd_context *ctx, uint32_t *above_io, uint64_t *first_out, uint64_t *last_out)
{
    const struct umd_memory *m = &ctx->mem;
    struct umd_stream *s;

    umd_mutex_lock(&ctx->mem_lock);
    do {
        s = NULL;
        *first_out = UINT64_MAX;
        *last_out = 0;
        for (uint32_t i = 0; i < m->slots_retired_count; i++)
            if (m->slots_retired[i].stream->number > *above_io && (!s || m->slots_retired[i].stream->number < s->number))
                s = m->slots_retired[i].stream;
        for (uint32_t i = 0; s && i < m->slots_retired_count; i++)
            if (m->slots_retired[i].stream == s) {
                const uint64_t point = m->slots_retired[i].point;
                *first_out = point < *first_out ? point : *first_out;
                *last_out = point > *last_out ? point : *last_out;
            }
        if (s)
            *above_io = s->number;
    } while (s && !umd_object_tryref(&s->obj)); /* it is going, and its cells with it */
    umd_mutex_unlock(&ctx->mem_lock);
    return s;
}

/* Asks the kernel driver what has ended meanwhile. True: something has. No lock held. */
static bool poll_retired(struct umd_context *ctx)
{
    uint64_t first, last;
    uint32_t above = 0;
    struct umd_stream *s;
    bool any = false;

    while ((s = retired_of(ctx, &above, &first, &last))) {
        any = umd_stream_poll(s, last) || umd_stream_poll(s, first) || any;
        umd_object_put(&s->obj);
    }
    return any;
}

umdStatus umd_slot_take(struct umd_context *ctx, struct umd_slot *slot_out)
{
    struct umd_memory *m = &ctx->mem;

    for (;;) {
        umd_mutex_lock(&ctx->mem_lock);
        if (!m->slots_free_count)
            collect_locked(m, NULL);
        if (m->slots_free_count) {
            uint64_t key = m->slots_free[--m->slots_free_count];
            const struct umd_bo *page = &m->slot_pages[key >> 16];
            uint32_t index = (uint32_t)key & 0xffffu;
            *slot_out = (struct umd_slot){ .va = page->va + index * 8u, .host = (volatile uint64_t *)page->map + index, .key = key };
            umd_mutex_unlock(&ctx->mem_lock);
            return UMD_SUCCESS;
        }
        umd_mutex_unlock(&ctx->mem_lock);
        if (poll_retired(ctx))
            continue; /* there is one now, unless another thread was faster */
        umdStatus st = slots_grow(ctx);
        if (st < 0)
            return UMD_HOP(st);
    }
}

void umd_slot_give(struct umd_context *ctx, struct umd_slot *slot)
{
    if (!slot->va)
        return;
    umd_mutex_lock(&ctx->mem_lock);
    ctx->mem.slots_free[ctx->mem.slots_free_count++] = slot->key;
    umd_mutex_unlock(&ctx->mem_lock);
    *slot = (struct umd_slot){ 0 };
}

void umd_slot_retire(struct umd_context *ctx, struct umd_slot *slot, struct umd_stream *s, uint64_t point)
{
    struct umd_memory *m = &ctx->mem;

    if (umd_stream_ended(s, point)) {
        umd_slot_give(ctx, slot);
        return;
    }
    umd_mutex_lock(&ctx->mem_lock);
    m->slots_retired[m->slots_retired_count++] = (struct umd_retired_slot){ .key = slot->key, .stream = s, .point = point };
    umd_mutex_unlock(&ctx->mem_lock);
    *slot = (struct umd_slot){ 0 };
}

void umd_slots_forget(struct umd_context *ctx, struct umd_stream *s)
{
    umd_mutex_lock(&ctx->mem_lock);
    collect_locked(&ctx->mem, s);
    umd_mutex_unlock(&ctx->mem_lock);
}

void umd_memory_fini(struct umd_context *ctx)
{
    struct umd_memory *m = &ctx->mem;
    uint64_t leaked_B = 0;
    uint32_t leaked = m->count;

    for (uint32_t i = 0; i < leaked; i++) {
        leaked_B += m->live[i]->size_B;
        entry_destroy(ctx, m->live[i]);
    }
    m->count = 0;
    if (leaked)
        UMD_LOG(UMD_LOG_INFO, "freed with the context count=%u size_B=%" PRIu64, leaked, leaked_B);
    while (m->readback_count)
        umd_bo_destroy(ctx, &m->readback[--m->readback_count]);
    assert(!m->slots_retired_count); /* all streams are gone */
    for (uint32_t i = 0; i < m->slot_page_count; i++)
        umd_bo_destroy(ctx, &m->slot_pages[i]);
    umd_free(m->slot_pages);
    umd_free(m->slots_free);
    umd_free(m->slots_retired);
    umd_free(m->live);
    *m = (struct umd_memory){ 0 };
}
