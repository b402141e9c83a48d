/* SPDX-License-Identifier: MIT */
/* stream.c - streams: queue, timeline, command ring, submission with its bounded retry, waits. */
#include "stream.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include <hw/petrel_packets.h>

#include "error.h"
#include "fault_plan.h"
#include "library.h"
#include "status.h"

UMD_LOG_MODULE("umd.stream");

/*
 * Each submission takes one piece of the stream's ring and signals one point of its timeline, so "which memory is free again" and
 * "what has finished" are one question. The story of the last UMD_JOBS submissions is kept for error reports.
 */

enum { QUERY_STEP_NS = 1000 };   /* stepped mode: device time that a query or a wait without time takes */

/* ---- Life ---- */

static void destroy_syncobj(struct umd_stream *s)
{
    struct drm_syncobj_destroy d = { .handle = s->syncobj };

    if (!s->syncobj)
        return;
    umdStatus st = umd_winsys_core_ioctl(s->ctx->dev->file, DRM_IOCTL_SYNCOBJ_DESTROY, &d);
    if (st < 0)
        UMD_ABSORB(st, "the timeline goes with the device file");
    s->syncobj = 0;
}

static void destroy_queue(struct umd_stream *s)
{
    struct drm_petrel_queue_destroy d = { .queue_id = s->queue_id };

    if (!s->queue_id || atomic_exchange(&s->queue_gone, true))
        return;
    umdStatus st = umd_device_ioctl(s->ctx->dev, DRM_IOCTL_PETREL_QUEUE_DESTROY, &d);
    if (st < 0)
        UMD_ABSORB(st, "the queue goes with the device file");
}

/* What no call has met by now is told by the log. */
static void tell_unread(struct umd_stream *s)
{
    umdErrorDetail d;

    for (;;) {
        umd_mutex_lock(&s->ctx->dev->state_lock);
        const bool unread = umd_failures_take(&s->failures, &d);
        umd_mutex_unlock(&s->ctx->dev->state_lock);
        if (!unread)
            return;
        UMD_LOG(UMD_LOG_WARN, "destroyed with an unread error stream=%u code=%s record=%08x:%u:%" PRIu64, s->number, umdStatusName((umdStatus)d.code),
                d.id.boot, d.id.pid, d.id.seq);
        umd_record_drop(&d, "its stream was destroyed before a call met it");
    }
}

/* The handle is closed: unfinished work is cancelled, which wakes all who wait for it. */
static void stream_teardown(struct umd_object *obj)
{
    struct umd_stream *s = (struct umd_stream *)obj;

    atomic_store(&s->dying, true);
    umd_record_set_context(s->ctx->id);
    umd_device_poll(s->ctx->dev);
    destroy_queue(s);
    umd_stream_idle(s); /* what ran is killed by then: its memory and code may go */
    tell_unread(s);
}

static void stream_release(struct umd_object *obj)
{
    struct umd_stream *s = (struct umd_stream *)obj;

    destroy_queue(s);
    umd_slots_forget(s->ctx, s);
    umd_bo_destroy(s->ctx, &s->ring);
    destroy_syncobj(s);
    if (obj->handle)
        UMD_LOG(UMD_LOG_INFO, "stream destroyed stream=%u context=%" PRIu64 " submissions=%" PRIu64, s->number, s->ctx->id,
                atomic_load(&s->last_point));
    umd_mutex_fini(&s->lock);
    if (obj->ctx)
        umd_context_disown(obj);
    umd_free(s);
}

static umdStatus create_resources(struct umd_stream *s)
{
    struct umd_context *ctx = s->ctx;
    struct umd_bo_desc ring = {
        .size_B = UMD_RING_B, .gem_flags = DRM_PETREL_GEM_VRAM | DRM_PETREL_GEM_CPU_VISIBLE,
        .rights = DRM_PETREL_BIND_READ, .map = true,
    };
    struct drm_petrel_queue_create q = {
        .vm_id = ctx->vm_id, .engine = s->kind == UMD_STREAM_COPY ? DRM_PETREL_QUEUE_COPY : DRM_PETREL_QUEUE_COMPUTE,
        .priority = s->priority, .context_id = ctx->id,
    };
    struct drm_syncobj_create c = { 0 };

    umdStatus st = umd_winsys_core_ioctl(ctx->dev->file, DRM_IOCTL_SYNCOBJ_CREATE, &c);
    if (st < 0)
        return UMD_HOP(st);
    s->syncobj = c.handle;
    st = umd_bo_create(ctx, &ring, &s->ring);
    if (st < 0)
        return UMD_HOP(st);
    st = umd_device_ioctl(ctx->dev, DRM_IOCTL_PETREL_QUEUE_CREATE, &q);
    if (st < 0)
        return UMD_HOP(st);
    s->queue_id = q.queue_id;
    return UMD_SUCCESS;
}

static umdStatus stream_create(struct umd_context *ctx, umdStreamKind kind, int priority, umdStream *stream_out)
{
    struct umd_fault_hit hit;
    struct umd_stream *s = NULL;

    if (umd_fault(UMD_FAULT_UMD_STREAM_CREATE, (struct umd_fault_where){ .ctx = ctx->id }, &hit))
        return UMD_FAIL(UMD_ERR_MEM_HOST_ALLOC_FAILED, "size_B=%zu what=stream", sizeof(*s));
    s = umd_alloc(sizeof(*s));
    if (!s)
        return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    s->ctx = ctx;
    s->kind = kind;
    s->priority = priority;
    s->number = (uint32_t)atomic_fetch_add(&ctx->next_stream, 1);
    s->obj.teardown = stream_teardown;
    s->obj.release = stream_release;
    umd_mutex_init(&s->lock, "umd stream", 30);
    umdStatus st = create_resources(s);
    if (st == UMD_SUCCESS)
        st = umd_handle_open(&s->obj, UMD_OBJ_STREAM);
    if (st < 0) {
        umd_error_keep(st, stream_release(&s->obj));
        return UMD_HOP(st);
    }
    umdStream handle = { s->obj.handle };
    st = umd_context_adopt(ctx, &s->obj);
    if (st < 0) {
        struct umd_object *obj = NULL;
        umd_error_keep(st, if (umd_handle_close(handle.id, UMD_OBJ_STREAM, &obj) == UMD_SUCCESS) umd_object_put(obj));
        return UMD_HOP(st);
    }
    UMD_LOG(UMD_LOG_INFO, "stream created stream=%u context=%" PRIu64 " kind=%s priority=%d queue=%u", s->number, ctx->id,
            kind == UMD_STREAM_COPY ? "copy" : "compute", priority, s->queue_id);
    *stream_out = handle;
    return UMD_SUCCESS;
}

umdStatus umdStreamCreate(umdContext context, umdStreamKind kind, int priority, umdStream *stream_out)
{
    struct umd_call call;
    struct umd_context *ctx;

    umdStatus st = UMD_CALL_ENTER(&call, "context=0x%" PRIx64 " kind=%d priority=%d", context.id, (int)kind, priority);
    if (st < 0)
        return umd_call_leave(&call, st);
    if (!stream_out)
        return umd_call_leave(&call, UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=stream_out"));
    if (kind != UMD_STREAM_COMPUTE && kind != UMD_STREAM_COPY)
        return umd_call_leave(&call, UMD_FAIL(UMD_ERR_PARAM_RANGE, "argument=kind value=%d min=0 max=1", (int)kind));
    if (priority < -1 || priority > 1)
        return umd_call_leave(&call, UMD_FAIL(UMD_ERR_PARAM_RANGE, "argument=priority value=%d min=-1 max=1", priority));
    st = umd_context_get(context, &ctx);
    if (st == UMD_SUCCESS) {
        st = stream_create(ctx, kind, priority, stream_out);
        umd_object_put(&ctx->obj);
    }
    return umd_call_leave(&call, st);
}

umdStatus umdStreamDestroy(umdStream stream)
{
    struct umd_call call;
    struct umd_object *obj;

    umdStatus st = UMD_CALL_ENTER(&call, "stream=0x%" PRIx64, stream.id);
    if (st == UMD_SUCCESS)
        st = umd_handle_close(stream.id, UMD_OBJ_STREAM, &obj);
    if (st == UMD_SUCCESS) {
        stream_teardown(obj);
        umd_object_put(obj);
    }
    return umd_call_leave(&call, st);
}

umdStatus umd_stream_get(umdStream handle, struct umd_stream **stream_out)
{
    struct umd_object *obj;

    umdStatus st = umd_handle_get(handle.id, UMD_OBJ_STREAM, &obj);
    if (st < 0)
        return UMD_HOP(st);
    *stream_out = (struct umd_stream *)obj;
    umd_record_set_context((*stream_out)->ctx->id);
    umd_device_poll((*stream_out)->ctx->dev);
    return UMD_SUCCESS;
}

umdStatus umd_stream_check(struct umd_stream *s)
{
    umdStatus st = umd_context_check(s->ctx);

    if (st < 0)
        return UMD_HOP(st);
    if (atomic_load_explicit(&s->dying, memory_order_acquire))
        return UMD_FAIL(UMD_ERR_HANDLE_DESTROYED, "stream=%u reason=\"destroyed by another thread during the call\"", s->number);
    return UMD_SUCCESS;
}

/* ---- Ring and jobs, under the stream's lock ---- */

static struct umd_job *job_at(struct umd_stream *s, uint64_t point)
{
    return &s->jobs[point & (UMD_JOBS - 1)];
}

bool umd_stream_find_job(struct umd_stream *s, uint64_t cmdbuf_id, uint64_t point, struct umd_job *out)
{
    bool found = false;

    umd_mutex_lock(&s->ctx->dev->state_lock);
    for (uint32_t i = 0; i < UMD_JOBS && !found; i++) {
        const struct umd_job *j = &s->jobs[i];
        found = j->point && ((cmdbuf_id && j->cmdbuf_id == cmdbuf_id) || (point && j->point == point));
        if (found)
            *out = *j;
    }
    umd_mutex_unlock(&s->ctx->dev->state_lock);
    return found;
}

static void note_done(struct umd_stream *s, uint64_t point)
{
    uint64_t done = atomic_load(&s->done_point);

    while (done < point && !atomic_compare_exchange_weak(&s->done_point, &done, point))
        ;
}

void umd_stream_note_bad(struct umd_stream *s)
{
    const uint64_t last = atomic_load(&s->last_point) + 1; /* one may be on its way: the driver has it, and this side does not know yet */
    uint64_t bad = atomic_load(&s->bad_point);

    while (bad < last && !atomic_compare_exchange_weak(&s->bad_point, &bad, last))
        ;
}

bool umd_stream_ended(struct umd_stream *s, uint64_t point) { return atomic_load(&s->done_point) >= point; }

bool umd_stream_ended_well(struct umd_stream *s, uint64_t point)
{
    return !point || (umd_stream_ended(s, point) && atomic_load(&s->bad_point) < point);
}

enum awaited {
    ENDED,
    NOT_YET,     /* within timeout_ns */
    NO_WAIT,     /* it could not be made: nothing was waited for, and nothing is known */
};

/* Waits for a point; what goes wrong with it is for the calls that look for it. */
static enum awaited await(struct umd_stream *s, uint64_t point, uint64_t timeout_ns)
{
    struct drm_petrel_sync sync = { .handle = s->syncobj, .point = point };
    struct drm_petrel_wait w = {
        .syncs_ptr = (uint64_t)(uintptr_t)&sync, .sync_count = 1, .flags = DRM_PETREL_WAIT_ALL | DRM_PETREL_WAIT_DEVICE_CLOCK,
        .timeout_ns = timeout_ns,
    };

    if (atomic_load(&s->done_point) >= point)
        return ENDED;
    if (umd_device_is_lost(s->ctx->dev)) {
        note_done(s, point); /* nothing runs any more */
        return ENDED;
    }
    umd_record_scope_begin();
    umdStatus st = umd_device_ioctl(s->ctx->dev, DRM_IOCTL_PETREL_WAIT, &w);
    /* Only a fence says that work has ended. A wait that could not be made, for want of host memory say, says nothing. */
    bool ended = st == UMD_SUCCESS || w.fence_error || umd_device_is_lost(s->ctx->dev);
    if (st < 0)
        UMD_ABSORB(st, ended ? "the event of the failed job tells its story" : "the driver itself waits, and goes on waiting");
    umd_record_scope_end();
    if (w.fence_error)
        umd_stream_note_bad(s);
    if (ended)
        note_done(s, point);
    return ended ? ENDED : st < 0 ? NO_WAIT : NOT_YET;
}

bool umd_stream_poll(struct umd_stream *s, uint64_t point) { return await(s, point, 0) == ENDED; }

static void pause_host(uint32_t ms)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + (uint64_t)ms * 1000000u;
    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ; /* a signal does not use up the retries */
}

/* Before another try, where no wait has taken the time. A stepped run has one thread: nothing comes free while it sleeps. */
static void pause_before_retry(struct umd_stream *s, umdStatus st)
{
    if (!s->ctx->dev->stepped)
        pause_host(umd_status_driver_retry(st).delay_ms);
}

void umd_stream_idle(struct umd_stream *s)
{
    const uint64_t point = atomic_load(&s->last_point); /* once: what others submit meanwhile is not waited for */
    const struct umd_driver_retry retry = umd_status_driver_retry(UMD_ERR_MEM_HOST_ALLOC_FAILED);

    /*
     * A round waits for the fence, and fails only where the host is short of memory: bounded, and the watchdog ends the work meanwhile.
     * Should it never succeed, nothing is taken for done; the kernel driver keeps memory until the work that uses it has ended.
     */
    for (uint32_t tries = 0; tries < retry.count && await(s, point, UINT64_MAX) != ENDED; tries++) {
        atomic_fetch_add(&s->ctx->dev->wait_retries, 1);
        umd_record_retried(UMD_ERR_MEM_HOST_ALLOC_FAILED);
        pause_before_retry(s, UMD_ERR_MEM_HOST_ALLOC_FAILED);
    }
}

/* Frees ring memory and job entries of what is known to be done. */
static void reclaim_locked(struct umd_stream *s)
{
    uint64_t done = atomic_load(&s->done_point);

    umd_mutex_assert_held(&s->lock);
    const struct umd_job *j = job_at(s, done);
    if (done && j->point == done && j->ring_end > s->ring_tail)
        s->ring_tail = j->ring_end;
}

/* Position of size_B bytes in one piece, behind what is in flight. */
static umdStatus ring_take_locked(struct umd_stream *s, uint32_t size_B, uint64_t *pos_out)
{
    const struct umd_driver_retry retry = umd_status_driver_retry(UMD_ERR_MEM_HOST_ALLOC_FAILED);

    assert(size_B <= UMD_RING_B / 2 && !(size_B & 63u));
    reclaim_locked(s);
    for (uint32_t tries = 0;;) {
        uint64_t pos = s->ring_head;
        if (pos % UMD_RING_B + size_B > UMD_RING_B)
            pos += UMD_RING_B - pos % UMD_RING_B;
        uint64_t last = atomic_load(&s->last_point), done = atomic_load(&s->done_point);
        if (pos + size_B - s->ring_tail <= UMD_RING_B && last - done < UMD_JOBS - 1) {
            *pos_out = pos;
            return UMD_SUCCESS;
        }
        if (done == last) { /* nothing in flight: all of it is free */
            s->ring_tail = s->ring_head = pos;
            continue;
        }
        if (await(s, done + (last - done + 1) / 2, UINT64_MAX) != ENDED) { /* short of host memory; it may come back */
            if (tries++ >= retry.count)
                return UMD_FAIL_SEVERITY(UMD_ERR_SUBMIT_RING_FULL, UMD_SEVERITY_ERROR, (umdRecordId){ 0 },
                                     "stream=%u in_flight=%" PRIu64 " tries=%u reason=\"waits for old work fail\"", s->number, last - done, tries);
            atomic_fetch_add(&s->ctx->dev->wait_retries, 1);
            umd_record_retried(UMD_ERR_MEM_HOST_ALLOC_FAILED);
            pause_before_retry(s, UMD_ERR_MEM_HOST_ALLOC_FAILED);
        }
        reclaim_locked(s);
        umdStatus st = umd_stream_check(s);
        if (st < 0)
            return UMD_HOP(st);
    }
}

umdStatus umd_cmd_begin(struct umd_stream *s, uint32_t dwords, uint32_t data_B, struct umd_cmd *cmd_out)
{
    uint32_t total_dw = dwords + 3 + 1, code_B = (total_dw * 4 + 63) & ~63u, all_B = code_B + ((data_B + 63) & ~63u);
    uint64_t pos;

    umdStatus st = ring_take_locked(s, all_B, &pos);
    if (st < 0)
        return UMD_HOP(st);
    uint8_t *host = (uint8_t *)s->ring.map + pos % UMD_RING_B;
    uint64_t va = s->ring.va + pos % UMD_RING_B;
    *cmd_out = (struct umd_cmd){
        .stream = s, .dw = (uint32_t *)(void *)host, .va = va, .limit = total_dw, .ring_end = pos + all_B,
        .data = data_B ? host + code_B : NULL, .data_va = va + code_B,
        .cmdbuf_id = atomic_fetch_add_explicit(&s->ctx->next_cmdbuf, 1, memory_order_relaxed),
    };
    umd_cmd_packet(cmd_out, PETREL_OP_MARK, &cmd_out->cmdbuf_id, 2);
    umd_cmd_packet(cmd_out, PETREL_OP_BARRIER, NULL, 0);
    return UMD_SUCCESS;
}

void umd_cmd_packet(struct umd_cmd *cmd, uint32_t opcode, const void *payload, uint32_t dwords)
{
    assert(cmd->count + 1 + dwords <= cmd->limit);
    cmd->dw[0] = PETREL_PKT(opcode, dwords);
    if (dwords)
        memcpy(cmd->dw + 1, payload, dwords * 4u);
    cmd->dw += 1 + dwords;
    cmd->count += 1 + dwords;
}

/* ---- Submission ---- */

/* What a refused submission means to the caller. */
static umdStatus refused(struct umd_stream *s, umdStatus st)
{
    struct umd_context *ctx = s->ctx;

    if (umd_device_is_lost(ctx->dev) || st == UMD_ERR_MEM_HOST_ALLOC_FAILED)
        return UMD_HOP(st);
    if (atomic_load(&s->dying) || atomic_load(&ctx->dying))
        return UMD_FAIL_CAUSED(atomic_load(&ctx->dying) ? UMD_ERR_CTX_DESTROYED : UMD_ERR_HANDLE_DESTROYED, "stream=%u", s->number);
    if (st == UMD_ERR_CTX_BANNED || umdStatusErrno(st) == EIO)
        return UMD_HOP_AS(st, UMD_ERR_CTX_BANNED);
    if (st == UMD_ERR_EXEC_CANCELLED)
        return UMD_HOP(st);
    const umdRecordId cause = umd_record_take_cause();
    return UMD_FAIL_ADVISED(UMD_ERR_SUBMIT_FAILED, umd_advice_of_cause(UMD_ERR_SUBMIT_FAILED, cause), cause, "stream=%u queue=%u because_of=%s",
                            s->number, s->queue_id, umdStatusName(st));
}

/*
 * The queue is full: wait for the oldest job, as often as the table lets the driver without any job finishing. The stream's lock is held, so
 * nobody adds work meanwhile, and each round that finishes a job gets the retry nearer: it ends.
 */
static umdStatus exec_retrying(struct umd_stream *s, struct drm_petrel_exec *e)
{
    const struct umd_driver_retry retry = umd_status_driver_retry(UMD_ERR_SUBMIT_RING_FULL);
    struct umd_device *dev = s->ctx->dev;

    for (uint32_t tries = 0;;) {
        umdStatus st = umd_device_ioctl(dev, DRM_IOCTL_PETREL_EXEC, e);
        if (st == UMD_SUCCESS)
            return UMD_SUCCESS;
        if (st == UMD_ERR_EXEC_CANCELLED && umd_error_resumes(s, st, &e->resume))
            continue; /* at most once for each failure that was told */
        if (st != UMD_ERR_SUBMIT_RING_FULL) {
            st = refused(s, st);
            return UMD_HOP(st);
        }
        if (tries++ >= retry.count)
            return UMD_FAIL_SEVERITY(UMD_ERR_SUBMIT_RING_FULL, UMD_SEVERITY_ERROR, umd_record_take_cause(), /* what had been no more than a moment's wait */
                                 "stream=%u queue=%u tries=%u delay_ms=%u jobs_submitted=%" PRIu64 " jobs_done=%" PRIu64, s->number, s->queue_id, tries,
                                 retry.delay_ms, atomic_load(&s->last_point), atomic_load(&s->done_point));
        UMD_ABSORB(st, "waited for the oldest job of the queue and submitted again");
        atomic_fetch_add(&dev->ring_full_waits, 1);
        umd_record_retried(UMD_ERR_SUBMIT_RING_FULL);
        const uint64_t done = atomic_load(&s->done_point);
        enum awaited end = NO_WAIT;
        if (done < atomic_load(&s->last_point))
            end = await(s, done + 1, (uint64_t)retry.delay_ms * 1000000u);
        if (end == ENDED)
            tries = 0;
        else if (end == NO_WAIT)
            pause_before_retry(s, UMD_ERR_SUBMIT_RING_FULL);
        st = umd_stream_check(s);
        if (st < 0)
            return UMD_HOP(st);
    }
}

static umdStatus submit_locked(struct umd_stream *s, const struct drm_petrel_ib *ib, const struct drm_petrel_sync *wait, struct umd_job *job)
{
    uint64_t point = atomic_load_explicit(&s->last_point, memory_order_relaxed) + 1;
    struct drm_petrel_sync syncs[2] = { { .handle = s->syncobj, .flags = DRM_PETREL_SYNC_SIGNAL, .point = point } };
    struct drm_petrel_exec e = {
        .queue_id = s->queue_id, .ib_count = ib ? 1 : 0, .ibs_ptr = (uint64_t)(uintptr_t)ib, .sync_count = wait ? 2 : 1,
        .syncs_ptr = (uint64_t)(uintptr_t)syncs, .cmdbuf_id = job->cmdbuf_id,
    };

    umd_mutex_assert_held(&s->lock);
    if (wait)
        syncs[1] = *wait;
    job->point = point;
    /* The story stands before the job does: its failure may be reported before EXEC returns. */
    umd_mutex_lock(&s->ctx->dev->state_lock);
    *job_at(s, point) = *job;
    e.resume = umd_failures_last_told(&s->failures);
    umd_mutex_unlock(&s->ctx->dev->state_lock);
    umdStatus st = exec_retrying(s, &e);
    if (__builtin_expect(st < 0, 0)) {
        umd_mutex_lock(&s->ctx->dev->state_lock);
        job_at(s, point)->point = 0;
        umd_mutex_unlock(&s->ctx->dev->state_lock);
        return UMD_HOP(st);
    }
    /* Nothing below can fail. */
    job->job_id = e.job_id;
    umd_mutex_lock(&s->ctx->dev->state_lock);
    job_at(s, point)->job_id = e.job_id;
    umd_mutex_unlock(&s->ctx->dev->state_lock);
    atomic_store_explicit(&s->last_point, point, memory_order_release);
    s->ring_head = job->ring_end;
    return UMD_SUCCESS;
}

umdStatus umd_cmd_submit(struct umd_cmd *cmd, struct umd_job *job, const struct drm_petrel_sync *wait)
{
    struct drm_petrel_ib ib = { .va = cmd->va, .size_dw = cmd->count };

    job->cmdbuf_id = cmd->cmdbuf_id;
    job->ring_end = cmd->ring_end;
    umdStatus st = submit_locked(cmd->stream, &ib, wait, job);
    return st < 0 ? UMD_HOP(st) : UMD_SUCCESS;
}

umdStatus umd_stream_submit_wait(struct umd_stream *s, const struct drm_petrel_sync *wait)
{
    struct umd_job job = { .kind = "wait", .cmdbuf_id = atomic_fetch_add(&s->ctx->next_cmdbuf, 1) };
    uint64_t pos;

    umdStatus st = ring_take_locked(s, 64, &pos); /* makes sure of a job entry */
    if (st < 0)
        return UMD_HOP(st);
    job.ring_end = s->ring_head;
    st = submit_locked(s, NULL, wait, &job);
    return st < 0 ? UMD_HOP(st) : UMD_SUCCESS;
}

umdStatus umd_stream_unlock(struct umd_stream *s, umdStatus st)
{
    umd_mutex_unlock(&s->lock);
    if (__builtin_expect(st == UMD_ERR_CTX_BANNED || st == UMD_ERR_EXEC_CANCELLED, 0))
        st = umd_error_refused(s, st);
    return st;
}

/* ---- Waiting ---- */

umdStatus umd_stream_wait(struct umd_stream *s, uint64_t point, uint64_t timeout_ns, bool query, bool for_event)
{
    struct drm_petrel_sync sync = { .handle = s->syncobj, .point = point };
    struct drm_petrel_wait w = {
        .syncs_ptr = (uint64_t)(uintptr_t)&sync, .sync_count = 1, .flags = DRM_PETREL_WAIT_ALL | DRM_PETREL_WAIT_DEVICE_CLOCK,
        .timeout_ns = timeout_ns,
    };

    if (umd_stream_ended_well(s, point))
        return UMD_SUCCESS;
    if (s->ctx->dev->stepped && w.timeout_ns < QUERY_STEP_NS)
        w.timeout_ns = QUERY_STEP_NS; /* a program that polls must see time pass */
    umdStatus st = umd_device_ioctl(s->ctx->dev, DRM_IOCTL_PETREL_WAIT, &w);
    umd_device_poll(s->ctx->dev);
    if (__builtin_expect(st == UMD_SUCCESS, 1)) {
        note_done(s, point);
        return UMD_SUCCESS;
    }
    if (st < 0 && umd_device_is_lost(s->ctx->dev)) {
        st = umd_error_lost(s, &w, st);
        return UMD_HOP(st);
    }
    if (w.fence_error < 0) {
        umd_stream_note_bad(s); /* before it counts as ended */
        note_done(s, point);
        st = umd_error_fence(s, &w, st, for_event);
        return UMD_HOP(st);
    }
    if (st < 0)
        return UMD_HOP(st);
    if (query && w.stage != DRM_PETREL_STAGE_SIGNAL_LOST)
        return UMD_STATUS_NOT_READY;
    st = umd_error_timeout(s, &w, timeout_ns);
    return st < 0 ? UMD_HOP(st) : st;
}

/* The stream's own unread error first, then what stops the whole context. */
static umdStatus check_for_wait(struct umd_stream *s)
{
    umdStatus st = umd_error_take_unread(s);

    if (st < 0)
        return UMD_HOP(st);
    st = umd_stream_check(s);
    return st < 0 ? UMD_HOP(st) : UMD_SUCCESS;
}

static umdStatus stream_sync(struct umd_stream *s, uint64_t timeout_ns, bool query)
{
    umdStatus st = check_for_wait(s);

    if (st < 0)
        return UMD_HOP(st);
    const uint32_t told = umd_error_told_count(s);
    st = umd_stream_wait(s, atomic_load_explicit(&s->last_point, memory_order_acquire), timeout_ns, query, false);
    if (st < 0 && umd_error_told_before(s, st, told)) {
        UMD_ABSORB(st, "the stream has told of it");
        st = UMD_SUCCESS;
    }
    if (st)
        return st < 0 ? UMD_HOP(st) : st;
    /* An earlier job of the stream may have failed while the last one did not. */
    umd_device_poll(s->ctx->dev);
    st = check_for_wait(s);
    return st < 0 ? UMD_HOP(st) : UMD_SUCCESS;
}

umdStatus umdStreamSynchronize(umdStream stream, uint64_t timeout_ns)
{
    struct umd_call call;
    struct umd_stream *s = NULL;

    umdStatus st = UMD_CALL_ENTER(&call, "stream=0x%" PRIx64 " timeout_ns=%" PRIu64, stream.id, timeout_ns);
    if (st < 0)
        return umd_call_leave(&call, st);
    st = umd_stream_get(stream, &s);
    if (st == UMD_SUCCESS) {
        st = stream_sync(s, timeout_ns, false);
        umd_object_put(&s->obj);
    }
    return umd_call_leave(&call, st);
}

umdStatus umdStreamQuery(umdStream stream)
{
    struct umd_call call;
    struct umd_stream *s = NULL;

    umdStatus st = UMD_CALL_ENTER(&call, "stream=0x%" PRIx64, stream.id);
    if (st < 0)
        return umd_call_leave(&call, st);
    st = umd_stream_get(stream, &s);
    if (st == UMD_SUCCESS) {
        st = stream_sync(s, 0, true);
        umd_object_put(&s->obj);
    }
    return umd_call_leave(&call, st);
}
