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
 *
 * "Provisional": reserved for a mechanism to come; this version does not return it.
 */
typedef enum umdStatus {
    /** The call did what it was asked to do. Go on. */
    UMD_SUCCESS = 0,
    /** A query found the work of the stream or event not finished yet. Ask again later, or wait with umdStreamSynchronize or umdEventSynchronize. */
    UMD_STATUS_NOT_READY = 1,
    /** A wait ended by its time-out while the job runs and makes progress. Wait again; the work goes on. */
    UMD_STATUS_TIMEOUT_PROGRESS = 2,
    /** Provisional. The call did what it was asked to do; the device runs below its clock, for heat or power. Nothing; look at cooling and power limit when it stays. */
    UMD_STATUS_THROTTLED = 3,
    /** Provisional. A query found the stream capturing a graph. End the capture first. */
    UMD_STATUS_CAPTURING = 4,
    /** Provisional. Access between the two devices was on already. Go on. */
    UMD_STATUS_PEER_ENABLED = 5,
    /** Provisional. The call returned what there was room for; older entries of a trace or counter buffer are gone. Read more often, or make the buffer larger. */
    UMD_STATUS_DROPPED_DATA = 6,
    /** A pointer argument that must not be NULL is NULL. Pass a valid pointer; the record names the argument. */
    UMD_ERR_PARAM_NULL = -1000,
    /** A number is outside the range that the argument documents. Use a value inside the limits that the record states. */
    UMD_ERR_PARAM_RANGE = -1001,
    /** A flag bit is unknown or two flags exclude each other. Clear the bits that the record names. */
    UMD_ERR_PARAM_FLAGS = -1002,
    /** The size field of a description struct is not one that this library knows. Set the size with sizeof. Where the record has nonzero_at_B, leave the field at that offset 0, or install a library that knows it. */
    UMD_ERR_PARAM_STRUCT_SIZE = -1003,
    /** Provisional. A text argument is empty, too long, or has bytes that it may not have. Use a name as the argument documents it; the record has length and limit. */
    UMD_ERR_PARAM_TEXT = -1004,
    /** Provisional. The priority is one that this process may not use. Use a priority of the range that the record states, or ask the administrator for the right. */
    UMD_ERR_PARAM_PRIORITY = -1005,
    /** The handle was never given out by this library. Pass a handle that a create call returned. */
    UMD_ERR_HANDLE_INVALID = -1010,
    /** The object of the handle has been destroyed; the record says when and by which thread. Do not use a handle after its destroy call. */
    UMD_ERR_HANDLE_DESTROYED = -1011,
    /** The handle belongs to an object of another type. Pass a handle of the type that the record names. */
    UMD_ERR_HANDLE_TYPE = -1012,
    /** The object belongs to another context than the other arguments. Use objects of one context in a call. */
    UMD_ERR_HANDLE_CONTEXT = -1013,
    /** Provisional. The object belongs to another device than the other arguments. Use objects of one device in a call, or enable peer access. */
    UMD_ERR_HANDLE_DEVICE = -1014,
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
    /** Provisional. Memory is given back with another size than it was allocated with. Give back what was allocated; the record has both sizes. */
    UMD_ERR_MEM_FREE_SIZE = -1025,
    /** Provisional. Memory is given back or unmapped while submitted work still uses it. Wait for the work that the record names. */
    UMD_ERR_MEM_IN_USE = -1026,
    /** Provisional. Memory is given back to another allocator or pool than it came from. Give it back where it came from; the record names both. */
    UMD_ERR_MEM_WRONG_POOL = -1027,
    /** Provisional. A mapping or unmapping reaches outside the reserved addresses. Reserve the addresses first; the record has the nearest reservation. */
    UMD_ERR_MEM_NOT_RESERVED = -1028,
    /** Provisional. Part of the reserved addresses is mapped already. Unmap it first, or map elsewhere. */
    UMD_ERR_MEM_ALREADY_MAPPED = -1029,
    /** The grid or workgroup size is zero or above the device's limit, or their product overflows. Stay within the limits that the record states. */
    UMD_ERR_LAUNCH_DIMENSIONS = -1030,
    /** The kernel arguments have another size than the kernel declares. Pass exactly the kernel's argument struct. */
    UMD_ERR_LAUNCH_ARGUMENTS = -1031,
    /** A workgroup needs more registers, local memory or warps than a compute unit has. Use a smaller workgroup, less local memory or less thread-local storage; the record has need and limit. */
    UMD_ERR_LAUNCH_RESOURCES = -1032,
    /** Provisional. The kernel's arguments are larger than the device takes. Pass large data through memory; the record has size, limit and index of the argument. */
    UMD_ERR_LAUNCH_ARGUMENTS_SIZE = -1033,
    /** Provisional. A launch whose workgroups wait for each other has more of them than can run at once. Use at most as many workgroups as the record states. */
    UMD_ERR_LAUNCH_COOPERATIVE = -1034,
    /** A fault specification does not parse or names an unknown site, action or attribute. Mend the specification at the position that the record states; umd-inject list prints all sites. */
    UMD_ERR_FAULT_SPEC = -1040,
    /** A configuration value (environment, file, profile) is unknown or malformed. Mend the value; the record has key, value and what is allowed. */
    UMD_ERR_CONFIG_VALUE = -1041,
    /** Provisional. A recorded sequence of calls cannot be read, or is of a version that this library does not know. Record it again with this version; the record has the position. */
    UMD_ERR_REPLAY_FORMAT = -1042,
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
    /** Provisional. A message of a client or of the server does not follow their protocol. Use client and server of one version. */
    UMD_ERR_UAPI_PROTOCOL = -1055,
    /** The image is no ELF code object that this device can load (truncated, wrong class, wrong type). Build the kernels with petrel-cc; if they were, the reason in the record names the limit that they are over. */
    UMD_ERR_MODULE_FORMAT = -1060,
    /** The code object is for another machine or needs instructions that the device lacks. Rebuild with petrel-cc for this device; the record has machine and flags. */
    UMD_ERR_MODULE_ISA = -1061,
    /** The module has no kernel of that name. Use a name that the module defines; the record has the nearest. */
    UMD_ERR_MODULE_SYMBOL = -1062,
    /** Provisional. The image is SPIR-V, and not valid. Mend what the validator reports in the record. */
    UMD_ERR_MODULE_SPIRV = -1063,
    /** Provisional. The code needs a capability or extension that the compiler or the device does not have. Do without it; the record names it. */
    UMD_ERR_MODULE_CAPABILITY = -1064,
    /** Provisional. The compiler failed on valid code, or used up its time or memory. See the compiler's message in the record; split the kernel, or report it. */
    UMD_ERR_MODULE_COMPILE = -1065,
    /** Provisional. A symbol that the code object needs is defined nowhere. Link the library that defines the symbol in the record. */
    UMD_ERR_MODULE_LINK = -1066,
    /** Provisional. The call cannot be made while its stream captures a graph; the capture is over. Make the call before or after the capture. */
    UMD_ERR_CAPTURE_UNSUPPORTED = -1070,
    /** Provisional. The capture was spoiled by an earlier call; the record names the first. Mend that call and capture again; what the capture had allocated is given back. */
    UMD_ERR_CAPTURE_INVALIDATED = -1071,
    /** Provisional. A capture is ended that was not begun on this stream. End it on the stream where it began. */
    UMD_ERR_CAPTURE_UNMATCHED = -1072,
    /** Provisional. A capture is ended while a stream that joined it has not come back to its origin. Let the origin wait for an event of each stream that joined. */
    UMD_ERR_CAPTURE_UNJOINED = -1073,
    /** Provisional. Two captures would become one. Use events of one capture in it. */
    UMD_ERR_CAPTURE_MERGE = -1074,
    /** Provisional. A capture is ended by another thread than began it. End it on the thread that began it. */
    UMD_ERR_CAPTURE_THREAD = -1075,
    /** Provisional. Memory that was allocated within a capture was not given back before its end. Free it within the capture, or allocate it before; the record has the pointers. */
    UMD_ERR_CAPTURE_TEMPORARY = -1076,
    /** Provisional. The dependencies of a graph's nodes form a cycle. Take out one of the edges that the record names. */
    UMD_ERR_GRAPH_CYCLE = -1077,
    /** Provisional. The instantiated graph cannot take the new one: its shape differs. Instantiate the new graph; the record names the node. */
    UMD_ERR_GRAPH_UPDATE = -1078,
    /** Provisional. The two devices cannot reach each other's memory. Copy through the host. */
    UMD_ERR_PEER_UNSUPPORTED = -1080,
    /** Provisional. Access between the two devices has not been enabled. Enable it first. */
    UMD_ERR_PEER_NOT_ENABLED = -1081,
    /** Provisional. The handle was not exported by a process of this node, or its object is gone. Export again and pass the new handle. */
    UMD_ERR_IPC_HANDLE = -1082,
    /** Provisional. The handle was exported by this very process. Use the pointer that it was exported from. */
    UMD_ERR_IPC_OWN_PROCESS = -1083,
    /** Provisional. Host memory to be pinned is pinned already, or its release names a range that is not. Pin each range once; the record has what is pinned. */
    UMD_ERR_PIN_RANGE = -1090,
    /** The context has been or is being destroyed by another thread. Create a new context. */
    UMD_ERR_CTX_DESTROYED = -2000,
    /** The context was banned because its work hung or faulted; the record's cause says which work. Destroy the context and create a new one; mend the kernel that the cause names. */
    UMD_ERR_CTX_BANNED = -2001,
    /** The library was initialised in the parent process and is used in a forked child. Create devices and contexts after fork, or exec a new program. */
    UMD_ERR_CTX_FORKED = -2002,
    /** The object cannot be destroyed yet: others still depend on it. Destroy the dependants that the record counts first; out of an error callback leave it, and call again when the callback has returned. */
    UMD_ERR_CTX_BUSY = -2003,
    /** Provisional. The process has as many contexts as it may. Destroy contexts that are no longer needed. */
    UMD_ERR_CTX_LIMIT = -2004,
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
    /** The allocator's own bookkeeping does not add up. Save the log and report it; rebuild what the record's advice names, the context or the device. */
    UMD_ERR_MEM_CORRUPT = -2015,
    /** Provisional. The process has as much device memory as it may, though the device has more. Free memory or ask for a larger share; the record has limit and use. */
    UMD_ERR_MEM_QUOTA = -2016,
    /** Provisional. The host has no memory to back the device's; it would have to end a process. Touch less device memory, or give the host more; the record has cap and use. */
    UMD_ERR_MEM_HOST_LIMIT = -2017,
    /** Provisional. The host does not let the process pin so much memory. Pin less, or raise RLIMIT_MEMLOCK. */
    UMD_ERR_MEM_PINNED_LIMIT = -2018,
    /** Provisional. Memory could be had by moving buffers out, but all of them are in use. Wait for running work and try again; the record names the holders. */
    UMD_ERR_MEM_EVICT_FAILED = -2019,
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
    /** Provisional. The process has as many memory mappings as the host allows. Unmap buffers, or raise vm.max_map_count. */
    UMD_ERR_RES_MAPPINGS = -2025,
    /** Provisional. The server has as many clients as it takes. End clients, or raise the server's limit. */
    UMD_ERR_RES_CONNECTIONS = -2026,
    /** Provisional. A device core dump could not be kept: the folder is full or not writable. Make room or name another folder; the failure itself is told all the same. */
    UMD_ERR_RES_COREDUMP = -2027,
    /** Provisional. The counters are in use by another session. End the other session, or try again. */
    UMD_ERR_RES_COUNTERS = -2028,
    /** Provisional. The pool has no room, and may not grow. Free into the pool, trim others, or raise its limit; the record has its reserve and use. */
    UMD_ERR_POOL_EXHAUSTED = -2030,
    /** Provisional. The pool cannot be destroyed or trimmed yet: allocations of it are in use. Free them, or wait for the work that uses them. */
    UMD_ERR_POOL_BUSY = -2031,
    /** Provisional. The device has as many peers as it can address. Disable access to a peer that is no longer needed. */
    UMD_ERR_PEER_LIMIT = -2040,
    /** Provisional. The process that exported the object has ended. Let go of the import; the record has process and time. */
    UMD_ERR_IPC_PEER_GONE = -2041,
    /** The kernel driver refused the submission for the reason in the cause; nothing was queued. See the cause. */
    UMD_ERR_SUBMIT_FAILED = -3000,
    /** The queue holds as many jobs as it may. Wait for earlier work of the stream, then submit again; the driver itself has tried for a second. */
    UMD_ERR_SUBMIT_RING_FULL = -3001,
    /** Provisional. A queue of user-mode submission holds what its owner may not have written, or more doorbells than it has room. Look at the writer of the queue; rebuild the context. */
    UMD_ERR_SUBMIT_DOORBELL = -3002,
    /** Provisional. A command buffer or graph is larger than a queue takes at once. Split it; the record has size and limit. */
    UMD_ERR_SUBMIT_TOO_LARGE = -3003,
    /** A job of the stream did not complete; the cause names job, kernel and reason. See the cause. */
    UMD_ERR_EXEC_FAILED = -3010,
    /** The job was cancelled before it started, since its queue or context was destroyed, banned or reset; or it was killed by destroy. Submit again in a healthy context, if it is still wanted. */
    UMD_ERR_EXEC_CANCELLED = -3011,
    /** The job had started when another client's fault reset the engine; it is not run again. Restore the buffers it writes from the last checkpoint and submit again. */
    UMD_ERR_EXEC_INNOCENT_PARTIAL = -3012,
    /** Provisional. A job could not be saved when it had to make room, and has been ended. Restore the buffers it writes from the last checkpoint and submit again. */
    UMD_ERR_EXEC_PREEMPT_FAILED = -3013,
    /** Provisional. A job made progress, but used up the run time that its queue may take. Raise the queue's budget, or split the kernel. */
    UMD_ERR_EXEC_BUDGET = -3014,
    /** Provisional. An assertion in a kernel failed. See text, kernel, line and work-item in the record. */
    UMD_ERR_EXEC_ASSERT = -3015,
    /** Provisional. A node of a launched graph failed; the cause is the node's own failure. See node and cause; mend the node and instantiate again. */
    UMD_ERR_EXEC_GRAPH_NODE = -3016,
    /** Provisional. Two pieces of work touched the same memory, one of them writing, and nothing orders them. Put a wait between the two that the record names. */
    UMD_ERR_EXEC_RACE = -3017,
    /** Provisional. A replayed call returned something else than the recorded one. Compare versions, seed and configuration of both runs; the record has both codes. */
    UMD_ERR_EXEC_REPLAY_DIVERGED = -3018,
    /** Provisional. A host function of a stream reported a failure; what follows it was cancelled. Look at the function; its value stands in the record. */
    UMD_ERR_EXEC_HOST_CALLBACK = -3019,
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
    /** Provisional. The wait's work was removed by a reset; the device works again. Rebuild the context and restart from the last checkpoint. */
    UMD_ERR_WAIT_RECOVERED = -3026,
    /** The wait timed out on work that waits, in the end, for itself: it can never run. Take out one of the waits that the record names; destroying a stream of the cycle ends it. */
    UMD_ERR_WAIT_CYCLE = -3027,
    /** Provisional. The wait timed out on work of another rank. Look at the log of the rank that the record names. */
    UMD_ERR_WAIT_RANK = -3028,
    /** Provisional. The wait timed out while the job waits for a value in memory that another agent may write. Look at who should write the address in the record. */
    UMD_ERR_WAIT_MEMORY = -3029,
    /** The watchdog found the job stuck: no progress, and the engine did not answer. Look at kernel and line in the record; rebuild the context. */
    UMD_ERR_HW_HANG = -4000,
    /** The watchdog found the job running without progress beyond its budget: a loop that does not end. Look at the loop at kernel and line in the record; rebuild the context. */
    UMD_ERR_HW_SPIN = -4001,
    /** A kernel or copy touched an address that is not mapped in its address space. See address, access, kernel and line in the record, and the allocation: misuse= tells use after free, overrun and underrun apart. */
    UMD_ERR_HW_PAGE_FAULT = -4002,
    /** A kernel or copy touched mapped memory in a way that its page forbids. See address, access and rights in the record. */
    UMD_ERR_HW_ACCESS_FAULT = -4003,
    /** A compute unit met an instruction that it does not know. See pc and data, the bits, in the record; compiler_trap=1: __builtin_trap or a place the compiler holds unreachable, else likely code for another machine. */
    UMD_ERR_HW_ILLEGAL_INSTRUCTION = -4004,
    /** A kernel executed a trap, or a barrier could not be met. See trap code, kernel and line in the record. */
    UMD_ERR_HW_TRAP = -4005,
    /** A ring met a malformed or forbidden packet. See opcode and offset in the record; build command buffers with this library. */
    UMD_ERR_HW_PACKET = -4006,
    /** Provisional. Memory held an error that ECC can detect but not correct. Restore from a checkpoint; replace the device when it repeats. */
    UMD_ERR_HW_ECC_UNCORRECTED = -4007,
    /** A fence was found signalled without its interrupt; the driver completed the job by polling. Nothing; when it repeats, look at the interrupt path. */
    UMD_ERR_HW_IRQ_LOST = -4008,
    /** A job runs longer than the watchdog's threshold and makes progress. Nothing; shorten the kernel or raise the threshold if it is expected. */
    UMD_ERR_HW_LONG_RUNNING = -4009,
    /** An atomic or instruction fetch met a misaligned address. See address and pc in the record. */
    UMD_ERR_HW_MISALIGNED = -4010,
    /** A work-item left its private memory: its stack needs more than the device gives a lane. Use less stack at the kernel and line in the record: no deep recursion, no large local arrays; private_B is the limit. */
    UMD_ERR_HW_STACK_OVERFLOW = -4011,
    /** Provisional. Memory held an error that ECC has corrected. Nothing; when the count grows fast, plan to replace the device. */
    UMD_ERR_HW_ECC_CORRECTED = -4012,
    /** Provisional. A kernel or copy read memory that is known to be damaged. Restore from a checkpoint; the damaged page is not handed out again. */
    UMD_ERR_HW_POISON = -4013,
    /** Provisional. A page-table entry is malformed: memory or driver has damaged it. Save the core dump and report it; when it repeats, suspect the memory. */
    UMD_ERR_HW_PAGE_TABLE = -4014,
    /** Provisional. The device lowers its clock, for heat or power. Nothing; look at cooling and power limit. */
    UMD_ERR_HW_THROTTLED = -4015,
    /** Provisional. The link to the device had errors that were repaired by sending again. Nothing; when the count grows, look at slot, riser and cable. */
    UMD_ERR_HW_LINK_ERRORS = -4016,
    /** Provisional. The firmware stopped and was started again; what ran is lost. Restore from a checkpoint; report it with the core dump. */
    UMD_ERR_HW_FW_CRASH = -4017,
    /** The interrupt ring ran over; the driver looked at every fence itself. Nothing; when it repeats, look at what floods it. */
    UMD_ERR_HW_IRQ_OVERFLOW = -4018,
    /** Provisional. Interrupts come that nothing has caused, or come twice. Nothing; when it repeats, look at the interrupt path. */
    UMD_ERR_HW_IRQ_SPURIOUS = -4019,
    /** Provisional. The device finished a job, but its fence write did not arrive or arrived torn. Nothing; the driver found the end by other means and counted it. */
    UMD_ERR_HW_FENCE_LOST = -4020,
    /** Provisional. A job touched memory that was unmapped while it ran. Wait for the job before unmapping; the record names the unmap. */
    UMD_ERR_HW_UNMAPPED_IN_USE = -4021,
    /** More events came than a client's queue holds; the newest of them were dropped. Nothing for failures, which the driver finds in the state of each queue. Warnings are lost; error callbacks that take long are the usual cause. */
    UMD_ERR_HW_EVENTS_DROPPED = -4022,
    /** Provisional. An atomic went to memory that cannot do it, behind the link say. Place the memory on the device; see address and pc. */
    UMD_ERR_HW_ATOMIC_UNSUPPORTED = -4023,
    /** The host had no memory left for the simulated device to run the job. Free host memory and rebuild the context; the cause has the size that was wanted. Neither kernel nor arguments are to blame. */
    UMD_ERR_HW_HOST_MEMORY = -4024,
    /** The device no longer answers on the bus: reads return all ones. Destroy everything on it; restart on another device, and check link and power. */
    UMD_ERR_DEV_LOST_OFF_BUS = -4100,
    /** A reset did not bring the device back. Destroy everything on it; power-cycle the node. */
    UMD_ERR_DEV_LOST_RESET_FAILED = -4101,
    /** The device was reset more often than its policy allows in a period. Find the first cause in the record before using it again. */
    UMD_ERR_DEV_LOST_TOO_MANY_RESETS = -4102,
    /** Provisional. The firmware stopped and could not be started again. Destroy everything on it; reset the device, and report it with the core dump. */
    UMD_ERR_DEV_LOST_FW = -4103,
    /** Provisional. The device was removed or unbound by the administrator. Destroy everything on it; go on with another device. */
    UMD_ERR_DEV_LOST_UNPLUGGED = -4104,
    /** Provisional. The server that owns the device has ended or does not answer. Destroy everything on it; start the server again and initialise anew. */
    UMD_ERR_DEV_LOST_SERVER = -4105,
    /** Provisional. Too much of the device's memory is damaged for it to go on. Destroy everything on it; replace the device. */
    UMD_ERR_DEV_LOST_ECC = -4106,
    /** Provisional. The device is on the bus, but no longer does anything: its heartbeat has stopped. Destroy everything on it; power-cycle it. */
    UMD_ERR_DEV_LOST_SILENT = -4107,
    /** Provisional. The device was given up because another one that it is linked with was lost. See the first cause, which is the other device's. */
    UMD_ERR_DEV_LOST_DEPENDENT = -4108,
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
    /** Provisional. The firmware image is missing, or its checksum is wrong. Install the firmware again; the record has path and both sums. */
    UMD_ERR_INIT_FW_IMAGE = -5010,
    /** Provisional. The server that owns the devices cannot be reached. Start petreld, or check its socket and its rights. */
    UMD_ERR_INIT_SERVER = -5011,
    /** Provisional. The process may not open the device. Join the group of the device node; the record has path and owner. */
    UMD_ERR_INIT_PERMISSION = -5012,
    /** Provisional. Another process has the device for itself. Wait for it to end; the record has its process id. */
    UMD_ERR_INIT_DEVICE_BUSY = -5013,
    /** Provisional. The device is known to be damaged and has been taken out of service. Use another device; the record has the reason and when. */
    UMD_ERR_INIT_DEVICE_DEFECT = -5014,
    /** Provisional. Rank, number of ranks and their devices do not fit together. Mend the launch; the record has what each rank reports. */
    UMD_ERR_INIT_RANK = -5015,
    /** Provisional. The compiler for SPIR-V is not installed or does not start. Install it; the record has path and reason. */
    UMD_ERR_INIT_COMPILER = -5016,
    /** Provisional. A forked child cannot start the library anew, since another thread held it at the fork. Fork while no call is under way, or exec a new program. */
    UMD_ERR_INIT_FORK_STATE = -5017,
    /** Provisional. The host lacks something that the stack needs: a system call, a limit, a kernel version. See what and where in the record. */
    UMD_ERR_INIT_HOST = -5018,
    /** An invariant of the driver does not hold. Save the log and report it. */
    UMD_ERR_INTERNAL = -6000,
    /** A call was about to return a code outside its list; the record has the raw value. Save the log and report it. */
    UMD_ERR_INTERNAL_CODE = -6001,
    /** Provisional. An object is in a state that no sequence of calls can lead to. Save the log and report it. */
    UMD_ERR_INTERNAL_STATE = -6002,
    /** Provisional. The other side of a carrier answered with something that its interface does not allow. Save the log and report it. */
    UMD_ERR_INTERNAL_PROTOCOL = -6003,
    /** Provisional. Something that had been given back is still in use inside the driver. Save the log and report it. */
    UMD_ERR_INTERNAL_LEAK = -6004,
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
