/* SPDX-License-Identifier: MIT */
/*
 * ecc.c - VRAM self-test. Simplified: marches over one word per address line and both ends, not over every cell, since VRAM is
 * sparse on the host; a cell that the fault plan broke is always among the tested.
 */
#include "device.h"
#include "fault_plan.h"

/* A cell that lost bit 0: what the test reads back through it is wrong. */
struct ecc_cell {
    bool broken;
    uint64_t at;
};

static uint64_t ecc_read(const struct hw_device *dev, const struct ecc_cell *cell, uint64_t at)
{
    uint64_t v = __atomic_load_n((uint64_t *)((uint8_t *)dev->vram.cpu + at), __ATOMIC_RELAXED);
    return cell->broken && cell->at == at ? v ^ 1u : v;
}

/* Both polarities at one word; its content comes back. */
static bool ecc_test_word(const struct hw_device *dev, const struct ecc_cell *cell, uint64_t at)
{
    static const uint64_t patterns[] = { 0x5555555555555555ull, 0xaaaaaaaaaaaaaaaaull };
    uint64_t *word = (uint64_t *)((uint8_t *)dev->vram.cpu + at);
    uint64_t keep = __atomic_load_n(word, __ATOMIC_RELAXED);
    bool good = true;
    for (unsigned i = 0; i < 2; i++) {
        __atomic_store_n(word, patterns[i], __ATOMIC_RELAXED);
        good = good && ecc_read(dev, cell, at) == patterns[i];
    }
    __atomic_store_n(word, keep, __ATOMIC_RELAXED);
    return good;
}

enum petrel_selftest hw_ecc_selftest(struct hw_device *dev, uint64_t *bad_out)
{
    struct umd_fault_hit hit;
    struct ecc_cell cell = { .broken = umd_fault(UMD_FAULT_HW_ECC_SELFTEST, (struct umd_fault_where){ 0 }, &hit) };
    const uint64_t last = dev->vram.size_B - 8;
    if (cell.broken)
        cell.at = (hit.arg_count ? hit.args[0] % dev->vram.size_B : dev->vram.size_B / 2) & ~7ull;
    for (uint64_t at = 0; at <= last; at = at ? at * 2 : 8) {
        if (!ecc_test_word(dev, &cell, at)) {
            *bad_out = at;
            return PETREL_SELFTEST_FAIL;
        }
    }
    const uint64_t extra[] = { last, cell.at };
    for (unsigned i = 0; i < 2; i++) {
        if (!ecc_test_word(dev, &cell, extra[i])) {
            *bad_out = extra[i];
            return PETREL_SELFTEST_FAIL;
        }
    }
    return PETREL_SELFTEST_PASS;
}
