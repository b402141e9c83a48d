/* SPDX-License-Identifier: MIT */
/* print.h - records to standard output: as lines of the text format, coloured on a terminal, or as JSON lines. */
#ifndef UMD_LOG_PRINT_H
#define UMD_LOG_PRINT_H

#include "rec.h"
#include "umd-text.h"

enum text_colour print_level_colour(int level);
/* SeverityNumber of OpenTelemetry's log data model. */
int print_severity(int level);

/* label: which file it is from, NULL where only one is read. */
void print_text(const struct log_rec *rec, const char *label);
/* In the JSON format of the log itself; the file's path, where not NULL, is the attribute "log.file.path". */
void print_json(const struct log_rec *rec, const char *path);
/* The same as an object, which the caller puts. */
struct json_object *print_json_object(const struct log_rec *rec, const char *path);

#endif
