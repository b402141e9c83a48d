/* SPDX-License-Identifier: MIT */
/* cu_bench.c - how fast the compute units are simulated: lane instructions per second over a few kernels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cu_fixture.h"

struct bench_args { uint64_t a, b, c; uint32_t n, rounds; };

static const struct bench { const char *name; uint32_t items, n, rounds; } benches[] = {
    { "bench_saxpy", 1u << 20, 1u << 20, 0 },
    { "bench_matmul", 256 * 256, 256, 0 },
    { "bench_hash", 1u << 16, 0, 100 },
    { "bench_divergent", 1u << 14, 0, 100 },
    { "bench_chase", 1u << 14, 1u << 20, 100 },
};

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fill(struct cu_fixture *f, const struct bench *b, const struct bench_args *args)
{
    uint32_t *a = fixture_host(f, args->a);

    if (strcmp(b->name, "bench_chase"))
        return;
    for (uint32_t i = 0; i < b->n; i++)
        a[i] = (i * 1664525u + 1013904223u) % b->n;
}

static void measure(struct cu_fixture *f, const struct bench *b)
{
    struct hw_cu_counters before, after;
    struct bench_args *args;
    uint64_t va, entry = fixture_kernel(f, b->name);
    double start, spent;

    fixture_reset_data(f);
    va = fixture_alloc(f, sizeof(*args));
    args = fixture_host(f, va);
    *args = (struct bench_args){ .n = b->n, .rounds = b->rounds };
    args->a = fixture_alloc(f, 4u << 20);
    args->b = fixture_alloc(f, 4u << 20);
    args->c = fixture_alloc(f, 4u << 20);
    fill(f, b, args);
    fixture_run_ok(f, entry, b->items / 256, 256, 0, va);
    hw_cu_get_counters(f->cus, &before);
    start = seconds();
    do {
        fixture_run_ok(f, entry, b->items / 256, 256, 0, va);
        spent = seconds() - start;
    } while (spent < 0.5);
    hw_cu_get_counters(f->cus, &after);
    printf("%-16s %8.3f G lane-instructions/s  %8.1f M warp-instructions/s  %5.1f lanes active  %10.3f cycles/warp-instruction\n",
           b->name + strlen("bench_"), (double)(after.lane_instr - before.lane_instr) / spent / 1e9,
           (double)(after.warp_instr - before.warp_instr) / spent / 1e6,
           (double)(after.lane_instr - before.lane_instr) / (double)(after.warp_instr - before.warp_instr),
           (double)(after.cycles - before.cycles) / (double)(after.warp_instr - before.warp_instr));
}

int main(int argc, char **argv)
{
    struct cu_fixture f;
    bool base = false, functional = false;
    const char *path = NULL;

    for (int i = 1; i < argc; i++) {
        base |= !strcmp(argv[i], "--base");
        functional |= !strcmp(argv[i], "--functional");
        if (argv[i][0] != '-')
            path = argv[i];
    }
    if (!path) {
        fprintf(stderr, "usage: cu-bench [--base] [--functional] KERNELS.pco\n");
        return 1;
    }
    fixture_create(&f, base, functional);
    fixture_load(&f, path);
    for (size_t i = 0; i < sizeof(benches) / sizeof(benches[0]); i++)
        measure(&f, &benches[i]);
    fixture_destroy(&f);
    return 0;
}
