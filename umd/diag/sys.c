/* SPDX-License-Identifier: MIT */
/* sys.c - the default table of host functions with its fault sites, and stepped mode's virtual time and ids. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "diag_internal.h"
#include "fault_plan.h"
#include "stamp.h"

static _Atomic(bool) stepped;
static _Atomic(uint64_t) step_clock_ns;
static _Atomic(uint64_t) step_epoch_ns;
static _Atomic(uint32_t) step_depth;     /* begins without their end; the first one's seed counts */
static _Atomic(uint32_t) step_epoch;     /* counts umd_sys_step_begin: ordinals of an earlier run do not live on */
static _Atomic(uint32_t) step_ordinals;
static _Atomic(const void *) step_thread; /* the one that began, by an address only it has */
static __thread char here __attribute__((tls_model("initial-exec")));

static bool fails(enum umd_fault_site site, int default_errno)
{
    struct umd_diag_thread *t = umd_diag_thread_peek();
    struct umd_fault_where where = { .ctx = t ? t->context_id : 0 };
    struct umd_fault_hit hit;

    if (!umd_fault(site, where, &hit))
        return false;
    errno = hit.arg_count ? (int)hit.args[0] : default_errno;
    return true;
}

static void *sys_alloc(size_t size)
{
    return fails(UMD_FAULT_SYS_ALLOC, ENOMEM) ? NULL : calloc(1, size ? size : 1);
}

static void *sys_realloc(void *p, size_t size)
{
    return fails(UMD_FAULT_SYS_ALLOC, ENOMEM) ? NULL : realloc(p, size ? size : 1);
}

static void sys_free(void *p) { free(p); }

static int sys_open(const char *path, int flags, unsigned mode)
{
    int fd;

    if (fails(UMD_FAULT_SYS_OPEN, EIO))
        return -1;
    do
        fd = open(path, flags | O_CLOEXEC, mode);
    while (fd < 0 && errno == EINTR);
    return fd;
}

static ssize_t sys_read(int fd, void *buf, size_t n)
{
    ssize_t got;

    do
        got = read(fd, buf, n);
    while (got < 0 && errno == EINTR);
    return got;
}

/*
 * A file that would grow beyond RLIMIT_FSIZE is EFBIG to us, and no SIGXFSZ to the application, which would end without a word: the signal is
 * held back around the call, and taken where it came. One that was blocked before is the application's affair.
 */
struct size_limit {
    sigset_t old;
    bool held;
};

static void limit_begin(struct size_limit *l)
{
    struct rlimit most;
    sigset_t one;

    l->held = false;
    if (getrlimit(RLIMIT_FSIZE, &most) != 0 || most.rlim_cur == RLIM_INFINITY)
        return;
    sigemptyset(&one);
    sigaddset(&one, SIGXFSZ);
    l->held = pthread_sigmask(SIG_BLOCK, &one, &l->old) == 0 && !sigismember(&l->old, SIGXFSZ);
}

static void limit_end(struct size_limit *l, bool failed)
{
    static const struct timespec now = { 0 };
    int saved = errno;
    sigset_t one;

    if (!l->held)
        return;
    sigemptyset(&one);
    sigaddset(&one, SIGXFSZ);
    if (failed && saved == EFBIG)
        while (sigtimedwait(&one, NULL, &now) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &l->old, NULL);
    errno = saved;
}

ssize_t umd_sys_write_plain(int fd, const void *buf, size_t n)
{
    struct size_limit limit;

    limit_begin(&limit);
    ssize_t put = write(fd, buf, n);
    limit_end(&limit, put < 0);
    return put;
}

static ssize_t sys_write(int fd, const void *buf, size_t n)
{
    ssize_t put;

    if (fails(UMD_FAULT_SYS_WRITE, ENOSPC))
        return -1;
    do
        put = umd_sys_write_plain(fd, buf, n);
    while (put < 0 && errno == EINTR);
    return put;
}

int umd_sys_truncate(int fd, uint64_t size_B)
{
    struct size_limit limit;
    int r;

    limit_begin(&limit);
    do
        r = ftruncate(fd, (off_t)size_B);
    while (r < 0 && errno == EINTR);
    limit_end(&limit, r < 0);
    return r;
}

/* Linux has released the descriptor when close reports EINTR: a second close could hit another thread's file. */
static int sys_close(int fd)
{
    int r = close(fd);

    return r < 0 && errno == EINTR ? 0 : r;
}

static int sys_memfd_create(const char *name, uint64_t size_B)
{
    if (fails(UMD_FAULT_SYS_OPEN, EIO))
        return -1;
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    if (umd_sys_truncate(fd, size_B) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

static void *sys_mmap(void *addr, size_t n, int prot, int flags, int fd, int64_t off)
{
    return fails(UMD_FAULT_SYS_MMAP, ENOMEM) ? MAP_FAILED : mmap(addr, n, prot, flags, fd, (off_t)off);
}

static int sys_munmap(void *p, size_t n) { return munmap(p, n); }

static int sys_rename(const char *from, const char *to)
{
    return rename(from, to);
}

static int sys_unlink(const char *path) { return unlink(path); }

static int64_t sys_file_size(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return -1;
    if (!S_ISREG(st.st_mode)) {
        errno = EINVAL;
        return -1;
    }
    return (int64_t)st.st_size;
}

/* Our threads leave asynchronous signals to the application; faults of the thread itself still arrive. */
static int sys_thread_create(pthread_t *t, const char *name, void *(*fn)(void *), void *arg)
{
    sigset_t all, old;

    errno = 0;
    if (fails(UMD_FAULT_SYS_THREAD_CREATE, EAGAIN))
        return errno;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    sigdelset(&all, SIGABRT);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int r = pthread_create(t, NULL, fn, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r == 0 && name) {
        char shortened[16];
        UMD_COPY_STR(shortened, name);
        pthread_setname_np(*t, shortened);
    }
    return r;
}

static uint64_t clock_ns(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t sys_mono_ns(void)
{
    return atomic_load_explicit(&stepped, memory_order_relaxed)
        ? atomic_load_explicit(&step_clock_ns, memory_order_relaxed) : clock_ns(CLOCK_MONOTONIC);
}

static uint64_t sys_real_ns(void)
{
    return atomic_load_explicit(&stepped, memory_order_relaxed)
        ? atomic_load(&step_epoch_ns) + atomic_load(&step_clock_ns) : clock_ns(CLOCK_REALTIME);
}

/*
 * The process id without a system call, of which each would cost a microsecond on some hosts: it lies in a page that is zeros in a child,
 * however that was made. NULL: such a page cannot be had, and the kernel is asked each time.
 */
static _Atomic(uint32_t) *pid_page;

__attribute__((constructor(101))) static void pid_init(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return;
    if (madvise(page, size, MADV_WIPEONFORK) == 0)
        pid_page = page;
    else
        munmap(page, size);
}

uint32_t umd_diag_host_pid(void)
{
    uint32_t pid = pid_page ? atomic_load_explicit(pid_page, memory_order_relaxed) : 0;

    if (__builtin_expect(pid != 0, 1))
        return pid;
    pid = (uint32_t)getpid();
    if (pid_page)
        atomic_store_explicit(pid_page, pid, memory_order_relaxed);
    return pid;
}

uint32_t umd_diag_host_tid(void)
{
    static __thread uint32_t tid __attribute__((tls_model("initial-exec"))), tid_pid __attribute__((tls_model("initial-exec")));
    uint32_t pid = umd_diag_host_pid(); /* a forked child's thread has another id */

    if (tid_pid != pid) {
        tid = (uint32_t)syscall(SYS_gettid);
        tid_pid = pid;
    }
    return tid;
}

static uint32_t sys_tid(void)
{
    if (!atomic_load_explicit(&stepped, memory_order_relaxed))
        return umd_diag_host_tid();
    struct umd_diag_thread *t = umd_diag_inside() ? umd_diag_thread_peek() : umd_diag_thread_get(); /* a crash cannot allocate */
    if (!t)
        return 0;
    uint32_t epoch = atomic_load(&step_epoch);
    if (t->ordinal_epoch != epoch) {
        t->ordinal_epoch = epoch;
        t->ordinal = atomic_fetch_add(&step_ordinals, 1) + 1;
    }
    return t->ordinal;
}

static uint32_t sys_pid(void)
{
    return atomic_load_explicit(&stepped, memory_order_relaxed) ? 1 : umd_diag_host_pid();
}

static const struct umd_sys default_table = {
    .alloc = sys_alloc, .realloc = sys_realloc, .free = sys_free,
    .open = sys_open, .read = sys_read, .write = sys_write, .close = sys_close,
    .memfd_create = sys_memfd_create, .mmap = sys_mmap, .munmap = sys_munmap,
    .rename = sys_rename, .unlink = sys_unlink, .file_size = sys_file_size,
    .thread_create = sys_thread_create,
    .mono_ns = sys_mono_ns, .real_ns = sys_real_ns, .tid = sys_tid, .pid = sys_pid,
};
static _Atomic(const struct umd_sys *) table = &default_table;

const struct umd_sys *umd_sys(void) { return atomic_load_explicit(&table, memory_order_acquire); }
void umd_sys_set(const struct umd_sys *other)
{
    umdLogFlush(1000); /* what is in the rings has the old table's time */
    atomic_store_explicit(&table, other ? other : &default_table, memory_order_release);
    umd_stamp_choose();
}
const struct umd_sys *umd_sys_default(void) { return &default_table; }

/* An injected failure here would lose the very error it is about: the site is left out, a test's own table is not. */
void *umd_diag_alloc(size_t size)
{
    const struct umd_sys *sys = umd_sys();
    return sys == &default_table ? calloc(1, size) : sys->alloc(size);
}

void umd_diag_free(void *p) { umd_sys()->free(p); }

/* In front of the block; 0: of a test's table. Its size keeps the block's alignment. */
struct map_head { size_t mapped_B; uint64_t reserved[7]; };

void *umd_diag_map(size_t size)
{
    const size_t whole_B = size + sizeof(struct map_head);
    const struct umd_sys *sys = umd_sys();
    struct map_head *head;

    if (sys != &default_table) {
        head = sys->alloc(whole_B);
    } else {
        head = mmap(NULL, whole_B, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (head == MAP_FAILED)
            return NULL;
        head->mapped_B = whole_B;
    }
    return head ? head + 1 : NULL;
}

void umd_diag_unmap(void *p)
{
    struct map_head *head = (struct map_head *)p - 1;

    if (head->mapped_B)
        (void)munmap(head, head->mapped_B);
    else
        umd_sys()->free(head);
}

void umd_sys_step_begin(uint64_t seed)
{
    if (atomic_fetch_add(&step_depth, 1))
        return; /* a program that wants its log to be virtual from the first line has begun already */
    atomic_store(&step_thread, &here);
    umdLogFlush(1000);
    /* 2001-09-09 plus up to 18 hours: the epoch tells runs apart and is the seed's alone. */
    atomic_store(&step_epoch_ns, 1000000000ull * 1000000000ull + (seed & 0xffff) * 1000000000ull);
    atomic_store(&step_clock_ns, 0);
    atomic_store(&step_ordinals, 0);
    atomic_fetch_add(&step_epoch, 1);
    atomic_store(&stepped, true);
    umd_record_step_reset(seed);
    umd_log_step_reset();
}

void umd_sys_step_end(void)
{
    uint32_t depth = atomic_fetch_sub(&step_depth, 1);

    assert(depth);
    if (depth != 1)
        return;
    umd_log_tell_held(); /* with the clock of the run */
    atomic_store(&stepped, false);
    umd_log_step_reset();
}

bool umd_sys_step_foreign(void)
{
    return __builtin_expect(umd_sys_stepped(), 0) && atomic_load_explicit(&step_thread, memory_order_relaxed) != &here;
}

bool umd_sys_stepped(void) { return atomic_load_explicit(&stepped, memory_order_relaxed); }
void umd_sys_step_set_clock(uint64_t ns) { atomic_store_explicit(&step_clock_ns, ns, memory_order_relaxed); }
