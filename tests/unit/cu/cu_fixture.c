/* SPDX-License-Identifier: MIT */
/* cu_fixture.c - see cu_fixture.h. */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hw/petrel_codeobj.h>
#include <hw/petrel_pte.h>

#include "cu_fixture.h"
#include "cu_priv.h"

#ifndef R_RISCV_RELATIVE
#define R_RISCV_RELATIVE 3
#endif

/* In release builds, too. */
static void check(bool ok)
{
    if (!ok) {
        fprintf(stderr, "cu_fixture: precondition failed\n");
        abort();
    }
}

void *fixture_host(struct cu_fixture *f, uint64_t va)
{
    check(va >= FLAT_VA && va < FLAT_VA + FLAT_B);
    return f->mem + ((va - FLAT_VA) ^ (va - FLAT_SWAP_VA < FLAT_SWAP_B ? 4096 : 0));
}

static uint32_t flat_translate(void *priv, uint64_t root, uint64_t va, uint32_t access, struct hw_xlat *xlat_out)
{
    struct cu_fixture *f = priv;
    uint64_t off = va - FLAT_VA;
    uint32_t code_rights = PETREL_PTE_READ | PETREL_PTE_EXEC | (f->code_writable ? PETREL_PTE_WRITE : 0);
    uint32_t rights = off < FLAT_CODE_B ? code_rights : PETREL_PTE_READ | PETREL_PTE_WRITE;
    uint64_t page_B = va >= FLAT_VA + FLAT_B - (2u << 20) ? 4096 : f->page_B, page = off & ~(page_B - 1);

    (void)root;
    if (off >= FLAT_B)
        return PETREL_FAULT_PAGE;
    if (va >= FLAT_RO_VA)
        rights = PETREL_PTE_READ;
    if ((access == PETREL_ACCESS_WRITE || access == PETREL_ACCESS_ATOMIC) && !(rights & PETREL_PTE_WRITE))
        return PETREL_FAULT_ACCESS;
    if (access == PETREL_ACCESS_EXEC && !(rights & PETREL_PTE_EXEC))
        return PETREL_FAULT_ACCESS;
    *xlat_out = (struct hw_xlat){ .host = fixture_host(f, FLAT_VA + page), .page_va = FLAT_VA + page, .page_B = page_B, .rights = rights };
    return 0;
}

/* Once a process: a host that has only the portable handlers tests these twice, and the log should not look as if it had tested others. */
static void tell_handlers(const struct cu_fixture *f)
{
    static bool told;
    const struct cu_exec *e = f->cus->exec;

    if (!told)
        printf("# cu_fixture: the widest handlers here are %s\n", e == &cu_exec_avx512 || e == &cu_exec_avx512_timed ? "those for AVX-512" : "the portable ones");
    told = true;
}

uint32_t fixture_age_instr;

void fixture_create(struct cu_fixture *f, bool base_handlers, bool functional)
{
    memset(f, 0, sizeof(*f));
    f->config = (struct hw_cu_config){
        .cu_count = 4, .warps_per_cu = 16, .local_B = 65536, .regs_per_cu = 16 * 64, .functional = functional,
        .lat_alu = 4, .lat_mul = 5, .lat_div = 30, .lat_fp = 4, .lat_fdiv = 20, .lat_special = 12, .lat_local = 20, .lat_l1 = 28,
        .lat_l2 = 180, .lat_dram = 400, .lat_link = 1500, .issue_per_cycle = 1, .l1_B = 65536, .l2_B = 1u << 20,
        .dram_B_per_clk = 512, .private_B = 4096, .translate = flat_translate, .translate_priv = f,
    };
    f->page_B = 2u << 20;
    f->mem = aligned_alloc(4096, FLAT_B);
    f->scratch = calloc(f->config.cu_count * f->config.warps_per_cu * 32u, f->config.private_B);
    check(f->mem && f->scratch);
    memset(f->mem, 0, FLAT_B);
    f->config.scratch = f->scratch;
    f->config.portable = base_handlers;
    f->config.age_instr = fixture_age_instr;
    if (hw_cu_array_create(&f->config, &f->cus) != UMD_SUCCESS)
        abort();
    if (!base_handlers)
        tell_handlers(f);
    fixture_reset_data(f);
}

void fixture_destroy(struct cu_fixture *f)
{
    hw_cu_array_destroy(f->cus);
    free(f->mem);
    free(f->scratch);
}

struct cu_fixture fixture_ways[FIXTURE_WAYS];

int fixture_ways_create(void **state)
{
    (void)state;
    for (unsigned i = 0; i < FIXTURE_WAYS; i++)
        fixture_create(&fixture_ways[i], i & 1, i & 2);
    return 0;
}

int fixture_ways_destroy(void **state)
{
    (void)state;
    for (unsigned i = 0; i < FIXTURE_WAYS; i++)
        fixture_destroy(&fixture_ways[i]);
    return 0;
}

void fixture_reset_data(struct cu_fixture *f)
{
    f->data_next = FLAT_DATA_VA;
}

uint64_t fixture_alloc(struct cu_fixture *f, uint64_t size_B)
{
    uint64_t va = f->data_next;

    f->data_next += (size_B + 255) & ~255ull;
    check(f->data_next < FLAT_VA + FLAT_B - (2u << 20));
    memset(fixture_host(f, va), 0, size_B);
    return va;
}

uint64_t fixture_code(struct cu_fixture *f, const uint32_t *code, size_t count)
{
    hw_cu_invalidate(f->cus);
    memset(f->mem, 0, FLAT_CODE_B);
    memcpy(f->mem, code, count * 4);
    f->code_B = count * 4;
    return FLAT_CODE_VA;
}

static void relocate(struct cu_fixture *f, const Elf64_Dyn *d)
{
    uint64_t rela = 0, size = 0;

    for (; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_RELA)
            rela = d->d_un.d_ptr;
        if (d->d_tag == DT_RELASZ)
            size = d->d_un.d_val;
    }
    for (uint64_t i = 0; i < size / sizeof(Elf64_Rela); i++) {
        const Elf64_Rela *r = (const Elf64_Rela *)(f->mem + rela) + i;
        uint64_t v = FLAT_CODE_VA + (uint64_t)r->r_addend;

        check(ELF64_R_TYPE(r->r_info) == R_RISCV_RELATIVE);
        memcpy(f->mem + r->r_offset, &v, sizeof(v));
    }
}

void fixture_load(struct cu_fixture *f, const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *image;
    long size;

    check(file != NULL);
    fseek(file, 0, SEEK_END);
    size = ftell(file);
    rewind(file);
    check(size > 0);
    image = calloc(1, (size_t)size);
    check(image && fread(image, 1, (size_t)size, file) == (size_t)size);
    fclose(file);

    const Elf64_Ehdr *e = (const Elf64_Ehdr *)image;
    const Elf64_Phdr *ph = (const Elf64_Phdr *)(image + e->e_phoff);
    const Elf64_Shdr *sh = (const Elf64_Shdr *)(image + e->e_shoff);
    const char *names = (const char *)image + sh[e->e_shstrndx].sh_offset;

    hw_cu_invalidate(f->cus);
    memset(f->mem, 0, FLAT_CODE_B);
    for (unsigned i = 0; i < e->e_phnum; i++) {
        if (ph[i].p_type != PT_LOAD)
            continue;
        check(ph[i].p_vaddr + ph[i].p_memsz <= FLAT_CODE_B);
        memcpy(f->mem + ph[i].p_vaddr, image + ph[i].p_offset, ph[i].p_filesz);
        if (ph[i].p_flags & PF_X)
            f->code_B = ph[i].p_vaddr + ph[i].p_memsz;
    }
    for (unsigned i = 0; i < e->e_phnum; i++)
        if (ph[i].p_type == PT_DYNAMIC)
            relocate(f, (const Elf64_Dyn *)(image + ph[i].p_offset));
    f->kernel_count = 0;
    f->notes_B = 0;
    for (unsigned i = 0; i < e->e_shnum; i++) {
        if (!strcmp(names + sh[i].sh_name, PETREL_NOTE_SECTION)) {
            f->notes_va = FLAT_CODE_VA + sh[i].sh_addr;
            f->notes_B = sh[i].sh_size;
        }
        if (strcmp(names + sh[i].sh_name, PETREL_KERNEL_META_SECTION))
            continue;
        f->kernels_va = sh[i].sh_addr;
        f->kernel_count = (uint32_t)(sh[i].sh_size / sizeof(struct petrel_kernel_meta));
    }
    free(image);
}

uint64_t fixture_kernel(struct cu_fixture *f, const char *name)
{
    const struct petrel_kernel_meta *m = (const struct petrel_kernel_meta *)(f->mem + f->kernels_va);

    for (uint32_t i = 0; i < f->kernel_count; i++)
        if (!strcmp(m[i].name, name))
            return m[i].entry;
    fprintf(stderr, "no kernel %s\n", name);
    abort();
}

struct outcome fixture_run(struct cu_fixture *f, const struct launch *l)
{
    struct petrel_dispatch d = {
        .entry_va = l->entry, .args_va = l->args, .grid = { l->grid[0], l->grid[1], l->grid[2] },
        .block = { l->block[0], l->block[1], l->block[2] }, .local_B = l->local_B, .code_va = FLAT_CODE_VA, .code_B = f->code_B,
    };
    struct outcome o = { .state = HW_CU_IDLE };

    o.started = hw_cu_start(f->cus, &d, 1, &l->sabotage, &o.fault);
    if (!o.started)
        return o;
    do {
        o.state = hw_cu_run(f->cus, l->slice ? l->slice : 1ull << 40, &o.cycles, &o.fault);
        o.slices++;
    } while (o.state == HW_CU_RUNNING && l->slice);
    if (o.state != HW_CU_DONE)
        hw_cu_kill(f->cus);
    return o;
}

uint64_t fixture_run_ok(struct cu_fixture *f, uint64_t entry, uint32_t grid, uint32_t block, uint32_t local_B, uint64_t args)
{
    struct launch l = { .entry = entry, .grid = { grid, 1, 1 }, .block = { block, 1, 1 }, .local_B = local_B, .args = args };
    struct outcome o = fixture_run(f, &l);

    if (!o.started || o.state != HW_CU_DONE) {
        fprintf(stderr, "state %d fault %u va 0x%llx pc 0x%llx info 0x%llx wg %llu data 0x%llx\n", o.state, o.fault.fault,
                (unsigned long long)o.fault.va, (unsigned long long)o.fault.pc, (unsigned long long)o.fault.info,
                (unsigned long long)o.fault.wg, (unsigned long long)o.fault.data);
        abort();
    }
    return o.cycles;
}
