/* SPDX-License-Identifier: MIT */
/* log_plugin.c - a library that logs and is unloaded; built twice, with texts of its own each time. */
#include <umd/umd_log.h>

UMD_LOG_MODULE("plugin." PLUGIN);

void plugin_log(int count);
__attribute__((visibility("default"))) void plugin_log(int count)
{
    for (int i = 0; i < count; i++)
        UMD_LOG(UMD_LOG_INFO, "plugin " PLUGIN " logs i=%d text=\"%s\"", i, "its own");
}
