/* SPDX-License-Identifier: MIT */
/* filter.h - which records a command looks at: by context, module, code, time, thread, level, id, trace id, text. */
#ifndef UMD_LOG_FILTER_H
#define UMD_LOG_FILTER_H

#include <popt.h>
#include <regex.h>

#include "set.h"

/* As given on the command line; NULL: not given. */
struct filter_options {
    char *context, *module, *code, *since, *until, *thread, *process, *level, *record, *trace_id, *grep, *figure, *function;
};

enum filter_time_kind { FILTER_TIME_NONE, FILTER_TIME_REAL, FILTER_TIME_MONO, FILTER_TIME_FROM_START, FILTER_TIME_FROM_END };
struct filter_time {
    enum filter_time_kind kind;
    uint64_t ns;
};

/* One word of --code, looked up once. */
struct filter_code {
    enum { FILTER_CODE_VALUE, FILTER_CODE_SPAN, FILTER_CODE_PATTERN } kind;
    int32_t low, high;
    char pattern[64], full[80];     /* full: of the name with UMD_ERR_ before it: HW_HANG will do */
};

struct filter {
    struct filter_options o;
    int level;                      /* 0: all */
    umdRecordId record;
    struct filter_time since, until;
    struct filter_code *codes;      /* of --code */
    uint32_t code_count;
    regex_t grep;
    bool has_grep;
};

/* The option table of a command includes it: { NULL, 0, POPT_ARG_INCLUDE_TABLE, filter_table(&options), 0, "Filters:", NULL }. */
struct poptOption *filter_table(struct filter_options *options);
/* The options must outlive the filter. False after one line on stderr: nothing to finish. */
bool filter_start(struct filter *f, const struct filter_options *options);
/* True: times count from the first or last record, so the set must be seen once before. */
bool filter_needs_range(const struct filter *f);
/* Reads the set through and rewinds it. False after one line on stderr. */
bool filter_find_range(struct filter *f, struct log_set *set);
bool filter_match(const struct filter *f, const struct log_rec *rec);
void filter_finish(struct filter *f);

#endif
