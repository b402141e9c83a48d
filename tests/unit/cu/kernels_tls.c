/* SPDX-License-Identifier: MIT */
/* kernels_tls.c - kernels with variables that each lane has for itself. */
#include <device/petrel_device.h>

struct tls_args { uint64_t out; uint32_t n, rounds; };

static _Thread_local uint32_t counter = 1000;
static _Thread_local uint64_t zeros[5];
static _Thread_local __attribute__((aligned(64))) uint8_t bytes[3] = { 1, 2, 3 };

static __attribute__((noinline)) void count(uint32_t by)
{
    counter += by;
    zeros[by % 5] += by;
}

/* Calls of a depth of the lane's own; what lies below the variables must not reach them. */
static __attribute__((noinline)) uint32_t dive(volatile uint32_t *above, uint32_t n)
{
    volatile uint32_t here[8] = { n, *above };

    count(1);
    return n ? dive(here, n - 1) + here[0] : here[1];
}

PETREL_KERNEL(tls_count, struct tls_args)
{
    uint32_t i = petrel_global_id(0), *out = (uint32_t *)args->out + 4 * i;
    volatile uint32_t top = i;
    uint64_t sum = 0;

    for (uint32_t k = 0; k < i % 7; k++)
        count(i % 3);
    (void)dive(&top, i % 5);
    for (unsigned k = 0; k < 5; k++)
        sum += zeros[k];
    out[0] = counter;
    out[1] = (uint32_t)sum;
    out[2] = bytes[0] + 10u * bytes[1] + 100u * bytes[2];
    out[3] = (uint32_t)((uintptr_t)bytes % 64);
}
