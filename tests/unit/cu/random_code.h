/* SPDX-License-Identifier: MIT */
/* random_code.h - random instruction sequences over the instruction table, for comparison with another machine. */
#ifndef TEST_RANDOM_CODE_H
#define TEST_RANDOM_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A body is called with a0 at a block of memory and returns: it loads all registers from the block, runs a sequence, and stores all
 * registers there. x31 holds the block's address and is no destination; loads, stores and atomics stay in the block's window.
 */
#define BLOCK_B 2048u
enum { BLOCK_X = 0, BLOCK_F = 256, BLOCK_X_OUT = 512, BLOCK_F_OUT = 768, BLOCK_FCSR = 1024, BLOCK_RETURN = 1032, BLOCK_WINDOW = 1040 };

#define ATOMS_MAX 60u
/** One step of a sequence: an instruction, and what it needs before it. Jumps lead to atoms further on. */
struct atom {
    uint16_t half[8];
    uint32_t size_B;
    uint32_t jump_at;        /**< byte offset of the jump in it */
    uint32_t jump;           /**< enum atom_jump */
    uint32_t over;           /**< atoms that a jump passes over */
};
enum atom_jump { JUMP_NONE, JUMP_BRANCH, JUMP_JAL, JUMP_JALR };

struct sequence {
    struct atom atoms[ATOMS_MAX];
    uint32_t count;
    uint32_t frm;            /**< rounding mode that it begins with */
};

struct rng { uint64_t s; };
uint64_t rng_next(struct rng *r);
static inline uint32_t rng_below(struct rng *r, uint32_t n) { return (uint32_t)(rng_next(r) >> 32) % n; }

void sequence_make(struct rng *r, struct sequence *s);
/** Registers and window of a block. */
void block_make(struct rng *r, uint8_t block[BLOCK_B]);

/** Code that grows. */
struct code { uint8_t *bytes; uint64_t va; uint32_t size_B, room_B; };
void code_put32(struct code *c, uint32_t insn);
void code_put16(struct code *c, uint16_t half);
/** Appends a body of the first `count` atoms. Value: its address. */
uint64_t code_body(struct code *c, const struct sequence *s, uint32_t count);
/** rd = a 31-bit constant. */
void code_constant(struct code *c, unsigned rd, uint32_t v);
void code_jal(struct code *c, unsigned rd, uint64_t to);
/** Prints the instructions of an atom. */
void atom_print(const struct atom *a);

#endif
