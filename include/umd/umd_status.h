/* SPDX-License-Identifier: MIT */
/* umd_status.h - return codes of Petrel. Generated from umd/diag/status.toml by tools/gen/gen_status.py. */
#ifndef UMD_STATUS_H
#define UMD_STATUS_H

/*
 * 0 is success, negative an error, positive a warning or status that only calls which document it return.
 * Values are frozen: none changes its meaning or is used again. An unknown code can be classified by its range:
 *
 *        0 ..      0  success   done
 *        1 ..    999  warning   done or under way; only from calls that document it
 *    -1999 ..  -1000  param     an argument is wrong; nothing was changed
 *    -2999 ..  -2000  resource  a resource is used up or in the wrong state
 *    -3999 ..  -3000  exec      work could not be submitted, or did not complete
 *    -4999 ..  -4000  hw        the device or the kernel driver reports a failure
 *    -5999 ..  -5000  init      the stack could not start
 *    -6999 ..  -6000  internal  a defect of Petrel itself
 */
typedef enum umdStatus {
    /** The call did what it was asked to do. Go on. */
    UMD_SUCCESS = 0,
    /** A query found the work of the stream or event not finished yet. Ask again later, or wait with umdStreamSynchronize or umdEventSynchronize. */
    UMD_STATUS_NOT_READY = 1,
    /** A wait ended by its time-out while the job runs and makes progress. Wait again; the work goes on. */
    UMD_STATUS_TIMEOUT_PROGRESS = 2,
    /** A pointer argument that must not be NULL is NULL. Pass a valid pointer; the record names the argument. */
    UMD_ERR_PARAM_NULL = -1000,
    /** A number is outside the range that the argument documents. Use a value inside the limits that the record states. */
    UMD_ERR_PARAM_RANGE = -1001,
    /** A flag bit is unknown or two flags exclude each other. Clear the bits that the record names. */
    UMD_ERR_PARAM_FLAGS = -1002,
    /** The size field of a description struct is not one that this library knows. Set the size with sizeof, and build against this library's header. */
    UMD_ERR_PARAM_STRUCT_SIZE = -1003,
    /** The handle was never given out by this library. Pass a handle that a create call returned. */
    UMD_ERR_HANDLE_INVALID = -1010,
    /** The object of the handle has been destroyed; the record says when and by which thread. Do not use a handle after its destroy call. */
    UMD_ERR_HANDLE_DESTROYED = -1011,
    /** The handle belongs to an object of another type. Pass a handle of the type that the record names. */
    UMD_ERR_HANDLE_TYPE = -1012,
    /** The object belongs to another context than the other arguments. Use objects of one context in a call. */
    UMD_ERR_HANDLE_CONTEXT = -1013,
    /** The size is zero or larger than the device's memory. Ask for a size between 1 and the limit that the record states. */
    UMD_ERR_MEM_SIZE = -1020,
    /** The alignment is no power of two or above the largest page size. Use a power of two within the limit that the record states. */
    UMD_ERR_MEM_ALIGNMENT = -1021,
    /** The device pointer is not the start of a live allocation of this context. Pass the pointer that umdMemAlloc returned, once. */
    UMD_ERR_MEM_POINTER = -1022,
    /** The device pointer was freed before; the record says when and by which thread. Free each allocation once. */
    UMD_ERR_MEM_DOUBLE_FREE = -1023,
    /** A copy or fill reaches outside the allocation it starts in. Shorten it; the record has the allocation's size and the offset. */
    UMD_ERR_COPY_RANGE = -1024,
    /** The grid or workgroup size is zero or above the device's limit, or their product overflows. Stay within the limits that the record states. */
    UMD_ERR_LAUNCH_DIMENSIONS = -1030,
    /** The kernel arguments have another size than the kernel declares. Pass exactly the kernel's argument struct. */
    UMD_ERR_LAUNCH_ARGUMENTS = -1031,
    /** A workgroup needs more registers, local memory or warps than a compute unit has. Use a smaller workgroup; the record has need and limit. */
    UMD_ERR_LAUNCH_RESOURCES = -1032,
    /** A fault specification does not parse or names an unknown site, action or attribute. Mend the specification at the position that the record states; umd-inject list prints all sites. */
    UMD_ERR_FAULT_SPEC = -1040,
    /** A configuration value (environment, file, profile) is unknown or malformed. Mend the value; the record has key, value and what is allowed. */
    UMD_ERR_CONFIG_VALUE = -1041,
    /** The kernel driver rejected an ioctl argument (unknown flag, non-zero pad, bad handle, bad range). A client of the uAPI corrects the field that the record names; through umd.h this is a defect to report. */
    UMD_ERR_UAPI_ARGUMENT = -1050,
    /** The kernel driver could not read or write the memory that an ioctl points to. Pass mapped memory. */
    UMD_ERR_UAPI_POINTER = -1051,
    /** The ioctl number is not known to this kernel driver. Check that client and driver are of matching versions. */
    UMD_ERR_UAPI_UNKNOWN = -1052,
    /** A GEM, syncobj, VM or queue handle is not known in this file. Pass a handle that this file created and has not destroyed. */
    UMD_ERR_UAPI_HANDLE = -1053,
    /** The ioctl is not allowed on a render node. Use the primary node. */
    UMD_ERR_UAPI_DENIED = -1054,
    /** The image is no ELF code object that this device can load (truncated, wrong class, wrong type). Build the kernels with petrel-cc. */
    UMD_ERR_MODULE_FORMAT = -1060,
    /** The code object is for another machine or needs instructions that the device lacks. Rebuild with petrel-cc for this device; the record has machine and flags. */
    UMD_ERR_MODULE_ISA = -1061,
    /** The module has no kernel of that name. Use a name that the module defines; the record has the nearest. */
    UMD_ERR_MODULE_SYMBOL = -1062,
    /** The context has been or is being destroyed by another thread. Create a new context. */
    UMD_ERR_CTX_DESTROYED = -2000,
    /** The context was banned because its work hung or faulted; the record's cause says which work. Destroy the context and create a new one; mend the kernel that the cause names. */
    UMD_ERR_CTX_BANNED = -2001,
    /** The library was initialised in the parent process and is used in a forked child. Create devices and contexts after fork, or exec a new program. */
    UMD_ERR_CTX_FORKED = -2002,
    /** The object cannot be destroyed yet: others still depend on it. Destroy the dependants that the record counts first. */
    UMD_ERR_CTX_BUSY = -2003,
    /** Device memory is used up. Free memory, or ask for less; the record has free bytes and the largest that fits. */
    UMD_ERR_MEM_ALLOC_FAILED = -2010,
    /** Enough device memory is free in total, but not in one piece. Free neighbours or ask for at most the largest hole, which the record states. */
    UMD_ERR_MEM_FRAGMENTED = -2011,
    /** The host has no memory for the driver's own data. Free host memory and retry. */
    UMD_ERR_MEM_HOST_ALLOC_FAILED = -2012,
    /** The address space has no free range of that size. Unmap ranges or use another context. */
    UMD_ERR_MEM_VA_EXHAUSTED = -2013,
    /** The host could not map the buffer (mappings or address space used up). Unmap buffers, or raise vm.max_map_count. */
    UMD_ERR_MEM_MAP_FAILED = -2014,
    /** The allocator's own bookkeeping does not add up. Save the log and report it; rebuild the context. */
    UMD_ERR_MEM_CORRUPT = -2015,
    /** The process has no file descriptor left. Close descriptors or raise RLIMIT_NOFILE. */
    UMD_ERR_RES_DESCRIPTORS = -2020,
    /** The host could not start a thread. Raise the limit on processes or end threads. */
    UMD_ERR_RES_THREADS = -2021,
    /** The table of handles is full. Destroy objects that are no longer needed. */
    UMD_ERR_RES_HANDLES = -2022,
    /** A file could not be opened, read, written or renamed. See path and errno in the record. */
    UMD_ERR_RES_FILE = -2023,
    /** The device has no queue left. Destroy streams that are no longer needed. */
    UMD_ERR_RES_QUEUES = -2024,
    /** The kernel driver refused the submission for the reason in the cause; nothing was queued. See the cause. */
    UMD_ERR_SUBMIT_FAILED = -3000,
    /** The queue holds as many jobs as it may. Wait for earlier work, then submit again. */
    UMD_ERR_SUBMIT_RING_FULL = -3001,
    /** A job of the stream did not complete; the cause names job, kernel and reason. See the cause. */
    UMD_ERR_EXEC_FAILED = -3010,
    /** The job was cancelled before it started, since its queue or context was destroyed, banned or reset; or it was killed by destroy. Submit again in a healthy context, if it is still wanted. */
    UMD_ERR_EXEC_CANCELLED = -3011,
    /** The job had started when another client's fault reset the engine; it is not run again. Restore the buffers it writes from the last checkpoint and submit again. */
    UMD_ERR_EXEC_INNOCENT_PARTIAL = -3012,
    /** The wait timed out and the job is still queued behind other work. Wait again, or look at the job that the record names as running. */
    UMD_ERR_WAIT_QUEUED = -3020,
    /** The wait timed out and the running job shows no progress. Wait for the watchdog, which decides between long and stuck. */
    UMD_ERR_WAIT_STALLED = -3021,
    /** The wait timed out and the job waits for another queue's work. See the root producer in the record. */
    UMD_ERR_WAIT_DEPENDENCY = -3022,
    /** The work had finished but its signal was lost. Go on; the driver recovered the signal and counted it. */
    UMD_ERR_WAIT_SIGNAL_LOST = -3023,
    /** The wait timed out on a point that nothing has been submitted for. Submit the work that signals it; an event must be recorded first. */
    UMD_ERR_WAIT_NOT_SUBMITTED = -3024,
    /** The wait was ended by another thread: cancel, ban or destroy. Look at the object that the record names. */
    UMD_ERR_WAIT_INTERRUPTED = -3025,
    /** The wait's work was removed by a reset; the device works again. Rebuild the context and restart from the last checkpoint. */
    UMD_ERR_WAIT_RECOVERED = -3026,
    /** The watchdog found the job stuck: no progress, and the engine did not answer. Look at kernel and line in the record; rebuild the context. */
    UMD_ERR_HW_HANG = -4000,
    /** The watchdog found the job running without progress beyond its budget: a loop that does not end. Look at the loop at kernel and line in the record; rebuild the context. */
    UMD_ERR_HW_SPIN = -4001,
    /** A kernel or copy touched an address that is not mapped in its address space. See address, access, kernel and line in the record, and the nearest allocation. */
    UMD_ERR_HW_PAGE_FAULT = -4002,
    /** A kernel or copy touched mapped memory in a way that its page forbids. See address, access and rights in the record. */
    UMD_ERR_HW_ACCESS_FAULT = -4003,
    /** A compute unit met an instruction that it does not know. See pc and data, the bits, in the record; compiler_trap=1: __builtin_trap or a place the compiler holds unreachable, else likely code for another machine. */
    UMD_ERR_HW_ILLEGAL_INSTRUCTION = -4004,
    /** A kernel executed a trap, or a barrier could not be met. See trap code, kernel and line in the record. */
    UMD_ERR_HW_TRAP = -4005,
    /** A ring met a malformed or forbidden packet. See opcode and offset in the record; build command buffers with this library. */
    UMD_ERR_HW_PACKET = -4006,
    /** Memory held an error that ECC can detect but not correct. Restore from a checkpoint; replace the device when it repeats. */
    UMD_ERR_HW_ECC_UNCORRECTED = -4007,
    /** A fence was found signalled without its interrupt; the driver completed the job by polling. Nothing; when it repeats, look at the interrupt path. */
    UMD_ERR_HW_IRQ_LOST = -4008,
    /** A job runs longer than the watchdog's threshold and makes progress. Nothing; shorten the kernel or raise the threshold if it is expected. */
    UMD_ERR_HW_LONG_RUNNING = -4009,
    /** An atomic or instruction fetch met a misaligned address. See address and pc in the record. */
    UMD_ERR_HW_MISALIGNED = -4010,
    /** A work-item left its private memory: its stack needs more than the device gives a lane. Use less stack at the kernel and line in the record: no deep recursion, no large local arrays; private_B is the limit. */
    UMD_ERR_HW_STACK_OVERFLOW = -4011,
    /** The device no longer answers on the bus: reads return all ones. Destroy everything on it; restart on another device, and check link and power. */
    UMD_ERR_DEV_LOST_OFF_BUS = -4100,
    /** A reset did not bring the device back. Destroy everything on it; power-cycle the node. */
    UMD_ERR_DEV_LOST_RESET_FAILED = -4101,
    /** The device was reset more often than its policy allows in a period. Find the first cause in the record before using it again. */
    UMD_ERR_DEV_LOST_TOO_MANY_RESETS = -4102,
    /** No device is present. Check the device configuration. */
    UMD_ERR_INIT_NO_DEVICE = -5000,
    /** Another number of devices is present than configured. Check power and bus of the missing device, or mend the expected count. */
    UMD_ERR_INIT_DEVICE_COUNT = -5001,
    /** The firmware reports a version that this driver does not work with. Install the firmware version that the record names. */
    UMD_ERR_INIT_FW_VERSION = -5002,
    /** The firmware did not complete its boot handshake. Reset the device; when it repeats, the hardware is defective. */
    UMD_ERR_INIT_FW_BOOT = -5003,
    /** The memory self-test at start found an error. Take the device out of service. */
    UMD_ERR_INIT_ECC_SELFTEST = -5004,
    /** The program was built with a newer header than this library. Install a library of at least the version that the record names. */
    UMD_ERR_INIT_VERSION = -5005,
    /** The kernel driver could not be reached or loaded. See path and reason in the record; check the installation. */
    UMD_ERR_INIT_CARRIER = -5006,
    /** The device or this build does not have the feature that was asked for. Do without it, or use another device or build. */
    UMD_ERR_INIT_UNSUPPORTED = -5007,
    /** The library has not been started, or has been shut down. Call umdInit first, and shut down after the last call. */
    UMD_ERR_INIT_REQUIRED = -5008,
    /** A thread called the library in stepped mode, which belongs to the one thread that started it. Call from the thread that started the stack, or run threaded (PETREL_MODE). */
    UMD_ERR_INIT_STEPPED_THREAD = -5009,
    /** An invariant of the driver does not hold. Save the log and report it. */
    UMD_ERR_INTERNAL = -6000,
    /** A call was about to return a code outside its list; the record has the raw value. Save the log and report it. */
    UMD_ERR_INTERNAL_CODE = -6001,
} umdStatus;

/** Layer of a code, from its number range (B3). */
typedef enum umdStatusRange {
    UMD_RANGE_SUCCESS,
    UMD_RANGE_WARNING,
    UMD_RANGE_PARAM,
    UMD_RANGE_RESOURCE,
    UMD_RANGE_EXEC,
    UMD_RANGE_HW,
    UMD_RANGE_INIT,
    UMD_RANGE_INTERNAL,
    UMD_RANGE_UNKNOWN,
} umdStatusRange;

typedef enum umdSeverity {
    UMD_SEVERITY_INFO,
    UMD_SEVERITY_WARN,
    UMD_SEVERITY_ERROR,
    UMD_SEVERITY_FATAL,
} umdSeverity;

/** How much is unusable after the code. */
typedef enum umdScope {
    UMD_SCOPE_CALL,
    UMD_SCOPE_STREAM,
    UMD_SCOPE_CONTEXT,
    UMD_SCOPE_DEVICE,
    UMD_SCOPE_NODE,
} umdScope;

/** What the caller does next. */
typedef enum umdAction {
    UMD_ACTION_NONE,
    UMD_ACTION_RETRY,
    UMD_ACTION_FREE_RETRY,
    UMD_ACTION_CHANGE_ARGUMENT,
    UMD_ACTION_SKIP,
    UMD_ACTION_REBUILD_CONTEXT,
    UMD_ACTION_RESET_DEVICE,
    UMD_ACTION_ABORT,
} umdAction;

#endif /* UMD_STATUS_H */
