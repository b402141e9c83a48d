/* SPDX-License-Identifier: MIT */
/* test_cu_atomic.c - atomics: every amo on edge values, cas, float atomics, and the reservations of lr with all that ends them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <hw/petrel_pte.h>

#include "cu_asm.h"
#include "cu_fixture.h"

/* A lane's operands and results: two addresses, two operands. */
struct row { uint64_t va, value, other_va, other, out, out2, pad[2]; };

static struct cu_fixture *f;

/* x5: the lane's row, x6 to x9 its first four words. */
static unsigned put_prologue(uint32_t *code)
{
    unsigned n = 0;

    code[n++] = i_type(MATCH(csrrs), 5, 0, CU_CSR_LANE);
    code[n++] = i_type(MATCH(slli), 5, 5, 6);
    code[n++] = r_type(MATCH(add), 5, 10, 5);
    for (unsigned i = 0; i < 4; i++)
        code[n++] = i_type(MATCH(ld), 6 + i, 5, 8 * (int)i);
    return n;
}

static struct outcome run(uint32_t *code, unsigned n, struct row rows[32], unsigned lanes)
{
    struct launch l = { .grid = { 1, 1, 1 }, .block = { lanes, 1, 1 }, .local_B = 4096 };
    struct outcome o;

    code[n++] = i_type(MATCH(jalr), 0, 1, 0);
    l.entry = fixture_code(f, code, n);
    l.args = fixture_alloc(f, 32 * sizeof(*rows));
    memcpy(fixture_host(f, l.args), rows, 32 * sizeof(*rows));
    o = fixture_run(f, &l);
    assert_true(o.started);
    memcpy(rows, fixture_host(f, l.args), 32 * sizeof(*rows));
    return o;
}

/* ---- amo ---- */

static const uint64_t edges[] = { 0, 1, UINT64_MAX, 0x7fffffff, 0x80000000, 0xffffffff, 0x7fffffffffffffffull, 0x8000000000000000ull,
                                  0x0123456789abcdefull, 0xffffffff00000001ull };
#define EDGES (sizeof(edges) / sizeof(edges[0]))

static uint64_t expect(const char *name, bool w, uint64_t old, uint64_t v)
{
    int64_t a = w ? (int32_t)old : (int64_t)old, b = w ? (int32_t)v : (int64_t)v;
    uint64_t ua = w ? (uint32_t)old : old, ub = w ? (uint32_t)v : v;

    if (!strncmp(name, "amoswap", 7))
        return v;
    if (!strncmp(name, "amoadd", 6))
        return old + v;
    if (!strncmp(name, "amoxor", 6))
        return old ^ v;
    if (!strncmp(name, "amoand", 6))
        return old & v;
    if (!strncmp(name, "amoor", 5))
        return old | v;
    if (!strncmp(name, "amominu", 7))
        return ua < ub ? old : v;
    if (!strncmp(name, "amomaxu", 7))
        return ua > ub ? old : v;
    if (!strncmp(name, "amomin", 6))
        return a < b ? old : v;
    assert_true(!strncmp(name, "amomax", 6));
    return a > b ? old : v;
}

static uint64_t as_register(bool w, uint64_t v)
{
    return w ? (uint64_t)(int64_t)(int32_t)(uint32_t)v : v;
}

/* Each lane on its own word, or all on one; memory is read back by ld. where: 0 global, 1 local, 2 private. */
static void check_amo(unsigned op, unsigned where, bool shared, unsigned lanes, unsigned shift)
{
    bool w = (cu_insns[op].match >> 12 & 7) == 2;
    struct row rows[32] = { 0 };
    uint64_t memory[32], old[32];
    uint32_t code[32];
    unsigned n = put_prologue(code);
    uint64_t base;

    fixture_reset_data(f);
    base = where == 0 ? fixture_alloc(f, 4096) : where == 1 ? PETREL_LOCAL_BASE + 512 : (uint64_t)-256;
    if (where == 2)
        code[n++] = r_type(MATCH(add), 6, 6, 2);
    for (unsigned l = 0; l < 32; l++)
        rows[l] = (struct row){ .va = base + (shared ? 0 : where == 2 ? l % 4 * 8 : l * 8), .value = edges[(l + shift) % EDGES],
                                .other = edges[shared ? shift % EDGES : (l * 3 + shift / 2) % EDGES] };
    code[n++] = s_type(MATCH(sd), 6, 9, 0);
    code[n++] = r_type(cu_insns[op].match, 11, 6, 7) | (shift & 3u) << 25; /* aq and rl change nothing */
    code[n++] = i_type(MATCH(ld), 12, 6, 0);
    code[n++] = s_type(MATCH(sd), 5, 11, offsetof(struct row, out));
    code[n++] = s_type(MATCH(sd), 5, 12, offsetof(struct row, out2));
    assert_int_equal(run(code, n, rows, lanes).state, HW_CU_DONE);
    for (unsigned l = 0; l < lanes; l++)
        memory[l] = rows[l].other;
    for (unsigned l = 0; l < lanes; l++) {
        uint64_t *m = &memory[shared && where != 2 ? 0 : l], result = expect(cu_insns[op].mnemonic, w, *m, rows[l].value);

        old[l] = as_register(w, *m);
        *m = w ? (*m & ~0xffffffffull) | (uint32_t)result : result;
    }
    for (unsigned l = 0; l < lanes; l++)
        if (rows[l].out != old[l] || rows[l].out2 != memory[shared && where != 2 ? 0 : l])
            fail_msg("%s where %u%s lane %u: 0x%llx, memory 0x%llx, not 0x%llx, 0x%llx", cu_insns[op].mnemonic, where, shared ? " shared" : "", l,
                     (unsigned long long)rows[l].out, (unsigned long long)rows[l].out2, (unsigned long long)old[l],
                     (unsigned long long)memory[shared && where != 2 ? 0 : l]);
}

static void test_amo(void **state)
{
    unsigned tested = 0;

    (void)state;
    for (unsigned op = 0; op < CU_OP_COUNT; op++) {
        if (strncmp(cu_insns[op].mnemonic, "amo", 3))
            continue;
        tested++;
        for (unsigned k = 0; k < 4 * 3 * 2 * 6; k++) {
            f = &fixture_ways[k % 4];
            check_amo(op, k / 4 % 3, k / 12 % 2, k % 5 ? 32 : 21, k / 24 + k % 7);
        }
    }
    assert_int_equal(tested, 18);
}

/* p.cas of all lanes on one word: one finds what it expects, its successor what that one stored. */
static void test_cas(void **state)
{
    (void)state;
    for (unsigned k = 0; k < 8; k++) {
        bool w = k & 1;
        struct row rows[32] = { 0 };
        uint32_t code[32];
        unsigned n = put_prologue(code);
        uint64_t va, value = w ? 0xfffffff000000000ull : 0;

        f = &fixture_ways[k / 2];
        fixture_reset_data(f);
        va = fixture_alloc(f, 8);
        for (unsigned l = 0; l < 32; l++) /* lane l waits for l, lane 7 for what is never there */
            rows[l] = (struct row){ .va = va, .value = l + 1, .other = l == 7 ? 99 : l };
        code[n++] = r_type(w ? MATCH(p_cas_w) : MATCH(p_cas_d), 9, 6, 7);
        code[n++] = s_type(MATCH(sd), 5, 9, offsetof(struct row, out));
        memcpy(fixture_host(f, va), &value, 8);
        assert_int_equal(run(code, n, rows, 32).state, HW_CU_DONE);
        for (unsigned l = 0; l < 32; l++)
            assert_int_equal(rows[l].out, l < 7 ? l : 7);
        memcpy(&value, fixture_host(f, va), 8);
        assert_true(value == (w ? 0xfffffff000000007ull : 7));
    }
}

/* Sums of small numbers are exact in any order; minimum and maximum of all lanes. */
static void test_float(void **state)
{
    static const uint16_t ops[] = { CU_OP_p_famoadd, CU_OP_p_famomin, CU_OP_p_famomax };
    static const float want[] = { 100 + 31 * 32 / 2 - 32 * 16, -16, 100 };

    (void)state;
    for (unsigned k = 0; k < 12; k++) {
        struct row rows[32] = { 0 };
        uint32_t code[32];
        unsigned n = put_prologue(code);
        float start = 100, v;
        uint64_t va;

        f = &fixture_ways[k % 4];
        fixture_reset_data(f);
        va = fixture_alloc(f, 4);
        memcpy(fixture_host(f, va), &start, 4);
        for (unsigned l = 0; l < 32; l++) {
            rows[l].va = va;
            v = (float)l - 16;
            memcpy(&rows[l].value, &v, 4);
        }
        code[n++] = i_type(MATCH(flw), 1, 5, offsetof(struct row, value));
        code[n++] = r_type(cu_insns[ops[k / 4]].match, 2, 6, 1);
        code[n++] = s_type(MATCH(fsd), 5, 2, offsetof(struct row, out));
        assert_int_equal(run(code, n, rows, 32).state, HW_CU_DONE);
        memcpy(&v, fixture_host(f, va), 4);
        assert_true(v == want[k / 4]);
        assert_true(rows[0].out == 0xffffffff42c80000ull); /* what was there, boxed */
    }
}

/* ---- lr and sc ---- */

/*
 * Lane 0 reserves the word at x6, lanes 1 and up words of their own far off. Then `between` runs in all lanes, with x7 the
 * addresses in rows.other_va... and sc in all. Value: what sc gave in lane 0; in the others it must be 0 but for those of `mask`.
 */
struct between { const char *name; uint32_t insn[3]; unsigned count; int lane; int offset; bool ends; };

static uint64_t reserve_and(const struct between *b, bool wide, unsigned lanes, uint64_t *memory_out)
{
    struct row rows[32] = { 0 };
    uint32_t code[40];
    unsigned n = put_prologue(code);
    uint64_t base, value = 0x1111111122222222ull;

    fixture_reset_data(f);
    base = fixture_alloc(f, 65536);
    for (unsigned l = 0; l < 32; l++) {
        rows[l].va = l ? base + 1024 + l * 64 : base + 64;
        rows[l].value = 5;
        rows[l].other_va = (int)l == b->lane ? base + 64 + (uint64_t)(int64_t)b->offset : base + 8192 + l * 64;
        memcpy(fixture_host(f, rows[l].va), &value, 8);
        if (b->lane >= 0)
            memcpy(fixture_host(f, base + 8192 + l * 64), &value, 8);
    }
    code[n++] = r_type(wide ? MATCH(lr_d) : MATCH(lr_w), 11, 6, 0);
    code[n++] = i_type(MATCH(ld), 12, 8, 0);          /* what is there, so that a store of it changes nothing */
    code[n++] = r_type(MATCH(fmv_d_x), 1, 12, 0);
    for (unsigned i = 0; i < b->count; i++)
        code[n++] = b->insn[i];
    code[n++] = r_type(wide ? MATCH(sc_d) : MATCH(sc_w), 13, 6, 7);
    code[n++] = s_type(MATCH(sd), 5, 13, offsetof(struct row, out));
    assert_int_equal(run(code, n, rows, lanes).state, HW_CU_DONE);
    for (unsigned l = 1; l < lanes; l++)
        if (rows[l].out && b->lane != -2)
            fail_msg("%s: sc of lane %u failed", b->name, l);
    memcpy(memory_out, fixture_host(f, base + 64), 8);
    return rows[0].out;
}

static void test_reservations(void **state)
{
    const struct between rows[] = {
        { "nothing", { 0 }, 0, -1, 0, false },
        { "sd of the same", { s_type(MATCH(sd), 8, 12, 0) }, 1, 3, 0, true },
        { "sw of the same", { s_type(MATCH(sw), 8, 12, 0) }, 1, 31, 0, true },
        { "sb of the same", { s_type(MATCH(sb), 8, 12, 0) }, 1, 1, 0, true },
        { "sh into it", { s_type(MATCH(sh), 8, 12, 0) }, 1, 1, 2, true },
        { "sd from before into it", { s_type(MATCH(sd), 8, 0, 0) }, 1, 2, -6, true },
        { "fsd of the same", { s_type(MATCH(fsd), 8, 1, 0) }, 1, 4, 0, true },
        { "fsw of the same", { s_type(MATCH(fsw), 8, 1, 0) }, 1, 4, 0, true },
        { "amoor of 0", { r_type(MATCH(amoor_w), 0, 8, 0) }, 1, 5, 0, true },
        { "p.famomin", { r_type(MATCH(p_famomin), 2, 8, 1) }, 1, 5, 0, true },
        { "p.cas of the same", { r_type(MATCH(p_cas_d), 12, 8, 12) }, 1, 6, 0, true },
        { "p.cas that does not store", { i_type(MATCH(addi), 14, 12, 1), r_type(MATCH(p_cas_d), 14, 8, 12) }, 2, 6, 0, false },
        { "another lane's lr and sc of the same", { r_type(MATCH(lr_d), 14, 8, 0), r_type(MATCH(sc_d), 15, 8, 14) }, 2, -2, 0, true },
        { "a store next to it", { s_type(MATCH(sd), 8, 12, 0) }, 1, 3, 8, false },
        { "a store before it", { s_type(MATCH(sw), 8, 12, 0) }, 1, 3, -4, false },
        { "a load of it", { i_type(MATCH(ld), 14, 8, 0) }, 1, 3, 0, false },
        { "fence", { MATCH(fence) | 0x0ff00000 }, 1, -1, 0, false },
    };

    (void)state;
    for (unsigned h = 0; h < 4; h++) {
        f = &fixture_ways[h];
        for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            for (unsigned k = 0; k < 4; k++) {
                uint64_t memory, failed = reserve_and(&rows[i], k & 1, rows[i].lane == 31 || k & 2 ? 32 : 9, &memory);

                if (failed != rows[i].ends)
                    fail_msg("%s, %s: sc gave %llu", rows[i].name, k & 1 ? "lr.d" : "lr.w", (unsigned long long)failed);
                assert_true((memory & 0xffffffff) == 5 || rows[i].ends);
            }
        }
    }
}

/*
 * Stores side by side, of all lanes: the one that hits the word ends lane 0's reservation of it. With a hole: lane 1 does not store, so that
 * nobody writes the word between its neighbours', which it has reserved.
 */
static void test_stores_side_by_side(void **state)
{
    (void)state;
    for (unsigned k = 0; k < 32; k++) {
        struct row rows[32] = { 0 };
        uint32_t code[32];
        unsigned n = put_prologue(code);
        const bool fp = k & 8, hole = k & 16;
        const unsigned size_B = k & 4 ? 8 : 4, own = hole ? 1 : 0;

        f = &fixture_ways[k % 4];
        fixture_reset_data(f);
        const uint64_t base = fixture_alloc(f, 8192);
        for (unsigned l = 0; l < 32; l++)
            rows[l] = (struct row){ .va = l != own ? base + 1024 + 64 * l : hole ? base + size_B : base + 64, .other_va = base + l * size_B, .other = !hole || l != 1 };
        code[n++] = r_type(MATCH(lr_w), 11, 6, 0);
        code[n++] = r_type(MATCH(fmv_d_x), 1, 0, 0);
        if (hole)
            code[n++] = b_type(MATCH(beq), 9, 0, 8);
        code[n++] = s_type(fp ? size_B == 8 ? MATCH(fsd) : MATCH(fsw) : size_B == 8 ? MATCH(sd) : MATCH(sw), 8, fp, 0);
        code[n++] = r_type(MATCH(sc_w), 13, 6, 7);
        code[n++] = s_type(MATCH(sd), 5, 13, offsetof(struct row, out));
        assert_int_equal(run(code, n, rows, 32).state, HW_CU_DONE);
        for (unsigned l = 0; l < 32; l++)
            assert_int_equal(rows[l].out, !hole && l == own);
    }
}

/* sc alone, twice, elsewhere, of another width: fails and stores nothing. */
static void test_sc_fails(void **state)
{
    const struct { uint32_t insn[3]; } rows[] = {
        { { r_type(MATCH(sc_w), 13, 6, 7) } },
        { { r_type(MATCH(lr_w), 11, 6, 0), r_type(MATCH(sc_w), 12, 6, 9), r_type(MATCH(sc_w), 13, 6, 7) } },
        { { r_type(MATCH(lr_w), 11, 6, 0), r_type(MATCH(sc_w), 13, 8, 7) } },
        { { r_type(MATCH(lr_w), 11, 6, 0), r_type(MATCH(sc_d), 13, 6, 7) } },
        { { r_type(MATCH(lr_d), 11, 6, 0), r_type(MATCH(sc_w), 13, 6, 7) } },
        { { r_type(MATCH(lr_w), 11, 6, 0), r_type(MATCH(lr_w), 11, 8, 0), r_type(MATCH(sc_w), 13, 6, 7) } },
    };

    (void)state;
    for (unsigned k = 0; k < 4 * sizeof(rows) / sizeof(rows[0]); k++) {
        struct row io[32] = { 0 };
        uint32_t code[32];
        unsigned n = put_prologue(code);
        uint64_t base;

        f = &fixture_ways[k % 4];
        fixture_reset_data(f);
        base = fixture_alloc(f, 8192);
        for (unsigned l = 0; l < 32; l++)
            io[l] = (struct row){ .va = base + l * 64, .value = 7, .other_va = base + 4096 + l * 64 };
        for (unsigned i = 0; i < 3 && rows[k / 4].insn[i]; i++)
            code[n++] = rows[k / 4].insn[i];
        code[n++] = s_type(MATCH(sd), 5, 13, offsetof(struct row, out));
        assert_int_equal(run(code, n, io, 32).state, HW_CU_DONE);
        for (unsigned l = 0; l < 32; l++) {
            assert_int_equal(io[l].out, 1);
            assert_int_equal(*(uint32_t *)fixture_host(f, base + l * 64), 0);
            assert_int_equal(*(uint32_t *)fixture_host(f, base + 4096 + l * 64), 0);
        }
    }
}

/* One counter, all lanes of several warps and groups: no increment is lost. */
static void test_counter(void **state)
{
    uint32_t code[16];
    struct launch l = { .grid = { 4, 1, 1 }, .block = { 128, 1, 1 } };

    (void)state;
    for (unsigned h = 0; h < 4; h++) {
        unsigned n = 0;

        f = &fixture_ways[h];
        code[n++] = i_type(MATCH(addi), 6, 0, 4);
        code[n++] = r_type(MATCH(lr_w), 7, 10, 0);
        code[n++] = i_type(MATCH(addi), 7, 7, 1);
        code[n++] = r_type(MATCH(sc_w), 8, 10, 7);
        code[n++] = b_type(MATCH(bne), 8, 0, -12);
        code[n++] = i_type(MATCH(addi), 6, 6, -1);
        code[n++] = b_type(MATCH(bne), 6, 0, -20);
        code[n++] = i_type(MATCH(jalr), 0, 1, 0);
        l.entry = fixture_code(f, code, n);
        fixture_reset_data(f);
        l.args = fixture_alloc(f, 4);
        assert_int_equal(fixture_run(f, &l).state, HW_CU_DONE);
        assert_int_equal(*(uint32_t *)fixture_host(f, l.args), 4 * 128 * 4);
    }
}

/* A reservation that is left behind: the next dispatch does not have it, and stores of others go on. */
static void test_left_behind(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 4; h++) {
        struct row rows[32] = { 0 };
        uint32_t code[32];
        unsigned n = put_prologue(code);
        uint64_t base;

        f = &fixture_ways[h];
        fixture_reset_data(f);
        base = fixture_alloc(f, 4096);
        for (unsigned l = 0; l < 32; l++)
            rows[l].va = base + l * 8;
        code[n] = r_type(MATCH(lr_w), 11, 6, 0);
        assert_int_equal(run(code, n + 1, rows, 32).state, HW_CU_DONE);
        code[n] = r_type(MATCH(sc_w), 13, 6, 7);
        code[n + 1] = s_type(MATCH(sd), 5, 13, offsetof(struct row, out));
        assert_int_equal(run(code, n + 2, rows, 32).state, HW_CU_DONE);
        for (unsigned l = 0; l < 32; l++)
            assert_int_equal(rows[l].out, 1);
    }
}

/* Misaligned, and where the page forbids it; lr needs to read only. */
static void test_faults(void **state)
{
    static const struct { uint16_t op; uint32_t offset, fault; } rows[] = {
        { CU_OP_amoadd_w, 2, PETREL_FAULT_MISALIGNED }, { CU_OP_amoadd_d, 4, PETREL_FAULT_MISALIGNED }, { CU_OP_lr_d, 4, PETREL_FAULT_MISALIGNED },
        { CU_OP_sc_w, 1, PETREL_FAULT_MISALIGNED }, { CU_OP_p_cas_d, 4, PETREL_FAULT_MISALIGNED }, { CU_OP_p_famoadd, 2, PETREL_FAULT_MISALIGNED },
        { CU_OP_amoswap_d, 8, PETREL_FAULT_ACCESS }, { CU_OP_sc_d, 8, PETREL_FAULT_ACCESS }, { CU_OP_p_cas_w, 8, PETREL_FAULT_ACCESS },
        { CU_OP_lr_w, 8, 0 }, { CU_OP_lr_d, 8, 0 },
    };

    (void)state;
    for (unsigned k = 0; k < 4 * sizeof(rows) / sizeof(rows[0]); k++) {
        struct row io[32] = { 0 };
        uint32_t code[32];
        unsigned n = put_prologue(code);
        struct outcome o;

        f = &fixture_ways[k % 4];
        fixture_reset_data(f);
        for (unsigned l = 0; l < 32; l++)
            io[l].va = FLAT_RO_VA + rows[k / 4].offset;
        code[n++] = cu_insns[rows[k / 4].op].match | 11u << 7 | 6u << 15;
        o = run(code, n, io, 32);
        assert_int_equal(o.state, rows[k / 4].fault ? HW_CU_FAULTED : HW_CU_DONE);
        if (rows[k / 4].fault)
            assert_int_equal(o.fault.fault, rows[k / 4].fault);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_amo), cmocka_unit_test(test_cas), cmocka_unit_test(test_float), cmocka_unit_test(test_reservations),
        cmocka_unit_test(test_stores_side_by_side), cmocka_unit_test(test_sc_fails), cmocka_unit_test(test_counter),
        cmocka_unit_test(test_left_behind), cmocka_unit_test(test_faults),
    };

    return cmocka_run_group_tests_name("cu-atomic", tests, fixture_ways_create, fixture_ways_destroy);
}
