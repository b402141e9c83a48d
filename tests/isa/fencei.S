/* SPDX-License-Identifier: MIT */
/* fencei.S - code that is written over after it has run. */
#include "isa.h"
    begin
    next                        /* code in data, changed after it has run */
    la      a1, patched
    jalr    a1
    expect  a0, 1
    la      a1, patched
    la      a2, other
    lw      a2, 0(a2)
    sw      a2, 0(a1)
    fence.i
    jalr    a1
    expect  a0, 2
    done

    .data
    .balign 16
patched:
    li      a0, 1
    ret
other:
    li      a0, 2
