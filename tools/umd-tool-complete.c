/* SPDX-License-Identifier: MIT */
/* umd-tool-complete.c - answers a shell that asks how a command line may go on: out of the option table, or the tool itself. */
#include <stdio.h>
#include <string.h>

#include "umd-tool.h"

/* Lines beside candidates tell the shell to look for names itself. */
#define FILES ":files"
#define DIRS ":dirs"

void tool_offer_files(void) { puts(FILES); }

static void offer(const char *prefix, size_t kept_n, const char *text)
{
    if (strncmp(text, prefix + kept_n, strlen(prefix + kept_n)) == 0)
        printf("%.*s%s\n", (int)kept_n, prefix, text);
}

void tool_offer(const struct tool_at *at, const char *text) { offer(at->prefix, 0, text); }

void tool_offer_part(const struct tool_at *at, const char *text)
{
    const char *comma = strrchr(at->prefix, ',');

    offer(at->prefix, comma ? (size_t)(comma + 1 - at->prefix) : 0, text);
}

void tool_offer_all(const struct tool_at *at, const char *const *texts)
{
    for (; *texts; texts++)
        tool_offer_part(at, *texts);
}

void tool_offer_levels(const struct tool_at *at)
{
    static const char *const levels[] = { "off", "error", "warn", "info", "debug", "trace", NULL };

    tool_offer_all(at, levels);
}

bool tool_after(const struct tool_at *at, const char *word) { return !at->option && at->count == 1 && strcmp(at->words[0], word) == 0; }

/* ---- The table ---- */

static void offer_options(const struct poptOption *o, const char *prefix)
{
    char text[80];

    for (; o->longName || o->shortName || o->arg; o++) {
        if ((o->argInfo & POPT_ARG_MASK) == POPT_ARG_INCLUDE_TABLE) {
            offer_options(o->arg, prefix);
            continue;
        }
        if (o->argInfo & POPT_ARGFLAG_DOC_HIDDEN)
            continue;
        if (o->longName) {
            snprintf(text, sizeof(text), "--%s", o->longName);
            offer(prefix, 0, text);
        }
        if (o->shortName) {
            snprintf(text, sizeof(text), "-%c", o->shortName);
            offer(prefix, 0, text);
        }
    }
}

/* By "--name" of n bytes, or by a letter where name is NULL. */
static const struct poptOption *find(const struct poptOption *o, const char *name, size_t n, char letter)
{
    for (; o->longName || o->shortName || o->arg; o++) {
        const struct poptOption *found = NULL;
        if ((o->argInfo & POPT_ARG_MASK) == POPT_ARG_INCLUDE_TABLE)
            found = find(o->arg, name, n, letter);
        else if (name ? o->longName && strlen(o->longName) == n && memcmp(o->longName, name, n) == 0 : o->shortName == letter)
            found = o;
        if (found)
            return found;
    }
    return NULL;
}

/* The option of a word, NULL: none, or it takes no value. "-xl" ends in -l, whose value comes next. */
static const struct poptOption *takes_value(const struct poptOption *table, const char *word, size_t n)
{
    const struct poptOption *o = NULL;

    if (n > 2 && word[0] == '-' && word[1] == '-')
        o = find(table, word + 2, n - 2, '\0');
    else if (n > 1 && word[0] == '-' && word[1] != '-')
        o = find(table, NULL, 0, word[n - 1]);
    return o && (o->argInfo & POPT_ARG_MASK) != POPT_ARG_NONE ? o : NULL;
}

static void offer_value(const struct tool *tool, const struct poptOption *o, const struct tool_at *at)
{
    const char *kind = o->argDescrip ? o->argDescrip : "";

    if (tool->complete && tool->complete(at))
        return;
    if (strstr(kind, "FILE"))
        puts(FILES);
    else if (strstr(kind, "DIR"))
        puts(DIRS);
    else if (strcmp(kind, "LEVEL") == 0)
        tool_offer_levels(at);
}



void tool_complete(const struct tool *tool, const struct poptOption *table, int argc, const char **argv)
{
    const char *words[64], *last = argc > 1 ? argv[argc - 1] : "";
    struct tool_at at = { .prefix = last, .words = words };
    const struct poptOption *value_of = NULL;
    bool only_words = false;

    for (int i = 1; i < argc - 1; i++) {
        if (value_of)
            value_of = NULL;
        else if (!only_words && strcmp(argv[i], "--") == 0)
            only_words = true;
        else if (!only_words && argv[i][0] == '-' && argv[i][1])
            value_of = takes_value(table, argv[i], strlen(argv[i]));
        else if (at.count < sizeof(words) / sizeof(words[0]))
            words[at.count++] = argv[i];
    }
    const char *equals = !value_of && !only_words && strncmp(last, "--", 2) == 0 ? strchr(last, '=') : NULL;
    if (equals) { /* "--name=value": the value alone is what the shell replaces */
        value_of = takes_value(table, last, (size_t)(equals - last));
        at.prefix = equals + 1;
        if (!value_of)
            return;
    }
    if (value_of) {
        at.option = value_of->longName ? value_of->longName : "";
        offer_value(tool, value_of, &at);
    } else if (!only_words && last[0] == '-') {
        offer_options(table, last);
    } else if (!tool->complete || !tool->complete(&at)) {
        puts(FILES);
    }
}
