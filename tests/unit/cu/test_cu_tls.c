/* SPDX-License-Identifier: MIT */
/* test_cu_tls.c - thread-local storage: each lane's own, from the template, anew in each workgroup; templates that cannot be read. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cu_fixture.h"

enum { GROUPS = 90, BLOCK = 96, ITEMS = GROUPS * BLOCK };

static struct cu_fixture f;
struct tls_args { uint64_t out; uint32_t n, rounds; };

/* The PT_TLS header of the file that the fixture has loaded. */
static struct petrel_code tls_of(const char *path)
{
    struct petrel_code c = { 0 };
    Elf64_Ehdr e;
    Elf64_Phdr p;
    FILE *file = fopen(path, "rb");

    assert_non_null(file);
    assert_int_equal(fread(&e, sizeof(e), 1, file), 1);
    for (unsigned i = 0; i < e.e_phnum; i++) {
        fseek(file, (long)(e.e_phoff + i * sizeof(p)), SEEK_SET);
        assert_int_equal(fread(&p, sizeof(p), 1, file), 1);
        if (p.p_type == PT_TLS)
            c = (struct petrel_code){ .tls_va = FLAT_CODE_VA + p.p_vaddr, .tls_file_B = p.p_filesz, .tls_B = p.p_memsz, .tls_align = p.p_align };
    }
    fclose(file);
    assert_true(c.tls_B > c.tls_file_B && c.tls_align == 64);
    return c;
}

static void each_lane_has_its_own(void **state)
{
    struct petrel_code code = tls_of(TLS_KERNELS);

    (void)state;
    for (unsigned how = 0; how < 2; how++) {
        uint64_t va;
        struct tls_args *args;
        const uint32_t *out;

        hw_cu_set_functional(f.cus, how);
        hw_cu_set_code(f.cus, &code);
        fixture_reset_data(&f);
        va = fixture_alloc(&f, sizeof(*args));
        args = fixture_host(&f, va);
        args->out = fixture_alloc(&f, ITEMS * 16);
        fixture_run_ok(&f, fixture_kernel(&f, "tls_count"), GROUPS, BLOCK, 0, va);
        out = fixture_host(&f, args->out);
        for (uint32_t i = 0; i < ITEMS; i++, out += 4) {
            uint32_t by = i % 3 * (i % 7) + i % 5 + 1;

            assert_int_equal(out[0], 1000 + by);
            assert_int_equal(out[1], by);
            assert_int_equal(out[2], 321);
            assert_int_equal(out[3], 0);
        }
    }
}

static void templates_that_cannot_be(void **state)
{
    const struct petrel_code good = tls_of(TLS_KERNELS);
    static const struct { uint64_t va, file_B, size_B; uint32_t fault; } cases[] = {
        { 0x1000, 8, 8, PETREL_FAULT_PAGE }, { FLAT_RO_VA + 4090, 8, 8, PETREL_FAULT_PAGE }, { UINT64_MAX - 8, 8, 8, PETREL_FAULT_PAGE },
        { FLAT_DATA_VA, 8, PETREL_TLS_MAX_B, PETREL_FAULT_RESOURCES },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct petrel_code code = { .tls_va = cases[i].va, .tls_file_B = cases[i].file_B, .tls_B = cases[i].size_B };
        struct launch l = { .entry = fixture_kernel(&f, "tls_count"), .grid = { 1, 1, 1 }, .block = { 1, 1, 1 } };
        struct outcome o;

        hw_cu_set_code(f.cus, &code);
        o = fixture_run(&f, &l);
        assert_false(o.started);
        assert_int_equal(o.fault.fault, cases[i].fault);
        hw_cu_set_code(f.cus, &good);
    }
    each_lane_has_its_own(state);
}

static int setup(void **state)
{
    (void)state;
    fixture_create(&f, false, false);
    fixture_load(&f, TLS_KERNELS);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_destroy(&f);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_lane_has_its_own),
        cmocka_unit_test(templates_that_cannot_be),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
