/* SPDX-License-Identifier: MIT */
/* exec_avx512_timed.c - exec_avx512.h with timing. */
#define CU_EXEC_TIMED 1
#define CU_EXEC_NAME cu_exec_avx512_timed
#include "exec_avx512.h"
