/* SPDX-License-Identifier: MIT */
/* log_encode.h - arguments of a format as raw bytes, and back to text: formatting happens off the hot path. */
#ifndef UMD_LOG_ENCODE_H
#define UMD_LOG_ENCODE_H

#include <stddef.h>
#include <stdint.h>

#include <umd/umd_diag.h>

/*
 * Encodes the arguments that fmt asks for into buf: 8 bytes each as UMD_LOG_BITS made them, but text is copied (length in 2 bytes, then the bytes;
 * cut where it does not fit). Without text the encoding is the array of arguments itself, and this function need not be called.
 * Returns the bytes used. What does not fit is left out; decoding shows it as "<cut>". An unknown conversion (wide text and %m among them) ends the
 * encoding, since what follows it has no known type. Async-signal-safe.
 */
size_t umd_log_encode(uint8_t *buf, size_t size, const char *fmt, const uint64_t *args, uint32_t count);
/* Formats into out like snprintf; always ended. Returns false if fmt had a conversion that is not known. */
UMD_API int umd_log_decode(char *out, size_t out_size, const char *fmt, const uint8_t *args, size_t args_B);

#endif
