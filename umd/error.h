/* SPDX-License-Identifier: MIT */
/* error.h - from the kernel driver's events and fence errors to what the API returns. */
#ifndef UMD_ERROR_H
#define UMD_ERROR_H

#include <uapi/petrel_drm.h>
#include <umd/umd.h>

#include "record.h"

struct umd_context;
struct umd_device;
struct umd_stream;

/** Runs a clean-up that may meet errors of its own, without touching the record that the failed call has open. */
#define umd_error_keep(st_, cleanup_) do { (void)(st_); umd_record_scope_begin(); cleanup_; umd_record_scope_end(); } while (0)

/** Makes a kept record the thread's open one. Value: its code. */
UMD_MUST_CHECK umdStatus umd_error_deliver(const umdErrorDetail *detail);
/** An event of the device file: completes its record, marks what failed, calls back. No lock held. */
void umd_error_event(struct umd_device *dev, const struct drm_petrel_event *event);
/** A fence of the stream failed; its record is the thread's open one. Value: what the call returns. */
UMD_MUST_CHECK umdStatus umd_error_fence(struct umd_stream *stream, const struct drm_petrel_wait *wait, umdStatus st, bool for_event);
/** A wait failed, its record is the thread's open one, and the device is lost. Value: what the call returns. */
UMD_MUST_CHECK umdStatus umd_error_lost(struct umd_stream *stream, const struct drm_petrel_wait *wait, umdStatus st);
/**
 * The kernel driver refused work because the queue is banned or cancelled; its record is the thread's open one. The failure that did it may
 * still be on its way: the call that meets it returns the job's own code. No lock held.
 */
UMD_MUST_CHECK umdStatus umd_error_refused(struct umd_stream *stream, umdStatus st);
/**
 * The kernel driver refused work because the queue is cancelled; its record is the thread's open one. True: a call has told of that
 * cancellation, *resume_out is what the submission has to name, and the record is at its end.
 */
bool umd_error_resumes(struct umd_stream *stream, umdStatus st, umdRecordId *resume_out);
/** How many failures of the stream calls have returned. */
uint32_t umd_error_told_count(struct umd_stream *stream);
/** The call is about to return a cancellation, and none has been told since the count. */
bool umd_error_told_before(struct umd_stream *stream, umdStatus st, uint32_t count);
/** A wait timed out. Value: the code of the stage, raised unless the job makes progress. */
UMD_MUST_CHECK umdStatus umd_error_timeout(struct umd_stream *stream, const struct drm_petrel_wait *wait, uint64_t timeout_ns);
/** The stream's unread error, taken; UMD_SUCCESS when there is none. */
UMD_MUST_CHECK umdStatus umd_error_take_unread(struct umd_stream *stream);

#endif
