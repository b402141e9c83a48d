/* SPDX-License-Identifier: MIT */
/* kernels_cu.c - kernels that the compute-unit tests run. */
#include <device/petrel_device.h>

#include "divergent.h"

struct test_args { uint64_t in, out; uint32_t n, m; };

#define DIVERGENT_KERNEL(name_)                                     \
    PETREL_KERNEL(name_, struct test_args)                          \
    {                                                               \
        uint32_t i = petrel_global_id(0), r = div_##name_(i + args->m); \
                                                                    \
        ((uint32_t *)args->out)[i] = r;                             \
        ((uint32_t *)args->out)[args->n + i] = petrel_ballot(1);    \
    }
DIVERGENT_CASES(DIVERGENT_KERNEL)

PETREL_KERNEL(saxpy, struct test_args)
{
    uint32_t i = petrel_global_id(0);

    if (i < args->n)
        ((float *)args->out)[i] += 2.0f * ((const float *)args->in)[i];
}

PETREL_KERNEL(ids, struct test_args)
{
    uint32_t item = petrel_local_id(0) + petrel_block_dim(0) * (petrel_local_id(1) + petrel_block_dim(1) * petrel_local_id(2));
    uint32_t group = petrel_group_id(0) + petrel_grid_dim(0) * (petrel_group_id(1) + petrel_grid_dim(1) * petrel_group_id(2));
    uint32_t items = petrel_block_dim(0) * petrel_block_dim(1) * petrel_block_dim(2);
    uint32_t *out = (uint32_t *)args->out + 4 * (group * items + item);

    out[0] = petrel_global_id(0);
    out[1] = petrel_global_id(1);
    out[2] = petrel_global_id(2);
    out[3] = petrel_warp() * 32 + petrel_lane();
}

/* Sum of a workgroup's values over local memory. */
PETREL_KERNEL_BLOCK(block_sum, struct test_args, 256, 1024)
{
    uint32_t *local = petrel_local_mem(), t = petrel_local_id(0);

    local[t] = ((const uint32_t *)args->in)[petrel_global_id(0)];
    petrel_barrier();
    for (uint32_t s = petrel_block_dim(0) / 2; s; s /= 2) {
        if (t < s)
            local[t] += local[t + s];
        petrel_barrier();
    }
    if (t == 0)
        ((uint32_t *)args->out)[petrel_group_id(0)] = local[0];
}

/* Some work-items return before the barrier: it counts those that are left. */
PETREL_KERNEL(barrier_after_return, struct test_args)
{
    uint32_t *out = (uint32_t *)args->out, t = petrel_local_id(0);

    if (t % 3 == 0)
        return;
    petrel_atomic_add_u32(&out[0], 1);
    petrel_barrier();
    out[1 + t] = out[0];
}

/* Half of each warp waits at the barrier, the other half at the end of the branch: never met. */
PETREL_KERNEL(barrier_wrong, struct test_args)
{
    uint32_t *out = (uint32_t *)args->out;

    if (petrel_lane() < 16)
        petrel_barrier();
    petrel_warp_sync();
    out[petrel_global_id(0)] = 1;
}

PETREL_KERNEL(spin_lock, struct test_args)
{
    volatile uint32_t *out = (volatile uint32_t *)args->out;

    for (uint32_t k = 0; k < args->m; k++) {
        while (petrel_atomic_cas_u32((uint32_t *)args->out, 0, 1) != 0)
            ;
        out[1] = out[1] + 1;
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        petrel_atomic_exchange_u32((uint32_t *)args->out, 0);
    }
}

/* Lane 31 sets what the others of its warp wait for. */
PETREL_KERNEL(wait_for_lane, struct test_args)
{
    volatile uint32_t *flag = (volatile uint32_t *)args->out;
    uint32_t i = petrel_global_id(0);

    if (petrel_lane() == 31)
        flag[petrel_group_id(0)] = 5;
    else
        while (flag[petrel_group_id(0)] != 5)
            ;
    flag[args->m + i] = petrel_ballot(1);
}

/* A lock by lr and sc as the compiler makes them, and a warp-wide operation inside the outer loop. */
PETREL_KERNEL(lock_then_ballot, struct test_args)
{
    uint32_t *lock = (uint32_t *)args->out, together = 0;

    for (uint32_t k = 0; k < 3; k++) {
        uint32_t expected = 0;

        while (!__atomic_compare_exchange_n(lock, &expected, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            expected = 0;
        lock[1]++;
        __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
        together += petrel_ballot(1) == 0xffffffffu;
    }
    lock[2 + petrel_global_id(0)] = together;
}

/* However long the loop: the reduction is of all lanes. The loop's end may be a function's, too. */
static NOINLINE uint32_t long_way(uint32_t x, uint32_t rounds, uint32_t last)
{
    for (uint32_t k = 0; k < rounds; k++) {
        x = mix(x + k);
        if (x == last)
            return k;
    }
    return x;
}

PETREL_KERNEL(long_half, struct test_args)
{
    uint32_t i = petrel_lane(), x = i + 1;

    if (i < 16)
        *(volatile uint32_t *)(args->out + 4 * (64 + i)) = long_way(i, args->m, 0);
    ((uint32_t *)args->out)[i] = (uint32_t)petrel_reduce_add_i64((int64_t)x);
    ((uint32_t *)args->out)[32 + i] = petrel_ballot(1);
}

/* Each lane draws a number and is served in turn: the warp's order of paths must not matter. */
PETREL_KERNEL(ticket_lock, struct test_args)
{
    volatile uint32_t *out = (volatile uint32_t *)args->out;

    for (uint32_t k = 0; k < args->m; k++) {
        uint32_t mine = petrel_atomic_add_u32((uint32_t *)args->out, 1);

        while (out[1] != mine)
            ;
        out[2] = out[2] + 1;
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        out[1] = mine + 1;
    }
}

/* The last warp of a workgroup sets what the others wait for, and waits for their answer. */
PETREL_KERNEL(wait_for_warp, struct test_args)
{
    volatile uint32_t *out = (volatile uint32_t *)args->out + 8 * petrel_group_id(0);

    if (petrel_warp() == 3) {
        out[0] = 1;
        while (out[1] != 96)
            ;
        out[2] = 1;
    } else {
        while (!out[0])
            ;
        petrel_atomic_add_u32((uint32_t *)out + 1, 1);
        while (!out[2])
            ;
    }
    petrel_barrier();
    if (petrel_local_id(0) == 0)
        out[3] = out[2] + 1;
}

static __attribute__((noinline)) int64_t lanes_here(int64_t v)
{
    return petrel_reduce_add_i64(v);
}

/* A lock whose waiters count, so that no state of theirs comes back. */
PETREL_KERNEL(counting_lock, struct test_args)
{
    uint32_t *lock = (uint32_t *)args->in, *sum = lock + 1, tries = 0;

    while (petrel_atomic_cas_u32(lock, 0, 1) != 0)
        tries++;
    *(volatile uint32_t *)sum = *(volatile uint32_t *)sum + 1;
    petrel_atomic_exchange_u32(lock, 0);
    ((uint32_t *)args->out)[petrel_global_id(0)] = tries;
}

PETREL_KERNEL(warp_ops, struct test_args)
{
    uint32_t lane = petrel_lane(), v = lane * lane + 3;
    int64_t *out = (int64_t *)args->out + 32 * petrel_lane();

    out[0] = petrel_ballot(lane % 3 == 0);
    out[1] = petrel_any(lane == 7);
    out[2] = petrel_all(lane < 32);
    out[3] = petrel_shfl_u32(v, (lane + 5) % 32);
    out[4] = petrel_shfl_up_u32(v, 3);
    out[5] = petrel_shfl_down_u32(v, 3);
    out[6] = petrel_shfl_xor_u32(v, 9);
    out[7] = petrel_reduce_add_i64(v);
    out[8] = petrel_reduce_min_i64((int64_t)v - 100);
    out[9] = petrel_reduce_max_i64(v);
    out[10] = (int64_t)petrel_reduce_and_u64(v | 1);
    out[11] = (int64_t)petrel_reduce_or_u64(v);
    out[12] = (int64_t)petrel_reduce_xor_u64(v);
    out[13] = (int64_t)petrel_reduce_add_f32((float)lane);
    out[14] = (int64_t)petrel_reduce_max_f32(-(float)lane);
    out[15] = (int64_t)petrel_shfl_xor_f32((float)lane, 1);
    if (lane & 1) {
        out[16] = petrel_ballot(1);
        out[17] = petrel_shfl_u32(v, lane ^ 1); /* not active: own value */
        out[18] = petrel_reduce_add_i64(1);
    }
    out[19] = (int64_t)petrel_shfl_u64((uint64_t)v << 40, 31 - lane);
    if (lane < args->n) /* two places, which stay two */
        out[20] = petrel_reduce_add_i64(1);
    else
        out[20] = petrel_reduce_add_i64(1) + 100;
    out[23] = lane & 1 ? lanes_here(1) + 1 : lanes_here(1) + 2;
    int64_t whole = 0, x = lane;
    for (uint32_t i = 0; i < args->m; i++) { /* one place, which stays one */
        if ((lane + i) & 1)
            x = x * 3 + 1;
        else
            x ^= i;
        whole += petrel_reduce_add_i64(1) == 32;
        if (x & 4)
            x += whole;
    }
    out[21] = whole;
    out[22] = x;
}

PETREL_KERNEL(atomics, struct test_args)
{
    uint32_t *out = (uint32_t *)args->out, i = petrel_global_id(0);

    petrel_atomic_add_u32(&out[0], i);
    petrel_atomic_max_u32(&out[1], i * 7 % 1000);
    petrel_atomic_min_u32(&out[2], i * 7 % 1000 + 1);
    petrel_atomic_add_f32((float *)&out[3], 0.5f);
    petrel_atomic_max_f32((float *)&out[4], (float)i);
    petrel_atomic_add_u64((uint64_t *)&out[6], 1ull << 32);
    petrel_atomic_cas_u64((uint64_t *)&out[8], 0, i + 1ull);
}

PETREL_KERNEL(math, struct test_args)
{
    uint32_t i = petrel_global_id(0), n = args->n;
    float x = ((const float *)args->in)[i], *out = (float *)args->out;

    out[i] = petrel_exp2f(x);
    out[n + i] = petrel_log2f(x);
    out[2 * n + i] = petrel_rsqrtf(x);
    out[3 * n + i] = petrel_sinf(x);
    out[4 * n + i] = petrel_cosf(x);
    out[5 * n + i] = petrel_rcpf(x);
    out[6 * n + i] = petrel_expf(x);
    out[7 * n + i] = petrel_logf(x);
}

static NOINLINE uint32_t deep(uint32_t n, uint32_t x)
{
    volatile uint32_t keep[4] = { n, x, n + x, n ^ x };

    if (n == 0)
        return x;
    return deep(n - 1, mix(x)) + keep[2] - keep[3] + keep[0];
}

/* Recursion as deep as the lane says, on private stacks. */
PETREL_KERNEL(recursion, struct test_args)
{
    uint32_t i = petrel_global_id(0);

    ((uint32_t *)args->out)[i] = deep(i % (args->m + 1), i);
}

PETREL_KERNEL(touch, struct test_args)
{
    uint32_t i = petrel_global_id(0);

    if (i == args->m)
        *(volatile uint32_t *)args->in = 1;
    ((uint32_t *)args->out)[i] = 1;
}

PETREL_KERNEL(trap_at, struct test_args)
{
    if (petrel_global_id(0) == args->m)
        petrel_trap(args->n);
    ((uint32_t *)args->out)[petrel_global_id(0)] = 1;
}

PETREL_KERNEL(forever, struct test_args)
{
    while (*(volatile uint32_t *)args->out == 0)
        ;
}

PETREL_KERNEL(overflow_stack, struct test_args)
{
    ((uint32_t *)args->out)[petrel_global_id(0)] = deep(100000, 1);
}
