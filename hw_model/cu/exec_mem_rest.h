/* SPDX-License-Identifier: MIT */
/* exec_mem_rest.h - loads and stores out of line: whatever is no row of one page and no common address of all lanes. */
#ifndef HW_CU_EXEC_MEM_REST_H
#define HW_CU_EXEC_MEM_REST_H

/*
 * The operation is the micro-op's, lanes are the warp's: one function each for all loads and for all stores. Cycles do not depend on
 * whether an access came here or not: a row costs what it costs on its fast path.
 */

INLINE uint32_t access_time(struct cu_warp *w, uint64_t first, uint64_t last, bool write, bool system)
{
    return CU_EXEC_TIMED ? cu_mem_time(w, first, last, write, system) : 0;
}

INLINE uint32_t access_time_lanes(struct cu_warp *w, const uint64_t *va, bool write)
{
    return CU_EXEC_TIMED ? cu_mem_time_lanes(w, va, write) : 0;
}

/* A run of bytes that one lookup covers. */
struct run {
    uint64_t va, size_B;
    uint8_t *host;
    bool system;
};

/* The run around va, from the TLB, the page tables or local memory; size_B 0: none, go lane by lane. */
INLINE struct run run_at(struct cu_warp *w, uint64_t va, uint32_t rights)
{
    const struct cu_tlb_entry *e = &w->cu->tlb[va >> PETREL_PAGE_SHIFT & (CU_TLB_ENTRIES - 1)];
    const struct cu_tlb_entry *huge = &w->cu->tlb_huge[va >> PETREL_HUGE_SHIFT & (CU_TLB_HUGE - 1)];
    uint64_t local = va - PETREL_LOCAL_BASE;

    e = va - huge->va < huge->size_B ? huge : e;
    if (LIKELY(va - e->va < e->size_B && (e->rights & rights)))
        return (struct run){ e->va, e->size_B, e->host, e->system };
    if (local < w->cu->array->d.local_B)
        return (struct run){ PETREL_LOCAL_BASE, w->cu->array->d.local_B, w->group->local, false };
    if (va < PETREL_VA_USER_END) {
        uint32_t fault;

        e = cu_tlb_fill(w->cu, va, rights == PETREL_PTE_READ ? PETREL_ACCESS_READ : PETREL_ACCESS_WRITE, &fault);
        if (e)
            return (struct run){ e->va, e->size_B, e->host, e->system };
    }
    return (struct run){ 0 };
}

struct access {
    union cu_xreg va;
    uint64_t base;        /* address of the first active lane */
    unsigned first, last; /* active lanes */
};

INLINE void access_of(const struct cu_warp *w, const struct cu_uop *u, struct access *a)
{
    const union cu_xreg *x = &w->x[u->rs1];
    const v8 imm = splat(u->imm);

    a->first = cu_first_lane(w->mask);
    a->last = last_lane(w->mask);
    EACH_V8(k)
        a->va.v[k] = plus(x->v[k], imm);
    a->base = a->va.u[a->first];
}

/* Does each active lane's access lie step_B behind that of the lane before it? */
INLINE bool is_row_of(const struct cu_warp *w, const struct access *a, uint64_t step_B)
{
    const v8 start = splat((int64_t)(a->base - a->first * step_B)), step = splat((int64_t)step_B);
    uint32_t off = 0;

    EACH_V8(k)
        off |= sign_bits8((v8)(a->va.v[k] != plus(start, (v8)((u8v)lane_numbers(k) * (u8v)step)))) << (8 * k);
    return !(off & w->mask);
}

/* Cycles of an access by way of the cache: of a row, of one address, of what each lane needs. */
INLINE uint32_t spread_time(struct cu_warp *w, const struct access *a, unsigned size_B, bool write, bool system)
{
    if (!CU_EXEC_TIMED)
        return 0;
    if (is_row_of(w, a, size_B))
        return cu_mem_time(w, a->base, a->base + (uint64_t)(a->last - a->first + 1) * size_B - 1, write, system);
    if (!write && is_row_of(w, a, 0))
        return cu_mem_time(w, a->base, a->base + size_B - 1, false, system);
    return !write && system ? w->cu->array->config.lat_link : cu_mem_time_lanes(w, a->va.u, write);
}

/* Lanes whose access lies in the run whole. */
INLINE uint32_t lanes_in_run(const struct access *a, const struct run *r, unsigned size_B)
{
    uint32_t in = 0;

    if (r->size_B < size_B)
        return 0;
    EACH_V8(k)
        in |= sign_bits8((v8)((u8v)a->va.v[k] - (u8v)splat((int64_t)r->va) <= (u8v)splat((int64_t)(r->size_B - size_B)))) << (8 * k);
    return in;
}

/* ---- Private memory ---- */

/*
 * Lanes' private memory lies interleaved, so that the same place of all stacks is a row of 256 bytes. The row, where all lanes access the
 * same place of their own, within its 8 bytes; else NULL.
 */
INLINE v8_mem *private_row(const struct cu_warp *w, const struct access *a, unsigned size_B)
{
    const struct hw_cu_config *c = &w->cu->array->config;
    uint64_t place = (uint64_t)(w->cu->index * c->warps_per_cu + w->slot) * CU_LANES * c->private_B;
    uint64_t off = a->base - (uint64_t)a->first * c->private_B - PETREL_PRIVATE_BASE - place;

    if (LIKELY(a->base < PETREL_PRIVATE_BASE) || off >= c->private_B || off % 8 + size_B > 8 || !c->scratch || !is_row_of(w, a, c->private_B))
        return NULL;
    return (v8_mem *)(c->scratch + place + off / 8 * sizeof(union cu_xreg));
}

INLINE uint32_t row_time(const struct cu_warp *w)
{
    return w->cu->array->config.lat_l1 + w->active - 1;
}

/* The low bytes at `shift` of each element, extended as op says. */
INLINE v8 extend_eight(unsigned op, v8 v, unsigned shift)
{
    const unsigned above = 64 - 8 * access_size(op);

    v = (v8)((u8v)v << (above - shift));
    return op == CU_OP_lb || op == CU_OP_lh || op == CU_OP_lw ? v >> above : (v8)((u8v)v >> above);
}

INLINE void load_private(unsigned op, const v8_mem *row, unsigned shift, union cu_xreg *out)
{
    EACH_V8(k)
        out->v[k] = extend_eight(op, row[k], shift);
}

INLINE void store_private(const struct cu_warp *w, unsigned size_B, v8_mem *row, unsigned shift, const uint64_t *values)
{
    const v8 bytes = splat((int64_t)(UINT64_MAX >> (64 - 8 * size_B) << shift));
    const bool partial = w->partial;

    EACH_V8(k) {
        v8 m = partial ? bytes & w->m64[k] : bytes;

        row[k] = (row[k] & ~m) | ((v8)((u8v)((const v8_mem *)values)[k] << shift) & m);
    }
}

/* ---- Loads ---- */

/* Gather of some lanes within a run, into 64-bit values extended as op says. Other lanes are not read. */
INLINE void gather(unsigned op, const struct access *a, const struct run *r, uint32_t lanes, union cu_xreg *out)
{
#if CU_EXEC_AVX512
    if (access_size(op) >= 4) {
        EACH_V8(k) {
            __m512i off = (__m512i)((u8v)a->va.v[k] - (u8v)splat((int64_t)r->va)), was = (__m512i)out->v[k];
            __mmask8 m = (__mmask8)(lanes >> (8 * k));
            __m256i half;

            if (access_size(op) == 8) {
                out->v[k] = (v8)_mm512_mask_i64gather_epi64(was, m, off, r->host, 1);
                continue;
            }
            half = _mm512_mask_i64gather_epi32(_mm256_setzero_si256(), m, off, r->host, 1);
            out->v[k] = (v8)(op == CU_OP_lw ? _mm512_mask_cvtepi32_epi64(was, m, half) : _mm512_mask_cvtepu32_epi64(was, m, half));
        }
        return;
    }
#endif
    for (uint32_t m = lanes; m; m &= m - 1) {
        unsigned l = cu_first_lane(m);

        out->i[l] = load_one(op, r->host + (a->va.u[l] - r->va));
    }
}

/* The loads of integers; the others are like one of these. */
#define EACH_LOAD(LOAD) LOAD(lb) LOAD(lbu) LOAD(lh) LOAD(lhu) LOAD(lw) LOAD(lwu) LOAD(ld)

INLINE unsigned integer_load(unsigned op)
{
    return op == CU_OP_flh ? CU_OP_lhu : op == CU_OP_flw ? CU_OP_lwu : op == CU_OP_fld ? CU_OP_ld : op;
}

OUT_OF_LINE void gather_by_op(unsigned op, const struct access *a, const struct run *r, uint32_t lanes, union cu_xreg *out)
{
    switch (op) {
#define LOAD(op_) case CU_OP_##op_: gather(CU_OP_##op_, a, r, lanes, out); break;
    EACH_LOAD(LOAD)
#undef LOAD
    }
}

/* From a row whose first byte of lane 0 is at `row`. */
OUT_OF_LINE void load_row_by_op(unsigned op, const uint8_t *row, uint32_t lanes, union cu_xreg *out)
{
    switch (op) {
#define LOAD(op_) case CU_OP_##op_: EACH_V8(k) out->v[k] = load_some(CU_OP_##op_, out->v[k], lanes >> (8 * k), row + k * 8 * access_size(CU_OP_##op_)); break;
    EACH_LOAD(LOAD)
#undef LOAD
    }
}

OUT_OF_LINE void load_private_by_op(unsigned op, const v8_mem *row, unsigned shift, union cu_xreg *out)
{
    switch (op) {
#define LOAD(op_) case CU_OP_##op_: load_private(CU_OP_##op_, row, shift, out); break;
    EACH_LOAD(LOAD)
#undef LOAD
    }
}

/* Gather over several runs, one after the other. False: some lane's access needs the long way. */
INLINE bool gather_runs(struct cu_warp *w, unsigned op, const struct access *a, union cu_xreg *out)
{
    uint32_t left = w->mask;

    while (left) {
        unsigned l = cu_first_lane(left);
        struct run r = run_at(w, a->va.u[l], PETREL_PTE_READ);
        uint32_t in = lanes_in_run(a, &r, access_size(op)) & left;

        if (!(in >> l & 1) || r.system)
            return false;
        gather_by_op(op, a, &r, in, out);
        left &= ~in;
    }
    return true;
}

INLINE void load_done(struct cu_warp *w, const struct cu_uop *u, uint32_t cycles)
{
    if (CU_EXEC_TIMED)
        w->ready[u->d] = w->now + cycles;
}

/* Loads of any shape as 64-bit values in active lanes of *out. False: faulted. */
OUT_OF_LINE bool load_lanes(struct cu_warp *w, const struct cu_uop *u, union cu_xreg *out)
{
    const unsigned op = integer_load(u->op), size_B = access_size(op);
    struct access a;
    const v8_mem *row;
    struct run r;

    access_of(w, u, &a);
    row = private_row(w, &a, size_B);
    if (row) {
        load_private_by_op(op, row, a.base % 8 * 8, out);
        load_done(w, u, row_time(w));
        return true;
    }
    r = run_at(w, a.base, PETREL_PTE_READ);
    if (w->mask != CU_ALL)
        memset(out, 0, sizeof(*out));
    if (LIKELY((lanes_in_run(&a, &r, size_B) & w->mask) == w->mask)) {
        if (CU_EXEC_AVX512 && is_row_of(w, &a, size_B))
            load_row_by_op(op, r.host + (a.base - r.va) - (uint64_t)a.first * size_B, w->mask, out);
        else
            gather_by_op(op, &a, &r, w->mask, out);
        load_done(w, u, spread_time(w, &a, size_B, false, r.system));
        return true;
    }
    if (!gather_runs(w, op, &a, out)) {
        if (!cu_mem_lanes(w, u, a.va.u, size_B, out->u, false))
            return false;
        for (uint32_t m = w->mask; m; m &= m - 1)
            out->i[cu_first_lane(m)] = load_one(op, (const uint8_t *)&out->u[cu_first_lane(m)]);
    }
    load_done(w, u, access_time_lanes(w, a.va.u, false));
    return true;
}

OUT_OF_LINE const struct cu_uop *load_rest(struct cu_warp *w, const struct cu_uop *u)
{
    union cu_xreg out;

    if (!load_lanes(w, u, &out))
        return NULL;
    put_lanes(w, u->rd, &out, w->partial);
    return next_of(u);
}

OUT_OF_LINE const struct cu_uop *fload_rest(struct cu_warp *w, const struct cu_uop *u)
{
    const uint32_t box = u->op == CU_OP_flh ? 0xffff0000u : 0; /* halves, too, lie in 32 bits */
    union cu_xreg out;
    union cu_freg f;

    if (!load_lanes(w, u, &out))
        return NULL;
    if (u->op == CU_OP_fld) {
        put_f(w, u->rd, (const union cu_freg *)&out, false, w->partial);
        return next_of(u);
    }
    for (unsigned l = 0; l < CU_LANES; l++)
        f.w[l] = (uint32_t)out.u[l] | box;
    put_f(w, u->rd, &f, true, w->partial);
    return next_of(u);
}

/* ---- Stores ---- */

/* Low bytes of the lanes' values, in lane order, so that the highest lane wins. */
INLINE void scatter(struct cu_warp *w, unsigned size_B, const struct access *a, const struct run *r, const uint64_t *values)
{
    for (uint32_t m = w->mask; m; m &= m - 1) {
        unsigned l = cu_first_lane(m);
        uint8_t *p = r->host + (a->va.u[l] - r->va);

        memcpy(p, &values[l], size_B);
        if (UNLIKELY(cu_resv_any(w->cu->array)))
            cu_resv_written(w->cu->array, p, size_B);
    }
}

OUT_OF_LINE void scatter_by_size(struct cu_warp *w, unsigned size_B, const struct access *a, const struct run *r, const uint64_t *values)
{
    switch (size_B) {
    case 1: scatter(w, 1, a, r, values); break;
    case 2: scatter(w, 2, a, r, values); break;
    case 4: scatter(w, 4, a, r, values); break;
    default: scatter(w, 8, a, r, values); break;
    }
}

/* Of 64-bit lane values the low bytes. */
OUT_OF_LINE const struct cu_uop *store_lanes(struct cu_warp *w, const struct cu_uop *u, const uint64_t *values)
{
    const unsigned size_B = access_size(u->op);
    uint64_t data[CU_LANES];
    struct access a;
    struct run r;
    v8_mem *row;

    access_of(w, u, &a);
    row = private_row(w, &a, size_B);
    if (row && LIKELY(!cu_resv_any(w->cu->array))) {
        store_private(w, size_B, row, a.base % 8 * 8, values);
        return next_of(u);
    }
    r = run_at(w, a.base, PETREL_PTE_WRITE);
    if (LIKELY((lanes_in_run(&a, &r, size_B) & w->mask) == w->mask)) {
        scatter_by_size(w, size_B, &a, &r, values);
        spread_time(w, &a, size_B, true, r.system);
        return next_of(u);
    }
    memcpy(data, values, sizeof(data));
    if (!cu_mem_lanes(w, u, a.va.u, size_B, data, true))
        return NULL;
    access_time_lanes(w, a.va.u, true);
    return next_of(u);
}

OUT_OF_LINE const struct cu_uop *store_rest(struct cu_warp *w, const struct cu_uop *u)
{
    return store_lanes(w, u, w->x[u->rs2].u);
}

/* fsw and fsh store the low bits as they are, boxed or not. */
OUT_OF_LINE const struct cu_uop *fstore_rest(struct cu_warp *w, const struct cu_uop *u)
{
    uint64_t values[CU_LANES];

    cu_f64_read(w, u->rs2, values);
    return store_lanes(w, u, values);
}

#endif
