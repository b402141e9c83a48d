/* SPDX-License-Identifier: MIT */
/* log_fold.h - errors that found their thread's ring full: the first of each call site is kept, the others are counted. */
#ifndef UMD_LOG_FOLD_H
#define UMD_LOG_FOLD_H

#include "log_internal.h"

/*
 * Any thread, lock-free, async-signal-safe. The emergency ring has the error already: here it waits for the writer's next round. A call
 * site is its number, and of a text (site_id 0) module, function, file, line and code. Each that our libraries have finds room, and some hundred
 * of others do (tests/unit/diag/sites.py counts); those beyond stay in the emergency ring alone. What is never written to is no memory.
 */
#define UMD_FOLD_SLOTS 1024u
void umd_log_fold_put(uint32_t site_id, const struct umd_log_text *text, uint64_t stamp, uint32_t tid, uint32_t depth,
                      const struct umd_log_trace_ids *trace);

struct umd_log_folded {
    uint64_t stamp, context_id;
    umdRecordId record;
    uint32_t line, tid, depth;
    int32_t code;
    uint32_t count;             /* the first, and as many more of the same call site less one */
    char module[16], func[48], file[48];
    struct umd_log_trace_ids trace; /* the thread's, where the line had none of its own */
    char message[512];
};
/* The writer: takes one out. False: none (left). */
bool umd_log_fold_take(struct umd_log_folded *out);
/* In a forked child: forgets what the parent will write. */
void umd_log_fold_child(void);

#endif
