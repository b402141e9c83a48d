/* SPDX-License-Identifier: MIT */
/* umd-tool-env.h - the environment as it was found, by a tool that looks at what others do and must not obey their settings. */
#ifndef UMD_TOOL_ENV_H
#define UMD_TOOL_ENV_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The library that is looked at is also linked into the tool. Its constructors would open the log, make the emergency file, and put aside that
 * of the process that is to be looked at. So a tool that links umd-tool-env.c has the variables taken out before the library starts:
 */
enum tool_env {
    TOOL_ENV_TAKE_ALL,          /* all of the library's; no configuration file is read either */
    TOOL_ENV_TAKE_FILES,        /* UMD_EMERGENCY_FILE and UMD_CRASH_DIR, which are the program's; the others are heeded */
};
/* The tool says which. */
extern const enum tool_env tool_env;

/* What it was; NULL: not set, or not taken out. */
const char *env_before(const char *name);
/* The i-th "NAME=value" that was taken out; NULL: no more. */
const char *env_before_at(uint32_t i);
/* For a program that this one starts: the environment as it was. False: no memory. */
bool env_give_back(void);

#endif
