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

static void check_specs(struct doctor *d)
{
    size_t at;

    for (uint32_t i = 0; i < d->settings.config_count; i++) {
        const struct setting_of_file *f = &d->settings.config[i];
        if (f->problem)
            doctor_say(d, VERDICT_BAD_SETTING, "%.300s, line %u: %s", f->file ? f->file : "?", f->line, f->problem);
    }
    const char *all = settings_get(&d->settings, "UMD_LOG_LEVEL");

    if (all && !settings_levels_valid(all, &at))
        doctor_say(d, VERDICT_BAD_SETTING, "%s=%.200s is ignored: position %zu is no [module=]off|error|warn|info|debug|trace",
                   settings_where(&d->settings, "UMD_LOG_LEVEL"), all, at);
    for (int i = 0; sink_facts(i); i++) {
        const char *key = sink_facts(i)->level_key, *value = key ? settings_get(&d->settings, key) : NULL;
        if (value && !settings_levels_valid(value, &at))
            doctor_say(d, VERDICT_BAD_SETTING, "%s=%.200s is ignored: position %zu is no [module=]off|error|warn|info|debug|trace",
                       settings_where(&d->settings, key), value, at);
    }
}

/* The highest level among the call sites that are compiled in, over the libraries of the process, or of this tool. */
void doctor_compiled(struct doctor *d)
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
        if (sites.site[i].compiled && sites.site[i].level > d->compiled)
            d->compiled = sites.site[i].level;
    }
    if (d->compiled && d->compiled < UMD_LOG_TRACE)
        doctor_say(d, d->level > d->compiled ? VERDICT_COMPILED_OUT : VERDICT_FINE, "above %s nothing is compiled in: the libraries were built with "
                   "umd_debug off", log_level_name(d->compiled));
    sites_finish(&sites);
    libraries_finish(&libraries);
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
    if (access(dir, W_OK | X_OK) != 0)
        doctor_say(d, stat(path, &st) == 0 && access(path, W_OK) == 0 ? VERDICT_FINE : VERDICT_PATH,
                   "%s: in %s no file can be made, so that none can be rotated either: %s", what, dir, strerror(errno));
    doctor_disk(d, what, dir);
}

void doctor_settings(struct doctor *d)
{
    char path[4096];
    uint32_t files = 0;

    d->settings_checked = true;
    check_specs(d);
    doctor_compiled(d);
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
