/* SPDX-License-Identifier: MIT */
/* log_internal.h - lines, sinks, levels and the writer of the log; inside libumd_diag only. */
#ifndef UMD_LOG_INTERNAL_H
#define UMD_LOG_INTERNAL_H

#include "diag_internal.h"

#define UMD_LOG_MESSAGE_B 2048u
#define UMD_LOG_PATH_B 4096u

/* A record ready for the sinks. */
struct umd_log_line {
    umdLogLevel level;
    const char *module, *func, *file, *message;
    const char *trace_id, *span_id, *trace_flags; /* NULL: those of the process, if it has some */
    uint32_t line;
    int32_t code;               /* 0: none */
    uint64_t mono_ns, real_ns, observed_ns;
    uint64_t context_id;
    umdRecordId record;
    uint32_t pid, tid, depth;
    /* As it was logged; site NULL: a text line, which has its message at once. message may be NULL where there is a site. */
    const umdLogSite *site;
    uint32_t site_id;           /* 0: none given */
    const uint8_t *args;
    uint32_t args_B;
};

enum umd_log_sink_id { UMD_SINK_CONSOLE, UMD_SINK_TEXT, UMD_SINK_JSON, UMD_SINK_BINARY, UMD_SINK_RUN, UMD_SINK_DISASTER, UMD_SINK_COUNT };

/* Where a setting came from: those while running last. */
enum umd_log_source { UMD_SOURCE_DEFAULT, UMD_SOURCE_CONFIG, UMD_SOURCE_ENVIRONMENT, UMD_SOURCE_API, UMD_SOURCE_CONTROL };

/* ---- levels: log_levels.c; lock rank 90 for the modules, 97 for the rules ---- */
enum { UMD_LEVELS_NONE = -1, UMD_LEVELS_ALL = UMD_SINK_COUNT, UMD_LEVELS_SETS };
/* Replaces the rules of one sink, or those for all (UMD_LEVELS_ALL). False: *bad_out is the offset of the mistake, nothing changed. */
bool umd_log_levels_set(int which, const char *spec, enum umd_log_source source, size_t *bad_out);
/* A specification without a mistake; *bad_out as above. */
bool umd_log_levels_check(const char *spec, size_t *bad_out);
/* Rules that a call or the control socket has set are gone; those of file and environment stay. */
void umd_log_levels_forget(int which);
/* The rules in force as a specification, lower case, and who set them. */
enum umd_log_source umd_log_levels_describe(int which, char *buf, size_t size);
/* Counts in, and with what default, a sink takes part. */
void umd_log_levels_enable(enum umd_log_sink_id sink, bool enabled);
bool umd_log_levels_enabled(enum umd_log_sink_id sink);
umdLogLevel umd_log_level_of(enum umd_log_sink_id sink, const char *module);
/* The same, with the rules that decide: the sink's own (its number), those for all (UMD_LEVELS_ALL), or UMD_LEVELS_NONE, its default; and who set them. */
umdLogLevel umd_log_level_by(enum umd_log_sink_id sink, const char *module, int *which_out, enum umd_log_source *source_out);
/* The rules of a specification, one by one; a bare level, and all that there is of an empty one, is for module "". */
void umd_log_levels_each(const char *spec, void (*each)(void *arg, const char *module), void *arg);
umdLogLevel umd_log_level_max(const char *module);
/* Changes with each change of the rules: what was looked up before is to be looked up again. */
uint32_t umd_log_levels_epoch(void);
/* Names and highest levels of the modules that are loaded, each name once. */
void umd_log_modules_each(void (*each)(void *arg, const char *name, umdLogLevel level), void *arg);
void umd_log_levels_atfork(int stage);  /* modules */
void umd_log_rules_atfork(int stage);

/* ---- writer: log_writer.c ---- */
/* After an entry is in a ring: wakes the writer if it sleeps; at_once: it is not to wait for a batch either. */
void umd_log_wake(bool at_once);
/* Read on the hot path, and therefore on a line of their own: somebody drains the rings; and: it will look at them by itself. */
struct umd_log_writer_flags {
    _Alignas(64) _Atomic(bool) there;
    _Atomic(bool) awake;
};
extern struct umd_log_writer_flags umd_log_writer_flags __attribute__((visibility("hidden")));
/* True: nobody drains the rings, so the caller writes by itself. */
bool umd_log_is_sync(void);
void umd_log_write_now(struct umd_log_line *line);
/* umdLogFlush; false: the time was over. */
bool umd_log_flush_for(uint32_t timeout_ms);
/* Takes out of the rings what is there, by the calling thread. */
void umd_log_drain(void);
/* The writer looks at the control socket anew. */
void umd_log_writer_attend(void);
/* Guards the rings' consumer side and the sinks; rank 92. Until it is given back the thread's own log calls do nothing. */
void umd_log_drain_lock(void);
/* False: not to be had in that time, since a sink holds the writer up. */
bool umd_log_drain_lock_for(uint32_t timeout_ms);
/* As umd_log_drain_lock_for; what is in the rings then is with the sinks. */
bool umd_log_drain_hold(uint32_t timeout_ms);
void umd_log_drain_unlock(void);
void umd_log_drain_assert_held(void);
void umd_log_writer_init(void);
void umd_log_writer_fini(void);
void umd_log_writer_atfork(int stage);

/* ---- settings: log_settings.c ---- */
/* Levels, sinks and rotation by configuration file and environment; the latter counts. */
void umd_log_settings_init(void);
/* Warns of what could not be set, one line each. */
void umd_log_settings_report(void);
/* So long the writer lets lines gather; news of level WARN and above, and crowded rings, do not wait. */
uint32_t umd_log_flush_period_ms(void);
bool umd_log_control_wanted(void);

/* The thread ends: what it logged is still written, then the ring is freed. */
struct umd_log_ring;
void umd_log_ring_orphan(struct umd_log_ring *ring);

/* "%p" becomes the process id, "%%" a percent sign. False if it does not fit. */
bool umd_log_expand_path(char *out, size_t size, const char *path);
const char *umd_log_level_name(umdLogLevel level);

void umd_emergency_init(void);
void umd_emergency_fini(void);
void umd_emergency_atfork(int stage);

#endif
