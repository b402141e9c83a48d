/* SPDX-License-Identifier: MIT */
/* export_chrome.c - the Trace Event Format, which Perfetto and chrome://tracing load: calls as slices, the rest as instants. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "print.h"
#include "story.h"

#define BUCKETS 256u

#define JUMP_NS 2000000000   /* real and monotonic time part: another boot, or the clock was set */

/* A process of a file, or a thread of it, that has been named in the trace. */
struct seen {
    uint32_t source, pid, tid;
    bool process, named;
    uint32_t shown_pid;         /* process: in the trace; its own, unless that of another file has it */
    bool has_offset;
    int64_t offset_ns;          /* process: real minus monotonic time, kept while the two go alike, so that its calls nest exactly */
    struct seen *next;
};

struct chrome {
    struct log_set *set;
    struct story_book book;
    struct seen *seen[BUCKETS];
    uint64_t base_ns;           /* real time of ts 0 */
    uint32_t next_pid;          /* given to the next process whose own is taken; beyond what a kernel gives */
    bool comma, memory;
};

static void put_event(struct chrome *c, struct json_object *event)
{
    if (c->comma)
        fputs(",\n", stdout);
    c->comma = true;
    fputs(json_object_to_json_string_ext(event, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE), stdout);
    json_object_put(event);
}

static struct json_object *event_of(const char *phase, const char *name, uint32_t pid, uint32_t tid)
{
    struct json_object *e = json_object_new_object();

    json_add_text(e, "name", name);
    json_add_text(e, "ph", phase);
    json_add_number(e, "pid", pid);
    json_add_number(e, "tid", tid);
    return e;
}

/* Microseconds with three decimals, as digits: a double would not hold the nanoseconds of a long run. */
static void add_time(struct json_object *e, const char *key, int64_t ns)
{
    char text[32];
    uint64_t plain = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;

    snprintf(text, sizeof(text), "%s%" PRIu64 ".%03u", ns < 0 ? "-" : "", plain / 1000, (unsigned)(plain % 1000));
    json_object_object_add(e, key, json_object_new_double_s((double)ns * 1e-3, text));
}

static void put_name(struct chrome *c, const char *kind, const char *name, uint32_t pid, uint32_t tid)
{
    struct json_object *e = event_of("M", kind, pid, tid), *args = json_object_new_object();

    json_add_text(args, "name", name);
    json_object_object_add(e, "args", args);
    put_event(c, e);
}

static struct seen *find(struct chrome *c, uint32_t source, uint32_t pid, uint32_t tid, bool process)
{
    uint32_t at = (source * 961u + pid * 31u + tid) % BUCKETS;
    struct seen *s;

    for (s = c->seen[at]; s; s = s->next) {
        if (s->source == source && s->pid == pid && s->tid == tid && s->process == process)
            return s;
    }
    s = calloc(1, sizeof(*s));
    if (!s) {
        c->memory = false;
        return NULL;
    }
    *s = (struct seen){ .source = source, .pid = pid, .tid = tid, .process = process, .next = c->seen[at] };
    c->seen[at] = s;
    return s;
}

/* Processes of different hosts or containers have one pid: the second gets another in the trace. */
static void give_pid(struct chrome *c, struct seen *process)
{
    process->shown_pid = process->pid;
    for (uint32_t i = 0; i < BUCKETS; i++) {
        for (const struct seen *s = c->seen[i]; s; s = s->next) {
            if (s != process && s->process && s->named && s->shown_pid == process->pid)
                process->shown_pid = c->next_pid++;
        }
    }
}

/* The record's time in the trace. What is no time of this age wraps, and stands where it may. */
static int64_t time_of(const struct chrome *c, struct seen *process, const struct log_rec *rec)
{
    int64_t offset_ns = (int64_t)(rec->real_ns - rec->mono_ns);

    if (!rec->mono_ns)
        return (int64_t)(rec->real_ns - c->base_ns);
    const uint64_t apart_ns = (uint64_t)offset_ns - (uint64_t)process->offset_ns + JUMP_NS;
    if (!process->has_offset || apart_ns > 2 * (uint64_t)JUMP_NS) {
        process->offset_ns = offset_ns;
        process->has_offset = true;
    }
    return (int64_t)(rec->mono_ns + (uint64_t)process->offset_ns - c->base_ns);
}

/* Names process and thread when they come first. */
static int64_t place(struct chrome *c, const struct log_rec *rec, uint32_t *pid_out)
{
    char name[200];
    struct seen *process = find(c, rec->source, rec->pid, 0, true), *thread = find(c, rec->source, rec->pid, rec->tid, false);

    *pid_out = rec->pid;
    if (!process || !thread)
        return 0;
    if (!process->named) {
        process->named = true;
        give_pid(c, process);
        snprintf(name, sizeof(name), "process %u, %.160s", rec->pid, log_set_label(c->set, rec->source));
        put_name(c, "process_name", name, process->shown_pid, rec->tid);
    }
    if (!thread->named) {
        thread->named = true;
        snprintf(name, sizeof(name), "thread %u", rec->tid);
        put_name(c, "thread_name", name, process->shown_pid, rec->tid);
    }
    *pid_out = process->shown_pid;
    return time_of(c, process, rec);
}

static struct json_object *args_of(const struct log_rec *rec)
{
    struct json_object *o = print_json_object(rec, NULL), *attributes = NULL, *args = json_object_new_object();

    json_add_text(args, "message", rec->message);
    json_add_text(args, "level", rec->level_text);
    json_add_text(args, "module", rec->module);
    if (*rec->trace_id)
        json_add_text(args, "trace_id", rec->trace_id);
    if (json_object_object_get_ex(o, "Attributes", &attributes))
        json_object_object_add(args, "attributes", json_object_get(attributes));
    json_object_put(o);
    return args;
}

/* "enter ARGS" and "exit code=X" of a public call, whose name is the function: the begin and the end of a slice. */
static bool put_call(struct chrome *c, const struct log_rec *rec, uint32_t pid, int64_t ts)
{
    bool enter = strncmp(rec->message, "enter", 5) == 0, leave = strncmp(rec->message, "exit", 4) == 0;

    if (strcmp(rec->module, "umd.api") != 0 || (!enter && !leave) || !*rec->func)
        return false;
    struct json_object *e = event_of(enter ? "B" : "E", rec->func, pid, rec->tid), *args = json_object_new_object();
    const char *figures = log_figures_of(rec->message);
    json_add_text(e, "cat", "api");
    add_time(e, "ts", ts);
    if (enter && *figures)
        json_add_text(args, "arguments", figures);
    else if (leave && strncmp(figures, "code=", 5) == 0)
        json_add_text(args, "code", figures + 5);
    if (enter && rec->context_id)
        json_add_number(args, "context", (int64_t)rec->context_id);
    json_object_object_add(e, "args", args);
    put_event(c, e);
    return true;
}

/* An error is also a short slice: the arrows from cause to effect start and end at slices. */
static void put_instant(struct chrome *c, const struct log_rec *rec, uint32_t pid, int64_t ts)
{
    static const char *const category[] = { "other", "error", "warning", "lifecycle", "debug", "trace" };
    const char *figures = log_figures_of(rec->message);
    char name[96];

    if (*rec->code_name) {
        snprintf(name, sizeof(name), "%s", rec->code_name);
    } else {
        size_t n = (size_t)(figures - rec->message);
        while (n && rec->message[n - 1] == ' ')
            n--;
        snprintf(name, sizeof(name), "%.*s", (int)text_cut(rec->message, n > 90 ? 90 : n), rec->message);
    }
    if (!*name)
        snprintf(name, sizeof(name), "%.64s", rec->module);
    struct json_object *e = event_of("i", name, pid, rec->tid);
    json_add_text(e, "cat", category[rec->level]);
    json_add_text(e, "s", rec->level <= UMD_LOG_WARN ? "p" : "t");
    add_time(e, "ts", ts);
    json_object_object_add(e, "args", args_of(rec));
    put_event(c, e);
    if (!rec->id.seq || rec->level != UMD_LOG_ERROR)
        return;
    e = event_of("X", name, pid, rec->tid);
    json_add_text(e, "cat", "error");
    add_time(e, "ts", ts);
    add_time(e, "dur", 100);
    put_event(c, e);
}

static void put_flow(struct chrome *c, const char *phase, uint32_t id, const struct story *s)
{
    uint32_t pid;
    int64_t ts = place(c, &s->raised, &pid);
    struct json_object *e = event_of(phase, "because of", pid, s->raised.tid);

    json_add_text(e, "cat", "cause");
    json_add_number(e, "id", id);
    if (*phase == 'f')
        json_add_text(e, "bp", "e");
    add_time(e, "ts", ts);
    put_event(c, e);
}

static void finish(struct chrome *c)
{
    for (uint32_t i = 0; i < BUCKETS; i++) {
        while (c->seen[i]) {
            struct seen *s = c->seen[i];
            c->seen[i] = s->next;
            free(s);
        }
    }
    story_book_finish(&c->book);
}

bool export_chrome(struct log_set *set, const struct filter *filter)
{
    struct chrome c = { .set = set, .next_pid = 1u << 23, .memory = true };
    const struct log_rec *rec;
    char when[40];

    story_book_init(&c.book);
    fputs("{\"traceEvents\":[\n", stdout);
    while (c.memory && !ferror(stdout) && (rec = log_set_next(set)) != NULL) {
        if (!filter_match(filter, rec))
            continue;
        if (!c.base_ns)
            c.base_ns = rec->real_ns;
        uint32_t pid;
        int64_t ts = place(&c, rec, &pid);
        if (!put_call(&c, rec, pid, ts))
            put_instant(&c, rec, pid, ts);
        c.memory = c.memory && story_book_add(&c.book, rec);
    }
    if (c.memory) {
        story_book_link(&c.book);
        for (uint32_t i = 0; i < c.book.count; i++) {
            const struct story *s = c.book.all[i];
            if (!s->parent || !story_is_error(s) || !story_is_error(s->parent) || !s->has_raised || !s->parent->has_raised)
                continue;
            put_flow(&c, "s", i + 1, s->parent);
            put_flow(&c, "f", i + 1, s);
        }
    }
    log_time_format(c.base_ns, when);
    printf("\n],\"displayTimeUnit\":\"ns\",\"otherData\":{\"source\":\"umd-log %s\",\"time_of_ts_0\":\"%s\"}}\n", PETREL_VERSION, when);
    bool good = c.memory;
    finish(&c);
    return good;
}
