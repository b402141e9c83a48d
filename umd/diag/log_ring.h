/* SPDX-License-Identifier: MIT */
/* log_ring.h - one ring of encoded log entries per thread: one producer, one consumer, no lock. */
#ifndef UMD_LOG_RING_H
#define UMD_LOG_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <umd/umd_log.h>

#define UMD_RING_B 65536u

enum umd_log_kind { UMD_ENTRY_PAD, UMD_ENTRY_SITE, UMD_ENTRY_TEXT };

/* In the ring, 8-byte aligned, its payload behind it. A pad has size_B and kind only. */
struct umd_log_entry {
    uint32_t size_B;            /* with payload, rounded up to 8 */
    uint32_t kind;
    uint32_t payload_B;
    uint32_t tid, depth;
    int32_t code;
    uint64_t mono_ns;
    uint64_t context_id;
    const umdLogSite *site;     /* UMD_ENTRY_SITE: payload is the encoded arguments */
    umdRecordId record;
    uint32_t line;
    uint32_t level;             /* UMD_ENTRY_TEXT: payload is module, func, file, trace id and message, each ended */
};

struct umd_log_ring {
    _Atomic(uint64_t) head;     /* producer's: bytes ever put */
    _Atomic(uint64_t) dropped;
    _Atomic(bool) orphan;
    struct umd_log_ring *next;  /* the drain's */
    _Alignas(64) _Atomic(uint64_t) tail; /* consumer's */
    _Alignas(64) uint8_t data[UMD_RING_B];
};

/* Producer. False: no room, counted. */
bool umd_log_ring_put(struct umd_log_ring *ring, struct umd_log_entry *entry, const void *payload);
/* Consumer: the oldest entry, NULL when empty; stays until taken. */
const struct umd_log_entry *umd_log_ring_peek(struct umd_log_ring *ring);
void umd_log_ring_take(struct umd_log_ring *ring, const struct umd_log_entry *entry);
/* More than half full: the writer should not sleep on. */
bool umd_log_ring_crowded(struct umd_log_ring *ring);

/* The list of all rings. Push from any thread; the rest under the drain lock. */
struct umd_log_ring *umd_log_ring_create(void);
struct umd_log_ring *umd_log_ring_first(void);
void umd_log_ring_reap(void);
uint64_t umd_log_ring_dropped_total(void);
/* In a forked child: forgets what the parent will write. */
void umd_log_ring_child(struct umd_log_ring *own);

#endif
