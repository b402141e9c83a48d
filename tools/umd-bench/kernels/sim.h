/* SPDX-License-Identifier: MIT */
/* sim.h - the kernels of umd-bench sim, a work-item at a time: for the device, for another simulator, and for the host as the reference. */
#ifndef BENCH_KERNELS_SIM_H
#define BENCH_KERNELS_SIM_H

#include <stdint.h>

#include "divergent.h"

#define SIM_BLOCK 256u
#define SIM_CHECKED 1024u /* results that are compared: the first */
/* Tables do not lie a power of two apart: what they compete for in the host's cache would be all of one set. */
#define SIM_TABLE_B (4u << 20)
#define SIM_PAD_B (5u * 4096u + 256u)

struct sim_args { uint64_t a, b, c; uint32_t n, rounds; };

#define SIM_ITEM static inline __attribute__((always_inline)) void
/* Fixed ones, and each function of the divergent set. */
#define SIM_FIXED(KERNEL) KERNEL(saxpy) KERNEL(matmul) KERNEL(hash) KERNEL(chase)
#define SIM_KERNELS(KERNEL) SIM_FIXED(KERNEL) DIVERGENT_CASES(KERNEL)

/* c = 2 a + b, `rounds` elements a work-item; workgroups of SIM_BLOCK take consecutive pieces. */
SIM_ITEM item_saxpy(const struct sim_args *args, uint32_t i)
{
    const float *a = (const float *)args->a, *b = (const float *)args->b;
    float *c = (float *)args->c;
    uint32_t rounds = args->rounds, at = i / SIM_BLOCK * SIM_BLOCK * rounds + i % SIM_BLOCK, end = at + rounds * SIM_BLOCK;

    for (; at < end; at += SIM_BLOCK)
        c[at] = 2.0f * a[at] + b[at];
}

/* c = a * b, n x n. */
SIM_ITEM item_matmul(const struct sim_args *args, uint32_t i)
{
    uint32_t n = args->n, row = i / n, col = i % n;
    const float *a = (const float *)args->a + (uint64_t)row * n, *b = (const float *)args->b + col;
    float sum = 0;

    for (uint32_t k = 0; k < n; k++)
        sum += a[k] * b[(uint64_t)k * n];
    ((float *)args->c)[i] = sum;
}

SIM_ITEM item_hash(const struct sim_args *args, uint32_t i)
{
    uint32_t h = i;

    for (uint32_t k = 0; k < args->rounds; k++) {
        h ^= h >> 16;
        h *= 0x7feb352du;
        h ^= h >> 15;
        h *= 0x846ca68bu;
    }
    ((uint32_t *)args->c)[i] = h;
}

/* Each follows a chain of its own through a table. */
SIM_ITEM item_chase(const struct sim_args *args, uint32_t i)
{
    const uint32_t *next = (const uint32_t *)args->a;
    uint32_t at = i % args->n;

    for (uint32_t k = 0; k < args->rounds; k++)
        at = next[at];
    ((uint32_t *)args->c)[i] = at;
}

#define SIM_DIVERGENT(name_)                                              \
    SIM_ITEM item_##name_(const struct sim_args *args, uint32_t i)        \
    {                                                                     \
        ((uint32_t *)args->c)[i] = div_##name_(i);                        \
    }
DIVERGENT_CASES(SIM_DIVERGENT)

#endif
