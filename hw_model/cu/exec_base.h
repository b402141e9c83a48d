/* SPDX-License-Identifier: MIT */
/* exec_base.h - the handlers for any x86-64. Compiled with CU_EXEC_TIMED 0 and 1. */
#include <emmintrin.h>
#include <math.h>
#include <string.h>

#include "cu_priv.h"

#define CU_EXEC_AVX512 0
#include "exec_core.h"
#include "exec_fp.h"
#include "exec_half.h"
#include "exec_int.h"
#include "exec_mem.h"
#include "exec_sys.h"
#include "exec_warp.h"
#include "exec_table.h"
