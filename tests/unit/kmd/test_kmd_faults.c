/* SPDX-License-Identifier: MIT */
/* test_kmd_faults.c - power-up failures, faults, hangs, lost interrupts, resets and losses: each with its own outcome. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kmd_fixture.h"

#define VRAM_MAP (DRM_PETREL_GEM_VRAM | DRM_PETREL_GEM_CPU_VISIBLE)

/* ---- Power-up ---- */

static void test_power_up(void **state)
{
    static const struct { const char *spec; umdStatus code; } rows[] = {
        {"hw.fw.version=fire", UMD_ERR_INIT_FW_VERSION},       {"hw.fw.boot=fire", UMD_ERR_INIT_FW_BOOT},
        {"hw.ecc.selftest=fire", UMD_ERR_INIT_ECC_SELFTEST},   {"kmd.device.count=fire", UMD_ERR_INIT_DEVICE_COUNT},
        {"hw.revision=fire", UMD_ERR_INIT_UNSUPPORTED},        {"hw.revision=fire(0)", UMD_ERR_INIT_UNSUPPORTED},
        {"sys.thread.create=fail", UMD_ERR_RES_THREADS},
    };
    const struct petrel_kmd_ops *ops = kmd_ops();
    (void)state;
    for (int stepped = 0; stepped < 2; stepped++) {
        const struct petrel_kmd_config config = {.device_count = 2, .stepped = stepped, .vram_B = 64 * MB};
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            umdErrorDetail detail;
            uint32_t count = 77;
            uint64_t bytes, before, after;
            if (stepped && rows[i].code == UMD_ERR_RES_THREADS)
                continue;
            if (stepped)
                umd_sys_step_begin(1);
            umd_alloc_live(&bytes, &before);
            assert_int_equal(umd_fault_plan_set(rows[i].spec), 0);
            umd_record_scope_begin();
            int ret = ops->probe(&config, &count);
            assert_true(umd_record_export(&detail));
            umd_record_scope_end();
            assert_int_equal(detail.code, rows[i].code);
            assert_int_equal(ret, -umdStatusErrno(rows[i].code));
            assert_int_equal(count, 77);
            assert_int_equal(umd_fault_plan_set(NULL), 0);
            umd_alloc_live(&bytes, &after);
            assert_int_equal(after, before);
            if (stepped)
                umd_sys_step_end();
        }
    }
    /* Every host allocation of the power-up refused in turn. */
    for (int nth = 1; nth < 200; nth++) {
        char spec[64];
        uint32_t count;
        umdErrorDetail detail;
        const struct petrel_kmd_config config = {.device_count = 1, .vram_B = 64 * MB};
        snprintf(spec, sizeof(spec), "sys.alloc[nth=%d]=fail", nth);
        assert_int_equal(umd_fault_plan_set(spec), 0);
        umd_record_scope_begin();
        int ret = ops->probe(&config, &count);
        if (ret)
            assert_true(umd_record_export(&detail));
        umd_record_scope_end();
        assert_int_equal(umd_fault_plan_set(NULL), 0);
        if (ret == 0) {
            ops->remove();
            assert_true(nth > 3);
            return;
        }
        assert_int_equal(ret, -ENOMEM);
    }
    fail_msg("the power-up never got through");
}

/* ---- Running ---- */

struct scene { uint32_t bo, q, t, point; uint32_t *p; };

static struct scene scene_make(struct kmd_env *env)
{
    struct scene s = {.bo = gem(env, MB, VRAM_MAP), .t = syncobj(env, 0)};
    s.p = map(env, s.bo, MB);
    assert_int_equal(bind(env, DRM_PETREL_BIND_MAP, s.bo, 0, VA_A, MB), 0);
    s.q = queue(env, DRM_PETREL_QUEUE_COPY, 0, 42);
    return s;
}

static int fill(struct kmd_env *env, struct scene *s, uint32_t q, uint64_t va, uint32_t value)
{
    uint64_t ib = ib_begin(env);
    ib_fill(env, va, 4096, value);
    return exec(env, q, ib, 0, 0, s->t, ++s->point);
}

static int wait_last(struct kmd_env *env, struct scene *s)
{
    struct drm_petrel_wait w;
    assert_int_equal(wait_point(env, s->t, s->point, FOREVER, &w), 0);
    return w.fence_error;
}

/* A new context works: the queue of another context id on the same file, and memory is as it should be. */
static void works_again(struct kmd_env *env, struct scene *s)
{
    uint32_t q = queue(env, DRM_PETREL_QUEUE_COPY, 0, 4242);
    assert_true(q != 0);
    uint32_t t = s->t;
    s->t = syncobj(env, 0);
    assert_int_equal(fill(env, s, q, VA_A + 8192, 0x600d), 0);
    assert_int_equal(wait_last(env, s), 0);
    assert_int_equal(s->p[2048], 0x600d);
    s->t = t;
}

static void banned(struct kmd_env *env, struct scene *s, umdStatus code, uint32_t fault)
{
    struct drm_petrel_event event;
    umdErrorDetail why = env->detail;
    assert_int_equal(why.code, code);
    assert_int_equal(why.context_id, 42);
    assert_true(next_event_of(env, DRM_PETREL_EVENT_ERROR, &event));
    assert_int_equal(event.record.code, code);
    assert_int_equal(event.record.id.seq, why.id.seq);
    assert_int_equal(event.fault, fault);
    assert_int_equal(event.context_id, 42);
    assert_int_equal(event.queue_id, s->q);
    assert_int_equal(event.cmdbuf_id, 77);
    struct drm_petrel_queue_query q = query(env, s->q);
    assert_int_equal(q.state, DRM_PETREL_QUEUE_BANNED);
    assert_int_equal(q.code, code);
    assert_int_equal(q.record.seq, why.id.seq);
    assert_int_equal(fill(env, s, s->q, VA_A, 9), -EIO);
    assert_int_equal(env->detail.code, UMD_ERR_CTX_BANNED);
    assert_int_equal(env->detail.cause.seq, why.id.seq);
    assert_int_equal(queue(env, DRM_PETREL_QUEUE_COPY, 0, 42), 0); /* no way around */
    assert_int_equal(env->detail.code, UMD_ERR_CTX_BANNED);
}

static void test_page_fault(void **state)
{
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    uint32_t sibling = queue(env, DRM_PETREL_QUEUE_COPY, 0, 42), innocent = queue(env, DRM_PETREL_QUEUE_COPY, 0, 43), never = syncobj(env, 0), u = syncobj(env, 0);
    assert_int_equal(exec(env, sibling, ib_begin(env), never, 1, u, 1), 0);
    uint64_t ib = ib_begin(env);
    ib_wait(env, VA_A + 16384, 1);                                 /* until all is submitted */
    ib_fill(env, VA_A + MB, 4096, 1);                              /* just behind the buffer */
    assert_int_equal(exec(env, s.q, ib, 0, 0, s.t, ++s.point), 0);
    uint32_t bad = s.point;
    assert_int_equal(fill(env, &s, s.q, VA_A, 2), 0);              /* must not run */
    __atomic_store_n((uint64_t *)(void *)&s.p[4096], 1, __ATOMIC_RELEASE);
    uint32_t mine = s.t;
    s.t = syncobj(env, 0);
    assert_int_equal(fill(env, &s, innocent, VA_A + 4096, 3), 0);
    assert_int_equal(wait_last(env, &s), 0);
    assert_int_equal(s.p[1024], 3);
    struct drm_petrel_wait w;
    assert_int_equal(wait_point(env, mine, s.point - 1, FOREVER, &w), 0);
    assert_int_equal(w.fence_error, -ECANCELED);
    assert_int_equal(env->detail.code, UMD_ERR_EXEC_CANCELLED);
    assert_int_equal(env->detail.advice.action, UMD_ACTION_REBUILD_CONTEXT); /* which takes no more work */
    assert_int_equal(env->detail.advice.count, 0);
    assert_int_equal(wait_point(env, u, 1, FOREVER, &w), 0);       /* the whole context is guilty */
    assert_int_equal(w.fence_error, -ECANCELED);
    assert_int_equal(wait_point(env, mine, bad, FOREVER, &w), 0);
    assert_int_equal(w.fence_error, -EFAULT);
    assert_int_equal(s.p[0], 0);
    assert_int_equal(figure(&env->detail, "va"), VA_A + MB);
    assert_int_equal(figure(&env->detail, "nearest_va"), VA_A);
    assert_int_equal(figure(&env->detail, "distance_B"), 1);
    banned(env, &s, UMD_ERR_HW_PAGE_FAULT, PETREL_FAULT_PAGE);
    works_again(env, &s);
    assert_int_equal(info(env).reset_count, 1);
}

/* An address in the lanes' private windows is no stack that ran over where no kernel runs. */
static void test_copy_to_private(void **state)
{
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    assert_int_equal(fill(env, &s, s.q, PETREL_PRIVATE_BASE + MB, 1), 0);
    assert_int_equal(wait_last(env, &s), -EFAULT);
    assert_int_equal(figure(&env->detail, "va"), PETREL_PRIVATE_BASE + MB);
    banned(env, &s, UMD_ERR_HW_PAGE_FAULT, PETREL_FAULT_PAGE);
}

static void test_packet_fault(void **state)
{
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    uint64_t ib = ib_begin(env);
    ib_packet(env, PETREL_PKT(PETREL_OP_TLB_INVAL, 1)); /* privileged */
    ib_packet(env, 0);
    assert_int_equal(exec(env, s.q, ib, 0, 0, s.t, ++s.point), 0);
    assert_int_equal(wait_last(env, &s), -EINVAL);
    banned(env, &s, UMD_ERR_HW_PACKET, PETREL_FAULT_PACKET);
    works_again(env, &s);
}

static void test_stuck(void **state)
{
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    assert_int_equal(umd_fault_plan_set("hw.sdma.hang[nth=1]=fire"), 0);
    assert_int_equal(fill(env, &s, s.q, VA_A, 1), 0);
    assert_int_equal(wait_last(env, &s), -EIO);
    assert_true(figure(&env->detail, "elapsed_ns") >= 20000000);
    banned(env, &s, UMD_ERR_HW_HANG, 0);
    works_again(env, &s);
}

static void test_spin(void **state)
{
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    uint64_t ib = ib_begin(env);
    ib_wait(env, VA_A, 1); /* for ever, but it answers */
    assert_int_equal(exec(env, s.q, ib, 0, 0, s.t, ++s.point), 0);
    assert_int_equal(wait_last(env, &s), -EIO);
    banned(env, &s, UMD_ERR_HW_SPIN, 0);
    works_again(env, &s);
}

/* The command processor stops before it reaches the job: nobody's fault, and the work is done after all. */
static void test_cp_hang(void **state)
{
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    struct drm_petrel_event event;
    uint32_t q = queue(env, DRM_PETREL_QUEUE_COMPUTE, 0, 42);
    assert_int_equal(umd_fault_plan_set("hw.cp.hang[nth=1]=fire"), 0);
    assert_int_equal(fill(env, &s, q, VA_A, 0), 0);
    assert_true(next_event_of(env, DRM_PETREL_EVENT_WARNING, &event));
    assert_int_equal(event.record.code, UMD_ERR_HW_HANG);
    assert_int_equal(figure(&event.record, "started"), 0);
    wait_last(env, &s);
    assert_int_equal(info(env).reset_count, 1);
}

static _Thread_local bool slow_here;

/* The thread loses its processor right after each look at the clock, for longer than the watchdog waits. */
static uint64_t slow_mono_ns(void)
{
    const uint64_t ns = umd_sys_default()->mono_ns();

    if (slow_here)
        usleep(25000);
    return ns;
}

/* A host that is slow between its look at the clock and the doorbell: no job is called stuck that had no time. */
static void test_slow_submit(void **state)
{
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    struct umd_sys table = *umd_sys_default();

    table.mono_ns = slow_mono_ns;
    umd_sys_set(&table);
    for (int i = 0; i < 4; i++) {
        const uint64_t ib = ib_begin(env);
        for (int k = 0; k < 32; k++) /* long enough to be met at work by a look that comes too soon */
            ib_fill(env, VA_A, MB, (uint32_t)i);
        slow_here = true;
        const int ret = exec(env, s.q, ib, 0, 0, s.t, ++s.point);
        slow_here = false;
        assert_int_equal(ret, 0);
        assert_int_equal(wait_last(env, &s), 0);
    }
    umd_sys_set(NULL);
    assert_int_equal(info(env).reset_count, 0); /* called long it may be, which it was for the host */
}

static void test_long(void **state)
{
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    struct drm_petrel_event event;
    uint64_t ib = ib_begin(env);
    uint32_t big = gem(env, 16 * MB, DRM_PETREL_GEM_SYSTEM);
    assert_int_equal(bind(env, DRM_PETREL_BIND_MAP, big, 0, VA_B, 16 * MB), 0);
    for (int i = 0; i < 40; i++) /* over the link, so that few bytes take long */
        ib_fill(env, VA_B, 16 * MB, 5);
    assert_int_equal(exec(env, s.q, ib, 0, 0, s.t, ++s.point), 0);
    assert_int_equal(wait_last(env, &s), 0);
    assert_true(next_event_of(env, DRM_PETREL_EVENT_WARNING, &event));
    assert_int_equal(event.record.code, UMD_ERR_HW_LONG_RUNNING);
    assert_true(figure(&event.record, "progress") > 0);
    assert_int_equal(info(env).reset_count, 0);
}

static void test_irq_lost(void **state)
{
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    struct drm_petrel_event event;
    assert_int_equal(umd_fault_plan_set("hw.irq.lost[nth=1]=fire"), 0);
    assert_int_equal(fill(env, &s, s.q, VA_A, 1), 0);
    assert_int_equal(wait_last(env, &s), 0);
    assert_true(next_event_of(env, DRM_PETREL_EVENT_WARNING, &event));
    assert_int_equal(event.record.code, UMD_ERR_HW_IRQ_LOST);
    assert_int_equal(s.p[0], 1);
    assert_int_equal(query(env, s.q).state, DRM_PETREL_QUEUE_OK);
}

/* ---- Loss ---- */

static void lost(struct kmd_env *env, struct scene *s, umdStatus code)
{
    struct drm_petrel_event event;
    assert_true(next_event_of(env, DRM_PETREL_EVENT_LOST, &event));
    assert_int_equal(event.record.code, code);
    assert_int_equal((int32_t)info(env).lost_code, code);
    assert_int_equal(query(env, s->q).state, DRM_PETREL_QUEUE_LOST);
    assert_int_equal(fill(env, s, s->q, VA_A, 1), -ENODEV);
    assert_int_equal(env->detail.code, code);
    assert_int_equal(env->detail.cause.seq, event.record.id.seq);
    s->point--;
    assert_int_equal(gem(env, 4096, DRM_PETREL_GEM_VRAM), 0);
    assert_int_equal(env->detail.code, code);
    assert_int_equal(queue(env, 0, 0, 9), 0);
    assert_int_equal(env->detail.code, code);
    /* A wait for what nobody can submit any more ends too, and giving back works. */
    assert_int_equal(wait_point(env, syncobj(env, 0), 7, FOREVER, NULL), -ENODEV);
    assert_int_equal(bind(env, DRM_PETREL_BIND_UNMAP, 0, 0, VA_A, MB), 0);
    assert_int_equal(queue_destroy(env, s->q), 0);
}

static void test_off_bus(void **state)
{
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    uint32_t never = syncobj(env, 0), u = syncobj(env, 0), q = queue(env, DRM_PETREL_QUEUE_COMPUTE, 0, 50);
    struct drm_petrel_wait w;
    assert_int_equal(exec(env, q, ib_begin(env), never, 1, u, 1), 0);
    assert_int_equal(umd_fault_plan_set("hw.bus.off[nth=1]=fire"), 0);
    assert_int_equal(fill(env, &s, s.q, VA_A, 1), 0);
    assert_int_equal(wait_last(env, &s), -ENODEV);
    assert_int_equal(env->detail.code, UMD_ERR_DEV_LOST_OFF_BUS);
    assert_int_equal(wait_point(env, u, 1, FOREVER, &w), 0);
    assert_int_equal(w.fence_error, -ENODEV);
    lost(env, &s, UMD_ERR_DEV_LOST_OFF_BUS);
}

static void test_reset_fails(void **state)
{
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    assert_int_equal(umd_fault_plan_set("hw.sdma.hang[nth=1]=fire;hw.reset.fail=fire"), 0);
    assert_int_equal(fill(env, &s, s.q, VA_A, 1), 0);
    assert_int_equal(wait_last(env, &s), -EIO); /* its own failure came first */
    assert_int_equal(env->detail.code, UMD_ERR_HW_HANG);
    lost(env, &s, UMD_ERR_DEV_LOST_RESET_FAILED);
}

/* The ring does not answer, the device does. What ran on the other ring is told so and does not run again, nor does what is behind it. */
static void test_device_reset(void **state)
{
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    uint32_t other = queue(env, DRM_PETREL_QUEUE_COMPUTE, 0, 60), third = queue(env, DRM_PETREL_QUEUE_COMPUTE, 0, 61);
    uint32_t u = syncobj(env, 0), v = syncobj(env, 0);
    struct drm_petrel_wait w;
    assert_int_equal(umd_fault_plan_set("hw.sdma.hang[nth=1]=fire;hw.reset.fail[nth=1]=fire"), 0);
    assert_int_equal(fill(env, &s, s.q, VA_A, 1), 0);
    assert_int_equal(wait_point(env, s.t, s.point, 10000000, NULL), -ETIME);
    uint64_t ib = ib_begin(env);
    ib_wait(env, VA_A + 4096, 1);
    assert_int_equal(exec(env, other, ib, 0, 0, u, 1), 0);
    assert_int_equal(exec(env, other, ib_begin(env), 0, 0, u, 2), 0);
    assert_int_equal(exec(env, third, ib_begin(env), 0, 0, v, 1), 0);
    assert_int_equal(wait_last(env, &s), -EIO);
    assert_int_equal(env->detail.code, UMD_ERR_HW_HANG);
    assert_int_equal(wait_point(env, u, 1, FOREVER, &w), 0);
    assert_int_equal(w.fence_error, -ECANCELED);
    assert_int_equal(env->detail.code, UMD_ERR_EXEC_INNOCENT_PARTIAL);
    const uint64_t partial = env->detail.id.seq;
    assert_int_equal(wait_point(env, u, 2, FOREVER, &w), 0);
    assert_int_equal(w.fence_error, -ECANCELED);
    assert_int_equal(env->detail.code, UMD_ERR_EXEC_CANCELLED);
    assert_int_equal(env->detail.cause.seq, partial);
    assert_int_equal(env->detail.advice.action, UMD_ACTION_RETRY); /* the queue takes it when it is submitted again */
    assert_int_equal(query(env, other).state, DRM_PETREL_QUEUE_CANCELLED);
    assert_int_equal(query(env, other).code, UMD_ERR_EXEC_INNOCENT_PARTIAL);
    assert_int_equal(wait_point(env, v, 1, FOREVER, &w), 0);
    assert_int_equal(w.fence_error, 0);          /* had not started: ran after the reset */
    assert_int_equal(query(env, third).state, DRM_PETREL_QUEUE_OK);
    works_again(env, &s);
}

/* A queue whose dependency failed still has work from before it, in flight behind another's hang: that runs after the reset. */
static void test_reset_of_cancelled(void **state)
{
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    uint32_t other = queue(env, DRM_PETREL_QUEUE_COPY, 0, 60), gone = queue(env, DRM_PETREL_QUEUE_COPY, 0, 60), never = syncobj(env, 0);
    uint32_t t = syncobj(env, 0), u = syncobj(env, 0);
    struct drm_petrel_wait w;
    assert_int_equal(umd_fault_plan_set("hw.sdma.hang[nth=1]=fire"), 0);
    assert_int_equal(fill(env, &s, s.q, VA_A, 1), 0);
    uint64_t ib = ib_begin(env);
    ib_fill(env, VA_A + 4096, 4096, 7);
    assert_int_equal(exec(env, other, ib, 0, 0, u, 1), 0);
    assert_int_equal(exec(env, gone, ib_begin(env), never, 1, t, 1), 0);
    assert_int_equal(exec(env, other, ib_begin(env), t, 1, u, 2), 0);
    assert_int_equal(queue_destroy(env, gone), 0);
    assert_int_equal(wait_point(env, u, 1, FOREVER, &w), 0);
    assert_int_equal(w.fence_error, 0);
    assert_int_equal(s.p[1024], 7);
    assert_int_equal(wait_point(env, u, 2, FOREVER, &w), 0);
    assert_int_equal(w.fence_error, -ECANCELED);
    assert_int_equal(query(env, other).state, DRM_PETREL_QUEUE_CANCELLED);
    assert_int_equal(wait_last(env, &s), -EIO);
    assert_int_equal(env->detail.code, UMD_ERR_HW_HANG);
    works_again(env, &s);
}

static void test_too_many(void **state)
{
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    for (uint32_t i = 1; i <= 9; i++) {
        s.q = queue(env, DRM_PETREL_QUEUE_COPY, 0, 100 + i);
        assert_int_equal(fill(env, &s, s.q, VA_A + MB, 1), 0);
        assert_int_equal(wait_last(env, &s), -EFAULT);
        assert_int_equal(info(env).reset_count, i < 9 ? i : 8);
    }
    lost(env, &s, UMD_ERR_DEV_LOST_TOO_MANY_RESETS);
}

static void test_overflow(void **state)
{
    struct kmd_env *env = *state;
    struct scene s = scene_make(env);
    struct drm_petrel_event event;
    uint32_t count = 0;
    assert_int_equal(umd_fault_plan_set("hw.irq.lost=fire"), 0);
    for (uint32_t i = 0; i < 40; i++) {
        assert_int_equal(fill(env, &s, s.q, VA_A, i), 0);
        assert_int_equal(wait_last(env, &s), 0);
        wait_point(env, syncobj(env, 0), 1, 3000000, NULL); /* until it counts as late */
    }
    assert_int_equal(umd_fault_plan_set(NULL), 0);
    while (next_event(env, &event, 0) && event.base.type == DRM_PETREL_EVENT_WARNING)
        count++;
    assert_int_equal(count, 31); /* of 32 places one is kept for the loss of the device */
    assert_int_equal(event.base.type, DRM_PETREL_EVENT_OVERFLOW);
    assert_int_equal(event.record.code, UMD_ERR_HW_EVENTS_DROPPED);
    assert_true(event.record.id.seq);
    assert_in_range(figure(&event.record, "dropped"), 1, 40);
    assert_false(next_event(env, &event, 0));
    /* Events are whole: a small buffer is refused, a bad one keeps the event. */
    umdErrorDetail detail;
    umd_record_scope_begin();
    assert_int_equal(env->ops->read(env->file, &event, 16, 0), -EINVAL);
    assert_true(umd_record_export(&detail));
    umd_record_scope_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_power_up),
        THREADED(test_page_fault), STEPPED(test_page_fault), STEPPED(test_copy_to_private), THREADED(test_packet_fault), STEPPED(test_packet_fault),
        THREADED(test_stuck), STEPPED(test_stuck), THREADED(test_spin), STEPPED(test_spin), THREADED(test_cp_hang), STEPPED(test_cp_hang), THREADED(test_slow_submit),
        STEPPED(test_long), THREADED(test_irq_lost), STEPPED(test_irq_lost), THREADED(test_off_bus), STEPPED(test_off_bus),
        THREADED(test_reset_fails), STEPPED(test_reset_fails), STEPPED(test_device_reset), STEPPED(test_reset_of_cancelled), /* its order of events needs the device's time, not the host's */
        THREADED(test_too_many), STEPPED(test_too_many), STEPPED(test_overflow),
    };
    return cmocka_run_group_tests_name("kmd-faults", tests, NULL, NULL);
}
