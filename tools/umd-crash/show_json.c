/* SPDX-License-Identifier: MIT */
/* show_json.c - a crash as JSON: the same facts as the story, numbers of 64 bits as strings. */
#include <inttypes.h>
#include <json-c/json.h>
#include <string.h>

#include <umd/umd_log.h>

#include "show.h"
#include "umd-text.h"

static void add_hex(struct json_object *o, const char *key, uint64_t v)
{
    char text[24];

    snprintf(text, sizeof(text), "0x%" PRIx64, v);
    json_add_text(o, key, text);
}

static void add_kv(struct json_object *o, const char *line, const char *key)
{
    char text[CRASH_TEXT_B];

    if (crash_text(line, key, text, sizeof(text)))
        json_add_text(o, key, text);
}

static void add_int(struct json_object *o, const char *line, const char *key)
{
    json_object_object_add(o, key, json_object_new_int64(crash_i64(line, key)));
}

static struct json_object *frames(const struct crash_symbols *s)
{
    struct json_object *all = json_object_new_array();

    for (size_t i = 0; i < s->frame_count; i++) {
        const struct crash_frame *f = &s->frames[i];
        struct json_object *o = json_object_new_object();
        add_hex(o, "pc", f->pc);
        if (f->module[0])
            json_add_text(o, "module", f->module);
        add_hex(o, "offset", f->offset);
        if (f->function[0])
            json_add_text(o, "function", f->function);
        if (f->file[0]) {
            json_add_text(o, "file", f->file);
            json_object_object_add(o, "line", json_object_new_int(f->line));
        }
        json_object_array_add(all, o);
    }
    return all;
}

static struct json_object *modules(const struct crash_symbols *s)
{
    static const char *const states[] = { "found", "other-build", "missing" };
    struct json_object *all = json_object_new_array();

    for (size_t i = 0; i < s->module_count; i++) {
        struct json_object *o = json_object_new_object();
        json_add_text(o, "path", s->modules[i].path);
        json_add_text(o, "build_id", s->modules[i].build_id);
        add_hex(o, "start", s->modules[i].start);
        json_add_text(o, "file", states[s->modules[i].state]);
        json_object_array_add(all, o);
    }
    return all;
}

static void add_message(struct json_object *o, const char *line, const char *key)
{
    char text[CRASH_TEXT_B] = "";

    crash_message(line, text, sizeof(text));
    json_add_text(o, key, text);
}

static struct json_object *calls(const struct crash *c)
{
    const struct crash_section *s = crash_section(c, "calls");
    struct json_object *all = json_object_new_array();

    for (size_t i = 0; i < s->count; i++) {
        const char *l = s->lines[i];
        struct json_object *o = json_object_new_object();
        add_int(o, l, "tid");
        add_kv(o, l, "name");
        add_message(o, l, "args");
        add_kv(o, l, "start_ns");
        add_kv(o, l, "end_ns");
        json_add_bool(o, "under_way", crash_u64(l, "end_ns") == 0);
        if (crash_u64(l, "end_ns"))
            json_add_text(o, "code", umdStatusName((umdStatus)crash_i64(l, "code")));
        json_object_array_add(all, o);
    }
    return all;
}

static struct json_object *records(const struct crash *c, const char *section)
{
    const struct crash_section *s = crash_section(c, section);
    struct json_object *all = json_object_new_array();

    for (size_t i = 0; i < s->count; i++) {
        const char *l = s->lines[i];
        struct json_object *o = json_object_new_object();
        add_kv(o, l, "mono_ns");
        add_int(o, l, "tid");
        add_int(o, l, "level");
        add_int(o, l, "code");
        add_kv(o, l, "context");
        add_kv(o, l, "module");
        add_kv(o, l, "func");
        add_kv(o, l, "file");
        add_int(o, l, "line");
        add_message(o, l, "message");
        if (strcmp(section, "log") == 0)
            json_add_bool(o, "taken", crash_u64(l, "taken") != 0);
        json_object_array_add(all, o);
    }
    return all;
}

static struct json_object *lines(const struct crash *c, const char *section)
{
    const struct crash_section *s = crash_section(c, section);
    struct json_object *all = json_object_new_array();

    for (size_t i = 0; i < s->count; i++)
        json_object_array_add(all, json_text(s->lines[i]));
    return all;
}

bool crash_show_json(FILE *to, const char *path, const struct crash *c, const struct crash_symbols *s)
{
    static const char *const numbers[] = { "pid", "tid", "signal", "code", "depth", "stepped" };
    static const char *const texts[] = { "name", "address", "program", "thread", "version", "real_ns", "mono_ns", "context", "arch" };
    struct json_object *o = json_object_new_object();

    if (!o)
        return false;
    json_add_text(o, "snapshot", path);
    json_add_bool(o, "whole", c->whole);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        add_int(o, crash_line(c, "crash"), numbers[i]);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        add_kv(o, crash_line(c, "crash"), texts[i]);
    json_add_text(o, "backtrace_by", s->by_frame_information ? "frame-information" : "frame-pointers");
    json_object_object_add(o, "backtrace", frames(s));
    json_object_object_add(o, "calls", calls(c));
    json_object_object_add(o, "emergency", records(c, "emergency"));
    json_object_object_add(o, "log", records(c, "log"));
    json_object_object_add(o, "state", lines(c, "state"));
    json_object_object_add(o, "registers", lines(c, "registers"));
    json_object_object_add(o, "modules", modules(s));
    fprintf(to, "%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(o);
    return true;
}
