/* SPDX-License-Identifier: MIT */
/* test_log_config.c - configuration file, environment over it, trace context. This program runs itself anew for each case. */
#include "diag_fixture.h"
#include "emergency.h"
#include "log_config.h"

UMD_LOG_MODULE("umd.test.config");

static char text[16384];

/* This program again, with an environment; what it logs is in main below. */
static const char *rerun(const char *environment)
{
    char command[2048], self[256];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    assert_true(n > 0);
    self[n] = '\0';
    snprintf(command, sizeof(command), "env -u UMD_LOG_CONSOLE -u XDG_CONFIG_HOME %s %s rerun 2>&1", environment, self);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    size_t used = fread(text, 1, sizeof(text) - 1, f);
    text[used] = '\0';
    assert_int_equal(pclose(f), 0);
    return text;
}

static const char *written(const char *name, const char *content)
{
    const char *path = scratch(name);
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    fputs(content, f);
    fclose(f);
    return path;
}

static void the_file_sets_and_the_environment_counts(void **state)
{
    char environment[1024], content[1024], log[160];

    (void)state;
    snprintf(log, sizeof(log), "%s", scratch("a.log"));
    snprintf(content, sizeof(content), "; a comment\n[other]\nUMD_LOG_CONSOLE = loud\n[log]\n  UMD_LOG_FILE = %s\n  UMD_LOG_CONSOLE = info\nUMD_LOG_FILE_LEVEL=error\n", log);
    snprintf(environment, sizeof(environment), "PETREL_CONFIG=%s", written("a.ini", content));
    const char *out = rerun(environment);
    assert_non_null(strstr(out, "info x=1"));
    assert_null(strstr(out, "setting ignored"));
    assert_null(strstr(slurp(log), "warn x=2"));
    assert_non_null(strstr(slurp(log), "error x=3"));
    snprintf(environment, sizeof(environment), "PETREL_CONFIG=%s UMD_LOG_CONSOLE=error UMD_LOG_FILE=", written("a.ini", content));
    unlink(log);
    out = rerun(environment);
    assert_null(strstr(out, "info x=1"));
    assert_non_null(strstr(out, "error x=3"));
    assert_int_equal(access(log, F_OK), -1); /* the empty one undoes the file's */
}

/* Where both are given, an empty one in the environment leaves what would be without the file. */
static void an_empty_variable_undoes_the_files(void **state)
{
    char environment[1024], content[1024], log[160], old[180];

    (void)state;
    snprintf(log, sizeof(log), "%s", scratch("kept.log"));
    snprintf(old, sizeof(old), "%s.1", log);
    snprintf(content, sizeof(content), "[log]\nUMD_LOG_FILE = %s\nUMD_LOG_KEEP = 0\nUMD_LOG_MAX_MIB = 1\nUMD_LOG_ROTATE = off\n"
             "UMD_LOG_FLUSH_MS = 60000\nUMD_CONTROL = off\n", log);
    const char *config = written("kept.ini", content);
    snprintf(environment, sizeof(environment), "PETREL_CONFIG=%s", config);
    for (int i = 0; i < 2; i++)
        assert_null(strstr(rerun(environment), "setting ignored"));
    assert_int_equal(access(old, F_OK), -1);
    snprintf(environment, sizeof(environment), "PETREL_CONFIG=%s UMD_LOG_KEEP= UMD_LOG_MAX_MIB= UMD_LOG_ROTATE= UMD_LOG_FLUSH_MS= UMD_CONTROL=", config);
    assert_null(strstr(rerun(environment), "setting ignored"));
    assert_int_equal(access(old, F_OK), 0);
    assert_non_null(strstr(slurp(log), "error x=3"));
}

static void mistakes_are_told_with_their_line(void **state)
{
    char environment[1024], long_line[400];

    (void)state;
    memset(long_line, 'x', sizeof(long_line) - 1);
    long_line[sizeof(long_line) - 1] = '\0';
    char content[2048];
    snprintf(content, sizeof(content), "[log]\nUMD_LOG_KEEP = many\nUMD_LOG_SPEED = 9\nUMD_LOG_LEVEL = loud\n%s\nUMD_LOG_ROTATE = weekly\nUMD_LOG_CONSOLE = info\nno value here\n",
             long_line);
    snprintf(environment, sizeof(environment), "PETREL_CONFIG=%s", written("bad.ini", content));
    const char *out = rerun(environment);
    assert_non_null(strstr(out, "key=UMD_LOG_KEEP value=\"many\" file=\""));
    assert_non_null(strstr(out, "bad.ini\" line=2 reason=\"not a number from 0 to 1000\""));
    assert_non_null(strstr(out, "line=3 reason=\"no such setting\""));
    assert_non_null(strstr(out, "line=4 reason=\"position 0 is no [module=]off|error"));
    assert_non_null(strstr(out, "line=5 reason=\"line too long\""));
    assert_non_null(strstr(out, "line=6 reason=\"daily, hourly or off\""));
    assert_non_null(strstr(out, "line=8 reason=\"neither [section] nor key = value\""));
    assert_int_equal(count_of(out, "setting ignored"), 6);
    assert_non_null(strstr(out, "info x=1")); /* the rest holds */
}

/* A tool asks what would be ignored: by the same code, and nothing is taken by it. */
static void settings_can_be_asked_about(void **state)
{
    static const struct { const char *key, *good, *bad, *reason; } rows[] = {
        { "UMD_LOG_LEVEL", "umd=debug,info", "umd=loud", "position 4 is no [module=]off" },
        { "UMD_LOG_CONSOLE", "off", "2", "position 0" }, { "UMD_LOG_FILE_LEVEL", "trace", "x", "position 0" },
        { "UMD_LOG_JSON_LEVEL", "trace", "x", "position 0" }, { "UMD_LOG_BINARY_LEVEL", "trace", "x", "position 0" },
        { "UMD_LOG_RUN_LEVEL", "trace", "x", "position 0" },
        { "UMD_LOG_MAX_MIB", "0", "-1", "not a number from 0 to 1048576" }, { "UMD_LOG_KEEP", "1000", "1001", "from 0 to 1000" },
        { "UMD_LOG_ROTATE", "Hourly", "weekly", "daily, hourly or off" }, { "UMD_LOG_FLUSH_MS", "1", "0", "from 1 to 60000" },
        { "UMD_CONTROL", "OFF", "maybe", "on or off" }, { "UMD_EMERGENCY", "file", "yes", "off or file" },
        { "UMD_EMERGENCY_FILE", "ring.bin", NULL, "path too long" },
        { "TRACEPARENT", "00-0123456789abcdef0123456789abcdef-00f067aa0ba902b7-01", "junk", "no W3C trace context" },
        { "UMD_LOG_FILE", "x.log", NULL, "path too long" }, { "UMD_LOG_JSON", "x", NULL, "path too long" },
        { "UMD_LOG_BINARY", "x", NULL, "path too long" }, { "UMD_LOG_RUN", "x", NULL, "path too long" },
        { "UMD_LOG_DISASTER", "x", NULL, "path too long" },
    };
    static char longest[9000];
    char reason[160];
    uint32_t count = 0;

    (void)state;
    memset(longest, 'x', sizeof(longest) - 1);
    while (umd_log_setting_at(count))
        count++;
    assert_int_equal(count, sizeof(rows) / sizeof(rows[0]));
    umdLogStats before, after;
    umdLogGetStats(&before);
    for (uint32_t i = 0; i < count; i++) {
        bool known = false;
        for (uint32_t k = 0; k < count; k++)
            known = known || strcmp(umd_log_setting_at(k), rows[i].key) == 0;
        assert_true(known);
        assert_true(umd_log_setting_check(rows[i].key, rows[i].good, false, reason, sizeof(reason)));
        assert_true(umd_log_setting_check(rows[i].key, "", false, reason, sizeof(reason)));
        assert_false(umd_log_setting_check(rows[i].key, rows[i].bad ? rows[i].bad : longest, false, reason, sizeof(reason)));
        assert_non_null(strstr(reason, rows[i].reason));
    }
    assert_false(umd_log_setting_check("UMD_LOG_FIEL", "x", false, reason, sizeof(reason)));
    assert_string_equal(reason, "no such setting");
    assert_false(umd_log_setting_check("TRACEPARENT", rows[13].good, true, reason, sizeof(reason))); /* of the environment alone */
    umdLogGetStats(&after);
    assert_int_equal(after.records, before.records); /* no warning either */
    assert_int_equal(access("x.log", F_OK), -1);
}

static void the_file_is_looked_for(void **state)
{
    char environment[1024], home[160], path[500];

    (void)state;
    snprintf(home, sizeof(home), "%s", scratch("home"));
    snprintf(path, sizeof(path), "mkdir -p %s/.config/petrel && printf '[log]\\nUMD_LOG_CONSOLE=info\\n' > %s/.config/petrel/petrel.ini", home, home);
    assert_int_equal(system(path), 0);
    snprintf(environment, sizeof(environment), "-u PETREL_CONFIG HOME=%s", home);
    assert_non_null(strstr(rerun(environment), "info x=1"));
    snprintf(environment, sizeof(environment), "-u PETREL_CONFIG XDG_CONFIG_HOME=%s/.config HOME=/nonexistent", home);
    assert_non_null(strstr(rerun(environment), "info x=1"));
    snprintf(environment, sizeof(environment), "PETREL_CONFIG= HOME=%s", home);
    assert_null(strstr(rerun(environment), "info x=1"));
    const char *out = rerun("PETREL_CONFIG=/nonexistent/petrel.ini");
    assert_int_equal(count_of(out, "setting ignored key=PETREL_CONFIG"), 1);
    assert_non_null(strstr(out, "No such file or directory"));
    out = rerun("PETREL_CONFIG=/tmp");
    assert_non_null(strstr(out, "not a file"));
}

/* How many records the ring has; -1: there is no such file. */
static int ring_count(const char *path)
{
    static struct umd_emergency_slot slots[UMD_EMERGENCY_SLOTS];
    uint32_t count = 0, damaged = 0;

    if (access(path, F_OK) != 0)
        return -1;
    assert_int_equal(umd_emergency_read(path, slots, UMD_EMERGENCY_SLOTS, &count, &damaged), UMD_SUCCESS);
    return (int)count;
}

/* It is known before the ring's file is made: that of the file alone is made, that of the environment alone where both name one. */
static void the_emergency_ring_goes_by_the_file_too(void **unused)
{
    char environment[2048], content[1024], of_file[160], of_env[160], moved[180], dir[160];

    (void)unused;
    snprintf(of_file, sizeof(of_file), "%s", scratch("file.ring"));
    snprintf(of_env, sizeof(of_env), "%s", scratch("env.ring"));
    snprintf(moved, sizeof(moved), "%s.1", of_file);
    snprintf(dir, sizeof(dir), "%s", scratch("ring.state"));
    snprintf(content, sizeof(content), "[log]\nUMD_EMERGENCY_FILE = %s\nUMD_EMERGENCY = maybe\n", of_file);
    const char *config = written("ring.ini", content);

    snprintf(environment, sizeof(environment), "-u UMD_EMERGENCY -u UMD_EMERGENCY_FILE PETREL_STATE_DIR=%s PETREL_CONFIG=%s UMD_LOG_CONSOLE=warn", dir, config);
    const char *out = rerun(environment);
    assert_non_null(strstr(out, "setting ignored key=UMD_EMERGENCY value=\"maybe\" file=\""));
    assert_non_null(strstr(out, "ring.ini\" line=3 reason=\"off or file\""));
    assert_int_equal(ring_count(of_file), 1); /* error x=3 */
    assert_int_equal(access(moved, F_OK), -1);
    assert_int_equal(access(dir, F_OK), -1);

    unlink(of_file);
    snprintf(environment, sizeof(environment), "-u UMD_EMERGENCY PETREL_STATE_DIR=%s PETREL_CONFIG=%s UMD_EMERGENCY_FILE=%s", dir, config, of_env);
    rerun(environment);
    assert_int_equal(ring_count(of_env), 1);
    assert_int_equal(ring_count(of_file), -1);

    snprintf(environment, sizeof(environment), "UMD_EMERGENCY=off PETREL_STATE_DIR=%s PETREL_CONFIG=%s UMD_EMERGENCY_FILE=", dir, config);
    rerun(environment);
    assert_int_equal(ring_count(of_file), -1); /* the empty one undoes the file's */
    assert_int_equal(access(dir, F_OK), -1);

    snprintf(environment, sizeof(environment), "-u UMD_EMERGENCY -u UMD_EMERGENCY_FILE PETREL_STATE_DIR=%s PETREL_CONFIG=%s", dir,
             written("off.ini", "[log]\nUMD_EMERGENCY = off\n"));
    rerun(environment);
    assert_int_equal(access(dir, F_OK), -1); /* in memory */
    snprintf(environment, sizeof(environment), "UMD_EMERGENCY= PETREL_STATE_DIR=%s PETREL_CONFIG=%s", dir, scratch("off.ini"));
    rerun(environment);
    assert_int_equal(access(dir, F_OK), 0); /* the environment's empty one undoes it */
}

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"

static void the_trace_context_is_in_every_line(void **state)
{
    char environment[1024], json[160], log[160];

    (void)state;
    snprintf(json, sizeof(json), "%s", scratch("trace.json"));
    snprintf(log, sizeof(log), "%s", scratch("trace.log"));
    snprintf(environment, sizeof(environment), "PETREL_CONFIG= UMD_LOG_CONSOLE=off UMD_LOG_JSON=%s UMD_LOG_FILE=%s TRACEPARENT=00-" TRACE "-" SPAN "-01", json, log);
    rerun(environment);
    const char *all = slurp(json);
    unsigned lines = count_of(all, "\n");
    assert_true(lines >= 4);
    assert_int_equal(count_of(all, "\"TraceId\":\"" TRACE "\",\"SpanId\":\"" SPAN "\",\"TraceFlags\":1"), lines - 1);
    const char *own = strstr(all, "\"TraceId\":\"0123456789abcdef0123456789abcdef\""); /* umdLogMessage's goes before, with no span */
    assert_non_null(own);
    assert_int_equal(strncmp(own + 44, ",\"SeverityNumber\"", 17), 0);
    all = slurp(log);
    assert_int_equal(count_of(all, " trace=" TRACE " span=" SPAN ": "), lines - 1);
    assert_int_equal(count_of(all, " trace=0123456789abcdef0123456789abcdef: "), 1);
}

static void a_malformed_trace_context_is_one_warning(void **state)
{
    static const char *const bad[] = {
        "00-" TRACE "-" SPAN "-0", "00-" TRACE "-" SPAN "-01-", "00-" TRACE "-" SPAN "-01-what", "ff-" TRACE "-" SPAN "-01",
        "00-00000000000000000000000000000000-" SPAN "-01", "00-" TRACE "-0000000000000000-01", "00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01",
        "00-" TRACE "_" SPAN "-01", "00-" TRACE "-" SPAN "-zz", "nonsense",
    };
    char environment[256];

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(environment, sizeof(environment), "PETREL_CONFIG= TRACEPARENT=%s", bad[i]);
        if (count_of(rerun(environment), "setting ignored key=TRACEPARENT") != 1)
            fail_msg("%s: %s", bad[i], text);
    }
    /* A later version may say more behind the fourth field. */
    snprintf(environment, sizeof(environment), "PETREL_CONFIG= TRACEPARENT=01-" TRACE "-" SPAN "-01-more");
    assert_int_equal(count_of(rerun(environment), "setting ignored"), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_sets_and_the_environment_counts), cmocka_unit_test(an_empty_variable_undoes_the_files), cmocka_unit_test(mistakes_are_told_with_their_line),
        cmocka_unit_test(settings_can_be_asked_about),
        cmocka_unit_test(settings_can_be_asked_about), cmocka_unit_test(the_file_is_looked_for), cmocka_unit_test(the_emergency_ring_goes_by_the_file_too),
        cmocka_unit_test(the_trace_context_is_in_every_line),
        cmocka_unit_test(a_malformed_trace_context_is_one_warning),
    };

    if (argc > 1 && strcmp(argv[1], "rerun") == 0) {
        UMD_LOG(UMD_LOG_INFO, "info x=%d", 1);
        UMD_LOG(UMD_LOG_WARN, "warn x=%d", 2);
        UMD_LOG(UMD_LOG_ERROR, "error x=%d", 3);
        umdLogMessage(UMD_LOG_WARN, "ccl", 0, "0123456789abcdef0123456789abcdef", "own trace");
        return 0;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    scratch_remove();
    return failed;
}
