/* SPDX-License-Identifier: MIT */
/* device.h - one opened device: its file, its facts, its event thread, its loss. */
#ifndef UMD_DEVICE_H
#define UMD_DEVICE_H

#include <pthread.h>

#include <uapi/petrel_drm.h>
#include <umd/umd.h>

#include "handle.h"
#include "sys.h"
#include "winsys/winsys.h"

struct umd_device {
    struct umd_object obj;
    uint32_t index;
    bool stepped;
    struct umd_winsys_file *file;
    struct drm_petrel_info info;        /* as of the start: limits never change */

    pthread_t event_thread;
    bool event_thread_runs;
    _Atomic(bool) stop;

    struct umd_mutex lock;              /* rank 10: contexts */
    struct umd_context *contexts;
    _Atomic(uint32_t) context_count;
    struct umd_mutex state_lock;        /* rank 44: loss of the device, failures of its contexts and streams */
    struct umd_cond changed;            /* one of those arrived; with state_lock */
    _Atomic(int32_t) lost_code;
    umdErrorDetail lost;                /* written once, before lost_code */
    bool loss_told;                     /* contexts have heard of it; under state_lock */
    uint64_t events_drained;            /* times that the event thread had handled all there were; under state_lock */

    _Atomic(uint64_t) allocated_B, high_water_B;
    _Atomic(uint64_t) ring_full_waits;  /* submissions that found the queue full and waited */
    _Atomic(uint64_t) wait_retries;     /* waits of the driver itself that could not be made, and were tried again */
};

UMD_MUST_CHECK umdStatus umd_device_create(struct umd_winsys *ws, uint32_t index, bool stepped, struct umd_device **dev_out);
/** All contexts are gone. NULL is fine. */
void umd_device_destroy(struct umd_device *dev);
/** UMD_SUCCESS, or the code the device was lost with, whose record becomes the thread's open one. */
UMD_MUST_CHECK umdStatus umd_device_check(struct umd_device *dev);
static inline bool umd_device_is_lost(struct umd_device *dev)
{
    return atomic_load_explicit(&dev->lost_code, memory_order_acquire) != UMD_SUCCESS;
}
/** First loss wins. True: it was news. */
bool umd_device_set_lost(struct umd_device *dev, const umdErrorDetail *detail);
/**
 * The record that the failure of a device or context began with; the failure itself where no other is known. UMD_STATUS_NOT_READY: none failed.
 * UMD_ERR_PARAM_NULL, UMD_ERR_PARAM_STRUCT_SIZE (detail is to be filled in), and those of umd_handle_get.
 */
UMD_MUST_CHECK umdStatus umd_first_cause(uint64_t handle, enum umd_object_type type, umdErrorDetail *detail);
/** Stepped mode: handles the events that have arrived; callbacks run inside. Threaded: the event thread does it. No lock held. */
void umd_device_poll(struct umd_device *dev);
/**
 * Threaded: waits until the event thread has handled what had come by now, or all have heard of a loss. Bounded: it may be in the callback of
 * another context, which waits for something that this caller holds. Not in a callback, which may run on that thread. No lock held.
 */
void umd_device_await_events(struct umd_device *dev);
/** A Petrel ioctl; a loss that comes back is noted. */
UMD_MUST_CHECK umdStatus umd_device_ioctl(struct umd_device *dev, unsigned long cmd, void *arg);
void umd_device_account(struct umd_device *dev, int64_t delta_B);

#endif
