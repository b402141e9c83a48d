/* SPDX-License-Identifier: MIT */
/* ageing.h - shapes of code in which some lanes may take long: what kernels run, and what each lane must see, however long. */
#ifndef TEST_CU_AGEING_H
#define TEST_CU_AGEING_H

#include <stdint.h>

struct ageing_args { uint64_t out, word; uint32_t rounds, sync; };

#define AGEING_WORDS 4u /* of each lane, in out */
#define AGEING_SHAPES(SHAPE)                                                                                       \
    SHAPE(behind_branch) SHAPE(tail_guard) SHAPE(one_then_all) SHAPE(inside_of_branch) SHAPE(two_barriers)          \
    SHAPE(recursion) SHAPE(round_of_loop) SHAPE(skipped_round) SHAPE(two_calls) SHAPE(from_function)                \
    SHAPE(both_sides) SHAPE(growing_loop) SHAPE(shuffle) SHAPE(warp_sync) SHAPE(unresolved) SHAPE(unresolved_loop)  \
    SHAPE(early_return) SHAPE(nested_long) SHAPE(spin_side)
/* Those that are right as long as nobody who gets on is torn apart. */
#define AGEING_WHOLE_SHAPES(SHAPE)                                                                                  \
    SHAPE(spin_in_call) SHAPE(return_in_branch) SHAPE(two_sides) SHAPE(round_else) SHAPE(long_in_two_calls)

#endif
