/* SPDX-License-Identifier: MIT */
/* ring.h - an emergency ring, read as records of a log. */
#ifndef UMD_LOG_RING_TOOL_H
#define UMD_LOG_RING_TOOL_H

#include "emergency.h"
#include "rec.h"

struct log_ring {
    const char *path;
    struct umd_emergency_slot *slots;   /* oldest first */
    uint32_t count, damaged;
};

/* The path must outlive it. False after one line on stderr; there is nothing to finish then. */
bool log_ring_read(struct log_ring *ring, const char *path);
void log_ring_finish(struct log_ring *ring);
/* The i-th, which is then shown like a line of a log; texts in the file may be anything. False after one line: no memory. */
bool log_ring_rec(const struct log_ring *ring, uint32_t i, struct log_rec *rec);

#endif
