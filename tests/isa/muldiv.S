/* SPDX-License-Identifier: MIT */
/* muldiv.S - multiplication and division with their corners. */
#include "isa.h"
    begin
#define MIN 0x8000000000000000
#define MAX 0x7fffffffffffffff
    rr  mul,    1, -1, -1
    rr  mul,    0, MIN, 2
    rr  mul,    MIN, MIN, 1
    rr  mul,    0xfffffffe00000001, 0xffffffff, 0xffffffff
    rr  mulh,   0, -1, -1
    rr  mulh,   0x4000000000000000, MIN, MIN
    rr  mulh,   0xc000000000000000, MIN, MAX
    rr  mulhu,  0xfffffffffffffffe, -1, -1
    rr  mulhu,  0x4000000000000000, MIN, MIN
    rr  mulhsu, -1, -1, -1
    rr  mulhsu, 0xc000000000000000, MIN, MIN
    rr  mulhsu, MAX - 1, MAX, -1
    rr  mulw,   0xffffffff80000000, 0x80000000, 1
    rr  mulw,   1, 0xffffffff, 0xabcdef00ffffffff
    rr  div,    -1, 5, 0
    rr  div,    MIN, MIN, -1
    rr  div,    -3, -20, 6
    rr  div,    3, -20, -6
    rr  div,    0, 5, MIN
    rr  divu,   -1, 5, 0
    rr  divu,   0, MIN, -1
    rr  divu,   0x2aaaaaaaaaaaaaa7, -20, 6
    rr  rem,    5, 5, 0
    rr  rem,    0, MIN, -1
    rr  rem,    -2, -20, 6
    rr  rem,    2, 20, -6
    rr  remu,   5, 5, 0
    rr  remu,   MIN, MIN, -1
    rr  remu,   2, -20, 6
    rr  divw,   -1, 0x100000005, 0x100000000
    rr  divw,   0xffffffff80000000, 0x80000000, 0xffffffff
    rr  divw,   -3, 0x7ffffffec, 6
    rr  divuw,  -1, 5, 0x100000000
    rr  divuw,  0x2aaaaaa7, -20, 6
    rr  divuw,  0xffffffff80000000, 0x80000000, 1
    rr  remw,   0xffffffff80000005, 0x80000005, 0
    rr  remw,   0, 0x80000000, 0xffffffff
    rr  remw,   -2, -20, 6
    rr  remuw,  0xffffffff80000000, 0x80000000, 0xffffffff
    rr  remuw,  0xffffffff80000005, 0x80000005, 0x100000000
    done
