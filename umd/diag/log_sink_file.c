/* SPDX-License-Identifier: MIT */
/* log_sink_file.c - what all sinks do with bytes: gather, write without being stopped or killed, rotate, re-open, degrade, recover. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emergency.h"
#include "log_sinks.h"

#define RETRY_NS 1000000000ull
#define BLOCKED_MS 500          /* so long a pipe may take no byte before its sink counts as failing */
#define OPEN_TRIES 4
#define LINKS_MAX 40            /* as many as the kernel follows */
#define RESCUED_MAX 64u         /* of the emergency ring's records, per failure */
#define CONSOLE_BUFFER_B 32768u
#define LINE_B 2048u            /* an ordinary line is shorter */

static _Atomic(uint64_t) max_B = 128u << 20;
static _Atomic(uint32_t) keep = 5;
static _Atomic(int) period = UMD_LOG_PERIOD_DAILY;
static char console_buffer[CONSOLE_BUFFER_B];

void umd_log_set_rotation(uint64_t max, uint32_t count)
{
    atomic_store(&max_B, max);
    atomic_store(&keep, count < UMD_LOG_KEEP_MAX ? count : UMD_LOG_KEEP_MAX);
}

void umd_log_set_period(umdLogPeriod p) { atomic_store(&period, (int)p); }

static bool is_console(const struct umd_log_sink *s) { return umd_log_sink_kind_of(umd_log_sink_id_of(s))->console; }

/* ---- Opening and rotation ---- */

/* What a symbolic link at the path leads to, in place; a file that is none is left as it is. 0 or errno. */
static int follow_links(char path[UMD_LOG_PATH_B])
{
    char target[UMD_LOG_PATH_B];

    for (int links = 0; links < LINKS_MAX; links++) {
        ssize_t n = readlink(path, target, sizeof(target));
        if (n < 0)
            return errno == EINVAL || errno == ENOENT ? 0 : errno;
        const char *slash = strrchr(path, '/');
        const size_t dir_n = n && target[0] != '/' && slash ? (size_t)(slash - path) + 1 : 0; /* relative: to where the link is */
        if (dir_n + (size_t)n >= UMD_LOG_PATH_B)
            return ENAMETOOLONG;
        memcpy(path + dir_n, target, (size_t)n);
        path[dir_n + (size_t)n] = '\0';
    }
    return ELOOP;
}

/* path.4 to path.5, ..., path to path.1: then path is free. A link stays, and what it leads to is moved. 0 or errno. */
static int rotate(struct umd_log_sink *s, uint32_t count)
{
    char path[UMD_LOG_PATH_B], from[UMD_LOG_PATH_B + 16], to[UMD_LOG_PATH_B + 16];

    UMD_COPY_STR(path, s->path);
    int err = follow_links(path);
    if (err)
        return err;
    for (uint32_t i = count; i > 0; i--) {
        snprintf(to, sizeof(to), "%s.%u", path, i);
        if (i > 1)
            snprintf(from, sizeof(from), "%s.%u", path, i - 1);
        else
            snprintf(from, sizeof(from), "%s", path);
        errno = 0;
        err = umd_sys()->rename(from, to) == 0 ? 0 : errno ? errno : EIO;
    }
    return err == ENOENT ? 0 : err; /* of path itself */
}

/* The directory was there when the file was opened first: if somebody removed it, it comes back. */
static void make_directories(const char *path)
{
    char dir[UMD_LOG_PATH_B];

    UMD_COPY_STR(dir, path);
    for (char *slash = strchr(dir + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(dir, 0755);
        *slash = '/';
    }
}

/*
 * A file of one process: the lock goes with the descriptor, however the process ends. A device or pipe may be shared, and is opened
 * without waiting for its reader. Until the lock is had the file may be another's: nothing is done to it, and one that its owner has
 * rotated away since the open is left. 0 or errno.
 */
static int open_locked(struct umd_log_sink *s)
{
    struct stat st, at;

    for (int tries = 0; tries < OPEN_TRIES; tries++) {
        errno = 0;
        int fd = umd_sys()->open(s->path, O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY | O_NONBLOCK, 0644);
        if (fd < 0 && errno == ENOENT && s->was_open && tries == 0) {
            make_directories(s->path);
            continue;
        }
        if (fd < 0)
            return errno ? errno : EIO;
        bool regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
        bool taken = regular && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        if (!taken && (!regular || (stat(s->path, &at) == 0 && at.st_dev == st.st_dev && at.st_ino == st.st_ino))) {
            s->fd = fd;
            s->may_block = !regular;
            return 0;
        }
        umd_sys()->close(fd);
        if (taken)
            break;
    }
    return EBUSY;
}

static uint64_t period_now(void)
{
    static const uint64_t length_ns[] = { [UMD_LOG_PERIOD_OFF] = 0, [UMD_LOG_PERIOD_HOURLY] = 3600000000000ull, [UMD_LOG_PERIOD_DAILY] = 86400000000000ull };
    uint64_t ns = length_ns[atomic_load_explicit(&period, memory_order_relaxed)];

    return ns && !umd_sys_stepped() ? umd_sys()->real_ns() / ns : 0;
}

/* What a buffered rest of a line has no begin for in the new file is left out. */
static void cut_torn(struct umd_log_sink *s)
{
    if (!s->torn)
        return;
    const char *end = umd_log_sink_kind_of(umd_log_sink_id_of(s))->seal ? NULL : memchr(s->buf, '\n', s->used);
    size_t gone = end ? (size_t)(end - s->buf) + 1 : s->used;
    uint32_t lines = end ? 1 : s->lines;
    memmove(s->buf, s->buf + gone, s->used - gone);
    s->used -= gone;
    s->lines -= lines < s->lines ? lines : s->lines;
    s->lost += lines;
    umd_log_count_lost(lines);
    s->torn = s->full = false;
}

static void begin(struct umd_log_sink *s)
{
    s->written_B = 0;
    s->period = period_now();
    s->was_open = true;
    s->need_begin = umd_log_sink_kind_of(umd_log_sink_id_of(s))->begin_file != NULL;
    cut_torn(s);
}

static bool at_its_path(const struct umd_log_sink *s)
{
    struct stat at, mine;

    return fstat(s->fd, &mine) == 0 && stat(s->path, &at) == 0 && at.st_dev == mine.st_dev && at.st_ino == mine.st_ino;
}

/*
 * The file at the path is open and locked, and has something in it: it becomes path.1, and its lock is held until the next one is there. What
 * cannot be moved stays as it is: it is overwritten only where none are to be kept. 0 or errno; s->fd is the one that was open where that fails.
 */
static int move_on(struct umd_log_sink *s)
{
    const uint32_t count = atomic_load(&keep);

    if (count == 0)
        return ftruncate(s->fd, 0) == 0 ? 0 : errno;
    int err = rotate(s, count);
    return err ? err : open_locked(s);
}

int umd_log_sink_open(struct umd_log_sink *s)
{
    const int before = s->fd, saved = errno;
    const bool may_block = s->may_block;
    int err = before >= 0 && at_its_path(s) ? 0 : open_locked(s); /* another process's file is not rotated away under it */
    const int first = s->fd;

    if (!err && umd_sys()->file_size(s->path) > 0)
        err = move_on(s);
    if (first >= 0 && first != before && (err || first != s->fd))
        umd_sys()->close(first);
    if (err) {
        s->fd = before;
        s->may_block = may_block;
    } else if (before >= 0 && before != s->fd) {
        umd_sys()->close(before);
    }
    errno = saved;
    if (!err)
        begin(s);
    return err;
}

static void close_fd(struct umd_log_sink *s)
{
    if (s->fd >= 0 && !is_console(s))
        umd_sys()->close(s->fd);
    s->fd = is_console(s) ? STDERR_FILENO : -1;
}

static void forget_buffer(struct umd_log_sink *s)
{
    s->used = 0;
    s->lines = 0;
    s->failing = s->warned = s->tell = s->torn = s->full = false;
    s->lost = s->retry_ns = 0;
    s->rescued = 0;
}

/* What could not be written to the file that goes now. */
static void lose_buffer(struct umd_log_sink *s)
{
    if (s->lines) {
        umd_log_count_lost(s->lines);
        s->lost_total += s->lines;
    }
    forget_buffer(s);
    umd_log_sinks_recount();
}

void umd_log_sink_close(struct umd_log_sink *s)
{
    close_fd(s);
    s->was_open = false;
    lose_buffer(s);
}

int umd_log_sink_replace(struct umd_log_sink *s, const char *path)
{
    static char before[UMD_LOG_PATH_B]; /* under the lock */
    const bool was_open = s->was_open;

    umd_log_sink_flush(s);
    UMD_COPY_STR(before, s->path);
    UMD_COPY_STR(s->path, path);
    s->was_open = false; /* a directory that was never there is not made */
    int err = umd_log_sink_open(s);
    if (err) {
        UMD_COPY_STR(s->path, before);
        s->was_open = was_open;
        return err;
    }
    lose_buffer(s);
    return 0;
}

/* A file that is still at its path is kept; one that was moved or removed is left, and a new one begun. */
void umd_log_sink_reopen(struct umd_log_sink *s)
{
    if (is_console(s) || s->fd < 0) {
        s->retry_ns = 0; /* the cause may have been mended */
        return;
    }
    if (at_its_path(s))
        return;
    umd_log_sink_flush(s); /* to the file that was moved away */
    close_fd(s);
    if (umd_log_sink_open(s) == 0 && s->need_begin) /* the new file is there at once */
        s->need_begin = umd_log_sink_kind_of(umd_log_sink_id_of(s))->begin_file(s) != 0;
}

/* A forked child's lines go to a file of their own; regular files only, a device or pipe may be shared. */
void umd_log_sink_child(struct umd_log_sink *s)
{
    char suffix[24];

    forget_buffer(s);
    s->lost_total = 0;
    if (is_console(s) || !s->enabled)
        return;
    bool regular = s->path[0] && (umd_sys()->file_size(s->path) >= 0 || errno == ENOENT); /* or to be one, not opened yet */
    close_fd(s);
    s->was_open = false;
    int n = snprintf(suffix, sizeof(suffix), ".%u", (unsigned)getpid());
    size_t len = strlen(s->path);
    if (regular && len + (size_t)n < sizeof(s->path))
        memcpy(s->path + len, suffix, (size_t)n + 1);
}

/* ---- Writing ---- */

/* A closed pipe or a file at its size limit is an error here, and no signal to the process. */
static ssize_t write_unsignalled(int fd, const void *bytes, size_t n)
{
    static const struct timespec at_once;
    sigset_t ours, old, before;

    sigemptyset(&ours);
    sigaddset(&ours, SIGPIPE);
    sigaddset(&ours, SIGXFSZ);
    sigemptyset(&before);
    sigpending(&before);
    pthread_sigmask(SIG_BLOCK, &ours, &old);
    ssize_t put = umd_sys()->write(fd, bytes, n);
    int err = errno;
    if (put < 0 && (err == EPIPE || err == EFBIG)) {
        if (sigismember(&before, SIGPIPE))
            sigdelset(&ours, SIGPIPE); /* that one was the program's */
        if (sigismember(&before, SIGXFSZ))
            sigdelset(&ours, SIGXFSZ);
        while (sigtimedwait(&ours, NULL, &at_once) > 0)
            ;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    errno = err;
    return put;
}

/* A pipe that nobody empties holds the writer for a moment, and only once: a failing one is not waited for. */
static ssize_t write_some(struct umd_log_sink *s, const char *bytes, size_t n)
{
    if (s->may_block) {
        struct pollfd p = { .fd = s->fd, .events = POLLOUT };
        if (poll(&p, 1, s->failing ? 0 : BLOCKED_MS) == 0) {
            errno = EAGAIN;
            return -1;
        }
        n = n < PIPE_BUF ? n : PIPE_BUF; /* fits, as poll said */
    }
    return write_unsignalled(s->fd, bytes, n);
}

int umd_log_sink_write(struct umd_log_sink *s, const char *bytes, size_t n, size_t *put_out)
{
    size_t done = 0;
    int err = 0;

    while (done < n) {
        ssize_t put = write_some(s, bytes + done, n - done);
        if (put <= 0) {
            err = put < 0 ? errno : ENOSPC;
            break;
        }
        s->written_B += (uint64_t)put;
        done += (size_t)put;
    }
    if (put_out)
        *put_out = done;
    return err;
}

/* A pipe has no size, and closed it would be gone for its reader. */
static bool over_size(const struct umd_log_sink *s, size_t more)
{
    uint64_t max = atomic_load_explicit(&max_B, memory_order_relaxed);

    return max && !s->may_block && s->written_B + more > max;
}

/* Removed behind our back: what is written now would be for nobody. */
static bool vanished(const struct umd_log_sink *s)
{
    struct stat st;

    return !s->may_block && fstat(s->fd, &st) == 0 && st.st_nlink == 0;
}

static bool wants_next(const struct umd_log_sink *s)
{
    return s->fd >= 0 && s->written_B && !s->torn && !s->may_block && (over_size(s, s->used) || period_now() != s->period);
}

/* There is no file to write to, or none that would take a line (EFBIG), and it is too soon to try again for one. */
static bool waits(const struct umd_log_sink *s)
{
    return s->failing && !is_console(s) && umd_sys()->mono_ns() < s->retry_ns && (s->fd < 0 || s->err == EFBIG || wants_next(s));
}

static int make_ready(struct umd_log_sink *s)
{
    const struct umd_log_sink_kind *kind = umd_log_sink_kind_of(umd_log_sink_id_of(s));
    struct stat st;
    int err = 0;

    if (kind->console) {
        s->may_block = fstat(s->fd, &st) != 0 || !S_ISREG(st.st_mode); /* the program may have put another file there */
        return 0;
    }
    bool next = wants_next(s);
    if (s->fd >= 0 && vanished(s))
        close_fd(s);
    if (s->fd < 0 || next)
        err = umd_log_sink_open(s);
    if (next && (err == EMFILE || err == ENFILE)) { /* not one more: then the old one first */
        close_fd(s);
        err = umd_log_sink_open(s);
    }
    if (!err && s->need_begin) {
        if (s->written_B && ftruncate(s->fd, 0) == 0) /* the last try got stuck in it */
            s->written_B = 0;
        err = kind->begin_file(s);
        s->need_begin = err != 0;
    }
    return err;
}

static void fail(struct umd_log_sink *s, int err)
{
    s->tell = s->tell || !s->warned;
    umd_log_count_sink_error(err);
    s->failing = s->warned = true;
    s->err = err;
    s->retry_ns = umd_sys()->mono_ns() + RETRY_NS;
}

static void works_again(struct umd_log_sink *s)
{
    char message[192];

    s->failing = s->full = false;
    s->rescued = 0;
    snprintf(message, sizeof(message), "log sink works again records_lost=%" PRIu64 " errno=%d reason=\"%s\"", s->lost, s->err, strerrordesc_np(s->err));
    s->lost = 0;
    struct umd_log_line line = umd_log_own_line(UMD_LOG_WARN, message);
    umd_log_sink_add(s, &line);
}

static int put_out(struct umd_log_sink *s, size_t *put)
{
    const struct umd_log_sink_kind *kind = umd_log_sink_kind_of(umd_log_sink_id_of(s));
    int err = make_ready(s);

    if (err || !s->used)
        return err;
    if (kind->seal && !s->torn)
        kind->seal(s);
    return umd_log_sink_write(s, s->buf, s->used, put);
}

static void take_off(struct umd_log_sink *s, size_t n)
{
    uint32_t lines = 0;

    for (const char *c = s->buf, *end = s->buf + n; !umd_log_sink_kind_of(umd_log_sink_id_of(s))->seal && (c = memchr(c, '\n', (size_t)(end - c))); c++)
        lines++;
    s->lines -= lines < s->lines ? lines : s->lines;
    memmove(s->buf, s->buf + n, s->used - n);
    s->used -= n;
}

static const char *last_line_end(const struct umd_log_sink *s, size_t n)
{
    return umd_log_sink_kind_of(umd_log_sink_id_of(s))->seal ? NULL : memrchr(s->buf, '\n', n);
}

/*
 * The file is at the process's limit of size. The next one takes what is left, from the begin of the line or block that did not fit, and so on while
 * a file takes a line at least.
 */
static int put_in_next(struct umd_log_sink *s, size_t *put)
{
    int err;

    do {
        const char *end = last_line_end(s, *put);
        if (end) {
            take_off(s, (size_t)(end - s->buf) + 1);
            s->torn = false;
        }
        *put = 0;
        close_fd(s);
        err = put_out(s, put);
    } while (err == EFBIG && last_line_end(s, *put));
    return err;
}

void umd_log_sink_flush(struct umd_log_sink *s)
{
    int saved = errno;
    size_t put = 0;

    if (!s->used || waits(s))
        return;
    int err = put_out(s, &put);
    if (err == EFBIG && s->written_B && !s->may_block && !is_console(s))
        err = put_in_next(s, &put);
    if (err) {
        if (put) { /* the rest follows where this ended */
            take_off(s, put);
            s->torn = true;
            s->full = umd_log_sink_kind_of(umd_log_sink_id_of(s))->seal != NULL; /* a block that is out in part takes no more */
        }
        fail(s, err);
    } else {
        s->used = 0;
        s->lines = 0;
        s->torn = false;
        if (s->failing)
            works_again(s);
    }
    errno = saved;
}

/* ---- Gathering ---- */

static bool get_buffer(struct umd_log_sink *s)
{
    if (s->buf)
        return true;
    if (is_console(s)) {
        s->buf = console_buffer;
        s->size = sizeof(console_buffer);
        return true;
    }
    if (s->failing && umd_sys()->mono_ns() < s->retry_ns)
        return false;
    s->buf = umd_diag_alloc(UMD_SINK_BUFFER_B);
    s->size = s->buf ? UMD_SINK_BUFFER_B : 0;
    if (!s->buf)
        fail(s, ENOMEM);
    else if (s->failing && s->err == ENOMEM)
        s->failing = s->full = false;
    return s->buf != NULL;
}

/* Errors with a call site or a record are in the emergency ring already. */
static void rescue(struct umd_log_sink *s, struct umd_log_line *line)
{
    bool there = line->level == UMD_LOG_ERROR && (line->site || line->record.seq);

    if (line->level > UMD_LOG_WARN || there || s->rescued >= RESCUED_MAX)
        return;
    s->rescued++;
    umd_emergency_put(&(struct umd_emergency_note){
        .module = line->module, .func = line->func, .file = line->file, .line = line->line, .code = line->code,
        .context_id = line->context_id, .record = line->record, .message = umd_log_line_message(line),
    });
}

static void lose(struct umd_log_sink *s)
{
    s->lost++;
    s->lost_total++;
    umd_log_count_lost(1);
}

void umd_log_sink_add(struct umd_log_sink *s, struct umd_log_line *line)
{
    const struct umd_log_sink_kind *kind = umd_log_sink_kind_of(umd_log_sink_id_of(s));

    if (s->failing)
        rescue(s, line);
    if (s->full || !get_buffer(s)) {
        lose(s);
        return;
    }
    if (s->used && !s->failing && over_size(s, s->used + LINE_B))
        umd_log_sink_flush(s); /* what this file still takes; then the next one begins */
    size_t room = s->size - s->used;
    size_t n = kind->format(s, line, s->buf + s->used, room);
    if (n >= room && s->used && !s->failing) { /* full: out with it, then once more; a failing sink is tried again with the next batch */
        umd_log_sink_flush(s);
        room = s->size - s->used;
        n = kind->format(s, line, s->buf + s->used, room);
    }
    if (n >= room && s->used) {
        s->full = s->failing;
        lose(s);
        return;
    }
    if (n >= room) { /* a line longer than the buffer cannot be: messages are bounded; a sink that says so is at fault */
        umd_log_count_sink_error(EMSGSIZE);
        umd_log_count_lost(1);
        return;
    }
    s->used += n;
    s->lines += n != 0;
}
