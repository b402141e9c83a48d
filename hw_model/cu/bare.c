/* SPDX-License-Identifier: MIT */
/* bare.c - bare programs, which believe to have a machine of their own: privileged registers, mret, exit values, private images. */
/*
 * There is no privileged mode. What a program writes to prepare for one is forgotten, and mret goes where mepc says: so a program
 * that comes up in machine mode and drops to user mode runs, as long as it takes no trap.
 */
#include "cu_priv.h"

enum { SYSCALL_EXIT = 93 };

bool cu_csr_is_privileged(unsigned csr)
{
    return csr >> 8 & 3;
}

/* All read zero and ignore writes, but mepc, which each lane has for itself. */
const struct cu_uop *cu_csr_privileged(struct cu_warp *w, const struct cu_uop *u)
{
    unsigned csr = (unsigned)u->imm, kind = u->bits >> 12 & 3;
    bool immediate = u->bits >> 14 & 1, writes = kind == 1 || u->rs1, read_only = csr >> 10 == 3;

    if (!w->cu->array->config.bare || (writes && read_only))
        return cu_fault(w, u, PETREL_FAULT_ILLEGAL, PETREL_ACCESS_EXEC, 0, cu_first_lane(w->mask), u->bits);
    for (uint32_t m = w->mask; m; m &= m - 1) {
        unsigned l = cu_first_lane(m);
        uint64_t old = csr == CU_CSR_MEPC ? w->mepc[l] : 0;

        if (csr == CU_CSR_MEPC && writes)
            w->mepc[l] = cu_csr_value(kind, old, immediate ? u->rs1 : w->x[u->rs1].u[l]) & ~1ull;
        w->x[u->rd].u[l] = old;
    }
    return u + u->step;
}

const struct cu_uop *cu_mret(struct cu_warp *w, const struct cu_uop *u)
{
    struct cu_region *rg;

    if (!w->cu->array->config.bare)
        return cu_fault(w, u, PETREL_FAULT_ILLEGAL, PETREL_ACCESS_EXEC, 0, cu_first_lane(w->mask), u->bits);
    if (!cu_jump_ready(w, w->mepc, w->mask, true, NULL))
        return cu_ask(w, u);
    for (uint32_t m = w->mask; m; m &= m - 1) { /* as of a function entered: branches behind it have meeting points, too */
        const uint64_t to_va = w->mepc[cu_first_lane(m)];
        const struct cu_uop *to;

        if (to_va == CU_RETURN_VA) /* the way back from the start, which ends the lane */
            continue;
        if (!(to = cu_code_at(w, to_va, &rg)))
            return NULL;
        cu_converge_function(w->cu->array, rg, (uint32_t)(to - rg->uops));
    }
    return cu_path_jump(w, u, w->mepc, 0, false);
}

void cu_tell_exits(struct cu_warp *w, uint32_t lanes)
{
    const struct hw_cu_config *c = &w->cu->array->config;
    const struct petrel_dispatch *d = &w->cu->array->d;
    uint64_t first = w->group->linear * d->block[0] * d->block[1] * d->block[2] + (uint64_t)w->index * CU_LANES;

    for (uint32_t m = c->on_exit ? lanes : 0; m; m &= m - 1)
        c->on_exit(c->observer, first + cu_first_lane(m), w->x[10].u[cu_first_lane(m)]);
}

/* exit (a7 = 93) ends the lanes that ask for it; nothing else is served. */
const struct cu_uop *cu_ecall(struct cu_warp *w, const struct cu_uop *u)
{
    uint32_t others = 0;

    for (uint32_t m = w->mask; m; m &= m - 1)
        others |= w->x[17].u[cu_first_lane(m)] != SYSCALL_EXIT ? m & -m : 0;
    if (!others)
        return cu_path_exit(w);
    cu_tell_exits(w, w->mask & ~others);
    return cu_fault(w, u, PETREL_FAULT_TRAP, PETREL_ACCESS_EXEC, 0, cu_first_lane(others), PETREL_TRAP_ECALL);
}
