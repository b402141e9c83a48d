/* SPDX-License-Identifier: MIT */
/* test_sys.c - the table of host functions: injected failures, leak counters, stepped mode; ranked locks. */
#include "diag_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

UMD_LOG_MODULE("umd.test");

static void allocations_are_zeroed_and_counted(void **state)
{
    uint64_t B0, n0, B1, n1;

    (void)state;
    umd_alloc_live(&B0, &n0);
    unsigned char *p = umd_alloc(100);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % 16, 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(p[i], 0);
    umd_alloc_live(&B1, &n1);
    assert_int_equal(B1 - B0, 100);
    assert_int_equal(n1 - n0, 1);
    umd_free(p);
    umd_free(NULL);
    umd_alloc_live(&B1, &n1);
    assert_int_equal(B1, B0);
    assert_int_equal(n1, n0);
}

static void failed_allocation_raises_at_the_caller(void **state)
{
    struct umd_api_call call = { 0 };

    (void)state;
    assert_int_equal(umd_fault_plan_set("sys.alloc[nth=2]=fail"), UMD_SUCCESS);
    void *p = umd_alloc(8);
    assert_non_null(p);
    umd_api_enter(&call, "umdA", "x=%d", 1);
    assert_null(umd_alloc(4242));
    assert_int_equal(umd_api_exit(&call, UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED)), UMD_ERR_MEM_HOST_ALLOC_FAILED);
    umdErrorDetail d = last_error();
    assert_string_equal(d.func, "failed_allocation_raises_at_the_caller");
    assert_string_equal(d.file, "test_sys.c");
    assert_non_null(strstr(d.figures, "size_B=4242 "));
    assert_non_null(strstr(d.figures, "errno=12"));
    umd_free(p);
    umd_api_enter(&call, "umdA", "x=%d", 2);
    assert_null(umd_alloc(SIZE_MAX)); /* the head in front must not wrap round */
    (void)umd_api_exit(&call, UMD_ERR_MEM_HOST_ALLOC_FAILED);
    assert_int_equal(umd_fault_plan_set(NULL), UMD_SUCCESS);
}

/* Each call that the library makes for memory of its own fails: it degrades and does not recurse. */
static void *no_memory(size_t size) { (void)size; errno = ENOMEM; return NULL; }

static void *raise_without_memory(void *arg)
{
    struct umd_api_call call = { 0 };
    umdErrorDetail d = { .size_B = sizeof(d) };

    umd_api_enter(&call, "umdA", "x=%d", 1);
    if (umd_alloc(10) != NULL)
        return "memory came from nowhere";
    if (umd_api_exit(&call, UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED)) != UMD_ERR_MEM_HOST_ALLOC_FAILED)
        return "the code is lost";
    UMD_LOG(UMD_LOG_ERROR, "nothing to log with x=%d", 1);
    umdLogMessage(UMD_LOG_ERROR, "ddp", 0, NULL, "nothing to log with");
    if (umdGetLastErrorDetail(&d) != UMD_STATUS_NOT_READY)
        return "a record without memory";
    return arg;
}

static void library_survives_without_memory(void **state)
{
    struct umd_sys table = *umd_sys_default();
    umd_record_counts before = counts_now();
    pthread_t t;
    void *what = NULL;

    (void)state;
    table.alloc = no_memory;
    umd_sys_set(&table);
    int r = pthread_create(&t, NULL, raise_without_memory, NULL);
    if (r == 0)
        pthread_join(t, &what);
    umd_sys_set(NULL);
    assert_int_equal(r, 0);
    assert_null(what);
    assert_true(counts_now().raised > before.raised);
}

static void injected_host_failures(void **state)
{
    const struct umd_sys *sys = umd_sys();
    pthread_t t;

    (void)state;
    assert_int_equal(umd_fault_plan_set("sys.open=1*fail(EACCES);sys.write=1*fail;sys.mmap=1*fail;sys.thread.create=1*fail"), UMD_SUCCESS);
    assert_int_equal(sys->open("/dev/null", O_WRONLY, 0), -1);
    assert_int_equal(errno, EACCES);
    int fd = sys->open("/dev/null", O_WRONLY, 0);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(sys->write(fd, "x", 1), -1);
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(sys->write(fd, "x", 1), 1);
    assert_int_equal(sys->close(fd), 0);
    assert_ptr_equal(sys->mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), MAP_FAILED);
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(sys->thread_create(&t, "x", raise_without_memory, NULL), EAGAIN);
    assert_int_equal(umd_fault_plan_set("sys.open=2*fail->1*fail(EMFILE)"), UMD_SUCCESS);
    for (int i = 0; i < 3; i++) { /* as documented, whatever is opened */
        errno = 0;
        assert_int_equal(i == 1 ? sys->open("/dev/null", O_RDONLY, 0) : sys->memfd_create("x", 4096), -1);
        assert_int_equal(errno, i < 2 ? EIO : EMFILE);
    }
    assert_int_equal(umd_fault_plan_set(NULL), UMD_SUCCESS);
}

static void memfd_is_sized_and_cannot_shrink(void **state)
{
    int fd = umd_sys()->memfd_create("test", 8192);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(lseek(fd, 0, SEEK_END), 8192);
    assert_int_equal(ftruncate(fd, 4096), -1);
    assert_int_equal(ftruncate(fd, 12288), 0);
    umd_sys()->close(fd);
}

static void *tid_of(void *arg)
{
    *(uint32_t *)arg = umd_sys()->tid();
    return NULL;
}

static void *foreign_of(void *arg)
{
    *(bool *)arg = umd_sys_step_foreign();
    return NULL;
}

/* Stepped mode belongs to who began first, whoever begins it again; without it nobody is foreign. */
static void stepped_mode_has_a_thread(void **state)
{
    bool other = true;
    pthread_t t;

    (void)state;
    for (int depth = 0; depth < 3; depth++) {
        assert_int_equal(pthread_create(&t, NULL, foreign_of, &other), 0);
        pthread_join(t, NULL);
        assert_int_equal(other, depth > 0);
        assert_false(umd_sys_step_foreign());
        umd_sys_step_begin(1);
    }
    for (int depth = 0; depth < 3; depth++)
        umd_sys_step_end();
    assert_int_equal(pthread_create(&t, NULL, foreign_of, &other), 0);
    pthread_join(t, NULL);
    assert_false(other);
}

static void stepped_mode_is_virtual(void **state)
{
    uint32_t other = 0;
    pthread_t t;

    (void)state;
    assert_int_equal(umd_sys()->pid(), getpid());
    for (int run = 0; run < 2; run++) {
        umd_sys_step_begin(42);
        assert_true(umd_sys_stepped());
        assert_int_equal(umd_sys()->mono_ns(), 0);
        uint64_t epoch = umd_sys()->real_ns();
        umd_sys_step_set_clock(1500);
        assert_int_equal(umd_sys()->mono_ns(), 1500);
        assert_true(umd_sys()->real_ns() - epoch == 1500);
        assert_true(epoch == 1000000000ull * 1000000000ull + 42ull * 1000000000ull);
        assert_int_equal(umd_sys()->pid(), 1);
        assert_int_equal(umd_sys()->tid(), 1);
        assert_int_equal(pthread_create(&t, NULL, tid_of, &other), 0);
        pthread_join(t, NULL);
        assert_int_equal(other, 2);
        umd_sys_step_end();
    }
    assert_int_equal(umd_sys()->pid(), getpid());
}

/* A program is in virtual time before the library is, and stays in it: the library's begin and end change nothing. */
static void stepped_mode_is_counted(void **state)
{
    (void)state;
    umd_sys_step_begin(7);
    uint64_t epoch = umd_sys()->real_ns();
    umd_sys_step_set_clock(900);
    umd_sys_step_begin(8);
    assert_int_equal(umd_sys()->mono_ns(), 900);
    assert_true(umd_sys()->real_ns() == epoch + 900);
    umd_sys_step_end();
    assert_true(umd_sys_stepped());
    assert_int_equal(umd_sys()->mono_ns(), 900);
    umd_sys_step_end();
    assert_false(umd_sys_stepped());
    umd_sys_step_begin(7);
    assert_int_equal(umd_sys()->mono_ns(), 0);
    umd_sys_step_end();
    assert_false(umd_sys_stepped());
}

static void wrong_order(void *arg)
{
    struct umd_mutex low, high;

    (void)arg;
    (void)!umdLogSetConsole("error");
    umd_mutex_init(&low, "the low one", 20);
    umd_mutex_init(&high, "the high one", 30);
    umd_mutex_lock(&high);
    umd_mutex_lock(&low);
}

static void right_order(void *arg)
{
    struct umd_mutex a, b, c;

    (void)arg;
    umd_mutex_init(&a, "a", 10);
    umd_mutex_init(&b, "b", 20);
    umd_mutex_init(&c, "c", 30);
    for (int i = 0; i < 3; i++) {
        umd_mutex_lock(&a);
        umd_mutex_lock(&b);
        umd_mutex_unlock(&a); /* not the last one taken: allowed */
        umd_mutex_lock(&c);
        umd_mutex_assert_held(&b);
        umd_mutex_unlock(&c);
        umd_mutex_unlock(&b);
    }
    umd_mutex_fini(&a);
    umd_mutex_fini(&b);
    umd_mutex_fini(&c);
}

static void twice(void *arg)
{
    struct umd_mutex m;

    (void)arg;
    (void)!umdLogSetConsole("error");
    umd_mutex_init(&m, "the one", 20);
    umd_mutex_lock(&m);
    umd_mutex_lock(&m);
}

static void not_held(void *arg)
{
    struct umd_mutex m;

    (void)arg;
    (void)!umdLogSetConsole("error");
    umd_mutex_init(&m, "the free one", 20);
    umd_mutex_assert_held(&m);
}

static void double_free(void *arg)
{
    struct alloc_words { uint64_t size, mark; } foreign[3] = { { 0, 0 } };

    (void)arg;
    (void)!umdLogSetConsole("error");
    umd_free(&foreign[1]);
}

static bool aborted(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT; }

static void locks_have_ranks(void **state)
{
    char text[4096];

    (void)state;
    assert_int_equal(in_child(right_order, NULL, text, sizeof(text)), 0);
    assert_true(aborted(in_child(not_held, NULL, text, sizeof(text))));
    assert_non_null(strstr(text, "the free one"));
#if UMD_DEBUG_ENABLE
    assert_true(aborted(in_child(wrong_order, NULL, text, sizeof(text))));
    assert_non_null(strstr(text, "lock=the low one rank=20 held=the high one held_rank=30"));
    assert_true(aborted(in_child(twice, NULL, text, sizeof(text))));
    assert_non_null(strstr(text, "lock taken twice lock=the one"));
#else
    (void)wrong_order;
    (void)twice;
#endif
}

static void freeing_what_is_not_ours_aborts(void **state)
{
    char text[4096];

    (void)state;
    assert_true(aborted(in_child(double_free, NULL, text, sizeof(text))));
    assert_non_null(strstr(text, "umd_free of a block that is not live"));
}

struct meeting {
    struct umd_mutex m;
    struct umd_cond c;
    bool came;
};

static void *comes(void *arg)
{
    struct meeting *x = arg;

    umd_mutex_lock(&x->m);
    x->came = true;
    umd_cond_broadcast(&x->c);
    umd_mutex_unlock(&x->m);
    return NULL;
}

static void conditions_time_out_and_wake(void **state)
{
    struct meeting x = { 0 };
    pthread_t t;

    (void)state;
    umd_mutex_init(&x.m, "meeting", 30);
    umd_cond_init(&x.c);
    umd_mutex_lock(&x.m);
    uint64_t start_ns = umd_sys()->mono_ns();
    assert_false(umd_cond_wait(&x.c, &x.m, 3000000));
    assert_true(umd_sys()->mono_ns() - start_ns >= 3000000);
    umd_mutex_assert_held(&x.m);
    assert_int_equal(umd_sys()->thread_create(&t, "comes", comes, &x), 0);
    while (!x.came)
        assert_true(umd_cond_wait(&x.c, &x.m, UINT64_MAX));
    umd_mutex_unlock(&x.m);
    pthread_join(t, NULL);
    umd_cond_fini(&x.c);
    umd_mutex_fini(&x.m);
}

static volatile sig_atomic_t signals;
static void count_signal(int sig) { (void)sig; signals++; }

/* A limit on the size of files is an errno, and no signal that would end the application; one that it asks for itself still comes. */
static void the_limit_of_file_sizes_is_no_signal(void **state)
{
    struct rlimit old, low;
    char path[] = "/tmp/petrel-sys-XXXXXX", text[256] = "";
    int fd = mkstemp(path);
    sigset_t before, after;

    (void)state;
    assert_true(fd >= 0);
    assert_true(signal(SIGXFSZ, count_signal) != SIG_ERR);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    low = (struct rlimit){ .rlim_cur = 100, .rlim_max = old.rlim_max };
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    ssize_t first = umd_sys()->write(fd, text, sizeof(text)), second = umd_sys()->write(fd, text, 1);
    int write_errno = errno, memfd = umd_sys()->memfd_create("test", 4096), memfd_errno = errno;
    sig_atomic_t ours = signals;
    ssize_t own = write(fd, text, 1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(first, 100);
    assert_int_equal(second, -1);
    assert_int_equal(write_errno, EFBIG);
    assert_int_equal(memfd, -1);
    assert_int_equal(memfd_errno, EFBIG);
    assert_int_equal(ours, 0);
    assert_int_equal(own, -1);
    assert_int_equal(signals, 1);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &after), 0);
    assert_int_equal(sigismember(&after, SIGXFSZ), sigismember(&before, SIGXFSZ));
    signal(SIGXFSZ, SIG_DFL);
    close(fd);
    unlink(path);
}

/* However the child was made: by the C library, whose fork handlers run, or by the bare system call, where none does. */
static void a_child_has_its_own_ids(void **state)
{
    (void)state;
    assert_int_equal(umd_sys()->pid(), getpid());
    for (int bare = 0; bare < 2; bare++) {
        pid_t pid = bare ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
        if (pid == 0)
            _exit(umd_sys()->pid() == (uint32_t)getpid() && umd_sys()->tid() == (uint32_t)getpid() ? 0 : 1);
        int status = -1;
        assert_true(pid > 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    assert_int_equal(umd_sys()->pid(), getpid());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_has_its_own_ids),
        cmocka_unit_test(allocations_are_zeroed_and_counted), cmocka_unit_test(failed_allocation_raises_at_the_caller),
        cmocka_unit_test(library_survives_without_memory), cmocka_unit_test(injected_host_failures),
        cmocka_unit_test(memfd_is_sized_and_cannot_shrink), cmocka_unit_test(the_limit_of_file_sizes_is_no_signal),
        cmocka_unit_test(stepped_mode_has_a_thread), cmocka_unit_test(stepped_mode_is_virtual), cmocka_unit_test(stepped_mode_is_counted), cmocka_unit_test(locks_have_ranks),
        cmocka_unit_test(freeing_what_is_not_ours_aborts), cmocka_unit_test(conditions_time_out_and_wake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
