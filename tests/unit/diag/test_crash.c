/* SPDX-License-Identifier: MIT */
/* test_crash.c - crash snapshots: what is in them, who else has the signal, and crashes where a handler could come to grief. */
#include "diag_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "emergency.h"
#include "snapshot.h"

UMD_LOG_MODULE("umd.test");

/* The sanitizers' own handlers would come between. */
#define PLAIN                                                                                                                  \
    " ASAN_OPTIONS=handle_segv=0:handle_sigbus=0:handle_abort=0:handle_sigill=0:handle_sigfpe=0:detect_leaks=0:use_sigaltstack=0" \
    " TSAN_OPTIONS=handle_segv=0:handle_sigbus=0:handle_abort=0:handle_sigill=0:handle_sigfpe=0:report_bugs=0"

/* ---- Programs ---- */

static volatile uintptr_t bad = 16;

static __attribute__((noinline)) int touch(void) { return *(volatile int *)bad; }
static int run_segv(void) { return touch(); }

static int run_bus(void)
{
    int fd = memfd_create("short", 0);
    volatile char *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);

    return p[100]; /* behind the end of the file */
}

static int run_fpe(void)
{
    raise(SIGFPE);
    return 0;
}

static int run_ill(void)
{
    __asm__ volatile("ud2");
    return 0;
}

static int run_abort(void) { abort(); }

static void write_figures(struct umd_state_out *out, const void *arg)
{
    umd_state_u64(out, "figure", *(const int *)arg);
    umd_state_i64(out, "below", -3);
    umd_state_text(out, "text", "a \"b\"\n");
}

static int fail_in(const char *what, int x)
{
    struct umd_api_call call = { 0 };

    umd_api_enter(&call, "umdThing", "what=\"%s\" x=%d", what, x);
    return umd_api_exit(&call, UMD_FAIL(UMD_ERR_PARAM_RANGE, "argument=x value=%d", x));
}

static void *calls_and_waits(void *arg)
{
    fail_in("other thread", 77);
    *(_Atomic(bool) *)arg = true;
    pause();
    return NULL;
}

static _Atomic(bool) stands;
static ssize_t write_stands(int fd, const void *buf, size_t n)
{
    stands = true;
    while (stands)
        pause();
    return (ssize_t)n;
}

/* With a log writer that stands in its sink, so that the log's tail is still in the rings; and standard error takes nothing. */
static int run_story(void)
{
    static const char junk[4096];
    static int figure = 4711;
    struct umd_sys table = *umd_sys_default();
    static _Atomic(bool) there;
    struct umd_api_call call = { 0 };
    pthread_t t;
    int fds[2];

    table.write = write_stands;
    umd_sys_set(&table);
    UMD_LOG(UMD_LOG_WARN, "the writer stands here n=%d", 1);
    while (!stands)
        usleep(100);
    if (!umd_state_register("test.state", write_figures, &figure))
        return 1;
    pthread_create(&t, NULL, calls_and_waits, &there);
    while (!there)
        usleep(100);
    if (pipe(fds) || fcntl(fds[1], F_SETFL, O_NONBLOCK))
        return 1;
    while (write(fds[1], junk, sizeof(junk)) > 0)
        ;
    if (fcntl(fds[1], F_SETFL, 0) || dup2(fds[1], STDERR_FILENO) < 0)
        return 1;
    fail_in("this thread", 5);
    UMD_LOG(UMD_LOG_INFO, "in the ring still n=%d text=%s", 42, "hello");
    umdLogMessage(UMD_LOG_INFO, "ccl", 9, NULL, "all-reduce begins");
    umd_record_set_context(31);
    umd_api_enter(&call, "umdUnderWay", "device=%u", 3u);
    return touch();
}

enum { LINES = 30000 }; /* more than a ring holds */

/* All is written, and the ring went round, when it crashes. */
static int run_flushed(void)
{
    umd_record_set_context(77);
    for (int i = 0; i < LINES; i++) {
        UMD_LOG(UMD_LOG_INFO, "flushed i=%d inverse=%d", i, ~i);
        if (i % 1000 == 999)
            umdLogFlush(20000);
    }
    umdLogMessage(UMD_LOG_INFO, "ccl", 9, NULL, "the last message");
    umdLogFlush(20000);
    return touch();
}

static int run_stepped(void)
{
    umd_sys_step_begin(7);
    return run_flushed();
}

static _Atomic(uint32_t) busy_rounds;
static void *logs_on(void *arg)
{
    for (uint32_t i = 0;; i++) {
        UMD_LOG(UMD_LOG_INFO, "busy i=%u inverse=%u thread=%d", i, ~i, (int)(intptr_t)arg);
        if (i == LINES) /* round at least once */
            busy_rounds++;
    }
    return NULL;
}

/* Other threads log on and the writer takes what they log, while the snapshot is written. */
static int run_busy(void)
{
    pthread_t t[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, logs_on, (void *)(intptr_t)i);
    while (busy_rounds < 2)
        usleep(1000);
    return touch();
}

static void note(const char *text) { (void)!write(STDERR_FILENO, text, strlen(text)); }

static void with_info(int sig, siginfo_t *info, void *context)
{
    note(sig == SIGSEGV && (uintptr_t)info->si_addr == bad && context ? "previous: the same fault\n" : "previous: another\n");
    _exit(42);
}

static void plain(int sig)
{
    sigset_t now;

    pthread_sigmask(0, NULL, &now);
    note(sigismember(&now, sig) && sigismember(&now, SIGUSR2) && !sigismember(&now, SIGTERM) ? "previous: right mask\n" : "previous: wrong mask\n");
    _exit(43);
}

static const char *crash_dir(void) { return getenv("CRASH_DIR"); }

static int install_over(const struct sigaction *act)
{
    sigaction(SIGSEGV, act, NULL);
    return umdCrashHandlerInstall(crash_dir()) == UMD_SUCCESS ? 0 : 1;
}

static int run_previous_info(void) { return install_over(&(struct sigaction){ .sa_sigaction = with_info, .sa_flags = SA_SIGINFO }) + touch(); }

static int run_previous_plain(void)
{
    struct sigaction act = { .sa_handler = plain };

    sigaddset(&act.sa_mask, SIGUSR2);
    return install_over(&act) + touch();
}

static int run_ignored(void)
{
    if (install_over(&(struct sigaction){ .sa_handler = SIG_IGN }))
        return 1;
    raise(SIGSEGV);
    return 0;
}

static sigjmp_buf back;
static void jumps(int sig) { siglongjmp(back, sig); }

/* A handler that goes on: each crash has its snapshot, five at most. */
static int run_jumps(void)
{
    volatile int n = 0;

    if (install_over(&(struct sigaction){ .sa_handler = jumps }))
        return 1;
    (void)sigsetjmp(back, 1);
    if (n++ < 7)
        return touch();
    return 0;
}

static struct sigaction under;
static void on_top(int sig, siginfo_t *info, void *context)
{
    note("on top\n");
    under.sa_sigaction(sig, info, context);
}

static int run_chained(void)
{
    struct sigaction act = { .sa_sigaction = on_top, .sa_flags = SA_SIGINFO | SA_NODEFER };

    if (umdCrashHandlerInstall(crash_dir()) != UMD_SUCCESS)
        return 1;
    sigaction(SIGSEGV, &act, &under);
    if (umdCrashHandlerInstall(crash_dir()) != UMD_SUCCESS) /* again: not put on top of who chains to it */
        return 1;
    return touch();
}

static int run_removed(void)
{
    if (umdCrashHandlerInstall(crash_dir()) != UMD_SUCCESS)
        return 1;
    umdCrashHandlerRemove();
    return touch();
}

static void crashes(struct umd_state_out *out, const void *arg)
{
    umd_state_u64(out, "before", 1);
    (void)touch();
}

static int run_in_snapshot(void)
{
    (void)umd_state_register("test.crashes", crashes, NULL);
    return touch();
}

static __attribute__((noinline)) int deeper(volatile int *p, int n)
{
    volatile int here[64];

    here[n & 63] = n;
    if (n == INT32_MAX)
        return *p;
    return deeper(here, n + 1) + here[1] + *p;
}

static int run_overflow(void)
{
    volatile int zero = 0;

    return deeper(&zero, 0);
}

static void *overflows(void *arg)
{
    volatile int zero = 0;

    fail_in("about to overflow", 1); /* known to the library: has a stack for signals */
    return (void *)(intptr_t)deeper(&zero, 0);
}

static int run_overflow_thread(void)
{
    pthread_t t;

    pthread_create(&t, NULL, overflows, NULL);
    pthread_join(t, NULL);
    return 0;
}

static pthread_barrier_t gate;
static void *crash_together(void *arg)
{
    fail_in("about to crash", 2);
    pthread_barrier_wait(&gate);
    return (void *)(intptr_t)touch();
}

static int run_together(void)
{
    pthread_t t[4];

    pthread_barrier_init(&gate, NULL, 4);
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, crash_together, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    return 0;
}

static int run_no_descriptor(void)
{
    struct rlimit few = { 40, 400 };

    if (setrlimit(RLIMIT_NOFILE, &few))
        return 1;
    while (dup(2) >= 0)
        ;
    return touch();
}

static int run_directory_gone(void) { return rmdir(getenv("CRASH_DIR")) ? 1 : touch(); }

static int run_size_limit(void)
{
    struct rlimit small = { 4096, 4096 };

    return setrlimit(RLIMIT_FSIZE, &small) ? 1 : touch();
}

static int run_no_room(void)
{
    struct rlimit none = { 0, 0 };

    return setrlimit(RLIMIT_FSIZE, &none) ? 1 : touch();
}

static int run_forked(void)
{
    int status;
    pthread_t t;
    static _Atomic(bool) there;

    pthread_create(&t, NULL, calls_and_waits, &there);
    while (!there)
        usleep(100);
    pid_t child = fork();
    if (child == 0)
        _exit(touch());
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV ? 0 : 1;
}

static ssize_t write_crashes(int fd, const void *buf, size_t n) { return touch(); }

/* In the log's own thread, which holds its locks. */
static int run_in_writer(void)
{
    struct umd_sys table = *umd_sys_default();

    table.write = write_crashes;
    umd_sys_set(&table);
    UMD_LOG(UMD_LOG_WARN, "for the console n=%d", 1);
    umdLogFlush(10000);
    sleep(10);
    return 1;
}

static const struct run runs[] = {
    { "segv", run_segv }, { "bus", run_bus }, { "fpe", run_fpe }, { "ill", run_ill }, { "abort", run_abort }, { "story", run_story },
    { "previous_info", run_previous_info }, { "previous_plain", run_previous_plain }, { "ignored", run_ignored }, { "jumps", run_jumps },
    { "chained", run_chained }, { "removed", run_removed }, { "in_snapshot", run_in_snapshot }, { "overflow", run_overflow },
    { "overflow_thread", run_overflow_thread }, { "together", run_together }, { "no_descriptor", run_no_descriptor },
    { "forked", run_forked }, { "in_writer", run_in_writer }, { "directory_gone", run_directory_gone }, { "size_limit", run_size_limit },
    { "no_room", run_no_room }, { "flushed", run_flushed }, { "stepped", run_stepped }, { "busy", run_busy },
};

/* ---- Tests ---- */

static char out[8192];

static int program(const char *name, const char *dir, const char *more)
{
    char env[1024];

    snprintf(env, sizeof(env), "UMD_EMERGENCY=off UMD_CRASH_DIR=%s CRASH_DIR=%s %s" PLAIN, dir, dir, more);
    return in_program(name, env, out, sizeof(out));
}

/* The program puts the handler itself. */
static int program_without(const char *name, const char *dir)
{
    char env[1024];

    snprintf(env, sizeof(env), "UMD_EMERGENCY=off CRASH_DIR=%s" PLAIN, dir);
    return in_program(name, env, out, sizeof(out));
}

/* How many snapshots are in dir, how many of them are whole; the text of the last one read. */
static const char *snapshots(const char *dir, unsigned *count_out, unsigned *whole_out)
{
    const char *text = "";
    struct dirent *e;
    char path[600];

    *count_out = *whole_out = 0;
    DIR *d = opendir(dir);
    if (!d)
        return text;
    while ((e = readdir(d))) {
        if (strncmp(e->d_name, "crash.", 6) != 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        text = slurp(path);
        ++*count_out;
        *whole_out += strstr(text, "\n[end]\n") != NULL;
        assert_int_equal(strncmp(text, UMD_CRASH_MAGIC "\n[crash]\n", strlen(UMD_CRASH_MAGIC) + 9), 0);
    }
    closedir(d);
    return text;
}

static const char *one_whole(const char *dir)
{
    unsigned count, whole;
    const char *text = snapshots(dir, &count, &whole);

    assert_int_equal(count, 1);
    assert_int_equal(whole, 1);
    return text;
}

static void each_signal_has_a_snapshot_and_its_default_action(void **unused)
{
    static const struct { const char *name; int sig; const char *line; } cases[] = {
        { "segv", SIGSEGV, "signal=11 name=\"SIGSEGV\" code=1 address=0x10 " }, { "bus", SIGBUS, "name=\"SIGBUS\" code=2 " },
        { "fpe", SIGFPE, "name=\"SIGFPE\" code=-6 " }, { "ill", SIGILL, "name=\"SIGILL\" code=2 " }, { "abort", SIGABRT, "name=\"SIGABRT\" code=-6 " },
    };

    (void)unused;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *dir = scratch(cases[i].name);
        int status = program(cases[i].name, dir, "");
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), cases[i].sig);
        const char *text = one_whole(dir);
        assert_non_null(strstr(text, cases[i].line));
        assert_non_null(strstr(out, "snapshot written; to read it: umd-crash show "));
        assert_non_null(strstr(text, "\nrip=0x"));
        assert_non_null(strstr(text, "[backtrace]\n0x"));
        assert_non_null(strstr(text, "[stack]\n0x"));
        assert_non_null(strstr(text, "libumd_diag.so"));
    }
}

/* The line that begins with, or has, a text; ended. */
static const char *line_with(const char *text, const char *part)
{
    static char line[2048];
    const char *at = strstr(text, part);

    assert_non_null(at);
    while (at > text && at[-1] != '\n')
        at--;
    snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
    return line;
}

static void the_snapshot_tells_the_story(void **unused)
{
    const char *dir = scratch("story");

    (void)unused;
    int status = program("story", dir, "UMD_LOG_CONSOLE=info");
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    const char *text = one_whole(dir);
    assert_non_null(strstr(text, " context=31 depth=1 "));
    assert_non_null(strstr(text, "test.state figure=4711 below=-3 text=\"a \\x22b\\x22\\x0a\"\n"));
    const char *line = line_with(text, "name=\"umdUnderWay\"");
    assert_non_null(strstr(line, " end_ns=0 "));
    assert_non_null(strstr(line, "fmt=\"device=%u\" args=0300000000000000"));
    assert_true(strstr(text, "name=\"umdUnderWay\"") < strstr(text, "name=\"umdThing\"")); /* newest first */
    assert_int_equal(count_of(text, "name=\"umdThing\""), 2);                               /* the other thread's, too */
    assert_non_null(strstr(line_with(text, "message=\"crashed"), "address=0x10"));
    assert_int_equal(count_of(text, "message=\"UMD_ERR_PARAM_RANGE: "), 4); /* both threads', in the emergency ring and in the log's tail */
    line = line_with(text, "fmt=\"in the ring still n=%d text=%s\"");
    assert_non_null(strstr(line, "module=\"umd.test\" func=\"run_story\" file=\"test_crash.c\""));
    assert_non_null(strstr(line, "68656c6c6f")); /* "hello" */
    assert_non_null(strstr(text, "module=\"ccl\" func=\"\" file=\"\" trace=\"\" message=\"all-reduce begins\""));
}

/* The first two arguments of a line, which are 64 bits each. */
static void args_of(const char *line, uint64_t args_out[2])
{
    const char *hex = strstr(line, " args=");
    uint8_t bytes[16];

    assert_non_null(hex);
    hex += 6;
    for (int i = 0; i < 16; i++)
        assert_int_equal(sscanf(hex + 2 * i, "%2hhx", &bytes[i]), 1);
    memcpy(args_out, bytes, sizeof(bytes));
}

/* A crash shortly after a drain: the last lines are there, whole and in their order, with time and context. */
static void lines_that_were_written_are_there_too(void **unused)
{
    char env[200];
    unsigned lines = 0;
    int64_t next = -1;
    uint64_t args[2], ns, before_ns = 0;

    (void)unused;
    snprintf(env, sizeof(env), "UMD_LOG_CONSOLE=off UMD_LOG_FILE=%s", scratch("flushed.log"));
    int status = program("flushed", scratch("flushed"), env);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    assert_int_equal(count_of(slurp(scratch("flushed.log")), ": flushed i="), LINES);
    const char *text = one_whole(scratch("flushed"));
    for (const char *at = text; (at = strstr(at, "fmt=\"flushed i=%d inverse=%d\"")); at++, lines++) {
        const char *begin = at;
        while (begin[-1] != '\n')
            begin--;
        args_of(at, args);
        assert_int_equal((int64_t)args[1], ~(int64_t)args[0]);
        assert_true(next < 0 || (int64_t)args[0] == next);
        next = (int64_t)args[0] + 1;
        assert_int_equal(sscanf(begin, "mono_ns=%" SCNu64, &ns), 1);
        assert_true(ns >= before_ns);
        before_ns = ns;
        assert_non_null(strstr(begin, " taken=1 context=77 "));
    }
    assert_int_equal(next, LINES);
    assert_true(lines >= 256);
    const char *line = line_with(text, "message=\"the last message\"");
    assert_non_null(strstr(line, " taken=1 "));
    assert_non_null(strstr(line, " context=9 "));
}

/* In stepped mode, too, where each line is written at once and none waits for a writer. */
static void stepped_lines_are_there(void **unused)
{
    char env[200];
    unsigned lines = 0;
    int64_t next = -1;
    uint64_t args[2];

    (void)unused;
    snprintf(env, sizeof(env), "UMD_LOG_CONSOLE=off UMD_LOG_FILE=%s", scratch("stepped.log"));
    int status = program("stepped", scratch("stepped"), env);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    assert_int_equal(count_of(slurp(scratch("stepped.log")), ": flushed i="), LINES);
    const char *text = one_whole(scratch("stepped"));
    for (const char *at = text; (at = strstr(at, "fmt=\"flushed i=%d inverse=%d\"")); at++, lines++) {
        args_of(at, args);
        assert_int_equal((int64_t)args[1], ~(int64_t)args[0]);
        assert_true(next < 0 || (int64_t)args[0] == next);
        next = (int64_t)args[0] + 1;
    }
    assert_int_equal(next, LINES);
    assert_true(lines >= 256);
    assert_non_null(line_with(text, "message=\"the last message\""));
}

static void lines_of_threads_that_log_on_are_whole(void **unused)
{
    unsigned lines = 0;
    uint64_t args[2];

    (void)unused;
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof(name), "busy%d", i);
        int status = program("busy", scratch(name), "UMD_LOG_CONSOLE=off UMD_LOG_FILE=/dev/null");
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
        const char *text = strstr(one_whole(scratch(name)), "\n[log]\n"), *end = strstr(text, "\n[state]\n");
        for (const char *at = text; (at = strstr(at, "fmt=\"busy i=%u inverse=%u thread=%d\"")) && at < end; at++, lines++) {
            args_of(at, args);
            assert_int_equal((uint32_t)args[1], ~(uint32_t)args[0]);
        }
        text += strlen("\n[log]\n");
        for (; text < end; text += strcspn(text, "\n") + 1) /* nothing that was put together of pieces */
            if (!strstr(text, "fmt=\"busy i=") || strstr(text, "fmt=\"busy i=") > text + strcspn(text, "\n"))
                assert_non_null(strstr(line_with(text, "mono_ns="), "module=\""));
    }
    assert_true(lines > 0); /* of one alone all may have been written over while it was copied: the copy then has none */
}

static void who_had_the_signal_before_still_has_it(void **unused)
{
    unsigned count, whole;

    (void)unused;
    int status = program_without("previous_info", scratch("info"));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
    assert_non_null(strstr(out, "previous: the same fault"));
    (void)one_whole(scratch("info"));
    status = program_without("previous_plain", scratch("plain"));
    assert_int_equal(WEXITSTATUS(status), 43);
    assert_non_null(strstr(out, "previous: right mask"));
    (void)one_whole(scratch("plain"));
    assert_int_equal(program_without("ignored", scratch("ignored")), 0);
    (void)snapshots(scratch("ignored"), &count, &whole);
    assert_int_equal(count, 0);
    assert_int_equal(program_without("jumps", scratch("jumps")), 0);
    (void)snapshots(scratch("jumps"), &count, &whole);
    assert_int_equal(count, UMD_CRASH_KEEP);
    assert_int_equal(whole, UMD_CRASH_KEEP);
}

static void who_chains_on_top_works_too(void **unused)
{
    unsigned count, whole;

    (void)unused;
    int status = program_without("chained", scratch("chained"));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    assert_int_equal(count_of(out, "on top"), 1);
    (void)one_whole(scratch("chained"));
    status = program_without("removed", scratch("removed"));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    (void)snapshots(scratch("removed"), &count, &whole);
    assert_int_equal(count, 0);
}

static void a_crash_in_the_snapshot_ends_it(void **unused)
{
    unsigned count, whole;

    (void)unused;
    int status = program("in_snapshot", scratch("in"), "");
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    const char *text = snapshots(scratch("in"), &count, &whole);
    assert_int_equal(count, 1);
    assert_int_equal(whole, 0);
    assert_non_null(strstr(text, "[state]\n")); /* all before is there, and who it was */
    assert_non_null(strstr(text, "\ntest.crashes"));
    assert_non_null(strstr(text, "[calls]\n"));
}

static void a_stack_overflow_has_a_snapshot(void **unused)
{
    static const char *const names[] = { "overflow", "overflow_thread" };

    (void)unused;
    for (int i = 0; i < 2; i++) {
        int status = program(names[i], scratch(names[i]), "");
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
        const char *text = one_whole(scratch(names[i]));
        assert_non_null(strstr(text, "[stack]\n0x"));
    }
}

static void threads_that_crash_together_give_one_whole_snapshot(void **unused)
{
    unsigned count, whole;

    (void)unused;
    int status = program("together", scratch("together"), "");
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    (void)snapshots(scratch("together"), &count, &whole);
    assert_true(count >= 1 && whole >= 1);
}

static void the_last_descriptor_may_be_gone(void **unused)
{
    (void)unused;
    int status = program("no_descriptor", scratch("fds"), "");
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    assert_non_null(strstr(one_whole(scratch("fds")), "[maps]\n"));
    assert_non_null(strstr(one_whole(scratch("fds")), "libumd_diag.so"));
}

/* The signal's own end comes all the same, and no SIGXFSZ before it. */
static void what_is_missing_is_told_with_its_reason(void **unused)
{
    unsigned count, whole;
    char want[600];

    (void)unused;
    int status = program("directory_gone", scratch("gone"), "");
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    snprintf(want, sizeof(want), "petrel: SIGSEGV, and no snapshot could be written to %s: No such file or directory\n", scratch("gone"));
    assert_non_null(strstr(out, want));
    status = program("size_limit", scratch("small"), "");
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    assert_non_null(strstr(out, "petrel: SIGSEGV, snapshot cut short (File too large); to read it: umd-crash show "));
    (void)snapshots(scratch("small"), &count, &whole);
    assert_int_equal(count, 1);
    assert_int_equal(whole, 0);
    status = program("no_room", scratch("void"), ""); /* an empty file is none */
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    assert_non_null(strstr(out, "petrel: SIGSEGV, and no snapshot could be written to "));
    assert_non_null(strstr(out, ": File too large\n"));
    (void)snapshots(scratch("void"), &count, &whole);
    assert_int_equal(count, 0);
}

static void a_child_of_fork_has_its_own(void **unused)
{
    (void)unused;
    assert_int_equal(program("forked", scratch("forked"), ""), 0);
    const char *text = one_whole(scratch("forked"));
    assert_int_equal(count_of(text, "other thread"), 0); /* that one is the parent's */
}

static void the_logs_own_thread_may_crash(void **unused)
{
    (void)unused;
    int status = program("in_writer", scratch("writer"), "UMD_LOG_CONSOLE=warn");
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    assert_non_null(strstr(one_whole(scratch("writer")), "thread=\"petrel-log\""));
}

static void five_are_kept(void **unused)
{
    unsigned count, whole;

    (void)unused;
    for (int i = 0; i < 7; i++)
        (void)program("segv", scratch("five"), "");
    (void)snapshots(scratch("five"), &count, &whole);
    assert_int_equal(count, 5);
    assert_int_equal(whole, 5);
}

/* The directory may be the user's own: what only looks like a snapshot stays, however old it is. */
static void files_of_others_stay(void **unused)
{
    static const struct { const char *name, *text; } others[] = {
        { "crash.log", "petrel-crash 1\nmine\n" }, { "crash.1.2.tar.gz", "petrel-crash 1\n" }, { "crash.12", "petrel-crash 1\n" },
        { "crash.1.", "petrel-crash 1\n" }, { "crash.1.2", "by another program\n" }, { "crash.3.4", "" }, { "crash.5.6", "petrel-crash 17\n" },
        { "crash.-7.8", "petrel-crash 1\n" },
    };
    const struct timespec long_ago[2] = { { 0 }, { 0 } };
    struct dirent *e;
    char dir[128], path[300];
    unsigned count = 0;

    (void)unused;
    path_of(dir, sizeof(dir), "others");
    assert_int_equal(mkdir(dir, 0700), 0);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, others[i].name);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(others[i].text, f);
        fclose(f);
        assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
    }
    for (int i = 0; i < 7; i++)
        (void)program("segv", dir, "");
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, others[i].name);
        assert_int_equal(access(path, F_OK), 0);
        assert_string_equal(slurp(path), others[i].text);
    }
    DIR *d = opendir(dir);
    assert_non_null(d);
    while ((e = readdir(d)))
        count += strncmp(e->d_name, "crash.", 6) == 0;
    closedir(d);
    assert_int_equal(count, sizeof(others) / sizeof(others[0]) + UMD_CRASH_KEEP);
}

#define IN_CALL(expr_) ({ struct umd_api_call call_ = { 0 }; umd_api_enter(&call_, "umdA", "x=%d", 1); umd_api_exit(&call_, (expr_)); })

static void a_bad_directory_is_one_clear_error(void **unused)
{
    (void)unused;
    assert_int_equal(umdLogSetConsole("off"), UMD_SUCCESS);
    assert_int_equal(umdCrashHandlerInstall(NULL), UMD_ERR_PARAM_NULL);
    assert_int_equal(umdCrashHandlerInstall("/nonexistent/dir"), UMD_ERR_RES_FILE);
    assert_non_null(strstr(last_error().figures, "path=\"/nonexistent/dir\" errno=2"));
    assert_int_equal(umdCrashHandlerInstall("/proc/self/exe"), UMD_ERR_RES_FILE);
    assert_int_equal(umdCrashHandlerInstall(""), UMD_ERR_RES_FILE);
    int status = program("segv", "/nonexistent/dir", "UMD_LOG_CONSOLE=warn");
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV); /* all the same */
    struct sigaction now;
    sigaction(SIGSEGV, NULL, &now);
    assert_false(umd_crash_handler_is(&now));
}

static void state_can_be_asked_for(void **unused)
{
    static const int figure = 12;
    char text[256], small[20];

    (void)unused;
    assert_true(umd_state_register("test.state", write_figures, &figure));
    size_t n = umd_state_format(text, sizeof(text));
    assert_string_equal(text, "test.state figure=12 below=-3 text=\"a \\x22b\\x22\\x0a\"\n");
    assert_int_equal(n, strlen(text));
    assert_int_equal(umd_state_format(small, sizeof(small)), sizeof(small) - 1);
    assert_string_equal(small, "test.state figure=1");
    umd_state_unregister(write_figures, &figure);
    assert_int_equal(umd_state_format(text, sizeof(text)), 0);
}

int main(int argc, char **argv)
{
    int status;

    if (run_program(argc, argv, runs, sizeof(runs) / sizeof(runs[0]), &status))
        return status;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_signal_has_a_snapshot_and_its_default_action), cmocka_unit_test(the_snapshot_tells_the_story),
        cmocka_unit_test(lines_that_were_written_are_there_too), cmocka_unit_test(stepped_lines_are_there), cmocka_unit_test(lines_of_threads_that_log_on_are_whole),
        cmocka_unit_test(who_had_the_signal_before_still_has_it), cmocka_unit_test(who_chains_on_top_works_too),
        cmocka_unit_test(a_crash_in_the_snapshot_ends_it), cmocka_unit_test(a_stack_overflow_has_a_snapshot),
        cmocka_unit_test(threads_that_crash_together_give_one_whole_snapshot), cmocka_unit_test(the_last_descriptor_may_be_gone),
        cmocka_unit_test(what_is_missing_is_told_with_its_reason),
        cmocka_unit_test(a_child_of_fork_has_its_own), cmocka_unit_test(the_logs_own_thread_may_crash), cmocka_unit_test(five_are_kept),
        cmocka_unit_test(files_of_others_stay),
        cmocka_unit_test(a_bad_directory_is_one_clear_error), cmocka_unit_test(state_can_be_asked_for),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    scratch_remove();
    return failed;
}
