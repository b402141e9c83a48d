/* SPDX-License-Identifier: MIT */
/* note_kernels.S - a kernel that says by a note where its lanes meet, and one whose note lies. docs/isa.md has the first part as its example. */
        .text
/* begin: isa.md */
# out[lane]: the instructions issued when the lane came by `met`, and its case. The cases lie behind what comes after them.
        .globl  together
together:
        csrr    t0, 0xccc               # LANE
        ld      a0, 0(a0)               # out
        slli    t1, t0, 3
        add     a0, a0, t1
        andi    t1, t1, 3 << 3          # lane % 4: a case has two instructions
        lla     t2, cases
        add     t2, t2, t1
which:  jr      t2                      # the device does not see where to ...
met:    csrr    t3, instret
        sw      t3, 0(a0)
        sw      t4, 4(a0)
        ret
cases:  li      t4, 10
        j       met
        li      t4, 11
        j       met
        li      t4, 12
        j       met
        li      t4, 13
        j       met

        .section .note.petrel.converge, "a", @note
        .word   7, 2f - 1f, 1           # bytes of the name, bytes of the pairs, type
        .asciz  "Petrel"
        .p2align 2
1:      .word   which - ., met - .      # ... but is told where all ways meet
2:
        .section .petrel.kernels, "aw"
        .p2align 3
        .quad   together
        .asciz  "together"
        .zero   64 - 9
        .word   8, 0, 0, 1              # bytes of arguments, no largest block, no local memory, version
/* end: isa.md */

/* The same, but the note names a place that no case comes by. */
        .text
        .globl  apart
apart:
        csrr    t0, 0xccc
        ld      a0, 0(a0)
        slli    t1, t0, 3
        add     a0, a0, t1
        andi    t1, t1, 3 << 3
        lla     t2, ways
        add     t2, t2, t1
lied:   jr      t2
behind: csrr    t3, instret
        sw      t3, 0(a0)
        sw      t4, 4(a0)
        ret
ways:   li      t4, 10
        j       behind
        li      t4, 11
        j       behind
        li      t4, 12
        j       behind
        li      t4, 13
        j       behind
never:  ret

        .section .note.petrel.converge, "a", @note
        .word   7, 2f - 1f, 1
        .asciz  "Petrel"
        .p2align 2
1:      .word   lied - ., never - .
2:
        .section .petrel.kernels, "aw"
        .p2align 3
        .quad   apart
        .asciz  "apart"
        .zero   64 - 6
        .word   8, 0, 0, 1
