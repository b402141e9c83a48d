/* SPDX-License-Identifier: MIT */
/* cmd_show.c - show and merge: filtered records of one file or of many, on one time axis; follows a growing file. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd.h"
#include "filter.h"
#include "print.h"

struct show {
    int json, follow, history, alone;
    char *tail_text;
    uint64_t tail;                  /* 0: all */
    struct log_rec *ring;           /* the last `tail` that matched */
    uint64_t matched;
    bool labels;
    const struct log_set *set;
};

static volatile int stop;
static void on_signal(int sig) { stop = sig; }

static void put_out(const struct show *s, const struct log_rec *rec)
{
    if (s->json)
        print_json(rec, s->labels ? log_set_path(s->set, rec->source) : NULL);
    else
        print_text(rec, s->labels ? log_set_label(s->set, rec->source) : NULL);
}

static bool take(struct show *s, const struct log_rec *rec)
{
    uint64_t at = s->matched++;

    if (!s->tail) {
        put_out(s, rec);
        return true;
    }
    return log_rec_copy(&s->ring[at % s->tail], rec);
}

/* What is kept for --tail; from then on records go straight out. */
static void end_tail(struct show *s)
{
    uint64_t first = s->matched > s->tail ? s->matched - s->tail : 0;

    for (uint64_t i = first; s->tail && i < s->matched; i++)
        put_out(s, &s->ring[i % s->tail]);
    for (uint64_t i = 0; i < s->tail && i < s->matched; i++) /* the others are as they were allocated: untouched */
        log_rec_finish(&s->ring[i]);
    free(s->ring);
    s->ring = NULL;
    s->tail = 0;
}

/* Ends where nothing can come any more, by Ctrl-C and by SIGTERM; a second one ends it at once, whatever it waits for. */
static int follow(struct show *s, struct log_set *set, struct filter *filter)
{
    const struct log_rec *rec;
    struct sigaction act = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };

    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    if (s->tail) { /* what is there already, then what comes */
        bool memory = true;
        while (memory && (rec = log_set_follow(set, &stop, false)) != NULL)
            memory = !filter_match(filter, rec) || take(s, rec);
        end_tail(s);
        if (!memory) {
            tool_say("out of memory; use a smaller --tail");
            return EXIT_ENVIRONMENT;
        }
    }
    while ((rec = log_set_follow(set, &stop, true)) != NULL) {
        if (filter_match(filter, rec))
            put_out(s, rec);
    }
    tool_flush();
    if (stop)
        return EXIT_DONE;
    return log_set_report(set) ? EXIT_DONE : EXIT_ENVIRONMENT;
}

static int show(struct show *s, struct log_set *set, struct filter *filter)
{
    const struct log_rec *rec;

    s->set = set;
    if (s->tail) {
        s->ring = calloc(s->tail, sizeof(*s->ring));
        if (!s->ring) {
            tool_say("out of memory; use a smaller --tail");
            return EXIT_ENVIRONMENT;
        }
    }
    if (filter_needs_range(filter) && !filter_find_range(filter, set)) {
        end_tail(s);
        return EXIT_ENVIRONMENT;
    }
    if (s->follow)
        return follow(s, set, filter);
    while (!ferror(stdout) && (rec = log_set_next(set)) != NULL) {
        if (filter_match(filter, rec) && !take(s, rec)) {
            tool_say("out of memory; use a smaller --tail");
            end_tail(s);
            return EXIT_ENVIRONMENT;
        }
    }
    end_tail(s);
    tool_flush(); /* before what is said about the files */
    return log_set_report(set) ? EXIT_DONE : EXIT_ENVIRONMENT;
}

static int run(const struct command *self, int argc, const char **argv)
{
    bool merge = self == &command_merge;
    struct show s = { 0 };
    struct filter_options options = { 0 };
    struct filter filter;
    struct tool_line line;
    int status;
    struct poptOption table[] = {
        { "json", 'j', POPT_ARG_NONE, &s.json, 0, "one JSON object per line, as the log's own JSON format", NULL },
        { "tail", 'n', POPT_ARG_STRING, &s.tail_text, 0, "only the last N that match", "N" },
        { "history", 'a', POPT_ARG_NONE, &s.history, 0, "also the older files (FILE.1, ...) of earlier runs", NULL },
        { "alone", 'A', POPT_ARG_NONE, &s.alone, 0, "only the file itself, not its rotated parts", NULL },
        { NULL, '\0', POPT_ARG_INCLUDE_TABLE, filter_table(&options), 0, "Which records:", NULL },
        { "follow", 'f', POPT_ARG_NONE, &s.follow, 0, "go on as the file grows, also when it is rotated; ends with Ctrl-C, or where nothing can come: of a compressed file, of a pipe at its end", NULL },
        POPT_TABLEEND
    };
    if (merge)
        table[5] = (struct poptOption)POPT_TABLEEND;
    if (!tool_parse(&self->tool, argc, argv, table, &line, &status))
        return status;
    struct log_set *set = NULL;
    status = EXIT_USAGE;
    if (s.follow && line.count > 1)
        (void)tool_usage("--follow takes one file");
    else if (s.history && s.alone)
        (void)tool_usage("--history and --alone exclude each other");
    else if (!s.tail_text || tool_number("tail", s.tail_text, 1, 1000000, &s.tail))
        set = command_open(&line, &options, s.history ? LOG_ROTATED_ALL : s.alone ? LOG_ROTATED_NONE : LOG_ROTATED_RUN, &filter, &status);
    if (set) {
        s.labels = merge || line.count > 1;
        status = show(&s, set, &filter);
        command_close(set, &filter);
    }
    tool_line_finish(&line);
    return status;
}

const struct command command_show = {
    .run = run,
    .tool = {
        .command = "show", .words = "[OPTION...] [FILE...]", .text = "records, filtered; follows a growing file",
        .help = "Rotated parts (FILE.5 ... FILE.1) of the same run come before FILE, .gz among them. Keys that this version does not know are\n"
                "shown as they stand. Lines that are no records are counted, on stderr.\n"
                "\nExamples:\n"
                "  umd-log show --context 9 --level warn run.log\n"
                "  umd-log show --code hw,UMD_ERR_MEM_* --since +1.5 run.log   from 1.5 s after the first record\n"
                "  umd-log show --function 'umd*Destroy' run.log\n"
                "  umd-log show --record 81a01dcb:4711:3 run.log\n"
                "  umd-log show --follow --module umd.mem run.log\n",
        .complete = command_complete,
    },
};

const struct command command_merge = {
    .run = run,
    .tool = {
        .command = "merge", .words = "[OPTION...] [FILE...]", .text = "records of many files on one axis of real time, each marked with its file",
        .help = "Files may be of any format, also mixed, and of any number of processes. Order is by real time; records of equal time stay in the\n"
                "order of the files; those of one process also in the order of its monotonic clock.\n"
                "\nExamples:\n"
                "  umd-log merge rank0.log rank1.json | less\n"
                "  umd-log merge --trace-id 0123456789abcdef0123456789abcdef driver.log framework.json\n"
                "  umd-log merge --json rank*.log >all.json\n",
        .complete = command_complete,
    },
};
