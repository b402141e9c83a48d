/* SPDX-License-Identifier: MIT */
/* spin.c - tells a path that waits from one that works: who waits goes round with nothing changed. */
/*
 * All registers of the warp at one micro-op are what they were when it came there before: until somebody else writes memory, it will come
 * there again, and again. A loop that counts, or computes, is never found like that, however long it takes. Looks are some instructions
 * apart, so a loop of n instructions is found after at most n looks (Brent: the state that is compared with is taken anew after 1, 2, 4, ...
 * looks). Who changes memory and no register at all is taken for waiting; that costs time.
 */
#include "path.h"

#define LOOKS_MAX 1024u /* until another state is taken */
#define MIX 0x9e3779b97f4a7c15ull

static uint64_t mixed(uint64_t h, uint64_t v)
{
    h = (h ^ v) * MIX;
    return h ^ h >> 29;
}

/* Of one lane: differs nearly always where anything does. */
static uint64_t lane_state(const struct cu_warp *w, unsigned lane)
{
    uint64_t h = w->fflags;

    for (unsigned r = 1; r < CU_REG_SINK; r++)
        h = mixed(h, w->x[r].u[lane]);
    return h;
}

/* Of all lanes: those of other paths stand still, so theirs do not change. */
static uint64_t warp_state(const struct cu_warp *w)
{
    uint64_t h = w->f_single;

    for (unsigned r = 1; r < CU_REG_SINK; r++)
        for (unsigned l = 0; l < CU_LANES; l++)
            h = mixed(h, w->x[r].u[l]);
    for (unsigned r = 0; r < 32; r++)
        for (unsigned l = 0; l < CU_LANES; l++)
            h = mixed(h, w->f[r].q[l]);
    return h;
}

bool cu_path_spins(struct cu_warp *w, const struct cu_path *p)
{
    struct cu_spin *s = &w->spin;
    const unsigned lane = cu_first_lane(p->mask);

    if (s->u == p->u && s->mask == p->mask && s->lane == lane_state(w, lane) && s->all == warp_state(w)) {
        s->looks = s->until = 0;
        return true;
    }
    if (s->looks++ < s->until)
        return false;
    *s = (struct cu_spin){ .u = p->u, .mask = p->mask, .lane = lane_state(w, lane), .all = warp_state(w),
                           .until = s->until < LOOKS_MAX ? 2 * s->until + 1 : LOOKS_MAX };
    return false;
}
