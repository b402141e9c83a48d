/* SPDX-License-Identifier: MIT */
/* codes.h - one case per status code: provokes it through a public call, and looks at the figures that matter (E1). */
#ifndef CODES_H
#define CODES_H

#include "fault_plan.h"
#include "fixtures.h"
#include "kmd.h"
#include "kmd_between.h"
#include "record.h"

/*
 * The list of cases is generated from status.toml: a code without a function case_NAME in one of the codes_*.c does not link.
 * A case starts what it needs, and says by provokes() or saw() that the code came.
 */
struct code_run {
    umdStatus code;
    void (*provoke)(struct code_run *run);
    void *fx;          /* struct fx of code_up, taken down by the runner; NULL: the case started nothing */
    bool seen;
};

#define CODE_CASE(name_) void case_##name_(struct code_run *run); void case_##name_(struct code_run *run)

/** The started stack with a context, the test kernels and a compute stream. */
struct fx *code_up(struct code_run *run);
/** The same with other settings than the fixture's. */
struct fx *code_up_with(struct code_run *run, umdInitDesc desc);
/** The case has seen its code by other means than a call's return: from a callback, in another thread, in a child. */
void code_saw(struct code_run *run, umdStatus code);
/** expr returns the case's code, and the thread's record has it, with the figure. */
#define provokes(expr_, figure_)                                                                           \
    do {                                                                                                   \
        assert_fails(expr_, run->code, figure_);                                                           \
        code_saw(run, run->code);                                                                          \
    } while (0)
/** As provokes, for an umdInit with other settings than the fixture's. Leaves the library down and the fault plan empty. */
void code_init_fails(struct code_run *run, umdInitDesc desc, const char *figure);

/* ---- A kernel driver in between, see kmd_between.h ---- */

/** What it is told; at first nothing. */
struct kmd_between *code_between(void);
/* Tells the driver in between, all at once. */
void code_tell(const struct kmd_between *what);
/** As code_up, over the driver in between. */
struct fx *code_up_between(struct code_run *run);
/** The environment names the driver in between, or the real one again. */
void code_use_between(bool use);
/** Operations of the real one, which umdInit has brought up. */
const struct petrel_kmd_ops *code_kmd(void);

/** A capability that render nodes lack, asked for over the kernel driver's own interface: see codes_uapi.c. */
void code_unsupported_capability(struct code_run *run);

/* ---- Work that fails or goes on ---- */

/** A kernel of the module of these cases. */
umdKernel code_kernel(struct fx *f, const char *name);
/** Launches work that goes on for hours of device time, with progress, but takes the host long for each ms of it; returns when it has begun. */
void code_long_work(struct fx *f, umdStream stream);

/** What a context's error callback was told; the first of the code that is looked for. */
struct code_told {
    umdStatus want;
    _Atomic(bool) came;
    umdErrorDetail detail;
};
void code_on_error(umdContext context, const umdErrorDetail *detail, void *user);
/** Makes calls until the callback has been told; fails the test if it never is. */
void code_await_told(struct fx *f, struct code_told *told);

#endif
