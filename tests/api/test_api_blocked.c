/* SPDX-License-Identifier: MIT */
/* test_api_blocked.c - a lost device while the log's sink is blocked: emergency record, then notification, and the log when it can (C7). */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <umd/umd.h>

#include "emergency.h"
#include "fault_plan.h"
#include "fixtures.h"
#include "record.h"

UMD_LOG_MODULE("umd.test");

struct told {
    _Atomic(int) count;
    int32_t code;
    bool emergency_first;   /* the record was in the emergency ring when the notification came */
};

static struct umd_emergency_slot slots[UMD_EMERGENCY_SLOTS];

static void on_error(umdContext context, const umdErrorDetail *detail, void *user)
{
    struct told *t = user;

    (void)context;
    if (!atomic_load(&t->count)) {
        t->code = detail->code;
        uint32_t n = umd_emergency_snapshot(slots, UMD_EMERGENCY_SLOTS);
        for (uint32_t i = 0; i < n; i++)
            t->emergency_first |= slots[i].record.seq == detail->id.seq && slots[i].code == UMD_ERR_DEV_LOST_OFF_BUS;
    }
    atomic_fetch_add(&t->count, 1);
}

/* Standard error of this process as a pipe that is full, and nobody reads. */
static int block_stderr(int *saved_out)
{
    static const char junk[4096];
    int fds[2];

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    int flags = fcntl(fds[1], F_GETFL);
    assert_int_equal(fcntl(fds[1], F_SETFL, flags | O_NONBLOCK), 0);
    while (write(fds[1], junk, sizeof(junk)) > 0)
        ;
    while (write(fds[1], junk, 1) > 0)
        ;
    assert_int_equal(fcntl(fds[1], F_SETFL, flags), 0);
    *saved_out = dup(STDERR_FILENO);
    assert_true(*saved_out >= 0);
    assert_int_equal(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
    close(fds[1]);
    return fds[0];
}

static char read_back[1u << 20];

/* Reads until standard error is somebody else's again, and the last writer is gone. */
static void *reads_all(void *arg)
{
    size_t used = 0;
    ssize_t n;

    while (used + 1 < sizeof(read_back) && (n = read((int)(intptr_t)arg, read_back + used, sizeof(read_back) - 1 - used)) > 0)
        used += (size_t)n;
    for (size_t i = 0; i < used; i++)
        if (!read_back[i])
            read_back[i] = ' ';
    return NULL;
}

static void a_blocked_sink_delays_neither_record_nor_notification(void **state)
{
    struct fx *f = *state;
    struct told told = { 0 };
    umdDevicePtr p = fx_alloc(f, 4096);
    umdKernel k = fx_kernel(f, "axpy");
    pthread_t reader;
    int saved;

    assert_ok(umdContextSetErrorCallback(f->ctx, on_error, &told));
    int fd = block_stderr(&saved);
    UMD_LOG(UMD_LOG_WARN, "the writer stands at this line count=%d", 1);
    usleep(20000);
    umdStatus st = umd_fault_plan_set("hw.bus.off=1*fire");
    if (st == UMD_SUCCESS)
        st = fx_launch(f->stream, k, &(struct fx_args){ p, p, 1, 32 }, 1);
    if (st == UMD_SUCCESS)
        st = umdStreamSynchronize(f->stream, UMD_TIMEOUT_INFINITE);
    for (int i = 0; i < 20000 && !atomic_load(&told.count); i++)
        usleep(1000);
    int seen = atomic_load(&told.count); /* nobody has read a byte so far */

    pthread_create(&reader, NULL, reads_all, (void *)(intptr_t)fd);
    umdLogFlush(20000);
    dup2(saved, STDERR_FILENO);
    close(saved);
    pthread_join(reader, NULL);
    close(fd);
    assert_true(seen > 0);
    assert_int_equal(st, UMD_ERR_DEV_LOST_OFF_BUS);
    assert_int_equal(told.code, UMD_ERR_DEV_LOST_OFF_BUS);
    assert_true(told.emergency_first);
    assert_non_null(strstr(read_back, "the writer stands at this line"));
    assert_non_null(strstr(read_back, "UMD_ERR_DEV_LOST_OFF_BUS")); /* late, but not lost */
    assert_ok(umdContextSetErrorCallback(f->ctx, NULL, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_blocked_sink_delays_neither_record_nor_notification, fx_setup, fx_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
