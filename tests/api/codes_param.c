/* SPDX-License-Identifier: MIT */
/* codes_param.c - cases of the success, warning and param codes. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codes.h"

/* ---- Success and statuses: no failure, no record ---- */

CODE_CASE(UMD_SUCCESS)
{
    struct fx *f = code_up(run);
    umdStatus st = umdStreamQuery(f->stream);

    assert_int_equal(st, 0);
    assert_false(umdFailed(st));
    code_saw(run, st);
}

CODE_CASE(UMD_STATUS_NOT_READY)
{
    struct fx *f = code_up(run);
    umdErrorDetail d = { .size_B = sizeof(d) };

    code_long_work(f, f->stream);
    umdStatus st = umdStreamQuery(f->stream);
    assert_false(umdFailed(st));
    code_saw(run, st);
    code_saw(run, umdGetErrorDetailById((umdRecordId){ .boot = 1, .pid = 1, .seq = UINT64_MAX }, &d));
}

CODE_CASE(UMD_STATUS_TIMEOUT_PROGRESS)
{
    struct fx *f = code_up(run);

    code_long_work(f, f->stream);
    umdStatus st = umdStreamSynchronize(f->stream, 100000);
    assert_false(umdFailed(st));
    code_saw(run, st);
}

/* ---- Any call ---- */

CODE_CASE(UMD_ERR_PARAM_NULL)
{
    struct fx *f = code_up(run);

    provokes(umdMemAlloc(f->ctx, 16, 0, 0, NULL), "argument=ptr_out");
}

CODE_CASE(UMD_ERR_PARAM_RANGE)
{
    umdDevice dev = { 42 };

    code_up(run);
    provokes(umdDeviceGet(7, &dev), "argument=index value=7 count=1");
    assert_int_equal(dev.id, 42);
}

CODE_CASE(UMD_ERR_PARAM_FLAGS)
{
    struct fx *f = code_up(run);
    umdDevicePtr p = 42;

    provokes(umdMemAlloc(f->ctx, 16, 0, 4, &p), "value=0x4");
    assert_int_equal(p, 42);
}

CODE_CASE(UMD_ERR_PARAM_STRUCT_SIZE)
{
    struct fx *f = code_up(run);
    umdDeviceInfo info = { .size_B = 8 };

    provokes(umdDeviceGetInfo(f->dev, &info), "size_B=8");
    assert_int_equal(info.size_B, 8);
}

/* ---- Handles ---- */

CODE_CASE(UMD_ERR_HANDLE_INVALID)
{
    code_up(run);
    provokes(umdStreamQuery((umdStream){ 0 }), "wanted=stream");
}

CODE_CASE(UMD_ERR_HANDLE_DESTROYED)
{
    struct fx *f = code_up(run);
    umdEvent e;

    assert_ok(umdEventCreate(f->ctx, &e));
    assert_ok(umdEventDestroy(e));
    provokes(umdEventQuery(e), "type=event");
    fx_assert_figure(run->code, "destroyed_by_tid=", __FILE__, __LINE__);
}

CODE_CASE(UMD_ERR_HANDLE_TYPE)
{
    struct fx *f = code_up(run);

    provokes(umdStreamQuery((umdStream){ f->ctx.id }), "wanted=stream type=context");
}

CODE_CASE(UMD_ERR_HANDLE_CONTEXT)
{
    struct fx *f = code_up(run);
    umdContext other;
    umdEvent e;

    assert_ok(umdContextCreate(f->dev, &other));
    assert_ok(umdEventCreate(other, &e));
    provokes(umdEventRecord(e, f->stream), "argument=event");
    fx_assert_figure(run->code, "stream_context=", __FILE__, __LINE__);
    assert_ok(umdContextDestroy(other));
}

/* ---- Memory ---- */

CODE_CASE(UMD_ERR_MEM_SIZE)
{
    struct fx *f = code_up(run);
    umdDevicePtr p = 42;

    provokes(umdMemAlloc(f->ctx, 0, 0, 0, &p), "size_B=0");
    provokes(umdMemAlloc(f->ctx, (64u << 20) + 1, 0, 0, &p), "limit_B=67108864");
    assert_int_equal(fx_detail().advice.largest_fit_B, 64u << 20);
    assert_int_equal(p, 42);
}

CODE_CASE(UMD_ERR_MEM_ALIGNMENT)
{
    struct fx *f = code_up(run);
    umdDevicePtr p;

    provokes(umdMemAlloc(f->ctx, 16, 3, 0, &p), "alignment_B=3 max_B=2097152");
}

CODE_CASE(UMD_ERR_MEM_POINTER)
{
    struct fx *f = code_up(run);
    umdDevicePtr p = fx_alloc(f, 256);

    provokes(umdMemFree(f->ctx, p + 4), "inside=0x");
    assert_ok(umdMemFree(f->ctx, p));
}

CODE_CASE(UMD_ERR_MEM_DOUBLE_FREE)
{
    struct fx *f = code_up(run);
    umdDevicePtr p = fx_alloc(f, 256);

    assert_ok(umdMemFree(f->ctx, p));
    provokes(umdMemFree(f->ctx, p), "freed_by_tid=");
}

CODE_CASE(UMD_ERR_COPY_RANGE)
{
    struct fx *f = code_up(run);
    umdDevicePtr p = fx_alloc(f, 256);
    uint8_t host[128] = { 0 };

    provokes(umdMemcpyHtoD(f->stream, p + 200, host, 100), "fits_B=56");
    assert_ok(umdMemFree(f->ctx, p));
}

/* ---- Launches ---- */

static umdLaunchDesc good_launch(const struct fx_args *args)
{
    return (umdLaunchDesc){ .size_B = sizeof(umdLaunchDesc), .grid = { 1, 1, 1 }, .block = { 32, 1, 1 }, .args = args, .args_B = sizeof(*args) };
}

CODE_CASE(UMD_ERR_LAUNCH_DIMENSIONS)
{
    struct fx *f = code_up(run);
    struct fx_args a = { 0 };
    umdLaunchDesc d = good_launch(&a);

    d.block[1] = 0;
    provokes(umdLaunchKernel(f->stream, fx_kernel(f, "axpy"), &d), "work_items=0");
    d = good_launch(&a);
    d.block[0] = 129;
    provokes(umdLaunchKernel(f->stream, fx_kernel(f, "group_sum"), &d), "max_block=128");
}

CODE_CASE(UMD_ERR_LAUNCH_ARGUMENTS)
{
    struct fx *f = code_up(run);
    struct fx_args a = { 0 };
    umdLaunchDesc d = good_launch(&a);

    d.args_B = 8;
    provokes(umdLaunchKernel(f->stream, fx_kernel(f, "axpy"), &d), "args_B=8 expected_B=24");
}

CODE_CASE(UMD_ERR_LAUNCH_RESOURCES)
{
    struct fx *f = code_up(run);
    struct fx_args a = { 0 };
    umdLaunchDesc d = good_launch(&a);

    d.local_B = 1u << 30;
    provokes(umdLaunchKernel(f->stream, fx_kernel(f, "axpy"), &d), "local_B=1073741824");
}

/* ---- Settings ---- */

CODE_CASE(UMD_ERR_FAULT_SPEC)
{
    umdInitDesc d = fx_desc();

    d.faults = "hw.cu.hng=fire";
    code_init_fails(run, d, "suggestion=hw.cu.hang");
}

CODE_CASE(UMD_ERR_CONFIG_VALUE)
{
    umdInitDesc d = fx_desc();

    d.carrier = "pigeon";
    code_init_fails(run, d, "pigeon");
    d = fx_desc();
    d.device_count = 9;
    code_init_fails(run, d, "max=8");
}

/* ---- Modules ---- */

CODE_CASE(UMD_ERR_MODULE_FORMAT)
{
    struct fx *f = code_up(run);
    umdModule m = { 42 };

    provokes(umdModuleLoad(f->ctx, "x", 1, &m), "reason=");
    assert_int_equal(m.id, 42);
}

CODE_CASE(UMD_ERR_MODULE_ISA)
{
    struct fx *f = code_up(run);
    umdModule m;

    provokes(umdModuleLoadFile(f->ctx, "/proc/self/exe", &m), "machine=");
}

CODE_CASE(UMD_ERR_MODULE_SYMBOL)
{
    struct fx *f = code_up(run);
    umdKernel k;

    provokes(umdModuleGetKernel(f->mod, "axpz", &k), "nearest=axpy");
}
