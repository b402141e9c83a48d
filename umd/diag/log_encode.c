/* SPDX-License-Identifier: MIT */
/* log_encode.c - printf arguments as raw bytes, and back to text. One scanner of conversions serves both ways. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "log_encode.h"
#include "sys.h"

enum arg_kind { ARG_NONE, ARG_INT, ARG_LONG, ARG_LLONG, ARG_INTMAX, ARG_SIZE, ARG_PTRDIFF, ARG_DOUBLE, ARG_LDOUBLE,
                ARG_STRING, ARG_WSTRING, ARG_POINTER, ARG_ERRNO, ARG_COUNT_PTR, ARG_WCHAR, ARG_BAD };

/* One conversion of a format: "%-*.*lld". */
struct conv {
    const char *begin, *end;    /* '%' and one past the conversion letter */
    bool star_width, star_precision;
    int precision;              /* -1: none given */
    enum arg_kind kind;
    char letter;
};

static enum arg_kind int_kind(const char *length)
{
    if (length[0] == 'l')
        return length[1] == 'l' ? ARG_LLONG : ARG_LONG;
    switch (length[0]) {
    case 'q': return ARG_LLONG;
    case 'j': return ARG_INTMAX;
    case 'z': return ARG_SIZE;
    case 't': return ARG_PTRDIFF;
    default: return ARG_INT;
    }
}

static enum arg_kind kind_of(char letter, const char *length)
{
    switch (letter) {
    case 'd': case 'i': case 'u': case 'x': case 'X': case 'o':
        return int_kind(length);
    case 'c':
        return length[0] == 'l' ? ARG_WCHAR : ARG_INT;
    case 'e': case 'E': case 'f': case 'F': case 'g': case 'G': case 'a': case 'A':
        return length[0] == 'L' ? ARG_LDOUBLE : ARG_DOUBLE;
    case 's':
        return length[0] == 'l' ? ARG_WSTRING : ARG_STRING;
    case 'p': return ARG_POINTER;
    case 'm': return ARG_ERRNO;
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
    char length[3] = "";
    for (size_t i = 0; *s && strchr("hlLqjzt", *s); s++)
        if (i < 2)
            length[i++] = *s;
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

static void put_u64(struct out *o, uint64_t v) { put(o, &v, sizeof(v)); }

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

/* Wide strings are kept to what ASCII can show. */
static void put_wide(struct out *o, const wchar_t *w, int precision)
{
    char narrow[128];
    size_t n = 0;

    if (!w) {
        put_string(o, NULL, -1);
        return;
    }
    for (; n + 1 < sizeof(narrow) && (precision < 0 || n < (size_t)precision) && w[n]; n++)
        narrow[n] = w[n] >= L' ' && w[n] < 127 ? (char)w[n] : '?';
    narrow[n] = '\0';
    put_string(o, narrow, -1);
}

/* All that the va_list holds for one conversion. va_list travels by pointer, since it may be an array type. */
struct args { va_list ap; };

static void put_arg(struct out *o, const struct conv *c, struct args *a, int precision, int saved_errno)
{
    long double ld;
    double d;

    switch (c->kind) {
    case ARG_NONE: break;
    case ARG_INT: put_u64(o, (uint64_t)(int64_t)va_arg(a->ap, int)); break;
    case ARG_LONG: put_u64(o, (uint64_t)va_arg(a->ap, long)); break;
    case ARG_LLONG: put_u64(o, (uint64_t)va_arg(a->ap, long long)); break;
    case ARG_INTMAX: put_u64(o, (uint64_t)va_arg(a->ap, intmax_t)); break;
    case ARG_SIZE: put_u64(o, va_arg(a->ap, size_t)); break;
    case ARG_PTRDIFF: put_u64(o, (uint64_t)va_arg(a->ap, ptrdiff_t)); break;
    case ARG_DOUBLE: d = va_arg(a->ap, double); put(o, &d, sizeof(d)); break;
    case ARG_LDOUBLE: ld = va_arg(a->ap, long double); put(o, &ld, sizeof(ld)); break;
    case ARG_STRING: put_string(o, va_arg(a->ap, const char *), precision); break;
    case ARG_WSTRING: put_wide(o, va_arg(a->ap, const wchar_t *), precision); break;
    case ARG_POINTER: put_u64(o, (uint64_t)(uintptr_t)va_arg(a->ap, void *)); break;
    case ARG_COUNT_PTR: (void)va_arg(a->ap, void *); break; /* %n writes to memory: never done from a log */
    case ARG_ERRNO: put_u64(o, (uint64_t)saved_errno); break;
    case ARG_WCHAR: put_u64(o, (uint64_t)va_arg(a->ap, wint_t)); break;
    case ARG_BAD: break;
    }
}

size_t umd_log_encode(uint8_t *buf, size_t size, const char *fmt, va_list ap)
{
    struct out o = { .buf = buf, .size = size };
    int saved_errno = errno;
    struct args a;
    struct conv c;

    va_copy(a.ap, ap);
    for (const char *p = fmt; next_conv(&p, &c) && c.kind != ARG_BAD;) {
        int precision = c.precision;
        if (c.star_width)
            put_u64(&o, (uint64_t)(int64_t)va_arg(a.ap, int));
        if (c.star_precision) {
            precision = va_arg(a.ap, int);
            put_u64(&o, (uint64_t)(int64_t)precision);
        }
        put_arg(&o, &c, &a, precision, saved_errno);
    }
    va_end(a.ap);
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

    if (c->kind == ARG_DOUBLE || c->kind == ARG_LDOUBLE) {
        double d = 0;
        long double ld = 0;
        spec_of(c, in, c->kind == ARG_LDOUBLE ? "L" : "", spec, sizeof(spec));
        if (c->kind == ARG_LDOUBLE)
            get(in, &ld, sizeof(ld));
        else
            get(in, &d, sizeof(d));
        if (!in->cut)
            added(t, c->kind == ARG_LDOUBLE ? snprintf(to, room, spec, ld) : snprintf(to, room, spec, d));
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
    case ARG_STRING: case ARG_WSTRING:
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
    case ARG_ERRNO: {
        char text[80];
        const char *s = strerror_r((int)get_i64(in), text, sizeof(text));
        add(t, s, strlen(s));
        break;
    }
    case ARG_COUNT_PTR:
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
