/* SPDX-License-Identifier: MIT */
/* test_api_cancel.c - cancelled work: nothing behind it runs on data that was not made, it is told once, and nobody takes it for done. */
#include <stdatomic.h>
#include <string.h>

#include "fault_plan.h"
#include "fixtures.h"

enum { B = 4096 };

/* Two streams: the second waits for the first, which works without end, and has work behind the wait. */
struct pair {
    umdStream producer, consumer;
    umdEvent made, used;    /* recorded on the producer; on the consumer, behind its work */
    umdDevicePtr data;      /* what the consumer's work is to set to 2s; 1s before */
};

static void begin(struct fx *f, umdContext ctx, umdKernel axpy, struct pair *p)
{
    struct fx_args args = { 0 };
    umdLaunchDesc d = { .size_B = sizeof(d), .grid = { 65535, 65535, 1 }, .block = { 1, 1, 1 }, .args = &args, .args_B = sizeof(args) };

    (void)f;
    assert_ok(umdStreamCreate(ctx, UMD_STREAM_COMPUTE, 0, &p->producer));
    assert_ok(umdStreamCreate(ctx, UMD_STREAM_COPY, 0, &p->consumer));
    assert_ok(umdEventCreate(ctx, &p->made));
    assert_ok(umdEventCreate(ctx, &p->used));
    assert_ok(umdMemAlloc(ctx, B, 0, 0, &p->data));
    assert_ok(umdMemset(p->consumer, p->data, 1, 4, B));
    assert_ok(umdStreamSynchronize(p->consumer, UMD_TIMEOUT_INFINITE));
    assert_ok(umdLaunchKernel(p->producer, axpy, &d));
    assert_ok(umdEventRecord(p->made, p->producer));
    assert_ok(umdStreamWaitEvent(p->consumer, p->made));
    assert_ok(umdMemset(p->consumer, p->data, 2, 4, B));
    assert_ok(umdEventRecord(p->used, p->consumer));
}

static void end(struct fx *f, struct pair *p)
{
    assert_ok(umdStreamDestroy(p->consumer));
    assert_ok(umdEventDestroy(p->made));
    assert_ok(umdEventDestroy(p->used));
    assert_ok(umdMemFree(f->ctx, p->data));
}

static void assert_data(struct pair *p, umdStream stream, uint32_t want)
{
    uint32_t got[B / 4];

    assert_ok(umdMemcpyDtoH(stream, got, p->data, B));
    for (size_t i = 0; i < B / 4; i++)
        assert_int_equal(got[i], want);
}

static struct pair started(struct fx *f)
{
    struct pair p;

    begin(f, f->ctx, fx_kernel(f, "axpy"), &p);
    return p;
}

/* The next synchronisation tells it, once; then the stream works again. */
static void told_by_synchronize(void **state)
{
    struct fx *f = *state;
    struct pair p = started(f);

    assert_ok(umdStreamDestroy(p.producer));
    assert_fails(umdStreamSynchronize(p.consumer, UMD_TIMEOUT_INFINITE), UMD_ERR_EXEC_CANCELLED, "reason=dependency_failed");
    fx_assert_figure(UMD_ERR_EXEC_CANCELLED, "jobs=3 ", __FILE__, __LINE__);
    assert_ok(umdStreamSynchronize(p.consumer, UMD_TIMEOUT_INFINITE));
    assert_ok(umdStreamQuery(p.consumer));
    assert_data(&p, f->stream, 1);
    assert_ok(umdMemset(p.consumer, p.data, 3, 4, B));
    assert_ok(umdStreamSynchronize(p.consumer, UMD_TIMEOUT_INFINITE));
    assert_data(&p, p.consumer, 3);
    assert_ok(umdContextGetStatus(f->ctx));
    end(f, &p);
}

/* Work that comes after the cancellation and before the program knows of it does not run, and cannot hide it. */
static void told_by_the_next_work(void **state)
{
    struct fx *f = *state;
    struct pair p = started(f);
    uint32_t got[B / 4];

    assert_ok(umdStreamDestroy(p.producer));
    umdStatus st = UMD_SUCCESS;
    while (st == UMD_SUCCESS) /* threaded: the cancellation may be on its way, and what comes before it is cancelled as well */
        st = umdMemset(p.consumer, p.data, 3, 4, B);
    assert_st(st, UMD_ERR_EXEC_CANCELLED);
    assert_ok(umdStreamSynchronize(p.consumer, UMD_TIMEOUT_INFINITE));
    assert_data(&p, f->stream, 1);
    assert_ok(umdMemset(p.consumer, p.data, 4, 4, B));
    assert_data(&p, p.consumer, 4);
    end(f, &p);

    p = started(f);
    assert_ok(umdStreamDestroy(p.producer));
    assert_fails(umdMemcpyDtoH(p.consumer, got, p.data, B), UMD_ERR_EXEC_CANCELLED, "reason=dependency_failed");
    assert_data(&p, p.consumer, 1);
    end(f, &p);
}

/* An event behind cancelled work never counts as reached, whoever asks, and however often. */
static void events_stay_unreached(void **state)
{
    struct fx *f = *state;
    struct pair p = started(f);
    uint64_t ns;

    assert_ok(umdStreamDestroy(p.producer));
    assert_st(umdStreamSynchronize(p.consumer, UMD_TIMEOUT_INFINITE), UMD_ERR_EXEC_CANCELLED);
    for (int i = 0; i < 2; i++) {
        assert_fails(umdEventSynchronize(p.used, UMD_TIMEOUT_INFINITE), UMD_ERR_EXEC_CANCELLED, "reason=dependency_failed");
        assert_st(umdEventQuery(p.used), UMD_ERR_EXEC_CANCELLED);
        assert_st(umdEventElapsed(p.used, p.used, &ns), UMD_ERR_EXEC_CANCELLED);
        assert_st(umdEventSynchronize(p.made, UMD_TIMEOUT_INFINITE), UMD_ERR_WAIT_INTERRUPTED); /* of a stream that is gone */
        assert_ok(umdMemset(p.consumer, p.data, 5, 4, B)); /* work that ends well behind it changes nothing */
        assert_ok(umdStreamSynchronize(p.consumer, UMD_TIMEOUT_INFINITE));
    }
    /* Who is told to wait for it now goes the same way as who waited before. */
    assert_ok(umdStreamWaitEvent(f->stream, p.used));
    assert_st(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE), UMD_ERR_EXEC_CANCELLED);
    assert_ok(umdStreamWaitEvent(f->stream, p.made));
    assert_st(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE), UMD_ERR_EXEC_CANCELLED);
    /* Recorded anew it is an event like any other. */
    assert_ok(umdEventRecord(p.used, p.consumer));
    assert_ok(umdEventSynchronize(p.used, UMD_TIMEOUT_INFINITE));
    assert_ok(umdStreamWaitEvent(f->stream, p.used));
    assert_ok(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE));
    end(f, &p);
}

static uint64_t submission_told(void)
{
    const umdErrorDetail d = fx_detail();
    umdFigure f;

    return umdErrorDetailFigure(&d, "submission", &f) ? f.uint_value : 0;
}

/* One record is of all that was cancelled together; who waits for one of the jobs is told of that one all the same. */
static void each_waiter_has_its_own_job(void **state)
{
    struct fx *f = *state;
    struct pair p = started(f);
    umdEvent later;

    assert_ok(umdEventCreate(f->ctx, &later));
    assert_ok(umdMemset(p.consumer, p.data, 5, 4, B));
    assert_ok(umdEventRecord(later, p.consumer));
    assert_ok(umdStreamDestroy(p.producer));
    for (int i = 0; i < 2; i++) {
        assert_st(umdEventSynchronize(p.used, UMD_TIMEOUT_INFINITE), UMD_ERR_EXEC_CANCELLED);
        const uint64_t used = submission_told();
        assert_st(umdEventSynchronize(later, UMD_TIMEOUT_INFINITE), UMD_ERR_EXEC_CANCELLED);
        assert_true(used && submission_told() > used);
    }
    assert_st(umdStreamSynchronize(p.consumer, UMD_TIMEOUT_INFINITE), UMD_ERR_EXEC_CANCELLED);
    assert_ok(umdEventDestroy(later));
    end(f, &p);
}

/* Three streams in a row: each says what it came of. */
static void goes_down_the_line(void **state)
{
    struct fx *f = *state;
    struct pair p = started(f);
    umdErrorDetail second, third;

    assert_ok(umdStreamWaitEvent(f->stream, p.used));
    assert_ok(umdMemset(f->stream, p.data, 6, 4, B));
    assert_ok(umdStreamDestroy(p.producer));
    assert_st(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE), UMD_ERR_EXEC_CANCELLED);
    third = fx_detail();
    assert_st(umdStreamSynchronize(p.consumer, UMD_TIMEOUT_INFINITE), UMD_ERR_EXEC_CANCELLED);
    second = fx_detail();
    assert_int_equal(third.cause.seq, second.id.seq);
    assert_data(&p, f->stream, 1);
    end(f, &p);
}

static void on_told(umdContext context, const umdErrorDetail *detail, void *user)
{
    (void)context;
    if (detail->code == UMD_ERR_EXEC_CANCELLED)
        atomic_fetch_add((_Atomic(int) *)user, 1);
}

/* The callback hears of it too; but who destroys the whole context has asked for all of it. */
static void told_by_callback(void **state)
{
    struct fx *f = *state;
    _Atomic(int) told = 0;
    struct pair p;
    umdContext ctx;
    umdModule mod;
    umdKernel axpy;

    assert_ok(umdContextSetErrorCallback(f->ctx, on_told, &told));
    p = started(f);
    assert_ok(umdStreamDestroy(p.producer));
    assert_st(umdStreamSynchronize(p.consumer, UMD_TIMEOUT_INFINITE), UMD_ERR_EXEC_CANCELLED);
    end(f, &p);
    assert_ok(umdContextSetErrorCallback(f->ctx, NULL, NULL)); /* one that runs has ended by then */
    assert_int_equal(told, 1);

    told = 0;
    assert_ok(umdContextCreate(f->dev, &ctx));
    assert_ok(umdModuleLoadFile(ctx, fx_kernel_path(), &mod));
    assert_ok(umdModuleGetKernel(mod, "axpy", &axpy));
    assert_ok(umdContextSetErrorCallback(ctx, on_told, &told));
    begin(f, ctx, axpy, &p);
    assert_ok(umdContextDestroy(ctx));
    assert_int_equal(told, 0);
}

static void begin_endless(umdStream stream, umdKernel axpy)
{
    struct fx_args args = { 0 };
    umdLaunchDesc d = { .size_B = sizeof(d), .grid = { 65535, 65535, 1 }, .block = { 1, 1, 1 }, .args = &args, .args_B = sizeof(args) };
    umdStatus st = UMD_ERR_WAIT_QUEUED;

    assert_ok(umdLaunchKernel(stream, axpy, &d));
    while (st == UMD_ERR_WAIT_QUEUED) /* a loaded host may start it late */
        st = umdStreamSynchronize(stream, 100000);
    assert_st(st, UMD_STATUS_TIMEOUT_PROGRESS);
}

/* Who destroys a stream, or a context, does not wait for others whose work is before it on the device. */
static void destroyed_behind_others(void **state)
{
    struct fx *f = *state;
    umdStream copy, behind;
    umdContext other;
    umdDevicePtr p, q;
    uint32_t got;

    assert_ok(umdStreamCreate(f->ctx, UMD_STREAM_COPY, 0, &copy));
    p = fx_alloc(f, B);
    assert_ok(umdMemset(copy, p, 1, 4, B));
    assert_ok(umdStreamSynchronize(copy, UMD_TIMEOUT_INFINITE));
    begin_endless(f->stream, fx_kernel(f, "axpy"));
    for (int i = 0; i < 2; i++) {
        assert_ok(umdStreamCreate(f->ctx, UMD_STREAM_COMPUTE, 0, &behind));
        assert_ok(umdMemset(behind, p, 2, 4, B));
        assert_ok(umdStreamDestroy(behind));
        assert_st(umdStreamQuery(f->stream), UMD_STATUS_NOT_READY);
    }
    assert_ok(umdContextCreate(f->dev, &other));
    assert_ok(umdStreamCreate(other, UMD_STREAM_COMPUTE, 0, &behind));
    assert_ok(umdMemAlloc(other, B, 0, 0, &q));
    assert_ok(umdMemset(behind, q, 2, 4, B));
    assert_ok(umdContextDestroy(other));
    assert_st(umdStreamQuery(f->stream), UMD_STATUS_NOT_READY);
    assert_ok(umdMemcpyDtoH(copy, &got, p, 4));
    assert_int_equal(got, 1);
    assert_ok(umdStreamDestroy(copy));
}

/* Old events that are asked about again hide no new cancellation, and nobody is told a second time. */
static void old_events_hide_nothing(void **state)
{
    struct fx *f = *state;
    umdEvent old[2];

    for (int i = 0; i < 2; i++) {
        struct pair p = started(f);
        assert_ok(umdStreamDestroy(p.producer));
        assert_st(umdEventSynchronize(p.used, UMD_TIMEOUT_INFINITE), UMD_ERR_EXEC_CANCELLED); /* takes nothing from who waits for the stream */
        assert_st(umdStreamSynchronize(p.consumer, UMD_TIMEOUT_INFINITE), UMD_ERR_EXEC_CANCELLED);
        for (int n = 0; n < 4; n++) {
            assert_st(umdEventQuery(i ? old[0] : p.used), UMD_ERR_EXEC_CANCELLED);
            assert_ok(umdStreamSynchronize(p.consumer, UMD_TIMEOUT_INFINITE));
        }
        old[i] = p.used;
        umdStream again;
        assert_ok(umdStreamCreate(f->ctx, UMD_STREAM_COMPUTE, 0, &again));
        begin_endless(again, fx_kernel(f, "axpy"));
        assert_ok(umdEventRecord(p.made, again));
        assert_ok(umdStreamWaitEvent(p.consumer, p.made));
        assert_ok(umdMemset(p.consumer, p.data, 2, 4, B));
        assert_st(umdEventQuery(p.used), UMD_ERR_EXEC_CANCELLED);
        assert_ok(umdStreamDestroy(again));
        umdStatus st = umdMemset(p.consumer, p.data, 3, 4, B);
        if (st == UMD_SUCCESS)
            st = umdStreamSynchronize(p.consumer, UMD_TIMEOUT_INFINITE);
        assert_st(st, UMD_ERR_EXEC_CANCELLED);
        assert_data(&p, p.consumer, 1);
        assert_ok(umdStreamWaitEvent(p.consumer, p.used)); /* its own, which was never reached: the same as another stream's */
        st = umdMemset(p.consumer, p.data, 4, 4, B);
        if (st == UMD_SUCCESS)
            st = umdStreamSynchronize(p.consumer, UMD_TIMEOUT_INFINITE);
        assert_st(st, UMD_ERR_EXEC_CANCELLED);
        assert_data(&p, f->stream, 1);
    }
}

/* What is behind a job that a reset cut short goes with it; what is in other streams runs. */
static void behind_a_partial_job(void **state)
{
    struct fx *f = *state;
    umdContext guilty;
    umdStream copy, other;
    umdDevicePtr p, big, small, beside;
    uint32_t got;

    if (!fx_stepped())
        skip(); /* the order of events needs the device's time, not the host's */
    assert_ok(umdContextCreate(f->dev, &guilty));
    assert_ok(umdStreamCreate(guilty, UMD_STREAM_COPY, 0, &copy));
    assert_ok(umdStreamCreate(f->ctx, UMD_STREAM_COMPUTE, 0, &other));
    assert_ok(umdMemAlloc(guilty, B, 0, 0, &p));
    assert_ok(umdMemAlloc(f->ctx, 8u << 20, 0, UMD_MEM_SYSTEM, &big));
    assert_ok(umdMemAlloc(f->ctx, B, 0, 0, &small));
    assert_ok(umdMemAlloc(f->ctx, B, 0, 0, &beside));
    assert_ok(umdMemset(f->stream, small, 1, 4, B));
    assert_ok(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE));
    assert_ok(umd_fault_plan_set("hw.sdma.hang[nth=1]=fire;hw.reset.fail[nth=1]=fire"));
    assert_ok(umdMemset(copy, p, 1, 4, B));
    umdStatus st = UMD_ERR_WAIT_QUEUED;
    while (st == UMD_ERR_WAIT_QUEUED || st == UMD_STATUS_TIMEOUT_PROGRESS)
        st = umdStreamSynchronize(copy, 100000);
    assert_st(st, UMD_ERR_WAIT_STALLED);
    for (int i = 0; i < 40; i++)
        assert_ok(umdMemset(f->stream, big, 2, 4, 8u << 20));
    assert_ok(umdMemset(f->stream, small, 2, 4, B));
    assert_ok(umdMemset(other, beside, 3, 4, B));
    assert_st(umdStreamSynchronize(copy, UMD_TIMEOUT_INFINITE), UMD_ERR_HW_HANG);
    assert_st(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE), UMD_ERR_EXEC_INNOCENT_PARTIAL);
    assert_ok(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE)); /* told once */
    assert_ok(umdMemcpyDtoH(f->stream, &got, small, 4));
    assert_int_equal(got, 1);
    assert_ok(umdMemcpyDtoH(other, &got, beside, 4));
    assert_int_equal(got, 3);
    assert_ok(umd_fault_plan_set(NULL));
    assert_ok(umdContextDestroy(guilty));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(told_by_synchronize, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(told_by_the_next_work, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(events_stay_unreached, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(each_waiter_has_its_own_job, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(goes_down_the_line, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(told_by_callback, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(destroyed_behind_others, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(old_events_hide_nothing, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(behind_a_partial_job, fx_setup, fx_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
