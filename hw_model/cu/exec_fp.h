/* SPDX-License-Identifier: MIT */
/* exec_fp.h - handlers of floating point: vectors in round-to-nearest; the rest goes to fpu.c. */
#ifndef HW_CU_EXEC_FP_H
#define HW_CU_EXEC_FP_H

/*
 * Host arithmetic is IEEE; RISC-V differs in NaNs (always canonical), and in fma(inf, 0, NaN), which is invalid. Both are looked at
 * only where a result is NaN. Inactive lanes are replaced by harmless operands so that they raise no flags.
 */
typedef float f8w __attribute__((vector_size(32)));
typedef f8w f8w_mem __attribute__((aligned(1), may_alias));

INLINE i16v splat_w(int32_t v)
{
    return (i16v){ v, v, v, v, v, v, v, v, v, v, v, v, v, v, v, v };
}

INLINE f16v splat_f(float v)
{
    return (f16v){ v, v, v, v, v, v, v, v, v, v, v, v, v, v, v, v };
}

INLINE bool any_bit16(i16v v)
{
    return any_bit8((v8)v);
}

/* Writes 32 lanes in the layout that `single` says. */
INLINE void put_f(struct cu_warp *w, unsigned rd, const union cu_freg *r, bool single, bool partial)
{
    if (single) {
        if (!partial || LIKELY(w->f_single >> rd & 1)) {
            for (unsigned k = 0; k < 2; k++)
                w->f[rd].wv[k] = partial ? (r->wv[k] & w->m32[k]) | (w->f[rd].wv[k] & ~w->m32[k]) : r->wv[k];
            w->f_single |= 1u << rd;
        } else {
            cu_f32_write(w, rd, r->w);
        }
        return;
    }
    if (partial && UNLIKELY(w->f_single >> rd & 1))
        cu_f_to_double(w, rd);
    EACH_V8(k)
        w->f[rd].qv[k] = partial ? (r->qv[k] & w->m64[k]) | (w->f[rd].qv[k] & ~w->m64[k]) : r->qv[k];
    w->f_single &= ~(1u << rd);
}

/* Operand as singles (not boxed ones are NaN) or as 64-bit values. */
INLINE const union cu_freg *f32_source(const struct cu_warp *w, unsigned r, union cu_freg *temp)
{
    if (LIKELY(w->f_single >> r & 1))
        return &w->f[r];
    cu_f32_read(w, r, temp->w);
    return temp;
}

INLINE const union cu_freg *f64_source(const struct cu_warp *w, unsigned r, union cu_freg *temp)
{
    if (LIKELY(!(w->f_single >> r & 1)))
        return &w->f[r];
    cu_f64_read(w, r, temp->q);
    return temp;
}

/* Inactive lanes become 1.0: no operation on ones raises a flag. */
INLINE f16v only_active32(const struct cu_warp *w, f16v v, unsigned k, bool partial)
{
    return partial ? (f16v)(((i16v)v & w->m32[k]) | ((i16v)splat_f(1.0f) & ~w->m32[k])) : v;
}

INLINE d8 only_active64(const struct cu_warp *w, d8 v, unsigned k, bool partial)
{
    const d8 one = { 1, 1, 1, 1, 1, 1, 1, 1 };

    return partial ? (d8)(((v8)v & w->m64[k]) | ((v8)one & ~w->m64[k])) : v;
}

INLINE f16v sqrt16(f16v a)
{
#if CU_EXEC_AVX512
    return (f16v)_mm512_sqrt_ps((__m512)a);
#else
    union { f16v v; __m128 q[4]; } u = { a };

    for (unsigned i = 0; i < 4; i++)
        u.q[i] = _mm_sqrt_ps(u.q[i]);
    return u.v;
#endif
}

INLINE d8 sqrt8(d8 a)
{
#if CU_EXEC_AVX512
    return (d8)_mm512_sqrt_pd((__m512d)a);
#else
    union { d8 v; __m128d q[4]; } u = { a };

    for (unsigned i = 0; i < 4; i++)
        u.q[i] = _mm_sqrt_pd(u.q[i]);
    return u.v;
#endif
}

INLINE f16v fma16(f16v a, f16v b, f16v c)
{
#if CU_EXEC_AVX512
    return (f16v)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#else
    for (unsigned i = 0; i < 16; i++)
        a[i] = fmaf(a[i], b[i], c[i]);
    return a;
#endif
}

INLINE d8 fma8(d8 a, d8 b, d8 c)
{
#if CU_EXEC_AVX512
    return (d8)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#else
    for (unsigned i = 0; i < 8; i++)
        a[i] = fma(a[i], b[i], c[i]);
    return a;
#endif
}

INLINE bool needs_rounding(const struct cu_warp *w, const struct cu_uop *u, unsigned *rm_out)
{
    *rm_out = u->rm == 7 ? w->frm : u->rm;
    return UNLIKELY(*rm_out != 0);
}

INLINE void canonical32(union cu_freg *r)
{
    for (unsigned k = 0; k < 2; k++) {
        i16v nan = (i16v)(r->sv[k] != r->sv[k]);

        if (UNLIKELY(any_bit16(nan)))
            r->wv[k] = (r->wv[k] & ~nan) | (splat_w(0x7fc00000) & nan);
    }
}

INLINE void canonical64(union cu_freg *r)
{
    EACH_V8(k) {
        v8 nan = (v8)(r->dv[k] != r->dv[k]);

        if (UNLIKELY(any_bit8(nan)))
            r->qv[k] = (r->qv[k] & ~nan) | (splat(0x7ff8000000000000ll) & nan);
    }
}

/* Do these registers hold 32 singles each, or 64-bit values? */
INLINE bool singles(const struct cu_warp *w, unsigned a, unsigned b, unsigned c)
{
    const uint32_t f = w->f_single;

    return LIKELY(f >> a & 1) && LIKELY(f >> b & 1) && LIKELY(f >> c & 1);
}

INLINE bool doubles(const struct cu_warp *w, unsigned a, unsigned b, unsigned c)
{
    const uint32_t f = ~w->f_single;

    return LIKELY(f >> a & 1) && LIKELY(f >> b & 1) && LIKELY(f >> c & 1);
}

INLINE bool any_nan32(f16v a, f16v b)
{
#if CU_EXEC_AVX512
    return !_kortestz_mask16_u8(_mm512_cmp_ps_mask((__m512)a, (__m512)a, _CMP_UNORD_Q), _mm512_cmp_ps_mask((__m512)b, (__m512)b, _CMP_UNORD_Q));
#else
    return any_bit16((i16v)(a != a) | (i16v)(b != b));
#endif
}

INLINE bool any_nan64(d8 a, d8 b, d8 c, d8 d)
{
#if CU_EXEC_AVX512
    return !_kortestz_mask8_u8(_mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_UNORD_Q), _mm512_cmp_pd_mask((__m512d)c, (__m512d)d, _CMP_UNORD_Q));
#else
    return any_bit8((v8)(a != a) | (v8)(b != b) | (v8)(c != c) | (v8)(d != d));
#endif
}

INLINE void keep32(const struct cu_warp *w, union cu_freg *d, unsigned k, f16v r, bool partial)
{
    d->wv[k] = partial ? ((i16v)r & w->m32[k]) | (d->wv[k] & ~w->m32[k]) : (i16v)r;
}

INLINE void keep64(const struct cu_warp *w, union cu_freg *d, unsigned k, d8 r, bool partial)
{
    d->qv[k] = partial ? ((v8)r & w->m64[k]) | (d->qv[k] & ~w->m64[k]) : (v8)r;
}

INLINE f16v arith32(unsigned op, f16v a, f16v b)
{
    switch (op) {
    case CU_OP_fadd_s: return a + b;
    case CU_OP_fsub_s: return a - b;
    case CU_OP_fmul_s: return a * b;
    case CU_OP_fdiv_s: return a / b;
    default: return sqrt16(a);
    }
}

INLINE d8 arith64(unsigned op, d8 a, d8 b)
{
    switch (op) {
    case CU_OP_fadd_d: return a + b;
    case CU_OP_fsub_d: return a - b;
    case CU_OP_fmul_d: return a * b;
    case CU_OP_fdiv_d: return a / b;
    default: return sqrt8(a);
    }
}

/* Other layouts, NaNs. The host's mode is that of the instruction. */
OUT_OF_LINE const struct cu_uop *f32_arith_rest(struct cu_warp *w, const struct cu_uop *u)
{
    const bool root = u->op == CU_OP_fsqrt_s, partial = w->partial;
    union cu_freg ta, tb, r;
    const union cu_freg *fa = f32_source(w, u->rs1, &ta), *fb = root ? fa : f32_source(w, u->rs2, &tb);

    for (unsigned k = 0; k < 2; k++)
        r.sv[k] = arith32(u->op, only_active32(w, fa->sv[k], k, partial), only_active32(w, fb->sv[k], k, partial));
    canonical32(&r);
    put_f(w, u->rd, &r, true, partial);
    return next_of(u);
}

INLINE const struct cu_uop *f32_arith(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    const unsigned rd = u->rd, rs1 = u->rs1, rs2 = op == CU_OP_fsqrt_s ? rs1 : u->rs2;
    const union cu_freg *a = &w->f[rs1], *b = &w->f[rs2];
    union cu_freg *d = &w->f[rd];
    f16v r[2];
    unsigned rm;

    if (needs_rounding(w, u, &rm))
        return cu_fp_rounded(w, u, rm);
    if (UNLIKELY(!singles(w, rs1, rs2, partial ? rd : rs1)))
        return f32_arith_rest(w, u);
    for (unsigned k = 0; k < 2; k++)
        r[k] = arith32(op, only_active32(w, a->sv[k], k, partial), only_active32(w, b->sv[k], k, partial));
    if (UNLIKELY(any_nan32(r[0], r[1])))
        return f32_arith_rest(w, u);
    keep32(w, d, 0, r[0], partial);
    keep32(w, d, 1, r[1], partial);
    w->f_single |= 1u << rd;
    return next_of(u);
}

OUT_OF_LINE const struct cu_uop *f64_arith_rest(struct cu_warp *w, const struct cu_uop *u)
{
    const bool root = u->op == CU_OP_fsqrt_d, partial = w->partial;
    union cu_freg ta, tb, r;
    const union cu_freg *fa = f64_source(w, u->rs1, &ta), *fb = root ? fa : f64_source(w, u->rs2, &tb);

    EACH_V8(k)
        r.dv[k] = arith64(u->op, only_active64(w, fa->dv[k], k, partial), only_active64(w, fb->dv[k], k, partial));
    canonical64(&r);
    put_f(w, u->rd, &r, false, partial);
    return next_of(u);
}

INLINE const struct cu_uop *f64_arith(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    const unsigned rd = u->rd, rs1 = u->rs1, rs2 = op == CU_OP_fsqrt_d ? rs1 : u->rs2;
    const union cu_freg *a = &w->f[rs1], *b = &w->f[rs2];
    union cu_freg *d = &w->f[rd];
    d8 r[4];
    unsigned rm;

    if (needs_rounding(w, u, &rm))
        return cu_fp_rounded(w, u, rm);
    if (UNLIKELY(!doubles(w, rs1, rs2, partial ? rd : rs1)))
        return f64_arith_rest(w, u);
    EACH_V8(k)
        r[k] = arith64(op, only_active64(w, a->dv[k], k, partial), only_active64(w, b->dv[k], k, partial));
    if (UNLIKELY(any_nan64(r[0], r[1], r[2], r[3])))
        return f64_arith_rest(w, u);
    EACH_V8(k)
        keep64(w, d, k, r[k], partial);
    w->f_single &= ~(1u << rd);
    return next_of(u);
}

/* inf * 0 + NaN is invalid on RISC-V whatever the NaN; hosts differ. */
INLINE void fma_invalid(struct cu_warp *w, double a, double b)
{
    if ((isinf(a) && b == 0) || (a == 0 && isinf(b)))
        w->fflags |= 16;
}

/* Which of the product and the summand are negated. */
INLINE bool negates_product(unsigned op)
{
    return op == CU_OP_fnmadd_s || op == CU_OP_fnmsub_s || op == CU_OP_fnmadd_d || op == CU_OP_fnmsub_d;
}

INLINE bool negates_summand(unsigned op)
{
    return op == CU_OP_fmsub_s || op == CU_OP_fnmadd_s || op == CU_OP_fmsub_d || op == CU_OP_fnmadd_d;
}

INLINE f16v negated32(f16v v, bool on)
{
    return on ? (f16v)((i16v)v ^ splat_w(INT32_MIN)) : v;
}

INLINE d8 negated64(d8 v, bool on)
{
    return on ? (d8)((v8)v ^ splat(INT64_MIN)) : v;
}

OUT_OF_LINE const struct cu_uop *f32_fma_rest(struct cu_warp *w, const struct cu_uop *u)
{
    const bool partial = w->partial;
    union cu_freg ta, tb, tc, r;
    const union cu_freg *fa = f32_source(w, u->rs1, &ta), *fb = f32_source(w, u->rs2, &tb), *fc = f32_source(w, u->rs3, &tc);

    for (unsigned k = 0; k < 2; k++) {
        f16v a = negated32(only_active32(w, fa->sv[k], k, partial), negates_product(u->op)), b = only_active32(w, fb->sv[k], k, partial);
        f16v c = negated32(only_active32(w, fc->sv[k], k, partial), negates_summand(u->op));

        r.sv[k] = fma16(a, b, c);
        for (unsigned i = 0; i < 16; i++)
            if (c[i] != c[i])
                fma_invalid(w, (double)a[i], (double)b[i]);
    }
    canonical32(&r);
    put_f(w, u->rd, &r, true, partial);
    return next_of(u);
}

INLINE const struct cu_uop *f32_fma(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    const unsigned rd = u->rd, rs1 = u->rs1, rs2 = u->rs2, rs3 = u->rs3;
    const union cu_freg *a = &w->f[rs1], *b = &w->f[rs2], *c = &w->f[rs3];
    union cu_freg *d = &w->f[rd];
    f16v r[2];
    unsigned rm;

    if (needs_rounding(w, u, &rm))
        return cu_fp_rounded(w, u, rm);
    if (UNLIKELY(!singles(w, rs1, rs2, rs3)) || (partial && UNLIKELY(!(w->f_single >> rd & 1))))
        return f32_fma_rest(w, u);
    for (unsigned k = 0; k < 2; k++)
        r[k] = fma16(negated32(only_active32(w, a->sv[k], k, partial), negates_product(op)), only_active32(w, b->sv[k], k, partial),
                     negated32(only_active32(w, c->sv[k], k, partial), negates_summand(op)));
    if (UNLIKELY(any_nan32(r[0], r[1])))
        return f32_fma_rest(w, u);
    keep32(w, d, 0, r[0], partial);
    keep32(w, d, 1, r[1], partial);
    w->f_single |= 1u << rd;
    return next_of(u);
}

OUT_OF_LINE const struct cu_uop *f64_fma_rest(struct cu_warp *w, const struct cu_uop *u)
{
    const bool partial = w->partial;
    union cu_freg ta, tb, tc, r;
    const union cu_freg *fa = f64_source(w, u->rs1, &ta), *fb = f64_source(w, u->rs2, &tb), *fc = f64_source(w, u->rs3, &tc);

    EACH_V8(k) {
        d8 a = negated64(only_active64(w, fa->dv[k], k, partial), negates_product(u->op)), b = only_active64(w, fb->dv[k], k, partial);
        d8 c = negated64(only_active64(w, fc->dv[k], k, partial), negates_summand(u->op));

        r.dv[k] = fma8(a, b, c);
        for (unsigned i = 0; i < 8; i++)
            if (c[i] != c[i])
                fma_invalid(w, a[i], b[i]);
    }
    canonical64(&r);
    put_f(w, u->rd, &r, false, partial);
    return next_of(u);
}

INLINE const struct cu_uop *f64_fma(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    const unsigned rd = u->rd, rs1 = u->rs1, rs2 = u->rs2, rs3 = u->rs3;
    const union cu_freg *a = &w->f[rs1], *b = &w->f[rs2], *c = &w->f[rs3];
    union cu_freg *d = &w->f[rd];
    d8 r[4];
    unsigned rm;

    if (needs_rounding(w, u, &rm))
        return cu_fp_rounded(w, u, rm);
    if (UNLIKELY(!doubles(w, rs1, rs2, rs3)) || (partial && UNLIKELY(w->f_single >> rd & 1)))
        return f64_fma_rest(w, u);
    EACH_V8(k)
        r[k] = fma8(negated64(only_active64(w, a->dv[k], k, partial), negates_product(op)), only_active64(w, b->dv[k], k, partial),
                    negated64(only_active64(w, c->dv[k], k, partial), negates_summand(op)));
    if (UNLIKELY(any_nan64(r[0], r[1], r[2], r[3])))
        return f64_fma_rest(w, u);
    EACH_V8(k)
        keep64(w, d, k, r[k], partial);
    w->f_single &= ~(1u << rd);
    return next_of(u);
}

INLINE i16v choose_w(i16v m, i16v a, i16v b)
{
    return (a & m) | (b & ~m);
}

/* Sign injection, minimum and maximum: all on the bits. */
INLINE i16v bits32(struct cu_warp *w, unsigned op, i16v a, i16v b, unsigned k, bool partial)
{
    const i16v sign = splat_w(INT32_MIN), inf = splat_w(0x7f800000), quiet = splat_w(0x00400000);
    i16v a_nan, b_nan, ka, kb, r, signalling;

    switch (op) {
    case CU_OP_fsgnj_s: return (a & ~sign) | (b & sign);
    case CU_OP_fsgnjn_s: return (a & ~sign) | (~b & sign);
    case CU_OP_fsgnjx_s: return a ^ (b & sign);
    default: break;
    }
    a_nan = (i16v)((a & ~sign) > inf);
    b_nan = (i16v)((b & ~sign) > inf);
    ka = a ^ ((a >> 31) & ~sign);
    kb = b ^ ((b >> 31) & ~sign);
    r = op == CU_OP_fmin_s ? choose_w((i16v)(ka < kb), a, b) : choose_w((i16v)(ka < kb), b, a);
    if (UNLIKELY(any_bit16(a_nan | b_nan))) {
        r = choose_w(a_nan, choose_w(b_nan, splat_w(0x7fc00000), b), choose_w(b_nan, a, r));
        signalling = (a_nan & (i16v)((a & quiet) == 0)) | (b_nan & (i16v)((b & quiet) == 0));
        if (any_bit16(partial ? signalling & w->m32[k] : signalling))
            w->fflags |= 16;
    }
    return r;
}

INLINE const struct cu_uop *f32_bits(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    union cu_freg ta, tb, r;
    const union cu_freg *a = f32_source(w, u->rs1, &ta), *b = f32_source(w, u->rs2, &tb);

    for (unsigned k = 0; k < 2; k++)
        r.wv[k] = bits32(w, op, a->wv[k], b->wv[k], k, partial);
    put_f(w, u->rd, &r, true, partial);
    return next_of(u);
}

INLINE const struct cu_uop *f64_bits(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    union cu_freg ta, tb, r;
    const union cu_freg *a, *b;
    const v8 sign = splat(INT64_MIN);

    if (op == CU_OP_fmin_d || op == CU_OP_fmax_d)
        return cu_fp_lanes(w, u);
    a = f64_source(w, u->rs1, &ta);
    b = f64_source(w, u->rs2, &tb);
    EACH_V8(k) {
        v8 s = op == CU_OP_fsgnj_d ? b->qv[k] & sign : op == CU_OP_fsgnjn_d ? ~b->qv[k] & sign : (a->qv[k] ^ b->qv[k]) & sign;

        r.qv[k] = (a->qv[k] & ~sign) | s;
    }
    put_f(w, u->rd, &r, false, partial);
    return next_of(u);
}

INLINE const struct cu_uop *f32_cmp(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    union cu_freg ta, tb, r;
    const union cu_freg *fa = f32_source(w, u->rs1, &ta), *fb = f32_source(w, u->rs2, &tb);

    for (unsigned k = 0; k < 2; k++) {
        f16v a = only_active32(w, fa->sv[k], k, partial), b = only_active32(w, fb->sv[k], k, partial);

        r.wv[k] = op == CU_OP_feq_s ? (i16v)(a == b) : op == CU_OP_flt_s ? (i16v)(a < b) : (i16v)(a <= b);
    }
    EACH_V8(k)
        put_x(w, u->rd, k, __builtin_convertvector(((const i8w_mem *)&r)[k], v8) & 1, partial);
    return next_of(u);
}

INLINE const struct cu_uop *f64_cmp(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    union cu_freg ta, tb;
    const union cu_freg *fa = f64_source(w, u->rs1, &ta), *fb = f64_source(w, u->rs2, &tb);

    EACH_V8(k) {
        d8 a = only_active64(w, fa->dv[k], k, partial), b = only_active64(w, fb->dv[k], k, partial);
        v8 r = op == CU_OP_feq_d ? (v8)(a == b) : op == CU_OP_flt_d ? (v8)(a < b) : (v8)(a <= b);

        put_x(w, u->rd, k, r & 1, partial);
    }
    return next_of(u);
}

/* Bits between the files: fmv.x.w takes the low half, fmv.x.h the low quarter, boxed or not. */
INLINE const struct cu_uop *fmv(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    union cu_freg t, r;
    int shift = op == CU_OP_fmv_x_h ? 48 : op == CU_OP_fmv_x_w ? 32 : 0;

    switch (op) {
    case CU_OP_fmv_x_h:
    case CU_OP_fmv_x_w:
    case CU_OP_fmv_x_d: {
        const union cu_freg *s = f64_source(w, u->rs1, &t);

        EACH_V8(k)
            put_x(w, u->rd, k, (v8)((u8v)s->qv[k] << shift) >> shift, partial);
        break;
    }
    case CU_OP_fmv_h_x:
    case CU_OP_fmv_w_x:
        EACH_V8(k)
            ((i8w_mem *)&r)[k] = __builtin_convertvector(w->x[u->rs1].v[k], i8w) | (op == CU_OP_fmv_h_x ? -65536 : 0);
        put_f(w, u->rd, &r, true, partial);
        break;
    default:
        memcpy(&r, &w->x[u->rs1], sizeof(r));
        put_f(w, u->rd, &r, false, partial);
        break;
    }
    return next_of(u);
}

/* ---- Conversions: by vectors in the usual mode when no lane can saturate, else a lane at a time ---- */

/* Can eight lanes' values be cut to integers of this kind? Singles' bits come sign-extended. */
INLINE bool converts8(v8 bits, unsigned kind, bool single)
{
    const int64_t one = single ? 127ll << 23 : 1023ll << 52, octave = single ? 1ll << 23 : 1ll << 52;
    v8 bad = (v8)((single ? bits & 0x7fffffff : bits & INT64_MAX) >= splat(one + octave * (kind == 0 ? 31 : kind == 1 ? 32 : 63)));

    return !any_bit8(kind & 1 ? bad | bits >> 63 : bad); /* unsigned: no negative ones */
}

/* Toward zero, as C converts. */
INLINE const struct cu_uop *f2i(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    unsigned kind = cu_insn_match(op) >> 20 & 3, fmt = cu_insn_fmt(op);
    union cu_freg temp;
    const union cu_freg *f;
    v8 r[4];

    if (fmt == CU_FP_H || u->rm != 1)
        return cu_fp_to_int(w, u);
    f = fmt == CU_FP_S ? f32_source(w, u->rs1, &temp) : f64_source(w, u->rs1, &temp);
    EACH_V8(k) {
        v8 bits = fmt == CU_FP_S ? __builtin_convertvector(((const i8w_mem *)f)[k], v8) : f->qv[k];

        bits = partial ? bits & w->m64[k] : bits;
        if (UNLIKELY(!converts8(bits, kind, fmt == CU_FP_S)))
            return cu_fp_to_int(w, u);
        r[k] = fmt == CU_FP_S ? __builtin_convertvector((f8w)__builtin_convertvector(bits, i8w), v8) : __builtin_convertvector((d8)bits, v8);
        r[k] = kind == 1 ? (v8)((u8v)r[k] << 32) >> 32 : r[k];
    }
    EACH_V8(k)
        put_x(w, u->rd, k, r[k], partial);
    return next_of(u);
}

INLINE const struct cu_uop *i2f(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    unsigned kind = cu_insn_match(op) >> 20 & 3, fmt = cu_insn_fmt(op), rm;
    union cu_freg r;

    if (fmt == CU_FP_H || kind == 3 || needs_rounding(w, u, &rm))
        return cu_int_to_fp(w, u);
    EACH_V8(k) {
        v8 v = w->x[u->rs1].v[k];

        v = kind == 0 ? (v8)((u8v)v << 32) >> 32 : kind == 1 ? v & UINT32_MAX : v;
        v = partial ? v & w->m64[k] : v;
        if (fmt == CU_FP_S)
            ((f8w_mem *)&r)[k] = __builtin_convertvector(v, f8w);
        else
            r.dv[k] = __builtin_convertvector(v, d8);
    }
    put_f(w, u->rd, &r, fmt == CU_FP_S, partial);
    return next_of(u);
}

INLINE const struct cu_uop *f2f(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    union cu_freg temp, r;
    unsigned rm;

    if ((op != CU_OP_fcvt_s_d && op != CU_OP_fcvt_d_s) || needs_rounding(w, u, &rm))
        return cu_fp_to_fp(w, u);
    if (op == CU_OP_fcvt_s_d) {
        const union cu_freg *f = f64_source(w, u->rs1, &temp);

        EACH_V8(k)
            ((f8w_mem *)&r)[k] = __builtin_convertvector(only_active64(w, f->dv[k], k, partial), f8w);
        canonical32(&r);
        put_f(w, u->rd, &r, true, partial);
        return next_of(u);
    }
    const union cu_freg *f = f32_source(w, u->rs1, &temp);

    for (unsigned k = 0; k < 2; k++)
        temp.sv[k] = only_active32(w, f->sv[k], k, partial);
    EACH_V8(k)
        r.dv[k] = __builtin_convertvector(((const f8w_mem *)&temp)[k], d8);
    canonical64(&r);
    put_f(w, u->rd, &r, false, partial);
    return next_of(u);
}

INLINE const struct cu_uop *fclass(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    return cu_fp_lanes(w, u);
}

#endif
