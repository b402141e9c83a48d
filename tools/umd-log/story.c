/* SPDX-License-Identifier: MIT */
/* story.c - lines of a log into error records, records into trees of causes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "status.h"
#include "story.h"

static uint32_t hash_of(const struct story_book *book, umdRecordId id)
{
    uint64_t h = (id.seq * 0x9e3779b97f4a7c15ull) ^ ((uint64_t)id.pid << 32 | id.boot);

    h *= 0xff51afd7ed558ccdull;
    return (uint32_t)(h >> 32) & (book->hash_size - 1);
}

void story_book_init(struct story_book *book) { *book = (struct story_book){ 0 }; }

struct story *story_find(const struct story_book *book, umdRecordId id)
{
    if (!book->hash_size)
        return NULL;
    for (struct story *s = book->hash[hash_of(book, id)]; s; s = s->hash_next) {
        if (log_id_equal(s->id, id))
            return s;
    }
    return NULL;
}

static bool grow(struct story_book *book)
{
    uint32_t size = book->size ? book->size * 2 : 256;
    struct story **all = realloc(book->all, size * sizeof(*all));

    if (!all)
        return false;
    book->all = all;
    book->size = size;
    struct story **hash = calloc(size * 2, sizeof(*hash));
    if (!hash)
        return false;
    free(book->hash);
    book->hash = hash;
    book->hash_size = size * 2;
    for (uint32_t i = 0; i < book->count; i++) {
        uint32_t at = hash_of(book, all[i]->id);
        all[i]->hash_next = hash[at];
        hash[at] = all[i];
    }
    return true;
}

static struct story *get(struct story_book *book, umdRecordId id)
{
    struct story *s = story_find(book, id);

    if (s)
        return s;
    if (book->count == book->size && !grow(book))
        return NULL;
    s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->id = id;
    uint32_t at = hash_of(book, id);
    s->hash_next = book->hash[at];
    book->hash[at] = s;
    book->all[book->count++] = s;
    return s;
}

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* Once: of several lines that tell the same the first counts. */
static bool set_text(char **to, const char *text)
{
    if (*to || !text || !*text)
        return true;
    *to = strdup(text);
    return *to != NULL;
}

static const char *told(const struct log_rec *rec, const char *key, char *buf, size_t size)
{
    const char *extra = log_rec_extra_of(rec, key);
    char full[64];

    if (extra)
        return extra;
    snprintf(full, sizeof(full), "petrel.%s", key);
    extra = log_rec_extra_of(rec, full);
    if (extra)
        return extra;
    return log_figure_get(rec->message, key, buf, size) ? buf : NULL;
}

/* What a disaster or run log says beside the message. False: no memory. */
static bool take_hops(struct story *s, const char *text);
static bool take_extras(struct story *s, const struct log_rec *rec)
{
    const char *end = log_rec_extra_of(rec, "end"), *call = log_rec_extra_of(rec, "call"), *hops = log_rec_extra_of(rec, "hops");
    bool ok = set_text(&s->api, call) && set_text(&s->out_code, log_rec_extra_of(rec, "code_out")) && (!hops || take_hops(s, hops));

    if (!end || s->end != STORY_OPEN)
        return ok;
    s->end = begins(end, "delivered") ? STORY_DELIVERED : begins(end, "absorbed") ? STORY_ABSORBED : STORY_SWALLOWED;
    return ok && set_text(&s->end_text, s->end == STORY_ABSORBED ? log_rec_extra_of(rec, "reason") : call);
}

static void take_cause(struct story *s, const struct log_rec *rec)
{
    char buf[64];
    const char *text = told(rec, "cause", buf, sizeof(buf));
    umdRecordId id;

    if (!s->cause.seq && text && log_id_parse(text, strlen(text), &id) && !log_id_equal(id, s->id))
        s->cause = id;
}

/* "action=free_retry delay_ms=0 count=1 largest_fit_B=4096": what is to be done about this one. The later line knows better. */
static void take_advice(struct story *s, const char *message)
{
    umdAdvice a = { 0 };
    bool told = false;
    umdFigure f;

    while (log_figure_next(&message, &f)) {
        if (!strcmp(f.key, "action")) {
            for (a.action = UMD_ACTION_NONE; a.action < UMD_ACTION_ABORT && strcmp(f.text, umd_action_word(a.action)) != 0; a.action++)
                ;
            told = strcmp(f.text, umd_action_word(a.action)) == 0; /* else of a newer library, or no advice */
        } else if (!strcmp(f.key, "delay_ms")) {
            a.delay_ms = (uint32_t)f.uint_value;
        } else if (!strcmp(f.key, "count")) {
            a.count = (uint32_t)f.uint_value;
        } else if (!strcmp(f.key, "largest_fit_B")) {
            a.largest_fit_B = f.uint_value;
        }
    }
    if (!told)
        return;
    s->advice = a;
    s->advice_told = true;
}

/* The same of a log for people. */
static void take_advice_of(struct story *s, const struct log_rec *rec)
{
    static const char *const keys[] = { "action", "delay_ms", "count", "largest_fit_B" };
    char text[160] = "";
    size_t n = 0;

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const char *value = log_rec_extra_of(rec, keys[i]);
        if (value && n < sizeof(text))
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s=%s ", keys[i], value);
    }
    take_advice(s, text);
}

/* The raise itself; once more with "repeat=N" at the 1st, 10th, ... time that it was folded. */
static bool take_raise(struct story *s, const struct log_rec *rec)
{
    char buf[24];
    bool repeat = log_figure_get(rec->message, "repeat", buf, sizeof(buf));
    uint64_t times = repeat ? strtoull(buf, NULL, 10) + 1 : 1;

    if (log_figure_get(rec->message, "folded", buf, sizeof(buf)))
        times += strtoull(buf, NULL, 10);
    s->times = times > s->times ? times : s->times;
    s->more = s->more || repeat;
    if (s->has_raised)
        return true;
    s->has_raised = true;
    if (!s->advice_told) /* the end's counts, where that came before in another file */
        take_advice(s, rec->message);
    if (!s->advice_told)
        take_advice_of(s, rec);
    return log_rec_copy(&s->raised, rec);
}

/* The next part of *at up to the mark, which is replaced by an end; NULL: there is none. */
static char *part(char **at, char mark)
{
    char *begin = *at, *end = begin ? strchr(begin, mark) : NULL;

    if (!begin || (!end && mark != ' '))
        return NULL;
    if (end)
        *end = '\0';
    *at = end ? end + 1 : NULL;
    return begin;
}

/* A code in a hop: a number, or its name as the disaster log has it. */
static const char *code_text(const char *text) { return *text == 'U' ? text : umdStatusName((umdStatus)atoi(text)); }

/* "umd:umd_device_ioctl:device.c:120:-4002>-4002 ..." */
static bool take_hops(struct story *s, const char *text)
{
    uint32_t room = 1;

    if (s->hops || !*text)
        return true;
    for (const char *c = text; *c; c++)
        room += *c == ' ';
    s->hops = calloc(room, sizeof(*s->hops));
    s->hop_text = strdup(text);
    if (!s->hops || !s->hop_text)
        return false;
    for (char *at = s->hop_text; at;) {
        struct story_hop h = { 0 };
        char *one = part(&at, ' ');
        h.layer = part(&one, ':');
        h.func = part(&one, ':');
        h.file = part(&one, ':');
        const char *line = part(&one, ':'), *in = part(&one, '>');
        if (!h.layer || !h.func || !h.file || !line || !in || !one)
            continue; /* a torn line */
        h.line = (uint32_t)strtoul(line, NULL, 10);
        h.in = code_text(in);
        h.out = code_text(one);
        s->hops[s->hop_count++] = h;
    }
    return true;
}

/* Many layers make more than a figure holds. The text is freed. */
static bool take_whole_hops(struct story *s, char *text)
{
    const bool ok = text && take_hops(s, text);

    free(text);
    return ok;
}

static void take_repeat(struct story *s, uint64_t repeat)
{
    s->more = true;
    s->times = repeat >= s->times ? repeat + 1 : s->times;
}

/* "ended CODE: end=delivered call=umdX hops=...": all that the end of a record tells. */
static bool take_ended(struct story *s, const struct log_rec *rec)
{
    const char *cursor = rec->message, *begin = cursor;
    bool ok = true;
    umdFigure f;

    for (; ok && log_figure_next(&cursor, &f); begin = cursor) {
        if (!strcmp(f.key, "end"))
            s->end = !strcmp(f.text, "delivered") ? STORY_DELIVERED : !strcmp(f.text, "absorbed") ? STORY_ABSORBED : STORY_SWALLOWED;
        else if (!strcmp(f.key, "call"))
            ok = set_text(&s->api, f.text);
        else if (!strcmp(f.key, "reason"))
            ok = set_text(&s->end_text, f.text);
        else if (!strcmp(f.key, "hops"))
            ok = take_whole_hops(s, log_figure_whole(&f, begin, cursor));
        else if (!strcmp(f.key, "repeat"))
            take_repeat(s, f.uint_value);
        else if (!strcmp(f.key, "origin"))
            ok = set_text(&s->out_code, rec->code_name);
    }
    if (ok && s->end == STORY_DELIVERED && s->api)
        ok = set_text(&s->end_text, s->api);
    return ok;
}

static bool take_end(struct story *s, const struct log_rec *rec)
{
    const bool absorbed = begins(rec->message, "absorbed ") || (begins(rec->message, "ended ") && strstr(rec->message, ": end=absorbed"));

    if (absorbed && s->end == STORY_DELIVERED)
        return true; /* it was told: the end of a copy that a later call met, and dealt with, takes nothing back */
    if (begins(rec->message, "ended ")) {
        take_advice(s, rec->message);
        return take_ended(s, rec);
    }
    if (begins(rec->message, "absorbed ")) {
        const char *why = strstr(rec->message, ": ");
        s->end = STORY_ABSORBED;
        return set_text(&s->end_text, why ? why + 2 : NULL);
    }
    s->end = STORY_SWALLOWED;
    return true;
}

/* "failure told code=C context=N job=N kernel=K source=FILE:LINE ...": what the layer above added to the record's figures. */
static bool take_added(struct story *s, const struct log_rec *rec)
{
    const char *from = log_figures_of(rec->message);

    while (begins(from, "code=") || begins(from, "context=") || begins(from, "job=")) { /* of what it is told, which the raise has as well */
        from += strcspn(from, " ");
        from += strspn(from, " ");
    }
    return set_text(&s->added, from);
}

bool story_kernel(const struct story *s, char *buf, size_t size)
{
    char name[100], source[100];

    /* A disaster log has them among the record's own. */
    const char *from = s->added && log_figure_get(s->added, "kernel", name, sizeof(name)) ? s->added : s->raised.message;

    buf[0] = '\0';
    if (!from || !log_figure_get(from, "kernel", name, sizeof(name)) || strcmp(name, "-") == 0)
        return false;
    const bool line = log_figure_get(from, "source", source, sizeof(source));
    snprintf(buf, size, "%s%s%s", name, line ? " at " : "", line ? source : "");
    return true;
}

uint64_t story_held_of(const struct log_rec *rec, char code[64])
{
    static const char begin[] = "not logged one by one: ";
    char number[24];

    if (!begins(rec->message, begin) || !log_figure_get(rec->message, "suppressed", number, sizeof(number)))
        return 0;
    (void)log_figure_get(rec->message, "of", code, 64);
    return strtoull(number, NULL, 10);
}

static bool same_place(const struct log_rec *a, const struct log_rec *b)
{
    return a->pid == b->pid && a->line == b->line && strcmp(a->code_name, b->code_name) == 0 && strcmp(a->func, b->func) == 0 &&
           strcmp(a->file, b->file) == 0;
}

static bool add_held(struct story_book *book, const struct log_rec *rec, uint64_t count, const char *code)
{
    struct log_rec told = { 0 };
    char number[24];
    uint32_t i = 0;

    /* The copy has its own room for the code, which the line has among its figures alone. */
    struct log_rec with = *rec;
    with.code_name = code;
    with.code = log_code_of(code);
    const uint64_t since_ns = log_figure_get(rec->message, "since_ns", number, sizeof(number)) ? strtoull(number, NULL, 10) : 0;
    while (i < book->held_count && !same_place(&book->held[i].rec, &with))
        i++;
    if (i == book->held_count) {
        if (i == book->held_size) {
            const uint32_t size = i ? i * 2 : 16;
            struct story_held *grown = realloc(book->held, size * sizeof(*grown));
            if (!grown)
                return false;
            book->held = grown;
            book->held_size = size;
        }
        const size_t room = rec->used + strlen(code) + 1;
        if (!log_rec_begin(&told, room) || !log_rec_copy(&told, rec)) {
            log_rec_finish(&told);
            return false;
        }
        told.code_name = log_rec_text(&told, code, strlen(code));
        told.code = with.code;
        book->held[book->held_count++] = (struct story_held){ .rec = told };
    } else if (since_ns && book->held[i].since_ns == since_ns) {
        return true;
    }
    book->held[i].count += count;
    book->held[i].since_ns = since_ns;
    return true;
}

uint64_t story_held_like(const struct story_book *book, const struct story *s)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < book->held_count; i++)
        count += same_place(&book->held[i].rec, &s->raised) ? book->held[i].count : 0;
    return count;
}

const char *story_times(uint64_t times, bool more, char out[48])
{
    out[0] = '\0';
    if (times > 1)
        snprintf(out, 48, "%s%" PRIu64 " times", more ? "at least " : "", times);
    return out;
}

bool story_book_add(struct story_book *book, const struct log_rec *rec)
{
    char code[64];

    if (!rec->id.seq) {
        const uint64_t held = story_held_of(rec, code);
        return !held || add_held(book, rec, held, code);
    }
    struct story *s = get(book, rec->id);
    if (!s)
        return false;
    s->last_ns = rec->real_ns > s->last_ns ? rec->real_ns : s->last_ns;
    take_cause(s, rec);
    if (rec->extra_count && !take_extras(s, rec))
        return false;
    if (begins(rec->message, "ended ") || begins(rec->message, "absorbed ") || begins(rec->message, "a record was swallowed")) {
        if (!take_end(s, rec))
            return false;
    } else if (begins(rec->message, "failure told ") || begins(rec->message, "warning told ")) {
        if (!take_added(s, rec))
            return false;
    } else if (*rec->code_name && begins(rec->message, rec->code_name)) {
        return take_raise(s, rec);
    }
    return s->raised.buf != NULL || log_rec_copy(&s->raised, rec);
}

bool story_is_error(const struct story *s) { return s->raised.level == UMD_LOG_ERROR; }
const char *story_code_name(const struct story *s) { return *s->raised.code_name ? s->raised.code_name : "?"; }

const char *story_message(const struct story *s)
{
    const char *text = s->raised.message, *name = s->raised.code_name;
    size_t n = strlen(name);

    if (n && strncmp(text, name, n) == 0 && text[n] == ':')
        text += n + 1;
    return text + strspn(text, " ");
}

bool story_path(const struct story *s, char *out, size_t size)
{
    size_t n = 0;

    for (uint32_t i = 0; i < s->hop_count && n + 300 < size; i++) {
        const struct story_hop *h = &s->hops[i];
        n += (size_t)snprintf(out + n, size - n, "%s%.24s %.60s", i ? " > " : "", h->layer, h->func);
        if (strcmp(h->in, h->out) != 0)
            n += (size_t)snprintf(out + n, size - n, " (%.60s becomes %.60s)", h->in, h->out);
    }
    return n > 0;
}

static int by_time(const void *a, const void *b)
{
    const struct story *x = *(struct story *const *)a, *y = *(struct story *const *)b;

    if (x->raised.real_ns != y->raised.real_ns)
        return x->raised.real_ns < y->raised.real_ns ? -1 : 1;
    if (x->id.pid != y->id.pid)
        return x->id.pid < y->id.pid ? -1 : 1;
    return x->id.seq < y->id.seq ? -1 : x->id.seq > y->id.seq;
}

static void find_parent(const struct story_book *book, struct story *s)
{
    s->parent = s->cause.seq ? story_find(book, s->cause) : NULL;
    s->cause_missing = s->cause.seq && !s->parent;
}

/* A damaged log may name causes in a ring: the latest of it is taken for a root. Each record is passed once, however long the chains are. */
static void cut_rings(struct story_book *book)
{
    for (uint32_t i = 0; i < book->count; i++) {
        struct story *s = book->all[i];
        for (; s && !s->pass; s = s->parent)
            s->pass = i + 1;
        if (!s || s->pass != i + 1)
            continue;
        struct story *latest = s;
        for (struct story *c = s->parent; c != s; c = c->parent)
            latest = by_time(&c, &latest) > 0 ? c : latest;
        latest->parent = NULL;
    }
}

static void attach(struct story *s)
{
    struct story *parent = s->parent;

    if (!parent)
        return;
    if (parent->last_child)
        parent->last_child->next = s;
    else
        parent->child = s;
    parent->last_child = s;
}

const struct story *story_after(const struct story *s, const struct story *root)
{
    if (s->child)
        return s->child;
    while (s != root && !s->next)
        s = s->parent;
    return s == root ? NULL : s->next;
}

/* How much is lost by the worst of the tree. */
static int weight(const struct story *root)
{
    int worst = -1;

    for (const struct story *s = root; s; s = story_after(s, root)) {
        if (story_is_error(s) && s->end != STORY_ABSORBED) {
            int w = s->raised.code ? (int)umdStatusAdvice((umdStatus)s->raised.code).scope : (int)UMD_SCOPE_CALL;
            worst = w > worst ? w : worst;
        }
    }
    return worst;
}

void story_book_link(struct story_book *book)
{
    int worst = -1;

    if (book->count)
        qsort(book->all, book->count, sizeof(*book->all), by_time);
    for (uint32_t i = 0; i < book->count; i++)
        find_parent(book, book->all[i]);
    cut_rings(book);
    for (uint32_t i = 0; i < book->count; i++)
        attach(book->all[i]);
    for (uint32_t i = 0; i < book->count; i++) {
        struct story *s = book->all[i];
        s->times = s->times ? s->times : 1;
        if (!s->advice_told && s->raised.code)
            s->advice = umdStatusAdvice((umdStatus)s->raised.code);
        book->errors += story_is_error(s);
        book->absorbed += s->end == STORY_ABSORBED;
        book->swallowed += s->end == STORY_SWALLOWED;
        int w = s->parent ? -1 : weight(s);
        if (w > worst) { /* the gravest, of those the earliest */
            worst = w;
            book->first_cause = s;
        }
    }
}

void story_book_finish(struct story_book *book)
{
    for (uint32_t i = 0; i < book->count; i++) {
        struct story *s = book->all[i];
        log_rec_finish(&s->raised);
        free(s->end_text);
        free(s->api);
        free(s->added);
        free(s->out_code);
        free(s->hops);
        free(s->hop_text);
        free(s);
    }
    for (uint32_t i = 0; i < book->held_count; i++)
        log_rec_finish(&book->held[i].rec);
    free(book->held);
    free(book->all);
    free(book->hash);
    *book = (struct story_book){ 0 };
}
