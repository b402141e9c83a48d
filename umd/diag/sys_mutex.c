/* SPDX-License-Identifier: MIT */
/* sys_mutex.c - ranked locks and condition variables. Debug builds check the order on each lock. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "diag_internal.h"

UMD_LOG_MODULE("diag.lock");

#define HELD_MAX 16u
#define RANK_DIAG 90 /* at and above: locks of this library, under which it cannot log */

static __thread const struct umd_mutex *held[HELD_MAX] __attribute__((tls_model("initial-exec")));
static __thread uint32_t held_count __attribute__((tls_model("initial-exec")));

static void die(const char *what, const struct umd_mutex *m, const struct umd_mutex *other)
{
    char text[256];
    int n = snprintf(text, sizeof(text), "%s lock=%s rank=%d held=%s held_rank=%d", what, m->name, m->rank,
                     other ? other->name : "none", other ? other->rank : 0);

    bool may_log = !umd_diag_inside() && m->rank < RANK_DIAG;
    for (uint32_t i = 0; i < held_count; i++)
        may_log = may_log && held[i]->rank < RANK_DIAG;
    if (may_log) {
        UMD_LOG(UMD_LOG_ERROR, "%s", text);
        umdLogFlush(500);
    } else {
        ssize_t ignored = write(STDERR_FILENO, text, (size_t)n);
        (void)ignored;
    }
    abort();
}

#if UMD_DEBUG_ENABLE
/* Before the lock is tried: a wrong order is reported even when it would deadlock. */
static void check_order(const struct umd_mutex *m)
{
    for (uint32_t i = 0; i < held_count; i++)
        if (held[i]->rank >= m->rank)
            die(held[i] == m ? "lock taken twice" : "lock taken against the order of ranks", m, held[i]);
}
#else
static void check_order(const struct umd_mutex *m) { (void)m; }
#endif

static void note_taken(struct umd_mutex *m)
{
    if (held_count == HELD_MAX)
        die("too many locks held", m, held[held_count - 1]);
    held[held_count++] = m;
    atomic_store_explicit(&m->owner_tid, umd_diag_host_tid(), memory_order_relaxed);
}

static void note_released(struct umd_mutex *m)
{
    for (uint32_t i = held_count; i-- > 0;) {
        if (held[i] != m)
            continue;
        memmove(&held[i], &held[i + 1], (held_count - i - 1) * sizeof(held[0]));
        held_count--;
        atomic_store_explicit(&m->owner_tid, 0, memory_order_relaxed);
        return;
    }
    die("lock released by a thread that does not hold it", m, NULL);
}

void umd_mutex_init(struct umd_mutex *m, const char *name, int rank)
{
    pthread_mutex_init(&m->m, NULL);
    m->name = name;
    m->rank = rank;
    atomic_init(&m->owner_tid, 0);
}

void umd_mutex_fini(struct umd_mutex *m) { pthread_mutex_destroy(&m->m); }

void umd_mutex_lock(struct umd_mutex *m)
{
    check_order(m);
    pthread_mutex_lock(&m->m);
    note_taken(m);
}

#ifndef __has_feature
#define __has_feature(feature_) 0
#endif
/* The thread sanitizer does not know pthread_mutex_clocklock: under it a jump of the clock changes the wait. */
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define LOCK_CLOCK CLOCK_REALTIME
#define LOCK_UNTIL(m_, until_) pthread_mutex_timedlock((m_), (until_))
#else
#define LOCK_CLOCK CLOCK_MONOTONIC
#define LOCK_UNTIL(m_, until_) pthread_mutex_clocklock((m_), CLOCK_MONOTONIC, (until_))
#endif

bool umd_host_lock_for(pthread_mutex_t *m, uint64_t timeout_ns)
{
    struct timespec until;

    clock_gettime(LOCK_CLOCK, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + timeout_ns;
    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    return LOCK_UNTIL(m, &until) == 0;
}

bool umd_mutex_lock_for(struct umd_mutex *m, uint64_t timeout_ns)
{
    check_order(m);
    if (!umd_host_lock_for(&m->m, timeout_ns))
        return false;
    note_taken(m);
    return true;
}

void umd_mutex_unlock(struct umd_mutex *m)
{
    note_released(m);
    pthread_mutex_unlock(&m->m);
}

void umd_mutex_assert_held(const struct umd_mutex *m)
{
    if (atomic_load_explicit(&m->owner_tid, memory_order_relaxed) != umd_diag_host_tid())
        die("lock not held where it must be", m, held_count ? held[held_count - 1] : NULL);
}

void umd_cond_init(struct umd_cond *c)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c->c, &attr);
    pthread_condattr_destroy(&attr);
}

void umd_cond_fini(struct umd_cond *c) { pthread_cond_destroy(&c->c); }

bool umd_cond_wait(struct umd_cond *c, struct umd_mutex *m, uint64_t timeout_ns)
{
    struct timespec until;
    int r;

    umd_mutex_assert_held(m);
    note_released(m);
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t now_ns = (uint64_t)until.tv_sec * 1000000000u + (uint64_t)until.tv_nsec;
    if (timeout_ns >= INT64_MAX - now_ns) { /* for ever, or so far away that the sum would overflow */
        r = pthread_cond_wait(&c->c, &m->m);
    } else {
        until.tv_sec = (time_t)((now_ns + timeout_ns) / 1000000000u);
        until.tv_nsec = (long)((now_ns + timeout_ns) % 1000000000u);
        r = pthread_cond_timedwait(&c->c, &m->m, &until);
    }
    note_taken(m);
    return r != ETIMEDOUT;
}

void umd_cond_broadcast(struct umd_cond *c) { pthread_cond_broadcast(&c->c); }
