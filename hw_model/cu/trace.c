/* SPDX-License-Identifier: MIT */
/* trace.c - a warp run an instruction at a time, each of which is shown to who asked for it. */
#include <string.h>

#include "cu_priv.h"

static void read_register(const struct cu_warp *w, unsigned slot, uint64_t out[CU_LANES])
{
    if (slot < CU_SLOT_F)
        memcpy(out, w->x[slot].u, sizeof(w->x[slot].u));
    else
        cu_f64_read(w, slot - CU_SLOT_F, out);
}

/* Cycles and results are those of an untraced run. */
const struct cu_uop *cu_run_traced(struct cu_warp *w, const struct cu_uop *u, uint64_t end)
{
    const struct hw_cu_config *c = &w->cu->array->config;
    uint64_t before[CU_LANES], after[CU_LANES];

    while (u && w->now < end && !w->cu->faulted) {
        if (!(u->flags & CU_UOP_DECODED)) {
            w->fuel--;
            u = u->fn[w->partial](w, u);
            continue;
        }
        struct hw_cu_trace t = { .pc = cu_pc(w->rg, u), .wg = w->group->linear, .warp = w->index, .bits = u->bits,
                                 .size_B = (uint8_t)(u->step * 2), .rd = u->d < CU_SLOT_NONE ? u->d : 0, .before = before, .after = after };
        const uint64_t issued = w->instr;

        read_register(w, t.rd, before);
        w->issued_mask = w->mask;
        u = cu_warp_step(w, u, w->now + 1);
        if (w->instr == issued || (w->cu->faulted && !u))
            continue; /* its operands were not there yet, or it handed over only */
        t.mask = w->issued_mask;
        read_register(w, t.rd, after);
        if (!t.rd)
            t.before = t.after = NULL;
        c->on_trace(c->observer, &t);
    }
    return u;
}
