/* SPDX-License-Identifier: MIT */
/* cmd_stats.c - stats: how much was logged by whom, how fast, and what was lost on the way. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "filter.h"
#include "print.h"
#include "story.h"

#define NAME_B 80u
#define HASH 4096u
#define ROWS_MAX 20000u     /* distinct names per table; the rest is one row */

struct row {
    char name[NAME_B];
    uint64_t count;
    uint64_t by_level[UMD_LOG_TRACE + 1];
    uint64_t first_ns, last_ns;
    struct row *next;
};

struct table {
    const char *title, *key;
    struct row *hash[HASH];
    struct row **rows;
    uint32_t count, size;
};

enum { BY_LEVEL, BY_MODULE, BY_CODE, BY_THREAD, BY_FILE, TABLES };

struct stats {
    int json, history;
    uint64_t records, first_ns, last_ns, back;  /* back: times the time of a record was before the last one's */
    uint64_t dropped, lost, repeats, repeated, suppressed, folded, sink_failures, ignored_settings, busiest, busiest_s;
    struct dropper { uint32_t source, pid; uint64_t total; } *droppers; /* each process counts by itself */
    uint32_t dropper_count;
    uint64_t second, in_second;
    struct table table[TABLES];
    struct log_set *set;
};

static struct row *find(const struct table *t, const char *name, uint32_t *at_out)
{
    uint32_t h = 2166136261u;

    const size_t n = text_cut(name, NAME_B - 1);
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)name[i]) * 16777619u;
    *at_out = h % HASH;
    for (struct row *r = t->hash[*at_out]; r; r = r->next) {
        if (strncmp(r->name, name, n) == 0 && r->name[n] == '\0')
            return r;
    }
    return NULL;
}

/* With very many names those that come last are counted together. */
static struct row *row_of(struct table *t, const char *name)
{
    uint32_t at;
    struct row *known = find(t, name, &at);

    if (!known && t->count >= ROWS_MAX) {
        name = "(others)";
        known = find(t, name, &at);
    }
    if (known)
        return known;
    if (t->count == t->size) {
        uint32_t size = t->size ? t->size * 2 : 64;
        struct row **grown = realloc(t->rows, size * sizeof(*grown));
        if (!grown)
            return NULL;
        t->rows = grown;
        t->size = size;
    }
    struct row *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    snprintf(r->name, sizeof(r->name), "%.*s", (int)text_cut(name, sizeof(r->name) - 1), name);
    r->next = t->hash[at];
    t->hash[at] = r;
    t->rows[t->count++] = r;
    return r;
}

static bool count_in(struct table *t, const char *name, const struct log_rec *rec)
{
    struct row *r = row_of(t, name);

    if (!r)
        return false;
    if (r->count++ == 0)
        r->first_ns = rec->real_ns;
    r->by_level[rec->level]++;
    r->last_ns = rec->real_ns;
    return true;
}

static uint64_t figure(const char *message, const char *key)
{
    char text[24];
    return log_figure_get(message, key, text, sizeof(text)) ? strtoull(text, NULL, 10) : 0;
}

/*
 * The line of the 10th repeat stands for the nine since that of the 1st, and so on. What came after the last line of a record is not
 * logged, and the line of a record's end has the number that the one of its begin had: so this is the least that it was.
 */
static void count_repeat(struct stats *s, uint64_t repeat, bool end)
{
    uint64_t before = 0;

    s->repeats++;
    for (uint64_t n = 1; n < repeat && n <= UINT64_MAX / 10; n *= 10)
        before = n;
    if (!end)
        s->repeated += repeat - before;
}

/* The number is of all that the process has dropped so far. False: no memory. */
static bool count_dropped(struct stats *s, const struct log_rec *rec)
{
    const uint64_t total = figure(rec->message, "total") ? figure(rec->message, "total") : figure(rec->message, "count");
    uint32_t i = 0;

    while (i < s->dropper_count && (s->droppers[i].source != rec->source || s->droppers[i].pid != rec->pid))
        i++;
    if (i == s->dropper_count) {
        struct dropper *grown = realloc(s->droppers, (i + 1) * sizeof(*grown));
        if (!grown)
            return false;
        s->droppers = grown;
        s->droppers[s->dropper_count++] = (struct dropper){ .source = rec->source, .pid = rec->pid };
    }
    if (total > s->droppers[i].total) {
        s->dropped += total - s->droppers[i].total;
        s->droppers[i].total = total;
    }
    return true;
}

/* What the log says about itself. */
static bool count_losses(struct stats *s, const struct log_rec *rec)
{
    const char *m = rec->message;
    char code[64];
    bool memory = true;

    if (strncmp(rec->module, "diag", 4) == 0) {
        if (strstr(m, "dropped"))
            memory = count_dropped(s, rec);
        s->lost += figure(m, "records_lost");
        s->sink_failures += strncmp(m, "log sink fails", 14) == 0;
        s->ignored_settings += strncmp(m, "setting ignored", 15) == 0;
    }
    if (rec->id.seq && figure(m, "repeat"))
        count_repeat(s, figure(m, "repeat"), strncmp(m, "ended ", 6) == 0);
    s->suppressed += rec->id.seq ? 0 : story_held_of(rec, code);
    s->folded += figure(m, "folded");
    return memory;
}

static void count_rate(struct stats *s, const struct log_rec *rec)
{
    uint64_t second = rec->real_ns / 1000000000u;

    s->in_second = second == s->second && s->records > 1 ? s->in_second + 1 : 1;
    s->second = second;
    if (s->in_second > s->busiest) {
        s->busiest = s->in_second;
        s->busiest_s = second;
    }
}

static bool count(struct stats *s, const struct log_rec *rec)
{
    char thread[40];

    s->back += s->records && rec->real_ns < s->last_ns;
    if (!s->records || rec->real_ns < s->first_ns)
        s->first_ns = rec->real_ns;
    if (rec->real_ns > s->last_ns)
        s->last_ns = rec->real_ns;
    s->records++;
    count_rate(s, rec);
    if (!count_losses(s, rec))
        return false;
    snprintf(thread, sizeof(thread), "%u.%u", rec->pid, rec->tid);
    return count_in(&s->table[BY_LEVEL], rec->level_text, rec) && count_in(&s->table[BY_MODULE], rec->module, rec) &&
           (!*rec->code_name || count_in(&s->table[BY_CODE], rec->code_name, rec)) && count_in(&s->table[BY_THREAD], thread, rec) &&
           count_in(&s->table[BY_FILE], log_set_label(s->set, rec->source), rec);
}

static int most_first(const void *a, const void *b)
{
    const struct row *x = *(struct row *const *)a, *y = *(struct row *const *)b;

    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return strcmp(x->name, y->name);
}

static double seconds(const struct stats *s) { return (double)(s->last_ns - s->first_ns) * 1e-9; }

static void put_table(const struct table *t)
{
    int width = (int)strlen(t->title);

    if (!t->count)
        return;
    for (uint32_t i = 0; i < t->count; i++)
        width = (int)strlen(t->rows[i]->name) > width ? (int)strlen(t->rows[i]->name) : width;
    printf("\n%s%-*s %9s %8s %8s %8s %8s %8s  %s%s\n", text_colour(TEXT_BOLD), width, t->title, "records", "ERROR", "WARN", "INFO", "DEBUG",
           "TRACE", "from ... to", text_colour(TEXT_PLAIN));
    for (uint32_t i = 0; i < t->count; i++) {
        const struct row *r = t->rows[i];
        char first[40], last[40];
        log_time_format(r->first_ns, first);
        log_time_format(r->last_ns, last);
        printf("%-*s %9" PRIu64 " %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %8" PRIu64 "  %.15s %.15s\n", width, r->name, r->count,
               r->by_level[1], r->by_level[2], r->by_level[3], r->by_level[4], r->by_level[5], first + 11, last + 11);
    }
}

static void put_text(const struct stats *s)
{
    char first[40], last[40];

    log_time_format(s->first_ns, first);
    log_time_format(s->last_ns, last);
    printf("%" PRIu64 " records", s->records);
    if (s->records)
        printf(" from %s to %s, %.6f s", first, last, seconds(s));
    if (s->records && s->last_ns > s->first_ns)
        printf(", %.1f/s, at most %" PRIu64 " in a second (%" PRIu64 " s after the first)", (double)s->records / seconds(s), s->busiest,
               s->busiest_s - s->first_ns / 1000000000u);
    printf("\nlost on the way: %" PRIu64 " dropped since a ring was full, %" PRIu64 " that a sink could not write, %" PRIu64
           " errors folded while a ring was full\n", s->dropped, s->lost, s->folded);
    if (s->repeats || s->suppressed)
        printf("not logged one by one: %s%" PRIu64 " repeats of records, told by %" PRIu64 " lines; %" PRIu64 " failures that were too many\n",
               s->repeats ? "at least " : "", s->repeated, s->repeats, s->suppressed);
    if (s->sink_failures || s->ignored_settings)
        printf("about the log itself: %" PRIu64 " times a sink began to fail, %" PRIu64 " settings were ignored; see --module diag\n",
               s->sink_failures, s->ignored_settings);
    if (s->back)
        printf("the clock went back %" PRIu64 " times\n", s->back);
    for (int i = 0; i < TABLES; i++) {
        if (i != BY_FILE || s->table[i].count > 1)
            put_table(&s->table[i]);
    }
}

static struct json_object *table_json(const struct table *t)
{
    struct json_object *all = json_object_new_array();

    for (uint32_t i = 0; i < t->count; i++) {
        const struct row *r = t->rows[i];
        struct json_object *o = json_object_new_object(), *levels = json_object_new_object();
        json_add_text(o, t->key, r->name);
        json_add_number(o, "records", (int64_t)r->count);
        for (int l = 1; l <= UMD_LOG_TRACE; l++)
            json_add_number(levels, log_level_name(l), (int64_t)r->by_level[l]);
        json_object_object_add(o, "levels", levels);
        json_add_big(o, "first_ns", r->first_ns);
        json_add_big(o, "last_ns", r->last_ns);
        json_object_array_add(all, o);
    }
    return all;
}

static void put_json(const struct stats *s)
{
    static const char *const name[TABLES] = { "levels", "modules", "codes", "threads", "files" };
    struct json_object *o = json_object_new_object();

    json_add_number(o, "records", (int64_t)s->records);
    json_add_big(o, "first_ns", s->first_ns);
    json_add_big(o, "last_ns", s->last_ns);
    json_object_object_add(o, "per_second", json_object_new_double(s->last_ns > s->first_ns ? (double)s->records / seconds(s) : 0));
    json_add_number(o, "busiest_second", (int64_t)s->busiest);
    json_add_number(o, "dropped", (int64_t)s->dropped);
    json_add_number(o, "lost", (int64_t)s->lost);
    json_add_number(o, "folded", (int64_t)s->folded);
    json_add_number(o, "repeat_lines", (int64_t)s->repeats);
    json_add_number(o, "repeats_at_least", (int64_t)s->repeated);
    json_add_number(o, "suppressed", (int64_t)s->suppressed);
    json_add_number(o, "sink_failures", (int64_t)s->sink_failures);
    json_add_number(o, "settings_ignored", (int64_t)s->ignored_settings);
    json_add_number(o, "clock_went_back", (int64_t)s->back);
    for (int i = 0; i < TABLES; i++)
        json_object_object_add(o, name[i], table_json(&s->table[i]));
    json_put_out(o);
    json_object_put(o);
}

static int stats(struct stats *s, struct filter *filter)
{
    const struct log_rec *rec;

    if (filter_needs_range(filter) && !filter_find_range(filter, s->set))
        return EXIT_ENVIRONMENT;
    while ((rec = log_set_next(s->set)) != NULL) {
        if (filter_match(filter, rec) && !count(s, rec)) {
            tool_say("out of memory; read fewer files at a time");
            return EXIT_ENVIRONMENT;
        }
    }
    for (int i = 0; i < TABLES; i++) {
        if (s->table[i].count)
            qsort(s->table[i].rows, s->table[i].count, sizeof(*s->table[i].rows), most_first);
    }
    if (s->json)
        put_json(s);
    else
        put_text(s);
    tool_flush();
    return log_set_report(s->set) ? EXIT_DONE : EXIT_ENVIRONMENT;
}

static void finish(struct stats *s)
{
    for (int i = 0; i < TABLES; i++) {
        for (uint32_t r = 0; r < s->table[i].count; r++)
            free(s->table[i].rows[r]);
        free(s->table[i].rows);
    }
    free(s->droppers);
}

static int run(const struct command *self, int argc, const char **argv)
{
    static struct stats s;
    struct filter_options options = { 0 };
    struct filter filter;
    struct tool_line line;
    int status;
    struct poptOption table[] = {
        { "json", 'j', POPT_ARG_NONE, &s.json, 0, "as JSON", NULL },
        { "history", 'a', POPT_ARG_NONE, &s.history, 0, "also the older files (FILE.1, ...) of earlier runs", NULL },
        { NULL, '\0', POPT_ARG_INCLUDE_TABLE, filter_table(&options), 0, "Which records:", NULL },
        POPT_TABLEEND
    };
    static const char *const title[TABLES][2] = { { "level", "level" }, { "module", "module" }, { "code", "code_name" },
                                                  { "process.thread", "thread" }, { "file", "file" } };

    for (int i = 0; i < TABLES; i++) {
        s.table[i].title = title[i][0];
        s.table[i].key = title[i][1];
    }
    if (!tool_parse(&self->tool, argc, argv, table, &line, &status))
        return status;
    s.set = command_open(&line, &options, s.history ? LOG_ROTATED_ALL : LOG_ROTATED_RUN, &filter, &status);
    if (s.set) {
        status = stats(&s, &filter);
        finish(&s);
        command_close(s.set, &filter);
    }
    tool_line_finish(&line);
    return status;
}

const struct command command_stats = {
    .run = run,
    .tool = {
        .command = "stats", .words = "[OPTION...] [FILE...]", .text = "how much by level, module, code and thread; rate; what was dropped",
        .help = "Examples:\n  umd-log stats run.log\n  umd-log stats --json --module umd.mem rank*.log\n",
        .complete = command_complete,
    },
};
