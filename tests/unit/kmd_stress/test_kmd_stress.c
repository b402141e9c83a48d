/* SPDX-License-Identifier: MIT */
/* test_kmd_stress.c - four threads of system calls against one device: closes with work in flight, stolen ids, bad pointers, faults. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <umd/umd_log.h>

#include "kmd_fixture.h"

#define THREADS 4u
#define BO_B (64 * KB)
#define WAIT_NS 5000000000ull     /* of host time; the watchdog and all resets are far quicker */

struct stress {
    const struct petrel_kmd_ops *ops;
    struct petrel_file *shared;   /* file in which threads take each other's ids */
    uint32_t sessions;            /* by each thread */
    bool guilty;                  /* some jobs fault */
    _Atomic(uint32_t) verified, failed_jobs, stolen, lost, wrong, odd, overdue;
    umdStatus lost_code;          /* at the end */
    _Atomic(int) odd_errno;
    _Atomic(unsigned long) odd_cmd;
};
struct worker { struct stress *s; uint32_t index; uint64_t random; };
/* What a session has made; 0: not. */
struct session {
    struct worker *w;
    struct petrel_file *file;
    bool own;                     /* nobody else knows the file: what a fence says can be checked */
    uint32_t vm, bo, queue, sync;
    uint32_t *cpu;
};

static uint32_t rnd(struct worker *w, uint32_t n)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (uint32_t)(w->random >> 33) % n;
}

/* Every failure is one that the interface names, and left a record (a time-out needs none). */
static int sys(struct session *x, unsigned long cmd, void *arg)
{
    static const int known[] = {EINVAL, ENOENT, ENOMEM, ENOSPC, EBUSY, EAGAIN, EIO, ENODEV, EFAULT, ETIME, EPERM};
    struct stress *s = x->w->s;
    umd_record_scope_begin();
    const int ret = s->ops->ioctl(x->file, cmd, arg);
    umdErrorDetail detail = {0};
    const bool open = umd_record_export(&detail);
    umd_record_scope_end();
    if (ret == -ENODEV)
        atomic_fetch_add(&s->lost, 1);
    bool fine = ret >= 0 ? !open : false;
    for (size_t i = 0; ret < 0 && i < sizeof(known) / sizeof(known[0]); i++)
        fine |= -ret == known[i] && (open ? umdStatusErrno(detail.code) == -ret : ret == -ETIME);
    if (!fine) {
        atomic_fetch_add(&s->odd, 1);
        atomic_store(&s->odd_errno, ret);
        atomic_store(&s->odd_cmd, cmd);
    }
    return ret;
}

static int bind_bo(struct session *x, uint32_t op, uint64_t offset_B, uint64_t size_B)
{
    struct drm_petrel_vm_bind args = {
        .vm_id = x->vm, .op = op, .handle = op == DRM_PETREL_BIND_MAP ? x->bo : 0, .va = VA_A + offset_B, .size_B = size_B,
        .offset_B = op == DRM_PETREL_BIND_MAP ? offset_B : 0,
        .flags = op == DRM_PETREL_BIND_MAP ? DRM_PETREL_BIND_READ | DRM_PETREL_BIND_WRITE : 0,
    };
    return sys(x, DRM_IOCTL_PETREL_VM_BIND, &args);
}

static bool make_memory(struct session *x)
{
    struct drm_petrel_vm_create vm = {0};
    struct drm_petrel_gem_create bo = {.size_B = BO_B, .flags = DRM_PETREL_GEM_CPU_VISIBLE |
                                       (rnd(x->w, 2) ? DRM_PETREL_GEM_VRAM : DRM_PETREL_GEM_SYSTEM)};
    if (sys(x, DRM_IOCTL_PETREL_VM_CREATE, &vm) != 0)
        return false;
    x->vm = vm.vm_id;
    if (sys(x, DRM_IOCTL_PETREL_GEM_CREATE, &bo) != 0)
        return false;
    x->bo = bo.handle;
    struct drm_petrel_gem_mmap offset = {.handle = x->bo};
    if (sys(x, DRM_IOCTL_PETREL_GEM_MMAP, &offset) != 0)
        return false;
    int error = 0;
    umd_record_scope_begin();
    void *cpu = x->w->s->ops->mmap(x->file, offset.offset, BO_B, &error);
    umdErrorDetail detail;
    (void)umd_record_export(&detail);
    umd_record_scope_end();
    if (!cpu)
        return false;
    x->cpu = cpu;
    return bind_bo(x, DRM_PETREL_BIND_MAP, 0, BO_B) == 0;
}

static bool make_queue(struct session *x)
{
    struct drm_petrel_queue_create queue = {.vm_id = x->vm, .engine = rnd(x->w, 2), .priority = (int32_t)rnd(x->w, 3) - 1, .context_id = 1 + rnd(x->w, 4)};
    struct drm_syncobj_create sync = {0};
    if (sys(x, DRM_IOCTL_PETREL_QUEUE_CREATE, &queue) != 0)
        return false;
    x->queue = queue.queue_id;
    if (sys(x, DRM_IOCTL_SYNCOBJ_CREATE, &sync) != 0)
        return false;
    x->sync = sync.handle;
    return true;
}

/* Fills the upper half of the buffer with a value that was never there; a guilty one goes far beyond its end. */
static int submit(struct session *x, uint32_t value, bool guilty, uint64_t point)
{
    const uint64_t dst = VA_A + BO_B / 2, size_B = guilty ? MB : BO_B / 2;
    const uint32_t packet[7] = {PETREL_PKT(PETREL_OP_FILL, 6), (uint32_t)dst, (uint32_t)(dst >> 32), (uint32_t)size_B, (uint32_t)(size_B >> 32), value, 4};
    const uint32_t at = (uint32_t)(point % 64) * 8; /* jobs before this one may still be read */
    for (uint32_t i = 0; i < 7; i++)
        __atomic_store_n(x->cpu + at + i, packet[i], __ATOMIC_RELAXED);
    struct drm_petrel_ib ib = {.va = VA_A + at * 4ull, .size_dw = 7};
    struct drm_petrel_sync out = {.handle = x->sync, .point = point, .flags = DRM_PETREL_SYNC_SIGNAL};
    struct drm_petrel_exec args = {.queue_id = x->queue, .ib_count = 1, .ibs_ptr = (uintptr_t)&ib, .sync_count = 1, .syncs_ptr = (uintptr_t)&out};
    return sys(x, DRM_IOCTL_PETREL_EXEC, &args);
}

/* Waits for a point; success must be true of the memory, if nobody else can have meant another job. */
static void await(struct session *x, uint32_t value, uint64_t point)
{
    struct stress *s = x->w->s;
    struct drm_petrel_sync one = {.handle = x->sync, .point = point};
    struct drm_petrel_wait args = {.syncs_ptr = (uintptr_t)&one, .sync_count = 1, .timeout_ns = x->own ? WAIT_NS : 1000000 * rnd(x->w, 10)};
    const int ret = sys(x, DRM_IOCTL_PETREL_WAIT, &args);
    if (!x->own)
        return;
    if (ret == -ETIME)
        atomic_fetch_add(&s->overdue, 1);
    if (ret != 0 || args.fence_error) {
        atomic_fetch_add(&s->failed_jobs, 1);
        return;
    }
    for (uint64_t i = BO_B / 8; i < BO_B / 4; i += BO_B / 64) {
        if (__atomic_load_n(x->cpu + i, __ATOMIC_ACQUIRE) != value)
            atomic_fetch_add(&s->wrong, 1);
    }
    atomic_fetch_add(&s->verified, 1);
}

/* Ids of the shared file, taken at random: whoever owns them must only see an error. */
static void steal(struct session *x)
{
    struct drm_petrel_queue_destroy queue = {.queue_id = 1 + rnd(x->w, 16)};
    struct drm_petrel_vm_destroy vm = {.vm_id = 1 + rnd(x->w, 16)};
    struct drm_syncobj_destroy sync = {.handle = 1 + rnd(x->w, 16)};
    struct drm_gem_close bo = {.handle = 1 + rnd(x->w, 16)};
    int ret = 0;
    switch (rnd(x->w, 4)) {
    case 0: ret = sys(x, DRM_IOCTL_PETREL_QUEUE_DESTROY, &queue); break;
    case 1: ret = sys(x, DRM_IOCTL_PETREL_VM_DESTROY, &vm); break;
    case 2: ret = sys(x, DRM_IOCTL_SYNCOBJ_DESTROY, &sync); break;
    default: ret = sys(x, DRM_IOCTL_GEM_CLOSE, &bo); break;
    }
    if (ret == 0)
        atomic_fetch_add(&x->w->s->stolen, 1);
}

static void pester(struct session *x)
{
    struct drm_petrel_event event;
    struct drm_petrel_info info = {0};
    struct drm_petrel_queue_query query = {.queue_id = x->own ? x->queue : 1 + rnd(x->w, 16)};
    switch (rnd(x->w, 5)) {
    case 0:
        umd_record_scope_begin();
        (void)x->w->s->ops->read(x->file, &event, sizeof(event), 0);
        umd_record_scope_end();
        break;
    case 1: (void)sys(x, DRM_IOCTL_PETREL_INFO, &info); break;
    case 2: (void)sys(x, DRM_IOCTL_PETREL_QUEUE_QUERY, &query); break;
    case 3: (void)sys(x, DRM_IOCTL_PETREL_EXEC, (void *)(uintptr_t)64); break;
    default: /* a hole in the middle and back again: splits and joins mappings under whatever runs */
        if (!x->own && bind_bo(x, DRM_PETREL_BIND_UNMAP, BO_B / 4, 4 * KB) == 0)
            (void)bind_bo(x, DRM_PETREL_BIND_MAP, BO_B / 4, 4 * KB);
        break;
    }
}

static void give_back(struct session *x)
{
    struct drm_petrel_queue_destroy queue = {.queue_id = x->queue};
    struct drm_petrel_vm_destroy vm = {.vm_id = x->vm};
    struct drm_syncobj_destroy sync = {.handle = x->sync};
    struct drm_gem_close bo = {.handle = x->bo};
    if (x->queue)
        (void)sys(x, DRM_IOCTL_PETREL_QUEUE_DESTROY, &queue);
    if (x->sync)
        (void)sys(x, DRM_IOCTL_SYNCOBJ_DESTROY, &sync);
    if (x->cpu)
        (void)x->w->s->ops->munmap(x->file, x->cpu, BO_B);
    if (x->bo)
        (void)sys(x, DRM_IOCTL_GEM_CLOSE, &bo);
    if (x->vm)
        (void)sys(x, DRM_IOCTL_PETREL_VM_DESTROY, &vm);
}

static void session(struct worker *w, uint32_t number)
{
    struct stress *s = w->s;
    struct session x = {.w = w, .file = s->shared, .own = rnd(w, 2)};
    const bool guilty = s->guilty && rnd(w, 16) == 0;
    uint64_t point = 0;
    if (x.own && s->ops->open(0, true, &x.file) != 0) {
        atomic_fetch_add(&s->odd, 1);
        return;
    }
    if (make_memory(&x) && make_queue(&x)) {
        const uint32_t jobs = 1 + rnd(w, 6);
        uint32_t value = 0;
        for (uint32_t i = 0; i < jobs; i++) {
            value = w->index << 28 | (number & 0xfffff) << 8 | (i + 1);
            if (submit(&x, value, guilty && i == jobs - 1, point + 1) != 0)
                break;
            point++;
            if (!x.own && rnd(w, 2))
                steal(&x);
            pester(&x);
            if (rnd(w, 2) && x.own)
                await(&x, value, point);
        }
        /* Half of them leave with work in flight. */
        if (point == jobs && rnd(w, 2))
            await(&x, value, point);
    }
    if (!x.own || rnd(w, 2))
        give_back(&x);
    if (x.own)
        s->ops->close(x.file);
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    for (uint32_t i = 0; i < w->s->sessions; i++)
        session(w, i);
    return NULL;
}

static uint64_t seed;

/* One device's life under a plan of faults. */
static void stress(struct stress *s, const char *plan)
{
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    uint64_t bytes, before, blocks;
    uint32_t count = 0;
    struct umd_record_counts counts;
    const struct petrel_kmd_config config = {.device_count = 1, .vram_B = 32 * MB, .watchdog_ns = 20000000, .functional = true};
    s->ops = kmd_ops();
    umd_alloc_live(&bytes, &before);
    assert_int_equal(s->ops->probe(&config, &count), 0);
    assert_int_equal(s->ops->open(0, true, &s->shared), 0);
    assert_int_equal(umd_fault_plan_set(plan), 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.s = s, .index = i, .random = 0x9e3779b97f4a7c15ull * (seed * THREADS + i + 1)};
        assert_int_equal(pthread_create(&threads[i], NULL, worker_main, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(umd_fault_plan_set(NULL), 0);
    s->lost_code = 0;
    struct drm_petrel_info info = {0};
    umd_record_scope_begin();
    if (s->ops->ioctl(s->shared, DRM_IOCTL_PETREL_INFO, &info) == 0)
        s->lost_code = (umdStatus)info.lost_code;
    umd_record_scope_end();
    s->ops->close(s->shared);
    s->ops->remove();
    if (s->odd)
        fail_msg("odd=%u errno=%d cmd=0x%lx", s->odd, s->odd_errno, s->odd_cmd);
    assert_int_equal(s->wrong, 0);
    assert_int_equal(s->overdue, 0);
    umd_alloc_live(&bytes, &blocks);
    assert_int_equal(blocks, before);
    umd_record_get_counts(&counts);
    assert_int_equal(counts.swallowed, 0);
}

static void test_closes(void **state)
{
    struct stress s = {.sessions = 250};
    (void)state;
    stress(&s, NULL);
    assert_string_equal(umdStatusName(s.lost_code), "UMD_SUCCESS");
    assert_true(s.verified > 0 && s.stolen > 0);
}

static void test_shortage(void **state)
{
    struct stress s = {.sessions = 200};
    (void)state;
    stress(&s, "seed=7;hw.irq.lost=10%fire;kmd.vram.alloc=5%fail;kmd.vm.page_table=5%fail;kmd.ring.full=5%fail");
    assert_string_equal(umdStatusName(s.lost_code), "UMD_SUCCESS");
    assert_true(s.verified > 0);
}

/* Page faults and hangs until the resets are used up and the device is lost. */
static void test_resets(void **state)
{
    struct stress s = {.sessions = 200, .guilty = true};
    (void)state;
    stress(&s, "seed=9;hw.sdma.hang[space=100,times=3]=5%fire;hw.reset.fail[times=1]=fire");
    assert_true(s.verified > 0 && s.failed_jobs > 0);
}

static void test_loss(void **state)
{
    struct stress s = {.sessions = 100};
    (void)state;
    stress(&s, "hw.bus.off[nth=200]=fire");
    assert_string_equal(umdStatusName(s.lost_code), "UMD_ERR_DEV_LOST_OFF_BUS");
    if (s.verified == 0 || s.lost == 0)
        fail_msg("verified=%u lost=%u failed_jobs=%u", s.verified, s.lost, s.failed_jobs);
}

/* A job that only itself could wake is refused whole; a later point of another submission is a promise, and taken. */
static void test_own_sync(void **state)
{
    struct kmd_env *env = *state;
    const uint32_t q = queue(env, DRM_PETREL_QUEUE_COPY, 0, 1), sync = syncobj(env, 0);
    assert_int_equal(exec(env, q, ib_begin(env), sync, 0, sync, 0), -EINVAL);
    assert_int_equal(exec(env, q, ib_begin(env), sync, 3, sync, 3), -EINVAL);
    assert_int_equal(query(env, q).jobs_submitted, 0);
    assert_int_equal(exec(env, q, ib_begin(env), sync, 4, sync, 3), 0);
    struct drm_petrel_wait wait;
    assert_int_equal(wait_point(env, sync, 3, 1000000, &wait), -ETIME);
    assert_int_equal(wait.stage, DRM_PETREL_STAGE_DEPENDENCY);
    assert_int_equal(queue_destroy(env, q), 0);
    assert_int_equal(wait_point(env, sync, 3, FOREVER, &wait), 0);
    assert_int_equal(wait.fence_error, -ECANCELED);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closes),
        cmocka_unit_test(test_shortage),
        cmocka_unit_test(test_resets),
        cmocka_unit_test(test_loss),
        THREADED(test_own_sync),
        STEPPED(test_own_sync),
    };
    seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
    /* Thousands of refusals are what is tested. */
    if (umdLogSetConsole("off") != UMD_SUCCESS)
        return 1;
    return cmocka_run_group_tests_name("kmd_stress", tests, NULL, NULL);
}
