/* SPDX-License-Identifier: MIT */
/* test_scene.c - what is kept beside a record: calls, stack, errors before; first causes; counts by code; lines that are held back. */
#include <umd/umd_log.h>

#include "diag_fixture.h"

UMD_LOG_MODULE("umd.test.scene");

#define CALL(name_, st_) ({ struct umd_api_call call_ = { 0 }; umd_api_enter(&call_, (name_), "x=%d", 1); umd_api_exit(&call_, (st_)); })

static umdErrorScene scene_of(umdRecordId id)
{
    umdErrorScene s = { .size_B = sizeof(s) };

    assert_int_equal(umdGetErrorScene(id, &s), UMD_SUCCESS);
    return s;
}

static __attribute__((noinline)) umdStatus deep(int n)
{
    static int count; /* none is a repeat of another */
    umdStatus st = n ? deep(n - 1) : UMD_FAIL(UMD_ERR_MEM_FRAGMENTED, "size_B=%d n=%d", 1 << 20, count++);

    return UMD_HOP(st);
}

static umdRecordId fail_deep(int depth)
{
    struct umd_api_call call = { 0 };

    umd_api_enter(&call, "umdMemAlloc", "context=0x%x size_B=%d name=\"%s\"", 0xabc, 4096, "a b");
    (void)umd_api_exit(&call, deep(depth));
    return last_error().id;
}

static void scene_has_calls_and_arguments(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++)
        CALL("umdBefore", i % 2 ? UMD_SUCCESS : UMD_FAIL(UMD_ERR_PARAM_RANGE, "i=%d", i));
    umdErrorScene s = scene_of(fail_deep(0));
    assert_int_equal(s.tid, umd_sys()->tid());
    assert_int_equal(s.calls_tid, s.tid);
    assert_int_equal(s.call_depth, 1);
    assert_int_equal(s.call_count, UMD_SCENE_CALLS);
    assert_int_equal(s.call_at, 0);
    assert_string_equal(s.calls[0].name, "umdMemAlloc");
    assert_string_equal(s.calls[0].args, "context=0xabc size_B=4096 name=\"a b\"");
    assert_int_equal(s.calls[0].end_ns, 0); /* under way, when it failed */
    assert_string_equal(s.calls[1].name, "umdBefore");
    assert_int_equal(s.calls[1].code, UMD_SUCCESS);
    assert_int_equal(s.calls[2].code, UMD_ERR_PARAM_RANGE);
    assert_true(s.calls[1].end_ns >= s.calls[1].start_ns && s.calls[0].start_ns >= s.calls[1].start_ns);
    assert_int_equal(umdGetErrorScene((umdRecordId){ 0 }, &s), UMD_STATUS_NOT_READY);
    assert_int_equal(umdGetErrorScene(last_error().id, NULL), UMD_ERR_PARAM_NULL);
    s.size_B = 4;
    assert_int_equal(umdGetErrorScene(last_error().id, &s), UMD_ERR_PARAM_STRUCT_SIZE);
}

static void digest_is_of_the_path(void **state)
{
    umdErrorScene a[2], b;

    (void)state;
    for (volatile int i = 0; i < 2; i++) /* volatile: one call in the program, however loops are unrolled */
        a[i] = scene_of(fail_deep(1));
    b = scene_of(fail_deep(2));
    assert_true(a[0].frame_count >= 3 && b.frame_count <= UMD_SCENE_FRAMES);
    assert_true(a[0].digest != 0);
    assert_int_equal(a[0].digest, a[1].digest);
    assert_true(a[0].digest != b.digest);
    assert_int_equal(a[0].frames[0], b.frames[0]); /* the origin is the same place */
}

static void errors_before_are_of_the_context(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++) {
        umd_record_set_context(i % 3 ? 501 : 502);
        CALL("umdA", UMD_FAIL(i % 3 ? UMD_ERR_PARAM_RANGE : UMD_ERR_PARAM_NULL, "i=%d", i));
    }
    umd_record_set_context(502);
    CALL("umdA", UMD_FAIL(UMD_ERR_SUBMIT_RING_FULL, "i=%d", 1)); /* met every day: INFO */
    umdErrorScene s = scene_of((CALL("umdB", UMD_FAIL(UMD_ERR_MEM_SIZE, "i=%d", 99)), last_error().id));
    assert_int_equal(s.error_count, 4);
    for (uint32_t i = 0; i < s.error_count; i++)
        assert_int_equal(s.errors[i].code, UMD_ERR_PARAM_NULL);
    assert_true(s.errors[0].mono_ns >= s.errors[3].mono_ns);
    umd_record_set_context(501);
    s = scene_of((CALL("umdB", UMD_FAIL(UMD_ERR_MEM_SIZE, "i=%d", 99)), last_error().id));
    assert_int_equal(s.error_count, UMD_SCENE_ERRORS);
    umd_record_set_context(0);
}

/* As the device thread raises: without a call; who meets it first gives its own calls. */
static void *raise_elsewhere(void *arg)
{
    umdErrorDetail *out = arg;

    (void)UMD_FAIL(UMD_ERR_HW_HANG, "job=%d", 7);
    assert_true(umd_record_export(out));
    return NULL;
}

static void scene_of_another_thread_gets_the_calls_that_met_it(void **state)
{
    umdErrorDetail d;
    pthread_t t;

    (void)state;
    assert_int_equal(pthread_create(&t, NULL, raise_elsewhere, &d), 0);
    assert_int_equal(pthread_join(t, NULL), 0);
    umdErrorScene s = scene_of(d.id);
    assert_int_equal(s.call_count, 0);
    assert_int_equal(s.calls_tid, 0);
    assert_int_equal(s.call_at, UMD_SCENE_NO_CALL);
    struct umd_api_call call = { 0 };
    umd_api_enter(&call, "umdStreamSynchronize", "stream=%d", 5);
    (void)umd_api_exit(&call, umd_record_import(&d));
    char text[4096], where[160];
    const umdErrorDetail own = last_error();
    assert_true(umdErrorDetailFormat(&own, text, sizeof(text)) > 0);
    snprintf(where, sizeof(where), "call umdStreamSynchronize(stream=5) of thread %u, seen by thread %u in module", umd_sys()->tid(), d.tid);
    for (char *c = text; (c = strchr(c, '\n')) != NULL;) /* it may be broken into lines */
        memmove(c, c + strspn(c, "\n ") - 1, strlen(c + strspn(c, "\n ") - 1) + 1), *c = ' ';
    assert_non_null(strstr(text, where));
    s = scene_of(d.id);
    assert_int_equal(s.tid, d.tid);
    assert_int_equal(s.calls_tid, umd_sys()->tid());
    assert_string_equal(s.calls[s.call_at].args, "stream=5");
}

/* Also where it was pinned before anyone met it, and what was raised since has pushed out all but the pinned one. */
static void pinned_scene_gets_the_calls_that_met_it(void **state)
{
    umdErrorDetail d;
    pthread_t t;

    (void)state;
    assert_int_equal(pthread_create(&t, NULL, raise_elsewhere, &d), 0);
    assert_int_equal(pthread_join(t, NULL), 0);
    umd_record_pin(&d, true);
    struct umd_api_call call = { 0 };
    umd_api_enter(&call, "umdStreamSynchronize", "stream=%d", 6);
    (void)umd_api_exit(&call, umd_record_import(&d));
    for (int i = 0; i < 80; i++)
        CALL("umdA", UMD_FAIL(UMD_ERR_PARAM_RANGE, "i=%d", i));
    umdErrorScene s = scene_of(d.id);
    assert_string_equal(s.calls[s.call_at].args, "stream=6");
}

struct looking { umdRecordId id; _Atomic(bool) enough; };

static void *look_on(void *arg)
{
    struct looking *l = arg;

    while (!atomic_load(&l->enough))
        (void)scene_of(l->id);
    return NULL;
}

/* Who meets a failure waits for those that read its scene at this moment, however long they are kept from letting it go. */
static void readers_keep_no_calls_away(void **state)
{
    pthread_t t, readers[6];

    (void)state;
    for (int round = 0; round < 20; round++) {
        umdErrorDetail d;
        assert_int_equal(pthread_create(&t, NULL, raise_elsewhere, &d), 0);
        assert_int_equal(pthread_join(t, NULL), 0);
        struct looking l = { .id = d.id };
        for (size_t i = 0; i < 6; i++)
            assert_int_equal(pthread_create(&readers[i], NULL, look_on, &l), 0);
        sched_yield();
        umd_record_pin(&d, true);
        struct umd_api_call call = { 0 };
        umd_api_enter(&call, "umdStreamSynchronize", "stream=%d", round);
        (void)umd_api_exit(&call, umd_record_import(&d));
        atomic_store(&l.enough, true);
        for (size_t i = 0; i < 6; i++)
            assert_int_equal(pthread_join(readers[i], NULL), 0);
        for (int i = 0; i < 80; i++) /* all but the pinned one goes */
            CALL("umdA", UMD_FAIL(UMD_ERR_PARAM_RANGE, "i=%d", i));
        assert_int_equal(scene_of(d.id).calls_tid, umd_sys()->tid());
    }
}

static void scenes_are_bounded_and_pins_outlive_them(void **state)
{
    umdErrorScene s = { .size_B = sizeof(s) };

    (void)state;
    umdRecordId kept = fail_deep(0);
    umdErrorDetail d = last_error();
    umd_record_pin(&d, true);
    umdRecordId gone = fail_deep(1);
    for (int i = 0; i < 64; i++)
        CALL("umdA", UMD_FAIL(UMD_ERR_PARAM_RANGE, "i=%d", i));
    assert_int_equal(umdGetErrorScene(gone, &s), UMD_STATUS_NOT_READY);
    assert_int_equal(umdGetErrorScene(kept, &s), UMD_SUCCESS);
    assert_string_equal(s.calls[0].name, "umdMemAlloc");
}

/* ---- First causes ---- */

static umdRecordId caused(umdRecordId cause, int n)
{
    CALL("umdLater", UMD_FAIL_FROM(UMD_ERR_CTX_BANNED, cause, "n=%d", n));
    return last_error().id;
}

static void first_cause_outlives_what_is_between(void **state)
{
    umdErrorDetail d = { .size_B = sizeof(d) };

    (void)state;
    CALL("umdFirst", UMD_FAIL(UMD_ERR_HW_HANG, "job=%d", 1));
    umdErrorDetail first = last_error();
    umdRecordId middle = caused(first.id, 1);
    umdErrorDetail lost = last_error();
    umdRecordId last = caused(middle, 2);
    umd_record_pin(&lost, true);
    for (int i = 0; i < 400; i++) /* pushes all three out of the store */
        CALL("umdOther", UMD_FAIL(UMD_ERR_PARAM_RANGE, "i=%d", i));
    assert_int_equal(umdGetErrorDetailById(last, &d), UMD_STATUS_NOT_READY);
    assert_int_equal(umdGetErrorDetailById(middle, &d), UMD_SUCCESS); /* pinned itself */
    umdRecordId again = caused(last, 3);
    umdRecordId ids[] = { first.id, middle, last, again };
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        assert_int_equal(umdGetFirstCause(ids[i], &d), UMD_SUCCESS);
        assert_int_equal(d.id.seq, first.id.seq);
        assert_int_equal(d.code, UMD_ERR_HW_HANG);
    }
    char text[8192];
    umdErrorDetail now = last_error();
    umdErrorDetailFormat(&now, text, sizeof(text));
    assert_non_null(strstr(text, "first cause UMD_ERR_HW_HANG"));
    assert_int_equal(umdGetFirstCause((umdRecordId){ 0 }, &d), UMD_STATUS_NOT_READY);
    assert_int_equal(umdGetFirstCause(again, NULL), UMD_ERR_PARAM_NULL);
    d.size_B = 1;
    assert_int_equal(umdGetFirstCause(again, &d), UMD_ERR_PARAM_STRUCT_SIZE);
}

static void pins_of_devices_outlive_those_of_contexts(void **state)
{
    umdErrorDetail d = { .size_B = sizeof(d) };
    umdRecordId ids[40];

    (void)state;
    CALL("umdA", UMD_FAIL(UMD_ERR_DEV_LOST_OFF_BUS, "device=%d", 0));
    umdErrorDetail device = last_error();
    umd_record_pin(&device, true);
    for (int i = 0; i < 40; i++) {
        CALL("umdA", UMD_FAIL(UMD_ERR_HW_PAGE_FAULT, "context=%d", i));
        umdErrorDetail c = last_error();
        ids[i] = c.id;
        umd_record_pin(&c, false);
    }
    for (int i = 0; i < 300; i++)
        CALL("umdOther", UMD_FAIL(UMD_ERR_PARAM_RANGE, "i=%d", i));
    assert_int_equal(umdGetErrorDetailById(device.id, &d), UMD_SUCCESS);
    assert_int_equal(umdGetErrorDetailById(ids[39], &d), UMD_SUCCESS);
    assert_int_equal(umdGetErrorDetailById(ids[0], &d), UMD_STATUS_NOT_READY);
}

/* Records of a peer may name each other as causes. */
static void a_ring_of_causes_ends(void **state)
{
    umdErrorDetail a, b, d = { .size_B = sizeof(d) };

    (void)state;
    (void)UMD_FAIL(UMD_ERR_HW_HANG, "job=%d", 1);
    assert_true(umd_record_export(&a));
    b = a;
    a.id.pid = b.id.pid = 77;
    a.id.seq = 1000001;
    b.id.seq = 1000002;
    a.cause = b.id;
    b.cause = a.id;
    (void)CALL("umdA", umd_record_import(&a));
    (void)CALL("umdA", umd_record_import(&b));
    (void)CALL("umdA", umd_record_import(&a));
    assert_int_equal(umdGetFirstCause(a.id, &d), UMD_SUCCESS);
    char text[16384];
    assert_true(umdErrorDetailFormatFull(&a, text, sizeof(text)) < sizeof(text));
}

/* ---- Text ---- */

static void forms_of_text(void **state)
{
    static char text[16384];
    char name[300];

    (void)state;
    memset(name, 'k', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    umd_record_set_context(9);
    CALL("umdOld", UMD_FAIL(UMD_ERR_PARAM_RANGE, "i=%d", 5));
    struct umd_api_call call = { 0 };
    umd_api_enter(&call, "umdTest", "stream=%d", 3);
    (void)UMD_FAIL(UMD_ERR_HW_PAGE_FAULT, "address=0x1234 a=\"%s\" b=\"%s\"", name, name);
    umdStatus st = UMD_FAIL_CAUSED(UMD_ERR_EXEC_FAILED, "size_B=%u timeout_ns=%u a=\"%s\" b=\"%s\"", 256u << 20, 5000000u, name, name);
    for (int i = 0; i < 12; i++)
        st = UMD_HOP(st);
    (void)umd_api_exit(&call, UMD_HOP_AS(st, UMD_ERR_SUBMIT_FAILED));
    umd_record_set_context(0);
    umdErrorDetail d = last_error();
    size_t n = umdErrorDetailFormat(&d, text, sizeof(text));
    assert_true(n < sizeof(text) && count_of(text, "\n") <= 40);
    assert_non_null(strstr(text, "call umdTest(stream=3), context 9"));
    assert_non_null(strstr(text, "size_B=268435456 (256 MiB) timeout_ns=5000000 (5 ms)"));
    assert_non_null(strstr(text, "earlier  UMD_ERR_PARAM_RANGE"));
    assert_null(strstr(text, "test_diag_scene+0x")); /* no place of the program */
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 120);
    n = umdErrorDetailFormatFull(&d, text, sizeof(text));
    assert_true(n < sizeof(text));
    assert_non_null(strstr(text, "UMD_ERR_EXEC_FAILED -> UMD_ERR_SUBMIT_FAILED"));
    assert_non_null(strstr(text, "stack    digest "));
    assert_non_null(strstr(text, "umdTest(stream=3) -> under way"));
    assert_non_null(strstr(text, "errors   "));
    assert_non_null(strstr(text, "test_scene.c:"));
    assert_null(strstr(text, "0x7f")); /* offsets in modules, never addresses */
}

/* ---- Counts, and what is not logged one by one ---- */

static umdErrorCounts counts_of(int32_t code)
{
    static umdErrorCounts rows[256];
    uint32_t n = umdGetErrorCounts(rows, 256);

    assert_true(n <= 256);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(i == 0 || rows[i - 1].code > rows[i].code);
        if (rows[i].code == code)
            return rows[i];
    }
    return (umdErrorCounts){ .code = code };
}

static void counts_by_code(void **state)
{
    umdErrorCounts before = counts_of(UMD_ERR_RES_THREADS), one;

    (void)state;
    CALL("umdA", UMD_FAIL(UMD_ERR_RES_THREADS, "i=%d", 1));
    umdStatus st = UMD_FAIL(UMD_ERR_RES_THREADS, "i=%d", 2);
    UMD_ABSORB(st, "did without");
    umdErrorCounts now = counts_of(UMD_ERR_RES_THREADS);
    assert_int_equal(now.raised - before.raised, 2);
    assert_int_equal(now.delivered - before.delivered, 1);
    assert_int_equal(now.absorbed - before.absorbed, 1);
    assert_int_equal(now.swallowed, before.swallowed);
    uint32_t all = umdGetErrorCounts(NULL, 0);
    assert_true(all > 1);
    assert_int_equal(umdGetErrorCounts(&one, 1), all); /* the first of them */
    assert_true(one.code >= now.code);
}

static void the_end_is_in_the_log(void **state)
{
    const char *path = scratch("end.log");

    (void)state;
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    struct umd_api_call call = { 0 };
    umd_api_enter(&call, "umdA", "x=%d", 1);
    (void)UMD_FAIL(UMD_ERR_HW_PAGE_FAULT, "address=0x%x", 64);
    umdStatus st = UMD_FAIL_CAUSED(UMD_ERR_EXEC_FAILED, "job=%d", 1);
    st = UMD_HOP(st);
    (void)umd_api_exit(&call, UMD_HOP_AS(st, UMD_ERR_SUBMIT_FAILED));
    st = UMD_FAIL(UMD_ERR_RES_THREADS, "i=%d", 77);
    UMD_ABSORB(st, "did \"without\" it");
    umdLogFlush(2000);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    const char *text = slurp(path);
    const char *end = strstr(text, "ended UMD_ERR_SUBMIT_FAILED: end=delivered call=umdA origin=UMD_ERR_EXEC_FAILED cause=");
    assert_non_null(end);
    assert_non_null(strstr(end, " first="));
    assert_non_null(strstr(end, " hops=\"umd:the_end_is_in_the_log:test_scene.c:"));
    assert_non_null(strstr(end, ":-3010>-3000\""));
    assert_non_null(strstr(text, "ended UMD_ERR_RES_THREADS: end=absorbed reason=\"did \\\"without\\\" it\" action=free_retry delay_ms=100 count=3 hops=\"\""));
    assert_non_null(strstr(text, "ended UMD_ERR_HW_PAGE_FAULT: end=delivered")); /* lives on as a cause */
    assert_non_null(strstr(text, "job=1 cause=")); /* and the begin names it */
}

/* What the driver tries again itself, and a record that was taken out to be told, and then another was told in its place. */
static void retries_and_drops_are_counted(void **state)
{
    const umdErrorCounts before = counts_of(UMD_ERR_SUBMIT_RING_FULL);
    umdErrorDetail d, kept = { .size_B = sizeof(kept) };

    (void)state;
    umd_record_scope_begin();
    (void)UMD_FAIL(UMD_ERR_SUBMIT_RING_FULL, "queue=%d", 7);
    assert_true(umd_record_export(&d));
    umd_record_scope_end();
    assert_int_equal(counts_of(UMD_ERR_SUBMIT_RING_FULL).delivered - before.delivered, 1); /* for the time being */
    for (int i = 0; i < 3; i++)
        umd_record_retried(UMD_ERR_SUBMIT_RING_FULL);
    umd_record_drop(&d, "another one is told in its place");
    const umdErrorCounts now = counts_of(UMD_ERR_SUBMIT_RING_FULL);
    assert_int_equal(now.raised - before.raised, 1);
    assert_int_equal(now.retried - before.retried, 3);
    assert_int_equal(now.delivered - before.delivered, 0);
    assert_int_equal(now.absorbed - before.absorbed, 1);
    assert_int_equal(now.swallowed - before.swallowed, 0);
    assert_int_equal(umdGetErrorDetailById(d.id, &kept), UMD_SUCCESS);
    assert_int_equal(kept.end, UMD_RECORD_ABSORBED);
    assert_string_equal(kept.absorbed, "another one is told in its place");
}

/* The end of each is one line, whichever way it ends. */
static void told_and_dropped_records_have_their_line(void **state)
{
    char id[2][128];
    umdErrorDetail d;

    (void)state;
    assert_int_equal(umdLogOpenFile(scratch("ends"), UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    for (int i = 0; i < 2; i++) {
        umd_record_scope_begin();
        (void)UMD_FAIL(UMD_ERR_HW_IRQ_LOST, "ring=%d", 70 + i);
        assert_true(umd_record_export(&d));
        umd_record_scope_end();
        snprintf(id[i], sizeof(id[i]), " rec=%08x:%u:%" PRIu64 ": ended UMD_ERR_HW_IRQ_LOST: end=%s", d.id.boot, d.id.pid, d.id.seq,
                 i ? "absorbed reason=" : "delivered ");
        if (i)
            umd_record_drop(&d, "no callback to tell it to");
        else
            umd_record_told(&d);
    }
    umdLogFlush(10000);
    const char *text = slurp(scratch("ends"));
    assert_int_equal(count_of(text, id[0]), 1);
    assert_int_equal(count_of(text, id[1]), 1);
    assert_int_equal(count_of(text, ": ended "), 2);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

/* S11: a storm of faults, all different, two records each: the first are kept, the rest is a number, in each period. */
static void a_storm_is_told_in_few_lines(void **state)
{
    enum { FAULTS = 20000 };
    const char *path = scratch("storm.log");
    unsigned told = 0, suppressed = 0;

    (void)state;
    umd_sys_step_begin(3);
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    for (int i = 0; i < FAULTS; i++) { /* four seconds of device time */
        umd_sys_step_set_clock((uint64_t)i * 4000000000u / FAULTS);
        struct umd_api_call call = { 0 };
        umd_api_enter(&call, "umdA", "x=%d", i);
        (void)UMD_FAIL(UMD_ERR_HW_PAGE_FAULT, "address=0x%x job=%d", 64 * i, i);
        (void)umd_api_exit(&call, UMD_FAIL_CAUSED(UMD_ERR_EXEC_FAILED, "job=%d", i));
    }
    umd_sys_step_end();
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    const char *text = slurp(path);
    assert_non_null(strstr(text, "address=0x0 job=0 ")); /* the first is there */
    assert_true(count_of(text, "\n") < 4 * 5 * 20); /* 4 s, 2 sites: a begin and an end for 20 of each, and the number */
    for (const char *s = text; (s = strstr(s, "not logged one by one: suppressed=")); s++) {
        suppressed += (unsigned)strtoul(s + strlen("not logged one by one: suppressed="), NULL, 10);
        told++;
    }
    unsigned begun = count_of(text, "UMD_ERR_HW_PAGE_FAULT: A ") + count_of(text, "UMD_ERR_EXEC_FAILED: A ");
    assert_true(told >= 2 && told <= 2 * 5);
    assert_int_equal(begun + suppressed, 2 * FAULTS); /* none is lost */
    assert_true(counts_of(UMD_ERR_HW_PAGE_FAULT).unlogged > FAULTS / 2);
}

static _Atomic(uint64_t) set_ns;
static uint64_t clock_that_is_set(void) { return set_ns; }

/* Of two threads, or of two processes, the one that is told of may have the younger stamp. */
static void an_age_is_never_negative(void **state)
{
    struct umd_sys table = *umd_sys_default();
    umdErrorDetail d = { .size_B = sizeof(d) };
    char text[8192];

    (void)state;
    table.mono_ns = clock_that_is_set;
    umd_sys_set(&table);
    umd_record_set_context(77);
    for (int i = 0; i < 2; i++) {
        set_ns = i ? 9900000000u : 10000000000u;
        struct umd_api_call call = { 0 };
        umd_api_enter(&call, "umdA", "x=%d", i);
        (void)umd_api_exit(&call, UMD_FAIL(UMD_ERR_HW_PAGE_FAULT, "address=0x%x", 64 * i));
    }
    umd_record_set_context(0);
    umd_sys_set(NULL);
    assert_int_equal(umdGetLastErrorDetail(&d), UMD_SUCCESS);
    umdErrorDetailFormat(&d, text, sizeof(text));
    assert_non_null(strstr(text, "100 ms after"));
    umdErrorDetailFormatFull(&d, text, sizeof(text));
    assert_non_null(strstr(text, "100 ms after"));
    assert_null(strstr(text, "e+1"));
}

static uint64_t overtaking_ns(void)
{
    static _Atomic(uint64_t) calls;

    return 10000000000u - atomic_fetch_add(&calls, 1) % 97;
}

/* Threads that fail at one time: stamps come out of order, and a period does not begin anew for that. */
static void a_storm_of_many_threads_is_told_in_few_lines(void **state)
{
    struct umd_sys table = *umd_sys_default();

    (void)state;
    assert_int_equal(umdLogOpenFile(scratch("overtaking"), UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    table.mono_ns = overtaking_ns;
    umd_sys_set(&table);
    for (int i = 0; i < 300; i++) {
        struct umd_api_call call = { 0 };
        umd_api_enter(&call, "umdA", "x=%d", i);
        (void)umd_api_exit(&call, UMD_FAIL(UMD_ERR_HW_PAGE_FAULT, "address=0x%x job=%d", 64 * i, i));
    }
    umd_sys_set(NULL);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    assert_int_equal(count_of(slurp(scratch("overtaking")), "UMD_ERR_HW_PAGE_FAULT: A "), 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scene_has_calls_and_arguments), cmocka_unit_test(digest_is_of_the_path), cmocka_unit_test(errors_before_are_of_the_context),
        cmocka_unit_test(scene_of_another_thread_gets_the_calls_that_met_it), cmocka_unit_test(pinned_scene_gets_the_calls_that_met_it), cmocka_unit_test(readers_keep_no_calls_away),
        cmocka_unit_test(scenes_are_bounded_and_pins_outlive_them),
        cmocka_unit_test(first_cause_outlives_what_is_between), cmocka_unit_test(pins_of_devices_outlive_those_of_contexts),
        cmocka_unit_test(a_ring_of_causes_ends), cmocka_unit_test(forms_of_text), cmocka_unit_test(counts_by_code),
        cmocka_unit_test(retries_and_drops_are_counted), cmocka_unit_test(told_and_dropped_records_have_their_line),
        cmocka_unit_test(the_end_is_in_the_log), cmocka_unit_test(a_storm_is_told_in_few_lines),
        cmocka_unit_test(an_age_is_never_negative), cmocka_unit_test(a_storm_of_many_threads_is_told_in_few_lines),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    scratch_remove();
    return failed;
}
