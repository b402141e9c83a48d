/* SPDX-License-Identifier: MIT */
/* case.c - kernels of umd-case: one that works, one that is slow, and one for each way to fail. */
#include <device/petrel_device.h>

#include "../case_args.h"

/* dst[i] += a */
PETREL_KERNEL(add, struct case_args)
{
    uint32_t i = petrel_global_id(0);
    uint32_t *dst = (uint32_t *)(uintptr_t)args->dst;

    if (i < args->n)
        dst[i] += args->a;
}

/* Divisions that wait for each other: long in device time, short in host time. A workgroup takes all local memory, so that few run at once. */
PETREL_KERNEL_BLOCK(slow, struct case_args, 32, 65536)
{
    uint32_t v = petrel_group_id(0) + 1;
    uint32_t *dst = (uint32_t *)(uintptr_t)args->dst;

    for (uint32_t i = 0; i < args->a; i++)
        v = 0x7fffffffu / (v | 1u);
    dst[petrel_group_id(0) % args->n] = v;
}

/* Waits for a value that nobody writes. */
PETREL_KERNEL(spin, struct case_args)
{
    const volatile uint32_t *flag = (const volatile uint32_t *)(uintptr_t)args->dst;

    while (*flag != args->a)
        petrel_yield();
}

/* Writes to its own arguments, which lie in memory that a kernel may only read. */
PETREL_KERNEL(scribble, struct case_args)
{
    *(volatile uint32_t *)&args->a = 1;
}

/* An atomic at an odd address. */
PETREL_KERNEL(odd_atomic, struct case_args)
{
    petrel_atomic_add_u32((uint32_t *)(uintptr_t)(args->dst + 1), 1);
}

/* Recursion without an end, a frame of at least 64 bytes each. */
static uint32_t __attribute__((noinline)) dive(volatile uint32_t *above, uint32_t n)
{
    volatile uint32_t here[16];

    here[n & 15u] = *above + n;
    return n ? dive(here, n - 1) + here[n & 15u] : here[0];
}

PETREL_KERNEL(deep, struct case_args)
{
    volatile uint32_t top = 1;

    *(uint32_t *)(uintptr_t)args->dst = dive(&top, args->a);
}

PETREL_KERNEL(give_up, struct case_args)
{
    petrel_trap(args->a);
}

/* Half the warp waits at the barrier, the other half at a place that only the whole warp can pass. */
PETREL_KERNEL(bad_barrier, struct case_args)
{
    uint32_t i = petrel_local_id(0);

    if (i < 16)
        petrel_barrier();
    petrel_warp_sync();
    ((uint32_t *)(uintptr_t)args->dst)[i] = i;
}

/* An instruction of some other machine. */
PETREL_KERNEL(foreign, struct case_args)
{
    __asm__ volatile(".word 0xffffffff");
}
