/* SPDX-License-Identifier: MIT */
/* kmd_fixture.c - the kernel driver under test, loaded as its clients load it. */
#include "kmd_fixture.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define IB_B (256 * KB)
#define VRAM_B (64 * MB)

const struct petrel_kmd_ops *kmd_ops(void)
{
    static const struct petrel_kmd_ops *ops;
    if (ops)
        return ops;
    void *so = dlopen(KMD_MODULE, RTLD_NOW | RTLD_LOCAL);
    if (!so)
        fail_msg("%s", dlerror());
    petrel_kmd_entry_fn entry = (petrel_kmd_entry_fn)(uintptr_t)dlsym(so, PETREL_KMD_ENTRY_SYMBOL);
    assert_non_null(entry);
    ops = entry();
    assert_int_equal(ops->abi, PETREL_KMD_ABI);
    return ops;
}

int raw(struct kmd_env *env, unsigned long cmd, void *arg)
{
    umd_record_scope_begin();
    int ret = env->ops->ioctl(env->file, cmd, arg);
    umdErrorDetail detail;
    if (umd_record_export(&detail))
        env->detail = detail;
    umd_record_scope_end();
    return ret;
}

int call(struct kmd_env *env, unsigned long cmd, void *arg)
{
    memset(&env->detail, 0, sizeof(env->detail));
    env->detail.size_B = sizeof(env->detail);
    *(uint64_t *)arg = (uintptr_t)&env->detail;
    umd_record_scope_begin();
    int ret = env->ops->ioctl(env->file, cmd, arg);
    assert_int_equal(umd_record_current().seq, 0); /* it went to error_ptr */
    umd_record_scope_end();
    if (ret == 0 && cmd != DRM_IOCTL_PETREL_WAIT)
        assert_int_equal(env->detail.code, 0);
    if (ret != 0 && ret != -ETIME) {
        assert_true(env->detail.code < 0);
        assert_int_equal(umdStatusErrno(env->detail.code), -ret);
        assert_true(env->detail.id.seq != 0);
        assert_true(env->detail.figures[0] != 0);
    }
    return ret;
}

void env_start(struct kmd_env *env, bool stepped)
{
    uint64_t bytes;
    uint32_t count = 0;
    memset(env, 0, sizeof(*env));
    env->ops = kmd_ops();
    env->stepped = stepped;
    assert_int_equal(umd_fault_plan_set(NULL), 0);
    if (stepped)
        umd_sys_step_begin(1);
    umd_alloc_live(&bytes, &env->live_blocks);
    const struct petrel_kmd_config config = {.device_count = 1, .stepped = stepped, .vram_B = VRAM_B, .watchdog_ns = 20000000};
    assert_int_equal(env->ops->probe(&config, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(env->ops->open(0, true, &env->file), 0);
    struct drm_petrel_vm_create vm = {0};
    assert_int_equal(call(env, DRM_IOCTL_PETREL_VM_CREATE, &vm), 0);
    env->vm = vm.vm_id;
    env->ib_bo = gem(env, IB_B, DRM_PETREL_GEM_SYSTEM | DRM_PETREL_GEM_CPU_VISIBLE);
    env->ib = map(env, env->ib_bo, IB_B);
    assert_int_equal(bind(env, DRM_PETREL_BIND_MAP, env->ib_bo, 0, VA_IB, IB_B), 0);
}

void env_stop(struct kmd_env *env)
{
    uint64_t bytes, blocks;
    struct umd_record_counts counts;
    if (env->file)
        env->ops->close(env->file);
    env->ops->remove();
    assert_int_equal(umd_fault_plan_set(NULL), 0);
    umd_alloc_live(&bytes, &blocks);
    assert_int_equal(blocks, env->live_blocks);
    umd_record_get_counts(&counts);
    assert_int_equal(counts.swallowed, 0);
    if (env->stepped)
        umd_sys_step_end();
}

int setup_threaded(void **state)
{
    struct kmd_env *env = calloc(1, sizeof(*env));
    *state = env;
    env_start(env, false);
    return 0;
}

int setup_stepped(void **state)
{
    struct kmd_env *env = calloc(1, sizeof(*env));
    *state = env;
    env_start(env, true);
    return 0;
}

int teardown(void **state)
{
    env_stop(*state);
    free(*state);
    return 0;
}

uint32_t gem(struct kmd_env *env, uint64_t size_B, uint32_t flags)
{
    struct drm_petrel_gem_create args = {.size_B = size_B, .flags = flags};
    return call(env, DRM_IOCTL_PETREL_GEM_CREATE, &args) == 0 ? args.handle : 0;
}

int gem_close(struct kmd_env *env, uint32_t handle)
{
    struct drm_gem_close args = {.handle = handle};
    return raw(env, DRM_IOCTL_GEM_CLOSE, &args);
}

void *map(struct kmd_env *env, uint32_t handle, uint64_t size_B)
{
    struct drm_petrel_gem_mmap args = {.handle = handle};
    int error = 0;
    assert_int_equal(call(env, DRM_IOCTL_PETREL_GEM_MMAP, &args), 0);
    void *addr = env->ops->mmap(env->file, args.offset, size_B, &error);
    assert_int_equal(error, 0);
    assert_non_null(addr);
    return addr;
}

int bind(struct kmd_env *env, uint32_t op, uint32_t handle, uint64_t offset_B, uint64_t va, uint64_t size_B)
{
    struct drm_petrel_vm_bind args = {
        .vm_id = env->vm, .op = op, .handle = handle, .offset_B = offset_B, .va = va, .size_B = size_B,
        .flags = op == DRM_PETREL_BIND_MAP ? DRM_PETREL_BIND_READ | DRM_PETREL_BIND_WRITE : 0,
    };
    return call(env, DRM_IOCTL_PETREL_VM_BIND, &args);
}

uint32_t queue(struct kmd_env *env, uint32_t engine, int32_t priority, uint64_t context_id)
{
    struct drm_petrel_queue_create args = {.vm_id = env->vm, .engine = engine, .priority = priority, .context_id = context_id};
    return call(env, DRM_IOCTL_PETREL_QUEUE_CREATE, &args) == 0 ? args.queue_id : 0;
}

int queue_destroy(struct kmd_env *env, uint32_t id)
{
    struct drm_petrel_queue_destroy args = {.queue_id = id};
    return call(env, DRM_IOCTL_PETREL_QUEUE_DESTROY, &args);
}

struct drm_petrel_queue_query query(struct kmd_env *env, uint32_t id)
{
    struct drm_petrel_queue_query args = {.queue_id = id};
    assert_int_equal(call(env, DRM_IOCTL_PETREL_QUEUE_QUERY, &args), 0);
    return args;
}

uint32_t syncobj(struct kmd_env *env, uint32_t flags)
{
    struct drm_syncobj_create args = {.flags = flags};
    assert_int_equal(raw(env, DRM_IOCTL_SYNCOBJ_CREATE, &args), 0);
    return args.handle;
}

struct drm_petrel_info info(struct kmd_env *env)
{
    struct drm_petrel_info args = {0};
    assert_int_equal(call(env, DRM_IOCTL_PETREL_INFO, &args), 0);
    return args;
}

uint64_t ib_begin(struct kmd_env *env)
{
    return VA_IB + env->ib_dw * 4;
}

void ib_packet(struct kmd_env *env, uint32_t dw)
{
    assert_true(env->ib_dw < IB_B / 4);
    env->ib[env->ib_dw++] = dw;
}

static void packet64(struct kmd_env *env, uint64_t v)
{
    ib_packet(env, (uint32_t)v);
    ib_packet(env, (uint32_t)(v >> 32));
}

void ib_fill(struct kmd_env *env, uint64_t va, uint64_t size_B, uint32_t pattern)
{
    ib_packet(env, PETREL_PKT(PETREL_OP_FILL, 6));
    packet64(env, va);
    packet64(env, size_B);
    ib_packet(env, pattern);
    ib_packet(env, 4);
}

void ib_copy(struct kmd_env *env, uint64_t src, uint64_t dst, uint64_t size_B)
{
    ib_packet(env, PETREL_PKT(PETREL_OP_COPY, 6));
    packet64(env, src);
    packet64(env, dst);
    packet64(env, size_B);
}

void ib_wait(struct kmd_env *env, uint64_t va, uint64_t ref)
{
    ib_packet(env, PETREL_PKT(PETREL_OP_WAIT, 4));
    packet64(env, va);
    packet64(env, ref);
}

int exec(struct kmd_env *env, uint32_t queue_id, uint64_t start, uint32_t in, uint64_t in_point, uint32_t out, uint64_t out_point)
{
    struct drm_petrel_ib ib = {.va = start, .size_dw = (uint32_t)((VA_IB + env->ib_dw * 4 - start) / 4)};
    struct drm_petrel_sync syncs[2];
    uint32_t count = 0;
    if (in)
        syncs[count++] = (struct drm_petrel_sync){.handle = in, .point = in_point};
    if (out)
        syncs[count++] = (struct drm_petrel_sync){.handle = out, .point = out_point, .flags = DRM_PETREL_SYNC_SIGNAL};
    struct drm_petrel_exec args = {
        .queue_id = queue_id, .ib_count = ib.size_dw ? 1 : 0, .ibs_ptr = (uintptr_t)&ib, .sync_count = count, .syncs_ptr = (uintptr_t)syncs,
        .cmdbuf_id = 77,
    };
    int ret = call(env, DRM_IOCTL_PETREL_EXEC, &args);
    assert_true((ret == 0) == (args.job_id != 0));
    return ret;
}

int wait_point(struct kmd_env *env, uint32_t sync, uint64_t point, uint64_t timeout_ns, struct drm_petrel_wait *wait_out)
{
    struct drm_petrel_sync one = {.handle = sync, .point = point};
    struct drm_petrel_wait args = {.syncs_ptr = (uintptr_t)&one, .sync_count = 1, .timeout_ns = timeout_ns, .flags = DRM_PETREL_WAIT_DEVICE_CLOCK};
    int ret = call(env, DRM_IOCTL_PETREL_WAIT, &args);
    if (wait_out)
        *wait_out = args;
    return ret;
}

bool next_event(struct kmd_env *env, struct drm_petrel_event *event_out, uint64_t timeout_ns)
{
    umd_record_scope_begin();
    ssize_t n = env->ops->read(env->file, event_out, sizeof(*event_out), timeout_ns);
    umd_record_scope_end();
    if (n == -EAGAIN)
        return false;
    assert_int_equal(n, sizeof(*event_out));
    assert_int_equal(event_out->base.length, sizeof(*event_out));
    return true;
}

bool next_event_of(struct kmd_env *env, uint32_t type, struct drm_petrel_event *event_out)
{
    while (next_event(env, event_out, 2000000000)) {
        if (event_out->base.type == type)
            return true;
    }
    return false;
}

uint64_t figure(const umdErrorDetail *detail, const char *key)
{
    const size_t len = strlen(key);
    for (const char *p = detail->figures; p && *p; p = strchr(p, ' ') ? strchr(p, ' ') + 1 : NULL) {
        if (strncmp(p, key, len) == 0 && p[len] == '=')
            return strtoull(p + len + 1, NULL, 0);
    }
    fail_msg("no figure %s in: %s", key, detail->figures);
    return 0;
}
