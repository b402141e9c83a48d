/* SPDX-License-Identifier: MIT */
/* sim.h - compute units without a driver: memory, an ELF program in it, launches, and how they ended. */
#ifndef TOOL_SIM_H
#define TOOL_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hw/petrel_packets.h>

#include "cu/cu.h"

/*
 * Ownership: a sim owns its memory and its array of units. One thread at a time may use it. Functions that can fail return false
 * and fill *error_out, which the caller prints as it likes; nothing is printed here.
 */
struct sim;

struct sim_error {
    int status;             /**< exit status of a tool: enum in umd-tool.h */
    char text[400];         /**< one line: what is wrong and what to do */
};

struct sim_config {
    uint32_t lanes;         /**< work-items of a workgroup at most, 1..SIM_LANES_MAX */
    bool images;            /**< each of them has its own copy of all memory */
    bool bare;              /**< the program believes to have a machine: see docs/isa.md */
    bool functional;        /**< no timing */
    bool portable;          /**< handlers that need nothing of the host's vector unit */
    uint32_t threads;       /**< host threads that units are spread over; 0: the profile's */
    uint32_t units;         /**< compute units; 0: the profile's */
    uint64_t private_B;     /**< private memory of a lane, a power of two; 0: none */
    uint64_t free_B;        /**< memory that may be filled; 0: what the host says is free */
    const char *profile;    /**< of the device: a path; NULL: its own */
    void (*on_exit)(void *observer, uint64_t item, uint64_t a0); /**< as in hw_cu_config */
    void (*on_trace)(void *observer, const struct hw_cu_trace *t);
    void *observer;
};
#define SIM_LANES_MAX 1024u
/** Addresses of programs end here; the device's own apertures lie above. */
#define SIM_VA_END 0x700000000000ull
#define SIM_STACK_B (8ull << 20)

bool sim_create(const struct sim_config *config, struct sim **sim_out, struct sim_error *error_out);
void sim_destroy(struct sim *s); /**< takes NULL */

/** Zeroed memory, readable, writable and executable. va and size_B are multiples of 4 KiB. */
bool sim_map(struct sim *s, uint64_t va, uint64_t size_B, struct sim_error *error_out);
/** Writes into mapped memory, into each copy of it. Before the first launch. */
bool sim_fill(struct sim *s, uint64_t va, const void *bytes, uint64_t size_B, struct sim_error *error_out);
/** Memory that may be filled: config.free_B, or what the host can give without swapping. */
uint64_t sim_free_B(const struct sim *s);
/** Host address of [va, va + size_B) in the copy of work-item `item` (0 where all share one); NULL: not all of it is mapped. */
void *sim_host(struct sim *s, uint32_t item, uint64_t va, uint64_t size_B);
/** How many copies of memory there are. */
uint32_t sim_copies(const struct sim *s);

/** What an ELF file became. */
struct sim_program {
    uint64_t entry, stack_va;       /**< stack_va: 16-aligned, zeros above it */
    uint64_t code_va, code_B;       /**< code around the entry, to be decoded as one */
};
/**
 * Maps and fills the segments of a statically linked RV64 file at the addresses that it says, at least ram_B of memory from the first
 * on, and a stack above. Relative relocations are applied as for base 0; the file's convergence notes are used.
 */
bool sim_load(struct sim *s, const uint8_t *image, size_t size_B, uint64_t ram_B, struct sim_program *program_out, struct sim_error *error_out);

enum sim_state { SIM_RUNNING, SIM_DONE, SIM_FAULT };
/** Begins a launch. False: *fault_out says why the units refuse it. */
bool sim_start(struct sim *s, const struct petrel_dispatch *d, struct hw_cu_fault *fault_out);
/** Runs at most `cycles` more. */
enum sim_state sim_run(struct sim *s, uint64_t cycles, struct hw_cu_fault *fault_out);
void sim_stop(struct sim *s);
void sim_counters(const struct sim *s, struct hw_cu_counters *counters_out);
/** Images: work-item 0 of launches from now on has that of `item`, code comes out of it, too. Those before are as filled again, but item 0's. */
void sim_set_first(struct sim *s, uint32_t item);
/** sp of launches from now on; 0: the top of a lane's private memory. */
void sim_set_stack(struct sim *s, uint64_t stack_va);

/** Notes about where lanes meet (petrel_codeobj.h) of launches from now on, in mapped memory; sim_load calls it. */
void sim_set_notes(struct sim *s, uint64_t va, uint64_t size_B);

/** Text of an instruction at pc, of 16 bits where bits 1:0 are not 3. */
void sim_disasm(uint32_t bits, uint64_t pc, char *out, size_t out_B);
/** ABI name of a register, by the number that hw_cu_trace has. */
const char *sim_register(unsigned number);

/** Fills *error_out. Value: false. */
bool sim_fail(struct sim_error *error_out, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* ---- Names: symbols.c ---- */

struct sim_symbols;
struct sim_location {
    char function[160];     /**< "": none covers it */
    uint64_t offset;        /**< from its start */
    char file[256];         /**< "": no line is known */
    int line;
};
/** The image must outlive it. NULL: no names can be had of it (they are then just missing; all takes NULL). */
struct sim_symbols *sim_symbols_open(const uint8_t *image, size_t size_B);
void sim_symbols_close(struct sim_symbols *y);
void sim_locate(struct sim_symbols *y, uint64_t pc, struct sim_location *out);
bool sim_symbol(struct sim_symbols *y, const char *name, uint64_t *va_out);

#endif
