/* SPDX-License-Identifier: MIT */
/* cmd_control.c - level, reopen and status: the log of a running process, over its control socket. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "control.h"
#include "log_control.h"
#include "print.h"
#include "rec.h"
#include "record.h"

#define TIMEOUT_MS 3000u

int control_ask(uint32_t pid, const char *command, char *answer, size_t size, char *why, size_t why_size)
{
    umdErrorDetail d;
    umdFigure reason;
    umdStatus st = umd_log_control(pid, command, TIMEOUT_MS, answer, size);

    why[0] = '\0';
    if (!umdFailed(st))
        return EXIT_DONE;
    if (umd_record_export(&d) && umdErrorDetailFigure(&d, "reason", &reason))
        snprintf(why, why_size, "%s", reason.text);
    else
        snprintf(why, why_size, "%s", umdStatusString(st));
    return st == UMD_ERR_CONFIG_VALUE ? EXIT_USAGE : EXIT_ENVIRONMENT;
}

static void put_sink(struct json_object *s)
{
    const char *levels = json_text_of(s, "levels"), *from = json_text_of(s, "levels_from"), *path = json_text_of(s, "path");

    if (!json_is_true(s, "enabled"))
        return;
    printf("%-9s levels %s (%s)", json_text_of(s, "name"), *levels ? levels : json_text_of(s, "default"), *levels ? from : "default");
    if (*path)
        printf(", %s (%s), %s, %s bytes", path, json_text_of(s, "path_from"), json_is_true(s, "open") ? "open" : "not open yet", json_text_of(s, "file_B"));
    if (strcmp(json_text_of(s, "lost"), "0") != 0)
        printf(", %slost %s%s", text_colour(TEXT_YELLOW), json_text_of(s, "lost"), text_colour(TEXT_PLAIN));
    if (json_is_true(s, "failing"))
        printf(", %sfailing: %s (errno %s), %s lines wait%s", text_colour(TEXT_RED), json_text_of(s, "reason"), json_text_of(s, "errno"), json_text_of(s, "waiting"),
               text_colour(TEXT_PLAIN));
    putchar('\n');
}

/* "counts    records 7 lost 0", as far as there are any. */
static void put_members(const char *title, struct json_object *of, const char *between)
{
    char name[80];

    printf("%-9s", title);
    json_object_object_foreach(of, key, value) {
        snprintf(name, sizeof(name), "%.79s", key);
        text_clean(name);
        printf(" %s%s%s", name, between, json_object_get_string(value));
    }
    putchar('\n');
}

static void put_status(struct json_object *o)
{
    struct json_object *sinks = NULL, *counts = NULL, *modules = NULL;
    const char *levels = json_text_of(o, "levels");

    printf("process   %s, version %s, compiled in up to %s\n", json_text_of(o, "pid"), json_text_of(o, "version"), json_text_of(o, "ceiling"));
    if (*levels)
        printf("all       levels %s (%s)\n", levels, json_text_of(o, "levels_from"));
    if (json_object_object_get_ex(o, "sinks", &sinks) && json_object_is_type(sinks, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(sinks); i++)
            put_sink(json_object_array_get_idx(sinks, i));
    }
    if (json_object_object_get_ex(o, "counts", &counts) && json_object_is_type(counts, json_type_object))
        put_members("counts", counts, " ");
    if (json_object_object_get_ex(o, "modules", &modules) && json_object_is_type(modules, json_type_object))
        put_members("modules", modules, "=");
}

/* NULL: it is none. What the process says, names of files among it, goes to the terminal. */
static struct json_object *answer_of(const char *text)
{
    struct json_object *o = json_tokener_parse(text);

    if (!json_object_is_type(o, json_type_object)) {
        json_object_put(o);
        return NULL;
    }
    json_clean(o);
    return o;
}

struct json_object *control_status(uint32_t pid, char *why, size_t why_size)
{
    char answer[UMD_CONTROL_ANSWER_B];

    if (control_ask(pid, "status", answer, sizeof(answer), why, why_size) != EXIT_DONE)
        return NULL;
    struct json_object *o = answer_of(answer);
    if (!o)
        snprintf(why, why_size, "its answer is no JSON object: it is of another version");
    return o;
}

static int failed(uint32_t pid, const char *why, int status)
{
    if (status == EXIT_ENVIRONMENT && kill((pid_t)pid, 0) != 0 && errno == ESRCH) {
        tool_say("process %u: there is none of that id", pid);
        return status;
    }
    tool_say("process %u: %s%s", pid, why,
            status == EXIT_ENVIRONMENT ? "; it has a control socket from umdInit on, unless it is stepped or UMD_CONTROL=off" : "");
    return status;
}

static int status_of(uint32_t pid, bool json)
{
    char why[256];
    struct json_object *o = control_status(pid, why, sizeof(why));

    if (!o)
        return failed(pid, why, EXIT_ENVIRONMENT);
    if (json)
        json_put_out(o);
    else
        put_status(o);
    json_object_put(o);
    return EXIT_DONE;
}

static int reopen(uint32_t pid)
{
    char answer[1024], why[256];
    int status = control_ask(pid, "reopen", answer, sizeof(answer), why, sizeof(why));

    return status == EXIT_DONE ? EXIT_DONE : failed(pid, why, status);
}

static bool sink_reached(struct json_object *modules)
{
    for (size_t i = 0; i < json_object_array_length(modules); i++)
        if (strcmp(json_text_of(json_object_array_get_idx(modules, i), "set_for"), "all") == 0)
            return true;
    return false;
}

/* One line: what the sink has now for each module that was named, and where that is not what was set, why. */
static void put_levels(const char *name, struct json_object *modules, const char *ceiling, bool for_all)
{
    const char *own = NULL;
    bool compiled_out = false;

    printf("%-9s", name);
    for (size_t i = 0; i < json_object_array_length(modules); i++) {
        struct json_object *m = json_object_array_get_idx(modules, i);
        const char *module = json_text_of(m, "module"), *level = json_text_of(m, "level");
        if (strcmp(module, "*") == 0)
            module = json_object_array_length(modules) > 1 ? "others" : "";
        printf("%s%s%s%s", i ? ", " : " ", module, *module ? " " : "", level);
        if (for_all && strcmp(json_text_of(m, "set_for"), "all") != 0)
            own = json_text_of(m, "levels_from");
        compiled_out = compiled_out || log_level_of(level, strlen(level)) > log_level_of(ceiling, strlen(ceiling));
    }
    if (own)
        printf(" %s(levels of its own, by %s; --sink %s sets them)%s", text_colour(TEXT_YELLOW), own, name, text_colour(TEXT_PLAIN));
    if (compiled_out)
        printf(" %s(compiled in up to %s)%s", text_colour(TEXT_YELLOW), ceiling, text_colour(TEXT_PLAIN));
    putchar('\n');
}

/* Value: whether any sink goes by what was set for all. */
static bool put_answer(struct json_object *o, bool for_all, bool json)
{
    struct json_object *sinks = NULL, *modules = NULL;
    bool reached = false;

    if (json)
        json_put_out(o);
    if (!json_object_object_get_ex(o, "sinks", &sinks) || !json_object_is_type(sinks, json_type_array))
        return false;
    for (size_t i = 0; i < json_object_array_length(sinks); i++) {
        struct json_object *s = json_object_array_get_idx(sinks, i);
        if (!json_object_object_get_ex(s, "modules", &modules) || !json_object_is_type(modules, json_type_array))
            continue;
        reached = reached || sink_reached(modules);
        if (!json)
            put_levels(json_text_of(s, "name"), modules, json_text_of(o, "ceiling"), for_all);
    }
    return reached;
}

/* sink NULL: what is set for all. */
static int set_levels(uint32_t pid, const char *sink, const char *spec, bool json)
{
    char answer[UMD_CONTROL_ANSWER_B], why[256], command[UMD_CONTROL_LINE_B];

    if (snprintf(command, sizeof(command), "%s%s %s", sink ? "sink " : "level", sink ? sink : "", spec) >= (int)sizeof(command) - 1) {
        (void)tool_usage("the specification is too long");
        return EXIT_USAGE;
    }
    int status = control_ask(pid, command, answer, sizeof(answer), why, sizeof(why));
    if (status != EXIT_DONE)
        return failed(pid, why, status);
    struct json_object *o = answer_of(answer);
    if (!o)
        return failed(pid, "its answer is no JSON object: it is of another version", EXIT_USAGE);
    const bool for_all = !sink && *spec, reached = put_answer(o, for_all, json);
    json_object_put(o);
    if (for_all && !reached) {
        tool_say("process %u: set, but each sink has levels of its own, and goes by those: --sink NAME sets them", pid);
        return EXIT_ENVIRONMENT;
    }
    return EXIT_DONE;
}

static int run(const struct command *self, int argc, const char **argv)
{
    bool level = self == &command_level, is_status = self == &command_status;
    int json = 0, console = 0, status = EXIT_USAGE;
    char *pid_text = NULL, *sink = NULL;
    uint64_t pid = 0;
    struct tool_line line;
    struct poptOption table[] = {
        { "pid", 'p', POPT_ARG_STRING, &pid_text, 0, "the process", "PID" },
        POPT_TABLEEND,
        POPT_TABLEEND,
        POPT_TABLEEND,
        POPT_TABLEEND
    };

    if (is_status || level)
        table[1] = (struct poptOption){ "json", 'j', POPT_ARG_NONE, &json, 0, "as JSON", NULL };
    if (level) {
        table[2] = (struct poptOption){ "sink", 's', POPT_ARG_STRING, &sink, 0, "of that sink alone: console, text, json, binary, run, disaster", "NAME" };
        table[3] = (struct poptOption){ "console", '\0', POPT_ARG_NONE, &console, 0, "as --sink console", NULL };
    }
    if (!tool_parse(&self->tool, argc, argv, table, &line, &status))
        return status;
    status = EXIT_USAGE;
    if (!pid_text)
        (void)tool_usage("--pid is missing: whose log?");
    else if (line.count != (level ? 1u : 0u))
        (void)tool_usage(level ? "level takes one specification, as umd.mem=trace,info" : "there is a word too many");
    else if (console && sink && strcmp(sink, "console") != 0)
        (void)tool_usage("--console and --sink %s: which of both?", sink);
    else if (sink && strchr(sink, ' '))
        (void)tool_usage("--sink takes one name");
    else if (command_pid(pid_text, &pid))
        status = is_status ? status_of((uint32_t)pid, json) : level ? set_levels((uint32_t)pid, console ? "console" : sink, line.words[0], json)
                                                                    : reopen((uint32_t)pid);
    tool_line_finish(&line);
    return status;
}

const struct command command_level = {
    .run = run,
    .tool = {
        .command = "level", .words = "[OPTION...] SPEC --pid PID", .text = "sets the levels of a running process",
        .help = "SPEC is a comma list of [MODULE=]off|error|warn|info|debug|trace; a module covers what is below it, and the longest match counts.\n"
                "It replaces what was set for all sinks before; an empty SPEC goes back to what each sink has by itself. What a sink has of its own\n"
                "(UMD_LOG_FILE_LEVEL, a file opened with levels) goes before it, and run and disaster log never ask it: --sink sets those.\n"
                "The answer is what each sink has now for the modules of SPEC.\n"
                "\nExamples:\n  umd-log level umd.mem=trace,info --pid 4711\n  umd-log level umd.mem=debug --sink json --pid 4711\n",
        .complete = command_complete_spec,
    },
};
const struct command command_reopen = {
    .run = run,
    .tool = {
        .command = "reopen", .words = "[OPTION...] --pid PID", .text = "makes a running process begin its log files anew, after they were moved away",
        .help = "For logrotate: after the files were moved, before they are compressed. Nothing is lost.\n\nExample:\n  umd-log reopen --pid 4711\n",
        .complete = command_complete_none,
    },
};
const struct command command_status = {
    .run = run,
    .tool = {
        .command = "status", .words = "[OPTION...] --pid PID", .text = "files, levels and counts of a running process's log",
        .help = "Behind each setting stands where it came from: default, config, environment, api, control.\n"
                "\nExamples:\n  umd-log status --pid 4711\n  umd-log status --json --pid 4711\n",
        .complete = command_complete_none,
    },
};
