/* SPDX-License-Identifier: MIT */
/* random_flow.h - random programs of branches, loops, switches, calls and jumps out, whose way depends on each lane's data. */
#ifndef TEST_RANDOM_FLOW_H
#define TEST_RANDOM_FLOW_H

#include "random_code.h"

/*
 * The program's entry takes in a0 the block (random_code.h) of the first lane; blocks of the lanes lie one behind the other. It loads its
 * registers from the block, runs, and stores them, what fuel is left and by how much the stack pointer moved behind BLOCK_X_OUT, and the
 * lanes that are together at its end at BLOCK_RETURN. It reads and writes its own block only. Fuel bounds each lane's way. A program with votes has
 * loops that do nothing, as often as BLOCK_LONG says: nothing else it stores depends on that.
 */
enum { FLOW_FUNCTIONS = 4, BLOCK_LONG = BLOCK_X + 240, BLOCK_VOTES = BLOCK_FCSR };

struct flow_program {
    uint64_t entry;
    bool indirect_jumps;     /**< some function has a jump whose target its text does not tell */
    bool votes;              /**< its constructs have one way in and one out, and ballots in them, whose sum is at BLOCK_VOTES */
};

/** Appends a program. */
struct flow_program flow_make(struct rng *r, struct code *c);

#endif
