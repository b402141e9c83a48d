/* SPDX-License-Identifier: MIT */
/* test_status.c - the table of codes against the public header, Vulkan, and the rules of requirement B. */
#include "diag_fixture.h"

#include <errno.h>

#include "status.h"
#if HAVE_VULKAN
#include "status_vkcheck.inc"
#endif

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
    assert_int_equal(umdStatusAdvice((umdStatus)999).action, UMD_ACTION_NONE); /* never a failure */
    assert_int_equal(umdStatusAdvice((umdStatus)999).severity, UMD_SEVERITY_INFO);
    assert_false(umdStatusAdvice((umdStatus)999).sticky);
    assert_int_equal(umdStatusErrno(UMD_ERR_MEM_HOST_ALLOC_FAILED), ENOMEM);
}

/* The whole row, by value and in order. */
static void rows_are_whole(void **state)
{
    uint32_t live = 0;

    (void)state;
    assert_true(umd_status_count() >= 80);
    for (uint32_t i = 0; i < umd_status_count(); i++) {
        const struct umd_status_info *r = umd_status_at(i);
        assert_true(i == 0 || umd_status_at(i - 1)->code < r->code);
        assert_ptr_equal(umd_status_info(r->code), r);
        assert_string_equal(r->name, umdStatusName(r->code));
        assert_true(umd_status_class_text(r->class_name)[0]);
        assert_true(r->code >= 0 || strncmp(r->name + 8, r->class_name, strlen(r->class_name)) == 0);
        const struct umd_status_range_info *range = umd_status_range_info(r->code);
        assert_non_null(range);
        assert_int_equal(range->range, r->range);
        assert_true(r->code >= range->first && r->code <= range->last && range->text[0]);
        assert_non_null(r->cuda && r->hip && r->ze && r->retired && r->since[0] ? r : NULL);
        live += !r->provisional && !r->retired[0];
    }
    assert_true(live >= 80);
    assert_null(umd_status_at(umd_status_count()));
    assert_null(umd_status_info((umdStatus)-4999));
    assert_null(umd_status_range_info((umdStatus)-9999));
    assert_string_equal(umd_status_class_text("NONE"), "");
    assert_string_equal(umd_severity_word(UMD_SEVERITY_FATAL), "fatal");
    assert_string_equal(umd_scope_word(UMD_SCOPE_NODE), "node");
    assert_string_equal(umd_action_word(UMD_ACTION_FREE_RETRY), "free_retry");
    assert_string_equal(umd_action_word((umdAction)99), "unknown");
}

/* What the driver retries itself is marked, and bounded (B12). */
static void driver_retries_are_bounded(void **state)
{
    (void)state;
    assert_int_equal(umd_status_driver_retry(UMD_ERR_SUBMIT_RING_FULL).count, 1000);
    assert_int_equal(umd_status_driver_retry(UMD_ERR_SUBMIT_RING_FULL).delay_ms, 1);
    assert_int_equal(umd_status_driver_retry(UMD_ERR_HW_HANG).count, 0);
    assert_int_equal(umd_status_driver_retry((umdStatus)-4999).count, 0);
    for (uint32_t i = 0; i < umd_status_count(); i++) {
        const struct umd_status_info *r = umd_status_at(i);
        assert_true((uint64_t)r->driver_count * r->driver_delay_ms <= 10000);
        /* The driver tries anew for each of the caller's tries: all of them together end within a minute. */
        if ((uint64_t)r->count * ((uint64_t)r->delay_ms + (uint64_t)r->driver_count * r->driver_delay_ms) > 60000)
            fail_msg("%s: %u retries of %u ms, each of which has %u of the driver's, of %u ms", r->name, r->count, r->delay_ms, r->driver_count,
                     r->driver_delay_ms);
        if (r->driver_count)
            assert_true(r->driver_delay_ms > 0 && r->count <= 100);
        if (r->range == UMD_RANGE_HW && r->scope == UMD_SCOPE_DEVICE && r->sticky) /* after loss nothing is retried (B7) */
            assert_int_equal(r->driver_count + r->count, 0);
    }
}

/* Compiled against vulkan_core.h; what Vulkan takes for success or failure is so here, too. */
static void vkresults_exist(void **state)
{
    (void)state;
#if HAVE_VULKAN
    for (size_t i = 0; i < sizeof(vk_rows) / sizeof(vk_rows[0]); i++) {
        assert_string_equal(umdStatusVkResult(vk_rows[i].code), vk_rows[i].name);
        if (vk_rows[i].code >= 0)
            assert_true(vk_rows[i].result >= 0);
    }
    assert_int_equal(sizeof(vk_rows) / sizeof(vk_rows[0]), umd_status_count());
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_match_header), cmocka_unit_test(every_code_is_documented),
        cmocka_unit_test(unknown_codes_are_classified_by_range), cmocka_unit_test(rows_are_whole), cmocka_unit_test(driver_retries_are_bounded),
        cmocka_unit_test(vkresults_exist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
