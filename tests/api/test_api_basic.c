/* SPDX-License-Identifier: MIT */
/* test_api_basic.c - library, devices, contexts, memory, modules: what works, and each wrong argument's own code. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault_plan.h"
#include "fixtures.h"

static void init_arguments(void **state)
{
    umdInitDesc d = fx_desc();
    uint32_t n = 77;

    (void)state;
    assert_fails(umdDeviceGetCount(&n), UMD_ERR_INIT_REQUIRED, "call=umdDeviceGetCount");
    assert_int_equal(n, 77);
    assert_fails(umdShutdown(), UMD_ERR_INIT_REQUIRED, "call=umdShutdown");
    d.size_B--;
    assert_fails(umdInit(&d), UMD_ERR_PARAM_STRUCT_SIZE, "argument=desc");
    d = fx_desc();
    d.version = UMD_VERSION + 1;
    assert_fails(umdInit(&d), UMD_ERR_INIT_VERSION, "library=0.1");
    d = fx_desc();
    d.carrier = "pigeon";
    assert_fails(umdInit(&d), UMD_ERR_CONFIG_VALUE, "value=\"pigeon\"");
    d = fx_desc();
    d.device_count = 9;
    assert_fails(umdInit(&d), UMD_ERR_CONFIG_VALUE, "key=device_count");
    d = fx_desc();
    d.profile = "/nonexistent/profile.ini";
    assert_fails(umdInit(&d), UMD_ERR_CONFIG_VALUE, "key=profile value=\"/nonexistent/profile.ini\"");
    d = fx_desc();
    d.carrier = d.profile = ""; /* as not set */
    assert_ok(umdInit(&d));
    assert_ok(umdShutdown());
    d = fx_desc();
    d.faults = "sys.open=fail";
    assert_fails(umdInit(&d), UMD_ERR_RES_FILE, "path=\"memfd:petrel-vram\"");
    fx_assert_figure(UMD_ERR_RES_FILE, "errno=5", __FILE__, __LINE__);
    d.faults = NULL;
    assert_ok(umdInit(&d)); /* a start that failed took its plan back */
    assert_ok(umdShutdown());
    assert_ok(umd_fault_plan_set("hw.cu.hang[nth=77]=fire")); /* and the one before it stands again */
    d.faults = "sys.open=fail";
    assert_int_equal(umdInit(&d), UMD_ERR_RES_FILE);
    assert_true(umd_fault_armed[UMD_FAULT_HW_CU_HANG]);
    d.faults = NULL;
    assert_ok(umdInit(&d));
    assert_ok(umdShutdown());
    d.faults = "hw.cu.hang=fly";
    assert_int_equal(umdInit(&d), UMD_ERR_FAULT_SPEC);
    d = fx_desc();
    d.faults = "/nonexistent/faults";
    assert_int_equal(umdInit(&d), UMD_ERR_RES_FILE);
    assert_ok(umd_fault_plan_set(NULL));
    assert_int_equal(umdGetVersion(), UMD_VERSION);
}

static void init_environment(void **state)
{
    static const char *const bad[][2] = {
        { "PETREL_DEVICES", "0" }, { "PETREL_DEVICES", "9" }, { "PETREL_DEVICES", "1x" }, { "PETREL_DEVICES", "-1" },
        { "PETREL_WATCHDOG_MS", "0" }, { "PETREL_WATCHDOG_MS", "soon" }, { "PETREL_HOST_THREADS", "0" }, { "PETREL_HOST_THREADS", "65" }, { "PETREL_MODE", "sideways" },
        { "PETREL_CARRIER", "pigeon" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *old = getenv(bad[i][0]);
        char *keep = old ? strdup(old) : NULL;
        umdInitDesc d = fx_desc();
        setenv(bad[i][0], bad[i][1], 1);
        assert_fails(umdInit(&d), UMD_ERR_CONFIG_VALUE, strcmp(bad[i][0], "PETREL_CARRIER") ? bad[i][0] : "key=carrier value=\"pigeon\"");
        if (keep)
            setenv(bad[i][0], keep, 1);
        else
            unsetenv(bad[i][0]);
        free(keep);
    }
    const char *kmd = getenv("PETREL_KMD");
    char *keep = kmd ? strdup(kmd) : NULL;
    umdInitDesc d = fx_desc();
    setenv("PETREL_KMD", "/nonexistent/kmd.so", 1);
    assert_fails(umdInit(&d), UMD_ERR_INIT_CARRIER, "/nonexistent/kmd.so");
    if (keep)
        setenv("PETREL_KMD", keep, 1);
    else
        unsetenv("PETREL_KMD");
    free(keep);
}

static void init_counts(void **state)
{
    umdInitDesc d = fx_desc();
    umdDevice dev = { 42 };
    umdDeviceInfo info = { .size_B = sizeof(info) };
    uint32_t n = 0;

    (void)state;
    assert_ok(umdInit(&d));
    assert_ok(umdInit(NULL));
    assert_ok(umdShutdown());
    assert_ok(umdDeviceGetCount(&n));
    assert_int_equal(n, 1);
    assert_fails(umdDeviceGet(1, &dev), UMD_ERR_PARAM_RANGE, "count=1");
    assert_int_equal(dev.id, 42);
    assert_ok(umdDeviceGet(0, &dev));
    assert_ok(umdDeviceGetInfo(dev, &info));
    assert_ok(umdShutdown());
    assert_int_equal(umdDeviceGetInfo(dev, &info), UMD_ERR_INIT_REQUIRED);
    assert_ok(umdInit(&d));
    assert_fails(umdDeviceGetInfo(dev, &info), UMD_ERR_HANDLE_DESTROYED, "type=device");
    assert_ok(umdShutdown());
}

struct start_fault { const char *spec; umdStatus code; };

static void init_faults(void **state)
{
    static const struct start_fault faults[] = {
        { "hw.fw.version=fire(0x20003)", UMD_ERR_INIT_FW_VERSION },
        { "hw.fw.boot=fire", UMD_ERR_INIT_FW_BOOT },
        { "hw.revision=fire(7)", UMD_ERR_INIT_UNSUPPORTED },
        { "hw.revision=fire(0)", UMD_ERR_INIT_UNSUPPORTED },
        { "hw.ecc.selftest=fire(4096)", UMD_ERR_INIT_ECC_SELFTEST },
        { "kmd.device.count=fire(0)", UMD_ERR_INIT_DEVICE_COUNT },
        { "sys.open=fail", UMD_ERR_RES_FILE },
        { "sys.open=fail(EMFILE)", UMD_ERR_RES_DESCRIPTORS },
        { "hw.cu.hng", UMD_ERR_FAULT_SPEC },
        { "@/nonexistent/plan.txt", UMD_ERR_RES_FILE },
        { "/nonexistent/plan.txt", UMD_ERR_RES_FILE },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        umdInitDesc d = fx_desc();
        d.faults = faults[i].spec;
        assert_st(umdInit(&d), faults[i].code);
        umdErrorDetail detail = fx_detail();
        assert_int_equal(detail.code, faults[i].code);
        assert_true(detail.figures[0] != '\0');
        assert_ok(umd_fault_plan_set(NULL));
    }
    umdInitDesc d = fx_desc();
    assert_ok(umdInit(&d)); /* a failed start leaves nothing behind */
    assert_ok(umdShutdown());
}

/* A file by "@FILE", and what the environment says where the program says nothing. */
static void faults_of_a_person(void **state)
{
    umdInitDesc d = fx_desc();
    char path[64];

    (void)state;
    snprintf(path, sizeof(path), "@/tmp/petrel-plan-%d.txt", (int)getpid());
    FILE *f = fopen(path + 1, "w");
    assert_non_null(f);
    fputs("# the firmware never boots\nhw.fw.boot=fire\n", f);
    fclose(f);
    d.faults = path;
    assert_st(umdInit(&d), UMD_ERR_INIT_FW_BOOT);
    d.faults = path + 1;
    assert_st(umdInit(&d), UMD_ERR_INIT_FW_BOOT);
    d.faults = NULL;
    setenv("PETREL_FAULTS", path, 1);
    assert_st(umdInit(&d), UMD_ERR_INIT_FW_BOOT);
    setenv("PETREL_FAULTS", "hw.cu.hng", 1);
    assert_fails(umdInit(&d), UMD_ERR_FAULT_SPEC, "suggestion=hw.cu.hang");
    unsetenv("PETREL_FAULTS");
    unlink(path + 1);
    assert_ok(umd_fault_plan_set(NULL));
}

struct foreigner { umdStatus init, count, end; umdErrorDetail detail; };

static void *foreign_main(void *arg)
{
    struct foreigner *x = arg;
    umdInitDesc d = fx_desc();
    uint32_t n;

    x->init = umdInit(&d);
    x->count = umdDeviceGetCount(&n);
    x->detail.size_B = sizeof(x->detail);
    if (umdGetLastErrorDetail(&x->detail) != UMD_SUCCESS)
        x->detail.code = 0;
    x->end = umdShutdown();
    return NULL;
}

/* Stepped mode is one thread's: another one is told so, and changes nothing. Threaded mode is everybody's. */
static void stepped_is_one_threads(void **state)
{
    const umdStatus want = fx_stepped() ? UMD_ERR_INIT_STEPPED_THREAD : UMD_SUCCESS;
    struct foreigner x = { 0 };
    uint32_t n = 0;
    pthread_t t;

    (void)state;
    assert_int_equal(pthread_create(&t, NULL, foreign_main, &x), 0);
    pthread_join(t, NULL);
    assert_int_equal(x.init, want);
    assert_int_equal(x.count, want);
    assert_int_equal(x.end, want);
    if (fx_stepped())
        assert_int_equal(x.detail.code, UMD_ERR_INIT_STEPPED_THREAD);
    assert_ok(umdDeviceGetCount(&n));
    assert_int_equal(n, 1);
}

static void device_info(void **state)
{
    struct fx *f = *state;
    umdDeviceInfo info = { .size_B = sizeof(info) };

    assert_ok(umdDeviceGetInfo(f->dev, &info));
    assert_int_equal(info.vram_size_B, 64u << 20);
    assert_true(info.cu_count && info.max_block && info.local_B && info.name[0]);
    assert_int_equal(info.watchdog_ns, 5000000);
    assert_int_equal(info.lost_code, UMD_SUCCESS);
    assert_fails(umdDeviceGetInfo(f->dev, NULL), UMD_ERR_PARAM_NULL, "argument=info");
    info.size_B = 8;
    assert_fails(umdDeviceGetInfo(f->dev, &info), UMD_ERR_PARAM_STRUCT_SIZE, "size_B=8");
    assert_int_equal(info.size_B, 8);
    info.size_B = sizeof(info);
    assert_fails(umdDeviceGetInfo((umdDevice){ 0 }, &info), UMD_ERR_HANDLE_INVALID, "wanted=device");
    assert_fails(umdDeviceGetInfo((umdDevice){ f->ctx.id }, &info), UMD_ERR_HANDLE_TYPE, "type=context");
    assert_st(umdDeviceGetCount(NULL), UMD_ERR_PARAM_NULL);
    assert_st(umdDeviceGet(0, NULL), UMD_ERR_PARAM_NULL);
}

static void handles(void **state)
{
    struct fx *f = *state;
    umdContext ctx = { 0 };
    umdStream s = { 0 };

    assert_st(umdContextCreate(f->dev, NULL), UMD_ERR_PARAM_NULL);
    assert_st(umdContextCreate((umdDevice){ f->dev.id ^ 1ull << 40 }, &ctx), UMD_ERR_HANDLE_INVALID);
    assert_ok(umdContextCreate(f->dev, &ctx));
    assert_ok(umdStreamCreate(ctx, UMD_STREAM_COPY, 0, &s));
    assert_ok(umdContextGetStatus(ctx));
    assert_ok(umdContextDestroy(ctx));
    assert_fails(umdContextDestroy(ctx), UMD_ERR_HANDLE_DESTROYED, "destroyed_by_tid=");
    assert_fails(umdContextGetStatus(ctx), UMD_ERR_HANDLE_DESTROYED, "type=context");
    assert_fails(umdStreamSynchronize(s, 0), UMD_ERR_HANDLE_DESTROYED, "type=stream");
    assert_fails(umdStreamDestroy(s), UMD_ERR_HANDLE_DESTROYED, "type=stream");
    assert_fails(umdStreamQuery((umdStream){ f->ctx.id }), UMD_ERR_HANDLE_TYPE, "wanted=stream type=context");
    assert_st(umdEventDestroy((umdEvent){ UINT64_MAX }), UMD_ERR_HANDLE_INVALID);
    assert_st(umdModuleUnload((umdModule){ 12345 }), UMD_ERR_HANDLE_INVALID);
    assert_st(umdContextSetErrorCallback((umdContext){ 0 }, NULL, NULL), UMD_ERR_HANDLE_INVALID);
}

static void handles_full(void **state)
{
    struct fx *f = *state;
    static umdEvent events[65536];
    uint32_t n = 0;
    umdStatus st = UMD_SUCCESS;

    while (n < 65536 && (st = umdEventCreate(f->ctx, &events[n])) == UMD_SUCCESS)
        n++;
    assert_int_equal(st, UMD_ERR_RES_HANDLES);
    assert_true(n > 65000);
    while (n)
        assert_ok(umdEventDestroy(events[--n]));
    assert_ok(umdEventCreate(f->ctx, &events[0]));
    assert_ok(umdEventDestroy(events[0]));
}

static void memory(void **state)
{
    struct fx *f = *state;
    umdDevicePtr p = 42, q;
    umdContext other;

    assert_fails(umdMemAlloc(f->ctx, 0, 0, 0, &p), UMD_ERR_MEM_SIZE, "size_B=0");
    assert_fails(umdMemAlloc(f->ctx, (64u << 20) + 1, 0, 0, &p), UMD_ERR_MEM_SIZE, "limit_B=67108864");
    assert_fails(umdMemAlloc(f->ctx, 16, 3, 0, &p), UMD_ERR_MEM_ALIGNMENT, "alignment_B=3");
    assert_fails(umdMemAlloc(f->ctx, 16, 4u << 20, 0, &p), UMD_ERR_MEM_ALIGNMENT, "max_B=2097152");
    assert_fails(umdMemAlloc(f->ctx, 16, 0, 4, &p), UMD_ERR_PARAM_FLAGS, "value=0x4");
    assert_st(umdMemAlloc(f->ctx, 16, 0, 0, NULL), UMD_ERR_PARAM_NULL);
    assert_int_equal(p, 42);
    assert_ok(umdMemAlloc(f->ctx, 100, 2u << 20, 0, &p));
    assert_int_equal(p & ((2u << 20) - 1), 0);
    assert_fails(umdMemFree(f->ctx, p + 4), UMD_ERR_MEM_POINTER, "inside=0x");
    assert_fails(umdMemFree(f->ctx, 0x123456789000), UMD_ERR_MEM_POINTER, "ptr=0x123456789000");
    assert_ok(umdContextCreate(f->dev, &other));
    assert_fails(umdMemFree(other, p), UMD_ERR_MEM_POINTER, "reason=\"an allocation of another context\"");
    fx_assert_figure(UMD_ERR_MEM_POINTER, "owner_context=", __FILE__, __LINE__);
    assert_ok(umdContextDestroy(other));
    assert_ok(umdMemFree(f->ctx, p));
    assert_fails(umdMemFree(f->ctx, p), UMD_ERR_MEM_DOUBLE_FREE, "freed_by_tid=");
    assert_ok(umdMemFree(f->ctx, 0));
    q = fx_alloc(f, 64);
    assert_true(q != p); /* addresses are not given out again soon */
    assert_ok(umdMemFree(f->ctx, q));
}

static void memory_map(void **state)
{
    struct fx *f = *state;
    umdDevicePtr p, q, s;
    void *host = NULL, *again = NULL;
    uint32_t back[FX_N];

    assert_ok(umdMemAlloc(f->ctx, sizeof(back), 0, UMD_MEM_HOST_VISIBLE, &p));
    assert_ok(umdMemMap(f->ctx, p, &host));
    assert_ok(umdMemMap(f->ctx, p, &again));
    assert_ptr_equal(host, again);
    for (int i = 0; i < FX_N; i++) {
        assert_int_equal(((uint32_t *)host)[i], 0);
        ((uint32_t *)host)[i] = (uint32_t)i * 7;
    }
    assert_ok(umdMemcpyDtoH(f->stream, back, p, sizeof(back)));
    for (int i = 0; i < FX_N; i++)
        assert_int_equal(back[i], i * 7);
    q = fx_alloc(f, 64);
    assert_fails(umdMemMap(f->ctx, q, &host), UMD_ERR_PARAM_FLAGS, "needed=UMD_MEM_HOST_VISIBLE");
    assert_st(umdMemMap(f->ctx, q, NULL), UMD_ERR_PARAM_NULL);
    assert_st(umdMemMap(f->ctx, q + 1, &host), UMD_ERR_MEM_POINTER);
    assert_ok(umdMemAlloc(f->ctx, 4096, 0, UMD_MEM_SYSTEM, &s));
    assert_ok(umdMemMap(f->ctx, s, &host));
    memset(host, 0x5a, 4096);
    assert_ok(umdMemcpyDtoH(f->stream, back, s, sizeof(back)));
    assert_int_equal(back[17], 0x5a5a5a5a);
    assert_ok(umdMemFree(f->ctx, p));
    assert_ok(umdMemFree(f->ctx, q));
    assert_ok(umdMemFree(f->ctx, s));
}

static void memory_exhausted(void **state)
{
    struct fx *f = *state;
    umdDevicePtr p[128];
    umdDeviceInfo before = { .size_B = sizeof(before) }, after = { .size_B = sizeof(after) };
    uint32_t n = 0;
    umdStatus st = UMD_SUCCESS;

    assert_ok(umdDeviceGetInfo(f->dev, &before));
    while (n < 128 && (st = umdMemAlloc(f->ctx, 1u << 20, 0, 0, &p[n])) == UMD_SUCCESS)
        n++;
    assert_true(st == UMD_ERR_MEM_ALLOC_FAILED || st == UMD_ERR_MEM_FRAGMENTED);
    umdErrorDetail d = fx_detail();
    assert_non_null(strstr(d.figures, "1048576"));
    assert_true(d.hop_count >= 2);
    for (uint32_t i = 0; i < n; i += 2)
        assert_ok(umdMemFree(f->ctx, p[i]));
    umdDevicePtr big = 42;
    assert_st(umdMemAlloc(f->ctx, 16u << 20, 0, 0, &big), UMD_ERR_MEM_FRAGMENTED);
    assert_int_equal(big, 42);
    for (uint32_t i = 1; i < n; i += 2)
        assert_ok(umdMemFree(f->ctx, p[i]));
    assert_ok(umdDeviceGetInfo(f->dev, &after));
    assert_int_equal(before.vram_free_B, after.vram_free_B);
    assert_true(after.vram_high_water_B >= (uint64_t)n << 20);
    assert_ok(umd_fault_plan_set("kmd.vram.alloc=1*fail"));
    assert_st(umdMemAlloc(f->ctx, 4096, 0, 0, &big), UMD_ERR_MEM_ALLOC_FAILED);
    assert_ok(umd_fault_plan_set("sys.alloc=fail"));
    assert_st(umdMemAlloc(f->ctx, 4096, 0, 0, &big), UMD_ERR_MEM_HOST_ALLOC_FAILED);
    assert_int_equal(big, 42);
}

static void contexts_apart(void **state)
{
    struct fx *f = *state;
    umdContext other;
    umdStream s;
    umdEvent e;
    umdDevicePtr p = fx_alloc(f, 64);
    umdKernel k = fx_kernel(f, "nothing");
    uint8_t arg = 0;
    umdLaunchDesc d = { .size_B = sizeof(d), .grid = { 1, 1, 1 }, .block = { 1, 1, 1 }, .args = &arg, .args_B = 1 };

    assert_ok(umdContextCreate(f->dev, &other));
    assert_ok(umdStreamCreate(other, UMD_STREAM_COMPUTE, 0, &s));
    assert_ok(umdEventCreate(f->ctx, &e));
    assert_fails(umdLaunchKernel(s, k, &d), UMD_ERR_HANDLE_CONTEXT, "argument=kernel");
    assert_fails(umdEventRecord(e, s), UMD_ERR_HANDLE_CONTEXT, "argument=event");
    assert_fails(umdStreamWaitEvent(s, e), UMD_ERR_HANDLE_CONTEXT, "argument=event");
    assert_fails(umdMemset(s, p, 0, 4, 64), UMD_ERR_MEM_POINTER, "argument=dst");
    assert_ok(umdContextDestroy(other));
    assert_ok(umdMemFree(f->ctx, p));
}

static void forked(void **state)
{
    struct fx *f = *state;
    int status;

    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        umdContext ctx;
        umdDevicePtr p;
        bool ok = umdContextCreate(f->dev, &ctx) == UMD_ERR_CTX_FORKED && umdMemAlloc(f->ctx, 4096, 0, 0, &p) == UMD_ERR_CTX_FORKED &&
                  umdStreamSynchronize(f->stream, 0) == UMD_ERR_CTX_FORKED && umdInit(NULL) == UMD_ERR_CTX_FORKED &&
                  umdShutdown() == UMD_ERR_CTX_FORKED && umdContextDestroy(f->ctx) == UMD_ERR_CTX_FORKED;
        _exit(ok ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_ok(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE));
}

static void leaked_is_destroyed(void **state)
{
    umdInitDesc d = fx_desc();
    umdDevice dev;
    umdContext ctx;
    umdStream s;

    (void)state;
    assert_ok(umdInit(&d));
    assert_ok(umdDeviceGet(0, &dev));
    assert_ok(umdContextCreate(dev, &ctx));
    assert_ok(umdStreamCreate(ctx, UMD_STREAM_COMPUTE, 1, &s));
    assert_ok(umdShutdown());
    assert_ok(umdInit(&d));
    assert_fails(umdStreamSynchronize(s, 0), UMD_ERR_HANDLE_DESTROYED, "type=stream");
    assert_fails(umdContextDestroy(ctx), UMD_ERR_HANDLE_DESTROYED, "type=context");
    assert_ok(umdShutdown());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(init_arguments),
        cmocka_unit_test(init_environment),
        cmocka_unit_test(init_counts),
        cmocka_unit_test(init_faults),
        cmocka_unit_test(faults_of_a_person),
        cmocka_unit_test_setup_teardown(stepped_is_one_threads, fx_setup_init, fx_teardown_init),
        cmocka_unit_test(leaked_is_destroyed),
        cmocka_unit_test_setup_teardown(device_info, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(handles, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(memory, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(memory_map, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(memory_exhausted, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(contexts_apart, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(handles_full, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(forked, fx_setup, fx_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
