/* SPDX-License-Identifier: MIT */
/* bench_log.c - cost of a log call and of an API call's record, and rates that the sinks sustain. */
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <umd/umd_log.h>

#include "bench.h"
#include "record.h"
#include "umd-tool.h"

UMD_LOG_MODULE("bench");

enum { BURST = 2000, CALLS = 200000 };

static uint32_t ticks_of[CALLS];

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/*
 * Two readings. Each call alone between two reads of the counter, which shows the tail; and batches of BATCH calls, whose mean the median is taken of,
 * since a counter may go up in steps as long as a call. Bursts are short enough for any queue, which empties between them.
 */
enum { BATCH = 50 };
#define TIME_EACH(between_, call_)                                        \
    do {                                                                  \
        for (int i_ = 0; i_ < CALLS; i_++) {                              \
            if (i_ % BURST == 0) {                                        \
                between_;                                                 \
            }                                                             \
            uint64_t start_ = bench_ticks();                              \
            call_;                                                        \
            ticks_of[i_] = (uint32_t)(bench_ticks() - start_);            \
        }                                                                 \
        qsort(ticks_of, CALLS, sizeof(ticks_of[0]), by_size);             \
        cost_.p999_ns = (double)ticks_of[(size_t)(0.999 * CALLS)] * bench_tick_ns(); \
        for (int i_ = 0; i_ < CALLS;) {                                   \
            if (i_ % BURST == 0) {                                        \
                between_;                                                 \
            }                                                             \
            uint64_t start_ = bench_ticks();                              \
            for (int end_ = i_ + BATCH; i_ < end_; i_++) {                \
                call_;                                                    \
            }                                                             \
            ticks_of[i_ / BATCH - 1] = (uint32_t)(bench_ticks() - start_); \
        }                                                                 \
        qsort(ticks_of, CALLS / BATCH, sizeof(ticks_of[0]), by_size);     \
        cost_.median_ns = (double)ticks_of[CALLS / BATCH / 2] * bench_tick_ns() / BATCH; \
    } while (0)

struct cost {
    double median_ns, p999_ns;
};

static volatile uint64_t sink;

static struct cost cost_of_rdtsc(void)
{
    struct cost cost_;

    TIME_EACH((void)0, sink = bench_ticks());
    return cost_;
}

static struct cost cost_of_call(void)
{
    struct cost cost_;

    TIME_EACH(umdLogFlush(1000), UMD_LOG(UMD_LOG_INFO, "queue created id=%d size=%d depth=%d", i_, BURST, i_ & 7));
    return cost_;
}

static struct cost cost_of_text_call(void)
{
    struct cost cost_;

    TIME_EACH(umdLogFlush(1000), UMD_LOG(UMD_LOG_INFO, "kernel loaded name=%s size=%d", "mlp_forward", i_));
    return cost_;
}

static struct cost cost_of_peer(const struct bench_peer_log *peer)
{
    struct cost cost_;

    TIME_EACH(peer->flush(), peer->log3(i_, BURST, i_ & 7));
    return cost_;
}

/* The entry alone: calls of a burst are left open, and closed where no time is taken. */
static void close_calls(struct umd_api_call *call, int *open)
{
    for (; *open; --*open)
        (void)umd_api_exit(call, UMD_SUCCESS);
}

static struct cost cost_of_api_entry(void)
{
    struct umd_api_call call = { 0 };
    struct cost cost_;
    int open = 0;

    TIME_EACH(close_calls(&call, &open), {
        umd_api_enter(&call, "umdBench", "stream=%d size_B=%d flags=%d", i_, BURST, 0);
        open++;
    });
    close_calls(&call, &open);
    return cost_;
}

static struct cost cost_of_api_call(void)
{
    struct umd_api_call call = { 0 };
    struct cost cost_;

    TIME_EACH((void)0, {
        umd_api_enter(&call, "umdBench", "stream=%d size_B=%d flags=%d", i_, BURST, 0);
        (void)umd_api_exit(&call, UMD_SUCCESS);
    });
    return cost_;
}

/* Counter ticks a turn of a loop that does (almost) nothing, and of one with a call that its level turns off; the least of some tries. */
static void cost_of_disabled(double *empty_out, double *disabled_out)
{
    enum { TURNS = 2000000, TRIES = 15 };
    uint64_t least_empty = UINT64_MAX, least_disabled = UINT64_MAX;

    for (int t = 0; t < TRIES; t++) {
        uint64_t a = bench_ticks();
        for (int i = 0; i < TURNS; i++)
            __asm__ volatile("" : : "r"(i));
        uint64_t b = bench_ticks();
        for (int i = 0; i < TURNS; i++) {
            __asm__ volatile("" : : "r"(i));
            UMD_LOG(UMD_LOG_DEBUG, "never id=%d size=%d depth=%d", i, TURNS, t);
        }
        uint64_t c = bench_ticks();
        least_empty = b - a < least_empty ? b - a : least_empty;
        least_disabled = c - b < least_disabled ? c - b : least_disabled;
    }
    *empty_out = (double)least_empty / TURNS;
    *disabled_out = (double)least_disabled / TURNS;
}

/* ---- Cores ---- */

static void pin_thread(pid_t tid, int core)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(core, &set);
    (void)sched_setaffinity(tid, sizeof(set), &set);
}

/* The two cores that are used, of those that this process may use. False: there is but one. */
static bool two_cores(int core[2])
{
    cpu_set_t set;
    int n = 0;

    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return false;
    for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
        if (CPU_ISSET(i, &set))
            core[n++] = i;
    return n == 2;
}

/* How the caches of two cores share what is logged decides much of what a call costs, so it can be asked for. */
static void pin(const struct bench_options *o, struct bench_report *r)
{
    char path[64], name[32];
    int core[2];
    DIR *tasks;

    if (o->pin == BENCH_FREE)
        return;
    UMD_LOG(UMD_LOG_INFO, "the writer begins pin=%d", (int)o->pin);
    umdLogFlush(5000);
    tasks = two_cores(core) ? opendir("/proc/self/task") : NULL;
    if (!tasks) {
        bench_note(r, "threads were not pinned: there is but one core; ");
        return;
    }
    for (struct dirent *e; (e = readdir(tasks)) != NULL;) {
        snprintf(path, sizeof(path), "/proc/self/task/%.16s/comm", e->d_name);
        FILE *f = fopen(path, "r");
        if (f && fgets(name, sizeof(name), f) && strcmp(name, "petrel-log\n") == 0)
            pin_thread((pid_t)strtol(e->d_name, NULL, 10), core[o->pin == BENCH_APART]);
        if (f)
            fclose(f);
    }
    closedir(tasks);
    pin_thread(0, core[0]);
}

static umdStatus open_file(const struct bench_options *o, umdLogFormat format, const char *name)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/umd-bench-%s.%ld", o->dir, name, (long)getpid());
    return umdLogOpenFile(path, format, "bench=info,off");
}

static void remove_file(const struct bench_options *o, umdLogFormat format, const char *name)
{
    char path[PATH_MAX];

    umdLogCloseFile(format);
    for (int i = 0; i < 6; i++) {
        snprintf(path, sizeof(path), i ? "%s/umd-bench-%s.%ld.%d" : "%s/umd-bench-%s.%ld", o->dir, name, (long)getpid(), i);
        (void)unlink(path);
    }
}

/* Logs at a steady rate for so many seconds, in slices of 100 us. Returns what was logged; *lost_out: dropped or not written. */
static double sustain(const struct bench_options *o, double per_second, uint64_t *lost_out)
{
    umdLogStats before, after;
    double slice_ticks = 100000.0 / bench_tick_ns();
    uint64_t count = 0, per_slice = (uint64_t)(per_second / 10000.0), slices = (uint64_t)(o->seconds * 10000.0);

    umdLogFlush(5000);
    umdLogGetStats(&before);
    uint64_t start = bench_ticks();
    for (uint64_t s = 0; s < slices; s++) {
        for (uint64_t i = 0; i < per_slice; i++, count++)
            UMD_LOG(UMD_LOG_INFO, "queue created id=%d size=%d depth=%d", (int)count, BURST, (int)(count & 7));
        while ((double)(bench_ticks() - start) < slice_ticks * (double)(s + 1))
            ;
    }
    double seconds = (double)(bench_ticks() - start) * bench_tick_ns() / 1e9;
    umdLogFlush(60000);
    umdLogGetStats(&after);
    *lost_out = after.dropped - before.dropped + after.lost - before.lost;
    return (double)count / seconds;
}

static const struct bench_peer_log *load_peer(const struct bench_options *o, struct bench_report *r, void **handle_out)
{
    char beside[PATH_MAX] = "umd-bench-spdlog.so";
    const char *slash = strrchr(o->program, '/');

    if (slash)
        snprintf(beside, sizeof(beside), "%.*s/umd-bench-spdlog.so", (int)(slash - o->program), o->program);
    void *handle = dlopen(beside, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        handle = dlopen(BENCH_PEER_DIR "/umd-bench-spdlog.so", RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        bench_note(r, "spdlog was not measured: its module is not built (Debian's libspdlog-dev and g++); ");
        return NULL;
    }
    *handle_out = handle;
    return dlsym(handle, "bench_peer_spdlog");
}

static void calls(const struct bench_options *o, struct bench_report *r)
{
    char path[PATH_MAX];
    void *handle = NULL;
    struct cost nothing = cost_of_rdtsc(), call = cost_of_call(), text = cost_of_text_call();
    struct cost entry = cost_of_api_entry(), api = cost_of_api_call();
    double empty, disabled;
    const struct bench_peer_log *peer = load_peer(o, r, &handle);

    cost_of_disabled(&empty, &disabled);
    bench_add(r, (struct bench_figure){ "call_3_ints_median_over_rdtsc", "ns", call.median_ns - nothing.median_ns, "rdtsc, ns", nothing.median_ns,
                                        BENCH_AT_MOST, 8 });
    bench_add(r, (struct bench_figure){ "call_3_ints_p99.9", "ns", call.p999_ns, "rdtsc, ns", nothing.p999_ns, BENCH_AT_MOST, 100 });
    bench_add(r, (struct bench_figure){ "call_with_text_median_over_rdtsc", "ns", text.median_ns - nothing.median_ns, "rdtsc, ns",
                                        nothing.median_ns, BENCH_NO_GOAL, 0 });
    snprintf(path, sizeof(path), "%s/umd-bench-peer.%ld", o->dir, (long)getpid());
    if (peer && peer->open(path) == 0) {
        struct cost other = cost_of_peer(peer);
        peer->close();
        (void)unlink(path);
        bench_add(r, (struct bench_figure){ "call_3_ints_median", "ns", call.median_ns, "spdlog async, ns", other.median_ns, BENCH_RATIO_AT_LEAST, 10 });
        bench_add(r, (struct bench_figure){ "call_3_ints_p99.9_beside_peer", "ns", call.p999_ns, "spdlog async, ns", other.p999_ns,
                                            BENCH_NO_GOAL, 0 }); /* both hold the two reads of the counter that measure them */
    }
    bench_add(r, (struct bench_figure){ "disabled_over_empty_loop", "cycles", disabled - empty, "empty loop, cycles", empty, BENCH_AT_MOST, 2 });
    bench_add(r, (struct bench_figure){ "api_entry_median_over_rdtsc", "ns", entry.median_ns - nothing.median_ns, "rdtsc, ns", nothing.median_ns,
                                        BENCH_AT_MOST, 10 });
    bench_add(r, (struct bench_figure){ "api_entry_and_exit_median", "ns", api.median_ns - nothing.median_ns, "rdtsc, ns", nothing.median_ns,
                                        BENCH_NO_GOAL, 0 });
    if (handle)
        dlclose(handle);
}

static int rates(const struct bench_options *o, struct bench_report *r)
{
    static const struct { const char *name, *lost_name; umdLogFormat format; double rate; } sinks[] = {
        { "sustained_binary", "lost_binary", UMD_LOG_FORMAT_BINARY, 2e6 },
        { "sustained_text", "lost_text", UMD_LOG_FORMAT_TEXT, 0.5e6 },
        { "sustained_json", "lost_json", UMD_LOG_FORMAT_JSON, 0.5e6 },
    };

    for (size_t i = 0; i < sizeof(sinks) / sizeof(sinks[0]); i++) {
        uint64_t lost;
        if (umdFailed(open_file(o, sinks[i].format, "rate")))
            return EXIT_ENVIRONMENT;
        double rate = sustain(o, sinks[i].rate, &lost);
        remove_file(o, sinks[i].format, "rate");
        bench_add(r, (struct bench_figure){ sinks[i].name, "records/s", rate, NULL, 0, BENCH_AT_LEAST, sinks[i].rate * 0.99 });
        bench_add(r, (struct bench_figure){ sinks[i].lost_name, "records", (double)lost, NULL, 0, BENCH_AT_MOST, 0 });
    }
    return 0;
}

int bench_log(const struct bench_options *o, struct bench_report *r)
{
    umdErrorDetail d = { .size_B = sizeof(d) };
    int status = EXIT_ENVIRONMENT;

    if (!umdFailed(umdLogSetConsole("off")) && !umdFailed(open_file(o, UMD_LOG_FORMAT_BINARY, "calls"))) {
        pin(o, r);
        calls(o, r);
        remove_file(o, UMD_LOG_FORMAT_BINARY, "calls");
        status = rates(o, r);
    }
    if (status)
        tool_say("a log file cannot be opened in %s: %s", o->dir,
                umdGetLastErrorDetail(&d) == UMD_SUCCESS ? d.figures : "see --dir");
    return status;
}
