/* SPDX-License-Identifier: MIT */
/* record_carrier.c - records that leave for, or arrive from, the other side of a carrier. */
#include <string.h>

#include "diag_internal.h"
#include "struct_size.h"

UMD_LOG_MODULE("diag.carrier");

bool umd_record_export(umdErrorDetail *detail_out)
{
    struct umd_diag_thread *t = umd_diag_thread_peek();

    if (!t || !umd_record_scope_of(t)->open)
        return false;
    struct umd_record_scope *s = umd_record_scope_of(t);
    *detail_out = s->rec;
    umd_record_store_set_travels(detail_out->id, true); /* before it seems to be at its end */
    umd_record_end(s, UMD_RECORD_DELIVERED);
    return true;
}

/* Ends the string inside its array and keeps it to printable bytes: the peer is not trusted. False if it had no end. */
static bool clean(char *s, size_t size)
{
    bool ended = memchr(s, '\0', size) != NULL;

    s[size - 1] = '\0';
    for (char *c = s; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    return ended;
}
#define CLEAN(array_) clean((array_), sizeof(array_))

static bool code_is_error(int32_t code)
{
    return code < 0 && umdStatusRangeOf((umdStatus)code) != UMD_RANGE_UNKNOWN;
}

/* Name of the first field that cannot be right, NULL if all may be. */
static const char *check(umdErrorDetail *d)
{
    if (!umd_struct_fits(sizeof(*d), d, UMD_ERROR_DETAIL_SIZE_V1, NULL))
        return "size_B";
    if (d->size_B < sizeof(*d)) /* a peer of an older version, or of a newer one, which wrote what there was room for */
        memset((uint8_t *)d + d->size_B, 0, sizeof(*d) - d->size_B);
    d->size_B = sizeof(*d);
    if (!code_is_error(d->code))
        return "code";
    if (!code_is_error(d->origin_code))
        return "origin_code";
    if (d->hop_count > UMD_RECORD_HOPS)
        return "hop_count";
    if (d->id.seq == 0)
        return "id";
    if (d->end > UMD_RECORD_SWALLOWED)
        return "end";
    if ((uint32_t)d->advice.action > UMD_ACTION_ABORT || (uint32_t)d->advice.severity > UMD_SEVERITY_FATAL ||
        (uint32_t)d->advice.scope > UMD_SCOPE_NODE)
        return "advice";
    uint8_t sticky;
    memcpy(&sticky, &d->advice.sticky, 1);
    if (sticky > 1)
        return "advice.sticky";
    if (!CLEAN(d->func) || !CLEAN(d->file) || !CLEAN(d->module) || !CLEAN(d->api))
        return "origin";
    if (!CLEAN(d->text) || !CLEAN(d->figures) || !CLEAN(d->absorbed))
        return "text";
    for (uint32_t i = 0; i < d->hop_count; i++)
        if (!CLEAN(d->hops[i].layer) || !CLEAN(d->hops[i].func) || !CLEAN(d->hops[i].file))
            return "hops";
    memset(&d->hops[d->hop_count], 0, (UMD_RECORD_HOPS - d->hop_count) * sizeof(d->hops[0]));
    return NULL;
}

umdStatus umd_record_import(const umdErrorDetail *detail)
{
    umdErrorDetail copy = *detail;
    const char *bad = check(&copy);

    if (!bad && umd_record_store_contradicts(&copy)) /* a peer is not to change what this process knows */
        bad = "id";
    if (bad)
        return UMD_FAIL(UMD_ERR_INTERNAL, "argument=record field=%s code=%d", bad, (int)copy.code);
    struct umd_diag_thread *t = umd_diag_thread_get();
    if (!t)
        return (umdStatus)copy.code;
    struct umd_record_scope *s = umd_record_scope_of(t);
    if (s->open)
        umd_record_end(s, UMD_RECORD_SWALLOWED);
    copy.end = UMD_RECORD_OPEN;
    if (!copy.api[0])
        UMD_COPY_STR(copy.api, umd_record_api_name(t));
    copy.call_depth = t->depth;
    s->rec = copy;
    s->open = true;
    s->quiet = copy.repeat && !umd_power_of_ten(copy.repeat);
    umd_record_settle_nested(t);
    umd_record_count(UMD_COUNT_RAISED, copy.code, 1); /* raised as far as this side can tell: it has to end here too */
    umd_record_store_imported(&copy);
    umd_record_store_set_travels(copy.id, false);
    umd_scene_met(t, copy.id);
    return (umdStatus)copy.code;
}
