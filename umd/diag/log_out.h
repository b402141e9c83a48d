/* SPDX-License-Identifier: MIT */
/* log_out.h - text put together piece by piece, without printf: a line costs a fraction of a microsecond. */
#ifndef UMD_LOG_OUT_H
#define UMD_LOG_OUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* len counts on where buf is full, as snprintf does. */
struct umd_out {
    char *buf;
    size_t size, len;
};

static inline void umd_out_mem(struct umd_out *o, const char *s, size_t n)
{
    if (o->len < o->size)
        memcpy(o->buf + o->len, s, n <= o->size - o->len ? n : o->size - o->len);
    o->len += n;
}

static inline void umd_out_char(struct umd_out *o, char c)
{
    if (o->len < o->size)
        o->buf[o->len] = c;
    o->len++;
}

static inline void umd_out_str(struct umd_out *o, const char *s) { umd_out_mem(o, s, strlen(s)); }
#define UMD_OUT_LIT(o_, lit_) umd_out_mem((o_), "" lit_, sizeof(lit_) - 1)

/* At least `digits` digits, zeros in front. */
static inline void umd_out_u64_wide(struct umd_out *o, uint64_t v, unsigned digits)
{
    char text[20];
    unsigned at = sizeof(text);

    do {
        text[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    while (sizeof(text) - at < digits && at)
        text[--at] = '0';
    umd_out_mem(o, text + at, sizeof(text) - at);
}

static inline void umd_out_u64(struct umd_out *o, uint64_t v) { umd_out_u64_wide(o, v, 1); }

static inline void umd_out_i64(struct umd_out *o, int64_t v)
{
    if (v < 0)
        umd_out_char(o, '-');
    umd_out_u64(o, v < 0 ? (uint64_t)0 - (uint64_t)v : (uint64_t)v);
}

static inline void umd_out_hex(struct umd_out *o, uint32_t v, unsigned digits)
{
    for (unsigned i = digits; i-- > 0;)
        umd_out_char(o, "0123456789abcdef"[v >> (4 * i) & 15]);
}

#endif
