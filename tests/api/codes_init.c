/* SPDX-License-Identifier: MIT */
/* codes_init.c - cases of the init and internal codes. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <uapi/petrel_drm.h>

#include "codes.h"

static void init_fails_under(struct code_run *run, const char *faults, const char *figure)
{
    umdInitDesc d = fx_desc();

    d.faults = faults;
    code_init_fails(run, d, figure);
}

/* ---- Hardware and firmware ---- */

CODE_CASE(UMD_ERR_INIT_NO_DEVICE)
{
    code_between()->no_devices = true;
    code_use_between(true);
    code_init_fails(run, fx_desc(), "configured=1");
}

CODE_CASE(UMD_ERR_INIT_DEVICE_COUNT)
{
    init_fails_under(run, "kmd.device.count=fire(0)", "found=0 expected=1");
    umdInitDesc d = fx_desc();
    d.expected_count = 2;
    code_init_fails(run, d, "found=1 expected=2");
}

CODE_CASE(UMD_ERR_INIT_FW_VERSION)
{
    init_fails_under(run, "hw.fw.version=fire(0x20003)", "fw_version=2.3");
}

CODE_CASE(UMD_ERR_INIT_FW_BOOT)
{
    init_fails_under(run, "hw.fw.boot=fire", "waited_ns=");
}

CODE_CASE(UMD_ERR_INIT_ECC_SELFTEST)
{
    init_fails_under(run, "hw.ecc.selftest=fire(4096)", "addr=0x1000");
}

CODE_CASE(UMD_ERR_INIT_UNSUPPORTED)
{
    init_fails_under(run, "hw.revision=fire", "what=hardware_revision hw_revision=3 oldest_known=2 newest_known=2");
    init_fails_under(run, "hw.revision=fire(0)", "hw_revision=0");
    code_unsupported_capability(run);
}

/* ---- Environment and program ---- */

CODE_CASE(UMD_ERR_INIT_VERSION)
{
    umdInitDesc d = fx_desc();

    d.version = UMD_VERSION + 1;
    code_init_fails(run, d, "library=0.1");
}

CODE_CASE(UMD_ERR_INIT_CARRIER)
{
    assert_int_equal(setenv("PETREL_KMD", "/nonexistent/kmd.so", 1), 0);
    code_init_fails(run, fx_desc(), "/nonexistent/kmd.so");
}

CODE_CASE(UMD_ERR_INIT_REQUIRED)
{
    uint32_t n = 77;

    provokes(umdDeviceGetCount(&n), "call=umdDeviceGetCount");
    provokes(umdShutdown(), "call=umdShutdown");
    assert_int_equal(n, 77);
}

struct foreigner { umdStatus st; umdErrorDetail detail; };

static void *foreign_main(void *arg)
{
    struct foreigner *x = arg;
    uint32_t n;

    x->st = umdDeviceGetCount(&n);
    if (umdFailed(x->st))
        x->detail = fx_detail();
    return NULL;
}

CODE_CASE(UMD_ERR_INIT_STEPPED_THREAD)
{
    struct foreigner x = { 0 };
    pthread_t t;

    if (!fx_stepped())
        skip(); /* threaded mode is everybody's */
    code_up(run);
    assert_int_equal(pthread_create(&t, NULL, foreign_main, &x), 0);
    pthread_join(t, NULL);
    code_saw(run, x.st);
    assert_int_equal(x.detail.code, run->code);
    assert_non_null(strstr(x.detail.figures, "mode=stepped"));
}

/* ---- Defects, of the driver in between ---- */

CODE_CASE(UMD_ERR_INTERNAL)
{
    struct fx *f = code_up_between(run);
    umdDevicePtr p = 42;

    code_tell(&(struct kmd_between){ .cmd = DRM_IOCTL_PETREL_GEM_CREATE, .error = -E2BIG });
    provokes(umdMemAlloc(f->ctx, 4096, 0, 0, &p), "errno=7");
    assert_int_equal(p, 42);
    assert_int_equal(fx_detail().advice.action, UMD_ACTION_ABORT);
}

CODE_CASE(UMD_ERR_INTERNAL_CODE)
{
    struct fx *f = code_up_between(run);
    umdDevicePtr p = 42;

    code_tell(&(struct kmd_between){ .cmd = DRM_IOCTL_PETREL_GEM_CREATE, .error = -EIO, .code = (umdStatus)-4999 });
    provokes(umdMemAlloc(f->ctx, 4096, 0, 0, &p), "raw=-4999 name=UMD_UNKNOWN kind=unknown");
    fx_assert_figure(run->code, "call=umdMemAlloc", __FILE__, __LINE__);
    code_between()->code = UMD_ERR_WAIT_QUEUED; /* known, and none that this call may return */
    provokes(umdMemAlloc(f->ctx, 4096, 0, 0, &p), "raw=-3020 name=UMD_ERR_WAIT_QUEUED kind=undocumented");
    umdErrorDetail d = fx_detail();
    assert_true(fx_caused_by(&d, UMD_ERR_WAIT_QUEUED));
    assert_int_equal(p, 42);
}
