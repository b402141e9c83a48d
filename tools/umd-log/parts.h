/* SPDX-License-Identifier: MIT */
/* parts.h - which files beside a log are its rotated parts, which are of earlier runs, which of forked children. */
#ifndef UMD_LOG_PARTS_H
#define UMD_LOG_PARTS_H

#include "set.h"

struct log_parts {
    char **path;            /* oldest first; the file itself is last */
    uint32_t count;
    uint32_t older;         /* path.N of earlier runs that were left out */
    uint32_t children;      /* path.PID of forked children */
    char child[64];         /* one of them, its last part */
};

/* False: no memory; what was found is then freed. */
bool log_parts_find(struct log_parts *parts, const char *path, enum log_rotated rotated);
void log_parts_finish(struct log_parts *parts);

#endif
