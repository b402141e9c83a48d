/* SPDX-License-Identifier: MIT */
/* test_hw_time.c - device clock, timer, interrupt ring, determinism of stepped runs, register access from many threads. */
#include "hw_fixture.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#define C PETREL_RING_COMPUTE0
#define D PETREL_RING_COPY0
#define DATA_VA 0x100000000ull

static uint64_t wall_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void test_timer_stepped(void **state)
{
    struct hwt *t = hwt_boot(HW_RUN_STEPPED);
    const uint64_t due_ns = hwt_r64(t, R_CLOCK_NS) + 123456789;
    hw_write64(t->dev, R_TIMER_NS, due_ns);
    assert_false(hw_device_pump(t->dev, 1000)); /* not yet: time passes by the budget */
    assert_int_equal(hwt_r64(t, R_CLOCK_NS), due_ns - 123456789 + 1000);
    assert_true(hw_device_pump(t->dev, UINT64_MAX));
    assert_int_equal(hwt_r64(t, R_CLOCK_NS), due_ns);
    assert_int_equal(t->event_count, 1);
    assert_int_equal(t->events[0].source, PETREL_IRQ_TIMER);
    assert_int_equal(t->events[0].time_ns, due_ns);
    assert_int_equal(hwt_r64(t, R_TIMER_NS), 0);
    assert_false(hw_device_pump(t->dev, 1000000)); /* once only */
    assert_int_equal(t->event_count, 1);
    hw_write64(t->dev, R_TIMER_NS, 1); /* already past: at once */
    assert_true(hw_device_pump(t->dev, 1));
    assert_int_equal(t->event_count, 2);
    hwt_destroy(t);
}

/* A timer that falls into a long copy is not held up by it. */
static void test_timer_during_work(void **state)
{
    struct hwt *t = hwt_boot(HW_RUN_STEPPED);
    for (uint64_t i = 0; i < 64; i++)
        hwt_map_huge(t, 0x400000000ull + (i << 21), HWT_DATA_AT + (i % 8 << 21), HWT_RW);
    hwt_context(t, D, 1);
    hwt_copy(t, D, 0x400000000ull, 0x400000000ull + (32ull << 21), 32ull << 21);
    const uint64_t seq = hwt_fence(t, D, true), due_ns = hwt_r64(t, R_CLOCK_NS) + 33333;
    hw_write64(t->dev, R_TIMER_NS, due_ns);
    assert_true(hwt_finish(t, D, seq));
    assert_int_equal(t->event_count, 2);
    assert_int_equal(t->events[0].source, PETREL_IRQ_TIMER);
    assert_in_range(t->events[0].time_ns, due_ns, due_ns + 2000);
    assert_int_equal(t->events[1].source, PETREL_IRQ_FENCE);
    hwt_destroy(t);
}

static void test_timer_threaded(void **state)
{
    struct hwt *t = hwt_boot(HW_RUN_THREADED);
    const uint64_t from_ns = wall_ns(), due_ns = hwt_r64(t, R_CLOCK_NS) + 20000000;
    hw_write64(t->dev, R_TIMER_NS, due_ns);
    assert_true(hwt_wait_event(t, PETREL_IRQ_TIMER));
    assert_true(wall_ns() - from_ns >= 19000000);
    assert_true(t->events[0].time_ns >= due_ns);
    assert_int_equal(t->irq_count, 1);
    hwt_destroy(t);
}

/* Idle: wall rate. After work that took longer to simulate than it lasted: no jump to make it up. */
static void test_idle_clock(void **state)
{
    struct hwt *t = hwt_boot(HW_RUN_THREADED);
    const uint64_t wall_from = wall_ns(), dev_from = hwt_r64(t, R_CLOCK_NS);
    nanosleep(&(struct timespec){ .tv_nsec = 30000000 }, NULL);
    const uint64_t dev_took = hwt_r64(t, R_CLOCK_NS) - dev_from, wall_took = wall_ns() - wall_from;
    assert_true(dev_took >= 29000000 && dev_took <= wall_took);
    uint64_t last_ns = 0;
    for (uint32_t i = 0; i < 200; i++) { /* idle and busy in turns: never backwards, never ahead of the wall by more than the work */
        hwt_dw(t, C, 0);
        hwt_doorbell(t, C);
        for (uint32_t k = 0; k < 50; k++) {
            const uint64_t now_ns = hwt_r64(t, R_CLOCK_NS);
            assert_true(now_ns >= last_ns);
            last_ns = now_ns;
        }
    }
    assert_true(hwt_r64(t, R_CLOCK_NS) - dev_from <= wall_ns() - wall_from + 200 * 200);
    hwt_destroy(t);
}

/* An engine that waits for ever does not stop the clock, and does not burn the host's processor. */
static void test_blocked_clock(void **state)
{
    struct hwt *t = hwt_boot(HW_RUN_THREADED);
    struct timespec cpu_from, cpu_to;
    hwt_map(t, DATA_VA, HWT_DATA_AT, 1, HWT_RW);
    hwt_context(t, D, 1);
    hwt_wait64(t, D, DATA_VA, 1);
    hwt_doorbell(t, D);
    hwt_pass(t, 1000000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu_from);
    hwt_pass(t, 100000000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu_to);
    assert_int_equal(hwt_r32(t, PETREL_RING_REG(D, STATUS)), PETREL_RING_BUSY);
    const double cpu_s = (double)(cpu_to.tv_sec - cpu_from.tv_sec) + 1e-9 * (double)(cpu_to.tv_nsec - cpu_from.tv_nsec);
    assert_true(cpu_s < 0.09); /* of 0.1 s: a spinning thread would take all of it */
    hwt_destroy(t);
}

static void test_ih_overflow(void **state)
{
    struct hwt *t = hwt_boot(HW_RUN_STEPPED);
    t->leave_ring = true;
    hw_write32(t->dev, R_IH_SIZE, 8);
    for (uint32_t i = 0; i < 8; i++)
        hwt_fence(t, C, true);
    assert_true(hwt_finish(t, C, 8));
    assert_int_equal(hwt_r32(t, R_IH_WPTR), 8);
    assert_int_equal(hwt_r32(t, R_IH_STATUS), 0);
    assert_true(hwt_finish(t, C, hwt_fence(t, C, true)));
    assert_int_equal(hwt_r32(t, R_IH_WPTR), 8); /* dropped, not overwritten */
    assert_int_equal(hwt_r32(t, R_IH_STATUS), 1);
    const struct petrel_ih_entry *ring = (const void *)(t->vram + HWT_IH_AT);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(ring[i].data, i + 1);
    hw_write32(t->dev, R_IH_STATUS, 2);
    assert_int_equal(hwt_r32(t, R_IH_STATUS), 1);
    hw_write32(t->dev, R_IH_STATUS, 1);
    assert_int_equal(hwt_r32(t, R_IH_STATUS), 0);
    hw_write32(t->dev, R_IH_RPTR, 5);
    for (uint32_t i = 0; i < 5; i++)
        hwt_fence(t, C, true);
    assert_true(hwt_finish(t, C, 14));
    assert_int_equal(hwt_r32(t, R_IH_WPTR), 13);
    assert_int_equal(hwt_r32(t, R_IH_STATUS), 0);
    assert_int_equal(ring[4].data, 14); /* wrapped */
    assert_int_equal(ring[5].data, 6);
    hw_write64(t->dev, R_IH_BASE, HWT_VRAM_B); /* a ring that is not in VRAM holds nothing */
    assert_true(hwt_finish(t, C, hwt_fence(t, C, true)));
    assert_int_equal(hwt_r32(t, R_IH_STATUS), 1);
    hwt_destroy(t);
}

static bool has_fences(struct hwt *t, uint64_t n)
{
    return atomic_load(&t->event_count) >= n;
}

/* Fences with and without interrupt; callbacks may ring doorbells and reset from inside. */
static void ring_again(struct hwt *t)
{
    if (t->seq[C] < 20) {
        hwt_fence(t, C, true);
        hwt_doorbell(t, C);
    }
}

static void test_callback_rings(void **state)
{
    for (int m = 0; m < 2; m++) {
        struct hwt *t = hwt_boot(m ? HW_RUN_THREADED : HW_RUN_STEPPED);
        t->on_irq = ring_again;
        hwt_fence(t, C, false);
        hwt_fence(t, C, true);
        hwt_doorbell(t, C);
        assert_true(hwt_until(t, has_fences, 19));
        for (uint32_t i = 0; i < 19; i++)
            assert_int_equal(t->events[i].data, i + 2);
        hwt_destroy(t);
    }
}

static _Atomic(uint32_t) reset_read_back;
static void reset_inside(struct hwt *t)
{
    hw_write32(t->dev, R_RESET, 1u << C);
    atomic_store(&reset_read_back, hw_read32(t->dev, R_RESET) + 100 + hw_read32(t->dev, PETREL_RING_REG(C, WPTR)));
    t->on_irq = NULL;
}

static void test_callback_resets_at_once(void **state)
{
    for (int m = 0; m < 2; m++) {
        struct hwt *t = hwt_boot(m ? HW_RUN_THREADED : HW_RUN_STEPPED);
        atomic_store(&reset_read_back, 0);
        t->on_irq = reset_inside;
        hwt_fence(t, C, true);
        hwt_fence(t, C, true);
        hwt_doorbell(t, C);
        assert_true(hwt_until(t, has_fences, 1));
        hwt_pass(t, 1000000);
        assert_int_equal(atomic_load(&reset_read_back), 100);
        assert_int_equal(hwt_fence_value(t, C), 1); /* the second was reset away */
        hwt_destroy(t);
    }
}

/* ---- Determinism ---- */

/* A program over both rings, with faults and resets in it; what it leaves as one number. */
static uint64_t run_program(void)
{
    struct hwt *t = hwt_boot(HW_RUN_STEPPED);
    uint64_t hash = 1469598103934665603ull;
    for (uint64_t i = 0; i < 16; i++)
        hwt_map_huge(t, 0x400000000ull + (i << 21), HWT_DATA_AT + (i << 21), HWT_RW);
    for (uint32_t round = 0; round < 20; round++) {
        for (uint32_t r = 0; r < 2; r++) {
            hwt_context(t, r, round * 2 + r);
            hwt_copy(t, r, 0x400000000ull + r * 0x1000000, 0x400000000ull + 0x800000 + r * 0x1000000, 100000 + round * 7777);
            hwt_dw(t, r, PETREL_PKT(PETREL_OP_TIMESTAMP, 2));
            hwt_dw64(t, r, 0x400000000ull + 8 * round + r * 0x1000000);
            hwt_fence(t, r, true);
            if (round % 7 == 6)
                hwt_write(t, r, 0x1000, 0); /* unmapped */
            hwt_doorbell(t, r);
        }
        hw_write64(t->dev, R_TIMER_NS, hwt_r64(t, R_CLOCK_NS) + 5000 * round);
        for (uint32_t i = 0; i < 50; i++)
            hw_device_pump(t->dev, 10000);
        if (round % 7 == 6) {
            hw_write32(t->dev, R_RESET, 3);
            t->wptr[0] = t->wptr[1] = 0;
        }
    }
    const uint64_t now_ns = hwt_r64(t, R_CLOCK_NS);
    assert_true(t->event_count >= 60);
    const uint8_t *parts[] = { (const uint8_t *)&now_ns, (const uint8_t *)t->events, t->vram + HWT_IH_AT, t->vram + HWT_DATA_AT };
    const size_t sizes[] = { 8, sizeof(t->events), HWT_IH_ENTRIES * 32, 32u << 20 };
    for (size_t p = 0; p < 4; p++) {
        for (size_t i = 0; i < sizes[p]; i += 8) {
            uint64_t word;
            memcpy(&word, parts[p] + i, 8);
            hash = (hash ^ word) * 1099511628211ull;
        }
    }
    hwt_destroy(t);
    return hash;
}

static void test_stepped_is_deterministic(void **state)
{
    const uint64_t first = run_program();
    assert_true(run_program() == first);
    assert_true(run_program() == first);
}

/* Any budget makes headway; time passes by about the budget, and a fence is never ahead of the clock. */
static void test_small_budgets(void **state)
{
    static const uint64_t budgets[] = { 1, 7, 100, 999, 12345 };
    for (size_t b = 0; b < 5; b++) {
        struct hwt *t = hwt_boot(HW_RUN_STEPPED);
        for (uint64_t i = 0; i < 16; i++)
            hwt_map_huge(t, 0x400000000ull + (i << 21), HWT_DATA_AT + (i << 21), HWT_RW);
        for (uint32_t r = 0; r < 2; r++) {
            hwt_context(t, r, 1);
            for (uint32_t i = 0; i < 4; i++) {
                hwt_copy(t, r, 0x400000000ull + r * 0x1000000, 0x400800000ull + r * 0x1000000, 5000 + 40000 * (r ^ (i & 1)));
                hwt_fence(t, r, true);
            }
            hwt_doorbell(t, r);
        }
        uint32_t pumps = 0;
        while (hwt_fence_value(t, C) < 4 || hwt_fence_value(t, D) < 4) {
            const uint64_t from_ns = hwt_r64(t, R_CLOCK_NS);
            hw_device_pump(t->dev, budgets[b]);
            const uint64_t now_ns = hwt_r64(t, R_CLOCK_NS);
            assert_true(now_ns >= from_ns && now_ns <= from_ns + budgets[b] + 1000);
            for (uint32_t r = 0; r < 2; r++)
                assert_true(*(uint64_t *)(t->vram + HWT_FENCE_AT + r * 64 + 8) <= now_ns);
            assert_true(++pumps < 100000);
        }
        hwt_destroy(t);
    }
}

/* ---- Many threads ---- */

struct storm {
    struct hwt *t;
    _Atomic(bool) *stop;
    uint32_t seed;
    uint64_t last_clock;
};

static void *storm_thread(void *arg)
{
    struct storm *s = arg;
    uint32_t x = s->seed;
    while (!atomic_load(s->stop)) {
        x = x * 1664525u + 1013904223u;
        const uint32_t ring = x >> 30 & 1, off = (x >> 8 & 0xff) * 4;
        switch (x >> 16 & 7) {
        case 0: hw_read32(s->t->dev, off); break;
        case 1: hw_read64(s->t->dev, PETREL_RING_REG(ring, BASE) + (off & 0x7c)); break;
        case 2: hw_write32(s->t->dev, PETREL_RING_REG(ring, PREEMPT), x & 1); break;
        case 3: hw_write64(s->t->dev, R_TIMER_NS, hwt_r64(s->t, R_CLOCK_NS) + (x & 0xffff)); break;
        case 4: hw_write32(s->t->dev, R_RESET, 1u << ring); break;
        case 5: hw_write32(s->t->dev, PETREL_RING_REG(ring, WPTR), hwt_r32(s->t, PETREL_RING_REG(ring, WPTR)) + (x >> 12 & 7)); break;
        case 6: hw_write32(s->t->dev, off, x); break; /* anything, the firmware and the interrupt ring too */
        default: {
            const uint64_t now_ns = hwt_r64(s->t, R_CLOCK_NS);
            if (now_ns < s->last_clock)
                abort();
            s->last_clock = now_ns;
        }
        }
    }
    return NULL;
}

static void count_only(struct hwt *t)
{
    (void)hw_read32(t->dev, R_IH_WPTR);
}

static void test_register_storm(void **state)
{
    struct hwt *t = hwt_boot(HW_RUN_THREADED);
    _Atomic(bool) stop = false;
    struct storm storms[4];
    pthread_t threads[4];
    t->leave_ring = true;
    t->on_irq = count_only;
    hw_write32(t->dev, R_IH_SIZE, 8);
    memset(t->vram + HWT_RING_AT(0), 0, HWT_RING_DW * 4);
    memset(t->vram + HWT_RING_AT(1), 0, HWT_RING_DW * 4);
    for (uint32_t i = 0; i < 4; i++) {
        storms[i] = (struct storm){ .t = t, .stop = &stop, .seed = i * 77 + 5 };
        assert_int_equal(pthread_create(&threads[i], NULL, storm_thread, &storms[i]), 0);
    }
    nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL);
    atomic_store(&stop, true);
    for (uint32_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    /* And it is still a device. */
    hw_write32(t->dev, R_RESET, 1u << 31);
    for (uint32_t r = 0; r < 2; r++) {
        hw_write32(t->dev, PETREL_RING_REG(r, PREEMPT), 0);
        t->wptr[r] = 0;
    }
    hwt_pass(t, 5000000);
    assert_int_equal(hwt_r32(t, R_RESET), 0);
    t->leave_ring = false;
    hwt_setup_rings(t);
    assert_true(hwt_finish(t, C, hwt_fence(t, C, false)));
    hwt_destroy(t);
}

struct ringer { struct hwt *t; uint32_t ring; };

static void *ring_for_nothing(void *arg)
{
    struct ringer *r = arg;
    for (uint32_t i = 0; i < 50; i++)
        hw_write32(r->t->dev, PETREL_RING_REG(r->ring, WPTR), 0);
    return NULL;
}

/* A doorbell holds the idle clock until the device has looked, whatever it found: no hold is left behind. */
static void test_no_hold_is_left(void **state)
{
    struct hwt *t = hwt_boot(HW_RUN_THREADED);
    for (uint32_t round = 0; round < 200; round++) {
        struct ringer r[2] = { { t, 0 }, { t, 1 } };
        pthread_t threads[2];
        for (uint32_t i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, ring_for_nothing, &r[i]), 0);
        for (uint32_t i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        const uint64_t from_ns = hwt_r64(t, R_CLOCK_NS), host_ns = wall_ns();
        while (hwt_r64(t, R_CLOCK_NS) <= from_ns + 1000 && wall_ns() - host_ns < 20000000000ull)
            sched_yield();
        assert_true(hwt_r64(t, R_CLOCK_NS) > from_ns + 1000);
    }
    hwt_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timer_stepped),
        cmocka_unit_test(test_timer_during_work),
        cmocka_unit_test(test_timer_threaded),
        cmocka_unit_test(test_idle_clock),
        cmocka_unit_test(test_blocked_clock),
        cmocka_unit_test(test_ih_overflow),
        cmocka_unit_test(test_callback_rings),
        cmocka_unit_test(test_callback_resets_at_once),
        cmocka_unit_test(test_stepped_is_deterministic),
        cmocka_unit_test(test_small_budgets),
        cmocka_unit_test(test_register_storm),
        cmocka_unit_test(test_no_hold_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
