/* SPDX-License-Identifier: MIT */
/* exec_core.h - helpers of the handlers. Compiled once per host instruction set, by exec_base.c and exec_avx512.c. */
#ifndef HW_CU_EXEC_CORE_H
#define HW_CU_EXEC_CORE_H

/*
 * A handler is kind(warp, uop, op, partial) with op and partial constant: the compiler folds the switches away. Handlers are
 * always inlined into the wrappers of exec_table.h. They hold what is common; what is rare stands out of line, takes op and lanes from
 * the micro-op and the warp as they are, and is reached by a tail call, so that a handler needs no frame. A store to registers may
 * change the micro-op, as far as the compiler knows: what a handler needs of it, it reads first.
 */
#define OUT_OF_LINE static __attribute__((noinline))
#define INLINE static inline __attribute__((always_inline))
#define LIKELY(x_) __builtin_expect(!!(x_), 1)
#define UNLIKELY(x_) __builtin_expect(!!(x_), 0)
#define EACH_V8(k_) _Pragma("GCC unroll 4") for (unsigned k_ = 0; k_ < 4; k_++)

/* Unaligned vectors as they lie in memory. */
typedef int32_t i8w __attribute__((vector_size(32)));
typedef uint32_t u8w __attribute__((vector_size(32)));
typedef v8 v8_mem __attribute__((aligned(1), may_alias));
typedef i8w i8w_mem __attribute__((aligned(1), may_alias));
typedef u8w u8w_mem __attribute__((aligned(1), may_alias));

INLINE v8 splat(int64_t v)
{
    return (v8){ v, v, v, v, v, v, v, v };
}

/* Lane arithmetic wraps: on unsigned elements. */
INLINE v8 plus(v8 a, v8 b)
{
    return (v8)((u8v)a + (u8v)b);
}

INLINE v8 lane_numbers(unsigned k)
{
    int64_t b = (int64_t)k * 8;

    return (v8){ b, b + 1, b + 2, b + 3, b + 4, b + 5, b + 6, b + 7 };
}

/* Bit per 64-bit element that is negative. */
INLINE uint32_t sign_bits8(v8 v)
{
#if CU_EXEC_AVX512
    return _mm512_movepi64_mask((__m512i)v);
#else
    uint32_t bits = 0;

    for (unsigned i = 0; i < 8; i++)
        bits |= (uint32_t)((uint64_t)v[i] >> 63) << i;
    return bits;
#endif
}

/* Bits of 32 lanes from those of eight each. */
#if CU_EXEC_AVX512
INLINE uint32_t join_bits(__mmask8 a, __mmask8 b, __mmask8 c, __mmask8 d)
{
    return _mm512_kunpackw(_mm512_kunpackb(d, c), _mm512_kunpackb(b, a));
}
#else
INLINE uint32_t join_bits(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return a | b << 8 | c << 16 | d << 24;
}
#endif

INLINE bool any_bit8(v8 v)
{
#if CU_EXEC_AVX512
    return _mm512_test_epi64_mask((__m512i)v, (__m512i)v) != 0;
#else
    return (v[0] | v[1] | v[2] | v[3] | v[4] | v[5] | v[6] | v[7]) != 0;
#endif
}

INLINE void put_x(struct cu_warp *w, unsigned rd, unsigned k, v8 r, bool partial)
{
    v8 *d = &w->x[rd].v[k];

    *d = partial ? (r & w->m64[k]) | (*d & ~w->m64[k]) : r;
}

/* 32 computed values into rd's active lanes. */
INLINE void put_lanes(struct cu_warp *w, unsigned rd, const union cu_xreg *r, bool partial)
{
    EACH_V8(k)
        put_x(w, rd, k, r->v[k], partial);
}

INLINE const struct cu_uop *next_of(const struct cu_uop *u)
{
    return cu_uop_next(u);
}

INLINE unsigned last_lane(uint32_t mask)
{
    return 31u - (unsigned)__builtin_clz(mask);
}

#endif
