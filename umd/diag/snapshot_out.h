/* SPDX-License-Identifier: MIT */
/* snapshot_out.h - text written, and memory read, by means that a crashed process still has: no lock, no allocation, no stdio. */
#ifndef UMD_DIAG_SNAPSHOT_OUT_H
#define UMD_DIAG_SNAPSHOT_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file, written through a buffer; or, with fd -1, the buffer alone, which is then cut and ended. */
struct umd_state_out {
    int fd;
    bool cut;
    int failed; /* errno of a write that could not be made, after which no other is tried; 0: none */
    size_t used, size;
    char *buf;
};

void umd_raw_bytes(struct umd_state_out *o, const char *bytes, size_t n);
void umd_raw_text(struct umd_state_out *o, const char *text);
void umd_raw_u64(struct umd_state_out *o, uint64_t v);
void umd_raw_i64(struct umd_state_out *o, int64_t v);
void umd_raw_hex(struct umd_state_out *o, uint64_t v);              /* 0x... */
void umd_raw_hex_bytes(struct umd_state_out *o, const void *bytes, size_t n);
/* In double quotes; what is not printable ASCII, and quote and backslash, as \xHH. */
void umd_raw_quoted(struct umd_state_out *o, const char *text);
/* " key=" and the value. */
void umd_raw_kv_u64(struct umd_state_out *o, const char *key, uint64_t v);
void umd_raw_kv_i64(struct umd_state_out *o, const char *key, int64_t v);
void umd_raw_kv_hex(struct umd_state_out *o, const char *key, uint64_t v);
void umd_raw_kv_text(struct umd_state_out *o, const char *key, const char *text);
void umd_raw_flush(struct umd_state_out *o);

/* Copies from an address that may be bad. False: not all of it can be read. Changes errno. */
bool umd_peek(void *to, const void *from, size_t n);
/* A string, cut to size - 1. False: not readable; then "". */
bool umd_peek_text(char *to, size_t size, const char *from);

#endif
