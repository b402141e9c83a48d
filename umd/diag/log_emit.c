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

static bool put_busy(struct umd_diag_thread *t, uint32_t site_id, struct piece a, struct piece b)
{
    const uint64_t stamp = UMD_ENTRY_STAMP(umd_stamp());
    uint32_t size_B;

    if (!t->ring)
        t->ring = umd_log_ring_create();
    if (!t->ring || !umd_log_ring_settle(t->ring, stamp, t->context_id, &t->trace))
        return false;
    uint8_t *to = umd_log_ring_reserve_long(t->ring, site_id, t->depth, stamp, (uint32_t)(a.size_B + b.size_B), &size_B);
    if (!to)
        return false;
    t->unsettled = false;
    memcpy(to, a.bytes, a.size_B);
    memcpy(to + a.size_B, b.bytes, b.size_B);
    umd_log_ring_commit(t->ring, size_B);
    return true;
}

/*
 * Into the thread's ring, made on first use. False: no room, or a signal handler that has interrupted this very thing; counted. From the first
 * look at the ring to its new head the thread is busy: a handler that came in between would take the same place.
 */
static bool put(struct umd_diag_thread *t, uint32_t site_id, struct piece a, struct piece b, bool urgent)
{
    bool done = false;

    if (!t->busy) {
        t->busy = 1;
        atomic_signal_fence(memory_order_seq_cst);
        done = put_busy(t, site_id, a, b);
        urgent = urgent || (done && t->ring->crowded);
        atomic_signal_fence(memory_order_seq_cst);
        t->busy = 0;
    }
    if (!done)
        umd_log_count_dropped();
    umd_log_wake(urgent || !done);
    return done;
}

/* Stepped mode writes each line at once: into the ring it goes as one that was taken, for a crash to find it. One thread, which is both sides. */
static void keep(struct umd_diag_thread *t, uint32_t site_id, struct piece a, struct piece b)
{
    if (!umd_sys_stepped() || t->busy)
        return;
    t->busy = 1;
    atomic_signal_fence(memory_order_seq_cst);
    if (put_busy(t, site_id, a, b))
        for (umd_log_ring_look(t->ring); t->ring->has_front;)
            umd_log_ring_take(t->ring);
    atomic_signal_fence(memory_order_seq_cst);
    t->busy = 0;
}

static void line_now(const struct umd_diag_thread *t, struct umd_log_line *line)
{
    line->mono_ns = umd_sys()->mono_ns();
    line->real_ns = line->observed_ns = umd_sys()->real_ns();
    line->pid = umd_sys()->pid();
    line->tid = umd_sys()->tid();
    line->depth = t->depth;
    if (!line->trace_id && t->trace.trace_id[0]) {
        line->trace_id = t->trace.trace_id;
        line->span_id = t->trace.span_id;
        line->trace_flags = t->trace.flags;
    }
    umd_log_write_now(line);
}

/* An error whose entry found no room is not lost: see log_fold.h. */
static void overflow(const struct umd_diag_thread *t, uint32_t site_id, const struct umd_log_text *text)
{
    if (text->level == UMD_LOG_ERROR)
        umd_log_fold_put(site_id, text, umd_stamp(), t->ring ? t->ring->tid : umd_diag_host_tid(), t->depth, &t->trace);
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
    if (error) {
        umd_emergency_put(&(struct umd_emergency_note){ .module = site->module->name, .func = site->func, .file = site->file,
                                                        .line = site->line, .context_id = t->context_id, .message = message });
        umd_emergency_tell();
    }
    if (!site->id) { /* of a library whose sites have no number */
        umd_log_text(&(struct umd_log_text){ .level = (umdLogLevel)site->level, .module = site->module->name, .func = site->func,
                                             .file = site->file, .line = site->line, .context_id = t->context_id, .message = message });
    } else if (sync) {
        keep(t, site->id, (struct piece){ encoded, n }, (struct piece){ "", 0 });
        line_now(t, &(struct umd_log_line){ .level = (umdLogLevel)site->level, .module = site->module->name, .func = site->func,
                                            .file = site->file, .line = site->line, .context_id = t->context_id, .message = message });
    } else if (!put(t, site->id, (struct piece){ encoded, n }, (struct piece){ "", 0 }, site->level <= UMD_LOG_WARN)) {
        overflow(t, site->id, &(struct umd_log_text){ .level = (umdLogLevel)site->level, .module = site->module->name, .func = site->func,
                                                      .file = site->file, .line = site->line, .context_id = t->context_id, .message = message });
    }
    errno = saved;
}

void umd_log_emit(const umdLogSite *site, const uint64_t *args)
{
    struct umd_diag_thread *t = umd_diag_self;

    if (__builtin_expect(!t || !t->ring || t->busy || site->has_strings || site->level == UMD_LOG_ERROR || !site->id ||
                         !atomic_load_explicit(&umd_log_writer_flags.there, memory_order_relaxed) || umd_diag_inside_count, 0)) {
        emit_slow(site, args);
        return;
    }
    const uint32_t count = site->arg_count, size_B = 8 + 8 * count;
    const uint64_t stamp = UMD_ENTRY_STAMP(umd_stamp());
    struct umd_log_ring *ring = t->ring;
    uint64_t *to = NULL;
    t->busy = 1;
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(t->unsettled || UMD_ENTRY_LATE(stamp - ring->stamp), 0))
        t->unsettled = !umd_log_ring_settle(ring, stamp, t->context_id, &t->trace);
    if (__builtin_expect(!t->unsettled, 1))
        to = umd_log_ring_reserve(ring, size_B);
    if (__builtin_expect(!to, 0)) {
        umd_log_count_dropped();
        t->busy = 0;
        umd_log_wake(true);
        return;
    }
    umd_log_ring_fetch_ahead(to);
    to[0] = umd_log_ring_word(ring, site->id, count + 1, t->depth, stamp);
    for (uint32_t i = 0; i < count; i++)
        to[i + 1] = args[i];
    umd_log_ring_commit(ring, size_B);
    atomic_signal_fence(memory_order_seq_cst);
    t->busy = 0;
    if (__builtin_expect(!atomic_load_explicit(&umd_log_writer_flags.awake, memory_order_relaxed) || site->level <= UMD_LOG_WARN || ring->crowded, 0))
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
    const struct umd_log_entry_text text = { .context_id = x->context_id, .record = x->record, .code = x->code, .line = x->line, .level = x->level };
    if (!t->busy && umd_log_is_sync()) {
        keep(t, UMD_ENTRY_TEXT, (struct piece){ &text, sizeof(text) }, (struct piece){ payload, n });
        line_now(t, &(struct umd_log_line){
            .level = x->level, .module = payload, .func = payload + func_at, .file = payload + file_at, .line = x->line, .code = x->code,
            .context_id = x->context_id, .record = x->record, .trace_id = x->trace_id ? payload + trace_at : NULL,
            .message = payload + message_at });
    } else if (!put(t, UMD_ENTRY_TEXT, (struct piece){ &text, sizeof(text) }, (struct piece){ payload, n }, x->level <= UMD_LOG_WARN)) {
        overflow(t, 0, x);
    }
    errno = saved;
}
