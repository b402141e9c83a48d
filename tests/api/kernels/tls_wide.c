/* SPDX-License-Identifier: MIT */
/* tls_wide.c - a kernel whose thread-local storage is small, and whose lanes' blocks are not: they come in units of the alignment. */
#include <device/petrel_device.h>

struct args { uint64_t out; uint32_t n, rounds; };

static _Thread_local __attribute__((aligned(2048))) volatile uint32_t wide[6];

PETREL_KERNEL(tls_wide, struct args)
{
    wide[args->n % 6] = petrel_lane();
}
