/* SPDX-License-Identifier: MIT */
/* random_flow.c - see random_flow.h. */
#include <assert.h>
#include <string.h>

#include "cu_asm.h"
#include "random_flow.h"

enum { RA = 1, SP = 2, WORK = 8, WORKS = 8, T0 = 16, T1, COUNTER, DEPTH = 22, FUEL = 24, ROUNDS, VOTES, VOTE, BLOCK = 31, A0 = 10 };
enum { FLOATS = 8, FLOAT_COUNT = 4, NEST_MAX = 3, LABELS_MAX = 512, FIXUPS_MAX = 1024, FRAME_B = 48, CSR_LANE = 0xccc };

/* A place that code before it may jump to. */
struct fixup { uint32_t at, label; };

struct function {
    struct rng *r;
    struct code *c;
    const uint64_t *later;       /* addresses of the functions that it may call */
    uint32_t later_count;
    uint64_t start;
    bool recursed, indirect, votes;
    uint64_t never;              /* a function that does not come back */
    uint32_t label_at[LABELS_MAX], label_count;
    struct fixup fixups[FIXUPS_MAX];
    uint32_t fixup_count;
    uint32_t ends[NEST_MAX + 2], nest;   /* labels behind the constructs around this place; the first is the function's return */
};

/* ---- Labels ---- */

static uint32_t label_new(struct function *f)
{
    assert(f->label_count < LABELS_MAX);
    return f->label_count++;
}

static void label_here(struct function *f, uint32_t label) { f->label_at[label] = f->c->size_B; }

/* A branch or jal to a label, which may not have its place yet. */
static void jump_to(struct function *f, uint32_t insn, uint32_t label)
{
    assert(f->fixup_count < FIXUPS_MAX);
    f->fixups[f->fixup_count++] = (struct fixup){ f->c->size_B, label };
    code_put32(f->c, insn);
}

static void resolve(struct function *f)
{
    for (uint32_t i = 0; i < f->fixup_count; i++) {
        uint8_t *at = f->c->bytes + f->fixups[i].at;
        const int by = (int)f->label_at[f->fixups[i].label] - (int)f->fixups[i].at;
        uint32_t insn;

        memcpy(&insn, at, 4);
        assert(by >= -4096 && by < 4096);
        insn |= (insn & 0x7f) == 0x6f ? j_type(0, 0, by) : b_type(0, 0, 0, by);
        memcpy(at, &insn, 4);
    }
}

/* ---- Pieces ---- */

static void put(struct function *f, uint32_t insn) { code_put32(f->c, insn); }
static unsigned any_work(struct function *f) { return WORK + rng_below(f->r, WORKS); }

static void put_operation(struct function *f)
{
    static const enum cu_op ops[] = { CU_OP_add, CU_OP_sub, CU_OP_xor, CU_OP_mul, CU_OP_sltu, CU_OP_or, CU_OP_srl, CU_OP_addw, CU_OP_remu };
    const enum cu_op op = ops[rng_below(f->r, sizeof(ops) / sizeof(ops[0]))];

    put(f, r_type(cu_insns[op].match, any_work(f), any_work(f), any_work(f)));
}

static void put_float(struct function *f)
{
    const uint32_t match = rng_below(f->r, 2) ? MATCH(fadd_s) : MATCH(fmul_s);

    put(f, r_type(match, FLOATS + rng_below(f->r, FLOAT_COUNT), FLOATS + rng_below(f->r, FLOAT_COUNT), FLOATS + rng_below(f->r, FLOAT_COUNT)));
    if (!rng_below(f->r, 3))
        put(f, r_type(MATCH(fle_s), any_work(f), FLOATS + rng_below(f->r, FLOAT_COUNT), FLOATS + rng_below(f->r, FLOAT_COUNT)));
}

/* T0 = an address of the window that depends on a register. */
static void put_window_address(struct function *f)
{
    put(f, i_type(MATCH(andi), T0, any_work(f), 0x1f8));
    put(f, r_type(MATCH(add), T0, T0, BLOCK));
}

static void put_memory(struct function *f)
{
    put_window_address(f);
    if (rng_below(f->r, 2))
        put(f, i_type(MATCH(ld), any_work(f), T0, BLOCK_WINDOW));
    else
        put(f, s_type(MATCH(sd), T0, any_work(f), BLOCK_WINDOW));
}

/* Jumps to the label where a condition on this lane's data holds. */
static void put_branch(struct function *f, uint32_t label)
{
    static const enum cu_op ops[] = { CU_OP_blt, CU_OP_bge, CU_OP_bltu, CU_OP_bgeu };

    if (rng_below(f->r, 2)) {
        put(f, i_type(MATCH(andi), T0, any_work(f), 1 << rng_below(f->r, 4)));
        jump_to(f, b_type(rng_below(f->r, 2) ? MATCH(beq) : MATCH(bne), T0, 0, 0), label);
    } else {
        jump_to(f, b_type(cu_insns[ops[rng_below(f->r, 4)]].match, any_work(f), any_work(f), 0), label);
    }
}

static void statements(struct function *f, uint32_t count);

static void put_if(struct function *f, uint32_t end)
{
    const uint32_t otherwise = label_new(f), then = label_new(f);
    const bool has_else = rng_below(f->r, 2);

    for (uint32_t n = f->votes ? 0 : rng_below(f->r, 3); n; n--) /* a && b || c, in pieces */
        put_branch(f, rng_below(f->r, 2) ? then : otherwise);
    put_branch(f, otherwise);
    label_here(f, then);
    statements(f, 1 + rng_below(f->r, 2));
    if (has_else)
        jump_to(f, MATCH(jal), end);
    label_here(f, otherwise);
    if (has_else)
        statements(f, 1 + rng_below(f->r, 2));
}

/* At most four rounds, one drop of fuel each. */
static void put_loop(struct function *f, uint32_t end)
{
    const uint32_t head = label_new(f), counter = COUNTER + f->nest;

    put(f, i_type(MATCH(andi), counter, any_work(f), 3));
    label_here(f, head);
    put(f, i_type(MATCH(addi), FUEL, FUEL, -1));
    jump_to(f, b_type(MATCH(bge), 0, FUEL, 0), end);
    statements(f, 1 + rng_below(f->r, 3));
    if (!rng_below(f->r, 3))
        put_branch(f, end);                                           /* break */
    put(f, i_type(MATCH(addi), counter, counter, -1));
    if (!f->votes && !rng_below(f->r, 3)) {
        jump_to(f, b_type(MATCH(blt), counter, 0, 0), end);
        put_branch(f, head);                                          /* continue */
        put_operation(f);
    }
    jump_to(f, b_type(MATCH(bge), counter, 0, 0), head);
}

/* Four cases, with or without a break; by comparisons, or by a jump into a table of jumps. */
static void put_switch(struct function *f, uint32_t end)
{
    uint32_t cases[4];

    for (uint32_t i = 0; i < 4; i++)
        cases[i] = label_new(f);
    put(f, i_type(MATCH(andi), T0, any_work(f), 3));
    if (!f->votes && !rng_below(f->r, 8)) {
        f->indirect = true;
        put(f, i_type(MATCH(slli), T0, T0, 2));
        put(f, MATCH(auipc) | T1 << 7);
        put(f, r_type(MATCH(add), T1, T1, T0));
        put(f, i_type(MATCH(jalr), 0, T1, 12));
        for (uint32_t i = 0; i < 4; i++)
            jump_to(f, MATCH(jal), cases[i]);
    } else {
        for (uint32_t i = 0; i < 3; i++) {
            put(f, i_type(MATCH(addi), T1, 0, (int)i));
            jump_to(f, b_type(MATCH(beq), T0, T1, 0), cases[i]);
        }
        jump_to(f, MATCH(jal), cases[3]);
    }
    for (uint32_t i = 0; i < 4; i++) {
        label_here(f, cases[i]);
        statements(f, 1);
        if (f->votes || rng_below(f->r, 3))
            jump_to(f, MATCH(jal), end);
    }
}

/* The function itself once in a while, as deep as the lane's depth goes; else a later one, or one of two by the lane's data. */
static void put_call(struct function *f, uint32_t end)
{
    if (!f->recursed && !rng_below(f->r, 3)) {
        f->recursed = true;
        jump_to(f, b_type(MATCH(bge), 0, DEPTH, 0), end);
        put(f, i_type(MATCH(addi), DEPTH, DEPTH, -1));
        code_jal(f->c, RA, f->start);
        put(f, i_type(MATCH(addi), DEPTH, DEPTH, 1));
    } else if (f->later_count && rng_below(f->r, 2)) {
        code_jal(f->c, RA, f->later[rng_below(f->r, f->later_count)]);
    } else if (f->later_count) {
        const uint32_t call = label_new(f);

        for (int i = 0; i < 2; i++) {
            const int64_t by = (int64_t)(f->later[rng_below(f->r, f->later_count)] - (f->c->va + f->c->size_B));

            put(f, MATCH(auipc) | T1 << 7 | (uint32_t)((by + 0x800) & 0xfffff000));
            put(f, i_type(MATCH(addi), T1, T1, (int)(by & 0xfff)));
            if (i == 0)
                put_branch(f, call);
        }
        label_here(f, call);
        put(f, i_type(MATCH(jalr), RA, T1, 0));
    }
}

/* A way that nobody takes, and that does not end in the function's return. */
static void put_never(struct function *f)
{
    static const uint32_t unimp = 0xc0001073;

    put(f, b_type(MATCH(bne), BLOCK, 0, 8));
    if (rng_below(f->r, 2))
        put(f, rng_below(f->r, 2) ? unimp : MATCH(ebreak));
    else
        code_jal(f->c, RA, f->never);
}

/* A ballot, or rounds that take long, in which lanes may seem to wait for others. */
static void put_vote(struct function *f)
{
    if (rng_below(f->r, 3)) {
        put(f, i_type(MATCH(addi), VOTE, 0, 1));
        put(f, r_type(MATCH(p_ballot), VOTE, VOTE, 0));
        put(f, r_type(MATCH(add), VOTES, VOTES, VOTE));
        put(f, i_type(MATCH(slli), VOTE, VOTES, 7));
        put(f, r_type(MATCH(add), VOTES, VOTES, VOTE));
        return;
    }
    const bool fence = rng_below(f->r, 2);

    put(f, i_type(MATCH(ld), ROUNDS, BLOCK, BLOCK_LONG));
    put(f, i_type(MATCH(addi), ROUNDS, ROUNDS, -1));
    if (fence)
        put(f, 0x0330000f);
    put(f, b_type(MATCH(blt), 0, ROUNDS, fence ? -8 : -4));
}

static void statement(struct function *f)
{
    static void (*const constructs[])(struct function *, uint32_t) = { put_if, put_if, put_loop, put_loop, put_switch, put_call };
    const uint32_t kind = rng_below(f->r, 12);

    if (kind < 3 || f->nest >= NEST_MAX) {
        put_operation(f);
    } else if (kind == 3) {
        put_float(f);
    } else if (kind == 4) {
        put_memory(f);
    } else if (kind == 5 && !rng_below(f->r, 3)) {
        put_never(f);
    } else if (kind == 5 && f->votes) {
        put_vote(f);
    } else if (kind == 5) {
        put_branch(f, f->ends[rng_below(f->r, f->nest + 1)]); /* out of some of what is around, or of all */
    } else {
        const uint32_t end = label_new(f);

        f->ends[++f->nest] = end;
        constructs[kind - 6](f, end);
        f->nest--;
        label_here(f, end);
    }
}

static void statements(struct function *f, uint32_t count)
{
    while (count--)
        statement(f);
}

/* ---- Functions ---- */

static uint64_t put_function(struct function *f)
{
    f->start = f->c->va + f->c->size_B;
    f->ends[0] = label_new(f);
    put(f, i_type(MATCH(addi), SP, SP, -FRAME_B));
    put(f, s_type(MATCH(sd), SP, RA, 0));
    for (int i = 0; i <= NEST_MAX; i++)
        put(f, s_type(MATCH(sd), SP, COUNTER + (unsigned)i, 8 + 8 * i));
    put(f, i_type(MATCH(addi), FUEL, FUEL, -1));
    jump_to(f, b_type(MATCH(bge), 0, FUEL, 0), f->ends[0]);
    statements(f, 2 + rng_below(f->r, 4));
    label_here(f, f->ends[0]);
    put(f, i_type(MATCH(ld), RA, SP, 0));
    for (int i = 0; i <= NEST_MAX; i++)
        put(f, i_type(MATCH(ld), COUNTER + (unsigned)i, SP, 8 + 8 * i));
    put(f, i_type(MATCH(addi), SP, SP, FRAME_B));
    put(f, i_type(MATCH(jalr), 0, RA, 0));
    resolve(f);
    return f->start;
}

static void put_entry(struct code *c, uint64_t first)
{
    code_put32(c, i_type(MATCH(csrrs), T0, 0, CSR_LANE));
    code_put32(c, i_type(MATCH(slli), T0, T0, 11));
    static_assert(BLOCK_B == 1 << 11, "the shift above");
    code_put32(c, r_type(MATCH(add), BLOCK, A0, T0));
    code_put32(c, s_type(MATCH(sd), BLOCK, SP, BLOCK_X));
    code_put32(c, i_type(MATCH(addi), SP, SP, -16));
    code_put32(c, s_type(MATCH(sd), SP, RA, 0));
    for (unsigned i = 0; i < WORKS; i++)
        code_put32(c, i_type(MATCH(ld), WORK + i, BLOCK, (int)(BLOCK_X + 8 * (i + 1))));
    for (unsigned i = 0; i < FLOAT_COUNT; i++)
        code_put32(c, i_type(MATCH(flw), FLOATS + i, BLOCK, (int)(BLOCK_F + 8 * i)));
    code_put32(c, i_type(MATCH(addi), VOTES, 0, 0));
    code_put32(c, i_type(MATCH(andi), DEPTH, WORK, 7));
    code_put32(c, i_type(MATCH(andi), FUEL, WORK + 1, 127));
    code_put32(c, i_type(MATCH(addi), FUEL, FUEL, 20));
    code_jal(c, RA, first);
    for (unsigned i = 0; i < WORKS; i++)
        code_put32(c, s_type(MATCH(sd), BLOCK, WORK + i, (int)(BLOCK_X_OUT + 8 * i)));
    for (unsigned i = 0; i < FLOAT_COUNT; i++)
        code_put32(c, s_type(MATCH(fsd), BLOCK, FLOATS + i, (int)(BLOCK_F_OUT + 8 * i)));
    code_put32(c, s_type(MATCH(sd), BLOCK, DEPTH, BLOCK_X_OUT + 8 * WORKS));
    code_put32(c, s_type(MATCH(sd), BLOCK, FUEL, BLOCK_X_OUT + 8 * WORKS + 8));
    code_put32(c, s_type(MATCH(sd), BLOCK, VOTES, BLOCK_VOTES));
    code_put32(c, i_type(MATCH(ld), RA, SP, 0));
    code_put32(c, i_type(MATCH(addi), SP, SP, 16));
    code_put32(c, i_type(MATCH(ld), T0, BLOCK, BLOCK_X));
    code_put32(c, r_type(MATCH(sub), T0, SP, T0));
    code_put32(c, s_type(MATCH(sd), BLOCK, T0, BLOCK_X_OUT + 8 * WORKS + 16));
    code_put32(c, i_type(MATCH(addi), T0, 0, 1));
    code_put32(c, r_type(MATCH(p_ballot), T0, T0, 0));
    code_put32(c, s_type(MATCH(sd), BLOCK, T0, BLOCK_RETURN));
    code_put32(c, i_type(MATCH(jalr), 0, RA, 0));
}

struct flow_program flow_make(struct rng *r, struct code *c)
{
    static struct function f;
    struct flow_program p = { .votes = !rng_below(r, 3) };
    uint64_t at[FLOW_FUNCTIONS];
    const uint64_t never = c->va + c->size_B;

    code_put32(c, MATCH(p_trap));
    code_jal(c, 0, never);

    for (uint32_t n = 0; n < FLOW_FUNCTIONS; n++) { /* callees first: calls know where to */
        f = (struct function){ .r = r, .c = c, .later = at, .later_count = n, .votes = p.votes, .never = never };
        at[n] = put_function(&f);
        p.indirect_jumps |= f.indirect;
    }
    p.entry = c->va + c->size_B;
    put_entry(c, at[FLOW_FUNCTIONS - 1]);
    return p;
}
