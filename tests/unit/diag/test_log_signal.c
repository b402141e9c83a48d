/* SPDX-License-Identifier: MIT */
/* test_log_signal.c - logging from a signal handler on a thread that has not logged: nothing that a handler may not call is called. */
#include "diag_fixture.h"

#include <dlfcn.h>
#include <signal.h>

#include "emergency.h"

UMD_LOG_MODULE("umd.test");

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_MALLOC 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OWN_MALLOC 0
#endif
#endif
#ifndef OWN_MALLOC
#define OWN_MALLOC 1 /* else these functions are the sanitizer's, which calls them before a thread is up */
#endif

static __thread volatile sig_atomic_t in_handler __attribute__((tls_model("initial-exec")));
static _Atomic(int) forbidden; /* calls that a handler may not make */

/* The C library's own, which this program's take the place of for all libraries. */
#define INSTEAD __attribute__((visibility("default")))
#if OWN_MALLOC
INSTEAD int pthread_getattr_np(pthread_t thread, pthread_attr_t *attr)
{
    int (*real)(pthread_t, pthread_attr_t *) = (int (*)(pthread_t, pthread_attr_t *))dlsym(RTLD_NEXT, "pthread_getattr_np");

    forbidden += in_handler;
    return real(thread, attr);
}

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
INSTEAD void *malloc(size_t n)
{
    forbidden += in_handler;
    return __libc_malloc(n);
}

INSTEAD void *calloc(size_t n, size_t size)
{
    forbidden += in_handler;
    return __libc_calloc(n, size);
}

INSTEAD void *realloc(void *p, size_t n)
{
    forbidden += in_handler;
    return __libc_realloc(p, n);
}
#endif

static void on_signal(int sig)
{
    in_handler = 1;
    UMD_LOG(UMD_LOG_ERROR, "in a handler sig=%d name=%s", sig, "user");
    UMD_LOG(UMD_LOG_INFO, "also in a handler sig=%d", sig);
    in_handler = 0;
}

static void *only_signalled(void *arg)
{
    (void)arg;
    raise(SIGUSR1);
    return NULL;
}

static void a_handler_may_be_the_first_of_its_thread_to_log(void **state)
{
    struct sigaction sa = { .sa_handler = on_signal };
    umdLogStats before, after;
    pthread_t thread;

    (void)state;
    assert_int_equal(umdLogOpenFile(scratch("first"), UMD_LOG_FORMAT_TEXT, "info"), UMD_SUCCESS);
    UMD_LOG(UMD_LOG_ERROR, "the log is up x=%d", 0); /* the emergency ring, too */
    umdLogGetStats(&before);
    assert_int_equal(sigaction(SIGUSR1, &sa, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, only_signalled, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    umdLogFlush(10000);
    umdLogGetStats(&after);
    const char *text = slurp(scratch("first"));
    assert_int_equal(count_of(text, "also in a handler sig=10"), 1);
    assert_int_equal(count_of(text, ": in a handler sig=10 name=user"), 1);
    assert_int_equal(after.emergency - before.emergency, 1);
    assert_int_equal(after.dropped - before.dropped, 0);
    assert_int_equal(forbidden, 0);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_handler_may_be_the_first_of_its_thread_to_log) };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    scratch_remove();
    return failed;
}
