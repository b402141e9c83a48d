/* SPDX-License-Identifier: MIT */
/* record.c - the story of one error record, put together from the lines that logs and emergency rings have of it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../umd-log/ring.h"
#include "../umd-log/story.h"
#include "explain.h"
#include "record.h"
#include "umd-tool.h"

#define CHAIN_MAX 12u

/* ---- Reading ---- */

static bool added(struct story_book *book, const struct log_rec *rec)
{
    if (story_book_add(book, rec))
        return true;
    tool_say("out of memory; name fewer files");
    return false;
}

static bool add_logs(struct story_book *book, const char *const *logs, uint32_t count)
{
    const struct log_rec *rec;
    struct log_set *set = log_set_open(logs, count, LOG_ROTATED_RUN);
    bool ok = set != NULL;

    while (ok && (rec = log_set_next(set)))
        ok = added(book, rec);
    if (set)
        ok = log_set_report(set) && ok;
    log_set_close(set);
    return ok;
}

static bool add_ring(struct story_book *book, const char *path)
{
    struct log_ring ring;
    struct log_rec rec = { 0 };

    if (!log_ring_read(&ring, path))
        return false;
    bool ok = true;
    for (uint32_t i = 0; ok && i < ring.count; i++)
        ok = log_ring_rec(&ring, i, &rec) && added(book, &rec);
    log_rec_finish(&rec);
    log_ring_finish(&ring);
    return ok;
}

/* ---- Printing ---- */

static const char *end_word(const struct story *s)
{
    static const char *const word[] = { "not told", "delivered", "absorbed", "swallowed" };
    return word[s->end];
}

/* What the log has of it: a run log knows no thread, and of failures no place and no module. */
static void put_place(const struct story *s)
{
    const struct log_rec *r = &s->raised;
    const bool placed = strcmp(r->module, LOG_NO_MODULE) != 0;
    char text[400] = "";
    int n = 0;

    if (*r->func)
        n += snprintf(text, sizeof(text), "%.60s%s", r->func, placed ? " in " : "");
    if (placed)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "%.60s", r->module);
    if (r->line)
        n += snprintf(text + n, sizeof(text) - (size_t)n, " (%.60s:%u)", r->file, r->line);
    n += snprintf(text + n, sizeof(text) - (size_t)n, "%sprocess %u", n ? ", " : "", r->pid);
    if (r->tid)
        n += snprintf(text + n, sizeof(text) - (size_t)n, ", thread %u", r->tid);
    if (r->context_id)
        n += snprintf(text + n, sizeof(text) - (size_t)n, ", context %" PRIu64, r->context_id);
    if (s->api)
        snprintf(text + n, sizeof(text) - (size_t)n, ", call %.60s", s->api);
    explain_paragraph("where", text);
}

static void put_linked(const char *label, const struct story *s)
{
    char id[48], text[1400];

    log_id_format(s->id, id);
    snprintf(text, sizeof(text), "%.64s: %.1100s [record %s]", story_code_name(s), story_message(s), id);
    explain_paragraph(label, text);
}

static void put_times(const struct story_book *book, const struct story *s)
{
    char text[160], often[48];
    const uint64_t held = story_held_like(book, s);

    if (*story_times(s->times, s->more, often))
        explain_paragraph("times", often);
    if (held) {
        snprintf(text, sizeof(text), "of this code and place %" PRIu64 " more were not logged one by one", held);
        explain_paragraph("besides", text);
    }
}

static void put_story(const struct story_book *book, const struct story *s)
{
    const struct umd_status_info *info = umd_status_info((umdStatus)s->raised.code);
    char id[48], when[40], text[700], path[1200];

    log_id_format(s->id, id);
    log_time_format(s->raised.real_ns, when);
    printf("record %s: %s%s\n", id, story_code_name(s), s->has_raised ? "" : " (the line that raised it is not in what was read)");
    explain_paragraph("what", info ? info->when : "A code that this version does not know.");
    explain_paragraph("told", story_message(s));
    if (story_kernel(s, text, sizeof(text)))
        explain_paragraph("kernel", text);
    if (s->added)
        explain_paragraph("added", s->added);
    explain_paragraph("at", when);
    put_place(s);
    if (story_path(s, path, sizeof(path)))
        explain_paragraph("path", path);
    const char *label = "because of";
    uint32_t depth = 0;
    for (const struct story *c = s->parent; c && depth < CHAIN_MAX; c = c->parent, depth++) {
        put_linked(label, c);
        label = "";
    }
    const struct story *last = s;
    while (last->parent)
        last = last->parent;
    if (last->cause_missing) {
        log_id_format(last->cause, id);
        snprintf(text, sizeof(text), "record %s, which is not in what was read", id);
        explain_paragraph(last == s ? "because of" : "", text);
    }
    label = "led to";
    for (const struct story *c = s->child; c; c = c->next) {
        put_linked(label, c);
        label = "";
    }
    put_times(book, s);
    if (s->end != STORY_OPEN) {
        snprintf(text, sizeof(text), "%s%s%.200s", end_word(s), s->end_text ? ": " : "", s->end_text ? s->end_text : "");
        explain_paragraph("end", text);
    }
    if (info) {
        char todo[160];
        umd_advice_format(&s->advice, todo, sizeof(todo));
        snprintf(text, sizeof(text), "%s%s (%s; umd-explain %s tells more)", umd_misuse_todo(s->added ? s->added : s->raised.message), info->todo, todo,
                 info->name);
        explain_paragraph("next", text);
    }
}

static struct json_object *story_json(const struct story *s)
{
    struct json_object *o = json_object_new_object();
    char id[48], when[40];

    log_id_format(s->id, id);
    log_time_format(s->raised.real_ns, when);
    json_add_text(o, "record", id);
    json_add_number(o, "code", s->raised.code);
    json_add_text(o, "code_name", story_code_name(s));
    json_add_text(o, "message", s->raised.message);
    json_add_text(o, "time", when);
    json_add_text(o, "module", s->raised.module);
    json_add_text(o, "function", s->raised.func);
    json_add_text(o, "file", s->raised.file);
    json_add_number(o, "line", s->raised.line);
    json_add_number(o, "pid", s->raised.pid);
    json_add_number(o, "tid", s->raised.tid);
    json_add_big(o, "context_id", s->raised.context_id);
    json_add_number(o, "times", (int64_t)s->times);
    json_add_bool(o, "times_exact", !s->more);
    json_add_text(o, "end", end_word(s));
    json_add_text(o, "added", s->added);
    return o;
}

static void put_story_json(const struct story *s)
{
    const struct umd_status_info *info = umd_status_info((umdStatus)s->raised.code);
    struct json_object *o = story_json(s), *causes = json_object_new_array(), *effects = json_object_new_array();
    uint32_t depth = 0;

    for (const struct story *c = s->parent; c && depth < CHAIN_MAX; c = c->parent, depth++)
        json_object_array_add(causes, story_json(c));
    for (const struct story *c = s->child; c; c = c->next)
        json_object_array_add(effects, story_json(c));
    json_object_object_add(o, "because_of", causes);
    json_object_object_add(o, "led_to", effects);
    json_object_object_add(o, "explanation", info ? explain_code_json(info) : NULL);
    json_put_away(o);
}

int explain_record(umdRecordId id, const char *const *logs, uint32_t log_count, const char *const *rings, uint32_t ring_count, bool json)
{
    struct story_book book;
    int status = EXIT_DONE;
    char text[48];

    story_book_init(&book);
    bool ok = !log_count || add_logs(&book, logs, log_count);
    for (uint32_t i = 0; ok && i < ring_count; i++)
        ok = add_ring(&book, rings[i]);
    if (ok)
        story_book_link(&book);
    struct story *s = ok ? story_find(&book, id) : NULL;
    if (!ok) {
        status = EXIT_ENVIRONMENT; /* what failed has been said */
    } else if (!s) {
        log_id_format(id, text);
        tool_say("no line of %s%s tells of the record %s%s", log_count ? logs[0] : rings[0],
                log_count + ring_count > 1 ? " and the others" : "", text, log_count ? "; its level may have been off, or it was rotated away" : "");
        status = EXIT_USAGE;
    } else if (json) {
        put_story_json(s);
    } else {
        put_story(&book, s);
    }
    story_book_finish(&book);
    return status;
}
