/* SPDX-License-Identifier: MIT */
/* parts.c - path.N and path.N.gz beside a log: read just far enough to see whose they are. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "parts.h"

/* Whose a file is, by its header or its first record. */
struct owner {
    uint32_t pid;
    uint64_t mono_ns, real_ns;  /* of the first record; 0: it has none */
};

struct candidate {
    char *path;
    uint32_t number;
    struct owner owner;
};

/* A pipe is not looked into: what is read from it is gone. */
static bool is_regular(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool is_link(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

static struct owner owner_of(const char *path)
{
    int err;
    struct log_reader *r = is_regular(path) ? log_reader_open(path, &err) : NULL;
    struct log_rec rec = { 0 };
    struct owner o = { 0 };

    if (!r)
        return o;
    if (log_reader_next(r, &rec, false) == LOG_READ_RECORD)
        o = (struct owner){ .pid = rec.pid, .mono_ns = rec.mono_ns, .real_ns = rec.real_ns };
    if (log_reader_header(r)->pid)
        o.pid = log_reader_header(r)->pid;
    log_rec_finish(&rec);
    log_reader_close(r);
    return o;
}

/* "run.log.3" or "run.log.3.gz" of "run.log". */
static bool numbered(const char *name, const char *base, uint32_t *out)
{
    size_t n = strlen(base);
    char *end;

    if (strncmp(name, base, n) != 0 || name[n] != '.' || name[n + 1] < '1' || name[n + 1] > '9')
        return false;
    unsigned long v = strtoul(name + n + 1, &end, 10);
    if (v > UINT32_MAX || (*end && strcmp(end, ".gz") != 0))
        return false;
    *out = (uint32_t)v;
    return true;
}

static int oldest_first(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return x->number > y->number ? -1 : x->number < y->number;
}

static char *join(const char *dir, size_t dir_n, const char *name)
{
    char *path = malloc(dir_n + strlen(name) + 1);

    if (path) {
        memcpy(path, dir, dir_n);
        strcpy(path + dir_n, name);
    }
    return path;
}

/* All path.N; false: no memory. */
static bool list(const char *path, struct candidate **out, uint32_t *count)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t dir_n = (size_t)(base - path);
    char *dir = join(path, dir_n, dir_n ? "." : "./");
    DIR *d = dir ? opendir(dir) : NULL;
    bool good = dir != NULL;

    *out = NULL;
    *count = 0;
    for (struct dirent *e; d && good && (e = readdir(d));) {
        uint32_t number;
        if (!numbered(e->d_name, base, &number))
            continue;
        struct candidate *grown = realloc(*out, (*count + 1) * sizeof(**out));
        good = grown != NULL;
        if (!good)
            break;
        *out = grown;
        char *full = join(path, dir_n, e->d_name);
        good = full != NULL;
        if (good && !is_regular(full))
            free(full);
        else if (good)
            grown[(*count)++] = (struct candidate){ .path = full, .number = number };
    }
    if (d)
        closedir(d);
    free(dir);
    if (*count)
        qsort(*out, *count, sizeof(**out), oldest_first);
    return good;
}

static bool add(struct log_parts *parts, char *path)
{
    char **grown = path ? realloc(parts->path, (parts->count + 1) * sizeof(*grown)) : NULL;

    if (!grown)
        return false;
    parts->path = grown;
    parts->path[parts->count++] = path;
    return true;
}

/* Of the run that wrote `newer`: the same process, and its clock went on. Both empty of records: nothing tells them apart. */
static bool same_run(const struct owner *older, const struct owner *newer)
{
    if (older->pid != newer->pid)
        return false;
    return !older->mono_ns || !newer->mono_ns || (older->mono_ns <= newer->mono_ns && older->real_ns != newer->real_ns);
}

static bool choose(struct log_parts *parts, struct candidate *c, uint32_t count, const struct owner *self, enum log_rotated rotated)
{
    struct owner newer = *self;
    uint32_t first = count; /* of those taken */

    for (uint32_t i = count; i > 0; i--) {
        struct candidate *one = &c[i - 1];
        const char *slash = strrchr(one->path, '/');
        one->owner = owner_of(one->path);
        if (one->owner.pid && one->owner.pid == one->number && one->number != self->pid) {
            parts->children++;
            snprintf(parts->child, sizeof(parts->child), "%s", slash ? slash + 1 : one->path);
            one->number = 0;
        } else if (rotated == LOG_ROTATED_ALL || (parts->older == 0 && same_run(&one->owner, &newer))) {
            first = i - 1;
            newer = one->owner;
        } else {
            parts->older++;
        }
    }
    for (uint32_t i = first; i < count; i++) {
        if (!c[i].number)
            continue;
        if (!add(parts, c[i].path))
            return false;
        c[i].path = NULL;
    }
    return true;
}

bool log_parts_find(struct log_parts *parts, const char *path, enum log_rotated rotated)
{
    struct candidate *c = NULL;
    uint32_t count = 0;
    bool good = true;

    *parts = (struct log_parts){ 0 };
    if (rotated != LOG_ROTATED_NONE && is_regular(path)) {
        struct owner self = owner_of(path);
        char *real = realpath(path, NULL); /* of a link what it leads to is rotated, where it is */
        good = list(real && is_link(path) ? real : path, &c, &count) && choose(parts, c, count, &self, rotated);
        free(real);
    }
    char *own = strdup(path);
    if (!good || !add(parts, own)) {
        free(own);
        good = false;
        log_parts_finish(parts);
    }
    for (uint32_t i = 0; i < count; i++)
        free(c[i].path);
    free(c);
    return good;
}

void log_parts_finish(struct log_parts *parts)
{
    for (uint32_t i = 0; i < parts->count; i++)
        free(parts->path[i]);
    free(parts->path);
    *parts = (struct log_parts){ 0 };
}
