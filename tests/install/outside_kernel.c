/* SPDX-License-Identifier: MIT */
/* outside_kernel.c - kernel of the installation test. */
#include <device/petrel_device.h>

struct scale_args { float *x; float a; uint32_t n; };

PETREL_KERNEL(scale, struct scale_args)
{
    uint32_t i = (uint32_t)petrel_global_id(0);
    if (i < args->n)
        args->x[i] *= args->a;
}
