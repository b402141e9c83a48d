/* SPDX-License-Identifier: MIT */
/* log_config.h - section [log] of the configuration file. */
#ifndef UMD_LOG_CONFIG_H
#define UMD_LOG_CONFIG_H

#include <umd/umd_diag.h>

struct umd_log_config_entry {
    const char *key, *value;
    const char *file;
    unsigned line;
    const char *problem;    /* NULL, or what is wrong with this line; the rest of the file holds */
};

/*
 * Reads $PETREL_CONFIG if it is set ("" for none), else the first that is there of $XDG_CONFIG_HOME/petrel/petrel.ini
 * (~/.config without that variable) and /etc/petrel.ini.
 */
UMD_API void umd_log_config_read(void (*each)(void *arg, const struct umd_log_config_entry *e), void *arg);

#endif
