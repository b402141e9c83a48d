/* SPDX-License-Identifier: MIT */
/* log_ring.c - one ring of encoded log entries per thread: one producer, one consumer, no lock. */
#include <string.h>

#include "log_internal.h"
#include "log_ring.h"

static _Atomic(struct umd_log_ring *) rings;
static _Atomic(uint64_t) dropped_by_dead; /* of rings that are freed */

bool umd_log_ring_put(struct umd_log_ring *ring, struct umd_log_entry *entry, const void *payload)
{
    uint32_t size_B = (uint32_t)((sizeof(*entry) + entry->payload_B + 7) & ~(size_t)7);
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    uint32_t at = (uint32_t)(head % UMD_RING_B);
    uint32_t pad = at + size_B > UMD_RING_B ? UMD_RING_B - at : 0; /* entries lie in one piece */

    if (head + pad + size_B - tail > UMD_RING_B) {
        atomic_fetch_add_explicit(&ring->dropped, 1, memory_order_relaxed);
        return false;
    }
    if (pad) {
        const uint32_t pad_head[2] = { pad, UMD_ENTRY_PAD };
        memcpy(ring->data + at, pad_head, sizeof(pad_head));
        at = 0;
    }
    entry->size_B = size_B;
    memcpy(ring->data + at, entry, sizeof(*entry));
    memcpy(ring->data + at + sizeof(*entry), payload, entry->payload_B);
    atomic_store_explicit(&ring->head, head + pad + size_B, memory_order_release);
    return true;
}

const struct umd_log_entry *umd_log_ring_peek(struct umd_log_ring *ring)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);

    if (tail == head)
        return NULL;
    const uint32_t *front = (const uint32_t *)(ring->data + tail % UMD_RING_B);
    if (front[1] == UMD_ENTRY_PAD) {
        tail += front[0];
        atomic_store_explicit(&ring->tail, tail, memory_order_release);
    }
    return (const struct umd_log_entry *)(ring->data + tail % UMD_RING_B);
}

void umd_log_ring_take(struct umd_log_ring *ring, const struct umd_log_entry *entry)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

    atomic_store_explicit(&ring->tail, tail + entry->size_B, memory_order_release);
}

bool umd_log_ring_crowded(struct umd_log_ring *ring)
{
    return atomic_load_explicit(&ring->head, memory_order_relaxed) - atomic_load_explicit(&ring->tail, memory_order_relaxed) > UMD_RING_B / 2;
}

struct umd_log_ring *umd_log_ring_create(void)
{
    struct umd_log_ring *ring = umd_diag_alloc(sizeof(*ring));

    if (!ring)
        return NULL;
    struct umd_log_ring *first = atomic_load_explicit(&rings, memory_order_relaxed);
    do
        ring->next = first;
    while (!atomic_compare_exchange_weak_explicit(&rings, &first, ring, memory_order_release, memory_order_relaxed));
    return ring;
}

struct umd_log_ring *umd_log_ring_first(void) { return atomic_load_explicit(&rings, memory_order_acquire); }

void umd_log_ring_orphan(struct umd_log_ring *ring) { atomic_store_explicit(&ring->orphan, true, memory_order_release); }

static bool dead(struct umd_log_ring *ring)
{
    /* Orphan first: what was put before it is then seen. */
    return atomic_load_explicit(&ring->orphan, memory_order_acquire) && !umd_log_ring_peek(ring);
}

static void free_ring(struct umd_log_ring *ring)
{
    atomic_fetch_add(&dropped_by_dead, atomic_load(&ring->dropped));
    umd_diag_free(ring);
}

/* Only the head of the list changes under others' hands: pushes go there. */
void umd_log_ring_reap(void)
{
    struct umd_log_ring *first = umd_log_ring_first();

    if (!first)
        return;
    for (struct umd_log_ring *prev = first, *r = first->next; r; r = prev->next) {
        if (!dead(r)) {
            prev = r;
            continue;
        }
        prev->next = r->next;
        free_ring(r);
    }
    struct umd_log_ring *expected = first;
    if (dead(first) && atomic_compare_exchange_strong(&rings, &expected, first->next))
        free_ring(first);
}

uint64_t umd_log_ring_dropped_total(void)
{
    uint64_t total = atomic_load(&dropped_by_dead);

    for (struct umd_log_ring *r = umd_log_ring_first(); r; r = r->next)
        total += atomic_load_explicit(&r->dropped, memory_order_relaxed);
    return total;
}

void umd_log_ring_child(struct umd_log_ring *own)
{
    for (struct umd_log_ring *r = umd_log_ring_first(); r; r = r->next) {
        atomic_store(&r->tail, atomic_load(&r->head));
        if (r != own)
            atomic_store(&r->orphan, true);
    }
}
