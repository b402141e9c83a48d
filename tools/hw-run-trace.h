/* SPDX-License-Identifier: MIT */
/* hw-run-trace.h - hw-run --trace: a line for each instruction. */
#ifndef HW_RUN_TRACE_H
#define HW_RUN_TRACE_H

#include "sim.h"

#define TRACE_PLACES 1024u

/** Places named so far. */
struct trace {
    struct sim_symbols *symbols;
    struct trace_place { uint64_t pc; bool known; char text[64]; } places[TRACE_PLACES];
};

/** Prints "mask pc <place> bits instruction rd=value". A value that differs between lanes is told lane by lane. */
void trace_print(struct trace *t, const struct hw_cu_trace *i);

#endif
