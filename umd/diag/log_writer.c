/* SPDX-License-Identifier: MIT */
/* log_writer.c - the background thread: takes entries out of the rings in order of time and hands them to the sinks. */
#include <linux/membarrier.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "emergency.h"
#include "log_control_serve.h"
#include "log_internal.h"
#include "log_fold.h"
#include "log_ring.h"
#include "log_site.h"
#include "log_sinks.h"
#include "stamp.h"

#define EXIT_NS 2000000000ull   /* a blocked sink holds up the end of the process no longer */
#define FORK_NS 1000000000ull   /* nor a fork */
#define TELL_NS 1000000000ull   /* drops are told at most this often */
#define HELD_UP_NS 100000000ull /* so long the writer may wait for the loader before others look to it themselves */

enum { WRITER_NONE, WRITER_STARTING, WRITER_RUNNING, WRITER_SYNC, WRITER_STOPPED };

static struct umd_mutex drain_lock = { .m = PTHREAD_MUTEX_INITIALIZER, .name = "log ring drain", .rank = 92 };
static struct umd_mutex flush_lock = { .m = PTHREAD_MUTEX_INITIALIZER, .name = "log flush", .rank = 93 };
static struct umd_cond flush_cond;
static uint64_t flush_wanted, flush_done;           /* under flush_lock */
static bool ended;                                  /* the writer does nothing any more; under flush_lock */
static _Atomic(int) state;
static _Atomic(bool) urgent, stop;
struct umd_log_writer_flags umd_log_writer_flags;
static bool have_barrier;                           /* membarrier works: the writer may sleep without a time-out */
static _Atomic(int) wake_fd = -1;
static pthread_t thread;
static _Atomic(uint64_t) records;
static uint64_t dropped_told, dropped_told_ns;      /* under drain_lock */
static _Atomic(bool) sinks_pending;                 /* the sinks hold lines back, and are to be tried again */
static bool fork_locked;                            /* the drain lock was to be had before fork */

static const char *next_text(const char **at)
{
    const char *s = *at;

    *at += strlen(s) + 1;
    return s;
}

/* One look at the clocks serves a whole round of the drain. */
struct now {
    struct umd_stamp_pair pair;
    double slope;
    uint64_t real_ns;
};

static void put_line_locked(struct umd_log_line *line, uint64_t stamp, const struct now *now)
{
    line->mono_ns = umd_stamp_mono(stamp, now->pair, now->slope);
    line->real_ns = now->real_ns - (now->pair.mono_ns - line->mono_ns);
    line->observed_ns = now->real_ns;
    line->pid = umd_sys()->pid();
    atomic_fetch_add_explicit(&records, 1, memory_order_relaxed);
    umd_log_sinks_put(line);
}

static void put_text_locked(const struct umd_log_entry *e, struct umd_log_line *line)
{
    const struct umd_log_entry_text *text = (const struct umd_log_entry_text *)e->payload;
    const char *at = (const char *)(text + 1);

    line->level = (umdLogLevel)text->level;
    line->line = text->line;
    line->code = text->code;
    line->context_id = text->context_id;
    line->record = text->record;
    line->module = next_text(&at);
    line->func = next_text(&at);
    line->file = next_text(&at);
    line->trace_id = next_text(&at);
    line->message = next_text(&at);
    if (!*line->trace_id)
        line->trace_id = NULL;
}

/* What the thread said of itself, where the line has nothing of its own. */
static void add_trace(struct umd_log_line *line, const struct umd_log_trace_ids *trace)
{
    if (line->trace_id || !trace->trace_id[0])
        return;
    line->trace_id = trace->trace_id;
    line->span_id = trace->span_id;
    line->trace_flags = trace->flags;
}

static void put_entry_locked(const struct umd_log_ring *ring, const struct now *now)
{
    const struct umd_log_entry *e = &ring->front;
    struct umd_log_line line = { .context_id = e->context_id, .tid = ring->tid, .depth = e->depth };

    if (e->site_id == UMD_ENTRY_TEXT) {
        put_text_locked(e, &line);
    } else {
        const umdLogSite *site = umd_log_site_find(e->site_id);
        if (!site) { /* of a library that went while a sink held the writer up: nothing is left to tell the text by */
            umd_log_count_dropped();
            return;
        }
        line.level = (umdLogLevel)site->level;
        line.module = site->module->name;
        line.func = site->func;
        line.file = site->file;
        line.line = site->line;
        line.site = site;
        line.site_id = e->site_id;
        line.args = e->payload;
        line.args_B = e->payload_B;
    }
    add_trace(&line, &ring->front_trace);
    put_line_locked(&line, e->stamp, now);
}

static void put_folded_locked(const struct now *now)
{
    struct umd_log_folded f;
    char message[sizeof(f.message) + 96];

    while (umd_log_fold_take(&f)) {
        struct umd_log_line line = { .level = UMD_LOG_ERROR, .module = f.module, .func = f.func, .file = f.file, .line = f.line, .code = f.code,
                                     .record = f.record, .context_id = f.context_id, .tid = f.tid, .depth = f.depth, .message = message };
        if (f.count > 1)
            snprintf(message, sizeof(message), "%s folded=%u reason=\"as many more of this call site, while the ring was full\"", f.message, f.count - 1);
        else
            snprintf(message, sizeof(message), "%s", f.message);
        add_trace(&line, &f.trace);
        put_line_locked(&line, f.stamp, now);
    }
}

static void tell_dropped_locked(const struct now *now)
{
    uint64_t dropped = umd_log_dropped();
    char message[160];

    if (dropped == dropped_told || (dropped_told && now->pair.mono_ns - dropped_told_ns < TELL_NS))
        return;
    snprintf(message, sizeof(message), "log records were dropped, a thread's ring was full or its library went count=%" PRIu64 " total=%" PRIu64,
             dropped - dropped_told, dropped);
    umd_log_sinks_say(UMD_LOG_WARN, message, NULL);
    dropped_told = dropped;
    dropped_told_ns = now->pair.mono_ns;
}

/* Failures that were too many to be logged one by one. */
static void tell_held_locked(bool all)
{
    struct umd_limit_told held;
    const uint64_t mono = umd_sys()->mono_ns(), real = umd_sys()->real_ns();

    while (umd_limit_take(mono, all, &held))
        umd_log_sinks_put(&(struct umd_log_line){
            .level = held.level, .module = held.module, .func = held.func, .file = held.file, .line = held.line, .code = held.code,
            .message = held.message, .mono_ns = mono, .real_ns = real, .observed_ns = real, .pid = umd_sys()->pid(), .tid = umd_sys()->tid(),
        });
}

/* What is in the rings at this moment, oldest first. Returns how many. */
static uint32_t drain_locked(void)
{
    struct now now;
    uint32_t count = 0;

    umd_mutex_assert_held(&drain_lock);
    for (struct umd_log_ring *r = umd_log_ring_first(); r; r = r->next)
        umd_log_ring_look(r);
    now.pair = umd_stamp_now(&now.slope);
    now.real_ns = umd_sys()->real_ns();
    for (;; count++) {
        struct umd_log_ring *oldest = NULL;
        for (struct umd_log_ring *r = umd_log_ring_first(); r; r = r->next)
            if (r->has_front && (!oldest || r->front.stamp < oldest->front.stamp))
                oldest = r;
        if (!oldest)
            break;
        put_entry_locked(oldest, &now);
        umd_log_ring_take(oldest);
    }
    put_folded_locked(&now);
    umd_log_ring_reap();
    tell_dropped_locked(&now);
    if (umd_limit_pending())
        tell_held_locked(atomic_load(&stop) || atomic_load(&state) == WRITER_STOPPED);
    umd_log_sinks_flush();
    atomic_store(&sinks_pending, umd_log_sinks_pending());
    return count;
}

static uint32_t drain(void)
{
    bool entered = umd_diag_enter();

    umd_mutex_lock(&drain_lock);
    uint32_t count = drain_locked();
    umd_mutex_unlock(&drain_lock);
    if (entered)
        umd_diag_leave();
    return count;
}

/* Until a post, a client of the control socket, who is served, or the time is over. */
static void sleep_on(int fd, int timeout_ms)
{
    struct pollfd p[2] = { { .fd = fd, .events = POLLIN }, { .fd = umd_log_control_fd(), .events = POLLIN } };

    (void)poll(p, 2, timeout_ms);
    if (p[1].revents || umd_log_control_paused())
        umd_log_control_serve();
}

/* Under the lock: who drains frees the rings of threads that have ended. */
static bool rings_empty(void)
{
    umd_mutex_lock(&drain_lock);
    bool empty = umd_log_rings_empty();
    umd_mutex_unlock(&drain_lock);
    return empty;
}

/*
 * Asleep the writer has to be posted; awake it looks by itself every flush period, so that a log call costs no atomic exchange and no system call.
 * A producer puts an entry, then reads umd_log_writer_flags.awake; the writer clears that, then looks at the rings: one of the two sees the other, if a
 * barrier lies in between on both sides. The producer's is membarrier(2) here, and where that cannot be had, a sleep that ends by itself.
 */
static void wait_for_work(int fd, bool had_work)
{
    uint64_t posts;
    int timeout_ms = (int)umd_log_flush_period_ms();

    if (!had_work) {
        atomic_store(&umd_log_writer_flags.awake, false);
        if (have_barrier)
            (void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
        const bool may_sleep = have_barrier && !atomic_load(&sinks_pending) && !umd_limit_pending() && !umd_log_control_paused();
        timeout_ms = !rings_empty() ? 0 : may_sleep ? -1 : 1000;
    }
    if (!atomic_load(&urgent) && !atomic_load(&stop))
        sleep_on(fd, timeout_ms);
    if (!atomic_load(&umd_log_writer_flags.awake)) /* a store would take the line from all who log */
        atomic_store(&umd_log_writer_flags.awake, true);
    if (!had_work && !atomic_load(&urgent) && !atomic_load(&stop)) {
        (void)!read(fd, &posts, sizeof(posts));
        sleep_on(fd, (int)umd_log_flush_period_ms()); /* let a batch gather; only urgent news posts again */
    }
    (void)!read(fd, &posts, sizeof(posts));
}

static void *writer(void *arg)
{
    int fd = (int)(intptr_t)arg;
    uint32_t had = 1;

    (void)umd_diag_enter(); /* for good: what the sinks do must not log */
    for (;;) {
        wait_for_work(fd, had != 0);
        umd_mutex_lock(&flush_lock);
        uint64_t wanted = flush_wanted;
        umd_mutex_unlock(&flush_lock);
        bool last = atomic_load(&stop);
        atomic_store(&urgent, false);
        had = drain();
        umd_log_disaster_tell(umd_log_sink_of(UMD_SINK_DISASTER));
        umd_mutex_lock(&flush_lock);
        flush_done = wanted;
        ended = last;
        umd_cond_broadcast(&flush_cond);
        umd_mutex_unlock(&flush_lock);
        if (last)
            return NULL;
    }
}

/* Like the library's memory, its thread is no fault site: a plan aims at the driver's threads. */
static int start_thread(int fd)
{
    static const int own_faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
    const struct umd_sys *sys = umd_sys();
    sigset_t all, old;

    if (sys != umd_sys_default())
        return sys->thread_create(&thread, "petrel-log", writer, (void *)(intptr_t)fd);
    sigfillset(&all);
    for (size_t i = 0; i < sizeof(own_faults) / sizeof(own_faults[0]); i++)
        sigdelset(&all, own_faults[i]); /* a crash of this thread has its snapshot, too */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int r = pthread_create(&thread, NULL, writer, (void *)(intptr_t)fd);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r == 0)
        pthread_setname_np(thread, "petrel-log");
    return r;
}

static void set_state(int to)
{
    atomic_store(&state, to);
    atomic_store(&umd_log_writer_flags.there, to == WRITER_RUNNING && !umd_sys_stepped());
}

static void start(void)
{
    int expected = WRITER_NONE;

    if (!atomic_compare_exchange_strong(&state, &expected, WRITER_STARTING))
        return;
    bool entered = umd_diag_enter();
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    atomic_store(&wake_fd, fd);
    have_barrier = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
    bool ok = fd >= 0 && start_thread(fd) == 0;
    if (entered)
        umd_diag_leave();
    set_state(ok ? WRITER_RUNNING : WRITER_SYNC);
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

void umd_log_wake(bool at_once)
{
    bool asleep = !atomic_load_explicit(&umd_log_writer_flags.awake, memory_order_relaxed) && !atomic_exchange(&umd_log_writer_flags.awake, true);

    if (at_once && !atomic_load_explicit(&urgent, memory_order_relaxed))
        asleep = !atomic_exchange(&urgent, true) || asleep;
    if (asleep)
        post();
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

void umd_log_drain(void) { drain(); }

void umd_log_writer_attend(void)
{
    atomic_store(&urgent, true);
    post();
}

/* Who holds it is inside the library: what it calls must not log, which could want the lock again. */
void umd_log_drain_lock(void)
{
    umd_mutex_lock(&drain_lock);
    umd_diag_inside_count++;
}

bool umd_log_drain_lock_for(uint32_t timeout_ms)
{
    if (!umd_mutex_lock_for(&drain_lock, (uint64_t)timeout_ms * 1000000u))
        return false;
    umd_diag_inside_count++;
    return true;
}

bool umd_log_drain_hold(uint32_t timeout_ms)
{
    if (!umd_log_drain_lock_for(timeout_ms))
        return false;
    drain_locked();
    return true;
}

void umd_log_drain_unlock(void)
{
    umd_diag_inside_count--;
    umd_mutex_unlock(&drain_lock);
}

void umd_log_drain_assert_held(void) { umd_mutex_assert_held(&drain_lock); }

static uint64_t host_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

bool umd_log_flush_for(uint32_t timeout_ms)
{
    if (umd_diag_inside())
        return true;
    int now = atomic_load(&state);
    if (now == WRITER_NONE || now == WRITER_SYNC || now == WRITER_STOPPED) {
        drain();
        return true;
    }
    umd_mutex_lock(&flush_lock);
    uint64_t mine = ++flush_wanted;
    umd_mutex_unlock(&flush_lock);
    atomic_store(&urgent, true);
    post();
    const uint64_t until_ns = host_ns() + (uint64_t)timeout_ms * 1000000u;
    bool held_up = false;
    umd_mutex_lock(&flush_lock);
    for (uint64_t at_ns; flush_done < mine && !held_up && (at_ns = host_ns()) < until_ns;) {
        bool woken = umd_cond_wait(&flush_cond, &flush_lock, until_ns - at_ns < HELD_UP_NS ? until_ns - at_ns : HELD_UP_NS);
        held_up = !woken && umd_log_disaster_is_telling();
    }
    bool done = flush_done >= mine;
    umd_mutex_unlock(&flush_lock);
    if (done || !held_up)
        return done;
    drain(); /* the writer waits for the loader, perhaps for this very thread: then the lines go out from here */
    return true;
}

void umdLogFlush(uint32_t timeout_ms) { (void)umd_log_flush_for(timeout_ms); }

void umdLogGetStats(umdLogStats *stats_out)
{
    if (!stats_out)
        return;
    *stats_out = (umdLogStats){ .records = atomic_load(&records), .dropped = umd_log_dropped(), .emergency = umd_emergency_count() };
    umd_log_sinks_stats(stats_out);
}

void umd_log_tell_held(void)
{
    if (!umd_diag_enter())
        return;
    umd_mutex_lock(&drain_lock);
    tell_held_locked(true);
    umd_log_sinks_flush();
    umd_mutex_unlock(&drain_lock);
    umd_diag_leave();
}

void umd_log_step_reset(void)
{
    drain();
    set_state(atomic_load(&state));
    umd_stamp_choose();
}

void umd_log_writer_init(void) { umd_cond_init(&flush_cond); }

static bool wait_for_end(void)
{
    const uint64_t until_ns = host_ns() + EXIT_NS;

    umd_mutex_lock(&flush_lock);
    for (uint64_t at_ns; !ended && (at_ns = host_ns()) < until_ns;)
        (void)umd_cond_wait(&flush_cond, &flush_lock, until_ns - at_ns);
    const bool over = ended;
    umd_mutex_unlock(&flush_lock);
    return over;
}

void umd_log_writer_fini(void)
{
    if (atomic_load(&state) == WRITER_RUNNING) {
        atomic_store(&stop, true);
        post();
        if (!wait_for_end()) {
            atomic_store(&umd_log_writer_flags.there, false);
            return; /* a sink that blocks, a full pipe say, does not keep the process: its lines are in the emergency ring at best */
        }
        (void)pthread_join(thread, NULL);
    }
    set_state(WRITER_STOPPED);
    drain();
    umd_log_drain_lock();
    umd_log_sinks_finish();
    umd_log_drain_unlock();
}

void umd_log_writer_atfork(int stage)
{
    if (stage == 0) {
        pthread_mutex_lock(&flush_lock.m);
        fork_locked = umd_host_lock_for(&drain_lock.m, FORK_NS);
        return;
    }
    if (fork_locked)
        pthread_mutex_unlock(&drain_lock.m);
    else if (stage == 2)
        pthread_mutex_init(&drain_lock.m, NULL); /* the one who holds it is not in the child, and the sinks begin anew here */
    pthread_mutex_unlock(&flush_lock.m);
    if (stage == 1)
        return;
    /* The child has no writer yet, and none of the parent's lines. */
    struct umd_diag_thread *t = umd_diag_thread_peek();
    int fd = atomic_exchange(&wake_fd, -1);
    if (fd >= 0)
        close(fd);
    set_state(WRITER_NONE);
    atomic_store(&umd_log_writer_flags.awake, false);
    atomic_store(&urgent, false);
    flush_wanted = flush_done = 0;
    ended = false;
    umd_cond_init(&flush_cond);
    umd_log_ring_child(t ? t->ring : NULL);
    umd_log_fold_child();
    umd_log_sinks_child();
}
