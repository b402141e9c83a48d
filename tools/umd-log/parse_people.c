/* SPDX-License-Identifier: MIT */
/* parse_people.c - the two logs that are written for people: lines of the run log, records of the disaster log, as far as they go. */
#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"
#include "status.h"

#define BLOCK_MAX (256u << 10)
#define FIELD_B 16384u

static const char *blank(const char *s) { return s && *s == ' ' ? s + strspn(s, " ") : NULL; }

/* "TIME LEVEL " of both; NULL: it is none. */
static const char *begin(struct log_rec *rec, const char *s)
{
    s = blank(log_time_parse(s, &rec->real_ns));
    size_t k = s ? strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") : 0;
    if (!k || !(rec->level = log_level_of(s, k)))
        return NULL;
    rec->level_text = log_level_name(rec->level);
    rec->observed_ns = rec->real_ns;
    return blank(s + k);
}

/* The word or number behind a mark, with n bytes; NULL: there is no such mark. */
static const char *behind(const char *text, const char *mark, const char *ends, size_t *n)
{
    const char *at = text ? strstr(text, mark) : NULL;

    if (!at)
        return NULL;
    at += strlen(mark);
    *n = strcspn(at, ends);
    return *n ? at : NULL;
}

static uint64_t number_behind(const char *text, const char *mark)
{
    size_t n;
    const char *at = behind(text, mark, " ,;", &n);

    return at ? strtoull(at, NULL, 10) : 0;
}

static void number_extra(struct log_rec *rec, const char *key, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, value);
    log_rec_extra(rec, key, strlen(key), text, strlen(text));
}

/* "(action: retry, 3 times, 1 ms apart; largest size that fits: 4096 bytes)": the advice of this very record, as figures. */
static void take_advice(struct log_rec *rec, const char *text)
{
    const char *at = text ? strstr(text, "(action: ") : NULL, *end = at ? strchr(at, ')') : NULL;
    char one[160];

    if (!end || (size_t)(end - at) >= sizeof(one) + 9)
        return;
    snprintf(one, sizeof(one), "%.*s", (int)(end - at - 9), at + 9);
    for (umdAction a = UMD_ACTION_NONE; a <= UMD_ACTION_ABORT; a++) {
        const size_t n = strlen(umd_action_text(a));
        if (strncmp(one, umd_action_text(a), n) != 0 || (one[n] && !strchr(",;", one[n])))
            continue;
        const char *times = strstr(one + n, " times, ");
        const uint64_t fit_B = number_behind(one, "fits: ");
        log_rec_extra(rec, "action", 6, umd_action_word(a), strlen(umd_action_word(a)));
        if (times)
            number_extra(rec, "delay_ms", number_behind(times, " times, "));
        if (times || strstr(one + n, ", once"))
            number_extra(rec, "count", times ? strtoull(one + n + 2, NULL, 10) : 1);
        if (fit_B)
            number_extra(rec, "largest_fit_B", fit_B);
    }
}

/* ---- Run log ---- */

/* "CODE: sentence figures | where: call umdX, context N | next: ... (action: ...) | record ID"; the sentence is in the table of codes. */
static void take_failure(struct log_rec *rec, const char *s, size_t message_n)
{
    const char *where = s + message_n, *record = strstr(where, " | record "), *at;
    size_t n;

    rec->message = log_rec_text(rec, s, message_n);
    rec->module = LOG_NO_MODULE;
    rec->context_id = number_behind(where, ", context ");
    if ((at = behind(where, "where: call ", ",| ", &n)))
        log_rec_extra(rec, "call", 4, at, n);
    if (record && log_id_parse(record + 10, strcspn(record + 10, " "), &rec->id))
        rec->pid = rec->id.pid;
    take_advice(rec, where);
    log_rec_find_code(rec);
}

bool log_parse_run(struct log_rec *rec, const char *line, size_t n)
{
    if (!isdigit((unsigned char)line[0]) || !log_rec_begin(rec, 2 * n + 1024))
        return false;
    const char *s = begin(rec, line), *where = s ? strstr(s, " | where:") : NULL;
    if (where) {
        take_failure(rec, s, (size_t)(where - s));
        return true;
    }
    size_t k = s ? strcspn(s, " ") : 0;
    if (k > 1 && s[k - 1] == ':') {
        rec->module = log_rec_text(rec, s, k - 1);
        s += k + (s[k] == ' ');
        const char *record = strstr(s, " | record "); /* a line that belongs to one */
        if (record && log_id_parse(record + 10, strlen(record + 10), &rec->id))
            rec->pid = rec->id.pid;
        rec->message = log_rec_text(rec, s, rec->id.seq ? (size_t)(record - s) : strlen(s));
        return true;
    }
    (void)log_rec_begin(rec, 1);
    return false;
}

/* ---- Disaster log ---- */

bool log_block_begins(const char *line) { return strncmp(line, "==== ", 5) == 0 && isdigit((unsigned char)line[5]); }

bool log_block_owns(const struct log_block *b, const char *line, size_t n)
{
    return (n >= 2 && line[0] == ' ' && line[1] == ' ') || (b->lines == 1 && n >= 4 && memcmp(line, "UMD_", 4) == 0);
}

bool log_block_add(struct log_block *b, const char *line, size_t n)
{
    b->lines++;
    if (b->used + n + 2 > BLOCK_MAX)
        return true; /* what is too much of it is left out */
    if (b->used + n + 2 > b->size) {
        size_t size = 2 * (b->used + n) + 4096;
        char *grown = realloc(b->text, size);
        if (!grown)
            return false;
        b->text = grown;
        b->size = size;
    }
    memcpy(b->text + b->used, line, n);
    b->used += n;
    b->text[b->used++] = '\n';
    b->text[b->used] = '\0';
    return true;
}

void log_block_finish(struct log_block *b)
{
    free(b->text);
    *b = (struct log_block){ 0 };
}

/* A labelled paragraph: "  label    text", then lines that are indented as far; joined by a mark. False: there is none; out is then "". */
static bool field(const struct log_block *b, const char *label, char mark, char out[FIELD_B])
{
    char head[16];
    size_t head_n = (size_t)snprintf(head, sizeof(head), "\n  %-8s ", label), used = 0;
    const char *s = strstr(b->text, head);

    out[0] = '\0';
    if (!s)
        return false;
    for (s += head_n;; s += 11) {
        size_t n = strcspn(s, "\n");
        if (used + n + 2 > FIELD_B)
            break;
        if (used)
            out[used++] = mark;
        memcpy(out + used, s, n);
        used += n;
        s += n;
        if (strncmp(s, "\n           ", 12) != 0)
            break;
        s++;
    }
    out[used] = '\0';
    return true;
}

/* In place: "size_B=4096 (4 KiB)" once more without what is for people. */
static void drop_units(char *figures)
{
    bool quoted = false;
    char *to = figures;

    for (const char *s = figures; *s; s++) {
        quoted ^= *s == '"' && (s == figures || s[-1] != '\\');
        if (!quoted && *s == ' ' && s[1] == '(' && s > figures && isdigit((unsigned char)s[-1]) && strchr(s, ')'))
            s = strchr(s, ')') + 1;
        if (!*s)
            break;
        *to++ = *s;
    }
    *to = '\0';
}

/* "... by func (file:line)", or "func (file:line)" alone. */
static void take_place(struct log_rec *rec, const char *where)
{
    const char *open = strrchr(where, '('), *colon = open ? strrchr(open, ':') : NULL, *func = open;
    size_t n;

    if (!colon || open == where)
        return;
    for (func--; func > where && func[-1] != ' ';)
        func--;
    n = strcspn(func, " ");
    rec->func = log_rec_text(rec, func, n);
    rec->file = log_rec_text(rec, open + 1, (size_t)(colon - open - 1));
    rec->line = (uint32_t)strtoul(colon + 1, NULL, 10);
}

/* "layer func file:line IN -> OUT" by lines, as the log's own "layer:func:file:line:IN>OUT" by blanks. */
static void take_hops(struct log_rec *rec, const char *lines)
{
    char all[FIELD_B], layer[24], func[64], place[112], in[64], out[64];
    size_t used = 0;

    for (const char *s = lines; s; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : NULL) {
        if (sscanf(s, "%23s %63s %111s %63s -> %63s", layer, func, place, in, out) == 5 && used + 400 < sizeof(all))
            used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s:%s:%s:%s>%s", used ? " " : "", layer, func, place, in, out);
    }
    if (used)
        log_rec_extra(rec, "hops", 4, all, used);
}

/* The code as it was raised, and the one that it left with where that is another. */
static void take_code(struct log_rec *rec, const struct log_block *b, char text[FIELD_B])
{
    const char *second = strchr(b->text, '\n') + 1;
    size_t n = strncmp(second, "UMD_", 4) == 0 ? strcspn(second, " \n") : 0;

    if (n && field(b, "at first", ' ', text)) {
        log_rec_extra(rec, "code_out", 8, second, n);
        second = text;
        n = strcspn(text, ":");
    }
    rec->code_name = log_rec_text(rec, second, n);
    rec->code = log_code_of(rec->code_name);
}

/* Adds behind the text that is there; what does not fit is cut. */
__attribute__((format(printf, 3, 4))) static void append(char *text, size_t size, const char *fmt, ...)
{
    size_t n = strlen(text);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text + n, size - n, fmt, ap);
    va_end(ap);
}

/* What the record is, how it ended, what it came of: "state" and "record". */
static void take_state(struct log_rec *rec, const char *state, const char *record, char *message, size_t size)
{
    size_t n;
    const char *cause = behind(state, "; cause ", "; ", &n), *more;

    if (cause && !strstr(message, " cause="))
        append(message, size, " cause=%.*s", (int)n, cause);
    if ((more = behind(record, ", and ", " ", &n)))
        append(message, size, " repeat=%.*s", (int)n, more);
    if (*state && strncmp(state, "open", 4) != 0)
        log_rec_extra(rec, "end", 3, state, strcspn(state, ";"));
    rec->depth = (uint32_t)number_behind(state, "; call depth ");
    (void)log_id_parse(record, strcspn(record, " "), &rec->id);
    if ((more = behind(record, " at ", " ", &n)))
        (void)log_decimal_parse(more, &rec->mono_ns);
}

static bool parse_block(struct log_rec *rec, const struct log_block *b, char *text, char *message)
{
    const char *s = begin(rec, b->text + 5), *at;
    char *end, record[256] = "";

    if (!s || !isdigit((unsigned char)*s))
        return false;
    rec->pid = (uint32_t)strtoul(s, &end, 10);
    rec->tid = *end == '.' ? (uint32_t)strtoul(end + 1, &end, 10) : 0;
    if (*end != ' ')
        return false;
    rec->module = log_rec_text(rec, end + 1, strcspn(end + 1, "\n"));
    take_code(rec, b, text);
    if (field(b, *rec->code_name && log_rec_extra_of(rec, "code_out") ? "at first" : "what", ' ', text))
        snprintf(message, FIELD_B, "%s%s%s", *rec->code_name && strncmp(text, "UMD_", 4) != 0 ? rec->code_name : "",
                 *rec->code_name && strncmp(text, "UMD_", 4) != 0 ? ": " : "", text);
    if (field(b, "figures", ' ', text)) {
        drop_units(text);
        append(message, FIELD_B, " %s", text);
    }
    if (field(b, "where", ' ', text)) {
        if (strncmp(text, "call ", 5) == 0)
            log_rec_extra(rec, "call", 4, text + 5, strcspn(text + 5, "(, "));
        if ((at = strstr(text, "context ")) && isdigit((unsigned char)at[8]))
            rec->context_id = strtoull(at + 8, NULL, 10);
        take_place(rec, text);
    }
    if (field(b, "context", ' ', text))
        rec->context_id = strtoull(text, NULL, 10);
    if (field(b, "hops", '\n', text))
        take_hops(rec, text);
    if (field(b, "next", ' ', text))
        take_advice(rec, text);
    if (field(b, "absorbed", ' ', text))
        log_rec_extra(rec, "reason", 6, text, strlen(text));
    if (field(b, "record", ' ', text))
        snprintf(record, sizeof(record), "%s", text);
    (void)field(b, "state", ' ', text);
    take_state(rec, text, record, message, FIELD_B);
    rec->message = log_rec_text(rec, message, strlen(message));
    return true;
}

bool log_block_parse(struct log_rec *rec, struct log_block *b)
{
    char *room = calloc(2, FIELD_B);
    bool good = room && b->used && log_rec_begin(rec, 3 * b->used + 4096) && parse_block(rec, b, room, room + FIELD_B);

    if (!good)
        (void)log_rec_begin(rec, 1);
    free(room);
    b->used = b->lines = 0;
    return good;
}
