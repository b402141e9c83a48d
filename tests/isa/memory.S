/* SPDX-License-Identifier: MIT */
/* memory.S - loads and stores of each width, misaligned ones and ones over the end of a page. */
#include "isa.h"
    begin
.macro ld_case insn, result, off
    next
    la      a1, bytes
    \insn   a0, \off(a1)
    expect  a0, \result
    addi    a1, a1, \off + 100
    \insn   a1, -100(a1)
    expect  a1, \result
.endm
    ld_case lb,  0x11, 0
    ld_case lb,  -1, 7
    ld_case lbu, 0xff, 7
    ld_case lh,  0x2211, 0
    ld_case lh,  0xffffffffffffff77, 6
    ld_case lhu, 0xff77, 6
    ld_case lw,  0x44332211, 0
    ld_case lw,  0xffffffffff776655, 4
    ld_case lwu, 0xff776655, 4
    ld_case ld,  0xff77665544332211, 0
    ld_case lh,  0x3322, 1              /* misaligned */
    ld_case lhu, 0x80ff, 7
    ld_case lw,  0x66554433, 2
    ld_case lw,  0x55443322, 1
    ld_case lwu, 0x9080ff77, 6
    ld_case ld,  0xa09080ff77665544, 3

.macro st_case insn, result, off
    next
    la      a1, scratch
    sd      zero, 0(a1)
    sd      zero, 8(a1)
    li      a0, 0x8877665544332211
    \insn   a0, \off(a1)
    ld      a0, 0(a1)
    expect  a0, \result
.endm
    st_case sb, 0x11, 0
    st_case sb, 0x1100000000000000, 7
    st_case sh, 0x2211, 0
    st_case sh, 0x2211000000, 3
    st_case sw, 0x44332211, 0
    st_case sw, 0x44332211000000, 3
    st_case sd, 0x8877665544332211, 0
    st_case sd, 0x5544332211000000, 3

    next                        /* over the end of a page */
    la      a1, page
    li      a0, 0x1122334455667788
    sd      a0, -3(a1)
    ld      a2, -3(a1)
    expect  a2, 0x1122334455667788
    ld      a2, 0(a1)
    expect  a2, 0x1122334455
    lw      a2, -4(a1)
    expect  a2, 0x66778800
    fld     ft0, -3(a1)
    fsd     ft0, 5(a1)
    ld      a2, 5(a1)
    expect  a2, 0x1122334455667788
    flw     ft1, -1(a1)
    fsw     ft1, 101(a1)
    lwu     a2, 101(a1)
    expect  a2, 0x33445566

    next                        /* lane after lane: a table is written and summed */
    la      a1, scratch
    li      a2, 0
1:  slli    t0, a2, 2
    add     t0, t0, a1
    sw      a2, 0(t0)
    addi    a2, a2, 1
    li      t1, 64
    bne     a2, t1, 1b
    li      a3, 0
2:  addi    a2, a2, -1
    slli    t0, a2, 2
    add     t0, t0, a1
    lw      t0, 0(t0)
    add     a3, a3, t0
    bnez    a2, 2b
    expect  a3, 2016

    done

    .data
    .balign 16
bytes:
    .byte   0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0xff, 0x80, 0x90, 0xa0, 0xb0, 0, 0, 0, 0
    .balign 4096
page:
    .zero   512
scratch:
    .zero   512
