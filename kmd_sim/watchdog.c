/* SPDX-License-Identifier: MIT */
/*
 * watchdog.c - tells long from spinning from stuck, in device time. What has not started is not charged. While the progress counter
 * moves a job is long; without progress it is asked to stop: who does was spinning, who does not is stuck.
 */
#include "kmd_priv.h"

UMD_LOG_MODULE("kmd.watchdog");

/* The first job in flight is another one than at the last look. */
static void watch_new_locked(struct petrel_ring *ring, struct petrel_job *job, uint64_t now)
{
    ring->watched = job->id;
    ring->seen_progress = petrel_ring_read64(ring, PETREL_RING_PROGRESS);
    ring->seen_instr = petrel_ring_read64(ring, PETREL_RING_INSTR);
    ring->seen_rptr = petrel_ring_read32(ring, PETREL_RING_RPTR);
    ring->rptr_ns = ring->watch_base_ns = now;
    ring->next_long_ns = ring->dev->info.watchdog_ns;
    if (job->start_ns < ring->last_end_ns)
        job->start_ns = ring->last_end_ns;
    job->progress_base = ring->seen_progress;
    job->progress_ns = job->start_ns;
    job->pause_ns = 0;
}

/*
 * The counter moves by whole workgroups, which retire in bursts: a job that has made a pause of some length and gone on may make another
 * one as long. Looks are rare, so that a pause seems longer than it was, never shorter.
 */
uint64_t petrel_watchdog_look_locked(struct petrel_ring *ring, struct petrel_job *job, uint64_t now)
{
    const uint64_t progress = petrel_ring_read64(ring, PETREL_RING_PROGRESS) - job->progress_base, limit = ring->dev->info.watchdog_ns;
    umd_mutex_assert_held(&ring->dev->sched_lock);
    if (progress != job->progress) {
        if (now > job->progress_ns && now - job->progress_ns > job->pause_ns)
            job->pause_ns = now - job->progress_ns;
        job->progress = progress;
        job->progress_ns = now;
    }
    uint64_t patience = limit / PETREL_STALL_SHARE > PETREL_STALL_MIN_NS ? limit / PETREL_STALL_SHARE : PETREL_STALL_MIN_NS;
    if (patience < job->pause_ns * PETREL_STALL_PACE)
        patience = job->pause_ns * PETREL_STALL_PACE;
    return patience < limit ? patience : limit;
}

static void warn_long_locked(struct petrel_ring *ring, struct petrel_job *job, uint64_t now)
{
    umdErrorDetail record;
    const uint64_t elapsed = now > job->start_ns ? now - job->start_ns : 0; /* rings run ahead of the clock, and so do starts */
    if (elapsed < ring->next_long_ns)
        return;
    PETREL_RAISE(&record, job->context_id, (umdRecordId){0}, UMD_ERR_HW_LONG_RUNNING,
                 "ring=%u queue=%" PRIu64 " job=%" PRIu64 " cmdbuf=%" PRIu64 " elapsed_ns=%" PRIu64 " threshold_ns=%" PRIu64 " progress=%" PRIu64 " progress_ns=%" PRIu64,
                 ring->index, job->queue_id, job->id, job->cmdbuf_id, elapsed, ring->next_long_ns, job->progress, job->progress_ns);
    while (ring->next_long_ns <= elapsed)
        ring->next_long_ns *= 2;
    petrel_event_job_locked(job, DRM_PETREL_EVENT_WARNING, 0, &record);
}

void petrel_probe_begin_locked(struct petrel_ring *ring, uint64_t now)
{
    assert(ring->phase == PETREL_PHASE_RUN);
    ring->phase = PETREL_PHASE_PROBE;
    ring->deadline_ns = now + PETREL_PROBE_NS;
    petrel_ring_write32(ring, PETREL_RING_PREEMPT, 1);
}

static void probe_end_locked(struct petrel_ring *ring)
{
    petrel_ring_write32(ring, PETREL_RING_PREEMPT, 0);
    ring->phase = PETREL_PHASE_RUN;
    ring->recalling = false;
}

/*
 * A destroyed queue has work behind another's, which may take as long as it likes: the ring stops for a moment, and the work is taken back.
 * One that does not stop is for the watchdog, which has its own time.
 */
static void recall_begin_locked(struct petrel_ring *ring, uint64_t now)
{
    ring->recalling = true;
    petrel_probe_begin_locked(ring, now);
}

/* The command processor did not reach its first job: nobody's fault. The ring is reset and the jobs start again. */
static void ring_stuck_locked(struct petrel_ring *ring, struct petrel_job *job, uint64_t now, struct petrel_after *after)
{
    umdErrorDetail record;
    const bool reset = petrel_reset_take_locked(ring->dev);
    PETREL_RAISE(&record, job->context_id, (umdRecordId){0}, UMD_ERR_HW_HANG,
                 "ring=%u queue=%" PRIu64 " job=%" PRIu64 " cmdbuf=%" PRIu64 " started=0 stuck_ns=%" PRIu64 " rptr=%u wptr=%u jobs_requeued=%u %s", ring->index,
                 job->queue_id, job->id, job->cmdbuf_id, now - ring->rptr_ns, ring->seen_rptr, ring->wptr, reset ? ring->inflight.count : 0,
                 reset ? "reset=begun" : "reset=refused");
    petrel_event_job_locked(job, DRM_PETREL_EVENT_WARNING, 0, &record);
    if (reset)
        petrel_ring_reset_begin_locked(ring, record.id, after);
    else
        petrel_reset_refused_locked(ring->dev, record.id, after);
}

void petrel_probe_poll_locked(struct petrel_ring *ring, uint64_t now, struct petrel_after *after)
{
    const bool honoured = petrel_ring_read32(ring, PETREL_RING_PREEMPT) == 2;
    if (!honoured && now < ring->deadline_ns)
        return;
    petrel_sched_reap_locked(ring->dev, after); /* it may have got done before it stopped */
    struct petrel_job *job = ring->inflight.first;
    const uint64_t progress = petrel_ring_read64(ring, PETREL_RING_PROGRESS);
    if (honoured)
        petrel_ring_recall_locked(ring, after);
    else
        ring->recall_refused = job ? job->id : 0;
    if (job && !job->queue->open) {
        petrel_ring_reset_begin_locked(ring, (umdRecordId){0}, after);
    } else if (ring->recalling) {
        probe_end_locked(ring);
    } else if (!job || job->id != ring->watched || progress != ring->seen_progress) {
        probe_end_locked(ring);
    } else if (petrel_ring_read64(ring, PETREL_RING_JOB) != job->id && honoured) {
        ring->rptr_ns = ring->watch_base_ns = now; /* who answers is not stuck, and what has not started is not charged */
        probe_end_locked(ring);
    } else if (petrel_ring_read64(ring, PETREL_RING_JOB) != job->id) {
        ring_stuck_locked(ring, job, now, after);
    } else {
        petrel_ring_guilty_locked(ring, honoured ? UMD_ERR_HW_SPIN : UMD_ERR_HW_HANG, PETREL_FAULT_NONE, after);
    }
}

static void watch_running_locked(struct petrel_ring *ring, struct petrel_job *job, uint64_t now, struct petrel_after *after)
{
    const uint64_t progress = petrel_ring_read64(ring, PETREL_RING_PROGRESS);
    const uint32_t rptr = petrel_ring_read32(ring, PETREL_RING_RPTR);
    (void)after;
    if (rptr != ring->seen_rptr) {
        ring->seen_rptr = rptr;
        ring->rptr_ns = now;
    }
    if (petrel_ring_read64(ring, PETREL_RING_JOB) != job->id) {
        ring->watch_base_ns = ring->rptr_ns; /* not started, not charged; but the ring must move */
    } else if (progress != ring->seen_progress) {
        ring->seen_progress = progress;
        ring->seen_instr = petrel_ring_read64(ring, PETREL_RING_INSTR);
        ring->watch_base_ns = now;
        (void)petrel_watchdog_look_locked(ring, job, now); /* a wait may have looked since, and found it */
        warn_long_locked(ring, job, now);
    }
    if (now - ring->watch_base_ns >= ring->dev->info.watchdog_ns)
        petrel_probe_begin_locked(ring, now);
}

void petrel_watchdog_locked(struct petrel_ring *ring, uint64_t now, struct petrel_after *after)
{
    struct petrel_device *dev = ring->dev;
    umd_mutex_assert_held(&dev->sched_lock);
    if (atomic_load(&dev->lost_code) || dev->device_phase != PETREL_DEVICE_RUN || now == UINT64_MAX)
        return;
    if (ring->phase != PETREL_PHASE_RESET && petrel_ring_read32(ring, PETREL_RING_STATUS) == PETREL_RING_FAULTED) {
        petrel_sched_reap_locked(dev, after);
        petrel_ring_faulted_locked(ring, after); /* its interrupt may have been lost */
    }
    if (ring->phase == PETREL_PHASE_PROBE && !atomic_load(&dev->lost_code))
        petrel_probe_poll_locked(ring, now, after);
    if (ring->phase != PETREL_PHASE_RUN || dev->device_phase != PETREL_DEVICE_RUN || atomic_load(&dev->lost_code))
        return;
    struct petrel_job *job = ring->inflight.first;
    if (!job) {
        ring->watched = 0;
        return;
    }
    if (ring->watched != job->id)
        watch_new_locked(ring, job, now);
    if (!job->queue->open)
        petrel_probe_begin_locked(ring, now);
    else if (petrel_ring_may_recall_locked(ring))
        recall_begin_locked(ring, now);
    else
        watch_running_locked(ring, job, now, after);
}

void petrel_watchdog_see_locked(struct petrel_ring *ring)
{
    struct petrel_job *job = ring->inflight.first;
    if (job && ring->phase == PETREL_PHASE_RUN && ring->watched != job->id)
        watch_new_locked(ring, job, petrel_now(ring->dev));
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void petrel_watchdog_arm_locked(struct petrel_device *dev, uint64_t now)
{
    uint64_t next = UINT64_MAX;
    for (uint32_t r = 0; r < PETREL_RING_COUNT; r++) {
        const struct petrel_ring *ring = &dev->rings[r];
        uint64_t at = UINT64_MAX;
        if (ring->phase == PETREL_PHASE_RESET)
            at = now + PETREL_RESET_NS / 16;
        else if (ring->phase == PETREL_PHASE_PROBE)
            at = ring->deadline_ns;
        else if (ring->inflight.first) /* often enough to see progress, and no later than the verdict is due */
            at = min_u64(now + dev->info.watchdog_ns / 4, ring->watch_base_ns + dev->info.watchdog_ns);
        next = at < next ? at : next;
    }
    if (dev->device_phase != PETREL_DEVICE_RUN)
        next = now + PETREL_RESET_NS / 16;
    hw_write64(dev->hw, PETREL_REGS_OFF_TIMER_NS, next == UINT64_MAX ? 0 : next > now ? next : now + 1000);
}
