/* SPDX-License-Identifier: MIT */
/* kernels_libm.c - kernels that call picolibc's libm and libgcc. */
#include <math.h>
#include <string.h>

#include <device/petrel_device.h>

#include "libm_cases.h"

#define LIBM_KERNEL(name_, type_, call_, ulp_)                                                   \
    PETREL_KERNEL(libm_##name_, struct libm_args)                                               \
    {                                                                                           \
        uint32_t i = petrel_global_id(0);                                                       \
        type_ x = ((const type_ *)args->x)[i], y = ((const type_ *)args->y)[i];                 \
                                                                                                \
        (void)y;                                                                                \
        ((type_ *)args->out)[i] = call_;                                                        \
    }
LIBM_CASES(LIBM_KERNEL)

/* Division of 128 bits is libgcc's. */
PETREL_KERNEL(gcc_int128, struct libm_args)
{
    uint32_t i = petrel_global_id(0);
    const uint64_t *x = (const uint64_t *)args->x, *y = (const uint64_t *)args->y;
    unsigned __int128 a = (unsigned __int128)x[i] << 64 | y[i];
    uint64_t b = y[i] >> (i % 32) | 1;

    ((uint64_t *)args->out)[i] = (uint64_t)(a / b) ^ (uint64_t)(a % b);
}
