/* SPDX-License-Identifier: MIT */
/* parts.c - path.N and path.N.gz beside a log: read just far enough to see whose they are. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "parts.h"

#define NUMBER_MAX 1000u    /* so many files a log keeps at most */
#define TRIES 100           /* to see one and the same twice, while it is rotated */
#define TRY_US 500u
#define LOOK_B (1u << 20)   /* so far a file is read for its first record */

/* Whose a file is, by its header or its first record. */
struct owner {
    uint32_t pid;
    uint64_t mono_ns, real_ns;  /* of the first record; 0: it has none */
    bool gone;                  /* since it was listed */
};

struct candidate {
    struct log_part part;
    struct owner owner;
};

struct listing {
    struct log_part self;       /* path: not owned */
    struct candidate *c;        /* oldest first */
    uint32_t count;
};

/* A pipe is not looked into: what is read from it is gone. */
static bool identify(struct log_part *part)
{
    struct stat st;

    part->known = stat(part->path, &st) == 0 && S_ISREG(st.st_mode);
    part->dev = part->known ? st.st_dev : 0;
    part->ino = part->known ? st.st_ino : 0;
    return part->known;
}

static bool same_file(const struct log_part *a, const struct log_part *b) { return a->known == b->known && a->dev == b->dev && a->ino == b->ino; }

/* "run.log", 3, ".gz": "run.log.3.gz"; of 0 the log itself. NULL: no memory. */
static char *name_of(const char *base, size_t base_n, uint32_t number, const char *ending)
{
    char *path = malloc(base_n + strlen(ending) + 16);

    if (path && number)
        snprintf(path, base_n + strlen(ending) + 16, "%.*s.%u%s", (int)base_n, base, number, ending);
    else if (path)
        snprintf(path, base_n + 1, "%.*s", (int)base_n, base);
    return path;
}

/* Where the number begins of path.N or path.N.gz; the end of the log itself. */
static size_t base_length(const struct log_part *part, const char **ending_out)
{
    size_t n = strlen(part->path);
    const bool packed = part->number && n > 3 && strcmp(part->path + n - 3, ".gz") == 0;

    *ending_out = packed ? ".gz" : "";
    n -= packed ? 3 : 0;
    while (part->number && n && part->path[n - 1] != '.')
        n--;
    return part->number && n ? n - 1 : n;
}

/* Names only go up: what is not at one, having been there, is at a later one, or gone. */
struct log_reader *log_part_open(const struct log_part *part, int *err_out)
{
    const char *ending;
    const size_t base_n = base_length(part, &ending);

    for (uint32_t number = part->number; number <= NUMBER_MAX || number == part->number; number++) {
        struct log_part at = { .path = name_of(part->path, base_n, number, ending) };
        struct log_reader *r = NULL;
        *err_out = at.path ? ENOENT : ENOMEM;
        if (at.path && (!part->known || (identify(&at) && same_file(&at, part))))
            r = log_reader_open(part->known ? at.path : part->path, err_out);
        free(at.path);
        if (r && (!part->known || log_reader_is(r, part->dev, part->ino)))
            return r;
        log_reader_close(r);
        if (!part->known || (!r && *err_out != ENOENT))
            return NULL;
    }
    *err_out = ESTALE;
    return NULL;
}

static struct owner owner_of(const struct log_part *part)
{
    int err;
    struct log_reader *r = part->known ? log_part_open(part, &err) : NULL;
    struct log_rec rec = { 0 };
    struct owner o = { 0 };

    if (!r) {
        o.gone = part->known && err == ESTALE;
        return o;
    }
    log_reader_limit(r, LOOK_B);
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

/* Of one that is just being compressed the plain one, which is whole, is the first. */
static int oldest_first(const void *a, const void *b)
{
    const struct log_part *x = &((const struct candidate *)a)->part, *y = &((const struct candidate *)b)->part;

    if (x->number != y->number)
        return x->number > y->number ? -1 : 1;
    return strlen(x->path) < strlen(y->path) ? -1 : 1;
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

static void listing_finish(struct listing *l)
{
    for (uint32_t i = 0; i < l->count; i++)
        free(l->c[i].part.path);
    free(l->c);
    *l = (struct listing){ 0 };
}

static void drop_twins(struct listing *l)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < l->count; i++) {
        if (kept && l->c[kept - 1].part.number == l->c[i].part.number)
            free(l->c[i].part.path);
        else
            l->c[kept++] = l->c[i];
    }
    l->count = kept;
}

/* The log and all path.N; false: no memory. */
static bool list(const char *path, struct listing *l)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t dir_n = (size_t)(base - path);
    char *dir = join(path, dir_n, dir_n ? "." : "./");
    DIR *d = dir ? opendir(dir) : NULL;
    bool good = dir != NULL;

    *l = (struct listing){ .self.path = (char *)path };
    (void)identify(&l->self);
    for (struct dirent *e; d && good && (e = readdir(d));) {
        struct log_part part = { 0 };
        if (!numbered(e->d_name, base, &part.number))
            continue;
        struct candidate *grown = realloc(l->c, (l->count + 1) * sizeof(*grown));
        if (grown)
            l->c = grown;
        part.path = grown ? join(path, dir_n, e->d_name) : NULL;
        good = part.path != NULL;
        if (good && identify(&part))
            grown[l->count++] = (struct candidate){ .part = part };
        else
            free(part.path);
    }
    if (d)
        closedir(d);
    free(dir);
    if (l->count)
        qsort(l->c, l->count, sizeof(*l->c), oldest_first);
    drop_twins(l);
    return good;
}

static bool same_listing(const struct listing *a, const struct listing *b)
{
    bool same = a->count == b->count && same_file(&a->self, &b->self);

    for (uint32_t i = 0; same && i < a->count; i++)
        same = a->c[i].part.number == b->c[i].part.number && same_file(&a->c[i].part, &b->c[i].part);
    return same;
}

/* As it is at one moment: names are moved on one by one, and for a moment there is none at the path itself. */
static bool list_settled(const char *path, struct listing *l)
{
    struct listing before;

    if (!list(path, l))
        return false;
    for (int i = 0; i < TRIES; i++) {
        before = *l;
        const bool good = list(path, l), same = good && same_listing(&before, l) && (l->self.known || !l->count || l->c[l->count - 1].part.number != 1);
        listing_finish(&before);
        if (!good || same)
            return good;
        usleep(TRY_US);
    }
    return true; /* the last that was seen */
}

static bool add(struct log_parts *parts, const struct log_part *part)
{
    struct log_part *grown = part->path ? realloc(parts->part, (parts->count + 1) * sizeof(*grown)) : NULL;

    if (!grown)
        return false;
    parts->part = grown;
    parts->part[parts->count++] = *part;
    return true;
}

/* Of the run that wrote `newer`: the same process, and its clock went on. Both empty of records: nothing tells them apart. */
static bool same_run(const struct owner *older, const struct owner *newer)
{
    if (older->gone) /* whose it was cannot be told any more; that it is missing will be */
        return true;
    if (!newer->pid && !newer->real_ns) /* just begun: nothing is in it yet */
        return true;
    if (older->pid != newer->pid)
        return false;
    return !older->mono_ns || !newer->mono_ns || (older->mono_ns <= newer->mono_ns && older->real_ns != newer->real_ns);
}

static bool choose(struct log_parts *parts, struct listing *l, enum log_rotated rotated)
{
    const struct owner self = owner_of(&l->self);
    struct owner newer = self;
    uint32_t first = l->count; /* of those taken */

    for (uint32_t i = l->count; i > 0; i--) {
        struct candidate *one = &l->c[i - 1];
        const char *slash = strrchr(one->part.path, '/');
        one->owner = owner_of(&one->part);
        if (one->owner.pid && one->owner.pid == one->part.number && one->part.number != self.pid) {
            parts->children++;
            snprintf(parts->child, sizeof(parts->child), "%s", slash ? slash + 1 : one->part.path);
            one->part.known = false;
        } else if (rotated == LOG_ROTATED_ALL || (parts->older == 0 && same_run(&one->owner, &newer))) {
            first = i - 1;
            newer = one->owner.gone ? newer : one->owner;
        } else {
            parts->older++;
        }
    }
    for (uint32_t i = first; i < l->count; i++) {
        if (!l->c[i].part.known)
            continue;
        if (!add(parts, &l->c[i].part))
            return false;
        l->c[i].part.path = NULL;
    }
    return true;
}

/* Of a link what it leads to is rotated, where it is. NULL: no memory. */
static char *rotated_path(const char *path)
{
    struct stat st;
    char *real = lstat(path, &st) == 0 && S_ISLNK(st.st_mode) ? realpath(path, NULL) : NULL;

    return real ? real : strdup(path);
}

bool log_parts_find(struct log_parts *parts, const char *path, enum log_rotated rotated)
{
    const bool standard = strcmp(path, "-") == 0;
    struct log_part own = { .path = standard ? strdup(path) : rotated_path(path) };
    struct listing l = { 0 };
    bool good = own.path != NULL;

    *parts = (struct log_parts){ 0 };
    if (good && !standard)
        (void)identify(&own);
    if (good && !standard && rotated != LOG_ROTATED_NONE) {
        good = list_settled(own.path, &l);
        own = good ? (struct log_part){ .path = own.path, .known = l.self.known, .dev = l.self.dev, .ino = l.self.ino } : own;
        good = good && (!own.known || choose(parts, &l, rotated));
    }
    if (good && !own.known) { /* as it was named: a pipe, or what is not there */
        free(own.path);
        own.path = strdup(path);
    }
    if (!good || !add(parts, &own)) {
        free(own.path);
        good = false;
        log_parts_finish(parts);
    }
    listing_finish(&l);
    return good;
}

/* ---- What follows ---- */

static bool is_at(const struct log_reader *r, const char *base, uint32_t number)
{
    struct log_part at = { .path = name_of(base, strlen(base), number, "") };
    const bool found = at.path && identify(&at) && log_reader_is(r, at.dev, at.ino);

    free(at.path);
    return found;
}

/* r is path.NUMBER: the next lower name that there is; sure only if meanwhile none has come between, since all may move on at any time. */
static struct log_reader *next_below(const struct log_reader *r, const char *base, uint32_t number)
{
    struct log_reader *next = NULL;
    struct stat st;
    uint32_t n = number;
    int err;

    while (!next && n-- > 0) {
        char *name = name_of(base, strlen(base), n, "");
        next = name ? log_reader_open(name, &err) : NULL;
        free(name);
    }
    bool sure = next && is_at(r, base, number);
    for (n++; sure && n < number; n++) {
        char *name = name_of(base, strlen(base), n, "");
        sure = name && stat(name, &st) != 0;
        free(name);
    }
    if (!sure) {
        log_reader_close(next);
        return NULL;
    }
    return next;
}

/* What r was is removed: the oldest of those left that was begun later. */
static struct log_reader *oldest_since(const char *base, uint64_t last_ns)
{
    struct log_reader *next = NULL;
    struct listing l;
    int err;

    bool good = list_settled(base, &l);
    for (uint32_t i = 0; good && !next && i < l.count; i++) {
        if (owner_of(&l.c[i].part).real_ns > last_ns)
            next = log_part_open(&l.c[i].part, &err);
    }
    listing_finish(&l);
    return next;
}

struct log_reader *log_parts_next(const char *path, const struct log_reader *r, uint64_t last_ns, bool *gap_out)
{
    char *base = rotated_path(path);
    struct log_reader *next = NULL;
    uint32_t number = 1;
    int err;

    *gap_out = false;
    if (!base)
        return NULL;
    if (is_at(r, base, 0)) { /* cut short where it is */
        next = log_reader_open(base, &err);
    } else {
        while (number <= NUMBER_MAX && !is_at(r, base, number))
            number++;
        if (number <= NUMBER_MAX)
            next = next_below(r, base, number);
        else if (log_reader_is_removed(r))
            *gap_out = (next = oldest_since(base, last_ns)) != NULL;
        if (!next && number > NUMBER_MAX) /* moved to somewhere else, and one begun anew */
            next = log_reader_open(base, &err);
    }
    free(base);
    return next;
}

void log_parts_finish(struct log_parts *parts)
{
    for (uint32_t i = 0; i < parts->count; i++)
        free(parts->part[i].path);
    free(parts->part);
    *parts = (struct log_parts){ 0 };
}
