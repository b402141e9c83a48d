/* SPDX-License-Identifier: MIT */
/* doctor_env.c - what the settings ask for, whether it is compiled in, and whether the files can be written. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <umd/umd_log.h>

#include "doctor.h"
#include "libraries.h"
#include "rec.h"
#include "sites.h"

static bool is_below(const char *module, const char *above)
{
    const size_t n = strlen(above);
    return strncmp(module, above, n) == 0 && (module[n] == '\0' || module[n] == '.');
}

static void note_module(struct doctor *d, const char *module)
{
    for (uint32_t i = 0; i < d->module_count; i++) {
        if (strcmp(d->modules[i], module) == 0)
            return;
    }
    if (d->module_count == d->module_size) {
        const uint32_t size = d->module_size ? d->module_size * 2 : 64;
        char **grown = realloc(d->modules, size * sizeof(*grown));
        if (!grown)
            return;
        d->modules = grown;
        d->module_size = size;
    }
    char *copy = strdup(module);
    if (copy)
        d->modules[d->module_count++] = copy;
}

void doctor_read_sites(struct doctor *d)
{
    struct library_list libraries = { 0 };
    struct site_list sites = { 0 };
    int err;

    if (d->pid)
        (void)libraries_of(d->pid, &libraries);
    else
        libraries_own(&libraries);
    for (uint32_t i = 0; i < libraries.count; i++)
        (void)sites_read(libraries.path[i], &sites, &err);
    for (uint32_t i = 0; i < sites.count; i++) {
        const struct site *s = &sites.site[i];
        const bool asked = d->module && is_below(s->module, d->module);
        note_module(d, s->module);
        if (s->compiled && s->level > d->compiled)
            d->compiled = s->level;
        if (asked && s->level > d->module_asked)
            d->module_asked = s->level;
        if (asked && s->compiled && s->level > d->module_compiled)
            d->module_compiled = s->level;
    }
    sites_finish(&sites);
    libraries_finish(&libraries);
}

/* The highest level among the call sites that are compiled in, over the libraries of the process, or of this tool; and that of --module. */
void doctor_compiled(struct doctor *d)
{
    doctor_read_sites(d);
    if (d->compiled && d->compiled < UMD_LOG_TRACE)
        doctor_say(d, d->level > d->compiled ? VERDICT_COMPILED_OUT : VERDICT_FINE, "above %s nothing is compiled in: the libraries were built with "
                   "umd_debug off", log_level_name(d->compiled));
    if (d->level > d->module_compiled && d->module_asked > d->module_compiled && d->module_compiled < d->compiled)
        doctor_say(d, VERDICT_COMPILED_OUT, "%s has call sites of %s, and nothing above %s of them is compiled in: a program of your own is built with "
                   "-DUMD_DEBUG_ENABLE=1", d->module, log_level_name(d->module_asked), d->module_compiled ? log_level_name(d->module_compiled) : "ERROR");
}

void doctor_module(struct doctor *d)
{
    const char *near;

    if (!d->module || d->module_seen || !d->module_count || doctor_has_module(d, d->module))
        return;
    near = doctor_near_module(d, d->module, strlen(d->module));
    d->working = false; /* for who asks for this module */
    doctor_say(d, VERDICT_NOTHING_HAPPENED, "no %s has a module %.60s%s%s%s umd-log sites lists all of a library or program", d->pid ? "library of the process" :
               "library of ours", d->module, near ? "; was " : ";", near ? near : "", near ? " meant?" : "");
}

/* Without a question (--module, --level), whether the sink takes anything at all. */
void doctor_level(struct doctor *d, int sink, int level, const char *by)
{
    int wanted = d->level ? d->level : d->module ? UMD_LOG_INFO : 0;
    const char *name = sink_facts(sink)->name;
    char of[80] = "";

    if (d->module)
        snprintf(of, sizeof(of), " of %.60s", d->module);
    if (level == 0)
        doctor_say(d, sink == SINK_CONSOLE && !wanted ? VERDICT_FINE : VERDICT_FILTERED, "the %s log takes nothing%s: %s says off", name, of, by);
    else if (wanted > level && sink == SINK_CONSOLE)
        doctor_say(d, VERDICT_FINE, "the console takes %s and above%s, by %s", log_level_name(level), of, by);
    else if (wanted > level)
        doctor_say(d, VERDICT_FILTERED, "the %s log takes no %s%s, only %s and above, by %s", name, log_level_name(wanted), of, log_level_name(level), by);
    else
        doctor_say(d, VERDICT_FINE, "the %s log takes %s and above%s, by %s", name, log_level_name(level), of, by);
    if (level > d->compiled && d->compiled && strcmp(by, "the default") != 0)
        doctor_say(d, VERDICT_COMPILED_OUT, "%s asks for %s%s, which is not compiled in", by, log_level_name(level), of);
}

static void check_level(struct doctor *d, int sink)
{
    const char *by;
    int level = settings_level(&d->settings, sink, d->module ? d->module : "umd", &by);

    doctor_level(d, sink, level, by);
}

void doctor_path(struct doctor *d, const char *what, const char *path)
{
    char dir[4096];
    struct stat st;

    snprintf(dir, sizeof(dir), "%s", path);
    char *slash = strrchr(dir, '/');
    if (slash)
        slash[slash == dir ? 1 : 0] = '\0';
    if (stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode))
            doctor_say(d, VERDICT_PATH, "%s: %s is a directory", what, path);
        else if (access(path, W_OK) != 0)
            doctor_say(d, VERDICT_PATH, "%s: %s cannot be written: %s", what, path, strerror(errno));
    } else if (errno != ENOENT) {
        doctor_say(d, VERDICT_PATH, "%s: %s cannot be reached: %s", what, path, strerror(errno));
    } else if (stat(dir, &st) != 0) {
        doctor_say(d, VERDICT_PATH, "%s: the directory %s is not there: %s", what, dir, strerror(errno));
        return;
    }
    const int err = access(dir, W_OK | X_OK) != 0 ? errno : 0;
    if (err)
        doctor_say(d, stat(path, &st) == 0 && access(path, W_OK) == 0 ? VERDICT_FINE : VERDICT_PATH,
                   "%s: in %s no file can be made, so that none can be rotated either: %s", what, dir, strerror(err));
    doctor_disk(d, what, dir);
}

void doctor_settings(struct doctor *d)
{
    char path[4096];
    uint32_t files = 0;

    d->settings_checked = true;
    doctor_compiled(d);
    doctor_ignored(d);
    check_level(d, SINK_CONSOLE);
    for (int i = SINK_FILES; sink_facts(i); i++) {
        const char *value = sink_facts(i)->path_key ? settings_get(&d->settings, sink_facts(i)->path_key) : NULL;
        if (!value || !*value)
            continue;
        files++;
        if (!settings_path(&d->settings, sink_facts(i)->path_key, path, sizeof(path))) {
            doctor_say(d, VERDICT_BAD_SETTING, "%s is ignored: the path is too long", sink_facts(i)->path_key);
            continue;
        }
        uint32_t before = d->count;
        doctor_path(d, sink_facts(i)->path_key, path);
        check_level(d, i);
        if (d->count == before + 1 && strstr(path, "%p"))
            doctor_say(d, VERDICT_FINE, "%s: each process writes a file of its own: %s", sink_facts(i)->path_key, path);
    }
    if (!files)
        doctor_say(d, VERDICT_NO_FILE, "none of UMD_LOG_FILE, UMD_LOG_JSON, UMD_LOG_BINARY, UMD_LOG_RUN and UMD_LOG_DISASTER is set%s",
                   d->pid ? " in the environment that the process started with" : "");
}
