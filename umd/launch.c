/* SPDX-License-Identifier: MIT */
/* launch.c - checks a kernel launch against kernel and device, and submits it. */
#include <inttypes.h>
#include <string.h>

#include <hw/petrel_packets.h>

#include "error.h"
#include "library.h"
#include "module.h"
#include "stream.h"
#include "struct_size.h"

UMD_LOG_MODULE("umd.launch");

enum { LANES = 32 };

static umdStatus check_dimensions(const struct drm_petrel_info *info, const struct umd_kernel *k, const umdLaunchDesc *d, uint32_t *items_out)
{
    uint32_t limit = k->meta.max_block && k->meta.max_block < info->max_block ? k->meta.max_block : info->max_block;
    uint64_t items = (uint64_t)d->block[0] * d->block[1], groups = (uint64_t)d->grid[0] * d->grid[1], all;
    bool overflow = __builtin_mul_overflow(items, (uint64_t)d->block[2], &items);

    overflow |= __builtin_mul_overflow(groups, (uint64_t)d->grid[2], &groups);
    overflow |= __builtin_mul_overflow(groups, items, &all);
    const char *reason = !items || !groups ? "a dimension is 0" : overflow ? "more than 2^64-1 work-items in all" : "the block is too large";
    if (overflow || !items || !groups || items > limit)
        return UMD_FAIL(UMD_ERR_LAUNCH_DIMENSIONS, "kernel=%s grid=%ux%ux%u block=%ux%ux%u work_items=%" PRIu64 " max_grid=%ux%ux%u max_block=%u"
                        " max_work_items=%" PRIu64 " reason=\"%s\"", k->meta.name, d->grid[0], d->grid[1], d->grid[2], d->block[0], d->block[1], d->block[2], items,
                        UINT32_MAX, UINT32_MAX, UINT32_MAX, limit, UINT64_MAX, reason);
    *items_out = (uint32_t)items;
    return UMD_SUCCESS;
}

static umdStatus check_launch(const struct umd_stream *s, const struct umd_kernel *k, const umdLaunchDesc *d)
{
    const struct drm_petrel_info *info = &s->ctx->dev->info;
    uint32_t items = 0, warps;

    if (k->module->ctx != s->ctx)
        return UMD_FAIL(UMD_ERR_HANDLE_CONTEXT, "argument=kernel context=%" PRIu64 " stream_context=%" PRIu64, k->module->ctx->id, s->ctx->id);
    if (s->kind != UMD_STREAM_COMPUTE)
        return UMD_FAIL(UMD_ERR_PARAM_RANGE, "argument=stream kind=copy expected=compute");
    if (d->args_B != k->meta.args_B)
        return UMD_FAIL(UMD_ERR_LAUNCH_ARGUMENTS, "kernel=%s args_B=%u expected_B=%u", k->meta.name, d->args_B, k->meta.args_B);
    if (d->args_B && !d->args)
        return UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=desc.args");
    umdStatus st = check_dimensions(info, k, d, &items);
    if (st < 0)
        return UMD_HOP(st);
    warps = (items + LANES - 1) / LANES;
    uint64_t local_B = (uint64_t)d->local_B + k->meta.local_B;
    if (local_B > info->local_B || warps > info->warps_per_cu)
        return UMD_FAIL(UMD_ERR_LAUNCH_RESOURCES, "kernel=%s local_B=%" PRIu64 " max_local_B=%u warps=%u max_warps=%u", k->meta.name, local_B,
                        info->local_B, warps, info->warps_per_cu);
    uint64_t thread_local_B = petrel_tls_block_B(&k->module->code);
    if (thread_local_B > info->private_B / 2)
        return UMD_FAIL(UMD_ERR_LAUNCH_RESOURCES, "kernel=%s thread_local_B=%" PRIu64 " max_thread_local_B=%u", k->meta.name, thread_local_B,
                        info->private_B / 2);
    return UMD_SUCCESS;
}

static umdStatus submit_locked(struct umd_stream *s, const struct umd_kernel *k, const umdLaunchDesc *d)
{
    struct umd_job job = {
        .kind = "launch", .launch = s->launches + 1, .local_B = d->local_B + k->meta.local_B, .grid = { d->grid[0], d->grid[1], d->grid[2] },
        .block = { d->block[0], d->block[1], d->block[2] },
    };
    struct petrel_dispatch p = {
        .entry_va = k->entry_va, .grid = { d->grid[0], d->grid[1], d->grid[2] }, .block = { d->block[0], d->block[1], d->block[2] },
        .local_B = d->local_B + k->meta.local_B, .code_va = k->code_va, .code_B = k->code_B,
    };
    struct umd_cmd cmd;

    _Static_assert(sizeof(job.name) == sizeof(k->meta.name), "kernel names fit");
    const struct petrel_code *code = k->module->has_code ? &k->module->code : NULL;
    umdStatus st = umd_cmd_begin(s, 1 + sizeof(p) / 4 + (code ? 1 + sizeof(*code) / 4 : 0), d->args_B, &cmd);
    if (__builtin_expect(st < 0, 0))
        return UMD_HOP(st);
    if (d->args_B)
        memcpy(cmd.data, d->args, d->args_B);
    p.args_va = cmd.data_va;
    if (code)
        umd_cmd_packet(&cmd, PETREL_OP_CODE, code, sizeof(*code) / 4);
    umd_cmd_packet(&cmd, PETREL_OP_DISPATCH, &p, sizeof(p) / 4);
    memcpy(job.name, k->meta.name, sizeof(job.name));
    st = umd_cmd_submit(&cmd, &job, NULL);
    if (__builtin_expect(st < 0, 0))
        return UMD_HOP(st);
    s->launches++;
    return UMD_SUCCESS;
}

static umdStatus launch(struct umd_stream *s, struct umd_kernel *k, const umdLaunchDesc *d)
{
    umdStatus st = check_launch(s, k, d);

    if (st < 0)
        return UMD_HOP(st);
    st = umd_stream_check(s);
    if (st < 0)
        return UMD_HOP(st);
    umd_mutex_lock(&s->lock);
    st = submit_locked(s, k, d);
    st = umd_stream_unlock(s, st);
    return st < 0 ? UMD_HOP(st) : UMD_SUCCESS;
}

static umdStatus take_desc(const umdLaunchDesc *given, umdLaunchDesc *d)
{
    char figures[UMD_STRUCT_FIGURES];

    if (!given)
        return UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=desc");
    if (!umd_struct_in(d, sizeof(*d), given, UMD_LAUNCH_DESC_SIZE_V1, figures))
        return UMD_FAIL(UMD_ERR_PARAM_STRUCT_SIZE, "argument=desc %s", figures);
    if (d->flags)
        return UMD_FAIL(UMD_ERR_PARAM_FLAGS, "argument=desc.flags value=0x%x known=0x0", d->flags);
    return UMD_SUCCESS;
}

umdStatus umdLaunchKernel(umdStream stream, umdKernel kernel, const umdLaunchDesc *desc)
{
    struct umd_call call;
    struct umd_object *k;
    struct umd_stream *s = NULL;
    umdLaunchDesc d;

    umdStatus st = UMD_CALL_ENTER(&call, "stream=0x%" PRIx64 " kernel=0x%" PRIx64, stream.id, kernel.id);
    if (st == UMD_SUCCESS)
        st = take_desc(desc, &d);
    if (st < 0)
        return umd_call_leave(&call, st);
    st = umd_stream_get(stream, &s);
    if (st < 0)
        return umd_call_leave(&call, st);
    st = umd_handle_get(kernel.id, UMD_OBJ_KERNEL, &k);
    if (st == UMD_SUCCESS) {
        st = launch(s, (struct umd_kernel *)k, &d);
        umd_object_put(k);
    }
    umd_object_put(&s->obj);
    return umd_call_leave(&call, st);
}
