/* SPDX-License-Identifier: MIT */
/* record.c - the story of one error record, put together from the lines that logs and emergency rings have of it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../umd-log/set.h"
#include "../umd-log/story.h"
#include "../umd-tool.h"
#include "emergency.h"
#include "explain.h"

#define CHAIN_MAX 12u

/* ---- Reading ---- */

static bool add_logs(struct story_book *book, const char *const *logs, uint32_t count)
{
    const struct log_rec *rec;
    struct log_set *set = log_set_open(logs, count, LOG_ROTATED_RUN);
    bool ok = set != NULL;

    while (ok && (rec = log_set_next(set)))
        ok = story_book_add(book, rec);
    if (set)
        ok = log_set_report(set) && ok;
    log_set_close(set);
    return ok;
}

/* A slot as a line of a log. Texts in the file may be anything. */
static bool add_slot(struct story_book *book, struct log_rec *rec, const struct umd_emergency_slot *s)
{
    if (!log_rec_begin(rec, sizeof(*s) + 64))
        return false;
    rec->real_ns = rec->observed_ns = s->real_ns;
    rec->mono_ns = s->mono_ns;
    rec->level = s->level <= UMD_LOG_TRACE ? (int)s->level : 0;
    rec->level_text = log_level_name(rec->level);
    rec->pid = s->pid;
    rec->tid = s->tid;
    rec->line = s->line;
    rec->context_id = s->context_id;
    rec->id = s->record;
    rec->code = s->code;
    rec->code_name = s->code ? umdStatusName((umdStatus)s->code) : "";
    rec->module = log_rec_text(rec, s->module, strnlen(s->module, sizeof(s->module)));
    rec->func = log_rec_text(rec, s->func, strnlen(s->func, sizeof(s->func)));
    rec->file = log_rec_text(rec, s->file, strnlen(s->file, sizeof(s->file)));
    rec->message = log_rec_text(rec, s->message, strnlen(s->message, sizeof(s->message)));
    return story_book_add(book, rec);
}

static bool add_ring(struct story_book *book, const char *path)
{
    struct umd_emergency_slot *slots = calloc(UMD_EMERGENCY_SLOTS, sizeof(*slots));
    struct log_rec rec = { 0 };
    uint32_t n = 0, damaged = 0;
    FILE *f = fopen(path, "re");
    bool ok = slots != NULL && f != NULL;

    if (!f) {
        fprintf(stderr, "umd-explain: %s: %s\n", path, strerror(errno));
    } else if (ok && umdFailed(umd_emergency_read(path, slots, UMD_EMERGENCY_SLOTS, &n, &damaged))) {
        fprintf(stderr, "umd-explain: %s: this is no emergency ring of this version; name the file of UMD_EMERGENCY_FILE\n", path);
        ok = false;
    }
    if (f)
        fclose(f);
    for (uint32_t i = 0; ok && i < n; i++)
        ok = add_slot(book, &rec, &slots[i]);
    log_rec_finish(&rec);
    free(slots);
    return ok;
}

/* ---- Printing ---- */

/* The message without the code in front. */
static const char *message_of(const struct story *s)
{
    const char *text = s->raised.message, *name = s->raised.code_name;
    size_t n = strlen(name);

    if (n && strncmp(text, name, n) == 0 && text[n] == ':')
        text += n + 1;
    return text + strspn(text, " ");
}

static const char *end_word(const struct story *s)
{
    static const char *const word[] = { "not told", "delivered", "absorbed", "swallowed" };
    return word[s->end];
}

static void put_place(const struct story *s)
{
    const struct log_rec *r = &s->raised;
    char text[400];
    int n = snprintf(text, sizeof(text), "%.60s in %.60s", r->func, r->module);

    if (r->line)
        n += snprintf(text + n, sizeof(text) - (size_t)n, " (%.60s:%u)", r->file, r->line);
    n += snprintf(text + n, sizeof(text) - (size_t)n, ", process %u, thread %u", r->pid, r->tid);
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
    snprintf(text, sizeof(text), "%.64s: %.1100s [record %s]", story_code_name(s), message_of(s), id);
    explain_paragraph(label, text);
}

static void put_path(const struct story *s)
{
    char text[1600];
    size_t n = 0;

    for (uint32_t i = 0; i < s->hop_count && n < sizeof(text) - 300; i++) {
        const struct story_hop *h = &s->hops[i];
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%.24s %.60s", i ? " > " : "", h->layer, h->func);
        if (strcmp(h->in, h->out) != 0)
            n += (size_t)snprintf(text + n, sizeof(text) - n, " (%.60s becomes %.60s)", h->in, h->out);
    }
    if (n)
        explain_paragraph("path", text);
}

static void put_story(const struct story *s)
{
    const struct umd_status_info *info = umd_status_info((umdStatus)s->raised.code);
    char id[48], when[40], text[400];

    log_id_format(s->id, id);
    log_time_format(s->raised.real_ns, when);
    printf("record %s: %s%s\n", id, story_code_name(s), s->has_raised ? "" : " (the line that raised it is not in what was read)");
    explain_paragraph("what", info ? info->when : "A code that this version does not know.");
    explain_paragraph("told", message_of(s));
    explain_paragraph("at", when);
    put_place(s);
    put_path(s);
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
    if (s->times > 1) {
        snprintf(text, sizeof(text), "%" PRIu64, s->times);
        explain_paragraph("times", text);
    }
    if (s->end != STORY_OPEN) {
        snprintf(text, sizeof(text), "%s%s%.200s", end_word(s), s->end_text ? ": " : "", s->end_text ? s->end_text : "");
        explain_paragraph("end", text);
    }
    if (info) {
        snprintf(text, sizeof(text), "%s (umd-explain %s tells more)", info->todo, info->name);
        explain_paragraph("next", text);
    }
}

static struct json_object *story_json(const struct story *s)
{
    struct json_object *o = json_object_new_object();
    char id[48], when[40];

    log_id_format(s->id, id);
    log_time_format(s->raised.real_ns, when);
    json_object_object_add(o, "record", json_object_new_string(id));
    json_object_object_add(o, "code", json_object_new_int(s->raised.code));
    json_object_object_add(o, "code_name", json_object_new_string(story_code_name(s)));
    json_object_object_add(o, "message", json_object_new_string(s->raised.message));
    json_object_object_add(o, "time", json_object_new_string(when));
    json_object_object_add(o, "module", json_object_new_string(s->raised.module));
    json_object_object_add(o, "function", json_object_new_string(s->raised.func));
    json_object_object_add(o, "file", json_object_new_string(s->raised.file));
    json_object_object_add(o, "line", json_object_new_int64(s->raised.line));
    json_object_object_add(o, "pid", json_object_new_int64(s->raised.pid));
    json_object_object_add(o, "tid", json_object_new_int64(s->raised.tid));
    json_object_object_add(o, "context_id", json_object_new_int64((int64_t)s->raised.context_id));
    json_object_object_add(o, "times", json_object_new_int64((int64_t)s->times));
    json_object_object_add(o, "end", json_object_new_string(end_word(s)));
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
    puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(o);
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
        ok = story_book_link(&book);
    struct story *s = ok ? story_find(&book, id) : NULL;
    if (!ok) {
        status = EXIT_ENVIRONMENT; /* what failed has been said */
    } else if (!s) {
        log_id_format(id, text);
        fprintf(stderr, "umd-explain: no line of %s%s tells of the record %s%s\n", log_count ? logs[0] : rings[0],
                log_count + ring_count > 1 ? " and the others" : "", text, log_count ? "; its level may have been off, or it was rotated away" : "");
        status = EXIT_USAGE;
    } else if (json) {
        put_story_json(s);
    } else {
        put_story(s);
    }
    story_book_finish(&book);
    return status;
}
