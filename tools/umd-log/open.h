/* SPDX-License-Identifier: MIT */
/* open.h - opens a log file and finds out what it is: lines, compressed lines, or binary. */
#ifndef UMD_LOG_OPEN_H
#define UMD_LOG_OPEN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "gunzip.h"
#include "log_binary.h"

/* Of a pipe, and of what is compressed, the first bytes are read to look at them: they come first of all. */
struct log_file {
    int fd;                         /* of lines, and to see whether the path leads elsewhere now; -1: none */
    struct gunzip *gz;              /* NULL: not compressed, or not any more */
    struct umd_log_binary *binary;  /* NULL: lines */
    bool stream;                    /* a pipe or a device: its end is for good */
    bool whole;                     /* compressed, or copied out of a stream: it does not grow */
    bool damaged;                   /* it was compressed, and is copied up to where that is damaged */
    dev_t dev;                      /* of the file that was opened */
    ino_t ino;
    char first[8];
    size_t first_B;
};

/* "-" is standard input. 0 or errno; EBADMSG: a binary log whose head is damaged, or of a later version. */
int log_file_open(struct log_file *f, const char *path);
void log_file_close(struct log_file *f);

#endif
