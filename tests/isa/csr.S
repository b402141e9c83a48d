/* SPDX-License-Identifier: MIT */
/* csr.S - registers of the floating point unit, counters, and privileged ones that are not there. */
#include "isa.h"
    begin
    next
    csrwi   fcsr, 0
    li      a0, 0xff
    csrrw   a1, fcsr, a0
    expect  a1, 0
    csrr    a1, frm
    expect  a1, 7
    csrr    a1, fflags
    expect  a1, 31
    csrrci  a1, fflags, 5
    expect  a1, 31
    csrrsi  a1, fflags, 1
    expect  a1, 26
    csrrwi  a1, frm, 0
    expect  a1, 7
    csrr    a1, fcsr
    expect  a1, 27
    li      a0, 8
    csrrc   a0, fflags, a0      /* source and destination in one */
    expect  a0, 27
    csrrs   a0, fflags, zero
    expect  a0, 19
    csrwi   fcsr, 0
    next                        /* time passes */
    csrr    a0, cycle
    csrr    a1, instret
    csrr    a2, time
    nop
    nop
    csrr    a3, cycle
    sltu    a4, a0, a3
    expect  a4, 1
    sltu    a4, a2, a0          /* time is cycle: between the reads of it */
    expect  a4, 0
    sltu    a4, a3, a2
    expect  a4, 0
    csrr    a4, instret         /* never back */
    sltu    a4, a4, a1
    expect  a4, 0
    li      a5, 5000            /* and on, in the long run */
1:  addi    a5, a5, -1
    bnez    a5, 1b
    csrr    a4, instret
    sltu    a4, a1, a4
    expect  a4, 1
    csrr    a4, time
    sltu    a4, a3, a4
    expect  a4, 1
    next
    li      a0, -1
    csrw    mscratch, a0
    csrrs   a1, mscratch, a0
    expect  a1, 0
    csrrc   a1, sscratch, a0
    expect  a1, 0
    csrrwi  a1, mcause, 31
    expect  a1, 0
    csrr    a1, misa
    expect  a1, 0
    csrr    a1, mvendorid
    expect  a1, 0
    csrr    a1, mhartid
    expect  a1, 0
    next
    li      a0, 0x1235
    csrw    mepc, a0
    csrr    a1, mepc
    expect  a1, 0x1234
    wfi
    next                        /* mret again, from user mode so to speak */
    la      a0, 1f
    csrw    mepc, a0
    mret
    j       failed
1:  done
