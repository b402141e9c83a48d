/* SPDX-License-Identifier: MIT */
/* api.c - entry and exit of public calls: call ring, delivery of the open record, check of the code (B13). */
#include <stdio.h>
#include <string.h>

#include "diag_internal.h"
#include "log_encode.h"
#include "stamp.h"
#include "status.h"
#include "struct_size.h"

umdLogModule umd_api_log_module = { .name = "umd.api", .level = UMD_LOG_INFO };
__attribute__((constructor(103))) static void module_init(void) { umd_log_module_register(&umd_api_log_module, NULL, NULL); }
__attribute__((destructor(103))) static void module_fini(void) { umd_log_module_unregister(&umd_api_log_module, NULL); }

static bool traced(const umdLogSite *site)
{
    return site && __builtin_expect(atomic_load_explicit(&umd_api_log_module.level, memory_order_relaxed) >= UMD_LOG_TRACE, 0);
}

void umd_api_begin(struct umd_api_call *call, const struct umd_api_site *site, const uint64_t *args)
{
    struct umd_diag_thread *t = umd_diag_thread_get();

    call->site = site;
    if (!t)
        return;
    struct umd_call_entry *e = &t->calls[t->call_seq % UMD_CALLS];
    e->site = site;
    e->end_stamp = 0;
    if (site->has_strings) {
        e->args_B = (uint32_t)umd_log_encode(e->args, sizeof(e->args), site->args_fmt, args, site->arg_count);
    } else {
        e->args_B = site->arg_count * 8u;
        for (uint32_t i = 0; i < site->arg_count; i++)
            memcpy(e->args + i * 8u, args + i, 8);
    }
    if (t->depth < 16)
        t->call_at[t->depth] = t->call_seq;
    t->call_seq++;
    t->depth++;
    if (t->depth == 1)
        t->last_nested = false;
    if (traced(site->enter))
        umd_log_emit(site->enter, args);
    e->start_stamp = umd_stamp();
}

/* The thread's last error becomes the open record; without one, what came up is told as far as it is known. */
static void deliver(struct umd_diag_thread *t, const char *name, umdStatus st)
{
    struct umd_record_scope *s = umd_record_scope_of(t);

    if (!s->open && umd_record_is_nested(t) && t->last.code == (int32_t)st) { /* a nested call delivered it already, unchanged */
        if (!t->depth)
            umd_record_settle_nested(t);
        return;
    }
    if (!s->open)
        (void)umd_record_raise_bare(&umd_api_log_module, name, "", 0, st);
    if (!s->open)
        return;
    if (s->rec.code != (int32_t)st) /* translated without UMD_HOP_AS: the chain shows it all the same */
        umd_record_add_hop(&s->rec, "umd", name, "", 0, (umdStatus)s->rec.code, st);
    UMD_COPY_STR(s->rec.api, name);
    umd_record_end(s, UMD_RECORD_DELIVERED);
    umd_record_settle_nested(t);
    t->last = s->rec;
    t->have_last = true;
    t->last_nested = t->depth > 0;
    t->last_scope = t->scope;
    t->last_owed = t->last_nested && !s->quiet;
    if (!t->last_nested)
        umd_record_log_delivered(s);
}

static void finish_call(struct umd_diag_thread *t, umdStatus st)
{
    if (t->depth > 16)
        return;
    uint64_t seq = t->call_at[t->depth - 1];
    if (t->call_seq - seq > UMD_CALLS)
        return; /* more than 32 calls inside: its entry is gone */
    t->calls[seq % UMD_CALLS].code = st;
    t->calls[seq % UMD_CALLS].end_stamp = umd_stamp() | 1; /* never 0, which means under way */
}

/* A code that the call's list does not have: what leaves is UMD_ERR_INTERNAL_CODE, with what it was. */
static umdStatus refuse_code(const char *name, umdStatus raw)
{
    static umdLogSite site __attribute__((section("umd_log_sites"), used)) = {
        .module = &umd_api_log_module, .func = "umd_api_exit", .file = __FILE_NAME__, .fmt = "raw=%d name=%s kind=%s call=%s", .line = __LINE__,
        .ceiling = UMD_LOG_CEILING, .kind = UMD_SITE_RAISE, .code = UMD_ERR_INTERNAL_CODE,
    };
    umdLogSite here = site;

    here.func = name;
    here.file = "";
    here.line = 0;
    return umd_record_raise(&here, UMD_ERR_INTERNAL_CODE, umd_record_take_cause(), (int)raw, umdStatusName(raw),
                            umd_status_known(raw) ? "undocumented" : "unknown", name);
}

umdStatus umd_api_exit(struct umd_api_call *call, umdStatus st)
{
    struct umd_diag_thread *t = umd_diag_thread_peek();

    if (__builtin_expect(st != UMD_SUCCESS, 0) && !umd_api_may_return(call->site->name, st))
        st = refuse_code(call->site->name, st);
    if (!t || t->depth == 0)
        return st;
    struct umd_record_scope *s = umd_record_scope_of(t);
    finish_call(t, st);
    t->depth--;
    if (st < 0)
        deliver(t, call->site->name, st);
    else if (s->open && s->rec.call_depth > t->depth)
        umd_record_end(s, UMD_RECORD_SWALLOWED); /* raised in this call, which says that all is well */
    if (__builtin_expect(t->last_owed && !t->depth, 0))
        umd_record_settle_nested(t);
    if (traced(call->site->exit))
        umd_log_emit(call->site->exit, (const uint64_t[]){ UMD_LOG_BITS(umdStatusName(st)) });
    return st;
}

umdStatus umdGetLastErrorDetail(umdErrorDetail *detail)
{
    struct umd_diag_thread *t = umd_diag_thread_peek();

    if (!detail)
        return UMD_ERR_PARAM_NULL;
    if (!umd_struct_fits(sizeof(*detail), detail, UMD_ERROR_DETAIL_SIZE_V1, NULL))
        return UMD_ERR_PARAM_STRUCT_SIZE;
    if (!t || !t->have_last)
        return UMD_STATUS_NOT_READY;
    umd_struct_out(detail, &t->last, sizeof(t->last));
    return UMD_SUCCESS;
}

void umd_call_entry_format(const struct umd_call_entry *e, char *buf, size_t size)
{
    umd_log_decode(buf, size, e->site->args_fmt, e->args, e->args_B);
}

void umd_callring_each(const struct umd_diag_thread *t, void (*fn)(void *arg, uint64_t seq, const struct umd_call_entry *e), void *arg)
{
    for (uint64_t i = 0; i < UMD_CALLS && i < t->call_seq; i++)
        fn(arg, t->call_seq - i, &t->calls[(t->call_seq - 1 - i) % UMD_CALLS]);
}

uint32_t umd_callring_format(char *buf, size_t size)
{
    struct umd_diag_thread *t = umd_diag_thread_peek();
    uint32_t lines = 0;
    size_t at = 0;

    if (size)
        buf[0] = '\0';
    if (!t)
        return 0;
    for (uint64_t i = 0; i < UMD_CALLS && i < t->call_seq; i++) {
        const struct umd_call_entry *e = &t->calls[(t->call_seq - 1 - i) % UMD_CALLS];
        char args[256];
        umd_call_entry_format(e, args, sizeof(args));
        int n = snprintf(buf + at, size - at, "%s(%s) -> %s\n", e->site->name, args,
                         e->end_stamp ? umdStatusName((umdStatus)e->code) : "under way");
        if (n < 0 || (size_t)n >= size - at) {
            if (size)
                buf[at] = '\0'; /* whole lines only */
            break;
        }
        at += (size_t)n;
        lines++;
    }
    return lines;
}
