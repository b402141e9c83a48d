/* SPDX-License-Identifier: MIT */
/* kernels_bench.c - kernels whose simulation speed cu-bench measures. */
#include <device/petrel_device.h>

struct bench_args { const float *a; const float *b; float *c; uint32_t n; uint32_t rounds; };

PETREL_KERNEL(bench_saxpy, struct bench_args)
{
    uint32_t i = petrel_global_id(0);

    if (i < args->n)
        args->c[i] = 2.0f * args->a[i] + args->b[i];
}

/* c = a * b, n x n. */
PETREL_KERNEL(bench_matmul, struct bench_args)
{
    uint32_t n = args->n, i = petrel_global_id(0), row = i / n, col = i % n;
    const float *a = args->a + (size_t)row * n, *b = args->b + col;
    float sum = 0;

    for (uint32_t k = 0; k < n; k++)
        sum += a[k] * b[(size_t)k * n];
    args->c[i] = sum;
}

PETREL_KERNEL(bench_hash, struct bench_args)
{
    uint32_t i = petrel_global_id(0), h = i;

    for (uint32_t k = 0; k < args->rounds; k++) {
        h ^= h >> 16;
        h *= 0x7feb352du;
        h ^= h >> 15;
        h *= 0x846ca68bu;
    }
    ((uint32_t *)args->c)[i] = h;
}

PETREL_KERNEL(bench_divergent, struct bench_args)
{
    uint32_t i = petrel_global_id(0), x = i * 2654435761u, steps = 0;

    for (uint32_t k = 0; k < args->rounds; k++) {
        if (x & 1)
            x = x * 3 + 1;
        else if (x & 2)
            x = (x >> 1) ^ 0x9e3779b9u;
        else
            x += steps;
        steps += x & 7;
    }
    ((uint32_t *)args->c)[i] = steps;
}

PETREL_KERNEL(bench_chase, struct bench_args)
{
    uint32_t i = petrel_global_id(0), at = i % args->n;
    const uint32_t *next = (const uint32_t *)args->a;

    for (uint32_t k = 0; k < args->rounds; k++)
        at = next[at];
    ((uint32_t *)args->c)[i] = at;
}
