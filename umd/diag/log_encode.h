/* SPDX-License-Identifier: MIT */
/* log_encode.h - printf arguments as raw bytes, and back to text: formatting happens off the hot path. */
#ifndef UMD_LOG_ENCODE_H
#define UMD_LOG_ENCODE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Encodes the arguments that fmt asks for into buf: numbers as they are, strings copied (cut where they do not fit).
 * Returns the bytes used. What does not fit is left out; decoding shows it as "<cut>". An unknown conversion ends the encoding,
 * since what follows it has no known type. Async-signal-safe.
 */
size_t umd_log_encode(uint8_t *buf, size_t size, const char *fmt, va_list ap);
/* Formats into out like snprintf; always ended. Returns false if fmt had a conversion that is not known. */
int umd_log_decode(char *out, size_t out_size, const char *fmt, const uint8_t *args, size_t args_B);

#endif
