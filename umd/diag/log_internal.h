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
    const char *module, *func, *file, *message, *trace_id; /* trace_id NULL: none */
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

enum umd_log_sink_id { UMD_SINK_CONSOLE, UMD_SINK_TEXT, UMD_SINK_JSON, UMD_SINK_COUNT };

/* ---- levels: log_levels.c; lock rank 90 for the modules, 97 for the rules ---- */
enum { UMD_LEVELS_ALL = UMD_SINK_COUNT, UMD_LEVELS_SETS };
/* Replaces the rules of one sink, or those for all (UMD_LEVELS_ALL). False: *bad_out is the offset of the mistake, nothing changed. */
bool umd_log_levels_set(int which, const char *spec, size_t *bad_out);
/* Counts in, and with what default, a sink takes part. */
void umd_log_levels_enable(enum umd_log_sink_id sink, bool enabled);
umdLogLevel umd_log_level_of(enum umd_log_sink_id sink, const char *module);
umdLogLevel umd_log_level_max(const char *module);
void umd_log_levels_atfork(int stage);  /* modules */
void umd_log_rules_atfork(int stage);

/* ---- sinks ---- */
size_t umd_log_format_console(const struct umd_log_line *line, char *buf, size_t size);
size_t umd_log_format_text(const struct umd_log_line *line, char *buf, size_t size);
size_t umd_log_format_json(const struct umd_log_line *line, char *buf, size_t size);

#define UMD_SINK_BUFFER_B 32768u
/* A file, or the console, with what is not written yet. All under the drain lock (92). */
struct umd_log_sink {
    size_t (*format)(const struct umd_log_line *line, char *buf, size_t size);
    bool enabled, is_console, with_header;
    int fd;                     /* -1: not open */
    char path[UMD_LOG_PATH_B];
    uint64_t max_B, written_B;
    uint32_t keep;
    bool need_header, torn;     /* torn: the last line went out in part */
    bool failing, warned, tell; /* tell: it has just begun to fail, and nobody was told */
    int err;
    uint64_t lost, retry_ns;
    uint32_t lines;             /* in buf */
    size_t used;
    char buf[UMD_SINK_BUFFER_B];
};
void umd_log_sink_add(struct umd_log_sink *s, const struct umd_log_line *line);
/* Writes what is in the buffer; a failure is counted, and `tell` asks for a warning through the other sinks. */
void umd_log_sink_flush(struct umd_log_sink *s);
/* 0 or errno. An older file is moved on (path.1 ...). */
int umd_log_sink_open(struct umd_log_sink *s);
void umd_log_sink_close(struct umd_log_sink *s);
void umd_log_sink_child(struct umd_log_sink *s);

/* ---- writer: log_writer.c ---- */
/* After an entry is in a ring: wakes the writer if it sleeps; at_once: it is not to wait for a batch either. */
void umd_log_wake(bool at_once);
/* Somebody drains the rings; and: it will look at them by itself. Read on the hot path. */
extern _Atomic(bool) umd_log_has_writer __attribute__((visibility("hidden"))), umd_log_writer_awake __attribute__((visibility("hidden")));
/* True: nobody drains the rings, so the caller writes by itself. */
bool umd_log_is_sync(void);
void umd_log_write_now(struct umd_log_line *line);
/* Guards the rings' consumer side and the sinks; rank 92. */
void umd_log_drain_lock(void);
void umd_log_drain_unlock(void);
void umd_log_drain_assert_held(void);
void umd_log_writer_init(void);
void umd_log_writer_fini(void);
void umd_log_writer_atfork(int stage);

/* ---- settings: log_settings.c ---- */
/* Levels, sinks and rotation by environment. */
void umd_log_settings_init(void);

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
