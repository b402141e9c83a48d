/* SPDX-License-Identifier: MIT */
/* snapshot.h - the crash snapshot: what is written when the process dies of a signal, and what layers add to it (C9). */
#ifndef UMD_DIAG_SNAPSHOT_H
#define UMD_DIAG_SNAPSHOT_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <umd/umd_diag.h>

/*
 * The file DIR/crash.PID.TIME (TIME: seconds since 1970) is text: a first line with magic and version, then sections. A section begins
 * with "[name]" at the start of a line; lines are key=value figures, strings in double quotes with \xHH for what is not plain ASCII.
 * Readers skip sections and keys they do not know; a change that is more than an addition raises the version.
 *
 *   petrel-crash 1
 *   [crash]       one line: version pid tid thread program signal name code address real_ns mono_ns arch stepped
 *   [registers]   one line a register: name=0x...
 *   [backtrace]   one return address a line, by frame pointers, innermost first: raw, for when there is no unwinder
 *   [maps]        /proc/self/maps as it is
 *   [modules]     start= build_id= path=, one line for each ELF file that is mapped
 *   [stack]       "0xADDRESS: " and 32 bytes in hex a line from the stack pointer up; lines of zeros are left out
 *   [emergency]   the emergency ring, oldest first
 *   [calls]       tid= seq= start_ns= end_ns= code= name= fmt= args=: API calls, newest first; of the crashed thread, then of the others.
 *                 end_ns 0: under way. args: hex, encoded as umd_log_encode does, for umd_log_decode and fmt
 *   [log]         the newest log lines of all threads that still live, by thread, oldest first: fmt= and args= as above, or message=;
 *                 taken=0: the log's thread had not handed it to the sinks yet
 *   [state]       a line for each function of umd_state_register: its name, and its figures
 *   [end]         the snapshot is whole
 *
 * All of it is written with system calls and preallocated memory only; memory that may be bad is read by umd_peek. A crash while it is
 * written ends in the signal's default action, with the sections before it in the file.
 */
#define UMD_CRASH_MAGIC "petrel-crash 1"
#define UMD_CRASH_PREFIX "crash."
#define UMD_CRASH_KEEP 5u       /* snapshots kept in the directory, and at most so many of one process; other files there are left alone */
#define UMD_CRASH_STACK_B 65536u

/* ---- State of the layers ---- */

/*
 * fn writes a few key=value figures by the calls below. It runs in a signal handler while other threads go on: it takes no lock, allocates
 * nothing, and reads nothing that may have been freed. arg stays valid until the function is taken out.
 */
struct umd_state_out;
typedef void (*umd_state_fn)(struct umd_state_out *out, const void *arg);
/** name ("kmd.device") and fn outlive the entry. False: all places are taken; then the state is left out of snapshots. */
UMD_API bool umd_state_register(const char *name, umd_state_fn fn, const void *arg);
UMD_API void umd_state_unregister(umd_state_fn fn, const void *arg);
UMD_API void umd_state_u64(struct umd_state_out *out, const char *key, uint64_t value);
UMD_API void umd_state_i64(struct umd_state_out *out, const char *key, int64_t value);
UMD_API void umd_state_text(struct umd_state_out *out, const char *key, const char *value);
/** The lines of section [state] into buf, cut to size. Returns their length. */
UMD_API size_t umd_state_format(char *buf, size_t size);

/* ---- Faults that are none ---- */

/**
 * A routine that touches memory which may be bad has a handler that moves the thread on. Where the crash handler lies on top of it, that
 * one asks here first. fn returns true when it has changed the context so that the thread can go on. Async-signal-safe. It is asked for
 * as long as the process lives. False: all places are taken.
 */
typedef bool (*umd_fault_fixup)(int sig, const siginfo_t *info, void *ucontext);
UMD_API bool umd_fault_fixup_add(umd_fault_fixup fn);
/** The disposition is the crash handler's, which asks those functions. */
UMD_API bool umd_crash_handler_is(const struct sigaction *act);

#endif
