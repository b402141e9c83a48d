/* SPDX-License-Identifier: MIT */
/* test_fault.c - the grammar of fault specifications, good and bad, and which hits fire. */
#include "diag_fixture.h"
#include "nearest.h"

#include <errno.h>
#include <fcntl.h>

/* Hits of hw.cu.hang as a row of 0 and 1. */
static const char *row(const char *spec, int hits, struct umd_fault_where where)
{
    static char text[1024];

    assert_int_equal(umd_fault_plan_set(spec), UMD_SUCCESS);
    for (int i = 0; i < hits; i++) {
        struct umd_fault_hit hit = { 0 };
        text[i] = umd_fault(UMD_FAULT_HW_CU_HANG, where, &hit) ? '1' : '0';
        if (text[i] == '1')
            assert_string_equal(hit.action, "fire");
    }
    text[hits] = '\0';
    return text;
}
#define ROW(spec_, hits_) row((spec_), (hits_), (struct umd_fault_where){ 0 })

static void attributes_choose_the_hit(void **state)
{
    (void)state;
    assert_string_equal(ROW("hw.cu.hang=fire", 4), "1111");
    assert_string_equal(ROW("hw.cu.hang[nth=3]=fire", 6), "001000");
    assert_string_equal(ROW("hw.cu.hang[interval=2]=fire", 6), "010101");
    assert_string_equal(ROW("hw.cu.hang[space=2]=fire", 6), "001111");
    assert_string_equal(ROW("hw.cu.hang[space=2,nth=2]=fire", 6), "000100");
    assert_string_equal(ROW("hw.cu.hang[times=2]=fire", 6), "110000");
    assert_string_equal(ROW("hw.cu.hang[interval=2,times=1]=fire", 6), "010000");
    assert_string_equal(ROW(" hw.cu.hang [ nth = 0x2 ] = fire ( 7 , 0x10 ) # why\n;;\n seed = 4 ;", 3), "010");
    assert_string_equal(ROW("hw.cu.hang=2*fire", 4), "1100");
    assert_string_equal(ROW("hw.cu.hang=1*fire->0%1*fire->2*fire", 8), "10000000");
    assert_string_equal(ROW("kmd.vram.alloc=fail", 3), "000");
    assert_string_equal(ROW("hw.cu.hang[nth=1]=fire;hw.cu.hang[nth=3]=fire", 4), "1010");
}

static void filters_choose_the_context(void **state)
{
    (void)state;
    assert_string_equal(row("hw.cu.hang[ctx=5]=fire", 3, (struct umd_fault_where){ .ctx = 5 }), "111");
    assert_string_equal(row("hw.cu.hang[ctx=5]=fire", 3, (struct umd_fault_where){ .ctx = 6 }), "000");
    assert_string_equal(row("hw.cu.hang[queue=2,nth=2]=fire", 3, (struct umd_fault_where){ .queue = 2 }), "010");
    assert_string_equal(ROW("hw.cu.hang[queue=2]=fire", 3), "000");
    assert_string_equal(ROW("hw.cu.hang[rank=1]=fire", 3), "000");
    assert_int_equal(setenv("PETREL_RANK", "1", 1), 0);
    assert_string_equal(ROW("hw.cu.hang[rank=1]=fire", 3), "111");
    for (unsigned i = 0; i < 4; i++) {
        static const char *const bad[] = { "x", "1x", "-1", "99999999999999999999" };
        assert_int_equal(setenv("PETREL_RANK", bad[i], 1), 0);
        assert_int_equal(umd_fault_plan_set("hw.cu.hang=fire"), UMD_ERR_CONFIG_VALUE);
        assert_non_null(strstr(last_error().figures, "key=PETREL_RANK value=\""));
    }
    assert_int_equal(setenv("PETREL_RANK", "", 1), 0);
    assert_int_equal(umd_fault_plan_set("hw.cu.hang=fire"), UMD_SUCCESS);
    assert_int_equal(umd_fault_plan_set(NULL), UMD_SUCCESS);
    unsetenv("PETREL_RANK");
}

static void chance_follows_the_seed(void **state)
{
    char first[512];

    (void)state;
    snprintf(first, sizeof(first), "%s", ROW("seed=11;hw.cu.hang=25%fire", 400));
    assert_string_equal(ROW("seed=11;hw.cu.hang=25%fire", 400), first);
    unsigned ones = count_of(first, "1");
    assert_in_range(ones, 70, 130);
    assert_string_not_equal(ROW("seed=12;hw.cu.hang=25%fire", 400), first);
    assert_int_equal(count_of(ROW("seed=1;hw.cu.hang=50%3*fire", 100), "1"), 3);
    assert_int_equal(count_of(ROW("hw.cu.hang=0%fire", 100), "1"), 0);
    assert_int_equal(count_of(ROW("hw.cu.hang=100%fire", 100), "1"), 100);
    assert_in_range(count_of(ROW("seed=5;hw.cu.hang=0.5%fire", 1000), "1"), 1, 20);
}

static void arguments_and_counters(void **state)
{
    struct umd_fault_where where = { 0 };
    struct umd_fault_hit hit;

    (void)state;
    assert_int_equal(umd_fault_plan_set("sys.write=fail(EDQUOT,0xff,3)"), UMD_SUCCESS);
    assert_true(umd_fault(UMD_FAULT_SYS_WRITE, where, &hit));
    assert_string_equal(hit.action, "fail");
    assert_int_equal(hit.arg_count, 3);
    assert_int_equal(hit.args[0], EDQUOT);
    assert_int_equal(hit.args[1], 0xff);
    assert_false(umd_fault(UMD_FAULT_HW_SDMA_HANG, where, &hit));
    assert_int_equal(umd_fault_hits(UMD_FAULT_SYS_WRITE), 1);
    assert_int_equal(umd_fault_fired(UMD_FAULT_SYS_WRITE), 1);
    assert_int_equal(umd_fault_hits(UMD_FAULT_HW_SDMA_HANG), 1);
    assert_int_equal(umd_fault_fired(UMD_FAULT_HW_SDMA_HANG), 0);
    assert_int_equal(umd_fault_plan_set(""), UMD_SUCCESS);
    assert_false(umd_fault(UMD_FAULT_SYS_WRITE, where, &hit));
    assert_int_equal(umd_fault_hits(UMD_FAULT_SYS_WRITE), 1); /* readable until the next plan, not counted on */
}

static void mistakes_have_their_position(void **state)
{
    static const struct { const char *spec; int position; const char *expected, *found; } cases[] = {
        { "hw.cu.hng=fire", 0, "a fault site", "hw.cu.hng" },
        { "hw.cu.hang", 10, "'[' or '=' after the site", "end of text" },
        { "hw.cu.hang=", 11, "an action of this site: fire", "end of text" },
        { "hw.cu.hang=fail", 11, "an action of this site: fire", "fail" },
        { "hw.cu.hang[nth]=fire", 14, "'=' after the attribute", "]" },
        { "hw.cu.hang[nth=]=fire", 15, "a number", "]" },
        { "hw.cu.hang[nth=0]=fire", 15, "a number from 1", "0" },
        { "hw.cu.hang[nth=1,nth=2]=fire", 17, "each attribute once", "nth" },
        { "hw.cu.hang[foo=1]=fire", 11, "an attribute: nth interval space times ctx queue rank", "foo" },
        { "hw.cu.hang[nth=1=fire", 16, "',' or ']'", "=" },
        { "hw.cu.hang[nth=18446744073709551616]=fire", 15, "a number below 2^64", "18446744073709551616" },
        { "hw.cu.hang=101%fire", 11, "a percentage from 0 to 100", "101" },
        { "hw.cu.hang=0.00001%fire", 11, "a percentage with at most four places", "0.00001" },
        { "hw.cu.hang=0*fire", 11, "a count from 1", "0" },
        { "hw.cu.hang=3fire", 11, "a count", "3fire" },
        { "hw.cu.hang=fire(1", 17, "',' or ')'", "end of text" },
        { "hw.cu.hang=fire(x)", 16, "a number or an errno name", "x" },
        { "hw.cu.hang=fire(1,2,3,4,5)", 24, "at most 4 arguments", "5" },
        { "sys.open=fail(0)", 14, "an errno from 1 to 4095", "0" },
        { "sys.write=fail(ENOSPC,4096)", 22, "an errno from 1 to 4095", "4096" },
        { "hw.cu.hang=fire->fire", 17, "nothing more: the term before has no count, so it never ends", "fire" },
        { "hw.cu.hang=fire extra", 16, "';' or end of text after the rule", "extra" },
        { "seed=", 5, "a number", "end of text" },
        { "seed 5", 5, "'=' after seed", "5" },
        { "=fire", 0, "a fault site", "=" },
        { "seed=1;\n  hw.cu.hang=fyre", 21, "an action of this site: fire", "fyre" },
    };

    (void)state;
    assert_int_equal(umd_fault_plan_set("hw.cu.hang[nth=2]=fire"), UMD_SUCCESS);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char want[256];
        assert_int_equal(umd_fault_plan_set(cases[i].spec), UMD_ERR_FAULT_SPEC);
        snprintf(want, sizeof(want), "position=%d ", cases[i].position);
        umdErrorDetail d = last_error();
        if (!strstr(d.figures, want))
            fail_msg("%s: %s lacks %s", cases[i].spec, d.figures, want);
        snprintf(want, sizeof(want), "expected=\"%s\" found=\"%s\"", cases[i].expected, cases[i].found);
        if (!strstr(d.figures, want))
            fail_msg("%s: %s lacks %s", cases[i].spec, d.figures, want);
    }
    assert_non_null(strstr(last_error().figures, "line=2 column=14 "));
    /* A bad specification leaves the plan before it alone. */
    struct umd_fault_hit hit;
    assert_false(umd_fault(UMD_FAULT_HW_CU_HANG, (struct umd_fault_where){ 0 }, &hit));
    assert_true(umd_fault(UMD_FAULT_HW_CU_HANG, (struct umd_fault_where){ 0 }, &hit));
}

static void near_misses_are_suggested(void **state)
{
    (void)state;
    assert_int_equal(umd_fault_plan_set("hw.cu.hng=fire"), UMD_ERR_FAULT_SPEC);
    assert_non_null(strstr(last_error().figures, "suggestion=hw.cu.hang"));
    assert_int_equal(umd_fault_plan_set("kmd.vram.aloc=fail"), UMD_ERR_FAULT_SPEC);
    assert_non_null(strstr(last_error().figures, "suggestion=kmd.vram.alloc"));
    assert_int_equal(umd_fault_plan_set("something.else.entirely=fail"), UMD_ERR_FAULT_SPEC);
    assert_null(strstr(last_error().figures, "suggestion"));
    assert_int_equal(umd_nearest_distance("kitten", 6, "sitting"), 3);
    assert_int_equal(umd_nearest_distance("kitten, not all", 6, "kitten"), 0);
    assert_int_equal(umd_nearest_distance("", 0, "abc"), 3);
    char longest[66];
    memset(longest, 'x', 65);
    longest[65] = '\0';
    assert_int_equal(umd_nearest_distance(longest, 65, "x"), UMD_NEAREST_FAR);
    longest[64] = '\0';
    assert_int_equal(umd_nearest_distance("x", 1, longest), 63);
}

static void too_many_rules(void **state)
{
    char spec[4096] = "";

    (void)state;
    for (int i = 0; i < 65; i++)
        strcat(spec, "hw.cu.hang=fire;");
    assert_int_equal(umd_fault_plan_set(spec), UMD_ERR_FAULT_SPEC);
    assert_non_null(strstr(last_error().figures, "at most 64 rules"));
    spec[64 * 16] = '\0';
    assert_int_equal(umd_fault_plan_set(spec), UMD_SUCCESS);
}

static void plans_load_from_files(void **state)
{
    FILE *f = fopen(scratch("plan"), "w");

    (void)state;
    assert_non_null(f);
    fputs("# a comment\nseed=3\nhw.cu.hang[nth=2]=fire # here\nkmd.vram.alloc=fail\n", f);
    fclose(f);
    assert_int_equal(umd_fault_plan_load(scratch("plan")), UMD_SUCCESS);
    struct umd_fault_hit hit;
    assert_true(umd_fault(UMD_FAULT_KMD_VRAM_ALLOC, (struct umd_fault_where){ 0 }, &hit));
    char at[256];
    snprintf(at, sizeof(at), "@%s", scratch("plan"));
    assert_int_equal(umd_fault_plan_set(NULL), UMD_SUCCESS);
    for (int i = 0; i < 3; i++) { /* as a file by name, by '@', and as a person writes it */
        assert_int_equal(i == 0 ? umd_fault_plan_load(at) : umd_fault_plan_from(i == 1 ? at : at + 1), UMD_SUCCESS);
        assert_true(umd_fault(UMD_FAULT_KMD_VRAM_ALLOC, (struct umd_fault_where){ 0 }, &hit));
        assert_int_equal(umd_fault_plan_from(NULL), UMD_SUCCESS);
        assert_false(umd_fault(UMD_FAULT_KMD_VRAM_ALLOC, (struct umd_fault_where){ 0 }, &hit));
    }
    assert_int_equal(umd_fault_plan_from("hw.cu.hng"), UMD_ERR_FAULT_SPEC); /* no file of that name is looked for */
    assert_int_equal(umd_fault_plan_load(scratch("missing")), UMD_ERR_RES_FILE);
    assert_non_null(strstr(last_error().figures, "missing\" errno=2"));
    assert_int_equal(umd_fault_plan_load("/tmp"), UMD_ERR_RES_FILE);
    assert_int_equal(umd_fault_plan_load(NULL), UMD_ERR_PARAM_NULL);
    f = fopen(scratch("bad"), "w");
    assert_non_null(f);
    fputs("seed=3\nhw.cu.hang=fry\n", f);
    fclose(f);
    assert_int_equal(umd_fault_plan_load(scratch("bad")), UMD_ERR_FAULT_SPEC);
    assert_non_null(strstr(last_error().figures, "line=2 column=12"));
    assert_non_null(strstr(last_error().figures, "/bad\""));
}

static void *hits_in_thread(void *arg)
{
    struct umd_fault_hit hit;
    uintptr_t fired = 0;

    (void)arg;
    for (int i = 0; i < 2000; i++)
        fired += umd_fault(UMD_FAULT_HW_IRQ_LOST, (struct umd_fault_where){ 0 }, &hit);
    return (void *)fired;
}

static void threads_share_the_count(void **state)
{
    pthread_t t[4];
    uintptr_t total = 0;
    void *fired;

    (void)state;
    assert_int_equal(umd_fault_plan_set("hw.irq.lost[interval=10]=fire"), UMD_SUCCESS);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&t[i], NULL, hits_in_thread, NULL), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], &fired);
        total += (uintptr_t)fired;
    }
    assert_int_equal(total, 800);
    assert_int_equal(umd_fault_hits(UMD_FAULT_HW_IRQ_LOST), 8000);
    assert_int_equal(umd_fault_fired(UMD_FAULT_HW_IRQ_LOST), 800);
}

static void every_site_is_described(void **state)
{
    (void)state;
    for (int i = 0; i < (int)UMD_FAULT_SITE_COUNT; i++) {
        const struct umd_fault_site_info *s = umd_fault_site_info((enum umd_fault_site)i);
        char spec[128];
        assert_true(strlen(s->text) > 10);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(s->name, umd_fault_site_info((enum umd_fault_site)j)->name);
        snprintf(spec, sizeof(spec), "%s[nth=1000000]=%.*s", s->name, (int)strcspn(s->actions, ","), s->actions);
        assert_int_equal(umd_fault_plan_set(spec), UMD_SUCCESS); /* each action is one that the grammar knows */
    }
    assert_null(umd_fault_site_info(UMD_FAULT_SITE_COUNT));
}

static int clear(void **state)
{
    (void)state;
    return umd_fault_plan_set(NULL) != UMD_SUCCESS;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(attributes_choose_the_hit, clear), cmocka_unit_test_teardown(filters_choose_the_context, clear),
        cmocka_unit_test_teardown(chance_follows_the_seed, clear), cmocka_unit_test_teardown(arguments_and_counters, clear),
        cmocka_unit_test_teardown(mistakes_have_their_position, clear), cmocka_unit_test_teardown(near_misses_are_suggested, clear),
        cmocka_unit_test_teardown(too_many_rules, clear), cmocka_unit_test_teardown(plans_load_from_files, clear),
        cmocka_unit_test_teardown(threads_share_the_count, clear), cmocka_unit_test_teardown(every_site_is_described, clear),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    scratch_remove();
    return failed;
}
