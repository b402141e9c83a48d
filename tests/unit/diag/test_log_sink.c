/* SPDX-License-Identifier: MIT */
/* test_log_sink.c - what the log does when things go wrong: rotation, full disk, blocked sink, fork, exit, environment. */
#include "diag_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>

UMD_LOG_MODULE("umd.test.sink");

static void rotates_by_size_and_keeps_so_many(void **state)
{
    char path[128], old[160];
    unsigned lines = 0;

    (void)state;
    path_of(path, sizeof(path), "rot");
    umdLogSetRotation(8192, 2);
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    for (int i = 0; i < 300; i++) {
        UMD_LOG(UMD_LOG_INFO, "line i=%04d", i);
        if (i % 10 == 9)
            umdLogFlush(5000);
    }
    umdLogFlush(5000);
    for (int i = 0; i <= 3; i++) {
        if (i)
            snprintf(old, sizeof(old), "%s.%d", path, i);
        else
            snprintf(old, sizeof(old), "%s", path);
        const char *text = slurp(old);
        lines += count_of(text, "line i=");
        assert_int_equal(strlen(text) > 0, i <= 2);
        assert_true(strlen(text) <= 8192 + 512);
        if (i <= 2)
            assert_true(strncmp(text, "# petrel log", 12) == 0);
    }
    assert_non_null(strstr(slurp(path), "i=0299"));
    assert_in_range(lines, 100, 299);
    umdLogSetRotation(128u << 20, 5);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

static void an_older_file_is_kept(void **state)
{
    char old[160];

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(umdLogOpenFile(scratch("again"), UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
        UMD_LOG(UMD_LOG_INFO, "run=%d", i);
        umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    }
    snprintf(old, sizeof(old), "%s.1", scratch("again"));
    assert_non_null(strstr(slurp(old), "run=0"));
    assert_non_null(strstr(slurp(scratch("again")), "run=1"));
}

/* Two processes do not share a log file: the second is told, and the first one's file stays as it is. */
static void a_file_is_of_one_process(void **state)
{
    char path[256];
    struct stat st;
    int status;

    (void)state;
    path_of(path, sizeof(path), "shared");
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    UMD_LOG(UMD_LOG_INFO, "the first process writes");
    umdLogFlush(2000);
    pid_t pid = fork();
    if (pid == 0)
        _exit(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "info") == UMD_ERR_RES_FILE ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size > 0);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    /* Given back, it can be opened again. */
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

/* The file's owner, at work while another process opens the file: puts what was there away and locks a new one of its own. */
struct owner { char path[256], old[272]; int opens, before, after, fd; };
static struct owner owner;

static void owner_takes(void)
{
    (void)rename(owner.path, owner.old);
    owner.fd = open(owner.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (owner.fd < 0 || flock(owner.fd, LOCK_EX | LOCK_NB) != 0 || write(owner.fd, "the owner's\n", 12) != 12)
        abort();
}

static int open_in_a_race(const char *path, int flags, unsigned mode)
{
    int number = ++owner.opens;

    if (number == owner.before)
        owner_takes();
    int fd = umd_sys_default()->open(path, flags, mode);
    if (number == owner.after)
        owner_takes();
    return fd;
}

/* Whenever the other process comes, its file stays whole and in its place. */
static void a_race_for_a_file_is_lost_cleanly(void **state)
{
    static const struct { int before, after; } races[] = { { 0, 1 }, { 2, 0 }, { 0, 2 } };
    struct umd_sys table = *umd_sys_default();

    (void)state;
    table.open = open_in_a_race;
    for (size_t i = 0; i < sizeof(races) / sizeof(races[0]); i++) {
        owner = (struct owner){ .before = races[i].before, .after = races[i].after, .fd = -1 };
        snprintf(owner.path, sizeof(owner.path), "%s%zu", scratch("raced"), i);
        snprintf(owner.old, sizeof(owner.old), "%s.moved", owner.path);
        assert_int_equal(umdLogOpenFile(owner.path, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
        UMD_LOG(UMD_LOG_INFO, "an earlier run");
        umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
        umd_sys_set(&table);
        umdStatus st = umdLogOpenFile(owner.path, UMD_LOG_FORMAT_TEXT, "info");
        umd_sys_set(NULL);
        assert_int_equal(st, UMD_ERR_RES_FILE);
        assert_non_null(strstr(last_error().figures, "errno=16"));
        assert_true(owner.fd >= 0);
        assert_string_equal(slurp(owner.path), "the owner's\n");
        close(owner.fd);
        unlink(owner.path);
        unlink(owner.old);
    }
}

static void bad_path_is_one_clear_error(void **state)
{
    umd_record_counts before = counts_now();

    (void)state;
    assert_int_equal(umdLogOpenFile("/nonexistent/dir/log", UMD_LOG_FORMAT_TEXT, NULL), UMD_ERR_RES_FILE);
    assert_non_null(strstr(last_error().figures, "path=\"/nonexistent/dir/log\" errno=2 reason=\"No such file or directory\""));
    assert_int_equal(umdLogOpenFile(NULL, UMD_LOG_FORMAT_TEXT, NULL), UMD_ERR_PARAM_NULL);
    assert_int_equal(umdLogOpenFile(scratch("x"), (umdLogFormat)7, NULL), UMD_ERR_PARAM_RANGE);
    assert_int_equal(umdLogOpenFile(scratch("x"), UMD_LOG_FORMAT_TEXT, "loud"), UMD_ERR_CONFIG_VALUE);
    assert_int_equal(access(scratch("x"), F_OK), -1); /* no half-made file */
    assert_int_equal(counts_now().swallowed, before.swallowed);
    UMD_LOG(UMD_LOG_ERROR, "the log goes on x=%d", 1);
}

static void full_disk_degrades_and_warns_once(void **state)
{
    umdLogStats before, after;

    (void)state;
    assert_int_equal(umdLogOpenFile(scratch("full.txt"), UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    assert_int_equal(umdLogOpenFile("/dev/full", UMD_LOG_FORMAT_JSON, "info"), UMD_SUCCESS);
    umdLogGetStats(&before);
    for (int i = 0; i < 5; i++) {
        UMD_LOG(UMD_LOG_INFO, "into the void i=%d", i);
        umdLogFlush(5000);
    }
    umdLogGetStats(&after);
    assert_true(after.sink_errors - before.sink_errors >= 5);
    assert_int_equal(after.sink_errno, ENOSPC);
    const char *text = logged(scratch("full.txt"));
    assert_int_equal(count_of(text, "log sink fails, its records are kept while there is room, then lost"), 1);
    assert_non_null(strstr(text, "sink=json path=\"/dev/full\" errno=28"));
    assert_int_equal(count_of(text, "into the void"), 5); /* the other sink is not hurt */
    assert_true(after.lost - before.lost >= 5); /* kept so far, but not written */
    umdLogCloseFile(UMD_LOG_FORMAT_JSON);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

static _Atomic(int) write_errno;
static _Atomic(unsigned) writes_failed;
static ssize_t failing_write(int fd, const void *buf, size_t n)
{
    if (!atomic_load(&write_errno))
        return umd_sys_default()->write(fd, buf, n);
    atomic_fetch_add(&writes_failed, 1);
    errno = atomic_load(&write_errno);
    return -1;
}

/* While it lasts nothing is lost that fits, then what does not fit is counted; when the cause is gone, all is told where it was lost. */
static void what_fits_survives_a_failure(void **state)
{
    struct umd_sys table = *umd_sys_default();
    umdLogStats before, after;
    static const int causes[] = { ENOSPC, EROFS, EIO, EDQUOT };

    (void)state;
    table.write = failing_write;
    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
        assert_int_equal(umdLogOpenFile(scratch("back"), UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
        umdLogGetStats(&before);
        UMD_LOG(UMD_LOG_INFO, "before x=%d", 0);
        umdLogFlush(5000);
        umd_sys_set(&table);
        atomic_store(&write_errno, causes[i]);
        UMD_LOG(UMD_LOG_WARN, "kept x=%d", 1);
        umdLogFlush(5000);
        for (int k = 0; k < 6000; k++) { /* more than the buffer holds */
            UMD_LOG(UMD_LOG_INFO, "many k=%04d", k);
            if (k % 100 == 99)
                umdLogFlush(5000);
        }
        umdLogFlush(5000);
        atomic_store(&write_errno, 0);
        UMD_LOG(UMD_LOG_INFO, "after x=%d", 2); /* no room for it, but it brings the flush */
        umdLogFlush(5000);
        umd_sys_set(NULL);
        umdLogGetStats(&after);
        assert_int_equal(after.sink_errno, causes[i]);
        uint64_t lost = after.lost - before.lost;
        const char *text = logged(scratch("back"));
        assert_non_null(strstr(text, "before x=0"));
        assert_non_null(strstr(text, "kept x=1"));
        assert_true(lost > 1000);
        assert_int_equal(count_of(text, "many k=") + count_of(text, "after x=2") + lost + (after.dropped - before.dropped), 6001);
        char want[64];
        snprintf(want, sizeof(want), "log sink works again records_lost=%llu", (unsigned long long)lost);
        assert_int_equal(count_of(text, "log sink works again"), 1);
        assert_non_null(strstr(text, want));
        umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    }
}

enum { MANY = 40000 }; /* more than a ring holds */

static void a_blocked_sink_blocks_nobody(void **state)
{
    umdLogStats before, after;

    (void)state;
    assert_int_equal(umdLogOpenFile(scratch("blocked"), UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    umdLogGetStats(&before);
    writer_stop();
    uint64_t start_ns = umd_sys()->mono_ns();
    for (int i = 0; i < MANY; i++)
        UMD_LOG(UMD_LOG_INFO, "many i=%d", i);
    for (int i = 0; i < 300; i++)
        UMD_LOG(UMD_LOG_ERROR, "trouble i=%d", i);
    UMD_LOG(UMD_LOG_ERROR, "other trouble x=%d", 2);
    umdLogFlush(50); /* gives up in time */
    uint64_t took_ns = umd_sys()->mono_ns() - start_ns;
    writer_go();
    umdLogFlush(60000);
    assert_true(took_ns < 2000000000ull);
    umdLogGetStats(&after);
    uint64_t dropped = after.dropped - before.dropped;
    assert_true(dropped > 301); /* so many do not fit in a ring */
    assert_int_equal(after.records - before.records + dropped, 1 + MANY + 301 + 2);
    assert_int_equal(after.emergency - before.emergency, 301);
    const char *text = logged(scratch("blocked"));
    assert_int_equal(count_of(text, "log records were dropped"), 1);
    assert_int_equal(count_of(text, "many i=") + dropped, MANY + 301);
    /* An error is not dropped: the first of a call site is kept, the others are counted. */
    assert_int_equal(count_of(text, "trouble i="), 1);
    assert_non_null(strstr(text, "trouble i=0 folded=299"));
    assert_int_equal(count_of(text, "other trouble x=2 ["), 1);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

static void fill_the_ring(void)
{
    umdLogStats before, after;

    umdLogGetStats(&before);
    do {
        UMD_LOG(UMD_LOG_INFO, "many of=%d", 1);
        umdLogGetStats(&after);
    } while (after.dropped == before.dropped);
}

enum { SITES = 1000 };
static umdLogSite sites[SITES] __attribute__((aligned(64)));
static umdLogModule sites_module = { .name = "umd.test.sites" };

/* While nothing can be written: the first error of each call site waits, and each module's messages are a call site of their own. */
static void the_first_error_of_each_call_site_is_kept(void **state)
{
    static const char *const modules[] = { "ccl", "framework", "framework.io" };
    char part[64];

    (void)state;
    for (uint32_t i = 0; i < SITES; i++)
        sites[i] = (umdLogSite){ .module = &sites_module, .func = "made", .file = "made.c", .line = 1, .fmt = "site=%d time=%d", .arg_count = 2,
                                 .level = UMD_LOG_ERROR };
    umd_log_module_register(&sites_module, sites, sites + SITES);
    assert_int_equal(umdLogOpenFile(scratch("each"), UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    writer_stop();
    fill_the_ring();
    for (uint64_t time = 0; time < 3; time++)
        for (uint64_t i = 0; i < SITES; i++)
            umd_log_emit(&sites[i], (const uint64_t[]){ i, time });
    for (int i = 0; i < 6; i++) {
        snprintf(part, sizeof(part), "of a framework number=%d", i);
        umdLogMessage(UMD_LOG_ERROR, modules[i % 3], 0, NULL, part);
    }
    writer_go();
    umdLogFlush(60000);
    const char *text = logged(scratch("each"));
    assert_int_equal(count_of(text, " umd.test.sites depth=0: site="), SITES);
    assert_int_equal(count_of(text, " time=0 folded=2 "), SITES);
    for (int i = 0; i < SITES; i++) {
        snprintf(part, sizeof(part), ": site=%d time=0 folded=2 ", i);
        assert_int_equal(count_of(text, part), 1);
    }
    for (int i = 0; i < 3; i++) {
        snprintf(part, sizeof(part), " %s depth=0: of a framework number=%d folded=1 ", modules[i], i);
        assert_int_equal(count_of(text, part), 1);
    }
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    umd_log_module_unregister(&sites_module, sites);
}

static void logs_in_handler(int sig)
{
    UMD_LOG(UMD_LOG_ERROR, "in a handler sig=%d name=%s", sig, "alarm");
    UMD_LOG(UMD_LOG_INFO, "also in a handler sig=%d", sig);
}

/* A handler that interrupts a log call must not spoil its entry, nor wait for it. */
static void a_signal_handler_may_log(void **state)
{
    const struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { 0 };
    struct sigaction sa = { .sa_handler = logs_in_handler }, old;
    const char *path = scratch("handler");
    umdLogStats before, after;
    unsigned sent = 0, told = 0, folded;

    (void)state;
    assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    UMD_LOG(UMD_LOG_INFO, "the log is up x=%d", 0);
    umdLogGetStats(&before);
    assert_int_equal(sigaction(SIGALRM, &sa, &old), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    do {
        if (sent < 20000) { /* so many fit in what slurp reads */
            UMD_LOG(UMD_LOG_INFO, "interrupted i=%u text=%s", sent, "some text that is copied");
            if (++sent % 1000 == 0)
                umdLogFlush(60000);
        }
        umdLogGetStats(&after);
    } while (after.emergency - before.emergency < 20);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);
    const char *text = logged(path);
    umdLogGetStats(&after);
    for (const char *at = text; (at = strstr(at, "in a handler sig=14 name=alarm")); at++, told++)
        if (sscanf(at, "in a handler sig=14 name=alarm folded=%u", &folded) == 1)
            told += folded;
    assert_int_equal(told, after.emergency - before.emergency); /* no error is lost */
    assert_int_equal(count_of(text, "text=some text that is copied ["), count_of(text, "interrupted i="));
    assert_true(count_of(text, "interrupted i=") + after.dropped - before.dropped >= sent);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

static void *logs_in_thread(void *arg)
{
    for (int i = 0; i < 200; i++)
        UMD_LOG(UMD_LOG_INFO, "thread=%d i=%d", (int)(intptr_t)arg, i);
    return NULL;
}

static void threads_lose_nothing_and_keep_their_order(void **state)
{
    pthread_t t[8];
    int next[8] = { 0 };

    (void)state;
    assert_int_equal(umdLogOpenFile(scratch("threads"), UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    for (intptr_t i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&t[i], NULL, logs_in_thread, (void *)i), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(t[i], NULL); /* their rings outlive them */
    const char *text = logged(scratch("threads"));
    for (const char *s = text; (s = strstr(s, "thread=")); s++) {
        int thread, i;
        assert_int_equal(sscanf(s, "thread=%d i=%d", &thread, &i), 2);
        assert_int_equal(i, next[thread]++);
    }
    for (int i = 0; i < 8; i++)
        assert_int_equal(next[i], 200);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

static void child_logs(void *arg)
{
    (void)arg;
    UMD_LOG(UMD_LOG_INFO, "from the child pid=%d", (int)getpid());
    umdLogFlush(5000);
    fprintf(stderr, "%d", (int)getpid());
}

static void a_forked_child_has_its_own_file(void **state)
{
    char text[64], path[192];

    (void)state;
    assert_int_equal(umdLogOpenFile(scratch("fork"), UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    UMD_LOG(UMD_LOG_INFO, "from the parent x=%d", 1); /* not yet written at the fork */
    assert_int_equal(in_child(child_logs, NULL, text, sizeof(text)), 0);
    UMD_LOG(UMD_LOG_INFO, "from the parent x=%d", 2);
    const char *log = logged(scratch("fork"));
    assert_int_equal(count_of(log, "from the parent"), 2);
    assert_null(strstr(log, "from the child"));
    snprintf(path, sizeof(path), "%s.%d", scratch("fork"), atoi(text));
    log = slurp(path);
    assert_int_equal(count_of(log, "from the child"), 1);
    assert_null(strstr(log, "from the parent"));
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

static int no_thread(pthread_t *t, const char *name, void *(*fn)(void *), void *arg)
{
    (void)t; (void)name; (void)fn; (void)arg;
    return EAGAIN;
}

static void child_without_thread(void *arg)
{
    struct umd_sys table = *umd_sys_default();

    table.thread_create = no_thread;
    umd_sys_set(&table);
    if (umdLogOpenFile(arg, UMD_LOG_FORMAT_TEXT, "info") != UMD_SUCCESS)
        _exit(3);
    UMD_LOG(UMD_LOG_INFO, "written at once x=%d", 1);
    if (!strstr(slurp(arg), "written at once x=1"))
        _exit(4);
}

static void without_a_thread_it_writes_at_once(void **state)
{
    char text[256];

    (void)state;
    assert_int_equal(in_child(child_without_thread, (void *)(uintptr_t)scratch("sync"), text, sizeof(text)), 0);
}

/* This program again, with an environment; what it logs is in main below. */
static int rerun(const char *environment, char *text, size_t size)
{
    char command[1024], self[256];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    assert_true(n > 0);
    self[n] = '\0';
    snprintf(command, sizeof(command), "env -u UMD_LOG_CONSOLE %s %s rerun 2>&1", environment, self);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    size_t used = fread(text, 1, size - 1, f);
    text[used] = '\0';
    return pclose(f);
}

static void environment_sets_sinks_and_exit_drains(void **state)
{
    char text[8192], environment[512];

    (void)state;
    assert_int_equal(rerun("", text, sizeof(text)), 0);
    assert_non_null(strstr(text, "petrel WARN  umd.test.sink: warn x=2 [")); /* the console's default */
    assert_null(strstr(text, "info x=1"));
    snprintf(environment, sizeof(environment), "UMD_LOG_CONSOLE=off UMD_LOG_FILE=%s UMD_LOG_JSON=%s UMD_LOG_LEVEL=umd.test=info", scratch("env.txt"),
             scratch("env.json"));
    assert_int_equal(rerun(environment, text, sizeof(text)), 0);
    assert_string_equal(text, "");
    assert_non_null(strstr(slurp(scratch("env.txt")), "info x=1")); /* nobody flushed */
    assert_non_null(strstr(slurp(scratch("env.json")), "\"Body\":\"warn x=2\""));
}

static void a_child_forked_before_the_first_line_has_its_own_file(void **state)
{
    char text[8192], environment[512];

    (void)state;
    snprintf(environment, sizeof(environment), "RERUN_FORKS=1 UMD_LOG_CONSOLE=off UMD_LOG_FILE=%s", scratch("early"));
    assert_int_equal(rerun(environment, text, sizeof(text)), 0);
    const char *log = slurp(scratch("early"));
    assert_non_null(strstr(log, "warn x=2"));
    assert_null(strstr(log, "child x=3"));
}

static void bad_environment_only_degrades(void **state)
{
    char text[8192];

    (void)state;
    assert_int_equal(rerun("UMD_LOG_LEVEL=loud UMD_LOG_KEEP=many UMD_LOG_FILE=/nonexistent/log UMD_EMERGENCY_FILE=/nonexistent/ring", text, sizeof(text)), 0);
    assert_non_null(strstr(text, "warn x=2"));
    assert_int_equal(count_of(text, "setting ignored key=UMD_LOG_LEVEL value=\"loud\""), 1);
    assert_int_equal(count_of(text, "setting ignored key=UMD_LOG_KEEP"), 1);
    assert_int_equal(count_of(text, "log sink fails"), 1);
    assert_int_equal(count_of(text, "emergency file not usable"), 1);
}

/* ---- Rotation and faults ---- */

static _Atomic(unsigned) renames;
static int counted_rename(const char *from, const char *to)
{
    if (atomic_fetch_add(&renames, 1) >= 1000)
        _exit(3);
    return umd_sys_default()->rename(from, to);
}

static void keep_child(void *arg)
{
    struct umd_sys table = *umd_sys_default();

    table.rename = counted_rename;
    umdLogSetRotation(4096, UINT32_MAX);
    if (umdLogOpenFile(arg, UMD_LOG_FORMAT_TEXT, "info") != UMD_SUCCESS)
        _exit(1);
    UMD_LOG(UMD_LOG_INFO, "early x=%d", 1);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    umd_sys_set(&table);
    if (umdLogOpenFile(arg, UMD_LOG_FORMAT_TEXT, "info") != UMD_SUCCESS) /* the older file moves on */
        _exit(2);
    umd_sys_set(NULL);
}

static void so_many_files_are_kept_as_can_be_renamed(void **state)
{
    char path[160], text[4096];

    (void)state;
    path_of(path, sizeof(path), "keep");
    assert_int_equal(in_child(keep_child, path, text, sizeof(text)), 0);
}

/* A fault that fires under the log's own lock would be logged at once, by the thread that holds it. */
static void stepped_fault_child(void *arg)
{
    umd_sys_step_begin(7);
    if (umdLogOpenFile(arg, UMD_LOG_FORMAT_TEXT, "debug") != UMD_SUCCESS || umdLogSetLevels("debug") != UMD_SUCCESS ||
        umd_fault_plan_set("sys.open=fail;sys.write=1*fail") != UMD_SUCCESS)
        _exit(1);
    umdLogReopen();
    if (umdLogOpenFile(arg, UMD_LOG_FORMAT_JSON, "debug") != UMD_ERR_RES_FILE)
        _exit(2);
    umdLogCloseFile(UMD_LOG_FORMAT_JSON);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

static void a_fault_in_the_log_of_a_stepped_run_stops_nobody(void **state)
{
    char path[160], text[4096];

    (void)state;
    path_of(path, sizeof(path), "fault");
    int status = in_child(stepped_fault_child, path, text, sizeof(text));
    if (status != 0)
        fail_msg("status 0x%x: %s", (unsigned)status, text);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rotates_by_size_and_keeps_so_many), cmocka_unit_test(an_older_file_is_kept), cmocka_unit_test(a_file_is_of_one_process),
        cmocka_unit_test(a_race_for_a_file_is_lost_cleanly), cmocka_unit_test(bad_path_is_one_clear_error),
        cmocka_unit_test(full_disk_degrades_and_warns_once), cmocka_unit_test(what_fits_survives_a_failure),
        cmocka_unit_test(a_blocked_sink_blocks_nobody), cmocka_unit_test(the_first_error_of_each_call_site_is_kept),
        cmocka_unit_test(a_signal_handler_may_log),
        cmocka_unit_test(threads_lose_nothing_and_keep_their_order), cmocka_unit_test(a_forked_child_has_its_own_file),
        cmocka_unit_test(without_a_thread_it_writes_at_once), cmocka_unit_test(environment_sets_sinks_and_exit_drains),
        cmocka_unit_test(a_child_forked_before_the_first_line_has_its_own_file), cmocka_unit_test(bad_environment_only_degrades),
        cmocka_unit_test(so_many_files_are_kept_as_can_be_renamed), cmocka_unit_test(a_fault_in_the_log_of_a_stepped_run_stops_nobody),
    };

    if (argc > 1 && strcmp(argv[1], "rerun") == 0) {
        pid_t pid = getenv("RERUN_FORKS") ? fork() : -1;
        if (pid == 0) {
            UMD_LOG(UMD_LOG_WARN, "child x=%d", 3);
            umdLogFlush(5000);
            _exit(0);
        }
        if (pid > 0)
            waitpid(pid, NULL, 0);
        UMD_LOG(UMD_LOG_INFO, "info x=%d", 1);
        UMD_LOG(UMD_LOG_WARN, "warn x=%d", 2);
        return 0;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    scratch_remove();
    return failed;
}
