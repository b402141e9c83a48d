/* SPDX-License-Identifier: MIT */
/* record.c - the life of an error record on its thread: raise, hop, absorb, end; scopes and carriers. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "diag_internal.h"
#include "emergency.h"

UMD_LOG_MODULE("diag.record");

#define FOLD_WINDOW_NS 1000000000ull

void umd_record_set_context(uint64_t context_id)
{
    struct umd_diag_thread *t = umd_diag_thread_get();

    if (!t || t->context_id == context_id)
        return;
    t->context_id = context_id;
    t->unsettled = true;
}

uint64_t umd_record_get_context(void)
{
    const struct umd_diag_thread *t = umd_diag_thread_get();
    return t ? t->context_id : 0;
}

struct umd_record_scope *umd_record_scope_of(struct umd_diag_thread *t)
{
    return &t->scopes[t->scope < UMD_SCOPES ? t->scope : UMD_SCOPES - 1];
}

const char *umd_record_api_name(const struct umd_diag_thread *t)
{
    if (t->depth == 0)
        return "";
    uint64_t seq = t->call_at[t->depth <= 16 ? t->depth - 1 : 15];
    const struct umd_call_entry *call = &t->calls[seq % UMD_CALLS];
    return call->site ? call->site->name : "";
}

/* The record of a public call of ours, made inside another one, goes on with the outer call. */
bool umd_record_reopen_nested(struct umd_diag_thread *t, umdStatus st)
{
    struct umd_record_scope *s = umd_record_scope_of(t);

    if (s->open || !umd_record_is_nested(t) || t->depth == 0 || t->last.code != (int32_t)st)
        return false;
    s->rec = t->last;
    s->rec.end = UMD_RECORD_OPEN;
    s->open = true;
    s->quiet = !t->last_owed;
    t->last_nested = t->last_owed = false;
    umd_record_count(UMD_COUNT_DELIVERED, (int32_t)st, -1);
    return true;
}

void umd_record_settle_nested(struct umd_diag_thread *t)
{
    bool owed = t->last_owed;

    t->last_nested = t->last_owed = false;
    if (owed)
        umd_record_log_end(&umd_log_this_module, &t->last, UMD_RECORD_DELIVERED);
}

/* The log line of a record's begin, and its copy in the emergency ring, which comes first (C7). */
static void announce(umdLogModule *module, const umdErrorDetail *rec)
{
    char message[UMD_RECORD_TEXT + UMD_RECORD_FIGURES + 256];
    const umdLogLevel level = UMD_LEVEL_OF_SEVERITY(rec->advice.severity);
    int n = snprintf(message, sizeof(message), "%s: %s %s", umdStatusName((umdStatus)rec->code), rec->text, rec->figures);

    if (rec->cause.seq && n > 0 && (size_t)n < sizeof(message))
        n += snprintf(message + n, sizeof(message) - (size_t)n, " cause=%08x:%u:%" PRIu64, rec->cause.boot, rec->cause.pid, rec->cause.seq);
    if (rec->repeat && n > 0 && (size_t)n < sizeof(message))
        snprintf(message + n, sizeof(message) - (size_t)n, " repeat=%u", rec->repeat);
    if (umd_advice_is_own(rec)) /* the table's is known to who reads the code */
        umd_advice_figures(message, sizeof(message), &rec->advice);
    if (level == UMD_LOG_ERROR)
        umd_emergency_put(&(struct umd_emergency_note){
            .module = module->name, .func = rec->func, .file = rec->file, .line = rec->line,
            .code = rec->code, .context_id = rec->context_id, .record = rec->id, .message = message,
        });
    umd_emergency_tell();
    if ((int)level > atomic_load_explicit(&module->level, memory_order_relaxed))
        return;
    umd_log_text(&(struct umd_log_text){
        .level = level, .module = module->name, .func = rec->func, .file = rec->file, .line = rec->line,
        .code = rec->code, .context_id = rec->context_id, .record = rec->id, .message = message,
    });
}

bool umd_power_of_ten(uint32_t n)
{
    while (n && n % 10 == 0)
        n /= 10;
    return n == 1;
}

/* The same failure again, with nothing else raised in between: one record that counts. */
static bool fold(struct umd_diag_thread *t, struct umd_record_scope *s, const umdErrorDetail *fresh, const struct umd_fold_key *key)
{
    const struct umd_fold_key *old = &t->fold;

    if (!old->id.seq || old->func != key->func || old->line != key->line || old->code != key->code ||
        old->context_id != key->context_id || !umd_id_equal(old->cause, key->cause) ||
        key->last_ns - old->last_ns > FOLD_WINDOW_NS || !umd_record_store_get(old->id, &s->rec))
        return false;
    if (strcmp(s->rec.figures, fresh->figures) != 0 || strcmp(s->rec.api, fresh->api) != 0 || s->rec.call_depth != fresh->call_depth)
        return false;
    s->rec.repeat++;
    s->rec.code = fresh->code;
    s->rec.advice = fresh->advice;
    s->rec.hop_count = 0;
    memset(s->rec.hops, 0, sizeof(s->rec.hops));
    s->rec.absorbed[0] = '\0';
    s->rec.end = UMD_RECORD_OPEN;
    t->fold.last_ns = key->last_ns;
    return true;
}

/* Too little memory for the thread's state: the failure still reaches the emergency ring and the caller. */
static umdStatus raise_without_state(const umdLogSite *site, umdStatus code)
{
    umd_record_count(UMD_COUNT_RAISED, code, 1);
    umd_record_count(UMD_COUNT_DELIVERED, code, 1);
    umd_emergency_put(&(struct umd_emergency_note){
        .module = site->module->name, .func = site->func, .file = site->file, .line = site->line, .code = code,
        .message = "raised where the diagnosis library had no memory",
    });
    return code;
}

/* A failure as it is first seen. */
struct origin {
    const umdLogSite *site;
    umdStatus code;
    umdRecordId cause;
    const umdAdvice *advice;     /* NULL: the code's own */
    const void *frame;           /* of the function here that was called */
};

static void fill(umdErrorDetail *rec, struct umd_diag_thread *t, const struct origin *o)
{
    *rec = (umdErrorDetail){
        .size_B = sizeof(*rec), .code = o->code, .origin_code = o->code, .cause = o->cause,
        .mono_ns = umd_sys()->mono_ns(), .real_ns = umd_sys()->real_ns(), .context_id = t->context_id,
        .tid = umd_sys()->tid(), .call_depth = t->depth, .advice = o->advice ? *o->advice : umdStatusAdvice(o->code), .line = o->site->line,
    };
    UMD_COPY_STR(rec->func, o->site->func);
    UMD_COPY_STR(rec->file, o->site->file);
    UMD_COPY_STR(rec->module, o->site->module->name);
    UMD_COPY_STR(rec->api, umd_record_api_name(t));
    UMD_COPY_STR(rec->text, umdStatusString(o->code));
}

/* Keeps the record and its scene. False: it is one of so many that it is not logged. */
static bool keep(struct umd_diag_thread *t, struct umd_record_scope *s, const struct origin *o, bool folded)
{
    umdErrorNote before[UMD_SCENE_ERRORS];
    uint32_t count = 0;

    if (folded)
        umd_record_store_put(&s->rec);
    else
        count = umd_record_store_raised(&s->rec, before);
    if (folded && !umd_power_of_ten(s->rec.repeat))
        return false; /* its scene was taken the first time */
    if (!folded || !umd_scene_known(s->rec.id))
        umd_scene_take(t, &s->rec, o->frame, before, count);
    const umdLogLevel level = UMD_LEVEL_OF_SEVERITY(s->rec.advice.severity);
    if (level != UMD_LOG_ERROR && (int)level > atomic_load_explicit(&o->site->module->level, memory_order_relaxed))
        return true; /* nobody listens: nothing to save */
    return folded || umd_limit_pass(&s->rec, level);
}

static umdStatus raise_at(const struct origin *o, va_list ap)
{
    int saved = errno;
    struct umd_diag_thread *t = umd_diag_thread_get();
    umdErrorDetail fresh;

    if (!t || umd_diag_inside())
        return raise_without_state(o->site, o->code);
    struct umd_record_scope *s = umd_record_scope_of(t);
    if (s->open) {
        bool linked = o->cause.seq && umd_id_equal(o->cause, s->rec.id);
        umd_record_end(s, linked ? UMD_RECORD_DELIVERED : UMD_RECORD_SWALLOWED);
        if (linked) /* lives on as a cause */
            umd_record_log_delivered(s);
    }
    fill(&fresh, t, o);
    umd_figures_vformat(fresh.figures, sizeof(fresh.figures), o->site->fmt, ap);
    struct umd_fold_key key = { .cause = o->cause, .func = o->site->func, .context_id = t->context_id, .last_ns = fresh.mono_ns,
                                .line = o->site->line, .code = o->code };
    bool folded = fold(t, s, &fresh, &key);
    if (!folded) {
        fresh.id = umd_record_id_next();
        s->rec = fresh;
        key.id = fresh.id;
        t->fold = key;
    }
    s->open = true;
    umd_record_settle_nested(t);
    umd_record_count(UMD_COUNT_RAISED, o->code, 1);
    s->quiet = !keep(t, s, o, folded);
    if (!s->quiet)
        announce(o->site->module, &s->rec);
    errno = saved;
    return o->code;
}

umdStatus umd_record_raise(const umdLogSite *site, umdStatus code, umdRecordId cause, ...)
{
    va_list ap;

    va_start(ap, cause);
    umdStatus st = raise_at(&(struct origin){ .site = site, .code = code, .cause = cause, .frame = __builtin_frame_address(0) }, ap);
    va_end(ap);
    return st;
}

umdStatus umd_record_raise_advised(const umdLogSite *site, umdStatus code, const umdAdvice *advice, umdRecordId cause, ...)
{
    va_list ap;

    va_start(ap, cause);
    umdStatus st = raise_at(&(struct origin){ .site = site, .code = code, .cause = cause, .advice = advice,
                                              .frame = __builtin_frame_address(0) }, ap);
    va_end(ap);
    return st;
}

umdStatus umd_record_raise_bare(umdLogModule *module, const char *func, const char *file, uint32_t line, umdStatus code)
{
    UMD_RECORD_SITE(UMD_SITE_RAISE, UMD_SITE_LEVEL_OF_CODE, 0, "origin=unrecorded raw=%d");
    umdLogSite site = umd_record_site_;

    site.module = module;
    site.func = func;
    site.file = file;
    site.line = line;
    return umd_record_raise(&site, code, (umdRecordId){ 0 }, (int)code);
}

void umd_record_add_hop(umdErrorDetail *rec, const char *module, const char *func, const char *file, int line, umdStatus in, umdStatus out)
{
    uint32_t at = rec->hop_count < UMD_RECORD_HOPS ? rec->hop_count++ : UMD_RECORD_HOPS - 1; /* the last place stays the newest */
    umdHop *hop = &rec->hops[at];

    *hop = (umdHop){ .line = (uint32_t)line, .code_in = in, .code_out = out };
    UMD_COPY_STR(hop->layer, module);
    hop->layer[strcspn(hop->layer, ".")] = '\0';
    UMD_COPY_STR(hop->func, func);
    UMD_COPY_STR(hop->file, file);
    if (rec->code != (int32_t)out)
        umd_advice_translate(rec, out);
    rec->code = out;
}

umdStatus umd_record_hop(umdLogModule *module, const char *func, const char *file, int line, umdStatus in, umdStatus out)
{
    struct umd_diag_thread *t = umd_diag_thread_peek();

    if (in >= 0)
        return out;
    if (!t || umd_diag_inside())
        return out;
    struct umd_record_scope *s = umd_record_scope_of(t);
    /* A bare code came up: the story starts here, and says so. */
    if (!s->open && !umd_record_reopen_nested(t, in))
        (void)umd_record_raise_bare(module, func, file, (uint32_t)line, in);
    if (s->open)
        umd_record_add_hop(&s->rec, module->name, func, file, line, in, out);
    return out;
}

void umd_record_absorb(const umdLogSite *site, umdStatus st, const char *why)
{
    int saved = errno;
    struct umd_diag_thread *t = umd_diag_thread_peek();

    if (!t || umd_diag_inside())
        return;
    struct umd_record_scope *s = umd_record_scope_of(t);
    if (!s->open && !umd_record_reopen_nested(t, st))
        return;
    UMD_COPY_STR(s->rec.absorbed, why);
    umd_record_end(s, UMD_RECORD_ABSORBED);
    if (!s->quiet) /* as its begin was: polling must not fill the log */
        umd_record_log_end(site->module, &s->rec, UMD_RECORD_ABSORBED);
    errno = saved;
}

umdRecordId umd_record_current(void)
{
    struct umd_diag_thread *t = umd_diag_thread_peek();

    if (!t || !umd_record_scope_of(t)->open)
        return (umdRecordId){ 0 };
    return umd_record_scope_of(t)->rec.id;
}

umdRecordId umd_record_take_cause(void)
{
    struct umd_diag_thread *t = umd_diag_thread_peek();

    if (!t)
        return (umdRecordId){ 0 };
    struct umd_record_scope *s = umd_record_scope_of(t);
    if (s->open)
        return s->rec.id;
    return umd_record_is_nested(t) && t->depth ? t->last.id : (umdRecordId){ 0 };
}

void umd_record_scope_begin(void)
{
    struct umd_diag_thread *t = umd_diag_thread_get();

    if (!t)
        return;
    t->scope++;
    if (t->last_nested && t->last_scope >= t->scope)
        umd_record_settle_nested(t); /* of a scope that has ended */
    if (t->scope >= UMD_SCOPES) {
        UMD_LOG(UMD_LOG_WARN, "record scopes nest too deep, records may mix depth=%u max=%u", t->scope, UMD_SCOPES - 1);
        return;
    }
    t->scopes[t->scope].open = false;
}

void umd_record_scope_end(void)
{
    struct umd_diag_thread *t = umd_diag_thread_peek();

    if (!t || t->scope == 0)
        return;
    if (t->scope < UMD_SCOPES && t->scopes[t->scope].open)
        umd_record_end(&t->scopes[t->scope], UMD_RECORD_SWALLOWED);
    t->scope--;
}
