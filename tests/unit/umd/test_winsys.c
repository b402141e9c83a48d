/* SPDX-License-Identifier: MIT */
/* test_winsys.c - both carriers over a fake kernel driver: loading, marshalling, scrubbing, records. argv[1]: the fake. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <uapi/petrel_drm.h>

#include "fake_kmd.h"
#include "fault_plan.h"
#include "record.h"
#include "winsys/winsys.h"

static struct fake_kmd *fake;
static const char *fake_path;

struct side { const char *carrier; bool stepped; struct umd_winsys *ws; struct umd_winsys_file *file; };

static umdStatus bring_up(struct side *s)
{
    struct umd_winsys_config c = { .carrier = s->carrier, .device_count = 2, .expected_count = 2, .stepped = s->stepped };

    umdStatus st = umd_winsys_create(&c, &s->ws);
    if (st == UMD_SUCCESS)
        st = umd_winsys_open(s->ws, 0, &s->file);
    return st;
}

static void bring_down(struct side *s)
{
    umd_winsys_close(s->file);
    umd_winsys_destroy(s->ws);
}

static umdErrorDetail taken(void)
{
    umdErrorDetail d;

    assert_true(umd_record_export(&d));
    return d;
}

static struct side sides[] = { { "direct", false, NULL, NULL }, { "direct", true, NULL, NULL }, { "loopback", false, NULL, NULL },
                               { "loopback", true, NULL, NULL } };
enum { SIDES = 4 };

static int reset(void **state)
{
    (void)state;
    *fake = (struct fake_kmd){ 0 };
    return 0;
}

static void loading(void **state)
{
    struct side s = { .carrier = "direct" };

    (void)state;
    setenv("PETREL_KMD", "/nonexistent/kmd.so", 1);
    assert_int_equal(bring_up(&s), UMD_ERR_INIT_CARRIER);
    assert_non_null(strstr(taken().figures, "/nonexistent/kmd.so"));
    setenv("PETREL_KMD", "libm.so.6", 1);
    assert_int_equal(bring_up(&s), UMD_ERR_INIT_CARRIER);
    assert_non_null(strstr(taken().figures, "no symbol petrel_kmd_entry"));
    setenv("PETREL_KMD", fake_path, 1);
    fake->wrong_abi = true;
    assert_int_equal(bring_up(&s), UMD_ERR_INIT_CARRIER);
    assert_non_null(strstr(taken().figures, "abi=77"));
    fake->wrong_abi = false;
    fake->probe_fails = true;
    assert_int_equal(bring_up(&s), UMD_ERR_INIT_FW_BOOT);
    umdErrorDetail d = taken();
    assert_non_null(strstr(d.figures, "fw=fake"));
    assert_true(d.hop_count >= 2);
    s.carrier = "pigeon";
    assert_int_equal(bring_up(&s), UMD_ERR_CONFIG_VALUE);
    (void)taken();
}

static void exec_over(struct side *s)
{
    bool loopback = !strcmp(s->carrier, "loopback");
    struct drm_petrel_ib ib = { .va = 0x123456780, .size_dw = 4 };
    struct drm_petrel_sync syncs[2] = { { .handle = 1 }, { .handle = 2, .point = 55 } };
    struct drm_petrel_exec e = {
        .queue_id = 3, .ib_count = 1, .ibs_ptr = (uint64_t)(uintptr_t)&ib, .sync_count = 2, .syncs_ptr = (uint64_t)(uintptr_t)syncs,
    };

    assert_int_equal(bring_up(s), UMD_SUCCESS);
    assert_int_equal(umd_winsys_device_count(s->ws), 2);
    fake->client_ib = &ib;
    assert_int_equal(umd_winsys_ioctl(s->file, DRM_IOCTL_PETREL_EXEC, &e), UMD_SUCCESS);
    assert_int_equal(e.job_id, 99);
    assert_int_equal(fake->seen_va, 0x123456780);
    assert_int_equal(fake->seen_point, 55);
    assert_true(e.ibs_ptr == (uint64_t)(uintptr_t)&ib && e.error_ptr == 0 && e.queue_id == 3);
    assert_int_equal(ib.va, 0x123456780);
    assert_true((fake->arg == &e) == !loopback);
    assert_true((fake->client_sees == 0xa5a5a5a5a5a5a5a5) == loopback); /* scrubbed while the call ran */
    assert_true(pthread_equal(fake->thread, pthread_self()) == (!loopback || s->stepped));
    fake->exec_code = UMD_ERR_SUBMIT_RING_FULL;
    e.job_id = 0;
    assert_int_equal(umd_winsys_ioctl(s->file, DRM_IOCTL_PETREL_EXEC, &e), UMD_ERR_SUBMIT_RING_FULL);
    umdErrorDetail d = taken();
    assert_string_equal(d.figures, "fake=1");
    assert_string_equal(d.hops[d.hop_count - 1].layer, "winsys");
    assert_int_equal(e.job_id, 99); /* results come back on failure too, as from a kernel */
    assert_int_equal(ib.va, 0x123456780);
    fake->exec_code = 0;
    fake->client_ib = NULL;
    bring_down(s);
}

static void exec_marshalled(void **state)
{
    (void)state;
    setenv("PETREL_KMD", fake_path, 1);
    for (int i = 0; i < SIDES; i++)
        exec_over(&sides[i]);
    assert_int_equal(fake->closes, SIDES);
    assert_int_equal(fake->removes, SIDES);
}

/* A wait that returns 0 with a failed fence is a failure, with the job's record. */
static void fence_error(void **state)
{
    struct drm_petrel_sync sync = { .handle = 1, .point = 1 };

    (void)state;
    for (int i = 0; i < SIDES; i++) {
        struct drm_petrel_wait w = { .syncs_ptr = (uint64_t)(uintptr_t)&sync, .sync_count = 1 };
        assert_int_equal(bring_up(&sides[i]), UMD_SUCCESS);
        fake->fence_code = 0;
        assert_int_equal(umd_winsys_ioctl(sides[i].file, DRM_IOCTL_PETREL_WAIT, &w), UMD_SUCCESS);
        fake->fence_code = UMD_ERR_HW_PAGE_FAULT;
        assert_int_equal(umd_winsys_ioctl(sides[i].file, DRM_IOCTL_PETREL_WAIT, &w), UMD_ERR_HW_PAGE_FAULT);
        assert_int_equal(taken().origin_code, UMD_ERR_HW_PAGE_FAULT);
        assert_true(w.fence_error < 0 && w.job_id == 7);
        bring_down(&sides[i]);
    }
}

static void core_ioctls(void **state)
{
    (void)state;
    for (int i = 0; i < SIDES; i++) {
        uint32_t handles[3] = { 1, 2, 3 };
        uint64_t points[3] = { 0 };
        char name[16] = "";
        struct drm_syncobj_timeline_array q = {
            .handles = (uint64_t)(uintptr_t)handles, .points = (uint64_t)(uintptr_t)points, .count_handles = 3,
        };
        struct drm_version v = { .name = name, .name_len = sizeof(name) };
        struct drm_gem_close c = { .handle = 1 };
        assert_int_equal(bring_up(&sides[i]), UMD_SUCCESS);
        assert_int_equal(umd_winsys_core_ioctl(sides[i].file, DRM_IOCTL_SYNCOBJ_QUERY, &q), UMD_SUCCESS);
        assert_true(points[0] == 10 && points[1] == 20 && points[2] == 30 && handles[2] == 3);
        assert_int_equal(umd_winsys_core_ioctl(sides[i].file, DRM_IOCTL_VERSION, &v), UMD_SUCCESS);
        assert_string_equal(name, "petrel");
        assert_true(v.name == name && v.name_len == 6);
        assert_int_equal(umd_winsys_core_ioctl(sides[i].file, DRM_IOCTL_GEM_CLOSE, &c), UMD_SUCCESS);
        c.handle = 2;
        assert_int_equal(umd_winsys_core_ioctl(sides[i].file, DRM_IOCTL_GEM_CLOSE, &c), UMD_ERR_UAPI_ARGUMENT);
        assert_non_null(strstr(taken().figures, "errno=22"));
        assert_int_equal(c.handle, 2);
        c.handle = 3;
        assert_int_equal(umd_winsys_core_ioctl(sides[i].file, DRM_IOCTL_GEM_CLOSE, &c), UMD_ERR_UAPI_HANDLE);
        umdErrorDetail d = taken(); /* the driver's own record, not one from errno */
        assert_string_equal(d.figures, "object=gem handle=3");
        assert_string_equal(d.module, "kmd.fake");
        assert_string_equal(d.hops[d.hop_count - 1].layer, "winsys");
        assert_int_equal(umd_winsys_core_ioctl(sides[i].file, DRM_IOCTL_MODE_RMFB, &c), UMD_ERR_UAPI_UNKNOWN);
        (void)taken();
        bring_down(&sides[i]);
    }
}

/* Another process's bad pointer is EFAULT, not a crash of the carrier. */
static void bad_pointer(void **state)
{
    struct side s = { .carrier = "loopback" };
    struct drm_petrel_exec e = { .ib_count = 1, .ibs_ptr = 0x10 };

    (void)state;
    assert_int_equal(bring_up(&s), UMD_SUCCESS);
    assert_int_equal(umd_winsys_ioctl(s.file, DRM_IOCTL_PETREL_EXEC, &e), UMD_ERR_UAPI_POINTER);
    assert_non_null(strstr(taken().figures, "access=read"));
    assert_int_equal(e.ibs_ptr, 0x10);
    bring_down(&s);
}

static void maps_and_events(void **state)
{
    (void)state;
    for (int i = 0; i < SIDES; i++) {
        char buf[16] = "";
        void *map = NULL;
        assert_int_equal(bring_up(&sides[i]), UMD_SUCCESS);
        assert_int_equal(umd_winsys_read(sides[i].file, buf, sizeof(buf), 0), 6);
        assert_string_equal(buf, "event");
        assert_true(umd_winsys_read(sides[i].file, buf, 2, 0) < 0);
        assert_int_equal(umd_winsys_mmap(sides[i].file, 0, 4096, &map), UMD_SUCCESS);
        umd_winsys_munmap(sides[i].file, map, 4096);
        assert_int_equal(umd_winsys_mmap(sides[i].file, 1, 4096, &map), UMD_ERR_MEM_MAP_FAILED);
        (void)taken();
        assert_int_equal(umd_winsys_mmap(sides[i].file, 2, 4096, &map), UMD_ERR_MEM_HOST_ALLOC_FAILED);
        assert_string_equal(taken().figures, "fake=map");
        bring_down(&sides[i]);
    }
}

/* A driver that leaves a record open though its call did its work: nobody gets its code, so it does not count as delivered. */
static void open_record_on_success(void **state)
{
    (void)state;
    for (int i = 0; i < SIDES; i++) {
        struct drm_gem_close c = { .handle = 4 };
        umd_record_counts before, now;
        assert_int_equal(bring_up(&sides[i]), UMD_SUCCESS);
        umd_record_get_counts(&before);
        assert_int_equal(umd_winsys_core_ioctl(sides[i].file, DRM_IOCTL_GEM_CLOSE, &c), UMD_SUCCESS);
        umd_record_get_counts(&now);
        assert_int_equal(now.raised - before.raised, 1);
        assert_int_equal(now.absorbed - before.absorbed, 1);
        assert_int_equal(now.delivered - before.delivered, 0);
        assert_int_equal(now.swallowed - before.swallowed, 0);
        bring_down(&sides[i]);
    }
}

/* The carrier's own thread and memory fail: raised where it happens, and the next call works. */
static void carrier_without_means(void **state)
{
    static const struct { const char *spec; umdStatus code; const char *figure; } cases[] = {
        { "sys.thread.create=1*fail", UMD_ERR_RES_THREADS, "thread=petrel-loop errno=" },
        { "sys.alloc[nth=1]=fail", UMD_ERR_MEM_HOST_ALLOC_FAILED, "live_B=" }, /* a copy of what the call points to */
        { "sys.alloc[nth=2]=fail", UMD_ERR_MEM_HOST_ALLOC_FAILED, "live_B=" }, /* the worker */
    };
    struct side s = { .carrier = "loopback" };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drm_petrel_exec e = { 0 };
        assert_int_equal(bring_up(&s), UMD_SUCCESS);
        assert_int_equal(umd_fault_plan_set(cases[i].spec), UMD_SUCCESS);
        assert_int_equal(umd_winsys_ioctl(s.file, DRM_IOCTL_PETREL_EXEC, &e), cases[i].code);
        umdErrorDetail d = taken();
        assert_non_null(strstr(d.figures, cases[i].figure));
        assert_string_equal(d.hops[d.hop_count - 1].layer, "winsys");
        assert_int_equal(umd_fault_plan_set(NULL), UMD_SUCCESS);
        assert_int_equal(umd_winsys_ioctl(s.file, DRM_IOCTL_PETREL_EXEC, &e), UMD_SUCCESS);
        bring_down(&s);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(loading, reset), cmocka_unit_test_setup(exec_marshalled, reset), cmocka_unit_test_setup(fence_error, reset),
        cmocka_unit_test_setup(core_ioctls, reset), cmocka_unit_test_setup(bad_pointer, reset), cmocka_unit_test_setup(maps_and_events, reset),
        cmocka_unit_test_setup(open_record_on_success, reset),
        cmocka_unit_test_setup(carrier_without_means, reset),
    };
    if (argc < 2)
        return 1;
    fake_path = argv[1];
    void *so = dlopen(fake_path, RTLD_NOW);
    struct fake_kmd *(*entry)(void) = NULL;
    void *sym = so ? dlsym(so, "fake_kmd_state") : NULL;
    if (!sym)
        return 2;
    memcpy(&entry, &sym, sizeof(entry));
    fake = entry();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
