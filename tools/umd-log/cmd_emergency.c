/* SPDX-License-Identifier: MIT */
/* cmd_emergency.c - emergency: the last critical records of a process, out of the file that outlives it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    rec->level = s->code < 0 ? UMD_LOG_ERROR : UMD_LOG_INFO;
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
        FILE *f = fopen(path, "re");
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

static int run(const struct command *self, int argc, const char **argv)
{
    int json = 0, status;
    struct command_line line;
    struct poptOption table[] = {
        { "json", 'j', POPT_ARG_NONE, &json, 0, "one JSON object per line, as the log's own JSON format", NULL },
        POPT_TABLEEND
    };

    if (!command_parse(self, argc, argv, table, &line, &status))
        return status;
    const char *path = line.count ? line.words[0] : env_before("UMD_EMERGENCY_FILE");
    if (line.count > 1)
        status = command_usage(self, "emergency reads one file");
    else if (!path || !*path)
        status = command_usage(self, "no file is named, and UMD_EMERGENCY_FILE is not set");
    else
        status = emergency(path, json);
    command_finish(&line);
    return status;
}

const struct command command_emergency = {
    .name = "emergency", .words = "[FILE]", .text = "the last critical records of a process that died, or lives", .run = run,
    .help = "Reads the emergency ring, which holds the last 256 ERROR and lifecycle records, oldest first, each with its own checksum. It\n"
            "survives kill -9, a full disk and a log that failed.\n"
            "\nExamples:\n  umd-log emergency ring.bin\n  UMD_EMERGENCY_FILE=ring.bin umd-log emergency --json\n",
};
