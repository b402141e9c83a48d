/* SPDX-License-Identifier: MIT */
/* log_fold.c - errors that found their thread's ring full: the first of each call site is kept, the others are counted. */
#include "log_fold.h"

#include <string.h>

#define SLOTS UMD_FOLD_SLOTS
#define COUNT_BITS 24u
#define COUNT_MAX ((1u << COUNT_BITS) - 1)
#define TEXT_KEY (1ull << 39)   /* a key that is no call site's number */

/* The call site's key, and below it how many: one word, so that no count is lost as a slot changes hands. 0: free. */
static _Atomic(uint64_t) states[SLOTS];
static _Atomic(bool) ready[SLOTS];  /* the first has been written down */
static struct umd_log_folded firsts[SLOTS];
static _Atomic(uint32_t) waiting;

static uint64_t hash(uint64_t h, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const uint8_t *)bytes)[i]) * 1099511628211u; /* FNV-1a */
    return h;
}

static uint64_t hash_text(uint64_t h, const char *s) { return s ? hash(h, s, strlen(s) + 1) : hash(h, "", 1); }

/* A static call site has its number; what comes as text (a record, a framework's message) is told apart by all that says where it is from. */
static uint64_t key_of(uint32_t site_id, const struct umd_log_text *text)
{
    uint64_t h = 14695981039346656037u;

    if (site_id)
        return site_id;
    h = hash_text(h, text->module);
    h = hash_text(h, text->func);
    h = hash_text(h, text->file);
    h = hash(h, &text->line, sizeof(text->line));
    h = hash(h, &text->code, sizeof(text->code));
    return TEXT_KEY | ((h ^ h >> 39) & (TEXT_KEY - 1));
}

static void write_down(uint32_t at, const struct umd_log_text *text, uint64_t stamp, uint32_t tid, uint32_t depth, const struct umd_log_trace_ids *trace)
{
    struct umd_log_folded *to = &firsts[at];

    to->stamp = stamp;
    to->context_id = text->context_id;
    to->record = text->record;
    to->line = text->line;
    to->tid = tid;
    to->depth = depth;
    to->code = text->code;
    to->trace = text->trace_id ? (struct umd_log_trace_ids){ 0 } : *trace;
    if (text->trace_id)
        UMD_COPY_STR(to->trace.trace_id, text->trace_id);
    UMD_COPY_STR(to->module, text->module);
    UMD_COPY_STR(to->func, text->func);
    UMD_COPY_STR(to->file, text->file);
    UMD_COPY_STR(to->message, text->message);
    atomic_store_explicit(&ready[at], true, memory_order_release);
    atomic_fetch_add_explicit(&waiting, 1, memory_order_release);
}

void umd_log_fold_put(uint32_t site_id, const struct umd_log_text *text, uint64_t stamp, uint32_t tid, uint32_t depth,
                      const struct umd_log_trace_ids *trace)
{
    const uint64_t key = key_of(site_id, text);

    for (uint32_t i = 0; i < SLOTS; i++) {
        uint32_t at = (uint32_t)((key ^ key >> 20) + i) % SLOTS;
        uint64_t state = atomic_load_explicit(&states[at], memory_order_acquire);
        while (state == 0 || state >> COUNT_BITS == key) {
            uint64_t next = (state & COUNT_MAX) == COUNT_MAX ? state : key << COUNT_BITS | ((state & COUNT_MAX) + 1);
            if (!atomic_compare_exchange_weak_explicit(&states[at], &state, next, memory_order_acq_rel, memory_order_acquire))
                continue;
            if (state == 0)
                write_down(at, text, stamp, tid, depth, trace);
            return;
        }
    }
    /* Of more call sites than there is room for: counted as dropped, and in the emergency ring. */
}

bool umd_log_fold_take(struct umd_log_folded *out)
{
    static uint32_t next;       /* the writer's; where it was last */

    if (!atomic_load_explicit(&waiting, memory_order_acquire))
        return false;
    for (uint32_t i = 0; i < SLOTS; i++) {
        uint32_t at = (next + i) % SLOTS;
        if (!atomic_load_explicit(&ready[at], memory_order_acquire))
            continue;
        *out = firsts[at];
        next = at + 1;
        atomic_fetch_sub_explicit(&waiting, 1, memory_order_relaxed);
        atomic_store_explicit(&ready[at], false, memory_order_relaxed);
        out->count = (uint32_t)(atomic_exchange_explicit(&states[at], 0, memory_order_acq_rel) & COUNT_MAX);
        return true;
    }
    return false;
}

void umd_log_fold_child(void)
{
    for (uint32_t at = 0; at < SLOTS; at++) {
        if (!atomic_load_explicit(&states[at], memory_order_relaxed))
            continue;
        atomic_store(&ready[at], false);
        atomic_store(&states[at], 0);
    }
    atomic_store(&waiting, 0);
}
