/* SPDX-License-Identifier: MIT */
/* log_sinks.c - the table of sinks, fan-out by level, and what the log says about itself. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "emergency.h"
#include "log_config.h"
#include "log_encode.h"
#include "log_sinks.h"

static _Atomic(uint64_t) sink_errors, lines_lost, lines_waiting; /* waiting: in sinks that fail */
static _Atomic(int) sink_errno;

static const struct umd_log_sink_kind kinds[UMD_SINK_COUNT] = {
    [UMD_SINK_CONSOLE] = { .name = "console", .level_key = "UMD_LOG_CONSOLE", .level = UMD_LOG_WARN, .console = true,
                           .format = umd_log_format_console },
    [UMD_SINK_TEXT] = { .name = "text", .path_key = "UMD_LOG_FILE", .level_key = "UMD_LOG_FILE_LEVEL", .level = UMD_LOG_INFO,
                        .format = umd_log_format_text, .begin_file = umd_log_begin_text },
    [UMD_SINK_JSON] = { .name = "json", .path_key = "UMD_LOG_JSON", .level_key = "UMD_LOG_JSON_LEVEL", .level = UMD_LOG_INFO,
                        .format = umd_log_format_json },
    [UMD_SINK_BINARY] = { .name = "binary", .path_key = "UMD_LOG_BINARY", .level_key = "UMD_LOG_BINARY_LEVEL", .level = UMD_LOG_INFO,
                          .format = umd_log_format_binary, .begin_file = umd_log_begin_binary, .seal = umd_log_seal_binary },
    [UMD_SINK_RUN] = { .name = "run", .path_key = "UMD_LOG_RUN", .level_key = "UMD_LOG_RUN_LEVEL", .level = UMD_LOG_INFO, .own_levels = true,
                       .rules = "info,umd.winsys=warn,kmd=warn,hw=warn,diag=warn",
                       .format = umd_log_format_run, .begin_file = umd_log_begin_text },
    [UMD_SINK_DISASTER] = { .name = "disaster", .path_key = "UMD_LOG_DISASTER", .level = UMD_LOG_ERROR, .own_levels = true,
                            .format = umd_log_format_disaster, .begin_file = umd_log_begin_text },
};

static struct umd_log_sink sinks[UMD_SINK_COUNT] = {
    [UMD_SINK_CONSOLE] = { .fd = STDERR_FILENO, .enabled = true },
    [UMD_SINK_TEXT] = { .fd = -1 }, [UMD_SINK_JSON] = { .fd = -1 }, [UMD_SINK_BINARY] = { .fd = -1 },
    [UMD_SINK_RUN] = { .fd = -1 }, [UMD_SINK_DISASTER] = { .fd = -1 },
};

const struct umd_log_sink_kind *umd_log_sink_kind_of(enum umd_log_sink_id id) { return &kinds[id]; }
struct umd_log_sink *umd_log_sink_of(enum umd_log_sink_id id) { return &sinks[id]; }
enum umd_log_sink_id umd_log_sink_id_of(const struct umd_log_sink *s) { return (enum umd_log_sink_id)(s - sinks); }

bool umd_log_sink_facts(uint32_t i, struct umd_log_sink_facts *out)
{
    if (i >= UMD_SINK_COUNT)
        return false;
    const struct umd_log_sink_kind *k = &kinds[i];
    *out = (struct umd_log_sink_facts){ .name = k->name, .path_key = k->path_key, .level_key = k->level_key, .level = k->level,
                                        .own_levels = k->own_levels, .rules = k->rules, .console = k->console };
    return true;
}

void umd_log_count_sink_error(int err)
{
    atomic_fetch_add_explicit(&sink_errors, 1, memory_order_relaxed);
    atomic_store_explicit(&sink_errno, err, memory_order_relaxed);
}

void umd_log_count_lost(uint64_t lines) { atomic_fetch_add_explicit(&lines_lost, lines, memory_order_relaxed); }

void umd_log_sinks_stats(umdLogStats *stats_out)
{
    stats_out->sink_errors = atomic_load(&sink_errors);
    stats_out->lost = atomic_load(&lines_lost) + atomic_load(&lines_waiting);
    stats_out->sink_errno = atomic_load(&sink_errno);
}

/* One line stays one line, and a terminal is not steered: control characters of foreign text become blanks. */
static void clean(char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < ' ' || *s == 0x7f)
            *s = ' ';
}

const char *umd_log_line_message(struct umd_log_line *line)
{
    static char message[UMD_LOG_MESSAGE_B]; /* under the lock */

    if (!line->message) {
        if (!umd_log_decode(message, sizeof(message), line->site->fmt, line->args, line->args_B))
            umd_log_count_sink_error(EBADMSG); /* the line goes out all the same */
        clean(message);
        line->message = message;
    }
    return line->message;
}

/* ---- Fan-out ---- */

#define CACHED_MODULES 64u

/* Levels of modules that come by name: no lock and no rules for one that was seen before. */
static const uint8_t *levels_by_name(const char *module)
{
    static struct { char name[52]; uint32_t epoch; uint8_t level[UMD_SINK_COUNT]; } cache[CACHED_MODULES]; /* under the lock */
    uint32_t hash = 2166136261u, epoch = umd_log_levels_epoch();

    for (const char *c = module; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 16777619u;
    typeof(cache[0]) *at = &cache[hash % CACHED_MODULES];
    if (at->epoch != epoch || strcmp(at->name, module) != 0) {
        UMD_COPY_STR(at->name, module);
        at->epoch = strlen(module) < sizeof(at->name) ? epoch : 0; /* a cut name would stand for others */
        for (int i = 0; i < UMD_SINK_COUNT; i++)
            at->level[i] = (uint8_t)umd_log_level_of((enum umd_log_sink_id)i, module);
    }
    return at->level;
}

static void fan_out(struct umd_log_line *line, const struct umd_log_sink *except)
{
    bool registered = line->site && atomic_load_explicit(&line->site->module->sink_level[0], memory_order_relaxed);
    const uint8_t *by_name = registered ? NULL : levels_by_name(line->module);

    umd_log_drain_assert_held();
    for (int i = 0; i < UMD_SINK_COUNT; i++) {
        if (!sinks[i].enabled || &sinks[i] == except)
            continue;
        int level = by_name ? by_name[i] : atomic_load_explicit(&line->site->module->sink_level[i], memory_order_relaxed) - 1;
        if ((int)line->level <= level)
            umd_log_sink_add(&sinks[i], line);
    }
}

void umd_log_sinks_put(struct umd_log_line *line) { fan_out(line, NULL); }

struct umd_log_line umd_log_own_line(umdLogLevel level, const char *message)
{
    uint64_t real_ns = umd_sys()->real_ns();

    return (struct umd_log_line){
        .level = level, .module = "diag.log", .func = "log", .file = "log_sinks.c", .message = message,
        .mono_ns = umd_sys()->mono_ns(), .real_ns = real_ns, .observed_ns = real_ns, .pid = umd_sys()->pid(), .tid = umd_sys()->tid(),
    };
}

void umd_log_sinks_say(umdLogLevel level, const char *message, const struct umd_log_sink *except)
{
    struct umd_log_line line = umd_log_own_line(level, message);

    fan_out(&line, except);
}

/* Through the other sinks, and where there may be none left: in the emergency ring. */
static void tell_failure(struct umd_log_sink *s)
{
    char message[UMD_LOG_PATH_B + 128];
    enum umd_log_sink_id id = umd_log_sink_id_of(s);

    s->tell = false;
    snprintf(message, sizeof(message), "log sink fails, its records are kept while there is room, then lost sink=%s path=\"%s\" errno=%d reason=\"%s\"",
             kinds[id].name, kinds[id].console ? "stderr" : s->path, s->err, strerrordesc_np(s->err));
    umd_emergency_put(&(struct umd_emergency_note){ .module = "diag.log", .func = "log", .file = "log_sinks.c", .message = message });
    umd_log_sinks_say(UMD_LOG_WARN, message, s);
}

void umd_log_sinks_recount(void)
{
    uint64_t waiting = 0;

    for (int i = 0; i < UMD_SINK_COUNT; i++)
        waiting += sinks[i].enabled && sinks[i].failing ? sinks[i].lines : 0;
    atomic_store_explicit(&lines_waiting, waiting, memory_order_relaxed);
}

static void flush_all(void)
{
    for (int i = 0; i < UMD_SINK_COUNT; i++) {
        if (sinks[i].enabled)
            umd_log_sink_flush(&sinks[i]);
        if (sinks[i].tell)
            tell_failure(&sinks[i]);
    }
    for (int i = 0; i < UMD_SINK_COUNT; i++)
        if (sinks[i].enabled && sinks[i].used && !sinks[i].failing)
            umd_log_sink_flush(&sinks[i]);
    umd_log_sinks_recount();
}

void umd_log_sinks_flush(void)
{
    umd_log_drain_assert_held();
    if (sinks[UMD_SINK_DISASTER].enabled && !atomic_load(&umd_log_writer_flags.there)) /* else the writer tells, later */
        umd_log_disaster_settle(&sinks[UMD_SINK_DISASTER], false);
    flush_all();
}

void umd_log_sinks_finish(void)
{
    umd_log_drain_assert_held();
    if (sinks[UMD_SINK_DISASTER].enabled)
        umd_log_disaster_settle(&sinks[UMD_SINK_DISASTER], true);
    flush_all();
}

void umd_log_sinks_reopen(void)
{
    umd_log_drain_assert_held();
    for (int i = 0; i < UMD_SINK_COUNT; i++)
        if (sinks[i].enabled)
            umd_log_sink_reopen(&sinks[i]);
    flush_all();
}

bool umd_log_sinks_pending(void)
{
    umd_log_drain_assert_held();
    for (int i = 0; i < UMD_SINK_COUNT; i++)
        if (sinks[i].enabled && sinks[i].used)
            return true;
    return sinks[UMD_SINK_DISASTER].enabled && umd_log_disaster_waits();
}

void umd_log_sinks_child(void)
{
    for (int i = 0; i < UMD_SINK_COUNT; i++)
        umd_log_sink_child(&sinks[i]);
    umd_log_disaster_child();
}
