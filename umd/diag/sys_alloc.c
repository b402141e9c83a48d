/* SPDX-License-Identifier: MIT */
/* sys_alloc.c - umd_alloc: zeroed memory that raises its own failure and is counted until freed. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diag_internal.h"

UMD_LOG_MODULE("diag.sys");
umdLogModule umd_sys_log_module = { .name = "diag.sys", .level = UMD_LOG_INFO }; /* of the callers' sites, in all libraries */
__attribute__((constructor(103))) static void module_init(void) { umd_log_module_register(&umd_sys_log_module, NULL, NULL); }
__attribute__((destructor(103))) static void module_fini(void) { umd_log_module_unregister(&umd_sys_log_module, NULL); }

#define ALLOC_LIVE 0x50455452454c2131ull
#define ALLOC_DEAD 0x6465616464656164ull

/* In front of each block; 16 bytes keep the block's alignment. */
struct alloc_head {
    uint64_t size_B;
    uint64_t mark;
};
static_assert(sizeof(struct alloc_head) == 16, "keeps the alignment of the C library");

static _Atomic(uint64_t) live_B, live_blocks;

void *umd_alloc_at(size_t size, const umdLogSite *site)
{
    struct alloc_head *head = NULL;

    errno = ENOMEM;
    if (size <= SIZE_MAX - sizeof(*head))
        head = umd_sys()->alloc(size + sizeof(*head));
    if (!head) {
        int err = errno;
        uint64_t now_B = atomic_load_explicit(&live_B, memory_order_relaxed);
        (void)umd_record_raise(site, UMD_ERR_MEM_HOST_ALLOC_FAILED, (umdRecordId){ 0 }, size, now_B, err); /* as UMD_ALLOC_SITE's format says */
        return NULL;
    }
    head->size_B = size;
    head->mark = ALLOC_LIVE;
    atomic_fetch_add_explicit(&live_B, size, memory_order_relaxed);
    atomic_fetch_add_explicit(&live_blocks, 1, memory_order_relaxed);
    return head + 1;
}

void umd_free(void *p)
{
    if (!p)
        return;
    struct alloc_head *head = (struct alloc_head *)p - 1;
    if (head->mark != ALLOC_LIVE) {
        UMD_LOG(UMD_LOG_ERROR, "umd_free of a block that is not live state=%s", head->mark == ALLOC_DEAD ? "freed" : "foreign");
        umdLogFlush(200);
        abort(); /* the heap is damaged: going on would spread it */
    }
    head->mark = ALLOC_DEAD;
    atomic_fetch_sub_explicit(&live_B, head->size_B, memory_order_relaxed);
    atomic_fetch_sub_explicit(&live_blocks, 1, memory_order_relaxed);
    umd_sys()->free(head);
}

void umd_alloc_live(uint64_t *bytes_out, uint64_t *blocks_out)
{
    *bytes_out = atomic_load(&live_B);
    *blocks_out = atomic_load(&live_blocks);
}
