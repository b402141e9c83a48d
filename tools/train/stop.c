/* SPDX-License-Identifier: MIT */
/* stop.c - SIGINT and SIGTERM: the first asks the run to end after its step, the second ends the process at once. */
#include <signal.h>

#include "train.h"

static volatile sig_atomic_t stop_signal;

static void on_signal(int sig)
{
    if (stop_signal) {
        signal(sig, SIG_DFL);
        raise(sig); /* blocked here, so it comes as soon as this returns */
        return;
    }
    stop_signal = sig;
}

void train_stop_install(void)
{
    static const int signals[] = { SIGINT, SIGTERM };
    struct sigaction act = { .sa_handler = on_signal, .sa_flags = SA_RESTART }, old;

    sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        sigaddset(&act.sa_mask, signals[i]);
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        /* What the caller has switched off, as nohup or a shell's '&' does, stays off. */
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &act, NULL);
    }
}

int train_stop_signal(void)
{
    return stop_signal;
}

void train_stop_raise(int sig)
{
    signal(sig, SIG_DFL);
    raise(sig);
}
