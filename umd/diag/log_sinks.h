/* SPDX-License-Identifier: MIT */
/* log_sinks.h - where lines go: the table of sinks, fan-out by level, and what the log says about itself. */
#ifndef UMD_LOG_SINKS_H
#define UMD_LOG_SINKS_H

#include "log_internal.h"
#include "log_out.h"

struct umd_log_sink;

/* What a sink is; the rows are in log_sinks.c. */
struct umd_log_sink_kind {
    const char *name;                           /* in the configuration, in messages and in the status */
    const char *path_key, *level_key;           /* of the environment; NULL: none */
    umdLogLevel level;                          /* its default */
    bool own_levels;                            /* what is set for all sinks does not touch it */
    const char *rules;                          /* its default by module, NULL: level alone */
    bool console;
    size_t (*format)(struct umd_log_sink *s, struct umd_log_line *line, char *buf, size_t size);
    int (*begin_file)(struct umd_log_sink *s);  /* writes what a new file begins with; 0 or errno. NULL: nothing */
    void (*seal)(struct umd_log_sink *s);       /* completes what is in the buffer before it is written; NULL: lines are complete */
};

#define UMD_SINK_BUFFER_B 262144u
/* A file, or the console, with what is not written yet. All under the drain lock (92). */
struct umd_log_sink {
    bool enabled;
    enum umd_log_source source; /* of its path */
    int fd;                     /* -1: not open */
    char path[UMD_LOG_PATH_B];
    bool may_block;             /* the open file is a pipe, socket or terminal */
    uint64_t written_B;         /* to the open file */
    uint64_t period;            /* of rotation by date, in which it was opened */
    bool was_open, need_begin;
    bool torn;                  /* buf starts in the middle of a line, whose begin is in the open file */
    bool failing, warned, tell; /* tell: it has just begun to fail, and nobody was told */
    bool full;                  /* failing, and buf has no room any more */
    int err;
    uint64_t lost, lost_total, retry_ns;
    uint32_t rescued;           /* lines put into the emergency ring instead, since it fails */
    uint32_t lines;             /* in buf */
    size_t used, size;
    char *buf;                  /* NULL: no memory was needed, or to be had, yet */
};

/* ---- log_sinks.c. Everything here is under the drain lock (umd_log_drain_lock), the counters apart. ---- */
const struct umd_log_sink_kind *umd_log_sink_kind_of(enum umd_log_sink_id id);
struct umd_log_sink *umd_log_sink_of(enum umd_log_sink_id id);
enum umd_log_sink_id umd_log_sink_id_of(const struct umd_log_sink *s);
/* Hands the line to each sink whose level takes it. The message is decoded only if a sink wants text. */
void umd_log_sinks_put(struct umd_log_line *line);
/* A line of the log itself, to all sinks but one (NULL: to all). */
void umd_log_sinks_say(umdLogLevel level, const char *message, const struct umd_log_sink *except);
/* Writes what the sinks have gathered; one that begins to fail is told of through the others. */
void umd_log_sinks_flush(void);
/* The last flush of the process: what waits for more to come goes out as it is. */
void umd_log_sinks_finish(void);
/* Files that were moved away are opened anew at their paths. */
void umd_log_sinks_reopen(void);
/* Something is not written yet and should be tried again soon, though no line may come. */
bool umd_log_sinks_pending(void);
/* Counts anew what waits in failing sinks. */
void umd_log_sinks_recount(void);
/* After fork, in the child. */
void umd_log_sinks_child(void);
/* The text of a line, decoded if need be; valid until the next line. */
const char *umd_log_line_message(struct umd_log_line *line);
/* A line as the log itself writes it. */
struct umd_log_line umd_log_own_line(umdLogLevel level, const char *message);

/* Lines a sink could not write, and why; any thread. What waits in a failing sink's buffer counts as not written. */
void umd_log_count_sink_error(int err);
void umd_log_count_lost(uint64_t lines);
void umd_log_sinks_stats(umdLogStats *stats_out);

/* ---- log_sink_file.c: what all sinks do with bytes ---- */
void umd_log_sink_add(struct umd_log_sink *s, struct umd_log_line *line);
/* Writes what is in the buffer. A failure is counted, what was not written is kept; `tell` asks for a warning through the other sinks. */
void umd_log_sink_flush(struct umd_log_sink *s);
/* Bytes at once, before what is in the buffer: for begin_file. 0 or errno. */
int umd_log_sink_write(struct umd_log_sink *s, const char *bytes, size_t n, size_t *put_out);
/* 0 or errno. An older file is moved on (path.1 ...). What is open now is closed when the new one is there, and stays where it cannot be had. */
int umd_log_sink_open(struct umd_log_sink *s);
/* Another file in place of the one that is open, if any; errno: that one is written on as before. */
int umd_log_sink_replace(struct umd_log_sink *s, const char *path);
void umd_log_sink_close(struct umd_log_sink *s);
void umd_log_sink_reopen(struct umd_log_sink *s);
void umd_log_sink_child(struct umd_log_sink *s);

#define UMD_LOG_KEEP_MAX 1000u  /* each of them is renamed at each rotation */
/* Rotation, for all files; any thread. */
void umd_log_set_rotation(uint64_t max_B, uint32_t keep);
void umd_log_set_period(umdLogPeriod period);

/* ---- formats ---- */
size_t umd_log_format_console(struct umd_log_sink *s, struct umd_log_line *line, char *buf, size_t size);
size_t umd_log_format_text(struct umd_log_sink *s, struct umd_log_line *line, char *buf, size_t size);
size_t umd_log_format_json(struct umd_log_sink *s, struct umd_log_line *line, char *buf, size_t size);
size_t umd_log_format_binary(struct umd_log_sink *s, struct umd_log_line *line, char *buf, size_t size);
size_t umd_log_format_run(struct umd_log_sink *s, struct umd_log_line *line, char *buf, size_t size);
size_t umd_log_format_disaster(struct umd_log_sink *s, struct umd_log_line *line, char *buf, size_t size);
int umd_log_begin_text(struct umd_log_sink *s);
int umd_log_begin_binary(struct umd_log_sink *s);
void umd_log_seal_binary(struct umd_log_sink *s);
/* As a JSON string, with its quotes. */
void umd_out_json(struct umd_out *o, const char *text, size_t n);
void umd_out_time(struct umd_out *o, uint64_t real_ns);
void umd_out_record_id(struct umd_out *o, umdRecordId id);
/* Disaster log: writes the records whose story has ended, or all. */
void umd_log_disaster_settle(struct umd_log_sink *s, bool all);
/*
 * The writer's way, without the drain lock: a story names functions, which are looked up under the loader's lock. dlopen and dlclose hold that one
 * while constructors and destructors run, which may wait for what they have logged.
 */
void umd_log_disaster_tell(struct umd_log_sink *s);
bool umd_log_disaster_is_telling(void);
bool umd_log_disaster_waits(void);
void umd_log_disaster_child(void);

#endif
