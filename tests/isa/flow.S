/* SPDX-License-Identifier: MIT */
/* flow.S - branches, jumps, calls, and a loop whose lanes part. */
#include "isa.h"
    begin
/* insn goes from a to b forward and backward if `taken`. */
.macro br insn, taken, a, b
    next
    li      a1, \a
    li      a2, \b
    li      a3, 0
    j       over\@
back\@:
    ori     a3, a3, 2
    j       forward\@
over\@:
    \insn   a1, a2, back\@
    ori     a3, a3, 1
forward\@:
    expect  a3, 1 + \taken
.endm
    br  beq,  1, 5, 5
    br  beq,  0, 5, 0x100000005
    br  bne,  0, -1, -1
    br  bne,  1, 0, 0x8000000000000000
    br  blt,  1, -1, 0
    br  blt,  0, 0, -1
    br  blt,  0, 7, 7
    br  bge,  1, 7, 7
    br  bge,  1, 0x7fffffffffffffff, 0x8000000000000000
    br  bge,  0, -5, -4
    br  bltu, 0, -1, 0
    br  bltu, 1, 0x7fffffffffffffff, 0x8000000000000000
    br  bgeu, 1, -1, 1
    br  bgeu, 0, 0, -1
    br  bgeu, 1, 0, 0

    next                        /* jal, jalr: link and target */
    jal     t0, 1f
link:
    j       failed
1:  la      t1, link
    beq     t0, t1, 2f
    j       failed
2:  next
    la      t0, 3f + 1          /* the lowest bit is not looked at */
    jalr    t0, t0, 0
    j       failed
    j       failed
3:  la      t1, 3b - 8
    beq     t0, t1, 4f
    j       failed
4:  next
    la      t1, 5f - 2000
    jalr    zero, 2000(t1)
    j       failed
5:

    next                        /* recursion: 1 + 2 + ... + 20 */
    li      a0, 20
    call    sum
    expect  a0, 210

    next                        /* collatz steps of 27 */
    li      a0, 27
    li      a1, 0
6:  li      t0, 1
    beq     a0, t0, 8f
    addi    a1, a1, 1
    andi    t0, a0, 1
    bnez    t0, 7f
    srli    a0, a0, 1
    j       6b
7:  slli    t0, a0, 1
    add     a0, a0, t0
    addi    a0, a0, 1
    j       6b
8:  expect  a1, 111

    next                        /* no register is given to the start but the stack and the way back */
    andi    a0, sp, 15
    expect  a0, 0
    ld      a0, 0(sp)
    expect  a0, 0
    ld      a0, 24(sp)
    expect  a0, 0
    sd      sp, -8(sp)
    ld      a0, -8(sp)
    sub     a0, a0, sp
    expect  a0, 0
    done

sum:
    beqz    a0, 1f
    addi    sp, sp, -16
    sd      ra, 8(sp)
    sd      a0, 0(sp)
    addi    a0, a0, -1
    call    sum
    ld      t0, 0(sp)
    ld      ra, 8(sp)
    addi    sp, sp, 16
    add     a0, a0, t0
1:  ret
