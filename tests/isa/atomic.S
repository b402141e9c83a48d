/* SPDX-License-Identifier: MIT */
/* atomic.S - read-modify-write of both widths, reservations. */
#include "isa.h"
    begin
.macro amo_case insn, ld, old, result, mem, src
    next
    la      a1, cell
    li      a0, \mem
    sd      a0, 0(a1)
    li      a2, \src
    \insn   a3, a2, (a1)
    expect  a3, \old
    ld      a0, 0(a1)
    expect  a0, \result
    li      a0, \mem
    sd      a0, 0(a1)
    \insn   zero, a2, (a1)
    ld      a0, 0(a1)
    expect  a0, \result
.endm
    amo_case amoswap.d, ld, 7, 9, 7, 9
    amo_case amoadd.d,  ld, -1, 0, -1, 1
    amo_case amoxor.d,  ld, 0xff, 0xf0, 0xff, 0x0f
    amo_case amoand.d,  ld, 0xff, 0x0f, 0xff, 0x10f
    amo_case amoor.d,   ld, 0xf0, 0x1ff, 0xf0, 0x10f
    amo_case amomin.d,  ld, 3, -3, 3, -3
    amo_case amomax.d,  ld, -3, 3, -3, 3
    amo_case amominu.d, ld, -3, 3, -3, 3
    amo_case amomaxu.d, ld, 3, -3, 3, -3
    amo_case amoswap.w, lw, 0xffffffff80000000, 0xabcdef0000000009, 0xabcdef0080000000, 9
    amo_case amoadd.w,  lw, -1, 0xabcdef0000000000, 0xabcdef00ffffffff, 1
    amo_case amoxor.w,  lw, 0xff, 0xabcdef00000000f0, 0xabcdef00000000ff, 0x0f
    amo_case amoand.w,  lw, 0xff, 0x0f, 0xff, 0x10000010f
    amo_case amoor.w,   lw, 0xf0, 0x1ff, 0xf0, 0xf0000010f
    amo_case amomin.w,  lw, 3, 0xfffffffd, 3, -3
    amo_case amomax.w,  lw, -3, 3, 0xfffffffd, 3
    amo_case amominu.w, lw, -3, 3, 0xfffffffd, 0x700000003
    amo_case amomaxu.w, lw, 3, 0xfffffffd, 3, -3
    amo_case amoadd.d.aqrl, ld, 1, 3, 1, 2

    next                        /* no reservation: nothing is stored */
    la      a1, cell
    li      a0, 5
    sd      a0, 0(a1)
    sc.d    a2, zero, (a1)
    snez    a2, a2
    expect  a2, 1
    ld      a0, 0(a1)
    expect  a0, 5
    next
    lr.d    a0, (a1)
    expect  a0, 5
    li      a3, 6
    sc.d    a2, a3, (a1)
    expect  a2, 0
    ld      a0, 0(a1)
    expect  a0, 6
    sc.d    a2, zero, (a1)      /* it is used up */
    snez    a2, a2
    expect  a2, 1
    next
    li      a0, 0xabcdef0080000001
    sd      a0, 0(a1)
    lr.w    a0, (a1)
    expect  a0, 0xffffffff80000001
    sc.w.aqrl a2, zero, (a1)
    expect  a2, 0
    ld      a0, 0(a1)
    expect  a0, 0xabcdef0000000000
    next                        /* a counter by reservations */
    li      a3, 100
    sd      zero, 0(a1)
1:  lr.d    a0, (a1)
    addi    a0, a0, 3
    sc.d    a2, a0, (a1)
    bnez    a2, 1b
    addi    a3, a3, -1
    bnez    a3, 1b
    ld      a0, 0(a1)
    expect  a0, 300
    done

    .data
    .balign 8
cell:
    .dword  0
