/* SPDX-License-Identifier: MIT */
/* winsys.c - chooses a carrier, and turns what it brings back into records. */
#include "winsys.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <uapi/petrel_drm.h>

#include "record.h"
#include "sys.h"

UMD_LOG_MODULE("winsys");

struct umd_winsys {
    const struct umd_winsys_ops *ops;
    void *priv;
    uint32_t device_count;
};

struct umd_winsys_file {
    const struct umd_winsys_ops *ops;
    void *priv;
};

static const struct umd_winsys_ops *const carriers[] = { &umd_winsys_direct, &umd_winsys_loopback };

umdStatus umd_winsys_create(const struct umd_winsys_config *config, struct umd_winsys **ws_out)
{
    const struct umd_winsys_ops *ops = NULL;

    assert(config && config->carrier && ws_out);
    for (size_t i = 0; i < sizeof(carriers) / sizeof(carriers[0]); i++)
        if (!strcmp(config->carrier, carriers[i]->name))
            ops = carriers[i];
    if (!ops)
        return UMD_FAIL(UMD_ERR_CONFIG_VALUE, "key=carrier value=\"%.64s\" expected=\"direct loopback\"", config->carrier);
    struct umd_winsys *ws = umd_alloc(sizeof(*ws));
    if (!ws)
        return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    ws->ops = ops;
    umdStatus st = ops->init(config, &ws->priv, &ws->device_count);
    if (st < 0) {
        umd_free(ws);
        return UMD_HOP(st);
    }
    *ws_out = ws;
    return UMD_SUCCESS;
}

void umd_winsys_destroy(struct umd_winsys *ws)
{
    if (!ws)
        return;
    ws->ops->fini(ws->priv);
    umd_free(ws);
}

uint32_t umd_winsys_device_count(const struct umd_winsys *ws)
{
    return ws->device_count;
}

umdStatus umd_winsys_open(struct umd_winsys *ws, uint32_t index, struct umd_winsys_file **file_out)
{
    struct umd_winsys_file *file = umd_alloc(sizeof(*file));

    if (!file)
        return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    file->ops = ws->ops;
    umdStatus st = ws->ops->open(ws->priv, index, &file->priv);
    if (st < 0) {
        umd_free(file);
        return UMD_HOP(st);
    }
    *file_out = file;
    return UMD_SUCCESS;
}

void umd_winsys_close(struct umd_winsys_file *file)
{
    if (!file)
        return;
    file->ops->close(file->priv);
    umd_free(file);
}

/* Code of an errno that came without a record. */
static umdStatus code_of_errno(int err)
{
    switch (err) {
    case ENOMEM: return UMD_ERR_MEM_HOST_ALLOC_FAILED;
    case EFAULT: return UMD_ERR_UAPI_POINTER;
    case ENOENT: return UMD_ERR_UAPI_HANDLE;
    case EACCES: return UMD_ERR_UAPI_DENIED;
    case ENOTTY: return UMD_ERR_UAPI_UNKNOWN;
    case EINVAL: return UMD_ERR_UAPI_ARGUMENT;
    case EMFILE: case ENFILE: return UMD_ERR_RES_DESCRIPTORS;
    case ENODEV: return UMD_ERR_DEV_LOST_OFF_BUS;
    case ECANCELED: return UMD_ERR_EXEC_CANCELLED;
    case EIO: return UMD_ERR_EXEC_FAILED;
    case EAGAIN: return UMD_ERR_SUBMIT_RING_FULL;
    case ETIME: return UMD_ERR_WAIT_QUEUED; /* of a core wait; PETREL_WAIT tells its stage */
    default: return UMD_ERR_INTERNAL;
    }
}

/* The record that the carrier brought, or one from errno. */
static umdStatus from_story(const struct umd_winsys_story *story, umdStatus code, unsigned long cmd, int err)
{
    if (story->have && story->detail.code < 0) {
        umdStatus st = umd_record_import(&story->detail);
        return UMD_HOP(st);
    }
    return UMD_FAIL(code, "ioctl=0x%02lx errno=%d record=missing", cmd & 0xffu, err);
}

umdStatus umd_winsys_ioctl(struct umd_winsys_file *file, unsigned long cmd, void *arg)
{
    struct umd_winsys_story story;
    umdErrorDetail detail;
    uint64_t saved, ptr = (uint64_t)(uintptr_t)&detail;
    int fence_error = 0;

    story.have = false;
    detail.size_B = sizeof(detail);
    detail.code = UMD_SUCCESS;
    memcpy(&saved, arg, sizeof(saved));
    memcpy(arg, &ptr, sizeof(ptr));
    int ret = file->ops->ioctl(file->priv, cmd, arg, &story);
    memcpy(arg, &saved, sizeof(saved));
    if (cmd == DRM_IOCTL_PETREL_WAIT)
        fence_error = ret ? 0 : ((const struct drm_petrel_wait *)arg)->fence_error;
    if (__builtin_expect(!ret && fence_error >= 0, 1))
        return UMD_SUCCESS;
    if (detail.code < 0) {
        umdStatus st = umd_record_import(&detail);
        return UMD_HOP(st);
    }
    if (cmd == DRM_IOCTL_PETREL_WAIT && ret == -ETIME)
        return UMD_STATUS_NOT_READY;
    int err = ret ? -ret : -fence_error;
    return from_story(&story, code_of_errno(err), cmd, err);
}

umdStatus umd_winsys_core_ioctl(struct umd_winsys_file *file, unsigned long cmd, void *arg)
{
    struct umd_winsys_story story;

    story.have = false;
    int ret = file->ops->ioctl(file->priv, cmd, arg, &story);
    if (!ret)
        return UMD_SUCCESS;
    return from_story(&story, code_of_errno(-ret), cmd, -ret);
}

ssize_t umd_winsys_read(struct umd_winsys_file *file, void *buf, size_t size_B, uint64_t timeout_ns)
{
    return file->ops->read(file->priv, buf, size_B, timeout_ns);
}

umdStatus umd_winsys_mmap(struct umd_winsys_file *file, uint64_t offset, size_t size_B, void **map_out)
{
    struct umd_winsys_story story;
    int error = 0;

    story.have = false;
    void *p = file->ops->mmap(file->priv, offset, size_B, &error, &story);
    if (!p && story.have && story.detail.code < 0) {
        umdStatus st = umd_record_import(&story.detail);
        return UMD_HOP(st);
    }
    if (!p)
        return UMD_FAIL(error == -ENODEV ? UMD_ERR_DEV_LOST_OFF_BUS : UMD_ERR_MEM_MAP_FAILED, "size_B=%zu errno=%d", size_B, -error);
    *map_out = p;
    return UMD_SUCCESS;
}

void umd_winsys_munmap(struct umd_winsys_file *file, void *addr, size_t size_B)
{
    int ret = file->ops->munmap(file->priv, addr, size_B);

    if (ret)
        UMD_LOG(UMD_LOG_WARN, "unmap failed errno=%d size_B=%zu", -ret, size_B);
}
