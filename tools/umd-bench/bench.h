/* SPDX-License-Identifier: MIT */
/* bench.h - what a bench of umd-bench reports: figures, each with a peer that was measured in the same run. */
#ifndef UMD_BENCH_H
#define UMD_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define BENCH_FIGURES_MAX 32u

enum bench_goal {
    BENCH_NO_GOAL,
    BENCH_AT_MOST,          /**< value <= goal */
    BENCH_AT_LEAST,         /**< value >= goal */
    BENCH_RATIO_AT_MOST,    /**< value / peer_value <= goal */
    BENCH_RATIO_AT_LEAST,   /**< peer_value / value >= goal: so many times cheaper than the peer */
    BENCH_TIMES_AT_LEAST,   /**< value / peer_value >= goal: so many times the peer's rate */
};

struct bench_figure {
    const char *name, *unit;
    double value;
    const char *peer;       /**< NULL: none */
    double peer_value;
    enum bench_goal kind;
    double goal;
};

struct bench_report {
    struct bench_figure figures[BENCH_FIGURES_MAX];
    uint32_t count;
    char note[256];         /**< what could not be measured, and why; "": all was */
};

enum bench_pin { BENCH_FREE, BENCH_APART, BENCH_TOGETHER };
struct bench_options {
    enum bench_pin pin;     /**< the thread that logs and the one that writes: on two cores, or on one */
    double seconds;         /**< of each sustained measurement */
    uint32_t repeats;
    uint32_t threads;       /**< host threads that the simulated units are spread over */
    const char *dir;        /**< where files are written */
    const char *program;    /**< argv[0], beside which other tools are looked for */
};

void bench_add(struct bench_report *r, struct bench_figure figure);
void bench_note(struct bench_report *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** Nanoseconds of one tick of bench_ticks. */
double bench_tick_ns(void);
static inline uint64_t bench_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
#endif
}

/** Each fills the report and returns an exit status. */
int bench_log(const struct bench_options *o, struct bench_report *r);
int bench_log_train(const struct bench_options *o, struct bench_report *r);
int bench_sim(const struct bench_options *o, struct bench_report *r);

/* The peer, in a module of its own since spdlog is C++: see peer_spdlog.cpp. */
struct bench_peer_log {
    int (*open)(const char *path);       /**< async logger with its usual queue and one thread, to a file; 0 or -1 */
    void (*log3)(int a, int b, int c);
    void (*flush)(void);                 /**< waits until the queue is empty */
    void (*close)(void);
};

#endif
