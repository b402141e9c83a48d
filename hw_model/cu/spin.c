/* SPDX-License-Identifier: MIT */
/* spin.c - tells a path that waits from one that works: who waits goes round with nothing changed. */
/*
 * All registers of the warp at one micro-op are what they were when it came there before: until somebody else writes memory, it will come
 * there again, and again. A loop that counts, or computes, is never found like that, however long it takes. A look takes the state, and
 * then compares after each of the next instructions, so a loop of no more than these is found the first time round. Looks get rarer as
 * long as nothing is found, and longer. Who changes memory and no register at all is taken for waiting; that costs time.
 */
#include "path.h"

#define NEAR 64u            /* instructions that are looked at one by one */
#define NEAR_LONG 512u      /* in looks that are FAR_LONG apart or more */
#define FAR_LONG 8000u
#define FAR_MAX 32000u
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

uint32_t cu_path_look(struct cu_warp *w, const struct cu_path *p)
{
    struct cu_spin *s = &w->spin;
    const unsigned lane = cu_first_lane(p->mask);

    if (s->u == p->u && s->mask == p->mask && s->lane == lane_state(w, lane) && s->all == warp_state(w)) {
        s->near = 0;
        return 0;
    }
    if (s->near > 1) {
        s->near--;
        return 1;
    }
    if (s->near) {
        s->near = 0;
        return s->far;
    }
    s->far = w->synchronises || !s->far ? CU_AGE_NORMAL : s->far < FAR_MAX ? 2 * s->far : FAR_MAX;
    s->near = s->far < FAR_LONG ? NEAR : NEAR_LONG;
    s->u = p->u;
    s->mask = p->mask;
    s->lane = lane_state(w, lane);
    s->all = warp_state(w);
    w->synchronises = false;
    return 1;
}
