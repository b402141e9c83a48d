/* SPDX-License-Identifier: MIT */
/* env.c - takes the library's settings out of the environment before the library's constructors run, and keeps them to be looked at. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <umd/umd_log.h>

#include "emergency.h"
#include "env.h"
#include "umd-tool.h"

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
        bool take = (begins(e, "UMD_") || begins(e, "PETREL_") || begins(e, "TRACEPARENT=")) && kept_count < KEPT_MAX;
        bool spare = begins(e, "_=") || begins(e, "OLDPWD=") || begins(e, "SHLVL=") || begins(e, "LS_COLORS=");
        if (take)
            kept[kept_count++] = e;
        if ((take || spare) && !placed) {
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

int env_start(void)
{
    const char *state = env_before("PETREL_STATE_DIR");

    (void)umd_emergency_set_mode("off");
    (void)setenv("UMD_CONTROL", "off", 1);
    if (state)
        (void)setenv("PETREL_STATE_DIR", state, 1); /* where to look, not what to do */
    if (!umdFailed(umdLogSetConsole("off"))) /* what is wrong is told by the tool itself */
        return EXIT_DONE;
    tool_say("the log cannot be set up");
    return EXIT_ENVIRONMENT;
}

const char *env_log(void)
{
    static const char *const variables[] = { "UMD_LOG_BINARY", "UMD_LOG_FILE", "UMD_LOG_JSON" };

    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *path = env_before(variables[i]);
        if (path && *path && !strchr(path, '%') && access(path, F_OK) == 0)
            return path;
    }
    return NULL;
}
