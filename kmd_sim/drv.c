/* SPDX-License-Identifier: MIT */
/* drv.c - devices of the node: power-up, firmware handshake, self-test, heartbeat, power-down; and the module's entry. */
#include <stdio.h>
#include <string.h>

#include "fault_plan.h"
#include "kmd_priv.h"
#include "snapshot.h"

UMD_LOG_MODULE("kmd.drv");

#define DEVICES_MAX 8u
#define BOOT_NS 1000000000ull       /* device time for each step of the boot; ample, as an idle clock goes on while a busy host delays us */
#define BOOT_POLL_NS 100000ull
#define BOOT_POLLS 50000u           /* a device whose clock stands still must not hold us for ever */
#define HEARTBEAT_NS 20000000ull
#define DRAIN_POLLS 200u
#define PRIVATE_MAX_B 8192u

static const char device_name[] = "Petrel P1";

/* The node. Probed by whoever comes first in the process, so it cannot hang off anything else. */
static struct {
    pthread_mutex_t once;
    struct umd_mutex lock;          /* rank 50 */
    bool lock_ready, stepped;
    uint32_t users, count;
    struct petrel_device *devices[DEVICES_MAX];
} node = {.once = PTHREAD_MUTEX_INITIALIZER};

/* ---- Boot ---- */

static void boot_pause(struct petrel_device *dev)
{
    if (dev->stepped) {
        hw_device_pump(dev->hw, BOOT_POLL_NS);
        return;
    }
    umd_mutex_lock(&dev->heart_lock);
    umd_cond_wait(&dev->heart_cond, &dev->heart_lock, BOOT_POLL_NS);
    umd_mutex_unlock(&dev->heart_lock);
}

/* Polls a register until it has left `busy` or BOOT_NS of device time went by; its last value. */
static uint32_t boot_poll(struct petrel_device *dev, uint32_t reg, uint32_t busy_max, uint64_t *waited_out)
{
    const uint64_t start = petrel_now(dev);
    uint32_t value = hw_read32(dev->hw, reg);
    for (uint32_t i = 0; value <= busy_max && i < BOOT_POLLS && petrel_now(dev) - start < BOOT_NS; i++) {
        boot_pause(dev);
        value = hw_read32(dev->hw, reg);
    }
    *waited_out = petrel_now(dev) - start;
    return value;
}

/* Is it one of ours, of an edition whose registers we know? Before anything is written to it. */
static umdStatus identify(struct petrel_device *dev)
{
    const uint32_t id = hw_read32(dev->hw, PETREL_REGS_OFF_ID);
    if (id != 0x50455452u)
        return UMD_FAIL(UMD_ERR_INIT_NO_DEVICE, "device=%u register=ID read=0x%x expected=0x50455452", dev->index, id);
    const uint32_t revision = hw_read32(dev->hw, PETREL_REGS_OFF_REVISION);
    if (revision < PETREL_REVISION_OLDEST || revision > PETREL_REVISION_NEWEST)
        return UMD_FAIL(UMD_ERR_INIT_UNSUPPORTED, "device=%u what=hardware_revision hw_revision=%u oldest_known=%u newest_known=%u", dev->index, revision,
                        PETREL_REVISION_OLDEST, PETREL_REVISION_NEWEST);
    return UMD_SUCCESS;
}

static umdStatus boot_firmware(struct petrel_device *dev)
{
    uint64_t waited = 0;
    hw_write32(dev->hw, PETREL_REGS_OFF_FW_CONTROL, 1);
    const uint32_t status = boot_poll(dev, PETREL_REGS_OFF_FW_STATUS, PETREL_FW_BOOTING, &waited);
    if (status != PETREL_FW_READY)
        return UMD_FAIL(UMD_ERR_INIT_FW_BOOT, "device=%u fw_status=%u waited_ns=%" PRIu64 " limit_ns=%" PRIu64, dev->index, status, waited, (uint64_t)BOOT_NS);
    const uint32_t version = hw_read32(dev->hw, PETREL_REGS_OFF_FW_VERSION);
    if (version >> 16 != PETREL_FW_VERSION_EXPECTED >> 16 || version < PETREL_FW_VERSION_EXPECTED)
        return UMD_FAIL(UMD_ERR_INIT_FW_VERSION, "device=%u fw_version=%u.%u expected=%u.%u", dev->index, version >> 16, version & 0xffff,
                        PETREL_FW_VERSION_EXPECTED >> 16, PETREL_FW_VERSION_EXPECTED & 0xffff);
    return UMD_SUCCESS;
}

static umdStatus boot_selftest(struct petrel_device *dev)
{
    uint64_t waited = 0;
    hw_write32(dev->hw, PETREL_REGS_OFF_SELFTEST, 1);
    const uint32_t result = boot_poll(dev, PETREL_REGS_OFF_SELFTEST, PETREL_SELFTEST_RUNNING, &waited);
    if (result != PETREL_SELFTEST_PASS)
        return UMD_FAIL(UMD_ERR_INIT_ECC_SELFTEST, "device=%u result=%u addr=0x%" PRIx64 " waited_ns=%" PRIu64, dev->index, result,
                        hw_read64(dev->hw, PETREL_REGS_OFF_SELFTEST_ADDR), waited);
    return UMD_SUCCESS;
}

/* ---- Set-up ---- */

static void read_info(struct petrel_device *dev, uint64_t watchdog_ns)
{
    struct drm_petrel_info *info = &dev->info;
    info->vram_size_B = hw_read64(dev->hw, PETREL_REGS_OFF_VRAM_SIZE);
    info->sysmem_size_B = hw_read64(dev->hw, PETREL_REGS_OFF_SYSMEM_SIZE);
    info->va_start = 1ull << PETREL_HUGE_SHIFT;
    info->va_end = PETREL_VA_USER_END;
    info->watchdog_ns = watchdog_ns ? watchdog_ns : PETREL_WATCHDOG_NS;
    info->cu_count = hw_read32(dev->hw, PETREL_REGS_OFF_CU_COUNT);
    info->warps_per_cu = hw_read32(dev->hw, PETREL_REGS_OFF_WARPS_PER_CU);
    info->local_B = hw_read32(dev->hw, PETREL_REGS_OFF_LOCAL_B);
    info->clock_khz = hw_read32(dev->hw, PETREL_REGS_OFF_CLOCK_KHZ);
    info->regs_per_cu = info->warps_per_cu * 64; /* every resident warp has its 64 registers */
    info->fw_version = hw_read32(dev->hw, PETREL_REGS_OFF_FW_VERSION);
    info->hw_revision = hw_read32(dev->hw, PETREL_REGS_OFF_REVISION);
    info->max_block = info->warps_per_cu * 32 < 1024 ? info->warps_per_cu * 32 : 1024; /* of one compute unit; the packet's limit */
    memcpy(info->uuid, "PETREL-P1\0\0\0\0\0\0", 16);
    info->uuid[14] = (uint8_t)info->hw_revision;
    info->uuid[15] = (uint8_t)dev->index;
    memcpy(info->name, device_name, sizeof(device_name));
}

static umdStatus setup_scratch(struct petrel_device *dev)
{
    const uint64_t lanes = (uint64_t)dev->info.cu_count * dev->info.warps_per_cu * 32;
    uint32_t private_B = PRIVATE_MAX_B;
    while (private_B > 1024 && lanes * private_B > dev->info.vram_size_B / 8)
        private_B /= 2;
    const uint64_t size_B = (lanes * private_B + PETREL_PAGE_SIZE - 1) & ~(uint64_t)(PETREL_PAGE_SIZE - 1);
    umdStatus st = petrel_heap_alloc(&dev->vram, size_B, PETREL_PAGE_SIZE, true, &dev->scratch_mem);
    if (st < 0)
        return st;
    hw_write64(dev->hw, PETREL_REGS_OFF_SCRATCH_BASE, dev->scratch_mem->start);
    hw_write64(dev->hw, PETREL_REGS_OFF_SCRATCH_SIZE, size_B);
    hw_write32(dev->hw, PETREL_REGS_OFF_PRIVATE_B, private_B);
    dev->info.private_B = private_B;
    return UMD_SUCCESS;
}

static umdStatus setup_memory(struct petrel_device *dev)
{
    umdStatus st = petrel_heap_init(&dev->vram, "vram", hw_vram(dev->hw));
    if (st >= 0)
        st = petrel_heap_init(&dev->sysmem, "system", hw_sysmem(dev->hw));
    if (st >= 0)
        st = petrel_heap_alloc(&dev->vram, PETREL_IH_ENTRIES * sizeof(struct petrel_ih_entry), PETREL_PAGE_SIZE, true, &dev->ih_mem);
    if (st >= 0)
        st = setup_scratch(dev);
    if (st < 0)
        return st;
    dev->ih = (const struct petrel_ih_entry *)(void *)(dev->vram.cpu + dev->ih_mem->start);
    hw_write64(dev->hw, PETREL_REGS_OFF_IH_BASE, dev->ih_mem->start);
    hw_write32(dev->hw, PETREL_REGS_OFF_IH_SIZE, PETREL_IH_ENTRIES);
    dev->ih_rptr = hw_read32(dev->hw, PETREL_REGS_OFF_IH_WPTR);
    hw_write32(dev->hw, PETREL_REGS_OFF_IH_RPTR, dev->ih_rptr);
    for (uint32_t r = 0; r < PETREL_RING_COUNT && st >= 0; r++)
        st = petrel_ring_init(dev, r);
    return st;
}

/* ---- Heartbeat ---- */

/* Interrupts come from the device; that it has fallen silent must be found out from here. */
static void *heart_main(void *arg)
{
    struct petrel_device *dev = arg;
    for (;;) {
        umd_mutex_lock(&dev->heart_lock);
        if (!dev->heart_stop)
            umd_cond_wait(&dev->heart_cond, &dev->heart_lock, HEARTBEAT_NS);
        const bool stop = dev->heart_stop;
        umd_mutex_unlock(&dev->heart_lock);
        if (stop)
            return NULL;
        petrel_sched_tick(dev, false);
    }
}

static umdStatus heart_start(struct petrel_device *dev)
{
    if (dev->stepped)
        return UMD_SUCCESS;
    const int error = umd_sys()->thread_create(&dev->heart, "petrel-heart", heart_main, dev);
    if (error)
        return UMD_FAIL(UMD_ERR_RES_THREADS, "thread=petrel-heart errno=%d", error);
    dev->heart_started = true;
    return UMD_SUCCESS;
}

static void heart_stop(struct petrel_device *dev)
{
    if (!dev->heart_started)
        return;
    umd_mutex_lock(&dev->heart_lock);
    dev->heart_stop = true;
    umd_cond_broadcast(&dev->heart_cond);
    umd_mutex_unlock(&dev->heart_lock);
    pthread_join(dev->heart, NULL);
    dev->heart_started = false;
}

/* ---- Life ---- */

static void fences_published(struct dma_fence_domain *domain)
{
    struct petrel_device *dev = (struct petrel_device *)(void *)((char *)domain - offsetof(struct petrel_device, drm.fences));
    if (atomic_load(&dev->unresolved)) {
        atomic_store(&dev->unresolved, false); /* set again by whoever still waits */
        petrel_sched_kick(dev);
    }
}

static uint32_t jobs_alive(struct petrel_device *dev)
{
    umd_mutex_lock(&dev->sched_lock);
    const uint32_t alive = dev->jobs_alive;
    umd_mutex_unlock(&dev->sched_lock);
    return alive;
}

/* Jobs of closed files are being killed; gives them the time a reset takes, then ends them by force. */
static void drain(struct petrel_device *dev)
{
    struct petrel_after after;
    for (uint32_t i = 0; i < DRAIN_POLLS && jobs_alive(dev) && !atomic_load(&dev->lost_code); i++) {
        boot_pause(dev);
        petrel_sched_kick(dev);
    }
    petrel_after_init(&after);
    umd_mutex_lock(&dev->sched_lock);
    if (!atomic_load(&dev->lost_code)) {
        umdErrorDetail record = {.size_B = sizeof(record), .code = UMD_ERR_INIT_NO_DEVICE, .origin_code = UMD_ERR_INIT_NO_DEVICE};
        petrel_lost_locked(dev, &record, &after);
    }
    after.zombies = dev->zombies;
    dev->zombies = NULL;
    umd_mutex_unlock(&dev->sched_lock);
    petrel_after_run(dev, &after);
}

/* For crash snapshots: read as it is, no lock, no register. */
static void write_state(struct umd_state_out *out, const void *arg)
{
    static const char *const phases[] = {[PETREL_DEVICE_RUN] = "run", [PETREL_DEVICE_FREEZE] = "freeze", [PETREL_DEVICE_RESET] = "reset"};
    struct petrel_device *dev = (struct petrel_device *)(uintptr_t)arg;

    umd_state_u64(out, "index", dev->index);
    umd_state_u64(out, "ready", atomic_load(&dev->ready));
    umd_state_text(out, "lost", umdStatusName((umdStatus)atomic_load(&dev->lost_code)));
    umd_state_text(out, "phase", phases[dev->device_phase <= PETREL_DEVICE_RESET ? dev->device_phase : PETREL_DEVICE_RUN]);
    umd_state_u64(out, "jobs_alive", atomic_load(&dev->jobs_alive));
    umd_state_u64(out, "jobs_submitted", dev->next_job);
    umd_state_u64(out, "resets", dev->reset_count);
    umd_state_u64(out, "interrupts_lost", dev->irq_lost_count);
    umd_state_u64(out, "interrupt_overflows", dev->irq_overflow_count);
    umd_state_u64(out, "vram_free_B", dev->vram.free_B);
}

static void write_ring_state(struct umd_state_out *out, const void *arg)
{
    static const char *const phases[] = {[PETREL_PHASE_RUN] = "run", [PETREL_PHASE_PROBE] = "probe", [PETREL_PHASE_RESET] = "reset"};
    const struct petrel_ring *ring = arg;

    umd_state_u64(out, "device", ring->dev->index);
    umd_state_u64(out, "index", ring->index);
    umd_state_text(out, "phase", phases[ring->phase <= PETREL_PHASE_RESET ? ring->phase : PETREL_PHASE_RUN]);
    umd_state_u64(out, "jobs_inflight", ring->inflight.count);
    umd_state_u64(out, "seq", ring->seq);
    umd_state_u64(out, "done_seq", ring->done_seq);
    umd_state_u64(out, "watched_job", ring->watched);
}

static void device_destroy(struct petrel_device *dev)
{
    if (!dev)
        return;
    umd_state_unregister(write_state, dev);
    for (uint32_t r = 0; r < PETREL_RING_COUNT; r++)
        umd_state_unregister(write_ring_state, &dev->rings[r]);
    heart_stop(dev);
    if (dev->ready)
        drain(dev);
    /* The device thread may still be releasing what a job held. */
    atomic_store(&dev->ready, false);
    while (atomic_load(&dev->irqs_running))
        boot_pause(dev);
    for (uint32_t r = 0; r < PETREL_RING_COUNT; r++)
        petrel_ring_fini(&dev->rings[r]);
    if (dev->vram.blocks) {
        petrel_heap_free(&dev->vram, dev->ih_mem);
        petrel_heap_free(&dev->vram, dev->scratch_mem);
    }
    petrel_heap_fini(&dev->vram);
    petrel_heap_fini(&dev->sysmem);
    hw_device_destroy(dev->hw);
    umd_cond_fini(&dev->heart_cond);
    umd_mutex_fini(&dev->heart_lock);
    umd_mutex_fini(&dev->sched_lock);
    dma_fence_domain_fini(&dev->drm.fences);
    umd_free(dev);
}

static struct petrel_device *device_alloc(uint32_t index, bool stepped)
{
    struct petrel_device *dev = umd_alloc(sizeof(*dev));
    if (!dev)
        return NULL;
    dev->index = index;
    dev->stepped = dev->drm.stepped = stepped;
    dev->drm.driver = &petrel_drm_driver;
    dma_fence_domain_init(&dev->drm.fences);
    dev->drm.fences.published = fences_published;
    umd_mutex_init(&dev->sched_lock, "kmd.sched", 62);
    umd_mutex_init(&dev->heart_lock, "kmd.heart", 61);
    umd_cond_init(&dev->heart_cond);
    return dev;
}

static umdStatus device_create(uint32_t index, const struct petrel_kmd_config *config, struct petrel_device **dev_out)
{
    struct petrel_device *dev = device_alloc(index, config->stepped);
    if (!dev)
        return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    const struct hw_device_desc desc = {
        .profile = config->profile, .vram_B = config->vram_B, .host_threads = config->host_threads, .irq = petrel_irq, .irq_priv = dev,
        .mode = config->stepped ? HW_RUN_STEPPED : HW_RUN_THREADED,
    };
    umdStatus st = hw_device_create(&desc, &dev->hw);
    if (st < 0)
        st = UMD_HOP(st);
    if (st >= 0)
        st = identify(dev);
    if (st >= 0)
        st = boot_firmware(dev);
    if (st >= 0)
        st = boot_selftest(dev);
    if (st >= 0) {
        read_info(dev, config->watchdog_ns);
        hw_write32(dev->hw, PETREL_REGS_OFF_FUNCTIONAL, config->functional);
        st = setup_memory(dev);
    }
    if (st >= 0) {
        atomic_store(&dev->ready, true);
        st = heart_start(dev);
    }
    if (st < 0) {
        device_destroy(dev);
        return st;
    }
    (void)umd_state_register("kmd.device", write_state, dev);
    for (uint32_t r = 0; r < PETREL_RING_COUNT; r++)
        (void)umd_state_register("kmd.ring", write_ring_state, &dev->rings[r]);
    UMD_LOG(UMD_LOG_INFO, "device ready index=%u vram_B=%" PRIu64 " fw=0x%x private_B=%u", index, (uint64_t)dev->info.vram_size_B, dev->info.fw_version,
            dev->info.private_B);
    *dev_out = dev;
    return UMD_SUCCESS;
}

/* How many devices answer. */
static uint32_t devices_found(uint32_t configured)
{
    struct umd_fault_hit hit;
    if (!umd_fault(UMD_FAULT_KMD_DEVICE_COUNT, (struct umd_fault_where){0}, &hit))
        return configured;
    const uint64_t found = hit.arg_count ? hit.args[0] : configured - 1;
    return found < configured ? (uint32_t)found : configured;
}

static void node_power_down_locked(void)
{
    while (node.count)
        device_destroy(node.devices[--node.count]);
}

static umdStatus node_power_up_locked(const struct petrel_kmd_config *config)
{
    const uint32_t expected = config->expected_count ? config->expected_count : config->device_count;
    if (config->device_count == 0 || config->device_count > DEVICES_MAX)
        return UMD_FAIL(UMD_ERR_CONFIG_VALUE, "key=device_count value=%u min=1 max=%u", config->device_count, DEVICES_MAX);
    const uint32_t found = devices_found(config->device_count);
    if (found != expected)
        return UMD_FAIL(UMD_ERR_INIT_DEVICE_COUNT, "found=%u expected=%u configured=%u", found, expected, config->device_count);
    for (uint32_t i = 0; i < found; i++) {
        umdStatus st = device_create(i, config, &node.devices[i]);
        if (st < 0) {
            node_power_down_locked();
            return st;
        }
        node.count = i + 1;
    }
    node.stepped = config->stepped;
    return UMD_SUCCESS;
}

/* ---- Entry ---- */

static void node_lock(void)
{
    pthread_mutex_lock(&node.once);
    if (!node.lock_ready)
        umd_mutex_init(&node.lock, "kmd.node", 50);
    node.lock_ready = true;
    pthread_mutex_unlock(&node.once);
    umd_mutex_lock(&node.lock);
}

static int op_probe(const struct petrel_kmd_config *config, uint32_t *count_out)
{
    static const struct petrel_kmd_config standard = {.device_count = 1};
    umdStatus st = UMD_SUCCESS;
    node_lock();
    if (node.users == 0) {
        usercopy_init();
        st = node_power_up_locked(config ? config : &standard);
        if (st < 0)
            usercopy_fini();
    } else if (config && config->stepped != node.stepped) {
        st = UMD_FAIL(UMD_ERR_CONFIG_VALUE, "key=stepped value=%d expected=%d", config->stepped, node.stepped);
    }
    if (st >= 0) {
        node.users++;
        *count_out = node.count;
    }
    umd_mutex_unlock(&node.lock);
    return st < 0 ? -umdStatusErrno(st) : 0;
}

static void op_remove(void)
{
    node_lock();
    assert(node.users > 0);
    if (node.users > 0 && --node.users == 0) {
        node_power_down_locked();
        usercopy_fini();
    }
    umd_mutex_unlock(&node.lock);
}

static int op_open(uint32_t index, bool render_node, struct petrel_file **file_out)
{
    node_lock();
    struct petrel_device *dev = index < node.count ? node.devices[index] : NULL;
    const uint32_t count = node.count;
    umd_mutex_unlock(&node.lock);
    if (!dev)
        return UMD_FAIL_ERRNO(UMD_ERR_INIT_NO_DEVICE, "index=%u count=%u", index, count);
    return petrel_file_open(dev, render_node, file_out);
}

static int op_ioctl(struct petrel_file *file, unsigned long cmd, void *arg)
{
    return drm_ioctl(&file->drm, cmd, arg);
}

static const struct petrel_kmd_ops ops = {
    .abi = PETREL_KMD_ABI,
    .probe = op_probe,
    .remove = op_remove,
    .open = op_open,
    .close = petrel_file_close,
    .ioctl = op_ioctl,
    .read = petrel_file_read,
    .mmap = petrel_file_mmap,
    .munmap = petrel_file_munmap,
};

UMD_API const struct petrel_kmd_ops *petrel_kmd_entry(void);
const struct petrel_kmd_ops *petrel_kmd_entry(void)
{
    return &ops;
}
