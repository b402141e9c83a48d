/* SPDX-License-Identifier: MIT */
/* libraries.c - finds libumd_diag, libumd and libpetrel_kmd without loading them. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <umd/umd_diag.h>

#include "cmd.h"
#include "libraries.h"

static bool has_room(struct library_list *list)
{
    uint32_t size = list->size ? list->size * 2 : 64;

    if (list->count < list->size)
        return true;
    char **grown = realloc(list->path, size * sizeof(*grown));
    if (!grown)
        return false;
    list->path = grown;
    list->size = size;
    return true;
}

static void add(struct library_list *list, const char *path)
{
    char real[PATH_MAX];

    if (!realpath(path, real))
        return;
    for (uint32_t i = 0; i < list->count; i++) {
        if (strcmp(list->path[i], real) == 0)
            return;
    }
    char *copy = has_room(list) ? strdup(real) : NULL;
    if (copy)
        list->path[list->count++] = copy;
}

void libraries_own(struct library_list *list)
{
    /* Installed they lie together; in a build folder each lies where its sources do. */
    static const char *const names[] = { "libumd.so.0", "../libumd.so.0", "libpetrel_kmd.so", "../../kmd_sim/libpetrel_kmd.so" };
    const char *kmd = env_before("PETREL_KMD");
    char path[PATH_MAX];
    Dl_info info;

    *list = (struct library_list){ 0 };
    if (!dladdr((void *)(uintptr_t)umdStatusName, &info) || !info.dli_fname)
        return;
    add(list, info.dli_fname);
    const char *slash = strrchr(info.dli_fname, '/');
    int dir_n = slash ? (int)(slash - info.dli_fname) : 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (snprintf(path, sizeof(path), "%.*s/%s", dir_n, info.dli_fname, names[i]) < (int)sizeof(path))
            add(list, path);
    }
    if (kmd && *kmd)
        add(list, kmd);
}

int libraries_of(uint32_t pid, struct library_list *list)
{
    char path[64], *line = NULL;
    size_t size = 0;

    *list = (struct library_list){ 0 };
    snprintf(path, sizeof(path), "/proc/%u/maps", pid);
    FILE *maps = fopen(path, "re");
    if (!maps)
        return errno;
    while (getline(&line, &size, maps) > 0) {
        char *file = strchr(line, '/'), *end = file ? strchr(file, '\n') : NULL;
        if (!end || !strstr(line, " r-xp "))
            continue;
        *end = '\0';
        add(list, file);
    }
    free(line);
    fclose(maps);
    return 0;
}

void libraries_finish(struct library_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        free(list->path[i]);
    free(list->path);
    *list = (struct library_list){ 0 };
}
