/* SPDX-License-Identifier: MIT */
/* emergency.c - a ring of critical records in a shared mapping: it survives a crash, kill -9 and a failing log. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "diag_internal.h"
#include "emergency.h"
#include "log_internal.h"

UMD_LOG_MODULE("diag.emergency");

#define PAGE_B 4096u
#define MAP_B (PAGE_B + UMD_EMERGENCY_SLOTS * sizeof(struct umd_emergency_slot))
#define CRC_FROM offsetof(struct umd_emergency_slot, seq)
static const char magic[8] = { 'P', 'T', 'R', 'L', 'E', 'M', 'R', 'G' };

/* Used until, and where, no mapping can be had: it dies with the process, but a report still finds it. */
static uint8_t fallback[MAP_B] __attribute__((aligned(4096)));
static _Atomic(uint8_t *) ring = fallback;
static _Atomic(uint64_t) next_seq = 1;
static _Atomic(uint64_t) put_count;
static struct umd_mutex open_lock = { .m = PTHREAD_MUTEX_INITIALIZER, .name = "emergency ring", .rank = 91 };

static struct umd_emergency_slot *slots_of(uint8_t *base) { return (struct umd_emergency_slot *)(base + PAGE_B); }

static uint32_t crc_of(const struct umd_emergency_slot *s)
{
    return (uint32_t)crc32(crc32(0, NULL, 0), (const Bytef *)s + CRC_FROM, (uInt)(sizeof(*s) - CRC_FROM));
}

void umd_emergency_put(const struct umd_emergency_note *note)
{
    uint8_t *base = atomic_load_explicit(&ring, memory_order_acquire);
    struct umd_emergency_slot *s = NULL;
    uint64_t seq = 0;

    /* Busy: a reader is at the slot, or the ring went round once while a thread was writing. The next one will do. */
    for (uint32_t tries = 0; tries < 8; tries++) {
        uint32_t free_mark = 0;
        seq = atomic_fetch_add_explicit(&next_seq, 1, memory_order_relaxed);
        s = &slots_of(base)[seq % UMD_EMERGENCY_SLOTS];
        if (atomic_compare_exchange_strong_explicit(&s->busy, &free_mark, 1, memory_order_acquire, memory_order_relaxed))
            break;
        s = NULL;
    }
    if (!s)
        return;
    atomic_fetch_add_explicit(&put_count, 1, memory_order_relaxed);
    s->crc = 0;
    s->seq = seq;
    s->mono_ns = umd_sys()->mono_ns();
    s->real_ns = umd_sys()->real_ns();
    s->context_id = note->context_id;
    s->record = note->record;
    s->pid = umd_sys()->pid();
    s->tid = umd_sys()->tid();
    s->code = note->code;
    s->line = note->line;
    UMD_COPY_STR(s->module, note->module);
    UMD_COPY_STR(s->func, note->func);
    UMD_COPY_STR(s->file, note->file);
    UMD_COPY_STR(s->message, note->message);
    s->crc = crc_of(s);
    atomic_store_explicit(&s->busy, 0, memory_order_release);
}

void umd_emergency_notef(umdLogModule *module, const char *func, const char *file, int line, const char *fmt, ...)
{
    char message[UMD_EMERGENCY_TEXT];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    umd_emergency_put(&(struct umd_emergency_note){ .module = module->name, .func = func, .file = file, .line = (uint32_t)line, .message = message });
}

uint64_t umd_emergency_count(void) { return atomic_load_explicit(&put_count, memory_order_relaxed); }

static void init_head(uint8_t *base)
{
    struct umd_emergency_head *head = (struct umd_emergency_head *)base;

    *head = (struct umd_emergency_head){
        .version = 1, .slot_size_B = sizeof(struct umd_emergency_slot), .slot_count = UMD_EMERGENCY_SLOTS,
        .pid = umd_sys()->pid(), .start_real_ns = umd_sys()->real_ns(),
    };
    UMD_COPY_STR(head->program_version, PETREL_VERSION);
    memcpy(head->magic, magic, sizeof(magic));
}

/* Records of the old place move along. The old mapping stays: a thread may be writing to it. */
static void publish_locked(uint8_t *base)
{
    uint8_t *old = atomic_load(&ring);

    umd_mutex_assert_held(&open_lock);
    init_head(base);
    for (uint32_t i = 0; i < UMD_EMERGENCY_SLOTS; i++) {
        struct umd_emergency_slot *from = &slots_of(old)[i], *to = &slots_of(base)[i];
        uint32_t free_mark = 0;
        if (!atomic_compare_exchange_strong_explicit(&from->busy, &free_mark, 1, memory_order_acquire, memory_order_relaxed))
            continue;
        memcpy((uint8_t *)to + sizeof(uint32_t), (uint8_t *)from + sizeof(uint32_t), sizeof(*to) - sizeof(uint32_t));
        atomic_store_explicit(&from->busy, 0, memory_order_release);
    }
    atomic_store_explicit(&ring, base, memory_order_release);
}

static int write_zeros(int fd)
{
    static const uint8_t zeros[PAGE_B];

    for (size_t left = MAP_B; left;) {
        ssize_t n = umd_sys()->write(fd, zeros, left < PAGE_B ? left : PAGE_B);
        if (n <= 0)
            return n < 0 ? errno : ENOSPC;
        left -= (size_t)n;
    }
    return 0;
}

/* A map of a file at path, blocks allocated, so that a full disk is an error here and not a SIGBUS later. 0 or errno. */
static int map_file(const char *path, uint8_t **base_out)
{
    char old[4100];
    int err = 0;

    if (snprintf(old, sizeof(old), "%s.1", path) < (int)sizeof(old) && umd_sys()->file_size(path) > 0)
        umd_sys()->rename(path, old); /* failing, it is overwritten: this run's records matter more */
    int fd = umd_sys()->open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (fd < 0)
        return errno;
    err = write_zeros(fd);
    if (!err) {
        void *map = umd_sys()->mmap(NULL, MAP_B, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
            err = errno;
        else
            *base_out = map;
    }
    umd_sys()->close(fd);
    if (err && umd_sys()->file_size(path) >= 0) /* a device or pipe is not ours to remove */
        umd_sys()->unlink(path);
    return err;
}

umdStatus umd_emergency_open(const char *path)
{
    char expanded[4096];
    uint8_t *base = NULL;

    if (!path)
        return UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=path");
    if (!umd_log_expand_path(expanded, sizeof(expanded), path))
        return UMD_FAIL(UMD_ERR_RES_FILE, "path=\"%s\" reason=\"path too long\"", path);
    int err = map_file(expanded, &base);
    if (err)
        return UMD_FAIL(UMD_ERR_RES_FILE, "path=\"%s\" errno=%d reason=\"%s\"", expanded, err, strerrordesc_np(err));
    umd_mutex_lock(&open_lock);
    publish_locked(base);
    umd_mutex_unlock(&open_lock);
    return UMD_SUCCESS;
}

static void map_anonymous(void)
{
    int fd = umd_sys()->memfd_create("petrel-emergency", MAP_B);

    if (fd < 0)
        return;
    void *map = umd_sys()->mmap(NULL, MAP_B, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    umd_sys()->close(fd);
    if (map == MAP_FAILED)
        return;
    umd_mutex_lock(&open_lock);
    publish_locked(map);
    umd_mutex_unlock(&open_lock);
}

/* By environment an unusable file only degrades: a memfd, found by a debugger or a dump, takes its place. */
void umd_emergency_init(void)
{
    const char *path = getenv("UMD_EMERGENCY_FILE");
    char expanded[4096];
    uint8_t *base = NULL;

    init_head(fallback);
    if (path && *path) {
        int err = umd_log_expand_path(expanded, sizeof(expanded), path) ? map_file(expanded, &base) : ENAMETOOLONG;
        if (!err) {
            umd_mutex_lock(&open_lock);
            publish_locked(base);
            umd_mutex_unlock(&open_lock);
            return;
        }
        UMD_LOG(UMD_LOG_WARN, "emergency file not usable, keeping the ring in memory path=\"%s\" errno=%d reason=\"%s\"", path, err,
                strerrordesc_np(err));
    }
    map_anonymous();
}

/* The parent's ring is shared memory: a child that wrote there would mix into the parent's story. */
void umd_emergency_atfork(int stage)
{
    if (stage == 0) {
        pthread_mutex_lock(&open_lock.m);
        return;
    }
    pthread_mutex_unlock(&open_lock.m);
    if (stage == 1)
        return;
    memset(fallback, 0, sizeof(fallback));
    atomic_store(&ring, fallback);
    atomic_store(&next_seq, 1);
    init_head(fallback);
}

static int by_seq(const void *a, const void *b)
{
    const struct umd_emergency_slot *x = a, *y = b;
    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

uint32_t umd_emergency_snapshot(struct umd_emergency_slot *slots_out, uint32_t max)
{
    struct umd_emergency_slot *slots = slots_of(atomic_load_explicit(&ring, memory_order_acquire));
    uint32_t count = 0;

    for (uint32_t i = 0; i < UMD_EMERGENCY_SLOTS && count < max; i++) {
        uint32_t free_mark = 0;
        if (!atomic_compare_exchange_strong_explicit(&slots[i].busy, &free_mark, 1, memory_order_acquire, memory_order_relaxed))
            continue;
        if (slots[i].seq) {
            memcpy(&slots_out[count], &slots[i], sizeof(slots[i]));
            atomic_store_explicit(&slots_out[count++].busy, 0, memory_order_relaxed);
        }
        atomic_store_explicit(&slots[i].busy, 0, memory_order_release);
    }
    qsort(slots_out, count, sizeof(*slots_out), by_seq);
    return count;
}

static bool read_all(int fd, void *buf, size_t n)
{
    for (uint8_t *at = buf; n;) {
        ssize_t got = umd_sys()->read(fd, at, n);
        if (got <= 0)
            return false;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

umdStatus umd_emergency_read(const char *path, struct umd_emergency_slot *slots_out, uint32_t max, uint32_t *count_out, uint32_t *damaged_out)
{
    uint8_t page[PAGE_B];
    struct umd_emergency_head head;
    uint32_t count = 0, damaged = 0;

    int fd = umd_sys()->open(path, O_RDONLY, 0);
    if (fd < 0)
        return UMD_FAIL(UMD_ERR_RES_FILE, "path=\"%s\" errno=%d reason=\"%s\"", path, errno, strerrordesc_np(errno));
    bool ok = read_all(fd, page, sizeof(page));
    memcpy(&head, page, sizeof(head));
    if (!ok || memcmp(head.magic, magic, sizeof(magic)) != 0 || head.version != 1 ||
        head.slot_size_B != sizeof(struct umd_emergency_slot) || head.slot_count != UMD_EMERGENCY_SLOTS) {
        umd_sys()->close(fd);
        return UMD_FAIL(UMD_ERR_RES_FILE, "path=\"%s\" reason=\"no emergency ring of this version\"", path);
    }
    for (uint32_t i = 0; i < UMD_EMERGENCY_SLOTS; i++) {
        struct umd_emergency_slot s;
        if (!read_all(fd, &s, sizeof(s))) {
            damaged += UMD_EMERGENCY_SLOTS - i;
            break;
        }
        if (s.seq && s.crc == crc_of(&s)) {
            if (count < max)
                memcpy(&slots_out[count++], &s, sizeof(s));
        } else if (s.seq || s.crc) {
            damaged++;
        }
    }
    umd_sys()->close(fd);
    qsort(slots_out, count, sizeof(*slots_out), by_seq);
    *count_out = count;
    *damaged_out = damaged;
    return UMD_SUCCESS;
}
