/* SPDX-License-Identifier: MIT */
/* test_cu_faults.c - faults with exact fields, sabotage, probe and kill, resources, slices, memory that is not contiguous. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hw/petrel_pte.h>

#include "cu_fixture.h"
#include "insn.h"

struct test_args { uint64_t in, out; uint32_t n, m; };

static struct cu_fixture fixture, *f = &fixture;

static int setup(void **state)
{
    (void)state;
    fixture_create(f, false, false);
    fixture_load(f, CU_KERNELS);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_destroy(f);
    return 0;
}

static struct test_args *make_args(uint64_t out_B, uint64_t *va_out)
{
    struct test_args *args;

    fixture_reset_data(f);
    *va_out = fixture_alloc(f, sizeof(*args));
    args = fixture_host(f, *va_out);
    args->out = fixture_alloc(f, out_B);
    return args;
}

static struct outcome run(const char *kernel, uint32_t grid, uint32_t block, uint64_t args, struct hw_cu_sabotage sabotage)
{
    struct launch l = { .entry = fixture_kernel(f, kernel), .grid = { grid, 1, 1 }, .block = { block, 1, 1 }, .args = args,
                        .sabotage = sabotage };

    return fixture_run(f, &l);
}

static uint32_t bits_at(uint64_t pc)
{
    uint32_t bits;

    memcpy(&bits, fixture_host(f, pc), 4);
    return bits;
}

static void check_store_fault(uint64_t target, uint32_t fault)
{
    uint64_t va;
    struct test_args *args = make_args(4096 * 4, &va);
    struct outcome o;

    args->in = target;
    args->m = 3 * 96 + 32 + 7; /* workgroup 3, warp 1, lane 7 */
    o = run("touch", 8, 96, va, (struct hw_cu_sabotage){ 0 });
    assert_int_equal(o.state, HW_CU_FAULTED);
    assert_int_equal(o.fault.fault, fault);
    assert_int_equal(o.fault.va, target);
    assert_int_equal(o.fault.wg, 3);
    assert_int_equal(PETREL_FAULT_INFO_ACCESS(o.fault.info), PETREL_ACCESS_WRITE);
    assert_int_equal(PETREL_FAULT_INFO_LANE(o.fault.info), 7);
    assert_int_equal(PETREL_FAULT_INFO_WARP(o.fault.info), 1);
    assert_int_equal(PETREL_FAULT_INFO_CU(o.fault.info), 3);
    assert_int_equal(o.fault.data, bits_at(o.fault.pc));
    assert_int_equal(o.fault.data & 0x707f, 0x2023); /* sw */
}

static void test_page(void **state)
{
    (void)state;
    check_store_fault(0x666000ull, PETREL_FAULT_PAGE);
    check_store_fault(FLAT_RO_VA + 8, PETREL_FAULT_ACCESS);
    check_store_fault(FLAT_CODE_VA + 64, PETREL_FAULT_ACCESS);
    check_store_fault(PETREL_LOCAL_BASE + 4096, PETREL_FAULT_PAGE);      /* no local memory asked for */
    check_store_fault(PETREL_PRIVATE_BASE, PETREL_FAULT_ACCESS);         /* another lane's stack */
    check_store_fault(0xdead000000000000ull, PETREL_FAULT_PAGE);
}

static void test_trap(void **state)
{
    uint64_t va;
    struct test_args *args = make_args(4096, &va);
    struct outcome o;

    (void)state;
    args->m = 69;
    args->n = 0x1234;
    o = run("trap_at", 1, 96, va, (struct hw_cu_sabotage){ 0 });
    assert_int_equal(o.state, HW_CU_FAULTED);
    assert_int_equal(o.fault.fault, PETREL_FAULT_TRAP);
    assert_int_equal(o.fault.data, 0x1234);
    assert_int_equal(PETREL_FAULT_INFO_LANE(o.fault.info), 5);
    assert_int_equal(PETREL_FAULT_INFO_WARP(o.fault.info), 2);
    assert_int_equal(bits_at(o.fault.pc) & 0xfe00707f, 0x0400000b);
}

static void test_stack_overflow(void **state)
{
    uint64_t va;
    struct outcome o;

    (void)state;
    make_args(4096, &va);
    o = run("overflow_stack", 1, 32, va, (struct hw_cu_sabotage){ 0 });
    assert_int_equal(o.state, HW_CU_FAULTED);
    assert_int_equal(o.fault.fault, PETREL_FAULT_ACCESS);
    assert_true(o.fault.va >= PETREL_PRIVATE_BASE - 4096 && o.fault.va < PETREL_PRIVATE_END);
}

static void check_code(const uint32_t *code, size_t count, uint32_t fault, uint64_t data, uint32_t access, uint64_t fault_pc)
{
    uint64_t entry = fixture_code(f, code, count);
    struct launch l = { .entry = entry, .grid = { 1, 1, 1 }, .block = { 32, 1, 1 } };
    struct outcome o = fixture_run(f, &l);

    assert_int_equal(o.state, HW_CU_FAULTED);
    assert_int_equal(o.fault.fault, fault);
    assert_int_equal(o.fault.data, data);
    assert_int_equal(o.fault.pc, fault_pc);
    assert_int_equal(PETREL_FAULT_INFO_ACCESS(o.fault.info), access);
}

static void test_code_faults(void **state)
{
    const uint32_t nop = 0x13, ebreak = 0x00100073, ecall = 0x73, bad = 0xffffffff, jr_zero = 0x00000067, write_csr = 0xcc029073;
    const uint32_t lui_t0 = 0x100032b7, amo = 0x0022a52f;          /* t0 = 0x10003000; amoadd.w a0, x2, (t0) */
    const uint32_t odd[] = { lui_t0, 0x00228293, amo };             /* t0 + 2 */

    (void)state;
    check_code((const uint32_t[]){ nop, bad }, 2, PETREL_FAULT_ILLEGAL, bad, PETREL_ACCESS_EXEC, FLAT_CODE_VA + 4);
    check_code((const uint32_t[]){ ebreak }, 1, PETREL_FAULT_TRAP, PETREL_TRAP_EBREAK, PETREL_ACCESS_EXEC, FLAT_CODE_VA);
    check_code((const uint32_t[]){ nop, nop, ecall }, 3, PETREL_FAULT_TRAP, PETREL_TRAP_ECALL, PETREL_ACCESS_EXEC, FLAT_CODE_VA + 8);
    check_code((const uint32_t[]){ jr_zero }, 1, PETREL_FAULT_PAGE, 0, PETREL_ACCESS_EXEC, 0);
    check_code((const uint32_t[]){ write_csr }, 1, PETREL_FAULT_ILLEGAL, write_csr, PETREL_ACCESS_EXEC, FLAT_CODE_VA);
    check_code(odd, 3, PETREL_FAULT_MISALIGNED, amo, PETREL_ACCESS_ATOMIC, FLAT_CODE_VA + 8);
    fixture_load(f, CU_KERNELS);
}

/* An instruction may begin in the last halfword of what was announced, or of a page: what follows comes from the next. */
static void test_code_across_end(void **state)
{
    const uint16_t code[] = { 0x0593, 0x0055, 0xc10c, 0x8082 }; /* addi a1, a0, 5; c.sw a1, (a0); c.ret */
    const struct { uint64_t code_B, at; } cases[] = {
        { 4, 2 }, { 0, PETREL_PAGE_SIZE - 2 }, { PETREL_PAGE_SIZE, PETREL_PAGE_SIZE - 2 }, { UINT64_MAX, 2 },
    };
    struct launch l = { .grid = { 1, 1, 1 }, .block = { 32, 1, 1 } };

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fixture_reset_data(f);
        l.args = fixture_alloc(f, 64);
        l.entry = fixture_code(f, (const uint32_t[]){ 0 }, 1) + cases[i].at;
        f->code_B = cases[i].code_B;
        memcpy(fixture_host(f, l.entry), code, sizeof(code));
        assert_int_equal(fixture_run(f, &l).state, HW_CU_DONE);
        assert_int_equal(*(uint32_t *)fixture_host(f, l.args), (uint32_t)l.args + 5);
    }
    /* a jump out of what was announced, within its page, and a dispatch that announces more of it than the one before */
    fixture_code(f, (const uint32_t[]){ 0x1000006f }, 1); /* j +256 */
    memcpy(fixture_host(f, FLAT_CODE_VA + 256), code, sizeof(code));
    for (unsigned i = 0; i < 2; i++) {
        l.entry = FLAT_CODE_VA + 256 * i;
        f->code_B = i ? 512 : 4;
        memset(fixture_host(f, l.args), 0, 64);
        assert_int_equal(fixture_run(f, &l).state, HW_CU_DONE);
        assert_int_equal(*(uint32_t *)fixture_host(f, l.args), (uint32_t)l.args + 5);
    }
    fixture_load(f, CU_KERNELS);
}

/* The second half of an instruction cannot be fetched: the address is of that half, the program counter of the instruction. */
static void test_fetch_across(void **state)
{
    const uint64_t end = FLAT_CODE_VA + FLAT_CODE_B;
    const uint16_t half = 0x0593;
    struct launch l = { .entry = end - 2, .grid = { 1, 1, 1 }, .block = { 32, 1, 1 } };

    (void)state;
    fixture_code(f, (const uint32_t[]){ 0 }, 1);
    memcpy(fixture_host(f, end - 2), &half, sizeof(half));
    struct outcome o = fixture_run(f, &l);
    assert_int_equal(o.state, HW_CU_FAULTED);
    assert_int_equal(o.fault.fault, PETREL_FAULT_ACCESS);
    assert_int_equal(o.fault.va, end);
    assert_int_equal(o.fault.pc, end - 2);
    fixture_load(f, CU_KERNELS);
}

static void test_resources(void **state)
{
    struct launch l = { .entry = fixture_kernel(f, "saxpy"), .grid = { 1, 1, 1 }, .block = { 1024, 1, 1 } };
    struct outcome o = fixture_run(f, &l);

    (void)state;
    assert_false(o.started); /* 32 warps on a unit for 16 */
    assert_int_equal(o.fault.fault, PETREL_FAULT_RESOURCES);
    l.block[0] = 32;
    l.local_B = 65537;
    assert_false(fixture_run(f, &l).started);
    l.local_B = 0;
    l.entry = FLAT_DATA_VA;
    o = fixture_run(f, &l);
    assert_false(o.started);
    assert_int_equal(o.fault.fault, PETREL_FAULT_ACCESS);
    assert_int_equal(o.fault.pc, FLAT_DATA_VA);
}

static void test_sabotage(void **state)
{
    uint64_t va, cycles = 0;
    struct test_args *args = make_args(1u << 16, &va);
    struct outcome o;
    struct hw_cu_fault where;

    (void)state;
    args->in = args->out;
    args->n = 1024;
    o = run("saxpy", 16, 64, va, (struct hw_cu_sabotage){ .wild = true, .wild_va = 0x123456000ull });
    assert_int_equal(o.state, HW_CU_FAULTED);
    assert_int_equal(o.fault.fault, PETREL_FAULT_PAGE);
    assert_int_equal(o.fault.va, 0x123456000ull);
    assert_int_equal(o.fault.wg, 0);
    assert_int_equal(PETREL_FAULT_INFO_LANE(o.fault.info), 0);
    assert_int_equal(PETREL_FAULT_INFO_WARP(o.fault.info), 0);
    o = run("saxpy", 16, 64, va, (struct hw_cu_sabotage){ .illegal = true, .illegal_bits = 0xbadbadff });
    assert_int_equal(o.state, HW_CU_FAULTED);
    assert_int_equal(o.fault.fault, PETREL_FAULT_ILLEGAL);
    assert_int_equal(o.fault.data, 0xbadbadff);
    assert_true(o.fault.pc > fixture_kernel(f, "saxpy"));

    o = run("saxpy", 16, 64, va, (struct hw_cu_sabotage){ .hang = true });
    assert_int_equal(o.state, HW_CU_HUNG);
    fixture_run_ok(f, fixture_kernel(f, "saxpy"), 16, 64, 0, va); /* and all is well again */

    struct petrel_dispatch d = { .entry_va = fixture_kernel(f, "saxpy"), .args_va = va, .grid = { 16, 1, 1 }, .block = { 64, 1, 1 },
                                 .code_va = FLAT_CODE_VA, .code_B = f->code_B };
    struct hw_cu_sabotage hang = { .hang = true };

    assert_true(hw_cu_start(f->cus, &d, 1, &hang, &where));
    while (hw_cu_run(f->cus, 1000, &cycles, &where) == HW_CU_RUNNING)
        ;
    assert_false(hw_cu_probe(f->cus, &where));
    cycles = 0;
    assert_int_equal(hw_cu_run(f->cus, 5000, &cycles, &where), HW_CU_HUNG);
    assert_int_equal(cycles, 5000); /* time passes */
    hw_cu_kill(f->cus);
}

static void test_probe(void **state)
{
    uint64_t va, cycles = 0, entry = fixture_kernel(f, "forever");
    struct test_args *args = make_args(64, &va);
    struct petrel_dispatch d = { .entry_va = entry, .args_va = va, .grid = { 2, 1, 1 }, .block = { 64, 1, 1 },
                                 .code_va = FLAT_CODE_VA, .code_B = f->code_B };
    struct hw_cu_fault where;

    (void)state;
    assert_true(hw_cu_start(f->cus, &d, 1, NULL, &where));
    assert_int_equal(hw_cu_run(f->cus, 100000, &cycles, &where), HW_CU_RUNNING);
    assert_int_equal(cycles, 100000);
    assert_true(hw_cu_probe(f->cus, &where));
    assert_true(where.pc >= entry && where.pc < entry + 64);
    *(uint32_t *)fixture_host(f, args->out) = 1; /* the flag it waits for */
    while (hw_cu_run(f->cus, 1000, &cycles, &where) == HW_CU_RUNNING)
        ;
    assert_int_equal(hw_cu_run(f->cus, 1000, &cycles, &where), HW_CU_DONE);
}

/* One cycle at a time is the same as all at once: memory, cycles, counters. */
static void test_slices(void **state)
{
    struct hw_cu_counters c[3];
    struct outcome o[2];
    uint32_t sum[2] = { 0, 0 };

    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        struct cu_fixture own;
        struct launch l = { .grid = { 9, 1, 1 }, .block = { 100, 1, 1 }, .slice = k };
        struct test_args *args;
        float *out;

        fixture_create(&own, false, false);
        fixture_load(&own, CU_KERNELS);
        l.entry = fixture_kernel(&own, "saxpy");
        l.args = fixture_alloc(&own, sizeof(*args));
        args = fixture_host(&own, l.args);
        *args = (struct test_args){ .n = 890 };
        args->in = fixture_alloc(&own, 4000);
        args->out = fixture_alloc(&own, 4000);
        for (unsigned i = 0; i < 900; i++)
            ((float *)fixture_host(&own, args->in))[i] = (float)i;
        o[k] = fixture_run(&own, &l);
        hw_cu_get_counters(own.cus, &c[k]);
        out = fixture_host(&own, args->out);
        for (unsigned i = 0; i < 900; i++) {
            assert_true(out[i] == (i < 890 ? 2.0f * (float)i : 0));
            sum[k] = sum[k] * 31 + (uint32_t)out[i];
        }
        fixture_destroy(&own);
    }
    assert_int_equal(o[0].state, HW_CU_DONE);
    assert_int_equal(o[1].state, HW_CU_DONE);
    assert_int_equal(o[0].cycles, o[1].cycles);
    assert_int_equal(o[1].slices, o[1].cycles);
    assert_int_equal(sum[0], sum[1]);
    assert_memory_equal(&c[0], &c[1], sizeof(c[0]));
}

/* Timing means something: more work takes longer, DRAM longer than cache, functional counts instructions. */
static void test_timing(void **state)
{
    uint64_t va, cold, warm, more;
    struct hw_cu_counters before, after;
    struct test_args *args = make_args(1u << 20, &va);

    (void)state;
    args->in = fixture_alloc(f, 1u << 20);
    args->n = 1u << 18;
    cold = fixture_run_ok(f, fixture_kernel(f, "saxpy"), 64, 256, 0, va);
    warm = fixture_run_ok(f, fixture_kernel(f, "saxpy"), 64, 256, 0, va);
    more = fixture_run_ok(f, fixture_kernel(f, "saxpy"), 512, 256, 0, va);
    assert_true(warm < cold);
    assert_true(more > 4 * warm);
    hw_cu_set_functional(f->cus, true);
    hw_cu_get_counters(f->cus, &before);
    cold = fixture_run_ok(f, fixture_kernel(f, "saxpy"), 1, 32, 0, va);
    hw_cu_get_counters(f->cus, &after);
    hw_cu_set_functional(f->cus, false);
    assert_int_equal(cold, after.warp_instr - before.warp_instr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page), cmocka_unit_test(test_trap), cmocka_unit_test(test_stack_overflow),
        cmocka_unit_test(test_code_faults), cmocka_unit_test(test_code_across_end), cmocka_unit_test(test_fetch_across), cmocka_unit_test(test_resources), cmocka_unit_test(test_sabotage),
        cmocka_unit_test(test_probe), cmocka_unit_test(test_slices), cmocka_unit_test(test_timing),
    };

    return cmocka_run_group_tests_name("cu-faults", tests, setup, teardown);
}
