/* SPDX-License-Identifier: MIT */
/* fake_kmd.h - what a test tells the fake kernel driver, and what it noted. */
#ifndef FAKE_KMD_H
#define FAKE_KMD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <umd/umd_diag.h>

struct fake_kmd {
    bool wrong_abi, probe_fails, stepped;  /* told */
    umdStatus exec_code, fence_code;       /* told: how these end */
    const void *client_ib;                 /* told: where the client's own array is */
    uint64_t client_sees;                  /* what stood there during the call */
    uint64_t seen_va, seen_point;
    void *arg;
    pthread_t thread;
    uint32_t removes, closes;
};

#endif
