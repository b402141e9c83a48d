/* SPDX-License-Identifier: MIT */
/* divergent.h - functions whose control flow depends on their argument: run by kernels, and by the host as the reference. */
#ifndef BENCH_KERNELS_DIVERGENT_H
#define BENCH_KERNELS_DIVERGENT_H

#include <stdint.h>

#define NOINLINE __attribute__((noinline, unused))
#define DIVERGENT_CASES(CASE)                                                                                     \
    CASE(if_else) CASE(nested_if) CASE(variable_loop) CASE(loop_break) CASE(loop_continue) CASE(nested_loops)      \
    CASE(switch_cases) CASE(early_return) CASE(collatz) CASE(goto_mesh) CASE(short_circuit) CASE(gcd)              \
    CASE(binary_search) CASE(fibonacci) CASE(call_in_branch) CASE(function_pointers) CASE(state_machine)           \
    CASE(private_sort) CASE(mutual_recursion) CASE(bytes) CASE(hash_probe) CASE(chains) CASE(early_exits)          \
    CASE(deep_recursion)

static NOINLINE uint32_t mix(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    return x;
}

static NOINLINE uint32_t div_if_else(uint32_t i)
{
    if (i & 1)
        return mix(i) + 1;
    return mix(i * 3) ^ 7;
}

static NOINLINE uint32_t div_nested_if(uint32_t i)
{
    uint32_t r = 0;

    if (i & 1) {
        r = mix(i);
        if (i & 2) {
            r += mix(r);
            if (i & 4)
                r ^= mix(i + 9);
            else
                r += 5;
        }
        r *= 3;
    } else if (i & 8) {
        r = mix(i ^ 1) + 2;
    }
    return mix(r);
}

static NOINLINE uint32_t div_variable_loop(uint32_t i)
{
    uint32_t r = i;

    for (uint32_t k = 0; k < (i * 7) % 23; k++)
        r = mix(r + k);
    return r + 1;
}

static NOINLINE uint32_t div_loop_break(uint32_t i)
{
    uint32_t r = i;

    for (uint32_t k = 0; k < 64; k++) {
        r = mix(r);
        if ((r & 15) == 3)
            break;
        if ((r & 31) == 7)
            return r ^ k;
    }
    return r;
}

static NOINLINE uint32_t div_loop_continue(uint32_t i)
{
    uint32_t r = 0;

    for (uint32_t k = 0; k < 24; k++) {
        if ((i + k) % 3 == 0)
            continue;
        r += mix(i ^ k);
        if (r & 1)
            continue;
        r ^= mix(k);
    }
    return r;
}

static NOINLINE uint32_t div_nested_loops(uint32_t i)
{
    uint32_t r = 1;

    for (uint32_t a = 0; a < i % 7; a++) {
        for (uint32_t b = 0; b < (i + a) % 5; b++) {
            r = mix(r + b);
            if ((r & 7) == 1)
                break;
            for (uint32_t c = b; c < a; c++)
                r += c * r;
        }
        if ((r & 63) == 5)
            goto out;
    }
out:
    return r;
}

static NOINLINE uint32_t div_switch_cases(uint32_t i)
{
    uint32_t r = i;

    for (uint32_t k = 0; k < 10; k++) {
        switch (r % 9) {
        case 0: r = mix(r); break;
        case 1: r += 3; /* fall through */
        case 2: r ^= mix(k); break;
        case 3: r = r * 5 + k; break;
        case 4: r -= 11; break;
        case 5: if (k & 1) r = mix(r + 1); else r += 8; break;
        case 7: r = ~r; break;
        default: r += i; break;
        }
    }
    return r;
}

static NOINLINE uint32_t div_early_return(uint32_t i)
{
    if (i % 5 == 0)
        return 17;
    if (i % 7 == 0)
        return mix(i);
    for (uint32_t k = 0; k < i % 11; k++)
        if (mix(k + i) % 13 == 0)
            return k;
    return mix(i + 1);
}

static NOINLINE uint32_t div_collatz(uint32_t i)
{
    uint64_t n = i + 1;
    uint32_t steps = 0;

    while (n != 1) {
        n = n & 1 ? 3 * n + 1 : n / 2;
        steps++;
    }
    return steps;
}

/* Two entries into one loop: no structured program. */
static NOINLINE uint32_t div_goto_mesh(uint32_t i)
{
    uint32_t r = i, k = 0;

    if (i & 1)
        goto second;
first:
    r = mix(r + 1);
    if (++k > 12)
        goto done;
    if (r & 4)
        goto first;
second:
    r ^= mix(k);
    if (++k > 9 + (i & 3))
        goto done;
    if (r & 2)
        goto second;
    goto first;
done:
    return r + k;
}

static NOINLINE uint32_t div_short_circuit(uint32_t i)
{
    uint32_t r = 0;

    for (uint32_t k = 0; k < 8; k++)
        if (((i >> k) & 1 && mix(k) & 2) || (mix(i) & 4 && mix(i + k) & 8))
            r += mix(r) | 1;
    return r;
}

static NOINLINE uint32_t div_gcd(uint32_t i)
{
    uint32_t a = i * 12 + 36, b = mix(i) % 5000 + 1;

    while (b) {
        uint32_t t = a % b;

        a = b;
        b = t;
    }
    return a;
}

static NOINLINE uint32_t div_binary_search(uint32_t i)
{
    uint32_t lo = 0, hi = 1000, want = mix(i) % 1000, steps = 0;

    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;

        steps++;
        if (mid == want)
            return steps * 1000 + mid;
        if (mid < want)
            lo = mid + 1;
        else
            hi = mid;
    }
    return steps;
}

static NOINLINE uint32_t fib(uint32_t n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static NOINLINE uint32_t div_fibonacci(uint32_t i)
{
    return fib(i % 9) + (i & 1 ? fib(5) : 0);
}

static NOINLINE uint32_t helper_loop(uint32_t x, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        if (x & 1)
            return mix(x) + k;
        x = mix(x + k);
    }
    return x;
}

static NOINLINE uint32_t div_call_in_branch(uint32_t i)
{
    uint32_t r = i & 1 ? helper_loop(i, 9) : 3;

    if (i & 4)
        r += helper_loop(r, i % 6);
    return r + helper_loop(i * 2, 4);
}

static NOINLINE uint32_t op_add(uint32_t a) { return a + mix(a); }
static NOINLINE uint32_t op_mul(uint32_t a) { return a & 1 ? a * 77 : mix(a); }
static NOINLINE uint32_t op_loop(uint32_t a) { return helper_loop(a, a % 5); }

static NOINLINE uint32_t div_function_pointers(uint32_t i)
{
    static uint32_t (*const volatile ops[3])(uint32_t) = { op_add, op_mul, op_loop };
    uint32_t r = i;

    for (uint32_t k = 0; k < 6; k++)
        r = ops[(r + k) % 3](r) + k;
    return r;
}

static NOINLINE uint32_t div_state_machine(uint32_t i)
{
    uint32_t state = i % 4, r = i;

    for (uint32_t k = 0; k < 40 && state != 9; k++) {
        r = mix(r + state);
        if (state == 0)
            state = r & 1 ? 1 : 2;
        else if (state == 1)
            state = r & 6 ? 3 : 0;
        else if (state == 2)
            state = (r >> 3) % 4;
        else
            state = (r & 15) == 0 ? 9 : 1;
    }
    return r ^ state;
}

static NOINLINE uint32_t div_private_sort(uint32_t i)
{
    uint32_t v[12], r = 0;

    for (uint32_t k = 0; k < 12; k++)
        v[k] = mix(i + k) % 100;
    for (uint32_t a = 1; a < 12; a++) {
        uint32_t x = v[a], b = a;

        while (b && v[b - 1] > x) {
            v[b] = v[b - 1];
            b--;
        }
        v[b] = x;
    }
    for (uint32_t k = 0; k < 12; k++)
        r = r * 31 + v[k];
    return r;
}

static NOINLINE uint32_t is_odd(uint32_t n);
static NOINLINE uint32_t is_even(uint32_t n)
{
    if (n == 0)
        return 1;
    return is_odd(n - 1) + (n & 4 ? 2 : 0);
}

static NOINLINE uint32_t is_odd(uint32_t n)
{
    if (n == 0)
        return 0;
    return is_even(n - 1) ^ (n & 8);
}

static NOINLINE uint32_t div_mutual_recursion(uint32_t i)
{
    return is_even(i % 17) * 3 + mix(i);
}

static NOINLINE uint32_t div_bytes(uint32_t i)
{
    uint8_t text[16];
    uint32_t n = i % 16, words = 0;

    for (uint32_t k = 0; k < n; k++)
        text[k] = mix(i * 16 + k) % 4 ? 'a' : ' ';
    for (uint32_t k = 0; k < n; k++)
        if (text[k] != ' ' && (k == 0 || text[k - 1] == ' '))
            words++;
    return words * 100 + n;
}

/* Open addressing in a table that is three quarters full; what a slot holds is computed. */
static NOINLINE uint32_t slot_key(uint32_t slot)
{
    uint32_t k = mix(slot * 2654435761u);

    return k & 3 ? k % 97 + 1 : 0;
}

static NOINLINE uint32_t div_hash_probe(uint32_t i)
{
    uint32_t found = 0;

    for (uint32_t q = 0; q < 4; q++) {
        uint32_t want = mix(i + q) % 97 + 1, slot = want * 5, probes = 0;

        while (probes < 32) {
            uint32_t key = slot_key(slot);

            if (key == want) {
                found += slot + 1;
                break;
            }
            if (!key)
                break;
            slot = (slot + 1) % 512;
            probes++;
        }
        found = found * 3 + probes;
    }
    return found;
}

/* Buckets with chains of different lengths; a match may be dead, and the search goes on. */
static NOINLINE uint32_t div_chains(uint32_t i)
{
    uint32_t sum = 0;

    for (uint32_t b = i % 3; b < 12; b += 3) {
        uint32_t node = mix(b) % 61;

        for (uint32_t depth = 0; node != 0 && depth < 20; depth++) {
            if (node % 7 == i % 7) {
                if (mix(node) & 1) {
                    sum += node;
                    break;
                }
                sum ^= depth;
            }
            node = mix(node + b) % 61 & ~(i & 1);
        }
    }
    return sum;
}

static NOINLINE uint32_t div_early_exits(uint32_t i)
{
    for (uint32_t a = 0; a < 6; a++) {
        if (mix(a + i) % 11 == 0)
            return a;
        for (uint32_t b = 0; b < 6; b++) {
            uint32_t x = mix(a * 6 + b + i);

            if (x % 23 == 1)
                return x;
            if (x % 5 == 2)
                break;
            if (x % 7 == 3 && (x & 64 || mix(x) % 3 == 1))
                continue;
            if (x % 61 == 4)
                goto found;
        }
    }
    return i;
found:
    return mix(i);
}

static NOINLINE uint32_t deeper(uint32_t n, uint32_t x)
{
    if (n == 0)
        return x;
    x = deeper(n - 1, mix(x + n));
    return x & 1 ? x + n : mix(x ^ n);
}

/* Each lane as deep as it likes, up to 94 calls. */
static NOINLINE uint32_t div_deep_recursion(uint32_t i)
{
    return deeper(i % 32 * 3, i);
}

#endif
