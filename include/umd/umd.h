/* SPDX-License-Identifier: MIT */
/* umd.h - public API of the Petrel user-mode driver. */
#ifndef UMD_H
#define UMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <umd/umd_diag.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Rules for every call
 * - Arguments are checked first; a call that fails with a code of the "param" range has changed nothing. Outputs (`*_out`) are untouched on failure.
 * - Safe from any thread. Handles are values with a generation, never addresses; a stale one is told apart from a wrong one (D8).
 * - After device loss each call returns the same UMD_ERR_DEV_LOST_* at once; destroy calls free what they own and succeed (B7).
 * - In stepped mode the library belongs to the thread that began it; a call from another one returns UMD_ERR_INIT_STEPPED_THREAD and does nothing.
 * - In a child after fork each call returns UMD_ERR_CTX_FORKED; before umdInit and after the last umdShutdown UMD_ERR_INIT_REQUIRED.
 * - Any call may return UMD_ERR_PARAM_NULL, UMD_ERR_HANDLE_*, UMD_ERR_CTX_*, UMD_ERR_DEV_LOST_*, UMD_ERR_MEM_HOST_ALLOC_FAILED, UMD_ERR_INTERNAL*; each
 *   lists after "Codes:" what else. A call that meets a failed job of its context returns that job's code (UMD_ERR_HW_*, UMD_ERR_EXEC_*), with the
 *   job's record as detail. The whole list of each call is in docs/api-codes.md; anything else leaves as UMD_ERR_INTERNAL_CODE. Positive codes are
 *   no failures and come only from calls that list them.
 * - Structs that begin with size_B grow at their end; a program and a library built with different versions of them fit together by the rule in
 *   umd_diag.h. UMD_..._SIZE_V1 is the size of the first version, the smallest that is taken.
 * - Times are nanoseconds of the device's clock unless named otherwise; sizes are bytes (_B).
 */

#define UMD_VERSION_MAJOR 0
#define UMD_VERSION_MINOR 1
#define UMD_VERSION (UMD_VERSION_MAJOR << 16 | UMD_VERSION_MINOR)
#define UMD_TIMEOUT_INFINITE UINT64_MAX

typedef struct umdDevice { uint64_t id; } umdDevice;
typedef struct umdContext { uint64_t id; } umdContext;
typedef struct umdModule { uint64_t id; } umdModule;
typedef struct umdKernel { uint64_t id; } umdKernel;
typedef struct umdStream { uint64_t id; } umdStream;
typedef struct umdEvent { uint64_t id; } umdEvent;
typedef uint64_t umdDevicePtr;   /**< GPU virtual address */

/* ---- Library ---- */

typedef struct umdInitDesc {
    uint32_t size_B;          /**< sizeof(umdInitDesc) */
    uint32_t version;         /**< UMD_VERSION of the header the program was built with */
    const char *carrier;      /**< NULL: $PETREL_CARRIER, else "direct" */
    uint32_t device_count;    /**< simulated devices; 0: $PETREL_DEVICES, else 1 */
    uint32_t expected_count;  /**< fail with UMD_ERR_INIT_DEVICE_COUNT unless that many are found; 0: device_count */
    const char *profile;      /**< NULL: $PETREL_PROFILE, else "petrel-p1" */
    uint64_t vram_B;          /**< 0: the profile's */
    uint64_t watchdog_ns;     /**< device time; 0: $PETREL_WATCHDOG_MS, else 100 ms */
    uint64_t seed;            /**< stepped mode: of clocks and faults */
    bool stepped;             /**< one host thread, this one, and virtual time (or $PETREL_MODE=stepped) */
    bool functional;          /**< timing model off (or $PETREL_MODE=functional) */
    const char *faults;       /**< fault specification, or "@FILE", or an absolute path; NULL: $PETREL_FAULTS; a start that fails takes it back; see docs/faults.md */
} umdInitDesc;
#define UMD_INIT_DESC_SIZE_V1 (offsetof(umdInitDesc, faults) + sizeof(const char *))

/**
 * Brings the stack up; counted, umdShutdown gives back. desc NULL: all defaults. The first call decides: while the stack is up, size_B and version
 * of desc are checked and the rest is not looked at, right or wrong. A program built with a newer header than the library gets
 * UMD_ERR_INIT_VERSION before its size_B is looked at; one built with an older header runs.
 * Codes: UMD_ERR_PARAM_STRUCT_SIZE, UMD_ERR_CONFIG_VALUE, UMD_ERR_FAULT_SPEC, UMD_ERR_INIT_*, UMD_ERR_RES_*, UMD_ERR_MEM_*.
 */
UMD_API UMD_MUST_CHECK umdStatus umdInit(const umdInitDesc *desc);
/** Gives one umdInit back; the last destroys what is left (reported in the log as leaked) and powers down. */
UMD_API UMD_MUST_CHECK umdStatus umdShutdown(void);
/** UMD_VERSION of the library's own header. Any time, any thread. */
UMD_API uint32_t umdGetVersion(void);

/* ---- Devices ---- */

typedef struct umdDeviceInfo {
    uint32_t size_B;          /**< sizeof(umdDeviceInfo), set by the caller and left as it is */
    char name[32];
    uint8_t uuid[16];
    uint64_t vram_size_B, vram_free_B, vram_largest_free_B;
    uint32_t cu_count, warps_per_cu, local_B, clock_khz, max_block, private_B;
    uint32_t fw_version, hw_revision;
    uint64_t device_ns;       /**< device clock now */
    uint64_t watchdog_ns;
    uint64_t reset_count;
    uint64_t vram_high_water_B; /**< most bytes this process had allocated at once */
    umdStatus lost_code;      /**< UMD_SUCCESS while alive */
    uint32_t reserved;        /**< 0 */
} umdDeviceInfo;
#define UMD_DEVICE_INFO_SIZE_V1 (offsetof(umdDeviceInfo, reserved) + sizeof(uint32_t))

UMD_API UMD_MUST_CHECK umdStatus umdDeviceGetCount(uint32_t *count_out);
/** Codes: UMD_ERR_PARAM_RANGE. */
UMD_API UMD_MUST_CHECK umdStatus umdDeviceGet(uint32_t index, umdDevice *device_out);
/** Works on a lost device with what is known. Codes: UMD_ERR_PARAM_STRUCT_SIZE. */
UMD_API UMD_MUST_CHECK umdStatus umdDeviceGetInfo(umdDevice device, umdDeviceInfo *info);

/**
 * The record that the loss of the device began with: the same for each thread and at any time. detail->size_B must be set. Before it is
 * lost, there is none. Codes: UMD_STATUS_NOT_READY, UMD_ERR_PARAM_STRUCT_SIZE.
 */
UMD_API UMD_MUST_CHECK umdStatus umdDeviceGetFirstCause(umdDevice device, umdErrorDetail *detail);

/* ---- Contexts ---- */

/** One address space and its queues; the scope of a sticky fault. Codes: UMD_ERR_MEM_*, UMD_ERR_RES_HANDLES. */
UMD_API UMD_MUST_CHECK umdStatus umdContextCreate(umdDevice device, umdContext *context_out);
/**
 * Destroys all that it owns; running work is cancelled, waiters wake with UMD_ERR_WAIT_INTERRUPTED or UMD_ERR_CTX_DESTROYED. The error callback of a
 * failure that a call has returned has run when this returns (unless this is called from a callback of another context); warnings that are still
 * with the kernel driver go untold.
 */
UMD_API UMD_MUST_CHECK umdStatus umdContextDestroy(umdContext context);
/** UMD_SUCCESS, or the sticky code of the context or its device. */
UMD_API UMD_MUST_CHECK umdStatus umdContextGetStatus(umdContext context);
/** The record that the failure of the context, or the loss of its device, began with. As umdDeviceGetFirstCause. Codes: UMD_STATUS_NOT_READY, UMD_ERR_PARAM_STRUCT_SIZE. */
UMD_API UMD_MUST_CHECK umdStatus umdContextGetFirstCause(umdContext context, umdErrorDetail *detail);

/**
 * Asynchronous errors and warnings of the context (D7). Called on a driver thread (stepped: inside a wait) without locks held; may call query and destroy calls
 * of other objects, not umdContextDestroy of this context or umdShutdown. detail lives for the call only; umdGetErrorScene(detail->id, ...) has the
 * errors of the context before it. NULL clears; failures that a call could meet before are still told to the callback that was set, and a
 * running call has ended when this returns.
 */
typedef void (*umdErrorCallback)(umdContext context, const umdErrorDetail *detail, void *user);
UMD_API UMD_MUST_CHECK umdStatus umdContextSetErrorCallback(umdContext context, umdErrorCallback callback, void *user);

/* ---- Memory ---- */

#define UMD_MEM_HOST_VISIBLE (1u << 0) /**< umdMemMap works */
#define UMD_MEM_SYSTEM       (1u << 1) /**< placed in host memory, behind the link; implies HOST_VISIBLE */
/**
 * alignment_B 0: 256. Memory reads zero.
 * Codes: UMD_ERR_MEM_SIZE, _ALIGNMENT, _ALLOC_FAILED, _FRAGMENTED, _VA_EXHAUSTED, _CORRUPT, UMD_ERR_RES_HANDLES, UMD_ERR_PARAM_FLAGS.
 */
UMD_API UMD_MUST_CHECK umdStatus umdMemAlloc(umdContext context, uint64_t size_B, uint64_t alignment_B, uint32_t flags, umdDevicePtr *ptr_out);
/** ptr 0 is fine. Work submitted before must have finished with it: the call waits for all jobs of the context. Codes: UMD_ERR_MEM_POINTER, _DOUBLE_FREE. */
UMD_API UMD_MUST_CHECK umdStatus umdMemFree(umdContext context, umdDevicePtr ptr);
/** Host address of a HOST_VISIBLE allocation, valid until it is freed. Codes: UMD_ERR_PARAM_FLAGS if it is not, UMD_ERR_MEM_POINTER, _MAP_FAILED. */
UMD_API UMD_MUST_CHECK umdStatus umdMemMap(umdContext context, umdDevicePtr ptr, void **host_out);

/* ---- Modules and kernels ---- */

/** Loads a code object built by petrel-cc; image is copied. Codes: UMD_ERR_MODULE_FORMAT, _ISA, UMD_ERR_MEM_*, UMD_ERR_RES_HANDLES. */
UMD_API UMD_MUST_CHECK umdStatus umdModuleLoad(umdContext context, const void *image, size_t size_B, umdModule *module_out);
UMD_API UMD_MUST_CHECK umdStatus umdModuleLoadFile(umdContext context, const char *path, umdModule *module_out); /**< Codes: those of umdModuleLoad; UMD_ERR_RES_FILE, UMD_ERR_RES_DESCRIPTORS */
UMD_API UMD_MUST_CHECK umdStatus umdModuleUnload(umdModule module); /**< waits for the context's work */
/** The kernel lives as long as its module. Codes: UMD_ERR_MODULE_SYMBOL, whose record has the nearest name, UMD_ERR_RES_HANDLES. */
UMD_API UMD_MUST_CHECK umdStatus umdModuleGetKernel(umdModule module, const char *name, umdKernel *kernel_out);

/* ---- Streams and events ---- */

typedef enum umdStreamKind { UMD_STREAM_COMPUTE = 0, UMD_STREAM_COPY = 1 } umdStreamKind;
/** Work of one stream runs in order. A copy stream takes copies and fills only. priority -1, 0, 1. Codes: UMD_ERR_RES_QUEUES, _HANDLES, UMD_ERR_MEM_*, UMD_ERR_PARAM_RANGE. */
UMD_API UMD_MUST_CHECK umdStatus umdStreamCreate(umdContext context, umdStreamKind kind, int priority, umdStream *stream_out);
/** Cancels what has not finished: its events are never reached, and what waits for them in other streams is cancelled. Waits for no other stream. Unread errors of the stream are reported in the log. */
UMD_API UMD_MUST_CHECK umdStatus umdStreamDestroy(umdStream stream);
/**
 * Waits for all work submitted before. timeout_ns of device time. The stream's unread errors come back here, one a call, the first one
 * first (B11); who waits for an event hears of that point only, and takes none away.
 * Codes: UMD_STATUS_TIMEOUT_PROGRESS, UMD_ERR_WAIT_*, and the code of a failed job (UMD_ERR_HW_*, UMD_ERR_EXEC_*).
 */
UMD_API UMD_MUST_CHECK umdStatus umdStreamSynchronize(umdStream stream, uint64_t timeout_ns);
/** Never waits. Codes: UMD_STATUS_NOT_READY, UMD_ERR_WAIT_SIGNAL_LOST, _INTERRUPTED, or the code of a failed job. */
UMD_API UMD_MUST_CHECK umdStatus umdStreamQuery(umdStream stream);
/**
 * Later work of the stream waits for the event's last record. An event never recorded is no wait. If what it waits for is cancelled, all work
 * of the stream behind the wait is cancelled as well, and so is what comes until a call on the stream has returned UMD_ERR_EXEC_CANCELLED; then
 * the stream works again. Codes: UMD_ERR_SUBMIT_*, UMD_ERR_EXEC_*.
 */
UMD_API UMD_MUST_CHECK umdStatus umdStreamWaitEvent(umdStream stream, umdEvent event);

/** Codes: UMD_ERR_MEM_*, UMD_ERR_RES_HANDLES. */
UMD_API UMD_MUST_CHECK umdStatus umdEventCreate(umdContext context, umdEvent *event_out);
/** Never waits, and ends nothing: work and waits that use its record go on as they would. */
UMD_API UMD_MUST_CHECK umdStatus umdEventDestroy(umdEvent event);
/**
 * Marks this point of the stream, in place of the event's last record: that one, reached or not, has no say any more in what the event tells.
 * Of records by several threads in one stream the one behind the others stays. On failure the last record stays.
 * Codes: UMD_ERR_SUBMIT_*; UMD_ERR_MEM_*, UMD_ERR_RES_HANDLES where an event is recorded anew.
 */
UMD_API UMD_MUST_CHECK umdStatus umdEventRecord(umdEvent event, umdStream stream);
/** Never waits. Codes: those of umdStreamQuery; UMD_ERR_WAIT_NOT_SUBMITTED for an event that was never recorded. */
UMD_API UMD_MUST_CHECK umdStatus umdEventQuery(umdEvent event);
/** As umdStreamSynchronize. Codes: those of umdStreamSynchronize; UMD_ERR_WAIT_NOT_SUBMITTED for an event that was never recorded. */
UMD_API UMD_MUST_CHECK umdStatus umdEventSynchronize(umdEvent event, uint64_t timeout_ns);
/** Device time between two recorded, finished events. Codes: those of umdEventQuery; UMD_ERR_PARAM_RANGE if end was before start. */
UMD_API UMD_MUST_CHECK umdStatus umdEventElapsed(umdEvent start, umdEvent end, uint64_t *ns_out);

/* ---- Work ---- */

/** Asynchronous, in stream order. Host memory is copied to or from staging: src may be reused when umdMemcpyHtoD returns; dst of DtoH is valid once the call returns (it waits). Codes: UMD_ERR_MEM_POINTER, UMD_ERR_COPY_RANGE, UMD_ERR_SUBMIT_*. */
UMD_API UMD_MUST_CHECK umdStatus umdMemcpyHtoD(umdStream stream, umdDevicePtr dst, const void *src, uint64_t size_B);
/** Waits for the stream. Codes: those of umdMemcpyHtoD; UMD_ERR_WAIT_* and the code of a failed job; UMD_ERR_MEM_*, UMD_ERR_RES_HANDLES. */
UMD_API UMD_MUST_CHECK umdStatus umdMemcpyDtoH(umdStream stream, void *dst, umdDevicePtr src, uint64_t size_B);
/** The two must not overlap. Codes: those of umdMemcpyHtoD; UMD_ERR_PARAM_RANGE. */
UMD_API UMD_MUST_CHECK umdStatus umdMemcpyDtoD(umdStream stream, umdDevicePtr dst, umdDevicePtr src, uint64_t size_B);
/** Fills with an element of 1, 2 or 4 bytes, the low ones of pattern; size_B a multiple of it. Codes: those of umdMemcpyHtoD; UMD_ERR_PARAM_RANGE. */
UMD_API UMD_MUST_CHECK umdStatus umdMemset(umdStream stream, umdDevicePtr dst, uint32_t pattern, uint32_t element_B, uint64_t size_B);

typedef struct umdLaunchDesc {
    uint32_t size_B;         /**< sizeof(umdLaunchDesc) */
    uint32_t local_B;        /**< dynamic local memory, on top of the kernel's own */
    uint32_t grid[3];        /**< workgroups */
    uint32_t block[3];       /**< work-items per workgroup */
    const void *args;        /**< the kernel's argument struct, copied */
    uint32_t args_B;         /**< its size */
    uint32_t flags;          /**< 0 */
} umdLaunchDesc;
#define UMD_LAUNCH_DESC_SIZE_V1 (offsetof(umdLaunchDesc, flags) + sizeof(uint32_t))
/**
 * The kernel runs later; how it ended comes from a wait, the callback, or the next call.
 * Codes: UMD_ERR_PARAM_STRUCT_SIZE, _FLAGS, _RANGE (a copy stream), UMD_ERR_LAUNCH_*, UMD_ERR_SUBMIT_*.
 */
UMD_API UMD_MUST_CHECK umdStatus umdLaunchKernel(umdStream stream, umdKernel kernel, const umdLaunchDesc *desc);

#ifdef __cplusplus
}
#endif
#endif /* UMD_H */
