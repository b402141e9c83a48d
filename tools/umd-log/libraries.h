/* SPDX-License-Identifier: MIT */
/* libraries.h - the libraries of Petrel that belong to this tool, or that a process has loaded. */
#ifndef UMD_LOG_LIBRARIES_H
#define UMD_LOG_LIBRARIES_H

#include <stdbool.h>
#include <stdint.h>

struct library_list {
    char **path;
    uint32_t count, size;
};

/* Those that lie where this tool's own libumd_diag.so was loaded from. */
void libraries_own(struct library_list *list);
/* All files that a process has mapped to run code of. 0 or errno. */
int libraries_of(uint32_t pid, struct library_list *list);
void libraries_finish(struct library_list *list);

#endif
