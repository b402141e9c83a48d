/* SPDX-License-Identifier: MIT */
/* options.c - the command line of umd-train: one table for parsing, help and the man page. */
#include "options.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "digits.h"
#include "fault_plan.h"
#include "kernels/mlp_args.h"
#include "umd-tool.h"

static const char *const dataset_files[] = {
    "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte",
};

static const char *const modes[] = { "threaded", "stepped", "functional", NULL };
static const char *const carriers[] = { "direct", "loopback", NULL };
static const struct workload *const workloads[] = { &workload_mlp };
#define WORKLOAD_COUNT (sizeof(workloads) / sizeof(workloads[0]))

static bool usage(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));
static bool usage(const char *fmt, ...)
{
    char text[2 * PATH_MAX + 200];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    (void)tool_usage("%s", text);
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

static bool one_of(const char *value, size_t value_B, const char *const *allowed)
{
    for (; *allowed; allowed++) {
        if (strlen(*allowed) == value_B && memcmp(value, *allowed, value_B) == 0)
            return true;
    }
    return false;
}

/* source: the option or variable that has it. */
static bool not_one_of(const char *source, const char *value, const char *list)
{
    return usage("%s is '%s', not one of %s", source, value, list);
}

/* --mode, else $PETREL_MODE, a comma list as umdInit reads it, else threaded. */
static bool take_mode(struct train_options *o)
{
    const char *env = getenv("PETREL_MODE"), *source = o->mode ? "--mode" : "PETREL_MODE";

    if (!o->mode)
        o->mode = env && *env ? env : "threaded";
    for (const char *p = o->mode;; p++) {
        size_t n = strcspn(p, ",");
        if (!one_of(p, n, modes))
            return not_one_of(source, o->mode, "threaded, stepped, functional");
        o->stepped |= strncmp(p, "stepped", n) == 0;
        o->functional |= strncmp(p, "functional", n) == 0;
        p += n;
        if (!*p)
            return true;
    }
}

/* --faults, else $PETREL_FAULTS; set but empty is not set. */
static void take_faults(struct train_options *o)
{
    const char *env = getenv("PETREL_FAULTS");

    o->faults_from = o->faults ? "--faults" : "PETREL_FAULTS";
    if (!o->faults && env && *env)
        o->faults = env;
}

struct named_file {
    const char *option, *path;
};

/* One of the files that --data DIR stands for, or DIR itself. */
static bool is_data(const char *dir, const char *path)
{
    char file[PATH_MAX];

    if (train_same_file(dir, path))
        return true;
    for (size_t i = 0; i < sizeof(dataset_files) / sizeof(dataset_files[0]); i++) {
        for (int gz = 0; gz < 2; gz++) {
            if (snprintf(file, sizeof(file), "%s/%s%s", dir, dataset_files[i], gz ? ".gz" : "") < PATH_MAX && train_same_file(file, path))
                return true;
        }
    }
    return false;
}

/* "%p" in the name of a log is the process id, as the library has it. */
static const char *log_path(const char *path, char out[PATH_MAX])
{
    size_t n = 0;

    for (const char *s = path; *s && n + 12 < PATH_MAX; s++) {
        if (s[0] == '%' && s[1] == 'p') {
            n += (size_t)snprintf(out + n, PATH_MAX - n, "%d", (int)getpid());
            s++;
        } else {
            s += s[0] == '%' && s[1] == '%';
            out[n++] = *s;
        }
    }
    out[n] = '\0';
    return out;
}

enum { OUT_REPORT, OUT_LOG, OUT_TEXT, OUT_JSON, OUT_BINARY, OUT_RUN, OUT_DISASTER, OUT_RING, OUT_COUNT };

/* Two logs, or a log and the report, in one file; --log takes the place of UMD_LOG_JSON. */
static bool check_outputs(const struct named_file out[OUT_COUNT])
{
    char text[2 * PATH_MAX], other[2 * PATH_MAX];

    for (int i = 0; i < OUT_COUNT; i++) {
        for (int k = 0; k < i; k++) {
            if (!*out[i].path || !*out[k].path || (i == OUT_JSON && k == OUT_LOG) || !train_same_file(out[i].path, out[k].path))
                continue;
            snprintf(text, sizeof(text), "%s %s", out[i].option, out[i].path);
            snprintf(other, sizeof(other), "%s %s", out[k].option, out[k].path);
            return usage("%s and %s are the same file", text, other);
        }
    }
    return true;
}

/* A file that is written must be no other: the second writer would destroy it, the reader find what is not its. */
static bool check_files(const struct train_options *o)
{
    static const char *const names[OUT_COUNT] = { "--report", "--log", "UMD_LOG_FILE", "UMD_LOG_JSON", "UMD_LOG_BINARY", "UMD_LOG_RUN",
                                                    "UMD_LOG_DISASTER", "UMD_EMERGENCY_FILE" };
    static char expanded[OUT_COUNT][PATH_MAX];
    struct named_file out[OUT_COUNT];
    const char *data = o->data_dir, *plan = o->faults ? train_fault_file(o) : NULL;
    char text[2 * PATH_MAX];

    for (int i = 0; i < OUT_COUNT; i++) {
        const char *path = i == OUT_REPORT ? o->report : i == OUT_LOG ? o->log : getenv(names[i]);
        out[i] = (struct named_file){ names[i], !path ? "" : i == OUT_REPORT ? path : log_path(path, expanded[i]) };
        if (!*out[i].path)
            continue;
        snprintf(text, sizeof(text), "%s %s", out[i].option, out[i].path);
        if (plan && train_same_file(plan, out[i].path)) {
            char other[2 * PATH_MAX];
            snprintf(other, sizeof(other), "%s %s", o->faults_from, o->faults);
            return usage("%s and %s are the same file", text, other);
        }
        if (data && is_data(data, out[i].path))
            return usage("%s is, or is a file of, --data %s", text, data);
    }
    if (!check_outputs(out))
        return false;
    const char *json = getenv(names[OUT_JSON]);
    if (o->log && json && *json && !train_same_file(out[OUT_LOG].path, out[OUT_JSON].path))
        tool_say("--log %s takes the place of UMD_LOG_JSON %s, which is not written", o->log, json);
    return true;
}

static bool check(struct train_options *o)
{
    const struct { const char *name, *value; } texts[] = {
        { "data", o->data_dir }, { "faults", o->faults }, { "report", o->report }, { "log", o->log }, { "log-level", o->log_level },
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i].value && !*texts[i].value)
            return usage("--%s is empty", texts[i].name);
    }
    take_faults(o);
    if (!check_files(o))
        return false;
    if (o->batch % (int)MLP_TILE_ROWS != 0)
        return usage("--batch must be a multiple of 8");
    if (o->train_size && o->train_size < o->batch)
        return usage("--train-size is less than --batch: not one step");
    if (o->carrier && !one_of(o->carrier, strlen(o->carrier), carriers))
        return not_one_of("--carrier", o->carrier, "direct, loopback");
    return take_mode(o);
}

/* Options with a value. The texts live as long as the process, as the options point to them. */
enum { W_DATA = NUMBER_COUNT, W_RATE, W_FAULTS, W_REPORT, W_LOG, W_LEVEL, W_MODE, W_CARRIER, WORD_COUNT };
static const char *words[WORD_COUNT];

static bool take_numbers(struct train_options *o)
{
    uint64_t v[NUMBER_COUNT];

    for (int i = 0; i < NUMBER_COUNT; i++) {
        if (!tool_number(numbers[i].name, words[i], numbers[i].low, numbers[i].high, &v[i]))
            return false;
    }
    o->epochs = (int)v[N_EPOCHS];
    o->batch = (int)v[N_BATCH];
    o->hidden = (int)v[N_HIDDEN];
    o->seed = v[N_SEED];
    o->train_size = (int)v[N_TRAIN_SIZE];
    o->test_size = (int)v[N_TEST_SIZE];
    o->watchdog_ms = (int)v[N_WATCHDOG];
    return tool_decimal("lr", words[W_RATE], 100, &o->rate);
}

/* A word after the options: the workload, once. */
static bool take_words(const struct tool_line *line, const struct workload **workload_out)
{
    if (!line->count)
        return usage("no workload named; there is: %s", workloads[0]->name);
    if (line->count > 1)
        return usage("one workload at a time: '%s' is one too many", line->words[1]);
    for (size_t i = 0; i < WORKLOAD_COUNT; i++) {
        if (strcmp(workloads[i]->name, line->words[0]) == 0) {
            *workload_out = workloads[i];
            return true;
        }
    }
    return usage("unknown workload '%s'; there is: %s", line->words[0], workloads[0]->name);
}

static bool take_values(const struct tool_line *line, struct train_options *o, const struct workload **workload_out)
{
    o->data_dir = words[W_DATA];
    o->faults = words[W_FAULTS];
    o->report = words[W_REPORT];
    o->log = words[W_LOG];
    o->log_level = words[W_LEVEL];
    o->mode = words[W_MODE];
    o->carrier = words[W_CARRIER];
    return take_words(line, workload_out) && take_numbers(o) && check(o);
}

static void lists(void)
{
    puts("Workloads:");
    for (size_t i = 0; i < WORKLOAD_COUNT; i++)
        printf("  %-8s %s\n", workloads[i]->name, workloads[i]->summary);
}

static bool complete(const struct tool_at *at)
{
    if (!at->option) {
        for (size_t i = 0; i < WORKLOAD_COUNT && at->count == 0; i++)
            tool_offer(at, workloads[i]->name);
    } else if (strcmp(at->option, "mode") == 0) {
        tool_offer_all(at, modes);
    } else if (strcmp(at->option, "carrier") == 0) {
        tool_offer_all(at, carriers);
    } else if (strcmp(at->option, "log-level") == 0) {
        tool_offer_levels(at);
    } else if (strcmp(at->option, "faults") == 0) {
        for (int i = 0; i < UMD_FAULT_SITE_COUNT; i++)
            tool_offer(at, umd_fault_site_info((enum umd_fault_site)i)->name);
        return false; /* or a file */
    } else {
        return false;
    }
    return true;
}

static const struct tool self = {
    .words = "WORKLOAD [OPTION...]", .text = "trains a neural network on the simulated GPU", .lists = lists, .complete = complete,
    .help = "Examples:\n"
            "  umd-train mlp                                          train the built-in digits on the simulated GPU\n"
            "  umd-train mlp --verify --report run.json               compare gradients with the host, write a report\n"
            "  umd-train mlp --data ~/mnist                           train MNIST's IDX files\n"
            "  umd-train mlp --faults 'hw.cu.hang[nth=40]=fire'       see it fail; umd-inject list prints all sites\n"
            "\nEnvironment: what no option says comes from PETREL_MODE, PETREL_CARRIER, PETREL_FAULTS, PETREL_WATCHDOG_MS, PETREL_PROFILE and\n"
            "PETREL_DEVICES; UMD_LOG_CONSOLE, UMD_LOG_FILE and others set the log. docs/environment.md lists all. The simulated time is the same\n"
            "from run to run in stepped mode only.\n"
            "\nExit status: 0 trained, 1 usage, 2 could not start, 3 stopped by a device error or for want of a resource,\n"
            "4 wrong result. After SIGINT or SIGTERM the step under way is finished and the process then ends by that signal; a second one\n"
            "ends it at once.\n",
};

enum options_result options_parse(int argc, const char **argv, struct train_options *o, const struct workload **workload_out)
{
    static struct tool_line line; /* never finished, so that the texts stay */
    int verify = 0, quiet = 0, status;

    for (int i = 0; i < NUMBER_COUNT; i++)
        words[i] = numbers[i].fallback;
    words[W_RATE] = "0.2";
#define WORD(w_, name_, flags_, help_, argument_) { name_, '\0', POPT_ARG_STRING | (flags_), &words[w_], 0, help_, argument_ }
#define NUMBER(n_) WORD(n_, numbers[n_].name, POPT_ARGFLAG_SHOW_DEFAULT, numbers[n_].help, numbers[n_].argument)
    struct poptOption table[] = {
        WORD(W_DATA, "data", 0, "train on MNIST's IDX files in DIR, plain or .gz (default: built-in digits)", "DIR"),
        NUMBER(N_EPOCHS), NUMBER(N_BATCH), NUMBER(N_HIDDEN),
        WORD(W_RATE, "lr", POPT_ARGFLAG_SHOW_DEFAULT, "learning rate at its top", "R"),
        NUMBER(N_SEED), NUMBER(N_TRAIN_SIZE), NUMBER(N_TEST_SIZE),
        { "verify", '\0', POPT_ARG_NONE, &verify, 0, "hold gradients of some steps against a host reference", NULL },
        WORD(W_FAULTS, "faults", 0, "break something: a fault specification, or a file that holds one (@FILE: in any case; default: $PETREL_FAULTS)", "SPEC|FILE"),
        WORD(W_REPORT, "report", 0, "write the run as JSON, however it ends", "FILE"),
        WORD(W_LOG, "log", 0, "write the driver's log as JSON lines (in place of $UMD_LOG_JSON)", "FILE"),
        WORD(W_LEVEL, "log-level", 0, "levels of the log, such as umd.mem=trace,kmd=debug,warn", "SPEC"),
        WORD(W_MODE, "mode", 0, "threaded, stepped, functional, or the last two with a comma between (default: $PETREL_MODE, else threaded)", "MODE"),
        WORD(W_CARRIER, "carrier", 0, "direct or loopback (default: $PETREL_CARRIER, else direct)", "NAME"),
        NUMBER(N_WATCHDOG),
        { "quiet", 'q', POPT_ARG_NONE, &quiet, 0, "no progress", NULL },
        POPT_TABLEEND
    };
#undef NUMBER
#undef WORD
    if (!tool_parse(&self, argc, argv, table, &line, &status))
        return status == EXIT_DONE ? OPTIONS_DONE : OPTIONS_BAD;
    o->verify = verify;
    o->quiet = quiet;
    return take_values(&line, o, workload_out) ? OPTIONS_RUN : OPTIONS_BAD;
}
