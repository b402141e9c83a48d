/* SPDX-License-Identifier: MIT */
/* random_code.c - see random_code.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cu_asm.h"
#include "random_code.h"

enum { RA = 1, T0 = 5, A0 = 10, POINTER = 30, BASE = 31, WINDOW_B = BLOCK_B - BLOCK_WINDOW };

uint64_t rng_next(struct rng *r)
{
    r->s ^= r->s << 13;
    r->s ^= r->s >> 7;
    r->s ^= r->s << 17;
    return r->s * 0x2545f4914f6cdd1dull;
}

/* ---- Code ---- */

void code_put16(struct code *c, uint16_t half)
{
    if (c->size_B + 2 > c->room_B)
        abort();
    memcpy(c->bytes + c->size_B, &half, 2);
    c->size_B += 2;
}

void code_put32(struct code *c, uint32_t insn)
{
    code_put16(c, (uint16_t)insn);
    code_put16(c, (uint16_t)(insn >> 16));
}

void code_constant(struct code *c, unsigned rd, uint32_t v)
{
    code_put32(c, MATCH(lui) | rd << 7 | ((v + 0x800) & 0xfffff000));
    code_put32(c, i_type(MATCH(addiw), rd, rd, (int32_t)(v << 20) >> 20));
}

void code_jal(struct code *c, unsigned rd, uint64_t to)
{
    code_put32(c, MATCH(jal) | rd << 7 | j_type(0, 0, (int32_t)(to - (c->va + c->size_B))));
}

/* ---- Atoms ---- */

static void atom_put(struct atom *a, uint32_t insn)
{
    memcpy((uint8_t *)a->half + a->size_B, &insn, 4);
    a->size_B += 4;
}

/* Registers are drawn from few, so that results are used, and now and then from all. */
static unsigned any_register(struct rng *r)
{
    return rng_below(r, 3) ? 6 + rng_below(r, 10) : rng_below(r, 32);
}

static unsigned x_destination(struct rng *r)
{
    unsigned rd = any_register(r);

    return rd == BASE ? T0 : rd;
}

static uint32_t rounding_mode(struct rng *r)
{
    static const uint8_t modes[] = { 0, 1, 2, 3, 4, 7, 7, 7 };

    return modes[rng_below(r, sizeof(modes))];
}

static bool writes_x(unsigned format)
{
    return format == CU_FMT_R || format == CU_FMT_A || format == CU_FMT_L || format == CU_FMT_I || format == CU_FMT_SH || format == CU_FMT_U || format == CU_FMT_XFF || format == CU_FMT_XF;
}

static bool is_float(unsigned format)
{
    return format == CU_FMT_F4 || format == CU_FMT_FFF || format == CU_FMT_FF || format == CU_FMT_XFF || format == CU_FMT_XF || format == CU_FMT_FX;
}

/* What the machines have in common and no jump is. */
static bool is_eligible(unsigned op)
{
    const struct cu_insn *i = &cu_insns[op];
    unsigned opcode = i->match & 0x7f;

    return opcode != 0x0b && opcode != 0x73 && opcode != 0x6f && opcode != 0x67 && opcode != 0x63 && op != CU_OP_fence_i && i->format != CU_FMT_CAS;
}

/* sc behind its lr; one time in four it fails, being for another address than lr's or the second behind it. */
static void make_sc(struct rng *r, uint32_t sc, int32_t offset, struct atom *a)
{
    uint32_t way = rng_below(r, 8);

    atom_put(a, r_type((sc & 0x7000) == (MATCH(sc_w) & 0x7000) ? MATCH(lr_w) : MATCH(lr_d), T0, POINTER, 0));
    if (way == 0)
        atom_put(a, i_type(MATCH(addi), POINTER, BASE, offset ^ 8));
    if (way == 1)
        atom_put(a, sc | T0 << 7);
    atom_put(a, sc | x_destination(r) << 7);
}

static void make_memory(struct rng *r, unsigned op, struct atom *a)
{
    const struct cu_insn *i = &cu_insns[op];
    int32_t offset = (int32_t)(BLOCK_WINDOW + rng_below(r, WINDOW_B - 8));
    bool lr = op == CU_OP_lr_w || op == CU_OP_lr_d, sc = op == CU_OP_sc_w || op == CU_OP_sc_d;

    if (i->format == CU_FMT_A) { /* an atomic; its pointer is aligned */
        unsigned src = any_register(r);

        atom_put(a, i_type(MATCH(addi), POINTER, BASE, offset & ~7));
        uint32_t bits = i->match | (uint32_t)POINTER << 15 | (lr ? 0 : src) << 20 | rng_below(r, 4) << 25;
        if (sc)
            make_sc(r, bits, offset & ~7, a);
        else
            atom_put(a, bits | x_destination(r) << 7);
    } else if (i->format == CU_FMT_S || i->format == CU_FMT_FS) {
        atom_put(a, s_type(i->match, BASE, any_register(r), offset));
    } else {
        atom_put(a, i_type(i->match, i->format == CU_FMT_FL ? any_register(r) : x_destination(r), BASE, offset));
    }
}

static void make_plain(struct rng *r, unsigned op, struct atom *a)
{
    const struct cu_insn *i = &cu_insns[op];
    uint32_t bits = i->match | ((uint32_t)rng_next(r) & ~i->mask);

    if (!(i->mask & 0xf80))
        bits = (bits & ~0xf80u) | (writes_x(i->format) ? x_destination(r) : any_register(r)) << 7;
    if (!(i->mask & 0xf8000) && i->format != CU_FMT_U)
        bits = (bits & ~0xf8000u) | any_register(r) << 15;
    if (!(i->mask & 0x1f00000) && (i->format == CU_FMT_R || i->format == CU_FMT_F4 || i->format == CU_FMT_FFF || i->format == CU_FMT_XFF))
        bits = (bits & ~0x1f00000u) | any_register(r) << 20;
    if (is_float(i->format) && !(i->mask & 0x7000))
        bits = (bits & ~0x7000u) | rounding_mode(r) << 12;
    if (op == CU_OP_fence)
        bits = 0x0ff0000f;
    atom_put(a, bits);
}

static void make_from_table(struct rng *r, struct atom *a)
{
    unsigned op;

    do
        op = rng_below(r, CU_OP_COUNT);
    while (!is_eligible(op));
    if (cu_insns[op].latency == CU_LAT_MEM)
        make_memory(r, op, a);
    else
        make_plain(r, op, a);
}

static void put_half(struct atom *a, uint16_t half)
{
    a->half[a->size_B / 2] = half;
    a->size_B += 2;
}

/* A compressed instruction that is no jump; where it goes to memory, its base is set first. */
static void make_compressed(struct rng *r, struct atom *a)
{
    for (;;) {
        uint16_t half = (uint16_t)rng_next(r);
        uint32_t full = (half & 3) == 3 ? 0 : cu_expand_rvc(half);
        struct cu_uop u;

        if (!full || !cu_decode(full, 0, &u))
            continue;
        unsigned format = cu_insns[u.op].format, opcode = full & 0x7f;

        if (opcode == 0x73 || opcode == 0x67 || opcode == 0x6f || opcode == 0x63 || ((writes_x(format)) && u.rd == BASE))
            continue;
        if (cu_insns[u.op].latency == CU_LAT_MEM) {
            if (u.rs1 == BASE)
                continue;
            atom_put(a, i_type(MATCH(addi), u.rs1, BASE, BLOCK_WINDOW));
        }
        put_half(a, half);
        return;
    }
}

static void make_jump(struct rng *r, struct atom *a)
{
    static const unsigned branches[] = { CU_OP_beq, CU_OP_bne, CU_OP_blt, CU_OP_bge, CU_OP_bltu, CU_OP_bgeu };
    static const unsigned links[] = { 0, 0, RA, T0, 7 };
    unsigned link = links[rng_below(r, 5)];

    a->over = rng_below(r, 4);
    switch (rng_below(r, 4)) {
    case 0:
        a->jump = JUMP_JAL;
        atom_put(a, MATCH(jal) | link << 7);
        break;
    case 1:
        a->jump = JUMP_JALR;
        a->jump_at = 4;
        atom_put(a, MATCH(auipc) | (uint32_t)POINTER << 7);
        atom_put(a, i_type(MATCH(jalr), link, POINTER, 0));
        break;
    default:
        a->jump = JUMP_BRANCH;
        atom_put(a, cu_insns[branches[rng_below(r, 6)]].match | any_register(r) << 15 | any_register(r) << 20);
    }
}

void sequence_make(struct rng *r, struct sequence *s)
{
    memset(s, 0, sizeof(*s));
    s->count = ATOMS_MAX;
    s->frm = rng_below(r, 5);
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t kind = rng_below(r, 100);

        if (kind < 10)
            make_jump(r, &s->atoms[i]);
        else if (kind < 25)
            make_compressed(r, &s->atoms[i]);
        else
            make_from_table(r, &s->atoms[i]);
    }
}

/* ---- Blocks ---- */

static uint64_t any_integer(struct rng *r)
{
    static const uint64_t edges[] = { 0, 1, 2, 31, 32, 63, 64, 0x7f, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000ull, INT64_MAX, 1ull << 63, UINT64_MAX,
                                      UINT64_MAX - 1, 0xffffffff80000000ull };
    uint64_t v = rng_next(r);

    switch (rng_below(r, 4)) {
    case 0: return edges[rng_below(r, sizeof(edges) / sizeof(edges[0]))];
    case 1: return v >> rng_below(r, 64);
    case 2: return (uint64_t)((int64_t)v >> rng_below(r, 64));
    default: return v;
    }
}

/* A number of a format with `exp` and `frac` bits: of any class, often near one of the others. */
static uint64_t any_number(struct rng *r, unsigned exp, unsigned frac)
{
    uint64_t sign = (uint64_t)rng_below(r, 2) << (exp + frac), top = (1ull << exp) - 1, m = rng_next(r) & ((1ull << frac) - 1), e;

    switch (rng_below(r, 8)) {
    case 0: return sign;
    case 1: return sign | top << frac | (rng_below(r, 2) ? m : 0);
    case 2: return sign | m >> rng_below(r, frac); /* subnormal */
    case 3: e = rng_below(r, 2) ? top - 1 : 1; break;
    case 4: m = rng_below(r, 2) ? 0 : (1ull << frac) - 1; /* fallthrough */
    case 5: case 6: e = top / 2 + rng_below(r, 2 * frac) - frac; break;
    default: e = rng_next(r) & top;
    }
    return sign | (e & top) << frac | m;
}

void block_make(struct rng *r, uint8_t block[BLOCK_B])
{
    memset(block, 0, BLOCK_B);
    for (uint32_t i = 0; i < 32; i++) {
        uint64_t x = any_integer(r), f;

        switch (rng_below(r, 8)) {
        case 0: f = rng_next(r); break;
        case 1: f = 0xffffffffffff0000ull | any_number(r, 5, 10); break;
        case 2: case 3: case 4: f = any_number(r, 11, 52); break;
        default: f = 0xffffffff00000000ull | any_number(r, 8, 23);
        }
        memcpy(block + BLOCK_X + 8 * i, &x, 8);
        memcpy(block + BLOCK_F + 8 * i, &f, 8);
    }
    for (uint32_t i = BLOCK_WINDOW; i < BLOCK_B; i += 8) {
        uint64_t v = any_integer(r);

        memcpy(block + i, &v, 8);
    }
}

/* ---- Bodies ---- */

static void patch_jump(const struct sequence *s, uint32_t at, uint32_t count, const uint32_t *start, struct code *c)
{
    const struct atom *a = &s->atoms[at];
    uint32_t to = at + 1 + a->over, from = start[at];
    int32_t by = (int32_t)(start[to < count ? to : count] - from);
    uint32_t insn;

    memcpy(&insn, c->bytes + from + a->jump_at, 4);
    insn |= a->jump == JUMP_BRANCH ? b_type(0, 0, 0, by) : a->jump == JUMP_JAL ? j_type(0, 0, by) : (uint32_t)by << 20;
    memcpy(c->bytes + from + a->jump_at, &insn, 4);
}

uint64_t code_body(struct code *c, const struct sequence *s, uint32_t count)
{
    uint64_t va = c->va + c->size_B;
    uint32_t start[ATOMS_MAX + 1];

    code_put32(c, s_type(MATCH(sd), A0, RA, BLOCK_RETURN));
    code_put32(c, i_type(MATCH(addi), BASE, A0, 0));
    code_put32(c, i_type(MATCH(csrrwi), 0, s->frm, 2));
    code_put32(c, i_type(MATCH(csrrwi), 0, 0, 1));
    for (unsigned k = 0; k < 32; k++)
        code_put32(c, i_type(MATCH(fld), k, BASE, (int32_t)(BLOCK_F + 8 * k)));
    for (unsigned k = 1; k < BASE; k++)
        code_put32(c, i_type(MATCH(ld), k, BASE, (int32_t)(BLOCK_X + 8 * k)));
    for (uint32_t i = 0; i < count; i++) {
        start[i] = c->size_B;
        for (uint32_t k = 0; k < s->atoms[i].size_B / 2; k++)
            code_put16(c, s->atoms[i].half[k]);
    }
    start[count] = c->size_B;
    for (uint32_t i = 0; i < count; i++)
        if (s->atoms[i].jump)
            patch_jump(s, i, count, start, c);
    for (unsigned k = 1; k < BASE; k++)
        code_put32(c, s_type(MATCH(sd), BASE, k, (int32_t)(BLOCK_X_OUT + 8 * k)));
    code_put32(c, i_type(MATCH(csrrs), T0, 0, 3));
    code_put32(c, s_type(MATCH(sd), BASE, T0, BLOCK_FCSR));
    for (unsigned k = 0; k < 32; k++)
        code_put32(c, s_type(MATCH(fsd), BASE, k, (int32_t)(BLOCK_F_OUT + 8 * k)));
    code_put32(c, i_type(MATCH(ld), RA, BASE, BLOCK_RETURN));
    code_put32(c, i_type(MATCH(jalr), 0, RA, 0));
    if (c->size_B % 4)
        code_put16(c, 1); /* c.nop */
    return va;
}

void atom_print(const struct atom *a)
{
    for (uint32_t at = 0; at < a->size_B;) {
        uint32_t bits = a->half[at / 2];
        char text[CU_DISASM_MAX];

        if ((bits & 3) == 3)
            memcpy(&bits, (const uint8_t *)a->half + at, 4);
        cu_disasm(bits, 0, text, sizeof(text));
        fprintf(stderr, "  %08x %s\n", bits, text);
        at += (bits & 3) == 3 ? 4 : 2;
    }
}
