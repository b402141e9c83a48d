/* SPDX-License-Identifier: MIT */
/* input.h - opens the files that a run reads. */
#ifndef TRAIN_INPUT_H
#define TRAIN_INPUT_H

#include <stdio.h>

/*
 * A regular file to read, which the caller closes. NULL: *why_out says why not, "it is a ..." or as strerror does, and is valid until the
 * thread's next call. Never waits: a pipe without a writer is refused as any pipe is.
 */
FILE *input_open(const char *path, const char **why_out);

#endif
