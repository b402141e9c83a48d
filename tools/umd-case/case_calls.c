/* SPDX-License-Identifier: MIT */
/* case_calls.c - cases of calls that are refused at once: handles, arguments, code objects, limits, the start of the library. */
#include <pthread.h>
#include <stdlib.h>

#include "case.h"

static void handles(void)
{
    struct scene s;
    umdContext other;
    umdEvent event, other_event;
    umdStream never = { 4711 }, not_one;

    case_start(&s, NULL);
    GIVES(umdStreamQuery(never), UMD_ERR_HANDLE_INVALID);
    MUST(umdEventCreate(s.context, &event));
    MUST(umdEventDestroy(event));
    GIVES(umdEventQuery(event), UMD_ERR_HANDLE_DESTROYED);
    not_one.id = s.context.id;
    GIVES(umdStreamQuery(not_one), UMD_ERR_HANDLE_TYPE);
    MUST(umdContextCreate(s.device, &other));
    MUST(umdEventCreate(other, &other_event));
    GIVES(umdEventRecord(other_event, s.stream), UMD_ERR_HANDLE_CONTEXT);
    STILL_WORKS(umdStreamQuery(s.stream));
    MUST(umdContextDestroy(other));
    case_end(&s);
}

static void arguments(void)
{
    struct scene s;
    umdDevicePtr ptr;

    case_start(&s, NULL);
    umdKernel add = case_kernel(&s, "add");
    struct case_args args = { .dst = case_alloc(&s, 4096), .a = 1, .n = 32 };
    const umdLaunchDesc good = { .size_B = sizeof(good), .grid = { 1, 1, 1 }, .block = { 32, 1, 1 }, .args = &args, .args_B = sizeof(args) };

    umdLaunchDesc d = good;
    d.args_B = 6000;
    GIVES(umdLaunchKernel(s.stream, add, &d), UMD_ERR_LAUNCH_ARGUMENTS);
    d = good;
    d.args = NULL;
    GIVES(umdLaunchKernel(s.stream, add, &d), UMD_ERR_PARAM_NULL);
    d = good;
    d.grid[0] = d.grid[1] = d.grid[2] = UINT32_MAX;
    GIVES(umdLaunchKernel(s.stream, add, &d), UMD_ERR_LAUNCH_DIMENSIONS);
    d = good;
    d.block[0] = 1u << 16;
    GIVES(umdLaunchKernel(s.stream, add, &d), UMD_ERR_LAUNCH_DIMENSIONS);
    d = good;
    d.local_B = 1u << 20;
    GIVES(umdLaunchKernel(s.stream, add, &d), UMD_ERR_LAUNCH_RESOURCES);
    d = good;
    d.size_B = 8;
    GIVES(umdLaunchKernel(s.stream, add, &d), UMD_ERR_PARAM_STRUCT_SIZE);
    GIVES(umdMemAlloc(s.context, 4096, 0, 1u << 31, &ptr), UMD_ERR_PARAM_FLAGS);
    GIVES(umdMemAlloc(s.context, 4096, 3, 0, &ptr), UMD_ERR_MEM_ALIGNMENT);
    GIVES(umdDeviceGet(7, &s.device), UMD_ERR_PARAM_RANGE);
    STILL_WORKS(umdLaunchKernel(s.stream, add, &good));
    STILL_WORKS(umdStreamSynchronize(s.stream, UMD_TIMEOUT_INFINITE));
    case_end(&s);
}

static void code_objects(void)
{
    struct scene s;
    umdModule module;
    umdKernel kernel;

    case_start(&s, NULL);
    GIVES(umdModuleLoad(s.context, "not a code object", 17, &module), UMD_ERR_MODULE_FORMAT);
    GIVES(umdModuleLoadFile(s.context, "/proc/self/exe", &module), UMD_ERR_MODULE_ISA);
    GIVES(umdModuleLoadFile(s.context, "/nonexistent/kernels.elf", &module), UMD_ERR_RES_FILE);
    GIVES(umdModuleGetKernel(s.module, "ad", &kernel), UMD_ERR_MODULE_SYMBOL);
    STILL_WORKS(umdModuleGetKernel(s.module, "add", &kernel));
    case_end(&s);
}

/* Contexts and queues, of which there are only so many. */
static void limits(void)
{
    struct scene s;
    umdInitDesc desc = case_desc();
    static umdContext context[300];
    umdStream stream = { 0 };
    umdStatus st = UMD_SUCCESS;
    int n = 0;

    desc.vram_B = 512 * MIB; /* a stream has memory of its own */
    case_start(&s, &desc);
    while (n < 300 && (st = umdContextCreate(s.device, &context[n])) == UMD_SUCCESS)
        n++;
    case_say("context %d is the first that fails", n + 1);
    case_gives(st, "umdContextCreate", UMD_ERR_RES_HANDLES);
    while (n)
        MUST(umdContextDestroy(context[--n]));
    while (n < 300 && (st = umdStreamCreate(s.context, UMD_STREAM_COMPUTE, 0, &stream)) == UMD_SUCCESS)
        n++;
    case_say("\nstream %d is the first that fails", n + 1);
    case_gives(st, "umdStreamCreate", UMD_ERR_RES_QUEUES);
    STILL_WORKS(umdStreamDestroy(stream));
    STILL_WORKS(umdStreamCreate(s.context, UMD_STREAM_COPY, 0, &stream));
    case_end(&s);
}

/* ---- The start ---- */

static void fails_to_start(const char *what, const char *faults, umdStatus want)
{
    umdInitDesc desc = case_desc();

    desc.faults = faults;
    case_say("\n%s", what);
    GIVES(umdInit(&desc), want);
}

static void *call_from_thread(void *arg)
{
    uint32_t count;

    (void)arg;
    GIVES(umdDeviceGetCount(&count), UMD_ERR_INIT_STEPPED_THREAD);
    return NULL;
}

/* Each fault is that of the hardware or host; the library is down after each of them, and starts at the end. */
static void start(void)
{
    struct scene s;
    umdInitDesc desc = case_desc();
    pthread_t thread;
    uint32_t count;

    GIVES(umdDeviceGetCount(&count), UMD_ERR_INIT_REQUIRED);
    desc.version = UMD_VERSION + 1;
    GIVES(umdInit(&desc), UMD_ERR_INIT_VERSION);
    desc = case_desc();
    desc.profile = "no-such-device";
    GIVES(umdInit(&desc), UMD_ERR_CONFIG_VALUE);
    fails_to_start("a fault specification with a mistake", "hw.cu.hng=fire", UMD_ERR_FAULT_SPEC);
    fails_to_start("the device is not found", "kmd.device.count=fire(0)", UMD_ERR_INIT_DEVICE_COUNT);
    fails_to_start("the device is newer than the driver", "hw.revision=fire", UMD_ERR_INIT_UNSUPPORTED);
    fails_to_start("the firmware is too new", "hw.fw.version=fire(0x20003)", UMD_ERR_INIT_FW_VERSION);
    fails_to_start("the firmware does not boot", "hw.fw.boot=fire", UMD_ERR_INIT_FW_BOOT);
    fails_to_start("a bit of the memory is stuck", "hw.ecc.selftest=fire(4096)", UMD_ERR_INIT_ECC_SELFTEST);
    fails_to_start("no descriptor is left", "sys.open=fail(EMFILE)", UMD_ERR_RES_DESCRIPTORS);
    if (setenv("PETREL_KMD", "/nonexistent/kmd.so", 1) != 0)
        case_wrong("the environment is full");
    fails_to_start("the kernel driver is not there", NULL, UMD_ERR_INIT_CARRIER);
    unsetenv("PETREL_KMD");
    desc = case_desc();
    desc.faults = "seed=1"; /* no rule: NULL would leave the plan before it */
    desc.stepped = true;
    case_say("\nstepped mode, and a call from another thread");
    case_start(&s, &desc);
    if (pthread_create(&thread, NULL, call_from_thread, NULL) == 0)
        pthread_join(thread, NULL);
    STILL_WORKS(umdDeviceGetCount(&count));
    case_end(&s);
}

const struct umd_case call_cases[] = {
    { "handles", "never valid, destroyed, of another type, of another context", handles },
    { "arguments", "launches and allocations that are refused, each with the limit", arguments },
    { "code-objects", "no ELF, for another machine, not there, no such kernel", code_objects },
    { "limits", "contexts and queues until there are no more", limits },
    { "start", "each way in which the library does not start", start },
    { 0 },
};
