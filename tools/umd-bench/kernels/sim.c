/* SPDX-License-Identifier: MIT */
/* sim.c - the kernels of umd-bench sim for the device. */
#include <device/petrel_device.h>

#include "sim.h"

#define SIM_KERNEL(name_)                                                 \
    PETREL_KERNEL(sim_##name_, struct sim_args)                           \
    {                                                                     \
        item_##name_(args, petrel_global_id(0));                          \
    }
SIM_KERNELS(SIM_KERNEL)
