/* SPDX-License-Identifier: MIT */
/* ih.c - the interrupt ring in VRAM and the interrupt line. */
#include "device.h"
#include "fault_plan.h"

static struct umd_fault_where ih_where(void)
{
    return (struct umd_fault_where){ 0 }; /* an interrupt has no context yet: the driver finds it out */
}

/* False: no room, or no ring that could hold the entry. */
static bool ih_write(struct hw_device *dev, const struct petrel_ih_entry *entry)
{
    const uint32_t size = (uint32_t)hw_reg(dev, HW_REG_IH_SIZE);
    const uint64_t base = hw_reg(dev, HW_REG_IH_BASE);
    const uint32_t wptr = (uint32_t)hw_reg(dev, HW_REG_IH_WPTR);
    const uint64_t ring_B = (uint64_t)size * sizeof(*entry);
    if ((size & (size - 1)) != 0 || base % sizeof(*entry) != 0 || ring_B > dev->vram.size_B || base > dev->vram.size_B - ring_B)
        return false;
    if ((uint32_t)(wptr - (uint32_t)hw_reg(dev, HW_REG_IH_RPTR)) >= size)
        return false;
    struct petrel_ih_entry *at = (struct petrel_ih_entry *)((uint8_t *)dev->vram.cpu + base) + (wptr & (size - 1));
    *at = *entry;
    atomic_store(&dev->regs[HW_REG_IH_WPTR], wptr + 1u); /* publishes the entry */
    return true;
}

void hw_ih_raise(struct hw_device *dev, const struct petrel_ih_entry *entry)
{
    struct umd_fault_hit hit;
    if (hw_reg(dev, HW_REG_IH_SIZE) == 0 || atomic_load(&dev->off_bus))
        return;
    if (umd_fault(UMD_FAULT_HW_IRQ_OVERFLOW, ih_where(), &hit) || !ih_write(dev, entry))
        atomic_fetch_or(&dev->regs[HW_REG_IH_STATUS], 1u);
    if (!umd_fault(UMD_FAULT_HW_IRQ_LOST, ih_where(), &hit))
        dev->irq_pending = true;
}

bool hw_ih_deliver(struct hw_device *dev)
{
    if (!dev->irq_pending || atomic_load(&dev->off_bus))
        return false;
    dev->irq_pending = false;
    if (dev->irq)
        dev->irq(dev->irq_priv);
    return true;
}
