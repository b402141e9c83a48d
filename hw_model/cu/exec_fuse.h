/* SPDX-License-Identifier: MIT */
/* exec_fuse.h - handlers of instructions that run as one, and their table, from fuse.def. Full warps without timing only. */
#ifndef HW_CU_EXEC_FUSE_H
#define HW_CU_EXEC_FUSE_H

/*
 * What each instruction leaves behind is there before the next one may fault, and each takes its fuel, so that nobody can tell the
 * difference. Where there is not fuel for all, the first one runs alone.
 */
INLINE bool fused_fuel(struct cu_warp *w, int32_t more)
{
    if (UNLIKELY(w->fuel < more))
        return false;
    w->fuel -= more;
    return true;
}

/* Result of an instruction of integers. */
INLINE void alu_values(const struct cu_warp *w, const struct cu_uop *u, unsigned op, v8 r[4])
{
    const bool immediate = cu_insn_format(op) != CU_FMT_R;
    const union cu_xreg *a = &w->x[u->rs1], *b = &w->x[u->rs2];
    const v8 imm = splat(u->imm);

    EACH_V8(k)
        r[k] = op == CU_OP_lui || op == CU_OP_auipc ? imm : alu_value(op, a->v[k], immediate ? imm : b->v[k]);
}

INLINE void put_values(struct cu_warp *w, unsigned rd, const v8 r[4])
{
    EACH_V8(k)
        w->x[rd].v[k] = r[k];
}

/* The same for an instruction that has r in one operand. */
INLINE void alu_values_of(const struct cu_warp *w, const struct cu_uop *u, unsigned op, unsigned rd, v8 r[4])
{
    const bool immediate = cu_insn_format(op) != CU_FMT_R;
    const union cu_xreg *b = &w->x[u->rs1 == rd ? u->rs2 : u->rs1];
    const v8 imm = splat(u->imm);

    EACH_V8(k)
        r[k] = alu_value(op, r[k], immediate ? imm : b->v[k]);
}

INLINE const struct cu_uop *fused_alu(struct cu_warp *w, const struct cu_uop *u, unsigned first, unsigned second)
{
    const struct cu_uop *u2 = cu_uop_next(u), *next = cu_uop_next(u2);
    const unsigned rd = u->rd;
    v8 r[4];

    alu_values(w, u, first, r);
    alu_values_of(w, u2, second, rd, r);
    put_values(w, rd, r);
    return next;
}

/* first: of the sum of a and b, which are lanes' and those of the first two. */
INLINE struct base base_of_sum(const v8 sum[4], uint64_t va0, uint64_t va1)
{
    return (struct base){ .v = { sum[0], sum[1], sum[2], sum[3] }, .va = { va0, va1 }, .lane = { 0, 1 } };
}

INLINE struct base fused_address(struct cu_warp *w, const struct cu_uop *u)
{
    const union cu_xreg *a = &w->x[u->rs1], *b = &w->x[u->rs2];
    const uint64_t va0 = a->u[0] + b->u[0], va1 = a->u[1] + b->u[1];
    v8 r[4];

    alu_values(w, u, CU_OP_add, r);
    put_values(w, u->rd, r);
    return base_of_sum(r, va0, va1);
}

INLINE struct base fused_index(struct cu_warp *w, const struct cu_uop *u)
{
    const struct cu_uop *u2 = cu_uop_next(u);
    const unsigned rd = u->rd, shift = u->imm & 63;
    const union cu_xreg *a = &w->x[u->rs1], *b = &w->x[u2->rs1 == rd ? u2->rs2 : u2->rs1];
    const uint64_t va0 = (a->u[0] << shift) + b->u[0], va1 = (a->u[1] << shift) + b->u[1];
    v8 r[4];

    alu_values(w, u, CU_OP_slli, r);
    alu_values_of(w, u2, CU_OP_add, rd, r);
    put_values(w, rd, r);
    return base_of_sum(r, va0, va1);
}

#define FUSE_ALU(first_, second_)                                                                         \
    static const struct cu_uop *fused_##first_##_##second_(struct cu_warp *w, const struct cu_uop *u)    \
    {                                                                                                     \
        return fused_fuel(w, 1) ? fused_alu(w, u, CU_OP_##first_, CU_OP_##second_) : full_##first_(w, u); \
    }
#define FUSE_ADDRESS(access_, kind_)                                                                      \
    static const struct cu_uop *fused_add_##access_(struct cu_warp *w, const struct cu_uop *u)           \
    {                                                                                                     \
        if (!fused_fuel(w, 1))                                                                           \
            return full_add(w, u);                                                                       \
        const struct base b = fused_address(w, u);                                                       \
        return kind_##_at(w, cu_uop_next(u), CU_OP_##access_, false, &b);                                \
    }
#define FUSE_INDEX(access_, kind_)                                                                        \
    static const struct cu_uop *fused_slli_add_##access_(struct cu_warp *w, const struct cu_uop *u)      \
    {                                                                                                     \
        if (!fused_fuel(w, 2))                                                                           \
            return full_slli(w, u);                                                                      \
        const struct base b = fused_index(w, u);                                                         \
        return kind_##_at(w, cu_uop_next(cu_uop_next(u)), CU_OP_##access_, false, &b);                   \
    }
#define FUSE_COUNT(first_, branch_)                                                                       \
    static const struct cu_uop *fused_##first_##_##branch_(struct cu_warp *w, const struct cu_uop *u)    \
    {                                                                                                     \
        if (!fused_fuel(w, 1))                                                                           \
            return full_##first_(w, u);                                                                  \
        return branch(w, alu(w, u, CU_OP_##first_, false), CU_OP_##branch_, false);                      \
    }
#include "fuse.def"

#endif
