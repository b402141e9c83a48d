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

enum { BLOCK = SIM_BLOCK, TABLE_B = SIM_TABLE_B, CHECKED = 1024, PRIVATE_B = 16384, RUNS_MAX = 4096 };
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
};

/* What one row's kernels took and did, once each. */
struct work { double s; uint64_t lane_instr; };

static double processor_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
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

static bool open_sim(struct bench_sim *b, bool functional)
{
    const struct sim_config config = { .lanes = BLOCK, .functional = functional, .private_B = PRIVATE_B };
    struct sim_error error;

    *b = (struct bench_sim){ .args_va = DATA_VA };
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

/* Median of the runs that fit into so many seconds of processor time. Value: exit status. */
static int measure_kernel(struct bench_sim *b, const struct row *row, uint32_t kernel, double seconds, struct work *work)
{
    static double runs[RUNS_MAX];
    struct hw_cu_counters before, after;
    double begin;
    uint32_t n = 0;

    fill(b, row, kernel);
    sim_counters(b->sim, &before);
    if (!launch(b, row, kernel))
        return EXIT_DEVICE;
    sim_counters(b->sim, &after);
    if (!results_hold(b, row, kernel))
        return EXIT_WRONG;
    begin = processor_s();
    do {
        double start = processor_s();

        if (!launch(b, row, kernel))
            return EXIT_DEVICE;
        runs[n++] = processor_s() - start;
    } while (processor_s() - begin < seconds && n < RUNS_MAX);
    qsort(runs, n, sizeof(runs[0]), by_value);
    work->s += runs[n / 2];
    work->lane_instr += after.lane_instr - before.lane_instr;
    return EXIT_DONE;
}

static int measure_row(struct bench_sim *b, const struct row *row, double seconds, struct work *work)
{
    int status = EXIT_DONE;

    *work = (struct work){ 0 };
    for (uint32_t k = row->first; !status && k < row->first + row->count; k++)
        status = measure_kernel(b, row, k, seconds / row->count, work);
    return status;
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

/* Seconds of one run of the row's kernels in qemu-riscv64; 0: it is not there, or cannot run them. */
static double peer_s(const struct row *row, double seconds)
{
    char path[2048], text[5][24], out[128];
    double sum = 0;

    if (!tool_kernel_path("sim_linux.elf", path, sizeof(path)))
        return 0;
    for (uint32_t k = row->first; k < row->first + row->count; k++) {
        char *argv[] = { "qemu-riscv64", path, text[0], text[1], text[2], text[3], text[4], NULL };
        uint64_t ns, runs;

        snprintf(text[0], sizeof(text[0]), "%u", k);
        snprintf(text[1], sizeof(text[1]), "%u", row->items);
        snprintf(text[2], sizeof(text[2]), "%u", row->n);
        snprintf(text[3], sizeof(text[3]), "%u", row->rounds);
        snprintf(text[4], sizeof(text[4]), "%u", (unsigned)(seconds * 1000 / row->count));
        if (!peer_output(argv, out, sizeof(out)) || sscanf(out, "%" SCNu64 " %" SCNu64, &ns, &runs) != 2 || !runs)
            return 0;
        sum += (double)ns * 1e-9 / (double)runs;
    }
    return sum;
}

/* ---- The report ---- */

static double rate(uint64_t lane_instr, double s)
{
    return (double)lane_instr / s * 1e-9;
}

static void add_rate(struct bench_report *r, const char *name, const struct work *w, double goal)
{
    bench_add(r, (struct bench_figure){ .name = name, .unit = "G lane-ins/s", .value = rate(w->lane_instr, w->s),
                                        .kind = goal > 0 ? BENCH_AT_LEAST : BENCH_NO_GOAL, .goal = goal });
}

/* The peer's rate is that of the device's instructions, as if it ran them: so the ratio is that of the times for the same work. */
static void add_against(struct bench_report *r, const struct row *row, const struct work *w, double s)
{
    bench_add(r, (struct bench_figure){ .name = row->against, .unit = "G lane-ins/s", .value = rate(w->lane_instr, w->s), .peer = "qemu-riscv64",
                                        .peer_value = rate(w->lane_instr, s), .kind = row->peer_goal > 0 ? BENCH_TIMES_AT_LEAST : BENCH_NO_GOAL,
                                        .goal = row->peer_goal });
}

static int measure_mode(const struct bench_options *o, bool functional, struct work works[ROWS])
{
    struct bench_sim b;
    int status = open_sim(&b, functional) ? EXIT_DONE : EXIT_ENVIRONMENT;

    for (uint32_t i = 0; !status && i < ROWS; i++)
        status = measure_row(&b, &rows[i], o->seconds, &works[i]);
    close_sim(&b);
    return status;
}

int bench_sim(const struct bench_options *o, struct bench_report *r)
{
    struct work timed[ROWS], functional[ROWS];
    bool peer = true;
    int status = measure_mode(o, false, timed);

    if (!status)
        status = measure_mode(o, true, functional);
    for (uint32_t i = 0; !status && i < ROWS; i++)
        add_rate(r, rows[i].timed, &timed[i], rows[i].timed_goal);
    for (uint32_t i = 0; !status && i < ROWS; i++)
        add_rate(r, rows[i].functional, &functional[i], rows[i].functional_goal);
    for (uint32_t i = 0; !status && peer && i < ROWS; i++) {
        double s = peer_s(&rows[i], o->seconds);

        if (s > 0)
            add_against(r, &rows[i], &functional[i], s);
        peer = s > 0;
    }
    if (!status && !peer)
        bench_note(r, "qemu-riscv64 is not there or did not run the kernels (apt-get install qemu-user): no comparison. ");
    return status;
}
