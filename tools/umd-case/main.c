/* SPDX-License-Identifier: MIT */
/* main.c - umd-case: misuses and failures of the driver, one a case, through its public API alone. */
#include <json-c/json.h>
#include <popt.h>
#include <stdio.h>
#include <string.h>

#include <umd/umd_log.h>

#include "../umd-tool.h"
#include "case.h"

static const struct umd_case *const groups[] = { memory_cases, call_cases, kernel_cases, wait_cases, process_cases };
#define GROUPS (sizeof(groups) / sizeof(groups[0]))

static void print_help(poptContext pc)
{
    poptPrintHelp(pc, stdout, 0);
    printf("\nProvokes a failure through the public API and prints the call, its code, the story in the record, and what still works. The\n"
           "sources, tools/umd-case, are examples of how to use the API; docs/knowledge-base tells of each failure.\n"
           "\nExamples:\n"
           "  umd-case list\n"
           "  umd-case handles\n"
           "  UMD_LOG_FILE=run.log umd-case cascade && umd-log errors run.log\n"
           "\nExit status: 0 all came as it should, 1 usage, 2 the stack cannot be started, 4 something else came.\n");
}

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
            json_object_object_add(o, "case", json_object_new_string(c->name));
            json_object_object_add(o, "text", json_object_new_string(c->text));
            json_object_array_add(all, o);
        }
    }
    if (json) {
        puts(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
        json_object_put(all);
    }
    return CASE_DONE;
}

static int run(const char *name)
{
    for (size_t g = 0; g < GROUPS; g++) {
        for (const struct umd_case *c = groups[g]; c->name; c++) {
            if (strcmp(c->name, name) != 0)
                continue;
            case_say("%s: %s", c->name, c->text);
            c->run();
            return CASE_DONE;
        }
    }
    fprintf(stderr, "umd-case: no case of that name; umd-case list prints all\n");
    return CASE_USAGE;
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
    if (!tool_wants_console() && umdFailed(umdLogSetConsole("off"))) {
        fprintf(stderr, "umd-case: the log cannot be set up\n");
        return CASE_ENVIRONMENT;
    }
    poptContext pc = poptGetContext("umd-case", argc, (const char **)argv, table, 0);
    poptSetOtherOptionHelp(pc, "list|NAME [OPTION...]");
    int rc = poptGetNextOpt(pc);
    const char *name = rc == -1 ? poptGetArg(pc) : NULL;

    if (rc < -1) {
        fprintf(stderr, "umd-case: %s: %s; try umd-case --help\n", poptBadOption(pc, POPT_BADOPTION_NOALIAS), poptStrerror(rc));
        status = CASE_USAGE;
    } else if (show_help) {
        print_help(pc);
        status = CASE_DONE;
    } else if (show_version) {
        printf("umd-case %s\n", PETREL_VERSION);
        status = CASE_DONE;
    } else if (!name || poptPeekArg(pc) || (json && strcmp(name, "list") != 0)) {
        fprintf(stderr, "umd-case: %s; try umd-case --help\n", !name ? "no case" : poptPeekArg(pc) ? "one case at a time" : "--json is for the list");
        status = CASE_USAGE;
    } else {
        status = strcmp(name, "list") == 0 ? list(json) : run(name);
    }
    poptFreeContext(pc);
    return tool_finish("umd-case", status);
}
