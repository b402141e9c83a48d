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

/* What a warp needs beyond RISC-V is in opcode custom-0: docs/isa.md has each instruction, each function behind this line is one or a few of them. */
#include <device/petrel_device_ops.h>

#endif
