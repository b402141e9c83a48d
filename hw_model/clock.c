/* SPDX-License-Identifier: MIT */
/* clock.c - virtual device time: driven by work, by the wall when idle, by the pump when stepped. */
#include "clock.h"

#include <assert.h>

#include "sys.h"

void hw_clock_init(struct hw_clock *clock, bool stepped)
{
    *clock = (struct hw_clock){ .stepped = stepped };
    if (stepped && umd_sys_stepped())
        clock->step_epoch_ns = umd_sys()->mono_ns();
    hw_clock_idle(clock);
}

/*
 * A reader's wall reading lies between its two looks at seq; the writer reads the wall after making seq odd. So a reading that
 * passes is never later than what the writer then freezes: time does not run backwards.
 */
uint64_t hw_clock_now(const struct hw_clock *clock)
{
    for (;;) {
        uint32_t seq = atomic_load(&clock->seq);
        uint64_t ns = atomic_load(&clock->base_ns);
        if (atomic_load(&clock->idle)) {
            uint64_t wall_ns = umd_sys()->mono_ns(), from_ns = atomic_load(&clock->wall_ns);
            ns += wall_ns > from_ns ? wall_ns - from_ns : 0;
        }
        if (!(seq & 1u) && atomic_load(&clock->seq) == seq)
            return ns;
    }
}

void hw_clock_run(struct hw_clock *clock)
{
    if (!atomic_load(&clock->idle))
        return;
    atomic_fetch_add(&clock->seq, 1);
    uint64_t wall_ns = umd_sys()->mono_ns(), from_ns = atomic_load(&clock->wall_ns);
    if (wall_ns > from_ns)
        atomic_fetch_add(&clock->base_ns, wall_ns - from_ns);
    atomic_store(&clock->idle, false);
    atomic_fetch_add(&clock->seq, 1);
}

void hw_clock_idle(struct hw_clock *clock)
{
    if (clock->stepped || atomic_load(&clock->idle))
        return;
    atomic_fetch_add(&clock->seq, 1);
    atomic_store(&clock->wall_ns, umd_sys()->mono_ns());
    atomic_store(&clock->idle, true);
    atomic_fetch_add(&clock->seq, 1);
}

void hw_clock_advance_to(struct hw_clock *clock, uint64_t ns)
{
    assert(!atomic_load(&clock->idle));
    if (ns <= atomic_load(&clock->base_ns))
        return;
    atomic_store(&clock->base_ns, ns);
    /* Several devices may drive the stepped host clock; it follows the one that is furthest. */
    if (clock->stepped && umd_sys_stepped() && clock->step_epoch_ns + ns > umd_sys()->mono_ns())
        umd_sys_step_set_clock(clock->step_epoch_ns + ns);
}

uint64_t hw_cycles_to_ns(uint32_t clock_khz, uint64_t cycles, uint64_t *rest)
{
    assert(clock_khz > 0);
    uint64_t whole = cycles / clock_khz, part = cycles % clock_khz * 1000000u + *rest;
    *rest = part % clock_khz;
    return whole * 1000000u + part / clock_khz;
}

uint64_t hw_ns_to_cycles(uint32_t clock_khz, uint64_t ns)
{
    uint64_t cycles = ns / 1000000u * clock_khz + ns % 1000000u * clock_khz / 1000000u;
    return cycles ? cycles : 1;
}
