/* SPDX-License-Identifier: MIT */
/* softfp.c - see softfp.h: unpacked to sign, exponent and up to 128 bits of magnitude, rounded and packed in one place. */
/*
 * A finite value is mag * 2^exp. Where bits were lost below, the lowest bit of mag is 1 ("jammed"): as long as mag has two bits
 * more than the format, that tells inexact from exact, and a tie from what is beside one.
 */
#include <assert.h>

#include "softfp.h"

typedef unsigned __int128 u128;

/* frac: bits of the fraction; a significand has one more. bias also tells the range: exponents from 1 - bias to bias. */
static const struct layout { uint8_t frac, width; int16_t bias; } layouts[] = {
    [SF_H] = { 10, 16, 15 }, [SF_S] = { 23, 32, 127 }, [SF_D] = { 52, 64, 1023 },
};

enum kind { KIND_ZERO, KIND_FINITE, KIND_INF, KIND_NAN };

struct num {
    enum kind kind;
    bool neg, signalling;
    int exp;
    u128 mag;
};

static unsigned bits_of(u128 v)
{
    uint64_t hi = (uint64_t)(v >> 64), lo = (uint64_t)v;

    return hi ? 128u - (unsigned)__builtin_clzll(hi) : lo ? 64u - (unsigned)__builtin_clzll(lo) : 0;
}

static uint64_t sign_bit(enum sf_format f)
{
    return 1ull << (layouts[f].width - 1);
}

static uint64_t inf_of(enum sf_format f)
{
    return (2 * (uint64_t)layouts[f].bias + 1) << layouts[f].frac;
}

static uint64_t signed_bits(enum sf_format f, bool neg, uint64_t magnitude)
{
    return magnitude | (neg ? sign_bit(f) : 0);
}

uint64_t sf_nan(enum sf_format f)
{
    return inf_of(f) | 1ull << (layouts[f].frac - 1);
}

unsigned sf_width(enum sf_format f)
{
    return layouts[f].width;
}

static struct num unpack(enum sf_format f, uint64_t v)
{
    const struct layout *l = &layouts[f];
    uint64_t frac = v & ((1ull << l->frac) - 1);
    int exp = (int)(v >> l->frac & (2u * (unsigned)l->bias + 1));
    struct num n = { .neg = v & sign_bit(f) };

    if (exp == 2 * l->bias + 1) {
        n.kind = frac ? KIND_NAN : KIND_INF;
        n.signalling = frac && !(frac >> (l->frac - 1));
        return n;
    }
    n.mag = exp ? frac | 1ull << l->frac : frac;
    n.exp = (exp ? exp : 1) - l->bias - l->frac;
    n.kind = n.mag ? KIND_FINITE : KIND_ZERO;
    return n;
}

/* Right by n, what falls out jammed into the lowest bit. */
static u128 shift_jam(u128 v, unsigned n)
{
    if (n == 0)
        return v;
    if (n > 127)
        return v != 0;
    return v >> n | ((v << (128 - n)) != 0);
}

/* Highest bit at position `top`, value unchanged. */
static void normalize(struct num *n, unsigned top)
{
    int by = (int)top + 1 - (int)bits_of(n->mag);

    assert(n->mag);
    n->mag = by >= 0 ? n->mag << by : shift_jam(n->mag, (unsigned)-by);
    n->exp -= by;
}

/* Does a value whose bits below the last place are `rest` of `half * 2` go away from zero? */
static bool rounds_up(enum sf_rounding rm, bool neg, bool odd, u128 rest, u128 half)
{
    switch (rm) {
    case SF_RNE: return rest > half || (rest == half && odd);
    case SF_RDN: return neg && rest;
    case SF_RUP: return !neg && rest;
    case SF_RMM: return rest >= half;
    default: return false;
    }
}

/* mag / 2^drop as an integer in mode rm. */
static u128 round_off(u128 mag, unsigned drop, bool neg, enum sf_rounding rm, bool *inexact_out)
{
    u128 kept, rest, half;

    if (drop == 0) {
        *inexact_out = false;
        return mag;
    }
    if (drop > 126) { /* below half of the last place: room for `half` */
        mag = shift_jam(mag, drop - 126);
        drop = 126;
    }
    kept = mag >> drop;
    half = (u128)1 << (drop - 1);
    rest = mag & ((half << 1) - 1);
    *inexact_out = rest != 0;
    return kept + rounds_up(rm, neg, kept & 1, rest, half);
}

static uint64_t overflow(enum sf_format f, bool neg, enum sf_rounding rm, uint32_t *flags)
{
    bool finite = rm == SF_RTZ || (rm == SF_RDN && !neg) || (rm == SF_RUP && neg);

    *flags |= SF_OF | SF_NX;
    return signed_bits(f, neg, inf_of(f) - finite);
}

/* Tiny: below the smallest normal even when rounded with an exponent without bounds. */
static bool is_tiny(const struct layout *l, const struct num *n, enum sf_rounding rm)
{
    unsigned bits = bits_of(n->mag);
    int top = n->exp + (int)bits - 1, least = 1 - l->bias;
    bool inexact;

    if (top >= least)
        return false;
    if (top < least - 1 || bits <= l->frac + 1u)
        return true;
    return round_off(n->mag, bits - l->frac - 1u, n->neg, rm, &inexact) >> (l->frac + 1u) == 0;
}

/* The one place where results are rounded. n: finite, not 0. */
static uint64_t pack(enum sf_format f, const struct num *n, enum sf_rounding rm, uint32_t *flags)
{
    const struct layout *l = &layouts[f];
    int least = 1 - l->bias - l->frac, last = n->exp + (int)bits_of(n->mag) - 1 - l->frac;
    bool inexact = false;
    uint64_t sig, packed;

    last = last < least ? least : last; /* exponent of the last place */
    if (last > l->bias - l->frac)
        return overflow(f, n->neg, rm, flags);
    if (last <= n->exp)
        sig = (uint64_t)n->mag << (n->exp - last);
    else
        sig = (uint64_t)round_off(n->mag, (unsigned)(last - n->exp), n->neg, rm, &inexact);
    /* a carry out of the fraction goes into the exponent, from the greatest subnormal and to infinity, too */
    packed = sig >> l->frac ? ((uint64_t)(last - least) << l->frac) + sig : sig;
    if (packed >= inf_of(f))
        return overflow(f, n->neg, rm, flags);
    if (inexact)
        *flags |= SF_NX | (is_tiny(l, n, rm) ? (uint32_t)SF_UF : 0);
    return signed_bits(f, n->neg, packed);
}

/* ---- Arithmetic ---- */

static uint64_t invalid(enum sf_format f, uint32_t *flags)
{
    *flags |= SF_NV;
    return sf_nan(f);
}

static uint64_t nan_result(enum sf_format f, bool signalling, uint32_t *flags)
{
    return signalling ? invalid(f, flags) : sf_nan(f);
}

/* Sum of two finite numbers, either maybe 0; magnitudes of at most 126 bits. */
static uint64_t add_finite(enum sf_format f, struct num a, struct num b, enum sf_rounding rm, uint32_t *flags)
{
    struct num r, t;

    if (a.kind == KIND_ZERO && b.kind == KIND_ZERO)
        return signed_bits(f, a.neg == b.neg ? a.neg : rm == SF_RDN, 0);
    if (a.kind == KIND_ZERO || b.kind == KIND_ZERO)
        return pack(f, a.kind == KIND_ZERO ? &b : &a, rm, flags);
    normalize(&a, 125);
    normalize(&b, 125);
    if (a.exp < b.exp || (a.exp == b.exp && a.mag < b.mag)) {
        t = a;
        a = b;
        b = t;
    }
    b.mag = shift_jam(b.mag, (unsigned)(a.exp - b.exp));
    r = a;
    r.mag = a.neg == b.neg ? a.mag + b.mag : a.mag - b.mag;
    return r.mag ? pack(f, &r, rm, flags) : signed_bits(f, rm == SF_RDN, 0);
}

static uint64_t add(enum sf_format f, struct num a, struct num b, enum sf_rounding rm, uint32_t *flags)
{
    if (a.kind == KIND_NAN || b.kind == KIND_NAN)
        return nan_result(f, a.signalling || b.signalling, flags);
    if (a.kind == KIND_INF && b.kind == KIND_INF && a.neg != b.neg)
        return invalid(f, flags);
    if (a.kind == KIND_INF || b.kind == KIND_INF)
        return signed_bits(f, a.kind == KIND_INF ? a.neg : b.neg, inf_of(f));
    return add_finite(f, a, b, rm, flags);
}

uint64_t sf_add(enum sf_format f, uint64_t a, uint64_t b, enum sf_rounding rm, uint32_t *flags)
{
    return add(f, unpack(f, a), unpack(f, b), rm, flags);
}

uint64_t sf_sub(enum sf_format f, uint64_t a, uint64_t b, enum sf_rounding rm, uint32_t *flags)
{
    return add(f, unpack(f, a), unpack(f, b ^ sign_bit(f)), rm, flags);
}

/* Of two numbers that are no NaN. False: infinity times zero. */
static bool product(const struct num *a, const struct num *b, struct num *r_out)
{
    if ((a->kind == KIND_INF && b->kind == KIND_ZERO) || (a->kind == KIND_ZERO && b->kind == KIND_INF))
        return false;
    *r_out = (struct num){ .neg = a->neg != b->neg, .exp = a->exp + b->exp, .mag = a->mag * b->mag };
    r_out->kind = a->kind == KIND_INF || b->kind == KIND_INF ? KIND_INF : r_out->mag ? KIND_FINITE : KIND_ZERO;
    return true;
}

uint64_t sf_mul(enum sf_format f, uint64_t a, uint64_t b, enum sf_rounding rm, uint32_t *flags)
{
    struct num x = unpack(f, a), y = unpack(f, b), r;

    if (x.kind == KIND_NAN || y.kind == KIND_NAN)
        return nan_result(f, x.signalling || y.signalling, flags);
    if (!product(&x, &y, &r))
        return invalid(f, flags);
    if (r.kind != KIND_FINITE)
        return signed_bits(f, r.neg, r.kind == KIND_INF ? inf_of(f) : 0);
    return pack(f, &r, rm, flags);
}

uint64_t sf_fma(enum sf_format f, uint64_t a, uint64_t b, uint64_t c, enum sf_rounding rm, uint32_t *flags)
{
    struct num x = unpack(f, a), y = unpack(f, b), z = unpack(f, c), r;
    bool ok = x.kind != KIND_NAN && y.kind != KIND_NAN;

    if (ok && !product(&x, &y, &r))
        return invalid(f, flags);
    if (!ok || z.kind == KIND_NAN)
        return nan_result(f, x.signalling || y.signalling || z.signalling, flags);
    return add(f, r, z, rm, flags);
}

uint64_t sf_div(enum sf_format f, uint64_t a, uint64_t b, enum sf_rounding rm, uint32_t *flags)
{
    struct num x = unpack(f, a), y = unpack(f, b), r;
    u128 top;

    if (x.kind == KIND_NAN || y.kind == KIND_NAN)
        return nan_result(f, x.signalling || y.signalling, flags);
    if (x.kind == y.kind && (x.kind == KIND_INF || x.kind == KIND_ZERO))
        return invalid(f, flags);
    r = (struct num){ .kind = KIND_FINITE, .neg = x.neg != y.neg };
    if (x.kind == KIND_ZERO || y.kind == KIND_INF)
        return signed_bits(f, r.neg, 0);
    if (x.kind == KIND_INF || y.kind == KIND_ZERO) {
        *flags |= x.kind == KIND_INF ? 0 : (uint32_t)SF_DZ;
        return signed_bits(f, r.neg, inf_of(f));
    }
    normalize(&x, 52);
    normalize(&y, 52);
    top = x.mag << 64;
    r.mag = top / y.mag;
    r.mag |= r.mag * y.mag != top;
    r.exp = x.exp - y.exp - 64;
    return pack(f, &r, rm, flags);
}

/* Greatest r with r * r <= v; the bits of v come in pairs. */
static u128 root_of(u128 v)
{
    u128 r = 0, bit = (u128)1 << 126;

    while (bit > v)
        bit >>= 2;
    for (; bit; bit >>= 2) {
        bool fits = v >= r + bit;

        v -= fits ? r + bit : 0;
        r = (r >> 1) + (fits ? bit : 0);
    }
    return r;
}

uint64_t sf_sqrt(enum sf_format f, uint64_t a, enum sf_rounding rm, uint32_t *flags)
{
    struct num x = unpack(f, a);
    u128 r;

    if (x.kind == KIND_NAN)
        return nan_result(f, x.signalling, flags);
    if (x.kind == KIND_ZERO)
        return signed_bits(f, x.neg, 0);
    if (x.neg)
        return invalid(f, flags);
    if (x.kind == KIND_INF)
        return inf_of(f);
    normalize(&x, 124);
    if (x.exp & 1) {
        x.mag <<= 1;
        x.exp--;
    }
    r = root_of(x.mag);
    x.mag = r | (r * r != x.mag);
    x.exp /= 2;
    return pack(f, &x, rm, flags);
}

/* ---- Conversions ---- */

uint64_t sf_convert(enum sf_format to, enum sf_format from, uint64_t a, enum sf_rounding rm, uint32_t *flags)
{
    struct num x = unpack(from, a);

    if (x.kind == KIND_NAN)
        return nan_result(to, x.signalling, flags);
    if (x.kind != KIND_FINITE)
        return signed_bits(to, x.neg, x.kind == KIND_INF ? inf_of(to) : 0);
    return pack(to, &x, rm, flags);
}

uint64_t sf_to_int(enum sf_format f, uint64_t a, enum sf_integer kind, enum sf_rounding rm, uint32_t *flags)
{
    static const uint64_t greatest[] = { INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX };
    static const uint64_t least[] = { 1ull << 31, 0, 1ull << 63, 0 }; /* magnitude */
    struct num x = unpack(f, a);
    uint64_t limit = x.neg && x.kind != KIND_NAN ? least[kind] : greatest[kind], r;
    bool inexact = false, fits = x.kind == KIND_ZERO;
    u128 mag = 0;

    if (x.kind == KIND_FINITE && x.exp + (int)bits_of(x.mag) <= 65) {
        mag = x.exp >= 0 ? x.mag << x.exp : round_off(x.mag, (unsigned)-x.exp, x.neg, rm, &inexact);
        fits = mag <= limit;
    }
    r = fits ? (uint64_t)mag : limit;
    *flags |= !fits ? (uint32_t)SF_NV : inexact ? (uint32_t)SF_NX : 0;
    r = x.neg && x.kind != KIND_NAN ? -r : r;
    return kind <= SF_INT_WU ? (uint64_t)(int64_t)(int32_t)(uint32_t)r : r;
}

uint64_t sf_from_int(enum sf_format f, uint64_t v, enum sf_integer kind, enum sf_rounding rm, uint32_t *flags)
{
    struct num x = { .kind = KIND_FINITE };

    if (kind == SF_INT_W)
        v = (uint64_t)(int64_t)(int32_t)(uint32_t)v;
    else if (kind == SF_INT_WU)
        v = (uint32_t)v;
    x.neg = (kind == SF_INT_W || kind == SF_INT_L) && v >> 63;
    x.mag = x.neg ? -v : v;
    return x.mag ? pack(f, &x, rm, flags) : 0;
}

/* ---- Order and classes ---- */

/* Bits as a number of the same order; both zeros are 0. */
static int64_t ordered(enum sf_format f, uint64_t v)
{
    int64_t mag = (int64_t)(v & (sign_bit(f) - 1));

    return v & sign_bit(f) ? -mag : mag;
}

/* True when either is a NaN, with the flag that is due. */
static bool unordered(enum sf_format f, uint64_t a, uint64_t b, bool quiet, uint32_t *flags)
{
    struct num x = unpack(f, a), y = unpack(f, b);
    bool nan = x.kind == KIND_NAN || y.kind == KIND_NAN;

    if (quiet ? x.signalling || y.signalling : nan)
        *flags |= SF_NV;
    return nan;
}

bool sf_eq(enum sf_format f, uint64_t a, uint64_t b, uint32_t *flags)
{
    return !unordered(f, a, b, true, flags) && ordered(f, a) == ordered(f, b);
}

bool sf_lt(enum sf_format f, uint64_t a, uint64_t b, uint32_t *flags)
{
    return !unordered(f, a, b, false, flags) && ordered(f, a) < ordered(f, b);
}

bool sf_le(enum sf_format f, uint64_t a, uint64_t b, uint32_t *flags)
{
    return !unordered(f, a, b, false, flags) && ordered(f, a) <= ordered(f, b);
}

static uint64_t min_or_max(enum sf_format f, uint64_t a, uint64_t b, bool max, uint32_t *flags)
{
    uint64_t bits = sign_bit(f) | (sign_bit(f) - 1);
    bool a_nan = unpack(f, a).kind == KIND_NAN, b_nan = unpack(f, b).kind == KIND_NAN, a_less;

    a &= bits;
    b &= bits;
    if (unordered(f, a, b, true, flags))
        return a_nan ? (b_nan ? sf_nan(f) : b) : a;
    a_less = ordered(f, a) != ordered(f, b) ? ordered(f, a) < ordered(f, b) : a > b; /* equal: -0 has the greater bits */
    return a_less != max ? a : b;
}

uint64_t sf_min(enum sf_format f, uint64_t a, uint64_t b, uint32_t *flags)
{
    return min_or_max(f, a, b, false, flags);
}

uint64_t sf_max(enum sf_format f, uint64_t a, uint64_t b, uint32_t *flags)
{
    return min_or_max(f, a, b, true, flags);
}

unsigned sf_class(enum sf_format f, uint64_t a)
{
    struct num x = unpack(f, a);

    switch (x.kind) {
    case KIND_NAN: return x.signalling ? 8 : 9;
    case KIND_INF: return x.neg ? 0 : 7;
    case KIND_ZERO: return x.neg ? 3 : 4;
    default: break;
    }
    if (x.mag >> layouts[f].frac)
        return x.neg ? 1 : 6;
    return x.neg ? 2 : 5;
}
