/* SPDX-License-Identifier: MIT */
/* clock.h - the device's virtual time. */
#ifndef HW_CLOCK_H
#define HW_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * One writer, the device thread (in stepped mode the one host thread); readers anywhere, without a lock. The writer moves the
 * clock by work done; while it says "idle", time follows the host's monotonic clock from the value reached (never ahead of it:
 * time lost to slow simulation is not made up). A stepped clock has no idle state and moves only by hw_clock_advance_to.
 * Who gives the idle device work holds the clock until the device thread has looked: a host that runs the thread late must not
 * look like a device that answers late.
 */
#define HW_CLOCK_HOLDING UINT64_MAX

struct hw_clock {
    _Atomic(uint32_t) seq;       /* odd while the fields change */
    _Atomic(uint64_t) base_ns;   /* device time at wall_ns, or now when not idle */
    _Atomic(uint64_t) wall_ns;   /* host time the idle clock started from */
    _Atomic(uint64_t) hold_ns;   /* host time at which the idle clock was held; 0: it runs, HW_CLOCK_HOLDING: about to be held */
    _Atomic(bool) idle;
    bool stepped;
    uint64_t step_epoch_ns;      /* stepped host time at power-up */
};

void hw_clock_init(struct hw_clock *clock, bool stepped);
uint64_t hw_clock_now(const struct hw_clock *clock);
/** Work is about to be given, any thread: an idle clock stands from now on, until the device thread says run or idle. */
void hw_clock_hold(struct hw_clock *clock);
/** Work starts: time stands, and moves by advance_to only. */
void hw_clock_run(struct hw_clock *clock);
/** Nothing moves time but the wall; ends a hold. No effect when stepped. */
void hw_clock_idle(struct hw_clock *clock);
/** Moves time forward; a value in the past is ignored. Not while idle. */
void hw_clock_advance_to(struct hw_clock *clock, uint64_t ns);

/** ns of cycles at clock_khz; the rest is carried in *rest, so that no time is lost over many calls. */
uint64_t hw_cycles_to_ns(uint32_t clock_khz, uint64_t cycles, uint64_t *rest);
/** Whole cycles that fit, at least 1. */
uint64_t hw_ns_to_cycles(uint32_t clock_khz, uint64_t ns);

#endif
