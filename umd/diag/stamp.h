/* SPDX-License-Identifier: MIT */
/* stamp.h - the cheapest clock there is, for log entries and call records; turned into nanoseconds off the hot path. */
#ifndef UMD_DIAG_STAMP_H
#define UMD_DIAG_STAMP_H

#include <stdatomic.h>

#include "sys.h"

/* A moment by both clocks. */
struct umd_stamp_pair {
    uint64_t stamp, mono_ns;
};

/* True: stamps are the processor's time-stamp counter, which runs at one rate on all cores. Else they are umd_sys()->mono_ns(). */
extern _Atomic(bool) umd_stamp_is_counter __attribute__((visibility("hidden")));

static inline uint64_t umd_stamp(void)
{
#if defined(__x86_64__)
    if (__builtin_expect(atomic_load_explicit(&umd_stamp_is_counter, memory_order_relaxed), 1))
        return __builtin_ia32_rdtsc();
#endif
    return umd_sys()->mono_ns();
}

/* Chooses the clock anew: after a change of the host table or of stepped mode, with the log flushed. */
void umd_stamp_choose(void);
/* Reads both clocks now; *slope_out: nanoseconds a stamp, measured since the clock was chosen. */
struct umd_stamp_pair umd_stamp_now(double *slope_out);
/* Nanoseconds of a stamp, given what umd_stamp_now said at a moment not long after (or before) it. */
static inline uint64_t umd_stamp_mono(uint64_t stamp, struct umd_stamp_pair now, double slope)
{
    return now.mono_ns + (uint64_t)(int64_t)((double)(int64_t)(stamp - now.stamp) * slope);
}

#endif
