/* SPDX-License-Identifier: MIT */
/* winsys_loopback.c - the carrier that treats the caller as another process: marshals, scrubs, copies, calls on its own threads. */
#include "winsys_carrier.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <drm.h>
#include <uapi/petrel_drm.h>

#include "record.h"
#include "sys.h"

UMD_LOG_MODULE("winsys.loopback");

/*
 * An ioctl's struct and all that it points to is copied to memory of the carrier; the driver sees the copies only. The caller's memory is
 * filled with POISON while the call runs, so a driver that kept or followed a client pointer meets poison, and written back afterwards,
 * on success and failure alike. Client memory is read and written by process_vm calls: a bad pointer is EFAULT, as in a kernel.
 * Simplified: where the host forbids process_vm calls, plain copies are used and a bad pointer is a crash of the test.
 */
enum { POISON = 0xa5, POINTERS_MAX = 4 };

enum direction { IN = 1, OUT = 2, INOUT = 3 };

/* An embedded pointer: where it is, how many elements it points to. */
struct pointer {
    uint16_t offset;          /* of the 64-bit pointer in the struct */
    uint16_t count_offset;    /* of the count */
    uint8_t count_size;       /* 4 or 8 bytes; 0: one element */
    uint8_t dir;
    uint16_t element_B;
};

struct shape {
    unsigned long cmd;
    struct pointer pointers[POINTERS_MAX];   /* ends with element_B 0 */
};

#define ARRAY(type_, ptr_, count_, element_, dir_)                                                        \
    { .offset = offsetof(struct type_, ptr_), .count_offset = offsetof(struct type_, count_),             \
      .count_size = sizeof(((struct type_ *)0)->count_), .dir = (dir_), .element_B = (element_) }
#define RECORD { .offset = 0, .dir = INOUT, .element_B = sizeof(umdErrorDetail) }

static const struct shape shapes[] = {
    { DRM_IOCTL_PETREL_INFO, { RECORD } },
    { DRM_IOCTL_PETREL_GEM_CREATE, { RECORD } },
    { DRM_IOCTL_PETREL_GEM_MMAP, { RECORD } },
    { DRM_IOCTL_PETREL_VM_CREATE, { RECORD } },
    { DRM_IOCTL_PETREL_VM_DESTROY, { RECORD } },
    { DRM_IOCTL_PETREL_VM_BIND, { RECORD } },
    { DRM_IOCTL_PETREL_QUEUE_CREATE, { RECORD } },
    { DRM_IOCTL_PETREL_QUEUE_DESTROY, { RECORD } },
    { DRM_IOCTL_PETREL_QUEUE_QUERY, { RECORD } },
    { DRM_IOCTL_PETREL_EXEC, { RECORD, ARRAY(drm_petrel_exec, ibs_ptr, ib_count, sizeof(struct drm_petrel_ib), IN),
                               ARRAY(drm_petrel_exec, syncs_ptr, sync_count, sizeof(struct drm_petrel_sync), IN) } },
    { DRM_IOCTL_PETREL_WAIT, { RECORD, ARRAY(drm_petrel_wait, syncs_ptr, sync_count, sizeof(struct drm_petrel_sync), IN) } },
    { DRM_IOCTL_VERSION, { ARRAY(drm_version, name, name_len, 1, INOUT), ARRAY(drm_version, date, date_len, 1, INOUT),
                           ARRAY(drm_version, desc, desc_len, 1, INOUT) } },
    { DRM_IOCTL_GET_UNIQUE, { ARRAY(drm_unique, unique, unique_len, 1, INOUT) } },
    { DRM_IOCTL_GET_CAP, { { 0 } } },
    { DRM_IOCTL_SET_CLIENT_CAP, { { 0 } } },
    { DRM_IOCTL_GEM_CLOSE, { { 0 } } },
    { DRM_IOCTL_SYNCOBJ_CREATE, { { 0 } } },
    { DRM_IOCTL_SYNCOBJ_DESTROY, { { 0 } } },
    { DRM_IOCTL_SYNCOBJ_TRANSFER, { { 0 } } },
    { DRM_IOCTL_SYNCOBJ_WAIT, { ARRAY(drm_syncobj_wait, handles, count_handles, 4, IN) } },
    { DRM_IOCTL_SYNCOBJ_RESET, { ARRAY(drm_syncobj_array, handles, count_handles, 4, IN) } },
    { DRM_IOCTL_SYNCOBJ_SIGNAL, { ARRAY(drm_syncobj_array, handles, count_handles, 4, IN) } },
    { DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT, { ARRAY(drm_syncobj_timeline_wait, handles, count_handles, 4, IN),
                                         ARRAY(drm_syncobj_timeline_wait, points, count_handles, 8, IN) } },
    { DRM_IOCTL_SYNCOBJ_QUERY, { ARRAY(drm_syncobj_timeline_array, handles, count_handles, 4, IN),
                                 ARRAY(drm_syncobj_timeline_array, points, count_handles, 8, INOUT) } },
    { DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL, { ARRAY(drm_syncobj_timeline_array, handles, count_handles, 4, IN),
                                           ARRAY(drm_syncobj_timeline_array, points, count_handles, 8, IN) } },
};

/* A call on its way: handed to a worker thread, or run in place in stepped mode. */
struct worker {
    struct worker *next;          /* idle list */
    struct loopback *owner;
    pthread_t thread;
    struct umd_mutex lock;        /* rank 46, below every lock of the driver */
    struct umd_cond changed;
    enum { WORKER_IDLE, WORKER_CALLED, WORKER_DONE, WORKER_STOP } state;
    struct umd_carrier_file *file;
    unsigned long cmd;
    void *arg;
    struct umd_winsys_story *story;
    int ret;
};

struct loopback {
    struct umd_carrier carrier;
    struct umd_mutex lock;        /* rank 45: idle list */
    struct worker *idle;
    uint32_t workers;
};

struct loopback_file {
    struct umd_carrier_file base;
    struct loopback *owner;
};

static void *worker_main(void *arg)
{
    struct worker *w = arg;

    umd_mutex_lock(&w->lock);
    for (;;) {
        while (w->state != WORKER_CALLED && w->state != WORKER_STOP)
            (void)umd_cond_wait(&w->changed, &w->lock, UINT64_MAX);
        if (w->state == WORKER_STOP)
            break;
        umd_mutex_unlock(&w->lock);
        int ret = umd_carrier_ioctl(w->file, w->cmd, w->arg, w->story);
        umd_mutex_lock(&w->lock);
        w->ret = ret;
        w->state = WORKER_DONE;
        umd_cond_broadcast(&w->changed);
    }
    umd_mutex_unlock(&w->lock);
    return NULL;
}

static umdStatus worker_take(struct loopback *lb, struct worker **worker_out)
{
    umd_mutex_lock(&lb->lock);
    struct worker *w = lb->idle;
    if (w)
        lb->idle = w->next;
    umd_mutex_unlock(&lb->lock);
    *worker_out = w;
    if (w)
        return UMD_SUCCESS;
    w = umd_alloc(sizeof(*w));
    if (!w)
        return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    w->owner = lb;
    umd_mutex_init(&w->lock, "loopback worker", 46);
    umd_cond_init(&w->changed);
    int err = umd_sys()->thread_create(&w->thread, "petrel-loop", worker_main, w);
    if (err) {
        umd_cond_fini(&w->changed);
        umd_mutex_fini(&w->lock);
        umd_free(w);
        return UMD_FAIL(UMD_ERR_RES_THREADS, "thread=petrel-loop errno=%d", err);
    }
    *worker_out = w;
    return UMD_SUCCESS;
}

static void worker_give(struct loopback *lb, struct worker *w)
{
    umd_mutex_lock(&lb->lock);
    w->next = lb->idle;
    lb->idle = w;
    umd_mutex_unlock(&lb->lock);
}

static int call(struct loopback_file *f, unsigned long cmd, void *arg, struct umd_winsys_story *story)
{
    struct worker *w;

    if (f->owner->carrier.stepped)
        return umd_carrier_ioctl(&f->base, cmd, arg, story);
    umdStatus st = worker_take(f->owner, &w);
    if (st < 0)
        return umd_carrier_fail(story, UMD_HOP(st));
    umd_mutex_lock(&w->lock);
    w->file = &f->base;
    w->cmd = cmd;
    w->arg = arg;
    w->story = story;
    w->state = WORKER_CALLED;
    umd_cond_broadcast(&w->changed);
    while (w->state != WORKER_DONE)
        (void)umd_cond_wait(&w->changed, &w->lock, UINT64_MAX);
    int ret = w->ret;
    w->state = WORKER_IDLE;
    umd_mutex_unlock(&w->lock);
    worker_give(f->owner, w);
    return ret;
}

/* 0 or -EFAULT. */
static int client_copy(void *local, uint64_t client, size_t n, bool to_client)
{
    struct iovec l = { local, n }, r = { (void *)(uintptr_t)client, n };

    if (!n)
        return 0;
    ssize_t got = to_client ? process_vm_writev(getpid(), &l, 1, &r, 1, 0) : process_vm_readv(getpid(), &l, 1, &r, 1, 0);
    if (got == (ssize_t)n)
        return 0;
    if (got >= 0 || (errno != ENOSYS && errno != EPERM))
        return -EFAULT;
    if (to_client)
        memcpy((void *)(uintptr_t)client, local, n);
    else
        memcpy(local, (const void *)(uintptr_t)client, n);
    return 0;
}

static void client_poison(uint64_t client, size_t n)
{
    uint8_t fill[512];

    memset(fill, POISON, sizeof(fill));
    for (size_t done = 0; done < n; done += sizeof(fill)) {
        size_t part = n - done < sizeof(fill) ? n - done : sizeof(fill);
        if (client_copy(fill, client + done, part, true))
            return; /* read-only memory of the client stays as it is */
    }
}

struct marshal {
    const struct shape *shape;
    size_t arg_B;
    uint8_t original[512], scratch[512];
    struct { uint64_t client; size_t size_B; uint8_t *copy, *saved; } buf[POINTERS_MAX];
    uint32_t buf_count;
};

static uint64_t field(const uint8_t *arg, uint32_t offset, uint32_t size)
{
    uint64_t v = 0;

    memcpy(&v, arg + offset, size);
    return v;
}

/* Copies what the pointers of the struct lead to, and points the scratch struct at the copies. */
static umdStatus marshal_in(struct marshal *m, void *arg)
{
    memcpy(m->original, arg, m->arg_B);
    memcpy(m->scratch, arg, m->arg_B);
    for (uint32_t i = 0; i < POINTERS_MAX && m->shape->pointers[i].element_B; i++) {
        const struct pointer *p = &m->shape->pointers[i];
        uint64_t count = p->count_size ? field(m->original, p->count_offset, p->count_size) : 1;
        uint64_t client = field(m->original, p->offset, 8);
        if (!client || !count)
            continue;
        if (count > 65536) /* the driver refuses such a count before it looks at the array: let it */
            continue;
        size_t n = (size_t)count * p->element_B;
        uint8_t *copy = umd_alloc(n * 2);
        if (!copy)
            return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
        m->buf[m->buf_count].copy = copy;
        m->buf[m->buf_count].saved = copy + n;
        m->buf[m->buf_count].client = client;
        m->buf[m->buf_count].size_B = n;
        m->buf_count++;
        if (client_copy(copy, client, n, false))
            return UMD_FAIL(UMD_ERR_UAPI_POINTER, "ioctl=0x%02lx offset_B=%u size_B=%zu access=read", m->shape->cmd & 0xffu, p->offset, n);
        memcpy(copy + n, copy, n);
        uint64_t at = (uint64_t)(uintptr_t)copy;
        memcpy(m->scratch + p->offset, &at, sizeof(at));
    }
    for (uint32_t i = 0; i < m->buf_count; i++)
        client_poison(m->buf[i].client, m->buf[i].size_B);
    memset(arg, POISON, m->arg_B);
    return UMD_SUCCESS;
}

/* Results go back whatever the call returned; what the client gave to read only comes back as it was. */
static int marshal_out(struct marshal *m, void *arg, int ret, struct umd_winsys_story *story)
{
    uint32_t b = 0;

    for (uint32_t i = 0; i < POINTERS_MAX && m->shape->pointers[i].element_B; i++) {
        const struct pointer *p = &m->shape->pointers[i];
        uint64_t client = field(m->original, p->offset, 8);
        memcpy(m->scratch + p->offset, &client, sizeof(client));
        if (b == m->buf_count || m->buf[b].client != client)
            continue;
        void *back = p->dir & OUT ? m->buf[b].copy : m->buf[b].saved;
        if (client_copy(back, client, m->buf[b].size_B, true) && p->dir & OUT && !ret)
            ret = umd_carrier_fail(story, UMD_FAIL(UMD_ERR_UAPI_POINTER, "ioctl=0x%02lx offset_B=%u size_B=%zu access=write",
                                                   m->shape->cmd & 0xffu, p->offset, m->buf[b].size_B));
        b++;
    }
    memcpy(arg, _IOC_DIR(m->shape->cmd) & _IOC_READ ? m->scratch : m->original, m->arg_B);
    return ret;
}

static int loopback_ioctl(void *file, unsigned long cmd, void *arg, struct umd_winsys_story *story)
{
    struct loopback_file *f = file;
    struct marshal m = { .arg_B = _IOC_SIZE(cmd) };
    int ret;

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        if (shapes[i].cmd == cmd)
            m.shape = &shapes[i];
    if (!m.shape || m.arg_B > sizeof(m.scratch))
        return umd_carrier_fail(story, UMD_FAIL(UMD_ERR_UAPI_UNKNOWN, "ioctl=0x%02lx reason=\"this carrier cannot move it\"", cmd & 0xffu));
    umdStatus st = marshal_in(&m, arg);
    if (st < 0) {
        ret = umd_carrier_fail(story, st);
    } else {
        ret = call(f, cmd, m.scratch, story);
        ret = marshal_out(&m, arg, ret, story);
    }
    for (uint32_t i = 0; i < m.buf_count; i++)
        umd_free(m.buf[i].copy);
    return ret;
}

static umdStatus loopback_init(const struct umd_winsys_config *config, void **priv_out, uint32_t *device_count_out)
{
    struct loopback *lb = umd_alloc(sizeof(*lb));

    if (!lb)
        return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    umdStatus st = umd_carrier_init(&lb->carrier, config, device_count_out);
    if (st < 0) {
        umd_free(lb);
        return UMD_HOP(st);
    }
    umd_mutex_init(&lb->lock, "loopback", 45);
    *priv_out = lb;
    return UMD_SUCCESS;
}

/* All files are closed and no call is under way: every worker is idle. */
static void loopback_fini(void *priv)
{
    struct loopback *lb = priv;

    while (lb->idle) {
        struct worker *w = lb->idle;
        lb->idle = w->next;
        umd_mutex_lock(&w->lock);
        w->state = WORKER_STOP;
        umd_cond_broadcast(&w->changed);
        umd_mutex_unlock(&w->lock);
        pthread_join(w->thread, NULL);
        umd_cond_fini(&w->changed);
        umd_mutex_fini(&w->lock);
        umd_free(w);
    }
    umd_carrier_fini(&lb->carrier);
    umd_mutex_fini(&lb->lock);
    umd_free(lb);
}

static umdStatus loopback_open(void *priv, uint32_t index, void **file_out)
{
    struct loopback_file *f = umd_alloc(sizeof(*f));

    if (!f)
        return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    f->owner = priv;
    umdStatus st = umd_carrier_open(&f->owner->carrier, index, &f->base);
    if (st < 0) {
        umd_free(f);
        return UMD_HOP(st);
    }
    *file_out = f;
    return UMD_SUCCESS;
}

static void loopback_close(void *file)
{
    struct loopback_file *f = file;

    umd_carrier_close(&f->base);
    umd_free(f);
}

/* Events come through a buffer of the carrier. */
static ssize_t loopback_read(void *file, void *buf, size_t size_B, uint64_t timeout_ns)
{
    struct loopback_file *f = file;
    void *scratch = umd_alloc(size_B ? size_B : 1);

    if (!scratch) {
        UMD_ABSORB(UMD_ERR_MEM_HOST_ALLOC_FAILED, "events stay with the driver until the next read");
        return -ENOMEM;
    }
    ssize_t n = umd_carrier_read(&f->base, scratch, size_B, timeout_ns);
    if (n > 0 && client_copy(scratch, (uint64_t)(uintptr_t)buf, (size_t)n, true))
        n = -EFAULT;
    umd_free(scratch);
    return n;
}

/* Maps are the kernel's to place: the same over each carrier. */
static void *loopback_mmap(void *file, uint64_t offset, size_t size_B, int *error_out, struct umd_winsys_story *story)
{
    return umd_carrier_mmap(&((struct loopback_file *)file)->base, offset, size_B, error_out, story);
}

static int loopback_munmap(void *file, void *addr, size_t size_B)
{
    return umd_carrier_munmap(&((struct loopback_file *)file)->base, addr, size_B);
}

const struct umd_winsys_ops umd_winsys_loopback = {
    .name = "loopback",
    .init = loopback_init,
    .fini = loopback_fini,
    .open = loopback_open,
    .close = loopback_close,
    .ioctl = loopback_ioctl,
    .read = loopback_read,
    .mmap = loopback_mmap,
    .munmap = loopback_munmap,
};
