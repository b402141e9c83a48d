/* SPDX-License-Identifier: MIT */
/* umd-tool-kernels.c - where the code objects are that come with a tool. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "umd-tool.h"

bool tool_kernel_path(const char *name, char *out, uint32_t out_B)
{
    char exe[512];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

    exe[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(exe, '/');
    if (slash)
        *slash = '\0';
    /* Beside the program in a build tree, from where the program is in an installation that may have been moved, else where it was to be. */
    const char *const from[] = { "", TOOL_KERNEL_FROM_BIN, TOOL_KERNEL_DIR };
    size_t used = 0;
    for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
        snprintf(out, out_B, "%s%s%s/%s", from[i][0] == '/' ? "" : exe, from[i][0] && from[i][0] != '/' ? "/" : "", from[i], name);
        if (access(out, R_OK) == 0)
            return true;
    }
    for (size_t i = 0; i < sizeof(from) / sizeof(from[0]) && used < out_B; i++)
        used += (size_t)snprintf(out + used, out_B - used, "%s%s%s%s", i ? ", " : "", from[i][0] == '/' ? "" : exe,
                                 from[i][0] && from[i][0] != '/' ? "/" : "", from[i]);
    return false;
}
