/* SPDX-License-Identifier: MIT */
/* sites.c - the ELF section umd_log_sites: structs full of pointers, which only the relocations (or a fixed address) fill in. */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <umd/umd_log.h>

#include "record.h"
#include "sites.h"
#include "sys.h"
#include "umd-text.h"

#define SECTION "umd_log_sites"
#define SITES_MAX 1000000u

/* Pointers of this library's struct; a file of another word size is not read. */
enum { POINTER_B = sizeof(void *) };
_Static_assert(sizeof(umdLogSite) % POINTER_B == 0, "sites are found at multiples of a pointer");

struct image {
    Elf *elf;
    bool relocated;         /* pointers are in relocations: a library or position-independent program */
    GElf_Shdr section;
    Elf_Data *data;
    uint64_t *pointer;      /* by word of the section; 0: none */
    const umdLogModule **shared; /* by word of the section: a module of libumd_diag's; NULL: none */
    struct slot { uint64_t at, value; } *other; /* relocations elsewhere, by address: the modules' names */
    size_t other_count, other_size;
};

static Elf_Scn *section_named(Elf *elf, const char *name, GElf_Shdr *out)
{
    size_t strings;
    Elf_Scn *scn = NULL;

    if (elf_getshdrstrndx(elf, &strings) != 0)
        return NULL;
    while ((scn = elf_nextscn(elf, scn)) != NULL) {
        const char *found = gelf_getshdr(scn, out) ? elf_strptr(elf, strings, out->sh_name) : NULL;
        if (found && strcmp(found, name) == 0)
            return scn;
    }
    return NULL;
}

/* The bytes at an address, to the end of its section. */
static const char *bytes_at(Elf *elf, uint64_t address, size_t *n_out)
{
    Elf_Scn *scn = NULL;
    GElf_Shdr shdr;

    while ((scn = elf_nextscn(elf, scn)) != NULL) {
        if (!gelf_getshdr(scn, &shdr) || !(shdr.sh_flags & SHF_ALLOC) || shdr.sh_type == SHT_NOBITS || address < shdr.sh_addr ||
            address - shdr.sh_addr >= shdr.sh_size)
            continue;
        Elf_Data *data = elf_getdata(scn, NULL);
        if (!data || !data->d_buf || address - shdr.sh_addr >= data->d_size)
            return NULL;
        *n_out = data->d_size - (size_t)(address - shdr.sh_addr);
        return (const char *)data->d_buf + (address - shdr.sh_addr);
    }
    return NULL;
}

static char *string_at(Elf *elf, uint64_t address)
{
    size_t n;
    const char *s = address ? bytes_at(elf, address, &n) : NULL;

    char *copy = s && memchr(s, '\0', n) ? strdup(s) : NULL;
    if (copy)
        text_clean(copy); /* anybody's file */
    return copy;
}

static bool keep_other(struct image *i, uint64_t at, uint64_t value)
{
    if (i->other_count == i->other_size) {
        size_t size = i->other_size ? i->other_size * 2 : 256;
        struct slot *grown = realloc(i->other, size * sizeof(*grown));
        if (!grown)
            return false;
        i->other = grown;
        i->other_size = size;
    }
    i->other[i->other_count++] = (struct slot){ at, value };
    return true;
}

static int by_address(const void *a, const void *b)
{
    const struct slot *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* The modules that other libraries' sites name: each is an object of libumd_diag. */
static const umdLogModule *shared_module(const char *name)
{
    static const struct { const char *symbol; const umdLogModule *module; } shared[] = {
        { "umd_api_log_module", &umd_api_log_module }, { "umd_sys_log_module", &umd_sys_log_module },
    };

    for (size_t i = 0; name && i < sizeof(shared) / sizeof(shared[0]); i++) {
        if (strcmp(shared[i].symbol, name) == 0)
            return shared[i].module;
    }
    return NULL;
}

/* Where a relocation points: at an address in this file (0: none), or at what libumd_diag has. */
static uint64_t target_of(Elf *elf, uint32_t symbols_at, const GElf_Rela *r, const umdLogModule **shared_out)
{
    Elf_Scn *scn = elf_getscn(elf, symbols_at);
    Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
    GElf_Shdr shdr;
    GElf_Sym symbol;

    *shared_out = NULL;
    if (GELF_R_SYM(r->r_info) == 0)
        return (uint64_t)r->r_addend; /* relative: the library is loaded at 0 here */
    if (!data || !gelf_getshdr(scn, &shdr) || GELF_R_SYM(r->r_info) > INT32_MAX || !gelf_getsym(data, (int)GELF_R_SYM(r->r_info), &symbol))
        return 0;
    if (symbol.st_shndx != SHN_UNDEF)
        return symbol.st_value + (uint64_t)r->r_addend;
    *shared_out = shared_module(elf_strptr(elf, shdr.sh_link, symbol.st_name));
    return *shared_out ? 1 : 0;
}

static bool read_relocations(struct image *i)
{
    Elf_Scn *scn = NULL;
    GElf_Shdr shdr;

    while ((scn = elf_nextscn(i->elf, scn)) != NULL) {
        if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_RELA || !(shdr.sh_flags & SHF_ALLOC) || !shdr.sh_entsize)
            continue;
        Elf_Data *data = elf_getdata(scn, NULL);
        for (size_t n = 0; data && n < shdr.sh_size / shdr.sh_entsize && n < INT32_MAX; n++) {
            GElf_Rela r;
            const umdLogModule *shared;
            if (!gelf_getrela(data, (int)n, &r))
                continue;
            uint64_t target = target_of(i->elf, shdr.sh_link, &r, &shared), word = (r.r_offset - i->section.sh_addr) / POINTER_B;
            if (r.r_offset >= i->section.sh_addr && r.r_offset - i->section.sh_addr < i->section.sh_size) {
                i->pointer[word] = target;
                i->shared[word] = shared;
            } else if (!shared && target && !keep_other(i, r.r_offset, target)) {
                return false;
            }
        }
    }
    if (i->other_count)
        qsort(i->other, i->other_count, sizeof(*i->other), by_address);
    return true;
}

/* The pointer that lies at an address outside the section. */
static uint64_t pointer_at(const struct image *i, uint64_t address)
{
    const struct slot key = { .at = address };
    const struct slot *found = i->other_count ? bsearch(&key, i->other, i->other_count, sizeof(*i->other), by_address) : NULL;
    uint64_t value = 0;
    size_t n;

    if (found)
        return found->value;
    const char *bytes = i->relocated ? NULL : bytes_at(i->elf, address, &n);
    if (bytes && n >= POINTER_B)
        memcpy(&value, bytes, POINTER_B);
    return value;
}

static bool add(struct site_list *list, const struct site *s)
{
    if (list->count == list->size) {
        uint32_t size = list->size ? list->size * 2 : 64;
        struct site *grown = realloc(list->site, size * sizeof(*grown));
        if (!grown)
            return false;
        list->site = grown;
        list->size = size;
    }
    list->site[list->count++] = *s;
    return true;
}

static void site_finish(struct site *s)
{
    free(s->module);
    free(s->func);
    free(s->file);
    free(s->fmt);
}

/* The level of the line that a record begins with. */
static uint8_t level_of(const struct site *s, uint8_t raw)
{
    if (s->kind != UMD_SITE_RAISE || (raw != UMD_SITE_LEVEL_OF_CODE && raw != UMD_SITE_LEVEL_AT_RUN_TIME))
        return raw;
    if (raw == UMD_SITE_LEVEL_AT_RUN_TIME || !s->code)
        return 0;
    umdSeverity severity = umdStatusAdvice((umdStatus)s->code).severity;
    return severity == UMD_SEVERITY_INFO ? UMD_LOG_INFO : severity == UMD_SEVERITY_WARN ? UMD_LOG_WARN : UMD_LOG_ERROR;
}

/* Compilers align the structs as they like, so the gaps between them vary: a struct begins where a pointer is. */
static enum sites_result read_sites(struct image *i, struct site_list *list)
{
    size_t words = i->section.sh_size / POINTER_B, need = sizeof(umdLogSite) / POINTER_B;

    for (size_t w = 0; w + need <= words && list->count < SITES_MAX;) {
        const uint64_t *p = &i->pointer[w];
        if (!p[0]) {
            w++;
            continue;
        }
        const uint8_t *raw = (const uint8_t *)i->data->d_buf + w * POINTER_B;
        struct site s = {
            .module = i->shared[w] ? strdup(i->shared[w]->name) : string_at(i->elf, pointer_at(i, p[offsetof(umdLogSite, module) / POINTER_B] + offsetof(umdLogModule, name))),
            .func = string_at(i->elf, p[offsetof(umdLogSite, func) / POINTER_B]), .file = string_at(i->elf, p[offsetof(umdLogSite, file) / POINTER_B]),
            .fmt = string_at(i->elf, p[offsetof(umdLogSite, fmt) / POINTER_B]), .kind = raw[offsetof(umdLogSite, kind)],
        };
        const uint8_t ceiling = raw[offsetof(umdLogSite, ceiling)];
        memcpy(&s.line, raw + offsetof(umdLogSite, line), sizeof(s.line));
        memcpy(&s.code, raw + offsetof(umdLogSite, code), sizeof(s.code));
        s.level = level_of(&s, raw[offsetof(umdLogSite, level)]);
        s.compiled = s.kind != UMD_SITE_LOG || !ceiling || s.level <= ceiling;
        bool whole = s.module && s.func && s.file && (s.fmt || s.kind == UMD_SITE_ABSORB) && s.level <= UMD_LOG_TRACE && s.kind <= UMD_SITE_ABSORB &&
                     (s.level || s.kind == UMD_SITE_RAISE);
        if (!whole || !add(list, &s)) {
            site_finish(&s);
            return whole ? SITES_NO_MEMORY : SITES_DAMAGED;
        }
        w += need;
    }
    return SITES_DONE;
}

static enum sites_result read_image(struct image *i, struct site_list *list)
{
    GElf_Ehdr ehdr;

    if (elf_kind(i->elf) != ELF_K_ELF || !gelf_getehdr(i->elf, &ehdr) || ehdr.e_ident[EI_CLASS] != (POINTER_B == 8 ? ELFCLASS64 : ELFCLASS32))
        return SITES_NO_ELF;
    Elf_Scn *scn = section_named(i->elf, SECTION, &i->section);
    if (!scn)
        return SITES_NONE;
    i->data = elf_getdata(scn, NULL);
    if (!i->data || !i->data->d_buf || i->data->d_size < i->section.sh_size)
        return SITES_DAMAGED;
    i->relocated = ehdr.e_type == ET_DYN;
    i->pointer = calloc(i->section.sh_size / POINTER_B + 1, sizeof(*i->pointer));
    i->shared = calloc(i->section.sh_size / POINTER_B + 1, sizeof(*i->shared));
    if (!i->pointer || !i->shared)
        return SITES_NO_MEMORY;
    if (!i->relocated) {
        for (size_t w = 0; w < i->section.sh_size / POINTER_B; w++)
            memcpy(&i->pointer[w], (const uint8_t *)i->data->d_buf + w * POINTER_B, POINTER_B);
    } else if (!read_relocations(i)) {
        return SITES_NO_MEMORY;
    }
    return read_sites(i, list);
}

enum sites_result sites_read(const char *path, struct site_list *list, int *err_out)
{
    struct image image = { 0 };
    enum sites_result result = SITES_NO_ELF;
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* a pipe without a writer must not hold us up */

    if (fd < 0) {
        *err_out = errno;
        return SITES_UNREADABLE;
    }
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return SITES_NO_ELF;
    }
    (void)elf_version(EV_CURRENT);
    image.elf = elf_begin(fd, ELF_C_READ, NULL);
    if (image.elf)
        result = read_image(&image, list);
    free(image.pointer);
    free(image.shared);
    free(image.other);
    elf_end(image.elf);
    close(fd);
    return result;
}

void sites_finish(struct site_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        site_finish(&list->site[i]);
    free(list->site);
    *list = (struct site_list){ 0 };
}
