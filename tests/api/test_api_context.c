/* SPDX-License-Identifier: MIT */
/* test_api_context.c - one context id through the lines of every layer, though another context's call may be what drives them (C3). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <umd/umd_log.h>

#include "fault_plan.h"
#include "fixtures.h"
#include "record.h"

static char path[64];

/* A context's id, as its records have it. */
static uint64_t id_of(umdContext ctx)
{
    umdDevicePtr p;

    assert_st(umdMemAlloc(ctx, 0, 0, 0, &p), UMD_ERR_MEM_SIZE);
    return fx_detail().context_id;
}

/* Lines of a module, and of those below it, that have the context, and the text. */
static unsigned lines_of(const char *log, uint64_t context, const char *module, const char *text)
{
    char head[32], line[4096];
    unsigned n = 0;

    snprintf(head, sizeof(head), " ctx=%" PRIu64 " ", context);
    for (const char *at = log; *at; at += strcspn(at, "\n") + (at[strcspn(at, "\n")] == '\n')) {
        char name[64] = "";
        snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
        if (sscanf(line, "%*s %*s %*s %*s %63s", name) == 1 && strncmp(name, module, strlen(module)) == 0 && strstr(line, text) &&
            (context ? strstr(line, head) != NULL : !strstr(line, " ctx=")))
            n++;
    }
    return n;
}

/* The hang of one context, while another one's call waits; stepped, the device and the kernel driver run inside that call. */
static void a_hang_is_told_under_its_context_by_all_layers(void **state)
{
    struct fx *f = *state, other = { .dev = f->dev };
    const bool traced = UMD_LOG_CEILING >= UMD_LOG_TRACE;
    umdDevicePtr p = fx_alloc(f, 4096), q;
    umdErrorDetail d = { .size_B = sizeof(d) };
    size_t size;

    assert_ok(umdContextCreate(other.dev, &other.ctx));
    assert_ok(umdModuleLoadFile(other.ctx, fx_kernel_path(), &other.mod));
    const uint64_t hung = id_of(f->ctx), waits = id_of(other.ctx);
    assert_int_not_equal(hung, waits);
    q = fx_alloc(&other, 4096);
    umdKernel bad = fx_kernel(f, "axpy"), good = fx_kernel(&other, "axpy");
    snprintf(path, sizeof(path), "/tmp/petrel-context-%d.log", (int)getpid());
    assert_ok(umdLogOpenFile(path, UMD_LOG_FORMAT_TEXT, "hw=trace,info"));
    assert_ok(umdStreamCreate(other.ctx, UMD_STREAM_COMPUTE, 0, &other.stream));
    assert_ok(umd_fault_plan_set("hw.cu.hang=1*fire"));
    assert_ok(fx_launch(f->stream, bad, &(struct fx_args){ p, p, 1, 32 }, 1));
    assert_ok(fx_launch(other.stream, good, &(struct fx_args){ q, q, 1, 32 }, 1));
    assert_ok(umdStreamSynchronize(other.stream, UMD_TIMEOUT_INFINITE));
    assert_int_equal(umd_record_get_context(), 0); /* as before the call, whatever was done for others meanwhile */
    assert_st(umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE), UMD_ERR_HW_HANG);
    assert_ok(umdContextGetFirstCause(f->ctx, &d));
    assert_int_equal(d.context_id, hung);
    assert_ok(umd_fault_plan_set(NULL));
    assert_ok(umdStreamDestroy(other.stream));
    assert_ok(umdMemFree(other.ctx, q));
    assert_ok(umdContextDestroy(other.ctx));
    umdLogFlush(20000);
    umdLogCloseFile(UMD_LOG_FORMAT_TEXT);
    char *log = (char *)fx_read_file(path, &size), *text = realloc(log, size + 1);
    assert_non_null(text);
    text[size] = '\0';
    unlink(path);
    if (!lines_of(text, hung, "kmd.", ": UMD_ERR_HW_HANG: ") || !lines_of(text, hung, "kmd.reset", ": ring reset ") || !lines_of(text, hung, "umd.", ""))
        fail_msg("no line of the kernel driver, or of the driver above, under context %" PRIu64 " in\n%s", hung, text);
    assert_int_equal(lines_of(text, waits, "kmd.", ""), 0); /* nothing happened to it */
    assert_int_equal(lines_of(text, 0, "kmd.reset", ""), 0);
    assert_int_equal(lines_of(text, hung, "hw.", ": packet DISPATCH "), traced ? 1 : 0);
    assert_int_equal(lines_of(text, waits, "hw.", ": packet DISPATCH "), traced ? 1 : 0);
    assert_int_equal(lines_of(text, hung, "hw.", ": packet SET_CONTEXT "), traced ? 1 : 0);
    assert_int_equal(lines_of(text, 0, "hw.cp", ""), 0);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_hang_is_told_under_its_context_by_all_layers, fx_setup, fx_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
