/* SPDX-License-Identifier: MIT */
/* doctor_pid.c - a running process: whether it has the driver loaded, which files it has open, what its log says of itself. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"
#include "libraries.h"

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

/* Where the process has the file open: 0 no, 1 yes, 2 yes, but it was removed or moved away. */
static int has_open(uint32_t pid, const char *path)
{
    char dir[64], link[96], target[4200];
    int found = 0;

    snprintf(dir, sizeof(dir), "/proc/%u/fd", pid);
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        struct stat of_fd, of_path;
        snprintf(link, sizeof(link), "%s/%.20s", dir, e->d_name);
        ssize_t n = readlink(link, target, sizeof(target) - 1);
        if (n <= 0)
            continue;
        target[n] = '\0';
        size_t k = strlen(path);
        bool named = strncmp(target, path, k) == 0;
        if (named && target[k] == '\0')
            found = stat(link, &of_fd) == 0 && stat(path, &of_path) == 0 && of_fd.st_ino == of_path.st_ino ? 1 : 2;
        else if (named && strcmp(target + k, " (deleted)") == 0)
            found = 2;
    }
    if (d)
        closedir(d);
    return found;
}

static void files(struct doctor *d)
{
    char path[4096];

    for (int i = SINK_TEXT; i < SINK_COUNT; i++) {
        if (!settings_path(&d->settings, i, path, sizeof(path)))
            continue;
        int open = has_open(d->pid, path);
        if (open == 1) {
            doctor_file(d, path);
        } else if (open == 2) {
            doctor_say(d, VERDICT_SINK_FAILING, "%s: %s was moved away or removed while the process has it open: umd-log reopen --pid %u", sink_facts[i].path_key, path, d->pid);
        } else {
            struct stat st;
            doctor_say(d, VERDICT_NOTHING_HAPPENED, "%s: the process does not have %s open: %s", sink_facts[i].path_key, path,
                       stat(path, &st) == 0 ? "what is there is of another process" : "it opens it with its first record");
        }
    }
}

bool doctor_process(struct doctor *d)
{
    int err = settings_of(&d->settings, d->pid);

    if (err) {
        fprintf(stderr, "umd-log: process %u: %s\n", d->pid,
                err == ENOENT || err == ESRCH ? "there is none of that id" : "it cannot be looked into: it is another user's");
        return false;
    }
    if (!has_library(d->pid)) {
        doctor_say(d, VERDICT_NO_LIBRARY, "process %u has not loaded libumd_diag.so: it does not use the driver (yet)", d->pid);
        return true;
    }
    doctor_settings(d);
    files(d);
    return true;
}
