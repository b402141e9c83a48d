/* SPDX-License-Identifier: MIT */
/* mmio.c - register reads and writes; widths, offsets and rights come from the tables of petrel_regs.h. */
#include "device.h"
#include "fault_plan.h"
#include "record.h"

UMD_LOG_MODULE("hw.mmio");

enum hw_reg_access { HW_ACCESS_NONE, HW_ACCESS_RO, HW_ACCESS_RW };

struct hw_reg_info {
    uint8_t index;
    uint8_t width;       /* bits; 0: no register here */
    uint8_t access;
};

#define HW_GLOBAL_END 0x0300u
static const struct hw_reg_info hw_global_map[HW_GLOBAL_END / 4] = {
#define REG(name_, off_, width_, access_, ...) [(off_) / 4] = { HW_REG_##name_, width_, HW_ACCESS_##access_ },
    PETREL_REGS(REG)
#undef REG
};
static const struct hw_reg_info hw_ring_map[PETREL_RING_STRIDE / 4] = {
#define RING_REG(name_, width_, access_) [PETREL_RING_##name_ / 4] = { HW_RING_##name_, width_, HW_ACCESS_##access_ },
    HW_RING_REGS(RING_REG)
#undef RING_REG
};
static const uint64_t hw_reset_values[HW_REG_COUNT] = {
#define REG(name_, off_, width_, access_, reset_, text_) [HW_REG_##name_] = (reset_),
    PETREL_REGS(REG)
#undef REG
};
#define REG(name_, off_, width_, ...) \
    _Static_assert((off_) < HW_GLOBAL_END && (off_) % ((width_) / 8) == 0, "register " #name_ " is misplaced");
PETREL_REGS(REG)
#undef REG

void hw_regs_init(struct hw_device *dev)
{
    const struct hw_profile *p = &dev->profile;
    struct umd_fault_hit hit;
    for (uint32_t i = 0; i < HW_REG_COUNT; i++)
        atomic_store(&dev->regs[i], hw_reset_values[i]);
    if (umd_fault(UMD_FAULT_HW_REVISION, (struct umd_fault_where){ 0 }, &hit))
        atomic_store(&dev->regs[HW_REG_REVISION], hit.arg_count ? (uint32_t)hit.args[0] : PETREL_REVISION_NEWEST + 1);
    atomic_store(&dev->regs[HW_REG_CU_COUNT], p->cu.cu_count);
    atomic_store(&dev->regs[HW_REG_WARPS_PER_CU], p->cu.warps_per_cu);
    atomic_store(&dev->regs[HW_REG_LOCAL_B], p->cu.local_B);
    atomic_store(&dev->regs[HW_REG_CLOCK_KHZ], p->clock_khz);
    atomic_store(&dev->regs[HW_REG_VRAM_SIZE], p->vram_B);
    atomic_store(&dev->regs[HW_REG_SYSMEM_SIZE], p->sysmem_B);
}

/* What an offset names. width 0: nothing, or not with this width. */
static struct hw_reg_info mmio_find(struct hw_device *dev, uint32_t off, uint8_t width, struct hw_ring **ring_out)
{
    const uint32_t first = PETREL_RING_REG(0, BASE), end = first + PETREL_RING_COUNT * PETREL_RING_STRIDE;
    struct hw_reg_info info = { 0 };
    *ring_out = NULL;
    if (off % 4 != 0) {
        ;
    } else if (off < HW_GLOBAL_END) {
        info = hw_global_map[off / 4];
    } else if (off >= first && off < end) {
        *ring_out = &dev->rings[(off - first) / PETREL_RING_STRIDE];
        info = hw_ring_map[(off - first) % PETREL_RING_STRIDE / 4];
    }
    if (info.width != width) {
        UMD_LOG(UMD_LOG_DEBUG, "no such register off=0x%x width=%u has_width=%u", off, width, info.width);
        info.width = 0;
    }
    return info;
}

static uint64_t ring_status(const struct hw_ring *ring)
{
    if (hw_ring_reg(ring, HW_RING_FAULT) != PETREL_FAULT_NONE)
        return PETREL_RING_FAULTED;
    if (hw_ring_reg(ring, HW_RING_SIZE_DW) == 0)
        return PETREL_RING_OFF;
    return hw_ring_reg(ring, HW_RING_RPTR) != hw_ring_reg(ring, HW_RING_WPTR) ? PETREL_RING_BUSY : PETREL_RING_IDLE;
}

static uint64_t mmio_read(struct hw_device *dev, uint32_t off, uint8_t width)
{
    struct hw_ring *ring;
    if (atomic_load(&dev->off_bus))
        return UINT64_MAX;
    struct hw_reg_info info = mmio_find(dev, off, width, &ring);
    if (info.width == 0)
        return 0;
    uint64_t v;
    if (ring && info.index == HW_RING_STATUS)
        v = ring_status(ring);
    else if (ring)
        v = hw_ring_reg(ring, info.index);
    else if (info.index == HW_REG_CLOCK_NS)
        v = hw_clock_now(&dev->clock);
    else if (info.index == HW_REG_RESET)
        v = atomic_load(&dev->reset_asked) | hw_reg(dev, HW_REG_RESET);
    else
        v = hw_reg(dev, info.index);
    /* It may have gone while we read. */
    return atomic_load(&dev->off_bus) ? UINT64_MAX : v;
}

static void ring_write(struct hw_ring *ring, enum hw_ring_reg reg, uint64_t v)
{
    const bool asks = reg == HW_RING_WPTR || reg == HW_RING_PREEMPT;
    if (reg == HW_RING_PREEMPT)
        v = v ? 1 : 0;
    if (asks)
        hw_clock_hold(&ring->dev->clock);
    hw_ring_set(ring, reg, v);
    if (asks)
        hw_ask(ring->dev);
}

static void fw_control_write(struct hw_device *dev, uint64_t v)
{
    uint64_t off = PETREL_FW_OFF;
    atomic_store(&dev->regs[HW_REG_FW_CONTROL], v);
    hw_clock_hold(&dev->clock);
    if (v != 1 || !atomic_compare_exchange_strong(&dev->regs[HW_REG_FW_STATUS], &off, PETREL_FW_BOOTING))
        v = 0; /* boots once per power-up */
    if (v == 1)
        atomic_store(&dev->fw_asked, true);
    hw_ask(dev);
}

static void reset_write(struct hw_device *dev, uint64_t v)
{
    hw_clock_hold(&dev->clock);
    atomic_fetch_or(&dev->reset_asked, (uint32_t)v & HW_RESET_MASK);
    if (hw_on_device_thread(dev))
        hw_service_reset(dev);
    else
        hw_ask(dev);
}

static void mmio_write(struct hw_device *dev, uint32_t off, uint8_t width, uint64_t v)
{
    struct hw_ring *ring;
    if (atomic_load(&dev->off_bus))
        return;
    struct hw_reg_info info = mmio_find(dev, off, width, &ring);
    if (info.width == 0 || info.access != HW_ACCESS_RW)
        return;
    if (ring) {
        ring_write(ring, info.index, v);
        return;
    }
    switch ((enum hw_reg)info.index) {
    case HW_REG_FW_CONTROL:
        fw_control_write(dev, v);
        return;
    case HW_REG_SELFTEST:
        if (v != 1)
            return;
        hw_clock_hold(&dev->clock);
        atomic_store(&dev->regs[HW_REG_SELFTEST], PETREL_SELFTEST_RUNNING);
        atomic_store(&dev->selftest_asked, true);
        hw_ask(dev);
        return;
    case HW_REG_IH_STATUS:
        atomic_fetch_and(&dev->regs[HW_REG_IH_STATUS], ~(v & 1u));
        return;
    case HW_REG_RESET:
        reset_write(dev, v);
        return;
    case HW_REG_TIMER_NS:
        atomic_store(&dev->regs[HW_REG_TIMER_NS], v);
        hw_kick(dev);
        return;
    default:
        atomic_store(&dev->regs[info.index], v);
        return;
    }
}

uint32_t hw_read32(struct hw_device *dev, uint32_t off)
{
    return (uint32_t)mmio_read(dev, off, 32);
}

uint64_t hw_read64(struct hw_device *dev, uint32_t off)
{
    return mmio_read(dev, off, 64);
}

void hw_write32(struct hw_device *dev, uint32_t off, uint32_t v)
{
    mmio_write(dev, off, 32, v);
}

void hw_write64(struct hw_device *dev, uint32_t off, uint64_t v)
{
    mmio_write(dev, off, 64, v);
}
