/* SPDX-License-Identifier: MIT */
/*
 * irq.c - drains the interrupt ring. The device calls once for every entry it writes; an entry that is found by a later call, or
 * by the heartbeat, had its interrupt lost.
 */
#include <string.h>

#include "kmd_priv.h"

UMD_LOG_MODULE("kmd.irq");

static void irq_lost_locked(struct petrel_device *dev, const struct petrel_ih_entry *entry, uint64_t now)
{
    struct petrel_ring *ring = &dev->rings[entry->ring % PETREL_RING_COUNT];
    struct petrel_job *job = ring->inflight.first;
    umdErrorDetail record;
    dev->irq_lost_count++;
    while (job && job->id != entry->job)
        job = job->next;
    PETREL_RAISE(&record, job ? job->context_id : 0, (umdRecordId){0}, UMD_ERR_HW_IRQ_LOST,
                 "ring=%u source=%u job=%" PRIu64 " queue=%" PRIu64 " cmdbuf=%" PRIu64 " signal_ns=%" PRIu64 " found_ns=%" PRIu64 " late_ns=%" PRIu64 " lost_count=%" PRIu64,
                 entry->ring, entry->source, entry->job, job ? job->queue_id : 0, job ? job->cmdbuf_id : 0, entry->time_ns, now,
                 now > entry->time_ns ? now - entry->time_ns : 0, dev->irq_lost_count);
    if (job) {
        job->irq_lost = true;
        petrel_event_job_locked(job, DRM_PETREL_EVENT_WARNING, 0, &record);
    } else {
        petrel_event_all_locked(dev, DRM_PETREL_EVENT_WARNING, &record);
    }
}

static void handle_locked(struct petrel_device *dev, const struct petrel_ih_entry *entry, struct petrel_after *after)
{
    struct petrel_ring *ring = &dev->rings[entry->ring % PETREL_RING_COUNT];
    switch (entry->source) {
    case PETREL_IRQ_FAULT:
        petrel_sched_reap_locked(dev, after);
        petrel_ring_faulted_locked(ring, after);
        break;
    case PETREL_IRQ_ECC:
        UMD_LOG(UMD_LOG_WARN, "memory error corrected addr=0x%" PRIx64, entry->data);
        break;
    case PETREL_IRQ_FENCE:      /* the fence memory says it all; the tick looks there */
    case PETREL_IRQ_TIMER:      /* a tick follows */
    case PETREL_IRQ_PREEMPTED:
        break;
    default:
        UMD_LOG(UMD_LOG_WARN, "interrupt of unknown source source=%u ring=%u", entry->source, entry->ring);
        break;
    }
}

/* Is there a later entry of the same kind in this batch? Then this one did not cause the call. */
static bool superseded(const struct petrel_device *dev, uint32_t at, uint32_t wptr)
{
    const struct petrel_ih_entry *entry = &dev->ih[at & (PETREL_IH_ENTRIES - 1)];
    for (uint32_t i = at + 1; i != wptr; i++) {
        const struct petrel_ih_entry *later = &dev->ih[i & (PETREL_IH_ENTRIES - 1)];
        if (later->source == entry->source && later->ring == entry->ring)
            return true;
    }
    return false;
}

/* What found no room may have been anything: the fences tell what is done, and each ring whether it faulted. */
static void irq_overflow_locked(struct petrel_device *dev, uint32_t wptr, struct petrel_after *after)
{
    umdErrorDetail record;
    hw_write32(dev->hw, PETREL_REGS_OFF_IH_STATUS, 1); /* before the look, so that what is lost from here on is told anew */
    dev->irq_overflow_count++;
    PETREL_RAISE(&record, 0, (umdRecordId){0}, UMD_ERR_HW_IRQ_OVERFLOW, "entries=%u wptr=%u overflow_count=%" PRIu64, PETREL_IH_ENTRIES, wptr, dev->irq_overflow_count);
    petrel_event_all_locked(dev, DRM_PETREL_EVENT_WARNING, &record);
    petrel_sched_reap_locked(dev, after);
    for (uint32_t i = 0; i < PETREL_RING_COUNT && !atomic_load(&dev->lost_code); i++)
        petrel_ring_faulted_locked(&dev->rings[i], after);
}

void petrel_irq_drain_locked(struct petrel_device *dev, bool from_irq, struct petrel_after *after)
{
    const uint32_t wptr = hw_read32(dev->hw, PETREL_REGS_OFF_IH_WPTR);
    const uint64_t now = petrel_now(dev);
    umd_mutex_assert_held(&dev->sched_lock);
    if (now == UINT64_MAX || wptr - dev->ih_rptr > PETREL_IH_ENTRIES)
        return; /* gone meanwhile; the next look at the bus tells */
    while (dev->ih_rptr != wptr) {
        const struct petrel_ih_entry entry = dev->ih[dev->ih_rptr & (PETREL_IH_ENTRIES - 1)];
        const bool late = now > entry.time_ns && now - entry.time_ns >= PETREL_IRQ_LATE_NS;
        if (!from_irq && !late)
            break; /* its interrupt is on the way */
        if ((late || (from_irq && superseded(dev, dev->ih_rptr, wptr))) && entry.source != PETREL_IRQ_TIMER)
            irq_lost_locked(dev, &entry, now);
        dev->ih_rptr++;
        handle_locked(dev, &entry, after);
        if (atomic_load(&dev->lost_code))
            return;
    }
    hw_write32(dev->hw, PETREL_REGS_OFF_IH_RPTR, dev->ih_rptr);
    const uint32_t status = hw_read32(dev->hw, PETREL_REGS_OFF_IH_STATUS);
    if (status != UINT32_MAX && (status & 1u)) /* all ones: off the bus */
        irq_overflow_locked(dev, wptr, after);
}

void petrel_irq(void *priv)
{
    struct petrel_device *dev = priv;
    /* Counted before the look, so that power-down can wait for the last one. */
    atomic_fetch_add(&dev->irqs_running, 1);
    if (atomic_load(&dev->ready))
        petrel_sched_tick(dev, true);
    atomic_fetch_sub(&dev->irqs_running, 1);
}
