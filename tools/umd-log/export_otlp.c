/* SPDX-License-Identifier: MIT */
/* export_otlp.c - OTLP/JSON: one LogsData object per line, each of at most BATCH records, as OTLP files are. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "print.h"

#define BATCH 1000u

/* Names are those of the protobuf JSON mapping: lowerCamelCase, 64-bit integers as strings, ids as hex. */

static struct json_object *value_text(const char *text)
{
    struct json_object *v = json_object_new_object();

    json_add_text(v, "stringValue", text);
    return v;
}

static struct json_object *value_int(int64_t n)
{
    struct json_object *v = json_object_new_object();
    char text[24];

    snprintf(text, sizeof(text), "%" PRId64, n);
    json_add_text(v, "intValue", text);
    return v;
}

/* 64 bits without a sign do not fit intValue: beyond it they are text. */
static struct json_object *value_uint(uint64_t n)
{
    char text[24];

    if (n <= INT64_MAX)
        return value_int((int64_t)n);
    snprintf(text, sizeof(text), "%" PRIu64, n);
    return value_text(text);
}

static void add(struct json_object *list, const char *key, struct json_object *value)
{
    struct json_object *kv = json_object_new_object();

    json_add_text(kv, "key", key);
    json_object_object_add(kv, "value", value);
    json_object_array_add(list, kv);
}

static struct json_object *figure_value(const umdFigure *f)
{
    struct json_object *v;

    if (f->kind == UMD_FIGURE_INT)
        return value_int(f->int_value);
    if (f->kind == UMD_FIGURE_UINT && f->text[1] != 'x')
        return value_uint(f->uint_value);
    if (f->kind != UMD_FIGURE_DOUBLE && f->kind != UMD_FIGURE_BOOL)
        return value_text(f->text);
    v = json_object_new_object();
    if (f->kind == UMD_FIGURE_BOOL)
        json_add_bool(v, "boolValue", f->int_value != 0);
    else
        json_object_object_add(v, "doubleValue", json_object_new_double_s(f->double_value, f->text));
    return v;
}

static void add_figures(struct json_object *attributes, const char *message)
{
    struct json_object *values = NULL;
    umdFigure f;

    while (log_figure_next(&message, &f)) {
        if (!values)
            values = json_object_new_array();
        add(values, f.key, figure_value(&f));
    }
    if (!values)
        return;
    struct json_object *list = json_object_new_object(), *value = json_object_new_object();
    json_object_object_add(list, "values", values);
    json_object_object_add(value, "kvlistValue", list);
    add(attributes, "petrel.figures", value);
}

static struct json_object *attributes(const struct log_rec *rec)
{
    struct json_object *a = json_object_new_array();
    char id[48];

    add(a, "thread.id", value_int(rec->tid));
    add(a, "petrel.mono_ns", value_uint(rec->mono_ns));
    add(a, "petrel.call_depth", value_int(rec->depth));
    if (*rec->func)
        add(a, "code.function.name", value_text(rec->func));
    if (rec->line) {
        add(a, "code.file.path", value_text(rec->file));
        add(a, "code.line.number", value_int(rec->line));
    }
    if (rec->context_id)
        add(a, "petrel.context_id", value_uint(rec->context_id));
    if (rec->code)
        add(a, "petrel.code", value_int(rec->code));
    if (*rec->code_name)
        add(a, "petrel.code_name", value_text(rec->code_name));
    if (rec->id.seq) {
        log_id_format(rec->id, id);
        add(a, "petrel.record", value_text(id));
    }
    for (uint32_t i = 0; i < rec->extra_count; i++)
        add(a, rec->extra[i].key, value_text(rec->extra[i].value));
    add_figures(a, rec->message);
    return a;
}

/* An id that is no trace id of the standard is an attribute. */
static bool is_hex(const char *s, size_t n) { return strlen(s) == n && strspn(s, "0123456789abcdef") == n && strspn(s, "0") != n; }

static struct json_object *log_record(const struct log_rec *rec)
{
    struct json_object *r = json_object_new_object(), *a = attributes(rec);

    json_add_big(r, "timeUnixNano", rec->real_ns);
    json_add_big(r, "observedTimeUnixNano", rec->observed_ns);
    json_add_number(r, "severityNumber", print_severity(rec->level));
    json_add_text(r, "severityText", rec->level_text);
    json_object_object_add(r, "body", value_text(rec->message));
    if (is_hex(rec->trace_id, 32))
        json_add_text(r, "traceId", rec->trace_id);
    else if (*rec->trace_id)
        add(a, "petrel.trace_id", value_text(rec->trace_id));
    if (is_hex(rec->span_id, 16))
        json_add_text(r, "spanId", rec->span_id);
    if (rec->flags >= 0)
        json_add_number(r, "flags", rec->flags);
    json_object_object_add(r, "attributes", a);
    return r;
}

/* A resource is a process in a file, a scope a module of it. Each is an array of the batch, found by what the last record was in. */
struct batch {
    struct json_object *resources;
    uint64_t key[BATCH];        /* of each resource: its file and process */
    uint32_t count;
};

static struct json_object *resource_of(struct log_set *set, struct batch *b, const struct log_rec *rec)
{
    uint64_t key = (uint64_t)rec->source << 32 | rec->pid;
    size_t count = json_object_array_length(b->resources);

    for (size_t i = 0; i < count; i++) {
        if (b->key[i] == key)
            return json_object_array_get_idx(b->resources, i);
    }
    struct json_object *r = json_object_new_object(), *resource = json_object_new_object(), *a = json_object_new_array();
    add(a, "service.name", value_text("petrel"));
    add(a, "process.pid", value_int(rec->pid));
    add(a, "log.file.path", value_text(log_set_path(set, rec->source)));
    json_object_object_add(resource, "attributes", a);
    json_object_object_add(r, "resource", resource);
    json_object_object_add(r, "scopeLogs", json_object_new_array());
    json_object_array_add(b->resources, r);
    b->key[count] = key;
    return r;
}

static struct json_object *records_of(struct json_object *resource, const char *module)
{
    struct json_object *scopes = NULL, *scope = NULL, *name = NULL, *records = NULL;

    json_object_object_get_ex(resource, "scopeLogs", &scopes);
    for (size_t i = 0; i < json_object_array_length(scopes); i++) {
        struct json_object *s = json_object_array_get_idx(scopes, i);
        json_object_object_get_ex(s, "scope", &scope);
        json_object_object_get_ex(scope, "name", &name);
        if (strcmp(json_object_get_string(name), module) == 0) {
            json_object_object_get_ex(s, "logRecords", &records);
            return records;
        }
    }
    struct json_object *s = json_object_new_object();
    scope = json_object_new_object();
    records = json_object_new_array();
    json_add_text(scope, "name", module);
    json_object_object_add(s, "scope", scope);
    json_object_object_add(s, "logRecords", records);
    json_object_array_add(scopes, s);
    return records;
}

static void flush(struct batch *b)
{
    struct json_object *root = json_object_new_object();

    json_object_object_add(root, "resourceLogs", b->resources);
    puts(json_object_to_json_string_ext(root, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(root);
    b->resources = NULL;
    b->count = 0;
}

bool export_otlp(struct log_set *set, const struct filter *filter)
{
    static struct batch b;
    const struct log_rec *rec;

    while (!ferror(stdout) && (rec = log_set_next(set)) != NULL) {
        if (!filter_match(filter, rec))
            continue;
        if (!b.resources)
            b.resources = json_object_new_array();
        json_object_array_add(records_of(resource_of(set, &b, rec), rec->module), log_record(rec));
        if (++b.count == BATCH)
            flush(&b);
    }
    if (b.resources)
        flush(&b);
    return true;
}
