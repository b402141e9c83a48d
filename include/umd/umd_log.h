/* SPDX-License-Identifier: MIT */
/* umd_log.h - logging of Petrel, open to frameworks (C3). Part of libumd_diag.so. */
#ifndef UMD_LOG_H
#define UMD_LOG_H

#ifndef __cplusplus
#  include <stdatomic.h>
#endif
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

/* ---- Call sites: C only; C++ logs by umdLogMessage ---- */
#ifndef __cplusplus

#define UMD_LOG_MODULE_SINKS 8

/** One log module ("umd.mem"); one static object each, registered on first use by UMD_LOG_MODULE's constructor. */
typedef struct umdLogModule {
    const char *name;
    _Atomic(int) level;          /**< highest level that any sink wants; read on the hot path */
    struct umdLogModule *next;   /**< owned by the registry */
    _Atomic(uint8_t) sink_level[UMD_LOG_MODULE_SINKS]; /**< level of each sink plus one; 0: not registered yet. Read by the writer */
} umdLogModule;

#define UMD_LOG_ARGS_MAX 16

/** What a call site does. */
typedef enum umdLogSiteKind {
    UMD_SITE_LOG = 0,            /**< logs a line: UMD_LOG */
    UMD_SITE_RAISE,              /**< raises an error record, whose begin is a line: UMD_FAIL */
    UMD_SITE_ABSORB,             /**< ends a record that the driver dealt with, which is a line: UMD_ABSORB */
} umdLogSiteKind;
/** Level of a site that raises: by the severity of its code, which is in the table of codes; or known at run time alone. */
#define UMD_SITE_LEVEL_OF_CODE 0u
#define UMD_SITE_LEVEL_AT_RUN_TIME 255u

/**
 * A call site: static, in the ELF section "umd_log_sites" (one per UMD_LOG, UMD_FAIL, UMD_ABSORB; 64 bytes each, so that the section is an array).
 * Level and text never change; the id is given when the site's library registers.
 */
typedef struct umdLogSite {
    umdLogModule *module;
    const char *func;
    const char *file;
    const char *fmt;             /**< of a site that raises: its figures; of one that absorbs: the reason, NULL: chosen at run time */
    uint32_t line;
    uint32_t id;                 /**< in this process; 0: not registered yet */
    uint8_t level;               /**< umdLogLevel, or one of UMD_SITE_LEVEL_ */
    uint8_t arg_count;
    uint8_t has_strings;         /**< an argument is text, which has to be copied */
    uint8_t ceiling;             /**< UMD_LOG_CEILING of its file: with a higher level it is compiled out; 0: not told */
    uint8_t kind;                /**< umdLogSiteKind */
    uint8_t reserved[3];
    int32_t code;                /**< what it raises, an umdStatus; 0: chosen at run time, or nothing */
    uint8_t reserved2[12];
} __attribute__((aligned(64))) umdLogSite;

/** Sites of one linked object: from UMD_LOG_MODULE's constructor, and back by its destructor. May come several times per range. */
UMD_API void umd_log_module_register(umdLogModule *module, umdLogSite *sites, umdLogSite *sites_end);
UMD_API void umd_log_module_unregister(umdLogModule *module, umdLogSite *sites);
/**
 * Takes site->arg_count arguments, encoded by UMD_LOG_BITS. Safe from any thread, and from a signal handler once the log is up: after umdInit
 * or any line of the process; in a child of fork after any line of the child, which starts the log's thread. The handler's thread need not have
 * logged before.
 */
UMD_API void umd_log_emit(const umdLogSite *site, const uint64_t *args);

extern umdLogSite __start_umd_log_sites[] __attribute__((weak, visibility("hidden")));
extern umdLogSite __stop_umd_log_sites[] __attribute__((weak, visibility("hidden")));

/** Put once in a .c file (file scope): names the module that UMD_LOG and UMD_FAIL of this file belong to. */
#define UMD_LOG_MODULE(name_)                                                                             \
    static umdLogModule umd_log_this_module = { .name = (name_), .level = UMD_LOG_INFO };                 \
    __attribute__((constructor)) static void umd_log_ctor(void)                                           \
    {                                                                                                     \
        umd_log_module_register(&umd_log_this_module, __start_umd_log_sites, __stop_umd_log_sites);       \
    }                                                                                                     \
    __attribute__((destructor)) static void umd_log_dtor(void)                                            \
    {                                                                                                     \
        umd_log_module_unregister(&umd_log_this_module, __start_umd_log_sites);                           \
    }                                                                                                     \
    struct umdLogModule

/* An argument as 64 bits: numbers by value, text by address until the call copies it. Other pointers are cast to void * by the caller, as %p asks. */
static inline uint64_t umd_log_bits_int(long long v) { return (uint64_t)v; }
static inline uint64_t umd_log_bits_text(const char *s) { return (uint64_t)(uintptr_t)s; }
static inline uint64_t umd_log_bits_pointer(const volatile void *p) { return (uint64_t)(uintptr_t)p; }
static inline uint64_t umd_log_bits_double(double v)
{
    uint64_t bits;
    __builtin_memcpy(&bits, &v, sizeof(bits));
    return bits;
}
#define UMD_LOG_BITS(x_)                                                                                  \
    _Generic((x_), float: umd_log_bits_double, double: umd_log_bits_double, long double: umd_log_bits_double, \
             char *: umd_log_bits_text, const char *: umd_log_bits_text, void *: umd_log_bits_pointer,    \
             const void *: umd_log_bits_pointer, default: umd_log_bits_int)(x_)
#define UMD_LOG_IS_TEXT(x_) _Generic((x_), char *: 1, const char *: 1, default: 0)

/* Up to UMD_LOG_ARGS_MAX arguments, each through a macro: UMD_LOG_BITS with commas, UMD_LOG_IS_TEXT with |. */
#define UMD_LOG_CAT_(a_, b_) a_##b_
#define UMD_LOG_CAT(a_, b_) UMD_LOG_CAT_(a_, b_)
#define UMD_LOG_PICK_(a0_, a1_, a2_, a3_, a4_, a5_, a6_, a7_, a8_, a9_, a10_, a11_, a12_, a13_, a14_, a15_, a16_, n_, ...) n_
#define UMD_LOG_COUNT(...) UMD_LOG_PICK_(0, ##__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define UMD_LOG_EACH(...) UMD_LOG_CAT(UMD_LOG_EACH_, UMD_LOG_COUNT(__VA_ARGS__))(__VA_ARGS__)
#define UMD_LOG_TEXTS(...) UMD_LOG_CAT(UMD_LOG_TEXTS_, UMD_LOG_COUNT(__VA_ARGS__))(__VA_ARGS__)
#define UMD_LOG_EACH_0()
#define UMD_LOG_TEXTS_0() 0
#define UMD_LOG_EACH_1(a_) UMD_LOG_BITS(a_),
#define UMD_LOG_TEXTS_1(a_) UMD_LOG_IS_TEXT(a_)
#define UMD_LOG_EACH_2(a_, ...) UMD_LOG_BITS(a_), UMD_LOG_EACH_1(__VA_ARGS__)
#define UMD_LOG_TEXTS_2(a_, ...) UMD_LOG_IS_TEXT(a_) | UMD_LOG_TEXTS_1(__VA_ARGS__)
#define UMD_LOG_EACH_3(a_, ...) UMD_LOG_BITS(a_), UMD_LOG_EACH_2(__VA_ARGS__)
#define UMD_LOG_TEXTS_3(a_, ...) UMD_LOG_IS_TEXT(a_) | UMD_LOG_TEXTS_2(__VA_ARGS__)
#define UMD_LOG_EACH_4(a_, ...) UMD_LOG_BITS(a_), UMD_LOG_EACH_3(__VA_ARGS__)
#define UMD_LOG_TEXTS_4(a_, ...) UMD_LOG_IS_TEXT(a_) | UMD_LOG_TEXTS_3(__VA_ARGS__)
#define UMD_LOG_EACH_5(a_, ...) UMD_LOG_BITS(a_), UMD_LOG_EACH_4(__VA_ARGS__)
#define UMD_LOG_TEXTS_5(a_, ...) UMD_LOG_IS_TEXT(a_) | UMD_LOG_TEXTS_4(__VA_ARGS__)
#define UMD_LOG_EACH_6(a_, ...) UMD_LOG_BITS(a_), UMD_LOG_EACH_5(__VA_ARGS__)
#define UMD_LOG_TEXTS_6(a_, ...) UMD_LOG_IS_TEXT(a_) | UMD_LOG_TEXTS_5(__VA_ARGS__)
#define UMD_LOG_EACH_7(a_, ...) UMD_LOG_BITS(a_), UMD_LOG_EACH_6(__VA_ARGS__)
#define UMD_LOG_TEXTS_7(a_, ...) UMD_LOG_IS_TEXT(a_) | UMD_LOG_TEXTS_6(__VA_ARGS__)
#define UMD_LOG_EACH_8(a_, ...) UMD_LOG_BITS(a_), UMD_LOG_EACH_7(__VA_ARGS__)
#define UMD_LOG_TEXTS_8(a_, ...) UMD_LOG_IS_TEXT(a_) | UMD_LOG_TEXTS_7(__VA_ARGS__)
#define UMD_LOG_EACH_9(a_, ...) UMD_LOG_BITS(a_), UMD_LOG_EACH_8(__VA_ARGS__)
#define UMD_LOG_TEXTS_9(a_, ...) UMD_LOG_IS_TEXT(a_) | UMD_LOG_TEXTS_8(__VA_ARGS__)
#define UMD_LOG_EACH_10(a_, ...) UMD_LOG_BITS(a_), UMD_LOG_EACH_9(__VA_ARGS__)
#define UMD_LOG_TEXTS_10(a_, ...) UMD_LOG_IS_TEXT(a_) | UMD_LOG_TEXTS_9(__VA_ARGS__)
#define UMD_LOG_EACH_11(a_, ...) UMD_LOG_BITS(a_), UMD_LOG_EACH_10(__VA_ARGS__)
#define UMD_LOG_TEXTS_11(a_, ...) UMD_LOG_IS_TEXT(a_) | UMD_LOG_TEXTS_10(__VA_ARGS__)
#define UMD_LOG_EACH_12(a_, ...) UMD_LOG_BITS(a_), UMD_LOG_EACH_11(__VA_ARGS__)
#define UMD_LOG_TEXTS_12(a_, ...) UMD_LOG_IS_TEXT(a_) | UMD_LOG_TEXTS_11(__VA_ARGS__)
#define UMD_LOG_EACH_13(a_, ...) UMD_LOG_BITS(a_), UMD_LOG_EACH_12(__VA_ARGS__)
#define UMD_LOG_TEXTS_13(a_, ...) UMD_LOG_IS_TEXT(a_) | UMD_LOG_TEXTS_12(__VA_ARGS__)
#define UMD_LOG_EACH_14(a_, ...) UMD_LOG_BITS(a_), UMD_LOG_EACH_13(__VA_ARGS__)
#define UMD_LOG_TEXTS_14(a_, ...) UMD_LOG_IS_TEXT(a_) | UMD_LOG_TEXTS_13(__VA_ARGS__)
#define UMD_LOG_EACH_15(a_, ...) UMD_LOG_BITS(a_), UMD_LOG_EACH_14(__VA_ARGS__)
#define UMD_LOG_TEXTS_15(a_, ...) UMD_LOG_IS_TEXT(a_) | UMD_LOG_TEXTS_14(__VA_ARGS__)
#define UMD_LOG_EACH_16(a_, ...) UMD_LOG_BITS(a_), UMD_LOG_EACH_15(__VA_ARGS__)
#define UMD_LOG_TEXTS_16(a_, ...) UMD_LOG_IS_TEXT(a_) | UMD_LOG_TEXTS_15(__VA_ARGS__)

/**
 * UMD_LOG(UMD_LOG_INFO, "queue created id=%u", id): a few words, then key=value figures. Never blocks, never fails. The site is there
 * even if its level is above the ceiling, so that umd-log can list what was compiled out.
 */
#define UMD_LOG(level_, fmt_, ...)                                                                        \
    do {                                                                                                  \
        static umdLogSite umd_log_site_ __attribute__((section("umd_log_sites"), used)) = {               \
            .module = &umd_log_this_module, .func = __func__, .file = __FILE_NAME__, .fmt = (fmt_),       \
            .line = __LINE__, .level = (uint8_t)(level_), .arg_count = UMD_LOG_COUNT(__VA_ARGS__),        \
            .has_strings = UMD_LOG_TEXTS(__VA_ARGS__), .ceiling = UMD_LOG_CEILING,                        \
        };                                                                                                \
        if ((level_) <= UMD_LOG_CEILING &&                                                                \
            (int)(level_) <= atomic_load_explicit(&umd_log_this_module.level, memory_order_relaxed)) {    \
            if (0) umd_log_check_format(fmt_, ##__VA_ARGS__);                                             \
            const uint64_t umd_log_args_[] = { UMD_LOG_EACH(__VA_ARGS__) 0 };                             \
            umd_log_emit(&umd_log_site_, umd_log_args_);                                                  \
        }                                                                                                 \
    } while (0)

static inline __attribute__((format(printf, 1, 2))) void umd_log_check_format(const char *fmt, ...) { (void)fmt; }
#endif /* __cplusplus */

/* ---- Control: any thread, while running. ---- */

/**
 * "umd.mem=trace,kmd=debug,warn": comma list; a bare level is for all modules, a prefix covers what is below it. For all sinks, but what a sink
 * has of its own for a module (a setting like UMD_LOG_FILE_LEVEL, umdLogOpenFile's levels, the calls below) goes before it, and run and
 * disaster log never ask it. It replaces what it said before; "" takes it back. UMD_ERR_CONFIG_VALUE.
 */
UMD_API UMD_MUST_CHECK umdStatus umdLogSetLevels(const char *spec);
/** As umdLogSetLevels, for the console alone; goes before what umdLogSetLevels says. */
UMD_API UMD_MUST_CHECK umdStatus umdLogSetConsole(const char *spec);

typedef enum umdLogFormat {
    UMD_LOG_FORMAT_TEXT = 0,
    UMD_LOG_FORMAT_JSON,     /**< one object per line, names of OpenTelemetry's log data model */
    UMD_LOG_FORMAT_BINARY,   /**< call sites once, then raw arguments; umd-log shows it */
    UMD_LOG_FORMAT_RUN,      /**< for framework developers: codes, what, where in their calls, what next */
    UMD_LOG_FORMAT_DISASTER, /**< for driver engineers: of each ERROR all that is known; other lines as they are, if its levels take them */
} umdLogFormat;
/**
 * Opens the log file of that format, in place of the one before; "%p" in the path becomes the process id. A file that is there
 * already is kept as path.1. `levels` as in umdLogSetLevels, for this file alone; NULL: what the settings say (UMD_LOG_FILE_LEVEL and
 * the like), else INFO, or what umdLogSetLevels says (which does not touch run and disaster log); not what an earlier call said.
 * UMD_ERR_RES_FILE, UMD_ERR_RES_DESCRIPTORS, UMD_ERR_MEM_HOST_ALLOC_FAILED, UMD_ERR_CONFIG_VALUE, UMD_ERR_PARAM_RANGE; then nothing has changed,
 * and the file before is written on. A pipe that nobody reads is refused, and not waited for.
 */
UMD_API UMD_MUST_CHECK umdStatus umdLogOpenFile(const char *path, umdLogFormat format, const char *levels);
/**
 * As umdLogSetLevels, for the open file of that format alone; goes before what umdLogSetLevels says, and replaces what the file had of its own.
 * UMD_ERR_RES_FILE: none is open. UMD_ERR_CONFIG_VALUE, UMD_ERR_PARAM_NULL, UMD_ERR_PARAM_RANGE; then nothing has changed.
 */
UMD_API UMD_MUST_CHECK umdStatus umdLogSetFileLevels(umdLogFormat format, const char *spec);
UMD_API void umdLogCloseFile(umdLogFormat format);
/**
 * Files are moved to path.1, path.2, ... before they grow beyond max_B (0: never); so many are kept, at most 1000. Pipes and devices are
 * left alone. At first 128 MiB and 5.
 */
UMD_API void umdLogSetRotation(uint64_t max_B, uint32_t keep);

typedef enum umdLogPeriod {
    UMD_LOG_PERIOD_OFF = 0,
    UMD_LOG_PERIOD_HOURLY,
    UMD_LOG_PERIOD_DAILY, /**< the default */
} umdLogPeriod;
/** Files are also moved on with the first line of a new hour or day, in UTC. Not in stepped mode. UMD_ERR_PARAM_RANGE. */
UMD_API UMD_MUST_CHECK umdStatus umdLogSetRotationPeriod(umdLogPeriod period);
/** Files that were moved away or removed are begun anew at their paths; what was logged before is in the old ones. For logrotate and the like. */
UMD_API void umdLogReopen(void);
/**
 * The calling thread works for this W3C trace context from now on ("00-<32 hex>-<16 hex>-<2 hex>", as in TRACEPARENT; copied): each line that it
 * logs carries trace and span id, until the next call. NULL or "": it is back to the process's, which TRACEPARENT gave, if any. Each thread
 * has its own, and a new one begins with the process's; the driver's own threads stay with that. Cheap: to be called for each piece of work.
 * UMD_ERR_CONFIG_VALUE: malformed; nothing has changed. Not for signal handlers.
 */
UMD_API UMD_MUST_CHECK umdStatus umdLogSetTrace(const char *traceparent);
/** What umdLogSetTrace was given last on this thread, as a text for it, "" for nothing: to put it back after working for another. */
UMD_API void umdLogGetTrace(char traceparent_out[56]);
/** A line of a framework or communication library into the same stream. `message` is copied. context_id 0: none; trace_id NULL: the thread's. */
UMD_API void umdLogMessage(umdLogLevel level, const char *module, uint64_t context_id, const char *trace_id, const char *message);
/** Everything logged before the call is with the sinks when it returns; at most timeout_ms. */
UMD_API void umdLogFlush(uint32_t timeout_ms);

typedef struct umdLogStats {
    uint64_t records, dropped, sink_errors, emergency;
    uint64_t lost;         /**< lines that a sink could not write, or not yet, counted per sink */
    int32_t sink_errno;    /**< why, as of the last sink error; 0: none */
    uint32_t reserved;
} umdLogStats;
UMD_API void umdLogGetStats(umdLogStats *stats_out);

#ifdef __cplusplus
}
#endif
#endif /* UMD_LOG_H */
