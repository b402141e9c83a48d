/* SPDX-License-Identifier: MIT */
/* log_fold.c - errors that found their thread's ring full: the first of each call site is kept, the others are counted. */
#include "log_fold.h"

#define SLOTS 64u
#define PROBES 8u

/* state: the call site's hash in the upper half, how many in the lower: one word, so that no count is lost as a slot changes hands. */
static struct slot {
    _Atomic(uint64_t) state;
    _Atomic(bool) ready;        /* the first has been written down */
    struct umd_log_folded first;
} slots[SLOTS];
static _Atomic(uint32_t) waiting;

static uint32_t hash(const char *file, uint32_t line)
{
    uint32_t h = 2166136261u; /* FNV-1a */

    for (const char *s = file ? file : ""; *s; s++)
        h = (h ^ (unsigned char)*s) * 16777619u;
    h = (h ^ line) * 16777619u;
    return h ? h : 1;
}

static void write_down(struct slot *s, const struct umd_log_text *text, uint64_t stamp, uint32_t tid, uint32_t depth, const struct umd_log_trace_ids *trace)
{
    s->first.stamp = stamp;
    s->first.context_id = text->context_id;
    s->first.record = text->record;
    s->first.line = text->line;
    s->first.tid = tid;
    s->first.depth = depth;
    s->first.code = text->code;
    s->first.trace = text->trace_id ? (struct umd_log_trace_ids){ 0 } : *trace;
    if (text->trace_id)
        UMD_COPY_STR(s->first.trace.trace_id, text->trace_id);
    UMD_COPY_STR(s->first.module, text->module);
    UMD_COPY_STR(s->first.func, text->func);
    UMD_COPY_STR(s->first.file, text->file);
    UMD_COPY_STR(s->first.message, text->message);
    atomic_store_explicit(&s->ready, true, memory_order_release);
    atomic_fetch_add_explicit(&waiting, 1, memory_order_release);
}

void umd_log_fold_put(const struct umd_log_text *text, uint64_t stamp, uint32_t tid, uint32_t depth, const struct umd_log_trace_ids *trace)
{
    uint32_t key = hash(text->file, text->line);

    for (uint32_t i = 0; i < PROBES; i++) {
        struct slot *s = &slots[(key + i) % SLOTS];
        uint64_t state = atomic_load_explicit(&s->state, memory_order_acquire);
        while (state == 0 || state >> 32 == key) {
            uint64_t next = (uint64_t)key << 32 | ((state & UINT32_MAX) + 1);
            if (!atomic_compare_exchange_weak_explicit(&s->state, &state, next, memory_order_acq_rel, memory_order_acquire))
                continue;
            if (state == 0)
                write_down(s, text, stamp, tid, depth, trace);
            return;
        }
    }
    /* Of more call sites than there is room for: counted as dropped, and in the emergency ring. */
}

bool umd_log_fold_take(struct umd_log_folded *out)
{
    if (!atomic_load_explicit(&waiting, memory_order_acquire))
        return false;
    for (uint32_t i = 0; i < SLOTS; i++) {
        struct slot *s = &slots[i];
        if (!atomic_load_explicit(&s->ready, memory_order_acquire))
            continue;
        *out = s->first;
        atomic_fetch_sub_explicit(&waiting, 1, memory_order_relaxed);
        atomic_store_explicit(&s->ready, false, memory_order_relaxed);
        out->count = (uint32_t)atomic_exchange_explicit(&s->state, 0, memory_order_acq_rel);
        return true;
    }
    return false;
}
