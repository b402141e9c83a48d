/* SPDX-License-Identifier: MIT */
/* test_cu_disasm.c - text of instructions next to LLVM's: all of 16 bits, every row of 32 bits with random operands, random words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "insn.h"

#define PC 0x10000u
#define PER_ROW 60u
#define WORDS 20000u
#define TEXT 96

/* What LLVM says of `count` words: a text each, empty where it knows none. Before each word stands a marker with its number. */
static char (*peer(const uint32_t *words, unsigned count))[TEXT]
{
    static const char options[] = "--disassemble --riscv-no-aliases -triple=riscv64 -mattr=+m,+a,+f,+d,+c,+zfh";
    char path[] = "/tmp/petrel-disasm-XXXXXX", command[512], line[256];
    char (*texts)[TEXT] = calloc(count, sizeof(*texts));
    int fd = mkstemp(path);
    unsigned at = count;
    FILE *f;

    assert_true(fd >= 0);
    f = fdopen(fd, "w");
    assert_true(f && texts);
    for (unsigned i = 0; i < count; i++) {
        uint32_t m = i << 12 | 0x37, w = words[i];

        fprintf(f, "[0x%02x 0x%02x 0x%02x 0x%02x]\n[0x%02x 0x%02x", m & 255, m >> 8 & 255, m >> 16 & 255, m >> 24, w & 255, w >> 8 & 255);
        if ((w & 3) == 3)
            fprintf(f, " 0x%02x 0x%02x", w >> 16 & 255, w >> 24);
        fprintf(f, "]\n");
    }
    assert_int_equal(fclose(f), 0);
    snprintf(command, sizeof(command), "'%s' %s %s 2>/dev/null", LLVM_MC, options, path);
    f = popen(command, "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        char *p = line + strspn(line, " \t");
        unsigned n;

        p[strcspn(p, "\n")] = '\0';
        for (char *t = p; *t; t++)
            *t = *t == '\t' ? ' ' : *t;
        while (*p && p[strlen(p) - 1] == ' ')
            p[strlen(p) - 1] = '\0';
        if (sscanf(p, "lui zero, %u", &n) == 1 && n == (at == count ? 0 : at + 1) && n < count)
            at = n;
        else if (at < count && *p != '.')
            snprintf(texts[at], TEXT, "%s", p);
    }
    assert_true(pclose(f) >> 8 <= 1); /* 1: there were words that it does not know */
    unlink(path);
    assert_int_equal(at, count - 1);
    return texts;
}

static bool known(uint32_t bits)
{
    struct cu_uop u;

    return (bits & 3) == 3 ? cu_decode(bits, 0, &u) : cu_find_rvc((uint16_t)bits) != NULL;
}

/* The last operand as LLVM has it: a distance for an address, a number for a register of our own, whatever it says for one without name. */
static void as_peer_writes(char *text, const char *peer_text)
{
    char *last = strrchr(text, ' '), name[TEXT], rest[TEXT], peer_name[TEXT];
    unsigned long long target;
    unsigned n;

    if (!strncmp(text, "csrr", 4)) {
        char *csr = strstr(text, ", ") + 2;
        const char *other = strstr(peer_text, ", ");

        assert_int_equal(sscanf(csr, "%[^,]%[^\n]", name, rest), 2);
        for (n = 0xcc0; n <= 0xccf; n++)
            if (!strcmp(cu_csr_name(n), name))
                snprintf(csr, (size_t)(text + TEXT - csr), "%u%s", n, rest);
        if (name[0] == '0' && other && sscanf(other, ", %[^,]", peer_name) == 1)
            snprintf(csr, (size_t)(text + TEXT - csr), "%s%s", peer_name, rest);
        return;
    }
    if (last && sscanf(last, " 0x%llx", &target) == 1)
        sprintf(last, " %lld", (long long)(target - PC));
}

/* Where LLVM 14 is stricter than the manual, or has another name for a hint. */
static bool excused(uint32_t bits, bool is_known, const char *ours, const char *theirs)
{
    static const char *const exact[] = { "fcvt.d.w ", "fcvt.d.wu ", "fcvt.d.s ", "fcvt.d.h ", "fcvt.s.h " };
    char other[TEXT];

    if (strstr(ours, ", rm5") || strstr(ours, ", rm6")) /* reserved: a decoder's or an execution's matter */
        return !*theirs;
    for (unsigned i = 0; i < 5; i++) /* always exact: LLVM knows mode 0 only, and does not write it */
        if (!strncmp(ours, exact[i], strlen(exact[i])))
            return !*theirs || (!strncmp(ours, theirs, strlen(theirs)) && !strcmp(ours + strlen(theirs), ", rne"));
    if ((bits & 0x707f) == 0x000f) /* fields to be ignored */
        return !*theirs && (bits & 0xf00f8f80u);
    if ((bits & 0x707f) == 0x100f)
        return !*theirs && (bits & 0xffff8f80u);
    snprintf(other, sizeof(other), "c.addi zero, %s", theirs + (strncmp(theirs, "c.nop ", 6) ? 0 : 6));
    if (!strcmp(ours, other))
        return true;
    if (!strncmp(theirs, "c.s", 3) && !strncmp(theirs + 6, "64 ", 3)) {
        snprintf(other, sizeof(other), "%.6s %s, 0", theirs, theirs + 9);
        return !strcmp(ours, other);
    }
    return (bits == 0 && !strcmp(theirs, "c.unimp")) || (!is_known && (bits & 0xf07f) == 0x6001 && !strncmp(theirs, "c.lui ", 6)) || /* reserved */
           (!strncmp(ours, "c.lui zero, ", 12) && !strncmp(theirs, "c.lui zero, -", 13));
}

static void compare(const uint32_t *words, unsigned count, unsigned least)
{
    char (*texts)[TEXT] = peer(words, count);
    unsigned equal = 0, wrong = 0;

    for (unsigned i = 0; i < count; i++) {
        char text[TEXT] = "", *dyn = strstr(texts[i], ", dyn");
        bool is_known = known(words[i]);

        if (dyn)
            *dyn = '\0';
        assert_true(cu_disasm(words[i], PC, text, CU_DISASM_MAX) < CU_DISASM_MAX);
        assert_int_equal(!strncmp(text, ".insn 0x", 8), !is_known);
        if (is_known)
            as_peer_writes(text, texts[i]);
        if (is_known ? !strcmp(text, texts[i]) : !texts[i][0]) {
            equal++;
        } else if (!excused(words[i], is_known, text, texts[i])) {
            fprintf(stderr, "0x%08x: \"%s\", LLVM says \"%s\"\n", words[i], text, texts[i]);
            wrong++;
        }
    }
    free(texts);
    assert_int_equal(wrong, 0);
    assert_true(equal >= least);
}

static void test_compressed(void **state)
{
    static uint32_t words[49152];
    unsigned n = 0;

    (void)state;
    for (uint32_t h = 0; h < 65536; h++)
        if ((h & 3) != 3)
            words[n++] = h;
    compare(words, n, 46000);
}

static uint64_t rng_state = 0x9e3779b97f4a7c15ull;

static uint32_t random32(void)
{
    rng_state ^= rng_state << 13;
    rng_state ^= rng_state >> 7;
    rng_state ^= rng_state << 17;
    return (uint32_t)(rng_state * 0x2545f4914f6cdd1dull >> 32);
}

static void test_rows(void **state)
{
    static uint32_t words[CU_OP_COUNT * PER_ROW];
    unsigned n = 0;

    (void)state;
    for (unsigned op = 0; op < CU_OP_COUNT; op++)
        for (unsigned k = 0; k < PER_ROW && (cu_insns[op].match & 0x7f) != 0x0b; k++)
            words[n++] = cu_insns[op].match | (random32() & ~cu_insns[op].mask);
    compare(words, n, n * 4 / 5);
}

static void test_words(void **state)
{
    static uint32_t words[WORDS];

    (void)state;
    for (unsigned i = 0; i < WORDS; i++)
        do
            words[i] = random32() | 3;
        while ((words[i] & 0x7f) == 0x0b);
    compare(words, WORDS, WORDS * 9 / 10);
}

/* What LLVM does not know, and a text that does not fit. */
static void test_own(void **state)
{
    static const struct { uint32_t bits; const char *text; } rows[] = {
        { 0x0000000b, "p.barrier" },
        { 0x0400000b | 10 << 15, "p.trap a0" },
        { 0x0000100b | 10 << 7 | 11 << 15, "p.ballot a0, a1" },
        { 0x0600100b | 10 << 7 | 11 << 15 | 12 << 20, "p.shfl a0, a1, a2" },
        { 0x1000200b | 10 << 7 | 11 << 15, "p.fred.add fa0, fa1" },
        { 0x0600200b | 10 << 7 | 11 << 15 | 12 << 20, "p.fshfl fa0, fa1, a2" },
        { 0x0000300b | 10 << 7 | 11 << 15 | 12 << 20, "p.cas.w a0, a2, (a1)" },
        { 0x0400300b | 10 << 7 | 11 << 15 | 12 << 20, "p.famoadd.s fa0, fa2, (a1)" },
        { 0x0a00400b | 10 << 7 | 11 << 15, "p.rcp.s fa0, fa1" },
        { 0x0000500b, ".insn 0x0000500b" },
        { 0x0001, "c.nop" },
    };
    char text[CU_DISASM_MAX], small[6];

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(cu_disasm(rows[i].bits, PC, text, sizeof(text)), strlen(rows[i].text));
        assert_string_equal(text, rows[i].text);
    }
    assert_int_equal(cu_disasm(0x00150513, PC, small, sizeof(small)), strlen("addi a0, a0, 1"));
    assert_string_equal(small, "addi ");
    assert_int_equal(cu_disasm(0x00150513, PC, NULL, 0), strlen("addi a0, a0, 1"));
    assert_string_equal(cu_csr_name(0xcc0), "local_id_x");
    assert_null(cu_csr_name(0xcd0));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_compressed), cmocka_unit_test(test_rows), cmocka_unit_test(test_words),
                                        cmocka_unit_test(test_own) };

    return cmocka_run_group_tests_name("cu-disasm", tests, NULL, NULL);
}
