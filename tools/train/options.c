/* SPDX-License-Identifier: MIT */
/* options.c - the command line of umd-train: one table for parsing, help and the man page. */
#include "options.h"

#include <errno.h>
#include <limits.h>
#include <popt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "digits.h"
#include "kernels/mlp_args.h"

#define MAX_LINKS 8

static const char *const dataset_files[] = {
    "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte",
};

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
           "\nExit status: 0 trained, 1 usage, 2 could not start, 3 stopped by a device error or for want of a resource,\n"
           "4 wrong result; "
           "after SIGINT or SIGTERM the step under way is finished and the process then ends by that signal; a second one ends it at once.\n");
}

static bool usage(const char *fmt, const char *a, const char *b)
{
    fprintf(stderr, "umd-train: ");
    fprintf(stderr, fmt, a, b);
    fprintf(stderr, "; try umd-train --help\n");
    return false;
}

/* Options that take a whole number: one row each. */
struct number {
    const char *name, *fallback, *argument, *help; /* fallback: what holds without the option */
    unsigned long long low, high;
};
enum { N_EPOCHS, N_BATCH, N_HIDDEN, N_SEED, N_TRAIN_SIZE, N_TEST_SIZE, N_WATCHDOG, NUMBER_COUNT };
static const struct number numbers[NUMBER_COUNT] = {
    [N_EPOCHS] = { "epochs", "3", "N", "passes over the training set", 1, 1000 },
    [N_BATCH] = { "batch", "64", "N", "images a step, a multiple of 8", 8, 1024 },
    [N_HIDDEN] = { "hidden", "96", "N", "hidden units", 1, 1024 },
    [N_SEED] = { "seed", "1", "N", "of images, weights, order, and stepped clocks", 0, ULLONG_MAX },
    [N_TRAIN_SIZE] = { "train-size", "0", "N", "training images; 0: 20000 built-in, all of --data", 0, 1000000 },
    [N_TEST_SIZE] = { "test-size", "0", "N", "test images; 0: 5000 built-in, all of --data", 0, 1000000 },
    [N_WATCHDOG] = { "watchdog-ms", "0", "N", "device time without progress that is a hang; 0: the driver's choice", 0, 3600000 },
};

static bool parse_number(const struct number *n, const char *text, unsigned long long *out)
{
    char *end, range[80];

    errno = 0;
    *out = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && !*end && !errno && *out >= n->low && *out <= n->high)
        return true;
    snprintf(range, sizeof(range), "', not a whole number from %llu to %llu", n->low, n->high);
    fprintf(stderr, "umd-train: --%s is '%s%s; try umd-train --help\n", n->name, text, range);
    return false;
}

static bool parse_rate(const char *text, double *out)
{
    char *end;

    *out = strtod(text, &end);
    if (*text && !*end && *out > 0.0 && *out <= 100.0)
        return true;
    return usage("--lr is '%s', not a number above 0 and at most 100%s", text, "");
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

/* The directory's real path and the name in it: two spellings of one file give the same, whether it exists or not. Follows dangling links. */
static bool full_path(const char *path, char out[PATH_MAX])
{
    char dir[PATH_MAX], real[PATH_MAX], link[PATH_MAX];

    if (snprintf(out, PATH_MAX, "%s", path) >= PATH_MAX)
        return false;
    for (int depth = 0; depth < MAX_LINKS; depth++) {
        const char *slash = strrchr(out, '/'), *name = slash ? slash + 1 : out;
        snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - out) + 1 : 1, slash ? out : ".");
        if (!realpath(dir, real) || snprintf(dir, sizeof(dir), "%s/%s", real, name) >= PATH_MAX)
            return false;
        ssize_t n = readlink(dir, link, sizeof(link) - 1);
        if (n < 0) {
            memcpy(out, dir, sizeof(dir));
            return true;
        }
        link[n] = '\0';
        if (snprintf(out, PATH_MAX, "%s%s%s", link[0] == '/' ? "" : real, link[0] == '/' ? "" : "/", link) >= PATH_MAX)
            return false;
    }
    return false;
}

static bool same_file(const char *a, const char *b)
{
    char full_a[PATH_MAX], full_b[PATH_MAX];
    struct stat sa, sb;

    if (stat(a, &sa) == 0 && stat(b, &sb) == 0)
        return sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
    return full_path(a, full_a) && full_path(b, full_b) && strcmp(full_a, full_b) == 0;
}

struct named_file {
    const char *option, *path;
};

/* One of the files that --data DIR stands for, or DIR itself. */
static bool is_data(const char *dir, const char *path)
{
    char file[PATH_MAX];

    if (same_file(dir, path))
        return true;
    for (size_t i = 0; i < sizeof(dataset_files) / sizeof(dataset_files[0]); i++) {
        for (int gz = 0; gz < 2; gz++) {
            if (snprintf(file, sizeof(file), "%s/%s%s", dir, dataset_files[i], gz ? ".gz" : "") < PATH_MAX && same_file(file, path))
                return true;
        }
    }
    return false;
}

/* A file that is written must be no other: the second writer would destroy it, the reader find what is not its. */
static bool check_files(const struct train_options *o)
{
    const struct named_file out[] = {
        { "--report", o->report }, { "--log", o->log }, { "UMD_LOG_FILE", getenv("UMD_LOG_FILE") }, { "UMD_LOG_JSON", getenv("UMD_LOG_JSON") },
    };
    const char *data = o->data_dir;
    char text[2 * PATH_MAX];

    for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++) {
        if (!out[i].path || !*out[i].path)
            continue;
        snprintf(text, sizeof(text), "%s %s", out[i].option, out[i].path);
        if (i > 0 && o->report && same_file(o->report, out[i].path))
            return usage("%s and --report %s are the same file", text, o->report);
        if (o->faults && same_file(o->faults, out[i].path))
            return usage("%s and --faults %s are the same file", text, o->faults);
        if (data && is_data(data, out[i].path))
            return usage("%s is, or is a file of, --data %s", text, data);
    }
    return true;
}

static bool check(const struct train_options *o)
{
    static const char *const modes[] = { "threaded", "stepped", "functional", NULL };
    static const char *const carriers[] = { "direct", "loopback", NULL };
    const struct { const char *name, *value; } texts[] = {
        { "data", o->data_dir }, { "faults", o->faults }, { "report", o->report }, { "log", o->log }, { "log-level", o->log_level },
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i].value && !*texts[i].value)
            return usage("--%s is empty%s", texts[i].name, "");
    }
    if (!check_files(o))
        return false;
    if (o->batch % (int)MLP_TILE_ROWS != 0)
        return usage("--batch must be a multiple of 8%s%s", "", "");
    return one_of("mode", o->mode, modes, "threaded, stepped, functional") &&
           (!o->carrier || one_of("carrier", o->carrier, carriers, "direct, loopback"));
}

/* Options with a value, as popt hands them out. The strings live as long as the process, as the options point to them. */
enum { W_DATA = NUMBER_COUNT, W_RATE, W_FAULTS, W_REPORT, W_LOG, W_LEVEL, W_MODE, W_CARRIER, WORD_COUNT };
static struct word {
    char *text, *held; /* held: what to free when the option comes again */
} words[WORD_COUNT];

static bool take_numbers(struct train_options *o)
{
    unsigned long long v[NUMBER_COUNT];

    for (int i = 0; i < NUMBER_COUNT; i++) {
        if (!parse_number(&numbers[i], words[i].text, &v[i]))
            return false;
    }
    o->epochs = (int)v[N_EPOCHS];
    o->batch = (int)v[N_BATCH];
    o->hidden = (int)v[N_HIDDEN];
    o->seed = v[N_SEED];
    o->train_size = (int)v[N_TRAIN_SIZE];
    o->test_size = (int)v[N_TEST_SIZE];
    o->watchdog_ms = (int)v[N_WATCHDOG];
    return parse_rate(words[W_RATE].text, &o->rate);
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

static int next_option(poptContext pc)
{
    int rc;

    while ((rc = poptGetNextOpt(pc)) > 0) {
        struct word *w = &words[rc - 1];
        free(w->held);
        w->held = w->text;
    }
    return rc;
}

static bool take_values(poptContext pc, struct train_options *o, const struct workload **workload_out)
{
    o->data_dir = words[W_DATA].text;
    o->faults = words[W_FAULTS].text;
    o->report = words[W_REPORT].text;
    o->log = words[W_LOG].text;
    o->log_level = words[W_LEVEL].text;
    o->mode = words[W_MODE].text;
    o->carrier = words[W_CARRIER].text;
    return take_words(pc, workload_out) && take_numbers(o) && check(o);
}

enum options_result options_parse(int argc, const char **argv, struct train_options *o, const struct workload **workload_out)
{
    int show_help = 0, show_version = 0, verify = 0, quiet = 0;

    for (int i = 0; i < NUMBER_COUNT; i++)
        words[i].text = (char *)numbers[i].fallback;
    words[W_RATE].text = (char *)"0.2";
    words[W_MODE].text = (char *)"threaded";
#define WORD(w_, name_, flags_, help_, argument_) { name_, 0, POPT_ARG_STRING | (flags_), &words[w_].text, (w_) + 1, help_, argument_ }
#define NUMBER(n_) WORD(n_, numbers[n_].name, POPT_ARGFLAG_SHOW_DEFAULT, numbers[n_].help, numbers[n_].argument)
    const struct poptOption table[] = {
        WORD(W_DATA, "data", 0, "train on MNIST's IDX files in DIR, plain or .gz (default: built-in digits)", "DIR"),
        NUMBER(N_EPOCHS), NUMBER(N_BATCH), NUMBER(N_HIDDEN),
        WORD(W_RATE, "lr", POPT_ARGFLAG_SHOW_DEFAULT, "learning rate at its top", "R"),
        NUMBER(N_SEED), NUMBER(N_TRAIN_SIZE), NUMBER(N_TEST_SIZE),
        { "verify", 0, POPT_ARG_NONE, &verify, 0, "hold gradients of some steps against a host reference", NULL },
        WORD(W_FAULTS, "faults", 0, "break something: a fault specification, or a file that holds one", "SPEC|FILE"),
        WORD(W_REPORT, "report", 0, "write the run as JSON", "FILE"),
        WORD(W_LOG, "log", 0, "write the driver's log as JSON lines", "FILE"),
        WORD(W_LEVEL, "log-level", 0, "levels of the log, such as umd.mem=trace,kmd=debug,warn", "SPEC"),
        WORD(W_MODE, "mode", 0, "threaded (default), stepped or functional", "MODE"),
        WORD(W_CARRIER, "carrier", 0, "direct or loopback (default: $PETREL_CARRIER, else direct)", "NAME"),
        NUMBER(N_WATCHDOG),
        { "quiet", 'q', POPT_ARG_NONE, &quiet, 0, "no progress", NULL },
        { "help", 'h', POPT_ARG_NONE, &show_help, 0, "show this", NULL },
        { "version", 'V', POPT_ARG_NONE, &show_version, 0, "show the version", NULL },
        POPT_TABLEEND
    };
#undef NUMBER
#undef WORD
    poptContext pc = poptGetContext("umd-train", argc, argv, table, 0);
    poptSetOtherOptionHelp(pc, "WORKLOAD [OPTION...]\nTrains a neural network on the simulated GPU.\n");
    int rc = next_option(pc);
    enum options_result result = OPTIONS_DONE;

    if (rc < -1) {
        usage("%s: %s", poptBadOption(pc, POPT_BADOPTION_NOALIAS), poptStrerror(rc));
        result = OPTIONS_BAD;
    } else if (show_help) {
        print_help(pc);
    } else if (show_version) {
        printf("umd-train %s\n", PETREL_VERSION);
    } else {
        o->verify = verify;
        o->quiet = quiet;
        result = take_values(pc, o, workload_out) ? OPTIONS_RUN : OPTIONS_BAD;
    }
    poptFreeContext(pc);
    return result;
}
