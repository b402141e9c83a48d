/* SPDX-License-Identifier: MIT */
/* case_waits.c - cases of waits and queues: time-outs at each stage, a wait that another thread ends, a queue that is full. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "case.h"

/* Starts a kernel that works for longer than any of these cases, and waits until it runs. */
static void begin_endless(const struct scene *s, umdDevicePtr ptr)
{
    umdStatus st = UMD_ERR_WAIT_QUEUED;

    MUST(case_launch(s, "slow", (struct case_args){ .dst = ptr, .a = 100, .n = 1024 }, 1u << 30));
    for (int i = 0; i < 10000 && st == UMD_ERR_WAIT_QUEUED; i++) /* a busy host may start it late */
        st = umdStreamSynchronize(s->stream, MS / 10);
    case_gives(st, "umdStreamSynchronize(s->stream, MS / 10)", UMD_STATUS_TIMEOUT_PROGRESS);
}

static void waits(void)
{
    struct scene s;
    umdStream behind;
    umdEvent event, idle;

    case_start(&s, NULL);
    umdDevicePtr ptr = case_alloc(&s, 4096);
    MUST(umdStreamCreate(s.context, UMD_STREAM_COMPUTE, 0, &behind));
    MUST(umdEventCreate(s.context, &event));
    MUST(umdEventCreate(s.context, &idle));

    case_say("the job runs and makes progress");
    begin_endless(&s, ptr);
    case_say("\nthe last job of the stream is behind it");
    MUST(umdMemset(s.stream, ptr, 1, 4, 4096));
    GIVES(umdStreamSynchronize(s.stream, MS / 10), UMD_ERR_WAIT_QUEUED);
    case_say("\nanother stream waits for an event behind it");
    MUST(umdEventRecord(event, s.stream));
    MUST(umdStreamWaitEvent(behind, event));
    GIVES(umdStreamSynchronize(behind, MS / 10), UMD_ERR_WAIT_DEPENDENCY);
    case_say("\nan event that nobody recorded");
    GIVES(umdEventSynchronize(idle, MS / 10), UMD_ERR_WAIT_NOT_SUBMITTED);
    case_say("\nthe stream that all wait for is destroyed: its work is cancelled, and what depended on it");
    MUST(umdStreamDestroy(s.stream));
    GIVES(umdStreamSynchronize(behind, UMD_TIMEOUT_INFINITE), UMD_ERR_EXEC_CANCELLED);
    STILL_WORKS(umdMemset(behind, ptr, 3, 4, 4096));
    STILL_WORKS(umdStreamSynchronize(behind, UMD_TIMEOUT_INFINITE));
    case_end(&s);
}

/* The compute unit stops. A wait that ends before the watchdog has decided says that nothing moves; the next one hears the verdict. */
static void stalled(void)
{
    struct scene s;
    umdInitDesc desc = case_desc();

    desc.watchdog_ns = 2000 * MS;
    desc.faults = "hw.cu.hang[nth=1]=fire";
    case_start(&s, &desc);
    umdDevicePtr ptr = case_alloc(&s, 4096);
    MUST(case_launch(&s, "add", (struct case_args){ .dst = ptr, .a = 1, .n = 32 }, 1));
    GIVES(umdStreamSynchronize(s.stream, 500 * MS), UMD_ERR_WAIT_STALLED);
    GIVES(umdStreamSynchronize(s.stream, UMD_TIMEOUT_INFINITE), UMD_ERR_HW_HANG);
    case_close(&s);
    case_open(&s);
    ptr = case_alloc(&s, 4096);
    STILL_WORKS(case_launch(&s, "add", (struct case_args){ .dst = ptr, .a = 1, .n = 32 }, 1));
    STILL_WORKS(umdStreamSynchronize(s.stream, UMD_TIMEOUT_INFINITE));
    case_end(&s);
}

static void *wait_without_end(void *arg)
{
    GIVES(umdStreamSynchronize(*(umdStream *)arg, UMD_TIMEOUT_INFINITE), UMD_ERR_WAIT_INTERRUPTED);
    return NULL;
}

static void interrupted(void)
{
    const char *mode = getenv("PETREL_MODE");
    struct scene s;
    pthread_t thread;

    if (mode && strstr(mode, "stepped")) {
        fputs("umd-case: this case takes two threads, and stepped mode is one thread's: unset PETREL_MODE\n", stderr);
        exit(CASE_ENVIRONMENT);
    }
    case_start(&s, NULL);
    umdDevicePtr ptr = case_alloc(&s, 4096);
    begin_endless(&s, ptr);
    if (pthread_create(&thread, NULL, wait_without_end, &s.stream) != 0)
        case_wrong("no thread can be started");
    usleep(200000); /* until it waits */
    case_say("the thread waits; its stream is destroyed");
    MUST(umdStreamDestroy(s.stream));
    pthread_join(thread, NULL);
    MUST(umdStreamCreate(s.context, UMD_STREAM_COMPUTE, 0, &s.stream));
    STILL_WORKS(umdMemset(s.stream, ptr, 1, 4, 4096));
    STILL_WORKS(umdStreamSynchronize(s.stream, UMD_TIMEOUT_INFINITE));
    case_end(&s);
}

/* The kernel driver takes no job for a second: the driver tries again a thousand times, a millisecond apart, before it says so. */
static void queue_full(void)
{
    struct scene s;
    umdInitDesc desc = case_desc();

    desc.faults = "kmd.ring.full=1001*fail";
    case_start(&s, &desc);
    umdDevicePtr ptr = case_alloc(&s, 4096);
    GIVES(umdMemset(s.stream, ptr, 1, 4, 4096), UMD_ERR_SUBMIT_RING_FULL);
    STILL_WORKS(umdMemset(s.stream, ptr, 1, 4, 4096));
    STILL_WORKS(umdStreamSynchronize(s.stream, UMD_TIMEOUT_INFINITE));
    case_end(&s);
}

const struct umd_case wait_cases[] = {
    { "waits", "a wait times out at each stage, while the device lives", waits },
    { "stalled", "a wait times out on a job that stands still; then the watchdog's verdict", stalled },
    { "interrupted", "another thread destroys the stream that is waited for", interrupted },
    { "queue-full", "the kernel driver has no room for a job, for longer than the driver tries", queue_full },
    { 0 },
};
