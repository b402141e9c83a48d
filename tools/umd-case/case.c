/* SPDX-License-Identifier: MIT */
/* case.c - what the cases of umd-case share: a started stack, calls that must work, calls that must fail. */
#include "case.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "umd-tool.h"

void case_say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
    fflush(stdout); /* a case may fork, or end without exit() */
}

void case_wrong(const char *fmt, ...)
{
    va_list ap;

    fflush(stdout);
    fputs("umd-case: this did not go as it should: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    _exit(CASE_WRONG); /* not exit(): the stack may be in any state */
}

/* The story of the thread's last failure, as umdErrorDetailFormat tells it. */
static void tell(void)
{
    umdErrorDetail d = { .size_B = sizeof(d) };
    char text[8192];

    if (umdGetLastErrorDetail(&d) != UMD_SUCCESS)
        return;
    umdErrorDetailFormat(&d, text, sizeof(text));
    fputs(text, stdout);
    fflush(stdout);
}

void case_must(umdStatus st, const char *call)
{
    if (st == UMD_SUCCESS)
        return;
    tell();
    case_wrong("%s returned %s", call, umdStatusName(st));
}

void case_gives(umdStatus st, const char *call, umdStatus want)
{
    case_say("\n%s -> %s (%d)", call, umdStatusName(st), (int)st);
    if (umdFailed(st))
        tell();
    if (st != want)
        case_wrong("%s returned %s, not %s", call, umdStatusName(st), umdStatusName(want));
}

void case_works(umdStatus st, const char *call)
{
    case_must(st, call);
    case_say("still works: %s", call);
}

/* ---- The stack ---- */

umdInitDesc case_desc(void)
{
    return (umdInitDesc){ .size_B = sizeof(umdInitDesc), .version = UMD_VERSION, .vram_B = 64 * MIB, .watchdog_ns = 5 * MS, .seed = 1 };
}

void case_start(struct scene *s, const umdInitDesc *desc)
{
    umdInitDesc d = desc ? *desc : case_desc();
    umdStatus st = umdInit(&d);

    if (umdFailed(st)) {
        tell();
        fprintf(stderr, "umd-case: the stack cannot be started: %s\n", umdStatusName(st));
        exit(CASE_ENVIRONMENT);
    }
    *s = (struct scene){ 0 };
    MUST(umdDeviceGet(0, &s->device));
    case_open(s);
}

void case_open(struct scene *s)
{
    char path[1024];

    if (!tool_kernel_path("case.elf", path, sizeof(path))) {
        fflush(stdout);
        tool_say("the kernels are missing: no case.elf in %s", path);
        exit(CASE_ENVIRONMENT);
    }
    MUST(umdContextCreate(s->device, &s->context));
    MUST(umdModuleLoadFile(s->context, path, &s->module));
    MUST(umdStreamCreate(s->context, UMD_STREAM_COMPUTE, 0, &s->stream));
}

/* A context takes all that it owns with it. */
void case_close(struct scene *s)
{
    MUST(umdContextDestroy(s->context));
}

void case_end(struct scene *s)
{
    case_close(s);
    MUST(umdShutdown());
}

umdKernel case_kernel(const struct scene *s, const char *name)
{
    umdKernel kernel = { 0 };

    MUST(umdModuleGetKernel(s->module, name, &kernel));
    return kernel;
}

umdStatus case_launch(const struct scene *s, const char *kernel, struct case_args args, uint32_t groups)
{
    umdLaunchDesc d = {
        .size_B = sizeof(d), .grid = { groups, 1, 1 }, .block = { 32, 1, 1 }, .args = &args, .args_B = sizeof(args),
    };
    return umdLaunchKernel(s->stream, case_kernel(s, kernel), &d);
}

umdDevicePtr case_alloc(const struct scene *s, uint64_t size_B)
{
    umdDevicePtr ptr = 0;

    MUST(umdMemAlloc(s->context, size_B, 0, 0, &ptr));
    return ptr;
}
