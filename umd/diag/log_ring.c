/* SPDX-License-Identifier: MIT */
/* log_ring.c - one ring of encoded log entries per thread: one producer, one consumer, no lock. */
#include <string.h>

#include "log_internal.h"
#include "log_ring.h"
#include "stamp.h"

#define LINE_B 64u      /* of the cache */

static _Atomic(struct umd_log_ring *) rings;
static _Atomic(uint64_t) dropped;

/* ---- Producer ---- */

/* Sets the limit anew. A crowded ring passes here with each entry. */
uint64_t *umd_log_ring_reserve_slow(struct umd_log_ring *ring, uint32_t size_B)
{
    uint64_t at = ring->at, tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    uint64_t data_end = (at | (UMD_RING_B - 1)) + 1;

    if (at + size_B > data_end) { /* entries lie in one piece */
        if (data_end + size_B - tail > UMD_RING_B)
            return NULL;
        uint64_t *pad = umd_log_ring_at(ring, at), words = (data_end - at) / 8;
        pad[0] = UMD_ENTRY_PAD | (words <= UMD_ENTRY_WORDS_MAX ? words : 0) << UMD_ENTRY_WORDS_AT;
        if (words > UMD_ENTRY_WORDS_MAX)
            pad[1] = data_end - at;
        umd_log_ring_commit(ring, (uint32_t)(data_end - at));
        at = data_end;
        data_end += UMD_RING_B;
    }
    if (at + size_B - tail > UMD_RING_B)
        return NULL;
    uint64_t calm = tail + UMD_RING_CROWDED_B, end;
    ring->crowded = at + size_B > calm;
    end = ring->crowded ? at + size_B : calm; /* crowded: looks again at each entry, until the writer has been */
    ring->limit = end < data_end ? end : data_end;
    return umd_log_ring_at(ring, at);
}

uint8_t *umd_log_ring_reserve_long(struct umd_log_ring *ring, uint32_t site_id, uint32_t depth, uint64_t stamp, uint32_t payload_B, uint32_t *size_out)
{
    uint32_t size_B = (16 + payload_B + 7) & ~7u;
    uint64_t *to = umd_log_ring_reserve(ring, size_B);

    if (!to)
        return NULL;
    to[0] = umd_log_ring_word(ring, site_id, 0, depth, stamp);
    to[1] = size_B | (uint64_t)payload_B << 32;
    *size_out = size_B;
    return (uint8_t *)(to + 2);
}

static bool put_state(struct umd_log_ring *ring, uint32_t kind, const void *bytes, uint32_t n)
{
    uint32_t size_B;
    uint8_t *to = umd_log_ring_reserve_long(ring, kind, 0, ring->stamp, n, &size_B);

    if (!to)
        return false;
    memcpy(to, bytes, n);
    umd_log_ring_commit(ring, size_B);
    return true;
}

bool umd_log_ring_settle(struct umd_log_ring *ring, uint64_t stamp, uint64_t context_id, const struct umd_log_trace_ids *trace)
{
    const struct umd_log_entry_where where = { .stamp = stamp, .context_id = context_id };

    if (context_id != ring->context_id || UMD_ENTRY_LATE(stamp - ring->stamp)) {
        if (!put_state(ring, UMD_ENTRY_WHERE, &where, sizeof(where)))
            return false;
        ring->context_id = context_id;
        ring->stamp = stamp;
    }
    if (memcmp(trace, &ring->trace, sizeof(*trace)) != 0) {
        if (!put_state(ring, UMD_ENTRY_TRACE, trace, sizeof(*trace)))
            return false;
        ring->trace = *trace;
    }
    return true;
}

/* ---- Consumer ---- */

bool umd_log_ring_decode(const uint64_t word[2], const uint64_t *at, uint32_t room, uint64_t before, struct umd_log_entry *e)
{
    uint32_t words = word[0] >> UMD_ENTRY_WORDS_AT & UMD_ENTRY_WORDS_MAX;

    e->site_id = word[0] & 0xfffffu;
    e->depth = word[0] >> UMD_ENTRY_DEPTH_AT & UMD_ENTRY_DEPTH_MAX;
    e->stamp = before + (word[0] >> UMD_ENTRY_TIME_AT << 2);
    e->size_B = words ? words * 8 : (uint32_t)word[1];
    e->payload_B = words ? words * 8 - 8 : e->site_id == UMD_ENTRY_PAD ? 0 : (uint32_t)(word[1] >> 32);
    e->payload = (const uint8_t *)(at + (words ? 1 : 2));
    return e->size_B >= (words ? 8u : 16u) && e->size_B % 8 == 0 && e->size_B <= room && e->payload_B <= e->size_B - (words ? 8u : 16u);
}

static void find_front(struct umd_log_ring *ring, uint64_t tail)
{
    struct umd_log_entry *e = &ring->front;
    struct umd_log_entry_where where;

    for (ring->has_front = false; tail != ring->seen_head; tail += e->size_B) {
        const uint64_t *at = umd_log_ring_at(ring, tail);
        if (!umd_log_ring_decode(at, at, UMD_RING_B, ring->tail_stamp, e)) { /* somebody wrote over it: what is there is given up, as one since nobody knows */
            umd_log_count_dropped();
            tail = ring->seen_head;
            break;
        }
        if (e->site_id == UMD_ENTRY_WHERE) {
            memcpy(&where, e->payload, sizeof(where));
            ring->tail_stamp = where.stamp;
            ring->tail_context = where.context_id;
        } else if (e->site_id == UMD_ENTRY_TRACE) {
            memcpy(&ring->front_trace, e->payload, sizeof(ring->front_trace));
        } else if (e->site_id != UMD_ENTRY_PAD) {
            e->context_id = ring->tail_context;
            ring->has_front = true;
            break;
        }
    }
    atomic_store_explicit(&ring->tail, tail, memory_order_release);
}

void umd_log_ring_look(struct umd_log_ring *ring)
{
    ring->seen_head = atomic_load_explicit(&ring->head, memory_order_acquire);
    find_front(ring, atomic_load_explicit(&ring->tail, memory_order_relaxed));
}

static void set_mark(struct umd_log_ring_mark *m, uint64_t at, uint64_t stamp, uint64_t context_id)
{
    atomic_store_explicit(&m->at, UINT64_MAX, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    m->stamp = stamp;
    m->context_id = context_id;
    atomic_store_explicit(&m->at, at, memory_order_release);
}

void umd_log_ring_take(struct umd_log_ring *ring)
{
    if (ring->taken++ % UMD_RING_MARK_EACH == 0)
        set_mark(&ring->marks[ring->taken / UMD_RING_MARK_EACH % UMD_RING_MARKS], atomic_load_explicit(&ring->tail, memory_order_relaxed),
                 ring->tail_stamp, ring->tail_context);
    ring->tail_stamp = ring->front.stamp;
    find_front(ring, atomic_load_explicit(&ring->tail, memory_order_relaxed) + ring->front.size_B);
}

static bool is_empty(const struct umd_log_ring *ring)
{
    return atomic_load_explicit(&ring->head, memory_order_acquire) == atomic_load_explicit(&ring->tail, memory_order_relaxed);
}

struct umd_log_ring *umd_log_ring_create(void)
{
    void *block = umd_diag_map(sizeof(struct umd_log_ring) + LINE_B); /* a signal handler may be the thread's first to log */
    struct umd_log_ring *ring = (struct umd_log_ring *)(((uintptr_t)block + LINE_B - 1) & ~(uintptr_t)(LINE_B - 1));

    if (!block)
        return NULL;
    ring->block = block;
    ring->tid = umd_sys()->tid();
    for (uint32_t i = 0; i < UMD_RING_MARKS; i++)
        atomic_store_explicit(&ring->marks[i].at, UINT64_MAX, memory_order_relaxed);
    ring->stamp = ring->tail_stamp = UMD_ENTRY_STAMP(umd_stamp());
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
    umd_log_drain_assert_held(); /* others free rings */
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
        umd_diag_unmap(r->block);
    }
    struct umd_log_ring *expected = first;
    if (dead(first) && atomic_compare_exchange_strong(&rings, &expected, first->next))
        umd_diag_unmap(first->block);
}

void umd_log_count_dropped(void) { atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed); }
uint64_t umd_log_dropped(void) { return atomic_load_explicit(&dropped, memory_order_relaxed); }

void umd_log_ring_child(struct umd_log_ring *own)
{
    for (struct umd_log_ring *r = umd_log_ring_first(); r; r = r->next) {
        atomic_store(&r->tail, atomic_load(&r->head));
        r->has_front = false;
        r->tail_stamp = r->stamp;
        r->tail_context = r->context_id;
        r->front_trace = r->trace;
        for (uint32_t i = 0; i < UMD_RING_MARKS; i++)
            atomic_store(&r->marks[i].at, UINT64_MAX);
        if (r == own)
            r->tid = umd_sys()->tid();
        else
            atomic_store(&r->orphan, true);
    }
}
