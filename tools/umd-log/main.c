/* SPDX-License-Identifier: MIT */
/* main.c - umd-log: reads, merges, explains and exports logs; asks running processes about theirs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <umd/umd_log.h>

#include "../umd-tool.h"
#include "cmd.h"
#include "nearest.h"

static const struct command *const commands[] = {
    &command_show, &command_merge, &command_errors, &command_stats, &command_doctor, &command_sites, &command_emergency, &command_export,
    &command_level, &command_reopen, &command_status,
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_help(void)
{
    printf("Usage: umd-log COMMAND [OPTION...] [FILE...]\n"
           "Reads the logs of Petrel in any of their formats, compressed or not, and says what is in them.\n\nCommands:\n");
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-10s %s\n", commands[i]->name, commands[i]->text);
    printf("\n  -h, --help     show this; after a command: its options\n  -V, --version  show the version\n"
           "\nWithout a FILE the log that UMD_LOG_FILE or UMD_LOG_JSON names is read; - is standard input.\n"
           "\nExamples:\n"
           "  umd-log errors run.log                         what failed, why, and what to do about it\n"
           "  umd-log show --level warn --since -10 run.log  the last ten seconds, warnings and errors\n"
           "  umd-log merge rank*.log                        many processes on one time axis\n"
           "  umd-log doctor                                 why a log is empty\n"
           "\nExit status: 0 done, 1 usage, 2 a file could not be read or the output not be written, 3 with errors --check: the log has\n"
           "errors, 4 with errors --check: it has swallowed records.\n");
}

int command_usage(const struct command *self, const char *what)
{
    fprintf(stderr, "umd-log: %s; try umd-log %s%s--help\n", what, self ? self->name : "", self ? " " : "");
    return EXIT_USAGE;
}

bool command_number(const struct command *self, const char *option, const char *text, uint64_t max, uint64_t *out)
{
    char *end, what[160];
    unsigned long long v = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;

    if (v >= 1 && v <= max && !*end) {
        *out = v;
        return true;
    }
    snprintf(what, sizeof(what), "--%s '%.40s' is not a whole number from 1 to %llu", option, text, (unsigned long long)max);
    (void)command_usage(self, what);
    return false;
}

static void show_help(const struct command *self, poptContext pc)
{
    char words[120];

    printf("umd-log %s: %s.\n", self->name, self->text);
    snprintf(words, sizeof(words), "%s [OPTION...] %s", self->name, self->words);
    poptSetOtherOptionHelp(pc, words);
    poptPrintHelp(pc, stdout, 0);
    printf("\n%s", self->help);
}

bool command_parse(const struct command *self, int argc, const char **argv, struct poptOption *options, struct command_line *out, int *status_out)
{
    int help = 0, version = 0;
    struct poptOption common[] = {
        { "help", 'h', POPT_ARG_NONE, &help, 0, "show this", NULL },
        { "version", 'V', POPT_ARG_NONE, &version, 0, "show the version", NULL },
        POPT_TABLEEND
    };
    struct poptOption all[] = {
        { NULL, '\0', POPT_ARG_INCLUDE_TABLE, options, 0, "Options:", NULL },
        { NULL, '\0', POPT_ARG_INCLUDE_TABLE, common, 0, "Help:", NULL },
        POPT_TABLEEND
    };
    poptContext pc = poptGetContext("umd-log", argc, argv, all, 0);
    int rc = poptGetNextOpt(pc);

    *status_out = EXIT_DONE;
    if (rc < -1) {
        fprintf(stderr, "umd-log: %s: %s; try umd-log %s --help\n", poptBadOption(pc, POPT_BADOPTION_NOALIAS), poptStrerror(rc), self->name);
        *status_out = EXIT_USAGE;
    } else if (help) {
        show_help(self, pc);
    } else if (version) {
        printf("umd-log %s\n", PETREL_VERSION);
    } else {
        *out = (struct command_line){ .pc = pc, .words = poptGetArgs(pc) };
        while (out->words && out->words[out->count])
            out->count++;
        return true;
    }
    poptFreeContext(pc);
    return false;
}

void command_finish(struct command_line *line) { poptFreeContext(line->pc); }

uint32_t command_files(const struct command *self, const struct command_line *line, const char *const **files_out)
{
    static const char *const variables[] = { "UMD_LOG_BINARY", "UMD_LOG_FILE", "UMD_LOG_JSON" };
    static const char *found;

    if (line->count) {
        *files_out = line->words;
        return line->count;
    }
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *path = env_before(variables[i]);
        if (path && *path && !strchr(path, '%') && access(path, F_OK) == 0) {
            found = path;
            *files_out = &found;
            return 1;
        }
    }
    (void)command_usage(self, "no file is named, and the environment (UMD_LOG_FILE, UMD_LOG_JSON) names none that is there");
    return 0;
}

static int unknown(const char *word)
{
    size_t best = 3, d;
    const char *near = NULL;

    for (size_t i = 0; i < COMMANDS; i++) {
        d = umd_nearest_distance(word, strlen(word), commands[i]->name);
        if (d < best) {
            best = d;
            near = commands[i]->name;
        }
    }
    fprintf(stderr, "umd-log: there is no command '%.40s'%s%s%s; try umd-log --help\n", word, near ? "; was " : "", near ? near : "",
            near ? " meant?" : "");
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    int status = -1;

    tool_start();
    env_start();
    if (umdFailed(umdLogSetConsole("off"))) /* what is wrong is told by the tool itself */
        return EXIT_ENVIRONMENT;
    if (argc < 2) {
        status = command_usage(NULL, "no command");
    } else if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_help();
        status = EXIT_DONE;
    } else if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("umd-log %s\n", PETREL_VERSION);
        status = EXIT_DONE;
    } else if (argv[1][0] == '-') {
        fprintf(stderr, "umd-log: %.40s: the command comes first; try umd-log --help\n", argv[1]);
        status = EXIT_USAGE;
    }
    for (size_t i = 0; i < COMMANDS && status < 0; i++) {
        if (strcmp(argv[1], commands[i]->name) == 0)
            status = commands[i]->run(commands[i], argc - 1, (const char **)argv + 1);
    }
    return tool_finish("umd-log", status < 0 ? unknown(argv[1]) : status);
}
