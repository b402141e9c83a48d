/* SPDX-License-Identifier: MIT */
/* record_format.c - an error record as at most a screen of text: what, where, why, figures, path, what to do next. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "diag_internal.h"
#include "struct_size.h"

#define WIDTH 116u
#define CAUSES_MAX 6u
#define NO_LIMIT 1000u

struct page {
    char *buf;
    size_t size, len; /* len counts on where buf is full: the length it needs */
    bool full;        /* the engineer's form */
};

static __attribute__((format(printf, 2, 3))) void add(struct page *p, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(p->len < p->size ? p->buf + p->len : NULL, p->len < p->size ? p->size - p->len : 0, fmt, ap);
    va_end(ap);
    if (n > 0)
        p->len += (size_t)n;
}

/* A labelled paragraph, broken at blanks; cut, with dots, where it needs more lines. The engineer's form has room. */
static void paragraph(struct page *p, const char *label, const char *text, uint32_t max_lines)
{
    const size_t room = WIDTH - 11;

    for (uint32_t line = 1; *text; line++) {
        size_t n = strlen(text);
        bool last = line == max_lines && !p->full && n > room;
        if (n > room) {
            for (n = last ? room - 4 : room; n > room / 2 && text[n] != ' ';)
                n--;
            if (text[n] != ' ')
                n = last ? room - 4 : room;
        }
        add(p, "  %-8s %.*s%s\n", label, (int)n, text, last ? " ..." : "");
        if (last)
            return;
        text += n;
        text += strspn(text, " ");
        label = "";
    }
}

static const char *place(const umdErrorDetail *d, char *buf, size_t size)
{
    if (d->line)
        snprintf(buf, size, "%s (%s:%u)", d->func, d->file, d->line);
    else
        snprintf(buf, size, "%s", d->func);
    return buf;
}

static size_t format_id(char *buf, size_t size, umdRecordId id)
{
    int n = snprintf(buf, size, "%08x:%u:%" PRIu64, id.boot, id.pid, id.seq);
    return n > 0 ? (size_t)n : 0;
}

const char *umd_misuse_todo(const char *figures)
{
    static const struct { const char *misuse, *todo; } rows[] = {
        { "use_after_free", "Used after free: free memory when the last launch that uses it has ended, and launch nothing with its address afterwards. " },
        { "overrun", "An index ran over the end of an allocation: test it against the number of elements; sizes are in bytes. " },
        { "underrun", "An index went below the start of an allocation: look for a subtraction that wraps around. " },
        { "other_context", "Another context has memory at this address: a pointer is good in the context that allocated it. " },
    };
    umdFigure f;

    while (umdFigureNext(&figures, &f))
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
            if (!strcmp(f.key, "misuse") && !strcmp(f.text, rows[i].misuse))
                return rows[i].todo;
    return "";
}

/* ---- What both forms have ---- */

static void add_where(struct page *p, const umdErrorDetail *d, const umdErrorScene *scene)
{
    char at[128], text[600];
    int n = 0;

    if (d->api[0])
        n += snprintf(text, sizeof(text), "call %s", d->api);
    if (d->api[0] && scene && scene->call_at != UMD_SCENE_NO_CALL && !strcmp(scene->calls[scene->call_at].name, d->api))
        n += snprintf(text + n, sizeof(text) - (size_t)n, "(%s)", scene->calls[scene->call_at].args);
    const bool met = d->api[0] && scene && scene->calls_tid && scene->calls_tid != d->tid; /* the call is of a thread that did not raise it */
    if (met)
        n += snprintf(text + n, sizeof(text) - (size_t)n, " of thread %u", scene->calls_tid);
    if (d->api[0])
        n += snprintf(text + n, sizeof(text) - (size_t)n, ", ");
    if (d->context_id)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "context %" PRIu64 ", ", d->context_id);
    snprintf(text + n, sizeof(text) - (size_t)n, met ? "seen by thread %u in module %s by %s" : "thread %u, seen in module %s by %s", d->tid, d->module,
             place(d, at, sizeof(at)));
    paragraph(p, "where", text, 4);
}

/* The chain of causes; the last one is the first cause, told in full. Returns its code, 0 if there is none that can be read. */
static umdStatus add_why(struct page *p, const umdErrorDetail *d, const char **misuse_out)
{
    umdStatus first = UMD_SUCCESS;
    umdErrorDetail c;
    umdRecordId id = d->cause;
    char at[128], text[UMD_RECORD_TEXT + UMD_RECORD_FIGURES + 400];
    const char *label = "why";

    for (uint32_t i = 0; id.seq && i < CAUSES_MAX; i++, label = "") {
        c.size_B = sizeof(c);
        if (!umd_record_store_get(id, &c)) { /* pushed out by younger ones; what all began with may be there still */
            if (umdGetFirstCause(id, &c) != UMD_SUCCESS) {
                format_id(at, sizeof(at), id);
                snprintf(text, sizeof(text), "record %s, which this process does not hold (any more)", at);
                paragraph(p, label, text, 2);
                return first;
            }
        }
        if (c.cause.seq && !p->full)
            snprintf(text, sizeof(text), "caused by %s [%s]", umdStatusName((umdStatus)c.origin_code), place(&c, at, sizeof(at)));
        else
            snprintf(text, sizeof(text), "%s %s: %s %s [%s]", c.cause.seq ? "caused by" : "first cause", umdStatusName((umdStatus)c.origin_code),
                     c.text, c.figures, place(&c, at, sizeof(at)));
        paragraph(p, label, text, c.cause.seq ? 1 : 7);
        first = (umdStatus)c.origin_code;
        *misuse_out = umd_misuse_todo(c.figures);
        id = c.cause;
    }
    return first;
}

/* Large sizes and times once more in units for people. */
static void add_figures(struct page *p, const umdErrorDetail *d)
{
    static const struct { umdFigureUnit unit; uint64_t from, is; const char *name; } units[] = {
        { UMD_UNIT_BYTES, 1ull << 30, 1ull << 30, "GiB" }, { UMD_UNIT_BYTES, 1u << 20, 1u << 20, "MiB" },
        { UMD_UNIT_BYTES, 10240, 1024, "KiB" }, { UMD_UNIT_NS, 1000000000, 1000000000, "s" }, { UMD_UNIT_NS, 1000000, 1000000, "ms" },
    };
    char text[UMD_RECORD_FIGURES * 3];
    const char *cursor = d->figures, *from = cursor;
    size_t n = 0;
    umdFigure f;

    while (umdFigureNext(&cursor, &f)) {
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%.*s", (int)(cursor - from), from);
        from = cursor;
        for (size_t i = 0; f.kind == UMD_FIGURE_UINT && f.uint_value != UINT64_MAX && i < sizeof(units) / sizeof(units[0]); i++) {
            if (f.unit != units[i].unit || f.uint_value < units[i].from)
                continue;
            n += (size_t)snprintf(text + n, sizeof(text) - n, " (%.4g %s)", (double)f.uint_value / (double)units[i].is, units[i].name);
            break;
        }
    }
    snprintf(text + n, sizeof(text) - n, "%s", from);
    paragraph(p, "figures", text, 8);
}

static void add_path(struct page *p, const umdErrorDetail *d)
{
    uint32_t count = d->hop_count <= UMD_RECORD_HOPS ? d->hop_count : UMD_RECORD_HOPS;
    char text[UMD_RECORD_HOPS * 160];
    size_t n = 0;

    for (uint32_t i = 0; i < count && n < sizeof(text); i++) {
        const umdHop *h = &d->hops[i];
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s %s", i ? " > " : "", h->layer, h->func);
        if (h->code_in != h->code_out && n < sizeof(text))
            n += (size_t)snprintf(text + n, sizeof(text) - n, " (%s becomes %s)", umdStatusName((umdStatus)h->code_in),
                                  umdStatusName((umdStatus)h->code_out));
    }
    if (count)
        paragraph(p, "path", text, 4);
}

/* The last errors of the same context, in a line. */
/* Of another thread, or by the clock of another process, it may be the younger one. */
static void add_age(char *text, size_t size, const umdErrorDetail *d, const umdErrorNote *e, int digits)
{
    bool before = d->mono_ns >= e->mono_ns;

    snprintf(text, size, "%.*g ms %s", digits, (double)(before ? d->mono_ns - e->mono_ns : e->mono_ns - d->mono_ns) / 1e6, before ? "before" : "after");
}

static void add_before(struct page *p, const umdErrorDetail *d, const umdErrorScene *scene)
{
    char text[400], age[40];
    size_t n = 0;

    for (uint32_t i = 0; scene && i < scene->error_count && i < 3; i++) {
        const umdErrorNote *e = &scene->errors[i];
        add_age(age, sizeof(age), d, e, 3);
        if (!umd_id_equal(e->id, d->cause))
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s %s", n ? ", " : "", umdStatusName((umdStatus)e->code), age);
    }
    if (n)
        paragraph(p, "earlier", text, 3);
}

static void add_scope(struct page *p, const umdErrorDetail *d)
{
    static const char *const scope[] = {
        [UMD_SCOPE_CALL] = "this call only", [UMD_SCOPE_STREAM] = "the stream", [UMD_SCOPE_CONTEXT] = "the context",
        [UMD_SCOPE_DEVICE] = "the device, with all contexts on it", [UMD_SCOPE_NODE] = "the node",
    };
    char text[160];

    if ((uint32_t)d->advice.scope > UMD_SCOPE_NODE)
        return;
    snprintf(text, sizeof(text), "%s%s", scope[d->advice.scope], d->advice.sticky ? "; unusable until it is rebuilt" : "");
    paragraph(p, "affects", text, 1);
}

static void add_next(struct page *p, const umdErrorDetail *d, umdStatus first, const char *first_misuse)
{
    char text[UMD_RECORD_TEXT + 400], todo[160];

    umd_advice_format(&d->advice, todo, sizeof(todo));
    snprintf(text, sizeof(text), "%s%s (%s)", umd_misuse_todo(d->figures), umdStatusTodo((umdStatus)d->code), todo);
    paragraph(p, "next", text, 4);
    if (first) { /* the cause is what has to be mended */
        snprintf(text, sizeof(text), "For %s: %s%s", umdStatusName(first), first_misuse, umdStatusTodo(first));
        paragraph(p, "", text, 3);
    }
}

/* ---- What engineers get beside ---- */

static void add_hops(struct page *p, const umdErrorDetail *d)
{
    for (uint32_t i = 0; i < d->hop_count && i < UMD_RECORD_HOPS; i++) {
        const umdHop *h = &d->hops[i];
        char at[112];
        snprintf(at, sizeof(at), "%s:%u", h->file, h->line);
        add(p, "  %-8s %-8s %-34s %-24s %s -> %s\n", i ? "" : "hops", h->layer, h->func, at, umdStatusName((umdStatus)h->code_in),
            umdStatusName((umdStatus)h->code_out));
    }
}

static void add_calls(struct page *p, const umdErrorDetail *d, const umdErrorScene *scene)
{
    char text[400];

    for (uint32_t i = 0; i < scene->call_count; i++) {
        const umdSceneCall *c = &scene->calls[i];
        int n = snprintf(text, sizeof(text), "%s(%s) -> %s", c->name, c->args, c->end_ns ? umdStatusName((umdStatus)c->code) : "under way");
        if (c->end_ns && d->mono_ns >= c->start_ns)
            snprintf(text + n, sizeof(text) - (size_t)n, ", took %.4g us, began %.4g ms before", (double)(c->end_ns - c->start_ns) / 1e3,
                     (double)(d->mono_ns - c->start_ns) / 1e6);
        paragraph(p, i ? "" : "calls", text, NO_LIMIT);
    }
}

static void add_errors(struct page *p, const umdErrorDetail *d, const umdErrorScene *scene)
{
    char id[64], age[40];

    for (uint32_t i = 0; i < scene->error_count; i++) {
        const umdErrorNote *e = &scene->errors[i];
        format_id(id, sizeof(id), e->id);
        add_age(age, sizeof(age), d, e, 4);
        add(p, "  %-8s %s %s, %s\n", i ? "" : "errors", id, umdStatusName((umdStatus)e->code), age);
    }
}

static void add_stack(struct page *p, const umdErrorScene *scene)
{
    char text[256];

    if (scene->frame_count)
        add(p, "  %-8s digest %016" PRIx64 "\n", "stack", scene->digest);
    for (uint32_t i = 0; i < scene->frame_count; i++) {
        umd_scene_frame_format(scene->frames[i], text, sizeof(text));
        add(p, "  %-8s #%-2u %s\n", "", i, text);
    }
}

static void add_state(struct page *p, const umdErrorDetail *d, const umdErrorScene *scene)
{
    static const char *const ends[] = { "open", "delivered", "absorbed", "swallowed" };
    char text[256], id[64];
    int n = snprintf(text, sizeof(text), "%s; severity %d; real %" PRIu64 ".%09" PRIu64 " s; call depth %u", d->end <= UMD_RECORD_SWALLOWED ? ends[d->end] : "?",
                     (int)d->advice.severity, d->real_ns / 1000000000u, d->real_ns % 1000000000u, d->call_depth);

    if (d->cause.seq) {
        format_id(id, sizeof(id), d->cause);
        n += snprintf(text + n, sizeof(text) - (size_t)n, "; cause %s", id);
    }
    if (scene && scene->calls_tid && scene->calls_tid != scene->tid)
        snprintf(text + n, sizeof(text) - (size_t)n, "; the calls are of thread %u, which met it", scene->calls_tid);
    paragraph(p, "state", text, NO_LIMIT);
}

static size_t format(const umdErrorDetail *detail, char *buf, size_t size, bool full)
{
    umdErrorDetail older;
    struct page p = { .buf = buf, .size = size, .full = full };
    umdErrorScene scene = { .size_B = sizeof(scene) };
    char text[UMD_RECORD_TEXT + 100];

    if (size)
        buf[0] = '\0';
    if (!detail)
        return 0;
    detail = umd_struct_view(&older, sizeof(older), detail, UMD_ERROR_DETAIL_SIZE_V1);
    const umdErrorScene *sc = umdGetErrorScene(detail->id, &scene) == UMD_SUCCESS ? &scene : NULL;
    add(&p, "%s (%d)\n", umdStatusName((umdStatus)detail->code), (int)detail->code);
    const bool changed = detail->origin_code != detail->code; /* the record's own words are of what it was raised with */
    paragraph(&p, "what", changed || !detail->text[0] ? umdStatusString((umdStatus)detail->code) : detail->text, 4);
    if (changed) {
        snprintf(text, sizeof(text), "%s: %s", umdStatusName((umdStatus)detail->origin_code),
                 detail->text[0] ? detail->text : umdStatusString((umdStatus)detail->origin_code));
        paragraph(&p, "at first", text, 4);
    }
    add_where(&p, detail, sc);
    const char *first_misuse = "";
    umdStatus first = add_why(&p, detail, &first_misuse);
    add_figures(&p, detail);
    if (full)
        add_hops(&p, detail);
    else
        add_path(&p, detail);
    if (sc && full) {
        add_errors(&p, detail, sc);
        add_calls(&p, detail, sc);
        add_stack(&p, sc);
    } else {
        add_before(&p, detail, sc);
    }
    add_scope(&p, detail);
    if (detail->end == UMD_RECORD_ABSORBED)
        paragraph(&p, "absorbed", detail->absorbed, 2);
    add_next(&p, detail, first, first_misuse);
    if (full)
        add_state(&p, detail, sc);
    size_t n = format_id(text, sizeof(text), detail->id);
    n += (size_t)snprintf(text + n, sizeof(text) - n, " at %" PRIu64 ".%09" PRIu64 " s", detail->mono_ns / 1000000000u, detail->mono_ns % 1000000000u);
    if (detail->repeat)
        snprintf(text + n, sizeof(text) - n, ", and %u times more", detail->repeat);
    paragraph(&p, "record", text, 1);
    return p.len;
}

size_t umdErrorDetailFormat(const umdErrorDetail *detail, char *buf, size_t size) { return format(detail, buf, size, false); }
size_t umdErrorDetailFormatFull(const umdErrorDetail *detail, char *buf, size_t size) { return format(detail, buf, size, true); }
