/* SPDX-License-Identifier: MIT */
/* module.h - code objects in GPU memory, their kernels, and where a program counter lies in the source. */
#ifndef UMD_MODULE_H
#define UMD_MODULE_H

#include <libelf.h>

#include <hw/petrel_codeobj.h>
#include <hw/petrel_packets.h>

#include "context.h"

struct umd_module;

struct umd_kernel {
    struct umd_object obj;
    struct umd_module *module;
    struct petrel_kernel_meta meta;
    uint64_t entry_va, code_va, code_B;
    bool open;                      /* has a handle; under the context's lock */
};

struct umd_module {
    struct umd_object obj;
    struct umd_context *ctx;
    char name[64];                  /* file name, or "memory" */
    uint8_t *image;                 /* our copy; libelf and libdw read it */
    size_t image_B;
    struct umd_bo bo;
    uint64_t bound_B;               /* unbinding is by the whole range */
    struct petrel_code code;        /* what the device is told before each launch ... */
    bool has_code;                  /* ... if there is anything to tell */
    struct umd_kernel *kernels;
    uint32_t kernel_count;
    bool closed;                    /* no kernel is opened any more; under the context's lock */
};

/** The loaded form of a checked image: segments laid out and relocated for an address. Freed by umd_code_free. */
struct umd_code {
    uint8_t *memory;
    uint64_t size_B;
    uint8_t *rights;                /* per 4 KiB page: DRM_PETREL_BIND_* */
    uint64_t kernels_at;            /* offset of .petrel.kernels */
    uint32_t kernel_count;
    uint64_t tls_at, tls_file_B, tls_B, tls_align; /* thread-local storage: its template in `memory`, the size of a block */
    uint64_t notes_at, notes_B;     /* section of convergence notes in `memory`; 0 bytes: none */
};
/** Checks an image wholly and lays it out at base 0. Pure: no device. UMD_ERR_MODULE_FORMAT, _ISA, UMD_ERR_MEM_HOST_ALLOC_FAILED. */
UMD_MUST_CHECK umdStatus umd_code_parse(const uint8_t *image, size_t size_B, struct umd_code *code_out);
/** Relocates to an address; once. */
UMD_MUST_CHECK umdStatus umd_code_relocate(const uint8_t *image, size_t size_B, struct umd_code *code, uint64_t base);
/** The executable segment, at base 0, that holds an offset; false: none. */
bool umd_code_segment(const uint8_t *image, size_t size_B, uint64_t offset, uint64_t *start_out, uint64_t *size_out);
void umd_code_free(struct umd_code *code);

struct umd_location {
    char function[64], file[96], module[64];
    uint32_t line;                  /* 0: unknown */
    uint64_t offset;                /* in the module */
};
/** Where a pc lies; false: in no module of the context. */
bool umd_module_locate(struct umd_context *ctx, uint64_t pc, struct umd_location *out);

#endif
