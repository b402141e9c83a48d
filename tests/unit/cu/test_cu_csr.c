/* SPDX-License-Identifier: MIT */
/* test_cu_csr.c - control and status registers: what each reads, what may be written and how, rounding modes that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <hw/petrel_csr.h>
#include <hw/petrel_pte.h>

#include "cu_asm.h"
#include "cu_fixture.h"

static struct cu_fixture *f;

#define WORDS 8u /* of a work-item, at a0 + its number in the workgroup * 64 */

static struct outcome run(const uint32_t *insns, unsigned count, struct launch l, uint64_t **out)
{
    uint32_t code[40];
    unsigned n = 0;

    code[n++] = i_type(MATCH(csrrs), 5, 0, CU_CSR_WARP);
    code[n++] = i_type(MATCH(slli), 5, 5, 5);
    code[n++] = i_type(MATCH(csrrs), 6, 0, CU_CSR_LANE);
    code[n++] = r_type(MATCH(add), 5, 5, 6);
    code[n++] = i_type(MATCH(slli), 5, 5, 6);
    code[n++] = r_type(MATCH(add), 5, 5, 10);
    memcpy(code + n, insns, count * sizeof(*insns));
    n += count;
    code[n++] = i_type(MATCH(jalr), 0, 1, 0);
    l.entry = fixture_code(f, code, n);
    fixture_reset_data(f);
    l.args = fixture_alloc(f, 1024 * WORDS * 8);
    *out = fixture_host(f, l.args);
    return fixture_run(f, &l);
}

static const struct launch one_warp = { .grid = { 1, 1, 1 }, .block = { 32, 1, 1 } };

static void test_items(void **state)
{
    const uint32_t bx = 5, by = 3, bz = 4;

    (void)state;
    for (unsigned h = 0; h < 4; h++) {
        for (unsigned csr = PETREL_CSR_LOCAL_ID_X; csr <= PETREL_CSR_ARGS; csr++) {
            struct launch l = { .grid = { 1, 1, 1 }, .block = { bx, by, bz } };
            uint32_t code[2] = { i_type(MATCH(csrrs), 7, 0, (int)csr), s_type(MATCH(sd), 5, 7, 0) };
            uint64_t *out;

            f = &fixture_ways[h];
            assert_int_equal(run(code, 2, l, &out).state, HW_CU_DONE);
            for (uint32_t i = 0; i < bx * by * bz; i++) {
                const uint64_t want[] = { i % bx, i / bx % by, i / bx / by, 0, 0, 0, bx, by, bz, 1, 1, 1, i % 32, i / 32, PETREL_LOCAL_BASE,
                                          FLAT_DATA_VA };

                if (out[i * WORDS] != want[csr - PETREL_CSR_LOCAL_ID_X])
                    fail_msg("%s of item %u: %llu", cu_csr_name(csr), i, (unsigned long long)out[i * WORDS]);
            }
        }
    }
}

/* Groups write their number to a place by it; rows of 64 bytes as above would be one for all. */
static void test_groups(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 4; h++) {
        struct launch l = { .grid = { 3, 2, 2 }, .block = { 1, 1, 1 } };
        uint32_t code[16];
        unsigned n = 0;
        uint64_t *out;

        f = &fixture_ways[h];
        for (unsigned i = 0; i < 3; i++)
            code[n++] = i_type(MATCH(csrrs), 11 + i, 0, CU_CSR_GROUP_ID_X + (int)i);
        code[n++] = i_type(MATCH(slli), 7, 12, 2);
        code[n++] = r_type(MATCH(add), 7, 7, 11);
        code[n++] = i_type(MATCH(slli), 8, 13, 3);
        code[n++] = r_type(MATCH(add), 7, 7, 8);
        code[n++] = i_type(MATCH(slli), 7, 7, 3);
        code[n++] = r_type(MATCH(add), 7, 7, 10);
        code[n++] = i_type(MATCH(csrrs), 8, 0, CU_CSR_GRID_X);
        code[n++] = i_type(MATCH(csrrs), 9, 0, CU_CSR_GRID_Y);
        code[n++] = r_type(MATCH(add), 8, 8, 9);
        code[n++] = s_type(MATCH(sd), 7, 8, 0);
        assert_int_equal(run(code, n, l, &out).state, HW_CU_DONE);
        for (unsigned i = 0; i < 16; i++)
            assert_int_equal(out[i], i % 4 < 3 && i / 4 % 2 < 2 ? 5 : 0);
    }
}

/* fcsr is frm and fflags; set, clear and swap, by registers and by immediates; x0 and 0 write nothing. */
static void test_float_state(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 4; h++) {
        uint32_t code[32];
        unsigned n = 0;
        uint64_t *out;
        static const uint64_t want[] = { 0, 0xff, 7, 0x1f, 0x15, 0x14, 4, 0x94 };

        f = &fixture_ways[h];
        code[n++] = i_type(MATCH(addi), 7, 0, -1);
        code[n++] = i_type(MATCH(csrrw), 11, 7, CU_CSR_FCSR);       /* 0, now all bits: 0xff */
        code[n++] = i_type(MATCH(csrrs), 12, 0, CU_CSR_FCSR);
        code[n++] = i_type(MATCH(csrrci), 13, 3, CU_CSR_FRM);       /* 7, now 4 */
        code[n++] = i_type(MATCH(csrrwi), 14, 0x15, CU_CSR_FFLAGS); /* 0x1f, now 0x15 */
        code[n++] = i_type(MATCH(csrrci), 15, 1, CU_CSR_FFLAGS);    /* 0x15, now 0x14 */
        code[n++] = i_type(MATCH(csrrsi), 16, 0, CU_CSR_FFLAGS);    /* 0x14, unchanged */
        code[n++] = i_type(MATCH(csrrc), 17, 0, CU_CSR_FRM);        /* 4, unchanged */
        code[n++] = i_type(MATCH(csrrs), 18, 0, CU_CSR_FCSR);
        for (unsigned i = 0; i < 8; i++)
            code[n++] = s_type(MATCH(sd), 5, 11 + i, (int)i * 8);
        assert_int_equal(run(code, n, one_warp, &out).state, HW_CU_DONE);
        for (unsigned l = 0; l < 32; l++)
            for (unsigned i = 0; i < 8; i++)
                if (out[l * WORDS + i] != want[i])
                    fail_msg("lane %u, read %u: 0x%llx, not 0x%llx", l, i, (unsigned long long)out[l * WORDS + i], (unsigned long long)want[i]);
    }
}

/* A write takes the first active lane's value; lanes that are not there keep their register. */
static void test_first_lane(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 4; h++) {
        uint32_t code[16];
        unsigned n = 0;
        uint64_t *out;

        f = &fixture_ways[h];
        code[n++] = i_type(MATCH(addi), 7, 0, 5);
        code[n++] = i_type(MATCH(addi), 9, 0, 77);
        code[n++] = b_type(MATCH(blt), 6, 7, 12);                   /* lanes 5 and up: */
        code[n++] = i_type(MATCH(csrrw), 0, 6, CU_CSR_FFLAGS);
        code[n++] = i_type(MATCH(csrrs), 9, 0, CU_CSR_FFLAGS);
        code[n++] = i_type(MATCH(csrrs), 8, 0, CU_CSR_FFLAGS);
        code[n++] = s_type(MATCH(sd), 5, 8, 0);
        code[n++] = s_type(MATCH(sd), 5, 9, 8);
        assert_int_equal(run(code, n, one_warp, &out).state, HW_CU_DONE);
        for (unsigned l = 0; l < 32; l++) {
            assert_int_equal(out[l * WORDS], 5);
            assert_int_equal(out[l * WORDS + 1], l < 5 ? 77 : 5);
        }
    }
}

static void test_illegal(void **state)
{
    const uint32_t rows[] = {
        i_type(MATCH(csrrw), 0, 0, CU_CSR_CYCLE), i_type(MATCH(csrrs), 0, 5, CU_CSR_TIME), i_type(MATCH(csrrwi), 0, 0, CU_CSR_LANE),
        i_type(MATCH(csrrsi), 0, 1, CU_CSR_ARGS), i_type(MATCH(csrrci), 0, 1, CU_CSR_INSTRET), i_type(MATCH(csrrs), 7, 0, 0),
        i_type(MATCH(csrrs), 7, 0, 4), i_type(MATCH(csrrs), 7, 0, 0xc03), i_type(MATCH(csrrs), 7, 0, 0xcd0), i_type(MATCH(csrrs), 7, 0, 0xcbf),
        i_type(MATCH(csrrs), 7, 0, CU_CSR_MHARTID), i_type(MATCH(csrrs), 7, 0, CU_CSR_MSTATUS), i_type(MATCH(csrrw), 0, 0, CU_CSR_MEPC),
        r_type(MATCH(fadd_s), 1, 1, 1) | 5u << 12, r_type(MATCH(fadd_s), 1, 1, 1) | 6u << 12, r_type(MATCH(fcvt_w_d), 7, 1, 0) | 5u << 12,
        r_type(MATCH(fadd_h), 1, 1, 1) | 6u << 12, r_type(MATCH(fcvt_s_w), 1, 7, 0) | 6u << 12, 0, 0xffffffff, 0x0000500b,
    };

    (void)state;
    for (unsigned k = 0; k < 4 * sizeof(rows) / sizeof(rows[0]); k++) {
        uint64_t *out;
        struct outcome o;

        f = &fixture_ways[k % 4];
        o = run(&rows[k / 4], 1, one_warp, &out);
        if (o.state != HW_CU_FAULTED || o.fault.fault != PETREL_FAULT_ILLEGAL || o.fault.pc != FLAT_CODE_VA + 24)
            fail_msg("0x%08x: state %d fault %u pc 0x%llx", rows[k / 4], (int)o.state, o.fault.fault, (unsigned long long)o.fault.pc);
    }
    for (unsigned frm = 0; frm < 8; frm++) { /* the dynamic mode: 5 to 7 are none */
        uint32_t code[2] = { i_type(MATCH(csrrwi), 0, frm, CU_CSR_FRM), r_type(MATCH(fadd_d), 1, 1, 1) | 7u << 12 };
        uint64_t *out;

        f = &fixture_ways[frm % 4];
        assert_int_equal(run(code, 2, one_warp, &out).state, frm > 4 ? HW_CU_FAULTED : HW_CU_DONE);
    }
}

/* Time passes, instructions are counted, and both only grow. */
static void test_counters(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 4; h++) {
        uint32_t code[32];
        unsigned n = 0;
        uint64_t *out;

        f = &fixture_ways[h];
        code[n++] = i_type(MATCH(csrrs), 7, 0, CU_CSR_CYCLE);
        code[n++] = i_type(MATCH(csrrs), 8, 0, CU_CSR_INSTRET);
        code[n++] = i_type(MATCH(addi), 9, 0, 2000);
        code[n++] = i_type(MATCH(addi), 9, 9, -1);
        code[n++] = b_type(MATCH(bne), 9, 0, -4);
        code[n++] = i_type(MATCH(csrrs), 11, 0, CU_CSR_CYCLE);
        code[n++] = i_type(MATCH(csrrs), 12, 0, CU_CSR_INSTRET);
        code[n++] = i_type(MATCH(csrrs), 13, 0, CU_CSR_TIME);
        for (unsigned i = 0; i < 5; i++)
            code[n++] = s_type(MATCH(sd), 5, i < 2 ? 7 + i : 9 + i, (int)i * 8);
        assert_int_equal(run(code, n, one_warp, &out).state, HW_CU_DONE);
        assert_true(out[2] >= out[0] + 1000 && out[3] > out[1] && out[4] >= out[2]);
    }
}

/* Short workgroups on many units: the clock of none goes back where one epoch gives way to the next. */
static void test_clock_of_short_kernels(void **state)
{
    enum { UNITS = 51, GROUPS = 65536 }; /* launches come at all places of an epoch */
    struct cu_fixture many;
    uint32_t code[16];

    (void)state;
    for (unsigned h = 0; h < 2; h++) {
        struct launch l = { .grid = { GROUPS, 1, 1 }, .block = { 32, 1, 1 } };
        unsigned n = 0;

        fixture_create(&many, false, h);
        hw_cu_array_destroy(many.cus);
        many.config.cu_count = UNITS;
        assert_int_equal(hw_cu_array_create(&many.config, &many.cus), UMD_SUCCESS);
        code[n++] = i_type(MATCH(csrrs), 7, 0, CU_CSR_CYCLE);
        code[n++] = i_type(MATCH(csrrs), 5, 0, CU_CSR_GROUP_ID_X);
        code[n++] = i_type(MATCH(slli), 5, 5, 3);
        code[n++] = r_type(MATCH(add), 5, 5, 10);
        code[n++] = i_type(MATCH(csrrs), 8, 0, CU_CSR_CYCLE);
        code[n++] = r_type(MATCH(sub), 8, 8, 7);
        code[n++] = s_type(MATCH(sd), 5, 8, 0);
        code[n++] = i_type(MATCH(jalr), 0, 1, 0);
        l.entry = fixture_code(&many, code, n);
        l.args = fixture_alloc(&many, GROUPS * 8);
        assert_int_equal(fixture_run(&many, &l).state, HW_CU_DONE);
        const uint64_t *took = fixture_host(&many, l.args);
        for (unsigned g = 0; g < GROUPS; g++)
            assert_in_range(took[g], 4, h ? 4096 : 100000);
        fixture_destroy(&many);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items), cmocka_unit_test(test_groups), cmocka_unit_test(test_float_state), cmocka_unit_test(test_first_lane),
        cmocka_unit_test(test_illegal), cmocka_unit_test(test_counters), cmocka_unit_test(test_clock_of_short_kernels),
    };

    return cmocka_run_group_tests_name("cu-csr", tests, fixture_ways_create, fixture_ways_destroy);
}
