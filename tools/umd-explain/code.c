/* SPDX-License-Identifier: MIT */
/* code.c - prints all that is known of a code, for a person or as JSON. */
#include <stdio.h>
#include <string.h>

#include "explain.h"
#include "kb_table.inc"

#define WIDTH 116u

void explain_paragraph(const char *label, const char *text) { text_paragraph("  ", 10, label, text, WIDTH); }

static const char *affects(umdScope scope)
{
    static const char *const text[] = {
        [UMD_SCOPE_CALL] = "this call only", [UMD_SCOPE_STREAM] = "the stream", [UMD_SCOPE_CONTEXT] = "the context",
        [UMD_SCOPE_DEVICE] = "the device, with all contexts on it", [UMD_SCOPE_NODE] = "the node",
    };
    return (unsigned)scope <= UMD_SCOPE_NODE ? text[scope] : "?";
}

static const char *does(umdAction action)
{
    static const char *const text[] = {
        [UMD_ACTION_NONE] = "nothing has to be done", [UMD_ACTION_RETRY] = "retry", [UMD_ACTION_FREE_RETRY] = "free something, then retry",
        [UMD_ACTION_CHANGE_ARGUMENT] = "change an argument", [UMD_ACTION_SKIP] = "do without it",
        [UMD_ACTION_REBUILD_CONTEXT] = "rebuild the context", [UMD_ACTION_RESET_DEVICE] = "reset the device", [UMD_ACTION_ABORT] = "stop",
    };
    return (unsigned)action <= UMD_ACTION_ABORT ? text[action] : "?";
}

/* "3 times, 100 ms apart" */
static void times(char *buf, size_t size, uint32_t count, uint32_t delay_ms)
{
    int n = count == 1 ? snprintf(buf, size, "once") : snprintf(buf, size, "%u times", count);

    if (!delay_ms)
        snprintf(buf + n, size - (size_t)n, ", at once");
    else
        snprintf(buf + n, size - (size_t)n, count == 1 ? ", after %u ms" : ", %u ms apart", delay_ms);
}

static void put_retry(const struct umd_status_info *s)
{
    char text[160] = "no", much[64];

    if (s->count) {
        times(much, sizeof(much), s->count, s->delay_ms);
        snprintf(text, sizeof(text), "%s%s", s->action == UMD_ACTION_FREE_RETRY ? "after freeing something: " : "", much);
    } else if (s->action == UMD_ACTION_RETRY) {
        snprintf(text, sizeof(text), "as long as the caller likes%s", s->delay_ms ? "" : ", nothing has failed");
        if (s->delay_ms)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), ", %u ms apart", s->delay_ms);
    }
    explain_paragraph("retry", text);
    if (s->driver_count) {
        times(much, sizeof(much), s->driver_count, s->driver_delay_ms);
        snprintf(text, sizeof(text), "the driver itself retries before anybody gets the code: %s", much);
        explain_paragraph("", text);
    }
}

static void put_elsewhere(const struct umd_status_info *s)
{
    const char *errno_text = strerrordesc_np(s->err);
    char text[200];

    snprintf(text, sizeof(text), s->err ? "%s (%d, %s)" : "%s", s->errno_name, s->err, errno_text ? errno_text : "?");
    explain_paragraph("errno", text);
    explain_paragraph("Vulkan", s->vkresult);
    explain_paragraph("CUDA", s->cuda[0] ? s->cuda : "no counterpart");
    explain_paragraph("HIP", s->hip[0] ? s->hip : "no counterpart");
    explain_paragraph("Level Zero", s->ze[0] ? s->ze : "no counterpart");
}

static void put_since(const struct umd_status_info *s)
{
    char text[120];

    if (s->provisional)
        snprintf(text, sizeof(text), "reserved in %s: this version returns it from nowhere (provisional)", s->since);
    else if (s->retired[0])
        snprintf(text, sizeof(text), "%s, retired in %s: not returned any more", s->since, s->retired);
    else
        snprintf(text, sizeof(text), "%s", s->since);
    explain_paragraph("since", text);
}

static void put_pages(const char *name)
{
    const char *label = "read";
    char text[300];

    for (size_t i = 0; *kb_rows[i][0]; i++) {
        if (strcmp(kb_rows[i][0], name) != 0)
            continue;
        snprintf(text, sizeof(text), "%s: %s", kb_rows[i][1], kb_rows[i][2]);
        explain_paragraph(label, text);
        label = "";
    }
}

/* The calls that return it; where most do, those that do not. */
static void put_callers(umdStatus code)
{
    uint32_t yes = 0, all = 0;
    char text[1600];

    while (umd_api_function_at(all))
        yes += umd_api_may_return(umd_api_function_at(all++), code);
    if (code == UMD_SUCCESS || !yes) {
        explain_paragraph("from", code ? "records, callbacks and the kernel driver's own interface; no call returns it" : "all calls");
        return;
    }
    const bool most = yes > all / 2;
    size_t n = most ? (size_t)snprintf(text, sizeof(text), "all calls%s", yes < all ? " but " : "") : 0;
    const char *comma = "";
    for (uint32_t i = 0; i < all && n < sizeof(text); i++) {
        if (umd_api_may_return(umd_api_function_at(i), code) == most)
            continue;
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", comma, umd_api_function_at(i));
        comma = ", ";
    }
    explain_paragraph("from", text);
}

static void put_code(const struct umd_status_info *s)
{
    const struct umd_status_range_info *r = umd_status_range_info(s->code);
    char text[400];

    printf("%s (%d, 0x%08x)\n", s->name, (int)s->code, (unsigned)s->code);
    explain_paragraph("what", s->when);
    snprintf(text, sizeof(text), "%s, %d to %d: %s", r->name, r->first, r->last, r->text);
    explain_paragraph("range", text);
    if (s->code < 0) {
        snprintf(text, sizeof(text), "%s: %s", s->class_name, umd_status_class_text(s->class_name));
        explain_paragraph("class", text);
    }
    explain_paragraph("severity", umd_severity_word(s->severity));
    snprintf(text, sizeof(text), "%s%s", affects(s->scope), s->sticky ? "; unusable until it is rebuilt (sticky)" : "");
    explain_paragraph("affects", text);
    snprintf(text, sizeof(text), "%s (action: %s)", s->todo, does(s->action));
    explain_paragraph("next", text);
    put_retry(s);
    put_elsewhere(s);
    if (!s->provisional && !s->retired[0])
        put_callers(s->code);
    put_since(s);
    put_pages(s->name);
}

/* ---- JSON ---- */

static void add_words(struct json_object *o, const char *key, const char *words)
{
    struct json_object *a = json_object_new_array();

    for (const char *p = words; *p;) {
        size_t n = strcspn(p, " ");
        json_object_array_add(a, json_object_new_string_len(p, (int)n));
        p += n + (p[n] == ' ');
    }
    json_object_object_add(o, key, a);
}

static void add_range(struct json_object *o, const struct umd_status_range_info *r)
{
    struct json_object *range = json_object_new_object();

    json_add_text(range, "name", r->name);
    json_add_number(range, "first", r->first);
    json_add_number(range, "last", r->last);
    json_add_text(range, "text", r->text);
    json_object_object_add(o, "range", range);
}

struct json_object *explain_code_json(const struct umd_status_info *s)
{
    struct json_object *o = json_object_new_object(), *pages = json_object_new_array(), *calls = json_object_new_array();

    json_add_text(o, "name", s->name);
    json_add_number(o, "value", s->code);
    json_add_number(o, "unsigned", (uint32_t)s->code);
    json_add_text(o, "when", s->when);
    add_range(o, umd_status_range_info(s->code));
    json_add_text(o, "class", s->class_name);
    json_add_text(o, "severity", umd_severity_word(s->severity));
    json_add_text(o, "scope", umd_scope_word(s->scope));
    json_add_bool(o, "sticky", s->sticky);
    json_add_text(o, "action", umd_action_word(s->action));
    json_add_number(o, "retry_count", s->count);
    json_add_number(o, "retry_delay_ms", s->delay_ms);
    json_add_number(o, "driver_retry_count", s->driver_count);
    json_add_number(o, "driver_retry_delay_ms", s->driver_delay_ms);
    json_add_text(o, "todo", s->todo);
    json_add_text(o, "errno", s->errno_name);
    json_add_number(o, "errno_value", s->err);
    json_add_text(o, "vkresult", s->vkresult);
    add_words(o, "cuda", s->cuda);
    add_words(o, "hip", s->hip);
    add_words(o, "ze", s->ze);
    json_add_text(o, "since", s->since);
    json_add_bool(o, "provisional", s->provisional);
    json_object_object_add(o, "retired", s->retired[0] ? json_object_new_string(s->retired) : NULL);
    for (size_t i = 0; *kb_rows[i][0]; i++)
        if (strcmp(kb_rows[i][0], s->name) == 0)
            json_object_array_add(pages, json_object_new_string(kb_rows[i][1]));
    json_object_object_add(o, "pages", pages);
    json_object_object_add(o, "calls", calls);
    for (uint32_t i = 0; umd_api_function_at(i); i++)
        if (s->code == UMD_SUCCESS || umd_api_may_return(umd_api_function_at(i), s->code))
            json_object_array_add(calls, json_object_new_string(umd_api_function_at(i)));
    return o;
}

void explain_code(const struct explain_word *w, bool json)
{
    if (json) {
        json_put_away(explain_code_json(w->info));
        return;
    }
    put_code(w->info);
    if (w->note)
        explain_paragraph("note", w->note);
}

static void put_hints(const struct explain_hint *hint, uint32_t count)
{
    const char *label = "perhaps";
    char text[200];

    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(hint[i].of, "low byte") == 0)
            snprintf(text, sizeof(text), "%s (%d), of which an exit status or a char has left the low byte", hint[i].name, hint[i].value);
        else
            snprintf(text, sizeof(text), "%s (%d), of %s: umd-explain %s tells what that is here", hint[i].name, hint[i].value, hint[i].of, hint[i].name);
        explain_paragraph(label, text);
        label = "";
    }
}

static void put_value_json(const struct explain_word *w, const struct umd_status_range_info *r, umdAction action, const struct explain_hint *hint, uint32_t count)
{
    struct json_object *o = json_object_new_object(), *hints = json_object_new_array();

    json_object_object_add(o, "name", NULL);
    json_add_number(o, "value", w->value);
    json_add_number(o, "unsigned", (uint32_t)w->value);
    json_add_bool(o, "failed", w->value < 0);
    if (r)
        add_range(o, r);
    else
        json_object_object_add(o, "range", NULL);
    json_add_text(o, "action", umd_action_word(action));
    for (uint32_t i = 0; i < count; i++) {
        struct json_object *h = json_object_new_object();
        json_add_text(h, "of", hint[i].of);
        json_add_text(h, "name", hint[i].name);
        json_add_number(h, "value", hint[i].value);
        json_object_array_add(hints, h);
    }
    json_object_object_add(o, "perhaps", hints);
    json_put_away(o);
}

/* A code newer than this version, or none at all: sign and range still tell what a program makes of it, and whose matter it is. */
bool explain_value(const struct explain_word *w, bool json)
{
    const struct umd_status_range_info *r = umd_status_range_info((umdStatus)w->value);
    const umdAction action = umdStatusAdvice((umdStatus)w->value).action;
    struct explain_hint hint[EXPLAIN_HINTS];
    const uint32_t count = explain_elsewhere(w->value, hint, EXPLAIN_HINTS);
    char text[300];

    if (!r && !count)
        return false;
    if (json) {
        put_value_json(w, r, action, hint, count);
        return true;
    }
    printf("%d (0x%08x) is no code%s\n", w->value, (unsigned)w->value, r ? " of this version" : ", and lies in no range of codes");
    if (r) {
        snprintf(text, sizeof(text), "%s, %d to %d: %s", r->name, r->first, r->last, r->text);
        explain_paragraph("range", text);
    }
    if (w->value > 0)
        snprintf(text, sizeof(text), "A positive value is never a failure: it may be a status of a newer library, and the call succeeded. A program goes on.");
    else if (r)
        snprintf(text, sizeof(text), "It may be of a newer library: look it up in its docs/status-codes.md. A program treats it as: %s.", does(action));
    else
        snprintf(text, sizeof(text), "It is not of this library. A program that gets it as one treats it as: %s.", does(action));
    explain_paragraph("next", text);
    put_hints(hint, count);
    if (w->note)
        explain_paragraph("note", w->note);
    return true;
}

static void list_one(struct json_object *all, const struct umd_status_info *s)
{
    if (all)
        json_object_array_add(all, explain_code_json(s));
    else
        printf("%6d  %-34s %s%s\n", (int)s->code, s->name, s->provisional ? "(provisional) " : "", s->when);
}

/* Success and statuses, then down the failures, as in the table. */
void explain_list(bool json)
{
    struct json_object *all = json ? json_object_new_array() : NULL;
    uint32_t failures = 0;

    while (umd_status_at(failures) && umd_status_at(failures)->code < 0)
        failures++;
    for (uint32_t i = failures; i < umd_status_count(); i++)
        list_one(all, umd_status_at(i));
    for (uint32_t i = failures; i-- > 0;)
        list_one(all, umd_status_at(i));
    if (json)
        json_put_away(all);
}
