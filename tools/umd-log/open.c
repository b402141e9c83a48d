/* SPDX-License-Identifier: MIT */
/* open.c - what a file is tells its first bytes; what needs a file to seek in is copied to one without a name. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "open.h"
#include "record.h"

#define CHUNK_B 65536u

static const char binary_magic[8] = { 'P', 'T', 'R', 'L', 'B', 'L', 'O', 'G' };
static const unsigned char gzip_magic[2] = { 0x1f, 0x8b };

static ssize_t read_retry(int fd, void *buf, size_t n)
{
    ssize_t got;

    do {
        got = read(fd, buf, n);
    } while (got < 0 && errno == EINTR);
    return got;
}

/* Up to n bytes; a pipe gives them in pieces. Value: how many, -1 with errno: EINTR, too, since whoever waits here for a writer heeds signals. */
static ssize_t read_whole(int fd, char *buf, size_t n)
{
    size_t used = 0;

    while (used < n) {
        ssize_t got = read(fd, buf + used, n - used);
        if (got < 0)
            return got;
        if (got == 0)
            break;
        used += (size_t)got;
    }
    return (ssize_t)used;
}

static int put(int fd, const char *bytes, size_t n)
{
    while (n) {
        ssize_t done = write(fd, bytes, n);
        if (done <= 0)
            return errno ? errno : ENOSPC;
        bytes += done;
        n -= (size_t)done;
    }
    return 0;
}

static int nameless(void)
{
    const char *dir = getenv("TMPDIR");
    int fd = open(dir && *dir ? dir : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    return fd >= 0 ? fd : memfd_create("umd-log", MFD_CLOEXEC);
}

/* All that is left of f, after what was looked at, into a nameless file, which takes its place. */
static int spool(struct log_file *f)
{
    char chunk[CHUNK_B];
    int to = nameless(), err = to < 0 ? errno : 0;
    ssize_t got = 1;

    if (!err)
        err = put(to, f->first, f->first_B);
    while (!err && got > 0) {
        got = f->gz ? gunzip_read(f->gz, chunk, sizeof(chunk)) : read_retry(f->fd, chunk, sizeof(chunk));
        if (got < 0)
            err = errno;
        if (got > 0) /* of a damaged compressed file what came before counts */
            err = put(to, chunk, (size_t)got);
    }
    if (err) {
        if (to >= 0)
            close(to);
        return err;
    }
    bool damaged = f->gz && gunzip_is_damaged(f->gz);
    log_file_close(f);
    f->fd = to;
    f->first_B = 0;
    f->whole = true;
    f->damaged = damaged;
    return lseek(to, 0, SEEK_SET) == 0 ? 0 : errno;
}

/* By its descriptor: at the path there may be another file by now. The path only where there is no /proc. */
static int open_binary(struct log_file *f, const char *path)
{
    char own[32];

    snprintf(own, sizeof(own), "/proc/self/fd/%d", f->fd);
    umdErrorDetail unused;
    if (!umdFailed(umd_log_binary_open(path && access(own, F_OK) != 0 ? path : own, &f->binary)))
        return 0;
    (void)umd_record_export(&unused); /* the caller tells it */
    return EBADMSG;
}

/* Compressed: what is inside tells its own first bytes. */
static int open_compressed(struct log_file *f)
{
    f->gz = gunzip_open(f->fd);
    if (!f->gz)
        return ENOMEM;
    f->whole = true;
    for (f->first_B = 0; f->first_B < sizeof(f->first);) {
        ssize_t got = gunzip_read(f->gz, f->first + f->first_B, sizeof(f->first) - f->first_B);
        if (got < 0)
            return errno;
        if (got == 0)
            return 0;
        f->first_B += (size_t)got;
    }
    if (memcmp(f->first, binary_magic, sizeof(binary_magic)) != 0)
        return 0;
    int err = spool(f);
    return err ? err : open_binary(f, NULL);
}

static int look(struct log_file *f, const char *path, bool regular)
{
    ssize_t got = regular ? pread(f->fd, f->first, sizeof(f->first), 0) : read_whole(f->fd, f->first, sizeof(f->first));

    if (got < 0)
        return errno;
    f->first_B = (size_t)got;
    bool binary = f->first_B == sizeof(f->first) && memcmp(f->first, binary_magic, sizeof(binary_magic)) == 0;
    bool compressed = f->first_B >= 2 && memcmp(f->first, gzip_magic, 2) == 0;
    if (!regular && (binary || compressed)) {
        int err = spool(f);
        if (err)
            return err;
        path = NULL;
    }
    if (regular)
        f->first_B = 0;
    return binary ? open_binary(f, path) : compressed ? open_compressed(f) : 0;
}

int log_file_open(struct log_file *f, const char *path)
{
    bool standard = strcmp(path, "-") == 0;
    struct stat st;
    int err;

    *f = (struct log_file){ .fd = -1 };
    f->fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (f->fd < 0)
        return errno;
    if (fstat(f->fd, &st) != 0)
        err = errno;
    else if (S_ISDIR(st.st_mode))
        err = EISDIR;
    else {
        f->stream = !S_ISREG(st.st_mode);
        f->dev = st.st_dev;
        f->ino = st.st_ino;
        err = look(f, standard ? NULL : path, S_ISREG(st.st_mode));
    }
    if (err)
        log_file_close(f);
    return err;
}

void log_file_close(struct log_file *f)
{
    umd_log_binary_close(f->binary);
    gunzip_close(f->gz);
    if (f->fd >= 0)
        close(f->fd);
    f->binary = NULL;
    f->gz = NULL;
    f->fd = -1;
}
