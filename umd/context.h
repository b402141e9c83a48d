/* SPDX-License-Identifier: MIT */
/* context.h - one address space, what lives in it, and the failure that made it unusable. */
#ifndef UMD_CONTEXT_H
#define UMD_CONTEXT_H

#include "device.h"
#include "memory.h"
#include "va.h"

struct umd_context {
    struct umd_object obj;
    struct umd_device *dev;
    struct umd_context *next;           /* of the device, under its lock */
    uint64_t id;                        /* in every record, of all layers */
    uint32_t vm_id;
    _Atomic(bool) dying;

    struct umd_mutex lock;              /* rank 20 */
    struct umd_cond changed;            /* a callback ended */
    struct umd_object *children;        /* streams, modules, kernels, events */
    umdErrorCallback callback;
    void *callback_user;
    uint32_t callbacks_running;
    uint32_t callbacks_due;             /* of failures that calls can see already: a destroy waits for them */

    struct umd_mutex mem_lock;          /* rank 34: address ranges, allocations, pools */
    struct umd_cond mem_changed;        /* a pin was dropped */
    struct umd_va_space va;
    struct umd_memory mem;

    _Atomic(int32_t) failed_code;       /* sticky; 0: healthy */
    _Atomic(bool) failed_unread;        /* no call has returned the job's own code yet */
    _Atomic(bool) told_early;           /* a call told of a failure whose event had not come */
    umdRecordId noticed;                /* the ban that came as an event, or in place of one; under state_lock of the device */
    umdErrorDetail failed;              /* written once under lock, before failed_code */
    _Atomic(uint64_t) next_cmdbuf, next_stream;
};

/** The context of a handle with a reference, alive and healthy: what each call that starts something needs. Umd_object_put(&ctx->obj) ends it. */
UMD_MUST_CHECK umdStatus umd_context_get(umdContext handle, struct umd_context **ctx_out);
/** The same in any state, failed or on a lost device: for questions and for what gives things back. Not polled. */
UMD_MUST_CHECK umdStatus umd_context_get_any(umdContext handle, struct umd_context **ctx_out);
/** Not being destroyed, device not lost, no failed job: else the code that says so, with the job's record. */
UMD_MUST_CHECK umdStatus umd_context_check(struct umd_context *ctx);
/** Also sets the record context. Adds a child to the list, with a reference to the context. UMD_ERR_CTX_DESTROYED. */
UMD_MUST_CHECK umdStatus umd_context_adopt(struct umd_context *ctx, struct umd_object *child);
/** Takes a child out again and drops its reference to the context. */
void umd_context_disown(struct umd_object *child);
/** Waits for the work that the context's streams have when it looks at each. Failed work counts as finished. */
void umd_context_idle(struct umd_context *ctx);
/** First failure wins. True: it was news. state_lock of the device held. */
bool umd_context_set_failed_locked(struct umd_context *ctx, const umdErrorDetail *detail);
/** Before a failure can be seen by calls: umd_context_notify will follow, and a destroy that comes in between waits for it. No lock held. */
void umd_context_expect(struct umd_context *ctx);
/** Calls the application back, no lock held. */
bool umd_context_notify(struct umd_context *ctx, const umdErrorDetail *detail);
/** Destroys some context that is left. False: none was. */
bool umd_context_destroy_any(void);
/** The context whose callback this thread is in, NULL: none. */
struct umd_context *umd_context_in_callback(void);

#endif
