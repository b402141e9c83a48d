/* SPDX-License-Identifier: MIT */
/* cu_fixture.h - a compute-unit array over a flat memory, and code objects or hand-assembled code in it. */
#ifndef TEST_CU_FIXTURE_H
#define TEST_CU_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cu.h"

#define FLAT_VA 0x10000000ull
#define FLAT_B (64u << 20)
#define FLAT_CODE_VA FLAT_VA                    /* readable and executable */
#define FLAT_CODE_B (2u << 20)
#define FLAT_DATA_VA (FLAT_VA + FLAT_CODE_B)    /* readable and writable; the last page is read-only */
#define FLAT_RO_VA (FLAT_VA + FLAT_B - 4096)
#define FLAT_SWAP_VA (FLAT_VA + FLAT_B - (2u << 20)) /* pages of 4 KiB that lie in pairs the other way round in host memory */
#define FLAT_SWAP_B 65536u

struct cu_fixture {
    struct hw_cu_array *cus;
    struct hw_cu_config config;
    uint8_t *mem;            /* FLAT_B bytes at FLAT_VA */
    uint8_t *scratch;
    uint64_t data_next;      /* bump allocation in data */
    uint64_t code_B;         /* of what is loaded */
    uint64_t kernels_va;     /* array of petrel_kernel_meta */
    uint32_t kernel_count;
    uint64_t notes_va, notes_B; /* section of convergence notes, which no run is told of; 0 bytes: none */
    uint32_t page_B;         /* what translate answers with */
    bool code_writable;
};

struct launch {
    uint64_t entry;
    uint32_t grid[3], block[3], local_B;
    uint64_t args;
    uint64_t slice;          /* cycles a call; 0: all at once */
    struct hw_cu_sabotage sabotage;
};

struct outcome {
    enum hw_cu_state state;
    struct hw_cu_fault fault;
    uint64_t cycles, slices;
    bool started;
};

/** hw_cu_config.age_instr of those created from now on; 0 to begin with. */
extern uint32_t fixture_age_instr;
void fixture_create(struct cu_fixture *f, bool base_handlers, bool functional);
void fixture_destroy(struct cu_fixture *f);
/** All ways of running: widest handlers (0, 2) and portable ones (1, 3), timed (0, 1) and functional (2, 3). Set-up and teardown of a group of tests. */
#define FIXTURE_WAYS 4u
extern struct cu_fixture fixture_ways[FIXTURE_WAYS];
int fixture_ways_create(void **state);
int fixture_ways_destroy(void **state);
/** Loads a code object at FLAT_CODE_VA. */
void fixture_load(struct cu_fixture *f, const char *path);
/** Puts instructions at FLAT_CODE_VA. Value: their address. */
uint64_t fixture_code(struct cu_fixture *f, const uint32_t *code, size_t count);
uint64_t fixture_kernel(struct cu_fixture *f, const char *name);
/** Zeroed device memory. */
uint64_t fixture_alloc(struct cu_fixture *f, uint64_t size_B);
void *fixture_host(struct cu_fixture *f, uint64_t va);
void fixture_reset_data(struct cu_fixture *f);
struct outcome fixture_run(struct cu_fixture *f, const struct launch *l);
/** One-dimensional run that must end well. Value: cycles. */
uint64_t fixture_run_ok(struct cu_fixture *f, uint64_t entry, uint32_t grid, uint32_t block, uint32_t local_B, uint64_t args);

#endif
