/* SPDX-License-Identifier: MIT */
/* handle.h - typed handles with a generation, and the counted objects behind them. */
#ifndef UMD_HANDLE_H
#define UMD_HANDLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <umd/umd_diag.h>

enum umd_object_type {
    UMD_OBJ_NONE,
    UMD_OBJ_DEVICE,
    UMD_OBJ_CONTEXT,
    UMD_OBJ_MODULE,
    UMD_OBJ_KERNEL,
    UMD_OBJ_STREAM,
    UMD_OBJ_EVENT,
    UMD_OBJ_TYPE_COUNT
};

struct umd_context;

/*
 * The head of each object that has a handle. The handle table holds one reference; each call that works with the object holds one more,
 * so an object that another thread destroys lives until the last call is done with it.
 */
struct umd_object {
    uint64_t handle;
    enum umd_object_type type;
    _Atomic(uint32_t) refs;
    struct umd_context *ctx;                      /* owner, NULL for devices and contexts */
    void (*teardown)(struct umd_object *obj);     /* the handle is closed: stop the work, wake waiters. May be NULL */
    void (*release)(struct umd_object *obj);      /* the last reference is gone: free */
    struct umd_object *prev, *next;               /* in the list of the owner, under its lock */
    bool closing;                                 /* the owner's destroy closes it; under the same lock */
};

/** Gives an object its handle and the table's reference. UMD_ERR_RES_HANDLES. */
UMD_MUST_CHECK umdStatus umd_handle_open(struct umd_object *obj, enum umd_object_type type);
/** The object of a handle, with a reference. UMD_ERR_HANDLE_INVALID, _DESTROYED, _TYPE. */
UMD_MUST_CHECK umdStatus umd_handle_get(uint64_t handle, enum umd_object_type type, struct umd_object **obj_out);
/** Closes a handle; the table's reference goes to the caller. Of two threads that close one handle, one gets UMD_ERR_HANDLE_DESTROYED. */
UMD_MUST_CHECK umdStatus umd_handle_close(uint64_t handle, enum umd_object_type type, struct umd_object **obj_out);
/** The same where it is no failure that there is nothing left to close: NULL, and no record. */
UMD_MUST_CHECK struct umd_object *umd_handle_try_close(uint64_t handle, enum umd_object_type type);
/** Handles of the type that are open. */
uint32_t umd_handle_count(enum umd_object_type type);
/** Any open handle of the type, 0 when there is none. */
uint64_t umd_handle_any(enum umd_object_type type);
const char *umd_object_type_name(enum umd_object_type type);

static inline void umd_object_ref(struct umd_object *obj)
{
    atomic_fetch_add_explicit(&obj->refs, 1, memory_order_relaxed);
}

/** For objects found in a list: false if the last reference is gone and the object is about to leave the list. */
static inline bool umd_object_tryref(struct umd_object *obj)
{
    uint32_t n = atomic_load_explicit(&obj->refs, memory_order_relaxed);

    while (n && !atomic_compare_exchange_weak(&obj->refs, &n, n + 1))
        ;
    return n != 0;
}

static inline void umd_object_put(struct umd_object *obj)
{
    if (obj && atomic_fetch_sub_explicit(&obj->refs, 1, memory_order_acq_rel) == 1)
        obj->release(obj);
}

#endif
