/* SPDX-License-Identifier: MIT */
/* parse_json.c - lines of the JSON format: OpenTelemetry's log data model, 64-bit numbers as strings or numbers. */
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"

#define DEPTH_MAX 16

static const char *text_of(struct json_object *o, size_t *n)
{
    if (json_object_is_type(o, json_type_string)) {
        *n = (size_t)json_object_get_string_len(o);
        return json_object_get_string(o);
    }
    const char *s = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
    *n = s ? strlen(s) : 0;
    return s ? s : "";
}

static const char *take_text(struct log_rec *rec, struct json_object *o)
{
    size_t n;
    const char *s = text_of(o, &n);

    return log_rec_text(rec, s, n);
}

/* A number, or a string that is one; anything else is kept as an extra. */
static bool take_number(struct json_object *o, uint64_t max, uint64_t *out)
{
    char *end;

    if (json_object_is_type(o, json_type_int)) {
        if (json_object_get_int64(o) < 0)
            return false;
        *out = json_object_get_uint64(o);
        return *out <= max;
    }
    if (!json_object_is_type(o, json_type_string))
        return false;
    const char *s = json_object_get_string(o);
    if (*s < '0' || *s > '9')
        return false;
    *out = strtoull(s, &end, 10);
    return *end == '\0' && *out <= max;
}

static bool take_number32(struct json_object *o, uint32_t *out)
{
    uint64_t v;

    if (!take_number(o, UINT32_MAX, &v))
        return false;
    *out = (uint32_t)v;
    return true;
}

static bool take_id(struct log_rec *rec, struct json_object *o)
{
    size_t n;
    const char *s = text_of(o, &n);

    return log_id_parse(s, n, &rec->id);
}

static bool take_code(struct log_rec *rec, struct json_object *o)
{
    if (!json_object_is_type(o, json_type_int))
        return false;
    rec->code = json_object_get_int(o);
    return true;
}

static bool is(const char *key, const char *name) { return strcmp(key, name) == 0; }

static bool attribute(struct log_rec *rec, const char *key, struct json_object *v)
{
    if (is(key, "thread.id"))
        return take_number32(v, &rec->tid);
    if (is(key, "petrel.mono_ns"))
        return take_number(v, UINT64_MAX, &rec->mono_ns);
    if (is(key, "petrel.call_depth"))
        return take_number32(v, &rec->depth);
    if (is(key, "code.line.number") || is(key, "code.lineno"))
        return take_number32(v, &rec->line);
    if (is(key, "petrel.context_id"))
        return take_number(v, UINT64_MAX, &rec->context_id);
    if (is(key, "petrel.code"))
        return take_code(rec, v);
    if (is(key, "petrel.record"))
        return take_id(rec, v);
    if (is(key, "petrel.figures"))
        return true; /* they are in the message */
    if (is(key, "code.function.name") || is(key, "code.function"))
        rec->func = take_text(rec, v);
    else if (is(key, "code.file.path") || is(key, "code.filepath"))
        rec->file = take_text(rec, v);
    else if (is(key, "petrel.code_name"))
        rec->code_name = take_text(rec, v);
    else if (is(key, "petrel.trace_id"))
        rec->trace_id = take_text(rec, v);
    else
        return false;
    return true;
}

static void keep(struct log_rec *rec, const char *key, struct json_object *v)
{
    size_t n;
    const char *s = text_of(v, &n);

    log_rec_extra(rec, key, strlen(key), s, n);
}

static void attributes(struct log_rec *rec, struct json_object *all)
{
    json_object_object_foreach(all, key, v) {
        if (!attribute(rec, key, v))
            keep(rec, key, v);
    }
}

static void resource(struct log_rec *rec, struct json_object *all)
{
    json_object_object_foreach(all, key, v) {
        if (is(key, "service.name") || is(key, "service.version"))
            continue;
        if (!is(key, "process.pid") || !take_number32(v, &rec->pid))
            keep(rec, key, v);
    }
}

static void scope(struct log_rec *rec, struct json_object *all)
{
    json_object_object_foreach(all, key, v) {
        if (is(key, "Name"))
            rec->module = take_text(rec, v);
        else
            keep(rec, key, v);
    }
}

static int level_of_severity(int64_t n)
{
    return n >= 17 ? UMD_LOG_ERROR : n >= 13 ? UMD_LOG_WARN : n >= 9 ? UMD_LOG_INFO : n >= 5 ? UMD_LOG_DEBUG : n >= 1 ? UMD_LOG_TRACE : 0;
}

/* True: the member is one that this version knows. */
static bool member(struct log_rec *rec, const char *key, struct json_object *v, int *severity)
{
    if (is(key, "Timestamp"))
        return take_number(v, UINT64_MAX, &rec->real_ns);
    if (is(key, "ObservedTimestamp"))
        return take_number(v, UINT64_MAX, &rec->observed_ns);
    if (is(key, "SeverityNumber") && json_object_is_type(v, json_type_int)) {
        *severity = level_of_severity(json_object_get_int64(v));
        return true;
    }
    if (is(key, "SeverityText")) {
        rec->level_text = take_text(rec, v);
    } else if (is(key, "Body")) {
        rec->message = take_text(rec, v);
    } else if (is(key, "TraceId")) {
        rec->trace_id = take_text(rec, v);
    } else if (is(key, "SpanId")) {
        rec->span_id = take_text(rec, v);
    } else if (is(key, "TraceFlags") && json_object_is_type(v, json_type_int)) {
        rec->flags = json_object_get_int(v) & 0xff;
    } else if (is(key, "Resource") && json_object_is_type(v, json_type_object)) {
        resource(rec, v);
    } else if (is(key, "InstrumentationScope") && json_object_is_type(v, json_type_object)) {
        scope(rec, v);
    } else if (is(key, "Attributes") && json_object_is_type(v, json_type_object)) {
        attributes(rec, v);
    } else {
        return false;
    }
    return true;
}

/* A record has a time and a body; anything else that is JSON is foreign. */
static bool fill(struct log_rec *rec, struct json_object *root)
{
    struct json_object *unused;
    int severity = 0;

    if (!json_object_is_type(root, json_type_object) || !json_object_object_get_ex(root, "Timestamp", &unused) ||
        !json_object_object_get_ex(root, "Body", &unused))
        return false;
    json_object_object_foreach(root, key, v) {
        if (!member(rec, key, v, &severity))
            keep(rec, key, v);
    }
    rec->level = log_level_of(rec->level_text, strlen(rec->level_text));
    if (!rec->level)
        rec->level = severity;
    if (!*rec->level_text)
        rec->level_text = log_level_name(rec->level);
    if (!rec->observed_ns)
        rec->observed_ns = rec->real_ns;
    log_rec_find_code(rec);
    if (!rec->code && *rec->code_name)
        rec->code = log_code_of(rec->code_name);
    return true;
}

/* Texts are at most as long as the line; in an object that is kept as text again a raw control character takes six bytes. */
static size_t room_for(const char *line, size_t n)
{
    size_t room = 2 * n + 1024;

    for (size_t i = 0; i < n; i++)
        room += (unsigned char)line[i] < ' ' ? 5 : 0;
    return room;
}

bool log_parse_json(struct log_rec *rec, const char *line, size_t n)
{
    struct json_tokener *tok = json_tokener_new_ex(DEPTH_MAX);
    struct json_object *root = NULL;
    bool good = false;

    if (tok && n < INT32_MAX)
        root = json_tokener_parse_ex(tok, line, (int)n + 1); /* with the NUL: so a number at the end ends */
    /* A value and nothing but blanks behind it. */
    if (root && json_tokener_get_error(tok) == json_tokener_success) {
        size_t end = json_tokener_get_parse_end(tok);
        good = end >= n || line[end + strspn(line + end, " \t\r")] == '\0';
        good = good && log_rec_begin(rec, room_for(line, n)) && fill(rec, root);
    }
    json_object_put(root);
    if (tok)
        json_tokener_free(tok);
    if (!good)
        (void)log_rec_begin(rec, 1);
    return good;
}
