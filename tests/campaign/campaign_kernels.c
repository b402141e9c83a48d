/* SPDX-License-Identifier: MIT */
/* campaign_kernels.c - integer kernels of the campaign: exact on host and device. */
#include <device/petrel_device.h>

struct mix_args { uint32_t *dst; const uint32_t *src; uint32_t a, n; };

/* dst[i] = dst[i] * a + src[i] + i */
PETREL_KERNEL(mix, struct mix_args)
{
    uint32_t i = (uint32_t)petrel_global_id(0);
    if (i < args->n)
        args->dst[i] = args->dst[i] * args->a + args->src[i] + i;
}

/* Collatz-like divergent loop: dst[i] += steps of (src[i] & 1023) + 1, at most 200. */
PETREL_KERNEL(steps, struct mix_args)
{
    uint32_t i = (uint32_t)petrel_global_id(0);
    if (i >= args->n)
        return;
    uint32_t v = (args->src[i] & 1023u) + 1u, count = 0;
    while (v != 1u && count < 200u) {
        v = v & 1u ? v * 3u + 1u : v / 2u;
        count++;
    }
    args->dst[i] += count * args->a;
}
