/* SPDX-License-Identifier: MIT */
/* stamp.c - choice and calibration of the clock behind stamps. */
#include "stamp.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

_Atomic(bool) umd_stamp_is_counter;
static _Atomic(uint64_t) first_stamp, first_mono_ns;

static bool counter_is_steady(void)
{
#if defined(__x86_64__)
    uint32_t a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8)); /* invariant TSC: Intel SDM vol. 3, 18.17.1 */
#else
    return false;
#endif
}

/* The pair with the least time between its halves, of some tries: a preemption in between would spoil one. */
static struct umd_stamp_pair read_pair(void)
{
    struct umd_stamp_pair best = { 0 };
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < 3; i++) {
        uint64_t before = umd_stamp(), mono_ns = umd_sys()->mono_ns(), after = umd_stamp();
        if (after - before < least) {
            least = after - before;
            best = (struct umd_stamp_pair){ .stamp = before + (after - before) / 2, .mono_ns = mono_ns };
        }
    }
    return best;
}

void umd_stamp_choose(void)
{
    atomic_store(&umd_stamp_is_counter, umd_sys() == umd_sys_default() && !umd_sys_stepped() && counter_is_steady());
    struct umd_stamp_pair first = read_pair();
    atomic_store(&first_stamp, first.stamp);
    atomic_store(&first_mono_ns, first.mono_ns);
}

struct umd_stamp_pair umd_stamp_now(double *slope_out)
{
    struct umd_stamp_pair now = read_pair();

    *slope_out = 1.0;
    if (atomic_load(&umd_stamp_is_counter)) {
        uint64_t stamps = now.stamp - atomic_load(&first_stamp), ns = now.mono_ns - atomic_load(&first_mono_ns);
        *slope_out = stamps ? (double)ns / (double)stamps : 0.0;
    }
    return now;
}

__attribute__((constructor(101))) static void stamp_init(void) { umd_stamp_choose(); }
