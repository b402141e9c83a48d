/* SPDX-License-Identifier: MIT */
/* kernels_ops.c - a kernel that calls every function of petrel_device_ops.h. */
#include <device/petrel_device.h>

#include "ops_cases.h"

#define STORE(name_, type_, value_, ...) *(type_ *)&out[OPS_##name_] = (value_);
#define STORE_MATH(name_, value_, ...) *(float *)&out[OPS_##name_] = (value_);
#define STORE_OLD(name_, type_, value_, ...)                \
    {                                                       \
        type_ *p = (type_ *)&words[OPS_##name_];            \
                                                            \
        *(type_ *)&out[OPS_##name_] = (value_);             \
    }

/* Waiting for others, in all the ways there are: the other warp's words are seen behind the barrier, all lanes behind warp_sync. */
static inline __attribute__((always_inline)) void sync_all(uint64_t *out, uint32_t item)
{
    volatile uint32_t *local = petrel_local_mem();

    local[item] = item + 1;
    petrel_barrier();
    *(uint32_t *)&out[OPS_barrier] = local[63 - item];
    if (petrel_lane() & 1)
        petrel_yield();
    petrel_warp_sync();
    *(uint32_t *)&out[OPS_warp_sync] = petrel_ballot(1);
}

/* Half precision by Zfh. */
static inline __attribute__((always_inline)) void half_all(_Float16 *out, float x, float y)
{
    _Float16 a = (_Float16)x, b = (_Float16)y;

    out[0] = a;
    out[1] = a * b;
    out[2] = a / b;
    out[3] = (_Float16)(int)b;
    out[4] = a < b ? a : b;
    out[5] = (_Float16)__builtin_sqrtf((float)b);
    *(float *)&out[6] = (float)(a - b);
}

PETREL_KERNEL_BLOCK(ops, struct ops_args, 64, 256)
{
    uint32_t item = petrel_local_id(0) + 8 * (petrel_local_id(1) + 4 * petrel_local_id(2));
    uint32_t group = petrel_group_id(0) + 2 * (petrel_group_id(1) + 3 * petrel_group_id(2));
    const struct ops_item *in = (const struct ops_item *)args->in + group * 64 + item;
    uint64_t *out = (uint64_t *)args->out + (group * 64 + item) * OPS_COUNT, *words = (uint64_t *)args->words + (group * 64 + item) * OPS_COUNT;
    uint64_t v = in->v, by = in->by, start = petrel_cycles();
    float x = in->x, y = in->y, z = in->z;

    OPS_ID(STORE)
    sync_all(out, item);
    if (args->mask >> petrel_lane() & 1) {
        OPS_WARP(STORE)
    }
    OPS_ATOMIC(STORE_OLD)
    OPS_MATH(STORE_MATH)
    half_all((_Float16 *)&out[OPS_half], x, y);
    out[OPS_cycles] = petrel_cycles() - start;
    if (args->code)
        petrel_trap(args->code);
}
