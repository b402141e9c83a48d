/* SPDX-License-Identifier: MIT */
/* train.h - what umd-train's parts share: options, the run, its result, the workload registry. */
#ifndef TRAIN_H
#define TRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include <umd/umd.h>

#include "dataset.h"
#include "trouble.h"

enum train_exit {
    TRAIN_DONE = 0,      /**< trained */
    TRAIN_USAGE = 1,     /**< the command line is wrong */
    TRAIN_NO_START = 2,  /**< data, files, device or memory were not to be had before the first step */
    TRAIN_DEVICE = 3,    /**< the device, or what could not be had later, stopped it */
    TRAIN_WRONG = 4,     /**< ran to its end with a wrong result */
    TRAIN_SIGNAL = 128,  /**< plus the number of the signal that asked it to stop, which then ends the process */
};

struct train_options {
    const char *data_dir, *report, *log, *log_level, *mode, *carrier;
    const char *faults, *faults_from; /**< NULL: none; as given, then its text. from: the option or variable that has it */
    bool stepped, functional;         /**< what mode says */
    int epochs, batch, hidden, train_size, test_size, watchdog_ms;
    double rate;
    unsigned long long seed;
    bool verify, quiet;
};

#define TRAIN_HISTORY 512u
struct train_point {
    uint32_t step;
    float loss;
};

struct train_result {
    uint32_t steps, steps_planned, train_images, test_images, epochs;
    float loss_first, loss_last;
    double accuracy;               /**< 0..1 on the test set; negative: never measured */
    double wall_s;
    bool device_asked;             /**< device_ns is known: there was a device, and it was not lost */
    uint64_t device_ns, vram_high_B;
    uint64_t resets;               /**< of the device, by the kernel driver */
    uint32_t verified;             /**< steps whose gradients were compared */
    double verify_worst;           /**< largest deviation, see ref.h */
    uint32_t history_count;
    struct train_point history[TRAIN_HISTORY];
};

/** One run of a workload. The workload finds device and context up, and destroys neither. */
struct train_run {
    struct train_options opt;
    struct train_result result;
    struct dataset train, test;
    umdDevice device;
    umdContext context;
    bool started;                  /**< the workload has set up all it needs, and trains */
    int stopped_by;                /**< signal after which the workload ended early; 0: none */
    struct trouble trouble;
};

struct workload {
    const char *name, *summary;
    /** Value: exit status. What went wrong has been noted in run->trouble. */
    int (*run)(struct train_run *run);
};
extern const struct workload workload_mlp;


/* progress.c: a bar on a terminal, plain lines elsewhere, nothing with --quiet. */
void progress_step(const struct train_run *run, uint32_t epoch, uint32_t step, float loss);
void progress_clear(void);

/* stop.c: SIGINT and SIGTERM. */
void train_stop_install(void);
/** The signal that asked the run to stop, 0: none. A workload looks after each step. */
int train_stop_signal(void);
/** Ends the process by that signal. */
void train_stop_raise(int sig);

/* files.c */
/** What a path names in the end: links followed, to what does not exist, too. false: its folder does not exist. out: PATH_MAX bytes. */
bool train_full_path(const char *path, char *out);
/** Two names of one file or folder; writing to a device or pipe twice harms none. */
bool train_same_file(const char *a, const char *b);

/* faults.c: the plan of --faults or $PETREL_FAULTS. */
/** The file that o->faults stands for, NULL: it is the specification itself. */
const char *train_fault_file(const struct train_options *o);
/** Reads the file, if it is one, and checks the text; o->faults is the text then. Anything but TRAIN_DONE: it has been told. */
int train_read_faults(struct train_run *run);
/** The plan from here on, for all starts of the stack: what was to happen once has happened when one is tried again. */
umdStatus train_set_faults(const struct train_run *run);

/* main.c */
/** Tells a failure of the run itself in one line, and keeps it for the report. Value: status. */
int train_fail(struct train_run *run, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* report.c */
/** Checks before training that the report can be written, and takes an older one away; false: one line in `why`. */
bool report_begin(const char *path, char *why, uint32_t why_B);
/** Writes all of it or nothing; where path is a link, to what it names. */
bool report_write(const char *path, const char *workload, struct train_run *run, int exit_status, char *why, uint32_t why_B);

double train_now_s(void);

#endif
