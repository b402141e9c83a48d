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
    uint64_t times;             /* 1, and how often it was folded into this one, as far as it is told */
    bool more;                  /* it was folded: of that the 1st, 10th, 100th ... time is logged, so `times` is the least that it was */
    uint64_t last_ns;
    enum { STORY_OPEN, STORY_DELIVERED, STORY_ABSORBED, STORY_SWALLOWED } end;
    char *end_text;             /* who got it, or why it was absorbed; NULL: not told */
    char *api;                  /* the public call; NULL: not told */
    char *added;                /* figures that became known after the raise: kernel, source line, stream ...; NULL: none were told */
    umdAdvice advice;           /* action, delay_ms, count, largest_fit_B of this occurrence, else the table's of the code */
    bool advice_told;           /* by the log: else the table's */
    char *out_code;             /* name of the code that it left with; NULL: the one it was raised with */
    struct story_hop *hops;
    uint32_t hop_count;
    char *hop_text;             /* where the hops' texts are */
    struct story *parent, *child, *last_child, *next; /* next: sibling, by time */
    bool cause_missing;         /* the cause is in no file that was read */
    uint32_t pass;              /* in which the search for rings of causes came by; 0: none yet */
    struct story *hash_next;
};

/* Failures of one code from one place of a process that were too many to be logged one by one: no records, but a number. */
struct story_held {
    struct log_rec rec;         /* the first line that tells of them, with the code in it */
    uint64_t count;
    uint64_t since_ns;          /* of the line that was counted last: the same line of another file counts once */
};

struct story_book {
    struct story **hash;
    uint32_t hash_size;
    struct story **all;         /* by time of being raised */
    uint32_t count, size;
    struct story *first_cause;  /* the root that explains most; NULL: there are no errors */
    uint64_t swallowed, absorbed, errors;
    struct story_held *held;
    uint32_t held_count, held_size;
};

void story_book_init(struct story_book *book);
/* Takes what a line tells about a record, or of those that were not logged; other lines are passed over. False: no memory. */
bool story_book_add(struct story_book *book, const struct log_rec *rec);
/* After the last line: links, sorts, finds the first cause. */
void story_book_link(struct story_book *book);
struct story *story_find(const struct story_book *book, umdRecordId id);
void story_book_finish(struct story_book *book);

/* A line that tells of failures that were not logged one by one: how many, of which code; 0: it is none. */
uint64_t story_held_of(const struct log_rec *rec, char code[64]);
/* Those of the code and place of this record; 0: none. */
uint64_t story_held_like(const struct story_book *book, const struct story *s);
/* "N times", or "at least N times"; "" where it was once. */
const char *story_times(uint64_t times, bool more, char out[48]);
/* "NAME at FILE:LINE" of the kernel that it was; false, "" in buf: none was told. */
bool story_kernel(const struct story *s, char *buf, size_t size);
/* ERROR or worse as it was raised; what an owner asked for (INFO, WARN) is none. */
bool story_is_error(const struct story *s);
/** The next of the tree under root, depth first and without recursion, since chains may be long. NULL: s was the last. */
const struct story *story_after(const struct story *s, const struct story *root);
const char *story_code_name(const struct story *s);
/* Its message without the code in front. */
const char *story_message(const struct story *s);
/* The layers on its way up in a row, with what became of the code; false: none is told. */
bool story_path(const struct story *s, char *out, size_t size);

#endif
