/* SPDX-License-Identifier: MIT */
/* print.c - records as text and as JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "print.h"

#define NS 1000000000u

enum text_colour print_level_colour(int level)
{
    static const enum text_colour colour[] = { TEXT_PLAIN, TEXT_RED, TEXT_YELLOW, TEXT_PLAIN, TEXT_DIM, TEXT_DIM };
    return level >= 0 && level <= UMD_LOG_TRACE ? colour[level] : TEXT_PLAIN;
}

int print_severity(int level)
{
    static const int severity[] = { 0, 17, 13, 9, 5, 1 };
    return level >= 0 && level <= UMD_LOG_TRACE ? severity[level] : 0;
}

void print_text(const struct log_rec *rec, const char *label)
{
    char when[40], id[48];

    log_time_format(rec->real_ns, when);
    if (label)
        printf("%s%s%s | ", text_colour(TEXT_CYAN), label, text_colour(TEXT_PLAIN));
    printf("%s %" PRIu64 ".%09" PRIu64 " %s%-5s%s %u.%u %s", when, rec->mono_ns / NS, rec->mono_ns % NS,
           text_colour(print_level_colour(rec->level)), rec->level_text, text_colour(TEXT_PLAIN), rec->pid, rec->tid, rec->module);
    if (rec->context_id)
        printf(" ctx=%" PRIu64, rec->context_id);
    printf(" depth=%u", rec->depth);
    if (rec->id.seq) {
        log_id_format(rec->id, id);
        printf(" rec=%s", id);
    }
    for (uint32_t i = 0; i < rec->extra_count; i++)
        printf(" %s=%s", rec->extra[i].key, rec->extra[i].value);
    if (*rec->trace_id)
        printf(" trace=%s", rec->trace_id);
    if (*rec->span_id)
        printf(" span=%s", rec->span_id);
    printf(": %s", rec->message);
    if (rec->line)
        printf(" %s[%s %s:%u]%s", text_colour(TEXT_DIM), rec->func, rec->file, rec->line, text_colour(TEXT_PLAIN));
    putchar('\n');
}

static bool is_trace_id(const char *s) { return strlen(s) == 32 && strspn(s, "0123456789abcdef") == 32; }

/* As the log's own JSON has them: decimal numbers that a double holds exactly as numbers, all else but true and false as strings. */
static struct json_object *figure_value(const umdFigure *f)
{
    const char *digits = f->text + (f->text[0] == '-');

    if (f->kind == UMD_FIGURE_BOOL)
        return json_object_new_boolean(f->int_value != 0);
    if (f->kind == UMD_FIGURE_DOUBLE)
        return json_object_new_double_s(f->double_value, f->text);
    bool exact = strlen(digits) <= 15 && !(digits[0] == '0' && digits[1]);
    if ((f->kind == UMD_FIGURE_INT || f->kind == UMD_FIGURE_UINT) && f->text[1] != 'x' && exact)
        return json_object_new_int64(f->int_value);
    return json_text(f->text);
}

static struct json_object *figures(const char *message)
{
    struct json_object *all = NULL;
    umdFigure f;

    while (log_figure_next(&message, &f)) {
        if (!all)
            all = json_object_new_object();
        if (!json_object_object_get_ex(all, f.key, NULL))
            json_object_object_add(all, f.key, figure_value(&f));
    }
    return all;
}

static struct json_object *attributes(const struct log_rec *rec, const char *path)
{
    struct json_object *a = json_object_new_object(), *f = figures(rec->message);
    char id[48];

    json_add_number(a, "thread.id", rec->tid);
    json_add_big(a, "petrel.mono_ns", rec->mono_ns);
    json_add_number(a, "petrel.call_depth", rec->depth);
    if (*rec->func)
        json_add_text(a, "code.function.name", rec->func);
    if (rec->line) {
        json_add_text(a, "code.file.path", rec->file);
        json_add_number(a, "code.line.number", rec->line);
    }
    if (rec->context_id)
        json_add_big(a, "petrel.context_id", rec->context_id);
    if (rec->code)
        json_add_number(a, "petrel.code", rec->code);
    if (*rec->code_name)
        json_add_text(a, "petrel.code_name", rec->code_name);
    if (rec->id.seq) {
        log_id_format(rec->id, id);
        json_add_text(a, "petrel.record", id);
    }
    if (*rec->trace_id && !is_trace_id(rec->trace_id))
        json_add_text(a, "petrel.trace_id", rec->trace_id);
    for (uint32_t i = 0; i < rec->extra_count; i++)
        json_add_text(a, rec->extra[i].key, rec->extra[i].value);
    if (path)
        json_add_text(a, "log.file.path", path);
    if (f)
        json_object_object_add(a, "petrel.figures", f);
    return a;
}

struct json_object *print_json_object(const struct log_rec *rec, const char *path)
{
    struct json_object *o = json_object_new_object(), *resource = json_object_new_object(), *scope = json_object_new_object();

    json_add_big(o, "Timestamp", rec->real_ns);
    json_add_big(o, "ObservedTimestamp", rec->observed_ns);
    if (is_trace_id(rec->trace_id))
        json_add_text(o, "TraceId", rec->trace_id);
    if (*rec->span_id)
        json_add_text(o, "SpanId", rec->span_id);
    if (rec->flags >= 0)
        json_add_number(o, "TraceFlags", rec->flags);
    json_add_number(o, "SeverityNumber", print_severity(rec->level));
    json_add_text(o, "SeverityText", rec->level_text);
    json_add_text(o, "Body", rec->message);
    json_add_text(resource, "service.name", "petrel");
    json_add_number(resource, "process.pid", rec->pid);
    json_object_object_add(o, "Resource", resource);
    json_add_text(scope, "Name", rec->module);
    json_object_object_add(o, "InstrumentationScope", scope);
    json_object_object_add(o, "Attributes", attributes(rec, path));
    return o;
}

void print_json(const struct log_rec *rec, const char *path)
{
    struct json_object *o = print_json_object(rec, path);

    puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(o);
}
