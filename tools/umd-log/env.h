/* SPDX-License-Identifier: MIT */
/* env.h - the environment as it was found, by a tool that looks at the library's settings and must not obey them. */
#ifndef UMD_LOG_ENV_H
#define UMD_LOG_ENV_H

#include <stdint.h>

/*
 * The library that is looked at is also linked into this tool. So that it writes no log, no emergency file and opens no socket here, its
 * variables are taken out of the environment before it starts. This is what they were; NULL: not set.
 */
const char *env_before(const char *name);
/* The i-th "NAME=value" that was taken out; NULL: no more. */
const char *env_before_at(uint32_t i);
/* First thing: the library keeps its emergency ring and its console to itself, and finds the files of others. EXIT_DONE, or it is told. */
int env_start(void);
/* The log that UMD_LOG_BINARY, UMD_LOG_FILE or UMD_LOG_JSON names, the first that is set and there; NULL: none. */
const char *env_log(void);

#endif
