/* SPDX-License-Identifier: MIT */
/* idr.c - small integer ids for objects of a file. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "drm_core.h"
#include "record.h"

UMD_LOG_MODULE("kmd.drm");

static bool grow(struct drm_idr *idr)
{
    uint32_t size = idr->size ? idr->size * 2 : 16;
    void **slots = umd_alloc(size * sizeof(*slots));
    if (!slots)
        return false;
    if (idr->slots)
        memcpy(slots, idr->slots, idr->size * sizeof(*slots));
    umd_free(idr->slots);
    idr->next = idr->size;
    idr->slots = slots;
    idr->size = size;
    return true;
}

int drm_idr_add(struct drm_idr *idr, void *obj, uint32_t limit, uint32_t *id_out)
{
    assert(obj);
    if (idr->used >= limit)
        return UMD_FAIL_ERRNO(UMD_ERR_RES_HANDLES, "used=%u limit=%u", idr->used, limit);
    if (idr->used == idr->size && !grow(idr))
        return -ENOMEM;
    while (idr->slots[idr->next])
        idr->next = (idr->next + 1) % idr->size;
    uint32_t slot = idr->next;
    idr->slots[slot] = obj;
    idr->used++;
    idr->next = (slot + 1) % idr->size;
    *id_out = slot + 1;
    return 0;
}

void *drm_idr_find(const struct drm_idr *idr, uint32_t id)
{
    return id >= 1 && id <= idr->size ? idr->slots[id - 1] : NULL;
}

void *drm_idr_remove(struct drm_idr *idr, uint32_t id)
{
    void *obj = drm_idr_find(idr, id);
    if (obj) {
        idr->slots[id - 1] = NULL;
        idr->used--;
    }
    return obj;
}

void *drm_idr_pop(struct drm_idr *idr)
{
    for (uint32_t id = 1; idr->used && id <= idr->size; id++) {
        if (idr->slots[id - 1])
            return drm_idr_remove(idr, id);
    }
    return NULL;
}

void drm_idr_fini(struct drm_idr *idr)
{
    assert(idr->used == 0);
    umd_free(idr->slots);
    memset(idr, 0, sizeof(*idr));
}
