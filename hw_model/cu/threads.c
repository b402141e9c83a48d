/* SPDX-License-Identifier: MIT */
/* threads.c - host threads that the compute units are spread over: a pool that calls one function for each unit of a list. */
/*
 * Code is changed by the caller's thread alone, while the others stand; everything else that a unit needs belongs to the unit. So
 * nothing here or in the units is locked while they run but reservations (resv.c), and who runs which unit shows nowhere. What a unit
 * may not do by itself it asks for: see cu_ask and round_run.
 *
 * The caller takes units, too, and is done when all have run, not when all workers have looked: one that wakes late finds that the
 * round is over by the round's number in `next`.
 */
#include <assert.h>

#include "cu_priv.h"
#include "record.h"
#include "sys.h"

UMD_LOG_MODULE("hw.cu.threads");

#define INDEX_BITS 16 /* of `next`: more than there are units */

/* One round, as a worker sees it. */
struct round {
    uint64_t number, context;     /* of the caller's records */
    struct hw_cu **list;
    uint32_t count;
    void (*run)(struct hw_cu *cu);
};

struct cu_pool {
    struct umd_mutex lock;        /* rank 73; not held while a unit runs */
    struct umd_cond begin, done;  /* workers wait for another round or stop; the caller for left == 0 */
    struct round round;           /* written under the lock */
    bool stop;
    uint32_t left;                /* units of the round that have not run; under the lock */
    uint64_t next;                /* atomic: number of the round, and the place in its list that is to be taken */
    uint32_t started;
    pthread_t thread[HW_CU_THREADS_MAX - 1];
};

/* Runs units of the round until none is left to take. Value: how many. */
static uint32_t take_units(struct cu_pool *p, const struct round *r)
{
    uint32_t ran = 0;
    uint64_t next = __atomic_load_n(&p->next, __ATOMIC_RELAXED);

    while (next >> INDEX_BITS == r->number && (next & ((1u << INDEX_BITS) - 1)) < r->count) {
        if (!__atomic_compare_exchange_n(&p->next, &next, next + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            continue;
        r->run(r->list[next & ((1u << INDEX_BITS) - 1)]);
        ran++;
        next = __atomic_load_n(&p->next, __ATOMIC_RELAXED);
    }
    return ran;
}

static void *worker_main(void *arg)
{
    struct cu_pool *p = arg;
    struct round r = { 0 };

    umd_mutex_lock(&p->lock);
    for (;;) {
        while (!p->stop && p->round.number == r.number)
            umd_cond_wait(&p->begin, &p->lock, UINT64_MAX);
        if (p->stop)
            break;
        r = p->round;
        umd_mutex_unlock(&p->lock);
        umd_record_set_context(r.context);
        uint32_t ran = take_units(p, &r);
        umd_mutex_lock(&p->lock);
        p->left -= ran;
        if (ran && !p->left)
            umd_cond_broadcast(&p->done);
    }
    umd_mutex_unlock(&p->lock);
    return NULL;
}

void cu_pool_run(struct cu_pool *pool, struct hw_cu **list, uint32_t count, void (*run)(struct hw_cu *cu))
{
    if (count < 2 || !pool->started) {
        for (uint32_t i = 0; i < count; i++)
            run(list[i]);
        return;
    }
    umd_mutex_lock(&pool->lock);
    struct round r = { .number = pool->round.number + 1, .context = umd_record_get_context(), .list = list, .count = count, .run = run };
    pool->round = r;
    pool->left = count;
    __atomic_store_n(&pool->next, r.number << INDEX_BITS, __ATOMIC_RELAXED);
    umd_cond_broadcast(&pool->begin);
    umd_mutex_unlock(&pool->lock);
    uint32_t ran = take_units(pool, &r);
    umd_mutex_lock(&pool->lock);
    pool->left -= ran;
    while (pool->left)
        umd_cond_wait(&pool->done, &pool->lock, UINT64_MAX);
    umd_mutex_unlock(&pool->lock);
}

umdStatus cu_pool_create(uint32_t host_threads, struct cu_pool **pool_out)
{
    struct cu_pool *p = umd_alloc(sizeof(*p));

    assert(host_threads >= 1 && host_threads <= HW_CU_THREADS_MAX);
    if (!p)
        return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    umd_mutex_init(&p->lock, "hw.cu.threads", 73);
    umd_cond_init(&p->begin);
    umd_cond_init(&p->done);
    while (p->started < host_threads - 1) {
        int error = umd_sys()->thread_create(&p->thread[p->started], "petrel-cu", worker_main, p);

        if (error) {
            umdStatus st = UMD_FAIL(UMD_ERR_RES_THREADS, "thread=petrel-cu started=%u wanted=%u errno=%d", p->started, host_threads - 1, error);

            cu_pool_destroy(p);
            return st;
        }
        p->started++;
    }
    *pool_out = p;
    return UMD_SUCCESS;
}

void cu_pool_destroy(struct cu_pool *pool)
{
    if (!pool)
        return;
    umd_mutex_lock(&pool->lock);
    pool->stop = true;
    umd_cond_broadcast(&pool->begin);
    umd_mutex_unlock(&pool->lock);
    for (uint32_t i = 0; i < pool->started; i++)
        pthread_join(pool->thread[i], NULL);
    umd_cond_fini(&pool->done);
    umd_cond_fini(&pool->begin);
    umd_mutex_fini(&pool->lock);
    umd_free(pool);
}
