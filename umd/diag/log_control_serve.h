/* SPDX-License-Identifier: MIT */
/* log_control_serve.h - the control socket as the writer thread sees it. */
#ifndef UMD_LOG_CONTROL_SERVE_H
#define UMD_LOG_CONTROL_SERVE_H

#include <stdbool.h>

#include "log_out.h"

/* Readable when there is something to serve; -1: no control socket. */
int umd_log_control_fd(void);
/* Serves what is there, waits for nothing. Without the drain lock. */
void umd_log_control_serve(void);
/* No descriptor was left for a client: to be served again in a second, though nothing becomes readable. */
bool umd_log_control_paused(void);
void umd_log_control_atfork(int stage);

/* log_status.c: the state of the log as one JSON object. */
void umd_log_status(struct umd_out *o);
/* What the modules of a specification have now, sink by sink, and by which rules. */
void umd_log_status_levels(struct umd_out *o, const char *spec);

#endif
