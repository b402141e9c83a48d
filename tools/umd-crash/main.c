/* SPDX-License-Identifier: MIT */
/* main.c - umd-crash: reads crash snapshots, bundles what belongs to one, and hands it on. */
#include <errno.h>
#include <popt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <umd/umd_log.h>

#include "pack.h"
#include "show.h"
#include "umd-tool.h"

enum { EXIT_DONE, EXIT_USAGE, EXIT_ENVIRONMENT };
enum { MANY = 64, TIMEOUT_S = 60 };

struct options {
    int json, help, version, timeout_s;
    char *output, *command;
    const char *logs[MANY + 1], *debug_dirs[MANY + 1];
};

static void print_help(poptContext pc)
{
    poptPrintHelp(pc, stdout, 0);
    printf("\nCommands:\n"
           "  show          print a crash snapshot as a story, with functions and lines from the ELF files on this machine\n"
           "  pack          bundle snapshot, story, emergency file, build-ids and logs in one file, and hand it on\n"
           "\nFILE is a snapshot (crash.PID.TIME), or a directory, of which the newest one is taken; without one, $UMD_CRASH_DIR or the\n"
           "working directory. Snapshots are written by programs that run with UMD_CRASH_DIR set, or call umdCrashHandlerInstall.\n"
           "\nExamples:\n"
           "  UMD_CRASH_DIR=/tmp/crashes umd-train mlp\n"
           "  umd-crash show /tmp/crashes\n"
           "  umd-crash pack /tmp/crashes --log run.log --command 'cp -t /srv/crashes'\n"
           "\nExit status: 0 done, 1 usage, 2 a file could not be read or written, or the command failed.\n");
}

static int usage(const char *what)
{
    fprintf(stderr, "umd-crash: %s; try umd-crash --help\n", what);
    return EXIT_USAGE;
}

/* False: nothing there; said on standard error. */
static bool find_snapshot(const char *word, char *path, size_t size)
{
    const char *env = getenv("UMD_CRASH_DIR"), *at = word ? word : env && *env ? env : ".";
    struct stat st;

    if (stat(at, &st) != 0) {
        fprintf(stderr, "umd-crash: %s: %s\n", at, strerror(errno));
        return false;
    }
    if (!S_ISDIR(st.st_mode))
        return snprintf(path, size, "%s", at) < (int)size;
    if (crash_newest(at, path, size))
        return true;
    fprintf(stderr, "umd-crash: no crash snapshot in %s; programs write them with UMD_CRASH_DIR set\n", at);
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
        fprintf(stderr, "umd-crash: %s: %s\n", path, why);
        free(s);
        return EXIT_ENVIRONMENT;
    }
    if (!crash_symbols_find(&c, o->debug_dirs, s)) {
        fprintf(stderr, "umd-crash: out of memory\n");
        status = EXIT_ENVIRONMENT;
    } else if (strcmp(command, "pack") == 0) {
        const char *hand_on = o->command ? o->command : getenv("PETREL_CRASH_COMMAND");
        status = crash_pack(path, &c, s, &(struct pack_options){ .output = o->output, .logs = o->logs, .command = hand_on,
                                                                 .timeout_s = o->timeout_s, .json = o->json });
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

/* Options that may come several times. False: too many. */
static bool keep(const char **list, const char *value)
{
    size_t n = 0;

    while (list[n])
        n++;
    if (n == MANY)
        return false;
    list[n] = value;
    return true;
}

static int parse_and_run(poptContext pc, struct options *o)
{
    int rc;

    while ((rc = poptGetNextOpt(pc)) > 0)
        if (!keep(rc == 'l' ? o->logs : o->debug_dirs, poptGetOptArg(pc)))
            return usage("too many --log or --debug-dir");
    if (rc < -1) {
        fprintf(stderr, "umd-crash: %s: %s; try umd-crash --help\n", poptBadOption(pc, POPT_BADOPTION_NOALIAS), poptStrerror(rc));
        return EXIT_USAGE;
    }
    if (o->help) {
        print_help(pc);
        return EXIT_DONE;
    }
    if (o->version) {
        printf("umd-crash %s\n", PETREL_VERSION);
        return EXIT_DONE;
    }
    const char *command = poptGetArg(pc), *word = command ? poptGetArg(pc) : NULL;
    if (!command || (strcmp(command, "show") != 0 && strcmp(command, "pack") != 0))
        return usage(command ? "unknown command" : "no command");
    if (word && poptPeekArg(pc))
        return usage("one snapshot at a time");
    if (strcmp(command, "show") == 0 && (o->output || o->command || o->logs[0]))
        return usage("--output, --command and --log belong to pack");
    if (o->timeout_s < 1 || o->timeout_s > 86400)
        return usage("--timeout takes 1 to 86400 seconds");
    return run(command, word, o);
}

int main(int argc, char **argv)
{
    struct options o = { .timeout_s = TIMEOUT_S };
    const struct poptOption table[] = {
        { "json", 0, POPT_ARG_NONE, &o.json, 0, "print JSON", NULL },
        { "output", 'o', POPT_ARG_STRING, &o.output, 0, "pack: the bundle (default: crash.PID.TIME.tar.gz here)", "FILE" },
        { "log", 'l', POPT_ARG_STRING, NULL, 'l', "pack: a log to put in; may come several times", "FILE" },
        { "command", 'c', POPT_ARG_STRING, &o.command, 0, "pack: then run this by the shell, the bundle its last argument (default: $PETREL_CRASH_COMMAND)", "CMD" },
        { "timeout", 0, POPT_ARG_INT, &o.timeout_s, 0, "pack: seconds the command may take (default: 60)", "SECONDS" },
        { "debug-dir", 0, POPT_ARG_STRING, NULL, 'd', "look here for .build-id/xx/yyyy.debug; may come several times", "DIR" },
        { "help", 'h', POPT_ARG_NONE, &o.help, 0, "show this", NULL },
        { "version", 'V', POPT_ARG_NONE, &o.version, 0, "show the version", NULL },
        POPT_TABLEEND
    };

    tool_start();
    if (!tool_wants_console() && umdFailed(umdLogSetConsole("off")))
        return usage("the log cannot be set up");
    poptContext pc = poptGetContext("umd-crash", argc, (const char **)argv, table, 0);
    poptSetOtherOptionHelp(pc, "show|pack [FILE|DIR] [OPTION...]");
    int status = parse_and_run(pc, &o);
    for (size_t i = 0; i < MANY; i++) {
        free((char *)(uintptr_t)o.logs[i]);
        free((char *)(uintptr_t)o.debug_dirs[i]);
    }
    free(o.output);
    free(o.command);
    poptFreeContext(pc);
    return tool_finish("umd-crash", status);
}
