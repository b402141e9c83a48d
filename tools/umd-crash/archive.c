/* SPDX-License-Identifier: MIT */
/* archive.c - a tar.gz (POSIX ustar in gzip) whose bytes follow from what is put in alone: no times, no owners. */
#include "archive.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define BLOCK_B 512u

/* POSIX.1-2017, pax, "ustar Interchange Format". */
struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6], version[2], user[32], group[32],
        major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct header) == BLOCK_B, "a tar block");

struct archive {
    gzFile gz;
    bool failed;
    char *path, *part;
};

struct archive *archive_begin(const char *path)
{
    struct archive *a = calloc(1, sizeof(*a));
    size_t n = strlen(path);

    if (!a)
        return NULL;
    a->path = strdup(path);
    a->part = malloc(n + sizeof(".XXXXXX"));
    int fd = -1;
    errno = ENOMEM;
    if (a->path && a->part) {
        memcpy(a->part, path, n);
        memcpy(a->part + n, ".XXXXXX", sizeof(".XXXXXX"));
        fd = mkostemp(a->part, O_CLOEXEC); /* the owner's alone: a stack is in it */
    }
    a->gz = fd < 0 ? NULL : gzdopen(fd, "wb9");
    if (a->gz)
        return a;
    int err = errno;
    if (fd >= 0) {
        close(fd);
        unlink(a->part);
    }
    free(a->path);
    free(a->part);
    free(a);
    errno = err;
    return NULL;
}

static void put(struct archive *a, const void *bytes, size_t n)
{
    for (const uint8_t *at = bytes; n && !a->failed;) {
        unsigned part = n < (1u << 20) ? (unsigned)n : 1u << 20;
        a->failed = gzwrite(a->gz, at, part) != (int)part;
        at += part;
        n -= part;
    }
}

/* Eleven octal digits hold 8 GiB; beyond it the number is binary, as GNU and BSD tar write and read it. */
static void put_size(struct header *h, uint64_t size_B)
{
    if (size_B < 1ull << 33) {
        snprintf(h->size, sizeof(h->size), "%011" PRIo64, size_B);
        return;
    }
    h->size[0] = (char)0x80;
    for (size_t i = sizeof(h->size) - 1; i > 0; i--, size_B >>= 8)
        h->size[i] = (char)(size_B & 0xff);
}

static void put_header(struct archive *a, const char *name, uint64_t size_B)
{
    struct header h = { .mode = "0000644", .uid = "0000000", .gid = "0000000", .mtime = "00000000000", .type = '0', .magic = "ustar",
                        .version = { '0', '0' }, .checksum = "       " };
    unsigned sum = ' ';

    snprintf(h.name, sizeof(h.name), "%s", name);
    put_size(&h, size_B);
    for (size_t i = 0; i < sizeof(h); i++) /* with the checksum's own field as blanks; its last one is counted above */
        sum += ((const uint8_t *)&h)[i];
    snprintf(h.checksum, sizeof(h.checksum), "%06o", sum & 0777777);
    h.checksum[7] = ' ';
    put(a, &h, sizeof(h));
}

static void pad(struct archive *a, uint64_t size_B)
{
    static const char zeros[BLOCK_B];
    put(a, zeros, (BLOCK_B - size_B % BLOCK_B) % BLOCK_B);
}

void archive_add(struct archive *a, const char *name, const void *bytes, size_t n)
{
    put_header(a, name, n);
    put(a, bytes, n);
    pad(a, n);
}

bool archive_add_file(struct archive *a, const char *name, int fd)
{
    static char chunk[1u << 16];
    struct stat st;

    if (fstat(fd, &st) != 0)
        return false;
    const uint64_t size_B = (uint64_t)st.st_size;
    put_header(a, name, size_B);
    for (uint64_t done = 0; done < size_B;) {
        const uint64_t left = size_B - done;
        ssize_t got = read(fd, chunk, left < sizeof(chunk) ? (size_t)left : sizeof(chunk));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got < 0 ? errno : ESTALE; /* it was cut short meanwhile */
            return false;
        }
        put(a, chunk, (size_t)got);
        done += (uint64_t)got;
    }
    pad(a, size_B);
    return true;
}

static void finish(struct archive *a)
{
    free(a->path);
    free(a->part);
    free(a);
}

void archive_abort(struct archive *a)
{
    (void)gzclose(a->gz);
    unlink(a->part);
    finish(a);
}

bool archive_end(struct archive *a)
{
    static const char zeros[2 * BLOCK_B];

    put(a, zeros, sizeof(zeros));
    bool ok = gzclose(a->gz) == Z_OK && !a->failed && rename(a->part, a->path) == 0;
    int err = errno;
    if (!ok)
        unlink(a->part);
    finish(a);
    errno = err;
    return ok;
}
