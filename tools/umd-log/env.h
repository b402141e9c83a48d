/* SPDX-License-Identifier: MIT */
/* env.h - the start of a tool that looks at what others have written, and the log that the environment names. */
#ifndef UMD_LOG_ENV_H
#define UMD_LOG_ENV_H

#include "../umd-tool-env.h"

/* First thing: the library keeps its emergency ring and its console to itself, and finds the files of others. EXIT_DONE, or it is told. */
int env_start(void);
/* The log that UMD_LOG_BINARY, UMD_LOG_FILE or UMD_LOG_JSON names, the first that is set and there; NULL: none. */
const char *env_log(void);

#endif
