/* SPDX-License-Identifier: MIT */
/* usercopy.c - copies to and from the caller's memory; a fault inside the copy routine becomes EFAULT. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "record.h"
#include "snapshot.h"
#include "usercopy.h"

UMD_LOG_MODULE("kmd.usercopy");

#if defined(__x86_64__)
#define USERCOPY_FIXUP 1
/*
 * One string move between two labels: the handler knows by the program counter that a fault is ours, and resumes at the
 * fixup with rcx (bytes left) not 0. Written as a symbol of its own, so that no compiler copies or moves the labels.
 * The sanitizers do not see it, which is right: the other side's pointers are not theirs to judge.
 */
__asm__(".text\n"
        ".p2align 4\n"
        ".local usercopy_raw\n"
        ".type usercopy_raw,@function\n"
        "usercopy_raw:\n"
        "  .cfi_startproc\n"
        "  movq %rdx, %rcx\n"
        ".local usercopy_move\n"
        "usercopy_move:\n"
        "  rep movsb\n"
        ".local usercopy_moved\n"
        "usercopy_moved:\n"
        "  movq %rcx, %rax\n"
        "  ret\n"
        "  .cfi_endproc\n"
        ".size usercopy_raw,.-usercopy_raw\n");
size_t usercopy_raw(void *dst, const void *src, size_t n) __attribute__((visibility("hidden")));
extern const char usercopy_move[] __attribute__((visibility("hidden")));
extern const char usercopy_moved[] __attribute__((visibility("hidden")));
#else
#define USERCOPY_FIXUP 0
#endif

static const int fault_signals[2] = {SIGSEGV, SIGBUS};
/* Signal dispositions belong to the process, so these are globals: the C library forces it on us. */
static struct sigaction previous[2];
static pthread_mutex_t install_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned install_count;
static bool installed[2];
static bool crash_asks;     /* the crash handler knows of fix() */
/* This thread asked within its ioctl whether the handler is ours, and was told yes. */
static _Thread_local bool asked, ours;

#if USERCOPY_FIXUP
static void chain(int index, int sig, siginfo_t *info, void *context)
{
    const struct sigaction *old = &previous[index];
    if (old->sa_flags & SA_SIGINFO) {
        old->sa_sigaction(sig, info, context);
    } else if (old->sa_handler == SIG_DFL || old->sa_handler == SIG_IGN) {
        /* Back to the default: the faulting instruction runs again and ends the process as it would have without us. */
        struct sigaction dfl = {.sa_handler = SIG_DFL};
        sigaction(sig, &dfl, NULL);
    } else {
        old->sa_handler(sig);
    }
}

static bool fix(int sig, const siginfo_t *info, void *context)
{
    (void)sig;
    (void)info;
    ucontext_t *uc = context;
    uintptr_t pc = (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
    if (pc < (uintptr_t)usercopy_move || pc >= (uintptr_t)usercopy_moved)
        return false;
    uc->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)usercopy_moved;
    return true;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
    if (!fix(sig, info, context))
        chain(sig == SIGSEGV ? 0 : 1, sig, info, context);
}

/* `asks_us`: the crash handler counts as well, which asks fix() before it takes a fault for a crash. */
static bool handler_is_ours(bool asks_us)
{
    for (int i = 0; i < 2; i++) {
        struct sigaction now;
        if (sigaction(fault_signals[i], NULL, &now) != 0)
            return false;
        if (!((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault) && !(asks_us && crash_asks && umd_crash_handler_is(&now)))
            return false;
    }
    return true;
}
#endif

void usercopy_init(void)
{
    pthread_mutex_lock(&install_lock);
#if USERCOPY_FIXUP
    if (install_count == 0) {
        crash_asks = umd_fault_fixup_add(fix);
        for (int i = 0; i < 2; i++) {
            if (installed[i])
                continue; /* left in place below: to put it on top again would make it its own predecessor */
            struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
            sigemptyset(&act.sa_mask);
            installed[i] = sigaction(fault_signals[i], &act, &previous[i]) == 0;
        }
    }
#endif
    install_count++;
    pthread_mutex_unlock(&install_lock);
}

void usercopy_fini(void)
{
    pthread_mutex_lock(&install_lock);
#if USERCOPY_FIXUP
    /* Somebody may have chained on top of us; then our handler must stay, and it passes everything on. */
    if (install_count == 1 && handler_is_ours(false)) {
        for (int i = 0; i < 2; i++) {
            sigaction(fault_signals[i], &previous[i], NULL);
            installed[i] = false;
        }
    }
#endif
    install_count--;
    pthread_mutex_unlock(&install_lock);
}

void usercopy_begin(void)
{
#if USERCOPY_FIXUP
    ours = handler_is_ours(true);
    asked = true;
#endif
}

void usercopy_end(void)
{
    asked = false;
}

static bool copy_slow(void *local, uint64_t user, size_t size_B, bool to_user)
{
    struct iovec l = {.iov_base = local, .iov_len = size_B};
    struct iovec r = {.iov_base = (void *)(uintptr_t)user, .iov_len = size_B};
    ssize_t n = to_user ? process_vm_writev(getpid(), &l, 1, &r, 1, 0) : process_vm_readv(getpid(), &l, 1, &r, 1, 0);
    return n == (ssize_t)size_B;
}

static bool copy(void *local, uint64_t user, size_t size_B, bool to_user)
{
    if (size_B == 0)
        return true;
    if (user == 0 || user + size_B < user || user + size_B > (UINT64_C(1) << 47))
        return false;
#if USERCOPY_FIXUP
    if (asked ? ours : handler_is_ours(true)) {
        void *remote = (void *)(uintptr_t)user;
        return (to_user ? usercopy_raw(remote, local, size_B) : usercopy_raw(local, remote, size_B)) == 0;
    }
#endif
    return copy_slow(local, user, size_B, to_user);
}

bool usercopy_try_from(void *dst, uint64_t src_user, size_t size_B)
{
    return copy(dst, src_user, size_B, false);
}

bool usercopy_try_to(uint64_t dst_user, const void *src, size_t size_B)
{
    return copy((void *)(uintptr_t)src, dst_user, size_B, true);
}

int copy_from_user(void *dst, uint64_t src_user, size_t size_B, const char *what)
{
    if (usercopy_try_from(dst, src_user, size_B))
        return 0;
    return UMD_FAIL_ERRNO(UMD_ERR_UAPI_POINTER, "field=%s access=read size_B=%zu null=%d", what, size_B, src_user == 0);
}

int copy_to_user(uint64_t dst_user, const void *src, size_t size_B, const char *what)
{
    if (usercopy_try_to(dst_user, src, size_B))
        return 0;
    return UMD_FAIL_ERRNO(UMD_ERR_UAPI_POINTER, "field=%s access=write size_B=%zu null=%d", what, size_B, dst_user == 0);
}
