/* SPDX-License-Identifier: MIT */
/* code.c - checks a code object (ELF, by libelf) down to its last offset, lays out its segments, and relocates them. */
#include <elf.h>
#include <gelf.h>
#include <inttypes.h>
#include <string.h>

#include <uapi/petrel_drm.h>

#include "module.h"
#include "record.h"
#include "sys.h"

UMD_LOG_MODULE("umd.module");

enum { PAGE_B = 4096, SEGMENTS_MAX = 16, ARGS_MAX_B = 4096, KERNELS_MAX = 4096 };
#define CODE_MAX_B (64u << 20)
/* Of e_flags: compressed instructions and the float ABI are what the device runs. */
#define EF_KNOWN (EF_RISCV_RVC | EF_RISCV_FLOAT_ABI)

#define BAD_MODULE(fmt_, ...) UMD_FAIL(UMD_ERR_MODULE_FORMAT, fmt_, ##__VA_ARGS__)

/* [off, off + n) lies in [0, size)? */
static bool inside(uint64_t off, uint64_t n, uint64_t size)
{
    return off <= size && n <= size - off;
}

static umdStatus check_header(const uint8_t *image, size_t size_B)
{
    const Elf64_Ehdr *e = (const Elf64_Ehdr *)(const void *)image;

    if (size_B < sizeof(*e) || memcmp(e->e_ident, ELFMAG, SELFMAG))
        return BAD_MODULE("reason=\"no ELF file\" size_B=%zu", size_B);
    if (e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_ident[EI_DATA] != ELFDATA2LSB || e->e_ident[EI_VERSION] != EV_CURRENT)
        return BAD_MODULE("reason=\"no 64-bit little-endian file\" class=%u data=%u", e->e_ident[EI_CLASS], e->e_ident[EI_DATA]);
    if (e->e_machine != EM_RISCV)
        return UMD_FAIL(UMD_ERR_MODULE_ISA, "machine=%u expected=%u", e->e_machine, EM_RISCV);
    if (e->e_flags & ~(uint32_t)EF_KNOWN || (e->e_flags & EF_RISCV_FLOAT_ABI) == EF_RISCV_FLOAT_ABI_QUAD)
        return UMD_FAIL(UMD_ERR_MODULE_ISA, "flags=0x%x known=0x%x", e->e_flags, (unsigned)EF_KNOWN);
    if (e->e_type != ET_DYN || e->e_version != EV_CURRENT)
        return BAD_MODULE("reason=\"no position-independent executable\" type=%u", e->e_type);
    if (e->e_ehsize != sizeof(Elf64_Ehdr) || e->e_phentsize != sizeof(Elf64_Phdr) || e->e_shentsize != sizeof(Elf64_Shdr))
        return BAD_MODULE("reason=\"wrong table entry sizes\"");
    if (!e->e_phnum || e->e_phnum > SEGMENTS_MAX || e->e_phoff % 8 || !inside(e->e_phoff, (uint64_t)e->e_phnum * sizeof(Elf64_Phdr), size_B))
        return BAD_MODULE("reason=\"program headers out of bounds\" offset=%" PRIu64 " count=%u", (uint64_t)e->e_phoff, e->e_phnum);
    if (!e->e_shnum || e->e_shoff % 8 || !inside(e->e_shoff, (uint64_t)e->e_shnum * sizeof(Elf64_Shdr), size_B) || e->e_shstrndx >= e->e_shnum)
        return BAD_MODULE("reason=\"section headers out of bounds\" offset=%" PRIu64 " count=%u", (uint64_t)e->e_shoff, e->e_shnum);
    return UMD_SUCCESS;
}

static const Elf64_Phdr *phdr(const uint8_t *image, uint32_t i)
{
    return (const Elf64_Phdr *)(const void *)(image + ((const Elf64_Ehdr *)(const void *)image)->e_phoff) + i;
}

static uint32_t phdr_count(const uint8_t *image)
{
    return ((const Elf64_Ehdr *)(const void *)image)->e_phnum;
}

static umdStatus check_segments(const uint8_t *image, size_t size_B, uint64_t *end_out)
{
    uint64_t end = 0, last = 0;

    for (uint32_t i = 0; i < phdr_count(image); i++) {
        const Elf64_Phdr *p = phdr(image, i);
        if (p->p_type == PT_INTERP)
            return BAD_MODULE("reason=\"needs an interpreter\"");
        if (!inside(p->p_offset, p->p_filesz, size_B))
            return BAD_MODULE("reason=\"segment out of bounds\" segment=%u offset=%" PRIu64 " size_B=%" PRIu64 " file_B=%zu", i, (uint64_t)p->p_offset,
                       (uint64_t)p->p_filesz, size_B);
        if (p->p_type != PT_LOAD)
            continue;
        if (p->p_filesz > p->p_memsz || !inside(p->p_vaddr, p->p_memsz, CODE_MAX_B) || p->p_vaddr < last)
            return BAD_MODULE("reason=\"segment layout\" segment=%u vaddr=0x%" PRIx64 " memory_B=%" PRIu64 " max_B=%u", i, (uint64_t)p->p_vaddr,
                       (uint64_t)p->p_memsz, CODE_MAX_B);
        if (p->p_flags & ~(uint32_t)(PF_R | PF_W | PF_X) || !p->p_flags)
            return BAD_MODULE("reason=\"segment rights\" segment=%u flags=0x%x", i, p->p_flags);
        last = p->p_vaddr + p->p_memsz;
        end = last > end ? last : end;
    }
    if (!end)
        return BAD_MODULE("reason=\"nothing to load\"");
    *end_out = end;
    return UMD_SUCCESS;
}

/* Thread-local storage: the linker's offsets are of a block that is aligned as the template is. */
static umdStatus check_tls(const uint8_t *image, struct umd_code *c)
{
    for (uint32_t i = 0; i < phdr_count(image); i++) {
        const Elf64_Phdr *p = phdr(image, i);
        if (p->p_type != PT_TLS || !p->p_memsz)
            continue;
        if (c->tls_B || p->p_filesz > p->p_memsz || p->p_memsz > PETREL_TLS_MAX_B || p->p_align > PETREL_TLS_ALIGN_MAX ||
            (p->p_align & (p->p_align - 1)) || (p->p_align && p->p_vaddr % p->p_align) || !inside(p->p_vaddr, p->p_filesz, c->size_B) ||
            (p->p_filesz && !(c->rights[p->p_vaddr / PAGE_B] & DRM_PETREL_BIND_READ)))
            return BAD_MODULE("reason=\"thread-local storage\" segment=%u vaddr=0x%" PRIx64 " memory_B=%" PRIu64 " max_B=%u align=%" PRIu64, i,
                       (uint64_t)p->p_vaddr, (uint64_t)p->p_memsz, PETREL_TLS_MAX_B, (uint64_t)p->p_align);
        c->tls_at = p->p_vaddr;
        c->tls_file_B = p->p_filesz;
        c->tls_B = p->p_memsz;
        c->tls_align = p->p_align;
    }
    return UMD_SUCCESS;
}

static umdStatus lay_out(const uint8_t *image, uint64_t end, struct umd_code *c)
{
    c->size_B = (end + PAGE_B - 1) & ~(uint64_t)(PAGE_B - 1);
    c->memory = umd_alloc(c->size_B);
    if (!c->memory)
        return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    c->rights = umd_alloc(c->size_B / PAGE_B);
    if (!c->rights)
        return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    for (uint32_t i = 0; i < phdr_count(image); i++) {
        const Elf64_Phdr *p = phdr(image, i);
        if (p->p_type != PT_LOAD || !p->p_memsz)
            continue;
        memcpy(c->memory + p->p_vaddr, image + p->p_offset, p->p_filesz);
        uint8_t rights = (uint8_t)((p->p_flags & PF_R ? DRM_PETREL_BIND_READ : 0) | (p->p_flags & PF_W ? DRM_PETREL_BIND_WRITE : 0) |
                                   (p->p_flags & PF_X ? DRM_PETREL_BIND_EXEC : 0));
        for (uint64_t page = p->p_vaddr / PAGE_B; page * PAGE_B < p->p_vaddr + p->p_memsz; page++)
            c->rights[page] |= rights;
    }
    return UMD_SUCCESS;
}

/* Are all pages of [at, at + size_B), which is inside, readable? */
static bool readable(const struct umd_code *c, uint64_t at, uint64_t size_B)
{
    for (uint64_t page = at / PAGE_B; page * PAGE_B < at + size_B; page++)
        if (!(c->rights[page] & DRM_PETREL_BIND_READ))
            return false;
    return true;
}

/* Where the notes of a section, which is in memory, are no notes of ours; NULL: they are. */
static const char *notes_flaw(const uint8_t *notes, uint64_t size_B)
{
    for (uint64_t at = 0, name_B, desc_B; at < size_B; at += sizeof(Elf64_Nhdr) + name_B + desc_B) {
        Elf64_Nhdr n;
        if (!inside(at, sizeof(n), size_B))
            return "it ends within a header";
        memcpy(&n, notes + at, sizeof(n));
        name_B = ((uint64_t)n.n_namesz + 3) & ~3ull;
        desc_B = ((uint64_t)n.n_descsz + 3) & ~3ull;
        if (!inside(at + sizeof(n), name_B + desc_B, size_B))
            return "a note reaches beyond its end";
        if (n.n_namesz != sizeof(PETREL_NOTE_NAME) || memcmp(notes + at + sizeof(n), PETREL_NOTE_NAME, sizeof(PETREL_NOTE_NAME)))
            return "a note of another name";
        if (n.n_type == PETREL_NOTE_CONVERGE && n.n_descsz % sizeof(struct petrel_meet))
            return "half a pair";
    }
    return NULL;
}

static umdStatus take_notes(const GElf_Shdr *sh, struct umd_code *c)
{
    const char *flaw = c->notes_B ? "a second section" : sh->sh_type != SHT_NOTE ? "no section of notes" : !(sh->sh_flags & SHF_ALLOC) ? "it is not loaded" :
                       sh->sh_size > PETREL_NOTES_MAX_B ? "too large" : sh->sh_addr % 4 ? "not aligned" : !inside(sh->sh_addr, sh->sh_size, c->size_B) ||
                       !readable(c, sh->sh_addr, sh->sh_size) ? "not in readable memory" : notes_flaw(c->memory + sh->sh_addr, sh->sh_size);

    if (flaw)
        return BAD_MODULE("reason=\"convergence note\" flaw=\"%s\" address=0x%" PRIx64 " size_B=%" PRIu64 " max_B=%u", flaw, (uint64_t)sh->sh_addr,
                          (uint64_t)sh->sh_size, PETREL_NOTES_MAX_B);
    c->notes_at = sh->sh_addr;
    c->notes_B = sh->sh_size;
    return UMD_SUCCESS;
}

static umdStatus take_kernels(const GElf_Shdr *sh, struct umd_code *c)
{
    if (c->kernel_count || !(sh->sh_flags & SHF_ALLOC) || sh->sh_type == SHT_NOBITS || sh->sh_size % sizeof(struct petrel_kernel_meta) ||
        !inside(sh->sh_addr, sh->sh_size, c->size_B) || sh->sh_size / sizeof(struct petrel_kernel_meta) > KERNELS_MAX)
        return BAD_MODULE("reason=\"kernel table\" size_B=%" PRIu64 " entry_B=%zu", (uint64_t)sh->sh_size, sizeof(struct petrel_kernel_meta));
    c->kernels_at = sh->sh_addr;
    c->kernel_count = (uint32_t)(sh->sh_size / sizeof(struct petrel_kernel_meta));
    return UMD_SUCCESS;
}

/* The kernel table and the notes, by their sections; every section is checked on the way. */
static umdStatus find_sections(Elf *elf, size_t size_B, struct umd_code *c)
{
    size_t names;

    if (elf_getshdrstrndx(elf, &names))
        return BAD_MODULE("reason=\"no section names\" libelf=\"%s\"", elf_errmsg(-1));
    for (Elf_Scn *scn = elf_nextscn(elf, NULL); scn; scn = elf_nextscn(elf, scn)) {
        GElf_Shdr sh;
        if (!gelf_getshdr(scn, &sh))
            return BAD_MODULE("reason=\"section header\" libelf=\"%s\"", elf_errmsg(-1));
        if (sh.sh_type != SHT_NOBITS && !inside(sh.sh_offset, sh.sh_size, size_B))
            return BAD_MODULE("reason=\"section out of bounds\" section=%zu offset=%" PRIu64 " size_B=%" PRIu64, elf_ndxscn(scn), (uint64_t)sh.sh_offset,
                       (uint64_t)sh.sh_size);
        const char *name = elf_strptr(elf, names, sh.sh_name);
        if (!name)
            return BAD_MODULE("reason=\"section name\" section=%zu", elf_ndxscn(scn));
        umdStatus st = !strcmp(name, PETREL_KERNEL_META_SECTION) ? take_kernels(&sh, c) : !strcmp(name, PETREL_NOTE_SECTION) ? take_notes(&sh, c) : UMD_SUCCESS;
        if (st < 0)
            return UMD_HOP(st);
    }
    if (!c->kernel_count)
        return BAD_MODULE("reason=\"no kernels\" section=" PETREL_KERNEL_META_SECTION);
    return UMD_SUCCESS;
}

umdStatus umd_code_parse(const uint8_t *image, size_t size_B, struct umd_code *code_out)
{
    struct umd_code c = { 0 };
    uint64_t end = 0;
    Elf *elf;

    umdStatus st = check_header(image, size_B);
    if (st == UMD_SUCCESS)
        st = check_segments(image, size_B, &end);
    if (st == UMD_SUCCESS)
        st = lay_out(image, end, &c);
    if (st == UMD_SUCCESS)
        st = check_tls(image, &c);
    if (st == UMD_SUCCESS) {
        elf_version(EV_CURRENT);
        elf = elf_memory((char *)(uintptr_t)image, size_B);
        st = elf ? find_sections(elf, size_B, &c) : BAD_MODULE("reason=\"not read\" libelf=\"%s\"", elf_errmsg(-1));
        elf_end(elf);
    }
    if (st < 0) {
        umd_code_free(&c);
        return UMD_HOP(st);
    }
    *code_out = c;
    return UMD_SUCCESS;
}

void umd_code_free(struct umd_code *code)
{
    umd_free(code->memory);
    umd_free(code->rights);
    *code = (struct umd_code){ 0 };
}

/* ---- Relocations ---- */

struct dynamic { uint64_t rela, rela_B, rela_entry_B; bool other; };

static umdStatus read_dynamic(const uint8_t *image, struct dynamic *d)
{
    for (uint32_t i = 0; i < phdr_count(image); i++) {
        const Elf64_Phdr *p = phdr(image, i);
        if (p->p_type != PT_DYNAMIC)
            continue;
        for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= p->p_filesz; at += sizeof(Elf64_Dyn)) {
            Elf64_Dyn dyn;
            memcpy(&dyn, image + p->p_offset + at, sizeof(dyn));
            switch (dyn.d_tag) {
            case DT_NULL: return UMD_SUCCESS;
            case DT_RELA: d->rela = dyn.d_un.d_ptr; break;
            case DT_RELASZ: d->rela_B = dyn.d_un.d_val; break;
            case DT_RELAENT: d->rela_entry_B = dyn.d_un.d_val; break;
            case DT_NEEDED: return BAD_MODULE("reason=\"needs a shared library\"");
            case DT_REL: case DT_JMPREL: case DT_PLTRELSZ: case DT_TEXTREL: case DT_RELR: d->other |= dyn.d_un.d_val != 0; break;
            default: break;
            }
        }
    }
    return UMD_SUCCESS;
}

umdStatus umd_code_relocate(const uint8_t *image, size_t size_B, struct umd_code *code, uint64_t base)
{
    struct dynamic d = { 0 };

    (void)size_B;
    umdStatus st = read_dynamic(image, &d);
    if (st < 0)
        return UMD_HOP(st);
    if (d.other || (d.rela_B && d.rela_entry_B != sizeof(Elf64_Rela)) || d.rela_B % sizeof(Elf64_Rela) ||
        !inside(d.rela, d.rela_B, code->size_B))
        return BAD_MODULE("reason=\"relocation table\" offset=0x%" PRIx64 " size_B=%" PRIu64, d.rela, d.rela_B);
    for (uint64_t at = 0; at < d.rela_B; at += sizeof(Elf64_Rela)) {
        Elf64_Rela r;
        memcpy(&r, code->memory + d.rela + at, sizeof(r));
        if (ELF64_R_TYPE(r.r_info) != R_RISCV_RELATIVE || ELF64_R_SYM(r.r_info))
            return BAD_MODULE("reason=\"relocation type\" index=%" PRIu64 " type=%u symbol=%u", at / sizeof(r), (unsigned)ELF64_R_TYPE(r.r_info),
                       (unsigned)ELF64_R_SYM(r.r_info));
        if (!inside(r.r_offset, 8, code->size_B) || !code->rights[r.r_offset / PAGE_B] || (uint64_t)r.r_addend > code->size_B)
            return BAD_MODULE("reason=\"relocation out of bounds\" index=%" PRIu64 " offset=0x%" PRIx64 " addend=0x%" PRIx64, at / sizeof(r),
                       (uint64_t)r.r_offset, (uint64_t)r.r_addend);
        uint64_t v = base + (uint64_t)r.r_addend;
        memcpy(code->memory + r.r_offset, &v, sizeof(v));
    }
    return UMD_SUCCESS;
}

bool umd_code_segment(const uint8_t *image, size_t size_B, uint64_t offset, uint64_t *start_out, uint64_t *size_out)
{
    (void)size_B;
    for (uint32_t i = 0; i < phdr_count(image); i++) {
        const Elf64_Phdr *p = phdr(image, i);
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || offset < p->p_vaddr || offset - p->p_vaddr >= p->p_memsz)
            continue;
        *start_out = p->p_vaddr;
        *size_out = p->p_memsz;
        return true;
    }
    return false;
}
