/* SPDX-License-Identifier: MIT */
/* case_process.c - cases of the process around the driver: fork, signals, a kill, a flood of failures, values that are no code. */
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <umd/umd_log.h>

#include "case.h"

static void in_child(struct scene *s)
{
    umdDevicePtr ptr;

    case_say("in the child:");
    GIVES(umdMemAlloc(s->context, 4096, 0, 0, &ptr), UMD_ERR_CTX_FORKED);
    umdLogFlush(1000);
    _exit(CASE_DONE); /* exit() would run what the parent registered */
}

static void fork_case(void)
{
    struct scene s;
    int status = 0;

    case_start(&s, NULL);
    umdDevicePtr ptr = case_alloc(&s, 4096);
    pid_t pid = fork();
    if (pid < 0)
        case_wrong("fork failed");
    if (pid == 0)
        in_child(&s);
    if (waitpid(pid, &status, 0) != pid || status != 0)
        case_wrong("the child ended with %d", status);
    case_say("\nin the parent:");
    STILL_WORKS(umdMemset(s.stream, ptr, 1, 4, 4096));
    STILL_WORKS(umdStreamSynchronize(s.stream, UMD_TIMEOUT_INFINITE));
    case_end(&s);
}

/* ---- Signals ---- */

static _Atomic(unsigned) ticks;

static void on_tick(int sig)
{
    (void)sig;
    atomic_fetch_add(&ticks, 1);
}

/* A timer every millisecond, without SA_RESTART: every system call of the driver may be interrupted, and no call may fail for it. */
static void signals(void)
{
    struct scene s;
    struct sigaction tick = { .sa_handler = on_tick };
    struct itimerval every = { { 0, 1000 }, { 0, 1000 } }, never = { 0 };
    struct timespec now, end;

    sigaction(SIGALRM, &tick, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    case_start(&s, NULL);
    case_say("started under a signal a millisecond");
    umdDevicePtr ptr = case_alloc(&s, 4096);
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += 1;
    unsigned jobs = 0;
    do {
        MUST(case_launch(&s, "add", (struct case_args){ .dst = ptr, .a = 1, .n = 1024 }, 32));
        MUST(umdStreamSynchronize(s.stream, UMD_TIMEOUT_INFINITE));
        jobs++;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
    setitimer(ITIMER_REAL, &never, NULL);
    case_say("%u jobs and waits, all well, under %u signals", jobs, (unsigned)atomic_load(&ticks));
    if (!atomic_load(&ticks))
        case_wrong("no signal came");
    STILL_WORKS(umdStreamSynchronize(s.stream, UMD_TIMEOUT_INFINITE));
    case_end(&s);
}

/* ---- No log, and no time to write one ---- */

static void killed(void)
{
    struct scene s;
    umdInitDesc desc = case_desc();

    desc.faults = "hw.bus.off[nth=1]=fire";
    case_start(&s, &desc);
    umdDevicePtr ptr = case_alloc(&s, 4096);
    umdStatus st = case_launch(&s, "add", (struct case_args){ .dst = ptr, .a = 1, .n = 32 }, 1);
    if (st == UMD_SUCCESS)
        st = umdStreamSynchronize(s.stream, UMD_TIMEOUT_INFINITE);
    case_gives(st, "umdStreamSynchronize(s.stream, UMD_TIMEOUT_INFINITE)", UMD_ERR_DEV_LOST_OFF_BUS);
    GIVES(umdMemAlloc(s.context, 4096, 0, 0, &ptr), UMD_ERR_DEV_LOST_OFF_BUS);
    STILL_WORKS(umdStreamDestroy(s.stream));
    case_say("killed, as by the out-of-memory killer; umd-log emergency tells what was");
    raise(SIGKILL);
}

/* ---- A flood ---- */

static uint64_t records(void)
{
    umdLogStats stats;

    umdLogFlush(10000);
    umdLogGetStats(&stats);
    return stats.records;
}

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* The same failure over and over: a few records in the log, and a count. */
static void flood(const struct scene *s)
{
    enum { CALLS = 20000 };
    umdErrorDetail d = { .size_B = sizeof(d) };
    umdStream bad = { 4711 };
    uint64_t before = records();
    double start = now_us();

    for (int i = 0; i < CALLS; i++) {
        if (umdStreamQuery(bad) != UMD_ERR_HANDLE_INVALID)
            case_wrong("call %d did not fail as the others", i);
    }
    double us = (now_us() - start) / CALLS;
    uint64_t lines = records() - before;
    MUST(umdGetLastErrorDetail(&d));
    case_say("%d failures of one kind: %" PRIu64 " records in the log, repeat=%u in the last, %.2f us a call", CALLS, lines, d.repeat, us);
    if (lines > 100)
        case_wrong("repeats are not folded");
    GIVES(umdStreamQuery(bad), UMD_ERR_HANDLE_INVALID);
    STILL_WORKS(umdStreamQuery(s->stream));
}

/* The same calls, with the levels as they should be and as they are left after a hunt. */
static void at_level(const struct scene *s, const char *level)
{
    enum { CALLS = 500 };
    umdDevicePtr ptr;

    MUST(umdLogSetLevels(level));
    uint64_t before = records();
    double start = now_us();
    for (int i = 0; i < CALLS; i++) {
        MUST(umdMemAlloc(s->context, 4096, 0, 0, &ptr));
        MUST(umdMemFree(s->context, ptr));
    }
    double us = (now_us() - start) / CALLS;
    case_say("%d allocations and frees at level %s: %" PRIu64 " records, %.2f us each", CALLS, level, records() - before, us);
}

static void log_flood(void)
{
    struct scene s;

    case_start(&s, NULL);
    flood(&s);
    case_say("%s", "");
    at_level(&s, "info");
    at_level(&s, "trace"); /* as many records as at INFO where DEBUG and TRACE are compiled out */
    MUST(umdLogSetLevels("info"));
    case_end(&s);
}

/* ---- Values that are no code ---- */

static void explain(int value, const char *where_from)
{
    static const char *const ranges[] = { "success", "warning", "param", "resource", "exec", "hw", "init", "internal", "none" };
    umdStatus st = (umdStatus)value;
    umdStatusRange r = umdStatusRangeOf(st);

    case_say("%-11d  %-16s  range %-8s  failed %-3s  %s", value, umdStatusName(st), r <= UMD_RANGE_UNKNOWN ? ranges[r] : "?",
             umdFailed(st) ? "yes" : "no", where_from);
}

static void unknown_code(void)
{
    explain(UMD_ERR_HW_HANG, "a code, for comparison");
    explain(-4999, "a code of a newer library: the range still tells who is at fault");
    explain(999, "a status of a newer library: the call succeeded");
    explain(-12, "no code at all: -ENOMEM of some other layer");
    explain((int)(int8_t)(uint8_t)UMD_ERR_HW_HANG, "UMD_ERR_HW_HANG that went through an exit status or a char");
    explain((int)0xfffff060u, "UMD_ERR_HW_HANG printed with %x: 0xfffff060 or 4294963296");
    explain(0x7fffffff, "memory that nobody wrote, perhaps");
}

const struct umd_case process_cases[] = {
    { "fork", "a child uses the library of its parent", fork_case },
    { "signals", "a timer signal every millisecond, and no call fails", signals },
    { "killed", "the device is lost, nothing is logged, and the process is killed", killed },
    { "log-flood", "twenty thousand failures of one kind; then all levels up", log_flood },
    { "unknown-code", "values that are no code of this version", unknown_code },
    { 0 },
};
