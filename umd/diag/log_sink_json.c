/* SPDX-License-Identifier: MIT */
/* log_sink_json.c - one JSON object per line, with the names of OpenTelemetry's log data model. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "log_internal.h"

struct json {
    char *buf;
    size_t size, len; /* len counts on where buf is full */
};

static __attribute__((format(printf, 2, 3))) void add(struct json *j, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(j->len < j->size ? j->buf + j->len : NULL, j->len < j->size ? j->size - j->len : 0, fmt, ap);
    va_end(ap);
    if (n > 0)
        j->len += (size_t)n;
}

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

static void add_string(struct json *j, const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;

    add(j, "\"");
    while (n) {
        size_t k = utf8_length(s, n);
        if (k == 0)
            add(j, "\\ufffd");
        else if (*s == '"' || *s == '\\')
            add(j, "\\%c", *s);
        else if (*s < ' ' || *s == 0x7f)
            add(j, "\\u%04x", *s);
        else
            add(j, "%.*s", (int)k, (const char *)s);
        s += k ? k : 1;
        n -= k ? k : 1;
    }
    add(j, "\"");
}

static void add_text(struct json *j, const char *key, const char *text)
{
    add(j, ",\"%s\":", key);
    add_string(j, text, strlen(text));
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
static void add_figures(struct json *j, const char *message)
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
        add(j, "%s\"%s\":", count++ ? "," : ",\"petrel.figures\":{", f.key);
        if (is_number(&f) || f.kind == UMD_FIGURE_BOOL)
            add(j, "%s", f.text);
        else
            add_string(j, f.text, strlen(f.text));
    }
    if (count)
        add(j, "}");
}

static bool is_trace_id(const char *s) { return strlen(s) == 32 && strspn(s, "0123456789abcdef") == 32; }

static int severity_number(umdLogLevel level)
{
    static const int number[] = { 0, 17, 13, 9, 5, 1 };
    return number[level];
}

size_t umd_log_format_json(const struct umd_log_line *line, char *buf, size_t size)
{
    struct json j = { .buf = buf, .size = size };

    add(&j, "{\"Timestamp\":\"%" PRIu64 "\",\"ObservedTimestamp\":\"%" PRIu64 "\"", line->real_ns, line->observed_ns);
    if (line->trace_id && is_trace_id(line->trace_id))
        add_text(&j, "TraceId", line->trace_id);
    add(&j, ",\"SeverityNumber\":%d,\"SeverityText\":\"%s\"", severity_number(line->level), umd_log_level_name(line->level));
    add_text(&j, "Body", line->message);
    add(&j, ",\"Resource\":{\"service.name\":\"petrel\",\"service.version\":\"" PETREL_VERSION "\",\"process.pid\":%u}", line->pid);
    add(&j, ",\"InstrumentationScope\":{\"Name\":");
    add_string(&j, line->module, strlen(line->module));
    add(&j, "},\"Attributes\":{\"thread.id\":%u,\"petrel.mono_ns\":\"%" PRIu64 "\",\"petrel.call_depth\":%u", line->tid, line->mono_ns, line->depth);
    if (line->func && line->func[0])
        add_text(&j, "code.function", line->func);
    if (line->line) {
        add_text(&j, "code.filepath", line->file);
        add(&j, ",\"code.lineno\":%u", line->line);
    }
    if (line->context_id)
        add(&j, ",\"petrel.context_id\":\"%" PRIu64 "\"", line->context_id);
    if (line->code) {
        add(&j, ",\"petrel.code\":%d", (int)line->code);
        add_text(&j, "petrel.code_name", umdStatusName((umdStatus)line->code));
    }
    if (line->record.seq)
        add(&j, ",\"petrel.record\":\"%08x:%u:%" PRIu64 "\"", line->record.boot, line->record.pid, line->record.seq);
    if (line->trace_id && !is_trace_id(line->trace_id))
        add_text(&j, "petrel.trace_id", line->trace_id);
    add_figures(&j, line->message);
    add(&j, "}}\n");
    return j.len;
}
