/* SPDX-License-Identifier: MIT */
/* codes_hw.c - cases of the hw codes: what jobs fail with, what the driver recovers from, and losses of the device. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "codes.h"

/* ---- Jobs that the device stopped ---- */

struct stopped {
    const char *kernel;      /* of the API tests; NULL: own */
    const char *own;         /* of the kernels of these cases */
    const char *faults;
    uint32_t a;
    bool wild;               /* dst is an address that nothing is mapped at */
    const char *figure, *second;
};

/* The job's code comes from the wait, fails the context, and the record has kernel and place. */
static void stops(struct code_run *run, const struct stopped *x)
{
    struct fx *f = code_up(run);
    umdDevicePtr p = fx_alloc(f, 4096);
    umdKernel k = x->own ? code_kernel(f, x->own) : fx_kernel(f, x->kernel);
    char name[48];

    assert_ok(umd_fault_plan_set(x->faults));
    assert_ok(fx_launch(f->stream, k, &(struct fx_args){ x->wild ? 0x7f0000000 : p, p, x->a, 32 }, 1));
    provokes(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE), x->figure);
    snprintf(name, sizeof(name), "kernel=%s", x->own ? x->own : x->kernel);
    fx_assert_figure(run->code, name, __FILE__, __LINE__);
    fx_assert_figure(run->code, x->second, __FILE__, __LINE__);
    umdErrorDetail d = fx_detail();
    assert_int_equal(d.advice.action, UMD_ACTION_REBUILD_CONTEXT);
    assert_true(d.advice.sticky && d.advice.scope == UMD_SCOPE_CONTEXT);
    assert_true(d.context_id != 0 && d.hop_count >= 1);
    assert_st(umdContextGetStatus(f->ctx), run->code);
}

CODE_CASE(UMD_ERR_HW_HANG)
{
    stops(run, &(struct stopped){ .kernel = "axpy", .faults = "hw.cu.hang=1*fire", .a = 1, .figure = "instr_since_progress=", .second = "elapsed_ns=" });
}

CODE_CASE(UMD_ERR_HW_SPIN)
{
    stops(run, &(struct stopped){ .kernel = "spin", .a = 1, .figure = "source=api_kernels.c:", .second = "elapsed_ns=" });
}

CODE_CASE(UMD_ERR_HW_PAGE_FAULT)
{
    stops(run, &(struct stopped){ .kernel = "poke", .a = 1, .wild = true, .figure = "va=0x7f0000000 access=write", .second = "nearest_va=" });
}

CODE_CASE(UMD_ERR_HW_ACCESS_FAULT)
{
    stops(run, &(struct stopped){ .own = "scribble", .a = 0, .figure = "access=write", .second = "source=code_kernels.c:" });
}

CODE_CASE(UMD_ERR_HW_ILLEGAL_INSTRUCTION)
{
    stops(run, &(struct stopped){ .kernel = "axpy", .faults = "hw.cu.illegal=1*fire", .a = 1, .figure = "data=0xffffffff", .second = "pc=0x" });
}

CODE_CASE(UMD_ERR_HW_TRAP)
{
    stops(run, &(struct stopped){ .kernel = "trap", .a = 77, .figure = "data=0x4d", .second = "trap=petrel_trap" });
}

/* The model's own want is nobody's packet and no kernel's mistake. */
CODE_CASE(UMD_ERR_HW_HOST_MEMORY)
{
    struct fx *f = code_up(run);
    umdDevicePtr p = fx_alloc(f, 4096);

    assert_ok(umd_fault_plan_set("hw.cu.memory=1*fail"));
    assert_ok(fx_launch(f->stream, fx_kernel(f, "axpy"), &(struct fx_args){ p, p, 1, 32 }, 1));
    provokes(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE), "fault=host_memory");
    umdErrorDetail d = fx_detail();
    assert_true(fx_caused_by(&d, UMD_ERR_MEM_HOST_ALLOC_FAILED));
    assert_ok(umd_fault_plan_set(NULL));
}

CODE_CASE(UMD_ERR_HW_MISALIGNED)
{
    stops(run, &(struct stopped){ .own = "odd_atomic", .a = 1, .figure = "fault=misaligned", .second = "access=atomic" });
}

CODE_CASE(UMD_ERR_HW_STACK_OVERFLOW)
{
    stops(run, &(struct stopped){ .kernel = "deep", .a = 100000, .figure = "private_B=", .second = "function=dive" });
}

/* ---- What is only told: no call returns it ---- */

CODE_CASE(UMD_ERR_HW_IRQ_LOST)
{
    struct fx *f = code_up(run);
    struct code_told told = { .want = run->code };
    umdDevicePtr p = fx_alloc(f, 4096);
    uint32_t back = 0;

    assert_ok(umdContextSetErrorCallback(f->ctx, code_on_error, &told));
    /* Threaded all of them: the next one, a timer's say, would tell what a lost one did not. */
    assert_ok(umd_fault_plan_set(fx_stepped() ? "hw.irq.lost=1*fire" : "hw.irq.lost=fire"));
    assert_ok(umdMemset(f->stream, p, 5, 4, 4096));
    umdStatus st = umdMemcpyDtoH(f->stream, &back, p, 4); /* the next interrupt tells that there was one before it */
    assert_true(st == UMD_SUCCESS || st == UMD_ERR_WAIT_SIGNAL_LOST);
    code_await_told(f, &told);
    assert_ok(umd_fault_plan_set(NULL));
    assert_non_null(strstr(told.detail.figures, "late_ns="));
    assert_int_equal(told.detail.advice.severity, UMD_SEVERITY_WARN);
    code_saw(run, (umdStatus)told.detail.code);
    assert_ok(umdMemcpyDtoH(f->stream, &back, p, 4));
    assert_int_equal(back, 5); /* the work was done all the same */
    assert_ok(umdContextGetStatus(f->ctx));
    assert_ok(umdContextSetErrorCallback(f->ctx, NULL, NULL));
}

/* What found no room told of finished work, and once of a fault: both are found without it. */
CODE_CASE(UMD_ERR_HW_IRQ_OVERFLOW)
{
    struct code_told told = { .want = run->code };
    struct fx *f = code_up(run);
    umdDevicePtr p = fx_alloc(f, 4096);
    uint32_t back = 0;

    assert_ok(umdContextSetErrorCallback(f->ctx, code_on_error, &told));
    assert_ok(umd_fault_plan_set("hw.irq.overflow=1*fire"));
    assert_ok(umdMemset(f->stream, p, 5, 4, 4));
    assert_ok(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE));
    code_await_told(f, &told);
    assert_non_null(strstr(told.detail.figures, "overflow_count=1"));
    assert_int_equal(told.detail.advice.severity, UMD_SEVERITY_WARN);
    code_saw(run, (umdStatus)told.detail.code);
    assert_ok(umdMemcpyDtoH(f->stream, &back, p, 4));
    assert_int_equal(back, 5);
    assert_ok(umd_fault_plan_set("hw.irq.overflow=fire;hw.cu.illegal=1*fire"));
    assert_ok(fx_launch(f->stream, fx_kernel(f, "axpy"), &(struct fx_args){ p, p, 1, 32 }, 1));
    assert_fails(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE), UMD_ERR_HW_ILLEGAL_INSTRUCTION, "kernel=axpy");
    assert_ok(umd_fault_plan_set(NULL));
    assert_ok(umdContextSetErrorCallback(f->ctx, NULL, NULL));
}

/* A callback that holds the thread up which reads the driver's events. */
struct slow_told {
    struct code_told told;
    _Atomic(bool) hold, held;
};

static void on_error_slowly(umdContext context, const umdErrorDetail *detail, void *user)
{
    struct slow_told *s = user;

    code_on_error(context, detail, &s->told);
    atomic_store(&s->held, true);
    while (!fx_stepped() && atomic_load(&s->hold))
        usleep(100);
}

static void many_warnings(umdStream stream, umdDevicePtr p)
{
    for (int i = 0; i < 60; i++)
        assert_ok(umdMemset(stream, p, 1, 4, 4096));
    if (!fx_stepped())
        assert_ok(umdStreamSynchronize(stream, UMD_TIMEOUT_INFINITE));
}

/* Threaded: the callback is held up until more came than the driver keeps. Stepped: they come within one call, the wait for the second stream. */
CODE_CASE(UMD_ERR_HW_EVENTS_DROPPED)
{
    struct slow_told slow = { .told.want = run->code, .hold = true };
    struct fx *f = code_up(run);
    umdDevicePtr p = fx_alloc(f, 4096);
    umdStream beside;

    assert_ok(umdStreamCreate(f->ctx, UMD_STREAM_COMPUTE, 0, &beside));
    assert_ok(umdContextSetErrorCallback(f->ctx, on_error_slowly, &slow));
    assert_ok(umd_fault_plan_set(fx_stepped() ? "hw.irq.lost[interval=2]=fire" : "hw.irq.lost=fire"));
    many_warnings(beside, p);
    while (!fx_stepped() && !atomic_load(&slow.held))
        usleep(100);
    many_warnings(f->stream, p); /* what was read in one go with the first made room */
    if (fx_stepped())
        assert_ok(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE));
    else
        assert_ok(umd_fault_plan_set(NULL));
    atomic_store(&slow.hold, false);
    code_await_told(f, &slow.told);
    assert_non_null(strstr(slow.told.detail.figures, "dropped="));
    assert_int_equal(slow.told.detail.advice.severity, UMD_SEVERITY_WARN);
    assert_ok(umd_fault_plan_set(NULL));
    code_saw(run, (umdStatus)slow.told.detail.code);
    assert_ok(umdContextGetStatus(f->ctx));
    assert_ok(umdContextSetErrorCallback(f->ctx, NULL, NULL));
}

/* A fill over the link: it takes the device long, and the host not. */
CODE_CASE(UMD_ERR_HW_LONG_RUNNING)
{
    umdInitDesc desc = fx_desc();
    struct code_told told = { .want = run->code };
    umdDevicePtr big;

    desc.watchdog_ns = 1000000;
    struct fx *f = code_up_with(run, desc);
    assert_ok(umdMemAlloc(f->ctx, 128u << 20, 0, UMD_MEM_SYSTEM, &big));
    assert_ok(umdContextSetErrorCallback(f->ctx, code_on_error, &told));
    assert_ok(umdMemset(f->stream, big, 1, 4, 128u << 20));
    code_await_told(f, &told);
    assert_non_null(strstr(told.detail.figures, "threshold_ns=1000000"));
    assert_null(strstr(told.detail.figures, "progress=0 "));
    code_saw(run, (umdStatus)told.detail.code);
    assert_ok(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE)); /* long is not stuck */
    assert_ok(umdContextSetErrorCallback(f->ctx, NULL, NULL));
}

/* ---- Losses: each later call says the same, and destroying works ---- */

static void lost(struct code_run *run, struct fx *f, const char *figure)
{
    umdDeviceInfo info = { .size_B = sizeof(info) };
    umdDevicePtr q;

    provokes(umdMemAlloc(f->ctx, 4096, 0, 0, &q), figure);
    umdErrorDetail first = fx_detail();
    provokes(umdStreamQuery(f->stream), figure);
    assert_int_equal(fx_detail().id.seq, first.id.seq); /* the same cause */
    assert_int_equal(first.advice.action, UMD_ACTION_RESET_DEVICE);
    assert_true(first.advice.sticky && first.advice.scope == UMD_SCOPE_DEVICE);
    assert_ok(umdDeviceGetInfo(f->dev, &info));
    assert_int_equal(info.lost_code, run->code);
}

CODE_CASE(UMD_ERR_DEV_LOST_OFF_BUS)
{
    struct fx *f = code_up(run);
    umdDevicePtr p = fx_alloc(f, 4096);

    assert_ok(umd_fault_plan_set("hw.bus.off=1*fire"));
    umdStatus st = umdMemset(f->stream, p, 1, 4, 4096);
    if (st == UMD_SUCCESS)
        st = umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE);
    assert_st(st, run->code);
    lost(run, f, "read=0xffffffff");
}

static void await_loss(struct fx *f, umdStatus first)
{
    for (int i = 0; i < 20000 && umdContextGetStatus(f->ctx) == first; i++) /* the resets take their time */
        usleep(fx_stepped() ? 0 : 1000);
}

CODE_CASE(UMD_ERR_DEV_LOST_RESET_FAILED)
{
    struct fx *f = code_up(run);
    umdDevicePtr p = fx_alloc(f, 4096);

    assert_ok(umd_fault_plan_set("hw.cu.hang=fire;hw.reset.fail=fire"));
    assert_ok(fx_launch(f->stream, fx_kernel(f, "axpy"), &(struct fx_args){ p, p, 1, 32 }, 1));
    assert_st(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE), UMD_ERR_HW_HANG);
    await_loss(f, UMD_ERR_HW_HANG);
    lost(run, f, "reset_reg=");
    umdErrorDetail d = fx_detail();
    assert_true(fx_caused_by(&d, UMD_ERR_HW_HANG));
}

CODE_CASE(UMD_ERR_DEV_LOST_TOO_MANY_RESETS)
{
    struct fx *f = code_up(run);
    umdDevicePtr p = fx_alloc(f, 4096);

    assert_ok(umd_fault_plan_set("hw.cp.hang=fire"));
    umdStatus st = umdMemset(f->stream, p, 1, 4, 4096);
    if (st == UMD_SUCCESS)
        st = umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE);
    assert_st(st, run->code);
    lost(run, f, "resets=8 max=8");
}
