/* SPDX-License-Identifier: MIT */
/* half.S - half precision: results, flags, boxing, conversions. */
#include "isa.h"
    begin
#define H(x_) (((x_) ^ 0x8000) - 0x8000)
.macro h2 insn, result, flags, a, b
    fp2     \insn, fmv.h.x, fmv.x.h, \result, \flags, \a, \b
.endm
    h2  fadd.h, 0x4000, 0, 0x3c00, 0x3c00
    h2  fadd.h, 0x3c00, 1, 0x3c00, 0x1000
    h2  fadd.h, 0x7c00, 5, 0x7bff, 0x7bff
    h2  fadd.h, 0x7e00, 16, 0x7c00, 0xfc00
    h2  fsub.h, 0, 0, 0x3c00, 0x3c00
    h2  fmul.h, 0, 3, 0x0001, 0x3800
    h2  fmul.h, 0x0200, 0, 0x0400, 0x3800
    h2  fdiv.h, 0x7c00, 8, 0x3c00, 0
    h2  fdiv.h, 0x3555, 1, 0x3c00, 0x4200
    h2  fmin.h, H(0x8000), 0, 0, 0x8000
    h2  fmax.h, 0x3c00, 16, 0x3c00, 0x7d00
    h2  fsgnjn.h, H(0xbc00), 0, 0x3c00, 0x3c00
    fp1 fsqrt.h, fmv.h.x, fmv.x.h, 0x4000, 0, 0x4400
    fp1 fcvt.s.h, fmv.h.x, fmv.x.w, 0x3f800000, 0, 0x3c00
    fp1 fcvt.h.s, fmv.w.x, fmv.x.h, 0x7c00, 5, 0x7f7fffff
    fp1 fcvt.d.h, fmv.h.x, fmv.x.d, 0x3e70000000000000, 0, 1
    fp1 fcvt.h.d, fmv.d.x, fmv.x.h, 1, 3, 0x3e68000000000000
    next                        /* memory and boxing */
    la      a1, cell
    li      a0, 0x12343c00
    sw      a0, 0(a1)
    flh     ft0, 0(a1)
    fmv.x.d a0, ft0
    expect  a0, 0xffffffffffff3c00
    fadd.h  ft0, ft0, ft0
    fsh     ft0, 2(a1)
    lw      a0, 0(a1)
    expect  a0, 0x40003c00
    li      a0, 0x3c00
    fmv.d.x ft1, a0             /* not boxed: a NaN */
    fclass.h a0, ft1
    expect  a0, 512
    next
    li      a0, 0x4100          /* 2.5 */
    fmv.h.x ft0, a0
    fcvt.w.h a0, ft0, rne
    expect  a0, 2
    fcvt.l.h a0, ft0, rup
    expect  a0, 3
    li      a0, 2049
    fcvt.h.w ft0, a0, rne
    fmv.x.h a0, ft0
    expect  a0, 0x6800
    li      a0, 2049
    fcvt.h.wu ft0, a0, rmm
    fmv.x.h a0, ft0
    expect  a0, 0x6801
    li      a0, 1000000
    fcvt.h.l ft0, a0, rtz
    fmv.x.h a0, ft0
    expect  a0, 0x7bff
    done

    .data
    .balign 8
cell:
    .dword  0
