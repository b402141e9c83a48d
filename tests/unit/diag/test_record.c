/* SPDX-License-Identifier: MIT */
/* test_record.c - the life of a record: raise, hop, deliver, absorb, swallow; causes, scopes, carriers, calls. */
#include "diag_fixture.h"

UMD_LOG_MODULE("umd.test");

static umdStatus origin(uint64_t size_B) { return UMD_FAIL(UMD_ERR_MEM_FRAGMENTED, "size_B=%" PRIu64 " name=\"%s\"", size_B, "a b"); }

static umdStatus origin_fits(uint64_t size_B, uint64_t fit_B)
{
    return UMD_FAIL_ADVISED(UMD_ERR_MEM_FRAGMENTED, umd_advice_fit(UMD_ERR_MEM_FRAGMENTED, fit_B), (umdRecordId){ 0 }, "size_B=%" PRIu64 " name=\"%s\"",
                            size_B, "a b");
}

#define CALL(name_, st_) ({ struct umd_api_call call_ = { 0 }; umd_api_enter(&call_, (name_), "x=%d", 1); umd_api_exit(&call_, (st_)); })

static void delivered_record_tells_all(void **state)
{
    umd_record_counts before = counts_now();

    (void)state;
    umd_record_set_context(77);
    struct umd_api_call call = { 0 };
    umd_api_enter(&call, "umdMemAlloc", "size_B=%d", 4096);
    umdStatus st = origin_fits(4096, 2048);
    st = UMD_HOP(st);
    st = UMD_HOP_AS(st, UMD_ERR_MEM_ALLOC_FAILED);
    assert_int_equal(umd_api_exit(&call, st), UMD_ERR_MEM_ALLOC_FAILED);
    umdErrorDetail d = last_error();
    assert_int_equal(d.code, UMD_ERR_MEM_ALLOC_FAILED);
    assert_int_equal(d.origin_code, UMD_ERR_MEM_FRAGMENTED);
    assert_string_equal(d.figures, "size_B=4096 name=\"a b\"");
    assert_string_equal(d.func, "origin_fits");
    assert_string_equal(d.file, "test_record.c");
    assert_string_equal(d.module, "umd.test");
    assert_string_equal(d.api, "umdMemAlloc");
    assert_string_equal(d.text, umdStatusString(UMD_ERR_MEM_FRAGMENTED));
    assert_int_equal(d.context_id, 77);
    assert_int_equal(d.call_depth, 1);
    assert_int_equal(d.end, UMD_RECORD_DELIVERED);
    assert_int_equal(d.advice.largest_fit_B, 2048);
    assert_int_equal(d.hop_count, 2);
    assert_string_equal(d.hops[0].layer, "umd");
    assert_int_equal(d.hops[1].code_in, UMD_ERR_MEM_FRAGMENTED);
    assert_int_equal(d.hops[1].code_out, UMD_ERR_MEM_ALLOC_FAILED);
    umd_record_counts now = counts_now();
    assert_int_equal(now.raised - before.raised, 1);
    assert_int_equal(now.delivered - before.delivered, 1);
    assert_int_equal(now.swallowed, before.swallowed);
    assert_int_equal(umd_record_current().seq, 0);
    umd_record_set_context(0);
}

static void success_leaves_the_last_error(void **state)
{
    (void)state;
    CALL("umdA", UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=p"));
    assert_int_equal(CALL("umdB", UMD_SUCCESS), UMD_SUCCESS);
    assert_string_equal(last_error().api, "umdA");
    umdErrorDetail d = { .size_B = 4 };
    assert_int_equal(umdGetLastErrorDetail(NULL), UMD_ERR_PARAM_NULL);
    assert_int_equal(umdGetLastErrorDetail(&d), UMD_ERR_PARAM_STRUCT_SIZE);
    assert_string_equal(last_error().api, "umdA");
}

static void raising_over_an_open_record_swallows_it(void **state)
{
    umd_record_counts before = counts_now();

    (void)state;
    (void)origin(1);
    umdRecordId lost = umd_record_current();
    CALL("umdA", UMD_FAIL(UMD_ERR_INTERNAL, "x=1"));
    assert_int_equal(counts_now().swallowed - before.swallowed, 1);
    umdErrorDetail d = { .size_B = sizeof(d) };
    assert_int_equal(umdGetErrorDetailById(lost, &d), UMD_SUCCESS);
    assert_int_equal(d.end, UMD_RECORD_SWALLOWED);
    assert_int_equal(last_error().cause.seq, 0);
}

static void success_with_a_record_open_swallows_it(void **state)
{
    umd_record_counts before = counts_now();
    struct umd_api_call call = { 0 };

    (void)state;
    umd_api_enter(&call, "umdA", "x=%d", 1);
    (void)origin(2);
    assert_int_equal(umd_api_exit(&call, UMD_SUCCESS), UMD_SUCCESS);
    assert_int_equal(counts_now().swallowed - before.swallowed, 1);
}

static void cause_is_linked_not_swallowed(void **state)
{
    umd_record_counts before = counts_now();
    char text[4096];

    (void)state;
    struct umd_api_call call = { 0 };
    umd_api_enter(&call, "umdStreamSynchronize", "stream=%d", 3);
    (void)UMD_FAIL(UMD_ERR_HW_PAGE_FAULT, "address=0x%x", 0x1000);
    umdRecordId first = umd_record_current();
    umdStatus st = UMD_FAIL_CAUSED(UMD_ERR_EXEC_FAILED, "job=%d", 5);
    (void)umd_api_exit(&call, st);
    assert_int_equal(counts_now().swallowed, before.swallowed);
    umdErrorDetail d = last_error();
    assert_int_equal(d.cause.seq, first.seq);
    size_t need = umdErrorDetailFormat(&d, text, sizeof(text));
    assert_int_equal(need, strlen(text));
    assert_non_null(strstr(text, "first cause UMD_ERR_HW_PAGE_FAULT"));
    assert_non_null(strstr(text, "address=0x1000"));
    assert_non_null(strstr(text, "umdStreamSynchronize"));
    assert_non_null(strstr(text, umdStatusTodo(UMD_ERR_EXEC_FAILED)));
    assert_true(count_of(text, "\n") <= 24); /* a screen */
    char cut[32];
    assert_int_equal(umdErrorDetailFormat(&d, cut, sizeof(cut)), need);
    assert_int_equal(strlen(cut), sizeof(cut) - 1);
    assert_int_equal(umdErrorDetailFormat(&d, NULL, 0), need);
}

static void absorbed_record_says_why(void **state)
{
    umd_record_counts before = counts_now();

    (void)state;
    umdStatus st = UMD_FAIL(UMD_ERR_SUBMIT_RING_FULL, "queue=1");
    umdRecordId id = umd_record_current();
    UMD_ABSORB(st, "Waited for room and submitted again.");
    assert_int_equal(counts_now().absorbed - before.absorbed, 1);
    umdErrorDetail d = { .size_B = sizeof(d) };
    assert_int_equal(umdGetErrorDetailById(id, &d), UMD_SUCCESS);
    assert_int_equal(d.end, UMD_RECORD_ABSORBED);
    assert_string_equal(d.absorbed, "Waited for room and submitted again.");
}

/* What is less than its code usually is says so in the record; the table stays as it is. */
static void mild_record_has_its_own_severity(void **state)
{
    umdErrorDetail d;

    (void)state;
    assert_int_equal(UMD_FAIL_SEVERITY(UMD_ERR_EXEC_CANCELLED, UMD_SEVERITY_INFO, (umdRecordId){ 0 }, "queue=%d", 1), UMD_ERR_EXEC_CANCELLED);
    assert_true(umd_record_export(&d));
    assert_int_equal(d.advice.severity, UMD_SEVERITY_INFO);
    assert_string_equal(d.figures, "queue=1");
    (void)UMD_FAIL(UMD_ERR_EXEC_CANCELLED, "queue=%d", 2);
    assert_true(umd_record_export(&d));
    assert_int_equal(d.advice.severity, UMD_SEVERITY_ERROR);
}

static const char *log_of(const char *name)
{
    umdLogFlush(10000);
    const char *text = slurp(scratch(name));
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    umdLogCloseFile(UMD_LOG_FORMAT_JSON);
    unlink(scratch(name));
    return text;
}

/* What is to be done about this one occurrence is in the record, over a carrier too, and in the log: with the raise only where the table says otherwise. */
static void advice_is_of_the_occurrence(void **state)
{
    umdErrorDetail wire;

    (void)state;
    CALL("umdZ", origin(1)); /* the next is no repetition */
    assert_int_equal(umdLogOpenFile(scratch("advice"), UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    umd_record_scope_begin();
    (void)UMD_FAIL_ADVISED(UMD_ERR_EXEC_CANCELLED, umd_advice_do(UMD_ERR_EXEC_CANCELLED, UMD_ACTION_REBUILD_CONTEXT), (umdRecordId){ 0 }, "queue=%d", 41);
    assert_true(umd_record_export(&wire));
    umd_record_scope_end();
    CALL("umdA", UMD_HOP(umd_record_import(&wire)));
    assert_int_equal(last_error().advice.action, UMD_ACTION_REBUILD_CONTEXT);
    assert_int_equal(last_error().advice.count, 0);
    assert_int_equal(last_error().advice.severity, umdStatusAdvice(UMD_ERR_EXEC_CANCELLED).severity);
    CALL("umdB", UMD_FAIL(UMD_ERR_EXEC_CANCELLED, "queue=%d", 42));
    CALL("umdC", origin_fits(99, 4096));
    const char *text = log_of("advice");
    assert_non_null(strstr(text, " queue=41 action=rebuild_context ["));
    assert_non_null(strstr(text, "end=delivered call=umdA action=rebuild_context hops=\"umd:"));
    assert_non_null(strstr(text, " queue=42 ["));
    assert_non_null(strstr(text, "end=delivered call=umdB action=retry delay_ms=0 count=1 hops=\"\""));
    assert_non_null(strstr(text, " size_B=99 name=\"a b\" action=free_retry delay_ms=0 count=1 largest_fit_B=4096 ["));
    assert_non_null(strstr(text, "end=delivered call=umdC action=free_retry delay_ms=0 count=1 largest_fit_B=4096 hops="));
}

static void advice_is_in_json(void **state)
{
    (void)state;
    assert_int_equal(umdLogOpenFile(scratch("advice.json"), UMD_LOG_FORMAT_JSON, "info"), UMD_SUCCESS);
    CALL("umdC", origin_fits(98, 8192));
    const char *text = log_of("advice.json");
    const char *end = strstr(text, "\"Body\":\"ended UMD_ERR_MEM_FRAGMENTED:");
    assert_non_null(end);
    assert_non_null(strstr(end, "\"action\":\"free_retry\",\"delay_ms\":"));
    assert_non_null(strstr(end, "\"largest_fit_B\":"));
}

/* Who wraps a failure asks for what helps against it; a code that becomes another brings that one's advice, unless it was of the occurrence. */
static void advice_of_causes_and_translations(void **state)
{
    umdErrorDetail d;

    (void)state;
    (void)UMD_FAIL(UMD_ERR_UAPI_ARGUMENT, "field=%s", "pad");
    umdRecordId cause = umd_record_take_cause();
    (void)UMD_FAIL_ADVISED(UMD_ERR_SUBMIT_FAILED, umd_advice_of_cause(UMD_ERR_SUBMIT_FAILED, cause), cause, "queue=%d", 1);
    assert_true(umd_record_export(&d));
    assert_int_equal(d.advice.action, UMD_ACTION_CHANGE_ARGUMENT);
    assert_int_equal(d.advice.count, 0);
    assert_int_equal(d.advice.scope, umdStatusAdvice(UMD_ERR_SUBMIT_FAILED).scope);
    (void)origin_fits(5, 64); /* of another thread, say: by its id */
    assert_true(umd_record_export(&d));
    assert_int_equal(umd_advice_of_cause(UMD_ERR_SUBMIT_FAILED, d.id).largest_fit_B, 64);
    assert_int_equal(umd_advice_of_cause(UMD_ERR_SUBMIT_FAILED, (umdRecordId){ 1, 2, 3 }).action, UMD_ACTION_RETRY); /* not known */
    CALL("umdT", UMD_HOP_AS(UMD_FAIL(UMD_ERR_EXEC_CANCELLED, "queue=%d", 7), UMD_ERR_CTX_BANNED));
    assert_int_equal(last_error().advice.action, UMD_ACTION_REBUILD_CONTEXT);
    assert_true(last_error().advice.sticky && last_error().advice.scope == UMD_SCOPE_CONTEXT);
    CALL("umdT", UMD_HOP_AS(origin_fits(6, 32), UMD_ERR_MEM_ALLOC_FAILED));
    assert_int_equal(last_error().advice.largest_fit_B, 32);
    CALL("umdT", UMD_HOP_AS(UMD_FAIL_ADVISED(UMD_ERR_CTX_BUSY, umd_advice_do(UMD_ERR_CTX_BUSY, UMD_ACTION_SKIP), (umdRecordId){ 0 }, "n=%d", 1),
                            UMD_ERR_EXEC_CANCELLED));
    assert_int_equal(last_error().advice.action, UMD_ACTION_SKIP);
}

/* A repetition folds into the record before, with the advice of the last time. */
static void advice_of_a_repetition_is_the_last(void **state)
{
    (void)state;
    for (uint64_t fit_B = 3; fit_B; fit_B--)
        CALL("umdR", origin_fits(7, fit_B));
    assert_int_equal(last_error().repeat, 2);
    assert_int_equal(last_error().advice.largest_fit_B, 1);
}

static umdStatus inner_call(void) { return CALL("umdInner", origin(9)); }

static void nested_call_keeps_one_record(void **state)
{
    umd_record_counts before = counts_now();

    (void)state;
    struct umd_api_call call = { 0 };
    umd_api_enter(&call, "umdOuter", "x=%d", 1);
    umdStatus st = inner_call();
    assert_string_equal(last_error().api, "umdInner"); /* a callback of the user's would have seen it */
    st = UMD_HOP(st);
    (void)umd_api_exit(&call, st);
    umd_record_counts now = counts_now();
    assert_int_equal(now.raised - before.raised, 1);
    assert_int_equal(now.delivered - before.delivered, 1);
    assert_int_equal(now.swallowed, before.swallowed);
    assert_string_equal(last_error().api, "umdOuter");
    assert_int_equal(last_error().hop_count, 1);
    /* Handled by the outer call: nothing is left over. */
    umd_api_enter(&call, "umdOuter", "x=%d", 2);
    (void)inner_call();
    (void)umd_api_exit(&call, UMD_SUCCESS);
    assert_int_equal(counts_now().swallowed, before.swallowed);
}

static void bare_code_gets_a_record(void **state)
{
    (void)state;
    assert_int_equal(CALL("umdA", UMD_HOP(UMD_ERR_HW_HANG)), UMD_ERR_HW_HANG);
    assert_non_null(strstr(last_error().figures, "origin=unrecorded"));
    assert_int_equal(CALL("umdB", UMD_ERR_HW_SPIN), UMD_ERR_HW_SPIN);
    assert_int_equal(last_error().code, UMD_ERR_HW_SPIN);
    assert_string_equal(last_error().api, "umdB");
}

static void codes_outside_the_list_become_internal(void **state)
{
    struct umd_api_call call = { 0 };

    (void)state;
    umd_api_enter(&call, "umdStreamQuery", "x=%d", 1);
    assert_int_equal(umd_api_exit(&call, UMD_STATUS_NOT_READY), UMD_STATUS_NOT_READY);
    umd_api_enter(&call, "umdStreamQuery", "x=%d", 1);
    umdStatus st = origin(3);
    assert_int_equal(umd_api_exit(&call, st), UMD_ERR_INTERNAL_CODE);
    assert_non_null(strstr(last_error().figures, "raw=-2011"));
    umdErrorDetail cause = { .size_B = sizeof(cause) };
    assert_int_equal(umdGetErrorDetailById(last_error().cause, &cause), UMD_SUCCESS);
    assert_int_equal(cause.code, UMD_ERR_MEM_FRAGMENTED);
    assert_non_null(strstr(last_error().figures, "kind=undocumented"));
    assert_int_equal(CALL("umdAny", (umdStatus)-4321), UMD_ERR_INTERNAL_CODE); /* outside the table */
    assert_non_null(strstr(last_error().figures, "kind=unknown"));
    /* A positive code is no failure, and comes only from calls that list it (B1). */
    assert_int_equal(CALL("umdMemAlloc", UMD_STATUS_NOT_READY), UMD_ERR_INTERNAL_CODE);
    assert_non_null(strstr(last_error().figures, "raw=1 name=UMD_STATUS_NOT_READY kind=undocumented call=umdMemAlloc"));
    assert_int_equal(CALL("umdStreamQuery", UMD_STATUS_TIMEOUT_PROGRESS), UMD_ERR_INTERNAL_CODE);
    assert_int_equal(CALL("umdStreamSynchronize", UMD_STATUS_TIMEOUT_PROGRESS), UMD_STATUS_TIMEOUT_PROGRESS);
    assert_int_equal(CALL("umdAny", UMD_STATUS_NOT_READY), UMD_ERR_INTERNAL_CODE);
}

static void record_crosses_a_carrier(void **state)
{
    umdErrorDetail wire;
    struct umd_api_call call = { 0 };

    (void)state;
    umd_api_enter(&call, "umdMemAlloc", "x=%d", 1);
    umd_record_scope_begin();
    assert_int_equal(UMD_FAIL_ERRNO(UMD_ERR_MEM_ALLOC_FAILED, "free_B=%d", 12), -umdStatusErrno(UMD_ERR_MEM_ALLOC_FAILED));
    assert_true(umd_record_export(&wire));
    assert_false(umd_record_export(&wire));
    umd_record_scope_end();
    umdStatus st = umd_record_import(&wire);
    assert_int_equal(st, UMD_ERR_MEM_ALLOC_FAILED);
    (void)umd_api_exit(&call, UMD_HOP(st));
    assert_true(last_error().id.seq == wire.id.seq);
    assert_string_equal(last_error().figures, "free_B=12");
}

static umdStatus inner_fails(void) { return CALL("umdInner", UMD_FAIL(UMD_ERR_HW_IRQ_LOST, "ring=%d", 70)); }

static umdStatus passed_up(umdStatus st) { return UMD_HOP(st); }

static umdStatus absorbed_outside(umdStatus st)
{
    UMD_ABSORB(st, "The outer call can do without.");
    return UMD_SUCCESS;
}

static umdStatus left_alone(umdStatus st) { return st == UMD_SUCCESS ? st : UMD_SUCCESS; }

static umdStatus scope_of_its_own(umdStatus st)
{
    umd_record_scope_begin();
    umdStatus other = UMD_HOP(st); /* a bare code here: the record is the outer scope's */
    assert_int_not_equal(umd_record_current().seq, last_error().id.seq);
    UMD_ABSORB(other, "A test made it.");
    umd_record_scope_end();
    return st;
}

/* What a call inside another has delivered ends once, as the outer call says. */
static void a_nested_record_ends_once(void **state)
{
    static const struct { umdStatus (*then)(umdStatus st); const char *end; } how[] = {
        { passed_up, "end=delivered call=umdOuter" }, { absorbed_outside, "end=absorbed" }, { left_alone, "end=delivered call=umdInner" },
        { scope_of_its_own, "end=delivered call=umdInner" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
        char id[128];
        assert_int_equal(umdLogOpenFile(scratch("nested"), UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
        struct umd_api_call call = { 0 };
        umd_api_enter(&call, "umdOuter", "x=%d", 1);
        umdStatus st = inner_fails();
        const umdErrorDetail d = last_error();
        (void)umd_api_exit(&call, how[i].then(st));
        umdLogFlush(10000);
        snprintf(id, sizeof(id), "rec=%08x:%u:%" PRIu64 ": ended ", d.id.boot, d.id.pid, d.id.seq);
        const char *text = slurp(scratch("nested"));
        assert_int_equal(count_of(text, id), 1);
        assert_non_null(strstr(strstr(text, id), how[i].end));
        umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
        unlink(scratch("nested"));
        CALL("umdA", origin(9)); /* the next is no repetition */
    }
}

static bool is_of_table(int32_t code) { return strcmp(umdStatusName((umdStatus)code), "UMD_UNKNOWN") != 0; }

static void hostile_records_are_refused(void **state)
{
    umdErrorDetail good, bad;

    (void)state;
    umd_record_scope_begin();
    (void)origin(4);
    assert_true(umd_record_export(&good));
    umd_record_scope_end();
#define REFUSED(field_, value_)                                                              \
    bad = good;                                                                              \
    bad.field_ = (value_);                                                                   \
    assert_int_equal(CALL("umdA", umd_record_import(&bad)), UMD_ERR_INTERNAL)
    REFUSED(size_B, 1);
    REFUSED(hop_count, 13);
    REFUSED(code, 5);
    REFUSED(origin_code, -123456);
    REFUSED(end, 9);
    REFUSED(id.seq, 0);
    REFUSED(advice.action, (umdAction)99);
    /* Another's record under the id of one of ours: what we know of it stays. */
    REFUSED(origin_code, UMD_ERR_HW_HANG);
    assert_non_null(strstr(last_error().figures, "field=id"));
    REFUSED(mono_ns, good.mono_ns + 1);
    bad = good;
    strcpy(bad.func, "elsewhere");
    assert_int_equal(CALL("umdA", umd_record_import(&bad)), UMD_ERR_INTERNAL);
    umdErrorDetail kept = { .size_B = sizeof(kept) };
    assert_int_equal(umdGetErrorDetailById(good.id, &kept), UMD_SUCCESS);
    assert_int_equal(kept.origin_code, good.origin_code);
    assert_string_equal(kept.func, good.func);
    /* Codes of no table take no rows of those that are. */
    umdErrorCounts rows[512];
    bad = good;
    bad.id.pid++;
    for (int i = 0; i < 1000; i++) {
        bad.id.seq++;
        bad.code = -1000 - i;
        if (!is_of_table(bad.code))
            (void)CALL("umdA", umd_record_import(&bad));
    }
    uint32_t row_count = umdGetErrorCounts(rows, 512);
    for (uint32_t i = 0; i < row_count; i++)
        assert_true(is_of_table(rows[i].code));
    bad = good;
    memset(bad.figures, 'x', sizeof(bad.figures));
    assert_int_equal(CALL("umdA", umd_record_import(&bad)), UMD_ERR_INTERNAL);
    assert_non_null(strstr(last_error().figures, "field=text"));
    bad = good;
    strcpy(bad.text, "two\nlines");
    assert_int_equal(CALL("umdA", umd_record_import(&bad)), UMD_ERR_MEM_FRAGMENTED);
    assert_string_equal(last_error().text, "two?lines");
}

static void scopes_do_not_mix(void **state)
{
    umd_record_counts before = counts_now();
    struct umd_api_call call = { 0 };

    (void)state;
    umd_api_enter(&call, "umdA", "x=%d", 1);
    umdStatus st = origin(5);
    umdRecordId outer = umd_record_current();
    umd_record_scope_begin();
    assert_int_equal(umd_record_current().seq, 0);
    (void)UMD_FAIL(UMD_ERR_HW_HANG, "ring=1");
    umd_record_scope_end(); /* not exported: swallowed */
    assert_int_equal(counts_now().swallowed - before.swallowed, 1);
    assert_int_equal(umd_record_current().seq, outer.seq);
    (void)umd_api_exit(&call, st);
}

static void repeats_fold_into_one_record(void **state)
{
    umdRecordId first = { 0 };

    (void)state;
    for (int i = 0; i < 5; i++) {
        CALL("umdPoll", origin(6));
        if (i == 0)
            first = last_error().id;
    }
    assert_int_equal(last_error().id.seq, first.seq);
    assert_int_equal(last_error().repeat, 4);
    CALL("umdPoll", origin(7)); /* other figures: another failure */
    assert_int_not_equal(last_error().id.seq, first.seq);
    assert_int_equal(last_error().repeat, 0);
}

static void store_keeps_the_last_256(void **state)
{
    umdErrorDetail d = { .size_B = sizeof(d) };
    umdRecordId first = { 0 }, second = { 0 };

    (void)state;
    for (int i = 0; i < 257; i++) {
        CALL("umdA", origin((uint64_t)i + 1000));
        if (i == 0)
            first = last_error().id;
        if (i == 1)
            second = last_error().id;
    }
    assert_int_equal(umdGetErrorDetailById(first, &d), UMD_STATUS_NOT_READY);
    assert_int_equal(umdGetErrorDetailById(second, &d), UMD_SUCCESS);
    assert_int_equal(umdGetErrorDetailById((umdRecordId){ 0 }, &d), UMD_STATUS_NOT_READY);
}

static void hops_beyond_the_limit_keep_the_last(void **state)
{
    struct umd_api_call call = { 0 };

    (void)state;
    umd_api_enter(&call, "umdA", "x=%d", 1);
    umdStatus st = origin(8);
    for (int i = 0; i < 20; i++)
        st = UMD_HOP(st);
    st = UMD_HOP_AS(st, UMD_ERR_SUBMIT_FAILED);
    (void)umd_api_exit(&call, st);
    assert_int_equal(last_error().hop_count, UMD_RECORD_HOPS);
    assert_int_equal(last_error().hops[UMD_RECORD_HOPS - 1].code_out, UMD_ERR_SUBMIT_FAILED);
}

static void figures_stay_one_line(void **state)
{
    char big[2000];

    (void)state;
    memset(big, 'y', sizeof(big));
    big[sizeof(big) - 1] = '\0';
    CALL("umdA", UMD_FAIL(UMD_ERR_RES_FILE, "path=\"%s\"", "a\nb"));
    assert_string_equal(last_error().figures, "path=\"a\\nb\"");
    CALL("umdA", UMD_FAIL(UMD_ERR_RES_FILE, "path=%s", big));
    assert_string_equal(last_error().figures + UMD_RECORD_FIGURES - 4, "...");
}

static void call_ring_has_the_last_32(void **state)
{
    char text[8192];
    struct umd_api_call call = { 0 };

    (void)state;
    for (int i = 0; i < 40; i++) {
        umd_api_enter(&call, "umdCall", "i=%d name=%s", i, "k");
        umdStatus st = i == 39 ? UMD_FAIL(UMD_ERR_PARAM_RANGE, "i=%d", i) : UMD_SUCCESS;
        (void)umd_api_exit(&call, st);
    }
    assert_int_equal(umd_callring_format(text, sizeof(text)), 32);
    assert_true(strncmp(text, "umdCall(i=39 name=k) -> UMD_ERR_PARAM_RANGE\n", 44) == 0);
    assert_non_null(strstr(text, "umdCall(i=8 name=k) -> UMD_SUCCESS"));
    assert_null(strstr(text, "umdCall(i=7 "));
    assert_int_equal(umd_callring_format(text, 60), 1); /* whole lines only */
    umd_api_enter(&call, "umdNow", "i=%d", 1);
    umd_callring_format(text, sizeof(text));
    assert_true(strncmp(text, "umdNow(i=1) -> under way", 24) == 0);
    (void)umd_api_exit(&call, UMD_SUCCESS);
}

static void *fails_in_thread(void *arg)
{
    umdErrorDetail d = { .size_B = sizeof(d) };

    (void)arg;
    if (umdGetLastErrorDetail(&d) != UMD_STATUS_NOT_READY)
        return "another thread's error is seen";
    for (int i = 0; i < 500; i++) {
        CALL("umdThread", origin(100 + (uint64_t)i));
        if (umdGetLastErrorDetail(&d) != UMD_SUCCESS || strcmp(d.api, "umdThread") != 0)
            return "own error is lost";
    }
    return NULL;
}

static void last_error_is_thread_local(void **state)
{
    pthread_t t[4];
    void *what = NULL;

    (void)state;
    CALL("umdMine", origin(1));
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&t[i], NULL, fails_in_thread, NULL), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(t[i], &what), 0);
        assert_null(what);
    }
    assert_string_equal(last_error().api, "umdMine");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delivered_record_tells_all), cmocka_unit_test(success_leaves_the_last_error),
        cmocka_unit_test(raising_over_an_open_record_swallows_it), cmocka_unit_test(success_with_a_record_open_swallows_it),
        cmocka_unit_test(cause_is_linked_not_swallowed), cmocka_unit_test(absorbed_record_says_why), cmocka_unit_test(mild_record_has_its_own_severity), cmocka_unit_test(advice_is_of_the_occurrence), cmocka_unit_test(advice_is_in_json),
        cmocka_unit_test(advice_of_causes_and_translations), cmocka_unit_test(advice_of_a_repetition_is_the_last),
        cmocka_unit_test(nested_call_keeps_one_record), cmocka_unit_test(a_nested_record_ends_once), cmocka_unit_test(bare_code_gets_a_record),
        cmocka_unit_test(codes_outside_the_list_become_internal), cmocka_unit_test(record_crosses_a_carrier),
        cmocka_unit_test(hostile_records_are_refused), cmocka_unit_test(scopes_do_not_mix),
        cmocka_unit_test(repeats_fold_into_one_record), cmocka_unit_test(store_keeps_the_last_256),
        cmocka_unit_test(hops_beyond_the_limit_keep_the_last), cmocka_unit_test(figures_stay_one_line),
        cmocka_unit_test(call_ring_has_the_last_32), cmocka_unit_test(last_error_is_thread_local),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
