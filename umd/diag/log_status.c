/* SPDX-License-Identifier: MIT */
/* log_status.c - the state of the log as one JSON object: sinks, levels and where each came from, counts. */
#include <errno.h>

#include "log_control_serve.h"
#include "log_sinks.h"

#define MODULES_ROOM_B 64u  /* for one of them, and the end of the object */

static const char *source_name(enum umd_log_source s)
{
    static const char *const names[] = {
        [UMD_SOURCE_DEFAULT] = "default", [UMD_SOURCE_CONFIG] = "config", [UMD_SOURCE_ENVIRONMENT] = "environment",
        [UMD_SOURCE_API] = "api", [UMD_SOURCE_CONTROL] = "control",
    };

    return names[s];
}

static void out_key(struct umd_out *o, const char *key)
{
    if (o->len && o->len <= o->size && o->buf[o->len - 1] != '{' && o->buf[o->len - 1] != '[')
        umd_out_char(o, ',');
    umd_out_char(o, '"');
    umd_out_str(o, key);
    UMD_OUT_LIT(o, "\":");
}

static void out_text(struct umd_out *o, const char *key, const char *value)
{
    out_key(o, key);
    umd_out_json(o, value, strlen(value));
}

static void out_number(struct umd_out *o, const char *key, uint64_t value)
{
    out_key(o, key);
    umd_out_u64(o, value);
}

static void out_bool(struct umd_out *o, const char *key, bool value)
{
    out_key(o, key);
    umd_out_str(o, value ? "true" : "false");
}

static void out_levels(struct umd_out *o, int which)
{
    char spec[1024];
    enum umd_log_source source = umd_log_levels_describe(which, spec, sizeof(spec));

    out_text(o, "levels", spec);
    out_text(o, "levels_from", source_name(source));
}

static void out_sink(struct umd_out *o, enum umd_log_sink_id id)
{
    const struct umd_log_sink_kind *kind = umd_log_sink_kind_of(id);
    const struct umd_log_sink *s = umd_log_sink_of(id);

    umd_out_char(o, '{');
    out_text(o, "name", kind->name);
    out_bool(o, "enabled", s->enabled);
    if (!kind->console && s->enabled) {
        out_text(o, "path", s->path);
        out_text(o, "path_from", source_name(s->source));
        out_bool(o, "open", s->fd >= 0);
    }
    out_levels(o, (int)id);
    out_text(o, "default", kind->rules ? kind->rules : umd_log_level_name(kind->level));
    out_bool(o, "failing", s->failing);
    if (s->failing) {
        out_number(o, "errno", (uint64_t)s->err);
        out_text(o, "reason", strerrordesc_np(s->err) ? strerrordesc_np(s->err) : "");
    }
    out_number(o, "waiting", s->lines);
    out_number(o, "lost", s->lost_total);
    out_number(o, "file_B", s->written_B);
    umd_out_char(o, '}');
}

static void out_counts(struct umd_out *o)
{
    umdLogStats stats;

    umdLogGetStats(&stats);
    out_key(o, "counts");
    umd_out_char(o, '{');
    out_number(o, "records", stats.records);
    out_number(o, "dropped", stats.dropped);
    out_number(o, "lost", stats.lost);
    out_number(o, "sink_errors", stats.sink_errors);
    out_number(o, "sink_errno", (uint64_t)stats.sink_errno);
    out_number(o, "emergency", stats.emergency);
    umd_out_char(o, '}');
}

/* ---- After a change ---- */

struct asked {
    struct umd_out *o;
    enum umd_log_sink_id sink;
};

static void out_asked(void *arg, const char *module)
{
    const struct asked *a = arg;
    enum umd_log_source source;
    int which;
    umdLogLevel level = umd_log_level_by(a->sink, module, &which, &source);

    if (a->o->len && a->o->buf[(a->o->len < a->o->size ? a->o->len : a->o->size) - 1] == '}')
        umd_out_char(a->o, ',');
    umd_out_char(a->o, '{');
    out_text(a->o, "module", *module ? module : "*");
    out_text(a->o, "level", umd_log_level_name(level));
    out_text(a->o, "set_for", which == UMD_LEVELS_NONE ? "none" : which == UMD_LEVELS_ALL ? "all" : umd_log_sink_kind_of(a->sink)->name);
    out_text(a->o, "levels_from", source_name(source));
    umd_out_char(a->o, '}');
}

void umd_log_status_levels(struct umd_out *o, const char *spec)
{
    bool first = true;

    umd_out_char(o, '{');
    out_text(o, "ceiling", umd_log_level_name(UMD_LOG_CEILING));
    out_key(o, "sinks");
    umd_out_char(o, '[');
    for (int i = 0; i < UMD_SINK_COUNT; i++) {
        if (!umd_log_levels_enabled((enum umd_log_sink_id)i))
            continue;
        if (!first)
            umd_out_char(o, ',');
        first = false;
        umd_out_char(o, '{');
        out_text(o, "name", umd_log_sink_kind_of((enum umd_log_sink_id)i)->name);
        out_key(o, "modules");
        umd_out_char(o, '[');
        umd_log_levels_each(spec, out_asked, &(struct asked){ o, (enum umd_log_sink_id)i });
        umd_out_char(o, ']');
        umd_out_char(o, '}');
    }
    umd_out_char(o, ']');
    umd_out_char(o, '}');
}

static void out_module(void *arg, const char *name, umdLogLevel level)
{
    struct umd_out *o = arg;

    if (o->len + strlen(name) + MODULES_ROOM_B > o->size)
        return;
    out_text(o, name, umd_log_level_name(level));
}

void umd_log_status(struct umd_out *o)
{
    umd_out_char(o, '{');
    out_number(o, "pid", umd_sys()->pid());
    out_text(o, "version", PETREL_VERSION);
    out_text(o, "ceiling", umd_log_level_name(UMD_LOG_CEILING));
    out_levels(o, UMD_LEVELS_ALL);
    out_key(o, "sinks");
    umd_out_char(o, '[');
    umd_log_drain_lock();
    for (int i = 0; i < UMD_SINK_COUNT; i++) {
        if (i)
            umd_out_char(o, ',');
        out_sink(o, (enum umd_log_sink_id)i);
    }
    umd_log_drain_unlock();
    umd_out_char(o, ']');
    out_counts(o);
    out_key(o, "modules"); /* the highest level that any sink takes */
    umd_out_char(o, '{');
    umd_log_modules_each(out_module, o);
    umd_out_char(o, '}');
    umd_out_char(o, '}');
}
