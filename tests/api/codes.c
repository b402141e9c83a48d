/* SPDX-License-Identifier: MIT */
/* codes.c - runs the case of each status code that this version returns, and shares what the cases have in common. */
#include "codes.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "status.h"
#include "status_cases.inc"

#define DECLARE(name_) void case_##name_(struct code_run *run);
UMD_STATUS_CASES(DECLARE)

#define ROW(name_) { .code = name_, .provoke = case_##name_ },
static struct code_run runs[] = { UMD_STATUS_CASES(ROW) };

struct fx *code_up(struct code_run *run)
{
    assert_null(run->fx);
    fx_setup(&run->fx);
    return run->fx;
}

struct fx *code_up_with(struct code_run *run, umdInitDesc desc)
{
    struct fx *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    assert_ok(umdInit(&desc));
    run->fx = f;
    assert_ok(umdDeviceGet(0, &f->dev));
    assert_ok(umdContextCreate(f->dev, &f->ctx));
    assert_ok(umdModuleLoadFile(f->ctx, fx_kernel_path(), &f->mod));
    assert_ok(umdStreamCreate(f->ctx, UMD_STREAM_COMPUTE, 0, &f->stream));
    return f;
}

void code_saw(struct code_run *run, umdStatus code)
{
    assert_int_equal(code, run->code);
    run->seen = true;
}

void code_init_fails(struct code_run *run, umdInitDesc desc, const char *figure)
{
    umdStatus st = umdInit(&desc);

    assert_int_equal(st, run->code);
    fx_assert_figure(run->code, figure, __FILE__, __LINE__);
    code_saw(run, st);
    assert_ok(umd_fault_plan_set(NULL));
    assert_int_equal(umdShutdown(), UMD_ERR_INIT_REQUIRED); /* nothing was left up */
}

/* ---- Kernel drivers ---- */

static void *module_of(const char *variable)
{
    const char *path = getenv(variable);

    assert_non_null(path);
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!so)
        fail_msg("%s", dlerror());
    return so;
}

struct kmd_between *code_between(void)
{
    struct kmd_between *(*state)(void) = (struct kmd_between * (*)(void))(uintptr_t)dlsym(module_of("PETREL_TEST_BETWEEN"), "kmd_between_state");

    assert_non_null(state);
    return state();
}

void code_use_between(bool use)
{
    assert_int_equal(use ? setenv("PETREL_KMD", getenv("PETREL_TEST_BETWEEN"), 1) : unsetenv("PETREL_KMD"), 0);
}

struct fx *code_up_between(struct code_run *run)
{
    code_use_between(true);
    struct fx *f = code_up(run);
    code_use_between(false);
    return f;
}

const struct petrel_kmd_ops *code_kmd(void)
{
    petrel_kmd_entry_fn entry = (petrel_kmd_entry_fn)(uintptr_t)dlsym(module_of("PETREL_KMD_REAL"), PETREL_KMD_ENTRY_SYMBOL);

    assert_non_null(entry);
    return entry();
}

/* ---- Work ---- */

umdKernel code_kernel(struct fx *f, const char *name)
{
    const char *path = getenv("PETREL_TEST_CODE_KERNELS");
    umdModule mod;
    umdKernel k = { 0 };

    assert_non_null(path);
    assert_ok(umdModuleLoadFile(f->ctx, path, &mod));
    assert_ok(umdModuleGetKernel(mod, name, &k));
    return k;
}

void code_long_work(struct fx *f, umdStream stream)
{
    struct fx_args args = { 0 };
    umdLaunchDesc d = { .size_B = sizeof(d), .grid = { 65535, 65535, 1 }, .block = { 1, 1, 1 }, .args = &args, .args_B = sizeof(args) };
    umdStatus st = UMD_ERR_WAIT_QUEUED;

    assert_ok(umdLaunchKernel(stream, fx_kernel(f, "axpy"), &d));
    for (int i = 0; i < 10000 && st == UMD_ERR_WAIT_QUEUED; i++) /* a loaded host may start it late */
        st = umdStreamSynchronize(stream, 100000);
    assert_st(st, UMD_STATUS_TIMEOUT_PROGRESS);
}

void code_on_error(umdContext context, const umdErrorDetail *detail, void *user)
{
    struct code_told *told = user;

    (void)context;
    if (detail->code == told->want && !told->came) {
        told->detail = *detail;
        told->came = true;
    }
}

void code_await_told(struct fx *f, struct code_told *told)
{
    for (int i = 0; i < 20000 && !told->came; i++) {
        umdStatus st = umdStreamSynchronize(f->stream, 1000000); /* stepped mode: time passes and events are heard inside calls */
        (void)st;
        if (!fx_stepped())
            usleep(1000);
    }
    assert_true(told->came);
    assert_int_equal(told->detail.code, told->want);
}

/* ---- The runner ---- */

static void run_case(void **state)
{
    struct code_run *run = *state;

    run->provoke(run);
    assert_true(run->seen); /* fails here: the case does not provoke its code */
}

/* Field by field: the event thread may be reading. */
void code_tell(const struct kmd_between *what)
{
    struct kmd_between *b = code_between();

    b->mute = what->mute;
    b->cmd = what->cmd;
    b->error = what->error;
    b->code = what->code;
    b->stage = what->stage;
    b->cycle = what->cycle;
    b->no_devices = what->no_devices;
    b->va_end = what->va_end;
}

static int end_case(void **state)
{
    struct code_run *run = *state;
    struct umd_record_counts counts;

    code_tell(&(struct kmd_between){ 0 });
    code_use_between(false);
    if (run->fx)
        fx_teardown(&run->fx);
    umd_record_get_counts(&counts);
    assert_int_equal(counts.swallowed, 0);
    return 0;
}

/* Without an argument all; else the one of that name. */
int main(int argc, char **argv)
{
    enum { COUNT = sizeof(runs) / sizeof(runs[0]) };
    static struct CMUnitTest tests[COUNT];
    size_t n = 0;

    for (size_t i = 0; i < COUNT; i++)
        if (argc < 2 || !strcmp(argv[1], umdStatusName(runs[i].code)))
            tests[n++] = (struct CMUnitTest){ .name = umdStatusName(runs[i].code), .test_func = run_case, .teardown_func = end_case,
                                              .initial_state = &runs[i] };
    if (!n) {
        fprintf(stderr, "%s is no code that this version returns\n", argv[1]);
        return 1;
    }
    return _cmocka_run_group_tests("codes", tests, n, NULL, NULL);
}
