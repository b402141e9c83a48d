/* SPDX-License-Identifier: MIT */
/* winsys.h - the whole kernel boundary of the UMD: a carrier moves ioctls, maps and events to a kernel driver. */
#ifndef UMD_WINSYS_H
#define UMD_WINSYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <umd/umd_diag.h>

struct umd_winsys;       /* a carrier that is up, with its devices */
struct umd_winsys_file;  /* an open device file */

struct umd_winsys_config {
    const char *carrier;       /**< "direct" or "loopback" */
    uint32_t device_count, expected_count;
    bool stepped, functional;
    const char *profile;       /**< NULL: default */
    uint64_t vram_B, watchdog_ns; /**< 0: default */
    uint32_t host_threads;     /**< of the simulated device; 0: the profile's */
};

/** What a failed operation has to tell where the call itself has no place for it. */
struct umd_winsys_story {
    bool have;
    umdErrorDetail detail;     /**< valid if have */
};

/*
 * ioctl and read follow the system calls: 0 or a count, or -errno. Failing Petrel ioctls write their record to error_ptr; a failure of the
 * carrier itself, of a DRM core ioctl or of mmap leaves its record in the story, where the carrier can have it.
 * A carrier may be called from any thread. mmap: NULL with *error_out = -errno.
 */
struct umd_winsys_ops {
    const char *name;
    umdStatus (*init)(const struct umd_winsys_config *config, void **priv_out, uint32_t *device_count_out);
    void (*fini)(void *priv);
    umdStatus (*open)(void *priv, uint32_t index, void **file_out);
    void (*close)(void *file);
    int (*ioctl)(void *file, unsigned long cmd, void *arg, struct umd_winsys_story *story);
    ssize_t (*read)(void *file, void *buf, size_t size_B, uint64_t timeout_ns);
    void *(*mmap)(void *file, uint64_t offset, size_t size_B, int *error_out, struct umd_winsys_story *story);
    int (*munmap)(void *file, void *addr, size_t size_B);
};
extern const struct umd_winsys_ops umd_winsys_direct, umd_winsys_loopback;

/** Brings the carrier up. Codes: UMD_ERR_CONFIG_VALUE (carrier unknown), UMD_ERR_INIT_* as the kernel driver says, UMD_ERR_INIT_CARRIER. */
UMD_MUST_CHECK umdStatus umd_winsys_create(const struct umd_winsys_config *config, struct umd_winsys **ws_out);
void umd_winsys_destroy(struct umd_winsys *ws);
uint32_t umd_winsys_device_count(const struct umd_winsys *ws);
UMD_MUST_CHECK umdStatus umd_winsys_open(struct umd_winsys *ws, uint32_t index, struct umd_winsys_file **file_out);
void umd_winsys_close(struct umd_winsys_file *file);
/**
 * A Petrel ioctl with its record: fills arg's leading error_ptr, and on failure makes the driver's record the thread's open one,
 * with a "winsys" hop. Value: UMD_SUCCESS or the record's code; UMD_STATUS_NOT_READY for a PETREL_WAIT whose time is up, which is no
 * failure of the driver and has no record: `stage` tells where the job stands.
 */
UMD_MUST_CHECK umdStatus umd_winsys_ioctl(struct umd_winsys_file *file, unsigned long cmd, void *arg);
/** A DRM core ioctl: the driver's record where the carrier brings it, else one is raised here from errno. */
UMD_MUST_CHECK umdStatus umd_winsys_core_ioctl(struct umd_winsys_file *file, unsigned long cmd, void *arg);
ssize_t umd_winsys_read(struct umd_winsys_file *file, void *buf, size_t size_B, uint64_t timeout_ns);
UMD_MUST_CHECK umdStatus umd_winsys_mmap(struct umd_winsys_file *file, uint64_t offset, size_t size_B, void **map_out);
void umd_winsys_munmap(struct umd_winsys_file *file, void *addr, size_t size_B);

#endif
