/* SPDX-License-Identifier: MIT */
/* log_ring.h - one ring of encoded log entries per thread: one producer, one consumer, no lock. */
#ifndef UMD_LOG_RING_H
#define UMD_LOG_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <umd/umd_log.h>

#define UMD_RING_B 524288u  /* a power of two: some 16,000 short entries */
#define UMD_RING_CROWDED_B (UMD_RING_B / 4) /* so much in it calls for the writer; the rest is for the time until it comes */

/*
 * An entry as it lies in the ring: whole words of 8 bytes, as few as can be, since each line of the cache that a call fills was last read by the
 * writer's core and has to come back from there. The first word:
 *   bits  0 to 19  number of the call site, or one of UMD_ENTRY_ below
 *   bits 20 to 27  words of the entry, this one too; the others are the arguments. 0: a long entry, whose second word has its size in bytes
 *                  (lower half, rounded up) and that of its payload (upper half)
 *   bits 28 to 33  depth of public calls; 63: so many or more
 *   bits 34 to 63  time since the entry before, in units of four stamps
 * What seldom changes is an entry of its own, for all that come behind it: UMD_ENTRY_WHERE and UMD_ENTRY_TRACE.
 */
#define UMD_ENTRY_WORDS_AT 20
#define UMD_ENTRY_DEPTH_AT 28
#define UMD_ENTRY_TIME_AT 34
#define UMD_ENTRY_WORDS_MAX 255u
#define UMD_ENTRY_DEPTH_MAX 63u
#define UMD_ENTRY_STAMP(stamp_) ((stamp_) & ~(uint64_t)3)
/* The time since then does not fit into an entry. */
#define UMD_ENTRY_LATE(since_) ((since_) >> 32)

#define UMD_ENTRY_PAD 0u        /* to the end of data */
#define UMD_ENTRY_SITE_MAX 0xfffefu
#define UMD_ENTRY_WHERE 0xffffdu /* struct umd_log_entry_where */
#define UMD_ENTRY_TRACE 0xffffeu /* struct umd_log_trace_ids */
#define UMD_ENTRY_TEXT 0xfffffu /* struct umd_log_entry_text; behind it module, func, file, trace id and message, each ended */

struct umd_log_entry_where {
    uint64_t stamp, context_id;
};
/* Trace context of a thread; trace_id "": none of its own. */
struct umd_log_trace_ids {
    char trace_id[33], span_id[17], flags[3], reserved[3];
};
struct umd_log_entry_text {
    uint64_t context_id;
    umdRecordId record;
    int32_t code;
    uint32_t line;
    uint32_t level;
    uint32_t reserved;
};

/* An entry as the consumer sees it. */
struct umd_log_entry {
    uint32_t site_id;           /* or UMD_ENTRY_TEXT */
    uint32_t depth;
    uint64_t stamp;
    uint64_t context_id;        /* of a text its own counts */
    uint32_t size_B;            /* in the ring */
    uint32_t payload_B;
    const uint8_t *payload;
};

/*
 * Where an entry that the consumer took begins: entries can only be read in their order, and from a mark on those that were taken can be
 * read once more, as long as nothing was written over them. at is invalid (UINT64_MAX) while the others change.
 */
struct umd_log_ring_mark {
    _Atomic(uint64_t) at;
    uint64_t stamp, context_id; /* of what comes before it */
};
#define UMD_RING_MARKS 64u
#define UMD_RING_MARK_EACH 16u  /* entries */

struct umd_log_ring {
    /* Producer's alone: on a line that no other thread reads, so that it is there when a call comes. */
    uint64_t at;                /* as head */
    uint64_t limit;             /* at may go so far without a look at tail; never beyond the end of data */
    uint64_t stamp;             /* of the last entry */
    uint64_t context_id;        /* as the last UMD_ENTRY_WHERE said */
    bool crowded;               /* rather full when it last looked, so the writer should not sleep on */
    struct umd_log_trace_ids trace; /* as the last UMD_ENTRY_TRACE said */
    /* Both sides'. */
    _Alignas(64) _Atomic(uint64_t) head; /* bytes ever put */
    uint32_t tid;               /* of the producer */
    _Atomic(bool) orphan;
    struct umd_log_ring *next;  /* the drain's */
    void *block;                /* of memory, in which the ring lies at a line's begin */
    /* Consumer's. */
    _Alignas(64) _Atomic(uint64_t) tail;
    uint64_t seen_head;         /* entries up to here are known to be whole */
    uint64_t tail_stamp, tail_context; /* of what comes before tail */
    bool has_front;
    struct umd_log_entry front; /* the oldest entry, at tail */
    struct umd_log_trace_ids front_trace;
    uint64_t taken;             /* entries */
    struct umd_log_ring_mark marks[UMD_RING_MARKS]; /* round and round; for a crash */
    _Alignas(64) uint8_t data[UMD_RING_B];
};

static inline uint64_t *umd_log_ring_at(struct umd_log_ring *ring, uint64_t at) { return (uint64_t *)(ring->data + (at & (UMD_RING_B - 1))); }

/* Producer: room for an entry of size_B (a multiple of 8) in one piece, which umd_log_ring_commit makes visible. NULL: no room; not counted. */
uint64_t *umd_log_ring_reserve_slow(struct umd_log_ring *ring, uint32_t size_B);
static inline uint64_t *umd_log_ring_reserve(struct umd_log_ring *ring, uint32_t size_B)
{
    if (__builtin_expect(ring->at + size_B > ring->limit, 0))
        return umd_log_ring_reserve_slow(ring, size_B);
    return umd_log_ring_at(ring, ring->at);
}
static inline void umd_log_ring_commit(struct umd_log_ring *ring, uint32_t size_B)
{
    ring->at += size_B;
    atomic_store_explicit(&ring->head, ring->at, memory_order_release);
}
/* Producer: the first word of an entry. stamp: not more than UMD_ENTRY_LATE allows behind the one before, which it becomes. */
static inline uint64_t umd_log_ring_word(struct umd_log_ring *ring, uint32_t site_id, uint32_t words, uint32_t depth, uint64_t stamp)
{
    uint64_t since = stamp - ring->stamp;

    ring->stamp = stamp;
    depth = depth < UMD_ENTRY_DEPTH_MAX ? depth : UMD_ENTRY_DEPTH_MAX;
    return site_id | (uint64_t)words << UMD_ENTRY_WORDS_AT | (uint64_t)depth << UMD_ENTRY_DEPTH_AT | since >> 2 << UMD_ENTRY_TIME_AT;
}
/*
 * Producer: asks for the lines of the cache that the next calls will write, since the writer's core has them. To be written: a fetch for reading
 * would leave it a copy, so that the write still had to wait. (GCC makes one of __builtin_prefetch(p, 1), as long as it is not told of -mprfchw;
 * a processor without the instruction does nothing.)
 */
static inline void umd_log_ring_fetch_ahead(const uint64_t *to)
{
    const char *ahead = (const char *)to + 256;
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*ahead));
#else
    __builtin_prefetch(ahead, 1);
#endif
}
/* Producer: puts what has changed since the last entry and is not in each: time after a long pause, context, trace. False: no room. */
bool umd_log_ring_settle(struct umd_log_ring *ring, uint64_t stamp, uint64_t context_id, const struct umd_log_trace_ids *trace);
/* Producer: room for a long entry, head and all but its payload written; *size_out is for the commit. NULL: no room. */
uint8_t *umd_log_ring_reserve_long(struct umd_log_ring *ring, uint32_t site_id, uint32_t depth, uint64_t stamp, uint32_t payload_B, uint32_t *size_out);

/* Size and payload of the entry at `word`, of which so many bytes can be read; its stamp, after the one before. False: it makes no sense. */
bool umd_log_ring_decode(const uint64_t word[2], const uint64_t *at, uint32_t room, uint64_t before, struct umd_log_entry *e);
/* Consumer: what is in the ring now; if has_front, then front is the oldest entry. */
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
 * For a crash: hands out the newest lines of each ring, oldest first, and takes none: those that the consumer has not taken, and those that it
 * has, as far back as marks reach and nothing was written over them. At most max of all rings together, but 64 of each. Other threads may go on
 * logging and draining. Memory is read by `peek`, which may refuse an address; one caller at a time; async-signal-safe.
 */
typedef bool (*umd_log_peek_fn)(void *to, const void *from, size_t n);
typedef void (*umd_log_line_fn)(void *arg, uint32_t tid, bool taken, const struct umd_log_entry *e);
void umd_log_ring_each_last(umd_log_peek_fn peek, umd_log_line_fn fn, void *arg, uint32_t max);

#endif
