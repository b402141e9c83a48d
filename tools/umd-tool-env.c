/* SPDX-License-Identifier: MIT */
/* umd-tool-env.c - takes the library's settings out of a tool's environment before the library's constructors run, and keeps them. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "log_config.h"
#include "umd-tool-env.h"

static char **kept;             /* not ended by NULL */
static uint32_t kept_count;

static __attribute__((no_sanitize("address", "undefined", "thread"), always_inline)) inline bool begins(const char *text, const char *with)
{
    while (*with && *text == *with)
        text++, with++;
    return *with == '\0';
}

/*
 * Of the executable's pre-initialisers, which run before any library's constructor, hence before sanitizers are up and before environ
 * may be relied on: only the array that the kernel built is touched. What is taken out moves behind its new end, in its order, so there is
 * room for all of it; and the library is told to read no configuration file either.
 */
__attribute__((no_sanitize("address", "undefined", "thread"), used)) static void take_settings(int argc, char **argv, char **envp)
{
    char *volatile *env = envp; /* no compiler makes a call of memmove of it, which a sanitizer would have to be ready for */
    uint32_t left = 0, n = 0;

    (void)argc;
    (void)argv;
    for (; env[n]; n++) {
        char *e = env[n];
        bool take = tool_env == TOOL_ENV_TAKE_FILES
            ? begins(e, "UMD_EMERGENCY_FILE=") || begins(e, "UMD_CRASH_DIR=")
            : begins(e, "UMD_") || begins(e, "PETREL_") || begins(e, "TRACEPARENT=");
        if (take)
            continue;
        for (uint32_t i = n; i > left; i--)
            env[i] = env[i - 1];
        env[left++] = e;
    }
    for (uint32_t i = n; i > left; i--)
        env[i] = env[i - 1];
    env[left] = NULL;
    kept = envp + left + 1;
    kept_count = n - left;
    umd_log_settings_off = tool_env == TOOL_ENV_TAKE_ALL;
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
        ok = putenv(kept[i]) == 0 && ok;
    return ok;
}
