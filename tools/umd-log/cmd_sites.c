/* SPDX-License-Identifier: MIT */
/* cmd_sites.c - sites: every call site of the log in our libraries, or in any program, with its level. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "libraries.h"
#include "print.h"
#include "rec.h"
#include "sites.h"

struct sites {
    int json;
    char *module, *level_text, *pid_text;
    int level;                  /* 0: all */
    struct json_object *all;
    uint32_t shown, compiled_out, by_level[UMD_LOG_TRACE + 1]; /* 0: at run time */
};

static bool wanted(const struct sites *s, const struct site *site)
{
    size_t n = s->module ? strlen(s->module) : 0;

    if (s->level && site->level != s->level)
        return false;
    return n == 0 || (strncmp(site->module, s->module, n) == 0 && (site->module[n] == '\0' || site->module[n] == '.'));
}

static const char *level_name(const struct site *site) { return site->level ? log_level_name(site->level) : "-"; }

/* What the line says: of a record its code and figures. */
static void text_of(const struct site *site, char *buf, size_t size)
{
    const char *fmt = site->fmt ? site->fmt : "(reason at run time)";

    if (site->kind == UMD_SITE_RAISE)
        snprintf(buf, size, "raise %s: %s", site->code ? umdStatusName((umdStatus)site->code) : "(code at run time)", fmt);
    else if (site->kind == UMD_SITE_ABSORB)
        snprintf(buf, size, "absorb: %s", fmt);
    else
        snprintf(buf, size, "%s", fmt);
}

static void put_json(struct sites *s, const char *path, const struct site *site)
{
    static const char *const kinds[] = { [UMD_SITE_LOG] = "log", [UMD_SITE_RAISE] = "raise", [UMD_SITE_ABSORB] = "absorb" };
    struct json_object *o = json_object_new_object();

    json_add_text(o, "kind", kinds[site->kind]);
    json_add_text(o, "level", site->level ? log_level_name(site->level) : NULL);
    json_add_bool(o, "compiled_in", site->compiled);
    json_add_text(o, "module", site->module);
    json_add_text(o, "function", site->func);
    json_add_text(o, "file", site->file);
    json_add_number(o, "line", site->line);
    if (site->kind == UMD_SITE_RAISE)
        json_add_text(o, "code", site->code ? umdStatusName((umdStatus)site->code) : NULL);
    json_add_text(o, "text", site->fmt);
    json_add_text(o, "library", path);
    json_object_array_add(s->all, o);
}

static void put_out(struct sites *s, const char *path, const struct site *site)
{
    char place[80], text[1024];

    s->shown++;
    s->by_level[site->level]++;
    s->compiled_out += !site->compiled;
    if (s->json) {
        put_json(s, path, site);
        return;
    }
    snprintf(place, sizeof(place), "%s:%u", site->file, site->line);
    text_of(site, text, sizeof(text));
    printf("%s%-5s%s %-3s %-14s %-20s %-28s %s\n", site->level ? text_colour(print_level_colour(site->level)) : "", level_name(site),
           site->level ? text_colour(TEXT_PLAIN) : "", site->compiled ? "in" : "out", site->module, place, site->func, text);
}

static int by_place(const void *a, const void *b)
{
    const struct site *x = a, *y = b;
    int c = strcmp(x->module, y->module);

    c = c ? c : strcmp(x->file, y->file);
    return c ? c : x->line < y->line ? -1 : x->line > y->line;
}

static void put_library(const char *path, uint32_t count)
{
    char name[256];

    snprintf(name, sizeof(name), "%s", text_base_name(path));
    text_clean(name);
    printf("%s%s%s: %u call sites\n", text_colour(TEXT_BOLD), name, text_colour(TEXT_PLAIN), count);
}

/* Value: EXIT_DONE also for a file without sites if it was found by ourselves. */
static int read_one(struct sites *s, const char *path, bool named)
{
    struct site_list list = { 0 };
    int err = 0, status = EXIT_DONE;
    enum sites_result result = sites_read(path, &list, &err);

    if (result == SITES_DONE) {
        if (list.count)
            qsort(list.site, list.count, sizeof(*list.site), by_place);
        if (!s->json)
            put_library(path, list.count);
        for (uint32_t i = 0; i < list.count; i++) {
            if (wanted(s, &list.site[i]))
                put_out(s, path, &list.site[i]);
        }
    } else if (named || (result != SITES_NONE && result != SITES_NO_ELF)) {
        tool_say("%s: %s", path,
                result == SITES_UNREADABLE ? strerror(err) : result == SITES_NO_ELF ? "this is no ELF file of this machine's word size" :
                result == SITES_NONE ? "no call sites: nothing in it logs with UMD_LOG or raises with UMD_FAIL" :
                result == SITES_DAMAGED ? "the call sites cannot be read: was it built with another version?" : "out of memory");
        status = EXIT_ENVIRONMENT;
    }
    sites_finish(&list);
    return status;
}

static int sites(struct sites *s, const struct library_list *own, const struct tool_line *line)
{
    int status = EXIT_DONE;
    uint32_t count = line->count ? line->count : own->count;

    s->all = json_object_new_array();
    for (uint32_t i = 0; i < count; i++) {
        int one = read_one(s, line->count ? line->words[i] : own->path[i], line->count != 0);
        status = one != EXIT_DONE ? one : status;
    }
    if (s->json)
        json_put_out(s->all);
    else
        printf("%u shown: %u ERROR, %u WARN, %u INFO, %u DEBUG, %u TRACE, %u known at run time alone; %u compiled out\n", s->shown, s->by_level[1],
               s->by_level[2], s->by_level[3], s->by_level[4], s->by_level[5], s->by_level[0], s->compiled_out);
    json_object_put(s->all);
    return status;
}

static int find(struct sites *s, const struct tool_line *line, struct library_list *own)
{
    uint64_t pid;

    if (!command_level_of(s->level_text, &s->level))
        return EXIT_USAGE;
    if (!s->pid_text) {
        libraries_own(own);
        return EXIT_DONE;
    }
    if (line->count)
        return tool_usage("--pid and files exclude each other");
    if (!command_pid(s->pid_text, &pid))
        return EXIT_USAGE;
    int err = libraries_of((uint32_t)pid, own);
    if (err)
        tool_say("process %s: its libraries cannot be seen: %s", s->pid_text, strerror(err));
    return err ? EXIT_ENVIRONMENT : EXIT_DONE;
}

static int run(const struct command *self, int argc, const char **argv)
{
    struct sites s = { 0 };
    struct library_list own = { 0 };
    struct tool_line line;
    int status;
    struct poptOption table[] = {
        { "json", 'j', POPT_ARG_NONE, &s.json, 0, "as JSON", NULL },
        { "module", 'm', POPT_ARG_STRING, &s.module, 0, "of this module and what is below it", "NAME" },
        { "level", 'l', POPT_ARG_STRING, &s.level_text, 0, "of this level alone", "LEVEL" },
        { "pid", 'p', POPT_ARG_STRING, &s.pid_text, 0, "of what this process has loaded", "PID" },
        POPT_TABLEEND
    };

    if (!tool_parse(&self->tool, argc, argv, table, &line, &status))
        return status;
    status = find(&s, &line, &own);
    if (status == EXIT_DONE)
        status = sites(&s, &own, &line);
    libraries_finish(&own);
    tool_line_finish(&line);
    return status;
}

const struct command command_sites = {
    .run = run,
    .tool = {
        .command = "sites", .words = "[OPTION...] [LIBRARY...]", .text = "every call site of the log: its level, and whether it is compiled in",
        .help = "Level, whether it is compiled in or out (umd_debug off), module, place, function, text. Reads the ELF section umd_log_sites;\n"
                "nothing is loaded or run. Without a LIBRARY those of Petrel that belong to this tool.\n"
                "Where an error record is raised (UMD_FAIL) the text begins with 'raise CODE', and the level is that of the code's severity, with\n"
                "which the record is logged; '-' where code or severity are chosen at run time. 'absorb' is where the driver deals with one\n"
                "(UMD_ABSORB). What the log says about itself (module diag.log), and a record's end (diag.record, INFO), have no sites.\n"
                "\nExamples:\n  umd-log sites --module umd.mem\n  umd-log sites --level debug ./my-program\n  umd-log sites --json --pid 4711\n",
        .complete = command_complete,
    },
};
