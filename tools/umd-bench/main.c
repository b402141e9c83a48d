/* SPDX-License-Identifier: MIT */
/* main.c - umd-bench: measures Petrel beside a peer in the same run. */
#include <json-c/json.h>
#include <popt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../umd-tool.h"
#include "bench.h"

enum { EXIT_DONE = 0, EXIT_USAGE = 1, EXIT_ENVIRONMENT = 2, EXIT_MISSED = 4 };

static const struct {
    const char *name;
    int (*run)(const struct bench_options *o, struct bench_report *r);
    const char *text;
} benches[] = {
    { "log", bench_log, "cost of a log call and of an API call record, and sustained rates; peers: rdtsc and spdlog's async logger" },
    { "log-train", bench_log_train, "what logging costs umd-train mlp: by default, and TRACE to a file; peer: logging off" },
};
enum { BENCH_COUNT = sizeof(benches) / sizeof(benches[0]) };

void bench_add(struct bench_report *r, struct bench_figure figure)
{
    if (r->count < BENCH_FIGURES_MAX)
        r->figures[r->count++] = figure;
}

void bench_note(struct bench_report *r, const char *fmt, ...)
{
    size_t n = strlen(r->note);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(r->note + n, sizeof(r->note) - n, fmt, ap);
    va_end(ap);
}

double bench_tick_ns(void)
{
    static double ns;
    struct timespec a, b;

    if (ns > 0)
        return ns;
    clock_gettime(CLOCK_MONOTONIC, &a);
    uint64_t ticks = bench_ticks();
    do
        clock_gettime(CLOCK_MONOTONIC, &b);
    while ((b.tv_sec - a.tv_sec) * 1000000000ll + b.tv_nsec - a.tv_nsec < 20000000);
    ticks = bench_ticks() - ticks;
    ns = (double)((b.tv_sec - a.tv_sec) * 1000000000ll + b.tv_nsec - a.tv_nsec) / (double)ticks;
    return ns;
}

static double ratio(const struct bench_figure *f)
{
    if (!f->peer || f->value == 0 || f->peer_value == 0)
        return 0;
    return f->kind == BENCH_RATIO_AT_LEAST ? f->peer_value / f->value : f->value / f->peer_value;
}

static bool is_ok(const struct bench_figure *f)
{
    switch (f->kind) {
    case BENCH_AT_MOST: return f->value <= f->goal;
    case BENCH_AT_LEAST: return f->value >= f->goal;
    case BENCH_RATIO_AT_MOST: return ratio(f) <= f->goal;
    case BENCH_RATIO_AT_LEAST: return ratio(f) >= f->goal;
    default: return true;
    }
}

static const char *goal_text(const struct bench_figure *f, char *buf, size_t size)
{
    buf[0] = '\0';
    if (f->kind == BENCH_AT_MOST)
        snprintf(buf, size, "<= %g", f->goal);
    else if (f->kind == BENCH_AT_LEAST)
        snprintf(buf, size, ">= %g", f->goal);
    else if (f->kind != BENCH_NO_GOAL)
        snprintf(buf, size, "ratio %s %g", f->kind == BENCH_RATIO_AT_MOST ? "<=" : ">=", f->goal);
    return buf;
}

static void print_table(const char *bench, const struct bench_report *r)
{
    char goal[32], peer[64], times[24];

    printf("%-34s %12s %-12s %-30s %8s  %-14s %s\n", bench, "value", "unit", "peer", "ratio", "goal", "ok");
    for (uint32_t i = 0; i < r->count; i++) {
        const struct bench_figure *f = &r->figures[i];
        peer[0] = times[0] = '\0';
        if (f->peer) {
            snprintf(peer, sizeof(peer), "%s %.4g", f->peer, f->peer_value);
            snprintf(times, sizeof(times), "%.3g", ratio(f));
        }
        printf("%-34s %12.5g %-12s %-30s %8s  %-14s %s\n", f->name, f->value, f->unit, peer, times, goal_text(f, goal, sizeof(goal)),
               f->kind == BENCH_NO_GOAL ? "" : is_ok(f) ? "yes" : "NO");
    }
    if (r->note[0])
        printf("note: %s\n", r->note);
}

static struct json_object *figure_json(const struct bench_figure *f)
{
    struct json_object *o = json_object_new_object();

    json_object_object_add(o, "name", json_object_new_string(f->name));
    json_object_object_add(o, "value", json_object_new_double(f->value));
    json_object_object_add(o, "unit", json_object_new_string(f->unit));
    json_object_object_add(o, "peer", f->peer ? json_object_new_string(f->peer) : NULL);
    json_object_object_add(o, "peer_value", f->peer ? json_object_new_double(f->peer_value) : NULL);
    json_object_object_add(o, "ratio", f->peer ? json_object_new_double(ratio(f)) : NULL);
    json_object_object_add(o, "goal", f->kind == BENCH_NO_GOAL ? NULL : json_object_new_double(f->goal));
    json_object_object_add(o, "ok", json_object_new_boolean(is_ok(f)));
    return o;
}

static void print_json(const char *bench, const struct bench_report *r)
{
    struct json_object *all = json_object_new_object(), *figures = json_object_new_array();

    json_object_object_add(all, "bench", json_object_new_string(bench));
    for (uint32_t i = 0; i < r->count; i++)
        json_object_array_add(figures, figure_json(&r->figures[i]));
    json_object_object_add(all, "figures", figures);
    if (r->note[0])
        json_object_object_add(all, "note", json_object_new_string(r->note));
    puts(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(all);
}

static int usage(const char *what)
{
    fprintf(stderr, "umd-bench: %s; try umd-bench --help\n", what);
    return EXIT_USAGE;
}

static void print_help(poptContext pc)
{
    poptPrintHelp(pc, stdout, 0);
    printf("\nBenches:\n");
    for (int i = 0; i < BENCH_COUNT; i++)
        printf("  %-10s %s\n", benches[i].name, benches[i].text);
    printf("\nExamples:\n"
           "  umd-bench log\n"
           "  umd-bench log --json --dir /dev/shm\n"
           "\nMeasure a release build on a quiet machine. Exit status: 0 done, 1 usage, 2 environment, 4 a goal was missed (with --strict).\n");
}

static int run(const char *name, const struct bench_options *o, bool json, bool strict)
{
    for (int i = 0; i < BENCH_COUNT; i++) {
        if (strcmp(benches[i].name, name) != 0)
            continue;
        struct bench_report r = { 0 };
        int status = benches[i].run(o, &r);
        if (status)
            return status;
        json ? print_json(name, &r) : print_table(name, &r);
        for (uint32_t k = 0; strict && k < r.count; k++)
            if (!is_ok(&r.figures[k]))
                status = EXIT_MISSED;
        return status;
    }
    return usage("no such bench");
}

int main(int argc, char **argv)
{
    int json = 0, strict = 0, show_help = 0, show_version = 0, repeats = 3, status;
    double seconds = 2;
    char *dir = NULL;
    const struct poptOption table[] = {
        { "json", 0, POPT_ARG_NONE, &json, 0, "print JSON", NULL },
        { "strict", 0, POPT_ARG_NONE, &strict, 0, "exit status 4 if a goal is missed", NULL },
        { "seconds", 0, POPT_ARG_DOUBLE, &seconds, 0, "length of each sustained measurement (2)", "S" },
        { "repeats", 0, POPT_ARG_INT, &repeats, 0, "runs of each whole program (3)", "N" },
        { "dir", 0, POPT_ARG_STRING, &dir, 0, "folder for files that are written ($TMPDIR or /tmp)", "DIR" },
        { "help", 'h', POPT_ARG_NONE, &show_help, 0, "show this", NULL },
        { "version", 'V', POPT_ARG_NONE, &show_version, 0, "show the version", NULL },
        POPT_TABLEEND
    };
    tool_start();
    poptContext pc = poptGetContext("umd-bench", argc, (const char **)argv, table, 0);
    poptSetOtherOptionHelp(pc, "NAME [OPTION...]");
    int rc = poptGetNextOpt(pc);
    const char *name = poptGetArg(pc);
    if (rc < -1) {
        fprintf(stderr, "umd-bench: %s: %s; try umd-bench --help\n", poptBadOption(pc, POPT_BADOPTION_NOALIAS), poptStrerror(rc));
        status = EXIT_USAGE;
    } else if (show_help) {
        print_help(pc);
        status = EXIT_DONE;
    } else if (show_version) {
        printf("umd-bench %s\n", PETREL_VERSION);
        status = EXIT_DONE;
    } else if (!name || poptPeekArg(pc)) {
        status = usage(name ? "one bench at a time" : "which bench");
    } else if (!(seconds > 0 && seconds <= 600) || repeats < 1 || repeats > 1000) {
        status = usage("--seconds lies in 0 to 600, --repeats in 1 to 1000");
    } else {
        const char *tmp = getenv("TMPDIR");
        status = run(name, &(struct bench_options){ .seconds = seconds, .repeats = (uint32_t)repeats, .program = argv[0],
                                                    .dir = dir ? dir : tmp && *tmp ? tmp : "/tmp" }, json, strict);
    }
    poptFreeContext(pc);
    free(dir);
    return tool_finish("umd-bench", status);
}
