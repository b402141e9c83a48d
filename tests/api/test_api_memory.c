/* SPDX-License-Identifier: MIT */
/* test_api_memory.c - whose memory a fault was meant for: freed, beyond an allocation, another context's, or nobody's. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "fixtures.h"

enum { SIZE_B = 10000 }; /* three pages, of which the last is not full */

/* Stores to the address, and returns what the wait says of it. */
static umdErrorDetail poke(struct fx *f, umdDevicePtr at)
{
    assert_ok(fx_launch(f->stream, fx_kernel(f, "poke"), &(struct fx_args){ at, at, 1, 32 }, 1));
    assert_st(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE), UMD_ERR_HW_PAGE_FAULT);
    return fx_detail();
}

static uint64_t figure(const umdErrorDetail *d, const char *key)
{
    umdFigure f;

    if (!umdErrorDetailFigure(d, key, &f))
        fail_msg("no figure %s in: %s", key, d->figures);
    assert_int_equal(f.kind, UMD_FIGURE_UINT);
    return f.uint_value;
}

static void assert_misuse(const umdErrorDetail *d, const char *misuse)
{
    umdFigure f;
    bool has = umdErrorDetailFigure(d, "misuse", &f);

    if (has != (misuse != NULL) || (misuse && strcmp(f.text, misuse) != 0))
        fail_msg("misuse is not %s in: %s", misuse ? misuse : "absent", d->figures);
    fx_assert_figure(UMD_ERR_HW_PAGE_FAULT, "kernel=poke", __FILE__, __LINE__);
    assert_non_null(strstr(d->figures, "source=api_kernels.c:"));
}

static void assert_text(const umdErrorDetail *d, const char *what)
{
    char text[8192], *to = text;
    size_t n = umdErrorDetailFormat(d, text, sizeof(text));

    assert_true(n < sizeof(text));
    for (const char *c = text; *c; c++) /* as one line: where it is broken does not matter */
        if (*c != '\n' && (*c != ' ' || to == text || to[-1] != ' '))
            *to++ = *c;
        else if (to[-1] != ' ')
            *to++ = ' ';
    *to = '\0';
    if (!strstr(text, what))
        fail_msg("not told: %s\n%s", what, text);
}

struct freer {
    struct fx *f;
    umdDevicePtr ptr;
    uint32_t tid;
};

/* The thread's own id, out of the record of a call that fails. */
static void *free_elsewhere(void *arg)
{
    struct freer *x = arg;

    assert_ok(umdMemFree(x->f->ctx, x->ptr));
    assert_st(umdMemFree(x->f->ctx, x->ptr), UMD_ERR_MEM_DOUBLE_FREE);
    x->tid = fx_detail().tid;
    return NULL;
}

static void used_after_free(void **state)
{
    struct freer x = { .f = *state };
    umdDevicePtr far, next;
    pthread_t thread;

    assert_ok(umdMemAlloc(x.f->ctx, SIZE_B, 0, 0, &far));
    x.ptr = fx_alloc(x.f, SIZE_B);
    if (fx_stepped()) { /* all is one thread there */
        (void)free_elsewhere(&x);
    } else {
        assert_int_equal(pthread_create(&thread, NULL, free_elsewhere, &x), 0);
        pthread_join(thread, NULL);
    }
    umdErrorDetail d = poke(x.f, x.ptr + 4100);
    assert_misuse(&d, "use_after_free");
    assert_int_equal(figure(&d, "freed"), x.ptr);
    assert_int_equal(figure(&d, "freed_B"), SIZE_B);
    assert_int_equal(figure(&d, "freed_offset_B"), 4100);
    assert_int_equal(figure(&d, "freed_by_tid"), x.tid);
    assert_true(x.tid == fx_detail().tid || !fx_stepped());
    assert_true(figure(&d, "freed_ns") > 0 && figure(&d, "freed_ns") <= d.mono_ns);
    assert_int_equal(figure(&d, "allocation"), far); /* it may have been meant for the one before, too */
    assert_int_equal(figure(&d, "overrun_B"), x.ptr + 4100 - (far + SIZE_B) + 1);
    assert_text(&d, "used after free. The address is also ");
    assert_text(&d, "next Used after free: free memory when ");
    assert_st(umdMemAlloc(x.f->ctx, 4096, 0, 0, &next), UMD_ERR_CTX_BANNED); /* what follows leads to it */
    d = fx_detail();
    assert_text(&d, "For UMD_ERR_HW_PAGE_FAULT: Used after free: ");
}

/* The last page of a freed allocation was its own to its end. */
static void used_after_free_in_the_rest_of_its_page(void **state)
{
    struct fx *f = *state;
    umdDevicePtr p = fx_alloc(f, 100);

    assert_ok(umdMemFree(f->ctx, p));
    umdErrorDetail d = poke(f, p + 4092);
    assert_misuse(&d, "use_after_free");
    assert_int_equal(figure(&d, "freed_offset_B"), 4092);
    assert_int_equal(figure(&d, "freed_B"), 100);
}

static void ran_over_the_end(void **state)
{
    struct fx *f = *state;
    umdDevicePtr p = fx_alloc(f, 3u << 20);

    umdErrorDetail d = poke(f, p + (3u << 20) + 40);
    assert_misuse(&d, "overrun");
    assert_int_equal(figure(&d, "allocation"), p);
    assert_int_equal(figure(&d, "allocation_B"), 3u << 20);
    assert_int_equal(figure(&d, "overrun_B"), 41);
    assert_text(&d, "The address is 41 bytes behind the end of an allocation of 3145728 bytes. It was kernel poke at ");
    assert_text(&d, "next An index ran over the end of an allocation: ");
}

/* Counted from the size that was asked for, though the page goes on. */
static void ran_over_the_end_of_its_page(void **state)
{
    struct fx *f = *state;
    umdDevicePtr p = fx_alloc(f, SIZE_B);

    umdErrorDetail d = poke(f, p + 3 * 4096);
    assert_misuse(&d, "overrun");
    assert_int_equal(figure(&d, "allocation_B"), SIZE_B);
    assert_int_equal(figure(&d, "overrun_B"), 3 * 4096 - SIZE_B + 1);
}

static void ran_below_the_start(void **state)
{
    struct fx *f = *state;
    umdDevicePtr first = fx_alloc(f, 4096), p = fx_alloc(f, 3u << 20); /* at a boundary of 2 MiB, so that there is a gap before it */

    assert_true(p - first > 128 * 1024);
    umdErrorDetail d = poke(f, p - 4);
    assert_misuse(&d, "underrun");
    assert_int_equal(figure(&d, "allocation"), p);
    assert_int_equal(figure(&d, "underrun_B"), 4);
    assert_text(&d, "The address is 4 bytes before the start of an allocation of 3145728 bytes.");
}

static void of_another_context(void **state)
{
    struct fx *f = *state;
    umdDevicePtr p;
    umdContext other;

    assert_ok(umdContextCreate(f->dev, &other));
    for (int i = 0; i < 8; i++) /* beyond what the first context has */
        assert_ok(umdMemAlloc(other, 3u << 20, 0, 0, &p));
    umdErrorDetail d = poke(f, p + 1024);
    assert_misuse(&d, "other_context");
    assert_true(figure(&d, "owner_context") != 0 && figure(&d, "owner_context") != d.context_id);
    assert_ok(umdContextDestroy(other));
}

/* Of a wild address nothing is claimed. */
static void of_nobody(void **state)
{
    struct fx *f = *state;
    umdDevicePtr p = fx_alloc(f, SIZE_B), q = fx_alloc(f, SIZE_B);

    assert_ok(umdMemFree(f->ctx, q));
    umdErrorDetail d = poke(f, p + (64u << 20));
    assert_misuse(&d, NULL);
    assert_null(strstr(d.figures, "allocation="));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(used_after_free, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(used_after_free_in_the_rest_of_its_page, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(ran_over_the_end, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(ran_over_the_end_of_its_page, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(ran_below_the_start, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(of_another_context, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(of_nobody, fx_setup, fx_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
