/* SPDX-License-Identifier: MIT */
/* log_ring.h - one ring of encoded log entries per thread: one producer, one consumer, no lock. */
#ifndef UMD_LOG_RING_H
#define UMD_LOG_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <umd/umd_log.h>

#define UMD_RING_B 524288u  /* a power of two: some 9,000 short entries */
#define UMD_RING_CROWDED_B (UMD_RING_B / 4) /* so much in it calls for the writer; the rest is for the time until it comes */

/* In the ring, 8-byte aligned, its payload behind it. Of a pad only size_B and site_id count. */
struct umd_log_entry {
    uint32_t size_B;            /* with payload, rounded up to 8 */
    uint32_t site_id;           /* or one of the below */
    uint64_t stamp;
    uint64_t context_id;
    uint32_t depth;
    uint32_t payload_B;         /* of a site: the encoded arguments; of a text: struct umd_log_entry_text and its strings */
};
#define UMD_ENTRY_PAD 0u
#define UMD_ENTRY_TEXT UINT32_MAX

/* Behind an entry of text; behind it module, func, file, trace id and message, each ended. */
struct umd_log_entry_text {
    umdRecordId record;
    int32_t code;
    uint32_t line;
    uint32_t level;
    uint32_t reserved;
};

struct umd_log_ring {
    _Atomic(uint64_t) head;     /* producer's: bytes ever put */
    uint64_t limit;             /* producer's: head may go so far without a look at tail; never beyond the end of data */
    bool crowded;               /* producer's: rather full when it last looked, so the writer should not sleep on */
    uint32_t tid;               /* of the producer */
    _Atomic(bool) orphan;
    struct umd_log_ring *next;  /* the drain's */
    _Alignas(64) _Atomic(uint64_t) tail; /* consumer's */
    uint64_t seen_head;         /* consumer's: entries up to here are known to be whole */
    const struct umd_log_entry *front; /* consumer's: oldest entry, NULL: none before seen_head */
    _Alignas(64) uint8_t data[UMD_RING_B];
};

/* Producer: room for an entry of size_B (a multiple of 8) in one piece, which umd_log_ring_commit makes visible. NULL: no room; not counted. */
static inline struct umd_log_entry *umd_log_ring_at(struct umd_log_ring *ring, uint64_t head)
{
    return (struct umd_log_entry *)(ring->data + (head & (UMD_RING_B - 1)));
}
struct umd_log_entry *umd_log_ring_reserve_slow(struct umd_log_ring *ring, uint32_t size_B);
static inline struct umd_log_entry *umd_log_ring_reserve(struct umd_log_ring *ring, uint32_t size_B)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

    if (__builtin_expect(head + size_B > ring->limit, 0))
        return umd_log_ring_reserve_slow(ring, size_B);
    return umd_log_ring_at(ring, head);
}
static inline void umd_log_ring_commit(struct umd_log_ring *ring, uint32_t size_B)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    atomic_store_explicit(&ring->head, head + size_B, memory_order_release);
}

/* Consumer: what is in the ring now; then front is the oldest entry. */
void umd_log_ring_look(struct umd_log_ring *ring);
/* Consumer: done with front; the next one of what was seen takes its place. */
void umd_log_ring_take(struct umd_log_ring *ring);

/* The list of all rings. Push from any thread; the rest under the drain lock. */
struct umd_log_ring *umd_log_ring_create(void);
struct umd_log_ring *umd_log_ring_first(void);
/* No ring holds anything, at this moment. */
bool umd_log_rings_empty(void);
void umd_log_ring_reap(void);
/* Entries for which there was no room, in any ring. */
void umd_log_count_dropped(void);
uint64_t umd_log_dropped(void);
/* In a forked child: forgets what the parent will write. */
void umd_log_ring_child(struct umd_log_ring *own);

/*
 * For a crash: hands out at most max entries that nobody has taken yet, ring by ring, oldest first, and takes none. Memory is read by
 * `peek`, which may refuse an address; one caller at a time; async-signal-safe.
 */
void umd_log_ring_each_left(bool (*peek)(void *to, const void *from, size_t n),
                            void (*fn)(void *arg, uint32_t tid, const struct umd_log_entry *e, const uint8_t *payload), void *arg, uint32_t max);

#endif
