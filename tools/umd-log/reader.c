/* SPDX-License-Identifier: MIT */
/* reader.c - bytes of a file into lines of bounded length, lines into records by what they begin with. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "reader.h"

#define CHUNK_B 65536u

struct log_reader {
    char *path;
    int fd;                 /* -1: compressed, gz has it */
    gzFile gz;
    int err;
    bool end, skipping;     /* skipping: the rest of a line that was too long */
    size_t begin, filled;   /* of buf: what is not taken yet */
    uint64_t read_B;
    struct log_counts counts;
    struct log_header header;
    char buf[LOG_LINE_MAX + 1];
};

/* gzip by its magic number. A pipe is not looked at: zcat goes before it. */
static bool compressed(int fd)
{
    unsigned char magic[2];
    struct stat st;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    return pread(fd, magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
}

struct log_reader *log_reader_open(const char *path, int *err_out)
{
    bool standard = strcmp(path, "-") == 0;
    struct log_reader *r = calloc(1, sizeof(*r));
    struct stat st;

    *err_out = ENOMEM;
    if (!r)
        return NULL;
    r->fd = -1;
    r->path = strdup(path);
    if (r->path)
        r->fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (!r->path || r->fd < 0) {
        *err_out = r->path ? errno : ENOMEM;
        log_reader_close(r);
        return NULL;
    }
    if (fstat(r->fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        *err_out = EISDIR;
        log_reader_close(r);
        return NULL;
    }
    if (compressed(r->fd)) {
        r->gz = gzdopen(r->fd, "rb");
        if (!r->gz) {
            log_reader_close(r);
            return NULL;
        }
        r->fd = -1;
    }
    return r;
}

void log_reader_close(struct log_reader *r)
{
    if (!r)
        return;
    if (r->gz)
        gzclose(r->gz);
    if (r->fd >= 0)
        close(r->fd);
    free(r->path);
    free(r);
}

static ssize_t read_some(struct log_reader *r, char *to, size_t n)
{
    if (!r->gz) {
        ssize_t got;
        do {
            got = read(r->fd, to, n);
        } while (got < 0 && errno == EINTR);
        if (got < 0)
            r->err = errno;
        return got;
    }
    int got = gzread(r->gz, to, (unsigned)n), code = Z_OK;
    if (got <= 0) {
        (void)gzerror(r->gz, &code);
        if (code != Z_OK && code != Z_STREAM_END) { /* cut off, or damaged: what came before it counts */
            r->counts.damaged++;
            return 0;
        }
    }
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

/* True: rec is one. The line has a byte behind it that may be overwritten. */
static bool take_line(struct log_reader *r, char *line, size_t n, struct log_rec *rec)
{
    r->counts.lines++;
    n = without_nuls(r, line, n);
    if (n && line[n - 1] == '\r')
        n--;
    line[n] = '\0';
    if (n == 0 || line[0] == '#') {
        r->counts.comments++;
        log_parse_header(&r->header, line);
        return false;
    }
    bool good = line[0] == '{' ? log_parse_json(rec, line, n) : log_parse_text(rec, line, n);
    if (!good) {
        if (r->counts.foreign++ == 0)
            r->counts.first_foreign = r->counts.lines;
        return false;
    }
    r->counts.records++;
    rec->number = r->counts.lines;
    rec->path = r->path;
    return true;
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

static enum log_read fill(struct log_reader *r)
{
    memmove(r->buf, r->buf + r->begin, r->filled - r->begin);
    r->filled -= r->begin;
    r->begin = 0;
    size_t room = LOG_LINE_MAX - r->filled;
    ssize_t got = read_some(r, r->buf + r->filled, room < CHUNK_B ? room : CHUNK_B);
    if (got < 0)
        return LOG_READ_ERROR;
    r->filled += (size_t)got;
    r->read_B += (uint64_t)got;
    return got ? LOG_READ_RECORD : LOG_READ_END;
}

enum log_read log_reader_next(struct log_reader *r, struct log_rec *rec, bool growing)
{
    size_t n;

    for (;;) {
        char *line = next_line(r, &n);
        if (line) {
            bool too_long = n == LOG_LINE_MAX, rest = r->skipping;
            r->skipping = too_long;
            r->counts.too_long += too_long && !rest;
            if (!rest && take_line(r, line, n, rec))
                return LOG_READ_RECORD;
            continue;
        }
        enum log_read got = fill(r);
        if (got == LOG_READ_ERROR)
            return got;
        if (got == LOG_READ_RECORD)
            continue;
        if (growing || r->filled == r->begin)
            return LOG_READ_END;
        n = r->filled - r->begin; /* no newline at the end */
        line = r->buf + r->begin;
        r->begin = r->filled;
        r->counts.torn = true;
        if (!r->skipping && take_line(r, line, n, rec)) {
            rec->torn = true;
            return LOG_READ_RECORD;
        }
        return LOG_READ_END;
    }
}

int log_reader_errno(const struct log_reader *r) { return r->err; }
const char *log_reader_path(const struct log_reader *r) { return r->path; }
const struct log_counts *log_reader_counts(const struct log_reader *r) { return &r->counts; }
const struct log_header *log_reader_header(const struct log_reader *r) { return &r->header; }

bool log_reader_moved(const struct log_reader *r)
{
    struct stat open_file, at_path;

    if (r->fd < 0 || fstat(r->fd, &open_file) != 0 || stat(r->path, &at_path) != 0)
        return false; /* between two renames there is none for a moment */
    return open_file.st_dev != at_path.st_dev || open_file.st_ino != at_path.st_ino || (uint64_t)open_file.st_size < r->read_B;
}
