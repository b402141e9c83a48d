/* SPDX-License-Identifier: MIT */
/* exec_table.h - wrappers of the handlers and their table, from rv64.def. CU_EXEC_NAME names the whole. */

#define RV(id_, mnemonic_, match_, mask_, format_, kind_, latency_)                                      \
    static const struct cu_uop *full_##id_(struct cu_warp *w, const struct cu_uop *u)                   \
    {                                                                                                     \
        return kind_(w, u, CU_OP_##id_, false);                                                          \
    }                                                                                                     \
    static const struct cu_uop *part_##id_(struct cu_warp *w, const struct cu_uop *u)                   \
    {                                                                                                     \
        return kind_(w, u, CU_OP_##id_, true);                                                           \
    }
#include "rv64.def"
#undef RV

static const struct cu_uop *any_illegal(struct cu_warp *w, const struct cu_uop *u)
{
    return illegal(w, u, CU_OP_ILLEGAL, true);
}

#if !CU_EXEC_TIMED
#include "exec_fuse.h"
#endif

const struct cu_exec CU_EXEC_NAME = { .warp_start = warp_start, .handlers = {
#define RV(id_, mnemonic_, match_, mask_, format_, kind_, latency_) [CU_OP_##id_] = { full_##id_, part_##id_ },
#include "rv64.def"
#undef RV
    [CU_OP_ILLEGAL] = { any_illegal, any_illegal },
},
#if !CU_EXEC_TIMED
.fused = {
#define FUSE_ALU(first_, second_) [CU_FUSED_##first_##_##second_] = fused_##first_##_##second_,
#define FUSE_ADDRESS(access_, kind_) [CU_FUSED_add_##access_] = fused_add_##access_,
#define FUSE_INDEX(access_, kind_) [CU_FUSED_slli_add_##access_] = fused_slli_add_##access_,
#define FUSE_COUNT(first_, branch_) [CU_FUSED_##first_##_##branch_] = fused_##first_##_##branch_,
#include "fuse.def"
},
#endif
};
