/* SPDX-License-Identifier: MIT */
/* diag_fixture.h - scratch directory, files and child processes for the tests of umd/diag. */
#ifndef DIAG_FIXTURE_H
#define DIAG_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault_plan.h"
#include "record.h"
#include "sys.h"

/* Path of a file in a directory of this process; four may be in use at a time. */
const char *scratch(const char *name);
void scratch_remove(void);
/* The same, into a place of the caller's. Returns it. */
const char *path_of(char *to, size_t size, const char *name);
/* Whole file, ended; "" if it is not there. Static, two at a time. */
const char *slurp(const char *path);
/* As slurp, when all that was logged is there. */
const char *logged(const char *path);
unsigned count_of(const char *text, const char *part);
/* The log's writer stands in its sink, as on a dead network file system, until it may go on; its first line there is a WARN of umd.test. */
void writer_stop(void);
void writer_go(void);
/* Runs fn in a child; its stderr comes back in text. Returns the wait status. */
int in_child(void (*fn)(void *), void *arg, char *text, size_t size);
/* The test's own binary again as a fresh process, which runs the `run` of that name (see run_program); env is "A=1 B=2". As in_child. */
int in_program(const char *name, const char *env, char *text, size_t size);
struct run { const char *name; int (*fn)(void); };
/* First thing in main: where the process is such a program, runs it; *status_out is then what main returns. */
bool run_program(int argc, char **argv, const struct run *runs, size_t count, int *status_out);
umdErrorDetail last_error(void);
umd_record_counts counts_now(void);

#endif
