/* SPDX-License-Identifier: MIT */
/* record_store.c - the last 256 records by id, record ids, and how many records ended how. */
#include <string.h>

#include "diag_internal.h"

#define STORE_COUNT 256u

static struct {
    struct umd_mutex lock; /* rank 94 */
    uint64_t next;
    umdErrorDetail recs[STORE_COUNT];
} store = { .lock = { .m = PTHREAD_MUTEX_INITIALIZER, .name = "record store", .rank = 94 } };

static _Atomic(uint64_t) next_seq = 1;
static _Atomic(uint32_t) boot;
static _Atomic(int64_t) counts[UMD_COUNT_COUNT];

/* FNV-1a: the kernel's boot id in 32 bits. */
static uint32_t host_boot(void)
{
    char text[40];
    uint32_t h = 2166136261u;
    int fd = umd_sys_default()->open("/proc/sys/kernel/random/boot_id", 0, 0);
    ssize_t n = fd < 0 ? 0 : umd_sys_default()->read(fd, text, sizeof(text));

    if (fd >= 0)
        umd_sys_default()->close(fd);
    for (ssize_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h ? h : 1;
}

__attribute__((constructor(102))) static void boot_init(void) { atomic_store(&boot, host_boot()); }

umdRecordId umd_record_id_next(void)
{
    return (umdRecordId){
        .boot = atomic_load_explicit(&boot, memory_order_relaxed), .pid = umd_sys()->pid(),
        .seq = atomic_fetch_add_explicit(&next_seq, 1, memory_order_relaxed),
    };
}

static umdErrorDetail *find_locked(umdRecordId id)
{
    umd_mutex_assert_held(&store.lock);
    for (uint32_t i = 0; i < STORE_COUNT; i++)
        if (store.recs[i].id.seq && umd_id_equal(store.recs[i].id, id))
            return &store.recs[i];
    return NULL;
}

void umd_record_store_put(const umdErrorDetail *rec)
{
    umd_mutex_lock(&store.lock);
    umdErrorDetail *at = find_locked(rec->id);
    if (!at)
        at = &store.recs[store.next++ % STORE_COUNT];
    *at = *rec;
    umd_mutex_unlock(&store.lock);
}

bool umd_record_store_get(umdRecordId id, umdErrorDetail *out)
{
    umd_mutex_lock(&store.lock);
    const umdErrorDetail *at = id.seq ? find_locked(id) : NULL;
    if (at)
        *out = *at;
    umd_mutex_unlock(&store.lock);
    return at != NULL;
}

void umd_record_count(enum umd_record_counter which, int64_t by) { atomic_fetch_add_explicit(&counts[which], by, memory_order_relaxed); }

void umd_record_get_counts(struct umd_record_counts *counts_out)
{
    *counts_out = (struct umd_record_counts){
        .raised = (uint64_t)atomic_load(&counts[UMD_COUNT_RAISED]), .delivered = (uint64_t)atomic_load(&counts[UMD_COUNT_DELIVERED]),
        .absorbed = (uint64_t)atomic_load(&counts[UMD_COUNT_ABSORBED]), .swallowed = (uint64_t)atomic_load(&counts[UMD_COUNT_SWALLOWED]),
    };
}

/* A stepped run starts with number one and an empty store, so that its ids depend on nothing before it. */
void umd_record_step_reset(uint64_t seed)
{
    uint32_t mixed = (uint32_t)(seed ^ (seed >> 32)) * 2654435761u;
    struct umd_diag_thread *t = umd_diag_thread_peek();

    atomic_store(&boot, mixed ? mixed : 1);
    atomic_store(&next_seq, 1);
    if (t)
        t->fold = (struct umd_fold_key){ 0 };
    umd_mutex_lock(&store.lock);
    memset(store.recs, 0, sizeof(store.recs));
    store.next = 0;
    umd_mutex_unlock(&store.lock);
}

void umd_record_store_atfork(int stage)
{
    if (stage == 0)
        pthread_mutex_lock(&store.lock.m);
    else
        pthread_mutex_unlock(&store.lock.m);
}

umdStatus umdGetErrorDetailById(umdRecordId id, umdErrorDetail *detail)
{
    if (!detail)
        return UMD_ERR_PARAM_NULL;
    if (detail->size_B != sizeof(*detail))
        return UMD_ERR_PARAM_STRUCT_SIZE;
    return umd_record_store_get(id, detail) ? UMD_SUCCESS : UMD_STATUS_NOT_READY;
}
