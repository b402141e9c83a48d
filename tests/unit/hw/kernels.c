/* SPDX-License-Identifier: MIT */
/* kernels.c - kernels that the device tests run: saxpy, and a sum that needs local memory, barriers and a stack. */
#include <device/petrel_device.h>

struct saxpy_args {
    const float *x;
    float *y;
    float a;
    uint32_t n;
};

PETREL_KERNEL(saxpy, struct saxpy_args)
{
    uint32_t i = petrel_global_id(0);
    if (i < args->n)
        args->y[i] += args->a * args->x[i];
}

struct sum_args {
    const uint32_t *in;
    uint64_t *out; /* one per workgroup */
};

PETREL_KERNEL_BLOCK(block_sum, struct sum_args, 256, 256 * 8)
{
    volatile uint64_t *shared = petrel_local_mem();
    volatile uint32_t digits[8]; /* lives on the stack: private memory */
    const uint32_t lane = petrel_local_id(0);
    uint64_t v = 0;
    for (uint32_t k = 0; k < 8; k++)
        digits[k] = args->in[petrel_global_id(0)] >> 4 * k & 15;
    for (uint32_t k = 0; k < 8; k++)
        v += (uint64_t)digits[k] << 4 * k;
    shared[lane] = v;
    for (uint32_t half = petrel_block_dim(0) / 2; half > 0; half /= 2) {
        petrel_barrier();
        if (lane < half)
            shared[lane] += shared[lane + half];
    }
    if (lane == 0)
        args->out[petrel_group_id(0)] = shared[0];
}
