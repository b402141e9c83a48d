/* SPDX-License-Identifier: MIT */
/* lookup.c - from a word to a code: by name however it is written, by value, by the name it has elsewhere; else what was meant. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain.h"

/* ---- Values ---- */

/* "-2011", "0xfffff825", "4294965285". False: no number. */
static bool by_value(const char *word, int64_t *out)
{
    bool negative = *word == '-';
    const char *digits = word + (negative || *word == '+');
    char *end;

    if (!isdigit((unsigned char)*digits))
        return false;
    errno = 0;
    unsigned long long v = strtoull(digits, &end, digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') ? 16 : 10);
    if (*end || errno || v > UINT32_MAX || (negative && v > 1ull << 31))
        return false;
    *out = negative ? -(int64_t)v : (int64_t)v;
    return true;
}

static void take_value(int64_t v, struct explain_word *out)
{
    out->value = (int32_t)(uint32_t)(uint64_t)v;
    out->info = umd_status_info((umdStatus)out->value);
    if (!out->info && out->value > 0 && umd_status_info((umdStatus)-out->value)) {
        out->value = -out->value;
        out->info = umd_status_info((umdStatus)out->value);
        out->note = "the value was read with a minus sign: failures are negative";
    } else if (v > INT32_MAX) {
        out->note = "the value was read as an unsigned 32-bit number";
    }
    out->kind = out->info ? EXPLAIN_CODE : EXPLAIN_UNKNOWN_VALUE;
}

static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = list; *p;) {
        size_t k = strcspn(p, " ");
        if (k == n && strncasecmp(p, word, n) == 0)
            return true;
        p += k + (p[k] == ' ');
    }
    return false;
}

static bool is_foreign(const struct umd_status_info *s, const char *word)
{
    return has_word(s->cuda, word) || has_word(s->hip, word) || has_word(s->ze, word) || strcasecmp(s->vkresult, word) == 0 ||
           strcasecmp(s->errno_name, word) == 0;
}

void explain_look_up(const char *word, struct explain_word *out)
{
    int64_t v;

    *out = (struct explain_word){ .kind = EXPLAIN_NONE };
    if (by_value(word, &v)) {
        take_value(v, out);
        return;
    }
    if ((out->info = code_by_name(word)) != NULL) {
        out->kind = EXPLAIN_CODE;
        out->value = out->info->code;
        return;
    }
    for (uint32_t i = 0; i < umd_status_count() && *word && *word != '0'; i++)
        if (is_foreign(umd_status_at(i), word))
            out->kind = EXPLAIN_FOREIGN;
}

void explain_foreign(const char *word, bool json)
{
    struct json_object *all = json ? json_object_new_array() : NULL;

    if (!json)
        printf("%s is a name of another interface. Here it is one of these, since they can be told apart:\n", word);
    for (uint32_t i = umd_status_count(); i-- > 0;) { /* params first */
        const struct umd_status_info *s = umd_status_at(i);
        if (!is_foreign(s, word))
            continue;
        if (json)
            json_object_array_add(all, explain_code_json(s));
        else
            printf("  %s (%d)%s\n           %s\n", s->name, (int)s->code, s->provisional ? ", provisional" : "", s->when);
    }
    if (json)
        json_put_away(all);
}
