/* SPDX-License-Identifier: MIT */
/* winsys_carrier.h - what the carriers that hold the kernel driver in this process share: loading and opening it. */
#ifndef UMD_WINSYS_CARRIER_H
#define UMD_WINSYS_CARRIER_H

#include "kmd_sim/kmd.h"
#include "winsys.h"

struct umd_carrier {
    const struct petrel_kmd_ops *kmd;
    bool stepped;
};

struct umd_carrier_file {
    struct umd_carrier *carrier;
    struct petrel_file *file;
};

/** Loads the kernel driver and probes. UMD_ERR_INIT_CARRIER, or what the driver says. */
UMD_MUST_CHECK umdStatus umd_carrier_init(struct umd_carrier *carrier, const struct umd_winsys_config *config, uint32_t *count_out);
void umd_carrier_fini(struct umd_carrier *carrier);
UMD_MUST_CHECK umdStatus umd_carrier_open(struct umd_carrier *carrier, uint32_t index, struct umd_carrier_file *file);
void umd_carrier_close(struct umd_carrier_file *file);
/** The call into the driver, in a record scope of its own: what it leaves open, since it could not go out by error_ptr, comes in the story. */
int umd_carrier_ioctl(struct umd_carrier_file *file, unsigned long cmd, void *arg, struct umd_winsys_story *story);
ssize_t umd_carrier_read(struct umd_carrier_file *file, void *buf, size_t size_B, uint64_t timeout_ns);
void *umd_carrier_mmap(struct umd_carrier_file *file, uint64_t offset, size_t size_B, int *error_out, struct umd_winsys_story *story);
int umd_carrier_munmap(struct umd_carrier_file *file, void *addr, size_t size_B);
/** A failure of the carrier itself, which the thread has open, goes into the story. Value: -errno. */
int umd_carrier_fail(struct umd_winsys_story *story, umdStatus st);

#endif
