/* SPDX-License-Identifier: MIT */
/* record_format.c - an error record as at most a screen of text: what, where, why, figures, path, what to do next. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "diag_internal.h"

#define WIDTH 116u
#define CAUSES_MAX 6u

struct page {
    char *buf;
    size_t size, len; /* len counts on where buf is full: the length it needs */
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

/* A labelled paragraph, broken at blanks. */
static void paragraph(struct page *p, const char *label, const char *text)
{
    const size_t room = WIDTH - 11;

    while (*text) {
        size_t n = strlen(text);
        if (n > room) {
            for (n = room; n > room / 2 && text[n] != ' ';)
                n--;
            if (text[n] != ' ')
                n = room;
        }
        add(p, "  %-8s %.*s\n", label, (int)n, text);
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

static void add_where(struct page *p, const umdErrorDetail *d)
{
    char at[128], text[400];
    int n = 0;

    if (d->api[0])
        n += snprintf(text, sizeof(text), "call %s, ", d->api);
    if (d->context_id)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "context %" PRIu64 ", ", d->context_id);
    snprintf(text + n, sizeof(text) - (size_t)n, "thread %u, seen in module %s by %s", d->tid, d->module, place(d, at, sizeof(at)));
    paragraph(p, "where", text);
}

/* The chain of causes; the last one is the first cause. Returns its code, 0 if there is none that can be read. */
static umdStatus add_why(struct page *p, const umdErrorDetail *d)
{
    umdStatus first = UMD_SUCCESS;
    umdErrorDetail c;
    umdRecordId id = d->cause;
    char at[128], text[UMD_RECORD_TEXT + UMD_RECORD_FIGURES + 400];

    for (uint32_t i = 0; id.seq && i < CAUSES_MAX; i++) {
        if (!umd_record_store_get(id, &c)) {
            snprintf(text, sizeof(text), "record %08x:%u:%" PRIu64 ", which this process does not hold (any more)", id.boot, id.pid, id.seq);
            paragraph(p, i ? "" : "why", text);
            return first;
        }
        snprintf(text, sizeof(text), "%s %s: %s %s [%s]", c.cause.seq ? "caused by" : "first cause", umdStatusName((umdStatus)c.origin_code),
                 c.text, c.figures, place(&c, at, sizeof(at)));
        paragraph(p, i ? "" : "why", text);
        first = (umdStatus)c.origin_code;
        id = c.cause;
    }
    return first;
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
        paragraph(p, "path", text);
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
    paragraph(p, "affects", text);
}

static void add_next(struct page *p, const umdErrorDetail *d, umdStatus first)
{
    static const char *const action[] = {
        [UMD_ACTION_NONE] = "nothing", [UMD_ACTION_RETRY] = "retry", [UMD_ACTION_FREE_RETRY] = "free memory, then retry",
        [UMD_ACTION_CHANGE_ARGUMENT] = "change an argument", [UMD_ACTION_SKIP] = "skip the work",
        [UMD_ACTION_REBUILD_CONTEXT] = "rebuild the context", [UMD_ACTION_RESET_DEVICE] = "reset the device",
        [UMD_ACTION_ABORT] = "stop",
    };
    char text[UMD_RECORD_TEXT + 200];
    int n = snprintf(text, sizeof(text), "%s", umdStatusTodo((umdStatus)d->code));

    if ((uint32_t)d->advice.action <= UMD_ACTION_ABORT)
        n += snprintf(text + n, sizeof(text) - (size_t)n, " (action: %s", action[d->advice.action]);
    if (d->advice.count)
        n += snprintf(text + n, sizeof(text) - (size_t)n, ", %u times, %u ms apart", d->advice.count, d->advice.delay_ms);
    if (d->advice.largest_fit_B)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "; largest size that fits: %" PRIu64 " bytes", d->advice.largest_fit_B);
    if ((uint32_t)d->advice.action <= UMD_ACTION_ABORT)
        snprintf(text + n, sizeof(text) - (size_t)n, ")");
    paragraph(p, "next", text);
    if (first) { /* the cause is what has to be mended */
        snprintf(text, sizeof(text), "For %s: %s", umdStatusName(first), umdStatusTodo(first));
        paragraph(p, "", text);
    }
}

size_t umdErrorDetailFormat(const umdErrorDetail *detail, char *buf, size_t size)
{
    struct page p = { .buf = buf, .size = size };
    char text[200];

    if (size)
        buf[0] = '\0';
    if (!detail)
        return 0;
    add(&p, "%s (%d)\n", umdStatusName((umdStatus)detail->code), (int)detail->code);
    paragraph(&p, "what", umdStatusString((umdStatus)detail->code));
    if (detail->origin_code != detail->code) {
        snprintf(text, sizeof(text), "%s: %s", umdStatusName((umdStatus)detail->origin_code), umdStatusString((umdStatus)detail->origin_code));
        paragraph(&p, "at first", text);
    }
    add_where(&p, detail);
    umdStatus first = add_why(&p, detail);
    paragraph(&p, "figures", detail->figures);
    add_path(&p, detail);
    add_scope(&p, detail);
    if (detail->end == UMD_RECORD_ABSORBED)
        paragraph(&p, "absorbed", detail->absorbed);
    add_next(&p, detail, first);
    int n = snprintf(text, sizeof(text), "%08x:%u:%" PRIu64 " at %" PRIu64 ".%09" PRIu64 " s", detail->id.boot, detail->id.pid, detail->id.seq,
                     detail->mono_ns / 1000000000u, detail->mono_ns % 1000000000u);
    if (detail->repeat)
        snprintf(text + n, sizeof(text) - (size_t)n, ", and %u times more", detail->repeat);
    paragraph(&p, "record", text);
    return p.len;
}
