/* SPDX-License-Identifier: MIT */
/* log.c - entry points of the log. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log_encode.h"
#include "log_internal.h"

static _Atomic(int) level = UMD_LOG_WARN;

void umd_log_ring_orphan(struct umd_log_ring *ring) { (void)ring; }
bool umd_log_expand_path(char *out, size_t size, const char *path) { return snprintf(out, size, "%s", path) < (int)size; }
void umd_log_module_register(umdLogModule *module) { atomic_store(&module->level, atomic_load(&level)); }
void umd_log_module_unregister(umdLogModule *module) { (void)module; }
void umd_log_text(const struct umd_log_text *text)
{
    char line[1500];
    int n = snprintf(line, sizeof(line), "petrel: %s: %s (%s %s:%u)\n", text->module, text->message, text->func, text->file, text->line);
    ssize_t ignored = umd_sys()->write(STDERR_FILENO, line, (size_t)(n < (int)sizeof(line) ? n : (int)sizeof(line) - 1));
    (void)ignored;
}
void umd_log_emit(const umdLogSite *site, ...)
{
    char message[1024];
    va_list ap;
    va_start(ap, site);
    vsnprintf(message, sizeof(message), site->fmt, ap);
    va_end(ap);
    umd_log_text(&(struct umd_log_text){ .level = site->level, .module = site->module->name, .func = site->func, .file = site->file,
                                         .line = site->line, .message = message });
}
void umd_log_step_reset(void) {}
umdStatus umdLogSetLevels(const char *spec) { (void)spec; return UMD_SUCCESS; }
void umdLogMessage(umdLogLevel lv, const char *module, uint64_t context_id, const char *trace_id, const char *message)
{
    umd_log_text(&(struct umd_log_text){ .level = lv, .module = module, .func = "", .file = "", .context_id = context_id, .trace_id = trace_id, .message = message });
}
void umdLogFlush(uint32_t timeout_ms) { (void)timeout_ms; }
void umdLogGetStats(umdLogStats *stats_out) { *stats_out = (umdLogStats){ 0 }; }
