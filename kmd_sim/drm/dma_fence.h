/* SPDX-License-Identifier: MIT */
/* dma_fence.h - "some work is done, or never will be": counted objects that signal once, with an error or without. */
#ifndef DRM_DMA_FENCE_H
#define DRM_DMA_FENCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sys.h"

/** What all fences and syncobjs of a device share. Rank 66: taken last; callbacks run without it. */
struct dma_fence_domain {
    struct umd_mutex lock;
    struct umd_cond cond;      /**< broadcast whenever a fence signals or a syncobj changes */
    void (*published)(struct dma_fence_domain *domain); /**< a syncobj got a fence; called without locks; may be NULL */
};
void dma_fence_domain_init(struct dma_fence_domain *domain);
void dma_fence_domain_fini(struct dma_fence_domain *domain);

struct dma_fence;
struct dma_fence_ops {
    const char *name;
    void (*release)(struct dma_fence *fence);
};

/** A request to be called when a fence signals. Its owner keeps it alive until it was called or removed. */
struct dma_fence_cb {
    struct dma_fence_cb *next;
    void (*func)(struct dma_fence *fence, struct dma_fence_cb *cb);
};

struct dma_fence {
    const struct dma_fence_ops *ops;
    struct dma_fence_domain *domain;
    struct dma_fence_cb *callbacks;  /**< domain->lock */
    uint64_t timestamp_ns;           /**< of the signal, in the signaller's clock */
    _Atomic(uint32_t) refs;
    _Atomic(bool) signalled;
    int error;                       /**< 0 or -errno; final once signalled */
};

void dma_fence_init(struct dma_fence *fence, struct dma_fence_domain *domain, const struct dma_fence_ops *ops);
struct dma_fence *dma_fence_get(struct dma_fence *fence);
/** NULL is fine. May release the fence: hold no lock above rank 60. */
void dma_fence_put(struct dma_fence *fence);
/** Signals once; later calls do nothing. Runs the callbacks on this thread, so hold no lock that they take. */
void dma_fence_signal(struct dma_fence *fence, int error, uint64_t timestamp_ns);
/** False when the fence had signalled already: func will not be called. */
bool dma_fence_add_callback(struct dma_fence *fence, struct dma_fence_cb *cb, void (*func)(struct dma_fence *, struct dma_fence_cb *));
/** True: it will not be called. False: it has been, or is being called now. */
bool dma_fence_remove_callback(struct dma_fence *fence, struct dma_fence_cb *cb);
static inline bool dma_fence_is_signalled(const struct dma_fence *fence)
{
    return atomic_load_explicit(&fence->signalled, memory_order_acquire);
}
/** The fence whose error and owner count: behind a timeline point, the work's own. Borrowed. */
struct dma_fence *dma_fence_inner(struct dma_fence *fence);
/** A fence that has signalled from the start; NULL with a record when memory is short. */
struct dma_fence *dma_fence_stub_create(struct dma_fence_domain *domain);

/*
 * Timeline point: signals when its fence and every point before it have. Points before it that have signalled well are
 * dropped, so a long timeline costs what is in flight; failed ones are kept, so that a late wait still learns of them.
 */
struct dma_fence_chain;
struct dma_fence_chain *dma_fence_chain_alloc(void); /**< NULL with a record */
void dma_fence_chain_free(struct dma_fence_chain *chain); /**< one that was never initialised */
/** domain->lock held. Takes the reference of fence; prev is borrowed. The point is raised to prev's if lower. Cannot fail; activate it after the lock. */
struct dma_fence *dma_fence_chain_init_locked(struct dma_fence_chain *chain, struct dma_fence *prev, struct dma_fence *fence, uint64_t point);
void dma_fence_chain_activate(struct dma_fence_chain *chain);
/** NULL if the fence is no timeline point. */
struct dma_fence_chain *dma_fence_to_chain(struct dma_fence *fence);
uint64_t dma_fence_chain_point(const struct dma_fence_chain *chain);
/** First point at or after `point`: false when the timeline has not got there. *fence_out: a new reference, or NULL: it had signalled well and is gone. */
bool dma_fence_chain_find_locked(struct dma_fence_chain *head, uint64_t point, struct dma_fence **fence_out);
/** Last point that has signalled. */
uint64_t dma_fence_chain_query(struct dma_fence_chain *head);

#endif
