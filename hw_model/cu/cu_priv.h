/* SPDX-License-Identifier: MIT */
/* cu_priv.h - what the files of the compute unit share: warps, paths, regions, the array. */
#ifndef HW_CU_PRIV_H
#define HW_CU_PRIV_H

#include <hw/petrel_pte.h>

#include "cu.h"
#include "fuse.h"
#include "insn.h"
#include "sys.h"

#define CU_LANES 32u
#define CU_ALL UINT32_MAX

#pragma GCC diagnostic ignored "-Wpsabi" /* no function with vector arguments is left uninlined */
/* Lane vectors: gcc and clang split them to what the host has. */
typedef int64_t v8 __attribute__((vector_size(64), aligned(64)));
typedef uint64_t u8v __attribute__((vector_size(64), aligned(64)));
typedef double d8 __attribute__((vector_size(64), aligned(64)));
typedef float f16v __attribute__((vector_size(64), aligned(64)));
typedef int32_t i16v __attribute__((vector_size(64), aligned(64)));

/** 32 values of 64 bits. */
union cu_xreg { v8 v[4]; int64_t i[CU_LANES]; uint64_t u[CU_LANES]; };
/** 32 lanes of an f register: all NaN-boxed singles (s, w) or raw 64-bit values (d, q); the warp's f_single bit says which. */
union cu_freg {
    f16v sv[2]; i16v wv[2]; d8 dv[4]; v8 qv[4];
    float s[CU_LANES]; uint32_t w[CU_LANES]; double d[CU_LANES]; uint64_t q[CU_LANES];
};

/* ---- Paths: lanes that run together (path.c) ---- */

enum cu_path_state { CU_PATH_RUN, CU_PATH_BARRIER, CU_PATH_SYNC, CU_PATH_COHORT };

struct cu_path {
    const struct cu_uop *u;  /**< where it goes on; stale for the current path while it runs */
    struct cu_region *rg;
    struct cu_node *node;    /**< innermost convergence node, NULL: none */
    uint64_t stamp;          /**< when it last ran, for ageing */
    uint32_t mask;
    uint32_t depth;          /**< calls deep */
    uint32_t turns;          /**< places of CU_UOP_MERGE passed */
    uint8_t state;           /**< enum cu_path_state */
    bool released;           /**< does not wait for its cohort at the operation it stands at */
    uint64_t site;           /**< stands for the calls that lead here, see cu_site_in */
};

/* A number for a stack of return addresses: a call makes another one of it, the return takes that back. */
#define CU_SITE 0x9e3779b97f4a7c15ull
#define CU_SITE_BACK 0xf1de83e19937733dull /* 1 / CU_SITE modulo 2^64 */
static inline uint64_t cu_site_in(uint64_t site, uint64_t back) { return site * CU_SITE + back; }
static inline uint64_t cu_site_out(uint64_t site, uint64_t back) { return (site - back) * CU_SITE_BACK; }
static inline void cu_path_called(struct cu_path *p, uint64_t back)
{
    p->depth++;
    p->site = cu_site_in(p->site, back);
}
static inline void cu_path_returned(struct cu_path *p, uint64_t back)
{
    if (!p->depth)
        return;
    p->depth--;
    p->site = cu_site_out(p->site, back);
}

enum cu_node_kind { CU_NODE_POINT, CU_NODE_EXIT, CU_NODE_COHORT, CU_NODE_PASSED };

/** A place where lanes wait for each other after a divergent branch. */
struct cu_node {
    const struct cu_uop *u;  /**< POINT, PASSED: where; else NULL */
    struct cu_region *rg;
    struct cu_node *parent;
    struct cu_node *next, **link; /**< of the warp's nodes, or of the free ones */
    struct cu_node *behind;  /**< COHORT: the node where the others are to come, NULL: they have */
    struct cu_node *passed;  /**< COHORT, PASSED: the next of the meeting points that lanes in front have come by */
    uint64_t stamp;          /**< when it was made, or its lanes were last let go */
    uint32_t mask, arrived;  /**< lanes that take part; that wait here */
    uint32_t depth;
    uint32_t turns;          /**< the most of the lanes that wait here, see cu_path */
    uint8_t kind;            /**< enum cu_node_kind */
    bool calls;              /**< pc[] are functions entered */
    bool returns;            /**< pc[] are return addresses */
    uint64_t site;
    uint64_t pc[CU_LANES];   /**< EXIT: where each lane returns to; PASSED: how often each lane has come by */
};

#define CU_PATHS 32u
/* Of a warp; with more, lanes do not wait for each other. */
#define CU_NODES_MAX 4096u
/* Nodes are allocated so many at a time. */
#define CU_NODE_CHUNK 64u
struct cu_node_chunk { struct cu_node_chunk *next; struct cu_node node[CU_NODE_CHUNK]; };
/* Instructions: to the first look at a path while others stand still; what a path that waits gives to another, and has before it is looked at again. */
#define CU_AGE_NORMAL 500
#define CU_AGE_FORCED 100
#define CU_AGE_AGAIN 100
/* Of a path that gets on, after which others have a turn of a quarter of it all the same: it may count while it waits. A quarter each time after that. */
#define CU_AGE_LONG (1u << 20)
#define CU_AGE_EXPIRED_MAX 4u

/* ---- Code ---- */

/* An instruction of four bytes may begin in the last halfword; what follows it lies one further. */
#define CU_BEHIND_END 2u
/* Nothing stands before the begin, and who looks at what two halfwords before an instruction sees that. */
#define CU_BEFORE_BEGIN (2u * (CU_FUSED_MAX - 1u))
struct cu_region {
    struct cu_region *next;
    uint64_t root, va, size_B;
    struct cu_uop *uops;     /**< one per halfword, CU_BEFORE_BEGIN before and CU_BEHIND_END behind */
    uint64_t *touched;       /**< a bit for each page of 4 KiB that has decoded micro-ops or entries; in uops_mem */
    void *uops_mem;
};

/* ---- Translations ---- */

#define CU_TLB_ENTRIES 64u      /* by 4 KiB */
#define CU_TLB_HUGE 16u         /* by 2 MiB, behind the first */
struct cu_tlb_entry {
    uint64_t va;       /**< first byte */
    uint64_t size_B;   /**< 0: empty */
    uint8_t *host;
    uint32_t rights;
    bool system;
};

/* ---- Warps ---- */

struct cu_group;

/* A state of the warp, to find one that goes round; see spin.c. */
struct cu_spin {
    const struct cu_uop *u;       /**< the path's, */
    uint32_t mask;                /**< and its lanes */
    uint32_t near, far;           /**< instructions still looked at one by one; to the next look */
    uint64_t lane, all;           /**< of the registers of one lane, and of all */
};

struct cu_warp {
    union cu_xreg x[33];
    union cu_freg f[32];
    union cu_xreg lid[3];
    v8 m64[4];                    /**< active lanes as all-ones */
    i16v m32[2];
    uint64_t ready[CU_SLOT_COUNT]; /**< cycle in which a register's value is there */
    uint64_t now;                 /**< the warp's cycle; functional: as of the last cu_account */
    uint64_t end;                 /**< of the running slice */
    struct hw_cu *cu;
    struct cu_region *rg;         /**< of the current path */
    const struct cu_uop *u;       /**< of the current path while it does not run; NULL: none can run */
    struct cu_group *group;
    uint32_t mask, active;        /**< lanes of the current path, their number */
    uint32_t issued_mask;         /**< lanes that the last instruction with a mark of cu_handle_join was carried out by, for traces */
    uint32_t live;
    uint32_t partial;             /**< 0: all 32 lanes active */
    uint32_t f_single;            /**< see cu_freg */
    int32_t fuel;                 /**< instructions until the loop looks up: for path ageing, or the slice is over; see cu_account */
    int32_t fuel_mark;            /**< fuel when instructions were last accounted for */
    int32_t fuel_more;            /**< of the path's turn, beyond this slice */
    uint32_t frm, fflags;
    uint32_t index;               /**< in the workgroup */
    uint32_t slot;                /**< in the CU */
    uint32_t cur;                 /**< current path */
    uint32_t node_count, cohorts; /**< nodes in use, those of kind COHORT among them */
    uint64_t stamp, ages;
    uint32_t patience;            /**< instructions since somebody else had a turn, while others stood still */
    bool synchronises;            /**< did an atomic or a fence since the last look */
    uint32_t expired;             /**< times that was too long, since all lanes were together */
    bool yields;                  /**< wants somebody else to have a turn */
    struct cu_spin spin;
    uint64_t instr;               /**< issued, for instret and sabotage */
    bool used;
    uint32_t reserved;            /**< lanes with a reservation of lr */
    const uint8_t *resv_host[CU_LANES]; /**< resv.c: the bytes, */
    uint8_t resv_B[CU_LANES];
    uint64_t resv_value[CU_LANES]; /**< what lr read there, */
    uint64_t resv_now;            /**< and when the last one did */
    uint64_t mepc[CU_LANES];      /**< bare programs */
    uint32_t paths;               /**< bit per path in use */
    struct cu_node *nodes;        /**< in use */
    struct cu_path path[CU_PATHS];
};

struct cu_group {
    bool used;
    uint32_t id[3];
    uint64_t linear;
    uint32_t live, waiting;       /**< lanes not exited; lanes at the barrier */
    uint32_t warps;
    uint8_t *local;
    struct cu_warp *warp[CU_LANES];
};

struct cu_tags { uint64_t *line; uint32_t sets; }; /**< four ways, most recent first */

/* What a unit writes while it runs shares no pair of cache lines with another unit. */
#define CU_UNIT_ALIGN 128u
struct hw_cu {
    struct hw_cu_array *array __attribute__((aligned(CU_UNIT_ALIGN)));
    bool alone;                   /**< no other unit runs: code may be changed */
    uint32_t turn;                /**< warp that the epoch goes on with */
    struct cu_warp *asks;         /**< stands before asks_at, which has to be carried out alone; NULL: none */
    const struct cu_uop *asks_at;
    bool asks_code;               /**< for its code, and not to carry it out */
    uint64_t asked;               /**< how often, since the unit was made */
    uint64_t next_group;          /**< next workgroup, where they are dealt beforehand */
    uint32_t index;
    struct cu_warp *warps;        /**< warps_per_cu */
    struct cu_group *groups;      /**< warps_per_cu */
    uint32_t group_count;
    uint8_t *local;
    uint8_t *local_free;          /**< per group place: taken */
    uint64_t start, end;          /**< of the epoch, in warps' cycles */
    uint64_t real;                /**< device cycles since the dispatch began, at start */
    uint64_t last;                /**< warps' cycle of the last exit */
    uint64_t issued, lanes, dram_B; /**< in this epoch: warp instructions, lane instructions, bytes */
    uint64_t next_launch;         /**< warps' cycle at which the distributor serves the unit again */
    bool hung, faulted;
    struct hw_cu_fault fault;     /**< the unit's first, at this cycle of the dispatch */
    uint64_t fault_clock;
    struct hw_cu_counters counters; /**< of the unit since it was made; cycles and faults are the array's */
    struct cu_node *free_nodes;
    struct cu_node_chunk *node_chunks;
    struct cu_tlb_entry tlb[CU_TLB_ENTRIES], tlb_huge[CU_TLB_HUGE];
    struct cu_tlb_entry image;    /**< last run of memory that lanes have copies of; never in tlb, so that fast paths need not ask */
    uint64_t image_stride_B;
    struct cu_tags l1, own_l2;
    struct cu_tags *l2;           /**< the array's, or with host threads own_l2 */
};

/** What the dispatch's notes say (notes.c): sorted by branch, each once. */
struct cu_notes {
    struct cu_meet { uint64_t branch, meet; } *meets; /**< addresses; meet may be PETREL_MEET_* */
    uint32_t count;
    uint32_t pairs, ignored;      /**< read; which say nothing that could be used, and have not been told */
    bool loaded;                  /**< as of root, va, size_B: */
    uint64_t root, va, size_B;
};

#define CU_RESV_FILTER_BITS 10
struct hw_cu_array {
    struct hw_cu_config config;
    uint32_t resv_live;           /**< lanes with a reservation */
    struct umd_mutex resv_lock;   /**< rank 72; taken with a pool only */
    uint32_t resv_filter[1u << CU_RESV_FILTER_BITS]; /**< how many by place of their bytes, see resv.c */
    uint32_t lat[CU_LAT_COUNT];
    const struct cu_exec *exec;
    const cu_handler (*handlers)[2]; /**< exec's */
    struct hw_cu *cus;
    void *cus_mem, *warps_mem;
    struct cu_pool *pool;         /**< NULL: one host thread */
    bool parallel;                /**< the dispatch is spread over the pool */
    struct hw_cu **round_list;    /**< units of the round, and behind cu_count those that have not ended it */
    uint64_t round_span;          /**< device cycles of the longest epoch of the last round */
    struct cu_tags l2;
    struct cu_region *regions;
    struct cu_region *code;       /**< of the dispatch */
    uint64_t memory_record;       /**< number of the record of the last region that found no host memory; 0: it is not known */
    struct petrel_dispatch d;
    struct petrel_code code_info;
    struct cu_notes notes;
    uint32_t tls_block_B;         /**< rounded up to its alignment */
    uint8_t tls[PETREL_TLS_MAX_B + PETREL_TLS_ALIGN_MAX];
    uint64_t root;
    struct hw_cu_sabotage sabotage;
    enum hw_cu_state state;
    uint64_t clock;               /**< device cycles reported since the dispatch began */
    uint64_t next_group, group_total;
    uint32_t warps_per_group, groups_per_cu;
    bool faulted;                 /**< some unit is: */
    struct hw_cu_fault fault;     /**< the first fault of all, see array_settle */
    uint64_t fault_clock;
    bool flush_code;              /**< hw_cu_invalidate came while warps run: cu_code_flush before the next epoch */
    struct hw_cu_counters counters; /**< cycles and faults; hw_cu_get_counters adds those of the units */
};

/* Return address of a kernel; never translated. */
#define CU_RETURN_VA (PETREL_LOCAL_END - 4096u)

/* exec_base*.c, exec_avx512*.c: what is compiled for a host. handlers: by enum cu_op, with CU_OP_ILLEGAL last. */
struct cu_exec {
    cu_handler handlers[CU_OP_COUNT + 1][2];
    cu_handler fused[CU_FUSED_COUNT]; /**< by enum cu_fused, of full warps; not with timing */
    void (*warp_start)(struct cu_warp *w, struct cu_group *g, uint32_t index, uint32_t lanes, uint64_t now);
};
/* Without and with timing: what does not time looks at no tags. */
extern const struct cu_exec cu_exec_base, cu_exec_base_timed, cu_exec_avx512, cu_exec_avx512_timed;

/* code.c */
/** Lanes come to wait, and go to these addresses later, when the unit may not be alone: what code can be there has its region from now on. */
void cu_code_reach(struct cu_warp *w, const uint64_t pc[CU_LANES], uint32_t lanes);
/** Micro-op at va, analysed and ready to run; NULL: faulted, with the fault raised on w (va, EXEC). */
const struct cu_uop *cu_code_at(struct cu_warp *w, uint64_t va, struct cu_region **rg_out);
/* The region that holds `at`: one there is, or a new one over va and size_B, less what others hold. NULL: no host memory, see memory_record. */
struct cu_region *cu_region_get(struct hw_cu_array *a, uint64_t root, uint64_t at, uint64_t va, uint64_t size_B);
void cu_regions_drop(struct hw_cu_array *a);
/** What memory does not hold any more is decoded and analysed anew, for all warps, from the next instruction on. */
/** Value: what that costs, in cycles. */
uint64_t cu_code_flush(struct hw_cu_array *a);
/** Micro-op `index` is one that cu_code_flush has to look at. */
void cu_region_touch(struct cu_region *rg, uint64_t index);
/** The first run of micro-ops of one page, from *begin_io on, that cu_region_touch has named; false: none is left. */
bool cu_region_next_touched(const struct cu_region *rg, uint64_t *begin_io, uint64_t *end_out);
/** Decodes the micro-op in place unless it is. Value: false when the code could not be read. */
bool cu_uop_prepare(struct hw_cu_array *a, struct cu_region *rg, struct cu_uop *u);
const struct cu_uop *cu_handle_undecoded(struct cu_warp *w, const struct cu_uop *u);
const struct cu_uop *cu_handle_join(struct cu_warp *w, const struct cu_uop *u);
/* fuse.c */
/** Gives a micro-op its handlers, by itself and where it now runs, or does not run any more, as one with others. Whenever it or its flags changed. */
void cu_uop_bind(const struct hw_cu_array *a, struct cu_uop *u);
/* converge.c */
/** All functions of a region that have been analysed, once more: its code has changed. */
void cu_converge_region(struct hw_cu_array *a, struct cu_region *rg);
void cu_converge_function(struct hw_cu_array *a, struct cu_region *rg, uint32_t entry);

/** May lanes go each to its own of these addresses without a change of code? Else the unit asks. entry: they are functions; back: NULL, or where lanes meet behind the call. */
bool cu_jump_ready(const struct cu_warp *w, const uint64_t *pc, uint32_t lanes, bool entry, const struct cu_uop *back);

/* path.c */
/* Over a warp's paths in use; the body may free the one at hand. */
#define CU_EACH_PATH(w_, p_) \
    for (uint32_t left_ = (w_)->paths; left_ && (p_ = &(w_)->path[__builtin_ctz(left_)], true); left_ &= left_ - 1)

/** All nodes of the unit's warps are free again. */
void cu_nodes_reset(struct hw_cu *cu);
void cu_nodes_destroy(struct hw_cu *cu);
void cu_path_start(struct cu_warp *w, uint32_t lanes, const struct cu_uop *u, struct cu_region *rg);
const struct cu_uop *cu_path_branch(struct cu_warp *w, const struct cu_uop *u, uint32_t taken, const struct cu_uop *to);
const struct cu_uop *cu_path_jump(struct cu_warp *w, const struct cu_uop *u, const uint64_t pc[CU_LANES], int depth_step, bool is_return);
const struct cu_uop *cu_path_join(struct cu_warp *w, const struct cu_uop *u);
const struct cu_uop *cu_path_exit(struct cu_warp *w);
const struct cu_uop *cu_path_age(struct cu_warp *w, const struct cu_uop *u);
const struct cu_uop *cu_path_barrier(struct cu_warp *w, const struct cu_uop *u);
const struct cu_uop *cu_path_sync(struct cu_warp *w, const struct cu_uop *u);
/** Lanes of p wait for others before they return from the function they are in. */
static inline bool cu_path_waits_at_return(const struct cu_path *p)
{
    const struct cu_node *n = p->node;

    while (n && n->kind == CU_NODE_COHORT)
        n = n->parent;
    return n && n->kind == CU_NODE_EXIT && n->depth == p->depth;
}
/* cohort.c */
/** Before a warp-wide operation: false, *next_out set, when the path must wait for lanes it was let go from. */
bool cu_path_gather(struct cu_warp *w, const struct cu_uop *u, const struct cu_uop **next_out);

/* mem.c */
/** Host address for one access of a lane, or NULL with the fault in *fault_out. *run_B_out: bytes reachable from there. */
uint8_t *cu_mem_resolve(struct cu_warp *w, unsigned lane, uint64_t va, uint32_t access, uint64_t *run_B_out, bool *system_out,
                        uint32_t *fault_out);
const struct cu_tlb_entry *cu_tlb_fill(struct hw_cu *cu, uint64_t va, uint32_t access, uint32_t *fault_out);
/** Each active lane's access of size_B at va[l]: bytes of out/in at 8 bytes a lane. NULL when done, else the fault was raised: false. */
bool cu_mem_lanes(struct cu_warp *w, const struct cu_uop *u, const uint64_t *va, unsigned size_B, uint64_t *data, bool write);
/** Timing of one warp access: cycles until the value is there. */
uint32_t cu_mem_time(struct cu_warp *w, uint64_t first, uint64_t last, bool write, bool system);
uint32_t cu_mem_time_lanes(struct cu_warp *w, const uint64_t *va, bool write);
/** Of one lane's atomic after as many others'. */
uint32_t cu_mem_time_atomic(struct cu_warp *w, uint64_t va, uint32_t lanes_before);
/* atomic.c */
const struct cu_uop *cu_mem_amo(struct cu_warp *w, const struct cu_uop *u);
const struct cu_uop *cu_mem_famo(struct cu_warp *w, const struct cu_uop *u);
/** A word is sign-extended. */
uint64_t cu_atomic_load(const uint8_t *p, unsigned size_B);
/** Stores `now` where memory has *old, else tells in *old what it has. */
bool cu_atomic_replace(uint8_t *p, unsigned size_B, uint64_t *old, uint64_t now);

/* resv.c */
/** lr of a lane: its reservation, and the value. */
uint64_t cu_resv_load(struct cu_warp *w, unsigned lane, const uint8_t *host, unsigned size_B);
/** sc of a lane: stores where its reservation holds. Value: whether it did. */
bool cu_resv_store(struct cu_warp *w, unsigned lane, uint8_t *host, unsigned size_B, uint64_t value);
void cu_resv_drop(struct cu_warp *w, uint32_t lanes);
/** Before a slice of a warp that has some: old ones end. */
void cu_resv_age(struct cu_warp *w);
/** Ends what overlaps with bytes that a lane wrote, where cu_resv_any says that there may be some. */
void cu_resv_written(struct hw_cu_array *a, const uint8_t *host, uint64_t size_B);
static inline bool cu_resv_any(const struct hw_cu_array *a) { return __atomic_load_n(&a->resv_live, __ATOMIC_RELAXED) != 0; }

/* csr.c */
const struct cu_uop *cu_csr(struct cu_warp *w, const struct cu_uop *u);
/** What csrrw (kind 1), csrrs (2) and csrrc (3) write. */
uint64_t cu_csr_value(unsigned kind, uint64_t old, uint64_t src);
/** Host floating point flags since the last call go to the warp. */
void cu_flags_collect(struct cu_warp *w);
/* fpu.c: what host vectors cannot do as RISC-V wants it, a lane at a time */
const struct cu_uop *cu_fp_rounded(struct cu_warp *w, const struct cu_uop *u, unsigned rm);
const struct cu_uop *cu_fp_to_int(struct cu_warp *w, const struct cu_uop *u);
const struct cu_uop *cu_int_to_fp(struct cu_warp *w, const struct cu_uop *u);
const struct cu_uop *cu_fp_to_fp(struct cu_warp *w, const struct cu_uop *u);
/** Arithmetic, order and classes by integers, in any mode. */
const struct cu_uop *cu_fp_lanes(struct cu_warp *w, const struct cu_uop *u);
uint32_t cu_minmax32(struct cu_warp *w, uint32_t a, uint32_t b, bool max);
/* f registers in one layout or the other; writes reach active lanes only. to_single leaves a register alone that is not all boxed. */
void cu_f_to_double(struct cu_warp *w, unsigned r);
void cu_f_to_single(struct cu_warp *w, unsigned r);
void cu_f32_read(const struct cu_warp *w, unsigned r, uint32_t out[CU_LANES]);
void cu_f64_read(const struct cu_warp *w, unsigned r, uint64_t out[CU_LANES]);
void cu_f32_write(struct cu_warp *w, unsigned r, const uint32_t in[CU_LANES]);
void cu_f64_write(struct cu_warp *w, unsigned r, const uint64_t in[CU_LANES]);
/* bare.c */
bool cu_csr_is_privileged(unsigned csr);
const struct cu_uop *cu_csr_privileged(struct cu_warp *w, const struct cu_uop *u);
const struct cu_uop *cu_mret(struct cu_warp *w, const struct cu_uop *u);
const struct cu_uop *cu_ecall(struct cu_warp *w, const struct cu_uop *u);
/** Tells config.on_exit, if there is one, of lanes that end. */
void cu_tell_exits(struct cu_warp *w, uint32_t lanes);
/* tls.c */
/** Reads the dispatch's template. False: *fault_out says why not. */
bool cu_tls_load(struct hw_cu_array *a, struct hw_cu_fault *fault_out);
void cu_tls_fill(struct cu_warp *w);
/** Reads what a packet names. 0, or the fault at *va_out. */
uint32_t cu_memory_read(const struct hw_cu_array *a, uint64_t from, uint64_t size_B, uint8_t *out, uint64_t *va_out);
/* notes.c */
/** Reads the dispatch's notes. False: *fault_out says why not. */
bool cu_notes_load(struct hw_cu_array *a, struct hw_cu_fault *fault_out);
/** Where the lanes that the instruction at pc parts meet, as in cu_meet. False: no note says. */
bool cu_notes_find(const struct hw_cu_array *a, uint64_t pc, uint64_t *meet_out);
/** A line of log, if there are notes that have been ignored. */
void cu_notes_tell(struct hw_cu_array *a);
void cu_notes_drop(struct hw_cu_array *a);
/* special.c */
float cu_special(unsigned op, float x);

/* sched.c */
/** Raises the unit's first fault. Always NULL, for handlers to return. */
const struct cu_uop *cu_fault(struct cu_warp *w, const struct cu_uop *u, uint32_t fault, uint32_t access, uint64_t va, unsigned lane,
                              uint64_t data);
void cu_group_barrier_check(struct cu_group *g, uint64_t now);

/* warp.c */
void cu_warp_set_mask(struct cu_warp *w, uint32_t mask);
/**
 * Books what was issued since the last call. An instruction takes one of fuel before its handler runs; a handler that carries out
 * nothing (it only hands over: first decode, a wait) gives it back by cu_not_issued, first thing.
 */
static inline void cu_account(struct cu_warp *w)
{
    uint32_t n = (uint32_t)(w->fuel_mark - w->fuel);

    w->fuel_mark = w->fuel;
    w->instr += n;
    w->cu->issued += n;
    w->cu->lanes += (uint64_t)n * w->active;
    if (w->cu->array->config.functional)
        w->now += n;
}
static inline void cu_not_issued(struct cu_warp *w) { w->fuel++; }
/** Instructions until the path has had its turn. */
void cu_fuel_set(struct cu_warp *w, int32_t fuel);
/** Issues from u until the warp's cycle is `end` or it cannot go on. Value: what comes next; NULL: it cannot go on. */
const struct cu_uop *cu_warp_issue(struct cu_warp *w, const struct cu_uop *u, uint64_t end);
/** The same, not traced. */
const struct cu_uop *cu_warp_step(struct cu_warp *w, const struct cu_uop *u, uint64_t end);
/** The unit is not alone and u has to change code: its warp stands before u until the caller's thread comes to it. Always NULL. */
const struct cu_uop *cu_ask(struct cu_warp *w, const struct cu_uop *u);
/** Carries out the one instruction that was asked for, in the cycle in which it asked. Value: as of cu_warp_issue. */
const struct cu_uop *cu_warp_one(struct cu_warp *w, const struct cu_uop *u);
/** The instruction at hand takes so many cycles more; nothing of the warp issues before they have passed. */
void cu_warp_charge(struct cu_warp *w, uint64_t cycles);
/* threads.c */
struct cu_pool;
UMD_MUST_CHECK umdStatus cu_pool_create(uint32_t host_threads, struct cu_pool **pool_out); /**< the caller's is one of them. UMD_ERR_MEM_HOST_ALLOC_FAILED, UMD_ERR_RES_THREADS */
void cu_pool_destroy(struct cu_pool *pool);
/** Returns when all have run. One unit runs on the caller's thread, and nobody is woken. */
void cu_pool_run(struct cu_pool *pool, struct hw_cu **list, uint32_t count, void (*run)(struct hw_cu *cu));
/* trace.c */
const struct cu_uop *cu_run_traced(struct cu_warp *w, const struct cu_uop *u, uint64_t end);

static inline bool cu_sabotaged(const struct hw_cu_array *a) { return a->sabotage.hang || a->sabotage.wild || a->sabotage.illegal; }
static inline uint64_t cu_pc(const struct cu_region *rg, const struct cu_uop *u)
{
    return rg->va + (uint64_t)(u - rg->uops) * 2;
}
static inline uint64_t cu_later(uint64_t x, uint64_t y) { return x > y ? x : y; }
static inline unsigned cu_first_lane(uint32_t mask) { return (unsigned)__builtin_ctz(mask); }

#endif
