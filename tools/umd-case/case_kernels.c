/* SPDX-License-Identifier: MIT */
/* case_kernels.c - cases of kernels that the device stops, of those that only take long, and of what else a failed job takes along. */
#include <stdatomic.h>
#include <unistd.h>

#include "case.h"

/* The kernel fails with that code and takes its context along, and nothing else: the next context works. */
static void stops(struct scene *s, const char *kernel, uint32_t a, umdStatus want)
{
    umdDevicePtr ptr = case_alloc(s, 4096);

    case_say("\nkernel %s", kernel);
    MUST(case_launch(s, kernel, (struct case_args){ .dst = ptr, .a = a, .n = 32 }, 1));
    GIVES(umdStreamSynchronize(s->stream, UMD_TIMEOUT_INFINITE), want);
    case_close(s);
    case_open(s);
}

static void add_works(struct scene *s)
{
    umdDevicePtr ptr = case_alloc(s, 4096);
    uint32_t value = 0;

    STILL_WORKS(case_launch(s, "add", (struct case_args){ .dst = ptr, .a = 5, .n = 32 }, 1));
    STILL_WORKS(umdMemcpyDtoH(s->stream, &value, ptr, sizeof(value)));
    if (value != 5)
        case_wrong("the sum is %u", value);
}

static void kernel_faults(void)
{
    struct scene s;

    case_start(&s, NULL);
    stops(&s, "scribble", 0, UMD_ERR_HW_ACCESS_FAULT);
    stops(&s, "odd_atomic", 0, UMD_ERR_HW_MISALIGNED);
    stops(&s, "deep", 100000, UMD_ERR_HW_STACK_OVERFLOW);
    stops(&s, "give_up", 77, UMD_ERR_HW_TRAP);
    stops(&s, "bad_barrier", 0, UMD_ERR_HW_TRAP);
    stops(&s, "foreign", 0, UMD_ERR_HW_ILLEGAL_INSTRUCTION);
    add_works(&s);
    case_end(&s);
}

static void spin(void)
{
    struct scene s;

    case_start(&s, NULL);
    stops(&s, "spin", 1, UMD_ERR_HW_SPIN);
    add_works(&s);
    case_end(&s);
}

/* ---- Long, and not stuck ---- */

static _Atomic(int) warnings;

static void on_event(umdContext context, const umdErrorDetail *detail, void *user)
{
    (void)context, (void)user;
    if (detail->code == UMD_ERR_HW_LONG_RUNNING && atomic_fetch_add(&warnings, 1) == 0)
        case_say("callback: %s %s", umdStatusName((umdStatus)detail->code), detail->figures);
}

/* Ten times the watchdog's time and more, with progress: waits end by their time-outs, the job does not. */
static void long_kernel(void)
{
    struct scene s;
    umdInitDesc desc = case_desc();
    umdStatus st = UMD_SUCCESS;
    int waits = 0, in_time = 0;

    desc.watchdog_ns = 1 * MS;
    case_start(&s, &desc);
    MUST(umdContextSetErrorCallback(s.context, on_event, NULL));
    umdDevicePtr ptr = case_alloc(&s, 4096);
    MUST(case_launch(&s, "slow", (struct case_args){ .dst = ptr, .a = 1500, .n = 1024 }, 2048));
    case_say("a job of 2048 workgroups; the watchdog's time is 1 ms, each wait lasts 1 ms at most");
    while ((st = umdStreamSynchronize(s.stream, 1 * MS)) != UMD_SUCCESS && waits++ < 10000) {
        in_time += st == UMD_STATUS_TIMEOUT_PROGRESS;
        if (st == UMD_STATUS_TIMEOUT_PROGRESS && in_time == 1)
            case_gives(st, "umdStreamSynchronize(s.stream, 1 * MS)", UMD_STATUS_TIMEOUT_PROGRESS);
        else if (umdFailed(st) && st != UMD_ERR_WAIT_QUEUED)
            case_must(st, "umdStreamSynchronize(s.stream, 1 * MS)");
    }
    case_say("%d waits ended by their time-outs, the job ended well; the callback was told %d times", in_time, (int)atomic_load(&warnings));
    if (!in_time)
        case_wrong("no wait timed out while the job was running");
    for (int i = 0; i < 1000 && !atomic_load(&warnings); i++)
        usleep(1000); /* the callback comes on a thread of the driver */
    if (!atomic_load(&warnings))
        case_wrong("nobody was told of a long job");
    add_works(&s);
    case_end(&s);
}

/* ---- What follows a failure ---- */

/* One kernel fails; each call after it says so, in whichever stream, and the record of each names the one cause. */
static void cascade(void)
{
    struct scene s;
    umdStream second;
    umdDevicePtr more;

    case_start(&s, NULL);
    umdDevicePtr ptr = case_alloc(&s, 4096);
    MUST(umdStreamCreate(s.context, UMD_STREAM_COMPUTE, 0, &second));
    MUST(case_launch(&s, "give_up", (struct case_args){ .dst = ptr, .a = 7, .n = 32 }, 1));
    GIVES(umdStreamSynchronize(s.stream, UMD_TIMEOUT_INFINITE), UMD_ERR_HW_TRAP);
    GIVES(umdMemAlloc(s.context, 4096, 0, 0, &more), UMD_ERR_CTX_BANNED);
    GIVES(umdMemset(second, ptr, 0, 4, 4096), UMD_ERR_CTX_BANNED);
    STILL_WORKS(umdMemFree(s.context, ptr));
    STILL_WORKS(umdStreamDestroy(second));
    case_close(&s);
    case_open(&s);
    add_works(&s);
    case_end(&s);
}

const struct umd_case kernel_cases[] = {
    { "kernel-faults", "a forbidden write, a crooked atomic, a deep stack, traps, a foreign instruction", kernel_faults },
    { "spin", "a kernel that waits for a value which nobody writes", spin },
    { "long-kernel", "a kernel that takes long and is left alone", long_kernel },
    { "cascade", "one kernel fails, and all calls after it", cascade },
    { 0 },
};
