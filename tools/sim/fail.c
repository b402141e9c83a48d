/* SPDX-License-Identifier: MIT */
/* fail.c - errors of a sim: one line and an exit status, for the caller to print. */
#include <stdarg.h>
#include <stdio.h>

#include "sim.h"

bool sim_fail(struct sim_error *error_out, int status, const char *fmt, ...)
{
    va_list ap;

    error_out->status = status;
    va_start(ap, fmt);
    vsnprintf(error_out->text, sizeof(error_out->text), fmt, ap);
    va_end(ap);
    return false;
}
