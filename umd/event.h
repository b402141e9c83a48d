/* SPDX-License-Identifier: MIT */
/* event.h - a point of a stream's timeline, with the time at which it was reached. */
#ifndef UMD_EVENT_H
#define UMD_EVENT_H

#include "stream.h"

struct umd_event {
    struct umd_object obj;
    struct umd_context *ctx;
    struct umd_slot slot;          /* the device writes its clock here */
    struct umd_mutex lock;         /* rank 32 */
    struct umd_stream *stream;     /* of the last record, referenced; NULL: never recorded */
    uint64_t point;
};

#endif
