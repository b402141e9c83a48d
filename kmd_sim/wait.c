/* SPDX-License-Identifier: MIT */
/* wait.c - the WAIT ioctl: what the wait ended with, or at which stage it timed out. */
#include <string.h>

#include "kmd_priv.h"

UMD_LOG_MODULE("kmd.wait");

#define STEP_MAX_NS 1000000000ull

uint64_t petrel_wait_now(struct drm_device *drm)
{
    return petrel_now(petrel_device_of(drm));
}

bool petrel_wait_step(struct drm_device *drm, uint64_t budget_ns)
{
    struct petrel_device *dev = petrel_device_of(drm);
    if (drm->stepped) {
        umd_mutex_lock(&dev->sched_lock);
        bool running = dev->rings[0].inflight.first || dev->rings[1].inflight.first || dev->device_phase != PETREL_DEVICE_RUN;
        umd_mutex_unlock(&dev->sched_lock);
        if (!running && budget_ns == UINT64_MAX)
            return false;
        hw_device_pump(dev->hw, budget_ns < STEP_MAX_NS ? budget_ns : STEP_MAX_NS);
    }
    petrel_sched_kick(dev);
    /* After a loss nothing comes, but for the fences that another thread is signalling because of it. */
    return !atomic_load(&dev->lost_code) || atomic_load(&dev->ticks_running);
}

/* What a job waits for, at the far end. job 0: something that was never submitted. */
struct root { uint64_t job, queue, cycle_job; uint32_t hops; };

static struct petrel_job *head_of(struct petrel_job *job)
{
    return job->state == PETREL_JOB_PENDING && job->queue ? job->queue->pending.first : job;
}

/* The job that the first job of a queue waits for now; NULL: none is known. */
static struct petrel_job *awaited_locked(const struct petrel_job *head)
{
    const struct drm_sync_ref *ref = &head->deps[head->dep_next];
    return ref->resolved && ref->fence ? petrel_job_of(dma_fence_inner(ref->fence)) : NULL;
}

/*
 * From the first job of the queue to what it waits for, and so on, however long the way is: each job is marked with the number of the walk, so
 * that it ends at work that may go on, at a point that nothing was submitted for, or where it has been before, which is a cycle.
 */
static struct root root_locked(struct petrel_job *job)
{
    const uint64_t walk = ++job->dev->walks;
    struct root root = {0};
    umd_mutex_assert_held(&job->dev->sched_lock);
    for (; job; root.hops++) {
        struct petrel_job *head = head_of(job);
        const bool blocked = head->state == PETREL_JOB_PENDING && head->dep_next < head->dep_count;
        job = blocked ? awaited_locked(head) : NULL;
        if (blocked && head->walk != walk) {
            head->walk = walk;
            continue;
        }
        root.job = head->id;
        root.queue = head->queue_id;
        root.cycle_job = blocked && job ? job->id : 0;
        return root;
    }
    return root;
}

static enum drm_petrel_stage stage_locked(struct petrel_job *job, struct root *root_out)
{
    struct petrel_device *dev = job->dev;
    if (job->state == PETREL_JOB_DONE)
        return job->irq_lost ? DRM_PETREL_STAGE_SIGNAL_LOST : DRM_PETREL_STAGE_DONE;
    if (job->state == PETREL_JOB_PENDING) {
        const struct petrel_job *head = head_of(job);
        if (head->dep_next == head->dep_count)
            return DRM_PETREL_STAGE_QUEUED;
        *root_out = root_locked(job);
        return root_out->cycle_job ? DRM_PETREL_STAGE_CYCLE : DRM_PETREL_STAGE_DEPENDENCY;
    }
    struct petrel_ring *ring = &dev->rings[job->queue->engine];
    if (ring->inflight.first != job || petrel_ring_read64(ring, PETREL_RING_JOB) != job->id)
        return DRM_PETREL_STAGE_QUEUED;
    if (ring->watched != job->id)
        return DRM_PETREL_STAGE_RUNNING; /* just started: the watchdog has not seen it yet */
    const uint64_t now = petrel_now(dev), patience_ns = petrel_watchdog_look_locked(ring, job, now);
    /* A start may lie ahead of the clock: a ring that is ahead of the other one has ended the job before this one. */
    return now < job->progress_ns + patience_ns ? DRM_PETREL_STAGE_RUNNING : DRM_PETREL_STAGE_STALLED;
}

/* Where the awaited work stands, into the caller's struct. Value: its job, or NULL. */
static struct petrel_job *report(struct petrel_device *dev, const struct drm_sync_ref *ref, struct drm_petrel_wait *args)
{
    struct petrel_job *job = ref->fence ? petrel_job_of(dma_fence_inner(ref->fence)) : NULL;
    args->stage = !ref->resolved ? DRM_PETREL_STAGE_NONE : DRM_PETREL_STAGE_DONE;
    if (!job)
        return NULL;
    umd_mutex_lock(&dev->sched_lock);
    struct root root = {0};
    args->stage = stage_locked(job, &root);
    args->root_job = root.job;
    args->root_queue = root.queue;
    args->cycle_job = root.cycle_job;
    args->hops = root.hops;
    args->job_id = job->id;
    args->queue_id = job->queue_id;
    args->submit_ns = job->submit_ns;
    /* Written to the ring is not begun. */
    args->start_ns = args->stage == DRM_PETREL_STAGE_QUEUED || job->state == PETREL_JOB_PENDING ? 0 : job->start_ns;
    args->progress_ns = job->progress_ns;
    args->end_ns = job->end_ns;
    args->progress = job->progress;
    umd_mutex_unlock(&dev->sched_lock);
    return job;
}

static void give_record(uint64_t error_ptr, const umdErrorDetail *record)
{
    uint32_t size_B = 0;
    if (error_ptr && usercopy_try_from(&size_B, error_ptr, sizeof(size_B)))
        usercopy_try_to(error_ptr, record, size_B < sizeof(*record) ? size_B : sizeof(*record));
}

static int wait_done(struct petrel_device *dev, const struct drm_wait *wait, struct drm_petrel_wait *args)
{
    const struct drm_sync_ref *ref = &wait->refs[wait->first];
    args->first = wait->first;
    const struct petrel_job *job = report(dev, ref, args);
    const struct dma_fence *inner = ref->fence ? dma_fence_inner(ref->fence) : NULL;
    args->fence_error = inner ? inner->error : 0;
    if (job && args->fence_error)
        give_record(args->error_ptr, &job->record);
    return 0;
}

static int wait_timed_out(struct petrel_device *dev, const struct drm_wait *wait, struct drm_petrel_wait *args)
{
    uint32_t i = 0;
    while (i + 1 < wait->count && drm_sync_ref_done(&wait->refs[i]))
        i++;
    report(dev, &wait->refs[i], args);
    int ret = petrel_check_lost(dev); /* a wait for what can never be submitted any more ends with the loss */
    return ret ? ret : -ETIME;
}

static int read_refs(struct drm_file *drm, const struct drm_petrel_wait *args, struct drm_sync_ref *refs)
{
    struct drm_petrel_sync syncs[PETREL_SYNCS_MAX];
    int ret = copy_from_user(syncs, args->syncs_ptr, args->sync_count * sizeof(*syncs), "syncs_ptr");
    for (uint32_t i = 0; ret == 0 && i < args->sync_count; i++) {
        KMD_FIELD(syncs[i].flags, "field=syncs.flags index=%u value=0x%x", i, syncs[i].flags);
        refs[i].point = syncs[i].point;
        if (!(refs[i].sync = drm_syncobj_lookup(drm, syncs[i].handle)))
            ret = UMD_FAIL_ERRNO(UMD_ERR_UAPI_HANDLE, "object=syncobj index=%u handle=%u", i, syncs[i].handle);
    }
    return ret;
}

static uint64_t host_now(struct drm_device *drm)
{
    (void)drm;
    return umd_sys()->mono_ns();
}

int petrel_wait_ioctl(struct drm_file *drm, void *data)
{
    struct drm_petrel_wait *args = data;
    struct petrel_device *dev = petrel_device_of(drm->dev);
    const uint32_t known = DRM_PETREL_WAIT_ALL | DRM_PETREL_WAIT_DEVICE_CLOCK;
    KMD_FIELD(args->flags & ~known, "field=flags value=0x%x known=0x%x", args->flags, known);
    KMD_FIELD(args->pad, "field=pad value=%u", args->pad);
    KMD_FIELD(args->pad2, "field=pad2 value=%u", args->pad2);
    KMD_FIELD(args->sync_count == 0 || args->sync_count > PETREL_SYNCS_MAX, "field=sync_count value=%u max=%u", args->sync_count, PETREL_SYNCS_MAX);
    struct drm_sync_ref refs[PETREL_SYNCS_MAX] = {0};
    struct drm_wait wait = {
        .refs = refs,
        .count = args->sync_count,
        .all = args->flags & DRM_PETREL_WAIT_ALL,
        .stop_on_error = true,
        .now = args->flags & DRM_PETREL_WAIT_DEVICE_CLOCK ? petrel_wait_now : host_now,
        .deadline = UINT64_MAX,
    };
    int ret = read_refs(drm, args, refs);
    if (ret == 0 && args->timeout_ns != UINT64_MAX) {
        const uint64_t now = wait.now(drm->dev);
        wait.deadline = args->timeout_ns < UINT64_MAX - now ? now + args->timeout_ns : UINT64_MAX;
    }
    if (ret == 0) {
        ret = drm_wait_refs(drm->dev, &wait);
        ret = ret == 0 ? wait_done(dev, &wait, args) : wait_timed_out(dev, &wait, args);
    }
    for (uint32_t i = 0; i < args->sync_count; i++)
        drm_sync_ref_fini(&refs[i]);
    return ret;
}
