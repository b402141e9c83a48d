/* SPDX-License-Identifier: MIT */
/* test_umd_code.c - the code-object reader alone: every cut and bit flip ends in a code, and relocations move with the base. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <elf.h>

#include <uapi/petrel_drm.h>

#include "module.h"
#include "record.h"

static uint8_t *image;
static size_t image_B;
static uint8_t *tls_image;          /* one with thread-local storage */
static size_t tls_image_B;
static uint8_t *note_image;         /* one with convergence notes */
static size_t note_image_B;
enum { ROOM_B = 2 * PETREL_NOTES_MAX_B };

static uint8_t *load_file(const char *path, size_t *size_out)
{
    FILE *f = fopen(path, "rb");
    long n;

    if (!f || fseek(f, 0, SEEK_END) || (n = ftell(f)) <= 0)
        exit(2);
    rewind(f);
    uint8_t *bytes = malloc((size_t)n);
    if (!bytes || fread(bytes, 1, (size_t)n, f) != (size_t)n)
        exit(2);
    fclose(f);
    *size_out = (size_t)n;
    return bytes;
}

/* The whole of loading that needs no device. */
static umdStatus parse(const uint8_t *bytes, size_t n)
{
    struct umd_code c;
    umdErrorDetail d;

    umdStatus st = umd_code_parse(bytes, n, &c);
    if (st == UMD_SUCCESS) {
        st = umd_code_relocate(bytes, n, &c, 0x10000000);
        umd_code_free(&c);
    }
    if (st < 0)
        assert_true(umd_record_export(&d)); /* each failure has its record */
    return st;
}

static void good(void **state)
{
    struct umd_code c;
    uint64_t start, size_B;
    bool exec = false, write_exec = false;

    (void)state;
    assert_int_equal(umd_code_parse(image, image_B, &c), UMD_SUCCESS);
    assert_int_equal(umd_code_relocate(image, image_B, &c, 0x10000000), UMD_SUCCESS);
    assert_int_equal(c.kernel_count, 13);
    for (uint32_t i = 0; i < c.kernel_count; i++) {
        struct petrel_kernel_meta m;
        memcpy(&m, c.memory + c.kernels_at + i * sizeof(m), sizeof(m));
        assert_int_equal(m.version, 1);
        assert_true(umd_code_segment(image, image_B, m.entry - 0x10000000, &start, &size_B));
        assert_true(m.entry - 0x10000000 - start < size_B);
    }
    for (uint64_t p = 0; p < c.size_B / 4096; p++) {
        exec |= (c.rights[p] & DRM_PETREL_BIND_EXEC) != 0;
        write_exec |= (c.rights[p] & DRM_PETREL_BIND_EXEC) && (c.rights[p] & DRM_PETREL_BIND_WRITE);
    }
    assert_true(exec);
    assert_false(write_exec);
    assert_false(umd_code_segment(image, image_B, 1ull << 40, &start, &size_B));
    umd_code_free(&c);
}

static void truncated(void **state)
{
    (void)state;
    for (size_t n = 0; n < image_B; n += 64) {
        uint8_t *cut = malloc(n ? n : 1); /* of its own, so that ASan sees a read past the end */
        memcpy(cut, image, n);
        assert_int_equal(parse(cut, n), UMD_ERR_MODULE_FORMAT);
        free(cut);
    }
}

static void flipped(void **state)
{
    uint32_t refused = 0, seed = 3;
    uint8_t *copy = malloc(image_B);

    (void)state;
    for (size_t bit = 0; bit < 64 * 8 + 20000; bit++) {
        size_t at = bit / 8;
        memcpy(copy, image, image_B);
        seed = seed * 1664525u + 1013904223u;
        if (bit >= 64 * 8) /* every bit of the ELF header, then anywhere */
            at = (seed >> 4) % image_B;
        copy[at] ^= (uint8_t)(1u << (bit & 7u));
        umdStatus st = parse(copy, image_B);
        assert_true(st == UMD_SUCCESS || st == UMD_ERR_MODULE_FORMAT || st == UMD_ERR_MODULE_ISA);
        refused += st < 0;
    }
    assert_true(refused > 100);
    free(copy);
}

struct poke { size_t at; uint8_t value; umdStatus code; };

static void headers(void **state)
{
    static const struct poke pokes[] = {
        { EI_MAG0, 0, UMD_ERR_MODULE_FORMAT }, { EI_CLASS, ELFCLASS32, UMD_ERR_MODULE_FORMAT }, { EI_DATA, ELFDATA2MSB, UMD_ERR_MODULE_FORMAT },
        { offsetof(Elf64_Ehdr, e_type), ET_EXEC, UMD_ERR_MODULE_FORMAT }, { offsetof(Elf64_Ehdr, e_machine), EM_X86_64, UMD_ERR_MODULE_ISA },
        { offsetof(Elf64_Ehdr, e_flags), 0x0d, UMD_ERR_MODULE_ISA }, { offsetof(Elf64_Ehdr, e_flags), 0x07, UMD_ERR_MODULE_ISA },
        { offsetof(Elf64_Ehdr, e_phnum), 0, UMD_ERR_MODULE_FORMAT }, { offsetof(Elf64_Ehdr, e_phnum), 200, UMD_ERR_MODULE_FORMAT },
        { offsetof(Elf64_Ehdr, e_phoff) + 7, 0xff, UMD_ERR_MODULE_FORMAT }, { offsetof(Elf64_Ehdr, e_shoff) + 7, 0xff, UMD_ERR_MODULE_FORMAT },
        { offsetof(Elf64_Ehdr, e_shentsize), 1, UMD_ERR_MODULE_FORMAT }, { offsetof(Elf64_Ehdr, e_shstrndx), 255, UMD_ERR_MODULE_FORMAT },
    };
    uint8_t *copy = malloc(image_B);

    (void)state;
    for (size_t i = 0; i < sizeof(pokes) / sizeof(pokes[0]); i++) {
        memcpy(copy, image, image_B);
        copy[pokes[i].at] = pokes[i].value;
        assert_int_equal(parse(copy, image_B), pokes[i].code);
    }
    free(copy);
}

/* A relocation of another type than RELATIVE, or out of bounds, is refused. */
static void relocations(void **state)
{
    uint8_t *copy = malloc(image_B);
    Elf64_Ehdr e;
    uint32_t tables = 0;

    (void)state;
    memcpy(&e, image, sizeof(e));
    for (uint32_t i = 0; i < e.e_shnum; i++) {
        Elf64_Shdr sh;
        memcpy(&sh, image + e.e_shoff + i * sizeof(sh), sizeof(sh));
        if (sh.sh_type != SHT_RELA || !sh.sh_size)
            continue;
        tables++;
        Elf64_Rela r;
        memcpy(&r, image + sh.sh_offset, sizeof(r));
        Elf64_Rela bad[3] = { r, r, r };
        bad[0].r_info = ELF64_R_INFO(0, R_RISCV_64);
        bad[1].r_offset = 1ull << 50;
        bad[2].r_addend = -1;
        for (int k = 0; k < 3; k++) {
            memcpy(copy, image, image_B);
            memcpy(copy + sh.sh_offset, &bad[k], sizeof(r));
            assert_int_equal(parse(copy, image_B), UMD_ERR_MODULE_FORMAT);
        }
    }
    assert_true(tables > 0);
    free(copy);
}

/* Thread-local storage is described, or refused where the device could not give it. */
static void thread_local_storage(void **state)
{
    uint8_t *copy = malloc(tls_image_B);
    struct umd_code c;
    Elf64_Ehdr e;
    Elf64_Phdr p = { 0 };
    size_t at = 0;

    (void)state;
    memcpy(&e, tls_image, sizeof(e));
    for (uint32_t i = 0; i < e.e_phnum && p.p_type != PT_TLS; i++) {
        at = e.e_phoff + i * sizeof(p);
        memcpy(&p, tls_image + at, sizeof(p));
    }
    assert_int_equal(p.p_type, PT_TLS);
    assert_int_equal(umd_code_parse(tls_image, tls_image_B, &c), UMD_SUCCESS);
    assert_int_equal(c.tls_B, p.p_memsz);
    assert_int_equal(c.tls_file_B, p.p_filesz);
    assert_int_equal(c.tls_align, 64);
    assert_memory_equal(c.memory + c.tls_at, tls_image + p.p_offset, p.p_filesz);
    umd_code_free(&c);
    assert_int_equal(umd_code_parse(image, image_B, &c), UMD_SUCCESS);
    assert_int_equal(c.tls_B, 0);
    umd_code_free(&c);
    Elf64_Phdr bad[] = { p, p, p, p, p, p };
    bad[0].p_memsz = p.p_filesz - 1;
    bad[1].p_memsz = PETREL_TLS_MAX_B + 1;
    bad[2].p_align = 2 * PETREL_TLS_ALIGN_MAX;
    bad[3].p_align = 48;
    bad[4].p_vaddr += 8;
    bad[5].p_vaddr = 1ull << 40;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        memcpy(copy, tls_image, tls_image_B);
        memcpy(copy + at, &bad[i], sizeof(p));
        assert_int_equal(parse(copy, tls_image_B), UMD_ERR_MODULE_FORMAT);
    }
    free(copy);
}

/* The section header of a name in the image, and where it lies in the file. */
static Elf64_Shdr section(const uint8_t *bytes, const char *name, size_t *at_out)
{
    Elf64_Ehdr e;
    Elf64_Shdr sh, names;

    memcpy(&e, bytes, sizeof(e));
    memcpy(&names, bytes + e.e_shoff + e.e_shstrndx * sizeof(sh), sizeof(names));
    for (uint32_t i = 0; i < e.e_shnum; i++) {
        *at_out = e.e_shoff + i * sizeof(sh);
        memcpy(&sh, bytes + *at_out, sizeof(sh));
        if (!strcmp((const char *)bytes + names.sh_offset + sh.sh_name, name))
            return sh;
    }
    fail_msg("no section %s", name);
    return sh;
}

static void refused_for(const uint8_t *bytes, const char *why)
{
    struct umd_code c;
    umdErrorDetail d;

    assert_int_equal(umd_code_parse(bytes, note_image_B, &c), UMD_ERR_MODULE_FORMAT);
    assert_true(umd_record_export(&d));
    if (!strstr(d.figures, "reason=\"convergence note\"") || !strstr(d.figures, why))
        fail_msg("\"%s\" does not say \"%s\"", d.figures, why);
}

/* Sections of notes that are none, or lie where the device could not read them. */
static void note_sections(void **state)
{
    uint8_t *copy = malloc(note_image_B);
    size_t at, text_at;
    const Elf64_Shdr good_one = section(note_image, PETREL_NOTE_SECTION, &at), text = section(note_image, ".text", &text_at);
    const struct { Elf64_Shdr sh; const char *why; } bad[] = {
#define BAD(field_, value_, why_) { ({ Elf64_Shdr s_ = good_one; s_.field_ = (value_); s_; }), why_ }
        BAD(sh_type, SHT_PROGBITS, "no section of notes"), BAD(sh_type, SHT_NOBITS, "no section of notes"), BAD(sh_flags, 0, "it is not loaded"),
        BAD(sh_size, PETREL_NOTES_MAX_B + 4, "too large"), BAD(sh_addr, good_one.sh_addr + 2, "not aligned"),
        BAD(sh_addr, UINT64_MAX - 3, "not in readable memory"), BAD(sh_addr, 1ull << 40, "not in readable memory"),
        BAD(sh_size, PETREL_NOTES_MAX_B, "not in readable memory"), BAD(sh_size, good_one.sh_size - 1, "a note reaches beyond its end"),
        BAD(sh_size, 11, "it ends within a header"), BAD(sh_size, 12, "a note reaches beyond its end"), BAD(sh_addr, text.sh_addr, "a note"),
#undef BAD
    };
    struct umd_code c;

    (void)state;
    assert_int_equal(umd_code_parse(note_image, note_image_B, &c), UMD_SUCCESS);
    assert_int_equal(c.notes_at, good_one.sh_addr);
    assert_int_equal(c.notes_B, good_one.sh_size);
    assert_int_equal(c.tls_B, 0);
    umd_code_free(&c);
    assert_int_equal(umd_code_parse(image, image_B, &c), UMD_SUCCESS);
    assert_int_equal(c.notes_B, 0);
    umd_code_free(&c);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        memcpy(copy, note_image, note_image_B);
        memcpy(copy + at, &bad[i].sh, sizeof(good_one));
        refused_for(copy, bad[i].why);
    }
    memcpy(copy, note_image, note_image_B);
    memcpy(copy + text_at, &good_one, sizeof(good_one)); /* .text has become a section of that name, too */
    refused_for(copy, "a second section");
    for (uint64_t size_B = 1; size_B < good_one.sh_size; size_B++) { /* cut: between two notes it is good */
        Elf64_Shdr cut = good_one;

        cut.sh_size = size_B;
        memcpy(copy, note_image, note_image_B);
        memcpy(copy + at, &cut, sizeof(cut));
        if (size_B == good_one.sh_size / 2)
            assert_int_equal(parse(copy, note_image_B), UMD_SUCCESS);
        else
            refused_for(copy, "convergence note");
    }
    free(copy);
}

/* Every field of a note, and every bit of its head and name. Where a pair leads is the device's matter. */
static void note_records(void **state)
{
    static const struct { Elf64_Nhdr head; const char *why; } bad[] = {
        { { 7, 7, 1 }, "" }, { { 7, UINT32_MAX, 1 }, "a note reaches beyond its end" }, { { 7, 0xfffffffc, 1 }, "a note reaches beyond its end" },
        { { UINT32_MAX, 8, 1 }, "a note reaches beyond its end" }, { { 0xfffffff8, 8, 1 }, "a note reaches beyond its end" },
        { { 6, 8, 1 }, "a note of another name" }, { { 8, 8, 1 }, "a note of another name" }, { { 0, 8, 1 }, "a note of another name" },
        { { 7, 4, 1 }, "" }, { { 7, 12, 1 }, "half a pair" }, { { 7, 60, 1 }, "a note reaches beyond its end" }, { { 7, 36, 1 }, "half a pair" },
    };
    uint8_t *copy = malloc(note_image_B);
    size_t at;
    const Elf64_Shdr sh = section(note_image, PETREL_NOTE_SECTION, &at);

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        memcpy(copy, note_image, note_image_B);
        memcpy(copy + sh.sh_offset, &bad[i].head, sizeof(bad[i].head));
        refused_for(copy, bad[i].why);
    }
    for (size_t bit = 0; bit < 8 * sh.sh_size / 2; bit++) {
        memcpy(copy, note_image, note_image_B);
        copy[sh.sh_offset + bit / 8] ^= (uint8_t)(1u << bit % 8);
        const size_t byte = bit / 8;
        if ((byte >= 8 && byte < 12) || byte == 19 || byte >= 20) /* another type is passed over; the name's padding; the pair */
            assert_int_equal(parse(copy, note_image_B), UMD_SUCCESS);
        else
            refused_for(copy, "");
    }
    free(copy);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good), cmocka_unit_test(truncated), cmocka_unit_test(flipped), cmocka_unit_test(headers), cmocka_unit_test(relocations),
        cmocka_unit_test(thread_local_storage), cmocka_unit_test(note_sections), cmocka_unit_test(note_records),
    };
    if (argc < 4)
        return 1;
    image = load_file(argv[1], &image_B);
    tls_image = load_file(argv[2], &tls_image_B);
    uint8_t *file = load_file(argv[3], &note_image_B);
    note_image = calloc(1, note_image_B + ROOM_B); /* a section may be said to be larger than it is */
    if (!note_image)
        return 1;
    memcpy(note_image, file, note_image_B);
    note_image_B += ROOM_B;
    free(file);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(image);
    free(tls_image);
    free(note_image);
    return failed;
}
