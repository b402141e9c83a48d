/* SPDX-License-Identifier: MIT */
/* scene.c - what was going on when a record was raised: the thread's calls, its stack, the errors before; taken raw, read later. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "diag_internal.h"
#include "stamp.h"
#include "struct_size.h"

/*
 * Taking a scene copies and nothing else: no lock, no allocation, no formatting. A place is held by a flag, by the one thread that
 * writes or reads it. Who takes a scene and finds a place held goes to the next, or goes without, for it may be a signal handler; who looks for
 * the scene of a record waits for the holder, a second at most.
 */

enum { SCENE_COUNT = 64, SCENE_PINS = 32, PLACES = SCENE_COUNT + SCENE_PINS, TRIES = 8, SPINS = 1000, PAUSES = 10000, MAIN_STACK_MAX_B = 128 << 20 };

struct scene {
    umdRecordId id;
    uint32_t tid, call_depth;
    uint32_t met_tid;               /* the calls are of this thread, which met the failure; 0: there were none */
    uint32_t frame_count, error_count;
    uint64_t call_seq, call_at;     /* of the thread's ring; the call under way, UINT64_MAX: none */
    uint64_t frames[UMD_SCENE_FRAMES];
    umdErrorNote errors[UMD_SCENE_ERRORS];
    struct umd_call_entry calls[UMD_CALLS];
};

static struct place {
    _Atomic(bool) held;
    _Atomic(uint64_t) seq;          /* of scene.id: a look without holding the place */
    struct scene scene;
} places[PLACES];
static _Atomic(uint64_t) next, next_pin;

static bool hold(struct place *p)
{
    bool is_free = false;

    return atomic_compare_exchange_strong_explicit(&p->held, &is_free, true, memory_order_acquire, memory_order_relaxed);
}

static void let_go(struct place *p) { atomic_store_explicit(&p->held, false, memory_order_release); }

/* Waits for who holds it, also where that thread has lost its processor; the bound is for a handler that interrupted it. */
static bool hold_patiently(struct place *p)
{
    const struct timespec pause = { .tv_nsec = 100000 };

    for (uint32_t spins = 0; spins < SPINS; spins++)
        if (hold(p))
            return true;
    for (uint32_t pauses = 0; pauses < PAUSES; pauses++) {
        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
        if (hold(p))
            return true;
    }
    return false;
}

/* The first place of a record's scene from `first` on, held; NULL: none. */
static struct place *find_from(umdRecordId id, struct place *first)
{
    for (struct place *p = first; id.seq && p < places + PLACES; p++) {
        if (atomic_load_explicit(&p->seq, memory_order_relaxed) != id.seq || !hold_patiently(p))
            continue;
        if (umd_id_equal(p->scene.id, id))
            return p;
        let_go(p);
    }
    return NULL;
}

static struct place *find(umdRecordId id) { return find_from(id, places); }

/* ---- Stack ---- */

extern void *__libc_stack_end __attribute__((weak));

/* Not with the thread's state: a signal handler that logs may be the first to need that, and pthread_getattr_np takes memory. */
static void find_stack_bounds(struct umd_diag_thread *t)
{
    pthread_attr_t attr;
    struct rlimit limit;
    void *base;
    size_t size;

    if (getpid() == (pid_t)umd_diag_host_tid()) { /* of the main thread pthread_getattr_np would read a file */
        uintptr_t end = &__libc_stack_end ? (uintptr_t)__libc_stack_end : 0;
        uintptr_t room = getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < MAIN_STACK_MAX_B ? limit.rlim_cur : MAIN_STACK_MAX_B;
        t->stack_end = end;
        t->stack_begin = end > room ? end - room : end;
    } else if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        if (pthread_attr_getstack(&attr, &base, &size) == 0) {
            t->stack_begin = (uintptr_t)base;
            t->stack_end = (uintptr_t)base + size;
        }
        pthread_attr_destroy(&attr);
    }
}

/*
 * Return addresses by frame pointers. Each frame lies above the one before and inside the thread's stack, so nothing else is ever read,
 * whatever a frame of foreign code holds; on another stack, a coroutine's say, there are none.
 */
static __attribute__((no_sanitize("address", "thread", "undefined"))) uint32_t walk(const struct umd_diag_thread *t, const void *frame,
                                                                                     uint64_t frames[UMD_SCENE_FRAMES])
{
    uintptr_t at = (uintptr_t)frame;
    uint32_t n = 0;

    while (n < UMD_SCENE_FRAMES && at >= t->stack_begin && at % sizeof(uintptr_t) == 0 && at + 2 * sizeof(uintptr_t) <= t->stack_end) {
        const uintptr_t *f = (const uintptr_t *)at;
        if (f[1] < 4096)
            break;
        frames[n++] = f[1];
        if (f[0] <= at)
            break;
        at = f[0];
    }
    return n;
}

/* ---- Taking ---- */

static void take_calls(struct scene *s, const struct umd_diag_thread *t)
{
    s->met_tid = umd_sys()->tid();
    s->call_seq = t->call_seq;
    s->call_at = t->depth ? t->call_at[t->depth <= 16 ? t->depth - 1 : 15] : UINT64_MAX;
    memcpy(s->calls, t->calls, sizeof(s->calls));
}

void umd_scene_take(struct umd_diag_thread *t, const umdErrorDetail *rec, const void *frame, const umdErrorNote *errors, uint32_t error_count)
{
    if (!t->stack_end)
        find_stack_bounds(t);
    for (uint32_t tries = 0; tries < TRIES; tries++) {
        struct place *p = &places[atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % SCENE_COUNT];
        if (!hold(p))
            continue;
        struct scene *s = &p->scene;
        s->id = rec->id;
        s->tid = rec->tid;
        s->call_depth = rec->call_depth;
        s->error_count = error_count;
        memcpy(s->errors, errors, error_count * sizeof(*errors));
        s->frame_count = walk(t, frame, s->frames);
        s->met_tid = 0;
        s->call_at = UINT64_MAX;
        if (t->call_seq)
            take_calls(s, t);
        atomic_store_explicit(&p->seq, rec->id.seq, memory_order_relaxed);
        let_go(p);
        break;
    }
    t->scene_of = rec->id;
}

void umd_scene_met(struct umd_diag_thread *t, umdRecordId id)
{
    if (!t->depth || umd_id_equal(t->scene_of, id))
        return;
    t->scene_of = id;
    for (struct place *p = places; (p = find_from(id, p)) != NULL; p++) { /* a pinned one is a copy, which outlives the other */
        if (!p->scene.met_tid)
            take_calls(&p->scene, t);
        let_go(p);
    }
}

bool umd_scene_known(umdRecordId id)
{
    for (uint32_t i = 0; i < PLACES; i++)
        if (atomic_load_explicit(&places[i].seq, memory_order_relaxed) == id.seq)
            return true;
    return false;
}

void umd_scene_pin(umdRecordId id)
{
    for (uint32_t i = SCENE_COUNT; i < PLACES; i++)
        if (atomic_load_explicit(&places[i].seq, memory_order_relaxed) == id.seq)
            return;
    struct place *from = find(id);
    if (!from)
        return;
    struct place *to = &places[SCENE_COUNT + atomic_fetch_add_explicit(&next_pin, 1, memory_order_relaxed) % SCENE_PINS];
    if (hold(to)) {
        memcpy(&to->scene, &from->scene, sizeof(to->scene));
        atomic_store_explicit(&to->seq, id.seq, memory_order_relaxed);
        let_go(to);
    }
    let_go(from);
}

void umd_scene_reset(void)
{
    for (uint32_t i = 0; i < PLACES; i++) {
        atomic_store(&places[i].seq, 0);
        places[i].scene.id = (umdRecordId){ 0 };
        atomic_store(&places[i].held, false);
    }
    atomic_store(&next, 0);
    atomic_store(&next_pin, 0);
}

/* ---- Reading ---- */

size_t umd_scene_frame_format(uint64_t frame, char *buf, size_t size)
{
    Dl_info info;

    if (!dladdr((const void *)(uintptr_t)(frame - 1), &info) || !info.dli_fname)
        return (size_t)snprintf(buf, size, "?");
    const char *slash = strrchr(info.dli_fname, '/');
    int n = snprintf(buf, size, "%s+0x%" PRIx64, slash ? slash + 1 : info.dli_fname, frame - (uint64_t)(uintptr_t)info.dli_fbase);
    if (info.dli_sname && n > 0 && (size_t)n < size)
        n += snprintf(buf + n, size - (size_t)n, " %s+0x%" PRIx64, info.dli_sname, frame - (uint64_t)(uintptr_t)info.dli_saddr);
    return n > 0 ? (size_t)n : 0;
}

/* Of places in modules, not of addresses: the same path gives the same digest in each run. */
static uint64_t digest(const uint64_t *frames, uint32_t count)
{
    uint64_t h = 14695981039346656037ull;
    char text[256];

    for (uint32_t i = 0; i < count; i++) {
        umd_scene_frame_format(frames[i], text, sizeof(text));
        for (const char *c = text; *c && *c != ' '; c++) /* symbol names may be stripped */
            h = (h ^ (unsigned char)*c) * 1099511628211ull;
    }
    return count ? h : 0;
}

static void read_call(umdSceneCall *to, const struct umd_call_entry *e)
{
    double slope;
    const struct umd_stamp_pair now = umd_stamp_now(&slope);

    UMD_COPY_STR(to->name, e->site->name);
    umd_call_entry_format(e, to->args, sizeof(to->args));
    to->start_ns = umd_stamp_mono(e->start_stamp, now, slope);
    to->end_ns = e->end_stamp ? umd_stamp_mono(e->end_stamp, now, slope) : 0;
    to->code = e->code;
}

static void read_scene(const struct scene *s, umdErrorScene *out)
{
    *out = (umdErrorScene){
        .size_B = sizeof(*out), .id = s->id, .tid = s->tid, .call_depth = s->call_depth, .calls_tid = s->met_tid,
        .frame_count = s->frame_count, .error_count = s->error_count, .digest = digest(s->frames, s->frame_count),
    };
    memcpy(out->frames, s->frames, s->frame_count * sizeof(s->frames[0]));
    memcpy(out->errors, s->errors, s->error_count * sizeof(s->errors[0]));
    for (uint64_t i = 0; s->met_tid && i < UMD_CALLS && i < s->call_seq; i++) {
        const uint64_t seq = s->call_seq - 1 - i;
        read_call(&out->calls[out->call_count], &s->calls[seq % UMD_CALLS]);
        if (seq == s->call_at)
            out->call_at = out->call_count;
        out->call_count++;
    }
    if (s->call_at == UINT64_MAX || s->call_seq - s->call_at > UMD_CALLS)
        out->call_at = UMD_SCENE_NO_CALL;
}

umdStatus umdGetErrorScene(umdRecordId id, umdErrorScene *scene)
{
    struct scene copy;
    umdErrorScene own;

    if (!scene)
        return UMD_ERR_PARAM_NULL;
    if (!umd_struct_fits(sizeof(*scene), scene, UMD_ERROR_SCENE_SIZE_V1, NULL))
        return UMD_ERR_PARAM_STRUCT_SIZE;
    struct place *p = find(id);
    if (!p)
        return UMD_STATUS_NOT_READY;
    memcpy(&copy, &p->scene, sizeof(copy));
    let_go(p);
    read_scene(&copy, &own); /* the loader's lock is taken here, and no place is held */
    umd_struct_out(scene, &own, sizeof(own));
    return UMD_SUCCESS;
}
