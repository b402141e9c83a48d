/* SPDX-License-Identifier: MIT */
/* log_settings.c - levels, files and rotation of the log, by call and by environment. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log_sinks.h"

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
    umd_log_drain_lock();
    struct umd_log_sink *s = umd_log_sink_of(id);
    umd_log_sink_close(s);
    UMD_COPY_STR(s->path, expanded);
    int err = umd_log_sink_open(s);
    s->enabled = err == 0;
    umd_log_drain_unlock();
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
    umd_log_drain_lock();
    struct umd_log_sink *s = umd_log_sink_of(id);
    umd_log_sink_close(s);
    s->enabled = false;
    umd_log_drain_unlock();
    umd_log_levels_enable(id, false);
}

void umdLogSetRotation(uint64_t max_B, uint32_t keep)
{
    umd_log_drain_lock();
    for (int i = 0; i < UMD_SINK_COUNT; i++) {
        umd_log_sink_of((enum umd_log_sink_id)i)->max_B = max_B;
        umd_log_sink_of((enum umd_log_sink_id)i)->keep = keep;
    }
    umd_log_drain_unlock();
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
    umd_log_drain_lock();
    struct umd_log_sink *s = umd_log_sink_of(id);
    bool fits = umd_log_expand_path(s->path, sizeof(s->path), value);
    s->enabled = fits;
    umd_log_drain_unlock();
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

void umd_log_settings_init(void)
{
    uint64_t max_B = 128u << 20, keep = 5, mib;

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
}
