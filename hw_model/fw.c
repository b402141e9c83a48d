/* SPDX-License-Identifier: MIT */
/* fw.c - firmware boot handshake and the self-test command: requests that finish after some device time. */
#include "device.h"
#include "fault_plan.h"

#define HW_FW_VERSION 0x00010000u       /* the firmware of this model: 1.0 */
#define HW_FW_VERSION_ODD 0x00020000u   /* what hw.fw.version reports without an argument */

static void fw_start(struct hw_device *dev)
{
    struct umd_fault_hit hit;
    uint64_t now_ns = hw_clock_now(&dev->clock);
    if (atomic_exchange(&dev->fw_asked, false) && !umd_fault(UMD_FAULT_HW_FW_BOOT, (struct umd_fault_where){ 0 }, &hit))
        dev->fw_due_ns = now_ns + dev->profile.fw_boot_ns;
    if (atomic_exchange(&dev->selftest_asked, false))
        dev->selftest_due_ns = now_ns + dev->profile.selftest_ns;
}

static void fw_finish_boot(struct hw_device *dev)
{
    struct umd_fault_hit hit;
    uint32_t version = HW_FW_VERSION;
    dev->fw_due_ns = HW_NEVER;
    if (umd_fault(UMD_FAULT_HW_FW_VERSION, (struct umd_fault_where){ 0 }, &hit))
        version = hit.arg_count ? (uint32_t)hit.args[0] : HW_FW_VERSION_ODD;
    atomic_store(&dev->regs[HW_REG_FW_VERSION], version);
    atomic_store(&dev->regs[HW_REG_FW_STATUS], PETREL_FW_READY);
}

static void fw_finish_selftest(struct hw_device *dev)
{
    uint64_t bad = 0;
    dev->selftest_due_ns = HW_NEVER;
    enum petrel_selftest result = hw_ecc_selftest(dev, &bad);
    atomic_store(&dev->regs[HW_REG_SELFTEST_ADDR], bad);
    atomic_store(&dev->regs[HW_REG_SELFTEST], result);
}

void hw_fw_service(struct hw_device *dev)
{
    fw_start(dev);
    uint64_t now_ns = hw_clock_now(&dev->clock);
    if (dev->fw_due_ns <= now_ns)
        fw_finish_boot(dev);
    if (dev->selftest_due_ns <= now_ns)
        fw_finish_selftest(dev);
}

uint64_t hw_fw_next_ns(const struct hw_device *dev)
{
    return dev->fw_due_ns < dev->selftest_due_ns ? dev->fw_due_ns : dev->selftest_due_ns;
}
