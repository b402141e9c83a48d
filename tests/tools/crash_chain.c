/* SPDX-License-Identifier: MIT */
/* crash_chain.c - dies in a known chain of functions, its own and the library's; the test looks for functions and lines by these comments. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <umd/umd.h>

#include "snapshot.h"

static volatile uintptr_t bad = 16;
static volatile int deep;

static __attribute__((noinline)) int chain_end(int how)
{
    if (how == 1)
        abort(); /* ends here */
    return *(volatile int *)bad; /* crashes here */
}

static __attribute__((noinline)) void chain_state(struct umd_state_out *out, const void *how)
{
    static int times;

    umd_state_u64(out, "times", (uint64_t)times);
    if (times++)
        return; /* the snapshot asks for the state, too */
    deep = chain_end(*(const int *)how) + deep; /* calls the end */
}

static __attribute__((noinline)) int chain_outer(const int *how)
{
    char text[64];

    if (!umd_state_register("chain", chain_state, how))
        return 2;
    deep = (int)umd_state_format(text, sizeof(text)) + deep; /* calls the library */
    return deep;
}

int main(int argc, char **argv)
{
    static int how;

    how = argc > 1 && strcmp(argv[1], "abort") == 0;
    if (argc > 1 && strcmp(argv[1], "stack") == 0 && umdFailed(umdInit(NULL)))
        return 3;
    return chain_outer(&how) + 1; /* calls the chain */
}
