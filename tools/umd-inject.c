/* SPDX-License-Identifier: MIT */
/* umd-inject.c - lists fault sites and checks fault specifications. */
#include <stdio.h>
#include <string.h>

#include <umd/umd_log.h>

#include "fault_plan.h"
#include "umd-text.h"
#include "umd-tool-env.h"
#include "umd-tool.h"

static int list_text(void)
{
    printf("%-22s %-8s %-32s %s\n", "site", "actions", "told by", "what happens");
    for (int i = 0; i < UMD_FAULT_SITE_COUNT; i++) {
        const struct umd_fault_site_info *s = umd_fault_site_info((enum umd_fault_site)i);
        printf("%-22s %-8s %-32s %s\n", s->name, s->actions, s->code ? umdStatusName(s->code) : "the log", s->text);
    }
    printf("\nA rule: site[nth=N,interval=N,space=N,times=N,ctx=N,queue=N,rank=N]=P%%COUNT*action(args)->...; the bracket, P%%, COUNT* and\n"
           "(args) are optional; rules are joined by ';'. See docs/faults.md.\n");
    return EXIT_DONE;
}

static int list_json(void)
{
    struct json_object *all = json_object_new_array();

    for (int i = 0; i < UMD_FAULT_SITE_COUNT; i++) {
        const struct umd_fault_site_info *s = umd_fault_site_info((enum umd_fault_site)i);
        struct json_object *o = json_object_new_object();
        json_add_text(o, "site", s->name);
        json_add_text(o, "actions", s->actions);
        json_add_text(o, "code", s->code ? umdStatusName(s->code) : NULL);
        json_add_text(o, "text", s->text);
        json_object_array_add(all, o);
    }
    json_put_away(all);
    return EXIT_DONE;
}

static int check(const char *spec)
{
    if (!*spec)
        return tool_usage("the specification is empty");
    const char *file = tool_fault_file(spec, true);
    umdErrorDetail d = { .size_B = sizeof(d) };
    umdStatus st = file ? umd_fault_plan_load(file) : umd_fault_plan_set(spec);
    bool have = umdGetLastErrorDetail(&d) == UMD_SUCCESS;
    if (!umdFailed(st)) {
        printf("%s is good\n", file ? file : "the specification");
        return EXIT_DONE;
    }
    text_clean(d.figures);
    tool_say("%s: %s", umdStatusName(st), have ? d.figures : umdStatusString(st));
    return umdStatusRangeOf(st) == UMD_RANGE_RESOURCE ? EXIT_ENVIRONMENT : EXIT_USAGE;
}

static int run(const struct tool_line *line, void *options)
{
    const bool json = *(int *)options;
    const char *command = line->count ? line->words[0] : "";

    if (strcmp(command, "list") == 0 && line->count == 1)
        return json ? list_json() : list_text();
    if (strcmp(command, "check") == 0 && !json)
        return line->count == 2 ? check(line->words[1]) : tool_usage("check takes one specification");
    return tool_usage(!*command ? "no command" : json ? "--json is for the list" : "unknown command or word too many");
}

static void lists(void)
{
    puts("Commands:\n"
         "  list          all fault sites with their actions\n"
         "  check SPEC    parse a specification, or a file of that name (@FILE: in any case), and say where a mistake is");
}

/* A command, then of a specification the site of its last rule. */
static bool complete(const struct tool_at *at)
{
    static const char *const commands[] = { "list", "check", NULL };

    if (at->count == 0)
        tool_offer_all(at, commands);
    for (int i = 0; i < UMD_FAULT_SITE_COUNT && tool_after(at, "check"); i++)
        tool_offer(at, umd_fault_site_info((enum umd_fault_site)i)->name);
    if (tool_after(at, "check"))
        tool_offer_files();
    return true;
}

static const struct tool inject = {
    .words = "list|check SPEC [OPTION...]", .text = "lists fault sites and checks fault specifications", .lists = lists, .complete = complete,
    .help = "Examples:\n"
            "  umd-inject list\n"
            "  umd-inject check 'hw.cu.hang[nth=40]=fire; kmd.vram.alloc=5%3*fail'\n"
            "\nEnvironment: PETREL_RANK for rules with rank=; UMD_LOG_CONSOLE for the log on the console. See docs/environment.md.\n"
            "\nExit status: 0 done, 1 usage or a mistake in the specification, 2 a file could not be read or the output not be written.\n",
};

const enum tool_env tool_env = TOOL_ENV_TAKE_FILES;

int main(int argc, char **argv)
{
    int json = 0;
    struct poptOption table[] = {
        { "json", 'j', POPT_ARG_NONE, &json, 0, "list as JSON", NULL },
        POPT_TABLEEND
    };

    return tool_main("umd-inject", &inject, argc, argv, table, run, &json);
}
