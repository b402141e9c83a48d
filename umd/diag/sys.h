/* SPDX-License-Identifier: MIT */
/* sys.h - the one injectable table of what our own code takes from the host: memory, files, threads, time. */
#ifndef UMD_DIAG_SYS_H
#define UMD_DIAG_SYS_H

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <umd/umd_diag.h>
#include <umd/umd_log.h>

/*
 * Every allocation, file operation, thread start and clock read of our code goes through umd_sys().
 * The default table calls the C library. Fault sites sys.alloc, sys.open, sys.write, sys.mmap, sys.thread.create sit inside it,
 * so that each can be made to fail by a fault plan; tests may also install a table of their own before any device exists.
 * Contracts are those of the C library: NULL or -1 with errno set. EINTR is retried inside (S12).
 */
struct umd_sys {
    void *(*alloc)(size_t size);                 /**< zeroed; NULL with errno */
    void *(*realloc)(void *p, size_t size);
    void (*free)(void *p);
    int (*open)(const char *path, int flags, unsigned mode);
    ssize_t (*read)(int fd, void *buf, size_t n);
    ssize_t (*write)(int fd, const void *buf, size_t n);
    int (*close)(int fd);
    int (*memfd_create)(const char *name, uint64_t size_B); /**< sized, sealed against shrink; -1 with errno */
    void *(*mmap)(void *addr, size_t n, int prot, int flags, int fd, int64_t off);  /**< MAP_FAILED with errno */
    int (*munmap)(void *p, size_t n);
    int (*rename)(const char *from, const char *to);
    int (*unlink)(const char *path);
    int64_t (*file_size)(const char *path);      /**< bytes of a regular file; -1 with errno, EINVAL: no regular file */
    int (*thread_create)(pthread_t *t, const char *name, void *(*fn)(void *), void *arg); /**< 0 or errno value */
    uint64_t (*mono_ns)(void);                   /**< CLOCK_MONOTONIC, or the device clock in stepped mode */
    uint64_t (*real_ns)(void);                   /**< CLOCK_REALTIME, or epoch-from-seed + mono_ns in stepped mode */
    uint32_t (*tid)(void);                       /**< kernel thread id, or ordinal in stepped mode */
    uint32_t (*pid)(void);                       /**< process id, or 1 in stepped mode */
};

UMD_API const struct umd_sys *umd_sys(void);
/** The table of the C library, for a test's table that changes only some rows. */
UMD_API const struct umd_sys *umd_sys_default(void);
/** Tests: replaces the table (NULL: default). The caller keeps it alive. */
UMD_API void umd_sys_set(const struct umd_sys *table);

/* Stepped mode (DESIGN section 2): one host thread, virtual clocks, logical ids. Entered before the first device exists.
 * Counted: a program that wants virtual time before umdInit begins itself, with the same seed. It belongs to the thread that begins first. */
UMD_API void umd_sys_step_begin(uint64_t seed);
UMD_API void umd_sys_step_end(void);
UMD_API bool umd_sys_stepped(void);
/** Stepped, and begun by another thread than this one. */
UMD_API bool umd_sys_step_foreign(void);
/** The device that drives time in stepped mode says what time it is. */
UMD_API void umd_sys_step_set_clock(uint64_t ns);

/* Short forms. umd_alloc raises UMD_ERR_MEM_HOST_ALLOC_FAILED itself and returns NULL: callers return that code with UMD_HOP. */
#define umd_alloc(size_)                                                                                  \
    ({                                                                                                    \
        UMD_ALLOC_SITE;                                                                                   \
        umd_alloc_at((size_), &umd_alloc_site_);                                                          \
    })
/* Where an allocation may raise: listed by umd-log sites as others are, in module diag.sys. */
#define UMD_ALLOC_SITE                                                                                    \
    static umdLogSite umd_alloc_site_ __attribute__((section("umd_log_sites"), used)) = {                 \
        .module = &umd_sys_log_module, .func = __func__, .file = __FILE_NAME__, .line = __LINE__,          \
        .fmt = "size_B=%zu live_B=%" PRIu64 " errno=%d", .ceiling = UMD_LOG_CEILING, .kind = UMD_SITE_RAISE, \
        .code = UMD_ERR_MEM_HOST_ALLOC_FAILED,                                                            \
    }
extern UMD_API umdLogModule umd_sys_log_module;
UMD_API void *umd_alloc_at(size_t size, const umdLogSite *site);
UMD_API void umd_free(void *p);
/** Bytes and blocks of umd_alloc not freed yet: the leak check of tests. */
UMD_API void umd_alloc_live(uint64_t *bytes_out, uint64_t *blocks_out);

/* Locks with a rank: a thread takes them in rising rank only; debug builds abort with both names otherwise. */
struct umd_mutex {
    pthread_mutex_t m;
    const char *name;
    int rank;
    _Atomic(uint32_t) owner_tid;
};
/*
 * Ranks, low first:
 *   5 umd library, 10 umd device, 20 umd context, 30 umd stream, 32 umd event, 34 umd memory, 40 umd handle table, 44 umd device state
 *   45 winsys, 46 its worker
 *   50 kmd node, 54 kmd file, 58 kmd vm, 60 kmd vram, 61 kmd heartbeat, 62 kmd scheduler, 66 kmd fence, 68 kmd events
 *   70 model device, 72 reservations of its compute units, 73 their host threads, 74 model interrupt
 *   89 log control, 90 log registry, 91 crash handler, 92 log drain and sinks, 93 log flush, 94 record store, 95 log limit, 97 log levels,
 *   98 fault plan
 */
UMD_API void umd_mutex_init(struct umd_mutex *m, const char *name, int rank);
UMD_API void umd_mutex_fini(struct umd_mutex *m);
UMD_API void umd_mutex_lock(struct umd_mutex *m);
/** False: not to be had in that time. */
UMD_API bool umd_mutex_lock_for(struct umd_mutex *m, uint64_t timeout_ns);
UMD_API void umd_mutex_unlock(struct umd_mutex *m);
UMD_API void umd_mutex_assert_held(const struct umd_mutex *m);

struct umd_cond { pthread_cond_t c; };
UMD_API void umd_cond_init(struct umd_cond *c);   /**< CLOCK_MONOTONIC */
UMD_API void umd_cond_fini(struct umd_cond *c);
/** False on time-out. timeout_ns is relative host time; UINT64_MAX: for ever. Keeps rank bookkeeping right. */
UMD_API bool umd_cond_wait(struct umd_cond *c, struct umd_mutex *m, uint64_t timeout_ns);
UMD_API void umd_cond_broadcast(struct umd_cond *c);

#endif
