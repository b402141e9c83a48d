/* SPDX-License-Identifier: MIT */
/* crash_file.h - a crash snapshot in memory: its sections, and the figures of a line (format: umd/diag/snapshot.h). */
#ifndef CRASH_FILE_H
#define CRASH_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CRASH_SECTIONS 24u
#define CRASH_TEXT_B 2048u

struct crash_section {
    const char *name;
    char **lines;
    size_t count;
};

struct crash {
    char *data;
    struct crash_section sections[CRASH_SECTIONS];
    size_t section_count;
    bool whole;                 /* has its end */
};

/* False: why says so in a few words. */
bool crash_load(const char *path, struct crash *c, char *why, size_t size);
void crash_unload(struct crash *c);
/* Never NULL; empty if it is not there. */
const struct crash_section *crash_section(const struct crash *c, const char *name);
/* The first line of a section; "" if there is none. */
const char *crash_line(const struct crash *c, const char *name);
/* The value of key=; a quoted one is unquoted, and what no terminal should get becomes '?'. False: not there; then "". */
bool crash_text(const char *line, const char *key, char *out, size_t size);
/* The text of a record, or the arguments of a call: message=, or fmt= with args= in hex; cleaned alike. "": neither is there. */
void crash_message(const char *line, char *out, size_t size);
/* 0 if it is not there or no number. */
uint64_t crash_u64(const char *line, const char *key);
int64_t crash_i64(const char *line, const char *key);
/* Bytes of a value in hex. Returns how many. */
size_t crash_bytes(const char *line, const char *key, uint8_t *out, size_t size);
/* The newest snapshot of a directory. False: none. */
bool crash_newest(const char *dir, char *path, size_t size);

#endif
