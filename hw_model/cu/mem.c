/* SPDX-License-Identifier: MIT */
/* mem.c - memory of the lanes: apertures, translation, the lane-by-lane path, cache tags and their timing. */
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
    assert(x.page_B >= PETREL_PAGE_SIZE); /* the fast paths look for a whole row in it */
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
        if (!dry && write) {
            memcpy(p, data + done, n);
            if (cu_resv_any(w->cu->array))
                cu_resv_written(w->cu->array, p, n);
        } else if (!dry) {
            memcpy(data + done, p, n);
        }
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
        cu->counters.l1_hit++;
        if (!write)
            return a->config.lat_l1;
    } else {
        cu->counters.l1_miss++;
    }
    if (tags_touch(cu->l2, line, true))
        return a->config.lat_l2;
    cu->counters.l2_miss++;
    cu->counters.dram_B += 1u << LINE_SHIFT;
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

uint32_t cu_mem_time_atomic(struct cu_warp *w, uint64_t va, uint32_t lanes_before)
{
    const struct hw_cu_config *c = &w->cu->array->config;

    if (c->functional)
        return 0;
    return lanes_before + (in_aperture(va) ? c->lat_local : line_time(w, va >> LINE_SHIFT, true, true));
}
