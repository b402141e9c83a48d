/* SPDX-License-Identifier: MIT */
/* test_log_open.c - one log file in place of another: what was open is written on until the new one is there, and nothing is overwritten. */
#include "diag_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>

#include "fault_plan.h"

UMD_LOG_MODULE("umd.test.open");

static void a_file_that_cannot_be_had_leaves_the_one_before(void **state)
{
    char path[160];
    umdLogStats before, after;

    (void)state;
    path_of(path, sizeof(path), "before");
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "warn"), UMD_SUCCESS);
    umdLogGetStats(&before);
    UMD_LOG(UMD_LOG_WARN, "line x=%d", 1);
    assert_int_equal(umdLogOpenFile("/nonexistent/dir/log", UMD_LOG_FORMAT_TEXT, "info"), UMD_ERR_RES_FILE);
    assert_int_equal(umdLogOpenFile(scratch("other"), UMD_LOG_FORMAT_TEXT, "loud"), UMD_ERR_CONFIG_VALUE);
    UMD_LOG(UMD_LOG_INFO, "line x=%d", 2); /* the levels are those before, too */
    UMD_LOG(UMD_LOG_WARN, "line x=%d", 3);
    assert_int_equal(count_of(logged(path), "line x="), 2);
    assert_int_equal(count_of(logged(path), "# petrel log"), 1);
    umdLogGetStats(&after);
    assert_int_equal(after.lost, before.lost);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

/* Not the file is at fault, and the advice is another. */
static void a_lack_of_descriptors_is_told_as_such(void **state)
{
    char path[160];
    struct rlimit was, none;

    (void)state;
    path_of(path, sizeof(path), "out-of-descriptors");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = was;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    umdStatus log = umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, NULL), plan = umd_fault_plan_load("/nonexistent/plan");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    assert_int_equal(log, UMD_ERR_RES_DESCRIPTORS);
    assert_int_equal(plan, UMD_ERR_RES_DESCRIPTORS);
    assert_non_null(strstr(last_error().figures, "path=\"/nonexistent/plan\" errno=24"));
}

static uint64_t stopped_clock(void) { return 1; }

/* Failures whose story is not at its end are told in the file that is there then. */
static void stories_survive_a_file_that_cannot_be_had(void **state)
{
    static struct umd_sys table;
    char path[160];

    (void)state;
    table = *umd_sys_default();
    table.mono_ns = stopped_clock; /* however slow the host is, no record waits too long */
    umd_sys_set(&table);
    path_of(path, sizeof(path), "disaster");
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_DISASTER, NULL), UMD_SUCCESS);
    umd_record_scope_begin();
    umdStatus st = UMD_FAIL(UMD_ERR_HW_HANG, "job=3");
    umdLogFlush(10000);
    umd_record_scope_begin();
    assert_int_equal(umdLogOpenFile("/nonexistent/dir/log", UMD_LOG_FORMAT_DISASTER, NULL), UMD_ERR_RES_FILE);
    umd_record_scope_end();
    UMD_ABSORB(st, "The test has it.");
    umd_record_scope_end();
    const char *text = logged(path);
    assert_int_equal(count_of(text, "UMD_ERR_HW_HANG (-"), 1);
    assert_null(strstr(text, "not at its end"));
    umd_sys_set(NULL);
    umdLogCloseFile(UMD_LOG_FORMAT_DISASTER);
}

static void one_file_follows_another(void **state)
{
    char first[160], second[160], old[200];

    (void)state;
    path_of(first, sizeof(first), "first");
    path_of(second, sizeof(second), "second");
    snprintf(old, sizeof(old), "%s.1", second);
    assert_int_equal(umdLogOpenFile(first, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    UMD_LOG(UMD_LOG_INFO, "line x=%d", 1);
    assert_int_equal(umdLogOpenFile(second, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    UMD_LOG(UMD_LOG_INFO, "line x=%d", 2);
    assert_int_equal(umdLogOpenFile(second, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS); /* its own, once more */
    UMD_LOG(UMD_LOG_INFO, "line x=%d", 3);
    assert_non_null(strstr(logged(second), "line x=3"));
    assert_int_equal(count_of(slurp(second), "line x="), 1);
    assert_non_null(strstr(slurp(old), "line x=2"));
    assert_non_null(strstr(slurp(first), "line x=1"));
    assert_int_equal(count_of(slurp(first), "line x="), 1);
    int fd = open(first, O_RDONLY | O_CLOEXEC); /* given back */
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    close(fd);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

static void levels_of_an_earlier_call_are_not_kept(void **state)
{
    (void)state;
    assert_int_equal(umdLogOpenFile(scratch("levels"), UMD_LOG_FORMAT_TEXT, "error"), UMD_SUCCESS);
    UMD_LOG(UMD_LOG_INFO, "line x=%d", 1);
    assert_int_equal(umdLogOpenFile(scratch("levels"), UMD_LOG_FORMAT_TEXT, NULL), UMD_SUCCESS);
    UMD_LOG(UMD_LOG_INFO, "line x=%d", 2);
    const char *text = logged(scratch("levels"));
    assert_int_equal(count_of(text, "line x="), 1);
    assert_non_null(strstr(text, "line x=2"));
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

/* ---- What cannot be moved ---- */

static _Atomic(bool) no_rename;
static _Atomic(uint64_t) later_ns;

static int refused_rename(const char *from, const char *to)
{
    if (!atomic_load(&no_rename))
        return umd_sys_default()->rename(from, to);
    errno = EACCES;
    return -1;
}

static uint64_t clock_moved_on(void) { return umd_sys_default()->mono_ns() + atomic_load(&later_ns); }

static void what_cannot_be_moved_is_not_overwritten(void **state)
{
    static struct umd_sys table;
    char path[160], old[200];

    (void)state;
    table = *umd_sys_default();
    table.rename = refused_rename;
    table.mono_ns = clock_moved_on;
    umd_sys_set(&table);
    path_of(path, sizeof(path), "fixed");
    snprintf(old, sizeof(old), "%s.1", path);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("of an earlier run\n", f);
    fclose(f);
    atomic_store(&no_rename, true);
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "info"), UMD_ERR_RES_FILE);
    assert_non_null(strstr(last_error().figures, "errno=13"));
    assert_string_equal(slurp(path), "of an earlier run\n");
    umdLogSetRotation(1000, 0); /* none are to be kept: then it may go */
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    umdLogSetRotation(1000, 3);
    for (int i = 0; i < 40; i++) {
        UMD_LOG(UMD_LOG_INFO, "line i=%03d", i);
        umdLogFlush(10000);
    }
    assert_null(strstr(slurp(path), "of an earlier run"));
    unsigned there = count_of(slurp(path), "line i=");
    assert_in_range(there, 1, 39);
    assert_non_null(strstr(slurp(path), "line i=000"));
    atomic_store(&no_rename, false);
    atomic_store(&later_ns, 5000000000ull); /* tried again each second */
    umdLogSetRotation(128u << 20, 3);
    UMD_LOG(UMD_LOG_INFO, "line i=%03d", 40);
    assert_int_equal(count_of(logged(path), "line i="), 41); /* nothing lost */
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    umd_sys_set(NULL);
    umdLogSetRotation(128u << 20, 5);
}

/* ---- The lock ---- */

static char locked_path[200];
static unsigned opens, unlocked;

/* From the move on: the file that was moved is locked until the next one is. */
static int watched_open(const char *path, int flags, unsigned mode)
{
    int fd = ++opens == 2 ? open(locked_path, O_RDONLY | O_CLOEXEC) : -1;

    if (fd >= 0) {
        unlocked += flock(fd, LOCK_EX | LOCK_NB) == 0;
        close(fd);
        opens += 100;
    }
    return umd_sys_default()->open(path, flags, mode);
}

static void the_lock_is_held_until_the_next_file_is_there(void **state)
{
    static struct umd_sys table;
    char path[160];

    (void)state;
    table = *umd_sys_default();
    table.open = watched_open;
    path_of(path, sizeof(path), "locked");
    snprintf(locked_path, sizeof(locked_path), "%s.1", path);
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    UMD_LOG(UMD_LOG_INFO, "line x=%d", 1);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    umd_sys_set(&table);
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    umd_sys_set(NULL);
    assert_true(opens > 100); /* it was looked at */
    assert_int_equal(unlocked, 0);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_cannot_be_had_leaves_the_one_before), cmocka_unit_test(stories_survive_a_file_that_cannot_be_had),
        cmocka_unit_test(a_lack_of_descriptors_is_told_as_such),
        cmocka_unit_test(one_file_follows_another), cmocka_unit_test(levels_of_an_earlier_call_are_not_kept),
        cmocka_unit_test(what_cannot_be_moved_is_not_overwritten), cmocka_unit_test(the_lock_is_held_until_the_next_file_is_there),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    scratch_remove();
    return failed;
}
