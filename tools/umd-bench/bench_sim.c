/* SPDX-License-Identifier: MIT */
/* bench_sim.c - how fast the compute units are simulated, in lane-instructions a second, with qemu-riscv64 running the same kernels beside it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "kernels/sim.h"
#include "sim.h"
#include "umd-tool.h"

enum { BLOCK = SIM_BLOCK, TABLE_B = SIM_TABLE_B, CHECKED = SIM_CHECKED, PRIVATE_B = 16384, ROUNDS = 5 };
#define DATA_VA 0x40000000ull
#define TABLE_VA(i_) (DATA_VA + 4096 + (i_) * (uint64_t)(SIM_TABLE_B + SIM_PAD_B))
#define DATA_B (16ull << 20)

extern char **environ;

enum {
#define SIM_NUMBER(name_) SIM_##name_,
    SIM_KERNELS(SIM_NUMBER)
    SIM_COUNT
};
static const char *const names[] = {
#define SIM_NAME(name_) "sim_" #name_,
    SIM_KERNELS(SIM_NAME)
};

/* A row of the report: one kernel or all of the divergent set. */
static const struct row {
    const char *timed, *functional, *against; /* names of its figures */
    uint32_t first, count;                    /* kernels */
    uint32_t items, n, rounds;
    double timed_goal, functional_goal, peer_goal;
} rows[] = {
    { "saxpy, timed", "saxpy, functional", "saxpy, functional, beside", SIM_saxpy, 1, 1u << 14, 1u << 18, 16, 1.5, 3, 8 },
    { "matmul f32, timed", "matmul f32, functional", "matmul f32, functional, beside", SIM_matmul, 1, 256 * 256, 256, 0, 1.5, 3, 8 },
    { "integer hash, timed", "integer hash, functional", "integer hash, functional, beside", SIM_hash, 1, 1u << 16, 0, 100, 1, 0, 0 },
    { "divergent set, timed", "divergent set, functional", "divergent set, functional, beside", SIM_chase + 1, SIM_COUNT - SIM_chase - 1, 1u << 14, 0, 0, 0.25, 0, 0 },
    { "pointer chase, timed", "pointer chase, functional", "pointer chase, functional, beside", SIM_chase, 1, 1u << 14, 1u << 20, 100, 0.1, 0, 0 },
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

struct bench_sim {
    struct sim *sim;
    struct sim_symbols *symbols;
    uint8_t *image;
    size_t image_B;
    struct sim_program program;
    struct sim_args *args;
    uint64_t args_va;
    clockid_t clock;              /* of processor time, which does not count what other programs take; of several threads, the wall's */
    bool peer_ran;                /* once, so that it is there */
};

/* What one row's kernels took and did, once each. ratio: of the peer's time to theirs; 0: there is no peer. */
struct work { double s, ratio; uint64_t lane_instr; };

static double now_s(const struct bench_sim *b)
{
    struct timespec t;

    clock_gettime(b->clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- Setting up ---- */

static bool read_kernels(struct bench_sim *b)
{
    char path[2048];

    if (!tool_kernel_path("sim.elf", path, sizeof(path))) {
        tool_say("sim.elf is in none of: %s", path);
        return false;
    }
    FILE *f = fopen(path, "rb");
    struct stat st;
    bool ok = f && fstat(fileno(f), &st) == 0 && (b->image = malloc((size_t)st.st_size + 1)) && fread(b->image, 1, (size_t)st.st_size, f) == (size_t)st.st_size;

    if (ok)
        b->image_B = (size_t)st.st_size;
    else
        tool_say("%s cannot be read: %s", path, strerror(errno));
    if (f)
        fclose(f);
    return ok;
}

static void close_sim(struct bench_sim *b)
{
    sim_symbols_close(b->symbols);
    sim_destroy(b->sim);
    free(b->image);
}

static bool open_sim(struct bench_sim *b, uint32_t threads, bool functional)
{
    const struct sim_config config = { .lanes = BLOCK, .functional = functional, .threads = threads, .private_B = PRIVATE_B };
    struct sim_error error;

    *b = (struct bench_sim){ .args_va = DATA_VA, .clock = threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID };
    if (!read_kernels(b))
        return false;
    if (!sim_create(&config, &b->sim, &error) || !sim_load(b->sim, b->image, b->image_B, 0, &b->program, &error) ||
        !sim_map(b->sim, DATA_VA, DATA_B, &error)) {
        tool_say("sim.elf: %s", error.text);
        return false;
    }
    b->symbols = sim_symbols_open(b->image, b->image_B);
    b->args = sim_host(b->sim, 0, b->args_va, sizeof(*b->args));
    return b->symbols && b->args;
}

static void fill(struct bench_sim *b, const struct row *row, uint32_t kernel)
{
    uint32_t *x = sim_host(b->sim, 0, TABLE_VA(0), TABLE_B), *y = sim_host(b->sim, 0, TABLE_VA(1), TABLE_B);

    *b->args = (struct sim_args){ .a = TABLE_VA(0), .b = TABLE_VA(1), .c = TABLE_VA(2), .n = row->n, .rounds = row->rounds };
    for (uint32_t i = 0; i < TABLE_B / 4; i++) { /* as sim_linux.c does */
        x[i] = kernel == SIM_chase ? (i * 1664525u + 1013904223u) % row->n : 0x3f800000u + (i & 0xffff);
        y[i] = 0x3f800000u + (i >> 4 & 0xffff);
    }
}

/* ---- Running ---- */

static bool launch(struct bench_sim *b, const struct row *row, uint32_t kernel)
{
    struct petrel_dispatch d = { .grid = { row->items / BLOCK, 1, 1 }, .block = { BLOCK, 1, 1 }, .args_va = b->args_va,
                                 .code_va = b->program.code_va, .code_B = b->program.code_B };
    struct hw_cu_fault fault = { 0 };
    uint64_t entry = 0;
    bool found = sim_symbol(b->symbols, names[kernel], &entry);

    d.entry_va = entry;
    if (!found || !sim_start(b->sim, &d, &fault) || sim_run(b->sim, UINT64_MAX, &fault) != SIM_DONE) {
        tool_say("%s did not run: fault %u at 0x%" PRIx64, names[kernel], fault.fault, fault.pc);
        return false;
    }
    return true;
}

static void on_host(uint32_t kernel, const struct sim_args *args, uint32_t i)
{
    switch (kernel) {
#define SIM_CASE(name_) case SIM_##name_: item_##name_(args, i); break;
    SIM_KERNELS(SIM_CASE)
    }
}

/* Results of the first work-items are those of the host; sums of products within what rounding may do. */
static bool results_hold(struct bench_sim *b, const struct row *row, uint32_t kernel)
{
    static uint32_t want[TABLE_B / 4];
    const uint32_t *got = sim_host(b->sim, 0, TABLE_VA(2), TABLE_B);
    struct sim_args args = { .n = row->n, .rounds = row->rounds, .c = (uint64_t)(uintptr_t)want };

    args.a = (uint64_t)(uintptr_t)sim_host(b->sim, 0, b->args->a, TABLE_B);
    args.b = (uint64_t)(uintptr_t)sim_host(b->sim, 0, b->args->b, TABLE_B);
    for (uint32_t i = 0; i < CHECKED; i++) {
        float x, y;

        on_host(kernel, &args, i);
        memcpy(&x, &want[i], 4);
        memcpy(&y, &got[i], 4);
        if (kernel == SIM_matmul ? !(y > x * 0.9999f && y < x * 1.0001f) : want[i] != got[i]) {
            tool_say("%s: work-item %u has 0x%x, not 0x%x", names[kernel], i, got[i], want[i]);
            return false;
        }
    }
    return true;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *values, uint32_t count)
{
    qsort(values, count, sizeof(values[0]), by_value);
    return values[count / 2];
}

/* Fills the tables and runs the kernel once. *lane_instr_out: what it does. Value: exit status. */
static int prepare_kernel(struct bench_sim *b, const struct row *row, uint32_t kernel, uint64_t *lane_instr_out)
{
    struct hw_cu_counters before, after;

    fill(b, row, kernel);
    sim_counters(b->sim, &before);
    if (!launch(b, row, kernel))
        return EXIT_DEVICE;
    sim_counters(b->sim, &after);
    *lane_instr_out = after.lane_instr - before.lane_instr;
    return results_hold(b, row, kernel) ? EXIT_DONE : EXIT_WRONG;
}

/* *s_out: mean of the runs that fit into so many seconds, as the peer's is. Value: exit status. */
static int measure_kernel(struct bench_sim *b, const struct row *row, uint32_t kernel, double seconds, double *s_out)
{
    const double begin = now_s(b);
    double spent;
    uint32_t n = 0;

    do {
        if (!launch(b, row, kernel))
            return EXIT_DEVICE;
        n++;
        spent = now_s(b) - begin;
    } while (spent < seconds);
    *s_out = spent / n;
    return EXIT_DONE;
}

/* ---- The peer ---- */

static bool peer_output(char *const *argv, char *out, size_t out_B)
{
    posix_spawn_file_actions_t actions;
    int fds[2], status = 0;
    size_t n = 0;
    ssize_t got;
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC))
        return false;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
    int failed = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    while (!failed && n + 1 < out_B && (got = read(fds[0], out + n, out_B - 1 - n)) > 0)
        n += (size_t)got;
    close(fds[0]);
    out[n] = '\0';
    return !failed && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

/* Words of the results that are added up, each with its place. */
static uint32_t checked(const struct row *row) { return row->items > CHECKED ? row->items : CHECKED; }

/* One that ran before is there: without it later rows would have no ratio, and no goal. */
static int peer_gone(uint32_t kernel)
{
    tool_say("%s: qemu-riscv64 ran other kernels and failed on this one; run it by hand on sim_linux.elf to see why", names[kernel]);
    return EXIT_ENVIRONMENT;
}

/* *s_out: seconds of one run of the kernel in qemu-riscv64; 0: it is not there, or cannot run it. Value: exit status. */
static int peer_kernel(struct bench_sim *b, const struct row *row, uint32_t kernel, double seconds, double *s_out)
{
    const uint32_t *results = sim_host(b->sim, 0, TABLE_VA(2), TABLE_B);
    char path[2048], text[5][24], out[128];
    char *argv[] = { "qemu-riscv64", path, text[0], text[1], text[2], text[3], text[4], NULL };
    uint64_t ns, runs, check, want = 0;

    *s_out = 0;
    if (!tool_kernel_path("sim_linux.elf", path, sizeof(path)))
        return EXIT_DONE;
    snprintf(text[0], sizeof(text[0]), "%u", kernel);
    snprintf(text[1], sizeof(text[1]), "%u", row->items);
    snprintf(text[2], sizeof(text[2]), "%u", row->n);
    snprintf(text[3], sizeof(text[3]), "%u", row->rounds);
    snprintf(text[4], sizeof(text[4]), "%u", (unsigned)(seconds * 1000));
    if (!peer_output(argv, out, sizeof(out)) || sscanf(out, "%" SCNu64 " %" SCNu64 " %" SCNu64, &ns, &runs, &check) != 3 || !runs)
        return b->peer_ran ? peer_gone(kernel) : EXIT_DONE;
    for (uint32_t i = 0; i < checked(row); i++)
        want = want * 31 + results[i];
    if (check != want) {
        tool_say("%s: results add up to %" PRIu64 " in qemu-riscv64 and to %" PRIu64 " here: they did not do the same work", names[kernel], check, want);
        return EXIT_WRONG;
    }
    *s_out = (double)ns * 1e-9 / (double)runs;
    b->peer_ran = true;
    return EXIT_DONE;
}

/* ---- Rows ---- */

/*
 * The machine's speed drifts, so the kernel and the peer run in turns, a part of the time each, and their times are compared round by round:
 * in as many rounds as last long enough to be worth the peer's start.
 * peer_io: whether there is one, as far as is known. A row's work is the sum of its kernels'.
 */
static int measure_rounds(struct bench_sim *b, const struct row *row, uint32_t kernel, double seconds, uint32_t rounds, bool *peer_io,
                          double ours[ROUNDS], double peers[ROUNDS])
{
    int status = EXIT_DONE;

    for (uint32_t r = 0; !status && r < rounds; r++) {
        double s = 0, peer_s = 0;

        status = measure_kernel(b, row, kernel, seconds / rounds, &s);
        if (!status && *peer_io) {
            status = peer_kernel(b, row, kernel, seconds / rounds, &peer_s);
            *peer_io = peer_s > 0;
        }
        ours[r] += s;
        peers[r] += peer_s;
    }
    return status;
}

static int measure_row(struct bench_sim *b, const struct row *row, double seconds, bool *peer_io, struct work *work)
{
    const uint32_t rounds = seconds < 0.05 ? 1 : ROUNDS;
    double ours[ROUNDS] = { 0 }, peers[ROUNDS] = { 0 }, ratios[ROUNDS];
    int status = EXIT_DONE;

    *work = (struct work){ 0 };
    for (uint32_t k = row->first; !status && k < row->first + row->count; k++) {
        uint64_t lane_instr = 0;

        status = prepare_kernel(b, row, k, &lane_instr);
        work->lane_instr += lane_instr;
        if (!status)
            status = measure_rounds(b, row, k, seconds / row->count, rounds, peer_io, ours, peers);
    }
    for (uint32_t r = 0; r < rounds; r++)
        ratios[r] = peers[r] / ours[r];
    work->ratio = *peer_io ? median(ratios, rounds) : 0;
    work->s = median(ours, rounds);
    return status;
}

/* ---- The report ---- */

static double rate(uint64_t lane_instr, double s)
{
    return (double)lane_instr / s * 1e-9;
}

static void add_rate(struct bench_report *r, const struct bench_options *o, const char *name, const struct work *w, double goal)
{
    static char threaded[2 * ROWS][64];
    const bool one = o->threads <= 1;

    snprintf(threaded[r->count], sizeof(threaded[0]), "%s, %u threads", name, o->threads);
    bench_add(r, (struct bench_figure){ .name = one ? name : threaded[r->count], .unit = "G lane-ins/s", .value = rate(w->lane_instr, w->s),
                                        .kind = one && goal > 0 ? BENCH_AT_LEAST : BENCH_NO_GOAL, .goal = goal });
}

/* The peer's rate is that of the device's instructions, as if it ran them: so the ratio is that of the times for the same work, in turns. */
static void add_against(struct bench_report *r, const struct row *row, const struct work *w)
{
    bench_add(r, (struct bench_figure){ .name = row->against, .unit = "G lane-ins/s", .value = rate(w->lane_instr, w->s), .peer = "qemu-riscv64",
                                        .peer_value = rate(w->lane_instr, w->s) / w->ratio, .kind = row->peer_goal > 0 ? BENCH_TIMES_AT_LEAST : BENCH_NO_GOAL,
                                        .goal = row->peer_goal });
}

/* *peer_io: whether there is a peer to run beside. */
static int measure_mode(const struct bench_options *o, bool functional, bool *peer_io, struct work works[ROWS])
{
    struct bench_sim b;
    int status = open_sim(&b, o->threads, functional) ? EXIT_DONE : EXIT_ENVIRONMENT;

    for (uint32_t i = 0; !status && i < ROWS; i++)
        status = measure_row(&b, &rows[i], o->seconds, peer_io, &works[i]);
    close_sim(&b);
    return status;
}

int bench_sim(const struct bench_options *o, struct bench_report *r)
{
    struct work timed[ROWS], functional[ROWS];
    bool peer = false;
    int status = measure_mode(o, false, &peer, timed);

    peer = o->threads <= 1;
    if (!status)
        status = measure_mode(o, true, &peer, functional);
    for (uint32_t i = 0; !status && i < ROWS; i++)
        add_rate(r, o, rows[i].timed, &timed[i], rows[i].timed_goal);
    for (uint32_t i = 0; !status && i < ROWS; i++)
        add_rate(r, o, rows[i].functional, &functional[i], rows[i].functional_goal);
    for (uint32_t i = 0; !status && i < ROWS; i++)
        if (functional[i].ratio > 0)
            add_against(r, &rows[i], &functional[i]);
    if (!status && o->threads > 1)
        bench_note(r, "Units on %u host threads, by the clock: see --help. ", o->threads);
    else if (!status && !peer)
        bench_note(r, "qemu-riscv64 is not there or did not run the kernels (apt-get install qemu-user): no comparison. ");
    return status;
}
