/* SPDX-License-Identifier: MIT */
/* log_trace.h - W3C trace context: of the process or of a thread, and carried in every line. */
#ifndef UMD_LOG_TRACE_H
#define UMD_LOG_TRACE_H

#include "log_internal.h"

struct umd_log_trace {
    const char *trace_id, *span_id, *flags; /* NULL: none. flags: two hex digits */
};

/* "00-<32 hex>-<16 hex>-<2 hex>", as the W3C recommendation says; nothing else is taken. */
bool umd_log_trace_parse(const char *traceparent, char trace_id[33], char span_id[17], char flags[3]);
/* Of the process, as TRACEPARENT said. Set once, before there are lines. False: malformed, ignored. */
bool umd_log_trace_init(const char *traceparent);
struct umd_log_trace umd_log_trace_process(void);
/* What a line carries: its own or its thread's trace id goes before the process's, and then the process's span is not its span. */
struct umd_log_trace umd_log_trace_of(const struct umd_log_line *line);

#endif
