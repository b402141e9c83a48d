/* SPDX-License-Identifier: MIT */
/* log_config.h - section [log] of the configuration file, and what the settings are about: the sinks. */
#ifndef UMD_LOG_CONFIG_H
#define UMD_LOG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <umd/umd_diag.h>
#include <umd/umd_log.h>

struct umd_log_config_entry {
    const char *section;    /* "log" is the library's; the entries of others are handed out for tools that look for what was meant for it */
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

/*
 * Set by a tool that looks at what others log, before the library's constructors run (an executable's pre-initialiser can): the log then takes no
 * settings, neither from a file nor from the environment, so that the tool never opens, rotates or writes what it looks at.
 */
extern UMD_API bool umd_log_settings_off;

/* The i-th setting of the log, from 0; NULL: there are no more. The rows are in log_settings.c. */
UMD_API const char *umd_log_setting_at(uint32_t i);
/*
 * What the library would make of a setting, by the code that takes it, without taking it: true, or false and why it would be ignored. of_file: it
 * stands in the configuration file, where not all may.
 */
UMD_API bool umd_log_setting_check(const char *key, const char *value, bool of_file, char *reason, size_t size);

/* What a sink goes by, for tools that explain settings; the rows are in log_sinks.c. Texts are static. */
struct umd_log_sink_facts {
    const char *name;                   /* as in the status of a process */
    const char *path_key, *level_key;   /* settings; NULL: none */
    umdLogLevel level;                  /* its default */
    bool own_levels;                    /* UMD_LOG_LEVEL does not touch it */
    const char *rules;                  /* its default by module, NULL: level alone */
    bool console;
};
/* The i-th sink, from 0; false: there are no more. The console is the first. */
UMD_API bool umd_log_sink_facts(uint32_t i, struct umd_log_sink_facts *out);

#endif
