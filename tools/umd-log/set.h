/* SPDX-License-Identifier: MIT */
/* set.h - the records of many log files, each with its rotated parts, on one axis of real time. */
#ifndef UMD_LOG_SET_H
#define UMD_LOG_SET_H

#include "reader.h"

struct log_set;

/* Which of path.1, path.2, ... are read before path: those of the same run, all, or none. */
enum log_rotated { LOG_ROTATED_RUN, LOG_ROTATED_ALL, LOG_ROTATED_NONE };

/*
 * Opens every file, or none: NULL after one line on stderr. Each may be named once. With one file named the order is that of the file;
 * records of one process that were written out of order by a little are put in order.
 */
struct log_set *log_set_open(const char *const *paths, uint32_t count, enum log_rotated rotated);
/* The first path that is named a second time; NULL: none is. */
const char *log_set_twice(const char *const *paths, uint32_t count);
void log_set_close(struct log_set *set); /* NULL is fine */

/* The next record, which stays valid until the call after; NULL at the end. */
const struct log_rec *log_set_next(struct log_set *set);
/* Back to the start of all files; false (after one line on stderr) where that cannot be: standard input, or a file that is gone. */
bool log_set_rewind(struct log_set *set);
/*
 * Like log_set_next, but goes on as the file grows, across rotation; NULL where nothing can come any more (it is compressed, or a stream that
 * has ended), when *stop is set or the output fails, and without `wait` when all that is there now has been handed out. One file only.
 */
const struct log_rec *log_set_follow(struct log_set *set, const volatile int *stop, bool wait);

uint32_t log_set_count(const struct log_set *set);
const char *log_set_path(const struct log_set *set, uint32_t source);
/* As short as tells the files apart. */
const char *log_set_label(const struct log_set *set, uint32_t source);
/* Of all parts that have been read so far. */
struct log_counts log_set_counts(const struct log_set *set, uint32_t source);
/* The header of the newest part that has one. */
const struct log_header *log_set_header(const struct log_set *set, uint32_t source);
/* Lines on stderr about what was no record, left out, or could not be read. Value: false if something could not be read, or is no log at all. */
bool log_set_report(const struct log_set *set);

#endif
