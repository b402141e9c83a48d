/* SPDX-License-Identifier: MIT */
/* test_cu_fp.c - every floating point instruction against MPFR: the integer arithmetic of softfp.c, and the unit itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cu_asm.h"
#include "cu_fixture.h"
#include "fp_oracle.h"
#include "softfp.h"

#define SOFT_OPERANDS 20000u
#define UNIT_OPERANDS 4096u  /* of these the first SINGLE_ITEMS also alone in a warp, for the flags of each */
#define SINGLE_ITEMS 256u

static struct cu_fixture fixtures[2]; /* widest handlers, portable ones */

static int setup(void **state)
{
    (void)state;
    oracle_init();
    for (unsigned i = 0; i < 2; i++)
        fixture_create(&fixtures[i], i == 1, true);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++)
        fixture_destroy(&fixtures[i]);
    oracle_finish();
    return 0;
}

/* ---- softfp.c ---- */

static enum sf_format format_of(char f)
{
    return f == 'h' ? SF_H : f == 's' ? SF_S : SF_D;
}

static uint64_t unboxed(char f, uint64_t v)
{
    unsigned w = sf_width(format_of(f));

    if (w < 64 && v >> w != UINT64_MAX >> w)
        return sf_nan(format_of(f));
    return w < 64 ? v & ((1ull << w) - 1) : v;
}

static uint64_t soft_convert(const struct fp_op *op, uint64_t in, unsigned rm, uint32_t *flags)
{
    static const char integers[] = "wulv";
    const char *to = strchr(integers, op->to), *from = strchr(integers, op->from);

    if (to)
        return sf_to_int(format_of(op->from), unboxed(op->from, in), (enum sf_integer)(to - integers), (enum sf_rounding)rm, flags);
    if (from)
        return sf_from_int(format_of(op->to), in, (enum sf_integer)(from - integers), (enum sf_rounding)rm, flags);
    return sf_convert(format_of(op->to), format_of(op->from), unboxed(op->from, in), (enum sf_rounding)rm, flags);
}

/* Value without a box. */
static uint64_t soft(const struct fp_op *op, const uint64_t in[3], unsigned rm, uint32_t *flags)
{
    enum sf_format f = format_of(op->from);
    enum sf_rounding r = (enum sf_rounding)rm;
    uint64_t a = unboxed(op->from, in[0]), b = unboxed(op->from, in[1]), c = unboxed(op->from, in[2]), sign = 1ull << (sf_width(f) - 1);

    switch (op->kind) {
    case FP_ADD: return sf_add(f, a, b, r, flags);
    case FP_SUB: return sf_sub(f, a, b, r, flags);
    case FP_MUL: return sf_mul(f, a, b, r, flags);
    case FP_DIV: return sf_div(f, a, b, r, flags);
    case FP_SQRT: return sf_sqrt(f, a, r, flags);
    case FP_MADD: return sf_fma(f, a, b, c, r, flags);
    case FP_MSUB: return sf_fma(f, a, b, c ^ sign, r, flags);
    case FP_NMSUB: return sf_fma(f, a ^ sign, b, c, r, flags);
    case FP_NMADD: return sf_fma(f, a ^ sign, b, c ^ sign, r, flags);
    case FP_MIN: return sf_min(f, a, b, flags);
    case FP_MAX: return sf_max(f, a, b, flags);
    case FP_LE: return sf_le(f, a, b, flags);
    case FP_LT: return sf_lt(f, a, b, flags);
    case FP_EQ: return sf_eq(f, a, b, flags);
    case FP_CLASS: return 1ull << sf_class(f, a);
    case FP_CVT: return soft_convert(op, in[0], rm, flags);
    default: fail(); return 0;
    }
}

static void check_soft(const char *mnemonic)
{
    struct fp_op op;
    bool x_result;

    assert_true(oracle_parse(mnemonic, &op));
    x_result = !strchr("hsd", op.to) || op.kind == FP_CLASS || (op.kind >= FP_LE && op.kind <= FP_EQ);
    for (unsigned n = 0; n < SOFT_OPERANDS; n++) {
        uint64_t in[3] = { oracle_operand(&op), oracle_operand(&op), oracle_operand(&op) };

        for (unsigned rm = 0; rm < 5; rm++) {
            unsigned want_flags;
            uint32_t flags = 0;
            uint64_t want = oracle(&op, in, rm, &want_flags), got = soft(&op, in, rm, &flags);

            if ((x_result ? want : unboxed(op.to, want)) != got || want_flags != flags)
                fail_msg("%s rm %u of 0x%llx 0x%llx 0x%llx: 0x%llx flags 0x%x, not 0x%llx flags 0x%x", mnemonic, rm, (unsigned long long)in[0],
                         (unsigned long long)in[1], (unsigned long long)in[2], (unsigned long long)got, flags, (unsigned long long)want, want_flags);
        }
    }
}

static void test_soft(void **state)
{
    static const char *const names[] = { "fadd", "fsub", "fmul", "fdiv", "fsqrt", "fmadd", "fmsub", "fnmsub", "fnmadd", "fmin", "fmax",
                                         "fle", "flt", "feq", "fclass", "fcvt.w", "fcvt.wu", "fcvt.l", "fcvt.lu", "fcvt.h", "fcvt.s", "fcvt.d" };
    static const char formats[] = "hsd", *const integers[] = { "w", "wu", "l", "lu" };
    char name[32];

    (void)state;
    for (unsigned f = 0; f < 3; f++) {
        for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            snprintf(name, sizeof(name), "%s.%c", names[i], formats[f]);
            if (strncmp(name, "fcvt.", 5) || name[5] != formats[f])
                check_soft(name);
        }
        for (unsigned i = 0; i < 4; i++) {
            snprintf(name, sizeof(name), "fcvt.%c.%s", formats[f], integers[i]);
            check_soft(name);
        }
    }
}

/* ---- The unit ---- */

struct item { uint64_t in[3], out, flags; };

static bool has_rm(unsigned op)
{
    return !(cu_insns[op].mask & 7u << 12);
}

/* Operands in f1 to f3, or x6 for what comes from there; result in f4 or x29. */
static uint32_t insn_of(unsigned op, unsigned rm)
{
    const struct cu_insn *i = &cu_insns[op];
    bool x_result = i->format == CU_FMT_XF || i->format == CU_FMT_XFF;
    uint32_t bits = i->match | (x_result ? 29u : 4u) << 7 | (i->format == CU_FMT_FX ? 6u : 1u) << 15;

    bits |= i->mask & 31u << 20 ? 0 : 2u << 20;
    bits |= i->format == CU_FMT_F4 ? 3u << 27 : 0;
    return bits | (has_rm(op) ? rm << 12 : 0);
}

/* A work-item's row of the table at a0: operands in, result and the flags of its warp out. packed: operands as singles lie in a register. */
static uint64_t program(struct cu_fixture *f, unsigned op, unsigned rm, bool dynamic, bool packed)
{
    bool x_result = cu_insns[op].format == CU_FMT_XF || cu_insns[op].format == CU_FMT_XFF;
    uint32_t code[40];
    unsigned n = 0;

    code[n++] = i_type(MATCH(csrrs), 5, 0, 0xcc3); /* group, of as many items as a block has */
    code[n++] = i_type(MATCH(csrrs), 6, 0, 0xcc6);
    code[n++] = r_type(MATCH(mul), 5, 5, 6);
    code[n++] = i_type(MATCH(csrrs), 6, 0, 0xcc0);
    code[n++] = r_type(MATCH(add), 5, 5, 6);
    code[n++] = i_type(MATCH(addi), 6, 0, sizeof(struct item));
    code[n++] = r_type(MATCH(mul), 5, 5, 6);
    code[n++] = r_type(MATCH(add), 5, 10, 5);
    code[n++] = i_type(MATCH(ld), 6, 5, 0);
    for (unsigned i = 0; i < 3; i++)
        code[n++] = i_type(MATCH(fld), 1 + i, 5, 8 * (int)i);
    for (unsigned i = 1; packed && i <= 3; i++)
        code[n++] = r_type(MATCH(fsgnj_s), i, i, i);
    code[n++] = i_type(MATCH(csrrwi), 0, dynamic ? rm : 0, 2);
    code[n++] = i_type(MATCH(csrrwi), 0, 0, 1);
    code[n++] = insn_of(op, dynamic ? 7 : rm);
    code[n++] = i_type(MATCH(csrrs), 30, 0, 1);
    code[n++] = x_result ? s_type(MATCH(sd), 5, 29, 24) : s_type(MATCH(fsd), 5, 4, 24);
    code[n++] = s_type(MATCH(sd), 5, 30, 32);
    code[n++] = i_type(MATCH(jalr), 0, 1, 0);
    return fixture_code(f, code, n);
}

static int by_flags(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    return x->flags < y->flags ? -1 : x->flags > y->flags;
}

static void run_items(struct cu_fixture *f, unsigned op, unsigned rm, bool dynamic, bool packed, const struct item *want, unsigned count, unsigned block)
{
    struct launch l = { .grid = { count / block, 1, 1 }, .block = { block, 1, 1 }, .entry = program(f, op, rm, dynamic, packed) };
    struct item *got;
    struct outcome o;

    fixture_reset_data(f);
    l.args = fixture_alloc(f, count * sizeof(*want));
    got = fixture_host(f, l.args);
    memcpy(got, want, count * sizeof(*want));
    for (unsigned i = 0; i < count; i++)
        got[i].out = got[i].flags = 0x5555;
    o = fixture_run(f, &l);
    assert_true(o.started);
    assert_int_equal(o.state, HW_CU_DONE);
    for (unsigned i = 0; i < count; i++) {
        uint64_t flags = 0;

        for (unsigned k = i / block * block; k < (i / block + 1) * block; k++)
            flags |= want[k].flags;
        if (got[i].out != want[i].out || got[i].flags != flags)
            fail_msg("%s rm %u%s%s, %u in a warp: 0x%llx 0x%llx 0x%llx is 0x%llx flags 0x%llx, not 0x%llx flags 0x%llx", cu_insns[op].mnemonic, rm,
                     dynamic ? " by frm" : "", packed ? ", packed" : "", block, (unsigned long long)want[i].in[0], (unsigned long long)want[i].in[1],
                     (unsigned long long)want[i].in[2], (unsigned long long)got[i].out, (unsigned long long)got[i].flags,
                     (unsigned long long)want[i].out, (unsigned long long)flags);
    }
}

/* One mode, all items; warps of 32 have items of like flags, so that one lane's missing flag is seen. */
static void check_unit(const struct fp_op *fp, unsigned op, unsigned rm)
{
    static struct item items[UNIT_OPERANDS];
    bool packs = fp->kind != FP_MV && (fp->from == 's' || fp->from == 'h'); /* moves tell what is not boxed apart */
    unsigned flags;

    for (unsigned i = 0; i < UNIT_OPERANDS; i++) {
        for (unsigned k = 0; k < 3; k++)
            items[i].in[k] = oracle_operand(fp);
        items[i].out = oracle(fp, items[i].in, rm, &flags);
        items[i].flags = flags;
    }
    for (unsigned h = 0; h < 2; h++)
        run_items(&fixtures[h], op, rm, h == 1, false, items, SINGLE_ITEMS, 1);
    qsort(items, UNIT_OPERANDS, sizeof(items[0]), by_flags);
    for (unsigned k = 0; k < 4; k++) {
        struct cu_fixture *f = &fixtures[k & 1];
        bool dynamic = k & 2;

        if (dynamic && !has_rm(op))
            break;
        run_items(f, op, rm, dynamic, false, items, UNIT_OPERANDS, 32);
        if (packs)
            run_items(f, op, rm, dynamic, true, items, UNIT_OPERANDS, 32);
        run_items(f, op, rm, dynamic, packs, items, UNIT_OPERANDS / 8 / 19 * 19, 19);
    }
}

static void test_unit(void **state)
{
    unsigned tested = 0;

    (void)state;
    for (unsigned op = 0; op < CU_OP_COUNT; op++) {
        struct fp_op fp;

        if (!oracle_parse(cu_insns[op].mnemonic, &fp))
            continue;
        tested++;
        for (unsigned rm = 0; rm < (has_rm(op) ? 5 : 1); rm++)
            check_unit(&fp, op, rm);
    }
    assert_true(tested >= 90);
}

/* ---- Vectors: what only some lanes have ---- */

/* Lane l of `lanes` has a special operand, the others plain ones, which raise less. */
static void fill_lanes(struct item items[32], const struct fp_op *fp, uint32_t lanes, unsigned special)
{
    static const uint32_t singles[][3] = { { 0x7fc00001, 0x3f800000, 0x3f800000 }, { 0x3f800000, 0x7f800001, 0x3f800000 },
                                           { 0x7f800000, 0, 0x7fc00000 }, { 0x3f800000, 0x3f800000, 0xffc12345 }, { 0xff800000, 0, 0x3f800000 } };
    const bool single = fp->from == 's';

    for (unsigned l = 0; l < 32; l++) {
        for (unsigned k = 0; k < 3; k++) {
            const uint32_t s = lanes >> l & 1 ? singles[special][k] : 0x3f800000u + ((l * 7 + k * 3) << 18);
            const uint64_t exponent = s >> 23 & 255, d_exponent = exponent == 255 ? 2047 : exponent ? exponent - 127 + 1023 : 0;

            items[l].in[k] = single ? 0xffffffff00000000ull | s : (uint64_t)(s >> 31) << 63 | d_exponent << 52 | (uint64_t)(s & 0x7fffff) << 29;
        }
        unsigned flags;
        items[l].out = oracle(fp, items[l].in, 0, &flags);
        items[l].flags = flags;
    }
}

static void check_lanes(const struct fp_op *fp, unsigned op)
{
    static const uint32_t lanes[] = { 0, 1, 1u << 15, 1u << 16, 1u << 18, 1u << 31, 1u << 3 | 1u << 20, UINT32_MAX };
    struct item items[32];

    for (unsigned i = 0; i < 5 * sizeof(lanes) / sizeof(lanes[0]); i++) {
        fill_lanes(items, fp, lanes[i / 5], i % 5);
        for (unsigned h = 0; h < 2; h++) {
            run_items(&fixtures[h], op, 0, false, fp->from == 's', items, 32, 32);
            run_items(&fixtures[h], op, 0, false, fp->from == 's', items, 19, 19);
        }
    }
}

/* Arithmetic on vectors that are plain in all lanes, or but for some in one half or in both. */
static void test_lanes(void **state)
{
    unsigned tested = 0;

    (void)state;
    for (unsigned op = 0; op < CU_OP_COUNT; op++) {
        struct fp_op fp;

        if (!oracle_parse(cu_insns[op].mnemonic, &fp) || (fp.from != 's' && fp.from != 'd') || fp.kind == FP_CVT || fp.kind == FP_MV)
            continue;
        tested++;
        check_lanes(&fp, op);
    }
    assert_true(tested >= 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_soft), cmocka_unit_test(test_unit), cmocka_unit_test(test_lanes) };

    return cmocka_run_group_tests_name("cu-fp", tests, setup, teardown);
}
