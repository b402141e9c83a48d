/* SPDX-License-Identifier: MIT */
/*
 * cp.c - rings: fetch, check and execute packets. Simplified: a ring works on one packet at a time, so that whatever a FENCE or
 * BARRIER orders is done already when it is reached; packets are fetched without device time of their own beyond packet_clk.
 */
#include <string.h>

#include "device.h"
#include "fault_plan.h"
#include "record.h"

UMD_LOG_MODULE("hw.cp");

#define CP_RINGS_C (1u << PETREL_RING_COMPUTE0)
#define CP_RINGS_D (1u << PETREL_RING_COPY0)
#define CP_RINGS_CD (CP_RINGS_C | CP_RINGS_D)
#define CP_FLAGS(header_) ((header_) >> 16 & 0xffu)
#define CP_FLAG_PHYS (PETREL_PKT_PHYS >> 16)
#define CP_WILD_VA 0x00006bad00000000ull  /* where hw.cu.wild_access goes without an argument: no VM maps so high by itself */

/* A packet's handler leaves the ring in FETCH when the packet is done, or in the state that carries it on. */
struct cp_op {
    const char *name;
    void (*run)(struct hw_ring *ring);
    uint16_t count;
    uint8_t rings;
    bool known, privileged, phys;
};

static void cp_malformed(struct hw_ring *ring);

/* ---- Ring bookkeeping ---- */

void hw_ring_init(struct hw_device *dev, uint32_t index)
{
    struct hw_ring *ring = &dev->rings[index];
    ring->dev = dev;
    ring->index = index;
    ring->root = HW_ROOT_NONE;
    ring->code = (struct petrel_code){ 0 };
}

void hw_ring_charge(struct hw_ring *ring, uint64_t cycles)
{
    ring->t_ns += hw_cycles_to_ns(ring->dev->profile.clock_khz, cycles, &ring->cycle_rest);
}

/* Free-running dword offset of the packet at work: in the indirect buffer, else in the ring. */
static uint32_t cp_packet_at(const struct hw_ring *ring)
{
    return ring->in_ib ? ring->ib_pos : (uint32_t)hw_ring_reg(ring, HW_RING_RPTR);
}

static void ring_latch(struct hw_ring *ring, const struct hw_cu_fault *where)
{
    hw_ring_set(ring, HW_RING_FAULT_VA, where->va);
    hw_ring_set(ring, HW_RING_FAULT_PC, where->pc);
    hw_ring_set(ring, HW_RING_FAULT_INFO, where->info);
    hw_ring_set(ring, HW_RING_FAULT_WG, where->wg);
    hw_ring_set(ring, HW_RING_FAULT_DATA, where->data);
}

static void ring_raise(struct hw_ring *ring, enum petrel_irq_source source, uint64_t data)
{
    struct petrel_ih_entry entry = {
        .source = source,
        .ring = ring->index,
        .data = data,
        .time_ns = ring->t_ns,
        .job = hw_ring_reg(ring, HW_RING_JOB),
    };
    hw_ih_raise(ring->dev, &entry);
}

void hw_ring_fault(struct hw_ring *ring, const struct hw_cu_fault *fault)
{
    UMD_LOG(UMD_LOG_DEBUG, "ring stops ring=%u fault=%u va=0x%" PRIx64 " pc=0x%" PRIx64, ring->index, fault->fault, fault->va,
            fault->pc);
    ring->state = HW_STATE_FETCH;
    ring_latch(ring, fault);
    hw_ring_set(ring, HW_RING_FAULT, fault->fault); /* last: who sees it sees the rest */
    ring_raise(ring, PETREL_IRQ_FAULT, fault->fault);
}

static void cp_mem_fault(struct hw_ring *ring, uint32_t fault, uint64_t va, enum petrel_access access)
{
    hw_ring_fault(ring, &(struct hw_cu_fault){ .fault = fault, .va = va, .info = PETREL_FAULT_INFO(access, 0, 0, 0),
                                               .data = ring->packet[0] });
}

static void cp_malformed(struct hw_ring *ring)
{
    hw_ring_fault(ring, &(struct hw_cu_fault){ .fault = PETREL_FAULT_PACKET, .va = cp_packet_at(ring), .data = ring->packet[0] });
}

void hw_ring_retire(struct hw_ring *ring)
{
    uint32_t advance = 1u + PETREL_PKT_COUNT(ring->packet[0]);
    ring->state = HW_STATE_FETCH;
    if (ring->in_ib) {
        ring->ib_pos += advance;
        if (ring->ib_pos < ring->ib_dw)
            return;
        ring->in_ib = false; /* the INDIRECT packet itself is done now */
        advance = 4;
    }
    hw_ring_set(ring, HW_RING_RPTR, (uint32_t)(hw_ring_reg(ring, HW_RING_RPTR) + advance));
}

void hw_ring_reset(struct hw_ring *ring)
{
    if (ring->index == PETREL_RING_COMPUTE0)
        hw_cu_kill(ring->dev->cus);
    ring->state = HW_STATE_FETCH;
    ring->in_ib = false;
    ring->root = HW_ROOT_NONE;
    ring->code = (struct petrel_code){ 0 };
    ring->vmid = 0;
    ring->context_id = 0;
    ring->active = false;
    ring_latch(ring, &(struct hw_cu_fault){ 0 });
    /* JOB stays: it is how the driver learns what had started. */
    hw_ring_set(ring, HW_RING_WPTR, 0);
    hw_ring_set(ring, HW_RING_RPTR, 0);
    hw_ring_set(ring, HW_RING_MARK, 0);
    hw_ring_set(ring, HW_RING_PREEMPT, 0);
    hw_ring_set(ring, HW_RING_FAULT, PETREL_FAULT_NONE);
}

/* ---- Access to memory by packets ---- */

/* A naturally aligned 64-bit word, or NULL after the ring was stopped. */
static uint64_t *cp_word(struct hw_ring *ring, uint64_t root, uint64_t va, enum petrel_access access)
{
    uint64_t run_B;
    bool system;
    uint32_t fault = PETREL_FAULT_MISALIGNED;
    uint8_t *at = va % 8 ? NULL : hw_mmu_ptr(ring->dev, root, va, access, &run_B, &system, &fault);
    if (at && run_B < 8) {
        at = NULL;
        fault = PETREL_FAULT_PAGE;
    }
    if (!at)
        cp_mem_fault(ring, fault, va, access);
    return (uint64_t *)at;
}

static void cp_store_word(struct hw_ring *ring, uint64_t va, uint64_t root, uint64_t v)
{
    uint64_t *at = cp_word(ring, root, va, PETREL_ACCESS_WRITE);
    if (!at)
        return;
    __atomic_store_n(at, v, __ATOMIC_RELEASE);
    if (ring->dev->last_store_ns < ring->t_ns)
        ring->dev->last_store_ns = ring->t_ns;
}

static uint64_t cp_field64(const struct hw_ring *ring, unsigned dword)
{
    return ring->packet[dword] | (uint64_t)ring->packet[dword + 1] << 32;
}

static uint64_t cp_root(const struct hw_ring *ring)
{
    return CP_FLAGS(ring->packet[0]) & CP_FLAG_PHYS ? HW_ROOT_PHYS : ring->root;
}

/* ---- Packets, one function each ---- */

static void cp_run_NOP(struct hw_ring *ring)
{
    (void)ring;
}

static void cp_run_BARRIER(struct hw_ring *ring)
{
    (void)ring; /* what came before is done: see above */
}

static void cp_run_SET_CONTEXT(struct hw_ring *ring)
{
    uint64_t root = cp_field64(ring, 1);
    if (root % PETREL_PAGE_SIZE != 0 || root >= ring->dev->vram.size_B || ring->packet[6] != 0) {
        cp_malformed(ring);
        return;
    }
    ring->root = root;
    ring->code = (struct petrel_code){ 0 };
    ring->vmid = ring->packet[3];
    ring->context_id = cp_field64(ring, 7);
    hw_ring_set(ring, HW_RING_MARK, 0);
    hw_ring_set(ring, HW_RING_JOB, cp_field64(ring, 4));
}

static void cp_run_INDIRECT(struct hw_ring *ring)
{
    if (ring->packet[3] == 0)
        return;
    if (cp_field64(ring, 1) % 4 != 0) {
        cp_mem_fault(ring, PETREL_FAULT_MISALIGNED, cp_field64(ring, 1), PETREL_ACCESS_READ);
        return;
    }
    ring->ib_root = cp_root(ring);
    ring->ib_va = cp_field64(ring, 1);
    ring->ib_dw = ring->packet[3];
    ring->ib_pos = 0;
    ring->in_ib = true;
}

static void cp_run_FENCE(struct hw_ring *ring)
{
    const uint64_t pa = cp_field64(ring, 1), seq = cp_field64(ring, 3);
    struct hw_device *dev = ring->dev;
    if (pa % 8 != 0 || pa >= dev->vram.size_B || dev->vram.size_B - pa < 16 || ring->packet[5] > 1) {
        cp_malformed(ring);
        return;
    }
    uint64_t *at = (uint64_t *)((uint8_t *)dev->vram.cpu + pa);
    hw_clock_advance_to(&dev->clock, ring->t_ns); /* nobody sees a fence of the future */
    __atomic_store_n(at + 1, ring->t_ns, __ATOMIC_RELAXED);
    __atomic_store_n(at, seq, __ATOMIC_RELEASE); /* who sees seq sees the time */
    if (dev->last_store_ns < ring->t_ns)
        dev->last_store_ns = ring->t_ns;
    if (ring->packet[5] & 1u)
        ring_raise(ring, PETREL_IRQ_FENCE, seq);
}

static void cp_run_TLB_INVAL(struct hw_ring *ring)
{
    hw_mmu_invalidate(ring->dev); /* of all: the compute units do not tag by vmid */
}

static void cp_run_WRITE(struct hw_ring *ring)
{
    cp_store_word(ring, cp_field64(ring, 1), cp_root(ring), cp_field64(ring, 3));
}

static void cp_run_TIMESTAMP(struct hw_ring *ring)
{
    cp_store_word(ring, cp_field64(ring, 1), cp_root(ring), ring->t_ns);
}

static void cp_run_MARK(struct hw_ring *ring)
{
    hw_ring_set(ring, HW_RING_MARK, cp_field64(ring, 1));
}

/* Passes, stays in WAIT, or faults. */
static void cp_poll_wait(struct hw_ring *ring)
{
    const uint64_t *at = cp_word(ring, ring->wait_root, ring->wait_va, PETREL_ACCESS_READ);
    if (!at)
        return;
    if (__atomic_load_n(at, __ATOMIC_ACQUIRE) < ring->wait_ref) {
        ring->state = HW_STATE_WAIT;
        return;
    }
    ring->state = HW_STATE_FETCH;
    /* The other ring may be ahead of us within this slice: not done before it wrote. */
    if (ring->t_ns < ring->dev->last_store_ns)
        ring->t_ns = ring->dev->last_store_ns;
}

static void cp_run_WAIT(struct hw_ring *ring)
{
    ring->wait_root = cp_root(ring);
    ring->wait_va = cp_field64(ring, 1);
    ring->wait_ref = cp_field64(ring, 3);
    cp_poll_wait(ring);
}

/* True: the device just fell off the bus, or the engine broke, and the packet goes nowhere. */
static bool cp_engine_breaks(struct hw_ring *ring, bool copy)
{
    struct umd_fault_hit hit;
    struct umd_fault_where where = { .ctx = ring->vmid };
    if (umd_fault(UMD_FAULT_HW_BUS_OFF, where, &hit)) {
        atomic_store(&ring->dev->off_bus, true);
        ring->state = HW_STATE_HUNG;
        return true;
    }
    if (copy && umd_fault(UMD_FAULT_HW_SDMA_HANG, where, &hit)) {
        ring->state = HW_STATE_HUNG;
        return true;
    }
    return false;
}

static void cp_run_COPY(struct hw_ring *ring)
{
    struct hw_copy *copy = &ring->copy;
    const uint64_t src = cp_field64(ring, 1), dst = cp_field64(ring, 3), size_B = cp_field64(ring, 5);
    const bool wraps = src + size_B < src || dst + size_B < dst;
    if (wraps || (size_B != 0 && src < dst + size_B && dst < src + size_B)) {
        cp_malformed(ring);
        return;
    }
    if (cp_engine_breaks(ring, true))
        return;
    copy->root = cp_root(ring);
    copy->src = src;
    copy->dst = dst;
    copy->left_B = size_B;
    copy->fill = false;
    hw_sdma_start(ring);
}

static void cp_run_FILL(struct hw_ring *ring)
{
    struct hw_copy *copy = &ring->copy;
    const uint64_t dst = cp_field64(ring, 1), size_B = cp_field64(ring, 3);
    const uint32_t element_B = ring->packet[6];
    if ((element_B != 1 && element_B != 2 && element_B != 4) || size_B % element_B != 0 || dst + size_B < dst) {
        cp_malformed(ring);
        return;
    }
    if (cp_engine_breaks(ring, true))
        return;
    copy->root = cp_root(ring);
    copy->dst = dst;
    copy->left_B = size_B;
    copy->fill = true;
    copy->pattern = ring->packet[5];
    copy->element_B = element_B;
    hw_sdma_start(ring);
}

/* What the fault plan asks of this dispatch. */
static struct hw_cu_sabotage cp_sabotage(const struct hw_ring *ring)
{
    struct umd_fault_hit hit;
    struct umd_fault_where where = { .ctx = ring->vmid };
    struct hw_cu_sabotage sabotage = { .hang = umd_fault(UMD_FAULT_HW_CU_HANG, where, &hit) };
    if (umd_fault(UMD_FAULT_HW_CU_WILD, where, &hit)) {
        sabotage.wild = true;
        sabotage.wild_va = hit.arg_count ? hit.args[0] : CP_WILD_VA;
    }
    if (umd_fault(UMD_FAULT_HW_CU_ILLEGAL, where, &hit)) {
        sabotage.illegal = true;
        sabotage.illegal_bits = hit.arg_count ? (uint32_t)hit.args[0] : UINT32_MAX; /* zeros are what compilers put where a trap is meant */
    }
    return sabotage;
}

/* Gives the compute units their private memory as the registers say now. False: it does not hold all lanes. */
static bool cp_set_scratch(struct hw_device *dev)
{
    const uint64_t base = hw_reg(dev, HW_REG_SCRATCH_BASE), size_B = hw_reg(dev, HW_REG_SCRATCH_SIZE);
    const uint64_t lane_B = hw_reg(dev, HW_REG_PRIVATE_B);
    const uint64_t need_B = (uint64_t)dev->profile.cu.cu_count * dev->profile.cu.warps_per_cu * 32 * lane_B;
    if (lane_B < 1024 || lane_B > 65536 || (lane_B & (lane_B - 1)) != 0 || base % 8 != 0)
        return false;
    if (size_B < need_B || size_B > dev->vram.size_B || base > dev->vram.size_B - size_B)
        return false;
    hw_cu_set_scratch(dev->cus, (uint8_t *)dev->vram.cpu + base, (uint32_t)lane_B);
    return true;
}

static bool cp_dispatch_shape_ok(const struct petrel_dispatch *d)
{
    uint64_t items = (uint64_t)d->block[0] * d->block[1]; /* may not overflow even with all bits set */
    if (d->block[0] > 1024 || d->block[1] > 1024 || d->block[2] > 1024 || d->flags != 0)
        return false;
    items *= d->block[2];
    return items >= 1 && items <= 1024 && d->grid[0] && d->grid[1] && d->grid[2];
}

static void cp_run_CODE(struct hw_ring *ring)
{
    static const uint64_t none[2];
    struct petrel_code c;

    memcpy(&c, &ring->packet[1], sizeof(c));
    if (c.tls_B > PETREL_TLS_MAX_B || c.tls_file_B > c.tls_B || c.tls_align > PETREL_TLS_ALIGN_MAX || (c.tls_align & (c.tls_align - 1)) ||
        c.tls_va > UINT64_MAX - c.tls_file_B || c.notes_B > PETREL_NOTES_MAX_B || c.notes_va % 4 != 0 || c.notes_va > UINT64_MAX - c.notes_B ||
        memcmp(c.reserved, none, sizeof(none)) != 0) {
        cp_malformed(ring);
        return;
    }
    ring->code = c;
}

static void cp_run_DISPATCH(struct hw_ring *ring)
{
    struct hw_device *dev = ring->dev;
    struct petrel_dispatch d;
    memcpy(&d, &ring->packet[1], sizeof(d));
    if (!cp_dispatch_shape_ok(&d)) {
        cp_malformed(ring);
        return;
    }
    if (cp_engine_breaks(ring, false))
        return;
    struct hw_cu_fault fault = { .fault = PETREL_FAULT_RESOURCES, .pc = d.entry_va };
    struct hw_cu_sabotage sabotage = cp_sabotage(ring);
    hw_cu_set_functional(dev->cus, hw_reg(dev, HW_REG_FUNCTIONAL) & 1u);
    hw_cu_set_code(dev->cus, &ring->code);
    if (!cp_set_scratch(dev) || !hw_cu_start(dev->cus, &d, ring->root, &sabotage, &fault)) {
        hw_ring_fault(ring, &fault);
        return;
    }
    hw_ring_charge(ring, dev->profile.launch_clk);
    ring->state = HW_STATE_DISPATCH;
}

/* ---- Parsing ---- */

#define CP_PHYS_OF(op_)                                                                                             \
    ((op_) == PETREL_OP_INDIRECT || (op_) == PETREL_OP_COPY || (op_) == PETREL_OP_FILL || (op_) == PETREL_OP_WRITE || \
     (op_) == PETREL_OP_TIMESTAMP || (op_) == PETREL_OP_WAIT)

static const struct cp_op cp_ops[256] = {
#define PKT(name_, op_, count_, rings_, priv_, text_)                                                            \
    [op_] = { .name = #name_, .run = cp_run_##name_, .count = (count_), .rings = CP_RINGS_##rings_, .known = true, \
              .privileged = (priv_), .phys = CP_PHYS_OF(op_) },
    PETREL_PACKETS(PKT)
#undef PKT
};
#define PKT(name_, op_, count_, ...) \
    _Static_assert((count_) < sizeof(((struct hw_ring *)0)->packet) / 4, "packet " #name_ " does not fit");
PETREL_PACKETS(PKT)
#undef PKT

/* One dword of the ring or indirect buffer. False: the ring was stopped. */
static bool cp_fetch_dword(struct hw_ring *ring, uint32_t ahead, uint32_t *v_out)
{
    struct hw_device *dev = ring->dev;
    uint64_t run_B, root = HW_ROOT_PHYS, va;
    bool system;
    uint32_t fault;
    if (ring->in_ib) {
        root = ring->ib_root;
        va = ring->ib_va + 4ull * (ring->ib_pos + ahead);
    } else {
        const uint32_t size_dw = (uint32_t)hw_ring_reg(ring, HW_RING_SIZE_DW);
        const uint32_t at = (uint32_t)hw_ring_reg(ring, HW_RING_RPTR) + ahead;
        va = (hw_ring_reg(ring, HW_RING_BASE) & ~3ull) + 4ull * (at & (size_dw - 1));
    }
    const uint8_t *from = hw_mmu_ptr(dev, root, va, PETREL_ACCESS_READ, &run_B, &system, &fault);
    if (!from) {
        cp_mem_fault(ring, fault, va, PETREL_ACCESS_READ);
        return false;
    }
    *v_out = __atomic_load_n((const uint32_t *)from, __ATOMIC_RELAXED);
    return true;
}

/* Dwords that the driver has published from the packet's header on. */
static uint32_t cp_available(const struct hw_ring *ring)
{
    if (ring->in_ib)
        return ring->ib_dw - ring->ib_pos;
    return (uint32_t)hw_ring_reg(ring, HW_RING_WPTR) - (uint32_t)hw_ring_reg(ring, HW_RING_RPTR);
}

static bool cp_header_ok(const struct hw_ring *ring, const struct cp_op *op, uint32_t available)
{
    const uint32_t header = ring->packet[0], flags = CP_FLAGS(header);
    if (!op->known || !(op->rings & 1u << ring->index) || PETREL_PKT_COUNT(header) != op->count || available < 1u + op->count)
        return false;
    if (flags & ~(op->phys ? CP_FLAG_PHYS : 0u))
        return false;
    return !ring->in_ib || (!op->privileged && flags == 0);
}

static void cp_step_fetch(struct hw_ring *ring)
{
    struct umd_fault_hit hit;
    const uint32_t size_dw = (uint32_t)hw_ring_reg(ring, HW_RING_SIZE_DW), available = cp_available(ring);
    ring->packet[0] = 0;
    if (!ring->in_ib && ((size_dw & (size_dw - 1)) != 0 || available > size_dw)) {
        cp_malformed(ring); /* more than the ring holds, or no power of two: nothing there can be trusted */
        return;
    }
    if (ring->index == PETREL_RING_COMPUTE0 && umd_fault(UMD_FAULT_HW_CP_HANG, (struct umd_fault_where){ .ctx = ring->vmid }, &hit)) {
        ring->state = HW_STATE_HUNG;
        return;
    }
    if (!cp_fetch_dword(ring, 0, &ring->packet[0]))
        return;
    const struct cp_op *op = &cp_ops[PETREL_PKT_OP(ring->packet[0])];
    hw_ring_charge(ring, ring->dev->profile.packet_clk);
    if (!cp_header_ok(ring, op, available)) {
        cp_malformed(ring);
        return;
    }
    for (uint32_t i = 1; i <= op->count; i++) {
        if (!cp_fetch_dword(ring, i, &ring->packet[i]))
            return;
    }
    const bool was_in_ib = ring->in_ib;
    if (PETREL_PKT_OP(ring->packet[0]) == PETREL_OP_SET_CONTEXT)
        umd_record_set_context(cp_field64(ring, 7)); /* a job begins, with this line; device_slice puts the caller's back */
    UMD_LOG(UMD_LOG_TRACE, "packet %s ring=%u at=%u ib=%d", op->name, ring->index, cp_packet_at(ring), was_in_ib);
    op->run(ring);
    const bool entered_ib = ring->in_ib && !was_in_ib;
    if (ring->state == HW_STATE_FETCH && hw_ring_reg(ring, HW_RING_FAULT) == PETREL_FAULT_NONE && !entered_ib)
        hw_ring_retire(ring);
}

/* ---- Work in slices ---- */

/* Moves what the compute units counted into the ring's registers. */
static void cp_publish_counters(struct hw_ring *ring)
{
    struct hw_device *dev = ring->dev;
    struct hw_cu_counters counters;
    hw_cu_get_counters(dev->cus, &counters);
    atomic_fetch_add(&ring->regs[HW_RING_INSTR], counters.warp_instr - dev->cu_instr_seen);
    atomic_fetch_add(&ring->regs[HW_RING_PROGRESS], counters.workgroups - dev->cu_groups_seen);
    dev->cu_instr_seen = counters.warp_instr;
    dev->cu_groups_seen = counters.workgroups;
}

static void cp_step_dispatch(struct hw_ring *ring, uint64_t end_ns)
{
    struct hw_device *dev = ring->dev;
    struct hw_cu_fault fault = { 0 };
    uint64_t cycles = 0;
    const uint64_t budget = hw_ns_to_cycles(dev->profile.clock_khz, end_ns > ring->t_ns ? end_ns - ring->t_ns : 0);
    enum hw_cu_state state = hw_cu_run(dev->cus, budget, &cycles, &fault);
    if (state == HW_CU_RUNNING && cycles == 0)
        cycles = budget; /* time must not stand still */
    hw_ring_charge(ring, cycles);
    cp_publish_counters(ring);
    if (dev->last_store_ns < ring->t_ns)
        dev->last_store_ns = ring->t_ns;
    switch (state) {
    case HW_CU_RUNNING:
        break;
    case HW_CU_IDLE:
    case HW_CU_DONE:
        hw_ring_retire(ring);
        break;
    case HW_CU_FAULTED:
        hw_ring_fault(ring, &fault);
        break;
    case HW_CU_HUNG:
        ring->state = HW_STATE_HUNG;
        break;
    }
}

/* Semaphore reached? A wait that cannot be translated any more is ready too: it will fault. */
static bool cp_wait_over(const struct hw_ring *ring)
{
    uint64_t run_B;
    bool system;
    uint32_t fault;
    const uint8_t *at = hw_mmu_ptr(ring->dev, ring->wait_root, ring->wait_va, PETREL_ACCESS_READ, &run_B, &system, &fault);
    return !at || __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE) >= ring->wait_ref;
}

bool hw_ring_runnable(struct hw_ring *ring)
{
    if (hw_reg(ring->dev, HW_REG_FW_STATUS) != PETREL_FW_READY || hw_ring_reg(ring, HW_RING_SIZE_DW) == 0)
        return false;
    if (hw_ring_reg(ring, HW_RING_FAULT) != PETREL_FAULT_NONE || hw_ring_reg(ring, HW_RING_PREEMPT) == 2)
        return false;
    switch (ring->state) {
    case HW_STATE_FETCH:
        return ring->in_ib || hw_ring_reg(ring, HW_RING_RPTR) != hw_ring_reg(ring, HW_RING_WPTR);
    case HW_STATE_DISPATCH:
    case HW_STATE_COPY:
        return true;
    case HW_STATE_WAIT:
        return cp_wait_over(ring);
    case HW_STATE_HUNG:
        break;
    }
    return false;
}

bool hw_ring_polls(const struct hw_ring *ring)
{
    return ring->state == HW_STATE_WAIT && hw_ring_reg(ring, HW_RING_PREEMPT) != 2;
}

void hw_ring_step(struct hw_ring *ring, uint64_t end_ns)
{
    switch (ring->state) {
    case HW_STATE_FETCH:
        cp_step_fetch(ring);
        break;
    case HW_STATE_DISPATCH:
        cp_step_dispatch(ring, end_ns);
        break;
    case HW_STATE_COPY:
        hw_sdma_run(ring, end_ns);
        break;
    case HW_STATE_WAIT:
        cp_poll_wait(ring);
        if (ring->state == HW_STATE_FETCH && hw_ring_reg(ring, HW_RING_FAULT) == PETREL_FAULT_NONE)
            hw_ring_retire(ring);
        break;
    case HW_STATE_HUNG:
        break;
    }
}

void hw_ring_service_preempt(struct hw_ring *ring)
{
    struct hw_cu_fault where = { 0 };
    uint64_t asked = 1;
    if (hw_ring_reg(ring, HW_RING_PREEMPT) != asked)
        return;
    bool answers = ring->state != HW_STATE_HUNG;
    if (ring->index == PETREL_RING_COMPUTE0 && (ring->state == HW_STATE_DISPATCH || ring->state == HW_STATE_HUNG))
        answers &= hw_cu_probe(ring->dev->cus, &where);
    if (hw_ring_reg(ring, HW_RING_FAULT) == PETREL_FAULT_NONE)
        ring_latch(ring, &where);
    if (!answers)
        return;
    if (!atomic_compare_exchange_strong(&ring->regs[HW_RING_PREEMPT], &asked, 2))
        return; /* taken back meanwhile */
    if (ring->t_ns < hw_clock_now(&ring->dev->clock))
        ring->t_ns = hw_clock_now(&ring->dev->clock);
    ring_raise(ring, PETREL_IRQ_PREEMPTED, 0);
}
