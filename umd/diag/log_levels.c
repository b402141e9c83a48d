/* SPDX-License-Identifier: MIT */
/* log_levels.c - which module logs up to which level, to which sink; the registry of modules. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "log_sinks.h"
#include "log_site.h"

#define RULES_MAX 32u
#define UNLOAD_MS 2000u /* a library that goes waits no longer for the writer, and as long again for its lock */

struct rule {
    char prefix[32];        /* "" for all */
    umdLogLevel level;
};
struct rules {
    struct rule rule[RULES_MAX];
    uint32_t count;
    enum umd_log_source source;
};

static struct umd_mutex registry_lock = { .m = PTHREAD_MUTEX_INITIALIZER, .name = "log registry", .rank = 90 };
static struct umd_mutex rules_lock = { .m = PTHREAD_MUTEX_INITIALIZER, .name = "log levels", .rank = 97 };
static umdLogModule *modules;           /* under registry_lock */
static struct rules sets[UMD_LEVELS_SETS];
static bool enabled[UMD_SINK_COUNT];
static struct rules built_in[UMD_SINK_COUNT];  /* the kind's own, parsed when the sink is enabled first */
static _Atomic(uint32_t) epoch = 1;
static const char *const names[] = { "OFF", "ERROR", "WARN", "INFO", "DEBUG", "TRACE" };

const char *umd_log_level_name(umdLogLevel level) { return (unsigned)level <= UMD_LOG_TRACE ? names[level] : "?"; }

/* Length of the rule's match, -1 for none: "umd" covers "umd" and "umd.mem", but not "umdx". */
static int match(const struct rule *r, const char *module)
{
    size_t n = strlen(r->prefix);

    if (n == 0)
        return 0;
    return strncmp(r->prefix, module, n) == 0 && (module[n] == '\0' || module[n] == '.') ? (int)n : -1;
}

static bool lookup_locked(const struct rules *set, const char *module, umdLogLevel *level_out)
{
    int best = -1;

    for (uint32_t i = 0; i < set->count; i++) {
        int m = match(&set->rule[i], module);
        if (m >= best && m >= 0) { /* of equals the later one counts */
            best = m;
            *level_out = set->rule[i].level;
        }
    }
    return best >= 0;
}

static umdLogLevel level_locked(enum umd_log_sink_id sink, const char *module, int *which_out)
{
    const struct umd_log_sink_kind *kind = umd_log_sink_kind_of(sink);
    umdLogLevel level = kind->level;

    umd_mutex_assert_held(&rules_lock);
    *which_out = UMD_LEVELS_NONE;
    if (!enabled[sink])
        return UMD_LOG_OFF;
    if (lookup_locked(&sets[sink], module, &level))
        *which_out = (int)sink;
    else if (!kind->own_levels && lookup_locked(&sets[UMD_LEVELS_ALL], module, &level))
        *which_out = UMD_LEVELS_ALL;
    else
        (void)lookup_locked(&built_in[sink], module, &level);
    return level;
}

umdLogLevel umd_log_level_by(enum umd_log_sink_id sink, const char *module, int *which_out, enum umd_log_source *source_out)
{
    umd_mutex_lock(&rules_lock);
    umdLogLevel level = level_locked(sink, module, which_out);
    *source_out = *which_out == UMD_LEVELS_NONE ? UMD_SOURCE_DEFAULT : sets[*which_out].source;
    umd_mutex_unlock(&rules_lock);
    return level;
}

umdLogLevel umd_log_level_of(enum umd_log_sink_id sink, const char *module)
{
    enum umd_log_source source;
    int which;

    return umd_log_level_by(sink, module, &which, &source);
}

bool umd_log_levels_enabled(enum umd_log_sink_id sink)
{
    umd_mutex_lock(&rules_lock);
    bool on = enabled[sink];
    umd_mutex_unlock(&rules_lock);
    return on;
}

/* At least ERROR: the emergency ring wants those whatever the sinks do. */
static umdLogLevel levels_of(const char *module, umdLogLevel level_out[UMD_SINK_COUNT])
{
    umdLogLevel max = UMD_LOG_ERROR;
    int which;

    umd_mutex_lock(&rules_lock);
    for (int i = 0; i < UMD_SINK_COUNT; i++) {
        level_out[i] = level_locked((enum umd_log_sink_id)i, module, &which);
        if (level_out[i] > max)
            max = level_out[i];
    }
    umd_mutex_unlock(&rules_lock);
    return max;
}

umdLogLevel umd_log_level_max(const char *module)
{
    umdLogLevel level[UMD_SINK_COUNT];

    return levels_of(module, level);
}

uint32_t umd_log_levels_epoch(void) { return atomic_load_explicit(&epoch, memory_order_acquire); }

static_assert(UMD_SINK_COUNT <= UMD_LOG_MODULE_SINKS, "a module has room for the level of each sink");

static void refresh_module_locked(umdLogModule *m)
{
    umdLogLevel level[UMD_SINK_COUNT], max = levels_of(m->name, level);

    for (int i = 0; i < UMD_SINK_COUNT; i++)
        atomic_store_explicit(&m->sink_level[i], (uint8_t)(level[i] + 1), memory_order_relaxed);
    atomic_store_explicit(&m->level, (int)max, memory_order_relaxed);
}

static void refresh_locked(void)
{
    umd_mutex_assert_held(&registry_lock);
    atomic_fetch_add_explicit(&epoch, 1, memory_order_release);
    for (umdLogModule *m = modules; m; m = m->next)
        refresh_module_locked(m);
}

void umd_log_module_register(umdLogModule *module, umdLogSite *sites, umdLogSite *sites_end)
{
    umd_mutex_lock(&registry_lock);
    module->next = modules;
    modules = module;
    umd_log_sites_add(sites, sites_end);
    refresh_module_locked(module);
    umd_mutex_unlock(&registry_lock);
}

/*
 * The module's texts may be unmapped next: what names them has to be out first, and no line may be in the making. Where a sink holds the
 * writer up all the same, the sites go without the lock, and what waits in the rings is counted as dropped.
 */
void umd_log_module_unregister(umdLogModule *module, umdLogSite *sites)
{
    static _Atomic(bool) held_up; /* by a sink that blocks: all modules go at exit, and only the first waits */
    const uint32_t wait_ms = atomic_load(&held_up) ? 0 : UNLOAD_MS;

    if (wait_ms)
        (void)umd_log_flush_for(wait_ms); /* by the writer, while the registry is free */
    umd_mutex_lock(&registry_lock);
    const bool held = umd_log_drain_hold(wait_ms);
    atomic_store(&held_up, !held);
    for (umdLogModule **at = &modules; *at; at = &(*at)->next) {
        if (*at == module) {
            *at = module->next;
            break;
        }
    }
    umd_log_sites_remove(sites);
    if (held)
        umd_log_drain_unlock();
    umd_mutex_unlock(&registry_lock);
}

static bool parse_level(const char *s, size_t n, umdLogLevel *out)
{
    for (int i = 0; i <= UMD_LOG_TRACE; i++) {
        if (strlen(names[i]) == n && strncasecmp(s, names[i], n) == 0) {
            *out = (umdLogLevel)i;
            return true;
        }
    }
    return false;
}

static bool parse(const char *spec, struct rules *out, size_t *bad_out)
{
    const char *s = spec;

    *out = (struct rules){ 0 };
    for (;;) {
        s += strspn(s, " \t");
        size_t n = strcspn(s, ","), left = strcspn(s, "=,");
        struct rule *r = &out->rule[out->count];
        *bad_out = (size_t)(s - spec);
        while (n && (s[n - 1] == ' ' || s[n - 1] == '\t'))
            n--;
        if (n == 0 && s[strcspn(s, ",")] == '\0')
            return true; /* nothing, or a comma at the end */
        if (out->count == RULES_MAX)
            return false;
        if (left < n) {
            if (left == 0 || left >= sizeof(r->prefix))
                return false;
            memcpy(r->prefix, s, left);
            *bad_out += left + 1;
            if (!parse_level(s + left + 1, n - left - 1, &r->level))
                return false;
        } else if (!parse_level(s, n, &r->level)) {
            return false;
        }
        out->count++;
        s += strcspn(s, ",");
        if (!*s++)
            return true;
    }
}

void umd_log_levels_enable(enum umd_log_sink_id sink, bool on)
{
    const char *rules = umd_log_sink_kind_of(sink)->rules;
    size_t bad;

    umd_mutex_lock(&registry_lock);
    umd_mutex_lock(&rules_lock);
    if (rules && !built_in[sink].count) {
        bool ok = parse(rules, &built_in[sink], &bad);
        assert(ok);
        (void)ok;
    }
    enabled[sink] = on;
    umd_mutex_unlock(&rules_lock);
    refresh_locked();
    umd_mutex_unlock(&registry_lock);
}

bool umd_log_levels_set(int which, const char *spec, enum umd_log_source source, size_t *bad_out)
{
    struct rules fresh;

    if (!parse(spec, &fresh, bad_out))
        return false;
    fresh.source = source;
    umd_mutex_lock(&registry_lock);
    umd_mutex_lock(&rules_lock);
    sets[which] = fresh;
    umd_mutex_unlock(&rules_lock);
    refresh_locked();
    umd_mutex_unlock(&registry_lock);
    return true;
}

bool umd_log_levels_check(const char *spec, size_t *bad_out)
{
    struct rules unused;

    return parse(spec, &unused, bad_out);
}

void umd_log_levels_each(const char *spec, void (*each)(void *arg, const char *module), void *arg)
{
    struct rules rules;
    size_t bad;

    if (!parse(spec, &rules, &bad))
        return;
    for (uint32_t i = 0; i < rules.count; i++)
        each(arg, rules.rule[i].prefix);
    if (!rules.count)
        each(arg, "");
}

void umd_log_levels_forget(int which)
{
    umd_mutex_lock(&registry_lock);
    umd_mutex_lock(&rules_lock);
    if (sets[which].source >= UMD_SOURCE_API)
        sets[which] = (struct rules){ 0 };
    umd_mutex_unlock(&rules_lock);
    refresh_locked();
    umd_mutex_unlock(&registry_lock);
}

enum umd_log_source umd_log_levels_describe(int which, char *buf, size_t size)
{
    size_t at = 0;

    buf[0] = '\0';
    umd_mutex_lock(&rules_lock);
    const struct rules *set = &sets[which];
    for (uint32_t i = 0; i < set->count && at < size; i++) {
        const struct rule *r = &set->rule[i];
        int n = snprintf(buf + at, size - at, "%s%s%s%s", i ? "," : "", r->prefix, r->prefix[0] ? "=" : "", names[r->level]);
        at += n > 0 ? (size_t)n : 0;
    }
    enum umd_log_source source = set->source;
    umd_mutex_unlock(&rules_lock);
    for (char *c = buf; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + ('a' - 'A') : *c);
    return source;
}

void umd_log_modules_each(void (*each)(void *arg, const char *name, umdLogLevel level), void *arg)
{
    umd_mutex_lock(&registry_lock);
    for (umdLogModule *m = modules; m; m = m->next) {
        bool seen = false;
        for (umdLogModule *before = modules; before != m && !seen; before = before->next)
            seen = strcmp(before->name, m->name) == 0;
        if (!seen)
            each(arg, m->name, (umdLogLevel)atomic_load_explicit(&m->level, memory_order_relaxed));
    }
    umd_mutex_unlock(&registry_lock);
}

void umd_log_levels_atfork(int stage)
{
    if (stage == 0) {
        pthread_mutex_lock(&registry_lock.m);
    } else {
        pthread_mutex_unlock(&registry_lock.m);
    }
}

void umd_log_rules_atfork(int stage)
{
    if (stage == 0)
        pthread_mutex_lock(&rules_lock.m);
    else
        pthread_mutex_unlock(&rules_lock.m);
}
