/* SPDX-License-Identifier: MIT */
/* test_cu_mem.c - loads and stores of every width in every shape, across pages and in the apertures; code that is written. */
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
#include "cu_priv.h"

struct row { uint64_t va, value, pad[2]; }; /* of a lane; value: loaded, or to be stored */

static struct cu_fixture *f;
static const uint32_t masks[] = { UINT32_MAX, 0x7ffff, 1, 1u << 31, 0x00ff3c10, 0xaaaaaaaa }; /* lanes */

/* What the manual says of each instruction: bytes, and how they fill a register. */
static const struct access { uint16_t op; uint8_t size_B; bool fp; int kind; } loads[] = { /* kind: -1 sign, 0 zero, 1 ones above */
    { CU_OP_lb, 1, false, -1 }, { CU_OP_lh, 2, false, -1 }, { CU_OP_lw, 4, false, -1 }, { CU_OP_ld, 8, false, 0 }, { CU_OP_lbu, 1, false, 0 },
    { CU_OP_lhu, 2, false, 0 }, { CU_OP_lwu, 4, false, 0 }, { CU_OP_flh, 2, true, 1 }, { CU_OP_flw, 4, true, 1 }, { CU_OP_fld, 8, true, 0 },
}, stores[] = {
    { CU_OP_sb, 1, false, 0 }, { CU_OP_sh, 2, false, 0 }, { CU_OP_sw, 4, false, 0 }, { CU_OP_sd, 8, false, 0 }, { CU_OP_fsh, 2, true, 0 },
    { CU_OP_fsw, 4, true, 0 }, { CU_OP_fsd, 8, true, 0 },
};
#define COUNT(a_) (sizeof(a_) / sizeof((a_)[0]))

static uint64_t filled(const struct access *a, uint64_t v)
{
    unsigned bits = 8 * a->size_B;

    if (bits == 64)
        return v;
    v &= (1ull << bits) - 1;
    return a->kind > 0 ? v | UINT64_MAX << bits : a->kind < 0 ? (uint64_t)((int64_t)(v << (64 - bits)) >> (64 - bits)) : v;
}

static unsigned put_prologue(uint32_t *code)
{
    unsigned n = 0;

    code[n++] = i_type(MATCH(csrrs), 5, 0, CU_CSR_LANE);
    code[n++] = i_type(MATCH(slli), 5, 5, 5);
    code[n++] = r_type(MATCH(add), 5, 10, 5);
    code[n++] = i_type(MATCH(ld), 6, 5, 0);
    return n;
}

/* Lanes from 0 on are launched alone; of others, all are, and a branch leads over the next instructions, by the mask in pad[1]. */
static unsigned lanes_launched(uint32_t mask)
{
    return mask & (mask + 1) ? 32 : (unsigned)__builtin_popcount(mask);
}

static unsigned put_mask(uint32_t *code, unsigned n, uint32_t mask, unsigned skipped)
{
    if (lanes_launched(mask) == (unsigned)__builtin_popcount(mask))
        return n;
    code[n++] = i_type(MATCH(ld), 9, 5, 24);
    code[n++] = b_type(MATCH(beq), 9, 0, 4 + 4 * (int)skipped);
    return n;
}

static struct row *run(uint32_t *code, unsigned n, struct row rows[32], unsigned lanes, uint32_t local_B)
{
    struct launch l = { .grid = { 1, 1, 1 }, .block = { lanes, 1, 1 }, .local_B = local_B };
    struct outcome o;

    code[n++] = i_type(MATCH(jalr), 0, 1, 0);
    l.entry = fixture_code(f, code, n);
    fixture_reset_data(f);
    l.args = fixture_alloc(f, 32 * sizeof(*rows));
    memcpy(fixture_host(f, l.args), rows, 32 * sizeof(*rows));
    o = fixture_run(f, &l);
    assert_true(o.started);
    assert_int_equal(o.state, HW_CU_DONE);
    return fixture_host(f, l.args);
}

/* ---- Shapes: where the lanes' accesses lie ---- */

enum shape { CONTIGUOUS, UNIFORM, REVERSED, STRIDED, SCATTERED, NEARLY_CONTIGUOUS, NEARLY_UNIFORM, SHAPES };

static uint64_t lane_va(enum shape s, unsigned lane, unsigned size_B, uint64_t base)
{
    switch (s) {
    case CONTIGUOUS: return base + lane * size_B;
    case UNIFORM: return base;
    case REVERSED: return base + (31 - lane) * size_B;
    case STRIDED: return base + lane * 160;
    case NEARLY_CONTIGUOUS: return base + lane * size_B + (lane % 21 == 17); /* not as the first lanes let expect */
    case NEARLY_UNIFORM: return base + (lane % 27 == 5);
    default: return base + (lane * 2654435761u >> 7) % 9000;
    }
}

/* Bases: inside a page, misaligned, and so that accesses of all shapes go over the end of one. */
static uint64_t base_of(unsigned k)
{
    static const uint32_t offset[] = { 256, 257, 4096 - 61, 4096 - 3, 4096 - 128, 2 * 4096 - 1 };

    return FLAT_SWAP_VA + 2 * 4096 + offset[k];
}
#define BASES 6u

static uint8_t *byte_at(uint64_t va)
{
    return fixture_host(f, va);
}

static void fill_window(void)
{
    uint32_t x = 12345;

    for (uint64_t va = FLAT_SWAP_VA; va < FLAT_SWAP_VA + FLAT_SWAP_B; va++) {
        x = x * 1664525u + 1013904223u;
        *byte_at(va) = (uint8_t)(x >> 24);
    }
}

static uint64_t window_value(uint64_t va, unsigned size_B)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < size_B; i++)
        v |= (uint64_t)*byte_at(va + i) << (8 * i);
    return v;
}

static void check_load(const struct access *a, enum shape s, unsigned base, uint32_t mask, int imm)
{
    struct row rows[32] = { 0 }, *out;
    uint32_t code[16];
    unsigned n = put_prologue(code);

    for (unsigned l = 0; l < 32; l++)
        rows[l] = (struct row){ lane_va(s, l, a->size_B, base_of(base)) - (uint64_t)(int64_t)imm, 0x7777, { 0, mask >> l & 1 } };
    if (a->fp) /* in one layout or the other, before some lanes are loaded */
        code[n++] = imm & 1 ? r_type(MATCH(fmv_w_x), 7, 0, 0) : r_type(MATCH(fmv_d_x), 7, 0, 0);
    n = put_mask(code, n, mask, 2);
    code[n++] = i_type(cu_insns[a->op].match, 7, 6, imm);
    code[n++] = a->fp ? s_type(MATCH(fsd), 5, 7, 8) : s_type(MATCH(sd), 5, 7, 8);
    out = run(code, n, rows, lanes_launched(mask), 0);
    for (unsigned l = 0; l < 32; l++) {
        uint64_t va = rows[l].va + (uint64_t)(int64_t)imm, want = mask >> l & 1 ? filled(a, window_value(va, a->size_B)) : 0x7777;

        if (out[l].value != want)
            fail_msg("%s shape %d base %u lane %u of 0x%x: 0x%llx, not 0x%llx", cu_insns[a->op].mnemonic, (int)s, base, l, mask,
                     (unsigned long long)out[l].value, (unsigned long long)want);
    }
}

static void test_loads(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 4; h++) {
        f = &fixture_ways[h];
        fill_window();
        for (unsigned i = 0; i < COUNT(loads); i++)
            for (unsigned k = 0; k < SHAPES * BASES; k++)
                for (unsigned m = 0; m < COUNT(masks); m++)
                    check_load(&loads[i], (enum shape)(k % SHAPES), k / SHAPES, masks[m], (int)(k * 37 % 4096) - 2048);
    }
}

/* f4 holds the value as raw bits, or packed as a boxed single where the value is one. */
static void check_store(const struct access *a, enum shape s, unsigned base, uint32_t mask, bool packed)
{
    static uint8_t want[FLAT_SWAP_B];
    struct row rows[32] = { 0 };
    uint32_t code[16];
    unsigned n = put_prologue(code);
    int imm = (int)(base * 691 % 4096) - 2048;

    fill_window();
    for (uint64_t i = 0; i < FLAT_SWAP_B; i++)
        want[i] = *byte_at(FLAT_SWAP_VA + i);
    for (unsigned l = 0; l < 32; l++) {
        rows[l].va = lane_va(s, l, a->size_B, base_of(base)) - (uint64_t)(int64_t)imm;
        rows[l].value = (0x0123456789abcdefull ^ l * 0x0101010101010101ull) | (packed ? 0xffffffff00000000ull : 0);
        rows[l].pad[1] = mask >> l & 1;
        for (unsigned i = 0; mask >> l & 1 && i < a->size_B; i++) /* in lane order: the highest wins */
            want[rows[l].va + (uint64_t)(int64_t)imm - FLAT_SWAP_VA + i] = (uint8_t)(rows[l].value >> (8 * i));
    }
    code[n++] = i_type(a->fp ? MATCH(fld) : MATCH(ld), 7, 5, 8);
    if (packed)
        code[n++] = r_type(MATCH(fsgnj_s), 7, 7, 7);
    n = put_mask(code, n, mask, 1);
    code[n++] = s_type(cu_insns[a->op].match, 6, 7, imm);
    run(code, n, rows, lanes_launched(mask), 0);
    for (uint64_t i = 0; i < FLAT_SWAP_B; i++)
        if (*byte_at(FLAT_SWAP_VA + i) != want[i])
            fail_msg("%s shape %d base %u, lanes 0x%x: byte %llu is 0x%x, not 0x%x", cu_insns[a->op].mnemonic, (int)s, base, mask,
                     (unsigned long long)i, *byte_at(FLAT_SWAP_VA + i), want[i]);
}

static void test_stores(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 4; h++) {
        f = &fixture_ways[h];
        for (unsigned i = 0; i < COUNT(stores); i++)
            for (unsigned k = 0; k < SHAPES * BASES; k++)
                check_store(&stores[i], (enum shape)(k % SHAPES), k / SHAPES, masks[(k + h) % COUNT(masks)], stores[i].fp && k / 3 % 2);
    }
}

/* A store into an aperture and the load of it, misaligned ones, too. Offsets count from local memory, or down from the stack. */
static void check_aperture(const struct access *st, const struct access *ld, bool private, unsigned shift, unsigned lanes)
{
    struct row rows[32], *out;
    uint32_t code[24];
    unsigned n = put_prologue(code);

    for (unsigned l = 0; l < 32; l++)
        rows[l] = (struct row){ private ? (uint64_t)-(int64_t)(64 + shift + l % 3 * 8) : PETREL_LOCAL_BASE + 128 + shift + l * 24, 0, { 0 } };
    for (unsigned l = 0; l < 32; l++)
        rows[l].value = 0xfedcba9876543210ull ^ l * 0x1111111111111111ull;
    if (private)
        code[n++] = r_type(MATCH(add), 6, 6, 2);
    code[n++] = i_type(st->fp ? MATCH(fld) : MATCH(ld), 7, 5, 8);
    code[n++] = s_type(cu_insns[st->op].match, 6, 7, 0);
    code[n++] = i_type(cu_insns[ld->op].match, 8, 6, 0);
    code[n++] = ld->fp ? s_type(MATCH(fsd), 5, 8, 16) : s_type(MATCH(sd), 5, 8, 16);
    out = run(code, n, rows, lanes, 4096);
    for (unsigned l = 0; l < lanes; l++)
        if (out[l].pad[0] != filled(ld, rows[l].value))
            fail_msg("%s, %s %s shift %u lane %u: 0x%llx, not 0x%llx", cu_insns[st->op].mnemonic, cu_insns[ld->op].mnemonic,
                     private ? "private" : "local", shift, l, (unsigned long long)out[l].pad[0], (unsigned long long)filled(ld, rows[l].value));
}

static void test_apertures(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 4; h++) {
        f = &fixture_ways[h];
        for (unsigned i = 0; i < COUNT(loads); i++)
            for (unsigned k = 0; k < COUNT(stores); k++)
                for (unsigned shift = 0; shift < 8 && stores[k].size_B == loads[i].size_B; shift++)
                    for (unsigned where = 0; where < 2; where++)
                        check_aperture(&stores[k], &loads[i], where, shift, shift % 2 ? 32 : 11);
    }
}

/*
 * A place that is the same in all lanes' private memory: two cells of eight bytes, of which a store changes its own bytes in its own lanes.
 * Then a load, in these lanes, too. at: of the first cell, from the top.
 */
static void check_private_row(const struct access *st, const struct access *ld, unsigned at, unsigned shift, uint32_t mask, bool reserved)
{
    struct row rows[32], *out;
    uint32_t code[32];
    unsigned n = put_prologue(code);

    for (unsigned l = 0; l < 32; l++)
        rows[l] = (struct row){ 0x1111222233334444ull * (l + 1), 0xfedcba9876543210ull ^ l * 0x1111111111111111ull, { 0x7777, mask >> l & 1 } };
    if (reserved)
        code[n++] = r_type(MATCH(lr_d), 11, 5, 0);
    code[n++] = i_type(MATCH(addi), 8, 2, -2048);
    code[n++] = i_type(MATCH(addi), 8, 8, 2048 - (int)at);
    code[n++] = s_type(MATCH(sd), 8, 6, 0);
    code[n++] = s_type(MATCH(sd), 8, 6, 8);
    code[n++] = i_type(st->fp ? MATCH(fld) : MATCH(ld), 7, 5, 8);
    n = put_mask(code, n, mask, 3);
    code[n++] = s_type(cu_insns[st->op].match, 8, 7, (int)shift);
    code[n++] = i_type(cu_insns[ld->op].match, 10, 8, (int)shift);
    code[n++] = ld->fp ? s_type(MATCH(fsd), 5, 10, 16) : s_type(MATCH(sd), 5, 10, 16);
    code[n++] = i_type(MATCH(ld), 6, 8, 0);
    code[n++] = i_type(MATCH(ld), 7, 8, 8);
    code[n++] = s_type(MATCH(sd), 5, 6, 0);
    code[n++] = s_type(MATCH(sd), 5, 7, 8);
    out = run(code, n, rows, lanes_launched(mask), 0);
    for (unsigned l = 0; l < lanes_launched(mask); l++) {
        uint64_t cells[2] = { rows[l].va, rows[l].va }, loaded = 0x7777;

        if (mask >> l & 1) {
            memcpy((uint8_t *)cells + shift, &rows[l].value, st->size_B);
            loaded = filled(ld, rows[l].value);
        }
        if (out[l].va != cells[0] || out[l].value != cells[1] || out[l].pad[0] != loaded)
            fail_msg("%s, %s at -%u + %u, lanes 0x%x, lane %u: 0x%llx 0x%llx, read 0x%llx, not 0x%llx 0x%llx 0x%llx", cu_insns[st->op].mnemonic,
                     cu_insns[ld->op].mnemonic, at, shift, mask, l, (unsigned long long)out[l].va, (unsigned long long)out[l].value,
                     (unsigned long long)out[l].pad[0], (unsigned long long)cells[0], (unsigned long long)cells[1], (unsigned long long)loaded);
    }
}

static void test_private_rows(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 4; h++) {
        f = &fixture_ways[h];
        const unsigned places[] = { 16, 128, f->config.private_B };

        for (unsigned i = 0; i < COUNT(loads); i++)
            for (unsigned k = 0; k < COUNT(stores); k++)
                for (unsigned s = 0; s < 8 * COUNT(masks) && stores[k].size_B == loads[i].size_B; s++)
                    check_private_row(&stores[k], &loads[i], places[s % COUNT(places)], s % 8, masks[s / 8], s % 5 == 4);
    }
}

/* A misaligned store over the end of what may be written: the fault has the address of the first byte there, and nothing was changed. */
static void test_fault_across(void **state)
{
    uint32_t code[8];
    struct launch l = { .grid = { 1, 1, 1 }, .block = { 1, 1, 1 } };
    struct outcome o;

    (void)state;
    for (unsigned h = 0; h < 4; h++) {
        f = &fixture_ways[h];
        code[0] = s_type(MATCH(sd), 10, 1, -3);
        code[1] = i_type(MATCH(jalr), 0, 1, 0);
        memset(fixture_host(f, FLAT_RO_VA - 8), 0x5a, 16);
        l.entry = fixture_code(f, code, 2);
        l.args = FLAT_RO_VA;
        o = fixture_run(f, &l);
        assert_int_equal(o.state, HW_CU_FAULTED);
        assert_int_equal(o.fault.fault, PETREL_FAULT_ACCESS);
        assert_int_equal(o.fault.va, FLAT_RO_VA);
        for (unsigned i = 0; i < 16; i++)
            assert_int_equal(*(uint8_t *)fixture_host(f, FLAT_RO_VA - 8 + i), 0x5a);
    }
}

/*
 * One lane's access reaches beyond the end of memory, the others' do not: that lane is named with the first address that is not there,
 * and the instruction has done nothing at all, neither to registers nor to memory.
 */
static void check_fault_of_lane(const struct access *a, bool store, unsigned lane)
{
    const uint64_t bad_va = store ? FLAT_RO_VA : FLAT_VA + FLAT_B, first_va = bad_va - 33 * 64;
    struct row rows[32];
    struct launch l = { .grid = { 1, 1, 1 }, .block = { 32, 1, 1 } };
    uint64_t f7[32];
    uint32_t code[16];
    unsigned n = put_prologue(code);

    for (unsigned i = 0; i < 32; i++)
        rows[i] = (struct row){ .va = i == lane ? bad_va - (a->size_B - 1) : first_va + 64 * i, .value = 0x3ff8000000000000 + i };
    if (a->size_B == 1)
        rows[lane].va = bad_va;
    code[n++] = i_type(MATCH(ld), 7, 5, 8);
    code[n++] = i_type(MATCH(fld), 7, 5, 8);
    code[n++] = store ? s_type(cu_insns[a->op].match, 6, 7, 0) : i_type(cu_insns[a->op].match, 7, 6, 0);
    code[n++] = i_type(MATCH(jalr), 0, 1, 0);
    l.entry = fixture_code(f, code, n);
    fixture_reset_data(f);
    l.args = fixture_alloc(f, sizeof(rows));
    memcpy(fixture_host(f, l.args), rows, sizeof(rows));
    memset(fixture_host(f, first_va), 0x5a, 32 * 64);
    struct outcome o = fixture_run(f, &l);
    const struct cu_warp *w = &f->cus->cus[0].warps[0];

    assert_int_equal(o.state, HW_CU_FAULTED);
    assert_int_equal(o.fault.fault, store ? PETREL_FAULT_ACCESS : PETREL_FAULT_PAGE);
    assert_int_equal(o.fault.va, bad_va);
    assert_int_equal(o.fault.pc, l.entry + 4 * (n - 2));
    assert_int_equal(PETREL_FAULT_INFO_LANE(o.fault.info), lane);
    assert_int_equal(PETREL_FAULT_INFO_ACCESS(o.fault.info), store ? PETREL_ACCESS_WRITE : PETREL_ACCESS_READ);
    cu_f64_read(w, 7, f7);
    for (unsigned i = 0; i < 32; i++) {
        assert_int_equal(w->x[7].u[i], rows[i].value);
        assert_int_equal(f7[i], rows[i].value);
    }
    for (unsigned i = 0; i < 32 * 64; i++)
        assert_int_equal(*byte_at(first_va + i), 0x5a);
}

static void test_fault_of_lane(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 4; h++) {
        f = &fixture_ways[h];
        for (unsigned lane = 0; lane < 32; lane += lane ? 18 : 13) {
            for (unsigned i = 0; i < COUNT(loads); i++)
                check_fault_of_lane(&loads[i], false, lane);
            for (unsigned i = 0; i < COUNT(stores); i++)
                check_fault_of_lane(&stores[i], true, lane);
        }
    }
}

/* ---- fence.i ---- */

/* An instruction that has run is written over: behind fence.i the new one runs, in this very slice. */
static void test_written_code(void **state)
{
    uint32_t code[24];
    struct launch l = { .grid = { 1, 1, 1 }, .block = { 32, 1, 1 } };

    (void)state;
    for (unsigned h = 0; h < 4; h++) {
        unsigned n = 0, at;
        uint64_t *out;

        f = &fixture_ways[h];
        f->code_writable = true;
        code[n++] = i_type(MATCH(addi), 28, 0, 3);                  /* rounds */
        code[n++] = i_type(MATCH(addi), 29, 0, 0);                  /* sum */
        code[n++] = MATCH(auipc) | 6u << 7;
        at = n;
        code[n++] = i_type(MATCH(addi), 29, 29, 1);                 /* becomes +100, then +101, ... */
        code[n++] = i_type(MATCH(lw), 7, 6, 4);
        code[n++] = MATCH(lui) | 30u << 7 | 100u << 20;             /* 100 where addi has its immediate */
        code[n++] = r_type(MATCH(addw), 7, 7, 30);
        code[n++] = s_type(MATCH(sw), 6, 7, 4);
        code[n++] = MATCH(fence_i);
        code[n++] = i_type(MATCH(addi), 28, 28, -1);
        code[n] = b_type(MATCH(bne), 28, 0, ((int)at - (int)n) * 4);
        n++;
        code[n++] = s_type(MATCH(sd), 10, 29, 0);
        code[n++] = i_type(MATCH(jalr), 0, 1, 0);
        l.entry = fixture_code(f, code, n);
        fixture_reset_data(f);
        l.args = fixture_alloc(f, 8);
        out = fixture_host(f, l.args);
        assert_int_equal(fixture_run(f, &l).state, HW_CU_DONE);
        assert_int_equal(*out, 1 + 101 + 201);
        f->code_writable = false;
    }
}

/* fence.i costs what has changed: the other instruction stays decoded. A region that begins in the midst of a page, and reaches over several. */
static void test_fence_i_forgets_what_changed(void **state)
{
    const uint64_t va = FLAT_CODE_VA + 100, far = FLAT_CODE_VA + 3 * PETREL_PAGE_SIZE + 8;
    const uint32_t nop = MATCH(addi), entry[] = { MATCH(fence_i), i_type(MATCH(jalr), 0, 1, 0) };
    struct launch l = { .entry = va, .grid = { 1, 1, 1 }, .block = { 1, 1, 1 } };
    struct cu_region *rg;

    (void)state;
    f = &fixture_ways[0];
    fixture_code(f, &nop, 1);
    f->code_B = 3 * PETREL_PAGE_SIZE + 100;
    memcpy(fixture_host(f, va), entry, sizeof(entry));
    memcpy(fixture_host(f, far), &nop, sizeof(nop));
    assert_int_equal(fixture_run(f, &l).state, HW_CU_DONE);
    for (rg = f->cus->regions; rg && va - rg->va >= rg->size_B; rg = rg->next)
        ;
    assert_non_null(rg);
    struct cu_uop *first = rg->uops + (va - rg->va) / 2, *other = rg->uops + (far - rg->va) / 2;
    assert_true(cu_uop_prepare(f->cus, rg, other));
    cu_code_flush(f->cus);
    assert_true(first->flags & CU_UOP_DECODED);
    assert_true(other->flags & CU_UOP_DECODED);
    *(uint16_t *)fixture_host(f, far + 2) ^= 0x10; /* its second half only */
    cu_code_flush(f->cus);
    assert_true(first->flags & CU_UOP_DECODED);
    assert_true(first->flags & CU_UOP_ENTRY);
    assert_false(other->flags & CU_UOP_DECODED);
    assert_true(cu_uop_prepare(f->cus, rg, other));
    assert_int_equal(other->bits, nop ^ 0x100000);
}

/* What fence.i has to look at passes in device time: it comes back later by so much, in its warp's clock and in the dispatch's. */
static void test_fence_i_takes_time(void **state)
{
    enum { PAGES = 64 };
    const uint32_t code[] = { i_type(MATCH(csrrs), 7, 0, CU_CSR_CYCLE), MATCH(fence_i), i_type(MATCH(csrrs), 8, 0, CU_CSR_CYCLE), r_type(MATCH(sub), 8, 8, 7),
                              s_type(MATCH(sd), 10, 8, 0), i_type(MATCH(jalr), 0, 1, 0) };

    (void)state;
    for (unsigned h = 0; h < 4; h++) {
        struct launch l = { .grid = { 1, 1, 1 }, .block = { 1, 1, 1 } };
        struct outcome few, many;
        uint64_t took;

        f = &fixture_ways[h];
        l.entry = fixture_code(f, code, sizeof(code) / sizeof(code[0]));
        f->code_B = PAGES * PETREL_PAGE_SIZE;
        fixture_reset_data(f);
        l.args = fixture_alloc(f, 8);
        few = fixture_run(f, &l);
        assert_int_equal(few.state, HW_CU_DONE);
        took = *(uint64_t *)fixture_host(f, l.args);
        assert_in_range(took, PETREL_PAGE_SIZE / 2 / 64, PETREL_PAGE_SIZE / 2);
        for (unsigned page = 1; page < PAGES; page++)
            cu_region_touch(f->cus->code, page * PETREL_PAGE_SIZE / 2);
        many = fixture_run(f, &l);
        assert_int_equal(many.state, HW_CU_DONE);
        assert_true(*(uint64_t *)fixture_host(f, l.args) >= took + (PAGES - 1) * PETREL_PAGE_SIZE / 2 / 64);
        assert_true(many.cycles >= few.cycles + (PAGES - 1) * PETREL_PAGE_SIZE / 2 / 64);
    }
}

/* Lanes part in a function that only a run finds, some say fence.i, all meet: the places where lanes wait survive it. */
static void test_fence_i_keeps_meeting_points(void **state)
{
    uint32_t code[24];
    struct launch l = { .grid = { 1, 1, 1 }, .block = { 32, 1, 1 } };

    (void)state;
    for (unsigned h = 0; h < 4; h++) {
        unsigned n = 0;
        uint64_t *out;

        f = &fixture_ways[h];
        code[n++] = i_type(MATCH(addi), 9, 1, 0);                   /* where to return to */
        code[n++] = i_type(MATCH(csrrs), 5, 0, CU_CSR_LANE);
        code[n++] = i_type(MATCH(andi), 6, 5, 1);
        code[n++] = i_type(MATCH(slli), 6, 6, 3);                   /* 0 or 8: one of two functions */
        code[n++] = MATCH(auipc) | 7u << 7;
        code[n++] = r_type(MATCH(add), 7, 7, 6);
        code[n++] = i_type(MATCH(jalr), 1, 7, 32);                  /* 8 instructions behind auipc */
        code[n++] = i_type(MATCH(addi), 11, 0, 1);
        code[n++] = r_type(MATCH(p_ballot), 12, 11, 0);             /* the even lanes' call and the odd ones' meet here */
        code[n++] = s_type(MATCH(sd), 10, 12, 0);
        code[n++] = i_type(MATCH(addi), 1, 9, 0);
        code[n++] = i_type(MATCH(jalr), 0, 1, 0);
        code[n++] = MATCH(fence_i);                                 /* the even lanes' function */
        code[n++] = i_type(MATCH(jalr), 0, 1, 0);
        code[n++] = i_type(MATCH(addi), 6, 0, 9);                   /* the odd lanes': lane 9 parts, then all go on behind fence.i */
        code[n++] = b_type(MATCH(bne), 5, 6, 8);
        code[n++] = MATCH(fence_i);
        code[n++] = i_type(MATCH(addi), 11, 0, 1);
        code[n++] = r_type(MATCH(p_ballot), 13, 11, 0);
        code[n++] = s_type(MATCH(sd), 10, 13, 8);
        code[n++] = i_type(MATCH(jalr), 0, 1, 0);
        l.entry = fixture_code(f, code, n);
        fixture_reset_data(f);
        l.args = fixture_alloc(f, 16);
        out = fixture_host(f, l.args);
        assert_int_equal(fixture_run(f, &l).state, HW_CU_DONE);
        assert_int_equal(out[0], 0xffffffff);
        assert_int_equal(out[1], 0xaaaaaaaa);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loads), cmocka_unit_test(test_stores), cmocka_unit_test(test_apertures), cmocka_unit_test(test_private_rows),
        cmocka_unit_test(test_fault_across),
        cmocka_unit_test(test_fault_of_lane), cmocka_unit_test(test_written_code), cmocka_unit_test(test_fence_i_takes_time),
        cmocka_unit_test(test_fence_i_forgets_what_changed),
        cmocka_unit_test(test_fence_i_keeps_meeting_points),
    };

    return cmocka_run_group_tests_name("cu-mem", tests, fixture_ways_create, fixture_ways_destroy);
}
