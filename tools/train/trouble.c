/* SPDX-License-Identifier: MIT */
/* trouble.c - keeps the first failure of a run with its records, and tells it to a person. */
#include "trouble.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define WIDTH 150 /* a line of the report is cut here */

void trouble_init(struct trouble *t)
{
    memset(t, 0, sizeof(*t));
    pthread_mutex_init(&t->lock, NULL);
}

void trouble_fini(struct trouble *t)
{
    pthread_mutex_destroy(&t->lock);
}

bool trouble_note(struct trouble *t, umdStatus st, const char *doing_fmt, ...)
{
    umdErrorDetail d = { .size_B = sizeof(d) };
    bool have = umdGetLastErrorDetail(&d) == UMD_SUCCESS;
    va_list ap;

    pthread_mutex_lock(&t->lock);
    if (t->code == UMD_SUCCESS) {
        t->code = st;
        t->detail = have ? d : (umdErrorDetail){ .code = st, .origin_code = st, .advice = umdStatusAdvice(st) };
        va_start(ap, doing_fmt);
        vsnprintf(t->doing, sizeof(t->doing), doing_fmt, ap);
        va_end(ap);
    }
    pthread_mutex_unlock(&t->lock);
    return true;
}

void trouble_own(struct trouble *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (!t->own[0])
        vsnprintf(t->own, sizeof(t->own), fmt, ap);
    va_end(ap);
}

static void notice_locked(struct trouble *t, umdStatus code, const char *text)
{
    for (uint32_t i = 0; i < t->notice_count; i++) {
        if (t->notices[i].code == code) {
            t->notices[i].count++;
            return;
        }
    }
    if (t->notice_count < TROUBLE_NOTICES) {
        struct trouble_notice *n = &t->notices[t->notice_count++];
        n->code = code;
        n->count = 1;
        snprintf(n->text, sizeof(n->text), "%s", text);
    }
}

void trouble_notice(struct trouble *t, umdStatus code, const char *text)
{
    pthread_mutex_lock(&t->lock);
    notice_locked(t, code, text);
    pthread_mutex_unlock(&t->lock);
}

void trouble_callback(umdContext context, const umdErrorDetail *detail, void *user)
{
    struct trouble *t = user;

    (void)context;
    pthread_mutex_lock(&t->lock);
    if (detail->advice.severity <= UMD_SEVERITY_WARN) {
        notice_locked(t, detail->code, detail->text[0] ? detail->text : umdStatusString(detail->code));
    } else if (!t->have_async) {
        t->have_async = true;
        t->async = *detail;
    }
    pthread_mutex_unlock(&t->lock);
}

/* ---- Figures ---- */

bool figure_get(const char *figures, const char *key, char *out, size_t out_B)
{
    size_t key_len = strlen(key);
    const char *p = figures;

    while (*p) {
        while (*p == ' ')
            p++;
        bool match = strncmp(p, key, key_len) == 0 && p[key_len] == '=';
        while (*p && *p != ' ' && *p != '=')
            p++;
        if (*p != '=')
            continue;
        p++;
        bool quoted = *p == '"';
        if (quoted)
            p++;
        const char *start = p;
        while (*p && *p != (quoted ? '"' : ' '))
            p++;
        if (match) {
            snprintf(out, out_B, "%.*s", (int)(p - start), start);
            return true;
        }
        if (quoted && *p == '"')
            p++;
    }
    return false;
}

/* ---- The screen ---- */

struct screen {
    FILE *to;
    uint32_t lines;
};

/* One line, cut to the width; nothing once the screen is full. */
static __attribute__((format(printf, 3, 4))) void line(struct screen *s, const char *label, const char *fmt, ...)
{
    char text[WIDTH + 1];
    va_list ap;

    if (s->lines >= TROUBLE_LINES)
        return;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (n > WIDTH)
        memcpy(text + WIDTH - 3, "...", 3);
    for (char *c = text; *c; c++) {
        if (*c == '\n')
            *c = ' ';
    }
    fprintf(s->to, "  %-6s %s\n", label, text);
    s->lines++;
}

/* A long text over several lines, broken at blanks. */
static void wrapped(struct screen *s, const char *label, const char *text, uint32_t max_lines)
{
    size_t left = strlen(text);
    while (left > 0 && max_lines-- > 0) {
        size_t n = left;
        if (n > WIDTH) {
            for (n = WIDTH; n > WIDTH / 2 && text[n] != ' '; n--)
                ;
        }
        line(s, label, "%.*s", (int)n, text);
        label = "";
        text += n;
        left -= n;
        while (left > 0 && *text == ' ') {
            text++;
            left--;
        }
    }
}

/* The records of one failure: as returned, as it came by callback, and their causes. */
struct story {
    umdErrorDetail all[2 + TROUBLE_CAUSES];
    uint32_t count;
};

static void story_add(struct story *s, const umdErrorDetail *d)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->all[i].id.seq == d->id.seq && s->all[i].id.pid == d->id.pid && s->all[i].id.boot == d->id.boot)
            return;
    }
    if (s->count < sizeof(s->all) / sizeof(s->all[0]))
        s->all[s->count++] = *d;
}

static void story_collect(struct story *s, const struct trouble *t)
{
    s->count = 0;
    story_add(s, &t->detail);
    for (uint32_t depth = 0; depth < TROUBLE_CAUSES; depth++) {
        umdErrorDetail cause = { .size_B = sizeof(cause) };
        umdRecordId id = s->all[s->count - 1].cause;
        uint32_t before = s->count;
        if (id.seq == 0 || umdGetErrorDetailById(id, &cause) != UMD_SUCCESS)
            break;
        story_add(s, &cause);
        if (s->count == before)
            break;
    }
    if (t->have_async)
        story_add(s, &t->async);
}

/* First record of the story that has one of the keys (alternatives joined by '|'). */
static bool story_figure(const struct story *s, const char *keys, char *out, size_t out_B)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const char *k = keys;
        while (*k) {
            char key[32];
            size_t n = strcspn(k, "|");
            snprintf(key, sizeof(key), "%.*s", (int)n, k);
            if (figure_get(s->all[i].figures, key, out, out_B) && out[0])
                return true;
            k += n + (k[n] == '|');
        }
    }
    return false;
}

static void print_where(struct screen *s, const struct story *story, const struct trouble *t)
{
    static const struct { const char *label, *keys; } parts[] = {
        { "stream", "stream|stream_id" }, { "submission", "submission|cmdbuf|cmdbuf_id" }, { "job", "job|job_id" },
        { "workgroup", "workgroup|wg" }, { "lane", "lane" }, { "pc", "pc" }, { "address", "va|address" },
    };
    char kernel[64], source[96], rest[256] = "", value[64];
    const char *label = "where";

    for (uint32_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        size_t at = strlen(rest);
        if (story_figure(story, parts[i].keys, value, sizeof(value)) && strcmp(value, "0x0") != 0)
            snprintf(rest + at, sizeof(rest) - at, "%s%s %s", at ? ", " : "", parts[i].label, value);
    }
    if (story_figure(story, "kernel", kernel, sizeof(kernel))) {
        if (!story_figure(story, "source|source_line", source, sizeof(source)))
            snprintf(source, sizeof(source), "source line unknown");
        line(s, label, "kernel %s at %s", kernel, source);
        label = "";
    }
    if (rest[0]) {
        line(s, label, "%s", rest);
        label = "";
    }
    line(s, label, "while %s", t->doing);
}

static const char *done_about_it(const struct trouble *t, bool started)
{
    umdStatusRange range = umdStatusRangeOf(t->code);

    if (t->detail.advice.scope == UMD_SCOPE_DEVICE && range == UMD_RANGE_HW)
        return "the device was given up: each later call on it fails at once with this code, nothing is retried, all memory was freed";
    if (range == UMD_RANGE_INIT)
        return "nothing was started; what had been brought up was powered down again";
    if (range == UMD_RANGE_HW || range == UMD_RANGE_EXEC)
        return "the kernel driver took the job off the device and banned its queue; unfinished work was cancelled, all memory was freed";
    return started ? "training stopped; all memory was freed" : "nothing was trained; all that had been allocated was freed";
}

static void print_next(struct screen *s, const struct trouble *t)
{
    char text[512];
    const umdAdvice *a = &t->detail.advice;
    int n = snprintf(text, sizeof(text), "%s", umdStatusTodo(t->code));

    if (a->largest_fit_B && n > 0 && (size_t)n < sizeof(text))
        n += snprintf(text + n, sizeof(text) - (size_t)n, " The largest size that would fit: %" PRIu64 " bytes.", a->largest_fit_B);
    if (a->count && n > 0 && (size_t)n < sizeof(text))
        snprintf(text + n, sizeof(text) - (size_t)n, " A retry makes sense: %u time(s), after %u ms.", a->count, a->delay_ms);
    wrapped(s, "next", text, 3);
}

void trouble_print(struct trouble *t, FILE *to, const char *head, uint64_t resets)
{
    static struct story story; /* large; one report a process */
    struct screen s = { .to = to };
    char acts[128];
    bool started = strstr(head, "step") != NULL;

    pthread_mutex_lock(&t->lock);
    story_collect(&story, t);
    fprintf(to, "umd-train: %s: %s\n", head, umdStatusName(t->code));
    const umdErrorDetail *d = &t->detail;
    wrapped(&s, "what", d->text[0] ? d->text : umdStatusString(t->code), 3);
    print_where(&s, &story, t);
    wrapped(&s, "why", d->figures[0] ? d->figures : "no figures were recorded", 3);
    for (uint32_t i = 1; i < story.count; i++) {
        const umdErrorDetail *c = &story.all[i];
        line(&s, "", "because of %s in %s (%s:%u)", umdStatusName(c->origin_code), c->func, c->file, c->line);
        wrapped(&s, "", c->figures, 2);
    }
    line(&s, "", "raised by %s in %s (%s:%u), reached the run through %u hop(s)", d->module, d->func, d->file, d->line, d->hop_count);
    wrapped(&s, "done", done_about_it(t, started), 2);
    if (story_figure(&story, "done", acts, sizeof(acts)))
        line(&s, "", "the driver: %s", acts);
    if (t->retries)
        line(&s, "", "%u call(s) had been tried again as their advice says", t->retries);
    if (resets)
        line(&s, "", "resets of the device so far: %" PRIu64, resets);
    print_next(&s, t);
    line(&s, "record", "%08x:%u:%" PRIu64 " in the log of the driver (--log FILE)", d->id.boot, d->id.pid, d->id.seq);
    pthread_mutex_unlock(&t->lock);
}

void trouble_print_line(const struct trouble *t, FILE *to)
{
    fprintf(to, "umd-train: %s: %s %s %s\n", umdStatusName(t->code), umdStatusString(t->code), t->detail.figures, umdStatusTodo(t->code));
}

void trouble_print_notices(struct trouble *t, FILE *to)
{
    pthread_mutex_lock(&t->lock);
    for (uint32_t i = 0; i < t->notice_count; i++) {
        fprintf(to, "went on after %u x %s: %s\n", t->notices[i].count, umdStatusName(t->notices[i].code), t->notices[i].text);
    }
    pthread_mutex_unlock(&t->lock);
}
