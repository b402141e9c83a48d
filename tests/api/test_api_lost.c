/* SPDX-License-Identifier: MIT */
/* test_api_lost.c - every public call on a lost device (B7): fails at once with the same cause, or is one that works all the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault_plan.h"
#include "fixtures.h"
#include "status.h"

enum { MARK = 0x5a };

/* What a bystander had when the device went. */
struct lost {
    struct fx *f;
    umdStatus code;
    umdRecordId cause;       /* what all began with */
    umdContext ctx;
    umdModule mod;
    umdKernel kernel;
    umdStream stream, copy;
    umdEvent never, start, end; /* not recorded; reached */
    umdDevicePtr p, visible;
};

/* Outputs of a call; a failure leaves them as they are. */
static union { uint8_t bytes[64]; umdContext context; umdModule module; umdKernel kernel; umdStream stream; umdEvent event; umdDevicePtr p;
               void *host; uint64_t u64; uint32_t u32; umdDevice device; } out;

static void on_error(umdContext context, const umdErrorDetail *detail, void *user)
{
    (void)context;
    (void)detail;
    (void)user;
}

/* ---- A row per call ---- */

static umdStatus context_create(struct lost *l) { return umdContextCreate(l->f->dev, &out.context); }
static umdStatus context_status(struct lost *l) { return umdContextGetStatus(l->ctx); }
static umdStatus set_callback(struct lost *l) { return umdContextSetErrorCallback(l->ctx, on_error, NULL); }
static umdStatus clear_callback(struct lost *l) { return umdContextSetErrorCallback(l->ctx, NULL, NULL); }
static umdStatus mem_alloc(struct lost *l) { return umdMemAlloc(l->ctx, 4096, 0, 0, &out.p); }
static umdStatus mem_map(struct lost *l) { return umdMemMap(l->ctx, l->visible, &out.host); }
static umdStatus module_load(struct lost *l)
{
    size_t size_B;
    uint8_t *image = fx_read_file(fx_kernel_path(), &size_B);
    umdStatus st = umdModuleLoad(l->ctx, image, size_B, &out.module);

    free(image);
    return st;
}
static umdStatus module_load_file(struct lost *l) { return umdModuleLoadFile(l->ctx, fx_kernel_path(), &out.module); }
static umdStatus get_kernel(struct lost *l) { return umdModuleGetKernel(l->mod, "axpy", &out.kernel); }
static umdStatus stream_create(struct lost *l) { return umdStreamCreate(l->ctx, UMD_STREAM_COMPUTE, 0, &out.stream); }
static umdStatus stream_sync(struct lost *l) { return umdStreamSynchronize(l->stream, UMD_TIMEOUT_INFINITE); }
static umdStatus stream_query(struct lost *l) { return umdStreamQuery(l->copy); }
static umdStatus wait_reached(struct lost *l) { return umdStreamWaitEvent(l->copy, l->end); }
static umdStatus wait_never(struct lost *l) { return umdStreamWaitEvent(l->copy, l->never); }
static umdStatus event_create(struct lost *l) { return umdEventCreate(l->ctx, &out.event); }
static umdStatus event_record(struct lost *l) { return umdEventRecord(l->end, l->copy); }
static umdStatus query_reached(struct lost *l) { return umdEventQuery(l->end); }
static umdStatus query_never(struct lost *l) { return umdEventQuery(l->never); }
static umdStatus sync_reached(struct lost *l) { return umdEventSynchronize(l->end, UMD_TIMEOUT_INFINITE); }
static umdStatus sync_never(struct lost *l) { return umdEventSynchronize(l->never, UMD_TIMEOUT_INFINITE); }
static umdStatus elapsed(struct lost *l) { return umdEventElapsed(l->start, l->end, &out.u64); }
static umdStatus h_to_d(struct lost *l) { return umdMemcpyHtoD(l->copy, l->p, "abcd", 4); }
static umdStatus d_to_h(struct lost *l) { return umdMemcpyDtoH(l->copy, &out.u32, l->p, 4); }
static umdStatus d_to_d(struct lost *l) { return umdMemcpyDtoD(l->copy, l->p, l->visible, 4); }
static umdStatus fill(struct lost *l) { return umdMemset(l->stream, l->p, 0, 4, 4); }
static umdStatus launch(struct lost *l) { return fx_launch(l->stream, l->kernel, &(struct fx_args){ l->p, l->p, 1, 32 }, 1); }

static umdStatus init(struct lost *l)
{
    umdInitDesc d = fx_desc();

    (void)l;
    return umdInit(&d);
}
static umdStatus shut_down(struct lost *l) { (void)l; return umdShutdown(); } /* the one before */
static umdStatus device_count(struct lost *l) { (void)l; return umdDeviceGetCount(&out.u32); }
static umdStatus device_get(struct lost *l) { (void)l; return umdDeviceGet(0, &out.device); }
static umdStatus device_info(struct lost *l)
{
    umdDeviceInfo info = { .size_B = sizeof(info) };
    umdStatus st = umdDeviceGetInfo(l->f->dev, &info);

    assert_int_equal(info.lost_code, l->code);
    assert_int_equal(info.vram_size_B, 64u << 20);
    return st;
}
static umdStatus device_cause(struct lost *l)
{
    umdErrorDetail d = { .size_B = sizeof(d) };
    umdStatus st = umdDeviceGetFirstCause(l->f->dev, &d);

    assert_int_equal(d.id.seq, l->cause.seq);
    return st;
}
static umdStatus context_cause(struct lost *l)
{
    umdErrorDetail d = { .size_B = sizeof(d) };
    umdStatus st = umdContextGetFirstCause(l->ctx, &d);

    assert_int_equal(d.id.seq, l->cause.seq);
    return st;
}

static umdStatus mem_free(struct lost *l)
{
    umdStatus st = umdMemFree(l->ctx, l->p);
    return st < 0 ? st : umdMemFree(l->ctx, l->visible);
}
static umdStatus module_unload(struct lost *l) { return umdModuleUnload(l->mod); }
static umdStatus event_destroy(struct lost *l)
{
    assert_ok(umdEventDestroy(l->never));
    assert_ok(umdEventDestroy(l->start));
    return umdEventDestroy(l->end);
}
static umdStatus stream_destroy(struct lost *l)
{
    assert_ok(umdStreamDestroy(l->stream));
    return umdStreamDestroy(l->copy);
}
static umdStatus context_destroy(struct lost *l) { return umdContextDestroy(l->ctx); }

/* LOST: returns the loss. WORKS: all the same. FREES: a destroy call, in the order of the rows. APART: has to do with no device. */
enum what { LOST, WORKS, FREES, APART };
static const struct row { const char *function; enum what what; umdStatus (*make)(struct lost *l); } rows[] = {
    { "umdContextCreate", LOST, context_create }, { "umdContextGetStatus", LOST, context_status },
    { "umdContextSetErrorCallback", LOST, set_callback }, { "umdContextSetErrorCallback", WORKS, clear_callback },
    { "umdMemAlloc", LOST, mem_alloc }, { "umdMemMap", LOST, mem_map },
    { "umdModuleLoad", LOST, module_load }, { "umdModuleLoadFile", LOST, module_load_file }, { "umdModuleGetKernel", LOST, get_kernel },
    { "umdStreamCreate", LOST, stream_create }, { "umdStreamSynchronize", LOST, stream_sync }, { "umdStreamQuery", LOST, stream_query },
    { "umdStreamWaitEvent", LOST, wait_reached }, { "umdStreamWaitEvent", LOST, wait_never },
    { "umdEventCreate", LOST, event_create }, { "umdEventRecord", LOST, event_record },
    { "umdEventQuery", LOST, query_reached }, { "umdEventQuery", LOST, query_never },
    { "umdEventSynchronize", LOST, sync_reached }, { "umdEventSynchronize", LOST, sync_never }, { "umdEventElapsed", LOST, elapsed },
    { "umdMemcpyHtoD", LOST, h_to_d }, { "umdMemcpyDtoH", LOST, d_to_h }, { "umdMemcpyDtoD", LOST, d_to_d }, { "umdMemset", LOST, fill },
    { "umdLaunchKernel", LOST, launch },
    { "umdInit", WORKS, init }, { "umdShutdown", WORKS, shut_down }, { "umdDeviceGetCount", WORKS, device_count }, { "umdDeviceGet", WORKS, device_get },
    { "umdDeviceGetInfo", WORKS, device_info }, { "umdDeviceGetFirstCause", WORKS, device_cause }, { "umdContextGetFirstCause", WORKS, context_cause },
    { "umdMemFree", FREES, mem_free }, { "umdModuleUnload", FREES, module_unload }, { "umdEventDestroy", FREES, event_destroy },
    { "umdStreamDestroy", FREES, stream_destroy }, { "umdContextDestroy", FREES, context_destroy },
    { "umdLogSetLevels", APART, NULL }, { "umdLogSetConsole", APART, NULL }, { "umdLogOpenFile", APART, NULL },
    { "umdLogSetFileLevels", APART, NULL }, { "umdLogSetRotationPeriod", APART, NULL }, { "umdLogSetTrace", APART, NULL }, { "umdCrashHandlerInstall", APART, NULL },
    { "umdGetLastErrorDetail", APART, NULL }, { "umdGetErrorDetailById", APART, NULL }, { "umdGetFirstCause", APART, NULL },
    { "umdGetErrorScene", APART, NULL },
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static bool has_row(const char *function)
{
    for (size_t i = 0; i < ROWS; i++)
        if (!strcmp(rows[i].function, function))
            return true;
    return false;
}

static void each_call_has_a_row(void **state)
{
    uint32_t n = 0;

    (void)state;
    for (; umd_api_function_at(n); n++)
        if (!has_row(umd_api_function_at(n)))
            fail_msg("no row for %s: what does it do on a lost device?", umd_api_function_at(n));
    assert_true(n > 40);
    for (size_t i = 0; i < ROWS; i++) { /* and none for what is no call */
        uint32_t k = 0;
        while (umd_api_function_at(k) && strcmp(umd_api_function_at(k), rows[i].function))
            k++;
        if (!umd_api_function_at(k))
            fail_msg("%s is no public call", rows[i].function);
        assert_true((rows[i].what == APART) == !rows[i].make);
    }
}

/* ---- Losing the device ---- */

static void prepare(struct lost *l, struct fx *f)
{
    *l = (struct lost){ .f = f };
    assert_ok(umdContextCreate(f->dev, &l->ctx));
    assert_ok(umdModuleLoadFile(l->ctx, fx_kernel_path(), &l->mod));
    assert_ok(umdModuleGetKernel(l->mod, "axpy", &l->kernel));
    assert_ok(umdStreamCreate(l->ctx, UMD_STREAM_COMPUTE, 0, &l->stream));
    assert_ok(umdStreamCreate(l->ctx, UMD_STREAM_COPY, 0, &l->copy));
    assert_ok(umdMemAlloc(l->ctx, 4096, 0, 0, &l->p));
    assert_ok(umdMemAlloc(l->ctx, 4096, 0, UMD_MEM_HOST_VISIBLE, &l->visible));
    assert_ok(umdEventCreate(l->ctx, &l->never));
    assert_ok(umdEventCreate(l->ctx, &l->start));
    assert_ok(umdEventCreate(l->ctx, &l->end));
    assert_ok(umdEventRecord(l->start, l->stream));
    assert_ok(umdEventRecord(l->end, l->stream));
    assert_ok(umdStreamSynchronize(l->stream, UMD_TIMEOUT_INFINITE));
}

/* By work of another context, so that the bystander's has not failed by itself. */
static void lose(struct lost *l, const char *faults, umdStatus code)
{
    umdErrorDetail d = { .size_B = sizeof(d) };
    umdDevicePtr p = fx_alloc(l->f, 4096);

    assert_ok(umd_fault_plan_set(faults));
    umdStatus st = fx_launch(l->f->stream, fx_kernel(l->f, "axpy"), &(struct fx_args){ p, p, 1, 32 }, 1);
    if (st == UMD_SUCCESS)
        st = umdStreamSynchronize(l->f->stream, UMD_TIMEOUT_INFINITE);
    assert_true(umdFailed(st));
    for (int i = 0; i < 20000 && umdContextGetStatus(l->ctx) == UMD_SUCCESS; i++) /* resets take their time */
        usleep(fx_stepped() ? 0 : 1000);
    assert_st(umdContextGetStatus(l->ctx), code);
    assert_ok(umdDeviceGetFirstCause(l->f->dev, &d));
    l->code = code;
    l->cause = d.id;
}

static uint64_t retries(void)
{
    umdErrorCounts counts[256];
    uint32_t n = umdGetErrorCounts(counts, 256);
    uint64_t sum = 0;

    assert_true(n <= 256);
    for (uint32_t i = 0; i < n; i++)
        sum += counts[i].retried;
    return sum;
}

static void make(struct lost *l, const struct row *r)
{
    umdErrorDetail first = { .size_B = sizeof(first) };
    const uint64_t tried = retries();
    uint8_t before[sizeof(out)];

    memset(&out, MARK, sizeof(out));
    memset(before, MARK, sizeof(before));
    umdStatus st = r->make(l);
    if (st != (r->what == LOST ? l->code : UMD_SUCCESS))
        fail_msg("%s on a device lost by %s: %s", r->function, umdStatusName(l->code), umdStatusName(st));
    assert_int_equal(retries(), tried); /* nothing was tried again inside */
    if (r->what != LOST)
        return;
    assert_memory_equal(&out, before, sizeof(out));
    umdErrorDetail d = fx_detail();
    assert_string_equal(d.api, r->function);
    assert_int_equal(d.code, l->code);
    assert_ok(umdGetFirstCause(d.id, &first));
    if (first.id.seq != l->cause.seq || first.id.pid != l->cause.pid)
        fail_msg("%s tells of another cause: %s %s", r->function, umdStatusName((umdStatus)first.code), first.figures);
}

static void each_call(struct fx *f, const char *faults, umdStatus code)
{
    struct lost l;

    prepare(&l, f);
    lose(&l, faults, code);
    for (int round = 0; round < 2; round++) /* it stays so */
        for (size_t i = 0; i < ROWS; i++)
            if (rows[i].what == LOST || rows[i].what == WORKS)
                make(&l, &rows[i]);
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].what == FREES)
            make(&l, &rows[i]);
    assert_st(umdContextGetStatus(l.ctx), UMD_ERR_HANDLE_DESTROYED);
}

static void off_the_bus(void **state) { each_call(*state, "hw.bus.off=1*fire", UMD_ERR_DEV_LOST_OFF_BUS); }
static void reset_failed(void **state) { each_call(*state, "hw.cu.hang=fire;hw.reset.fail=fire", UMD_ERR_DEV_LOST_RESET_FAILED); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_has_a_row),
        cmocka_unit_test_setup_teardown(off_the_bus, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(reset_failed, fx_setup, fx_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
