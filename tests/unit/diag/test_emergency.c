/* SPDX-License-Identifier: MIT */
/* test_emergency.c - the ring of critical records survives kill -9, goes round, and damage is noticed. */
#include "diag_fixture.h"

#include <fcntl.h>
#include <libgen.h>
#include <signal.h>

#include "emergency.h"

UMD_LOG_MODULE("umd.test");

static struct umd_emergency_slot slots[UMD_EMERGENCY_SLOTS];

static int dies_hard(void)
{
    struct umd_api_call call = { 0 };

    umd_api_enter(&call, "umdA", "x=%d", 1);
    umd_record_set_context(12);
    (void)UMD_FAIL(UMD_ERR_DEV_LOST_OFF_BUS, "register=0x%x value=0xffffffff", 0x40);
    UMD_LIFECYCLE("device lost id=%d", 3);
    UMD_LOG(UMD_LOG_INFO, "not critical x=%d", 1);
    return kill(getpid(), SIGKILL);
}

static int run_dies_hard(const char *path)
{
    char env[256], text[256];

    snprintf(env, sizeof(env), "UMD_LOG_CONSOLE=off UMD_EMERGENCY_FILE=%s", path);
    return in_program("dies_hard", env, text, sizeof(text));
}

static void survives_kill_9(void **state)
{
    uint32_t count, damaged;

    (void)state;
    int status = run_dies_hard(scratch("ring"));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(umd_emergency_read(scratch("ring"), slots, UMD_EMERGENCY_SLOTS, &count, &damaged), UMD_SUCCESS);
    assert_int_equal(damaged, 0);
    assert_int_equal(count, 2);
    assert_int_equal(slots[0].code, UMD_ERR_DEV_LOST_OFF_BUS);
    assert_int_equal(slots[0].context_id, 12);
    assert_non_null(strstr(slots[0].message, "register=0x40"));
    assert_string_equal(slots[0].func, "dies_hard");
    assert_string_equal(slots[1].message, "device lost id=3");
    assert_int_equal(slots[1].code, 0);
}

static char *own_file(void) { return getenv("UMD_EMERGENCY_FILE"); }

static void goes_round_and_keeps_the_newest(void **state)
{
    uint32_t count, damaged;

    (void)state;
    for (int i = 0; i < 300; i++)
        umd_emergency_put(&(struct umd_emergency_note){ .module = "m", .func = "f", .file = "x.c", .line = (uint32_t)i, .message = "x" });
    assert_int_equal(umd_emergency_read(own_file(), slots, UMD_EMERGENCY_SLOTS, &count, &damaged), UMD_SUCCESS);
    assert_int_equal(count, UMD_EMERGENCY_SLOTS);
    assert_int_equal(slots[UMD_EMERGENCY_SLOTS - 1].line, 299);
    assert_int_equal(slots[0].line, 300 - UMD_EMERGENCY_SLOTS);
    assert_int_equal(umd_emergency_snapshot(slots, UMD_EMERGENCY_SLOTS), UMD_EMERGENCY_SLOTS);
    assert_int_equal(slots[UMD_EMERGENCY_SLOTS - 1].line, 299);
}

static void damage_is_counted(void **state)
{
    uint32_t count, damaged;
    char byte = 0x55;

    (void)state;
    int fd = open(own_file(), O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &byte, 1, 4096 + 10 * (off_t)sizeof(slots[0]) + 300), 1);
    close(fd);
    assert_int_equal(umd_emergency_read(own_file(), slots, UMD_EMERGENCY_SLOTS, &count, &damaged), UMD_SUCCESS);
    assert_int_equal(count, UMD_EMERGENCY_SLOTS - 1);
    assert_int_equal(damaged, 1);
}

#define IN_CALL(expr_) ({ struct umd_api_call call_ = { 0 }; umd_api_enter(&call_, "umdA", "x=%d", 1); umd_api_exit(&call_, (expr_)); })

static void bad_paths_are_one_clear_error(void **state)
{
    uint32_t count, damaged;

    (void)state;
    assert_int_equal(IN_CALL(umd_emergency_read(scratch("nothing"), slots, 1, &count, &damaged)), UMD_ERR_RES_FILE);
    assert_int_equal(IN_CALL(umd_emergency_read("/proc/self/exe", slots, 1, &count, &damaged)), UMD_ERR_RES_FILE);
    assert_non_null(strstr(last_error().figures, "no emergency ring"));
}

static void a_new_run_keeps_the_old_ring(void **state)
{
    uint32_t count, damaged;
    char old[160];

    (void)state;
    run_dies_hard(scratch("twice"));
    run_dies_hard(scratch("twice"));
    snprintf(old, sizeof(old), "%s.1", scratch("twice"));
    assert_int_equal(umd_emergency_read(old, slots, UMD_EMERGENCY_SLOTS, &count, &damaged), UMD_SUCCESS);
    assert_int_equal(count, 2);
}

static void *puts_in_thread(void *arg)
{
    for (int i = 0; i < 2000; i++)
        umd_emergency_put(&(struct umd_emergency_note){ .module = "m", .func = "f", .file = "x.c", .line = 1, .message = arg });
    return NULL;
}

static void threads_never_tear_a_record(void **state)
{
    pthread_t t[4];
    uint32_t count, damaged;

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&t[i], NULL, puts_in_thread, i % 2 ? "odd odd odd" : "even"), 0);
    for (int i = 0; i < 50; i++)
        (void)umd_emergency_snapshot(slots, UMD_EMERGENCY_SLOTS);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(umd_emergency_read(own_file(), slots, UMD_EMERGENCY_SLOTS, &count, &damaged), UMD_SUCCESS);
    assert_int_equal(damaged, 0);
    assert_true(count > UMD_EMERGENCY_SLOTS / 2);
    for (uint32_t i = 0; i < count; i++)
        assert_true(strcmp(slots[i].message, "even") == 0 || strcmp(slots[i].message, "odd odd odd") == 0 || slots[i].message[0]);
}

/* A fresh process whose ring is in a file from its start on. */
static int again(char **argv)
{
    setenv("UMD_EMERGENCY_FILE", scratch("own"), 1);
    return execv("/proc/self/exe", argv) ? 99 : 0;
}

int main(int argc, char **argv)
{
    static const struct run runs[] = { { "dies_hard", dies_hard } };
    int status;

    if (run_program(argc, argv, runs, 1, &status))
        return status;
    if (!own_file())
        return again(argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(survives_kill_9), cmocka_unit_test(a_new_run_keeps_the_old_ring), cmocka_unit_test(goes_round_and_keeps_the_newest),
        cmocka_unit_test(damage_is_counted), cmocka_unit_test(bad_paths_are_one_clear_error), cmocka_unit_test(threads_never_tear_a_record),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(own_file());
    rmdir(dirname(own_file()));
    scratch_remove();
    return failed;
}
