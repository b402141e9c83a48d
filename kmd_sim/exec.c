/* SPDX-License-Identifier: MIT */
/* exec.c - submission: all is checked and reserved first, then a job exists and its fences are published, and nothing can fail. */
#include <string.h>

#include "fault_plan.h"
#include "kmd_priv.h"

UMD_LOG_MODULE("kmd.exec");

static void job_release(struct dma_fence *fence)
{
    struct petrel_job *job = (struct petrel_job *)(void *)fence;
    for (uint32_t i = 0; job->deps && i < job->dep_count; i++)
        drm_sync_ref_fini(&job->deps[i]);
    umd_free(job->deps);
    umd_free(job->ibs);
    petrel_vm_put(job->vm);
    petrel_queue_put(job->queue);
    umd_free(job);
}

const struct dma_fence_ops petrel_job_fence_ops = {.name = "petrel-job", .release = job_release};

struct petrel_job *petrel_job_of(struct dma_fence *fence)
{
    return fence && fence->ops == &petrel_job_fence_ops ? (struct petrel_job *)(void *)fence : NULL;
}

/* A submission under construction. */
struct exec {
    struct petrel_job *job;
    struct { struct drm_syncobj *sync; struct dma_fence_chain *chain; uint64_t point; } outs[PETREL_SYNCS_MAX];
    uint32_t out_count;
};

static void exec_abandon(struct exec *x)
{
    for (uint32_t i = 0; i < x->out_count; i++) {
        dma_fence_chain_free(x->outs[i].chain);
        drm_syncobj_put(x->outs[i].sync);
    }
    if (x->job)
        dma_fence_put(&x->job->fence);
}

static int exec_check(const struct drm_petrel_exec *args)
{
    KMD_FIELD(args->flags, "field=flags value=0x%x", args->flags);
    KMD_FIELD(args->ib_count > PETREL_IBS_MAX, "field=ib_count value=%u max=%u", args->ib_count, PETREL_IBS_MAX);
    KMD_FIELD(args->sync_count > PETREL_SYNCS_MAX, "field=sync_count value=%u max=%u", args->sync_count, PETREL_SYNCS_MAX);
    return 0;
}

static int read_ibs(struct petrel_job *job, const struct drm_petrel_exec *args)
{
    int ret = copy_from_user(job->ibs, args->ibs_ptr, args->ib_count * sizeof(*job->ibs), "ibs_ptr");
    for (uint32_t i = 0; ret == 0 && i < args->ib_count; i++) {
        const struct drm_petrel_ib *ib = &job->ibs[i];
        KMD_FIELD(ib->pad, "field=ibs.pad index=%u value=%u", i, ib->pad);
        KMD_FIELD(ib->size_dw == 0 || ib->size_dw > 65535, "field=ibs.size_dw index=%u value=%u max=65535", i, ib->size_dw);
        KMD_FIELD(ib->va % 4 || ib->va >= PETREL_VA_USER_END, "field=ibs.va index=%u value=0x%" PRIx64, i, (uint64_t)ib->va);
    }
    return ret;
}

static int read_sync(struct drm_file *drm, struct exec *x, uint32_t index, const struct drm_petrel_sync *in)
{
    KMD_FIELD(in->flags & ~DRM_PETREL_SYNC_SIGNAL, "field=syncs.flags index=%u value=0x%x", index, in->flags);
    struct drm_syncobj *sync = drm_syncobj_lookup(drm, in->handle);
    if (!sync)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_HANDLE, "object=syncobj index=%u handle=%u", index, in->handle);
    if (!(in->flags & DRM_PETREL_SYNC_SIGNAL)) {
        struct drm_sync_ref *ref = &x->job->deps[x->job->dep_count++];
        *ref = (struct drm_sync_ref){.sync = sync, .point = in->point};
        drm_sync_ref_resolve(ref); /* now: a binary one may be replaced later */
        return 0;
    }
    x->outs[x->out_count].sync = sync;
    x->outs[x->out_count].chain = NULL;
    x->outs[x->out_count++].point = in->point;
    if (in->point && !(x->outs[x->out_count - 1].chain = dma_fence_chain_alloc()))
        return -ENOMEM;
    return 0;
}

static int exec_prepare(struct drm_file *drm, struct exec *x, struct petrel_queue *queue, const struct drm_petrel_exec *args)
{
    struct drm_petrel_sync syncs[PETREL_SYNCS_MAX];
    struct petrel_job *job = umd_alloc(sizeof(*job));
    if (!job)
        return -ENOMEM;
    dma_fence_init(&job->fence, &drm->dev->fences, &petrel_job_fence_ops);
    x->job = job;
    job->dev = queue->dev;
    job->queue = petrel_queue_get(queue);
    job->vm = petrel_vm_get(queue->vm);
    job->queue_id = queue->id;
    job->context_id = queue->context_id;
    job->cmdbuf_id = args->cmdbuf_id;
    job->ib_count = args->ib_count;
    if (args->ib_count && !(job->ibs = umd_alloc(args->ib_count * sizeof(*job->ibs))))
        return -ENOMEM;
    if (args->sync_count && !(job->deps = umd_alloc(args->sync_count * sizeof(*job->deps))))
        return -ENOMEM;
    int ret = read_ibs(job, args);
    if (ret == 0)
        ret = copy_from_user(syncs, args->syncs_ptr, args->sync_count * sizeof(*syncs), "syncs_ptr");
    for (uint32_t i = 0; ret == 0 && i < args->sync_count; i++)
        ret = read_sync(drm, x, i, &syncs[i]);
    return ret;
}

/* A job that waits for what only it can signal would never start. */
static int check_own_syncs(const struct exec *x)
{
    for (uint32_t d = 0; d < x->job->dep_count; d++) {
        const struct drm_sync_ref *dep = &x->job->deps[d];
        for (uint32_t o = 0; o < x->out_count && !dep->resolved; o++) {
            KMD_FIELD(x->outs[o].sync == dep->sync && (dep->point == 0 || x->outs[o].point >= dep->point),
                      "field=syncs in=%u point=%" PRIu64 " out_point=%" PRIu64 " reason=waits_for_itself", d, dep->point, x->outs[o].point);
        }
    }
    return 0;
}

static bool same_record(const umdRecordId *a, const umdRecordId *b)
{
    return a->boot == b->boot && a->pid == b->pid && a->seq == b->seq;
}

/* The queue takes the job, or says why not. */
static int exec_enqueue(struct petrel_queue *queue, struct petrel_job *job, const umdRecordId *resume)
{
    struct petrel_device *dev = queue->dev;
    struct umd_fault_hit hit;
    const bool injected = umd_fault(UMD_FAULT_KMD_RING_FULL, (struct umd_fault_where){.ctx = queue->context_id, .queue = queue->id}, &hit);
    umd_mutex_lock(&dev->sched_lock);
    const bool resumed = queue->state == DRM_PETREL_QUEUE_CANCELLED && same_record(resume, &queue->record.id);
    const enum drm_petrel_queue_state state = resumed ? DRM_PETREL_QUEUE_OK : queue->state;
    const bool open = queue->open, full = queue->outstanding >= queue->max_jobs || injected;
    const uint32_t outstanding = injected ? queue->max_jobs : queue->outstanding;
    const umdRecordId cause = queue->record.id;
    const umdStatus code = queue->code;
    const bool taken = open && state == DRM_PETREL_QUEUE_OK && !full && !atomic_load(&dev->lost_code);
    if (taken) {
        /* Nothing below can fail. */
        if (resumed)
            petrel_queue_resume_locked(queue);
        job->id = ++dev->next_job;
        job->submit_ns = petrel_now(dev);
        queue->outstanding++;
        queue->jobs_submitted++;
        dev->jobs_alive++;
        dma_fence_get(&job->fence); /* the scheduler's */
        petrel_job_list_add(&queue->pending, job);
    }
    umd_mutex_unlock(&dev->sched_lock);
    if (taken)
        return 0;
    if (atomic_load(&dev->lost_code))
        return petrel_check_lost(dev);
    if (!open)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_HANDLE, "object=queue id=%u reason=destroyed", queue->id);
    if (state == DRM_PETREL_QUEUE_BANNED)
        return -umdStatusErrno(UMD_FAIL_FROM(UMD_ERR_CTX_BANNED, cause, "queue=%u context=%" PRIu64 " banned_for=%s", queue->id, queue->context_id,
                                             umdStatusName(code)));
    if (state == DRM_PETREL_QUEUE_CANCELLED)
        return -umdStatusErrno(UMD_FAIL_FROM(UMD_ERR_EXEC_CANCELLED, cause, "queue=%u reason=queue_cancelled because_of=%s", queue->id, umdStatusName(code)));
    return UMD_FAIL_ERRNO(UMD_ERR_SUBMIT_RING_FULL, "queue=%u outstanding=%u max_jobs=%u", queue->id, outstanding, queue->max_jobs);
}

static void exec_publish(struct exec *x)
{
    for (uint32_t i = 0; i < x->out_count; i++) {
        struct dma_fence *fence = dma_fence_get(&x->job->fence);
        if (x->outs[i].chain)
            drm_syncobj_add_prepared(x->outs[i].sync, x->outs[i].chain, fence, x->outs[i].point);
        else
            drm_syncobj_replace(x->outs[i].sync, fence);
        drm_syncobj_put(x->outs[i].sync);
    }
    x->out_count = 0;
}

int petrel_exec_ioctl(struct drm_file *drm, void *data)
{
    struct drm_petrel_exec *args = data;
    struct petrel_file *file = petrel_file_of(drm);
    struct exec x = {.job = NULL};
    int ret = exec_check(args);
    if (ret)
        return ret;
    struct petrel_queue *queue = petrel_queue_lookup(drm, args->queue_id);
    if (!queue)
        return -umdStatusErrno(UMD_ERR_UAPI_HANDLE);
    ret = petrel_check_lost(file->dev);
    if (ret == 0)
        ret = exec_prepare(drm, &x, queue, args);
    if (ret == 0)
        ret = check_own_syncs(&x);
    if (ret == 0)
        ret = exec_enqueue(queue, x.job, &args->resume);
    if (ret == 0) {
        args->job_id = x.job->id;
        exec_publish(&x);
        petrel_sched_kick(file->dev);
    }
    exec_abandon(&x);
    petrel_queue_put(queue);
    return ret;
}
