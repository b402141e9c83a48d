/* SPDX-License-Identifier: MIT */
/* test_api_events.c - events whose record is still ahead of the device, and events of the driver that were dropped. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "fault_plan.h"
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

/* ---- More events of the driver than it keeps ---- */

enum { FLOOD = 50, KEPT = 31 };

/* What callbacks heard; the first one that comes is held up, and with it the thread that reads the driver's events. */
struct heard {
    _Atomic(bool) hold, held;
    _Atomic(int) warnings, dropped, failures, unknown;
    _Atomic(int32_t) code;
};

static void on_error(umdContext context, const umdErrorDetail *detail, void *user)
{
    struct heard *h = user;

    (void)context;
    if (detail->code == UMD_ERR_HW_IRQ_LOST) {
        atomic_fetch_add(&h->warnings, 1);
    } else if (detail->code == UMD_ERR_HW_EVENTS_DROPPED) {
        atomic_fetch_add(&h->dropped, 1);
    } else if (detail->code == UMD_ERR_EXEC_FAILED) {
        atomic_fetch_add(&h->unknown, 1);
    } else {
        atomic_store(&h->code, detail->code);
        atomic_fetch_add(&h->failures, 1);
    }
    atomic_store(&h->held, true);
    while (!fx_stepped() && atomic_load(&h->hold))
        sched_yield();
}

struct flood {
    struct heard quiet, loud;   /* of f->ctx; of ctx */
    umdContext ctx;
    umdModule mod;
    umdStream stream, beside;
    umdDevicePtr p;
    uint64_t failed_codes;      /* records of UMD_ERR_EXEC_FAILED before */
};

static uint64_t count_of(umdStatus code)
{
    umdErrorCounts counts[256];
    const uint32_t n = umdGetErrorCounts(counts, 256);

    for (uint32_t i = 0; i < n && i < 256; i++)
        if (counts[i].code == code)
            return counts[i].raised;
    return 0;
}

static void flood_begin(struct fx *f, struct flood *w)
{
    *w = (struct flood){ .loud = { .hold = true } };
    w->failed_codes = count_of(UMD_ERR_EXEC_FAILED);
    assert_ok(umdContextCreate(f->dev, &w->ctx));
    assert_ok(umdModuleLoadFile(w->ctx, fx_kernel_path(), &w->mod));
    assert_ok(umdStreamCreate(w->ctx, UMD_STREAM_COMPUTE, 0, &w->beside));
    assert_ok(umdStreamCreate(w->ctx, UMD_STREAM_COMPUTE, 0, &w->stream));
    assert_ok(umdMemAlloc(w->ctx, B, 0, 0, &w->p));
    assert_ok(umdContextSetErrorCallback(f->ctx, on_error, &w->quiet));
    assert_ok(umdContextSetErrorCallback(w->ctx, on_error, &w->loud));
    /* Stepped: every other one, which the next one tells. Threaded: all, and time tells. */
    assert_ok(umd_fault_plan_set(fx_stepped() ? "hw.irq.lost[interval=2]=fire" : "hw.irq.lost=fire"));
    for (int i = 0; i < FLOOD; i++)
        assert_ok(umdMemset(w->stream, w->p, 1, 4, B));
}

/* Threaded: until the flood has come, none of which is heard behind the first. Stepped: it comes within one call. */
static void flood_come(struct flood *w)
{
    if (fx_stepped())
        return;
    assert_ok(umdStreamSynchronize(w->stream, UMD_TIMEOUT_INFINITE));
    while (!atomic_load(&w->loud.held))
        sched_yield();
    for (int i = 0; i < FLOOD; i++) /* what was read in one go with the first made room */
        assert_ok(umdMemset(w->stream, w->p, 1, 4, B));
    assert_ok(umdStreamSynchronize(w->stream, UMD_TIMEOUT_INFINITE));
    assert_ok(umd_fault_plan_set(NULL));
}

static uint64_t resets(struct fx *f)
{
    umdDeviceInfo info = { .size_B = sizeof(info) };

    assert_ok(umdDeviceGetInfo(f->dev, &info));
    return info.reset_count;
}

/* Lets the held callback go on; ends when so many failures have been heard. */
static void flood_heard(struct flood *w, int failures)
{
    atomic_store(&w->loud.hold, false);
    while (atomic_load(&w->loud.failures) < failures) {
        assert_true(!fx_stepped());
        sched_yield();
    }
}

static void flood_end(struct fx *f, struct flood *w, int failures)
{
    assert_ok(umdContextSetErrorCallback(w->ctx, NULL, NULL));
    assert_ok(umdContextSetErrorCallback(f->ctx, NULL, NULL));
    assert_int_equal(w->loud.failures, failures);
    assert_int_equal(w->loud.unknown + w->quiet.unknown + w->quiet.failures, 0);
    assert_in_range(w->loud.warnings, KEPT, FLOOD - 1); /* else nothing was dropped, and nothing tested */
    assert_true(w->loud.dropped > 0 && w->quiet.dropped > 0);
    assert_int_equal(count_of(UMD_ERR_EXEC_FAILED), w->failed_codes);
    assert_ok(umd_fault_plan_set(NULL));
    assert_ok(umdContextDestroy(w->ctx));
    assert_ok(umdContextGetStatus(f->ctx));
}

/* A ban among the events that were dropped: the context, the stream and the callback learn of it, and it is the job's own failure. */
static void dropped_ban_is_told(void **state)
{
    struct fx *f = *state;
    struct flood w;
    struct fx_args wild = { .dst = 0x123456789000, .a = 1, .n = 1 };
    umdKernel poke;

    flood_begin(f, &w);
    flood_come(&w);
    const uint64_t before = resets(f);
    assert_ok(umdModuleGetKernel(w.mod, "poke", &poke));
    assert_ok(fx_launch(w.stream, poke, &wild, 1));
    if (fx_stepped()) { /* the queues take turns: this one ends after the other, and its wait is the one call */
        umdKernel axpy = fx_kernel(f, "axpy");
        for (int i = 0; i < FLOOD + 10; i++)
            assert_ok(fx_launch(f->stream, axpy, &nothing, 1));
        assert_ok(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE));
    }
    while (resets(f) == before) /* banned by then */
        assert_true(!fx_stepped());
    flood_heard(&w, 1);
    assert_int_equal(w.loud.code, UMD_ERR_HW_PAGE_FAULT);
    assert_st(umdContextGetStatus(w.ctx), UMD_ERR_HW_PAGE_FAULT);
    fx_assert_figure(UMD_ERR_HW_PAGE_FAULT, "kernel=poke", __FILE__, __LINE__);
    assert_st(umdStreamQuery(w.stream), UMD_ERR_HW_PAGE_FAULT);
    assert_st(umdStreamQuery(w.beside), UMD_ERR_CTX_BANNED); /* the failure was another stream's */
    flood_end(f, &w, 1);
}

/* Records are kept for a while: behind so many others one is not known any more. */
static void forget_records(struct fx *f)
{
    for (uint64_t i = 0; i < 1000; i++)
        assert_st(umdMemFree(f->ctx, 0x10000000000u + i), UMD_ERR_MEM_POINTER);
}

/* The same with a cancellation. The stream takes work again when its failure has been told. */
static void drop_cancellation(struct fx *f, bool forget)
{
    struct flood w;
    umdStream producer;
    umdEvent made, used;
    umdKernel axpy;
    umdLaunchDesc d = { .size_B = sizeof(d), .grid = { 65535, 65535, 1 }, .block = { 1, 1, 1 }, .args = &nothing, .args_B = sizeof(nothing) };

    if (fx_stepped())
        skip(); /* what destroys the producer hears all events that have come before */
    flood_begin(f, &w);
    flood_come(&w);
    assert_ok(umdModuleGetKernel(w.mod, "axpy", &axpy));
    assert_ok(umdStreamCreate(w.ctx, UMD_STREAM_COMPUTE, 0, &producer));
    assert_ok(umdEventCreate(w.ctx, &made));
    assert_ok(umdEventCreate(w.ctx, &used));
    assert_ok(umdLaunchKernel(producer, axpy, &d));
    assert_ok(umdEventRecord(made, producer));
    assert_ok(umdStreamWaitEvent(w.stream, made));
    assert_ok(umdMemset(w.stream, w.p, 2, 4, B));
    assert_ok(umdEventRecord(used, w.stream));
    assert_ok(umdStreamWaitEvent(w.beside, used));
    assert_ok(umdStreamDestroy(producer));
    /* Nobody asks the stream. What waits for it is cancelled behind it, and a call meets that by its fence: the callback, later. */
    assert_st(umdStreamSynchronize(w.beside, UMD_TIMEOUT_INFINITE), UMD_ERR_EXEC_CANCELLED);
    assert_ok(umdContextGetStatus(w.ctx));
    if (forget)
        forget_records(f);
    flood_heard(&w, 2);
    assert_int_equal(w.loud.code, UMD_ERR_EXEC_CANCELLED);
    assert_fails(umdStreamQuery(w.stream), UMD_ERR_EXEC_CANCELLED, forget ? "event=dropped" : "reason=dependency_failed");
    assert_ok(umdStreamSynchronize(w.beside, UMD_TIMEOUT_INFINITE)); /* told once */
    assert_ok(umdMemset(w.stream, w.p, 3, 4, B));
    assert_ok(umdStreamSynchronize(w.stream, UMD_TIMEOUT_INFINITE));
    assert_ok(umdContextGetStatus(w.ctx));
    assert_ok(umdEventDestroy(made));
    assert_ok(umdEventDestroy(used));
    flood_end(f, &w, 2);
}

static void dropped_cancellation_is_told(void **state)
{
    drop_cancellation(*state, false);
}

static void dropped_and_forgotten_is_told(void **state)
{
    drop_cancellation(*state, true);
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
        cmocka_unit_test_setup_teardown(dropped_ban_is_told, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(dropped_cancellation_is_told, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(dropped_and_forgotten_is_told, fx_setup, fx_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
