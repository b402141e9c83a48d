/* SPDX-License-Identifier: MIT */
/* drm_core.h - the part of a kernel that all DRM drivers share: files, ioctl dispatch, GEM handles, syncobjs. Knows no driver. */
#ifndef DRM_CORE_H
#define DRM_CORE_H

#include <errno.h>

#include <drm.h>

#include "dma_fence.h"
#include "sys.h"

struct drm_device;
struct drm_file;

/* ---- Ids ---- */

/** Ids from 1 to objects; a freed id comes back last, so that a stale one is noticed. The owner locks. */
struct drm_idr {
    void **slots;
    uint32_t size, used, next;
};
/** 0, or -ENOMEM, or -ENOSPC when `limit` ids are in use, with a record. */
int drm_idr_add(struct drm_idr *idr, void *obj, uint32_t limit, uint32_t *id_out);
void *drm_idr_find(const struct drm_idr *idr, uint32_t id);
void *drm_idr_remove(struct drm_idr *idr, uint32_t id);
/** Takes some object out; NULL when empty. */
void *drm_idr_pop(struct drm_idr *idr);
void drm_idr_fini(struct drm_idr *idr);

/* ---- Driver and device ---- */

#define DRM_CORE_RENDER (1u << 0)   /* allowed on a render node */
struct drm_ioctl_desc {
    const char *name;
    uint32_t size_B;                /* 0: no such ioctl */
    uint32_t flags;
    int (*func)(struct drm_file *file, void *data);
};

struct drm_driver {
    const char *name, *desc, *date;
    int major, minor, patch;
    const struct drm_ioctl_desc *ioctls; /* from DRM_COMMAND_BASE */
    uint32_t ioctl_count;
    /** After a driver ioctl, with its struct and result. */
    void (*ioctl_exit)(struct drm_file *file, void *data, uint32_t size_B, int ret);
    /**
     * A thread waits for fences. Stepped: runs the device for at most budget_ns. Threaded: called every
     * DRM_WAIT_SLICE_NS, looks after the device's health. False: nothing can ever come any more.
     */
    bool (*wait_step)(struct drm_device *dev, uint64_t budget_ns);
};

struct drm_device {
    const struct drm_driver *driver;
    struct dma_fence_domain fences;
    bool stepped;
};

struct drm_file {
    struct drm_device *dev;
    bool render_node;
    struct umd_mutex lock;          /* rank 54: the tables */
    struct drm_idr gems, syncobjs;
};
void drm_file_init(struct drm_file *file, struct drm_device *dev, bool render_node);
void drm_file_fini(struct drm_file *file);
int drm_ioctl(struct drm_file *file, unsigned long cmd, void *arg);

/* ---- GEM ---- */

struct drm_gem_object;
struct drm_gem_ops {
    void (*free)(struct drm_gem_object *obj);
};
struct drm_gem_object {
    const struct drm_gem_ops *ops;
    uint64_t size_B;
    _Atomic(uint32_t) refs;
};
void drm_gem_init(struct drm_gem_object *obj, const struct drm_gem_ops *ops, uint64_t size_B);
struct drm_gem_object *drm_gem_get(struct drm_gem_object *obj);
void drm_gem_put(struct drm_gem_object *obj); /* NULL is fine; may free: no lock above rank 58 */
/** Moves the caller's reference into the file's table on success. */
int drm_gem_handle_create(struct drm_file *file, struct drm_gem_object *obj, uint32_t *handle_out);
/** A new reference, or NULL (nothing is raised). */
struct drm_gem_object *drm_gem_lookup(struct drm_file *file, uint32_t handle);

/* ---- Syncobj ---- */

struct drm_syncobj {
    struct dma_fence_domain *domain;
    struct dma_fence *fence;        /* domain->lock */
    _Atomic(uint32_t) refs;
};
void drm_syncobj_put(struct drm_syncobj *sync);
struct drm_syncobj *drm_syncobj_get(struct drm_syncobj *sync);
struct drm_syncobj *drm_syncobj_lookup(struct drm_file *file, uint32_t handle);
/** Replaces the fence (binary). Takes the caller's reference; NULL resets. */
void drm_syncobj_replace(struct drm_syncobj *sync, struct dma_fence *fence);

/** Adds a timeline point. Takes the fence's reference in any case. */
int drm_syncobj_add_point(struct drm_syncobj *sync, struct dma_fence *fence, uint64_t point);

/** As above with memory from dma_fence_chain_alloc: cannot fail. */
void drm_syncobj_add_prepared(struct drm_syncobj *sync, struct dma_fence_chain *chain, struct dma_fence *fence, uint64_t point);

/** What a (syncobj, point) pair stands for at this moment. */
struct drm_sync_ref {
    struct drm_syncobj *sync;       /* owned */
    uint64_t point;                 /* 0: binary */
    bool resolved;                  /* something was submitted for it */
    struct dma_fence *fence;        /* owned; NULL when resolved: it signalled long ago */
};
/** Tries to resolve; domain->lock held. Value: resolved. */
bool drm_sync_ref_resolve_locked(struct drm_sync_ref *ref);
bool drm_sync_ref_resolve(struct drm_sync_ref *ref);
static inline bool drm_sync_ref_done(const struct drm_sync_ref *ref)
{
    return ref->resolved && (!ref->fence || dma_fence_is_signalled(ref->fence));
}
void drm_sync_ref_fini(struct drm_sync_ref *ref);

#define DRM_WAIT_SLICE_NS 20000000ull
struct drm_wait {
    struct drm_sync_ref *refs;
    uint32_t count;
    bool all;
    bool available;                 /* done is what was submitted, not what has signalled */
    bool stop_on_error;             /* all: a failed fence ends the wait at once */
    uint64_t (*now)(struct drm_device *dev);
    uint64_t deadline;              /* in that clock; UINT64_MAX: never */
    uint32_t first;                 /* out: signalled one (any) or failed one (all) */
};
/** 0 or -ETIME. */
int drm_wait_refs(struct drm_device *dev, struct drm_wait *wait);

int drm_syncobj_create_ioctl(struct drm_file *file, void *data);
int drm_syncobj_destroy_ioctl(struct drm_file *file, void *data);
int drm_syncobj_wait_ioctl(struct drm_file *file, void *data);
int drm_syncobj_reset_ioctl(struct drm_file *file, void *data);
int drm_syncobj_signal_ioctl(struct drm_file *file, void *data);
int drm_syncobj_timeline_wait_ioctl(struct drm_file *file, void *data);
int drm_syncobj_timeline_signal_ioctl(struct drm_file *file, void *data);
int drm_syncobj_query_ioctl(struct drm_file *file, void *data);
int drm_syncobj_transfer_ioctl(struct drm_file *file, void *data);
int drm_gem_close_ioctl(struct drm_file *file, void *data);

#endif
