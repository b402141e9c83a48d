/* SPDX-License-Identifier: MIT */
/* dma_fence.c - fences with callbacks, and the chain that makes timelines of them. */
#include <assert.h>
#include <stddef.h>

#include "dma_fence.h"
#include "record.h"

UMD_LOG_MODULE("kmd.fence");

#define CONTAINER_OF(ptr_, type_, member_) ((type_ *)(void *)((char *)(ptr_) - offsetof(type_, member_)))

void dma_fence_domain_init(struct dma_fence_domain *domain)
{
    umd_mutex_init(&domain->lock, "kmd.fence", 66);
    umd_cond_init(&domain->cond);
}

void dma_fence_domain_fini(struct dma_fence_domain *domain)
{
    umd_cond_fini(&domain->cond);
    umd_mutex_fini(&domain->lock);
}

void dma_fence_init(struct dma_fence *fence, struct dma_fence_domain *domain, const struct dma_fence_ops *ops)
{
    fence->ops = ops;
    fence->domain = domain;
    fence->callbacks = NULL;
    fence->timestamp_ns = 0;
    fence->error = 0;
    atomic_init(&fence->refs, 1);
    atomic_init(&fence->signalled, false);
}

struct dma_fence *dma_fence_get(struct dma_fence *fence)
{
    uint32_t before = atomic_fetch_add_explicit(&fence->refs, 1, memory_order_relaxed);
    assert(before > 0);
    (void)before;
    return fence;
}

static bool put_is_last(struct dma_fence *fence)
{
    uint32_t before = atomic_fetch_sub_explicit(&fence->refs, 1, memory_order_acq_rel);
    assert(before > 0);
    return before == 1;
}

void dma_fence_put(struct dma_fence *fence)
{
    if (fence && put_is_last(fence))
        fence->ops->release(fence);
}

void dma_fence_signal(struct dma_fence *fence, int error, uint64_t timestamp_ns)
{
    assert(error <= 0);
    umd_mutex_lock(&fence->domain->lock);
    if (dma_fence_is_signalled(fence)) {
        umd_mutex_unlock(&fence->domain->lock);
        return;
    }
    fence->error = error;
    fence->timestamp_ns = timestamp_ns;
    atomic_store_explicit(&fence->signalled, true, memory_order_release);
    struct dma_fence_cb *cb = fence->callbacks;
    fence->callbacks = NULL;
    umd_cond_broadcast(&fence->domain->cond);
    umd_mutex_unlock(&fence->domain->lock);
    while (cb) {
        struct dma_fence_cb *next = cb->next;
        cb->func(fence, cb);
        cb = next;
    }
}

static bool add_callback_locked(struct dma_fence *fence, struct dma_fence_cb *cb, void (*func)(struct dma_fence *, struct dma_fence_cb *))
{
    umd_mutex_assert_held(&fence->domain->lock);
    if (dma_fence_is_signalled(fence))
        return false;
    cb->func = func;
    cb->next = fence->callbacks;
    fence->callbacks = cb;
    return true;
}

bool dma_fence_add_callback(struct dma_fence *fence, struct dma_fence_cb *cb, void (*func)(struct dma_fence *, struct dma_fence_cb *))
{
    umd_mutex_lock(&fence->domain->lock);
    bool added = add_callback_locked(fence, cb, func);
    umd_mutex_unlock(&fence->domain->lock);
    return added;
}

bool dma_fence_remove_callback(struct dma_fence *fence, struct dma_fence_cb *cb)
{
    bool found = false;
    umd_mutex_lock(&fence->domain->lock);
    for (struct dma_fence_cb **p = &fence->callbacks; *p; p = &(*p)->next) {
        if (*p == cb) {
            *p = cb->next;
            found = true;
            break;
        }
    }
    umd_mutex_unlock(&fence->domain->lock);
    return found;
}

/* ---- Stub ---- */

static void stub_release(struct dma_fence *fence)
{
    umd_free(fence);
}

static const struct dma_fence_ops stub_ops = {.name = "stub", .release = stub_release};

struct dma_fence *dma_fence_stub_create(struct dma_fence_domain *domain)
{
    struct dma_fence *fence = umd_alloc(sizeof(*fence));
    if (!fence)
        return NULL;
    dma_fence_init(fence, domain, &stub_ops);
    atomic_store(&fence->signalled, true);
    return fence;
}

/* ---- Chain ---- */

struct dma_fence_chain {
    struct dma_fence base;
    struct dma_fence *fence;          /* owned, never changes */
    struct dma_fence_chain *prev;     /* owned; domain->lock; NULL once all before it signalled well */
    uint64_t point;
    uint64_t prev_point;              /* point of the node that was before this one, even when it is gone */
    struct dma_fence_cb fence_cb, prev_cb;
    _Atomic(uint32_t) missing;        /* of fence and prev: not signalled yet */
    struct dma_fence_chain *ready_next; /* of those that this thread is about to signal */
    uint64_t ready_ns;
};

static void chain_release(struct dma_fence *fence);
static const struct dma_fence_ops chain_ops = {.name = "chain", .release = chain_release};

struct dma_fence_chain *dma_fence_to_chain(struct dma_fence *fence)
{
    return fence->ops == &chain_ops ? CONTAINER_OF(fence, struct dma_fence_chain, base) : NULL;
}

struct dma_fence *dma_fence_inner(struct dma_fence *fence)
{
    for (struct dma_fence_chain *chain; (chain = dma_fence_to_chain(fence));)
        fence = chain->fence;
    return fence;
}

uint64_t dma_fence_chain_point(const struct dma_fence_chain *chain)
{
    return chain->point;
}

/* A loop, not recursion: a timeline that nobody signals may be long. */
static void chain_release(struct dma_fence *fence)
{
    struct dma_fence_chain *chain = dma_fence_to_chain(fence);
    while (chain) {
        struct dma_fence_chain *prev = chain->prev;
        dma_fence_put(chain->fence);
        umd_free(chain);
        chain = prev && put_is_last(&prev->base) ? prev : NULL;
    }
}

/* Drops what signalled well before the node. The references go back to the caller, to be put without the lock. */
static struct dma_fence_chain *chain_prune_locked(struct dma_fence_chain *chain)
{
    struct dma_fence_chain *prev = chain->prev;
    umd_mutex_assert_held(&chain->base.domain->lock);
    if (!prev || !dma_fence_is_signalled(&prev->base) || prev->base.error != 0)
        return NULL;
    chain->prev = prev->prev;
    if (chain->prev)
        dma_fence_get(&chain->prev->base);
    return prev;
}

static void chain_prune(struct dma_fence_chain *chain)
{
    for (;;) {
        umd_mutex_lock(&chain->base.domain->lock);
        struct dma_fence_chain *gone = chain_prune_locked(chain);
        umd_mutex_unlock(&chain->base.domain->lock);
        if (!gone)
            return;
        dma_fence_put(&gone->base);
    }
}

/* One node's signal makes the next one ready: a list, not recursion, as a timeline may be long. */
static _Thread_local struct dma_fence_chain *ready, **ready_last;

static void chain_signal_ready(void)
{
    struct dma_fence_chain *chain;

    while ((chain = ready)) {
        ready = chain->ready_next;
        if (!ready)
            ready_last = &ready;
        chain_prune(chain);
        /* The error is the work's own: a failure before it is told by its own point. */
        dma_fence_signal(&chain->base, chain->fence->error, chain->ready_ns);
        dma_fence_put(&chain->base);
    }
}

static void chain_one_less(struct dma_fence_chain *chain, struct dma_fence *signalled)
{
    if (atomic_fetch_sub(&chain->missing, 1) != 1)
        return;
    const bool busy = ready_last;
    if (!busy)
        ready_last = &ready;
    dma_fence_get(&chain->base);
    chain->ready_ns = signalled->timestamp_ns;
    chain->ready_next = NULL;
    *ready_last = chain;
    ready_last = &chain->ready_next;
    if (busy)
        return; /* this is inside a callback of the loop below */
    chain_signal_ready();
    ready_last = NULL;
}

static void chain_fence_done(struct dma_fence *fence, struct dma_fence_cb *cb)
{
    struct dma_fence_chain *chain = CONTAINER_OF(cb, struct dma_fence_chain, fence_cb);
    chain_one_less(chain, fence);
    dma_fence_put(&chain->base);
}

static void chain_prev_done(struct dma_fence *fence, struct dma_fence_cb *cb)
{
    struct dma_fence_chain *chain = CONTAINER_OF(cb, struct dma_fence_chain, prev_cb);
    chain_one_less(chain, fence);
    dma_fence_put(&chain->base);
}

struct dma_fence_chain *dma_fence_chain_alloc(void)
{
    return umd_alloc(sizeof(struct dma_fence_chain));
}

void dma_fence_chain_free(struct dma_fence_chain *chain)
{
    umd_free(chain);
}

struct dma_fence *dma_fence_chain_init_locked(struct dma_fence_chain *chain, struct dma_fence *prev, struct dma_fence *fence, uint64_t point)
{
    umd_mutex_assert_held(&fence->domain->lock);
    dma_fence_init(&chain->base, fence->domain, &chain_ops);
    struct dma_fence_chain *before = prev ? dma_fence_to_chain(prev) : NULL;
    chain->fence = fence;
    chain->prev = before;
    chain->prev_point = before ? before->point : 0;
    chain->point = point > chain->prev_point ? point : chain->prev_point;
    atomic_init(&chain->missing, 1);
    /* Each callback that will come keeps the node alive. */
    if (before) {
        dma_fence_get(&before->base);
        if (add_callback_locked(&before->base, &chain->prev_cb, chain_prev_done)) {
            atomic_fetch_add(&chain->missing, 1);
            dma_fence_get(&chain->base);
        }
    }
    if (add_callback_locked(fence, &chain->fence_cb, chain_fence_done)) {
        atomic_fetch_add(&chain->missing, 1);
        dma_fence_get(&chain->base);
    }
    return &chain->base;
}

void dma_fence_chain_activate(struct dma_fence_chain *chain)
{
    chain_one_less(chain, chain->fence);
}

bool dma_fence_chain_find_locked(struct dma_fence_chain *head, uint64_t point, struct dma_fence **fence_out)
{
    umd_mutex_assert_held(&head->base.domain->lock);
    struct dma_fence_chain *node = head;
    if (node->point < point)
        return false;
    while (node->prev_point >= point && node->prev && node->prev->point >= point)
        node = node->prev;
    *fence_out = node->prev_point >= point ? NULL : dma_fence_get(&node->base);
    return true;
}

uint64_t dma_fence_chain_query(struct dma_fence_chain *head)
{
    umd_mutex_lock(&head->base.domain->lock);
    struct dma_fence_chain *node = head;
    uint64_t point = head->point;
    while (node && !dma_fence_is_signalled(&node->base)) {
        point = node->prev_point;
        node = node->prev && node->prev->point == point ? node->prev : NULL;
    }
    umd_mutex_unlock(&head->base.domain->lock);
    return point;
}
