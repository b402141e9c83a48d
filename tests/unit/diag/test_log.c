/* SPDX-License-Identifier: MIT */
/* test_log.c - levels, encoding of arguments, the text and JSON formats, determinism in stepped mode. */
#include "diag_fixture.h"

#include <errno.h>
#include <json-c/json.h>

UMD_LOG_MODULE("umd.test.log");

/* The message of each line starts after ": " and ends before " [function". */
static void expect_line(const char *text, const char *message)
{
    char want[2048];

    snprintf(want, sizeof(want), ": %s [", message);
    if (!strstr(text, want))
        fail_msg("\"%s\" is missing in\n%s", want, text);
}

static void levels_by_module_and_prefix(void **state)
{
    const char *path = scratch("levels");

    (void)state;
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, NULL), UMD_SUCCESS);
    assert_int_equal(umd_log_this_module.level, UMD_LOG_INFO);
    UMD_LOG(UMD_LOG_INFO, "seen by default");
    UMD_LOG(UMD_LOG_DEBUG, "hidden by default");
    assert_int_equal(umdLogSetLevels("error,umd.test=trace"), UMD_SUCCESS);
    assert_int_equal(umd_log_this_module.level, UMD_LOG_TRACE);
    UMD_LOG(UMD_LOG_INFO, "seen by prefix");
    assert_int_equal(umdLogSetLevels("umd.test=trace, umd.test.log=warn"), UMD_SUCCESS);
    UMD_LOG(UMD_LOG_INFO, "hidden by the longer prefix");
    UMD_LOG(UMD_LOG_WARN, "seen at its level");
    assert_int_equal(umdLogSetLevels("umd.te=trace"), UMD_SUCCESS);
    UMD_LOG(UMD_LOG_DEBUG, "hidden: a prefix ends at a point");
    assert_int_equal(umdLogSetLevels("off"), UMD_SUCCESS);
    assert_int_equal(umd_log_this_module.level, UMD_LOG_ERROR); /* the emergency ring's */
    UMD_LOG(UMD_LOG_ERROR, "hidden since off");
    assert_int_equal(umdLogSetLevels(""), UMD_SUCCESS);
    const char *text = logged(path);
    expect_line(text, "seen by default");
    expect_line(text, "seen by prefix");
    expect_line(text, "seen at its level");
    assert_null(strstr(text, "hidden"));
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    assert_int_equal(umd_log_this_module.level, UMD_LOG_ERROR); /* the console is off in tests */
}

static void levels_per_sink(void **state)
{
    const char *text_path = scratch("a.txt"), *json_path = scratch("a.json");

    (void)state;
    assert_int_equal(umdLogOpenFile(text_path, UMD_LOG_FORMAT_TEXT, "warn"), UMD_SUCCESS);
    assert_int_equal(umdLogOpenFile(json_path, UMD_LOG_FORMAT_JSON, "umd.test=info,off"), UMD_SUCCESS);
    UMD_LOG(UMD_LOG_INFO, "for json only");
    umdLogMessage(UMD_LOG_WARN, "other", 0, NULL, "for text only");
    const char *text = logged(text_path);
    assert_null(strstr(text, "for json only"));
    assert_non_null(strstr(text, "for text only"));
    const char *json = slurp(json_path);
    assert_non_null(strstr(json, "for json only"));
    assert_null(strstr(json, "for text only"));
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    umdLogCloseFile(UMD_LOG_FORMAT_JSON);
}

static void bad_levels_are_refused_whole(void **state)
{
    static const struct { const char *spec; int position; } bad[] = {
        { "loud", 0 }, { "umd=loud", 4 }, { "info,,warn", 5 }, { "=info", 0 }, { "umd=", 4 }, { "umd=info;warn", 4 },
    };
    char want[64];

    (void)state;
    assert_int_equal(umdLogSetLevels("umd.test=debug"), UMD_SUCCESS);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (umdLogSetLevels(bad[i].spec) != UMD_ERR_CONFIG_VALUE)
            fail_msg("%s was accepted", bad[i].spec);
        snprintf(want, sizeof(want), "position=%d ", bad[i].position);
        if (!strstr(last_error().figures, want))
            fail_msg("%s: %s", bad[i].spec, last_error().figures);
    }
    assert_int_equal(umdLogSetLevels(NULL), UMD_ERR_PARAM_NULL);
    assert_int_equal(umdLogSetLevels(""), UMD_SUCCESS);
}

static char expected[64][512];
static unsigned expected_count;

/* Logs, and has printf say what must be in the file. */
#define SAME(fmt_, ...)                                                                   \
    do {                                                                                  \
        UMD_LOG(UMD_LOG_INFO, fmt_, ##__VA_ARGS__);                                       \
        snprintf(expected[expected_count++], sizeof(expected[0]), fmt_, ##__VA_ARGS__);   \
    } while (0)

static void log_integers(void)
{
    SAME("plain, %d%% done", 5);
    SAME("%d %i %u %x %X %o", -5, 7, 4000000000u, 0xabcu, 0xDEFu, 8u);
    SAME("%hhd %hhu %hd %hu", (signed char)-3, (unsigned char)250, (short)-300, (unsigned short)65000);
    SAME("%ld %lu %lld %llu", -1l, 18446744073709551615ul, -9223372036854775807ll, 18446744073709551615ull);
    SAME("%zu %zd %td %jd %ju", (size_t)77, (ssize_t)-77, (ptrdiff_t)-8, (intmax_t)-9, (uintmax_t)9);
    SAME("%5d|%-5d|%05d|%+d|% d|%#x|%#o", 42, 42, 42, 42, 42, 42u, 42u);
    SAME("%*d|%-*d|%.*d|%*.*d", 6, 1, 6, 2, 3, 3, 8, 4, 5);
    SAME("%*d|%.*d|", -6, 1, -1, 5);
    SAME("%.3d %8.3d", 7, 7);
    SAME("%" PRIu64 " %" PRIx64, UINT64_MAX, UINT64_MAX);
    SAME("%c%c%c", 'a', 'b', '!');
}

static void log_others(void)
{
    char not_ended[3] = { 'x', 'y', 'z' };

    SAME("%f %e %g %a %F %E %G %A", 1.5, 2.5e10, 1e-5, 1.0, -0.25, 1e300, 123456789.0, 0.5);
    SAME("%.2f %10.3f %-10.1f| %+.1e", 3.14159, 2.71828, 9.99, -1234.5);
    SAME("%Lf %.3Le", 1.25L, 9.75L);
    SAME("%f %f", __builtin_inf(), -__builtin_inf());
    SAME("%s|%10s|%-10s|%.2s|", "str", "right", "left", "cut");
    SAME("%.*s", 3, not_ended);
    SAME("%s", "");
    SAME("%s", "caf\xc3\xa9");
    SAME("%p", (void *)0x1234abcd);
    const char *volatile null = NULL;
    UMD_LOG(UMD_LOG_INFO, "null %s", null);
    snprintf(expected[expected_count++], sizeof(expected[0]), "null (null)");
}

static void all_conversions_print_as_printf(void **state)
{
    const char *path = scratch("conv");

    (void)state;
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    expected_count = 0;
    log_integers();
    log_others();
    const char *text = logged(path);
    for (unsigned i = 0; i < expected_count; i++)
        expect_line(text, expected[i]);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

static void strings_are_copied_at_the_call(void **state)
{
    const char *path = scratch("copy");
    char word[16] = "before", *big = malloc(5000);

    (void)state;
    assert_non_null(big);
    memset(big, 'z', 4999);
    big[4999] = '\0';
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    UMD_LOG(UMD_LOG_INFO, "word=%s", word);
    strcpy(word, "after");
    UMD_LOG(UMD_LOG_INFO, "big=%s then=%d", big, 5); /* longer than an entry: cut, and said so */
    UMD_LOG(UMD_LOG_INFO, "next=%d", 6);
    free(big);
    const char *text = logged(path);
    expect_line(text, "word=before");
    expect_line(text, "next=6");
    assert_non_null(strstr(text, "zzz"));
    assert_non_null(strstr(text, "<cut>"));
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

#define SITE __attribute__((section("umd_log_sites"), used))

static void bad_format_only_degrades(void **state)
{
    static umdLogSite bad SITE = { .module = &umd_log_this_module, .func = "f", .file = "x.c", .fmt = "n=%d odd=%y x=%s", .line = 3,
                                   .level = UMD_LOG_INFO, .arg_count = 3, .has_strings = 1 };
    static umdLogSite count SITE = { .module = &umd_log_this_module, .func = "f", .file = "x.c", .fmt = "a%n b=%d", .line = 4,
                                     .level = UMD_LOG_INFO, .arg_count = 2 };
    static umdLogSite alone = { .module = &umd_log_this_module, .func = "f", .file = "x.c", .fmt = "wide=%ls n=%d", .line = 5,
                                .level = UMD_LOG_INFO, .arg_count = 2 };
    const char *path = scratch("badfmt");
    umdLogStats before, after;
    int n = 7;

    (void)state;
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    umdLogGetStats(&before);
    umd_log_emit(&bad, (const uint64_t[]){ 5, 6, UMD_LOG_BITS("seven") });
    umd_log_emit(&count, (const uint64_t[]){ UMD_LOG_BITS((void *)&n), 8 });
    umd_log_emit(&alone, (const uint64_t[]){ 0, 9 }); /* of a library that did not register its sites */
    const char *text = logged(path);
    expect_line(text, "n=5 odd=%y x=%s");
    expect_line(text, "a b=8");
    expect_line(text, "wide=%ls n=%d");
    assert_int_equal(n, 7); /* %n writes nothing */
    umdLogGetStats(&after);
    assert_int_equal(after.sink_errors - before.sink_errors, 1);
    assert_int_equal(after.records - before.records, 3);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

static struct json_object *get(struct json_object *o, const char *key)
{
    struct json_object *v = NULL;

    if (!json_object_object_get_ex(o, key, &v))
        fail_msg("no %s in %s", key, json_object_to_json_string(o));
    return v;
}

static void json_has_the_names_of_opentelemetry(void **state)
{
    const char *path = scratch("otel.json");

    (void)state;
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_JSON, "info"), UMD_SUCCESS);
    umd_record_set_context(31);
    struct umd_api_call call = { 0 };
    umd_api_enter(&call, "umdA", "x=%d", 1);
    (void)umd_api_exit(&call, UMD_FAIL(UMD_ERR_HW_PAGE_FAULT, "address=0x%x kernel=\"my gemm\" lane=%d lane=%d", 64, 3, 4));
    umd_record_set_context(0);
    umdLogMessage(UMD_LOG_WARN, "ccl", 8, "0123456789abcdef0123456789abcdef", "bad \"bytes\" \xff\n\\ end");
    umdLogMessage(UMD_LOG_INFO, "ccl", 8, "not-an-id", "x");
    char *text = strdup(logged(path));
    struct json_object *lines[4];
    char *save = NULL;
    for (int i = 0; i < 4; i++) {
        const char *line = strtok_r(i ? NULL : text, "\n", &save);
        assert_non_null(line);
        lines[i] = json_tokener_parse(line);
        if (!lines[i])
            fail_msg("no JSON: %s", line);
    }
    assert_null(strtok_r(NULL, "\n", &save));
    struct json_object *a = get(lines[0], "Attributes");
    assert_int_equal(json_object_get_int(get(lines[0], "SeverityNumber")), 17);
    assert_string_equal(json_object_get_string(get(lines[0], "SeverityText")), "ERROR");
    assert_true(strtoull(json_object_get_string(get(lines[0], "Timestamp")), NULL, 10) > 1600000000ull * 1000000000ull);
    assert_true(strtoull(json_object_get_string(get(lines[0], "ObservedTimestamp")), NULL, 10) > 0);
    assert_string_equal(json_object_get_string(get(a, "petrel.code_name")), "UMD_ERR_HW_PAGE_FAULT");
    assert_int_equal(json_object_get_int(get(a, "petrel.code")), UMD_ERR_HW_PAGE_FAULT);
    assert_string_equal(json_object_get_string(get(a, "petrel.context_id")), "31");
    assert_string_equal(json_object_get_string(get(a, "code.function.name")), "json_has_the_names_of_opentelemetry");
    struct json_object *figures = get(a, "petrel.figures");
    assert_string_equal(json_object_get_string(get(figures, "address")), "0x40");
    assert_string_equal(json_object_get_string(get(figures, "kernel")), "my gemm");
    assert_int_equal(json_object_get_int(get(figures, "lane")), 3);
    assert_string_equal(json_object_get_string(get(get(lines[0], "Resource"), "service.name")), "petrel");
    assert_int_equal(json_object_get_int(get(get(lines[0], "Resource"), "process.pid")), getpid());
    assert_string_equal(json_object_get_string(get(get(lines[0], "InstrumentationScope"), "Name")), "umd.test.log");
    a = get(get(lines[1], "Attributes"), "petrel.figures"); /* how it ended */
    assert_string_equal(json_object_get_string(get(a, "end")), "delivered");
    assert_string_equal(json_object_get_string(get(a, "call")), "umdA");
    assert_string_equal(json_object_get_string(get(a, "hops")), "");
    assert_string_equal(json_object_get_string(get(get(lines[1], "Attributes"), "petrel.record")),
                        json_object_get_string(get(get(lines[0], "Attributes"), "petrel.record")));
    assert_string_equal(json_object_get_string(get(lines[2], "TraceId")), "0123456789abcdef0123456789abcdef");
    assert_string_equal(json_object_get_string(get(lines[2], "Body")), "bad \"bytes\" \xef\xbf\xbd \\ end");
    assert_string_equal(json_object_get_string(get(get(lines[3], "Attributes"), "petrel.trace_id")), "not-an-id");
    for (int i = 0; i < 4; i++)
        json_object_put(lines[i]);
    free(text);
    umdLogCloseFile(UMD_LOG_FORMAT_JSON);
}

static void stepped_run(char **text_out, char **json_out)
{
    const char *text_path = scratch("step.txt"), *json_path = scratch("step.json");
    struct umd_api_call call = { 0 };

    umd_sys_step_begin(99);
    assert_int_equal(umdLogOpenFile(text_path, UMD_LOG_FORMAT_TEXT, "trace"), UMD_SUCCESS);
    assert_int_equal(umdLogOpenFile(json_path, UMD_LOG_FORMAT_JSON, "trace"), UMD_SUCCESS);
    for (int i = 0; i < 20; i++) {
        umd_sys_step_set_clock((uint64_t)i * 1000);
        umd_api_enter(&call, "umdA", "i=%d at=%p", i, (void *)&call);
        UMD_LOG(UMD_LOG_INFO, "step i=%d at=%p", i, (void *)&call);
        (void)umd_api_exit(&call, i % 3 ? UMD_SUCCESS : UMD_FAIL(UMD_ERR_HW_HANG, "i=%d", i));
    }
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    umdLogCloseFile(UMD_LOG_FORMAT_JSON);
    umd_sys_step_end();
    *text_out = strdup(slurp(text_path));
    *json_out = strdup(slurp(json_path));
}

static void stepped_logs_are_byte_identical(void **state)
{
    char *text[2], *json[2];

    (void)state;
    UMD_LOG(UMD_LOG_ERROR, "the writer thread is there before x=%d", 1);
    stepped_run(&text[0], &json[0]);
    usleep(2000);
    stepped_run(&text[1], &json[1]);
    assert_string_equal(text[0], text[1]);
    assert_true(count_of(text[0], "\n") > 25);
    assert_non_null(strstr(text[0], " 1.1 "));
    assert_null(strstr(text[0], "0x7f"));
    assert_string_equal(json[0], json[1]);
    assert_true(count_of(json[0], "\n") > 25);
    for (int i = 0; i < 2; i++) {
        free(text[i]);
        free(json[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_by_module_and_prefix), cmocka_unit_test(levels_per_sink), cmocka_unit_test(bad_levels_are_refused_whole),
        cmocka_unit_test(all_conversions_print_as_printf), cmocka_unit_test(strings_are_copied_at_the_call),
        cmocka_unit_test(bad_format_only_degrades), cmocka_unit_test(json_has_the_names_of_opentelemetry),
        cmocka_unit_test(stepped_logs_are_byte_identical),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    scratch_remove();
    return failed;
}
