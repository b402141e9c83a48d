/* SPDX-License-Identifier: MIT */
/* test_hw_regs.c - registers, firmware boot, self-test, profiles, and power-up that fails. */
#include "hw_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record.h"
#include "sys.h"

/* Every row of the table answers with its reset value or the profile's figure, in its own width only. */
static void test_reset_values(void **state)
{
    static const struct { uint32_t off; uint8_t width; uint64_t reset; bool rw; } rows[] = {
#define RO false
#define RW true
#define REG(name_, off_, width_, access_, reset_, text_) { off_, width_, reset_, access_ },
        PETREL_REGS(REG)
#undef REG
#undef RO
#undef RW
    };
    struct hwt *t = hwt_create(HW_RUN_STEPPED);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t v = rows[i].width == 32 ? hwt_r32(t, rows[i].off) : hwt_r64(t, rows[i].off);
        const uint64_t wrong = rows[i].width == 32 ? hwt_r64(t, rows[i].off) : hwt_r32(t, rows[i].off);
        const bool from_profile = (rows[i].off >= R_CU_COUNT && rows[i].off <= R_SYSMEM_SIZE) || rows[i].off == R_CLOCK_NS;
        if (!from_profile)
            assert_int_equal(v, rows[i].reset);
        assert_int_equal(wrong, 0);
        if (rows[i].rw)
            continue;
        if (rows[i].width == 32)
            hw_write32(t->dev, rows[i].off, 0x5a5a5a5a);
        else
            hw_write64(t->dev, rows[i].off, 0x5a5a5a5a5a5a5a5aull);
        assert_int_equal(rows[i].width == 32 ? hwt_r32(t, rows[i].off) : hwt_r64(t, rows[i].off), v);
    }
    assert_int_equal(hwt_r32(t, R_CU_COUNT), 8);
    assert_int_equal(hwt_r32(t, R_WARPS_PER_CU), 16);
    assert_int_equal(hwt_r32(t, R_LOCAL_B), 65536);
    assert_int_equal(hwt_r32(t, R_CLOCK_KHZ), 1400000);
    assert_int_equal(hwt_r64(t, R_VRAM_SIZE), HWT_VRAM_B);
    assert_int_equal(hwt_r64(t, R_SYSMEM_SIZE), HWT_SYSMEM_B);
    hw_write64(t->dev, R_IH_BASE, 0x123456789abcull);
    assert_int_equal(hwt_r64(t, R_IH_BASE), 0x123456789abcull);
    hwt_destroy(t);
}

static void test_unknown_offsets(void **state)
{
    struct hwt *t = hwt_create(HW_RUN_STEPPED);
    static const uint32_t offs[] = { 0x1, 0x2, 0x34 - 1, 0x2fc, 0x300, 0xffc, 0x1000 + 0xfc, 0x1200, 0x1ffc, 0xfffffffc, 0x80000000 };
    for (size_t i = 0; i < sizeof(offs) / sizeof(offs[0]); i++) {
        hw_write32(t->dev, offs[i], 0xffffffff);
        hw_write64(t->dev, offs[i], UINT64_MAX);
        assert_int_equal(hwt_r32(t, offs[i]), 0);
        assert_int_equal(hwt_r64(t, offs[i]), 0);
    }
    assert_int_equal(hwt_r32(t, PETREL_RING_REG(0, STATUS)), PETREL_RING_OFF);
    hwt_destroy(t);
}

static void test_firmware_boot(void **state)
{
    struct hwt *t = hwt_create(HW_RUN_STEPPED);
    hwt_setup_rings(t);
    hwt_fence(t, 0, false);
    hwt_doorbell(t, 0);
    hwt_pass(t, 10000000);
    assert_int_equal(hwt_r32(t, PETREL_RING_REG(0, RPTR)), 0); /* nobody there to read the ring */
    assert_int_equal(hwt_r32(t, R_FW_STATUS), PETREL_FW_OFF);
    hw_write32(t->dev, R_FW_CONTROL, 1);
    assert_int_equal(hwt_r32(t, R_FW_STATUS), PETREL_FW_BOOTING);
    assert_int_equal(hwt_r32(t, R_FW_VERSION), 0);
    const uint64_t from_ns = hwt_r64(t, R_CLOCK_NS);
    while (hwt_r32(t, R_FW_STATUS) != PETREL_FW_READY)
        assert_true(hw_device_pump(t->dev, 1000000));
    assert_int_equal(hwt_r64(t, R_CLOCK_NS) - from_ns, 200000); /* the profile's fw_boot_ns, to the ns: jumps to the timer */
    assert_int_equal(hwt_r32(t, R_FW_VERSION), PETREL_FW_VERSION_EXPECTED);
    assert_true(hwt_finish(t, 0, 1)); /* and the ring is read now */
    hwt_destroy(t);
}

static bool selftest_over(struct hwt *t, uint64_t arg)
{
    (void)arg;
    return hwt_r32(t, R_SELFTEST) >= PETREL_SELFTEST_PASS;
}

static void test_selftest(void **state)
{
    struct hwt *t = hwt_create(HW_RUN_THREADED);
    *(uint64_t *)(t->vram + 4096) = 0x1122334455667788ull;
    assert_int_equal(hwt_r32(t, R_SELFTEST), PETREL_SELFTEST_IDLE);
    hw_write32(t->dev, R_SELFTEST, 1);
    assert_true(hwt_until(t, selftest_over, 0));
    assert_int_equal(hwt_r32(t, R_SELFTEST), PETREL_SELFTEST_PASS);
    assert_int_equal(hwt_r64(t, R_SELFTEST_ADDR), 0);
    assert_true(*(uint64_t *)(t->vram + 4096) == 0x1122334455667788ull);
    hwt_destroy(t);
}

/* ---- Power-up ---- */

/* A failure comes with its record, raised where it was first seen; success with none. */
static void end_record(umdStatus want)
{
    umdErrorDetail detail = { .size_B = sizeof(detail) };
    assert_int_equal(umd_record_export(&detail), want != UMD_SUCCESS);
    if (want == UMD_SUCCESS)
        return;
    assert_int_equal(detail.code, want);
    assert_true(detail.hop_count >= 1);
}

static struct hw_device *create_with(const char *profile, umdStatus want)
{
    struct hw_device *dev = NULL;
    const struct hw_device_desc desc = { .profile = profile, .mode = HW_RUN_THREADED };
    assert_int_equal(hw_device_create(&desc, &dev), want);
    assert_true((dev != NULL) == (want == UMD_SUCCESS));
    end_record(want);
    return dev;
}

static void with_profile(const char *text, umdStatus want, uint32_t want_cus)
{
    char path[] = "/tmp/petrel-profile-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    struct hw_device *dev = create_with(path, want);
    if (dev)
        assert_int_equal(hw_read32(dev, R_CU_COUNT), want_cus);
    hw_device_destroy(dev);
    unlink(path);
}

static void test_profiles(void **state)
{
    struct hw_device *dev = create_with("petrel-p1", UMD_SUCCESS);
    assert_int_equal(hw_read64(dev, R_VRAM_SIZE), 1u << 30);
    hw_device_destroy(dev);
    with_profile("[cu]\ncu_count = 3 ; few\n", UMD_SUCCESS, 3);
    with_profile("", UMD_SUCCESS, 8);
    with_profile("[cu]\ncu_count = 0\n", UMD_ERR_CONFIG_VALUE, 0);
    with_profile("[cu]\ncu_count = -1\n", UMD_ERR_CONFIG_VALUE, 0);
    with_profile("[cu]\ncu_count = eight\n", UMD_ERR_CONFIG_VALUE, 0);
    with_profile("[cu]\ncu_counts = 8\n", UMD_ERR_CONFIG_VALUE, 0);
    with_profile("[device\nclock_khz\n", UMD_ERR_CONFIG_VALUE, 0);
    with_profile("[device]\nvram_B = 1048577\n", UMD_ERR_CONFIG_VALUE, 0);
    with_profile("[host]\nthreads = 2\n", UMD_SUCCESS, 8);
    with_profile("[host]\nthreads = 0\n", UMD_ERR_CONFIG_VALUE, 0);
    with_profile("[host]\nthreads = 65\n", UMD_ERR_CONFIG_VALUE, 0);
    create_with("/nonexistent/profile.ini", UMD_ERR_CONFIG_VALUE);
}

/* Stepped runs are of one thread, and say so rather than do something else. */
static void test_host_threads(void **state)
{
    static const struct { enum hw_run_mode mode; uint32_t threads; umdStatus want; } cases[] = {
        { HW_RUN_THREADED, 3, UMD_SUCCESS }, { HW_RUN_THREADED, 64, UMD_SUCCESS }, { HW_RUN_THREADED, 65, UMD_ERR_CONFIG_VALUE },
        { HW_RUN_STEPPED, 1, UMD_SUCCESS }, { HW_RUN_STEPPED, 2, UMD_ERR_CONFIG_VALUE },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct hw_device_desc desc = { .mode = cases[i].mode, .host_threads = cases[i].threads, .vram_B = 1 << 20, .sysmem_B = 1 << 20 };
        struct hw_device *dev = NULL;

        assert_int_equal(hw_device_create(&desc, &dev), cases[i].want);
        assert_true((dev != NULL) == (cases[i].want == UMD_SUCCESS));
        end_record(cases[i].want);
        hw_device_destroy(dev);
    }
}

/* Each host resource that power-up takes is refused in turn: the code says which, and nothing stays behind. */
static struct umd_sys table;
static int refuse_alloc = -1, refuse_memfd = -1, refuse_mmap = -1, refuse_thread = -1, refuse_errno;

static void *table_alloc(size_t n)
{
    if (refuse_alloc-- == 0) {
        errno = ENOMEM;
        return NULL;
    }
    return calloc(1, n);
}

static int (*real_memfd)(const char *, uint64_t);
static int table_memfd(const char *name, uint64_t size_B)
{
    if (refuse_memfd-- == 0) {
        errno = refuse_errno;
        return -1;
    }
    return real_memfd(name, size_B);
}

static void *table_mmap(void *addr, size_t n, int prot, int flags, int fd, int64_t off)
{
    if (refuse_mmap-- == 0) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return mmap(addr, n, prot, flags, fd, off);
}

static int (*real_thread)(pthread_t *, const char *, void *(*)(void *), void *);
static int table_thread(pthread_t *t, const char *name, void *(*fn)(void *), void *arg)
{
    return refuse_thread-- == 0 ? EAGAIN : real_thread(t, name, fn, arg);
}

static int lowest_fd(void)
{
    int fd = dup(0);
    close(fd);
    return fd;
}

static void test_power_up_unwinds(void **state)
{
    uint64_t bytes, blocks, bytes_after, blocks_after;
    table = *umd_sys();
    real_memfd = table.memfd_create;
    real_thread = table.thread_create;
    table.alloc = table_alloc;
    table.free = free;
    table.memfd_create = table_memfd;
    table.mmap = table_mmap;
    table.thread_create = table_thread;
    umd_sys_set(&table);
    umd_alloc_live(&bytes, &blocks);
    const int fd = lowest_fd();
    int allocs = 0;
    for (;; allocs++) { /* each in turn, until none is left to refuse */
        refuse_alloc = allocs;
        struct hw_device *dev = NULL;
        const struct hw_device_desc desc = { .mode = HW_RUN_THREADED };
        umdStatus st = hw_device_create(&desc, &dev);
        const bool all_done = refuse_alloc >= 0;
        refuse_alloc = -1;
        hw_device_destroy(dev);
        if (all_done)
            break;
        assert_int_equal(st, UMD_ERR_MEM_HOST_ALLOC_FAILED);
        assert_null(dev);
        end_record(st);
    }
    assert_true(allocs >= 2);
    for (int i = 0; i < 2; i++) {
        refuse_memfd = i;
        refuse_errno = EMFILE;
        create_with(NULL, UMD_ERR_RES_DESCRIPTORS);
        refuse_memfd = i;
        refuse_errno = ENFILE;
        create_with(NULL, UMD_ERR_RES_DESCRIPTORS);
        refuse_memfd = i;
        refuse_errno = EIO;
        create_with(NULL, UMD_ERR_RES_FILE);
        refuse_memfd = -1;
        refuse_mmap = i;
        create_with(NULL, UMD_ERR_MEM_MAP_FAILED);
        refuse_mmap = -1;
    }
    refuse_memfd = 0;
    refuse_errno = ENOMEM;
    create_with(NULL, UMD_ERR_MEM_HOST_ALLOC_FAILED);
    refuse_memfd = -1;
    refuse_thread = 0;
    create_with(NULL, UMD_ERR_RES_THREADS);
    refuse_thread = -1;
    umd_alloc_live(&bytes_after, &blocks_after);
    assert_int_equal(bytes_after, bytes);
    assert_int_equal(blocks_after, blocks);
    assert_int_equal(lowest_fd(), fd);
    hw_device_destroy(create_with(NULL, UMD_SUCCESS));
    umd_sys_set(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reset_values),
        cmocka_unit_test(test_unknown_offsets),
        cmocka_unit_test(test_firmware_boot),
        cmocka_unit_test(test_selftest),
        cmocka_unit_test(test_profiles), cmocka_unit_test(test_host_threads),
        cmocka_unit_test(test_power_up_unwinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
