/* SPDX-License-Identifier: MIT */
/* log_sink_text.c - the text file, and the run log: what happened, in terms of codes and calls, for those who use the driver. */
#include <stdio.h>

#include "log_sinks.h"
#include "log_trace.h"

/*
 * "2026-11-29T17:54:00." by arithmetic: gmtime_r takes a lock of the C library's, which stays taken in a forked child if another thread of the
 * parent was at it. Years begin in March here, so that a leap day is the last of its year; 400 years have 146097 days.
 */
static void out_second(struct umd_out *o, uint64_t second)
{
    const uint64_t days = second / 86400 + 719468, rest = second % 86400; /* since March 1st of the year 0 */
    const uint64_t day = days % 146097;
    const uint64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    const uint64_t of_year = day - (365 * year + year / 4 - year / 100);
    const uint64_t month = (5 * of_year + 2) / 153; /* 0: March */

    umd_out_u64_wide(o, days / 146097 * 400 + year + (month >= 10), 4);
    umd_out_char(o, '-');
    umd_out_u64_wide(o, month < 10 ? month + 3 : month - 9, 2);
    umd_out_char(o, '-');
    umd_out_u64_wide(o, of_year - (153 * month + 2) / 5 + 1, 2);
    umd_out_char(o, 'T');
    umd_out_u64_wide(o, rest / 3600, 2);
    umd_out_char(o, ':');
    umd_out_u64_wide(o, rest / 60 % 60, 2);
    umd_out_char(o, ':');
    umd_out_u64_wide(o, rest % 60, 2);
    umd_out_char(o, '.');
}

/* "2026-11-29T17:54:00.669505909Z"; the day and time of a second are worked out once. */
void umd_out_time(struct umd_out *o, uint64_t real_ns)
{
    static __thread char text[32];
    static __thread uint64_t known = UINT64_MAX;
    static __thread size_t len;
    uint64_t second = real_ns / 1000000000u;

    if (second != known) {
        struct umd_out o_second = { .buf = text, .size = sizeof(text) };
        out_second(&o_second, second);
        len = o_second.len;
        known = second;
    }
    umd_out_mem(o, text, len);
    umd_out_u64_wide(o, real_ns % 1000000000u, 9);
    umd_out_char(o, 'Z');
}

void umd_out_record_id(struct umd_out *o, umdRecordId id)
{
    umd_out_hex(o, id.boot, 8);
    umd_out_char(o, ':');
    umd_out_u64(o, id.pid);
    umd_out_char(o, ':');
    umd_out_u64(o, id.seq);
}

static void out_level(struct umd_out *o, umdLogLevel level)
{
    const char *name = umd_log_level_name(level);
    size_t n = strlen(name);

    umd_out_mem(o, name, n);
    umd_out_mem(o, "     ", n < 5 ? 5 - n : 0);
}

static void out_where(struct umd_out *o, const struct umd_log_line *line)
{
    if (!line->line)
        return;
    UMD_OUT_LIT(o, " [");
    umd_out_str(o, line->func);
    umd_out_char(o, ' ');
    umd_out_str(o, line->file);
    umd_out_char(o, ':');
    umd_out_u64(o, line->line);
    umd_out_char(o, ']');
}

/* time mono level pid.tid module ctx= depth= rec= trace= span=: message [func file:line] */
size_t umd_log_format_text(struct umd_log_sink *s, struct umd_log_line *line, char *buf, size_t size)
{
    struct umd_out o = { .buf = buf, .size = size };
    struct umd_log_trace trace = umd_log_trace_of(line);

    (void)s;
    umd_out_time(&o, line->real_ns);
    umd_out_char(&o, ' ');
    umd_out_u64(&o, line->mono_ns / 1000000000u);
    umd_out_char(&o, '.');
    umd_out_u64_wide(&o, line->mono_ns % 1000000000u, 9);
    umd_out_char(&o, ' ');
    out_level(&o, line->level);
    umd_out_char(&o, ' ');
    umd_out_u64(&o, line->pid);
    umd_out_char(&o, '.');
    umd_out_u64(&o, line->tid);
    umd_out_char(&o, ' ');
    umd_out_str(&o, line->module);
    if (line->context_id) {
        UMD_OUT_LIT(&o, " ctx=");
        umd_out_u64(&o, line->context_id);
    }
    UMD_OUT_LIT(&o, " depth=");
    umd_out_u64(&o, line->depth);
    if (line->record.seq) {
        UMD_OUT_LIT(&o, " rec=");
        umd_out_record_id(&o, line->record);
    }
    if (trace.trace_id) {
        UMD_OUT_LIT(&o, " trace=");
        umd_out_mem(&o, trace.trace_id, strnlen(trace.trace_id, 128));
    }
    if (trace.span_id) {
        UMD_OUT_LIT(&o, " span=");
        umd_out_str(&o, trace.span_id);
    }
    UMD_OUT_LIT(&o, ": ");
    umd_out_str(&o, umd_log_line_message(line));
    out_where(&o, line);
    umd_out_char(&o, '\n');
    return o.len;
}

static const char *begin_words(enum umd_log_sink_id id)
{
    switch (id) {
    case UMD_SINK_RUN: return "# petrel run log";
    case UMD_SINK_DISASTER: return "# petrel disaster log";
    default: return "# petrel log";
    }
}

int umd_log_begin_text(struct umd_log_sink *s)
{
    enum umd_log_sink_id id = umd_log_sink_id_of(s);
    char head[512];
    struct umd_out o = { .buf = head, .size = sizeof(head) };

    umd_out_str(&o, begin_words(id));
    UMD_OUT_LIT(&o, ", version " PETREL_VERSION ", pid ");
    umd_out_u64(&o, umd_sys()->pid());
    UMD_OUT_LIT(&o, ", opened ");
    umd_out_time(&o, umd_sys()->real_ns());
    umd_out_char(&o, '\n');
    if (id == UMD_SINK_TEXT)
        UMD_OUT_LIT(&o, "# time mono level pid.tid module [ctx=] depth= [rec=] [trace=] [span=]: message [function file:line]\n");
    return umd_log_sink_write(s, head, o.len, NULL);
}

/* ---- Run log ---- */

/* Addresses of this process mean nothing to its users, and differ from run to run. Device addresses are their own. */
static void out_without_addresses(struct umd_out *o, const char *s)
{
    while (*s) {
        size_t n = strspn(s + (s[0] == '0' && s[1] == 'x' ? 2 : 0), "0123456789abcdef");
        if (s[0] == '0' && s[1] == 'x' && n == 12 && (s[2] == '5' || s[2] == '7')) {
            UMD_OUT_LIT(o, "(address)");
            s += 2 + n;
        } else {
            umd_out_char(o, *s++);
        }
    }
}

/* A failure: what, where in the user's terms, and what to do next. */
static void out_failure(struct umd_out *o, struct umd_log_line *line)
{
    umdErrorDetail d;
    char advice[160];
    bool known = umd_record_store_get(line->record, &d);

    out_without_addresses(o, umd_log_line_message(line));
    UMD_OUT_LIT(o, " | where:");
    if (known && d.api[0]) {
        UMD_OUT_LIT(o, " call ");
        umd_out_str(o, d.api);
    } else {
        UMD_OUT_LIT(o, " no call of yours, seen by the driver");
    }
    if (line->context_id) {
        UMD_OUT_LIT(o, ", context ");
        umd_out_u64(o, line->context_id);
    }
    UMD_OUT_LIT(o, " | next: ");
    umd_out_str(o, umdStatusTodo((umdStatus)line->code));
    const umdAdvice a = known ? d.advice : umdStatusAdvice((umdStatus)line->code);
    umd_advice_format(&a, advice, sizeof(advice));
    UMD_OUT_LIT(o, " (");
    umd_out_str(o, advice);
    UMD_OUT_LIT(o, ") | record ");
    umd_out_record_id(o, line->record);
}

size_t umd_log_format_run(struct umd_log_sink *s, struct umd_log_line *line, char *buf, size_t size)
{
    struct umd_out o = { .buf = buf, .size = size };

    (void)s;
    umd_out_time(&o, line->real_ns);
    umd_out_char(&o, ' ');
    out_level(&o, line->level);
    umd_out_char(&o, ' ');
    if (line->code && line->record.seq) {
        out_failure(&o, line);
    } else {
        umd_out_str(&o, line->module);
        UMD_OUT_LIT(&o, ": ");
        out_without_addresses(&o, umd_log_line_message(line));
        if (line->record.seq) {
            UMD_OUT_LIT(&o, " | record ");
            umd_out_record_id(&o, line->record);
        }
    }
    umd_out_char(&o, '\n');
    return o.len;
}
