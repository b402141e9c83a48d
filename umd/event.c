/* SPDX-License-Identifier: MIT */
/* event.c - events: record, query, wait, elapsed device time. */
#include "event.h"

#include <inttypes.h>

#include <hw/petrel_packets.h>

#include "error.h"
#include "library.h"

UMD_LOG_MODULE("umd.event");

/* The record may still be ahead of the device. Nobody waits for that: its cell is used again when it is behind. No lock held. */
static void mark_end(struct umd_context *ctx, struct umd_event_mark *mark)
{
    if (!mark->stream)
        return;
    umd_slot_retire(ctx, &mark->slot, mark->stream, mark->point);
    umd_object_put(&mark->stream->obj);
    *mark = (struct umd_event_mark){ 0 };
}

static void event_release(struct umd_object *obj)
{
    struct umd_event *e = (struct umd_event *)obj;

    mark_end(e->ctx, &e->mark);
    umd_slot_give(e->ctx, &e->spare);
    umd_mutex_fini(&e->lock);
    if (obj->ctx)
        umd_context_disown(obj);
    umd_free(e);
}

static umdStatus event_create(struct umd_context *ctx, umdEvent *event_out)
{
    struct umd_event *e = umd_alloc(sizeof(*e));

    if (!e)
        return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    e->ctx = ctx;
    e->obj.release = event_release;
    umd_mutex_init(&e->lock, "umd event", 32);
    umdStatus st = umd_slot_take(ctx, &e->spare); /* the first record needs no memory any more */
    if (st == UMD_SUCCESS)
        st = umd_handle_open(&e->obj, UMD_OBJ_EVENT);
    if (st < 0) {
        umd_error_keep(st, event_release(&e->obj));
        return UMD_HOP(st);
    }
    umdEvent handle = { e->obj.handle };
    st = umd_context_adopt(ctx, &e->obj);
    if (st < 0) {
        struct umd_object *obj = NULL;
        umd_error_keep(st, if (umd_handle_close(handle.id, UMD_OBJ_EVENT, &obj) == UMD_SUCCESS) umd_object_put(obj));
        return UMD_HOP(st);
    }
    *event_out = handle;
    return UMD_SUCCESS;
}

umdStatus umdEventCreate(umdContext context, umdEvent *event_out)
{
    struct umd_call call;
    struct umd_context *ctx;

    umdStatus st = UMD_CALL_ENTER(&call, "context=0x%" PRIx64, context.id);
    if (st < 0)
        return umd_call_leave(&call, st);
    if (!event_out)
        return umd_call_leave(&call, UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=event_out"));
    st = umd_context_get(context, &ctx);
    if (st == UMD_SUCCESS) {
        st = event_create(ctx, event_out);
        umd_object_put(&ctx->obj);
    }
    return umd_call_leave(&call, st);
}

umdStatus umdEventDestroy(umdEvent event)
{
    struct umd_call call;
    struct umd_object *obj;

    umdStatus st = UMD_CALL_ENTER(&call, "event=0x%" PRIx64, event.id);
    if (st == UMD_SUCCESS)
        st = umd_handle_close(event.id, UMD_OBJ_EVENT, &obj);
    if (st == UMD_SUCCESS)
        umd_object_put(obj);
    return umd_call_leave(&call, st);
}

static umdStatus event_get(umdEvent handle, struct umd_event **event_out)
{
    struct umd_object *obj;

    umdStatus st = umd_handle_get(handle.id, UMD_OBJ_EVENT, &obj);
    if (st < 0)
        return UMD_HOP(st);
    *event_out = (struct umd_event *)obj;
    umd_record_set_context((*event_out)->ctx->id);
    return UMD_SUCCESS;
}

/* Stream (referenced) and point of the last record. UMD_ERR_WAIT_NOT_SUBMITTED when there is none. */
static umdStatus snapshot(struct umd_event *e, struct umd_stream **s_out, uint64_t *point_out)
{
    umd_mutex_lock(&e->lock);
    struct umd_stream *s = e->mark.stream;
    if (s)
        umd_object_ref(&s->obj);
    *point_out = e->mark.point;
    umd_mutex_unlock(&e->lock);
    if (!s)
        return UMD_FAIL(UMD_ERR_WAIT_NOT_SUBMITTED, "event=0x%" PRIx64 " reason=\"never recorded\"", e->obj.handle);
    *s_out = s;
    return UMD_SUCCESS;
}

/* Submits, and makes it the event's record. The stream's lock is held throughout, so that of two records in it the later one stays. */
static umdStatus record_locked(struct umd_event *e, struct umd_stream *s, const struct umd_slot *slot, struct umd_event_mark *old_out)
{
    struct umd_job job = { .kind = "event" };
    struct umd_cmd cmd;

    umdStatus st = umd_cmd_begin(s, 3, 0, &cmd);
    if (st < 0)
        return UMD_HOP(st);
    umd_cmd_packet(&cmd, PETREL_OP_TIMESTAMP, &slot->va, 2);
    st = umd_cmd_submit(&cmd, &job, NULL);
    if (st < 0)
        return UMD_HOP(st);
    /* Nothing below can fail. */
    umd_object_ref(&s->obj);
    umd_mutex_lock(&e->lock);
    *old_out = e->mark;
    e->mark = (struct umd_event_mark){ .slot = *slot, .stream = s, .point = job.point };
    umd_mutex_unlock(&e->lock);
    return UMD_SUCCESS;
}

/* What a stream does with an event: both of one context, the stream usable, references held. */
typedef umdStatus (*event_work)(struct umd_event *e, struct umd_stream *s);

static umdStatus check_both(struct umd_event *e, struct umd_stream *s)
{
    if (e->ctx != s->ctx)
        return UMD_FAIL(UMD_ERR_HANDLE_CONTEXT, "argument=event context=%" PRIu64 " stream_context=%" PRIu64, e->ctx->id, s->ctx->id);
    return umd_stream_check(s);
}

static umdStatus with_both(umdEvent event, umdStream stream, event_work work)
{
    struct umd_event *e;
    struct umd_stream *s;

    umdStatus st = event_get(event, &e);
    if (st < 0)
        return UMD_HOP(st);
    st = umd_stream_get(stream, &s);
    if (st == UMD_SUCCESS) {
        st = check_both(e, s);
        if (st == UMD_SUCCESS)
            st = work(e, s);
        umd_object_put(&s->obj);
    }
    umd_object_put(&e->obj);
    return st < 0 ? UMD_HOP(st) : UMD_SUCCESS;
}

static umdStatus event_record(struct umd_event *e, struct umd_stream *s)
{
    struct umd_event_mark old = { 0 };
    umdStatus st = UMD_SUCCESS;

    umd_mutex_lock(&e->lock);
    struct umd_slot slot = e->spare;
    e->spare = (struct umd_slot){ 0 };
    umd_mutex_unlock(&e->lock);
    if (!slot.va)
        st = umd_slot_take(e->ctx, &slot);
    if (st < 0)
        return UMD_HOP(st);
    umd_mutex_lock(&s->lock);
    st = record_locked(e, s, &slot, &old);
    st = umd_stream_unlock(s, st);
    if (st < 0) {
        umd_slot_give(e->ctx, &slot); /* nothing was queued: the event is as it was */
        return UMD_HOP(st);
    }
    mark_end(e->ctx, &old);
    return UMD_SUCCESS;
}

umdStatus umdEventRecord(umdEvent event, umdStream stream)
{
    struct umd_call call;

    umdStatus st = UMD_CALL_ENTER(&call, "event=0x%" PRIx64 " stream=0x%" PRIx64, event.id, stream.id);
    if (st == UMD_SUCCESS)
        st = with_both(event, stream, event_record);
    return umd_call_leave(&call, st);
}

static umdStatus wait_for_event(struct umd_event *e, struct umd_stream *s)
{
    struct umd_stream *source;
    uint64_t point = 0;
    umdStatus st = UMD_SUCCESS;

    umd_mutex_lock(&e->lock);
    source = e->mark.stream;
    point = e->mark.point;
    if (source)
        umd_object_ref(&source->obj);
    umd_mutex_unlock(&e->lock);
    /* Of its own stream only what has ended badly makes a difference: the rest is in order. */
    if (source && !umd_stream_ended_well(source, point) && (source != s || umd_stream_ended(source, point))) {
        struct drm_petrel_sync in = { .handle = source->syncobj, .point = point };
        umd_mutex_lock(&s->lock);
        st = umd_stream_submit_wait(s, &in);
        st = umd_stream_unlock(s, st);
    }
    if (source)
        umd_object_put(&source->obj);
    return st < 0 ? UMD_HOP(st) : UMD_SUCCESS;
}

umdStatus umdStreamWaitEvent(umdStream stream, umdEvent event)
{
    struct umd_call call;

    umdStatus st = UMD_CALL_ENTER(&call, "stream=0x%" PRIx64 " event=0x%" PRIx64, stream.id, event.id);
    if (st == UMD_SUCCESS)
        st = with_both(event, stream, wait_for_event);
    return umd_call_leave(&call, st);
}

/* ns_out: NULL, or for the time of a record that was reached. */
static umdStatus event_wait(struct umd_event *e, uint64_t timeout_ns, bool query, uint64_t *ns_out)
{
    struct umd_stream *s = NULL;
    uint64_t point = 0;

    umdStatus st = umd_context_check(e->ctx);
    if (st < 0)
        return UMD_HOP(st);
    st = snapshot(e, &s, &point);
    if (st < 0)
        return UMD_HOP(st);
    st = umd_stream_wait(s, point, timeout_ns, query, true);
    if (st == UMD_SUCCESS && ns_out) {
        umd_mutex_lock(&e->lock);
        if (e->mark.stream == s && e->mark.point == point)
            *ns_out = *e->mark.slot.host;
        else
            st = UMD_STATUS_NOT_READY; /* recorded anew meanwhile: the cell is another's by now */
        umd_mutex_unlock(&e->lock);
    }
    umd_object_put(&s->obj);
    return st < 0 ? UMD_HOP(st) : st;
}

static umdStatus event_wait_by_handle(umdEvent event, uint64_t timeout_ns, bool query)
{
    struct umd_event *e;

    umdStatus st = event_get(event, &e);
    if (st < 0)
        return st;
    umd_device_poll(e->ctx->dev);
    st = event_wait(e, timeout_ns, query, NULL);
    umd_object_put(&e->obj);
    return st;
}

umdStatus umdEventQuery(umdEvent event)
{
    struct umd_call call;

    umdStatus st = UMD_CALL_ENTER(&call, "event=0x%" PRIx64, event.id);
    if (st == UMD_SUCCESS)
        st = event_wait_by_handle(event, 0, true);
    return umd_call_leave(&call, st);
}

umdStatus umdEventSynchronize(umdEvent event, uint64_t timeout_ns)
{
    struct umd_call call;

    umdStatus st = UMD_CALL_ENTER(&call, "event=0x%" PRIx64 " timeout_ns=%" PRIu64, event.id, timeout_ns);
    if (st == UMD_SUCCESS)
        st = event_wait_by_handle(event, timeout_ns, false);
    return umd_call_leave(&call, st);
}

static umdStatus elapsed(struct umd_event *start, struct umd_event *end, uint64_t *ns_out)
{
    if (start->ctx != end->ctx)
        return UMD_FAIL(UMD_ERR_HANDLE_CONTEXT, "argument=end context=%" PRIu64 " start_context=%" PRIu64, end->ctx->id, start->ctx->id);
    uint64_t a = 0, b = 0;

    umdStatus st = event_wait(start, 0, true, &a);
    if (st)
        return st < 0 ? UMD_HOP(st) : st;
    st = event_wait(end, 0, true, &b);
    if (st)
        return st < 0 ? UMD_HOP(st) : st;
    if (b < a)
        return UMD_FAIL(UMD_ERR_PARAM_RANGE, "argument=end reason=\"before start\" start_ns=%" PRIu64 " end_ns=%" PRIu64, a, b);
    *ns_out = b - a;
    return UMD_SUCCESS;
}

umdStatus umdEventElapsed(umdEvent start, umdEvent end, uint64_t *ns_out)
{
    struct umd_call call;
    struct umd_event *a, *b;

    umdStatus st = UMD_CALL_ENTER(&call, "start=0x%" PRIx64 " end=0x%" PRIx64, start.id, end.id);
    if (st < 0)
        return umd_call_leave(&call, st);
    if (!ns_out)
        return umd_call_leave(&call, UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=ns_out"));
    st = event_get(start, &a);
    if (st < 0)
        return umd_call_leave(&call, st);
    st = event_get(end, &b);
    if (st == UMD_SUCCESS) {
        umd_device_poll(a->ctx->dev);
        st = elapsed(a, b, ns_out);
        umd_object_put(&b->obj);
    }
    umd_object_put(&a->obj);
    return umd_call_leave(&call, st);
}
