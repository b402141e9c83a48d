/* SPDX-License-Identifier: MIT */
/* test_api_events.c - events whose record is still ahead of the device. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "fixtures.h"

enum { B = 4096 };

static const struct fx_args nothing = { 0 };

/* Works without end: 2^32 groups. */
static void launch_endless(struct fx *f, umdStream s)
{
    umdLaunchDesc d = { .size_B = sizeof(d), .grid = { 65535, 65535, 1 }, .block = { 1, 1, 1 }, .args = &nothing, .args_B = sizeof(nothing) };

    assert_ok(umdLaunchKernel(s, fx_kernel(f, "axpy"), &d));
}

static uint64_t vram_free(struct fx *f)
{
    umdDeviceInfo info = { .size_B = sizeof(info) };

    assert_ok(umdDeviceGetInfo(f->dev, &info));
    return info.vram_free_B;
}

/* ---- The record of an event that is destroyed, or recorded anew, before the device comes to it ---- */

/* A producer that never ends, a consumer that waits for it: the event of the consumer goes first, and waits for neither. */
static void destroy_waits_for_nothing(void **state)
{
    struct fx *f = *state;
    umdStream producer, consumer, other;
    umdEvent made, used, again;
    umdDevicePtr p = fx_alloc(f, B);

    assert_ok(umdStreamCreate(f->ctx, UMD_STREAM_COMPUTE, 0, &producer));
    assert_ok(umdStreamCreate(f->ctx, UMD_STREAM_COPY, 0, &consumer));
    assert_ok(umdStreamCreate(f->ctx, UMD_STREAM_COPY, 0, &other));
    assert_ok(umdEventCreate(f->ctx, &made));
    assert_ok(umdEventCreate(f->ctx, &used));
    launch_endless(f, producer);
    assert_ok(umdEventRecord(made, producer));
    assert_ok(umdStreamWaitEvent(consumer, made));
    assert_ok(umdEventRecord(used, consumer));
    assert_ok(umdEventRecord(used, consumer));
    assert_ok(umdEventDestroy(used));
    assert_ok(umdEventDestroy(made));
    assert_st(umdStreamQuery(consumer), UMD_STATUS_NOT_READY);
    assert_ok(umdEventCreate(f->ctx, &again)); /* another cell than those, which may still be written */
    assert_ok(umdEventRecord(again, other));
    assert_ok(umdEventSynchronize(again, UMD_TIMEOUT_INFINITE));
    assert_ok(umdStreamDestroy(producer));
    assert_st(umdStreamSynchronize(consumer, UMD_TIMEOUT_INFINITE), UMD_ERR_EXEC_CANCELLED);
    assert_ok(umdMemset(consumer, p, 1, 4, B));
    assert_ok(umdStreamSynchronize(consumer, UMD_TIMEOUT_INFINITE));
    assert_ok(umdEventDestroy(again));
    assert_ok(umdStreamDestroy(consumer));
    assert_ok(umdStreamDestroy(other));
    assert_ok(umdContextGetStatus(f->ctx));
    assert_ok(umdMemFree(f->ctx, p));
}

/* The context goes with records that the device has not come to, of events that are there and of those that are not. */
static void context_goes_with_them(void **state)
{
    struct fx *f = *state;
    const uint64_t before = vram_free(f);
    umdContext ctx;
    umdModule mod;
    umdKernel axpy;
    umdStream s;
    umdEvent kept, gone;
    umdLaunchDesc d = { .size_B = sizeof(d), .grid = { 65535, 65535, 1 }, .block = { 1, 1, 1 }, .args = &nothing, .args_B = sizeof(nothing) };

    assert_ok(umdContextCreate(f->dev, &ctx));
    assert_ok(umdModuleLoadFile(ctx, fx_kernel_path(), &mod));
    assert_ok(umdModuleGetKernel(mod, "axpy", &axpy));
    assert_ok(umdStreamCreate(ctx, UMD_STREAM_COMPUTE, 0, &s));
    assert_ok(umdEventCreate(ctx, &kept));
    assert_ok(umdEventCreate(ctx, &gone));
    assert_ok(umdLaunchKernel(s, axpy, &d));
    for (int i = 0; i < 3; i++) {
        assert_ok(umdEventRecord(kept, s));
        assert_ok(umdEventRecord(gone, s));
    }
    assert_ok(umdEventDestroy(gone));
    assert_ok(umdContextDestroy(ctx));
    while (vram_free(f) < before) { /* threaded: the kernel driver may still hold the job that was killed */
        assert_true(!fx_stepped());
        sched_yield();
    }
}

/* An older record that is reached after the younger one, in another stream, has no say in the time. */
static void older_record_changes_nothing(void **state)
{
    struct fx *f = *state;
    umdStream slow, quick;
    umdEvent start, end;
    uint64_t ns = 0, again = 1;

    assert_ok(umdStreamCreate(f->ctx, UMD_STREAM_COMPUTE, 0, &slow));
    assert_ok(umdStreamCreate(f->ctx, UMD_STREAM_COPY, 0, &quick));
    assert_ok(umdEventCreate(f->ctx, &start));
    assert_ok(umdEventCreate(f->ctx, &end));
    assert_ok(fx_launch(slow, fx_kernel(f, "axpy"), &nothing, 65535));
    assert_ok(umdEventRecord(end, slow));
    assert_ok(umdEventRecord(start, quick));
    assert_ok(umdEventRecord(end, quick));
    assert_ok(umdEventSynchronize(end, UMD_TIMEOUT_INFINITE));
    if (fx_stepped())
        assert_st(umdStreamQuery(slow), UMD_STATUS_NOT_READY); /* else the host decides */
    assert_ok(umdEventElapsed(start, end, &ns));
    assert_ok(umdStreamSynchronize(slow, UMD_TIMEOUT_INFINITE));
    assert_ok(umdEventElapsed(start, end, &again));
    assert_int_equal(ns, again);
    assert_ok(umdEventDestroy(start));
    assert_ok(umdEventDestroy(end));
    assert_ok(umdStreamDestroy(slow));
    assert_ok(umdStreamDestroy(quick));
}

/* Cells come back: as many records as would fill some pages take no memory but the first. Nobody waits for any of them. */
static void cells_come_back(void **state)
{
    struct fx *f = *state;
    umdEvent kept, e;

    assert_ok(umdEventCreate(f->ctx, &kept));
    const uint64_t before = vram_free(f);
    for (int i = 0; i < 1500; i++) {
        assert_ok(umdEventRecord(kept, f->stream));
        assert_ok(umdEventCreate(f->ctx, &e));
        assert_ok(umdEventRecord(e, f->stream));
        assert_ok(umdEventDestroy(e));
    }
    assert_int_equal(vram_free(f), before);
    assert_ok(umdEventSynchronize(kept, UMD_TIMEOUT_INFINITE));
    assert_ok(umdEventDestroy(kept));
}

/* What cannot be recorded leaves the event as it was. */
static void refused_record_changes_nothing(void **state)
{
    struct fx *f = *state;
    umdStream other;
    umdContext ctx;
    umdEvent start, end;
    uint64_t ns = 0, again = 1;

    assert_ok(umdEventCreate(f->ctx, &start));
    assert_ok(umdEventCreate(f->ctx, &end));
    assert_ok(umdEventRecord(start, f->stream));
    assert_ok(umdEventRecord(end, f->stream));
    assert_ok(umdEventSynchronize(end, UMD_TIMEOUT_INFINITE));
    assert_ok(umdEventElapsed(start, end, &ns));
    assert_ok(umdContextCreate(f->dev, &ctx));
    assert_ok(umdStreamCreate(ctx, UMD_STREAM_COMPUTE, 0, &other));
    assert_st(umdEventRecord(end, other), UMD_ERR_HANDLE_CONTEXT);
    assert_ok(umdContextDestroy(ctx));
    assert_ok(umdEventElapsed(start, end, &again));
    assert_int_equal(ns, again);
    assert_ok(umdEventDestroy(start));
    assert_ok(umdEventDestroy(end));
}

struct recorder {
    umdEvent event;
    umdStream stream;
    _Atomic(int) *ready;
};

static void *record_main(void *arg)
{
    struct recorder *r = arg;

    atomic_fetch_add(r->ready, 1);
    while (atomic_load(r->ready) < 2)
        sched_yield();
    for (int i = 0; i < 8; i++)
        if (umdEventRecord(r->event, r->stream) != UMD_SUCCESS)
            return r;
    return NULL;
}

/* Two threads record one event in one stream: what stays is the later one of the stream, so behind it there is nothing. */
static void threads_record_in_order(void **state)
{
    struct fx *f = *state;
    umdEvent e;
    uint64_t ns;

    if (fx_stepped())
        skip(); /* one host thread */
    assert_ok(umdEventCreate(f->ctx, &e));
    for (int round = 0; round < 40; round++) {
        _Atomic(int) ready = 0;
        struct recorder r = { .event = e, .stream = f->stream, .ready = &ready };
        pthread_t threads[2];
        void *failed[2];
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, record_main, &r), 0);
        for (int i = 0; i < 4; i++) { /* a reader beside them */
            umdStatus st = umdEventElapsed(e, e, &ns);
            assert_true(st == UMD_SUCCESS || st == UMD_STATUS_NOT_READY || st == UMD_ERR_WAIT_NOT_SUBMITTED || st == UMD_ERR_PARAM_RANGE);
        }
        for (int i = 0; i < 2; i++) {
            assert_int_equal(pthread_join(threads[i], &failed[i]), 0);
            assert_null(failed[i]);
        }
        assert_ok(umdEventSynchronize(e, UMD_TIMEOUT_INFINITE));
        assert_ok(umdStreamQuery(f->stream));
    }
    assert_ok(umdEventDestroy(e));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(destroy_waits_for_nothing, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(context_goes_with_them, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(older_record_changes_nothing, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(cells_come_back, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(refused_record_changes_nothing, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(threads_record_in_order, fx_setup, fx_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
