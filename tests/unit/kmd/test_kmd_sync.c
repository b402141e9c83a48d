/* SPDX-License-Identifier: MIT */
/* test_kmd_sync.c - syncobjs and timelines, dependencies between queues, stages of a wait, priority, close with work in flight. */
#include <errno.h>
#include <string.h>

#include "kmd_fixture.h"

#define VRAM_MAP (DRM_PETREL_GEM_VRAM | DRM_PETREL_GEM_CPU_VISIBLE)

struct scene { uint32_t bo, flag, q[2]; uint32_t *p; uint64_t *pf; };

static struct scene scene_make(struct kmd_env *env)
{
    struct scene s = {.bo = gem(env, MB, VRAM_MAP), .flag = gem(env, 4096, VRAM_MAP)};
    s.p = map(env, s.bo, MB);
    s.pf = map(env, s.flag, 4096);
    assert_int_equal(bind(env, DRM_PETREL_BIND_MAP, s.bo, 0, VA_A, MB), 0);
    assert_int_equal(bind(env, DRM_PETREL_BIND_MAP, s.flag, 0, VA_B, 4096), 0);
    s.q[0] = queue(env, DRM_PETREL_QUEUE_COPY, 0, 1);
    s.q[1] = queue(env, DRM_PETREL_QUEUE_COMPUTE, 0, 2);
    return s;
}

static uint64_t timeline(struct kmd_env *env, uint32_t s, uint32_t flags)
{
    uint64_t point = 0;
    struct drm_syncobj_timeline_array args = {.handles = (uintptr_t)&s, .points = (uintptr_t)&point, .count_handles = 1, .flags = flags};
    assert_int_equal(raw(env, DRM_IOCTL_SYNCOBJ_QUERY, &args), 0);
    return point;
}

static int signal_point(struct kmd_env *env, uint32_t s, uint64_t point)
{
    struct drm_syncobj_timeline_array args = {.handles = (uintptr_t)&s, .points = (uintptr_t)&point, .count_handles = 1};
    return raw(env, DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL, &args);
}

static int core_wait(struct kmd_env *env, uint32_t *handles, uint64_t *points, uint32_t count, uint32_t flags, int64_t timeout)
{
    struct drm_syncobj_timeline_wait t = {.handles = (uintptr_t)handles, .points = (uintptr_t)points, .count_handles = count, .flags = flags, .timeout_nsec = timeout};
    struct drm_syncobj_wait b = {.handles = (uintptr_t)handles, .count_handles = count, .flags = flags, .timeout_nsec = timeout};
    int ret = points ? raw(env, DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT, &t) : raw(env, DRM_IOCTL_SYNCOBJ_WAIT, &b);
    return ret ? ret : (int)(points ? t.first_signaled : b.first_signaled);
}

static void test_core(void **state)
{
    struct kmd_env *env = *state;
    uint32_t h[2] = {syncobj(env, 0), syncobj(env, DRM_SYNCOBJ_CREATE_SIGNALED)}, bad = 999;
    const uint32_t all = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL, submit = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT;
    struct drm_syncobj_create create = {.flags = 2};
    struct drm_syncobj_destroy destroy = {.handle = 999};
    assert_int_equal(raw(env, DRM_IOCTL_SYNCOBJ_CREATE, &create), -EINVAL);
    assert_int_equal(raw(env, DRM_IOCTL_SYNCOBJ_DESTROY, &destroy), -EINVAL);
    destroy = (struct drm_syncobj_destroy){.handle = h[0], .pad = 1};
    assert_int_equal(raw(env, DRM_IOCTL_SYNCOBJ_DESTROY, &destroy), -EINVAL);
    assert_int_equal(core_wait(env, h, NULL, 2, 0x80, 0), -EINVAL);
    assert_int_equal(core_wait(env, &bad, NULL, 1, 0, 0), -ENOENT);
    assert_int_equal(core_wait(env, NULL, NULL, 1, 0, 0), -EFAULT);
    assert_int_equal(core_wait(env, h, NULL, 1, 0, 0), -EINVAL);          /* nothing was submitted */
    assert_int_equal(core_wait(env, h, NULL, 1, submit, 0), -ETIME);
    assert_int_equal(core_wait(env, h, NULL, 2, submit, 0), 1);           /* the second has signalled */
    assert_int_equal(core_wait(env, h, NULL, 2, submit | all, 0), -ETIME);
    struct drm_syncobj_array array = {.handles = (uintptr_t)h, .count_handles = 2};
    assert_int_equal(raw(env, DRM_IOCTL_SYNCOBJ_SIGNAL, &array), 0);
    assert_int_equal(core_wait(env, h, NULL, 2, all, 0), 0);
    assert_int_equal(raw(env, DRM_IOCTL_SYNCOBJ_RESET, &array), 0);
    assert_int_equal(core_wait(env, h, NULL, 2, submit, 0), -ETIME);
    array.pad = 1;
    assert_int_equal(raw(env, DRM_IOCTL_SYNCOBJ_RESET, &array), -EINVAL);
    array = (struct drm_syncobj_array){.handles = (uintptr_t)h};
    assert_int_equal(raw(env, DRM_IOCTL_SYNCOBJ_SIGNAL, &array), -EINVAL);
}

static void test_timeline(void **state)
{
    struct kmd_env *env = *state;
    uint32_t t = syncobj(env, 0), b = syncobj(env, 0);
    uint64_t p = 3;
    assert_int_equal(timeline(env, t, 0), 0);
    assert_int_equal(signal_point(env, t, 2), 0);
    assert_int_equal(signal_point(env, t, 5), 0);
    assert_int_equal(timeline(env, t, 0), 5);
    assert_int_equal(core_wait(env, &t, &p, 1, 0, 0), 0);
    p = 6;
    assert_int_equal(core_wait(env, &t, &p, 1, 0, 0), -EINVAL);
    assert_int_equal(core_wait(env, &t, &p, 1, DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT, 0), -ETIME);
    struct drm_syncobj_transfer tr = {.src_handle = t, .src_point = 4, .dst_handle = b};
    assert_int_equal(raw(env, DRM_IOCTL_SYNCOBJ_TRANSFER, &tr), 0);
    assert_int_equal(core_wait(env, &b, NULL, 1, 0, 0), 0);
    tr.src_point = 9;
    assert_int_equal(raw(env, DRM_IOCTL_SYNCOBJ_TRANSFER, &tr), -EINVAL);
    tr.src_handle = 999;
    assert_int_equal(raw(env, DRM_IOCTL_SYNCOBJ_TRANSFER, &tr), -ENOENT);
    tr.pad = 1;
    assert_int_equal(raw(env, DRM_IOCTL_SYNCOBJ_TRANSFER, &tr), -EINVAL);
    for (uint64_t i = 6; i < 3000; i++)     /* a long timeline costs what is in flight */
        assert_int_equal(signal_point(env, t, i), 0);
    assert_int_equal(timeline(env, t, DRM_SYNCOBJ_QUERY_FLAGS_LAST_SUBMITTED), 2999);
}

/* Two queues on two rings hand work to each other by points, submitted in the wrong order. */
static void test_cross_queue(void **state)
{
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    const uint32_t steps = 8;
    uint32_t t[9];
    for (uint32_t i = 0; i <= steps; i++)
        t[i] = syncobj(env, 0);
    for (uint32_t i = steps; i >= 1; i--) {
        uint64_t ib = ib_begin(env);
        if (i == 1)
            ib_fill(env, VA_A, 4096, 0xabcd0001);
        else
            ib_copy(env, VA_A + (i - 2) * 4096, VA_A + (i - 1) * 4096, 4096);
        /* A queue runs in order, so each step has a queue of its own. */
        uint32_t q = queue(env, i % 2, 0, 10 + i);
        assert_int_equal(exec(env, q, ib, i > 1 ? t[i - 1] : 0, i - 1, t[i], i), 0);
        if (i > 1) {
            struct drm_petrel_wait w;
            assert_int_equal(wait_point(env, t[i], i, 100000, &w), -ETIME);
            assert_int_equal(w.stage, DRM_PETREL_STAGE_DEPENDENCY);
            assert_int_equal(w.root_job, 0);
        }
    }
    (void)s.q;
    for (uint32_t i = 1; i <= steps; i++) {
        struct drm_petrel_wait w;
        assert_int_equal(wait_point(env, t[i], i, FOREVER, &w), 0);
        assert_int_equal(w.fence_error, 0);
    }
    for (uint32_t i = 0; i < steps * 1024; i++)
        assert_int_equal(s.p[i], 0xabcd0001);
}

/*
 * A waits for B's point and B for A's, each in a queue of its own, and C for A; D waits for a job behind it in its own queue. All four are told
 * as what they are, however the walk comes to the cycle.
 */
static void test_cycle(void **state)
{
    struct kmd_env *env = *state;
    uint32_t q[3], t[5];
    struct drm_petrel_wait w;
    for (uint32_t i = 0; i < 3; i++)
        q[i] = queue(env, DRM_PETREL_QUEUE_COMPUTE, 0, 20 + i);
    for (uint32_t i = 0; i < 5; i++)
        t[i] = syncobj(env, 0);
    assert_int_equal(exec(env, q[0], ib_begin(env), t[1], 1, t[0], 1), 0);
    assert_int_equal(wait_point(env, t[0], 1, 1000, &w), -ETIME);
    assert_int_equal(w.stage, DRM_PETREL_STAGE_DEPENDENCY); /* as long as nothing was submitted for the point */
    assert_true(w.root_job == 0 && w.cycle_job == 0 && w.hops == 1);
    const uint64_t a = w.job_id;
    assert_int_equal(exec(env, q[1], ib_begin(env), t[0], 1, t[1], 1), 0);
    assert_int_equal(exec(env, q[2], ib_begin(env), t[0], 1, t[2], 1), 0);
    assert_int_equal(wait_point(env, t[0], 1, 1000, &w), -ETIME);
    assert_int_equal(w.stage, DRM_PETREL_STAGE_CYCLE);
    assert_true(w.root_job == a && w.cycle_job && w.cycle_job != a && w.hops == 2);
    assert_int_equal(wait_point(env, t[2], 1, 1000, &w), -ETIME);
    assert_int_equal(w.stage, DRM_PETREL_STAGE_CYCLE);
    assert_true(w.job_id != a && w.root_job == a && w.hops == 3 && w.root_queue == q[0]);
    uint32_t own = queue(env, DRM_PETREL_QUEUE_COMPUTE, 0, 23);
    assert_int_equal(exec(env, own, ib_begin(env), t[4], 1, t[3], 1), 0);
    assert_int_equal(exec(env, own, ib_begin(env), 0, 0, t[4], 1), 0);
    assert_int_equal(wait_point(env, t[3], 1, 1000, &w), -ETIME);
    assert_int_equal(w.stage, DRM_PETREL_STAGE_CYCLE);
    assert_true(w.root_job == w.job_id && w.cycle_job != w.job_id && w.hops == 1 && w.root_queue == own);
    /* A destroy ends it: what was cancelled is the cause of the rest. */
    struct drm_petrel_queue_destroy d = {.queue_id = q[0]};
    assert_int_equal(call(env, DRM_IOCTL_PETREL_QUEUE_DESTROY, &d), 0);
    assert_int_equal(wait_point(env, t[2], 1, FOREVER, &w), 0);
    assert_int_equal(w.fence_error, -ECANCELED);
}

/* However long the chain: its far end is found, and how far away that is. */
static void test_long_chain(void **state)
{
    enum { LONG = 150 };
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    struct drm_petrel_wait w;
    uint32_t t[LONG + 1];
    for (uint32_t i = 0; i <= LONG; i++) {
        t[i] = syncobj(env, 0);
        if (i)
            assert_int_equal(exec(env, queue(env, DRM_PETREL_QUEUE_COMPUTE, 0, 100 + i), ib_begin(env), t[i - 1], 1, t[i], 1), 0);
    }
    assert_int_equal(wait_point(env, t[LONG], 1, 1000, &w), -ETIME);
    assert_int_equal(w.stage, DRM_PETREL_STAGE_DEPENDENCY);
    assert_int_equal(w.root_job, 0); /* nothing was submitted for the first of the points */
    assert_int_equal(w.hops, LONG);
    uint64_t ib = ib_begin(env);
    ib_wait(env, VA_B, 1);
    assert_int_equal(exec(env, s.q[0], ib, 0, 0, t[0], 1), 0);
    if (env->stepped) { /* else a slow host's watchdog may end it before we look */
        assert_int_equal(wait_point(env, t[0], 1, 1000, &w), -ETIME);
        const uint64_t first = w.job_id;
        assert_int_equal(wait_point(env, t[LONG], 1, 1000, &w), -ETIME);
        assert_int_equal(w.stage, DRM_PETREL_STAGE_DEPENDENCY);
        assert_true(first && w.root_job == first && w.root_queue == s.q[0] && w.hops == LONG);
    }
    __atomic_store_n(s.pf, 1, __ATOMIC_RELEASE);
    assert_int_equal(wait_point(env, t[LONG], 1, FOREVER, &w), 0);
}

static void test_stages(void **state)
{
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    uint32_t t = syncobj(env, 0), u = syncobj(env, 0);
    struct drm_petrel_wait w;
    assert_int_equal(wait_point(env, t, 1, 100000, &w), -ETIME);
    assert_int_equal(w.stage, DRM_PETREL_STAGE_NONE);
    uint64_t ib = ib_begin(env);
    ib_wait(env, VA_B, 1);
    assert_int_equal(exec(env, s.q[0], ib, 0, 0, t, 1), 0);
    assert_int_equal(exec(env, s.q[0], ib_begin(env), 0, 0, t, 2), 0);
    assert_int_equal(exec(env, s.q[1], ib_begin(env), t, 1, u, 1), 0);
    assert_int_equal(wait_point(env, t, 1, 1000000, &w), -ETIME);
    if (env->stepped)
        assert_int_equal(w.stage, DRM_PETREL_STAGE_RUNNING); /* not for long enough to be called stalled */
    assert_int_equal(wait_point(env, t, 1, 4000000, &w), -ETIME);
    assert_int_equal(w.stage, DRM_PETREL_STAGE_STALLED);
    uint64_t first = w.job_id;
    assert_true(first && w.start_ns && w.end_ns == 0);
    assert_int_equal(wait_point(env, t, 2, 1000, &w), -ETIME);
    assert_int_equal(w.stage, DRM_PETREL_STAGE_QUEUED);
    assert_int_equal(wait_point(env, u, 1, 1000, &w), -ETIME);
    assert_int_equal(w.stage, DRM_PETREL_STAGE_DEPENDENCY);
    assert_int_equal(w.root_job, first);
    __atomic_store_n(s.pf, 1, __ATOMIC_RELEASE);
    assert_int_equal(wait_point(env, u, 1, FOREVER, &w), 0);
    assert_int_equal(w.stage, DRM_PETREL_STAGE_DONE);
    assert_true(w.end_ns >= w.start_ns && w.start_ns >= w.submit_ns && w.submit_ns > 0);
    assert_int_equal(query(env, s.q[0]).jobs_done, 2);
}

/* A job that stood still before anybody asked has stood still: the question itself is no progress. */
static void test_first_look(void **state)
{
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    uint32_t t = syncobj(env, 0), never = syncobj(env, 0);
    struct drm_petrel_wait w;
    uint64_t ib = ib_begin(env);
    ib_fill(env, VA_A, 4096, 5); /* the ring's counter does not stand at 0 any more */
    assert_int_equal(exec(env, s.q[0], ib, 0, 0, t, 1), 0);
    assert_int_equal(wait_point(env, t, 1, FOREVER, &w), 0);
    ib = ib_begin(env);
    ib_wait(env, VA_B, 1);
    assert_int_equal(exec(env, s.q[0], ib, 0, 0, t, 2), 0);
    assert_int_equal(wait_point(env, never, 1, 4000000, &w), -ETIME); /* an eighth of the watchdog's time is 2.5 ms */
    assert_int_equal(wait_point(env, t, 2, 1000, &w), -ETIME);
    assert_int_equal(w.stage, DRM_PETREL_STAGE_STALLED);
    assert_in_range(w.progress_ns, w.submit_ns, w.submit_ns + 2000000);
    __atomic_store_n(s.pf, 1, __ATOMIC_RELEASE);
    assert_int_equal(wait_point(env, t, 2, FOREVER, &w), 0);
}

/* A job that goes on after each pause may pause as long again; for twice as long it may not, nor beyond the watchdog's time. */
static void test_pauses(void **state)
{
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    uint32_t t = syncobj(env, 0);
    struct drm_petrel_wait w;
    uint64_t ib = ib_begin(env);
    for (uint64_t step = 1; step <= 3; step++) {
        ib_wait(env, VA_B, step);
        ib_fill(env, VA_A, 4096, 5);
    }
    ib_wait(env, VA_B, 4);
    assert_int_equal(exec(env, s.q[0], ib, 0, 0, t, 1), 0);
    for (uint64_t step = 1; step <= 3; step++) { /* 4 ms before each step; an eighth of the watchdog's time is 2.5 ms */
        assert_int_equal(wait_point(env, t, 1, 2000000, &w), -ETIME);
        assert_int_equal(w.stage, DRM_PETREL_STAGE_RUNNING);
        assert_int_equal(wait_point(env, t, 1, 2000000, &w), -ETIME);
        assert_int_equal(w.stage, step == 1 ? DRM_PETREL_STAGE_STALLED : DRM_PETREL_STAGE_RUNNING);
        assert_int_equal(w.progress, (step - 1) * 4);
        __atomic_store_n(s.pf, step, __ATOMIC_RELEASE);
    }
    assert_int_equal(wait_point(env, t, 1, 4000000, &w), -ETIME);
    assert_int_equal(w.stage, DRM_PETREL_STAGE_RUNNING);
    assert_int_equal(wait_point(env, t, 1, 10000000, &w), -ETIME);
    assert_int_equal(w.stage, DRM_PETREL_STAGE_STALLED);
    assert_int_equal(w.progress, 12);
    __atomic_store_n(s.pf, 4, __ATOMIC_RELEASE);
    assert_int_equal(wait_point(env, t, 1, FOREVER, &w), 0);
    assert_int_equal(w.fence_error, 0);
}

/* The high queue's job was submitted last and goes first once the ring is free; equals take turns. */
static void test_priority(void **state)
{
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    uint32_t gate = syncobj(env, 0), low = queue(env, DRM_PETREL_QUEUE_COPY, -1, 3), high = queue(env, DRM_PETREL_QUEUE_COPY, 1, 4);
    uint32_t t[3] = {syncobj(env, 0), syncobj(env, 0), syncobj(env, 0)};
    uint32_t qs[3] = {low, s.q[0], high};
    uint64_t end[3];
    for (int round = 0; round < 8; round++) {
        for (int i = 0; i < 3; i++) {
            uint64_t ib = ib_begin(env);
            ib_fill(env, VA_A, 65536, 1);
            assert_int_equal(exec(env, qs[i], ib, gate, 1, t[i], (uint64_t)round + 1), 0);
        }
    }
    assert_int_equal(signal_point(env, gate, 1), 0);
    for (int i = 0; i < 3; i++) {
        struct drm_petrel_wait w;
        assert_int_equal(wait_point(env, t[i], 8, FOREVER, &w), 0);
        end[i] = w.end_ns;
    }
    assert_true(end[2] < end[1] && end[1] < end[0]);
}

static void test_queue_full(void **state)
{
    struct kmd_env *env = *state;
    struct drm_petrel_queue_create args = {.vm_id = env->vm, .engine = DRM_PETREL_QUEUE_COPY, .max_jobs = 3};
    uint32_t gate = syncobj(env, 0), t = syncobj(env, 0);
    assert_int_equal(call(env, DRM_IOCTL_PETREL_QUEUE_CREATE, &args), 0);
    for (uint64_t i = 1; i <= 3; i++)
        assert_int_equal(exec(env, args.queue_id, ib_begin(env), gate, 1, t, i), 0);
    assert_int_equal(exec(env, args.queue_id, ib_begin(env), 0, 0, t, 4), -EAGAIN);
    assert_int_equal(env->detail.code, UMD_ERR_SUBMIT_RING_FULL);
    assert_int_equal(figure(&env->detail, "outstanding"), 3);
    assert_int_equal(timeline(env, t, DRM_SYNCOBJ_QUERY_FLAGS_LAST_SUBMITTED), 3);
    assert_int_equal(signal_point(env, gate, 1), 0);
    assert_int_equal(wait_point(env, t, 3, FOREVER, NULL), 0);
    assert_int_equal(umd_fault_plan_set("kmd.ring.full[nth=1]=fail"), 0);
    assert_int_equal(exec(env, args.queue_id, ib_begin(env), 0, 0, t, 4), -EAGAIN);
    assert_int_equal(figure(&env->detail, "outstanding"), 3); /* as it is when it is full in earnest */
    assert_int_equal(exec(env, args.queue_id, ib_begin(env), 0, 0, t, 4), 0);
    assert_int_equal(wait_point(env, t, 4, FOREVER, NULL), 0);
}

/* Destroying a queue ends what waits and kills what runs; the rest of the device goes on. */
static void test_destroy(void **state)
{
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    uint32_t t = syncobj(env, 0), u = syncobj(env, 0), never = syncobj(env, 0);
    struct drm_petrel_wait w;
    uint64_t ib = ib_begin(env);
    ib_wait(env, VA_B, 1);      /* runs for ever */
    assert_int_equal(exec(env, s.q[0], ib, 0, 0, t, 1), 0);
    assert_int_equal(exec(env, s.q[0], ib_begin(env), never, 1, t, 2), 0);
    assert_int_equal(wait_point(env, t, 1, 1000000, &w), -ETIME);
    uint32_t other = queue(env, DRM_PETREL_QUEUE_COPY, 0, 5);
    ib = ib_begin(env);
    ib_fill(env, VA_A, 4096, 7);
    assert_int_equal(exec(env, other, ib, 0, 0, u, 1), 0);
    assert_int_equal(queue_destroy(env, s.q[0]), 0);
    for (uint64_t i = 1; i <= 2; i++) {
        assert_int_equal(wait_point(env, t, i, FOREVER, &w), 0);
        assert_int_equal(w.fence_error, -ECANCELED);
        assert_int_equal(env->detail.code, UMD_ERR_EXEC_CANCELLED);
        assert_int_equal(env->detail.advice.action, UMD_ACTION_NONE); /* as its owner asked */
    }
    assert_int_equal(wait_point(env, u, 1, FOREVER, &w), 0);
    assert_int_equal(w.fence_error, 0);
    assert_int_equal(s.p[1023], 7);
    assert_int_equal(info(env).reset_count, 0); /* a client's own wish is no failure */
}

/* Destroying a queue whose work the ring has, but not begun, waits for nobody: the work is taken back from behind another client's. */
static void test_destroy_behind(void **state)
{
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    uint32_t own[2] = {queue(env, DRM_PETREL_QUEUE_COPY, 0, 2), queue(env, DRM_PETREL_QUEUE_COPY, 0, 3)};
    uint32_t t = syncobj(env, 0), u = syncobj(env, 0), third = queue(env, DRM_PETREL_QUEUE_COPY, 0, 4), v = syncobj(env, 0);
    struct drm_petrel_wait w;
    uint64_t ib = ib_begin(env);
    ib_wait(env, VA_B, 1);
    assert_int_equal(exec(env, s.q[0], ib, 0, 0, t, 1), 0);
    assert_int_equal(wait_point(env, t, 1, 100000, &w), -ETIME);
    for (uint32_t i = 0; i < 2; i++) { /* one after the other: the ring can be stopped more than once */
        ib = ib_begin(env);
        ib_fill(env, VA_A, 4096, 7);
        assert_int_equal(exec(env, own[i], ib, 0, 0, u, i + 1), 0);
        if (i == 1) {
            ib = ib_begin(env);
            ib_fill(env, VA_A + 4096, 4096, 8);
            assert_int_equal(exec(env, third, ib, 0, 0, v, 1), 0);
        }
        assert_int_equal(queue_destroy(env, own[i]), 0);
        assert_int_equal(wait_point(env, u, i + 1, FOREVER, &w), 0);
        assert_int_equal(w.fence_error, -ECANCELED);
        assert_int_equal(wait_point(env, t, 1, 100000, &w), -ETIME);
    }
    __atomic_store_n(s.pf, 1, __ATOMIC_RELEASE);
    assert_int_equal(wait_point(env, t, 1, FOREVER, &w), 0);
    assert_int_equal(w.fence_error, 0);
    assert_int_equal(wait_point(env, v, 1, FOREVER, &w), 0); /* behind what was taken back */
    assert_int_equal(w.fence_error, 0);
    assert_int_equal(s.p[0], 0);
    assert_int_equal(s.p[1024], 8);
    assert_int_equal(info(env).reset_count, 0);
}

/* A timeline of many points that becomes ready all at once takes no more stack than a short one. */
static void test_long_timeline(void **state)
{
    enum { POINTS = 200000, BATCH = 4000 };
    static uint64_t points[BATCH];
    static uint32_t handles[BATCH];
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    uint32_t never = syncobj(env, 0), t = syncobj(env, 0);
    struct drm_petrel_wait w;
    assert_int_equal(exec(env, s.q[0], ib_begin(env), never, 1, t, 1), 0);
    for (uint64_t p = 2; p < POINTS; p += BATCH) {
        for (uint32_t i = 0; i < BATCH; i++)
            points[i] = p + i, handles[i] = t;
        struct drm_syncobj_timeline_array args = {.handles = (uintptr_t)handles, .points = (uintptr_t)points, .count_handles = BATCH};
        assert_int_equal(raw(env, DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL, &args), 0);
    }
    assert_int_equal(wait_point(env, t, POINTS - 1, 0, &w), -ETIME);
    assert_int_equal(signal_point(env, never, 1), 0);
    assert_int_equal(wait_point(env, t, POINTS - 1, FOREVER, &w), 0);
    assert_int_equal(w.fence_error, 0);
}

/* What a job waits for fails: it and all behind it are cancelled, and so is the queue until the client says that it knows. */
static void test_dependency_fails(void **state)
{
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    uint32_t never = syncobj(env, 0), t = syncobj(env, 0), u = syncobj(env, 0);
    struct drm_petrel_sync out = {.handle = u, .flags = DRM_PETREL_SYNC_SIGNAL, .point = 4};
    struct drm_petrel_exec again = {.queue_id = s.q[1], .sync_count = 1, .syncs_ptr = (uintptr_t)&out};
    struct drm_petrel_queue_query q = {.queue_id = s.q[1]};
    struct drm_petrel_event event;
    struct drm_petrel_wait w;
    assert_int_equal(exec(env, s.q[1], ib_begin(env), 0, 0, u, 1), 0);
    assert_int_equal(exec(env, s.q[0], ib_begin(env), never, 1, t, 1), 0);
    assert_int_equal(exec(env, s.q[1], ib_begin(env), t, 1, u, 2), 0);
    assert_int_equal(exec(env, s.q[1], ib_begin(env), 0, 0, u, 3), 0);
    assert_int_equal(wait_point(env, u, 1, FOREVER, &w), 0);
    assert_int_equal(w.fence_error, 0);
    assert_int_equal(queue_destroy(env, s.q[0]), 0);
    for (uint64_t i = 2; i <= 3; i++) {
        assert_int_equal(wait_point(env, u, i, FOREVER, &w), 0);
        assert_int_equal(w.fence_error, -ECANCELED);
        assert_int_equal(env->detail.code, UMD_ERR_EXEC_CANCELLED);
        assert_int_equal(figure(&env->detail, "jobs"), 2);
    }
    assert_true(next_event_of(env, DRM_PETREL_EVENT_CANCELLED, &event));
    assert_int_equal(event.queue_id, s.q[1]);
    assert_int_equal(event.record.id.seq, env->detail.id.seq);
    assert_int_equal(call(env, DRM_IOCTL_PETREL_QUEUE_QUERY, &q), 0);
    assert_int_equal(q.state, DRM_PETREL_QUEUE_CANCELLED);
    assert_int_equal(q.code, UMD_ERR_EXEC_CANCELLED);
    assert_int_equal(exec(env, s.q[1], ib_begin(env), 0, 0, u, 4), -ECANCELED);
    assert_int_equal(env->detail.code, UMD_ERR_EXEC_CANCELLED);
    assert_int_equal(env->detail.cause.seq, event.record.id.seq);
    assert_int_equal(timeline(env, u, DRM_SYNCOBJ_QUERY_FLAGS_LAST_SUBMITTED), 3);
    again.resume = event.record.id;
    again.resume.seq++; /* another cancellation, which this queue has not had */
    assert_int_equal(call(env, DRM_IOCTL_PETREL_EXEC, &again), -ECANCELED);
    again.resume.seq--;
    for (int i = 0; i < 2; i++) { /* the second time there is nothing to resume */
        assert_int_equal(call(env, DRM_IOCTL_PETREL_EXEC, &again), 0);
        assert_int_equal(wait_point(env, u, out.point++, FOREVER, &w), 0);
        assert_int_equal(w.fence_error, 0);
    }
    assert_int_equal(call(env, DRM_IOCTL_PETREL_QUEUE_QUERY, &q), 0);
    assert_int_equal(q.state, DRM_PETREL_QUEUE_OK);
    assert_int_equal(q.code, 0);
    assert_int_equal(q.jobs_cancelled, 2);
    assert_int_equal(wait_point(env, u, 2, FOREVER, &w), 0); /* what came after makes it no success */
    assert_int_equal(w.fence_error, -ECANCELED);
}

static void test_close_in_flight(void **state)
{
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    uint64_t ib = ib_begin(env);
    ib_wait(env, VA_B, 1);
    for (uint64_t i = 0; i < 6; i++) {
        assert_int_equal(exec(env, s.q[0], ib, 0, 0, 0, 0), 0);
        assert_int_equal(exec(env, s.q[1], ib, 0, 0, 0, 0), 0);
    }
    struct petrel_file *old = env->file;
    assert_int_equal(env->ops->open(0, true, &env->file), 0);
    env->ops->close(old);
    /* A new client finds a device that works. */
    struct drm_petrel_vm_create vm = {0};
    assert_int_equal(call(env, DRM_IOCTL_PETREL_VM_CREATE, &vm), 0);
    env->vm = vm.vm_id;
    uint32_t q = queue(env, DRM_PETREL_QUEUE_COPY, 0, 1), t = syncobj(env, 0);
    env->ib_dw = 0;
    struct drm_petrel_sync sync = {.handle = t, .flags = DRM_PETREL_SYNC_SIGNAL};
    struct drm_petrel_exec args = {.queue_id = q, .sync_count = 1, .syncs_ptr = (uintptr_t)&sync};
    assert_int_equal(call(env, DRM_IOCTL_PETREL_EXEC, &args), 0);
    struct drm_petrel_wait w;
    assert_int_equal(wait_point(env, t, 0, FOREVER, &w), 0);
    assert_int_equal(w.fence_error, 0);
}

static void test_remove_in_flight(void **state)
{
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    uint64_t ib = ib_begin(env);
    ib_wait(env, VA_B, 1);
    assert_int_equal(exec(env, s.q[0], ib, 0, 0, 0, 0), 0);
    assert_int_equal(exec(env, s.q[1], ib, 0, 0, 0, 0), 0);
    /* teardown closes, removes, and checks that nothing is left */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        THREADED(test_core), STEPPED(test_core), THREADED(test_timeline), THREADED(test_cross_queue), STEPPED(test_cross_queue),
        THREADED(test_cycle), STEPPED(test_cycle), THREADED(test_long_chain), STEPPED(test_long_chain),
        THREADED(test_stages), STEPPED(test_stages), STEPPED(test_first_look), STEPPED(test_pauses), STEPPED(test_priority), THREADED(test_queue_full), STEPPED(test_queue_full),
        THREADED(test_destroy), STEPPED(test_destroy), THREADED(test_dependency_fails), STEPPED(test_dependency_fails), 
        STEPPED(test_destroy_behind), /* what is before it makes no progress, which a slow host's watchdog would end */
        STEPPED(test_long_timeline),
        THREADED(test_close_in_flight), STEPPED(test_close_in_flight),
        THREADED(test_remove_in_flight), STEPPED(test_remove_in_flight),
    };
    return cmocka_run_group_tests_name("kmd-sync", tests, NULL, NULL);
}
