/* SPDX-License-Identifier: MIT */
/* filter.c - checks the words of the filter options once, then matches record by record. */
#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "codes.h"
#include "filter.h"
#include "status.h"
#include "umd-tool.h"

struct poptOption *filter_table(struct filter_options *o)
{
    static struct poptOption table[14];
    const struct poptOption rows[14] = {
        { "context", 'c', POPT_ARG_STRING, &o->context, 0, "of these contexts", "ID,..." },
        { "module", 'm', POPT_ARG_STRING, &o->module, 0, "of these modules and what is below them: kmd is kmd and kmd.vm", "NAME,..." },
        { "code", 'C', POPT_ARG_STRING, &o->code, 0, "with these codes: name (UMD_ERR_HW_HANG, hang), value, pattern (UMD_ERR_HW_*), range (hw) or LOW..HIGH", "CODE,..." },
        { "function", 'u', POPT_ARG_STRING, &o->function, 0, "from these functions, or of these public calls: name, or pattern of whole names (umdStream*)", "NAME,..." },
        { "level", 'l', POPT_ARG_STRING, &o->level, 0, "at least so severe: error, warn, info, debug, trace", "LEVEL" },
        { "since", 'S', POPT_ARG_STRING, &o->since, 0,
          "from then on: 2026-11-29T17:54:00.5Z, @SECONDS (epoch), SECONDS (monotonic), +SECONDS after the first record, -SECONDS before the last", "TIME" },
        { "until", 'U', POPT_ARG_STRING, &o->until, 0, "up to then", "TIME" },
        { "thread", 't', POPT_ARG_STRING, &o->thread, 0, "of these threads", "TID,..." },
        { "process", 'P', POPT_ARG_STRING, &o->process, 0, "of these processes", "PID,..." },
        { "record", 'r', POPT_ARG_STRING, &o->record, 0, "of this error record", "BOOT:PID:N" },
        { "trace-id", 'T', POPT_ARG_STRING, &o->trace_id, 0, "with this trace id", "ID" },
        { "figure", 'F', POPT_ARG_STRING, &o->figure, 0, "with this figure in the message", "KEY=VALUE" },
        { "grep", 'g', POPT_ARG_STRING, &o->grep, 0, "whose message matches this extended regular expression", "REGEX" },
        POPT_TABLEEND
    };
    memcpy(table, rows, sizeof(rows));
    return table;
}

/* Calls fn for each word of a comma list until it returns true; value: whether it did. */
typedef bool (*word_fn)(const char *word, size_t n, const void *arg);
static bool any_word(const char *list, word_fn fn, const void *arg)
{
    for (const char *s = list;; s++) {
        size_t n = strcspn(s, ",");
        if (fn(s, n, arg))
            return true;
        s += n;
        if (!*s)
            return false;
    }
}

static bool to_number(const char *word, size_t n, uint64_t *out)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n; i++) {
        if (!isdigit((unsigned char)word[i]) || v > (UINT64_MAX - 9) / 10)
            return false;
        v = v * 10 + (uint64_t)(word[i] - '0');
    }
    *out = v;
    return n > 0;
}

static bool is_no_number(const char *word, size_t n, const void *arg)
{
    uint64_t v;
    return !to_number(word, n, &v) || (arg && v > UINT32_MAX);
}

static bool is_number(const char *word, size_t n, const void *arg)
{
    uint64_t v;
    return to_number(word, n, &v) && v == *(const uint64_t *)arg;
}

static bool is_above(const char *word, size_t n, const void *arg)
{
    const char *module = arg;
    return n && strncmp(word, module, n) == 0 && (module[n] == '\0' || module[n] == '.');
}

/* The function of the line's place; of the logs for people, which have none, the call. */
static bool is_function(const char *word, size_t n, const void *arg)
{
    const struct log_rec *rec = arg;
    const char *call = log_rec_extra_of(rec, "call");
    char pattern[128];

    if (n >= sizeof(pattern))
        return false;
    snprintf(pattern, sizeof(pattern), "%.*s", (int)n, word);
    return fnmatch(pattern, rec->func, 0) == 0 || (call && fnmatch(pattern, call, 0) == 0);
}

static bool is_empty(const char *word, size_t n, const void *arg) { return n == 0; }

static bool to_code(const char *word, size_t n, int32_t *out)
{
    uint64_t v;
    bool minus = n && word[0] == '-';

    if (!to_number(word + minus, n - minus, &v) || v > INT32_MAX)
        return false;
    *out = minus ? -(int32_t)v : (int32_t)v;
    return true;
}

/* "LOW..HIGH". */
static bool to_span(const char *word, size_t n, int32_t *low, int32_t *high)
{
    for (size_t i = 1; i + 2 < n; i++) {
        if (word[i] == '.' && word[i + 1] == '.')
            return to_code(word, i, low) && to_code(word + i + 2, n - i - 2, high) && *low <= *high;
    }
    return false;
}

/* A range by its name, as the table has it: param, hw, ... NULL: none. */
static const struct umd_status_range_info *range_of(const char *word, size_t n)
{
    for (uint32_t i = 0; i < umd_status_count(); i++) {
        const struct umd_status_range_info *r = umd_status_range_info(umd_status_at(i)->code);
        if (r && strlen(r->name) == n && strncasecmp(word, r->name, n) == 0)
            return r;
    }
    return NULL;
}

static bool is_pattern(const char *word, size_t n) { return memchr(word, '*', n) || memchr(word, '?', n); }

/* A name as it was typed; what is none gives NULL. */
static const struct umd_status_info *named(const char *word, size_t n)
{
    char name[64];

    if (n >= sizeof(name))
        return NULL;
    snprintf(name, sizeof(name), "%.*s", (int)n, word);
    return code_by_name(name);
}

/* Could be one; whether a name is one of this version is seen to later, so that it can be told which was meant. */
static bool has_form_of_code(const char *word, size_t n)
{
    int32_t low, high;
    size_t name = 0;

    if (to_code(word, n, &low) || to_span(word, n, &low, &high) || range_of(word, n))
        return true;
    while (name < n && (isalnum((unsigned char)word[name]) || strchr(is_pattern(word, n) ? "_*?" : "_-", word[name])))
        name++;
    return name == n && n >= 2 && n < 64;
}

static bool is_valid_code(const char *word, size_t n)
{
    int32_t low, high;

    if (to_code(word, n, &low) || to_span(word, n, &low, &high) || range_of(word, n))
        return true;
    return has_form_of_code(word, n) && (is_pattern(word, n) || named(word, n)); /* a pattern may be of a newer version's names */
}

/*
 * One word: value, range name (param, resource, exec, hw, init, internal), LOW..HIGH, a name as code_by_name takes it, or a pattern of whole names
 * (UMD_ERR_HW_*), which also finds those of newer versions.
 */
static struct filter_code look_up(const char *word, size_t n)
{
    struct filter_code c = { .kind = FILTER_CODE_VALUE };
    const struct umd_status_range_info *range = range_of(word, n);

    if (to_code(word, n, &c.low)) {
        c.high = c.low;
    } else if (range) {
        c = (struct filter_code){ .kind = FILTER_CODE_SPAN, .low = range->first, .high = range->last };
    } else if (to_span(word, n, &c.low, &c.high)) {
        c.kind = FILTER_CODE_SPAN;
    } else if (!is_pattern(word, n)) {
        c.low = c.high = named(word, n)->code; /* it is one: that has been seen to */
    } else {
        c.kind = FILTER_CODE_PATTERN;
        snprintf(c.pattern, sizeof(c.pattern), "%.*s", (int)n, word);
        snprintf(c.full, sizeof(c.full), "UMD_ERR_%s", c.pattern);
    }
    return c;
}

static bool look_up_all(struct filter *f, const char *list)
{
    uint32_t count = 1;

    for (const char *s = list; *s; s++)
        count += *s == ',';
    f->codes = calloc(count, sizeof(*f->codes));
    if (!f->codes) {
        tool_say("out of memory");
        return false;
    }
    for (const char *s = list; f->code_count < count; s++) {
        const size_t n = strcspn(s, ",");
        f->codes[f->code_count++] = look_up(s, n);
        s += n;
    }
    return true;
}

static bool has_code(const struct filter *f, int32_t code, const char *name)
{
    for (uint32_t i = 0; i < f->code_count; i++) {
        const struct filter_code *c = &f->codes[i];
        const bool pattern = c->kind == FILTER_CODE_PATTERN;
        if (pattern ? *name && (fnmatch(c->pattern, name, 0) == 0 || fnmatch(c->full, name, 0) == 0)
                    : (code || c->kind == FILTER_CODE_VALUE) && code >= c->low && code <= c->high)
            return true;
    }
    return false;
}

static bool is_bad_code(const char *word, size_t n, const void *arg) { return !has_form_of_code(word, n); }

/* A name that no code has is more likely a slip than a newer version's, which a pattern finds. */
static bool is_unknown_code(const char *word, size_t n, const void *arg)
{
    char shown[64];

    if (is_valid_code(word, n))
        return false;
    snprintf(shown, sizeof(shown), "%.*s", (int)n, word);
    (void)code_unknown(shown);
    return true;
}

static bool to_time(const char *text, struct filter_time *out)
{
    const char *end;

    if (*text == '+' || *text == '-' || *text == '@') {
        out->kind = *text == '+' ? FILTER_TIME_FROM_START : *text == '-' ? FILTER_TIME_FROM_END : FILTER_TIME_REAL;
        end = log_decimal_parse(text + 1, &out->ns);
    } else if ((end = log_time_parse(text, &out->ns)) != NULL) {
        out->kind = FILTER_TIME_REAL;
    } else {
        out->kind = FILTER_TIME_MONO;
        end = log_decimal_parse(text, &out->ns);
    }
    if (end && (*text == '+' || *text == '-') && end > text && strcmp(end, "ms") == 0) {
        out->ns /= 1000;
        end += 2;
    } else if (end && strcmp(end, "s") == 0) {
        end++;
    }
    return end && *end == '\0';
}

static bool complain(const char *option, const char *value, const char *expected)
{
    (void)tool_bad_value(option, value, expected);
    return false;
}

static bool check_words(const struct filter_options *o)
{
    static const char numbers[] = "a number, or numbers joined by commas";

    if (o->context && any_word(o->context, is_no_number, NULL))
        return complain("context", o->context, numbers);
    if (o->thread && any_word(o->thread, is_no_number, o))
        return complain("thread", o->thread, numbers);
    if (o->process && any_word(o->process, is_no_number, o))
        return complain("process", o->process, numbers);
    if (o->module && any_word(o->module, is_empty, NULL))
        return complain("module", o->module, "a module, or modules joined by commas, as in umd.mem,kmd");
    if (o->function && any_word(o->function, is_empty, NULL))
        return complain("function", o->function, "a function, or functions joined by commas, as in umdStreamDestroy,umdMem*");
    if (o->code && any_word(o->code, is_bad_code, NULL))
        return complain("code", o->code, "a code: NAME, VALUE, a pattern as UMD_ERR_HW_*, LOW..HIGH, or param, resource, exec, hw, init, internal");
    if (o->code && any_word(o->code, is_unknown_code, NULL))
        return false;
    if (o->figure && (!strchr(o->figure, '=') || *o->figure == '='))
        return complain("figure", o->figure, "KEY=VALUE");
    return true;
}

bool filter_start(struct filter *f, const struct filter_options *o)
{
    static const char times[] = "a time: 2026-11-29T17:54:00.5Z, @SECONDS, SECONDS, +SECONDS or -SECONDS";

    *f = (struct filter){ .o = *o };
    if (!check_words(o))
        return false;
    if (o->level && !(f->level = log_level_of(o->level, strlen(o->level))))
        return complain("level", o->level, "error, warn, info, debug or trace");
    if (o->record && !log_id_parse(o->record, strlen(o->record), &f->record))
        return complain("record", o->record, "a record id, as 81a01dcb:4711:3");
    if (o->since && !to_time(o->since, &f->since))
        return complain("since", o->since, times);
    if (o->until && !to_time(o->until, &f->until))
        return complain("until", o->until, times);
    if (o->code && !look_up_all(f, o->code))
        return false;
    if (o->grep && regcomp(&f->grep, o->grep, REG_EXTENDED | REG_NOSUB) != 0) {
        free(f->codes);
        return complain("grep", o->grep, "an extended regular expression");
    }
    f->has_grep = o->grep != NULL;
    return true;
}

void filter_finish(struct filter *f)
{
    if (f->has_grep)
        regfree(&f->grep);
    free(f->codes);
    *f = (struct filter){ 0 };
}

static bool is_relative(const struct filter_time *t) { return t->kind == FILTER_TIME_FROM_START || t->kind == FILTER_TIME_FROM_END; }

bool filter_needs_range(const struct filter *f) { return is_relative(&f->since) || is_relative(&f->until); }

static void resolve(struct filter_time *t, uint64_t first_ns, uint64_t last_ns)
{
    if (t->kind == FILTER_TIME_FROM_START)
        t->ns = first_ns + t->ns;
    else if (t->kind == FILTER_TIME_FROM_END)
        t->ns = last_ns > t->ns ? last_ns - t->ns : 0;
    else
        return;
    t->kind = FILTER_TIME_REAL;
}

bool filter_find_range(struct filter *f, struct log_set *set)
{
    uint64_t first_ns = UINT64_MAX, last_ns = 0;
    const struct log_rec *rec;

    while ((rec = log_set_next(set)) != NULL) {
        first_ns = rec->real_ns < first_ns ? rec->real_ns : first_ns;
        last_ns = rec->real_ns > last_ns ? rec->real_ns : last_ns;
    }
    resolve(&f->since, first_ns == UINT64_MAX ? 0 : first_ns, last_ns);
    resolve(&f->until, first_ns == UINT64_MAX ? 0 : first_ns, last_ns);
    return log_set_rewind(set);
}

static bool in_time(const struct filter *f, const struct log_rec *rec)
{
    uint64_t since = f->since.kind == FILTER_TIME_MONO ? rec->mono_ns : rec->real_ns;
    uint64_t until = f->until.kind == FILTER_TIME_MONO ? rec->mono_ns : rec->real_ns;

    return (f->since.kind == FILTER_TIME_NONE || since >= f->since.ns) && (f->until.kind == FILTER_TIME_NONE || until <= f->until.ns);
}

static bool has_figure(const char *message, const char *wanted)
{
    const char *value = strchr(wanted, '=') + 1;
    size_t key_n = (size_t)(value - 1 - wanted);
    umdFigure f;

    while (umdFigureNext(&message, &f)) {
        if (strlen(f.key) == key_n && memcmp(f.key, wanted, key_n) == 0 && strcmp(f.text, value) == 0)
            return true;
    }
    return false;
}

bool filter_match(const struct filter *f, const struct log_rec *rec)
{
    const struct filter_options *o = &f->o;
    const uint64_t tid = rec->tid, pid = rec->pid;

    if (f->level && (rec->level ? rec->level : UMD_LOG_INFO) > f->level)
        return false;
    if (!in_time(f, rec))
        return false;
    if ((o->context && !any_word(o->context, is_number, &rec->context_id)) || (o->thread && !any_word(o->thread, is_number, &tid)) ||
        (o->process && !any_word(o->process, is_number, &pid)) || (o->module && !any_word(o->module, is_above, rec->module)))
        return false;
    if (f->code_count && !has_code(f, rec->code, rec->code_name))
        return false;
    if (f->record.seq && !log_id_equal(f->record, rec->id))
        return false;
    if (o->trace_id && strcmp(o->trace_id, rec->trace_id) != 0)
        return false;
    if (o->function && !any_word(o->function, is_function, rec))
        return false;
    if (o->figure && !has_figure(rec->message, o->figure))
        return false;
    return !f->has_grep || regexec(&f->grep, rec->message, 0, NULL, 0) == 0;
}
