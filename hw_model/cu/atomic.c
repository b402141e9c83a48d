/* SPDX-License-Identifier: MIT */
/* atomic.c - atomics: a lane after the other, at L2. */
/*
 * Each is one of the host's own, in sequential order: it neither loses what the CPU does to shared memory at the same time, nor
 * what another host thread's warp does.
 */
#include <assert.h>

#include "cu_priv.h"

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
        lane_t = cu_mem_time_atomic(w, va, n++);
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

uint64_t cu_atomic_load(const uint8_t *p, unsigned size_B)
{
    return size_B == 4 ? (uint64_t)(int64_t)(int32_t)__atomic_load_n((const uint32_t *)p, __ATOMIC_SEQ_CST)
                       : __atomic_load_n((const uint64_t *)p, __ATOMIC_SEQ_CST);
}

bool cu_atomic_replace(uint8_t *p, unsigned size_B, uint64_t *old, uint64_t now)
{
    uint32_t word = (uint32_t)*old;
    bool ok;

    if (size_B == 8)
        return __atomic_compare_exchange_n((uint64_t *)p, old, now, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    ok = __atomic_compare_exchange_n((uint32_t *)p, &word, (uint32_t)now, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    *old = (uint64_t)(int64_t)(int32_t)word;
    return ok;
}

static uint64_t amo(unsigned op, uint8_t *p, unsigned size_B, uint64_t src)
{
    uint64_t old = cu_atomic_load(p, size_B);

    while (!cu_atomic_replace(p, size_B, &old, amo_result(op, old, src))) /* each time round somebody else's has gone through */
        ;
    return old;
}

static void written(struct cu_warp *w, const uint8_t *p, unsigned size_B)
{
    if (cu_resv_any(w->cu->array))
        cu_resv_written(w->cu->array, p, size_B);
}

/* lr, sc, amo and cas of one lane; value: what rd gets. */
static uint64_t amo_lane(struct cu_warp *w, const struct cu_uop *u, unsigned l, uint8_t *p, unsigned size_B)
{
    uint64_t src = w->x[u->rs2].u[l], old;

    switch (u->op) {
    case CU_OP_lr_w: case CU_OP_lr_d:
        return cu_resv_load(w, l, p, size_B);
    case CU_OP_sc_w: case CU_OP_sc_d:
        return !cu_resv_store(w, l, p, size_B, src);
    case CU_OP_p_cas_w: case CU_OP_p_cas_d:
        old = w->x[u->bits >> 7 & 31].u[l];
        if (size_B == 4)
            old = (uint64_t)(int64_t)(int32_t)(uint32_t)old;
        if (cu_atomic_replace(p, size_B, &old, src))
            written(w, p, size_B);
        return old;
    default:
        old = amo(u->op, p, size_B, src);
        written(w, p, size_B);
        return old;
    }
}

const struct cu_uop *cu_mem_amo(struct cu_warp *w, const struct cu_uop *u)
{
    bool cas = u->op == CU_OP_p_cas_w || u->op == CU_OP_p_cas_d, lr = u->op == CU_OP_lr_w || u->op == CU_OP_lr_d;
    unsigned size_B = cas ? (u->op == CU_OP_p_cas_w ? 4 : 8) : 1u << (u->bits >> 12 & 7);
    uint8_t *host[CU_LANES];
    uint64_t out[CU_LANES];

    w->synchronises = true;
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
    union cu_freg out;
    uint32_t in[CU_LANES];

    w->synchronises = true;
    if (!atomic_resolve(w, u, 4, PETREL_ACCESS_ATOMIC, host))
        return NULL;
    cu_f32_read(w, u->rs2, in);
    cu_f_to_double(w, u->rd);
    out = w->f[u->rd];
    for (uint32_t m = w->mask; m; m &= m - 1) {
        unsigned l = cu_first_lane(m);
        uint64_t old = cu_atomic_load(host[l], 4);

        while (!cu_atomic_replace(host[l], 4, &old, famo_result(w, u->op, (uint32_t)old, in[l])))
            ;
        written(w, host[l], 4);
        out.q[l] = 0xffffffff00000000ull | old;
    }
    w->f[u->rd] = out;
    cu_f_to_single(w, u->rd);
    return u + u->step;
}
