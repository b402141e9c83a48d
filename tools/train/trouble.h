/* SPDX-License-Identifier: MIT */
/* trouble.h - what went wrong in a run: collected from calls and the asynchronous callback, told on one screen. */
#ifndef TRAIN_TROUBLE_H
#define TRAIN_TROUBLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <umd/umd.h>

#define TROUBLE_NOTICES 8u
#define TROUBLE_LINES 22u   /**< most lines of a report */
#define TROUBLE_CAUSES 4u

/** Something that the run went on after. */
struct trouble_notice {
    umdStatus code;
    uint32_t count;
    char text[256];
};

struct trouble {
    pthread_mutex_t lock;          /**< the callback runs on a thread of the driver */
    umdStatus code;                /**< first failure of a call; UMD_SUCCESS: none */
    umdErrorDetail detail;         /**< its record */
    bool have_root;                /**< root is known: the call reported what an earlier failure led to */
    umdErrorDetail root;
    bool have_async;
    umdErrorDetail async;          /**< first error that came by callback */
    char doing[96];                /**< what the run was about when the call failed */
    char own[1400];                /**< a failure of the run itself (wrong result, no memory), "" if none */
    bool have_recovered;
    umdErrorDetail recovered;      /**< first error that the driver recovered from */
    const char *log;               /**< file that the driver's log goes to; NULL: none */
    umdStatus lost;                /**< what the device was lost for; UMD_SUCCESS: it is alive */
    bool no_pause;                 /**< virtual time: nothing to wait for before a retry */
    uint32_t retries;              /**< calls that were tried again as their advice says, and then worked or not */
    uint32_t notice_count;
    struct trouble_notice notices[TROUBLE_NOTICES];
};

/** A failure as data, for the report. Texts are "" where the records do not say. */
struct trouble_record {
    umdStatus code;
    char id[48];                   /**< as in the log: boot:pid:number */
    char where[112];               /**< function (file:line) that raised it */
    char figures[UMD_RECORD_FIGURES];
};
struct trouble_facts {
    struct trouble_record root;
    uint32_t cause_count;          /**< how the call met it, and what it came from */
    struct trouble_record causes[1 + TROUBLE_CAUSES];
    bool other_callback;           /**< what came by callback is none of these */
    struct trouble_record callback;
    char kernel[64], source[96], stream[24], submission[24], job[24], done[96];
};
void trouble_facts(struct trouble *t, struct trouble_facts *out);

void trouble_init(struct trouble *t);
void trouble_fini(struct trouble *t);

/** Right after a failed call, on its thread: keeps code and record of the first. Value: true, so that `return !trouble_note()` reads. */
bool trouble_note(struct trouble *t, umdStatus st, const char *doing_fmt, ...) __attribute__((format(printf, 3, 4)));
/** A failure that no call reported. */
void trouble_own(struct trouble *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** Went wrong, was dealt with. */
void trouble_notice(struct trouble *t, umdStatus code, const char *text);
/** Right after a failed call, on its thread: true if it changed nothing and its advice is to try again; waits as long as that says. */
bool trouble_retry(struct trouble *t, umdStatus st);
/** That try worked; the run goes on after st. */
void trouble_retried(struct trouble *t, umdStatus st, const char *doing_fmt, ...) __attribute__((format(printf, 3, 4)));
/** For umdContextSetErrorCallback; user is the struct trouble. */
void trouble_callback(umdContext context, const umdErrorDetail *detail, void *user);

/** After the run: follows the causes of a ban or a cancelled job to what it was for; an error by callback that stopped nothing becomes a notice. */
void trouble_settle(struct trouble *t, bool went_well);
/** Code that the failure is told by: of the root where it is known. */
umdStatus trouble_root(const struct trouble *t);
/** The device failed at work, as opposed to something that could not be had, or a job that was not accepted. */
bool trouble_is_device(const struct trouble *t);
/** The headline of a run that ended by it: "stopped by a device error at step 4 of 80". step 0: before the first. */
void trouble_headline(const struct trouble *t, uint32_t step, uint32_t steps, char *out, size_t out_B);

/** One screen: what, where, why, what was done about it, what to do next. head: see above. started: training had begun. */
void trouble_print(struct trouble *t, FILE *to, const char *head, bool started, uint64_t resets);
/** One line for a mistake in the arguments: "CODE: sentence (figures)". */
void trouble_print_line(const struct trouble *t, FILE *to);
/** The notices, one line each; nothing if there are none. */
void trouble_print_notices(struct trouble *t, FILE *to);

#endif
