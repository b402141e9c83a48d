/* SPDX-License-Identifier: MIT */
/* umd-inject.c - lists fault sites and checks fault specifications. */
#include <json-c/json.h>
#include <popt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <umd/umd_log.h>

#include "fault_plan.h"
#include "umd-tool.h"

enum { EXIT_DONE = 0, EXIT_USAGE = 1 };

static void print_help(poptContext pc)
{
    poptPrintHelp(pc, stdout, 0);
    printf("\nCommands:\n"
           "  list          all fault sites with their actions\n"
           "  check SPEC    parse a specification, or a file of that name (@FILE: in any case), and say where a mistake is\n"
           "\nExamples:\n"
           "  umd-inject list\n"
           "  umd-inject check 'hw.cu.hang[nth=40]=fire; kmd.vram.alloc=5%%3*fail'\n"
           "\nEnvironment: PETREL_RANK for rules with rank=; UMD_LOG_CONSOLE for the log on the console. See docs/environment.md.\n"
           "\nExit status: 0 done, 1 usage or a mistake in the specification, 2 the output could not be written.\n");
}

static int list_text(void)
{
    printf("%-22s %-8s %s\n", "site", "actions", "what happens");
    for (int i = 0; i < UMD_FAULT_SITE_COUNT; i++) {
        const struct umd_fault_site_info *s = umd_fault_site_info((enum umd_fault_site)i);
        printf("%-22s %-8s %s\n", s->name, s->actions, s->text);
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
        json_object_object_add(o, "site", json_object_new_string(s->name));
        json_object_object_add(o, "actions", json_object_new_string(s->actions));
        json_object_object_add(o, "text", json_object_new_string(s->text));
        json_object_array_add(all, o);
    }
    puts(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(all);
    return EXIT_DONE;
}

static int check(const char *spec)
{
    const char *file = tool_fault_file(spec, true);
    umdErrorDetail d = { .size_B = sizeof(d) };
    umdStatus st = file ? umd_fault_plan_load(file) : umd_fault_plan_set(spec);
    bool have = umdGetLastErrorDetail(&d) == UMD_SUCCESS;
    if (!umdFailed(st)) {
        printf("%s is good\n", file ? file : "the specification");
        return EXIT_DONE;
    }
    tool_clean(d.figures);
    fprintf(stderr, "umd-inject: %s: %s\n", umdStatusName(st), have ? d.figures : umdStatusString(st));
    return EXIT_USAGE;
}

static int usage(const char *what)
{
    fprintf(stderr, "umd-inject: %s; try umd-inject --help\n", what);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    int json = 0, show_help = 0, show_version = 0, status;
    const struct poptOption table[] = {
        { "json", 0, POPT_ARG_NONE, &json, 0, "list as JSON", NULL },
        { "help", 'h', POPT_ARG_NONE, &show_help, 0, "show this", NULL },
        { "version", 'V', POPT_ARG_NONE, &show_version, 0, "show the version", NULL },
        POPT_TABLEEND
    };
    tool_start();
    if (!tool_wants_console() && umdFailed(umdLogSetConsole("off")))
        return usage("the log cannot be set up");
    poptContext pc = poptGetContext("umd-inject", argc, (const char **)argv, table, 0);
    poptSetOtherOptionHelp(pc, "list|check SPEC [OPTION...]");
    int rc = poptGetNextOpt(pc);
    const char *command = rc == -1 ? poptGetArg(pc) : NULL, *spec = command ? poptGetArg(pc) : NULL;

    if (rc < -1) {
        fprintf(stderr, "umd-inject: %s: %s; try umd-inject --help\n", poptBadOption(pc, POPT_BADOPTION_NOALIAS), poptStrerror(rc));
        status = EXIT_USAGE;
    } else if (show_help) {
        print_help(pc);
        status = EXIT_DONE;
    } else if (show_version) {
        printf("umd-inject %s\n", PETREL_VERSION);
        status = EXIT_DONE;
    } else if (command && strcmp(command, "list") == 0 && !spec) {
        status = json ? list_json() : list_text();
    } else if (command && strcmp(command, "check") == 0 && spec && !poptPeekArg(pc)) {
        status = check(spec);
    } else {
        status = usage(!command ? "no command" : strcmp(command, "check") == 0 ? "check takes one specification" : "unknown command or word too many");
    }
    poptFreeContext(pc);
    return tool_finish("umd-inject", status);
}
