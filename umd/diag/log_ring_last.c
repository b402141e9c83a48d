/* SPDX-License-Identifier: MIT */
/* log_ring_last.c - the newest log entries of a process that crashes, out of rings that others may still write to and drain. */
#include <string.h>

#include "log_ring.h"

#define RINGS_MAX 4096u     /* a list that was written over may have no end */
#define EACH_MIN 64u        /* of a thread, however many there are */
#define AHEAD_B 16384u      /* more than a producer has written and not told of yet, however a processor orders that */

/* Where an entry begins, and what was known before it. */
struct place {
    uint64_t at, stamp, context_id;
};

/*
 * A ring, copied at one go: it takes less time than going through it, in which others might write the whole of it anew. What was written over
 * while it was copied is known by what the ring says afterwards.
 */
static struct {
    struct umd_log_ring ring;
    uint64_t head_later, tail_later;
    struct umd_log_ring_mark marks_later[UMD_RING_MARKS];
} copy;

static bool take_copy(umd_log_peek_fn peek, const struct umd_log_ring *ring)
{
    return peek(&copy.ring, ring, sizeof(copy.ring)) && peek(copy.marks_later, ring->marks, sizeof(copy.marks_later)) &&
           peek(&copy.tail_later, &ring->tail, sizeof(copy.tail_later)) && peek(&copy.head_later, &ring->head, sizeof(copy.head_later));
}

static uint64_t value_of(const _Atomic(uint64_t) *v) { return atomic_load_explicit(v, memory_order_relaxed); }

/* The oldest place that reading can begin at. What the consumer had not taken when the copy was done is whole, whatever is ahead of the head. */
static bool begin(struct place *out)
{
    const uint64_t head = value_of(&copy.ring.head), tail = value_of(&copy.ring.tail);
    bool have = tail == copy.tail_later && tail < head;

    if (have)
        *out = (struct place){ .at = tail, .stamp = copy.ring.tail_stamp, .context_id = copy.ring.tail_context };
    for (uint32_t i = 0; i < UMD_RING_MARKS; i++) {
        const struct umd_log_ring_mark *m = &copy.ring.marks[i];
        uint64_t at = value_of(&m->at);
        if (at >= head || at != value_of(&copy.marks_later[i].at) || copy.head_later + AHEAD_B > at + UMD_RING_B || (have && at >= out->at))
            continue;
        *out = (struct place){ .at = at, .stamp = m->stamp, .context_id = m->context_id };
        have = true;
    }
    return have;
}

/* The next line from there on; *at_out is where it is. False: none. */
static bool next_line(struct place *p, struct umd_log_entry *e, uint64_t *at_out)
{
    struct umd_log_entry_where where;

    while (p->at < value_of(&copy.ring.head)) {
        const uint64_t *at = umd_log_ring_at(&copy.ring, p->at);
        const uint32_t room = UMD_RING_B - (uint32_t)(p->at & (UMD_RING_B - 1));
        const uint64_t word[2] = { at[0], room > 8 ? at[1] : 0 };
        if (!umd_log_ring_decode(word, at, room, p->stamp, e))
            return false;
        *at_out = p->at;
        p->at += e->size_B;
        if (e->site_id == UMD_ENTRY_WHERE && e->payload_B >= sizeof(where)) {
            memcpy(&where, e->payload, sizeof(where));
            p->stamp = where.stamp;
            p->context_id = where.context_id;
        } else if (e->site_id != UMD_ENTRY_WHERE && e->site_id != UMD_ENTRY_TRACE && e->site_id != UMD_ENTRY_PAD) {
            p->stamp = e->stamp;
            e->context_id = p->context_id;
            return true;
        }
    }
    return false;
}

static void each_of_copy(umd_log_line_fn fn, void *arg, uint32_t max)
{
    struct place from, p;
    struct umd_log_entry e;
    uint64_t at;
    uint32_t count = 0;

    if (!begin(&from))
        return;
    for (p = from; next_line(&p, &e, &at);)
        count++;
    for (p = from; next_line(&p, &e, &at); count--)
        if (count <= max)
            fn(arg, copy.ring.tid, at < value_of(&copy.ring.tail), &e);
}

void umd_log_ring_each_last(umd_log_peek_fn peek, umd_log_line_fn fn, void *arg, uint32_t max)
{
    struct umd_log_ring *r, *next;
    uint32_t rings = 0;

    for (r = umd_log_ring_first(); rings < RINGS_MAX && r && peek(&next, &r->next, sizeof(next)); r = next)
        rings++;
    if (rings)
        max = max / rings > EACH_MIN ? max / rings : EACH_MIN;
    for (r = umd_log_ring_first(); rings && r && take_copy(peek, r); r = copy.ring.next, rings--)
        each_of_copy(fn, arg, max);
}
