/* SPDX-License-Identifier: MIT */
/* fuse.h - instructions that run as one where they follow each other, see fuse.def. */
#ifndef HW_CU_FUSE_H
#define HW_CU_FUSE_H

enum cu_fused {
#define FUSE_ALU(first_, second_) CU_FUSED_##first_##_##second_,
#define FUSE_ADDRESS(access_, kind_) CU_FUSED_add_##access_,
#define FUSE_INDEX(access_, kind_) CU_FUSED_slli_add_##access_,
#define FUSE_COUNT(first_, branch_) CU_FUSED_##first_##_##branch_,
#include "fuse.def"
    CU_FUSED_COUNT
};
/* Instructions that run as one, at most. */
#define CU_FUSED_MAX 3u

#endif
