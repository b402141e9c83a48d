/* SPDX-License-Identifier: MIT */
/* set.c - merging: each file in its order (a small window mends what threads wrote late), all files by real time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "parts.h"
#include "set.h"
#include "umd-text.h"
#include "umd-tool.h"

#define WINDOW 64u
#define FOLLOW_US 100000u

/* One file named by the user: its parts, oldest first, and the records that are read ahead. */
struct source {
    char *path;
    char *label;
    struct log_parts parts;
    uint32_t part;                  /* the one that `reader` is at */
    struct log_reader *reader;      /* NULL: before the first, or at the end */
    bool end, failed;
    bool stream;                    /* standard input, a pipe or a device: can be read but once */
    int err;
    struct log_counts counts;       /* of the parts that are done */
    struct log_header header;
    struct log_rec window[WINDOW];  /* those of order[0] to order[filled - 1] */
    uint32_t order[WINDOW], filled;
    struct log_rec current;         /* given out last */
};

struct log_set {
    struct source *sources;
    uint32_t count;
    uint32_t *heap, heap_count;     /* sources whose window holds something, the earliest first */
    uint32_t given;                 /* the source that goes back to the heap; count: none */
    bool started;
};

static void add_counts(struct log_counts *to, const struct log_counts *c)
{
    if (c->foreign && !to->foreign)
        to->first_foreign = c->first_foreign;
    to->lines += c->lines;
    to->records += c->records;
    to->comments += c->comments;
    to->foreign += c->foreign;
    to->too_long += c->too_long;
    to->inner += c->inner;
    to->nul_B += c->nul_B;
    to->damaged += c->damaged;
    to->torn = to->torn || c->torn;
    to->cut = to->cut || c->cut;
}

static void end_part(struct source *s)
{
    if (!s->reader)
        return;
    add_counts(&s->counts, log_reader_counts(s->reader));
    if (log_reader_header(s->reader)->pid)
        s->header = *log_reader_header(s->reader);
    log_reader_close(s->reader);
    s->reader = NULL;
}

static bool next_part(struct source *s)
{
    end_part(s);
    while (s->part < s->parts.count) {
        int err;
        s->reader = log_part_open(&s->parts.part[s->part++], &err);
        if (s->reader)
            return true;
        s->failed = true; /* it was there a moment ago */
        s->err = err;
    }
    return false;
}

/* Room in the window: the records' own buffers are used again. */
static struct log_rec *free_slot(struct source *s)
{
    bool used[WINDOW] = { false };

    for (uint32_t i = 0; i < s->filled; i++)
        used[s->order[i]] = true;
    for (uint32_t i = 0; i < WINDOW; i++) {
        if (!used[i])
            return &s->window[i];
    }
    return NULL;
}

/* Behind all that is not later: of the same process only, since monotonic clocks of different hosts do not compare. */
static void insert(struct source *s, const struct log_rec *rec)
{
    uint32_t at = s->filled;

    for (; at > 0; at--) {
        const struct log_rec *before = &s->window[s->order[at - 1]];
        if (before->pid != rec->pid || !rec->mono_ns || before->mono_ns <= rec->mono_ns)
            break;
        s->order[at] = s->order[at - 1];
    }
    s->order[at] = (uint32_t)(rec - s->window);
    s->filled++;
}

static void read_ahead(struct source *s, uint32_t index, bool growing)
{
    while (s->filled < WINDOW && !s->end) {
        struct log_rec *slot = free_slot(s);
        enum log_read got = s->reader ? log_reader_next(s->reader, slot, growing && s->part == s->parts.count) : LOG_READ_END;
        if (got == LOG_READ_RECORD) {
            slot->source = index;
            insert(s, slot);
            continue;
        }
        if (got == LOG_READ_ERROR) {
            s->failed = true;
            s->err = log_reader_errno(s->reader);
        }
        if (growing && got == LOG_READ_END && s->reader && s->part == s->parts.count && !log_reader_is_whole(s->reader))
            return;
        if (!next_part(s))
            s->end = true;
    }
}

/* Equal times: the file named first goes first. */
static bool earlier(const struct log_set *set, uint32_t a, uint32_t b)
{
    const struct source *x = &set->sources[a], *y = &set->sources[b];
    uint64_t tx = x->window[x->order[0]].real_ns, ty = y->window[y->order[0]].real_ns;

    return tx < ty || (tx == ty && a < b);
}

static void heap_push(struct log_set *set, uint32_t source)
{
    uint32_t i = set->heap_count++;

    for (; i > 0 && earlier(set, source, set->heap[(i - 1) / 2]); i = (i - 1) / 2)
        set->heap[i] = set->heap[(i - 1) / 2];
    set->heap[i] = source;
}

static uint32_t heap_pop(struct log_set *set)
{
    uint32_t top = set->heap[0], last = set->heap[--set->heap_count], i = 0;

    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= set->heap_count)
            break;
        if (child + 1 < set->heap_count && earlier(set, set->heap[child + 1], set->heap[child]))
            child++;
        if (!earlier(set, set->heap[child], last))
            break;
        set->heap[i] = set->heap[child];
        i = child;
    }
    if (set->heap_count)
        set->heap[i] = last;
    return top;
}

static void refill(struct log_set *set, uint32_t index)
{
    read_ahead(&set->sources[index], index, false);
    if (set->sources[index].filled)
        heap_push(set, index);
}

/* The window's first, swapped with the record that was given out before. */
static const struct log_rec *take(struct source *s)
{
    uint32_t slot = s->order[0];
    struct log_rec rec = s->window[slot];

    s->window[slot] = s->current;
    s->current = rec;
    s->filled--;
    memmove(s->order, s->order + 1, s->filled * sizeof(s->order[0]));
    return &s->current;
}

const struct log_rec *log_set_next(struct log_set *set)
{
    if (!set->started) {
        set->started = true;
        for (uint32_t i = 0; i < set->count; i++)
            refill(set, i);
    } else if (set->given < set->count) {
        refill(set, set->given);
    }
    set->given = set->count;
    if (!set->heap_count)
        return NULL;
    set->given = heap_pop(set);
    return take(&set->sources[set->given]);
}

/* All that is left of a file that nothing is added to any more, its last line without an end, too. */
static void drain(struct source *s, uint32_t index)
{
    while (s->filled < WINDOW) {
        struct log_rec *slot = free_slot(s);
        if (log_reader_next(s->reader, slot, false) != LOG_READ_RECORD)
            return;
        slot->source = index;
        insert(s, slot);
    }
}

/* What is left of the file that was rotated away is read first; then the one that was begun after it, which may be moved on by now, too. */
static bool follow_rotation(struct source *s, uint32_t index)
{
    bool gap;

    if (!s->reader || !log_reader_moved(s->reader, s->path))
        return false;
    drain(s, index);
    if (s->filled)
        return true;
    struct log_reader *next = log_parts_next(s->path, s->reader, s->current.real_ns, &gap);
    if (!next)
        return false;
    end_part(s);
    s->reader = next;
    if (gap)
        tool_say("%s was rotated away and removed before the next one of it was found: lines may be missing here", s->path);
    return true;
}

const struct log_rec *log_set_follow(struct log_set *set, const volatile int *stop, bool wait)
{
    struct source *s = &set->sources[0];

    while (!*stop && !ferror(stdout)) {
        if (!s->filled) {
            if (!s->reader && !next_part(s))
                return NULL;
            read_ahead(s, 0, true);
        }
        if (s->filled)
            return take(s);
        if (!s->reader)
            return NULL;
        if (follow_rotation(s, 0))
            continue;
        if (!wait)
            return NULL;
        tool_flush();
        if (!*stop && !ferror(stdout))
            usleep(FOLLOW_US);
    }
    return NULL;
}

/* ---- opening ---- */

static void source_finish(struct source *s)
{
    log_reader_close(s->reader);
    log_parts_finish(&s->parts);
    for (uint32_t i = 0; i < WINDOW; i++)
        log_rec_finish(&s->window[i]);
    log_rec_finish(&s->current);
    free(s->path);
    free(s->label);
}

void log_set_close(struct log_set *set)
{
    if (!set)
        return;
    for (uint32_t i = 0; i < set->count; i++)
        source_finish(&set->sources[i]);
    free(set->sources);
    free(set->heap);
    free(set);
}

static const char *tail(const char *path, int parts)
{
    const char *at = path + strlen(path);

    for (; at > path; at--) {
        if (at[-1] == '/' && --parts == 0)
            break;
    }
    return at;
}

/* The last part of each path, or as many parts as it takes to tell all apart. */
static bool label_all(struct log_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        int parts = 1;
        const char *label = tail(set->sources[i].path, parts);
        for (uint32_t j = 0; j < set->count && label > set->sources[i].path; j++) {
            while (j != i && label > set->sources[i].path && strcmp(label, tail(set->sources[j].path, parts)) == 0)
                label = tail(set->sources[i].path, ++parts);
        }
        set->sources[i].label = strdup(label);
        if (!set->sources[i].label)
            return false;
        text_clean(set->sources[i].label); /* the name of a file goes to the terminal with each record */
    }
    return true;
}

/* Each source keeps a descriptor open; a job has thousands of ranks. */
static void raise_descriptors(uint32_t count)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < count + 32u) {
        r.rlim_cur = r.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &r);
    }
}

static bool source_open(struct source *s, const char *path, enum log_rotated rotated)
{
    struct stat st;
    int err = 0;

    s->path = strdup(path);
    if (!s->path || !log_parts_find(&s->parts, path, rotated)) {
        tool_say("out of memory");
        return false;
    }
    const struct log_part *own = &s->parts.part[s->parts.count - 1];
    s->stream = strcmp(path, "-") == 0 || (!own->known && stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
    struct log_reader *probe = s->stream ? NULL : log_part_open(own, &err);
    log_reader_close(probe);
    if (!probe && !s->stream)
        tool_say("%s cannot be read: %s; name a log file that is there", path, log_reader_why(err));
    return probe || s->stream;
}

const char *log_set_twice(const char *const *paths, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(paths[i], paths[j]) == 0)
                return paths[i];
        }
    }
    return NULL;
}

struct log_set *log_set_open(const char *const *paths, uint32_t count, enum log_rotated rotated)
{
    const char *twice = log_set_twice(paths, count);
    if (twice) {
        tool_say("%s is named twice; name each file once", twice);
        return NULL;
    }
    struct log_set *set = calloc(1, sizeof(*set));

    raise_descriptors(count);
    if (set) {
        set->sources = calloc(count, sizeof(*set->sources));
        set->heap = calloc(count, sizeof(*set->heap));
    }
    if (!set || !set->sources || !set->heap) {
        tool_say("out of memory");
        log_set_close(set);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        set->count = i + 1;
        if (!source_open(&set->sources[i], paths[i], rotated)) {
            log_set_close(set);
            return NULL;
        }
    }
    if (!label_all(set)) {
        tool_say("out of memory");
        log_set_close(set);
        return NULL;
    }
    set->given = set->count;
    return set;
}

bool log_set_rewind(struct log_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        struct source *s = &set->sources[i];
        if (s->stream) {
            tool_say("%s cannot be read twice, which this needs; name a file", strcmp(s->path, "-") == 0 ? "standard input" : s->path);
            return false;
        }
        log_reader_close(s->reader);
        s->reader = NULL;
        s->part = s->filled = 0;
        s->end = s->failed = false;
        s->counts = (struct log_counts){ 0 };
    }
    set->heap_count = 0;
    set->given = set->count;
    set->started = false;
    return true;
}

uint32_t log_set_count(const struct log_set *set) { return set->count; }
const char *log_set_path(const struct log_set *set, uint32_t source) { return set->sources[source].path; }
const char *log_set_label(const struct log_set *set, uint32_t source) { return set->sources[source].label; }

struct log_counts log_set_counts(const struct log_set *set, uint32_t source)
{
    struct log_counts c = set->sources[source].counts;

    if (set->sources[source].reader)
        add_counts(&c, log_reader_counts(set->sources[source].reader));
    return c;
}

const struct log_header *log_set_header(const struct log_set *set, uint32_t source)
{
    const struct source *s = &set->sources[source];
    return s->reader && log_reader_header(s->reader)->pid ? log_reader_header(s->reader) : &s->header;
}

/* Whole, and not one line of it is a record or the head of a log. */
static bool is_no_log(const struct log_counts *c, const struct log_header *h) { return c->foreign && !c->records && !c->damaged && !h->pid; }

static void report_counts(const char *path, const struct log_counts *c)
{
    if (c->foreign)
        tool_say("%s: %llu of %llu lines are no log records, the first is line %llu", path, (unsigned long long)c->foreign,
                (unsigned long long)c->lines, (unsigned long long)c->first_foreign);
    if (c->too_long)
        tool_say("%s: %llu lines are longer than %u KiB and were cut", path, (unsigned long long)c->too_long, LOG_LINE_MAX >> 10);
    if (c->nul_B)
        tool_say("%s: %llu bytes are NUL, as a crash of the host leaves them; they were passed over", path,
                (unsigned long long)c->nul_B);
    if (c->cut)
        tool_say("%s: the compressed data are damaged or cut off; what comes before that place is shown, the rest is lost", path);
    if (c->damaged > c->cut)
        tool_say("%s: %llu damaged places; what could be decoded is shown", path,
                (unsigned long long)c->damaged - c->cut);
    if (c->torn)
        tool_say("%s: the last line is cut off", path);
}

bool log_set_report(const struct log_set *set)
{
    bool good = true;

    for (uint32_t i = 0; i < set->count; i++) {
        const struct source *s = &set->sources[i];
        struct log_counts c = log_set_counts(set, i);
        const struct log_header *h = log_set_header(set, i);
        if (h->kind[0] && strcmp(h->kind, "run") != 0 && strcmp(h->kind, "disaster") != 0)
            tool_say("%s is a %s log, of which this version knows nothing: read it as it is, or with the umd-log of version %s", s->path, h->kind,
                     h->version[0] ? h->version : "later");
        else if (is_no_log(&c, h))
            tool_say("%s is no log: none of its %llu lines is a record", s->path, (unsigned long long)c.lines);
        else
            report_counts(s->path, &c);
        good = good && !is_no_log(&c, h);
        if (s->parts.older)
            tool_say("%s: %u older file(s) are of earlier runs and were left out; --history reads them too", s->path, s->parts.older);
        if (s->parts.children)
            tool_say("%s: %u file(s) beside it are of forked children (%s, ...); name them to read them too", s->path,
                    s->parts.children, s->parts.child);
        if (s->failed) {
            tool_say("%s: a part could not be read: %s", s->path, s->err == ESTALE ? "it was rotated away and removed meanwhile" : strerror(s->err));
            good = false;
        }
    }
    return good;
}
