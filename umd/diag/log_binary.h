/* SPDX-License-Identifier: MIT */
/* log_binary.h - the compact binary log file: its format, and a reader that trusts nothing it reads. */
#ifndef UMD_DIAG_LOG_BINARY_H
#define UMD_DIAG_LOG_BINARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <umd/umd_log.h>

/*
 * Format, version 1. Little-endian throughout; a varint is LEB128 of at most 10 bytes, a zigzag varint one of (v << 1) ^ (v >> 63);
 * a string is a varint length and so many bytes, without an end.
 *
 * File: one struct umd_log_binary_head, then blocks. Each file can be decoded alone: a rotated one begins with a head again, and call
 * sites are defined in each file before they are used.
 * Block: one struct umd_log_binary_block, then payload_B bytes of items. A block whose CRC is wrong is skipped; the reader looks for the
 * next block mark. What a torn tail lost is one block. Times and the values "as before" start anew with each block.
 * Item: a tag byte, then
 *   UMD_BINARY_SITE    varint id, byte level, varint line, strings module, func, file, fmt
 *   UMD_BINARY_RECORD  (0x40 | flags) zigzag time since the item before (in ns; of the first: since the block's mono_ns), varint site id,
 *                      varint thread id if UMD_BINARY_TID, varint depth if UMD_BINARY_DEPTH, varint context id if UMD_BINARY_CONTEXT
 *                      (not set: as in the record before; at first 0), varint args_B, the arguments as log_encode.h has them
 *   UMD_BINARY_TEXT    (0x80 | flags) zigzag time and the optional fields as above, byte level, varint line, zigzag code, varints boot, pid
 *                      and seq of the error record, strings module, func, file, trace, message. trace: a trace id, or a context of
 *                      the thread's own as TRACEPARENT has it; "": as the head says
 */
#define UMD_BINARY_VERSION 1u
#define UMD_BINARY_BLOCK_MARK 0x314b4250u /* "PBK1" */
#define UMD_BINARY_PAYLOAD_MAX_B (4u << 20)
enum { UMD_BINARY_SITE = 0x01, UMD_BINARY_RECORD = 0x40, UMD_BINARY_TEXT = 0x80,
       UMD_BINARY_TID = 0x01, UMD_BINARY_DEPTH = 0x02, UMD_BINARY_CONTEXT = 0x04, UMD_BINARY_FLAGS = 0x07 };

struct umd_log_binary_head {
    char magic[8];              /* "PTRLBLOG" */
    uint32_t crc;               /* zlib's crc32 of what follows in the head */
    uint16_t version, head_B;   /* a later version may have a longer head */
    uint32_t args_version;      /* of the encoding of arguments: 1 */
    uint32_t pid;
    uint64_t start_real_ns;     /* CLOCK_REALTIME and CLOCK_MONOTONIC, taken together as the file was opened */
    uint64_t start_mono_ns;
    uint64_t start_tsc, tsc_hz; /* the time stamp counter at the same moment, and its rate; 0: not known */
    char program_version[16];
    char program[64];           /* base name of the executable */
    char trace_id[33], span_id[17], trace_flags[3]; /* of TRACEPARENT; "" without one */
    char reserved[11];
};

struct umd_log_binary_block {
    uint32_t mark;              /* UMD_BINARY_BLOCK_MARK */
    uint32_t crc;               /* zlib's crc32 of what follows in this struct and the payload */
    uint32_t payload_B, count;  /* count of records, without call sites */
    uint64_t mono_ns, real_ns;  /* a pair: how monotonic time maps to real time in this block */
};

/* ---- Reader: for umd-log and tests. One thread at a time. ---- */

struct umd_log_binary;

struct umd_log_binary_record {
    umdLogLevel level;
    const char *module, *func, *file, *message, *trace_id, *span_id, *trace_flags; /* never NULL, "" for none; valid until the next call */
    const char *fmt;            /* of the call site; "" for a text record */
    uint32_t line;
    int32_t code;
    uint64_t mono_ns, real_ns;
    uint64_t context_id;
    umdRecordId record;
    uint32_t pid, tid, depth;
    uint32_t site_id;           /* 0: a text record */
};

struct umd_log_binary_stats {
    uint64_t records, blocks;
    uint64_t damaged_blocks, damaged_B; /* skipped: wrong CRC, or what is no block */
    uint64_t bad_items;                 /* in blocks whose CRC was right: written by something else */
    bool torn;                          /* the file ends within a block: not written yet, or never */
};

/** UMD_ERR_RES_FILE: cannot be read, or is no binary log of a known version. *out is closed with umd_log_binary_close. */
UMD_API UMD_MUST_CHECK umdStatus umd_log_binary_open(const char *path, struct umd_log_binary **out);
/** The next record. UMD_STATUS_NOT_READY: the end for now; of a file that grows there may be more later. UMD_ERR_RES_FILE: reading failed. */
UMD_API UMD_MUST_CHECK umdStatus umd_log_binary_next(struct umd_log_binary *b, struct umd_log_binary_record *out);
UMD_API const struct umd_log_binary_head *umd_log_binary_head_of(const struct umd_log_binary *b);
UMD_API void umd_log_binary_get_stats(const struct umd_log_binary *b, struct umd_log_binary_stats *out);
/** NULL is allowed. */
UMD_API void umd_log_binary_close(struct umd_log_binary *b);
/** The record as the text file or the JSON file has it, with its line end; returns the length it needs, as snprintf. */
UMD_API size_t umd_log_binary_format(const struct umd_log_binary_record *r, umdLogFormat format, char *buf, size_t size);

#endif
