/* SPDX-License-Identifier: MIT */
/* test_emergency_file.c - the emergency file that is there without a setting: kill -9, exit, fork, exec, bad directories, full disks. */
#include "diag_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "emergency.h"

UMD_LOG_MODULE("umd.test");

static struct umd_emergency_slot slots[UMD_EMERGENCY_SLOTS];

#define IN_CALL(expr_) ({ struct umd_api_call call_ = { 0 }; umd_api_enter(&call_, "umdA", "x=%d", 1); umd_api_exit(&call_, (expr_)); })

/* ---- Programs: this binary again, as a process that has just begun ---- */

static void fail_once(void) { (void)!IN_CALL(UMD_FAIL(UMD_ERR_DEV_LOST_OFF_BUS, "register=0x%x", 0x40)); }

static int run_killed(void)
{
    UMD_LIFECYCLE("stack is up id=%d", 7);
    fail_once();
    kill(getpid(), SIGKILL);
    return 1;
}

static int run_quiet(void) { return 0; }

static int run_clean(void)
{
    UMD_LIFECYCLE("stack is up id=%d", 7);
    struct umd_emergency_stats st;
    umd_emergency_get_stats(&st);
    return st.where == UMD_EMERGENCY_DEFAULT_FILE && access(st.path, R_OK) == 0 ? 0 : 1;
}

static int run_failing(void)
{
    fail_once();
    return 0;
}

static int run_memory(void)
{
    struct umd_emergency_stats st;

    fail_once();
    umd_emergency_get_stats(&st);
    return st.where == UMD_EMERGENCY_MEMORY && st.put == 1 && umd_emergency_snapshot(slots, UMD_EMERGENCY_SLOTS) == 1 ? (int)st.degraded : 99;
}

static int run_stepped(void)
{
    struct umd_emergency_stats st;

    umd_sys_step_begin(3);
    fail_once();
    umd_emergency_get_stats(&st);
    umd_sys_step_end();
    return st.where == UMD_EMERGENCY_MEMORY ? 0 : 1;
}

static ssize_t full(int fd, const void *buf, size_t n)
{
    struct stat st;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        return umd_sys_default()->write(fd, buf, n);
    errno = ENOSPC;
    return -1;
}

/* A disk that is full. What went wrong once is told once. */
static int run_full(void)
{
    struct umd_sys table = *umd_sys_default();
    struct umd_emergency_stats st;

    table.write = full;
    umd_sys_set(&table);
    fail_once();
    umd_emergency_get_stats(&st);
    umd_sys_set(NULL);
    fail_once();
    umdLogFlush(2000);
    umd_emergency_get_stats(&st);
    return st.where == UMD_EMERGENCY_MEMORY && st.degraded == 1 && st.degraded_errno == ENOSPC && st.put >= 2 ? 0 : 1;
}

static uint64_t dies_in_the_fourth(void)
{
    static unsigned n;

    if (++n == 4)
        kill(getpid(), SIGKILL);
    return umd_sys_default()->real_ns();
}

/* Dies by the clock, which is read while the fourth record is made. */
static int run_torn(void)
{
    struct umd_sys table = *umd_sys_default();

    UMD_LIFECYCLE("first id=%d", 1);
    table.real_ns = dies_in_the_fourth;
    umd_sys_set(&table);
    for (int i = 0; i < 10; i++)
        umd_emergency_put(&(struct umd_emergency_note){ .module = "m", .func = "f", .file = "x.c", .line = (uint32_t)i, .message = "x" });
    return 1;
}

static void *writes_for_ever(void *arg)
{
    for (uint32_t i = 0;; i++)
        umd_emergency_put(&(struct umd_emergency_note){ .module = "m", .func = "f", .file = "x.c", .line = i, .message = arg });
    return NULL;
}

static int run_loop(void)
{
    pthread_t t;

    UMD_LIFECYCLE("looping id=%d", 1);
    if (pthread_create(&t, NULL, writes_for_ever, "second thread"))
        return 1;
    (void)!write(STDERR_FILENO, "go\n", 3);
    writes_for_ever("first thread");
    return 1;
}

static int run_fork(void)
{
    struct umd_emergency_stats st;
    int status;

    fail_once();
    pid_t child = fork();
    if (child == 0) {
        umd_emergency_get_stats(&st);
        if (st.put || st.where != UMD_EMERGENCY_MEMORY)
            _exit(2);
        UMD_LIFECYCLE("child is up id=%d", 8);
        fail_once();
        kill(getpid(), SIGKILL);
    }
    waitpid(child, &status, 0);
    umd_emergency_get_stats(&st);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && st.put == 1 ? 0 : 1;
}

static int run_exec(void)
{
    fail_once();
    execl("/proc/self/exe", "test", "--run", "failing", (char *)NULL);
    return 1;
}

/* Lives until its standard input ends. */
static int run_hold(void)
{
    char byte;

    fail_once();
    (void)!write(STDERR_FILENO, "go\n", 3);
    (void)!read(STDIN_FILENO, &byte, 1);
    fail_once();
    return 0;
}

/* Dies; a child of it lives until its standard input ends. */
static int run_orphan(void)
{
    char byte;

    fail_once();
    if (fork() == 0) {
        (void)!write(STDERR_FILENO, "go\n", 3);
        (void)!read(STDIN_FILENO, &byte, 1);
        _exit(0); /* exit() looks for leaks under AddressSanitizer, behind a lock that another thread may have held at the fork */
    }
    kill(getpid(), SIGKILL);
    return 1;
}

/* A process of another PID namespace with the same id has the file already: here it is this process by another open file. */
static int run_namesake(void)
{
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    struct umd_emergency_stats st;
    struct stat before, after;
    char path[400];

    if (mkdir(getenv("PETREL_STATE_DIR"), 0700) != 0)
        return 2;
    snprintf(path, sizeof(path), "%s/emergency.%d", getenv("PETREL_STATE_DIR"), (int)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || fcntl(fd, F_OFD_SETLK, &whole) != 0 || write(fd, "theirs", 6) != 6 || fstat(fd, &before) != 0)
        return 3;
    fail_once();
    umd_emergency_get_stats(&st);
    return st.where == UMD_EMERGENCY_DEFAULT_FILE && strcmp(st.path, path) != 0 && access(st.path, R_OK) == 0 && stat(path, &after) == 0 &&
        after.st_ino == before.st_ino && after.st_size == 6 ? 0 : 4;
}

/* A write that a signal interrupts is no full disk. */
static ssize_t interrupted(int fd, const void *buf, size_t n)
{
    static unsigned calls;

    if (calls++ % 2)
        return umd_sys_default()->write(fd, buf, n);
    errno = EINTR;
    return -1;
}

static int run_interrupted(void)
{
    struct umd_sys table = *umd_sys_default();
    struct umd_emergency_stats st;

    table.write = interrupted;
    umd_sys_set(&table);
    fail_once();
    umd_emergency_get_stats(&st);
    umd_sys_set(NULL);
    return st.where == UMD_EMERGENCY_DEFAULT_FILE && st.degraded == 0 ? 0 : 1;
}

static const struct run runs[] = {
    { "hold", run_hold }, { "orphan", run_orphan }, { "namesake", run_namesake }, { "interrupted", run_interrupted },
    { "killed", run_killed }, { "quiet", run_quiet }, { "clean", run_clean }, { "failing", run_failing }, { "memory", run_memory },
    { "stepped", run_stepped }, { "full", run_full }, { "torn", run_torn }, { "loop", run_loop }, { "fork", run_fork }, { "exec", run_exec },
};

/* Runs the program in the state directory `dir` of the scratch. Value: the wait status. */
static int program(const char *name, const char *dir, const char *more, char *text, size_t size)
{
    char env[1200];
    int n = snprintf(env, sizeof(env), "PETREL_STATE_DIR=%s UMD_LOG_CONSOLE=off %s", dir, more);

    assert_true(n > 0 && (size_t)n < sizeof(env));
    return in_program(name, env, text, size);
}

static const char *state(const char *name)
{
    const char *dir = scratch(name);

    assert_int_equal(setenv("PETREL_STATE_DIR", dir, 1), 0);
    return dir;
}

static char out[8192];
static struct umd_emergency_found found[16];

static uint32_t read_found(uint32_t i, uint32_t *damaged_out)
{
    uint32_t count;

    assert_int_equal(umd_emergency_read(found[i].path, slots, UMD_EMERGENCY_SLOTS, &count, damaged_out), UMD_SUCCESS);
    return count;
}

/* ---- Tests ---- */

static void kill_9_leaves_the_records_without_a_setting(void **unused)
{
    struct umd_emergency_head head;
    const char *dir = state("kill");
    uint32_t damaged;
    struct stat st;

    (void)unused;
    int status = program("killed", dir, "", out, sizeof(out));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(umd_emergency_find(0, found, 16), 1);
    assert_false(found[0].alive);
    assert_int_equal(read_found(0, &damaged), 2);
    assert_int_equal(damaged, 0);
    assert_string_equal(slots[0].message, "stack is up id=7");
    assert_int_equal(slots[0].level, UMD_LOG_INFO);
    assert_int_equal(slots[1].code, UMD_ERR_DEV_LOST_OFF_BUS);
    assert_int_equal(slots[1].level, UMD_LOG_ERROR);
    assert_int_equal(umd_emergency_read_head(found[0].path, &head), UMD_SUCCESS);
    assert_int_equal(head.pid, found[0].pid);
    assert_true(head.start_ticks != 0);
    assert_int_equal(stat(dir, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(stat(found[0].path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(umd_emergency_find(found[0].pid + 1, found, 16), 0);
}

static void a_clean_exit_leaves_nothing(void **unused)
{
    const char *dir = state("clean");

    (void)unused;
    assert_int_equal(program("quiet", dir, "", out, sizeof(out)), 0);
    assert_int_equal(access(dir, F_OK), -1); /* who only links the library makes not even the directory */
    assert_int_equal(program("clean", dir, "", out, sizeof(out)), 0);
    assert_int_equal(umd_emergency_find(0, found, 16), 0);
    assert_int_equal(program("failing", dir, "", out, sizeof(out)), 0);
    assert_int_equal(umd_emergency_find(0, found, 16), 1);
}

static void eight_of_the_dead_are_kept(void **unused)
{
    const char *dir = state("many");

    (void)unused;
    for (int i = 0; i < 11; i++)
        assert_int_equal(program("failing", dir, "", out, sizeof(out)), 0);
    uint32_t n = umd_emergency_find(0, found, 16);
    assert_true(n >= UMD_EMERGENCY_KEEP && n <= UMD_EMERGENCY_KEEP + 1); /* the newest was alive while the others were counted */
    for (uint32_t i = 1; i < n; i++)
        assert_true(found[i - 1].mtime_ns >= found[i].mtime_ns);
}

static void settings_keep_it_in_memory(void **unused)
{
    const char *dir = state("off");

    (void)unused;
    assert_int_equal(WEXITSTATUS(program("memory", dir, "UMD_EMERGENCY=off", out, sizeof(out))), 0);
    assert_int_equal(program("stepped", dir, "", out, sizeof(out)), 0);
    assert_int_equal(access(dir, F_OK), -1);
    assert_int_equal(WEXITSTATUS(program("stepped", dir, "UMD_EMERGENCY=file", out, sizeof(out))), 1);
    assert_int_equal(umd_emergency_find(0, found, 16), 1);
    assert_int_equal(program("quiet", dir, "UMD_EMERGENCY=maybe UMD_LOG_CONSOLE=warn", out, sizeof(out)), 0);
    assert_int_equal(count_of(out, "key=UMD_EMERGENCY value=\"maybe\""), 1);
}

/* Another's directory, one that others may write to, a link, a file: not used, and one line says so. */
static void a_directory_that_cannot_be_trusted_is_refused(void **unused)
{
    char target[160];

    (void)unused;
    snprintf(target, sizeof(target), "%s", scratch("target"));
    assert_int_equal(mkdir(target, 0700), 0);
    assert_int_equal(symlink(target, scratch("link")), 0);
    assert_int_equal(WEXITSTATUS(program("memory", scratch("link"), "UMD_LOG_CONSOLE=warn", out, sizeof(out))), 1);
    assert_int_equal(count_of(out, "emergency file not usable"), 1);
    assert_int_equal(mkdir(scratch("open"), 0777), 0);
    assert_int_equal(chmod(scratch("open"), 0777), 0);
    assert_int_equal(WEXITSTATUS(program("memory", scratch("open"), "", out, sizeof(out))), 1);
    close(creat(scratch("plain"), 0600));
    assert_int_equal(WEXITSTATUS(program("memory", scratch("plain"), "", out, sizeof(out))), 1);
    assert_int_equal(WEXITSTATUS(program("memory", "/nonexistent/dir", "", out, sizeof(out))), 1);
    if (geteuid() == 0) {
        assert_int_equal(mkdir(scratch("foreign"), 0700), 0);
        assert_int_equal(chown(scratch("foreign"), 1, 1), 0);
        assert_int_equal(WEXITSTATUS(program("memory", scratch("foreign"), "UMD_LOG_CONSOLE=warn", out, sizeof(out))), 1);
        assert_int_equal(count_of(out, "errno=1 "), 1);
    }
    assert_int_equal(rmdir(target), 0); /* nothing was put there */
}

static void a_full_disk_keeps_it_in_memory(void **unused)
{
    const char *dir = state("full");

    (void)unused;
    assert_int_equal(program("full", dir, "UMD_LOG_CONSOLE=warn", out, sizeof(out)), 0);
    assert_int_equal(count_of(out, "emergency file not usable"), 1);
    assert_int_equal(count_of(out, "errno=28"), 1);
    assert_int_equal(umd_emergency_find(0, found, 16), 0); /* the torso is gone */
}

static void a_record_torn_by_kill_9_is_counted(void **unused)
{
    uint32_t damaged;

    (void)unused;
    int status = program("torn", state("torn"), "", out, sizeof(out));
    assert_true(WIFSIGNALED(status));
    assert_int_equal(umd_emergency_find(0, found, 16), 1);
    assert_int_equal(read_found(0, &damaged), 4);
    assert_int_equal(slots[3].line, 2);
    assert_int_equal(damaged, 0); /* the clock is read before the slot is touched: there is nothing torn to see */

    /* The same, seen in the middle of the copy: the CRC of a slot is void from its first changed byte on. */
    uint64_t seq = 5;
    uint32_t crc = 0;
    int fd = open(found[0].path, O_RDWR);
    off_t at = 4096 + 5 * (off_t)sizeof(slots[0]);
    assert_int_equal(pwrite(fd, &crc, sizeof(crc), at + 4), 4);
    assert_int_equal(pwrite(fd, &seq, sizeof(seq), at + 8), 8);
    close(fd);
    assert_int_equal(read_found(0, &damaged), 4);
    assert_int_equal(damaged, 1);
}

/* Two threads write all the time; wherever the kill finds them, all but what they were at is whole. */
static void whole_records_survive_a_kill_in_the_midst(void **unused)
{
    uint32_t damaged, whole = 0;

    (void)unused;
    for (int round = 0; round < 12; round++) {
        (void)state(round % 2 ? "loop1" : "loop0");
        char byte;
        int fds[2], status;
        assert_int_equal(setenv("UMD_LOG_CONSOLE", "off", 1), 0);
        assert_int_equal(pipe(fds), 0);
        pid_t pid = fork();
        if (pid == 0) {
            dup2(fds[1], STDERR_FILENO);
            execl("/proc/self/exe", "test", "--run", "loop", (char *)NULL);
            _exit(126);
        }
        close(fds[1]);
        assert_int_equal(read(fds[0], &byte, 1), 1); /* it writes now */
        usleep((useconds_t)(200 + round * 377));
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        close(fds[0]);
        assert_int_equal(umd_emergency_find((uint32_t)pid, found, 16), 1);
        assert_false(found[0].alive);
        uint32_t n = read_found(0, &damaged);
        assert_true(n >= 1 && damaged <= 2);
        for (uint32_t i = 0; i < n; i++)
            assert_true(strcmp(slots[i].message, "first thread") == 0 || strcmp(slots[i].message, "second thread") == 0 ||
                        strcmp(slots[i].message, "looping id=1") == 0);
        for (uint32_t i = 1; i < n; i++)
            assert_true(slots[i].seq > slots[i - 1].seq);
        whole += n;
    }
    assert_true(whole > 12);
}

static void a_child_of_fork_has_its_own_file(void **unused)
{
    uint32_t damaged;

    (void)unused;
    assert_int_equal(program("fork", state("fork"), "", out, sizeof(out)), 0);
    assert_int_equal(umd_emergency_find(0, found, 16), 2);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t n = read_found(i, &damaged);
        assert_int_equal(slots[0].pid, found[i].pid);
        if (n == 2)
            assert_string_equal(slots[0].message, "child is up id=8");
        else
            assert_int_equal(n, 1);
    }
    assert_true(found[0].pid != found[1].pid);

    /* A named one: the child's has its process id. */
    char named[160], env[512], path[200];
    snprintf(named, sizeof(named), "%s", scratch("named"));
    snprintf(env, sizeof(env), "UMD_EMERGENCY_FILE=%s", named);
    assert_int_equal(program("fork", state("fork2"), env, out, sizeof(out)), 0);
    uint32_t count;
    assert_int_equal(umd_emergency_read(named, slots, UMD_EMERGENCY_SLOTS, &count, &damaged), UMD_SUCCESS);
    assert_int_equal(count, 1);
    snprintf(path, sizeof(path), "%s.[0-9]*", named);
    glob_t g;
    assert_int_equal(glob(path, 0, NULL, &g), 0);
    assert_int_equal(g.gl_pathc, 1);
    snprintf(path, sizeof(path), "%s", g.gl_pathv[0]);
    globfree(&g);
    assert_int_equal(umd_emergency_read(path, slots, UMD_EMERGENCY_SLOTS, &count, &damaged), UMD_SUCCESS);
    assert_int_equal(count, 2);
}

static void exec_keeps_the_story_of_before(void **unused)
{
    uint32_t damaged;

    (void)unused;
    assert_int_equal(program("exec", state("exec"), "", out, sizeof(out)), 0);
    assert_int_equal(umd_emergency_find(0, found, 16), 2);
    assert_int_equal(found[0].pid, found[1].pid);
    assert_int_equal(count_of(found[0].path, ".1") + count_of(found[1].path, ".1") >= 1, 1);
    assert_int_equal(read_found(0, &damaged), 1);
    assert_int_equal(read_found(1, &damaged), 1);
}

/* Starts the program with UMD_EMERGENCY_FILE=file, and comes back when it says that it is up; *hold_out: closed, it goes on. */
static pid_t holder(const char *name, const char *file, int *hold_out)
{
    int up[2], hold[2];
    char byte;

    assert_int_equal(pipe2(up, O_CLOEXEC), 0);
    assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("UMD_EMERGENCY_FILE", file, 1);
        setenv("UMD_LOG_CONSOLE", "off", 1);
        dup2(hold[0], STDIN_FILENO);
        dup2(up[1], STDERR_FILENO);
        execl("/proc/self/exe", "test", "--run", name, (char *)NULL);
        _exit(126);
    }
    close(up[1]);
    close(hold[0]);
    assert_int_equal(read(up[0], &byte, 1), 1);
    close(up[0]);
    *hold_out = hold[1];
    return pid;
}

static void a_named_file_stays_with_who_lives(void **unused)
{
    struct umd_emergency_head head;
    char named[160], old[170], env[512], pattern[200];
    uint32_t count, damaged;
    int hold, status;
    glob_t g;

    (void)unused;
    const char *dir = state("living");
    snprintf(named, sizeof(named), "%s", scratch("living.ring"));
    snprintf(old, sizeof(old), "%s.1", named);
    snprintf(env, sizeof(env), "UMD_EMERGENCY_FILE=%s UMD_LOG_CONSOLE=warn", named);
    pid_t pid = holder("hold", named, &hold);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(program("failing", dir, env, out, sizeof(out)), 0);
        assert_int_equal(count_of(out, "emergency file in use by another process"), 1);
    }
    assert_int_equal(access(old, F_OK), -1);
    assert_int_equal(umd_emergency_read_head(named, &head), UMD_SUCCESS);
    assert_int_equal(head.pid, pid);
    snprintf(pattern, sizeof(pattern), "%s.[0-9]*", named);
    assert_int_equal(glob(pattern, 0, NULL, &g), 0);
    assert_int_equal(g.gl_pathc, 2);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        assert_int_equal(umd_emergency_read(g.gl_pathv[i], slots, UMD_EMERGENCY_SLOTS, &count, &damaged), UMD_SUCCESS);
        assert_int_equal(count, 1);
    }
    globfree(&g);
    close(hold);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(umd_emergency_read(named, slots, UMD_EMERGENCY_SLOTS, &count, &damaged), UMD_SUCCESS);
    assert_int_equal(count, 2);
    assert_int_equal(program("failing", dir, env, out, sizeof(out)), 0); /* whose process is gone is put aside */
    assert_int_equal(umd_emergency_read_head(old, &head), UMD_SUCCESS);
    assert_int_equal(head.pid, pid);
    assert_int_equal(umd_emergency_read(named, slots, UMD_EMERGENCY_SLOTS, &count, &damaged), UMD_SUCCESS);
    assert_int_equal(count, 1);
    assert_int_equal(program("failing", dir, "UMD_EMERGENCY=off UMD_EMERGENCY_FILE=/nonexistent/ring UMD_LOG_CONSOLE=warn", out, sizeof(out)), 0);
    assert_int_equal(count_of(out, "emergency file"), 0);
}

static void a_child_that_outlives_its_parent_does_not_have_its_file(void **unused)
{
    char named[160], old[170], env[512];
    uint32_t count, damaged;
    int hold, status;

    (void)unused;
    const char *dir = state("orphan");
    snprintf(named, sizeof(named), "%s", scratch("orphan.ring"));
    snprintf(old, sizeof(old), "%s.1", named);
    snprintf(env, sizeof(env), "UMD_EMERGENCY_FILE=%s", named);
    pid_t pid = holder("orphan", named, &hold);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(program("failing", dir, env, out, sizeof(out)), 0);
    assert_int_equal(umd_emergency_read(old, slots, UMD_EMERGENCY_SLOTS, &count, &damaged), UMD_SUCCESS);
    assert_int_equal(slots[0].pid, pid);
    close(hold);
}

static void a_locked_file_is_alive_in_every_pid_namespace(void **unused)
{
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    const char *dir = state("locked");

    (void)unused;
    assert_int_equal(program("failing", dir, "", out, sizeof(out)), 0);
    assert_int_equal(umd_emergency_find(0, found, 16), 1);
    assert_false(found[0].alive);
    int fd = open(found[0].path, O_RDWR | O_CLOEXEC);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &whole), 0);
    assert_int_equal(umd_emergency_find(0, found, 16), 1);
    assert_true(found[0].alive);
    close(fd);
    assert_int_equal(program("namesake", state("namesake"), "", out, sizeof(out)), 0);
}

static void an_interrupted_write_is_repeated(void **unused)
{
    (void)unused;
    assert_int_equal(program("interrupted", state("interrupted"), "", out, sizeof(out)), 0);
}

/* A put inside a put, by a signal: both are whole. */
static void on_signal(int sig)
{
    (void)sig;
    umd_emergency_put(&(struct umd_emergency_note){ .module = "m", .func = "handler", .file = "x.c", .line = 1, .message = "from a signal handler" });
}

static void a_signal_handler_may_put(void **unused)
{
    struct sigaction act = { .sa_handler = on_signal }, old;
    uint32_t n = 0, from_handler = 0;
    struct umd_emergency_stats stats;

    (void)unused;
    sigaction(SIGALRM, &act, &old);
    struct itimerval every = { .it_interval.tv_usec = 200, .it_value.tv_usec = 200 }, never = { 0 };
    setitimer(ITIMER_REAL, &every, NULL);
    for (uint32_t round = 0; round < 2000 && from_handler == 0; round++) { /* until one came between: a busy host may take its time */
        for (uint32_t i = 0; i < 200; i++)
            umd_emergency_put(&(struct umd_emergency_note){ .module = "m", .func = "main", .file = "x.c", .line = 2, .message = "from the program" });
        n = umd_emergency_snapshot(slots, UMD_EMERGENCY_SLOTS);
        for (uint32_t i = 0; i < n; i++)
            from_handler += strcmp(slots[i].func, "handler") == 0;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &old, NULL);
    assert_true(from_handler > 0);
    uint32_t count, damaged;
    umd_emergency_get_stats(&stats);
    assert_int_equal(umd_emergency_read(stats.path, slots, UMD_EMERGENCY_SLOTS, &count, &damaged), UMD_SUCCESS);
    assert_int_equal(damaged, 0);
    for (uint32_t i = 0; i < count; i++)
        assert_string_equal(slots[i].message, strcmp(slots[i].func, "handler") == 0 ? "from a signal handler" : "from the program");
}

static void own_records_can_be_peeked_at(void **unused)
{
    struct umd_emergency_slot s;

    (void)unused;
    umd_emergency_put(&(struct umd_emergency_note){ .module = "m", .func = "f", .file = "x.c", .line = 77, .message = "peeked" });
    uint64_t next = umd_emergency_next_seq();
    assert_true(umd_emergency_peek(next - 1, &s));
    assert_int_equal(s.line, 77);
    assert_false(umd_emergency_peek(next, &s));
    assert_false(umd_emergency_peek(0, &s));
}

int main(int argc, char **argv)
{
    int status;

    if (run_program(argc, argv, runs, sizeof(runs) / sizeof(runs[0]), &status))
        return status;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kill_9_leaves_the_records_without_a_setting), cmocka_unit_test(a_clean_exit_leaves_nothing),
        cmocka_unit_test(eight_of_the_dead_are_kept), cmocka_unit_test(settings_keep_it_in_memory),
        cmocka_unit_test(a_directory_that_cannot_be_trusted_is_refused), cmocka_unit_test(a_full_disk_keeps_it_in_memory),
        cmocka_unit_test(a_record_torn_by_kill_9_is_counted), cmocka_unit_test(whole_records_survive_a_kill_in_the_midst),
        cmocka_unit_test(a_child_of_fork_has_its_own_file), cmocka_unit_test(exec_keeps_the_story_of_before),
        cmocka_unit_test(a_named_file_stays_with_who_lives),
        cmocka_unit_test(a_child_that_outlives_its_parent_does_not_have_its_file),
        cmocka_unit_test(a_locked_file_is_alive_in_every_pid_namespace), cmocka_unit_test(an_interrupted_write_is_repeated),
        cmocka_unit_test(a_signal_handler_may_put), cmocka_unit_test(own_records_can_be_peeked_at),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    scratch_remove();
    return failed;
}
