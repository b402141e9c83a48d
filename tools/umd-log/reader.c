/* SPDX-License-Identifier: MIT */
/* reader.c - bytes of a file into lines of bounded length, lines into records by what they begin with. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "open.h"
#include "reader.h"
#include "sys.h"

#define CHUNK_B 65536u
#define QUIET_NS 1000000000u    /* so long after its last line a record of a growing disaster log is taken for whole */

struct log_reader {
    char *path;
    struct log_file file;
    int err;
    bool skipping;          /* the rest of a line that was too long */
    bool ended;             /* a stream, at its end */
    size_t begin, filled;   /* of buf: what is not taken yet */
    uint64_t read_B;
    uint64_t limit_B;       /* 0: none */
    uint64_t quiet_ns;      /* of a growing file: since then nothing was added; 0: something was just now */
    struct log_counts counts;
    struct log_header header;
    struct log_block block; /* of a disaster log: the record that is being gathered */
    char buf[LOG_LINE_MAX + 1];
};

struct log_reader *log_reader_open(const char *path, int *err_out)
{
    struct log_reader *r = calloc(1, sizeof(*r));

    *err_out = ENOMEM;
    if (!r)
        return NULL;
    r->file.fd = -1;
    r->path = strdup(path);
    *err_out = r->path ? log_file_open(&r->file, path) : ENOMEM;
    if (*err_out) {
        log_reader_close(r);
        return NULL;
    }
    memcpy(r->buf, r->file.first, r->file.first_B);
    r->filled = r->file.first_B;
    if (r->file.binary) {
        const struct umd_log_binary_head *h = umd_log_binary_head_of(r->file.binary);
        r->header.pid = h->pid;
        r->header.opened_ns = h->start_real_ns;
        memcpy(r->header.version, h->program_version, sizeof(h->program_version));
    }
    return r;
}

void log_reader_close(struct log_reader *r)
{
    if (!r)
        return;
    log_file_close(&r->file);
    log_block_finish(&r->block);
    free(r->path);
    free(r);
}

/* A stream that has nothing to read now, in which a follower must not hang: it has signals to heed. */
static bool is_silent(const struct log_reader *r)
{
    struct pollfd p = { .fd = r->file.fd, .events = POLLIN };
    return r->file.stream && poll(&p, 1, 0) <= 0;
}

static ssize_t read_some(struct log_reader *r, char *to, size_t n, bool growing)
{
    ssize_t got;

    if (r->file.gz) {
        got = gunzip_read(r->file.gz, to, n);
        if (got == 0 && gunzip_is_damaged(r->file.gz) && !r->counts.cut) { /* what came before it counts */
            r->counts.damaged++;
            r->counts.cut = true;
        }
    } else {
        if (growing && is_silent(r))
            return 0;
        do {
            got = read(r->file.fd, to, n);
        } while (got < 0 && errno == EINTR && !growing);
        if (got < 0 && errno == EINTR)
            return 0;
        r->ended = r->ended || (got == 0 && r->file.stream);
    }
    if (got < 0)
        r->err = errno;
    return got;
}

/* NULs: dropped at the front of a line, '?' inside. Returns the new length. */
static size_t without_nuls(struct log_reader *r, char *line, size_t n)
{
    size_t front = 0;

    while (front < n && line[front] == '\0')
        front++;
    r->counts.nul_B += front;
    memmove(line, line + front, n - front);
    n -= front;
    for (size_t i = 0; i < n; i++) {
        if (line[i] == '\0') {
            line[i] = '?';
            r->counts.nul_B++;
        }
    }
    return n;
}

static bool is_record(struct log_reader *r, struct log_rec *rec)
{
    r->counts.records++;
    rec->number = r->counts.lines;
    rec->path = r->path;
    if (!rec->pid)
        rec->pid = r->header.pid;
    return true;
}

/* What has been gathered of a disaster log's record is one; false: there is none. */
static bool end_block(struct log_reader *r, struct log_rec *rec)
{
    if (!r->block.used)
        return false;
    if (log_block_parse(rec, &r->block))
        return is_record(r, rec);
    if (r->counts.foreign++ == 0)
        r->counts.first_foreign = r->counts.lines;
    return false;
}

/* A record of a disaster log ends before a line that is none of its own, which is then looked at anew; rec is that record. */
static bool ends_block(struct log_reader *r, const char *line, size_t n, struct log_rec *rec)
{
    if (!r->block.used || log_block_owns(&r->block, line, n))
        return false;
    bool got = end_block(r, rec);
    if (got)
        r->begin = (size_t)(line - r->buf);
    return got;
}

/* True: rec is one. The line has a byte behind it that may be overwritten. */
static bool take_line(struct log_reader *r, char *line, size_t n, struct log_rec *rec)
{
    r->counts.lines++;
    n = without_nuls(r, line, n);
    if (n && line[n - 1] == '\r')
        n--;
    line[n] = '\0';
    if (r->block.used || log_block_begins(line)) {
        r->counts.inner += r->block.used != 0;
        r->counts.damaged += !log_block_add(&r->block, line, n);
        return false;
    }
    if (n == 0 || line[0] == '#') {
        r->counts.comments++;
        log_parse_header(&r->header, line);
        return false;
    }
    if (line[0] == '{' ? log_parse_json(rec, line, n) : log_parse_text(rec, line, n) || log_parse_run(rec, line, n))
        return is_record(r, rec);
    if (r->counts.foreign++ == 0)
        r->counts.first_foreign = r->counts.lines;
    return false;
}

/* A whole line of what is in the buffer: its start, ended at *n_out. NULL: there is none. */
static char *next_line(struct log_reader *r, size_t *n_out)
{
    char *line = r->buf + r->begin, *newline = memchr(line, '\n', r->filled - r->begin);

    if (newline) {
        *n_out = (size_t)(newline - line);
        r->begin += *n_out + 1;
        return line;
    }
    if (r->begin == 0 && r->filled == LOG_LINE_MAX) { /* full without an end */
        *n_out = r->filled;
        r->begin = r->filled;
        return line;
    }
    return NULL;
}

static enum log_read fill(struct log_reader *r, bool growing)
{
    memmove(r->buf, r->buf + r->begin, r->filled - r->begin);
    r->filled -= r->begin;
    r->begin = 0;
    if (r->limit_B && r->read_B >= r->limit_B)
        return LOG_READ_END;
    size_t room = LOG_LINE_MAX - r->filled;
    ssize_t got = read_some(r, r->buf + r->filled, room < CHUNK_B ? room : CHUNK_B, growing);
    if (got < 0)
        return LOG_READ_ERROR;
    r->filled += (size_t)got;
    r->read_B += (uint64_t)got;
    r->quiet_ns = got ? 0 : r->quiet_ns;
    return got ? LOG_READ_RECORD : LOG_READ_END;
}

static const char *copy_text(struct log_rec *rec, const char *text) { return *text ? log_rec_text(rec, text, strlen(text)) : ""; }

/* A record of the binary file; its texts are the decoder's, and are copied. */
static enum log_read next_binary(struct log_reader *r, struct log_rec *rec)
{
    struct umd_log_binary_record b;
    struct umd_log_binary_stats stats;
    umdStatus st = umd_log_binary_next(r->file.binary, &b);

    umd_log_binary_get_stats(r->file.binary, &stats);
    r->counts.damaged = stats.damaged_blocks + stats.bad_items + r->file.damaged;
    r->counts.cut = r->file.damaged;
    r->counts.torn = stats.torn;
    if (umdFailed(st)) {
        r->err = EIO;
        return LOG_READ_ERROR;
    }
    if (st == UMD_STATUS_NOT_READY)
        return LOG_READ_END;
    size_t room = 1024 + strlen(b.module) + strlen(b.func) + strlen(b.file) + strlen(b.message) + strlen(b.trace_id) + strlen(b.span_id);
    if (!log_rec_begin(rec, room)) {
        r->err = ENOMEM;
        return LOG_READ_ERROR;
    }
    rec->real_ns = rec->observed_ns = b.real_ns;
    rec->mono_ns = b.mono_ns;
    rec->context_id = b.context_id;
    rec->id = b.record;
    rec->pid = b.pid;
    rec->tid = b.tid;
    rec->depth = b.depth;
    rec->line = b.line;
    rec->level = (int)b.level;
    rec->level_text = log_level_name((int)b.level);
    rec->module = copy_text(rec, b.module);
    rec->func = copy_text(rec, b.func);
    rec->file = copy_text(rec, b.file);
    rec->trace_id = copy_text(rec, b.trace_id);
    rec->span_id = copy_text(rec, b.span_id);
    rec->message = copy_text(rec, b.message);
    rec->code = b.code;
    rec->code_name = b.code && strcmp(umdStatusName((umdStatus)b.code), "UMD_UNKNOWN") != 0 ? umdStatusName((umdStatus)b.code) : "";
    log_rec_find_code(rec);
    r->counts.lines++;
    r->counts.records++;
    rec->number = r->counts.lines;
    rec->path = r->path;
    return LOG_READ_RECORD;
}

/* In a growing file more of the record that is gathered may come: its writer may be in the midst of it. */
static bool may_grow_on(struct log_reader *r)
{
    const uint64_t now_ns = umd_sys()->mono_ns();

    if (!r->block.used)
        return false;
    r->quiet_ns = r->quiet_ns ? r->quiet_ns : now_ns;
    return now_ns - r->quiet_ns < QUIET_NS;
}

enum log_read log_reader_next(struct log_reader *r, struct log_rec *rec, bool growing)
{
    size_t n;

    if (r->file.binary)
        return next_binary(r, rec);
    growing = growing && !log_reader_is_whole(r);
    for (;;) {
        char *line = next_line(r, &n);
        if (line) {
            bool too_long = n == LOG_LINE_MAX, rest = r->skipping;
            if (!rest && ends_block(r, line, n, rec))
                return LOG_READ_RECORD;
            r->skipping = too_long;
            r->counts.too_long += too_long && !rest;
            if (!rest && take_line(r, line, n, rec))
                return LOG_READ_RECORD;
            continue;
        }
        enum log_read got = fill(r, growing);
        if (got == LOG_READ_ERROR)
            return got;
        if (got == LOG_READ_RECORD)
            continue;
        if (growing && (r->filled != r->begin || may_grow_on(r)))
            return LOG_READ_END;
        if (r->filled == r->begin)
            return end_block(r, rec) ? LOG_READ_RECORD : LOG_READ_END;
        n = r->filled - r->begin; /* no newline at the end */
        line = r->buf + r->begin;
        if (!r->skipping && ends_block(r, line, n, rec))
            return LOG_READ_RECORD;
        r->begin = r->filled;
        r->counts.torn = true;
        if (!r->skipping && take_line(r, line, n, rec)) {
            rec->torn = true;
            return LOG_READ_RECORD;
        }
        return end_block(r, rec) ? LOG_READ_RECORD : LOG_READ_END;
    }
}

const char *log_reader_why(int err) { return err == EBADMSG ? "a binary log whose head is damaged, or of a later version" : strerror(err); }
int log_reader_errno(const struct log_reader *r) { return r->err; }
const struct log_counts *log_reader_counts(const struct log_reader *r) { return &r->counts; }
const struct log_header *log_reader_header(const struct log_reader *r) { return &r->header; }

bool log_reader_is_whole(const struct log_reader *r) { return r->file.whole || r->ended; }

bool log_reader_moved(const struct log_reader *r, const char *path)
{
    struct stat open_file, at_path;

    if (r->file.fd < 0 || r->file.stream || r->file.whole || fstat(r->file.fd, &open_file) != 0 || stat(path, &at_path) != 0)
        return false; /* between two renames there is none for a moment */
    return open_file.st_dev != at_path.st_dev || open_file.st_ino != at_path.st_ino || (uint64_t)open_file.st_size < r->read_B;
}

bool log_reader_is(const struct log_reader *r, dev_t dev, ino_t ino) { return r->file.dev == dev && r->file.ino == ino; }

bool log_reader_is_removed(const struct log_reader *r)
{
    struct stat st;
    return r->file.fd >= 0 && fstat(r->file.fd, &st) == 0 && st.st_nlink == 0;
}

void log_reader_limit(struct log_reader *r, uint64_t size_B) { r->limit_B = size_B; }
