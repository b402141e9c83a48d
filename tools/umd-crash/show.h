/* SPDX-License-Identifier: MIT */
/* show.h - a crash as a story for a person, and as JSON for a program. */
#ifndef CRASH_SHOW_H
#define CRASH_SHOW_H

#include <stdio.h>

#include "symbols.h"

void crash_show(FILE *to, const char *path, const struct crash *c, const struct crash_symbols *s);
/* False: out of memory. */
bool crash_show_json(FILE *to, const char *path, const struct crash *c, const struct crash_symbols *s);

#endif
