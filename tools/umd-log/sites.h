/* SPDX-License-Identifier: MIT */
/* sites.h - the call sites of the log in a library or program, read from its ELF section; nothing is loaded or run. */
#ifndef UMD_LOG_SITES_H
#define UMD_LOG_SITES_H

#include <stdbool.h>
#include <stdint.h>

struct site {
    char *module, *func, *file;
    char *fmt;              /* NULL: chosen at run time */
    uint32_t line;
    int32_t code;           /* of a site that raises; 0: chosen at run time */
    uint8_t kind;           /* umdLogSiteKind */
    uint8_t level;          /* of a site that raises: of its record's line; 0: known at run time alone */
    bool compiled;          /* false: above the ceiling of its build */
};

struct site_list {
    struct site *site;
    uint32_t count, size;
};

enum sites_result { SITES_DONE, SITES_NONE, SITES_NO_ELF, SITES_UNREADABLE, SITES_DAMAGED, SITES_NO_MEMORY };
/* Adds those of the file; SITES_NONE: it is ELF and has no such section. *err_out: errno of SITES_UNREADABLE. */
enum sites_result sites_read(const char *path, struct site_list *list, int *err_out);
void sites_finish(struct site_list *list);

#endif
