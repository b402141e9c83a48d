/* SPDX-License-Identifier: MIT */
/* cmd_doctor.c - doctor: the log is on but empty, and this says why (C11). */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "doctor.h"
#include "print.h"
#include "rec.h"

void doctor_say(struct doctor *d, enum verdict verdict, const char *fmt, ...)
{
    va_list ap;

    if (d->count == FINDINGS_MAX)
        return;
    struct finding *f = &d->finding[d->count++];
    f->verdict = verdict;
    va_start(ap, fmt);
    vsnprintf(f->text, sizeof(f->text), fmt, ap);
    va_end(ap);
    text_clean(f->text); /* names of files and values of settings may be anything */
}

static const struct { const char *word, *what, *todo; } verdicts[] = {
    [VERDICT_FINE] = { "fine", "The log works.", "Nothing. For more in it, raise a level: UMD_LOG_LEVEL=debug, or umd-log level SPEC --pid N." },
    [VERDICT_NOTHING_HAPPENED] = { "nothing-happened", "The log works; nothing that it takes was logged.",
                                   "Raise its level, or wait until the program uses the driver." },
    [VERDICT_NEVER_LOGGED] = { "never-logged", "No process has written to this log.",
                               "See that the program inherits the setting (sudo, ssh, containers and service managers drop it) and calls umdInit." },
    [VERDICT_NO_FILE] = { "no-file", "No log file is asked for.", "Set UMD_LOG_FILE=run.log before the program starts, or call umdLogOpenFile." },
    [VERDICT_NO_LOG] = { "no-log", "The file is no log of Petrel.", "Name the file that UMD_LOG_FILE, or another setting of docs/logging.md, names." },
    [VERDICT_FILTERED] = { "filtered", "What is missing is filtered by level.",
                           "Raise the level in the setting that the finding names; DEBUG and TRACE of a program of your own must be compiled in, too." },
    [VERDICT_COMPILED_OUT] = { "compiled-out", "What is missing is not compiled in.",
                               "Build the libraries with -Dumd_debug=true, a program of your own with -DUMD_DEBUG_ENABLE=1." },
    [VERDICT_LOST] = { "lost", "Records were lost on the way.",
                       "Dropped ones: log less, or to the binary file. Ones that could not be written: see that it can be; docs/logging.md, When the log itself "
                       "fails." },
    [VERDICT_CUT_SHORT] = { "cut-short", "The end of a log is missing.",
                            "The last errors of its process are in its emergency ring: umd-log emergency --list. Make room before the next run, or put the "
                            "log elsewhere." },
    [VERDICT_BAD_SETTING] = { "bad-setting", "A setting is ignored.", "Mend the setting that the finding names." },
    [VERDICT_NO_LIBRARY] = { "no-library", "The process does not log with Petrel.", "Check the process id, and that the program links to libumd.so." },
    [VERDICT_SINK_FAILING] = { "sink-failing", "The log cannot write.", "Remove the cause that the finding names; it goes on by itself within a second." },
    [VERDICT_DISK_FULL] = { "disk-full", "The disk that holds the log is full.",
                            "Make room, or put the log elsewhere (UMD_LOG_FILE). A process that runs goes on within a second, and says what it has lost." },
    [VERDICT_PATH] = { "path-unwritable", "The log file cannot be written.", "Make the path writable, or name another." },
};

const char *doctor_word(enum verdict verdict) { return verdicts[verdict].word; }
const char *doctor_todo(enum verdict verdict) { return verdicts[verdict].todo; }

enum verdict doctor_verdict(const struct doctor *d)
{
    enum verdict worst = VERDICT_FINE;

    for (uint32_t i = 0; i < d->count; i++) {
        enum verdict v = d->finding[i].verdict;
        if (d->working && (v == VERDICT_NO_FILE || v == VERDICT_NEVER_LOGGED || v == VERDICT_NOTHING_HAPPENED))
            continue; /* a file that was opened by call, or one of several */
        worst = v > worst ? v : worst;
    }
    return worst;
}

static void put_text(const struct doctor *d, enum verdict verdict)
{
    for (uint32_t i = 0; i < d->count; i++) {
        const struct finding *f = &d->finding[i];
        bool good = f->verdict == VERDICT_FINE;
        printf("%s%-16s%s %s\n", text_colour(good ? TEXT_GREEN : TEXT_YELLOW), good ? "ok" : doctor_word(f->verdict), text_colour(TEXT_PLAIN),
               f->text);
    }
    printf("\n%sverdict: %s%s. %s\nnext: %s\n", text_colour(TEXT_BOLD), doctor_word(verdict), text_colour(TEXT_PLAIN), verdicts[verdict].what,
           doctor_todo(verdict));
}

static void put_json(const struct doctor *d, enum verdict verdict)
{
    struct json_object *o = json_object_new_object(), *all = json_object_new_array();

    json_add_text(o, "verdict", doctor_word(verdict));
    json_add_text(o, "what", verdicts[verdict].what);
    json_add_text(o, "next", doctor_todo(verdict));
    for (uint32_t i = 0; i < d->count; i++) {
        struct json_object *f = json_object_new_object();
        json_add_text(f, "kind", doctor_word(d->finding[i].verdict));
        json_add_text(f, "text", d->finding[i].text);
        json_object_array_add(all, f);
    }
    json_object_object_add(o, "findings", all);
    json_put_out(o);
    json_object_put(o);
}

/* Settings and the files that they name, or the files given, or a process. */
static bool examine(struct doctor *d, const struct tool_line *line)
{
    char path[4096];

    if (d->pid) {
        if (!doctor_process(d))
            return false;
        doctor_module(d);
        return true;
    }
    settings_own(&d->settings);
    if (line->count && d->module)
        doctor_read_sites(d);
    for (uint32_t i = 0; i < line->count; i++)
        doctor_file(d, line->words[i]);
    if (line->count) {
        doctor_module(d);
        return true;
    }
    doctor_settings(d);
    for (int i = SINK_FILES; sink_facts(i); i++) {
        if (settings_path(&d->settings, sink_facts(i)->path_key, path, sizeof(path)) && !strstr(path, "%p"))
            doctor_file(d, path);
    }
    doctor_module(d);
    return true;
}

static int run(const struct command *self, int argc, const char **argv)
{
    static struct doctor d;
    int json = 0, status;
    char *pid_text = NULL, *module = NULL, *level = NULL;
    uint64_t pid = 0;
    struct tool_line line;
    struct poptOption table[] = {
        { "pid", 'p', POPT_ARG_STRING, &pid_text, 0, "a running process", "PID" },
        { "module", 'm', POPT_ARG_STRING, &module, 0, "records of this module are missing", "NAME" },
        { "level", 'l', POPT_ARG_STRING, &level, 0, "records of this level are missing", "LEVEL" },
        { "json", 'j', POPT_ARG_NONE, &json, 0, "as JSON", NULL },
        POPT_TABLEEND
    };

    if (!tool_parse(&self->tool, argc, argv, table, &line, &status))
        return status;
    status = EXIT_DONE;
    if (pid_text && line.count) {
        status = tool_usage("--pid and files exclude each other");
    } else if (!command_level_of(level, &d.level) || !command_pid(pid_text, &pid)) {
        status = EXIT_USAGE;
    } else {
        d.pid = (uint32_t)pid;
        d.module = module;
        bool seen = examine(&d, &line);
        enum verdict verdict = doctor_verdict(&d);
        status = seen ? EXIT_DONE : EXIT_ENVIRONMENT;
        if (!seen)
            ; /* said already */
        else if (json)
            put_json(&d, verdict);
        else
            put_text(&d, verdict);
        settings_finish(&d.settings);
        for (uint32_t i = 0; i < d.module_count; i++)
            free(d.modules[i]);
        free(d.modules);
    }
    tool_line_finish(&line);
    return status;
}

const struct command command_doctor = {
    .run = run,
    .tool = {
        .command = "doctor", .words = "[OPTION...] [FILE...]", .text = "why a log is empty, cut short, or lacks what was expected in it",
        .help = "Without FILE and --pid: looks at the settings of the environment it is called in, and at the files that they name. The verdict is\n"
                "one of fine, nothing-happened, never-logged, no-file, no-log, filtered, compiled-out, lost, cut-short, bad-setting, no-library,\n"
                "sink-failing, disk-full, path-unwritable; each finding says what was seen, and which setting is behind it.\n"
                "\nExamples:\n  umd-log doctor\n  UMD_LOG_FILE=/nowhere/run.log umd-log doctor\n  umd-log doctor --level trace --module umd.mem run.log\n"
                "  umd-log doctor --pid 4711\n",
        .complete = command_complete,
    },
};
