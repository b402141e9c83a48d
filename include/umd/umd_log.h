/* SPDX-License-Identifier: MIT */
/* umd_log.h - logging of Petrel, open to frameworks (C3). Part of libumd_diag.so. */
#ifndef UMD_LOG_H
#define UMD_LOG_H

#include <stdatomic.h>
#include <stdint.h>

#include <umd/umd_diag.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum umdLogLevel {
    UMD_LOG_OFF = 0,
    UMD_LOG_ERROR,
    UMD_LOG_WARN,
    UMD_LOG_INFO,
    UMD_LOG_DEBUG,
    UMD_LOG_TRACE,
} umdLogLevel;

/** Ceiling at compile time; calls above it vanish. UMD_DEBUG_ENABLE (meson option umd_debug) lifts it to TRACE. */
#ifndef UMD_LOG_CEILING
#  if defined(UMD_DEBUG_ENABLE) && UMD_DEBUG_ENABLE
#    define UMD_LOG_CEILING UMD_LOG_TRACE
#  else
#    define UMD_LOG_CEILING UMD_LOG_INFO
#  endif
#endif

/** One log module ("umd.mem"); one static object each, registered on first use by UMD_LOG_MODULE's constructor. */
typedef struct umdLogModule {
    const char *name;
    _Atomic(int) level;          /**< highest level that any sink wants; read on the hot path */
    struct umdLogModule *next;   /**< owned by the registry */
} umdLogModule;

/** A call site: static, in the ELF section "umd_log_sites" (one per UMD_LOG). Level and text never change. */
typedef struct umdLogSite {
    umdLogModule *module;
    const char *func;
    const char *file;
    const char *fmt;
    uint32_t line;
    uint8_t level;
} umdLogSite;

UMD_API void umd_log_module_register(umdLogModule *module);
UMD_API void umd_log_module_unregister(umdLogModule *module);
UMD_API void umd_log_emit(const umdLogSite *site, ...);

/** Put once in a .c file (file scope): names the module that UMD_LOG and UMD_FAIL of this file belong to. */
#define UMD_LOG_MODULE(name_)                                                                             \
    static umdLogModule umd_log_this_module = { .name = (name_), .level = UMD_LOG_INFO };                 \
    __attribute__((constructor)) static void umd_log_ctor(void) { umd_log_module_register(&umd_log_this_module); }  \
    __attribute__((destructor)) static void umd_log_dtor(void) { umd_log_module_unregister(&umd_log_this_module); } \
    struct umdLogModule

/** UMD_LOG(UMD_LOG_INFO, "queue created id=%u", id): a few words, then key=value figures. Never blocks, never fails. */
#define UMD_LOG(level_, fmt_, ...)                                                                        \
    do {                                                                                                  \
        if ((level_) <= UMD_LOG_CEILING &&                                                                \
            (int)(level_) <= atomic_load_explicit(&umd_log_this_module.level, memory_order_relaxed)) {    \
            static const umdLogSite umd_log_site_ __attribute__((section("umd_log_sites"), used)) = {     \
                .module = &umd_log_this_module, .func = __func__, .file = __FILE_NAME__, .fmt = (fmt_),   \
                .line = __LINE__, .level = (uint8_t)(level_),                                             \
            };                                                                                            \
            if (0) umd_log_check_format(fmt_, ##__VA_ARGS__);                                             \
            umd_log_emit(&umd_log_site_, ##__VA_ARGS__);                                                  \
        }                                                                                                 \
    } while (0)

static inline __attribute__((format(printf, 1, 2))) void umd_log_check_format(const char *fmt, ...) { (void)fmt; }

/* ---- Control: any thread, while running. ---- */

/** "umd.mem=trace,kmd=debug,warn": comma list; a bare level is for all modules, a prefix covers what is below it. UMD_ERR_CONFIG_VALUE. */
UMD_API UMD_MUST_CHECK umdStatus umdLogSetLevels(const char *spec);
/** As umdLogSetLevels, for the console alone; goes before what umdLogSetLevels says. */
UMD_API UMD_MUST_CHECK umdStatus umdLogSetConsole(const char *spec);

typedef enum umdLogFormat {
    UMD_LOG_FORMAT_TEXT = 0,
    UMD_LOG_FORMAT_JSON,  /**< one object per line, names of OpenTelemetry's log data model */
} umdLogFormat;
/**
 * Opens the log file of that format, in place of the one before; "%p" in the path becomes the process id. A file that is there
 * already is kept as path.1. `levels` as in umdLogSetLevels, for this file alone; NULL: INFO, or what umdLogSetLevels says.
 * UMD_ERR_RES_FILE, UMD_ERR_CONFIG_VALUE; then nothing is opened.
 */
UMD_API UMD_MUST_CHECK umdStatus umdLogOpenFile(const char *path, umdLogFormat format, const char *levels);
UMD_API void umdLogCloseFile(umdLogFormat format);
/** Files are moved to path.1, path.2, ... before they grow beyond max_B (0: never); so many are kept. At first 128 MiB and 5. */
UMD_API void umdLogSetRotation(uint64_t max_B, uint32_t keep);
/** A line of a framework or communication library into the same stream. `message` is copied. context_id 0 and trace_id NULL: none. */
UMD_API void umdLogMessage(umdLogLevel level, const char *module, uint64_t context_id, const char *trace_id, const char *message);
/** Everything logged before the call is with the sinks when it returns; at most timeout_ms. */
UMD_API void umdLogFlush(uint32_t timeout_ms);

typedef struct umdLogStats {
    uint64_t records, dropped, sink_errors, emergency;
    uint64_t lost;         /**< lines that a sink could not write, counted per sink */
    int32_t sink_errno;    /**< why, as of the last sink error; 0: none */
    uint32_t reserved;
} umdLogStats;
UMD_API void umdLogGetStats(umdLogStats *stats_out);

#ifdef __cplusplus
}
#endif
#endif /* UMD_LOG_H */
