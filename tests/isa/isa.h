/* SPDX-License-Identifier: MIT */
/* isa.h - what the instruction tests share: a bare program's start, cases that are numbered, and its end. */
/*
 * A program comes up as one for a bare machine does: it spins unless its hart is 0, prepares privileged registers and drops to user
 * mode by mret. Each case puts its number into gp; the first that goes wrong makes it the exit status.
 */
#ifndef ISA_H
#define ISA_H

    .set case_number, 0

.macro begin
    .option norvc
    .section .text.init, "ax"
    .globl _start
_start:
    csrr    a0, mhartid
1:  bnez    a0, 1b
    la      t0, trap_entry
    csrw    mtvec, t0
    csrwi   satp, 0
    li      t0, -1
    csrw    pmpaddr0, t0
    li      t0, 0x1f
    csrw    pmpcfg0, t0
    csrwi   mie, 0
    csrwi   medeleg, 0
    csrwi   mideleg, 0
    csrwi   mstatus, 0
    li      t0, 0x6000          /* the floating point unit on */
    csrs    mstatus, t0
    csrwi   fcsr, 0
    li      gp, 0
    la      t0, 1f
    csrw    mepc, t0
    mret
trap_entry:
    j       trap_entry
1:
.endm

/* The end: passed. */
.macro done
    fence
    li      a0, 0
    li      a7, 93
    ecall
failed:
    mv      a0, gp
    li      a7, 93
    ecall
    unimp
.endm

.macro next
    .set case_number, case_number + 1
    .if case_number > 255
    .error "the status would be 0 where case 256 goes wrong"
    .endif
    li      gp, case_number
.endm

/* The number of the case is told where reg is not the value. */
.macro expect reg, value
    li      t6, \value
    beq     \reg, t6, 9f
    j       failed
9:
.endm

/* insn a3, a1, a2; insn a1, a1, a2; insn a2, a1, a2: also where a source is the destination. */
.macro rr insn, result, a, b
    next
    li      a1, \a
    li      a2, \b
    \insn   a3, a1, a2
    expect  a3, \result
    \insn   a1, a1, a2
    expect  a1, \result
    li      a1, \a
    \insn   a2, a1, a2
    expect  a2, \result
    \insn   zero, a1, a2
    expect  zero, 0
.endm

.macro ri insn, result, a, imm
    next
    li      a1, \a
    \insn   a3, a1, \imm
    expect  a3, \result
    \insn   a1, a1, \imm
    expect  a1, \result
.endm

/* Double and single operands as bits; flags are NV 16, DZ 8, OF 4, UF 2, NX 1. */
.macro expect_flags flags
    csrrwi  a4, fflags, 0
    expect  a4, \flags
.endm

.macro fp2 insn, move_in, move_out, result, flags, a, b
    next
    csrwi   fflags, 0
    li      a1, \a
    li      a2, \b
    \move_in ft1, a1
    \move_in ft2, a2
    \insn   ft3, ft1, ft2
    \move_out a3, ft3
    expect  a3, \result
    expect_flags \flags
.endm

.macro fp1 insn, move_in, move_out, result, flags, a
    next
    csrwi   fflags, 0
    li      a1, \a
    \move_in ft1, a1
    \insn   ft3, ft1
    \move_out a3, ft3
    expect  a3, \result
    expect_flags \flags
.endm

#endif
