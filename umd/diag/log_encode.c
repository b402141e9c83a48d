/* SPDX-License-Identifier: MIT */
/* log_encode.c - arguments of a format as raw bytes, and back to text. One scanner of conversions serves both ways. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "log_encode.h"
#include "sys.h"

/* Each but text is 8 bytes, so that a call without text is copied as it is. */
enum arg_kind { ARG_NONE, ARG_INT, ARG_LONG, ARG_DOUBLE, ARG_STRING, ARG_POINTER, ARG_COUNT_PTR, ARG_BAD };

/* One conversion of a format: "%-*.*lld". */
struct conv {
    const char *begin, *end;    /* '%' and one past the conversion letter */
    bool star_width, star_precision;
    int precision;              /* -1: none given */
    enum arg_kind kind;
    char letter;
};

static enum arg_kind kind_of(char letter, char length)
{
    switch (letter) {
    case 'd': case 'i': case 'u': case 'x': case 'X': case 'o':
        return length && length != 'h' ? ARG_LONG : ARG_INT;
    case 'c':
        return length == 'l' ? ARG_BAD : ARG_INT;
    case 'e': case 'E': case 'f': case 'F': case 'g': case 'G': case 'a': case 'A':
        return ARG_DOUBLE;
    case 's':
        return length == 'l' ? ARG_BAD : ARG_STRING;
    case 'p': return ARG_POINTER;
    case 'n': return ARG_COUNT_PTR;
    case '%': return ARG_NONE;
    default: return ARG_BAD;
    }
}

/* Finds the next conversion at or after *p; false at the end of the format. */
static bool next_conv(const char **p, struct conv *c)
{
    const char *s = strchr(*p, '%');

    if (!s)
        return false;
    *c = (struct conv){ .begin = s++, .precision = -1 };
    s += strspn(s, "-+ #0'I");
    if (*s == '*') {
        c->star_width = true;
        s++;
    }
    s += strspn(s, "0123456789");
    if (*s == '.') {
        s++;
        c->precision = 0;
        if (*s == '*') {
            c->star_precision = true;
            s++;
        }
        for (; *s >= '0' && *s <= '9'; s++)
            c->precision = c->precision < 100000 ? c->precision * 10 + (*s - '0') : c->precision;
    }
    char length = '\0';
    for (; *s && strchr("hlLqjzt", *s); s++)
        length = *s;
    c->letter = *s;
    c->kind = *s ? kind_of(*s, length) : ARG_BAD;
    c->end = *s ? s + 1 : s;
    *p = c->end;
    return true;
}

struct out {
    uint8_t *buf;
    size_t size, used;
    bool full;
};

static void put(struct out *o, const void *bytes, size_t n)
{
    if (o->full || n > o->size - o->used) {
        o->full = true;
        return;
    }
    memcpy(o->buf + o->used, bytes, n);
    o->used += n;
}

/* Length, then the bytes; NULL is length 0xffff. Cut to what fits. */
static void put_string(struct out *o, const char *s, int precision)
{
    uint16_t n = 0xffff;

    if (o->full || o->size - o->used < sizeof(n)) {
        o->full = true;
        return;
    }
    if (!s) {
        put(o, &n, sizeof(n));
        return;
    }
    size_t room = o->size - o->used - sizeof(n);
    size_t max = precision >= 0 && (size_t)precision < room ? (size_t)precision : room;
    size_t len = strnlen(s, max < 0xfffe ? max : 0xfffe);
    n = (uint16_t)len;
    put(o, &n, sizeof(n));
    put(o, s, len);
}

size_t umd_log_encode(uint8_t *buf, size_t size, const char *fmt, const uint64_t *args, uint32_t count)
{
    struct out o = { .buf = buf, .size = size };
    const uint64_t *end = args + count;
    struct conv c;

    for (const char *p = fmt; next_conv(&p, &c) && c.kind != ARG_BAD;) {
        uint32_t stars = (uint32_t)c.star_width + (uint32_t)c.star_precision;
        uint32_t needs = stars + (c.kind != ARG_NONE);
        if (needs > (size_t)(end - args))
            break;
        int precision = c.star_precision ? (int)args[stars - 1] : c.precision;
        put(&o, args, stars * sizeof(*args));
        if (c.kind == ARG_STRING)
            put_string(&o, (const char *)(uintptr_t)args[stars], precision);
        else if (c.kind != ARG_NONE)
            put(&o, args + stars, sizeof(*args));
        args += needs;
    }
    return o.used;
}

struct in {
    const uint8_t *at;
    size_t left;
    bool cut;
};

static void get(struct in *in, void *to, size_t n)
{
    if (in->cut || n > in->left) {
        in->cut = true;
        memset(to, 0, n);
        return;
    }
    memcpy(to, in->at, n);
    in->at += n;
    in->left -= n;
}

static int64_t get_i64(struct in *in)
{
    int64_t v;
    get(in, &v, sizeof(v));
    return v;
}

struct text {
    char *buf;
    size_t size, used;
};

static void add(struct text *t, const char *s, size_t n)
{
    size_t room = t->size - 1 - t->used;

    if (n > room)
        n = room;
    memcpy(t->buf + t->used, s, n);
    t->used += n;
    t->buf[t->used] = '\0';
}

static void added(struct text *t, int n)
{
    size_t room = t->size - 1 - t->used;

    if (n > 0)
        t->used += (size_t)n < room ? (size_t)n : room;
}

/* The conversion's own text with stars replaced by their values, ready for snprintf. Length modifiers become `length`. */
static void spec_of(const struct conv *c, struct in *in, const char *length, char *spec, size_t size)
{
    char with_numbers[64];
    size_t n = 0;

    for (const char *s = c->begin; s < c->end - 1 && n + 16 < sizeof(with_numbers); s++) {
        if (*s == '*') {
            int64_t v = get_i64(in);
            bool is_precision = s > c->begin && s[-1] == '.';
            if (is_precision && v < 0)
                n--; /* a negative precision means none */
            else
                n += (size_t)snprintf(with_numbers + n, sizeof(with_numbers) - n, "%d", (int)(v > 4096 ? 4096 : v < -4096 ? -4096 : v));
        } else if (!strchr("hlLqjzt", *s)) {
            with_numbers[n++] = *s;
        }
    }
    with_numbers[n] = '\0';
    snprintf(spec, size, "%s%s%c", with_numbers, length, c->letter);
}

/* Width and precision have been checked by the scanner; the argument's type follows from the kind. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void add_string(struct text *t, const struct conv *c, struct in *in)
{
    char spec[96];
    uint16_t n;

    spec_of(c, in, "", spec, sizeof(spec));
    get(in, &n, sizeof(n));
    if (in->cut || (n != 0xffff && n > in->left)) {
        in->cut = true;
        return;
    }
    if (n == 0xffff) {
        added(t, snprintf(t->buf + t->used, t->size - t->used, "(null)"));
        return;
    }
    char copy[1025];
    size_t len = n < sizeof(copy) - 1 ? n : sizeof(copy) - 1;
    memcpy(copy, in->at, len);
    copy[len] = '\0';
    in->at += n;
    in->left -= n;
    added(t, snprintf(t->buf + t->used, t->size - t->used, spec, copy));
}

/* h and hh cut the value as printf does. */
static int64_t narrow(const struct conv *c, int64_t v)
{
    const char *h = memchr(c->begin, 'h', (size_t)(c->end - c->begin));
    bool is_signed = c->letter == 'd' || c->letter == 'i';

    if (c->kind == ARG_INT && !h)
        return is_signed || c->letter == 'c' ? (int64_t)(int)v : (int64_t)(unsigned)v;
    if (!h || c->kind != ARG_INT)
        return v;
    if (h[1] == 'h')
        return is_signed ? (int64_t)(signed char)v : (int64_t)(unsigned char)v;
    return is_signed ? (int64_t)(short)v : (int64_t)(unsigned short)v;
}

static void add_number(struct text *t, const struct conv *c, struct in *in)
{
    char *to = t->buf + t->used;
    size_t room = t->size - t->used;
    char spec[96];

    if (c->kind == ARG_DOUBLE) {
        double d = 0;
        spec_of(c, in, "", spec, sizeof(spec));
        get(in, &d, sizeof(d));
        if (!in->cut)
            added(t, snprintf(to, room, spec, d));
        return;
    }
    bool plain_char = c->letter == 'c';
    spec_of(c, in, plain_char ? "" : "ll", spec, sizeof(spec));
    int64_t v = narrow(c, get_i64(in));
    if (in->cut)
        return;
    if (plain_char)
        added(t, snprintf(to, room, spec, (int)(v >= 0 && v < 256 ? v : '?')));
    else
        added(t, snprintf(to, room, spec, (long long)v));
}
#pragma GCC diagnostic pop

static void add_conv(struct text *t, const struct conv *c, struct in *in)
{
    char number[40];
    uint64_t v;

    switch (c->kind) {
    case ARG_NONE:
        add(t, "%", 1);
        break;
    case ARG_STRING:
        add_string(t, c, in);
        break;
    case ARG_POINTER: /* an address would make two equal runs differ */
        v = (uint64_t)get_i64(in);
        if (umd_sys_stepped())
            snprintf(number, sizeof(number), "(address)");
        else
            snprintf(number, sizeof(number), "0x%llx", (unsigned long long)v);
        add(t, number, strlen(number));
        break;
    case ARG_COUNT_PTR: /* %n writes to memory: never done from a log */
        (void)get_i64(in);
        break;
    default:
        add_number(t, c, in);
    }
}

int umd_log_decode(char *out, size_t out_size, const char *fmt, const uint8_t *args, size_t args_B)
{
    struct text t = { .buf = out, .size = out_size };
    struct in in = { .at = args, .left = args_B };
    const char *from = fmt, *p = fmt;
    struct conv c;

    if (!out_size)
        return 1;
    out[0] = '\0';
    while (next_conv(&p, &c)) {
        add(&t, from, (size_t)(c.begin - from));
        from = p;
        if (c.kind == ARG_BAD) { /* what follows has no known type: shown as it stands */
            add(&t, c.begin, strlen(c.begin));
            return 0;
        }
        add_conv(&t, &c, &in);
        if (in.cut) {
            add(&t, "<cut>", 5);
            return 1;
        }
    }
    add(&t, from, strlen(from));
    return 1;
}
