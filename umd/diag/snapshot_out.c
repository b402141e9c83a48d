/* SPDX-License-Identifier: MIT */
/* snapshot_out.c - text written, and memory read, by means that a crashed process still has: no lock, no allocation, no stdio. */
#include "snapshot_out.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE_B 4096u

void umd_raw_flush(struct umd_state_out *o)
{
    size_t at = 0;

    while (o->fd >= 0 && at < o->used && !o->failed) {
        ssize_t n = write(o->fd, o->buf + at, o->used - at);
        if (n > 0)
            at += (size_t)n;
        else if (n == 0 || errno != EINTR)
            o->failed = n == 0 ? EIO : errno;
    }
    if (o->fd >= 0)
        o->used = 0;
}

void umd_raw_bytes(struct umd_state_out *o, const char *bytes, size_t n)
{
    while (n && !o->cut) {
        size_t room = o->size - o->used;
        if (o->fd < 0 && n + 1 > room) {
            n = room ? room - 1 : 0;
            o->cut = true;
        } else if (!room) {
            umd_raw_flush(o);
            continue;
        }
        size_t part = n < room ? n : room;
        memcpy(o->buf + o->used, bytes, part);
        o->used += part;
        bytes += part;
        n -= part;
    }
    if (o->fd < 0 && o->size)
        o->buf[o->used] = '\0';
}

void umd_raw_text(struct umd_state_out *o, const char *text) { umd_raw_bytes(o, text, strlen(text)); }

static void number(struct umd_state_out *o, uint64_t v, unsigned base)
{
    char digits[24];
    size_t at = sizeof(digits);

    do
        digits[--at] = "0123456789abcdef"[v % base];
    while (v /= base);
    umd_raw_bytes(o, digits + at, sizeof(digits) - at);
}

void umd_raw_u64(struct umd_state_out *o, uint64_t v) { number(o, v, 10); }

void umd_raw_i64(struct umd_state_out *o, int64_t v)
{
    if (v < 0)
        umd_raw_bytes(o, "-", 1);
    number(o, v < 0 ? -(uint64_t)v : (uint64_t)v, 10);
}

void umd_raw_hex(struct umd_state_out *o, uint64_t v)
{
    umd_raw_bytes(o, "0x", 2);
    number(o, v, 16);
}

void umd_raw_hex_bytes(struct umd_state_out *o, const void *bytes, size_t n)
{
    const uint8_t *b = bytes;

    for (size_t i = 0; i < n; i++) {
        const char pair[2] = { "0123456789abcdef"[b[i] >> 4], "0123456789abcdef"[b[i] & 15] };
        umd_raw_bytes(o, pair, 2);
    }
}

void umd_raw_quoted(struct umd_state_out *o, const char *text)
{
    umd_raw_bytes(o, "\"", 1);
    for (; *text; text++) {
        if (*text >= ' ' && *text < 0x7f && *text != '"' && *text != '\\') {
            umd_raw_bytes(o, text, 1);
        } else {
            umd_raw_bytes(o, "\\x", 2);
            umd_raw_hex_bytes(o, text, 1);
        }
    }
    umd_raw_bytes(o, "\"", 1);
}

static void key_of(struct umd_state_out *o, const char *key)
{
    umd_raw_bytes(o, " ", 1);
    umd_raw_text(o, key);
    umd_raw_bytes(o, "=", 1);
}

void umd_raw_kv_u64(struct umd_state_out *o, const char *key, uint64_t v)
{
    key_of(o, key);
    umd_raw_u64(o, v);
}

void umd_raw_kv_i64(struct umd_state_out *o, const char *key, int64_t v)
{
    key_of(o, key);
    umd_raw_i64(o, v);
}

void umd_raw_kv_hex(struct umd_state_out *o, const char *key, uint64_t v)
{
    key_of(o, key);
    umd_raw_hex(o, v);
}

void umd_raw_kv_text(struct umd_state_out *o, const char *key, const char *text)
{
    key_of(o, key);
    umd_raw_quoted(o, text);
}

/* Where the system call below is forbidden: a pipe takes only bytes that can be read. At most what a pipe holds at once. */
static bool peek_by_pipe(void *to, const void *from, size_t n)
{
    int fds[2];
    bool ok = true;

    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    for (size_t at = 0; ok && at < n;) {
        size_t part = n - at < PAGE_B ? n - at : PAGE_B;
        ok = write(fds[1], (const uint8_t *)from + at, part) == (ssize_t)part && read(fds[0], (uint8_t *)to + at, part) == (ssize_t)part;
        at += part;
    }
    close(fds[0]);
    close(fds[1]);
    return ok;
}

bool umd_peek(void *to, const void *from, size_t n)
{
    struct iovec local = { .iov_base = to, .iov_len = n }, remote = { .iov_base = (void *)(uintptr_t)from, .iov_len = n };

    if (n == 0)
        return true;
    ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    if (got < 0 && (errno == ENOSYS || errno == EPERM))
        return peek_by_pipe(to, from, n);
    return got == (ssize_t)n;
}

/* Page by page: the string may end right before one that is not there. */
bool umd_peek_text(char *to, size_t size, const char *from)
{
    size_t used = 0;

    to[0] = '\0';
    while (used + 1 < size) {
        size_t part = PAGE_B - ((uintptr_t)from + used) % PAGE_B;
        if (part > size - 1 - used)
            part = size - 1 - used;
        if (part > 64)
            part = 64;
        if (!umd_peek(to + used, from + used, part)) {
            to[used] = '\0';
            return used > 0;
        }
        if (memchr(to + used, '\0', part))
            return true;
        used += part;
    }
    to[used] = '\0';
    return true;
}
