/* SPDX-License-Identifier: MIT */
/* exec_base.c - exec_base.h without timing. */
#define CU_EXEC_TIMED 0
#define CU_EXEC_NAME cu_exec_base
#include "exec_base.h"
