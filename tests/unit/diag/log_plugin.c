/* SPDX-License-Identifier: MIT */
/* log_plugin.c - a library that logs and is unloaded; built twice, with texts of its own each time. */
#include <stdlib.h>

#include <umd/umd_log.h>

UMD_LOG_MODULE("plugin." PLUGIN);

void plugin_log(int count);
__attribute__((visibility("default"))) void plugin_log(int count)
{
    for (int i = 0; i < count; i++)
        UMD_LOG(UMD_LOG_INFO, "plugin " PLUGIN " logs i=%d text=\"%s\"", i, "its own");
}

/* What a test wants to be called while the loader is at work: the address of a function. */
__attribute__((constructor)) static void loaded(void)
{
    const char *call = getenv("PLUGIN_CALL");

    if (call)
        ((void (*)(void))(uintptr_t)strtoull(call, NULL, 16))();
}
