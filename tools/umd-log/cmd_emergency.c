/* SPDX-License-Identifier: MIT */
/* cmd_emergency.c - emergency: the last critical records of a process, out of the file that outlives it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../umd-tool.h"
#include "cmd.h"
#include "emergency.h"
#include "print.h"
#include "rec.h"

struct reading {
    struct umd_emergency_slot slots[UMD_EMERGENCY_SLOTS];
    uint32_t count, damaged;
};

/* A slot as a record of a log, so that it is shown like one. Texts in the file may be anything. */
static bool to_rec(struct log_rec *rec, const struct umd_emergency_slot *s, const char *path)
{
    if (!log_rec_begin(rec, sizeof(*s) + 64))
        return false;
    rec->real_ns = rec->observed_ns = s->real_ns;
    rec->mono_ns = s->mono_ns;
    rec->level = s->level <= UMD_LOG_TRACE ? (int)s->level : 0;
    rec->level_text = log_level_name(rec->level);
    rec->pid = s->pid;
    rec->tid = s->tid;
    rec->line = s->line;
    rec->context_id = s->context_id;
    rec->id = s->record;
    rec->code = s->code;
    rec->code_name = s->code ? umdStatusName((umdStatus)s->code) : "";
    rec->module = log_rec_text(rec, s->module, strnlen(s->module, sizeof(s->module)));
    rec->func = log_rec_text(rec, s->func, strnlen(s->func, sizeof(s->func)));
    rec->file = log_rec_text(rec, s->file, strnlen(s->file, sizeof(s->file)));
    rec->message = log_rec_text(rec, s->message, strnlen(s->message, sizeof(s->message)));
    rec->path = path;
    return true;
}

static int put_out(const struct reading *r, const char *path, bool json)
{
    struct log_rec rec = { 0 };

    for (uint32_t i = 0; i < r->count; i++) {
        if (!to_rec(&rec, &r->slots[i], path)) {
            fprintf(stderr, "umd-log: out of memory\n");
            return EXIT_ENVIRONMENT;
        }
        if (json)
            print_json(&rec, NULL);
        else
            print_text(&rec, NULL);
    }
    log_rec_finish(&rec);
    fflush(stdout);
    if (r->damaged)
        fprintf(stderr, "umd-log: %s: %u record(s) were damaged and are left out; one that was being written at the end is usual\n", path,
                r->damaged);
    if (r->count == 0 && !r->damaged)
        fprintf(stderr, "umd-log: %s: the ring is sound and empty: no error and no lifecycle event was recorded\n", path);
    return EXIT_DONE;
}

static int emergency(const char *path, bool json)
{
    struct reading *r = calloc(1, sizeof(*r));
    int status = EXIT_ENVIRONMENT;

    if (!r) {
        fprintf(stderr, "umd-log: out of memory\n");
        return EXIT_ENVIRONMENT;
    }
    if (umdFailed(umd_emergency_read(path, r->slots, UMD_EMERGENCY_SLOTS, &r->count, &r->damaged))) {
        umdErrorDetail unused;
        FILE *f = fopen(path, "re");
        (void)umd_record_export(&unused); /* it is told here */
        fprintf(stderr, "umd-log: %s: %s; name the file of UMD_EMERGENCY_FILE\n", path,
                f ? "this is no emergency ring of this version" : strerror(errno));
        if (f)
            fclose(f);
    } else {
        status = put_out(r, path, json);
    }
    free(r);
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
        int name_n = (int)strnlen(head.program, sizeof(head.program));
        log_time_format(found[i].mtime_ns, when);
        if (json) {
            struct json_object *o = json_object_new_object();
            json_add_text(o, "path", found[i].path);
            json_add_number(o, "pid", found[i].pid);
            json_object_object_add(o, "alive", json_object_new_boolean(found[i].alive));
            json_add_big(o, "time_ns", found[i].mtime_ns);
            json_object_object_add(o, "program", good ? json_object_new_string_len(head.program, name_n) : NULL);
            json_object_array_add(all, o);
        } else {
            tool_clean(head.program);
            printf("%s  %7u  %-5s  %-15.*s  %s\n", when, found[i].pid, found[i].alive ? "alive" : "gone", name_n, good ? head.program : "?",
                   found[i].path);
        }
    }
    if (json)
        json_put_out(all);
    json_object_put(all);
    if (!count)
        fprintf(stderr, "umd-log: there is no emergency file of a process of this user; one that ended without an error leaves none\n");
    return EXIT_DONE;
}

/* Which file: the one named, that of the process, that of the environment, the newest that is there. */
static int choose(const struct command *self, const struct command_line *line, const char *pid_text, bool list, bool json)
{
    static struct umd_emergency_found found[64];
    const char *variable = env_before("UMD_EMERGENCY_FILE");
    uint64_t pid = 0;

    if (line->count > 1 || (line->count && (pid_text || list)))
        return command_usage(self, "one file, or --pid, or --list");
    if (line->count)
        return emergency(line->words[0], json);
    if (pid_text && !command_number(self, "pid", pid_text, INT32_MAX, &pid))
        return EXIT_USAGE;
    if (!pid && !list && variable && *variable && !strchr(variable, '%'))
        return emergency(variable, json);
    uint32_t count = umd_emergency_find((uint32_t)pid, found, 64);
    if (list)
        return put_list(found, count, json);
    if (!count && pid)
        fprintf(stderr, "umd-log: process %" PRIu64 " has left no emergency file: it had no error, or UMD_EMERGENCY_FILE names one: name it\n", pid);
    else if (!count)
        fprintf(stderr, "umd-log: there is no emergency file of a process of this user; name one, if UMD_EMERGENCY_FILE was set\n");
    if (!count)
        return EXIT_ENVIRONMENT;
    if (!pid)
        fprintf(stderr, "umd-log: %s is the newest%s\n", found[0].path, count > 1 ? "; --list shows all" : "");
    return emergency(found[0].path, json);
}

static int run(const struct command *self, int argc, const char **argv)
{
    int json = 0, list = 0, status;
    char *pid = NULL;
    struct command_line line;
    struct poptOption table[] = {
        { "pid", 'p', POPT_ARG_STRING, &pid, 0, "of this process, alive or dead", "PID" },
        { "list", 'L', POPT_ARG_NONE, &list, 0, "which files there are, newest first", NULL },
        { "json", 'j', POPT_ARG_NONE, &json, 0, "one JSON object per line, as the log's own JSON format; with --list an array", NULL },
        POPT_TABLEEND
    };

    if (!command_parse(self, argc, argv, table, &line, &status)) {
        free(pid);
        return status;
    }
    status = choose(self, &line, pid, list, json);
    free(pid);
    command_finish(&line);
    return status;
}

const struct command command_emergency = {
    .name = "emergency", .words = "[FILE]", .text = "the last critical records of a process that died, or lives", .run = run,
    .help = "Reads the emergency ring, which holds the last 256 ERROR and lifecycle records, oldest first, each with its own checksum. It\n"
            "survives kill -9, a full disk and a log that failed. Without FILE: that of UMD_EMERGENCY_FILE, else the newest of this user.\n"
            "\nExamples:\n  umd-log emergency --pid 4711\n  umd-log emergency --list\n  umd-log emergency --json ring.bin\n",
};
