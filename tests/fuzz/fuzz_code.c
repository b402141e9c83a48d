/* SPDX-License-Identifier: MIT */
/* fuzz_code.c - any file as a code object: the driver's loader takes it or raises a record, and stays inside. */
#include <stdint.h>
#include <stdlib.h>

#include "module.h"
#include "record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct umd_code c;
    umdErrorDetail d;
    uint64_t start, size_B;

    umdStatus st = umd_code_parse(data, size, &c);
    if (st == UMD_SUCCESS) {
        st = umd_code_relocate(data, size, &c, 0x10000000);
        (void)umd_code_segment(data, size, c.kernels_at, &start, &size_B);
        if (c.tls_B && (c.tls_file_B > c.tls_B || c.tls_at > c.size_B || c.tls_file_B > c.size_B - c.tls_at))
            __builtin_trap();
        if (c.notes_B > PETREL_NOTES_MAX_B || c.notes_at % 4 || c.notes_at > c.size_B || c.notes_B > c.size_B - c.notes_at)
            __builtin_trap();
        umd_code_free(&c);
    }
    if (st < 0 && !umd_record_export(&d))
        __builtin_trap();
    return 0;
}
