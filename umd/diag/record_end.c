/* SPDX-License-Identifier: MIT */
/* record_end.c - the end of a record: delivered, absorbed or swallowed; counted, kept, and told in one line of the log. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag_internal.h"
#include "emergency.h"

UMD_LOG_MODULE("diag.record");

static const char *const end_names[] = {
    [UMD_RECORD_OPEN] = "open", [UMD_RECORD_DELIVERED] = "delivered", [UMD_RECORD_ABSORBED] = "absorbed", [UMD_RECORD_SWALLOWED] = "swallowed",
};

/* "umd:umd_device_ioctl:device.c:120:-4002>-4002 ...": each hop's layer, function, place, code in and code out, in order. */
static void hops_text(const umdErrorDetail *rec, char *buf, size_t size)
{
    size_t n = 0;

    buf[0] = '\0';
    for (uint32_t i = 0; i < rec->hop_count && i < UMD_RECORD_HOPS; i++) {
        const umdHop *h = &rec->hops[i];
        int k = snprintf(buf + n, size - n, "%s%s:%s:%s:%u:%d>%d", i ? " " : "", h->layer, h->func, h->file, h->line, (int)h->code_in,
                         (int)h->code_out);
        if (k < 0 || (size_t)k >= size - n) {
            buf[n] = '\0'; /* whole hops only */
            return;
        }
        n += (size_t)k;
    }
}

static void id_figure(char *message, size_t size, const char *fmt, umdRecordId id)
{
    char text[64];

    if (!id.seq)
        return;
    snprintf(text, sizeof(text), "%08x:%u:%" PRIu64, id.boot, id.pid, id.seq);
    if (*fmt == 'c')
        umd_figures_append(message, size, "cause=%s", text);
    else
        umd_figures_append(message, size, "first=%s", text);
}

void umd_record_log_end(umdLogModule *module, const umdErrorDetail *rec, umdRecordEnd end)
{
    char message[1800], hops[UMD_RECORD_HOPS * 128];
    umdErrorDetail first;

    if ((int)UMD_LOG_INFO > atomic_load_explicit(&module->level, memory_order_relaxed))
        return;
    snprintf(message, sizeof(message), "ended %s:", umdStatusName((umdStatus)rec->code));
    umd_figures_append(message, sizeof(message), "end=%s", end_names[end]);
    if (rec->api[0])
        umd_figures_append(message, sizeof(message), "call=%s", rec->api);
    if (rec->origin_code != rec->code)
        umd_figures_append(message, sizeof(message), "origin=%s", umdStatusName((umdStatus)rec->origin_code));
    if (end == UMD_RECORD_ABSORBED)
        umd_figures_append(message, sizeof(message), "reason=\"%s\"", rec->absorbed);
    id_figure(message, sizeof(message), "cause", rec->cause);
    first.size_B = sizeof(first);
    if (rec->cause.seq && umdGetFirstCause(rec->id, &first) == UMD_SUCCESS)
        id_figure(message, sizeof(message), "first", first.id);
    if (rec->repeat)
        umd_figures_append(message, sizeof(message), "repeat=%u", rec->repeat);
    umd_advice_figures(message, sizeof(message), &rec->advice);
    hops_text(rec, hops, sizeof(hops));
    umd_figures_append(message, sizeof(message), "hops=\"%s\"", hops);
    umd_log_text(&(struct umd_log_text){
        .level = UMD_LOG_INFO, .module = module->name, .func = rec->func, .file = rec->file, .line = rec->line, .code = rec->code,
        .context_id = rec->context_id, .record = rec->id, .message = message,
    });
}

/* The site's format was checked where it stands. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
void umd_record_note(const umdLogSite *site, const umdErrorDetail *d, ...)
{
    char message[1200];
    va_list ap;

    va_start(ap, d);
    vsnprintf(message, sizeof(message), site->fmt, ap);
    va_end(ap);
    umd_record_store_put(d); /* who asks by its id knows what was added from here on */
    if (d->advice.severity >= UMD_SEVERITY_ERROR)
        umd_emergency_put(&(struct umd_emergency_note){ .module = site->module->name, .func = site->func, .file = site->file,
            .line = site->line, .lifecycle = true, .context_id = d->context_id, .record = d->id, .message = message });
    umd_emergency_tell();
    if ((int)UMD_LOG_INFO > atomic_load_explicit(&site->module->level, memory_order_relaxed))
        return;
    umd_log_text(&(struct umd_log_text){
        .level = UMD_LOG_INFO, .module = site->module->name, .func = site->func, .file = site->file, .line = site->line, .context_id = d->context_id,
        .record = d->id, .message = message,
    });
}
#pragma GCC diagnostic pop

/* ---- Swallowed: a defect of ours ---- */

static bool abort_on_swallow;

__attribute__((constructor(103))) static void read_environment(void)
{
    const char *text = secure_getenv("UMD_ABORT_ON_SWALLOW");

    abort_on_swallow = text && *text && strcmp(text, "0") != 0;
}

static void tell_and_abort(const umdErrorDetail *rec)
{
    char text[8192];
    size_t n = umdErrorDetailFormatFull(rec, text, sizeof(text));
    static const char head[] = "a record was swallowed, and UMD_ABORT_ON_SWALLOW is set:\n";

    umdLogFlush(500);
    (void)!write(STDERR_FILENO, head, sizeof(head) - 1);
    (void)!write(STDERR_FILENO, text, n < sizeof(text) ? n : sizeof(text) - 1);
    abort();
}

static void tell_swallowed(const umdErrorDetail *rec)
{
    char message[192];

    snprintf(message, sizeof(message), "a record was swallowed: nobody saw %s of %s", umdStatusName((umdStatus)rec->code), rec->func);
    umd_emergency_put(&(struct umd_emergency_note){
        .module = "diag.record", .func = rec->func, .file = rec->file, .line = rec->line, .code = rec->code, .context_id = rec->context_id,
        .record = rec->id, .message = message,
    });
    umd_log_text(&(struct umd_log_text){
        .level = UMD_LOG_ERROR, .module = "diag.record", .func = rec->func, .file = rec->file, .line = rec->line, .code = rec->code,
        .context_id = rec->context_id, .record = rec->id, .message = message,
    });
    umd_record_log_end(&umd_log_this_module, rec, UMD_RECORD_SWALLOWED);
    if (abort_on_swallow)
        tell_and_abort(rec);
}

void umd_record_end(struct umd_record_scope *s, umdRecordEnd end)
{
    static const enum umd_record_counter counter[] = {
        [UMD_RECORD_DELIVERED] = UMD_COUNT_DELIVERED,
        [UMD_RECORD_ABSORBED] = UMD_COUNT_ABSORBED,
        [UMD_RECORD_SWALLOWED] = UMD_COUNT_SWALLOWED,
    };

    s->rec.end = end;
    s->open = false;
    umd_record_count(counter[end], s->rec.code, 1);
    umd_record_store_put(&s->rec);
    if (end == UMD_RECORD_SWALLOWED)
        tell_swallowed(&s->rec);
}

void umd_record_drop(umdErrorDetail *detail, const char *why)
{
    detail->end = UMD_RECORD_ABSORBED;
    UMD_COPY_STR(detail->absorbed, why);
    umd_record_count(UMD_COUNT_DELIVERED, detail->code, -1);
    umd_record_count(UMD_COUNT_ABSORBED, detail->code, 1);
    umd_record_store_put(detail);
    umd_record_store_set_travels(detail->id, false);
    if (!detail->repeat || umd_power_of_ten(detail->repeat))
        umd_record_log_end(&umd_log_this_module, detail, UMD_RECORD_ABSORBED);
}

void umd_record_told(const umdErrorDetail *detail)
{
    umd_record_store_set_travels(detail->id, false);
    if (!detail->repeat || umd_power_of_ten(detail->repeat))
        umd_record_log_end(&umd_log_this_module, detail, UMD_RECORD_DELIVERED);
}

void umd_record_retried(umdStatus st) { umd_record_count(UMD_COUNT_RETRIED, st, 1); }

/* Of one that leaves over a carrier, or is kept to be told later, this is not the end: its story goes on. */
void umd_record_log_delivered(const struct umd_record_scope *s)
{
    if (!s->quiet)
        umd_record_log_end(&umd_log_this_module, &s->rec, UMD_RECORD_DELIVERED);
}
