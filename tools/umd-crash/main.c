/* SPDX-License-Identifier: MIT */
/* main.c - umd-crash: reads crash snapshots, bundles what belongs to one, and hands it on. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../umd-log/env.h"
#include "pack.h"
#include "show.h"
#include "umd-tool.h"

#define TIMEOUT_MAX_S 86400u

struct options {
    int json;
    uint64_t timeout_s;
    const char *timeout, *output, *command, *emergency;
    const char **logs, **debug_dirs;    /* ended by NULL; NULL: none */
};

/* False: nothing there; said on standard error. */
static bool find_snapshot(const char *word, char *path, size_t size)
{
    const char *env = env_before("UMD_CRASH_DIR"), *at = word ? word : env && *env ? env : ".";
    struct stat st;

    if (stat(at, &st) != 0) {
        tool_say("%s: %s", at, strerror(errno));
        return false;
    }
    if (!S_ISDIR(st.st_mode))
        return snprintf(path, size, "%s", at) < (int)size;
    if (crash_newest(at, path, size))
        return true;
    tool_say("no crash snapshot in %s; programs write them with UMD_CRASH_DIR set", at);
    return false;
}

static int run(const char *command, const char *word, const struct options *o)
{
    struct crash_symbols *s = calloc(1, sizeof(*s));
    char path[4500], why[160];
    struct crash c;
    int status = EXIT_DONE;

    if (!s || !find_snapshot(word, path, sizeof(path))) {
        free(s);
        return EXIT_ENVIRONMENT;
    }
    if (!crash_load(path, &c, why, sizeof(why))) {
        tool_say("%s: %s", path, why);
        free(s);
        return EXIT_ENVIRONMENT;
    }
    if (!crash_symbols_find(&c, o->debug_dirs, s)) {
        tool_say("out of memory");
        status = EXIT_ENVIRONMENT;
    } else if (strcmp(command, "pack") == 0) {
        const char *hand_on = o->command ? o->command : env_before("PETREL_CRASH_COMMAND");
        status = crash_pack(path, &c, s, &(struct pack_options){ .output = o->output, .logs = o->logs, .emergency = o->emergency, .command = hand_on,
                                                                 .timeout_s = (int)o->timeout_s, .json = o->json });
    } else if (o->json) {
        status = crash_show_json(stdout, path, &c, s) ? EXIT_DONE : EXIT_ENVIRONMENT;
    } else {
        crash_show(stdout, path, &c, s);
    }
    crash_symbols_free(s);
    free(s);
    crash_unload(&c);
    return status;
}

static int check_and_run(const struct tool_line *line, void *options)
{
    struct options *o = options;
    const char *command = line->count ? line->words[0] : NULL;

    if (!command || (strcmp(command, "show") != 0 && strcmp(command, "pack") != 0))
        return tool_usage(command ? "unknown command" : "no command");
    if (line->count > 2)
        return tool_usage("one snapshot at a time");
    if (strcmp(command, "show") == 0 && (o->output || o->command || o->logs || o->emergency))
        return tool_usage("--output, --command, --log and --emergency belong to pack");
    if (!tool_number("timeout", o->timeout, 1, TIMEOUT_MAX_S, &o->timeout_s))
        return EXIT_USAGE;
    return run(command, line->count > 1 ? line->words[1] : NULL, o);
}

static void lists(void)
{
    puts("Commands:\n"
         "  show          print a crash snapshot as a story, with functions and lines from the ELF files on this machine\n"
         "  pack          bundle snapshot, story, emergency file, build-ids and logs in one file, and hand it on");
}

static bool complete(const struct tool_at *at)
{
    static const char *const commands[] = { "show", "pack", NULL };

    if (!at->option && at->count == 0)
        tool_offer_all(at, commands);
    return !at->option && at->count == 0;
}

const enum tool_env tool_env = TOOL_ENV_TAKE_ALL;
static const struct tool crash = {
    .words = "show|pack [FILE|DIR] [OPTION...]", .text = "reads crash snapshots, bundles what belongs to one, and hands it on",
    .lists = lists, .complete = complete,
    .help = "FILE is a snapshot (crash.PID.TIME), or a directory, of which the newest one is taken; without one, $UMD_CRASH_DIR or the\n"
            "working directory. Snapshots are written by programs that run with UMD_CRASH_DIR set, or call umdCrashHandlerInstall.\n"
            "\nExamples:\n"
            "  UMD_CRASH_DIR=/tmp/crashes umd-train mlp\n"
            "  umd-crash show /tmp/crashes\n"
            "  umd-crash pack /tmp/crashes --log run.log --command 'cp -t /srv/crashes'\n"
            "\nExit status: 0 done, 1 usage, 2 a file could not be read or written, or the command failed.\n",
};

int main(int argc, char **argv)
{
    struct options o = { .timeout = "60" };
    struct poptOption table[] = {
        { "json", 'j', POPT_ARG_NONE, &o.json, 0, "as JSON", NULL },
        { "output", 'o', POPT_ARG_STRING, &o.output, 0, "pack: the bundle (default: crash.PID.TIME.tar.gz here)", "FILE" },
        { "log", 'l', POPT_ARG_ARGV, &o.logs, 0, "pack: a log to put in; may come several times", "FILE" },
        { "emergency", 'e', POPT_ARG_STRING, &o.emergency, 0,
          "pack: the emergency file (default: that of the process, by $UMD_EMERGENCY_FILE or in $PETREL_STATE_DIR as umd-log emergency finds it)", "FILE" },
        { "command", 'c', POPT_ARG_STRING, &o.command, 0, "pack: then run this by the shell, the bundle its last argument (default: $PETREL_CRASH_COMMAND)", "CMD" },
        { "timeout", '\0', POPT_ARG_STRING, &o.timeout, 0, "pack: seconds the command may take (default: 60)", "SECONDS" },
        { "debug-dir", '\0', POPT_ARG_ARGV, &o.debug_dirs, 0, "look here for .build-id/xx/yyyy.debug; may come several times", "DIR" },
        POPT_TABLEEND
    };

    struct tool_line line;
    int status;

    argc = tool_start("umd-crash", argc, argv);
    status = env_start();
    if (status == EXIT_DONE && tool_parse(&crash, argc, (const char **)argv, table, &line, &status)) {
        status = check_and_run(&line, &o);
        tool_line_finish(&line);
    }
    return tool_finish(status);
}
