/* SPDX-License-Identifier: MIT */
/* options.c - the command line of umd-train: one table for parsing, help and the man page. */
#include "options.h"

#include <popt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "digits.h"
#include "kernels/mlp_args.h"

static const struct workload *const workloads[] = { &workload_mlp };
#define WORKLOAD_COUNT (sizeof(workloads) / sizeof(workloads[0]))

static void print_help(poptContext pc)
{
    poptPrintHelp(pc, stdout, 0);
    printf("\nWorkloads:\n");
    for (size_t i = 0; i < WORKLOAD_COUNT; i++)
        printf("  %-8s %s\n", workloads[i]->name, workloads[i]->summary);
    printf("\nExamples:\n"
           "  umd-train mlp                                          train the built-in digits on the simulated GPU\n"
           "  umd-train mlp --verify --report run.json               compare gradients with the host, write a report\n"
           "  umd-train mlp --data ~/mnist                           train MNIST's IDX files\n"
           "  umd-train mlp --faults 'hw.cu.hang[nth=40]=fire'       see it fail; umd-inject list prints all sites\n"
           "\nExit status: 0 trained, 1 usage, 2 could not start, 3 stopped by a device error, 4 wrong result.\n");
}

static bool usage(const char *fmt, const char *a, const char *b)
{
    fprintf(stderr, "umd-train: ");
    fprintf(stderr, fmt, a, b);
    fprintf(stderr, "; try umd-train --help\n");
    return false;
}

static bool in_range(const char *name, long long v, long long low, long long high)
{
    char text[96];
    if (v >= low && v <= high)
        return true;
    snprintf(text, sizeof(text), "is %lld, not within %lld to %lld", v, low, high);
    return usage("--%s %s", name, text);
}

static bool one_of(const char *name, const char *value, const char *const *allowed, const char *list)
{
    for (; *allowed; allowed++) {
        if (strcmp(value, *allowed) == 0)
            return true;
    }
    fprintf(stderr, "umd-train: --%s is '%s', not one of %s; try umd-train --help\n", name, value, list);
    return false;
}

static bool check(const struct train_options *o)
{
    static const char *const modes[] = { "threaded", "stepped", "functional", NULL };
    static const char *const carriers[] = { "direct", "loopback", NULL };

    if (o->batch % (int)MLP_TILE_ROWS != 0)
        return usage("--batch must be a multiple of 8%s%s", "", "");
    if (!(o->rate > 0.0 && o->rate <= 100.0))
        return usage("--lr must be above 0 and at most 100%s%s", "", "");
    return in_range("epochs", o->epochs, 1, 1000) && in_range("batch", o->batch, 8, 1024) && in_range("hidden", o->hidden, 1, 1024) &&
           in_range("train-size", o->train_size, 0, 1000000) && in_range("test-size", o->test_size, 0, 1000000) && in_range("watchdog-ms", o->watchdog_ms, 0, 3600000) &&
           one_of("mode", o->mode, modes, "threaded, stepped, functional") &&
           one_of("carrier", o->carrier, carriers, "direct, loopback");
}

/* A word after the options: the workload, once. */
static bool take_words(poptContext pc, const struct workload **workload_out)
{
    const char *name = poptGetArg(pc), *extra = poptGetArg(pc);

    if (!name)
        return usage("no workload named; there is: %s%s", workloads[0]->name, "");
    if (extra)
        return usage("one workload at a time: '%s' is one too many%s", extra, "");
    for (size_t i = 0; i < WORKLOAD_COUNT; i++) {
        if (strcmp(workloads[i]->name, name) == 0) {
            *workload_out = workloads[i];
            return true;
        }
    }
    return usage("unknown workload '%s'; there is: %s", name, workloads[0]->name);
}

enum options_result options_parse(int argc, const char **argv, struct train_options *o, const struct workload **workload_out)
{
    int show_help = 0, show_version = 0, verify = 0, quiet = 0;
    static char *strings[7]; /* for the life of the process, as the options point to them */
    const struct poptOption table[] = {
        { "data", 0, POPT_ARG_STRING, &strings[0], 0, "train on MNIST's IDX files in DIR, plain or .gz (default: built-in digits)", "DIR" },
        { "epochs", 0, POPT_ARG_INT | POPT_ARGFLAG_SHOW_DEFAULT, &o->epochs, 0, "passes over the training set", "N" },
        { "batch", 0, POPT_ARG_INT | POPT_ARGFLAG_SHOW_DEFAULT, &o->batch, 0, "images a step, a multiple of 8", "N" },
        { "hidden", 0, POPT_ARG_INT | POPT_ARGFLAG_SHOW_DEFAULT, &o->hidden, 0, "hidden units", "N" },
        { "lr", 0, POPT_ARG_DOUBLE | POPT_ARGFLAG_SHOW_DEFAULT, &o->rate, 0, "learning rate at its top", "R" },
        { "seed", 0, POPT_ARG_LONGLONG | POPT_ARGFLAG_SHOW_DEFAULT, &o->seed, 0, "of images, weights, order, and stepped clocks", "N" },
        { "train-size", 0, POPT_ARG_INT, &o->train_size, 0, "training images (default: 20000 built-in, all of --data)", "N" },
        { "test-size", 0, POPT_ARG_INT, &o->test_size, 0, "test images (default: 5000 built-in, all of --data)", "N" },
        { "verify", 0, POPT_ARG_NONE, &verify, 0, "hold gradients of some steps against a host reference", NULL },
        { "faults", 0, POPT_ARG_STRING, &strings[1], 0, "break something: a fault specification, or a file that holds one", "SPEC|FILE" },
        { "report", 0, POPT_ARG_STRING, &strings[2], 0, "write the run as JSON", "FILE" },
        { "log", 0, POPT_ARG_STRING, &strings[3], 0, "write the driver's log as JSON lines", "FILE" },
        { "log-level", 0, POPT_ARG_STRING, &strings[4], 0, "levels of the log, such as umd.mem=trace,kmd=debug,warn", "SPEC" },
        { "mode", 0, POPT_ARG_STRING, &strings[5], 0, "threaded (default), stepped or functional", "MODE" },
        { "carrier", 0, POPT_ARG_STRING, &strings[6], 0, "direct (default) or loopback", "NAME" },
        { "watchdog-ms", 0, POPT_ARG_INT, &o->watchdog_ms, 0, "device time without progress that is a hang (default: the driver's)", "N" },
        { "quiet", 'q', POPT_ARG_NONE, &quiet, 0, "no progress", NULL },
        { "help", 'h', POPT_ARG_NONE, &show_help, 0, "show this", NULL },
        { "version", 'V', POPT_ARG_NONE, &show_version, 0, "show the version", NULL },
        POPT_TABLEEND
    };
    poptContext pc = poptGetContext("umd-train", argc, argv, table, 0);
    poptSetOtherOptionHelp(pc, "WORKLOAD [OPTION...]\nTrains a neural network on the simulated GPU.\n");
    int rc = poptGetNextOpt(pc);
    enum options_result result = OPTIONS_BAD;

    if (rc < -1) {
        usage("%s: %s", poptBadOption(pc, POPT_BADOPTION_NOALIAS), poptStrerror(rc));
    } else if (show_help) {
        print_help(pc);
        result = OPTIONS_DONE;
    } else if (show_version) {
        printf("umd-train %s\n", PETREL_VERSION);
        result = OPTIONS_DONE;
    } else {
        o->data_dir = strings[0];
        o->faults = strings[1];
        o->report = strings[2];
        o->log = strings[3];
        o->log_level = strings[4];
        o->mode = strings[5] ? strings[5] : "threaded";
        o->carrier = strings[6] ? strings[6] : "direct";
        o->verify = verify;
        o->quiet = quiet;
        result = take_words(pc, workload_out) && check(o) ? OPTIONS_RUN : OPTIONS_BAD;
    }
    poptFreeContext(pc);
    return result;
}
