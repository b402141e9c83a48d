/* SPDX-License-Identifier: MIT */
/* exec_avx512.c - exec_avx512.h without timing. */
#define CU_EXEC_TIMED 0
#define CU_EXEC_NAME cu_exec_avx512
#include "exec_avx512.h"
