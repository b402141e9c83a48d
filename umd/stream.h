/* SPDX-License-Identifier: MIT */
/* stream.h - a queue and its timeline, the ring that its command buffers come from, and what is in flight. */
#ifndef UMD_STREAM_H
#define UMD_STREAM_H

#include "context.h"
#include "failures.h"

struct umd_kernel;

enum {
    UMD_RING_B = 512 * 1024,         /* command buffers, arguments and staging of a stream */
    UMD_STAGING_B = 128 * 1024,      /* most payload of one submission */
    UMD_JOBS = 256,                  /* submissions whose story is kept; power of two */
};

/** What was submitted at a point of the timeline. */
struct umd_job {
    uint64_t point, cmdbuf_id, job_id, launch;
    uint64_t ring_end;               /* ring position behind its memory */
    const char *kind;                /* "launch", "copy", "fill", "event", "wait" */
    char name[64];                   /* kernel */
    uint32_t grid[3], block[3], local_B;
};

struct umd_stream {
    struct umd_object obj;
    struct umd_context *ctx;
    umdStreamKind kind;
    int priority;
    uint32_t number;                 /* of the context's streams, for reports */
    uint32_t queue_id, syncobj;
    _Atomic(bool) dying, queue_gone;

    struct umd_mutex lock;           /* rank 30: submission */
    struct umd_bo ring;
    uint64_t ring_head, ring_tail;   /* free-running byte positions */
    uint64_t launches;
    struct umd_job jobs[UMD_JOBS];   /* by point; also read by error handling, under state_lock of the device when written */
    _Atomic(uint64_t) last_point;    /* submitted */
    _Atomic(uint64_t) done_point;    /* known to have ended */
    _Atomic(uint64_t) bad_point;     /* up to here not all ended well: the kernel driver is asked about each point */
    struct umd_failures failures;
    umdRecordId noticed;             /* the last cancellation that came as an event, or in place of one; under state_lock of the device */
};

UMD_MUST_CHECK umdStatus umd_stream_get(umdStream handle, struct umd_stream **stream_out);
/** Alive, context and device too: what starting work needs. */
UMD_MUST_CHECK umdStatus umd_stream_check(struct umd_stream *s);

/** A command buffer under construction; lives on the stack of the caller that holds the stream's lock. */
struct umd_cmd {
    struct umd_stream *stream;
    uint32_t *dw;                    /* host address of the next dword */
    uint64_t va;                     /* of the first */
    uint32_t count, limit;
    uint8_t *data;                   /* payload, 64-byte aligned, NULL: none */
    uint64_t data_va;
    uint64_t ring_end;
    uint64_t cmdbuf_id;
};
/** Takes memory from the ring, waiting for old work where needed. Starts with MARK and BARRIER. Lock held. */
UMD_MUST_CHECK umdStatus umd_cmd_begin(struct umd_stream *s, uint32_t dwords, uint32_t data_B, struct umd_cmd *cmd_out);
void umd_cmd_packet(struct umd_cmd *cmd, uint32_t opcode, const void *payload, uint32_t dwords);
/** Submits; fills point, ids and ring_end of job, and keeps it. wait: an in-sync or NULL. On failure nothing was queued. Lock held. */
UMD_MUST_CHECK umdStatus umd_cmd_submit(struct umd_cmd *cmd, struct umd_job *job, const struct drm_petrel_sync *wait);
/** A submission without commands. Lock held. */
UMD_MUST_CHECK umdStatus umd_stream_submit_wait(struct umd_stream *s, const struct drm_petrel_sync *wait);
/** Ends a submission: drops the lock; a refusal because of a failed job becomes that job's code. */
UMD_MUST_CHECK umdStatus umd_stream_unlock(struct umd_stream *s, umdStatus st);
/**
 * Waits for a point, no lock held. query: UMD_STATUS_NOT_READY in place of a time-out's code. Who waits for an event hears of that point, and
 * leaves what the stream has to tell to who waits for the stream.
 */
UMD_MUST_CHECK umdStatus umd_stream_wait(struct umd_stream *s, uint64_t point, uint64_t timeout_ns, bool query, bool for_event);
/** All up to the point is known to have ended, well or not. */
bool umd_stream_ended(struct umd_stream *s, uint64_t point);
/** As umd_stream_ended, and asks the kernel driver, without waiting. No lock held. */
bool umd_stream_poll(struct umd_stream *s, uint64_t point);
/** All up to the point is known to have ended well. */
bool umd_stream_ended_well(struct umd_stream *s, uint64_t point);
/** What has been submitted so far may not all end well. */
void umd_stream_note_bad(struct umd_stream *s);
/** The story of a job of the stream; false: too old or unknown. Any thread. */
bool umd_stream_find_job(struct umd_stream *s, uint64_t cmdbuf_id, uint64_t point, struct umd_job *out);
/** Waits for all submitted work, whatever becomes of it; records that come up are absorbed. */
void umd_stream_idle(struct umd_stream *s);

#endif
