/* SPDX-License-Identifier: MIT */
/* codes_exec.c - cases of the exec codes: submissions, jobs, waits. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <uapi/petrel_drm.h>

#include "codes.h"
#include "status.h"
#include "sys.h"

/* ---- Submission ---- */

CODE_CASE(UMD_ERR_SUBMIT_FAILED)
{
    struct fx *f = code_up_between(run);
    umdDevicePtr p = fx_alloc(f, 4096);

    code_tell(&(struct kmd_between){ .cmd = DRM_IOCTL_PETREL_EXEC, .error = -EINVAL, .code = UMD_ERR_UAPI_ARGUMENT });
    provokes(umdMemset(f->stream, p, 1, 4, 4096), "because_of=UMD_ERR_UAPI_ARGUMENT");
    umdErrorDetail d = fx_detail();
    assert_true(fx_caused_by(&d, UMD_ERR_UAPI_ARGUMENT));
    assert_int_equal(d.advice.action, UMD_ACTION_CHANGE_ARGUMENT); /* as the cause's: it would be refused again */
    assert_int_equal(d.advice.count, 0);
    assert_int_equal(umdStatusAdvice(d.code).action, UMD_ACTION_RETRY);
    code_tell(&(struct kmd_between){ 0 });
    assert_ok(umdMemset(f->stream, p, 1, 4, 4096)); /* nothing was queued, nothing is in the way */
    assert_ok(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE));
}

static uint64_t retried(umdStatus st)
{
    umdErrorCounts counts[256];

    for (uint32_t i = 0, n = umdGetErrorCounts(counts, 256); i < n; i++)
        if (counts[i].code == (int32_t)st)
            return counts[i].retried;
    return 0;
}

/* The driver's own waits for room fail for want of host memory: tried again with the table's pause, as often as it says, and then told. */
static void room_cannot_be_awaited(struct code_run *run, struct fx *f, umdDevicePtr p)
{
    umdStatus st = UMD_SUCCESS;
    struct umd_driver_retry r = umd_status_driver_retry(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    uint64_t before = 0, began_ns = 0;

    code_tell(&(struct kmd_between){ .cmd = DRM_IOCTL_PETREL_WAIT, .error = -ENOMEM, .code = UMD_ERR_MEM_HOST_ALLOC_FAILED });
    for (int i = 0; i < 1000 && st == UMD_SUCCESS; i++) { /* what has ended in the kernel driver is not known to have */
        before = retried(UMD_ERR_MEM_HOST_ALLOC_FAILED) + retried(run->code);
        began_ns = umd_sys()->mono_ns();
        st = umdMemset(f->stream, p, 1, 4, 4096);
    }
    assert_st(st, run->code); /* of the stream's ring, or of the queue where the device is that slow: the bounds are the same */
    assert_true(retried(UMD_ERR_MEM_HOST_ALLOC_FAILED) + retried(run->code) - before >= r.count);
    if (!fx_stepped()) /* no less, however fast the host is */
        assert_true(umd_sys()->mono_ns() - began_ns >= (uint64_t)r.count * r.delay_ms * 1000000u);
    code_tell(&(struct kmd_between){ 0 });
    assert_ok(umdMemset(f->stream, p, 1, 4, 4096)); /* nothing is lost */
    assert_ok(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE));
}

CODE_CASE(UMD_ERR_SUBMIT_RING_FULL)
{
    struct fx *f = code_up_between(run);
    umdDevicePtr p = fx_alloc(f, 4096);

    assert_ok(umd_fault_plan_set("kmd.ring.full=fail"));
    provokes(umdMemset(f->stream, p, 1, 4, 4096), "tries=");
    assert_int_equal(umd_fault_fired(UMD_FAULT_KMD_RING_FULL), 1 + umd_status_driver_retry(run->code).count); /* as often as the table says */
    umdErrorDetail d = fx_detail();
    assert_int_equal(d.advice.severity, UMD_SEVERITY_ERROR); /* not what it is while the driver tries */
    assert_true(fx_caused_by(&d, run->code));
    assert_ok(umd_fault_plan_set(NULL));
    room_cannot_be_awaited(run, f, p);
}

/* ---- Jobs ---- */

CODE_CASE(UMD_ERR_EXEC_FAILED)
{
    struct fx *f = code_up_between(run);
    umdDevicePtr p = fx_alloc(f, 4096);

    code_between()->mute = true; /* a driver that does not say why */
    assert_ok(fx_launch(f->stream, fx_kernel(f, "trap"), &(struct fx_args){ p, p, 7, 32 }, 1));
    provokes(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE), "record=missing");
    fx_assert_figure(run->code, "kernel=trap", __FILE__, __LINE__);
}

CODE_CASE(UMD_ERR_EXEC_CANCELLED)
{
    struct fx *f = code_up(run);
    umdStream producer;
    umdEvent e;

    assert_ok(umdStreamCreate(f->ctx, UMD_STREAM_COMPUTE, 0, &producer));
    assert_ok(umdEventCreate(f->ctx, &e));
    code_long_work(f, producer);
    assert_ok(umdEventRecord(e, producer));
    assert_ok(umdStreamWaitEvent(f->stream, e));
    assert_ok(umdStreamDestroy(producer)); /* what waits for it will never be */
    provokes(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE), "reason=dependency_failed");
    umdErrorDetail d = fx_detail();
    assert_true(d.advice.action == UMD_ACTION_RETRY && d.advice.count == 1); /* the context is well */
    fx_assert_figure(run->code, "submit_ns=", __FILE__, __LINE__);
    fx_assert_figure(run->code, "progress_ns=", __FILE__, __LINE__);
    assert_ok(umdContextGetStatus(f->ctx));
}

/*
 * The copy engine hangs and its reset is not acknowledged: the whole device is reset, and who ran beside it hears of it. A fill over the
 * link is what runs: it takes the device long, and the host not.
 */
CODE_CASE(UMD_ERR_EXEC_INNOCENT_PARTIAL)
{
    umdInitDesc desc = fx_desc();
    umdContext guilty;
    umdStream copy;
    umdDevicePtr p, big;

    if (!fx_stepped())
        skip(); /* the order of events needs the device's time, not the host's */
    desc.watchdog_ns = 1000000;
    struct fx *f = code_up_with(run, desc);
    assert_ok(umdContextCreate(f->dev, &guilty));
    assert_ok(umdStreamCreate(guilty, UMD_STREAM_COPY, 0, &copy));
    assert_ok(umdMemAlloc(guilty, 4096, 0, 0, &p));
    assert_ok(umdMemAlloc(f->ctx, 256u << 20, 0, UMD_MEM_SYSTEM, &big));
    assert_ok(umd_fault_plan_set("hw.sdma.hang[nth=1]=fire;hw.reset.fail[nth=1]=fire"));
    assert_ok(umdMemset(copy, p, 1, 4, 4096));
    assert_st(umdStreamSynchronize(copy, 500000), UMD_STATUS_TIMEOUT_PROGRESS); /* begun, and within its first ms */
    assert_ok(umdMemset(f->stream, big, 1, 4, 256u << 20));
    assert_st(umdStreamSynchronize(copy, UMD_TIMEOUT_INFINITE), UMD_ERR_HW_HANG);
    provokes(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE), "progress=");
    fx_assert_figure(run->code, "start_ns=", __FILE__, __LINE__);
    assert_ok(umdContextDestroy(guilty));
}

/* ---- Waits ---- */

/* A job that goes on for hours, and one behind it in the same stream. */
CODE_CASE(UMD_ERR_WAIT_QUEUED)
{
    struct fx *f = code_up(run);
    umdDevicePtr p = fx_alloc(f, 4096);

    code_long_work(f, f->stream);
    assert_ok(umdMemset(f->stream, p, 1, 4, 4096));
    provokes(umdStreamSynchronize(f->stream, 100000), "submit_ns=");
    fx_assert_figure(run->code, "start_ns=0 ", __FILE__, __LINE__);
}

CODE_CASE(UMD_ERR_WAIT_DEPENDENCY)
{
    struct fx *f = code_up(run);
    umdStream other;
    umdEvent e;

    assert_ok(umdStreamCreate(f->ctx, UMD_STREAM_COMPUTE, 0, &other));
    assert_ok(umdEventCreate(f->ctx, &e));
    code_long_work(f, f->stream);
    assert_ok(umdEventRecord(e, f->stream));
    assert_ok(umdStreamWaitEvent(other, e));
    provokes(umdStreamSynchronize(other, 100000), "root_job=");
    assert_null(strstr(fx_detail().figures, "root_job=0 "));
}

/* Real, but made by the driver in between: umd.h lets nobody wait for what was not recorded yet. */
CODE_CASE(UMD_ERR_WAIT_CYCLE)
{
    struct fx *f = code_up_between(run);
    umdDevicePtr p = fx_alloc(f, 4096);
    umdFigure root, cycle;

    code_tell(&(struct kmd_between){ .cycle = true });
    assert_ok(umdMemset(f->stream, p, 1, 4, 4096));
    provokes(umdStreamSynchronize(f->stream, 1000000), "hops=");
    umdErrorDetail d = fx_detail();
    assert_int_equal(d.advice.action, UMD_ACTION_CHANGE_ARGUMENT);
    assert_true(umdErrorDetailFigure(&d, "root_job", &root) && root.uint_value);
    assert_true(umdErrorDetailFigure(&d, "cycle_job", &cycle) && cycle.uint_value && cycle.uint_value != root.uint_value);
    fx_assert_figure(run->code, "submit_ns=", __FILE__, __LINE__);
    assert_ok(umdStreamDestroy(f->stream)); /* which ends it */
    assert_ok(umdStreamCreate(f->ctx, UMD_STREAM_COMPUTE, 0, &f->stream));
    assert_ok(umdMemset(f->stream, p, 1, 4, 4096));
    assert_ok(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE));
}

/* An eighth of the watchdog's time without progress. A host that leaves us no time until the watchdog has acted gets another try. */
CODE_CASE(UMD_ERR_WAIT_STALLED)
{
    umdInitDesc desc = fx_desc();
    umdStatus st = UMD_ERR_HW_HANG;

    desc.watchdog_ns = 1000000000;
    struct fx *f = code_up_with(run, desc);
    for (int i = 0; i < 6 && st == UMD_ERR_HW_HANG; i++) {
        struct fx g = { .dev = f->dev };
        assert_ok(umdContextCreate(f->dev, &g.ctx));
        assert_ok(umdModuleLoadFile(g.ctx, fx_kernel_path(), &g.mod));
        assert_ok(umdStreamCreate(g.ctx, UMD_STREAM_COMPUTE, 0, &g.stream));
        umdDevicePtr p = fx_alloc(&g, 4096);
        assert_ok(umd_fault_plan_set("hw.cu.hang=1*fire"));
        assert_ok(fx_launch(g.stream, fx_kernel(&g, "axpy"), &(struct fx_args){ p, p, 1, 32 }, 1));
        st = UMD_STATUS_TIMEOUT_PROGRESS;
        for (int k = 0; k < 1000 && (st == UMD_STATUS_TIMEOUT_PROGRESS || st == UMD_ERR_WAIT_QUEUED); k++)
            st = umdStreamSynchronize(g.stream, 20000000);
        if (st == run->code) {
            fx_assert_figure(run->code, "kernel=axpy", __FILE__, __LINE__);
            fx_assert_figure(run->code, "progress_ns=", __FILE__, __LINE__);
        }
        assert_ok(umdContextDestroy(g.ctx));
    }
    code_saw(run, st);
}

/* That a wait's time ends just between the end of the work and its signal cannot be arranged: the driver in between says so. */
CODE_CASE(UMD_ERR_WAIT_SIGNAL_LOST)
{
    struct fx *f = code_up_between(run);
    umdDevicePtr p = fx_alloc(f, 4096);

    assert_ok(umdMemset(f->stream, p, 1, 4, 4096));
    code_tell(&(struct kmd_between){ .cmd = DRM_IOCTL_PETREL_WAIT, .error = -ETIME, .stage = DRM_PETREL_STAGE_SIGNAL_LOST });
    provokes(umdStreamSynchronize(f->stream, 1000), "kind=fill");
    assert_int_equal(fx_detail().advice.severity, UMD_SEVERITY_WARN);
    code_tell(&(struct kmd_between){ 0 });
    assert_ok(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE));
}

CODE_CASE(UMD_ERR_WAIT_NOT_SUBMITTED)
{
    struct fx *f = code_up(run);
    umdEvent e;

    assert_ok(umdEventCreate(f->ctx, &e));
    provokes(umdEventSynchronize(e, 1000), "event=0x");
}

struct waiter { umdStream stream; umdStatus st; umdErrorDetail detail; };

static void *wait_main(void *arg)
{
    struct waiter *w = arg;

    w->st = umdStreamSynchronize(w->stream, UMD_TIMEOUT_INFINITE);
    if (umdFailed(w->st))
        w->detail = fx_detail();
    return NULL;
}

/* Longer and longer until the other thread is in its wait, however busy the host. */
static void interrupted_by_thread(struct fx *f, struct waiter *w)
{
    for (int i = 0; i < 12 && w->st != UMD_ERR_WAIT_INTERRUPTED; i++) {
        pthread_t t;
        assert_ok(umdStreamCreate(f->ctx, UMD_STREAM_COMPUTE, 0, &w->stream));
        code_long_work(f, w->stream);
        assert_int_equal(pthread_create(&t, NULL, wait_main, w), 0);
        usleep(2000u << i);
        assert_ok(umdStreamDestroy(w->stream));
        pthread_join(t, NULL);
    }
}

/* One thread: who waits for an event of a stream that was destroyed at its work. */
static void interrupted_before(struct fx *f, struct waiter *w)
{
    umdEvent e;

    assert_ok(umdStreamCreate(f->ctx, UMD_STREAM_COMPUTE, 0, &w->stream));
    assert_ok(umdEventCreate(f->ctx, &e));
    code_long_work(f, w->stream);
    assert_ok(umdEventRecord(e, w->stream));
    assert_ok(umdStreamDestroy(w->stream));
    w->st = umdEventSynchronize(e, UMD_TIMEOUT_INFINITE);
    w->detail = fx_detail();
}

CODE_CASE(UMD_ERR_WAIT_INTERRUPTED)
{
    struct fx *f = code_up(run);
    struct waiter w = { 0 };

    if (fx_stepped())
        interrupted_before(f, &w);
    else
        interrupted_by_thread(f, &w);
    code_saw(run, w.st);
    assert_int_equal(w.detail.code, run->code);
    assert_non_null(strstr(w.detail.figures, "object=stream"));
    assert_non_null(strstr(w.detail.figures, " submit_ns="));
    assert_non_null(strstr(w.detail.figures, " start_ns="));
    assert_non_null(strstr(w.detail.figures, " progress_ns="));
}
