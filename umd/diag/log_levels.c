/* SPDX-License-Identifier: MIT */
/* log_levels.c - which module logs up to which level, to which sink; the registry of modules. */
#include <string.h>
#include <strings.h>

#include "log_internal.h"
#include "log_site.h"

#define RULES_MAX 32u

struct rule {
    char prefix[32];        /* "" for all */
    umdLogLevel level;
};
struct rules {
    struct rule rule[RULES_MAX];
    uint32_t count;
};

static struct umd_mutex registry_lock = { .m = PTHREAD_MUTEX_INITIALIZER, .name = "log registry", .rank = 90 };
static struct umd_mutex rules_lock = { .m = PTHREAD_MUTEX_INITIALIZER, .name = "log levels", .rank = 97 };
static umdLogModule *modules;           /* under registry_lock */
static struct rules sets[UMD_LEVELS_SETS];
static bool enabled[UMD_SINK_COUNT];
static const umdLogLevel defaults[UMD_SINK_COUNT] = {
    [UMD_SINK_CONSOLE] = UMD_LOG_WARN, [UMD_SINK_TEXT] = UMD_LOG_INFO, [UMD_SINK_JSON] = UMD_LOG_INFO,
};
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

static umdLogLevel level_locked(enum umd_log_sink_id sink, const char *module)
{
    umdLogLevel level = defaults[sink];

    umd_mutex_assert_held(&rules_lock);
    if (!enabled[sink])
        return UMD_LOG_OFF;
    if (!lookup_locked(&sets[sink], module, &level))
        (void)lookup_locked(&sets[UMD_LEVELS_ALL], module, &level);
    return level;
}

umdLogLevel umd_log_level_of(enum umd_log_sink_id sink, const char *module)
{
    umd_mutex_lock(&rules_lock);
    umdLogLevel level = level_locked(sink, module);
    umd_mutex_unlock(&rules_lock);
    return level;
}

/* At least ERROR: the emergency ring wants those whatever the sinks do. */
umdLogLevel umd_log_level_max(const char *module)
{
    umdLogLevel max = UMD_LOG_ERROR;

    umd_mutex_lock(&rules_lock);
    for (int i = 0; i < UMD_SINK_COUNT; i++) {
        umdLogLevel level = level_locked((enum umd_log_sink_id)i, module);
        if (level > max)
            max = level;
    }
    umd_mutex_unlock(&rules_lock);
    return max;
}

static void refresh_locked(void)
{
    umd_mutex_assert_held(&registry_lock);
    for (umdLogModule *m = modules; m; m = m->next)
        atomic_store_explicit(&m->level, (int)umd_log_level_max(m->name), memory_order_relaxed);
}

void umd_log_module_register(umdLogModule *module, umdLogSite *sites, umdLogSite *sites_end)
{
    umd_mutex_lock(&registry_lock);
    module->next = modules;
    modules = module;
    umd_log_sites_add(sites, sites_end);
    atomic_store_explicit(&module->level, (int)umd_log_level_max(module->name), memory_order_relaxed);
    umd_mutex_unlock(&registry_lock);
}

/* The module's texts may be unmapped next: what names them has to be out first. */
void umd_log_module_unregister(umdLogModule *module, umdLogSite *sites)
{
    umdLogFlush(2000);
    umd_mutex_lock(&registry_lock);
    for (umdLogModule **at = &modules; *at; at = &(*at)->next) {
        if (*at == module) {
            *at = module->next;
            break;
        }
    }
    umd_log_sites_remove(sites);
    umd_mutex_unlock(&registry_lock);
}

void umd_log_levels_enable(enum umd_log_sink_id sink, bool on)
{
    umd_mutex_lock(&registry_lock);
    umd_mutex_lock(&rules_lock);
    enabled[sink] = on;
    umd_mutex_unlock(&rules_lock);
    refresh_locked();
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

bool umd_log_levels_set(int which, const char *spec, size_t *bad_out)
{
    struct rules fresh;

    if (!parse(spec, &fresh, bad_out))
        return false;
    umd_mutex_lock(&registry_lock);
    umd_mutex_lock(&rules_lock);
    sets[which] = fresh;
    umd_mutex_unlock(&rules_lock);
    refresh_locked();
    umd_mutex_unlock(&registry_lock);
    return true;
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
