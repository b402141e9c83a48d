/* SPDX-License-Identifier: MIT */
/* fixtures.h - what tests over the public API share: a started stack, a context with the test kernels, checks that explain. */
#ifndef FIXTURES_H
#define FIXTURES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <umd/umd.h>

/** Carrier and mode come from $PETREL_CARRIER and $PETREL_MODE: each test is registered over all of them. */
struct fx {
    umdDevice dev;
    umdContext ctx;
    umdModule mod;
    umdStream stream;
    uint64_t swallowed;     /* records swallowed before the test */
};

enum { FX_N = 256 };

bool fx_stepped(void);
/** An umdInitDesc with small memory and a short watchdog. */
umdInitDesc fx_desc(void);
/** cmocka set-up and tear-down: *state is a struct fx. Tear-down checks that nothing is swallowed and that device memory is back. */
int fx_setup(void **state);
int fx_teardown(void **state);
/** Only the library. */
int fx_setup_init(void **state);
int fx_teardown_init(void **state);

umdKernel fx_kernel(struct fx *f, const char *name);
/** axpy's arguments; a launch over n work-items in groups of 32. */
struct fx_args { umdDevicePtr dst, src; uint32_t a, n; };
umdStatus fx_launch(umdStream stream, umdKernel kernel, const struct fx_args *args, uint32_t groups);
umdDevicePtr fx_alloc(struct fx *f, uint64_t size_B);
/** The thread's last error; fails the test when there is none. */
umdErrorDetail fx_detail(void);
/** The record, or one in its chain of causes, has the code. */
bool fx_caused_by(const umdErrorDetail *detail, umdStatus code);
/** Whole file, malloc'd. */
uint8_t *fx_read_file(const char *path, size_t *size_out);
const char *fx_kernel_path(void);

void fx_assert_status(umdStatus got, umdStatus want, const char *expr, const char *file, int line);
#define assert_st(expr_, want_) fx_assert_status((expr_), (want_), #expr_, __FILE__, __LINE__)
#define assert_ok(expr_) assert_st(expr_, UMD_SUCCESS)
/** Fails with the code, and the record of the thread is that code's, with the figure in it. */
#define assert_fails(expr_, want_, figure_)                                                               \
    do {                                                                                                  \
        assert_st(expr_, want_);                                                                          \
        fx_assert_figure((want_), (figure_), __FILE__, __LINE__);                                         \
    } while (0)
void fx_assert_figure(umdStatus code, const char *figure, const char *file, int line);

#endif
