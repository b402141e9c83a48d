/* SPDX-License-Identifier: MIT */
/*
 * sched.c - one scheduler a ring: jobs whose dependencies are met go to the hardware by priority, then in turn by queue.
 * Simplified: a queue's jobs start in order, and a ring works on one job at a time, so that only the first job in flight can have begun.
 */
#include <string.h>

#include "kmd_priv.h"

UMD_LOG_MODULE("kmd.sched");

/* Signalling runs callbacks, which want the scheduler again: they ask the loop that is under way instead of nesting. */
static _Thread_local bool sched_running, sched_again;

void petrel_job_list_add(struct petrel_job_list *l, struct petrel_job *job)
{
    job->next = NULL;
    *l->last = job;
    l->last = &job->next;
    l->count++;
}

void petrel_job_list_add_first(struct petrel_job_list *l, struct petrel_job *job)
{
    job->next = l->first;
    if (!l->first)
        l->last = &job->next;
    l->first = job;
    l->count++;
}

struct petrel_job *petrel_job_list_take(struct petrel_job_list *l)
{
    struct petrel_job *job = l->first;
    if (job) {
        l->first = job->next;
        if (!l->first)
            l->last = &l->first;
        l->count--;
        job->next = NULL;
    }
    return job;
}

/* ---- Ends ---- */

void petrel_job_end_locked(struct petrel_job *job, int error, const umdErrorDetail *record, uint64_t end_ns, struct petrel_after *after)
{
    struct petrel_queue *queue = job->queue;
    umd_mutex_assert_held(&job->dev->sched_lock);
    assert(job->state != PETREL_JOB_DONE && (error == 0) == (record == NULL));
    if (job->waiting && dma_fence_remove_callback(job->deps[job->dep_next].fence, &job->dep_cb)) {
        job->waiting = false;
        dma_fence_put(&job->fence); /* the callback's; ours is still there */
    }
    job->state = PETREL_JOB_DONE;
    job->end_ns = end_ns;
    job->error = error;
    if (record && record != &job->record)
        job->record = *record;
    queue->outstanding--;
    job->dev->jobs_alive--;
    if (error == 0)
        queue->jobs_done++;
    else if (error == -ECANCELED)
        queue->jobs_cancelled++;
    else
        queue->jobs_failed++;
    petrel_job_list_add(&after->done, job);
}

static void job_finish(struct petrel_job *job)
{
    dma_fence_signal(&job->fence, job->error, job->end_ns);
    for (uint32_t i = 0; i < job->dep_count; i++)
        drm_sync_ref_fini(&job->deps[i]);
    umd_free(job->deps);
    umd_free(job->ibs);
    job->deps = NULL;
    job->ibs = NULL;
    petrel_vm_put(job->vm);
    petrel_queue_put(job->queue);
    job->vm = NULL;
    job->queue = NULL;
    dma_fence_put(&job->fence);
}

void petrel_after_run(struct petrel_device *dev, struct petrel_after *after)
{
    struct petrel_job *job;
    (void)dev;
    while ((job = petrel_job_list_take(&after->done)))
        job_finish(job);
    while (after->zombies) {
        struct petrel_zombie *zombie = after->zombies;
        after->zombies = zombie->next;
        zombie->release(zombie);
    }
}

static void end_pending_locked(struct petrel_queue *queue, const umdErrorDetail *record, struct petrel_after *after)
{
    struct petrel_job *job;
    while ((job = petrel_job_list_take(&queue->pending)))
        petrel_job_end_locked(job, -ECANCELED, record, petrel_now(queue->dev), after);
}

/* What an owner ends by destroying it is no error, though a wait for it ends with the code. */
void petrel_queue_cancel_locked(struct petrel_queue *queue, struct petrel_after *after)
{
    umdErrorDetail record;
    const struct petrel_job *job = queue->pending.first;
    assert(!queue->open || queue->state != DRM_PETREL_QUEUE_OK);
    if (!job)
        return;
    const bool banned = queue->open && queue->state != DRM_PETREL_QUEUE_CANCELLED;
    const char *reason = !queue->open ? "queue_destroyed" : banned ? "context_banned" : "queue_cancelled";
    umdAdvice advice = umdStatusAdvice(UMD_ERR_EXEC_CANCELLED); /* a cancelled queue takes the work when it is submitted again, a banned one nothing */
    if (banned)
        advice = umd_advice_do(UMD_ERR_EXEC_CANCELLED, UMD_ACTION_REBUILD_CONTEXT);
    else if (!queue->open)
        advice = umd_advice_do(UMD_ERR_EXEC_CANCELLED, UMD_ACTION_NONE);
    if (!queue->open)
        advice.severity = UMD_SEVERITY_INFO;
    PETREL_RAISE_ADVISED(&record, queue->context_id, queue->open ? queue->record.id : (umdRecordId){0}, advice, UMD_ERR_EXEC_CANCELLED,
                         "queue=%u first_job=%" PRIu64 " jobs=%u cmdbuf=%" PRIu64 " started=%d reason=%s", queue->id, job->id, queue->pending.count,
                         job->cmdbuf_id, job->started, reason);
    end_pending_locked(queue, &record, after);
}

void petrel_queue_stop_locked(struct petrel_queue *queue, const umdErrorDetail *record)
{
    assert(queue->open && petrel_queue_runs(queue));
    queue->state = DRM_PETREL_QUEUE_CANCELLED;
    queue->code = record->code;
    queue->record = *record;
}

void petrel_queue_resume_locked(struct petrel_queue *queue)
{
    assert(queue->state == DRM_PETREL_QUEUE_CANCELLED);
    queue->state = DRM_PETREL_QUEUE_OK;
    queue->code = UMD_SUCCESS;
    queue->record = (umdErrorDetail){0};
}

void petrel_sched_reap_locked(struct petrel_device *dev, struct petrel_after *after)
{
    for (uint32_t r = 0; r < PETREL_RING_COUNT; r++) {
        struct petrel_ring *ring = &dev->rings[r];
        struct petrel_job *job;
        while ((job = ring->inflight.first)) {
            const uint64_t *slot = ring->slots + job->seq % PETREL_FENCE_SLOTS * 2;
            if (__atomic_load_n(slot, __ATOMIC_ACQUIRE) != job->seq)
                break;
            uint64_t end_ns = __atomic_load_n(slot + 1, __ATOMIC_RELAXED);
            petrel_job_list_take(&ring->inflight);
            if (job->start_ns < ring->last_end_ns)
                job->start_ns = ring->last_end_ns;
            ring->last_end_ns = end_ns;
            job->progress_ns = end_ns;
            if (ring->watched == job->id)
                job->progress = petrel_ring_read64(ring, PETREL_RING_PROGRESS) - job->progress_base;
            /* The work is done, even if its queue was banned or closed meanwhile: its fence may say so. */
            petrel_job_end_locked(job, 0, NULL, end_ns, after);
        }
        ring->done_seq = ring->inflight.first ? ring->inflight.first->seq - 1 : ring->seq;
    }
}

/* ---- Zombies ---- */

static bool zombie_passed(const struct petrel_device *dev, const struct petrel_zombie *zombie)
{
    for (uint32_t r = 0; r < PETREL_RING_COUNT; r++) {
        if (dev->rings[r].done_seq < zombie->seq[r])
            return false;
    }
    return true;
}

static void zombies_collect_locked(struct petrel_device *dev, struct petrel_after *after)
{
    struct petrel_zombie **p = &dev->zombies;
    while (*p) {
        struct petrel_zombie *zombie = *p;
        if (!zombie_passed(dev, zombie)) {
            p = &zombie->next;
            continue;
        }
        *p = zombie->next;
        zombie->next = after->zombies;
        after->zombies = zombie;
    }
}

/* Holds the VM's lock; what is released here takes allocator locks only, which are above it. */
void petrel_zombie_add(struct petrel_device *dev, struct petrel_zombie *zombie)
{
    umd_mutex_lock(&dev->sched_lock);
    for (uint32_t r = 0; r < PETREL_RING_COUNT; r++)
        zombie->seq[r] = dev->rings[r].seq;
    bool passed = zombie_passed(dev, zombie);
    if (!passed) {
        zombie->next = dev->zombies;
        dev->zombies = zombie;
    }
    umd_mutex_unlock(&dev->sched_lock);
    if (passed)
        zombie->release(zombie);
}

/* ---- Dependencies ---- */

static void dep_done(struct dma_fence *fence, struct dma_fence_cb *cb)
{
    struct petrel_job *job = (struct petrel_job *)(void *)((char *)cb - offsetof(struct petrel_job, dep_cb));
    struct petrel_device *dev = job->dev;
    (void)fence;
    umd_mutex_lock(&dev->sched_lock);
    job->waiting = false;
    umd_mutex_unlock(&dev->sched_lock);
    dma_fence_put(&job->fence);
    petrel_sched_kick(dev);
}

/* The first job of its queue will never run, nor will those behind it. */
static void dep_failed_locked(struct petrel_job *job, struct dma_fence *inner, struct petrel_after *after)
{
    umdErrorDetail record;
    struct petrel_queue *queue = job->queue;
    const struct petrel_job *root = petrel_job_of(inner);
    assert(queue->pending.first == job);
    /* Follows from what an owner asked for: a context is destroyed queue by queue. */
    const bool asked = root && inner->error == -ECANCELED && root->record.advice.severity < UMD_SEVERITY_ERROR;
    const umdSeverity severity = asked ? UMD_SEVERITY_WARN : umdStatusAdvice(UMD_ERR_EXEC_CANCELLED).severity;
    PETREL_RAISE_SEVERITY(&record, job->context_id, root ? root->record.id : (umdRecordId){0}, severity, UMD_ERR_EXEC_CANCELLED,
                      "queue=%" PRIu64 " job=%" PRIu64 " jobs=%u cmdbuf=%" PRIu64 " reason=dependency_failed root_job=%" PRIu64 " root_queue=%" PRIu64
                      " root_error=%d submit_ns=%" PRIu64 " start_ns=0 progress_ns=0", job->queue_id, job->id, queue->pending.count, job->cmdbuf_id,
                      root ? root->id : 0, root ? root->queue_id : 0, inner->error, job->submit_ns);
    petrel_queue_stop_locked(queue, &record);
    petrel_event_job_locked(job, DRM_PETREL_EVENT_CANCELLED, 0, &record);
    end_pending_locked(queue, &record, after);
}

/* True: the first job of the queue may go. It may also have been ended here, since what it waits for failed. */
static bool head_ready_locked(struct petrel_queue *queue, struct petrel_after *after)
{
    struct petrel_job *job;
    while ((job = queue->pending.first)) {
        if (job->waiting)
            return false;
        if (job->dep_next == job->dep_count)
            return true;
        struct drm_sync_ref *ref = &job->deps[job->dep_next];
        if (!ref->resolved) {
            atomic_store(&queue->dev->unresolved, true); /* before the look, so that who publishes after it sees the flag */
            if (!drm_sync_ref_resolve(ref))
                return false;
        }
        if (!drm_sync_ref_done(ref)) {
            dma_fence_get(&job->fence);
            job->waiting = true;
            if (dma_fence_add_callback(ref->fence, &job->dep_cb, dep_done))
                return false;
            job->waiting = false;
            dma_fence_put(&job->fence);
        }
        struct dma_fence *inner = ref->fence ? dma_fence_inner(ref->fence) : NULL;
        if (inner && inner->error)
            dep_failed_locked(job, inner, after);
        else
            job->dep_next++;
    }
    return false;
}

/* ---- To the ring ---- */

static void put(struct petrel_ring *ring, uint32_t dw)
{
    ring->dw[ring->wptr++ & (PETREL_RING_DW - 1)] = dw;
}

static void put64(struct petrel_ring *ring, uint64_t v)
{
    put(ring, (uint32_t)v);
    put(ring, (uint32_t)(v >> 32));
}

static void write_job_locked(struct petrel_ring *ring, struct petrel_job *job)
{
    struct petrel_vm *vm = job->vm;
    const uint64_t gen = atomic_load(&vm->tlb_gen);
    job->seq = ++ring->seq;
    put(ring, PETREL_PKT(PETREL_OP_SET_CONTEXT, 8));
    put64(ring, vm->root->page->block->start);
    put(ring, vm->hw_id);
    put64(ring, job->id);
    put(ring, 0);
    put64(ring, job->context_id);
    if (vm->ring_gen[ring->index] != gen || vm->ring_epoch[ring->index] != ring->epoch) {
        put(ring, PETREL_PKT(PETREL_OP_TLB_INVAL, 1));
        put(ring, vm->hw_id);
        vm->ring_gen[ring->index] = gen;
        vm->ring_epoch[ring->index] = ring->epoch;
    }
    job->ring_at = ring->wptr;
    for (uint32_t i = 0; i < job->ib_count; i++) {
        put(ring, PETREL_PKT(PETREL_OP_INDIRECT, 3));
        put64(ring, job->ibs[i].va);
        put(ring, job->ibs[i].size_dw);
    }
    put(ring, PETREL_PKT(PETREL_OP_FENCE, 5));
    put64(ring, ring->fence_mem->start + job->seq % PETREL_FENCE_SLOTS * 16);
    put64(ring, job->seq);
    put(ring, 1);
    job->state = PETREL_JOB_INFLIGHT;
    job->start_ns = petrel_now(ring->dev);
    petrel_job_list_add(&ring->inflight, job);
    ring->done_seq = ring->inflight.first->seq - 1;
    petrel_ring_write32(ring, PETREL_RING_WPTR, ring->wptr);
}

/* Its packets are not there any more, but for those of the ring itself: what it invalidates, and its fence. */
static void unwrite_job_locked(struct petrel_ring *ring, const struct petrel_job *job)
{
    for (uint32_t i = 0; i < job->ib_count * 4; i++)
        ring->dw[(job->ring_at + i) & (PETREL_RING_DW - 1)] = PETREL_PKT(PETREL_OP_NOP, 0);
}

bool petrel_ring_may_recall_locked(const struct petrel_ring *ring)
{
    const struct petrel_job *job = ring->inflight.first;
    if (!job || ring->recall_refused == job->id)
        return false;
    while ((job = job->next))
        if (!job->queue->open)
            return true;
    return false;
}

void petrel_ring_recall_locked(struct petrel_ring *ring, struct petrel_after *after)
{
    struct petrel_job_list all = ring->inflight;
    struct petrel_job *job;
    const uint64_t started = petrel_ring_read64(ring, PETREL_RING_JOB);
    if (!all.first)
        return;
    petrel_job_list_init(&ring->inflight);
    petrel_job_list_add(&ring->inflight, petrel_job_list_take(&all)); /* the first may have begun, by the time this is read */
    while ((job = all.first)) {
        all.first = job->next;
        if (job->id == started || job->queue->open) {
            petrel_job_list_add(&ring->inflight, job);
            continue;
        }
        unwrite_job_locked(ring, job);
        job->state = PETREL_JOB_PENDING;
        petrel_job_list_add(&job->queue->pending, job);
        petrel_queue_cancel_locked(job->queue, after);
    }
    ring->done_seq = ring->inflight.first->seq - 1;
}

static struct petrel_queue *pick_locked(struct petrel_device *dev, uint32_t engine, struct petrel_after *after)
{
    struct petrel_queue *best = NULL;
    for (struct petrel_queue *queue = dev->queues; queue; queue = queue->next) {
        if (queue->engine != engine || !petrel_queue_runs(queue) || !queue->open || !head_ready_locked(queue, after))
            continue;
        if (!best || queue->priority > best->priority || (queue->priority == best->priority && queue->last_turn < best->last_turn))
            best = queue;
    }
    return best;
}

void petrel_sched_fill_locked(struct petrel_device *dev, struct petrel_after *after)
{
    if (atomic_load(&dev->lost_code) || dev->device_phase != PETREL_DEVICE_RUN)
        return;
    for (uint32_t r = 0; r < PETREL_RING_COUNT; r++) {
        struct petrel_ring *ring = &dev->rings[r];
        struct petrel_queue *queue;
        while (ring->phase == PETREL_PHASE_RUN && ring->inflight.count < PETREL_CREDITS && (queue = pick_locked(dev, r, after))) {
            queue->last_turn = ++dev->turn;
            write_job_locked(ring, petrel_job_list_take(&queue->pending));
        }
    }
}

static void tick_once(struct petrel_device *dev, bool from_irq)
{
    struct petrel_after after;
    petrel_after_init(&after);
    atomic_fetch_add(&dev->ticks_running, 1); /* until what ended here has signalled */
    umd_mutex_lock(&dev->sched_lock);
    if (!atomic_load(&dev->lost_code) && petrel_check_bus_locked(dev, &after)) {
        petrel_irq_drain_locked(dev, from_irq, &after);
        petrel_sched_reap_locked(dev, &after);
        const uint64_t now = petrel_now(dev);
        petrel_reset_poll_locked(dev, now, &after);
        for (uint32_t r = 0; r < PETREL_RING_COUNT; r++)
            petrel_watchdog_locked(&dev->rings[r], now, &after);
        petrel_sched_fill_locked(dev, &after);
        if (!atomic_load(&dev->lost_code)) {
            for (uint32_t r = 0; r < PETREL_RING_COUNT; r++)
                petrel_watchdog_see_locked(&dev->rings[r]);
            petrel_watchdog_arm_locked(dev, now);
        }
    }
    zombies_collect_locked(dev, &after);
    umd_mutex_unlock(&dev->sched_lock);
    petrel_after_run(dev, &after);
    atomic_fetch_sub(&dev->ticks_running, 1);
}

void petrel_sched_tick(struct petrel_device *dev, bool from_irq)
{
    if (sched_running) {
        sched_again = true;
        return;
    }
    sched_running = true;
    do {
        sched_again = false;
        tick_once(dev, from_irq);
        from_irq = false;
    } while (sched_again);
    sched_running = false;
}

void petrel_sched_kick(struct petrel_device *dev)
{
    petrel_sched_tick(dev, false);
}

/* ---- Rings ---- */

void petrel_ring_start(struct petrel_ring *ring)
{
    struct hw_device *hw = ring->dev->hw;
    const uint32_t base = 0x1000u + ring->index * PETREL_RING_STRIDE;
    hw_write32(hw, base + PETREL_RING_SIZE_DW, 0);
    hw_write64(hw, base + PETREL_RING_BASE, ring->ring_mem->start);
    /* Wherever the device's read pointer stands now is where we go on. */
    ring->wptr = hw_read32(hw, base + PETREL_RING_RPTR);
    hw_write32(hw, base + PETREL_RING_WPTR, ring->wptr);
    hw_write32(hw, base + PETREL_RING_SIZE_DW, PETREL_RING_DW);
    ring->epoch++;
    ring->phase = PETREL_PHASE_RUN;
    ring->watched = 0;
}

umdStatus petrel_ring_init(struct petrel_device *dev, uint32_t index)
{
    struct petrel_ring *ring = &dev->rings[index];
    ring->dev = dev;
    ring->index = index;
    petrel_job_list_init(&ring->inflight);
    umdStatus st = petrel_heap_alloc(&dev->vram, PETREL_RING_DW * 4, PETREL_PAGE_SIZE, true, &ring->ring_mem);
    if (st >= 0)
        st = petrel_heap_alloc(&dev->vram, PETREL_PAGE_SIZE, PETREL_PAGE_SIZE, true, &ring->fence_mem);
    if (st < 0)
        return st;
    ring->dw = (uint32_t *)(void *)(dev->vram.cpu + ring->ring_mem->start);
    ring->slots = (uint64_t *)(void *)(dev->vram.cpu + ring->fence_mem->start);
    petrel_ring_start(ring);
    return UMD_SUCCESS;
}

void petrel_ring_fini(struct petrel_ring *ring)
{
    if (!ring->dev)
        return;
    petrel_heap_free(&ring->dev->vram, ring->ring_mem);
    petrel_heap_free(&ring->dev->vram, ring->fence_mem);
}
