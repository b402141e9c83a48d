/* SPDX-License-Identifier: MIT */
/* int.S - integer registers and immediates, constants. */
#include "isa.h"
    begin
#define MAX 0x7fffffffffffffff
#define MIN 0x8000000000000000
    rr  add,  0, 0, 0
    rr  add,  MIN, MAX, 1
    rr  add,  -2, MAX, MAX
    rr  add,  0, MIN, MIN
    rr  sub,  MIN, 0, MIN
    rr  sub,  MAX, MIN, 1
    rr  sub,  0, 77, 77
    rr  sll,  MIN, 1, 63
    rr  sll,  1, 1, 64
    rr  sll,  0x123456789abcdef0 << 4, 0x123456789abcdef0, 0xffffffffffffffc4
    rr  srl,  1, MIN, 63
    rr  srl,  MIN, MIN, 128
    rr  sra,  -1, MIN, 63
    rr  sra,  0x3fffffffffffffff, MAX, 1
    rr  slt,  1, MIN, MAX
    rr  slt,  0, MAX, MIN
    rr  slt,  0, 5, 5
    rr  slt,  1, -1, 0
    rr  sltu, 0, MIN, MAX
    rr  sltu, 1, MAX, MIN
    rr  sltu, 0, -1, 0
    rr  xor,  0x00ff00ff00ff00ff, 0xff00ff00ff00ff00, -1
    rr  or,   -1, 0xff00ff00ff00ff00, 0x00ff00ff00ff00ff
    rr  and,  0x0f000f000f000f00, 0xff00ff00ff00ff00, 0x0f0f0f0f0f0f0f0f
    rr  addw, 0xffffffff80000000, 0x7fffffff, 1
    rr  addw, 0, 0xffffffff, 1
    rr  addw, 0x12345678, 0xabcdef0012345678, 0x1111111100000000
    rr  subw, 0x7fffffff, 0xffffffff80000000, 1
    rr  subw, 0xffffffff80000000, 0, 0x80000000
    rr  sllw, 0xffffffff80000000, 1, 31
    rr  sllw, 1, 1, 32
    rr  sllw, 0, 0xff00000000, 3
    rr  srlw, 1, 0xffffffff80000000, 31
    rr  srlw, 0xffffffff80000000, 0x80000000, 32
    rr  sraw, -1, 0x80000000, 31
    rr  sraw, 0x3fffffff, 0xabcdef007fffffff, 1

    ri  addi,  MIN, MAX, 1
    ri  addi,  MAX, MIN, -1
    ri  addi,  -2048, 0, -2048
    ri  slti,  1, MIN, -2048
    ri  slti,  0, 2047, 2047
    ri  sltiu, 1, 5, -1
    ri  sltiu, 0, -1, -1
    ri  sltiu, 1, 0, 1
    ri  xori,  -1, 0x7ff, -2048
    ri  xori,  ~0x1234, 0x1234, -1
    ri  ori,   -1, 0x7ff, -2048
    ri  andi,  0xf0, 0x123456f0, 0xff
    ri  andi,  0x123456789abcd800, 0x123456789abcdfff, -2048
    ri  slli,  MIN, 1, 63
    ri  slli,  0x100000000, 1, 32
    ri  srli,  1, MIN, 63
    ri  srai,  -1, MIN, 63
    ri  srai,  0xfffffffff8000000, 0xffffffff80000000, 4
    ri  addiw, 0xffffffff80000000, 0x7fffffff, 1
    ri  addiw, -1, 0x1234567800000000, -1
    ri  slliw, 0xffffffff80000000, 0xff00000001, 31
    ri  srliw, 0x7fffffff, 0xabcdffffffff, 1
    ri  srliw, 0xffffffff80000001, 0x80000001, 0
    ri  sraiw, -1, 0x80000000, 31

    next
    lui     a0, 0x80000
    expect  a0, 0xffffffff80000000
    lui     a0, 0x7ffff
    expect  a0, 0x7ffff000
    next
    lla     a0, here
here:
    auipc   a1, 0
    expect  zero, 0
    sub     a0, a1, a0
    expect  a0, 0
    next
    li      zero, 5
    addi    x0, x0, 7
    expect  x0, 0
    done
