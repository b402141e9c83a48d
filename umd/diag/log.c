/* SPDX-License-Identifier: MIT */
/* log.c - lines of others; start, end, and fork of the log. */
#include <string.h>

#include "emergency.h"
#include "log_control_serve.h"
#include "log_internal.h"
#include "snapshot_internal.h"

UMD_LOG_MODULE("diag.log");

void umdLogMessage(umdLogLevel level, const char *module, uint64_t context_id, const char *trace_id, const char *message)
{
    if (!module || !message || level < UMD_LOG_ERROR || level > UMD_LOG_TRACE || level > umd_log_level_max(module))
        return;
    if (level == UMD_LOG_ERROR) /* as all errors, before the log, which may have no room */
        umd_emergency_put(&(struct umd_emergency_note){ .module = module, .context_id = context_id, .message = message });
    umd_log_text(&(struct umd_log_text){ .level = level, .module = module, .context_id = context_id, .trace_id = trace_id, .message = message });
}

static void prepare(void)
{
    umd_log_control_atfork(0);
    umd_log_levels_atfork(0);
    umd_emergency_atfork(0);
    umd_log_writer_atfork(0); /* a sink may look up a record while it writes */
    umd_record_store_atfork(0);
    umd_log_rules_atfork(0);
    umd_fault_atfork(0);
}

static void after(int stage)
{
    umd_fault_atfork(stage);
    umd_log_rules_atfork(stage);
    umd_record_store_atfork(stage);
    umd_log_writer_atfork(stage);
    umd_emergency_atfork(stage);
    umd_log_levels_atfork(stage);
    umd_log_control_atfork(stage);
}

static void parent(void) { after(1); }
static void child(void)
{
    umd_crash_atfork_child();
    after(2);
}

__attribute__((constructor(110))) static void log_init(void)
{
    umd_log_writer_init();
    pthread_atfork(prepare, parent, child);
    umd_log_settings_init();
    umd_emergency_init();
    umd_log_settings_report();
    umd_crash_init();
}

__attribute__((destructor(110))) static void log_fini(void)
{
    umd_log_writer_fini();
    umd_emergency_fini();
}
