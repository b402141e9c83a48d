/* SPDX-License-Identifier: MIT */
/* test_api_work.c - modules, launches, copies, streams, events: results against the host, and each wrong argument's own code. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault_plan.h"
#include "fixtures.h"

static void module_arguments(void **state)
{
    struct fx *f = *state;
    umdModule m = { 42 };
    umdKernel k = { 42 };

    assert_st(umdModuleLoad(f->ctx, NULL, 10, &m), UMD_ERR_PARAM_NULL);
    assert_st(umdModuleLoad(f->ctx, "x", 1, NULL), UMD_ERR_PARAM_NULL);
    assert_fails(umdModuleLoad(f->ctx, "x", 1, &m), UMD_ERR_MODULE_FORMAT, "no ELF file");
    assert_st(umdModuleLoad(f->ctx, "x", 0, &m), UMD_ERR_MODULE_FORMAT);
    assert_fails(umdModuleLoadFile(f->ctx, "/nonexistent.pco", &m), UMD_ERR_RES_FILE, "path=\"/nonexistent.pco\"");
    assert_fails(umdModuleLoadFile(f->ctx, "/", &m), UMD_ERR_RES_FILE, "EISDIR");
    assert_ok(umd_fault_plan_set("sys.open=fail(EMFILE)"));
    assert_fails(umdModuleLoadFile(f->ctx, fx_kernel_path(), &m), UMD_ERR_RES_DESCRIPTORS, "operation=open errno=24");
    assert_ok(umd_fault_plan_set("sys.open=fail(EACCES)"));
    assert_fails(umdModuleLoadFile(f->ctx, fx_kernel_path(), &m), UMD_ERR_RES_FILE, "operation=open errno=13");
    assert_ok(umd_fault_plan_set(NULL));
    assert_fails(umdModuleLoadFile(f->ctx, "/proc/self/exe", &m), UMD_ERR_MODULE_ISA, "machine=");
    assert_st(umdModuleLoadFile(f->ctx, NULL, &m), UMD_ERR_PARAM_NULL);
    assert_int_equal(m.id, 42);
    assert_fails(umdModuleGetKernel(f->mod, "axpz", &k), UMD_ERR_MODULE_SYMBOL, "kernel=\"axpz\"");
    assert_fails(umdModuleGetKernel(f->mod, "axpz", &k), UMD_ERR_MODULE_SYMBOL, "nearest=axpy");
    assert_fails(umdModuleGetKernel(f->mod, "grp_sum", &k), UMD_ERR_MODULE_SYMBOL, "nearest=group_sum");
    assert_st(umdModuleGetKernel(f->mod, NULL, &k), UMD_ERR_PARAM_NULL);
    assert_st(umdModuleGetKernel(f->mod, "axpy", NULL), UMD_ERR_PARAM_NULL);
    assert_int_equal(k.id, 42);
    assert_ok(umdModuleLoadFile(f->ctx, fx_kernel_path(), &m));
    assert_ok(umdModuleGetKernel(m, "axpy", &k));
    assert_ok(umdModuleUnload(m));
    assert_fails(umdModuleUnload(m), UMD_ERR_HANDLE_DESTROYED, "type=module");
    struct fx_args a = { 0 };
    assert_fails(fx_launch(f->stream, k, &a, 1), UMD_ERR_HANDLE_DESTROYED, "type=kernel");
}

/* Truncated anywhere, or with a bit flipped: a code of its own, or a module that loads; never a crash. */
static void module_corruption(void **state)
{
    struct fx *f = *state;
    size_t n;
    uint8_t *image = fx_read_file(fx_kernel_path(), &n), *copy = malloc(n);
    umdModule m;
    uint32_t seed = 7, loaded = 0;

    assert_non_null(copy);
    for (size_t cut = 0; cut < n; cut += n > 65536 ? n / 256 / 64 * 64 + 64 : 64)
        assert_int_equal(umdModuleLoad(f->ctx, image, cut, &m), UMD_ERR_MODULE_FORMAT);
    for (int i = 0; i < 400; i++) {
        memcpy(copy, image, n);
        seed = seed * 1664525u + 1013904223u;
        size_t at = i < 200 ? seed % 512 : seed % n; /* half of them in the headers */
        copy[at] ^= (uint8_t)(1u << (seed >> 29));
        umdStatus st = umdModuleLoad(f->ctx, copy, n, &m);
        assert_true(st == UMD_SUCCESS || st == UMD_ERR_MODULE_FORMAT || st == UMD_ERR_MODULE_ISA);
        if (st == UMD_SUCCESS) {
            assert_ok(umdModuleUnload(m));
            loaded++;
        }
    }
    assert_true(loaded < 400);
    memcpy(copy, image, n);
    copy[18] = 62; /* e_machine: x86-64 */
    assert_fails(umdModuleLoad(f->ctx, copy, n, &m), UMD_ERR_MODULE_ISA, "machine=62");
    copy[18] = 243;
    copy[4] = 1; /* 32 bits */
    assert_fails(umdModuleLoad(f->ctx, copy, n, &m), UMD_ERR_MODULE_FORMAT, "class=1");
    free(copy);
    free(image);
}

static void launch_works(void **state)
{
    struct fx *f = *state;
    uint32_t src[FX_N], dst[FX_N];
    umdDevicePtr s = fx_alloc(f, sizeof(src)), d = fx_alloc(f, sizeof(dst));

    for (uint32_t i = 0; i < FX_N; i++) {
        src[i] = i * 3;
        dst[i] = 1000 + i;
    }
    assert_ok(umdMemcpyHtoD(f->stream, s, src, sizeof(src)));
    assert_ok(umdMemcpyHtoD(f->stream, d, dst, sizeof(dst)));
    for (int round = 0; round < 3; round++)
        assert_ok(fx_launch(f->stream, fx_kernel(f, "axpy"), &(struct fx_args){ d, s, 5, FX_N - 10 }, FX_N / 32));
    assert_ok(umdMemcpyDtoH(f->stream, dst, d, sizeof(dst)));
    for (uint32_t i = 0; i < FX_N; i++)
        assert_int_equal(dst[i], 1000 + i + (i < FX_N - 10 ? i * 45 : 0));
    assert_ok(fx_launch(f->stream, fx_kernel(f, "by_table"), &(struct fx_args){ d, 0, 1, FX_N }, FX_N / 32));
    assert_ok(umdMemcpyDtoH(f->stream, dst, d, sizeof(dst)));
    for (uint32_t i = 0; i < FX_N; i++)
        assert_int_equal(dst[i], i * 3);
    umdLaunchDesc g = { .size_B = sizeof(g), .grid = { 2, 1, 1 }, .block = { 128, 1, 1 }, .args = &(struct fx_args){ d, s, 0, 0 },
                        .args_B = sizeof(struct fx_args) };
    assert_ok(umdLaunchKernel(f->stream, fx_kernel(f, "group_sum"), &g));
    assert_ok(umdMemcpyDtoH(f->stream, dst, d, 8));
    assert_int_equal(dst[0], 3 * 127 * 128 / 2);
    assert_int_equal(dst[1], 3 * (128 * 128 + 127 * 128 / 2));
    assert_ok(umdMemFree(f->ctx, s));
    assert_ok(umdMemFree(f->ctx, d));
}

/* Variables that each lane has for itself; a launch of another module in between knows nothing of them. */
static void thread_locals(void **state)
{
    struct fx *f = *state;
    struct { uint64_t out; uint32_t n, rounds; } args = { 0 };
    uint32_t got[4 * 2 * 64];
    umdLaunchDesc d = { .size_B = sizeof(d), .grid = { 2, 1, 1 }, .block = { 64, 1, 1 }, .args = &args, .args_B = sizeof(args) };
    umdDevicePtr out = fx_alloc(f, sizeof(got));
    umdModule mod;
    umdKernel count;

    args.out = out;
    assert_ok(umdModuleLoadFile(f->ctx, getenv("PETREL_TEST_TLS_KERNELS"), &mod));
    assert_ok(umdModuleGetKernel(mod, "tls_count", &count));
    for (int round = 0; round < 3; round++) {
        assert_ok(umdLaunchKernel(f->stream, count, &d));
        assert_ok(umdMemcpyDtoH(f->stream, got, out, sizeof(got)));
        for (uint32_t i = 0; i < 128; i++) {
            uint32_t by = i % 3 * (i % 7) + i % 5 + 1;

            assert_int_equal(got[4 * i], 1000 + by);
            assert_int_equal(got[4 * i + 1], by);
            assert_int_equal(got[4 * i + 2], 321);
        }
        assert_ok(fx_launch(f->stream, fx_kernel(f, "by_table"), &(struct fx_args){ out, 0, 1, 32 }, 1));
    }
    assert_ok(umdModuleUnload(mod));
    assert_ok(umdMemFree(f->ctx, out));
}

/* 24 bytes that are aligned to 2048 are a block of 2048, more than half of the 2048 that a lane has here. */
static void thread_locals_too_wide(void **state)
{
    struct fx *f = *state;
    struct { uint64_t out; uint32_t n, rounds; } args = { 0 };
    umdLaunchDesc d = { .size_B = sizeof(d), .grid = { 1, 1, 1 }, .block = { 32, 1, 1 }, .args = &args, .args_B = sizeof(args) };
    umdDeviceInfo info = { .size_B = sizeof(info) };
    umdModule mod;
    umdKernel k;

    assert_ok(umdDeviceGetInfo(f->dev, &info));
    assert_int_equal(info.private_B, 2048);
    assert_ok(umdModuleLoadFile(f->ctx, getenv("PETREL_TEST_TLS_WIDE"), &mod));
    assert_ok(umdModuleGetKernel(mod, "tls_wide", &k));
    assert_fails(umdLaunchKernel(f->stream, k, &d), UMD_ERR_LAUNCH_RESOURCES, "thread_local_B=2048 max_thread_local_B=1024");
    assert_ok(umdModuleUnload(mod));
    assert_ok(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE)); /* and the context is as good as before */
}

/* Lanes meet where the module's note says, and where a note lies they do their work all the same; a damaged one is refused. */
static void notes(void **state)
{
    struct fx *f = *state;
    struct { uint32_t instructions, which; } got[32];
    const umdDevicePtr out = fx_alloc(f, sizeof(got));
    umdLaunchDesc d = { .size_B = sizeof(d), .grid = { 1, 1, 1 }, .block = { 32, 1, 1 }, .args = &out, .args_B = sizeof(out) };
    umdModule mod;
    umdKernel together, apart;

    assert_ok(umdModuleLoadFile(f->ctx, getenv("PETREL_TEST_NOTE_KERNELS"), &mod));
    assert_ok(umdModuleGetKernel(mod, "together", &together));
    assert_ok(umdModuleGetKernel(mod, "apart", &apart));
    for (int round = 0; round < 3; round++) {
        assert_ok(umdLaunchKernel(f->stream, round == 1 ? apart : together, &d));
        assert_ok(umdMemcpyDtoH(f->stream, got, out, sizeof(got)));
        for (uint32_t i = 0; i < 32; i++) {
            assert_int_equal(got[i].which, 10 + i % 4);
            if (round != 1) /* all together, behind nine instructions and four cases of two */
                assert_int_equal(got[i].instructions, 9 + 4 * 2);
        }
        assert_ok(fx_launch(f->stream, fx_kernel(f, "by_table"), &(struct fx_args){ out, 0, 1, 32 }, 1));
    }
    assert_ok(umdModuleUnload(mod));
    assert_ok(umdMemFree(f->ctx, out));
    static uint8_t image[65536];
    FILE *file = fopen(getenv("PETREL_TEST_NOTE_KERNELS"), "rb");
    const size_t n = file ? fread(image, 1, sizeof(image), file) : 0;
    uint8_t *name = memmem(image, n, "Petrel\0", 8);

    assert_non_null(name);
    fclose(file);
    name[0] = 'p';
    assert_fails(umdModuleLoad(f->ctx, image, n, &mod), UMD_ERR_MODULE_FORMAT, "reason=\"convergence note\"");
}

static void launch_arguments(void **state)
{
    struct fx *f = *state;
    umdKernel axpy = fx_kernel(f, "axpy"), group_sum = fx_kernel(f, "group_sum");
    umdDeviceInfo info = { .size_B = sizeof(info) };
    struct fx_args a = { 0 };
    const umdLaunchDesc good = { .size_B = sizeof(good), .grid = { 1, 1, 1 }, .block = { 32, 1, 1 }, .args = &a, .args_B = sizeof(a) };
    umdLaunchDesc d = good;
    umdStream copy;

    assert_ok(umdDeviceGetInfo(f->dev, &info));
    assert_fails(umdLaunchKernel(f->stream, axpy, NULL), UMD_ERR_PARAM_NULL, "argument=desc");
    d.size_B = 4;
    assert_fails(umdLaunchKernel(f->stream, axpy, &d), UMD_ERR_PARAM_STRUCT_SIZE, "size_B=4");
    d = good, d.flags = 8;
    assert_fails(umdLaunchKernel(f->stream, axpy, &d), UMD_ERR_PARAM_FLAGS, "value=0x8");
    d = good, d.args_B = 8;
    assert_fails(umdLaunchKernel(f->stream, axpy, &d), UMD_ERR_LAUNCH_ARGUMENTS, "expected_B=24");
    d = good, d.args = NULL;
    assert_fails(umdLaunchKernel(f->stream, axpy, &d), UMD_ERR_PARAM_NULL, "argument=desc.args");
    for (int i = 0; i < 3; i++) {
        d = good, d.block[i] = 0;
        assert_fails(umdLaunchKernel(f->stream, axpy, &d), UMD_ERR_LAUNCH_DIMENSIONS, "work_items=0");
        d = good, d.grid[i] = 0;
        assert_fails(umdLaunchKernel(f->stream, axpy, &d), UMD_ERR_LAUNCH_DIMENSIONS, "reason=\"a dimension is 0\"");
    }
    d = good, d.block[1] = info.max_block;
    assert_fails(umdLaunchKernel(f->stream, axpy, &d), UMD_ERR_LAUNCH_DIMENSIONS, "reason=\"the block is too large\"");
    d = good, d.grid[0] = d.grid[1] = d.grid[2] = UINT32_MAX;
    assert_fails(umdLaunchKernel(f->stream, axpy, &d), UMD_ERR_LAUNCH_DIMENSIONS, "max_grid=4294967295x4294967295x4294967295");
    fx_assert_figure(UMD_ERR_LAUNCH_DIMENSIONS, "reason=\"more than 2^64-1 work-items in all\"", __FILE__, __LINE__);
    d = good, d.block[0] = 129; /* the kernel's own limit */
    assert_fails(umdLaunchKernel(f->stream, group_sum, &d), UMD_ERR_LAUNCH_DIMENSIONS, "max_block=128");
    d = good, d.local_B = info.local_B + 1;
    assert_fails(umdLaunchKernel(f->stream, axpy, &d), UMD_ERR_LAUNCH_RESOURCES, "local_B=");
    d = good, d.local_B = info.local_B; /* with the kernel's own it is too much */
    assert_st(umdLaunchKernel(f->stream, group_sum, &d), UMD_ERR_LAUNCH_RESOURCES);
    d = good, d.local_B = UINT32_MAX;
    assert_st(umdLaunchKernel(f->stream, group_sum, &d), UMD_ERR_LAUNCH_RESOURCES);
    assert_ok(umdStreamCreate(f->ctx, UMD_STREAM_COPY, 0, &copy));
    assert_fails(umdLaunchKernel(copy, axpy, &good), UMD_ERR_PARAM_RANGE, "kind=copy");
    assert_fails(umdLaunchKernel(f->stream, (umdKernel){ f->stream.id }, &good), UMD_ERR_HANDLE_TYPE, "type=stream");
    assert_st(umdLaunchKernel((umdStream){ 0 }, axpy, &good), UMD_ERR_HANDLE_INVALID);
    assert_ok(umdStreamDestroy(copy));
    assert_ok(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE)); /* nothing was submitted by the wrong ones */
}

static void copies(void **state)
{
    struct fx *f = *state;
    enum { BIG = 1500000 };
    uint8_t *host = malloc(BIG), *back = malloc(BIG);
    umdDevicePtr a = fx_alloc(f, BIG), b = fx_alloc(f, BIG);
    umdStream copy;

    assert_ok(umdStreamCreate(f->ctx, UMD_STREAM_COPY, 0, &copy));
    for (int pass = 0; pass < 2; pass++) {
        umdStream s = pass ? copy : f->stream;
        for (int i = 0; i < BIG; i++)
            host[i] = (uint8_t)(i * 31 + (i >> 9) + pass);
        assert_ok(umdMemcpyHtoD(s, a, host, BIG));
        memcpy(back, host, BIG);
        memset(host, 0xee, BIG); /* the call has taken its copy */
        assert_ok(umdMemcpyDtoD(s, b + 3, a, BIG - 3));
        assert_ok(umdMemcpyDtoH(s, host, b + 3, BIG - 3));
        assert_memory_equal(host, back, BIG - 3);
        assert_ok(umdMemset(s, a, 0x11223344, 4, 64));
        assert_ok(umdMemset(s, a + 64, 0xbeef, 2, 64));
        assert_ok(umdMemset(s, a + 128, 0x7c, 1, 33));
        assert_ok(umdMemcpyDtoH(s, host, a, 192));
        assert_int_equal(((uint32_t *)(void *)host)[15], 0x11223344);
        assert_int_equal(((uint16_t *)(void *)host)[63], 0xbeef);
        assert_int_equal(host[160], 0x7c);
        assert_int_equal(host[161], back[161]);
    }
    assert_ok(umdMemcpyHtoD(copy, a, host, 0));
    assert_ok(umdStreamDestroy(copy));
    assert_ok(umdMemFree(f->ctx, a));
    assert_ok(umdMemFree(f->ctx, b));
    free(host);
    free(back);
}

static void copy_arguments(void **state)
{
    struct fx *f = *state;
    uint8_t host[256] = { 0 };
    umdDevicePtr p = fx_alloc(f, 256), q = fx_alloc(f, 256);

    assert_fails(umdMemcpyHtoD(f->stream, p, NULL, 4), UMD_ERR_PARAM_NULL, "argument=src");
    assert_fails(umdMemcpyDtoH(f->stream, NULL, p, 4), UMD_ERR_PARAM_NULL, "argument=dst");
    assert_fails(umdMemcpyHtoD(f->stream, p, host, 257), UMD_ERR_COPY_RANGE, "fits_B=256");
    assert_fails(umdMemcpyDtoH(f->stream, host, p + 200, 100), UMD_ERR_COPY_RANGE, "fits_B=56");
    assert_st(umdMemcpyDtoD(f->stream, p, q, UINT64_MAX), UMD_ERR_COPY_RANGE);
    assert_fails(umdMemcpyDtoD(f->stream, p, p + 16, 64), UMD_ERR_PARAM_RANGE, "reason=overlap");
    assert_fails(umdMemset(f->stream, p, 0, 3, 6), UMD_ERR_PARAM_RANGE, "element_B");
    assert_fails(umdMemset(f->stream, p, 0, 4, 6), UMD_ERR_PARAM_RANGE, "multiple_of=4");
    assert_fails(umdMemset(f->stream, p, 0, 4, 260), UMD_ERR_COPY_RANGE, "argument=dst");
    assert_fails(umdMemcpyHtoD(f->stream, 64, host, 4), UMD_ERR_MEM_POINTER, "argument=dst");
    assert_ok(umdMemFree(f->ctx, q));
    assert_fails(umdMemcpyDtoD(f->stream, p, q, 4), UMD_ERR_MEM_POINTER, "freed_by_tid=");
    assert_ok(umdMemFree(f->ctx, p));
}

static void stream_arguments(void **state)
{
    struct fx *f = *state;
    umdStream s = { 42 };

    assert_fails(umdStreamCreate(f->ctx, (umdStreamKind)2, 0, &s), UMD_ERR_PARAM_RANGE, "argument=kind");
    assert_fails(umdStreamCreate(f->ctx, UMD_STREAM_COMPUTE, 2, &s), UMD_ERR_PARAM_RANGE, "argument=priority");
    assert_fails(umdStreamCreate(f->ctx, UMD_STREAM_COMPUTE, -2, &s), UMD_ERR_PARAM_RANGE, "value=-2");
    assert_st(umdStreamCreate(f->ctx, UMD_STREAM_COMPUTE, 0, NULL), UMD_ERR_PARAM_NULL);
    assert_ok(umd_fault_plan_set("umd.stream.create=1*fail"));
    assert_fails(umdStreamCreate(f->ctx, UMD_STREAM_COMPUTE, 0, &s), UMD_ERR_MEM_HOST_ALLOC_FAILED, "what=stream");
    assert_int_equal(s.id, 42);
    assert_ok(umdStreamCreate(f->ctx, UMD_STREAM_COMPUTE, 0, &s));
    assert_ok(umdStreamQuery(s));
    assert_ok(umdStreamSynchronize(s, 0));
    assert_ok(umdStreamDestroy(s));
}

static void events(void **state)
{
    struct fx *f = *state;
    umdEvent a, b, never;
    umdStream other;
    umdDevicePtr p = fx_alloc(f, 4096);
    uint64_t ns = 42;
    uint32_t back = 0;

    assert_st(umdEventCreate(f->ctx, NULL), UMD_ERR_PARAM_NULL);
    assert_ok(umdEventCreate(f->ctx, &a));
    assert_ok(umdEventCreate(f->ctx, &b));
    assert_ok(umdEventCreate(f->ctx, &never));
    assert_ok(umdStreamCreate(f->ctx, UMD_STREAM_COMPUTE, 0, &other));
    assert_fails(umdEventSynchronize(never, 1000), UMD_ERR_WAIT_NOT_SUBMITTED, "never recorded");
    assert_st(umdEventElapsed(never, a, &ns), UMD_ERR_WAIT_NOT_SUBMITTED);
    assert_st(umdEventElapsed(a, b, NULL), UMD_ERR_PARAM_NULL);
    assert_ok(umdStreamWaitEvent(other, never)); /* no wait */
    assert_ok(umdStreamSynchronize(other, UMD_TIMEOUT_INFINITE));
    assert_ok(umdEventRecord(a, f->stream));
    assert_ok(fx_launch(f->stream, fx_kernel(f, "slow"), &(struct fx_args){ p, 0, 200, 1024 }, 64));
    assert_ok(umdMemset(f->stream, p, 77, 4, 4096));
    assert_ok(umdEventRecord(b, f->stream));
    assert_ok(umdStreamWaitEvent(other, b));
    assert_ok(umdStreamWaitEvent(f->stream, b)); /* its own: no wait */
    assert_ok(umdMemcpyDtoH(other, &back, p + 4092, 4));
    assert_int_equal(back, 77);
    assert_ok(umdEventSynchronize(b, UMD_TIMEOUT_INFINITE));
    assert_ok(umdEventQuery(b));
    assert_ok(umdEventElapsed(a, b, &ns));
    assert_true(ns > 0 && ns < 1000000000);
    assert_fails(umdEventElapsed(b, a, &ns), UMD_ERR_PARAM_RANGE, "before start");
    assert_ok(umdStreamDestroy(other));
    assert_ok(umdEventDestroy(a));
    assert_fails(umdEventQuery(a), UMD_ERR_HANDLE_DESTROYED, "type=event");
    assert_ok(umdEventDestroy(never));
    assert_ok(umdMemFree(f->ctx, p));
}

/* Each stage of a wait that times out has its own code (B6). */
static void wait_stages(void **state)
{
    struct fx *f = *state;
    umdStream other;
    umdEvent e;
    umdDevicePtr p = fx_alloc(f, 4096);
    umdStatus st;

    assert_ok(umdStreamCreate(f->ctx, UMD_STREAM_COMPUTE, 0, &other));
    assert_ok(umdEventCreate(f->ctx, &e));
    assert_ok(fx_launch(f->stream, fx_kernel(f, "slow"), &(struct fx_args){ p, 0, 3000, 1024 }, 2000));
    assert_ok(umdEventRecord(e, f->stream));
    st = umdStreamQuery(f->stream);
    assert_true(st == UMD_STATUS_NOT_READY || (st == UMD_SUCCESS && !fx_stepped()));
    if (fx_stepped()) {
        assert_int_equal(umdEventQuery(e), UMD_STATUS_NOT_READY);
        assert_ok(umdStreamWaitEvent(other, e));
        assert_fails(umdStreamSynchronize(other, 1000), UMD_ERR_WAIT_DEPENDENCY, "root_job=");
        assert_fails(umdStreamSynchronize(f->stream, 1000), UMD_ERR_WAIT_QUEUED, "submit_ns="); /* the event's job, behind the kernel's */
    }
    assert_ok(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE));
    assert_ok(umdStreamSynchronize(other, UMD_TIMEOUT_INFINITE));
    if (fx_stepped()) {
        assert_ok(fx_launch(f->stream, fx_kernel(f, "slow"), &(struct fx_args){ p, 0, 3000, 1024 }, 2000));
        st = UMD_ERR_WAIT_QUEUED;
        for (int i = 0; i < 50 && st != UMD_STATUS_TIMEOUT_PROGRESS && st != UMD_SUCCESS; i++)
            st = umdStreamSynchronize(f->stream, 20000);
        assert_int_equal(st, UMD_STATUS_TIMEOUT_PROGRESS);
        assert_ok(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE));
    }
    assert_ok(umdMemFree(f->ctx, p));
}

/* A huge grid of work-items that do nothing is long, not endless: waits keep their time, and destroying the context kills it. */
static void long_work_is_killed(void **state)
{
    struct fx *f = *state;
    umdContext ctx;
    umdStream s;
    umdModule mod;
    umdKernel k;
    struct fx_args args = { 0 };
    umdLaunchDesc d = { .size_B = sizeof(d), .grid = { 65535, 65535, 1 }, .block = { 1, 1, 1 }, .args = &args, .args_B = sizeof(args) };

    assert_ok(umdContextCreate(f->dev, &ctx));
    assert_ok(umdStreamCreate(ctx, UMD_STREAM_COMPUTE, 0, &s));
    assert_ok(umdModuleLoadFile(ctx, fx_kernel_path(), &mod)); /* younger than the stream: it must not be waited for first */
    assert_ok(umdModuleGetKernel(mod, "axpy", &k));
    assert_ok(umdLaunchKernel(s, k, &d));
    umdStatus st = UMD_ERR_WAIT_QUEUED; /* a loaded host may start it late */
    for (int i = 0; i < 1000 && st == UMD_ERR_WAIT_QUEUED; i++)
        st = umdStreamSynchronize(s, 100000);
    assert_st(st, UMD_STATUS_TIMEOUT_PROGRESS);
    assert_ok(umdContextDestroy(ctx)); /* the whole grid would take seconds of device time, and hours here */
}

/* More work than the queue, the ring and the job table hold: all of it runs, in order. */
static void deep_queue(void **state)
{
    struct fx *f = *state;
    umdDevicePtr d = fx_alloc(f, 4 * 32), s = fx_alloc(f, 4 * 32);
    umdKernel axpy = fx_kernel(f, "axpy");
    uint32_t back[32];

    assert_ok(umdMemset(f->stream, s, 1, 4, 4 * 32));
    for (int i = 0; i < 700; i++)
        assert_ok(fx_launch(f->stream, axpy, &(struct fx_args){ d, s, 1, 32 }, 1));
    assert_ok(umdMemcpyDtoH(f->stream, back, d, sizeof(back)));
    for (int i = 0; i < 32; i++)
        assert_int_equal(back[i], 700);
    assert_ok(umd_fault_plan_set("kmd.ring.full=2*fail"));
    assert_ok(fx_launch(f->stream, axpy, &(struct fx_args){ d, s, 1, 32 }, 1));
    assert_int_equal(umd_fault_fired(UMD_FAULT_KMD_RING_FULL), 2);
    assert_ok(umd_fault_plan_set(NULL));
    assert_ok(umdMemcpyDtoH(f->stream, back, d, sizeof(back)));
    assert_int_equal(back[0], 701);
    if (fx_stepped()) { /* for ever full: the retry ends */
        assert_ok(umd_fault_plan_set("kmd.ring.full=fail"));
        assert_st(fx_launch(f->stream, axpy, &(struct fx_args){ d, s, 1, 32 }, 1), UMD_ERR_SUBMIT_RING_FULL);
        assert_ok(umd_fault_plan_set(NULL));
    }
    assert_ok(umdMemFree(f->ctx, d));
    assert_ok(umdMemFree(f->ctx, s));
}

struct worker { struct fx *f; int number; bool shared; umdStatus st; bool right; };

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    uint32_t host[FX_N], back[FX_N];
    umdStream s = w->f->stream;
    umdDevicePtr d = 0, src = 0;
    umdKernel k = { 0 };

    w->right = true;
    w->st = w->shared ? UMD_SUCCESS : umdStreamCreate(w->f->ctx, UMD_STREAM_COMPUTE, 0, &s);
    for (int round = 0; round < 60 && w->st == UMD_SUCCESS; round++) {
        for (uint32_t i = 0; i < FX_N; i++)
            host[i] = i + (uint32_t)(w->number * 1000 + round);
        if ((w->st = umdMemAlloc(w->f->ctx, sizeof(host), 0, 0, &d)) || (w->st = umdMemAlloc(w->f->ctx, sizeof(host), 0, 0, &src)) ||
            (w->st = umdModuleGetKernel(w->f->mod, "axpy", &k)) || (w->st = umdMemcpyHtoD(s, src, host, sizeof(host))) ||
            (w->st = fx_launch(s, k, &(struct fx_args){ d, src, 2, FX_N }, FX_N / 32)) ||
            (w->st = umdMemcpyDtoH(s, back, d, sizeof(back))) || (w->st = umdMemFree(w->f->ctx, d)) ||
            (w->st = umdMemFree(w->f->ctx, src)))
            break;
        for (uint32_t i = 0; i < FX_N; i++)
            w->right &= back[i] == host[i] * 2;
    }
    if (!w->shared && w->st == UMD_SUCCESS)
        w->st = umdStreamDestroy(s);
    return NULL;
}

static void threads(void **state)
{
    struct worker w[4];
    pthread_t t[4];

    if (fx_stepped())
        skip(); /* one host thread by definition */
    for (int i = 0; i < 4; i++) {
        w[i] = (struct worker){ .f = *state, .number = i, .shared = i & 1 };
        assert_int_equal(pthread_create(&t[i], NULL, worker_main, &w[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], NULL);
        assert_int_equal(w[i].st, UMD_SUCCESS);
        assert_true(w[i].right);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(module_arguments, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(module_corruption, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(launch_works, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(thread_locals, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(thread_locals_too_wide, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(notes, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(launch_arguments, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(copies, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(copy_arguments, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(stream_arguments, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(events, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(wait_stages, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(long_work_is_killed, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(deep_queue, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(threads, fx_setup, fx_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
