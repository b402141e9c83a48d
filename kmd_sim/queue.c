/* SPDX-License-Identifier: MIT */
/* queue.c - execution queues: create, destroy, query. A queue feeds one ring, in order. */
#include <string.h>

#include "kmd_priv.h"

UMD_LOG_MODULE("kmd.queue");

#define JOBS_DEFAULT 64u
#define JOBS_MAX 4096u

struct petrel_queue *petrel_queue_get(struct petrel_queue *queue)
{
    atomic_fetch_add(&queue->refs, 1);
    return queue;
}

void petrel_queue_put(struct petrel_queue *queue)
{
    if (!queue || atomic_fetch_sub(&queue->refs, 1) != 1)
        return;
    assert(!queue->open && !queue->pending.first);
    petrel_vm_put(queue->vm);
    umd_free(queue);
}

static int create_check(const struct drm_petrel_queue_create *args)
{
    KMD_FIELD(args->engine > DRM_PETREL_QUEUE_COPY, "field=engine value=%u max=%u", args->engine, DRM_PETREL_QUEUE_COPY);
    KMD_FIELD(args->priority < -1 || args->priority > 1, "field=priority value=%d min=-1 max=1", args->priority);
    KMD_FIELD(args->flags, "field=flags value=0x%x", args->flags);
    KMD_FIELD(args->max_jobs > JOBS_MAX, "field=max_jobs value=%u max=%u", args->max_jobs, JOBS_MAX);
    return 0;
}

static struct petrel_queue *queue_create(struct petrel_file *file, const struct drm_petrel_queue_create *args)
{
    struct petrel_queue *queue = umd_alloc(sizeof(*queue));
    if (!queue)
        return NULL;
    queue->dev = file->dev;
    queue->file = file;
    queue->file_id = file->id;
    petrel_job_list_init(&queue->pending);
    atomic_init(&queue->refs, 1);
    queue->engine = args->engine;
    queue->priority = args->priority;
    queue->context_id = args->context_id;
    queue->max_jobs = args->max_jobs ? args->max_jobs : JOBS_DEFAULT;
    return queue;
}

/* A banned context stays banned while a queue of it is there: a new one of the same id would be a way around it. */
static const struct petrel_queue *banned_locked(const struct petrel_device *dev, const struct petrel_queue *queue)
{
    for (const struct petrel_queue *q = dev->queues; q; q = q->next) {
        if (q->file_id == queue->file_id && q->context_id == queue->context_id && q->state == DRM_PETREL_QUEUE_BANNED)
            return q;
    }
    return NULL;
}

enum publish_result { PUBLISHED, PUBLISH_LOST, PUBLISH_BANNED };

static enum publish_result publish(struct petrel_queue *queue, umdRecordId *cause_out)
{
    struct petrel_device *dev = queue->dev;
    enum publish_result result = PUBLISHED;
    umd_mutex_lock(&dev->sched_lock);
    const struct petrel_queue *banned = banned_locked(dev, queue);
    if (atomic_load(&dev->lost_code)) {
        result = PUBLISH_LOST;
    } else if (banned) {
        result = PUBLISH_BANNED;
        *cause_out = banned->record.id;
    } else {
        queue->open = true;
        queue->next = dev->queues;
        queue->last_turn = ++dev->turn;
        dev->queues = queue;
    }
    umd_mutex_unlock(&dev->sched_lock);
    return result;
}

/* Under the table's lock throughout, so that nobody can destroy by a guessed id what is not there yet. */
static int queue_add(struct petrel_file *file, struct petrel_queue *queue, uint32_t vm_id, uint32_t *id_out)
{
    umdRecordId cause = {0};
    int ret = 0;
    enum publish_result result = PUBLISHED;
    umd_mutex_lock(&file->drm.lock);
    struct petrel_vm *vm = drm_idr_find(&file->vms, vm_id);
    if (vm && file->queues.used >= PETREL_QUEUES_MAX)
        ret = UMD_FAIL_ERRNO(UMD_ERR_RES_QUEUES, "queues=%u limit=%u", file->queues.used, PETREL_QUEUES_MAX);
    else if (vm && (ret = drm_idr_add(&file->queues, queue, PETREL_QUEUES_MAX, &queue->id)) == 0) {
        queue->vm = petrel_vm_get(vm);
        result = publish(queue, &cause);
        if (result == PUBLISHED)
            atomic_fetch_add(&vm->queues, 1);
        else
            drm_idr_remove(&file->queues, queue->id);
    }
    *id_out = queue->id;
    umd_mutex_unlock(&file->drm.lock);
    if (!vm)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_HANDLE, "object=vm id=%u", vm_id);
    if (ret)
        return ret;
    if (result == PUBLISH_BANNED)
        return -umdStatusErrno(UMD_FAIL_FROM(UMD_ERR_CTX_BANNED, cause, "context=%" PRIu64 " reason=queue_of_banned_context", queue->context_id));
    return result == PUBLISH_LOST ? petrel_check_lost(file->dev) : 0;
}

int petrel_queue_create_ioctl(struct drm_file *drm, void *data)
{
    struct drm_petrel_queue_create *args = data;
    struct petrel_file *file = petrel_file_of(drm);
    int ret = create_check(args);
    if (ret == 0)
        ret = petrel_check_lost(file->dev);
    if (ret)
        return ret;
    struct petrel_queue *queue = queue_create(file, args);
    if (!queue)
        return -ENOMEM;
    uint32_t id = 0;
    ret = queue_add(file, queue, args->vm_id, &id);
    if (ret) {
        petrel_queue_put(queue);
        return ret;
    }
    args->queue_id = id; /* another thread may have destroyed the queue by its id already */
    return 0;
}

void petrel_queue_shutdown(struct petrel_queue *queue)
{
    struct petrel_device *dev = queue->dev;
    struct petrel_after after;
    petrel_after_init(&after);
    umd_mutex_lock(&dev->sched_lock);
    queue->open = false;
    for (struct petrel_queue **p = &dev->queues; *p; p = &(*p)->next) {
        if (*p == queue) {
            *p = queue->next;
            break;
        }
    }
    petrel_queue_cancel_locked(queue, &after);
    umd_mutex_unlock(&dev->sched_lock);
    atomic_fetch_sub(&queue->vm->queues, 1);
    petrel_after_run(dev, &after);
    petrel_sched_kick(dev); /* what runs is killed from there */
    petrel_queue_put(queue);
}

int petrel_queue_destroy_ioctl(struct drm_file *drm, void *data)
{
    const struct drm_petrel_queue_destroy *args = data;
    struct petrel_file *file = petrel_file_of(drm);
    KMD_FIELD(args->pad, "field=pad value=%u", args->pad);
    umd_mutex_lock(&drm->lock);
    struct petrel_queue *queue = drm_idr_remove(&file->queues, args->queue_id);
    umd_mutex_unlock(&drm->lock);
    if (!queue)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_HANDLE, "object=queue id=%u", args->queue_id);
    petrel_queue_shutdown(queue);
    return 0;
}

struct petrel_queue *petrel_queue_lookup(struct drm_file *drm, uint32_t id)
{
    umd_mutex_lock(&drm->lock);
    struct petrel_queue *queue = drm_idr_find(&petrel_file_of(drm)->queues, id);
    if (queue)
        petrel_queue_get(queue);
    umd_mutex_unlock(&drm->lock);
    if (!queue)
        (void)UMD_FAIL(UMD_ERR_UAPI_HANDLE, "object=queue id=%u", id);
    return queue;
}

int petrel_queue_query_ioctl(struct drm_file *drm, void *data)
{
    struct drm_petrel_queue_query *args = data;
    struct petrel_file *file = petrel_file_of(drm);
    KMD_FIELD(args->pad, "field=pad value=%u", args->pad);
    struct petrel_queue *queue = petrel_queue_lookup(drm, args->queue_id);
    if (!queue)
        return -umdStatusErrno(UMD_ERR_UAPI_HANDLE);
    umd_mutex_lock(&file->dev->sched_lock);
    args->state = queue->state;
    args->code = queue->code;
    args->record = queue->record.id;
    args->jobs_submitted = queue->jobs_submitted;
    args->jobs_done = queue->jobs_done;
    args->jobs_failed = queue->jobs_failed;
    args->jobs_cancelled = queue->jobs_cancelled;
    umd_mutex_unlock(&file->dev->sched_lock);
    petrel_queue_put(queue);
    return 0;
}
