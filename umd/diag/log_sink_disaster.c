/* SPDX-License-Identifier: MIT */
/* log_sink_disaster.c - the disaster log: of each ERROR all that is known, for driver engineers. */
#include <stdio.h>
#include <string.h>

#include "log_sinks.h"

#define WAITING_MAX 32u
#define WAIT_NS 1000000000ull   /* a record whose story goes on longer is written as it is */
#define STORY_B 16384u

/* A record is raised deep down; what became of it on its way up is part of its story, so it waits for its end. */
struct waiting {
    bool used;
    umdLogLevel level;
    uint64_t mono_ns, real_ns;
    uint32_t pid;
    umdErrorDetail detail;
};
static struct waiting *list;            /* WAITING_MAX of them, made with the first failure; under the drain lock */
static struct waiting *settling;        /* goes into the file now */
static const char *settling_story;
static _Atomic(bool) telling;           /* the writer makes a story, and may be held up by the loader */

static void out_head(struct umd_out *o, uint64_t real_ns, umdLogLevel level, uint32_t pid, uint32_t tid, const char *module)
{
    UMD_OUT_LIT(o, "==== ");
    umd_out_time(o, real_ns);
    umd_out_char(o, ' ');
    umd_out_str(o, umd_log_level_name(level));
    umd_out_char(o, ' ');
    umd_out_u64(o, pid);
    umd_out_char(o, '.');
    umd_out_u64(o, tid);
    umd_out_char(o, ' ');
    umd_out_str(o, module);
    umd_out_char(o, '\n');
}

static size_t format_settling(char *buf, size_t size)
{
    struct umd_out o = { .buf = buf, .size = size };
    const umdErrorDetail *d = &settling->detail;

    out_head(&o, settling->real_ns, settling->level, settling->pid, d->tid, d->module);
    umd_out_mem(&o, settling_story, strlen(settling_story));
    if (d->end == UMD_RECORD_OPEN)
        UMD_OUT_LIT(&o, "  (its story was not at its end when this was written)\n");
    return o.len;
}

static size_t format_line(struct umd_log_line *line, char *buf, size_t size)
{
    struct umd_out o = { .buf = buf, .size = size };

    out_head(&o, line->real_ns, line->level, line->pid, line->tid, line->module);
    UMD_OUT_LIT(&o, "  what     ");
    umd_out_str(&o, umd_log_line_message(line));
    umd_out_char(&o, '\n');
    if (line->context_id) {
        UMD_OUT_LIT(&o, "  context  ");
        umd_out_u64(&o, line->context_id);
        umd_out_char(&o, '\n');
    }
    if (line->line) {
        UMD_OUT_LIT(&o, "  where    ");
        umd_out_str(&o, line->func);
        UMD_OUT_LIT(&o, " (");
        umd_out_str(&o, line->file);
        umd_out_char(&o, ':');
        umd_out_u64(&o, line->line);
        UMD_OUT_LIT(&o, ")\n");
    }
    return o.len;
}

static void settle(struct umd_log_sink *s, struct waiting *w, const char *story)
{
    struct umd_log_line line = { .level = w->level, .module = w->detail.module, .func = w->detail.func, .file = w->detail.file,
                                 .line = w->detail.line, .code = w->detail.code, .record = w->detail.id, .message = w->detail.text };

    settling = w;
    settling_story = story;
    umd_log_sink_add(s, &line);
    settling = NULL;
    w->used = false;
}

static struct waiting *place_for(umdRecordId id)
{
    struct waiting *free_one = NULL;

    if (!list)
        list = umd_diag_alloc(WAITING_MAX * sizeof(*list));
    for (uint32_t i = 0; list && i < WAITING_MAX; i++) {
        if (list[i].used && umd_id_equal(list[i].detail.id, id))
            return &list[i];
        if (!list[i].used && !free_one)
            free_one = &list[i];
    }
    return free_one;
}

size_t umd_log_format_disaster(struct umd_log_sink *s, struct umd_log_line *line, char *buf, size_t size)
{
    (void)s;
    if (settling)
        return format_settling(buf, size);
    struct waiting *w = line->record.seq ? place_for(line->record) : NULL;
    umdErrorDetail d;
    if (!w || !umd_record_store_get(line->record, &d))
        return format_line(line, buf, size); /* a plain line, or more failures at once than can wait */
    if (!w->used)
        *w = (struct waiting){ .used = true, .level = line->level, .mono_ns = line->mono_ns, .real_ns = line->real_ns, .pid = line->pid };
    w->detail = d;
    return 0;
}

/* One whose story is at its end, or was waited for long enough. */
static struct waiting *next_ready(bool all)
{
    const uint64_t now = umd_sys()->mono_ns();

    umd_log_drain_assert_held();
    for (uint32_t i = 0; list && i < WAITING_MAX; i++) {
        struct waiting *w = &list[i];
        if (!w->used)
            continue;
        (void)umd_record_store_get(w->detail.id, &w->detail);
        const bool over = w->detail.end != UMD_RECORD_OPEN && !umd_record_store_travels(w->detail.id);
        if (all || over || now > w->mono_ns + WAIT_NS)
            return w;
    }
    return NULL;
}

void umd_log_disaster_settle(struct umd_log_sink *s, bool all)
{
    static char story[STORY_B]; /* under the drain lock */

    for (struct waiting *w; (w = next_ready(all)) != NULL;) {
        (void)umdErrorDetailFormatFull(&w->detail, story, sizeof(story));
        settle(s, w, story);
    }
}

void umd_log_disaster_tell(struct umd_log_sink *s)
{
    static char story[STORY_B]; /* the writer's, as is the copy */
    static umdErrorDetail detail;

    for (;;) {
        umd_log_drain_lock();
        struct waiting *w = s->enabled ? next_ready(false) : NULL;
        if (w)
            detail = w->detail;
        umd_log_drain_unlock();
        if (!w)
            return;
        atomic_store(&telling, true);
        (void)umdErrorDetailFormatFull(&detail, story, sizeof(story));
        atomic_store(&telling, false);
        umd_log_drain_lock();
        if (s->enabled && w->used && umd_id_equal(w->detail.id, detail.id)) { /* the file may have been closed meanwhile, with all that waited */
            settle(s, w, story);
            umd_log_sink_flush(s);
        }
        umd_log_drain_unlock();
    }
}

bool umd_log_disaster_is_telling(void) { return atomic_load(&telling); }

bool umd_log_disaster_waits(void)
{
    for (uint32_t i = 0; list && i < WAITING_MAX; i++)
        if (list[i].used)
            return true;
    return false;
}

void umd_log_disaster_child(void)
{
    for (uint32_t i = 0; list && i < WAITING_MAX; i++)
        list[i].used = false;
    settling = NULL;
    atomic_store(&telling, false);
}
