/* SPDX-License-Identifier: MIT */
/* settings.h - what the settings of an environment ask the log for, whoever's environment it is. */
#ifndef UMD_LOG_SETTINGS_H
#define UMD_LOG_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log_config.h"

/* An environment: this tool's as it was found, or that of another process. */
struct settings {
    char *block;            /* "NAME=value\0..." of /proc/PID/environ; NULL: this tool's */
    size_t block_B;
    char cwd[4096];         /* what relative paths start from */
    uint32_t pid;           /* %p becomes this; 0: not known yet */
    struct setting_of_file { char *key, *value, *file; unsigned line; char *problem; } config[256]; /* of the configuration file */
    uint32_t config_count;
};

void settings_own(struct settings *s);
/* 0 or errno. */
int settings_of(struct settings *s, uint32_t pid);
void settings_finish(struct settings *s);
/* Of the environment, else of the configuration file; NULL: not set. */
const char *settings_get(const struct settings *s, const char *name);
/* Of the environment alone. */
const char *settings_of_environment(const struct settings *s, const char *name);
/* The i-th "NAME=value" of the environment, of this tool's only what the library might read; NULL: there are no more. */
const char *settings_entry_at(const struct settings *s, uint32_t i);
/* Where it is set: "UMD_LOG_LEVEL", or "UMD_LOG_LEVEL (/etc/petrel.ini, line 3)". The text is good until the next call. */
const char *settings_where(const struct settings *s, const char *name);

/* Sinks as the library has them, by number; the console is the first, the rest are files. NULL: there are no more. */
enum { SINK_CONSOLE, SINK_FILES };
const struct umd_log_sink_facts *sink_facts(int sink);

/* Level of a module at a sink, of its own levels and those for all (NULL: not set); *which_out: 0 the default, 1 its own, 2 for all. */
int sink_level(int sink, const char *own, const char *all, const char *module, int *which_out);
/* The same of these settings, and which setting says so ("the default" if none). */
int settings_level(const struct settings *s, int sink, const char *module, const char **by_out);
/* The path that a setting names, %p replaced where the pid is known, and absolute; false: none is asked for, or it is too long. */
bool settings_path(const struct settings *s, const char *key, char *out, size_t size);
/* A specification of levels that the library would not take: where the mistake is. */
bool settings_levels_valid(const char *spec, size_t *position_out);

#endif
