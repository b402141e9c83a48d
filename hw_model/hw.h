/* SPDX-License-Identifier: MIT */
/* hw.h - the whole boundary of the device model: a PCIe-like device with registers, VRAM and an interrupt line. */
#ifndef HW_H
#define HW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <umd/umd_diag.h>

struct hw_device;

enum hw_run_mode {
    HW_RUN_THREADED, /**< a device thread runs while work is pending; idle time passes at wall rate */
    HW_RUN_STEPPED,  /**< nothing runs but in hw_device_pump, on the caller's thread */
};

struct hw_device_desc {
    const char *profile;     /**< "petrel-p1" or a path to an .ini file; NULL: petrel-p1 */
    uint64_t vram_B;         /**< 0: the profile's */
    uint64_t sysmem_B;       /**< 0: the profile's */
    uint32_t host_threads;   /**< that compute units are spread over, 64 at most; 0: the profile's. Stepped: 1 */
    enum hw_run_mode mode;
    /** Interrupt line. Called on the device thread (or in pump), with no model lock held. May read and write registers, not destroy. */
    void (*irq)(void *priv);
    void *irq_priv;
};

/**
 * Powers a device up. Codes: UMD_ERR_CONFIG_VALUE (profile, sizes, host threads), UMD_ERR_MEM_HOST_ALLOC_FAILED, UMD_ERR_RES_DESCRIPTORS,
 * UMD_ERR_RES_THREADS, UMD_ERR_MEM_MAP_FAILED. On failure *dev_out is untouched.
 */
UMD_API UMD_MUST_CHECK umdStatus hw_device_create(const struct hw_device_desc *desc, struct hw_device **dev_out);
/** Powers down: stops the thread, no irq call after return. NULL is fine. Not from the irq callback. */
UMD_API void hw_device_destroy(struct hw_device *dev);

/* Registers of petrel_regs.h. Any thread; never wait for running work; a reset is carried out by the device soon after. */
UMD_API uint32_t hw_read32(struct hw_device *dev, uint32_t off);
UMD_API uint64_t hw_read64(struct hw_device *dev, uint32_t off);
UMD_API void hw_write32(struct hw_device *dev, uint32_t off, uint32_t v);
UMD_API void hw_write64(struct hw_device *dev, uint32_t off, uint64_t v);

/** Memory as the bus sees it. The memfds live as long as the device; offsets are physical addresses. */
struct hw_aperture {
    void *cpu;        /**< flat map of all of it, for the kernel driver */
    int fd;           /**< memfd behind it; mmap of a range gives CPU maps of buffers */
    uint64_t size_B;
};
UMD_API struct hw_aperture hw_vram(struct hw_device *dev);
UMD_API struct hw_aperture hw_sysmem(struct hw_device *dev);
/** False once the device fell off the bus. Only for the carrier's page-table of CPU maps, not for diagnosis: that reads registers. */
UMD_API bool hw_on_bus(struct hw_device *dev);

/**
 * Stepped mode: runs pending work for at most budget_ns of device time; when nothing can run, jumps to the next timer
 * or by budget_ns. Interrupt callbacks happen inside. True: something ran or an interrupt was delivered.
 */
UMD_API bool hw_device_pump(struct hw_device *dev, uint64_t budget_ns);

#endif
