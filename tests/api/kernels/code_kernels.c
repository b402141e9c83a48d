/* SPDX-License-Identifier: MIT */
/* code_kernels.c - kernels that fail in the ways which the API tests' kernels do not. */
#include <device/petrel_device.h>

struct one_args { uint32_t *dst; const uint32_t *src; uint32_t a, n; };

/* Writes to its own arguments, which lie in memory that a kernel may only read. */
PETREL_KERNEL(scribble, struct one_args)
{
    *(volatile uint32_t *)&args->a = 1;
}

/* An atomic at an odd address. */
PETREL_KERNEL(odd_atomic, struct one_args)
{
    petrel_atomic_add_u32((uint32_t *)((uintptr_t)args->dst + 1), 1);
}
