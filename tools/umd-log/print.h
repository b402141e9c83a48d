/* SPDX-License-Identifier: MIT */
/* print.h - records to standard output: as lines of the text format, coloured on a terminal, or as JSON lines. */
#ifndef UMD_LOG_PRINT_H
#define UMD_LOG_PRINT_H

#include <json-c/json.h>

#include "rec.h"

/* Standard output is a terminal that wants colours. */
bool print_coloured(void);
/* The escape sequence, or "" where colours are off. */
enum print_colour { PRINT_PLAIN, PRINT_BOLD, PRINT_DIM, PRINT_RED, PRINT_YELLOW, PRINT_GREEN, PRINT_CYAN };
const char *print_colour(enum print_colour colour);
enum print_colour print_level_colour(int level);

/* label: which file it is from, NULL where only one is read. */
void print_text(const struct log_rec *rec, const char *label);
/* In the JSON format of the log itself; the file's path, where not NULL, is the attribute "log.file.path". */
void print_json(const struct log_rec *rec, const char *path);
/* The same as an object, which the caller puts. */
struct json_object *print_json_object(const struct log_rec *rec, const char *path);

/* Adds to an object; text that is not UTF-8 has been cleaned by the reader. NULL text adds nothing. */
void json_add_text(struct json_object *o, const char *key, const char *text);
void json_add_number(struct json_object *o, const char *key, int64_t v);
/* As a string: 64-bit numbers are strings, as in OTLP. */
void json_add_big(struct json_object *o, const char *key, uint64_t v);
/* Indented, to standard output. */
void json_put_out(struct json_object *o);

#endif
