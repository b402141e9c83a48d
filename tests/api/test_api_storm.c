/* SPDX-License-Identifier: MIT */
/* test_api_storm.c - a million failing calls while the log's file system of 16 MiB is full: calls go on, the log says what it left out (S11). */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <umd/umd_log.h>

#include "fixtures.h"
#include "record.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SCALE = 20 };
#elif defined(__has_feature)
#  if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { SCALE = 20 };
#  else
enum { SCALE = 1 };
#  endif
#else
enum { SCALE = 1 };
#endif
enum { CALLS = 1000000 / SCALE, EXIT_SKIP = 77, SETTLE_TRIES = 2400 };

static char dir[128], log_path[160], filler_path[160];
static bool by_limit;

/* ---- A file system of 16 MiB, or a limit that does as if ---- */

/* In a mount namespace of this process alone, so that nothing is left behind however it ends. False: not allowed. */
static bool own_file_system(void)
{
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        return false;
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 && mount("tmpfs", dir, "tmpfs", 0, "size=16m") == 0;
}

static void limit_files(bool none)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = none ? 0 : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void fill_disk(void)
{
    static const char block[65536];

    if (by_limit) {
        limit_files(true);
        return;
    }
    int fd = open(filler_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    for (size_t n = sizeof(block); n >= 1; n /= 16)
        while (write(fd, block, n) > 0)
            ;
    assert_int_equal(errno, ENOSPC);
    close(fd);
}

static void make_room(void)
{
    if (by_limit)
        limit_files(false);
    else
        assert_int_equal(unlink(filler_path), 0);
}

/* ---- What the console says, which is not on that disk ---- */

static struct {
    pthread_t thread;
    int from, real;
    pthread_mutex_t lock;
    char text[4u << 20];
    size_t used;
} console = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void *read_console(void *arg)
{
    char some[4096];
    ssize_t n;

    while ((n = read(console.from, some, sizeof(some))) > 0) {
        pthread_mutex_lock(&console.lock);
        size_t room = sizeof(console.text) - 1 - console.used;
        memcpy(console.text + console.used, some, (size_t)n < room ? (size_t)n : room);
        console.used += (size_t)n < room ? (size_t)n : room;
        pthread_mutex_unlock(&console.lock);
    }
    return arg;
}

static void console_begin(void)
{
    int fds[2];

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    console.from = fds[0];
    console.real = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    assert_int_equal(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
    close(fds[1]);
    assert_int_equal(pthread_create(&console.thread, NULL, read_console, NULL), 0);
}

static void console_end(void)
{
    assert_int_equal(dup2(console.real, STDERR_FILENO), STDERR_FILENO);
    assert_int_equal(pthread_join(console.thread, NULL), 0);
    close(console.from);
    close(console.real);
}

static uint64_t number_behind(const char *line, const char *end, const char *key)
{
    const char *at = memmem(line, (size_t)(end - line), key, strlen(key));
    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* Failures of the code that the text accounts for: lines of their own, those folded into one, and those that a number stands for. */
struct told {
    uint64_t lines, suppressed;
};
static struct told told_of(const char *text, const char *code)
{
    char begin[64], of[64];
    struct told t = { 0 };

    snprintf(begin, sizeof(begin), ": %s: ", code);
    snprintf(of, sizeof(of), " of=%s ", code);
    for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        if (memmem(line, (size_t)(end - line), begin, strlen(begin)))
            t.lines += 1 + number_behind(line, end, " folded=");
        else if (memmem(line, (size_t)(end - line), of, strlen(of)))
            t.suppressed += number_behind(line, end, " suppressed=");
    }
    return t;
}

static uint64_t count_of(const char *text, const char *part)
{
    uint64_t n = 0;

    for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
        n++;
    return n;
}

/* ---- The storm ---- */

static struct {
    const char *name;
    umdStatus code;
    uint64_t calls;
    umdErrorCounts before;
} kinds[] = { { .name = "UMD_ERR_MEM_POINTER", .code = UMD_ERR_MEM_POINTER }, { .name = "UMD_ERR_HANDLE_INVALID", .code = UMD_ERR_HANDLE_INVALID } };
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };
static uint64_t longest_ns;

static uint64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Each call fails in its own way, so that no two fold into one record. */
static void storm(struct fx *f, uint64_t calls)
{
    static uint64_t number;

    for (uint64_t end = number + calls; number < end; number++) {
        const uint64_t begin = now_ns();
        const umdStatus st = number % 2 ? umdEventQuery((umdEvent){ .id = 0xdead000000000000u + number }) : umdMemFree(f->ctx, 0x10000000000u + number);
        const uint64_t took = now_ns() - begin;
        longest_ns = took > longest_ns ? took : longest_ns;
        if (st != kinds[number % 2].code)
            fail_msg("call %" PRIu64 " returned %s", number, umdStatusName(st));
        kinds[number % 2].calls++;
    }
}

static umdErrorCounts counts_of(umdStatus code)
{
    static umdErrorCounts all[512];
    uint32_t n = umdGetErrorCounts(all, 512);

    for (uint32_t i = 0; i < n && i < 512; i++)
        if (all[i].code == (int32_t)code)
            return all[i];
    return (umdErrorCounts){ 0 };
}

/* Waits until the console tells of all: a count of the suppressed comes once a second. */
static void expect_all_told(void)
{
    for (int tries = 0; tries < SETTLE_TRIES; tries++) {
        bool all = true;
        umdLogFlush(5000);
        pthread_mutex_lock(&console.lock);
        for (uint32_t i = 0; i < KINDS; i++) {
            struct told t = told_of(console.text, kinds[i].name);
            all = all && t.lines + t.suppressed >= kinds[i].calls;
        }
        pthread_mutex_unlock(&console.lock);
        if (all)
            break;
        usleep(50000);
    }
    for (uint32_t i = 0; i < KINDS; i++) {
        const umdErrorCounts now = counts_of(kinds[i].code), *before = &kinds[i].before;
        pthread_mutex_lock(&console.lock);
        const struct told t = told_of(console.text, kinds[i].name);
        pthread_mutex_unlock(&console.lock);
        printf("%s: %" PRIu64 " calls: %" PRIu64 " lines, %" PRIu64 " suppressed\n", kinds[i].name, kinds[i].calls, t.lines, t.suppressed);
        assert_int_equal(t.lines + t.suppressed, kinds[i].calls);
        assert_int_equal(now.raised - before->raised, kinds[i].calls);
        assert_int_equal(now.delivered - before->delivered, kinds[i].calls);
        assert_int_equal(now.swallowed - before->swallowed, 0);
        assert_int_equal(now.unlogged - before->unlogged, t.suppressed);
    }
}

static const char *file_text(const char *suffix)
{
    static char text[20u << 20];
    char path[200];

    snprintf(path, sizeof(path), "%s%s", log_path, suffix);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t n;
    while (fd >= 0 && used < sizeof(text) - 1 && (n = read(fd, text + used, sizeof(text) - 1 - used)) > 0)
        used += (size_t)n;
    if (fd >= 0)
        close(fd);
    text[used] = '\0';
    return text;
}

/* A failing sink is tried again each second. */
static const char *await_recovery(void)
{
    for (int tries = 0; tries < SETTLE_TRIES; tries++) {
        umdLogReopen();
        umdLogMessage(UMD_LOG_INFO, "test.storm", 0, NULL, "is there room again");
        umdLogFlush(5000);
        const char *line = strstr(file_text(""), "log sink works again");
        if (line)
            return line;
        usleep(25000);
    }
    fail_msg("the log did not recover");
    return "";
}

static void a_million_failures_and_a_full_disk(void **state)
{
    struct fx *f = *state;
    umdLogStats before, full, after;

    printf("scale: 1/%d, %d failing calls; %s\n", SCALE, CALLS, by_limit ? "files limited to nothing" : "file system of 16 MiB");
    for (uint32_t i = 0; i < KINDS; i++)
        kinds[i].before = counts_of(kinds[i].code);
    umdLogGetStats(&before);
    storm(f, CALLS / 4);
    umdLogFlush(60000);
    umdLogGetStats(&full);
    assert_int_equal(full.sink_errors, before.sink_errors); /* a quarter of a million failures do not fill it by themselves */
    assert_true(strlen(file_text("")) < (16u << 20) / 4);
    assert_non_null(strstr(file_text(""), "UMD_ERR_MEM_POINTER: "));
    assert_non_null(strstr(strstr(file_text(""), "UMD_ERR_MEM_POINTER: "), "ptr=0x10000000000 ")); /* the first of all is kept */

    fill_disk();
    for (int i = 0; i < 200; i++) /* a quick host's storm may be over before the next lines are due, and the log's last page may have room */
        umdLogMessage(UMD_LOG_INFO, "test.storm", 0, NULL, "the disk is full");
    umdLogFlush(60000);
    assert_ok(umdLogSetLevels("umd.api=trace,info")); /* where TRACE is compiled in, two lines for each call */
    storm(f, CALLS / 2);
    assert_ok(umdLogSetLevels("info"));
    umdLogFlush(60000);
    umdLogGetStats(&full);
    assert_true(full.sink_errors > before.sink_errors);
    assert_int_equal(full.sink_errno, by_limit ? EFBIG : ENOSPC);

    make_room();
    const char *line = await_recovery();
    umdLogGetStats(&after);
    assert_int_equal(number_behind(line, line + strcspn(line, "\n"), "records_lost="), after.lost - before.lost); /* each is accounted for */
    storm(f, CALLS - CALLS / 4 - CALLS / 2);
    expect_all_told();
    assert_non_null(strstr(strstr(file_text(""), "log sink works again"), "UMD_ERR_MEM_POINTER"));
    umdLogGetStats(&full);
    assert_int_equal(full.lost, after.lost);
    pthread_mutex_lock(&console.lock);
    assert_int_equal(count_of(console.text, "log sink fails"), 1);
    pthread_mutex_unlock(&console.lock);
    printf("%" PRIu64 " records lost to the full disk, %" PRIu64 " dropped before it; longest call %" PRIu64 " us\n", after.lost - before.lost,
           full.dropped - before.dropped, longest_ns / 1000);
}

static int setup(void **state)
{
    console_begin();
    assert_ok(umdLogSetConsole("warn"));
    assert_ok(umdLogOpenFile(log_path, UMD_LOG_FORMAT_TEXT, NULL));
    return fx_setup(state);
}

static int teardown(void **state)
{
    int r = fx_teardown(state);

    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    umdLogFlush(5000);
    console_end();
    return r;
}

int main(int argc, char **argv)
{
    static const char *const suffixes[] = { "", ".1", ".2", ".3", ".4", ".5" };
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_million_failures_and_a_full_disk) };
    const char *tmp = getenv("TMPDIR");

    by_limit = argc > 1 && strcmp(argv[1], "limit") == 0;
    snprintf(dir, sizeof(dir), "%.100s/petrel-storm.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return 99;
    snprintf(log_path, sizeof(log_path), "%s/log", dir);
    snprintf(filler_path, sizeof(filler_path), "%s/filler", dir);
    if (!by_limit && !own_file_system()) {
        printf("skipped: no file system may be mounted here: %s\n", strerror(errno));
        rmdir(dir);
        return EXIT_SKIP;
    }
    int status = cmocka_run_group_tests(tests, setup, teardown);
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        char path[200];
        snprintf(path, sizeof(path), "%s%s", log_path, suffixes[i]);
        unlink(path);
    }
    unlink(filler_path);
    if (!by_limit)
        umount2(dir, MNT_DETACH);
    rmdir(dir);
    return status;
}
