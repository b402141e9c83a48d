/* SPDX-License-Identifier: MIT */
/* log_sink_file.c - the text format, and what both file sinks and the console do with bytes: batch, write, rotate, degrade. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "log_sinks.h"

#define RETRY_NS 1000000000ull
#define OPEN_TRIES 4

static size_t format_time(char *buf, size_t size, uint64_t real_ns)
{
    time_t seconds = (time_t)(real_ns / 1000000000u);
    struct tm tm;
    char day[32];

    gmtime_r(&seconds, &tm);
    strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
    int n = snprintf(buf, size, "%s.%09uZ", day, (unsigned)(real_ns % 1000000000u));
    return n < 0 ? 0 : (size_t)n;
}

/* time mono level pid.tid module ctx= depth= rec= trace=: message [func file:line] */
size_t umd_log_format_text(const struct umd_log_line *line, char *buf, size_t size)
{
    char when[64], context[32] = "", record[64] = "", trace[160] = "", where[128] = "";

    format_time(when, sizeof(when), line->real_ns);
    if (line->context_id)
        snprintf(context, sizeof(context), " ctx=%" PRIu64, line->context_id);
    if (line->record.seq)
        snprintf(record, sizeof(record), " rec=%08x:%u:%" PRIu64, line->record.boot, line->record.pid, line->record.seq);
    if (line->trace_id)
        snprintf(trace, sizeof(trace), " trace=%.128s", line->trace_id);
    if (line->line)
        snprintf(where, sizeof(where), " [%s %s:%u]", line->func, line->file, line->line);
    int n = snprintf(buf, size, "%s %" PRIu64 ".%09" PRIu64 " %-5s %u.%u %s%s depth=%u%s%s: %s%s\n", when, line->mono_ns / 1000000000u,
                     line->mono_ns % 1000000000u, umd_log_level_name(line->level), line->pid, line->tid, line->module, context, line->depth,
                     record, trace, line->message, where);
    return n < 0 ? 0 : (size_t)n;
}

static size_t format_header(char *buf, size_t size)
{
    char when[64];

    format_time(when, sizeof(when), umd_sys()->real_ns());
    int n = snprintf(buf, size, "# petrel log, version %s, pid %u, opened %s\n"
                     "# time mono level pid.tid module [ctx=] depth= [rec=] [trace=]: message [function file:line]\n",
                     PETREL_VERSION, umd_sys()->pid(), when);
    return n < 0 ? 0 : (size_t)n;
}

/* path.4 to path.5, ..., path to path.1. What cannot be moved is overwritten: logging goes on. */
static void rotate(struct umd_log_sink *s)
{
    char from[UMD_LOG_PATH_B + 16], to[UMD_LOG_PATH_B + 16];
    const struct umd_sys *sys = umd_sys();

    for (uint32_t i = s->keep; i > 0; i--) {
        snprintf(to, sizeof(to), "%s.%u", s->path, i);
        if (i > 1)
            snprintf(from, sizeof(from), "%s.%u", s->path, i - 1);
        else
            snprintf(from, sizeof(from), "%s", s->path);
        sys->rename(from, to);
    }
}

/*
 * A file of one process: the lock goes with the descriptor, however the process ends. A device or pipe may be shared. Until the lock is
 * had the file may be another's: nothing is done to it, and one that its owner has rotated away since the open is left. 0 or errno.
 */
static int open_locked(struct umd_log_sink *s)
{
    struct stat st, at;

    for (int tries = 0; tries < OPEN_TRIES; tries++) {
        errno = 0;
        int fd = umd_sys()->open(s->path, O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY, 0644);
        if (fd < 0)
            return errno ? errno : EIO;
        bool regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
        bool taken = regular && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        if (!taken && (!regular || (stat(s->path, &at) == 0 && at.st_dev == st.st_dev && at.st_ino == st.st_ino))) {
            s->fd = fd;
            return 0;
        }
        umd_sys()->close(fd);
        if (taken)
            break;
    }
    return EBUSY;
}

int umd_log_sink_open(struct umd_log_sink *s)
{
    int saved = errno;
    int err = open_locked(s); /* another process's file is not rotated away under it */

    if (!err && umd_sys()->file_size(s->path) > 0) {
        rotate(s);
        umd_sys()->close(s->fd);
        s->fd = -1;
        err = open_locked(s);
        if (!err)
            (void)!ftruncate(s->fd, 0); /* what could not be moved */
    }
    errno = saved;
    if (err)
        return err;
    s->written_B = 0;
    s->need_header = s->with_header;
    s->torn = false;
    return 0;
}

void umd_log_sink_close(struct umd_log_sink *s)
{
    if (s->fd >= 0 && !s->is_console)
        umd_sys()->close(s->fd);
    s->fd = s->is_console ? STDERR_FILENO : -1;
    s->used = 0;
    s->lines = 0;
    s->failing = s->warned = s->tell = s->torn = false;
    s->lost = 0;
}

/* A forked child's lines go to a file of their own; regular files only, a device or pipe may be shared. */
void umd_log_sink_child(struct umd_log_sink *s)
{
    char suffix[24];

    s->used = 0;
    s->lines = 0;
    if (s->is_console || !s->enabled)
        return;
    bool regular = s->path[0] && (umd_sys()->file_size(s->path) >= 0 || errno == ENOENT); /* or to be one, not opened yet */
    if (s->fd >= 0)
        umd_sys()->close(s->fd);
    s->fd = -1;
    s->failing = s->warned = s->tell = false;
    s->lost = s->retry_ns = 0;
    int n = snprintf(suffix, sizeof(suffix), ".%u", (unsigned)getpid());
    size_t len = strlen(s->path);
    if (regular && len + (size_t)n < sizeof(s->path))
        memcpy(s->path + len, suffix, (size_t)n + 1);
}

static int write_all(struct umd_log_sink *s, const char *bytes, size_t n)
{
    while (n) {
        ssize_t put = umd_sys()->write(s->fd, bytes, n);
        if (put <= 0)
            return put < 0 ? errno : ENOSPC;
        s->written_B += (uint64_t)put;
        bytes += put;
        n -= (size_t)put;
        s->torn = n != 0;
    }
    return 0;
}

static void fail(struct umd_log_sink *s, int err)
{
    s->tell = s->tell || !s->warned;
    umd_log_count_sink_error(s->lines, err);
    s->failing = s->warned = true;
    s->err = err;
    s->lost += s->lines;
    s->retry_ns = umd_sys()->mono_ns() + RETRY_NS;
    s->used = 0;
    s->lines = 0;
}

static int make_ready(struct umd_log_sink *s)
{
    int err = 0;

    if (s->fd >= 0 && s->max_B && s->written_B && s->written_B + s->used > s->max_B) {
        umd_sys()->close(s->fd);
        s->fd = -1;
    }
    if (s->fd < 0)
        err = s->failing && umd_sys()->mono_ns() < s->retry_ns ? s->err : umd_log_sink_open(s);
    if (!err && s->torn) {
        s->torn = false;
        err = write_all(s, "\n", 1);
        if (err)
            s->torn = true;
    }
    if (!err && s->need_header) {
        char header[512];
        err = write_all(s, header, format_header(header, sizeof(header)));
        s->need_header = err != 0;
    }
    return err;
}

void umd_log_sink_flush(struct umd_log_sink *s)
{
    int saved = errno;
    int err = 0;

    if (!s->used)
        return;
    if (!s->is_console)
        err = make_ready(s);
    if (!err)
        err = write_all(s, s->buf, s->used);
    if (err) {
        errno = saved;
        fail(s, err);
        return;
    }
    s->used = 0;
    s->lines = 0;
    if (s->failing) {
        char message[96];
        s->failing = false;
        snprintf(message, sizeof(message), "log sink works again records_lost=%" PRIu64, s->lost);
        s->lost = 0;
        uint64_t real_ns = umd_sys()->real_ns();
        umd_log_sink_add(s, &(struct umd_log_line){
            .level = UMD_LOG_WARN, .module = "diag.log", .func = "log", .file = "", .message = message, .mono_ns = umd_sys()->mono_ns(),
            .real_ns = real_ns, .observed_ns = real_ns, .pid = umd_sys()->pid(), .tid = umd_sys()->tid(),
        });
    }
    errno = saved;
}

void umd_log_sink_add(struct umd_log_sink *s, const struct umd_log_line *line)
{
    size_t room = sizeof(s->buf) - s->used;
    size_t n = s->format(line, s->buf + s->used, room);

    if (n >= room && s->used) { /* full: out with it, then once more */
        umd_log_sink_flush(s);
        room = sizeof(s->buf) - s->used;
        n = s->format(line, s->buf + s->used, room);
    }
    if (n >= room) { /* a line longer than the buffer cannot be: messages are bounded; a sink that says so is at fault */
        umd_log_count_sink_error(1, EMSGSIZE);
        return;
    }
    s->used += n;
    s->lines++;
}
