/* SPDX-License-Identifier: MIT */
/* bench_train.c - what logging costs a whole training run: interleaved runs of umd-train with settings of the log. */
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "umd-tool.h"

enum { OFF, USUAL, INFO_FILE, DEBUG_FILE, TRACE_FILE, SETTINGS, ROUNDS_MAX = 1000 };
extern char **environ;

static double now_s(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

struct run_cost {
    double wall_s, cpu_s;
};

/* One run with these variables set. False: it could not be run or failed. */
static bool run_once(const char *program, char *const env[], struct run_cost *out)
{
    char *const argv[] = { (char *)program, "mlp", "-q", "--train-size", "4096", "--epochs", "2", "--test-size", "500", NULL };
    posix_spawn_file_actions_t files;
    struct rusage use;
    pid_t pid;
    int status;

    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    double start_s = now_s();
    int err = posix_spawn(&pid, program, &files, NULL, argv, env);
    posix_spawn_file_actions_destroy(&files);
    if (err || wait4(pid, &status, 0, &use) != pid)
        return false;
    *out = (struct run_cost){ .wall_s = now_s() - start_s,
                              .cpu_s = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                                       (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6 };
    return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 4); /* 4: too little data to be right */
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, uint32_t n)
{
    qsort(values, n, sizeof(values[0]), by_value);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* The environment without settings of the log, and then those given. */
static char **environment(char *const extra[])
{
    size_t n = 0, used = 0;

    while (environ[n])
        n++;
    char **env = calloc(n + 8, sizeof(*env));
    for (size_t i = 0; env && i < n; i++)
        if (strncmp(environ[i], "UMD_", 4) != 0 && strncmp(environ[i], "PETREL_", 7) != 0)
            env[used++] = environ[i];
    for (size_t i = 0; env && extra[i]; i++)
        env[used++] = extra[i];
    return env;
}

static bool find_program(const struct bench_options *o, char *path, size_t size)
{
    const char *const names[] = { "umd-train", "../train/umd-train" }; /* installed, and in a build folder */
    const char *slash = strrchr(o->program, '/');

    for (size_t i = 0; i < 2; i++) {
        int n = snprintf(path, size, "%.*s%s", slash ? (int)(slash + 1 - o->program) : 0, o->program, names[i]);
        if (n > 0 && (size_t)n < size && access(path, X_OK) == 0)
            return true;
    }
    return false;
}

/* One round: a run with each setting, the first of which changes from round to round, so that a drift of the machine's speed favours none. */
static bool run_round(const char *program, uint32_t round, char *const *const settings[SETTINGS], const char *file, struct run_cost cost[SETTINGS])
{
    for (uint32_t i = 0; i < SETTINGS; i++) {
        const uint32_t s = (round + i) % SETTINGS;
        char **env = environment(settings[s]);
        const bool ok = env && run_once(program, env, &cost[s]);
        free(env);
        (void)unlink(file);
        if (!ok)
            return false;
    }
    return true;
}

/* In percent of the run without a log, of the same round; the median of the rounds. */
static double percent_more(struct run_cost (*rounds)[SETTINGS], uint32_t n, int setting, bool cpu)
{
    static double more[ROUNDS_MAX];

    for (uint32_t i = 0; i < n; i++) {
        const struct run_cost *with = &rounds[i][setting], *without = &rounds[i][OFF];
        more[i] = ((cpu ? with->cpu_s / without->cpu_s : with->wall_s / without->wall_s) - 1) * 100;
    }
    return median(more, n);
}

static double median_wall(struct run_cost (*rounds)[SETTINGS], uint32_t n)
{
    static double wall[ROUNDS_MAX];

    for (uint32_t i = 0; i < n; i++)
        wall[i] = rounds[i][OFF].wall_s;
    return median(wall, n);
}

static void report(struct bench_report *r, struct run_cost (*rounds)[SETTINGS], uint32_t n)
{
    static const struct { const char *wall, *cpu; double goal; } rows[SETTINGS] = { /* goal 0: none */
        [USUAL] = { "train_default_log", "train_default_log_cpu", 1 },
        [INFO_FILE] = { "train_info_to_file", "train_info_to_file_cpu", 0 },
        [DEBUG_FILE] = { "train_debug_to_file", "train_debug_to_file_cpu", 0 },
        [TRACE_FILE] = { "train_trace_to_file", "train_trace_to_file_cpu", 15 },
    };

    bench_add(r, (struct bench_figure){ "train_log_off", "s", median_wall(rounds, n), NULL, 0, BENCH_NO_GOAL, 0 });
    for (int s = USUAL; s < SETTINGS; s++) {
        bench_add(r, (struct bench_figure){ rows[s].wall, "% wall", percent_more(rounds, n, s, false), NULL, 0,
                                            rows[s].goal > 0 ? BENCH_AT_MOST : BENCH_NO_GOAL, rows[s].goal });
        bench_add(r, (struct bench_figure){ rows[s].cpu, "% cpu", percent_more(rounds, n, s, true), NULL, 0, BENCH_NO_GOAL, 0 });
    }
}

int bench_log_train(const struct bench_options *o, struct bench_report *r)
{
    char program[PATH_MAX], file[PATH_MAX + 32];

    if (!find_program(o, program, sizeof(program))) {
        tool_say("umd-train is not beside umd-bench; build it, or install both");
        return EXIT_ENVIRONMENT;
    }
    snprintf(file, sizeof(file), "UMD_LOG_FILE=%s/umd-bench-log.%ld", o->dir, (long)getpid());
    const char *path = file + strlen("UMD_LOG_FILE=");
    char *const off[] = { "UMD_LOG_LEVEL=off", "UMD_LOG_CONSOLE=off", "UMD_EMERGENCY=off", NULL }, *const usual[] = { NULL };
    char *const info[] = { file, NULL }, *const debug[] = { file, "UMD_LOG_FILE_LEVEL=debug", NULL }, *const traced[] = { file, "UMD_LOG_FILE_LEVEL=trace", NULL };
    char *const *const settings[SETTINGS] = { [OFF] = off, [USUAL] = usual, [INFO_FILE] = info, [DEBUG_FILE] = debug, [TRACE_FILE] = traced };
    struct run_cost warm_up[SETTINGS], (*rounds)[SETTINGS] = calloc(o->repeats, sizeof(*rounds));
    bool ok = rounds && o->repeats <= ROUNDS_MAX && run_round(program, 0, settings, path, warm_up);
    for (uint32_t i = 0; i < o->repeats && ok; i++)
        ok = run_round(program, i, settings, path, rounds[i]);
    if (ok) {
        report(r, rounds, o->repeats);
    } else {
        tool_say("%s could not be run, or failed", program);
    }
    free(rounds);
    return ok ? EXIT_DONE : EXIT_ENVIRONMENT;
}
