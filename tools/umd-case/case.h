/* SPDX-License-Identifier: MIT */
/* case.h - what the cases of umd-case share: a started stack, calls that must work, calls that must fail. */
#ifndef CASE_H
#define CASE_H

#include <stdbool.h>
#include <stdint.h>

#include <umd/umd.h>

#include "case_args.h"

#define MIB (UINT64_C(1) << 20)
#define MS UINT64_C(1000000) /* in ns */

enum case_exit { CASE_DONE = 0, CASE_USAGE = 1, CASE_ENVIRONMENT = 2, CASE_DEVICE = 3, CASE_WRONG = 4 };

struct umd_case {
    const char *name;
    const char *text;
    void (*run)(void);
};
extern const struct umd_case memory_cases[], call_cases[], kernel_cases[], wait_cases[], process_cases[]; /* each ends with a row without a name */

/* What most programs have. */
struct scene {
    umdDevice device;
    umdContext context;
    umdModule module;
    umdStream stream;
};

/** Settings of a small device with a quick watchdog; change what the case is about. */
umdInitDesc case_desc(void);
/** Starts the stack; desc NULL: case_desc(). Ends the program with status 2 where that cannot be done. */
void case_start(struct scene *s, const umdInitDesc *desc);
/** Context, module and stream, once the stack runs; again after a context failed. */
void case_open(struct scene *s);
void case_close(struct scene *s);
/** Closes the scene and shuts down. */
void case_end(struct scene *s);

umdKernel case_kernel(const struct scene *s, const char *name);
/** One workgroup a group, of 32 work-items. */
umdStatus case_launch(const struct scene *s, const char *kernel, struct case_args args, uint32_t groups);
umdDevicePtr case_alloc(const struct scene *s, uint64_t size_B);

/** A line about what comes next, or what was seen. */
__attribute__((format(printf, 1, 2))) void case_say(const char *fmt, ...);

/** The call has to work; else its story is told, and the program ends. */
void case_must(umdStatus st, const char *call);
#define MUST(call_) case_must((call_), #call_)
/** The call has to return that code; prints it and, of a failure, the story in the thread's record. */
void case_gives(umdStatus st, const char *call, umdStatus want);
#define GIVES(call_, want_) case_gives((call_), #call_, (want_))
/** The call has to work: it shows what a failure has left unharmed. */
void case_works(umdStatus st, const char *call);
#define STILL_WORKS(call_) case_works((call_), #call_)
/** Ends the program as a case that did not show what it should. */
__attribute__((noreturn, format(printf, 1, 2))) void case_wrong(const char *fmt, ...);

#endif
