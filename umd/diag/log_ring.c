/* SPDX-License-Identifier: MIT */
/* log_ring.c - one ring of encoded log entries per thread: one producer, one consumer, no lock. */
#include <string.h>

#include "log_internal.h"
#include "log_ring.h"

static _Atomic(struct umd_log_ring *) rings;
static _Atomic(uint64_t) dropped;

/* Sets the limit anew. A crowded ring passes here with each entry. */
struct umd_log_entry *umd_log_ring_reserve_slow(struct umd_log_ring *ring, uint32_t size_B)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    uint64_t data_end = (head | (UMD_RING_B - 1)) + 1;

    if (head + size_B > data_end) { /* entries lie in one piece */
        if (data_end + size_B - tail > UMD_RING_B)
            return NULL;
        struct umd_log_entry *pad = umd_log_ring_at(ring, head);
        pad->size_B = (uint32_t)(data_end - head);
        pad->site_id = UMD_ENTRY_PAD;
        head = data_end;
        data_end += UMD_RING_B;
        atomic_store_explicit(&ring->head, head, memory_order_release);
    }
    if (head + size_B - tail > UMD_RING_B)
        return NULL;
    uint64_t calm = tail + UMD_RING_CROWDED_B, end;
    ring->crowded = head + size_B > calm;
    end = ring->crowded ? head + size_B : calm; /* crowded: looks again at each entry, until the writer has been */
    ring->limit = end < data_end ? end : data_end;
    return umd_log_ring_at(ring, head);
}

static void find_front(struct umd_log_ring *ring, uint64_t tail)
{
    if (tail != ring->seen_head && umd_log_ring_at(ring, tail)->site_id == UMD_ENTRY_PAD)
        tail += umd_log_ring_at(ring, tail)->size_B;
    atomic_store_explicit(&ring->tail, tail, memory_order_release);
    ring->front = tail != ring->seen_head ? umd_log_ring_at(ring, tail) : NULL;
}

void umd_log_ring_look(struct umd_log_ring *ring)
{
    ring->seen_head = atomic_load_explicit(&ring->head, memory_order_acquire);
    find_front(ring, atomic_load_explicit(&ring->tail, memory_order_relaxed));
}

void umd_log_ring_take(struct umd_log_ring *ring)
{
    find_front(ring, atomic_load_explicit(&ring->tail, memory_order_relaxed) + ring->front->size_B);
}

static bool is_empty(const struct umd_log_ring *ring)
{
    return atomic_load_explicit(&ring->head, memory_order_acquire) == atomic_load_explicit(&ring->tail, memory_order_relaxed);
}

struct umd_log_ring *umd_log_ring_create(void)
{
    struct umd_log_ring *ring = umd_diag_alloc(sizeof(*ring));

    if (!ring)
        return NULL;
    ring->tid = umd_sys()->tid();
    for (size_t at = 0; at < sizeof(ring->data); at += 4096) /* page faults now, at the thread's first line, and not in its calls */
        ((volatile uint8_t *)ring->data)[at] = 0;
    struct umd_log_ring *first = atomic_load_explicit(&rings, memory_order_relaxed);
    do
        ring->next = first;
    while (!atomic_compare_exchange_weak_explicit(&rings, &first, ring, memory_order_release, memory_order_relaxed));
    return ring;
}

struct umd_log_ring *umd_log_ring_first(void) { return atomic_load_explicit(&rings, memory_order_acquire); }

bool umd_log_rings_empty(void)
{
    for (struct umd_log_ring *r = umd_log_ring_first(); r; r = r->next)
        if (!is_empty(r))
            return false;
    return true;
}

void umd_log_ring_orphan(struct umd_log_ring *ring) { atomic_store_explicit(&ring->orphan, true, memory_order_release); }

static bool dead(struct umd_log_ring *ring)
{
    /* Orphan first: what was put before it is then seen. */
    return atomic_load_explicit(&ring->orphan, memory_order_acquire) && is_empty(ring);
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
        umd_diag_free(r);
    }
    struct umd_log_ring *expected = first;
    if (dead(first) && atomic_compare_exchange_strong(&rings, &expected, first->next))
        umd_diag_free(first);
}

void umd_log_count_dropped(void) { atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed); }
uint64_t umd_log_dropped(void) { return atomic_load_explicit(&dropped, memory_order_relaxed); }

void umd_log_ring_child(struct umd_log_ring *own)
{
    for (struct umd_log_ring *r = umd_log_ring_first(); r; r = r->next) {
        atomic_store(&r->tail, atomic_load(&r->head));
        r->front = NULL;
        if (r == own)
            r->tid = umd_sys()->tid();
        else
            atomic_store(&r->orphan, true);
    }
}

void umd_log_ring_each_left(bool (*peek)(void *to, const void *from, size_t n),
                            void (*fn)(void *arg, uint32_t tid, const struct umd_log_entry *e, const uint8_t *payload), void *arg, uint32_t max)
{
    static uint8_t payload[4096];
    struct umd_log_entry e;
    uint64_t head, tail;
    uint32_t tid;

    for (struct umd_log_ring *r = umd_log_ring_first(), *next; r && peek(&next, &r->next, sizeof(next)); r = next) {
        if (!peek(&tail, &r->tail, sizeof(tail)) || !peek(&head, &r->head, sizeof(head)) || !peek(&tid, &r->tid, sizeof(tid)))
            return;
        while (tail < head && max) {
            const struct umd_log_entry *at = umd_log_ring_at(r, tail);
            uint32_t room = UMD_RING_B - (uint32_t)(tail & (UMD_RING_B - 1)), begin[2]; /* size_B and site_id: a pad may have no more */
            if (!peek(begin, at, sizeof(begin)) || begin[0] < sizeof(begin) || begin[0] > room)
                break;
            tail += begin[0];
            if (begin[1] == UMD_ENTRY_PAD)
                continue;
            if (begin[0] < sizeof(e) || !peek(&e, at, sizeof(e)) || e.payload_B > begin[0] - sizeof(e) || e.payload_B > sizeof(payload) ||
                !peek(payload, at + 1, e.payload_B))
                break;
            fn(arg, tid, &e, payload);
            max--;
        }
    }
}
