/* SPDX-License-Identifier: MIT */
/* figures.c - figures of records: the one formatter that writes "key=value" text, and the one parser that reads it. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag_internal.h"

/* ---- Reading ---- */

static bool is_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_key(char c) { return is_alpha(c) || is_digit(c) || c == '_' || c == '.'; }
/* What may stand in a value without quotes. */
static bool is_word(char c) { return (unsigned char)c > ' ' && c != 0x7f && c != '"' && c != '\\'; }

static int hex_digit(char c)
{
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* One character of a quoted value; *s moves on. What is no escape of ours stands for itself. */
static char unescape(const char **s)
{
    const char *at = *s;
    char c = *at++;

    if (c == '\\') {
        switch (*at) {
        case '"': case '\\': c = *at++; break;
        case 'n': c = '\n'; at++; break;
        case 'r': c = '\r'; at++; break;
        case 't': c = '\t'; at++; break;
        case 'x':
            if (hex_digit(at[1]) >= 0 && hex_digit(at[2]) >= 0) {
                c = (char)(hex_digit(at[1]) * 16 + hex_digit(at[2]));
                at += 3;
            }
            break;
        default: break;
        }
    }
    *s = at;
    return c;
}

/* One past the closing quote of the value whose content begins at s; NULL where it has no end. */
static const char *quoted_end(const char *s)
{
    for (; *s; s++) {
        if (*s == '\\' && (s[1] == '"' || s[1] == '\\'))
            s++;
        else if (*s == '"')
            return s + 1;
    }
    return NULL;
}

static umdFigureUnit unit_of(const char *key, size_t n)
{
    static const struct { const char *suffix; umdFigureUnit unit; } units[] = {
        { "_B", UMD_UNIT_BYTES }, { "_ns", UMD_UNIT_NS }, { "_us", UMD_UNIT_US }, { "_ms", UMD_UNIT_MS },
    };

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        size_t k = strlen(units[i].suffix);
        if (n > k && memcmp(key + n - k, units[i].suffix, k) == 0)
            return units[i].unit;
    }
    return UMD_UNIT_NONE;
}

/* [-]digits.digits[e[+-]digits], which is how JSON writes one, too. */
static bool is_double(const char *s)
{
    s += *s == '-';
    if (!is_digit(*s) || (*s == '0' && is_digit(s[1])))
        return false;
    while (is_digit(*s))
        s++;
    if (*s != '.' && *s != 'e')
        return false;
    if (*s == '.') {
        if (!is_digit(*++s))
            return false;
        while (is_digit(*s))
            s++;
    }
    if (*s == 'e') {
        s++;
        s += *s == '+' || *s == '-';
        if (!is_digit(*s))
            return false;
        while (is_digit(*s))
            s++;
    }
    return *s == '\0';
}

/* Kind and value of an unquoted value, from f->text. */
static void classify(umdFigure *f)
{
    const char *s = f->text;
    bool negative = *s == '-', hex = s[0] == '0' && s[1] == 'x' && s[2];
    const char *digits = hex ? s + 2 : s + negative;
    size_t n = strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789");

    f->kind = UMD_FIGURE_STRING;
    if (!strcmp(s, "true") || !strcmp(s, "false")) {
        f->kind = UMD_FIGURE_BOOL;
        f->uint_value = (uint64_t)(*s == 't');
        f->int_value = *s == 't';
    } else if (n && !digits[n] && !(negative && hex)) {
        int saved = errno;
        errno = 0;
        unsigned long long v = strtoull(digits, NULL, hex ? 16 : 10);
        bool fits = errno == 0 && (!negative || v <= (uint64_t)INT64_MAX + 1);
        errno = saved;
        if (!fits)
            return;
        f->kind = negative ? UMD_FIGURE_INT : UMD_FIGURE_UINT;
        f->uint_value = negative ? 0 : v;
        f->int_value = negative ? (int64_t)(0 - (uint64_t)v) : v > INT64_MAX ? INT64_MAX : (int64_t)v;
        f->double_value = negative ? -(double)v : (double)v;
    } else if (is_double(s)) {
        f->kind = UMD_FIGURE_DOUBLE;
        f->double_value = strtod(s, NULL);
    }
}

/* The figure that begins at s, and where it ends. False: none does. */
static bool figure_at(const char *s, umdFigure *f, const char **end)
{
    size_t k = 0, n = 0;

    while (is_key(s[k]))
        k++;
    if (k == 0 || k >= sizeof(f->key) || !is_alpha(s[0]) || s[k] != '=')
        return false;
    const char *v = s + k + 1;
    bool quoted = *v == '"';
    if (quoted) {
        *end = quoted_end(v + 1);
        if (!*end || (**end && **end != ' '))
            return false;
    } else {
        for (*end = v; is_word(**end); (*end)++)
            ;
        if (*end == v || (**end && **end != ' '))
            return false;
    }
    memcpy(f->key, s, k);
    f->key[k] = '\0';
    f->unit = unit_of(s, k);
    f->kind = UMD_FIGURE_STRING;
    f->int_value = 0;
    f->uint_value = 0;
    f->double_value = 0;
    const char *stop = quoted ? *end - 1 : *end;
    for (v += quoted; v < stop && n + 1 < sizeof(f->text); n++)
        f->text[n] = quoted ? unescape(&v) : *v++;
    f->text[n] = '\0';
    if (!quoted)
        classify(f);
    return true;
}

bool umdFigureNext(const char **cursor, umdFigure *figure_out)
{
    if (!cursor || !*cursor || !figure_out)
        return false;
    const char *s = *cursor, *end;

    while (*s) {
        s += strspn(s, " ");
        if (figure_at(s, figure_out, &end)) {
            *cursor = end;
            return true;
        }
        s += strcspn(s, " ");
    }
    *cursor = s;
    return false;
}

static bool find(const char *text, const char *key, size_t key_len, umdFigure *out)
{
    const char *s = text, *end;

    while (*s) {
        s += strspn(s, " ");
        if (!strncmp(s, key, key_len) && s[key_len] == '=' && figure_at(s, out, &end))
            return true;
        size_t k = strcspn(s, " =");
        if (s[k] == '=' && s[k + 1] == '"' && (end = quoted_end(s + k + 2)))
            s = end; /* what is inside quotes is no figure */
        else
            s += strcspn(s, " ");
    }
    return false;
}

bool umdErrorDetailFigure(const umdErrorDetail *detail, const char *key, umdFigure *figure_out)
{
    if (!detail || !key || !figure_out || !memchr(detail->figures, '\0', sizeof(detail->figures)))
        return false;
    for (const char *k = key; *k; k += strcspn(k, "|"), k += *k == '|')
        if (find(detail->figures, k, strcspn(k, "|"), figure_out))
            return true;
    return false;
}

/* ---- Writing ---- */

struct out {
    char *buf;
    size_t max, len;    /* max: characters, without the end */
    size_t keep;        /* last length at which "..." and the closing quote would still fit */
    bool quoted, full;
    bool odd;           /* an unquoted value got what needs quotes */
};

static void put(struct out *o, const char *s, size_t n)
{
    if (o->full || n > o->max - o->len) {
        o->full = true;
        return;
    }
    memcpy(o->buf + o->len, s, n);
    o->len += n;
    if (o->len + 3 + o->quoted <= o->max)
        o->keep = o->len;
}

/* One character of a value: as it is, or escaped inside quotes. */
static void put_value(struct out *o, const char *s, size_t n)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < n && !o->full; i++) {
        char c = s[i], esc[4] = { '\\', c };
        if (!o->quoted) {
            o->odd |= !is_word(c);
            put(o, &c, 1);
        } else if (c == '"' || c == '\\') {
            put(o, esc, 2);
        } else if (c == '\n' || c == '\t' || c == '\r') {
            esc[1] = c == '\n' ? 'n' : c == '\t' ? 't' : 'r';
            put(o, esc, 2);
        } else if ((unsigned char)c < ' ' || c == 0x7f) {
            memcpy(esc, (char[]){ '\\', 'x', digits[(unsigned char)c >> 4], digits[c & 15] }, 4);
            put(o, esc, 4);
        } else {
            put(o, &c, 1);
        }
    }
}

static void put_unsigned(struct out *o, uint64_t v, unsigned base)
{
    char text[24], *at = text + sizeof(text);

    do {
        *--at = "0123456789abcdef"[v % base];
        v /= base;
    } while (v);
    put(o, at, (size_t)(text + sizeof(text) - at));
}

struct args { va_list ap; };

/* One conversion of printf. */
struct conv {
    char spec[32];      /* for snprintf: stars replaced, length modifiers gone */
    bool plain;         /* neither flags nor width nor precision */
    int precision;      /* -1: none */
    int longs;          /* -1: char or short, 0: int, 1: long and what is as wide, 2: long long */
    char letter;
};

static int star(struct args *a, size_t *n, char *spec, size_t size)
{
    int v = va_arg(a->ap, int);
    int k = snprintf(spec + *n, size - *n, "%d", v);

    *n += k > 0 && (size_t)k < size - *n ? (size_t)k : 0;
    return v;
}

/* Reads the conversion behind '%'; *fmt is left behind its letter. */
static void read_conv(const char **fmt, struct args *a, struct conv *c)
{
    const char *s = *fmt;
    size_t n = 1;

    *c = (struct conv){ .spec = "%", .precision = -1 };
    for (; *s && strchr("-+ #0'123456789.*", *s); s++) {
        if (*s == '.') {
            c->precision = 0;
            c->spec[n++] = '.';
        } else if (*s == '*') {
            int v = star(a, &n, c->spec, sizeof(c->spec) - 4);
            if (c->precision >= 0)
                c->precision = v;
        } else if (n < sizeof(c->spec) - 6) {
            c->spec[n++] = *s;
            if (c->precision >= 0)
                c->precision = c->precision * 10 + (*s - '0');
        }
    }
    c->plain = n == 1;
    for (; *s && strchr("hlLqjzt", *s); s++)
        c->longs += *s == 'h' ? -1 : *s == 'l' ? 1 : 2;
    c->letter = *s;
    c->spec[n] = '\0';
    *fmt = *s ? s + 1 : s;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void put_number(struct out *o, struct conv *c, struct args *a)
{
    char text[64], spec[40];
    int n;

    if (strchr("aAeEfFgG", c->letter)) {
        snprintf(spec, sizeof(spec), "%s%c", c->spec, c->letter);
        n = snprintf(text, sizeof(text), spec, va_arg(a->ap, double));
    } else if (c->letter == 'd' || c->letter == 'i') {
        int64_t v = c->longs > 0 ? va_arg(a->ap, int64_t) : va_arg(a->ap, int);
        if (c->plain) {
            if (v < 0)
                put(o, "-", 1);
            put_unsigned(o, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, 10);
            return;
        }
        snprintf(spec, sizeof(spec), "%slld", c->spec);
        n = snprintf(text, sizeof(text), spec, (long long)v);
    } else {
        uint64_t v = c->longs > 0 ? va_arg(a->ap, uint64_t) : va_arg(a->ap, unsigned);
        if (c->plain && (c->letter == 'u' || c->letter == 'x')) {
            put_unsigned(o, v, c->letter == 'u' ? 10 : 16);
            return;
        }
        snprintf(spec, sizeof(spec), "%sll%c", c->spec, c->letter);
        n = snprintf(text, sizeof(text), spec, (unsigned long long)v);
    }
    put_value(o, text, n < 0 ? 0 : (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}
#pragma GCC diagnostic pop

static void put_conv(struct out *o, const char **fmt, struct args *a)
{
    struct conv c;

    read_conv(fmt, a, &c);
    if (c.letter == 's') {
        const char *s = va_arg(a->ap, const char *);
        s = s ? s : "NULL";
        put_value(o, s, c.precision >= 0 ? strnlen(s, (size_t)c.precision) : strlen(s));
    } else if (c.letter == '%') {
        put_value(o, "%", 1);
    } else if (c.letter == 'c') {
        char v = (char)va_arg(a->ap, int);
        put_value(o, &v, 1);
    } else if (c.letter && strchr("diuxXoaAeEfFgG", c.letter)) {
        put_number(o, &c, a);
    } else { /* an address of the host has no place in a record, and what is unknown has no type */
        if (c.letter == 'p')
            (void)va_arg(a->ap, void *);
        put_value(o, "?", 1);
    }
}

/* The value did not fit: what fits stands, and says so. */
static void cut(struct out *o, size_t value_at, size_t figure_at_len)
{
    o->full = false;
    if (o->keep < value_at + o->quoted) { /* not even its begin */
        o->len = figure_at_len;
    } else {
        o->len = o->keep;
        put(o, "...\"", 3 + o->quoted);
    }
    o->full = true;
}

/* An unquoted value turned out to hold blanks, quotes or control characters, or nothing: it is written again, in quotes. */
static void requote(struct out *o, size_t value_at)
{
    char copy[UMD_RECORD_FIGURES];
    size_t n = o->len - value_at < sizeof(copy) ? o->len - value_at : sizeof(copy);

    memcpy(copy, o->buf + value_at, n);
    o->len = value_at;
    o->keep = 0;
    o->full = false;
    o->quoted = true;
    put(o, "\"", 1);
    put_value(o, copy, n);
    put(o, "\"", 1);
}

/* "key=value" of the format, *fmt left at the blank behind it or at its end. */
static void put_figure(struct out *o, const char **fmt, struct args *a)
{
    const char *f = *fmt;
    const size_t begin = o->len;

    if (begin)
        put(o, " ", 1);
    for (; *f && *f != '=' && *f != ' '; f++)
        put(o, f, 1);
    if (*f == '=')
        put(o, f++, 1);
    const size_t value_at = o->len;
    o->odd = false;
    o->quoted = *f == '"';
    if (o->full) {
        o->len = begin;
        return; /* what follows is left out */
    }
    o->keep = 0;
    if (o->quoted)
        put(o, f++, 1);
    while (*f && *f != (o->quoted ? '"' : ' ')) {
        if (*f == '%') {
            f++;
            put_conv(o, &f, a);
        } else {
            put_value(o, f++, 1);
        }
    }
    if (o->quoted)
        put(o, "\"", 1);
    else if (o->odd || o->len == value_at)
        requote(o, value_at);
    if (*f == '"')
        f++;
    if (o->full)
        cut(o, value_at, begin);
    *fmt = f;
}

/* All of the text is figures. */
static bool are_figures(const char *s)
{
    umdFigure f;

    while (*s) {
        if (!figure_at(s, &f, &s) || (*s && !s[1]))
            return false;
        s += *s == ' ';
    }
    return true;
}

/* Figures that the caller has put together already: "... %s" at the end of a format. Anything else is a defect of it, and kept as a value. */
static void put_tail(struct out *o, const char *s)
{
    const size_t begin = o->len;

    if (!s || !*s)
        return;
    if (begin)
        put(o, " ", 1);
    if (are_figures(s)) {
        put(o, s, strlen(s));
    } else {
        put(o, "tail=\"", 6);
        o->quoted = true;
        put_value(o, s, strlen(s));
        put(o, "\"", 1);
    }
    if (o->full)
        o->len = begin; /* all or nothing */
}

size_t umd_figures_vformat(char *buf, size_t size, const char *fmt, va_list ap)
{
    struct out o = { .buf = buf, .max = size - 1 };
    struct args a;

    va_copy(a.ap, ap);
    while (*fmt && !o.full) {
        if (!strcmp(fmt, "%s")) {
            put_tail(&o, va_arg(a.ap, const char *));
            break;
        }
        put_figure(&o, &fmt, &a);
        fmt += strspn(fmt, " ");
    }
    va_end(a.ap);
    buf[o.len] = '\0';
    return o.len;
}

void umd_figures_append(char *figures, size_t size, const char *fmt, ...)
{
    size_t used = strnlen(figures, size - 1);
    va_list ap;

    figures[used] = '\0';
    if (used + 3 > size)
        return;
    va_start(ap, fmt);
    size_t blank = used != 0;
    if (umd_figures_vformat(figures + used + blank, size - used - blank, fmt, ap) && blank)
        figures[used] = ' ';
    va_end(ap);
}
