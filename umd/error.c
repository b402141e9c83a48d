/* SPDX-License-Identifier: MIT */
/* error.c - completes the driver's records: kernel, source line, stream, launch, what was done; says who is told. */
#include "error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <hw/petrel_regs.h>

#include "context.h"
#include "module.h"
#include "stream.h"

UMD_LOG_MODULE("umd.error");

enum { EVENT_GRACE_NS = 200000000, WAIT_TEXT = 160 };

/* ---- Completing a record ---- */

#define add_figure(d_, ...) umd_figures_append((d_)->figures, sizeof((d_)->figures), __VA_ARGS__)

static void add_text(umdErrorDetail *d, const char *text)
{
    d->text[sizeof(d->text) - 1] = '\0';
    size_t used = strlen(d->text);

    if (used + strlen(text) + 2 <= sizeof(d->text))
        snprintf(d->text + used, sizeof(d->text) - used, "%s%s", used ? " " : "", text);
}

/* Tells of what was recovered, or needs no more than to be known. */
static bool is_warning(const struct drm_petrel_event *ev)
{
    return ev->base.type == DRM_PETREL_EVENT_WARNING || ev->base.type == DRM_PETREL_EVENT_OVERFLOW;
}

static const char *done_about(const umdErrorDetail *d, const struct drm_petrel_event *ev)
{
    const umdStatus code = (umdStatus)d->code;

    if (umdStatusAdvice(code).scope == UMD_SCOPE_DEVICE && umdStatusAdvice(code).sticky)
        return "device-declared-lost";
    if (strstr(d->figures, "reset=refused")) /* by the kernel driver, which then declares the device lost */
        return ev && ev->base.type == DRM_PETREL_EVENT_WARNING ? "reset-refused" : "queue-banned,context-failed,reset-refused";
    bool begun = strstr(d->figures, "reset=begun"); /* whether it succeeds is not known yet; if not, the device is declared lost */
    if (ev && ev->base.type == DRM_PETREL_EVENT_OVERFLOW)
        return "each-queue-asked";
    if (ev && ev->base.type == DRM_PETREL_EVENT_WARNING)
        return begun ? "engine-reset-begun,work-requeued" : "recovered";
    if (code == UMD_ERR_EXEC_CANCELLED)
        return "job-cancelled,those-behind-it-too";
    if (!umdStatusAdvice(code).sticky)
        return "job-failed";
    return begun ? "queue-banned,context-failed,engine-reset-begun" : "queue-banned,context-failed";
}

struct scene {
    struct umd_context *ctx;           /* NULL: unknown */
    const struct umd_stream *stream;   /* NULL: unknown */
    const struct umd_job *job;         /* NULL: unknown */
    const struct umd_location *at;     /* NULL: unknown */
    const struct umd_location *other;  /* where the others wait, of a barrier that cannot be met; NULL: unknown, or there are none */
    const struct drm_petrel_event *event; /* NULL: from a fence */
};

/* The allocation that an address was meant for, as far as the context's table of them tells; "misuse" names the mistake. */
static void add_allocation(umdErrorDetail *d, const struct umd_address *a, uint64_t va)
{
    if (a->freed.va)
        add_figure(d, "misuse=use_after_free freed=0x%" PRIx64 " freed_B=%" PRIu64 " freed_offset_B=%" PRIu64 " freed_ns=%" PRIu64 " freed_by_tid=%u",
                   a->freed.va, a->freed.size_B, va - a->freed.va, a->freed.when_ns, a->freed.tid);
    else if (a->overrun_B || a->underrun_B)
        add_figure(d, "misuse=%s", a->overrun_B ? "overrun" : "underrun");
    else if (a->owner_context)
        add_figure(d, "misuse=other_context owner_context=%" PRIu64, a->owner_context);
    if (a->live_va)
        add_figure(d, "allocation=0x%" PRIx64 " allocation_B=%" PRIu64, a->live_va, a->live_B);
    if (a->overrun_B)
        add_figure(d, "overrun_B=%" PRIu64, a->overrun_B);
    else if (a->underrun_B)
        add_figure(d, "underrun_B=%" PRIu64, a->underrun_B);
    else if (a->live_va)
        add_figure(d, "allocation_offset_B=%" PRIu64, va - a->live_va);
}

static void say_allocation(umdErrorDetail *d, const struct umd_address *a)
{
    char text[200];

    if (a->freed.va) {
        const double ms = d->mono_ns > a->freed.when_ns ? (double)(d->mono_ns - a->freed.when_ns) / 1e6 : 0.0;
        snprintf(text, sizeof(text), "The address is in an allocation of %" PRIu64 " bytes that thread %u freed %.3g ms before: used after free.",
                 a->freed.size_B, a->freed.tid, ms);
        add_text(d, text);
    }
    if (a->overrun_B || a->underrun_B) {
        const uint64_t far_B = a->overrun_B + a->underrun_B; /* one of them is 0 */
        snprintf(text, sizeof(text), "The address is %s%" PRIu64 " byte%s %s of an allocation of %" PRIu64 " bytes.", a->freed.va ? "also " : "", far_B,
                 far_B == 1 ? "" : "s", a->overrun_B ? "behind the end" : "before the start", a->live_B);
        add_text(d, text);
    } else if (a->owner_context) {
        snprintf(text, sizeof(text), "Context %" PRIu64 " has an allocation at this address.", a->owner_context);
        add_text(d, text);
    }
}

static void add_memory(umdErrorDetail *d, const struct scene *sc)
{
    struct umd_address address;
    umdFigure va;

    if (!sc->ctx || (d->code != UMD_ERR_HW_PAGE_FAULT && d->code != UMD_ERR_HW_ACCESS_FAULT) || !umdErrorDetailFigure(d, "va", &va))
        return;
    umd_memory_look(sc->ctx, va.uint_value, &address);
    add_allocation(d, &address, va.uint_value);
    say_allocation(d, &address);
}

static void complete(umdErrorDetail *d, const struct scene *sc)
{
    char text[256];

    d->figures[sizeof(d->figures) - 1] = '\0';
    if (sc->job && sc->job->launch && strstr(d->figures, "aperture=local"))
        add_figure(d, "local_B=%u", sc->job->local_B);
    if (sc->job && sc->job->name[0])
        add_figure(d, "kernel=%s", sc->job->name);
    if (sc->at && sc->at->line)
        add_figure(d, "source=%s:%u", sc->at->file, sc->at->line);
    if (sc->other && sc->other->line)
        add_figure(d, "other_source=%s:%u", sc->other->file, sc->other->line);
    add_memory(d, sc);
    add_figure(d, "done=%s", done_about(d, sc->event)); /* before what may be left out for want of room */
    if (sc->at && sc->at->function[0])
        add_figure(d, "function=%s", sc->at->function);
    if (sc->at) /* which tools look up */
        add_figure(d, "module=%s module_offset=0x%" PRIx64, sc->at->module, sc->at->offset);
    if (sc->stream)
        add_figure(d, "stream=%u", sc->stream->number);
    if (sc->job) {
        add_figure(d, "submission=%" PRIu64 " kind=%s", sc->job->point, sc->job->kind);
        if (sc->job->launch)
            add_figure(d, "launch=%" PRIu64 " grid=%ux%ux%u block=%ux%ux%u", sc->job->launch, sc->job->grid[0], sc->job->grid[1],
                       sc->job->grid[2], sc->job->block[0], sc->job->block[1], sc->job->block[2]);
    }
    if (sc->job && sc->job->name[0] && sc->at && sc->at->line)
        snprintf(text, sizeof(text), "It was kernel %s at %s:%u.", sc->job->name, sc->at->file, sc->at->line);
    else if (sc->job && sc->job->name[0])
        snprintf(text, sizeof(text), "It was kernel %s.", sc->job->name);
    else if (sc->job)
        snprintf(text, sizeof(text), "It was a %s of stream %u.", sc->job->kind, sc->stream ? sc->stream->number : 0);
    else
        return;
    add_text(d, text);
    if (sc->other && sc->other->line) {
        snprintf(text, sizeof(text), "Lanes wait there for others, which wait for them at %s:%u.", sc->other->file, sc->other->line);
        add_text(d, text);
    }
}

/* Adds the hop of this layer: through the record code, in a scope of its own. */
static void add_hop(umdErrorDetail *d)
{
    umdErrorDetail out;

    umd_record_scope_begin();
    umdStatus st = umd_record_import(d);
    (void)UMD_HOP(st);
    if (umd_record_export(&out) && out.code == d->code)
        *d = out;
    umd_record_scope_end();
}

umdStatus umd_error_deliver(const umdErrorDetail *detail)
{
    umdStatus st = umd_record_import(detail);

    return UMD_HOP(st);
}

/* ---- Events ---- */

static struct umd_context *find_context(struct umd_device *dev, uint64_t id)
{
    struct umd_context *ctx;

    umd_mutex_lock(&dev->lock);
    for (ctx = dev->contexts; ctx && (ctx->id != id || !umd_object_tryref(&ctx->obj)); ctx = ctx->next)
        ;
    umd_mutex_unlock(&dev->lock);
    return ctx;
}

static struct umd_stream *find_stream(struct umd_context *ctx, uint64_t queue_id)
{
    struct umd_stream *s = NULL;

    umd_mutex_lock(&ctx->lock);
    for (struct umd_object *o = ctx->children; o && !s; o = o->next)
        if (o->type == UMD_OBJ_STREAM && ((struct umd_stream *)o)->queue_id == queue_id && umd_object_tryref(o))
            s = (struct umd_stream *)o;
    umd_mutex_unlock(&ctx->lock);
    return s;
}

static bool is_context_failure(umdStatus code)
{
    umdAdvice a = umdStatusAdvice(code);

    return a.sticky && a.scope == UMD_SCOPE_CONTEXT;
}

/* A call returns it, or what fell with it. */
static void tell_locked(struct umd_stream *s, const umdErrorDetail *d)
{
    const umdRecordId failure = umd_failure_of(d);

    umd_stream_note_bad(s);
    umd_failures_tell(&s->failures, &failure);
}

/*
 * A job failed: the stream has an unread error, and the context fails with it where the code says so. Both at once. Where neither keeps the record,
 * no call will end it.
 */
static void mark_failed(struct umd_context *ctx, struct umd_stream *s, const umdErrorDetail *d)
{
    bool kept = false;

    umd_mutex_lock(&ctx->dev->state_lock);
    if (s && umd_failures_add(&s->failures, d)) {
        umd_stream_note_bad(s);
        kept = true;
    }
    if (is_context_failure(d->code) && umd_context_set_failed_locked(ctx, d))
        kept = true;
    if ((s && umd_failures_told(&s->failures, &d->id)) || umd_same_record(&d->id, &ctx->failed.id))
        kept = true; /* a call has met it already, or will */
    umd_cond_broadcast(&ctx->dev->changed);
    umd_mutex_unlock(&ctx->dev->state_lock);
    if (!kept) {
        umdErrorDetail copy = *d;
        umd_record_drop(&copy, "another failure of its stream is told before it, or has been");
    }
}

/* A record that came with an event must name a failure; anything else is the driver's defect, and told as such. */
static void repair(umdErrorDetail *d, const struct drm_petrel_event *ev)
{
    if (d->code < 0)
        return;
    umd_record_scope_begin();
    (void)UMD_FAIL(UMD_ERR_EXEC_FAILED, "event=0x%x job=%" PRIu64 " queue=%" PRIu64 " record=missing", ev->base.type, (uint64_t)ev->job_id,
                   (uint64_t)ev->queue_id);
    if (!umd_record_export(d))
        d->code = UMD_ERR_EXEC_FAILED;
    umd_record_scope_end();
}

/* Before all are told: those that a call may destroy as soon as it has met the failure. */
static void expect_all(struct umd_device *dev)
{
    umd_mutex_lock(&dev->lock);
    for (struct umd_context *c = dev->contexts; c; c = c->next)
        umd_context_expect(c);
    umd_mutex_unlock(&dev->lock);
}

/* The context with the lowest id above *above_io, referenced. NULL: none is left. They come and go meanwhile; each older one is met once. */
static struct umd_context *next_context(struct umd_device *dev, uint64_t *above_io)
{
    struct umd_context *next;

    umd_mutex_lock(&dev->lock);
    do {
        next = NULL;
        for (struct umd_context *c = dev->contexts; c; c = c->next)
            if (c->id > *above_io && (!next || c->id < next->id))
                next = c;
        if (next)
            *above_io = next->id;
    } while (next && !umd_object_tryref(&next->obj));
    umd_mutex_unlock(&dev->lock);
    return next;
}

/* As next_context, of the streams of a context. */
static struct umd_stream *next_stream(struct umd_context *ctx, uint32_t *above_io)
{
    struct umd_stream *next;

    umd_mutex_lock(&ctx->lock);
    do {
        next = NULL;
        for (struct umd_object *o = ctx->children; o; o = o->next) {
            struct umd_stream *s = (struct umd_stream *)o;
            if (o->type == UMD_OBJ_STREAM && s->number > *above_io && (!next || s->number < next->number))
                next = s;
        }
        if (next)
            *above_io = next->number;
    } while (next && !umd_object_tryref(&next->obj));
    umd_mutex_unlock(&ctx->lock);
    return next;
}

/* Every context of the device is told. False: none of them has a callback. */
static bool notify_all(struct umd_device *dev, const umdErrorDetail *d)
{
    struct umd_context *ctx;
    uint64_t told = 0;
    bool any = false;

    while ((ctx = next_context(dev, &told))) {
        any = umd_context_notify(ctx, d) || any;
        umd_object_put(&ctx->obj);
    }
    return any;
}

/* What no call returns is at its end with the callbacks, or with the log. */
static void end_warning(umdErrorDetail *d, bool called_back)
{
    if (called_back)
        umd_record_told(d);
    else
        umd_record_drop(d, "a warning, and no callback to tell it to");
}

static void tell_loss(struct umd_device *dev)
{
    (void)notify_all(dev, &dev->lost);
    umd_mutex_lock(&dev->state_lock);
    dev->loss_told = true;
    umd_cond_broadcast(&dev->changed);
    umd_mutex_unlock(&dev->state_lock);
}

/* The record was logged where the failure was seen first; what was added to its figures since is told here, under its id. */
static void note_completed(const char *what, const umdErrorDetail *before, const umdErrorDetail *d, uint64_t job_id)
{
    const size_t n = strlen(before->figures);
    const char *added = d->figures + (strncmp(d->figures, before->figures, n) == 0 ? n : 0);

    UMD_RECORD_NOTE(d, "%s told code=%s context=%" PRIu64 " job=%" PRIu64 " %s", what, umdStatusName((umdStatus)d->code), d->context_id, job_id,
                    added + strspn(added, " "));
}

/* ctx, stream: what the event is about, NULL where it is not known or not there any more. */
static void handle_event(struct umd_device *dev, const struct drm_petrel_event *ev, struct umd_context *ctx, struct umd_stream *stream)
{
    struct umd_location at, other;
    struct umd_job job;
    struct scene sc = { .ctx = ctx, .stream = stream, .event = ev };
    umdErrorDetail d = ev->record;

    repair(&d, ev);
    if (stream && umd_stream_find_job(stream, ev->cmdbuf_id, 0, &job))
        sc.job = &job;
    if (ctx && ev->pc && umd_module_locate(ctx, ev->pc, &at))
        sc.at = &at;
    if (ctx && d.code == UMD_ERR_HW_TRAP && ev->fault_data == PETREL_TRAP_BARRIER && ev->va && umd_module_locate(ctx, ev->va, &other))
        sc.other = &other;
    complete(&d, &sc);
    add_hop(&d);
    note_completed(is_warning(ev) ? "warning" : "failure", &ev->record, &d, ev->job_id);
    if (ev->base.type == DRM_PETREL_EVENT_LOST) {
        expect_all(dev);
        if (!umd_device_set_lost(dev, &d) && !umd_same_record(&d.id, &dev->lost.id))
            umd_record_drop(&d, "the device had been lost before: its first record is told");
        tell_loss(dev); /* a call may have met the loss before, by another code: all hear of the first */
    } else if (ev->base.type == DRM_PETREL_EVENT_CANCELLED && (!ctx || atomic_load(&ctx->dying))) {
        umd_record_drop(&d, "its context is being destroyed, with all its streams");
    } else if ((ev->base.type == DRM_PETREL_EVENT_ERROR || ev->base.type == DRM_PETREL_EVENT_CANCELLED) && ctx) {
        umd_context_expect(ctx);
        mark_failed(ctx, stream, &d);
        (void)umd_context_notify(ctx, &d);
    } else if (ctx) {
        end_warning(&d, umd_context_notify(ctx, &d));
    } else if (!ev->context_id) {
        end_warning(&d, notify_all(dev, &d)); /* of the whole device: its contexts share it */
    } else {
        umd_record_drop(&d, "its context is gone");
    }
}

/* ---- Events that were dropped ---- */

/*
 * A failure is told once, by its event, or from the state of its queue where events were dropped: the event may have been behind those, and come yet.
 * in_place: from the state of the queue. A context is banned once, for the first of its failures.
 */
static bool is_news(struct umd_context *ctx, struct umd_stream *s, const umdErrorDetail *d, bool in_place)
{
    const bool ban = is_context_failure(d->code);
    umdRecordId *noticed = ban ? &ctx->noticed : s ? &s->noticed : NULL;

    if (!noticed)
        return true;
    umd_mutex_lock(&ctx->dev->state_lock);
    const bool news = !umd_same_record(noticed, &d->id);
    if (!ban || in_place || !noticed->seq)
        *noticed = d->id;
    umd_mutex_unlock(&ctx->dev->state_lock);
    return news;
}

/* False: the stream is being destroyed, and its queue's id may be another queue's by now; or the driver does not say. */
static bool query_queue(struct umd_stream *s, struct drm_petrel_queue_query *q)
{
    *q = (struct drm_petrel_queue_query){ .queue_id = s->queue_id };
    if (atomic_load(&s->dying))
        return false;
    umdStatus st = umd_device_ioctl(s->ctx->dev, DRM_IOCTL_PETREL_QUEUE_QUERY, q);
    if (st < 0)
        UMD_ABSORB(st, "what became of the queue is told by the calls that use it");
    return st == UMD_SUCCESS && !atomic_load(&s->dying) && (q->state == DRM_PETREL_QUEUE_BANNED || q->state == DRM_PETREL_QUEUE_CANCELLED);
}

/* What is known of a failure whose record this process does not have, or not any more. It keeps its id: the kernel driver knows it by that. */
static void describe_unknown(umdErrorDetail *d, const struct umd_stream *s, const struct drm_petrel_queue_query *q)
{
    *d = (umdErrorDetail){
        .size_B = sizeof(*d), .code = q->code, .origin_code = q->code, .id = q->record, .context_id = s->ctx->id,
        .mono_ns = umd_sys()->mono_ns(), .advice = umdStatusAdvice((umdStatus)q->code), .func = "describe_unknown", .file = "error.c",
        .module = "umd.error", .text = "The event that told of the failure was dropped, and its record is not known here.",
    };
    add_figure(d, "queue=%u jobs_failed=%" PRIu64 " jobs_cancelled=%" PRIu64 " event=dropped", s->queue_id, (uint64_t)q->jobs_failed,
               (uint64_t)q->jobs_cancelled);
}

static uint64_t figure_of(const umdErrorDetail *d, const char *key)
{
    umdFigure f;

    return umdErrorDetailFigure(d, key, &f) && f.kind == UMD_FIGURE_UINT ? f.uint_value : 0;
}

/* Goes the way of the event that should have come. */
static void tell_in_place(struct umd_stream *s, const struct drm_petrel_queue_query *q)
{
    struct umd_context *ctx = s->ctx;
    struct drm_petrel_event ev = { .context_id = ctx->id, .record = { .size_B = sizeof(ev.record) } };

    if (umdGetErrorDetailById(q->record, &ev.record) != UMD_SUCCESS || ev.record.code != q->code)
        describe_unknown(&ev.record, s, q);
    const bool cancelled = q->state == DRM_PETREL_QUEUE_CANCELLED && q->code == UMD_ERR_EXEC_CANCELLED;
    ev.base = (struct drm_event){ .type = cancelled ? DRM_PETREL_EVENT_CANCELLED : DRM_PETREL_EVENT_ERROR, .length = sizeof(ev) };
    ev.queue_id = (uint32_t)figure_of(&ev.record, "queue"); /* a ban stops all queues of the context: of whose job is it? */
    ev.job_id = figure_of(&ev.record, "job");
    ev.cmdbuf_id = figure_of(&ev.record, "cmdbuf");
    ev.pc = figure_of(&ev.record, "pc");
    struct umd_stream *guilty = ev.queue_id == s->queue_id ? s : find_stream(ctx, ev.queue_id);
    if (is_news(ctx, guilty, &ev.record, true))
        handle_event(ctx->dev, &ev, ctx, guilty);
    if (guilty && guilty != s)
        umd_object_put(&guilty->obj);
}

/* Which were dropped nobody can say. What matters for good is in the state of the queues: each is asked, and what is news is told. */
static void reconcile(struct umd_device *dev)
{
    struct drm_petrel_queue_query q;
    struct umd_context *ctx;
    struct umd_stream *s;
    uint64_t id = 0;

    while ((ctx = next_context(dev, &id))) {
        uint32_t number = 0;
        umd_record_set_context(ctx->id);
        while (!atomic_load(&ctx->dying) && (s = next_stream(ctx, &number))) {
            if (!umd_device_is_lost(dev) && query_queue(s, &q))
                tell_in_place(s, &q);
            umd_object_put(&s->obj);
        }
        umd_object_put(&ctx->obj);
    }
}

void umd_error_event(struct umd_device *dev, const struct drm_petrel_event *ev)
{
    struct umd_context *ctx = ev->context_id ? find_context(dev, ev->context_id) : NULL;
    struct umd_stream *stream = ctx ? find_stream(ctx, ev->queue_id) : NULL;
    const uint64_t callers_context = umd_record_get_context(); /* stepped: events come inside calls of other contexts */
    const bool failure = ev->base.type == DRM_PETREL_EVENT_ERROR || ev->base.type == DRM_PETREL_EVENT_CANCELLED;
    struct umd_job job;

    umd_record_set_context(ev->context_id);
    if (stream && ev->base.type == DRM_PETREL_EVENT_CANCELLED && !umd_stream_find_job(stream, ev->cmdbuf_id, 0, &job)) {
        umd_object_put(&stream->obj); /* of a queue that is gone, whose id this stream has now */
        stream = NULL;
    }
    if (!ctx || !failure || is_news(ctx, stream, &ev->record, false))
        handle_event(dev, ev, ctx, stream);
    if (ev->base.type == DRM_PETREL_EVENT_OVERFLOW)
        reconcile(dev);
    if (stream)
        umd_object_put(&stream->obj);
    if (ctx)
        umd_object_put(&ctx->obj);
    umd_record_set_context(callers_context);
}

/* ---- What a call returns ---- */

umdStatus umd_error_take_unread(struct umd_stream *s)
{
    struct umd_device *dev = s->ctx->dev;
    umdErrorDetail d;

    if (__builtin_expect(!atomic_load_explicit(&s->failures.unread_count, memory_order_acquire), 1))
        return UMD_SUCCESS;
    umd_mutex_lock(&dev->state_lock);
    const bool took = umd_failures_take(&s->failures, &d);
    if (took && umd_same_record(&s->ctx->failed.id, &d.id))
        atomic_store(&s->ctx->failed_unread, false); /* the same failure: told now */
    umd_mutex_unlock(&dev->state_lock);
    if (!took)
        return UMD_SUCCESS;
    umdStatus st = umd_error_deliver(&d);
    return UMD_HOP(st);
}

bool umd_error_resumes(struct umd_stream *s, umdStatus st, umdRecordId *resume_out)
{
    umdErrorDetail d;

    (void)st; /* its record is closed, or delivered again */
    if (!umd_record_export(&d))
        return false;
    const umdRecordId failure = umd_failure_of(&d);
    umd_mutex_lock(&s->ctx->dev->state_lock);
    const bool told = umd_failures_told(&s->failures, &failure);
    umd_mutex_unlock(&s->ctx->dev->state_lock);
    if (!told || umd_same_record(&failure, resume_out)) {
        (void)!umd_error_deliver(&d);
        return false;
    }
    umd_record_drop(&d, "the caller had been told of the cancellation: submitted again");
    *resume_out = failure;
    return true;
}

uint32_t umd_error_told_count(struct umd_stream *s)
{
    umd_mutex_lock(&s->ctx->dev->state_lock);
    const uint32_t count = s->failures.told_count;
    umd_mutex_unlock(&s->ctx->dev->state_lock);
    return count;
}

bool umd_error_told_before(struct umd_stream *s, umdStatus st, uint32_t count)
{
    return (st == UMD_ERR_EXEC_CANCELLED || st == UMD_ERR_EXEC_INNOCENT_PARTIAL) && umd_error_told_count(s) == count &&
           !atomic_load(&s->ctx->failed_code) && !umd_device_is_lost(s->ctx->dev);
}

/* Threaded: the event of the failure may still be on its way to the event thread, unless a call has told of it. */
static void await_event(struct umd_stream *s, bool own, const umdErrorDetail *d)
{
    struct umd_device *dev = s->ctx->dev;
    const umdRecordId failure = umd_failure_of(d);

    umd_device_poll(dev);
    if (dev->stepped || umd_context_in_callback()) /* in a callback: this is the thread that would bring it */
        return;
    umd_mutex_lock(&dev->state_lock);
    for (int i = 0; i < 4; i++) {
        if (atomic_load(&s->failures.unread_count) || umd_device_is_lost(dev) || (!own && atomic_load(&s->ctx->failed_code)))
            break;
        if (umd_failures_told(&s->failures, &failure))
            break;
        (void)umd_cond_wait(&dev->changed, &dev->state_lock, EVENT_GRACE_NS / 4);
    }
    umd_mutex_unlock(&dev->state_lock);
}

/* "job=3 submit_ns=... ...": of what was waited for (B6). 0: not begun, or no such job. */
static const char *times_of(const struct drm_petrel_wait *w, char text[WAIT_TEXT])
{
    text[0] = '\0';
    umd_figures_append(text, WAIT_TEXT, "job=%" PRIu64 " submit_ns=%" PRIu64 " start_ns=%" PRIu64 " progress_ns=%" PRIu64, (uint64_t)w->job_id,
                       (uint64_t)w->submit_ns, (uint64_t)w->start_ns, (uint64_t)w->progress_ns);
    return text;
}

/* One record may be of all jobs that a queue had: these figures are of the awaited one. */
static void add_times(umdErrorDetail *d, const struct drm_petrel_wait *w)
{
    umdFigure f;

    if (umdErrorDetailFigure(d, "submit_ns", &f))
        return;
    if (!umdErrorDetailFigure(d, "job", &f))
        add_figure(d, "job=%" PRIu64, (uint64_t)w->job_id);
    add_figure(d, "submit_ns=%" PRIu64 " start_ns=%" PRIu64 " progress_ns=%" PRIu64, (uint64_t)w->submit_ns, (uint64_t)w->start_ns,
               (uint64_t)w->progress_ns);
}

/*
 * The event of the same failure has been here, which knows more of it than the fence does. True: *d is as complete. Not by what was found out of
 * another job: one record may be of all that a queue had. point: of the stream, which the record's "submission" tells.
 */
static bool completed_before(umdErrorDetail *d, uint64_t point)
{
    umdErrorDetail known = { .size_B = sizeof(known) };
    const size_t n = strlen(d->figures);
    umdFigure f;

    if (umdGetErrorDetailById(d->id, &known) != UMD_SUCCESS || strncmp(known.figures, d->figures, n) != 0 || !known.figures[n])
        return false;
    if (umdErrorDetailFigure(&known, "submission", &f) && f.uint_value != point)
        return false;
    memcpy(d->figures, known.figures, sizeof(d->figures));
    memcpy(d->text, known.text, sizeof(d->text));
    return true;
}

/* The fence's own record, completed with what the stream knows. */
static umdStatus from_fence(struct umd_stream *s, const struct drm_petrel_wait *w, umdErrorDetail *d, bool for_event)
{
    struct umd_job job;
    struct scene sc = { .ctx = s->ctx, .stream = s };
    uint64_t point = ((const struct drm_petrel_sync *)(uintptr_t)w->syncs_ptr)->point;

    if (umd_stream_find_job(s, 0, point, &job))
        sc.job = &job;
    if (!completed_before(d, point)) {
        const umdErrorDetail before = *d;
        atomic_store(&s->ctx->told_early, true);
        complete(d, &sc);
        note_completed("failure", &before, d, w->job_id);
    }
    add_times(d, w);
    umd_mutex_lock(&s->ctx->dev->state_lock);
    if (is_context_failure(d->code) && umd_context_set_failed_locked(s->ctx, d))
        atomic_store(&s->ctx->failed_unread, false);
    if (!for_event)
        tell_locked(s, d);
    umd_mutex_unlock(&s->ctx->dev->state_lock);
    umdStatus st = umd_error_deliver(d);
    return UMD_HOP(st);
}

/* The stream's own failure, of which the loss of the device may have come; else the loss. UMD_SUCCESS: neither. */
static umdStatus first_told(struct umd_stream *s)
{
    umdStatus st = umd_error_take_unread(s);

    if (st == UMD_SUCCESS)
        st = umd_device_check(s->ctx->dev);
    return st < 0 ? UMD_HOP(st) : UMD_SUCCESS;
}

/* Another record may be the one that is told: this ends it, unless it is the same. */
static void drop_unless_told(umdErrorDetail *d)
{
    umdRecordId told = umd_record_current();

    if (told.seq != d->id.seq || told.pid != d->id.pid)
        umd_record_drop(d, "what it came of is told in its place");
}

umdStatus umd_error_lost(struct umd_stream *s, const struct drm_petrel_wait *w, umdStatus st)
{
    umdErrorDetail d;
    char text[WAIT_TEXT];

    if (!umd_record_export(&d))
        return st;
    st = first_told(s);
    if (umd_device_is_lost(s->ctx->dev)) /* which is one record for all: what it ended here is not written into it */
        UMD_LOG(UMD_LOG_INFO, "wait ended by the loss of the device stream=%u %s", s->number, times_of(w, text));
    drop_unless_told(&d);
    return UMD_HOP(st);
}

static bool has_reason(const umdErrorDetail *d, const char *reason)
{
    return d->code == UMD_ERR_EXEC_CANCELLED && strstr(d->figures, reason);
}

/* Work that fell with a job of its context: the job's failure is told first, and what fell with it then. */
static umdStatus fell_with_context(struct umd_stream *s, const struct drm_petrel_wait *w, umdErrorDetail *d)
{
    struct umd_context *ctx = s->ctx;
    char text[WAIT_TEXT];

    if (atomic_exchange(&ctx->failed_unread, false)) {
        umdStatus st = umd_error_deliver(&ctx->failed); /* no call has met it yet */
        drop_unless_told(d);
        return UMD_HOP(st);
    }
    umd_record_drop(d, "the failure that it fell with is told, as the cause of this wait's");
    return UMD_FAIL_ADVISED(UMD_ERR_EXEC_CANCELLED, umd_advice_do(UMD_ERR_EXEC_CANCELLED, UMD_ACTION_REBUILD_CONTEXT), ctx->failed.id,
                            "stream=%u because_of=%s %s", s->number, umdStatusName(ctx->failed.code), times_of(w, text));
}

umdStatus umd_error_fence(struct umd_stream *s, const struct drm_petrel_wait *w, umdStatus st, bool for_event)
{
    struct umd_context *ctx = s->ctx;
    char text[WAIT_TEXT];
    umdErrorDetail d;

    if (!umd_record_export(&d))
        return st;
    if (has_reason(&d, "reason=queue_destroyed") && (atomic_load(&s->dying) || atomic_load(&ctx->dying))) {
        st = umd_error_deliver(&d);
        return UMD_FAIL_CAUSED(UMD_ERR_WAIT_INTERRUPTED, "stream=%u object=%s reason=\"destroyed before it was done\" %s", s->number,
                               atomic_load(&ctx->dying) ? "context" : "stream", times_of(w, text));
    }
    const bool fell = has_reason(&d, "reason=context_banned");
    const bool alone = !fell && !is_context_failure((umdStatus)d.code); /* nobody else fell with it */
    if (!alone || !for_event) {
        await_event(s, !fell, &d);
        st = first_told(s);
        if (st < 0) {
            drop_unless_told(&d);
            return UMD_HOP(st);
        }
    }
    if (fell && atomic_load_explicit(&ctx->failed_code, memory_order_acquire))
        st = fell_with_context(s, w, &d);
    else
        st = from_fence(s, w, &d, for_event);
    return UMD_HOP(st);
}

umdStatus umd_error_refused(struct umd_stream *s, umdStatus st)
{
    umdErrorDetail d;

    if (!umd_record_export(&d))
        return st;
    await_event(s, false, &d);
    st = first_told(s);
    if (st == UMD_SUCCESS)
        st = umd_context_check(s->ctx);
    if (st == UMD_SUCCESS) {
        atomic_store(&s->ctx->told_early, true);
        umd_mutex_lock(&s->ctx->dev->state_lock);
        tell_locked(s, &d);
        umd_mutex_unlock(&s->ctx->dev->state_lock);
        st = umd_error_deliver(&d);
    } else {
        drop_unless_told(&d);
    }
    return UMD_HOP(st);
}

static umdStatus code_of_stage(uint32_t stage)
{
    switch (stage) {
    case DRM_PETREL_STAGE_NONE: return UMD_ERR_WAIT_NOT_SUBMITTED;
    case DRM_PETREL_STAGE_DEPENDENCY: return UMD_ERR_WAIT_DEPENDENCY;
    case DRM_PETREL_STAGE_QUEUED: return UMD_ERR_WAIT_QUEUED;
    case DRM_PETREL_STAGE_DONE: /* as the time ran out: the next wait tells */
    case DRM_PETREL_STAGE_RUNNING: return UMD_STATUS_TIMEOUT_PROGRESS;
    case DRM_PETREL_STAGE_STALLED: return UMD_ERR_WAIT_STALLED;
    case DRM_PETREL_STAGE_SIGNAL_LOST: return UMD_ERR_WAIT_SIGNAL_LOST;
    case DRM_PETREL_STAGE_CYCLE: return UMD_ERR_WAIT_CYCLE;
    default: return UMD_ERR_WAIT_QUEUED;
    }
}

umdStatus umd_error_timeout(struct umd_stream *s, const struct drm_petrel_wait *w, uint64_t timeout_ns)
{
    umdStatus code = code_of_stage(w->stage);
    struct umd_job job;
    uint64_t point = ((const struct drm_petrel_sync *)(uintptr_t)w->syncs_ptr)->point;
    bool known = umd_stream_find_job(s, 0, point, &job);
    char cycle[80] = "";

    if (w->cycle_job)
        umd_figures_append(cycle, sizeof(cycle), "root_queue=%" PRIu64 " cycle_job=%" PRIu64, (uint64_t)w->root_queue, (uint64_t)w->cycle_job);
    if (code == UMD_STATUS_TIMEOUT_PROGRESS) {
        UMD_LOG(UMD_LOG_DEBUG, "wait ended by time-out, job makes progress stream=%u job=%" PRIu64 " start_ns=%" PRIu64 " progress_ns=%" PRIu64
                " progress=%" PRIu64, s->number, (uint64_t)w->job_id, (uint64_t)w->start_ns, (uint64_t)w->progress_ns, (uint64_t)w->progress);
        return code;
    }
    return UMD_FAIL(code, "stream=%u timeout_ns=%" PRIu64 " job=%" PRIu64 " queue=%" PRIu64 " root_job=%" PRIu64 " submit_ns=%" PRIu64
                           " start_ns=%" PRIu64 " progress_ns=%" PRIu64 " progress=%" PRIu64 " kind=%s kernel=%s hops=%u %s", s->number, timeout_ns,
                           (uint64_t)w->job_id, (uint64_t)w->queue_id, (uint64_t)w->root_job, (uint64_t)w->submit_ns, (uint64_t)w->start_ns,
                           (uint64_t)w->progress_ns, (uint64_t)w->progress, known ? job.kind : "-", known && job.name[0] ? job.name : "-", w->hops, cycle);
}
