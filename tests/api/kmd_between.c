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

static int between_ioctl(struct petrel_file *file, unsigned long cmd, void *arg)
{
    if (told.cmd && cmd == told.cmd)
        return answer(arg);
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
