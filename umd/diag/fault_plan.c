/* SPDX-License-Identifier: MIT */
/* fault_plan.c - the process-wide plan: which hit of which site fires. Equal seed and hits, equal faults. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "diag_internal.h"
#include "fault_parse.h"

UMD_LOG_MODULE("diag.fault");

static const struct umd_fault_site_info sites[UMD_FAULT_SITE_COUNT] = {
#define FAULT_SITE(id_, name_, actions_, code_, text_) [UMD_FAULT_##id_] = { name_, actions_, code_, text_ },
#include "fault_sites.def"
#undef FAULT_SITE
};
_Atomic(bool) umd_fault_armed[UMD_FAULT_SITE_COUNT];

static struct umd_mutex lock = { .m = PTHREAD_MUTEX_INITIALIZER, .name = "fault plan", .rank = 98 };
static struct umd_fault_plan *plan, *plan_before;          /* under lock */
static uint64_t generation;                                /* under lock */
static _Atomic(bool) has_rule[UMD_FAULT_SITE_COUNT];
static _Atomic(uint64_t) site_hits[UMD_FAULT_SITE_COUNT], site_fired[UMD_FAULT_SITE_COUNT];
static _Atomic(uint64_t) my_rank;

const struct umd_fault_site_info *umd_fault_site_info(enum umd_fault_site site)
{
    return (unsigned)site < UMD_FAULT_SITE_COUNT ? &sites[site] : NULL;
}

uint64_t umd_fault_hits(enum umd_fault_site site) { return atomic_load(&site_hits[site]); }
uint64_t umd_fault_fired(enum umd_fault_site site) { return atomic_load(&site_fired[site]); }
void umd_fault_atfork(int stage)
{
    if (stage == 0)
        pthread_mutex_lock(&lock.m);
    else
        pthread_mutex_unlock(&lock.m);
}

static uint64_t splitmix64(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

static bool passes_filters(const struct umd_fault_rule *r, struct umd_fault_where where)
{
    return (!r->given[ATTR_CTX] || r->attr[ATTR_CTX] == where.ctx) && (!r->given[ATTR_QUEUE] || r->attr[ATTR_QUEUE] == where.queue) &&
           (!r->given[ATTR_RANK] || r->attr[ATTR_RANK] == atomic_load_explicit(&my_rank, memory_order_relaxed));
}

/* Counts the hit for the rule; true with the term that fires. No state but the rule's own: order between sites is of no account. */
static bool rule_hit_locked(struct umd_fault_rule *r, uint32_t index, struct umd_fault_term **term_out)
{
    umd_mutex_assert_held(&lock);
    uint64_t n = ++r->hits;
    if (n <= r->attr[ATTR_SPACE])
        return false;
    n -= r->attr[ATTR_SPACE];
    if (r->given[ATTR_NTH] && n != r->attr[ATTR_NTH])
        return false;
    if (r->given[ATTR_INTERVAL] && n % r->attr[ATTR_INTERVAL] != 0)
        return false;
    if (r->given[ATTR_TIMES] && r->fired >= r->attr[ATTR_TIMES])
        return false;
    while (r->term_at < r->term_count && r->terms[r->term_at].count && r->terms[r->term_at].used >= r->terms[r->term_at].count)
        r->term_at++;
    if (r->term_at == r->term_count)
        return false;
    struct umd_fault_term *t = &r->terms[r->term_at];
    uint64_t draw = splitmix64(plan->seed ^ splitmix64(((uint64_t)r->site << 40) ^ ((uint64_t)index << 32)) ^ splitmix64(r->hits));
    if (t->per_million < UMD_FAULT_ALWAYS && draw % UMD_FAULT_ALWAYS >= t->per_million)
        return false;
    *term_out = t;
    return true;
}

bool umd_fault_check_slow(enum umd_fault_site site, struct umd_fault_where where, struct umd_fault_hit *hit_out)
{
    struct umd_fault_term *term = NULL, *candidate;
    uint64_t hit = atomic_fetch_add_explicit(&site_hits[site], 1, memory_order_relaxed) + 1;

    if (!atomic_load_explicit(&has_rule[site], memory_order_relaxed))
        return false;
    umd_mutex_lock(&lock);
    for (uint32_t i = 0; plan && i < plan->rule_count; i++) {
        struct umd_fault_rule *r = &plan->rules[i];
        if (r->site != site || !passes_filters(r, where) || !rule_hit_locked(r, i, &candidate) || term)
            continue; /* the first that fires acts; the others have counted their hit */
        term = candidate;
        term->used++;
        r->fired++;
        *hit_out = (struct umd_fault_hit){ .action = term->action, .arg_count = term->arg_count };
        memcpy(hit_out->args, term->args, sizeof(hit_out->args));
    }
    umd_mutex_unlock(&lock);
    if (!term)
        return false;
    atomic_fetch_add_explicit(&site_fired[site], 1, memory_order_relaxed);
    UMD_LOG(UMD_LOG_DEBUG, "fault fires site=%s hit=%" PRIu64 " action=%s", sites[site].name, hit, hit_out->action);
    return true;
}

/* NULL clears; counters of the plan before stay readable until the next one is set. */
static void use_locked(struct umd_fault_plan *fresh, bool count_anew)
{
    bool rules[UMD_FAULT_SITE_COUNT] = { false };

    umd_mutex_assert_held(&lock);
    for (uint32_t i = 0; fresh && i < fresh->rule_count; i++)
        rules[fresh->rules[i].site] = true;
    plan = fresh;
    for (uint32_t i = 0; i < UMD_FAULT_SITE_COUNT; i++) {
        if (count_anew) {
            atomic_store(&site_hits[i], 0);
            atomic_store(&site_fired[i], 0);
        }
        atomic_store(&has_rule[i], rules[i]);
        atomic_store(&umd_fault_armed[i], fresh != NULL); /* all: hits are counted while a plan is set */
    }
}

/* Nothing here can fail. */
static void install(struct umd_fault_plan *fresh)
{
    umd_mutex_lock(&lock);
    struct umd_fault_plan *old = plan_before;
    plan_before = plan;
    generation++;
    use_locked(fresh, fresh != NULL);
    umd_mutex_unlock(&lock);
    umd_diag_free(old);
}

uint64_t umd_fault_plan_generation(void)
{
    umd_mutex_lock(&lock);
    const uint64_t now = generation;
    umd_mutex_unlock(&lock);
    return now;
}

void umd_fault_plan_undo(uint64_t number)
{
    struct umd_fault_plan *old = NULL;

    umd_mutex_lock(&lock);
    if (generation == number) { /* else another has been set meanwhile */
        old = plan;
        use_locked(plan_before, false);
        plan_before = NULL;
        generation++;
    }
    umd_mutex_unlock(&lock);
    umd_diag_free(old);
}

/* Which process this is, for rules with rank=. */
static umdStatus read_rank(void)
{
    const char *text = secure_getenv("PETREL_RANK");
    char *end = NULL;

    errno = 0;
    uint64_t rank = text && *text ? strtoull(text, &end, 10) : 0;
    if (end && (*end || errno || *text < '0' || *text > '9'))
        return UMD_FAIL(UMD_ERR_CONFIG_VALUE, "key=PETREL_RANK value=\"%.64s\" expected=\"a number from 0\"", text);
    atomic_store(&my_rank, rank);
    return UMD_SUCCESS;
}

static umdStatus set(const char *spec, const char *path)
{
    struct umd_fault_error e;

    if (!spec || !*spec) {
        install(NULL);
        return UMD_SUCCESS;
    }
    umdStatus st = read_rank();
    if (st < 0)
        return st;
    struct umd_fault_plan *fresh = umd_diag_alloc(sizeof(*fresh));
    if (!fresh)
        return UMD_FAIL(UMD_ERR_MEM_HOST_ALLOC_FAILED, "size_B=%zu", sizeof(*fresh));
    if (!umd_fault_parse(spec, fresh, &e)) {
        umd_diag_free(fresh);
        char more[512] = ""; /* figures that only some mistakes have */
        if (e.suggestion[0])
            umd_figures_append(more, sizeof(more), "suggestion=%s", e.suggestion);
        if (path)
            umd_figures_append(more, sizeof(more), "path=\"%s\"", path);
        return UMD_FAIL(UMD_ERR_FAULT_SPEC, "position=%zu line=%u column=%u expected=\"%s\" found=\"%s\" %s", e.position, e.line, e.column,
                        e.expected, e.found, more);
    }
    install(fresh);
    return UMD_SUCCESS;
}

umdStatus umd_fault_plan_set(const char *spec)
{
    struct umd_api_call call = { 0 };

    umd_api_enter(&call, "umd_fault_plan_set", "spec=\"%s\"", spec ? spec : "");
    return umd_api_exit(&call, set(spec, NULL));
}

#define FILE_MAX (1u << 20)

static umdStatus load(const char *path)
{
    const struct umd_sys *sys = umd_sys();
    size_t used = 0;
    ssize_t n = 0;

    if (!path)
        return UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=path");
    path += *path == '@';
    int fd = sys->open(path, O_RDONLY, 0);
    if (fd < 0)
        return UMD_FAIL(umd_record_file_code(errno), "path=\"%s\" errno=%d reason=\"%s\"", path, errno, strerrordesc_np(errno));
    char *text = umd_diag_alloc(FILE_MAX + 1);
    if (!text) {
        sys->close(fd);
        return UMD_FAIL(UMD_ERR_MEM_HOST_ALLOC_FAILED, "size_B=%u", FILE_MAX + 1);
    }
    while (used < FILE_MAX && (n = sys->read(fd, text + used, FILE_MAX - used)) > 0)
        used += (size_t)n;
    int err = errno;
    sys->close(fd);
    umdStatus st;
    if (n < 0)
        st = UMD_FAIL(UMD_ERR_RES_FILE, "path=\"%s\" errno=%d reason=\"%s\"", path, err, strerrordesc_np(err));
    else if (used == FILE_MAX)
        st = UMD_FAIL(UMD_ERR_RES_FILE, "path=\"%s\" reason=\"larger than a fault file may be\" max_B=%u", path, FILE_MAX - 1);
    else if (memchr(text, '\0', used))
        st = UMD_FAIL(UMD_ERR_RES_FILE, "path=\"%s\" reason=\"not a text file\"", path);
    else
        st = set(text, path);
    umd_diag_free(text);
    return st;
}

umdStatus umd_fault_plan_load(const char *path)
{
    struct umd_api_call call = { 0 };

    umd_api_enter(&call, "umd_fault_plan_load", "path=\"%s\"", path ? path : "");
    return umd_api_exit(&call, load(path));
}

umdStatus umd_fault_plan_from(const char *text)
{
    return text && (*text == '@' || *text == '/') ? umd_fault_plan_load(text) : umd_fault_plan_set(text);
}
