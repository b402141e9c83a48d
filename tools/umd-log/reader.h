/* SPDX-License-Identifier: MIT */
/* reader.h - records out of one log file of any format, compressed or not; what is no record is counted. */
#ifndef UMD_LOG_READER_H
#define UMD_LOG_READER_H

#include <sys/types.h>

#include "parse.h"

#define LOG_LINE_MAX (256u << 10) /* longer lines are cut */

struct log_counts {
    uint64_t lines, records;
    uint64_t comments;      /* lines that begin with '#', and empty ones */
    uint64_t foreign;       /* no record of ours */
    uint64_t first_foreign; /* its line, from 1 */
    uint64_t too_long;      /* cut */
    uint64_t inner;         /* of a record of several lines, but the first: disaster log */
    uint64_t nul_B;         /* bytes that are NUL: left by a crash of the host */
    uint64_t damaged;       /* of a binary or compressed file: what could not be decoded */
    bool torn;              /* no newline at the end */
    bool cut;               /* compressed, and damaged or cut off: what follows that place is missing; counted in `damaged`, too */
};

struct log_reader;

/* "-" is standard input. NULL: *err_out is the errno. */
struct log_reader *log_reader_open(const char *path, int *err_out);
void log_reader_close(struct log_reader *r); /* NULL is fine */
/*
 * The next record. LOG_READ_END: nothing more for now; in a growing file a later call may find more (an unfinished last line is kept
 * back while `growing`, else returned as torn; so is the last record of a disaster log, until nothing was added for a second). LOG_READ_ERROR: log_reader_errno tells.
 */
enum log_read { LOG_READ_RECORD, LOG_READ_END, LOG_READ_ERROR };
enum log_read log_reader_next(struct log_reader *r, struct log_rec *rec, bool growing);
/* What is wrong with a file that cannot be opened. */
const char *log_reader_why(int err);
int log_reader_errno(const struct log_reader *r);
const struct log_counts *log_reader_counts(const struct log_reader *r);
const struct log_header *log_reader_header(const struct log_reader *r);
/* True: nothing can be added to it: it is compressed, or a stream that has ended. */
bool log_reader_is_whole(const struct log_reader *r);
/* True: the path, under which it was begun, leads to another file now (it was rotated), or the file was cut short. */
bool log_reader_moved(const struct log_reader *r, const char *path);
bool log_reader_is(const struct log_reader *r, dev_t dev, ino_t ino);
/* No name leads to it any more. */
bool log_reader_is_removed(const struct log_reader *r);
/* To read no further than about so many bytes, as if it ended there. */
void log_reader_limit(struct log_reader *r, uint64_t size_B);

#endif
