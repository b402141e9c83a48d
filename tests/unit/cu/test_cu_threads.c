/* SPDX-License-Identifier: MIT */
/* test_cu_threads.c - compute units on several host threads: results and figures of one, the same cycles each time, code that changes, faults. */
/*
 * The sanitizer of threads sees the kernels' memory, too: each workgroup writes rows of its own of 128 bytes, or uses atomics.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cu_asm.h"
#include "cu_fixture.h"
#include "cu_priv.h"
#include "divergent.h"
#include "record.h"
#include "sys.h"

enum { UNITS = 5, THREADS = 3, X0 = 0, RA = 1, T0 = 5, T1, T2, A0 = 10, A1, A2, A3, A4, GROUP = CU_CSR_GROUP_ID_X };
struct test_args { uint64_t in, out; uint32_t n, m; };
struct way { uint32_t units, threads; bool portable, functional; };

static uint32_t code[256];
static size_t n;

static void emit(uint32_t insn) { code[n++] = insn; }
static void csrr(unsigned rd, int csr) { emit(i_type(MATCH(csrrs), rd, X0, csr)); }
static void addi(unsigned rd, unsigned rs1, int v) { emit(i_type(MATCH(addi), rd, rs1, v)); }
static void ret(void) { emit(i_type(MATCH(jalr), X0, RA, 0)); }

/* An array with as many units and threads. */
static void create(struct cu_fixture *f, struct way way)
{
    fixture_create(f, way.portable, way.functional);
    hw_cu_array_destroy(f->cus);
    free(f->scratch);
    f->config.cu_count = way.units;
    f->config.host_threads = way.threads;
    f->scratch = calloc((size_t)way.units * f->config.warps_per_cu * 32u, f->config.private_B);
    assert_non_null(f->scratch);
    f->config.scratch = f->scratch;
    assert_int_equal(hw_cu_array_create(&f->config, &f->cus), UMD_SUCCESS);
}

/* What was loaded stays, all else is as of a new device. */
static void renew(struct cu_fixture *f)
{
    hw_cu_array_destroy(f->cus);
    assert_int_equal(hw_cu_array_create(&f->config, &f->cus), UMD_SUCCESS);
}

static uint64_t asked(const struct cu_fixture *f)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < f->config.cu_count; i++)
        sum += f->cus->cus[i].asked;
    return sum;
}

static struct hw_cu_counters counters(const struct cu_fixture *f)
{
    struct hw_cu_counters c;

    hw_cu_get_counters(f->cus, &c);
    return c;
}

/* ---- Results ---- */

#define ITEMS 2048u

static uint64_t run_kernel(struct cu_fixture *f, const char *kernel, uint64_t slice, uint32_t **out)
{
    fixture_reset_data(f);

    uint64_t va = fixture_alloc(f, sizeof(struct test_args));
    struct test_args *args = fixture_host(f, va);

    *args = (struct test_args){ .in = fixture_alloc(f, 4 * ITEMS), .out = fixture_alloc(f, 8 * ITEMS), .n = ITEMS, .m = 3 };
    float *in = fixture_host(f, args->in);
    for (uint32_t i = 0; i < ITEMS; i++)
        in[i] = (float)i * 0.25f;
    *out = fixture_host(f, args->out);
    struct launch l = { .entry = fixture_kernel(f, kernel), .grid = { ITEMS / 64, 1, 1 }, .block = { 64, 1, 1 }, .local_B = 512, .args = va, .slice = slice };
    struct outcome o = fixture_run(f, &l);

    assert_int_equal(o.state, HW_CU_DONE);
    return o.cycles;
}

static const char *const kernels[] = { "nested_if", "loop_break", "switch_cases", "goto_mesh", "collatz", "call_in_branch", "function_pointers", "private_sort",
                                       "mutual_recursion", "chains", "deep_recursion", "saxpy", "block_sum", "recursion" };
enum { KERNELS = sizeof(kernels) / sizeof(kernels[0]) };

static void same_results(void **state)
{
    (void)state;
    for (unsigned w = 0; w < 4; w += 3) {
        struct cu_fixture one, many;
        uint32_t *a, *b;

        create(&one, (struct way){ UNITS, 1, w & 1, w & 2 });
        create(&many, (struct way){ UNITS, THREADS, w & 1, w & 2 });
        fixture_load(&one, CU_KERNELS);
        fixture_load(&many, CU_KERNELS);
        for (unsigned k = 0; k < KERNELS; k++) {
            run_kernel(&one, kernels[k], 0, &a);
            run_kernel(&many, kernels[k], 0, &b);
            if (memcmp(a, b, 8 * ITEMS))
                fail_msg("%s: other results, way %u", kernels[k], w);
            struct hw_cu_counters x = counters(&one), y = counters(&many);
            assert_int_equal(x.workgroups, y.workgroups);
            assert_int_equal(x.barriers, y.barriers);
        }
        fixture_destroy(&one);
        fixture_destroy(&many);
    }
}

/* What is issued depends on nothing but the kernel, where no function is found by a pointer: there, who comes first has its branches analysed later. */
static void same_figures(void **state)
{
    static const char *const plain[] = { "saxpy", "block_sum", "nested_if", "collatz", "goto_mesh", "private_sort", "chains" };

    struct cu_fixture one, many;

    (void)state;
    create(&one, (struct way){ UNITS, 1, false, true });
    create(&many, (struct way){ UNITS, THREADS, false, true });
    fixture_load(&one, CU_KERNELS);
    fixture_load(&many, CU_KERNELS);
    for (unsigned k = 0; k < sizeof(plain) / sizeof(plain[0]); k++) {
        uint32_t *out;

        renew(&one);
        renew(&many);
        run_kernel(&one, plain[k], 0, &out);
        run_kernel(&many, plain[k], 0, &out);
        struct hw_cu_counters a = counters(&one), b = counters(&many);
        if (a.warp_instr != b.warp_instr || a.lane_instr != b.lane_instr || a.divergent_branches != b.divergent_branches)
            fail_msg("%s: %llu warp instructions, not %llu", plain[k], (unsigned long long)b.warp_instr, (unsigned long long)a.warp_instr);
    }
    fixture_destroy(&one);
    fixture_destroy(&many);
}

/* Timed: the same cycles in each run, and however the caller slices them. */
static void same_cycles(void **state)
{
    struct cu_fixture f;

    (void)state;
    create(&f, (struct way){ UNITS, THREADS, false, false });
    fixture_load(&f, CU_KERNELS);
    for (unsigned k = 0; k < KERNELS; k++) {
        uint64_t cycles[4];

        for (unsigned i = 0; i < 4; i++) {
            uint32_t *out;

            f.config.host_threads = i == 3 ? 2 : THREADS;
            renew(&f);
            cycles[i] = run_kernel(&f, kernels[k], i == 2 ? 777 : 0, &out);
        }
        if (cycles[0] != cycles[1] || cycles[0] != cycles[2] || cycles[0] != cycles[3])
            fail_msg("%s: %llu %llu, in slices %llu, on two threads %llu cycles", kernels[k], (unsigned long long)cycles[0], (unsigned long long)cycles[1],
                     (unsigned long long)cycles[2], (unsigned long long)cycles[3]);
    }
    fixture_destroy(&f);
}

/* One unit with a pool takes all the ways of several, but for the threads: and then cycles are those of one thread. */
static void one_unit(void **state)
{
    (void)state;
    for (unsigned w = 0; w < 4; w += 3) {
        struct cu_fixture one, pool;

        create(&one, (struct way){ 1, 1, w & 1, w & 2 });
        create(&pool, (struct way){ 1, 2, w & 1, w & 2 });
        fixture_load(&one, CU_KERNELS);
        fixture_load(&pool, CU_KERNELS);
        for (unsigned k = 0; k < KERNELS; k++) {
            uint32_t *a, *b;

            renew(&one);
            renew(&pool);
            assert_null(one.cus->pool);
            assert_non_null(pool.cus->pool);
            assert_int_equal(run_kernel(&one, kernels[k], 0, &a), run_kernel(&pool, kernels[k], 0, &b));
            assert_memory_equal(a, b, 8 * ITEMS);
            assert_true(asked(&one) == 0 && (asked(&pool) > 0 || strcmp(kernels[k], "function_pointers") != 0));
            struct hw_cu_counters x = counters(&one), y = counters(&pool);
            assert_memory_equal(&x, &y, sizeof(x));
        }
        fixture_destroy(&one);
        fixture_destroy(&pool);
    }
}

/* ---- Programs of our own ---- */

static struct outcome run_code(struct cu_fixture *f, uint32_t groups, uint32_t lanes, uint64_t args)
{
    struct launch l = { .entry = FLAT_CODE_VA, .grid = { groups, 1, 1 }, .block = { lanes, 1, 1 }, .args = args };

    fixture_code(f, code, n);
    return fixture_run(f, &l);
}

/* amoadd by all; a counter by lr and sc; a float sum of halves, which is exact. */
static void atomics(void **state)
{
    (void)state;
    for (unsigned functional = 0; functional < 2; functional++) {
        struct cu_fixture f;
        float sum;

        create(&f, (struct way){ UNITS, THREADS, false, functional });
        uint64_t va = fixture_alloc(&f, 4096);
        n = 0;
        addi(T0, X0, 3);
        emit(r_type(MATCH(amoadd_w), X0, A0, T0));
        addi(A1, A0, 256);
        emit(i_type(MATCH(lr_w), T1, A1, 0));
        addi(T1, T1, 1);
        emit(r_type(MATCH(sc_w), T2, A1, T1));
        emit(b_type(MATCH(bne), T2, X0, -12));
        emit(MATCH(lui) | T0 << 7 | 0x3f000000u);
        emit(i_type(MATCH(fmv_w_x), 0, T0, 0));
        addi(A1, A0, 512);
        emit(r_type(MATCH(p_famoadd), 1, A1, 0));
        ret();
        assert_int_equal(run_code(&f, 64, 64, va).state, HW_CU_DONE);
        assert_int_equal(*(uint32_t *)fixture_host(&f, va), 3 * 64 * 64);
        assert_int_equal(*(uint32_t *)fixture_host(&f, va + 256), 64 * 64);
        memcpy(&sum, fixture_host(&f, va + 512), 4);
        assert_true(sum == 64 * 64 * 0.5f);
        fixture_destroy(&f);
    }
}

/* x11 = A0 + 128 * group, where the group's first lane leaves its result. */
static void put_row(void)
{
    csrr(T0, GROUP);
    emit(i_type(MATCH(slli), A1, T0, 7));
    emit(r_type(MATCH(add), A1, A0, A1));
}

/* Half of the lanes wait at a return that leads to a page nobody has been in, and are let go by the others' barrier, while other units run. */
static void returns_elsewhere(void **state)
{
    enum { GROUPS = 40 };

    (void)state;
    for (unsigned w = 0; w < 4; w++) {
        struct cu_fixture f;

        create(&f, (struct way){ UNITS, THREADS, w & 1, w & 2 });
        uint64_t va = fixture_alloc(&f, GROUPS * 128);
        n = 0;
        put_row();
        csrr(T2, CU_CSR_LANE);
        addi(T0, X0, 16);
        addi(A2, RA, 0);
        emit(MATCH(auipc) | T1 << 7 | 2u << 12);             /* the last instruction of page 1, from here */
        emit(i_type(MATCH(jalr), X0, T1, 4092 - 4 * ((int)n - 1) - 4096));
        fixture_code(&f, code, n);
        const uint32_t call = j_type(MATCH(jal), RA, 4100), behind[] = { s_type(MATCH(sw), A1, T0, 0), i_type(MATCH(jalr), X0, A2, 0) };
        const uint32_t function[] = { b_type(MATCH(bge), T2, T0, 8), MATCH(p_barrier), i_type(MATCH(jalr), X0, RA, 0) };
        memcpy(f.mem + 4096 + 4092, &call, sizeof(call));
        memcpy(f.mem + 2 * 4096, behind, sizeof(behind));
        memcpy(f.mem + 3 * 4096, function, sizeof(function));
        struct launch l = { .entry = FLAT_CODE_VA, .grid = { GROUPS, 1, 1 }, .block = { 32, 1, 1 }, .args = va };
        assert_int_equal(fixture_run(&f, &l).state, HW_CU_DONE);
        for (uint32_t g = 0; g < GROUPS; g++)
            assert_int_equal(*(uint32_t *)fixture_host(&f, va + 128 * g), 16);
        assert_true(asked(&f) > 0);
        fixture_destroy(&f);
    }
}

/* Each group calls a function of its own, in a page of its own, most of which lie outside of the code that was announced. */
static void functions_elsewhere(void **state)
{
    enum { PAGES = 24, GROUPS = 96 };

    (void)state;
    for (unsigned w = 0; w < 4; w++) {
        struct cu_fixture f;

        create(&f, (struct way){ UNITS, THREADS, w & 1, w & 2 });
        uint64_t va = fixture_alloc(&f, GROUPS * 128);
        n = 0;
        put_row();
        emit(MATCH(auipc) | T1 << 7);                        /* here + 4096 * (1 + group % PAGES) */
        addi(T2, X0, PAGES);
        emit(r_type(MATCH(remu), T0, T0, T2));
        addi(T0, T0, 1);
        emit(i_type(MATCH(slli), T0, T0, 12));
        emit(r_type(MATCH(add), T1, T1, T0));
        addi(A2, RA, 0);
        emit(i_type(MATCH(jalr), RA, T1, -12));
        addi(RA, A2, 0);
        emit(s_type(MATCH(sw), A1, A3, 0));
        ret();
        fixture_code(&f, code, n);
        for (uint32_t p = 1; p <= PAGES; p++) {
            const uint32_t function[] = { i_type(MATCH(addi), A3, X0, (int)(100 + p)), i_type(MATCH(jalr), X0, RA, 0) };

            memcpy(f.mem + 4096 * p, function, sizeof(function));
        }
        struct launch l = { .entry = FLAT_CODE_VA, .grid = { GROUPS, 1, 1 }, .block = { 32, 1, 1 }, .args = va };
        assert_int_equal(fixture_run(&f, &l).state, HW_CU_DONE);
        for (uint32_t g = 0; g < GROUPS; g++)
            assert_int_equal(*(uint32_t *)fixture_host(&f, va + 128 * g), 101 + g % PAGES);
        assert_true(asked(&f) >= PAGES);
        fixture_destroy(&f);
    }
}

/* Each group writes a function and runs it, several times over, while others run theirs. */
static void code_that_changes(void **state)
{
    enum { GROUPS = 48, ROUNDS = 5 };

    (void)state;
    for (unsigned w = 0; w < 4; w++) {
        struct cu_fixture f;

        create(&f, (struct way){ UNITS, THREADS, w & 1, w & 2 });
        f.code_writable = true;
        uint64_t va = fixture_alloc(&f, GROUPS * 128);
        n = 0;
        put_row();
        emit(MATCH(auipc) | T1 << 7);
        addi(T0, T0, 1);
        emit(i_type(MATCH(slli), T0, T0, 12));
        emit(r_type(MATCH(add), T1, T1, T0));               /* page 1 + group, at -12 */
        addi(A2, RA, 0);
        addi(A4, X0, 0);
        addi(T0, X0, ROUNDS);
        size_t loop = n;
        emit(i_type(MATCH(lw), T2, T1, -12));               /* addi a3, x0, imm: one more in imm */
        emit(MATCH(lui) | A3 << 7 | 0x00100000u);
        emit(r_type(MATCH(add), T2, T2, A3));
        emit(s_type(MATCH(sw), T1, T2, -12));
        emit(MATCH(fence_i));
        emit(i_type(MATCH(jalr), RA, T1, -12));
        emit(r_type(MATCH(add), A4, A4, A3));
        addi(T0, T0, -1);
        emit(b_type(MATCH(bne), T0, X0, ((int)loop - (int)n) * 4));
        addi(RA, A2, 0);
        emit(s_type(MATCH(sw), A1, A4, 0));
        ret();
        fixture_code(&f, code, n);
        for (uint32_t p = 1; p <= GROUPS; p++) {
            const uint32_t function[] = { i_type(MATCH(addi), A3, X0, (int)p), i_type(MATCH(jalr), X0, RA, 0) };

            memcpy(f.mem + 4096 * p, function, sizeof(function));
        }
        struct launch l = { .entry = FLAT_CODE_VA, .grid = { GROUPS, 1, 1 }, .block = { 1, 1, 1 }, .args = va };
        assert_int_equal(fixture_run(&f, &l).state, HW_CU_DONE);
        for (uint32_t g = 0; g < GROUPS; g++)
            assert_int_equal(*(uint32_t *)fixture_host(&f, va + 128 * g), ROUNDS * (g + 1) + ROUNDS * (ROUNDS + 1) / 2);
        assert_true(asked(&f) >= GROUPS * ROUNDS);
        fixture_destroy(&f);
    }
}

/* ---- Faults, ends ---- */

/* Group g traps after (64 - g) rounds, or all at once: the one that stops the dispatch is the first in device time, then of the lowest unit. */
static void first_fault(void **state)
{
    struct cu_fixture two[2];

    (void)state;
    create(&two[0], (struct way){ UNITS, THREADS, false, false });
    create(&two[1], (struct way){ UNITS, THREADS, false, true });
    for (unsigned together = 0; together < 2; together++) {
        struct outcome first[2];

        for (unsigned run = 0; run < 20; run++) {
            struct cu_fixture *f = &two[run & 1];

            renew(f);
            n = 0;
            csrr(T0, GROUP);
            addi(T1, X0, 64);
            emit(r_type(MATCH(sub), T1, T1, T0));
            if (together)
                addi(T1, X0, 1);
            addi(T1, T1, -1);
            emit(b_type(MATCH(bne), T1, X0, -4));
            emit(MATCH(ebreak));
            struct outcome o = run_code(f, UNITS * 16, 32, 0);
            assert_int_equal(o.state, HW_CU_FAULTED);
            assert_int_equal(o.fault.fault, PETREL_FAULT_TRAP);
            assert_int_equal(counters(f).faults, 1);
            if (together)
                assert_int_equal(PETREL_FAULT_INFO_CU(o.fault.info), 0);
            if (run < 2)
                first[run] = o;
            assert_int_equal(o.cycles, first[run & 1].cycles);
            assert_memory_equal(&o.fault, &first[run & 1].fault, sizeof(o.fault));
        }
    }
    fixture_destroy(&two[0]);
    fixture_destroy(&two[1]);
}

/* Dropped in the middle, forgotten between slices, and right afterwards. */
static void kill_and_invalidate(void **state)
{
    struct cu_fixture f;
    struct hw_cu_fault where;
    uint64_t cycles = 0;
    uint32_t *out;

    (void)state;
    create(&f, (struct way){ UNITS, THREADS, false, false });
    fixture_load(&f, CU_KERNELS);
    for (unsigned i = 0; i < 8; i++) {
        uint64_t va = fixture_alloc(&f, sizeof(struct test_args));
        struct petrel_dispatch d = { .entry_va = fixture_kernel(&f, "collatz"), .args_va = va, .grid = { 64, 1, 1 }, .block = { 64, 1, 1 },
                                     .code_va = FLAT_CODE_VA, .code_B = f.code_B };

        *(struct test_args *)fixture_host(&f, va) = (struct test_args){ .out = fixture_alloc(&f, 8 * ITEMS), .n = ITEMS, .m = 3 };
        assert_true(hw_cu_start(f.cus, &d, 1, NULL, &where));
        for (unsigned k = 0; k < i; k++) {
            assert_int_equal(hw_cu_run(f.cus, 300, &cycles, &where), HW_CU_RUNNING);
            assert_true(hw_cu_probe(f.cus, &where));
            hw_cu_invalidate(f.cus);
        }
        hw_cu_kill(f.cus);
    }
    run_kernel(&f, "collatz", 0, &out);
    for (uint32_t i = 0; i < ITEMS; i++)
        assert_int_equal(out[i], div_collatz(i + 3));
    fixture_destroy(&f);
}

/* A dispatch that is broken on purpose breaks as on one thread. */
static void sabotaged(void **state)
{
    static const struct hw_cu_sabotage sabotage[] = { { .hang = true }, { .wild = true, .wild_va = 0x123 }, { .illegal = true, .illegal_bits = 0xffffffff } };

    (void)state;
    for (unsigned s = 0; s < 3; s++) {
        struct outcome o[2];

        for (unsigned i = 0; i < 2; i++) {
            struct cu_fixture f;

            create(&f, (struct way){ UNITS, i ? THREADS : 1, false, false });
            fixture_load(&f, CU_KERNELS);
            uint64_t va = fixture_alloc(&f, sizeof(struct test_args));
            *(struct test_args *)fixture_host(&f, va) =
                (struct test_args){ .in = fixture_alloc(&f, 4 * ITEMS), .out = fixture_alloc(&f, 4 * ITEMS), .n = ITEMS };
            struct launch l = { .entry = fixture_kernel(&f, "saxpy"), .grid = { 64, 1, 1 }, .block = { 64, 1, 1 }, .args = va, .sabotage = sabotage[s] };
            o[i] = fixture_run(&f, &l);
            fixture_destroy(&f);
        }
        assert_int_equal(o[0].state, s ? HW_CU_FAULTED : HW_CU_HUNG);
        assert_int_equal(o[1].state, o[0].state);
        assert_memory_equal(&o[1].fault, &o[0].fault, sizeof(o[0].fault));
    }
}

/* ---- No threads to be had ---- */

static uint32_t threads_left;

static int few_threads(pthread_t *t, const char *name, void *(*fn)(void *), void *arg)
{
    if (!threads_left)
        return EAGAIN;
    threads_left--;
    return umd_sys_default()->thread_create(t, name, fn, arg);
}

static void no_threads(void **state)
{
    struct cu_fixture f;
    struct umd_sys table = *umd_sys_default();
    uint64_t bytes, blocks, bytes_after, blocks_after;
    struct hw_cu_array *cus;
    umdErrorDetail detail;

    (void)state;
    create(&f, (struct way){ UNITS, 1, false, false });
    f.config.host_threads = THREADS;
    table.thread_create = few_threads;
    umd_sys_set(&table);
    for (uint32_t have = 0; have < THREADS - 1; have++) {
        umd_alloc_live(&bytes, &blocks);
        threads_left = have;
        assert_int_equal(hw_cu_array_create(&f.config, &cus), UMD_ERR_RES_THREADS);
        assert_true(umd_record_export(&detail) && detail.code == UMD_ERR_RES_THREADS);
        umd_alloc_live(&bytes_after, &blocks_after);
        assert_int_equal(bytes_after, bytes);
        assert_int_equal(blocks_after, blocks);
    }
    threads_left = THREADS - 1;
    assert_int_equal(hw_cu_array_create(&f.config, &cus), UMD_SUCCESS);
    assert_int_equal(threads_left, 0);
    hw_cu_array_destroy(cus);
    f.config.host_threads = HW_CU_THREADS_MAX; /* no more than there are units */
    threads_left = UNITS - 1;
    assert_int_equal(hw_cu_array_create(&f.config, &cus), UMD_SUCCESS);
    hw_cu_array_destroy(cus);
    umd_sys_set(NULL);
    fixture_destroy(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_results), cmocka_unit_test(same_figures), cmocka_unit_test(same_cycles), cmocka_unit_test(one_unit),
        cmocka_unit_test(atomics), cmocka_unit_test(functions_elsewhere), cmocka_unit_test(returns_elsewhere), cmocka_unit_test(code_that_changes),
        cmocka_unit_test(first_fault), cmocka_unit_test(kill_and_invalidate), cmocka_unit_test(sabotaged), cmocka_unit_test(no_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
