/* SPDX-License-Identifier: MIT */
/* umd-tool-env.c - takes the library's settings out of a tool's environment before the library's constructors run, and keeps them. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "umd-tool-env.h"

#define KEPT_MAX 64u

static const char *kept[KEPT_MAX];
static uint32_t kept_count;

static __attribute__((no_sanitize("address", "undefined", "thread"), always_inline)) inline bool begins(const char *text, const char *with)
{
    while (*with && *text == *with)
        text++, with++;
    return *with == '\0';
}

/*
 * Of the executable's pre-initialisers, which run before any library's constructor, hence before sanitizers are up and before environ
 * may be relied on: only the array that the kernel built is touched. It cannot grow, so the word that keeps the library from reading a
 * configuration file takes the place of one that nobody needs here.
 */
__attribute__((no_sanitize("address", "undefined", "thread"), used)) static void take_settings(int argc, char **argv, char **envp)
{
    static char no_file[] = "PETREL_CONFIG=";
    bool placed = false;
    char **to = envp;

    for (char **from = envp; *from; from++) {
        char *e = *from;
        bool take = tool_env == TOOL_ENV_TAKE_FILES
            ? begins(e, "UMD_EMERGENCY_FILE=") || begins(e, "UMD_CRASH_DIR=")
            : begins(e, "UMD_") || begins(e, "PETREL_") || begins(e, "TRACEPARENT=");
        take = take && kept_count < KEPT_MAX;
        bool spare = tool_env == TOOL_ENV_TAKE_ALL && (begins(e, "_=") || begins(e, "OLDPWD=") || begins(e, "SHLVL=") || begins(e, "LS_COLORS="));
        if (take)
            kept[kept_count++] = e;
        if ((take || spare) && tool_env == TOOL_ENV_TAKE_ALL && !placed) {
            *to++ = no_file;
            placed = true;
        } else if (!take) {
            *to++ = e;
        }
    }
    *to = NULL;
}
__attribute__((section(".preinit_array"), used)) static void (*const take_settings_first)(int, char **, char **) = take_settings;

const char *env_before(const char *name)
{
    size_t n = strlen(name);

    for (uint32_t i = 0; i < kept_count; i++) {
        if (strncmp(kept[i], name, n) == 0 && kept[i][n] == '=')
            return kept[i] + n + 1;
    }
    return NULL;
}

const char *env_before_at(uint32_t i) { return i < kept_count ? kept[i] : NULL; }

bool env_give_back(void)
{
    bool ok = unsetenv("PETREL_CONFIG") == 0 && unsetenv("UMD_CONTROL") == 0; /* as the tool's start has set them */

    for (uint32_t i = 0; i < kept_count; i++)
        ok = putenv((char *)kept[i]) == 0 && ok;
    return ok;
}
