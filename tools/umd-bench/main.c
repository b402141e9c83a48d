/* SPDX-License-Identifier: MIT */
/* main.c - umd-bench: measures Petrel beside a peer in the same run. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "umd-text.h"
#include "umd-tool.h"

static const struct {
    const char *name;
    int (*run)(const struct bench_options *o, struct bench_report *r);
    const char *text;
} benches[] = {
    { "log", bench_log, "cost of a log call and of an API call record, and sustained rates; peers: rdtsc and spdlog's async logger" },
    { "log-train", bench_log_train, "what logging costs umd-train mlp: by default, and INFO, DEBUG, TRACE to a file; peer: logging off" },
    { "sim", bench_sim, "lane-instructions a second on the compute units, of one host core; peer: qemu-riscv64 with the same kernels" },
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
    case BENCH_RATIO_AT_LEAST: case BENCH_TIMES_AT_LEAST: return ratio(f) >= f->goal;
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

    json_add_text(o, "name", f->name);
    json_object_object_add(o, "value", json_object_new_double(f->value));
    json_add_text(o, "unit", f->unit);
    json_object_object_add(o, "peer", f->peer ? json_object_new_string(f->peer) : NULL);
    json_object_object_add(o, "peer_value", f->peer ? json_object_new_double(f->peer_value) : NULL);
    json_object_object_add(o, "ratio", f->peer ? json_object_new_double(ratio(f)) : NULL);
    json_object_object_add(o, "goal", f->kind == BENCH_NO_GOAL ? NULL : json_object_new_double(f->goal));
    json_add_bool(o, "ok", is_ok(f));
    return o;
}

static void print_json(const char *bench, const struct bench_report *r)
{
    struct json_object *all = json_object_new_object(), *figures = json_object_new_array();

    json_add_text(all, "bench", bench);
    for (uint32_t i = 0; i < r->count; i++)
        json_object_array_add(figures, figure_json(&r->figures[i]));
    json_object_object_add(all, "figures", figures);
    if (r->note[0])
        json_add_text(all, "note", r->note);
    json_put_away(all);
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
                status = EXIT_WRONG;
        return status;
    }
    return tool_usage("no such bench");
}

static void lists(void)
{
    puts("Benches:");
    for (int i = 0; i < BENCH_COUNT; i++)
        printf("  %-10s %s\n", benches[i].name, benches[i].text);
}

static bool complete(const struct tool_at *at)
{
    for (int i = 0; i < BENCH_COUNT && !at->option && at->count == 0; i++)
        tool_offer(at, benches[i].name);
    return !at->option;
}

static const struct tool bench = {
    .words = "NAME [OPTION...]", .text = "measures Petrel beside a peer in the same run", .lists = lists, .complete = complete,
    .help = "Measure a release build on a quiet machine.\n"
            "\nExamples:\n"
            "  umd-bench log\n"
            "  umd-bench log --json --dir /dev/shm\n"
            "  umd-bench log --pin apart\n"
            "  umd-bench log-train --repeats 15\n"
            "  umd-bench sim --seconds 1\n"
            "  umd-bench sim --threads 2\n"
            "\nWith --threads the units of a launch run at the same time. That gives up two things: what workgroups do to the same memory has\n"
            "no order, by atomics or without, and each unit has a slice of the L2 to itself, so that cycles are not those of one thread.\n"
            "Figures are then by the clock, not of processor time, and have no goals and no peer.\n"
            "\nExit status: 0 done, 1 usage, 2 environment, 4 a goal was missed (with --strict).\n",
};

int main(int argc, char **argv)
{
    int json = 0, strict = 0, status;
    const char *dir = getenv("TMPDIR"), *seconds = "2", *repeats = "3", *pin = "", *threads = "1";
    uint64_t repeat_count, thread_count;
    struct bench_options o = { .program = argv[0] };
    struct tool_line line;
    struct poptOption table[] = {
        { "json", 'j', POPT_ARG_NONE, &json, 0, "as JSON", NULL },
        { "strict", '\0', POPT_ARG_NONE, &strict, 0, "exit status 4 if a goal is missed", NULL },
        { "seconds", '\0', POPT_ARG_STRING, &seconds, 0, "length of each sustained measurement (default: 2)", "S" },
        { "repeats", '\0', POPT_ARG_STRING, &repeats, 0, "runs of each whole program (default: 3)", "N" },
        { "pin", '\0', POPT_ARG_STRING, &pin, 0, "apart or together: the log's caller and its writer on two cores or on one (default: as they come)", "HOW" },
        { "threads", '\0', POPT_ARG_STRING, &threads, 0, "sim: host threads that the compute units are spread over, 1 to 64 (default: 1)", "N" },
        { "dir", '\0', POPT_ARG_STRING, &dir, 0, "folder for files that are written (default: $TMPDIR or /tmp)", "DIR" },
        POPT_TABLEEND
    };

    argc = tool_start("umd-bench", argc, argv);
    if (!tool_parse(&bench, argc, (const char **)argv, table, &line, &status))
        return tool_finish(status);
    status = EXIT_USAGE;
    if (line.count != 1) {
        (void)tool_usage(line.count ? "one bench at a time" : "no bench is named");
    } else if (*pin && strcmp(pin, "apart") != 0 && strcmp(pin, "together") != 0) {
        (void)tool_usage("--pin is apart or together");
    } else if (strcmp(threads, "1") != 0 && strcmp(line.words[0], "sim") != 0) {
        (void)tool_usage("--threads goes with sim alone");
    } else if (tool_number("threads", threads, 1, 64, &thread_count) && tool_decimal("seconds", seconds, 600, &o.seconds) && tool_number("repeats", repeats, 1, 1000, &repeat_count)) {
        o.repeats = (uint32_t)repeat_count;
        o.threads = (uint32_t)thread_count;
        o.pin = !*pin ? BENCH_FREE : strcmp(pin, "apart") == 0 ? BENCH_APART : BENCH_TOGETHER;
        o.dir = dir && *dir ? dir : "/tmp";
        status = run(line.words[0], &o, json, strict);
    }
    tool_line_finish(&line);
    return tool_finish(status);
}
