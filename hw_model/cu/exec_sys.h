/* SPDX-License-Identifier: MIT */
/* exec_sys.h - handlers of system instructions and of custom-0. */
#ifndef HW_CU_EXEC_SYS_H
#define HW_CU_EXEC_SYS_H

/* Between warps of a host thread there is nothing to do; the CPU and other host threads see the order that was asked for. */
INLINE const struct cu_uop *fence(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    _mm_mfence();
    w->synchronises = true;
    return next_of(u);
}

INLINE const struct cu_uop *fencei(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    const struct cu_uop *next = next_of(u);

    if (!w->cu->alone)
        return cu_ask(w, u);
    cu_warp_charge(w, cu_code_flush(w->cu->array));
    return next;
}

INLINE const struct cu_uop *trap(struct cu_warp *w, const struct cu_uop *u, uint64_t code)
{
    return cu_fault(w, u, PETREL_FAULT_TRAP, PETREL_ACCESS_EXEC, 0, cu_first_lane(w->mask), code);
}

INLINE const struct cu_uop *ebreak(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    return trap(w, u, PETREL_TRAP_EBREAK);
}

INLINE const struct cu_uop *ecall(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    return cu_ecall(w, u);
}

INLINE const struct cu_uop *mret(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    return cu_mret(w, u);
}

/* What kernels read all the time is read here. */
INLINE const struct cu_uop *csr(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    const struct petrel_dispatch *d = &w->cu->array->d;
    uint64_t v;

    if (op != CU_OP_csrrs || u->rs1)
        return cu_csr(w, u);
    switch (u->imm) {
    case CU_CSR_LOCAL_ID_X:
        put_lanes(w, u->rd, &w->lid[0], partial);
        return next_of(u);
    case CU_CSR_GROUP_ID_X: v = w->group->id[0]; break;
    case CU_CSR_BLOCK_X: v = d->block[0]; break;
    case CU_CSR_GRID_X: v = d->grid[0]; break;
    default: return cu_csr(w, u);
    }
    EACH_V8(k)
        put_x(w, u->rd, k, splat((int64_t)v), partial);
    return next_of(u);
}

INLINE const struct cu_uop *illegal(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    return cu_fault(w, u, PETREL_FAULT_ILLEGAL, PETREL_ACCESS_EXEC, 0, cu_first_lane(w->mask), u->bits);
}

/* No interrupt will come: going on at once is a wait that is over. */
INLINE const struct cu_uop *wfi(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    return w->cu->array->config.bare ? next_of(u) : illegal(w, u, op, partial);
}

INLINE const struct cu_uop *psync(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    const struct cu_uop *next;

    if (op == CU_OP_p_trap)
        return trap(w, u, w->x[u->rs1].u[cu_first_lane(w->mask)] & 0xffff);
    if (op == CU_OP_p_yield) {
        w->yields = true;
        cu_fuel_set(w, 0); /* another path's turn, if there is one */
        return next_of(u);
    }
    if (w->cohorts && !cu_path_gather(w, u, &next))
        return next;
    return op == CU_OP_p_barrier ? cu_path_barrier(w, u) : cu_path_sync(w, u);
}

/* Lane whose value lane l reads; l itself where that lane is not active. */
INLINE unsigned shuffle_lane(unsigned kind, unsigned l, uint64_t by, uint32_t mask)
{
    uint64_t from = kind == 3 ? by : kind == 4 ? l - by : kind == 5 ? l + by : l ^ by;

    return from < CU_LANES && (mask >> from & 1) ? (unsigned)from : l;
}

INLINE int64_t reduce_value(unsigned op, int64_t a, int64_t b)
{
    switch (op) {
    case CU_OP_p_red_add: return (int64_t)((uint64_t)a + (uint64_t)b);
    case CU_OP_p_red_min: return a < b ? a : b;
    case CU_OP_p_red_max: return a > b ? a : b;
    case CU_OP_p_red_and: return a & b;
    case CU_OP_p_red_or: return a | b;
    default: return a ^ b;
    }
}

INLINE const struct cu_uop *pwarp(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    const union cu_xreg *a = &w->x[u->rs1];
    const struct cu_uop *next;
    union cu_xreg r;
    uint32_t votes = 0;
    int64_t v;

    if (w->cohorts && !cu_path_gather(w, u, &next))
        return next;
    if (op >= CU_OP_p_shfl && op <= CU_OP_p_shfl_xor) {
        for (unsigned l = 0; l < CU_LANES; l++)
            r.i[l] = a->i[shuffle_lane(op - CU_OP_p_shfl + 3, l, w->x[u->rs2].u[l], w->mask)];
        put_lanes(w, u->rd, &r, partial);
        return next_of(u);
    }
    if (op <= CU_OP_p_all) {
        EACH_V8(k)
            votes |= sign_bits8((v8)(a->v[k] != 0)) << (8 * k);
        votes &= w->mask;
        v = op == CU_OP_p_ballot ? votes : op == CU_OP_p_any ? votes != 0 : votes == w->mask;
    } else {
        v = a->i[cu_first_lane(w->mask)];
        for (uint32_t m = w->mask & (w->mask - 1); m; m &= m - 1)
            v = reduce_value(op, v, a->i[cu_first_lane(m)]);
    }
    EACH_V8(k)
        put_x(w, u->rd, k, splat(v), partial);
    return next_of(u);
}

INLINE const struct cu_uop *pfwarp(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    union cu_freg temp, r;
    const struct cu_uop *next;

    if (w->cohorts && !cu_path_gather(w, u, &next))
        return next;
    const union cu_freg *a = f32_source(w, u->rs1, &temp);

    if (op <= CU_OP_p_fshfl_xor) {
        for (unsigned l = 0; l < CU_LANES; l++)
            r.w[l] = a->w[shuffle_lane(op - CU_OP_p_fshfl + 3, l, w->x[u->rs2].u[l], w->mask)];
    } else {
        union { uint32_t w; float f; } v = { a->w[cu_first_lane(w->mask)] };

        for (uint32_t m = w->mask & (w->mask - 1); m; m &= m - 1) {
            if (op == CU_OP_p_fred_add)
                v.f += a->s[cu_first_lane(m)];
            else
                v.w = cu_minmax32(w, v.w, a->w[cu_first_lane(m)], op == CU_OP_p_fred_max);
        }
        r.wv[0] = splat_w(v.f == v.f ? (int32_t)v.w : 0x7fc00000);
        r.wv[1] = r.wv[0];
    }
    put_f(w, u->rd, &r, true, partial);
    return next_of(u);
}

INLINE const struct cu_uop *pmath(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    union cu_freg temp, r = { 0 };
    const union cu_freg *a = f32_source(w, u->rs1, &temp);

    for (uint32_t m = w->mask; m; m &= m - 1)
        r.s[cu_first_lane(m)] = cu_special(op, a->s[cu_first_lane(m)]);
    put_f(w, u->rd, &r, true, partial);
    return next_of(u);
}

#endif
