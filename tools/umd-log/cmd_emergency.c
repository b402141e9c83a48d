/* SPDX-License-Identifier: MIT */
/* cmd_emergency.c - emergency: the last critical records of a process, out of the file that outlives it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd.h"
#include "print.h"
#include "ring.h"
#include "settings.h"

static int put_out(const struct log_ring *r, bool json)
{
    struct log_rec rec = { 0 };
    bool memory = true;

    for (uint32_t i = 0; memory && i < r->count; i++) {
        memory = log_ring_rec(r, i, &rec);
        if (memory && json)
            print_json(&rec, NULL);
        else if (memory)
            print_text(&rec, NULL);
    }
    log_rec_finish(&rec);
    tool_flush();
    if (r->damaged)
        tool_say("%s: %u record(s) were damaged and are left out; one that was being written at the end is usual", r->path, r->damaged);
    if (r->count == 0 && !r->damaged)
        tool_say("%s: the ring is sound and empty: no error and no lifecycle event was recorded", r->path);
    return memory ? EXIT_DONE : EXIT_ENVIRONMENT;
}

static int emergency(const char *path, bool json)
{
    struct log_ring r;

    if (!log_ring_read(&r, path))
        return EXIT_ENVIRONMENT;
    int status = put_out(&r, json);
    log_ring_finish(&r);
    return status;
}

/* The files that processes of this user left, or have, newest first. */
static int put_list(const struct umd_emergency_found *found, uint32_t count, bool json)
{
    struct json_object *all = json_object_new_array();

    for (uint32_t i = 0; i < count; i++) {
        struct umd_emergency_head head = { 0 };
        char when[40];
        bool good = !umdFailed(umd_emergency_read_head(found[i].path, &head));
        log_time_format(found[i].mtime_ns, when);
        if (json) {
            struct json_object *o = json_object_new_object();
            json_add_text(o, "path", found[i].path);
            json_add_number(o, "pid", found[i].pid);
            json_add_bool(o, "alive", found[i].alive);
            json_add_big(o, "time_ns", found[i].mtime_ns);
            json_object_object_add(o, "program", good ? json_text(head.program) : NULL);
            json_object_array_add(all, o);
        } else {
            text_clean(head.program);
            printf("%s  %7u  %-5s  %-15s  %s\n", when, found[i].pid, found[i].alive ? "alive" : "gone", good ? head.program : "?",
                   found[i].path);
        }
    }
    if (json)
        json_put_out(all);
    json_object_put(all);
    if (!count)
        tool_say("there is no emergency file of a process of this user; one that ended without an error leaves none");
    return EXIT_DONE;
}

/* The file that UMD_EMERGENCY_FILE names, in the environment or the configuration file, of this tool or of a process that runs. */
static bool named_file(uint32_t pid, char *path, size_t size)
{
    static struct settings s;
    struct stat st;

    if (pid && settings_of(&s, pid) != 0) {
        settings_finish(&s);
        return false;
    }
    if (!pid)
        settings_own(&s);
    bool found = settings_path(&s, "UMD_EMERGENCY_FILE", path, size) && !strstr(path, "%p") && (!pid || stat(path, &st) == 0);
    settings_finish(&s);
    return found;
}

/* Which file: the one named, that of the process, that of the environment, the newest that is there. */
static int choose(const struct tool_line *line, const char *pid_text, bool list, bool json)
{
    static struct umd_emergency_found found[64];
    char path[4096];
    uint64_t pid = 0;

    if (line->count > 1 || (line->count && (pid_text || list)))
        return tool_usage("one file, or --pid, or --list");
    if (line->count)
        return emergency(line->words[0], json);
    if (!command_pid(pid_text, &pid))
        return EXIT_USAGE;
    if (!list && named_file((uint32_t)pid, path, sizeof(path)))
        return emergency(path, json);
    uint32_t count = umd_emergency_find((uint32_t)pid, found, 64);
    if (list)
        return put_list(found, count, json);
    if (!count && pid)
        tool_say("process %" PRIu64 " has left no emergency file: it had no error, or UMD_EMERGENCY_FILE names one: name it", pid);
    else if (!count)
        tool_say("there is no emergency file of a process of this user; name one, if UMD_EMERGENCY_FILE was set");
    if (!count)
        return EXIT_ENVIRONMENT;
    if (!pid)
        tool_say("%s is the newest%s", found[0].path, count > 1 ? "; --list shows all" : "");
    return emergency(found[0].path, json);
}

static int run(const struct command *self, int argc, const char **argv)
{
    int json = 0, list = 0, status;
    char *pid = NULL;
    struct tool_line line;
    struct poptOption table[] = {
        { "pid", 'p', POPT_ARG_STRING, &pid, 0, "of this process, alive or dead", "PID" },
        { "list", 'L', POPT_ARG_NONE, &list, 0, "which files there are, newest first", NULL },
        { "json", 'j', POPT_ARG_NONE, &json, 0, "one JSON object per line, as the log's own JSON format; with --list an array", NULL },
        POPT_TABLEEND
    };

    if (!tool_parse(&self->tool, argc, argv, table, &line, &status))
        return status;
    status = choose(&line, pid, list, json);
    tool_line_finish(&line);
    return status;
}

const struct command command_emergency = {
    .run = run,
    .tool = {
        .command = "emergency", .words = "[OPTION...] [FILE]", .text = "the last critical records of a process that died, or lives",
        .help = "Reads the emergency ring, which holds the last 256 ERROR and lifecycle records, oldest first, each with its own checksum. It\n"
                "survives kill -9, a full disk and a log that failed. Without FILE: that of UMD_EMERGENCY_FILE (in the environment or\n"
                "the configuration file), else the newest of this user.\n"
                "\nExamples:\n  umd-log emergency --pid 4711\n  umd-log emergency --list\n  umd-log emergency --json ring.bin\n",
        .complete = command_complete,
    },
};
