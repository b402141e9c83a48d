/* SPDX-License-Identifier: MIT */
/* codes.h - codes by the names that people type. */
#ifndef UMD_LOG_CODES_H
#define UMD_LOG_CODES_H

#include "status.h"

/* By name in any case, with or without UMD_ERR_, UMD_STATUS_ or class where that is one code's only, '-' for '_'. NULL: there is none. */
const struct umd_status_info *code_by_name(const char *word);
/* One line that there is no such code, and which was probably meant. Value: EXIT_USAGE. */
int code_unknown(const char *word);

#endif
