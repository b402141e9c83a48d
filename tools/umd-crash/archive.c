/* SPDX-License-Identifier: MIT */
/* archive.c - a tar.gz (POSIX ustar in gzip) whose bytes follow from what is put in alone: no times, no owners. */
#include "archive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

void archive_add(struct archive *a, const char *name, const void *bytes, size_t n)
{
    static const char zeros[BLOCK_B];
    struct header h = { .mode = "0000644", .uid = "0000000", .gid = "0000000", .mtime = "00000000000", .type = '0', .magic = "ustar",
                        .version = { '0', '0' }, .checksum = "       " };
    unsigned sum = ' ';

    snprintf(h.name, sizeof(h.name), "%s", name);
    snprintf(h.size, sizeof(h.size), "%011zo", n);
    for (size_t i = 0; i < sizeof(h); i++) /* with the checksum's own field as blanks; its last one is counted above */
        sum += ((const uint8_t *)&h)[i];
    snprintf(h.checksum, sizeof(h.checksum), "%06o", sum & 0777777);
    h.checksum[7] = ' ';
    put(a, &h, sizeof(h));
    put(a, bytes, n);
    put(a, zeros, (BLOCK_B - n % BLOCK_B) % BLOCK_B);
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
