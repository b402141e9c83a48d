/* SPDX-License-Identifier: MIT */
/*
 * gunzip.c - bytes out of a gzip file. Unlike gzread, which drops the last piece where an error follows it, all that was inflated before a
 * damaged place is handed out: of a small log that piece is the whole of it.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "gunzip.h"

#define IN_B 65536u
#define GZIP_ONLY (15 + 16)     /* inflateInit2: the largest window, a gzip head */

struct gunzip {
    z_stream z;
    int fd;
    bool member;                /* in the midst of one */
    bool end, damaged;
    unsigned char in[IN_B];
};

struct gunzip *gunzip_open(int fd)
{
    struct gunzip *g = calloc(1, sizeof(*g));

    if (g && inflateInit2(&g->z, GZIP_ONLY) != Z_OK) {
        free(g);
        return NULL;
    }
    if (g)
        g->fd = fd;
    return g;
}

void gunzip_close(struct gunzip *g)
{
    if (!g)
        return;
    inflateEnd(&g->z);
    free(g);
}

static ssize_t more(struct gunzip *g)
{
    ssize_t got;

    do {
        got = read(g->fd, g->in, sizeof(g->in));
    } while (got < 0 && errno == EINTR);
    g->z.next_in = g->in;
    g->z.avail_in = got > 0 ? (uInt)got : 0;
    return got;
}

ssize_t gunzip_read(struct gunzip *g, void *to, size_t n)
{
    const uInt room = n < IN_B ? (uInt)n : IN_B;

    g->z.next_out = to;
    g->z.avail_out = room;
    while (!g->end && g->z.avail_out == room) {
        ssize_t got = g->z.avail_in ? 1 : more(g);
        if (got < 0)
            return -1;
        if (got == 0) { /* in the midst of a member: cut off */
            g->damaged = g->member;
            g->end = true;
            break;
        }
        g->member = true;
        int code = inflate(&g->z, Z_NO_FLUSH);
        if (code == Z_STREAM_END) {
            g->member = false;
            (void)inflateReset(&g->z);
        } else if (code != Z_OK && code != Z_BUF_ERROR) {
            g->damaged = g->end = true;
        }
    }
    return (ssize_t)(room - g->z.avail_out);
}

bool gunzip_is_damaged(const struct gunzip *g) { return g->damaged; }
