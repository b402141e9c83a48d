/* SPDX-License-Identifier: MIT */
/* log_sink_console.c - one short line per record on stderr; coloured on a terminal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log_sinks.h"

static bool wants_colour(void)
{
    static int known; /* under the drain lock */

    if (!known) {
        const char *term = getenv("TERM"), *no = getenv("NO_COLOR");
        known = isatty(STDERR_FILENO) && (!no || !*no) && term && strcmp(term, "dumb") != 0 ? 2 : 1;
    }
    return known == 2;
}

size_t umd_log_format_console(struct umd_log_sink *s, struct umd_log_line *line, char *buf, size_t size)
{
    static const char *const colour[] = { "", "\033[31m", "\033[33m", "", "\033[2m", "\033[2m" };
    bool coloured = wants_colour();
    char where[128] = "";

    (void)s;
    if (line->line)
        snprintf(where, sizeof(where), " [%s %s:%u]", line->func, line->file, line->line);
    int n = snprintf(buf, size, "petrel %s%-5s%s %s: %s%s\n", coloured ? colour[line->level] : "", umd_log_level_name(line->level),
                     coloured ? "\033[0m" : "", line->module, umd_log_line_message(line), where);
    return n < 0 ? 0 : (size_t)n;
}
