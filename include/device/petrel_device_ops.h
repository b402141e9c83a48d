/* SPDX-License-Identifier: MIT */
/* petrel_device_ops.h - inline functions behind petrel_device.h, over CSRs and custom-0. */
#ifndef PETREL_DEVICE_OPS_H
#define PETREL_DEVICE_OPS_H

#ifndef PETREL_CSR_READ
#error "include <device/petrel_device.h>"
#endif

/* No debug info: an instruction from here counts as one of the kernel's line that asked for it. */
#define PETREL_INLINE_ static inline __attribute__((always_inline, unused, nodebug))

/* ---- Work-item ids. d: dimension 0, 1, 2, a constant after inlining. ---- */

#define PETREL_ID_(name_, csr_)                                                       \
    PETREL_INLINE_ uint32_t name_(unsigned d)                                         \
    {                                                                                 \
        return (uint32_t)(d == 0 ? PETREL_CSR_READ(PETREL_CSR_##csr_##_X) :           \
                          d == 1 ? PETREL_CSR_READ(PETREL_CSR_##csr_##_Y) :           \
                                   PETREL_CSR_READ(PETREL_CSR_##csr_##_Z));           \
    }
PETREL_ID_(petrel_local_id, LOCAL_ID)   /**< in the workgroup */
PETREL_ID_(petrel_group_id, GROUP_ID)
PETREL_ID_(petrel_block_dim, BLOCK)     /**< work-items of a workgroup */
PETREL_ID_(petrel_grid_dim, GRID)       /**< workgroups */
#undef PETREL_ID_

PETREL_INLINE_ uint32_t petrel_global_id(unsigned d)
{
    return petrel_group_id(d) * petrel_block_dim(d) + petrel_local_id(d);
}

PETREL_INLINE_ uint32_t petrel_lane(void) { return (uint32_t)PETREL_CSR_READ(PETREL_CSR_LANE); }
/** Warp in the workgroup. */
PETREL_INLINE_ uint32_t petrel_warp(void) { return (uint32_t)PETREL_CSR_READ(PETREL_CSR_WARP); }
/** The workgroup's local memory; zeroed when the workgroup starts. */
PETREL_INLINE_ void *petrel_local_mem(void) { return (void *)(uintptr_t)PETREL_CSR_READ(PETREL_CSR_LOCAL_BASE); }
/** Device cycles. */
PETREL_INLINE_ uint64_t petrel_cycles(void)
{
    uint64_t v;

    __asm__ volatile("rdcycle %0" : "=r"(v));
    return v;
}

/* ---- Synchronisation ---- */

/* Lanes must not be torn apart or moved around these: convergent keeps the compiler from duplicating or sinking them. */
#define PETREL_CONVERGENT_ PETREL_INLINE_ __attribute__((convergent))

/** Waits until all work-items of the workgroup that have not returned are here; memory before is seen after. */
PETREL_CONVERGENT_ void petrel_barrier(void) { __asm__ volatile(".insn r 0x0b, 0, 0, x0, x0, x0" ::: "memory"); }
/** Lets other lanes of the warp run, in a loop that waits for one of them. */
PETREL_INLINE_ void petrel_yield(void) { __asm__ volatile(".insn r 0x0b, 0, 1, x0, x0, x0" ::: "memory"); }
/** Waits until all lanes of the warp that have not returned are here. */
PETREL_CONVERGENT_ void petrel_warp_sync(void) { __asm__ volatile(".insn r 0x0b, 0, 3, x0, x0, x0" ::: "memory"); }
/** Stops the dispatch with a fault; code below 65536. */
PETREL_INLINE_ void __attribute__((noreturn)) petrel_trap(uint32_t code)
{
    __asm__ volatile(".insn r 0x0b, 0, 2, x0, %0, x0" :: "r"((uint64_t)code) : "memory");
    __builtin_unreachable();
}

/* ---- Across the warp: over the lanes that run this instruction together ---- */

/*
 * Who takes part is decided by the place in the source: of two such instructions the compiler makes none that both ways go through (nomerge, which
 * clang takes before an expression, not before an asm), and of one no two (petrel-cc's -fconvergent-functions).
 */
#if defined(__clang__)
#define PETREL_WARP_ASM_(...) __attribute__((nomerge)) (void)({ __asm__ volatile(__VA_ARGS__); 0; })
#else
#define PETREL_WARP_ASM_(...) __asm__ volatile(__VA_ARGS__)
#endif
#define PETREL_WARP1_(f7_, v_) ({                                                                            \
    int64_t r_;                                                                                              \
    PETREL_WARP_ASM_(".insn r 0x0b, 1, " #f7_ ", %0, %1, x0" : "=r"(r_) : "r"((int64_t)(v_)));              \
    r_; })
#define PETREL_WARP2_(f7_, v_, by_) ({                                                                       \
    int64_t r_;                                                                                              \
    PETREL_WARP_ASM_(".insn r 0x0b, 1, " #f7_ ", %0, %1, %2" : "=r"(r_) : "r"((int64_t)(v_)), "r"((int64_t)(by_))); \
    r_; })
#define PETREL_WARPF_(f7_, v_, by_) ({                                                                       \
    float r_;                                                                                                \
    PETREL_WARP_ASM_(".insn r 0x0b, 2, " #f7_ ", %0, %1, %2" : "=f"(r_) : "f"((float)(v_)), "r"((int64_t)(by_))); \
    r_; })

/** Bit per lane whose pred is not zero. */
PETREL_CONVERGENT_ uint32_t petrel_ballot(int pred) { return (uint32_t)PETREL_WARP1_(0, pred); }
PETREL_CONVERGENT_ int petrel_any(int pred) { return (int)PETREL_WARP1_(1, pred); }
PETREL_CONVERGENT_ int petrel_all(int pred) { return (int)PETREL_WARP1_(2, pred); }

/* Value of another lane: by number, that many below, above, or with the number's bits flipped. Own value where there is none. */
PETREL_CONVERGENT_ uint32_t petrel_shfl_u32(uint32_t v, uint32_t lane) { return (uint32_t)PETREL_WARP2_(3, v, lane); }
PETREL_CONVERGENT_ uint32_t petrel_shfl_up_u32(uint32_t v, uint32_t by) { return (uint32_t)PETREL_WARP2_(4, v, by); }
PETREL_CONVERGENT_ uint32_t petrel_shfl_down_u32(uint32_t v, uint32_t by) { return (uint32_t)PETREL_WARP2_(5, v, by); }
PETREL_CONVERGENT_ uint32_t petrel_shfl_xor_u32(uint32_t v, uint32_t by) { return (uint32_t)PETREL_WARP2_(6, v, by); }
PETREL_CONVERGENT_ uint64_t petrel_shfl_u64(uint64_t v, uint32_t lane) { return (uint64_t)PETREL_WARP2_(3, v, lane); }
PETREL_CONVERGENT_ uint64_t petrel_shfl_up_u64(uint64_t v, uint32_t by) { return (uint64_t)PETREL_WARP2_(4, v, by); }
PETREL_CONVERGENT_ uint64_t petrel_shfl_down_u64(uint64_t v, uint32_t by) { return (uint64_t)PETREL_WARP2_(5, v, by); }
PETREL_CONVERGENT_ uint64_t petrel_shfl_xor_u64(uint64_t v, uint32_t by) { return (uint64_t)PETREL_WARP2_(6, v, by); }
PETREL_CONVERGENT_ float petrel_shfl_f32(float v, uint32_t lane) { return PETREL_WARPF_(3, v, lane); }
PETREL_CONVERGENT_ float petrel_shfl_up_f32(float v, uint32_t by) { return PETREL_WARPF_(4, v, by); }
PETREL_CONVERGENT_ float petrel_shfl_down_f32(float v, uint32_t by) { return PETREL_WARPF_(5, v, by); }
PETREL_CONVERGENT_ float petrel_shfl_xor_f32(float v, uint32_t by) { return PETREL_WARPF_(6, v, by); }

/* Reductions; every lane gets the result. Floats are added in the order of lanes. */
PETREL_CONVERGENT_ int64_t petrel_reduce_add_i64(int64_t v) { return PETREL_WARP1_(8, v); }
PETREL_CONVERGENT_ int64_t petrel_reduce_min_i64(int64_t v) { return PETREL_WARP1_(9, v); }
PETREL_CONVERGENT_ int64_t petrel_reduce_max_i64(int64_t v) { return PETREL_WARP1_(10, v); }
PETREL_CONVERGENT_ uint64_t petrel_reduce_and_u64(uint64_t v) { return (uint64_t)PETREL_WARP1_(11, v); }
PETREL_CONVERGENT_ uint64_t petrel_reduce_or_u64(uint64_t v) { return (uint64_t)PETREL_WARP1_(12, v); }
PETREL_CONVERGENT_ uint64_t petrel_reduce_xor_u64(uint64_t v) { return (uint64_t)PETREL_WARP1_(13, v); }
PETREL_CONVERGENT_ float petrel_reduce_add_f32(float v) { return PETREL_WARPF_(8, v, 0); }
PETREL_CONVERGENT_ float petrel_reduce_min_f32(float v) { return PETREL_WARPF_(9, v, 0); }
PETREL_CONVERGENT_ float petrel_reduce_max_f32(float v) { return PETREL_WARPF_(10, v, 0); }

/* ---- Atomics; all return what was there before ---- */

PETREL_INLINE_ uint32_t petrel_atomic_add_u32(uint32_t *p, uint32_t v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
PETREL_INLINE_ uint64_t petrel_atomic_add_u64(uint64_t *p, uint64_t v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
PETREL_INLINE_ uint32_t petrel_atomic_exchange_u32(uint32_t *p, uint32_t v) { return __atomic_exchange_n(p, v, __ATOMIC_RELAXED); }

PETREL_INLINE_ uint32_t petrel_atomic_max_u32(uint32_t *p, uint32_t v)
{
    int64_t old;

    __asm__ volatile("amomaxu.w %0, %2, %1" : "=r"(old), "+A"(*p) : "r"((int64_t)(int32_t)v) : "memory");
    return (uint32_t)old;
}

PETREL_INLINE_ uint32_t petrel_atomic_min_u32(uint32_t *p, uint32_t v)
{
    int64_t old;

    __asm__ volatile("amominu.w %0, %2, %1" : "=r"(old), "+A"(*p) : "r"((int64_t)(int32_t)v) : "memory");
    return (uint32_t)old;
}

PETREL_INLINE_ uint32_t petrel_atomic_cas_u32(uint32_t *p, uint32_t expected, uint32_t desired)
{
    int64_t v = (int32_t)expected;

    __asm__ volatile(".insn r 0x0b, 3, 0, %0, %1, %2" : "+r"(v) : "r"(p), "r"((int64_t)(int32_t)desired) : "memory");
    return (uint32_t)v;
}

PETREL_INLINE_ uint64_t petrel_atomic_cas_u64(uint64_t *p, uint64_t expected, uint64_t desired)
{
    __asm__ volatile(".insn r 0x0b, 3, 1, %0, %1, %2" : "+r"(expected) : "r"(p), "r"(desired) : "memory");
    return expected;
}

#define PETREL_FAMO_(f7_, p_, v_) ({                                                                         \
    float r_;                                                                                                \
    __asm__ volatile(".insn r 0x0b, 3, " #f7_ ", %0, %1, %2" : "=f"(r_) : "r"(p_), "f"((float)(v_)) : "memory"); \
    r_; })
PETREL_INLINE_ float petrel_atomic_add_f32(float *p, float v) { return PETREL_FAMO_(2, p, v); }
PETREL_INLINE_ float petrel_atomic_min_f32(float *p, float v) { return PETREL_FAMO_(3, p, v); }
PETREL_INLINE_ float petrel_atomic_max_f32(float *p, float v) { return PETREL_FAMO_(4, p, v); }

/* ---- Math: within one unit in the last place unless said otherwise ---- */

#define PETREL_MATH_(f7_, x_) ({                                                                             \
    float r_;                                                                                                \
    __asm__(".insn r 0x0b, 4, " #f7_ ", %0, %1, f0" : "=f"(r_) : "f"((float)(x_)));                         \
    r_; })
PETREL_INLINE_ float petrel_exp2f(float x) { return PETREL_MATH_(0, x); }
PETREL_INLINE_ float petrel_log2f(float x) { return PETREL_MATH_(1, x); }
PETREL_INLINE_ float petrel_rsqrtf(float x) { return PETREL_MATH_(2, x); }
/** |x| up to 2^20; beyond that precision fades, from 2^30 on it is sin(0). */
PETREL_INLINE_ float petrel_sinf(float x) { return PETREL_MATH_(3, x); }
PETREL_INLINE_ float petrel_cosf(float x) { return PETREL_MATH_(4, x); }
PETREL_INLINE_ float petrel_rcpf(float x) { return PETREL_MATH_(5, x); }
PETREL_INLINE_ float petrel_sqrtf(float x) { return __builtin_sqrtf(x); }
PETREL_INLINE_ float petrel_fabsf(float x) { return __builtin_fabsf(x); }

PETREL_INLINE_ float petrel_fmaf(float a, float b, float c)
{
    float r;

    __asm__("fmadd.s %0, %1, %2, %3" : "=f"(r) : "f"(a), "f"(b), "f"(c));
    return r;
}

PETREL_INLINE_ float petrel_fminf(float a, float b)
{
    float r;

    __asm__("fmin.s %0, %1, %2" : "=f"(r) : "f"(a), "f"(b));
    return r;
}

PETREL_INLINE_ float petrel_fmaxf(float a, float b)
{
    float r;

    __asm__("fmax.s %0, %1, %2" : "=f"(r) : "f"(a), "f"(b));
    return r;
}

/** e^x, a few units in the last place: x * log2(e) is split so that large x keep their bits. */
PETREL_INLINE_ float petrel_expf(float x)
{
    float hi = x * 0x1.715476p+0f, lo = petrel_fmaf(x, 0x1.715476p+0f, -hi);

    lo = petrel_fmaf(x, 0x1.4ae0cp-26f, lo);
    hi = petrel_exp2f(hi);
    /* 2^lo is 1 + lo ln 2 for so small a lo; an infinite or NaN x made lo NaN */
    return hi - hi == 0 && lo == lo ? petrel_fmaf(hi, lo * 0x1.62e43p-1f, hi) : hi;
}

/** ln x, a few units in the last place. */
PETREL_INLINE_ float petrel_logf(float x) { return petrel_log2f(x) * 0x1.62e43p-1f; }

#endif
