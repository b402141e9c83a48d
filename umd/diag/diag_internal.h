/* SPDX-License-Identifier: MIT */
/* diag_internal.h - what the parts of libumd_diag share among themselves: thread state, record ends, log entries. */
#ifndef UMD_DIAG_INTERNAL_H
#define UMD_DIAG_INTERNAL_H

#include <stdarg.h>

#include "log_ring.h"
#include "record.h"
#include "sys.h"

#define UMD_SCOPES 8u       /* the base and 7 nested: a destroy in the callback of a stepped poll takes five */
#define UMD_CALLS 32u
#define UMD_CALL_ARGS_B (8u * UMD_LOG_ARGS_MAX)

/* One public call of the thread; arguments stay encoded until a report asks for them. */
struct umd_call_entry {
    const struct umd_api_site *site;
    uint64_t start_stamp;
    uint64_t end_stamp; /* 0 while under way */
    int32_t code;
    uint32_t args_B;
    uint8_t args[UMD_CALL_ARGS_B];
};

struct umd_record_scope {
    bool open;
    bool quiet;         /* one of too many: neither its begin nor its end is logged */
    umdErrorDetail rec;
};

/* What a raise must equal to be folded into the one before. */
struct umd_fold_key {
    umdRecordId id;
    umdRecordId cause;
    const char *func;
    uint64_t context_id;
    uint64_t last_ns;
    uint32_t line;
    int32_t code;
};

/* All that is kept per thread. Freed when the thread ends. */
struct umd_diag_thread {
    struct umd_record_scope scopes[UMD_SCOPES];
    uint32_t scope;             /* may exceed UMD_SCOPES - 1: then the last is shared */
    uint32_t depth;             /* public calls under way */
    uint64_t context_id;
    bool have_last;
    bool last_nested;           /* last was delivered to a public call of ours that is still under way, in scope last_scope */
    bool last_owed;             /* and its end is not in the log yet: it is told when that call says what becomes of it */
    uint32_t last_scope;
    umdErrorDetail last;
    struct umd_fold_key fold;
    uint64_t call_seq;
    struct umd_call_entry calls[UMD_CALLS];
    uint64_t call_at[16];       /* call_seq of the calls under way, by depth */
    uintptr_t stack_begin, stack_end;   /* equal: not known; asked for by the first raise */
    umdRecordId scene_of;       /* the record whose scene this thread took last */
    struct umd_log_trace_ids trace; /* as umdLogSetTrace said */
    struct umd_log_ring *ring;
    bool unsettled;             /* context or trace may be another than the ring was told last */
    uint32_t busy;              /* an entry is being put: a signal handler that logs now must keep off the ring */
    uint32_t ordinal, ordinal_epoch; /* logical thread id of stepped runs */
    uint32_t host_tid;          /* the kernel's */
    void *crash_stack;          /* for signals, if it is ours */
};

/* Initial-exec: readable from a signal handler, and by one instruction. */
extern __thread struct umd_diag_thread *umd_diag_self __attribute__((tls_model("initial-exec"), visibility("hidden")));
extern __thread uint32_t umd_diag_inside_count __attribute__((tls_model("initial-exec"), visibility("hidden")));
/* NULL where the host has no memory for it: callers degrade. Async-signal-safe, as long as its key is one of the C library's first 32. */
struct umd_diag_thread *umd_diag_thread_get(void);
#define UMD_DIAG_THREADS 256u
/* Some thread that has state, NULL where there is none: for crashes, which read it by umd_peek, since it may end any time. */
const struct umd_diag_thread *umd_diag_thread_at(uint32_t index);
/* In a forked child the others are gone. */
void umd_diag_thread_child(void);
/* As umd_diag_thread_get but never creates. */
struct umd_diag_thread *umd_diag_thread_peek(void);
/* True: the thread is inside the diag library already; logging and raising must not recurse. */
bool umd_diag_enter(void);
void umd_diag_leave(void);
bool umd_diag_inside(void);

/* Memory of the library itself: never an injected failure, never a record. */
void *umd_diag_alloc(size_t size);
void umd_diag_free(void *p);
/* The same by a system call alone, for what a signal handler may be the first to need. umd_diag_unmap takes no NULL. */
void *umd_diag_map(size_t size);
void umd_diag_unmap(void *p);
uint32_t umd_diag_host_tid(void);
uint32_t umd_diag_host_pid(void);
/* write and ftruncate that no fault plan knows of; where a limit on the size of files is met they fail with EFBIG, and no SIGXFSZ comes. */
ssize_t umd_sys_write_plain(int fd, const void *buf, size_t n);
int umd_sys_truncate(int fd, uint64_t size_B);

/* sys_mutex.c: no rank and no owner, for fork. False: not to be had in that time. */
bool umd_host_lock_for(pthread_mutex_t *m, uint64_t timeout_ns);

bool umd_status_known(umdStatus st);
const char *umd_record_api_name(const struct umd_diag_thread *t);

/* api.c: the arguments of a call as text. */
void umd_call_entry_format(const struct umd_call_entry *entry, char *buf, size_t size);
/* api.c: the calls in a thread's ring, newest first; async-signal-safe. */
void umd_callring_each(const struct umd_diag_thread *t, void (*fn)(void *arg, uint64_t seq, const struct umd_call_entry *e), void *arg);

/* record.c */
struct umd_record_scope *umd_record_scope_of(struct umd_diag_thread *t);
bool umd_power_of_ten(uint32_t n);
/* Of a code that came up without a record: the story begins here, and says so. func lives on. */
umdStatus umd_record_raise_bare(umdLogModule *module, const char *func, const char *file, uint32_t line, umdStatus code);
/* What is to be done here is not what the table says of the code. */
bool umd_advice_is_own(const umdErrorDetail *rec);
/* The record goes on with another code: what the table says of the old one gives way to what it says of the new. */
void umd_advice_translate(umdErrorDetail *rec, umdStatus out);
/* Appends "action=... [delay_ms= count=] [largest_fit_B=]", all or nothing. */
void umd_advice_figures(char *text, size_t size, const umdAdvice *advice);
bool umd_record_reopen_nested(struct umd_diag_thread *t, umdStatus st);
static inline bool umd_record_is_nested(const struct umd_diag_thread *t) { return t->last_nested && t->last_scope == t->scope; }
/* Nothing more comes of the record that a nested call has delivered: its end is logged, if it is owed. */
void umd_record_settle_nested(struct umd_diag_thread *t);
void umd_record_add_hop(umdErrorDetail *rec, const char *module, const char *func, const char *file, int line, umdStatus in, umdStatus out);
void umd_record_step_reset(uint64_t seed);

/* record_end.c */
/* Ends the scope's open record and keeps its last state in the store. */
void umd_record_end(struct umd_record_scope *s, umdRecordEnd end);
/* The line that tells of it, at INFO. */
void umd_record_log_end(umdLogModule *module, const umdErrorDetail *rec, umdRecordEnd end);
void umd_record_log_delivered(const struct umd_record_scope *s);

/* record_store.c */
umdRecordId umd_record_id_next(void);
/* Keeps the latest state of a record. */
void umd_record_store_put(const umdErrorDetail *rec);
/* A new record; the errors of its context before it come out, newest first, and it joins them. */
uint32_t umd_record_store_raised(const umdErrorDetail *rec, umdErrorNote before[UMD_SCENE_ERRORS]);
void umd_record_store_imported(const umdErrorDetail *rec);
/* A record of this id is here, and began otherwise: what was raised where and when never changes, whatever is added to it. */
bool umd_record_store_contradicts(const umdErrorDetail *rec);
bool umd_record_store_get(umdRecordId id, umdErrorDetail *out);
/* It was exported, to be imported again here or elsewhere; until then its end is not the end of its story. */
void umd_record_store_set_travels(umdRecordId id, bool travels);
bool umd_record_store_travels(umdRecordId id);
/* record_count.c */
enum umd_record_counter { UMD_COUNT_RAISED, UMD_COUNT_DELIVERED, UMD_COUNT_ABSORBED, UMD_COUNT_SWALLOWED, UMD_COUNT_RETRIED, UMD_COUNT_UNLOGGED,
                          UMD_COUNT_COUNT };
void umd_record_count(enum umd_record_counter which, int32_t code, int64_t by);
/* False: as many as a second may have of this code from this place have been logged; it is counted, and told of later. */
bool umd_limit_pass(const umdErrorDetail *rec, umdLogLevel level);
/* There are some to tell of. */
bool umd_limit_pending(void);
struct umd_limit_told {
    umdLogLevel level;
    int32_t code;
    uint32_t line;
    char module[16], func[48], file[48], message[160];
};
/* The next of those whose period is over (all: any), to be logged by the caller. False: none. Any lock below rank 95 may be held. */
bool umd_limit_take(uint64_t now_ns, bool all, struct umd_limit_told *out);
void umd_limit_reset(void);
void umd_limit_atfork(int stage);

/* scene.c */
/* Frame of a function of this library that the one which raised has called. */
void umd_scene_take(struct umd_diag_thread *t, const umdErrorDetail *rec, const void *frame, const umdErrorNote *errors, uint32_t error_count);
/* A record of elsewhere is met by a public call of this thread: its calls become the scene's, if it has none. */
void umd_scene_met(struct umd_diag_thread *t, umdRecordId id);
bool umd_scene_known(umdRecordId id);
void umd_scene_pin(umdRecordId id);
void umd_scene_reset(void);
/* "libumd.so.0+0x1234 umdMemFree+0x20"; no address of this run. */
size_t umd_scene_frame_format(uint64_t frame, char *buf, size_t size);
/* record_store.c */
void umd_record_store_atfork(int stage); /* 0 prepare, 1 parent, 2 child */

/* figures.c: formats figures, quoting and escaping as the grammar wants; returns their length, which is less than size. */
size_t umd_figures_vformat(char *buf, size_t size, const char *fmt, va_list ap) __attribute__((format(printf, 3, 0)));

/* fault_plan.c */
void umd_fault_atfork(int stage);

/* log.c: a line whose texts are copied; used for records and for frameworks. */
struct umd_log_text {
    umdLogLevel level;
    const char *module;
    const char *func, *file;
    uint32_t line;
    int32_t code;
    uint64_t context_id;
    umdRecordId record;
    const char *trace_id;
    const char *message;
};
void umd_log_text(const struct umd_log_text *text);
void umd_log_step_reset(void);
/* Tells of all failures that were too many to be logged one by one, without waiting for the end of their period. */
void umd_log_tell_held(void);

static inline void umd_copy_str(char *dst, size_t size, const char *src)
{
    size_t i = 0;

    if (!src)
        src = "";
    for (; i + 1 < size && src[i]; i++)
        dst[i] = src[i];
    dst[i] = '\0';
}
#define UMD_COPY_STR(dst_, src_) umd_copy_str((dst_), sizeof(dst_), (src_))

static inline bool umd_id_equal(umdRecordId a, umdRecordId b)
{
    return a.seq == b.seq && a.pid == b.pid && a.boot == b.boot;
}

#endif
