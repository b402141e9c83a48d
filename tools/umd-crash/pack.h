/* SPDX-License-Identifier: MIT */
/* pack.h - one file of all that tells of a crash, and the command that hands it on. */
#ifndef CRASH_PACK_H
#define CRASH_PACK_H

#include "symbols.h"

struct pack_options {
    const char *output;         /* NULL: CRASHFILE.tar.gz in the working directory */
    const char *const *logs;    /* NULL-ended; NULL: none */
    const char *emergency;      /* file of the emergency ring; NULL: it is looked for */
    const char *command;        /* NULL: none */
    int timeout_s;
    bool json;
};

/* The tool's exit status; what went wrong is on standard error. */
int crash_pack(const char *path, const struct crash *c, const struct crash_symbols *s, const struct pack_options *options);

#endif
