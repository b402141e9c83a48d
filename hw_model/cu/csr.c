/* SPDX-License-Identifier: MIT */
/* csr.c - control and status registers: rounding mode and flags (one per warp), counters, work-item ids. */
#include <assert.h>
#include <immintrin.h>

#include <hw/petrel_csr.h>

#include "cu_priv.h"

/* csr.def has the numbers; what kernels include has those of its own registers. */
#define CHECK_ITEM(id_) static_assert((unsigned)CU_CSR_##id_ == PETREL_CSR_##id_, #id_ " differs");
#define CHECK_WARP(id_)
#define CHECK_COUNTER(id_)
#define CHECK_BARE(id_)
#define CSR(id_, number_, name_, kind_) CHECK_##kind_(id_)
#include "csr.def"
#undef CSR

void cu_flags_collect(struct cu_warp *w)
{
    unsigned csr = _mm_getcsr();

    if (!(csr & 0x3f))
        return;
    w->fflags |= (csr & 1) << 4 | (csr >> 2 & 1) << 3 | (csr >> 3 & 1) << 2 | (csr >> 4 & 1) << 1 | (csr >> 5 & 1);
    _mm_setcsr(csr & ~0x3fu);
}

/* A value that is the same in all lanes; false: no such register. */
static bool read_uniform(struct cu_warp *w, unsigned csr, uint64_t *v_out)
{
    const struct hw_cu *cu = w->cu;
    const struct petrel_dispatch *d = &cu->array->d;

    switch (csr) {
    case CU_CSR_FFLAGS: *v_out = w->fflags; return true;
    case CU_CSR_FRM: *v_out = w->frm; return true;
    case CU_CSR_FCSR: *v_out = w->frm << 5 | w->fflags; return true;
    case CU_CSR_CYCLE: case CU_CSR_TIME:
        cu_account(w); /* functional: this instruction is booked with it */
        *v_out = cu->real + (w->now - cu->array->config.functional - cu->start);
        return true;
    case CU_CSR_INSTRET:
        cu_account(w);
        *v_out = w->instr - 1;
        return true;
    case CU_CSR_GROUP_ID_X: case CU_CSR_GROUP_ID_Y: case CU_CSR_GROUP_ID_Z:
        *v_out = w->group->id[csr - CU_CSR_GROUP_ID_X]; return true;
    case CU_CSR_BLOCK_X: *v_out = d->block[0]; return true;
    case CU_CSR_BLOCK_Y: *v_out = d->block[1]; return true;
    case CU_CSR_BLOCK_Z: *v_out = d->block[2]; return true;
    case CU_CSR_GRID_X: *v_out = d->grid[0]; return true;
    case CU_CSR_GRID_Y: *v_out = d->grid[1]; return true;
    case CU_CSR_GRID_Z: *v_out = d->grid[2]; return true;
    case CU_CSR_WARP: *v_out = w->index; return true;
    case CU_CSR_LOCAL_BASE: *v_out = PETREL_LOCAL_BASE; return true;
    case CU_CSR_ARGS: *v_out = d->args_va; return true;
    default: return false;
    }
}

static bool read_csr(struct cu_warp *w, unsigned csr, union cu_xreg *out)
{
    uint64_t v;

    if (csr >= CU_CSR_LOCAL_ID_X && csr <= CU_CSR_LOCAL_ID_Z) {
        *out = w->lid[csr - CU_CSR_LOCAL_ID_X];
        return true;
    }
    if (csr == CU_CSR_LANE) {
        for (unsigned l = 0; l < CU_LANES; l++)
            out->u[l] = l;
        return true;
    }
    if (!read_uniform(w, csr, &v))
        return false;
    for (unsigned k = 0; k < 4; k++)
        out->v[k] = (v8){ 0 } + (int64_t)v;
    return true;
}

static void write_csr(struct cu_warp *w, unsigned csr, uint64_t v)
{
    if (csr == CU_CSR_FFLAGS || csr == CU_CSR_FCSR)
        w->fflags = (uint32_t)v & 0x1f;
    if (csr == CU_CSR_FRM)
        w->frm = (uint32_t)v & 7;
    if (csr == CU_CSR_FCSR)
        w->frm = (uint32_t)v >> 5 & 7;
}

uint64_t cu_csr_value(unsigned kind, uint64_t old, uint64_t src)
{
    return kind == 1 ? src : kind == 2 ? old | src : old & ~src;
}

/* The rounding mode and flags are the warp's: the first active lane's value is written. */
const struct cu_uop *cu_csr(struct cu_warp *w, const struct cu_uop *u)
{
    unsigned csr = (unsigned)u->imm, lane = cu_first_lane(w->mask), kind = u->bits >> 12 & 3;
    bool immediate = u->bits >> 14 & 1, writes = kind == 1 || u->rs1;
    union cu_xreg old;
    uint64_t src = immediate ? u->rs1 : w->x[u->rs1].u[lane], now;

    if (cu_csr_is_privileged(csr))
        return cu_csr_privileged(w, u);
    if (csr <= CU_CSR_FCSR)
        cu_flags_collect(w);
    if (!read_csr(w, csr, &old) || (writes && csr > CU_CSR_FCSR))
        return cu_fault(w, u, PETREL_FAULT_ILLEGAL, PETREL_ACCESS_EXEC, 0, lane, u->bits);
    now = old.u[lane];
    if (writes)
        write_csr(w, csr, cu_csr_value(kind, now, src));
    if (!w->partial) {
        w->x[u->rd] = old;
        return u + u->step;
    }
    for (unsigned k = 0; k < 4; k++) {
        v8 *dst = &w->x[u->rd].v[k];

        *dst = (old.v[k] & w->m64[k]) | (*dst & ~w->m64[k]);
    }
    return u + u->step;
}
