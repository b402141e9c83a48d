/* SPDX-License-Identifier: MIT */
/* case_args.h - the argument struct of umd-case's kernels, for host and device alike. */
#ifndef CASE_ARGS_H
#define CASE_ARGS_H

#include <stdint.h>

struct case_args {
    uint64_t dst;   /* device address */
    uint32_t a, n;
};

#endif
