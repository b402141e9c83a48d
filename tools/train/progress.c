/* SPDX-License-Identifier: MIT */
/* progress.c - tells how far a run is: a bar on a terminal, plain lines elsewhere. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "train.h"

#define BAR 30u
#define CALLS_A_LINE 5u

double train_now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool on_terminal(void)
{
    return isatty(STDOUT_FILENO) == 1;
}

void progress_step(const struct train_run *run, uint32_t epoch, uint32_t step, float loss)
{
    uint32_t planned = run->result.steps_planned;

    if (run->opt.quiet)
        return;
    if (!on_terminal()) {
        static uint32_t calls;
        if (++calls % CALLS_A_LINE != 0 && step != planned)
            return;
        printf("epoch %u step %u/%u loss %.4f\n", epoch + 1, step, planned, (double)loss);
        fflush(stdout);
        return;
    }
    char bar[BAR + 1];
    uint32_t full = (uint32_t)((uint64_t)BAR * step / (planned ? planned : 1));
    for (uint32_t i = 0; i < BAR; i++)
        bar[i] = i < full ? '#' : '.';
    bar[BAR] = '\0';
    printf("\r[%s] epoch %u step %u/%u loss %.4f\033[K", bar, epoch + 1, step, planned, (double)loss);
    fflush(stdout);
}

void progress_clear(void)
{
    if (on_terminal()) {
        printf("\r\033[K");
        fflush(stdout);
    }
}
