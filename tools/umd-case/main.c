/* SPDX-License-Identifier: MIT */
/* main.c - umd-case: misuses and failures of the driver, one a case, through its public API alone. */
#include <stdio.h>
#include <string.h>

#include "case.h"
#include "umd-text.h"
#include "umd-tool.h"

static const struct umd_case *const groups[] = { memory_cases, call_cases, kernel_cases, wait_cases, process_cases };
#define GROUPS (sizeof(groups) / sizeof(groups[0]))

static int list(bool json)
{
    struct json_object *all = json ? json_object_new_array() : NULL;

    for (size_t g = 0; g < GROUPS; g++) {
        for (const struct umd_case *c = groups[g]; c->name; c++) {
            if (!json) {
                printf("%-16s %s\n", c->name, c->text);
                continue;
            }
            struct json_object *o = json_object_new_object();
            json_add_text(o, "case", c->name);
            json_add_text(o, "text", c->text);
            json_object_array_add(all, o);
        }
    }
    if (json)
        json_put_away(all);
    return EXIT_DONE;
}

static int run_case(const char *name)
{
    for (size_t g = 0; g < GROUPS; g++) {
        for (const struct umd_case *c = groups[g]; c->name; c++) {
            if (strcmp(c->name, name) != 0)
                continue;
            case_say("%s: %s", c->name, c->text);
            c->run();
            return EXIT_DONE;
        }
    }
    tool_say("no case of that name; umd-case list prints all");
    return EXIT_USAGE;
}

static bool complete(const struct tool_at *at)
{
    if (at->count == 0)
        tool_offer(at, "list");
    for (size_t g = 0; g < GROUPS && at->count == 0; g++) {
        for (const struct umd_case *c = groups[g]; c->name; c++)
            tool_offer(at, c->name);
    }
    return true;
}

static int run(const struct tool_line *line, void *options)
{
    const bool json = *(int *)options;

    if (line->count != 1)
        return tool_usage(line->count ? "one case at a time" : "no case is named");
    if (strcmp(line->words[0], "list") == 0)
        return list(json);
    return json ? tool_usage("--json is for the list") : run_case(line->words[0]);
}

static const struct tool tool = {
    .words = "list|NAME [OPTION...]", .text = "provokes a failure of the driver through its public API", .complete = complete,
    .help = "Prints the call, its code, the story in the record, and what still works. The sources, tools/umd-case, are examples of how to\n"
            "use the API; docs/knowledge-base tells of each failure.\n"
            "\nExamples:\n"
            "  umd-case list\n"
            "  umd-case handles\n"
            "  UMD_LOG_FILE=run.log umd-case cascade && umd-log errors run.log\n"
            "\nExit status: 0 all came as it should, 1 usage, 2 the stack cannot be started or the kernels\n"
            "are missing, 4 something else came.\n",
};

int main(int argc, char **argv)
{
    int json = 0;
    struct poptOption table[] = {
        { "json", 'j', POPT_ARG_NONE, &json, 0, "list as JSON", NULL },
        POPT_TABLEEND
    };

    return tool_main("umd-case", &tool, argc, argv, table, run, &json);
}
