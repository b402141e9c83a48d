/* SPDX-License-Identifier: MIT */
/* log_settings.c - levels, files and rotation of the log: by call, by environment, by configuration file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "emergency.h"
#include "log_config.h"
#include "log_sinks.h"
#include "log_trace.h"

UMD_LOG_MODULE("diag.log");

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

/* ---- By call ---- */

#define FLUSH_MS 1000u
#define LOCK_MS 5000u   /* a sink that holds the writer up holds a control call up for no longer; a busy host is no reason to fail */
#define LEVELS_EXPECTED "[module=]off|error|warn|info|debug|trace"

static const enum umd_log_sink_id sink_of_format[] = {
    [UMD_LOG_FORMAT_TEXT] = UMD_SINK_TEXT, [UMD_LOG_FORMAT_JSON] = UMD_SINK_JSON, [UMD_LOG_FORMAT_BINARY] = UMD_SINK_BINARY,
    [UMD_LOG_FORMAT_RUN] = UMD_SINK_RUN, [UMD_LOG_FORMAT_DISASTER] = UMD_SINK_DISASTER,
};
#define FORMATS (sizeof(sink_of_format) / sizeof(sink_of_format[0]))

static umdStatus set_levels(int which, const char *spec)
{
    size_t bad = 0;

    if (!spec)
        return UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=spec");
    umdLogFlush(FLUSH_MS); /* what was logged before goes by the levels before */
    if (!umd_log_levels_set(which, spec, UMD_SOURCE_API, &bad))
        return UMD_FAIL(UMD_ERR_CONFIG_VALUE, "key=levels value=\"%.200s\" position=%zu expected=\"" LEVELS_EXPECTED "\"", spec, bad);
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
    char expanded[UMD_LOG_PATH_B];
    size_t bad;

    if (!path)
        return UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=path");
    if ((unsigned)format >= FORMATS)
        return UMD_FAIL(UMD_ERR_PARAM_RANGE, "argument=format value=%d max=%d", (int)format, (int)FORMATS - 1);
    enum umd_log_sink_id id = sink_of_format[format];
    if (!umd_log_expand_path(expanded, sizeof(expanded), path))
        return UMD_FAIL(UMD_ERR_RES_FILE, "path=\"%.200s\" reason=\"path too long\"", path);
    if (levels && !umd_log_levels_check(levels, &bad))
        return UMD_FAIL(UMD_ERR_CONFIG_VALUE, "key=levels value=\"%.200s\" position=%zu expected=\"" LEVELS_EXPECTED "\"", levels, bad);
    if (!umd_log_drain_lock_for(LOCK_MS))
        return UMD_FAIL(UMD_ERR_RES_FILE, "path=\"%.400s\" errno=%d reason=\"a log sink holds the writer up\"", expanded, EAGAIN);
    struct umd_log_sink *s = umd_log_sink_of(id);
    int err = umd_log_sink_replace(s, expanded);
    if (!err) {
        s->source = UMD_SOURCE_API;
        s->enabled = true;
    }
    umd_log_drain_unlock();
    if (err)
        return UMD_FAIL(umd_record_file_code(err), "path=\"%.400s\" errno=%d reason=\"%s\"", expanded, err, strerrordesc_np(err));
    /* Nothing below can fail. */
    if (levels)
        (void)umd_log_levels_set(id, levels, UMD_SOURCE_API, &bad);
    else
        umd_log_levels_forget(id);
    umd_log_levels_enable(id, true);
    return UMD_SUCCESS;
}

umdStatus umdLogOpenFile(const char *path, umdLogFormat format, const char *levels)
{
    struct umd_api_call call = { 0 };

    umd_api_enter(&call, "umdLogOpenFile", "path=\"%s\" format=%d levels=\"%s\"", path ? path : "", (int)format, levels ? levels : "");
    umdLogFlush(FLUSH_MS);
    return umd_api_exit(&call, open_file(path, format, levels));
}

static umdStatus set_file_levels(umdLogFormat format, const char *spec)
{
    if ((unsigned)format >= FORMATS)
        return UMD_FAIL(UMD_ERR_PARAM_RANGE, "argument=format value=%d max=%d", (int)format, (int)FORMATS - 1);
    if (spec && !umd_log_levels_enabled(sink_of_format[format]))
        return UMD_FAIL(UMD_ERR_RES_FILE, "sink=%s errno=%d reason=\"no file of that format is open\"",
                        umd_log_sink_kind_of(sink_of_format[format])->name, EBADF);
    return UMD_HOP(set_levels((int)sink_of_format[format], spec));
}

umdStatus umdLogSetFileLevels(umdLogFormat format, const char *spec)
{
    struct umd_api_call call = { 0 };

    umd_api_enter(&call, "umdLogSetFileLevels", "format=%d spec=\"%s\"", (int)format, spec ? spec : "");
    return umd_api_exit(&call, set_file_levels(format, spec));
}

void umdLogCloseFile(umdLogFormat format)
{
    if ((unsigned)format >= FORMATS)
        return;
    enum umd_log_sink_id id = sink_of_format[format];
    umdLogFlush(FLUSH_MS);
    umd_log_levels_enable(id, false); /* it takes no line any more, even if it cannot be closed now */
    if (!umd_log_drain_lock_for(LOCK_MS))
        return;
    struct umd_log_sink *s = umd_log_sink_of(id);
    if (id == UMD_SINK_DISASTER && s->enabled) {
        umd_log_disaster_settle(s, true);
        umd_log_sink_flush(s);
    }
    umd_log_sink_close(s);
    s->enabled = false;
    umd_log_drain_unlock();
}

void umdLogReopen(void)
{
    umdLogFlush(FLUSH_MS);
    if (!umd_log_drain_lock_for(LOCK_MS))
        return;
    umd_log_sinks_reopen();
    umd_log_drain_unlock();
}

void umdLogSetRotation(uint64_t max_B, uint32_t keep) { umd_log_set_rotation(max_B, keep); }

umdStatus umdLogSetRotationPeriod(umdLogPeriod period)
{
    struct umd_api_call call = { 0 };
    umdStatus st = UMD_SUCCESS;

    umd_api_enter(&call, "umdLogSetRotationPeriod", "period=%d", (int)period);
    if ((unsigned)period > UMD_LOG_PERIOD_DAILY)
        st = UMD_FAIL(UMD_ERR_PARAM_RANGE, "argument=period value=%d max=%d", (int)period, UMD_LOG_PERIOD_DAILY);
    else
        umd_log_set_period(period);
    return umd_api_exit(&call, st);
}

/* ---- By environment and configuration file: a bad value degrades, and says so once ---- */

#define FLUSH_EACH_MS 50u
static _Atomic(uint32_t) flush_ms = FLUSH_EACH_MS;
static bool control_off;

uint32_t umd_log_flush_period_ms(void) { return atomic_load_explicit(&flush_ms, memory_order_relaxed); }
bool umd_log_control_wanted(void) { return !control_off; }

/* Where a value was found, for the warning; or a question about it, which takes nothing and warns of nothing. */
struct found {
    const char *key, *value;
    enum umd_log_source source;
    const char *file;           /* of the configuration */
    unsigned line;
    struct asked { char *reason; size_t size; bool bad; } *asked; /* NULL: none */
};

/* Told when all is set: a warning goes by the levels that were asked for, and to the files. */
#define WARNINGS_MAX 16u
static char *warnings[WARNINGS_MAX];
static uint32_t warning_count;

static void warn(const struct found *f, const char *reason)
{
    char message[1024], where[512] = "";

    if (f->asked) {
        f->asked->bad = true;
        snprintf(f->asked->reason, f->asked->size, "%s", reason);
        return;
    }
    if (f->source == UMD_SOURCE_CONFIG)
        snprintf(where, sizeof(where), " file=\"%.400s\" line=%u", f->file, f->line);
    snprintf(message, sizeof(message), "setting ignored key=%.64s value=\"%.300s\"%s reason=\"%s\"", f->key, f->value, where, reason);
    char *kept = warning_count < WARNINGS_MAX ? umd_diag_alloc(strlen(message) + 1) : NULL;
    if (!kept)
        return;
    memcpy(kept, message, strlen(message));
    warnings[warning_count++] = kept;
}

void umd_log_settings_report(void)
{
    for (uint32_t i = 0; i < warning_count; i++) {
        umd_log_text(&(struct umd_log_text){ .level = UMD_LOG_WARN, .module = "diag.log", .func = "settings", .message = warnings[i] });
        umd_diag_free(warnings[i]);
    }
    warning_count = 0;
}

static bool number(const struct found *f, uint64_t min, uint64_t max, uint64_t *out)
{
    char *end;

    errno = 0;
    unsigned long long v = strtoull(f->value, &end, 10);
    if (errno || end == f->value || *end || *f->value == '-' || v < min || v > max) {
        char reason[96];
        snprintf(reason, sizeof(reason), "not a number from %llu to %llu", (unsigned long long)min, (unsigned long long)max);
        warn(f, reason);
        return false;
    }
    *out = v;
    return true;
}

static void set_all_levels(const struct found *f, int which)
{
    size_t bad;
    char reason[128];

    if (f->asked ? umd_log_levels_check(f->value, &bad) : umd_log_levels_set(which, f->value, f->source, &bad))
        return;
    snprintf(reason, sizeof(reason), "position %zu is no " LEVELS_EXPECTED, bad);
    warn(f, reason);
}

/* Opened with the first line: a tool that logs nothing leaves no empty file. Empty: none. */
static void set_file(const struct found *f, int id)
{
    char path[UMD_LOG_PATH_B];

    if (!umd_log_expand_path(path, sizeof(path), f->value)) {
        warn(f, "path too long");
        return;
    }
    if (f->asked)
        return;
    umd_log_drain_lock();
    struct umd_log_sink *s = umd_log_sink_of((enum umd_log_sink_id)id);
    UMD_COPY_STR(s->path, path);
    s->enabled = path[0] != '\0';
    s->source = f->source;
    umd_log_drain_unlock();
    umd_log_levels_enable((enum umd_log_sink_id)id, path[0] != '\0');
}

#define MAX_B (128u << 20)
#define KEEP 5u
static uint64_t set_max_B = MAX_B, set_keep = KEEP;

/* An empty value undoes what was set before it. */
static bool undone(const struct found *f) { return !*f->value; }

static void set_max(const struct found *f, int unused)
{
    uint64_t mib = MAX_B >> 20;

    (void)unused;
    if ((!undone(f) && !number(f, 0, 1u << 20, &mib)) || f->asked)
        return;
    set_max_B = mib << 20;
    umd_log_set_rotation(set_max_B, (uint32_t)set_keep);
}

static void set_kept(const struct found *f, int unused)
{
    uint64_t keep = KEEP;

    (void)unused;
    if ((!undone(f) && !number(f, 0, UMD_LOG_KEEP_MAX, &keep)) || f->asked)
        return;
    set_keep = keep;
    umd_log_set_rotation(set_max_B, (uint32_t)set_keep);
}

static void set_period(const struct found *f, int unused)
{
    static const char *const words[] = { [UMD_LOG_PERIOD_OFF] = "off", [UMD_LOG_PERIOD_HOURLY] = "hourly", [UMD_LOG_PERIOD_DAILY] = "daily" };

    (void)unused;
    for (int i = 0; i <= UMD_LOG_PERIOD_DAILY; i++) {
        if (strcasecmp(undone(f) ? words[UMD_LOG_PERIOD_DAILY] : f->value, words[i]) == 0) {
            if (!f->asked)
                umd_log_set_period((umdLogPeriod)i);
            return;
        }
    }
    warn(f, "daily, hourly or off");
}

static void set_flush(const struct found *f, int unused)
{
    uint64_t ms = FLUSH_EACH_MS;

    (void)unused;
    if ((undone(f) || number(f, 1, 60000, &ms)) && !f->asked)
        atomic_store(&flush_ms, (uint32_t)ms);
}

static void set_control(const struct found *f, int unused)
{
    const bool off = strcasecmp(f->value, "off") == 0;

    (void)unused;
    if (!undone(f) && !off && strcasecmp(f->value, "on") != 0)
        warn(f, "on or off");
    else if (!f->asked)
        control_off = off;
}

static void set_emergency(const struct found *f, int unused)
{
    (void)unused;
    if (f->asked ? !umd_emergency_is_mode(f->value) : !umd_emergency_set_mode(f->value))
        warn(f, "off or file");
}

static void set_emergency_file(const struct found *f, int unused)
{
    (void)unused;
    if (f->asked ? strlen(f->value) >= UMD_EMERGENCY_PATH : !umd_emergency_set_file(f->value))
        warn(f, "path too long");
}

static void set_trace(const struct found *f, int unused)
{
    char trace_id[33], span_id[17], flags[3];

    (void)unused;
    if (f->asked ? !umd_log_trace_parse(f->value, trace_id, span_id, flags) : !umd_log_trace_init(f->value))
        warn(f, "no W3C trace context: 00-<32 hex>-<16 hex>-<2 hex>");
}

/* Every setting there is; docs/logging.md lists the same, and a test compares. Levels first: what follows may warn. */
static const struct setting {
    const char *key;
    void (*set)(const struct found *f, int arg);
    int arg;
    bool environment_only;      /* and an empty one is none; of all others it undoes the file's */
} settings[] = {
    { "UMD_LOG_LEVEL", set_all_levels, UMD_LEVELS_ALL, false },
    { "UMD_LOG_CONSOLE", set_all_levels, UMD_SINK_CONSOLE, false },
    { "UMD_LOG_FILE_LEVEL", set_all_levels, UMD_SINK_TEXT, false },
    { "UMD_LOG_JSON_LEVEL", set_all_levels, UMD_SINK_JSON, false },
    { "UMD_LOG_BINARY_LEVEL", set_all_levels, UMD_SINK_BINARY, false },
    { "UMD_LOG_RUN_LEVEL", set_all_levels, UMD_SINK_RUN, false },
    { "UMD_LOG_MAX_MIB", set_max, 0, false },
    { "UMD_LOG_KEEP", set_kept, 0, false },
    { "UMD_LOG_ROTATE", set_period, 0, false },
    { "UMD_LOG_FLUSH_MS", set_flush, 0, false },
    { "UMD_CONTROL", set_control, 0, false },
    { "UMD_EMERGENCY", set_emergency, 0, false },
    { "UMD_EMERGENCY_FILE", set_emergency_file, 0, false },
    { "TRACEPARENT", set_trace, 0, true },
    { "UMD_LOG_FILE", set_file, UMD_SINK_TEXT, false },
    { "UMD_LOG_JSON", set_file, UMD_SINK_JSON, false },
    { "UMD_LOG_BINARY", set_file, UMD_SINK_BINARY, false },
    { "UMD_LOG_RUN", set_file, UMD_SINK_RUN, false },
    { "UMD_LOG_DISASTER", set_file, UMD_SINK_DISASTER, false },
};

#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

const char *umd_log_setting_at(uint32_t i) { return i < SETTINGS ? settings[i].key : NULL; }

static const struct setting *setting_of(const char *key, bool of_file)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        if (strcmp(settings[i].key, key) == 0 && !(of_file && settings[i].environment_only))
            return &settings[i];
    }
    return NULL;
}

bool umd_log_setting_check(const char *key, const char *value, bool of_file, char *reason, size_t size)
{
    const struct setting *s = setting_of(key, of_file);
    struct asked asked = { .reason = reason, .size = size };
    struct found f = { .key = key, .value = value, .asked = &asked };

    if (!s)
        warn(&f, "no such setting");
    else if (*value || !s->environment_only)
        s->set(&f, s->arg);
    return !asked.bad;
}

static void from_file(void *arg, const struct umd_log_config_entry *e)
{
    struct found f = { .key = e->key, .value = e->value, .source = UMD_SOURCE_CONFIG, .file = e->file, .line = e->line };
    const struct setting *s = setting_of(e->key, true);

    (void)arg;
    if (strcmp(e->section, "log") != 0) /* for others */
        return;
    if (e->problem)
        warn(&f, e->problem);
    else if (s)
        s->set(&f, s->arg);
    else
        warn(&f, "no such setting");
}

bool umd_log_settings_off;

void umd_log_settings_init(void)
{
    umd_log_levels_enable(UMD_SINK_CONSOLE, true);
    if (umd_log_settings_off)
        return;
    umd_log_config_read(from_file, NULL);
    for (size_t i = 0; i < SETTINGS; i++) {
        const char *value = secure_getenv(settings[i].key);
        struct found f = { .key = settings[i].key, .value = value, .source = UMD_SOURCE_ENVIRONMENT };
        if (value && (*value || !settings[i].environment_only))
            settings[i].set(&f, settings[i].arg);
    }
}
