/* SPDX-License-Identifier: MIT */
/* symbols.h - a snapshot's stack unwound and its addresses named, from the ELF files on this machine. */
#ifndef CRASH_SYMBOLS_H
#define CRASH_SYMBOLS_H

#include "crash_file.h"

#define CRASH_FRAMES 128u

struct crash_frame {
    uint64_t pc;
    uint64_t offset;            /* of pc in the module's file image; with no module: pc */
    char module[256];           /* "": none */
    char function[256];         /* "": unknown */
    char file[512];             /* "": unknown */
    int line;
};

/* What became of a module's file. */
enum crash_module_state { CRASH_MODULE_FOUND, CRASH_MODULE_OTHER_BUILD, CRASH_MODULE_MISSING };
struct crash_module {
    char path[512], build_id[64], used[768]; /* used: the file that was read */
    uint64_t start, end;
    enum crash_module_state state;
};

struct crash_symbols {
    struct crash_module *modules;
    size_t module_count;
    struct crash_frame frames[CRASH_FRAMES];
    size_t frame_count;
    bool by_frame_information;  /* false: by frame pointers, as the process saw them */
};

/* debug_dirs: NULL-ended, or NULL; each is searched for .build-id/xx/yyyy.debug before the system's. False: out of memory. */
bool crash_symbols_find(const struct crash *c, const char *const *debug_dirs, struct crash_symbols *out);
void crash_symbols_free(struct crash_symbols *s);

#endif
