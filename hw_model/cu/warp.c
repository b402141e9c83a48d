/* SPDX-License-Identifier: MIT */
/* warp.c - a warp: its active lanes, the loops that issue its instructions, sabotage. */
#include <assert.h>
#include <immintrin.h>

#include "cu_priv.h"

#define HANG_AFTER 4u      /* instructions of a warp before a sabotaged unit stops */
#define ILLEGAL_AT 4u      /* instruction of the first warp that is fetched wrong */
#define MXCSR_DEFAULT 0x1f80u

static v8 lane_mask8(uint32_t bits)
{
    const v8 bit = { 1, 2, 4, 8, 16, 32, 64, 128 };

    return (v8)(((bit & (int64_t)bits)) != 0);
}

static i16v lane_mask16(uint32_t bits)
{
    const i16v bit = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768 };

    return (i16v)((bit & (int32_t)bits) != 0);
}

void cu_warp_set_mask(struct cu_warp *w, uint32_t mask)
{
    cu_account(w);
    w->mask = mask;
    w->active = (uint32_t)__builtin_popcount(mask);
    w->partial = mask != CU_ALL;
    if (mask == CU_ALL) /* full handlers do not look */
        return;
    for (unsigned k = 0; k < 4; k++)
        w->m64[k] = lane_mask8(mask >> (8 * k));
    for (unsigned k = 0; k < 2; k++)
        w->m32[k] = lane_mask16(mask >> (16 * k));
}

/* The handler of u, and of none that follows it. */
static const struct cu_uop *run_alone(struct cu_warp *w, const struct cu_uop *u)
{
    return (u->flags & CU_UOP_FUSED ? w->cu->array->handlers[u->op] : u->fn)[w->partial](w, u);
}

/* ---- Sabotage ---- */

/* The access of lane 0 goes astray: its base register is bent for this one instruction. */
static const struct cu_uop *run_wild(struct cu_warp *w, const struct cu_uop *u)
{
    uint64_t saved = w->x[u->rs1].u[0];
    const struct cu_uop *next;

    w->cu->array->sabotage.wild = false;
    w->x[u->rs1].u[0] = w->cu->array->sabotage.wild_va - (uint64_t)u->imm;
    next = w->cu->array->handlers[u->op][w->partial](w, u);
    if (u->rd != u->rs1 || cu_insns[u->op].format == CU_FMT_FL)
        w->x[u->rs1].u[0] = saved;
    return next;
}

static const struct cu_uop *run_illegal(struct cu_warp *w, const struct cu_uop *u)
{
    struct cu_uop *own = w->rg->uops + (u - w->rg->uops), keep = *own;
    const struct cu_uop *next;

    w->cu->array->sabotage.illegal = false;
    cu_decode(w->cu->array->sabotage.illegal_bits, cu_pc(w->rg, u), own);
    own->flags |= CU_UOP_DECODED | CU_UOP_FAR;
    own->lat = 1;
    next = w->cu->array->handlers[own->op][w->partial](w, own);
    keep.flags |= own->flags & (CU_UOP_JOIN | CU_UOP_MERGE | CU_UOP_ENTRY); /* what the instruction may have found out */
    *own = keep;
    if (own->flags & CU_UOP_DECODED)
        cu_uop_bind(w->cu->array, own);
    return next;
}

/* One instruction under a sabotage. *next_out is what follows; false: the warp stops for this epoch. */
static bool sabotage_step(struct cu_warp *w, const struct cu_uop *u, const struct cu_uop **next_out)
{
    struct hw_cu_array *a = w->cu->array;
    bool first = w->group->linear == 0 && w->index == 0;

    if (a->sabotage.hang && w->cu->index == 0 && w->instr >= HANG_AFTER) {
        w->cu->hung = true;
        *next_out = u;
        return false;
    }
    if (first && a->sabotage.illegal && w->instr >= ILLEGAL_AT)
        *next_out = run_illegal(w, u);
    else if (first && a->sabotage.wild && u->flags & CU_UOP_MEMORY && w->mask & 1)
        *next_out = run_wild(w, u);
    else
        *next_out = run_alone(w, u);
    return true;
}

/* ---- Running ---- */

void cu_fuel_set(struct cu_warp *w, int32_t fuel)
{
    uint64_t left = INT32_MAX; /* timed: the clock says when the slice is over */

    cu_account(w);
    if (w->cu->array->config.functional)
        left = w->end > w->now ? w->end - w->now : 0;
    w->fuel = left < (uint64_t)fuel ? (int32_t)left : fuel;
    w->fuel_more = fuel - w->fuel;
    w->fuel_mark = w->fuel;
}

void cu_warp_charge(struct cu_warp *w, uint64_t cycles)
{
    if (!w->cu->array->config.functional) {
        w->ready[0] = w->now + 1 + cycles; /* x0, whose slot is an operand of nearly all instructions */
        return;
    }
    cu_account(w);
    w->now += cycles;
    cu_fuel_set(w, w->fuel + w->fuel_more);
}

/* No fuel is left: the slice is over, or somebody else's turn has come. */
static const struct cu_uop *refuel(struct cu_warp *w, const struct cu_uop *u)
{
    cu_account(w);
    return w->fuel_more ? u : cu_path_age(w, u);
}

/* The inner loop: one warp until the epoch ends or it cannot go on. */
static const struct cu_uop *run_timed(struct cu_warp *w, const struct cu_uop *u, uint64_t end)
{
    uint64_t t = w->now;

    while (u) {
        t = cu_later(cu_later(t, w->ready[u->s1]), cu_later(w->ready[u->s2], w->ready[u->s3]));
        w->now = t;
        if (t >= end)
            break;
        w->ready[u->d] = t + u->lat;
        w->fuel--;
        u = u->fn[w->partial](w, u);
        t++;
        if (__builtin_expect(w->fuel <= 0, 0) && u)
            u = refuel(w, u);
    }
    w->now = cu_later(t, w->now);
    return u;
}

static const struct cu_uop *run_functional(struct cu_warp *w, const struct cu_uop *u)
{
    while (u && w->fuel > 0) {
        do {
            w->fuel--;
            u = u->fn[w->partial](w, u);
        } while (u && w->fuel > 0);
        if (u)
            u = refuel(w, u);
    }
    return u;
}

/* One handler of one instruction, for traces: what only hands over is told from what is carried out. */
static const struct cu_uop *run_one(struct cu_warp *w, const struct cu_uop *u)
{
    w->fuel--;
    u = run_alone(w, u);
    return u && w->fuel <= 0 ? refuel(w, u) : u;
}

static const struct cu_uop *run_sabotaged(struct cu_warp *w, const struct cu_uop *u, uint64_t end)
{
    while (u && w->now < end && !w->cu->hung) {
        w->fuel--;
        if (!(u->flags & CU_UOP_DECODED)) {
            u = u->fn[w->partial](w, u);
            continue;
        }
        if (!sabotage_step(w, u, &u)) {
            cu_not_issued(w);
            break;
        }
        cu_account(w);
        if (!w->cu->array->config.functional)
            w->now++;
        if (w->fuel <= 0 && u)
            u = refuel(w, u);
    }
    return u;
}

const struct cu_uop *cu_warp_issue(struct cu_warp *w, const struct cu_uop *u, uint64_t end)
{
    return w->cu->array->config.on_trace ? cu_run_traced(w, u, end) : cu_warp_step(w, u, end);
}

const struct cu_uop *cu_warp_step(struct cu_warp *w, const struct cu_uop *u, uint64_t end)
{
    const struct hw_cu_array *a = w->cu->array;

    _mm_setcsr(MXCSR_DEFAULT);
    if (__atomic_load_n(&w->reserved, __ATOMIC_RELAXED))
        cu_resv_age(w);
    w->end = end;
    cu_fuel_set(w, w->fuel + w->fuel_more > 0 ? w->fuel + w->fuel_more : 1);
    if (cu_sabotaged(a))
        u = run_sabotaged(w, u, end);
    else if (a->config.functional)
        u = a->config.on_trace ? run_one(w, u) : run_functional(w, u);
    else
        u = run_timed(w, u, end);
    cu_account(w);
    cu_flags_collect(w);
    return u;
}

/* ---- Asking ---- */

const struct cu_uop *cu_ask(struct cu_warp *w, const struct cu_uop *u)
{
    assert(!w->cu->alone && !w->cu->asks);
    cu_not_issued(w);
    w->cu->asks = w;
    w->cu->asks_at = u;
    w->cu->asks_code = false;
    return NULL;
}

/* run_timed has counted the cycle already, and cu_handle_join has done its part. */
const struct cu_uop *cu_warp_one(struct cu_warp *w, const struct cu_uop *u)
{
    const uint64_t cycle = !w->cu->array->config.functional, next = w->now;

    _mm_setcsr(MXCSR_DEFAULT);
    w->now -= cycle;
    w->fuel--;
    u = u->flags & CU_UOP_DECODED ? w->cu->array->handlers[u->op][w->partial](w, u) : u->fn[w->partial](w, u);
    w->now = cu_later(w->now, next);
    if (w->fuel <= 0 && u)
        u = refuel(w, u);
    cu_account(w);
    cu_flags_collect(w);
    return u;
}
