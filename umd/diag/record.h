/* SPDX-License-Identifier: MIT */
/* record.h - raising, annotating and ending error records, for all three layers. */
#ifndef UMD_DIAG_RECORD_H
#define UMD_DIAG_RECORD_H

#include <errno.h>
#include <inttypes.h>

#include <umd/umd_diag.h>
#include <umd/umd_log.h>

/*
 * The life of a record.
 *   raise    UMD_FAIL at the origin makes the thread's open record, logs it once, puts errors into the emergency ring.
 *   annotate UMD_HOP adds a hop on each layer boundary on the way up; it never logs.
 *   end      an API exit delivers it (umd_api_exit); UMD_ABSORB ends it with a reason; raising over an open record links the
 *            old one as cause when UMD_FAIL_CAUSED is used, else the old one counts as swallowed (tests fail on that).
 * One open record per thread and scope. A carrier opens a scope around a call into the KMD, so that the KMD's record
 * does not mix with the caller's (umd_record_scope_begin/end).
 * RIGHT: if (x > max) return UMD_FAIL(UMD_ERR_PARAM_RANGE, "argument=x value=%u max=%u", x, max);
 * RIGHT: umdStatus st = f(); if (st < 0) return UMD_HOP(st);
 * WRONG: if (f() < 0) return UMD_FAIL(UMD_ERR_INTERNAL, "...");            (swallows f's record; use UMD_FAIL_CAUSED)
 * WRONG: umdStatus st = f(); UMD_LOG(ERROR, ...); return st;               (logs a second time)
 */

/** Context and position that a record gets; set by layers that know, per thread. 0 where unknown. */
UMD_API void umd_record_set_context(uint64_t context_id);
/** What was set last on this thread: for code that raises on behalf of another context and then gives the thread back. */
UMD_API uint64_t umd_record_get_context(void);

/* What the compiler knows of x_, else else_: sites are static, and a code may be chosen at run time. */
#define UMD_IF_CONSTANT(x_, else_) __builtin_choose_expr(__builtin_constant_p(x_), (x_), (else_))
/* The level of a record's line. */
#define UMD_LEVEL_OF_SEVERITY(severity_)                                                                    \
    ((severity_) == UMD_SEVERITY_INFO ? UMD_LOG_INFO : (severity_) == UMD_SEVERITY_WARN ? UMD_LOG_WARN : UMD_LOG_ERROR)
/* A site that raises or absorbs, beside those of UMD_LOG: umd-log sites lists them all. */
#define UMD_RECORD_SITE(kind_, level_, code_, fmt_)                                                         \
    static umdLogSite umd_record_site_ __attribute__((section("umd_log_sites"), used)) = {                  \
        .module = &umd_log_this_module, .func = __func__, .file = __FILE_NAME__, .fmt = (fmt_), .line = __LINE__, \
        .level = (uint8_t)(level_), .ceiling = UMD_LOG_CEILING, .kind = (kind_), .code = (code_),           \
    }

/* Code of an errno with which a file could not be had. */
static inline umdStatus umd_record_file_code(int err)
{
    return err == EMFILE || err == ENFILE ? UMD_ERR_RES_DESCRIPTORS : err == ENOMEM ? UMD_ERR_MEM_HOST_ALLOC_FAILED : UMD_ERR_RES_FILE;
}

/** Raises; the module is the file's UMD_LOG_MODULE. fmt: a literal, "key=value" figures only. Value: the code. */
#define UMD_FAIL(code_, fmt_, ...) UMD_FAIL_FROM(code_, (umdRecordId){0}, fmt_, ##__VA_ARGS__)
/** As UMD_FAIL; what the thread has open becomes the cause (and is thereby not swallowed). */
#define UMD_FAIL_CAUSED(code_, fmt_, ...) UMD_FAIL_FROM(code_, umd_record_take_cause(), fmt_, ##__VA_ARGS__)
/** As UMD_FAIL, because of a record that may be another thread's or an asynchronous one. */
#define UMD_FAIL_FROM(code_, cause_id_, fmt_, ...)                                                          \
    ({                                                                                                      \
        UMD_RECORD_SITE(UMD_SITE_RAISE, UMD_SITE_LEVEL_OF_CODE, UMD_IF_CONSTANT(code_, 0), fmt_);           \
        (void)sizeof(umd_log_check_expr(fmt_, ##__VA_ARGS__));                                              \
        umd_record_raise(&umd_record_site_, (code_), (cause_id_), ##__VA_ARGS__);                           \
    })
/**
 * As UMD_FAIL_FROM, at another severity than the code's own. Less: what the owner asked for (INFO), or what follows from that (WARN). More: what is
 * no failure while the driver tries again (UMD_ERR_SUBMIT_RING_FULL), once it has given up (ERROR).
 */
#define UMD_FAIL_SEVERITY(code_, severity_, cause_id_, fmt_, ...)                                           \
    ({                                                                                                      \
        UMD_RECORD_SITE(UMD_SITE_RAISE, UMD_IF_CONSTANT(UMD_LEVEL_OF_SEVERITY(severity_), UMD_SITE_LEVEL_AT_RUN_TIME), \
                        UMD_IF_CONSTANT(code_, 0), fmt_);                                                   \
        (void)sizeof(umd_log_check_expr(fmt_, ##__VA_ARGS__));                                              \
        umdAdvice umd_advice_ = umdStatusAdvice(code_);                                                     \
        umd_advice_.severity = (severity_);                                                                 \
        umd_record_raise_advised(&umd_record_site_, (code_), &umd_advice_, (cause_id_), ##__VA_ARGS__);     \
    })
/**
 * As UMD_FAIL_FROM, where what is to be done about this occurrence (a umdAdvice) is not what the table says of the code (B10): it goes into the
 * record before anybody sees it, and into the log with it. UMD_FAIL_ADVISED_AT: the advice may also have another severity.
 */
#define UMD_FAIL_ADVISED(code_, advice_, cause_id_, fmt_, ...)                                              \
    UMD_FAIL_ADVISED_AT(UMD_SITE_LEVEL_OF_CODE, code_, advice_, cause_id_, fmt_, ##__VA_ARGS__)
#define UMD_FAIL_ADVISED_AT(level_, code_, advice_, cause_id_, fmt_, ...)                                   \
    ({                                                                                                      \
        UMD_RECORD_SITE(UMD_SITE_RAISE, (level_), UMD_IF_CONSTANT(code_, 0), fmt_);                         \
        (void)sizeof(umd_log_check_expr(fmt_, ##__VA_ARGS__));                                              \
        const umdAdvice umd_advice_ = (advice_);                                                            \
        umd_record_raise_advised(&umd_record_site_, (code_), &umd_advice_, (cause_id_), ##__VA_ARGS__);     \
    })
/** As UMD_FAIL, in code that speaks errno (KMD): value is -errno of the code. */
#define UMD_FAIL_ERRNO(code_, fmt_, ...) (-umdStatusErrno(UMD_FAIL(code_, fmt_, ##__VA_ARGS__)))
/** Passes a failure up across a layer boundary unchanged; UMD_HOP_AS translates. Layer: first part of the module's name. */
#define UMD_HOP(st_) umd_record_hop(&umd_log_this_module, __func__, __FILE_NAME__, __LINE__, (st_), (st_))
#define UMD_HOP_AS(st_, code_out_) umd_record_hop(&umd_log_this_module, __func__, __FILE_NAME__, __LINE__, (st_), (code_out_))
/** Ends the open record: user mode dealt with it (B12). `why` is one sentence. Counted and logged at INFO. */
#define UMD_ABSORB(st_, why_)                                                                               \
    do {                                                                                                    \
        UMD_RECORD_SITE(UMD_SITE_ABSORB, UMD_LOG_INFO, 0, UMD_IF_CONSTANT(why_, NULL));                     \
        umd_record_absorb(&umd_record_site_, (st_), (why_));                                                \
    } while (0)

static inline __attribute__((format(printf, 1, 2))) int umd_log_check_expr(const char *fmt, ...) { (void)fmt; return 0; }

/* Behind the macros. site: where; it may be the caller's own copy with another place in it, which need not live on. Arguments of site->fmt follow. */
UMD_API umdStatus umd_record_raise(const umdLogSite *site, umdStatus code, umdRecordId cause, ...);
/** advice takes the place of the table's, copied; its severity is the level of the log line. */
UMD_API umdStatus umd_record_raise_advised(const umdLogSite *site, umdStatus code, const umdAdvice *advice, umdRecordId cause, ...);
UMD_API umdStatus umd_record_hop(umdLogModule *module, const char *func, const char *file, int line, umdStatus in, umdStatus out);
UMD_API void umd_record_absorb(const umdLogSite *site, umdStatus st, const char *why);
/** Id of the thread's open record (seq 0: none), which stays open. */
UMD_API umdRecordId umd_record_current(void);
/** The id of this process's record of that number, for who was given the number alone. */
UMD_API umdRecordId umd_record_id(uint64_t seq);
/** As umd_record_current, or the id of the record that a public call of ours inside this one has just delivered: a raise that follows names it. */
UMD_API umdRecordId umd_record_take_cause(void);
/**
 * Adds figures to a text of size bytes, by the grammar in umd_diag.h: strings are quoted and escaped where they must be, what does not
 * fit ends in "..." or is left out. A format may end in " %s": figures that were put together before ("" for none).
 */
UMD_API void umd_figures_append(char *figures, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* ---- Advice for UMD_FAIL_ADVISED: the table's of the code, but ... Any thread. ---- */

/** ... this is to be done, and no retry. */
UMD_API umdAdvice umd_advice_do(umdStatus code, umdAction action);
/** ... with the largest size that would fit now. */
UMD_API umdAdvice umd_advice_fit(umdStatus code, uint64_t largest_fit_B);
/** ... what helps against the cause helps here: its action, delay, count and largest size. The table's where the cause is not known or asks for nothing. */
UMD_API umdAdvice umd_advice_of_cause(umdStatus code, umdRecordId cause);
/** "action: retry, 3 times, 1 ms apart; largest size that fits: 4096 bytes", cut at size. Returns the length it needs. Pure. */
UMD_API size_t umd_advice_format(const umdAdvice *advice, char *buf, size_t size);

/**
 * Calls will go on to fail because of this record: it and the first of its causes are kept beyond the last 256, the last 32 of them, those of
 * devices longer than those of contexts.
 */
UMD_API void umd_record_pin(const umdErrorDetail *detail, bool device);

/**
 * What became known of a failure after its raise, by who completed the record: one line at INFO under the record's id, also in the emergency
 * ring where the failure is an error. fmt: a few words, then figures, of which texts are quoted already. It is no second telling of the failure.
 * Who asks for the record by its id from here on gets *detail, with all that was added.
 */
#define UMD_RECORD_NOTE(detail_, fmt_, ...)                                                                \
    do {                                                                                                   \
        UMD_RECORD_SITE(UMD_SITE_LOG, UMD_LOG_INFO, 0, fmt_);                                              \
        (void)sizeof(umd_log_check_expr(fmt_, ##__VA_ARGS__));                                             \
        umd_record_note(&umd_record_site_, (detail_), ##__VA_ARGS__);                                      \
    } while (0)
UMD_API void umd_record_note(const umdLogSite *site, const umdErrorDetail *detail, ...);
/** What is to be done about the mistake that the figure "misuse" of a record names, a sentence and a blank; "": none. Static string, pure. */
UMD_API const char *umd_misuse_todo(const char *figures);

/* ---- Crossing a carrier ---- */

/** A fresh record scope on this thread, and the outer one back. Nest at most 7. */
UMD_API void umd_record_scope_begin(void);
UMD_API void umd_record_scope_end(void);
/** Copies the thread's open record out and ends it as delivered (the peer owns its story now). False if none is open. */
UMD_API bool umd_record_export(umdErrorDetail *detail_out);
/** Makes a record that came over a carrier the thread's open one (hops and id kept). Value: its code. Validates every field. */
UMD_API umdStatus umd_record_import(const umdErrorDetail *detail);

/** What umd_record_export took out is told to nobody after all, since another record is: it ends as absorbed. `why` is one sentence. */
UMD_API void umd_record_drop(umdErrorDetail *detail, const char *why);
/** What umd_record_export took out has reached the application, by a callback alone: this logs its end. */
UMD_API void umd_record_told(const umdErrorDetail *detail);
/** The driver itself tries again what failed with the code: counted by it (umdGetErrorCounts). */
UMD_API void umd_record_retried(umdStatus st);

/* ---- Public API calls ---- */

/** What is known of a public entry point: static, one per function. */
struct umd_api_site {
    const char *name;
    const char *args_fmt;              /**< "key=value" figures of the arguments */
    const umdLogSite *enter, *exit;    /**< what TRACE of module "umd.api" logs; NULL: compiled out */
    uint8_t arg_count, has_strings;
};
/** First and last thing in every public entry point. Records the call in the thread's call ring (last 32), counts depth. */
struct umd_api_call {
    const struct umd_api_site *site;
};
/** The log module of all public calls. */
extern UMD_API umdLogModule umd_api_log_module;
#define UMD_API_TRACE_SITES(name_, args_fmt_, ...)                                                        \
    static umdLogSite umd_api_traces_[2] __attribute__((section("umd_log_sites"), used)) = {              \
        { .module = &umd_api_log_module, .func = (name_), .file = __FILE_NAME__, .fmt = "enter " args_fmt_, .line = __LINE__, \
          .level = UMD_LOG_TRACE, .arg_count = UMD_LOG_COUNT(__VA_ARGS__), .has_strings = UMD_LOG_TEXTS(__VA_ARGS__), \
          .ceiling = UMD_LOG_CEILING },                                                                   \
        { .module = &umd_api_log_module, .func = (name_), .file = __FILE_NAME__, .fmt = "exit code=%s", .line = __LINE__, \
          .level = UMD_LOG_TRACE, .arg_count = 1, .has_strings = 1, .ceiling = UMD_LOG_CEILING },         \
    };
#define UMD_API_TRACE_SITE(i_) (UMD_LOG_TRACE <= UMD_LOG_CEILING ? &umd_api_traces_[i_] : NULL)
#define umd_api_enter(call_, name_, args_fmt_, ...)                                                      \
    ({                                                                                                    \
        UMD_API_TRACE_SITES(name_, args_fmt_, ##__VA_ARGS__)                                              \
        static const struct umd_api_site umd_api_site_ = {                                                \
            .name = (name_), .args_fmt = (args_fmt_), .enter = UMD_API_TRACE_SITE(0), .exit = UMD_API_TRACE_SITE(1), \
            .arg_count = UMD_LOG_COUNT(__VA_ARGS__), .has_strings = UMD_LOG_TEXTS(__VA_ARGS__),           \
        };                                                                                                \
        (void)sizeof(umd_log_check_expr(args_fmt_, ##__VA_ARGS__));                                       \
        const uint64_t umd_api_args_[] = { UMD_LOG_EACH(__VA_ARGS__) 0 };                                 \
        umd_api_begin((call_), &umd_api_site_, umd_api_args_);                                            \
    })
UMD_API void umd_api_begin(struct umd_api_call *call, const struct umd_api_site *site, const uint64_t *args);
/**
 * Delivers the open record, if st failed, into the thread's last error. Value: st, or UMD_ERR_INTERNAL_CODE where the function's list in
 * api_codes.toml does not have it (B13); a function without a list, which is none of the public API's, may return any failure of the table.
 */
UMD_API umdStatus umd_api_exit(struct umd_api_call *call, umdStatus st);

/** The thread's last calls, newest first, as text lines "name(args) -> code"; for reports. Returns how many were written. */
UMD_API uint32_t umd_callring_format(char *buf, size_t size);

typedef struct umd_record_counts {
    uint64_t raised, delivered, absorbed, swallowed;
} umd_record_counts;
UMD_API void umd_record_get_counts(struct umd_record_counts *counts_out);

#endif
