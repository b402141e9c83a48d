/* SPDX-License-Identifier: MIT */
/* explain.h - what the parts of umd-explain share. */
#ifndef UMD_EXPLAIN_H
#define UMD_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../umd-log/codes.h"
#include "../umd-log/rec.h"
#include "status.h"
#include "umd-text.h"

/* What the word on the command line means. */
enum explain_kind { EXPLAIN_NONE, EXPLAIN_CODE, EXPLAIN_UNKNOWN_VALUE, EXPLAIN_FOREIGN };
struct explain_word {
    enum explain_kind kind;
    int32_t value;                               /* CODE, UNKNOWN_VALUE */
    const struct umd_status_info *info;          /* CODE */
    const char *note;                            /* how the word was read where that is not plain; NULL */
};

/*
 * A code by name (any case, with or without UMD_ERR_, UMD_STATUS_ or class, '-' for '_') or by value (decimal, hex, unsigned); or a code
 * of CUDA, HIP, Level Zero, Vulkan or errno by its name.
 */
void explain_look_up(const char *word, struct explain_word *out);

/* What a number that is no code may be: a code of another interface, or what eight bits have left of one of ours. */
struct explain_hint {
    const char *of;         /* "errno", "VkResult", "CUDA or HIP", "Level Zero", "low byte" */
    const char *name;       /* there; of the low byte: of the code that has it */
    int32_t value;          /* there; of that code */
};
#define EXPLAIN_HINTS 12u
uint32_t explain_elsewhere(int32_t value, struct explain_hint *out, uint32_t max);

/* To standard output. */
void explain_code(const struct explain_word *w, bool json);
/* False: it is no code, lies in no range, and nothing is known of it elsewhere; nothing is printed. */
bool explain_value(const struct explain_word *w, bool json);
void explain_foreign(const char *word, bool json);
void explain_list(bool json);
/* Indented paragraph with a label, broken at blanks. */
void explain_paragraph(const char *label, const char *text);
struct json_object *explain_code_json(const struct umd_status_info *info);

/* The story of one record out of logs or emergency rings. Value: exit status; what is wrong has been said. */
int explain_record(umdRecordId id, const char *const *logs, uint32_t log_count, const char *const *rings, uint32_t ring_count, bool json);

#endif
