/* SPDX-License-Identifier: MIT */
/* exec_base_timed.c - exec_base.h with timing. */
#define CU_EXEC_TIMED 1
#define CU_EXEC_NAME cu_exec_base_timed
#include "exec_base.h"
