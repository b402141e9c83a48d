/* SPDX-License-Identifier: MIT */
/* ioctl.c - DRM files and the dispatch of their ioctls by number, with the caller's struct size. */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "../usercopy.h"
#include "drm_core.h"
#include "record.h"

UMD_LOG_MODULE("kmd.drm");

#define IOCTL_SIZE_MAX 512u

void drm_file_init(struct drm_file *file, struct drm_device *dev, bool render_node)
{
    file->dev = dev;
    file->render_node = render_node;
    umd_mutex_init(&file->lock, "kmd.file", 54);
}

void drm_file_fini(struct drm_file *file)
{
    void *obj;
    while ((obj = drm_idr_pop(&file->gems)))
        drm_gem_put(obj);
    while ((obj = drm_idr_pop(&file->syncobjs)))
        drm_syncobj_put(obj);
    drm_idr_fini(&file->gems);
    drm_idr_fini(&file->syncobjs);
    umd_mutex_fini(&file->lock);
}

static int version_string(const char *text, uint64_t dst, __kernel_size_t *len_inout)
{
    size_t have = strlen(text), room = *len_inout;
    *len_inout = have;
    return room && dst ? copy_to_user(dst, text, room < have ? room : have, "version") : 0;
}

static int version_ioctl(struct drm_file *file, void *data)
{
    struct drm_version *args = data;
    const struct drm_driver *drv = file->dev->driver;
    args->version_major = drv->major;
    args->version_minor = drv->minor;
    args->version_patchlevel = drv->patch;
    int ret = version_string(drv->name, (uintptr_t)args->name, &args->name_len);
    if (ret == 0)
        ret = version_string(drv->date, (uintptr_t)args->date, &args->date_len);
    if (ret == 0)
        ret = version_string(drv->desc, (uintptr_t)args->desc, &args->desc_len);
    return ret;
}

static int get_cap_ioctl(struct drm_file *file, void *data)
{
    struct drm_get_cap *args = data;
    switch (args->capability) {
    case DRM_CAP_SYNCOBJ:
    case DRM_CAP_SYNCOBJ_TIMELINE:
    case DRM_CAP_TIMESTAMP_MONOTONIC:
        args->value = 1;
        return 0;
    case DRM_CAP_PRIME:
        args->value = 0;
        return 0;
    default:
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, "field=capability value=%" PRIu64, (uint64_t)args->capability);
    }
}

static int set_client_cap_ioctl(struct drm_file *file, void *data)
{
    const struct drm_set_client_cap *args = data;
    return UMD_FAIL_ERRNO(UMD_ERR_INIT_UNSUPPORTED, "field=capability value=%" PRIu64 " reason=no_display", (uint64_t)args->capability);
}

#define CORE(cmd_, type_, flags_, func_) [_IOC_NR(cmd_)] = {#cmd_, sizeof(struct type_), flags_, func_}
static const struct drm_ioctl_desc core_ioctls[256] = {
    CORE(DRM_IOCTL_VERSION, drm_version, DRM_CORE_RENDER, version_ioctl),
    CORE(DRM_IOCTL_GET_CAP, drm_get_cap, DRM_CORE_RENDER, get_cap_ioctl),
    CORE(DRM_IOCTL_SET_CLIENT_CAP, drm_set_client_cap, 0, set_client_cap_ioctl),
    CORE(DRM_IOCTL_GEM_CLOSE, drm_gem_close, DRM_CORE_RENDER, drm_gem_close_ioctl),
    CORE(DRM_IOCTL_SYNCOBJ_CREATE, drm_syncobj_create, DRM_CORE_RENDER, drm_syncobj_create_ioctl),
    CORE(DRM_IOCTL_SYNCOBJ_DESTROY, drm_syncobj_destroy, DRM_CORE_RENDER, drm_syncobj_destroy_ioctl),
    CORE(DRM_IOCTL_SYNCOBJ_WAIT, drm_syncobj_wait, DRM_CORE_RENDER, drm_syncobj_wait_ioctl),
    CORE(DRM_IOCTL_SYNCOBJ_RESET, drm_syncobj_array, DRM_CORE_RENDER, drm_syncobj_reset_ioctl),
    CORE(DRM_IOCTL_SYNCOBJ_SIGNAL, drm_syncobj_array, DRM_CORE_RENDER, drm_syncobj_signal_ioctl),
    CORE(DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT, drm_syncobj_timeline_wait, DRM_CORE_RENDER, drm_syncobj_timeline_wait_ioctl),
    CORE(DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL, drm_syncobj_timeline_array, DRM_CORE_RENDER, drm_syncobj_timeline_signal_ioctl),
    CORE(DRM_IOCTL_SYNCOBJ_QUERY, drm_syncobj_timeline_array, DRM_CORE_RENDER, drm_syncobj_query_ioctl),
    CORE(DRM_IOCTL_SYNCOBJ_TRANSFER, drm_syncobj_transfer, DRM_CORE_RENDER, drm_syncobj_transfer_ioctl),
};

static const struct drm_ioctl_desc *find_desc(const struct drm_driver *drv, uint32_t nr, bool *driver_out)
{
    const struct drm_ioctl_desc *desc = NULL;
    *driver_out = nr >= DRM_COMMAND_BASE && nr < DRM_COMMAND_END;
    if (!*driver_out)
        desc = &core_ioctls[nr];
    else if (nr - DRM_COMMAND_BASE < drv->ioctl_count)
        desc = &drv->ioctls[nr - DRM_COMMAND_BASE];
    return desc && desc->size_B ? desc : NULL;
}

/* A longer struct is a newer client's; what this driver does not know must be 0. */
static int check_tail(uint64_t arg, uint32_t known_B, uint32_t size_B)
{
    uint8_t tail[64];
    for (uint32_t off = known_B; off < size_B;) {
        uint32_t n = size_B - off < sizeof(tail) ? size_B - off : (uint32_t)sizeof(tail);
        int ret = copy_from_user(tail, arg + off, n, "tail");
        if (ret)
            return ret;
        for (uint32_t i = 0; i < n; i++) {
            if (tail[i])
                return UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, "field=tail offset=%u value=%u known_B=%u", off + i, tail[i], known_B);
        }
        off += n;
    }
    return 0;
}

static int call_checked(struct drm_file *file, const struct drm_ioctl_desc *desc, uint32_t size_B, uint64_t arg, bool driver)
{
    _Alignas(16) uint8_t data[IOCTL_SIZE_MAX] = {0};
    assert(desc->size_B <= sizeof(data));
    uint32_t n = size_B < desc->size_B ? size_B : desc->size_B;
    int ret = copy_from_user(data, arg, n, desc->name);
    if (ret == 0 && size_B > desc->size_B)
        ret = check_tail(arg, desc->size_B, size_B);
    /* The answer must find room before anything is done: a call that changed the world must not end in EFAULT. */
    if (ret == 0)
        ret = copy_to_user(arg, data, n, desc->name);
    bool called = ret == 0;
    if (called) {
        ret = desc->func(file, data);
        if (!usercopy_try_to(arg, data, n) && ret == 0)
            ret = copy_to_user(arg, data, n, desc->name);
    }
    if (driver && file->dev->driver->ioctl_exit)
        file->dev->driver->ioctl_exit(file, data, n, ret);
    return ret;
}

static int call(struct drm_file *file, const struct drm_ioctl_desc *desc, uint32_t size_B, uint64_t arg, bool driver)
{
    usercopy_begin();
    int ret = call_checked(file, desc, size_B, arg, driver);
    usercopy_end();
    return ret;
}

int drm_ioctl(struct drm_file *file, unsigned long cmd, void *arg)
{
    uint32_t nr = _IOC_NR(cmd), size_B = _IOC_SIZE(cmd);
    bool driver = false;
    const struct drm_ioctl_desc *desc = NULL;
    if (_IOC_TYPE(cmd) == DRM_IOCTL_BASE)
        desc = find_desc(file->dev->driver, nr, &driver);
    if (!desc)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_UNKNOWN, "cmd=0x%lx type=0x%x nr=0x%x size_B=%u", cmd, (unsigned)_IOC_TYPE(cmd), nr, size_B);
    if (file->render_node && !(desc->flags & DRM_CORE_RENDER))
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_DENIED, "ioctl=%s node=render", desc->name);
    return call(file, desc, size_B, (uintptr_t)arg, driver);
}
