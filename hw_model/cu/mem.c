/* SPDX-License-Identifier: MIT */
/* mem.c - memory of the lanes: apertures, translation, the lane-by-lane path, atomics, cache tags and their timing. */
/*
 * Timing: per warp access the 128-byte lines it touches are looked up in L1 (stores write through and do not allocate there),
 * then L2, each four ways, least recently used out. Tags only: data always comes from memory. One line more is one cycle more.
 * DRAM bandwidth is charged per epoch in sched.c. Local memory has no bank conflicts yet.
 */
#include <assert.h>
#include <string.h>

#include "cu_priv.h"

#define LINE_SHIFT 7
#define WAYS 4u

static uint32_t rights_for(uint32_t access)
{
    return access == PETREL_ACCESS_READ ? PETREL_PTE_READ :
           access == PETREL_ACCESS_WRITE ? PETREL_PTE_WRITE : PETREL_PTE_READ | PETREL_PTE_WRITE;
}

static bool cu_image_holds(const struct hw_cu *cu, uint64_t va, uint32_t access)
{
    uint32_t need = rights_for(access);

    return va - cu->image.va < cu->image.size_B && (cu->image.rights & need) == need;
}

/* NULL and no fault: the lanes have copies of their own, found in cu->image. */
const struct cu_tlb_entry *cu_tlb_fill(struct hw_cu *cu, uint64_t va, uint32_t access, uint32_t *fault_out)
{
    struct hw_cu_array *a = cu->array;
    struct cu_tlb_entry *e = &cu->tlb[va >> PETREL_PAGE_SHIFT & (CU_TLB_ENTRIES - 1)];
    struct cu_tlb_entry *huge = &cu->tlb_huge[va >> PETREL_HUGE_SHIFT & (CU_TLB_HUGE - 1)];
    struct hw_xlat x;
    uint32_t need = access == PETREL_ACCESS_READ ? PETREL_PTE_READ : PETREL_PTE_WRITE;
    uint32_t fault;

    if (cu_image_holds(cu, va, access)) {
        *fault_out = PETREL_FAULT_NONE;
        return NULL;
    }
    if (va - huge->va < huge->size_B && (huge->rights & need) && access != PETREL_ACCESS_ATOMIC) {
        *e = *huge;
        return e;
    }
    fault = va < PETREL_VA_USER_END ? a->config.translate(a->config.translate_priv, a->root, va, access, &x)
                                             : PETREL_FAULT_PAGE;

    if (access == PETREL_ACCESS_ATOMIC)
        need |= PETREL_PTE_READ;
    if (!fault && (x.rights & need) != need)
        fault = PETREL_FAULT_ACCESS;
    if (fault) {
        *fault_out = fault;
        return NULL;
    }
    if (x.lane_stride_B) {
        cu->image = (struct cu_tlb_entry){ .va = x.page_va, .size_B = x.page_B, .host = x.host, .rights = x.rights };
        cu->image_stride_B = x.lane_stride_B;
        *fault_out = PETREL_FAULT_NONE;
        return NULL;
    }
    *e = (struct cu_tlb_entry){ .va = x.page_va, .size_B = x.page_B, .host = x.host, .rights = x.rights, .system = x.system };
    if (x.page_B > PETREL_PAGE_SIZE)
        *huge = *e;
    return e;
}

static const struct cu_tlb_entry *tlb_get(struct hw_cu *cu, uint64_t va, uint32_t access, uint32_t *fault_out)
{
    const struct cu_tlb_entry *e = &cu->tlb[va >> PETREL_PAGE_SHIFT & (CU_TLB_ENTRIES - 1)];
    uint32_t need = rights_for(access);

    if (va - e->va < e->size_B && (e->rights & need) == need)
        return e;
    return cu_tlb_fill(cu, va, access, fault_out);
}

static uint32_t warp_place(const struct cu_warp *w)
{
    return w->cu->index * w->cu->array->config.warps_per_cu + w->slot;
}

static uint8_t *private_resolve(struct cu_warp *w, unsigned lane, uint64_t va, uint64_t *run_B_out, uint32_t *fault_out)
{
    const struct hw_cu_config *c = &w->cu->array->config;
    uint64_t place = warp_place(w), off = va - (PETREL_PRIVATE_BASE + (place * CU_LANES + lane) * c->private_B);

    if (off >= c->private_B || !c->scratch) {
        *fault_out = PETREL_FAULT_ACCESS;
        return NULL;
    }
    *run_B_out = 8 - off % 8;
    return c->scratch + place * CU_LANES * c->private_B + (off / 8 * CU_LANES + lane) * 8 + off % 8;
}

uint8_t *cu_mem_resolve(struct cu_warp *w, unsigned lane, uint64_t va, uint32_t access, uint64_t *run_B_out, bool *system_out,
                        uint32_t *fault_out)
{
    const struct cu_tlb_entry *e;

    *system_out = false;
    if (va >= PETREL_LOCAL_BASE && va < PETREL_LOCAL_END) {
        uint64_t off = va - PETREL_LOCAL_BASE;

        if (off >= w->cu->array->d.local_B) {
            *fault_out = PETREL_FAULT_PAGE;
            return NULL;
        }
        *run_B_out = w->cu->array->d.local_B - off;
        return w->group->local + off;
    }
    /* a stack of the first lane that runs over ends below the aperture */
    if (va >= PETREL_PRIVATE_BASE - w->cu->array->config.private_B && va < PETREL_PRIVATE_END)
        return private_resolve(w, lane, va, run_B_out, fault_out);
    e = tlb_get(w->cu, va, access, fault_out);
    if (!e && !*fault_out) {
        *run_B_out = w->cu->image.va + w->cu->image.size_B - va;
        return w->cu->image.host + (va - w->cu->image.va) + (w->index * CU_LANES + lane) * w->cu->image_stride_B;
    }
    if (!e)
        return NULL;
    *system_out = e->system;
    *run_B_out = e->va + e->size_B - va;
    return e->host + (va - e->va);
}

/* Moves one lane's bytes piece by piece; dry: only finds out whether it may. Value: fault, with its address. */
static uint32_t lane_move(struct cu_warp *w, unsigned lane, uint64_t va, unsigned size_B, uint8_t *data, bool write, bool dry,
                          uint64_t *fault_va_out)
{
    unsigned done = 0;

    while (done < size_B) {
        uint64_t run;
        bool system;
        uint32_t fault = 0;
        uint8_t *p = cu_mem_resolve(w, lane, va + done, write ? PETREL_ACCESS_WRITE : PETREL_ACCESS_READ, &run, &system, &fault);
        unsigned n = size_B - done;

        if (!p) {
            *fault_va_out = va + done;
            return fault;
        }
        n = run < n ? (unsigned)run : n;
        if (!dry && write)
            memcpy(p, data + done, n);
        else if (!dry)
            memcpy(data + done, p, n);
        done += n;
    }
    return 0;
}

bool cu_mem_lanes(struct cu_warp *w, const struct cu_uop *u, const uint64_t *va, unsigned size_B, uint64_t *data, bool write)
{
    uint64_t fault_va = 0;

    for (unsigned pass = 0; pass < 2; pass++) { /* first whether all may, so that a fault leaves memory alone */
        for (uint32_t m = w->mask; m; m &= m - 1) {
            unsigned l = cu_first_lane(m);
            uint32_t fault = lane_move(w, l, va[l], size_B, (uint8_t *)&data[l], write, pass == 0, &fault_va);

            if (fault) {
                cu_fault(w, u, fault, write ? PETREL_ACCESS_WRITE : PETREL_ACCESS_READ, fault_va, l, u->bits);
                return false;
            }
        }
    }
    return true;
}

/* ---- Cache tags ---- */

/* True on a hit. The line becomes the most recent; absent ones are brought in when `allocate`. */
static inline bool tags_touch(struct cu_tags *t, uint64_t line, bool allocate)
{
    uint64_t *set = &t->line[(line & (t->sets - 1)) * WAYS];
    uint64_t tag = line + 1; /* 0: empty */
    uint64_t s0 = set[0], s1 = set[1], s2 = set[2];

    if (s0 == tag)
        return true;
    if (s1 == tag) {
        set[0] = tag;
        set[1] = s0;
        return true;
    }
    if (s2 != tag && set[3] != tag && !allocate)
        return false;
    bool hit = s2 == tag || set[3] == tag;

    if (s2 != tag)
        set[3] = s2;
    set[2] = s1;
    set[1] = s0;
    set[0] = tag;
    return hit;
}

static uint32_t line_time(struct cu_warp *w, uint64_t line, bool write, bool atomic)
{
    struct hw_cu *cu = w->cu;
    struct hw_cu_array *a = cu->array;

    if (!atomic && tags_touch(&cu->l1, line, !write)) {
        a->counters.l1_hit++;
        if (!write)
            return a->config.lat_l1;
    } else {
        a->counters.l1_miss++;
    }
    if (tags_touch(&a->l2, line, true))
        return a->config.lat_l2;
    a->counters.l2_miss++;
    a->counters.dram_B += 1u << LINE_SHIFT;
    cu->dram_B += 1u << LINE_SHIFT;
    return a->config.lat_dram;
}

static bool in_aperture(uint64_t va)
{
    return va >= PETREL_VA_USER_END;
}

uint32_t cu_mem_time(struct cu_warp *w, uint64_t first, uint64_t last, bool write, bool system)
{
    const struct hw_cu_config *c = &w->cu->array->config;
    uint32_t worst = 0, extra = 0;

    if (c->functional)
        return 0;
    if (in_aperture(first))
        return first < PETREL_PRIVATE_BASE ? c->lat_local : c->lat_l1;
    if (system)
        return c->lat_link;
    for (uint64_t line = first >> LINE_SHIFT; line <= last >> LINE_SHIFT; line++) {
        uint32_t t = line_time(w, line, write, false) + extra++;

        worst = t > worst ? t : worst;
    }
    return worst;
}

uint32_t cu_mem_time_lanes(struct cu_warp *w, const uint64_t *va, bool write)
{
    const struct hw_cu_config *c = &w->cu->array->config;
    uint32_t worst = 0, extra = 0;
    uint64_t seen = UINT64_MAX;

    if (c->functional)
        return 0;
    for (uint32_t m = w->mask; m; m &= m - 1) {
        uint64_t line = va[cu_first_lane(m)] >> LINE_SHIFT;
        uint32_t t;

        if (line == seen)
            continue;
        seen = line;
        t = in_aperture(line << LINE_SHIFT) ? ((line << LINE_SHIFT) < PETREL_PRIVATE_BASE ? c->lat_local : c->lat_l1)
                                            : line_time(w, line, write, false);
        t += extra++;
        worst = t > worst ? t : worst;
    }
    return worst;
}

/* ---- Atomics: a lane after the other, at L2 ---- */

static uint32_t atomic_time(struct cu_warp *w, uint64_t va, uint32_t lanes_before)
{
    const struct hw_cu_config *c = &w->cu->array->config;

    if (c->functional)
        return 0;
    return lanes_before + (in_aperture(va) ? c->lat_local : line_time(w, va >> LINE_SHIFT, true, true));
}

/* Host addresses of all active lanes' atomics, or false with the fault raised. */
static bool atomic_resolve(struct cu_warp *w, const struct cu_uop *u, unsigned size_B, uint32_t access, uint8_t *host_out[CU_LANES])
{
    uint32_t t = 0, n = 0;

    for (uint32_t m = w->mask; m; m &= m - 1) {
        unsigned l = cu_first_lane(m);
        uint64_t va = w->x[u->rs1].u[l], run;
        uint32_t fault = va & (size_B - 1) ? PETREL_FAULT_MISALIGNED : 0, lane_t;
        bool system;

        host_out[l] = fault ? NULL : cu_mem_resolve(w, l, va, access, &run, &system, &fault);
        if (!host_out[l]) {
            cu_fault(w, u, fault, access, va, l, u->bits);
            return false;
        }
        if (run < size_B) { /* the end of local memory */
            cu_fault(w, u, PETREL_FAULT_PAGE, access, va + run, l, u->bits);
            return false;
        }
        lane_t = atomic_time(w, va, n++);
        t = lane_t > t ? lane_t : t;
    }
    w->ready[u->d] = w->now + t;
    return true;
}

static uint64_t amo_result(unsigned op, uint64_t old, uint64_t src)
{
    int64_t a = (int64_t)old, b = (int64_t)src;
    int32_t aw = (int32_t)old, bw = (int32_t)src;

    switch (op) {
    case CU_OP_amoswap_w: case CU_OP_amoswap_d: return src;
    case CU_OP_amoadd_w: case CU_OP_amoadd_d: return old + src;
    case CU_OP_amoxor_w: case CU_OP_amoxor_d: return old ^ src;
    case CU_OP_amoand_w: case CU_OP_amoand_d: return old & src;
    case CU_OP_amoor_w: case CU_OP_amoor_d: return old | src;
    case CU_OP_amomin_w: return aw < bw ? old : src;
    case CU_OP_amomax_w: return aw > bw ? old : src;
    case CU_OP_amominu_w: return (uint32_t)old < (uint32_t)src ? old : src;
    case CU_OP_amomaxu_w: return (uint32_t)old > (uint32_t)src ? old : src;
    case CU_OP_amomin_d: return a < b ? old : src;
    case CU_OP_amomax_d: return a > b ? old : src;
    case CU_OP_amominu_d: return old < src ? old : src;
    case CU_OP_amomaxu_d: return old > src ? old : src;
    default: assert(0); return old;
    }
}

static uint64_t load_atomic(const uint8_t *p, unsigned size_B)
{
    return size_B == 4 ? (uint64_t)(int64_t)(int32_t)__atomic_load_n((const uint32_t *)p, __ATOMIC_RELAXED)
                       : __atomic_load_n((const uint64_t *)p, __ATOMIC_RELAXED);
}

static void store_atomic(uint8_t *p, unsigned size_B, uint64_t v)
{
    if (size_B == 4)
        __atomic_store_n((uint32_t *)p, (uint32_t)v, __ATOMIC_RELAXED);
    else
        __atomic_store_n((uint64_t *)p, v, __ATOMIC_RELAXED);
}

/* lr, sc, amo and cas of one lane; value: what rd gets. sc compares by address and value: what it may miss is a write of the same. */
static uint64_t amo_lane(struct cu_warp *w, const struct cu_uop *u, unsigned l, uint8_t *p, unsigned size_B)
{
    uint64_t src = w->x[u->rs2].u[l], old = load_atomic(p, size_B), va = w->x[u->rs1].u[l];

    switch (u->op) {
    case CU_OP_lr_w: case CU_OP_lr_d:
        w->reserved |= 1u << l;
        w->resv_va[l] = va;
        w->resv_val[l] = old;
        return old;
    case CU_OP_sc_w: case CU_OP_sc_d: {
        bool ok = (w->reserved >> l & 1) && w->resv_va[l] == va && w->resv_val[l] == old;

        w->reserved &= ~(1u << l);
        if (ok)
            store_atomic(p, size_B, src);
        return !ok;
    }
    case CU_OP_p_cas_w: case CU_OP_p_cas_d: {
        uint64_t expected = w->x[u->bits >> 7 & 31].u[l];

        if (size_B == 4 ? (uint32_t)expected == (uint32_t)old : expected == old)
            store_atomic(p, size_B, src);
        return old;
    }
    default:
        store_atomic(p, size_B, amo_result(u->op, old, src));
        return old;
    }
}

const struct cu_uop *cu_mem_amo(struct cu_warp *w, const struct cu_uop *u)
{
    bool cas = u->op == CU_OP_p_cas_w || u->op == CU_OP_p_cas_d, lr = u->op == CU_OP_lr_w || u->op == CU_OP_lr_d;
    unsigned size_B = cas ? (u->op == CU_OP_p_cas_w ? 4 : 8) : 1u << (u->bits >> 12 & 7);
    uint8_t *host[CU_LANES];
    uint64_t out[CU_LANES];

    if (!atomic_resolve(w, u, size_B, lr ? PETREL_ACCESS_READ : PETREL_ACCESS_ATOMIC, host))
        return NULL;
    for (uint32_t m = w->mask; m; m &= m - 1)
        out[cu_first_lane(m)] = amo_lane(w, u, cu_first_lane(m), host[cu_first_lane(m)], size_B);
    for (uint32_t m = w->mask; m; m &= m - 1)
        w->x[u->rd].u[cu_first_lane(m)] = out[cu_first_lane(m)];
    return u + u->step;
}

static uint32_t famo_result(struct cu_warp *w, unsigned op, uint32_t old, uint32_t src)
{
    union { uint32_t w; float f; } a = { old }, b = { src }, r;

    if (op == CU_OP_p_famoadd) {
        volatile float sum = a.f + b.f; /* with host flags, as fadd.s */

        r.f = sum;
        return r.f == r.f ? r.w : 0x7fc00000u;
    }
    return cu_minmax32(w, old, src, op == CU_OP_p_famomax);
}

const struct cu_uop *cu_mem_famo(struct cu_warp *w, const struct cu_uop *u)
{
    uint8_t *host[CU_LANES];
    union cu_freg out = w->f[u->rd];
    uint32_t in[CU_LANES];

    if (!atomic_resolve(w, u, 4, PETREL_ACCESS_ATOMIC, host))
        return NULL;
    cu_f32_read(w, u->rs2, in);
    cu_f_to_double(w, u->rd);
    out = w->f[u->rd];
    for (uint32_t m = w->mask; m; m &= m - 1) {
        unsigned l = cu_first_lane(m);
        uint32_t old = (uint32_t)load_atomic(host[l], 4);

        store_atomic(host[l], 4, famo_result(w, u->op, old, in[l]));
        out.q[l] = 0xffffffff00000000ull | old;
    }
    w->f[u->rd] = out;
    cu_f_to_single(w, u->rd);
    return u + u->step;
}
