/* SPDX-License-Identifier: MIT */
/* log_writer.c - the background thread: takes entries out of the rings in order of time and hands them to the sinks. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "emergency.h"
#include "log_internal.h"
#include "log_ring.h"
#include "log_sinks.h"

#define BATCH_MS 50

enum { WRITER_NONE, WRITER_STARTING, WRITER_RUNNING, WRITER_SYNC, WRITER_STOPPED };

static struct umd_mutex drain_lock = { .m = PTHREAD_MUTEX_INITIALIZER, .name = "log ring drain", .rank = 92 };
static struct umd_mutex flush_lock = { .m = PTHREAD_MUTEX_INITIALIZER, .name = "log flush", .rank = 93 };
static struct umd_cond flush_cond;
static uint64_t flush_wanted, flush_done;           /* under flush_lock */
static _Atomic(int) state;
static _Atomic(bool) wake_pending, urgent, stop, draining;
static _Atomic(int) wake_fd = -1;
static pthread_t thread;
static _Atomic(uint64_t) records;
static bool dropped_warned;                         /* under drain_lock */

static const char *next_text(const char **at)
{
    const char *s = *at;

    *at += strlen(s) + 1;
    return s;
}

static void write_entry_locked(const struct umd_log_entry *e, uint64_t real_offset_ns, uint64_t observed_ns)
{
    const char *payload = (const char *)(e + 1);
    struct umd_log_line line = {
        .level = (umdLogLevel)e->level, .line = e->line, .code = e->code, .mono_ns = e->mono_ns, .real_ns = e->mono_ns + real_offset_ns,
        .observed_ns = observed_ns, .context_id = e->context_id, .record = e->record, .pid = umd_sys()->pid(), .tid = e->tid, .depth = e->depth,
    };

    if (e->kind == UMD_ENTRY_SITE) {
        line.level = (umdLogLevel)e->site->level;
        line.module = e->site->module->name;
        line.func = e->site->func;
        line.file = e->site->file;
        line.line = e->site->line;
        line.site = e->site;
        line.args = (const uint8_t *)payload;
        line.args_B = e->payload_B;
    } else {
        line.module = next_text(&payload);
        line.func = next_text(&payload);
        line.file = next_text(&payload);
        line.trace_id = next_text(&payload);
        line.message = next_text(&payload);
        if (!*line.trace_id)
            line.trace_id = NULL;
    }
    atomic_fetch_add_explicit(&records, 1, memory_order_relaxed);
    umd_log_sinks_put(&line);
}

static void drain_locked(void)
{
    uint64_t mono = umd_sys()->mono_ns(), real = umd_sys()->real_ns();

    umd_mutex_assert_held(&drain_lock);
    for (;;) {
        struct umd_log_ring *oldest = NULL;
        const struct umd_log_entry *entry = NULL;
        for (struct umd_log_ring *r = umd_log_ring_first(); r; r = r->next) {
            const struct umd_log_entry *e = umd_log_ring_peek(r);
            if (e && (!entry || e->mono_ns < entry->mono_ns)) {
                entry = e;
                oldest = r;
            }
        }
        if (!entry)
            break;
        write_entry_locked(entry, real - mono, real);
        umd_log_ring_take(oldest, entry);
    }
    umd_log_ring_reap();
    uint64_t lost = umd_log_ring_dropped_total();
    if (lost && !dropped_warned) {
        char message[96];
        snprintf(message, sizeof(message), "log records were dropped, a thread's ring was full count=%" PRIu64, lost);
        umd_log_sinks_say(UMD_LOG_WARN, message, NULL);
        dropped_warned = true;
    }
    umd_log_sinks_flush();
}

static void drain(void)
{
    bool entered = umd_diag_enter();

    umd_mutex_lock(&drain_lock);
    drain_locked();
    umd_mutex_unlock(&drain_lock);
    if (entered)
        umd_diag_leave();
}

static void wait_for_work(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    uint64_t posts;

    (void)poll(&p, 1, -1);
    (void)!read(fd, &posts, sizeof(posts));
    if (!atomic_load(&urgent) && !atomic_load(&stop))
        (void)poll(&p, 1, BATCH_MS); /* let a batch gather; only urgent news posts again */
    (void)!read(fd, &posts, sizeof(posts));
}

static void *writer(void *arg)
{
    int fd = (int)(intptr_t)arg;

    (void)umd_diag_enter(); /* for good: what the sinks do must not log */
    for (;;) {
        wait_for_work(fd);
        umd_mutex_lock(&flush_lock);
        uint64_t wanted = flush_wanted;
        umd_mutex_unlock(&flush_lock);
        bool last = atomic_load(&stop);
        atomic_store(&draining, true);
        atomic_store(&urgent, false);
        atomic_store(&wake_pending, false);
        drain();
        atomic_store(&draining, false);
        umd_mutex_lock(&flush_lock);
        flush_done = wanted;
        umd_cond_broadcast(&flush_cond);
        umd_mutex_unlock(&flush_lock);
        if (last)
            return NULL;
    }
}

/* Like the library's memory, its thread is no fault site: a plan aims at the driver's threads. */
static int start_thread(int fd)
{
    const struct umd_sys *sys = umd_sys();
    sigset_t all, old;

    if (sys != umd_sys_default())
        return sys->thread_create(&thread, "petrel-log", writer, (void *)(intptr_t)fd);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int r = pthread_create(&thread, NULL, writer, (void *)(intptr_t)fd);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r == 0)
        pthread_setname_np(thread, "petrel-log");
    return r;
}

static void start(void)
{
    int expected = WRITER_NONE;

    if (!atomic_compare_exchange_strong(&state, &expected, WRITER_STARTING))
        return;
    bool entered = umd_diag_enter();
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    atomic_store(&wake_fd, fd);
    bool ok = fd >= 0 && start_thread(fd) == 0;
    if (entered)
        umd_diag_leave();
    atomic_store(&state, ok ? WRITER_RUNNING : WRITER_SYNC);
    if (!ok)
        drain();
}

bool umd_log_is_sync(void)
{
    int now = atomic_load_explicit(&state, memory_order_acquire);

    if (umd_sys_stepped())
        return true;
    if (now == WRITER_NONE) {
        start();
        now = atomic_load(&state);
    }
    return now == WRITER_SYNC || now == WRITER_STOPPED;
}

static void post(void)
{
    int fd = atomic_load(&wake_fd);
    uint64_t one = 1;

    if (fd >= 0)
        (void)!write(fd, &one, sizeof(one));
}

/* After an entry is in a ring. The exchange orders it before the writer's look at the rings. */
void umd_log_wake(umdLogLevel level)
{
    if (level <= UMD_LOG_WARN && !atomic_exchange(&urgent, true)) {
        atomic_store(&wake_pending, true);
        post();
    } else if (!atomic_exchange(&wake_pending, true)) {
        post();
    }
}

void umd_log_write_now(struct umd_log_line *line)
{
    if (!umd_diag_enter())
        return;
    umd_mutex_lock(&drain_lock);
    atomic_fetch_add_explicit(&records, 1, memory_order_relaxed);
    drain_locked(); /* what other threads left in their rings is older */
    umd_log_sinks_put(line);
    umd_log_sinks_flush();
    umd_mutex_unlock(&drain_lock);
    umd_diag_leave();
}

void umd_log_drain_lock(void) { umd_mutex_lock(&drain_lock); }
void umd_log_drain_unlock(void) { umd_mutex_unlock(&drain_lock); }
void umd_log_drain_assert_held(void) { umd_mutex_assert_held(&drain_lock); }

void umdLogFlush(uint32_t timeout_ms)
{
    if (umd_diag_inside())
        return;
    int now = atomic_load(&state);
    if (now == WRITER_NONE || now == WRITER_SYNC || now == WRITER_STOPPED) {
        drain();
        return;
    }
    if (!atomic_load(&wake_pending) && !atomic_load(&draining) && !atomic_load(&wake_pending))
        return; /* nothing was logged since the last drain ended */
    umd_mutex_lock(&flush_lock);
    uint64_t mine = ++flush_wanted;
    umd_mutex_unlock(&flush_lock);
    atomic_store(&urgent, true);
    atomic_store(&wake_pending, true);
    post();
    umd_mutex_lock(&flush_lock);
    while (flush_done < mine)
        if (!umd_cond_wait(&flush_cond, &flush_lock, (uint64_t)timeout_ms * 1000000u))
            break;
    umd_mutex_unlock(&flush_lock);
}

void umdLogGetStats(umdLogStats *stats_out)
{
    if (!stats_out)
        return;
    umd_mutex_lock(&drain_lock);
    uint64_t dropped = umd_log_ring_dropped_total();
    umd_mutex_unlock(&drain_lock);
    *stats_out = (umdLogStats){ .records = atomic_load(&records), .dropped = dropped, .emergency = umd_emergency_count() };
    umd_log_sinks_stats(stats_out);
}

void umd_log_step_reset(void) { drain(); }

void umd_log_writer_init(void) { umd_cond_init(&flush_cond); }

void umd_log_writer_fini(void)
{
    if (atomic_load(&state) == WRITER_RUNNING) {
        atomic_store(&stop, true);
        post();
        pthread_join(thread, NULL);
    }
    atomic_store(&state, WRITER_STOPPED);
    drain();
}

void umd_log_writer_atfork(int stage)
{
    if (stage == 0) {
        pthread_mutex_lock(&flush_lock.m);
        pthread_mutex_lock(&drain_lock.m);
        return;
    }
    pthread_mutex_unlock(&drain_lock.m);
    pthread_mutex_unlock(&flush_lock.m);
    if (stage == 1)
        return;
    /* The child has no writer yet, and none of the parent's lines. */
    struct umd_diag_thread *t = umd_diag_thread_peek();
    int fd = atomic_exchange(&wake_fd, -1);
    if (fd >= 0)
        close(fd);
    atomic_store(&state, WRITER_NONE);
    atomic_store(&wake_pending, false);
    atomic_store(&urgent, false);
    atomic_store(&draining, false);
    flush_wanted = flush_done = 0;
    umd_cond_init(&flush_cond);
    umd_log_ring_child(t ? t->ring : NULL);
    umd_log_sinks_child();
}
