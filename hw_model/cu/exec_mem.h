/* SPDX-License-Identifier: MIT */
/* exec_mem.h - handlers of loads and stores: contiguous, uniform, one page, and at last lane by lane. */
#ifndef HW_CU_EXEC_MEM_H
#define HW_CU_EXEC_MEM_H

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
    uint64_t local = va - PETREL_LOCAL_BASE;

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

INLINE bool run_holds(const struct run *r, uint64_t va, uint64_t size_B)
{
    return r->size_B >= size_B && va - r->va <= r->size_B - size_B;
}

enum shape { SHAPE_CONTIGUOUS, SHAPE_UNIFORM, SHAPE_ANY };

struct access {
    union cu_xreg va;
    uint64_t base;        /* address of the first active lane */
    unsigned first, last; /* active lanes */
};

INLINE enum shape classify_access(struct cu_warp *w, const struct cu_uop *u, unsigned size_B, bool partial, struct access *a)
{
    v8 stride = { 0 }, same = { 0 };
    int64_t start;

    a->first = partial ? cu_first_lane(w->mask) : 0;
    a->last = partial ? last_lane(w->mask) : CU_LANES - 1;
    EACH_V8(k)
        a->va.v[k] = plus(w->x[u->rs1].v[k], splat(u->imm));
    a->base = w->x[u->rs1].u[a->first] + (uint64_t)u->imm;
    start = (int64_t)(a->base - (uint64_t)a->first * size_B);
    EACH_V8(k) {
        v8 s = a->va.v[k] ^ plus(splat(start), lane_numbers(k) * size_B), e = a->va.v[k] ^ splat((int64_t)a->base);

        stride |= partial ? s & w->m64[k] : s;
        same |= partial ? e & w->m64[k] : e;
    }
    if (!any_bit8(stride))
        return SHAPE_CONTIGUOUS;
    return any_bit8(same) ? SHAPE_ANY : SHAPE_UNIFORM;
}

INLINE bool all_in_run(struct cu_warp *w, const struct access *a, const struct run *r, unsigned size_B, bool partial)
{
    v8 out = { 0 };

    if (r->size_B < size_B)
        return false;
    EACH_V8(k) {
        v8 bad = (v8)((u8v)a->va.v[k] - (u8v)splat((int64_t)r->va) > (u8v)splat((int64_t)(r->size_B - size_B)));

        out |= partial ? bad & w->m64[k] : bad;
    }
    return !any_bit8(out);
}

INLINE unsigned access_size(unsigned op)
{
    switch (op) {
    case CU_OP_lb: case CU_OP_lbu: case CU_OP_sb: return 1;
    case CU_OP_lh: case CU_OP_lhu: case CU_OP_sh: case CU_OP_flh: case CU_OP_fsh: return 2;
    case CU_OP_lw: case CU_OP_lwu: case CU_OP_sw: case CU_OP_flw: case CU_OP_fsw: return 4;
    default: return 8;
    }
}

INLINE int64_t load_one(unsigned op, const uint8_t *p)
{
    int64_t d;
    uint32_t wd;
    uint16_t h;

    switch (op) {
    case CU_OP_lb: return (int8_t)*p;
    case CU_OP_lbu: return *p;
    case CU_OP_lh: memcpy(&h, p, 2); return (int16_t)h;
    case CU_OP_lhu: case CU_OP_flh: memcpy(&h, p, 2); return h;
    case CU_OP_lw: memcpy(&wd, p, 4); return (int32_t)wd;
    case CU_OP_lwu: case CU_OP_flw: memcpy(&wd, p, 4); return wd;
    default: memcpy(&d, p, 8); return d;
    }
}

INLINE void store_one(unsigned size_B, uint8_t *p, uint64_t v)
{
    memcpy(p, &v, size_B);
}

/* Behind every store that does not go lane by lane through mem.c: reservations of lr on these bytes end. */
INLINE void stored(struct cu_warp *w, const uint8_t *p, uint64_t size_B)
{
    if (UNLIKELY(cu_resv_any(w->cu->array)))
        cu_resv_written(w->cu->array, p, size_B);
}

/* Sign or zero extension of what a lane-by-lane load brought. */
INLINE int64_t extend(unsigned op, uint64_t v)
{
    return load_one(op, (const uint8_t *)&v);
}

INLINE v8 load_eight(unsigned op, const uint8_t *p, unsigned k)
{
    v8 r;

    if (op == CU_OP_ld)
        return ((const v8_mem *)p)[k];
    if (op == CU_OP_lw)
        return __builtin_convertvector(((const i8w_mem *)p)[k], v8);
    if (op == CU_OP_lwu)
        return (v8)__builtin_convertvector(((const u8w_mem *)p)[k], u8v);
    for (unsigned i = 0; i < 8; i++)
        r[i] = load_one(op, p + (k * 8 + i) * access_size(op));
    return r;
}

INLINE void load_done(struct cu_warp *w, const struct cu_uop *u, uint32_t cycles)
{
    if (CU_EXEC_TIMED)
        w->ready[u->d] = w->now + cycles;
}

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

/* Lanes whose access lies in the run whole. */
INLINE uint32_t lanes_in_run(const struct access *a, const struct run *r, unsigned size_B)
{
    uint32_t in = 0;

    EACH_V8(k)
        in |= sign_bits8((v8)((u8v)a->va.v[k] - (u8v)splat((int64_t)r->va) <= (u8v)splat((int64_t)(r->size_B - size_B)))) << (8 * k);
    return in;
}

/* Gather over several runs, one after the other. False: some lane's access needs the long way. */
INLINE bool gather_runs(struct cu_warp *w, unsigned op, bool partial, const struct access *a, union cu_xreg *out)
{
    uint32_t left = partial ? w->mask : CU_ALL;

    while (left) {
        unsigned l = cu_first_lane(left);
        struct run r = run_at(w, a->va.u[l], PETREL_PTE_READ);
        uint32_t in = r.size_B < access_size(op) ? 0 : lanes_in_run(a, &r, access_size(op)) & left;

        if (!(in >> l & 1) || r.system)
            return false;
        gather(op, a, &r, in, out);
        left &= ~in;
    }
    return true;
}

/*
 * Lanes' private memory lies interleaved, so that the same place of all stacks is a row of 256 bytes. The row, where all lanes access the
 * same place of their own, within its 8 bytes; else NULL.
 */
INLINE uint8_t *private_row(struct cu_warp *w, const struct access *a, unsigned size_B, bool partial)
{
    const struct hw_cu_config *c = &w->cu->array->config;
    uint64_t place = (uint64_t)(w->cu->index * c->warps_per_cu + w->slot) * CU_LANES * c->private_B;
    uint64_t base = a->base - (uint64_t)a->first * c->private_B, off = base - PETREL_PRIVATE_BASE - place;
    v8 other = { 0 };

    if (LIKELY(a->base < PETREL_PRIVATE_BASE) || off >= c->private_B || off % 8 + size_B > 8 || !c->scratch)
        return NULL;
    EACH_V8(k) {
        v8 d = a->va.v[k] ^ plus(splat((int64_t)base), (v8)((u8v)lane_numbers(k) * c->private_B));

        other |= partial ? d & w->m64[k] : d;
    }
    return any_bit8(other) ? NULL : c->scratch + place + off / 8 * sizeof(union cu_xreg);
}

INLINE uint32_t row_time(const struct cu_warp *w)
{
    return w->cu->array->config.lat_l1 + w->active - 1;
}

/* Sign or zero extension of the low bytes, as op says. */
INLINE v8 extend_eight(unsigned op, v8 v)
{
    switch (op) {
    case CU_OP_lb: return (v8)((u8v)v << 56) >> 56;
    case CU_OP_lh: return (v8)((u8v)v << 48) >> 48;
    case CU_OP_lw: return (v8)((u8v)v << 32) >> 32;
    default: return access_size(op) == 8 ? v : v & splat((int64_t)((1ull << (8 * access_size(op) % 64)) - 1));
    }
}

INLINE bool load_private(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial, const struct access *a, union cu_xreg *out)
{
    const v8_mem *row = (const v8_mem *)private_row(w, a, access_size(op), partial);

    if (!row)
        return false;
    EACH_V8(k)
        out->v[k] = extend_eight(op, (v8)((u8v)row[k] >> (a->base % 8 * 8)));
    load_done(w, u, row_time(w));
    return true;
}

INLINE bool store_private(struct cu_warp *w, unsigned size_B, bool partial, const struct access *a, const uint64_t *values)
{
    v8_mem *row = (v8_mem *)private_row(w, a, size_B, partial);
    unsigned shift = a->base % 8 * 8;
    v8 bytes = splat((int64_t)((size_B == 8 ? UINT64_MAX : (1ull << (8 * size_B % 64)) - 1) << shift));

    if (!row || UNLIKELY(w->cu->array->resv_live))
        return false;
    EACH_V8(k) {
        v8 m = partial ? bytes & w->m64[k] : bytes;

        row[k] = (row[k] & ~m) | ((v8)((u8v)((const v8_mem *)values)[k] << shift) & m);
    }
    return true;
}

/* Loads of any shape as 64-bit values in active lanes of *out. False: faulted. */
INLINE bool load_any(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial, const struct access *a, union cu_xreg *out)
{
    struct run r;

    if (load_private(w, u, op, partial, a, out))
        return true;
    r = run_at(w, a->base, PETREL_PTE_READ);
    memset(out, 0, sizeof(*out));
    if (all_in_run(w, a, &r, access_size(op), partial)) {
        gather(op, a, &r, partial ? w->mask : CU_ALL, out);
        load_done(w, u, r.system ? w->cu->array->config.lat_link : access_time_lanes(w, a->va.u, false));
        return true;
    }
    if (gather_runs(w, op, partial, a, out)) {
        load_done(w, u, access_time_lanes(w, a->va.u, false));
        return true;
    }
    if (!cu_mem_lanes(w, u, a->va.u, access_size(op), out->u, false))
        return false;
    for (unsigned l = 0; l < CU_LANES; l++)
        out->i[l] = extend(op, out->u[l]);
    load_done(w, u, access_time_lanes(w, a->va.u, false));
    return true;
}

INLINE const struct cu_uop *load(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    unsigned size_B = access_size(op);
    struct access a;
    enum shape shape = classify_access(w, u, size_B, partial, &a);
    uint64_t span = shape == SHAPE_UNIFORM ? size_B : (uint64_t)(a.last - a.first + 1) * size_B;
    struct run r = run_at(w, a.base, PETREL_PTE_READ);
    union cu_xreg out;

    if (UNLIKELY(shape == SHAPE_ANY || !run_holds(&r, a.base, span))) {
        if (!load_any(w, u, op, partial, &a, &out))
            return NULL;
        put_lanes(w, u->rd, &out, partial);
        return next_of(u);
    }
    const uint8_t *p = r.host + (a.base - r.va);

    if (shape == SHAPE_UNIFORM) {
        v8 v = splat(load_one(op, p));

        EACH_V8(k)
            put_x(w, u->rd, k, v, partial);
    } else if (!partial) {
        EACH_V8(k)
            w->x[u->rd].v[k] = load_eight(op, p, k);
    } else {
        for (unsigned l = a.first; l <= a.last; l++)
            out.i[l] = load_one(op, p + (l - a.first) * size_B);
        for (uint32_t m = w->mask; m; m &= m - 1)
            w->x[u->rd].i[cu_first_lane(m)] = out.i[cu_first_lane(m)];
    }
    load_done(w, u, access_time(w, a.base, a.base + span - 1, false, r.system));
    return next_of(u);
}

INLINE const struct cu_uop *fload(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    bool single = op != CU_OP_fld; /* halves, too, lie in 32 bits */
    const uint32_t box = op == CU_OP_flh ? 0xffff0000u : 0;
    unsigned size_B = access_size(op);
    struct access a;
    enum shape shape = classify_access(w, u, size_B, partial, &a);
    uint64_t span = shape == SHAPE_UNIFORM ? size_B : (uint64_t)(a.last - a.first + 1) * size_B;
    struct run r = run_at(w, a.base, PETREL_PTE_READ);
    union cu_freg f;
    union cu_xreg out;

    if (UNLIKELY(shape == SHAPE_ANY || !run_holds(&r, a.base, span))) {
        if (!load_any(w, u, op, partial, &a, &out))
            return NULL;
        if (single)
            for (unsigned l = 0; l < CU_LANES; l++)
                f.w[l] = (uint32_t)out.u[l] | box;
        else
            memcpy(&f, &out, sizeof(f));
        put_f(w, u->rd, &f, single, partial);
        return next_of(u);
    }
    const uint8_t *p = r.host + (a.base - r.va);

    if (shape == SHAPE_UNIFORM) {
        int64_t v = load_one(op, p);

        if (single) {
            f.wv[0] = splat_w((int32_t)((uint32_t)v | box));
            f.wv[1] = f.wv[0];
        } else {
            EACH_V8(k)
                f.qv[k] = splat(v);
        }
    } else if (op == CU_OP_flh) {
        memset(&f, 0, sizeof(f));
        for (unsigned l = a.first; l <= a.last; l++)
            f.w[l] = (uint32_t)load_one(op, p + (l - a.first) * size_B) | box;
    } else if (!partial) {
        memcpy(&f, p, CU_LANES * size_B);
    } else {
        memcpy((uint8_t *)&f + a.first * size_B, p, (a.last - a.first + 1) * size_B);
    }
    put_f(w, u->rd, &f, single, partial);
    load_done(w, u, access_time(w, a.base, a.base + span - 1, false, r.system));
    return next_of(u);
}

/* Stores 64-bit lane values' low size_B bytes. In lane order, so the highest lane wins. */
INLINE const struct cu_uop *store_values(struct cu_warp *w, const struct cu_uop *u, unsigned size_B, bool partial, struct access *a,
                                         enum shape shape, const uint64_t *values)
{
    struct run r = run_at(w, a->base, PETREL_PTE_WRITE);
    uint64_t span = (uint64_t)(a->last - a->first + 1) * size_B, data[CU_LANES];

    if (store_private(w, size_B, partial, a, values))
        return next_of(u);
    if (LIKELY(shape == SHAPE_CONTIGUOUS && run_holds(&r, a->base, span))) {
        uint8_t *p = r.host + (a->base - r.va);

        for (uint32_t m = partial ? w->mask : CU_ALL; m; m &= m - 1) {
            unsigned l = cu_first_lane(m);

            store_one(size_B, p + (l - a->first) * size_B, values[l]);
        }
        stored(w, p, span);
        access_time(w, a->base, a->base + span - 1, true, r.system);
        return next_of(u);
    }
    if (LIKELY(all_in_run(w, a, &r, size_B, partial))) {
        for (uint32_t m = partial ? w->mask : CU_ALL; m; m &= m - 1) {
            unsigned l = cu_first_lane(m);

            store_one(size_B, r.host + (a->va.u[l] - r.va), values[l]);
            stored(w, r.host + (a->va.u[l] - r.va), size_B);
        }
    } else {
        memcpy(data, values, sizeof(data));
        if (!cu_mem_lanes(w, u, a->va.u, size_B, data, true))
            return NULL;
    }
    access_time_lanes(w, a->va.u, true);
    return next_of(u);
}

INLINE const struct cu_uop *store(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    unsigned size_B = access_size(op);
    struct access a;
    enum shape shape = classify_access(w, u, size_B, partial, &a);

    if (!partial && size_B >= 4 && LIKELY(shape == SHAPE_CONTIGUOUS)) {
        struct run r = run_at(w, a.base, PETREL_PTE_WRITE);

        if (LIKELY(run_holds(&r, a.base, CU_LANES * size_B))) {
            uint8_t *p = r.host + (a.base - r.va);

            EACH_V8(k) {
                if (size_B == 8)
                    ((v8_mem *)p)[k] = w->x[u->rs2].v[k];
                else
                    ((i8w_mem *)p)[k] = __builtin_convertvector(w->x[u->rs2].v[k], i8w);
            }
            stored(w, p, CU_LANES * size_B);
            access_time(w, a.base, a.base + CU_LANES * size_B - 1, true, r.system);
            return next_of(u);
        }
    }
    return store_values(w, u, size_B, partial, &a, shape, w->x[u->rs2].u);
}

/* fsw and fsh store the low bits as they are, boxed or not. */
INLINE const struct cu_uop *fstore(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    unsigned size_B = access_size(op);
    bool as_single = w->f_single >> u->rs2 & 1;
    struct access a;
    enum shape shape = classify_access(w, u, size_B, partial, &a);
    uint64_t values[CU_LANES];

    if (!partial && op != CU_OP_fsh && as_single == (op == CU_OP_fsw) && LIKELY(shape == SHAPE_CONTIGUOUS)) {
        struct run r = run_at(w, a.base, PETREL_PTE_WRITE);

        if (LIKELY(run_holds(&r, a.base, CU_LANES * size_B))) {
            memcpy(r.host + (a.base - r.va), &w->f[u->rs2], CU_LANES * size_B);
            stored(w, r.host + (a.base - r.va), CU_LANES * size_B);
            access_time(w, a.base, a.base + CU_LANES * size_B - 1, true, r.system);
            return next_of(u);
        }
    }
    for (unsigned l = 0; l < CU_LANES; l++)
        values[l] = as_single ? 0xffffffff00000000ull | w->f[u->rs2].w[l] : w->f[u->rs2].q[l];
    return store_values(w, u, size_B, partial, &a, shape, values);
}

INLINE const struct cu_uop *amo(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    return cu_mem_amo(w, u);
}

INLINE const struct cu_uop *pcas(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    return cu_mem_amo(w, u);
}

INLINE const struct cu_uop *pfamo(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    return cu_mem_famo(w, u);
}

#endif
