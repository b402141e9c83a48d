/* SPDX-License-Identifier: MIT */
/* float.S - single and double precision: results, flags, rounding modes, boxing, conversions. */
#include "isa.h"
    begin
#define ONE_S 0x3f800000
#define ONE_D 0x3ff0000000000000
#define NAN_S 0x7fc00000
#define NAN_D 0x7ff8000000000000
#define INF_D 0x7ff0000000000000
/* fmv.x.w extends the sign */
#define S(x_) (((x_) ^ 0x80000000) - 0x80000000)
.macro s2 insn, result, flags, a, b
    fp2     \insn, fmv.w.x, fmv.x.w, \result, \flags, \a, \b
.endm
.macro d2 insn, result, flags, a, b
    fp2     \insn, fmv.d.x, fmv.x.d, \result, \flags, \a, \b
.endm
    s2  fadd.s, 0x40000000, 0, ONE_S, ONE_S
    s2  fadd.s, ONE_S, 1, ONE_S, 0x33000000
    s2  fadd.s, 0x7f800000, 5, 0x7f7fffff, 0x7f7fffff
    s2  fadd.s, NAN_S, 16, 0x7f800000, 0xff800000
    s2  fadd.s, NAN_S, 16, ONE_S, 0x7f800001
    s2  fadd.s, NAN_S, 0, ONE_S, 0xffffffff
    s2  fsub.s, 0, 0, ONE_S, ONE_S
    s2  fmul.s, 0, 3, 0x00000001, 0x3f000000
    s2  fmul.s, 0x00400000, 0, 0x00800000, 0x3f000000
    s2  fdiv.s, 0x7f800000, 8, ONE_S, 0
    s2  fdiv.s, 0x3eaaaaab, 1, ONE_S, 0x40400000
    s2  fmin.s, S(0x80000000), 0, 0, 0x80000000
    s2  fmax.s, 0, 0, 0, 0x80000000
    s2  fmax.s, ONE_S, 0, ONE_S, NAN_S
    s2  fmin.s, NAN_S, 0, NAN_S, NAN_S
    s2  fmin.s, ONE_S, 16, ONE_S, 0x7f800001
    s2  fsgnj.s, S(0xbf800000), 0, ONE_S, 0x80000000
    s2  fsgnjn.s, ONE_S, 0, ONE_S, 0x80000000
    s2  fsgnjx.s, ONE_S, 0, 0xbf800000, 0x80000000
    d2  fadd.d, 0x4000000000000000, 0, ONE_D, ONE_D
    d2  fadd.d, ONE_D, 1, ONE_D, 0x3c90000000000000
    d2  fadd.d, NAN_D, 16, INF_D, 0xfff0000000000000
    d2  fsub.d, NAN_D, 16, INF_D, INF_D
    d2  fmul.d, INF_D, 5, 0x7fefffffffffffff, 0x4000000000000000
    d2  fmul.d, 1, 3, 1, 0x3fe8000000000000
    d2  fdiv.d, 0x3fd5555555555555, 1, ONE_D, 0x4008000000000000
    d2  fdiv.d, NAN_D, 16, 0, 0
    d2  fmin.d, 0x8000000000000000, 0, 0, 0x8000000000000000
    d2  fmax.d, ONE_D, 0, NAN_D, ONE_D
    fp1 fsqrt.s, fmv.w.x, fmv.x.w, 0x40000000, 0, 0x40800000
    fp1 fsqrt.s, fmv.w.x, fmv.x.w, NAN_S, 16, 0xbf800000
    fp1 fsqrt.s, fmv.w.x, fmv.x.w, S(0x80000000), 0, 0x80000000
    fp1 fsqrt.d, fmv.d.x, fmv.x.d, 0x3ff6a09e667f3bcd, 1, 0x4000000000000000
    fp1 fcvt.d.s, fmv.w.x, fmv.x.d, ONE_D, 0, ONE_S
    fp1 fcvt.d.s, fmv.w.x, fmv.x.d, NAN_D, 16, 0x7f800001
    fp1 fcvt.s.d, fmv.d.x, fmv.x.w, 0x7f800000, 5, 0x7fefffffffffffff
    fp1 fcvt.s.d, fmv.d.x, fmv.x.w, NAN_S, 0, 0xfff8000000000001
    fp1 fneg.d, fmv.d.x, fmv.x.d, 0xbff0000000000000, 0, ONE_D

.macro to_int insn, move_in, result, flags, a, mode
    next
    csrwi   fflags, 0
    li      a1, \a
    \move_in ft1, a1
    \insn   a3, ft1, \mode
    expect  a3, \result
    expect_flags \flags
.endm
    to_int fcvt.w.s, fmv.w.x, 2, 1, 0x40200000, rne         /* 2.5 */
    to_int fcvt.w.s, fmv.w.x, 2, 1, 0x40200000, rtz
    to_int fcvt.w.s, fmv.w.x, 2, 1, 0x40200000, rdn
    to_int fcvt.w.s, fmv.w.x, 3, 1, 0x40200000, rup
    to_int fcvt.w.s, fmv.w.x, 3, 1, 0x40200000, rmm
    to_int fcvt.w.s, fmv.w.x, -2, 1, 0xc0200000, rne
    to_int fcvt.w.s, fmv.w.x, -3, 1, 0xc0200000, rdn
    to_int fcvt.w.s, fmv.w.x, -2, 1, 0xc0200000, rup
    to_int fcvt.w.s, fmv.w.x, -3, 1, 0xc0200000, rmm
    to_int fcvt.w.s, fmv.w.x, 0x7fffffff, 16, NAN_S, rne
    to_int fcvt.w.s, fmv.w.x, 0xffffffff80000000, 16, 0xff800000, rne
    to_int fcvt.wu.s, fmv.w.x, -1, 16, 0x7f800000, rne
    to_int fcvt.wu.s, fmv.w.x, 0, 16, 0xbf800000, rne
    to_int fcvt.wu.s, fmv.w.x, 0, 1, 0xbe800000, rne        /* -0.25 */
    to_int fcvt.wu.d, fmv.d.x, 0xffffffff80000000, 0, 0x41e0000000000000, rne
    to_int fcvt.l.d, fmv.d.x, 0x7fffffffffffffff, 16, 0x43e0000000000000, rne
    to_int fcvt.l.d, fmv.d.x, 0x8000000000000000, 0, 0xc3e0000000000000, rne
    to_int fcvt.lu.d, fmv.d.x, 0x8000000000000000, 0, 0x43e0000000000000, rne
    to_int fcvt.lu.d, fmv.d.x, -1, 16, NAN_D, rne

    next                        /* conversions from integers round as asked */
    li      a1, 0x1000001
    fcvt.s.w ft0, a1, rne
    fmv.x.w a0, ft0
    expect  a0, 0x4b800000
    fcvt.s.w ft0, a1, rup
    fmv.x.w a0, ft0
    expect  a0, 0x4b800001
    fcvt.s.w ft0, a1, rmm
    fmv.x.w a0, ft0
    expect  a0, 0x4b800001
    li      a1, -1
    fcvt.d.lu ft0, a1
    fmv.x.d a0, ft0
    expect  a0, 0x43f0000000000000
    fcvt.d.l ft0, a1
    fmv.x.d a0, ft0
    expect  a0, 0xbff0000000000000
    fcvt.d.wu ft0, a1
    fmv.x.d a0, ft0
    expect  a0, 0x41efffffffe00000

    next                        /* the dynamic mode */
    li      a1, ONE_S
    li      a2, 0x33800000
    fmv.w.x ft1, a1
    fmv.w.x ft2, a2
    csrwi   frm, 3
    fadd.s  ft3, ft1, ft2
    fmv.x.w a0, ft3
    expect  a0, 0x3f800001
    csrwi   frm, 4
    fadd.s  ft3, ft1, ft2       /* a tie */
    fmv.x.w a0, ft3
    expect  a0, 0x3f800001
    csrwi   frm, 0
    csrr    a0, frm
    expect  a0, 0

    next                        /* fused: one rounding */
    li      a1, 0x3f800001
    fmv.w.x ft1, a1
    li      a2, 0xbf800002
    fmv.w.x ft2, a2
    csrwi   fflags, 0
    fmadd.s ft3, ft1, ft1, ft2
    fmv.x.w a0, ft3
    expect  a0, 0x28800000
    expect_flags 0
    fnmadd.s ft3, ft1, ft1, ft2
    fmv.x.w a0, ft3
    expect  a0, S(0xa8800000)
    fnmsub.s ft3, ft1, ft1, ft2
    fmsub.s ft4, ft1, ft1, ft2
    fsgnjn.s ft4, ft4, ft4
    feq.s   a0, ft3, ft4
    expect  a0, 1

    next                        /* what is not boxed is a NaN */
    li      a1, ONE_D
    fmv.d.x ft1, a1
    li      a2, ONE_S
    fmv.w.x ft2, a2
    fadd.s  ft3, ft1, ft2
    fmv.x.d a0, ft3
    expect  a0, 0xffffffff7fc00000
    fmv.x.d a0, ft2
    expect  a0, 0xffffffff3f800000
    fmv.x.w a0, ft1
    expect  a0, 0
    fclass.s a0, ft1
    expect  a0, 512
    fsgnj.s ft3, ft1, ft1
    fmv.x.w a0, ft3
    expect  a0, NAN_S

.macro compare insn, move_in, result, flags, a, b
    next
    csrwi   fflags, 0
    li      a1, \a
    li      a2, \b
    \move_in ft1, a1
    \move_in ft2, a2
    \insn   a3, ft1, ft2
    expect  a3, \result
    expect_flags \flags
.endm
    compare feq.s, fmv.w.x, 1, 0, 0, 0x80000000
    compare feq.s, fmv.w.x, 0, 0, NAN_S, NAN_S
    compare feq.s, fmv.w.x, 0, 16, 0x7f800001, ONE_S
    compare flt.s, fmv.w.x, 0, 16, NAN_S, ONE_S
    compare flt.s, fmv.w.x, 1, 0, 0xbf800000, ONE_S
    compare fle.s, fmv.w.x, 1, 0, ONE_S, ONE_S
    compare fle.d, fmv.d.x, 0, 16, ONE_D, NAN_D
    compare flt.d, fmv.d.x, 1, 0, 0xfff0000000000000, INF_D
    compare feq.d, fmv.d.x, 1, 0, INF_D, INF_D

.macro classify insn, move_in, result, a
    next
    li      a1, \a
    \move_in ft1, a1
    \insn   a3, ft1
    expect  a3, 1 << \result
.endm
    classify fclass.s, fmv.w.x, 0, 0xff800000
    classify fclass.s, fmv.w.x, 1, 0xbf800000
    classify fclass.s, fmv.w.x, 2, 0x807fffff
    classify fclass.s, fmv.w.x, 3, 0x80000000
    classify fclass.s, fmv.w.x, 4, 0
    classify fclass.s, fmv.w.x, 5, 1
    classify fclass.s, fmv.w.x, 6, ONE_S
    classify fclass.s, fmv.w.x, 7, 0x7f800000
    classify fclass.s, fmv.w.x, 8, 0x7f800001
    classify fclass.s, fmv.w.x, 9, NAN_S
    classify fclass.d, fmv.d.x, 0, 0xfff0000000000000
    classify fclass.d, fmv.d.x, 2, 0x800fffffffffffff
    classify fclass.d, fmv.d.x, 5, 1
    classify fclass.d, fmv.d.x, 8, 0x7ff0000000000001
    classify fclass.d, fmv.d.x, 9, 0xfff8000000000000
    done
