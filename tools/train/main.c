/* SPDX-License-Identifier: MIT */
/* main.c - umd-train: brings the stack up, runs a workload, says how it went, and exits with the status that fits. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <umd/umd_log.h>

#include "umd-tool.h"
#include "digits.h"
#include "options.h"
#include "sys.h"

#define DEFAULT_TRAIN_SIZE 20000u
#define TRY_B 4096u
#define TRY_NS UINT64_C(10000000000) /* far more than a reset takes */

int train_fail(struct train_run *run, int status, const char *fmt, ...)
{
    char text[1400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fprintf(stderr, "umd-train: %s\n", text);
    trouble_own(&run->trouble, "%s", text);
    return status;
}

/*
 * On the console the driver's lines would tell twice what this program tells on one screen, so they are off there unless UMD_LOG_CONSOLE
 * asks for them.
 */
static int set_up_console(struct train_run *run)
{
    umdStatus st = tool_wants_console() ? UMD_SUCCESS : umdLogSetConsole("off");

    return umdFailed(st) ? train_fail(run, TRAIN_NO_START, "the log cannot be set up: %s", umdStatusString(st)) : TRAIN_DONE;
}

/* A pipe that nobody reads would hold the run before it has said a word. Value: a descriptor that keeps its reader until the log has it. */
static int hold_pipe(const char *path, int *error_out)
{
    struct stat st;

    *error_out = 0;
    if (stat(path, &st) != 0 || !S_ISFIFO(st.st_mode))
        return -1;
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        *error_out = errno;
    return fd;
}

/* The log goes to the file of --log. */
static int set_up_log(struct train_run *run)
{
    const struct train_options *o = &run->opt;
    umdErrorDetail d = { .size_B = sizeof(d) };
    umdFigure reason;
    int error;
    umdStatus st = o->log_level ? umdLogSetLevels(o->log_level) : UMD_SUCCESS;

    if (umdFailed(st)) {
        trouble_note(&run->trouble, st, "setting log levels");
        trouble_print_line(&run->trouble, stderr);
        return TRAIN_USAGE;
    }
    if (!o->log)
        return TRAIN_DONE;
    int pipe = hold_pipe(o->log, &error);
    if (error)
        return train_fail(run, TRAIN_NO_START, "the log %s cannot be written: %s", o->log,
                          error == ENXIO ? "it is a pipe that nobody reads" : strerror(error));
    st = umdLogOpenFile(o->log, UMD_LOG_FORMAT_JSON, NULL);
    bool told = umdFailed(st) && umdGetLastErrorDetail(&d) == UMD_SUCCESS && umdErrorDetailFigure(&d, "reason", &reason);
    if (pipe >= 0)
        close(pipe);
    return umdFailed(st) ? train_fail(run, TRAIN_NO_START, "the log %s cannot be written: %s", o->log, told ? reason.text : umdStatusString(st))
                         : TRAIN_DONE;
}

static bool asked_to_stop(void)
{
    return train_stop_signal() != 0;
}

/* False: it has been told, or a signal asked for the end. */
static bool load_data(struct train_run *run)
{
    const struct train_options *o = &run->opt;
    char why[768];
    uint32_t size = (uint32_t)o->train_size, tests = (uint32_t)o->test_size;

    if (o->data_dir) {
        if (!dataset_load_idx(o->data_dir, DATASET_TRAIN, size, &run->train, why, sizeof(why)) ||
            !dataset_load_idx(o->data_dir, DATASET_TEST, tests, &run->test, why, sizeof(why))) {
            train_fail(run, 0, "%s", why);
            return false;
        }
    } else if (!dataset_draw(digits_train_seed(o->seed), size ? size : DEFAULT_TRAIN_SIZE, asked_to_stop, &run->train) ||
               !dataset_draw(DIGITS_TEST_SEED, tests ? tests : DIGITS_TEST_COUNT, asked_to_stop, &run->test)) {
        if (!asked_to_stop())
            train_fail(run, 0, "out of host memory for the images");
        return false;
    }
    run->result.train_images = run->train.count;
    run->result.test_images = run->test.count;
    return true;
}

/* ---- The stack ---- */

static umdStatus create_context(struct train_run *run)
{
    umdStatus first = umdContextCreate(run->device, &run->context);

    if (!umdFailed(first) || !trouble_retry(&run->trouble, first))
        return first;
    umdStatus st = umdContextCreate(run->device, &run->context);
    if (!umdFailed(st))
        trouble_retried(&run->trouble, first, "creating the context");
    return st;
}

static int bring_up(struct train_run *run)
{
    const struct train_options *o = &run->opt;
    umdInitDesc desc = {
        .size_B = sizeof(desc), .version = UMD_VERSION, .carrier = o->carrier, .watchdog_ns = (uint64_t)o->watchdog_ms * 1000000u,
        .seed = o->seed, .stepped = o->stepped, .functional = o->functional,
    };
    /* Decided above, for all of the run: the library would add what the variables say. */
    unsetenv("PETREL_MODE");
    unsetenv("PETREL_FAULTS");
    umdStatus st = train_set_faults(run);
    if (!umdFailed(st))
        st = umdInit(&desc);
    const umdStatus first = st;

    if (umdFailed(st) && trouble_retry(&run->trouble, st)) {
        st = umdInit(&desc);
        if (!umdFailed(st))
            trouble_retried(&run->trouble, first, "bringing the stack up");
    }
    if (umdFailed(st)) {
        trouble_note(&run->trouble, st, "bringing the stack up");
        return umdStatusRangeOf(st) == UMD_RANGE_PARAM ? TRAIN_USAGE : trouble_is_device(&run->trouble) ? TRAIN_DEVICE : TRAIN_NO_START;
    }
    st = umdDeviceGet(0, &run->device);
    if (!umdFailed(st))
        st = create_context(run);
    if (!umdFailed(st))
        st = umdContextSetErrorCallback(run->context, trouble_callback, &run->trouble);
    if (umdFailed(st)) {
        trouble_note(&run->trouble, st, "creating the context");
        return trouble_is_device(&run->trouble) ? TRAIN_DEVICE : TRAIN_NO_START;
    }
    return TRAIN_DONE;
}

static umdDeviceInfo device_info(const struct train_run *run)
{
    umdDeviceInfo info = { .size_B = sizeof(info) };
    if (!run->device.id || umdDeviceGetInfo(run->device, &info) != UMD_SUCCESS)
        info = (umdDeviceInfo){ .size_B = sizeof(info) };
    return info;
}

/*
 * The failure of a job is told before the reset that it leads to has ended. Whether the device came back from it shows when it is given
 * something to do: that waits for the reset, and either ends or meets the loss, which the device's facts then have.
 */
static void try_device(const struct train_run *run)
{
    umdContext context = { 0 };
    umdStream stream;
    umdDevicePtr ptr;
    umdStatus st = umdContextCreate(run->device, &context);

    if (!umdFailed(st))
        st = umdStreamCreate(context, UMD_STREAM_COMPUTE, 0, &stream);
    if (!umdFailed(st))
        st = umdMemAlloc(context, TRY_B, 0, 0, &ptr);
    if (!umdFailed(st))
        st = umdMemset(stream, ptr, 0, 4, TRY_B);
    if (!umdFailed(st))
        st = umdStreamSynchronize(stream, TRY_NS);
    if (context.id)
        st = umdContextDestroy(context);
    (void)st; /* the facts of the device are asked for afterwards, whatever this met */
}

/* The failure on one screen; of a mistake in the arguments one line. */
static void tell_failure(struct train_run *run, int status, uint64_t resets)
{
    struct trouble *t = &run->trouble;
    uint32_t step = !run->started ? 0 : run->result.steps < run->result.steps_planned ? run->result.steps + 1 : run->result.steps;
    char head[128];

    progress_clear();
    fflush(stdout);
    if (t->code == UMD_SUCCESS) {
        fprintf(stderr, "umd-train: %s: %s\n", status == TRAIN_WRONG ? "wrong result" : "could not start", t->own);
        if (t->lost)
            fprintf(stderr, "umd-train: the device is lost, too: %s: %s\n", umdStatusName(t->lost), umdStatusTodo(t->lost));
    } else if (status == TRAIN_USAGE) {
        trouble_print_line(t, stderr);
    } else {
        if (status == TRAIN_NO_START)
            snprintf(head, sizeof(head), "could not start");
        else
            trouble_headline(t, step, run->result.steps_planned, head, sizeof(head));
        trouble_print(t, stderr, head, run->started, resets);
    }
}

static void tell_success(const struct train_run *run)
{
    const struct train_result *r = &run->result;

    progress_clear();
    if (run->opt.verify && !run->opt.quiet)
        printf("gradients of %u steps agree with the host reference, largest deviation %.1e\n", r->verified, r->verify_worst);
    printf("%u steps, loss %.4f -> %.4f, test accuracy %.2f %%, wall %.1f s, simulated %.3f s, memory high-water mark %.1f MiB\n", r->steps,
           (double)r->loss_first, (double)r->loss_last, r->accuracy * 100.0, r->wall_s, (double)r->device_ns * 1e-9,
           (double)r->vram_high_B / 1048576.0);
}

static int run_workload(const struct workload *workload, struct train_run *run)
{
    double start = train_now_s();
    run->stopped_by = train_stop_signal();
    int status = run->stopped_by ? TRAIN_SIGNAL + run->stopped_by : bring_up(run);
    umdDeviceInfo before = device_info(run), after;

    if (status == TRAIN_DONE)
        status = workload->run(run);
    trouble_settle(&run->trouble, false);
    if (trouble_is_device(&run->trouble) && run->context.id && device_info(run).lost_code == UMD_SUCCESS)
        try_device(run);
    after = device_info(run);
    run->trouble.lost = after.lost_code;
    run->result.device_asked = run->device.id && after.lost_code == UMD_SUCCESS && after.device_ns >= before.device_ns;
    run->result.device_ns = run->result.device_asked ? after.device_ns - before.device_ns : 0;
    run->result.resets = after.reset_count;
    run->result.vram_high_B = after.vram_high_water_B;
    run->result.wall_s = train_now_s() - start;
    if (status != TRAIN_DONE && status < TRAIN_SIGNAL)
        tell_failure(run, status, after.reset_count);
    if (run->context.id && umdFailed(umdContextDestroy(run->context)) && status == TRAIN_DONE)
        trouble_notice(&run->trouble, UMD_ERR_INTERNAL, "the context could not be destroyed");
    if (run->device.id && umdFailed(umdShutdown()) && status == TRAIN_DONE)
        trouble_notice(&run->trouble, UMD_ERR_INTERNAL, "the stack could not be shut down");
    trouble_settle(&run->trouble, status == TRAIN_DONE || status >= TRAIN_SIGNAL);
    progress_clear();
    trouble_print_notices(&run->trouble, stdout);
    if (status == TRAIN_DONE)
        tell_success(run);
    return status;
}

/* ---- The end ---- */

/* The file that the driver's log goes to, NULL if there is none; the text file of the environment may be in use beside --log. */
static const char *log_in_use(const struct train_options *o)
{
    const char *text = getenv("UMD_LOG_FILE"), *json = getenv("UMD_LOG_JSON");
    return o->log ? o->log : json && *json ? json : text && *text ? text : NULL;
}

/* A log that is not whole must not look so. Console lines that could not be written count as well. */
static void tell_log(const struct train_options *o)
{
    const char *text = getenv("UMD_LOG_FILE"), *log = log_in_use(o);
    bool both = log && text && *text && log != text;
    char lost[160] = "", dropped[96] = "";
    umdLogStats stats;

    umdLogFlush(1000);
    umdLogGetStats(&stats);
    if (!stats.sink_errors && !stats.dropped)
        return;
    if (stats.sink_errors)
        snprintf(lost, sizeof(lost), "%" PRIu64 " record(s) could not be written: %s", stats.lost,
                 stats.sink_errno ? strerror(stats.sink_errno) : "reason unknown");
    if (stats.dropped)
        snprintf(dropped, sizeof(dropped), "%s%" PRIu64 " record(s) came faster than they could be written", lost[0] ? "; " : "", stats.dropped);
    fprintf(stderr, "umd-train: the log%s%s%s%s is not whole: %s%s\n", log ? " " : " on the console", log ? log : "", both ? " or " : "",
            both ? text : "", lost, dropped);
}

static void tell_stopped(const struct train_run *run)
{
    const struct train_result *r = &run->result;
    char loss[64] = "";

    if (r->steps)
        snprintf(loss, sizeof(loss), "loss %.4f -> %.4f, ", (double)r->loss_first, (double)r->loss_last);
    if (run->device.id)
        fprintf(stderr, "umd-train: stopped by SIG%s at step %u of %u; %sno test accuracy, the device was shut down", sigabbrev_np(run->stopped_by),
                r->steps, r->steps_planned, loss);
    else
        fprintf(stderr, "umd-train: stopped by SIG%s before the device was brought up", sigabbrev_np(run->stopped_by));
    fprintf(stderr, "%s%s\n", run->opt.report ? ", report in " : "", run->opt.report ? run->opt.report : "");
}

/* Value: status, or that of a report that could not be written. */
static int finish(const struct workload *workload, struct train_run *run, int status)
{
    char why[1200];

    status = tool_finish(status);
    if (run->opt.report && !report_write(run->opt.report, workload->name, run, status, why, sizeof(why))) {
        status = train_fail(run, status ? status : TRAIN_NO_START, "%s", why);
        run->opt.report = NULL;
    }
    tell_log(&run->opt);
    if (run->stopped_by)
        tell_stopped(run);
    return status;
}

/* Mistakes in what was given are told before anything is touched: an older log stays where it is. */
static int run_all(const struct workload *workload, struct train_run *run)
{
    int status = set_up_console(run);

    if (status == TRAIN_DONE)
        status = train_read_faults(run);
    if (status == TRAIN_DONE)
        status = set_up_log(run);
    if (status != TRAIN_DONE)
        return status;
    run->trouble.log = log_in_use(&run->opt);
    train_stop_install();
    if (load_data(run))
        return run_workload(workload, run);
    run->stopped_by = run->trouble.own[0] ? 0 : train_stop_signal();
    return run->stopped_by ? TRAIN_SIGNAL + run->stopped_by : TRAIN_NO_START;
}

int main(int argc, char **argv)
{
    static struct train_run run = { .result = { .accuracy = -1.0 } };
    const struct workload *workload = NULL;
    char why[1200];

    argc = tool_start("umd-train", argc, argv);
    switch (options_parse(argc, (const char **)argv, &run.opt, &workload)) {
    case OPTIONS_BAD: return TRAIN_USAGE;
    case OPTIONS_DONE: return tool_finish(TRAIN_DONE);
    case OPTIONS_RUN: break;
    }
    trouble_init(&run.trouble);
    if (run.opt.report && !report_begin(run.opt.report, why, sizeof(why)))
        return train_fail(&run, TRAIN_NO_START, "%s", why);
    run.trouble.no_pause = run.opt.stepped;
    if (run.opt.stepped)
        umd_sys_step_begin(run.opt.seed); /* to the end of the process: the first and the last line of the log are virtual, too */
    int status = finish(workload, &run, run_all(workload, &run));
    dataset_free(&run.train);
    dataset_free(&run.test);
    trouble_fini(&run.trouble);
    if (run.stopped_by)
        train_stop_raise(run.stopped_by);
    return status;
}
