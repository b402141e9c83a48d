/* SPDX-License-Identifier: MIT */
/* libm_cases.h - calls of libm that kernels and the host make alike. */
#ifndef TEST_LIBM_CASES_H
#define TEST_LIBM_CASES_H

#include <stdint.h>

struct libm_args { uint64_t x, y, out; };

/* CASE(name, type, call, units in the last place that it may be off): picolibc's powf is
 * worse than the others (41 off for 0.8627338 to the 320.2012), with the same result in qemu-riscv64. */
#define LIBM_CASES(CASE)                                                                                    \
    CASE(sinf, float, sinf(x), 2) CASE(cosf, float, cosf(x), 2) CASE(tanf, float, tanf(x), 2)               \
    CASE(expf, float, expf(x), 2) CASE(logf, float, logf(x), 2) CASE(powf, float, powf(x, y), 64)           \
    CASE(atan2f, float, atan2f(x, y), 2) CASE(fmodf, float, fmodf(x, y), 0) CASE(cbrtf, float, cbrtf(x), 2) \
    CASE(sin, double, sin(x), 2) CASE(exp, double, exp(x), 2) CASE(log, double, log(x), 2)                  \
    CASE(pow, double, pow(x, y), 2) CASE(floor, double, floor(x), 0) CASE(hypot, double, hypot(x, y), 2)

#endif
