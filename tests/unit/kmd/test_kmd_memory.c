/* SPDX-License-Identifier: MIT */
/* test_kmd_memory.c - buffers, maps, page tables: zeroing, fragmentation, partial unmaps, release after use. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kmd_fixture.h"

#define VRAM_MAP (DRM_PETREL_GEM_VRAM | DRM_PETREL_GEM_CPU_VISIBLE)
#define SYS_MAP (DRM_PETREL_GEM_SYSTEM | DRM_PETREL_GEM_CPU_VISIBLE)

static void test_zeroed(void **state)
{
    struct kmd_env *env = *state;
    const uint32_t flags[] = {VRAM_MAP, SYS_MAP};
    for (int f = 0; f < 2; f++) {
        for (int round = 0; round < 2; round++) {
            uint32_t bo = gem(env, 100000, flags[f]);
            uint32_t *p = map(env, bo, 102400 - 102400 % 4096);
            for (size_t i = 0; i < 98304 / 4; i++)
                assert_int_equal(p[i], 0);
            memset(p, 0xaa, 98304);
            assert_int_equal(gem_close(env, bo), 0); /* the map keeps it */
            assert_int_equal(p[5], 0xaaaaaaaa);
            assert_int_equal(env->ops->munmap(env->file, p, 102400 - 102400 % 4096), 0);
        }
    }
}

static void test_map_errors(void **state)
{
    struct kmd_env *env = *state;
    int error = 0;
    uint32_t hidden = gem(env, 4096, DRM_PETREL_GEM_VRAM), bo = gem(env, 4096, VRAM_MAP);
    struct drm_petrel_gem_mmap args = {.handle = hidden};
    assert_int_equal(call(env, DRM_IOCTL_PETREL_GEM_MMAP, &args), -EINVAL);
    args = (struct drm_petrel_gem_mmap){.handle = bo};
    assert_int_equal(call(env, DRM_IOCTL_PETREL_GEM_MMAP, &args), 0);
    const struct { uint64_t offset; size_t size; } bad[] = {{args.offset, 0}, {args.offset, 8192}, {args.offset + 4096, 4096}, {args.offset + 1, 4095}, {1ull << 62, 4096}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        umdErrorDetail detail;
        umd_record_scope_begin();
        assert_null(env->ops->mmap(env->file, bad[i].offset, bad[i].size, &error));
        assert_true(umd_record_export(&detail));
        umd_record_scope_end();
        assert_int_equal(error, -EINVAL);
    }
    /* Another file may not map it. */
    struct petrel_file *other;
    umdErrorDetail detail;
    assert_int_equal(env->ops->open(0, true, &other), 0);
    umd_record_scope_begin();
    assert_null(env->ops->mmap(other, args.offset, 4096, &error));
    assert_true(umd_record_export(&detail));
    umd_record_scope_end();
    env->ops->close(other);
}

static void test_fragmented(void **state)
{
    struct kmd_env *env = *state;
    uint32_t bos[256], count = 0;
    struct drm_petrel_gem_create args;
    while (count < 256 && (bos[count] = gem(env, MB / 2, DRM_PETREL_GEM_VRAM)))
        count++;
    assert_in_range(count, 50, 128);
    assert_int_equal(env->detail.code, UMD_ERR_MEM_ALLOC_FAILED);
    for (uint32_t i = 0; i < count; i += 2)
        assert_int_equal(gem_close(env, bos[i]), 0);
    args = (struct drm_petrel_gem_create){.size_B = 4 * MB, .flags = DRM_PETREL_GEM_VRAM};
    assert_int_equal(call(env, DRM_IOCTL_PETREL_GEM_CREATE, &args), -ENOMEM);
    assert_int_equal(env->detail.code, UMD_ERR_MEM_FRAGMENTED);
    assert_true(figure(&env->detail, "free_B") >= 4 * MB);
    const uint64_t largest = env->detail.advice.largest_fit_B;
    assert_int_equal(figure(&env->detail, "largest_B"), largest);
    assert_int_equal(info(env).vram_largest_free_B, largest);
    /* The advice holds, and one byte more does not. */
    args = (struct drm_petrel_gem_create){.size_B = largest + 1, .flags = DRM_PETREL_GEM_VRAM};
    assert_int_equal(call(env, DRM_IOCTL_PETREL_GEM_CREATE, &args), -ENOMEM);
    assert_true(gem(env, largest, DRM_PETREL_GEM_VRAM) != 0);
}

static void test_injected(void **state)
{
    struct kmd_env *env = *state;
    assert_int_equal(umd_fault_plan_set("kmd.vram.alloc[nth=2]=fail"), 0);
    assert_true(gem(env, 4096, DRM_PETREL_GEM_VRAM) != 0);
    assert_int_equal(gem(env, 4096, DRM_PETREL_GEM_VRAM), 0);
    assert_int_equal(env->detail.code, UMD_ERR_MEM_ALLOC_FAILED);
    assert_int_equal(figure(&env->detail, "free_B"), 0); /* a story that holds together: nothing is left, so nothing fits */
    assert_int_equal(figure(&env->detail, "largest_B"), 0);
    assert_int_equal(umd_fault_plan_set("kmd.vram.alloc[nth=1]=fail"), 0);
    assert_int_equal(gem(env, 3 * MB, DRM_PETREL_GEM_VRAM), 0);
    assert_int_equal(figure(&env->detail, "largest_B"), 3 * MB - 4096);
    assert_true(gem(env, 4096, DRM_PETREL_GEM_VRAM) != 0);
    uint32_t bo = gem(env, 4 * MB, DRM_PETREL_GEM_SYSTEM);
    uint64_t free_B = info(env).vram_free_B;
    for (int nth = 1; nth <= 3; nth++) {
        char spec[64];
        snprintf(spec, sizeof(spec), "kmd.vm.page_table[nth=%d]=fail", nth);
        assert_int_equal(umd_fault_plan_set(spec), 0);
        assert_int_equal(bind(env, DRM_PETREL_BIND_MAP, bo, 0, 0x600000001000, 3 * MB), -ENOMEM);
        assert_int_equal(info(env).vram_free_B, free_B); /* nothing half done stays */
    }
    assert_int_equal(umd_fault_plan_set(NULL), 0);
    assert_int_equal(bind(env, DRM_PETREL_BIND_MAP, bo, 0, 0x600000001000, 3 * MB), 0);
    assert_true(info(env).vram_free_B < free_B);
    assert_int_equal(bind(env, DRM_PETREL_BIND_UNMAP, 0, 0, 0x600000001000, 3 * MB), 0);
    assert_int_equal(info(env).vram_free_B, free_B);
}

/* A list of blocks that does not add up is left as it is: nothing more is given out, and what is freed stays where it is. */
static void test_corrupt(void **state)
{
    struct kmd_env *env = *state;
    struct drm_petrel_gem_create args = {.size_B = MB, .flags = DRM_PETREL_GEM_VRAM};
    uint32_t bo = gem(env, MB, DRM_PETREL_GEM_VRAM);
    assert_true(bo != 0);
    assert_int_equal(umd_fault_plan_set("kmd.vram.corrupt=1*fire"), 0);
    assert_int_equal(call(env, DRM_IOCTL_PETREL_GEM_CREATE, &args), -EUCLEAN);
    assert_int_equal(env->detail.code, UMD_ERR_MEM_CORRUPT);
    assert_int_equal(env->detail.advice.action, UMD_ACTION_RESET_DEVICE);
    assert_int_equal(env->detail.advice.scope, UMD_SCOPE_DEVICE);
    assert_int_equal(figure(&env->detail, "found") - figure(&env->detail, "expected"), 4096);
    const umdRecordId first = env->detail.id;
    const uint64_t free_B = info(env).vram_free_B;
    assert_int_equal(call(env, DRM_IOCTL_PETREL_GEM_CREATE, &args), -EUCLEAN);
    assert_true(env->detail.cause.seq == first.seq && env->detail.cause.pid == first.pid);
    assert_int_equal(gem_close(env, bo), 0);
    assert_int_equal(info(env).vram_free_B, free_B);
    assert_true(gem(env, MB, DRM_PETREL_GEM_SYSTEM) != 0); /* another list */
}

/* Maps 6 MiB with large pages, takes a hole out of the middle of one, and copies on both sides of it and into it. */
static void test_split(void **state)
{
    struct kmd_env *env = *state;
    uint32_t a = gem(env, 6 * MB, VRAM_MAP), b = gem(env, 6 * MB, SYS_MAP), other = gem(env, 8192, VRAM_MAP);
    uint32_t *pa = map(env, a, 6 * MB), *pb = map(env, b, 6 * MB), *po = map(env, other, 8192);
    uint32_t q = queue(env, DRM_PETREL_QUEUE_COPY, 0, 1), s = syncobj(env, 0);
    const uint64_t hole = 3 * MB + 4096;
    assert_int_equal(bind(env, DRM_PETREL_BIND_MAP, a, 0, VA_A, 6 * MB), 0);
    assert_int_equal(bind(env, DRM_PETREL_BIND_MAP, b, 0, VA_B, 6 * MB), 0);
    assert_int_equal(bind(env, DRM_PETREL_BIND_UNMAP, 0, 0, VA_A + hole, 8192), 0);
    assert_int_equal(bind(env, DRM_PETREL_BIND_MAP, a, 0, VA_A + hole - 4096, 8192), -EINVAL); /* overlaps what is left */
    assert_int_equal(bind(env, DRM_PETREL_BIND_MAP, other, 0, VA_A + hole, 8192), 0);
    for (size_t i = 0; i < 6 * MB / 4; i++)
        pb[i] = (uint32_t)(i * 2654435761u);
    uint64_t ib = ib_begin(env);
    ib_copy(env, VA_B, VA_A, 6 * MB);
    assert_int_equal(exec(env, q, ib, 0, 0, s, 1), 0);
    struct drm_petrel_wait w;
    assert_int_equal(wait_point(env, s, 1, FOREVER, &w), 0);
    assert_int_equal(w.fence_error, 0);
    assert_memory_equal(pa, pb, hole);
    assert_memory_equal(po, (uint8_t *)pb + hole, 8192);
    assert_memory_equal((uint8_t *)pa + hole + 8192, (uint8_t *)pb + hole + 8192, 6 * MB - hole - 8192);
    for (size_t i = 0; i < 8192 / 4; i++)
        assert_int_equal(pa[hole / 4 + i], 0); /* what was unmapped was not touched */
    /* Unmap over several mappings and a second time. */
    assert_int_equal(bind(env, DRM_PETREL_BIND_UNMAP, 0, 0, VA_A, 6 * MB), 0);
    assert_int_equal(bind(env, DRM_PETREL_BIND_UNMAP, 0, 0, VA_A, 6 * MB), -EINVAL);
    assert_int_equal(bind(env, DRM_PETREL_BIND_MAP, a, 4096, VA_A, 4096), 0);
}

/* A buffer that running work uses is unmapped and closed: the work faults, and the memory comes back only then. */
static void test_unmap_in_use(void **state)
{
    struct kmd_env *env = *state;
    uint32_t a = gem(env, 2 * MB, DRM_PETREL_GEM_VRAM), flag = gem(env, 4096, VRAM_MAP);
    uint64_t *pf = map(env, flag, 4096);
    uint32_t q = queue(env, DRM_PETREL_QUEUE_COPY, 0, 1), s = syncobj(env, 0);
    assert_int_equal(bind(env, DRM_PETREL_BIND_MAP, a, 0, VA_A, 2 * MB), 0);
    assert_int_equal(bind(env, DRM_PETREL_BIND_MAP, flag, 0, VA_B, 4096), 0);
    const uint64_t with_a = info(env).vram_free_B;
    uint64_t ib = ib_begin(env);
    ib_wait(env, VA_B, 1);
    ib_fill(env, VA_A, 2 * MB, 1);
    assert_int_equal(exec(env, q, ib, 0, 0, s, 1), 0);
    assert_int_equal(wait_point(env, s, 1, 1000000, NULL), -ETIME);
    assert_int_equal(bind(env, DRM_PETREL_BIND_UNMAP, 0, 0, VA_A, 2 * MB), 0);
    assert_int_equal(gem_close(env, a), 0);
    assert_int_equal(info(env).vram_free_B, with_a); /* held: a ring still has the job */
    __atomic_store_n(pf, 1, __ATOMIC_RELEASE);
    struct drm_petrel_wait w;
    assert_int_equal(wait_point(env, s, 1, FOREVER, &w), 0);
    assert_int_equal(w.fence_error, -EFAULT);
    assert_int_equal(env->detail.code, UMD_ERR_HW_PAGE_FAULT);
    assert_int_equal(figure(&env->detail, "va"), VA_A);
    assert_int_equal(figure(&env->detail, "job"), w.job_id);
    assert_int_equal(figure(&env->detail, "nearest_va"), VA_IB);
    for (int i = 0; i < 200 && info(env).vram_free_B < with_a + 2 * MB; i++)
        wait_point(env, syncobj(env, 0), 1, 1000000, NULL);
    assert_true(info(env).vram_free_B >= with_a + 2 * MB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        THREADED(test_zeroed), STEPPED(test_zeroed), THREADED(test_map_errors), THREADED(test_fragmented), THREADED(test_injected),
        THREADED(test_corrupt), STEPPED(test_corrupt),
        THREADED(test_split), STEPPED(test_split), THREADED(test_unmap_in_use), STEPPED(test_unmap_in_use),
    };
    return cmocka_run_group_tests_name("kmd-memory", tests, NULL, NULL);
}
