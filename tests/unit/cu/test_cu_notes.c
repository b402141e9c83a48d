/* SPDX-License-Identifier: MIT */
/* test_cu_notes.c - convergence notes: they go before the analysis, those that lie cost time and no result, and none does harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <elf.h>
#include <hw/petrel_codeobj.h>
#include <hw/petrel_csr.h>

#include "cu_asm.h"
#include "cu_fixture.h"
#include "cu_priv.h"

enum { ZERO, RA, T0 = 5, T1, T2, A0 = 10, A1, A2, T3 = 28 };
static struct cu_fixture *f = &fixture_ways[0]; /* the way of running */

/* ---- Notes that are put together here ---- */

struct note { Elf64_Nhdr head; char name[8]; struct petrel_meet pairs[]; };
static const Elf64_Nhdr good_head = { .n_namesz = sizeof(PETREL_NOTE_NAME), .n_descsz = sizeof(struct petrel_meet), .n_type = PETREL_NOTE_CONVERGE };
#define NOTE_VA (FLAT_DATA_VA + 65536)
#define NOTE_B(pairs_) (offsetof(struct note, pairs) + (pairs_) * sizeof(struct petrel_meet))
/* Places by number of an instruction; what is no place is what a note says without one. */
enum { TO_RETURN = -1, TO_NONE = -2 };

static struct petrel_meet pair(unsigned i, int branch, int meet)
{
    const int64_t at = (int64_t)NOTE_VA + (int64_t)NOTE_B(i);

    return (struct petrel_meet){
        .branch = (int32_t)((int64_t)FLAT_CODE_VA + 4 * branch - at),
        .meet = meet == TO_RETURN ? PETREL_MEET_RETURN : meet == TO_NONE ? PETREL_MEET_NONE : (int32_t)((int64_t)FLAT_CODE_VA + 4 * meet - at - 4),
    };
}

static void tell(uint64_t va, uint64_t size_B)
{
    const struct petrel_code c = { .notes_va = va, .notes_B = size_B };

    hw_cu_set_code(f->cus, &c);
    hw_cu_invalidate(f->cus);
}

static struct note *write_note(unsigned pairs)
{
    struct note *n = fixture_host(f, NOTE_VA);

    memset(n, 0, sizeof(*n));
    n->head = good_head;
    n->head.n_descsz = pairs * (unsigned)sizeof(struct petrel_meet);
    memcpy(n->name, PETREL_NOTE_NAME, sizeof(PETREL_NOTE_NAME));
    tell(NOTE_VA, NOTE_B(pairs));
    return n;
}

static uint32_t reconv_of(int instruction)
{
    return f->cus->code->uops[2 * instruction].reconv;
}

/* ---- An if with two sides ---- */

enum { D_BRANCH = 2, D_EVEN = 5, D_BOTH, D_BEHIND = 8, D_OTHER = 12 };

static uint64_t load_diamond(void)
{
    const uint32_t code[] = {
        i_type(MATCH(csrrs), T0, ZERO, PETREL_CSR_LANE),
        i_type(MATCH(andi), T1, T0, 1),
        b_type(MATCH(beq), T1, ZERO, 4 * (D_EVEN - D_BRANCH)),
        i_type(MATCH(addi), T2, T2, 1),
        j_type(MATCH(jal), ZERO, 4 * (D_BOTH - 4)),
        i_type(MATCH(addi), T2, T2, 2),
        i_type(MATCH(addi), A1, ZERO, 1),
        r_type(MATCH(p_ballot), A1, A1, ZERO),
        i_type(MATCH(slli), T0, T0, 3),
        r_type(MATCH(add), A0, A0, T0),
        s_type(MATCH(sd), A0, A1, 0),
        i_type(MATCH(jalr), ZERO, RA, 0),
        i_type(MATCH(addi), ZERO, ZERO, 0), /* of no function */
    };

    return fixture_code(f, code, sizeof(code) / sizeof(code[0]));
}

struct seen { uint64_t instructions, ballot; uint32_t reconv; };

/* Of even lanes, what they see of the others. */
static struct seen run_diamond(uint64_t entry)
{
    struct hw_cu_counters before, after;

    fixture_reset_data(f);
    const uint64_t args = fixture_alloc(f, 4096);
    hw_cu_get_counters(f->cus, &before);
    fixture_run_ok(f, entry, 1, 32, 0, args);
    hw_cu_get_counters(f->cus, &after);
    return (struct seen){ after.warp_instr - before.warp_instr, *(const uint64_t *)fixture_host(f, args), reconv_of(D_BRANCH) };
}

#define APART 0x55555555u
#define ALL 0xffffffffu
/* As the analysis has it: three instructions, three of the two sides, six together. */
static const struct seen by_analysis = { 12, ALL, 2 * D_BOTH };

static void check_seen(const struct seen *got, const struct seen *expected)
{
    assert_int_equal(got->instructions, expected->instructions);
    assert_int_equal(got->ballot, expected->ballot);
    assert_int_equal(got->reconv, expected->reconv);
}

static void a_note_goes_before_the_analysis(void **state)
{
    static const struct { int meet; struct seen seen; } cases[] = {
        { D_BOTH, { 12, ALL, 2 * D_BOTH } }, { D_BEHIND, { 14, APART, 2 * D_BEHIND } }, { TO_RETURN, { 18, APART, CU_RECONV_EXIT } },
        { TO_NONE, { 13, ALL, CU_RECONV_NONE } }, /* the ballot waits for those that part at no meeting point */
        { D_OTHER, { 12, ALL, 2 * D_BOTH } }, { 1 << 20, { 12, ALL, 2 * D_BOTH } }, /* in no function, beyond the code: as without */
    };

    (void)state;
    for (unsigned way = 0; way < FIXTURE_WAYS; way++) {
        f = &fixture_ways[way];
        const uint64_t entry = load_diamond();
        tell(0, 0);
        struct seen got = run_diamond(entry);
        check_seen(&got, &by_analysis);
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            write_note(1)->pairs[0] = pair(0, D_BRANCH, cases[i].meet);
            got = run_diamond(entry);
            check_seen(&got, &cases[i].seen);
        }
    }
    f = &fixture_ways[0];
}

/* Two that speak of one branch are both dropped; those around them count. Notes of others and of other types are passed over. */
static void which_pairs_count(void **state)
{
    const uint64_t entry = load_diamond();
    struct note *n = write_note(4);
    struct seen got;

    (void)state;
    n->pairs[0] = pair(0, D_BRANCH, D_BEHIND);
    n->pairs[1] = pair(1, 7, D_BEHIND);
    n->pairs[2] = pair(2, D_BRANCH, D_BEHIND);
    n->pairs[3] = pair(3, 1, D_BEHIND);
    got = run_diamond(entry);
    check_seen(&got, &by_analysis);
    assert_int_equal(f->cus->notes.pairs, 4);
    assert_int_equal(f->cus->notes.count, 2);
    assert_true(f->cus->notes.meets[0].branch < f->cus->notes.meets[1].branch);

    for (unsigned other = 0; other < 3; other++) { /* a first note that counts or not, then one that does */
        n = write_note(2);
        n->head.n_descsz = sizeof(struct petrel_meet);
        n->pairs[0] = pair(0, D_BRANCH, D_BEHIND);
        if (other == 1)
            n->head.n_type = 2;
        if (other == 2)
            n->name[0] = 'p';
        struct { Elf64_Nhdr head; char name[8]; struct petrel_meet pair; } second = { .head = n->head, .name = PETREL_NOTE_NAME };
        second.head.n_type = PETREL_NOTE_CONVERGE;
        const uint64_t at = NOTE_VA + NOTE_B(1) + NOTE_B(0);
        second.pair = (struct petrel_meet){ (int32_t)((int64_t)entry + 4 * D_BRANCH - (int64_t)at), PETREL_MEET_RETURN };
        memcpy((uint8_t *)n + NOTE_B(1), &second, NOTE_B(1));
        tell(NOTE_VA, 2 * NOTE_B(1));
        got = run_diamond(entry);
        assert_int_equal(f->cus->notes.pairs, other ? 1 : 2);
        assert_int_equal(got.reconv, other ? CU_RECONV_EXIT : 2 * D_BOTH);
    }
}

/* What was read is good until translations are forgotten, and for one place and length. */
static void notes_are_read_once(void **state)
{
    const uint64_t entry = load_diamond();
    struct note *n = write_note(1);
    struct petrel_code code = { .notes_va = NOTE_VA, .notes_B = NOTE_B(0) };

    (void)state;
    n->pairs[0] = pair(0, D_BRANCH, D_BEHIND);
    assert_int_equal(run_diamond(entry).reconv, 2 * D_BEHIND);
    n->pairs[0] = pair(0, D_BRANCH, TO_RETURN);
    const void *meets = f->cus->notes.meets;
    assert_int_equal(run_diamond(entry).reconv, 2 * D_BEHIND);
    assert_ptr_equal(f->cus->notes.meets, meets);
    hw_cu_invalidate(f->cus);
    assert_int_equal(run_diamond(entry).reconv, CU_RECONV_EXIT);
    hw_cu_set_code(f->cus, &code);
    (void)run_diamond(entry);
    assert_int_equal(f->cus->notes.count, 0);
    tell(0, 0);
    assert_int_equal(run_diamond(entry).reconv, 2 * D_BOTH);
}

static void notes_that_cannot_be_read(void **state)
{
    static const struct { uint64_t va, size_B, fault_va; } cases[] = {
        { 0x1000, 8, 0x1000 }, { FLAT_RO_VA + 4092, 8, FLAT_RO_VA + 4096 }, { FLAT_RO_VA, PETREL_NOTES_MAX_B, FLAT_RO_VA + 4096 },
        { PETREL_VA_USER_END - 4, 8, PETREL_VA_USER_END - 4 }, { PETREL_LOCAL_BASE, 8, PETREL_LOCAL_BASE }, { UINT64_MAX - 15, 8, UINT64_MAX - 15 },
    };
    const uint64_t entry = load_diamond();

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct launch l = { .entry = entry, .grid = { 1, 1, 1 }, .block = { 32, 1, 1 }, .args = FLAT_DATA_VA };

        tell(cases[i].va, cases[i].size_B);
        struct outcome o = fixture_run(f, &l);
        assert_false(o.started);
        assert_int_equal(o.fault.fault, PETREL_FAULT_PAGE);
        assert_int_equal(o.fault.va, cases[i].fault_va);
        assert_int_equal(o.fault.pc, entry);
        assert_int_equal(PETREL_FAULT_INFO_ACCESS(o.fault.info), PETREL_ACCESS_READ);
        write_note(1)->pairs[0] = pair(0, D_BRANCH, D_BEHIND);
        assert_int_equal(run_diamond(entry).reconv, 2 * D_BEHIND);
    }
}

/* ---- A loop, a call, and branches in both ---- */

enum { W_IF = 5, W_CALL, W_LOOP = 10, W_BARRIER = 15, W_FUNCTION = 17, W_INNER, W_COUNT = 22, ITEMS = 64 };
static const int branches[] = { W_IF, W_LOOP, W_INNER };

static uint64_t load_winding(bool barrier)
{
    const uint32_t code[W_COUNT] = {
        i_type(MATCH(addi), A2, RA, 0),
        i_type(MATCH(csrrs), T0, ZERO, PETREL_CSR_LOCAL_ID_X),
        i_type(MATCH(addi), T1, T0, 1),
        i_type(MATCH(addi), T2, ZERO, 0),
        i_type(MATCH(andi), T3, T0, 1),                     /* the loop's head */
        b_type(MATCH(beq), T3, ZERO, 4 * (8 - W_IF)),
        j_type(MATCH(jal), RA, 4 * (W_FUNCTION - W_CALL)),
        j_type(MATCH(jal), ZERO, 4 * (9 - 7)),
        i_type(MATCH(addi), T2, T2, 7),
        i_type(MATCH(addi), T1, T1, -1),
        b_type(MATCH(bne), T1, ZERO, 4 * (4 - W_LOOP)),
        i_type(MATCH(slli), T0, T0, 3),
        r_type(MATCH(add), A0, A0, T0),
        s_type(MATCH(sd), A0, T2, 0),
        i_type(MATCH(addi), RA, A2, 0),
        barrier ? MATCH(p_barrier) : MATCH(addi),
        i_type(MATCH(jalr), ZERO, RA, 0),
        i_type(MATCH(andi), T3, T1, 2),
        b_type(MATCH(bne), T3, ZERO, 8),
        i_type(MATCH(addi), T2, T2, 1),
        i_type(MATCH(addi), T2, T2, 1),
        i_type(MATCH(jalr), ZERO, RA, 0),
    };

    return fixture_code(f, code, W_COUNT);
}

/* Runs, and compares what each lane has. With a barrier, lanes that a note keeps from it may trap, and that is told. */
static void run_winding(uint64_t entry, bool barrier, const char *what, long detail)
{
    struct launch l = { .entry = entry, .grid = { 1, 1, 1 }, .block = { ITEMS, 1, 1 } };
    const uint64_t *out;

    fixture_reset_data(f);
    l.args = fixture_alloc(f, 8 * ITEMS);
    out = fixture_host(f, l.args);
    struct outcome o = fixture_run(f, &l);
    if (barrier && o.state == HW_CU_FAULTED && o.fault.fault == PETREL_FAULT_TRAP && o.fault.data == PETREL_TRAP_BARRIER)
        return;
    if (!o.started || o.state != HW_CU_DONE)
        fail_msg("%s %ld: state %d fault %u va 0x%llx", what, detail, o.state, o.fault.fault, (unsigned long long)o.fault.va);
    for (unsigned i = 0; i < ITEMS; i++) {
        uint64_t sum = 0;

        for (unsigned t = i + 1; t; t--)
            sum += !(i & 1) ? 7 : t & 2 ? 1 : 2;
        if (out[i] != sum)
            fail_msg("%s %ld: item %u has %llu and not %llu", what, detail, i, (unsigned long long)out[i], (unsigned long long)sum);
    }
}

/* Each branch with each place, whether the others come by or not, and all three of them at once. */
static void notes_that_lie(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 2 * FIXTURE_WAYS; way++) {
        const bool barrier = way >= FIXTURE_WAYS;

        f = &fixture_ways[way % FIXTURE_WAYS];
        const uint64_t entry = load_winding(barrier);
        for (unsigned b = 0; b < 3; b++) {
            for (int meet = TO_NONE; meet < W_COUNT; meet++) {
                write_note(1)->pairs[0] = pair(0, branches[b], meet);
                run_winding(entry, barrier, "place", meet);
            }
        }
        for (int first = TO_NONE; first < W_COUNT; first++) {
            struct note *n = write_note(3);

            for (unsigned b = 0; b < 3; b++)
                n->pairs[b] = pair(b, branches[b], (first - TO_NONE + 7 * (int)b) % (W_COUNT - TO_NONE) + TO_NONE);
            run_winding(entry, barrier, "places from", first);
        }
    }
    f = &fixture_ways[0];
}

static struct note *good_note(void)
{
    struct note *n = write_note(2);

    n->pairs[0] = pair(0, W_IF, 9);
    n->pairs[1] = pair(1, W_INNER, 20);
    return n;
}

static void notes_that_are_no_notes(void **state)
{
    static const uint32_t name_B[] = { 0, 1, 6, 8, 9, 24, 25, 0x7fffffff, 0xfffffff8, 0xfffffffc, 0xfffffffd, UINT32_MAX };
    static const uint32_t pairs_B[] = { 0, 1, 7, 9, 15, 17, 0x7fffffff, 0xfffffff0, 0xfffffff8, 0xfffffffc, UINT32_MAX };
    const uint64_t entry = load_winding(false);

    (void)state;
    good_note();
    run_winding(entry, false, "good", 0);
    assert_int_equal(f->cus->notes.count, 2);
    for (size_t bit = 0; bit < 8 * NOTE_B(2); bit++) {
        ((uint8_t *)good_note())[bit / 8] ^= (uint8_t)(1u << bit % 8);
        run_winding(entry, false, "bit", (long)bit);
    }
    for (size_t i = 0; i < sizeof(name_B) / sizeof(name_B[0]); i++) {
        good_note()->head.n_namesz = name_B[i];
        run_winding(entry, false, "bytes of name", name_B[i]);
        assert_int_equal(f->cus->notes.count, 0);
    }
    for (size_t i = 0; i < sizeof(pairs_B) / sizeof(pairs_B[0]); i++) {
        good_note()->head.n_descsz = pairs_B[i];
        run_winding(entry, false, "bytes of pairs", pairs_B[i]);
        assert_true(f->cus->notes.count == (pairs_B[i] < 2 * sizeof(struct petrel_meet) ? pairs_B[i] / sizeof(struct petrel_meet) : 0));
    }
    for (uint64_t size_B = 1; size_B < NOTE_B(2); size_B++) {
        good_note();
        tell(NOTE_VA, size_B);
        run_winding(entry, false, "cut at", (long)size_B);
        assert_int_equal(f->cus->notes.count, 0);
    }
    memset(fixture_host(f, NOTE_VA), 0, PETREL_NOTES_MAX_B); /* notes without anything, one behind the other */
    tell(NOTE_VA, PETREL_NOTES_MAX_B);
    run_winding(entry, false, "zeros", 0);
    memset(fixture_host(f, NOTE_VA), 0xff, PETREL_NOTES_MAX_B);
    run_winding(entry, false, "ones", 0);
    tell(NOTE_VA, PETREL_NOTES_MAX_B);
    run_winding(entry, false, "ones", 1);
}

/* As many as there may be, all of one place or each of another. */
static void as_many_as_there_may_be(void **state)
{
    enum { MANY = (PETREL_NOTES_MAX_B - offsetof(struct note, pairs)) / sizeof(struct petrel_meet) };
    const uint64_t entry = load_winding(false);

    (void)state;
    for (unsigned same = 0; same < 2; same++) {
        struct note *n = write_note(MANY);

        for (unsigned i = 0; i < MANY; i++)
            n->pairs[i] = pair(i, same ? W_IF : (int)(MANY - i) * 3, (int)i % W_COUNT);
        run_winding(entry, false, "many", same);
        assert_int_equal(f->cus->notes.pairs, MANY);
        assert_int_equal(f->cus->notes.count, same ? 0 : MANY);
    }
}

/* ---- A jump through a register, and the code object in assembly ---- */

struct cost { uint64_t instructions; uint32_t at[2]; }; /* in all; when lanes 0 and 31 came by the place behind the switch */

static struct cost run_switch(const char *kernel)
{
    struct hw_cu_counters before, after;
    struct { uint32_t at, which; } *out;
    uint64_t *args;

    fixture_reset_data(f);
    const uint64_t va = fixture_alloc(f, 8), out_va = fixture_alloc(f, 8 * 32);
    args = fixture_host(f, va);
    *args = out_va;
    hw_cu_get_counters(f->cus, &before);
    fixture_run_ok(f, fixture_kernel(f, kernel), 1, 32, 0, va);
    hw_cu_get_counters(f->cus, &after);
    out = fixture_host(f, out_va);
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(out[i].which, 10 + i % 4);
    return (struct cost){ after.warp_instr - before.warp_instr, { out[0].at, out[31].at } };
}

static void a_jump_through_a_register(void **state)
{
    (void)state;
    for (unsigned way = 0; way < FIXTURE_WAYS; way++) {
        f = &fixture_ways[way];
        fixture_load(f, NOTE_KERNELS);
        assert_true(f->notes_B == 2 * NOTE_B(1));
        tell(f->notes_va, f->notes_B);
        struct cost c = run_switch("together");
        assert_int_equal(c.instructions, 9 + 4 * 2 + 4);
        assert_int_equal(c.at[0], 9 + 4 * 2);
        assert_int_equal(c.at[1], 9 + 4 * 2);
        assert_int_equal(f->cus->notes.count, 2);
        c = run_switch("apart");
        assert_int_equal(c.instructions, 9 + 4 * (2 + 4));
        assert_int_not_equal(c.at[0], c.at[1]);
        tell(f->notes_va, NOTE_B(1)); /* half of what a linker has put together */
        assert_int_equal(run_switch("together").instructions, 9 + 4 * 2 + 4);
        tell(0, 0);
        assert_int_equal(run_switch("together").instructions, 9 + 4 * (2 + 4));
    }
    f = &fixture_ways[0];
}

/* A note about the jump gives the function's other branches their meeting points back; one about a branch counts where the jump has none. */
static void branches_beside_a_jump(void **state)
{
    enum { JUMP = 8, MET, BOTH = 6 };
    const uint32_t code[] = {
        i_type(MATCH(csrrs), T0, ZERO, PETREL_CSR_LANE),
        i_type(MATCH(andi), T1, T0, 1),
        b_type(MATCH(beq), T1, ZERO, 4 * (5 - 2)),
        i_type(MATCH(addi), T2, T2, 1),
        j_type(MATCH(jal), ZERO, 4 * (6 - 4)),
        i_type(MATCH(addi), T2, T2, 2),
        i_type(MATCH(auipc), T1, 0, 0),
        i_type(MATCH(addi), T1, T1, 4 * (MET - 6)),
        i_type(MATCH(jalr), ZERO, T1, 0),
        i_type(MATCH(jalr), ZERO, RA, 0),
    };
    static const struct { int branch, meet; uint32_t of_branch, of_jump; } cases[] = {
        { -8, MET, CU_RECONV_NONE, CU_RECONV_NONE },
        { JUMP, MET, 2 * BOTH, 2 * MET }, { JUMP, TO_RETURN, 2 * BOTH, CU_RECONV_EXIT }, { JUMP, TO_NONE, CU_RECONV_NONE, CU_RECONV_NONE },
        { 2, BOTH, 2 * BOTH, CU_RECONV_NONE }, { 2, TO_RETURN, CU_RECONV_EXIT, CU_RECONV_NONE },
    };
    const uint64_t entry = fixture_code(f, code, sizeof(code) / sizeof(code[0]));

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        write_note(1)->pairs[0] = pair(0, cases[i].branch, cases[i].meet);
        fixture_run_ok(f, entry, 1, 32, 0, FLAT_DATA_VA);
        assert_int_equal(reconv_of(2), cases[i].of_branch);
        assert_int_equal(reconv_of(JUMP), cases[i].of_jump);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_note_goes_before_the_analysis), cmocka_unit_test(which_pairs_count), cmocka_unit_test(notes_are_read_once),
        cmocka_unit_test(notes_that_cannot_be_read), cmocka_unit_test(notes_that_lie), cmocka_unit_test(notes_that_are_no_notes),
        cmocka_unit_test(as_many_as_there_may_be), cmocka_unit_test(a_jump_through_a_register), cmocka_unit_test(branches_beside_a_jump),
    };

    return cmocka_run_group_tests_name("cu-notes", tests, fixture_ways_create, fixture_ways_destroy);
}
