/* SPDX-License-Identifier: MIT */
/* control.h - questions to a running process. */
#ifndef UMD_LOG_TOOL_CONTROL_H
#define UMD_LOG_TOOL_CONTROL_H

#include <json-c/json.h>
#include <stddef.h>
#include <stdint.h>

/* EXIT_DONE, EXIT_USAGE where the process refused, EXIT_ENVIRONMENT where it cannot be asked; why says what is wrong. */
int control_ask(uint32_t pid, const char *command, char *answer, size_t size, char *why, size_t why_size);
/* The status object, which the caller puts; NULL, and why. */
struct json_object *control_status(uint32_t pid, char *why, size_t why_size);

#endif
