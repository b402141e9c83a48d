/* SPDX-License-Identifier: MIT */
/* test_api_oom.c - each host allocation, map, file and thread of a whole API program refused in turn; fork; signals; races. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <pthread.h>

#include <umd/umd.h>
#include <umd/umd_log.h>

#include "fault_plan.h"
#include "record.h"
#include "sys.h"

enum { WORDS = 256, ALLOCS = 160, OTHERS = 8, RACERS = 4, ROUNDS = 30 };

struct mix_args { umdDevicePtr dst, src; uint32_t a, n; };

struct program {
    umdContext ctx;
    umdStream stream;
    umdEvent event;
    umdModule module;
    umdKernel mix;
    umdDevicePtr dst, src;
};

/* The thread sanitizer ends children of programs with threads unless told otherwise. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "die_after_fork=0";
}

static const char *kernels_path;

static uint64_t swallowed_now(void)
{
    struct umd_record_counts c;

    umd_record_get_counts(&c);
    return c.swallowed;
}

/* dst = dst * 3 + src + index on the device, compared on the host. Stops at the first failure; what exists is left for umdShutdown. */
static umdStatus run(struct program *p, umdDevice dev)
{
    uint32_t in[WORDS], out[WORDS];
    void *host;
    umdStatus st = umdContextCreate(dev, &p->ctx);

    for (uint32_t i = 0; i < WORDS; i++)
        in[i] = i * 7u;
    if (st || (st = umdStreamCreate(p->ctx, UMD_STREAM_COMPUTE, 0, &p->stream)) || (st = umdEventCreate(p->ctx, &p->event)) ||
        (st = umdModuleLoadFile(p->ctx, kernels_path, &p->module)) || (st = umdModuleGetKernel(p->module, "mix", &p->mix)) ||
        (st = umdMemAlloc(p->ctx, sizeof(out), 0, 0, &p->dst)) || (st = umdMemAlloc(p->ctx, sizeof(in), 0, UMD_MEM_HOST_VISIBLE, &p->src)) ||
        (st = umdMemMap(p->ctx, p->src, &host)))
        return st;
    memcpy(host, in, sizeof(in));
    struct mix_args args = { p->dst, p->src, 3, WORDS };
    umdLaunchDesc launch = { .size_B = sizeof(launch), .grid = { WORDS / 64, 1, 1 }, .block = { 64, 1, 1 }, .args = &args, .args_B = sizeof(args) };
    if ((st = umdMemset(p->stream, p->dst, 1, 4, sizeof(out))) || (st = umdLaunchKernel(p->stream, p->mix, &launch)) ||
        (st = umdEventRecord(p->event, p->stream)) || (st = umdEventSynchronize(p->event, UMD_TIMEOUT_INFINITE)) ||
        (st = umdMemcpyDtoH(p->stream, out, p->dst, sizeof(out))))
        return st;
    for (uint32_t i = 0; i < WORDS; i++)
        assert_int_equal(out[i], 3u + in[i] + i);
    if ((st = umdMemFree(p->ctx, p->src)) || (st = umdEventDestroy(p->event)) || (st = umdModuleUnload(p->module)) ||
        (st = umdStreamDestroy(p->stream)))
        return st;
    return umdContextDestroy(p->ctx);
}

/* Start, program, end. Value: the first failure; where a start failed nothing is up. */
static umdStatus whole(const char *faults, bool stepped)
{
    umdInitDesc desc = { .size_B = sizeof(desc), .version = UMD_VERSION, .stepped = stepped, .seed = 1, .faults = faults, .vram_B = 64u << 20 };
    struct program p = { 0 };
    umdDevice dev = { 0 };

    umdStatus st = umdInit(&desc);
    if (st)
        return st;
    st = umdDeviceGet(0, &dev);
    if (!st)
        st = run(&p, dev);
    assert_int_equal(umd_fault_plan_set(""), UMD_SUCCESS);
    assert_int_equal(umdShutdown(), UMD_SUCCESS);
    return st;
}

/* Host memory is what was wanting, in the record or as its cause; whatever call or job it was that met it. */
static bool is_want_of_memory(umdErrorDetail d)
{
    for (int depth = 0; depth < 8; depth++) {
        if (d.code == UMD_ERR_MEM_HOST_ALLOC_FAILED || d.origin_code == UMD_ERR_MEM_HOST_ALLOC_FAILED)
            return true;
        if (!d.cause.seq || umdGetErrorDetailById(d.cause, &d) != UMD_SUCCESS)
            return false;
    }
    return false;
}

/* attr: "nth" refuses one, "space" all that come after so many. */
static void each_in_turn(const char *site, const char *attr, bool stepped, uint32_t hits)
{
    uint64_t bytes0, blocks0, bytes, blocks;
    uint32_t failures = 0, k;
    char spec[96];

    assert_int_equal(whole("", stepped), UMD_SUCCESS);
    umd_alloc_live(&bytes0, &blocks0);
    const uint64_t swallowed = swallowed_now();
    for (k = 1; k <= hits; k++) {
        snprintf(spec, sizeof(spec), "%s[%s=%u]=fail", site, attr, k);
        umdStatus st = whole(spec, stepped);
        if (umdFailed(st)) {
            umdErrorDetail d = { .size_B = sizeof(d) };
            assert_int_equal(umdGetLastErrorDetail(&d), UMD_SUCCESS);
            if (d.code != (int32_t)st || !strcmp(d.api, ""))
                fail_msg("%s hit %u: the call returned %s, the detail says %s", site, k, umdStatusName(st), umdStatusName((umdStatus)d.code));
            if (st == UMD_ERR_INTERNAL || st == UMD_ERR_INTERNAL_CODE)
                fail_msg("%s hit %u: %s of %s", site, k, umdStatusName(st), d.func);
            if (!strcmp(site, "sys.alloc") && !is_want_of_memory(d))
                fail_msg("%s hit %u: %s does not tell of want of memory", site, k, umdStatusName(st));
            failures++;
        } else {
            assert_int_equal(st, UMD_SUCCESS);
        }
        assert_int_equal(umd_fault_plan_set(""), UMD_SUCCESS);
        umd_alloc_live(&bytes, &blocks);
        if (blocks != blocks0 || bytes != bytes0)
            fail_msg("%s hit %u (%s): %d blocks leaked", site, k, umdStatusName(st), (int)(blocks - blocks0));
        if (swallowed_now() != swallowed)
            fail_msg("%s hit %u (%s): a record was swallowed", site, k, umdStatusName(st));
    }
    assert_int_equal(whole("", stepped), UMD_SUCCESS);
    assert_true(failures > 0);
    print_message("%s: %u of %u runs ended with an error\n", site, failures, hits);
}

static void test_alloc(void **state)
{
    (void)state;
    each_in_turn("sys.alloc", "nth", true, ALLOCS);
}

static void test_no_more_alloc(void **state)
{
    (void)state;
    each_in_turn("sys.alloc", "space", true, ALLOCS);
}

static void test_mmap(void **state)
{
    (void)state;
    each_in_turn("sys.mmap", "nth", true, OTHERS);
}

static void test_open(void **state)
{
    (void)state;
    each_in_turn("sys.open", "nth", true, OTHERS);
}

static void test_thread(void **state)
{
    (void)state;
    each_in_turn("sys.thread.create", "nth", false, OTHERS);
}

/* The first call of a child says that it is one, at once; the parent goes on. */
static void test_fork(void **state)
{
    umdInitDesc desc = { .size_B = sizeof(desc), .version = UMD_VERSION, .vram_B = 64u << 20 };
    struct program p = { 0 };
    uint32_t count = 7;
    umdDevice dev;
    int status;

    (void)state;
    assert_int_equal(umdInit(&desc), UMD_SUCCESS);
    assert_int_equal(umdDeviceGet(0, &dev), UMD_SUCCESS);
    assert_int_equal(umdContextCreate(dev, &p.ctx), UMD_SUCCESS);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        bool ok = umdDeviceGetCount(&count) == UMD_ERR_CTX_FORKED && count == 7 && umdContextDestroy(p.ctx) == UMD_ERR_CTX_FORKED &&
            umdInit(&desc) == UMD_ERR_CTX_FORKED && umdShutdown() == UMD_ERR_CTX_FORKED;
        _exit(ok ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(umdContextDestroy(p.ctx), UMD_SUCCESS);
    assert_int_equal(run(&p, dev), UMD_SUCCESS);
    assert_int_equal(umdShutdown(), UMD_SUCCESS);
}

static _Atomic(uint32_t) ticks;

static void on_tick(int sig)
{
    (void)sig;
    atomic_fetch_add(&ticks, 1);
}

/* A signal each millisecond, without SA_RESTART, ends no call. */
static void test_signals(void **state)
{
    struct sigaction on = { .sa_handler = on_tick }, old;
    const struct itimerval each_ms = { { 0, 1000 }, { 0, 1000 } }, off = { { 0, 0 }, { 0, 0 } };

    (void)state;
    atomic_store(&ticks, 0);
    assert_int_equal(sigaction(SIGALRM, &on, &old), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &each_ms, NULL), 0);
    for (int i = 0; i < 100 && (i < 3 || atomic_load(&ticks) < 5); i++)
        assert_int_equal(whole("", false), UMD_SUCCESS);
    assert_int_equal(setitimer(ITIMER_REAL, &off, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);
    assert_true(atomic_load(&ticks) >= 5);
}

/* ---- Races: all threads work on the same handles, any of which another one destroys ---- */

struct race {
    pthread_mutex_t lock;
    umdContext ctx;
    umdStream stream;
    umdModule module;
    umdDevicePtr mem;
    umdDevice dev;
    _Atomic(int) wrong;
};

/* What may come back when another thread destroys what the call works with. */
static bool expected(umdStatus st)
{
    return !umdFailed(st) || st == UMD_ERR_HANDLE_DESTROYED || st == UMD_ERR_HANDLE_INVALID || st == UMD_ERR_CTX_DESTROYED ||
        st == UMD_ERR_WAIT_INTERRUPTED || st == UMD_ERR_HANDLE_CONTEXT || st == UMD_ERR_MEM_POINTER;
}

static void check(struct race *r, umdStatus st, const char *what)
{
    if (expected(st))
        return;
    print_error("%s -> %s\n", what, umdStatusName(st));
    atomic_store(&r->wrong, (int)st);
}

static void make_new(struct race *r)
{
    struct program p = { 0 };

    check(r, umdContextCreate(r->dev, &p.ctx), "create context");
    check(r, umdStreamCreate(p.ctx, UMD_STREAM_COMPUTE, 0, &p.stream), "create stream");
    check(r, umdModuleLoadFile(p.ctx, kernels_path, &p.module), "load");
    check(r, umdMemAlloc(p.ctx, 4096, 0, 0, &p.dst), "alloc");
    pthread_mutex_lock(&r->lock);
    umdContext old = r->ctx;
    r->ctx = p.ctx;
    r->stream = p.stream;
    r->module = p.module;
    r->mem = p.dst;
    pthread_mutex_unlock(&r->lock);
    if (old.id)
        check(r, umdContextDestroy(old), "destroy context");
}

static void *racer(void *arg)
{
    struct race *r = arg;

    for (int i = 0; i < ROUNDS; i++) {
        struct race now;
        umdKernel mix = { 0 };
        pthread_mutex_lock(&r->lock);
        now.stream = r->stream;
        now.module = r->module;
        now.mem = r->mem;
        now.ctx = r->ctx;
        pthread_mutex_unlock(&r->lock);
        struct mix_args args = { now.mem, now.mem, 3, 64 };
        umdLaunchDesc launch = { .size_B = sizeof(launch), .grid = { 1, 1, 1 }, .block = { 64, 1, 1 }, .args = &args, .args_B = sizeof(args) };
        check(r, umdModuleGetKernel(now.module, "mix", &mix), "kernel");
        if (mix.id)
            check(r, umdLaunchKernel(now.stream, mix, &launch), "launch");
        check(r, umdStreamSynchronize(now.stream, UMD_TIMEOUT_INFINITE), "synchronize");
        if (i % 7 == 3)
            check(r, umdModuleUnload(now.module), "unload");
        if (i % 7 == 5)
            check(r, umdStreamDestroy(now.stream), "destroy stream");
        if (i % 7 == 6)
            make_new(r);
    }
    return NULL;
}

static void test_races(void **state)
{
    umdInitDesc desc = { .size_B = sizeof(desc), .version = UMD_VERSION, .vram_B = 64u << 20 };
    struct race r = { .lock = PTHREAD_MUTEX_INITIALIZER };
    uint64_t bytes0, blocks0, bytes, blocks;
    pthread_t threads[RACERS];

    (void)state;
    umd_alloc_live(&bytes0, &blocks0);
    assert_int_equal(umdInit(&desc), UMD_SUCCESS);
    assert_int_equal(umdDeviceGet(0, &r.dev), UMD_SUCCESS);
    make_new(&r);
    for (int i = 0; i < RACERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, racer, &r), 0);
    for (int i = 0; i < RACERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(umdShutdown(), UMD_SUCCESS);
    assert_int_equal(atomic_load(&r.wrong), 0);
    umd_alloc_live(&bytes, &blocks);
    assert_int_equal(blocks, blocks0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alloc), cmocka_unit_test(test_no_more_alloc), cmocka_unit_test(test_mmap), cmocka_unit_test(test_open), cmocka_unit_test(test_thread),
        cmocka_unit_test(test_fork), cmocka_unit_test(test_signals), cmocka_unit_test(test_races),
    };

    if (argc != 2) {
        fprintf(stderr, "usage: %s KERNELS.elf\n", argv[0]);
        return 1;
    }
    kernels_path = argv[1];
    if (umdLogSetConsole("off") != UMD_SUCCESS)
        return 1;
    return cmocka_run_group_tests_name("api_oom", tests, NULL, NULL);
}
