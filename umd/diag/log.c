/* SPDX-License-Identifier: MIT */
/* log.c - entry points of the log: encode and enqueue; start, end, and fork. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "emergency.h"
#include "log_encode.h"
#include "log_internal.h"
#include "log_ring.h"

UMD_LOG_MODULE("diag.log");

#define ARGS_B 1024u
#define TEXT_B (UMD_LOG_MESSAGE_B + 512u)

/* False: no ring can be had, or it is full; counted where there is a place to count. */
static bool enqueue(struct umd_diag_thread *t, struct umd_log_entry *e, const void *payload, umdLogLevel level)
{
    if (!t->ring)
        t->ring = umd_log_ring_create();
    if (!t->ring)
        return false;
    bool put = umd_log_ring_put(t->ring, e, payload);
    umd_log_wake(umd_log_ring_crowded(t->ring) ? UMD_LOG_ERROR : level);
    return put;
}

static void line_now(const struct umd_diag_thread *t, struct umd_log_line *line)
{
    line->mono_ns = umd_sys()->mono_ns();
    line->real_ns = line->observed_ns = umd_sys()->real_ns();
    line->pid = umd_sys()->pid();
    line->tid = umd_sys()->tid();
    line->depth = t ? t->depth : 0;
    umd_log_write_now(line);
}

void umd_log_emit(const umdLogSite *site, ...)
{
    int saved = errno;
    struct umd_diag_thread *t = umd_diag_thread_get();
    uint8_t args[ARGS_B];
    va_list ap;

    if (umd_diag_inside() || !t)
        return;
    va_start(ap, site);
    size_t n = umd_log_encode(args, sizeof(args), site->fmt, ap);
    va_end(ap);
    bool sync = umd_log_is_sync();
    if (sync || site->level == UMD_LOG_ERROR) {
        char message[UMD_LOG_MESSAGE_B];
        umd_log_decode(message, sizeof(message), site->fmt, args, n);
        if (site->level == UMD_LOG_ERROR)
            umd_emergency_put(&(struct umd_emergency_note){ .module = site->module->name, .func = site->func, .file = site->file,
                                                            .line = site->line, .context_id = t->context_id, .message = message });
        if (sync)
            line_now(t, &(struct umd_log_line){ .level = (umdLogLevel)site->level, .module = site->module->name, .func = site->func,
                                                .file = site->file, .line = site->line, .context_id = t->context_id, .message = message });
    }
    if (!sync)
        enqueue(t, &(struct umd_log_entry){ .kind = UMD_ENTRY_SITE, .payload_B = (uint32_t)n, .tid = umd_sys()->tid(), .depth = t->depth,
                                            .mono_ns = umd_sys()->mono_ns(), .context_id = t->context_id, .site = site,
                                            .level = site->level }, args, (umdLogLevel)site->level);
    errno = saved;
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
    struct umd_diag_thread *t = umd_diag_thread_get();
    char payload[TEXT_B];

    if (umd_diag_inside() || !t)
        return;
    size_t func_at = pack(payload, 0, x->module, 48);
    size_t file_at = pack(payload, func_at, x->func, 64);
    size_t trace_at = pack(payload, file_at, x->file, 64);
    size_t message_at = pack(payload, trace_at, x->trace_id, 128);
    size_t n = pack(payload, message_at, x->message, UMD_LOG_MESSAGE_B - 1);
    clean(payload);
    clean(payload + trace_at);
    clean(payload + message_at);
    if (umd_log_is_sync()) {
        line_now(t, &(struct umd_log_line){
            .level = x->level, .module = payload, .func = payload + func_at, .file = payload + file_at, .line = x->line, .code = x->code,
            .context_id = x->context_id, .record = x->record, .trace_id = x->trace_id ? payload + trace_at : NULL,
            .message = payload + message_at });
    } else {
        enqueue(t, &(struct umd_log_entry){ .kind = UMD_ENTRY_TEXT, .payload_B = (uint32_t)n, .tid = umd_sys()->tid(), .depth = t->depth,
                                            .code = x->code, .mono_ns = umd_sys()->mono_ns(), .context_id = x->context_id,
                                            .record = x->record, .line = x->line, .level = x->level }, payload, x->level);
    }
    errno = saved;
}

void umdLogMessage(umdLogLevel level, const char *module, uint64_t context_id, const char *trace_id, const char *message)
{
    if (!module || !message || level < UMD_LOG_ERROR || level > UMD_LOG_TRACE || level > umd_log_level_max(module))
        return;
    umd_log_text(&(struct umd_log_text){ .level = level, .module = module, .context_id = context_id, .trace_id = trace_id, .message = message });
}

static void prepare(void)
{
    umd_log_levels_atfork(0);
    umd_emergency_atfork(0);
    umd_log_writer_atfork(0); /* a sink may look up a record while it writes */
    umd_record_store_atfork(0);
    umd_log_rules_atfork(0);
    umd_fault_atfork(0);
}

static void after(int stage)
{
    umd_fault_atfork(stage);
    umd_log_rules_atfork(stage);
    umd_record_store_atfork(stage);
    umd_log_writer_atfork(stage);
    umd_emergency_atfork(stage);
    umd_log_levels_atfork(stage);
}

static void parent(void) { after(1); }
static void child(void) { after(2); }

__attribute__((constructor(110))) static void log_init(void)
{
    umd_log_writer_init();
    pthread_atfork(prepare, parent, child);
    umd_log_settings_init();
    umd_emergency_init();
}

__attribute__((destructor(110))) static void log_fini(void)
{
    umd_log_writer_fini();
    umd_emergency_fini();
}
