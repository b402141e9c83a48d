/* SPDX-License-Identifier: MIT */
/* elsewhere.c - a number that is no code: whose it may be, or which code it was before something took a part of it. */
#include <stdio.h>
#include <string.h>

#include "explain.h"

#define ERRNO_MAX 133

struct number {
    const char *name;
    int32_t value;
};

/* The numbers of the names that status.toml maps codes to, as the headers of those interfaces publish them. HIP has those of CUDA. */
static const struct number cuda[] = {
    { "cudaErrorInvalidValue", 1 }, { "cudaErrorMemoryAllocation", 2 }, { "cudaErrorInitializationError", 3 }, { "cudaErrorCudartUnloading", 4 },
    { "cudaErrorInvalidConfiguration", 9 }, { "cudaErrorInvalidDevicePointer", 17 }, { "cudaErrorInsufficientDriver", 35 },
    { "cudaErrorInvalidDeviceFunction", 98 }, { "cudaErrorNoDevice", 100 }, { "cudaErrorInvalidDevice", 101 }, { "cudaErrorStartupFailure", 127 },
    { "cudaErrorInvalidKernelImage", 200 }, { "cudaErrorMapBufferObjectFailed", 205 }, { "cudaErrorAlreadyMapped", 208 },
    { "cudaErrorNoKernelImageForDevice", 209 }, { "cudaErrorNotMapped", 211 }, { "cudaErrorECCUncorrectable", 214 }, { "cudaErrorDeviceAlreadyInUse", 216 },
    { "cudaErrorPeerAccessUnsupported", 217 }, { "cudaErrorInvalidPtx", 218 }, { "cudaErrorNvlinkUncorrectable", 220 },
    { "cudaErrorJitCompilerNotFound", 221 }, { "cudaErrorUnsupportedPtxVersion", 222 }, { "cudaErrorInvalidSource", 300 }, { "cudaErrorFileNotFound", 301 },
    { "cudaErrorSharedObjectSymbolNotFound", 302 }, { "cudaErrorSharedObjectInitFailed", 303 }, { "cudaErrorOperatingSystem", 304 },
    { "cudaErrorInvalidResourceHandle", 400 }, { "cudaErrorIllegalState", 401 }, { "cudaErrorSymbolNotFound", 500 }, { "cudaErrorNotReady", 600 },
    { "cudaErrorIllegalAddress", 700 }, { "cudaErrorLaunchOutOfResources", 701 }, { "cudaErrorLaunchTimeout", 702 },
    { "cudaErrorPeerAccessAlreadyEnabled", 704 }, { "cudaErrorPeerAccessNotEnabled", 705 }, { "cudaErrorContextIsDestroyed", 709 },
    { "cudaErrorAssert", 710 }, { "cudaErrorTooManyPeers", 711 }, { "cudaErrorHostMemoryAlreadyRegistered", 712 },
    { "cudaErrorHostMemoryNotRegistered", 713 }, { "cudaErrorHardwareStackError", 714 }, { "cudaErrorIllegalInstruction", 715 },
    { "cudaErrorMisalignedAddress", 716 }, { "cudaErrorInvalidAddressSpace", 717 }, { "cudaErrorInvalidPc", 718 }, { "cudaErrorLaunchFailure", 719 },
    { "cudaErrorCooperativeLaunchTooLarge", 720 }, { "cudaErrorNotPermitted", 800 }, { "cudaErrorNotSupported", 801 }, { "cudaErrorSystemNotReady", 802 },
    { "cudaErrorSystemDriverMismatch", 803 }, { "cudaErrorMpsConnectionFailed", 805 }, { "cudaErrorMpsRpcFailure", 806 },
    { "cudaErrorMpsServerNotReady", 807 }, { "cudaErrorMpsMaxClientsReached", 808 }, { "cudaErrorMpsMaxConnectionsReached", 809 },
    { "cudaErrorStreamCaptureUnsupported", 900 }, { "cudaErrorStreamCaptureInvalidated", 901 }, { "cudaErrorStreamCaptureMerge", 902 },
    { "cudaErrorStreamCaptureUnmatched", 903 }, { "cudaErrorStreamCaptureUnjoined", 904 }, { "cudaErrorStreamCaptureIsolation", 905 },
    { "cudaErrorStreamCaptureImplicit", 906 }, { "cudaErrorCapturedEvent", 907 }, { "cudaErrorStreamCaptureWrongThread", 908 },
    { "cudaErrorTimeout", 909 }, { "cudaErrorGraphExecUpdateFailure", 910 }, { "cudaErrorUnknown", 999 },
};
static const struct number vulkan[] = {
    { "VK_NOT_READY", 1 }, { "VK_TIMEOUT", 2 }, { "VK_INCOMPLETE", 5 }, { "VK_ERROR_OUT_OF_HOST_MEMORY", -1 }, { "VK_ERROR_OUT_OF_DEVICE_MEMORY", -2 },
    { "VK_ERROR_INITIALIZATION_FAILED", -3 }, { "VK_ERROR_DEVICE_LOST", -4 }, { "VK_ERROR_MEMORY_MAP_FAILED", -5 }, { "VK_ERROR_FEATURE_NOT_PRESENT", -8 },
    { "VK_ERROR_INCOMPATIBLE_DRIVER", -9 }, { "VK_ERROR_TOO_MANY_OBJECTS", -10 }, { "VK_ERROR_FRAGMENTED_POOL", -12 }, { "VK_ERROR_UNKNOWN", -13 },
    { "VK_ERROR_INVALID_SHADER_NV", -1000012000 }, { "VK_ERROR_OUT_OF_POOL_MEMORY", -1000069000 }, { "VK_ERROR_INVALID_EXTERNAL_HANDLE", -1000072003 },
    { "VK_ERROR_FRAGMENTATION", -1000161000 }, { "VK_ERROR_NOT_PERMITTED_KHR", -1000174001 },
};
static const struct number level_zero[] = {
    { "ZE_RESULT_NOT_READY", 1 }, { "ZE_RESULT_ERROR_DEVICE_LOST", 0x70000001 }, { "ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY", 0x70000002 },
    { "ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY", 0x70000003 }, { "ZE_RESULT_ERROR_MODULE_BUILD_FAILURE", 0x70000004 },
    { "ZE_RESULT_ERROR_MODULE_LINK_FAILURE", 0x70000005 }, { "ZE_RESULT_ERROR_DEVICE_REQUIRES_RESET", 0x70000006 },
    { "ZE_RESULT_ERROR_DEVICE_IN_LOW_POWER_STATE", 0x70000007 }, { "ZE_RESULT_ERROR_UNINITIALIZED", 0x78000001 },
    { "ZE_RESULT_ERROR_UNSUPPORTED_VERSION", 0x78000002 }, { "ZE_RESULT_ERROR_UNSUPPORTED_FEATURE", 0x78000003 },
    { "ZE_RESULT_ERROR_INVALID_ARGUMENT", 0x78000004 }, { "ZE_RESULT_ERROR_INVALID_NULL_HANDLE", 0x78000005 }, { "ZE_RESULT_ERROR_UNKNOWN", 0x7ffffffe },
};

struct hints {
    struct explain_hint *out;
    uint32_t count, max;
};

static void add(struct hints *h, const char *of, const char *name, int32_t value)
{
    if (h->count < h->max)
        h->out[h->count++] = (struct explain_hint){ .of = of, .name = name, .value = value };
}

static void search(struct hints *h, const char *of, const struct number *rows, size_t count, int32_t value)
{
    for (size_t i = 0; i < count; i++) {
        if (rows[i].value == value)
            add(h, of, rows[i].name, value);
    }
}

uint32_t explain_elsewhere(int32_t value, struct explain_hint *out, uint32_t max)
{
    struct hints h = { .out = out, .max = max };
    const int32_t magnitude = value > -ERRNO_MAX - 1 && value < 0 ? -value : value;

    if (magnitude > 0 && magnitude <= ERRNO_MAX && strerrorname_np(magnitude))
        add(&h, "errno", strerrorname_np(magnitude), value);
    search(&h, "VkResult", vulkan, sizeof(vulkan) / sizeof(vulkan[0]), value);
    search(&h, "CUDA or HIP", cuda, sizeof(cuda) / sizeof(cuda[0]), value);
    search(&h, "Level Zero", level_zero, sizeof(level_zero) / sizeof(level_zero[0]), value);
    for (uint32_t i = umd_status_count(); i-- > 0 && value >= -128 && value <= 255;) { /* an exit status, a char */
        const struct umd_status_info *s = umd_status_at(i);
        if (s->code < 0 && !s->provisional && (s->code & 0xff) == (value & 0xff))
            add(&h, "low byte", s->name, s->code);
    }
    return h.count;
}
