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

/* Two free ranges, [0, 2) and [4, 512) pages, and three that are taken; then one thing of the list is overwritten. */
static void va_corrupt(void **state)
{
    static const struct { int range; bool end; uint64_t value; bool free; const char *figure; } how[] = {
        { 0, true, BASE, false, "op=alloc check=empty" },
        { 0, false, BASE - PAGE, false, "op=alloc check=start expected=0x10000 found=0xf000" },
        { 0, true, BASE + 4 * PAGE, false, "op=alloc check=end" },
        { 1, true, BASE + (PAGES + 1) * (uint64_t)PAGE, false, "op=alloc check=end" },
        { 1, false, BASE + 2 * PAGE, false, "op=alloc check=end" }, /* they touch: the first of them is looked at first */
        { 0, true, BASE + 3 * PAGE, true, "op=free check=below expected=0x13000 found=0x12000" },
        { 1, false, BASE + 3 * PAGE, true, "op=free check=above" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
        struct umd_va_space va;
        umd_record_counts before, after;
        uint64_t a, b, c = 42, *word;
        assert_int_equal(umd_va_init(&va, BASE, BASE + (uint64_t)PAGES * PAGE), UMD_SUCCESS);
        assert_int_equal(umd_va_alloc(&va, 2 * PAGE, PAGE, &a), UMD_SUCCESS);
        assert_int_equal(umd_va_alloc(&va, 2 * PAGE, PAGE, &b), UMD_SUCCESS);
        umd_va_free(&va, a, 2 * PAGE);
        assert_int_equal(va.count, 2);
        word = how[i].end ? &va.free[how[i].range].end : &va.free[how[i].range].start;
        *word = how[i].value;
        const struct umd_va_range was[2] = { va.free[0], va.free[1] };
        umd_record_get_counts(&before);
        if (how[i].free) {
            umd_va_free(&va, b, 2 * PAGE); /* tells nobody: the next allocation does */
            umd_record_get_counts(&after);
            assert_int_equal(after.absorbed - before.absorbed, 1);
            umdErrorDetail first = { .size_B = sizeof(first) };
            assert_int_equal(umdGetErrorDetailById(va.corrupt, &first), UMD_SUCCESS);
            assert_non_null(strstr(first.figures, how[i].figure));
            assert_record(umd_va_alloc(&va, 500 * (uint64_t)PAGE, PAGE, &c), UMD_ERR_MEM_CORRUPT, "reason=corrupt_before");
        } else {
            assert_record(umd_va_alloc(&va, 500 * (uint64_t)PAGE, PAGE, &c), UMD_ERR_MEM_CORRUPT, how[i].figure);
        }
        assert_record(umd_va_alloc(&va, PAGE, PAGE, &c), UMD_ERR_MEM_CORRUPT, "reason=corrupt_before");
        umd_va_free(&va, b, 2 * PAGE);
        assert_memory_equal(va.free, was, sizeof(was)); /* left alone */
        assert_int_equal(c, 42);
        umd_va_fini(&va);
    }
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
        cmocka_unit_test(va_random), cmocka_unit_test(va_corrupt), cmocka_unit_test(va_holes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
