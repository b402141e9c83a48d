/* SPDX-License-Identifier: MIT */
/* copy.c - copies and fills: staged through the stream's ring to the device, through read-back buffers to the host. */
#include <inttypes.h>
#include <string.h>

#include <hw/petrel_packets.h>

#include "error.h"
#include "library.h"
#include "stream.h"

UMD_LOG_MODULE("umd.copy");

struct copy_packet { uint64_t src, dst, bytes; } __attribute__((packed));
struct fill_packet { uint64_t dst, bytes; uint32_t pattern, element_B; } __attribute__((packed));

static umdStatus submit(struct umd_stream *s, const char *kind, uint32_t op, const void *packet, uint32_t dwords, uint64_t *point_out)
{
    struct umd_job job = { .kind = kind };
    struct umd_cmd cmd;

    umd_mutex_lock(&s->lock);
    umdStatus st = umd_cmd_begin(s, 1 + dwords, 0, &cmd);
    if (st == UMD_SUCCESS) {
        umd_cmd_packet(&cmd, op, packet, dwords);
        st = umd_cmd_submit(&cmd, &job, NULL);
    }
    st = umd_stream_unlock(s, st);
    if (st < 0)
        return UMD_HOP(st);
    if (point_out)
        *point_out = job.point;
    return UMD_SUCCESS;
}

/* One piece: payload and command go into the ring together. */
static umdStatus upload_piece(struct umd_stream *s, umdDevicePtr dst, const void *src, uint32_t n)
{
    struct umd_job job = { .kind = "copy" };
    struct umd_cmd cmd;

    umd_mutex_lock(&s->lock);
    umdStatus st = umd_cmd_begin(s, 1 + sizeof(struct copy_packet) / 4, n, &cmd);
    if (st == UMD_SUCCESS) {
        struct copy_packet p = { .src = cmd.data_va, .dst = dst, .bytes = n };
        memcpy(cmd.data, src, n);
        umd_cmd_packet(&cmd, PETREL_OP_COPY, &p, sizeof(p) / 4);
        st = umd_cmd_submit(&cmd, &job, NULL);
    }
    st = umd_stream_unlock(s, st);
    return st < 0 ? UMD_HOP(st) : UMD_SUCCESS;
}

static umdStatus copy_to_device(struct umd_stream *s, umdDevicePtr dst, const uint8_t *src, uint64_t size_B)
{
    struct umd_alloc_entry *e;

    umdStatus st = umd_memory_pin(s->ctx, dst, size_B, "dst", &e);
    if (st < 0)
        return UMD_HOP(st);
    st = umd_stream_check(s);
    for (uint64_t done = 0; st == UMD_SUCCESS && done < size_B;) {
        uint32_t n = size_B - done < UMD_STAGING_B ? (uint32_t)(size_B - done) : UMD_STAGING_B;
        st = upload_piece(s, dst + done, src + done, n);
        done += n;
    }
    umd_memory_unpin(s->ctx, e);
    return st < 0 ? UMD_HOP(st) : UMD_SUCCESS;
}

umdStatus umdMemcpyHtoD(umdStream stream, umdDevicePtr dst, const void *src, uint64_t size_B)
{
    struct umd_call call;
    struct umd_stream *s = NULL;

    umdStatus st = UMD_CALL_ENTER(&call, "stream=0x%" PRIx64 " dst=0x%" PRIx64 " size_B=%" PRIu64, stream.id, dst, size_B);
    if (st < 0)
        return umd_call_leave(&call, st);
    if (!src && size_B)
        return umd_call_leave(&call, UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=src"));
    st = umd_stream_get(stream, &s);
    if (st == UMD_SUCCESS) {
        st = copy_to_device(s, dst, src, size_B);
        umd_object_put(&s->obj);
    }
    return umd_call_leave(&call, st);
}

static umdStatus download_piece(struct umd_stream *s, struct umd_bo *bo, uint8_t *dst, umdDevicePtr src, uint32_t n)
{
    struct copy_packet p = { .src = src, .dst = bo->va, .bytes = n };
    uint64_t point = 0;

    umdStatus st = submit(s, "copy", PETREL_OP_COPY, &p, sizeof(p) / 4, &point);
    if (st < 0)
        return UMD_HOP(st);
    st = umd_stream_wait(s, point, UMD_TIMEOUT_INFINITE, false, false);
    if (st < 0)
        return UMD_HOP(st);
    /* Work before the copy may have failed while the copy did not: what was read is then not what the program means. */
    umd_device_poll(s->ctx->dev);
    st = umd_error_take_unread(s);
    if (st == UMD_SUCCESS)
        st = umd_stream_check(s);
    if (st < 0)
        return UMD_HOP(st);
    memcpy(dst, bo->map, n);
    return UMD_SUCCESS;
}

static umdStatus copy_to_host(struct umd_stream *s, uint8_t *dst, umdDevicePtr src, uint64_t size_B)
{
    struct umd_alloc_entry *e;
    struct umd_bo bo;

    umdStatus st = umd_memory_pin(s->ctx, src, size_B, "src", &e);
    if (st < 0)
        return UMD_HOP(st);
    st = umd_error_take_unread(s);
    if (st == UMD_SUCCESS)
        st = umd_stream_check(s);
    if (st == UMD_SUCCESS && size_B) {
        st = umd_readback_take(s->ctx, &bo);
        if (st == UMD_SUCCESS) {
            for (uint64_t done = 0; st == UMD_SUCCESS && done < size_B;) {
                uint32_t n = size_B - done < UMD_READBACK_B ? (uint32_t)(size_B - done) : UMD_READBACK_B;
                st = download_piece(s, &bo, dst + done, src + done, n);
                done += n;
            }
            if (st < 0) /* a copy may still be under way into the buffer */
                umd_error_keep(st, umd_stream_idle(s));
            umd_error_keep(st, umd_readback_give(s->ctx, &bo));
        }
    }
    umd_memory_unpin(s->ctx, e);
    return st < 0 ? UMD_HOP(st) : UMD_SUCCESS;
}

umdStatus umdMemcpyDtoH(umdStream stream, void *dst, umdDevicePtr src, uint64_t size_B)
{
    struct umd_call call;
    struct umd_stream *s = NULL;

    umdStatus st = UMD_CALL_ENTER(&call, "stream=0x%" PRIx64 " src=0x%" PRIx64 " size_B=%" PRIu64, stream.id, src, size_B);
    if (st < 0)
        return umd_call_leave(&call, st);
    if (!dst && size_B)
        return umd_call_leave(&call, UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=dst"));
    st = umd_stream_get(stream, &s);
    if (st == UMD_SUCCESS) {
        st = copy_to_host(s, dst, src, size_B);
        umd_object_put(&s->obj);
    }
    return umd_call_leave(&call, st);
}

static umdStatus copy_on_device(struct umd_stream *s, umdDevicePtr dst, umdDevicePtr src, uint64_t size_B)
{
    struct copy_packet p = { .src = src, .dst = dst, .bytes = size_B };
    struct umd_alloc_entry *from, *to;

    umdStatus st = umd_memory_pin(s->ctx, dst, size_B, "dst", &to);
    if (st < 0)
        return UMD_HOP(st);
    st = umd_memory_pin(s->ctx, src, size_B, "src", &from);
    if (st == UMD_SUCCESS) {
        if (dst < src + size_B && src < dst + size_B)
            st = UMD_FAIL(UMD_ERR_PARAM_RANGE, "reason=overlap dst=0x%" PRIx64 " src=0x%" PRIx64 " size_B=%" PRIu64, dst, src, size_B);
        if (st == UMD_SUCCESS)
            st = umd_stream_check(s);
        if (st == UMD_SUCCESS && size_B)
            st = submit(s, "copy", PETREL_OP_COPY, &p, sizeof(p) / 4, NULL);
        umd_memory_unpin(s->ctx, from);
    }
    umd_memory_unpin(s->ctx, to);
    return st < 0 ? UMD_HOP(st) : UMD_SUCCESS;
}

umdStatus umdMemcpyDtoD(umdStream stream, umdDevicePtr dst, umdDevicePtr src, uint64_t size_B)
{
    struct umd_call call;
    struct umd_stream *s = NULL;

    umdStatus st = UMD_CALL_ENTER(&call, "stream=0x%" PRIx64 " dst=0x%" PRIx64 " src=0x%" PRIx64 " size_B=%" PRIu64, stream.id, dst, src, size_B);
    if (st < 0)
        return umd_call_leave(&call, st);
    st = umd_stream_get(stream, &s);
    if (st == UMD_SUCCESS) {
        st = copy_on_device(s, dst, src, size_B);
        umd_object_put(&s->obj);
    }
    return umd_call_leave(&call, st);
}

static umdStatus fill(struct umd_stream *s, umdDevicePtr dst, uint32_t pattern, uint32_t element_B, uint64_t size_B)
{
    struct fill_packet p = { .dst = dst, .bytes = size_B, .pattern = pattern, .element_B = element_B };
    struct umd_alloc_entry *e;

    umdStatus st = umd_memory_pin(s->ctx, dst, size_B, "dst", &e);
    if (st < 0)
        return UMD_HOP(st);
    st = umd_stream_check(s);
    if (st == UMD_SUCCESS && size_B)
        st = submit(s, "fill", PETREL_OP_FILL, &p, sizeof(p) / 4, NULL);
    umd_memory_unpin(s->ctx, e);
    return st < 0 ? UMD_HOP(st) : UMD_SUCCESS;
}

umdStatus umdMemset(umdStream stream, umdDevicePtr dst, uint32_t pattern, uint32_t element_B, uint64_t size_B)
{
    struct umd_call call;
    struct umd_stream *s = NULL;

    umdStatus st = UMD_CALL_ENTER(&call, "stream=0x%" PRIx64 " dst=0x%" PRIx64 " element_B=%u size_B=%" PRIu64, stream.id, dst, element_B, size_B);
    if (st < 0)
        return umd_call_leave(&call, st);
    if (element_B != 1 && element_B != 2 && element_B != 4)
        return umd_call_leave(&call, UMD_FAIL(UMD_ERR_PARAM_RANGE, "argument=element_B value=%u expected=\"1 2 4\"", element_B));
    if (size_B % element_B)
        return umd_call_leave(&call, UMD_FAIL(UMD_ERR_PARAM_RANGE, "argument=size_B value=%" PRIu64 " multiple_of=%u", size_B, element_B));
    st = umd_stream_get(stream, &s);
    if (st == UMD_SUCCESS) {
        st = fill(s, dst, pattern, element_B, size_B);
        umd_object_put(&s->obj);
    }
    return umd_call_leave(&call, st);
}
