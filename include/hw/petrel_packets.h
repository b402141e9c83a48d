/* SPDX-License-Identifier: MIT */
/* petrel_packets.h - what rings and indirect buffers hold. */
#ifndef PETREL_PACKETS_H
#define PETREL_PACKETS_H

#include <stdint.h>

/*
 * A packet is a header dword and count more dwords. Little endian; 64-bit fields are two dwords, low first.
 * header = opcode << 24 | flags << 16 | count. Addresses in ring packets with PETREL_PKT_PHYS are VRAM offsets, else GPU virtual;
 * the flag is privileged and defined for INDIRECT, COPY, FILL, WRITE, TIMESTAMP and WAIT. Other flags are malformed.
 * Rows: PKT(name, opcode, dwords after the header, rings: C compute, D copy, privileged, text). Privileged packets are legal only in the ring itself, which the kernel
 * driver writes; in an indirect buffer they fault with PETREL_FAULT_PACKET. Count must equal the row's.
 */
#define PETREL_PACKETS(PKT)                                                                                \
    PKT(NOP,         0x00,  0, CD, 0, "no operation; a zero dword")                                        \
    PKT(SET_CONTEXT, 0x01,  8, CD, 1, "root_lo root_hi vmid job_lo job_hi flags context_lo context_hi: address space and job of what follows") \
    PKT(INDIRECT,    0x02,  3, CD, 1, "va_lo va_hi dwords: run an indirect buffer; not nested")            \
    PKT(FENCE,       0x03,  5, CD, 1, "pa_lo pa_hi seq_lo seq_hi flags(1: interrupt): after all before it is done, write seq and device ns (16 bytes at VRAM offset pa)") \
    PKT(TLB_INVAL,   0x04,  1, CD, 1, "vmid: forget translations (0xffffffff: all)")                       \
    PKT(DISPATCH,    0x10, 16, C,  0, "struct petrel_dispatch")                                            \
    PKT(CODE,        0x12, 16, C,  0, "struct petrel_code: about the code of the dispatches that follow, until SET_CONTEXT") \
    PKT(BARRIER,     0x11,  0, CD, 0, "everything before is done before anything after starts")            \
    PKT(COPY,        0x20,  6, CD, 0, "src_lo src_hi dst_lo dst_hi bytes_lo bytes_hi: linear, any alignment, no overlap") \
    PKT(FILL,        0x21,  6, CD, 0, "dst_lo dst_hi bytes_lo bytes_hi pattern element_B(1 2 4)")          \
    PKT(WRITE,       0x22,  4, CD, 0, "va_lo va_hi data_lo data_hi: 64-bit write after what came before")  \
    PKT(TIMESTAMP,   0x23,  2, CD, 0, "va_lo va_hi: 64-bit device ns after what came before")              \
    PKT(WAIT,        0x24,  4, CD, 0, "va_lo va_hi ref_lo ref_hi: until the 64-bit value there is >= ref") \
    PKT(MARK,        0x25,  2, CD, 0, "id_lo id_hi: command-buffer id that fault and hang reports name")

enum petrel_opcode {
#define PETREL_PKT_ENUM(name_, op_, count_, rings_, priv_, text_) PETREL_OP_##name_ = op_,
    PETREL_PACKETS(PETREL_PKT_ENUM)
#undef PETREL_PKT_ENUM
};
#define PETREL_PKT(op_, count_) ((uint32_t)(op_) << 24 | (uint32_t)(count_))
#define PETREL_PKT_PHYS (1u << 16)
#define PETREL_PKT_OP(h_) ((uint32_t)(h_) >> 24)
#define PETREL_PKT_COUNT(h_) ((uint32_t)(h_) & 0xffffu)

/* After the header of DISPATCH; 16 dwords. */
struct petrel_dispatch {
    uint64_t entry_va;      /* first instruction of the kernel */
    uint64_t args_va;       /* in a0 at entry; also CSR */
    uint32_t grid[3];       /* workgroups */
    uint32_t block[3];      /* work-items per workgroup; product at most 1024 */
    uint32_t local_B;       /* local memory per workgroup */
    uint32_t flags;         /* 0 */
    uint64_t code_va;       /* load address of the code object's text segment ... */
    uint64_t code_B;        /* ... and its size: what the convergence analysis covers */
} __attribute__((packed));
_Static_assert(sizeof(struct petrel_dispatch) == 64, "dispatch layout is frozen");

/*
 * After the header of CODE; 16 dwords. Thread-local storage: each lane gets a block at the top of its private window, tp points to it.
 * Notes: the section PETREL_NOTE_SECTION of the code object, where it was loaded; read when a dispatch begins.
 */
struct petrel_code {
    uint64_t tls_va;        /* template: what the blocks begin with ... */
    uint64_t tls_file_B;    /* ... and its size; zeros follow */
    uint64_t tls_B;         /* of a lane's variables, at most PETREL_TLS_MAX_B; 0: no thread-local storage */
    uint64_t tls_align;     /* a power of two, at most PETREL_TLS_ALIGN_MAX */
    uint64_t notes_va;      /* a multiple of 4 */
    uint64_t notes_B;       /* at most PETREL_NOTES_MAX_B; 0: no notes */
    uint64_t reserved[2];   /* 0 */
} __attribute__((packed));
_Static_assert(sizeof(struct petrel_code) == 64 && __builtin_offsetof(struct petrel_code, notes_va) == 32 &&
               __builtin_offsetof(struct petrel_code, reserved) == 48, "code layout is frozen");
#define PETREL_TLS_MAX_B 16384u
#define PETREL_TLS_ALIGN_MAX 4096u
#define PETREL_NOTES_MAX_B 65536u

/** What a lane's block takes of its private window, of which it may be half: tls_B in whole units of the alignment, 16 at least. */
static inline uint64_t petrel_tls_block_B(const struct petrel_code *code)
{
    uint64_t align = code->tls_align > 16 ? code->tls_align : 16;

    return (code->tls_B + align - 1) & ~(align - 1);
}

#endif
