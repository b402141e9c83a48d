/* SPDX-License-Identifier: MIT */
/* code.c - code regions: instruction fetch, micro-ops decoded on first use, handlers bound to them. */
#include <assert.h>
#include <string.h>

#include "cu_priv.h"
#include "fault_plan.h"
#include "record.h"
#include "sys.h"

UMD_LOG_MODULE("hw.cu.code");

#define UOP_ALIGN 64u
#define FLUSH_PER_CYCLE 64u /* micro-ops that cu_code_flush compares with memory in a cycle */
#define ANALYSIS_WORK 16u   /* times as much for one that is analysed anew */

static struct cu_region *region_find(struct hw_cu_array *a, uint64_t root, uint64_t va)
{
    for (struct cu_region *rg = a->regions; rg; rg = rg->next)
        if (rg->root == root && va - rg->va < rg->size_B)
            return rg;
    return NULL;
}

static void uop_forget(struct cu_uop *u)
{
    *u = (struct cu_uop){ .fn = { cu_handle_undecoded, cu_handle_undecoded }, .d = CU_SLOT_NONE, .reconv = CU_RECONV_NONE, .lat = 1 };
    cu_uop_set_step(u, 2);
}

/* All micro-ops "not decoded". Those behind the end are always so: their fetch leads to the next region. */
static void region_clear(struct cu_region *rg)
{
    uint64_t count = rg->size_B / 2 + CU_BEHIND_END;

    for (uint64_t i = 0; i < count; i++)
        uop_forget(&rg->uops[i]);
}

static uint64_t touched_words(uint64_t va, uint64_t size_B)
{
    return ((va + size_B - 1) / PETREL_PAGE_SIZE - va / PETREL_PAGE_SIZE) / 64 + 1;
}

void cu_region_touch(struct cu_region *rg, uint64_t index)
{
    const uint64_t page = (rg->va + 2 * index) / PETREL_PAGE_SIZE - rg->va / PETREL_PAGE_SIZE;

    rg->touched[page / 64] |= 1ull << (page % 64);
}

bool cu_region_next_touched(const struct cu_region *rg, uint64_t *begin_io, uint64_t *end_out)
{
    const uint64_t first = rg->va / PETREL_PAGE_SIZE, pages = (rg->va + rg->size_B - 1) / PETREL_PAGE_SIZE - first + 1;

    for (uint64_t page = (rg->va + 2 * *begin_io) / PETREL_PAGE_SIZE - first; *begin_io < rg->size_B / 2 && page < pages; page++) {
        const uint64_t bits = rg->touched[page / 64] >> (page % 64), begin_va = (first + page) * PETREL_PAGE_SIZE;

        if (!bits) {
            page |= 63;
            continue;
        }
        if (!(bits & 1))
            continue;
        *begin_io = begin_va > rg->va ? (begin_va - rg->va) / 2 : 0;
        *end_out = (begin_va + PETREL_PAGE_SIZE - rg->va) / 2;
        *end_out = *end_out < rg->size_B / 2 ? *end_out : rg->size_B / 2;
        return true;
    }
    return false;
}

/* NULL: no host memory. The record of that goes to the driver, by its number in the fault. */
static struct cu_region *region_alloc(struct hw_cu_array *a, uint64_t uops_B)
{
    umdErrorDetail detail;

    umd_record_scope_begin(); /* stepped: a caller's thread, whose record is none of this */
    struct umd_fault_hit hit;
    struct cu_region *rg = NULL;
    if (umd_fault(UMD_FAULT_HW_CU_MEMORY, (struct umd_fault_where){ 0 }, &hit))
        (void)UMD_FAIL(UMD_ERR_MEM_HOST_ALLOC_FAILED, "size_B=%" PRIu64, uops_B);
    else
        rg = umd_alloc(sizeof(*rg));
    if (rg && !(rg->uops_mem = umd_alloc(uops_B))) {
        umd_free(rg);
        rg = NULL;
    }
    if (!rg)
        a->memory_record = umd_record_export(&detail) ? detail.id.seq : 0;
    umd_record_scope_end();
    return rg;
}

/* Cuts [*va, *end) at regions that lie in it, keeping what is around `at`: an address belongs to one region. */
static void clip(struct hw_cu_array *a, uint64_t root, uint64_t at, uint64_t *va, uint64_t *end)
{
    for (struct cu_region *rg = a->regions; rg; rg = rg->next) {
        if (rg->root != root)
            continue;
        if (rg->va > at && rg->va < *end)
            *end = rg->va;
        if (rg->va <= at && rg->va + rg->size_B > *va)
            *va = rg->va + rg->size_B;
    }
}

struct cu_region *cu_region_get(struct hw_cu_array *a, uint64_t root, uint64_t at, uint64_t va, uint64_t size_B)
{
    struct cu_region *rg = region_find(a, root, at);
    uint64_t end = va + ((size_B + 1) & ~1ull), uops_B;
    struct cu_uop *first;

    if (rg)
        return rg;
    clip(a, root, at, &va, &end);
    assert(at >= va && at < end);
    uops_B = (CU_BEFORE_BEGIN + (end - va) / 2 + CU_BEHIND_END) * sizeof(struct cu_uop);
    rg = region_alloc(a, uops_B + UOP_ALIGN + touched_words(va, end - va) * sizeof(uint64_t));
    if (!rg)
        return NULL;
    first = (struct cu_uop *)(((uintptr_t)rg->uops_mem + UOP_ALIGN - 1) & ~(uintptr_t)(UOP_ALIGN - 1));
    rg->uops = first + CU_BEFORE_BEGIN;
    rg->touched = (uint64_t *)((uint8_t *)first + uops_B);
    rg->root = root;
    rg->va = va;
    rg->size_B = end - va;
    region_clear(rg);
    rg->next = a->regions;
    a->regions = rg;
    return rg;
}

static void region_free(struct cu_region *rg)
{
    umd_free(rg->uops_mem);
    umd_free(rg);
}

void cu_regions_drop(struct hw_cu_array *a)
{
    while (a->regions) {
        struct cu_region *rg = a->regions;

        a->regions = rg->next;
        region_free(rg);
    }
    a->code = NULL;
}

/* One halfword of code. 0 or the fault. */
static uint32_t fetch_half(struct hw_cu_array *a, uint64_t root, uint64_t pc, uint16_t *half_out)
{
    struct hw_xlat x;
    uint32_t fault = pc < PETREL_VA_USER_END ? a->config.translate(a->config.translate_priv, root, pc, PETREL_ACCESS_EXEC, &x)
                                             : PETREL_FAULT_PAGE;

    if (fault)
        return fault;
    if (!(x.rights & PETREL_PTE_EXEC))
        return PETREL_FAULT_ACCESS;
    memcpy(half_out, x.host + (pc - x.page_va), 2);
    return 0;
}

/* 0 or the fault, with the address whose fetch it is of: of the instruction's second half, where that is the one that cannot be had. */
static uint32_t prepare(struct hw_cu_array *a, struct cu_region *rg, struct cu_uop *u, uint64_t *fault_va_out)
{
    uint64_t pc = cu_pc(rg, u);
    uint16_t lo, hi = 0;
    uint32_t fault, bits, full, flags = u->flags, reconv = u->reconv;

    if (u->flags & CU_UOP_DECODED)
        return 0;
    *fault_va_out = pc;
    fault = fetch_half(a, rg->root, pc, &lo);
    if (!fault && (lo & 3) == 3) {
        *fault_va_out = pc + 2;
        fault = fetch_half(a, rg->root, pc + 2, &hi);
    }
    if (fault)
        return fault;
    bits = (uint32_t)hi << 16 | lo;
    full = (lo & 3) == 3 ? bits : cu_expand_rvc(lo);
    cu_decode(full, pc, u);
    u->bits = bits;
    cu_uop_set_step(u, (lo & 3) == 3 ? 2 : 1);
    u->flags |= (uint16_t)(flags | CU_UOP_DECODED);
    cu_region_touch(rg, (uint64_t)(u - rg->uops));
    u->reconv = reconv;
    if (u->op == CU_OP_jal || (u->op < CU_OP_COUNT && cu_insns[u->op].format == CU_FMT_B)) {
        uint64_t to = pc + (uint64_t)u->imm - rg->va;

        u->target_B = (int32_t)(u->imm / 2 * (int64_t)sizeof(*u));
        if (to >= rg->size_B)
            u->flags |= CU_UOP_FAR;
    }
    u->lat = (uint16_t)(u->op < CU_OP_COUNT ? a->lat[cu_insns[u->op].latency] : 1);
    cu_uop_bind(a, u);
    return 0;
}

/* Is what memory holds another instruction than the one that was decoded? page: of its first halfword, as translated. */
static bool is_stale(struct hw_cu_array *a, const struct cu_region *rg, const struct cu_uop *u, const struct hw_xlat *page)
{
    const uint64_t pc = cu_pc(rg, u);
    uint16_t lo, hi = 0;

    memcpy(&lo, page->host + (pc - page->page_va), 2);
    if (lo != (uint16_t)u->bits)
        return true;
    if ((lo & 3) != 3)
        return false;
    if (pc % PETREL_PAGE_SIZE == PETREL_PAGE_SIZE - 2) {
        if (fetch_half(a, rg->root, pc + 2, &hi))
            return true;
    } else {
        memcpy(&hi, page->host + (pc + 2 - page->page_va), 2);
    }
    return hi != u->bits >> 16;
}

/* Forgets what is not so any more among micro-ops begin..end - 1, which lie in one page. Marks of meeting points stay: lanes may wait there. */
static bool renew(struct hw_cu_array *a, struct cu_region *rg, uint64_t begin, uint64_t end)
{
    struct hw_xlat page;
    const uint64_t va = rg->va + 2 * begin;
    const bool gone = a->config.translate(a->config.translate_priv, rg->root, va, PETREL_ACCESS_EXEC, &page) || !(page.rights & PETREL_PTE_EXEC);
    bool any = false;

    for (struct cu_uop *u = rg->uops + begin; u < rg->uops + end; u++) {
        if (!(u->flags & CU_UOP_DECODED) || (!gone && !is_stale(a, rg, u, &page)))
            continue;
        const uint16_t kept = u->flags & (CU_UOP_JOIN | CU_UOP_ENTRY);
        uop_forget(u);
        u->flags = kept;
        cu_uop_bind(a, u);
        any = true;
    }
    return any;
}

/* Code of other address spaces: no warp stands in it, and whether they are still there is not known here. */
static void drop_others(struct hw_cu_array *a)
{
    struct cu_region **link = &a->regions;

    while (*link) {
        struct cu_region *rg = *link;

        if (rg->root == a->root) {
            link = &rg->next;
            continue;
        }
        *link = rg->next;
        region_free(rg);
    }
}

/*
 * Warps stand in the code, before its next instruction or in the middle of functions. What memory still holds stays decoded, so that
 * this costs a look at what has been decoded, and new work only for what changed: functions of a region in which something did are
 * analysed anew.
 */
uint64_t cu_code_flush(struct hw_cu_array *a)
{
    uint64_t work = 0;

    drop_others(a);
    for (struct cu_region *rg = a->regions; rg; rg = rg->next) {
        bool any = false;

        for (uint64_t begin = 0, end; cu_region_next_touched(rg, &begin, &end); begin = end) {
            any |= renew(a, rg, begin, end);
            work += end - begin;
        }
        if (!any)
            continue;
        cu_converge_region(a, rg);
        work += ANALYSIS_WORK * (rg->size_B / 2);
    }
    a->flush_code = false;
    return work / FLUSH_PER_CYCLE;
}

bool cu_uop_prepare(struct hw_cu_array *a, struct cu_region *rg, struct cu_uop *u)
{
    uint64_t fault_va;

    return u < rg->uops + rg->size_B / 2 && !prepare(a, rg, u, &fault_va);
}

/* Another unit may have it decoded until this one is served: then the instruction has only to come again, by all that stands before it. */
static const struct cu_uop *ask_code(struct cu_warp *w, const struct cu_uop *u)
{
    u = cu_ask(w, u);
    w->cu->asks_code = true;
    return u;
}

const struct cu_uop *cu_handle_undecoded(struct cu_warp *w, const struct cu_uop *u)
{
    struct cu_region *rg = w->rg;
    uint64_t pc = cu_pc(rg, u), fault_va;
    struct cu_uop *own = rg->uops + (u - rg->uops);
    uint32_t fault;

    if (!w->cu->alone && (pc - rg->va < rg->size_B || !region_find(w->cu->array, rg->root, pc)))
        return ask_code(w, u);
    cu_not_issued(w);
    if (pc - rg->va >= rg->size_B) {
        u = cu_code_at(w, pc, &rg);
        w->rg = rg ? rg : w->rg;
        w->path[w->cur].rg = w->rg;
        return u;
    }
    fault = prepare(w->cu->array, rg, own, &fault_va);
    if (fault)
        return cu_fault(w, u, fault, PETREL_ACCESS_EXEC, fault_va, cu_first_lane(w->mask), 0);
    return own; /* comes again, decoded */
}

bool cu_jump_ready(const struct cu_warp *w, const uint64_t *pc, uint32_t lanes, bool entry, const struct cu_uop *back)
{
    bool part = false;

    if (w->cu->alone)
        return true;
    for (uint32_t m = lanes; m; m &= m - 1) {
        const uint64_t va = pc[cu_first_lane(m)];
        const struct cu_region *rg = va == CU_RETURN_VA ? NULL : region_find(w->cu->array, w->cu->array->root, va);

        part |= va != pc[cu_first_lane(lanes)];
        if (va != CU_RETURN_VA && (!rg || (entry && !(rg->uops[(va - rg->va) / 2].flags & CU_UOP_ENTRY))))
            return false;
    }
    return !part || !back || back >= w->rg->uops + w->rg->size_B / 2 || back->flags & CU_UOP_JOIN; /* as call_node has it */
}

void cu_code_reach(struct cu_warp *w, const uint64_t pc[CU_LANES], uint32_t lanes)
{
    struct hw_cu_array *a = w->cu->array;
    uint16_t half;

    for (uint32_t m = a->parallel && w->cu->alone ? lanes : 0; m; m &= m - 1) { /* one thread finds it when somebody goes there */
        const uint64_t va = pc[cu_first_lane(m)];

        if (va != CU_RETURN_VA && !region_find(a, a->root, va) && !fetch_half(a, a->root, va, &half))
            (void)cu_region_get(a, a->root, va, va & ~(uint64_t)(PETREL_PAGE_SIZE - 1), PETREL_PAGE_SIZE); /* without memory: said by who goes there */
    }
}

const struct cu_uop *cu_code_at(struct cu_warp *w, uint64_t va, struct cu_region **rg_out)
{
    struct hw_cu_array *a = w->cu->array;
    struct cu_region *rg = w->rg && va - w->rg->va < w->rg->size_B ? w->rg : region_find(a, a->root, va);
    uint64_t page = va & ~(uint64_t)(PETREL_PAGE_SIZE - 1);
    uint16_t half;
    uint32_t fault;

    *rg_out = NULL;
    if (!rg) {
        fault = fetch_half(a, a->root, va, &half);
        if (!fault) { /* who is not alone has asked before, or came to its return, see cu_code_reach */
            assert(w->cu->alone || a->memory_record);
            rg = !w->cu->alone ? NULL : cu_region_get(a, a->root, va, page, PETREL_PAGE_SIZE);
            fault = rg ? 0 : PETREL_FAULT_HOST_MEMORY;
        }
        if (fault) {
            struct cu_uop nowhere = { .step = 2 };

            w->rg = &(struct cu_region){ .va = va, .uops = &nowhere };
            cu_fault(w, &nowhere, fault, PETREL_ACCESS_EXEC, va, cu_first_lane(w->mask), fault == PETREL_FAULT_HOST_MEMORY ? a->memory_record : 0);
            w->rg = NULL;
            return NULL;
        }
    }
    *rg_out = rg;
    return rg->uops + (va - rg->va) / 2;
}
