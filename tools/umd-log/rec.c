/* SPDX-License-Identifier: MIT */
/* rec.c - log records: their texts, figures, ids, codes and times. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "umd-text.h"
#include "rec.h"
#include "status.h"

#define NS 1000000000ull

bool log_rec_begin(struct log_rec *rec, size_t room)
{
    char *buf = rec->buf;
    size_t size = rec->size;

    if (!buf || size < room) {
        buf = realloc(buf, room);
        if (!buf)
            return false;
        size = room;
    }
    *rec = (struct log_rec){
        .buf = buf, .size = size, .extra = rec->extra, .extra_size = rec->extra_size, .level_text = "", .module = "", .func = "", .file = "", .trace_id = "", .span_id = "", .message = "", .code_name = "",
        .path = "", .flags = -1,
    };
    return true;
}

const char *log_rec_text(struct log_rec *rec, const char *text, size_t n)
{
    size_t left = rec->size - rec->used;
    char *at = rec->buf + rec->used;

    if (left < 2)
        return "";
    if (n > left - 1)
        n = left - 1;
    memcpy(at, text, n);
    at[n] = '\0';
    for (size_t i = 0; i < n; i++) {
        if (at[i] == '\0')
            at[i] = '?';
    }
    text_clean(at);
    rec->used += n + 1;
    return at;
}

/* Most records have none. */
static bool extras_for(struct log_rec *rec, uint32_t count)
{
    if (count <= rec->extra_size)
        return true;
    const uint32_t size = count < 4 ? 4 : count < LOG_EXTRAS / 2 ? 2 * count : LOG_EXTRAS;
    struct log_pair *grown = realloc(rec->extra, size * sizeof(*grown));
    if (!grown)
        return false;
    rec->extra = grown;
    rec->extra_size = size;
    return true;
}

void log_rec_extra(struct log_rec *rec, const char *key, size_t key_n, const char *value, size_t value_n)
{
    if (rec->extra_count == LOG_EXTRAS || !extras_for(rec, rec->extra_count + 1))
        return;
    struct log_pair *p = &rec->extra[rec->extra_count++];
    p->key = log_rec_text(rec, key, key_n);
    p->value = log_rec_text(rec, value, value_n);
}

const char *log_rec_extra_of(const struct log_rec *rec, const char *key)
{
    for (uint32_t i = 0; i < rec->extra_count; i++) {
        if (strcmp(rec->extra[i].key, key) == 0)
            return rec->extra[i].value;
    }
    return NULL;
}

/* Length of a code's name at text, 0 if there is none. */
static size_t code_name_length(const char *text)
{
    size_t n = 4;

    if (strncmp(text, "UMD_", 4) != 0)
        return 0;
    while (isupper((unsigned char)text[n]) || isdigit((unsigned char)text[n]) || text[n] == '_')
        n++;
    return n > 4 ? n : 0;
}

void log_rec_find_code(struct log_rec *rec)
{
    static const char *const before[] = { "", "ended ", "absorbed ", "a record was swallowed: nobody saw " };

    if (*rec->code_name || !rec->id.seq)
        return;
    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
        size_t skip = strlen(before[i]);
        if (strncmp(rec->message, before[i], skip) != 0)
            continue;
        size_t n = code_name_length(rec->message + skip);
        if (n) {
            rec->code_name = log_rec_text(rec, rec->message + skip, n);
            rec->code = log_code_of(rec->code_name);
            return;
        }
    }
}

static const char *moved(const struct log_rec *to, const struct log_rec *from, const char *text)
{
    bool inside = text >= from->buf && text < from->buf + from->size;
    return inside ? to->buf + (text - from->buf) : text;
}

bool log_rec_copy(struct log_rec *to, const struct log_rec *from)
{
    if (to->size < from->used || !to->buf) {
        char *buf = realloc(to->buf, from->used ? from->used : 1);
        if (!buf)
            return false;
        to->buf = buf;
        to->size = from->used ? from->used : 1;
    }
    if (!extras_for(to, from->extra_count))
        return false;
    const struct log_rec own = *to;
    *to = *from;
    to->buf = own.buf;
    to->size = own.size;
    to->extra = own.extra;
    to->extra_size = own.extra_size;
    memcpy(to->buf, from->buf, from->used);
    const char **texts[] = { &to->level_text, &to->module, &to->func, &to->file, &to->trace_id, &to->span_id, &to->message, &to->code_name };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        *texts[i] = moved(to, from, *texts[i]);
    for (uint32_t i = 0; i < to->extra_count; i++)
        to->extra[i] = (struct log_pair){ moved(to, from, from->extra[i].key), moved(to, from, from->extra[i].value) };
    return true;
}

void log_rec_finish(struct log_rec *rec)
{
    free(rec->buf);
    free(rec->extra);
    *rec = (struct log_rec){ 0 };
}

const char *log_figures_of(const char *message)
{
    for (const char *s = message; *s; s += strcspn(s, " ")) {
        size_t k = 0;
        s += strspn(s, " ");
        while (isalnum((unsigned char)s[k]) || s[k] == '_' || s[k] == '.')
            k++;
        if (k && isalpha((unsigned char)*s) && s[k] == '=')
            return s;
    }
    return message + strlen(message);
}

bool log_figure_next(const char **message, umdFigure *out)
{
    if (!umdFigureNext(message, out))
        return false;
    text_clean(out->text); /* a quoted one had its control characters escaped */
    return true;
}

char *log_figure_whole(const umdFigure *f, const char *begin, const char *end)
{
    const size_t key_n = strlen(f->key);
    const char *value = NULL;

    if (strlen(f->text) + 1 < sizeof(f->text))
        return strdup(f->text);
    for (const char *s = begin; s + key_n < end && !value; s++) {
        if ((s == begin || s[-1] == ' ') && memcmp(s, f->key, key_n) == 0 && s[key_n] == '=')
            value = s + key_n + 1;
    }
    if (!value)
        return strdup(f->text);
    while (end > value && end[-1] == ' ')
        end--;
    const bool quoted = end - value > 1 && *value == '"' && end[-1] == '"';
    return strndup(value + quoted, (size_t)(end - value) - 2 * quoted); /* what is escaped stays so */
}

bool log_figure_get(const char *message, const char *key, char *out, size_t size)
{
    umdFigure f;

    while (log_figure_next(&message, &f)) {
        if (strcmp(f.key, key) == 0) {
            snprintf(out, size, "%.*s", (int)text_cut(f.text, size - 1), f.text);
            return true;
        }
    }
    out[0] = '\0';
    return false;
}

bool log_id_parse(const char *text, size_t n, umdRecordId *out)
{
    char copy[48], *end;

    if (n == 0 || n >= sizeof(copy))
        return false;
    memcpy(copy, text, n);
    copy[n] = '\0';
    if (!isxdigit((unsigned char)copy[0]))
        return false;
    unsigned long boot = strtoul(copy, &end, 16);
    if (boot > UINT32_MAX || *end != ':' || !isdigit((unsigned char)end[1]))
        return false;
    unsigned long pid = strtoul(end + 1, &end, 10);
    if (pid > UINT32_MAX || *end != ':' || !isdigit((unsigned char)end[1]))
        return false;
    unsigned long long seq = strtoull(end + 1, &end, 10);
    if (*end || seq == 0)
        return false;
    *out = (umdRecordId){ .boot = (uint32_t)boot, .pid = (uint32_t)pid, .seq = seq };
    return true;
}

void log_id_format(umdRecordId id, char out[48])
{
    snprintf(out, 48, "%08x:%u:%" PRIu64, id.boot, id.pid, id.seq);
}

static const char *const level_names[] = { "?", "ERROR", "WARN", "INFO", "DEBUG", "TRACE" };

const char *log_level_name(int level) { return level >= 0 && level <= UMD_LOG_TRACE ? level_names[level] : "?"; }

int log_level_of(const char *text, size_t n)
{
    for (int i = 1; i <= UMD_LOG_TRACE; i++) {
        if (strlen(level_names[i]) == n && strncasecmp(text, level_names[i], n) == 0)
            return i;
    }
    return 0;
}

/* Names are looked up once per line, so a table sorted by name is built from the library's by value. */
struct name_row {
    const char *name;
    int32_t code;
};
static struct name_row *names;
static size_t name_count;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct name_row *)a)->name, ((const struct name_row *)b)->name);
}

static void build_names(void)
{
    names = malloc(umd_status_count() * sizeof(*names));
    for (uint32_t i = 0; names && i < umd_status_count(); i++)
        names[name_count++] = (struct name_row){ umd_status_at(i)->name, umd_status_at(i)->code };
    if (names)
        qsort(names, name_count, sizeof(*names), by_name);
}

int32_t log_code_of(const char *name)
{
    if (!names)
        build_names();
    if (!names)
        return 0;
    const struct name_row key = { .name = name };
    const struct name_row *row = bsearch(&key, names, name_count, sizeof(*names), by_name);
    return row ? row->code : 0;
}

void log_time_format(uint64_t real_ns, char out[40])
{
    time_t seconds = (time_t)(real_ns / NS);
    struct tm tm = { 0 };
    char day[24];

    gmtime_r(&seconds, &tm);
    if (strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        snprintf(day, sizeof(day), "?");
    snprintf(out, 40, "%s.%09uZ", day, (unsigned)(real_ns % NS));
}

/* Exactly n digits. */
static bool digits(const char **at, int n, int *out)
{
    *out = 0;
    for (; n > 0; n--, (*at)++) {
        if (!isdigit((unsigned char)**at))
            return false;
        *out = *out * 10 + (**at - '0');
    }
    return true;
}

static const char *fraction(const char *s, uint64_t *ns_out)
{
    uint64_t ns = 0, unit = NS / 10;

    if (*s == '.' && isdigit((unsigned char)s[1])) {
        for (s++; isdigit((unsigned char)*s); s++, unit /= 10)
            ns += unit * (uint64_t)(*s - '0');
    }
    *ns_out = ns;
    return s;
}

/* "Z", "+hh:mm", "-hhmm" or nothing. */
static const char *zone(const char *s, int64_t *offset_s)
{
    int h, m;

    *offset_s = 0;
    if (*s == 'Z')
        return s + 1;
    if (*s != '+' && *s != '-')
        return s;
    int sign = *s++ == '-' ? -1 : 1;
    if (!digits(&s, 2, &h))
        return NULL;
    if (*s == ':')
        s++;
    if (!digits(&s, 2, &m) || h > 23 || m > 59)
        return NULL;
    *offset_s = sign * (h * 3600 + m * 60);
    return s;
}

const char *log_time_parse(const char *text, uint64_t *real_ns_out)
{
    int y, mo, d, h, mi, sec;
    const char *s = text;
    uint64_t part;
    int64_t offset;

    if (!digits(&s, 4, &y) || *s++ != '-' || !digits(&s, 2, &mo) || *s++ != '-' || !digits(&s, 2, &d) || (*s != 'T' && *s != ' '))
        return NULL;
    s++;
    if (!digits(&s, 2, &h) || *s++ != ':' || !digits(&s, 2, &mi) || *s++ != ':' || !digits(&s, 2, &sec))
        return NULL;
    if (y < 1970 || mo < 1 || mo > 12 || d < 1 || d > 31 || h > 23 || mi > 59 || sec > 60)
        return NULL;
    s = zone(fraction(s, &part), &offset);
    if (!s)
        return NULL;
    struct tm tm = { .tm_year = y - 1900, .tm_mon = mo - 1, .tm_mday = d, .tm_hour = h, .tm_min = mi, .tm_sec = sec };
    int64_t seconds = timegm(&tm) - offset;
    if (seconds < 0 || (uint64_t)seconds > UINT64_MAX / NS - 1)
        return NULL;
    *real_ns_out = (uint64_t)seconds * NS + part;
    return s;
}

const char *log_decimal_parse(const char *text, uint64_t *ns_out)
{
    uint64_t seconds = 0, part;
    const char *s = text;

    if (!isdigit((unsigned char)*s))
        return NULL;
    for (; isdigit((unsigned char)*s); s++) {
        if (seconds > (UINT64_MAX / NS - 10) / 10)
            return NULL;
        seconds = seconds * 10 + (uint64_t)(*s - '0');
    }
    s = fraction(s, &part);
    *ns_out = seconds * NS + part;
    return s;
}
