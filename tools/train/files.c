/* SPDX-License-Identifier: MIT */
/* files.c - which file a path is in the end, and whether two paths are one file. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "train.h"

#define MAX_LINKS 8

/* The directory's real path and the name in it: two spellings of one file give the same, whether it exists or not. Follows dangling links. */
bool train_full_path(const char *path, char *out)
{
    char dir[PATH_MAX], real[PATH_MAX], link[PATH_MAX];

    if (snprintf(out, PATH_MAX, "%s", path) >= PATH_MAX)
        return false;
    for (int depth = 0; depth < MAX_LINKS; depth++) {
        const char *slash = strrchr(out, '/'), *name = slash ? slash + 1 : out;
        snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - out) + 1 : 1, slash ? out : ".");
        if (!realpath(dir, real) || snprintf(dir, sizeof(dir), "%s/%s", real, name) >= PATH_MAX)
            return false;
        ssize_t n = readlink(dir, link, sizeof(link) - 1);
        if (n < 0) {
            memcpy(out, dir, sizeof(dir));
            return true;
        }
        link[n] = '\0';
        if (snprintf(out, PATH_MAX, "%s%s%s", link[0] == '/' ? "" : real, link[0] == '/' ? "" : "/", link) >= PATH_MAX)
            return false;
    }
    return false;
}

bool train_same_file(const char *a, const char *b)
{
    char full_a[PATH_MAX], full_b[PATH_MAX];
    struct stat sa, sb;

    if (stat(a, &sa) == 0 && stat(b, &sb) == 0)
        return sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino && (S_ISREG(sa.st_mode) || S_ISDIR(sa.st_mode));
    return train_full_path(a, full_a) && train_full_path(b, full_b) && strcmp(full_a, full_b) == 0;
}
