/* SPDX-License-Identifier: MIT */
/* kmd_between.h - what a test tells the kernel driver that stands between the library and the real one. */
#ifndef KMD_BETWEEN_H
#define KMD_BETWEEN_H

#include <stdbool.h>
#include <stdint.h>

#include <umd/umd_diag.h>

/*
 * PETREL_KMD names this module, PETREL_KMD_REAL the driver it passes calls on to. All zero: it passes everything on unchanged. So the
 * public API meets what a driver of another version, or a defective one, would answer.
 */
struct kmd_between {
    unsigned long cmd;    /* ioctl to answer here; 0: none */
    int32_t error;        /* its answer, -errno */
    umdStatus code;       /* and the record that goes with it; 0: none */
    uint32_t stage;       /* of a WAIT answered here */
    _Atomic(bool) mute;   /* read by the event thread, too: failed waits and events come without their records */
    bool cycle;           /* the next job of the client waits for a job of another queue, which waits for it */
    bool no_devices;      /* the probe finds none */
    uint64_t va_end;      /* what INFO says of the address space; 0: the truth */
};

#endif
