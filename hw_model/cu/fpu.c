/* SPDX-License-Identifier: MIT */
/* fpu.c - floating point that host vectors cannot do as RISC-V wants it: conversions, classes, rounding modes; a lane at a time. */
/*
 * Round to nearest, ties to largest magnitude, does not exist on the host: results are computed with 113 bits and rounded here. A
 * 113-bit result that was itself rounded onto a tie would be misjudged; that needs operands more than 2^59 apart.
 */
#include <assert.h>
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "cu_priv.h"

#define FLAG_NX 1u
#define FLAG_UF 2u
#define FLAG_OF 4u
#define FLAG_DZ 8u
#define FLAG_NV 16u

static uint32_t f32_bits(float f) { union { float f; uint32_t w; } v = { f }; return v.w; }
static float f32_of(uint32_t w) { union { uint32_t w; float f; } v = { w }; return v.f; }
static uint64_t f64_bits(double d) { union { double d; uint64_t q; } v = { d }; return v.q; }
static double f64_of(uint64_t q) { union { uint64_t q; double d; } v = { q }; return v.d; }

static bool f32_is_nan(uint32_t w) { return (w & 0x7fffffffu) > 0x7f800000u; }
static bool f64_is_nan(uint64_t q) { return (q & INT64_MAX) > 0x7ff0000000000000ull; }
static bool f32_is_snan(uint32_t w) { return f32_is_nan(w) && !(w & 0x00400000u); }
static bool f64_is_snan(uint64_t q) { return f64_is_nan(q) && !(q & 0x0008000000000000ull); }

/* ---- Registers of 32 lanes in their two layouts ---- */

void cu_f_to_double(struct cu_warp *w, unsigned r)
{
    if (!(w->f_single >> r & 1))
        return;
    for (int l = CU_LANES - 1; l >= 0; l--)
        w->f[r].q[l] = 0xffffffff00000000ull | w->f[r].w[l];
    w->f_single &= ~(1u << r);
}

void cu_f_to_single(struct cu_warp *w, unsigned r)
{
    if (w->f_single >> r & 1)
        return;
    for (unsigned l = 0; l < CU_LANES; l++)
        if (w->f[r].q[l] >> 32 != UINT32_MAX)
            return;
    for (unsigned l = 0; l < CU_LANES; l++)
        w->f[r].w[l] = (uint32_t)w->f[r].q[l];
    w->f_single |= 1u << r;
}

void cu_f32_read(const struct cu_warp *w, unsigned r, uint32_t out[CU_LANES])
{
    for (unsigned l = 0; l < CU_LANES; l++) {
        uint64_t q = w->f_single >> r & 1 ? 0xffffffff00000000ull | w->f[r].w[l] : w->f[r].q[l];

        out[l] = q >> 32 == UINT32_MAX ? (uint32_t)q : 0x7fc00000u;
    }
}

void cu_f64_read(const struct cu_warp *w, unsigned r, uint64_t out[CU_LANES])
{
    for (unsigned l = 0; l < CU_LANES; l++)
        out[l] = w->f_single >> r & 1 ? 0xffffffff00000000ull | w->f[r].w[l] : w->f[r].q[l];
}

void cu_f32_write(struct cu_warp *w, unsigned r, const uint32_t in[CU_LANES])
{
    if (w->mask == CU_ALL || w->f_single >> r & 1) {
        for (unsigned l = 0; l < CU_LANES; l++)
            if (w->mask >> l & 1)
                w->f[r].w[l] = in[l];
        w->f_single |= 1u << r;
        return;
    }
    for (uint32_t m = w->mask; m; m &= m - 1)
        w->f[r].q[cu_first_lane(m)] = 0xffffffff00000000ull | in[cu_first_lane(m)];
}

void cu_f64_write(struct cu_warp *w, unsigned r, const uint64_t in[CU_LANES])
{
    if (w->mask != CU_ALL)
        cu_f_to_double(w, r);
    w->f_single &= ~(1u << r);
    for (uint32_t m = w->mask; m; m &= m - 1)
        w->f[r].q[cu_first_lane(m)] = in[cu_first_lane(m)];
}

/* ---- Minimum and maximum: -0 below +0, a NaN loses, two NaNs are canonical ---- */

uint32_t cu_minmax32(struct cu_warp *w, uint32_t a, uint32_t b, bool max)
{
    int32_t ka = (int32_t)(a ^ ((uint32_t)((int32_t)a >> 31) & 0x7fffffffu)), kb = (int32_t)(b ^ ((uint32_t)((int32_t)b >> 31) & 0x7fffffffu));

    if (f32_is_snan(a) || f32_is_snan(b))
        w->fflags |= FLAG_NV;
    if (f32_is_nan(a))
        return f32_is_nan(b) ? 0x7fc00000u : b;
    if (f32_is_nan(b))
        return a;
    return (ka < kb) != max ? a : b;
}

static uint64_t minmax64(struct cu_warp *w, uint64_t a, uint64_t b, bool max)
{
    int64_t ka = (int64_t)(a ^ ((uint64_t)((int64_t)a >> 63) & INT64_MAX)), kb = (int64_t)(b ^ ((uint64_t)((int64_t)b >> 63) & INT64_MAX));

    if (f64_is_snan(a) || f64_is_snan(b))
        w->fflags |= FLAG_NV;
    if (f64_is_nan(a))
        return f64_is_nan(b) ? 0x7ff8000000000000ull : b;
    if (f64_is_nan(b))
        return a;
    return (ka < kb) != max ? a : b;
}

const struct cu_uop *cu_minmax64(struct cu_warp *w, const struct cu_uop *u)
{
    uint64_t a[CU_LANES], b[CU_LANES];

    cu_f64_read(w, u->rs1, a);
    cu_f64_read(w, u->rs2, b);
    for (uint32_t m = w->mask; m; m &= m - 1)
        a[cu_first_lane(m)] = minmax64(w, a[cu_first_lane(m)], b[cu_first_lane(m)], u->op == CU_OP_fmax_d);
    cu_f64_write(w, u->rd, a);
    return u + u->step;
}

/* ---- Classes ---- */

static unsigned classify(bool neg, bool inf, bool nan, bool quiet, bool zero, bool subnormal)
{
    if (nan)
        return quiet ? 9 : 8;
    if (inf)
        return neg ? 0 : 7;
    if (zero)
        return neg ? 3 : 4;
    if (subnormal)
        return neg ? 2 : 5;
    return neg ? 1 : 6;
}

const struct cu_uop *cu_fclass(struct cu_warp *w, const struct cu_uop *u)
{
    uint32_t s[CU_LANES];
    uint64_t d[CU_LANES];

    cu_f32_read(w, u->rs1, s);
    cu_f64_read(w, u->rs1, d);
    for (uint32_t m = w->mask; m; m &= m - 1) {
        unsigned l = cu_first_lane(m), c;
        uint32_t v = s[l] & 0x7fffffffu;
        uint64_t q = d[l] & INT64_MAX;

        if (u->op == CU_OP_fclass_s)
            c = classify(s[l] >> 31, v == 0x7f800000u, f32_is_nan(s[l]), !f32_is_snan(s[l]), !v, v < 0x00800000u);
        else
            c = classify(d[l] >> 63, q == 0x7ff0000000000000ull, f64_is_nan(d[l]), !f64_is_snan(d[l]), !q, q < 0x0010000000000000ull);
        w->x[u->rd].u[l] = 1u << c;
    }
    return u + u->step;
}

/* ---- Rounding ---- */

static unsigned rounding(const struct cu_warp *w, const struct cu_uop *u)
{
    return u->rm == 7 ? w->frm : u->rm;
}

static const struct cu_uop *bad_rounding(struct cu_warp *w, const struct cu_uop *u)
{
    return cu_fault(w, u, PETREL_FAULT_ILLEGAL, PETREL_ACCESS_EXEC, 0, cu_first_lane(w->mask), u->bits);
}

static unsigned host_rounding(unsigned rm)
{
    static const unsigned modes[] = { _MM_ROUND_NEAREST, _MM_ROUND_TOWARD_ZERO, _MM_ROUND_DOWN, _MM_ROUND_UP, _MM_ROUND_NEAREST };

    return modes[rm];
}

/* Integral value in mode rm; v is finite. */
static double to_integral(double v, unsigned rm)
{
    double t, diff;

    if (fabs(v) >= 0x1p52)
        return v;
    t = (double)(int64_t)v; /* toward zero, exact */
    diff = fabs(v - t);
    switch (rm) {
    case 0: return diff > 0.5 || (diff == 0.5 && ((int64_t)t & 1)) ? t + copysign(1, v) : t;
    case 2: return v < t ? t - 1 : t;
    case 3: return v > t ? t + 1 : t;
    case 4: return diff >= 0.5 ? t + copysign(1, v) : t;
    default: return t;
    }
}

/* Saturating conversion; kind: 0 w, 1 wu, 2 l, 3 lu. */
static uint64_t double_to_int(struct cu_warp *w, double v, unsigned kind, unsigned rm)
{
    static const double low[] = { -0x1p31, 0, -0x1p63, 0 }, high[] = { 0x1p31, 0x1p32, 0x1p63, 0x1p64 }; /* low <= r < high */
    static const uint64_t min[] = { 0xffffffff80000000ull, 0, 0x8000000000000000ull, 0 };
    static const uint64_t max[] = { 0x7fffffffull, UINT64_MAX, INT64_MAX, UINT64_MAX };
    double r;

    if (f64_is_nan(f64_bits(v))) {
        w->fflags |= FLAG_NV;
        return max[kind];
    }
    r = isinf(v) ? v : to_integral(v, rm);
    if (r < low[kind] || r >= high[kind]) {
        w->fflags |= FLAG_NV;
        return v < 0 ? min[kind] : max[kind];
    }
    if (r != v)
        w->fflags |= FLAG_NX;
    if (kind == 1)
        return (uint64_t)(int64_t)(int32_t)(uint32_t)r;
    return kind == 3 ? (uint64_t)r : (uint64_t)(int64_t)r;
}

const struct cu_uop *cu_fp_to_int(struct cu_warp *w, const struct cu_uop *u)
{
    unsigned rm = rounding(w, u), kind = u->rs2 & 3, csr = _mm_getcsr();
    bool single = !(u->bits >> 25 & 1);
    uint32_t s[CU_LANES];
    uint64_t d[CU_LANES], out[CU_LANES];

    if (rm > 4)
        return bad_rounding(w, u);
    if (single)
        cu_f32_read(w, u->rs1, s);
    else
        cu_f64_read(w, u->rs1, d);
    for (uint32_t m = w->mask; m; m &= m - 1) {
        unsigned l = cu_first_lane(m);

        if (single)
            d[l] = f32_is_nan(s[l]) ? 0x7ff8000000000000ull : f64_bits(f32_of(s[l]));
        out[l] = double_to_int(w, f64_of(d[l]), kind, rm);
    }
    for (uint32_t m = w->mask; m; m &= m - 1)
        w->x[u->rd].u[cu_first_lane(m)] = out[cu_first_lane(m)];
    _mm_setcsr(csr); /* the host's own flags of the way there do not count */
    return u + u->step;
}

/* An integer as sign and magnitude, rounded to `keep` significant bits in mode rm; exact in the type then. */
static uint64_t round_magnitude(uint64_t mag, bool neg, unsigned keep, unsigned rm, uint32_t *flags)
{
    unsigned bits = mag ? 64u - (unsigned)__builtin_clzll(mag) : 0, drop = bits > keep ? bits - keep : 0;
    uint64_t rest, half;
    bool up;

    if (!drop)
        return mag;
    rest = mag & ((1ull << drop) - 1);
    half = 1ull << (drop - 1);
    mag >>= drop;
    if (!rest)
        return mag << drop;
    *flags |= FLAG_NX;
    switch (rm) {
    case 0: up = rest > half || (rest == half && (mag & 1)); break;
    case 2: up = neg; break;
    case 3: up = !neg; break;
    case 4: up = rest >= half; break;
    default: up = false; break;
    }
    return mag + up == 1ull << keep && drop + keep == 64 ? 0 : (mag + up) << drop; /* 0 stands for 2^64 */
}

static double int_to_double(struct cu_warp *w, uint64_t v, unsigned kind, unsigned keep, unsigned rm)
{
    bool is_signed = !(kind & 1), neg;
    uint64_t mag, r;
    double d;

    if (kind < 2)
        v = is_signed ? (uint64_t)(int64_t)(int32_t)v : (uint32_t)v;
    neg = is_signed && (int64_t)v < 0;
    mag = neg ? -v : v;
    r = round_magnitude(mag, neg, keep, rm, &w->fflags);
    d = mag && !r ? 0x1p64 : (double)(r >> 32) * 0x1p32 + (double)(r & UINT32_MAX); /* exact */
    return neg ? -d : d;
}

const struct cu_uop *cu_int_to_fp(struct cu_warp *w, const struct cu_uop *u)
{
    unsigned rm = rounding(w, u), kind = u->rs2 & 3;
    bool single = !(u->bits >> 25 & 1);
    uint32_t s[CU_LANES];
    uint64_t d[CU_LANES];

    if (rm > 4)
        return bad_rounding(w, u);
    for (uint32_t m = w->mask; m; m &= m - 1) {
        unsigned l = cu_first_lane(m);
        double v = int_to_double(w, w->x[u->rs1].u[l], kind, single ? 24 : 53, rm);

        s[l] = single ? f32_bits((float)v) : 0;
        d[l] = f64_bits(v);
    }
    if (single)
        cu_f32_write(w, u->rd, s);
    else
        cu_f64_write(w, u->rd, d);
    return u + u->step;
}

/* ---- Arithmetic in other rounding modes ---- */

/* Rounds a 113-bit value to `keep` bits, ties away; exponents from emin (of the last place of the smallest normal). */
static double round_ties_away(struct cu_warp *w, __float128 v, int keep, int emin, int emax)
{
    double approx = (double)v;
    __float128 scale, scaled, whole, mag = v < 0 ? -v : v;
    int e;

    if (f64_is_nan(f64_bits(approx)) || v == 0)
        return approx;
    if (isinf(approx) && mag > (__float128)0x1p1023 * 2) {
        /* an infinite operand, or an overflow beyond double: both end up infinite */
        return approx;
    }
    frexp(isinf(approx) ? 0x1p1023 : approx, &e);
    if (!isinf(approx) && mag < (__float128)ldexp(1, e - 1))
        e--; /* approx was rounded up to a power of two */
    e = e - keep < emin ? emin : e - keep;
    scale = e < -1000 ? (__float128)0x1p-1000 * (__float128)ldexp(1, e + 1000) : (__float128)ldexp(1, e);
    scaled = mag / scale; /* a power of two: exact */
    whole = (__float128)(uint64_t)scaled;
    if (scaled != whole) {
        w->fflags |= FLAG_NX | (whole < (__float128)(1ull << (keep - 1)) ? FLAG_UF : 0);
        if (scaled - whole >= (__float128)0.5)
            whole += 1;
    }
    mag = whole * scale;
    if (mag >= (__float128)ldexp(1, emax) * 2) {
        w->fflags |= FLAG_OF | FLAG_NX;
        return v < 0 ? -INFINITY : INFINITY;
    }
    return v < 0 ? -(double)mag : (double)mag;
}

/* The operation in 113 bits. */
static __float128 wide_op(const struct cu_uop *u, double a, double b, double c)
{
    __float128 x = a, y = b, z = c;

    switch (u->op) {
    case CU_OP_fadd_s: case CU_OP_fadd_d: return x + y;
    case CU_OP_fsub_s: case CU_OP_fsub_d: return x - y;
    case CU_OP_fmul_s: case CU_OP_fmul_d: return x * y;
    case CU_OP_fdiv_s: case CU_OP_fdiv_d: return x / y;
    case CU_OP_fmadd_s: case CU_OP_fmadd_d: return x * y + z;
    case CU_OP_fmsub_s: case CU_OP_fmsub_d: return x * y - z;
    case CU_OP_fnmsub_s: case CU_OP_fnmsub_d: return -(x * y) + z;
    case CU_OP_fnmadd_s: case CU_OP_fnmadd_d: return -(x * y) - z;
    default: return x;
    }
}

/* Ties away from zero. Square roots have no ties; their nearest result is right as it is, as are special values. */
static void rounded_away(struct cu_warp *w, const struct cu_uop *u, bool single, const union cu_freg *nearest)
{
    uint32_t s[3][CU_LANES], out_s[CU_LANES];
    uint64_t d[3][CU_LANES], out_d[CU_LANES];
    const uint8_t regs[3] = { u->rs1, u->rs2, u->rs3 };

    for (unsigned i = 0; i < 3; i++) {
        cu_f32_read(w, regs[i], s[i]);
        cu_f64_read(w, regs[i], d[i]);
    }
    for (uint32_t m = w->mask; m; m &= m - 1) {
        unsigned l = cu_first_lane(m);
        double v[3], near_d = single ? (double)nearest->s[l] : nearest->d[l], r = near_d;

        for (unsigned i = 0; i < 3; i++)
            v[i] = single ? (double)f32_of(s[i][l]) : f64_of(d[i][l]);
        if (isfinite(near_d) && near_d != 0 && u->op != CU_OP_fsqrt_s && u->op != CU_OP_fsqrt_d)
            r = single ? round_ties_away(w, wide_op(u, v[0], v[1], v[2]), 24, -149, 127)
                       : round_ties_away(w, wide_op(u, v[0], v[1], v[2]), 53, -1074, 1023);
        out_s[l] = single ? (near_d == near_d ? f32_bits((float)r) : 0x7fc00000u) : 0;
        out_d[l] = near_d == near_d ? f64_bits(r) : 0x7ff8000000000000ull;
    }
    if (single)
        cu_f32_write(w, u->rd, out_s);
    else
        cu_f64_write(w, u->rd, out_d);
}

const struct cu_uop *cu_fp_rounded(struct cu_warp *w, const struct cu_uop *u, unsigned rm)
{
    unsigned csr = _mm_getcsr();
    struct cu_uop nearest = *u;
    bool single = !(u->bits >> 25 & 1) || u->op == CU_OP_fcvt_s_d;
    cu_handler fn;

    if (rm > 4)
        return bad_rounding(w, u);
    nearest.rm = 0;
    nearest.flags &= (uint8_t)~CU_UOP_JOIN;
    fn = w->cu->array->handlers[u->op][w->partial];
    _mm_setcsr((csr & ~(unsigned)_MM_ROUND_MASK) | host_rounding(rm));
    if (rm == 4 && u->op != CU_OP_fcvt_s_d) {
        struct cu_uop temp = nearest;
        union cu_freg saved = w->f[u->rd];
        uint32_t saved_single = w->f_single;
        union cu_freg result;

        fn(w, &temp);
        if (single)
            cu_f32_read(w, u->rd, result.w);
        else
            cu_f64_read(w, u->rd, result.q);
        w->f[u->rd] = saved;
        w->f_single = saved_single;
        rounded_away(w, u, single, &result);
    } else {
        fn(w, &nearest);
    }
    _mm_setcsr((_mm_getcsr() & ~(unsigned)_MM_ROUND_MASK) | (csr & _MM_ROUND_MASK));
    return u + u->step;
}

const struct cu_uop *cu_fp_to_fp(struct cu_warp *w, const struct cu_uop *u)
{
    unsigned rm = rounding(w, u);
    uint32_t s[CU_LANES];
    uint64_t d[CU_LANES];

    if (rm > 4)
        return bad_rounding(w, u);
    if (u->op == CU_OP_fcvt_d_s) {
        cu_f32_read(w, u->rs1, s);
        for (uint32_t m = w->mask; m; m &= m - 1) {
            unsigned l = cu_first_lane(m);

            w->fflags |= f32_is_snan(s[l]) ? FLAG_NV : 0;
            d[l] = f32_is_nan(s[l]) ? 0x7ff8000000000000ull : f64_bits((double)f32_of(s[l]));
        }
        cu_f64_write(w, u->rd, d);
        return u + u->step;
    }
    cu_f64_read(w, u->rs1, d);
    _mm_setcsr((_mm_getcsr() & ~(unsigned)_MM_ROUND_MASK) | host_rounding(rm));
    for (uint32_t m = w->mask; m; m &= m - 1) {
        unsigned l = cu_first_lane(m);
        double v = f64_of(d[l]);
        volatile float r = 0;

        w->fflags |= f64_is_snan(d[l]) ? FLAG_NV : 0;
        if (!f64_is_nan(d[l]))
            r = rm == 4 && isfinite(v) && v != 0 ? (float)round_ties_away(w, v, 24, -149, 127) : (float)v;
        s[l] = f64_is_nan(d[l]) ? 0x7fc00000u : f32_bits(r);
    }
    _mm_setcsr(_mm_getcsr() & ~(unsigned)_MM_ROUND_MASK);
    cu_f32_write(w, u->rd, s);
    return u + u->step;
}
