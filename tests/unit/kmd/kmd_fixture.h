/* SPDX-License-Identifier: MIT */
/* kmd_fixture.h - a kernel driver under test: probed, opened, with shorthands for its ioctls. */
#ifndef KMD_FIXTURE_H
#define KMD_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <hw/petrel_packets.h>
#include <hw/petrel_pte.h>
#include <hw/petrel_regs.h>
#include <uapi/petrel_drm.h>

#include "fault_plan.h"
#include "kmd.h"
#include "record.h"
#include "sys.h"

#define KB 1024ull
#define MB (1024ull * KB)
#define VA_IB 0x10000000ull      /* where the fixture maps its command buffers */
#define VA_A 0x20000000ull
#define VA_B 0x40000000ull
#define FOREVER UINT64_MAX

struct kmd_env {
    const struct petrel_kmd_ops *ops;
    struct petrel_file *file;
    bool stepped;
    uint64_t live_blocks;        /* host allocations before the probe: the leak check */
    umdErrorDetail detail;       /* of the last failed Petrel ioctl */
    uint32_t vm, ib_bo;
    uint32_t *ib;                /* CPU view of the command buffers at VA_IB */
    uint32_t ib_dw;              /* dwords used */
};

/** Probes one device with a small VRAM; stepped or threaded as the state says. */
void env_start(struct kmd_env *env, bool stepped);
/** Closes, removes, and fails on anything left. */
void env_stop(struct kmd_env *env);
/** Loads the module, once. */
const struct petrel_kmd_ops *kmd_ops(void);

/** An ioctl with a record scope of its own. */
int raw(struct kmd_env *env, unsigned long cmd, void *arg);
/** A Petrel ioctl: sets error_ptr, so that env->detail has the record when it fails. */
int call(struct kmd_env *env, unsigned long cmd, void *arg);

uint32_t gem(struct kmd_env *env, uint64_t size_B, uint32_t flags);
int gem_close(struct kmd_env *env, uint32_t handle);
void *map(struct kmd_env *env, uint32_t handle, uint64_t size_B);
int bind(struct kmd_env *env, uint32_t op, uint32_t handle, uint64_t offset_B, uint64_t va, uint64_t size_B);
uint32_t queue(struct kmd_env *env, uint32_t engine, int32_t priority, uint64_t context_id);
int queue_destroy(struct kmd_env *env, uint32_t id);
struct drm_petrel_queue_query query(struct kmd_env *env, uint32_t id);
uint32_t syncobj(struct kmd_env *env, uint32_t flags);
struct drm_petrel_info info(struct kmd_env *env);

/* Command buffers: begin, packets, then exec of what was written since. */
uint64_t ib_begin(struct kmd_env *env);
void ib_fill(struct kmd_env *env, uint64_t va, uint64_t size_B, uint32_t pattern);
void ib_copy(struct kmd_env *env, uint64_t src, uint64_t dst, uint64_t size_B);
void ib_wait(struct kmd_env *env, uint64_t va, uint64_t ref);
void ib_packet(struct kmd_env *env, uint32_t dw);
/** Submits the buffer from `start` on: waits for (in, in_point) and signals (out, out_point); handle 0: none. 0 or -errno. */
int exec(struct kmd_env *env, uint32_t queue_id, uint64_t start, uint32_t in, uint64_t in_point, uint32_t out, uint64_t out_point);
/** Waits for a point; the whole answer in *wait_out (may be NULL). */
int wait_point(struct kmd_env *env, uint32_t sync, uint64_t point, uint64_t timeout_ns, struct drm_petrel_wait *wait_out);
/** Next event within timeout of host time; false: none. */
bool next_event(struct kmd_env *env, struct drm_petrel_event *event_out, uint64_t timeout_ns);
/** Skips to the next event of a type. */
bool next_event_of(struct kmd_env *env, uint32_t type, struct drm_petrel_event *event_out);
/** Figure of a record as a number; fails when absent. */
uint64_t figure(const umdErrorDetail *detail, const char *key);

int setup_threaded(void **state);
int setup_stepped(void **state);
int teardown(void **state);
#define THREADED(test_) { #test_ " threaded", test_, setup_threaded, teardown, NULL }
#define STEPPED(test_) { #test_ " stepped", test_, setup_stepped, teardown, NULL }

#endif
