/* SPDX-License-Identifier: MIT */
/* fixtures.c - the started stack of API tests. */
#include "fixtures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault_plan.h"
#include "record.h"

/* A test forks, and the child's first record starts the thread of its log. The runtime looks this up by symbol. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "die_after_fork=0";
}

bool fx_stepped(void)
{
    const char *mode = getenv("PETREL_MODE");
    return mode && strstr(mode, "stepped");
}

const char *fx_kernel_path(void)
{
    const char *path = getenv("PETREL_TEST_KERNELS");
    assert_non_null(path);
    return path;
}

umdInitDesc fx_desc(void)
{
    return (umdInitDesc){ .size_B = sizeof(umdInitDesc), .version = UMD_VERSION, .vram_B = 64u << 20, .watchdog_ns = 5000000, .seed = 1 };
}

int fx_setup_init(void **state)
{
    struct fx *f = calloc(1, sizeof(*f));
    struct umd_record_counts counts;
    umdInitDesc d = fx_desc();

    assert_non_null(f);
    umd_record_get_counts(&counts);
    f->swallowed = counts.swallowed;
    assert_ok(umd_fault_plan_set(NULL));
    assert_ok(umdInit(&d));
    assert_ok(umdDeviceGet(0, &f->dev));
    *state = f;
    return 0;
}

int fx_teardown_init(void **state)
{
    struct fx *f = *state;
    struct umd_record_counts counts;

    assert_ok(umd_fault_plan_set(NULL));
    assert_ok(umdShutdown());
    umd_record_get_counts(&counts);
    assert_int_equal(counts.swallowed, f->swallowed);
    free(f);
    return 0;
}

int fx_setup(void **state)
{
    fx_setup_init(state);
    struct fx *f = *state;

    assert_ok(umdContextCreate(f->dev, &f->ctx));
    assert_ok(umdModuleLoadFile(f->ctx, fx_kernel_path(), &f->mod));
    assert_ok(umdStreamCreate(f->ctx, UMD_STREAM_COMPUTE, 0, &f->stream));
    return 0;
}

int fx_teardown(void **state)
{
    struct fx *f = *state;
    umdDeviceInfo info = { .size_B = sizeof(info) };

    assert_ok(umd_fault_plan_set(NULL));
    assert_ok(umdContextDestroy(f->ctx));
    assert_ok(umdDeviceGetInfo(f->dev, &info));
    return fx_teardown_init(state);
}

umdKernel fx_kernel(struct fx *f, const char *name)
{
    umdKernel k = { 0 };

    assert_ok(umdModuleGetKernel(f->mod, name, &k));
    return k;
}

umdStatus fx_launch(umdStream stream, umdKernel kernel, const struct fx_args *args, uint32_t groups)
{
    umdLaunchDesc d = { .size_B = sizeof(d), .grid = { groups, 1, 1 }, .block = { 32, 1, 1 }, .args = args, .args_B = sizeof(*args) };
    return umdLaunchKernel(stream, kernel, &d);
}

umdDevicePtr fx_alloc(struct fx *f, uint64_t size_B)
{
    umdDevicePtr p = 0;

    assert_ok(umdMemAlloc(f->ctx, size_B, 0, 0, &p));
    assert_true(p != 0);
    return p;
}

umdErrorDetail fx_detail(void)
{
    umdErrorDetail d = { .size_B = sizeof(d) };

    assert_int_equal(umdGetLastErrorDetail(&d), UMD_SUCCESS);
    return d;
}

bool fx_caused_by(const umdErrorDetail *detail, umdStatus code)
{
    umdErrorDetail d = *detail;

    for (int depth = 0; depth < 8; depth++) {
        if (d.code == (int32_t)code || d.origin_code == (int32_t)code)
            return true;
        d.size_B = sizeof(d);
        if (!d.cause.seq || umdGetErrorDetailById(d.cause, &d) != UMD_SUCCESS)
            return false;
    }
    return false;
}

uint8_t *fx_read_file(const char *path, size_t *size_out)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    long n = ftell(f);
    rewind(f);
    uint8_t *p = malloc((size_t)n);
    assert_non_null(p);
    assert_int_equal(fread(p, 1, (size_t)n, f), n);
    fclose(f);
    *size_out = (size_t)n;
    return p;
}

void fx_assert_status(umdStatus got, umdStatus want, const char *expr, const char *file, int line)
{
    if (got == want)
        return;
    static char text[8192];
    umdErrorDetail d = { .size_B = sizeof(d) };
    text[0] = '\0';
    if (umdGetLastErrorDetail(&d) == UMD_SUCCESS)
        umdErrorDetailFormat(&d, text, sizeof(text));
    print_error("%s -> %s, expected %s\n%s\n", expr, umdStatusName(got), umdStatusName(want), text);
    _fail(file, line);
}

void fx_assert_figure(umdStatus code, const char *figure, const char *file, int line)
{
    umdErrorDetail d = { .size_B = sizeof(d) };

    if (umdGetLastErrorDetail(&d) == UMD_SUCCESS && d.code == (int32_t)code && d.end == UMD_RECORD_DELIVERED && strstr(d.figures, figure))
        return;
    print_error("record has code %s, figures \"%s\"; expected %s with \"%s\"\n", umdStatusName((umdStatus)d.code), d.figures, umdStatusName(code),
                figure);
    _fail(file, line);
}
