/* SPDX-License-Identifier: MIT */
/* library.h - what every public call passes through: call records, fork and start checks. */
#ifndef UMD_LIBRARY_H
#define UMD_LIBRARY_H

#include <umd/umd.h>

#include "record.h"

struct umd_device;

struct umd_call {
    struct umd_api_call api;
    bool counted;
};

/** First thing in each entry point; then umd_call_ready says whether the call may go on. */
#define UMD_CALL_ENTER(call_, fmt_, ...)                                                                  \
    ((call_)->api = (struct umd_api_call){ 0 }, (call_)->counted = false,                                 \
     umd_api_enter(&(call_)->api, __func__, fmt_, ##__VA_ARGS__), umd_call_ready(call_))
/** Not in a forked child (UMD_ERR_CTX_FORKED), and started (UMD_ERR_INIT_REQUIRED). Keeps umdShutdown from finishing under the call. */
UMD_MUST_CHECK umdStatus umd_call_ready(struct umd_call *call);
/** Last thing in each entry point. */
umdStatus umd_call_leave(struct umd_call *call, umdStatus st);

uint32_t umd_library_device_count(void);
struct umd_device *umd_library_device(uint32_t index);

#endif
