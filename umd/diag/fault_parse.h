/* SPDX-License-Identifier: MIT */
/* fault_parse.h - a fault specification as rules; inside libumd_diag only. */
#ifndef UMD_FAULT_PARSE_H
#define UMD_FAULT_PARSE_H

#include <stddef.h>

#include "fault_plan.h"

#define UMD_FAULT_RULES 64u
#define UMD_FAULT_TERMS 4u
#define UMD_FAULT_ARGS 4u
#define UMD_FAULT_ALWAYS 1000000u

struct umd_fault_term {
    const char *action;         /* interned, lives as long as the library */
    uint64_t args[UMD_FAULT_ARGS];
    uint32_t arg_count;
    uint32_t per_million;       /* UMD_FAULT_ALWAYS: each time */
    uint64_t count;             /* 0: no limit */
    uint64_t used;
};

/* Attributes by place; 0 in `given`: not set. */
enum umd_fault_attr { ATTR_NTH, ATTR_INTERVAL, ATTR_SPACE, ATTR_TIMES, ATTR_CTX, ATTR_QUEUE, ATTR_RANK, ATTR_COUNT };

struct umd_fault_rule {
    enum umd_fault_site site;
    uint64_t attr[ATTR_COUNT];
    bool given[ATTR_COUNT];
    struct umd_fault_term terms[UMD_FAULT_TERMS];
    uint32_t term_count, term_at;
    uint64_t hits, fired;       /* of this rule, after its filters */
};

struct umd_fault_plan {
    uint64_t seed;
    uint32_t rule_count;
    struct umd_fault_rule rules[UMD_FAULT_RULES];
};

/* Where and why a specification does not parse. */
struct umd_fault_error {
    size_t position;            /* bytes from the start */
    uint32_t line, column;      /* from 1 */
    char expected[160];
    char found[40];
    char suggestion[48];        /* nearest site name, "" for none */
};

/* Fills the plan; false with *error set, and then the plan is not to be used. */
bool umd_fault_parse(const char *spec, struct umd_fault_plan *plan, struct umd_fault_error *error);

#endif
