/* SPDX-License-Identifier: MIT */
/* faults.c - the fault plan of a run: from --faults or $PETREL_FAULTS, read and checked before anything else is touched. */
#include "fault_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "umd-text.h"
#include "umd-tool.h"
#include "input.h"
#include "train.h"

#define MAX_FAULT_FILE_B 65536

const char *train_fault_file(const struct train_options *o)
{
    return tool_fault_file(o->faults, o->faults_from[0] == '-');
}

/* The parser says what is wrong, and where. The plan is set for good when the stack starts: hits count from there. */
static int check_rules(struct train_run *run)
{
    umdStatus st = umd_fault_plan_set(run->opt.faults);

    if (umdFailed(st)) {
        trouble_note(&run->trouble, st, "reading the fault specification");
        trouble_print_line(&run->trouble, stderr);
        return umdStatusRangeOf(st) == UMD_RANGE_RESOURCE ? TRAIN_NO_START : TRAIN_USAGE;
    }
    st = umd_fault_plan_set(NULL);
    return umdFailed(st) ? TRAIN_NO_START : TRAIN_DONE;
}

/* The whole file as a string, to be freed; NULL: it has been told. */
static char *read_text(struct train_run *run, const char *path)
{
    const char *why;
    FILE *f = input_open(path, &why);

    if (!f) {
        train_fail(run, 0, "the fault file %s cannot be read: %s", path, why);
        return NULL;
    }
    char *text = malloc(MAX_FAULT_FILE_B + 2);
    size_t n = text ? fread(text, 1, MAX_FAULT_FILE_B + 1, f) : 0;
    bool bad = !text || ferror(f);

    fclose(f);
    if (bad || n > MAX_FAULT_FILE_B) {
        train_fail(run, 0, "the fault file %s cannot be read: %s", path,
                   bad ? "an error of the host" : "it is larger than 64 KiB");
    } else {
        text[n] = '\0';
        if (text_is_text(text, n))
            return text;
        train_fail(run, 0, "the fault file %s is not a text file", path);
    }
    free(text);
    return NULL;
}

umdStatus train_set_faults(const struct train_run *run)
{
    return run->opt.faults ? umd_fault_plan_set(run->opt.faults) : UMD_SUCCESS;
}

int train_read_faults(struct train_run *run)
{
    const char *path = run->opt.faults ? train_fault_file(&run->opt) : NULL;

    if (!run->opt.faults)
        return TRAIN_DONE;
    if (path) {
        run->opt.faults = read_text(run, path); /* lives as long as the process */
        if (!run->opt.faults)
            return TRAIN_NO_START;
    }
    return check_rules(run);
}
