/* SPDX-License-Identifier: MIT */
/* log_trace.c - W3C trace context: of the process by TRACEPARENT, of a thread by call; and what of it a line carries. */
#include <stdio.h>
#include <string.h>

#include "log_trace.h"

UMD_LOG_MODULE("diag.log");

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

umdStatus umdLogSetTrace(const char *traceparent)
{
    struct umd_log_trace_ids ids = { 0 };
    struct umd_diag_thread *t = umd_diag_thread_get();

    if (traceparent && *traceparent && !umd_log_trace_parse(traceparent, ids.trace_id, ids.span_id, ids.flags)) {
        struct umd_api_call call = { 0 };
        umd_api_enter(&call, "umdLogSetTrace", "traceparent=\"%.64s\"", traceparent);
        return umd_api_exit(&call, UMD_FAIL(UMD_ERR_CONFIG_VALUE, "key=traceparent value=\"%.64s\" expected=\"00-<32 hex>-<16 hex>-<2 hex>\"",
                                            traceparent));
    }
    if (!t)
        return UMD_SUCCESS; /* without memory for its state the thread has no lines either */
    t->trace = ids;
    t->unsettled = true;
    return UMD_SUCCESS;
}

void umdLogGetTrace(char traceparent_out[56])
{
    const struct umd_diag_thread *t = umd_diag_thread_peek();

    traceparent_out[0] = '\0';
    if (t && t->trace.trace_id[0])
        snprintf(traceparent_out, 56, "00-%s-%s-%s", t->trace.trace_id, t->trace.span_id, t->trace.flags);
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
