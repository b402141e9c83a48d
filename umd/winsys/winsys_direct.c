/* SPDX-License-Identifier: MIT */
/* winsys_direct.c - the carrier that calls a kernel driver in this process. */
#include "winsys_carrier.h"

#include "record.h"
#include "sys.h"

UMD_LOG_MODULE("winsys.direct");

static umdStatus direct_init(const struct umd_winsys_config *config, void **priv_out, uint32_t *device_count_out)
{
    struct umd_carrier *c = umd_alloc(sizeof(*c));

    if (!c)
        return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    umdStatus st = umd_carrier_init(c, config, device_count_out);
    if (st < 0) {
        umd_free(c);
        return UMD_HOP(st);
    }
    *priv_out = c;
    return UMD_SUCCESS;
}

static void direct_fini(void *priv)
{
    umd_carrier_fini(priv);
    umd_free(priv);
}

static umdStatus direct_open(void *priv, uint32_t index, void **file_out)
{
    struct umd_carrier_file *f = umd_alloc(sizeof(*f));

    if (!f)
        return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    umdStatus st = umd_carrier_open(priv, index, f);
    if (st < 0) {
        umd_free(f);
        return UMD_HOP(st);
    }
    *file_out = f;
    return UMD_SUCCESS;
}

static void direct_close(void *file)
{
    umd_carrier_close(file);
    umd_free(file);
}

static int direct_ioctl(void *file, unsigned long cmd, void *arg, struct umd_winsys_story *story)
{
    return umd_carrier_ioctl(file, cmd, arg, story);
}

static ssize_t direct_read(void *file, void *buf, size_t size_B, uint64_t timeout_ns)
{
    return umd_carrier_read(file, buf, size_B, timeout_ns);
}

static void *direct_mmap(void *file, uint64_t offset, size_t size_B, int *error_out, struct umd_winsys_story *story)
{
    return umd_carrier_mmap(file, offset, size_B, error_out, story);
}

static int direct_munmap(void *file, void *addr, size_t size_B)
{
    return umd_carrier_munmap(file, addr, size_B);
}

const struct umd_winsys_ops umd_winsys_direct = {
    .name = "direct",
    .init = direct_init,
    .fini = direct_fini,
    .open = direct_open,
    .close = direct_close,
    .ioctl = direct_ioctl,
    .read = direct_read,
    .mmap = direct_mmap,
    .munmap = direct_munmap,
};
