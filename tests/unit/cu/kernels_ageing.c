/* SPDX-License-Identifier: MIT */
/* kernels_ageing.c - the shapes of ageing.h. */
#include <device/petrel_device.h>

#include "ageing.h"

#define NOINLINE __attribute__((noinline, unused))
#define ONE_OF_ALL() ((uint32_t)petrel_reduce_add_i64(1))

/* What the compiler can say nothing about: no two branches become one. */
static inline uint32_t opaque(uint32_t v)
{
    __asm__ volatile("" : "+r"(v));
    return v;
}

/* Takes long, and gets on. */
static NOINLINE void take_long(const struct ageing_args *a)
{
    uint32_t x = 1;

    for (uint32_t k = 0; k < a->rounds; k++) {
        x = opaque(x * 3 + k);
        if (a->sync)
            petrel_atomic_add_u32((uint32_t *)a->word, 1);
    }
}

static NOINLINE void behind_branch(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    if (i == 0)
        take_long(a);
    if (opaque(i) != 5)
        o[0] = ONE_OF_ALL();
}

static NOINLINE void tail_guard(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    if (i == 3)
        take_long(a);
    if (opaque(i) >= 29)
        return;
    o[0] = petrel_ballot(1);
    o[1] = petrel_ballot(i & 1);
}

static NOINLINE void one_then_all(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    if (i & 1)
        take_long(a);
    if (opaque(i) & 1)
        o[0] = ONE_OF_ALL();
    o[1] = ONE_OF_ALL();
}

static NOINLINE void inside_of_branch(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    if (i < 16) {
        if (i & 1)
            take_long(a);
        if (opaque(i) & 1)
            o[0] = ONE_OF_ALL();
    }
    o[1] = ONE_OF_ALL();
}

static NOINLINE void two_barriers(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    if (i == 0)
        take_long(a);
    if (opaque(i) & 1) {
        o[0] = 1;
        petrel_barrier();
        o[1] = petrel_ballot(1);
    } else {
        o[0] = 2;
        petrel_barrier();
        o[1] = petrel_ballot(1);
    }
    o[2] = petrel_ballot(1);
}

static NOINLINE void recurse(uint32_t i, uint32_t d, const struct ageing_args *a, uint32_t *o)
{
    if (i == 0 && d == 0)
        take_long(a);
    if (d < opaque(i ? 2 : 1))
        recurse(i, d + 1, a, o);
    else
        o[0] = ONE_OF_ALL();
    o[1] = opaque(o[1] + 1);
}

static NOINLINE void recursion(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    recurse(i, 0, a, o);
    o[2] = ONE_OF_ALL();
}

/* The lanes that skip the second operation come round to the first before the others are through. */
static NOINLINE void round_of_loop(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    for (uint32_t k = 0; k < 3; k++) {
        o[0] += ONE_OF_ALL();
        if (i == 0)
            take_long(a);
        if (opaque(i) & 1)
            o[1] += ONE_OF_ALL();
    }
    o[2] = ONE_OF_ALL();
}

/* Lane 0 does not take part in the first round. */
static NOINLINE void skipped_round(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    for (uint32_t k = 0; k < 2; k++) {
        if (i == 0)
            take_long(a);
        if (opaque(i) || k)
            o[k] = ONE_OF_ALL();
    }
}

static NOINLINE uint32_t reduce_in_call(uint32_t by)
{
    return ONE_OF_ALL() * by;
}

static NOINLINE void two_calls(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    if (i == 0)
        take_long(a);
    if (opaque(i) & 1)
        o[0] = opaque(reduce_in_call(1)) + 1;
    else
        o[0] = opaque(reduce_in_call(2)) + 3;
    o[1] = ONE_OF_ALL();
}

static NOINLINE uint32_t some_return(uint32_t i, const struct ageing_args *a)
{
    if (i < 8)
        return 1;
    if (i < 16) {
        take_long(a);
        return 2;
    }
    return opaque(3);
}

static NOINLINE void from_function(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    o[0] = some_return(i, a);
    if (opaque(i) < 20)
        o[1] = ONE_OF_ALL();
    o[2] = ONE_OF_ALL();
}

static NOINLINE void both_sides(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    if (i == 7)
        take_long(a);
    if (opaque(i) & 2) {
        o[0] = ONE_OF_ALL();
        if (opaque(i) & 4)
            o[1] = ONE_OF_ALL();
    } else {
        o[0] = petrel_ballot(1);
        if (opaque(i) & 8)
            o[1] = ONE_OF_ALL();
    }
    o[2] = petrel_ballot(1);
}

static NOINLINE void growing_loop(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    if (i == 30)
        take_long(a);
    for (uint32_t k = 0; k < opaque(i); k++)
        o[0] += ONE_OF_ALL();
    o[1] = ONE_OF_ALL();
}

static NOINLINE void shuffle(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    if (i & 4)
        take_long(a);
    if (opaque(i) != 31)
        o[0] = petrel_shfl_u32(i * 3, i ^ 1);
    o[1] = (uint32_t)petrel_reduce_add_f32((float)i);
}

static NOINLINE void warp_sync(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    if (i == 9)
        take_long(a);
    if (opaque(i) & 1)
        petrel_warp_sync();
    else
        petrel_warp_sync();
    o[0] = ONE_OF_ALL();
}

/* What a computed goto reaches is not known: no branch of the function has a meeting point. */
#define JUMP_ABOUT(o_)                                                  \
    do {                                                                \
        static void *const labels[] = { &&even, &&odd };                \
                                                                        \
        goto *labels[opaque(1)];                                        \
    odd:                                                                \
        (o_) += 10;                                                     \
    even:                                                               \
        (o_) += 1;                                                      \
    } while (0)

static NOINLINE void unresolved(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    uint32_t x = i;

    if (i < 16) {
        for (uint32_t k = 0; k < a->rounds; k++) {
            x = opaque(x * 3 + k);
            if (a->sync)
                petrel_atomic_add_u32((uint32_t *)a->word, 1);
        }
    }
    o[0] = ONE_OF_ALL();
    o[1] = petrel_ballot(1);
    JUMP_ABOUT(o[3]);
}

static NOINLINE void unresolved_loop(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    if (i & 1)
        take_long(a);
    o[0] = ONE_OF_ALL();
    for (uint32_t k = 0; k < 3; k++) {
        if (opaque(i) == 4)
            take_long(a);
        o[1] += ONE_OF_ALL();
    }
    JUMP_ABOUT(o[3]);
}

static NOINLINE uint32_t leave_early(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    for (uint32_t k = 0; k < 4; k++) {
        if (i == 2)
            take_long(a);
        if (k == opaque(i) % 8)
            return k;
    }
    return opaque(9);
}

static NOINLINE void early_return(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    o[0] = leave_early(i, a, o);
    if (opaque(o[0]) == 9)
        o[1] = petrel_ballot(1);
    o[2] = petrel_ballot(1);
}

/* Forced out of several places one in the other. */
static NOINLINE void nested_long(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    if (i < 24) {
        if (i < 16) {
            if (i < 8) {
                if (i < 4)
                    take_long(a);
                if (opaque(i) & 1)
                    o[0] = petrel_ballot(1);
            }
            if (opaque(i) & 2)
                o[1] = petrel_ballot(1);
        }
        if (opaque(i) & 4)
            take_long(a);
        o[2] = petrel_ballot(1);
    }
    if (opaque(i) & 8)
        o[3] = petrel_ballot(1);
}

/* Who waits by memory for what others do behind their operation is none of those it waits for: they cannot come to it any more. */
static NOINLINE void spin_side(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    volatile uint32_t *flag = (volatile uint32_t *)a->word + 1;

    if (i & 1)
        take_long(a);
    if (opaque(i) < 16) {
        o[0] = petrel_ballot(1);
        *flag = 1;
    } else {
        while (!*flag)
            ;
    }
    o[1] = ONE_OF_ALL();
}

static NOINLINE void wait_for(const volatile uint32_t *flag)
{
    while (!*flag)
        ;
}

static NOINLINE void spin_in_call(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    volatile uint32_t *flag = (volatile uint32_t *)a->word + 1;

    if (i & 1)
        take_long(a);
    if (opaque(i) < 16) {
        o[0] = petrel_ballot(1);
        *flag = 1;
    } else {
        wait_for(flag);
    }
    o[1] = ONE_OF_ALL();
}

static NOINLINE uint32_t early_or_all(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    if (opaque(i) & 1) {
        take_long(a);
        if (opaque(i) == 99)
            return 1;
        o[1] = 3;
    }
    o[0] = ONE_OF_ALL();
    return 2;
}

static NOINLINE void return_in_branch(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    o[3] = early_or_all(i, a, o);
    o[2] = ONE_OF_ALL();
}

static NOINLINE void two_sides(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    if (i < 2)
        take_long(a);
    if (opaque(i) < 8) {
        if (opaque(i) == 0)
            o[1] = opaque(5) * opaque(3);
        o[0] = ONE_OF_ALL();
    } else {
        o[0] = ONE_OF_ALL() + opaque(100);
    }
    o[2] = ONE_OF_ALL();
}

static NOINLINE void round_else(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    for (uint32_t k = 0; k < 2; k++) {
        if (!k && i < 2)
            take_long(a);
        if (opaque(k) && i < 16) {
            o[0] = ONE_OF_ALL();
        } else {
            if (opaque(i) & 1)
                o[1] = opaque(o[1] + 1);
            o[3] = opaque(9);
        }
    }
    o[2] = ONE_OF_ALL();
}

static NOINLINE uint32_t long_then_one(const struct ageing_args *a)
{
    take_long(a);
    return ONE_OF_ALL();
}

static NOINLINE void long_in_two_calls(uint32_t i, const struct ageing_args *a, uint32_t *o)
{
    if (opaque(i) & 1) {
        o[0] = long_then_one(a) + opaque(0);
    } else {
        o[1] = opaque(7);
        o[0] = long_then_one(a);
    }
    o[2] = ONE_OF_ALL();
}

#define SHAPE(name_)                                                                                                \
    PETREL_KERNEL(shape_##name_, struct ageing_args)                                                                        \
    {                                                                                                               \
        name_(petrel_lane(), args, (uint32_t *)args->out + AGEING_WORDS * petrel_lane());                           \
    }
AGEING_SHAPES(SHAPE)
AGEING_WHOLE_SHAPES(SHAPE)
