/* SPDX-License-Identifier: MIT */
/* codes_resource.c - cases of the resource codes: contexts, memory, what host and driver have only so many of. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codes.h"

/* ---- Contexts ---- */

struct filler { umdStream stream; umdDevicePtr p; umdStatus st; umdErrorDetail detail; };

static void *fill_main(void *arg)
{
    struct filler *x = arg;

    x->st = umdMemset(x->stream, x->p, 1, 4, 4096);
    if (umdFailed(x->st))
        x->detail = fx_detail();
    return NULL;
}

/* Another thread is in a call that waits for room in the queue while the context goes. */
static umdStatus destroyed_meanwhile(struct fx *f, struct filler *x)
{
    umdContext ctx;
    pthread_t t;

    assert_ok(umdContextCreate(f->dev, &ctx));
    assert_ok(umdStreamCreate(ctx, UMD_STREAM_COMPUTE, 0, &x->stream));
    assert_ok(umdMemAlloc(ctx, 4096, 0, 0, &x->p));
    assert_ok(umd_fault_plan_set("kmd.ring.full=fail"));
    assert_int_equal(pthread_create(&t, NULL, fill_main, x), 0);
    while (!umd_fault_fired(UMD_FAULT_KMD_RING_FULL))
        usleep(100);
    assert_ok(umdContextDestroy(ctx));
    pthread_join(t, NULL);
    assert_ok(umd_fault_plan_set(NULL));
    return x->st;
}

struct inside { umdStream stream; bool called; umdStatus st; umdErrorDetail detail; };

static void on_failure(umdContext context, const umdErrorDetail *detail, void *user)
{
    struct inside *x = user;

    (void)context, (void)detail;
    x->called = true;
    x->st = umdStreamQuery(x->stream);
    if (umdFailed(x->st))
        x->detail = fx_detail();
}

/* One thread: the callback of a failure that the destroy call is the first to hear of. */
static void destroyed_in_callback(struct fx *f, struct inside *x)
{
    umdContext ctx;
    umdModule mod;
    umdKernel k;
    umdStream s;
    umdDevicePtr p, q;

    assert_ok(umdContextCreate(f->dev, &ctx));
    assert_ok(umdModuleLoadFile(ctx, fx_kernel_path(), &mod));
    assert_ok(umdModuleGetKernel(mod, "trap", &k));
    assert_ok(umdStreamCreate(ctx, UMD_STREAM_COMPUTE, 0, &s));
    assert_ok(umdStreamCreate(ctx, UMD_STREAM_COMPUTE, 0, &x->stream));
    assert_ok(umdMemAlloc(ctx, 4096, 0, 0, &p));
    assert_ok(umdMemAlloc(ctx, 4096, 0, 0, &q));
    assert_ok(umdContextSetErrorCallback(ctx, on_failure, x));
    assert_ok(fx_launch(s, k, &(struct fx_args){ p, p, 7, 32 }, 1));
    assert_ok(umdMemFree(ctx, q)); /* waits for the work, and listens to no events */
    assert_false(x->called);
    assert_ok(umdContextDestroy(ctx));
    assert_true(x->called);
}

CODE_CASE(UMD_ERR_CTX_DESTROYED)
{
    struct fx *f = code_up(run);
    struct filler x = { 0 };
    struct inside y = { 0 };

    if (fx_stepped())
        destroyed_in_callback(f, &y);
    for (int i = 0; !fx_stepped() && i < 20 && (i == 0 || x.st == UMD_ERR_SUBMIT_RING_FULL); i++) /* a host so slow that the retries end first */
        destroyed_meanwhile(f, &x);
    code_saw(run, fx_stepped() ? y.st : x.st);
    const umdErrorDetail *d = fx_stepped() ? &y.detail : &x.detail;
    assert_int_equal(d->code, run->code);
    assert_true(strstr(d->figures, "context=") || strstr(d->figures, "stream="));
}

CODE_CASE(UMD_ERR_CTX_BANNED)
{
    struct fx *f = code_up(run);
    umdDevicePtr p = fx_alloc(f, 4096), q;

    assert_ok(fx_launch(f->stream, fx_kernel(f, "trap"), &(struct fx_args){ p, p, 7, 32 }, 1));
    assert_st(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE), UMD_ERR_HW_TRAP);
    provokes(umdMemAlloc(f->ctx, 4096, 0, 0, &q), "because_of=UMD_ERR_HW_TRAP");
    umdErrorDetail d = fx_detail();
    assert_true(fx_caused_by(&d, UMD_ERR_HW_TRAP));
    assert_int_equal(d.advice.action, UMD_ACTION_REBUILD_CONTEXT);
}

CODE_CASE(UMD_ERR_CTX_FORKED)
{
    struct fx *f = code_up(run);
    int status;

    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        umdErrorDetail d = { .size_B = sizeof(d) };
        umdDevicePtr p;
        bool ok = umdMemAlloc(f->ctx, 4096, 0, 0, &p) == UMD_ERR_CTX_FORKED && umdGetLastErrorDetail(&d) == UMD_SUCCESS &&
                  d.code == UMD_ERR_CTX_FORKED && strstr(d.figures, "started_by_pid=");
        _exit(ok ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    code_saw(run, UMD_ERR_CTX_FORKED);
}

struct busy { _Atomic(bool) called; umdStatus st; umdErrorDetail detail; };

static void shut_down_inside(umdContext context, const umdErrorDetail *detail, void *user)
{
    struct busy *x = user;

    (void)context, (void)detail;
    if (x->called)
        return;
    x->st = umdShutdown();
    x->detail = fx_detail();
    x->called = true;
}

CODE_CASE(UMD_ERR_CTX_BUSY)
{
    struct fx *f = code_up(run);
    struct busy x = { 0 };
    umdDevicePtr p = fx_alloc(f, 4096);

    assert_ok(umdContextSetErrorCallback(f->ctx, shut_down_inside, &x));
    assert_ok(fx_launch(f->stream, fx_kernel(f, "trap"), &(struct fx_args){ p, p, 7, 32 }, 1));
    assert_st(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE), UMD_ERR_HW_TRAP);
    for (int i = 0; i < 20000 && !x.called; i++)
        usleep(1000);
    assert_ok(umdContextSetErrorCallback(f->ctx, NULL, NULL));
    code_saw(run, x.st);
    assert_int_equal(x.detail.code, run->code);
    assert_non_null(strstr(x.detail.figures, "callback"));
    assert_int_equal(x.detail.advice.action, UMD_ACTION_SKIP); /* in the callback no retry can help */
    assert_int_equal(x.detail.advice.count, 0);
}

/* ---- Memory ---- */

CODE_CASE(UMD_ERR_MEM_ALLOC_FAILED)
{
    struct fx *f = code_up(run);
    umdDevicePtr p = 42;

    assert_ok(umd_fault_plan_set("kmd.vram.alloc=1*fail"));
    provokes(umdMemAlloc(f->ctx, 4096, 0, 0, &p), "size_B=4096");
    fx_assert_figure(run->code, "free_B=", __FILE__, __LINE__);
    assert_int_equal(p, 42);
    umdErrorDetail d = fx_detail();
    assert_int_equal(d.advice.action, UMD_ACTION_FREE_RETRY);
    assert_ok(umdMemAlloc(f->ctx, 4096, 0, 0, &p)); /* the retry that it advises */
}

CODE_CASE(UMD_ERR_MEM_FRAGMENTED)
{
    struct fx *f = code_up(run);
    umdDevicePtr p[128], big = 42;
    uint32_t n = 0;

    while (n < 128 && umdMemAlloc(f->ctx, 1u << 20, 0, 0, &p[n]) == UMD_SUCCESS)
        n++;
    assert_true(n > 16 && n < 128);
    for (uint32_t i = 0; i < n; i += 2)
        assert_ok(umdMemFree(f->ctx, p[i]));
    provokes(umdMemAlloc(f->ctx, 16u << 20, 0, 0, &big), "size_B=16777216");
    umdErrorDetail d = fx_detail();
    assert_true(d.advice.largest_fit_B >= 1u << 20 && d.advice.largest_fit_B < 16u << 20);
    assert_non_null(strstr(d.figures, "largest_B="));
    assert_ok(umdMemAlloc(f->ctx, d.advice.largest_fit_B, 0, 0, &big)); /* the record does not lie */
}

CODE_CASE(UMD_ERR_MEM_HOST_ALLOC_FAILED)
{
    struct fx *f = code_up(run);
    umdDevicePtr p = 42;

    assert_ok(umd_fault_plan_set("sys.alloc=fail"));
    provokes(umdMemAlloc(f->ctx, 4096, 0, 0, &p), "live_B=");
    assert_int_equal(p, 42);
}

CODE_CASE(UMD_ERR_MEM_VA_EXHAUSTED)
{
    umdDevicePtr p = 42;

    code_between()->va_end = 24u << 20; /* addresses begin at 2 MiB */
    struct fx *f = code_up_between(run);
    assert_ok(umdMemAlloc(f->ctx, 8u << 20, 0, 0, &p));
    provokes(umdMemAlloc(f->ctx, 16u << 20, 0, 0, &p), "size_B=16777216");
    fx_assert_figure(run->code, "largest_B=", __FILE__, __LINE__);
    umdErrorDetail d = fx_detail();
    assert_true(d.advice.largest_fit_B && d.advice.largest_fit_B < 16u << 20);
    assert_ok(umdMemAlloc(f->ctx, d.advice.largest_fit_B, 0, 0, &p)); /* the record does not lie */
}

/* The list of a context's addresses, overwritten: no more of them are given out, and a fresh context has its own. */
CODE_CASE(UMD_ERR_MEM_CORRUPT)
{
    struct fx *f = code_up(run);
    umdDevicePtr before = fx_alloc(f, 4096), p = 42;
    umdContext fresh;

    assert_ok(umd_fault_plan_set("umd.va.corrupt=1*fire"));
    provokes(umdMemAlloc(f->ctx, 4096, 0, 0, &p), "list=addresses op=alloc check=end expected=0x");
    umdErrorDetail d = fx_detail();
    assert_true(d.advice.action == UMD_ACTION_REBUILD_CONTEXT && d.advice.scope == UMD_SCOPE_CONTEXT && d.advice.sticky);
    assert_st(umdMemAlloc(f->ctx, 4096, 0, 0, &p), UMD_ERR_MEM_CORRUPT);
    fx_assert_figure(run->code, "reason=corrupt_before", __FILE__, __LINE__);
    umdErrorDetail again = fx_detail();
    assert_true(again.cause.seq == d.id.seq);
    assert_int_equal(p, 42);
    assert_ok(umdMemFree(f->ctx, before));
    assert_ok(umdContextCreate(f->dev, &fresh));
    assert_ok(umdMemAlloc(fresh, 4096, 0, 0, &p));
    assert_ok(umdContextDestroy(fresh));
    /* The device's own list, which all contexts share: another scope, and other advice. */
    assert_ok(umdContextCreate(f->dev, &fresh));
    assert_ok(umd_fault_plan_set("kmd.vram.corrupt=1*fire"));
    assert_st(umdMemAlloc(fresh, 4096, 0, 0, &p), UMD_ERR_MEM_CORRUPT);
    fx_assert_figure(run->code, "heap=vram op=alloc check=end", __FILE__, __LINE__);
    d = fx_detail();
    assert_true(d.advice.action == UMD_ACTION_RESET_DEVICE && d.advice.scope == UMD_SCOPE_DEVICE);
    assert_ok(umdContextDestroy(fresh));
}

CODE_CASE(UMD_ERR_MEM_MAP_FAILED)
{
    struct fx *f = code_up(run);
    umdDevicePtr p;
    void *host = NULL;

    assert_ok(umdMemAlloc(f->ctx, 4096, 0, UMD_MEM_HOST_VISIBLE, &p));
    assert_ok(umd_fault_plan_set("sys.mmap=1*fail"));
    provokes(umdMemMap(f->ctx, p, &host), "size_B=4096");
    fx_assert_figure(run->code, "errno=12", __FILE__, __LINE__);
    assert_null(host);
    assert_ok(umdMemMap(f->ctx, p, &host));
}

/* ---- Host and driver ---- */

CODE_CASE(UMD_ERR_RES_DESCRIPTORS)
{
    umdInitDesc d = fx_desc();

    d.faults = "sys.open=fail(EMFILE)";
    code_init_fails(run, d, "errno=24");
}

CODE_CASE(UMD_ERR_RES_THREADS)
{
    umdInitDesc d = fx_desc();

    if (fx_stepped())
        skip(); /* one thread, the caller's */
    d.faults = "sys.thread.create=fail";
    code_init_fails(run, d, "errno=11");
}

CODE_CASE(UMD_ERR_RES_HANDLES)
{
    struct fx *f = code_up(run);
    static umdContext ctx[300];
    umdStatus st = UMD_SUCCESS;
    int n = 0;

    while (n < 300 && (st = umdContextCreate(f->dev, &ctx[n])) == UMD_SUCCESS)
        n++;
    assert_int_equal(n, 255); /* and the fixture's */
    assert_st(st, run->code);
    fx_assert_figure(run->code, "used=256 limit=256", __FILE__, __LINE__);
    code_saw(run, st);
    while (n)
        assert_ok(umdContextDestroy(ctx[--n]));
}

CODE_CASE(UMD_ERR_RES_FILE)
{
    struct fx *f = code_up(run);
    umdModule m;

    provokes(umdModuleLoadFile(f->ctx, "/nonexistent.pco", &m), "/nonexistent.pco");
    fx_assert_figure(run->code, "errno=2", __FILE__, __LINE__);
}

CODE_CASE(UMD_ERR_RES_QUEUES)
{
    umdInitDesc desc = fx_desc();
    umdStream s = { 42 };
    umdStatus st = UMD_SUCCESS;
    int n = 1; /* the fixture's */

    desc.vram_B = 512u << 20; /* a stream has memory of its own */
    struct fx *f = code_up_with(run, desc);
    while (n < 300 && (st = umdStreamCreate(f->ctx, UMD_STREAM_COMPUTE, 0, &s)) == UMD_SUCCESS)
        n++;
    assert_st(st, run->code);
    assert_int_equal(n, 256);
    fx_assert_figure(run->code, "queues=256 limit=256", __FILE__, __LINE__);
    code_saw(run, st);
    assert_ok(umdStreamDestroy(s)); /* the last one that came to be */
    assert_ok(umdStreamCreate(f->ctx, UMD_STREAM_COPY, 0, &s));
}
