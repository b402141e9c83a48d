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

/*
 * Optional: where the lanes that a branch parts meet again, for code about which its writer knows more than the device can see. A section
 * of ELF notes (SHT_NOTE, SHF_ALLOC, in a readable segment, at most PETREL_NOTES_MAX_B), one behind the other as a linker leaves
 * them: name PETREL_NOTE_NAME, type PETREL_NOTE_CONVERGE, description an array of struct petrel_meet. Other types are passed over. What
 * it says is a hint: wrong ones cost time, never a result. docs/isa.md has the rules and an example.
 */
#define PETREL_NOTE_SECTION ".note.petrel.converge"
#define PETREL_NOTE_NAME "Petrel"   /* with its NUL */
#define PETREL_NOTE_CONVERGE 1u
/* Each is the distance from the field itself to an instruction: `.word branch - .` needs no relocation at load. */
struct petrel_meet {
    int32_t branch;         /* a conditional branch, or a jump through a register */
    int32_t meet;           /* or PETREL_MEET_* */
};
#define PETREL_MEET_RETURN 0 /* at the function's return */
#define PETREL_MEET_NONE 1   /* nowhere: lowest address first */
_Static_assert(sizeof(struct petrel_meet) == 8, "code object layout is frozen");

#endif
