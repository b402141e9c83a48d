/* SPDX-License-Identifier: MIT */
/* env.c - what a tool that looks at others does first with the library in it, and the log that the environment names. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <umd/umd_log.h>

#include "emergency.h"
#include "env.h"
#include "umd-tool.h"

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
