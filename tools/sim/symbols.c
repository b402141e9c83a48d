/* SPDX-License-Identifier: MIT */
/* symbols.c - names and source lines of a program's addresses, from its symbol table and DWARF. */
#include <elf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "umd-text.h"

struct sim_symbols {
    Elf *elf;
    Dwarf *dwarf;           /* NULL: no lines */
};

struct sim_symbols *sim_symbols_open(const uint8_t *image, size_t size_B)
{
    struct sim_symbols *y = calloc(1, sizeof(*y));

    if (!y)
        return NULL;
    elf_version(EV_CURRENT);
    y->elf = elf_memory((char *)(uintptr_t)image, size_B);
    if (!y->elf) {
        free(y);
        return NULL;
    }
    y->dwarf = dwarf_begin_elf(y->elf, DWARF_C_READ, NULL);
    return y;
}

void sim_symbols_close(struct sim_symbols *y)
{
    if (!y)
        return;
    dwarf_end(y->dwarf);
    elf_end(y->elf);
    free(y);
}

/* Calls visit for each named symbol until it says that this is enough. */
static void each_symbol(struct sim_symbols *y, bool (*visit)(const GElf_Sym *sym, const char *name, void *arg), void *arg)
{
    for (Elf_Scn *scn = y ? elf_nextscn(y->elf, NULL) : NULL; scn; scn = elf_nextscn(y->elf, scn)) {
        GElf_Shdr sh;
        if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_SYMTAB || !sh.sh_entsize)
            continue;
        Elf_Data *data = elf_getdata(scn, NULL);
        for (uint64_t i = 0; data && i < sh.sh_size / sh.sh_entsize; i++) {
            GElf_Sym sym;
            const char *name = gelf_getsym(data, (int)i, &sym) ? elf_strptr(y->elf, sh.sh_link, sym.st_name) : NULL;
            if (name && *name && sym.st_shndx != SHN_UNDEF && visit(&sym, name, arg))
                return;
        }
    }
}

struct wanted { const char *name; uint64_t va; bool found; };

static bool is_wanted(const GElf_Sym *sym, const char *name, void *arg)
{
    struct wanted *w = arg;

    w->found = strcmp(name, w->name) == 0;
    w->va = sym->st_value;
    return w->found;
}

bool sim_symbol(struct sim_symbols *y, const char *name, uint64_t *va_out)
{
    struct wanted w = { .name = name };

    each_symbol(y, is_wanted, &w);
    if (w.found)
        *va_out = w.va;
    return w.found;
}

enum { GLOBAL = 1, FUNCTION = 2, COVERS = 4 };
struct covering { Elf *elf; uint64_t pc, start; unsigned rank; struct sim_location *out; };

static bool in_same_section(Elf *elf, const GElf_Sym *sym, uint64_t pc)
{
    Elf_Scn *scn = elf_getscn(elf, sym->st_shndx);
    GElf_Shdr sh;

    return scn && gelf_getshdr(scn, &sh) && pc - sh.sh_addr < sh.sh_size && sym->st_value - sh.sh_addr < sh.sh_size;
}

/*
 * A function that covers the address, else the label closest before it in its section: assembly has no functions. Of several at one
 * address a function goes before a label, then a global before a local one, then the first.
 */
static bool covers(const GElf_Sym *sym, const char *name, void *arg)
{
    struct covering *c = arg;
    unsigned type = GELF_ST_TYPE(sym->st_info);
    unsigned rank = (type == STT_FUNC && c->pc - sym->st_value < sym->st_size ? COVERS : 0) + (type == STT_FUNC ? FUNCTION : 0) +
                    (GELF_ST_BIND(sym->st_info) != STB_LOCAL ? GLOBAL : 0);

    if (sym->st_value > c->pc || sym->st_shndx >= SHN_LORESERVE || (type != STT_NOTYPE && type != STT_FUNC) || name[0] == '$' || strncmp(name, ".L", 2) == 0)
        return false;
    if (c->out->function[0]) {
        bool closer = sym->st_value > c->start || (sym->st_value == c->start && rank > c->rank);

        if ((rank & COVERS) == (c->rank & COVERS) ? !closer : !(rank & COVERS))
            return false;
    }
    if (!in_same_section(c->elf, sym, c->pc))
        return false;
    c->start = sym->st_value;
    c->rank = rank;
    snprintf(c->out->function, sizeof(c->out->function), "%s", name);
    return false;
}

static void find_line(Dwarf *dwarf, uint64_t pc, struct sim_location *out)
{
    Dwarf_CU *cu = NULL;
    Dwarf_Die die;
    uint8_t type;

    while (dwarf && dwarf_get_units(dwarf, cu, &cu, NULL, &type, &die, NULL) == 0) {
        if (dwarf_haspc(&die, pc) != 1)
            continue;
        Dwarf_Line *line = dwarf_getsrc_die(&die, pc);
        const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
        if (!file || dwarf_lineno(line, &out->line) != 0)
            continue;
        snprintf(out->file, sizeof(out->file), "%s", strrchr(file, '/') ? strrchr(file, '/') + 1 : file);
        return;
    }
}

void sim_locate(struct sim_symbols *y, uint64_t pc, struct sim_location *out)
{
    struct covering c = { .pc = pc, .out = out, .elf = y ? y->elf : NULL };

    *out = (struct sim_location){ 0 };
    if (!y)
        return;
    each_symbol(y, covers, &c);
    out->offset = pc - c.start;
    find_line(y->dwarf, pc, out);
    text_clean(out->function);
    text_clean(out->file);
}
