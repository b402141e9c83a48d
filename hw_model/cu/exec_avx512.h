/* SPDX-License-Identifier: MIT */
/* exec_avx512.h - the handlers for hosts with AVX-512 (F, DQ, BW, VL); chosen at run time. Compiled with CU_EXEC_TIMED 0 and 1. */
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "cu_priv.h"

#define CU_EXEC_AVX512 1
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,bmi,bmi2,lzcnt,popcnt,prfchw"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma,bmi,bmi2,lzcnt,popcnt,prfchw,prefer-vector-width=512")
#endif
#include "exec_core.h"
#include "exec_fp.h"
#include "exec_half.h"
#include "exec_int.h"
#include "exec_mem.h"
#include "exec_sys.h"
#include "exec_warp.h"
#include "exec_table.h"
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
