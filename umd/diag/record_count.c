/* SPDX-License-Identifier: MIT */
/* record_count.c - how many records ended how, by code; and which failures are too many to be logged one by one. */
#include <stdio.h>
#include <string.h>

#include "log_internal.h"

/* ---- By code ---- */

enum { CODES = 512 }; /* more than there are; a power of two */

struct code_counts {
    _Atomic(int32_t) code;      /* 0: free */
    _Atomic(int64_t) n[UMD_COUNT_COUNT];
};

static struct code_counts by_code[CODES];
static _Atomic(int64_t) totals[UMD_COUNT_COUNT];

static struct code_counts *row_of(int32_t code)
{
    for (uint32_t i = 0, at = (uint32_t)code * 2654435761u; code && i < CODES; i++, at++) {
        struct code_counts *row = &by_code[at % CODES];
        int32_t there = atomic_load_explicit(&row->code, memory_order_relaxed);
        if (there == 0 && atomic_compare_exchange_strong(&row->code, &there, code))
            return row;
        if (there == code)
            return row;
    }
    return NULL; /* totals count it all the same */
}

void umd_record_count(enum umd_record_counter which, int32_t code, int64_t by)
{
    /* A peer's record may have a code that is none of the table: it must not take the rows of those that are. */
    struct code_counts *row = umd_status_known((umdStatus)code) ? row_of(code) : NULL;

    atomic_fetch_add_explicit(&totals[which], by, memory_order_relaxed);
    if (row)
        atomic_fetch_add_explicit(&row->n[which], by, memory_order_relaxed);
}

void umd_record_get_counts(struct umd_record_counts *counts_out)
{
    *counts_out = (struct umd_record_counts){
        .raised = (uint64_t)atomic_load(&totals[UMD_COUNT_RAISED]), .delivered = (uint64_t)atomic_load(&totals[UMD_COUNT_DELIVERED]),
        .absorbed = (uint64_t)atomic_load(&totals[UMD_COUNT_ABSORBED]), .swallowed = (uint64_t)atomic_load(&totals[UMD_COUNT_SWALLOWED]),
    };
}

static void read_row(const struct code_counts *row, umdErrorCounts *out)
{
#define N(which_) (uint64_t)atomic_load_explicit(&row->n[which_], memory_order_relaxed)
    *out = (umdErrorCounts){
        .code = atomic_load(&row->code), .raised = N(UMD_COUNT_RAISED), .delivered = N(UMD_COUNT_DELIVERED), .absorbed = N(UMD_COUNT_ABSORBED),
        .swallowed = N(UMD_COUNT_SWALLOWED), .retried = N(UMD_COUNT_RETRIED), .unlogged = N(UMD_COUNT_UNLOGGED),
    };
#undef N
}

uint32_t umdGetErrorCounts(umdErrorCounts *counts_out, uint32_t max)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < CODES; i++) {
        umdErrorCounts row;
        if (!atomic_load(&by_code[i].code))
            continue;
        read_row(&by_code[i], &row);
        uint32_t at = count < max ? count : max; /* sorted by code, -1000 before -1001 */
        for (; at > 0 && counts_out[at - 1].code < row.code; at--)
            if (at < max)
                counts_out[at] = counts_out[at - 1];
        if (at < max)
            counts_out[at] = row;
        count++;
    }
    return count;
}

/* ---- Too many ---- */

enum { SITES = 128, PROBES = 8, LINES_PER_PERIOD = 20 };
#define PERIOD_NS 1000000000ull

/* Where a code is raised, and how often in its period of a second. */
struct site {
    char func[48], file[48], module[16];
    uint32_t line;
    int32_t code;
    umdLogLevel level;
    uint64_t begin_ns;          /* of the period; 0: free */
    uint32_t lines;             /* logged in it */
    uint32_t held;              /* not logged, and not told of yet */
    uint64_t held_ns;           /* since when */
};

static struct umd_mutex lock = { .m = PTHREAD_MUTEX_INITIALIZER, .name = "log limit", .rank = 95 };
static struct site sites[SITES];
static _Atomic(uint32_t) holding; /* sites that have lines to tell of */

/* Its place, or the one it may take: the stalest in reach that owes no line; NULL: none. */
static struct site *site_of_locked(const umdErrorDetail *rec)
{
    uint32_t h = ((uint32_t)rec->code * 31u + rec->line) * 2654435761u;
    struct site *best = NULL;

    umd_mutex_assert_held(&lock);
    for (uint32_t i = 0; i < PROBES; i++) {
        struct site *s = &sites[(h + i) % SITES];
        if (s->begin_ns && s->code == rec->code && s->line == rec->line && !strcmp(s->func, rec->func) && !strcmp(s->file, rec->file))
            return s;
        if (!s->held && (!best || s->begin_ns < best->begin_ns))
            best = s;
    }
    if (!best)
        return NULL;
    *best = (struct site){ .line = rec->line, .code = rec->code };
    UMD_COPY_STR(best->func, rec->func);
    UMD_COPY_STR(best->file, rec->file);
    UMD_COPY_STR(best->module, rec->module);
    return best;
}

/* Records are stamped before they come here, and may overtake one another: one from before the period belongs to it. */
static bool is_over(uint64_t begin_ns, uint64_t now_ns) { return now_ns > begin_ns && now_ns - begin_ns >= PERIOD_NS; }

bool umd_limit_pass(const umdErrorDetail *rec, umdLogLevel level)
{
    const uint64_t now_ns = rec->mono_ns;

    umd_mutex_lock(&lock);
    struct site *s = site_of_locked(rec);
    bool pass = true;
    if (s && (!s->begin_ns || is_over(s->begin_ns, now_ns))) {
        s->begin_ns = now_ns ? now_ns : 1;
        s->lines = 0;
    }
    if (s)
        s->level = level;
    if (s && s->lines < LINES_PER_PERIOD) {
        s->lines++;
    } else if (s) {
        pass = false;
        if (!s->held++) {
            s->held_ns = now_ns;
            atomic_fetch_add(&holding, 1);
        }
    }
    umd_mutex_unlock(&lock);
    if (!pass)
        umd_record_count(UMD_COUNT_UNLOGGED, rec->code, 1);
    return pass;
}

bool umd_limit_pending(void) { return atomic_load(&holding) != 0; }

bool umd_limit_take(uint64_t now_ns, bool all, struct umd_limit_told *out)
{
    bool found = false;

    if (__builtin_expect(!umd_limit_pending(), 1))
        return false;
    umd_mutex_lock(&lock);
    for (uint32_t i = 0; i < SITES && !found; i++) {
        struct site *s = &sites[i];
        if (!s->held || (!all && !is_over(s->held_ns, now_ns)))
            continue;
        *out = (struct umd_limit_told){ .level = s->level, .code = s->code, .line = s->line };
        UMD_COPY_STR(out->module, s->module);
        UMD_COPY_STR(out->func, s->func);
        UMD_COPY_STR(out->file, s->file);
        snprintf(out->message, sizeof(out->message), "not logged one by one: suppressed=%u of=%s since_ns=%" PRIu64, s->held,
                 umdStatusName((umdStatus)s->code), s->held_ns);
        s->held = 0;
        atomic_fetch_sub(&holding, 1);
        found = true;
    }
    umd_mutex_unlock(&lock);
    return found;
}

void umd_limit_reset(void)
{
    umd_mutex_lock(&lock);
    memset(sites, 0, sizeof(sites));
    atomic_store(&holding, 0);
    umd_mutex_unlock(&lock);
}

void umd_limit_atfork(int stage)
{
    if (stage == 0) {
        pthread_mutex_lock(&lock.m);
        return;
    }
    if (stage == 2) { /* the parent tells of its own */
        memset(sites, 0, sizeof(sites));
        atomic_store(&holding, 0);
    }
    pthread_mutex_unlock(&lock.m);
}
