/* SPDX-License-Identifier: MIT */
/* log_sinks.h - where lines go: the table of sinks, fan-out by level, and what the log says about itself. */
#ifndef UMD_LOG_SINKS_H
#define UMD_LOG_SINKS_H

#include "log_internal.h"

/* Everything here is under the drain lock (umd_log_drain_lock), the counters apart. */

/* Hands the line to each sink whose level takes it. The message is decoded only if a sink wants text. */
void umd_log_sinks_put(struct umd_log_line *line);
/* A line of the log itself, to all sinks but one (NULL: to all). */
void umd_log_sinks_say(umdLogLevel level, const char *message, const struct umd_log_sink *except);
/* Writes what the sinks have gathered; one that begins to fail is told of through the others. */
void umd_log_sinks_flush(void);
struct umd_log_sink *umd_log_sink_of(enum umd_log_sink_id id);
/* After fork, in the child. */
void umd_log_sinks_child(void);

/* The text of a line, decoded if need be; valid until the next line. */
const char *umd_log_line_message(struct umd_log_line *line);

/* Lines a sink could not write, and why; any thread. */
void umd_log_count_sink_error(uint64_t lines, int err);
void umd_log_sinks_stats(umdLogStats *stats_out);

#endif
