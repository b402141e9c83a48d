/* SPDX-License-Identifier: MIT */
/* test_trouble.c - how umd-train tells a failure: by which code, as whose fault, with which advice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record.h"
#include "trouble.h"

UMD_LOG_MODULE("umd.test");

static umdRecordId raised(struct trouble *t, umdStatus code, umdRecordId cause, const char *figures)
{
    struct umd_api_call call = { 0 };

    umd_api_enter(&call, "umdAnyCall", "stream=%d", 1);
    umdStatus st = UMD_FAIL_FROM(code, cause, "%s", figures);
    umdRecordId id = umd_record_current();
    st = umd_api_exit(&call, st);
    if (t)
        trouble_note(t, st, "testing");
    return id;
}

/* The screen that a failure gives. To be freed. */
static char *screen_of(struct trouble *t)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    assert_non_null(f);
    trouble_settle(t, false);
    trouble_print(t, f, "stopped", true, 0);
    assert_int_equal(fclose(f), 0);
    return text;
}

static void a_ban_is_told_by_what_it_was_for(void **state)
{
    struct trouble t;

    (void)state;
    trouble_init(&t);
    umdRecordId hang = raised(NULL, UMD_ERR_HW_HANG, (umdRecordId){ 0 }, "job=7 kernel=k source=k.c:3");
    umdRecordId failed = raised(NULL, UMD_ERR_EXEC_FAILED, hang, "job=7");
    raised(&t, UMD_ERR_CTX_BANNED, failed, "context=5");
    assert_true(trouble_is_device(&t));
    char *text = screen_of(&t);
    assert_int_equal(trouble_root(&t), UMD_ERR_HW_HANG);
    assert_int_equal(strncmp(text, "umd-train: stopped: UMD_ERR_HW_HANG\n", 36), 0);
    assert_non_null(strstr(text, "kernel k at k.c:3"));
    assert_non_null(strstr(text, "met by the call as UMD_ERR_CTX_BANNED in "));
    assert_non_null(strstr(text, "context=5"));
    free(text);
    trouble_fini(&t);
}

static void a_cancelled_job_is_told_by_what_cancelled_it(void **state)
{
    struct trouble t;

    (void)state;
    trouble_init(&t);
    umdRecordId hang = raised(NULL, UMD_ERR_HW_HANG, (umdRecordId){ 0 }, "job=7 kernel=k source=k.c:3");
    raised(&t, UMD_ERR_EXEC_CANCELLED, hang, "job=8");
    char *text = screen_of(&t);
    assert_int_equal(trouble_root(&t), UMD_ERR_HW_HANG);
    assert_non_null(strstr(text, "met by the call as UMD_ERR_EXEC_CANCELLED in "));
    assert_null(strstr(text, "A retry makes sense"));
    free(text);
    trouble_fini(&t);
}

static void a_ban_without_a_known_cause_is_told_by_the_callback(void **state)
{
    struct trouble t;
    umdErrorDetail d = { .size_B = sizeof(d), .code = UMD_ERR_HW_PAGE_FAULT, .origin_code = UMD_ERR_HW_PAGE_FAULT, .id = { .seq = 999999 } };

    (void)state;
    trouble_init(&t);
    raised(&t, UMD_ERR_CTX_BANNED, (umdRecordId){ 0 }, "context=5");
    char *text = screen_of(&t);
    assert_int_equal(trouble_root(&t), UMD_ERR_CTX_BANNED); /* nothing else is known */
    free(text);
    d.advice = umdStatusAdvice(d.code);
    trouble_callback((umdContext){ 1 }, &d, &t);
    text = screen_of(&t);
    assert_int_equal(trouble_root(&t), UMD_ERR_HW_PAGE_FAULT);
    free(text);
    trouble_fini(&t);
}

static void only_failures_at_work_are_the_devices(void **state)
{
    static const struct { umdStatus code; bool device; } rows[] = {
        { UMD_ERR_HW_HANG, true }, { UMD_ERR_DEV_LOST_OFF_BUS, true }, { UMD_ERR_EXEC_CANCELLED, true }, { UMD_ERR_CTX_BANNED, true },
        { UMD_ERR_MEM_ALLOC_FAILED, false }, { UMD_ERR_INIT_FW_VERSION, false }, { UMD_ERR_PARAM_RANGE, false }, { UMD_SUCCESS, false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct trouble t = { .code = rows[i].code };
        assert_int_equal(trouble_is_device(&t), rows[i].device);
    }
}

/* The advice must not send to a line or kernel that this failure does not have. */
static void advice_fits_the_case(void **state)
{
    static const struct { umdStatus code; const char *figures, *there, *not_there; } rows[] = {
        { UMD_ERR_HW_HANG, "kind=launch kernel=k source=k.c:3", "Look at kernel and line in the record", "not known" },
        { UMD_ERR_HW_HANG, "kind=launch kernel=k pc=0x10", "Rebuild the context. The line is not known", "kernel and line" },
        { UMD_ERR_HW_HANG, "kind=copy wg=0 lane=0", "Rebuild the context. The job was a copy or fill", "lane 0" },
        { UMD_ERR_HW_HANG, "kind=fill", "The job was a copy or fill", "kernel" },
        { UMD_ERR_MEM_MAP_FAILED, "size_B=1", "or raise vm.max_map_count.", "figures above" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct trouble t;
        trouble_init(&t);
        raised(&t, rows[i].code, (umdRecordId){ 0 }, rows[i].figures);
        char *text = screen_of(&t), *next = strstr(text, "\n  next ");
        assert_non_null(next);
        assert_non_null(strstr(next, rows[i].there));
        assert_null(strstr(next, rows[i].not_there));
        char *where = strstr(text, "\n  where ");
        assert_non_null(where);
        if (strstr(rows[i].figures, "copy"))
            assert_null(strstr(where, ", lane 0"));
        free(text);
        trouble_fini(&t);
    }
}

/* What is said to have been done must be what is done for codes of that range, and the headline must name who it was. */
static void deed_and_headline_fit_the_code(void **state)
{
    static const struct { umdStatus code; uint32_t step; const char *head, *done; } rows[] = {
        { UMD_ERR_SUBMIT_RING_FULL, 3, "stopped at step 3 of 9: the kernel driver did not accept a job", "did not accept the job; training stopped" },
        { UMD_ERR_MEM_MAP_FAILED, 3, "stopped at step 3 of 9: out of a resource", "training stopped; all memory" },
        { UMD_ERR_MEM_CORRUPT, 3, "stopped at step 3 of 9: a call failed", "training stopped; all memory" },
        { UMD_ERR_HW_TRAP, 3, "stopped by a device error at step 3 of 9", "banned its queue" },
        { UMD_ERR_HW_TRAP, 0, "stopped by a device error before the first step", "banned its queue" },
        { UMD_ERR_DEV_LOST_OFF_BUS, 3, "stopped by a device error at step 3 of 9", "the device was given up" },
        { UMD_ERR_PARAM_RANGE, 3, "stopped at step 3 of 9: a call failed", "the call was refused and changed nothing" },
        { UMD_ERR_WAIT_STALLED, 3, "stopped by a device error at step 3 of 9", "the wait was given up" },
        { UMD_ERR_INTERNAL, 3, "stopped at step 3 of 9: a defect of the driver", "training stopped" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct trouble t;
        char head[128];
        trouble_init(&t);
        raised(&t, rows[i].code, (umdRecordId){ 0 }, "a=1");
        trouble_headline(&t, rows[i].step, 9, head, sizeof(head));
        assert_string_equal(head, rows[i].head);
        char *text = screen_of(&t), *done = strstr(text, "\n  done ");
        assert_non_null(done);
        assert_non_null(strstr(done, rows[i].done));
        free(text);
        trouble_fini(&t);
    }
}

/* A second try makes sense only where the first changed nothing and the advice says so. */
static void only_what_changed_nothing_is_tried_again(void **state)
{
    static const struct { umdStatus code; bool again; } rows[] = {
        { UMD_ERR_MEM_MAP_FAILED, true }, { UMD_ERR_MEM_ALLOC_FAILED, true }, { UMD_ERR_RES_THREADS, true }, { UMD_ERR_INIT_FW_BOOT, true },
        { UMD_ERR_SUBMIT_RING_FULL, true }, { UMD_ERR_SUBMIT_FAILED, true }, { UMD_ERR_EXEC_CANCELLED, false }, { UMD_ERR_WAIT_STALLED, false },
        { UMD_ERR_CTX_BANNED, false }, { UMD_ERR_HW_HANG, false }, { UMD_ERR_PARAM_RANGE, false }, { UMD_ERR_INIT_FW_VERSION, false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct trouble t;
        trouble_init(&t);
        t.no_pause = true;
        raised(NULL, rows[i].code, (umdRecordId){ 0 }, "a=1");
        assert_int_equal(trouble_retry(&t, rows[i].code), rows[i].again);
        assert_int_equal(t.retries, rows[i].again);
        trouble_fini(&t);
    }
}

static void a_kernel_without_a_line_is_told_without_one(void **state)
{
    static const struct { const char *figures, *where; } rows[] = {
        { "kernel=k pc=0x0", "  where  kernel k, before its first instruction\n" },
        { "kernel=k pc=0x200", "  where  kernel k\n" },
        { "kernel=k pc=0x200 progress=0 instr_since_progress=4", "  where  kernel k\n" },
        { "kernel=k pc=0x200 progress=0 instr_since_progress=0", "  where  kernel k, before its first instruction\n" },
        { "kernel=k pc=0x0 source=k.c:3", "  where  kernel k at k.c:3\n" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct trouble t;
        trouble_init(&t);
        raised(&t, UMD_ERR_HW_HANG, (umdRecordId){ 0 }, rows[i].figures);
        char *text = screen_of(&t);
        assert_non_null(strstr(text, rows[i].where));
        free(text);
        trouble_fini(&t);
    }
}

static void a_lost_device_is_told_beside_the_jobs_failure(void **state)
{
    struct trouble t;

    (void)state;
    trouble_init(&t);
    t.lost = UMD_ERR_DEV_LOST_RESET_FAILED;
    raised(&t, UMD_ERR_HW_HANG, (umdRecordId){ 0 }, "kernel=k");
    char *text = screen_of(&t);
    assert_non_null(strstr(text, "the device is lost, too: UMD_ERR_DEV_LOST_RESET_FAILED; "));
    free(text);
    trouble_fini(&t);
}

/* A warning by callback is told though its code is an error in general; an error that stopped nothing too. */
/* A reset that began is no recovery once the device is lost, and a context cannot be built on it. */
static void a_lost_device_is_not_recovered(void **state)
{
    struct trouble t;
    umdErrorDetail d = { .size_B = sizeof(d), .code = UMD_ERR_HW_HANG, .origin_code = UMD_ERR_HW_HANG,
                         .figures = "ring=0 done=engine-reset-begun,work-requeued" };
    char *text = NULL;
    size_t size = 0;

    (void)state;
    trouble_init(&t);
    d.advice = umdStatusAdvice(d.code);
    trouble_callback((umdContext){ 1 }, &d, &t);
    raised(&t, UMD_ERR_HW_HANG, (umdRecordId){ 0 }, "job=7 kernel=k source=k.c:3 done=queue-banned,context-failed,engine-reset-begun");
    t.lost = UMD_ERR_DEV_LOST_RESET_FAILED;
    char *screen = screen_of(&t);
    assert_non_null(strstr(screen, "the driver: queue-banned,context-failed,engine-reset-begun\n"));
    assert_non_null(strstr(screen, "  next   Look at kernel and line in the record. The device is lost: "));
    assert_null(strstr(screen, "ebuild the context"));
    assert_null(strstr(screen, "0 hop(s)"));
    free(screen);
    FILE *f = open_memstream(&text, &size);
    assert_non_null(f);
    trouble_print_notices(&t, f);
    assert_int_equal(fclose(f), 0);
    assert_non_null(strstr(text, "went on after 1 x UMD_ERR_HW_HANG: "));
    assert_non_null(strstr(text, "in the end the device was lost."));
    assert_null(strstr(text, "recovered"));
    free(text);
    trouble_fini(&t);
}

static void what_the_run_went_on_after_is_told(void **state)
{
    struct trouble t;
    umdErrorDetail d = { .size_B = sizeof(d), .code = UMD_ERR_HW_HANG, .origin_code = UMD_ERR_HW_HANG, .figures = "ring=0 done=recovered" };
    char *text = NULL;
    size_t size = 0;

    (void)state;
    trouble_init(&t);
    d.advice = umdStatusAdvice(d.code);
    trouble_callback((umdContext){ 1 }, &d, &t);
    trouble_callback((umdContext){ 1 }, &d, &t);
    assert_false(t.have_async);
    d = (umdErrorDetail){ .size_B = sizeof(d), .code = UMD_ERR_HW_TRAP, .origin_code = UMD_ERR_HW_TRAP, .advice = umdStatusAdvice(UMD_ERR_HW_TRAP) };
    trouble_callback((umdContext){ 1 }, &d, &t);
    trouble_settle(&t, true);
    FILE *f = open_memstream(&text, &size);
    assert_non_null(f);
    trouble_print_notices(&t, f);
    assert_int_equal(fclose(f), 0);
    assert_non_null(strstr(text, "went on after 2 x UMD_ERR_HW_HANG: "));
    assert_non_null(strstr(text, "went on after 1 x UMD_ERR_HW_TRAP: "));
    free(text);
    trouble_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_device_is_not_recovered),
        cmocka_unit_test(a_ban_is_told_by_what_it_was_for),
        cmocka_unit_test(a_cancelled_job_is_told_by_what_cancelled_it),
        cmocka_unit_test(a_ban_without_a_known_cause_is_told_by_the_callback),
        cmocka_unit_test(only_failures_at_work_are_the_devices),
        cmocka_unit_test(advice_fits_the_case),
        cmocka_unit_test(deed_and_headline_fit_the_code),
        cmocka_unit_test(only_what_changed_nothing_is_tried_again),
        cmocka_unit_test(a_kernel_without_a_line_is_told_without_one),
        cmocka_unit_test(a_lost_device_is_told_beside_the_jobs_failure),
        cmocka_unit_test(what_the_run_went_on_after_is_told),
    };
    if (umdFailed(umdLogSetConsole("off")))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
