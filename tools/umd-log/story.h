/* SPDX-License-Identifier: MIT */
/* story.h - error records of a log put together: what was raised, its way up, its end, and what failed because of what. */
#ifndef UMD_LOG_STORY_H
#define UMD_LOG_STORY_H

#include "set.h"

/* One layer boundary on the way up. */
struct story_hop {
    const char *layer, *func, *file, *in, *out; /* names of codes */
    uint32_t line;
};

/* One error record. The tree is of causes: a child failed because of its parent. */
struct story {
    umdRecordId id, cause;
    struct log_rec raised;      /* its line; where that is missing (filtered, rotated away), the first line that names it */
    bool has_raised;
    uint64_t times;             /* 1, and how often it was folded into this one */
    uint64_t last_ns;
    enum { STORY_OPEN, STORY_DELIVERED, STORY_ABSORBED, STORY_SWALLOWED } end;
    char *end_text;             /* who got it, or why it was absorbed; NULL: not told */
    char *api;                  /* the public call; NULL: not told */
    char *added;                /* figures that became known after the raise: kernel, source line, stream ...; NULL: none were told */
    char *out_code;             /* name of the code that it left with; NULL: the one it was raised with */
    struct story_hop *hops;
    uint32_t hop_count;
    char *hop_text;             /* where the hops' texts are */
    struct story *parent, *child, *last_child, *next; /* next: sibling, by time */
    bool cause_missing;         /* the cause is in no file that was read */
    struct story *hash_next;
};

struct story_book {
    struct story **hash;
    uint32_t hash_size;
    struct story **all;         /* by time of being raised */
    uint32_t count, size;
    struct story *first_cause;  /* the root that explains most; NULL: there are no errors */
    uint64_t swallowed, absorbed, errors;
    bool linked;
};

void story_book_init(struct story_book *book);
/* Takes what a line tells about a record; lines without one are passed over. False: no memory. */
bool story_book_add(struct story_book *book, const struct log_rec *rec);
/* After the last line: links, sorts, finds the first cause. */
bool story_book_link(struct story_book *book);
struct story *story_find(const struct story_book *book, umdRecordId id);
void story_book_finish(struct story_book *book);

/* "NAME at FILE:LINE" of the kernel that it was; false, "" in buf: none was told. */
bool story_kernel(const struct story *s, char *buf, size_t size);
/* ERROR or worse as it was raised; what an owner asked for (INFO, WARN) is none. */
bool story_is_error(const struct story *s);
const char *story_code_name(const struct story *s);
/* Its message without the code in front. */
const char *story_message(const struct story *s);
/* The layers on its way up in a row, with what became of the code; false: none is told. */
bool story_path(const struct story *s, char *out, size_t size);

#endif
