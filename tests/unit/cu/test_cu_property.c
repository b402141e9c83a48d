/* SPDX-License-Identifier: MIT */
/* test_cu_property.c - random programs on a warp of many lanes, and each lane's alone: the same registers and memory, lanes together at the end, at a bounded cost. */
/* PETREL_SEED=N replays another run, PETREL_PROGRAMS=N makes it longer. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <elf.h>
#include <hw/petrel_codeobj.h>

#include "cu_fixture.h"
#include "random_flow.h"

enum { IMPATIENT = 500 }; /* instructions after which a path that gets on is taken for one that waits */
enum { LANES = 32, PROGRAMS = 120, CODE_MAX_B = 1 << 17 };
#define NOTE_VA (FLAT_DATA_VA + (1 << 20))

static const struct { const char *name; bool base, functional; uint64_t slice; } ways[] = {
    { "best handlers, timed", false, false, 0 },
    { "best handlers, functional", false, true, 0 },
    { "portable handlers, timed, in slices", true, false, 777 },
};
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

static struct cu_fixture fixtures[WAYS];
static uint8_t blocks[LANES][BLOCK_B], alone[LANES][BLOCK_B], together[LANES][BLOCK_B];
static struct code code = { .va = FLAT_CODE_VA, .room_B = CODE_MAX_B };

/* What runs, for messages. */
static struct now { uint64_t seed; const char *way; } now;
#define FAIL(fmt_, ...) fail_msg("PETREL_SEED=%" PRIu64 " PETREL_PROGRAMS=1, %s: " fmt_, now.seed, now.way, __VA_ARGS__)

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

/* Runs lanes first..first + count - 1 in one warp. Value: the warp instructions that it took. */
static uint64_t run(struct cu_fixture *f, const struct flow_program *p, uint32_t first, uint32_t count, uint64_t slice)
{
    struct launch l = { .entry = p->entry, .grid = { 1, 1, 1 }, .block = { count, 1, 1 }, .args = FLAT_DATA_VA + first * BLOCK_B, .slice = slice };
    struct hw_cu_counters before, after;

    hw_cu_get_counters(f->cus, &before);
    struct outcome o = fixture_run(f, &l);
    hw_cu_get_counters(f->cus, &after);
    if (!o.started || o.state != HW_CU_DONE)
        FAIL("lanes %u to %u: state %d fault %u at pc 0x%" PRIx64 " address 0x%" PRIx64, first, first + count - 1, o.state, o.fault.fault, o.fault.pc,
                 o.fault.va);
    return after.warp_instr - before.warp_instr;
}

static void load(struct cu_fixture *f)
{
    (void)fixture_code(f, (const uint32_t *)(const void *)code.bytes, code.size_B / 4);
    memcpy(fixture_host(f, FLAT_DATA_VA), blocks, sizeof(blocks));
}

static uint64_t word(const uint8_t *block, uint32_t at)
{
    uint64_t v;

    memcpy(&v, block + at, 8);
    return v;
}

/* Of the lanes from `first` on, with what the ballot at the end must be where all are to meet; BLOCK_X holds the lane's stack pointer. */
static void compare(uint32_t first, uint32_t count, bool meet)
{
    const uint64_t all = (1ull << count) - 1;

    for (uint32_t lane = first; lane < first + count; lane++) {
        for (uint32_t at = BLOCK_X + 8; at < BLOCK_B; at += 8) {
            if (at != BLOCK_RETURN && at != BLOCK_VOTES && word(together[lane], at) != word(alone[lane], at))
                FAIL("lane %u: 0x%" PRIx64 " at %u of its block, 0x%" PRIx64 " where it runs alone", lane, word(together[lane], at), at,
                         word(alone[lane], at));
        }
        if (meet && word(together[lane], BLOCK_RETURN) != all)
            FAIL("lane %u is together with 0x%" PRIx64 " at the end", lane, word(together[lane], BLOCK_RETURN));
    }
}

struct cost { uint64_t warp, longest, sum; };

/* Some lanes take long in loops that do nothing: that changes nothing, and least of all who votes with whom. */
static void check_votes(struct cu_fixture *f, const struct flow_program *p, uint64_t slice, uint32_t first, uint32_t count)
{
    struct rng r = { .s = now.seed * 0x9e3779b97f4a7c15ull + 7 };
    const uint64_t rounds = 200 << 5 * rng_below(&r, 2);

    memcpy(fixture_host(f, FLAT_DATA_VA), blocks, sizeof(blocks));
    for (uint32_t n = 1 + rng_below(&r, 3); n; n--) {
        const uint32_t lane = first + rng_below(&r, count);
        memcpy((uint8_t *)fixture_host(f, FLAT_DATA_VA) + lane * BLOCK_B + BLOCK_LONG, &rounds, sizeof(rounds));
    }
    (void)run(f, p, first, count, slice);
    for (uint32_t lane = first; lane < first + count; lane++) {
        const uint8_t *block = (uint8_t *)fixture_host(f, FLAT_DATA_VA) + lane * BLOCK_B;
        for (uint32_t at = BLOCK_X + 8; at < BLOCK_B; at += 8)
            if (at != BLOCK_LONG && word(block, at) != word(together[lane], at))
                FAIL("lane %u: 0x%" PRIx64 " at %u of its block, 0x%" PRIx64 " where nobody takes long", lane, word(block, at), at, word(together[lane], at));
    }
}

static struct cost check(struct cu_fixture *f, const struct flow_program *p, uint64_t slice, uint32_t first, uint32_t count)
{
    struct cost c = { 0 };

    load(f);
    for (uint32_t lane = first; lane < first + count; lane++) {
        const uint64_t n = run(f, p, lane, 1, slice);
        c.sum += n;
        c.longest = n > c.longest ? n : c.longest;
    }
    memcpy(alone, fixture_host(f, FLAT_DATA_VA), sizeof(alone));
    memcpy(fixture_host(f, FLAT_DATA_VA), blocks, sizeof(blocks));
    c.warp = run(f, p, first, count, slice);
    memcpy(together, fixture_host(f, FLAT_DATA_VA), sizeof(together));
    compare(first, count, !p->indirect_jumps);
    if (c.warp < c.longest || c.warp > c.sum)
        FAIL("%" PRIu64 " warp instructions: the longest lane takes %" PRIu64 ", all of them %" PRIu64, c.warp, c.longest, c.sum);
    if (p->votes)
        check_votes(f, p, slice, first, count);
    return c;
}

static void as_each_lane_alone(void **state)
{
    const uint64_t first = number_from("PETREL_SEED", 1), programs = number_from("PETREL_PROGRAMS", PROGRAMS);
    uint64_t divergent = 0, indirect = 0, votes = 0;
    double warp = 0, longest = 0, sum = 0;

    (void)state;
    print_message("PETREL_SEED=%" PRIu64 " PETREL_PROGRAMS=%" PRIu64 "\n", first, programs);
    for (uint64_t seed = first; seed < first + programs; seed++) {
        struct rng r = { .s = seed * 0x9e3779b97f4a7c15ull + 1 };
        struct flow_program p;
        struct cost c = { 0 };

        code.size_B = 0;
        p = flow_make(&r, &code);
        for (uint32_t lane = 0; lane < LANES; lane++) {
            block_make(&r, blocks[lane]);
            memset(blocks[lane] + BLOCK_LONG, 0, 8);
        }
        if (fixture_age_instr && p.votes) /* lanes that get on are torn apart: most vote as ever, but not all */
            continue;
        const uint32_t count = rng_below(&r, 4) ? LANES : 1 + rng_below(&r, LANES);
        for (uint32_t w = 0; w < WAYS; w++) {
            now = (struct now){ seed, ways[w].name };
            c = check(&fixtures[w], &p, ways[w].slice, LANES - count, count);
        }
        divergent += c.warp > c.longest;
        warp += (double)c.warp;
        longest += (double)c.longest;
        sum += (double)c.sum;
        indirect += p.indirect_jumps;
        votes += p.votes;
    }
    print_message("%" PRIu64 " programs, %" PRIu64 " divergent, %" PRIu64 " with indirect jumps, %" PRIu64 " with votes; a warp takes %.2f times its longest lane, %.2f of all its lanes\n",
                  programs, divergent, indirect, votes, warp / longest, warp / sum);
    assert_true(divergent > programs / 5); /* else these are not the programs that this is about */
    assert_true((indirect > 0 && (votes > 0 || fixture_age_instr)) || programs < 20);
}

/* Random places, in the code and a little beyond; half of them are said of what a branch may be. */
static void put_notes(struct rng *r, struct cu_fixture *f)
{
    enum { PAIRS = 400 };
    struct { Elf64_Nhdr head; char name[8]; struct petrel_meet pairs[PAIRS]; } *n = fixture_host(f, NOTE_VA);
    const struct petrel_code told = { .notes_va = NOTE_VA, .notes_B = sizeof(*n) };
    const int64_t first = NOTE_VA + offsetof(typeof(*n), pairs);

    n->head = (Elf64_Nhdr){ .n_namesz = sizeof(PETREL_NOTE_NAME), .n_descsz = sizeof(n->pairs), .n_type = PETREL_NOTE_CONVERGE };
    memcpy(n->name, PETREL_NOTE_NAME, sizeof(PETREL_NOTE_NAME));
    for (int64_t i = 0; i < PAIRS; i++) {
        const int64_t branch = (int64_t)code.va + 2 * (int64_t)rng_below(r, (uint32_t)code.size_B / 2 + 16);
        const int64_t meet = (int64_t)code.va + 2 * (int64_t)rng_below(r, (uint32_t)code.size_B / 2 + 16);

        n->pairs[i] = (struct petrel_meet){ (int32_t)(branch - first - 8 * i), (int32_t)(meet - first - 8 * i - 4) };
        if (!rng_below(r, 4))
            n->pairs[i].meet = (int32_t)rng_below(r, 2);
    }
    hw_cu_set_code(f->cus, &told);
}

/* Notes change which lanes are together, and nothing else. */
static void with_notes_that_lie(void **state)
{
    const uint64_t first = number_from("PETREL_SEED", 1), programs = number_from("PETREL_PROGRAMS", PROGRAMS);
    uint64_t changed = 0;

    (void)state;
    for (uint64_t seed = first; seed < first + programs; seed++) {
        struct rng r = { .s = seed * 0x9e3779b97f4a7c15ull + 3 };
        struct flow_program p;
        uint64_t instructions[WAYS][2];

        code.size_B = 0;
        p = flow_make(&r, &code);
        if (p.votes) /* who votes with whom is what notes change */
            continue;
        p.indirect_jumps = true; /* lanes need not be together at the end */
        for (uint32_t lane = 0; lane < LANES; lane++) {
            block_make(&r, blocks[lane]);
            memset(blocks[lane] + BLOCK_LONG, 0, 8);
        }
        for (uint32_t w = 0; w < WAYS; w++) {
            now = (struct now){ seed, ways[w].name };
            hw_cu_set_code(fixtures[w].cus, &(struct petrel_code){ 0 });
            instructions[w][0] = check(&fixtures[w], &p, ways[w].slice, 0, LANES).warp;
            put_notes(&r, &fixtures[w]);
            instructions[w][1] = check(&fixtures[w], &p, ways[w].slice, 0, LANES).warp;
            hw_cu_set_code(fixtures[w].cus, &(struct petrel_code){ 0 });
            changed += instructions[w][0] != instructions[w][1];
        }
    }
    print_message("%" PRIu64 " of %" PRIu64 " runs took another way by their notes\n", changed, programs * WAYS);
    assert_true(changed > programs * WAYS / 10 || programs < 20);
}

static int setup(void **state)
{
    (void)state;
    code.bytes = malloc(code.room_B);
    for (uint32_t w = 0; w < WAYS; w++)
        fixture_create(&fixtures[w], ways[w].base, ways[w].functional);
    return code.bytes ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    for (uint32_t w = 0; w < WAYS; w++)
        fixture_destroy(&fixtures[w]);
    free(code.bytes);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_each_lane_alone), cmocka_unit_test(with_notes_that_lie),
    };
    int failed = cmocka_run_group_tests_name("cu-property", tests, setup, teardown);

    fixture_age_instr = IMPATIENT;
    return failed + cmocka_run_group_tests_name("cu-property, impatient", tests, setup, teardown);
}
