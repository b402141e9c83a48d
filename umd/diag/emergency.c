/* SPDX-License-Identifier: MIT */
/* emergency.c - a ring of critical records in a shared mapping: it survives a crash, kill -9 and a failing log. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag_internal.h"
#include "emergency_file.h"
#include "log_internal.h"

UMD_LOG_MODULE("diag.emergency");

#define MAP_B UMD_EMERGENCY_MAP_B
#define SLOT_TRIES 8u       /* other slots, when one is in use */
#define SPINS 1000u         /* waits for a copy of under a microsecond */

/* Used until, and where, no mapping can be had: it dies with the process, but a report still finds it. */
static uint8_t fallback[MAP_B] __attribute__((aligned(4096)));
static _Atomic(uint8_t *) ring = fallback;
static _Atomic(uint64_t) next_seq = 1;
static _Atomic(uint64_t) put_count, error_count, lost_count, degraded_count;
static _Atomic(int) degraded_errno, tell_errno;
static _Atomic(bool) tell_taken;            /* the named file is another process's */

/* A file is looked for once, with the first record. Whoever finds NEW makes it; others go on with the ring that is there. */
enum { FILE_NEW, FILE_STARTING, FILE_DONE };
static _Atomic(int) file_state;
static _Atomic(int) where = UMD_EMERGENCY_MEMORY;
static char path_now[UMD_EMERGENCY_PATH];   /* written before `where`; the file that is removed at a clean exit, if DEFAULT_FILE */
static char path_wanted[UMD_EMERGENCY_PATH]; /* of a named file, as it was given */
static enum { MODE_DEFAULT, MODE_OFF, MODE_FILE } mode; /* of UMD_EMERGENCY */
static bool is_child;                       /* of fork */

static struct umd_emergency_slot *slots_of(uint8_t *base) { return (struct umd_emergency_slot *)(base + UMD_EMERGENCY_PAGE_B); }

static bool take(struct umd_emergency_slot *s)
{
    uint32_t free_mark = 0;
    return atomic_compare_exchange_strong(&s->busy, &free_mark, 1);
}

static bool take_patiently(struct umd_emergency_slot *s)
{
    for (uint32_t i = 0; i < SPINS; i++)
        if (take(s))
            return true;
    return false;
}

static void give(struct umd_emergency_slot *s) { atomic_store(&s->busy, 0); }

/* The CRC is void while the fields change, in the order of the program: a kill shows a half-written record as damaged. */
static void fill(struct umd_emergency_slot *s, const struct umd_emergency_note *note, const struct umd_emergency_slot *stamp)
{
    s->crc = 0;
    atomic_signal_fence(memory_order_seq_cst);
    s->seq = stamp->seq;
    s->mono_ns = stamp->mono_ns;
    s->real_ns = stamp->real_ns;
    s->context_id = note->context_id;
    s->record = note->record;
    s->pid = stamp->pid;
    s->tid = stamp->tid;
    s->code = note->code;
    s->line = note->line;
    s->level = note->lifecycle ? UMD_LOG_INFO : UMD_LOG_ERROR;
    s->reserved = 0;
    UMD_COPY_STR(s->module, note->module);
    UMD_COPY_STR(s->func, note->func);
    UMD_COPY_STR(s->file, note->file);
    UMD_COPY_STR(s->message, note->message);
    atomic_signal_fence(memory_order_seq_cst);
    s->crc = umd_emergency_crc(s);
}

static void start(bool named_only);

static bool has_to_tell(void)
{
    return atomic_load_explicit(&tell_errno, memory_order_relaxed) != 0 || atomic_load_explicit(&tell_taken, memory_order_relaxed);
}

void umd_emergency_tell(void)
{
    const struct umd_diag_thread *t = umd_diag_thread_peek();

    if (__builtin_expect(!has_to_tell(), 1) || umd_diag_inside() || (t && t->busy))
        return;
    int err = atomic_exchange(&tell_errno, 0);
    bool taken = atomic_exchange(&tell_taken, false);

    if (err)
        UMD_LOG(UMD_LOG_WARN, "emergency file not usable, keeping the ring in memory path=\"%.300s\" errno=%d reason=\"%s\"", path_now, err,
                strerrordesc_np(err));
    if (taken)
        UMD_LOG(UMD_LOG_WARN, "emergency file in use by another process, taking another name: %%p in it gives each its own path=\"%.300s\"",
                path_now);
}

void umd_emergency_put(const struct umd_emergency_note *note)
{
    struct umd_emergency_slot *s = NULL;
    struct umd_emergency_slot stamp;
    int saved = errno;

    if (__builtin_expect(atomic_load_explicit(&file_state, memory_order_relaxed) == FILE_NEW, 0))
        start(false);
    uint8_t *base = atomic_load(&ring);
    stamp.mono_ns = umd_sys()->mono_ns();
    stamp.real_ns = umd_sys()->real_ns();
    stamp.pid = umd_sys()->pid();
    stamp.tid = umd_sys()->tid();
    /* Busy: a reader is at the slot, or the ring went round once while a thread was writing. The next one will do. */
    for (uint32_t tries = 0; tries < SLOT_TRIES && !s; tries++) {
        stamp.seq = atomic_fetch_add_explicit(&next_seq, 1, memory_order_relaxed);
        s = &slots_of(base)[stamp.seq % UMD_EMERGENCY_SLOTS];
        if (!take(s))
            s = NULL;
    }
    atomic_fetch_add_explicit(s ? &put_count : &lost_count, 1, memory_order_relaxed);
    if (!note->lifecycle)
        atomic_fetch_add_explicit(&error_count, 1, memory_order_relaxed);
    if (s) {
        fill(s, note, &stamp);
        give(s);
    }
    /* The ring has moved meanwhile, and this slot may have been passed by. */
    uint8_t *now = atomic_load(&ring);
    if (__builtin_expect(s && now != base, 0)) {
        s = &slots_of(now)[stamp.seq % UMD_EMERGENCY_SLOTS];
        if (take_patiently(s)) {
            if (s->seq <= stamp.seq)
                fill(s, note, &stamp);
            give(s);
        }
    }
    errno = saved;
}

void umd_emergency_notef(umdLogModule *module, const char *func, const char *file, int line, const char *fmt, ...)
{
    char message[UMD_EMERGENCY_TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    umd_emergency_put(&(struct umd_emergency_note){ .module = module->name, .func = func, .file = file, .line = (uint32_t)line,
                                                    .lifecycle = true, .message = message });
    umd_emergency_tell();
}

uint64_t umd_emergency_count(void) { return atomic_load_explicit(&put_count, memory_order_relaxed); }
uint64_t umd_emergency_next_seq(void) { return atomic_load(&next_seq); }

void umd_emergency_get_stats(struct umd_emergency_stats *stats_out)
{
    *stats_out = (struct umd_emergency_stats){
        .put = atomic_load(&put_count), .errors = atomic_load(&error_count), .lost = atomic_load(&lost_count),
        .degraded = atomic_load(&degraded_count), .degraded_errno = atomic_load(&degraded_errno),
        .where = (enum umd_emergency_where)atomic_load(&where),
    };
    if (stats_out->where != UMD_EMERGENCY_MEMORY)
        UMD_COPY_STR(stats_out->path, path_now);
}

/* ---- Where the ring lies ---- */

/* First the new place counts, then what the old one holds moves along: no record falls between. The old mapping stays, as a thread
 * may be writing to it, which will then see that the ring has moved. */
static void publish(uint8_t *base)
{
    uint8_t *old = atomic_exchange(&ring, base);

    if (old == base)
        return;
    for (uint32_t i = 0; i < UMD_EMERGENCY_SLOTS; i++) {
        struct umd_emergency_slot *from = &slots_of(old)[i], *to = &slots_of(base)[i];
        if (!take_patiently(to))
            continue;
        if (take_patiently(from)) {
            if (from->seq > to->seq)
                memcpy((uint8_t *)to + sizeof(uint32_t), (uint8_t *)from + sizeof(uint32_t), sizeof(*to) - sizeof(uint32_t));
            give(from);
        }
        give(to);
    }
}

static void degrade(const char *path, int err)
{
    UMD_COPY_STR(path_now, path);
    atomic_fetch_add(&degraded_count, 1);
    atomic_store(&degraded_errno, err);
    atomic_store(&tell_errno, err);
}

/* A named file's path for this process: a child of fork must not take its parent's away. */
static bool expand(char *out, size_t size)
{
    char own[32];

    if (!umd_log_expand_path(out, size, path_wanted))
        return false;
    if (!is_child || strstr(path_wanted, "%p"))
        return true;
    int n = snprintf(own, sizeof(own), ".%d", (int)getpid());
    size_t used = strlen(out);
    if (used + (size_t)n >= size)
        return false;
    memcpy(out + used, own, (size_t)n + 1);
    return true;
}

static void use(uint8_t *base, const char *path, enum umd_emergency_where kind)
{
    umd_copy_str(path_now, sizeof(path_now), path);
    atomic_store(&where, (int)kind);
    publish(base);
}

/* named_only: at the library's start, where a file that was asked for is made, and no other. */
static void start(bool named_only)
{
    char path[UMD_EMERGENCY_PATH];
    uint8_t *base = NULL;
    int expected = FILE_NEW, err = 0;
    const bool named = path_wanted[0] && mode != MODE_OFF;

    if (!named && (named_only || (umd_sys_stepped() && mode == MODE_DEFAULT)))
        return; /* stepped: what is on the host's disk is no part of such a run */
    if (!atomic_compare_exchange_strong(&file_state, &expected, FILE_STARTING))
        return;
    if (named) {
        path[0] = '\0';
        err = expand(path, sizeof(path)) ? 0 : ENAMETOOLONG;
        size_t n = strlen(path);
        if (!err)
            err = umd_emergency_map_file(path, sizeof(path), true, &base);
        atomic_store(&tell_taken, base && strlen(path) != n);
    } else if (mode != MODE_OFF) {
        err = umd_emergency_map_default(&base, path, sizeof(path));
    }
    if (base)
        use(base, path, named ? UMD_EMERGENCY_NAMED_FILE : UMD_EMERGENCY_DEFAULT_FILE);
    else if (err)
        degrade(path[0] ? path : path_wanted, err);
    if (!base)
        base = umd_emergency_map_memory();
    if (base && base != atomic_load(&ring))
        publish(base);
    atomic_store(&file_state, FILE_DONE);
}

bool umd_emergency_is_mode(const char *word) { return !*word || strcmp(word, "off") == 0 || strcmp(word, "file") == 0; }

bool umd_emergency_set_mode(const char *word)
{
    if (!umd_emergency_is_mode(word))
        return false;
    mode = !*word ? MODE_DEFAULT : strcmp(word, "off") == 0 ? MODE_OFF : MODE_FILE;
    return true;
}

bool umd_emergency_set_file(const char *path)
{
    if (strlen(path) >= sizeof(path_wanted))
        return false;
    UMD_COPY_STR(path_wanted, path);
    return true;
}

/* After the settings: which file it is, if any, is known now. */
void umd_emergency_init(void)
{
    struct umd_emergency_slot warm = { 0 };

    (void)umd_emergency_crc(&warm); /* bound now: a signal handler must not be the first to call it */
    umd_emergency_init_head(fallback);
    if (path_wanted[0])
        start(true);
    umd_emergency_tell();
}

/* A run without an error leaves nothing behind. What still comes goes to the mapping, which lives as long as the process. */
void umd_emergency_fini(void)
{
    if (atomic_load(&where) == UMD_EMERGENCY_DEFAULT_FILE && atomic_load(&error_count) == 0)
        umd_sys()->unlink(path_now);
}

/* The parent's ring is shared memory: a child that wrote there would mix into the parent's story. */
void umd_emergency_atfork(int stage)
{
    if (stage != 2)
        return;
    memset(fallback, 0, sizeof(fallback));
    uint8_t *parents = atomic_exchange(&ring, fallback);
    if (parents != fallback)
        umd_emergency_let_go(parents);
    atomic_store(&next_seq, 1);
    atomic_store(&put_count, 0);
    atomic_store(&error_count, 0);
    atomic_store(&lost_count, 0);
    atomic_store(&tell_errno, 0);
    atomic_store(&tell_taken, false);
    atomic_store(&where, UMD_EMERGENCY_MEMORY);
    is_child = true;
    umd_emergency_init_head(fallback);
    atomic_store(&file_state, FILE_NEW);
}

/* ---- This process's own ring ---- */

bool umd_emergency_peek(uint64_t seq, struct umd_emergency_slot *slot_out)
{
    const struct umd_emergency_slot *s = &slots_of(atomic_load(&ring))[seq % UMD_EMERGENCY_SLOTS];

    memcpy((uint8_t *)slot_out + sizeof(uint32_t), (const uint8_t *)s + sizeof(uint32_t), sizeof(*s) - sizeof(uint32_t));
    atomic_init(&slot_out->busy, 0);
    return slot_out->seq == seq && seq != 0 && slot_out->crc == umd_emergency_crc(slot_out);
}

uint32_t umd_emergency_snapshot(struct umd_emergency_slot *slots_out, uint32_t max)
{
    struct umd_emergency_slot *slots = slots_of(atomic_load(&ring));
    uint64_t next = atomic_load(&next_seq);
    uint32_t count = 0;

    for (uint64_t seq = next > UMD_EMERGENCY_SLOTS ? next - UMD_EMERGENCY_SLOTS : 1; seq < next && count < max; seq++) {
        struct umd_emergency_slot *s = &slots[seq % UMD_EMERGENCY_SLOTS];
        if (!take_patiently(s))
            continue;
        if (s->seq == seq) {
            memcpy((uint8_t *)&slots_out[count] + sizeof(uint32_t), (const uint8_t *)s + sizeof(uint32_t), sizeof(*s) - sizeof(uint32_t));
            atomic_init(&slots_out[count++].busy, 0);
        }
        give(s);
    }
    return count;
}
