/* SPDX-License-Identifier: MIT */
/* test_cu_qemu.c - random instruction sequences on the compute units and in qemu-riscv64: registers, memory and flags are the same. */
/*
 * Both run the same code at the same addresses: qemu calls each body for one block after the other, the units run 32 lanes with a
 * block each, and one lane alone. PETREL_SEED=N replays another run, PETREL_BATCHES=N makes it longer.
 */
#include <elf.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cu_asm.h"
#include "cu_fixture.h"
#include "random_code.h"

enum { BATCH = 50, ITEMS = 32, BATCHES = 8, CODE_MAX_B = 1 << 20, EM_RISCV_ = 243 };
enum { RA = 1, T0 = 5, A0 = 10, A1, A2, A7 = 17 };
#define DATA_B ((uint32_t)BATCH * ITEMS * BLOCK_B)

/* Sequences, their blocks, and what came of them. */
struct batch {
    struct sequence s[BATCH];
    uint32_t atoms[BATCH];          /* so many of each are run */
    uint64_t entry[BATCH];          /* for the units: a0 is where the first lane's block lies */
    uint64_t qemu_entry;
    struct code code;
    uint8_t data[BATCH * ITEMS * BLOCK_B], theirs[BATCH * ITEMS * BLOCK_B], ours[BATCH * ITEMS * BLOCK_B];
};

static struct batch *b, *shrunk;
static struct cu_fixture fixtures[2];
static const char *const fixture_names[] = { "portable handlers, functional", "best handlers, timed" };

static uint64_t block_va(uint32_t s, uint32_t item) { return FLAT_DATA_VA + ((uint64_t)s * ITEMS + item) * BLOCK_B; }

/* Bodies, an entry of each for the units, and one for qemu that calls all, writes the blocks to its standard output and exits. */
static void build(struct batch *t)
{
    uint64_t body[BATCH];
    struct code *c = &t->code;

    c->va = FLAT_CODE_VA;
    c->size_B = 0;
    c->room_B = CODE_MAX_B;
    c->bytes = c->bytes ? c->bytes : malloc(CODE_MAX_B);
    assert_non_null(c->bytes);
    for (uint32_t s = 0; s < BATCH; s++) {
        body[s] = code_body(c, &t->s[s], t->atoms[s]);
        t->entry[s] = c->va + c->size_B;
        code_put32(c, i_type(MATCH(csrrs), T0, 0, 0xccc)); /* lane */
        code_put32(c, i_type(MATCH(slli), T0, T0, 11));
        code_put32(c, MATCH(add) | A0 << 7 | A0 << 15 | T0 << 20);
        code_jal(c, 0, body[s]);
    }
    t->qemu_entry = c->va + c->size_B;
    for (uint32_t s = 0; s < BATCH; s++) {
        for (uint32_t item = 0; item < ITEMS; item++) {
            code_constant(c, A0, (uint32_t)block_va(s, item));
            code_jal(c, RA, body[s]);
        }
    }
    code_constant(c, A0, 1);
    code_constant(c, A1, FLAT_DATA_VA);
    code_constant(c, A2, DATA_B);
    code_constant(c, A7, 64);  /* write */
    code_put32(c, MATCH(ecall));
    code_constant(c, A0, 0);
    code_constant(c, A7, 94);  /* exit_group */
    code_put32(c, MATCH(ecall));
}

/* ---- qemu ---- */

/* Files without a name: nothing is left behind, however the test ends. */
static FILE *file_create(const char *name)
{
    int fd = memfd_create(name, 0);

    assert_true(fd >= 0);
    FILE *f = fdopen(fd, "w+b");
    assert_non_null(f);
    return f;
}

static void write_elf(const struct batch *t, FILE *f)
{
    Elf64_Ehdr e = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT }, .e_type = ET_EXEC, .e_machine = EM_RISCV_,
                     .e_version = EV_CURRENT, .e_entry = t->qemu_entry, .e_phoff = sizeof(e), .e_flags = 5, .e_ehsize = sizeof(e),
                     .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2 };
    uint64_t code_B = (t->code.size_B + 4095u) & ~4095u;
    Elf64_Phdr p[2] = {
        { .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = 4096, .p_vaddr = FLAT_CODE_VA, .p_paddr = FLAT_CODE_VA, .p_filesz = code_B,
          .p_memsz = code_B, .p_align = 4096 },
        { .p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_offset = 4096 + code_B, .p_vaddr = FLAT_DATA_VA, .p_paddr = FLAT_DATA_VA, .p_filesz = DATA_B,
          .p_memsz = DATA_B, .p_align = 4096 },
    };
    assert_int_equal(fwrite(&e, sizeof(e), 1, f) + fwrite(p, sizeof(p), 1, f), 2);
    fseek(f, 4096, SEEK_SET);
    assert_int_equal(fwrite(t->code.bytes, t->code.size_B, 1, f), 1);
    fseek(f, (long)(4096 + code_B), SEEK_SET);
    assert_int_equal(fwrite(t->data, DATA_B, 1, f), 1);
    assert_int_equal(fflush(f), 0);
    assert_int_equal(fchmod(fileno(f), 0700), 0);
}

/* qemu ends with this process, and after more of the processor's time than any batch takes. */
static void exec_qemu(int elf, int out)
{
    static const struct rlimit seconds = { .rlim_cur = 240, .rlim_max = 240 };
    char path[32];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", elf);
    if (dup2(out, 1) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || setrlimit(RLIMIT_CPU, &seconds) < 0)
        _exit(126);
    execlp("qemu-riscv64", "qemu-riscv64", "-cpu", "rv64,Zfh=true", path, (char *)NULL);
    _exit(127);
}

/* Runs the batch in qemu; its blocks come back in `theirs`. qemu that is not there is a failure: the comparison is what this is for. */
static void run_qemu(struct batch *t)
{
    FILE *elf = file_create("elf"), *out = file_create("out");
    int status;

    write_elf(t, elf);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        exec_qemu(fileno(elf), fileno(out));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fail_msg("qemu-riscv64 ended with status 0x%x%s", status, WIFEXITED(status) && WEXITSTATUS(status) == 127 ? ": it is not there; apt-get install qemu-user" : "");
    rewind(out);
    assert_int_equal(fread(t->theirs, 1, DATA_B, out), DATA_B);
    fclose(out);
    fclose(elf);
}

/* ---- The units ---- */

static void run_units(struct batch *t, struct cu_fixture *f, uint32_t lanes)
{
    uint32_t words = t->code.size_B / 4;
    uint32_t *code = malloc(words * 4u);

    assert_non_null(code);
    memcpy(code, t->code.bytes, words * 4u);
    (void)fixture_code(f, code, words);
    free(code);
    memcpy(fixture_host(f, FLAT_DATA_VA), t->data, DATA_B);
    for (uint32_t s = 0; s < BATCH; s++) {
        struct launch l = { .entry = t->entry[s], .grid = { 1, 1, 1 }, .block = { lanes, 1, 1 }, .args = block_va(s, 0) };
        struct outcome o = fixture_run(f, &l);

        if (!o.started || o.state != HW_CU_DONE)
            fail_msg("sequence %u: state %d fault %u at pc 0x%" PRIx64 " address 0x%" PRIx64 " data 0x%" PRIx64, s, o.state, o.fault.fault, o.fault.pc,
                     o.fault.va, o.fault.data);
    }
    memcpy(t->ours, fixture_host(f, FLAT_DATA_VA), DATA_B);
}

/* ---- Comparison ---- */

static uint64_t value_at(const uint8_t *data, uint32_t s, uint32_t item, uint32_t at)
{
    uint64_t v;

    memcpy(&v, data + ((uint64_t)s * ITEMS + item) * BLOCK_B + at, 8);
    return v;
}

struct difference { uint32_t item, at; uint64_t theirs, ours; };

/* Flags are the warp's: what any of its lanes raised. */
static bool differs_in_flags(const struct batch *t, uint32_t s, uint32_t lanes, struct difference *out)
{
    *out = (struct difference){ .at = BLOCK_FCSR };
    for (uint32_t item = 0; item < lanes; item++) {
        out->theirs |= value_at(t->theirs, s, item, BLOCK_FCSR);
        out->ours |= value_at(t->ours, s, item, BLOCK_FCSR);
    }
    return out->theirs != out->ours;
}

static bool differs(const struct batch *t, uint32_t s, uint32_t lanes, struct difference *out)
{
    for (uint32_t item = 0; item < lanes; item++) {
        for (uint32_t at = BLOCK_X_OUT; at < BLOCK_B; at += 8) {
            if (at == BLOCK_FCSR || at == BLOCK_RETURN)
                continue;
            *out = (struct difference){ .item = item, .at = at, .theirs = value_at(t->theirs, s, item, at), .ours = value_at(t->ours, s, item, at) };
            if (out->theirs != out->ours)
                return true;
        }
    }
    return differs_in_flags(t, s, lanes, out);
}

static void print_place(uint32_t at, char out[32])
{
    if (at >= BLOCK_WINDOW)
        snprintf(out, 32, "memory+%u", at - BLOCK_WINDOW);
    else if (at == BLOCK_FCSR)
        snprintf(out, 32, "fcsr");
    else
        snprintf(out, 32, "%c%u", at >= BLOCK_F_OUT ? 'f' : 'x', (at - (at >= BLOCK_F_OUT ? BLOCK_F_OUT : BLOCK_X_OUT)) / 8);
}

/* Runs the sequence with one atom more each time: the first that makes a difference is told, with the registers before it. */
static void shrink(const struct batch *t, uint32_t s, struct cu_fixture *f, uint32_t lanes)
{
    struct difference d;
    char place[32];

    for (uint32_t from = 0; from < t->s[s].count; from += BATCH) {
        for (uint32_t k = 0; k < BATCH; k++) {
            shrunk->s[k] = t->s[s];
            shrunk->atoms[k] = from + k + 1 < t->s[s].count ? from + k + 1 : t->s[s].count;
            memcpy(shrunk->data + k * ITEMS * BLOCK_B, t->data + s * ITEMS * BLOCK_B, ITEMS * BLOCK_B);
        }
        build(shrunk);
        run_qemu(shrunk);
        run_units(shrunk, f, lanes);
        for (uint32_t k = 0; k < BATCH; k++) {
            if (!differs(shrunk, k, lanes, &d))
                continue;
            print_place(d.at, place);
            fprintf(stderr, "item %u: %s is 0x%016" PRIx64 ", in qemu 0x%016" PRIx64 ", first after (frm %u)\n", d.item, place, d.ours, d.theirs,
                    t->s[s].frm);
            atom_print(&t->s[s].atoms[shrunk->atoms[k] - 1]);
            for (uint32_t at = BLOCK_X_OUT; k && at < BLOCK_FCSR; at += 8) {
                print_place(at, place);
                fprintf(stderr, "%5s %016" PRIx64 "%s", place, value_at(shrunk->theirs, k - 1, d.item, at), at % 32 == 24 ? "\n" : "");
            }
            return;
        }
    }
    fprintf(stderr, "no shorter one differs\n");
}

static void compare(struct batch *t, struct cu_fixture *f, const char *how, uint32_t lanes, uint64_t seed)
{
    struct difference d;
    char place[32];

    run_units(t, f, lanes);
    for (uint32_t s = 0; s < BATCH; s++) {
        if (!differs(t, s, lanes, &d))
            continue;
        print_place(d.at, place);
        fprintf(stderr, "PETREL_SEED=%" PRIu64 ", %s, %u lanes: sequence %u item %u: %s is 0x%016" PRIx64 ", in qemu 0x%016" PRIx64 "\n", seed, how,
                lanes, s, d.item, place, d.ours, d.theirs);
        shrink(t, s, f, lanes);
        fail_msg("the machines differ");
    }
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

static void random_sequences(void **state)
{
    uint64_t first = number_from("PETREL_SEED", 1), batches = number_from("PETREL_BATCHES", BATCHES);

    (void)state;
    print_message("PETREL_SEED=%" PRIu64 " PETREL_BATCHES=%" PRIu64 "\n", first, batches);
    for (uint64_t seed = first; seed < first + batches; seed++) {
        struct rng r = { .s = seed * 0x9e3779b97f4a7c15ull + 1 };

        for (uint32_t s = 0; s < BATCH; s++) {
            sequence_make(&r, &b->s[s]);
            b->atoms[s] = b->s[s].count;
            for (uint32_t item = 0; item < ITEMS; item++)
                block_make(&r, b->data + (s * ITEMS + item) * BLOCK_B);
        }
        build(b);
        run_qemu(b);
        for (uint32_t i = 0; i < 2; i++) {
            compare(b, &fixtures[i], fixture_names[i], ITEMS, seed);
            compare(b, &fixtures[i], fixture_names[i], 1, seed);
        }
    }
}

/* A difference is seen: one register's bit, one of memory, one flag. */
static void differences_are_seen(void **state)
{
    struct difference d;

    (void)state;
    memcpy(b->ours, b->theirs, DATA_B);
    assert_false(differs(b, 3, ITEMS, &d));
    for (uint32_t at = BLOCK_X_OUT; at < BLOCK_B; at += 8) {
        if (at == BLOCK_RETURN)
            continue;
        b->ours[(3 * ITEMS + 31) * BLOCK_B + at] ^= 0x80;
        assert_true(differs(b, 3, ITEMS, &d));
        assert_int_equal(d.at, at);
        b->ours[(3 * ITEMS + 31) * BLOCK_B + at] ^= 0x80;
    }
}

static int setup(void **state)
{
    (void)state;
    b = calloc(1, sizeof(*b));
    shrunk = calloc(1, sizeof(*shrunk));
    fixture_create(&fixtures[0], true, true);
    fixture_create(&fixtures[1], false, false);
    return b && shrunk ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    fixture_destroy(&fixtures[0]);
    fixture_destroy(&fixtures[1]);
    free(b->code.bytes);
    free(shrunk->code.bytes);
    free(b);
    free(shrunk);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_sequences),
        cmocka_unit_test(differences_are_seen),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
