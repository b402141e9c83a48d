/* SPDX-License-Identifier: MIT */
/* record_advice.c - what to do about one occurrence of a code, where that is not what the table says of the code. */
#include <stdio.h>
#include <string.h>

#include "diag_internal.h"
#include "status.h"

umdAdvice umd_advice_do(umdStatus code, umdAction action)
{
    umdAdvice a = umdStatusAdvice(code);

    a.action = action;
    a.delay_ms = a.count = 0;
    return a;
}

umdAdvice umd_advice_fit(umdStatus code, uint64_t largest_fit_B)
{
    umdAdvice a = umdStatusAdvice(code);

    a.largest_fit_B = largest_fit_B;
    return a;
}

umdAdvice umd_advice_of_cause(umdStatus code, umdRecordId cause)
{
    struct umd_diag_thread *t = umd_diag_thread_peek();
    umdAdvice a = umdStatusAdvice(code);
    const umdErrorDetail *rec = NULL;
    umdErrorDetail kept;

    if (t && umd_record_scope_of(t)->open && umd_id_equal(umd_record_scope_of(t)->rec.id, cause))
        rec = &umd_record_scope_of(t)->rec;
    else if (cause.seq && umd_record_store_get(cause, &kept))
        rec = &kept;
    if (!rec || rec->advice.action == UMD_ACTION_NONE)
        return a;
    a.action = rec->advice.action;
    a.delay_ms = rec->advice.delay_ms;
    a.count = rec->advice.count;
    a.largest_fit_B = rec->advice.largest_fit_B;
    return a;
}

static bool same_todo(const umdAdvice *a, const umdAdvice *b)
{
    return a->action == b->action && a->delay_ms == b->delay_ms && a->count == b->count;
}

bool umd_advice_is_own(const umdErrorDetail *rec)
{
    const umdAdvice table = umdStatusAdvice((umdStatus)rec->code);

    return rec->advice.largest_fit_B || !same_todo(&rec->advice, &table);
}

void umd_advice_translate(umdErrorDetail *rec, umdStatus out)
{
    const umdAdvice was = umdStatusAdvice((umdStatus)rec->code), is = umdStatusAdvice(out);
    umdAdvice *a = &rec->advice;

    if (!same_todo(a, &was))
        return; /* of this occurrence: the new code changes nothing about it */
    a->action = is.action;
    a->delay_ms = is.delay_ms;
    a->count = is.count;
    a->scope = is.scope;
    a->sticky = is.sticky;
}

void umd_advice_figures(char *text, size_t size, const umdAdvice *a)
{
    const size_t used = strlen(text);
    char more[128];
    int n = snprintf(more, sizeof(more), "%saction=%s", used ? " " : "", umd_action_word(a->action));

    if (a->count || a->delay_ms || a->action == UMD_ACTION_RETRY || a->action == UMD_ACTION_FREE_RETRY)
        n += snprintf(more + n, sizeof(more) - (size_t)n, " delay_ms=%u count=%u", a->delay_ms, a->count);
    if (a->largest_fit_B)
        n += snprintf(more + n, sizeof(more) - (size_t)n, " largest_fit_B=%" PRIu64, a->largest_fit_B);
    if (used + (size_t)n < size)
        memcpy(text + used, more, (size_t)n + 1); /* all or nothing */
}

size_t umd_advice_format(const umdAdvice *a, char *buf, size_t size)
{
    char more[160];
    int n = snprintf(more, sizeof(more), "action: %s", umd_action_text(a->action));

    if (a->count == 1 && !a->delay_ms)
        n += snprintf(more + n, sizeof(more) - (size_t)n, ", once");
    else if (a->count)
        n += snprintf(more + n, sizeof(more) - (size_t)n, ", %u times, %u ms apart", a->count, a->delay_ms);
    if (a->largest_fit_B)
        snprintf(more + n, sizeof(more) - (size_t)n, "; largest size that fits: %" PRIu64 " bytes", a->largest_fit_B);
    return (size_t)snprintf(buf, size, "%s", more);
}
