/* SPDX-License-Identifier: MIT */
/* test_api_told.c - what is told of a failure: the first cause, by the first call that meets it, once, and at its true level. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <umd/umd_log.h>

#include "fault_plan.h"
#include "fixtures.h"

/* ---- Lines of the log ---- */

static char log_path[64];

/* From here on the lines of the level and above are counted. */
static void listen_to(const char *level)
{
    snprintf(log_path, sizeof(log_path), "/tmp/petrel-told-%d.log", (int)getpid());
    unlink(log_path);
    assert_ok(umdLogOpenFile(log_path, UMD_LOG_FORMAT_TEXT, level));
}

static int heard(void)
{
    char line[4096], all[16384] = "";
    int n = 0;

    umdLogFlush(2000);
    FILE *f = fopen(log_path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        if (strstr(line, ": not logged one by one: "))
            continue; /* the number of an earlier test's records */
        bool is = strstr(line, " ERROR ") || strstr(line, " WARN ") || strstr(line, " INFO ");
        n += is;
        if (is && strlen(all) + strlen(line) < sizeof(all))
            strcat(all, line);
    }
    fclose(f);
    if (n > 1)
        print_message("%s", all);
    return n;
}

static void listen_no_more(void)
{
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    unlink(log_path);
}

/* ---- First causes ---- */

/* A hang whose reset fails too: the hang is told first, then the loss by every call, and the loss knows what it came of. */
static void hang_then_loss(void **state)
{
    struct fx *f = *state;
    umdDevicePtr p = fx_alloc(f, 4096), q;
    umdKernel k = fx_kernel(f, "axpy");
    umdStream other;
    umdEvent e;
    uint32_t word;

    assert_ok(umdStreamCreate(f->ctx, UMD_STREAM_COMPUTE, 0, &other));
    assert_ok(umdEventCreate(f->ctx, &e));
    assert_ok(umd_fault_plan_set("hw.cu.hang=fire;hw.reset.fail=fire"));
    umdStatus st = UMD_SUCCESS;
    for (int i = 0; i < 8 && st == UMD_SUCCESS; i++) /* what is behind it is cancelled, which must not be what is told */
        st = fx_launch(f->stream, k, &(struct fx_args){ p, p, 1, 32 }, 1);
    if (st == UMD_SUCCESS)
        st = umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE);
    assert_st(st, UMD_ERR_HW_HANG);
    fx_assert_figure(UMD_ERR_HW_HANG, "kernel=axpy", __FILE__, __LINE__);
    const uint64_t hang = fx_detail().id.seq;
    for (int i = 0; i < 4000 && umdContextGetStatus(f->ctx) == UMD_ERR_HW_HANG; i++)
        usleep(fx_stepped() ? 0 : 1000); /* the resets take their time */
    assert_st(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE), UMD_ERR_DEV_LOST_RESET_FAILED);
    umdErrorDetail d = fx_detail();
    assert_int_equal(d.cause.seq, hang);
    assert_st(umdStreamSynchronize(f->stream, 0), UMD_ERR_DEV_LOST_RESET_FAILED);
    assert_st(umdStreamQuery(f->stream), UMD_ERR_DEV_LOST_RESET_FAILED);
    assert_st(umdStreamSynchronize(other, UMD_TIMEOUT_INFINITE), UMD_ERR_DEV_LOST_RESET_FAILED);
    assert_st(fx_launch(f->stream, k, &(struct fx_args){ p, p, 1, 32 }, 1), UMD_ERR_DEV_LOST_RESET_FAILED);
    assert_st(umdMemcpyDtoH(f->stream, &word, p, 4), UMD_ERR_DEV_LOST_RESET_FAILED);
    assert_st(umdMemAlloc(f->ctx, 4096, 0, 0, &q), UMD_ERR_DEV_LOST_RESET_FAILED);
    assert_st(umdEventRecord(e, f->stream), UMD_ERR_DEV_LOST_RESET_FAILED);
    assert_st(umdContextGetStatus(f->ctx), UMD_ERR_DEV_LOST_RESET_FAILED);
    assert_ok(umdStreamDestroy(other));
    assert_ok(umdEventDestroy(e));
}

static umdRecordId root_of(umdRecordId id)
{
    umdErrorDetail d = { .size_B = sizeof(d) };

    return umdGetFirstCause(id, &d) == UMD_SUCCESS ? d.id : (umdRecordId){ 0 };
}

static uint64_t first_of_device(struct fx *f)
{
    umdErrorDetail d = { .size_B = sizeof(d) };

    assert_st(umdDeviceGetFirstCause(f->dev, &d), UMD_SUCCESS);
    return d.id.seq;
}

struct asker { struct fx *f; uint64_t want; _Atomic(int) wrong; };

static void *ask(void *arg)
{
    struct asker *a = arg;
    umdErrorDetail d = { .size_B = sizeof(d) };
    umdDevicePtr p;

    for (int i = 0; i < 100; i++) {
        umdStatus st = i % 2 ? umdMemAlloc(a->f->ctx, 4096, 0, 0, &p) : umdStreamSynchronize(a->f->stream, 0);
        bool right = st == UMD_ERR_DEV_LOST_OFF_BUS && umdGetLastErrorDetail(&d) == UMD_SUCCESS && root_of(d.id).seq == a->want &&
                     umdDeviceGetFirstCause(a->f->dev, &d) == UMD_SUCCESS && d.id.seq == a->want;
        atomic_fetch_add(&a->wrong, !right);
    }
    return NULL;
}

/* Each thread is told the same first cause, also when all that lay between has been pushed out by other records. */
static void one_first_cause_for_all(void **state)
{
    struct fx *f = *state;
    struct asker a = { .f = f };
    umdDevicePtr p = fx_alloc(f, 4096);
    umdErrorDetail d = { .size_B = sizeof(d) };
    pthread_t t[4];

    assert_int_equal(umdDeviceGetFirstCause(f->dev, &d), UMD_STATUS_NOT_READY);
    assert_int_equal(umdContextGetFirstCause(f->ctx, &d), UMD_STATUS_NOT_READY);
    assert_fails(umdDeviceGetFirstCause(f->dev, NULL), UMD_ERR_PARAM_NULL, "argument=detail");
    d.size_B = 4;
    assert_fails(umdContextGetFirstCause(f->ctx, &d), UMD_ERR_PARAM_STRUCT_SIZE, "size_B=4");
    assert_ok(umd_fault_plan_set("hw.bus.off=1*fire"));
    umdStatus st = fx_launch(f->stream, fx_kernel(f, "axpy"), &(struct fx_args){ p, p, 1, 32 }, 1);
    if (st == UMD_SUCCESS)
        st = umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE);
    assert_st(st, UMD_ERR_DEV_LOST_OFF_BUS);
    a.want = first_of_device(f);
    assert_int_equal(root_of(fx_detail().id).seq, a.want);
    for (int i = 0; i < 300; i++)
        assert_int_equal(umdDeviceGet(100 + (uint32_t)i, &f->dev), UMD_ERR_PARAM_RANGE);
    for (int i = 0; i < (fx_stepped() ? 0 : 4); i++)
        assert_int_equal(pthread_create(&t[i], NULL, ask, &a), 0);
    ask(&a);
    for (int i = 0; i < (fx_stepped() ? 0 : 4); i++)
        assert_int_equal(pthread_join(t[i], NULL), 0);
    assert_int_equal(a.wrong, 0);
    d.size_B = sizeof(d);
    assert_st(umdContextGetFirstCause(f->ctx, &d), UMD_SUCCESS);
    assert_int_equal(d.id.seq, a.want);
    assert_int_equal(first_of_device(f), a.want);
}

struct waiter { struct fx *f; bool whole; };

/* By the kernel's source line, which the fence alone does not know. */
static void *wait_and_look(void *arg)
{
    struct waiter *w = arg;

    const umdStatus st = umdStreamSynchronize(w->f->stream, UMD_TIMEOUT_INFINITE);
    umdErrorDetail d = fx_detail();

    if (st == UMD_ERR_CTX_BANNED && umdGetFirstCause(d.id, &d) != UMD_SUCCESS) /* who comes when others have been told */
        return NULL;
    w->whole = d.code == UMD_ERR_HW_PAGE_FAULT && strstr(d.figures, "source=");
    if (!w->whole)
        print_message("wait -> %s, told: %s %s\n", umdStatusName(st), umdStatusName((umdStatus)d.code), d.figures);
    return NULL;
}

/* All who wait for one stream are told the whole story, and none of them takes a part of it away from the others. */
static void waiters_are_told_the_same(void **state)
{
    struct fx *f = *state;
    struct waiter w[4] = { { .f = f }, { .f = f }, { .f = f }, { .f = f } };
    const int others = fx_stepped() ? 0 : 3;
    umdErrorDetail d = { .size_B = sizeof(d) };
    pthread_t t[3];

    assert_ok(fx_launch(f->stream, fx_kernel(f, "poke"), &(struct fx_args){ .dst = 0x123456789000, .a = 1, .n = 1 }, 1));
    for (int i = 0; i < others; i++)
        assert_int_equal(pthread_create(&t[i], NULL, wait_and_look, &w[i]), 0);
    wait_and_look(&w[3]);
    for (int i = 0; i < others; i++) {
        assert_int_equal(pthread_join(t[i], NULL), 0);
        assert_true(w[i].whole);
    }
    assert_true(w[3].whole);
    assert_st(umdContextGetFirstCause(f->ctx, &d), UMD_SUCCESS);
    assert_non_null(strstr(d.figures, "source="));
    assert_st(umdGetErrorDetailById(d.id, &d), UMD_SUCCESS);
    assert_non_null(strstr(d.figures, "source="));
}

struct heard_scene { _Atomic(int) calls; uint32_t errors; umdRecordId id; };

static void on_failure(umdContext context, const umdErrorDetail *d, void *user)
{
    struct heard_scene *h = user;
    umdErrorScene s = { .size_B = sizeof(s) };

    (void)context;
    h->id = d->id;
    h->errors = umdGetErrorScene(d->id, &s) == UMD_SUCCESS ? s.error_count : 0;
    atomic_fetch_add(&h->calls, 1);
}

/* A failed context names the job's own failure to each later call; its callback has the errors before. */
static void first_cause_of_a_context(void **state)
{
    struct fx *f = *state;
    struct heard_scene h = { 0 };
    umdDevicePtr p = fx_alloc(f, 4096), q;
    umdErrorDetail d = { .size_B = sizeof(d) };
    umdErrorScene scene = { .size_B = sizeof(scene) };

    assert_ok(umdContextSetErrorCallback(f->ctx, on_failure, &h));
    assert_st(umdMemAlloc(f->ctx, 0, 0, 0, &q), UMD_ERR_MEM_SIZE); /* an error before */
    assert_ok(fx_launch(f->stream, fx_kernel(f, "spin"), &(struct fx_args){ p, p, 1, 32 }, 1));
    assert_st(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE), UMD_ERR_HW_SPIN);
    const umdRecordId first = fx_detail().id;
    for (int i = 0; i < 300; i++)
        assert_int_equal(umdMemAlloc(f->ctx, 4096 + (uint64_t)i, 0, 0, &q), UMD_ERR_CTX_BANNED);
    assert_int_equal(root_of(fx_detail().id).seq, first.seq);
    assert_st(umdContextGetFirstCause(f->ctx, &d), UMD_SUCCESS);
    assert_int_equal(d.id.seq, first.seq);
    assert_int_equal(d.origin_code, UMD_ERR_HW_SPIN);
    for (int i = 0; i < 2000 && !atomic_load(&h.calls); i++)
        usleep(1000);
    assert_ok(umdContextSetErrorCallback(f->ctx, NULL, NULL));
    assert_int_equal(h.id.seq, first.seq);
    assert_true(h.errors >= 1);
    assert_int_equal(umdGetErrorScene(first, &scene), UMD_SUCCESS); /* pinned with its record */
    assert_true(scene.call_count > 0);
}

/* Work that fell with another stream's failure: the first call tells the failure, later ones of it. */
static void cancelled_by_sibling(void **state)
{
    struct fx *f = *state;
    umdDevicePtr p = fx_alloc(f, 4096);
    umdKernel spin = fx_kernel(f, "spin"), axpy = fx_kernel(f, "axpy");
    umdStream other;

    assert_ok(umdStreamCreate(f->ctx, UMD_STREAM_COMPUTE, 0, &other));
    assert_ok(fx_launch(f->stream, spin, &(struct fx_args){ p, p, 1, 32 }, 1));
    umdStatus st = fx_launch(other, axpy, &(struct fx_args){ p, p, 1, 32 }, 1);
    if (st == UMD_SUCCESS) /* else this host was slower than the watchdog */
        st = umdStreamSynchronize(other, UMD_TIMEOUT_INFINITE);
    assert_st(st, UMD_ERR_HW_SPIN);
    assert_st(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE), UMD_ERR_HW_SPIN); /* its own, unread until here */
    assert_st(umdStreamSynchronize(other, UMD_TIMEOUT_INFINITE), UMD_ERR_CTX_BANNED);
}

struct told { _Atomic(int) begun, refused, lost; umdErrorDetail loss; };

static void on_warning(umdContext context, const umdErrorDetail *d, void *user)
{
    struct told *t = user;

    (void)context;
    if (d->code == UMD_ERR_HW_HANG && strstr(d->figures, "done=engine-reset-begun,work-requeued"))
        atomic_fetch_add(&t->begun, 1);
    else if (d->code == UMD_ERR_HW_HANG && strstr(d->figures, "done=reset-refused") && strstr(d->figures, "jobs_requeued=0"))
        atomic_fetch_add(&t->refused, 1);
    else if (d->code == UMD_ERR_DEV_LOST_TOO_MANY_RESETS) {
        t->loss = *d;
        atomic_fetch_add(&t->lost, 1);
    }
}

/* The command processor hangs again and again: eight resets start it again, the ninth is refused and says so. */
static void resets_spent(void **state)
{
    struct fx *f = *state;
    struct told t = { 0 };
    umdDevicePtr p = fx_alloc(f, 4096);

    assert_ok(umdContextSetErrorCallback(f->ctx, on_warning, &t));
    assert_ok(umd_fault_plan_set("hw.cp.hang=fire"));
    umdStatus st = umdMemset(f->stream, p, 1, 4, 4096);
    if (st == UMD_SUCCESS)
        st = umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE);
    assert_st(st, UMD_ERR_DEV_LOST_TOO_MANY_RESETS);
    umdErrorDetail d = fx_detail();
    assert_true(fx_caused_by(&d, UMD_ERR_HW_HANG));
    for (int i = 0; i < 2000 && !atomic_load(&t.lost); i++)
        usleep(1000);
    assert_ok(umdContextSetErrorCallback(f->ctx, NULL, NULL));
    assert_int_equal(t.begun, 8);
    assert_int_equal(t.refused, 1);
    assert_int_equal(t.lost, 1);
    assert_true(fx_caused_by(&t.loss, UMD_ERR_HW_HANG));
}

/* ---- Once ---- */

/* Every allocation of a set-up fails in turn: one ERROR line, and the record of where it failed. */
static void one_line_each(void **state)
{
    struct fx *f = *state;
    char spec[64];
    int n;

    for (n = 1; n < 200; n++) {
        umdContext ctx = { 0 };
        umdModule mod;
        umdStream s;
        umdDevicePtr p;
        snprintf(spec, sizeof(spec), "sys.alloc[nth=%d]=fail", n);
        listen_to("error"); /* before: the thread that reads events may be the one that is refused, at once */
        assert_ok(umd_fault_plan_set(spec));
        umdStatus st = umdContextCreate(f->dev, &ctx);
        if (st == UMD_SUCCESS)
            st = umdModuleLoadFile(ctx, fx_kernel_path(), &mod);
        if (st == UMD_SUCCESS)
            st = umdStreamCreate(ctx, UMD_STREAM_COMPUTE, 0, &s);
        if (st == UMD_SUCCESS)
            st = umdMemAlloc(ctx, 4096, 0, UMD_MEM_HOST_VISIBLE, &p);
        bool fired = umd_fault_fired(UMD_FAULT_SYS_ALLOC) > 0;
        assert_ok(umd_fault_plan_set(NULL));
        for (int i = 0; i < 2000 && heard() < fired; i++) /* refused to another thread, which is about to say so */
            usleep(1000);
        assert_int_equal(heard(), fired);
        listen_no_more();
        if (st != UMD_SUCCESS) {
            umdErrorDetail d = fx_detail();
            assert_st(st, UMD_ERR_MEM_HOST_ALLOC_FAILED);
            assert_null(strstr(d.figures, "record=missing"));
            assert_non_null(strstr(d.figures, "live_B=")); /* of the allocation itself */
        }
        if (ctx.id)
            assert_ok(umdContextDestroy(ctx));
        if (!fired)
            break;
    }
    assert_true(n > 5 && n < 200);
}

/* Every thread of a start fails in turn. */
static void threads_missing(void **state)
{
    int n = 1;

    (void)state;
    for (umdStatus st = UMD_ERR_RES_THREADS; st != UMD_SUCCESS; n++) {
        char spec[64];
        umdInitDesc d = fx_desc();
        snprintf(spec, sizeof(spec), "sys.thread.create[nth=%d]=fail", n);
        d.faults = spec;
        st = umdInit(&d);
        assert_true(n < 20);
        if (st == UMD_SUCCESS)
            break;
        assert_int_equal(st, UMD_ERR_RES_THREADS);
        fx_assert_figure(UMD_ERR_RES_THREADS, "thread=petrel-", __FILE__, __LINE__);
    }
    assert_ok(umd_fault_plan_set(NULL));
    assert_ok(umdShutdown());
    assert_true(fx_stepped() || n > 2);
}

/* ---- Each record ends ---- */

struct seen {
    _Atomic(uint64_t) seq;
};

static void on_illegal(umdContext context, const umdErrorDetail *detail, void *user)
{
    (void)context;
    if (detail->code == (int32_t)UMD_ERR_HW_ILLEGAL_INSTRUCTION)
        atomic_store(&((struct seen *)user)->seq, detail->id.seq);
}

/* Lines of the log that tell of the end of that record. */
static int ends_of(uint64_t seq, const char *how)
{
    char line[8192], id[48];
    int n = 0;

    umdLogFlush(10000);
    snprintf(id, sizeof(id), ":%" PRIu64 ": ended ", seq);
    FILE *f = fopen(log_path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        n += strstr(line, id) && strstr(line, how);
    fclose(f);
    return n;
}

/* A failure that no call meets, since stream or context is destroyed before: it is told to callbacks, and its record has an end all the same. */
static void unread_failures_end(void **state)
{
    struct fx *f = *state;

    const umdDevicePtr q = fx_alloc(f, 4096);
    listen_to("info");
    for (int way = 0; way < 3; way++) {
        struct seen seen = { 0 };
        umdContext ctx;
        umdModule mod;
        umdKernel k;
        umdStream s;
        umdDevicePtr p;
        assert_ok(umdContextCreate(f->dev, &ctx));
        assert_ok(umdContextSetErrorCallback(ctx, on_illegal, &seen));
        assert_ok(umdModuleLoadFile(ctx, fx_kernel_path(), &mod));
        assert_ok(umdModuleGetKernel(mod, "axpy", &k));
        assert_ok(umdStreamCreate(ctx, UMD_STREAM_COMPUTE, 0, &s));
        assert_ok(umdMemAlloc(ctx, 4096, 0, 0, &p));
        assert_ok(umd_fault_plan_set("hw.cu.illegal=1*fire"));
        umdStatus st = fx_launch(s, k, &(struct fx_args){ p, p, 1, 32 }, 1);
        for (int i = 0; i < 20000 && !atomic_load(&seen.seq); i++) {
            assert_ok(umdMemset(f->stream, q, 1, 4, 4096)); /* stepped, the device goes on in waits alone */
            assert_ok(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE));
            usleep(fx_stepped() ? 0 : 1000);
        }
        assert_true(atomic_load(&seen.seq) != 0);
        if (way == 1)
            assert_ok(umdStreamDestroy(s));
        if (way == 2)
            assert_st(umdStreamSynchronize(s, UMD_TIMEOUT_INFINITE), st == UMD_SUCCESS ? UMD_ERR_HW_ILLEGAL_INSTRUCTION : UMD_ERR_CTX_BANNED);
        assert_ok(umdContextDestroy(ctx));
        /* A destroy that waits for the job meets it, too, and leaves it to the event. */
        if (way == 2 || st != UMD_SUCCESS)
            assert_int_equal(ends_of(atomic_load(&seen.seq), "end=delivered"), 1);
        else
            assert_int_equal(ends_of(atomic_load(&seen.seq), " reason=\"its context was destroyed before a call met it\""), 1);
    }
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    unlink(log_path);
}

/* ---- At its true level ---- */

/* Destroying what runs, waits, or waits for what is destroyed is no error. */
static void destroyed_at_work(void **state)
{
    struct fx *f = *state;

    for (int way = 0; way < 4; way++) {
        umdContext ctx;
        umdModule mod;
        umdKernel k;
        umdStream a, b;
        umdEvent e;
        umdDevicePtr p;
        assert_ok(umdContextCreate(f->dev, &ctx));
        assert_ok(umdModuleLoadFile(ctx, fx_kernel_path(), &mod));
        assert_ok(umdModuleGetKernel(mod, "axpy", &k));
        assert_ok(umdStreamCreate(ctx, UMD_STREAM_COMPUTE, 0, way & 1 ? &a : &b));
        assert_ok(umdStreamCreate(ctx, UMD_STREAM_COMPUTE, 0, way & 1 ? &b : &a));
        assert_ok(umdEventCreate(ctx, &e));
        assert_ok(umdMemAlloc(ctx, 4096, 0, 0, &p));
        for (int i = 0; i < 2; i++) /* for hours, and always with progress: the watchdog leaves it alone, however slow this host is */
            assert_ok(umdLaunchKernel(a, k, &(umdLaunchDesc){ .size_B = sizeof(umdLaunchDesc), .grid = { 65535, 65535, 1 }, .block = { 1, 1, 1 },
                                                              .args = &(struct fx_args){ p, p, 1, 0 }, .args_B = sizeof(struct fx_args) }));
        assert_ok(umdEventRecord(e, a));
        assert_ok(umdStreamWaitEvent(b, e));
        umdStatus st = umdStreamSynchronize(a, 100000);
        assert_int_equal(st, UMD_ERR_WAIT_QUEUED); /* the event's job, behind two that do not end */
        listen_to("error");
        if (way & 2)
            assert_ok(umdStreamDestroy(a)); /* lives on in the event */
        assert_ok(umdContextDestroy(ctx));
        assert_int_equal(heard(), 0);
        listen_no_more();
    }
}

/* On a lost device too, and where an event holds a stream whose handle is closed. */
static void destroyed_after_loss(void **state)
{
    struct fx *f = *state;
    umdDevicePtr p = fx_alloc(f, 4096);
    umdContext ctx;
    umdStream s;
    umdEvent e;

    assert_ok(umdContextCreate(f->dev, &ctx));
    assert_ok(umdStreamCreate(ctx, UMD_STREAM_COMPUTE, 0, &s));
    assert_ok(umdEventCreate(ctx, &e));
    assert_ok(umdEventRecord(e, s));
    assert_ok(umdStreamSynchronize(s, UMD_TIMEOUT_INFINITE));
    assert_ok(umd_fault_plan_set("hw.bus.off=1*fire"));
    umdStatus st = fx_launch(f->stream, fx_kernel(f, "axpy"), &(struct fx_args){ p, p, 1, 32 }, 1);
    if (st == UMD_SUCCESS)
        st = umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE);
    assert_st(st, UMD_ERR_DEV_LOST_OFF_BUS);
    listen_to("error");
    assert_ok(umdStreamDestroy(s));
    assert_ok(umdContextDestroy(ctx));
    assert_int_equal(heard(), 0);
    listen_no_more();
}

static umdErrorCounts counts_of(umdStatus code)
{
    static umdErrorCounts all[256];
    uint32_t n = umdGetErrorCounts(all, 256);

    for (uint32_t i = 0; i < n && i < 256; i++)
        if (all[i].code == (int32_t)code)
            return all[i];
    return (umdErrorCounts){ 0 };
}

/* A full queue is met every day. */
static void full_is_no_error(void **state)
{
    struct fx *f = *state;
    umdDevicePtr p = fx_alloc(f, 4096);
    const umdErrorCounts before = counts_of(UMD_ERR_SUBMIT_RING_FULL);

    assert_ok(umd_fault_plan_set("kmd.ring.full=2*fail"));
    listen_to("warn");
    assert_ok(umdMemset(f->stream, p, 1, 4, 4096));
    assert_int_equal(umd_fault_fired(UMD_FAULT_KMD_RING_FULL), 2);
    assert_int_equal(heard(), 0);
    listen_no_more();
    assert_int_equal(counts_of(UMD_ERR_SUBMIT_RING_FULL).retried - before.retried, 2);
    assert_int_equal(counts_of(UMD_ERR_SUBMIT_RING_FULL).absorbed - before.absorbed, 2);
    assert_int_equal(umdStatusAdvice(UMD_ERR_SUBMIT_RING_FULL).severity, UMD_SEVERITY_INFO);
}

/* A wait without time, of an endless job alone on the device: queued only while it has not begun, and never for long. */
static void poll_of_endless(void **state)
{
    struct fx *f = *state;
    umdDevicePtr p = fx_alloc(f, 4096);
    umdStatus st = UMD_ERR_WAIT_QUEUED;

    assert_ok(fx_launch(f->stream, fx_kernel(f, "spin"), &(struct fx_args){ p, p, 1, 32 }, 1));
    for (int i = 0; i < 3000 && st == UMD_ERR_WAIT_QUEUED; i++) {
        st = umdStreamSynchronize(f->stream, 0);
        if (st == UMD_ERR_WAIT_QUEUED)
            fx_assert_figure(st, "start_ns=0 ", __FILE__, __LINE__);
        if (!fx_stepped())
            usleep(100);
    }
    assert_true(st == UMD_STATUS_TIMEOUT_PROGRESS || st == UMD_ERR_WAIT_STALLED || (st == UMD_ERR_HW_SPIN && !fx_stepped()));
}

/* Workgroups that retire in bursts, under the shortest watchdog: no look between two bursts calls the job stalled (B6). */
static void bursts_are_progress(void **state)
{
    umdInitDesc desc = fx_desc();
    umdStatus st = UMD_ERR_WAIT_QUEUED;
    int looks = 0;
    struct fx f = { 0 };

    (void)state;
    desc.watchdog_ns = 1000000;
    assert_ok(umdInit(&desc));
    assert_ok(umdDeviceGet(0, &f.dev));
    assert_ok(umdContextCreate(f.dev, &f.ctx));
    assert_ok(umdModuleLoadFile(f.ctx, fx_kernel_path(), &f.mod));
    assert_ok(umdStreamCreate(f.ctx, UMD_STREAM_COMPUTE, 0, &f.stream));
    umdDevicePtr p = fx_alloc(&f, 4096);
    assert_ok(fx_launch(f.stream, fx_kernel(&f, "crawl"), &(struct fx_args){ p, 0, 12000, 1024 }, 48)); /* 8 at a time, some 350 us each */
    for (; st != UMD_SUCCESS; looks++) {
        st = umdStreamSynchronize(f.stream, 50000);
        if (st != UMD_SUCCESS && st != UMD_ERR_WAIT_QUEUED)
            assert_st(st, UMD_STATUS_TIMEOUT_PROGRESS);
    }
    assert_true(looks > 20 || !fx_stepped());
    assert_ok(umdShutdown());
}

/* ---- Callbacks and the end of a context ---- */

struct last_word { _Atomic(int) count; _Atomic(int32_t) code; };

static void on_last_word(umdContext context, const umdErrorDetail *d, void *user)
{
    struct last_word *w = user;

    (void)context;
    usleep(2000); /* longer than the caller takes from its failed wait to the destroy */
    if (!atomic_load(&w->count))
        atomic_store(&w->code, d->code);
    atomic_fetch_add(&w->count, 1);
}

/* The destroy that follows a failed wait at once takes no callback away. */
static void destroyed_when_told(void **state)
{
    static const struct { const char *faults; umdStatus code; } rounds[] = {
        { "hw.cu.illegal=1*fire", UMD_ERR_HW_ILLEGAL_INSTRUCTION }, { "hw.bus.off=1*fire", UMD_ERR_DEV_LOST_OFF_BUS },
    };
    struct fx *f = *state;

    for (int i = 0; i < 7; i++) { /* eight resets in a minute are too many */
        const int r = i == 6; /* the loss last: it is for good */
        struct last_word w = { 0 };
        umdContext ctx;
        umdModule mod;
        umdStream s;
        umdKernel k;
        umdDevicePtr p;

        assert_ok(umdContextCreate(f->dev, &ctx));
        assert_ok(umdModuleLoadFile(ctx, fx_kernel_path(), &mod));
        assert_ok(umdModuleGetKernel(mod, "axpy", &k));
        assert_ok(umdStreamCreate(ctx, UMD_STREAM_COMPUTE, 0, &s));
        assert_ok(umdMemAlloc(ctx, 4096, 0, 0, &p));
        assert_ok(umdContextSetErrorCallback(ctx, on_last_word, &w));
        assert_ok(umd_fault_plan_set(rounds[r].faults));
        umdStatus st = fx_launch(s, k, &(struct fx_args){ p, p, 1, 32 }, 1);
        if (st == UMD_SUCCESS)
            st = umdStreamSynchronize(s, UMD_TIMEOUT_INFINITE);
        assert_st(st, rounds[r].code);
        assert_ok(umdContextDestroy(ctx));
        assert_true(w.count >= 1);
        assert_int_equal(w.code, rounds[r].code);
        assert_ok(umd_fault_plan_set(NULL));
    }
}

static void on_busy(umdContext context, const umdErrorDetail *d, void *user)
{
    (void)context;
    (void)d;
    atomic_store((_Atomic(bool) *)user, true);
    usleep(500000); /* longer than a call waits for the event of its failure */
}

/* The thread that calls back is busy with another context's failure: the event of this one's comes after the call that told of it, and the destroy. */
static void destroyed_before_its_event(void **state)
{
    struct fx *f = *state;
    _Atomic(bool) busy = false;

    if (fx_stepped())
        return;
    for (int clear = 0; clear < 2; clear++) {
        struct last_word w = { 0 };
        umdContext ctx[2];
        umdStatus st = UMD_SUCCESS;

        atomic_store(&busy, false);
        for (int i = 0; i < 2; i++) {
            umdModule mod;
            umdStream s;
            umdKernel k;
            assert_ok(umdContextCreate(f->dev, &ctx[i]));
            assert_ok(umdModuleLoadFile(ctx[i], fx_kernel_path(), &mod));
            assert_ok(umdModuleGetKernel(mod, "axpy", &k));
            assert_ok(umdStreamCreate(ctx[i], UMD_STREAM_COMPUTE, 0, &s));
            assert_ok(umdContextSetErrorCallback(ctx[i], i ? on_last_word : on_busy, i ? (void *)&w : (void *)&busy));
            assert_ok(umd_fault_plan_set("hw.cu.illegal=1*fire"));
            st = fx_launch(s, k, &(struct fx_args){ .n = 1 }, 1);
            if (i && st == UMD_SUCCESS)
                st = umdStreamSynchronize(s, UMD_TIMEOUT_INFINITE);
            for (int n = 0; !i && n < 20000 && !atomic_load(&busy); n++)
                usleep(1000);
            assert_ok(umd_fault_plan_set(NULL));
        }
        assert_true(atomic_load(&busy));
        assert_st(st, UMD_ERR_HW_ILLEGAL_INSTRUCTION);
        if (clear)
            assert_ok(umdContextSetErrorCallback(ctx[1], NULL, NULL));
        else
            assert_ok(umdContextDestroy(ctx[1]));
        assert_int_equal(w.count, 1);
        assert_int_equal(w.code, UMD_ERR_HW_ILLEGAL_INSTRUCTION);
        if (clear)
            assert_ok(umdContextDestroy(ctx[1]));
        assert_ok(umdContextDestroy(ctx[0]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(hang_then_loss, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(cancelled_by_sibling, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(one_first_cause_for_all, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(first_cause_of_a_context, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(waiters_are_told_the_same, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(resets_spent, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(one_line_each, fx_setup, fx_teardown),
        cmocka_unit_test(threads_missing),
        cmocka_unit_test_setup_teardown(unread_failures_end, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(destroyed_at_work, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(destroyed_after_loss, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(destroyed_when_told, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(destroyed_before_its_event, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(full_is_no_error, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(poll_of_endless, fx_setup, fx_teardown),
        cmocka_unit_test(bursts_are_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
