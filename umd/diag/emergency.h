/* SPDX-License-Identifier: MIT */
/* emergency.h - the last 256 critical records in memory that outlives the process (C7). */
#ifndef UMD_DIAG_EMERGENCY_H
#define UMD_DIAG_EMERGENCY_H

#include "record.h"

#define UMD_EMERGENCY_SLOTS 256u
#define UMD_EMERGENCY_TEXT 704u

/* One record as it lies in the file; the CRC is zlib's crc32 over all that follows it. */
struct umd_emergency_slot {
    _Atomic(uint32_t) busy;
    uint32_t crc;
    uint64_t seq;           /* counts from 1; 0: never written */
    uint64_t mono_ns, real_ns;
    uint64_t context_id;
    umdRecordId record;
    uint32_t pid, tid;
    int32_t code;           /* 0: a note on a lifecycle */
    uint32_t line;
    char module[16];
    char func[48];
    char file[48];
    char message[UMD_EMERGENCY_TEXT];
};

/* A page in front of the slots. */
struct umd_emergency_head {
    char magic[8];          /* "PTRLEMRG" */
    uint32_t version;       /* 1 */
    uint32_t slot_size_B, slot_count;
    uint32_t pid;
    uint64_t start_real_ns;
    char program_version[16];
};

struct umd_emergency_note {
    const char *module, *func, *file;
    uint32_t line;
    int32_t code;
    uint64_t context_id;
    umdRecordId record;
    const char *message;
};

/** Copies the note into the ring: no lock, no allocation, no system call. */
UMD_API void umd_emergency_put(const struct umd_emergency_note *note);
/** Puts the ring into a file (%p: process id), after what it holds already. An older file becomes path.1. UMD_ERR_RES_FILE. */
UMD_API UMD_MUST_CHECK umdStatus umd_emergency_open(const char *path);
/** Reads a ring from a file, oldest first; damaged slots are counted, not returned. UMD_ERR_RES_FILE. */
UMD_API UMD_MUST_CHECK umdStatus umd_emergency_read(const char *path, struct umd_emergency_slot *slots_out, uint32_t max,
                                                    uint32_t *count_out, uint32_t *damaged_out);
/** As above from this process's own ring. Returns how many. */
UMD_API uint32_t umd_emergency_snapshot(struct umd_emergency_slot *slots_out, uint32_t max);
/** Records put since start. */
UMD_API uint64_t umd_emergency_count(void);

/** A lifecycle line: INFO in the log, and kept in the emergency ring. */
#define UMD_LIFECYCLE(fmt_, ...)                                                                         \
    do {                                                                                                 \
        UMD_LOG(UMD_LOG_INFO, fmt_, ##__VA_ARGS__);                                                      \
        umd_emergency_notef(&umd_log_this_module, __func__, __FILE_NAME__, __LINE__, fmt_, ##__VA_ARGS__); \
    } while (0)
UMD_API void umd_emergency_notef(umdLogModule *module, const char *func, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

#endif
