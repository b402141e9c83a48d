/* SPDX-License-Identifier: MIT */
/* test_sim.c - the compute units without a driver: what the loader takes and refuses, memory of lanes, resources. */
#include <elf.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "cu_asm.h"
#include "sim.h"

enum { EM_RISCV_ = 243, RELATIVE = 3, IRELATIVE = 58, BYTES_AT = 4096, X0 = 0, T0 = 5, T1, T2, A0 = 10, A7 = 17, LANE = 0xccc };
#define MIB (1ull << 20)
#define VA 0x80000000ull

/* A file that is put together here: headers, then `bytes` from BYTES_AT on. */
struct file {
    Elf64_Ehdr head;
    Elf64_Phdr segments[4];
    Elf64_Shdr sections[3];
};
static uint8_t *image;
static size_t image_B;
static struct file *file;
static struct sim *sim;
static struct sim_program program;
static struct sim_error error;
static uint64_t exit_value[SIM_LANES_MAX];

static void make(uint16_t type, size_t bytes)
{
    image_B = BYTES_AT + bytes;
    image = calloc(1, image_B);
    assert_non_null(image);
    file = (struct file *)image;
    file->head = (Elf64_Ehdr){ .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT }, .e_type = type, .e_machine = EM_RISCV_,
                               .e_version = EV_CURRENT, .e_entry = VA, .e_phoff = offsetof(struct file, segments), .e_ehsize = sizeof(Elf64_Ehdr),
                               .e_phentsize = sizeof(Elf64_Phdr), .e_shentsize = sizeof(Elf64_Shdr) };
}

static void segment(uint64_t va, uint64_t offset, uint64_t file_B, uint64_t size_B)
{
    file->segments[file->head.e_phnum++] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R | PF_W | PF_X, .p_offset = offset, .p_vaddr = va,
                                                         .p_filesz = file_B, .p_memsz = size_B, .p_align = 1 };
}

/* The dynamic segment and its relocations lie at the start of the bytes, which are mapped at VA. */
static void dynamic(uint64_t table_tag, uint64_t size_tag, uint64_t type, uint64_t to)
{
    Elf64_Dyn d[] = { { .d_tag = (Elf64_Sxword)table_tag, .d_un.d_ptr = VA + 256 }, { .d_tag = (Elf64_Sxword)size_tag, .d_un.d_val = sizeof(Elf64_Rela) } };
    Elf64_Rela r = { .r_offset = to, .r_info = type, .r_addend = 0x1234 };

    memcpy(image + BYTES_AT, d, sizeof(d)); /* zeros behind: DT_NULL */
    memcpy(image + BYTES_AT + 256, &r, sizeof(r));
    file->segments[file->head.e_phnum++] = (Elf64_Phdr){ .p_type = PT_DYNAMIC, .p_offset = BYTES_AT, .p_vaddr = VA, .p_filesz = 256, .p_memsz = 256 };
}

static void on_exit_value(void *observer, uint64_t item, uint64_t a0)
{
    (void)observer;
    exit_value[item] = a0;
}

static bool load(struct sim_config c, uint64_t ram_B)
{
    c.units = 1;
    c.bare = c.functional = true;
    c.on_exit = on_exit_value;
    c.lanes = c.lanes ? c.lanes : 1;
    sim = NULL;
    memset(&error, 0, sizeof(error));
    return sim_create(&c, &sim, &error) && sim_load(sim, image, image_B, ram_B, &program, &error);
}

static void end(void)
{
    sim_destroy(sim);
    free(image);
}

static void refused(const char *why)
{
    assert_false(load((struct sim_config){ 0 }, 0));
    assert_int_equal(error.status, 2);
    if (!strstr(error.text, why))
        fail_msg("\"%s\" does not say \"%s\"", error.text, why);
    end();
}

static void files_that_are_refused(void **state)
{
    (void)state;
    make(ET_EXEC, 64);
    segment(VA, BYTES_AT, 64, 32);
    refused("segment 0 has 64 bytes in the file and 32 in memory");
    make(ET_EXEC, 64);
    segment(VA, UINT64_MAX - 7, 8, 64);
    refused("the file ends before");
    make(ET_EXEC, 64);
    segment(VA, BYTES_AT, 65, 65);
    refused("segment 0 has 65 bytes at 4096: the file ends before");
    make(ET_EXEC, 64);
    segment(SIM_VA_END - 64, BYTES_AT, 64, 65);
    refused("apertures begin: link it lower");
    make(ET_EXEC, 64);
    segment(SIM_VA_END - 4 * MIB, BYTES_AT, 64, 64);
    refused("no room for a stack");
    make(ET_EXEC, 64);
    refused("nothing to load");
    make(ET_DYN, 4096);
    segment(VA, BYTES_AT, 4096, 4096);
    dynamic(DT_RELA, DT_RELASZ, RELATIVE, VA - 4);
    refused("relocation of 0x7ffffffc, which is not part of it");
    make(ET_DYN, 4096);
    segment(VA, BYTES_AT, 4096, 4096);
    dynamic(DT_JMPREL, DT_PLTRELSZ, IRELATIVE, VA + 512);
    refused("relocation of type 58");
    make(ET_DYN, 4096);
    segment(VA, BYTES_AT, 4096, 4096);
    dynamic(DT_RELR, DT_RELRSZ, 0, 0);
    refused("packed relocations");
}

/* More in the file than there is memory: told with both figures, before any of it is taken. */
static void memory_is_counted(void **state)
{
    (void)state;
    for (unsigned enough = 0; enough < 2; enough++) {
        make(ET_EXEC, 2 * MIB);
        segment(VA, BYTES_AT, 2 * MIB, 2 * MIB);
        segment(VA + 4 * MIB, BYTES_AT, 2 * MIB, 2 * MIB);
        assert_int_equal(load((struct sim_config){ .free_B = enough ? 4 * MIB : 3 * MIB }, 0), enough);
        assert_true(enough || strstr(error.text, "its segments have 4 MiB, and 3 MiB of memory are free"));
        end();
    }
    make(ET_EXEC, 64);
    segment(VA, BYTES_AT, 64, 64);
    assert_true(load((struct sim_config){ 0 }, 0));
    assert_in_range(sim_free_B(sim), MIB, UINT64_MAX - 1); /* the host says */
    end();
}

static void relocations_are_applied(void **state)
{
    (void)state;
    for (unsigned table = 0; table < 2; table++) {
        make(ET_DYN, 4096);
        segment(VA, BYTES_AT, 4096, 4096);
        dynamic(table ? DT_JMPREL : DT_RELA, table ? DT_PLTRELSZ : DT_RELASZ, RELATIVE, VA + 512);
        assert_true(load((struct sim_config){ .lanes = 3, .images = true }, 0));
        for (uint32_t i = 0; i < 3; i++)
            assert_int_equal(*(uint64_t *)sim_host(sim, i, VA + 512, 8), 0x1234);
        end();
    }
}

/* Of segments that overlap the one further up wins. */
static void overlapping_segments(void **state)
{
    (void)state;
    make(ET_EXEC, 64);
    memset(image + BYTES_AT, 1, 32);
    memset(image + BYTES_AT + 32, 2, 32);
    segment(VA + 16, BYTES_AT + 32, 32, 32);
    segment(VA, BYTES_AT, 32, 32);
    assert_true(load((struct sim_config){ 0 }, 0));
    assert_int_equal(*(uint8_t *)sim_host(sim, 0, VA + 15, 1), 1);
    assert_int_equal(*(uint8_t *)sim_host(sim, 0, VA + 16, 1), 2);
    end();
}

/* Memory grows as far as a stack still finds room below the apertures. */
static void room_for_the_stack(void **state)
{
    static const uint64_t below[] = { 16 * MIB, 8 * MIB + 4096, 1ull << 40 };

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        uint64_t va = SIM_VA_END - below[i];

        make(ET_EXEC, 64);
        segment(va, BYTES_AT, 64, 64);
        assert_true(load((struct sim_config){ 0 }, 128 * MIB));
        assert_in_range(program.stack_va, va + 4096, SIM_VA_END - 256);
        assert_non_null(sim_host(sim, 0, program.stack_va - SIM_STACK_B + 256, SIM_STACK_B));
        assert_non_null(sim_host(sim, 0, va, i == 2 ? 128 * MIB : 4096));
        end();
    }
}

/* Data of the segment with the entry is not decoded beforehand: sections say what is code, else it is what lies around the entry. */
static void code_is_bounded(void **state)
{
    static const uint64_t entries[] = { 0, 30 * MIB, 40 * MIB - 2 };

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        make(ET_EXEC, 40 * MIB);
        segment(VA, BYTES_AT, 40 * MIB, 40 * MIB);
        file->head.e_entry = VA + entries[i];
        assert_true(load((struct sim_config){ 0 }, 0));
        assert_in_range(program.code_B, 8 * MIB, 16 * MIB);
        assert_true(program.code_va >= VA && program.code_va + program.code_B <= VA + 40 * MIB);
        assert_true(program.entry >= program.code_va && program.entry - program.code_va < program.code_B);
        end();
    }
    for (unsigned there = 0; there < 2; there++) { /* sections that hold the entry, and some that do not */
        make(ET_EXEC, 4096);
        segment(VA, BYTES_AT, 4096, 4096);
        file->head.e_shoff = offsetof(struct file, sections);
        file->head.e_shnum = 3;
        file->sections[1] = (Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = VA + 512, .sh_offset = BYTES_AT + 512,
                                          .sh_size = 64 };
        file->sections[2] = (Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = VA + 1024, .sh_offset = BYTES_AT + 1024,
                                          .sh_size = 32 };
        file->head.e_entry = there ? VA + 1028 : VA;
        assert_true(load((struct sim_config){ 0 }, 0));
        assert_int_equal(program.code_va, there ? VA + 512 : VA);
        assert_int_equal(program.code_B, there ? 1024 + 32 - 512 : 4096);
        end();
    }
}

/* ---- Lanes ---- */

/* Writes 100 + lane into the first word of the first range and 200 + lane into that of the second, a0 is the sum of what is then read. */
static void make_two_ranges(uint64_t far_va)
{
    uint32_t code[] = {
        i_type(MATCH(csrrs), T2, X0, LANE),
        MATCH(auipc) | T0 << 7,
        MATCH(lui) | T1 << 7 | (uint32_t)(far_va & 0xfffff000),
        i_type(MATCH(addi), A0, T2, 100),
        s_type(MATCH(sd), T0, A0, 2044),
        i_type(MATCH(addi), A0, T2, 200),
        s_type(MATCH(sd), T1, A0, 0),
        i_type(MATCH(ld), T2, T0, 2044),
        i_type(MATCH(ld), A0, T1, 0),
        r_type(MATCH(add), A0, A0, T2),
        i_type(MATCH(addi), A7, X0, 93),
        MATCH(ecall),
    };

    make(ET_EXEC, 4096);
    memcpy(image + BYTES_AT, code, sizeof(code));
    memset(image + BYTES_AT + 2048, 0x5a, 8);
    segment(VA, BYTES_AT, 4096, 4096);
    segment(far_va, BYTES_AT + 2048, 8, 4096);
}

static uint64_t word(uint32_t item, uint64_t va)
{
    uint64_t v;

    memcpy(&v, sim_host(sim, item, va, 8), 8);
    return v;
}

static void run_warp(uint32_t lanes)
{
    struct petrel_dispatch d = { .entry_va = program.entry, .grid = { 1, 1, 1 }, .block = { lanes, 1, 1 }, .code_va = program.code_va,
                                 .code_B = program.code_B };
    struct hw_cu_fault fault;

    memset(exit_value, 0, sizeof(exit_value));
    assert_true(sim_start(sim, &d, &fault));
    assert_int_equal(sim_run(sim, UINT64_MAX, &fault), SIM_DONE);
    for (uint32_t l = 0; l < lanes; l++)
        assert_int_equal(exit_value[l], 300 + 2 * l);
}

/* Each lane has copies of ranges that lie far apart, and those of lanes that are done begin anew, but the first one's. */
static void images_of_two_ranges(void **state)
{
    static const uint64_t filled = 0x5a5a5a5a5a5a5a5a, far_va = 0x10000000;

    (void)state;
    for (unsigned portable = 0; portable < 2; portable++) {
        make_two_ranges(far_va);
        assert_true(load((struct sim_config){ .lanes = 64, .images = true, .portable = portable }, MIB));
        run_warp(32);
        for (uint32_t i = 0; i < 64; i++) {
            assert_int_equal(word(i, VA + 2048), i < 32 ? 100 + i : filled);
            assert_int_equal(word(i, far_va), i < 32 ? 200 + i : filled);
        }
        sim_set_first(sim, 32);
        run_warp(32);
        for (uint32_t i = 0; i < 64; i++) {
            assert_int_equal(word(i, VA + 2048), i == 0 ? 100 : i < 32 ? filled : 68 + i);
            assert_int_equal(word(i, far_va), i == 0 ? 200 : i < 32 ? filled : 168 + i);
        }
        end();
    }
}

static uint64_t resident_B(void)
{
    struct rusage u;

    assert_int_equal(getrusage(RUSAGE_SELF, &u), 0);
    return (uint64_t)u.ru_maxrss << 10;
}

/* What lanes do not write they share. */
static void copies_cost_nothing(void **state)
{
    (void)state;
    make(ET_EXEC, 8 * MIB);
    segment(VA, BYTES_AT, 8 * MIB, 8 * MIB);
    memset(image + BYTES_AT, 0x11, 8 * MIB);
    uint64_t before = resident_B();
    assert_true(load((struct sim_config){ .lanes = 128, .images = true }, 0));
    assert_int_equal(word(127, VA + 8 * MIB - 8), 0x1111111111111111);
    assert_in_range(resident_B() - before, 0, 256 * MIB); /* 1 GiB if each had its own */
    end();
}

/* A profile whose register file is too small for the lanes does not keep them from running. */
static void registers_for_all_lanes(void **state)
{
    char path[] = "/tmp/petrel-sim-XXXXXX";
    int fd = mkstemp(path);
    const char text[] = "[cu]\nwarps_per_cu = 64\nregs_per_cu = 1024\n";

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
    close(fd);
    make_two_ranges(0x10000000);
    bool ok = load((struct sim_config){ .lanes = SIM_LANES_MAX, .profile = path }, MIB);
    unlink(path);
    assert_true(ok);
    struct petrel_dispatch d = { .entry_va = program.entry, .grid = { 1, 1, 1 }, .block = { SIM_LANES_MAX, 1, 1 }, .code_va = program.code_va,
                                 .code_B = program.code_B };
    struct hw_cu_fault fault;
    assert_true(sim_start(sim, &d, &fault));
    sim_stop(sim);
    end();
}

/* ---- Notes about where lanes meet ---- */

static Elf64_Shdr *note_section(void)
{
    FILE *f = fopen(NOTE_KERNELS, "rb");

    assert_non_null(f);
    image = calloc(1, MIB);
    image_B = fread(image, 1, MIB, f);
    fclose(f);
    Elf64_Shdr *sh = (Elf64_Shdr *)(image + ((const Elf64_Ehdr *)image)->e_shoff);
    while (sh->sh_type != SHT_NOTE || sh->sh_size != 2 * 28)
        sh++;
    return sh;
}

/* As hw-run and umd-bench have them: the loader finds the section, and lanes come by behind the switch when all have (note_kernels.S). */
static void notes_are_used(void **state)
{
    const struct { uint32_t type; uint64_t flags, size_B, up_B; } bad[] = {
        { SHT_PROGBITS, SHF_ALLOC, 56, 0 }, { SHT_NOTE, 0, 56, 0 }, { SHT_NOTE, SHF_ALLOC, PETREL_NOTES_MAX_B + 4, 0 }, { SHT_NOTE, SHF_ALLOC, 56, 2 },
        { SHT_NOTE, SHF_ALLOC, 56, SIM_VA_END }, { SHT_NOTE, SHF_ALLOC, 56, 0ull - 4096 },
    };
    struct hw_cu_fault fault;
    uint64_t entry = 0, args = 64 * MIB;

    (void)state;
    (void)note_section();
    assert_true(load((struct sim_config){ .lanes = 32 }, 0));
    struct sim_symbols *symbols = sim_symbols_open(image, image_B);
    assert_true(sim_symbol(symbols, "together", &entry));
    sim_symbols_close(symbols);
    assert_true(sim_map(sim, args, 4096, &error));
    *(uint64_t *)sim_host(sim, 0, args, 8) = args + 8;
    const struct petrel_dispatch d = { .entry_va = entry, .args_va = args, .grid = { 1, 1, 1 }, .block = { 32, 1, 1 }, .code_va = entry & ~4095ull, .code_B = 4096 };
    assert_true(sim_start(sim, &d, &fault));
    assert_int_equal(sim_run(sim, UINT64_MAX, &fault), SIM_DONE);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(word(0, args + 8 + 8 * i), (10ull + i % 4) << 32 | 17);
    end();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        Elf64_Shdr *sh = note_section();

        sh->sh_type = bad[i].type;
        sh->sh_flags = bad[i].flags;
        sh->sh_size = bad[i].size_B;
        sh->sh_addr += bad[i].up_B;
        refused("its section .note.petrel.converge");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_that_are_refused),
        cmocka_unit_test(memory_is_counted),
        cmocka_unit_test(relocations_are_applied),
        cmocka_unit_test(overlapping_segments),
        cmocka_unit_test(room_for_the_stack),
        cmocka_unit_test(code_is_bounded),
        cmocka_unit_test(images_of_two_ranges),
        cmocka_unit_test(copies_cost_nothing),
        cmocka_unit_test(registers_for_all_lanes),
        cmocka_unit_test(notes_are_used),
    };

    return cmocka_run_group_tests_name("sim", tests, NULL, NULL);
}
