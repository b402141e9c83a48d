/* SPDX-License-Identifier: MIT */
/* load.c - checks a statically linked RV64 file, maps what it wants where it wants it, fills and relocates it. */
/*
 * All memory is readable, writable and executable whatever the segments say: programs for bare machines mark their one segment
 * as they like, write over their code and run their data. Page 0 is mapped only if a segment lies there.
 */
#include <elf.h>
#include <gelf.h>
#include <inttypes.h>
#include <libelf.h>
#include <string.h>

#include <hw/petrel_codeobj.h>

#include "sim.h"
#include "umd-tool.h"

#ifndef R_RISCV_RELATIVE
#define R_RISCV_RELATIVE 3
#endif

enum { PAGE_B = 4096, SEGMENTS_MAX = 64 };
/* Segments further apart than this have memory of their own. */
#define APART_B (1ull << 30)
/* Code is decoded beforehand at most so far around the entry, at 28 bytes a byte; what lies beyond is decoded page by page. */
#define CODE_MAX_B (16ull << 20)
#define BAD(fmt_, ...) sim_fail(error_out, EXIT_ENVIRONMENT, fmt_, ##__VA_ARGS__)

struct segment { uint64_t va, file_off, file_B, size_B; };

struct layout {
    Elf *elf;
    const uint8_t *image;
    size_t image_B;
    GElf_Ehdr head;
    struct segment segments[SEGMENTS_MAX]; /* by address */
    uint32_t count;
    uint64_t dynamic_off, dynamic_B;
};

static uint64_t page_down(uint64_t va) { return va & ~(uint64_t)(PAGE_B - 1); }
static uint64_t page_up(uint64_t va) { return page_down(va + PAGE_B - 1); }

static bool check_header(struct layout *l, struct sim_error *error_out)
{
    GElf_Ehdr *e = &l->head;

    if (l->image_B < sizeof(Elf64_Ehdr) || memcmp(l->image, ELFMAG, SELFMAG) != 0)
        return BAD("it is no ELF file");
    if (l->image[EI_CLASS] != ELFCLASS64 || l->image[EI_DATA] != ELFDATA2LSB)
        return BAD("it is no 64-bit little-endian file");
    elf_version(EV_CURRENT);
    l->elf = elf_memory((char *)(uintptr_t)l->image, l->image_B);
    if (!l->elf || !gelf_getehdr(l->elf, e))
        return BAD("it is no ELF file that can be read: %s", elf_errmsg(-1));
    if (e->e_machine != EM_RISCV)
        return BAD("it is for another machine (%u): compile for riscv64", e->e_machine);
    if (e->e_type != ET_EXEC && e->e_type != ET_DYN)
        return BAD("it is no program that is linked (type %u)", e->e_type);
    return true;
}

static bool add_segment(struct layout *l, size_t index, const GElf_Phdr *p, struct sim_error *error_out)
{
    uint32_t at = l->count;

    if (!p->p_memsz)
        return true;
    if (p->p_filesz > p->p_memsz)
        return BAD("segment %zu has %" PRIu64 " bytes in the file and %" PRIu64 " in memory: it must not have fewer there", index,
                   (uint64_t)p->p_filesz, (uint64_t)p->p_memsz);
    if (p->p_offset > l->image_B || p->p_filesz > l->image_B - p->p_offset)
        return BAD("segment %zu has %" PRIu64 " bytes at %" PRIu64 ": the file ends before", index, (uint64_t)p->p_filesz, (uint64_t)p->p_offset);
    if (p->p_vaddr >= SIM_VA_END || p->p_memsz > SIM_VA_END - p->p_vaddr)
        return BAD("segment %zu at 0x%" PRIx64 " reaches 0x%llx, where the device's own apertures begin: link it lower", index,
                   (uint64_t)p->p_vaddr, SIM_VA_END);
    if (l->count == SEGMENTS_MAX)
        return BAD("it has more than %d segments", SEGMENTS_MAX);
    for (; at && l->segments[at - 1].va > p->p_vaddr; at--)
        l->segments[at] = l->segments[at - 1];
    l->segments[at] = (struct segment){ .va = p->p_vaddr, .file_off = p->p_offset, .file_B = p->p_filesz, .size_B = p->p_memsz };
    l->count++;
    return true;
}

static bool read_segments(struct layout *l, struct sim_error *error_out)
{
    size_t n = 0;

    if (elf_getphdrnum(l->elf, &n))
        return BAD("its program headers cannot be read: %s", elf_errmsg(-1));
    for (size_t i = 0; i < n; i++) {
        GElf_Phdr p;
        if (!gelf_getphdr(l->elf, (int)i, &p))
            return BAD("program header %zu cannot be read: %s", i, elf_errmsg(-1));
        if (p.p_type == PT_INTERP)
            return BAD("it needs an interpreter: link it with -static");
        if (p.p_type == PT_DYNAMIC && p.p_offset <= l->image_B && p.p_filesz <= l->image_B - p.p_offset) {
            l->dynamic_off = p.p_offset;
            l->dynamic_B = p.p_filesz;
        }
        if (p.p_type == PT_LOAD && !add_segment(l, i, &p, error_out))
            return false;
    }
    return l->count || BAD("it has nothing to load");
}

/* What is filled now has to be there. What the program touches later is not known. */
static bool check_memory(const struct sim *s, const struct layout *l, struct sim_error *error_out)
{
    uint64_t wanted_B = 0, free_B = sim_free_B(s);

    for (uint32_t i = 0; i < l->count; i++)
        wanted_B += l->segments[i].file_B;
    return wanted_B <= free_B || BAD("its segments have %" PRIu64 " MiB, and %" PRIu64 " MiB of memory are free: run it where there is more",
                                     wanted_B >> 20, free_B >> 20);
}

/* Memory by groups of segments that lie near each other; the first has ram_B at least where there is room. The stack is above all. */
static bool map_memory(struct sim *s, const struct layout *l, uint64_t ram_B, struct sim_program *out, struct sim_error *error_out)
{
    uint64_t top = 0;

    for (uint32_t i = 0, next; i < l->count; i = next) {
        uint64_t low = page_down(l->segments[i].va), end = 0, limit = SIM_VA_END - SIM_STACK_B;

        for (next = i; next < l->count && (next == i || l->segments[next].va < end + APART_B); next++)
            if (l->segments[next].va + l->segments[next].size_B > end)
                end = l->segments[next].va + l->segments[next].size_B;
        if (next < l->count)
            limit = page_down(l->segments[next].va);
        end = page_up(end);
        if (i == 0 && end - low < ram_B && end < limit)
            end = ram_B > limit - low ? limit : low + page_up(ram_B);
        top = end;
        if (next == l->count && SIM_VA_END - end >= SIM_STACK_B)
            end += SIM_STACK_B;
        if (!sim_map(s, low, end - low, error_out))
            return false;
        if (next < l->count)
            continue;
        if (end == top)
            return BAD("no room for a stack above 0x%" PRIx64 ": link it lower", top);
        out->stack_va = end - 256; /* zeros above: no arguments, no environment, no auxiliary vector */
    }
    return true;
}

static bool fill(struct sim *s, const struct layout *l, struct sim_error *error_out)
{
    for (uint32_t i = 0; i < l->count; i++)
        if (!sim_fill(s, l->segments[i].va, l->image + l->segments[i].file_off, l->segments[i].file_B, error_out))
            return false;
    return true;
}

static bool relocate_one(struct sim *s, uint64_t rela_va, struct sim_error *error_out)
{
    const void *from = sim_host(s, 0, rela_va, sizeof(Elf64_Rela));
    Elf64_Rela r;

    if (!from)
        return BAD("its relocations at 0x%" PRIx64 " are not part of it", rela_va);
    memcpy(&r, from, sizeof(r));
    if (ELF64_R_TYPE(r.r_info) != R_RISCV_RELATIVE)
        return BAD("relocation of type %u at 0x%" PRIx64 ": link it with -static", (unsigned)ELF64_R_TYPE(r.r_info), (uint64_t)r.r_offset);
    if (!sim_host(s, 0, r.r_offset, sizeof(r.r_addend)))
        return BAD("relocation of 0x%" PRIx64 ", which is not part of it", (uint64_t)r.r_offset);
    return sim_fill(s, r.r_offset, &r.r_addend, sizeof(r.r_addend), error_out);
}

/* Both tables of relocations: those of data, and those that a dynamic linker may put off. */
static bool relocate(struct sim *s, const struct layout *l, struct sim_error *error_out)
{
    uint64_t table[2] = { 0 }, table_B[2] = { 0 };

    for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= l->dynamic_B; at += sizeof(Elf64_Dyn)) {
        Elf64_Dyn d;
        memcpy(&d, l->image + l->dynamic_off + at, sizeof(d));
        if (d.d_tag == DT_NULL)
            break;
        if (d.d_tag == DT_NEEDED)
            return BAD("it needs a shared library: link it with -static");
        if (d.d_tag == DT_RELR)
            return BAD("it has packed relocations: link it without -z pack-relative-relocs");
        if (d.d_tag == DT_RELA || d.d_tag == DT_JMPREL)
            table[d.d_tag == DT_JMPREL] = d.d_un.d_ptr;
        if (d.d_tag == DT_RELASZ || d.d_tag == DT_PLTRELSZ)
            table_B[d.d_tag == DT_PLTRELSZ] = d.d_un.d_val;
    }
    for (uint32_t t = 0; t < 2; t++)
        for (uint64_t i = 0; i < table_B[t] / sizeof(Elf64_Rela); i++)
            if (!relocate_one(s, table[t] + i * sizeof(Elf64_Rela), error_out))
                return false;
    return true;
}

/* Narrows [*begin, *end), a segment, to its sections that hold instructions, if these hold the entry: data need not be decoded. */
static void narrow_to_sections(const struct layout *l, uint64_t *begin, uint64_t *end)
{
    uint64_t low = UINT64_MAX, high = 0;

    for (Elf_Scn *scn = elf_nextscn(l->elf, NULL); scn; scn = elf_nextscn(l->elf, scn)) {
        GElf_Shdr sh;

        if (!gelf_getshdr(scn, &sh) || !(sh.sh_flags & SHF_EXECINSTR) || sh.sh_type == SHT_NOBITS || sh.sh_addr < *begin || sh.sh_addr >= *end ||
            sh.sh_size > *end - sh.sh_addr)
            continue;
        low = sh.sh_addr < low ? sh.sh_addr : low;
        high = sh.sh_addr + sh.sh_size > high ? sh.sh_addr + sh.sh_size : high;
    }
    if (l->head.e_entry >= low && l->head.e_entry < high) {
        *begin = low;
        *end = high;
    }
}

/* The segment that holds the entry, or as much of it as is worth to be decoded as one. */
static void find_code(const struct layout *l, struct sim_program *out)
{
    out->entry = l->head.e_entry;
    for (uint32_t i = 0; i < l->count; i++) {
        uint64_t begin = l->segments[i].va, end = begin + l->segments[i].file_B;

        if (out->entry < begin || out->entry >= end)
            continue;
        narrow_to_sections(l, &begin, &end);
        if (end - begin > CODE_MAX_B) {
            begin = out->entry - begin > CODE_MAX_B / 2 ? out->entry - CODE_MAX_B / 2 : begin;
            end = end - begin > CODE_MAX_B ? begin + CODE_MAX_B : end;
        }
        out->code_va = begin & ~1ull;
        out->code_B = end - out->code_va;
    }
}

/* What the program says about where lanes meet; the units look at each note themselves. */
static bool take_notes(struct sim *s, const struct layout *l, struct sim_error *error_out)
{
    size_t names;
    bool found = false;

    if (elf_getshdrstrndx(l->elf, &names))
        return true; /* a program may have no sections */
    for (Elf_Scn *scn = elf_nextscn(l->elf, NULL); scn; scn = elf_nextscn(l->elf, scn)) {
        GElf_Shdr sh;
        const char *name = gelf_getshdr(scn, &sh) ? elf_strptr(l->elf, names, sh.sh_name) : NULL;

        if (!name || strcmp(name, PETREL_NOTE_SECTION) != 0 || !sh.sh_size)
            continue;
        if (found || sh.sh_type != SHT_NOTE || !(sh.sh_flags & SHF_ALLOC) || sh.sh_size > PETREL_NOTES_MAX_B || sh.sh_addr % 4 ||
            !sim_host(s, 0, sh.sh_addr, sh.sh_size))
            return BAD("its section " PETREL_NOTE_SECTION " at 0x%" PRIx64 " with %" PRIu64 " bytes cannot be used: there must be one, of notes, loaded, of at most"
                       " %u bytes", (uint64_t)sh.sh_addr, (uint64_t)sh.sh_size, PETREL_NOTES_MAX_B);
        sim_set_notes(s, sh.sh_addr, sh.sh_size);
        found = true;
    }
    return true;
}

static bool load(struct sim *s, struct layout *l, uint64_t ram_B, struct sim_program *out, struct sim_error *error_out)
{
    if (!check_header(l, error_out) || !read_segments(l, error_out) || !check_memory(s, l, error_out) || !map_memory(s, l, ram_B, out, error_out) ||
        !fill(s, l, error_out) || (l->head.e_type == ET_DYN && !relocate(s, l, error_out)) || !take_notes(s, l, error_out))
        return false;
    find_code(l, out);
    return true;
}

bool sim_load(struct sim *s, const uint8_t *image, size_t size_B, uint64_t ram_B, struct sim_program *program_out, struct sim_error *error_out)
{
    struct layout l = { .image = image, .image_B = size_B };
    struct sim_program p = { 0 };
    bool ok = load(s, &l, ram_B, &p, error_out);

    elf_end(l.elf);
    if (ok)
        *program_out = p;
    return ok;
}
