/* SPDX-License-Identifier: MIT */
/* exec_mem.h - handlers of loads and stores: a row of one page and one address for all; exec_mem_rest.h has the rest. */
#ifndef HW_CU_EXEC_MEM_H
#define HW_CU_EXEC_MEM_H

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

/* ---- Rows ---- */

/* Eight lanes' values from p on, extended as op says. */
INLINE v8 load_eight(unsigned op, const uint8_t *p, unsigned k)
{
    v8 r;

    p += k * 8 * access_size(op);
    switch (op) {
    case CU_OP_ld: return *(const v8_mem *)p;
#if CU_EXEC_AVX512
    case CU_OP_lw: return (v8)_mm512_cvtepi32_epi64(_mm256_loadu_si256((const __m256i_u *)p));
    case CU_OP_lwu: return (v8)_mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i_u *)p));
    case CU_OP_lb: return (v8)_mm512_cvtepi8_epi64(_mm_loadl_epi64((const __m128i_u *)p));
    case CU_OP_lbu: return (v8)_mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i_u *)p));
    case CU_OP_lh: return (v8)_mm512_cvtepi16_epi64(_mm_loadu_si128((const __m128i_u *)p));
    case CU_OP_lhu: return (v8)_mm512_cvtepu16_epi64(_mm_loadu_si128((const __m128i_u *)p));
#else
    case CU_OP_lw: return __builtin_convertvector(*(const i8w_mem *)p, v8);
    case CU_OP_lwu: return (v8)__builtin_convertvector(*(const u8w_mem *)p, u8v);
#endif
    default: break;
    }
    for (unsigned i = 0; i < 8; i++)
        r[i] = load_one(op, p + i * access_size(op));
    return r;
}

/* Of the active ones of eight lanes; bytes of others are not touched. Without such loads no partial row comes here. */
INLINE v8 load_some(unsigned op, v8 was, uint32_t lanes, const uint8_t *p)
{
#if CU_EXEC_AVX512
    const __mmask8 m = (__mmask8)lanes;

    switch (op) {
    case CU_OP_lb: return (v8)_mm512_mask_cvtepi8_epi64((__m512i)was, m, _mm_maskz_loadu_epi8(m, p));
    case CU_OP_lbu: return (v8)_mm512_mask_cvtepu8_epi64((__m512i)was, m, _mm_maskz_loadu_epi8(m, p));
    case CU_OP_lh: return (v8)_mm512_mask_cvtepi16_epi64((__m512i)was, m, _mm_maskz_loadu_epi16(m, p));
    case CU_OP_lhu: return (v8)_mm512_mask_cvtepu16_epi64((__m512i)was, m, _mm_maskz_loadu_epi16(m, p));
    case CU_OP_lw: return (v8)_mm512_mask_cvtepi32_epi64((__m512i)was, m, _mm256_maskz_loadu_epi32(m, p));
    case CU_OP_lwu: return (v8)_mm512_mask_cvtepu32_epi64((__m512i)was, m, _mm256_maskz_loadu_epi32(m, p));
    default: return (v8)_mm512_mask_loadu_epi64((__m512i)was, m, p);
    }
#else
    return was;
#endif
}

INLINE void store_eight(unsigned size_B, uint8_t *p, v8 v)
{
#if CU_EXEC_AVX512
    if (size_B == 1)
        _mm_storel_epi64((__m128i_u *)p, _mm512_cvtepi64_epi8((__m512i)v));
    if (size_B == 2)
        _mm_storeu_si128((__m128i_u *)p, _mm512_cvtepi64_epi16((__m512i)v));
    if (size_B == 4)
        _mm256_storeu_si256((__m256i_u *)p, _mm512_cvtepi64_epi32((__m512i)v));
#else
    if (size_B == 4)
        *(i8w_mem *)p = __builtin_convertvector(v, i8w);
#endif
    if (size_B == 8)
        *(v8_mem *)p = v;
}

INLINE void store_some(unsigned size_B, uint8_t *p, v8 v, uint32_t lanes)
{
#if CU_EXEC_AVX512
    const __mmask8 m = (__mmask8)lanes;

    switch (size_B) {
    case 1: _mm_mask_storeu_epi8(p, m, _mm512_cvtepi64_epi8((__m512i)v)); break;
    case 2: _mm_mask_storeu_epi16(p, m, _mm512_cvtepi64_epi16((__m512i)v)); break;
    case 4: _mm256_mask_storeu_epi32(p, m, _mm512_cvtepi64_epi32((__m512i)v)); break;
    default: _mm512_mask_storeu_epi64(p, m, (__m512i)v); break;
    }
#endif
}

#include "exec_mem_rest.h"

/* ---- Shapes ---- */

enum shape { SHAPE_ROW, SHAPE_UNIFORM, SHAPE_ANY };

/* A base register: all lanes', and by themselves those of the first two active lanes, which tell what to ask of all. */
struct base {
    v8 v[4];
    uint64_t va[2];
    unsigned lane[2];
};

INLINE struct base base_of(const struct cu_warp *w, unsigned rs1, bool partial)
{
    const union cu_xreg *x = &w->x[rs1];
    const uint32_t others = partial ? w->mask & (w->mask - 1) : 0;
    struct base b = { .v = { x->v[0], x->v[1], x->v[2], x->v[3] } };

    b.lane[0] = partial ? cu_first_lane(w->mask) : 0;
    b.lane[1] = partial ? others ? cu_first_lane(others) : b.lane[0] : 1;
    b.va[0] = x->u[b.lane[0]];
    b.va[1] = x->u[b.lane[1]];
    return b;
}

/* Without the offset, which is the same for all. */
INLINE enum shape suggested_shape(const struct base *b, unsigned size_B)
{
    const uint64_t distance = b->va[1] - b->va[0];

    if (LIKELY(distance == (uint64_t)(b->lane[1] - b->lane[0]) * size_B)) /* one lane alone is a row */
        return SHAPE_ROW;
    return distance ? SHAPE_ANY : SHAPE_UNIFORM;
}

/* Do all active lanes lie step_B behind the one before? */
INLINE bool is_row(const struct cu_warp *w, const struct base *b, unsigned step_B, bool partial)
{
    const v8 start = splat((int64_t)(b->va[0] - (uint64_t)b->lane[0] * step_B));
    v8 off = { 0 };

    EACH_V8(k) {
        v8 d = b->v[k] ^ plus(start, lane_numbers(k) * step_B);

        off |= partial ? d & w->m64[k] : d;
    }
    return !any_bit8(off);
}

/* Where the first look finds span_B bytes, no more than a row; NULL: it does not. */
INLINE uint8_t *near_host(const struct cu_warp *w, uint64_t va, uint64_t span_B, uint32_t rights, bool *system_out)
{
    const struct hw_cu *cu = w->cu;
    const struct cu_tlb_entry *e = &cu->tlb_huge[va >> PETREL_HUGE_SHIFT & (CU_TLB_HUGE - 1)];
    uint64_t off = va - e->va;

    if (LIKELY(off <= e->size_B - span_B) && LIKELY(e->rights & rights)) { /* an empty entry gives no rights */
        *system_out = e->system;
        return e->host + off;
    }
    e = &cu->tlb[va >> PETREL_PAGE_SHIFT & (CU_TLB_ENTRIES - 1)];
    off = va - e->va;
    *system_out = e->system;
    if (LIKELY(off <= e->size_B - span_B) && LIKELY(e->rights & rights))
        return e->host + off;
    off = va - PETREL_LOCAL_BASE;
    *system_out = false;
    return off < cu->array->d.local_B && cu->array->d.local_B - off >= span_B ? w->group->local + off : NULL;
}

/* ---- Handlers ---- */

/* An access's place: of a row from the first active lane to the last, or of one address. */
struct place {
    uint64_t va, span_B;
    uint8_t *host;  /* NULL: out of line */
    uint8_t *row;   /* of lane 0, were it active; where there is host */
    bool system;
};

/* Of what is suggested to be `shape`. */
INLINE struct place place_of(const struct cu_warp *w, const struct base *b, int64_t offset, unsigned size_B, enum shape shape, bool partial, bool write)
{
    struct place p = { .va = b->va[0] + (uint64_t)offset, .span_B = size_B };

    if (UNLIKELY(!is_row(w, b, shape == SHAPE_ROW ? size_B : 0, partial)))
        return p;
    if (shape == SHAPE_ROW)
        p.span_B = partial ? (uint64_t)(last_lane(w->mask) - b->lane[0] + 1) * size_B : CU_LANES * size_B;
    p.host = near_host(w, p.va, p.span_B, write ? PETREL_PTE_WRITE : PETREL_PTE_READ, &p.system);
    if (LIKELY(p.host))
        p.row = p.host - (uint64_t)b->lane[0] * size_B;
    return p;
}

/* Workgroups mostly work on consecutive pieces: what the next warp will ask for comes closer. No address is wrong for that. */
INLINE void expect_next(const uint8_t *host, unsigned size_B, bool write)
{
    for (unsigned line = 0; line < (CU_LANES * size_B + 63) / 64; line++) {
        if (write)
            __builtin_prefetch(host + CU_LANES * size_B + 64 * line, 1);
        else
            __builtin_prefetch(host + CU_LANES * size_B + 64 * line);
    }
}

OUT_OF_LINE const struct cu_uop *load_timed(struct cu_warp *w, const struct cu_uop *u, uint64_t va, uint64_t span_B, bool system)
{
    w->ready[u->d] = w->now + cu_mem_time(w, va, va + span_B - 1, false, system);
    return next_of(u);
}

INLINE const struct cu_uop *loaded(struct cu_warp *w, const struct cu_uop *u, const struct place *p)
{
    return CU_EXEC_TIMED ? load_timed(w, u, p->va, p->span_B, p->system) : next_of(u);
}

INLINE void load_row(const struct cu_warp *w, unsigned op, union cu_xreg *d, const uint8_t *row, bool partial)
{
    EACH_V8(k)
        d->v[k] = partial ? load_some(op, d->v[k], w->mask >> (8 * k), row + k * 8 * access_size(op)) : load_eight(op, row, k);
}

INLINE const struct cu_uop *load_at(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial, const struct base *b)
{
    const unsigned size_B = access_size(op), rd = u->rd;
    const enum shape shape = suggested_shape(b, size_B);
    struct place p;

    if (LIKELY(shape == SHAPE_ROW) && (CU_EXEC_AVX512 || !partial)) {
        p = place_of(w, b, u->imm, size_B, SHAPE_ROW, partial, false);
        if (UNLIKELY(!p.host))
            return load_rest(w, u);
        if (!partial)
            expect_next(p.host, size_B, false);
        load_row(w, op, &w->x[rd], p.row, partial);
        return loaded(w, u, &p);
    }
    if (shape == SHAPE_UNIFORM) {
        p = place_of(w, b, u->imm, size_B, SHAPE_UNIFORM, partial, false);
        if (UNLIKELY(!p.host))
            return load_rest(w, u);
        const v8 v = splat(load_one(op, p.host));

        EACH_V8(k)
            put_x(w, rd, k, v, partial);
        return loaded(w, u, &p);
    }
    return load_rest(w, u);
}

INLINE const struct cu_uop *load(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    const struct base b = base_of(w, u->rs1, partial);

    return load_at(w, u, op, partial, &b);
}

/* Singles' and doubles' bits as they lie in memory. */
INLINE void fload_row(struct cu_warp *w, union cu_freg *d, const uint8_t *row, bool single, bool partial)
{
    if (!partial) {
        memcpy(d, row, CU_LANES * (single ? 4 : 8));
        return;
    }
#if CU_EXEC_AVX512
    for (unsigned k = 0; k < 2 && single; k++)
        d->wv[k] = (i16v)_mm512_mask_loadu_epi32((__m512i)d->wv[k], (__mmask16)(w->mask >> (16 * k)), row + 64 * k);
    for (unsigned k = 0; k < 4 && !single; k++)
        d->qv[k] = (v8)_mm512_mask_loadu_epi64((__m512i)d->qv[k], (__mmask8)(w->mask >> (8 * k)), row + 64 * k);
#endif
}

INLINE void fload_uniform(struct cu_warp *w, union cu_freg *d, int64_t value, bool single, bool partial)
{
    const i16v s = splat_w((int32_t)value);
    const v8 q = splat(value);

    for (unsigned k = 0; k < 2 && single; k++)
        keep32(w, d, k, (f16v)s, partial);
    for (unsigned k = 0; k < 4 && !single; k++)
        keep64(w, d, k, (d8)q, partial);
}

INLINE const struct cu_uop *fload_at(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial, const struct base *b)
{
    const bool single = op == CU_OP_flw;
    const unsigned size_B = access_size(op), rd = u->rd;
    const enum shape shape = suggested_shape(b, size_B);
    struct place p;

    if (op == CU_OP_flh || shape == SHAPE_ANY || (partial && UNLIKELY((w->f_single >> rd & 1) != single)) ||
        (partial && shape == SHAPE_ROW && !CU_EXEC_AVX512))
        return fload_rest(w, u);
    if (LIKELY(shape == SHAPE_ROW)) {
        p = place_of(w, b, u->imm, size_B, SHAPE_ROW, partial, false);
        if (UNLIKELY(!p.host))
            return fload_rest(w, u);
        if (!partial)
            expect_next(p.host, size_B, false);
        fload_row(w, &w->f[rd], p.row, single, partial);
    } else {
        p = place_of(w, b, u->imm, size_B, SHAPE_UNIFORM, partial, false);
        if (UNLIKELY(!p.host))
            return fload_rest(w, u);
        fload_uniform(w, &w->f[rd], load_one(op, p.host), single, partial);
    }
    w->f_single = single ? w->f_single | 1u << rd : w->f_single & ~(1u << rd);
    return loaded(w, u, &p);
}

INLINE const struct cu_uop *fload(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    const struct base b = base_of(w, u->rs1, partial);

    return fload_at(w, u, op, partial, &b);
}

/* Reservations of lr on the bytes end, and on no byte between those of active lanes. host: of the first of these. */
OUT_OF_LINE const struct cu_uop *stored_on_reserved(struct cu_warp *w, const struct cu_uop *u, uint64_t va, uint64_t span_B, bool system,
                                                    const uint8_t *host)
{
    const unsigned size_B = access_size(u->op);

    if (!w->partial)
        cu_resv_written(w->cu->array, host, span_B);
    for (uint32_t m = w->partial ? w->mask >> __builtin_ctz(w->mask) : 0; m; m &= m - 1)
        cu_resv_written(w->cu->array, host + (unsigned)__builtin_ctz(m) * size_B, size_B);
    access_time(w, va, va + span_B - 1, true, system);
    return next_of(u);
}

OUT_OF_LINE const struct cu_uop *store_timed(struct cu_warp *w, const struct cu_uop *u, uint64_t va, uint64_t span_B, bool system)
{
    cu_mem_time(w, va, va + span_B - 1, true, system);
    return next_of(u);
}

INLINE const struct cu_uop *stored(struct cu_warp *w, const struct cu_uop *u, const struct place *p)
{
    if (UNLIKELY(cu_resv_any(w->cu->array)))
        return stored_on_reserved(w, u, p->va, p->span_B, p->system, p->host);
    return CU_EXEC_TIMED ? store_timed(w, u, p->va, p->span_B, p->system) : next_of(u);
}

INLINE const struct cu_uop *store_at(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial, const struct base *b)
{
    const unsigned size_B = access_size(op);
    const union cu_xreg *s = &w->x[u->rs2];
    struct place p;

    if ((!CU_EXEC_AVX512 && (partial || size_B < 4)) || suggested_shape(b, size_B) != SHAPE_ROW)
        return store_rest(w, u);
    p = place_of(w, b, u->imm, size_B, SHAPE_ROW, partial, true);
    if (UNLIKELY(!p.host))
        return store_rest(w, u);
    if (!partial)
        expect_next(p.host, size_B, true);
    EACH_V8(k) {
        if (partial)
            store_some(size_B, p.row + k * 8 * size_B, s->v[k], w->mask >> (8 * k));
        else
            store_eight(size_B, p.row + k * 8 * size_B, s->v[k]);
    }
    return stored(w, u, &p);
}

INLINE const struct cu_uop *store(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    const struct base b = base_of(w, u->rs1, partial);

    return store_at(w, u, op, partial, &b);
}

INLINE const struct cu_uop *fstore_at(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial, const struct base *b)
{
    const bool single = op == CU_OP_fsw;
    const unsigned size_B = access_size(op), rs2 = u->rs2;
    const union cu_freg *s = &w->f[rs2];
    struct place p;

    if (op == CU_OP_fsh || (partial && !CU_EXEC_AVX512) || UNLIKELY((w->f_single >> rs2 & 1) != single) ||
        suggested_shape(b, size_B) != SHAPE_ROW)
        return fstore_rest(w, u);
    p = place_of(w, b, u->imm, size_B, SHAPE_ROW, partial, true);
    if (UNLIKELY(!p.host))
        return fstore_rest(w, u);
    if (!partial) {
        expect_next(p.host, size_B, true);
        memcpy(p.row, s, CU_LANES * size_B);
    }
#if CU_EXEC_AVX512
    for (unsigned k = 0; k < 2 && partial && single; k++)
        _mm512_mask_storeu_epi32(p.row + 64 * k, (__mmask16)(w->mask >> (16 * k)), (__m512i)s->wv[k]);
    for (unsigned k = 0; k < 4 && partial && !single; k++)
        _mm512_mask_storeu_epi64(p.row + 64 * k, (__mmask8)(w->mask >> (8 * k)), (__m512i)s->qv[k]);
#endif
    return stored(w, u, &p);
}

INLINE const struct cu_uop *fstore(struct cu_warp *w, const struct cu_uop *u, unsigned op, bool partial)
{
    const struct base b = base_of(w, u->rs1, partial);

    return fstore_at(w, u, op, partial, &b);
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
