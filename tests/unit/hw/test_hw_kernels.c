/* SPDX-License-Identifier: MIT */
/* test_hw_kernels.c - compiled kernels through the whole device: code object, page tables, ring, compute units, host memory. */
#include "hw_fixture.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

#include <hw/petrel_codeobj.h>

#define C PETREL_RING_COMPUTE0
#define D PETREL_RING_COPY0
#define CODE_VA 0x100000000ull
#define CODE_AT HWT_DATA_AT
#define CODE_PAGES 64u
#define ARGS_VA 0x180000000ull
#define ARGS_AT (HWT_DATA_AT + 0x100000)
#define BUF_VA(i_) (0x200000000ull + (i_) * 0x10000000ull)
#define BUF_AT(i_) (HWT_DATA_AT + 0x200000ull + (i_) * 0x200000ull)
#define BUF_PAGES 512u

#ifndef R_RISCV_RELATIVE
#define R_RISCV_RELATIVE 3
#endif

static const char *code_path;

/* What the loader found. */
struct loaded {
    uint64_t code_va, code_B;   /* executable segment */
    uint64_t metas_va;
    uint32_t meta_count;
};

static uint8_t *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    rewind(f);
    uint8_t *image = malloc((size_t)size);
    assert_non_null(image);
    assert_int_equal(fread(image, 1, (size_t)size, f), size);
    fclose(f);
    return image;
}

static void relocate(uint8_t *code, const Elf64_Dyn *d)
{
    uint64_t rela = 0, size_B = 0;
    for (; d->d_tag != DT_NULL; d++) {
        rela = d->d_tag == DT_RELA ? d->d_un.d_ptr : rela;
        size_B = d->d_tag == DT_RELASZ ? d->d_un.d_val : size_B;
    }
    for (uint64_t i = 0; i < size_B / sizeof(Elf64_Rela); i++) {
        const Elf64_Rela *r = (const Elf64_Rela *)(code + rela) + i;
        const uint64_t v = CODE_VA + (uint64_t)r->r_addend;
        assert_int_equal(ELF64_R_TYPE(r->r_info), R_RISCV_RELATIVE);
        memcpy(code + r->r_offset, &v, 8);
    }
}

static struct loaded load(struct hwt *t)
{
    struct loaded l = { 0 };
    uint8_t *image = read_file(code_path), *code = t->vram + CODE_AT;
    const Elf64_Ehdr *e = (const Elf64_Ehdr *)image;
    const Elf64_Phdr *ph = (const Elf64_Phdr *)(image + e->e_phoff);
    const Elf64_Shdr *sh = (const Elf64_Shdr *)(image + e->e_shoff);
    const char *names = (const char *)image + sh[e->e_shstrndx].sh_offset;
    for (unsigned i = 0; i < e->e_phnum; i++) {
        if (ph[i].p_type != PT_LOAD)
            continue;
        assert_true(ph[i].p_vaddr + ph[i].p_memsz <= CODE_PAGES * 4096);
        memcpy(code + ph[i].p_vaddr, image + ph[i].p_offset, ph[i].p_filesz);
        if (ph[i].p_flags & PF_X) {
            l.code_va = CODE_VA + ph[i].p_vaddr;
            l.code_B = ph[i].p_memsz;
        }
    }
    for (unsigned i = 0; i < e->e_phnum; i++) {
        if (ph[i].p_type == PT_DYNAMIC)
            relocate(code, (const Elf64_Dyn *)(image + ph[i].p_offset));
    }
    for (unsigned i = 0; i < e->e_shnum; i++) {
        if (strcmp(names + sh[i].sh_name, PETREL_KERNEL_META_SECTION) == 0) {
            l.metas_va = sh[i].sh_addr;
            l.meta_count = (uint32_t)(sh[i].sh_size / sizeof(struct petrel_kernel_meta));
        }
    }
    free(image);
    assert_true(l.code_B > 0 && l.meta_count == 2);
    return l;
}

static struct hwt *kernel_fixture(enum hw_run_mode mode)
{
    struct hwt *t = hwt_boot(mode);
    hwt_map(t, CODE_VA, CODE_AT, CODE_PAGES, PETREL_PTE_READ | PETREL_PTE_EXEC);
    hwt_map(t, ARGS_VA, ARGS_AT, 1, PETREL_PTE_READ);
    for (uint32_t i = 0; i < 3; i++)
        hwt_map(t, BUF_VA(i), BUF_AT(i), BUF_PAGES, HWT_RW);
    hwt_context(t, C, 1);
    hwt_context(t, D, 1);
    return t;
}

static void launch(struct hwt *t, const char *name, const void *args, size_t args_B, uint32_t groups, uint32_t block)
{
    const struct loaded l = load(t);
    const struct petrel_kernel_meta *metas = (const void *)(t->vram + CODE_AT + l.metas_va), *meta = NULL;
    for (uint32_t i = 0; i < l.meta_count; i++)
        meta = strcmp(metas[i].name, name) == 0 ? &metas[i] : meta;
    assert_non_null(meta);
    assert_int_equal(meta->args_B, args_B);
    memcpy(t->vram + ARGS_AT, args, args_B);
    const struct petrel_dispatch d = {
        .entry_va = meta->entry, .args_va = ARGS_VA, .grid = { groups, 1, 1 }, .block = { block, 1, 1 },
        .local_B = meta->local_B, .code_va = l.code_va, .code_B = l.code_B,
    };
    uint32_t dw[16];
    memcpy(dw, &d, sizeof(d));
    hwt_dw(t, C, PETREL_PKT(PETREL_OP_DISPATCH, 16));
    for (int i = 0; i < 16; i++)
        hwt_dw(t, C, dw[i]);
}

/* Host memory -> VRAM by the copy ring, a semaphore, the kernel, a semaphore, and back: as a driver would. */
static void run_saxpy(enum hw_run_mode mode)
{
    const struct { uint64_t x, y; float a; uint32_t n; } args = { BUF_VA(0), BUF_VA(1), 2.5f, 100001 };
    const uint64_t sys_va = 0x300000000ull, sem_va = BUF_VA(2), bytes = args.n * 4ull;
    struct hwt *t = kernel_fixture(mode);
    hwt_map(t, sys_va, 0, 1024, HWT_RW | PETREL_PTE_SYSTEM);
    float *host_x = (float *)t->sys, *host_y = (float *)(t->sys + 0x100000), *back = (float *)(t->sys + 0x200000);
    for (uint32_t i = 0; i < args.n; i++) {
        host_x[i] = (float)i * 0.5f;
        host_y[i] = (float)(i % 1000);
    }
    hwt_copy(t, D, sys_va, BUF_VA(0), bytes);
    hwt_copy(t, D, sys_va + 0x100000, BUF_VA(1), bytes);
    hwt_write(t, D, sem_va, 1);
    hwt_wait64(t, D, sem_va + 8, 1);
    hwt_copy(t, D, BUF_VA(1), sys_va + 0x200000, bytes);
    hwt_wait64(t, C, sem_va, 1);
    launch(t, "saxpy", &args, sizeof(args), (args.n + 255) / 256, 256);
    hwt_write(t, C, sem_va + 8, 1);
    hwt_doorbell(t, C);
    assert_true(hwt_finish(t, D, hwt_fence(t, D, true)));
    for (uint32_t i = 0; i < args.n; i++) {
        const float want = __builtin_fmaf(args.a, host_x[i], host_y[i]), want2 = host_y[i] + args.a * host_x[i];
        if (back[i] != want && back[i] != want2)
            fail_msg("y[%u] = %f, wanted %f", i, (double)back[i], (double)want);
    }
    assert_int_equal(back[args.n], 0);
    hwt_destroy(t);
}

static void test_saxpy(void **state)
{
    run_saxpy(HW_RUN_STEPPED);
    run_saxpy(HW_RUN_THREADED);
}

static void test_block_sum(void **state)
{
    const struct { uint64_t in, out; } args = { BUF_VA(0), BUF_VA(1) };
    const uint32_t groups = 100;
    struct hwt *t = kernel_fixture(HW_RUN_STEPPED);
    uint32_t *in = (uint32_t *)(t->vram + BUF_AT(0)), x = 1;
    const uint64_t *out = (const uint64_t *)(t->vram + BUF_AT(1));
    for (uint32_t i = 0; i < groups * 256; i++)
        in[i] = x = x * 1664525u + 1013904223u;
    launch(t, "block_sum", &args, sizeof(args), groups, 256);
    assert_true(hwt_finish(t, C, hwt_fence(t, C, false)));
    for (uint32_t g = 0; g < groups; g++) {
        uint64_t want = 0;
        for (uint32_t i = 0; i < 256; i++)
            want += in[g * 256 + i];
        assert_true(out[g] == want);
    }
    assert_int_equal(hwt_r64(t, PETREL_RING_REG(C, PROGRESS)), groups);
    hwt_destroy(t);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_saxpy),
        cmocka_unit_test(test_block_sum),
    };
    if (argc != 2)
        return 1;
    code_path = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
