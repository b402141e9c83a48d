/* SPDX-License-Identifier: MIT */
/* log_site.c - call sites of the log by number: of every library that is loaded. */
#include <stdatomic.h>
#include <stddef.h>

#include "log_ring.h"
#include "log_site.h"

#define RANGES_MAX 256u /* linked objects with sites, ever, in one process; sites beyond have no number and are not logged but for errors */

static struct range {
    _Atomic(umdLogSite *) sites; /* NULL: gone */
    uint32_t first_id, count, users;
} ranges[RANGES_MAX];
static _Atomic(uint32_t) range_count, site_count;

static struct range *find_range(const umdLogSite *sites)
{
    for (uint32_t i = 0; i < atomic_load(&range_count); i++)
        if (atomic_load(&ranges[i].sites) == sites)
            return &ranges[i];
    return NULL;
}

void umd_log_sites_add(umdLogSite *sites, umdLogSite *end)
{
    struct range *r = sites == end ? NULL : find_range(sites);
    uint32_t at = atomic_load(&range_count), first = atomic_load(&site_count) + 1;

    if (r) {
        r->users++;
        return;
    }
    if (sites == end || at == RANGES_MAX || (size_t)(end - sites) > UMD_ENTRY_SITE_MAX - (first - 1))
        return;
    ranges[at].first_id = first;
    ranges[at].count = (uint32_t)(end - sites);
    ranges[at].users = 1;
    for (uint32_t i = 0; i < ranges[at].count; i++)
        sites[i].id = first + i;
    atomic_store(&ranges[at].sites, sites);
    atomic_store(&site_count, first - 1 + ranges[at].count);
    atomic_store_explicit(&range_count, at + 1, memory_order_release);
}

void umd_log_sites_remove(umdLogSite *sites)
{
    struct range *r = sites ? find_range(sites) : NULL;

    if (r && --r->users == 0)
        atomic_store(&r->sites, NULL);
}

const umdLogSite *umd_log_site_find(uint32_t id)
{
    uint32_t n = atomic_load_explicit(&range_count, memory_order_acquire);

    for (uint32_t i = 0; i < n; i++) {
        umdLogSite *sites = atomic_load_explicit(&ranges[i].sites, memory_order_acquire);
        if (id - ranges[i].first_id < ranges[i].count)
            return sites ? &sites[id - ranges[i].first_id] : NULL;
    }
    return NULL;
}
