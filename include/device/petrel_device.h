/* SPDX-License-Identifier: MIT */
/* petrel_device.h - what a kernel includes: entry macro, work-item ids, barrier, warp functions, atomics, math, trap. */
#ifndef PETREL_DEVICE_H
#define PETREL_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include <hw/petrel_codeobj.h>
#include <hw/petrel_csr.h>

/*
 * Kernels are C17, built by petrel-cc, run by warps of 32 lanes. A kernel takes one pointer to its argument struct:
 *
 *   struct saxpy_args { const float *x; float *y; float a; uint32_t n; };
 *   PETREL_KERNEL(saxpy, struct saxpy_args)
 *   {
 *       uint32_t i = petrel_global_id(0);
 *       if (i < args->n)
 *           args->y[i] += args->a * args->x[i];
 *   }
 */
#define PETREL_KERNEL(name_, args_type_) PETREL_KERNEL_BLOCK(name_, args_type_, 0, 0)
/* As above, with the largest workgroup and the static local memory it needs. */
#define PETREL_KERNEL_BLOCK(name_, args_type_, max_block_, local_B_)                                      \
    void name_(const args_type_ *args);                                                                   \
    __attribute__((used, section(PETREL_KERNEL_META_SECTION)))                                            \
    const struct petrel_kernel_meta name_##_petrel_meta = {                                               \
        .entry = (uint64_t)(uintptr_t)&name_, .name = #name_, .args_B = sizeof(args_type_),               \
        .max_block = (max_block_), .local_B = (local_B_), .version = 1,                                   \
    };                                                                                                    \
    __attribute__((used, noinline)) void name_(const args_type_ *args)

#define PETREL_CSR_READ_(csr_) ({ uint64_t v_; __asm__("csrr %0, " #csr_ : "=r"(v_)); v_; })
#define PETREL_CSR_READ(csr_) PETREL_CSR_READ_(csr_)

/*
 * custom-0 (opcode 0x0b), R-type: funct3 selects the group, funct7 the operation, rs1/rs2/rd as usual.
 *   funct3 0: funct7 0 barrier, 1 yield, 2 trap(rs1), 3 warp sync
 *   funct3 1: rd = warp-wide on integers of active lanes: funct7 0 ballot(rs1 != 0), 1 any, 2 all, 3 shuffle idx (rs1 value, rs2 lane),
 *             4 shuffle up, 5 shuffle down, 6 shuffle xor, 8 reduce add i64, 9 min, 10 max, 11 and, 12 or, 13 xor
 *   funct3 2: on f32 registers: funct7 3..6 shuffles (rs1 f, rs2 x), 8 reduce add, 9 min, 10 max
 *   funct3 3: atomics on memory at rs1: funct7 0 cas u32 (rd: expected in, old out; rs2: new), 1 cas u64, 2 f32 add (rs2 f, rd f old), 3 f32 min, 4 f32 max
 *   funct3 4: f32 approximations rd f, rs1 f: funct7 0 exp2, 1 log2, 2 rsqrt, 3 sin, 4 cos, 5 rcp
 * Lanes that a warp-wide operation names but that are inactive: shuffle returns the reader's own value.
 */

#include <device/petrel_device_ops.h>

#endif
