/* SPDX-License-Identifier: MIT */
/* exec_warp.h - a warp's state at entry. */
#ifndef HW_CU_EXEC_WARP_H
#define HW_CU_EXEC_WARP_H

INLINE void warp_ids(struct cu_warp *w, uint32_t first)
{
    const struct petrel_dispatch *d = &w->cu->array->d;
    const uint32_t block[2] = { d->block[0], d->block[1] };
    uint32_t x = first % block[0], y = first / block[0] % block[1], z = first / block[0] / block[1];

    if (block[1] == 1 && d->block[2] == 1) { /* one row; y and z are 0 since the dispatch began */
        for (unsigned k = 0; k < 4; k++)
            w->lid[0].v[k] = (v8){ 0, 1, 2, 3, 4, 5, 6, 7 } + (int64_t)(x + 8 * k);
        return;
    }
    for (unsigned l = 0; l < CU_LANES; l++) {
        w->lid[0].u[l] = x;
        w->lid[1].u[l] = y;
        w->lid[2].u[l] = z;
        if (++x == block[0]) {
            x = 0;
            if (++y == block[1]) {
                y = 0;
                z++;
            }
        }
    }
}

/* ABI state at entry: a0 arguments, ra ends the lane, tp the lane's thread-local storage at the top of its private window, sp below. */
static void warp_start(struct cu_warp *w, struct cu_group *g, uint32_t index, uint32_t lanes, uint64_t now)
{
    struct hw_cu_array *a = w->cu->array;
    uint64_t place = (uint64_t)(w->cu->index * a->config.warps_per_cu + w->slot) * CU_LANES;
    int private_shift = a->config.private_B ? __builtin_ctz(a->config.private_B) : 0;

    w->used = true;
    w->group = g;
    w->index = index;
    w->now = now;
    w->f_single = CU_ALL;
    w->frm = w->fflags = 0;
    w->stamp = w->ages = w->instr = 0;
    w->patience = w->expired = 0;
    w->synchronises = w->yields = false;
    w->spin = (struct cu_spin){ 0 };
    for (unsigned k = 0; k < 4; k++) {
        const v8 number = (v8){ 0, 1, 2, 3, 4, 5, 6, 7 } + (int64_t)(place + 8 * k);

        w->x[1].v[k] = (v8){ 0 } + (int64_t)CU_RETURN_VA;
        w->x[2].v[k] = ((number + 1) << private_shift) + (int64_t)(PETREL_PRIVATE_BASE - a->tls_block_B);
        w->x[4].v[k] = w->x[2].v[k];
        if (a->config.stack_va)
            w->x[2].v[k] = (v8){ 0 } + (int64_t)a->config.stack_va;
        w->x[10].v[k] = (v8){ 0 } + (int64_t)a->d.args_va;
    }
    if (a->tls_block_B)
        cu_tls_fill(w);
    if (a->config.bare)
        memset(w->mepc, 0, sizeof(w->mepc));
    if (CU_EXEC_TIMED)
        memset(w->ready, 0, sizeof(w->ready));
    warp_ids(w, index * CU_LANES);
    cu_path_start(w, lanes >= CU_LANES ? CU_ALL : (1u << lanes) - 1, a->code->uops + (a->d.entry_va - a->code->va) / 2, a->code);
}

#endif
