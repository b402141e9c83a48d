/* SPDX-License-Identifier: MIT */
/* main.c - umd-explain: what a return code means and what to do about it; what is known of an error record. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../umd-log/env.h"
#include "explain.h"
#include "umd-tool.h"

struct options {
    int json, list;
    const char **logs, **rings;     /* ended by NULL; NULL: none */
};

static int no_code(const char *word, const struct explain_word *w)
{
    char shown[64];

    if (w->kind != EXPLAIN_UNKNOWN_VALUE)
        return code_unknown(word);
    snprintf(shown, sizeof(shown), "%s", word);
    text_clean(shown);
    tool_say("%s is no code, and lies in no range of codes; umd-explain --list prints all", shown);
    return EXIT_USAGE;
}

static uint32_t count_of(const char *const *list)
{
    uint32_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

static int explain(const char *word, const struct options *o)
{
    struct explain_word w;
    umdRecordId id;

    if (strchr(word, ':')) {
        if (!log_id_parse(word, strlen(word), &id))
            return tool_usage("a record's id is boot:pid:number, as f3f0ca53:18470:2");
        const char *found[] = { o->logs || o->rings ? NULL : env_log() };
        if (!o->logs && !o->rings && !found[0])
            return tool_usage("name the log that has the record with --log FILE, or a ring with --emergency FILE");
        return explain_record(id, found[0] ? found : o->logs, found[0] ? 1 : count_of(o->logs), o->rings, count_of(o->rings), o->json);
    }
    if (o->logs || o->rings)
        return tool_usage("--log and --emergency are for a RECORD-ID");
    explain_look_up(word, &w);
    if (w.kind == EXPLAIN_CODE)
        explain_code(&w, o->json);
    else if (w.kind == EXPLAIN_FOREIGN)
        explain_foreign(word, o->json);
    else if (w.kind != EXPLAIN_UNKNOWN_VALUE || !explain_value(&w, o->json))
        return no_code(word, &w);
    return EXIT_DONE;
}

/* popt would take -2011 for options: numbers are kept from it. */
static bool is_value(const char *arg) { return arg[0] == '-' && isdigit((unsigned char)arg[1]); }

static int run(const struct tool_line *line, const struct options *o, const char *value)
{
    const char *word = value ? value : line->count ? line->words[0] : NULL;

    if (line->count + (value != NULL) > 1)
        return tool_usage("one code or record at a time");
    if (!o->list)
        return word ? explain(word, o) : tool_usage("no code or record is named");
    if (word)
        return tool_usage("--list takes no word");
    explain_list(o->json);
    return EXIT_DONE;
}

/* Names of codes, whole as the table has them; those that other interfaces have are too many. */
static bool complete(const struct tool_at *at)
{
    for (uint32_t i = 0; i < umd_status_count() && !at->option && at->count == 0; i++)
        tool_offer(at, umd_status_at(i)->name);
    return !at->option;
}

static const struct tool self = {
    .words = "CODE|RECORD-ID [OPTION...]", .text = "says what a return code means and what to do about it, or what is known of an error record",
    .complete = complete,
    .help = "CODE is a name, in any case, whole or without UMD_ERR_ (mem_fragmented, fragmented), or a value, in decimal, hex or as an unsigned\n"
            "number (-2011, 0xfffff825, 4294965285). The names that codes have in CUDA, HIP, Level Zero, Vulkan and errno are read, too;\n"
            "of a number that is no code, what it may be there, or which code's low byte it is.\n"
            "RECORD-ID is as logs and reports print it, boot:pid:number; its story is read from the files of --log and --emergency, else from\n"
            "the log that UMD_LOG_FILE, UMD_LOG_JSON or UMD_LOG_BINARY names.\n"
            "\nExamples:\n"
            "  umd-explain UMD_ERR_MEM_FRAGMENTED\n"
            "  umd-explain -- -4002\n"
            "  umd-explain cudaErrorLaunchTimeout\n"
            "  umd-explain f3f0ca53:18470:2 --log run.log\n"
            "  umd-explain --list --json | jq -r '.[] | select(.sticky) | .name'\n"
            "\nExit status: 0 done, 1 usage, no such code or record, 2 a file could not be read or the output not be written.\n",
};

/* The first number with a minus is taken out of argv, which stays ended by NULL, and so is a "--" that stood for it. NULL: there is none. */
static const char *take_value(int *argc, char **argv)
{
    const char *value = NULL;
    int count = 0;

    for (int i = 0; i < *argc; i++) {
        if (i && !value && is_value(argv[i]))
            value = argv[i];
        else
            argv[count++] = argv[i];
    }
    if (value && count > 1 && strcmp(argv[count - 1], "--") == 0)
        count--;
    argv[count] = NULL;
    *argc = count;
    return value;
}

const enum tool_env tool_env = TOOL_ENV_TAKE_ALL;

int main(int argc, char **argv)
{
    struct options o = { 0 };
    struct tool_line line;
    struct poptOption table[] = {
        { "log", 'l', POPT_ARG_ARGV, &o.logs, 0, "log to read, in any format; may come several times", "FILE" },
        { "emergency", 'e', POPT_ARG_ARGV, &o.rings, 0, "file of an emergency ring to read; may come several times", "FILE" },
        { "list", '\0', POPT_ARG_NONE, &o.list, 0, "all codes", NULL },
        { "json", 'j', POPT_ARG_NONE, &o.json, 0, "as JSON", NULL },
        POPT_TABLEEND
    };

    argc = tool_start("umd-explain", argc, argv);
    int status = env_start();
    if (status != EXIT_DONE)
        return status;
    const char *value = tool_is_completing() ? NULL : take_value(&argc, argv);
    if (tool_parse(&self, argc, (const char **)argv, table, &line, &status)) {
        status = run(&line, &o, value);
        tool_line_finish(&line);
    }
    return tool_finish(status);
}
