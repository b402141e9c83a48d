/* SPDX-License-Identifier: MIT */
/* test_umd_tables.c - handle table and address ranges alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "handle.h"
#include "record.h"
#include "va.h"

static int released;

static void release(struct umd_object *obj)
{
    (void)obj;
    released++;
}

/* The record of the last failure names the code and holds the figure. */
static void assert_record(umdStatus st, umdStatus want, const char *figure)
{
    umdErrorDetail d;

    assert_int_equal(st, want);
    assert_true(umd_record_export(&d));
    assert_int_equal(d.code, want);
    assert_non_null(strstr(d.figures, figure));
}

static void handle_life(void **state)
{
    struct umd_object a = { .release = release }, b = { .release = release }, *got;

    (void)state;
    released = 0;
    assert_int_equal(umd_handle_open(&a, UMD_OBJ_STREAM), UMD_SUCCESS);
    assert_int_equal(umd_handle_open(&b, UMD_OBJ_EVENT), UMD_SUCCESS);
    assert_int_equal(umd_handle_count(UMD_OBJ_STREAM), 1);
    assert_true(umd_handle_any(UMD_OBJ_EVENT) == b.handle);
    assert_int_equal(umd_handle_get(a.handle, UMD_OBJ_STREAM, &got), UMD_SUCCESS);
    assert_ptr_equal(got, &a);
    assert_record(umd_handle_get(a.handle, UMD_OBJ_EVENT, &got), UMD_ERR_HANDLE_TYPE, "wanted=event type=stream");
    assert_record(umd_handle_get(0, UMD_OBJ_EVENT, &got), UMD_ERR_HANDLE_INVALID, "wanted=event");
    assert_record(umd_handle_get(a.handle + (1ull << 32), UMD_OBJ_STREAM, &got), UMD_ERR_HANDLE_INVALID, "wanted=stream");
    assert_record(umd_handle_get(a.handle ^ 0x7f000000u, UMD_OBJ_STREAM, &got), UMD_ERR_HANDLE_INVALID, "wanted=stream");
    assert_int_equal(umd_handle_close(a.handle, UMD_OBJ_STREAM, &got), UMD_SUCCESS);
    assert_record(umd_handle_close(a.handle, UMD_OBJ_STREAM, &got), UMD_ERR_HANDLE_DESTROYED, "destroyed_by_tid=");
    assert_record(umd_handle_get(a.handle, UMD_OBJ_EVENT, &got), UMD_ERR_HANDLE_DESTROYED, "type=stream");
    umd_object_put(&a);
    assert_int_equal(released, 0); /* the call that works with it keeps it alive */
    umd_object_put(&a);
    assert_int_equal(released, 1);
    assert_false(umd_object_tryref(&a));
    assert_int_equal(umd_handle_close(b.handle, UMD_OBJ_EVENT, &got), UMD_SUCCESS);
    umd_object_put(got);
    umd_object_put(NULL);
    assert_int_equal(released, 2);
}

/* A slot that is used again tells its old handles as destroyed. */
static void handle_generations(void **state)
{
    enum { N = 3000 };
    static struct umd_object o[N];
    static uint64_t old[N];
    struct umd_object *got;

    (void)state;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) {
            o[i].release = release;
            assert_int_equal(umd_handle_open(&o[i], UMD_OBJ_KERNEL), UMD_SUCCESS);
            assert_true(o[i].handle != old[i]);
        }
        for (int i = 0; i < N && round; i++)
            assert_record(umd_handle_get(old[i], UMD_OBJ_KERNEL, &got), UMD_ERR_HANDLE_DESTROYED, "type=kernel");
        for (int i = 0; i < N; i++) {
            old[i] = o[i].handle;
            assert_int_equal(umd_handle_close(o[i].handle, UMD_OBJ_KERNEL, &got), UMD_SUCCESS);
            umd_object_put(got);
        }
    }
}

static void handle_exhaustion(void **state)
{
    enum { N = 65536 };
    static struct umd_object o[N];
    struct umd_object extra = { .release = release }, *got;
    int n = 0;

    (void)state;
    for (; n < N; n++) {
        o[n].release = release;
        if (umd_handle_open(&o[n], UMD_OBJ_EVENT) < 0)
            break;
    }
    assert_int_equal(n, N);
    assert_record(umd_handle_open(&extra, UMD_OBJ_EVENT), UMD_ERR_RES_HANDLES, "limit=65536");
    while (n) {
        assert_int_equal(umd_handle_close(o[--n].handle, UMD_OBJ_EVENT, &got), UMD_SUCCESS);
        umd_object_put(got);
    }
}

enum { BASE = 0x10000, PAGE = 4096, PAGES = 512 };

/* Random allocations against a map of pages: never overlapping, aligned, and all of it comes back in one piece. */
static void va_random(void **state)
{
    struct umd_va_space va;
    static uint8_t owner[PAGES];
    struct { uint64_t start, size_B; } live[64] = { { 0, 0 } };
    uint32_t seed = 11, fails = 0;

    (void)state;
    assert_int_equal(umd_va_init(&va, BASE, BASE + PAGES * PAGE), UMD_SUCCESS);
    for (int step = 0; step < 20000; step++) {
        seed = seed * 1664525u + 1013904223u;
        uint32_t k = (seed >> 8) % 64, pages = 1 + (seed >> 16) % 16;
        if (live[k].size_B) {
            umd_va_free(&va, live[k].start, live[k].size_B);
            memset(owner + (live[k].start - BASE) / PAGE, 0, live[k].size_B / PAGE);
            live[k].size_B = 0;
            continue;
        }
        uint64_t align = (uint64_t)PAGE << (seed >> 24) % 3, start;
        umdStatus st = umd_va_alloc(&va, pages * PAGE, align, &start);
        if (st < 0) {
            assert_record(st, UMD_ERR_MEM_VA_EXHAUSTED, "largest_B=");
            fails++;
            continue;
        }
        assert_int_equal(start % align, 0);
        assert_true(start >= BASE && start + pages * PAGE <= BASE + PAGES * PAGE);
        for (uint32_t i = 0; i < pages; i++)
            assert_int_equal(owner[(start - BASE) / PAGE + i]++, 0);
        live[k].start = start;
        live[k].size_B = pages * PAGE;
    }
    assert_true(fails > 0);
    for (int k = 0; k < 64; k++)
        if (live[k].size_B)
            umd_va_free(&va, live[k].start, live[k].size_B);
    assert_int_equal(va.count, 1);
    assert_int_equal(va.free[0].start, BASE);
    assert_int_equal(va.free[0].end, BASE + PAGES * PAGE);
    umd_va_fini(&va);
}

/* Many ranges, every other one given back: the list has room for all the holes. */
static void va_holes(void **state)
{
    enum { N = 4000 };
    static uint64_t start[N];
    struct umd_va_space va;

    (void)state;
    assert_int_equal(umd_va_init(&va, BASE, BASE + (uint64_t)N * PAGE), UMD_SUCCESS);
    for (int i = 0; i < N; i++)
        assert_int_equal(umd_va_alloc(&va, PAGE, PAGE, &start[i]), UMD_SUCCESS);
    for (int i = 0; i < N; i += 2)
        umd_va_free(&va, start[i], PAGE);
    assert_int_equal(va.count, N / 2);
    for (int i = 1; i < N; i += 2)
        umd_va_free(&va, start[i], PAGE);
    assert_int_equal(va.count, 1);
    umd_va_fini(&va);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handle_life), cmocka_unit_test(handle_generations), cmocka_unit_test(handle_exhaustion),
        cmocka_unit_test(va_random), cmocka_unit_test(va_holes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
