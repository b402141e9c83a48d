/* SPDX-License-Identifier: MIT */
/* resv.c - reservations of lr: which lanes hold one on which bytes, and every store that ends them. */
/*
 * A lane has at most one, on the bytes that its lr read, told by their place in host memory: so it does not matter by which
 * address they are reached. While no lane has one, a store looks at one counter. While some have, it looks at a filter by
 * 8 bytes, and only where that says so at the lanes. What the CPU and the copy engine write is not seen here; sc compares the
 * value, too. A reservation that nobody asks for is forgotten after two epochs of the warp, so that stores are fast again.
 *
 * With host threads all that changes does so under a lock. A store looks at counter and filter without it, behind its write, and
 * without a fence between: it may miss a reservation that is made in the same moment. Then sc's comparison sees the store, but for
 * one of the value that lr has read: which is as if it had come before the lr.
 */
#include <assert.h>

#include "cu_priv.h"

#define FORGET_CYCLES 2048u

static void lock(struct hw_cu_array *a)
{
    if (a->pool)
        umd_mutex_lock(&a->resv_lock);
}

static void unlock(struct hw_cu_array *a)
{
    if (a->pool)
        umd_mutex_unlock(&a->resv_lock);
}

static uint32_t *filter_of(struct hw_cu_array *a, const uint8_t *host)
{
    return &a->resv_filter[((uint64_t)(uintptr_t)host >> 3) * 0x9e3779b97f4a7c15ull >> (64 - CU_RESV_FILTER_BITS)];
}

static void add(uint32_t *counter, uint32_t n)
{
    __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}

static void drop_locked(struct cu_warp *w, uint32_t lanes)
{
    struct hw_cu_array *a = w->cu->array;

    for (uint32_t m = w->reserved & lanes; m; m &= m - 1) {
        uint32_t *filter = filter_of(a, w->resv_host[cu_first_lane(m)]);

        assert(a->resv_live && *filter);
        add(filter, UINT32_MAX);
        add(&a->resv_live, UINT32_MAX);
    }
    __atomic_store_n(&w->reserved, w->reserved & ~lanes, __ATOMIC_RELAXED);
}

void cu_resv_drop(struct cu_warp *w, uint32_t lanes)
{
    if (!__atomic_load_n(&w->reserved, __ATOMIC_RELAXED))
        return;
    lock(w->cu->array);
    drop_locked(w, lanes);
    unlock(w->cu->array);
}

uint64_t cu_resv_load(struct cu_warp *w, unsigned lane, const uint8_t *host, unsigned size_B)
{
    struct hw_cu_array *a = w->cu->array;
    uint64_t value;

    lock(a);
    drop_locked(w, 1u << lane);
    __atomic_store_n(&w->reserved, w->reserved | 1u << lane, __ATOMIC_RELAXED);
    w->resv_host[lane] = host;
    w->resv_B[lane] = (uint8_t)size_B;
    w->resv_now = w->now;
    add(filter_of(a, host), 1);
    add(&a->resv_live, 1);
    value = cu_atomic_load(host, size_B); /* a store from here on sees the reservation */
    w->resv_value[lane] = value;
    unlock(a);
    return value;
}

void cu_resv_age(struct cu_warp *w)
{
    if (w->now - w->resv_now > FORGET_CYCLES)
        cu_resv_drop(w, CU_ALL);
}

static void end_overlapping_locked(struct hw_cu_array *a, const uint8_t *host, uint64_t size_B)
{
    for (uint32_t i = 0; i < a->config.cu_count; i++) {
        for (uint32_t k = 0; k < a->config.warps_per_cu; k++) {
            struct cu_warp *w = &a->cus[i].warps[k];

            for (uint32_t m = w->reserved; m; m &= m - 1) {
                unsigned l = cu_first_lane(m);

                if (w->resv_host[l] < host + size_B && host < w->resv_host[l] + w->resv_B[l])
                    drop_locked(w, 1u << l);
            }
        }
    }
}

bool cu_resv_store(struct cu_warp *w, unsigned lane, uint8_t *host, unsigned size_B, uint64_t value)
{
    struct hw_cu_array *a = w->cu->array;
    uint64_t old = w->resv_value[lane];
    bool ok;

    lock(a);
    ok = w->reserved >> lane & 1 && w->resv_host[lane] == host && w->resv_B[lane] == size_B &&
         cu_atomic_replace(host, size_B, &old, value);
    drop_locked(w, 1u << lane);
    if (ok)
        end_overlapping_locked(a, host, size_B);
    unlock(a);
    return ok;
}

void cu_resv_written(struct hw_cu_array *a, const uint8_t *host, uint64_t size_B)
{
    const uint8_t *first = (const uint8_t *)((uintptr_t)host & ~(uintptr_t)7);

    for (const uint8_t *p = first; p < host + size_B; p += 8) {
        if (!__atomic_load_n(filter_of(a, p), __ATOMIC_RELAXED))
            continue;
        lock(a);
        end_overlapping_locked(a, host, size_B);
        unlock(a);
        return;
    }
}
