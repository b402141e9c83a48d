/* SPDX-License-Identifier: MIT */
/* log.c - entry points of the log: encode and enqueue; control by call, by environment, and across fork. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

bool umd_log_expand_path(char *out, size_t size, const char *path)
{
    size_t n = 0;

    for (const char *s = path; *s; s++) {
        char piece[16] = { *s };
        if (*s == '%' && s[1] == 'p') {
            snprintf(piece, sizeof(piece), "%u", umd_sys()->pid());
            s++;
        } else if (*s == '%' && s[1] == '%') {
            s++;
        }
        size_t k = strlen(piece);
        if (n + k >= size)
            return false;
        memcpy(out + n, piece, k);
        n += k;
    }
    out[n] = '\0';
    return true;
}

/* ---- Control ---- */

static umdStatus set_levels(int which, const char *spec)
{
    size_t bad = 0;

    if (!spec)
        return UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=spec");
    umdLogFlush(1000); /* what was logged before goes by the levels before */
    if (!umd_log_levels_set(which, spec, &bad))
        return UMD_FAIL(UMD_ERR_CONFIG_VALUE, "key=levels value=\"%.200s\" position=%zu expected=\"[module=]off|error|warn|info|debug|trace\"",
                        spec, bad);
    return UMD_SUCCESS;
}

umdStatus umdLogSetLevels(const char *spec)
{
    struct umd_api_call call = { 0 };

    umd_api_enter(&call, "umdLogSetLevels", "spec=\"%s\"", spec ? spec : "");
    return umd_api_exit(&call, set_levels(UMD_LEVELS_ALL, spec));
}

umdStatus umdLogSetConsole(const char *spec)
{
    struct umd_api_call call = { 0 };

    umd_api_enter(&call, "umdLogSetConsole", "spec=\"%s\"", spec ? spec : "");
    return umd_api_exit(&call, set_levels(UMD_SINK_CONSOLE, spec));
}

static umdStatus open_file(const char *path, umdLogFormat format, const char *levels)
{
    enum umd_log_sink_id id = format == UMD_LOG_FORMAT_JSON ? UMD_SINK_JSON : UMD_SINK_TEXT;
    char expanded[UMD_LOG_PATH_B];
    size_t bad;

    if (!path)
        return UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=path");
    if (format != UMD_LOG_FORMAT_TEXT && format != UMD_LOG_FORMAT_JSON)
        return UMD_FAIL(UMD_ERR_PARAM_RANGE, "argument=format value=%d max=%d", (int)format, UMD_LOG_FORMAT_JSON);
    if (!umd_log_expand_path(expanded, sizeof(expanded), path))
        return UMD_FAIL(UMD_ERR_RES_FILE, "path=\"%.200s\" reason=\"path too long\"", path);
    if (levels && !umd_log_levels_set(id, levels, &bad))
        return UMD_FAIL(UMD_ERR_CONFIG_VALUE, "key=levels value=\"%.200s\" position=%zu expected=\"[module=]off|error|warn|info|debug|trace\"",
                        levels, bad);
    struct umd_log_sink *s = &umd_log_sinks_lock()[id];
    umd_log_sink_close(s);
    UMD_COPY_STR(s->path, expanded);
    int err = umd_log_sink_open(s);
    s->enabled = err == 0;
    umd_log_sinks_unlock();
    umd_log_levels_enable(id, err == 0);
    if (err)
        return UMD_FAIL(UMD_ERR_RES_FILE, "path=\"%.400s\" errno=%d reason=\"%s\"", expanded, err, strerrordesc_np(err));
    return UMD_SUCCESS;
}

umdStatus umdLogOpenFile(const char *path, umdLogFormat format, const char *levels)
{
    struct umd_api_call call = { 0 };

    umd_api_enter(&call, "umdLogOpenFile", "path=\"%s\" format=%d levels=\"%s\"", path ? path : "", (int)format, levels ? levels : "");
    umdLogFlush(1000);
    return umd_api_exit(&call, open_file(path, format, levels));
}

void umdLogCloseFile(umdLogFormat format)
{
    enum umd_log_sink_id id = format == UMD_LOG_FORMAT_JSON ? UMD_SINK_JSON : UMD_SINK_TEXT;

    umdLogFlush(1000);
    struct umd_log_sink *s = &umd_log_sinks_lock()[id];
    umd_log_sink_close(s);
    s->enabled = false;
    umd_log_sinks_unlock();
    umd_log_levels_enable(id, false);
}

void umdLogSetRotation(uint64_t max_B, uint32_t keep)
{
    struct umd_log_sink *s = umd_log_sinks_lock();

    s[UMD_SINK_TEXT].max_B = s[UMD_SINK_JSON].max_B = max_B;
    s[UMD_SINK_TEXT].keep = s[UMD_SINK_JSON].keep = keep;
    umd_log_sinks_unlock();
}

/* ---- Environment: a bad value degrades, and says so once ---- */

static void warn(const char *key, const char *value, const char *reason)
{
    char message[UMD_LOG_PATH_B];

    snprintf(message, sizeof(message), "setting ignored key=%s value=\"%.400s\" reason=\"%s\"", key, value, reason);
    umd_log_text(&(struct umd_log_text){ .level = UMD_LOG_WARN, .module = "diag.log", .func = "environment", .message = message });
}

static void env_levels(const char *key, int which)
{
    const char *value = getenv(key);
    size_t bad;

    if (value && !umd_log_levels_set(which, value, &bad))
        warn(key, value, "levels are [module=]off|error|warn|info|debug|trace");
}

/* Opened with the first line: a tool that logs nothing leaves no empty file. */
static void env_file(const char *key, enum umd_log_sink_id id)
{
    const char *value = getenv(key);

    if (!value || !*value)
        return;
    struct umd_log_sink *s = &umd_log_sinks_lock()[id];
    bool fits = umd_log_expand_path(s->path, sizeof(s->path), value);
    s->enabled = fits;
    umd_log_sinks_unlock();
    if (!fits)
        warn(key, value, "path too long");
    umd_log_levels_enable(id, fits);
}

static bool env_number(const char *key, uint64_t max, uint64_t *out)
{
    const char *value = getenv(key);
    char *end;

    if (!value || !*value)
        return false;
    errno = 0;
    unsigned long long v = strtoull(value, &end, 10);
    if (errno || *end || *value == '-' || v > max) {
        warn(key, value, "not a number in range");
        return false;
    }
    *out = v;
    return true;
}

static void prepare(void)
{
    umd_log_levels_atfork(0);
    umd_emergency_atfork(0);
    umd_record_store_atfork(0);
    umd_log_writer_atfork(0);
    umd_log_rules_atfork(0);
    umd_fault_atfork(0);
}

static void after(int stage)
{
    umd_fault_atfork(stage);
    umd_log_rules_atfork(stage);
    umd_log_writer_atfork(stage);
    umd_record_store_atfork(stage);
    umd_emergency_atfork(stage);
    umd_log_levels_atfork(stage);
}

static void parent(void) { after(1); }
static void child(void) { after(2); }

__attribute__((constructor(110))) static void log_init(void)
{
    uint64_t max_B = 128u << 20, keep = 5, mib;

    umd_log_writer_init();
    pthread_atfork(prepare, parent, child);
    umd_log_levels_enable(UMD_SINK_CONSOLE, true);
    env_levels("UMD_LOG_LEVEL", UMD_LEVELS_ALL);
    env_levels("UMD_LOG_CONSOLE", UMD_SINK_CONSOLE);
    env_levels("UMD_LOG_FILE_LEVEL", UMD_SINK_TEXT);
    env_levels("UMD_LOG_JSON_LEVEL", UMD_SINK_JSON);
    if (env_number("UMD_LOG_MAX_MIB", 1u << 20, &mib))
        max_B = mib << 20;
    (void)env_number("UMD_LOG_KEEP", 1000, &keep);
    umdLogSetRotation(max_B, (uint32_t)keep);
    env_file("UMD_LOG_FILE", UMD_SINK_TEXT);
    env_file("UMD_LOG_JSON", UMD_SINK_JSON);
    umd_emergency_init();
}

__attribute__((destructor(110))) static void log_fini(void) { umd_log_writer_fini(); }
