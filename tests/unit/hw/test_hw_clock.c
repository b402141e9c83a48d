/* SPDX-License-Identifier: MIT */
/* test_hw_clock.c - the device clock: follows the wall when idle, stands when work was given or runs, never runs backwards. */
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "clock.h"

static void pass_host(uint64_t ns)
{
    nanosleep(&(struct timespec){ .tv_nsec = (long)ns }, NULL);
}

static uint64_t host_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void test_idle_follows_the_wall(void **state)
{
    struct hw_clock c;

    (void)state;
    hw_clock_init(&c, false);
    uint64_t before = hw_clock_now(&c);
    pass_host(2000000);
    assert_true(hw_clock_now(&c) >= before + 2000000);
    hw_clock_run(&c);
    uint64_t stands = hw_clock_now(&c);
    pass_host(2000000);
    assert_int_equal(hw_clock_now(&c), stands);
    hw_clock_advance_to(&c, stands + 77);
    assert_int_equal(hw_clock_now(&c), stands + 77);
}

/* A device thread that the host runs late is no device that answers late. */
static void test_hold_stands_until_the_device_looks(void **state)
{
    struct hw_clock c;

    (void)state;
    hw_clock_init(&c, false);
    pass_host(1000000);
    hw_clock_hold(&c);
    uint64_t held = hw_clock_now(&c);
    pass_host(5000000);
    assert_int_equal(hw_clock_now(&c), held);
    hw_clock_hold(&c); /* a second one does not move it */
    assert_int_equal(hw_clock_now(&c), held);
    hw_clock_run(&c);
    assert_int_equal(hw_clock_now(&c), held);
    /* Nothing to run after all: the wall drives again, from the value reached. */
    hw_clock_idle(&c);
    hw_clock_hold(&c);
    held = hw_clock_now(&c);
    pass_host(2000000);
    uint64_t from = host_ns();
    hw_clock_idle(&c);
    uint64_t now = hw_clock_now(&c);
    assert_in_range(now, held, held + (host_ns() - from)); /* the held time is not made up */
    pass_host(2000000);
    assert_true(hw_clock_now(&c) >= held + 2000000);
}

static _Atomic(bool) stop;

static void *holder(void *arg)
{
    while (!atomic_load(&stop))
        hw_clock_hold(arg);
    return NULL;
}

static void *reader(void *arg)
{
    uint64_t last = 0;

    while (!atomic_load(&stop)) {
        uint64_t now = hw_clock_now(arg);
        if (now < last)
            return (void *)1;
        last = now;
    }
    return NULL;
}

static void test_never_backwards(void **state)
{
    struct hw_clock c;
    pthread_t t[3];
    void *bad = NULL;

    (void)state;
    hw_clock_init(&c, false);
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&t[0], NULL, holder, &c), 0);
    assert_int_equal(pthread_create(&t[1], NULL, reader, &c), 0);
    assert_int_equal(pthread_create(&t[2], NULL, reader, &c), 0);
    for (int i = 0; i < 20000; i++) {
        hw_clock_run(&c);
        hw_clock_advance_to(&c, hw_clock_now(&c) + 10);
        hw_clock_idle(&c);
        hw_clock_idle(&c);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 3; i++) {
        void *ret;
        pthread_join(t[i], &ret);
        bad = ret ? ret : bad;
    }
    assert_null(bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_idle_follows_the_wall),
        cmocka_unit_test(test_hold_stands_until_the_device_looks),
        cmocka_unit_test(test_never_backwards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
