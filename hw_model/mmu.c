/* SPDX-License-Identifier: MIT */
/* mmu.c - page-table walk. Simplified: walks cost no device time, and only the compute units keep a TLB. */
#include "device.h"

/* Both kinds of memory as the tables name them. */
static const struct hw_aperture *mmu_aperture(const struct hw_device *dev, bool system)
{
    return system ? &dev->sysmem : &dev->vram;
}

static bool mmu_inside(const struct hw_aperture *ap, uint64_t at, uint64_t size_B)
{
    return size_B <= ap->size_B && at <= ap->size_B - size_B;
}

static uint32_t mmu_check_rights(uint64_t pte, uint32_t access)
{
    static const uint64_t need[] = {
        [PETREL_ACCESS_READ] = PETREL_PTE_READ,
        [PETREL_ACCESS_WRITE] = PETREL_PTE_WRITE,
        [PETREL_ACCESS_EXEC] = PETREL_PTE_EXEC,
        [PETREL_ACCESS_ATOMIC] = PETREL_PTE_READ | PETREL_PTE_WRITE,
    };
    return (pte & need[access & 3u]) == need[access & 3u] ? PETREL_FAULT_NONE : PETREL_FAULT_ACCESS;
}

/* The driver writes entries while we walk: each is loaded once, whole. */
static uint64_t mmu_load_pte(const struct hw_device *dev, uint64_t table, uint32_t index)
{
    if (table % PETREL_PAGE_SIZE != 0 || !mmu_inside(&dev->vram, table, PETREL_PAGE_SIZE))
        return 0;
    const uint64_t *entry = (const uint64_t *)((const uint8_t *)dev->vram.cpu + table) + index;
    return __atomic_load_n(entry, __ATOMIC_ACQUIRE);
}

uint32_t hw_mmu_translate(void *priv, uint64_t root, uint64_t va, uint32_t access, struct hw_xlat *xlat_out)
{
    const struct hw_device *dev = priv;
    if (va >= PETREL_VA_USER_END)
        return PETREL_FAULT_PAGE; /* apertures are not for page tables, and there is nothing above 48 bits */
    uint64_t table = root;
    for (int level = PETREL_PT_LEVELS - 1; level >= 0; level--) {
        uint64_t pte = mmu_load_pte(dev, table, PETREL_PT_INDEX(va, level));
        if (!(pte & PETREL_PTE_VALID))
            return PETREL_FAULT_PAGE;
        if (!(pte & PETREL_PTE_LEAF)) {
            table = pte & PETREL_PTE_ADDR_MASK;
            continue;
        }
        const bool system = pte & PETREL_PTE_SYSTEM;
        const uint64_t page_B = level == 0 ? PETREL_PAGE_SIZE : 1ull << PETREL_HUGE_SHIFT;
        const uint64_t at = pte & PETREL_PTE_ADDR_MASK;
        if (level > 1 || at % page_B != 0 || !mmu_inside(mmu_aperture(dev, system), at, page_B))
            return PETREL_FAULT_PAGE;
        uint32_t fault = mmu_check_rights(pte, access);
        if (fault != PETREL_FAULT_NONE)
            return fault;
        *xlat_out = (struct hw_xlat){
            .host = (uint8_t *)mmu_aperture(dev, system)->cpu + at,
            .page_va = va & ~(page_B - 1),
            .page_B = page_B,
            .rights = (uint32_t)(pte & (PETREL_PTE_READ | PETREL_PTE_WRITE | PETREL_PTE_EXEC)),
            .system = system,
        };
        return PETREL_FAULT_NONE;
    }
    return PETREL_FAULT_PAGE; /* level 0 without LEAF */
}

uint8_t *hw_mmu_ptr(struct hw_device *dev, uint64_t root, uint64_t va, uint32_t access, uint64_t *run_B, bool *system_out,
                    uint32_t *fault_out)
{
    if (root == HW_ROOT_PHYS) {
        if (va >= dev->vram.size_B) {
            *fault_out = PETREL_FAULT_PAGE;
            return NULL;
        }
        *run_B = dev->vram.size_B - va;
        *system_out = false;
        return (uint8_t *)dev->vram.cpu + va;
    }
    struct hw_xlat xlat;
    uint32_t fault = hw_mmu_translate(dev, root, va, access, &xlat);
    if (fault != PETREL_FAULT_NONE) {
        *fault_out = fault;
        return NULL;
    }
    *run_B = xlat.page_va + xlat.page_B - va;
    *system_out = xlat.system;
    return xlat.host + (va - xlat.page_va);
}

void hw_mmu_invalidate(struct hw_device *dev)
{
    hw_cu_invalidate(dev->cus);
}
