/* SPDX-License-Identifier: MIT */
/* test_struct_size.c - structs that begin with size_B between a program and a library of two versions (B8): inputs, outputs, views, calls of umd_diag.h. */
#include "diag_fixture.h"
#include "struct_size.h"

UMD_LOG_MODULE("test.struct_size");

/* One struct in three versions. */
struct v1 { uint32_t size_B, a; uint64_t b; };
struct v2 { uint32_t size_B, a; uint64_t b, c; };
struct v3 { uint32_t size_B, a; uint64_t b, c, d; };

enum { FIRST_B = sizeof(struct v1), OWN_B = sizeof(struct v2), LARGEST_B = OWN_B + UMD_STRUCT_GROWTH_B, MARK = 0xa5 };

/* What a program passes: `size_B` bytes, of which those from `from` on (to the end) are not zero. */
struct row {
    const char *what;
    uint32_t size_B, nonzero_from;
    bool in, out;                  /* is taken */
    const char *figure;            /* why it is not */
};
static const struct row rows[] = {
    { "no size", 0, UINT32_MAX, false, false, "size_B=0 smallest_B=16 known_B=24 largest_B=1048" },
    { "smaller than any published one", FIRST_B - 1, UINT32_MAX, false, false, "size_B=15 smallest_B=16" },
    { "the first version's", FIRST_B, UINT32_MAX, true, true, NULL },
    { "between two versions", FIRST_B + 3, UINT32_MAX, true, true, NULL },
    { "the library's", OWN_B, UINT32_MAX, true, true, NULL },
    { "the next version's, not used", sizeof(struct v3), UINT32_MAX, true, true, NULL },
    { "the next version's, used", sizeof(struct v3), OWN_B, false, true, "size_B=32 known_B=24 nonzero_at_B=24" },
    { "the next version's, its last byte used", sizeof(struct v3), sizeof(struct v3) - 1, false, true, "size_B=32 known_B=24 nonzero_at_B=31" },
    { "the largest", LARGEST_B, UINT32_MAX, true, true, NULL },
    { "never set", LARGEST_B + 1, UINT32_MAX, false, false, "size_B=1049 smallest_B=16 known_B=24 largest_B=1048" },
    { "garbage", 0xcccccccc, UINT32_MAX, false, false, "size_B=3435973836" },
};

/* As the program has it: fields of version one set, the rest zero up to nonzero_from. Behind it marks. */
static uint8_t *make(const struct row *r)
{
    uint8_t *p = malloc(LARGEST_B + 64);

    assert_non_null(p);
    memset(p, MARK, LARGEST_B + 64);
    if (r->size_B <= LARGEST_B) {
        memset(p, 0, r->size_B);
        if (r->nonzero_from < r->size_B)
            memset(p + r->nonzero_from, 1, r->size_B - r->nonzero_from);
    }
    memcpy(p, &(struct v1){ .size_B = r->size_B, .a = 11, .b = 22 }, r->size_B < FIRST_B ? sizeof(uint32_t) : FIRST_B);
    return p;
}

static void inputs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *r = &rows[i];
        uint8_t *given = make(r);
        struct v2 got, untouched;
        char figures[UMD_STRUCT_FIGURES] = "none";
        memset(&got, MARK, sizeof(got));
        untouched = got;
        if (umd_struct_in(&got, sizeof(got), given, FIRST_B, figures) != r->in)
            fail_msg("%s", r->what);
        if (r->in) {
            assert_int_equal(got.size_B, OWN_B);
            assert_int_equal(got.a, 11);
            assert_int_equal(got.b, 22);
            assert_int_equal(got.c, 0);
            assert_string_equal(figures, "none");
        } else {
            assert_memory_equal(&got, &untouched, sizeof(got));
            if (!strstr(figures, r->figure))
                fail_msg("%s: %s", r->what, figures);
            assert_false(umd_struct_in(&got, sizeof(got), given, FIRST_B, NULL));
        }
        free(given);
    }
}

/* Version two's field comes over from a program that has it. */
static void input_of_the_same_version(void **state)
{
    const struct v2 given = { .size_B = sizeof(given), .a = 1, .b = 2, .c = 3 };
    struct v2 got;

    (void)state;
    assert_true(umd_struct_in(&got, sizeof(got), &given, FIRST_B, NULL));
    assert_memory_equal(&got, &given, sizeof(got));
}

static bool all(const uint8_t *p, size_t n, uint8_t value)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != value)
            return false;
    return true;
}

static void outputs(void **state)
{
    const struct v2 own = { .size_B = OWN_B, .a = 1, .b = 2, .c = 0x0303030303030303u };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *r = &rows[i];
        uint8_t *given = make(r), *before = make(r);
        char figures[UMD_STRUCT_FIGURES] = "none";
        if (umd_struct_fits(OWN_B, given, FIRST_B, figures) != r->out)
            fail_msg("%s", r->what);
        if (!r->out && !strstr(figures, r->figure))
            fail_msg("%s: %s", r->what, figures);
        assert_memory_equal(given, before, LARGEST_B + 64);
        if (r->out) {
            const uint32_t both_B = r->size_B < OWN_B ? r->size_B : OWN_B;
            umd_struct_out(given, &own, OWN_B);
            assert_memory_equal(given, &r->size_B, sizeof(r->size_B)); /* stays the program's */
            assert_memory_equal(given + 4, (const uint8_t *)&own + 4, both_B - 4);
            assert_true(all(given + both_B, r->size_B - both_B, 0));
            assert_true(all(given + r->size_B, LARGEST_B + 64 - r->size_B, MARK)); /* nothing behind it */
        }
        free(given);
        free(before);
    }
}

/* What another thread of the program does to the size in between writes nowhere. */
static void output_whose_size_changed(void **state)
{
    const struct v2 own = { .size_B = OWN_B, .a = 1 };
    struct v2 given = { .size_B = UINT32_MAX, .a = 7 };

    (void)state;
    umd_struct_out(&given, &own, OWN_B);
    assert_int_equal(given.a, 7);
    given.size_B = 0;
    umd_struct_out(&given, &own, OWN_B);
    assert_int_equal(given.a, 7);
}

static void views(void **state)
{
    const struct v3 newer = { .size_B = sizeof(newer), .a = 1, .d = 5 };
    const struct v2 same = { .size_B = sizeof(same), .a = 1, .c = 4 };
    struct { struct v1 s; uint64_t behind; } older = { { .size_B = sizeof(older.s), .a = 1, .b = 3 }, UINT64_MAX };
    struct v2 copy;

    (void)state;
    assert_ptr_equal(umd_struct_view(&copy, OWN_B, &newer, FIRST_B), &newer);
    assert_ptr_equal(umd_struct_view(&copy, OWN_B, &same, FIRST_B), &same);
    for (int i = 0; i < 2; i++) {
        memset(&copy, MARK, sizeof(copy));
        assert_ptr_equal(umd_struct_view(&copy, OWN_B, &older, FIRST_B), &copy);
        assert_int_equal(copy.b, 3);
        assert_int_equal(copy.c, 0); /* not what lies behind it */
        older.s.size_B = 0;          /* one that the program made itself, and forgot */
    }
}

/* ---- The calls of umd_diag.h ---- */

static umdRecordId some_id;
static umdStatus by_id(void *p) { return umdGetErrorDetailById(some_id, p); }
static umdStatus first_cause(void *p) { return umdGetFirstCause(some_id, p); }
static umdStatus last(void *p) { return umdGetLastErrorDetail(p); }
static umdStatus scene(void *p) { return umdGetErrorScene(some_id, p); }

/* alike_B: what is the same whenever it is asked; the times of calls, read off a calibrated clock, are not to the last nanosecond. */
static const struct { const char *name; uint32_t first_B, own_B, alike_B; umdStatus (*get)(void *p); } calls[] = {
    { "umdGetLastErrorDetail", UMD_ERROR_DETAIL_SIZE_V1, sizeof(umdErrorDetail), sizeof(umdErrorDetail), last },
    { "umdGetErrorDetailById", UMD_ERROR_DETAIL_SIZE_V1, sizeof(umdErrorDetail), sizeof(umdErrorDetail), by_id },
    { "umdGetFirstCause", UMD_ERROR_DETAIL_SIZE_V1, sizeof(umdErrorDetail), sizeof(umdErrorDetail), first_cause },
    { "umdGetErrorScene", UMD_ERROR_SCENE_SIZE_V1, sizeof(umdErrorScene), offsetof(umdErrorScene, calls), scene },
};

static void diag_calls(void **state)
{
    enum { ROOM = 3 * 4096 };
    uint8_t *p = malloc(ROOM), *own = malloc(ROOM);
    struct umd_api_call call = { 0 };

    (void)state;
    assert_true(p && own);
    umd_api_enter(&call, "umdA", "%s", "");
    assert_int_equal(umd_api_exit(&call, UMD_FAIL(UMD_ERR_MEM_FRAGMENTED, "size_B=%d", 1)), UMD_ERR_MEM_FRAGMENTED);
    some_id = last_error().id;
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        const uint32_t own_B = calls[i].own_B;
        const struct { uint32_t size_B; umdStatus st; } tries[] = {
            { 0, UMD_ERR_PARAM_STRUCT_SIZE }, { calls[i].first_B - 1, UMD_ERR_PARAM_STRUCT_SIZE }, { UINT32_MAX, UMD_ERR_PARAM_STRUCT_SIZE },
            { calls[i].first_B, UMD_SUCCESS }, { own_B, UMD_SUCCESS }, { own_B + 1000, UMD_SUCCESS },
        };
        assert_int_equal(calls[i].get(NULL), UMD_ERR_PARAM_NULL);
        memset(own, 0, own_B);
        memcpy(own, &own_B, sizeof(own_B));
        assert_int_equal(calls[i].get(own), UMD_SUCCESS);
        for (size_t k = 0; k < sizeof(tries) / sizeof(tries[0]); k++) {
            const uint32_t size_B = tries[k].size_B, both_B = size_B < own_B ? size_B : own_B;
            memset(p, MARK, ROOM);
            memcpy(p, &size_B, sizeof(size_B));
            if (calls[i].get(p) != tries[k].st)
                fail_msg("%s size_B=%u", calls[i].name, size_B);
            assert_memory_equal(p, &size_B, sizeof(size_B));
            if (tries[k].st < 0) {
                assert_true(all(p + 4, ROOM - 4, MARK));
                continue;
            }
            assert_true(calls[i].alike_B <= both_B);
            assert_memory_equal(p + 4, own + 4, calls[i].alike_B - 4);
            assert_true(all(p + both_B, size_B - both_B, 0));
            assert_true(all(p + size_B, ROOM - size_B, MARK));
        }
    }
    free(p);
    free(own);
}

/* A record from a kernel driver of another version. */
static void records_over_a_carrier(void **state)
{
    umdErrorDetail good, other;

    (void)state;
    umd_record_scope_begin();
    (void)UMD_FAIL(UMD_ERR_MEM_FRAGMENTED, "size_B=%d", 2);
    assert_true(umd_record_export(&good));
    umd_record_scope_end();
    for (uint32_t i = 0; i < 2; i++) {
        struct umd_api_call call = { 0 };
        other = good;
        other.size_B = i ? sizeof(other) + 64 : UMD_ERROR_DETAIL_SIZE_V1; /* newer: it wrote what there was room for */
        umd_api_enter(&call, "umdA", "%s", "");
        assert_int_equal(umd_api_exit(&call, umd_record_import(&other)), UMD_ERR_MEM_FRAGMENTED);
        assert_int_equal(last_error().size_B, sizeof(umdErrorDetail));
        assert_string_equal(last_error().figures, "size_B=2");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs), cmocka_unit_test(input_of_the_same_version), cmocka_unit_test(outputs),
        cmocka_unit_test(output_whose_size_changed), cmocka_unit_test(views), cmocka_unit_test(diag_calls),
        cmocka_unit_test(records_over_a_carrier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
