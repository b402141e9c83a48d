/* SPDX-License-Identifier: MIT */
/* snapshot_internal.h - between the crash handler, the writer of the snapshot, and the state of threads; inside libumd_diag only. */
#ifndef UMD_DIAG_SNAPSHOT_INTERNAL_H
#define UMD_DIAG_SNAPSHOT_INTERNAL_H

#include "diag_internal.h"
#include "snapshot.h"
#include "snapshot_out.h"

/* Writes the sections. One at a time: its memory is static. 0 or errno: it is cut short. */
int umd_snapshot_write(int fd, int sig, const siginfo_t *info, const void *ucontext);
const char *umd_snapshot_signal_name(int sig);
void umd_state_write(struct umd_state_out *o);

/* ---- snapshot_signal.c ---- */
void umd_crash_init(void);              /* by environment */
void umd_crash_atfork_child(void);
/* A thread that the library knows gets a stack for signals, if it has none: after an overflow there is no other. */
void umd_crash_thread_begin(struct umd_diag_thread *t);
void umd_crash_thread_end(struct umd_diag_thread *t);

#endif
