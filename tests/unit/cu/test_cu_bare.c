/* SPDX-License-Identifier: MIT */
/* test_cu_bare.c - bare programs: privileged registers, mret, wfi, exit values, and private memory images. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cu_asm.h"
#include "cu_fixture.h"
#include "cu_priv.h"

#define IMAGE_VA FLAT_DATA_VA      /* one page, of which each of LANES work-items has a copy */
#define LANES 64u
enum { X0, RA, SP, T0 = 5, T1, T2, A0 = 10, A1, A7 = 17, MSTATUS = 0x300, MEDELEG = 0x302, SATP = 0x180, MTVEC = 0x305, MEPC = 0x341, PMPCFG0 = 0x3a0,
       MHARTID = 0xf14, LANE = 0xccc, WARP = 0xccd };

static struct cu_fixture f;
static uint8_t *images;
static hw_translate_fn flat;
static uint64_t exit_value[LANES];
static uint32_t exit_count[LANES];
static uint32_t code[64];
static size_t n;

static void emit(uint32_t insn) { code[n++] = insn; }
static void csrr(unsigned rd, int csr) { emit(i_type(MATCH(csrrs), rd, X0, csr)); }
static void csrw(int csr, unsigned rs) { emit(i_type(MATCH(csrrw), X0, rs, csr)); }
static void li(unsigned rd, int v) { emit(i_type(MATCH(addi), rd, X0, v)); }
static void exit_with_a0(void)
{
    li(A7, 93);
    emit(MATCH(ecall));
}

static void on_exit_value(void *observer, uint64_t item, uint64_t a0)
{
    assert_ptr_equal(observer, &f);
    assert_true(item < LANES);
    exit_value[item] = a0;
    exit_count[item]++;
}

static uint32_t translate(void *priv, uint64_t root, uint64_t va, uint32_t access, struct hw_xlat *xlat_out)
{
    if (va - IMAGE_VA >= 4096)
        return flat(priv, root, va, access, xlat_out);
    *xlat_out = (struct hw_xlat){ .host = images, .page_va = IMAGE_VA, .page_B = 4096, .lane_stride_B = 4096,
                                  .rights = PETREL_PTE_READ | PETREL_PTE_WRITE };
    return 0;
}

static void create(bool bare, bool base)
{
    fixture_create(&f, base, true);
    hw_cu_array_destroy(f.cus);
    flat = f.config.translate;
    f.config.translate = translate;
    f.config.bare = bare;
    f.config.on_exit = on_exit_value;
    f.config.observer = &f;
    assert_int_equal(hw_cu_array_create(&f.config, &f.cus), UMD_SUCCESS);
    images = calloc(LANES, 4096);
    assert_non_null(images);
    n = 0;
}

static void destroy(void)
{
    fixture_destroy(&f);
    free(images);
}

static struct outcome run(unsigned lanes)
{
    struct launch l = { .grid = { 1, 1, 1 }, .block = { lanes, 1, 1 } };

    memset(exit_count, 0, sizeof(exit_count));
    memset(exit_value, 0xff, sizeof(exit_value));
    l.entry = fixture_code(&f, code, n);
    n = 0;
    return fixture_run(&f, &l);
}

static void run_ok(unsigned lanes)
{
    struct outcome o = run(lanes);

    assert_int_equal(o.state, HW_CU_DONE);
    for (unsigned l = 0; l < lanes; l++)
        assert_int_equal(exit_count[l], 1);
}

static void privileged_registers_read_zero(void **state)
{
    static const int csrs[] = { MSTATUS, MEDELEG, SATP, MTVEC, PMPCFG0, 0x344, 0x744, 0x105, 0x3b0 };

    (void)state;
    create(true, false);
    li(A0, 0);
    li(T0, -1);
    for (size_t i = 0; i < sizeof(csrs) / sizeof(csrs[0]); i++) {
        csrw(csrs[i], T0);
        emit(i_type(MATCH(csrrsi), T1, 31, csrs[i]));
        csrr(T1, csrs[i]);
        emit(r_type(MATCH(or), A0, A0, T1));
    }
    csrr(T1, MHARTID);
    emit(r_type(MATCH(or), A0, A0, T1));
    exit_with_a0();
    run_ok(40);
    for (unsigned l = 0; l < 40; l++)
        assert_int_equal(exit_value[l], 0);
    destroy();
}

static void illegal_where_the_manual_says(void **state)
{
    struct outcome o;

    (void)state;
    create(true, false);
    csrw(MHARTID, T0); /* a read-only number */
    o = run(4);
    assert_int_equal(o.state, HW_CU_FAULTED);
    assert_int_equal(o.fault.fault, PETREL_FAULT_ILLEGAL);
    destroy();
    for (unsigned i = 0; i < 3; i++) { /* no bare program */
        create(false, false);
        emit(i == 0 ? MATCH(mret) : i == 1 ? MATCH(wfi) : i_type(MATCH(csrrs), T0, X0, MHARTID));
        o = run(4);
        assert_int_equal(o.state, HW_CU_FAULTED);
        assert_int_equal(o.fault.fault, PETREL_FAULT_ILLEGAL);
        destroy();
    }
}

/* The way back from the start is no code: lanes that mret sends there have ended. */
static void mret_may_end_lanes(void **state)
{
    (void)state;
    create(true, false);
    csrr(T1, LANE);
    emit(i_type(MATCH(sltiu), T1, T1, 5));
    emit(MATCH(auipc) | T0 << 7);
    emit(i_type(MATCH(addi), T0, T0, 6 * 4));
    emit(MATCH(beq) | T1 << 15 | 8u / 2 << 8);
    emit(i_type(MATCH(addi), T0, RA, 0));
    csrw(MEPC, T0);
    emit(MATCH(mret));
    li(A0, 7);
    exit_with_a0();
    run_ok(32);
    for (unsigned l = 0; l < 32; l++)
        assert_int_equal(exit_value[l], l < 5 ? 0 : 7);
    destroy();
}

/* Lanes below 5 go to one place, the others to another. What mepc reads is what was written, without the lowest bit. */
static void mret_goes_where_each_lane_says(void **state)
{
    (void)state;
    for (unsigned base = 0; base < 2; base++) {
        create(true, base);
        emit(MATCH(auipc) | T0 << 7);
        csrr(T1, LANE);
        emit(i_type(MATCH(sltiu), T1, T1, 5));
        emit(i_type(MATCH(slli), T1, T1, 4));
        emit(r_type(MATCH(add), T0, T0, T1));
        emit(i_type(MATCH(addi), T0, T0, 9 * 4 | 1));
        csrw(MEPC, T0);
        emit(MATCH(wfi));
        emit(MATCH(mret));
        for (int value = 22; value >= 11; value -= 11) {
            li(A0, value);
            csrr(T1, MEPC);
            emit(r_type(MATCH(sub), T1, T0, T1));
            emit(value == 22 ? MATCH(jal) | 20 / 2 << 21 : i_type(MATCH(addi), X0, X0, 0));
        }
        emit(r_type(MATCH(add), A0, A0, T1));
        exit_with_a0();
        run_ok(32);
        for (unsigned l = 0; l < 32; l++)
            assert_int_equal(exit_value[l], l < 5 ? 12 : 23);
        destroy();
    }
}

/* Some lanes of a path exit, others ask for what is not there: the former's values are told, then the trap. */
static void exit_beside_another_ecall(void **state)
{
    struct outcome o;

    (void)state;
    create(false, false);
    csrr(A0, LANE);
    emit(i_type(MATCH(slti), A7, A0, 3));
    emit(i_type(MATCH(xori), A7, A7, 92)); /* below 3: 93 */
    emit(MATCH(ecall));
    o = run(8);
    assert_int_equal(o.state, HW_CU_FAULTED);
    assert_int_equal(o.fault.fault, PETREL_FAULT_TRAP);
    assert_int_equal(o.fault.data, PETREL_TRAP_ECALL);
    assert_int_equal(PETREL_FAULT_INFO_LANE(o.fault.info), 3);
    for (unsigned l = 0; l < 8; l++)
        assert_int_equal(exit_count[l], l < 3);
    assert_int_equal(exit_value[2], 2);
    destroy();
}

/* Each lane's end is told once, with its a0: all together, or some by returning and others by exit. */
static void ends_are_told(void **state)
{
    (void)state;
    for (unsigned base = 0; base < 2; base++) {
        create(false, base);
        csrr(A0, LANE);
        emit(i_type(MATCH(jalr), X0, RA, 0));
        run_ok(40);
        for (unsigned l = 0; l < 40; l++)
            assert_int_equal(exit_value[l], l % 32);
        csrr(A0, LANE);
        emit(i_type(MATCH(slti), T0, A0, 5));
        emit(b_type(MATCH(bne), T0, X0, 12));
        exit_with_a0();
        emit(i_type(MATCH(addi), A0, A0, 100));
        emit(i_type(MATCH(jalr), X0, RA, 0));
        run_ok(32);
        for (unsigned l = 0; l < 32; l++)
            assert_int_equal(exit_value[l], l < 5 ? 100 + l : l);
        emit(MATCH(auipc) | T0 << 7);                       /* a jump of which some lanes return */
        emit(i_type(MATCH(addi), T0, T0, 7 * 4));
        csrr(A0, LANE);
        emit(i_type(MATCH(slti), T1, A0, 5));
        emit(b_type(MATCH(bne), T1, X0, 8));
        emit(i_type(MATCH(addi), T0, RA, 0));
        emit(i_type(MATCH(jalr), X0, T0, 0));
        li(A0, 77);
        exit_with_a0();
        run_ok(32);
        for (unsigned l = 0; l < 32; l++)
            assert_int_equal(exit_value[l], l < 5 ? 77 : l);
        destroy();
    }
}

static void stack_of_a_bare_program(void **state)
{
    (void)state;
    create(true, false);
    hw_cu_array_destroy(f.cus);
    f.config.stack_va = 0x12345670;
    assert_int_equal(hw_cu_array_create(&f.config, &f.cus), UMD_SUCCESS);
    emit(i_type(MATCH(addi), A0, SP, 0));
    exit_with_a0();
    run_ok(33);
    assert_int_equal(exit_value[0], 0x12345670);
    assert_int_equal(exit_value[32], 0x12345670);
    destroy();
}

/* All lanes use the same addresses; loads, stores, AMO and lr/sc of each reach its own copy. */
static void private_images(void **state)
{
    (void)state;
    for (unsigned base = 0; base < 2; base++) {
        create(true, base);
        for (unsigned i = 0; i < LANES; i++)
            memcpy(images + i * 4096u + 8, &(uint32_t){ 1000 + i }, 4);
        csrr(T0, WARP);
        emit(i_type(MATCH(slli), T0, T0, 5));
        csrr(T1, LANE);
        emit(r_type(MATCH(add), T0, T0, T1));
        emit(MATCH(lui) | T1 << 7 | (uint32_t)(IMAGE_VA & 0xfffff000));
        emit(s_type(MATCH(sd), T1, T0, 16));                /* the same address, 32 values */
        emit(i_type(MATCH(lw), T2, T1, 8));                 /* 1000 + item */
        emit(i_type(MATCH(addi), A0, T1, 16));
        emit(r_type(MATCH(amoadd_d), T0, A0, T2));          /* item; memory: 1000 + 2 item */
        emit(r_type(MATCH(lr_d), A1, A0, X0));
        emit(r_type(MATCH(add), A1, A1, T0));
        emit(r_type(MATCH(sc_d), T2, A0, A1));              /* 0; memory: 1000 + 3 item */
        emit(i_type(MATCH(fld), 1, T1, 16));
        emit(s_type(MATCH(fsd), T1, 1, 2043));              /* misaligned */
        emit(i_type(MATCH(ld), A0, T1, 2043));
        emit(r_type(MATCH(add), A0, A0, T2));
        exit_with_a0();
        run_ok(LANES);
        for (unsigned i = 0; i < LANES; i++) {
            uint64_t v;

            memcpy(&v, images + i * 4096u + 16, 8);
            assert_int_equal(exit_value[i], 1000 + 3 * i);
            assert_int_equal(v, 1000 + 3 * i);
        }
        destroy();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(privileged_registers_read_zero),
        cmocka_unit_test(illegal_where_the_manual_says),
        cmocka_unit_test(mret_goes_where_each_lane_says), cmocka_unit_test(mret_may_end_lanes),
        cmocka_unit_test(exit_beside_another_ecall),
        cmocka_unit_test(ends_are_told),
        cmocka_unit_test(stack_of_a_bare_program),
        cmocka_unit_test(private_images),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
