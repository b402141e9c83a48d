/* SPDX-License-Identifier: MIT */
/* compressed.S - each instruction of two bytes, and ones of four bytes at odd halfwords and over the end of a page. */
#include "isa.h"
    begin
    .option rvc
    next
    c.li    a0, -32
    expect  a0, -32
    c.lui   a0, 0xfffe0
    expect  a0, 0xfffffffffffe0000
    c.lui   a0, 31
    expect  a0, 31 << 12
    next
    c.li    a0, 31
    c.addi  a0, -32
    expect  a0, -1
    c.addiw a0, 1
    expect  a0, 0
    c.li    a0, 1
    c.slli  a0, 63
    expect  a0, 0x8000000000000000
    c.srai  a0, 63
    expect  a0, -1
    c.srli  a0, 33
    expect  a0, 0x7fffffff
    c.andi  a0, -16
    expect  a0, 0x7ffffff0
    next
    li      a0, 12
    li      a1, 10
    c.mv    a2, a0
    c.add   a2, a1
    expect  a2, 22
    c.sub   a2, a1
    expect  a2, 12
    c.xor   a2, a1
    expect  a2, 6
    c.or    a2, a1
    expect  a2, 14
    c.and   a2, a1
    expect  a2, 10
    li      a2, 0x7fffffff
    c.addw  a2, a1
    expect  a2, 0xffffffff80000009
    c.subw  a2, a1
    expect  a2, 0x7fffffff
    next                        /* memory by registers and by the stack */
    la      a1, cells
    mv      s0, sp
    mv      sp, a1
    li      a0, 0x8877665544332211
    c.sd    a0, 248(a1)
    c.ld    a2, 248(a1)
    expect  a2, 0x8877665544332211
    c.sw    a0, 124(a1)
    c.lw    a2, 124(a1)
    expect  a2, 0x44332211
    c.sdsp  a0, 504(sp)
    c.ldsp  a2, 504(sp)
    expect  a2, 0x8877665544332211
    c.swsp  a0, 252(sp)
    c.lwsp  a2, 252(sp)
    expect  a2, 0x44332211
    c.fldsp fa0, 504(sp)
    c.fsd   fa0, 0(a1)
    c.fld   fa1, 0(a1)
    c.fsdsp fa1, 8(sp)
    ld      a2, 8(a1)
    expect  a2, 0x8877665544332211
    c.addi4spn a2, sp, 1020
    sub     a2, a2, a1
    expect  a2, 1020
    c.addi16sp sp, -512
    sub     a2, sp, a1
    expect  a2, -512
    c.addi16sp sp, 496
    sub     a2, sp, a1
    expect  a2, -16
    mv      sp, s0
    next                        /* flow */
    li      a0, 0
    c.j     1f
    j       failed
1:  c.beqz  a0, 2f
    j       failed
2:  c.li    a0, 1
    c.bnez  a0, 3f
    j       failed
3:  c.beqz  a0, 4f
    c.bnez  a0, 5f
4:  j       failed
5:  la      t0, 6f
    c.jr    t0
    j       failed
6:  la      t0, 7f
    c.jalr  t0
back:
    j       failed
7:  la      t1, back
    beq     ra, t1, 8f
    j       failed
8:  next                        /* four bytes over the end of a page */
    li      a0, 0
    c.j     edge
after_edge:
    expect  a0, 678
    done
    .balign 4096
    .zero   4096 - 8
edge:
    c.nop
    c.nop
    c.nop
    addi    a0, a0, 678
    j       after_edge
    .option norvc

    .data
    .balign 16
    .zero   1024
cells:
    .zero   2048
