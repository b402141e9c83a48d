/* SPDX-License-Identifier: MIT */
/* umd-info.c - the devices and their facts. */
#include <inttypes.h>
#include <json-c/json.h>
#include <popt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <umd/umd.h>
#include <umd/umd_log.h>

#include "umd-tool.h"

enum { EXIT_DONE = 0, EXIT_USAGE = 1, EXIT_ENVIRONMENT = 2 };

static int fail(umdStatus st, const char *doing)
{
    umdErrorDetail d = { .size_B = sizeof(d) };
    const char *figures = umdGetLastErrorDetail(&d) == UMD_SUCCESS ? d.figures : "";
    fprintf(stderr, "umd-info: %s: %s (%s) %s %s\n", doing, umdStatusName(st), figures, umdStatusString(st), umdStatusTodo(st));
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
    json_object_object_add(o, "index", json_object_new_int64(index));
    json_object_object_add(o, "name", json_object_new_string(d->name));
    json_object_object_add(o, "uuid", json_object_new_string(uuid));
    json_object_object_add(o, "status", json_object_new_string(umdStatusName(d->lost_code)));
    json_object_object_add(o, "cu_count", json_object_new_int64(d->cu_count));
    json_object_object_add(o, "warps_per_cu", json_object_new_int64(d->warps_per_cu));
    json_object_object_add(o, "local_B", json_object_new_int64(d->local_B));
    json_object_object_add(o, "private_B", json_object_new_int64(d->private_B));
    json_object_object_add(o, "clock_khz", json_object_new_int64(d->clock_khz));
    json_object_object_add(o, "max_block", json_object_new_int64(d->max_block));
    json_object_object_add(o, "vram_size_B", json_object_new_uint64(d->vram_size_B));
    json_object_object_add(o, "vram_free_B", json_object_new_uint64(d->vram_free_B));
    json_object_object_add(o, "vram_largest_free_B", json_object_new_uint64(d->vram_largest_free_B));
    json_object_object_add(o, "fw_version", json_object_new_int64(d->fw_version));
    json_object_object_add(o, "hw_revision", json_object_new_int64(d->hw_revision));
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
        puts(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PRETTY));
    json_object_put(all);
    return status;
}

int main(int argc, char **argv)
{
    int json = 0, show_help = 0, show_version = 0, status = EXIT_DONE;
    const struct poptOption table[] = {
        { "json", 0, POPT_ARG_NONE, &json, 0, "print JSON", NULL },
        { "help", 'h', POPT_ARG_NONE, &show_help, 0, "show this", NULL },
        { "version", 'V', POPT_ARG_NONE, &show_version, 0, "show the version", NULL },
        POPT_TABLEEND
    };
    tool_start();
    /* What is wrong is told below; the log's lines would tell it twice. */
    if (!getenv("UMD_LOG_CONSOLE") && umdFailed(umdLogSetConsole("off")))
        return EXIT_ENVIRONMENT;
    poptContext pc = poptGetContext("umd-info", argc, (const char **)argv, table, 0);
    poptSetOtherOptionHelp(pc, "[OPTION...]\nShows the devices and their facts.");
    int rc = poptGetNextOpt(pc);

    if (rc < -1) {
        fprintf(stderr, "umd-info: %s: %s; try umd-info --help\n", poptBadOption(pc, POPT_BADOPTION_NOALIAS), poptStrerror(rc));
        status = EXIT_USAGE;
    } else if (show_help) {
        poptPrintHelp(pc, stdout, 0);
        printf("\nExample: umd-info --json\nExit status: 0 done, 1 usage, 2 no device could be started, or the output could not be written.\n");
    } else if (show_version) {
        printf("umd-info %s\n", PETREL_VERSION);
    } else if (poptPeekArg(pc)) {
        fprintf(stderr, "umd-info: takes no words; try umd-info --help\n");
        status = EXIT_USAGE;
    } else {
        umdStatus st = umdInit(NULL);
        status = umdFailed(st) ? fail(st, "bringing the stack up") : show(json);
        if (!umdFailed(st) && umdFailed(umdShutdown()))
            status = EXIT_ENVIRONMENT;
    }
    poptFreeContext(pc);
    return tool_finish("umd-info", status);
}
