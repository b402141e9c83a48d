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

/* What the first line of a text file tells: "# petrel log, version 0.1.0, pid 18470, opened 2026-...". Zero and "" where it does not. */
struct log_header {
    char kind[16];          /* "run" or "disaster": text for people, whose lines are no records; "": a log */
    char version[24];
    uint32_t pid;
    uint64_t opened_ns;
};
void log_parse_header(struct log_header *header, const char *line);

#endif
