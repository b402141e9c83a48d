/* SPDX-License-Identifier: MIT */
/* test_log_files.c - log files and the host: dates, removed files, closed and full pipes, limits, full file systems, no memory; run and disaster log. */
#include "diag_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "emergency.h"

UMD_LOG_MODULE("umd.test.files");

static void open_text(const char *path) { assert_int_equal(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS); }

/* Runs it in a child; what it said is shown if it failed. */
static void expect_child(void (*fn)(void *), void *arg)
{
    char said[4096];
    int status = in_child(fn, arg, said, sizeof(said));

    if (strstr(said, "ThreadSanitizer: dup thread with used id")) /* it cannot follow a child's thread at the place of a parent's */
        skip();
    if (status != 0)
        fail_msg("status 0x%x: %s", (unsigned)status, said);
}

/* ---- Dates ---- */

static _Atomic(uint64_t) wall_ns;
static uint64_t wall(void) { return atomic_load(&wall_ns); }

static void a_new_day_begins_a_new_file(void **state)
{
    static const struct { umdLogPeriod period; uint64_t step_s; bool rotates; } cases[] = {
        { UMD_LOG_PERIOD_DAILY, 86400, true }, { UMD_LOG_PERIOD_DAILY, 3600, false }, { UMD_LOG_PERIOD_HOURLY, 3600, true },
        { UMD_LOG_PERIOD_HOURLY, 60, false }, { UMD_LOG_PERIOD_OFF, 86400, false },
    };
    struct umd_sys table = *umd_sys_default();
    char path[160], old[200];

    (void)state;
    table.real_ns = wall;
    atomic_store(&wall_ns, (uint64_t)(20000 * 86400ull + 36000) * 1000000000u); /* ten in the morning, in UTC */
    umd_sys_set(&table);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char name[32];
        snprintf(name, sizeof(name), "day%zu", i);
        path_of(path, sizeof(path), name);
        snprintf(old, sizeof(old), "%s.1", path);
        assert_int_equal(umdLogSetRotationPeriod(cases[i].period), UMD_SUCCESS);
        open_text(path);
        UMD_LOG(UMD_LOG_INFO, "early x=%d", 1);
        umdLogFlush(10000);
        atomic_fetch_add(&wall_ns, cases[i].step_s * 1000000000u);
        UMD_LOG(UMD_LOG_INFO, "late x=%d", 2);
        const char *text = logged(path);
        assert_non_null(strstr(text, "late x=2"));
        assert_int_equal(strstr(text, "early x=1") != NULL, !cases[i].rotates);
        assert_int_equal(strstr(slurp(old), "early x=1") != NULL, cases[i].rotates);
        umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    }
    umd_sys_set(NULL);
    assert_int_equal(umdLogSetRotationPeriod(UMD_LOG_PERIOD_DAILY), UMD_SUCCESS);
    assert_int_equal(umdLogSetRotationPeriod((umdLogPeriod)9), UMD_ERR_PARAM_RANGE);
}

/* Days are worked out without the C library, whose lock a forked child may find taken. */
static void times_are_those_of_the_calendar(void **state)
{
    static const uint64_t moments[] = { 0, 951782399, 951782400, 951868799, 951868800, 1735689599, 1735689600, 4107542399, 4107542400, 13574563200, 18446744073 };
    static struct umd_sys table;
    char path[160], wanted[64];

    (void)state;
    table = *umd_sys_default();
    table.real_ns = wall;
    umd_sys_set(&table);
    path_of(path, sizeof(path), "times");
    for (uint64_t i = 0; i < 60; i++) {
        const time_t at = (time_t)(i < sizeof(moments) / sizeof(moments[0]) ? moments[i] : i * 200000000u + i * i * 1234567u);
        struct tm tm;
        atomic_store(&wall_ns, (uint64_t)at * 1000000000u + 7);
        open_text(path);
        UMD_LOG(UMD_LOG_INFO, "line i=%d", (int)i);
        const char *text = logged(path); /* its first line says when it was opened */
        gmtime_r(&at, &tm);
        strftime(wanted, sizeof(wanted), ", opened %Y-%m-%dT%H:%M:%S.000000007Z\n", &tm);
        if (!strstr(text, wanted))
            fail_msg("not%sbut %.100s", wanted, text);
    }
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    umd_sys_set(NULL);
}

/* ---- Removed ---- */

static void a_removed_file_comes_back(void **state)
{
    char dir[160], path[200];

    (void)state;
    path_of(dir, sizeof(dir), "gone");
    assert_int_equal(mkdir(dir, 0755), 0);
    snprintf(path, sizeof(path), "%s/log", dir);
    open_text(path);
    UMD_LOG(UMD_LOG_INFO, "line x=%d", 1);
    umdLogFlush(10000);
    assert_int_equal(unlink(path), 0);
    UMD_LOG(UMD_LOG_INFO, "line x=%d", 2);
    assert_non_null(strstr(logged(path), "line x=2"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
    UMD_LOG(UMD_LOG_INFO, "line x=%d", 3);
    const char *text = logged(path);
    assert_non_null(strstr(text, "line x=3"));
    assert_int_equal(strncmp(text, "# petrel log", 12), 0);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

static void moved_files_are_left_on_reopen(void **state)
{
    char path[160], moved[200];

    (void)state;
    path_of(path, sizeof(path), "moved");
    snprintf(moved, sizeof(moved), "%s-old", path);
    open_text(path);
    for (int i = 0; i < 300; i++) {
        UMD_LOG(UMD_LOG_INFO, "line i=%03d", i);
        if (i == 100)
            assert_int_equal(rename(path, moved), 0);
        if (i == 200)
            umdLogReopen();
    }
    unsigned now = count_of(logged(path), "line i="), before = count_of(slurp(moved), "line i=");
    assert_int_equal(now + before, 300);
    assert_int_equal(now, 99);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

/* A link that points to the log stays: what it leads to is rotated, where it is. */
static void a_link_to_the_log_stays(void **state)
{
    char dir[160], link[200], target[200], old[232];
    struct stat st;

    (void)state;
    path_of(dir, sizeof(dir), "links");
    assert_int_equal(mkdir(dir, 0755), 0);
    snprintf(link, sizeof(link), "%s/again", dir);
    snprintf(target, sizeof(target), "%s/far", dir);
    assert_int_equal(mkdir(target, 0755), 0);
    snprintf(target, sizeof(target), "%s/far/run.log", dir);
    assert_int_equal(symlink("far/run.log", link), 0); /* relative, and to what is not there yet */
    snprintf(link, sizeof(link), "%s/now", dir);
    snprintf(old, sizeof(old), "%s/again", dir);
    assert_int_equal(symlink(old, link), 0);
    umdLogSetRotation(8192, 2);
    open_text(link);
    for (int i = 0; i < 300; i++) {
        UMD_LOG(UMD_LOG_INFO, "line i=%04d", i);
        if (i % 10 == 9)
            umdLogFlush(5000);
    }
    umdLogFlush(5000);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    umdLogSetRotation(128u << 20, 5);
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(lstat(target, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_non_null(strstr(slurp(link), "i=0299"));
    for (int i = 1; i <= 2; i++) {
        snprintf(old, sizeof(old), "%s.%d", target, i);
        assert_non_null(strstr(slurp(old), "line i="));
        snprintf(old, sizeof(old), "%s.%d", link, i);
        assert_int_equal(lstat(old, &st), -1);
    }
}

/* ---- Pipes ---- */

static _Atomic(unsigned) pipe_signals;
static void on_pipe(int sig)
{
    (void)sig;
    atomic_fetch_add(&pipe_signals, 1);
}

static int no_thread(pthread_t *t, const char *name, void *(*fn)(void *), void *arg)
{
    (void)t; (void)name; (void)fn; (void)arg;
    return EAGAIN;
}

/* Its reader leaves: no signal, by the writer's thread (arg NULL) or by our own. */
static void pipe_child(void *arg)
{
    struct umd_sys table = *umd_sys_default();
    char path[160];
    umdLogStats stats;

    if (arg) {
        table.thread_create = no_thread;
        umd_sys_set(&table);
    }
    signal(SIGPIPE, on_pipe);
    path_of(path, sizeof(path), arg ? "pipe-sync" : "pipe");
    if (mkfifo(path, 0600) != 0)
        _exit(1);
    if (umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "info") != UMD_ERR_RES_FILE) /* nobody reads: refused, and not waited for */
        _exit(2);
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    if (umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "info") != UMD_SUCCESS)
        _exit(3);
    UMD_LOG(UMD_LOG_INFO, "line x=%d", 1);
    umdLogFlush(10000);
    close(reader);
    for (int i = 0; i < 3; i++) {
        UMD_LOG(UMD_LOG_WARN, "nobody reads x=%d", i);
        umdLogFlush(10000);
    }
    umdLogGetStats(&stats);
    if (stats.sink_errno != EPIPE || stats.lost == 0)
        _exit(4);
    sigset_t pending;
    sigpending(&pending);
    if (atomic_load(&pipe_signals) || sigismember(&pending, SIGPIPE))
        _exit(5);
    raise(SIGPIPE); /* the program's own still arrives */
    if (atomic_load(&pipe_signals) != 1)
        _exit(6);
}

static void a_closed_pipe_raises_no_signal(void **state)
{
    static char by_our_own[] = "";

    (void)state;
    expect_child(pipe_child, NULL);
    expect_child(pipe_child, by_our_own);
}

/* Its reader may go when the only write end is closed: neither size nor date move a pipe on. */
static void a_pipe_is_not_rotated(void **state)
{
    static struct umd_sys table;
    char path[160], text[32768];
    size_t used = 0;

    (void)state;
    table = *umd_sys_default();
    table.real_ns = wall;
    atomic_store(&wall_ns, (uint64_t)20000 * 86400ull * 1000000000u);
    umd_sys_set(&table);
    umdLogSetRotation(500, 3);
    path_of(path, sizeof(path), "endless-pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    open_text(path);
    for (int i = 0; i < 50; i++) {
        UMD_LOG(UMD_LOG_INFO, "line i=%03d", i);
        if (i == 25)
            atomic_fetch_add(&wall_ns, 86400u * 1000000000ull);
        umdLogFlush(10000);
    }
    for (ssize_t n; used < sizeof(text) - 1 && (n = read(reader, text + used, sizeof(text) - 1 - used)) > 0;)
        used += (size_t)n;
    text[used] = '\0';
    assert_int_equal(count_of(text, "line i="), 50);
    assert_int_equal(count_of(text, "# petrel log"), 1); /* what an opened file begins with */
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    close(reader);
    umdLogSetRotation(128u << 20, 5);
    umd_sys_set(NULL);
}

static uint64_t now_ns(void) { return umd_sys_default()->mono_ns(); }

/* Full and unread: calls return, exit ends. What is read then goes on. */
static void a_full_pipe_stops_nobody(void **state)
{
    char path[160], text[4096];

    (void)state;
    path_of(path, sizeof(path), "full-pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    open_text(path);
    uint64_t start_ns = now_ns();
    for (int i = 0; i < 20000; i++)
        UMD_LOG(UMD_LOG_INFO, "many i=%05d filler=%s", i, "0123456789012345678901234567890123456789");
    umdLogFlush(100);
    umdLogSetRotation(128u << 20, 5);
    umdLogStats stats;
    umdLogGetStats(&stats);
    umdLogReopen();
    assert_true(now_ns() - start_ns < 20000000000ull); /* bounded; on a busy host, too */
    pid_t pid = fork();
    if (pid == 0)
        exit(0);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    unsigned lines = 0;
    struct pollfd p = { .fd = reader, .events = POLLIN };
    while (poll(&p, 1, 3000) > 0) { /* until the writer has nothing more: it tries again each second */
        ssize_t n = read(reader, text, sizeof(text) - 1);
        if (n <= 0)
            break;
        for (ssize_t i = 0; i < n; i++)
            lines += text[i] == '\n';
        umdLogFlush(1000);
    }
    assert_true(lines > 500);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    close(reader);
}

static void exit_child(void *arg)
{
    umdLogSetRotation(0, 5);
    if (umdLogOpenFile(arg, UMD_LOG_FORMAT_TEXT, "info") != UMD_SUCCESS)
        _exit(1);
    for (int i = 0; i < 5000; i++)
        UMD_LOG(UMD_LOG_INFO, "many i=%05d filler=%s", i, "0123456789012345678901234567890123456789");
    exit(0);
}

static void exit_does_not_wait_for_a_full_pipe(void **state)
{
    char path[160];

    (void)state;
    path_of(path, sizeof(path), "exit-pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    expect_child(exit_child, path); /* the test's time limit is the assertion */
    close(reader);
}

/* A write that hangs for good, as on a dead network file system: fork and exit go on. */
static void hang_child(void *arg)
{
    char own[200];
    int status;

    if (umdLogOpenFile(arg, UMD_LOG_FORMAT_TEXT, "info") != UMD_SUCCESS)
        _exit(1);
    writer_stop();
    if (umdLogOpenFile("/dev/null", UMD_LOG_FORMAT_JSON, NULL) != UMD_ERR_RES_FILE) /* says why, in time */
        _exit(2);
    umdLogStats stats;
    umdLogGetStats(&stats);
    pid_t pid = fork();
    if (pid == 0) { /* clean: its own file, nothing of the parent's */
        writer_go();
        UMD_LOG(UMD_LOG_WARN, "of the child x=%d", 2);
        umdLogFlush(10000);
        snprintf(own, sizeof(own), "%s.%d", (const char *)arg, (int)getpid());
        const char *text = slurp(own);
        _exit(strstr(text, "of the child x=2") && !strstr(text, "stands here") ? 0 : 9);
    }
    if (waitpid(pid, &status, 0) != pid || status != 0)
        _exit(3);
    exit(0);
}

static void a_hanging_write_holds_up_neither_fork_nor_exit(void **state)
{
    char path[160];

    (void)state;
    path_of(path, sizeof(path), "hang");
    expect_child(hang_child, path);
}

/* ---- Limits ---- */

/* One file after the other is filled to the limit, and no line is lost: the one that did not fit is whole in the next. */
static void size_child(void *arg)
{
    const struct rlimit limit = { 20000, RLIM_INFINITY };
    char path[200];
    unsigned whole = 0, files = 0;
    umdLogStats before, stats;

    umdLogGetStats(&before);
    if (umdLogOpenFile(arg, UMD_LOG_FORMAT_TEXT, "info") != UMD_SUCCESS || setrlimit(RLIMIT_FSIZE, &limit) != 0)
        _exit(1);
    for (int i = 0; i < 600; i++) {
        UMD_LOG(UMD_LOG_INFO, "line i=%03d;", i);
        if (i % 20 == 19)
            umdLogFlush(10000);
    }
    umdLogFlush(10000);
    umdLogGetStats(&stats);
    for (int i = 0; i < 600; i++) {
        char line[32];
        snprintf(line, sizeof(line), "line i=%03d;", i);
        unsigned n = count_of(slurp(arg), line);
        for (int k = 1; k <= 5; k++) {
            snprintf(path, sizeof(path), "%s.%d", (const char *)arg, k);
            n += count_of(slurp(path), line);
        }
        whole += n > 0;
    }
    for (int k = 1; k <= 5; k++) {
        snprintf(path, sizeof(path), "%s.%d", (const char *)arg, k);
        files += access(path, F_OK) == 0;
    }
    fprintf(stderr, "whole=%u files=%u lost=%" PRIu64 "\n", whole, files, (uint64_t)(stats.lost - before.lost));
    if (whole != 600 || files < 2 || stats.lost != before.lost)
        _exit(3);
}

static void the_size_limit_kills_nobody(void **state)
{
    char path[160];

    (void)state;
    path_of(path, sizeof(path), "fsize");
    expect_child(size_child, path);
}

/* A file stands where the log's directory was; when it is gone, lines that keep coming do not put off the next try. */
static void in_the_way_child(void *arg)
{
    char path[200];

    snprintf(path, sizeof(path), "%s/log", (const char *)arg);
    if (mkdir(arg, 0700) != 0 || umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "info") != UMD_SUCCESS)
        _exit(1);
    UMD_LOG(UMD_LOG_INFO, "first x=%d", 1);
    umdLogFlush(10000);
    if (unlink(path) != 0 || rmdir(arg) != 0 || close(open(arg, O_CREAT | O_WRONLY, 0600)) != 0)
        _exit(2);
    for (int i = 0; i < 40; i++) {
        UMD_LOG(UMD_LOG_INFO, "meanwhile x=%d", i);
        usleep(5000);
    }
    if (unlink(arg) != 0)
        _exit(3);
    for (int i = 0; i < 4000 && !strstr(slurp(path), "works again"); i++) {
        UMD_LOG(UMD_LOG_INFO, "later x=%d", i);
        usleep(5000);
    }
    if (!strstr(slurp(path), "works again records_lost=0 errno=20"))
        _exit(4);
}

static void what_is_in_the_way_is_not_for_ever(void **state)
{
    char path[160];

    (void)state;
    path_of(path, sizeof(path), "way");
    expect_child(in_the_way_child, path);
}

static void files_child(void *arg)
{
    struct rlimit limit, none;
    umdLogStats stats;

    umdLogSetRotation(4096, 3);
    if (umdLogOpenFile(arg, UMD_LOG_FORMAT_TEXT, "info") != UMD_SUCCESS)
        _exit(1);
    UMD_LOG(UMD_LOG_INFO, "line x=%d", 0);
    umdLogFlush(10000);
    getrlimit(RLIMIT_NOFILE, &limit);
    none = limit;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
    for (int i = 0; i < 200; i++) {
        UMD_LOG(UMD_LOG_INFO, "line i=%03d", i);
        if (i % 20 == 19)
            umdLogFlush(10000);
    }
    umdLogGetStats(&stats);
    if (stats.sink_errno != EMFILE)
        _exit(2);
    setrlimit(RLIMIT_NOFILE, &limit);
    usleep(1100000);
    UMD_LOG(UMD_LOG_WARN, "end x=%d", 1);
    umdLogFlush(10000);
    if (!strstr(slurp(arg), "end x=1") && !strstr(slurp(arg), "works again"))
        _exit(3);
}

static void without_descriptors_it_waits_for_some(void **state)
{
    char path[160];

    (void)state;
    path_of(path, sizeof(path), "nofile");
    expect_child(files_child, path);
}

static void a_full_file_system_recovers(void **state)
{
    char dir[160], path[200], filler[200], block[4096] = { 1 };

    (void)state;
    path_of(dir, sizeof(dir), "tmpfs");
    assert_int_equal(mkdir(dir, 0755), 0);
    if (mount("tmpfs", dir, "tmpfs", 0, "size=128k") != 0)
        skip(); /* only root may */
    snprintf(path, sizeof(path), "%s/log", dir);
    snprintf(filler, sizeof(filler), "%s/filler", dir);
    open_text(path);
    int fd = open(filler, O_WRONLY | O_CREAT, 0600);
    while (write(fd, block, sizeof(block)) > 0)
        ;
    close(fd);
    for (int i = 0; i < 100; i++) {
        UMD_LOG(UMD_LOG_INFO, "line i=%03d", i);
        if (i % 10 == 9)
            umdLogFlush(10000);
    }
    umdLogStats stats;
    umdLogGetStats(&stats);
    assert_int_equal(stats.sink_errno, ENOSPC);
    assert_int_equal(unlink(filler), 0);
    UMD_LOG(UMD_LOG_INFO, "line i=%03d", 100);
    const char *text = logged(path);
    unsigned lines = count_of(text, "line i=");
    bool again = strstr(text, "log sink works again") != NULL;
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    assert_int_equal(umount(dir), 0);
    assert_int_equal(lines, 101); /* nothing lost, though the file system was full in the middle of a line */
    assert_true(again);
}

/* ---- Memory ---- */

static _Atomic(bool) no_memory;
static void *scarce(size_t size)
{
    if (atomic_load(&no_memory) && size > 100000) {
        errno = ENOMEM;
        return NULL;
    }
    return umd_sys_default()->alloc(size);
}

static void without_memory_warnings_go_to_the_emergency_ring(void **state)
{
    static struct umd_sys table;
    umdLogStats stats;
    static struct umd_emergency_slot slots[UMD_EMERGENCY_SLOTS];
    bool rescued = false;

    (void)state;
    table = *umd_sys_default();
    UMD_LOG(UMD_LOG_ERROR, "this thread has its ring x=%d", 1);
    table.alloc = scarce;
    umd_sys_set(&table);
    atomic_store(&no_memory, true);
    /* A sink that had no buffer before in this process. */
    assert_int_equal(umdLogOpenFile(scratch("scarce"), UMD_LOG_FORMAT_JSON, "info"), UMD_SUCCESS);
    for (int i = 0; i < 3; i++) {
        UMD_LOG(UMD_LOG_WARN, "no room x=%d", i);
        umdLogFlush(10000);
    }
    umdLogGetStats(&stats);
    assert_int_equal(stats.sink_errno, ENOMEM);
    uint32_t n = umd_emergency_snapshot(slots, UMD_EMERGENCY_SLOTS);
    for (uint32_t i = 0; i < n; i++)
        rescued = rescued || strstr(slots[i].message, "no room x=2");
    assert_true(rescued);
    atomic_store(&no_memory, false);
    const char *text = "";
    for (int i = 0; i < 50 && !strstr(text, "there is room"); i++) { /* tried again each second */
        usleep(100000);
        UMD_LOG(UMD_LOG_WARN, "there is room x=%d", i);
        text = logged(scratch("scarce"));
    }
    assert_non_null(strstr(text, "there is room"));
    umdLogCloseFile(UMD_LOG_FORMAT_JSON);
    umd_sys_set(NULL);
}

/* ---- Run log and disaster log ---- */

static umdStatus test_call(uint32_t x)
{
    struct umd_api_call call = { 0 };

    umd_api_enter(&call, "umdTestCall", "x=%u", x);
    umdStatus st = UMD_FAIL(UMD_ERR_HW_PAGE_FAULT, "address=0x%x", 64);
    return umd_api_exit(&call, UMD_HOP(st));
}

static void run_and_disaster_log_speak_to_their_readers(void **state)
{
    char run[160], disaster[160];

    (void)state;
    path_of(run, sizeof(run), "run");
    path_of(disaster, sizeof(disaster), "disaster");
    assert_int_equal(umdLogOpenFile(run, UMD_LOG_FORMAT_RUN, NULL), UMD_SUCCESS);
    assert_int_equal(umdLogOpenFile(disaster, UMD_LOG_FORMAT_DISASTER, NULL), UMD_SUCCESS);
    umdLogMessage(UMD_LOG_INFO, "framework", 0, NULL, "step begins step=3");
    umdLogMessage(UMD_LOG_INFO, "kmd.vm", 0, NULL, "an inner matter");
    assert_int_equal(umdLogSetLevels("trace"), UMD_SUCCESS); /* not for these two */
    umdLogMessage(UMD_LOG_DEBUG, "kmd.vm", 0, NULL, "an inner matter, once more");
    assert_int_equal(umdLogSetLevels(""), UMD_SUCCESS);
    assert_int_equal(test_call(7), UMD_ERR_HW_PAGE_FAULT);
    UMD_LOG(UMD_LOG_ERROR, "plain trouble x=%d at=%p", 5, (void *)run);
    umdLogFlush(10000);
    const char *text = slurp(run);
    assert_int_equal(strncmp(text, "# petrel run log", 16), 0);
    assert_non_null(strstr(text, " INFO  framework: step begins step=3\n"));
    assert_null(strstr(text, "an inner matter"));
    const char *line = strstr(text, "UMD_ERR_HW_PAGE_FAULT: ");
    assert_non_null(line);
    assert_non_null(strstr(line, "address=0x40"));
    assert_non_null(strstr(line, "| where: call umdTestCall | next: "));
    assert_non_null(strstr(line, "| record "));
    assert_non_null(strstr(text, "plain trouble x=5 at=(address)\n"));
    assert_null(strstr(text, "test_log_files.c"));
    text = slurp(disaster);
    assert_int_equal(strncmp(text, "# petrel disaster log", 21), 0);
    assert_null(strstr(text, "step begins"));
    assert_int_equal(count_of(text, "==== "), 2);
    assert_non_null(strstr(text, "UMD_ERR_HW_PAGE_FAULT (-"));
    assert_non_null(strstr(text, "umdTestCall"));
    assert_non_null(strstr(text, "test_call"));
    assert_null(strstr(text, "not at its end"));
    assert_non_null(strstr(text, "plain trouble x=5"));
    umdLogCloseFile(UMD_LOG_FORMAT_RUN);
    umdLogCloseFile(UMD_LOG_FORMAT_DISASTER);
}

static uint64_t stopped_clock(void) { return 1; }

/* Raised on one thread, taken out of its scope, completed on the way up by another one: all in the disaster log, and under one id in the run log. */
static void completed_records_are_told_whole(void **state)
{
    char run[160], disaster[160], id[64];
    static struct umd_emergency_slot slots[UMD_EMERGENCY_SLOTS];
    struct umd_sys table = *umd_sys_default();
    umdErrorDetail d;

    (void)state;
    table.mono_ns = stopped_clock; /* however slow the host is, no record waits too long */
    umd_sys_set(&table);
    path_of(run, sizeof(run), "run");
    path_of(disaster, sizeof(disaster), "disaster");
    assert_int_equal(umdLogOpenFile(run, UMD_LOG_FORMAT_RUN, NULL), UMD_SUCCESS);
    assert_int_equal(umdLogOpenFile(disaster, UMD_LOG_FORMAT_DISASTER, NULL), UMD_SUCCESS);
    umd_record_scope_begin();
    (void)UMD_FAIL(UMD_ERR_HW_HANG, "job=3");
    assert_true(umd_record_export(&d));
    umd_record_scope_end();
    umdLogFlush(10000); /* the raise has been written; it waits for more */
    assert_null(strstr(slurp(disaster), "UMD_ERR_HW_HANG"));
    umd_figures_append(d.figures, sizeof(d.figures), "kernel=%s", "gemm");
    UMD_RECORD_NOTE(&d, "failure told code=%s kernel=%s", umdStatusName((umdStatus)d.code), "gemm");
    assert_int_equal(umd_record_import(&d), UMD_ERR_HW_HANG);
    UMD_ABSORB(UMD_ERR_HW_HANG, "the test has it");
    umdLogFlush(10000);
    snprintf(id, sizeof(id), "record %08x:%u:%" PRIu64 "\n", d.id.boot, d.id.pid, d.id.seq);
    const char *text = slurp(run), *line = strstr(text, "umd.test.files: failure told code=UMD_ERR_HW_HANG kernel=gemm | ");
    assert_non_null(line);
    assert_int_equal(strncmp(strstr(line, "record "), id, strlen(id)), 0);
    assert_int_equal(count_of(text, id), 3); /* raise, completion, end */
    text = slurp(disaster);
    assert_int_equal(count_of(text, "==== "), 1);
    assert_non_null(strstr(text, "figures  job=3 kernel=gemm\n"));
    assert_null(strstr(text, "not at its end"));
    bool kept = false;
    for (uint32_t i = 0, n = umd_emergency_snapshot(slots, UMD_EMERGENCY_SLOTS); i < n; i++)
        kept = kept || (slots[i].record.seq == d.id.seq && strstr(slots[i].message, "kernel=gemm"));
    assert_true(kept);
    umd_sys_set(NULL);
    umdLogCloseFile(UMD_LOG_FORMAT_RUN);
    umdLogCloseFile(UMD_LOG_FORMAT_DISASTER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_warnings_go_to_the_emergency_ring), /* first: no sink has its buffer yet */
        cmocka_unit_test(a_new_day_begins_a_new_file), cmocka_unit_test(times_are_those_of_the_calendar),
        cmocka_unit_test(a_removed_file_comes_back), cmocka_unit_test(moved_files_are_left_on_reopen), cmocka_unit_test(a_link_to_the_log_stays),
        cmocka_unit_test(a_closed_pipe_raises_no_signal), cmocka_unit_test(a_pipe_is_not_rotated), cmocka_unit_test(a_full_pipe_stops_nobody), cmocka_unit_test(exit_does_not_wait_for_a_full_pipe),
        cmocka_unit_test(a_hanging_write_holds_up_neither_fork_nor_exit), cmocka_unit_test(the_size_limit_kills_nobody),
        cmocka_unit_test(without_descriptors_it_waits_for_some), cmocka_unit_test(what_is_in_the_way_is_not_for_ever), cmocka_unit_test(a_full_file_system_recovers),
        cmocka_unit_test(run_and_disaster_log_speak_to_their_readers),
        cmocka_unit_test(completed_records_are_told_whole),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    scratch_remove();
    return failed;
}
