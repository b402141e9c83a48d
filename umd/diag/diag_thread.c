/* SPDX-License-Identifier: MIT */
/* diag_thread.c - the library's state of a thread: made on first use, freed when the thread ends. */
#include <errno.h>
#include <pthread.h>

#include "diag_internal.h"
#include "log_internal.h"
#include "snapshot_internal.h"

__thread struct umd_diag_thread *umd_diag_self __attribute__((tls_model("initial-exec")));
__thread uint32_t umd_diag_inside_count __attribute__((tls_model("initial-exec")));
static pthread_key_t key;
static bool key_made;
static _Atomic(struct umd_diag_thread *) threads[UMD_DIAG_THREADS]; /* those that found a place; for crashes */

static void list(struct umd_diag_thread *t)
{
    for (uint32_t i = 0; i < UMD_DIAG_THREADS; i++) {
        struct umd_diag_thread *free_place = NULL;
        if (atomic_compare_exchange_strong(&threads[i], &free_place, t))
            return;
    }
}

static void unlist(struct umd_diag_thread *t)
{
    for (uint32_t i = 0; i < UMD_DIAG_THREADS; i++) {
        struct umd_diag_thread *mine = t;
        if (atomic_compare_exchange_strong(&threads[i], &mine, NULL))
            return;
    }
}

const struct umd_diag_thread *umd_diag_thread_at(uint32_t index) { return atomic_load(&threads[index]); }

void umd_diag_thread_child(void)
{
    for (uint32_t i = 0; i < UMD_DIAG_THREADS; i++)
        atomic_store(&threads[i], NULL);
    if (!umd_diag_self)
        return;
    umd_diag_self->host_tid = umd_diag_host_tid();
    list(umd_diag_self);
}

static void thread_end(void *arg)
{
    struct umd_diag_thread *t = arg;

    umd_diag_self = NULL;
    unlist(t);
    umd_crash_thread_end(t);
    for (uint32_t i = 0; i < UMD_SCOPES; i++)
        if (t->scopes[i].open)
            umd_record_end(&t->scopes[i], UMD_RECORD_SWALLOWED);
    umd_record_settle_nested(t);
    if (t->ring)
        umd_log_ring_orphan(t->ring);
    umd_diag_unmap(t);
}

/* The thread that ends the process has no such end; the log is still written behind this. */
__attribute__((destructor(120))) static void process_end(void)
{
    struct umd_diag_thread *t = umd_diag_self;

    for (uint32_t i = 0; t && i < UMD_SCOPES; i++)
        if (t->scopes[i].open)
            umd_record_end(&t->scopes[i], UMD_RECORD_SWALLOWED);
}

__attribute__((constructor(101))) static void make_key(void) { key_made = pthread_key_create(&key, thread_end) == 0; }

struct umd_diag_thread *umd_diag_thread_peek(void) { return umd_diag_self; }

struct umd_diag_thread *umd_diag_thread_get(void)
{
    int saved = errno;

    if (__builtin_expect(umd_diag_self != NULL, 1))
        return umd_diag_self;
    if (!key_made)
        return NULL;
    struct umd_diag_thread *t = umd_diag_map(sizeof(*t));
    if (t && pthread_setspecific(key, t) != 0) {
        umd_diag_unmap(t);
        t = NULL;
    }
    if (t)
        t->unsettled = true;
    umd_diag_self = t;
    if (t) {
        t->host_tid = umd_diag_host_tid();
        list(t);
        umd_crash_thread_begin(t);
    }
    errno = saved;
    return t;
}

bool umd_diag_enter(void)
{
    if (umd_diag_inside_count)
        return false;
    umd_diag_inside_count++;
    return true;
}

void umd_diag_leave(void) { umd_diag_inside_count--; }
bool umd_diag_inside(void) { return umd_diag_inside_count != 0; }
