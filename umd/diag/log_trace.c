/* SPDX-License-Identifier: MIT */
/* log_trace.c - W3C trace context: TRACEPARENT parsed strictly, and what of it a line carries. */
#include <string.h>

#include "log_trace.h"

static char process_trace[33], process_span[17], process_flags[3];

static bool hex_field(const char *s, size_t n, bool zero_allowed)
{
    return strspn(s, "0123456789abcdef") >= n && (zero_allowed || strspn(s, "0") < n);
}

/*
 * Version 00 has four fields and no more; a later version (not ff) may have more after a dash, and its first four are read.
 * All-zero ids mean "invalid" and are refused.
 */
bool umd_log_trace_parse(const char *s, char trace_id[33], char span_id[17], char flags[3])
{
    size_t n = strlen(s);

    if (n < 55 || s[2] != '-' || s[35] != '-' || s[52] != '-' || !hex_field(s, 2, true) || !hex_field(s + 3, 32, false) ||
        !hex_field(s + 36, 16, false) || !hex_field(s + 53, 2, true))
        return false;
    if (memcmp(s, "ff", 2) == 0 || (memcmp(s, "00", 2) == 0 ? n != 55 : n > 55 && s[55] != '-'))
        return false;
    umd_copy_str(trace_id, 33, s + 3);
    umd_copy_str(span_id, 17, s + 36);
    umd_copy_str(flags, 3, s + 53);
    return true;
}

bool umd_log_trace_init(const char *traceparent)
{
    return umd_log_trace_parse(traceparent, process_trace, process_span, process_flags);
}

struct umd_log_trace umd_log_trace_process(void)
{
    if (!process_trace[0])
        return (struct umd_log_trace){ 0 };
    return (struct umd_log_trace){ process_trace, process_span, process_flags };
}

struct umd_log_trace umd_log_trace_of(const struct umd_log_line *line)
{
    if (line->trace_id) /* "": known to have none */
        return (struct umd_log_trace){ .trace_id = line->trace_id[0] ? line->trace_id : NULL, .span_id = line->span_id, .flags = line->trace_flags };
    return umd_log_trace_process();
}
