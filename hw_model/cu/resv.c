/* SPDX-License-Identifier: MIT */
/* resv.c - reservations of lr: which lanes hold one on which bytes, and every store that ends them. */
/*
 * A lane has at most one, on the bytes that its lr read, told by their place in host memory: so it does not matter by which
 * address they are reached. While no lane has one, a store looks at one counter. While some have, it looks at a filter by
 * 8 bytes, and only where that says so at the lanes. What the CPU and the copy engine write is not seen here; sc compares the
 * value, too. A reservation that nobody asks for is forgotten after two epochs of the warp, so that stores are fast again.
 */
#include <assert.h>

#include "cu_priv.h"

#define FORGET_CYCLES 2048u

static unsigned place(const uint8_t *host)
{
    return (unsigned)(((uint64_t)(uintptr_t)host >> 3) * 0x9e3779b97f4a7c15ull >> (64 - CU_RESV_FILTER_BITS));
}

void cu_resv_set(struct cu_warp *w, unsigned lane, const uint8_t *host, unsigned size_B, uint64_t value)
{
    struct hw_cu_array *a = w->cu->array;

    cu_resv_drop(w, 1u << lane);
    w->reserved |= 1u << lane;
    w->resv_host[lane] = host;
    w->resv_B[lane] = (uint8_t)size_B;
    w->resv_value[lane] = value;
    w->resv_now = w->now;
    a->resv_filter[place(host)]++;
    a->resv_live++;
}

bool cu_resv_holds(const struct cu_warp *w, unsigned lane, const uint8_t *host, unsigned size_B)
{
    return w->reserved >> lane & 1 && w->resv_host[lane] == host && w->resv_B[lane] == size_B;
}

void cu_resv_drop(struct cu_warp *w, uint32_t lanes)
{
    struct hw_cu_array *a = w->cu->array;

    for (uint32_t m = w->reserved & lanes; m; m &= m - 1) {
        assert(a->resv_live && a->resv_filter[place(w->resv_host[cu_first_lane(m)])]);
        a->resv_filter[place(w->resv_host[cu_first_lane(m)])]--;
        a->resv_live--;
    }
    w->reserved &= ~lanes;
}

void cu_resv_age(struct cu_warp *w)
{
    if (w->now - w->resv_now > FORGET_CYCLES)
        cu_resv_drop(w, CU_ALL);
}

static void end_overlapping(struct hw_cu_array *a, const uint8_t *host, uint64_t size_B)
{
    for (uint32_t i = 0; i < a->config.cu_count; i++) {
        for (uint32_t k = 0; k < a->config.warps_per_cu; k++) {
            struct cu_warp *w = &a->cus[i].warps[k];

            for (uint32_t m = w->reserved; m; m &= m - 1) {
                unsigned l = cu_first_lane(m);

                if (w->resv_host[l] < host + size_B && host < w->resv_host[l] + w->resv_B[l])
                    cu_resv_drop(w, 1u << l);
            }
        }
    }
}

void cu_resv_written(struct hw_cu_array *a, const uint8_t *host, uint64_t size_B)
{
    const uint8_t *first = (const uint8_t *)((uintptr_t)host & ~(uintptr_t)7);

    for (const uint8_t *p = first; p < host + size_B; p += 8) {
        if (a->resv_filter[place(p)]) {
            end_overlapping(a, host, size_B);
            return;
        }
    }
}
