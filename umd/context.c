/* SPDX-License-Identifier: MIT */
/* context.c - contexts: address space, children, sticky failure, callbacks. */
#include "context.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "error.h"
#include "library.h"
#include "stream.h"

UMD_LOG_MODULE("umd.context");

static _Atomic(uint64_t) next_context_id = 1;

/* Callbacks of this thread, innermost first: one may run inside another, where stepped calls handle events. */
struct callback_frame {
    struct umd_context *ctx;
    const struct callback_frame *outer;
};
static _Thread_local const struct callback_frame *in_callback;

struct umd_context *umd_context_in_callback(void)
{
    return in_callback ? in_callback->ctx : NULL;
}

static uint32_t own_callbacks(uint64_t handle)
{
    uint32_t n = 0;

    for (const struct callback_frame *f = in_callback; f; f = f->outer)
        n += f->ctx->obj.handle == handle;
    return n;
}

/* Waits for the callbacks that run on other threads. */
static void await_callbacks_locked(struct umd_context *ctx)
{
    const uint32_t own = own_callbacks(ctx->obj.handle);

    umd_mutex_assert_held(&ctx->lock);
    while (ctx->callbacks_running > own)
        (void)umd_cond_wait(&ctx->changed, &ctx->lock, UINT64_MAX);
}

/* Waits for the callbacks of failures that calls can see already. In a callback: those come after it. */
static void await_due_locked(struct umd_context *ctx)
{
    umd_mutex_assert_held(&ctx->lock);
    while (ctx->callbacks_due && !in_callback)
        (void)umd_cond_wait(&ctx->changed, &ctx->lock, UINT64_MAX);
}

/* Of what a call has told already, the callback that is set hears as well. In a callback nothing is waited for: this may be the event thread. */
static void await_told(struct umd_context *ctx)
{
    umd_mutex_lock(&ctx->lock);
    const bool wanted = ctx->callback && !in_callback;
    umd_mutex_unlock(&ctx->lock);
    if (wanted && (atomic_exchange(&ctx->told_early, false) || umd_device_is_lost(ctx->dev)))
        umd_device_await_events(ctx->dev);
}

/* ---- Life ---- */

static void context_release(struct umd_object *obj)
{
    struct umd_context *ctx = (struct umd_context *)obj;

    assert(!ctx->children); /* each holds a reference */
    if (atomic_exchange(&ctx->failed_unread, false))
        umd_record_drop(&ctx->failed, "its context was destroyed before a call met it");
    umd_memory_fini(ctx);
    if (ctx->vm_id) {
        struct drm_petrel_vm_destroy d = { .vm_id = ctx->vm_id };
        umdStatus st = umd_device_ioctl(ctx->dev, DRM_IOCTL_PETREL_VM_DESTROY, &d);
        if (st < 0)
            UMD_ABSORB(st, "the address space goes with the device file");
    }
    umd_va_fini(&ctx->va);
    umd_mutex_lock(&ctx->dev->lock);
    for (struct umd_context **p = &ctx->dev->contexts; *p; p = &(*p)->next)
        if (*p == ctx) {
            *p = ctx->next;
            atomic_fetch_sub(&ctx->dev->context_count, 1);
            break;
        }
    umd_mutex_unlock(&ctx->dev->lock);
    UMD_LOG(UMD_LOG_INFO, "context destroyed id=%" PRIu64, ctx->id);
    umd_cond_fini(&ctx->mem_changed);
    umd_mutex_fini(&ctx->mem_lock);
    umd_cond_fini(&ctx->changed);
    umd_mutex_fini(&ctx->lock);
    umd_object_put(&ctx->dev->obj);
    umd_free(ctx);
}

static umdStatus context_create(struct umd_device *dev, umdContext *context_out)
{
    struct drm_petrel_vm_create v = { 0 };

    umdStatus st = umd_device_check(dev);
    if (st < 0)
        return UMD_HOP(st);
    struct umd_context *ctx = umd_alloc(sizeof(*ctx));
    if (!ctx)
        return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    umd_object_ref(&dev->obj);
    ctx->dev = dev;
    ctx->obj.release = context_release;
    ctx->id = atomic_fetch_add(&next_context_id, 1);
    atomic_store(&ctx->next_cmdbuf, 1);
    atomic_store(&ctx->next_stream, 1);
    umd_mutex_init(&ctx->lock, "umd context", 20);
    umd_cond_init(&ctx->changed);
    umd_mutex_init(&ctx->mem_lock, "umd memory", 34);
    umd_cond_init(&ctx->mem_changed);
    umd_record_set_context(ctx->id);
    st = umd_va_init(&ctx->va, dev->info.va_start ? dev->info.va_start : 0x10000, dev->info.va_end);
    if (st == UMD_SUCCESS)
        st = umd_device_ioctl(dev, DRM_IOCTL_PETREL_VM_CREATE, &v);
    if (st == UMD_SUCCESS) {
        ctx->vm_id = v.vm_id;
        st = umd_handle_open(&ctx->obj, UMD_OBJ_CONTEXT);
    }
    if (st < 0) {
        umd_error_keep(st, context_release(&ctx->obj));
        return UMD_HOP(st);
    }
    /* Nothing below can fail. */
    umd_mutex_lock(&dev->lock);
    ctx->next = dev->contexts;
    dev->contexts = ctx;
    atomic_fetch_add(&dev->context_count, 1);
    umd_mutex_unlock(&dev->lock);
    *context_out = (umdContext){ ctx->obj.handle };
    UMD_LOG(UMD_LOG_INFO, "context created id=%" PRIu64 " device=%u", ctx->id, dev->index);
    return UMD_SUCCESS;
}

umdStatus umdContextCreate(umdDevice device, umdContext *context_out)
{
    struct umd_call call;
    struct umd_object *obj;

    umdStatus st = UMD_CALL_ENTER(&call, "device=0x%" PRIx64, device.id);
    if (st < 0)
        return umd_call_leave(&call, st);
    if (!context_out)
        return umd_call_leave(&call, UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=context_out"));
    st = umd_handle_get(device.id, UMD_OBJ_DEVICE, &obj);
    if (st == UMD_SUCCESS) {
        st = context_create((struct umd_device *)obj, context_out);
        umd_object_put(obj);
    }
    return umd_call_leave(&call, st);
}

umdStatus umd_context_adopt(struct umd_context *ctx, struct umd_object *child)
{
    umd_mutex_lock(&ctx->lock);
    if (atomic_load(&ctx->dying)) {
        umd_mutex_unlock(&ctx->lock);
        return UMD_FAIL(UMD_ERR_CTX_DESTROYED, "context=%" PRIu64, ctx->id);
    }
    umd_object_ref(&ctx->obj);
    child->ctx = ctx;
    child->prev = NULL;
    child->next = ctx->children;
    if (ctx->children)
        ctx->children->prev = child;
    ctx->children = child;
    umd_mutex_unlock(&ctx->lock);
    return UMD_SUCCESS;
}

static void unlink_locked(struct umd_context *ctx, struct umd_object *child)
{
    umd_mutex_assert_held(&ctx->lock);
    if (child->prev)
        child->prev->next = child->next;
    else if (ctx->children == child)
        ctx->children = child->next;
    if (child->next)
        child->next->prev = child->prev;
    child->prev = child->next = NULL;
}

void umd_context_disown(struct umd_object *child)
{
    struct umd_context *ctx = child->ctx;

    if (!ctx)
        return;
    umd_mutex_lock(&ctx->lock);
    unlink_locked(ctx, child);
    umd_mutex_unlock(&ctx->lock);
    child->ctx = NULL;
    umd_object_put(&ctx->obj);
}

/*
 * Closes the handles of all children (of the streams only, if asked) and stops their work; objects in use live until their last call
 * ends.
 */
static void close_children(struct umd_context *ctx, bool streams_only)
{
    for (;;) {
        umd_mutex_lock(&ctx->lock);
        struct umd_object *child = ctx->children;
        while (child && (child->closing || (streams_only && child->type != UMD_OBJ_STREAM) || !umd_object_tryref(child)))
            child = child->next; /* closed here already, or its last user is freeing it */
        if (child)
            child->closing = true; /* listed until it is released: who waits for the context's work must find its streams */
        umd_mutex_unlock(&ctx->lock);
        if (!child)
            return;
        /* NULL: destroyed before, or by another thread right now; others, an event say, still hold it. No failure of anything. */
        struct umd_object *table = umd_handle_try_close(child->handle, child->type);
        if (table && child->teardown)
            child->teardown(child);
        umd_object_put(table);
        umd_object_put(child);
    }
}

/*
 * What is due is told, then no callback runs any more, and none will. In a callback nothing is waited for: this may be the thread that would
 * tell it.
 */
static void end_callbacks(struct umd_context *ctx)
{
    await_told(ctx);
    umd_mutex_lock(&ctx->lock);
    await_due_locked(ctx);
    ctx->callback = NULL;
    await_callbacks_locked(ctx);
    umd_mutex_unlock(&ctx->lock);
}

static void destroy_closed(struct umd_object *obj)
{
    struct umd_context *ctx = (struct umd_context *)obj;

    umd_record_set_context(ctx->id);
    umd_mutex_lock(&ctx->lock);
    atomic_store(&ctx->dying, true);
    umd_mutex_unlock(&ctx->lock);
    umd_device_poll(ctx->dev);
    close_children(ctx, true); /* first: the others wait for the work that the streams still have, and cancel none */
    close_children(ctx, false);
    end_callbacks(ctx);
    umd_object_put(obj);
}

bool umd_context_destroy_any(void)
{
    const uint64_t handle = umd_handle_any(UMD_OBJ_CONTEXT);
    struct umd_object *obj = handle ? umd_handle_try_close(handle, UMD_OBJ_CONTEXT) : NULL;

    if (obj)
        destroy_closed(obj);
    return handle != 0;
}

static umdStatus context_destroy(umdContext handle)
{
    struct umd_object *obj;

    if (own_callbacks(handle.id))
        return UMD_FAIL_ADVISED(UMD_ERR_CTX_BUSY, umd_advice_do(UMD_ERR_CTX_BUSY, UMD_ACTION_SKIP), (umdRecordId){ 0 },
                                "context=0x%" PRIx64 " reason=\"called from the callback of this context\"", handle.id);
    umdStatus st = umd_handle_close(handle.id, UMD_OBJ_CONTEXT, &obj);
    if (st < 0)
        return UMD_HOP(st);
    destroy_closed(obj);
    return UMD_SUCCESS;
}

umdStatus umdContextDestroy(umdContext context)
{
    struct umd_call call;

    umdStatus st = UMD_CALL_ENTER(&call, "context=0x%" PRIx64, context.id);
    if (st == UMD_SUCCESS)
        st = context_destroy(context);
    return umd_call_leave(&call, st);
}

/* ---- State ---- */

umdStatus umd_context_check(struct umd_context *ctx)
{
    if (__builtin_expect(umd_device_is_lost(ctx->dev), 0)) {
        umdStatus st = umd_device_check(ctx->dev);
        return UMD_HOP(st);
    }
    if (__builtin_expect(atomic_load_explicit(&ctx->dying, memory_order_acquire), 0))
        return UMD_FAIL(UMD_ERR_CTX_DESTROYED, "context=%" PRIu64, ctx->id);
    if (__builtin_expect(!atomic_load_explicit(&ctx->failed_code, memory_order_acquire), 1))
        return UMD_SUCCESS;
    if (atomic_exchange(&ctx->failed_unread, false)) {
        umdStatus st = umd_error_deliver(&ctx->failed);
        return UMD_HOP(st);
    }
    return UMD_FAIL_FROM(UMD_ERR_CTX_BANNED, ctx->failed.id, "context=%" PRIu64 " because_of=%s", ctx->id, umdStatusName(ctx->failed.code));
}

umdStatus umd_context_get_any(umdContext handle, struct umd_context **ctx_out)
{
    struct umd_object *obj;

    umdStatus st = umd_handle_get(handle.id, UMD_OBJ_CONTEXT, &obj);
    if (st < 0)
        return UMD_HOP(st);
    *ctx_out = (struct umd_context *)obj;
    umd_record_set_context((*ctx_out)->id);
    return UMD_SUCCESS;
}

umdStatus umd_context_get(umdContext handle, struct umd_context **ctx_out)
{
    struct umd_context *ctx;

    umdStatus st = umd_context_get_any(handle, &ctx);
    if (st < 0)
        return UMD_HOP(st);
    umd_device_poll(ctx->dev);
    st = umd_context_check(ctx);
    if (st < 0) {
        umd_object_put(&ctx->obj);
        return UMD_HOP(st);
    }
    *ctx_out = ctx;
    return UMD_SUCCESS;
}

bool umd_context_set_failed_locked(struct umd_context *ctx, const umdErrorDetail *detail)
{
    umd_mutex_assert_held(&ctx->dev->state_lock);
    bool news = !atomic_load(&ctx->failed_code);
    if (news) {
        ctx->failed = *detail;
        atomic_store(&ctx->failed_unread, true);
        atomic_store_explicit(&ctx->failed_code, detail->code, memory_order_release);
        umd_record_pin(detail, false); /* each later call names it */
    }
    return news;
}

umdStatus umdContextGetStatus(umdContext context)
{
    struct umd_call call;
    struct umd_context *ctx;

    umdStatus st = UMD_CALL_ENTER(&call, "context=0x%" PRIx64, context.id);
    if (st < 0)
        return umd_call_leave(&call, st);
    st = umd_context_get_any(context, &ctx);
    if (st == UMD_SUCCESS) {
        umd_device_poll(ctx->dev);
        st = umd_device_check(ctx->dev);
        /* A question: the failure stays to be met by the next call that needs the context. */
        if (st == UMD_SUCCESS && atomic_load_explicit(&ctx->failed_code, memory_order_acquire))
            st = umd_error_deliver(&ctx->failed);
        umd_object_put(&ctx->obj);
    }
    return umd_call_leave(&call, st);
}

umdStatus umdContextGetFirstCause(umdContext context, umdErrorDetail *detail)
{
    struct umd_call call;

    umdStatus st = UMD_CALL_ENTER(&call, "context=0x%" PRIx64, context.id);
    if (st == UMD_SUCCESS)
        st = umd_first_cause(context.id, UMD_OBJ_CONTEXT, detail);
    return umd_call_leave(&call, st);
}

/* The youngest stream older than *below_io that has unfinished work, referenced, and *below_io its number; NULL: none. */
static struct umd_stream *next_busy(struct umd_context *ctx, uint64_t *below_io)
{
    struct umd_stream *found;

    umd_mutex_lock(&ctx->lock);
    do {
        found = NULL;
        for (struct umd_object *o = ctx->children; o; o = o->next) {
            struct umd_stream *s = (struct umd_stream *)o;
            if (o->type == UMD_OBJ_STREAM && s->number < *below_io && (!found || s->number > found->number) &&
                atomic_load(&s->done_point) < atomic_load(&s->last_point))
                found = s;
        }
        if (found)
            *below_io = found->number;
    } while (found && !umd_object_tryref(&found->obj)); /* its last user is freeing it */
    umd_mutex_unlock(&ctx->lock);
    return found;
}

void umd_context_idle(struct umd_context *ctx)
{
    uint64_t below = UINT64_MAX;
    struct umd_stream *s;

    /* Each stream once: others may go on submitting, and a wait that cannot be made must not be tried for ever. */
    while ((s = next_busy(ctx, &below))) {
        umd_stream_idle(s);
        umd_object_put(&s->obj);
    }
}

/* ---- Callbacks ---- */

void umd_context_expect(struct umd_context *ctx)
{
    umd_mutex_lock(&ctx->lock);
    ctx->callbacks_due++;
    umd_mutex_unlock(&ctx->lock);
}

bool umd_context_notify(struct umd_context *ctx, const umdErrorDetail *detail)
{
    umd_mutex_lock(&ctx->lock);
    umdErrorCallback callback = ctx->callback;
    void *user = ctx->callback_user;
    if (callback)
        ctx->callbacks_running++;
    if (ctx->callbacks_due && !--ctx->callbacks_due) /* from here on it runs, which is waited for as well */
        umd_cond_broadcast(&ctx->changed);
    umd_mutex_unlock(&ctx->lock);
    if (!callback)
        return false;
    struct callback_frame frame = { ctx, in_callback };
    in_callback = &frame;
    umd_record_scope_begin();
    callback((umdContext){ ctx->obj.handle }, detail, user);
    umd_record_scope_end();
    in_callback = frame.outer;
    umd_mutex_lock(&ctx->lock);
    ctx->callbacks_running--;
    umd_cond_broadcast(&ctx->changed);
    umd_mutex_unlock(&ctx->lock);
    return true;
}

umdStatus umdContextSetErrorCallback(umdContext context, umdErrorCallback callback, void *user)
{
    struct umd_call call;
    struct umd_context *ctx;

    umdStatus st = UMD_CALL_ENTER(&call, "context=0x%" PRIx64 " callback=%s", context.id, callback ? "set" : "NULL");
    if (st < 0)
        return umd_call_leave(&call, st);
    st = umd_context_get_any(context, &ctx);
    if (st == UMD_SUCCESS) {
        if (callback) /* clearing works to the end, as destroying does */
            st = umd_device_check(ctx->dev);
        await_told(ctx);
        umd_mutex_lock(&ctx->lock);
        await_due_locked(ctx); /* who has met a failure is told of it by the callback that was set */
        bool dying = atomic_load(&ctx->dying); /* umdContextDestroy promised that none runs any more */
        if (st == UMD_SUCCESS && !dying) {
            ctx->callback = callback;
            ctx->callback_user = user;
            await_callbacks_locked(ctx);
        }
        umd_mutex_unlock(&ctx->lock);
        if (st == UMD_SUCCESS && dying)
            st = UMD_FAIL(UMD_ERR_CTX_DESTROYED, "context=%" PRIu64, ctx->id);
        umd_object_put(&ctx->obj);
    }
    return umd_call_leave(&call, st);
}
