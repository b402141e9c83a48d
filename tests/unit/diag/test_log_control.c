/* SPDX-License-Identifier: MIT */
/* test_log_control.c - the control socket: what it sets and tells, who is heard, and that no client holds the writer up. */
#include "diag_fixture.h"

#include <errno.h>
#include <json-c/json.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "log_control.h"

UMD_LOG_MODULE("umd.test.control");

static char answer[UMD_CONTROL_ANSWER_B];

static umdStatus ask(const char *command)
{
    umdStatus st = umd_log_control((uint32_t)getpid(), command, 20000, answer, sizeof(answer));

    if (st < 0)
        UMD_ABSORB(st, "A test asked.");
    return st;
}

static void levels_are_set_while_running(void **state)
{
    (void)state;
    umd_log_control_open();
    assert_int_equal(umdLogOpenFile(scratch("levels"), UMD_LOG_FORMAT_TEXT, NULL), UMD_SUCCESS);
    UMD_LOG(UMD_LOG_DEBUG, "before x=%d", 1);
    assert_int_equal(ask("level umd.test=trace"), UMD_SUCCESS);
    assert_non_null(strstr(answer, "{\"name\":\"text\",\"modules\":[{\"module\":\"umd.test\",\"level\":\"TRACE\",\"set_for\":\"all\",\"levels_from\":\"control\"}]}"));
    assert_int_equal(umd_log_this_module.level, UMD_LOG_TRACE);
    UMD_LOG(UMD_LOG_TRACE, "after x=%d", 2);
    assert_int_equal(ask("flush"), UMD_SUCCESS);
    const char *text = slurp(scratch("levels")); /* without a flush of our own */
    assert_null(strstr(text, "before x=1"));
    assert_int_equal(strstr(text, "after x=2") != NULL, UMD_LOG_CEILING >= UMD_LOG_TRACE);
    assert_non_null(strstr(text, "levels set by the control socket sink=all spec=\"umd.test=trace\""));
    assert_int_equal(ask("level loud"), UMD_ERR_CONFIG_VALUE);
    assert_non_null(strstr(answer, "mistake at position 0"));
    assert_int_equal(umd_log_this_module.level, UMD_LOG_TRACE); /* nothing changed */
    assert_int_equal(ask("level"), UMD_SUCCESS);
    assert_int_equal(umd_log_this_module.level, UMD_LOG_INFO);
    assert_int_equal(ask("dance"), UMD_ERR_CONFIG_VALUE);
    assert_non_null(strstr(answer, "known are: level SPEC"));
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

static struct json_object *member(struct json_object *o, const char *key)
{
    struct json_object *v = NULL;

    if (!json_object_object_get_ex(o, key, &v))
        fail_msg("no %s in %s", key, json_object_to_json_string(o));
    return v;
}

static void status_says_what_is_set_and_by_whom(void **state)
{
    (void)state;
    assert_int_equal(umdLogSetLevels("umd.mem=debug,warn"), UMD_SUCCESS);
    assert_int_equal(umdLogOpenFile("/dev/full", UMD_LOG_FORMAT_JSON, "info"), UMD_SUCCESS);
    assert_int_equal(ask("console error"), UMD_SUCCESS);
    UMD_LOG(UMD_LOG_ERROR, "lost x=%d", 1);
    assert_int_equal(ask("flush"), UMD_SUCCESS);
    assert_int_equal(ask("status"), UMD_SUCCESS);
    struct json_object *o = json_tokener_parse(answer);
    assert_non_null(o);
    assert_int_equal(json_object_get_int(member(o, "pid")), getpid());
    assert_string_equal(json_object_get_string(member(o, "levels")), "umd.mem=debug,warn");
    assert_string_equal(json_object_get_string(member(o, "levels_from")), "api");
    struct json_object *sinks = member(o, "sinks"), *console = json_object_array_get_idx(sinks, 0), *json = json_object_array_get_idx(sinks, 2);
    assert_int_equal(json_object_array_length(sinks), 6);
    assert_string_equal(json_object_get_string(member(console, "name")), "console");
    assert_string_equal(json_object_get_string(member(console, "levels")), "error");
    assert_string_equal(json_object_get_string(member(console, "levels_from")), "control");
    assert_string_equal(json_object_get_string(member(json, "path")), "/dev/full");
    assert_true(json_object_get_boolean(member(json, "failing")));
    assert_int_equal(json_object_get_int(member(json, "errno")), ENOSPC);
    assert_true(json_object_get_int(member(json, "waiting")) > 0);
    assert_true(json_object_get_int(member(member(o, "counts"), "sink_errors")) > 0);
    assert_string_equal(json_object_get_string(member(member(o, "modules"), "umd.test.control")), "INFO");
    json_object_put(o);
    assert_int_equal(ask("console off"), UMD_SUCCESS);
    assert_int_equal(umdLogSetLevels(""), UMD_SUCCESS);
    umdLogCloseFile(UMD_LOG_FORMAT_JSON);
}

/* LEVEL RULES BY: what the last answer says of a module at a sink, "" where it does not name the sink. */
static const char *told(const char *sink, const char *module)
{
    static char text[128];
    struct json_object *o = json_tokener_parse(answer);

    assert_non_null(o);
    text[0] = '\0';
    for (size_t i = 0; i < json_object_array_length(member(o, "sinks")); i++) {
        struct json_object *s = json_object_array_get_idx(member(o, "sinks"), i), *modules = member(s, "modules");
        for (size_t k = 0; strcmp(json_object_get_string(member(s, "name")), sink) == 0 && k < json_object_array_length(modules); k++) {
            struct json_object *m = json_object_array_get_idx(modules, k);
            if (strcmp(json_object_get_string(member(m, "module")), module) == 0)
                snprintf(text, sizeof(text), "%s %s %s", json_object_get_string(member(m, "level")), json_object_get_string(member(m, "set_for")),
                         json_object_get_string(member(m, "levels_from")));
        }
    }
    json_object_put(o);
    return text;
}

/* What is set for all does not reach it, and the answer says so; what is set for it does. */
static void a_sink_with_levels_of_its_own_is_told_and_set(void **state)
{
    char path[160];

    (void)state;
    path_of(path, sizeof(path), "own");
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "error"), UMD_SUCCESS);
    assert_int_equal(umdLogOpenFile(scratch("own.json"), UMD_LOG_FORMAT_JSON, NULL), UMD_SUCCESS);
    assert_int_equal(umdLogOpenFile(scratch("own.run"), UMD_LOG_FORMAT_RUN, NULL), UMD_SUCCESS);
    assert_int_equal(ask("level umd.test=info,kmd=warn,error"), UMD_SUCCESS);
    assert_string_equal(told("text", "umd.test"), "ERROR text api");
    assert_string_equal(told("json", "umd.test"), "INFO all control");
    assert_string_equal(told("json", "kmd"), "WARN all control");
    assert_string_equal(told("json", "*"), "ERROR all control");
    assert_string_equal(told("run", "kmd"), "WARN none default");
    assert_string_equal(told("run", "umd.test"), "INFO none default");
    assert_string_equal(told("binary", "kmd"), ""); /* not open */
    UMD_LOG(UMD_LOG_INFO, "not yet x=%d", 1);
    assert_int_equal(ask("sink text umd.test=info,diag=info"), UMD_SUCCESS);
    assert_string_equal(told("text", "umd.test"), "INFO text control");
    UMD_LOG(UMD_LOG_INFO, "now x=%d", 2);
    assert_int_equal(ask("sink run off"), UMD_SUCCESS);
    assert_string_equal(told("run", "*"), "OFF run control");
    assert_int_equal(ask("sink text"), UMD_SUCCESS); /* back to what is set for all */
    assert_string_equal(told("text", "*"), "ERROR all control");
    assert_int_equal(ask("flush"), UMD_SUCCESS);
    assert_null(strstr(slurp(path), "not yet x=1"));
    assert_non_null(strstr(slurp(path), "now x=2"));
    assert_non_null(strstr(slurp(path), "levels set by the control socket sink=text spec=\"umd.test=info,diag=info\""));
    assert_int_equal(ask("sink binary trace"), UMD_ERR_CONFIG_VALUE);
    assert_string_equal(answer, "the process has no such file: binary");
    assert_int_equal(ask("sink txt trace"), UMD_ERR_CONFIG_VALUE);
    assert_string_equal(answer, "unknown sink, known are: console text json binary run disaster");
    assert_int_equal(ask("sink"), UMD_ERR_CONFIG_VALUE);
    assert_int_equal(ask("sink json umd=loud"), UMD_ERR_CONFIG_VALUE);
    assert_non_null(strstr(answer, "mistake at position 4"));
    assert_int_equal(ask("level"), UMD_SUCCESS);
    assert_string_equal(told("json", "*"), "INFO none default");
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    umdLogCloseFile(UMD_LOG_FORMAT_JSON);
    umdLogCloseFile(UMD_LOG_FORMAT_RUN);
}

/* The same by call. */
static void each_file_can_be_set_by_call(void **state)
{
    (void)state;
    for (int i = 0; i <= UMD_LOG_FORMAT_DISASTER; i++) {
        char path[160];
        path_of(path, sizeof(path), "call");
        assert_int_equal(umdLogSetFileLevels((umdLogFormat)i, "info"), UMD_ERR_RES_FILE);
        assert_int_equal(umdLogOpenFile(path, (umdLogFormat)i, "off"), UMD_SUCCESS);
        UMD_LOG(UMD_LOG_INFO, "off x=%d", i);
        assert_int_equal(umdLogSetFileLevels((umdLogFormat)i, "umd.test=loud"), UMD_ERR_CONFIG_VALUE);
        assert_int_equal(umdLogSetFileLevels((umdLogFormat)i, NULL), UMD_ERR_PARAM_NULL);
        UMD_LOG(UMD_LOG_INFO, "still off x=%d", i);
        assert_int_equal(umdLogSetFileLevels((umdLogFormat)i, "umd.test=info,off"), UMD_SUCCESS);
        UMD_LOG(UMD_LOG_INFO, "on x=%d", i);
        umdLogCloseFile((umdLogFormat)i);
        FILE *f = fopen(path, "r");
        char bytes[65536];
        assert_non_null(f);
        size_t n = fread(bytes, 1, sizeof(bytes), f);
        fclose(f);
        if (i == UMD_LOG_FORMAT_BINARY) { /* a definition for each call site that is used, and no other */
            assert_non_null(memmem(bytes, n, "on x=%d", 7));
            assert_null(memmem(bytes, n, "off x=%d", 8));
        } else {
            assert_non_null(memmem(bytes, n, "on x=", 5));
            assert_null(memmem(bytes, n, "off x=", 6));
        }
    }
    assert_int_equal(umdLogSetFileLevels((umdLogFormat)77, "info"), UMD_ERR_PARAM_RANGE);
}

static void reopen_follows_logrotate(void **state)
{
    char path[160], moved[200];

    (void)state;
    snprintf(path, sizeof(path), "%s", scratch("rotate"));
    snprintf(moved, sizeof(moved), "%s-moved", path);
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    UMD_LOG(UMD_LOG_INFO, "line x=%d", 1);
    umdLogFlush(5000);
    assert_int_equal(rename(path, moved), 0);
    UMD_LOG(UMD_LOG_INFO, "line x=%d", 2); /* still for the old file */
    assert_int_equal(ask("reopen"), UMD_SUCCESS);
    assert_int_equal(access(path, F_OK), 0); /* there at once */
    UMD_LOG(UMD_LOG_INFO, "line x=%d", 3);
    umdLogFlush(5000);
    assert_int_equal(count_of(slurp(moved), "line x="), 2);
    const char *text = slurp(path);
    assert_int_equal(count_of(text, "line x="), 1);
    assert_non_null(strstr(text, "line x=3"));
    assert_int_equal(strncmp(text, "# petrel log", 12), 0);
    assert_int_equal(ask("reopen"), UMD_SUCCESS); /* nothing was moved: nothing happens */
    snprintf(moved, sizeof(moved), "%s.1", path);
    assert_int_equal(access(moved, F_OK), -1);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

/* As long as a path can be, in all files: the object is whole. */
static void the_status_holds_the_longest_paths(void **state)
{
    static char path[5][4096];
    char dir[3000];
    size_t n = (size_t)snprintf(dir, sizeof(dir), "%s", scratch("deep"));

    (void)state;
    for (assert_int_equal(mkdir(dir, 0700), 0); n < 2700; n += 251) {
        memset(dir + n, 'd', 251);
        dir[n] = '/';
        dir[n + 251] = '\0';
        assert_int_equal(mkdir(dir, 0700), 0);
    }
    for (int i = 0; i <= UMD_LOG_FORMAT_DISASTER; i++) {
        char *end = path[i] + sprintf(path[i], "%s", dir);
        for (int k = 0; k < 4; k++) /* of no effect, but long */
            end += sprintf(end, "/././././././././././././././././././././././././././././././././././././././././././././././././././././././././././././.");
        sprintf(end, "/%d", i);
        assert_int_equal(umdLogOpenFile(path[i], (umdLogFormat)i, NULL), UMD_SUCCESS);
    }
    assert_int_equal(ask("status"), UMD_SUCCESS);
    struct json_object *o = json_tokener_parse(answer);
    assert_non_null(o);
    for (int i = 0; i <= UMD_LOG_FORMAT_DISASTER; i++)
        assert_string_equal(json_object_get_string(member(json_object_array_get_idx(member(o, "sinks"), (size_t)i + 1), "path")), path[i]);
    json_object_put(o);
    for (int i = 0; i <= UMD_LOG_FORMAT_DISASTER; i++)
        umdLogCloseFile((umdLogFormat)i);
}

static int raw(void)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "petrel-control.%d", (int)getpid());
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)), 0);
    return fd;
}

static uint64_t stopped_clock(void) { return 1; }

static void flush_by(int fd)
{
    char got[8] = "";

    assert_int_equal(send(fd, "flush\n", 6, MSG_NOSIGNAL), 6);
    assert_int_equal(recv(fd, got, 3, MSG_WAITALL), 3);
    assert_string_equal(got, "ok\n");
}

/* The story of a failure is at its end: it is in the disaster log when "flush" answers. */
static void flush_tells_the_stories_too(void **state)
{
    static struct umd_sys table;
    int fd = raw();

    (void)state;
    flush_by(fd); /* its connection is taken */
    table = *umd_sys_default();
    table.mono_ns = stopped_clock; /* however slow the host is, no record waits too long */
    umd_sys_set(&table);
    assert_int_equal(umdLogOpenFile(scratch("stories"), UMD_LOG_FORMAT_DISASTER, NULL), UMD_SUCCESS);
    for (unsigned i = 1; i <= 10; i++) {
        umd_record_scope_begin();
        umdStatus st = UMD_FAIL(UMD_ERR_HW_HANG, "job=%u", i);
        umdLogFlush(20000); /* written, and waiting for its end */
        UMD_ABSORB(st, "A test made it.");
        umd_record_scope_end();
        flush_by(fd);
        assert_int_equal(count_of(slurp(scratch("stories")), "UMD_ERR_HW_HANG (-"), i);
    }
    umd_sys_set(NULL);
    umdLogCloseFile(UMD_LOG_FORMAT_DISASTER);
    close(fd);
}

static bool closed_by_peer(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    char text[256];

    for (;;) {
        if (poll(&p, 1, 20000) <= 0)
            return false;
        ssize_t n = recv(fd, text, sizeof(text), 0);
        if (n <= 0)
            return true;
    }
}

/* Silent, endless, deaf, torn, too many: the log and an ordinary client go on. */
static void hostile_clients_hold_nobody_up(void **state)
{
    char junk[4096];
    int silent = raw(), endless = raw(), zeros = raw(), pieces = raw(), deaf = raw();

    (void)state;
    memset(junk, 'x', sizeof(junk));
    assert_true(send(endless, junk, sizeof(junk), MSG_NOSIGNAL) > 0);
    assert_true(closed_by_peer(endless));
    assert_int_equal(send(zeros, "sta\0tus\n", 8, MSG_NOSIGNAL), 8);
    assert_true(closed_by_peer(zeros));
    assert_int_equal(send(pieces, "flu", 3, 0), 3);
    for (int i = 0; i < 2000; i++) /* never reads: its answers fill the socket, then it is closed */
        if (send(deaf, "status\nstatus\nstatus\n", 21, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EPIPE)
            break;
    assert_int_equal(ask("flush"), UMD_SUCCESS);
    assert_int_equal(send(pieces, "sh\nflush\r\n", 10, 0), 10);
    char got[16] = "";
    size_t used = 0;
    while (used < 6) {
        ssize_t n = recv(pieces, got + used, sizeof(got) - 1 - used, 0);
        assert_true(n > 0);
        used += (size_t)n;
    }
    assert_string_equal(got, "ok\nok\n");
    int many[12];
    for (int i = 0; i < 12; i++)
        many[i] = raw();
    UMD_LOG(UMD_LOG_ERROR, "the log goes on x=%d", 1);
    umdLogFlush(5000);
    for (int i = 0; i < 12; i++)
        close(many[i]);
    close(silent);
    close(endless);
    close(zeros);
    close(pieces);
    close(deaf);
    for (int i = 0; i < 100 && ask("flush") != UMD_SUCCESS; i++) /* until the places of those who left are free again */
        usleep(10000);
    assert_int_equal(ask("flush"), UMD_SUCCESS);
}

static void nobody_listens_where_nobody_should(void **state)
{
    int status;

    (void)state;
    assert_int_equal(umd_log_control(1, "status", 500, answer, sizeof(answer)), UMD_ERR_RES_FILE);
    UMD_ABSORB(UMD_ERR_RES_FILE, "A test asked.");
    pid_t pid = fork(); /* a child has none of its parent's, and can have its own */
    if (pid == 0) {
        if (umd_log_control((uint32_t)getpid(), "status", 500, answer, sizeof(answer)) != UMD_ERR_RES_FILE)
            _exit(1);
        umd_log_control_open();
        UMD_LOG(UMD_LOG_ERROR, "start the writer x=%d", 1);
        umd_log_control_open();
        _exit(umd_log_control((uint32_t)getpid(), "flush", 20000, answer, sizeof(answer)) == UMD_SUCCESS ? 0 : 2);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(ask("flush"), UMD_SUCCESS); /* the parent's is untouched */
    umd_log_control_close();
    assert_int_equal(ask("flush"), UMD_ERR_RES_FILE);
    assert_int_equal(umd_log_control(1, "two\nlines", 500, answer, sizeof(answer)), UMD_ERR_PARAM_RANGE);
    UMD_ABSORB(UMD_ERR_PARAM_RANGE, "A test asked.");
}

static void stepped_runs_have_none(void **state)
{
    (void)state;
    umd_sys_step_begin(1);
    umd_log_control_open();
    umd_sys_step_end();
    assert_int_equal(ask("flush"), UMD_ERR_RES_FILE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_are_set_while_running), cmocka_unit_test(status_says_what_is_set_and_by_whom),
        cmocka_unit_test(a_sink_with_levels_of_its_own_is_told_and_set), cmocka_unit_test(each_file_can_be_set_by_call),
        cmocka_unit_test(flush_tells_the_stories_too),
        cmocka_unit_test(the_status_holds_the_longest_paths), cmocka_unit_test(reopen_follows_logrotate), cmocka_unit_test(hostile_clients_hold_nobody_up),
        cmocka_unit_test(nobody_listens_where_nobody_should), cmocka_unit_test(stepped_runs_have_none),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    scratch_remove();
    return failed;
}
