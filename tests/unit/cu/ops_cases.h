/* SPDX-License-Identifier: MIT */
/* ops_cases.h - every function of petrel_device_ops.h: how kernels_ops.c calls it, and what a host says it gives. */
#ifndef TEST_CU_OPS_CASES_H
#define TEST_CU_OPS_CASES_H

#include <stdint.h>

/* A work-item's operands. z is NaN in some lanes. */
struct ops_item { uint64_t v, by; float x, y, z, pad; };
/* Warp functions are called by the lanes of mask; code other than 0: the kernel ends by petrel_trap(code). */
struct ops_args { uint64_t in, words, out; uint32_t mask, code; };

#define OPS_GRID { 2, 3, 2 }
#define OPS_BLOCK { 8, 4, 2 }

/*
 * OP(name, type, the kernel's expression, the host's). The kernel's has the operands of the work-item; the host's has those (`in`), the lane `l`,
 * the item's place (`at`), and functions over the active lanes of the warp.
 */
#define OPS_ID(OP)                                                                                                                     \
    OP(local_id, uint32_t, petrel_local_id(0) | petrel_local_id(1) << 8 | petrel_local_id(2) << 16, at->t[0] | at->t[1] << 8 | at->t[2] << 16) \
    OP(group_id, uint32_t, petrel_group_id(0) | petrel_group_id(1) << 8 | petrel_group_id(2) << 16, at->g[0] | at->g[1] << 8 | at->g[2] << 16) \
    OP(block_dim, uint32_t, petrel_block_dim(0) | petrel_block_dim(1) << 8 | petrel_block_dim(2) << 16, 0x020408)                       \
    OP(grid_dim, uint32_t, petrel_grid_dim(0) | petrel_grid_dim(1) << 8 | petrel_grid_dim(2) << 16, 0x020302)                           \
    OP(global_id, uint32_t, petrel_global_id(0) | petrel_global_id(1) << 8 | petrel_global_id(2) << 16,                                 \
       (at->g[0] * 8 + at->t[0]) | (at->g[1] * 4 + at->t[1]) << 8 | (at->g[2] * 2 + at->t[2]) << 16)                                    \
    OP(lane, uint32_t, petrel_lane(), l)                                                                                                \
    OP(warp, uint32_t, petrel_warp(), at->t[2])                                                                                         \
    OP(local_mem, uint64_t, (uint64_t)petrel_local_mem(), PETREL_LOCAL_BASE)

#define OPS_WARP(OP)                                                                              \
    OP(ballot, uint32_t, petrel_ballot((v & 4) != 0), voted(4))                                   \
    OP(any, int, petrel_any((v & 0x78000) == 0), voted(0x78000) != active)                        \
    OP(all, int, petrel_all((v & 0x78000) != 0), voted(0x78000) == active)                        \
    OP(shfl_u32, uint32_t, petrel_shfl_u32((uint32_t)v, (uint32_t)by), (uint32_t)from(by32)->v)    \
    OP(shfl_up_u32, uint32_t, petrel_shfl_up_u32((uint32_t)v, (uint32_t)by), (uint32_t)from(l - by32)->v)     \
    OP(shfl_down_u32, uint32_t, petrel_shfl_down_u32((uint32_t)v, (uint32_t)by), (uint32_t)from(l + by32)->v) \
    OP(shfl_xor_u32, uint32_t, petrel_shfl_xor_u32((uint32_t)v, (uint32_t)by), (uint32_t)from(l ^ by32)->v)   \
    OP(shfl_u64, uint64_t, petrel_shfl_u64(v, (uint32_t)by), from(by32)->v)                       \
    OP(shfl_up_u64, uint64_t, petrel_shfl_up_u64(v, (uint32_t)by), from(l - by32)->v)             \
    OP(shfl_down_u64, uint64_t, petrel_shfl_down_u64(v, (uint32_t)by), from(l + by32)->v)         \
    OP(shfl_xor_u64, uint64_t, petrel_shfl_xor_u64(v, (uint32_t)by), from(l ^ by32)->v)           \
    OP(shfl_f32, float, petrel_shfl_f32(x, (uint32_t)by), from(by32)->x)                          \
    OP(shfl_up_f32, float, petrel_shfl_up_f32(x, (uint32_t)by), from(l - by32)->x)                \
    OP(shfl_down_f32, float, petrel_shfl_down_f32(x, (uint32_t)by), from(l + by32)->x)            \
    OP(shfl_xor_f32, float, petrel_shfl_xor_f32(x, (uint32_t)by), from(l ^ by32)->x)              \
    OP(reduce_add_i64, int64_t, petrel_reduce_add_i64((int64_t)v), (int64_t)FOLD(uint64_t, v, a + b))      \
    OP(reduce_min_i64, int64_t, petrel_reduce_min_i64((int64_t)v), FOLD(int64_t, v, a < b ? a : b))        \
    OP(reduce_max_i64, int64_t, petrel_reduce_max_i64((int64_t)v), FOLD(int64_t, v, a > b ? a : b))        \
    OP(reduce_and_u64, uint64_t, petrel_reduce_and_u64(v | 0x70), FOLD(uint64_t, v, a & b) | 0x70)         \
    OP(reduce_or_u64, uint64_t, petrel_reduce_or_u64(v & 0x3333), FOLD(uint64_t, v, a | b) & 0x3333)       \
    OP(reduce_xor_u64, uint64_t, petrel_reduce_xor_u64(v), FOLD(uint64_t, v, a ^ b))                       \
    OP(reduce_add_f32, float, petrel_reduce_add_f32(x), FOLD(float, x, a + b))                             \
    OP(reduce_min_f32, float, petrel_reduce_min_f32(z), FOLD(float, z, smaller(a, b)))                     \
    OP(reduce_max_f32, float, petrel_reduce_max_f32(z), FOLD(float, z, -smaller(-a, -b)))

/* On a word of the work-item's own: the last column is what it holds afterwards, `old` what it held and the call must give. */
#define OPS_ATOMIC(OP)                                                                            \
    OP(atomic_add_u32, uint32_t, petrel_atomic_add_u32(p, (uint32_t)v), old + (uint32_t)in->v)     \
    OP(atomic_add_u64, uint64_t, petrel_atomic_add_u64(p, v), old + in->v)                        \
    OP(atomic_exchange_u32, uint32_t, petrel_atomic_exchange_u32(p, (uint32_t)v), (uint32_t)in->v) \
    OP(atomic_max_u32, uint32_t, petrel_atomic_max_u32(p, (uint32_t)v), old > (uint32_t)in->v ? old : (uint32_t)in->v) \
    OP(atomic_min_u32, uint32_t, petrel_atomic_min_u32(p, (uint32_t)v), old < (uint32_t)in->v ? old : (uint32_t)in->v) \
    OP(atomic_cas_u32, uint32_t, petrel_atomic_cas_u32(p, v & 1 ? *p : 5, (uint32_t)v), in->v & 1 ? (uint32_t)in->v : old) \
    OP(atomic_cas_u64, uint64_t, petrel_atomic_cas_u64(p, v & 1 ? *p : *p + (1ull << 32), v), in->v & 1 ? in->v : old)     \
    OP(atomic_add_f32, float, petrel_atomic_add_f32(p, x), old + in->x)                           \
    OP(atomic_min_f32, float, petrel_atomic_min_f32(p, x), smaller(old, in->x))                   \
    OP(atomic_max_f32, float, petrel_atomic_max_f32(p, x), -smaller(-old, -in->x))

/* OP(name, the kernel's expression, the host's, units in the last place that these may differ by). y is above 0. */
#define OPS_MATH(OP)                                                                              \
    OP(exp2f, petrel_exp2f(x), exp2((double)in->x), 1)                                            \
    OP(log2f, petrel_log2f(y), log2((double)in->y), 1)                                            \
    OP(rsqrtf, petrel_rsqrtf(y), 1 / sqrt((double)in->y), 1)                                      \
    OP(sinf, petrel_sinf(x), sin((double)in->x), 1)                                               \
    OP(cosf, petrel_cosf(x), cos((double)in->x), 1)                                               \
    OP(rcpf, petrel_rcpf(x), 1 / (double)in->x, 1)                                                \
    OP(sqrtf, petrel_sqrtf(y), sqrtf(in->y), 0)                                                   \
    OP(fabsf, petrel_fabsf(x), fabsf(in->x), 0)                                                   \
    OP(fmaf, petrel_fmaf(x, y, x), fmaf(in->x, in->y, in->x), 0)                                  \
    OP(fminf, petrel_fminf(x, z), smaller(in->x, in->z), 0)                                       \
    OP(fmaxf, petrel_fmaxf(x, z), -smaller(-in->x, -in->z), 0)                                    \
    OP(expf, petrel_expf(x), exp((double)in->x), 4)                                               \
    OP(logf, petrel_logf(y), log((double)in->y), 4)

#define OPS_NUMBER_(name_, ...) OPS_##name_,
enum {
    OPS_ID(OPS_NUMBER_) OPS_WARP(OPS_NUMBER_) OPS_ATOMIC(OPS_NUMBER_) OPS_MATH(OPS_NUMBER_)
    OPS_cycles, OPS_barrier, OPS_warp_sync, OPS_half,
    OPS_COUNT = OPS_half + 4
};

#endif
