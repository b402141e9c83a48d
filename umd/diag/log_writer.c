/* SPDX-License-Identifier: MIT */
/* log_writer.c - the background thread: takes entries out of the rings in order of time, formats, hands them to the sinks. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "emergency.h"
#include "log_encode.h"
#include "log_internal.h"
#include "log_ring.h"

#define BATCH_MS 50

enum { WRITER_NONE, WRITER_STARTING, WRITER_RUNNING, WRITER_SYNC, WRITER_STOPPED };

static struct umd_mutex drain_lock = { .m = PTHREAD_MUTEX_INITIALIZER, .name = "log ring drain", .rank = 96 };
static struct umd_mutex flush_lock = { .m = PTHREAD_MUTEX_INITIALIZER, .name = "log flush", .rank = 93 };
static struct umd_cond flush_cond;
static uint64_t flush_wanted, flush_done;           /* under flush_lock */
static _Atomic(int) state;
static _Atomic(bool) wake_pending, urgent, stop, draining;
static _Atomic(int) wake_fd = -1;
static pthread_t thread;
static _Atomic(uint64_t) records, sink_errors, lines_lost;
static _Atomic(int) sink_errno;
static bool dropped_warned;                         /* under drain_lock */

static struct umd_log_sink sinks[UMD_SINK_COUNT] = {
    [UMD_SINK_CONSOLE] = { .format = umd_log_format_console, .is_console = true, .fd = STDERR_FILENO, .enabled = true },
    [UMD_SINK_TEXT] = { .format = umd_log_format_text, .with_header = true, .fd = -1, .max_B = 128u << 20, .keep = 5 },
    [UMD_SINK_JSON] = { .format = umd_log_format_json, .fd = -1, .max_B = 128u << 20, .keep = 5 },
};

void umd_log_count_sink_error(uint64_t lines, int err)
{
    atomic_fetch_add_explicit(&sink_errors, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&lines_lost, lines, memory_order_relaxed);
    atomic_store_explicit(&sink_errno, err, memory_order_relaxed);
}

static void fan_out_locked(const struct umd_log_line *line, const struct umd_log_sink *except)
{
    umd_mutex_assert_held(&drain_lock);
    for (int i = 0; i < UMD_SINK_COUNT; i++)
        if (sinks[i].enabled && &sinks[i] != except && line->level <= umd_log_level_of((enum umd_log_sink_id)i, line->module))
            umd_log_sink_add(&sinks[i], line);
}

static void own_line_locked(umdLogLevel level, const char *message, const struct umd_log_sink *except)
{
    uint64_t real_ns = umd_sys()->real_ns();

    fan_out_locked(&(struct umd_log_line){
        .level = level, .module = "diag.log", .func = "log", .file = "log_writer.c", .message = message,
        .mono_ns = umd_sys()->mono_ns(), .real_ns = real_ns, .observed_ns = real_ns, .pid = umd_sys()->pid(), .tid = umd_sys()->tid(),
    }, except);
}

/* A sink that begins to fail says so once, through the others. */
static void flush_sinks_locked(void)
{
    char message[UMD_LOG_PATH_B + 128];

    for (int i = 0; i < UMD_SINK_COUNT; i++) {
        struct umd_log_sink *s = &sinks[i];
        if (s->enabled)
            umd_log_sink_flush(s);
        if (!s->tell)
            continue;
        s->tell = false;
        snprintf(message, sizeof(message), "log sink fails, its records are lost until it works again path=\"%s\" errno=%d reason=\"%s\"",
                 s->is_console ? "stderr" : s->path, s->err, strerrordesc_np(s->err));
        own_line_locked(UMD_LOG_WARN, message, s);
    }
    for (int i = 0; i < UMD_SINK_COUNT; i++)
        if (sinks[i].enabled && sinks[i].used)
            umd_log_sink_flush(&sinks[i]);
}

static const char *next_text(const char **at)
{
    const char *s = *at;

    *at += strlen(s) + 1;
    return s;
}

static void write_entry_locked(const struct umd_log_entry *e, uint64_t real_offset_ns, uint64_t observed_ns)
{
    static char message[UMD_LOG_MESSAGE_B]; /* under the lock */
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
        if (!umd_log_decode(message, sizeof(message), e->site->fmt, (const uint8_t *)payload, e->payload_B))
            umd_log_count_sink_error(0, EBADMSG); /* the line goes out all the same */
        line.message = message;
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
    fan_out_locked(&line, NULL);
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
        own_line_locked(UMD_LOG_WARN, message, NULL);
        dropped_warned = true;
    }
    flush_sinks_locked();
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

void umd_log_write_now(const struct umd_log_line *line)
{
    if (!umd_diag_enter())
        return;
    umd_mutex_lock(&drain_lock);
    atomic_fetch_add_explicit(&records, 1, memory_order_relaxed);
    drain_locked(); /* what other threads left in their rings is older */
    fan_out_locked(line, NULL);
    flush_sinks_locked();
    umd_mutex_unlock(&drain_lock);
    umd_diag_leave();
}

struct umd_log_sink *umd_log_sinks_lock(void)
{
    umd_mutex_lock(&drain_lock);
    return sinks;
}

void umd_log_sinks_unlock(void) { umd_mutex_unlock(&drain_lock); }

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
    *stats_out = (umdLogStats){
        .records = atomic_load(&records), .dropped = dropped, .sink_errors = atomic_load(&sink_errors), .emergency = umd_emergency_count(),
        .lost = atomic_load(&lines_lost), .sink_errno = atomic_load(&sink_errno),
    };
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
    for (int i = 0; i < UMD_SINK_COUNT; i++)
        umd_log_sink_child(&sinks[i]);
}
