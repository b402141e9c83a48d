/* SPDX-License-Identifier: MIT */
/* codes_uapi.c - cases of codes that only a client of the kernel driver's own interface (petrel_drm.h) can provoke. */
#include <errno.h>
#include <string.h>

#include <hw/petrel_packets.h>
#include <uapi/petrel_drm.h>

#include "codes.h"

struct client {
    const struct petrel_kmd_ops *ops;
    struct petrel_file *file;
    umdErrorDetail detail;     /* of the last failed call */
};

static struct client client_open(struct code_run *run, bool render_node)
{
    struct client c = { 0 };

    code_up(run); /* brings the device up */
    c.ops = code_kmd();
    umd_record_scope_begin();
    assert_int_equal(c.ops->open(0, render_node, &c.file), 0);
    umd_record_scope_end();
    return c;
}

static void client_close(struct client *c)
{
    umd_record_scope_begin();
    c->ops->close(c->file);
    umd_record_scope_end();
}

/* A Petrel ioctl: its record comes to error_ptr. */
static int call(struct client *c, unsigned long cmd, void *arg)
{
    uint64_t ptr = (uint64_t)(uintptr_t)&c->detail;

    memset(&c->detail, 0, sizeof(c->detail));
    c->detail.size_B = sizeof(c->detail);
    memcpy(arg, &ptr, sizeof(ptr));
    umd_record_scope_begin();
    int ret = c->ops->ioctl(c->file, cmd, arg);
    umd_record_scope_end();
    return ret;
}

/* A DRM core ioctl has no error_ptr; in this process its record can be had all the same. */
static int core_call(struct client *c, unsigned long cmd, void *arg)
{
    umd_record_scope_begin();
    int ret = c->ops->ioctl(c->file, cmd, arg);
    assert_true(umd_record_export(&c->detail) == (ret != 0));
    umd_record_scope_end();
    return ret;
}

/* The call returned the code's errno, and the record has the code and the figure. */
static void refused(struct code_run *run, const struct client *c, int ret, const char *figure)
{
    assert_int_equal(ret, -umdStatusErrno(run->code));
    if (!strstr(c->detail.figures, figure))
        fail_msg("no %s in: %s", figure, c->detail.figures);
    code_saw(run, (umdStatus)c->detail.code);
}

CODE_CASE(UMD_ERR_UAPI_ARGUMENT)
{
    struct client c = client_open(run, true);
    struct drm_petrel_gem_create g = { .size_B = 4096, .flags = 0x80 };

    refused(run, &c, call(&c, DRM_IOCTL_PETREL_GEM_CREATE, &g), "field=flags value=0x80");
    client_close(&c);
}

CODE_CASE(UMD_ERR_UAPI_POINTER)
{
    struct client c = client_open(run, true);
    struct drm_petrel_wait w = { .syncs_ptr = 8, .sync_count = 1 };

    refused(run, &c, call(&c, DRM_IOCTL_PETREL_WAIT, &w), "syncs_ptr");
    client_close(&c);
}

CODE_CASE(UMD_ERR_UAPI_UNKNOWN)
{
    struct client c = client_open(run, true);
    struct drm_petrel_gem_mmap m = { 0 };

    refused(run, &c, core_call(&c, DRM_IOWR(DRM_COMMAND_BASE + 0x3f, struct drm_petrel_gem_mmap), &m), "nr=0x7f");
    client_close(&c);
}

CODE_CASE(UMD_ERR_UAPI_HANDLE)
{
    struct client c = client_open(run, true);
    struct drm_petrel_gem_mmap m = { .handle = 4711 };

    refused(run, &c, call(&c, DRM_IOCTL_PETREL_GEM_MMAP, &m), "object=gem handle=4711");
    client_close(&c);
}

CODE_CASE(UMD_ERR_UAPI_DENIED)
{
    struct client c = client_open(run, true);
    struct drm_set_client_cap cap = { .capability = 1 };

    refused(run, &c, core_call(&c, DRM_IOCTL_SET_CLIENT_CAP, &cap), "node=render");
    client_close(&c);
}

/* The code's other way, beside a start on hardware that the driver does not know (codes_init.c). */
void code_unsupported_capability(struct code_run *run)
{
    struct client c = client_open(run, false);
    struct drm_set_client_cap cap = { .capability = 1 };

    refused(run, &c, core_call(&c, DRM_IOCTL_SET_CLIENT_CAP, &cap), "reason=no_display");
    client_close(&c);
}

/* ---- A command buffer with a packet that only the kernel driver may write ---- */

enum { IB_VA = 0x10000000 };

static uint32_t ib_with(struct client *c, uint32_t vm, const uint32_t *dw, size_t count)
{
    struct drm_petrel_gem_create g = { .size_B = 4096, .flags = DRM_PETREL_GEM_VRAM | DRM_PETREL_GEM_CPU_VISIBLE };
    struct drm_petrel_gem_mmap m = { 0 };
    struct drm_petrel_vm_bind b = { .vm_id = vm, .op = DRM_PETREL_BIND_MAP, .flags = DRM_PETREL_BIND_READ, .va = IB_VA, .size_B = 4096 };
    int error = 0;

    assert_int_equal(call(c, DRM_IOCTL_PETREL_GEM_CREATE, &g), 0);
    m.handle = b.handle = g.handle;
    assert_int_equal(call(c, DRM_IOCTL_PETREL_GEM_MMAP, &m), 0);
    void *host = c->ops->mmap(c->file, m.offset, 4096, &error);
    assert_non_null(host);
    memcpy(host, dw, count * sizeof(*dw));
    assert_int_equal(call(c, DRM_IOCTL_PETREL_VM_BIND, &b), 0);
    return g.handle;
}

CODE_CASE(UMD_ERR_HW_PACKET)
{
    static const uint32_t dw[] = { PETREL_PKT(PETREL_OP_TLB_INVAL, 1), 0 };
    struct client c = client_open(run, true);
    struct drm_petrel_vm_create v = { 0 };
    struct drm_petrel_queue_create q = { .engine = DRM_PETREL_QUEUE_COPY, .context_id = 4242 };
    struct drm_syncobj_create t = { 0 };
    struct drm_petrel_ib ib = { .va = IB_VA, .size_dw = 2 };
    struct drm_petrel_sync out = { .flags = DRM_PETREL_SYNC_SIGNAL, .point = 1 }, in = { .point = 1 };
    struct drm_petrel_exec e = { .ib_count = 1, .ibs_ptr = (uintptr_t)&ib, .sync_count = 1, .syncs_ptr = (uintptr_t)&out, .cmdbuf_id = 77 };
    struct drm_petrel_wait w = { .syncs_ptr = (uintptr_t)&in, .sync_count = 1, .timeout_ns = UINT64_MAX, .flags = DRM_PETREL_WAIT_DEVICE_CLOCK };

    assert_int_equal(call(&c, DRM_IOCTL_PETREL_VM_CREATE, &v), 0);
    ib_with(&c, v.vm_id, dw, 2);
    q.vm_id = v.vm_id;
    assert_int_equal(call(&c, DRM_IOCTL_PETREL_QUEUE_CREATE, &q), 0);
    assert_int_equal(core_call(&c, DRM_IOCTL_SYNCOBJ_CREATE, &t), 0);
    e.queue_id = q.queue_id;
    out.handle = in.handle = t.handle;
    assert_int_equal(call(&c, DRM_IOCTL_PETREL_EXEC, &e), 0);
    assert_int_equal(call(&c, DRM_IOCTL_PETREL_WAIT, &w), 0); /* a wait for work that failed succeeds: who asks must look */
    refused(run, &c, w.fence_error, "fault=packet");
    assert_non_null(strstr(c.detail.figures, "cmdbuf=77"));
    client_close(&c);
}
