/* SPDX-License-Identifier: MIT */
/* test_status.c - the table of codes against the public header, the published list, and the rules of requirement B. */
#include "diag_fixture.h"

#include <errno.h>

/* Each line "NAME = VALUE" of a file, blanks and comments aside. */
static unsigned each_code(const char *path, void (*fn)(const char *name, int value))
{
    FILE *f = fopen(path, "r");
    char line[512], name[64];
    unsigned count = 0;
    int value;

    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        if (sscanf(line, " UMD_%59[A-Z0-9_] = %d", name, &value) == 2) {
            char full[72];
            snprintf(full, sizeof(full), "UMD_%s", name);
            fn(full, value);
            count++;
        }
    fclose(f);
    return count;
}

static void check_name(const char *name, int value) { assert_string_equal(umdStatusName((umdStatus)value), name); }

static void names_match_header(void **state)
{
    unsigned known = 0;

    (void)state;
    unsigned in_header = each_code(STATUS_HEADER, check_name);
    for (int v = -10000; v < 10000; v++)
        known += strcmp(umdStatusName((umdStatus)v), "UMD_UNKNOWN") != 0;
    assert_int_equal(known, in_header);
    assert_true(known > 60);
}

static void published_codes_are_frozen(void **state)
{
    (void)state;
    assert_true(each_code(PUBLISHED, check_name) > 60);
}

static void every_code_is_documented(void **state)
{
    (void)state;
    for (int v = -7000; v < 1000; v++) {
        umdStatus st = (umdStatus)v;
        umdAdvice a = umdStatusAdvice(st);
        if (strcmp(umdStatusName(st), "UMD_UNKNOWN") == 0)
            continue;
        assert_true(strlen(umdStatusString(st)) > 10);
        assert_true(strlen(umdStatusTodo(st)) > 4);
        assert_true(strncmp(umdStatusVkResult(st), "VK_", 3) == 0);
        assert_int_not_equal(umdStatusRangeOf(st), UMD_RANGE_UNKNOWN);
        assert_int_equal(umdStatusErrno(st) == 0, v == 0);
        assert_int_equal(umdFailed(st), v < 0);
        assert_int_equal(v < 0, strncmp(umdStatusName(st), "UMD_ERR_", 8) == 0);
        if (a.count) /* advice to retry only where the action says so */
            assert_true(a.action == UMD_ACTION_RETRY || a.action == UMD_ACTION_FREE_RETRY);
    }
}

static void unknown_codes_are_classified_by_range(void **state)
{
    (void)state;
    assert_int_equal(umdStatusRangeOf((umdStatus)-1999), UMD_RANGE_PARAM);
    assert_int_equal(umdStatusRangeOf((umdStatus)-2999), UMD_RANGE_RESOURCE);
    assert_int_equal(umdStatusRangeOf((umdStatus)-4999), UMD_RANGE_HW);
    assert_int_equal(umdStatusRangeOf((umdStatus)-9999), UMD_RANGE_UNKNOWN);
    assert_string_equal(umdStatusName((umdStatus)-4999), "UMD_UNKNOWN");
    assert_int_equal(umdStatusErrno((umdStatus)-4999), EIO);
    assert_int_equal(umdStatusAdvice((umdStatus)-4999).action, UMD_ACTION_ABORT);
    assert_int_equal(umdStatusErrno(UMD_ERR_MEM_HOST_ALLOC_FAILED), ENOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_match_header), cmocka_unit_test(published_codes_are_frozen), cmocka_unit_test(every_code_is_documented),
        cmocka_unit_test(unknown_codes_are_classified_by_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
