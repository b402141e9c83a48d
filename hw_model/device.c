/* SPDX-License-Identifier: MIT */
/* device.c - power-up and power-down, the device thread, the pump, and how engines share device time. */
#include "device.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fault_plan.h"
#include "record.h"

UMD_LOG_MODULE("hw.device");

#define HW_POLL_NS 100000u   /* host time between looks at a semaphore that host code may write without a doorbell */
#define HW_SLEEP_MAX_NS 1000000000u /* then it looks again, so that no sum of times can overflow a wait */
#define HW_MEM_ALIGN 4096u

static _Thread_local const struct hw_device *hw_pumping; /* device whose thread this is */

/* ---- Requests ---- */

bool hw_on_device_thread(const struct hw_device *dev)
{
    return dev->mode == HW_RUN_STEPPED || hw_pumping == dev;
}

/*
 * The thread announces sleep, then looks at kick; a kicker sets kick, then looks for sleep: one of them sees the other. While the
 * thread runs this is two atomic operations.
 */
void hw_kick(struct hw_device *dev)
{
    atomic_store(&dev->kick, true);
    if (!atomic_load(&dev->sleeping))
        return;
    umd_mutex_lock(&dev->lock);
    umd_cond_broadcast(&dev->wake);
    umd_mutex_unlock(&dev->lock);
}

/*
 * The giver's hold may come just before the thread, which has looked already, says idle and ends it. Who holds after a kick is safe:
 * either the thread sees the kick and holds again, or this hold stands. The second kick makes it look once more, should it have taken
 * the first one before the hold: no hold is left without a look to come.
 */
void hw_ask(struct hw_device *dev)
{
    atomic_store(&dev->kick, true);
    hw_clock_hold(&dev->clock);
    hw_kick(dev);
}

static void device_reset(struct hw_device *dev)
{
    for (uint32_t i = 0; i < PETREL_RING_COUNT; i++)
        hw_ring_reset(&dev->rings[i]);
    hw_mmu_invalidate(dev);
}

void hw_service_reset(struct hw_device *dev)
{
    struct umd_fault_hit hit;
    const uint32_t bits = atomic_load(&dev->reset_asked);
    for (uint32_t i = 0; i < 32; i++) {
        const uint32_t bit = 1u << i;
        if (!(bits & bit))
            continue;
        if (umd_fault(UMD_FAULT_HW_RESET_FAIL, (struct umd_fault_where){ 0 }, &hit)) {
            atomic_fetch_or(&dev->regs[HW_REG_RESET], bit);
        } else if (bit == HW_RESET_DEVICE) {
            device_reset(dev);
            atomic_store(&dev->regs[HW_REG_RESET], 0);
        } else {
            hw_ring_reset(&dev->rings[i]);
            atomic_fetch_and(&dev->regs[HW_REG_RESET], ~(uint64_t)bit);
        }
    }
    atomic_fetch_and(&dev->reset_asked, ~bits); /* last: reads back set until done */
}

/* ---- Time ---- */

static uint64_t timer_next_ns(const struct hw_device *dev)
{
    uint64_t timer_ns = hw_reg(dev, HW_REG_TIMER_NS), fw_ns = hw_fw_next_ns(dev);
    if (timer_ns == 0)
        timer_ns = HW_NEVER;
    return timer_ns < fw_ns ? timer_ns : fw_ns;
}

static void timer_service(struct hw_device *dev)
{
    const uint64_t now_ns = hw_clock_now(&dev->clock);
    uint64_t timer_ns = hw_reg(dev, HW_REG_TIMER_NS);
    if (timer_ns == 0 || timer_ns > now_ns)
        return;
    /* Once; a new value written at this moment stays. */
    if (atomic_compare_exchange_strong(&dev->regs[HW_REG_TIMER_NS], &timer_ns, 0))
        hw_ih_raise(dev, &(struct petrel_ih_entry){ .source = PETREL_IRQ_TIMER, .data = timer_ns, .time_ns = now_ns });
}

/* Everything asked for or due. Between engine steps. */
static void device_service(struct hw_device *dev)
{
    if (atomic_load(&dev->off_bus))
        return;
    if (atomic_load(&dev->reset_asked))
        hw_service_reset(dev);
    hw_fw_service(dev);
    timer_service(dev);
    for (uint32_t i = 0; i < PETREL_RING_COUNT; i++)
        hw_ring_service_preempt(&dev->rings[i]);
}

/* ---- Work ---- */

/* The runnable ring that is least far in device time; NULL: none before end_ns. */
static struct hw_ring *device_pick(struct hw_device *dev, uint64_t end_ns)
{
    struct hw_ring *first = NULL;
    for (uint32_t i = 0; i < PETREL_RING_COUNT; i++) {
        struct hw_ring *ring = &dev->rings[i];
        const bool runnable = hw_ring_runnable(ring);
        if (runnable && !ring->active && ring->t_ns < hw_clock_now(&dev->clock))
            ring->t_ns = hw_clock_now(&dev->clock); /* it idled until now */
        ring->active = runnable;
        if (runnable && ring->t_ns < end_ns && (!first || ring->t_ns < first->t_ns))
            first = ring;
    }
    return first;
}

static bool device_runnable(struct hw_device *dev)
{
    return !atomic_load(&dev->off_bus) && device_pick(dev, HW_NEVER) != NULL;
}

/*
 * Runs all rings concurrently in device time from now to about end_ns: always the one that is behind, a step at a time. True: an
 * interrupt was delivered; the slice ends there, since the callback may have asked for something. The device runs.
 */
static bool device_slice(struct hw_device *dev, uint64_t end_ns)
{
    struct hw_ring *ring;
    uint64_t reached_ns = hw_clock_now(&dev->clock);
    const uint64_t callers_context = umd_record_get_context(); /* stepped: of the call in which the device runs */
    bool delivered = false;
    while (!delivered && (ring = device_pick(dev, end_ns)) != NULL) {
        umd_record_set_context(ring->context_id);
        hw_ring_step(ring, end_ns);
        umd_record_set_context(callers_context);
        if (atomic_load(&dev->off_bus)) {
            hw_cu_kill(dev->cus);
            dev->irq_pending = false;
            break;
        }
        if (reached_ns < ring->t_ns)
            reached_ns = ring->t_ns;
        if (dev->irq_pending) {
            hw_clock_advance_to(&dev->clock, ring->t_ns); /* nobody reads a clock before the event */
            delivered = hw_ih_deliver(dev);
        }
        if (atomic_load(&dev->reset_asked) || atomic_load(&dev->stop))
            break;
    }
    /* Rings that go on keep their own time: the clock does not pass the slowest, nor the end when all are beyond it. */
    uint64_t slowest_ns = HW_NEVER;
    for (uint32_t i = 0; i < PETREL_RING_COUNT; i++) {
        if (dev->rings[i].active && hw_ring_runnable(&dev->rings[i]) && dev->rings[i].t_ns < slowest_ns)
            slowest_ns = dev->rings[i].t_ns;
    }
    if (slowest_ns != HW_NEVER)
        reached_ns = slowest_ns < end_ns ? slowest_ns : end_ns;
    hw_clock_advance_to(&dev->clock, reached_ns);
    return delivered;
}

static uint64_t device_slice_end(struct hw_device *dev, uint64_t limit_ns)
{
    uint64_t rest = 0, now_ns = hw_clock_now(&dev->clock);
    uint64_t end_ns = now_ns + hw_cycles_to_ns(dev->profile.clock_khz, dev->profile.slice_clk, &rest);
    uint64_t timer_ns = timer_next_ns(dev);
    if (timer_ns > now_ns && timer_ns < end_ns)
        end_ns = timer_ns;
    if (limit_ns < end_ns)
        end_ns = limit_ns;
    return end_ns > now_ns ? end_ns : now_ns + 1;
}

/* ---- Threaded mode ---- */

/* How long the thread may sleep when nothing can run: host time, since the idle clock runs at wall rate. */
static uint64_t device_sleep_ns(struct hw_device *dev)
{
    uint64_t sleep_ns = HW_NEVER;
    if (atomic_load(&dev->off_bus))
        return sleep_ns;
    const uint64_t next_ns = timer_next_ns(dev), now_ns = hw_clock_now(&dev->clock);
    if (next_ns != HW_NEVER)
        sleep_ns = next_ns > now_ns ? next_ns - now_ns : 0;
    if (next_ns != HW_NEVER && sleep_ns > HW_SLEEP_MAX_NS)
        sleep_ns = HW_SLEEP_MAX_NS;
    for (uint32_t i = 0; i < PETREL_RING_COUNT; i++) {
        if (hw_ring_polls(&dev->rings[i]) && sleep_ns > HW_POLL_NS)
            sleep_ns = HW_POLL_NS;
    }
    return sleep_ns;
}

static void device_sleep(struct hw_device *dev)
{
    const uint64_t sleep_ns = device_sleep_ns(dev);
    if (sleep_ns == 0)
        return;
    umd_mutex_lock(&dev->lock);
    atomic_store(&dev->sleeping, true);
    if (!atomic_load(&dev->kick))
        umd_cond_wait(&dev->wake, &dev->lock, sleep_ns);
    atomic_store(&dev->sleeping, false);
    umd_mutex_unlock(&dev->lock);
}

static void *device_thread(void *arg)
{
    struct hw_device *dev = arg;
    hw_pumping = dev;
    while (!atomic_load(&dev->stop)) {
        atomic_store(&dev->kick, false);
        device_service(dev);
        hw_ih_deliver(dev);
        if (device_runnable(dev)) {
            hw_clock_run(&dev->clock);
            device_slice(dev, device_slice_end(dev, HW_NEVER));
        } else {
            hw_clock_idle(&dev->clock);
            if (atomic_load(&dev->kick)) /* asked after the look, and its hold has just been ended */
                hw_clock_hold(&dev->clock);
            device_sleep(dev);
        }
    }
    return NULL;
}

/* ---- Stepped mode ---- */

/* Nothing can run: time goes to the next timer, at most to limit_ns. */
static void device_jump(struct hw_device *dev, uint64_t limit_ns)
{
    uint64_t next_ns = atomic_load(&dev->off_bus) ? HW_NEVER : timer_next_ns(dev);
    hw_clock_advance_to(&dev->clock, next_ns < limit_ns ? next_ns : limit_ns);
}

bool hw_device_pump(struct hw_device *dev, uint64_t budget_ns)
{
    assert(dev->mode == HW_RUN_STEPPED);
    const uint64_t from_ns = hw_clock_now(&dev->clock);
    const uint64_t limit_ns = budget_ns < UINT64_MAX - from_ns ? from_ns + budget_ns : UINT64_MAX - 1;
    bool did = false;
    device_service(dev);
    if (hw_ih_deliver(dev))
        return true;
    while (device_runnable(dev) && hw_clock_now(&dev->clock) < limit_ns) {
        did = true;
        if (device_slice(dev, device_slice_end(dev, limit_ns)))
            return true;
        device_service(dev);
        if (hw_ih_deliver(dev))
            return true;
    }
    if (did)
        return true;
    const uint64_t fw_ns = hw_fw_next_ns(dev);
    device_jump(dev, limit_ns);
    device_service(dev);
    return hw_ih_deliver(dev) || fw_ns != hw_fw_next_ns(dev);
}

/* ---- Power ---- */

static umdStatus aperture_create(const char *name, uint64_t size_B, struct hw_aperture *ap)
{
    const struct umd_sys *sys = umd_sys();
    ap->fd = sys->memfd_create(name, size_B);
    if (ap->fd < 0)
        return UMD_FAIL(umd_record_file_code(errno), "path=\"memfd:%s\" what=%s size_B=%" PRIu64 " errno=%d reason=\"%s\"", name, name, size_B, errno,
                        strerrordesc_np(errno));
    void *cpu = sys->mmap(NULL, size_B, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, ap->fd, 0);
    if (cpu == MAP_FAILED)
        return UMD_FAIL(UMD_ERR_MEM_MAP_FAILED, "what=%s size_B=%" PRIu64 " errno=%d", name, size_B, errno);
    ap->cpu = cpu;
    ap->size_B = size_B;
    return UMD_SUCCESS;
}

static void aperture_destroy(struct hw_aperture *ap)
{
    if (ap->cpu)
        umd_sys()->munmap(ap->cpu, ap->size_B);
    if (ap->fd >= 0)
        umd_sys()->close(ap->fd);
}

static umdStatus device_size(const char *what, uint64_t asked_B, uint64_t *size_B)
{
    if (asked_B == 0)
        asked_B = *size_B;
    if (asked_B % HW_MEM_ALIGN != 0 || asked_B < 1u << 20 || asked_B > 1ull << 40)
        return UMD_FAIL(UMD_ERR_CONFIG_VALUE, "key=%s value=%" PRIu64 " multiple_of=%u min=1048576 max=1099511627776", what, asked_B,
                        HW_MEM_ALIGN);
    *size_B = asked_B;
    return UMD_SUCCESS;
}

static umdStatus device_init_memory(struct hw_device *dev, const struct hw_device_desc *desc)
{
    umdStatus st = device_size("vram_B", desc->vram_B, &dev->profile.vram_B);
    if (st >= 0)
        st = device_size("sysmem_B", desc->sysmem_B, &dev->profile.sysmem_B);
    if (st >= 0)
        st = aperture_create("petrel-vram", dev->profile.vram_B, &dev->vram);
    if (st >= 0)
        st = aperture_create("petrel-sysmem", dev->profile.sysmem_B, &dev->sysmem);
    return st;
}

/* Stepped runs are of one thread: what several would do, a seed could not repeat. */
static umdStatus device_init_host_threads(struct hw_device *dev, uint32_t asked)
{
    const uint32_t most = dev->mode == HW_RUN_STEPPED ? 1 : HW_CU_THREADS_MAX;

    if (asked)
        dev->profile.cu.host_threads = asked;
    if (dev->profile.cu.host_threads > most)
        return UMD_FAIL(UMD_ERR_CONFIG_VALUE, "key=host.threads value=%u min=1 max=%u mode=%s", dev->profile.cu.host_threads, most,
                        dev->mode == HW_RUN_STEPPED ? "stepped" : "threaded");
    return UMD_SUCCESS;
}

static umdStatus device_init_thread(struct hw_device *dev)
{
    if (dev->mode == HW_RUN_STEPPED)
        return UMD_SUCCESS;
    int error = umd_sys()->thread_create(&dev->thread, "petrel-device", device_thread, dev);
    if (error != 0)
        return UMD_FAIL(UMD_ERR_RES_THREADS, "thread=petrel-device errno=%d", error);
    dev->thread_started = true;
    return UMD_SUCCESS;
}

static umdStatus device_init(struct hw_device *dev, const struct hw_device_desc *desc)
{
    umdStatus st = hw_profile_load(desc->profile, &dev->profile);
    if (st >= 0)
        st = device_init_host_threads(dev, desc->host_threads);
    if (st >= 0)
        st = device_init_memory(dev, desc);
    if (st < 0)
        return st;
    dev->profile.cu.translate = hw_mmu_translate;
    dev->profile.cu.translate_priv = dev;
    st = hw_cu_array_create(&dev->profile.cu, &dev->cus);
    if (st < 0)
        return st;
    umd_mutex_init(&dev->lock, "hw.device", 70);
    umd_cond_init(&dev->wake);
    dev->lock_ready = true;
    dev->fw_due_ns = dev->selftest_due_ns = HW_NEVER;
    hw_clock_init(&dev->clock, dev->mode == HW_RUN_STEPPED);
    hw_regs_init(dev);
    for (uint32_t i = 0; i < PETREL_RING_COUNT; i++)
        hw_ring_init(dev, i);
    return device_init_thread(dev);
}

umdStatus hw_device_create(const struct hw_device_desc *desc, struct hw_device **dev_out)
{
    struct hw_device *dev = umd_alloc(sizeof(*dev));
    if (!dev)
        return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    dev->vram.fd = dev->sysmem.fd = -1;
    dev->mode = desc->mode;
    dev->irq = desc->irq;
    dev->irq_priv = desc->irq_priv;
    umdStatus st = device_init(dev, desc);
    if (st < 0) {
        hw_device_destroy(dev);
        return UMD_HOP(st);
    }
    UMD_LOG(UMD_LOG_DEBUG, "device powered up vram_B=%" PRIu64 " cu_count=%u", dev->vram.size_B, dev->profile.cu.cu_count);
    *dev_out = dev;
    return UMD_SUCCESS;
}

void hw_device_destroy(struct hw_device *dev)
{
    if (!dev)
        return;
    assert(hw_pumping != dev);
    if (dev->thread_started) {
        atomic_store(&dev->stop, true);
        hw_kick(dev);
        pthread_join(dev->thread, NULL);
    }
    hw_cu_array_destroy(dev->cus);
    aperture_destroy(&dev->sysmem);
    aperture_destroy(&dev->vram);
    if (dev->lock_ready) {
        umd_cond_fini(&dev->wake);
        umd_mutex_fini(&dev->lock);
    }
    umd_free(dev);
}

struct hw_aperture hw_vram(struct hw_device *dev)
{
    return dev->vram;
}

struct hw_aperture hw_sysmem(struct hw_device *dev)
{
    return dev->sysmem;
}

bool hw_on_bus(struct hw_device *dev)
{
    return !atomic_load(&dev->off_bus);
}
