/* SPDX-License-Identifier: MIT */
/* log_sink_json.c - one JSON object per line, with the names of OpenTelemetry's log data model. */
#include <stdlib.h>
#include <string.h>

#include "log_sinks.h"
#include "log_trace.h"

/* Length of the valid UTF-8 sequence at s (1 to 4), 0 if it is none. Surrogates and overlong forms are none. */
static size_t utf8_length(const unsigned char *s, size_t left)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;

    if (n == 0 || n > left)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

/* What goes out as it is: printable ASCII but for quotes and backslashes. */
static bool is_plain(unsigned char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; }

void umd_out_json(struct umd_out *o, const char *text, size_t n)
{
    umd_out_char(o, '"');
    while (n) {
        size_t k = 0;
        while (k < n && is_plain((unsigned char)text[k]))
            k++;
        umd_out_mem(o, text, k);
        text += k;
        n -= k;
        if (!n)
            break;
        unsigned char c = (unsigned char)*text;
        k = utf8_length((const unsigned char *)text, n);
        if (k == 0) {
            UMD_OUT_LIT(o, "\\ufffd");
        } else if (c == '"' || c == '\\') {
            umd_out_char(o, '\\');
            umd_out_char(o, (char)c);
        } else if (k == 1) {
            UMD_OUT_LIT(o, "\\u00");
            umd_out_hex(o, c, 2);
        } else {
            umd_out_mem(o, text, k);
        }
        text += k ? k : 1;
        n -= k ? k : 1;
    }
    umd_out_char(o, '"');
}

static void add_text(struct umd_out *o, const char *key, const char *text)
{
    UMD_OUT_LIT(o, ",\"");
    umd_out_str(o, key);
    UMD_OUT_LIT(o, "\":");
    umd_out_json(o, text, strlen(text));
}

static void add_number(struct umd_out *o, const char *key, int64_t v)
{
    UMD_OUT_LIT(o, ",\"");
    umd_out_str(o, key);
    UMD_OUT_LIT(o, "\":");
    umd_out_i64(o, v);
}

/* 64-bit numbers are strings, as in OTLP. */
static void add_u64(struct umd_out *o, const char *key, uint64_t v)
{
    UMD_OUT_LIT(o, ",\"");
    umd_out_str(o, key);
    UMD_OUT_LIT(o, "\":\"");
    umd_out_u64(o, v);
    umd_out_char(o, '"');
}

/* Decimal numbers that a double holds exactly go out as numbers, all else as strings. */
static bool is_number(const umdFigure *f)
{
    if (f->kind == UMD_FIGURE_DOUBLE)
        return true;
    if ((f->kind != UMD_FIGURE_INT && f->kind != UMD_FIGURE_UINT) || f->text[1] == 'x')
        return false;
    const char *digits = f->text + (f->text[0] == '-');
    return strlen(digits) <= 15 && !(digits[0] == '0' && digits[1]);
}

#define FIGURES_MAX 32u

/* The figures at any place of the message; of a key that stands twice the first counts, since JSON keys are unique. */
static void add_figures(struct umd_out *o, const char *message)
{
    char seen[FIGURES_MAX][sizeof(((umdFigure *)0)->key)];
    uint32_t count = 0;
    umdFigure f;

    while (count < FIGURES_MAX && umdFigureNext(&message, &f)) {
        bool again = false;
        for (uint32_t i = 0; i < count; i++)
            again = again || strcmp(seen[i], f.key) == 0;
        if (again)
            continue;
        memcpy(seen[count], f.key, sizeof(f.key));
        if (count++)
            UMD_OUT_LIT(o, ",\"");
        else
            UMD_OUT_LIT(o, ",\"petrel.figures\":{\"");
        umd_out_str(o, f.key);
        UMD_OUT_LIT(o, "\":");
        if (is_number(&f) || f.kind == UMD_FIGURE_BOOL)
            umd_out_str(o, f.text);
        else
            umd_out_json(o, f.text, strlen(f.text));
    }
    if (count)
        umd_out_char(o, '}');
}

static bool is_trace_id(const char *s) { return strlen(s) == 32 && strspn(s, "0123456789abcdef") == 32; }

static void add_severity(struct umd_out *o, umdLogLevel level)
{
    static const uint8_t number[] = { 0, 17, 13, 9, 5, 1 };

    UMD_OUT_LIT(o, ",\"SeverityNumber\":");
    umd_out_u64(o, number[level]);
    UMD_OUT_LIT(o, ",\"SeverityText\":\"");
    umd_out_str(o, umd_log_level_name(level));
    umd_out_char(o, '"');
}

static void add_trace(struct umd_out *o, const struct umd_log_trace *trace)
{
    if (!trace->trace_id || !is_trace_id(trace->trace_id))
        return;
    add_text(o, "TraceId", trace->trace_id);
    if (trace->span_id)
        add_text(o, "SpanId", trace->span_id);
    if (trace->flags && trace->flags[0]) {
        UMD_OUT_LIT(o, ",\"TraceFlags\":");
        umd_out_u64(o, strtoul(trace->flags, NULL, 16));
    }
}

static void add_attributes(struct umd_out *o, struct umd_log_line *line, const struct umd_log_trace *trace)
{
    UMD_OUT_LIT(o, ",\"Attributes\":{\"thread.id\":");
    umd_out_u64(o, line->tid);
    add_u64(o, "petrel.mono_ns", line->mono_ns);
    add_number(o, "petrel.call_depth", line->depth);
    if (line->func && line->func[0])
        add_text(o, "code.function.name", line->func);
    if (line->line) {
        add_text(o, "code.file.path", line->file);
        add_number(o, "code.line.number", line->line);
    }
    if (line->context_id)
        add_u64(o, "petrel.context_id", line->context_id);
    if (line->code) {
        add_number(o, "petrel.code", line->code);
        add_text(o, "petrel.code_name", umdStatusName((umdStatus)line->code));
    }
    if (line->record.seq) {
        UMD_OUT_LIT(o, ",\"petrel.record\":\"");
        umd_out_record_id(o, line->record);
        umd_out_char(o, '"');
    }
    if (trace->trace_id && !is_trace_id(trace->trace_id))
        add_text(o, "petrel.trace_id", trace->trace_id);
    add_figures(o, umd_log_line_message(line));
    umd_out_char(o, '}');
}

size_t umd_log_format_json(struct umd_log_sink *s, struct umd_log_line *line, char *buf, size_t size)
{
    struct umd_out o = { .buf = buf, .size = size };
    struct umd_log_trace trace = umd_log_trace_of(line);

    (void)s;
    UMD_OUT_LIT(&o, "{\"Timestamp\":\"");
    umd_out_u64(&o, line->real_ns);
    UMD_OUT_LIT(&o, "\",\"ObservedTimestamp\":\"");
    umd_out_u64(&o, line->observed_ns);
    umd_out_char(&o, '"');
    add_trace(&o, &trace);
    add_severity(&o, line->level);
    add_text(&o, "Body", umd_log_line_message(line));
    UMD_OUT_LIT(&o, ",\"Resource\":{\"service.name\":\"petrel\",\"service.version\":\"" PETREL_VERSION "\",\"process.pid\":");
    umd_out_u64(&o, line->pid);
    UMD_OUT_LIT(&o, "},\"InstrumentationScope\":{\"Name\":");
    umd_out_json(&o, line->module, strlen(line->module));
    umd_out_char(&o, '}');
    add_attributes(&o, line, &trace);
    UMD_OUT_LIT(&o, "}\n");
    return o.len;
}
