/* SPDX-License-Identifier: MIT */
/* codes.c - from a word to a code by its name, however it is written; else what was probably meant. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codes.h"
#include "nearest.h"
#include "umd-text.h"
#include "umd-tool.h"

#define NAME_MAX_B 64u
#define NEAR_MAX 5u

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

const struct umd_status_info *code_by_name(const char *word)
{
    const struct umd_status_info *tail = NULL;
    uint32_t tails = 0;
    char name[NAME_MAX_B];

    if (!*word || !normal(word, name))
        return NULL;
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

/* Probably meant, likeliest first. Value: how many. */
static uint32_t find_near(const char *word, const struct umd_status_info *out[NEAR_MAX])
{
    struct near *all = calloc(umd_status_count(), sizeof(*all));
    char name[NAME_MAX_B];
    uint32_t count = 0;

    if (!all || !*word || !normal(word, name)) {
        free(all);
        return 0;
    }
    const char *want = stem(name);
    for (uint32_t i = 0; i < umd_status_count(); i++)
        all[i] = (struct near){ umd_status_at(i), score(want, umd_status_at(i)) };
    qsort(all, umd_status_count(), sizeof(*all), by_score);
    size_t limit = strlen(want) < 6 ? 4 : strlen(want) < 12 ? 8 : 10; /* beyond it is not the same word */
    for (uint32_t i = 0; i < NEAR_MAX && all[i].score <= limit && all[i].score <= all[0].score + 4; i++)
        out[count++] = all[i].info;
    free(all);
    return count;
}

int code_unknown(const char *word)
{
    const struct umd_status_info *near[NEAR_MAX];
    uint32_t count = find_near(word, near);
    char text[512] = "", shown[64];
    size_t n = 0;

    snprintf(shown, sizeof(shown), "%s", word);
    text_clean(shown);
    for (uint32_t i = 0; i < count && n < sizeof(text); i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? i + 1 == count ? " or " : ", " : "; did you mean ", near[i]->name);
    tool_say("there is no code '%s'%s%s", shown, text, count ? "?" : "; umd-explain --list prints all");
    return EXIT_USAGE;
}
