/* SPDX-License-Identifier: MIT */
/* log_sink_binary.c - the compact binary file: records by call site with raw arguments, in blocks with a CRC. Format: log_binary.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "log_binary.h"
#include "log_sinks.h"
#include "log_trace.h"
#include "stamp.h"

#define VARINT_B 10u
#define ITEM_B (1 + 8 * VARINT_B)   /* of an item without its strings and arguments */
#define DICTIONARY_MAX_B (UMD_BINARY_PAYLOAD_MAX_B / 2)
#define SITES_FIRST 1024u

/* All under the drain lock: there is one binary sink. */
static struct {
    uint8_t *known;             /* by id: is defined in bytes */
    uint32_t known_count;
    uint8_t *bytes;             /* every definition ever made, encoded: each file begins with them */
    size_t bytes_used, bytes_size;
} sites;
static struct {
    uint64_t mono_ns, real_ns, previous_ns, context_id;
    uint32_t tid, depth, count;
} block;

/* ---- Encoding; the caller has made sure of the room ---- */

static uint8_t *put_varint(uint8_t *at, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        *at++ = (uint8_t)(v | 0x80);
    *at++ = (uint8_t)v;
    return at;
}

static uint8_t *put_zigzag(uint8_t *at, int64_t v) { return put_varint(at, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63)); }

static uint8_t *put_bytes(uint8_t *at, const void *bytes, size_t n)
{
    at = put_varint(at, n);
    if (n)
        memcpy(at, bytes, n);
    return at + n;
}

static uint8_t *put_string(uint8_t *at, const char *s) { return put_bytes(at, s, s ? strlen(s) : 0); }

/* ---- Dictionary of call sites ---- */

static bool room_for_id(uint32_t id)
{
    uint32_t count = sites.known_count ? sites.known_count : SITES_FIRST;

    if (id < sites.known_count)
        return true;
    while (count <= id)
        count *= 2;
    uint8_t *fresh = umd_diag_alloc(count);
    if (!fresh)
        return false;
    if (sites.known_count)
        memcpy(fresh, sites.known, sites.known_count);
    umd_diag_free(sites.known);
    sites.known = fresh;
    sites.known_count = count;
    return true;
}

static size_t definition_max_B(const umdLogSite *s)
{
    return ITEM_B + strlen(s->module->name) + strlen(s->func) + strlen(s->file) + strlen(s->fmt);
}

static bool dictionary_room(size_t more)
{
    size_t size = sites.bytes_size ? sites.bytes_size : 16384;

    if (sites.bytes_used + more > DICTIONARY_MAX_B)
        return false;
    while (size < sites.bytes_used + more)
        size *= 2;
    if (size == sites.bytes_size)
        return true;
    uint8_t *fresh = umd_diag_alloc(size);
    if (!fresh)
        return false;
    if (sites.bytes_used)
        memcpy(fresh, sites.bytes, sites.bytes_used);
    umd_diag_free(sites.bytes);
    sites.bytes = fresh;
    sites.bytes_size = size;
    return true;
}

/* False where there is no memory for a definition. A new one is the end of sites.bytes, *added_out bytes long. Ids are not used twice. */
static bool define(const umdLogSite *s, uint32_t id, size_t *added_out)
{
    *added_out = 0;
    if (id < sites.known_count && sites.known[id])
        return true;
    if (!room_for_id(id) || !dictionary_room(definition_max_B(s)))
        return false;
    uint8_t *from = sites.bytes + sites.bytes_used, *at = from;
    *at++ = UMD_BINARY_SITE;
    at = put_varint(at, id);
    *at++ = s->level;
    at = put_varint(at, s->line);
    at = put_string(at, s->module->name);
    at = put_string(at, s->func);
    at = put_string(at, s->file);
    at = put_string(at, s->fmt);
    *added_out = (size_t)(at - from);
    sites.bytes_used += *added_out;
    sites.known[id] = 1;
    return true;
}

/* ---- Records ---- */

/* Tag, time, and what is not as in the record before. */
static uint8_t *put_common(uint8_t *at, uint8_t tag, const struct umd_log_line *line, uint32_t site_id)
{
    uint8_t flags = (uint8_t)((line->tid != block.tid ? UMD_BINARY_TID : 0) | (line->depth != block.depth ? UMD_BINARY_DEPTH : 0) |
                              (line->context_id != block.context_id ? UMD_BINARY_CONTEXT : 0));

    *at++ = tag | flags;
    at = put_zigzag(at, (int64_t)(line->mono_ns - block.previous_ns));
    if (tag == UMD_BINARY_RECORD)
        at = put_varint(at, site_id);
    if (flags & UMD_BINARY_TID)
        at = put_varint(at, line->tid);
    if (flags & UMD_BINARY_DEPTH)
        at = put_varint(at, line->depth);
    if (flags & UMD_BINARY_CONTEXT)
        at = put_varint(at, line->context_id);
    block.previous_ns = line->mono_ns;
    block.tid = line->tid;
    block.depth = line->depth;
    block.context_id = line->context_id;
    return at;
}

#define TRACE_B 160u /* as umd_log_text cuts it, with span and flags */

static size_t text_max_B(struct umd_log_line *line)
{
    size_t n = strlen(line->module) + strlen(umd_log_line_message(line));

    n += line->func ? strlen(line->func) : 0;
    n += line->file ? strlen(line->file) : 0;
    return n + TRACE_B;
}

/* A trace id alone, or a thread's context as it was given. */
static const char *trace_text(const struct umd_log_line *line, char buf[TRACE_B])
{
    if (!line->trace_id || !line->span_id)
        return line->trace_id;
    snprintf(buf, TRACE_B, "00-%.32s-%.16s-%.2s", line->trace_id, line->span_id, line->trace_flags ? line->trace_flags : "00");
    return buf;
}

static uint8_t *put_text(uint8_t *at, struct umd_log_line *line)
{
    char trace[TRACE_B];

    at = put_common(at, UMD_BINARY_TEXT, line, 0);
    *at++ = (uint8_t)line->level;
    at = put_varint(at, line->line);
    at = put_zigzag(at, line->code);
    at = put_varint(at, line->record.boot);
    at = put_varint(at, line->record.pid);
    at = put_varint(at, line->record.seq);
    at = put_string(at, line->module);
    at = put_string(at, line->func);
    at = put_string(at, line->file);
    at = put_string(at, trace_text(line, trace));
    return put_string(at, umd_log_line_message(line));
}

/* Nothing is remembered of a line that does not fit: the answer then only says how much room it would have needed. */
size_t umd_log_format_binary(struct umd_log_sink *s, struct umd_log_line *line, char *buf, size_t size)
{
    size_t head_B = s->used ? 0 : sizeof(struct umd_log_binary_block), added = 0;
    /* Addresses as they are would make two equal runs of stepped mode differ. */
    bool as_text = !line->site || !line->site_id || line->trace_id || (umd_sys_stepped() && strchr(line->site->fmt, 'p'));
    size_t max_B = head_B + ITEM_B * 2 + VARINT_B * 8 + (as_text ? text_max_B(line) : line->args_B + definition_max_B(line->site));

    if (max_B >= size)
        return max_B;
    uint8_t *at = (uint8_t *)buf + head_B;
    if (!as_text && !define(line->site, line->site_id, &added)) {
        as_text = true;
        if (max_B + text_max_B(line) >= size)
            return max_B + text_max_B(line);
    }
    if (head_B) {
        memset(&block, 0, sizeof(block));
        block.mono_ns = block.previous_ns = line->mono_ns;
        block.real_ns = line->real_ns;
    }
    if (added)
        memcpy(at, sites.bytes + sites.bytes_used - added, added);
    at += added;
    if (!as_text) {
        at = put_common(at, UMD_BINARY_RECORD, line, line->site_id);
        at = put_bytes(at, line->args, line->args_B);
    } else {
        at = put_text(at, line);
    }
    block.count++;
    return (size_t)(at - (uint8_t *)buf);
}

static void fill_block(uint8_t *bytes, size_t n, uint32_t count, uint64_t mono_ns, uint64_t real_ns)
{
    struct umd_log_binary_block b = {
        .mark = UMD_BINARY_BLOCK_MARK, .payload_B = (uint32_t)(n - sizeof(b)), .count = count, .mono_ns = mono_ns, .real_ns = real_ns,
    };
    size_t from = offsetof(struct umd_log_binary_block, payload_B);

    memcpy(bytes, &b, sizeof(b));
    b.crc = (uint32_t)crc32(crc32(0, NULL, 0), bytes + from, (uInt)(n - from));
    memcpy(bytes, &b, sizeof(b));
}

void umd_log_seal_binary(struct umd_log_sink *s)
{
    fill_block((uint8_t *)s->buf, s->used, block.count, block.mono_ns, block.real_ns);
}

/* ---- Begin of a file ---- */

static void program_name(char *out, size_t size)
{
    extern char *program_invocation_short_name;

    umd_copy_str(out, size, umd_sys_stepped() ? "" : program_invocation_short_name);
}

static void fill_head(struct umd_log_binary_head *h)
{
    struct umd_log_trace trace = umd_log_trace_process();

    *h = (struct umd_log_binary_head){
        .magic = { 'P', 'T', 'R', 'L', 'B', 'L', 'O', 'G' }, .version = UMD_BINARY_VERSION, .head_B = sizeof(*h), .args_version = 1,
        .pid = umd_sys()->pid(), .start_real_ns = umd_sys()->real_ns(), .start_mono_ns = umd_sys()->mono_ns(),
    };
    if (atomic_load(&umd_stamp_is_counter)) {
        double slope;
        struct umd_stamp_pair pair = umd_stamp_now(&slope);
        h->start_tsc = pair.stamp - (uint64_t)((double)(pair.mono_ns - h->start_mono_ns) / slope);
        h->tsc_hz = (uint64_t)(1e9 / slope);
    }
    UMD_COPY_STR(h->program_version, PETREL_VERSION);
    program_name(h->program, sizeof(h->program));
    UMD_COPY_STR(h->trace_id, trace.trace_id);
    UMD_COPY_STR(h->span_id, trace.span_id);
    UMD_COPY_STR(h->trace_flags, trace.flags);
    size_t from = offsetof(struct umd_log_binary_head, version);
    h->crc = (uint32_t)crc32(crc32(0, NULL, 0), (const Bytef *)h + from, (uInt)(sizeof(*h) - from));
}

/* Head, then all call sites known by now: what is in the buffer refers to them. */
int umd_log_begin_binary(struct umd_log_sink *s)
{
    struct umd_log_binary_head head;

    fill_head(&head);
    int err = umd_log_sink_write(s, (const char *)&head, sizeof(head), NULL);
    if (err || !sites.bytes_used)
        return err;
    size_t n = sizeof(struct umd_log_binary_block) + sites.bytes_used;
    uint8_t *bytes = umd_diag_alloc(n);
    if (!bytes)
        return ENOMEM;
    memcpy(bytes + sizeof(struct umd_log_binary_block), sites.bytes, sites.bytes_used);
    fill_block(bytes, n, 0, head.start_mono_ns, head.start_real_ns);
    err = umd_log_sink_write(s, (const char *)bytes, n, NULL);
    umd_diag_free(bytes);
    return err;
}
