/* SPDX-License-Identifier: MIT */
/* umd_diag.h - what a return code means, and the record behind it. Part of libumd_diag.so. */
#ifndef UMD_DIAG_H
#define UMD_DIAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <umd/umd_status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UMD_API __attribute__((visibility("default")))
#define UMD_MUST_CHECK __attribute__((warn_unused_result))

/* ---- Facts of a code. All pure, async-signal-safe, any thread. ---- */

/** "UMD_ERR_MEM_FRAGMENTED"; "UMD_UNKNOWN" for a value outside the table. Static string. */
UMD_API const char *umdStatusName(umdStatus st);
/** One sentence: when the code is returned. Static string. */
UMD_API const char *umdStatusString(umdStatus st);
/** One sentence: what to do next. Static string. */
UMD_API const char *umdStatusTodo(umdStatus st);
/** Layer by number range; works for codes newer than this library (B8). */
UMD_API umdStatusRange umdStatusRangeOf(umdStatus st);
/** Positive errno of the code, 0 for success. */
UMD_API int umdStatusErrno(umdStatus st);
/** Name of the VkResult, static string. */
UMD_API const char *umdStatusVkResult(umdStatus st);
/** True for negative codes. */
static inline bool umdFailed(umdStatus st) { return st < 0; }

/** Advice as data (B10): from the table by umdStatusAdvice, refined for one occurrence in a record. */
typedef struct umdAdvice {
    umdAction action;
    umdSeverity severity;
    umdScope scope;
    bool sticky;             /**< the scope is unusable until rebuilt */
    uint32_t delay_ms;       /**< before a retry */
    uint32_t count;          /**< retries that make sense; 0: none */
    uint64_t largest_fit_B;  /**< largest size that would fit, 0 where it does not apply */
} umdAdvice;
/** Retry policy lives here and nowhere else. Unknown failures: ABORT; unknown positive ones, which are none: NONE. */
UMD_API umdAdvice umdStatusAdvice(umdStatus st);

/* ---- Records ---- */

#define UMD_RECORD_HOPS 12u
#define UMD_RECORD_TEXT 384u
#define UMD_RECORD_FIGURES 640u

/** boot:pid:seq in one value pair; seq 0 means "no record". */
typedef struct umdRecordId {
    uint32_t boot;  /**< differs per boot; from the seed in stepped runs */
    uint32_t pid;   /**< logical in stepped runs */
    uint64_t seq;   /**< counts up in the process */
} umdRecordId;

typedef struct umdHop {
    char layer[12];     /**< "umd", "winsys", "kmd", "hw" */
    char func[48];
    char file[48];      /**< base name */
    uint32_t line;
    int32_t code_in;    /**< code as it arrived (an umdStatus) */
    int32_t code_out;   /**< code as it went on */
} umdHop;

/** How a record ended. */
typedef enum umdRecordEnd {
    UMD_RECORD_OPEN = 0,
    UMD_RECORD_DELIVERED, /**< a caller of the public API, or a callback, got its code */
    UMD_RECORD_ABSORBED,  /**< the driver dealt with it; `text_absorbed` says how */
    UMD_RECORD_SWALLOWED, /**< nobody saw it: a defect */
} umdRecordEnd;

/*
 * Structs that begin with size_B, here and in umd.h: set it to their sizeof. A program built with the header of an older or a newer version than
 * the library goes on to run: what it does not know is neither read (it counts as 0) nor written; what the library does not know must be 0 where
 * the program fills in, and is set to 0 where the library does. size_B stays as the program set it. UMD_ERR_PARAM_STRUCT_SIZE for a size below
 * that of the first version (UMD_..._SIZE_V1) or more than 1 KiB above the library's own, and for something other than 0 that the library does not know.
 * Structs without size_B lie in arrays or in others of these structs and keep size and layout for good: what is to be told beyond them comes in a
 * struct and a call of its own.
 */

/** The full story of one failure. Plain data, no pointers: it crosses carriers as it is. Text is for users: no addresses of the host. */
typedef struct umdErrorDetail {
    uint32_t size_B;              /**< sizeof(umdErrorDetail): of the caller, who sets it; of the library in an error callback */
    int32_t code;                 /**< umdStatus as the API returned it */
    int32_t origin_code;          /**< umdStatus as first raised */
    uint32_t hop_count;           /**< hops used, at most UMD_RECORD_HOPS */
    umdRecordId id;
    umdRecordId cause;            /**< record that this one failed because of; seq 0: none */
    uint64_t mono_ns;             /**< monotonic (device clock in stepped runs) at raise */
    uint64_t real_ns;             /**< CLOCK_REALTIME at raise */
    uint64_t context_id;          /**< 0: none */
    uint32_t tid;
    uint32_t repeat;              /**< times the same failure was folded into this record */
    uint32_t end;                 /**< umdRecordEnd */
    uint32_t call_depth;          /**< nesting of public calls of the thread at raise */
    umdAdvice advice;
    char func[48];                /**< origin */
    char file[48];
    uint32_t line;
    char module[16];              /**< log module of the origin, e.g. "kmd.vm" */
    char api[48];                 /**< public call under way, "" for asynchronous ones */
    char text[UMD_RECORD_TEXT];       /**< one sentence for people */
    char figures[UMD_RECORD_FIGURES]; /**< "key=value key=\"a text\" ...", by the grammar below */
    char absorbed[96];            /**< why, if absorbed */
    umdHop hops[UMD_RECORD_HOPS];
    uint32_t reserved;            /**< 0 */
} umdErrorDetail;
#define UMD_ERROR_DETAIL_SIZE_V1 (offsetof(umdErrorDetail, reserved) + sizeof(uint32_t))

/**
 * The calling thread's last failed public call. Cheap, thread-local.
 * detail->size_B must be set to sizeof(umdErrorDetail).
 * Returns UMD_SUCCESS; UMD_ERR_PARAM_NULL; UMD_ERR_PARAM_STRUCT_SIZE; UMD_STATUS_NOT_READY if this thread has had no failure.
 * Never changes the last error itself.
 */
UMD_API UMD_MUST_CHECK umdStatus umdGetLastErrorDetail(umdErrorDetail *detail);
/** A record of this process by id (the last 256 are kept). UMD_STATUS_NOT_READY when it is unknown or too old, UMD_ERR_PARAM_STRUCT_SIZE. */
UMD_API UMD_MUST_CHECK umdStatus umdGetErrorDetailById(umdRecordId id, umdErrorDetail *detail);
/**
 * The record that all began with: of the chain of causes of the record with this id, the last one. The id may be of a record that has been
 * pushed out by others meanwhile; first causes of lost devices and of failed contexts are kept longer than the rest. A record without a cause
 * is its own. detail->size_B must be set (UMD_ERR_PARAM_STRUCT_SIZE).
 * UMD_STATUS_NOT_READY when it is unknown or no longer kept. Any thread.
 * umdDeviceGetFirstCause and umdContextGetFirstCause of umd.h ask by what failed.
 */
UMD_API UMD_MUST_CHECK umdStatus umdGetFirstCause(umdRecordId id, umdErrorDetail *detail);

/* ---- Scenes: what was going on when a record was raised ---- */

#define UMD_SCENE_CALLS 32u
#define UMD_SCENE_ERRORS 8u
#define UMD_SCENE_FRAMES 16u
#define UMD_SCENE_NO_CALL UINT32_MAX

/** One public call of a thread. */
typedef struct umdSceneCall {
    char name[48];
    char args[144];        /**< "context=0x1 size_B=4096"; no address of the host */
    uint64_t start_ns;     /**< monotonic */
    uint64_t end_ns;       /**< 0: under way */
    int32_t code;          /**< an umdStatus, once it has ended */
    uint32_t reserved;
} umdSceneCall;

typedef struct umdErrorNote {
    umdRecordId id;
    uint64_t mono_ns;
    int32_t code;          /**< an umdStatus, as raised */
    uint32_t reserved;
} umdErrorNote;

/** Plain data. All but frames may be shown to users. */
typedef struct umdErrorScene {
    uint32_t size_B;            /**< sizeof(umdErrorScene), set by the caller and left as it is */
    uint32_t tid;               /**< thread that raised */
    uint32_t call_depth;        /**< its public calls under way */
    uint32_t calls_tid;         /**< whose calls these are: of the thread that raised, else of the first that met it in a call; 0: no calls */
    umdRecordId id;
    uint64_t digest;            /**< of the call stack: the same path has the same in each run of one build; 0: no stack */
    uint32_t call_count;        /**< of calls, newest first */
    uint32_t call_at;           /**< index of the call under way; UMD_SCENE_NO_CALL: none */
    uint32_t error_count;       /**< of errors, newest first: those of the same context before this one, of severity WARN and above */
    uint32_t frame_count;       /**< of frames, innermost first */
    umdErrorNote errors[UMD_SCENE_ERRORS];
    umdSceneCall calls[UMD_SCENE_CALLS];
    uint64_t frames[UMD_SCENE_FRAMES]; /**< return addresses of this process: for engineers */
} umdErrorScene;
#define UMD_ERROR_SCENE_SIZE_V1 (offsetof(umdErrorScene, frames) + UMD_SCENE_FRAMES * sizeof(uint64_t))

/**
 * The scene of a record of this process. The last 64 are kept, and those of first causes (umdGetFirstCause) longer. In an error callback it
 * tells the last errors of the context. scene->size_B must be set. UMD_STATUS_NOT_READY when there is none, or none any more;
 * UMD_ERR_PARAM_NULL, UMD_ERR_PARAM_STRUCT_SIZE. Any thread; not in a signal handler.
 */
UMD_API UMD_MUST_CHECK umdStatus umdGetErrorScene(umdRecordId id, umdErrorScene *scene);

/* ---- Counts ---- */

/** How often a code was met in this process, and what became of it. */
typedef struct umdErrorCounts {
    int32_t code;
    uint32_t reserved;
    uint64_t raised;       /**< first seen, or came over a carrier; with repeats */
    uint64_t delivered, absorbed, swallowed; /**< by the code that the record ended with */
    uint64_t retried;      /**< times the driver tried again by itself because of it */
    uint64_t unlogged;     /**< records too many to be logged one by one */
} umdErrorCounts;
/** One row for each code met, largest value first; at most max are written. Returns how many there are. Any thread. */
UMD_API uint32_t umdGetErrorCounts(umdErrorCounts *counts_out, uint32_t max);

/* ---- Figures ----
 *
 * The figures of a record are one line of text by this grammar, so that people, grep and programs can read them alike:
 *
 *   figures = [ figure *( " " figure ) ]
 *   figure  = key "=" ( word | quoted )
 *   key     = letter *( letter | digit | "_" | "." ), at most 47 characters; _B bytes, _ns _us _ms times, as its end says
 *   word    = one or more printable characters other than blank, quote and backslash
 *   quoted  = quote *( any other character | \" | \\ | \n | \r | \t | \xHH ) quote
 *
 * A string that would not be a word is written in quotes, with what would end it escaped. A value too long for the record ends in "...".
 * An unquoted value is a number, true or false where it looks like one, else a string; what stands in quotes is always a string.
 * Figures hold no address of the host; GPU addresses, which are the application's own, they do.
 */

typedef enum umdFigureKind {
    UMD_FIGURE_NONE = 0,
    UMD_FIGURE_STRING,
    UMD_FIGURE_BOOL,     /**< true, false */
    UMD_FIGURE_INT,      /**< below zero */
    UMD_FIGURE_UINT,     /**< decimal, or hexadecimal with 0x */
    UMD_FIGURE_DOUBLE,   /**< 1.5, 2.5e-3 */
} umdFigureKind;

typedef enum umdFigureUnit { UMD_UNIT_NONE = 0, UMD_UNIT_BYTES, UMD_UNIT_NS, UMD_UNIT_US, UMD_UNIT_MS } umdFigureUnit;

typedef struct umdFigure {
    umdFigureKind kind;
    umdFigureUnit unit;           /**< by the end of the key */
    int64_t int_value;            /**< of BOOL, INT and UINT; INT64_MAX where a UINT is larger */
    uint64_t uint_value;          /**< of BOOL and UINT */
    double double_value;          /**< of INT, UINT and DOUBLE */
    char key[48];
    char text[UMD_RECORD_FIGURES]; /**< the value, without quotes and escapes; cut at 639 characters */
} umdFigure;

/**
 * The first figure at or behind *cursor, which moves behind it; words that are no figures are passed over, so that lines of the log
 * can be read, too. False: there is none; *figure_out is then undefined. Start with the address of the text. Pure, any thread.
 */
UMD_API bool umdFigureNext(const char **cursor, umdFigure *figure_out);
/**
 * The figure of a record by its key; of several keys joined by '|' the first that it has. False: it has none. Pure, any thread.
 *   umdFigure f;
 *   if (umdErrorDetailFigure(&detail, "free_B", &f) && f.kind == UMD_FIGURE_UINT)
 *       printf("%" PRIu64 " bytes are free\n", f.uint_value);
 */
UMD_API bool umdErrorDetailFigure(const umdErrorDetail *detail, const char *key, umdFigure *figure_out);

/**
 * Formats a record for a person: what, where, why, what to do; at most 40 lines, without an address of the host. Writes at most size bytes,
 * ended; returns the length it needs. Causes and scene are taken from what this process keeps. Any thread; not in a signal handler.
 */
UMD_API size_t umdErrorDetailFormat(const umdErrorDetail *detail, char *buf, size_t size);
/**
 * The same for who works on the driver: each hop with place and codes, the causes in full, the thread's last calls, the errors before, the
 * call stack by module, offset and symbol. Up to about 100 lines, 12 KiB.
 */
UMD_API size_t umdErrorDetailFormatFull(const umdErrorDetail *detail, char *buf, size_t size);

/* ---- Crashes ---- */

/**
 * From now on a SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT writes a snapshot to dir/crash.PID.TIME (TIME: seconds since 1970), which
 * `umd-crash show` reads: registers, backtrace, API calls of all threads, emergency records, the log's tail, the driver's state. The newest 5
 * are kept. Then the handler runs that had the signal before, or the default action: exit status and core dump are as they would be.
 * dir is made with mode 0700 if it is not there (its parent must be), and copied. A second call changes the directory. Handlers put later should chain to what they
 * find, as this one does. A stack overflow is told of by the calling thread, by threads that make their first Petrel
 * call later, and by those that bring a signal stack of their own; other threads have none, and leave no snapshot of it.
 * Also by environment: UMD_CRASH_DIR=dir. Any thread. Not for signal handlers.
 * UMD_ERR_PARAM_NULL; UMD_ERR_RES_FILE: dir cannot be made or written to, is a symbolic link, another user's, or writable by others;
 * UMD_ERR_RES_DESCRIPTORS, UMD_ERR_MEM_HOST_ALLOC_FAILED: the host is out of either.
 */
UMD_API UMD_MUST_CHECK umdStatus umdCrashHandlerInstall(const char *dir);
/** Takes the handlers out again; where others have chained on top of them, they stay and only pass signals on. Any thread. */
UMD_API void umdCrashHandlerRemove(void);

#ifdef __cplusplus
}
#endif
#endif /* UMD_DIAG_H */
