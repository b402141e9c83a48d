/* SPDX-License-Identifier: MIT */
/* kmd_between.c - a kernel driver that passes calls on to the real one, but for those that a test has told it to answer otherwise. */
#include "kmd_between.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <uapi/petrel_drm.h>

#include "kmd.h"
#include "record.h"

UMD_LOG_MODULE("kmd.between");

static struct kmd_between told;
static struct drm_petrel_queue_create client_queue; /* as the client asked for its last one */
static const struct petrel_kmd_ops *real;

__attribute__((visibility("default"))) struct kmd_between *kmd_between_state(void);
__attribute__((visibility("default"))) const struct petrel_kmd_ops *petrel_kmd_entry(void);

struct kmd_between *kmd_between_state(void)
{
    return &told;
}

static int between_probe(const struct petrel_kmd_config *config, uint32_t *count_out)
{
    int ret = real->probe(config, count_out);

    if (!ret && told.no_devices)
        *count_out = 0;
    return ret;
}

/* As a driver fails: the record to error_ptr, the errno as value. */
static int answer(void *arg)
{
    uint64_t error_ptr;

    memcpy(&error_ptr, arg, sizeof(error_ptr));
    if (told.cmd == DRM_IOCTL_PETREL_WAIT)
        ((struct drm_petrel_wait *)arg)->stage = told.stage;
    if (told.code) {
        (void)UMD_FAIL(told.code, "between=1");
        umd_record_export((umdErrorDetail *)(uintptr_t)error_ptr);
    }
    return told.error;
}

/*
 * The client's job waits for a point that nothing was submitted for, and then a job of a queue of ours, which waits for the client's, is submitted
 * for it: each waits for the other. Through the public API an event has to be recorded first, so that no program can do this.
 */
static int exec_in_a_cycle(struct petrel_file *file, struct drm_petrel_exec *e)
{
    struct drm_petrel_sync syncs[4], own[2];
    struct drm_petrel_queue_create q = client_queue;
    struct drm_syncobj_create c = { 0 };

    q.error_ptr = 0;
    if (e->sync_count != 1 || real->ioctl(file, DRM_IOCTL_PETREL_QUEUE_CREATE, &q) || real->ioctl(file, DRM_IOCTL_SYNCOBJ_CREATE, &c))
        return -EINVAL;
    memcpy(syncs, (const void *)(uintptr_t)e->syncs_ptr, sizeof(syncs[0]));
    syncs[1] = (struct drm_petrel_sync){ .handle = c.handle, .point = 1 };
    own[0] = (struct drm_petrel_sync){ .handle = syncs[0].handle, .point = syncs[0].point };
    own[1] = (struct drm_petrel_sync){ .handle = c.handle, .point = 1, .flags = DRM_PETREL_SYNC_SIGNAL };
    const uint64_t before = e->syncs_ptr;
    e->syncs_ptr = (uint64_t)(uintptr_t)syncs;
    e->sync_count = 2;
    int ret = real->ioctl(file, DRM_IOCTL_PETREL_EXEC, e);
    e->syncs_ptr = before;
    e->sync_count = 1;
    struct drm_petrel_exec other = { .queue_id = q.queue_id, .sync_count = 2, .syncs_ptr = (uint64_t)(uintptr_t)own };
    return ret ? ret : real->ioctl(file, DRM_IOCTL_PETREL_EXEC, &other);
}

static int between_ioctl(struct petrel_file *file, unsigned long cmd, void *arg)
{
    if (told.cmd && cmd == told.cmd)
        return answer(arg);
    if (cmd == DRM_IOCTL_PETREL_QUEUE_CREATE)
        client_queue = *(const struct drm_petrel_queue_create *)arg;
    if (told.cycle && cmd == DRM_IOCTL_PETREL_EXEC) {
        told.cycle = false;
        return exec_in_a_cycle(file, arg);
    }
    int ret = real->ioctl(file, cmd, arg);
    if (told.mute && cmd == DRM_IOCTL_PETREL_WAIT && !ret && ((struct drm_petrel_wait *)arg)->fence_error) {
        umdErrorDetail *d = (umdErrorDetail *)(uintptr_t)((struct drm_petrel_wait *)arg)->error_ptr;
        if (d)
            d->code = UMD_SUCCESS;
    }
    if (told.va_end && cmd == DRM_IOCTL_PETREL_INFO && !ret)
        ((struct drm_petrel_info *)arg)->va_end = told.va_end;
    return ret;
}

static ssize_t between_read(struct petrel_file *file, void *buf, size_t size_B, uint64_t timeout_ns)
{
    ssize_t n = real->read(file, buf, size_B, timeout_ns);

    for (ssize_t at = 0; told.mute && at + (ssize_t)sizeof(struct drm_petrel_event) <= n; at += (ssize_t)sizeof(struct drm_petrel_event))
        ((struct drm_petrel_event *)(void *)((uint8_t *)buf + at))->record.code = UMD_SUCCESS;
    return n;
}

const struct petrel_kmd_ops *petrel_kmd_entry(void)
{
    static struct petrel_kmd_ops ops;
    const char *path = getenv("PETREL_KMD_REAL");
    void *so = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    petrel_kmd_entry_fn entry = so ? (petrel_kmd_entry_fn)(uintptr_t)dlsym(so, PETREL_KMD_ENTRY_SYMBOL) : NULL;

    real = entry ? entry() : NULL;
    if (!real)
        return NULL;
    ops = *real;
    ops.probe = between_probe;
    ops.ioctl = between_ioctl;
    ops.read = between_read;
    return &ops;
}
