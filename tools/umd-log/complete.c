/* SPDX-License-Identifier: MIT */
/* complete.c - what the shell may offer for the options that many commands of umd-log have. */
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "emergency.h"
#include "libraries.h"
#include "settings.h"
#include "sites.h"
#include "status.h"

static void offer_codes(const struct tool_at *at)
{
    static const char *const ranges[] = { "param", "resource", "exec", "hw", "init", "internal", NULL };

    for (uint32_t i = 0; i < umd_status_count(); i++)
        tool_offer_part(at, umd_status_at(i)->name);
    tool_offer_all(at, ranges);
}

/* Those that have call sites. */
static void offer_modules(const struct tool_at *at)
{
    struct library_list libraries = { 0 };
    struct site_list sites = { 0 };
    int err;

    libraries_own(&libraries);
    for (uint32_t i = 0; i < libraries.count; i++)
        (void)sites_read(libraries.path[i], &sites, &err);
    for (uint32_t i = 0; i < sites.count; i++) {
        uint32_t before = 0;
        while (before < i && strcmp(sites.site[before].module, sites.site[i].module) != 0)
            before++;
        if (before == i)
            tool_offer_part(at, sites.site[i].module);
    }
    sites_finish(&sites);
    libraries_finish(&libraries);
}

static void offer_sinks(const struct tool_at *at)
{
    for (int i = 0; sink_facts(i); i++)
        tool_offer(at, sink_facts(i)->name);
}

/* Processes that use the driver have an emergency file while they live. */
static void offer_processes(const struct tool_at *at)
{
    static struct umd_emergency_found found[64];
    uint32_t count = umd_emergency_find(0, found, 64);
    char text[16];

    for (uint32_t i = 0; i < count; i++) {
        snprintf(text, sizeof(text), "%u", found[i].pid);
        if (found[i].alive)
            tool_offer(at, text);
    }
}

bool command_complete(const struct tool_at *at)
{
    if (!at->option)
        return false;
    if (strcmp(at->option, "code") == 0)
        offer_codes(at);
    else if (strcmp(at->option, "module") == 0)
        offer_modules(at);
    else if (strcmp(at->option, "sink") == 0)
        offer_sinks(at);
    else if (strcmp(at->option, "pid") == 0 || strcmp(at->option, "process") == 0)
        offer_processes(at);
    else
        return false;
    return true;
}

bool command_complete_spec(const struct tool_at *at)
{
    if (at->option || at->count)
        return command_complete(at) || !at->option;
    tool_offer_levels(at);
    offer_modules(at);
    return true;
}

bool command_complete_none(const struct tool_at *at) { return command_complete(at) || !at->option; }
