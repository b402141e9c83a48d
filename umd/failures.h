/* SPDX-License-Identifier: MIT */
/* failures.h - the failures of a stream: those that no call has returned yet, and those that one has. */
#ifndef UMD_FAILURES_H
#define UMD_FAILURES_H

#include <stdatomic.h>
#include <stdbool.h>

#include <umd/umd_diag.h>

enum {
    UMD_FAILURES_UNREAD = 4,         /* a queue takes no work after a cancellation, so there can hardly be more at a time */
    UMD_FAILURES_TOLD = 8,
};

/** Under state_lock of the device; zero is empty. */
struct umd_failures {
    _Atomic(uint32_t) unread_count;  /* read without the lock as well: is there one at all */
    uint32_t told_count;             /* free-running */
    umdErrorDetail unread[UMD_FAILURES_UNREAD]; /* oldest first */
    umdRecordId told[UMD_FAILURES_TOLD];
};

bool umd_same_record(const umdRecordId *a, const umdRecordId *b);
/** Which failure a record is about: that of work which fell with other work of its queue is about the other's. */
umdRecordId umd_failure_of(const umdErrorDetail *detail);

/** True: kept for the next call. False: a call has returned it or will, or there is no room. */
bool umd_failures_add(struct umd_failures *f, const umdErrorDetail *detail);
/** The oldest unread one, which is told from here on. False: none. */
bool umd_failures_take(struct umd_failures *f, umdErrorDetail *detail_out);
/** A call returns a record about the failure; no other call needs to. */
void umd_failures_tell(struct umd_failures *f, const umdRecordId *failure);
bool umd_failures_told(const struct umd_failures *f, const umdRecordId *failure);
/** The last one that was told; seq 0: none. */
umdRecordId umd_failures_last_told(const struct umd_failures *f);

#endif
