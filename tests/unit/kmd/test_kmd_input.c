/* SPDX-License-Identifier: MIT */
/* test_kmd_input.c - bad input to every ioctl: flags, pads, handles, sizes, short and long structs, bad pointers. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "kmd_fixture.h"

#define BAD ((uintptr_t)16)   /* nothing is mapped there */

struct bad { const char *what; unsigned long cmd; size_t off; uint32_t size; uint64_t value; int want; };
#define IN(cmd_, type_, field_, value_, want_) \
    { #cmd_ " " #field_ " " #value_, cmd_, offsetof(struct type_, field_), sizeof(((struct type_ *)0)->field_), value_, want_ }

/* Each row changes one field of a call that would succeed. */
static const struct bad rows[] = {
    IN(DRM_IOCTL_PETREL_GEM_CREATE, drm_petrel_gem_create, flags, 0, EINVAL),
    IN(DRM_IOCTL_PETREL_GEM_CREATE, drm_petrel_gem_create, flags, 3, EINVAL),
    IN(DRM_IOCTL_PETREL_GEM_CREATE, drm_petrel_gem_create, flags, 0x81, EINVAL),
    IN(DRM_IOCTL_PETREL_GEM_CREATE, drm_petrel_gem_create, size_B, 0, EINVAL),
    IN(DRM_IOCTL_PETREL_GEM_CREATE, drm_petrel_gem_create, size_B, UINT64_MAX, EINVAL),
    IN(DRM_IOCTL_PETREL_GEM_MMAP, drm_petrel_gem_mmap, handle, 999, ENOENT),
    IN(DRM_IOCTL_PETREL_GEM_MMAP, drm_petrel_gem_mmap, pad, 1, EINVAL),
    IN(DRM_IOCTL_PETREL_VM_CREATE, drm_petrel_vm_create, flags, 1, EINVAL),
    IN(DRM_IOCTL_PETREL_VM_DESTROY, drm_petrel_vm_destroy, vm_id, 999, ENOENT),
    IN(DRM_IOCTL_PETREL_VM_DESTROY, drm_petrel_vm_destroy, pad, 1, EINVAL),
    IN(DRM_IOCTL_PETREL_VM_BIND, drm_petrel_vm_bind, vm_id, 999, ENOENT),
    IN(DRM_IOCTL_PETREL_VM_BIND, drm_petrel_vm_bind, op, 2, EINVAL),
    IN(DRM_IOCTL_PETREL_VM_BIND, drm_petrel_vm_bind, handle, 999, ENOENT),
    IN(DRM_IOCTL_PETREL_VM_BIND, drm_petrel_vm_bind, flags, 0, EINVAL),
    IN(DRM_IOCTL_PETREL_VM_BIND, drm_petrel_vm_bind, flags, 8, EINVAL),
    IN(DRM_IOCTL_PETREL_VM_BIND, drm_petrel_vm_bind, offset_B, 1, EINVAL),
    IN(DRM_IOCTL_PETREL_VM_BIND, drm_petrel_vm_bind, offset_B, 1ull << 40, EINVAL),
    IN(DRM_IOCTL_PETREL_VM_BIND, drm_petrel_vm_bind, va, 0, EINVAL),
    IN(DRM_IOCTL_PETREL_VM_BIND, drm_petrel_vm_bind, va, VA_A + 1, EINVAL),
    IN(DRM_IOCTL_PETREL_VM_BIND, drm_petrel_vm_bind, va, PETREL_VA_USER_END, EINVAL),
    IN(DRM_IOCTL_PETREL_VM_BIND, drm_petrel_vm_bind, va, UINT64_MAX & ~4095ull, EINVAL),
    IN(DRM_IOCTL_PETREL_VM_BIND, drm_petrel_vm_bind, va, VA_IB, EINVAL),
    IN(DRM_IOCTL_PETREL_VM_BIND, drm_petrel_vm_bind, size_B, 0, EINVAL),
    IN(DRM_IOCTL_PETREL_VM_BIND, drm_petrel_vm_bind, size_B, 4097, EINVAL),
    IN(DRM_IOCTL_PETREL_VM_BIND, drm_petrel_vm_bind, size_B, ~4095ull, EINVAL),
    IN(DRM_IOCTL_PETREL_QUEUE_CREATE, drm_petrel_queue_create, vm_id, 999, ENOENT),
    IN(DRM_IOCTL_PETREL_QUEUE_CREATE, drm_petrel_queue_create, engine, 2, EINVAL),
    IN(DRM_IOCTL_PETREL_QUEUE_CREATE, drm_petrel_queue_create, priority, 2, EINVAL),
    IN(DRM_IOCTL_PETREL_QUEUE_CREATE, drm_petrel_queue_create, flags, 1, EINVAL),
    IN(DRM_IOCTL_PETREL_QUEUE_CREATE, drm_petrel_queue_create, max_jobs, 100000, EINVAL),
    IN(DRM_IOCTL_PETREL_QUEUE_DESTROY, drm_petrel_queue_destroy, queue_id, 999, ENOENT),
    IN(DRM_IOCTL_PETREL_QUEUE_DESTROY, drm_petrel_queue_destroy, pad, 1, EINVAL),
    IN(DRM_IOCTL_PETREL_QUEUE_QUERY, drm_petrel_queue_query, queue_id, 999, ENOENT),
    IN(DRM_IOCTL_PETREL_QUEUE_QUERY, drm_petrel_queue_query, pad, 1, EINVAL),
    IN(DRM_IOCTL_PETREL_EXEC, drm_petrel_exec, queue_id, 999, ENOENT),
    IN(DRM_IOCTL_PETREL_EXEC, drm_petrel_exec, flags, 1, EINVAL),
    IN(DRM_IOCTL_PETREL_EXEC, drm_petrel_exec, ib_count, 65, EINVAL),
    IN(DRM_IOCTL_PETREL_EXEC, drm_petrel_exec, sync_count, 65, EINVAL),
    IN(DRM_IOCTL_PETREL_EXEC, drm_petrel_exec, ibs_ptr, BAD, EFAULT),
    IN(DRM_IOCTL_PETREL_EXEC, drm_petrel_exec, syncs_ptr, BAD, EFAULT),
    IN(DRM_IOCTL_PETREL_WAIT, drm_petrel_wait, flags, 4, EINVAL),
    IN(DRM_IOCTL_PETREL_WAIT, drm_petrel_wait, pad, 1, EINVAL),
    IN(DRM_IOCTL_PETREL_WAIT, drm_petrel_wait, sync_count, 0, EINVAL),
    IN(DRM_IOCTL_PETREL_WAIT, drm_petrel_wait, sync_count, 65, EINVAL),
    IN(DRM_IOCTL_PETREL_WAIT, drm_petrel_wait, syncs_ptr, BAD, EFAULT),
};

static struct drm_petrel_ib good_ib;
static struct drm_petrel_sync good_sync;

/* A call that would succeed, with room behind it for a longer struct. */
static void good(struct kmd_env *env, uint32_t nr, uint32_t bo, uint32_t queue_id, void *out)
{
    memset(out, 0, 512);
    good_ib = (struct drm_petrel_ib){.va = VA_IB, .size_dw = 1};
    switch (nr) {
    case DRM_PETREL_GEM_CREATE:
        *(struct drm_petrel_gem_create *)out = (struct drm_petrel_gem_create){.size_B = 4096, .flags = DRM_PETREL_GEM_VRAM};
        break;
    case DRM_PETREL_GEM_MMAP:
        ((struct drm_petrel_gem_mmap *)out)->handle = env->ib_bo;
        break;
    case DRM_PETREL_VM_DESTROY:
        ((struct drm_petrel_vm_destroy *)out)->vm_id = env->vm;
        break;
    case DRM_PETREL_VM_BIND:
        *(struct drm_petrel_vm_bind *)out = (struct drm_petrel_vm_bind){.vm_id = env->vm, .handle = bo, .flags = 1, .va = VA_A, .size_B = 4096};
        break;
    case DRM_PETREL_QUEUE_CREATE:
        ((struct drm_petrel_queue_create *)out)->vm_id = env->vm;
        break;
    case DRM_PETREL_QUEUE_DESTROY:
    case DRM_PETREL_QUEUE_QUERY:
        ((struct drm_petrel_queue_query *)out)->queue_id = queue_id;
        break;
    case DRM_PETREL_EXEC:
        *(struct drm_petrel_exec *)out = (struct drm_petrel_exec){
            .queue_id = queue_id, .ib_count = 1, .ibs_ptr = (uintptr_t)&good_ib, .sync_count = 1, .syncs_ptr = (uintptr_t)&good_sync};
        break;
    case DRM_PETREL_WAIT:
        *(struct drm_petrel_wait *)out = (struct drm_petrel_wait){.syncs_ptr = (uintptr_t)&good_sync, .sync_count = 1};
        break;
    default:
        break;
    }
}

static void test_fields(void **state)
{
    struct kmd_env *env = *state;
    _Alignas(16) uint8_t args[512], before[512];
    uint32_t bo = gem(env, 4096, DRM_PETREL_GEM_VRAM), q = queue(env, DRM_PETREL_QUEUE_COPY, 0, 1);
    good_sync = (struct drm_petrel_sync){.handle = syncobj(env, DRM_SYNCOBJ_CREATE_SIGNALED)};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct bad *row = &rows[i];
        good(env, (uint32_t)_IOC_NR(row->cmd) - DRM_COMMAND_BASE, bo, q, args);
        memcpy(args + row->off, &row->value, row->size);
        memcpy(before, args, sizeof(before));
        int ret = call(env, row->cmd, args);
        if (ret != -row->want)
            fail_msg("%s: got %d, want %d", row->what, ret, -row->want);
        assert_memory_equal(args + 8, before + 8, sizeof(args) - 8); /* nothing was changed */
    }
    assert_int_equal(query(env, q).jobs_submitted, 0);
}

static void test_nested(void **state)
{
    struct kmd_env *env = *state;
    _Alignas(16) uint8_t args[512];
    uint32_t q = queue(env, DRM_PETREL_QUEUE_COPY, 0, 1), s = syncobj(env, 0);
    const struct { struct drm_petrel_ib ib; int want; } ibs[] = {
        {{.va = VA_IB, .size_dw = 0}, EINVAL}, {{.va = VA_IB, .size_dw = 65536}, EINVAL}, {{.va = VA_IB + 2, .size_dw = 1}, EINVAL},
        {{.va = PETREL_VA_USER_END, .size_dw = 1}, EINVAL}, {{.va = VA_IB, .size_dw = 1, .pad = 1}, EINVAL},
    };
    for (size_t i = 0; i < sizeof(ibs) / sizeof(ibs[0]); i++) {
        good_sync = (struct drm_petrel_sync){.handle = s, .flags = DRM_PETREL_SYNC_SIGNAL};
        good(env, DRM_PETREL_EXEC, 0, q, args);
        good_ib = ibs[i].ib;
        assert_int_equal(call(env, DRM_IOCTL_PETREL_EXEC, args), -ibs[i].want);
    }
    const struct { struct drm_petrel_sync sync; int want; } syncs[] = {{{.handle = 999}, ENOENT}, {{.handle = s, .flags = 2}, EINVAL}};
    for (size_t i = 0; i < 2; i++) {
        good_sync = syncs[i].sync;
        good(env, DRM_PETREL_EXEC, 0, q, args);
        assert_int_equal(call(env, DRM_IOCTL_PETREL_EXEC, args), -syncs[i].want);
        good(env, DRM_PETREL_WAIT, 0, q, args);
        assert_int_equal(call(env, DRM_IOCTL_PETREL_WAIT, args), -syncs[i].want);
    }
    assert_int_equal(query(env, q).jobs_submitted, 0);
    assert_int_equal(wait_point(env, s, 0, 0, NULL), -ETIME); /* no sync has changed */
}

static void test_sizes(void **state)
{
    struct kmd_env *env = *state;
    struct { struct drm_petrel_info info; uint8_t tail[64]; } big = {0};
    const unsigned long longer = _IOC(_IOC_READ | _IOC_WRITE, DRM_IOCTL_BASE, DRM_COMMAND_BASE + DRM_PETREL_INFO, sizeof(big));
    assert_int_equal(call(env, longer, &big), 0);
    assert_int_equal(big.info.vram_size_B, 64 * MB);
    big.tail[40] = 1;
    assert_int_equal(call(env, longer, &big), -EINVAL);
    assert_int_equal(figure(&env->detail, "offset"), sizeof(struct drm_petrel_info) + 40);
    /* A short struct: what is missing is 0 and is not written. */
    struct { uint64_t error_ptr, vram_size_B; uint64_t guard; } small = {.guard = 0x1234};
    assert_int_equal(call(env, _IOC(_IOC_READ | _IOC_WRITE, DRM_IOCTL_BASE, DRM_COMMAND_BASE + DRM_PETREL_INFO, 16), &small), 0);
    assert_int_equal(small.vram_size_B, 64 * MB);
    assert_int_equal(small.guard, 0x1234);
}

static void test_dispatch(void **state)
{
    struct kmd_env *env = *state;
    uint8_t args[512] = {0};
    struct drm_set_client_cap cap = {0};
    assert_int_equal(raw(env, _IOC(_IOC_READ | _IOC_WRITE, 'x', 0, 8), args), -EINVAL);
    assert_int_equal(raw(env, DRM_IOWR(DRM_COMMAND_BASE + 0x0b, struct drm_petrel_info), args), -EINVAL);
    assert_int_equal(raw(env, DRM_IOWR(DRM_COMMAND_BASE + 0x5f, struct drm_petrel_info), args), -EINVAL);
    assert_int_equal(raw(env, DRM_IOWR(0xff, struct drm_petrel_info), args), -EINVAL);
    assert_int_equal(env->detail.code, UMD_ERR_UAPI_UNKNOWN);
    assert_int_equal(raw(env, DRM_IOCTL_SET_CLIENT_CAP, &cap), -EACCES);
    assert_int_equal(env->detail.code, UMD_ERR_UAPI_DENIED);
    struct petrel_file *render = env->file;
    assert_int_equal(env->ops->open(0, false, &env->file), 0);
    assert_int_equal(raw(env, DRM_IOCTL_SET_CLIENT_CAP, &cap), -EOPNOTSUPP);
    env->ops->close(env->file);
    env->file = render;
}

static void test_pointers(void **state)
{
    struct kmd_env *env = *state;
    static const unsigned long cmds[] = {DRM_IOCTL_VERSION, DRM_IOCTL_GEM_CLOSE, DRM_IOCTL_SYNCOBJ_CREATE, DRM_IOCTL_PETREL_INFO, DRM_IOCTL_PETREL_EXEC};
    uint8_t *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_int_equal(mprotect(page + 4096, 4096, PROT_NONE), 0);
    for (size_t i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++) {
        assert_int_equal(raw(env, cmds[i], NULL), -EFAULT);
        assert_int_equal(raw(env, cmds[i], (void *)BAD), -EFAULT);
        assert_int_equal(raw(env, cmds[i], page + 4092), -EFAULT);         /* half in, half out */
        assert_int_equal(raw(env, cmds[i], (void *)(UINTPTR_MAX - 3)), -EFAULT);
    }
    /* Readable but not writable: refused before anything is created. */
    struct drm_petrel_gem_create *create = (void *)page;
    *create = (struct drm_petrel_gem_create){.size_B = 4096, .flags = DRM_PETREL_GEM_VRAM};
    uint64_t free_B = info(env).vram_free_B;
    assert_int_equal(mprotect(page, 4096, PROT_READ), 0);
    assert_int_equal(raw(env, DRM_IOCTL_PETREL_GEM_CREATE, create), -EFAULT);
    assert_int_equal(info(env).vram_free_B, free_B);
    munmap(page, 8192);
    /* A bad error_ptr costs the record, not the errno, and leaves the record with the caller. */
    struct drm_petrel_vm_create vm = {.error_ptr = BAD, .flags = 1};
    memset(&env->detail, 0, sizeof(env->detail));
    assert_int_equal(raw(env, DRM_IOCTL_PETREL_VM_CREATE, &vm), -EINVAL);
    assert_int_equal(env->detail.code, UMD_ERR_UAPI_ARGUMENT);
}

/* The errno of a full table is that of its code (call checks it), and the table works again after one is given back. */
static void test_limits(void **state)
{
    struct kmd_env *env = *state;
    uint32_t last = 0, count = 0, id;
    while (count < 1000 && (id = queue(env, DRM_PETREL_QUEUE_COPY, 0, 1))) {
        last = id;
        count++;
    }
    assert_int_equal(count, 256);
    assert_int_equal(env->detail.code, UMD_ERR_RES_QUEUES);
    assert_int_equal(figure(&env->detail, "limit"), 256);
    assert_int_equal(queue_destroy(env, last), 0);
    assert_true(queue(env, DRM_PETREL_QUEUE_COPY, 0, 1) != 0);
}

static void test_core(void **state)
{
    struct kmd_env *env = *state;
    char name[4] = "", desc[64] = "";
    struct drm_version version = {.name = name, .name_len = 3, .desc = desc, .desc_len = sizeof(desc)};
    assert_int_equal(raw(env, DRM_IOCTL_VERSION, &version), 0);
    assert_int_equal(version.name_len, 6);
    assert_string_equal(name, "pet");
    version = (struct drm_version){.name = (char *)BAD, .name_len = 3};
    assert_int_equal(raw(env, DRM_IOCTL_VERSION, &version), -EFAULT);
    struct drm_get_cap cap = {.capability = DRM_CAP_SYNCOBJ_TIMELINE};
    assert_int_equal(raw(env, DRM_IOCTL_GET_CAP, &cap), 0);
    assert_int_equal(cap.value, 1);
    cap.capability = 0xffff;
    assert_int_equal(raw(env, DRM_IOCTL_GET_CAP, &cap), -EINVAL);
    assert_int_equal(gem_close(env, 999), -EINVAL);
    struct drm_petrel_vm_destroy destroy = {.vm_id = env->vm};
    uint32_t q = queue(env, DRM_PETREL_QUEUE_COPY, 0, 1);
    assert_int_equal(call(env, DRM_IOCTL_PETREL_VM_DESTROY, &destroy), -EBUSY);
    assert_int_equal(queue_destroy(env, q), 0);
    assert_int_equal(call(env, DRM_IOCTL_PETREL_VM_DESTROY, &destroy), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        THREADED(test_fields), STEPPED(test_fields), THREADED(test_nested), THREADED(test_sizes), STEPPED(test_sizes), THREADED(test_dispatch),
        THREADED(test_pointers), STEPPED(test_pointers), THREADED(test_core), THREADED(test_limits),
    };
    return cmocka_run_group_tests_name("kmd-input", tests, NULL, NULL);
}
