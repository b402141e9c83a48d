/* SPDX-License-Identifier: MIT */
/* kmd.h - entry of the kernel driver simulator: file operations of a Petrel device node, reached by dlopen. */
#ifndef KMD_H
#define KMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * libpetrel_kmd.so exports one symbol, petrel_kmd_entry, and holds the device model. All functions are safe from any thread and return
 * 0 (or a count) or -errno, as a system call would; a failing call leaves its record open on the thread (umd_record_export), ioctls also
 * write it to error_ptr. The caller opens a record scope around each call.
 */
#define PETREL_KMD_ABI 2u

struct petrel_kmd_config {
    uint32_t device_count;     /**< devices to power up, 1 .. 8 */
    uint32_t expected_count;   /**< devices that must be found, 0: device_count */
    bool stepped;              /**< HW_RUN_STEPPED; waits pump the device */
    const char *profile;       /**< NULL: petrel-p1 */
    uint64_t vram_B;           /**< 0: the profile's */
    uint64_t watchdog_ns;      /**< device time without progress, 0: 100 ms */
    bool functional;           /**< timing off */
    uint32_t host_threads;     /**< that compute units are spread over, 0: the profile's */
};

struct petrel_file;

struct petrel_kmd_ops {
    uint32_t abi;              /**< PETREL_KMD_ABI */
    /** Powers devices up, boots firmware, runs self-tests. Counted: the first call probes, later ones (same config or NULL) share. -errno as the record says. */
    int (*probe)(const struct petrel_kmd_config *config, uint32_t *count_out);
    /** Gives one probe back; the last powers down. Files must be closed. */
    void (*remove)(void);
    int (*open)(uint32_t index, bool render_node, struct petrel_file **file_out);
    /** Last close: cancels the file's jobs, frees everything it owns. */
    void (*close)(struct petrel_file *file);
    /** User pointers in and behind arg are read and written by copy_from_user/copy_to_user only. */
    int (*ioctl)(struct petrel_file *file, unsigned long cmd, void *arg);
    /** One or more whole events; blocks up to timeout_ns of host time (0: not at all; -EAGAIN when none). */
    ssize_t (*read)(struct petrel_file *file, void *buf, size_t size_B, uint64_t timeout_ns);
    /** Maps a buffer's offset from GEM_MMAP; MADV_DONTFORK. Address or a negative errno in *error_out. */
    void *(*mmap)(struct petrel_file *file, uint64_t offset, size_t size_B, int *error_out);
    int (*munmap)(struct petrel_file *file, void *addr, size_t size_B);
};
/** Symbol: "petrel_kmd_entry". */
typedef const struct petrel_kmd_ops *(*petrel_kmd_entry_fn)(void);
#define PETREL_KMD_ENTRY_SYMBOL "petrel_kmd_entry"

#endif
