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

static struct cu_region *region_find(struct hw_cu_array *a, uint64_t root, uint64_t va)
{
    for (struct cu_region *rg = a->regions; rg; rg = rg->next)
        if (rg->root == root && va - rg->va < rg->size_B)
            return rg;
    return NULL;
}

static void uop_forget(struct cu_uop *u)
{
    *u = (struct cu_uop){ .fn = { cu_handle_undecoded, cu_handle_undecoded }, .d = CU_SLOT_NONE, .step = 2, .reconv = CU_RECONV_NONE, .lat = 1 };
}

/* All micro-ops "not decoded". Those behind the end are always so: their fetch leads to the next region. */
static void region_clear(struct cu_region *rg)
{
    uint64_t count = rg->size_B / 2 + CU_BEHIND_END;

    for (uint64_t i = 0; i < count; i++)
        uop_forget(&rg->uops[i]);
}

/*
 * Warps stand in the code, before its next instruction or in the middle of functions: marks of meeting points stay (one too many
 * costs a look), and what had been analysed is analysed anew.
 */
void cu_code_flush(struct hw_cu_array *a)
{
    for (struct cu_region *rg = a->regions; rg; rg = rg->next) {
        for (uint64_t i = 0; i < rg->size_B / 2; i++) {
            uint8_t kept = rg->uops[i].flags & (CU_UOP_JOIN | CU_UOP_ENTRY);

            uop_forget(&rg->uops[i]);
            rg->uops[i].flags = kept;
        }
    }
    for (struct cu_region *rg = a->regions; rg; rg = rg->next) {
        for (uint64_t i = 0; i < rg->size_B / 2; i++) {
            if (!(rg->uops[i].flags & CU_UOP_ENTRY))
                continue;
            rg->uops[i].flags &= (uint8_t)~CU_UOP_ENTRY;
            cu_converge_function(a, rg, (uint32_t)i);
        }
    }
    a->flush_code = false;
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
    uint64_t end = va + ((size_B + 1) & ~1ull);

    if (rg)
        return rg;
    clip(a, root, at, &va, &end);
    assert(at >= va && at < end);
    rg = region_alloc(a, ((end - va) / 2 + CU_BEHIND_END) * sizeof(struct cu_uop) + UOP_ALIGN);
    if (!rg)
        return NULL;
    rg->uops = (struct cu_uop *)(((uintptr_t)rg->uops_mem + UOP_ALIGN - 1) & ~(uintptr_t)(UOP_ALIGN - 1));
    rg->root = root;
    rg->va = va;
    rg->size_B = end - va;
    region_clear(rg);
    rg->next = a->regions;
    a->regions = rg;
    return rg;
}

void cu_regions_drop(struct hw_cu_array *a)
{
    while (a->regions) {
        struct cu_region *rg = a->regions;

        a->regions = rg->next;
        umd_free(rg->uops_mem);
        umd_free(rg);
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
    u->step = (lo & 3) == 3 ? 2 : 1;
    u->flags |= (uint8_t)(flags | CU_UOP_DECODED);
    u->reconv = reconv;
    if (u->op == CU_OP_jal || (u->op < CU_OP_COUNT && cu_insns[u->op].format == CU_FMT_B)) {
        uint64_t to = pc + (uint64_t)u->imm - rg->va;

        u->target = (int32_t)(u->imm / 2);
        if (to >= rg->size_B)
            u->flags |= CU_UOP_FAR;
    }
    u->lat = (uint16_t)(u->op < CU_OP_COUNT ? a->lat[cu_insns[u->op].latency] : 1);
    cu_uop_bind(a, u);
    return 0;
}

bool cu_uop_prepare(struct hw_cu_array *a, struct cu_region *rg, struct cu_uop *u)
{
    uint64_t fault_va;

    return u < rg->uops + rg->size_B / 2 && !prepare(a, rg, u, &fault_va);
}

void cu_uop_bind(const struct hw_cu_array *a, struct cu_uop *u)
{
    if (!(u->flags & CU_UOP_DECODED))
        return;
    for (unsigned part = 0; part < 2; part++)
        u->fn[part] = u->flags & (CU_UOP_JOIN | CU_UOP_MERGE) ? cu_handle_join : a->handlers[u->op][part];
}

const struct cu_uop *cu_handle_undecoded(struct cu_warp *w, const struct cu_uop *u)
{
    struct cu_region *rg = w->rg;
    uint64_t pc = cu_pc(rg, u), fault_va;
    struct cu_uop *own = rg->uops + (u - rg->uops);
    uint32_t fault;

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
        if (!fault) {
            rg = cu_region_get(a, a->root, va, page, PETREL_PAGE_SIZE);
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
