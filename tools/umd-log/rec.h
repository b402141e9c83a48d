/* SPDX-License-Identifier: MIT */
/* rec.h - one log record as a log file tells it, whatever the format; unknown keys are kept. */
#ifndef UMD_LOG_REC_H
#define UMD_LOG_REC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <umd/umd_diag.h>
#include <umd/umd_log.h>

#define LOG_EXTRAS 48u      /* more are left out */
#define LOG_NO_MODULE "-"   /* a failure in a run log: whose users need not know */

/* A key that this version does not know (a newer one wrote it), with its value as text. */
struct log_pair {
    const char *key, *value;
};

/*
 * Texts are never NULL: "" is none. They live in `buf`, which the record owns (as it does `extra`), or are static; a record is valid until it is parsed into
 * again or finished. One that begins as { 0 } may be parsed into.
 */
struct log_rec {
    uint64_t real_ns, mono_ns, observed_ns;
    uint64_t context_id;
    umdRecordId id;             /* seq 0: none */
    uint32_t pid, tid, depth, line;
    int32_t flags;              /* of the trace context; -1: none */
    int32_t code;               /* 0: none, or code_name is of a newer version */
    int level;                  /* umdLogLevel; 0: a name that this version does not know */
    bool torn;                  /* the file ends in this line */
    const char *level_text, *module, *func, *file, *trace_id, *span_id, *message, *code_name;
    struct log_pair *extra;     /* owned */
    uint32_t extra_count, extra_size;
    uint64_t number;            /* line in its file, from 1 */
    const char *path;           /* of its file; the reader's */
    uint32_t source;            /* index of the file among those given */
    char *buf;
    size_t size, used;
};

/* Empties it and makes room for texts of so many bytes in all. False: no memory. */
bool log_rec_begin(struct log_rec *rec, size_t room);
/* Copies n bytes of text in; what a terminal could take for a command becomes '?'. Cut, then empty, where the room is used up. */
const char *log_rec_text(struct log_rec *rec, const char *text, size_t n);
void log_rec_extra(struct log_rec *rec, const char *key, size_t key_n, const char *value, size_t value_n);
/* NULL: there is no such key. */
const char *log_rec_extra_of(const struct log_rec *rec, const char *key);
/* Code and its name out of "NAME: ..." of the message. */
void log_rec_find_code(struct log_rec *rec);
bool log_rec_copy(struct log_rec *to, const struct log_rec *from);
void log_rec_finish(struct log_rec *rec);

/* Where the figures of a message begin: its first "key=value" word; the end of the message if it has none. */
const char *log_figures_of(const char *message);
/* umdFigureNext; what a terminal could take for a command becomes '?'. */
bool log_figure_next(const char **message, umdFigure *out);
/* The value of the figure that log_figure_next found from `begin` on, whole: umdFigure has room for so much. NULL: no memory. To be freed. */
char *log_figure_whole(const umdFigure *f, const char *begin, const char *end);
/* The value of a figure as such text, cut to size; false if the message has none of that name, out is then "". */
bool log_figure_get(const char *message, const char *key, char *out, size_t size);

/* "f3f0ca53:18470:2". */
bool log_id_parse(const char *text, size_t n, umdRecordId *out);
void log_id_format(umdRecordId id, char out[48]);
static inline bool log_id_equal(umdRecordId a, umdRecordId b) { return a.seq == b.seq && a.pid == b.pid && a.boot == b.boot; }

const char *log_level_name(int level);
/* 0: none of that name. */
int log_level_of(const char *text, size_t n);
/* Value of a code's name; 0: none of this version. */
int32_t log_code_of(const char *name);
/* "2026-11-29T17:54:00.669505909Z" of ns since the epoch. */
void log_time_format(uint64_t real_ns, char out[40]);
/* The same, read; RFC 3339, with a blank for the T, zone optional (UTC). Returns the end of it, NULL if it is none. */
const char *log_time_parse(const char *text, uint64_t *real_ns_out);
/* "12.5" in ns; at most nine decimals count. Returns the end of it, NULL if it is none. */
const char *log_decimal_parse(const char *text, uint64_t *ns_out);

#endif
