/* SPDX-License-Identifier: MIT */
/* event.h - a point of a stream's timeline, with the time at which it was reached. */
#ifndef UMD_EVENT_H
#define UMD_EVENT_H

#include "stream.h"

/** One record. The device writes its cell once, so that what was read of a record never changes: each has a cell of its own. */
struct umd_event_mark {
    struct umd_slot slot;          /* the device writes its clock here */
    struct umd_stream *stream;     /* referenced; NULL: never recorded */
    uint64_t point;
};

struct umd_event {
    struct umd_object obj;
    struct umd_context *ctx;
    struct umd_mutex lock;         /* rank 32 */
    struct umd_slot spare;         /* for the next record; va 0: none */
    struct umd_event_mark mark;    /* the last record */
};

#endif
