/* SPDX-License-Identifier: MIT */
/* options.h - the command line of umd-train. */
#ifndef TRAIN_OPTIONS_H
#define TRAIN_OPTIONS_H

#include "train.h"

enum options_result {
    OPTIONS_RUN,   /**< go on */
    OPTIONS_DONE,  /**< help or version was shown */
    OPTIONS_BAD,   /**< one line was written to stderr */
};

/** Fills o. Strings of o live as long as the process. */
enum options_result options_parse(int argc, const char **argv, struct train_options *o, const struct workload **workload_out);

#endif
