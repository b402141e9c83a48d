/* SPDX-License-Identifier: MIT */
/* parse.h - one line of a log file into a record, per format. */
#ifndef UMD_LOG_PARSE_H
#define UMD_LOG_PARSE_H

#include "rec.h"

/*
 * The line is ended by a NUL at line[n], has none inside and no newline. False: it is no record of that format (or there is no memory);
 * the record is then empty.
 */
bool log_parse_text(struct log_rec *rec, const char *line, size_t n);
bool log_parse_json(struct log_rec *rec, const char *line, size_t n);

/*
 * The two logs for people, which have less in them. A line of the run log has no thread, place and monotonic time; what it tells of a
 * failure's call is the extra "call". A record of the disaster log is a block of lines, "==== ..." first, then labelled paragraphs, which
 * are gathered and then parsed, and the block is empty again; the extras are "call", "hops", "end", "reason", "code_out".
 */
bool log_parse_run(struct log_rec *rec, const char *line, size_t n);
struct log_block {
    char *text;
    size_t used, size;      /* used 0: none is begun */
    uint32_t lines;
};
bool log_block_begins(const char *line);
/* The line goes on with the block: it is indented, or the code behind the head. */
bool log_block_owns(const struct log_block *b, const char *line, size_t n);
/* False: no memory. */
bool log_block_add(struct log_block *b, const char *line, size_t n);
bool log_block_parse(struct log_rec *rec, struct log_block *b);
void log_block_finish(struct log_block *b);

/* What the first line of a text file tells: "# petrel log, version 0.1.0, pid 18470, opened 2026-...". Zero and "" where it does not. */
struct log_header {
    char kind[16];          /* "run" or "disaster": for people, with less in it; "": a log */
    char version[24];
    uint32_t pid;
    uint64_t opened_ns;
};
void log_parse_header(struct log_header *header, const char *line);

#endif
