/* SPDX-License-Identifier: MIT */
/* sim_linux.c - the kernels of umd-bench sim as a riscv64 Linux program without a C library: the peer's side. */
/*
 * sim_linux KERNEL ITEMS N ROUNDS MILLISECONDS: numbers. Runs all work-items once, then again and again for so long, and writes
 * a line "NANOSECONDS RUNS CHECK": processor time, how many runs that was, and a sum of the results of the first work-items.
 */
#include <stdint.h>

#include "sim.h"

enum { WORDS = SIM_TABLE_B / 4, APART = (SIM_TABLE_B + SIM_PAD_B) / 4 };
static uint32_t tables[3 * APART], *const a = tables, *const b = tables + APART, *const c = tables + 2 * APART;

static long call3(long number, long x, long y, long z)
{
    register long a0 __asm__("a0") = x, a1 __asm__("a1") = y, a2 __asm__("a2") = z, a7 __asm__("a7") = number;

    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
    return a0;
}

static uint64_t now_ns(void)
{
    int64_t t[2] = { 0, 0 };

    call3(113, 3 /* CLOCK_THREAD_CPUTIME_ID */, (long)t, 0);
    return (uint64_t)t[0] * 1000000000u + (uint64_t)t[1];
}

enum {
#define SIM_NUMBER(name_) SIM_##name_,
    SIM_KERNELS(SIM_NUMBER)
};

#define SIM_LOOP(name_)                                                   \
    case SIM_##name_:                                                     \
        for (uint32_t i = 0; i < items; i++)                              \
            item_##name_(args, i);                                        \
        break;

static __attribute__((noinline)) void run(uint64_t kernel, const struct sim_args *args, uint32_t items)
{
    switch (kernel) {
    SIM_KERNELS(SIM_LOOP)
    default: call3(93, 1, 0, 0);
    }
}

static uint64_t number(const char *text)
{
    uint64_t v = 0;

    while (*text >= '0' && *text <= '9')
        v = v * 10 + (uint64_t)(*text++ - '0');
    return v;
}

static void print(uint64_t v, char end)
{
    char digits[24];
    unsigned n = sizeof(digits);

    digits[--n] = end;
    do
        digits[--n] = (char)('0' + v % 10);
    while (v /= 10);
    call3(64, 1, (long)(digits + n), (long)(sizeof(digits) - n));
}

__attribute__((used, noreturn)) void start(const long *stack)
{
    const char *const *argv = (const char *const *)(stack + 1);
    struct sim_args args = { .a = (uint64_t)a, .b = (uint64_t)b, .c = (uint64_t)c };
    uint64_t kernel, limit, began, spent, runs = 0, check = 0;
    uint32_t items;

    if (stack[0] != 6)
        call3(93, 1, 0, 0);
    kernel = number(argv[1]);
    items = (uint32_t)number(argv[2]);
    args.n = (uint32_t)number(argv[3]);
    args.rounds = (uint32_t)number(argv[4]);
    limit = number(argv[5]) * 1000000u;
    for (uint32_t i = 0; i < WORDS; i++) {
        a[i] = kernel == SIM_chase ? (i * 1664525u + 1013904223u) % args.n : 0x3f800000u + (i & 0xffff);
        b[i] = 0x3f800000u + (i >> 4 & 0xffff);
    }
    run(kernel, &args, items);
    began = now_ns();
    do {
        run(kernel, &args, items);
        runs++;
        spent = now_ns() - began;
    } while (spent < limit);
    for (uint32_t i = 0; i < (items > SIM_CHECKED ? items : SIM_CHECKED); i++)
        check = check * 31 + c[i];
    print(spent, ' ');
    print(runs, ' ');
    print(check, '\n');
    call3(93, 0, 0, 0);
    __builtin_unreachable();
}

__asm__(".globl _start\n_start: mv a0, sp\n andi sp, sp, -16\n call start\n");
