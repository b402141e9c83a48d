/* SPDX-License-Identifier: MIT */
/* fuse.c - finds instructions that run as one: in micro-ops that are decoded, next to each other, where nobody has to stop between. */
#include "cu_priv.h"

enum fuse_kind { FUSE_KIND_ALU, FUSE_KIND_ADDRESS, FUSE_KIND_INDEX, FUSE_KIND_COUNT };

static const struct fuse_row { uint16_t first, last; uint8_t kind; } fuse_rows[CU_FUSED_COUNT] = {
#define FUSE_ALU(first_, second_) [CU_FUSED_##first_##_##second_] = { CU_OP_##first_, CU_OP_##second_, FUSE_KIND_ALU },
#define FUSE_ADDRESS(access_, kind_) [CU_FUSED_add_##access_] = { CU_OP_add, CU_OP_##access_, FUSE_KIND_ADDRESS },
#define FUSE_INDEX(access_, kind_) [CU_FUSED_slli_add_##access_] = { CU_OP_slli, CU_OP_##access_, FUSE_KIND_INDEX },
#define FUSE_COUNT(first_, branch_) [CU_FUSED_##first_##_##branch_] = { CU_OP_##first_, CU_OP_##branch_, FUSE_KIND_COUNT },
#include "fuse.def"
};

/* What stands here, is known, and is no place at which paths meet. */
static bool runs_through(const struct cu_uop *u)
{
    return (u->flags & (CU_UOP_DECODED | CU_UOP_JOIN | CU_UOP_MERGE)) == CU_UOP_DECODED;
}

static bool has_second(const struct cu_uop *u)
{
    return cu_insn_format(u->op) == CU_FMT_R;
}

/* u2 replaces u's result, which is one of its operands. */
static bool replaces(const struct cu_uop *u, const struct cu_uop *u2)
{
    const bool one = u2->rs1 == u->rd, two = has_second(u2) && u2->rs2 == u->rd;

    return u->rd != CU_REG_SINK && u2->rd == u->rd && one != two && (one || u2->op == CU_OP_add);
}

static bool fits(const struct fuse_row *row, const struct cu_uop *u)
{
    const struct cu_uop *u2 = cu_uop_next(u), *u3;

    if (u->op != row->first || !runs_through(u2))
        return false;
    switch (row->kind) {
    case FUSE_KIND_ALU:
        return u2->op == row->last && replaces(u, u2);
    case FUSE_KIND_ADDRESS:
        return u2->op == row->last && u->rd != CU_REG_SINK && u2->rs1 == u->rd;
    case FUSE_KIND_INDEX:
        u3 = cu_uop_next(u2);
        return u2->op == CU_OP_add && replaces(u, u2) && runs_through(u3) && u3->op == row->last && u3->rs1 == u->rd;
    default:
        return u2->op == row->last;
    }
}

/* The handler of what u begins; NULL: nothing is that runs as one. Timed, each instruction waits for its operands on its own. */
static cu_handler fused_handler(const struct hw_cu_array *a, const struct cu_uop *u)
{
    for (unsigned i = 0; a->config.functional && runs_through(u) && i < CU_FUSED_COUNT; i++)
        if (fits(&fuse_rows[i], u))
            return a->exec->fused[i];
    return NULL;
}

static void bind_one(const struct hw_cu_array *a, struct cu_uop *u)
{
    const cu_handler fused = fused_handler(a, u);

    for (unsigned part = 0; part < 2; part++)
        u->fn[part] = u->flags & (CU_UOP_JOIN | CU_UOP_MERGE) ? cu_handle_join : a->handlers[u->op][part];
    u->flags = fused ? u->flags | CU_UOP_FUSED : u->flags & (uint16_t)~CU_UOP_FUSED;
    if (fused)
        u->fn[0] = fused;
}

/* What ends right before u, and what ends before that, down to so many instructions. */
static void bind_before(const struct hw_cu_array *a, struct cu_uop *u, unsigned count)
{
    for (struct cu_uop *before = u - 2; count && before < u; before++) {
        if (!(before->flags & CU_UOP_DECODED) || cu_uop_next(before) != u)
            continue;
        bind_one(a, before);
        bind_before(a, before, count - 1);
    }
}

void cu_uop_bind(const struct hw_cu_array *a, struct cu_uop *u)
{
    if (u->flags & CU_UOP_DECODED)
        bind_one(a, u);
    bind_before(a, u, CU_FUSED_MAX - 1);
}
