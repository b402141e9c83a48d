/* SPDX-License-Identifier: MIT */
/* exec_base.c - the handlers for any x86-64. */
#include <emmintrin.h>
#include <math.h>
#include <string.h>

#include "cu_priv.h"

#define CU_EXEC_AVX512 0
#define CU_EXEC_TABLE cu_exec_base
#include "exec_core.h"
#include "exec_fp.h"
#include "exec_half.h"
#include "exec_int.h"
#include "exec_mem.h"
#include "exec_sys.h"
#include "exec_table.h"
