/* SPDX-License-Identifier: MIT */
/* parse_text.c - lines of the text format: time mono level pid.tid module [key=value ...]: message [function file:line]. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"
#include "umd-text.h"

static const char *blank(const char *s)
{
    if (*s != ' ')
        return NULL;
    return s + strspn(s, " ");
}

static const char *number32(const char *s, uint32_t *out)
{
    char *end;

    if (!isdigit((unsigned char)*s))
        return NULL;
    unsigned long long v = strtoull(s, &end, 10);
    if (v > UINT32_MAX)
        return NULL;
    *out = (uint32_t)v;
    return end;
}

static void header_word(struct log_rec *rec, const char *key, size_t key_n, const char *value, size_t value_n)
{
    char text[32] = "", *end = text;

    if (value_n < sizeof(text)) {
        memcpy(text, value, value_n);
        text[value_n] = '\0';
    }
    unsigned long long v = isdigit((unsigned char)text[0]) ? strtoull(text, &end, 10) : 0;
    bool number = end != text && *end == '\0';
    if (key_n == 3 && memcmp(key, "ctx", 3) == 0 && number)
        rec->context_id = v;
    else if (key_n == 5 && memcmp(key, "depth", 5) == 0 && number && v <= UINT32_MAX)
        rec->depth = (uint32_t)v;
    else if (key_n == 3 && memcmp(key, "rec", 3) == 0 && log_id_parse(value, value_n, &rec->id))
        return;
    else if (key_n == 5 && memcmp(key, "trace", 5) == 0)
        rec->trace_id = log_rec_text(rec, value, value_n);
    else if (key_n == 4 && memcmp(key, "span", 4) == 0)
        rec->span_id = log_rec_text(rec, value, value_n);
    else
        log_rec_extra(rec, key, key_n, value, value_n);
}

/* Words up to the one that ends in a colon; a word without '=' goes on with the value before (a trace id may hold blanks). */
static const char *header_words(struct log_rec *rec, const char *s)
{
    const char *key = NULL, *value = NULL;
    size_t key_n = 0;

    for (;;) {
        size_t n = strcspn(s, " ");
        bool last = n > 0 && s[n - 1] == ':';
        const char *equals = memchr(s, '=', n), *end = s + n - (last ? 1 : 0);
        if (n == 0 || (!equals && !key))
            return NULL;
        if (equals || last || s[n] == '\0') {
            if (key && equals)
                header_word(rec, key, key_n, value, (size_t)(s - 1 - value));
            if (equals) {
                key = s;
                key_n = (size_t)(equals - s);
                value = equals + 1;
            }
            if (last && key)
                header_word(rec, key, key_n, value, (size_t)(end - value));
            if (last)
                return s + n;
        }
        if (s[n] == '\0')
            return NULL;
        s += n + 1;
    }
}

/* Where the " [function file:line]" at the end begins; the end of the line if there is none. */
static const char *trailer(struct log_rec *rec, const char *message, const char *end)
{
    const char *s = end - 1, *file, *colon;
    uint32_t line;

    if (end - message < 6 || *s != ']')
        return end;
    for (colon = s; colon > message && isdigit((unsigned char)colon[-1]);)
        colon--;
    colon--;
    if (colon <= message || colon + 1 == s || *colon != ':' || number32(colon + 1, &line) != s)
        return end;
    for (file = colon; file > message && file[-1] != ' ' && file[-1] != '[';)
        file--;
    if (file - 1 <= message || file[-1] != ' ')
        return end;
    for (s = file - 1; s > message && s[-1] != '[' && s[-1] != ' ';)
        s--;
    if (s - 1 < message || s[-1] != '[' || (s - 1 > message && s[-2] != ' '))
        return end;
    rec->func = log_rec_text(rec, s, (size_t)(file - 1 - s));
    rec->file = log_rec_text(rec, file, (size_t)(colon - file));
    rec->line = line;
    return s - 1 > message ? s - 2 : message;
}

static bool parse(struct log_rec *rec, const char *line, size_t n)
{
    const char *s = log_time_parse(line, &rec->real_ns);

    if (!s || !(s = blank(s)) || !(s = log_decimal_parse(s, &rec->mono_ns)) || !(s = blank(s)))
        return false;
    size_t k = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    if (k == 0 || s[k] != ' ')
        return false;
    rec->level = log_level_of(s, k);
    rec->level_text = rec->level ? log_level_name(rec->level) : log_rec_text(rec, s, k);
    if (!(s = blank(s + k)) || !(s = number32(s, &rec->pid)) || *s != '.' || !(s = number32(s + 1, &rec->tid)) || !(s = blank(s)))
        return false;
    k = strcspn(s, " ");
    if (k == 0)
        return false;
    bool bare = s[k - 1] == ':'; /* nothing between module and message */
    rec->module = log_rec_text(rec, s, bare ? k - 1 : k);
    s += k;
    if (!bare) {
        if (*s != ' ' || !(s = header_words(rec, s + 1)))
            return false;
    }
    rec->observed_ns = rec->real_ns;
    if (*s == ' ')
        s++;
    const char *end = trailer(rec, s, line + n);
    rec->message = log_rec_text(rec, s, (size_t)(end - s));
    log_rec_find_code(rec);
    return true;
}

bool log_parse_text(struct log_rec *rec, const char *line, size_t n)
{
    if (!log_rec_begin(rec, 2 * n + 1024))
        return false;
    if (isdigit((unsigned char)line[0]) && parse(rec, line, n))
        return true;
    (void)log_rec_begin(rec, 1);
    return false;
}

void log_parse_header(struct log_header *header, const char *line)
{
    const char *version = strstr(line, "version "), *pid = strstr(line, "pid "), *opened = strstr(line, "opened ");

    if (strncmp(line, "# petrel ", 9) != 0)
        return;
    if (strncmp(line + 9, "log", 3) != 0)
        snprintf(header->kind, sizeof(header->kind), "%.*s", (int)strcspn(line + 9, " "), line + 9);
    if (version)
        snprintf(header->version, sizeof(header->version), "%.*s", (int)strcspn(version + 8, ", "), version + 8);
    text_clean(header->kind);
    text_clean(header->version);
    if (pid)
        (void)number32(pid + 4, &header->pid);
    if (opened)
        (void)log_time_parse(opened + 7, &header->opened_ns);
}
