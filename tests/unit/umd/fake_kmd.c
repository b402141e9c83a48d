/* SPDX-License-Identifier: MIT */
/* fake_kmd.c - a kernel driver for tests of the carriers: no device, but it notes what it is shown, and answers as told. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <uapi/petrel_drm.h>

#include "fake_kmd.h"
#include "kmd_sim/kmd.h"
#include "record.h"

UMD_LOG_MODULE("kmd.fake");

static struct fake_kmd fake;

__attribute__((visibility("default"))) struct fake_kmd *fake_kmd_state(void);
__attribute__((visibility("default"))) const struct petrel_kmd_ops *petrel_kmd_entry(void);

struct fake_kmd *fake_kmd_state(void)
{
    return &fake;
}

static int fake_probe(const struct petrel_kmd_config *config, uint32_t *count_out)
{
    if (fake.probe_fails)
        return UMD_FAIL_ERRNO(UMD_ERR_INIT_FW_BOOT, "fw=fake");
    fake.stepped = config->stepped;
    *count_out = config->device_count;
    return 0;
}

static void fake_remove(void)
{
    fake.removes++;
}

static int fake_open(uint32_t index, bool render_node, struct petrel_file **file_out)
{
    if (index > 7 || !render_node)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, "index=%u", index);
    *file_out = (struct petrel_file *)(void *)&fake;
    return 0;
}

static void fake_close(struct petrel_file *file)
{
    (void)file;
    fake.closes++;
}

/* Fails as a driver does: record to error_ptr, errno as value. */
static int failed(uint64_t error_ptr, umdStatus code)
{
    (void)UMD_FAIL(code, "fake=1");
    umdErrorDetail *out = (umdErrorDetail *)(uintptr_t)error_ptr;
    if (out)
        umd_record_export(out);
    return -umdStatusErrno(code);
}

static int fake_exec(struct drm_petrel_exec *e)
{
    const struct drm_petrel_ib *ibs = (const void *)(uintptr_t)e->ibs_ptr;
    const struct drm_petrel_sync *syncs = (const void *)(uintptr_t)e->syncs_ptr;

    fake.seen_va = e->ib_count ? ibs[0].va : 0;
    fake.seen_point = e->sync_count ? syncs[e->sync_count - 1].point : 0;
    if (fake.client_ib)
        memcpy(&fake.client_sees, fake.client_ib, sizeof(fake.client_sees));
    e->job_id = 99;
    return fake.exec_code ? failed(e->error_ptr, fake.exec_code) : 0;
}

static int fake_ioctl(struct petrel_file *file, unsigned long cmd, void *arg)
{
    (void)file;
    fake.thread = pthread_self();
    fake.arg = arg;
    if (cmd == DRM_IOCTL_PETREL_EXEC)
        return fake_exec(arg);
    if (cmd == DRM_IOCTL_PETREL_WAIT) {
        struct drm_petrel_wait *w = arg;
        w->fence_error = fake.fence_code ? -umdStatusErrno(fake.fence_code) : 0;
        w->job_id = 7;
        if (fake.fence_code)
            (void)failed(w->error_ptr, fake.fence_code);
        return 0;
    }
    if (cmd == DRM_IOCTL_SYNCOBJ_QUERY) {
        struct drm_syncobj_timeline_array *q = arg;
        const uint32_t *handles = (const void *)(uintptr_t)q->handles;
        uint64_t *points = (void *)(uintptr_t)q->points;
        for (uint32_t i = 0; i < q->count_handles; i++)
            points[i] = handles[i] * 10ull;
        return 0;
    }
    if (cmd == DRM_IOCTL_VERSION) {
        struct drm_version *v = arg;
        if (v->name && v->name_len >= 6)
            memcpy(v->name, "petrel", 6);
        v->name_len = 6;
        return 0;
    }
    if (cmd == DRM_IOCTL_GEM_CLOSE && ((struct drm_gem_close *)arg)->handle == 3)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_HANDLE, "object=gem handle=3");
    if (cmd == DRM_IOCTL_GEM_CLOSE && ((struct drm_gem_close *)arg)->handle == 4)
        return (void)UMD_FAIL(UMD_ERR_UAPI_HANDLE, "object=gem handle=4"), 0; /* a defect: it is open, and the call says that all is well */
    if (cmd == DRM_IOCTL_GEM_CLOSE)
        return ((struct drm_gem_close *)arg)->handle == 1 ? 0 : -EINVAL;
    return -ENOTTY;
}

static ssize_t fake_read(struct petrel_file *file, void *buf, size_t size_B, uint64_t timeout_ns)
{
    static const char text[] = "event";

    (void)file;
    (void)timeout_ns;
    if (size_B < sizeof(text))
        return -EAGAIN;
    memcpy(buf, text, sizeof(text));
    return sizeof(text);
}

static void *fake_mmap(struct petrel_file *file, uint64_t offset, size_t size_B, int *error_out)
{
    (void)file;
    if (offset == 2) {
        *error_out = UMD_FAIL_ERRNO(UMD_ERR_MEM_HOST_ALLOC_FAILED, "fake=map");
        return NULL;
    }
    if (offset) {
        *error_out = -EINVAL;
        return NULL;
    }
    return calloc(1, size_B);
}

static int fake_munmap(struct petrel_file *file, void *addr, size_t size_B)
{
    (void)file;
    (void)size_B;
    free(addr);
    return 0;
}

const struct petrel_kmd_ops *petrel_kmd_entry(void)
{
    static struct petrel_kmd_ops ops = {
        .abi = PETREL_KMD_ABI, .probe = fake_probe, .remove = fake_remove, .open = fake_open, .close = fake_close, .ioctl = fake_ioctl,
        .read = fake_read, .mmap = fake_mmap, .munmap = fake_munmap,
    };
    ops.abi = fake.wrong_abi ? 77 : PETREL_KMD_ABI;
    return &ops;
}
