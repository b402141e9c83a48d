/* SPDX-License-Identifier: MIT */
/* api_kernels.c - kernels of the API tests: one that works, and one for each way to fail. */
#include <device/petrel_device.h>

struct one_args { uint32_t *dst; const uint32_t *src; uint32_t a, n; };

/* dst[i] += src[i] * a */
PETREL_KERNEL(axpy, struct one_args)
{
    uint32_t i = petrel_global_id(0);
    if (i < args->n)
        args->dst[i] += args->src[i] * args->a;
}

/* Through a table of pointers: the code object holds relocations. */
static uint32_t twice(uint32_t v) { return v * 2; }
static uint32_t thrice(uint32_t v) { return v * 3; }
static uint32_t (*const volatile table[2])(uint32_t) = { twice, thrice };
PETREL_KERNEL(by_table, struct one_args)
{
    uint32_t i = petrel_global_id(0);
    if (i < args->n)
        args->dst[i] = table[args->a & 1u](i);
}

/* The sum of a workgroup, in static local memory, in the order of local ids. */
PETREL_KERNEL_BLOCK(group_sum, struct one_args, 128, 512)
{
    uint32_t *local = petrel_local_mem();
    uint32_t l = petrel_local_id(0), sum = 0;
    local[l] = args->src[petrel_global_id(0)];
    petrel_barrier();
    if (l)
        return;
    for (uint32_t i = 0; i < petrel_block_dim(0); i++)
        sum += local[i];
    args->dst[petrel_group_id(0)] = sum;
}

/* Stores where src says: the way to a wild pointer. */
PETREL_KERNEL(poke, struct one_args)
{
    *args->dst = args->a;
}

/* A loop that does not end: waits for a value that nobody writes. */
PETREL_KERNEL(spin, struct one_args)
{
    const volatile uint32_t *p = args->src;
    while (*p != args->a)
        petrel_yield();
}

/* Half the warp waits at the barrier, the other half at a place that only the whole warp can pass. */
PETREL_KERNEL(bad_barrier, struct one_args)
{
    uint32_t v = petrel_local_id(0);
    if (v < 16)
        petrel_barrier();
    petrel_warp_sync();
    args->dst[v] = v;
}

/* Recursion, a frame of at least 64 bytes each. */
static uint32_t __attribute__((noinline)) dive(volatile uint32_t *above, uint32_t n)
{
    volatile uint32_t here[16];
    here[n & 15u] = *above + n;
    return n ? dive(here, n - 1) + here[n & 15u] : here[0];
}
PETREL_KERNEL(deep, struct one_args)
{
    volatile uint32_t top = 1;
    args->dst[0] = dive(&top, args->a);
}

PETREL_KERNEL(trap, struct one_args)
{
    petrel_trap(args->a);
}

/* Beyond the end of the workgroup's local memory, of which it has 256 bytes. */
PETREL_KERNEL_BLOCK(beyond, struct one_args, 32, 256)
{
    volatile uint32_t *local = petrel_local_mem();
    local[args->a] = 1;
}

/* What a compiler makes of a place that must not be reached. */
PETREL_KERNEL(unreachable, struct one_args)
{
    if (args->a)
        __builtin_trap();
    args->dst[0] = 1;
}

/* Many short workgroups, each a loop: slow, and makes progress. */
PETREL_KERNEL(slow, struct one_args)
{
    uint32_t v = petrel_global_id(0);
    for (uint32_t i = 0; i < args->a; i++)
        v = v * 1664525u + 1013904223u;
    args->dst[petrel_global_id(0) % args->n] = v;
}

/* Divisions that wait for each other: long in device time, short in host time. A workgroup takes all local memory, so that one runs on each unit. */
PETREL_KERNEL_BLOCK(crawl, struct one_args, 32, 65536)
{
    uint32_t v = petrel_group_id(0) + 1;
    for (uint32_t i = 0; i < args->a; i++)
        v = 0x7fffffffu / (v | 1u);
    args->dst[petrel_group_id(0) % args->n] = v;
}

struct none { uint8_t unused; };
PETREL_KERNEL(nothing, struct none)
{
    (void)args;
}
