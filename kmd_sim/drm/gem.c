/* SPDX-License-Identifier: MIT */
/* gem.c - buffer objects: counting, and a file's handles for them. */
#include <assert.h>
#include <errno.h>

#include "drm_core.h"
#include "record.h"

UMD_LOG_MODULE("kmd.drm");

#define GEM_HANDLES_MAX 65536u

void drm_gem_init(struct drm_gem_object *obj, const struct drm_gem_ops *ops, uint64_t size_B)
{
    assert(ops && ops->free);
    obj->ops = ops;
    obj->size_B = size_B;
    atomic_init(&obj->refs, 1);
}

struct drm_gem_object *drm_gem_get(struct drm_gem_object *obj)
{
    uint32_t before = atomic_fetch_add_explicit(&obj->refs, 1, memory_order_relaxed);
    assert(before > 0);
    (void)before;
    return obj;
}

void drm_gem_put(struct drm_gem_object *obj)
{
    if (obj && atomic_fetch_sub_explicit(&obj->refs, 1, memory_order_acq_rel) == 1)
        obj->ops->free(obj);
}

int drm_gem_handle_create(struct drm_file *file, struct drm_gem_object *obj, uint32_t *handle_out)
{
    umd_mutex_lock(&file->lock);
    int ret = drm_idr_add(&file->gems, obj, GEM_HANDLES_MAX, handle_out);
    umd_mutex_unlock(&file->lock);
    return ret;
}

struct drm_gem_object *drm_gem_lookup(struct drm_file *file, uint32_t handle)
{
    umd_mutex_lock(&file->lock);
    struct drm_gem_object *obj = drm_idr_find(&file->gems, handle);
    if (obj)
        drm_gem_get(obj);
    umd_mutex_unlock(&file->lock);
    return obj;
}

int drm_gem_close_ioctl(struct drm_file *file, void *data)
{
    struct drm_gem_close *args = data;
    if (args->pad)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, "field=pad value=%u", args->pad);
    umd_mutex_lock(&file->lock);
    struct drm_gem_object *obj = drm_idr_remove(&file->gems, args->handle);
    umd_mutex_unlock(&file->lock);
    if (!obj)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, "field=handle value=%u reason=unknown", args->handle);
    drm_gem_put(obj);
    return 0;
}
