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

enum { SETTINGS = 3 };
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

int bench_log_train(const struct bench_options *o, struct bench_report *r)
{
    char program[PATH_MAX], trace[PATH_MAX + 32];
    double *wall[SETTINGS] = { 0 };

    if (!find_program(o, program, sizeof(program))) {
        tool_say("umd-train is not beside umd-bench; build it, or install both");
        return EXIT_ENVIRONMENT;
    }
    snprintf(trace, sizeof(trace), "UMD_LOG_FILE=%s/umd-bench-trace.%ld", o->dir, (long)getpid());
    char *const off[] = { "UMD_LOG_LEVEL=off", "UMD_LOG_CONSOLE=off", "UMD_EMERGENCY=off", NULL }, *const usual[] = { NULL };
    char *const traced[] = { trace, "UMD_LOG_FILE_LEVEL=trace", NULL };
    char *const *settings[SETTINGS] = { off, usual, traced };
    int status = 0;
    for (int s = 0; s < SETTINGS; s++)
        wall[s] = calloc(o->repeats, sizeof(double));
    for (uint32_t i = 0; i <= o->repeats && !status; i++) { /* the first round warms the caches */
        for (int s = 0; s < SETTINGS && !status; s++) {
            char **env = environment(settings[s]);
            struct run_cost cost;
            status = env && wall[s] && run_once(program, env, &cost) ? 0 : EXIT_ENVIRONMENT;
            free(env);
            (void)unlink(trace + strlen("UMD_LOG_FILE="));
            if (i && !status)
                wall[s][i - 1] = cost.wall_s;
        }
    }
    if (status) {
        tool_say("%s could not be run, or failed", program);
    } else {
        double m[SETTINGS];
        for (int s = 0; s < SETTINGS; s++)
            m[s] = median(wall[s], o->repeats);
        bench_add(r, (struct bench_figure){ "train_default_log", "s", m[1], "log off, s", m[0], BENCH_RATIO_AT_MOST, 1.01 });
        bench_add(r, (struct bench_figure){ "train_trace_to_file", "s", m[2], "log off, s", m[0], BENCH_RATIO_AT_MOST, 1.15 });
    }
    for (int s = 0; s < SETTINGS; s++)
        free(wall[s]);
    return status;
}
