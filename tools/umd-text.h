/* SPDX-License-Identifier: MIT */
/* umd-text.h - text and JSON on the standard output of a tool: bytes that no terminal should get, paragraphs, colours. */
#ifndef UMD_TEXT_H
#define UMD_TEXT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the printable UTF-8 sequence at s, 0 if it is none: control characters and torn sequences are not. */
size_t text_printable(const char *s);
/* In place: what a terminal could take for a command becomes '?'. */
void text_clean(char *text);
/* How many of at most n bytes to take without cutting a character in two. */
size_t text_cut(const char *text, size_t n);
/* Of a path what follows the last slash. */
const char *text_base_name(const char *path);
/* text ends with a NUL at text[n]. */
bool text_is_text(const char *text, size_t n);

/* Standard output is a terminal that wants colours. */
bool text_coloured(void);
/* The escape sequence, or "" where colours are off. */
enum text_colour { TEXT_PLAIN, TEXT_BOLD, TEXT_DIM, TEXT_RED, TEXT_YELLOW, TEXT_GREEN, TEXT_CYAN };
const char *text_colour(enum text_colour colour);
/* A paragraph of at most `columns`, broken at blanks, behind a prefix and a label of at least label_n columns; nothing for "". */
void text_paragraph(const char *prefix, int label_n, const char *label, const char *text, size_t columns);

/* A string. JSON is UTF-8: of what is not, each byte becomes '?'. */
struct json_object *json_text(const char *text);
/* Adds to an object; NULL text adds nothing. */
void json_add_text(struct json_object *o, const char *key, const char *text);
void json_add_number(struct json_object *o, const char *key, int64_t v);
void json_add_bool(struct json_object *o, const char *key, bool v);
/* As a string: 64-bit numbers are strings, as in OTLP. */
void json_add_big(struct json_object *o, const char *key, uint64_t v);
/* In place: each string of it as text_clean leaves it; names of members stay. */
void json_clean(struct json_object *o);
/* Of a member; "", false, where it is not there. o may be NULL. */
const char *json_text_of(struct json_object *o, const char *key);
bool json_is_true(struct json_object *o, const char *key);
/* Indented, to standard output. */
void json_put_out(struct json_object *o);
/* The same, and it is put. */
void json_put_away(struct json_object *o);

#endif
