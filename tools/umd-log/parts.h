/* SPDX-License-Identifier: MIT */
/* parts.h - which files beside a log are its rotated parts, which are of earlier runs, which of forked children; and which follows which. */
#ifndef UMD_LOG_PARTS_H
#define UMD_LOG_PARTS_H

#include <sys/types.h>

#include "set.h"

/* A file as it was found; a rotation gives it the next name, and it stays the same file. */
struct log_part {
    char *path;
    uint32_t number;        /* of path.N; 0: the log itself */
    bool known;             /* by dev and ino; false: not there, or no regular file */
    dev_t dev;
    ino_t ino;
};

struct log_parts {
    struct log_part *part;  /* oldest first; the file itself is last */
    uint32_t count;
    uint32_t older;         /* path.N of earlier runs that were left out */
    uint32_t children;      /* path.PID of forked children */
    char child[64];         /* one of them, its last part */
};

/* All that is there at one moment, also while it is rotated. False: no memory; what was found is then freed. */
bool log_parts_find(struct log_parts *parts, const char *path, enum log_rotated rotated);
/* Opens one under the name that it has by now. NULL: *err_out is the errno; ESTALE: it was there, and is no more. */
struct log_reader *log_part_open(const struct log_part *part, int *err_out);
/*
 * For a reader of `path` or of its path.N that is at its end, and no more at `path`: opens what was begun after it. NULL: nothing, or not now.
 * last_ns: real time of its last record. *gap_out: what was read is removed, and the next of those left may not be the next that was.
 */
struct log_reader *log_parts_next(const char *path, const struct log_reader *r, uint64_t last_ns, bool *gap_out);
void log_parts_finish(struct log_parts *parts);

#endif
