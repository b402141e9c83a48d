/* SPDX-License-Identifier: MIT */
/* lookup.c - from a word to a code: by name however it is written, by value, by the name it has elsewhere; else what was meant. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explain.h"
#include "nearest.h"

#define NAME_MAX_B 64u

/* Upper case, '-' and blanks as '_'. False: too long to be a name. */
static bool normal(const char *word, char out[NAME_MAX_B])
{
    size_t n = strlen(word);

    if (n >= NAME_MAX_B)
        return false;
    for (size_t i = 0; i <= n; i++)
        out[i] = word[i] == '-' || word[i] == ' ' ? '_' : (char)toupper((unsigned char)word[i]);
    return true;
}

/* What is left of a name without UMD_ and ERR_ or STATUS_. */
static const char *stem(const char *name)
{
    static const char *const prefixes[] = { "UMD_", "ERR_", "STATUS_" };

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0 && name[strlen(prefixes[i])])
            name += strlen(prefixes[i]);
    return name;
}

/* The whole name, or all behind the class, if it is one code's only. */
static const struct umd_status_info *by_name(const char *name)
{
    const struct umd_status_info *tail = NULL;
    uint32_t tails = 0;

    for (uint32_t i = 0; i < umd_status_count(); i++) {
        const struct umd_status_info *s = umd_status_at(i);
        const char *have = stem(s->name), *want = stem(name);
        size_t n = strlen(s->class_name);
        if (strcmp(have, want) == 0)
            return s;
        if (s->code < 0 && have[n] == '_' && strcmp(have + n + 1, want) == 0) {
            tail = s;
            tails++;
        }
    }
    return tails == 1 ? tail : NULL;
}

/* ---- Near misses ---- */

struct near { const struct umd_status_info *info; size_t score; };

static int by_score(const void *a, const void *b)
{
    const struct near *x = a, *y = b;

    if (x->score != y->score)
        return x->score < y->score ? -1 : 1;
    if (x->info->provisional != y->info->provisional) /* what can come is likelier than what cannot yet */
        return x->info->provisional ? 1 : -1;
    return x->info->code > y->info->code ? -1 : 1;
}

/* The word is one or several whole parts of the name. */
static bool has_part(const char *name, const char *want, size_t n)
{
    for (const char *p = strstr(name, want); p; p = strstr(p + 1, want))
        if ((p == name || p[-1] == '_') && (p[n] == '\0' || p[n] == '_'))
            return true;
    return false;
}

/* The class, then whole parts of the name, then what holds the word, then edits: two for each, so that chance comes last. */
static size_t score(const char *want, const struct umd_status_info *s)
{
    const char *have = stem(s->name), *detail = have;
    size_t n = strlen(want), best = umd_nearest_distance(want, n, have);

    if (strcmp(want, s->class_name) == 0)
        return 0;
    if (has_part(have, want, n))
        return 1;

    if (s->code < 0 && have[strlen(s->class_name)] == '_') {
        detail = have + strlen(s->class_name) + 1;
        size_t d = umd_nearest_distance(want, n, detail);
        best = d < best ? d : best;
    }
    best *= 2;
    if (n >= 3 && strstr(have, want) && best > 3)
        best = 3;
    return best;
}

static void find_near(const char *word, struct explain_word *out)
{
    struct near *all = calloc(umd_status_count(), sizeof(*all));
    char name[NAME_MAX_B];

    if (!all || !normal(word, name)) {
        free(all);
        return;
    }
    const char *want = stem(name);
    for (uint32_t i = 0; i < umd_status_count(); i++)
        all[i] = (struct near){ umd_status_at(i), score(want, umd_status_at(i)) };
    qsort(all, umd_status_count(), sizeof(*all), by_score);
    size_t limit = strlen(want) < 6 ? 4 : strlen(want) < 12 ? 8 : 10; /* beyond it is not the same word */
    for (uint32_t i = 0; i < EXPLAIN_NEAR_MAX && all[i].score <= limit && all[i].score <= all[0].score + 4; i++)
        out->near[out->near_count++] = all[i].info;
    free(all);
}

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
    char name[NAME_MAX_B];
    int64_t v;

    *out = (struct explain_word){ .kind = EXPLAIN_NONE };
    if (by_value(word, &v)) {
        take_value(v, out);
        return;
    }
    if (*word && normal(word, name) && (out->info = by_name(name))) {
        out->kind = EXPLAIN_CODE;
        out->value = out->info->code;
        return;
    }
    for (uint32_t i = 0; i < umd_status_count() && *word && *word != '0'; i++)
        if (is_foreign(umd_status_at(i), word))
            out->kind = EXPLAIN_FOREIGN;
    if (out->kind == EXPLAIN_NONE && *word)
        find_near(word, out);
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
    if (json) {
        puts(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
        json_object_put(all);
    }
}
