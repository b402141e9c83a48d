/* SPDX-License-Identifier: MIT */
/* test_api_errors.c - failed jobs, banned contexts, lost devices: code, record, callback, and what each later call says. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault_plan.h"
#include "fixtures.h"

struct told {
    _Atomic(int) count;
    umdErrorDetail detail;
    umdContext context;
    umdStatus status_inside, destroy_inside, shutdown_inside;
};

static void on_error(umdContext context, const umdErrorDetail *detail, void *user)
{
    struct told *t = user;

    if (!atomic_load(&t->count)) {
        t->detail = *detail;
        t->context = context;
        t->status_inside = umdContextGetStatus(context);
        t->destroy_inside = umdContextDestroy(context);
        t->shutdown_inside = umdShutdown();
    }
    atomic_fetch_add(&t->count, 1);
}

static void await_told(struct told *t)
{
    for (int i = 0; i < 2000 && !atomic_load(&t->count); i++)
        usleep(1000);
    assert_true(atomic_load(&t->count) > 0);
}

struct failure {
    const char *name;     /* of the kernel */
    const char *faults;
    uint32_t a;
    bool wild;            /* dst is an address that nothing is mapped at */
    umdStatus code;
    const char *figure;   /* in the record */
    bool line;            /* the record names a source line */
};

static const struct failure failures[] = {
    { "poke", NULL, 1, true, UMD_ERR_HW_PAGE_FAULT, "kernel=poke", true },
    { "trap", NULL, 77, false, UMD_ERR_HW_TRAP, "kernel=trap", true },
    { "bad_barrier", NULL, 1, false, UMD_ERR_HW_TRAP, "trap=barrier_cannot_be_met", true },
    { "deep", NULL, 100000, false, UMD_ERR_HW_STACK_OVERFLOW, "private_B=", true },
    { "deep", NULL, 200, false, UMD_ERR_HW_STACK_OVERFLOW, "kernel=deep", true },
    { "beyond", NULL, 100, false, UMD_ERR_HW_PAGE_FAULT, "aperture=local local_B=256", true },
    { "unreachable", NULL, 1, false, UMD_ERR_HW_ILLEGAL_INSTRUCTION, "compiler_trap=1", true },
    { "spin", NULL, 1, false, UMD_ERR_HW_SPIN, "kernel=spin", true },
    { "axpy", "hw.cu.hang=1*fire", 1, false, UMD_ERR_HW_HANG, "kernel=axpy", false },
    { "axpy", "hw.cu.wild_access=1*fire", 1, false, UMD_ERR_HW_PAGE_FAULT, "kernel=axpy", true },
    { "axpy", "hw.cu.illegal=1*fire", 1, false, UMD_ERR_HW_ILLEGAL_INSTRUCTION, "data=0xffffffff", true },
};

/* The job fails: the next synchronisation says how, the callback too; after that the context is banned and a fresh one works. */
static void one_failure(struct fx *f, const struct failure *x)
{
    struct told told = { 0 };
    umdContext ctx;
    umdModule mod;
    umdStream s, s2;
    umdKernel k;
    umdDevicePtr p, q;
    umdErrorDetail d;

    print_message("    %s under %s\n", x->name, x->faults ? x->faults : "no fault");
    assert_ok(umdContextCreate(f->dev, &ctx));
    assert_ok(umdModuleLoadFile(ctx, fx_kernel_path(), &mod));
    assert_ok(umdModuleGetKernel(mod, x->name, &k));
    assert_ok(umdStreamCreate(ctx, UMD_STREAM_COMPUTE, 0, &s));
    assert_ok(umdStreamCreate(ctx, UMD_STREAM_COMPUTE, 0, &s2));
    assert_ok(umdMemAlloc(ctx, 4096, 0, 0, &p));
    assert_ok(umdContextSetErrorCallback(ctx, on_error, &told));
    assert_ok(umd_fault_plan_set(x->faults));
    assert_ok(fx_launch(s, k, &(struct fx_args){ x->wild ? 0x7f0000000 : p, p, x->a, 32 }, 1));
    assert_st(umdStreamSynchronize(s, UMD_TIMEOUT_INFINITE), x->code);
    d = fx_detail();
    assert_int_equal(d.code, x->code);
    fx_assert_figure(x->code, x->figure, __FILE__, __LINE__);
    fx_assert_figure(x->code, "launch=1", __FILE__, __LINE__);
    fx_assert_figure(x->code, "done=", __FILE__, __LINE__);
    if (strstr(x->figure, "barrier"))
        fx_assert_figure(x->code, "other_source=api_kernels.c:", __FILE__, __LINE__);
    if (x->line)
        fx_assert_figure(x->code, "source=api_kernels.c:", __FILE__, __LINE__);
    assert_ok(umd_fault_plan_set(NULL));
    await_told(&told);
    assert_int_equal(told.detail.code, x->code);
    assert_int_equal(told.context.id, ctx.id);
    assert_int_equal(told.status_inside, x->code);
    assert_int_equal(told.destroy_inside, UMD_ERR_CTX_BUSY);
    assert_int_equal(told.shutdown_inside, UMD_ERR_CTX_BUSY);
    assert_st(umdContextGetStatus(ctx), x->code);
    assert_st(umdMemAlloc(ctx, 4096, 0, 0, &q), UMD_ERR_CTX_BANNED);
    d = fx_detail();
    assert_true(fx_caused_by(&d, x->code));
    assert_st(umdStreamSynchronize(s2, 0), UMD_ERR_CTX_BANNED);
    assert_st(fx_launch(s2, k, &(struct fx_args){ p, p, 1, 32 }, 1), UMD_ERR_CTX_BANNED);
    assert_ok(umdMemFree(ctx, p));
    assert_ok(umdStreamDestroy(s2));
    assert_ok(umdModuleUnload(mod));
    assert_ok(umdContextSetErrorCallback(ctx, NULL, NULL));
    assert_ok(umdContextDestroy(ctx));
}

static void check_failures(struct fx *f, size_t first, size_t end)
{
    umdDevicePtr p = fx_alloc(f, 4096);
    uint32_t back = 0;

    for (size_t i = first; i < end; i++)
        one_failure(f, &failures[i]);
    /* Another context has not noticed. */
    assert_ok(umdMemset(f->stream, p, 9, 4, 4096));
    assert_ok(fx_launch(f->stream, fx_kernel(f, "axpy"), &(struct fx_args){ p, p, 1, 32 }, 1));
    assert_ok(umdMemcpyDtoH(f->stream, &back, p, 4));
    assert_int_equal(back, 18);
    assert_ok(umdContextGetStatus(f->ctx));
    assert_ok(umdMemFree(f->ctx, p));
}

/* In two parts with a device each: more than eight resets are its end. */
enum { FAILURES = sizeof(failures) / sizeof(failures[0]) };

static void kernels_fail(void **state)
{
    check_failures(*state, 0, FAILURES - 3);
}

static void faults_fail(void **state)
{
    check_failures(*state, FAILURES - 3, FAILURES);
}

/* Without a wait, the next call says it (B11, D7). */
static void next_call_tells(void **state)
{
    struct fx *f = *state;
    struct told told = { 0 };
    umdDevicePtr p = fx_alloc(f, 4096), q;

    assert_ok(umdContextSetErrorCallback(f->ctx, on_error, &told));
    assert_ok(fx_launch(f->stream, fx_kernel(f, "poke"), &(struct fx_args){ 0x7f0000000, p, 1, 32 }, 1));
    umdStatus st = UMD_STATUS_NOT_READY;
    for (int i = 0; i < 2000 && !atomic_load(&told.count); i++) {
        st = umdStreamQuery(f->stream);
        if (st != UMD_STATUS_NOT_READY)
            break;
        usleep(fx_stepped() ? 0 : 1000);
    }
    if (st == UMD_STATUS_NOT_READY) {
        await_told(&told);
        st = umdMemAlloc(f->ctx, 4096, 0, 0, &q);
    }
    assert_int_equal(st, UMD_ERR_HW_PAGE_FAULT);
    assert_int_equal(fx_detail().code, UMD_ERR_HW_PAGE_FAULT);
    assert_ok(umdContextSetErrorCallback(f->ctx, NULL, NULL)); /* told is about to go */
}

/* A program that only launches meets the failure at a launch: with the job's code, whoever was first to hear of it. */
static void launches_tell(void **state)
{
    struct fx *f = *state;
    umdDevicePtr p = fx_alloc(f, 4096);
    umdKernel axpy = fx_kernel(f, "axpy");
    umdStatus st = fx_launch(f->stream, fx_kernel(f, "poke"), &(struct fx_args){ 0x7f0000000, p, 1, 32 }, 1);

    for (int i = 0; i < 100000 && st == UMD_SUCCESS; i++)
        st = fx_launch(f->stream, axpy, &(struct fx_args){ p, p, 1, 32 }, 1);
    assert_st(st, UMD_ERR_HW_PAGE_FAULT);
    fx_assert_figure(UMD_ERR_HW_PAGE_FAULT, "kernel=poke", __FILE__, __LINE__);
    assert_st(fx_launch(f->stream, axpy, &(struct fx_args){ p, p, 1, 32 }, 1), UMD_ERR_CTX_BANNED);
}

static void device_lost(void **state)
{
    struct fx *f = *state;
    struct told told = { 0 };
    umdDeviceInfo info = { .size_B = sizeof(info) };
    umdDevicePtr p = fx_alloc(f, 4096), q;
    umdKernel k = fx_kernel(f, "axpy");

    assert_ok(umdContextSetErrorCallback(f->ctx, on_error, &told));
    assert_ok(umd_fault_plan_set("hw.bus.off=1*fire"));
    umdStatus st = fx_launch(f->stream, k, &(struct fx_args){ p, p, 1, 32 }, 1);
    if (st == UMD_SUCCESS)
        st = umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE);
    assert_int_equal(st, UMD_ERR_DEV_LOST_OFF_BUS);
    umdErrorDetail first = fx_detail();
    await_told(&told);
    assert_int_equal(told.detail.code, UMD_ERR_DEV_LOST_OFF_BUS);
    assert_st(umdMemAlloc(f->ctx, 4096, 0, 0, &q), UMD_ERR_DEV_LOST_OFF_BUS);
    assert_int_equal(fx_detail().id.seq, first.id.seq); /* the same cause */
    /* What each other call does: test_api_lost.c */
    assert_ok(umdDeviceGetInfo(f->dev, &info));
    assert_int_equal(info.lost_code, UMD_ERR_DEV_LOST_OFF_BUS);
    assert_true(info.vram_size_B > 0);
    assert_ok(umdMemFree(f->ctx, p)); /* destroy calls free and succeed (B7) */
    assert_ok(umdModuleUnload(f->mod));
    assert_ok(umdContextSetErrorCallback(f->ctx, NULL, NULL));
}

/* A lost interrupt is recovered from, and told by the callback. */
static void interrupt_lost(void **state)
{
    struct fx *f = *state;
    struct told told = { 0 };
    umdDevicePtr p = fx_alloc(f, 4096);
    uint32_t back = 0;

    assert_ok(umdContextSetErrorCallback(f->ctx, on_error, &told));
    /* Threaded all of them: the next one, a timer's say, would tell what a lost one did not. */
    assert_ok(umd_fault_plan_set(fx_stepped() ? "hw.irq.lost=1*fire" : "hw.irq.lost=fire"));
    assert_ok(umdMemset(f->stream, p, 5, 4, 4096));
    umdStatus st = umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE);
    assert_true(st == UMD_SUCCESS || st == UMD_ERR_WAIT_SIGNAL_LOST);
    assert_ok(umdMemcpyDtoH(f->stream, &back, p, 4));
    assert_int_equal(back, 5);
    assert_ok(umdContextGetStatus(f->ctx)); /* stepped mode: events are heard inside calls */
    await_told(&told);
    assert_ok(umd_fault_plan_set(NULL));
    assert_int_equal(told.detail.code, UMD_ERR_HW_IRQ_LOST);
    assert_ok(umdContextGetStatus(f->ctx));
    assert_ok(umdContextSetErrorCallback(f->ctx, NULL, NULL));
    assert_ok(umdMemFree(f->ctx, p));
}

struct waiter { umdStream stream; umdStatus st; };

static void *wait_main(void *arg)
{
    struct waiter *w = arg;
    w->st = umdStreamSynchronize(w->stream, UMD_TIMEOUT_INFINITE);
    return NULL;
}

/* A wait on a context that another thread destroys ends, with its own code. */
static void destroy_wakes(void **state)
{
    struct fx *f = *state;
    struct waiter w = { 0 };
    umdContext ctx;
    umdModule mod;
    umdKernel k;
    umdDevicePtr p;
    pthread_t t;

    if (fx_stepped())
        skip(); /* one host thread by definition */
    assert_ok(umdContextCreate(f->dev, &ctx));
    assert_ok(umdModuleLoadFile(ctx, fx_kernel_path(), &mod));
    assert_ok(umdModuleGetKernel(mod, "slow", &k));
    assert_ok(umdStreamCreate(ctx, UMD_STREAM_COMPUTE, 0, &w.stream));
    assert_ok(umdMemAlloc(ctx, 4096, 0, 0, &p));
    assert_ok(fx_launch(w.stream, k, &(struct fx_args){ p, 0, 100000, 1024 }, 20000));
    assert_int_equal(pthread_create(&t, NULL, wait_main, &w), 0);
    usleep(50000);
    assert_ok(umdContextDestroy(ctx));
    pthread_join(t, NULL);
    assert_true(w.st == UMD_ERR_WAIT_INTERRUPTED || w.st == UMD_ERR_CTX_DESTROYED || w.st == UMD_ERR_HANDLE_DESTROYED);
    assert_ok(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE));
}

/* Every allocation of a set-up fails in turn: the call says so, nothing leaks, and the next try works. */
static void allocations_fail_in_turn(void **state)
{
    struct fx *f = *state;
    umdDeviceInfo before = { .size_B = sizeof(before) }, after = { .size_B = sizeof(after) };
    char spec[64];
    int n;

    assert_ok(umdDeviceGetInfo(f->dev, &before));
    for (n = 1; n < 200; n++) {
        umdContext ctx = { 0 };
        umdModule mod;
        umdStream s;
        umdEvent e;
        umdDevicePtr p;
        snprintf(spec, sizeof(spec), "sys.alloc[nth=%d]=fail", n);
        assert_ok(umd_fault_plan_set(spec));
        umdStatus st = umdContextCreate(f->dev, &ctx);
        if (st == UMD_SUCCESS)
            st = umdModuleLoadFile(ctx, fx_kernel_path(), &mod);
        if (st == UMD_SUCCESS)
            st = umdStreamCreate(ctx, UMD_STREAM_COMPUTE, 0, &s);
        if (st == UMD_SUCCESS)
            st = umdEventCreate(ctx, &e);
        if (st == UMD_SUCCESS)
            st = umdMemAlloc(ctx, 4096, 0, 0, &p);
        bool fired = umd_fault_fired(UMD_FAULT_SYS_ALLOC) > 0;
        assert_ok(umd_fault_plan_set(NULL));
        if (ctx.id)
            assert_ok(umdContextDestroy(ctx));
        if (st != UMD_SUCCESS && st != UMD_ERR_MEM_HOST_ALLOC_FAILED) {
            print_error("allocation %d: %s\n", n, umdStatusName(st));
            fail();
        }
        assert_ok(umdDeviceGetInfo(f->dev, &after));
        assert_int_equal(before.vram_free_B, after.vram_free_B);
        if (!fired)
            break;
    }
    assert_true(n > 5 && n < 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(kernels_fail, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(faults_fail, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(next_call_tells, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(launches_tell, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(device_lost, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(interrupt_lost, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(destroy_wakes, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(allocations_fail_in_turn, fx_setup, fx_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
