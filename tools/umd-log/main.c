/* SPDX-License-Identifier: MIT */
/* main.c - umd-log: reads, merges, explains and exports logs; asks running processes about theirs. */
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "nearest.h"

static const struct command *const commands[] = {
    &command_show, &command_merge, &command_errors, &command_stats, &command_doctor, &command_sites, &command_emergency, &command_export,
    &command_level, &command_reopen, &command_status,
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* ---- What commands share ---- */

struct log_set *command_open(const struct tool_line *line, const struct filter_options *options, enum log_rotated rotated,
                             struct filter *filter_out, int *status_out)
{
    const char *found = line->count ? NULL : env_log();
    const char *const *files = line->count ? line->words : &found;

    *status_out = EXIT_USAGE;
    if (!line->count && !found) {
        (void)tool_usage("no file is named, and the environment (UMD_LOG_BINARY, UMD_LOG_FILE, UMD_LOG_JSON) names none that is there");
        return NULL;
    }
    const char *twice = log_set_twice(files, line->count ? line->count : 1);
    if (twice) {
        (void)tool_usage("%s is named twice; name each file once", twice);
        return NULL;
    }
    if (!filter_start(filter_out, options))
        return NULL;
    *status_out = EXIT_ENVIRONMENT;
    struct log_set *set = log_set_open(files, line->count ? line->count : 1, rotated);
    if (!set)
        filter_finish(filter_out);
    return set;
}

void command_close(struct log_set *set, struct filter *filter)
{
    log_set_close(set);
    filter_finish(filter);
}

bool command_pid(const char *text, uint64_t *pid_out) { return !text || tool_number("pid", text, 1, INT32_MAX, pid_out); }

bool command_level_of(const char *text, int *level_out)
{
    if (!text || (*level_out = log_level_of(text, strlen(text))))
        return true;
    (void)tool_bad_value("level", text, "error, warn, info, debug or trace");
    return false;
}

/* ---- The tool itself ---- */

static const struct command *command_of(const char *word)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(word, commands[i]->tool.command) == 0)
            return commands[i];
    }
    return NULL;
}

static int unknown(const char *word)
{
    size_t best = 3, d;
    const char *near = NULL;

    for (size_t i = 0; i < COMMANDS; i++) {
        d = umd_nearest_distance(word, strlen(word), commands[i]->tool.command);
        if (d < best) {
            best = d;
            near = commands[i]->tool.command;
        }
    }
    return tool_unknown("command", word, near);
}

static void lists(void)
{
    puts("Commands:");
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-10s %s\n", commands[i]->tool.command, commands[i]->tool.text);
}

static bool complete(const struct tool_at *at)
{
    for (size_t i = 0; i < COMMANDS && at->count == 0; i++)
        tool_offer(at, commands[i]->tool.command);
    return true;
}

static const struct tool self = {
    .words = "COMMAND [OPTION...] [FILE...]", .text = "reads the logs of Petrel in any of their formats, compressed or not, and says what is in them",
    .lists = lists, .complete = complete,
    .help = "--help after a command shows its options. Without a FILE the log is read that UMD_LOG_BINARY, UMD_LOG_FILE or UMD_LOG_JSON names,\n"
            "the first of them that is there; - is standard input.\n"
            "\nExamples:\n"
            "  umd-log errors run.log                         what failed, why, and what to do about it\n"
            "  umd-log show --level warn --since -10 run.log  the last ten seconds, warnings and errors\n"
            "  umd-log merge rank*.log                        many processes on one time axis\n"
            "  umd-log doctor                                 why a log is empty\n"
            "\nExit status: 0 done, 1 usage, 2 a file could not be read or the output not be written, 3 with errors --check: the log has\n"
            "errors, 4 with errors --check: it has swallowed records.\n",
};

static int no_command(int argc, const char **argv);

/* The help of each command after that of the tool: a whole manual. tools/gen/gen_man.py knows commands by the lines between them. */
static int help_all(void)
{
    const char *words[] = { "", "--help", NULL };
    int status = no_command(2, words);

    for (size_t i = 0; i < COMMANDS; i++) {
        printf("\n---- umd-log %s ----\n\n", commands[i]->tool.command);
        (void)commands[i]->run(commands[i], 2, words);
    }
    return status;
}

/* Without a command: --help, --version, and what is wrong. */
static int no_command(int argc, const char **argv)
{
    int all = 0, status;
    struct tool_line line;
    struct poptOption table[] = {
        { "help-all", '\0', POPT_ARG_NONE, &all, 0, "this, and the options of each command", NULL },
        POPT_TABLEEND
    };

    if (!tool_is_completing() && argc > 1 && argv[1][0] != '-')
        return strcmp(argv[1], "help") == 0 ? help_all() : unknown(argv[1]);
    for (int i = 2; !tool_is_completing() && i < argc; i++) {
        if (command_of(argv[i]))
            return tool_usage("%.40s: the command comes first", argv[1]);
    }
    if (!tool_parse(&self, argc, argv, table, &line, &status))
        return status;
    status = all ? help_all() : tool_usage(line.count ? "the command comes first" : "no command");
    tool_line_finish(&line);
    return status;
}

const enum tool_env tool_env = TOOL_ENV_TAKE_ALL;

int main(int argc, char **argv)
{
    argc = tool_start("umd-log", argc, argv);
    int status = env_start();

    if (status != EXIT_DONE)
        return status;
    const struct command *c = argc > 1 + tool_is_completing() ? command_of(argv[1]) : NULL; /* the word itself may be what is asked for */
    status = c ? c->run(c, argc - 1, (const char **)argv + 1) : no_command(argc, (const char **)argv);
    return tool_finish(status);
}
