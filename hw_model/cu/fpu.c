/* SPDX-License-Identifier: MIT */
/* fpu.c - floating point that host vectors cannot do as RISC-V wants it, a lane at a time: half precision, conversions, rounding modes. */
#include <assert.h>
#include <immintrin.h>
#include <string.h>

#include "cu_priv.h"
#include "softfp.h"

#define CANONICAL32 0x7fc00000u

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

        out[l] = q >> 32 == UINT32_MAX ? (uint32_t)q : CANONICAL32;
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

/* A register's active lanes as values of a format, without box. */
static void read_lanes(const struct cu_warp *w, unsigned r, enum sf_format f, uint64_t out[CU_LANES])
{
    unsigned width = sf_width(f);

    cu_f64_read(w, r, out);
    for (uint32_t m = width < 64 ? w->mask : 0; m; m &= m - 1) {
        uint64_t *v = &out[cu_first_lane(m)];

        *v = *v >> width == UINT64_MAX >> width ? *v & ((1ull << width) - 1) : sf_nan(f);
    }
}

/* Boxed. A half with its box is what lies in the 32 bits of a boxed single. */
static void write_lanes(struct cu_warp *w, unsigned r, enum sf_format f, const uint64_t in[CU_LANES])
{
    uint32_t word[CU_LANES];

    if (f == SF_D) {
        cu_f64_write(w, r, in);
        return;
    }
    for (uint32_t m = w->mask; m; m &= m - 1)
        word[cu_first_lane(m)] = (uint32_t)in[cu_first_lane(m)] | (f == SF_H ? 0xffff0000u : 0);
    cu_f32_write(w, r, word);
}

static void write_x(struct cu_warp *w, unsigned r, const uint64_t in[CU_LANES])
{
    for (uint32_t m = w->mask; m; m &= m - 1)
        w->x[r].u[cu_first_lane(m)] = in[cu_first_lane(m)];
}

static enum sf_format format_of(const struct cu_uop *u)
{
    static const uint8_t by_field[] = { SF_S, SF_D, SF_H, SF_H };

    return (enum sf_format)by_field[cu_insn_fmt(u->op)];
}

/* ---- Minimum and maximum ---- */

uint32_t cu_minmax32(struct cu_warp *w, uint32_t a, uint32_t b, bool max)
{
    int32_t ka = (int32_t)(a ^ ((uint32_t)((int32_t)a >> 31) & 0x7fffffffu)), kb = (int32_t)(b ^ ((uint32_t)((int32_t)b >> 31) & 0x7fffffffu));

    if ((a & 0x7fffffffu) > 0x7f800000u || (b & 0x7fffffffu) > 0x7f800000u)
        return (uint32_t)(max ? sf_max(SF_S, a, b, &w->fflags) : sf_min(SF_S, a, b, &w->fflags));
    return (ka < kb) != max ? a : b; /* -0 below +0 */
}

/* ---- Arithmetic by integers ---- */

static bool bad_rounding(struct cu_warp *w, const struct cu_uop *u, unsigned rm)
{
    if (rm <= SF_RMM)
        return false;
    cu_fault(w, u, PETREL_FAULT_ILLEGAL, PETREL_ACCESS_EXEC, 0, cu_first_lane(w->mask), u->bits);
    return true;
}

static unsigned rounding(const struct cu_warp *w, const struct cu_uop *u)
{
    return u->rm == 7 ? w->frm : u->rm;
}

static uint64_t arith_lane(unsigned op, enum sf_format f, uint64_t a, uint64_t b, uint64_t c, enum sf_rounding rm, uint32_t *flags)
{
    uint64_t sign = 1ull << (sf_width(f) - 1);

    switch (op) {
    case CU_OP_fadd_h: case CU_OP_fadd_s: case CU_OP_fadd_d: return sf_add(f, a, b, rm, flags);
    case CU_OP_fsub_h: case CU_OP_fsub_s: case CU_OP_fsub_d: return sf_sub(f, a, b, rm, flags);
    case CU_OP_fmul_h: case CU_OP_fmul_s: case CU_OP_fmul_d: return sf_mul(f, a, b, rm, flags);
    case CU_OP_fdiv_h: case CU_OP_fdiv_s: case CU_OP_fdiv_d: return sf_div(f, a, b, rm, flags);
    case CU_OP_fsqrt_h: case CU_OP_fsqrt_s: case CU_OP_fsqrt_d: return sf_sqrt(f, a, rm, flags);
    case CU_OP_fmadd_h: case CU_OP_fmadd_s: case CU_OP_fmadd_d: return sf_fma(f, a, b, c, rm, flags);
    case CU_OP_fmsub_h: case CU_OP_fmsub_s: case CU_OP_fmsub_d: return sf_fma(f, a, b, c ^ sign, rm, flags);
    case CU_OP_fnmsub_h: case CU_OP_fnmsub_s: case CU_OP_fnmsub_d: return sf_fma(f, a ^ sign, b, c, rm, flags);
    case CU_OP_fnmadd_h: case CU_OP_fnmadd_s: case CU_OP_fnmadd_d: return sf_fma(f, a ^ sign, b, c ^ sign, rm, flags);
    case CU_OP_fsgnj_h: return (a & ~sign) | (b & sign);
    case CU_OP_fsgnjn_h: return (a & ~sign) | (~b & sign);
    case CU_OP_fsgnjx_h: return a ^ (b & sign);
    case CU_OP_fmin_h: case CU_OP_fmin_d: return sf_min(f, a, b, flags);
    case CU_OP_fmax_h: case CU_OP_fmax_d: return sf_max(f, a, b, flags);
    case CU_OP_fle_h: return sf_le(f, a, b, flags);
    case CU_OP_flt_h: return sf_lt(f, a, b, flags);
    case CU_OP_feq_h: return sf_eq(f, a, b, flags);
    case CU_OP_fclass_h: case CU_OP_fclass_s: case CU_OP_fclass_d: return 1ull << sf_class(f, a);
    default: assert(0); return 0;
    }
}

/* rm: valid. */
static const struct cu_uop *arith_lanes(struct cu_warp *w, const struct cu_uop *u, enum sf_rounding rm)
{
    enum sf_format f = format_of(u);
    uint64_t a[CU_LANES], b[CU_LANES], c[CU_LANES];
    enum cu_format operands = (enum cu_format)cu_insns[u->op].format;

    read_lanes(w, u->rs1, f, a);
    read_lanes(w, operands == CU_FMT_XF || operands == CU_FMT_FF ? u->rs1 : u->rs2, f, b);
    read_lanes(w, operands == CU_FMT_F4 ? u->rs3 : u->rs1, f, c);
    for (uint32_t m = w->mask; m; m &= m - 1) {
        unsigned l = cu_first_lane(m);

        a[l] = arith_lane(u->op, f, a[l], b[l], c[l], rm, &w->fflags);
    }
    if (operands == CU_FMT_XF || operands == CU_FMT_XFF)
        write_x(w, u->rd, a);
    else
        write_lanes(w, u->rd, f, a);
    return u + u->step;
}

const struct cu_uop *cu_fp_lanes(struct cu_warp *w, const struct cu_uop *u)
{
    unsigned rm = cu_insns[u->op].mask & 7u << 12 ? 0 : rounding(w, u);

    return bad_rounding(w, u, rm) ? NULL : arith_lanes(w, u, (enum sf_rounding)rm);
}

/* The host has all modes but one, which is done by integers. */
const struct cu_uop *cu_fp_rounded(struct cu_warp *w, const struct cu_uop *u, unsigned rm)
{
    static const unsigned modes[] = { _MM_ROUND_NEAREST, _MM_ROUND_TOWARD_ZERO, _MM_ROUND_DOWN, _MM_ROUND_UP };
    struct cu_uop nearest = *u;
    unsigned csr = _mm_getcsr();

    if (bad_rounding(w, u, rm))
        return NULL;
    if (rm == SF_RMM)
        return arith_lanes(w, u, SF_RMM);
    nearest.rm = 0;
    _mm_setcsr((csr & ~(unsigned)_MM_ROUND_MASK) | modes[rm]);
    w->cu->array->handlers[u->op][w->partial != 0](w, &nearest);
    _mm_setcsr((_mm_getcsr() & ~(unsigned)_MM_ROUND_MASK) | (csr & _MM_ROUND_MASK));
    return u + u->step;
}

/* ---- Conversions ---- */

const struct cu_uop *cu_fp_to_int(struct cu_warp *w, const struct cu_uop *u)
{
    unsigned rm = rounding(w, u);
    enum sf_format f = format_of(u);
    uint64_t v[CU_LANES];

    if (bad_rounding(w, u, rm))
        return NULL;
    read_lanes(w, u->rs1, f, v);
    for (uint32_t m = w->mask; m; m &= m - 1) {
        unsigned l = cu_first_lane(m);

        v[l] = sf_to_int(f, v[l], (enum sf_integer)(u->rs2 & 3), (enum sf_rounding)rm, &w->fflags);
    }
    write_x(w, u->rd, v);
    return u + u->step;
}

const struct cu_uop *cu_int_to_fp(struct cu_warp *w, const struct cu_uop *u)
{
    unsigned rm = rounding(w, u);
    enum sf_format f = format_of(u);
    uint64_t v[CU_LANES];

    if (bad_rounding(w, u, rm))
        return NULL;
    for (uint32_t m = w->mask; m; m &= m - 1) {
        unsigned l = cu_first_lane(m);

        v[l] = sf_from_int(f, w->x[u->rs1].u[l], (enum sf_integer)(u->rs2 & 3), (enum sf_rounding)rm, &w->fflags);
    }
    write_lanes(w, u->rd, f, v);
    return u + u->step;
}

const struct cu_uop *cu_fp_to_fp(struct cu_warp *w, const struct cu_uop *u)
{
    static const uint8_t by_rs2[] = { SF_S, SF_D, SF_H, SF_H };
    unsigned rm = rounding(w, u);
    enum sf_format to = format_of(u), from = (enum sf_format)by_rs2[u->rs2 & 3];
    uint64_t v[CU_LANES];

    if (bad_rounding(w, u, rm))
        return NULL;
    read_lanes(w, u->rs1, from, v);
    for (uint32_t m = w->mask; m; m &= m - 1) {
        unsigned l = cu_first_lane(m);

        v[l] = sf_convert(to, from, v[l], (enum sf_rounding)rm, &w->fflags);
    }
    write_lanes(w, u->rd, to, v);
    return u + u->step;
}
