/* SPDX-License-Identifier: MIT */
/* cu.h - the compute units as the command processor sees them: one dispatch at a time, run in slices of device cycles. */
#ifndef HW_CU_H
#define HW_CU_H

#include <stdbool.h>
#include <stdint.h>

#include <hw/petrel_packets.h>
#include <hw/petrel_regs.h>
#include <umd/umd_diag.h>

/** Host threads that units may be spread over. */
#define HW_CU_THREADS_MAX 64u

/*
 * Ownership: the device owns one hw_cu_array; all calls come from the device thread (or pump), one at a time, so this
 * interface takes no lock. The array borrows memory and the translate callback for its whole life. A dispatch starts when none is running.
 */

/** A translated page run. */
struct hw_xlat {
    uint8_t *host;        /**< host address of va's page start */
    uint64_t page_va;     /**< first va of the run */
    uint64_t page_B;      /**< its bytes: 4 KiB or 2 MiB */
    uint32_t rights;      /**< PETREL_PTE_READ | WRITE | EXEC */
    bool system;          /**< behind the link */
    uint64_t lane_stride_B; /**< 0: one memory for all; else work-item i of a workgroup has its own copy, at host + i * stride */
};
/** 0 or enum petrel_fault. Walks the tables; implemented in mmu.c. access: enum petrel_access. Called by several threads at once where host_threads is more than 1. */
typedef uint32_t (*hw_translate_fn)(void *priv, uint64_t root, uint64_t va, uint32_t access, struct hw_xlat *xlat_out);

/** An instruction that was carried out; what the pointers name is the model's and stands still during the call. */
struct hw_cu_trace {
    uint64_t pc, wg;
    uint32_t warp;         /**< in the workgroup */
    uint32_t mask;         /**< lanes that took part */
    uint32_t bits;         /**< as fetched, 16 or 32 bits */
    uint8_t size_B;        /**< 2 or 4 */
    uint8_t rd;            /**< register written: 0 to 31 x, 32 to 63 f, 0: none */
    const uint64_t *before, *after; /**< rd's 32 lanes; NULL without one */
};

struct hw_cu_config {
    uint32_t cu_count, warps_per_cu, local_B, regs_per_cu; /**< regs_per_cu: 32-lane vector registers of 8 bytes a lane */
    bool functional;
    /* first timing model: latencies in core cycles */
    uint32_t lat_alu, lat_mul, lat_div, lat_fp, lat_fdiv, lat_special, lat_local, lat_l1, lat_l2, lat_dram, lat_link;
    uint32_t issue_per_cycle;          /**< warp instructions a CU issues per cycle */
    uint32_t l1_B, l2_B;               /**< tag arrays, 128-byte lines */
    uint32_t dram_B_per_clk;           /**< all of the device */
    uint8_t *scratch;                  /**< host address of the private backing store; set again by hw_cu_set_scratch */
    uint32_t private_B;
    hw_translate_fn translate;
    void *translate_priv;
    uint32_t age_instr;                /**< instructions of a path that gets on, before paths that stand still have a turn; 0: as isa.md says */
    bool portable;                     /**< handlers that run on any host, also where it has AVX-512 */
    /* bare programs (tools/sim): no kernel driver is there */
    bool bare;                         /**< privileged registers and mret are taken, not ILLEGAL */
    uint64_t stack_va;                 /**< bare: sp at entry; 0: the top of the lane's private window */
    void (*on_exit)(void *observer, uint64_t item, uint64_t a0); /**< NULL, or a work-item ends: by ecall, or by returning from its entry */
    void (*on_trace)(void *observer, const struct hw_cu_trace *t); /**< NULL, or after each instruction; slow */
    void *observer;
    /**
     * Units are spread over so many host threads, HW_CU_THREADS_MAX at most; 0, 1: the caller's alone. With more each unit has a slice of
     * the L2 of its own and takes each cu_count'th workgroup: cycles differ from those of one thread, and the order between workgroups
     * is that of a real device, none. Faults and all calls above come from the caller's thread; a dispatch that is sabotaged or has
     * one of those calls runs on it alone.
     */
    uint32_t host_threads;
};

struct hw_cu_array;
UMD_MUST_CHECK umdStatus hw_cu_array_create(const struct hw_cu_config *config, struct hw_cu_array **cus_out); /**< UMD_ERR_MEM_HOST_ALLOC_FAILED, UMD_ERR_RES_THREADS */
void hw_cu_array_destroy(struct hw_cu_array *cus);
void hw_cu_set_scratch(struct hw_cu_array *cus, uint8_t *scratch, uint32_t private_B);
void hw_cu_set_functional(struct hw_cu_array *cus, bool functional);
void hw_cu_set_stack(struct hw_cu_array *cus, uint64_t stack_va); /**< of dispatches from now on, as in hw_cu_config */

/** About the code of dispatches from now on; checked by the command processor, all zeros at first. */
void hw_cu_set_code(struct hw_cu_array *cus, const struct petrel_code *code);

/** Breakage asked for by the fault sites, for one dispatch. */
struct hw_cu_sabotage {
    bool hang;             /**< warps of one CU stop issuing after a few instructions, and preemption is not honoured */
    bool wild; uint64_t wild_va;      /**< first vector data access of lane 0 of the first warp goes to wild_va */
    bool illegal; uint32_t illegal_bits; /**< some instruction after the first few is fetched as these bits */
};

struct hw_cu_fault {
    uint32_t fault;        /**< enum petrel_fault */
    uint64_t va, pc, info, wg, data; /**< as PETREL_RING_FAULT_* */
};

enum hw_cu_state { HW_CU_IDLE, HW_CU_RUNNING, HW_CU_DONE, HW_CU_FAULTED, HW_CU_HUNG };

/** Begins a dispatch; the packet was checked for shape. False with *fault_out filled: RESOURCES, PAGE (entry not executable; template of thread-local storage or notes not readable). */
bool hw_cu_start(struct hw_cu_array *cus, const struct petrel_dispatch *d, uint64_t root, const struct hw_cu_sabotage *sabotage,
                 struct hw_cu_fault *fault_out);
/**
 * Runs at most budget cycles. Adds what passed to *cycles_out. RUNNING: more to do. HUNG: nothing can issue any more (sabotage),
 * time may pass. FAULTED: first fault in *fault_out, all warps frozen.
 */
enum hw_cu_state hw_cu_run(struct hw_cu_array *cus, uint64_t budget, uint64_t *cycles_out, struct hw_cu_fault *fault_out);
/** Preemption probe: true when warps stand at an instruction boundary (always, unless hung). pc, wg, lane of one running warp, of a hung one if there is any. */
bool hw_cu_probe(struct hw_cu_array *cus, struct hw_cu_fault *where_out);
/** Drops the dispatch and every warp. */
void hw_cu_kill(struct hw_cu_array *cus);
/** Translations and decoded code of every root are forgotten. */
void hw_cu_invalidate(struct hw_cu_array *cus);

struct hw_cu_counters {
    uint64_t cycles, warp_instr, lane_instr, workgroups, divergent_branches, l1_hit, l1_miss, l2_miss, dram_B, barriers, faults;
};
void hw_cu_get_counters(const struct hw_cu_array *cus, struct hw_cu_counters *counters_out);

#endif
