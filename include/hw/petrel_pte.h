/* SPDX-License-Identifier: MIT */
/* petrel_pte.h - GPU virtual addresses and page tables. */
#ifndef PETREL_PTE_H
#define PETREL_PTE_H

#include <stdint.h>

/*
 * 48-bit virtual addresses, four levels of 512 entries of 8 bytes (as RISC-V Sv48 and x86-64: 9+9+9+9+12 bits).
 * The root is the VRAM offset of a 4 KiB page. A leaf may stand at level 1 (2 MiB) or level 0 (4 KiB).
 * Table pages live in VRAM. A leaf with SYSTEM set addresses host memory of the system aperture instead of VRAM.
 */
#define PETREL_VA_BITS 48
#define PETREL_PAGE_SHIFT 12
#define PETREL_PAGE_SIZE 4096u
#define PETREL_HUGE_SHIFT 21
#define PETREL_PT_LEVELS 4
#define PETREL_PT_ENTRIES 512u
#define PETREL_PT_INDEX(va_, level_) ((uint32_t)((va_) >> (12 + 9 * (level_)) & 511u))

#define PETREL_PTE_VALID  (1ull << 0)
#define PETREL_PTE_READ   (1ull << 1)
#define PETREL_PTE_WRITE  (1ull << 2)
#define PETREL_PTE_EXEC   (1ull << 3)
#define PETREL_PTE_LEAF   (1ull << 4)  /* else the entry points to the next level */
#define PETREL_PTE_SYSTEM (1ull << 5)
#define PETREL_PTE_ADDR_MASK 0x0000fffffffff000ull

/*
 * Apertures, never translated by page tables and never mapped by a VM: workgroup-local memory and private (stack) memory.
 * Local: the same addresses in each workgroup. Private: lane slot s (= (cu * WARPS_PER_CU + warp slot) * 32 + lane) owns
 * [PRIVATE_BASE + s * PRIVATE_B, + PRIVATE_B); its backing store in VRAM interleaves lanes: byte o of lane l of warp slot w is at
 * SCRATCH_BASE + w * 32 * PRIVATE_B + (o / 8 * 32 + l) * 8 + o % 8. A lane reaches only its own window.
 */
#define PETREL_LOCAL_BASE   0x0000700000000000ull
#define PETREL_LOCAL_END    0x0000700100000000ull
#define PETREL_PRIVATE_BASE 0x0000710000000000ull
#define PETREL_PRIVATE_END  0x0000720000000000ull
#define PETREL_VA_USER_END  0x0000700000000000ull  /* VMs map below */

#endif
