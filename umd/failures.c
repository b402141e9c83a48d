/* SPDX-License-Identifier: MIT */
/* failures.c - what of a stream's failures has been told, so that each is told, and once. */
#include "failures.h"

#include <string.h>

bool umd_same_record(const umdRecordId *a, const umdRecordId *b)
{
    return a->seq && a->seq == b->seq && a->pid == b->pid && a->boot == b->boot;
}

umdRecordId umd_failure_of(const umdErrorDetail *d)
{
    return d->code == UMD_ERR_EXEC_CANCELLED && strstr(d->figures, "reason=queue_cancelled") ? d->cause : d->id;
}

static void forget(struct umd_failures *f, uint32_t i)
{
    const uint32_t count = atomic_load(&f->unread_count) - 1;

    memmove(&f->unread[i], &f->unread[i + 1], (count - i) * sizeof(f->unread[0]));
    atomic_store(&f->unread_count, count);
}

bool umd_failures_add(struct umd_failures *f, const umdErrorDetail *d)
{
    const uint32_t count = atomic_load(&f->unread_count);

    if (count == UMD_FAILURES_UNREAD || umd_failures_told(f, &d->id))
        return false;
    f->unread[count] = *d;
    atomic_store(&f->unread_count, count + 1);
    return true;
}

bool umd_failures_take(struct umd_failures *f, umdErrorDetail *detail_out)
{
    if (!atomic_load(&f->unread_count))
        return false;
    *detail_out = f->unread[0];
    umd_failures_tell(f, &detail_out->id);
    return true;
}

void umd_failures_tell(struct umd_failures *f, const umdRecordId *failure)
{
    for (uint32_t i = atomic_load(&f->unread_count); i > 0; i--)
        if (umd_same_record(&f->unread[i - 1].id, failure))
            forget(f, i - 1);
    if (!umd_failures_told(f, failure))
        f->told[f->told_count++ % UMD_FAILURES_TOLD] = *failure;
}

bool umd_failures_told(const struct umd_failures *f, const umdRecordId *failure)
{
    for (uint32_t i = 0; i < UMD_FAILURES_TOLD; i++)
        if (umd_same_record(&f->told[i], failure))
            return true;
    return false;
}

umdRecordId umd_failures_last_told(const struct umd_failures *f)
{
    return f->told_count ? f->told[(f->told_count - 1) % UMD_FAILURES_TOLD] : (umdRecordId){ 0 };
}
