/* SPDX-License-Identifier: MIT */
/* cmd_errors.c - errors: the chain of each error as a tree, from its first cause to what came of it, and what to do next. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "filter.h"
#include "print.h"
#include "record.h"
#include "status.h"
#include "story.h"

#define DEPTH_MAX 24    /* deeper children are told as a count */
#define WIDTH 118

struct errors {
    int json, trace, all, check, history, alone;
    struct log_set *set;
    struct story_book book;
};

/* ---- text ---- */

static void paragraph(const char *prefix, const char *label, const char *text) { text_paragraph(prefix, 8, label, text, WIDTH); }

/* "where" of a record: place, process, thread, context, file. */
static void put_where(const struct errors *e, const char *prefix, const struct story *s)
{
    const struct log_rec *r = &s->raised;
    char text[600];
    int n = 0;

    if (*r->func || strcmp(r->module, LOG_NO_MODULE) != 0)
        n = snprintf(text, sizeof(text), "%.60s %.60s", r->module, r->func);
    if (r->line)
        n += snprintf(text + n, sizeof(text) - (size_t)n, " (%.60s:%u)", r->file, r->line);
    n += snprintf(text + n, sizeof(text) - (size_t)n, "%sprocess %u", n ? ", " : "", r->pid);
    if (r->tid)
        n += snprintf(text + n, sizeof(text) - (size_t)n, " thread %u", r->tid);
    if (r->context_id)
        n += snprintf(text + n, sizeof(text) - (size_t)n, " context %" PRIu64, r->context_id);
    if (s->api)
        n += snprintf(text + n, sizeof(text) - (size_t)n, ", call %.60s", s->api);
    if (*r->trace_id)
        n += snprintf(text + n, sizeof(text) - (size_t)n, ", trace %.64s", r->trace_id);
    if (log_set_count(e->set) > 1 && (size_t)n < sizeof(text))
        snprintf(text + n, sizeof(text) - (size_t)n, ", %.120s", log_set_label(e->set, r->source));
    paragraph(prefix, "where", text);
}

static void put_end(const char *prefix, const struct story *s)
{
    static const char *const word[] = { "", "delivered", "absorbed", "swallowed: nobody saw it, which is a defect" };
    char text[400];

    if (s->end == STORY_OPEN)
        return;
    snprintf(text, sizeof(text), "%s%s%.200s%s%.60s", word[s->end], s->end_text ? s->end == STORY_ABSORBED ? ": " : " to " : "",
             s->end_text ? s->end_text : "", s->out_code ? " as " : "", s->out_code ? s->out_code : "");
    paragraph(prefix, "end", text);
}

/* The code at entry and exit of each layer, one line each; without --trace only layers in a row. */
static void put_path(const struct errors *e, const char *prefix, const struct story *s)
{
    char text[1200];

    if (!e->trace) {
        if (story_path(s, text, sizeof(text)))
            paragraph(prefix, "path", text);
        return;
    }
    snprintf(text, sizeof(text), "%-10.24s %s (%.60s:%u) raises %s", s->raised.module, s->raised.func, s->raised.file, s->raised.line,
             story_code_name(s));
    paragraph(prefix, "trace", text);
    for (uint32_t i = 0; i < s->hop_count; i++) {
        const struct story_hop *h = &s->hops[i];
        snprintf(text, sizeof(text), "%-10.24s %.60s (%.60s:%u) in %.60s out %.60s", h->layer, h->func, h->file, h->line, h->in, h->out);
        paragraph(prefix, "", text);
    }
}

/* "CODE: sentence figures" without the code; the sentence and the figures apart. */
static void split(const struct story *s, char *what, size_t what_size, const char **figures)
{
    const char *text = story_message(s);

    *figures = log_figures_of(text);
    size_t n = (size_t)(*figures - text);
    while (n && text[n - 1] == ' ')
        n--;
    snprintf(what, what_size, "%.*s", (int)n, text);
}

/* Kernel, source line and more were found out by a layer above the one that raised. */
static void put_added(const char *prefix, const struct story *s)
{
    char text[256];

    if (story_kernel(s, text, sizeof(text)))
        paragraph(prefix, "kernel", text);
    if (s->added)
        paragraph(prefix, "added", s->added);
}

static void put_next(const char *prefix, const struct story *s)
{
    char text[900], todo[160];

    if (!s->raised.code)
        return;
    umd_advice_format(&s->advice, todo, sizeof(todo));
    snprintf(text, sizeof(text), "%s%s (%s)", umd_misuse_todo(s->added ? s->added : s->raised.message), umdStatusTodo((umdStatus)s->raised.code), todo);
    paragraph(prefix, "next", text);
}

static void put_head(const struct errors *e, const struct story *s, const char *prefix, const char *branch, uint64_t times, bool more)
{
    char when[40], often[48];

    if (s->parent) {
        int64_t late = (int64_t)(s->raised.real_ns - s->parent->raised.real_ns);
        snprintf(when, sizeof(when), "%+.6f s", (double)late * 1e-9);
    } else {
        log_time_format(s->raised.real_ns, when);
    }
    printf("%s%s%s %s%s%s", prefix, branch, when, text_colour(s->raised.level <= UMD_LOG_WARN ? print_level_colour(s->raised.level) : TEXT_BOLD),
           story_code_name(s), text_colour(TEXT_PLAIN));
    if (s->raised.code)
        printf(" (%d)", s->raised.code);
    if (*story_times(times, more, often))
        printf(", %s", often);
    if (s == e->book.first_cause)
        printf("  %s<== first cause%s", text_colour(TEXT_BOLD), text_colour(TEXT_PLAIN));
    putchar('\n');
}

static void put_body(const struct errors *e, const struct story *s, const char *prefix)
{
    const char *figures;
    char what[512], id[48], text[160];

    split(s, what, sizeof(what), &figures);
    if (!s->has_raised)
        paragraph(prefix, "note", "the line of its raise is not in these files; this is from a later one");
    paragraph(prefix, "what", what);
    put_where(e, prefix, s);
    paragraph(prefix, "figures", figures);
    put_added(prefix, s);
    put_path(e, prefix, s);
    put_end(prefix, s);
    if (s->cause_missing) {
        log_id_format(s->cause, id);
        snprintf(text, sizeof(text), "record %s, which is in none of the files: read the log of process %u, too", id, s->cause.pid);
        paragraph(prefix, "because", text);
    }
    const uint64_t held = story_held_like(&e->book, s);
    if (held) {
        snprintf(text, sizeof(text), "of this code and place %" PRIu64 " more were not logged one by one", held);
        paragraph(prefix, "besides", text);
    }
    if (!s->parent)
        put_next(prefix, s);
    log_id_format(s->id, id);
    paragraph(prefix, "record", id);
}

/* The same place of the code failed alike: one of many. */
static bool alike(const struct story *a, const struct story *b)
{
    return a->raised.line == b->raised.line && a->id.pid == b->id.pid && a->raised.context_id == b->raised.context_id && a->end == b->end &&
           strcmp(a->raised.code_name, b->raised.code_name) == 0 && strcmp(a->raised.func, b->raised.func) == 0;
}

static void put_tree(const struct errors *e, const struct story *s, const char *prefix, int depth);

/* Children; those alike and without children of their own are told once, with their number. */
static void put_children(const struct errors *e, const struct story *s, const char *prefix, int depth)
{
    for (const struct story *c = s->child; c;) {
        const struct story *next = c->next;
        uint64_t times = c->times;
        bool more = c->more;
        while (!e->all && next && !c->child && !next->child && alike(c, next)) {
            times += next->times;
            more = more || next->more;
            next = next->next;
        }
        char below[4 * DEPTH_MAX + 8], branch[4 * DEPTH_MAX + 8];
        snprintf(below, sizeof(below), "%s%s", prefix, next ? "|  " : "   ");
        snprintf(branch, sizeof(branch), "%s%s", prefix, next ? "|- " : "`- ");
        printf("%s|\n", prefix);
        put_head(e, c, branch, "", times, more);
        char inner[4 * DEPTH_MAX + 12];
        snprintf(inner, sizeof(inner), "%s%s", below, c->child ? "|  " : "   ");
        put_body(e, c, inner);
        if (c->child)
            put_tree(e, c, below, depth + 1);
        c = next;
    }
}

static void put_tree(const struct errors *e, const struct story *s, const char *prefix, int depth)
{
    if (depth >= DEPTH_MAX) {
        printf("%s`- and more that failed because of it: umd-log errors --json has all\n", prefix);
        return;
    }
    put_children(e, s, prefix, depth);
}

static void put_root(const struct errors *e, const struct story *s, uint64_t times, bool more)
{
    put_head(e, s, "", "", times, more);
    put_body(e, s, s->child ? "|  " : "   ");
    put_tree(e, s, "", 0);
    putchar('\n');
}

/* Those that were too many to be logged one by one, and hence are records of none of the trees. */
static uint64_t held(const struct errors *e)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < e->book.held_count; i++)
        count += e->book.held[i].count;
    return count;
}

static void put_held(const struct errors *e)
{
    for (uint32_t i = 0; i < e->book.held_count; i++) {
        const struct story_held *h = &e->book.held[i];
        printf("not logged one by one: %" PRIu64 " of %s in %s", h->count, *h->rec.code_name ? h->rec.code_name : "?", h->rec.module);
        if (h->rec.line)
            printf(" %s (%s:%u)", h->rec.func, h->rec.file, h->rec.line);
        printf(" of process %u\n", h->rec.pid);
    }
}

static void put_summary(const struct errors *e)
{
    const struct story *f = e->book.first_cause;
    char id[48];

    printf("%" PRIu64 " error record%s, %" PRIu64 " absorbed, %" PRIu64 " swallowed\n", e->book.errors, e->book.errors == 1 ? "" : "s",
           e->book.absorbed, e->book.swallowed);
    put_held(e);
    if (f) {
        log_id_format(f->id, id);
        const bool placed = strcmp(f->raised.module, LOG_NO_MODULE) != 0;
        printf("first cause: %s%s%s%s%s of process %u, %s, record %s\n", text_colour(TEXT_BOLD), story_code_name(f), text_colour(TEXT_PLAIN),
               placed ? " in " : "", placed ? f->raised.module : "", f->raised.pid, log_set_label(e->set, f->raised.source), id);
    }
    putchar('\n');
}

static bool shown_alone(const struct errors *e, const struct filter *filter, const struct story *s)
{
    return (e->all || story_is_error(s) || s->child || s->end == STORY_SWALLOWED) && filter_match(filter, &s->raised);
}

/* A tree is, if one of its records is; without recursion, since chains may be long. */
static bool shown(const struct errors *e, const struct filter *filter, const struct story *root)
{
    for (const struct story *s = root; s; s = story_after(s, root))
        if (shown_alone(e, filter, s))
            return true;
    return false;
}

static void put_text(const struct errors *e, const struct filter *filter)
{
    put_summary(e);
    for (uint32_t i = 0; i < e->book.count; i++) {
        const struct story *s = e->book.all[i];
        uint64_t times = s->times;
        bool more = s->more;
        if (s->parent || !shown(e, filter, s))
            continue;
        while (!e->all && !s->child && s != e->book.first_cause && i + 1 < e->book.count && !e->book.all[i + 1]->child &&
               !e->book.all[i + 1]->parent && alike(s, e->book.all[i + 1])) {
            times += e->book.all[++i]->times;
            more = more || e->book.all[i]->more;
        }
        put_root(e, s, times, more);
    }
}

/* ---- JSON ---- */

static struct json_object *hops_json(const struct story *s)
{
    struct json_object *all = json_object_new_array();

    for (uint32_t i = 0; i < s->hop_count; i++) {
        const struct story_hop *h = &s->hops[i];
        struct json_object *o = json_object_new_object();
        json_add_text(o, "layer", h->layer);
        json_add_text(o, "function", h->func);
        json_add_text(o, "file", h->file);
        json_add_number(o, "line", h->line);
        json_add_text(o, "code_in", h->in);
        json_add_text(o, "code_out", h->out);
        json_object_array_add(all, o);
    }
    return all;
}

static struct json_object *advice_json(const struct story *s)
{
    struct json_object *o = json_object_new_object();

    json_add_text(o, "action", umd_action_word(s->advice.action));
    json_add_number(o, "delay_ms", s->advice.delay_ms);
    json_add_number(o, "count", s->advice.count);
    json_add_number(o, "largest_fit_B", (int64_t)s->advice.largest_fit_B);
    json_add_text(o, "of", s->advice_told ? "record" : "table");
    return o;
}

static struct json_object *story_json(const struct errors *e, const struct story *s)
{
    static const char *const end[] = { "open", "delivered", "absorbed", "swallowed" };
    struct json_object *o = json_object_new_object();
    char id[48], kernel[256];

    log_id_format(s->id, id);
    json_add_text(o, "record", id);
    json_add_text(o, "code_name", story_code_name(s));
    json_add_number(o, "code", s->raised.code);
    json_add_bool(o, "first_cause", s == e->book.first_cause);
    if (s->cause.seq) {
        log_id_format(s->cause, id);
        json_add_text(o, "cause", id);
        json_add_bool(o, "cause_found", !s->cause_missing);
    }
    json_add_number(o, "times", (int64_t)s->times);
    json_add_bool(o, "times_exact", !s->more);
    json_add_text(o, "end", end[s->end]);
    json_add_text(o, "end_text", s->end_text);
    json_add_text(o, "api", s->api);
    json_add_text(o, "code_out", s->out_code);
    if (story_kernel(s, kernel, sizeof(kernel)))
        json_add_text(o, "kernel", kernel);
    json_add_text(o, "added", s->added);
    json_add_text(o, "file", log_set_path(e->set, s->raised.source));
    if (s->raised.code) {
        json_add_text(o, "what", umdStatusString((umdStatus)s->raised.code));
        json_add_text(o, "next", umdStatusTodo((umdStatus)s->raised.code));
        json_object_object_add(o, "advice", advice_json(s));
    }
    json_object_object_add(o, "hops", hops_json(s));
    json_object_object_add(o, "log", print_json_object(&s->raised, NULL));
    return o;
}

static struct json_object *held_json(const struct errors *e, const struct filter *filter)
{
    struct json_object *all = json_object_new_array();

    for (uint32_t i = 0; i < e->book.held_count; i++) {
        const struct story_held *h = &e->book.held[i];
        struct json_object *o = json_object_new_object();
        if (!filter_match(filter, &h->rec)) {
            json_object_put(o);
            continue;
        }
        json_add_text(o, "code_name", h->rec.code_name);
        json_add_number(o, "code", h->rec.code);
        json_add_text(o, "module", h->rec.module);
        json_add_text(o, "function", h->rec.func);
        json_add_text(o, "file", h->rec.file);
        json_add_number(o, "line", h->rec.line);
        json_add_number(o, "pid", h->rec.pid);
        json_add_number(o, "count", (int64_t)h->count);
        json_object_array_add(all, o);
    }
    return all;
}

/* A flat list in order of time; `cause` links it. Only the head and one record at a time are in memory as JSON. */
static void put_json(const struct errors *e, const struct filter *filter)
{
    struct json_object *root = json_object_new_object();
    bool comma = false;
    char id[48];

    json_add_number(root, "errors", (int64_t)e->book.errors);
    json_add_number(root, "absorbed", (int64_t)e->book.absorbed);
    json_add_number(root, "swallowed", (int64_t)e->book.swallowed);
    json_add_number(root, "not_logged", (int64_t)held(e));
    json_object_object_add(root, "not_logged_by_place", held_json(e, filter));
    if (e->book.first_cause) {
        log_id_format(e->book.first_cause->id, id);
        json_add_text(root, "first_cause", id);
    }
    const char *head = json_object_to_json_string_ext(root, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE);
    printf("%.*s,\n  \"records\":[", (int)(strlen(head) - strlen("\n}")), head);
    json_object_put(root);
    for (uint32_t i = 0; i < e->book.count && !ferror(stdout); i++) {
        if (!filter_match(filter, &e->book.all[i]->raised))
            continue;
        struct json_object *o = story_json(e, e->book.all[i]);
        printf("%s\n    %s", comma ? "," : "", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
        json_object_put(o);
        comma = true;
    }
    puts("\n  ]\n}");
}

/* What --check ends with: of the records that the filter takes. */
static int checked(const struct errors *e, const struct filter *filter)
{
    bool failed = false;

    for (uint32_t i = 0; i < e->book.count; i++) {
        const struct story *s = e->book.all[i];
        if (!filter_match(filter, &s->raised))
            continue;
        if (s->end == STORY_SWALLOWED)
            return EXIT_WRONG;
        failed = failed || story_is_error(s);
    }
    for (uint32_t i = 0; i < e->book.held_count; i++)
        failed = failed || (e->book.held[i].rec.level == UMD_LOG_ERROR && filter_match(filter, &e->book.held[i].rec));
    return failed ? EXIT_DEVICE : EXIT_DONE;
}

static int errors(struct errors *e, struct filter *filter)
{
    const struct log_rec *rec;
    bool memory = true;

    if (filter_needs_range(filter) && !filter_find_range(filter, e->set))
        return EXIT_ENVIRONMENT;
    while (memory && (rec = log_set_next(e->set)) != NULL)
        memory = story_book_add(&e->book, rec);
    if (!memory) {
        tool_say("out of memory; read fewer files at a time");
        return EXIT_ENVIRONMENT;
    }
    story_book_link(&e->book);
    if (e->json)
        put_json(e, filter);
    else if (!e->book.errors && !e->book.swallowed && !e->book.held_count && !(e->all && e->book.count))
        printf("no errors: %" PRIu64 " record%s below ERROR, %" PRIu64 " absorbed\n", (uint64_t)e->book.count, e->book.count == 1 ? "" : "s",
               e->book.absorbed);
    else
        put_text(e, filter);
    tool_flush();
    if (!log_set_report(e->set))
        return EXIT_ENVIRONMENT;
    return e->check ? checked(e, filter) : EXIT_DONE;
}

static int run(const struct command *self, int argc, const char **argv)
{
    struct errors e = { 0 };
    struct filter_options options = { 0 };
    struct filter filter;
    struct tool_line line;
    int status;
    struct poptOption table[] = {
        { "trace", 'x', POPT_ARG_NONE, &e.trace, 0, "the code at entry and exit of each layer, one line each", NULL },
        { "all", 'A', POPT_ARG_NONE, &e.all, 0, "each record alone, and those that are no errors (INFO, WARN), too", NULL },
        { "json", 'j', POPT_ARG_NONE, &e.json, 0, "as JSON", NULL },
        { "check", '\0', POPT_ARG_NONE, &e.check, 0, "exit status 3 if there are errors, 4 if a record was swallowed; of the records that are asked for", NULL },
        { "history", 'a', POPT_ARG_NONE, &e.history, 0, "also the older files (FILE.1, ...) of earlier runs", NULL },
        { NULL, '\0', POPT_ARG_INCLUDE_TABLE, filter_table(&options), 0, "Trees with such a record:", NULL },
        POPT_TABLEEND
    };
    if (!tool_parse(&self->tool, argc, argv, table, &line, &status))
        return status;
    e.set = command_open(&line, &options, e.history ? LOG_ROTATED_ALL : LOG_ROTATED_RUN, &filter, &status);
    if (e.set) {
        story_book_init(&e.book);
        status = errors(&e, &filter);
        story_book_finish(&e.book);
        command_close(e.set, &filter);
    }
    tool_line_finish(&line);
    return status;
}

const struct command command_errors = {
    .run = run,
    .tool = {
        .command = "errors", .words = "[OPTION...] [FILE...]", .text = "what failed because of what, as trees; the first cause, and what to do next",
        .help = "What stands below a record failed because of it. Files of many processes make one picture: causes lead across them. The first\n"
                "cause is the root of the tree that does most harm (a device before a context before a call), of those the earliest; what the\n"
                "driver absorbed is none. A record whose cause is in none of the files says so. The counts and the first cause are of all; the\n"
                "filter says which trees are shown, whole, and with --json which records, each alone.\n"
                "\nExamples:\n"
                "  umd-log errors run.log\n"
                "  umd-log errors --trace --code UMD_ERR_EXEC_FAILED run.log\n"
                "  umd-log errors rank*.log          the first cause among the ranks\n"
                "  umd-log errors --check run.log    in a script\n",
        .complete = command_complete,
    },
};
