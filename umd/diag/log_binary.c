/* SPDX-License-Identifier: MIT */
/* log_binary.c - reader of binary log files. A file may be torn, damaged, still growing, or made to do harm: each field is checked. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "log_binary.h"
#include "log_encode.h"
#include "log_sinks.h"
#include "log_trace.h"
#include "record.h"

UMD_LOG_MODULE("diag.binary");

#define SITE_ID_MAX (1u << 20)
#define STRING_MAX_B 4096u
#define WASTE_MIN_B (64u << 20) /* see sound_in_search */
#define WASTE_TIMES 4u
#define READ_B 65536u

/* One call site; its texts lie behind it. */
struct site {
    uint8_t level;
    uint32_t line;
    const char *module, *func, *file, *fmt;
};

struct umd_log_binary {
    int fd;
    char path[256];
    struct umd_log_binary_head head;
    struct umd_log_binary_stats stats;
    struct site **sites;        /* by id */
    uint32_t site_count;
    uint8_t *data;              /* from the file: [begin, end) not used yet */
    size_t begin, end, size;
    const uint8_t *item, *item_end; /* of the block under way, in data */
    size_t block_B;
    uint64_t read_B;            /* from the file, so far */
    uint64_t wasted_B;          /* of it looked through for what then was no sound block */
    uint64_t sound_at;          /* in the file; a sound block beyond what is damaged, found already */
    uint64_t mono_ns, real_ns, previous_ns, context_id; /* of the block */
    uint32_t tid, depth;
    int error;                  /* errno of what a call site could not be kept for; 0: none */
    char text[5][STRING_MAX_B]; /* of the record returned last */
    struct umd_log_trace_ids trace;
};

/* ---- Bytes ---- */

/* At least n bytes at begin, if the file has them. 0 or errno. */
static int fill(struct umd_log_binary *b, size_t n)
{
    if (b->begin + n > b->size) {
        size_t size = n + READ_B;
        uint8_t *fresh = b->data;
        if (size > b->size) {
            fresh = umd_diag_alloc(size);
            if (!fresh)
                return ENOMEM;
            b->size = size;
        }
        if (b->end > b->begin)
            memmove(fresh, b->data + b->begin, b->end - b->begin);
        if (fresh != b->data)
            umd_diag_free(b->data);
        b->data = fresh;
        b->end -= b->begin;
        b->begin = 0;
    }
    while (b->end - b->begin < n) {
        ssize_t got = umd_sys()->read(b->fd, b->data + b->end, b->size - b->end);
        if (got < 0)
            return errno;
        if (got == 0)
            break;
        b->end += (size_t)got;
        b->read_B += (size_t)got;
    }
    return 0;
}

/* What is left of an item; bad: it went over the end or made no sense. */
struct in {
    const uint8_t *at, *end;
    bool bad;
};

static uint64_t get_varint(struct in *in)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (in->bad || in->at == in->end) {
            in->bad = true;
            return 0;
        }
        uint8_t byte = *in->at++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return v;
    }
    in->bad = true;
    return 0;
}

static int64_t get_zigzag(struct in *in)
{
    uint64_t v = get_varint(in);

    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static uint8_t get_byte(struct in *in)
{
    if (in->bad || in->at == in->end) {
        in->bad = true;
        return 0;
    }
    return *in->at++;
}

static const uint8_t *get_bytes(struct in *in, size_t *n_out)
{
    uint64_t n = get_varint(in);

    if (in->bad || n > (uint64_t)(in->end - in->at)) {
        in->bad = true;
        n = 0;
    }
    const uint8_t *at = in->at;
    in->at += n;
    *n_out = (size_t)n;
    return at;
}

/* Into a buffer of STRING_MAX_B, ended; control characters become blanks, so that no terminal is steered by a file. */
static void get_string(struct in *in, char *out)
{
    size_t n;
    const uint8_t *from = get_bytes(in, &n);

    n = n < STRING_MAX_B - 1 ? n : STRING_MAX_B - 1;
    for (size_t i = 0; i < n; i++)
        out[i] = (char)(from[i] < ' ' || from[i] == 0x7f ? ' ' : from[i]);
    out[n] = '\0';
}

/* ---- Call sites ---- */

/* A width or precision of more than four digits only costs time and memory: the digits beyond are left out. */
static void harmless_format(char *fmt)
{
    char *to = fmt;
    unsigned digits = 0;
    bool inside = false;

    for (const char *s = fmt; *s; s++) {
        bool digit = *s >= '0' && *s <= '9';
        digits = digit ? digits + 1 : 0;
        if (inside && digits > 3)
            continue;
        if (*s == '%')
            inside = !inside;
        else if (inside && !digit && !strchr("-+ #'I*.hlLqjzt", *s))
            inside = false;
        *to++ = *s;
    }
    *to = '\0';
}

static bool room_for_site(struct umd_log_binary *b, uint64_t id)
{
    if (id < b->site_count)
        return true;
    uint32_t count = b->site_count ? b->site_count : 64;
    while (count <= id)
        count *= 2;
    struct site **fresh = umd_diag_alloc(count * sizeof(*fresh));
    if (!fresh)
        return false;
    if (b->site_count)
        memcpy(fresh, b->sites, b->site_count * sizeof(*fresh));
    umd_diag_free(b->sites);
    b->sites = fresh;
    b->site_count = count;
    return true;
}

static const char *keep(char **at, const char *s)
{
    size_t n = strlen(s) + 1;
    char *kept = *at;

    memcpy(kept, s, n);
    *at += n;
    return kept;
}

static void read_site(struct umd_log_binary *b, struct in *in)
{
    uint64_t id = get_varint(in);
    uint8_t level = get_byte(in);
    uint64_t line = get_varint(in);

    for (int i = 0; i < 4; i++)
        get_string(in, b->text[i]);
    if (in->bad || id == 0 || id > SITE_ID_MAX || level < UMD_LOG_ERROR || level > UMD_LOG_TRACE) {
        in->bad = true;
        return;
    }
    harmless_format(b->text[3]);
    size_t n = 0;
    for (int i = 0; i < 4; i++)
        n += strlen(b->text[i]) + 1;
    struct site *s = room_for_site(b, id) ? umd_diag_alloc(sizeof(*s) + n) : NULL;
    if (!s) {
        b->error = ENOMEM; /* the file is not to blame */
        return;
    }
    char *at = (char *)(s + 1);
    s->level = level;
    s->line = (uint32_t)line;
    s->module = keep(&at, b->text[0]);
    s->func = keep(&at, b->text[1]);
    s->file = keep(&at, b->text[2]);
    s->fmt = keep(&at, b->text[3]);
    umd_diag_free(b->sites[id]);
    b->sites[id] = s;
}

/* ---- Blocks ---- */

static bool block_at(const struct umd_log_binary *b, size_t at, struct umd_log_binary_block *block_out)
{
    if (b->end - at < sizeof(*block_out))
        return false;
    memcpy(block_out, b->data + at, sizeof(*block_out));
    return block_out->mark == UMD_BINARY_BLOCK_MARK && block_out->payload_B <= UMD_BINARY_PAYLOAD_MAX_B;
}

/* Whole, and as it was written. */
static bool sound(const struct umd_log_binary *b, size_t at, const struct umd_log_binary_block *block)
{
    size_t from = offsetof(struct umd_log_binary_block, payload_B), n = sizeof(*block) + block->payload_B;

    return b->end - at >= n && block->crc == (uint32_t)crc32(crc32(0, NULL, 0), b->data + at + from, (uInt)(n - from));
}

/* From what is no sound block to the next mark; without one, to the last bytes that may be the begin of one. */
static void skip_to_mark(struct umd_log_binary *b)
{
    const uint32_t mark = UMD_BINARY_BLOCK_MARK;
    const uint8_t *from = b->data + b->begin + 1;
    size_t left = b->end - b->begin - 1;
    const uint8_t *next = memmem(from, left, &mark, sizeof(mark));
    size_t gone = next ? (size_t)(next - from) + 1 : left > sizeof(mark) ? left - sizeof(mark) + 1 : 0;

    b->begin += gone;
    b->stats.damaged_B += gone;
}

static uint64_t offset_of(const struct umd_log_binary *b, size_t at) { return b->read_B - (b->end - at); }

/*
 * The same for a mark behind damage, which may be anything. A file that was made to do harm has heads one after the other, each of which claims
 * all that follows: so what such looks may cost grows with the file, not with its square. Beyond that marks are passed over.
 */
static bool sound_in_search(struct umd_log_binary *b, size_t at, const struct umd_log_binary_block *block)
{
    if (b->sound_at && offset_of(b, at) == b->sound_at)
        return true;
    if (b->wasted_B > WASTE_MIN_B + WASTE_TIMES * b->read_B)
        return false;
    if (sound(b, at, block))
        return true;
    if (b->end - at >= sizeof(*block) + block->payload_B)
        b->wasted_B += sizeof(*block) + block->payload_B;
    return false;
}

/* A length that reaches beyond the file is damage rather than a block in the making, if a sound block follows. */
static bool sound_block_follows(struct umd_log_binary *b)
{
    const uint32_t mark = UMD_BINARY_BLOCK_MARK;
    struct umd_log_binary_block block;

    if (b->sound_at > offset_of(b, b->begin))
        return true;
    for (size_t at = b->begin + 1; b->end > at;) {
        const uint8_t *next = memmem(b->data + at, b->end - at, &mark, sizeof(mark));
        if (!next)
            return false;
        at = (size_t)(next - b->data);
        if (block_at(b, at, &block) && sound_in_search(b, at, &block)) {
            b->sound_at = offset_of(b, at);
            return true;
        }
        at++;
    }
    return false;
}

/* 0 or errno. No block under way then: it is the end for now. */
static int next_block(struct umd_log_binary *b)
{
    struct umd_log_binary_block block;
    bool damaged = false;

    for (;;) {
        int err = fill(b, sizeof(block));
        if (err)
            return err;
        b->stats.torn = b->end > b->begin;
        if (b->end - b->begin < sizeof(block))
            return 0;
        bool marked = block_at(b, b->begin, &block);
        err = marked ? fill(b, sizeof(block) + block.payload_B) : 0;
        if (err)
            return err;
        if (marked && b->end - b->begin < sizeof(block) + block.payload_B && !sound_block_follows(b))
            return 0;
        if (marked && (damaged ? sound_in_search(b, b->begin, &block) : sound(b, b->begin, &block)))
            break;
        b->stats.damaged_blocks += !damaged || marked;
        damaged = true;
        skip_to_mark(b);
    }
    b->stats.torn = false;
    b->stats.blocks++;
    b->block_B = sizeof(block) + block.payload_B;
    b->item = b->data + b->begin + sizeof(block);
    b->item_end = b->item + block.payload_B;
    b->mono_ns = b->previous_ns = block.mono_ns;
    b->real_ns = block.real_ns;
    b->tid = b->depth = 0;
    b->context_id = 0;
    return 0;
}

/* ---- Records ---- */

static void read_common(struct umd_log_binary *b, struct in *in, uint8_t tag, struct umd_log_binary_record *r)
{
    b->previous_ns += (uint64_t)get_zigzag(in);
    if ((tag & ~UMD_BINARY_FLAGS) == UMD_BINARY_RECORD)
        r->site_id = (uint32_t)get_varint(in);
    if (tag & UMD_BINARY_TID)
        b->tid = (uint32_t)get_varint(in);
    if (tag & UMD_BINARY_DEPTH)
        b->depth = (uint32_t)get_varint(in);
    if (tag & UMD_BINARY_CONTEXT)
        b->context_id = get_varint(in);
    r->mono_ns = b->previous_ns;
    r->real_ns = b->previous_ns - b->mono_ns + b->real_ns;
    r->tid = b->tid;
    r->depth = b->depth;
    r->context_id = b->context_id;
}

/* A line's own trace goes before the file's. */
static void take_trace(struct umd_log_binary *b, const char *own, struct umd_log_binary_record *r)
{
    r->trace_id = *own ? own : b->head.trace_id;
    r->span_id = *own ? "" : b->head.span_id;
    r->trace_flags = *own ? "" : b->head.trace_flags;
    if (!umd_log_trace_parse(own, b->trace.trace_id, b->trace.span_id, b->trace.flags))
        return;
    r->trace_id = b->trace.trace_id;
    r->span_id = b->trace.span_id;
    r->trace_flags = b->trace.flags;
}

static void read_record(struct umd_log_binary *b, struct in *in, struct umd_log_binary_record *r)
{
    size_t args_B;
    const uint8_t *args = get_bytes(in, &args_B);

    if (in->bad || r->site_id == 0 || r->site_id >= b->site_count || !b->sites[r->site_id]) {
        in->bad = true;
        return;
    }
    const struct site *s = b->sites[r->site_id];
    (void)umd_log_decode(b->text[0], sizeof(b->text[0]), s->fmt, args, args_B);
    for (char *c = b->text[0]; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    r->level = (umdLogLevel)s->level;
    r->line = s->line;
    r->module = s->module;
    r->func = s->func;
    r->file = s->file;
    r->fmt = s->fmt;
    r->message = b->text[0];
    take_trace(b, "", r);
}

static void read_text(struct umd_log_binary *b, struct in *in, struct umd_log_binary_record *r)
{
    uint8_t level = get_byte(in);

    r->line = (uint32_t)get_varint(in);
    r->code = (int32_t)get_zigzag(in);
    r->record.boot = (uint32_t)get_varint(in);
    r->record.pid = (uint32_t)get_varint(in);
    r->record.seq = get_varint(in);
    for (int i = 0; i < 5; i++)
        get_string(in, b->text[i]);
    if (level < UMD_LOG_ERROR || level > UMD_LOG_TRACE)
        in->bad = true;
    r->level = in->bad ? UMD_LOG_ERROR : (umdLogLevel)level;
    r->module = b->text[0];
    r->func = b->text[1];
    r->file = b->text[2];
    take_trace(b, b->text[3], r);
    r->message = b->text[4];
    r->fmt = "";
}

/* True: *r is a record. False: a call site was read, the rest of the block made no sense, or b->error, with the item still to be read. */
static bool read_item(struct umd_log_binary *b, struct umd_log_binary_record *r)
{
    struct in in = { .at = b->item, .end = b->item_end };
    uint8_t tag = get_byte(&in), kind = tag & (uint8_t)~UMD_BINARY_FLAGS;

    *r = (struct umd_log_binary_record){ .pid = b->head.pid };
    if (tag == UMD_BINARY_SITE) {
        read_site(b, &in);
    } else if (kind == UMD_BINARY_RECORD) {
        read_common(b, &in, tag, r);
        read_record(b, &in, r);
    } else if (kind == UMD_BINARY_TEXT) {
        read_common(b, &in, tag, r);
        read_text(b, &in, r);
    } else {
        in.bad = true;
    }
    if (b->error)
        return false;
    b->stats.bad_items += in.bad;
    b->item = in.bad ? b->item_end : in.at;
    return !in.bad && tag != UMD_BINARY_SITE;
}

static umdStatus cannot_read(const char *path, int err)
{
    return UMD_FAIL(umd_record_file_code(err), "path=\"%.255s\" errno=%d reason=\"%s\"", path, err,
                    strerrordesc_np(err));
}

umdStatus umd_log_binary_next(struct umd_log_binary *b, struct umd_log_binary_record *out)
{
    if (!b || !out)
        return UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=%s", b ? "out" : "b");
    for (;;) {
        b->error = 0;
        while (b->item < b->item_end && !b->error) {
            if (read_item(b, out)) {
                b->stats.records++;
                return UMD_SUCCESS;
            }
        }
        if (b->error)
            return cannot_read(b->path, b->error);
        b->begin += b->block_B;
        b->block_B = 0;
        b->item = b->item_end = NULL;
        int err = next_block(b);
        if (err)
            return cannot_read(b->path, err);
        if (!b->item)
            return UMD_STATUS_NOT_READY;
    }
}

/* ---- Open and close ---- */

/* What is wrong with it; NULL: nothing, or *err_out, an errno. */
static const char *check_head(struct umd_log_binary *b, int *err_out)
{
    struct umd_log_binary_head *h = &b->head;
    size_t from = offsetof(struct umd_log_binary_head, version);

    *err_out = fill(b, sizeof(*h));
    if (*err_out)
        return NULL;
    if (b->end - b->begin < sizeof(h->magic) || memcmp(b->data + b->begin, "PTRLBLOG", sizeof(h->magic)) != 0)
        return "no binary log";
    if (b->end - b->begin < sizeof(*h))
        return "cut off within its head";
    memcpy(h, b->data + b->begin, sizeof(*h));
    if (h->version != UMD_BINARY_VERSION || h->args_version != 1)
        return "a version this program does not know";
    if (h->head_B != sizeof(*h) || h->crc != (uint32_t)crc32(crc32(0, NULL, 0), (const Bytef *)h + from, (uInt)(sizeof(*h) - from)))
        return "its head is damaged";
    h->program_version[sizeof(h->program_version) - 1] = h->program[sizeof(h->program) - 1] = '\0';
    h->trace_id[32] = h->span_id[16] = h->trace_flags[2] = '\0';
    b->begin += sizeof(*h);
    return NULL;
}

umdStatus umd_log_binary_open(const char *path, struct umd_log_binary **out)
{
    if (!path || !out)
        return UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=%s", path ? "out" : "path");
    struct umd_log_binary *b = umd_diag_alloc(sizeof(*b));
    if (!b)
        return UMD_FAIL(UMD_ERR_MEM_HOST_ALLOC_FAILED, "size_B=%zu", sizeof(*b));
    UMD_COPY_STR(b->path, path);
    b->fd = umd_sys()->open(path, O_RDONLY, 0);
    int err = b->fd < 0 ? errno : 0;
    const char *wrong = err ? NULL : check_head(b, &err);
    if (err || wrong) {
        umd_log_binary_close(b);
        return err ? cannot_read(path, err) : UMD_FAIL(UMD_ERR_RES_FILE, "path=\"%.255s\" reason=\"%s\"", path, wrong);
    }
    *out = b;
    return UMD_SUCCESS;
}

const struct umd_log_binary_head *umd_log_binary_head_of(const struct umd_log_binary *b) { return &b->head; }
void umd_log_binary_get_stats(const struct umd_log_binary *b, struct umd_log_binary_stats *out) { *out = b->stats; }

void umd_log_binary_close(struct umd_log_binary *b)
{
    if (!b)
        return;
    if (b->fd >= 0)
        umd_sys()->close(b->fd);
    for (uint32_t i = 0; i < b->site_count; i++)
        umd_diag_free(b->sites[i]);
    umd_diag_free(b->sites);
    umd_diag_free(b->data);
    umd_diag_free(b);
}

size_t umd_log_binary_format(const struct umd_log_binary_record *r, umdLogFormat format, char *buf, size_t size)
{
    struct umd_log_line line = {
        .level = r->level, .module = r->module, .func = r->func, .file = r->file, .message = r->message, .trace_id = r->trace_id,
        .span_id = r->span_id[0] ? r->span_id : NULL, .trace_flags = r->trace_flags, .line = r->line, .code = r->code,
        .mono_ns = r->mono_ns, .real_ns = r->real_ns, .observed_ns = r->real_ns, .context_id = r->context_id, .record = r->record, .pid = r->pid, .tid = r->tid, .depth = r->depth,
    };
    size_t n = format == UMD_LOG_FORMAT_JSON ? umd_log_format_json(NULL, &line, buf, size) : umd_log_format_text(NULL, &line, buf, size);

    if (size)
        buf[n < size ? n : size - 1] = '\0';
    return n;
}
