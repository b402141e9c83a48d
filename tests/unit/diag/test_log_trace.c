/* SPDX-License-Identifier: MIT */
/* test_log_trace.c - what lines carry that is not in each entry of a ring: trace and context of the thread, and time after a pause. */
#include "diag_fixture.h"

#include <pthread.h>

#include "log_binary.h"

UMD_LOG_MODULE("umd.test.trace");

#define T1 "11111111111111111111111111111111"
#define T2 "22222222222222222222222222222222"
#define S1 "1111111111111111"
#define S2 "2222222222222222"
#define FIRST "00-" T1 "-" S1 "-01"
#define SECOND "00-" T2 "-" S2 "-00"

enum { ROUNDS = 500 };
static pthread_barrier_t both;

/* Both threads log at the same time, each for a trace of its own; in between the second works for the first's. */
static void *works(void *arg)
{
    bool second = arg != NULL;
    char before[56];

    if (umdLogSetTrace(second ? SECOND : FIRST) != UMD_SUCCESS)
        return "set";
    pthread_barrier_wait(&both);
    for (int i = 0; i < ROUNDS; i++) {
        UMD_LOG(UMD_LOG_INFO, "by=%d i=%d", second ? 2 : 1, i);
        if (second && i % 10 == 0) {
            umdLogGetTrace(before);
            if (strcmp(before, SECOND) != 0 || umdLogSetTrace(FIRST) != UMD_SUCCESS)
                return "change";
            UMD_LOG(UMD_LOG_INFO, "lent=%s i=%d", "yes", i);
            if (umdLogSetTrace(before) != UMD_SUCCESS)
                return "change back";
        }
    }
    return NULL;
}

static unsigned lines_with(const char *text, const char *a, const char *b)
{
    unsigned n = 0;

    for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
        n += memmem(line, (size_t)(end - line), a, strlen(a)) && memmem(line, (size_t)(end - line), b, strlen(b));
    return n;
}

static void expect_binary(const char *path)
{
    struct umd_log_binary *b;
    struct umd_log_binary_record r;
    unsigned first = 0, second = 0, lent = 0, none = 0;
    char json[2048];

    assert_int_equal(umd_log_binary_open(path, &b), UMD_SUCCESS);
    while (umd_log_binary_next(b, &r) == UMD_SUCCESS) {
        first += strstr(r.message, "by=1 ") && !strcmp(r.trace_id, T1) && !strcmp(r.span_id, S1) && !strcmp(r.trace_flags, "01");
        second += strstr(r.message, "by=2 ") && !strcmp(r.trace_id, T2) && !strcmp(r.span_id, S2) && !strcmp(r.trace_flags, "00");
        lent += strstr(r.message, "lent=yes ") && !strcmp(r.trace_id, T1) && !strcmp(r.span_id, S1);
        none += strstr(r.message, "by=3 ") && !r.trace_id[0] && !r.span_id[0];
        if (!strcmp(r.message, "by=1 i=7")) {
            umd_log_binary_format(&r, UMD_LOG_FORMAT_JSON, json, sizeof(json));
            assert_non_null(strstr(json, "\"TraceId\":\"" T1 "\",\"SpanId\":\"" S1 "\",\"TraceFlags\":1"));
        }
    }
    umd_log_binary_close(b);
    assert_int_equal(first, ROUNDS);
    assert_int_equal(second, ROUNDS);
    assert_int_equal(lent, ROUNDS / 10);
    assert_int_equal(none, 1);
}

static void threads_work_for_different_traces(void **state)
{
    pthread_t threads[2];
    void *wrong;
    char json[160], binary[160], text[160];

    (void)state;
    path_of(text, sizeof(text), "trace.log");
    path_of(json, sizeof(json), "trace.json");
    path_of(binary, sizeof(binary), "trace.bin");
    assert_int_equal(umdLogOpenFile(text, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    assert_int_equal(umdLogOpenFile(json, UMD_LOG_FORMAT_JSON, "info"), UMD_SUCCESS);
    assert_int_equal(umdLogOpenFile(binary, UMD_LOG_FORMAT_BINARY, "info"), UMD_SUCCESS);
    pthread_barrier_init(&both, NULL, 2);
    for (uintptr_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, works, (void *)i), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        if (wrong)
            fail_msg("%s", (const char *)wrong);
    }
    UMD_LOG(UMD_LOG_INFO, "by=%d i=0", 3); /* a thread that was told nothing, in a process without TRACEPARENT */
    const char *all = logged(text);
    assert_int_equal(lines_with(all, " trace=" T1 " span=" S1 ": ", "by=1 "), ROUNDS);
    assert_int_equal(lines_with(all, " trace=" T2 " span=" S2 ": ", "by=2 "), ROUNDS);
    assert_int_equal(lines_with(all, " trace=" T1 " span=" S1 ": ", "lent=yes "), ROUNDS / 10);
    assert_int_equal(lines_with(all, " trace=", "by=3 "), 0);
    all = slurp(json);
    assert_int_equal(lines_with(all, "\"TraceId\":\"" T1 "\",\"SpanId\":\"" S1 "\",\"TraceFlags\":1", "by=1 "), ROUNDS);
    assert_int_equal(lines_with(all, "\"TraceId\":\"" T2 "\",\"SpanId\":\"" S2 "\",\"TraceFlags\":0", "by=2 "), ROUNDS);
    umdLogCloseFile(UMD_LOG_FORMAT_BINARY);
    expect_binary(binary);
    umdLogCloseFile(UMD_LOG_FORMAT_JSON);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

static void a_bad_trace_changes_nothing(void **state)
{
    static const char *const bad[] = { "x", T1, "00-" T1 "-" S1, "ff-" T1 "-" S1 "-01", FIRST "-more" };
    char now[56];

    (void)state;
    umdLogGetTrace(now);
    assert_string_equal(now, "");
    assert_int_equal(umdLogSetTrace(FIRST), UMD_SUCCESS);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(umdLogSetTrace(bad[i]), UMD_ERR_CONFIG_VALUE);
        assert_non_null(strstr(last_error().figures, "key=traceparent value="));
        assert_string_equal(last_error().api, "umdLogSetTrace");
        umdLogGetTrace(now);
        assert_string_equal(now, FIRST);
    }
    assert_int_equal(umdLogSetTrace(""), UMD_SUCCESS);
    umdLogGetTrace(now);
    assert_string_equal(now, "");
    assert_int_equal(umdLogSetTrace(NULL), UMD_SUCCESS);
}

/* Records, lines of others, and lines whose context changes, in one stream of one thread. */
static void all_kinds_of_lines_carry_it(void **state)
{
    const char *path = scratch("kinds");

    (void)state;
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    assert_int_equal(umdLogSetTrace(FIRST), UMD_SUCCESS);
    umd_record_set_context(7);
    UMD_LOG(UMD_LOG_INFO, "number x=%d", 1);
    UMD_LOG(UMD_LOG_INFO, "word x=%s", "one");
    umd_record_set_context(8);
    UMD_LOG(UMD_LOG_INFO, "number x=%d", 2);
    umdStatus st = UMD_FAIL(UMD_ERR_RES_FILE, "path=x errno=%d", 5);
    UMD_ABSORB(st, "A test made it.");
    umdLogMessage(UMD_LOG_INFO, "ccl", 99, NULL, "of the thread");
    umdLogMessage(UMD_LOG_INFO, "ccl", 99, T2, "its own");
    UMD_LOG(UMD_LOG_INFO, "number x=%d", 3);
    umd_record_set_context(0);
    assert_int_equal(umdLogSetTrace(NULL), UMD_SUCCESS);
    UMD_LOG(UMD_LOG_INFO, "number x=%d", 4);
    const char *all = logged(path);
    assert_int_equal(lines_with(all, " ctx=7 depth=0 trace=" T1 " span=" S1 ": ", "number x=1"), 1);
    assert_int_equal(lines_with(all, " ctx=7 depth=0 trace=" T1 " span=" S1 ": ", "word x=one"), 1);
    assert_int_equal(lines_with(all, " ctx=8 depth=0 trace=" T1 " span=" S1 ": ", "number x=2"), 1);
    assert_int_equal(lines_with(all, " trace=" T1 " span=" S1 ": ", ": UMD_ERR_RES_FILE: "), 1);
    assert_int_equal(lines_with(all, " trace=" T1 " span=" S1 ": ", ": ended UMD_ERR_RES_FILE: end=absorbed"), 1);
    assert_int_equal(lines_with(all, " ccl ctx=99 depth=0 trace=" T1 " span=" S1 ": ", "of the thread"), 1);
    assert_int_equal(lines_with(all, " ccl ctx=99 depth=0 trace=" T2 ": ", "its own"), 1);
    assert_int_equal(lines_with(all, " ctx=8 depth=0 trace=" T1 " span=" S1 ": ", "number x=3"), 1);
    assert_int_equal(lines_with(all, " umd.test.trace depth=0: ", "number x=4"), 1);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

/* The ring has no room for the news when they come: they are not lost with the lines. */
static void a_full_ring_does_not_lose_the_trace(void **state)
{
    const char *path = scratch("full");
    umdLogStats before, after;

    (void)state;
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    writer_stop();
    umdLogGetStats(&before);
    do {
        UMD_LOG(UMD_LOG_INFO, "many of=%d", 1);
        umdLogGetStats(&after);
    } while (after.dropped == before.dropped);
    assert_int_equal(umdLogSetTrace(FIRST), UMD_SUCCESS);
    umd_record_set_context(17);
    UMD_LOG(UMD_LOG_INFO, "dropped x=%d", 1);
    UMD_LOG(UMD_LOG_ERROR, "folded x=%d", 2);
    writer_go();
    umdLogFlush(20000);
    UMD_LOG(UMD_LOG_INFO, "later x=%d", 3);
    const char *all = logged(path);
    assert_int_equal(count_of(all, "dropped x=1"), 0);
    assert_int_equal(lines_with(all, " ctx=17 depth=0 trace=" T1 " span=" S1 ": ", "folded x=2"), 1);
    assert_int_equal(lines_with(all, " ctx=17 depth=0 trace=" T1 " span=" S1 ": ", "later x=3"), 1);
    assert_int_equal(lines_with(all, " trace=", "many of=1"), 0);
    umd_record_set_context(0);
    assert_int_equal(umdLogSetTrace(NULL), UMD_SUCCESS);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

static double mono_of(const char *text, const char *message)
{
    const char *at = strstr(text, message);

    assert_non_null(at);
    while (at > text && at[-1] != '\n')
        at--;
    return strtod(strchr(at, ' '), NULL);
}

/* Longer than the time in an entry reaches. */
static void time_is_right_after_a_pause(void **state)
{
    const char *path = scratch("pause");
    const uint64_t begin_ns = umd_sys()->mono_ns();

    (void)state;
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    UMD_LOG(UMD_LOG_INFO, "before x=%d", 1);
    sleep(5);
    UMD_LOG(UMD_LOG_INFO, "behind x=%d", 2);
    UMD_LOG(UMD_LOG_INFO, "last x=%d", 3);
    const uint64_t end_ns = umd_sys()->mono_ns();
    const char *all = logged(path);
    double before = mono_of(all, "before x=1"), behind = mono_of(all, "behind x=2"), last = mono_of(all, "last x=3");
    assert_true(before >= (double)begin_ns / 1e9 - 0.01);
    assert_true(behind - before >= 4.99);
    assert_true(last >= behind);
    assert_true(last <= (double)end_ns / 1e9 + 0.01);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

static void a_forked_child_goes_on_with_it(void **state)
{
    char path[160], mine[200];

    (void)state;
    assert_int_equal(umdLogOpenFile(scratch("fork"), UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    path_of(path, sizeof(path), "fork");
    assert_int_equal(umdLogSetTrace(FIRST), UMD_SUCCESS);
    umd_record_set_context(5);
    UMD_LOG(UMD_LOG_INFO, "parent x=%d", 0);
    umdLogFlush(10000);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        UMD_LOG(UMD_LOG_INFO, "child x=%d", 1);
        umdLogFlush(10000);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    snprintf(mine, sizeof(mine), "%s.%d", path, (int)pid);
    assert_int_equal(lines_with(slurp(mine), " ctx=5 depth=0 trace=" T1 " span=" S1 ": ", "child x=1"), 1);
    unlink(mine);
    umd_record_set_context(0);
    assert_int_equal(umdLogSetTrace(NULL), UMD_SUCCESS);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

static void a_stepped_run_has_it_too(void **state)
{
    const char *path = scratch("stepped");

    (void)state;
    umd_sys_step_begin(1);
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    assert_int_equal(umdLogSetTrace(SECOND), UMD_SUCCESS);
    UMD_LOG(UMD_LOG_INFO, "stepped x=%d", 1);
    assert_int_equal(umdLogSetTrace(NULL), UMD_SUCCESS);
    const char *all = logged(path);
    assert_int_equal(lines_with(all, " trace=" T2 " span=" S2 ": ", "stepped x=1"), 1);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    umd_sys_step_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_work_for_different_traces), cmocka_unit_test(a_bad_trace_changes_nothing),
        cmocka_unit_test(all_kinds_of_lines_carry_it), cmocka_unit_test(a_full_ring_does_not_lose_the_trace),
        cmocka_unit_test(time_is_right_after_a_pause), cmocka_unit_test(a_forked_child_goes_on_with_it), cmocka_unit_test(a_stepped_run_has_it_too),
    };

    unsetenv("TRACEPARENT");
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    scratch_remove();
    return failed;
}
