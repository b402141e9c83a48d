/* SPDX-License-Identifier: MIT */
/* export.h - logs in the formats of other tools. */
#ifndef UMD_LOG_EXPORT_H
#define UMD_LOG_EXPORT_H

#include "filter.h"
#include "set.h"

/* Each reads the set to its end and writes to standard output; false: no memory. */
bool export_chrome(struct log_set *set, const struct filter *filter);
bool export_otlp(struct log_set *set, const struct filter *filter);

#endif
