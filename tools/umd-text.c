/* SPDX-License-Identifier: MIT */
/* umd-text.c - what tools print: cleaned, broken into lines, coloured, or as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "umd-text.h"
#include "umd-tool.h"

/* Length of the UTF-8 sequence at s as RFC 3629 has it: no overlong forms, no surrogates, nothing beyond U+10FFFF. 0: it is none. */
static size_t utf8_length(const unsigned char *s)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;

    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

size_t text_printable(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0) ? 0 : utf8_length(s);
}

void text_clean(char *text)
{
    while (*text) {
        size_t n = text_printable(text);
        if (n == 0)
            *text = '?';
        text += n ? n : 1;
    }
}

size_t text_cut(const char *text, size_t n)
{
    size_t k = strnlen(text, n + 1);

    if (k <= n)
        return k;
    while (n && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    return n;
}

const char *text_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool text_is_text(const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t k = text[i] == '\n' || text[i] == '\r' || text[i] == '\t' ? 1 : text_printable(text + i);
        if (k == 0)
            return false;
        i += k;
    }
    return true;
}

bool text_coloured(void)
{
    static int known;

    if (!known) {
        const char *term = getenv("TERM"), *no = getenv("NO_COLOR");
        known = isatty(STDOUT_FILENO) && (!no || !*no) && term && strcmp(term, "dumb") != 0 ? 2 : 1;
    }
    return known == 2;
}

const char *text_colour(enum text_colour colour)
{
    static const char *const sequence[] = { "\033[0m", "\033[1m", "\033[2m", "\033[31m", "\033[33m", "\033[32m", "\033[36m" };
    return text_coloured() ? sequence[colour] : "";
}

void text_paragraph(const char *prefix, int label_n, const char *label, const char *text, size_t columns)
{
    size_t used = strlen(prefix) + (size_t)label_n + 1, room = used + 40 < columns ? columns - used : 40;

    while (*text) {
        size_t n = strlen(text);
        if (n > room) {
            for (n = room; n > room / 2 && text[n] != ' ';)
                n--;
            if (text[n] != ' ')
                n = text_cut(text, room);
        }
        printf("%s%s%-*s%s %.*s\n", prefix, text_colour(TEXT_DIM), label_n, label, text_colour(TEXT_PLAIN), (int)n, text);
        text += n;
        text += strspn(text, " ");
        label = "";
    }
}

struct json_object *json_text(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n;

    while (*s && (n = utf8_length(s)) != 0)
        s += n;
    char *copy = *s ? strdup(text) : NULL;
    for (unsigned char *at = (unsigned char *)copy; at && *at; at += n ? n : 1) {
        n = utf8_length(at);
        if (!n)
            *at = '?';
    }
    struct json_object *o = json_object_new_string(copy ? copy : *s ? "?" : text);
    free(copy);
    return o;
}

void json_add_text(struct json_object *o, const char *key, const char *text)
{
    if (text)
        json_object_object_add(o, key, json_text(text));
}

void json_add_number(struct json_object *o, const char *key, int64_t v) { json_object_object_add(o, key, json_object_new_int64(v)); }
void json_add_bool(struct json_object *o, const char *key, bool v) { json_object_object_add(o, key, json_object_new_boolean(v)); }

void json_add_big(struct json_object *o, const char *key, uint64_t v)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, v);
    json_add_text(o, key, text);
}

void json_clean(struct json_object *o)
{
    const char *text = json_object_is_type(o, json_type_string) ? json_object_get_string(o) : NULL;
    char *copy = text ? strdup(text) : NULL;

    if (copy) {
        text_clean(copy);
        json_object_set_string(o, copy);
        free(copy);
    }
    for (size_t i = 0; json_object_is_type(o, json_type_array) && i < json_object_array_length(o); i++)
        json_clean(json_object_array_get_idx(o, i));
    if (json_object_is_type(o, json_type_object)) {
        json_object_object_foreach(o, key, value) {
            (void)key;
            json_clean(value);
        }
    }
}

const char *json_text_of(struct json_object *o, const char *key)
{
    struct json_object *v = NULL;
    return o && json_object_object_get_ex(o, key, &v) && v ? json_object_get_string(v) : "";
}

bool json_is_true(struct json_object *o, const char *key)
{
    struct json_object *v = NULL;
    return o && json_object_object_get_ex(o, key, &v) && json_object_get_boolean(v);
}

void json_put_out(struct json_object *o)
{
    const char *text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE);

    if (text)
        puts(text);
    else
        tool_say("out of memory");
}

void json_put_away(struct json_object *o)
{
    json_put_out(o);
    json_object_put(o);
}
