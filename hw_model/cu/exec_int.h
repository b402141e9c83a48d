/* SPDX-License-Identifier: MIT */
/* exec_int.h - handlers of integer arithmetic, branches and jumps. */
#ifndef HW_CU_EXEC_INT_H
#define HW_CU_EXEC_INT_H

INLINE v8 word(v8 v)
{
    return (v8)((u8v)v << 32) >> 32;
}

INLINE v8 is_less(v8 a, v8 b)
{
#if CU_EXEC_AVX512
    return (v8)_mm512_maskz_set1_epi64(_mm512_cmplt_epi64_mask((__m512i)a, (__m512i)b), 1);
#else
    return (v8)(a < b) & 1;
#endif
}

INLINE v8 is_less_unsigned(v8 a, v8 b)
{
#if CU_EXEC_AVX512
    return (v8)_mm512_maskz_set1_epi64(_mm512_cmplt_epu64_mask((__m512i)a, (__m512i)b), 1);
#else
    return (v8)((u8v)a < (u8v)b) & 1;
#endif
}

INLINE v8 alu_value(unsigned op, v8 a, v8 b)
{
    switch (op) {
    case CU_OP_add: case CU_OP_addi: return plus(a, b);
    case CU_OP_sub: return (v8)((u8v)a - (u8v)b);
    case CU_OP_and: case CU_OP_andi: return a & b;
    case CU_OP_or: case CU_OP_ori: return a | b;
    case CU_OP_xor: case CU_OP_xori: return a ^ b;
    case CU_OP_sll: case CU_OP_slli: return (v8)((u8v)a << (u8v)(b & 63));
    case CU_OP_srl: case CU_OP_srli: return (v8)((u8v)a >> (u8v)(b & 63));
    case CU_OP_sra: case CU_OP_srai: return a >> (b & 63);
    case CU_OP_slt: case CU_OP_slti: return is_less(a, b);
    case CU_OP_sltu: case CU_OP_sltiu: return is_less_unsigned(a, b);
    case CU_OP_addw: case CU_OP_addiw: return word(plus(a, b));
    case CU_OP_subw: return word((v8)((u8v)a - (u8v)b));
    case CU_OP_sllw: case CU_OP_slliw: return word((v8)((u8v)a << (u8v)(b & 31)));
    case CU_OP_srlw: case CU_OP_srliw: return word((v8)((u8v)(a & 0xffffffff) >> (u8v)(b & 31)));
    case CU_OP_sraw: case CU_OP_sraiw: return word(a) >> (b & 31);
    case CU_OP_mul: return (v8)((u8v)a * (u8v)b);
    case CU_OP_mulw: return word((v8)((u8v)a * (u8v)b));
    default: return a;
    }
}

INLINE const struct cu_uop *alu(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    const bool immediate = cu_insn_format(op) != CU_FMT_R;
    const union cu_xreg *a = &w->x[u->rs1], *b = &w->x[u->rs2];
    const v8 imm = splat(u->imm);
    const unsigned rd = u->rd;

    EACH_V8(k)
        put_x(w, rd, k, alu_value(op, a->v[k], immediate ? imm : b->v[k]), partial);
    return next_of(u);
}

INLINE const struct cu_uop *lui(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    const v8 imm = splat(u->imm);
    const unsigned rd = u->rd;

    EACH_V8(k)
        put_x(w, rd, k, imm, partial);
    return next_of(u);
}

INLINE int64_t divide(int64_t a, int64_t b)
{
    return b == 0 ? -1 : b == -1 ? (int64_t)-(uint64_t)a : a / b;
}

INLINE int64_t remainder_of(int64_t a, int64_t b)
{
    return b == 0 ? a : b == -1 ? 0 : a % b;
}

INLINE int64_t divide_u32(uint32_t a, uint32_t b)
{
    return b ? (int32_t)(a / b) : -1;
}

INLINE int64_t remainder_u32(uint32_t a, uint32_t b)
{
    return b ? (int32_t)(a % b) : (int32_t)a;
}

INLINE int64_t lane_value(unsigned op, int64_t a, int64_t b)
{
    uint64_t ua = (uint64_t)a, ub = (uint64_t)b;

    switch (op) {
    case CU_OP_mulh: return (int64_t)((__int128)a * b >> 64);
    case CU_OP_mulhsu: return (int64_t)((__int128)a * (__int128)ub >> 64);
    case CU_OP_mulhu: return (int64_t)((unsigned __int128)ua * ub >> 64);
    case CU_OP_div: return divide(a, b);
    case CU_OP_divu: return b ? (int64_t)(ua / ub) : -1;
    case CU_OP_rem: return remainder_of(a, b);
    case CU_OP_remu: return b ? (int64_t)(ua % ub) : a;
    case CU_OP_divw: return (int32_t)divide((int32_t)a, (int32_t)b);
    case CU_OP_divuw: return divide_u32((uint32_t)ua, (uint32_t)ub);
    case CU_OP_remw: return (int32_t)remainder_of((int32_t)a, (int32_t)b);
    case CU_OP_remuw: return remainder_u32((uint32_t)ua, (uint32_t)ub);
    default: return a;
    }
}

#if CU_EXEC_AVX512
/* 32-bit division by doubles, which hold operands and quotients exactly; no host flag is raised. */
INLINE v8 divide_words(unsigned op, v8 a, v8 b)
{
    bool is_signed = op == CU_OP_divw || op == CU_OP_remw, quotient = op == CU_OP_divw || op == CU_OP_divuw;
    v8 x = is_signed ? word(a) : a & 0xffffffff, y = is_signed ? word(b) : b & 0xffffffff, zero = (v8)(y == 0);
    __m512d q = _mm512_div_round_pd(_mm512_cvtepi64_pd((__m512i)x), _mm512_cvtepi64_pd((__m512i)(y - zero)), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    v8 n = (v8)_mm512_cvtt_roundpd_epi64(q, _MM_FROUND_NO_EXC);

    return word(quotient ? n | zero : x - (v8)((u8v)n * (u8v)(y & ~zero)));
}
#endif

INLINE const struct cu_uop *lane(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    const union cu_xreg *a = &w->x[u->rs1], *b = &w->x[u->rs2];
    const unsigned rd = u->rd;
    union cu_xreg r;

#if CU_EXEC_AVX512
    if (op == CU_OP_divw || op == CU_OP_divuw || op == CU_OP_remw || op == CU_OP_remuw) {
        EACH_V8(k)
            put_x(w, rd, k, divide_words(op, a->v[k], b->v[k]), partial);
        return next_of(u);
    }
#endif
    for (unsigned l = 0; l < CU_LANES; l++)
        r.i[l] = lane_value(op, a->i[l], b->i[l]);
    put_lanes(w, rd, &r, partial);
    return next_of(u);
}

/* Bit per lane of eight for which the branch is taken. */
#if CU_EXEC_AVX512
INLINE __mmask8 branch_bits8(unsigned op, v8 a, v8 b)
{
    switch (op) {
    case CU_OP_beq: return _mm512_cmpeq_epi64_mask((__m512i)a, (__m512i)b);
    case CU_OP_bne: return _mm512_cmpneq_epi64_mask((__m512i)a, (__m512i)b);
    case CU_OP_blt: return _mm512_cmplt_epi64_mask((__m512i)a, (__m512i)b);
    case CU_OP_bge: return _mm512_cmpge_epi64_mask((__m512i)a, (__m512i)b);
    case CU_OP_bltu: return _mm512_cmplt_epu64_mask((__m512i)a, (__m512i)b);
    default: return _mm512_cmpge_epu64_mask((__m512i)a, (__m512i)b);
    }
}
#else
INLINE uint32_t branch_bits8(unsigned op, v8 a, v8 b)
{
    switch (op) {
    case CU_OP_beq: return sign_bits8((v8)(a == b));
    case CU_OP_bne: return sign_bits8((v8)(a != b));
    case CU_OP_blt: return sign_bits8((v8)(a < b));
    case CU_OP_bge: return sign_bits8((v8)(a >= b));
    case CU_OP_bltu: return sign_bits8((v8)((u8v)a < (u8v)b));
    default: return sign_bits8((v8)((u8v)a >= (u8v)b));
    }
}
#endif

INLINE uint32_t branch_bits(unsigned op, const union cu_xreg *a, const union cu_xreg *b)
{
    return join_bits(branch_bits8(op, a->v[0], b->v[0]), branch_bits8(op, a->v[1], b->v[1]), branch_bits8(op, a->v[2], b->v[2]),
                     branch_bits8(op, a->v[3], b->v[3]));
}

/* A target outside the region, or a sabotaged instruction: by address. */
OUT_OF_LINE const struct cu_uop *far_target(struct cu_warp *w, const struct cu_uop *u, uint32_t taken, bool call)
{
    uint64_t pc[CU_LANES], here = cu_pc(w->rg, u);

    for (unsigned l = 0; l < CU_LANES; l++)
        pc[l] = taken >> l & 1 ? here + (uint64_t)u->imm : here + 2ull * u->step;
    if (!cu_jump_ready(w, pc, w->mask, call, NULL))
        return cu_ask(w, u);
    return cu_path_jump(w, u, pc, call, false);
}

INLINE const struct cu_uop *branch(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    uint32_t taken = branch_bits(op, &w->x[u->rs1], &w->x[u->rs2]);

    if (partial)
        taken &= w->mask;
    if (!taken)
        return next_of(u);
    if (UNLIKELY(u->flags & CU_UOP_FAR))
        return far_target(w, u, taken, false);
    if (taken == (partial ? w->mask : CU_ALL))
        return cu_uop_target(u);
    return cu_path_branch(w, u, taken, cu_uop_target(u));
}

INLINE void link_to(struct cu_warp *w, const struct cu_uop *u, bool partial)
{
    v8 ra = splat((int64_t)(cu_pc(w->rg, u) + 2ull * u->step));

    const unsigned rd = u->rd;

    EACH_V8(k)
        put_x(w, rd, k, ra, partial);
}

INLINE bool is_link(unsigned reg)
{
    return reg == 1 || reg == 5;
}

INLINE const struct cu_uop *jal(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    bool call = is_link(u->rd);

    if (u->rd != CU_REG_SINK)
        link_to(w, u, partial);
    if (UNLIKELY(u->flags & CU_UOP_FAR))
        return far_target(w, u, CU_ALL, call);
    if (call)
        cu_path_called(&w->path[w->cur], cu_pc(w->rg, next_of(u)));
    return cu_uop_target(u);
}

INLINE const struct cu_uop *jalr(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    union cu_xreg to;
    bool call = is_link(u->rd), ret = !call && is_link(u->rs1);
    struct cu_path *p = &w->path[w->cur];
    struct cu_region *rg = w->rg;
    unsigned first = partial ? cu_first_lane(w->mask) : 0;
    v8 diff = { 0 };
    uint64_t off;
    bool parts;

    EACH_V8(k)
        to.v[k] = plus(w->x[u->rs1].v[k], splat(u->imm)) & ~1ll;
    EACH_V8(k)
        diff |= partial ? (to.v[k] ^ splat(to.i[first])) & w->m64[k] : to.v[k] ^ splat(to.i[first]);
    off = to.u[first] - rg->va;
    parts = any_bit8(diff);
    if (UNLIKELY(parts || off >= rg->size_B || (call && !(rg->uops[off / 2].flags & CU_UOP_ENTRY))) &&
        !cu_jump_ready(w, to.u, w->mask, call, call ? next_of(u) : NULL))
        return cu_ask(w, u);
    if (u->rd != CU_REG_SINK)
        link_to(w, u, partial);
    if (UNLIKELY(parts))
        return cu_path_jump(w, u, to.u, call ? 1 : ret ? -1 : 0, ret);
    if (to.u[first] == CU_RETURN_VA)
        return cu_path_exit(w);
    if (UNLIKELY(off >= rg->size_B || (ret && p->node && cu_path_waits_at_return(p))))
        return cu_path_jump(w, u, to.u, call ? 1 : ret ? -1 : 0, ret);
    if (call) {
        cu_path_called(p, cu_pc(rg, next_of(u)));
        if (UNLIKELY(!(rg->uops[off / 2].flags & CU_UOP_ENTRY)))
            cu_converge_function(w->cu->array, rg, (uint32_t)(off / 2));
    } else if (ret) {
        cu_path_returned(p, to.u[first]);
    }
    return rg->uops + off / 2;
}

#endif
