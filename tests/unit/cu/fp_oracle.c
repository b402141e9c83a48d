/* SPDX-License-Identifier: MIT */
/* fp_oracle.c - see fp_oracle.h. Sums and products are exact, quotients and roots have 300 bits and a sticky one below. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MPFR_USE_INTMAX_T
#include <mpfr.h>

#include "fp_oracle.h"

struct layout { int frac, width, bias, prec; };

static const struct layout half = { 10, 16, 15, 256 }, single = { 23, 32, 127, 1024 }, wide = { 52, 64, 1023, 6400 };
static mpfr_t va, vb, vc, vr, vs, vi;

static const struct layout *layout_of(char f)
{
    return f == 'h' ? &half : f == 's' ? &single : f == 'd' ? &wide : NULL;
}

void oracle_init(void)
{
    mpfr_inits2(wide.prec, va, vb, vc, vr, vs, vi, (mpfr_ptr)0);
}

void oracle_finish(void)
{
    mpfr_clears(va, vb, vc, vr, vs, vi, (mpfr_ptr)0);
    mpfr_free_cache();
}

static char integer_of(const char *s, size_t n)
{
    return n == 1 ? s[0] : s[0] == 'w' ? 'u' : 'v';
}

bool oracle_parse(const char *mnemonic, struct fp_op *op_out)
{
    static const struct { const char *name; uint8_t kind, operands; } names[] = {
        { "fadd", FP_ADD, 2 }, { "fsub", FP_SUB, 2 }, { "fmul", FP_MUL, 2 }, { "fdiv", FP_DIV, 2 }, { "fsqrt", FP_SQRT, 1 },
        { "fmadd", FP_MADD, 3 }, { "fmsub", FP_MSUB, 3 }, { "fnmsub", FP_NMSUB, 3 }, { "fnmadd", FP_NMADD, 3 },
        { "fsgnj", FP_SGNJ, 2 }, { "fsgnjn", FP_SGNJN, 2 }, { "fsgnjx", FP_SGNJX, 2 }, { "fmin", FP_MIN, 2 }, { "fmax", FP_MAX, 2 },
        { "fle", FP_LE, 2 }, { "flt", FP_LT, 2 }, { "feq", FP_EQ, 2 }, { "fclass", FP_CLASS, 1 }, { "fcvt", FP_CVT, 1 }, { "fmv", FP_MV, 1 },
    };
    const char *dot = strchr(mnemonic, '.'), *second = dot ? strchr(dot + 1, '.') : NULL;

    if (!dot || !dot[1])
        return false;
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strlen(names[i].name) != (size_t)(dot - mnemonic) || strncmp(mnemonic, names[i].name, (size_t)(dot - mnemonic)))
            continue;
        op_out->kind = (enum fp_kind)names[i].kind;
        op_out->operands = names[i].operands;
        if (second) {
            op_out->to = integer_of(dot + 1, (size_t)(second - dot - 1));
            op_out->from = integer_of(second + 1, strlen(second + 1));
            if (op_out->kind == FP_MV) /* fmv.x.w and fmv.w.x speak of 32 bits as w */
                op_out->to = op_out->to == 'w' ? 's' : op_out->to, op_out->from = op_out->from == 'w' ? 's' : op_out->from;
        } else {
            op_out->to = op_out->from = dot[1];
        }
        return true;
    }
    return false;
}

/* ---- Bits ---- */

static uint64_t ones(int n)
{
    return n == 64 ? UINT64_MAX : (1ull << n) - 1;
}

static uint64_t box(const struct layout *l, uint64_t v)
{
    return v | ~ones(l->width);
}

static uint64_t unbox(const struct layout *l, uint64_t v)
{
    if ((v | ones(l->width)) != UINT64_MAX)
        return ones(l->width - l->frac - 1) << l->frac | 1ull << (l->frac - 1);
    return v & ones(l->width);
}

static bool is_nan(const struct layout *l, uint64_t v)
{
    return (v & ones(l->width - 1)) > ones(l->width - l->frac - 1) << l->frac;
}

static bool is_snan(const struct layout *l, uint64_t v)
{
    return is_nan(l, v) && !(v >> (l->frac - 1) & 1);
}

static uint64_t nan_of(const struct layout *l)
{
    return ones(l->width - l->frac - 1) << l->frac | 1ull << (l->frac - 1);
}

static uint64_t infinity(const struct layout *l, bool neg)
{
    return ones(l->width - l->frac - 1) << l->frac | (neg ? 1ull << (l->width - 1) : 0);
}

static void to_mpfr(mpfr_t v, const struct layout *l, uint64_t bits)
{
    int exp = (int)(bits >> l->frac & ones(l->width - l->frac - 1));
    bool neg = bits >> (l->width - 1) & 1;
    uint64_t frac = bits & ones(l->frac);

    if (is_nan(l, bits)) {
        mpfr_set_nan(v);
    } else if (exp == 2 * l->bias + 1) {
        mpfr_set_inf(v, neg ? -1 : 1);
    } else {
        mpfr_set_uj_2exp(v, exp ? frac | 1ull << l->frac : frac, (exp ? exp : 1) - l->bias - l->frac, MPFR_RNDN);
        mpfr_setsign(v, v, neg, MPFR_RNDN);
    }
}

/* ---- Rounding: MPFR's own ways to make an integer, on the value in units of its last place ---- */

static void round_integer(mpfr_t r, mpfr_t v, unsigned rm)
{
    switch (rm) {
    case 0: mpfr_roundeven(r, v); break;
    case 1: mpfr_trunc(r, v); break;
    case 2: mpfr_floor(r, v); break;
    case 3: mpfr_ceil(r, v); break;
    default: mpfr_round(r, v); break; /* halfway away from zero */
    }
}

/* vr, finite and not 0, in the format. */
static uint64_t round_to(const struct layout *l, unsigned rm, unsigned *flags)
{
    bool neg = mpfr_signbit(vr), finite = rm == 1 || (rm == 2 && !neg) || (rm == 3 && neg), inexact;
    int least = 1 - l->bias - l->frac, free_last = (int)mpfr_get_exp(vr) - 1 - l->frac, last = free_last < least ? least : free_last;
    uint64_t sign = neg ? 1ull << (l->width - 1) : 0, sig;

    mpfr_mul_2si(vs, vr, -last, MPFR_RNDN);
    round_integer(vi, vs, rm);
    inexact = !mpfr_equal_p(vi, vs);
    mpfr_abs(vi, vi, MPFR_RNDN);
    sig = mpfr_get_uj(vi, MPFR_RNDN);
    if (sig >> (l->frac + 1)) {
        sig >>= 1;
        last++;
    }
    if (last > l->bias - l->frac) {
        *flags |= FP_OF | FP_NX;
        return sign | (infinity(l, false) - finite);
    }
    if (inexact) {
        mpfr_mul_2si(vs, vr, -free_last, MPFR_RNDN);
        round_integer(vi, vs, rm);
        mpfr_mul_2si(vi, vi, free_last, MPFR_RNDN);
        *flags |= FP_NX | (mpfr_cmpabs_ui(vi, 0) == 0 || mpfr_get_exp(vi) - 1 < 1 - l->bias ? FP_UF : 0);
    }
    if (!(sig >> l->frac))
        return sign | sig;
    return sign | (uint64_t)(last - least + 1) << l->frac | (sig & ones(l->frac));
}

/* vr, whatever it is; zero_neg: sign of a zero that the operation makes of operands that are none. */
static uint64_t finish(const struct layout *l, unsigned rm, unsigned *flags)
{
    if (mpfr_nan_p(vr)) {
        *flags |= FP_NV;
        return nan_of(l);
    }
    if (mpfr_inf_p(vr))
        return infinity(l, mpfr_signbit(vr));
    if (mpfr_zero_p(vr))
        return mpfr_signbit(vr) ? 1ull << (l->width - 1) : 0;
    return round_to(l, rm, flags);
}

/* Below the last bit of an inexact value cut off at 300: half of a bit more. */
static void make_sticky(int ternary)
{
    if (ternary) {
        mpfr_prec_round(vr, 302, MPFR_RNDZ);
        if (mpfr_signbit(vr))
            mpfr_nextbelow(vr);
        else
            mpfr_nextabove(vr);
    }
    mpfr_prec_round(vr, wide.prec, MPFR_RNDZ);
}

static void compute(const struct fp_op *op, unsigned rm, unsigned *flags)
{
    mpfr_rnd_t zero = rm == 2 ? MPFR_RNDD : MPFR_RNDN; /* the sums are exact: says the sign of a zero only */

    switch (op->kind) {
    case FP_ADD: mpfr_add(vr, va, vb, zero); break;
    case FP_SUB: mpfr_sub(vr, va, vb, zero); break;
    case FP_MUL: mpfr_mul(vr, va, vb, MPFR_RNDN); break;
    case FP_DIV:
        if (mpfr_zero_p(vb) && mpfr_number_p(va) && !mpfr_zero_p(va))
            *flags |= FP_DZ;
        mpfr_set_prec(vr, 300);
        make_sticky(mpfr_div(vr, va, vb, MPFR_RNDZ));
        break;
    case FP_SQRT:
        mpfr_set_prec(vr, 300);
        make_sticky(mpfr_sqrt(vr, va, MPFR_RNDZ));
        break;
    default:
        mpfr_mul(vr, va, vb, MPFR_RNDN);
        if (op->kind == FP_NMSUB || op->kind == FP_NMADD)
            mpfr_neg(vr, vr, MPFR_RNDN);
        if (op->kind == FP_MSUB || op->kind == FP_NMADD)
            mpfr_sub(vr, vr, vc, zero);
        else
            mpfr_add(vr, vr, vc, zero);
        break;
    }
}

static uint64_t arithmetic(const struct fp_op *op, const uint64_t in[3], unsigned rm, unsigned *flags)
{
    const struct layout *l = layout_of(op->to);
    uint64_t v[3];
    bool nan = false, snan = false;

    for (unsigned i = 0; i < op->operands; i++) {
        v[i] = unbox(l, in[i]);
        nan |= is_nan(l, v[i]);
        snan |= is_snan(l, v[i]);
    }
    to_mpfr(va, l, v[0]);
    if (op->operands > 1)
        to_mpfr(vb, l, v[1]);
    if (op->operands > 2)
        to_mpfr(vc, l, v[2]);
    if (op->operands > 2 && ((mpfr_inf_p(va) && mpfr_zero_p(vb)) || (mpfr_zero_p(va) && mpfr_inf_p(vb))))
        snan = true;
    if (nan || snan) {
        *flags |= snan ? FP_NV : 0;
        return nan_of(l);
    }
    compute(op, rm, flags);
    return finish(l, rm, flags);
}

static uint64_t to_integer(char to, unsigned rm, unsigned *flags)
{
    bool w = to == 'w' || to == 'u', is_signed = to == 'w' || to == 'l', over;
    uint64_t r;

    if (!mpfr_nan_p(va))
        round_integer(vi, va, rm);
    if (is_signed)
        over = mpfr_nan_p(va) || mpfr_cmp_si_2exp(vi, 1, w ? 31 : 63) >= 0 || mpfr_cmp_si_2exp(vi, -1, w ? 31 : 63) < 0;
    else
        over = mpfr_nan_p(va) || mpfr_cmp_si_2exp(vi, 1, w ? 32 : 64) >= 0 || mpfr_cmp_si(vi, 0) < 0;
    if (over) {
        bool low = !mpfr_nan_p(va) && mpfr_signbit(va);

        *flags |= FP_NV;
        r = is_signed ? (low ? 1ull << (w ? 31 : 63) : ones(w ? 31 : 63)) : low ? 0 : UINT64_MAX;
    } else {
        *flags |= mpfr_equal_p(vi, va) ? 0 : FP_NX;
        r = is_signed ? (uint64_t)mpfr_get_sj(vi, MPFR_RNDN) : mpfr_get_uj(vi, MPFR_RNDN);
    }
    return w ? (uint64_t)(int64_t)(int32_t)(uint32_t)r : r;
}

static uint64_t convert(const struct fp_op *op, uint64_t in, unsigned rm, unsigned *flags)
{
    const struct layout *from = layout_of(op->from), *to = layout_of(op->to);

    if (!from) {
        if (op->from == 'w' || op->from == 'l')
            mpfr_set_sj(vr, op->from == 'w' ? (int32_t)(uint32_t)in : (int64_t)in, MPFR_RNDN);
        else
            mpfr_set_uj(vr, op->from == 'u' ? (uint32_t)in : in, MPFR_RNDN);
        return box(to, finish(to, rm, flags));
    }
    in = unbox(from, in);
    to_mpfr(va, from, in);
    if (!to)
        return to_integer(op->to, rm, flags);
    if (is_nan(from, in)) {
        *flags |= is_snan(from, in) ? FP_NV : 0;
        return box(to, nan_of(to));
    }
    mpfr_set(vr, va, MPFR_RNDN);
    return box(to, finish(to, rm, flags));
}

static unsigned class_of(const struct layout *l, uint64_t v)
{
    bool neg = v >> (l->width - 1) & 1;

    if (is_nan(l, v))
        return is_snan(l, v) ? 8 : 9;
    to_mpfr(va, l, v);
    if (mpfr_inf_p(va))
        return neg ? 0 : 7;
    if (mpfr_zero_p(va))
        return neg ? 3 : 4;
    if (mpfr_get_exp(va) - 1 < 1 - l->bias)
        return neg ? 2 : 5;
    return neg ? 1 : 6;
}

/* The operations on signs and order. */
static uint64_t bitwise(const struct fp_op *op, const uint64_t in[3], unsigned *flags)
{
    const struct layout *l = layout_of(op->from);
    uint64_t a = unbox(l, in[0]), b = unbox(l, in[1]), sign = 1ull << (l->width - 1);
    bool a_first, nan = is_nan(l, a) || is_nan(l, b), snan = is_snan(l, a) || is_snan(l, b);

    switch (op->kind) {
    case FP_SGNJ: return box(l, (a & ~sign) | (b & sign));
    case FP_SGNJN: return box(l, (a & ~sign) | (~b & sign));
    case FP_SGNJX: return box(l, a ^ (b & sign));
    case FP_CLASS: return 1ull << class_of(l, a);
    default: break;
    }
    to_mpfr(va, l, a);
    to_mpfr(vb, l, b);
    if (op->kind == FP_EQ || op->kind == FP_LT || op->kind == FP_LE) {
        *flags |= snan || (nan && op->kind != FP_EQ) ? FP_NV : 0;
        return op->kind == FP_EQ ? mpfr_equal_p(va, vb) != 0 : op->kind == FP_LT ? mpfr_less_p(va, vb) != 0 : mpfr_lessequal_p(va, vb) != 0;
    }
    *flags |= snan ? FP_NV : 0;
    if (is_nan(l, a) && is_nan(l, b))
        return box(l, nan_of(l));
    if (nan)
        return box(l, is_nan(l, a) ? b : a);
    a_first = mpfr_equal_p(va, vb) ? mpfr_signbit(va) != 0 : mpfr_less_p(va, vb) != 0;
    return box(l, a_first == (op->kind == FP_MIN) ? a : b);
}

uint64_t oracle(const struct fp_op *op, const uint64_t in[3], unsigned rm, unsigned *flags_out)
{
    *flags_out = 0;
    switch (op->kind) {
    case FP_CVT: return convert(op, in[0], rm, flags_out);
    case FP_MV: {
        const struct layout *l = layout_of(op->to == 'x' ? op->from : op->to);

        if (op->to != 'x')
            return box(l, in[0] & ones(l->width));
        return (uint64_t)((int64_t)(in[0] << (64 - l->width)) >> (64 - l->width));
    }
    default: return op->kind <= FP_NMADD ? box(layout_of(op->to), arithmetic(op, in, rm, flags_out)) : bitwise(op, in, flags_out);
    }
}

/* ---- Operands ---- */

static uint64_t rng_state = 88172645463325252ull;

uint64_t oracle_random(void)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return rng_state * 0x2545f4914f6cdd1dull;
}

static uint64_t random_below(uint64_t n)
{
    return (oracle_random() >> 32) % n;
}

/* A fraction that makes ties: few bits set, a run of ones, or one off those. */
static uint64_t fraction(const struct layout *l)
{
    uint64_t v = oracle_random();

    switch (random_below(6)) {
    case 0: v = 0; break;
    case 1: v = ones(l->frac); break;
    case 2: v <<= random_below(64); break;
    case 3: v = 1ull << random_below((uint64_t)l->frac); break;
    case 4: v = ones((int)random_below((uint64_t)l->frac)) + random_below(3) - 1; break;
    default: break;
    }
    return v & ones(l->frac);
}

static uint64_t number(const struct layout *l)
{
    uint64_t exp_ones = ones(l->width - l->frac - 1), exp, near = (uint64_t)l->frac * 2 + 4;

    switch (random_below(16)) {
    case 0: return 0;
    case 1: return fraction(l);                                                       /* subnormal */
    case 2: return (1 + random_below(3)) << l->frac | fraction(l);                     /* just above */
    case 3: return (exp_ones - 1 - random_below(2)) << l->frac | fraction(l);          /* near overflow */
    case 4: return exp_ones << l->frac | (random_below(2) ? 0 : fraction(l));          /* infinity, NaN */
    case 5: return exp_ones << l->frac | (1 + random_below(ones(l->frac) < 99 ? 9 : 99)); /* signalling */
    case 6: return oracle_random() & ones(l->width - 1);
    case 7: exp = (uint64_t)l->bias / 2 + random_below(4); break;                      /* whose square is near the smallest */
    case 8: exp = (uint64_t)l->bias * 3 / 2 + random_below(4); break;                  /* or the greatest */
    default: exp = (uint64_t)l->bias - near / 2 + random_below(near); break;           /* so near each other that sums round */
    }
    return (exp & exp_ones) << l->frac | fraction(l);
}

uint64_t oracle_operand(const struct fp_op *op)
{
    const struct layout *l = layout_of(op->from);
    uint64_t v;

    if (!l) { /* an integer */
        v = oracle_random() >> random_below(64);
        v = random_below(4) ? v : (1ull << random_below(64)) + random_below(5) - 2;
        return random_below(2) ? -v : v;
    }
    v = number(l) | (random_below(2) ? 1ull << (l->width - 1) : 0);
    if (op->kind == FP_CVT && !layout_of(op->to) && random_below(2)) { /* near the integers' ends, and halves */
        v = (uint64_t)(l->bias - 3 + (int)random_below((uint64_t)(l->bias > 70 ? 70 : l->bias + 3))) << l->frac | fraction(l) |
            (random_below(2) ? 1ull << (l->width - 1) : 0);
    }
    if (l->width < 64 && random_below(50) == 0) /* not boxed */
        return v | (oracle_random() & ~ones(l->width));
    return box(l, v);
}
