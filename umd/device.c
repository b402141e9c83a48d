/* SPDX-License-Identifier: MIT */
/* device.c - opening a device, hearing its events, remembering its loss; what umdDevice calls say. */
#include "device.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "context.h"
#include "error.h"
#include "library.h"
#include "snapshot.h"
#include "struct_size.h"

UMD_LOG_MODULE("umd.device");

enum { EVENT_WAIT_NS = 20000000, EVENTS_PER_READ = 2 };
#define AWAIT_MAX_NS 5000000000u

/* Reads and handles what is there. Value: as of read; 0 or less: nothing was. */
static ssize_t read_events(struct umd_device *dev, struct drm_petrel_event *buf, uint64_t timeout_ns)
{
    ssize_t n = umd_winsys_read(dev->file, buf, EVENTS_PER_READ * sizeof(*buf), timeout_ns);
    const uint8_t *p = (const uint8_t *)buf;

    if (n <= 0)
        return n;
    for (ssize_t left = n; (size_t)left >= sizeof(struct drm_event);) {
        const struct drm_event *base = (const struct drm_event *)p;
        if (base->length < sizeof(*base) || base->length > (size_t)left)
            break;
        if (base->length >= sizeof(struct drm_petrel_event))
            umd_error_event(dev, (const struct drm_petrel_event *)p);
        p += base->length;
        left -= (ssize_t)base->length;
    }
    return n;
}

static void note_drained(struct umd_device *dev)
{
    umd_mutex_lock(&dev->state_lock);
    dev->events_drained++;
    umd_cond_broadcast(&dev->changed);
    umd_mutex_unlock(&dev->state_lock);
}

static void *event_main(void *arg)
{
    struct umd_device *dev = arg;
    struct drm_petrel_event buf[EVENTS_PER_READ];
    ssize_t said = 0;

    while (!atomic_load(&dev->stop)) {
        ssize_t n = read_events(dev, buf, EVENT_WAIT_NS);
        if (n < 0 && n != -EAGAIN && n != -EINTR && n != said) /* once for each reason: what it keeps back is told by fences only */
            UMD_LOG(UMD_LOG_WARN, "events cannot be read device=%u errno=%d", dev->index, (int)-n);
        said = n < 0 && n != -EAGAIN && n != -EINTR ? n : said;
        if (n < (ssize_t)sizeof(buf))
            note_drained(dev);
        if ((n < 0 || (n == 0 && umd_device_is_lost(dev))) && !atomic_load(&dev->stop)) {
            struct timespec ts = { .tv_nsec = EVENT_WAIT_NS }; /* a lost device, or a host without memory, may answer at once */
            nanosleep(&ts, NULL);
        }
    }
    return NULL;
}

void umd_device_poll(struct umd_device *dev)
{
    struct drm_petrel_event buf[EVENTS_PER_READ];

    if (!dev->stepped || umd_context_in_callback())
        return;
    umd_record_scope_begin(); /* the caller may have a record open */
    while (read_events(dev, buf, 0) > 0)
        ;
    umd_record_scope_end();
}

void umd_device_await_events(struct umd_device *dev)
{
    const uint64_t until_ns = umd_sys()->mono_ns() + AWAIT_MAX_NS;
    const bool lost = umd_device_is_lost(dev);

    if (dev->stepped)
        return;
    umd_mutex_lock(&dev->state_lock);
    const uint64_t enough = dev->events_drained + 2; /* the read under way may have looked before the event came */
    while (dev->events_drained < enough && !(lost && dev->loss_told) && umd_sys()->mono_ns() < until_ns)
        (void)umd_cond_wait(&dev->changed, &dev->state_lock, EVENT_WAIT_NS);
    umd_mutex_unlock(&dev->state_lock);
}

/* For crash snapshots. */
static void write_state(struct umd_state_out *out, const void *arg)
{
    struct umd_device *dev = (struct umd_device *)(uintptr_t)arg;

    umd_state_u64(out, "index", dev->index);
    umd_state_text(out, "lost", umdStatusName((umdStatus)atomic_load(&dev->lost_code)));
    umd_state_u64(out, "contexts", atomic_load(&dev->context_count));
    umd_state_u64(out, "allocated_B", atomic_load(&dev->allocated_B));
    umd_state_u64(out, "high_water_B", atomic_load(&dev->high_water_B));
    umd_state_u64(out, "ring_full_waits", atomic_load(&dev->ring_full_waits));
    umd_state_u64(out, "stepped", dev->stepped);
}

static void device_release(struct umd_object *obj)
{
    struct umd_device *dev = (struct umd_device *)obj;

    umd_cond_fini(&dev->changed);
    umd_mutex_fini(&dev->state_lock);
    umd_mutex_fini(&dev->lock);
    umd_free(dev);
}

void umd_device_destroy(struct umd_device *dev)
{
    struct umd_object *obj;

    if (!dev)
        return;
    umd_state_unregister(write_state, dev);
    atomic_store(&dev->stop, true);
    if (dev->event_thread_runs)
        pthread_join(dev->event_thread, NULL);
    if (dev->file)
        UMD_LOG(UMD_LOG_INFO, "device closed index=%u high_water_B=%" PRIu64 " ring_full_waits=%" PRIu64 " wait_retries=%" PRIu64,
                dev->index, atomic_load(&dev->high_water_B), atomic_load(&dev->ring_full_waits), atomic_load(&dev->wait_retries));
    umd_winsys_close(dev->file);
    dev->file = NULL;
    if (!dev->obj.handle)
        device_release(&dev->obj);
    else if (umd_handle_close(dev->obj.handle, UMD_OBJ_DEVICE, &obj) == UMD_SUCCESS)
        umd_object_put(obj);
}

umdStatus umd_device_create(struct umd_winsys *ws, uint32_t index, bool stepped, struct umd_device **dev_out)
{
    struct umd_device *dev = umd_alloc(sizeof(*dev));

    if (!dev)
        return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    dev->index = index;
    dev->stepped = stepped;
    dev->obj.release = device_release;
    umd_mutex_init(&dev->lock, "umd device", 10);
    umd_mutex_init(&dev->state_lock, "umd device state", 44);
    umd_cond_init(&dev->changed);
    umdStatus st = umd_winsys_open(ws, index, &dev->file);
    if (st == UMD_SUCCESS)
        st = umd_winsys_ioctl(dev->file, DRM_IOCTL_PETREL_INFO, &dev->info);
    if (st == UMD_SUCCESS)
        st = umd_handle_open(&dev->obj, UMD_OBJ_DEVICE);
    if (st == UMD_SUCCESS && !stepped) {
        int err = umd_sys()->thread_create(&dev->event_thread, "petrel-events", event_main, dev);
        dev->event_thread_runs = !err;
        if (err)
            st = UMD_FAIL(UMD_ERR_RES_THREADS, "thread=petrel-events errno=%d", err);
    }
    if (st < 0) {
        umd_error_keep(st, umd_device_destroy(dev));
        return UMD_HOP(st);
    }
    (void)umd_state_register("umd.device", write_state, dev);
    UMD_LOG(UMD_LOG_INFO, "device opened index=%u name=%.32s vram_B=%" PRIu64 " fw=0x%x", index, dev->info.name, (uint64_t)dev->info.vram_size_B,
            dev->info.fw_version);
    *dev_out = dev;
    return UMD_SUCCESS;
}

umdStatus umd_device_check(struct umd_device *dev)
{
    if (__builtin_expect(!umd_device_is_lost(dev), 1))
        return UMD_SUCCESS;
    umdStatus st = umd_error_deliver(&dev->lost);
    return UMD_HOP(st);
}

bool umd_device_set_lost(struct umd_device *dev, const umdErrorDetail *detail)
{
    umd_mutex_lock(&dev->state_lock);
    bool news = !umd_device_is_lost(dev);
    if (news) {
        dev->lost = *detail;
        atomic_store_explicit(&dev->lost_code, detail->code, memory_order_release);
        umd_cond_broadcast(&dev->changed);
    }
    umd_mutex_unlock(&dev->state_lock);
    if (news)
        umd_record_pin(detail, true); /* each later call names it */
    return news;
}

umdStatus umd_device_ioctl(struct umd_device *dev, unsigned long cmd, void *arg)
{
    umdErrorDetail detail;

    umdStatus st = umd_winsys_ioctl(dev->file, cmd, arg);
    if (__builtin_expect(st >= 0, 1))
        return st;
    if (st > UMD_ERR_DEV_LOST_OFF_BUS || st < -4199)
        return UMD_HOP(st);
    /* Loss: the first record of it is what each later call returns. */
    if (!umd_record_export(&detail))
        return st;
    if (!umd_device_set_lost(dev, &detail) && detail.id.seq != dev->lost.id.seq)
        umd_record_drop(&detail, "the device had been lost before: its first record is told");
    return umd_device_check(dev);
}

void umd_device_account(struct umd_device *dev, int64_t delta_B)
{
    uint64_t now = atomic_fetch_add(&dev->allocated_B, (uint64_t)delta_B) + (uint64_t)delta_B;
    uint64_t high = atomic_load(&dev->high_water_B);

    while (now > high && delta_B > 0 && !atomic_compare_exchange_weak(&dev->high_water_B, &high, now))
        ;
}

/* ---- Public calls ---- */

umdStatus umdDeviceGetCount(uint32_t *count_out)
{
    struct umd_call call;

    umdStatus st = UMD_CALL_ENTER(&call, "%s", "");
    if (st == UMD_SUCCESS && !count_out)
        st = UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=count_out");
    if (st == UMD_SUCCESS)
        *count_out = umd_library_device_count();
    return umd_call_leave(&call, st);
}

umdStatus umdDeviceGet(uint32_t index, umdDevice *device_out)
{
    struct umd_call call;

    umdStatus st = UMD_CALL_ENTER(&call, "index=%u", index);
    if (st < 0)
        return umd_call_leave(&call, st);
    if (!device_out)
        st = UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=device_out");
    else if (index >= umd_library_device_count())
        st = UMD_FAIL(UMD_ERR_PARAM_RANGE, "argument=index value=%u count=%u", index, umd_library_device_count());
    else
        *device_out = (umdDevice){ umd_library_device(index)->obj.handle };
    return umd_call_leave(&call, st);
}

static void fill_info(struct umd_device *dev, const struct drm_petrel_info *i, umdDeviceInfo *out)
{
    *out = (umdDeviceInfo){
        .size_B = sizeof(*out), .vram_size_B = i->vram_size_B, .vram_free_B = i->vram_free_B, .vram_largest_free_B = i->vram_largest_free_B,
        .cu_count = i->cu_count, .warps_per_cu = i->warps_per_cu, .local_B = i->local_B, .clock_khz = i->clock_khz,
        .max_block = i->max_block, .private_B = i->private_B, .fw_version = i->fw_version, .hw_revision = i->hw_revision,
        .device_ns = i->device_ns, .watchdog_ns = i->watchdog_ns, .reset_count = i->reset_count,
        .vram_high_water_B = atomic_load(&dev->high_water_B), .lost_code = (umdStatus)atomic_load(&dev->lost_code),
    };
    memcpy(out->name, i->name, sizeof(out->name));
    out->name[sizeof(out->name) - 1] = '\0';
    memcpy(out->uuid, i->uuid, sizeof(out->uuid));
}

static umdStatus get_info(struct umd_device *dev, umdDeviceInfo *info)
{
    struct drm_petrel_info now = dev->info;

    umd_device_poll(dev);
    if (!umd_device_is_lost(dev)) {
        memset(&now, 0, sizeof(now));
        umdStatus st = umd_device_ioctl(dev, DRM_IOCTL_PETREL_INFO, &now);
        if (st < 0 && !umd_device_is_lost(dev))
            return UMD_HOP(st);
        if (st < 0) {
            UMD_ABSORB(st, "the device is lost: what is known of it is returned, with lost_code");
            now = dev->info;
        }
    }
    fill_info(dev, &now, info);
    return UMD_SUCCESS;
}

umdStatus umdDeviceGetInfo(umdDevice device, umdDeviceInfo *info)
{
    struct umd_call call;
    struct umd_object *obj;
    umdDeviceInfo own;
    char figures[UMD_STRUCT_FIGURES];

    umdStatus st = UMD_CALL_ENTER(&call, "device=0x%" PRIx64, device.id);
    if (st < 0)
        return umd_call_leave(&call, st);
    if (!info)
        return umd_call_leave(&call, UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=info"));
    if (!umd_struct_fits(sizeof(*info), info, UMD_DEVICE_INFO_SIZE_V1, figures))
        return umd_call_leave(&call, UMD_FAIL(UMD_ERR_PARAM_STRUCT_SIZE, "argument=info %s", figures));
    st = umd_handle_get(device.id, UMD_OBJ_DEVICE, &obj);
    if (st == UMD_SUCCESS) {
        st = get_info((struct umd_device *)obj, &own);
        if (st == UMD_SUCCESS)
            umd_struct_out(info, &own, sizeof(own));
        umd_object_put(obj);
    }
    return umd_call_leave(&call, st);
}

/* The failure that the object's calls go on to tell: of the context if it is one that failed, else the device's loss. NULL: none. */
static const umdErrorDetail *failure_of(const struct umd_object *obj)
{
    struct umd_context *ctx = obj->type == UMD_OBJ_CONTEXT ? (struct umd_context *)obj : NULL;
    struct umd_device *dev = ctx ? ctx->dev : (struct umd_device *)obj;

    if (ctx)
        umd_record_set_context(ctx->id);
    umd_device_poll(dev);
    if (ctx && atomic_load_explicit(&ctx->failed_code, memory_order_acquire))
        return &ctx->failed;
    return umd_device_is_lost(dev) ? &dev->lost : NULL;
}

umdStatus umd_first_cause(uint64_t handle, enum umd_object_type type, umdErrorDetail *detail)
{
    char figures[UMD_STRUCT_FIGURES];
    struct umd_object *obj;

    if (!detail)
        return UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=detail");
    if (!umd_struct_fits(sizeof(*detail), detail, UMD_ERROR_DETAIL_SIZE_V1, figures))
        return UMD_FAIL(UMD_ERR_PARAM_STRUCT_SIZE, "argument=detail %s", figures);
    umdStatus st = umd_handle_get(handle, type, &obj);
    if (st < 0)
        return UMD_HOP(st);
    const umdErrorDetail *failure = failure_of(obj);
    if (failure && umdGetFirstCause(failure->id, detail) != UMD_SUCCESS)
        umd_struct_out(detail, failure, sizeof(*failure)); /* as far as is known */
    umd_object_put(obj);
    return failure ? UMD_SUCCESS : UMD_STATUS_NOT_READY;
}

umdStatus umdDeviceGetFirstCause(umdDevice device, umdErrorDetail *detail)
{
    struct umd_call call;

    umdStatus st = UMD_CALL_ENTER(&call, "device=0x%" PRIx64, device.id);
    if (st == UMD_SUCCESS)
        st = umd_first_cause(device.id, UMD_OBJ_DEVICE, detail);
    return umd_call_leave(&call, st);
}
