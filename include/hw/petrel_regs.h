/* SPDX-License-Identifier: MIT */
/* petrel_regs.h - MMIO registers, interrupt ring entries and firmware handshake of the Petrel device. */
#ifndef PETREL_REGS_H
#define PETREL_REGS_H

#include <stdint.h>

/*
 * Revisions that this header describes. Of another one only ID and REVISION are sure to be where they are. Revision 2: SET_CONTEXT names the
 * context, and there is the packet CODE.
 */
#define PETREL_REVISION_OLDEST 2u
#define PETREL_REVISION_NEWEST 2u

/*
 * REG(name, byte offset, width in bits, access, reset value, text). 64-bit registers are read and written whole.
 * A device that is off the bus reads all ones everywhere; writes vanish. Unknown offsets read 0, writes are ignored.
 */
#define PETREL_REGS(REG)                                                                                      \
    REG(ID,              0x0000, 32, RO, 0x50455452, "'PETR'")                                                \
    REG(REVISION,        0x0004, 32, RO, PETREL_REVISION_NEWEST, "hardware revision: which edition of these registers and packets")     \
    REG(FW_VERSION,      0x0008, 32, RO, 0, "major << 16 | minor, valid once FW_STATUS is READY")             \
    REG(FW_STATUS,       0x000c, 32, RO, 0, "enum petrel_fw_status")                                          \
    REG(FW_CONTROL,      0x0010, 32, RW, 0, "1: boot the firmware")                                           \
    REG(SELFTEST,        0x0014, 32, RW, 0, "write 1: run the memory self-test; reads enum petrel_selftest")  \
    REG(SELFTEST_ADDR,   0x0018, 64, RO, 0, "first failing VRAM offset")                                      \
    REG(CU_COUNT,        0x0020, 32, RO, 0, "compute units")                                                  \
    REG(WARPS_PER_CU,    0x0024, 32, RO, 0, "resident warps of 32 lanes per compute unit")                    \
    REG(LOCAL_B,         0x0028, 32, RO, 0, "local memory per compute unit, bytes")                           \
    REG(CLOCK_KHZ,       0x002c, 32, RO, 0, "core clock")                                                     \
    REG(VRAM_SIZE,       0x0030, 64, RO, 0, "bytes of VRAM, from physical address 0")                         \
    REG(SYSMEM_SIZE,     0x0038, 64, RO, 0, "bytes of host memory the device can reach, see PETREL_PTE_SYSTEM") \
    REG(CLOCK_NS,        0x0040, 64, RO, 0, "device time, ns since power-up")                                 \
    REG(TIMER_NS,        0x0048, 64, RW, 0, "raises IRQ TIMER once when CLOCK_NS reaches it; 0: off")         \
    REG(SCRATCH_BASE,    0x0050, 64, RW, 0, "VRAM offset of the private-memory backing store")                \
    REG(SCRATCH_SIZE,    0x0058, 64, RW, 0, "its bytes: CU_COUNT * WARPS_PER_CU * 32 * PRIVATE_B")            \
    REG(PRIVATE_B,       0x0060, 32, RW, 0, "private memory (stack) per lane, power of two, 1 KiB to 64 KiB")  \
    REG(FUNCTIONAL,      0x0064, 32, RW, 0, "1: timing off, one cycle a warp instruction")                    \
    REG(IH_BASE,         0x0100, 64, RW, 0, "VRAM offset of the interrupt ring")                              \
    REG(IH_SIZE,         0x0108, 32, RW, 0, "its entries, power of two; 0: off")                              \
    REG(IH_WPTR,         0x010c, 32, RO, 0, "entries written, free-running")                                  \
    REG(IH_RPTR,         0x0110, 32, RW, 0, "entries consumed, free-running")                                 \
    REG(IH_STATUS,       0x0114, 32, RW, 0, "bit 0: overflowed (write 1 to clear)")                           \
    REG(RESET,           0x0200, 32, RW, 0, "bit r: reset ring r; bit 31: whole device. Reads back 1 until done")

#define PETREL_RING_COMPUTE0 0u
#define PETREL_RING_COPY0 1u
#define PETREL_RING_COUNT 2u
#define PETREL_RING_STRIDE 0x100u
#define PETREL_RING_REG(ring_, field_) (0x1000u + (ring_) * PETREL_RING_STRIDE + PETREL_RING_##field_)
/* Per ring. */
#define PETREL_RING_BASE      0x00u /* 64 RW: VRAM offset of the ring */
#define PETREL_RING_SIZE_DW   0x08u /* 32 RW: size in dwords, power of two; 0: off */
#define PETREL_RING_RPTR      0x0cu /* 32 RO: dwords consumed, free-running */
#define PETREL_RING_WPTR      0x10u /* 32 RW: dwords written, free-running; a write is the doorbell */
#define PETREL_RING_STATUS    0x14u /* 32 RO: enum petrel_ring_status */
#define PETREL_RING_PROGRESS  0x18u /* 64 RO: workgroups retired, or KiB copied, since power-up; moves while work completes */
#define PETREL_RING_INSTR     0x20u /* 64 RO: warp instructions issued for this ring's work since power-up */
#define PETREL_RING_JOB       0x28u /* 64 RO: job id of the last SET_CONTEXT; a reset leaves it, so that the driver learns what had started */
#define PETREL_RING_PREEMPT   0x30u /* 32 RW: write 1: probe, ask running work to stop at an instruction boundary. Reads 0 idle, 1 asked, 2 honoured (work is frozen; write 0: go on) */
#define PETREL_RING_FAULT     0x34u /* 32 RO: enum petrel_fault of the stopped ring, 0: none */
#define PETREL_RING_FAULT_VA  0x38u /* 64 RO: faulting address; for a barrier that cannot be met (TRAP) the other place where lanes wait, 0: all at one; for PACKET the packet's dword offset in its indirect buffer, or in the ring (free-running) */
#define PETREL_RING_FAULT_PC  0x40u /* 64 RO: GPU virtual pc, 0 on a copy ring; also where work stands once PREEMPT was asked, honoured or not */
#define PETREL_RING_FAULT_INFO 0x48u /* 64 RO: PETREL_FAULT_INFO_* fields */
#define PETREL_RING_FAULT_WG  0x50u /* 64 RO: linear workgroup id */
#define PETREL_RING_FAULT_DATA 0x58u /* 64 RO: instruction bits, trap code, or packet header */

#define PETREL_RING_MARK      0x60u /* 64 RO: id of the last MARK, 0 after SET_CONTEXT */

#define PETREL_FAULT_INFO_ACCESS(i_) ((uint32_t)((i_) & 3u))          /* enum petrel_access */
#define PETREL_FAULT_INFO_LANE(i_)   ((uint32_t)((i_) >> 8 & 0x1fu))  /* lane in the warp */
#define PETREL_FAULT_INFO_WARP(i_)   ((uint32_t)((i_) >> 16 & 0xffffu)) /* warp in the workgroup */
#define PETREL_FAULT_INFO_CU(i_)     ((uint32_t)((i_) >> 32 & 0xffffu))
#define PETREL_FAULT_INFO(access_, lane_, warp_, cu_) \
    ((uint64_t)(access_) | (uint64_t)(lane_) << 8 | (uint64_t)(warp_) << 16 | (uint64_t)(cu_) << 32)

enum petrel_fw_status { PETREL_FW_OFF, PETREL_FW_BOOTING, PETREL_FW_READY, PETREL_FW_FAILED };
enum petrel_selftest { PETREL_SELFTEST_IDLE, PETREL_SELFTEST_RUNNING, PETREL_SELFTEST_PASS, PETREL_SELFTEST_FAIL };
enum petrel_ring_status { PETREL_RING_IDLE, PETREL_RING_BUSY, PETREL_RING_FAULTED, PETREL_RING_OFF };
enum petrel_access { PETREL_ACCESS_READ, PETREL_ACCESS_WRITE, PETREL_ACCESS_EXEC, PETREL_ACCESS_ATOMIC };
enum petrel_fault {
    PETREL_FAULT_NONE,
    PETREL_FAULT_PAGE,         /* no valid translation */
    PETREL_FAULT_ACCESS,       /* translation forbids the access */
    PETREL_FAULT_ILLEGAL,      /* unknown instruction */
    PETREL_FAULT_TRAP,         /* ebreak, trap instruction, barrier that cannot be met: FAULT_DATA has the code */
    PETREL_FAULT_MISALIGNED,   /* atomics and fetch only; loads and stores may be misaligned */
    PETREL_FAULT_PACKET,       /* malformed, unknown or forbidden packet */
    PETREL_FAULT_RESOURCES,    /* workgroup does not fit on a compute unit */
    PETREL_FAULT_ECC,          /* uncorrectable memory error */
    PETREL_FAULT_HOST_MEMORY,  /* the model has no host memory for the work: FAULT_DATA is the number of the record that says so, 0: unknown */
};
/* FAULT_DATA of PETREL_FAULT_TRAP. */
#define PETREL_TRAP_EBREAK 0x10000u           /* ebreak */
#define PETREL_TRAP_BARRIER 0x10001u          /* lanes of a warp or workgroup wait at places that exclude each other */
#define PETREL_TRAP_ECALL 0x10002u            /* ecall other than exit */
/* below 0x10000: code of petrel_trap(code) */

#define PETREL_FW_VERSION_EXPECTED 0x00010000u /* 1.0 */

/* Interrupt ring entry, 32 bytes. */
enum petrel_irq_source { PETREL_IRQ_FENCE = 1, PETREL_IRQ_FAULT, PETREL_IRQ_TIMER, PETREL_IRQ_PREEMPTED, PETREL_IRQ_ECC };
struct petrel_ih_entry {
    uint32_t source;      /* enum petrel_irq_source */
    uint32_t ring;
    uint64_t data;        /* FENCE: sequence number; FAULT: enum petrel_fault; ECC: address */
    uint64_t time_ns;     /* device time */
    uint64_t job;         /* job id of the last SET_CONTEXT on the ring */
};
_Static_assert(sizeof(struct petrel_ih_entry) == 32, "interrupt ring layout is frozen");

#endif
