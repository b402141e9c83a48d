/* SPDX-License-Identifier: MIT */
/* special.c - the approximations of custom-0 (exp2, log2, rsqrt, sin, cos, rcp): in double, rounded once, the same on every host. */
/*
 * Only IEEE additions, multiplications, divisions and square roots, never fused: build without contraction. Errors are below one
 * unit in the last place of a float; sin and cos for |x| up to 2^20, beyond that the reduction loses bits.
 */
#include <math.h>
#include <string.h>

#include <xmmintrin.h>
#include <emmintrin.h>

#include "cu_priv.h"

#if defined(__clang__)
#pragma clang fp contract(off)
#else
#pragma GCC optimize("fp-contract=off")
#endif

static double power_of_two(int e)
{
    union { uint64_t q; double d; } v = { (uint64_t)(e + 1023) << 52 };

    return v.d;
}

static double root(double x)
{
    return _mm_cvtsd_f64(_mm_sqrt_sd(_mm_setzero_pd(), _mm_set_sd(x)));
}

/* Nearest integer; |x| below 2^31. */
static int nearest(double x)
{
    return (int)(x < 0 ? x - 0.5 : x + 0.5);
}

static double exp2_of(double x)
{
    static const double c[] = { 1.0, 0x1.62e42fefa39efp-1, 0x1.ebfbdff82c58fp-3, 0x1.c6b08d704a0cp-5, 0x1.3b2ab6fba4e77p-7,
                                0x1.5d87fe78a6731p-10, 0x1.430912f86c787p-13, 0x1.ffcbfc588b0c7p-17, 0x1.62c0223a5c824p-20 };
    double r = 0, f;
    int n;

    if (x >= 129)
        return INFINITY;
    if (x <= -160)
        return 0;
    n = nearest(x);
    f = x - n;
    for (int i = 8; i >= 0; i--)
        r = r * f + c[i];
    return r * power_of_two(n);
}

static double log2_of(double x)
{
    union { double d; uint64_t q; } v = { x };
    int e = (int)(v.q >> 52) - 1023;
    double m, s, z, r = 0;

    v.q = (v.q & 0x000fffffffffffffull) | 0x3ff0000000000000ull;
    m = v.d;
    if (m > 1.4142135623730951) {
        m *= 0.5;
        e++;
    }
    s = (m - 1) / (m + 1);
    z = s * s;
    for (int k = 13; k >= 1; k -= 2)
        r = r * z + 1.0 / k;
    return e + r * s * 2.8853900817779268;
}

static double sine(double r)
{
    static const double c[] = { 1.0, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800 };
    double z = r * r, y = 0;

    for (int i = 5; i >= 0; i--)
        y = y * z + c[i];
    return y * r;
}

static double cosine(double r)
{
    static const double c[] = { 1.0, -0.5, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600 };
    double z = r * r, y = 0;

    for (int i = 6; i >= 0; i--)
        y = y * z + c[i];
    return y;
}

static double turn(double x, unsigned quarter)
{
    double q, r;
    int64_t n;

    if (fabs(x) >= 0x1p30)
        return 0; /* no bits left to reduce */
    q = x * 0.63661977236758134;
    n = (int64_t)(q < 0 ? q - 0.5 : q + 0.5);
    r = (x - (double)n * 0x1.921fb544p+0) - (double)n * 0x1.0b4611a626331p-34;
    switch (((uint64_t)n + quarter) & 3) {
    case 0: return sine(r);
    case 1: return cosine(r);
    case 2: return -sine(r);
    default: return -cosine(r);
    }
}

float cu_special(unsigned op, float x)
{
    float nan = __builtin_nanf("");

    if (x != x)
        return nan;
    switch (op) {
    case CU_OP_p_exp2: return (float)exp2_of(x);
    case CU_OP_p_log2: return x < 0 ? nan : x == 0 ? -INFINITY : isinf(x) ? x : (float)log2_of(x);
    case CU_OP_p_rsqrt: return x < 0 ? nan : x == 0 ? copysignf(INFINITY, x) : (float)(1.0 / root(x));
    case CU_OP_p_sin: return isinf(x) ? nan : x == 0 ? x : (float)turn(x, 0);
    case CU_OP_p_cos: return isinf(x) ? nan : (float)turn(x, 1);
    default: return 1.0f / x;
    }
}
