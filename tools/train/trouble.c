/* SPDX-License-Identifier: MIT */
/* trouble.c - keeps the first failure of a run with its records, and tells it to a person. */
#include "trouble.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "umd-text.h"

#define RESET_BEGUN "engine-reset-begun,work-requeued" /* done= of what was nobody's fault; whether the reset succeeds shows later */
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

/* No job was accepted: nothing ran, nothing has to be taken back. */
static bool was_refused(umdStatus st)
{
    return st == UMD_ERR_SUBMIT_FAILED || st == UMD_ERR_SUBMIT_RING_FULL;
}

bool trouble_retry(struct trouble *t, umdStatus st)
{
    umdErrorDetail d = { .size_B = sizeof(d) };
    umdAdvice advice = umdGetLastErrorDetail(&d) == UMD_SUCCESS && d.code == st ? d.advice : umdStatusAdvice(st);
    umdStatusRange range = umdStatusRangeOf(st);

    /* A code of a job that failed earlier would be read by now, and work would be missing after a second try. */
    if (range != UMD_RANGE_RESOURCE && range != UMD_RANGE_INIT && !was_refused(st))
        return false;
    if ((advice.action != UMD_ACTION_RETRY && advice.action != UMD_ACTION_FREE_RETRY) || advice.count == 0)
        return false;
    struct timespec pause = { .tv_sec = advice.delay_ms / 1000, .tv_nsec = (long)(advice.delay_ms % 1000) * 1000000 };
    if (advice.delay_ms && !t->no_pause)
        nanosleep(&pause, NULL);
    t->retries++;
    return true;
}

void trouble_retried(struct trouble *t, umdStatus st, const char *doing_fmt, ...)
{
    char doing[128], text[sizeof(t->notices[0].text)];
    va_list ap;

    va_start(ap, doing_fmt);
    vsnprintf(doing, sizeof(doing), doing_fmt, ap);
    va_end(ap);
    snprintf(text, sizeof(text), "%s failed once and worked when tried again, as its advice says", doing);
    trouble_notice(t, st, text);
}

void trouble_callback(umdContext context, const umdErrorDetail *detail, void *user)
{
    struct trouble *t = user;

    char text[sizeof(t->notices[0].text)];
    umdFigure done;

    (void)context;
    pthread_mutex_lock(&t->lock);
    /* The code tells how bad it is in general, the record whether it was dealt with this time. */
    bool told = umdErrorDetailFigure(detail, "done", &done), again = told && strcmp(done.text, RESET_BEGUN) == 0;
    bool recovered = again || (told && strcmp(done.text, "recovered") == 0);
    if (recovered && detail->advice.severity > UMD_SEVERITY_WARN) {
        snprintf(text, sizeof(text), "%.180s The driver %s", detail->text[0] ? detail->text : umdStatusString(detail->code),
                 again ? "reset the engine and started the work again." : "recovered, and the work was started again.");
        notice_locked(t, detail->code, text);
        if (!t->have_recovered)
            t->recovered = *detail;
        t->have_recovered = true;
    } else if (recovered || detail->advice.severity <= UMD_SEVERITY_WARN) {
        notice_locked(t, detail->code, detail->text[0] ? detail->text : umdStatusString(detail->code));
    } else if (!t->have_async) {
        t->have_async = true;
        t->async = *detail;
    }
    pthread_mutex_unlock(&t->lock);
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
    text_clean(text);
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
    if (t->have_root)
        story_add(s, &t->root);
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
    if (t->have_recovered && t->code == UMD_ERR_DEV_LOST_TOO_MANY_RESETS)
        story_add(s, &t->recovered); /* what the resets began with */
}

/* First record of the story that has one of the keys (alternatives joined by '|'). */
static bool story_figure(const struct story *s, const char *keys, char *out, size_t out_B)
{
    umdFigure f;

    for (uint32_t i = 0; i < s->count; i++) {
        if (umdErrorDetailFigure(&s->all[i], keys, &f) && f.text[0]) {
            size_t n = strnlen(f.text, out_B - 1);
            memcpy(out, f.text, n);
            out[n] = '\0';
            return true;
        }
    }
    return false;
}

static struct trouble_record as_record(const umdErrorDetail *d)
{
    struct trouble_record r = { .code = d->code };

    if (d->id.seq)
        snprintf(r.id, sizeof(r.id), "%08x:%u:%" PRIu64, d->id.boot, d->id.pid, d->id.seq);
    if (d->func[0])
        snprintf(r.where, sizeof(r.where), "%s (%s:%u)", d->func, d->file, d->line);
    snprintf(r.figures, sizeof(r.figures), "%s", d->figures);
    return r;
}

void trouble_facts(struct trouble *t, struct trouble_facts *out)
{
    static struct story story; /* large; one report a process */
    umdFigure done;

    memset(out, 0, sizeof(*out));
    pthread_mutex_lock(&t->lock);
    story_collect(&story, t);
    const umdErrorDetail *d = t->have_root ? &t->root : &t->detail;
    out->root = as_record(d);
    for (uint32_t i = 1; i < story.count && out->cause_count < sizeof(out->causes) / sizeof(out->causes[0]); i++) {
        const umdErrorDetail *c = &story.all[i];
        if (!t->have_async || c->id.seq != t->async.id.seq)
            out->causes[out->cause_count++] = as_record(c);
    }
    out->other_callback = t->have_async && t->async.id.seq != d->id.seq;
    if (out->other_callback)
        out->callback = as_record(&t->async);
    (void)story_figure(&story, "kernel", out->kernel, sizeof(out->kernel));
    (void)story_figure(&story, "source|source_line", out->source, sizeof(out->source));
    (void)story_figure(&story, "stream|stream_id", out->stream, sizeof(out->stream));
    (void)story_figure(&story, "submission|cmdbuf|cmdbuf_id", out->submission, sizeof(out->submission));
    (void)story_figure(&story, "job|job_id", out->job, sizeof(out->job));
    if (umdErrorDetailFigure(d, "done", &done))
        snprintf(out->done, sizeof(out->done), "%.95s", done.text);
    pthread_mutex_unlock(&t->lock);
}

/* The job was a copy or fill: no kernel has to do with it. */
static bool story_is_copy(const struct story *s)
{
    char kind[32];
    return story_figure(s, "kind", kind, sizeof(kind)) && strcmp(kind, "launch") != 0;
}

/* The warp that is told of had not run: it has no pc yet, or nothing has been issued for the job. */
static bool before_first_instruction(const struct story *s)
{
    char pc[32], progress[32], issued[32];

    if (story_figure(s, "pc", pc, sizeof(pc)) && strcmp(pc, "0x0") == 0)
        return true;
    return story_figure(s, "progress", progress, sizeof(progress)) && strcmp(progress, "0") == 0 &&
           story_figure(s, "instr_since_progress", issued, sizeof(issued)) && strcmp(issued, "0") == 0;
}

static void print_where(struct screen *s, const struct story *story, const struct trouble *t)
{
    static const struct { const char *label, *keys; bool of_kernel; } parts[] = {
        { "stream", "stream|stream_id", false }, { "submission", "submission|cmdbuf|cmdbuf_id", false }, { "job", "job|job_id", false },
        { "workgroup", "workgroup|wg", true }, { "lane", "lane", true }, { "pc", "pc", true }, { "address", "va|address", false },
    };
    char kernel[64], source[96], rest[256] = "", value[64];
    const char *label = "where";
    bool is_copy = story_is_copy(story);

    for (uint32_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        size_t at = strlen(rest);
        if (is_copy && parts[i].of_kernel)
            continue;
        if (story_figure(story, parts[i].keys, value, sizeof(value)) && strcmp(value, "0x0") != 0)
            snprintf(rest + at, sizeof(rest) - at, "%s%s %s", at ? ", " : "", parts[i].label, value);
    }
    if (story_figure(story, "kernel", kernel, sizeof(kernel))) {
        if (story_figure(story, "source|source_line", source, sizeof(source)))
            line(s, label, "kernel %s at %s", kernel, source);
        else
            line(s, label, "kernel %s%s", kernel, before_first_instruction(story) ? ", before its first instruction" : "");
        label = "";
    }
    if (rest[0]) {
        line(s, label, "%s", rest);
        label = "";
    }
    line(s, label, "while %s", t->doing);
}

static bool is_wait(umdStatus st)
{
    return st <= UMD_ERR_WAIT_QUEUED && st >= UMD_ERR_WAIT_RECOVERED;
}

static const char *done_about_it(const struct trouble *t, bool started)
{
    umdStatusRange range = umdStatusRangeOf(trouble_root(t));

    if (umdStatusAdvice(trouble_root(t)).scope == UMD_SCOPE_DEVICE && range == UMD_RANGE_HW)
        return "the device was given up: each later call on it fails at once with this code, nothing is retried, all memory was freed";
    if (range == UMD_RANGE_INIT)
        return "nothing was started; what had been brought up was powered down again";
    if (was_refused(trouble_root(t)))
        return started ? "the kernel driver did not accept the job; training stopped, all memory was freed"
                       : "the kernel driver did not accept the job; nothing was trained, all that had been allocated was freed";
    if (is_wait(trouble_root(t)))
        return "the wait was given up, its work was cancelled; training stopped, all memory was freed";
    if (range == UMD_RANGE_HW || range == UMD_RANGE_EXEC)
        return "the kernel driver took the job off the device and banned its queue; unfinished work was cancelled, all memory was freed";
    if (range == UMD_RANGE_PARAM)
        return started ? "the call was refused and changed nothing; training stopped, all memory was freed"
                       : "the call was refused and changed nothing; nothing was trained, all that had been allocated was freed";
    return started ? "training stopped; all memory was freed" : "nothing was trained; all that had been allocated was freed";
}

/* Bytes up to the next ';' or full stop; a dot inside a name is none. */
static size_t clause_length(const char *text)
{
    size_t n = 0;
    while (text[n] && text[n] != ';' && !(text[n] == '.' && (text[n + 1] == ' ' || text[n + 1] == '\0')))
        n++;
    return n;
}

static bool has_word(const char *text, size_t n, const char *word)
{
    for (size_t len = strlen(word), i = 0; i + len <= n; i++) {
        if (strncmp(text + i, word, len) == 0)
            return true;
    }
    return false;
}

/*
 * The advice of a code is for all its cases. Parts of it that send the reader to a kernel or a line that this case does not have are
 * replaced by what there is.
 */
static int advice_text(const struct trouble *t, const struct story *story, char *out, size_t out_B)
{
    char kernel[64], source[96];
    bool is_copy = story_is_copy(story), has_kernel = story_figure(story, "kernel", kernel, sizeof(kernel));
    bool no_line = !story_figure(story, "source|source_line", source, sizeof(source)), dropped = false;
    bool gone = t->lost && t->lost != trouble_root(t);
    const char *todo = umdStatusTodo(trouble_root(t));
    size_t used = 0;

    out[0] = '\0';
    while (*todo && used + 1 < out_B) {
        size_t n = clause_length(todo);
        if (gone && (has_word(todo, n, "rebuild the context") || has_word(todo, n, "Rebuild the context"))) {
            ; /* there is no device to build it on */
        } else if ((is_copy && (has_word(todo, n, "kernel") || has_word(todo, n, "line"))) || (no_line && has_word(todo, n, " line"))) {
            dropped = true;
        } else {
            used += (size_t)snprintf(out + used, out_B - used, "%s%.*s", used ? "; " : "", (int)n, todo);
            used = used < out_B ? used : out_B - 1;
        }
        todo += n;
        todo += strspn(todo, ";. ");
    }
    if (!dropped && !gone)
        return snprintf(out, out_B, "%s", umdStatusTodo(trouble_root(t)));
    if (out[0] >= 'a' && out[0] <= 'z')
        out[0] = (char)(out[0] - 'a' + 'A');
    if (!dropped)
        return (int)(used + (size_t)snprintf(out + used, out_B - used, "%s", used ? "." : ""));
    used += (size_t)snprintf(out + used, out_B - used, "%s%s.", used ? ". " : "",
                             is_copy      ? "The job was a copy or fill: look at the figures above; when it repeats, suspect the device"
                             : has_kernel ? "The line is not known: look at the kernel and the pc above"
                                          : "Look at the figures above");
    return (int)used;
}

static void print_next(struct screen *s, const struct trouble *t, const struct story *story)
{
    char text[512];
    const umdAdvice *a = t->have_root ? &t->root.advice : &t->detail.advice;
    int n = advice_text(t, story, text, sizeof(text));

    if (t->lost && t->lost != trouble_root(t) && n >= 0 && (size_t)n < sizeof(text)) {
        snprintf(text + n, sizeof(text) - (size_t)n, "%sThe device is lost: %s", n ? " " : "", umdStatusTodo(t->lost));
        wrapped(s, "next", text, 3);
        return;
    }
    if (a->largest_fit_B && n > 0 && (size_t)n < sizeof(text))
        n += snprintf(text + n, sizeof(text) - (size_t)n, " The largest size that would fit: %" PRIu64 " bytes.", a->largest_fit_B);
    if (a->count > (t->retries ? 1u : 0u) && n > 0 && (size_t)n < sizeof(text))
        snprintf(text + n, sizeof(text) - (size_t)n, " A retry makes sense: %u time(s), after %u ms.", a->count, a->delay_ms);
    wrapped(s, "next", text, 3);
}

/* ---- Which failure it was ---- */

umdStatus trouble_root(const struct trouble *t)
{
    return t->have_root ? t->root.code : t->code;
}

bool trouble_is_device(const struct trouble *t)
{
    umdStatusRange range = umdStatusRangeOf(t->code);
    return t->code == UMD_ERR_CTX_BANNED || range == UMD_RANGE_HW || (range == UMD_RANGE_EXEC && !was_refused(t->code));
}

void trouble_headline(const struct trouble *t, uint32_t step, uint32_t steps, char *out, size_t out_B)
{
    umdStatusRange range = umdStatusRangeOf(t->code);
    char at[64] = "before the first step";

    if (step)
        snprintf(at, sizeof(at), "at step %u of %u", step, steps);
    if (was_refused(t->code))
        snprintf(out, out_B, "stopped %s: the kernel driver did not accept a job", at);
    else if (trouble_is_device(t))
        snprintf(out, out_B, "stopped by a device error %s", at);
    else if (range == UMD_RANGE_RESOURCE && umdStatusAdvice(t->code).action == UMD_ACTION_FREE_RETRY)
        snprintf(out, out_B, "stopped %s: out of a resource", at);
    else
        snprintf(out, out_B, "stopped %s: %s", at, range == UMD_RANGE_INTERNAL ? "a defect of the driver" : "a call failed");
}

/* What the call met when the failure was that of earlier work. */
static bool points_elsewhere(umdStatus st)
{
    return st == UMD_ERR_CTX_BANNED || st == UMD_ERR_EXEC_CANCELLED || st == UMD_ERR_EXEC_FAILED;
}

/* A ban or a cancelled job is what the call met; what it was for is the last of its causes, or else what came by callback. */
static void settle_root_locked(struct trouble *t)
{
    umdErrorDetail d = t->detail;

    for (uint32_t depth = 0; depth < TROUBLE_CAUSES && d.cause.seq != 0; depth++) {
        umdErrorDetail cause = { .size_B = sizeof(cause) };
        if (umdGetErrorDetailById(d.cause, &cause) != UMD_SUCCESS)
            break;
        d = cause;
    }
    if (d.code == UMD_SUCCESS || (points_elsewhere(d.code) && !points_elsewhere(d.origin_code)))
        d.code = d.origin_code;
    if (points_elsewhere(d.code) && t->have_async)
        d = t->async;
    t->have_root = !points_elsewhere(d.code) && d.code != UMD_SUCCESS;
    if (t->have_root)
        t->root = d;
}

void trouble_settle(struct trouble *t, bool went_well)
{
    pthread_mutex_lock(&t->lock);
    if (points_elsewhere(t->code))
        settle_root_locked(t);
    for (uint32_t i = 0; t->lost && i < t->notice_count; i++) {
        char *end = strstr(t->notices[i].text, " The driver re"); /* it has, for as long as it lasted */
        if (end)
            snprintf(end, sizeof(t->notices[i].text) - (size_t)(end - t->notices[i].text),
                     " The driver reset the engine and started the work again; in the end the device was lost.");
    }
    if (went_well && t->have_async)
        notice_locked(t, t->async.code, t->async.text[0] ? t->async.text : umdStatusString(t->async.code));
    pthread_mutex_unlock(&t->lock);
}

void trouble_print(struct trouble *t, FILE *to, const char *head, bool started, uint64_t resets)
{
    static struct story story; /* large; one report a process */
    struct screen s = { .to = to };
    umdFigure acts;
    char through[48] = "";

    pthread_mutex_lock(&t->lock);
    story_collect(&story, t);
    fprintf(to, "umd-train: %s: %s\n", head, umdStatusName(trouble_root(t)));
    const umdErrorDetail *d = t->have_root ? &t->root : &t->detail;
    wrapped(&s, "what", d->text[0] ? d->text : umdStatusString(d->code), 3);
    print_where(&s, &story, t);
    wrapped(&s, "why", d->figures[0] ? d->figures : "no figures were recorded", 4);
    for (uint32_t i = 1; i < story.count; i++) {
        const umdErrorDetail *c = &story.all[i];
        line(&s, "", "%s %s in %s (%s:%u)", t->have_root && c->code == t->code ? "met by the call as" : "because of",
             umdStatusName(t->have_root && c->code == t->code ? c->code : c->origin_code), c->func, c->file, c->line);
        wrapped(&s, "", c->figures, 2);
    }
    if (d->hop_count)
        snprintf(through, sizeof(through), ", reached the run through %u hop(s)", d->hop_count);
    line(&s, "", "raised by %s in %s (%s:%u)%s", d->module, d->func, d->file, d->line, through);
    wrapped(&s, "done", done_about_it(t, started), 2);
    if (t->lost && t->lost != trouble_root(t))
        line(&s, "", "the device is lost, too: %s; each later call on it fails at once", umdStatusName(t->lost));
    /* Of the failure itself: what was done about an earlier one is not what became of this. */
    if (umdErrorDetailFigure(d, "done", &acts))
        line(&s, "", "the driver: %s", acts.text);
    if (t->retries)
        line(&s, "", "%u call(s) had been tried again as their advice says", t->retries);
    if (resets)
        line(&s, "", "resets of the device so far: %" PRIu64, resets);
    print_next(&s, t, &story);
    line(&s, "record", "%08x:%u:%" PRIu64 "%s%s", d->id.boot, d->id.pid, d->id.seq, t->log ? " in the log " : "; run again with --log FILE to have it in a log",
         t->log ? t->log : "");
    pthread_mutex_unlock(&t->lock);
}

void trouble_print_line(const struct trouble *t, FILE *to)
{
    char figures[sizeof(t->detail.figures)];

    snprintf(figures, sizeof(figures), "%s", t->detail.figures);
    text_clean(figures);
    fprintf(to, "umd-train: %s: %s %s %s\n", umdStatusName(t->code), umdStatusString(t->code), figures, umdStatusTodo(t->code));
}

void trouble_print_notices(struct trouble *t, FILE *to)
{
    pthread_mutex_lock(&t->lock);
    for (uint32_t i = 0; i < t->notice_count; i++) {
        fprintf(to, "went on after %u x %s: %s\n", t->notices[i].count, umdStatusName(t->notices[i].code), t->notices[i].text);
    }
    pthread_mutex_unlock(&t->lock);
}
