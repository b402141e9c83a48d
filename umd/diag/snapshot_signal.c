/* SPDX-License-Identifier: MIT */
/* snapshot_signal.c - the handlers of fatal signals: snapshot, then whoever had the signal before, then the default. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "emergency.h"
#include "snapshot_internal.h"
#include "state_dir.h"

UMD_LOG_MODULE("diag.crash");

#define SIGNALS 5u
#define FIXUPS 4u
#define STACK_B 65536u
#define GUARD_B 4096u
#define WAIT_STEP_NS 10000000
#define WAIT_STEPS 1000u        /* 10 s for another thread's snapshot */
#define DYING_STEPS 50u         /* then so long for the process to end by it */

static const int signals[SIGNALS] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
/* Dispositions belong to the process, so these are globals: the C library forces it on us. */
static struct sigaction previous[SIGNALS];
static bool installed[SIGNALS];     /* since then perhaps chained on top of: never put a second time, never its own predecessor */
static struct umd_mutex lock = { .m = PTHREAD_MUTEX_INITIALIZER, .name = "crash handler", .rank = 91 };
static char dir[UMD_STATE_PATH_B - 40];
static _Atomic(bool) armed;         /* dir is written before */
static _Atomic(uint32_t) owner;     /* the thread that writes a snapshot */
static _Atomic(uint32_t) written;
static _Atomic(umd_fault_fixup) fixups[FIXUPS];

static void on_crash(int sig, siginfo_t *info, void *context);

bool umd_fault_fixup_add(umd_fault_fixup fn)
{
    for (uint32_t i = 0; i < FIXUPS; i++) {
        umd_fault_fixup free_place = NULL;
        if (atomic_load(&fixups[i]) == fn || atomic_compare_exchange_strong(&fixups[i], &free_place, fn))
            return true;
    }
    return false;
}

bool umd_crash_handler_is(const struct sigaction *act) { return (act->sa_flags & SA_SIGINFO) && act->sa_sigaction == on_crash; }

static bool fixed_up(int sig, const siginfo_t *info, void *context)
{
    for (uint32_t i = 0; i < FIXUPS && (sig == SIGSEGV || sig == SIGBUS); i++) {
        umd_fault_fixup fn = atomic_load(&fixups[i]);
        if (fn && fn(sig, info, context))
            return true;
    }
    return false;
}

/* ---- The file ---- */

static void add_number(char *to, uint64_t v)
{
    char digits[24];
    size_t at = sizeof(digits) - 1;

    digits[at] = '\0';
    do
        digits[--at] = (char)('0' + v % 10);
    while (v /= 10);
    strcat(to, digits + at); /* the buffer is larger than the directory by more than this */
}

/* No descriptor left: the soft limit can be raised, and the process is at its end. Value: a descriptor, or -errno. */
static int open_by_all_means(const char *path, int flags)
{
    struct rlimit limit;

    int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0)
        return fd;
    int err = errno;
    if (err != EMFILE || getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max)
        return -err;
    limit.rlim_cur = limit.rlim_max - limit.rlim_cur > 16 ? limit.rlim_cur + 16 : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return -err; /* that there is none left is what matters */
    fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd >= 0 ? fd : -errno;
}

static char path[UMD_STATE_PATH_B]; /* of the thread that owns the snapshot */

/* A descriptor, or -errno. */
static int open_file(void)
{
    struct timespec now;
    int fd = -EEXIST;

    clock_gettime(CLOCK_REALTIME, &now);
    for (uint64_t later = 0; later < 100 && fd == -EEXIST; later++) { /* two within a second: the next one's name */
        strcpy(path, dir);
        strcat(path, "/" UMD_CRASH_PREFIX);
        add_number(path, (uint64_t)getpid());
        strcat(path, ".");
        add_number(path, (uint64_t)now.tv_sec + later);
        fd = open_by_all_means(path, O_WRONLY | O_CREAT | O_EXCL);
    }
    return fd;
}

static const char *skip_digits(const char *s)
{
    const char *begin = s;

    while (*s >= '0' && *s <= '9')
        s++;
    return s == begin ? NULL : s;
}

#define FIRST_LINE UMD_CRASH_MAGIC "\n"
#define FIRST_LINE_B (sizeof(FIRST_LINE) - 1)

/* A snapshot, by its name and its first line; whatever else lies in the directory is the user's. */
static bool is_snapshot(const struct umd_state_file *file)
{
    char begin[FIRST_LINE_B];
    const char *s = skip_digits(file->name + strlen(UMD_CRASH_PREFIX));

    s = s && *s == '.' ? skip_digits(s + 1) : NULL;
    if (!s || *s)
        return false;
    int fd = open_by_all_means(file->path, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool same = read(fd, begin, FIRST_LINE_B) == (ssize_t)FIRST_LINE_B && memcmp(begin, FIRST_LINE, FIRST_LINE_B) == 0;
    close(fd);
    return same;
}

/* Not even its first line could be written: no use to anybody, and not to be known for ours later. */
static bool is_void(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_size < (off_t)FIRST_LINE_B;
}

/* Where standard error takes it at once: a full pipe would hold us for ever. */
static void say(const char *signal_name, bool have, int err)
{
    static char text[UMD_STATE_PATH_B + 192];
    struct umd_state_out o = { .fd = STDERR_FILENO, .buf = text, .size = sizeof(text) };
    struct pollfd room = { .fd = STDERR_FILENO, .events = POLLOUT };

    if (poll(&room, 1, 0) != 1 || !(room.revents & POLLOUT))
        return;
    umd_raw_text(&o, "petrel: ");
    umd_raw_text(&o, signal_name);
    umd_raw_text(&o, !have ? ", and no snapshot could be written to " : err ? ", snapshot cut short (" : ", snapshot written");
    if (have && err) {
        umd_raw_text(&o, strerrordesc_np(err));
        umd_raw_text(&o, ")");
    }
    umd_raw_text(&o, have ? "; to read it: umd-crash show " : dir);
    umd_raw_text(&o, have ? path : ": ");
    umd_raw_text(&o, have ? "" : strerrordesc_np(err));
    umd_raw_text(&o, "\n");
    umd_raw_flush(&o);
}

/* Standard error may be closed, or nobody reads it. */
static void note_missing(int err)
{
    static char message[UMD_STATE_PATH_B + 96];
    struct umd_state_out o = { .fd = -1, .buf = message, .size = sizeof(message) };

    umd_raw_text(&o, "crash snapshot not written or cut short");
    umd_raw_kv_i64(&o, "errno", err);
    umd_raw_kv_text(&o, "dir", dir);
    umd_emergency_put(&(struct umd_emergency_note){ .module = "diag.crash", .func = "on_crash", .file = __FILE_NAME__, .line = __LINE__,
                                                    .message = message });
}

static bool size_signal_pending(void)
{
    sigset_t pending;

    return sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

/* The emergency ring first: it needs nothing. */
static void snapshot(int sig, const siginfo_t *info, const void *context)
{
    static char message[96];
    struct umd_state_out o = { .fd = -1, .buf = message, .size = sizeof(message) };

    umd_raw_text(&o, "crashed");
    umd_raw_kv_text(&o, "signal", umd_snapshot_signal_name(sig));
    umd_raw_kv_i64(&o, "code", info->si_code);
    umd_raw_kv_hex(&o, "address", info->si_code > 0 ? (uint64_t)(uintptr_t)info->si_addr : 0);
    umd_emergency_put(&(struct umd_emergency_note){ .module = "diag.crash", .func = "on_crash", .file = __FILE_NAME__, .line = __LINE__,
                                                    .message = message });
    if (atomic_fetch_add(&written, 1) >= UMD_CRASH_KEEP)
        return; /* a handler before ours goes on after each of them */
    int fd = open_file(), err = fd < 0 ? -fd : 0;
    bool have = fd >= 0;
    if (have) {
        err = umd_snapshot_write(fd, sig, info, context);
        have = !err || !is_void(fd);
        if (!have)
            unlink(path);
        if (close(fd) != 0 && !err)
            err = errno;
        umd_state_files_keep(dir, UMD_CRASH_PREFIX, UMD_CRASH_KEEP, is_snapshot);
    }
    if (err)
        note_missing(err);
    say(umd_snapshot_signal_name(sig), have, err);
}

/* At a limit on the size of files the kernel sends a signal, which waits as all do, and would end the process before the one it dies of. */
static void snapshot_quietly(int sig, const siginfo_t *info, const void *context)
{
    static const struct timespec now = { 0 };
    const bool before = size_signal_pending();
    sigset_t one;

    snapshot(sig, info, context);
    sigemptyset(&one);
    sigaddset(&one, SIGXFSZ);
    if (!before && size_signal_pending())
        (void)sigtimedwait(&one, NULL, &now);
}

static void pause_step(void)
{
    struct timespec ts = { .tv_nsec = WAIT_STEP_NS };

    clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

/* Another thread is at its snapshot: it goes first, and most often ends the process. */
static bool become_owner(void)
{
    uint32_t tid = umd_diag_host_tid(), idle = 0;

    for (uint32_t i = 0; i < WAIT_STEPS; i++) {
        uint32_t nobody = 0;
        if ((i == 0 || idle >= DYING_STEPS) && atomic_compare_exchange_strong(&owner, &nobody, tid))
            return true;
        if (nobody == tid)
            return false; /* a crash within the snapshot that no mask held back */
        idle = atomic_load(&owner) ? 0 : idle + 1;
        pause_step();
    }
    return false;
}

/* ---- Who had the signal before ---- */

static size_t index_of(int sig)
{
    size_t i = 0;

    while (i < SIGNALS - 1 && signals[i] != sig)
        i++;
    return i;
}

/* The default action, as it would have been without us. A fault happens again when the handler returns; what was sent is sent again. */
static void die_of(int sig, siginfo_t *info)
{
    struct sigaction dfl = { .sa_handler = SIG_DFL };

    sigaction(sig, &dfl, NULL);
    if (info->si_code <= 0)
        syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), sig, info);
}

/* A handler sees the mask that the kernel would have given it. */
static void run_previous(int sig, siginfo_t *info, void *context, const sigset_t *interrupted)
{
    struct sigaction old = previous[index_of(sig)];
    sigset_t mask;

    if (!(old.sa_flags & SA_SIGINFO) && (old.sa_handler == SIG_DFL || old.sa_handler == SIG_IGN)) {
        die_of(sig, info);
        return;
    }
    sigorset(&mask, interrupted, &old.sa_mask);
    if (old.sa_flags & SA_NODEFER)
        sigdelset(&mask, sig);
    else
        sigaddset(&mask, sig);
    if (old.sa_flags & SA_RESETHAND)
        previous[index_of(sig)] = (struct sigaction){ .sa_handler = SIG_DFL };
    sigprocmask(SIG_SETMASK, &mask, NULL);
    if (old.sa_flags & SA_SIGINFO)
        old.sa_sigaction(sig, info, context);
    else
        old.sa_handler(sig);
}

static bool ignored(int sig, const siginfo_t *info)
{
    const struct sigaction *old = &previous[index_of(sig)];

    return info->si_code <= 0 && !(old->sa_flags & SA_SIGINFO) && old->sa_handler == SIG_IGN;
}

/* All is blocked meanwhile: a fault in here ends in its default action, and the kernel sees to it. */
static void on_crash(int sig, siginfo_t *info, void *context)
{
    int saved = errno;
    sigset_t all, entry;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &entry);
    if (fixed_up(sig, info, context) || ignored(sig, info)) {
        sigprocmask(SIG_SETMASK, &entry, NULL);
        errno = saved;
        return;
    }
    if (atomic_load(&armed) && become_owner()) {
        bool entered = umd_diag_enter(); /* nothing in here may log */
        snapshot_quietly(sig, info, context);
        if (entered)
            umd_diag_leave();
        atomic_store(&owner, 0);
    }
    run_previous(sig, info, context, &((ucontext_t *)context)->uc_sigmask);
    errno = saved; /* the mask comes back with the return: what was sent again must not arrive before */
}

/* ---- Stacks of threads ---- */

void umd_crash_thread_begin(struct umd_diag_thread *t)
{
    stack_t now;

    if (!atomic_load(&armed) || t->crash_stack || sigaltstack(NULL, &now) != 0 || !(now.ss_flags & SS_DISABLE))
        return;
    uint8_t *map = mmap(NULL, GUARD_B + STACK_B, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (map == MAP_FAILED)
        return; /* an overflow then ends the process without a snapshot */
    stack_t stack = { .ss_sp = map + GUARD_B, .ss_size = STACK_B };
    if (mprotect(map + GUARD_B, STACK_B, PROT_READ | PROT_WRITE) != 0 || sigaltstack(&stack, NULL) != 0) {
        munmap(map, GUARD_B + STACK_B);
        return;
    }
    t->crash_stack = map;
}

void umd_crash_thread_end(struct umd_diag_thread *t)
{
    stack_t now, none = { .ss_flags = SS_DISABLE };

    if (!t->crash_stack)
        return;
    if (sigaltstack(NULL, &now) == 0 && now.ss_sp == (uint8_t *)t->crash_stack + GUARD_B && sigaltstack(&none, NULL) != 0)
        return; /* in use: better kept than taken away */
    munmap(t->crash_stack, GUARD_B + STACK_B);
    t->crash_stack = NULL;
}

/* ---- Installing ---- */

static void put_handlers_locked(void)
{
    struct sigaction act = { .sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK };

    umd_mutex_assert_held(&lock);
    sigfillset(&act.sa_mask);
    for (uint32_t i = 0; i < SIGNALS; i++) {
        struct sigaction now;
        if (installed[i] || sigaction(signals[i], NULL, &now) != 0)
            continue;
        previous[i] = now; /* before the handler can run */
        installed[i] = sigaction(signals[i], &act, NULL) == 0;
    }
}

/* 0 or errno. */
static int install(const char *to)
{
    size_t n = strlen(to);
    char cwd[sizeof(dir)];
    struct umd_diag_thread *t = umd_diag_thread_get();
    int err = 0;

    cwd[0] = '\0';
    if (*to != '/' && (!getcwd(cwd, sizeof(cwd)) || strlen(cwd) + 1 >= sizeof(cwd)))
        return ENAMETOOLONG;
    if (cwd[0])
        strcat(cwd, "/");
    if (n == 0 || strlen(cwd) + n >= sizeof(dir))
        return n ? ENAMETOOLONG : ENOENT;
    err = umd_state_dir_make(to);
    if (!err && access(to, W_OK | X_OK) != 0)
        err = errno;
    if (err)
        return err;
    umd_mutex_lock(&lock);
    atomic_store(&armed, false);
    strcpy(dir, cwd); /* a later chdir changes nothing */
    strcat(dir, to);
    atomic_store(&armed, true);
    put_handlers_locked();
    umd_mutex_unlock(&lock);
    if (t)
        umd_crash_thread_begin(t);
    return 0;
}

static umdStatus install_checked(const char *to)
{
    if (!to)
        return UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=dir");
    int err = install(to);
    if (err)
        return UMD_FAIL(umd_record_file_code(err), "path=\"%.300s\" errno=%d reason=\"%s\"", to, err, strerrordesc_np(err));
    return UMD_SUCCESS;
}

umdStatus umdCrashHandlerInstall(const char *directory)
{
    struct umd_api_call call = { 0 };

    umd_api_enter(&call, "umdCrashHandlerInstall", "dir=\"%s\"", directory ? directory : "");
    return umd_api_exit(&call, install_checked(directory));
}

void umdCrashHandlerRemove(void)
{
    umd_mutex_lock(&lock);
    atomic_store(&armed, false);
    for (uint32_t i = 0; i < SIGNALS; i++) {
        struct sigaction now;
        /* Somebody who chained on top of us still calls us: then we stay, and pass on. */
        if (installed[i] && sigaction(signals[i], NULL, &now) == 0 && umd_crash_handler_is(&now))
            installed[i] = sigaction(signals[i], &previous[i], NULL) != 0;
    }
    umd_mutex_unlock(&lock);
}

void umd_crash_init(void)
{
    const char *to = secure_getenv("UMD_CRASH_DIR");
    int err = to && *to ? install(to) : 0;

    if (err)
        UMD_LOG(UMD_LOG_WARN, "no crash snapshots, directory not usable path=\"%.300s\" errno=%d reason=\"%s\"", to, err, strerrordesc_np(err));
}

void umd_crash_atfork_child(void)
{
    umd_diag_thread_child();
    pthread_mutex_init(&lock.m, NULL); /* another thread of the parent may have held it */
    atomic_store(&owner, 0);
    atomic_store(&written, 0);
}
