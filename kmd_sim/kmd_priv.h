/* SPDX-License-Identifier: MIT */
/* kmd_priv.h - inside of the kernel driver simulator: devices, files, address spaces, queues, jobs, and who locks what. */
#ifndef KMD_PRIV_H
#define KMD_PRIV_H

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include <hw/petrel_packets.h>
#include <hw/petrel_pte.h>
#include <hw/petrel_regs.h>
#include <uapi/petrel_drm.h>

#include "drm/drm_core.h"
#include "hw.h"
#include "kmd.h"
#include "record.h"
#include "usercopy.h"

/*
 * Locks, in the order they are taken:
 *   50 probe and power                            54 file: handle tables
 *   58 VM: page tables and mappings                60 VRAM and system memory allocators
 *   62 scheduler: rings, queues, jobs, bans, loss  66 fences      68 event queues
 * The interrupt callback runs on the model's device thread and takes 62 and above. Nothing is called in the model under a lock of
 * ours that waits for the device thread; register access never waits. Fences are signalled, and objects released, without the
 * scheduler's lock: whoever holds it collects that work in a `struct petrel_after` and runs it later.
 */

#define PETREL_RING_DW 4096u       /* a power of two; holds PETREL_CREDITS of the longest jobs */
#define PETREL_CREDITS 4u          /* jobs written to a ring and not done */
#define PETREL_FENCE_SLOTS 16u     /* of 16 bytes a ring; more than credits, so that a slot is not reused while looked at */
#define PETREL_IH_ENTRIES 1024u
#define PETREL_IBS_MAX 64u
#define PETREL_SYNCS_MAX 64u
#define PETREL_QUEUES_MAX 256u
#define PETREL_EVENTS 32u
#define PETREL_RESETS_MAX 8u
#define PETREL_RESET_WINDOW_NS 60000000000ull
#define PETREL_WATCHDOG_NS 100000000ull
#define PETREL_STALL_SHARE 8              /* a job without progress for this part of the watchdog's time is called stalled ... */
#define PETREL_STALL_MIN_NS 1000000ull    /* ... but not before this, since a workgroup counts only when it is done; nor before ... */
#define PETREL_STALL_PACE 2               /* ... so many times the longest pause that the job has made already. Never later than the watchdog */
#define PETREL_PROBE_NS 1000000ull        /* device time to honour a preemption */
#define PETREL_RESET_NS 2000000ull        /* device time to acknowledge a reset */
#define PETREL_IRQ_LATE_NS 1000000ull     /* a signalled fence without its interrupt for so long has lost it */

struct petrel_device;
struct petrel_queue;
struct petrel_job;

/* Byte offsets of the registers. */
enum petrel_reg_off {
#define PETREL_REG_OFF(name_, off_, ...) PETREL_REGS_OFF_##name_ = (off_),
    PETREL_REGS(PETREL_REG_OFF)
#undef PETREL_REG_OFF
};
#define KMD_FIELD(cond_, fmt_, ...)                                             \
    do {                                                                        \
        if (cond_)                                                              \
            return UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, fmt_, ##__VA_ARGS__);   \
    } while (0)

/* ---- Memory ---- */

struct petrel_block { struct petrel_block *prev, *next; uint64_t start, size_B; bool used; };
/** Contiguous ranges of an aperture; free memory is zero. */
struct petrel_heap {
    const char *name;
    struct umd_mutex lock;      /* rank 60 */
    struct petrel_block *blocks;
    uint8_t *cpu;
    uint64_t size_B, free_B;
    umdRecordId corrupt;        /* seq not 0: the list does not add up; it is left as it is, and gives out nothing more */
};
struct petrel_heap_stats { uint64_t free_B, largest_B; uint32_t holes, blocks; };
umdStatus petrel_heap_init(struct petrel_heap *heap, const char *name, struct hw_aperture aperture);
void petrel_heap_fini(struct petrel_heap *heap);
/**
 * from_top: for small driver-owned pages, so that they do not split the space buffers come from. UMD_ERR_MEM_FRAGMENTED, _ALLOC_FAILED,
 * _HOST_ALLOC_FAILED; _CORRUPT now and from then on where the list of blocks does not add up.
 */
umdStatus petrel_heap_alloc(struct petrel_heap *heap, uint64_t size_B, uint64_t align_B, bool from_top, struct petrel_block **block_out);
/** A block that does not fit into the list stays where it is; the next allocation says so. NULL is fine. */
void petrel_heap_free(struct petrel_heap *heap, struct petrel_block *block);
void petrel_heap_get_stats(struct petrel_heap *heap, struct petrel_heap_stats *stats_out);
/** The figures as they would be if others held what is free, so that size_B does not fit: what an injected failure tells (faults are not to be known by their figures). */
void petrel_heap_stats_short_of(struct petrel_heap_stats *stats, uint64_t size_B);

struct petrel_bo {
    struct drm_gem_object base;
    struct petrel_device *dev;
    struct petrel_heap *heap;
    struct petrel_block *block;
    bool system, cpu_visible;
    uint32_t map_id;            /* makes its mmap offset: see petrel_bo_offset */
};
static inline struct petrel_bo *petrel_bo_of(struct drm_gem_object *obj) { return (struct petrel_bo *)(void *)obj; }
/* Bits 40 to 56 the handle, 57 to 62 a count that tells a handle's buffers apart; the offset stays positive as an off_t. */
static inline uint64_t petrel_bo_offset(const struct petrel_bo *bo, uint32_t handle) { return (uint64_t)(bo->map_id & 0x3f) << 57 | (uint64_t)handle << 40; }
int petrel_bo_create(struct petrel_device *dev, uint64_t size_B, bool system, bool cpu_visible, bool from_top, uint64_t align_B, struct petrel_bo **bo_out);

/* ---- Address spaces ---- */

/** Something to release once the rings have passed what they had been given. */
struct petrel_zombie {
    struct petrel_zombie *next;
    void (*release)(struct petrel_zombie *zombie);
    uint64_t seq[PETREL_RING_COUNT];
};
/** A table page; children exist above level 0. */
struct petrel_pt { struct petrel_zombie zombie; struct petrel_bo *page; struct petrel_pt **children; uint32_t used; };
struct petrel_vma { struct petrel_zombie zombie; struct petrel_vma *next; uint64_t start, size_B, offset_B; struct petrel_bo *bo; uint32_t flags; };
struct petrel_vm {
    struct petrel_device *dev;
    struct umd_mutex lock;      /* rank 58 */
    struct petrel_pt *root;
    struct petrel_vma *vmas;    /* by address; changed under lock and the scheduler's lock, read under either */
    uint32_t id, hw_id;
    _Atomic(uint32_t) refs, queues;
    _Atomic(uint64_t) tlb_gen;  /* counts changes that rings must be told of */
    uint64_t ring_gen[PETREL_RING_COUNT];    /* scheduler lock: what each ring was told last */
    uint32_t ring_epoch[PETREL_RING_COUNT];
};
struct petrel_vm *petrel_vm_get(struct petrel_vm *vm);
void petrel_vm_put(struct petrel_vm *vm);
/** The mapping nearest to an address, for fault reports: start, size and signed distance text. False: none at all. */
bool petrel_vm_nearest_locked(struct petrel_vm *vm, uint64_t va, struct petrel_vma *vma_out, uint64_t *distance_out, bool *below_out);

/* ---- Queues and jobs ---- */

enum petrel_job_state { PETREL_JOB_PENDING, PETREL_JOB_INFLIGHT, PETREL_JOB_DONE };
struct petrel_job {
    struct dma_fence fence;
    struct petrel_device *dev;
    struct petrel_queue *queue;     /* until done */
    struct petrel_vm *vm;           /* until done */
    struct petrel_job *next;        /* in the queue, the ring, or a list of the done */
    enum petrel_job_state state;    /* scheduler lock, as all below */
    uint32_t ib_count, dep_count, dep_next;
    uint32_t ring_at;               /* in flight: where its indirect buffers are in the ring */
    uint64_t id, queue_id, context_id, cmdbuf_id, seq;
    uint64_t submit_ns, start_ns, progress_ns, end_ns, progress_base, progress;
    uint64_t walk;                  /* number of the last walk of a wait's report that came by here */
    uint64_t pause_ns;              /* longest time from one look that found progress to the next */
    bool waiting, irq_lost, started;
    int error;                      /* set before the end: what it will end with */
    struct dma_fence_cb dep_cb;
    umdErrorDetail record;          /* valid when fence.error */
    struct drm_sync_ref *deps;
    struct drm_petrel_ib *ibs;
};
struct petrel_job *petrel_job_of(struct dma_fence *fence); /* NULL: another kind of fence */
extern const struct dma_fence_ops petrel_job_fence_ops;

struct petrel_job_list { struct petrel_job *first, **last; uint32_t count; };
static inline void petrel_job_list_init(struct petrel_job_list *l) { l->first = NULL; l->last = &l->first; l->count = 0; }
void petrel_job_list_add(struct petrel_job_list *l, struct petrel_job *job);
void petrel_job_list_add_first(struct petrel_job_list *l, struct petrel_job *job);
struct petrel_job *petrel_job_list_take(struct petrel_job_list *l);

struct petrel_queue {
    struct petrel_device *dev;
    struct petrel_file *file;       /* followed for events, only while `open` */
    uint64_t file_id;               /* what it is compared by: an address may come back with another file */
    struct petrel_vm *vm;
    struct petrel_queue *next;      /* of the scheduler's list */
    struct petrel_job_list pending; /* scheduler lock, as all below */
    _Atomic(uint32_t) refs;
    uint32_t id, engine, max_jobs, outstanding;
    int32_t priority;
    uint64_t context_id, last_turn;
    bool open;
    enum drm_petrel_queue_state state;
    umdStatus code;
    umdErrorDetail record;
    uint64_t jobs_submitted, jobs_done, jobs_failed, jobs_cancelled;
};
struct petrel_queue *petrel_queue_get(struct petrel_queue *queue);
/** The file's queue, with a reference; NULL: there is none, UMD_ERR_UAPI_HANDLE is raised. */
struct petrel_queue *petrel_queue_lookup(struct drm_file *drm, uint32_t id);
void petrel_queue_put(struct petrel_queue *queue);
/** Cancels, kills, and takes the queue out of the scheduler. */
void petrel_queue_shutdown(struct petrel_queue *queue);

/* ---- Scheduler ---- */

enum petrel_ring_phase { PETREL_PHASE_RUN, PETREL_PHASE_PROBE, PETREL_PHASE_RESET };
struct petrel_ring {
    struct petrel_device *dev;
    uint32_t index;
    struct petrel_block *ring_mem, *fence_mem;
    uint32_t *dw;
    uint64_t *slots;                /* seq, ns */
    uint32_t wptr, epoch;
    uint64_t seq, done_seq, last_end_ns;
    struct petrel_job_list inflight;
    enum petrel_ring_phase phase;
    uint64_t deadline_ns;           /* of the phase */
    umdRecordId reset_cause;        /* what the last reset was for; seq 0: nothing of an owner who still cares */
    uint64_t seen_progress, seen_instr, watch_base_ns, watch_instr, next_long_ns;
    uint64_t recall_refused;        /* job that did not stop for work behind it to be taken back */
    bool recalling;                 /* this probe is no verdict: the ring stops for work to be taken back */
    uint32_t seen_rptr;
    uint64_t rptr_ns;
    uint64_t watched;               /* id of the job that the figures above are of, 0: none */
};

/** Work collected under the scheduler's lock, to be done without it. */
struct petrel_after {
    struct petrel_job_list done;
    struct petrel_zombie *zombies;
};
static inline void petrel_after_init(struct petrel_after *after) { petrel_job_list_init(&after->done); after->zombies = NULL; }
void petrel_after_run(struct petrel_device *dev, struct petrel_after *after);

struct petrel_device {
    struct drm_device drm;
    struct hw_device *hw;
    uint32_t index;
    bool stepped;
    _Atomic(bool) ready;            /* interrupts are handled */
    _Atomic(uint32_t) irqs_running, ticks_running;
    struct petrel_heap vram, sysmem;
    struct petrel_block *ih_mem, *scratch_mem;
    const struct petrel_ih_entry *ih;
    struct drm_petrel_info info;    /* the figures that never change */
    _Atomic(uint64_t) next_file_id;
    _Atomic(uint32_t) next_map_id;
    _Atomic(uint32_t) next_vmid;

    struct umd_mutex sched_lock;    /* rank 62; all below */
    struct petrel_ring rings[PETREL_RING_COUNT];
    struct petrel_file *files;
    struct petrel_queue *queues;
    struct petrel_zombie *zombies;
    uint64_t next_job, turn, walks;
    _Atomic(bool) unresolved;       /* some job waits for a point that nothing was submitted for */
    _Atomic(int32_t) lost_code;
    umdErrorDetail lost_record;
    enum { PETREL_DEVICE_RUN, PETREL_DEVICE_FREEZE, PETREL_DEVICE_RESET } device_phase;
    uint64_t device_deadline_ns, irq_lost_count, irq_overflow_count;
    _Atomic(uint64_t) reset_count;  /* written under sched_lock; an event that stands for dropped ones reads it without */
    uint64_t reset_times[PETREL_RESETS_MAX];
    uint32_t ih_rptr;
    _Atomic(uint32_t) jobs_alive;   /* pending or in flight */

    struct umd_mutex heart_lock;    /* rank 61 */
    struct umd_cond heart_cond;
    pthread_t heart;
    bool heart_started, heart_stop;
};
static inline struct petrel_device *petrel_device_of(struct drm_device *drm) { return (struct petrel_device *)(void *)drm; }
static inline uint64_t petrel_now(struct petrel_device *dev) { return hw_read64(dev->hw, PETREL_REGS_OFF_CLOCK_NS); }

/** Takes the scheduler's lock, moves work on (completions, watchdog, resets, new jobs), and runs what follows. Any thread. */
void petrel_sched_tick(struct petrel_device *dev, bool from_irq);
void petrel_sched_kick(struct petrel_device *dev);
void petrel_sched_fill_locked(struct petrel_device *dev, struct petrel_after *after);
void petrel_sched_reap_locked(struct petrel_device *dev, struct petrel_after *after);
/** Ends a job: from no list. Error records are copied. */
void petrel_job_end_locked(struct petrel_job *job, int error, const umdErrorDetail *record, uint64_t end_ns, struct petrel_after *after);
/** Ends what has not started, with one record for all: because of what the queue was stopped for, or as the owner asked who destroyed it. */
void petrel_queue_cancel_locked(struct petrel_queue *queue, struct petrel_after *after);
/**
 * A job was cancelled. Work runs in order, so what is behind it must not run on data that was not made, which is for the caller to end; and
 * the queue refuses more until the client says that it knows.
 */
void petrel_queue_stop_locked(struct petrel_queue *queue, const umdErrorDetail *record);
void petrel_queue_resume_locked(struct petrel_queue *queue);
/** Work of destroyed queues that the ring has not begun: is there any worth stopping the ring for; takes it back from a ring that stands still. */
bool petrel_ring_may_recall_locked(const struct petrel_ring *ring);
void petrel_ring_recall_locked(struct petrel_ring *ring, struct petrel_after *after);
/** What a cancelled queue still has came before the cancelled job. */
static inline bool petrel_queue_runs(const struct petrel_queue *queue)
{
    return queue->state == DRM_PETREL_QUEUE_OK || queue->state == DRM_PETREL_QUEUE_CANCELLED;
}
void petrel_ban_locked(struct petrel_job *guilty, struct petrel_after *after);
static inline uint64_t petrel_ring_read64(const struct petrel_ring *ring, uint32_t field)
{
    return hw_read64(ring->dev->hw, 0x1000u + ring->index * PETREL_RING_STRIDE + field);
}
static inline uint32_t petrel_ring_read32(const struct petrel_ring *ring, uint32_t field)
{
    return hw_read32(ring->dev->hw, 0x1000u + ring->index * PETREL_RING_STRIDE + field);
}
static inline void petrel_ring_write32(const struct petrel_ring *ring, uint32_t field, uint32_t v)
{
    hw_write32(ring->dev->hw, 0x1000u + ring->index * PETREL_RING_STRIDE + field, v);
}
/** Releases now, or when the rings have passed what they have been given. */
void petrel_zombie_add(struct petrel_device *dev, struct petrel_zombie *zombie);
umdStatus petrel_ring_init(struct petrel_device *dev, uint32_t index);
void petrel_ring_fini(struct petrel_ring *ring);
void petrel_ring_start(struct petrel_ring *ring);
void petrel_irq(void *priv);
void petrel_irq_drain_locked(struct petrel_device *dev, bool from_irq, struct petrel_after *after);

/* ---- Watchdog and reset ---- */

void petrel_watchdog_locked(struct petrel_ring *ring, uint64_t now, struct petrel_after *after);
/** A job has just been given to the ring: its time is counted from the doorbell on, which stops an idle clock, and not from a look before. */
void petrel_watchdog_see_locked(struct petrel_ring *ring);
void petrel_watchdog_arm_locked(struct petrel_device *dev, uint64_t now);
/** Looks at the counter of the job that the ring's figures are of. Value: the time without progress from which on it is called stalled. */
uint64_t petrel_watchdog_look_locked(struct petrel_ring *ring, struct petrel_job *job, uint64_t now);
/** A ring has stopped at its first job: record, ban, reset. fault: enum petrel_fault, 0: hang. */
void petrel_ring_guilty_locked(struct petrel_ring *ring, umdStatus code, uint32_t fault, struct petrel_after *after);
void petrel_ring_faulted_locked(struct petrel_ring *ring, struct petrel_after *after);
/** Counts a reset against the device's budget. False, with nothing done: the budget is spent. */
bool petrel_reset_take_locked(struct petrel_device *dev);
void petrel_ring_reset_begin_locked(struct petrel_ring *ring, umdRecordId cause, struct petrel_after *after);
/** The device is lost, since petrel_reset_take_locked refused a reset. cause: what that was for. */
void petrel_reset_refused_locked(struct petrel_device *dev, umdRecordId cause, struct petrel_after *after);
void petrel_reset_poll_locked(struct petrel_device *dev, uint64_t now, struct petrel_after *after);
/** Asks running work to stop, so that the watchdog can judge it or a destroyed queue's job be killed. */
void petrel_probe_begin_locked(struct petrel_ring *ring, uint64_t now);
void petrel_probe_poll_locked(struct petrel_ring *ring, uint64_t now, struct petrel_after *after);
/** Ends everything on the device; the first reason stands. The record is raised by the caller. */
void petrel_lost_locked(struct petrel_device *dev, const umdErrorDetail *record, struct petrel_after *after);
bool petrel_check_bus_locked(struct petrel_device *dev, struct petrel_after *after);
/** 0, or raises the loss again for this caller: -ENODEV. Also looks at the bus. */
int petrel_check_lost(struct petrel_device *dev);
/** Looks at the bus too, raises nothing for the caller. */
bool petrel_check_lost_quietly(struct petrel_device *dev);

/** A line about the work of a context, whoever's call it is written in. */
#define PETREL_LOG_OF(context_id_, level_, fmt_, ...)                               \
    do {                                                                            \
        const uint64_t log_context_ = umd_record_get_context();                     \
        umd_record_set_context(context_id_);                                        \
        UMD_LOG(level_, fmt_, ##__VA_ARGS__);                                       \
        umd_record_set_context(log_context_);                                       \
    } while (0)

/** Raises what no caller waits for, into *detail_out, for another context. The thread's own record and context are left alone. */
#define PETREL_RAISE(detail_out_, context_id_, cause_, code_, fmt_, ...)            \
    PETREL_RAISE_BY(UMD_FAIL_FROM(code_, cause_, fmt_, ##__VA_ARGS__), detail_out_, context_id_, code_)
/** The same of less than the code usually is. */
#define PETREL_RAISE_SEVERITY(detail_out_, context_id_, cause_, severity_, code_, fmt_, ...) \
    PETREL_RAISE_BY(UMD_FAIL_SEVERITY(code_, severity_, cause_, fmt_, ##__VA_ARGS__), detail_out_, context_id_, code_)
/** The same with the advice of this occurrence, of which the severity is a part. */
#define PETREL_RAISE_ADVISED(detail_out_, context_id_, cause_, advice_, code_, fmt_, ...) \
    PETREL_RAISE_BY(UMD_FAIL_ADVISED_AT(UMD_SITE_LEVEL_AT_RUN_TIME, code_, advice_, cause_, fmt_, ##__VA_ARGS__), detail_out_, context_id_, code_)
#define PETREL_RAISE_BY(raise_, detail_out_, context_id_, code_)                    \
    do {                                                                            \
        uint64_t raise_context_ = umd_record_get_context();                         \
        umd_record_scope_begin();                                                   \
        umd_record_set_context(context_id_);                                        \
        (void)raise_;                                                               \
        if (!umd_record_export(detail_out_))                                        \
            *(detail_out_) = (umdErrorDetail){.size_B = sizeof(umdErrorDetail), .code = (code_), .origin_code = (code_)}; \
        umd_record_set_context(raise_context_);                                     \
        umd_record_scope_end();                                                     \
    } while (0)

/* ---- Events and files ---- */

struct petrel_map { struct petrel_map *next; void *addr; size_t size_B; struct petrel_bo *bo; };
struct petrel_file {
    struct drm_file drm;
    struct petrel_device *dev;
    struct petrel_file *next;
    uint64_t id;
    struct drm_idr vms, queues;     /* drm.lock */
    struct petrel_map *maps;        /* drm.lock */
    struct umd_mutex event_lock;    /* rank 68 */
    struct umd_cond event_cond;
    struct drm_petrel_event *events;
    uint32_t event_first, event_count;
    uint64_t events_dropped;
};
static inline struct petrel_file *petrel_file_of(struct drm_file *drm) { return (struct petrel_file *)(void *)drm; }
void petrel_event_push(struct petrel_file *file, const struct drm_petrel_event *event);
/** To the file of the job's queue, while that is open. */
void petrel_event_job_locked(struct petrel_job *job, uint32_t type, uint32_t fault, const umdErrorDetail *record);
/** The same with what the hardware latched: va, pc, wg, info, data are taken from *event. */
void petrel_event_job_fault_locked(struct petrel_job *job, struct drm_petrel_event *event, uint32_t fault);
/** To every file of the device. */
void petrel_event_all_locked(struct petrel_device *dev, uint32_t type, const umdErrorDetail *record);
int petrel_file_open(struct petrel_device *dev, bool render_node, struct petrel_file **file_out);
void petrel_file_close(struct petrel_file *file);
ssize_t petrel_file_read(struct petrel_file *file, void *buf, size_t size_B, uint64_t timeout_ns);
void *petrel_file_mmap(struct petrel_file *file, uint64_t offset, size_t size_B, int *error_out);
int petrel_file_munmap(struct petrel_file *file, void *addr, size_t size_B);

bool petrel_wait_step(struct drm_device *drm, uint64_t budget_ns);
uint64_t petrel_wait_now(struct drm_device *drm);
extern const struct drm_driver petrel_drm_driver;

int petrel_info_ioctl(struct drm_file *drm, void *data);
int petrel_gem_create_ioctl(struct drm_file *drm, void *data);
int petrel_gem_mmap_ioctl(struct drm_file *drm, void *data);
int petrel_vm_create_ioctl(struct drm_file *drm, void *data);
int petrel_vm_destroy_ioctl(struct drm_file *drm, void *data);
int petrel_vm_bind_ioctl(struct drm_file *drm, void *data);
int petrel_queue_create_ioctl(struct drm_file *drm, void *data);
int petrel_queue_destroy_ioctl(struct drm_file *drm, void *data);
int petrel_queue_query_ioctl(struct drm_file *drm, void *data);
int petrel_exec_ioctl(struct drm_file *drm, void *data);
int petrel_wait_ioctl(struct drm_file *drm, void *data);

#endif
