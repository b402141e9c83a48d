/* SPDX-License-Identifier: MIT */
/* log_internal.h - entries, rings and sinks of the log; inside libumd_diag only. */
#ifndef UMD_LOG_INTERNAL_H
#define UMD_LOG_INTERNAL_H

#include "diag_internal.h"

struct umd_log_ring;
/* The thread ends: what it logged is still written, then the ring is freed. */
void umd_log_ring_orphan(struct umd_log_ring *ring);

/* "%p" becomes the process id, "%%" a percent sign. False if it does not fit. */
bool umd_log_expand_path(char *out, size_t size, const char *path);

void umd_emergency_init(void);
void umd_emergency_atfork_child(void);

#endif
