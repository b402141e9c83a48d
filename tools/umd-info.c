/* SPDX-License-Identifier: MIT */
/* umd-info.c - the devices and their facts. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <umd/umd.h>
#include "umd-text.h"
#include "umd-tool-env.h"
#include "umd-tool.h"

static int fail(umdStatus st, const char *doing)
{
    umdErrorDetail d = { .size_B = sizeof(d) };
    const char *figures = umdGetLastErrorDetail(&d) == UMD_SUCCESS ? d.figures : "";
    tool_say("%s: %s (%s) %s %s", doing, umdStatusName(st), figures, umdStatusString(st), umdStatusTodo(st));
    return EXIT_ENVIRONMENT;
}

static void uuid_text(const umdDeviceInfo *d, char out[33])
{
    for (int i = 0; i < 16; i++)
        snprintf(out + 2 * i, 3, "%02x", d->uuid[i]);
}

static void print_text(uint32_t index, const umdDeviceInfo *d)
{
    char uuid[33];

    uuid_text(d, uuid);
    printf("device %u: %s, uuid %s, %s\n", index, d->name, uuid, umdStatusName(d->lost_code));
    printf("  compute    %u units, %u warps each, %.0f MHz, workgroups of at most %u, %u KiB local, %u KiB private\n", d->cu_count,
           d->warps_per_cu, d->clock_khz / 1000.0, d->max_block, d->local_B / 1024, d->private_B / 1024);
    printf("  memory     %" PRIu64 " MiB, %" PRIu64 " MiB free, largest block %" PRIu64 " MiB\n", d->vram_size_B >> 20, d->vram_free_B >> 20,
           d->vram_largest_free_B >> 20);
    printf("  firmware   %u.%u.%u, hardware revision %u\n", d->fw_version >> 16, d->fw_version >> 8 & 0xff, d->fw_version & 0xff, d->hw_revision);
    printf("  watchdog   %.1f ms of device time, %" PRIu64 " resets\n", (double)d->watchdog_ns * 1e-6, d->reset_count);
}

static struct json_object *to_json(uint32_t index, const umdDeviceInfo *d)
{
    struct json_object *o = json_object_new_object();
    char uuid[33];

    uuid_text(d, uuid);
    json_add_number(o, "index", index);
    json_add_text(o, "name", d->name);
    json_add_text(o, "uuid", uuid);
    json_add_text(o, "status", umdStatusName(d->lost_code));
    json_add_number(o, "cu_count", d->cu_count);
    json_add_number(o, "warps_per_cu", d->warps_per_cu);
    json_add_number(o, "local_B", d->local_B);
    json_add_number(o, "private_B", d->private_B);
    json_add_number(o, "clock_khz", d->clock_khz);
    json_add_number(o, "max_block", d->max_block);
    json_object_object_add(o, "vram_size_B", json_object_new_uint64(d->vram_size_B));
    json_object_object_add(o, "vram_free_B", json_object_new_uint64(d->vram_free_B));
    json_object_object_add(o, "vram_largest_free_B", json_object_new_uint64(d->vram_largest_free_B));
    json_add_number(o, "fw_version", d->fw_version);
    json_add_number(o, "hw_revision", d->hw_revision);
    json_object_object_add(o, "watchdog_ns", json_object_new_uint64(d->watchdog_ns));
    json_object_object_add(o, "reset_count", json_object_new_uint64(d->reset_count));
    return o;
}

static int show(bool json)
{
    struct json_object *all = json_object_new_array();
    uint32_t count = 0;
    int status = EXIT_DONE;
    umdStatus st = umdDeviceGetCount(&count);

    for (uint32_t i = 0; i < count && !umdFailed(st); i++) {
        umdDevice device;
        umdDeviceInfo info = { .size_B = sizeof(info) };
        st = umdDeviceGet(i, &device);
        if (!umdFailed(st))
            st = umdDeviceGetInfo(device, &info);
        if (!umdFailed(st) && json)
            json_object_array_add(all, to_json(i, &info));
        else if (!umdFailed(st))
            print_text(i, &info);
    }
    if (umdFailed(st))
        status = fail(st, "asking the devices");
    else if (json)
        json_put_out(all);
    json_object_put(all);
    return status;
}

static int run(const struct tool_line *line, void *json)
{
    if (line->count)
        return tool_usage("it takes no words");
    umdStatus st = umdInit(NULL);
    int status = umdFailed(st) ? fail(st, "bringing the stack up") : show(*(int *)json);

    if (!umdFailed(st) && umdFailed(umdShutdown()))
        status = EXIT_ENVIRONMENT;
    return status;
}

static bool complete(const struct tool_at *at) { return true; } /* it takes no words */

static const struct tool info = {
    .words = "[OPTION...]", .text = "shows the devices and their facts", .complete = complete,
    .help = "Example: umd-info --json\n"
            "\nExit status: 0 done, 1 usage, 2 no device could be started, or the output could not be written.\n",
};

const enum tool_env tool_env = TOOL_ENV_TAKE_FILES;

int main(int argc, char **argv)
{
    int json = 0;
    struct poptOption table[] = {
        { "json", 'j', POPT_ARG_NONE, &json, 0, "as JSON", NULL },
        POPT_TABLEEND
    };

    return tool_main("umd-info", &info, argc, argv, table, run, &json);
}
