/* SPDX-License-Identifier: MIT */
/* test_kmd_crash.c - copies from bad pointers beside the crash handler, in whatever order they came: EFAULT is no crash, a crash is one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <glob.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <umd/umd_diag.h>

#include "record.h"
#include "usercopy.h"

static char dir[64];

/* The sanitizers' own handlers would be there first, and end the process in their way. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "handle_segv=0:handle_sigbus=0:use_sigaltstack=0:detect_leaks=0"; }
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "die_after_fork=0:handle_segv=0:handle_sigbus=0"; }

static volatile uintptr_t bad = 16;

/* Without the system call that copies slowly: what still can be copied went by the handler. */
static int forbid_slow_copies(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog prog = { .len = sizeof(filter) / sizeof(filter[0]), .filter = filter };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

enum order { ONLY_COPIES, CRASH_FIRST, COPIES_FIRST, COPIES_TWICE };

static void setup(enum order order)
{
    const struct rlimit no_core = { 0, 0 };

    setrlimit(RLIMIT_CORE, &no_core);
    signal(SIGSEGV, SIG_DFL); /* the test framework has handlers, too */
    signal(SIGBUS, SIG_DFL);
    if (order == CRASH_FIRST && umdCrashHandlerInstall(dir) != UMD_SUCCESS)
        _exit(101);
    usercopy_init();
    if (order >= COPIES_FIRST && umdCrashHandlerInstall(dir) != UMD_SUCCESS)
        _exit(102);
    if (order == COPIES_TWICE) { /* the library was closed and opened again below the crash handler */
        usercopy_fini();
        usercopy_init();
    }
}

/* The failed copy's record is taken, as by the ioctl that would have made it. */
static bool refused(int ret)
{
    umdErrorDetail d;

    return ret == -EFAULT && umd_record_export(&d) && d.code == UMD_ERR_UAPI_POINTER;
}

static void copies(enum order order)
{
    int from = 4711, to = 0;

    setup(order);
    if (forbid_slow_copies())
        _exit(77);
    if (copy_from_user(&to, (uintptr_t)&from, sizeof(to), "from") != 0 || to != 4711)
        _exit(103); /* by the system call, which is forbidden */
    for (int i = 0; i < 3; i++)
        if (!refused(copy_from_user(&to, bad, sizeof(to), "bad")) || !refused(copy_to_user(bad, &to, sizeof(to), "bad")))
            _exit(104);
    usercopy_fini();
    _exit(0);
}

static void crashes(enum order order)
{
    int to = 0;

    setup(order);
    (void)copy_from_user(&to, bad, sizeof(to), "bad");
    _exit(*(volatile int *)bad);
}

static int in_child(void (*fn)(enum order order), enum order order)
{
    int status;

    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        fn(order);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static size_t snapshots(void)
{
    char pattern[128];
    glob_t g;

    snprintf(pattern, sizeof(pattern), "%s/crash.*", dir);
    size_t n = glob(pattern, 0, NULL, &g) == 0 ? g.gl_pathc : 0;
    for (size_t i = 0; i < n; i++)
        unlink(g.gl_pathv[i]);
    globfree(&g);
    return n;
}

static void a_bad_pointer_is_no_crash(void **state)
{
    (void)state;
    for (enum order o = ONLY_COPIES; o <= COPIES_TWICE; o++) {
        int status = in_child(copies, o);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == 77)
            skip(); /* no filter of system calls to be had */
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_int_equal(snapshots(), 0);
    }
}

static void a_crash_is_one(void **state)
{
    (void)state;
    for (enum order o = ONLY_COPIES; o <= COPIES_TWICE; o++) {
        int status = in_child(crashes, o);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGSEGV);
        assert_int_equal(snapshots(), o == ONLY_COPIES ? 0 : 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_bad_pointer_is_no_crash), cmocka_unit_test(a_crash_is_one) };

    snprintf(dir, sizeof(dir), "/tmp/petrel-test-XXXXXX");
    if (!mkdtemp(dir))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(dir);
    return failed;
}
