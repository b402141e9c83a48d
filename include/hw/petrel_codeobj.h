/* SPDX-License-Identifier: MIT */
/* petrel_codeobj.h - the ELF code object: what petrel-cc writes and the UMD loads. */
#ifndef PETREL_CODEOBJ_H
#define PETREL_CODEOBJ_H

#include <stdint.h>

/*
 * A statically linked, position-independent (-static-pie style, ET_DYN, base 0) ELF64 RISC-V file, medany code model, with
 * R_RISCV_RELATIVE relocations only. Section ".petrel.kernels" is an array of struct petrel_kernel_meta, one per PETREL_KERNEL.
 */
#define PETREL_KERNEL_META_SECTION ".petrel.kernels"
struct petrel_kernel_meta {
    uint64_t entry;         /* link-time address of the function (relocated) */
    char name[64];          /* NUL-terminated */
    uint32_t args_B;        /* sizeof the argument struct */
    uint32_t max_block;     /* most work-items of a workgroup, 0: the device's limit */
    uint32_t local_B;       /* static local memory */
    uint32_t version;       /* 1 */
};
_Static_assert(sizeof(struct petrel_kernel_meta) == 88, "code object layout is frozen");

#endif
