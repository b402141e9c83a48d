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

/* Wall time that an idle clock has followed since from_ns. */
static uint64_t idle_ns(uint64_t wall_ns, uint64_t hold_ns, uint64_t from_ns)
{
    if (hold_ns && hold_ns < wall_ns)
        wall_ns = hold_ns;
    return wall_ns > from_ns ? wall_ns - from_ns : 0;
}

/*
 * A reader's wall reading lies between its two looks at seq and hold; the writer reads the wall after making seq odd, a holder
 * after saying so. So a reading that passes is never later than what is then frozen: time does not run backwards.
 */
uint64_t hw_clock_now(const struct hw_clock *clock)
{
    for (;;) {
        uint32_t seq = atomic_load(&clock->seq);
        uint64_t hold_ns = atomic_load(&clock->hold_ns);
        uint64_t ns = atomic_load(&clock->base_ns);
        if (atomic_load(&clock->idle))
            ns += idle_ns(umd_sys()->mono_ns(), hold_ns, atomic_load(&clock->wall_ns));
        if (!(seq & 1u) && hold_ns != HW_CLOCK_HOLDING && atomic_load(&clock->hold_ns) == hold_ns && atomic_load(&clock->seq) == seq)
            return ns;
    }
}

void hw_clock_hold(struct hw_clock *clock)
{
    uint64_t none = 0;

    if (clock->stepped || !atomic_load(&clock->idle))
        return;
    if (atomic_compare_exchange_strong(&clock->hold_ns, &none, HW_CLOCK_HOLDING))
        atomic_store(&clock->hold_ns, umd_sys()->mono_ns());
}

/* Takes the hold, if there is one, and gives its time; 0: none. A holder is a clock reading away from being done. */
static uint64_t take_hold(struct hw_clock *clock)
{
    uint64_t hold_ns;

    do
        hold_ns = atomic_load(&clock->hold_ns);
    while (hold_ns == HW_CLOCK_HOLDING || !atomic_compare_exchange_weak(&clock->hold_ns, &hold_ns, 0));
    return hold_ns;
}

void hw_clock_run(struct hw_clock *clock)
{
    if (!atomic_load(&clock->idle))
        return;
    atomic_fetch_add(&clock->seq, 1);
    uint64_t hold_ns = take_hold(clock), wall_ns = umd_sys()->mono_ns();
    atomic_fetch_add(&clock->base_ns, idle_ns(wall_ns, hold_ns, atomic_load(&clock->wall_ns)));
    atomic_store(&clock->idle, false);
    atomic_fetch_add(&clock->seq, 1);
}

void hw_clock_idle(struct hw_clock *clock)
{
    const bool idle = atomic_load(&clock->idle);

    if (clock->stepped || (idle && !atomic_load(&clock->hold_ns)))
        return;
    atomic_fetch_add(&clock->seq, 1);
    uint64_t hold_ns = take_hold(clock), wall_ns = umd_sys()->mono_ns();
    if (idle)
        atomic_fetch_add(&clock->base_ns, idle_ns(wall_ns, hold_ns, atomic_load(&clock->wall_ns)));
    atomic_store(&clock->wall_ns, wall_ns);
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
