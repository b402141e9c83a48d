/* SPDX-License-Identifier: MIT */
/* petrel_drm.h - ioctls of the Petrel kernel driver, beside the DRM core ioctls of libdrm's drm.h. */
#ifndef PETREL_DRM_H
#define PETREL_DRM_H

#include <drm.h>

#include <umd/umd_diag.h>

/*
 * How this interface evolves
 * - Structs only grow at the end; the driver takes the caller's size, zero-extends shorter ones and rejects non-zero tails of longer ones (E2BIG is never
 *   returned: EINVAL, as the DRM core does). New behaviour is asked for by a new flag; unknown flags and non-zero pads are EINVAL.
 * - Numbers and meanings are never used again. A new query is a new PETREL_INFO_* value.
 * - All structs are the same for 32- and 64-bit clients: 64-bit fields are 8-aligned, pointers are __u64.
 *
 * Errors: an ioctl returns -errno; if error_ptr is not 0, the driver also writes its record there (umdErrorDetail, whose size_B the caller has set):
 * code, figures, and hops of the layers below (A5). On success nothing is written there, but by a WAIT whose fence had failed.
 * Every struct begins with error_ptr. Common errors: EFAULT bad pointer; EINVAL flag, pad or value; ENOENT unknown handle; ENOMEM; ENODEV device lost.
 */

#define DRM_PETREL_INFO          0x00
#define DRM_PETREL_GEM_CREATE    0x01
#define DRM_PETREL_GEM_MMAP      0x02
#define DRM_PETREL_VM_CREATE     0x03
#define DRM_PETREL_VM_DESTROY    0x04
#define DRM_PETREL_VM_BIND       0x05
#define DRM_PETREL_QUEUE_CREATE  0x06
#define DRM_PETREL_QUEUE_DESTROY 0x07
#define DRM_PETREL_QUEUE_QUERY   0x08
#define DRM_PETREL_EXEC          0x09
#define DRM_PETREL_WAIT          0x0a

/** Facts of a device. */
struct drm_petrel_info {
    __u64 error_ptr;
    __u64 vram_size_B, vram_free_B, vram_largest_free_B;
    __u64 sysmem_size_B, sysmem_free_B;
    __u64 device_ns;             /**< device clock now */
    __u64 host_ns;               /**< CLOCK_MONOTONIC of the same instant */
    __u64 va_start, va_end;      /**< what VM_BIND accepts */
    __u64 watchdog_ns;           /**< device time without progress after which the watchdog acts */
    __u64 reset_count;
    __u32 cu_count, warps_per_cu, local_B, clock_khz, private_B, regs_per_cu;
    __u32 fw_version, hw_revision;
    __u32 max_block;             /**< work-items per workgroup */
    __u32 lost_code;             /**< 0, or the umdStatus (as __s32) the device was lost with */
    __u8 uuid[16];
    char name[32];
};

#define DRM_PETREL_GEM_VRAM   (1u << 0)  /**< exactly one of VRAM, SYSTEM */
#define DRM_PETREL_GEM_SYSTEM (1u << 1)
#define DRM_PETREL_GEM_CPU_VISIBLE (1u << 2) /**< GEM_MMAP will be used */
struct drm_petrel_gem_create {
    __u64 error_ptr;
    __u64 size_B;     /**< in: rounded up to 4 KiB; out: the rounded size. New memory reads zero */
    __u32 flags;
    __u32 handle;     /**< out; DRM_IOCTL_GEM_CLOSE frees it */
};

struct drm_petrel_gem_mmap {
    __u64 error_ptr;
    __u32 handle;
    __u32 pad;
    __u64 offset;     /**< out: for mmap(2) on the device file */
};

struct drm_petrel_vm_create { __u64 error_ptr; __u32 flags; __u32 vm_id; /**< out */ };
struct drm_petrel_vm_destroy { __u64 error_ptr; __u32 vm_id; __u32 pad; /**< EBUSY while queues use it */ };

#define DRM_PETREL_BIND_MAP 0u
#define DRM_PETREL_BIND_UNMAP 1u
#define DRM_PETREL_BIND_READ  (1u << 0)
#define DRM_PETREL_BIND_WRITE (1u << 1)
#define DRM_PETREL_BIND_EXEC  (1u << 2)
/** Synchronous: translations are in effect on return. A range in use by a running job may be unmapped; the job faults. */
struct drm_petrel_vm_bind {
    __u64 error_ptr;
    __u32 vm_id;
    __u32 op;         /**< DRM_PETREL_BIND_MAP, _UNMAP */
    __u32 handle;     /**< GEM handle for MAP, 0 for UNMAP */
    __u32 flags;      /**< rights for MAP */
    __u64 offset_B;   /**< in the buffer, 4 KiB multiple */
    __u64 va;         /**< 4 KiB multiple; 2 MiB multiples get large pages */
    __u64 size_B;     /**< 4 KiB multiple. MAP over a mapped range is EEXIST-free: EINVAL with figures */
};

#define DRM_PETREL_QUEUE_COMPUTE 0u
#define DRM_PETREL_QUEUE_COPY 1u
struct drm_petrel_queue_create {
    __u64 error_ptr;
    __u32 vm_id;
    __u32 engine;     /**< DRM_PETREL_QUEUE_COMPUTE, _COPY */
    __s32 priority;   /**< -1 low, 0 normal, 1 high */
    __u32 flags;      /**< 0 */
    __u64 context_id; /**< the client's id, carried through every record */
    __u32 max_jobs;   /**< jobs queued at most, 0: 64 */
    __u32 queue_id;   /**< out */
};
/** Cancels what has not started, kills what runs, waits for neither; out-fences signal with -ECANCELED. */
struct drm_petrel_queue_destroy { __u64 error_ptr; __u32 queue_id; __u32 pad; };

enum drm_petrel_queue_state {
    DRM_PETREL_QUEUE_OK,
    DRM_PETREL_QUEUE_BANNED,        /**< a job of the context failed */
    DRM_PETREL_QUEUE_LOST,          /**< with the device */
    DRM_PETREL_QUEUE_CANCELLED,     /**< a job was cancelled, and all behind it: takes work again after an EXEC that names its record */
};
struct drm_petrel_queue_query {
    __u64 error_ptr;
    __u32 queue_id;
    __u32 state;            /**< out: enum drm_petrel_queue_state */
    __s32 code;             /**< out: umdStatus of the ban, loss or cancellation, else 0 */
    __u32 pad;
    umdRecordId record;     /**< out: its record */
    __u64 jobs_submitted, jobs_done, jobs_failed, jobs_cancelled; /**< out */
};

#define DRM_PETREL_SYNC_SIGNAL (1u << 0) /**< out-sync; else in-sync */
struct drm_petrel_sync {
    __u32 handle;    /**< syncobj */
    __u32 flags;
    __u64 point;     /**< timeline point, 0: binary */
};
struct drm_petrel_ib {
    __u64 va;        /**< GPU address of packets, 4-aligned, mapped for READ */
    __u32 size_dw;   /**< 1 .. 65535 */
    __u32 pad;
};
/** All or nothing: on an error no job exists and no sync has changed. EAGAIN: queue full. EIO: queue banned. ECANCELED: queue cancelled, see `resume`. ENODEV: lost. */
struct drm_petrel_exec {
    __u64 error_ptr;
    __u32 queue_id;
    __u32 ib_count;      /**< 0 .. 64; 0: syncs only */
    __u64 ibs_ptr;       /**< struct drm_petrel_ib[] */
    __u32 sync_count;    /**< 0 .. 64 */
    __u32 flags;         /**< 0 */
    __u64 syncs_ptr;     /**< struct drm_petrel_sync[] */
    __u64 cmdbuf_id;     /**< the client's, named in reports */
    __u64 job_id;        /**< out: 1 .. */
    umdRecordId resume;  /**< record of the cancellation that the client knows of, seq 0: none. If it is the queue's last, the queue takes work again */
};

/** Where a job stands; of a wait that timed out (B6). */
enum drm_petrel_stage {
    DRM_PETREL_STAGE_NONE,          /**< nothing submitted for the point */
    DRM_PETREL_STAGE_DEPENDENCY,    /**< waits for an in-sync; `root_job` is the producer at the root, 0: none submitted */
    DRM_PETREL_STAGE_QUEUED,        /**< ready, behind other work */
    DRM_PETREL_STAGE_RUNNING,       /**< running; progress was seen not long ago, or it has not run for long */
    DRM_PETREL_STAGE_STALLED,       /**< running, no progress for an eighth of watchdog_ns, 1 ms, and twice its longest pause; or for watchdog_ns */
    DRM_PETREL_STAGE_SIGNAL_LOST,   /**< finished, its interrupt was lost (and recovered now) */
    DRM_PETREL_STAGE_DONE,
    DRM_PETREL_STAGE_CYCLE,         /**< waits for work that waits, in the end, for itself: `root_job` for `cycle_job`, and that for `root_job` */
};
#define DRM_PETREL_WAIT_ALL (1u << 0)          /**< else any */
#define DRM_PETREL_WAIT_DEVICE_CLOCK (1u << 1) /**< timeout is device time; else host CLOCK_MONOTONIC */
/**
 * Relative time-out (UINT64_MAX: for ever), not shortened or ended by signals. Returns 0 when done, ETIME on time-out.
 * A fence that failed also ends the wait: 0 is returned, `fence_error` is negative and error_ptr gets the job's record, so the caller must look.
 */
struct drm_petrel_wait {
    __u64 error_ptr;
    __u64 syncs_ptr;     /**< struct drm_petrel_sync[], flags 0 */
    __u32 sync_count;    /**< 1 .. 64 */
    __u32 flags;
    __u64 timeout_ns;
    __u32 first;         /**< out: index of the first signalled (any) or first failed (all) */
    __s32 fence_error;   /**< out: 0 or -errno of that fence */
    __u32 stage;         /**< out: enum drm_petrel_stage, of the first unsignalled on time-out */
    __u32 pad;
    __u64 job_id, queue_id, root_job;                  /**< out: job that was waited for */
    __u64 submit_ns, start_ns, progress_ns, end_ns;    /**< out: device time */
    __u64 progress;                                    /**< out: workgroups or KiB completed by the job */
    __u64 root_queue;    /**< out: queue of root_job */
    __u64 cycle_job;     /**< out: of STAGE_CYCLE, else 0 */
    __u32 hops;          /**< out: jobs that wait for one another from the awaited one on to root_job */
    __u32 pad2;
};

/* Error events, by read(2) on the device file: whole events only; EAGAIN when there is none and O_NONBLOCK. */
#define DRM_PETREL_EVENT_ERROR 0x80000001u     /**< a job of this file failed, its queue is banned (INNOCENT_PARTIAL: cancelled) */
#define DRM_PETREL_EVENT_LOST 0x80000002u      /**< the device is lost */
#define DRM_PETREL_EVENT_WARNING 0x80000003u   /**< recovered: interrupt lost, long-running */
#define DRM_PETREL_EVENT_OVERFLOW 0x80000004u  /**< events were dropped: record has UMD_ERR_HW_EVENTS_DROPPED and how many */
#define DRM_PETREL_EVENT_CANCELLED 0x80000005u /**< what a job waited for failed: it and all behind it are cancelled, and so is the queue */
struct drm_petrel_event {
    struct drm_event base;      /**< type, length */
    __u64 device_ns;
    __u64 queue_id, context_id, job_id, cmdbuf_id;
    __u32 engine;               /**< DRM_PETREL_QUEUE_* */
    __u32 fault;                /**< enum petrel_fault, 0: none */
    __u64 va, pc, wg, fault_info, fault_data;
    __u64 reset_count;
    umdErrorDetail record;
};

#define PETREL_IOWR_(nr_, type_) DRM_IOWR(DRM_COMMAND_BASE + (nr_), struct type_)
#define DRM_IOCTL_PETREL_INFO          PETREL_IOWR_(DRM_PETREL_INFO, drm_petrel_info)
#define DRM_IOCTL_PETREL_GEM_CREATE    PETREL_IOWR_(DRM_PETREL_GEM_CREATE, drm_petrel_gem_create)
#define DRM_IOCTL_PETREL_GEM_MMAP      PETREL_IOWR_(DRM_PETREL_GEM_MMAP, drm_petrel_gem_mmap)
#define DRM_IOCTL_PETREL_VM_CREATE     PETREL_IOWR_(DRM_PETREL_VM_CREATE, drm_petrel_vm_create)
#define DRM_IOCTL_PETREL_VM_DESTROY    PETREL_IOWR_(DRM_PETREL_VM_DESTROY, drm_petrel_vm_destroy)
#define DRM_IOCTL_PETREL_VM_BIND       PETREL_IOWR_(DRM_PETREL_VM_BIND, drm_petrel_vm_bind)
#define DRM_IOCTL_PETREL_QUEUE_CREATE  PETREL_IOWR_(DRM_PETREL_QUEUE_CREATE, drm_petrel_queue_create)
#define DRM_IOCTL_PETREL_QUEUE_DESTROY PETREL_IOWR_(DRM_PETREL_QUEUE_DESTROY, drm_petrel_queue_destroy)
#define DRM_IOCTL_PETREL_QUEUE_QUERY   PETREL_IOWR_(DRM_PETREL_QUEUE_QUERY, drm_petrel_queue_query)
#define DRM_IOCTL_PETREL_EXEC          PETREL_IOWR_(DRM_PETREL_EXEC, drm_petrel_exec)
#define DRM_IOCTL_PETREL_WAIT          PETREL_IOWR_(DRM_PETREL_WAIT, drm_petrel_wait)

#endif
