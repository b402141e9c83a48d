/* SPDX-License-Identifier: MIT */
/* open.h - opens a log file and finds out what it is: lines, compressed lines, or binary. */
#ifndef UMD_LOG_OPEN_H
#define UMD_LOG_OPEN_H

#include <stddef.h>
#include <zlib.h>

#include "log_binary.h"

/* Of a pipe the first bytes are read to look at them: they come first of all. */
struct log_file {
    int fd;                         /* of lines, and to see whether the path leads elsewhere now; -1: none */
    gzFile gz;                      /* NULL: not compressed */
    struct umd_log_binary *binary;  /* NULL: lines */
    char first[8];
    size_t first_B;
};

/* "-" is standard input. 0 or errno; EBADMSG: a binary log whose head is damaged, or of a later version. */
int log_file_open(struct log_file *f, const char *path);
void log_file_close(struct log_file *f);

#endif
