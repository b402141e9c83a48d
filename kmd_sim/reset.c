/* SPDX-License-Identifier: MIT */
/*
 * reset.c - blame, ban, reset, loss. The ladder: reset the ring, reset the device, declare it lost. What had not started goes back to
 * its queue; what had started and was not to blame is told so and never run again.
 */
#include <string.h>

#include "kmd_priv.h"

UMD_LOG_MODULE("kmd.reset");

/* ---- Blame ---- */

static const struct { umdStatus code; const char *name; } fault_codes[] = {
    [PETREL_FAULT_NONE] = {UMD_ERR_HW_HANG, "none"},
    [PETREL_FAULT_PAGE] = {UMD_ERR_HW_PAGE_FAULT, "page"},
    [PETREL_FAULT_ACCESS] = {UMD_ERR_HW_ACCESS_FAULT, "access"},
    [PETREL_FAULT_ILLEGAL] = {UMD_ERR_HW_ILLEGAL_INSTRUCTION, "illegal"},
    [PETREL_FAULT_TRAP] = {UMD_ERR_HW_TRAP, "trap"},
    [PETREL_FAULT_MISALIGNED] = {UMD_ERR_HW_MISALIGNED, "misaligned"},
    [PETREL_FAULT_PACKET] = {UMD_ERR_HW_PACKET, "packet"},
    [PETREL_FAULT_RESOURCES] = {UMD_ERR_HW_PACKET, "resources"},
    [PETREL_FAULT_ECC] = {UMD_ERR_HW_ECC_UNCORRECTED, "ecc"},
    [PETREL_FAULT_HOST_MEMORY] = {UMD_ERR_HW_HOST_MEMORY, "host_memory"},
};

void petrel_ban_locked(struct petrel_job *guilty, struct petrel_after *after)
{
    struct petrel_queue *own = guilty->queue;
    for (struct petrel_queue *queue = guilty->dev->queues; queue; queue = queue->next) {
        if (queue->file_id != own->file_id || queue->context_id != own->context_id || queue->state == DRM_PETREL_QUEUE_BANNED || !queue->open)
            continue;
        queue->state = DRM_PETREL_QUEUE_BANNED;
        queue->code = guilty->record.code;
        queue->record = guilty->record;
        petrel_queue_cancel_locked(queue, after);
    }
}

static void add_nearest(struct petrel_job *job, uint64_t va, char *buf, size_t size)
{
    struct petrel_vma vma;
    uint64_t distance = 0;
    bool below = false;
    if (!petrel_vm_nearest_locked(job->vm, va, &vma, &distance, &below))
        umd_figures_append(buf, size, "nearest=none");
    else
        umd_figures_append(buf, size, "nearest_va=0x%" PRIx64 " nearest_B=%" PRIu64 " distance_B=%" PRIu64 " side=%s", vma.start, vma.size_B,
                           distance, distance == 0 ? "inside" : below ? "behind" : "before");
}

/* A private address that a kernel's access faults at is beside the lane's own window: its stack has run over. Copies have no stack. */
static bool is_stack_overflow(const struct petrel_ring *ring, const struct drm_petrel_event *event, uint32_t fault)
{
    return (fault == PETREL_FAULT_PAGE || fault == PETREL_FAULT_ACCESS) && ring->index == DRM_PETREL_QUEUE_COMPUTE && event->pc &&
           PETREL_FAULT_INFO_ACCESS(event->fault_info) != PETREL_ACCESS_EXEC &&
           event->va >= PETREL_PRIVATE_BASE - ring->dev->info.private_B && event->va < PETREL_PRIVATE_END;
}

/* Workgroup-local memory is no allocation: the nearest one says nothing. */
static bool in_local_aperture(const struct drm_petrel_event *event, uint32_t fault)
{
    return (fault == PETREL_FAULT_PAGE || fault == PETREL_FAULT_ACCESS || fault == PETREL_FAULT_MISALIGNED) &&
           event->va >= PETREL_LOCAL_BASE && event->va < PETREL_LOCAL_END;
}

/* The encoding that RISC-V keeps illegal for good, in both lengths: what a compiler puts for a trap, or where control must not come. */
static bool is_compiler_trap(uint64_t bits)
{
    return (bits & 0xffff) == 0 || bits == 0xc0001073u;
}

static const char *trap_name(uint64_t data)
{
    switch (data) {
    case PETREL_TRAP_EBREAK: return "ebreak";
    case PETREL_TRAP_BARRIER: return "barrier_cannot_be_met";
    case PETREL_TRAP_ECALL: return "ecall";
    default: return "petrel_trap";
    }
}

/* All that the ring's registers say about where it stands. */
static void raise_guilty_locked(struct petrel_ring *ring, struct petrel_job *job, umdStatus code, uint32_t fault, bool reset,
                                struct drm_petrel_event *event)
{
    static const char *const access_names[] = {"read", "write", "exec", "atomic"};
    const uint64_t now = petrel_now(ring->dev), info = petrel_ring_read64(ring, PETREL_RING_FAULT_INFO);
    const uint64_t mark = petrel_ring_read64(ring, PETREL_RING_MARK);
    char more[160] = ""; /* figures that only some faults have */
    event->va = petrel_ring_read64(ring, PETREL_RING_FAULT_VA);
    event->pc = petrel_ring_read64(ring, PETREL_RING_FAULT_PC);
    event->wg = petrel_ring_read64(ring, PETREL_RING_FAULT_WG);
    event->fault_info = info;
    event->fault_data = petrel_ring_read64(ring, PETREL_RING_FAULT_DATA);
    const uint64_t instr = petrel_ring_read64(ring, PETREL_RING_INSTR);
    job->progress = petrel_ring_read64(ring, PETREL_RING_PROGRESS) - job->progress_base;
    if (mark)
        job->cmdbuf_id = mark; /* the very command buffer, where a job has several */
    umd_figures_append(more, sizeof(more), "reset=%s", reset ? "begun" : "refused"); /* whether it succeeds shows later */
    if (is_stack_overflow(ring, event, fault)) {
        code = UMD_ERR_HW_STACK_OVERFLOW;
        umd_figures_append(more, sizeof(more), "private_B=%u", ring->dev->info.private_B);
    } else if (in_local_aperture(event, fault)) {
        umd_figures_append(more, sizeof(more), "aperture=local");
    } else if (fault == PETREL_FAULT_PAGE || fault == PETREL_FAULT_ACCESS || fault == PETREL_FAULT_MISALIGNED) {
        add_nearest(job, event->va, more, sizeof(more));
    } else if (fault == PETREL_FAULT_TRAP) {
        umd_figures_append(more, sizeof(more), "trap=%s", trap_name(event->fault_data));
        if (event->fault_data == PETREL_TRAP_BARRIER && event->va)
            umd_figures_append(more, sizeof(more), "other_pc=0x%" PRIx64, (uint64_t)event->va);
    } else if (fault == PETREL_FAULT_ILLEGAL && is_compiler_trap(event->fault_data)) {
        umd_figures_append(more, sizeof(more), "compiler_trap=1");
    }
    const char *kind = fault < sizeof(fault_codes) / sizeof(fault_codes[0]) ? fault_codes[fault].name : "unknown";
    const umdRecordId cause = fault == PETREL_FAULT_HOST_MEMORY && event->fault_data ? umd_record_id(event->fault_data) : (umdRecordId){0};
    PETREL_RAISE(&job->record, job->context_id, cause, code,
                 "ring=%u queue=%" PRIu64 " job=%" PRIu64 " cmdbuf=%" PRIu64 " fault=%s va=0x%" PRIx64 " access=%s pc=0x%" PRIx64
                 " lane=%u warp=%u cu=%u wg=%" PRIu64 " data=0x%" PRIx64 " elapsed_ns=%" PRIu64 " submit_ns=%" PRIu64 " start_ns=%" PRIu64
                 " progress_ns=%" PRIu64 " progress=%" PRIu64 " instr_since_progress=%" PRIu64 " %s",
                 ring->index, job->queue_id, job->id, job->cmdbuf_id, kind, (uint64_t)event->va, access_names[PETREL_FAULT_INFO_ACCESS(info)], (uint64_t)event->pc,
                 PETREL_FAULT_INFO_LANE(info), PETREL_FAULT_INFO_WARP(info), PETREL_FAULT_INFO_CU(info), (uint64_t)event->wg, (uint64_t)event->fault_data,
                 now > job->start_ns ? now - job->start_ns : 0, job->submit_ns, job->start_ns, job->progress_ns, job->progress,
                 instr - ring->seen_instr, more);
}

void petrel_ring_guilty_locked(struct petrel_ring *ring, umdStatus code, uint32_t fault, struct petrel_after *after)
{
    struct petrel_job *job = ring->inflight.first;
    struct drm_petrel_event event = {0};
    assert(job);
    if (ring->watched != job->id) { /* stopped before the watchdog looked at it */
        job->progress_base = petrel_ring_read64(ring, PETREL_RING_PROGRESS);
        ring->seen_instr = petrel_ring_read64(ring, PETREL_RING_INSTR);
        if (job->start_ns < ring->last_end_ns)
            job->start_ns = ring->last_end_ns;
        job->progress_ns = job->start_ns;
    }
    const bool reset = petrel_reset_take_locked(ring->dev);
    raise_guilty_locked(ring, job, code, fault, reset, &event);
    job->error = -umdStatusErrno((umdStatus)job->record.code);
    petrel_event_job_fault_locked(job, &event, fault);
    petrel_ban_locked(job, after);
    if (reset)
        petrel_ring_reset_begin_locked(ring, job->record.id, after);
    else
        petrel_reset_refused_locked(ring->dev, job->record.id, after);
}

void petrel_ring_faulted_locked(struct petrel_ring *ring, struct petrel_after *after)
{
    const uint32_t fault = petrel_ring_read32(ring, PETREL_RING_FAULT);
    struct petrel_job *job = ring->inflight.first;
    if (atomic_load(&ring->dev->lost_code) || ring->phase == PETREL_PHASE_RESET || ring->dev->device_phase == PETREL_DEVICE_RESET || fault == PETREL_FAULT_NONE)
        return; /* dealt with already */
    if (fault == UINT32_MAX)
        return; /* off the bus; the next look tells */
    const bool known = fault < sizeof(fault_codes) / sizeof(fault_codes[0]);
    if (job && !job->queue->open) { /* its owner had it killed: whatever it did meanwhile is nobody's failure */
        PETREL_LOG_OF(job->context_id, UMD_LOG_INFO, "fault of a job whose queue was destroyed ring=%u job=%" PRIu64 " fault=%u", ring->index, job->id, fault);
        petrel_ring_reset_begin_locked(ring, (umdRecordId){0}, after);
    } else if (job) {
        petrel_ring_guilty_locked(ring, known ? fault_codes[fault].code : UMD_ERR_HW_PACKET, fault, after);
    } else if (petrel_reset_take_locked(ring->dev)) {
        petrel_ring_reset_begin_locked(ring, (umdRecordId){0}, after);
    } else {
        petrel_reset_refused_locked(ring->dev, (umdRecordId){0}, after);
    }
}

/* ---- Resets ---- */

/* Whose work a ring stands at. */
static uint64_t context_of(const struct petrel_ring *ring) { return ring->inflight.first ? ring->inflight.first->context_id : 0; }

bool petrel_reset_take_locked(struct petrel_device *dev)
{
    const uint64_t now = petrel_now(dev);
    uint64_t *slot = &dev->reset_times[dev->reset_count % PETREL_RESETS_MAX];
    umd_mutex_assert_held(&dev->sched_lock);
    if (dev->reset_count >= PETREL_RESETS_MAX && now - *slot < PETREL_RESET_WINDOW_NS)
        return false;
    *slot = now;
    dev->reset_count++;
    return true;
}

void petrel_reset_refused_locked(struct petrel_device *dev, umdRecordId cause, struct petrel_after *after)
{
    const uint64_t first = dev->reset_times[dev->reset_count % PETREL_RESETS_MAX];
    umdErrorDetail record;
    PETREL_RAISE(&record, 0, cause, UMD_ERR_DEV_LOST_TOO_MANY_RESETS, "device=%u resets=%" PRIu64 " max=%u window_ns=%" PRIu64 " first_ns=%" PRIu64 " now_ns=%" PRIu64,
                 dev->index, dev->reset_count, PETREL_RESETS_MAX, (uint64_t)PETREL_RESET_WINDOW_NS, first, petrel_now(dev));
    petrel_lost_locked(dev, &record, after);
}

void petrel_ring_reset_begin_locked(struct petrel_ring *ring, umdRecordId cause, struct petrel_after *after)
{
    struct petrel_device *dev = ring->dev;
    umd_mutex_assert_held(&dev->sched_lock);
    const uint64_t now = petrel_now(dev);
    ring->reset_cause = cause;
    ring->phase = PETREL_PHASE_RESET;
    ring->deadline_ns = now + PETREL_RESET_NS;
    PETREL_LOG_OF(context_of(ring), UMD_LOG_INFO, "ring reset ring=%u in_flight=%u", ring->index, ring->inflight.count);
    hw_write32(dev->hw, PETREL_REGS_OFF_RESET, 1u << ring->index);
    petrel_reset_poll_locked(dev, now, after);
}

static void innocent_locked(struct petrel_job *job, struct petrel_after *after)
{
    umdErrorDetail record;
    PETREL_RAISE(&record, job->context_id, (umdRecordId){0}, UMD_ERR_EXEC_INNOCENT_PARTIAL,
                 "queue=%" PRIu64 " job=%" PRIu64 " cmdbuf=%" PRIu64 " submit_ns=%" PRIu64 " start_ns=%" PRIu64 " progress=%" PRIu64,
                 job->queue_id, job->id, job->cmdbuf_id, job->submit_ns, job->start_ns, job->progress);
    petrel_event_job_locked(job, DRM_PETREL_EVENT_ERROR, 0, &record);
    petrel_job_end_locked(job, -ECANCELED, &record, petrel_now(job->dev), after);
    petrel_queue_stop_locked(job->queue, &record);
    petrel_queue_cancel_locked(job->queue, after);
}

/*
 * The ring stands still and has forgotten everything but the last job that it started, which is asked only now: until the reset was
 * done it may have gone on to the next. Sorts what was in flight, and starts it again.
 */
static void ring_reset_done_locked(struct petrel_ring *ring, struct petrel_after *after)
{
    struct petrel_job *again[PETREL_CREDITS], *job;
    const struct petrel_queue *stopped = NULL; /* the one whose job ran in part: what is behind it goes with it */
    uint32_t count = 0;
    const uint64_t started = petrel_ring_read64(ring, PETREL_RING_JOB);
    petrel_sched_reap_locked(ring->dev, after);
    while ((job = petrel_job_list_take(&ring->inflight))) {
        struct petrel_queue *queue = job->queue;
        job->state = PETREL_JOB_PENDING;
        if (job->error) {
            petrel_job_end_locked(job, job->error, &job->record, petrel_now(ring->dev), after);
        } else if (!queue->open || !petrel_queue_runs(queue) || queue == stopped) {
            petrel_job_list_add_first(&queue->pending, job);
            job->started = job->id == started;
            petrel_queue_cancel_locked(queue, after);
        } else if (job->id == started) {
            stopped = queue;
            innocent_locked(job, after);
        } else {
            again[count++] = job;
        }
    }
    while (count)
        petrel_job_list_add_first(&again[count - 1]->queue->pending, again[count - 1]), count--;
    ring->done_seq = ring->seq;
    petrel_ring_start(ring);
}

/* ---- Whole device ---- */

static void device_reset_begin_locked(struct petrel_device *dev, const struct petrel_ring *stuck, uint64_t now)
{
    PETREL_LOG_OF(context_of(stuck), UMD_LOG_WARN, "ring reset not acknowledged, resetting the device device=%u", dev->index);
    dev->device_phase = PETREL_DEVICE_FREEZE;
    dev->device_deadline_ns = now + PETREL_PROBE_NS;
    /* What still runs gets the time to stop at a place where all it did is in memory. */
    for (uint32_t r = 0; r < PETREL_RING_COUNT; r++) {
        if (dev->rings[r].phase != PETREL_PHASE_RESET)
            petrel_ring_write32(&dev->rings[r], PETREL_RING_PREEMPT, 1);
    }
}

static void device_freeze_poll_locked(struct petrel_device *dev, uint64_t now)
{
    bool frozen = true;
    for (uint32_t r = 0; r < PETREL_RING_COUNT; r++)
        frozen &= dev->rings[r].phase == PETREL_PHASE_RESET || petrel_ring_read32(&dev->rings[r], PETREL_RING_PREEMPT) == 2;
    if (!frozen && now < dev->device_deadline_ns)
        return;
    dev->device_phase = PETREL_DEVICE_RESET;
    dev->device_deadline_ns = now + PETREL_RESET_NS;
    hw_write32(dev->hw, PETREL_REGS_OFF_RESET, 1u << 31);
}

static void device_reset_poll_locked(struct petrel_device *dev, uint64_t now, struct petrel_after *after)
{
    if (dev->device_phase == PETREL_DEVICE_FREEZE)
        device_freeze_poll_locked(dev, now);
    if (dev->device_phase != PETREL_DEVICE_RESET)
        return;
    const uint32_t reg = hw_read32(dev->hw, PETREL_REGS_OFF_RESET);
    if (reg == UINT32_MAX)
        return; /* off the bus; the next look tells */
    if (!(reg & 1u << 31)) {
        dev->device_phase = PETREL_DEVICE_RUN;
        for (uint32_t r = 0; r < PETREL_RING_COUNT; r++)
            ring_reset_done_locked(&dev->rings[r], after);
    } else if (now >= dev->device_deadline_ns) {
        umdErrorDetail record;
        umdRecordId cause = {0};
        for (uint32_t r = 0; r < PETREL_RING_COUNT && !cause.seq; r++) {
            if (dev->rings[r].phase == PETREL_PHASE_RESET)
                cause = dev->rings[r].reset_cause;
        }
        PETREL_RAISE(&record, 0, cause, UMD_ERR_DEV_LOST_RESET_FAILED, "device=%u reset_reg=0x%x waited_ns=%" PRIu64 " resets=%" PRIu64, dev->index, reg,
                     (uint64_t)PETREL_RESET_NS, dev->reset_count);
        petrel_lost_locked(dev, &record, after);
    }
}

void petrel_reset_poll_locked(struct petrel_device *dev, uint64_t now, struct petrel_after *after)
{
    umd_mutex_assert_held(&dev->sched_lock);
    for (uint32_t r = 0; r < PETREL_RING_COUNT && dev->device_phase == PETREL_DEVICE_RUN && !atomic_load(&dev->lost_code); r++) {
        struct petrel_ring *ring = &dev->rings[r];
        if (ring->phase != PETREL_PHASE_RESET)
            continue;
        const uint32_t reg = hw_read32(dev->hw, PETREL_REGS_OFF_RESET);
        if (!(reg & 1u << r))
            ring_reset_done_locked(ring, after);
        else if (reg != UINT32_MAX && now >= ring->deadline_ns)
            device_reset_begin_locked(dev, ring, now);
    }
    if (dev->device_phase != PETREL_DEVICE_RUN && !atomic_load(&dev->lost_code))
        device_reset_poll_locked(dev, now, after);
}

/* ---- Loss ---- */

void petrel_lost_locked(struct petrel_device *dev, const umdErrorDetail *record, struct petrel_after *after)
{
    umd_mutex_assert_held(&dev->sched_lock);
    if (atomic_load(&dev->lost_code))
        return;
    dev->lost_record = *record;
    atomic_store(&dev->lost_code, record->code);
    const uint64_t end_ns = dev->rings[0].last_end_ns > dev->rings[1].last_end_ns ? dev->rings[0].last_end_ns : dev->rings[1].last_end_ns;
    struct petrel_job *job;
    for (uint32_t r = 0; r < PETREL_RING_COUNT; r++) {
        while ((job = petrel_job_list_take(&dev->rings[r].inflight))) {
            bool own = job->error; /* its own failure came first */
            petrel_job_end_locked(job, own ? job->error : -ENODEV, own ? &job->record : record, end_ns, after);
        }
        dev->rings[r].done_seq = dev->rings[r].seq;
    }
    for (struct petrel_queue *queue = dev->queues; queue; queue = queue->next) {
        while ((job = petrel_job_list_take(&queue->pending)))
            petrel_job_end_locked(job, -ENODEV, record, end_ns, after);
        if (queue->state != DRM_PETREL_QUEUE_BANNED) {
            queue->code = record->code;
            queue->record = *record;
        }
        queue->state = DRM_PETREL_QUEUE_LOST;
    }
    petrel_event_all_locked(dev, DRM_PETREL_EVENT_LOST, record);
}

bool petrel_check_bus_locked(struct petrel_device *dev, struct petrel_after *after)
{
    const uint32_t id = hw_read32(dev->hw, PETREL_REGS_OFF_ID);
    umdErrorDetail record;
    if (atomic_load(&dev->lost_code))
        return false;
    if (id != UINT32_MAX)
        return true;
    PETREL_RAISE(&record, 0, (umdRecordId){0}, UMD_ERR_DEV_LOST_OFF_BUS, "device=%u register=ID read=0x%x expected=0x50455452 jobs=%u", dev->index, id, dev->jobs_alive);
    petrel_lost_locked(dev, &record, after);
    return false;
}

bool petrel_check_lost_quietly(struct petrel_device *dev)
{
    if (!atomic_load(&dev->lost_code) && hw_read32(dev->hw, PETREL_REGS_OFF_ID) == UINT32_MAX)
        petrel_sched_kick(dev);
    return atomic_load(&dev->lost_code);
}

int petrel_check_lost(struct petrel_device *dev)
{
    if (!petrel_check_lost_quietly(dev))
        return 0;
    umd_mutex_lock(&dev->sched_lock);
    const umdRecordId cause = dev->lost_record.id;
    umd_mutex_unlock(&dev->sched_lock);
    const umdStatus code = atomic_load(&dev->lost_code);
    return -umdStatusErrno(UMD_FAIL_FROM(code, cause, "device=%u reason=lost_before", dev->index));
}
