/* SPDX-License-Identifier: MIT */
/* emergency.h - the last 256 critical records in memory that outlives the process (C7). */
#ifndef UMD_DIAG_EMERGENCY_H
#define UMD_DIAG_EMERGENCY_H

#include "record.h"

#define UMD_EMERGENCY_SLOTS 256u
#define UMD_EMERGENCY_TEXT 704u
#define UMD_EMERGENCY_PATH 512u
#define UMD_EMERGENCY_KEEP 8u       /* files of dead processes that stay in the state directory */

/*
 * Where the ring lies:
 *   default              a file emergency.PID in the user's state directory (see state_dir.h), made when the first record is put,
 *                        which umdInit does; a program that only links the library makes none. It is removed at a clean exit
 *                        when no ERROR was put, and stays otherwise. In stepped mode: memory, unless one of the following asks.
 *   UMD_EMERGENCY_FILE   that file (%p: process id), made at once; one of a process that is gone becomes path.1. A child of fork has its own,
 *                        path.PID, and so has who finds that a living process has the file; one WARN says so then.
 *   UMD_EMERGENCY=off    memory alone, whatever else is set. UMD_EMERGENCY=file: the default file, in stepped mode, too.
 * Both are settings of the log: in the configuration file, too.
 * Where no file can be had (no directory, disk full, no descriptor) the ring stays in memory; counted, and one WARN says why.
 * A child of fork starts clean and makes its own file. After exec the file of the program before is kept as emergency.PID.1.
 */

/* One record as it lies in the file; the CRC is zlib's crc32 over all that follows it. A process that dies within a record leaves
 * one whose CRC does not fit; those before it are whole. */
struct umd_emergency_slot {
    _Atomic(uint32_t) busy;
    uint32_t crc;
    uint64_t seq;           /* counts from 1; 0: never written */
    uint64_t mono_ns, real_ns;
    uint64_t context_id;
    umdRecordId record;
    uint32_t pid, tid;
    int32_t code;           /* 0: none */
    uint32_t line;
    uint32_t level;         /* UMD_LOG_ERROR; UMD_LOG_INFO: a note on a lifecycle */
    uint32_t reserved;
    char module[16];
    char func[48];
    char file[48];
    char message[UMD_EMERGENCY_TEXT];
};

/* A page in front of the slots. */
struct umd_emergency_head {
    char magic[8];          /* "PTRLEMRG" */
    uint32_t version;       /* 2 */
    uint32_t slot_size_B, slot_count;
    uint32_t pid;           /* of the host, in stepped mode, too */
    uint64_t start_real_ns;
    uint64_t start_ticks;   /* when the process started, as /proc/PID/stat has it: tells it from a later one with its id */
    char program_version[16];
    char program[16];       /* the kernel's short name of the process */
};

struct umd_emergency_note {
    const char *module, *func, *file;
    uint32_t line;
    int32_t code;
    bool lifecycle;
    uint64_t context_id;
    umdRecordId record;
    const char *message;
};

/**
 * What the settings ask for, before the first record: "off", "file", or "" for the default; false: another word, nothing is changed.
 * The configuration file's come first, then the environment's (log_settings.c). A process that only looks at others sets "off".
 */
UMD_API bool umd_emergency_set_mode(const char *word);
bool umd_emergency_is_mode(const char *word);
/** UMD_EMERGENCY_FILE, "": none. Made by umd_emergency_init, when all settings are read. False: too long, nothing is changed. */
bool umd_emergency_set_file(const char *path);

/**
 * Copies the note into the ring: no lock, no allocation, and, but for the first one, which makes the file, no system call. Async-signal-safe.
 * What there is to say of the file is told by umd_emergency_tell.
 */
UMD_API void umd_emergency_put(const struct umd_emergency_note *note);
/* For who logs next: the WARN that no file could be had, or that it has another name, if it is due. As safe as UMD_LOG. */
void umd_emergency_tell(void);

/** Records put since start. */
UMD_API uint64_t umd_emergency_count(void);

enum umd_emergency_where { UMD_EMERGENCY_MEMORY, UMD_EMERGENCY_DEFAULT_FILE, UMD_EMERGENCY_NAMED_FILE };
struct umd_emergency_stats {
    uint64_t put, errors;   /* errors: those of level ERROR */
    uint64_t lost;          /* found no free slot */
    uint64_t degraded;      /* times a file was wanted and could not be had */
    int32_t degraded_errno; /* why, the last time */
    enum umd_emergency_where where;
    char path[UMD_EMERGENCY_PATH]; /* "": memory */
};
UMD_API void umd_emergency_get_stats(struct umd_emergency_stats *stats_out);

/* ---- Reading ---- */

/**
 * Reads a ring from a file, oldest first; damaged slots (torn by a kill, or overwritten) are counted, not returned. The process may
 * still live; a record that is being written just then counts as damaged. UMD_ERR_RES_FILE, UMD_ERR_PARAM_NULL.
 */
UMD_API UMD_MUST_CHECK umdStatus umd_emergency_read(const char *path, struct umd_emergency_slot *slots_out, uint32_t max,
                                                    uint32_t *count_out, uint32_t *damaged_out);
/** The head alone, checked. UMD_ERR_RES_FILE, UMD_ERR_PARAM_NULL. */
UMD_API UMD_MUST_CHECK umdStatus umd_emergency_read_head(const char *path, struct umd_emergency_head *head_out);
/** As above from this process's own ring. Returns how many. */
UMD_API uint32_t umd_emergency_snapshot(struct umd_emergency_slot *slots_out, uint32_t max);
/** The record `seq` of this process's ring; false: overwritten, never put, or being written. Async-signal-safe, changes nothing. */
UMD_API bool umd_emergency_peek(uint64_t seq, struct umd_emergency_slot *slot_out);
/** The sequence number that comes next. Async-signal-safe. */
UMD_API uint64_t umd_emergency_next_seq(void);

struct umd_emergency_found {
    char path[UMD_EMERGENCY_PATH];
    uint32_t pid;
    bool alive;             /* its process still runs */
    uint64_t mtime_ns;      /* real time of the file's making or last change of its head; records tell their own */
};
/**
 * The emergency files of this user, in all candidate directories, newest first. pid 0: of all processes.
 * Returns how many were written to found_out, at most max and 64.
 */
UMD_API uint32_t umd_emergency_find(uint32_t pid, struct umd_emergency_found *found_out, uint32_t max);

/** A lifecycle line: INFO in the log, and kept in the emergency ring. */
#define UMD_LIFECYCLE(fmt_, ...)                                                                         \
    do {                                                                                                 \
        UMD_LOG(UMD_LOG_INFO, fmt_, ##__VA_ARGS__);                                                      \
        umd_emergency_notef(&umd_log_this_module, __func__, __FILE_NAME__, __LINE__, fmt_, ##__VA_ARGS__); \
    } while (0)
UMD_API void umd_emergency_notef(umdLogModule *module, const char *func, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

#endif
