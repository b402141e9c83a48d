/* SPDX-License-Identifier: MIT */
/* test_figures.c - the grammar of figures: what is written can be read back, whatever the arguments hold; kinds, units, limits. */
#include "diag_fixture.h"

UMD_LOG_MODULE("umd.test");

static char text[UMD_RECORD_FIGURES];

#define FORMAT(...) (text[0] = '\0', umd_figures_append(text, sizeof(text), __VA_ARGS__), text)

static umdFigure figure(const char *key)
{
    umdErrorDetail d = { .size_B = sizeof(d) };
    umdFigure f;

    strcpy(d.figures, text);
    assert_true(umdErrorDetailFigure(&d, key, &f));
    return f;
}

static void numbers_are_as_printf_writes_them(void **state)
{
    (void)state;
    assert_string_equal(FORMAT("a=%d b=%u c=%" PRIu64 " d=0x%x e=%zu f=%ld", -5, 7u, UINT64_MAX, 0xbeefu, (size_t)9, -1L),
                        "a=-5 b=7 c=18446744073709551615 d=0xbeef e=9 f=-1");
    assert_string_equal(FORMAT("a=0x%02lx b=%03u c=%+d d=%*d e=%hhu f=%.2f g=%c h=%%", 5ul, 7u, 3, 4, 5, (unsigned char)200, 1.5, 'x'),
                        "a=0x05 b=007 c=+3 d=\"   5\" e=200 f=1.50 g=x h=%");
    assert_string_equal(FORMAT("grid=%ux%ux%u range=%d..%d limit=%lld", 1, 2, 3, -1, INT32_MAX, (long long)INT64_MIN),
                        "grid=1x2x3 range=-1..2147483647 limit=-9223372036854775808");
    assert_string_equal(FORMAT("p=%p x=%d", (void *)text, 5), "p=? x=5"); /* never an address of the host */
}

static void strings_are_quoted_where_they_must_be(void **state)
{
    (void)state;
    assert_string_equal(FORMAT("a=%s b=\"%s\" c=%.2s", "word", "two words", "abc"), "a=word b=\"two words\" c=ab");
    assert_string_equal(FORMAT("a=%s b=%s d=%s", "two words", "", "x"), "a=\"two words\" b=\"\" d=x");
    assert_string_equal(FORMAT("a=\"%s\" b=%s", "say \"hi\" b=9 \\ \n\t\r\x01\x7f", "q\"q"),
                        "a=\"say \\\"hi\\\" b=9 \\\\ \\n\\t\\r\\x01\\x7f\" b=\"q\\\"q\"");
    assert_string_equal(FORMAT("key=%s.%s v=1", "a b", "c"), "key=\"a b.c\" v=1");
    assert_string_equal(FORMAT("name=%s", "\xc3\xa4\xff"), "name=\xc3\xa4\xff"); /* what is no UTF-8 is the sinks' business */
    assert_string_equal(FORMAT("a=1 %s", "b=2 c=\"x y\""), "a=1 b=2 c=\"x y\"");
    assert_string_equal(FORMAT("a=1 %s", ""), "a=1");
    assert_string_equal(FORMAT("a=1 %s", "prose here"), "a=1 tail=\"prose here\"");
    assert_string_equal(FORMAT("a=1 %s", "b=2 "), "a=1 tail=\"b=2 \"");
    umd_figures_append(text, sizeof(text), "c=%d", 3);
    assert_string_equal(text, "a=1 tail=\"b=2 \" c=3");
}

static void what_is_written_is_read_back(void **state)
{
    static const char *const nasty[] = { "", " ", "\"", "\\", "\\\"", "a=1", "a=1 b=2", "\" b=2", "x\\", "\\x41", "\n\r\t\x02", "true", "12", "-", "...", "=" };

    (void)state;
    for (size_t i = 0; i < sizeof(nasty) / sizeof(nasty[0]); i++)
        for (int quoted = 0; quoted < 2; quoted++) {
            if (quoted)
                FORMAT("first=%s second=%u third=\"%s\"", nasty[i], 2u, nasty[i]);
            else
                FORMAT("first=\"%s\" second=%u third=%s", nasty[i], 2u, nasty[i]);
            assert_string_equal(figure("first").text, nasty[i]);
            assert_string_equal(figure("third").text, nasty[i]);
            assert_int_equal(figure("second").uint_value, 2);
            const char *cursor = text;
            umdFigure f;
            int n = 0;
            while (umdFigureNext(&cursor, &f))
                n++;
            assert_int_equal(n, 3); /* and nothing that only looks like a figure */
            assert_int_equal(*cursor, '\0');
        }
}

static void kinds_and_units(void **state)
{
    static const struct { const char *text; umdFigureKind kind; } kinds[] = {
        { "0", UMD_FIGURE_UINT }, { "18446744073709551615", UMD_FIGURE_UINT }, { "18446744073709551616", UMD_FIGURE_STRING },
        { "-1", UMD_FIGURE_INT }, { "-9223372036854775808", UMD_FIGURE_INT }, { "-9223372036854775809", UMD_FIGURE_STRING },
        { "0x10", UMD_FIGURE_UINT }, { "0x", UMD_FIGURE_STRING }, { "-0x1", UMD_FIGURE_STRING }, { "0xg", UMD_FIGURE_STRING },
        { "1.5", UMD_FIGURE_DOUBLE }, { "-2.5e-3", UMD_FIGURE_DOUBLE }, { "1e9", UMD_FIGURE_DOUBLE }, { "1.2.3", UMD_FIGURE_STRING },
        { "1.", UMD_FIGURE_STRING }, { ".5", UMD_FIGURE_STRING }, { "nan", UMD_FIGURE_STRING }, { "true", UMD_FIGURE_BOOL },
        { "false", UMD_FIGURE_BOOL }, { "TRUE", UMD_FIGURE_STRING }, { "\"5\"", UMD_FIGURE_STRING }, { "1x2", UMD_FIGURE_STRING },
    };
    static const struct { const char *key; umdFigureUnit unit; } units[] = {
        { "free_B", UMD_UNIT_BYTES }, { "timeout_ns", UMD_UNIT_NS }, { "t_us", UMD_UNIT_US }, { "delay_ms", UMD_UNIT_MS },
        { "job", UMD_UNIT_NONE }, { "_B", UMD_UNIT_NONE }, { "grabB", UMD_UNIT_NONE },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        snprintf(text, sizeof(text), "x=%s", kinds[i].text);
        assert_int_equal(figure("x").kind, kinds[i].kind);
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) - 2; i++) {
        snprintf(text, sizeof(text), "%s=1", units[i].key);
        assert_int_equal(figure(units[i].key).unit, units[i].unit);
    }
    strcpy(text, "a=-3 b=0xff c=2.5 d=true e=18446744073709551615 f=7");
    assert_int_equal(figure("a").int_value, -3);
    assert_int_equal(figure("b").uint_value, 255);
    assert_true(figure("c").double_value == 2.5);
    assert_int_equal(figure("d").int_value, 1);
    assert_true(figure("e").int_value == INT64_MAX);
    assert_int_equal(figure("none|f|a").int_value, 7);
    umdErrorDetail d = { .size_B = sizeof(d) };
    umdFigure f;
    strcpy(d.figures, "reason=\"x=1 y=2\" z=3");
    assert_false(umdErrorDetailFigure(&d, "x", &f)); /* inside quotes */
    assert_false(umdErrorDetailFigure(&d, "", &f));
    assert_false(umdErrorDetailFigure(&d, NULL, &f));
    assert_false(umdErrorDetailFigure(NULL, "z", &f));
    assert_true(umdErrorDetailFigure(&d, "z", &f));
    memset(d.figures, 'x', sizeof(d.figures)); /* no end: from elsewhere */
    assert_false(umdErrorDetailFigure(&d, "x", &f));
}

static void lines_of_the_log_can_be_read(void **state)
{
    const char *cursor = "queue created id=3, name=\"a \\\"b\\\"\" 7=8 broken=\"no end";
    umdFigure f;

    (void)state;
    assert_true(umdFigureNext(&cursor, &f));
    assert_string_equal(f.key, "id");
    assert_string_equal(f.text, "3,");
    assert_true(umdFigureNext(&cursor, &f));
    assert_string_equal(f.text, "a \"b\"");
    assert_false(umdFigureNext(&cursor, &f));
}

static void what_does_not_fit_says_so(void **state)
{
    char big[2000], small[32];
    umdErrorDetail d = { .size_B = sizeof(d) };
    umdFigure f;

    (void)state;
    memset(big, 'y', sizeof(big));
    big[sizeof(big) - 1] = '\0';
    FORMAT("a=1 path=\"%s\" b=2", big);
    assert_int_equal(strlen(text), UMD_RECORD_FIGURES - 1);
    assert_string_equal(text + UMD_RECORD_FIGURES - 8, "yyy...\"");
    strcpy(d.figures, text);
    assert_true(umdErrorDetailFigure(&d, "path", &f));
    assert_int_equal(strlen(f.text), UMD_RECORD_FIGURES - 1 - strlen("a=1 path=\"\""));
    assert_false(umdErrorDetailFigure(&d, "b", &f));
    /* At each size: a whole figure, or one that ends in dots, or none; never half an escape. */
    for (size_t size = 1; size < sizeof(small); size++) {
        memset(small, 'z', sizeof(small));
        small[0] = '\0';
        umd_figures_append(small, size, "a=1 path=\"%s\" b=%s c=%u", "x\"\n\x01", "two words", 123456u);
        assert_true(strlen(small) < size);
        const char *cursor = small;
        size_t used = 0;
        while (umdFigureNext(&cursor, &f))
            used = (size_t)(cursor - small);
        assert_int_equal(used, strlen(small));
    }
    FORMAT("a=%s", "b\"");
    memset(big, '"', 700);
    big[700] = '\0';
    FORMAT("a=%s", big);
    assert_true(strlen(text) >= UMD_RECORD_FIGURES - 3);
    assert_string_equal(text + strlen(text) - 4, "...\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_as_printf_writes_them), cmocka_unit_test(strings_are_quoted_where_they_must_be),
        cmocka_unit_test(what_is_written_is_read_back), cmocka_unit_test(kinds_and_units), cmocka_unit_test(lines_of_the_log_can_be_read),
        cmocka_unit_test(what_does_not_fit_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
