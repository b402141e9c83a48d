/* SPDX-License-Identifier: MIT */
/* profile.h - the figures of one device: sizes, clocks, latencies, bandwidths. */
#ifndef HW_PROFILE_H
#define HW_PROFILE_H

#include <stdint.h>

#include <umd/umd_diag.h>

#include "cu/cu.h"

struct hw_profile {
    uint32_t clock_khz;
    uint64_t vram_B, sysmem_B;
    struct hw_cu_config cu;      /**< scratch and translate are set by the device */
    uint32_t link_B_per_clk, sdma_B_per_clk;
    uint32_t packet_clk, launch_clk, slice_clk;
    uint64_t fw_boot_ns, selftest_ns;
};

/** NULL or "petrel-p1": the built-in figures. Else a path; keys it lacks keep the built-in figure. UMD_ERR_CONFIG_VALUE, UMD_ERR_MEM_HOST_ALLOC_FAILED. */
UMD_MUST_CHECK umdStatus hw_profile_load(const char *name, struct hw_profile *profile_out);

#endif
