/* SPDX-License-Identifier: MIT */
/* doctor_settings.c - settings that are ignored: by the library's own parser, by their name, by the module or the directory that they name. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"
#include "env.h"
#include "nearest.h"
#include "state_dir.h"

#define NEAR 2u     /* so many slips, and it is another name */

/* What else is read from the environment: docs/environment.md, and a test holds the two together. */
static const char *const others[] = {
    "UMD_ABORT_ON_SWALLOW", "UMD_CRASH_DIR", "PETREL_CARRIER", "PETREL_CLANG", "PETREL_CONFIG", "PETREL_CRASH_COMMAND", "PETREL_DEVICES", "PETREL_FAULTS",
    "PETREL_HOST_THREADS",
    "PETREL_INCLUDE", "PETREL_KMD", "PETREL_LIBGCC", "PETREL_LLD", "PETREL_MODE", "PETREL_PICOLIBC", "PETREL_PROFILE", "PETREL_RANK", "PETREL_STATE_DIR",
    "PETREL_WATCHDOG_MS",
};
#define OTHERS ((uint32_t)(sizeof(others) / sizeof(others[0])))

static const char *name_at(uint32_t i)
{
    uint32_t settings = 0;

    while (umd_log_setting_at(settings))
        settings++;
    return i < settings ? umd_log_setting_at(i) : i - settings < OTHERS ? others[i - settings] : NULL;
}

/* The setting of this name, else the nearest that may have been meant; *exact_out: it is that one. NULL: none. */
static const char *near_name(const char *name, size_t n, bool *exact_out)
{
    const char *near = NULL, *known;
    size_t best = NEAR + 1;

    *exact_out = false;
    for (uint32_t i = 0; (known = name_at(i)) != NULL && best; i++) {
        const size_t d = umd_nearest_distance(name, n, known);
        if (d < best) {
            best = d;
            near = known;
        }
    }
    *exact_out = near && best == 0;
    return near;
}

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* "NAME=value" of an environment. Only what begins as ours do is looked at, and of that what is surely meant for us. */
static void check_name(struct doctor *d, const char *entry)
{
    const size_t n = strcspn(entry, "=");
    bool exact;
    const char *near = NULL;

    if (!begins(entry, "UMD_") && !begins(entry, "PETREL_") && !begins(entry, "TRACEPARENT"))
        return;
    near = near_name(entry, n, &exact);
    if (exact)
        return;
    if (near)
        doctor_say(d, VERDICT_BAD_SETTING, "%.*s is no setting, and is ignored; was %s meant?", (int)(n < 100 ? n : 100), entry, near);
    else if (begins(entry, "UMD_LOG_") || begins(entry, "UMD_EMERGENCY"))
        doctor_say(d, VERDICT_BAD_SETTING, "%.*s is no setting, and is ignored; docs/logging.md lists all", (int)(n < 100 ? n : 100), entry);
    else
        doctor_say(d, VERDICT_FINE, "%.*s is none of the variables that this version reads", (int)(n < 100 ? n : 100), entry);
}

static void check_names(struct doctor *d)
{
    const char *entry;

    for (uint32_t i = 0; (entry = settings_entry_at(&d->settings, i)) != NULL; i++)
        check_name(d, entry);
}

static void check_file_entry(struct doctor *d, const struct setting_of_file *f)
{
    char where[400], near[120] = "";
    bool exact;

    if (!f->problem)
        return;
    if (f->line)
        snprintf(where, sizeof(where), "%.300s, line %u", f->file ? f->file : "?", f->line);
    else
        snprintf(where, sizeof(where), "%.300s", f->file ? f->file : "?");
    if (!f->key || strcmp(f->key, "-") == 0 || strcmp(f->key, "PETREL_CONFIG") == 0) { /* of the file or its form, not of a setting */
        doctor_say(d, VERDICT_BAD_SETTING, "%s: %s", where, f->problem);
        return;
    }
    const char *meant = near_name(f->key, strlen(f->key), &exact);
    if (meant && !exact)
        snprintf(near, sizeof(near), "; was %s meant?", meant);
    doctor_say(d, VERDICT_BAD_SETTING, "%.64s (%s)=%.200s is ignored: %s%s", f->key, where, f->value ? f->value : "", f->problem, near);
}

/* ---- Modules ---- */

/* The rule's module is known, or is above one that is. */
static bool has_module(const struct doctor *d, const char *module, size_t n)
{
    for (uint32_t i = 0; i < d->module_count; i++) {
        if (strncmp(d->modules[i], module, n) == 0 && (d->modules[i][n] == '\0' || d->modules[i][n] == '.'))
            return true;
    }
    return false;
}

const char *doctor_near_module(const struct doctor *d, const char *module, size_t n)
{
    const char *near = NULL;
    size_t best = NEAR + 1;

    for (uint32_t i = 0; i < d->module_count; i++) {
        const size_t far = umd_nearest_distance(module, n, d->modules[i]);
        if (far < best) {
            best = far;
            near = d->modules[i];
        }
    }
    return near;
}

bool doctor_has_module(const struct doctor *d, const char *module) { return has_module(d, module, strlen(module)); }

/* Of ours by its first word: umd.mme can be of nobody else. */
static bool is_of_ours(const struct doctor *d, const char *module, size_t n)
{
    const size_t first = strcspn(module, ".");

    return first < n && has_module(d, module, first);
}

static void check_rule(struct doctor *d, const char *where, const char *module, size_t n)
{
    const char *near;

    if (has_module(d, module, n))
        return;
    if (memchr(module, '*', n)) {
        doctor_say(d, VERDICT_BAD_SETTING, "%s: '%.*s' matches no module: a name stands for itself and all below it, as umd for umd.mem, and '*' for nothing",
                   where, (int)n, module);
        return;
    }
    near = doctor_near_module(d, module, n);
    if (near || is_of_ours(d, module, n))
        doctor_say(d, VERDICT_BAD_SETTING, "%s: there is no module %.*s%s%s%s umd-log sites lists all", where, (int)n, module, near ? "; was " : ";",
                   near ? near : "", near ? " meant?" : "");
    else
        doctor_say(d, VERDICT_FINE, "%s: no library of ours has a module %.*s, so that it is for one of the program", where, (int)n, module);
}

static void check_modules(struct doctor *d, const char *key)
{
    const char *spec = settings_get(&d->settings, key);
    char where[512], reason[8];

    if (!spec || !d->module_count || !umd_log_setting_check(key, spec, false, reason, sizeof(reason)))
        return;
    snprintf(where, sizeof(where), "%s", settings_where(&d->settings, key));
    for (const char *at = spec; *at;) {
        const size_t n = strcspn(at, ","), word = strcspn(at, "=,");
        const size_t blank = strspn(at, " \t");
        if (word < n && word > blank)
            check_rule(d, where, at + blank, word - blank);
        at += n + (at[n] == ',');
    }
}

/* ---- Directories and the ring's file ---- */

/* As the library asks of it: ours, and nobody else may write to it. It is made where that can be done. */
static void check_directory(struct doctor *d, const char *key, const char *consequence)
{
    const char *path = settings_get(&d->settings, key);
    char full[4600];
    struct stat st;

    if (!path || !*path)
        return;
    if (*path == '/')
        snprintf(full, sizeof(full), "%s", path);
    else
        snprintf(full, sizeof(full), "%s/%s", d->settings.cwd, path);
    int err = umd_state_dir_check(full);
    if (err == ENOENT) { /* made, but not what it lies in */
        char *slash = strrchr(full, '/');
        if (slash > full)
            *slash = '\0';
        err = stat(slash > full ? full : "/", &st) != 0 ? errno : !S_ISDIR(st.st_mode) ? ENOTDIR : access(slash > full ? full : "/", W_OK | X_OK) != 0 ? errno : 0;
        if (err)
            doctor_say(d, VERDICT_PATH, "%s: %.300s cannot be made: %s; %s", key, path, strerror(err), consequence);
        return;
    }
    if (!err && access(full, W_OK | X_OK) != 0)
        err = errno;
    if (err)
        doctor_say(d, VERDICT_PATH, "%s: %.300s is not used: %s; %s", key, path,
                   err == EACCES ? "others may write to it, or you may not" : err == EPERM ? "it is another user's" :
                   err == ENOTDIR || err == ELOOP ? "it is no directory, or a symbolic link" : strerror(err), consequence);
}

static void check_ring(struct doctor *d)
{
    char path[4096];
    const char *value = settings_get(&d->settings, "UMD_EMERGENCY_FILE"), *mode = settings_get(&d->settings, "UMD_EMERGENCY");

    if (!value || !*value || !settings_path(&d->settings, "UMD_EMERGENCY_FILE", path, sizeof(path)))
        return;
    if (mode && strcmp(mode, "off") == 0)
        doctor_say(d, VERDICT_BAD_SETTING, "UMD_EMERGENCY_FILE is ignored: UMD_EMERGENCY says off");
    else
        doctor_path(d, "UMD_EMERGENCY_FILE", path);
}

/* What another user's process may use is not for us to try. */
static bool is_own(const struct doctor *d)
{
    char path[32];
    struct stat st;

    snprintf(path, sizeof(path), "/proc/%u", d->pid);
    return !d->pid || (stat(path, &st) == 0 && st.st_uid == geteuid());
}

void doctor_ignored(struct doctor *d)
{
    const char *key, *value;
    char reason[160];

    for (uint32_t i = 0; i < d->settings.config_count; i++)
        check_file_entry(d, &d->settings.config[i]);
    for (uint32_t i = 0; (key = umd_log_setting_at(i)) != NULL; i++) {
        value = settings_of_environment(&d->settings, key);
        if (value && !umd_log_setting_check(key, value, false, reason, sizeof(reason)))
            doctor_say(d, VERDICT_BAD_SETTING, "%s=%.200s is ignored: %s", key, value, reason);
    }
    check_names(d);
    check_modules(d, "UMD_LOG_LEVEL");
    for (int i = 0; sink_facts(i); i++) {
        if (sink_facts(i)->level_key)
            check_modules(d, sink_facts(i)->level_key);
    }
    if (!is_own(d))
        return;
    check_directory(d, "PETREL_STATE_DIR", "the emergency ring stays in memory");
    check_directory(d, "UMD_CRASH_DIR", "a crash leaves no snapshot");
    check_ring(d);
}
