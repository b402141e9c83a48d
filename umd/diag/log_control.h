/* SPDX-License-Identifier: MIT */
/* log_control.h - the control socket of a running process: its levels, its files, its state. */
#ifndef UMD_DIAG_LOG_CONTROL_H
#define UMD_DIAG_LOG_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#include <umd/umd_log.h>

/*
 * An abstract unix stream socket, named "\0petrel-control.PID"; abstract, so that nothing is left behind by kill -9. It is opened by
 * umdInit, unless UMD_CONTROL=off or the process is stepped, and closed with the last umdShutdown. The writer thread of the log serves it.
 * Only the process's own user is heard (SO_PEERCRED); the client checks the other side in the same way.
 *
 * Protocol: lines of at most 1023 bytes, each ended by \n. Each request gets one line: "ok", "ok TEXT", or "error TEXT".
 *   level SPEC       levels of all sinks, as umdLogSetLevels takes them ("umd.mem=trace")
 *   sink NAME SPEC   levels of one sink alone: console, text, json, binary, run, disaster, as in status
 *   console SPEC     as sink console SPEC
 *                    These answer with a JSON object: what each sink has now for the modules of SPEC, and by which rules; "ceiling"
 *                    is what the library was built with.
 *   reopen           files are opened anew at their paths, where they have been moved away
 *   flush            writes all that was logged so far
 *   status           one JSON object, see docs/logging.md
 * A client that sends more than a line's length without \n, or does not read its answers, is closed. At
 * most 8 at a time; one that was silent for 10 s makes room for another.
 */
#define UMD_CONTROL_LINE_B 1024u
#define UMD_CONTROL_ANSWER_B 65536u

/**
 * Sends one command to a process and waits for the answer: what follows "ok ", "" for a bare "ok", ended.
 * UMD_ERR_RES_FILE: nobody listens there, another user's process, or no answer in time (errno and reason in the record).
 * UMD_ERR_CONFIG_VALUE: the process refused; the reason is in the record, and in answer.
 */
UMD_API UMD_MUST_CHECK umdStatus umd_log_control(uint32_t pid, const char *command, uint32_t timeout_ms, char *answer, size_t size);

/** umdInit and the last umdShutdown. Opening may fail: then the process has no control socket, and one WARN says why. */
UMD_API void umd_log_control_open(void);
UMD_API void umd_log_control_close(void);

#endif
