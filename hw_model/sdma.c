/* SPDX-License-Identifier: MIT */
/*
 * sdma.c - linear copies and fills in slices of device time. Simplified: engines do not compete for DRAM or the link; time is
 * the first access's latency plus bytes over the slowest part of the way.
 */
#include <assert.h>
#include <string.h>

#include "device.h"

#define SDMA_CHUNK_B 65536u   /* most that one translation moves before time is looked at */

void hw_sdma_start(struct hw_ring *ring)
{
    ring->copy.rate_rest = 0;
    if (ring->copy.left_B == 0)
        return; /* done as it stands */
    hw_ring_charge(ring, ring->dev->profile.cu.lat_dram);
    ring->state = HW_STATE_COPY;
}

/* Cycles that bytes take at a bandwidth; what is left of a cycle stays for the next chunk. */
static uint64_t sdma_cycles(struct hw_copy *copy, uint64_t bytes, uint32_t B_per_clk)
{
    uint64_t total = bytes + copy->rate_rest;
    copy->rate_rest = total % B_per_clk;
    return total / B_per_clk;
}

static uint64_t sdma_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A chunk may begin inside an element: phase says where. Eight bytes hold whole elements of every size. */
static void sdma_fill(uint8_t *to, uint64_t n, const struct hw_copy *copy, uint64_t phase)
{
    uint8_t pattern[4], word[8];
    uint64_t i = 0;
    memcpy(pattern, &copy->pattern, 4);
    for (unsigned b = 0; b < 8; b++)
        word[b] = pattern[(phase + b) % copy->element_B];
    for (; i + 8 <= n; i += 8)
        memcpy(to + i, word, 8);
    memcpy(to + i, word, n - i);
}

/* Stops the ring at the first byte that could not be reached. */
static void sdma_fault(struct hw_ring *ring, uint32_t fault, uint64_t va, enum petrel_access access)
{
    hw_ring_fault(ring, &(struct hw_cu_fault){ .fault = fault, .va = va, .info = PETREL_FAULT_INFO(access, 0, 0, 0),
                                               .data = ring->packet[0] });
}

static void sdma_progress(struct hw_ring *ring, uint64_t bytes)
{
    ring->copy.progress_rest_B += bytes;
    atomic_fetch_add(&ring->regs[HW_RING_PROGRESS], ring->copy.progress_rest_B / 1024);
    ring->copy.progress_rest_B %= 1024;
}

/* One run of pages on both sides, as much as fits into cycles. False: the ring stopped. */
static bool sdma_chunk(struct hw_ring *ring, uint64_t cycles)
{
    struct hw_copy *copy = &ring->copy;
    struct hw_device *dev = ring->dev;
    uint64_t src_run_B = UINT64_MAX, dst_run_B;
    bool src_system = false, dst_system;
    uint32_t fault;
    const uint8_t *from = NULL;
    if (!copy->fill) {
        from = hw_mmu_ptr(dev, copy->root, copy->src, PETREL_ACCESS_READ, &src_run_B, &src_system, &fault);
        if (!from) {
            sdma_fault(ring, fault, copy->src, PETREL_ACCESS_READ);
            return false;
        }
    }
    uint8_t *to = hw_mmu_ptr(dev, copy->root, copy->dst, PETREL_ACCESS_WRITE, &dst_run_B, &dst_system, &fault);
    if (!to) {
        sdma_fault(ring, fault, copy->dst, PETREL_ACCESS_WRITE);
        return false;
    }
    uint32_t rate = dev->profile.sdma_B_per_clk;
    if (src_system || dst_system)
        rate = (uint32_t)sdma_min(rate, dev->profile.link_B_per_clk);
    const uint64_t most_B = sdma_min(sdma_min(cycles, SDMA_CHUNK_B) * rate, SDMA_CHUNK_B);
    const uint64_t n = sdma_min(sdma_min(src_run_B, dst_run_B), sdma_min(most_B, copy->left_B));
    if (copy->fill)
        sdma_fill(to, n, copy, (uint64_t)-copy->left_B); /* left_B starts as a multiple of element_B */
    else
        memmove(to, from, n); /* two mappings of one page may meet */
    hw_ring_charge(ring, sdma_cycles(copy, n, rate));
    copy->src += n;
    copy->dst += n;
    copy->left_B -= n;
    sdma_progress(ring, n);
    if (copy->left_B == 0 && (src_system || dst_system))
        hw_ring_charge(ring, dev->profile.cu.lat_link); /* the last write is posted over the link and answered */
    return true;
}

void hw_sdma_run(struct hw_ring *ring, uint64_t end_ns)
{
    struct hw_copy *copy = &ring->copy;
    struct hw_device *dev = ring->dev;
    assert(copy->left_B > 0);
    do {
        const uint64_t cycles = hw_ns_to_cycles(dev->profile.clock_khz, end_ns > ring->t_ns ? end_ns - ring->t_ns : 0);
        if (!sdma_chunk(ring, cycles))
            return;
    } while (copy->left_B > 0 && ring->t_ns < end_ns);
    if (dev->last_store_ns < ring->t_ns)
        dev->last_store_ns = ring->t_ns;
    if (copy->left_B == 0)
        hw_ring_retire(ring);
}
