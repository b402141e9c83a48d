/* SPDX-License-Identifier: MIT */
/* log_emit.c - the hot path of the log: a call's arguments into the thread's ring; and what happens where that cannot be. */
#include <errno.h>
#include <string.h>

#include "emergency.h"
#include "log_encode.h"
#include "log_fold.h"
#include "log_internal.h"
#include "log_ring.h"
#include "stamp.h"

#define ARGS_B 1024u
#define TEXT_B (UMD_LOG_MESSAGE_B + 512u)

/* A piece of an entry's payload. */
struct piece {
    const void *bytes;
    size_t size_B;
};

static void fill(struct umd_log_entry *e, const struct umd_diag_thread *t, uint32_t size_B, uint32_t site_id, uint64_t context_id,
                 struct piece a, struct piece b)
{
    *e = (struct umd_log_entry){ .size_B = size_B, .site_id = site_id, .stamp = umd_stamp(), .context_id = context_id, .depth = t->depth,
                                 .payload_B = (uint32_t)(a.size_B + b.size_B) };
    memcpy(e + 1, a.bytes, a.size_B);
    memcpy((uint8_t *)(e + 1) + a.size_B, b.bytes, b.size_B);
}

/*
 * Into the thread's ring, made on first use. False: no room, or a signal handler that has interrupted this very thing; counted. From the first
 * look at the ring to its new head the thread is busy: a handler that came in between would take the same place.
 */
static bool put(struct umd_diag_thread *t, uint32_t site_id, uint64_t context_id, struct piece a, struct piece b, bool urgent)
{
    uint32_t size_B = (uint32_t)((sizeof(struct umd_log_entry) + a.size_B + b.size_B + 7) & ~(size_t)7);
    struct umd_log_entry *e = NULL;

    if (!t->busy) {
        t->busy = 1;
        atomic_signal_fence(memory_order_seq_cst);
        if (!t->ring)
            t->ring = umd_log_ring_create();
        e = t->ring ? umd_log_ring_reserve(t->ring, size_B) : NULL;
        if (e) {
            fill(e, t, size_B, site_id, context_id, a, b);
            umd_log_ring_commit(t->ring, size_B);
            urgent = urgent || t->ring->crowded;
        }
        atomic_signal_fence(memory_order_seq_cst);
        t->busy = 0;
    }
    if (!e)
        umd_log_count_dropped();
    umd_log_wake(urgent || !e);
    return e != NULL;
}

static void line_now(const struct umd_diag_thread *t, struct umd_log_line *line)
{
    line->mono_ns = umd_sys()->mono_ns();
    line->real_ns = line->observed_ns = umd_sys()->real_ns();
    line->pid = umd_sys()->pid();
    line->tid = umd_sys()->tid();
    line->depth = t->depth;
    umd_log_write_now(line);
}

/* An error whose entry found no room is not lost: see log_fold.h. */
static void overflow(const struct umd_diag_thread *t, const struct umd_log_text *text)
{
    if (text->level == UMD_LOG_ERROR)
        umd_log_fold_put(text, umd_stamp(), t->ring ? t->ring->tid : umd_diag_host_tid(), t->depth);
}

/* All but the usual: an error, text among the arguments, the first line of a thread, no writer. */
static __attribute__((noinline)) void emit_slow(const umdLogSite *site, const uint64_t *args)
{
    int saved = errno;
    struct umd_diag_thread *t = umd_diag_inside() ? NULL : umd_diag_thread_get();
    uint8_t encoded[ARGS_B];
    char message[UMD_LOG_MESSAGE_B] = "";

    if (!t)
        return;
    size_t n = umd_log_encode(encoded, sizeof(encoded), site->fmt, args, site->arg_count);
    bool sync = !t->busy && umd_log_is_sync(), error = site->level == UMD_LOG_ERROR;
    if (sync || error || !site->id)
        umd_log_decode(message, sizeof(message), site->fmt, encoded, n);
    if (error)
        umd_emergency_put(&(struct umd_emergency_note){ .module = site->module->name, .func = site->func, .file = site->file,
                                                        .line = site->line, .context_id = t->context_id, .message = message });
    if (!site->id) { /* of a library whose sites have no number */
        umd_log_text(&(struct umd_log_text){ .level = (umdLogLevel)site->level, .module = site->module->name, .func = site->func,
                                             .file = site->file, .line = site->line, .context_id = t->context_id, .message = message });
    } else if (sync) {
        line_now(t, &(struct umd_log_line){ .level = (umdLogLevel)site->level, .module = site->module->name, .func = site->func,
                                            .file = site->file, .line = site->line, .context_id = t->context_id, .message = message });
    } else if (!put(t, site->id, t->context_id, (struct piece){ encoded, n }, (struct piece){ "", 0 },
                    site->level <= UMD_LOG_WARN)) {
        overflow(t, &(struct umd_log_text){ .level = (umdLogLevel)site->level, .module = site->module->name, .func = site->func,
                                            .file = site->file, .line = site->line, .context_id = t->context_id, .message = message });
    }
    errno = saved;
}

void umd_log_emit(const umdLogSite *site, const uint64_t *args)
{
    struct umd_diag_thread *t = umd_diag_self;
    uint32_t size_B = (uint32_t)sizeof(struct umd_log_entry) + 8u * site->arg_count;

    if (__builtin_expect(!t || !t->ring || t->busy || site->has_strings || site->level == UMD_LOG_ERROR || !site->id ||
                         !atomic_load_explicit(&umd_log_has_writer, memory_order_relaxed) || umd_diag_inside_count, 0)) {
        emit_slow(site, args);
        return;
    }
    struct umd_log_ring *ring = t->ring;
    t->busy = 1;
    atomic_signal_fence(memory_order_seq_cst);
    struct umd_log_entry *e = umd_log_ring_reserve(ring, size_B);
    if (__builtin_expect(!e, 0)) {
        umd_log_count_dropped();
        t->busy = 0;
        umd_log_wake(true);
        return;
    }
    e->size_B = size_B;
    e->site_id = site->id;
    e->stamp = umd_stamp();
    e->context_id = t->context_id;
    e->depth = t->depth;
    e->payload_B = size_B - (uint32_t)sizeof(*e);
    uint64_t *to = (uint64_t *)(e + 1);
    for (uint32_t i = 0; i < site->arg_count; i++)
        to[i] = args[i];
    umd_log_ring_commit(ring, size_B);
    atomic_signal_fence(memory_order_seq_cst);
    t->busy = 0;
    if (__builtin_expect(!atomic_load_explicit(&umd_log_writer_awake, memory_order_relaxed) || site->level <= UMD_LOG_WARN || ring->crowded, 0))
        umd_log_wake(site->level <= UMD_LOG_WARN || ring->crowded);
}

static size_t pack(char *buf, size_t used, const char *s, size_t max)
{
    size_t n = s ? strnlen(s, max) : 0;

    memcpy(buf + used, s ? s : "", n);
    buf[used + n] = '\0';
    return used + n + 1;
}

/* One line stays one line: control characters of foreign text become blanks. */
static void clean(char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < ' ' || *s == 0x7f)
            *s = ' ';
}

void umd_log_text(const struct umd_log_text *x)
{
    int saved = errno;
    struct umd_diag_thread *t = umd_diag_inside() ? NULL : umd_diag_thread_get();
    char payload[TEXT_B];

    if (!t)
        return;
    size_t func_at = pack(payload, 0, x->module, 48);
    size_t file_at = pack(payload, func_at, x->func, 64);
    size_t trace_at = pack(payload, file_at, x->file, 64);
    size_t message_at = pack(payload, trace_at, x->trace_id, 128);
    size_t n = pack(payload, message_at, x->message, UMD_LOG_MESSAGE_B - 1);
    clean(payload);
    clean(payload + trace_at);
    clean(payload + message_at);
    if (!t->busy && umd_log_is_sync()) {
        line_now(t, &(struct umd_log_line){
            .level = x->level, .module = payload, .func = payload + func_at, .file = payload + file_at, .line = x->line, .code = x->code,
            .context_id = x->context_id, .record = x->record, .trace_id = x->trace_id ? payload + trace_at : NULL,
            .message = payload + message_at });
    } else {
        const struct umd_log_entry_text text = { .record = x->record, .code = x->code, .line = x->line, .level = x->level };
        if (!put(t, UMD_ENTRY_TEXT, x->context_id, (struct piece){ &text, sizeof(text) }, (struct piece){ payload, n }, x->level <= UMD_LOG_WARN))
            overflow(t, x);
    }
    errno = saved;
}
