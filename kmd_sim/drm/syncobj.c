/* SPDX-License-Identifier: MIT */
/* syncobj.c - binary and timeline sync objects, and waiting for them. errno as the kernel's documentation says. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "../usercopy.h"
#include "drm_core.h"
#include "record.h"

UMD_LOG_MODULE("kmd.drm");

#define SYNCOBJ_HANDLES_MAX 65536u
#define SYNCOBJ_ARRAY_MAX 4096u
#define TRANSFER_WAIT_NS 5000000000ull /* the kernel's limit, too, for a wait that has no time-out of its own */

struct drm_syncobj *drm_syncobj_get(struct drm_syncobj *sync)
{
    atomic_fetch_add_explicit(&sync->refs, 1, memory_order_relaxed);
    return sync;
}

void drm_syncobj_put(struct drm_syncobj *sync)
{
    if (sync && atomic_fetch_sub_explicit(&sync->refs, 1, memory_order_acq_rel) == 1) {
        dma_fence_put(sync->fence);
        umd_free(sync);
    }
}

struct drm_syncobj *drm_syncobj_lookup(struct drm_file *file, uint32_t handle)
{
    umd_mutex_lock(&file->lock);
    struct drm_syncobj *sync = drm_idr_find(&file->syncobjs, handle);
    if (sync)
        drm_syncobj_get(sync);
    umd_mutex_unlock(&file->lock);
    return sync;
}

static void publish(struct dma_fence_domain *domain)
{
    if (domain->published)
        domain->published(domain);
}

void drm_syncobj_replace(struct drm_syncobj *sync, struct dma_fence *fence)
{
    umd_mutex_lock(&sync->domain->lock);
    struct dma_fence *old = sync->fence;
    sync->fence = fence;
    umd_cond_broadcast(&sync->domain->cond);
    umd_mutex_unlock(&sync->domain->lock);
    dma_fence_put(old);
    if (fence)
        publish(sync->domain);
}

void drm_syncobj_add_prepared(struct drm_syncobj *sync, struct dma_fence_chain *chain, struct dma_fence *fence, uint64_t point)
{
    umd_mutex_lock(&sync->domain->lock);
    struct dma_fence *old = sync->fence;
    sync->fence = dma_fence_chain_init_locked(chain, old, fence, point);
    struct dma_fence *keep = dma_fence_get(sync->fence);
    umd_cond_broadcast(&sync->domain->cond);
    umd_mutex_unlock(&sync->domain->lock);
    dma_fence_put(old);
    dma_fence_chain_activate(chain);
    dma_fence_put(keep);
    publish(sync->domain);
}

int drm_syncobj_add_point(struct drm_syncobj *sync, struct dma_fence *fence, uint64_t point)
{
    struct dma_fence_chain *chain = dma_fence_chain_alloc();
    if (!chain) {
        dma_fence_put(fence);
        return -ENOMEM;
    }
    drm_syncobj_add_prepared(sync, chain, fence, point);
    return 0;
}

bool drm_sync_ref_resolve_locked(struct drm_sync_ref *ref)
{
    struct drm_syncobj *sync = ref->sync;
    if (ref->resolved)
        return true;
    umd_mutex_assert_held(&sync->domain->lock);
    if (!sync->fence)
        return false;
    if (ref->point == 0) {
        ref->fence = dma_fence_get(sync->fence);
        ref->resolved = true;
        return true;
    }
    struct dma_fence_chain *head = dma_fence_to_chain(sync->fence);
    if (head)
        ref->resolved = dma_fence_chain_find_locked(head, ref->point, &ref->fence);
    return ref->resolved;
}

bool drm_sync_ref_resolve(struct drm_sync_ref *ref)
{
    umd_mutex_lock(&ref->sync->domain->lock);
    bool resolved = drm_sync_ref_resolve_locked(ref);
    umd_mutex_unlock(&ref->sync->domain->lock);
    return resolved;
}

void drm_sync_ref_fini(struct drm_sync_ref *ref)
{
    dma_fence_put(ref->fence);
    drm_syncobj_put(ref->sync);
    memset(ref, 0, sizeof(*ref));
}

/* ---- Waiting ---- */

static bool wait_done_locked(struct drm_wait *wait)
{
    uint32_t done = 0, first = UINT32_MAX;
    for (uint32_t i = 0; i < wait->count; i++) {
        struct drm_sync_ref *ref = &wait->refs[i];
        drm_sync_ref_resolve_locked(ref);
        if (wait->available ? !ref->resolved : !drm_sync_ref_done(ref))
            continue;
        done++;
        bool failed = drm_sync_ref_done(ref) && ref->fence && dma_fence_inner(ref->fence)->error;
        if (first == UINT32_MAX && (!wait->all || failed))
            first = i;
    }
    bool failed_early = wait->all && wait->stop_on_error && first != UINT32_MAX;
    if ((wait->all ? done < wait->count : done == 0) && !failed_early)
        return false;
    wait->first = first == UINT32_MAX ? 0 : first;
    return true;
}

int drm_wait_refs(struct drm_device *dev, struct drm_wait *wait)
{
    bool stuck = false, slept = false;
    int ret;
    umd_mutex_lock(&dev->fences.lock);
    for (;;) {
        ret = wait_done_locked(wait) ? 0 : -ETIME;
        if (ret == 0 || stuck)
            break;
        umd_mutex_unlock(&dev->fences.lock);
        uint64_t now = wait->deadline == UINT64_MAX ? 0 : wait->now(dev);
        uint64_t left = wait->deadline == UINT64_MAX ? UINT64_MAX : wait->deadline - now;
        bool over = now >= wait->deadline;
        bool alive = over || !dev->stepped || dev->driver->wait_step(dev, left);
        umd_mutex_lock(&dev->fences.lock);
        /* Nothing runs and nobody else can submit: an endless wait would never end, a finite one has only to pass. */
        if (over || !alive) {
            stuck = true;
        } else if (!dev->stepped && !wait_done_locked(wait)) {
            slept = true;
            bool woken = umd_cond_wait(&dev->fences.cond, &dev->fences.lock, left < DRM_WAIT_SLICE_NS ? left : DRM_WAIT_SLICE_NS);
            if (!woken && dev->driver->wait_step) {
                umd_mutex_unlock(&dev->fences.lock);
                stuck = !dev->driver->wait_step(dev, 0);
                umd_mutex_lock(&dev->fences.lock);
            }
        }
    }
    umd_mutex_unlock(&dev->fences.lock);
    if (slept)
        usercopy_begin(); /* much may have happened meanwhile, a new signal handler too */
    return ret;
}

static uint64_t host_now(struct drm_device *dev)
{
    (void)dev;
    return umd_sys()->mono_ns();
}

static void refs_free(struct drm_sync_ref *refs, uint32_t count)
{
    for (uint32_t i = 0; refs && i < count; i++)
        drm_sync_ref_fini(&refs[i]);
    umd_free(refs);
}

/* Arrays of handles and points of a caller, as references. */
static int refs_get(struct drm_file *file, uint64_t handles, uint64_t points, uint32_t count, struct drm_sync_ref **refs_out)
{
    if (count > SYNCOBJ_ARRAY_MAX)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, "field=count value=%u max=%u", count, SYNCOBJ_ARRAY_MAX);
    struct drm_sync_ref *refs = umd_alloc(count * sizeof(*refs));
    if (!refs)
        return -ENOMEM;
    int ret = 0;
    for (uint32_t i = 0; i < count && ret == 0; i++) {
        uint32_t handle = 0;
        ret = copy_from_user(&handle, handles + i * sizeof(handle), sizeof(handle), "handles");
        if (ret == 0 && points)
            ret = copy_from_user(&refs[i].point, points + i * sizeof(uint64_t), sizeof(uint64_t), "points");
        if (ret == 0 && !(refs[i].sync = drm_syncobj_lookup(file, handle)))
            ret = UMD_FAIL_ERRNO(UMD_ERR_UAPI_HANDLE, "object=syncobj index=%u handle=%u", i, handle);
    }
    if (ret) {
        refs_free(refs, count);
        return ret;
    }
    *refs_out = refs;
    return 0;
}

static int wait_common(struct drm_file *file, uint64_t points, struct drm_syncobj_wait *args)
{
    const uint32_t known = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL | DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT |
                           (points ? DRM_SYNCOBJ_WAIT_FLAGS_WAIT_AVAILABLE : 0);
    struct drm_sync_ref *refs = NULL;
    if (args->flags & ~known)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, "field=flags value=0x%x known=0x%x", args->flags, known);
    if (args->flags & DRM_SYNCOBJ_WAIT_FLAGS_WAIT_AVAILABLE)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, "field=flags value=0x%x reason=wait_available_unsupported", args->flags);
    if (args->pad)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, "field=pad value=%u", args->pad);
    if (args->count_handles == 0)
        return 0;
    int ret = refs_get(file, args->handles, points, args->count_handles, &refs);
    if (ret)
        return ret;
    struct drm_wait wait = {
        .refs = refs,
        .count = args->count_handles,
        .all = args->flags & DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL,
        .now = host_now,
        .deadline = args->timeout_nsec < 0 ? 0 : args->timeout_nsec == INT64_MAX ? UINT64_MAX : (uint64_t)args->timeout_nsec,
    };
    for (uint32_t i = 0; i < wait.count && !(args->flags & DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT); i++) {
        if (!drm_sync_ref_resolve(&refs[i])) {
            ret = UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, "field=handles index=%u point=%" PRIu64 " reason=not_submitted", i, refs[i].point);
            break;
        }
    }
    if (ret == 0)
        ret = drm_wait_refs(file->dev, &wait);
    if (ret == 0)
        args->first_signaled = wait.first;
    refs_free(refs, args->count_handles);
    return ret;
}

int drm_syncobj_wait_ioctl(struct drm_file *file, void *data)
{
    return wait_common(file, 0, data);
}

int drm_syncobj_timeline_wait_ioctl(struct drm_file *file, void *data)
{
    struct drm_syncobj_timeline_wait *args = data;
    struct drm_syncobj_wait plain = {
        .handles = args->handles, .timeout_nsec = args->timeout_nsec, .count_handles = args->count_handles,
        .flags = args->flags, .first_signaled = args->first_signaled, .pad = args->pad,
    };
    if (args->count_handles && !args->points)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_POINTER, "field=points access=read null=1");
    int ret = wait_common(file, args->points, &plain);
    args->first_signaled = plain.first_signaled;
    return ret;
}

/* ---- The other ioctls ---- */

int drm_syncobj_create_ioctl(struct drm_file *file, void *data)
{
    struct drm_syncobj_create *args = data;
    if (args->flags & ~(uint32_t)DRM_SYNCOBJ_CREATE_SIGNALED)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, "field=flags value=0x%x", args->flags);
    struct drm_syncobj *sync = umd_alloc(sizeof(*sync));
    if (!sync)
        return -ENOMEM;
    sync->domain = &file->dev->fences;
    atomic_init(&sync->refs, 1);
    if (args->flags & DRM_SYNCOBJ_CREATE_SIGNALED && !(sync->fence = dma_fence_stub_create(sync->domain))) {
        drm_syncobj_put(sync);
        return -ENOMEM;
    }
    umd_mutex_lock(&file->lock);
    int ret = drm_idr_add(&file->syncobjs, sync, SYNCOBJ_HANDLES_MAX, &args->handle);
    umd_mutex_unlock(&file->lock);
    if (ret)
        drm_syncobj_put(sync);
    return ret;
}

int drm_syncobj_destroy_ioctl(struct drm_file *file, void *data)
{
    struct drm_syncobj_destroy *args = data;
    if (args->pad)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, "field=pad value=%u", args->pad);
    umd_mutex_lock(&file->lock);
    struct drm_syncobj *sync = drm_idr_remove(&file->syncobjs, args->handle);
    umd_mutex_unlock(&file->lock);
    if (!sync)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, "field=handle value=%u reason=unknown", args->handle);
    drm_syncobj_put(sync);
    return 0;
}

static int array_get(struct drm_file *file, const struct drm_syncobj_array *args, struct drm_sync_ref **refs_out)
{
    if (args->pad)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, "field=pad value=%u", args->pad);
    if (args->count_handles == 0)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, "field=count_handles value=0");
    return refs_get(file, args->handles, 0, args->count_handles, refs_out);
}

int drm_syncobj_reset_ioctl(struct drm_file *file, void *data)
{
    const struct drm_syncobj_array *args = data;
    struct drm_sync_ref *refs = NULL;
    int ret = array_get(file, args, &refs);
    if (ret)
        return ret;
    for (uint32_t i = 0; i < args->count_handles; i++)
        drm_syncobj_replace(refs[i].sync, NULL);
    refs_free(refs, args->count_handles);
    return 0;
}

int drm_syncobj_signal_ioctl(struct drm_file *file, void *data)
{
    const struct drm_syncobj_array *args = data;
    struct drm_sync_ref *refs = NULL;
    int ret = array_get(file, args, &refs);
    if (ret)
        return ret;
    struct dma_fence *stub = dma_fence_stub_create(&file->dev->fences);
    for (uint32_t i = 0; stub && i < args->count_handles; i++)
        drm_syncobj_replace(refs[i].sync, dma_fence_get(stub));
    ret = stub ? 0 : -ENOMEM;
    dma_fence_put(stub);
    refs_free(refs, args->count_handles);
    return ret;
}

static int timeline_get(struct drm_file *file, const struct drm_syncobj_timeline_array *args, uint32_t known, bool points, struct drm_sync_ref **refs_out)
{
    if (args->flags & ~known)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, "field=flags value=0x%x known=0x%x", args->flags, known);
    if (args->count_handles == 0)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, "field=count_handles value=0");
    if (!args->points)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_POINTER, "field=points null=1");
    return refs_get(file, args->handles, points ? args->points : 0, args->count_handles, refs_out);
}

int drm_syncobj_timeline_signal_ioctl(struct drm_file *file, void *data)
{
    const struct drm_syncobj_timeline_array *args = data;
    struct drm_sync_ref *refs = NULL;
    int ret = timeline_get(file, args, 0, true, &refs);
    if (ret)
        return ret;
    for (uint32_t i = 0; i < args->count_handles && ret == 0; i++) {
        struct dma_fence *stub = dma_fence_stub_create(&file->dev->fences);
        if (!stub)
            ret = -ENOMEM;
        else if (refs[i].point)
            ret = drm_syncobj_add_point(refs[i].sync, stub, refs[i].point);
        else
            drm_syncobj_replace(refs[i].sync, stub);
    }
    refs_free(refs, args->count_handles);
    return ret;
}

static uint64_t query_point(struct drm_syncobj *sync, bool last_submitted)
{
    umd_mutex_lock(&sync->domain->lock);
    struct dma_fence *fence = sync->fence ? dma_fence_get(sync->fence) : NULL;
    umd_mutex_unlock(&sync->domain->lock);
    struct dma_fence_chain *chain = fence ? dma_fence_to_chain(fence) : NULL;
    uint64_t point = 0;
    if (chain)
        point = last_submitted ? dma_fence_chain_point(chain) : dma_fence_chain_query(chain);
    dma_fence_put(fence);
    return point;
}

int drm_syncobj_query_ioctl(struct drm_file *file, void *data)
{
    const struct drm_syncobj_timeline_array *args = data;
    struct drm_sync_ref *refs = NULL;
    int ret = timeline_get(file, args, DRM_SYNCOBJ_QUERY_FLAGS_LAST_SUBMITTED, false, &refs);
    if (ret)
        return ret;
    for (uint32_t i = 0; i < args->count_handles && ret == 0; i++) {
        uint64_t point = query_point(refs[i].sync, args->flags & DRM_SYNCOBJ_QUERY_FLAGS_LAST_SUBMITTED);
        ret = copy_to_user(args->points + i * sizeof(point), &point, sizeof(point), "points");
    }
    refs_free(refs, args->count_handles);
    return ret;
}

static int transfer(struct drm_file *file, const struct drm_syncobj_transfer *args, struct drm_sync_ref *src, struct drm_syncobj *dst)
{
    if (!drm_sync_ref_resolve(src)) {
        struct drm_wait wait = {.refs = src, .count = 1, .all = true, .available = true, .now = host_now,
                                .deadline = umd_sys()->mono_ns() + TRANSFER_WAIT_NS};
        if (!(args->flags & DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT))
            return UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, "field=src_point value=%" PRIu64 " reason=not_submitted", (uint64_t)args->src_point);
        int ret = drm_wait_refs(file->dev, &wait);
        if (ret)
            return ret;
    }
    struct dma_fence *fence = src->fence ? dma_fence_get(dma_fence_inner(src->fence)) : dma_fence_stub_create(&file->dev->fences);
    if (!fence)
        return -ENOMEM;
    if (args->dst_point)
        return drm_syncobj_add_point(dst, fence, args->dst_point);
    drm_syncobj_replace(dst, fence);
    return 0;
}

int drm_syncobj_transfer_ioctl(struct drm_file *file, void *data)
{
    const struct drm_syncobj_transfer *args = data;
    if (args->pad)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, "field=pad value=%u", args->pad);
    if (args->flags & ~(uint32_t)DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, "field=flags value=0x%x", args->flags);
    struct drm_sync_ref src = {.sync = drm_syncobj_lookup(file, args->src_handle), .point = args->src_point};
    struct drm_syncobj *dst = drm_syncobj_lookup(file, args->dst_handle);
    int ret;
    if (!src.sync || !dst)
        ret = UMD_FAIL_ERRNO(UMD_ERR_UAPI_HANDLE, "object=syncobj src=%u dst=%u", args->src_handle, args->dst_handle);
    else
        ret = transfer(file, args, &src, dst);
    drm_syncobj_put(dst);
    drm_sync_ref_fini(&src);
    return ret;
}
