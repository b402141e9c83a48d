/* SPDX-License-Identifier: MIT */
/* log_sinks.c - the table of sinks, fan-out by level, and what the log says about itself. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log_encode.h"
#include "log_sinks.h"

static _Atomic(uint64_t) sink_errors, lines_lost;
static _Atomic(int) sink_errno;

static struct umd_log_sink sinks[UMD_SINK_COUNT] = {
    [UMD_SINK_CONSOLE] = { .format = umd_log_format_console, .is_console = true, .fd = STDERR_FILENO, .enabled = true },
    [UMD_SINK_TEXT] = { .format = umd_log_format_text, .with_header = true, .fd = -1, .max_B = 128u << 20, .keep = 5 },
    [UMD_SINK_JSON] = { .format = umd_log_format_json, .fd = -1, .max_B = 128u << 20, .keep = 5 },
};

struct umd_log_sink *umd_log_sink_of(enum umd_log_sink_id id) { return &sinks[id]; }

void umd_log_count_sink_error(uint64_t lines, int err)
{
    atomic_fetch_add_explicit(&sink_errors, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&lines_lost, lines, memory_order_relaxed);
    atomic_store_explicit(&sink_errno, err, memory_order_relaxed);
}

void umd_log_sinks_stats(umdLogStats *stats_out)
{
    stats_out->sink_errors = atomic_load(&sink_errors);
    stats_out->lost = atomic_load(&lines_lost);
    stats_out->sink_errno = atomic_load(&sink_errno);
}

const char *umd_log_line_message(struct umd_log_line *line)
{
    static char message[UMD_LOG_MESSAGE_B]; /* under the lock */

    if (!line->message) {
        if (!umd_log_decode(message, sizeof(message), line->site->fmt, line->args, line->args_B))
            umd_log_count_sink_error(0, EBADMSG); /* the line goes out all the same */
        line->message = message;
    }
    return line->message;
}

static void fan_out(struct umd_log_line *line, const struct umd_log_sink *except)
{
    umd_log_drain_assert_held();
    for (int i = 0; i < UMD_SINK_COUNT; i++) {
        if (!sinks[i].enabled || &sinks[i] == except || line->level > umd_log_level_of((enum umd_log_sink_id)i, line->module))
            continue;
        (void)umd_log_line_message(line);
        umd_log_sink_add(&sinks[i], line);
    }
}

void umd_log_sinks_put(struct umd_log_line *line) { fan_out(line, NULL); }

void umd_log_sinks_say(umdLogLevel level, const char *message, const struct umd_log_sink *except)
{
    uint64_t real_ns = umd_sys()->real_ns();

    fan_out(&(struct umd_log_line){
        .level = level, .module = "diag.log", .func = "log", .file = "log_writer.c", .message = message,
        .mono_ns = umd_sys()->mono_ns(), .real_ns = real_ns, .observed_ns = real_ns, .pid = umd_sys()->pid(), .tid = umd_sys()->tid(),
    }, except);
}

void umd_log_sinks_flush(void)
{
    char message[UMD_LOG_PATH_B + 128];

    umd_log_drain_assert_held();
    for (int i = 0; i < UMD_SINK_COUNT; i++) {
        struct umd_log_sink *s = &sinks[i];
        if (s->enabled)
            umd_log_sink_flush(s);
        if (!s->tell)
            continue;
        s->tell = false;
        snprintf(message, sizeof(message), "log sink fails, its records are lost until it works again path=\"%s\" errno=%d reason=\"%s\"",
                 s->is_console ? "stderr" : s->path, s->err, strerrordesc_np(s->err));
        umd_log_sinks_say(UMD_LOG_WARN, message, s);
    }
    for (int i = 0; i < UMD_SINK_COUNT; i++)
        if (sinks[i].enabled && sinks[i].used)
            umd_log_sink_flush(&sinks[i]);
}

void umd_log_sinks_child(void)
{
    for (int i = 0; i < UMD_SINK_COUNT; i++)
        umd_log_sink_child(&sinks[i]);
}
