/* SPDX-License-Identifier: MIT */
/* event.c - a bounded queue of error events per file, filled on any thread and emptied by read. */
#include <string.h>

#include "kmd_priv.h"

UMD_LOG_MODULE("kmd.event");

#define READ_SLICE_NS 20000000ull

void petrel_event_push(struct petrel_file *file, const struct drm_petrel_event *event)
{
    /* The last place is kept for the loss: who reads late must still learn of it. */
    const uint32_t room = event->base.type == DRM_PETREL_EVENT_LOST ? PETREL_EVENTS : PETREL_EVENTS - 1;
    umd_mutex_lock(&file->event_lock);
    if (file->event_count >= room) {
        file->events_dropped++;
    } else {
        file->events[(file->event_first + file->event_count) % PETREL_EVENTS] = *event;
        file->event_count++;
    }
    umd_cond_broadcast(&file->event_cond);
    umd_mutex_unlock(&file->event_lock);
}

static void fill(struct petrel_device *dev, struct drm_petrel_event *event, uint32_t type, const umdErrorDetail *record)
{
    event->base = (struct drm_event){.type = type, .length = sizeof(*event)};
    event->device_ns = petrel_now(dev);
    event->reset_count = dev->reset_count;
    event->record = *record;
}

static void push_job_locked(struct petrel_job *job, struct drm_petrel_event *event)
{
    event->queue_id = job->queue_id;
    event->context_id = job->context_id;
    event->job_id = job->id;
    event->cmdbuf_id = job->cmdbuf_id;
    event->engine = job->queue->engine;
    if (job->queue->open)
        petrel_event_push(job->queue->file, event);
}

void petrel_event_job_locked(struct petrel_job *job, uint32_t type, uint32_t fault, const umdErrorDetail *record)
{
    struct drm_petrel_event event = {.fault = fault};
    fill(job->dev, &event, type, record);
    push_job_locked(job, &event);
}

void petrel_event_job_fault_locked(struct petrel_job *job, struct drm_petrel_event *event, uint32_t fault)
{
    fill(job->dev, event, DRM_PETREL_EVENT_ERROR, &job->record);
    event->fault = fault;
    push_job_locked(job, event);
}

void petrel_event_all_locked(struct petrel_device *dev, uint32_t type, const umdErrorDetail *record)
{
    struct drm_petrel_event event = {0};
    umd_mutex_assert_held(&dev->sched_lock);
    fill(dev, &event, type, record);
    for (struct petrel_file *file = dev->files; file; file = file->next)
        petrel_event_push(file, &event);
}

/* What stands for the events that found no room, once the older ones were read. */
static void make_overflow(struct petrel_file *file, struct drm_petrel_event *event)
{
    umdErrorDetail record;

    PETREL_RAISE(&record, 0, (umdRecordId){0}, UMD_ERR_HW_EVENTS_DROPPED, "dropped=%" PRIu64 " room=%u", file->events_dropped, PETREL_EVENTS - 1);
    *event = (struct drm_petrel_event){0};
    fill(file->dev, event, DRM_PETREL_EVENT_OVERFLOW, &record);
}

static ssize_t read_locked(struct petrel_file *file, uint64_t buf, size_t size_B)
{
    struct drm_petrel_event overflow;
    size_t done = 0;
    while (size_B - done >= sizeof(overflow) && (file->event_count || file->events_dropped)) {
        const struct drm_petrel_event *event = &file->events[file->event_first];
        if (!file->event_count) {
            make_overflow(file, &overflow);
            event = &overflow;
        }
        if (!usercopy_try_to(buf + done, event, sizeof(*event))) {
            if (event == &overflow)
                umd_record_drop(&overflow.record, "the reader's buffer is bad, the next read tells");
            return done ? (ssize_t)done : -EFAULT;
        }
        done += sizeof(*event);
        if (event == &overflow) {
            file->events_dropped = 0;
        } else {
            file->event_first = (file->event_first + 1) % PETREL_EVENTS;
            file->event_count--;
        }
    }
    return (ssize_t)done;
}

ssize_t petrel_file_read(struct petrel_file *file, void *buf, size_t size_B, uint64_t timeout_ns)
{
    struct petrel_device *dev = file->dev;
    const uint64_t start = umd_sys()->mono_ns();
    ssize_t ret;
    if (size_B < sizeof(struct drm_petrel_event))
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, "field=size_B value=%zu min=%zu", size_B, sizeof(struct drm_petrel_event));
    for (;;) {
        umd_mutex_lock(&file->event_lock);
        ret = read_locked(file, (uintptr_t)buf, size_B);
        const uint64_t spent = umd_sys()->mono_ns() - start;
        const bool over = spent >= timeout_ns;
        const uint64_t left = timeout_ns == UINT64_MAX ? UINT64_MAX : over ? 0 : timeout_ns - spent;
        if (ret == 0 && !over && !dev->stepped)
            umd_cond_wait(&file->event_cond, &file->event_lock, left < READ_SLICE_NS ? left : READ_SLICE_NS);
        umd_mutex_unlock(&file->event_lock);
        if (ret)
            break;
        if (over || (timeout_ns == UINT64_MAX && atomic_load(&dev->lost_code)))
            return -EAGAIN; /* a lost device has told all it will ever tell */
        /* Stepped: a read that nothing can end is told so. */
        if (dev->stepped && !petrel_wait_step(&dev->drm, left) && (timeout_ns == UINT64_MAX || atomic_load(&dev->lost_code)) && !file->event_count)
            return -EAGAIN;
    }
    if (ret == -EFAULT)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_POINTER, "field=buf access=write size_B=%zu null=%d", size_B, buf == NULL);
    return ret;
}
