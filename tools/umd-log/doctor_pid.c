/* SPDX-License-Identifier: MIT */
/* doctor_pid.c - a running process: whether it has the driver loaded, which files it has open, what its log says of itself. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control.h"
#include "doctor.h"
#include "libraries.h"
#include "umd-text.h"
#include "umd-tool.h"

static bool has_library(uint32_t pid)
{
    struct library_list list;
    bool found = false;

    if (libraries_of(pid, &list) != 0)
        return true; /* not ours to see; said elsewhere */
    for (uint32_t i = 0; i < list.count; i++)
        found = found || strstr(list.path[i], "libumd_diag.so");
    libraries_finish(&list);
    return found;
}

/* Whether a process has the file at path open: by what the file is, since a descriptor goes along when the file is moved. */
static enum { NOT_OPEN, OPEN, REMOVED } has_open(uint32_t pid, const char *path)
{
    char dir[64], link[96], target[4200];
    struct stat of_path, of_fd;
    bool there = stat(path, &of_path) == 0;
    int found = NOT_OPEN;

    snprintf(dir, sizeof(dir), "/proc/%u/fd", pid);
    DIR *d = opendir(dir);
    for (struct dirent *e; d && found != OPEN && (e = readdir(d));) {
        snprintf(link, sizeof(link), "%s/%.20s", dir, e->d_name);
        ssize_t n = readlink(link, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = '\0';
        size_t k = strlen(path);
        if (there && stat(link, &of_fd) == 0 && of_fd.st_dev == of_path.st_dev && of_fd.st_ino == of_path.st_ino)
            found = OPEN;
        else if (strncmp(target, path, k) == 0 && strcmp(target + k, " (deleted)") == 0)
            found = REMOVED;
    }
    if (d)
        closedir(d);
    return found;
}

static void files(struct doctor *d)
{
    char path[4096];

    for (int i = SINK_FILES; sink_facts(i); i++) {
        if (!settings_path(&d->settings, sink_facts(i)->path_key, path, sizeof(path)))
            continue;
        int open = has_open(d->pid, path);
        if (open == OPEN) {
            doctor_file(d, path);
        } else if (open == REMOVED) {
            doctor_say(d, VERDICT_SINK_FAILING, "%s: %s was moved away or removed while the process has it open: umd-log reopen --pid %u", sink_facts(i)->path_key, path, d->pid);
        } else {
            struct stat st;
            doctor_say(d, VERDICT_NOTHING_HAPPENED, "%s: the process does not have %s open: %s", sink_facts(i)->path_key, path,
                       stat(path, &st) == 0 ? "what is there is of another process" : "it opens it with its first record");
        }
    }
}

/* ---- By what the process says itself ---- */

static uint64_t number_of(struct json_object *o, const char *key)
{
    struct json_object *v = NULL;
    return json_object_object_get_ex(o, key, &v) ? json_object_get_uint64(v) : 0;
}

static const char *source_text(const char *source, const char *key)
{
    static char text[128];

    if (strcmp(source, "environment") == 0)
        return key;
    if (strcmp(source, "config") == 0)
        snprintf(text, sizeof(text), "%s of the configuration file", key);
    else if (strcmp(source, "api") == 0)
        return "a call of the program (umdLogSetLevels, umdLogOpenFile)";
    else if (strcmp(source, "control") == 0)
        return "umd-log level";
    else
        snprintf(text, sizeof(text), "%.60s", source);
    return text;
}

/* Value: whether it is a file that takes records. */
static bool examine_sink(struct doctor *d, struct json_object *status, struct json_object *s)
{
    const char *name = json_text_of(s, "name"), *path = json_text_of(s, "path"), *by;
    char absolute[8300];
    int sink = -1, which;

    for (int i = 0; sink_facts(i); i++)
        sink = strcmp(sink_facts(i)->name, name) == 0 ? i : sink;
    if (sink < 0 || !json_is_true(s, "enabled"))
        return false;
    int level = sink_level(sink, json_text_of(s, "levels"), json_text_of(status, "levels"), d->module ? d->module : "umd", &which);
    by = which == 0 ? "the default" : which == 1 ? source_text(json_text_of(s, "levels_from"), sink_facts(sink)->level_key) :
         source_text(json_text_of(status, "levels_from"), "UMD_LOG_LEVEL");
    doctor_level(d, sink, level, by);
    if (json_is_true(s, "failing"))
        doctor_say(d, VERDICT_SINK_FAILING, "the %s log %s cannot write: %s (errno %s); %s lines wait, %s are lost", name, path, json_text_of(s, "reason"),
                   json_text_of(s, "errno"), json_text_of(s, "waiting"), json_text_of(s, "lost"));
    else if (number_of(s, "lost"))
        doctor_say(d, VERDICT_LOST, "the %s log %s has lost %s lines, and works again", name, path, json_text_of(s, "lost"));
    if (sink == SINK_CONSOLE)
        return false;
    if (*path != '/' && snprintf(absolute, sizeof(absolute), "%s/%s", d->settings.cwd, path) < (int)sizeof(absolute))
        path = absolute;
    doctor_disk(d, name, path);
    if (json_is_true(s, "open") && !json_is_true(s, "failing") && has_open(d->pid, path) != OPEN)
        doctor_say(d, VERDICT_SINK_FAILING, "%s was moved away while the process has it open: umd-log reopen --pid %u", path, d->pid);
    else if (json_is_true(s, "open") && number_of(s, "file_B"))
        d->working = d->working || !json_is_true(s, "failing");
    else if (!json_is_true(s, "failing"))
        doctor_say(d, VERDICT_NOTHING_HAPPENED, "the %s log %s is not begun: it is opened with the first record that its level takes", name, path);
    return true;
}

static void examine_status(struct doctor *d, struct json_object *status)
{
    struct json_object *sinks = NULL, *counts = NULL;
    uint32_t files = 0;
    uint64_t told = 0; /* losses that the sinks of now tell of */

    doctor_compiled(d);
    doctor_ignored(d);
    if (json_object_object_get_ex(status, "sinks", &sinks) && json_object_is_type(sinks, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(sinks); i++) {
            struct json_object *s = json_object_array_get_idx(sinks, i);
            files += examine_sink(d, status, s);
            told += number_of(s, "lost") + (json_is_true(s, "failing") ? number_of(s, "waiting") : 0);
        }
    }
    if (!files)
        doctor_say(d, VERDICT_NO_FILE, "the process has no log file");
    if (!json_object_object_get_ex(status, "counts", &counts) || !json_object_is_type(counts, json_type_object))
        return;
    doctor_say(d, number_of(counts, "records") ? VERDICT_FINE : VERDICT_NOTHING_HAPPENED, "%s records were logged so far", json_text_of(counts, "records"));
    if (number_of(counts, "lost") > told)
        doctor_say(d, VERDICT_LOST, "%" PRIu64 " lines could not be written to files that are closed by now", number_of(counts, "lost") - told);
    if (number_of(counts, "dropped"))
        doctor_say(d, VERDICT_LOST, "%s records were dropped, since a thread's ring was full", json_text_of(counts, "dropped"));
}

bool doctor_process(struct doctor *d)
{
    int err = settings_of(&d->settings, d->pid);
    char why[256];

    if (err) {
        tool_say("process %u: %s", d->pid,
                err == ENOENT || err == ESRCH ? "there is none of that id" : "it cannot be looked into: it is another user's");
        return false;
    }
    if (!has_library(d->pid)) {
        doctor_say(d, VERDICT_NO_LIBRARY, "process %u has not loaded libumd_diag.so: it does not use the driver (yet)", d->pid);
        return true;
    }
    struct json_object *status = control_status(d->pid, why, sizeof(why));
    if (status) {
        examine_status(d, status);
        json_object_put(status);
        return true;
    }
    doctor_say(d, VERDICT_FINE, "it cannot be asked (%.120s), so this goes by the environment it started with", why);
    doctor_settings(d);
    files(d);
    return true;
}
