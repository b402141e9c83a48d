/* SPDX-License-Identifier: MIT */
/* fuzz_elf.c - any file: hw-run's loader takes it or says why not, and touches only the memory that it has asked for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Memory of a sim without its compute units: each range ends before a page that faults, so that a step beyond it is seen. */
enum { RANGES = 8 };
struct sim {
    struct { uint64_t va, size_B; uint8_t *host; } ranges[RANGES];
    uint32_t count;
};

uint64_t sim_free_B(const struct sim *s) { (void)s; return 1u << 30; }

bool sim_map(struct sim *s, uint64_t va, uint64_t size_B, struct sim_error *error_out)
{
    if (va % 4096 || size_B % 4096 || !size_B || va >= SIM_VA_END || size_B > SIM_VA_END - va)
        __builtin_trap();
    if (s->count == RANGES || size_B > (16u << 20))
        return sim_fail(error_out, 2, "no memory");
    s->ranges[s->count].va = va;
    s->ranges[s->count].size_B = size_B;
    uint8_t *p = mmap(NULL, size_B + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED || mprotect(p, size_B, PROT_READ | PROT_WRITE) != 0)
        abort();
    s->ranges[s->count++].host = p;
    return true;
}

void *sim_host(struct sim *s, uint32_t item, uint64_t va, uint64_t size_B)
{
    (void)item;
    for (uint32_t i = 0; i < s->count; i++)
        if (va - s->ranges[i].va < s->ranges[i].size_B && size_B <= s->ranges[i].size_B - (va - s->ranges[i].va))
            return s->ranges[i].host + (va - s->ranges[i].va);
    return NULL;
}

/* Only into memory that is there, whole. */
bool sim_fill(struct sim *s, uint64_t va, const void *bytes, uint64_t size_B, struct sim_error *error_out)
{
    void *to = sim_host(s, 0, va, size_B);

    (void)error_out;
    if (size_B && !to)
        __builtin_trap();
    if (size_B)
        memcpy(to, bytes, size_B);
    return true;
}

/* As the command processor checks them: all of it is there. */
void sim_set_notes(struct sim *s, uint64_t va, uint64_t size_B)
{
    if (va % 4 || !size_B || size_B > PETREL_NOTES_MAX_B || !sim_host(s, 0, va, size_B))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sim s = { .count = 0 };
    struct sim_program p = { 0 };
    struct sim_error e = { 0 };
    bool ok = sim_load(&s, data, size, 4096, &p, &e);

    if (ok ? p.stack_va % 16 || !sim_host(&s, 0, p.stack_va, 256) : !e.text[0] || e.status != 2)
        __builtin_trap();
    if (ok && p.code_B && !sim_host(&s, 0, p.code_va, p.code_B))
        __builtin_trap();
    for (uint32_t i = 0; i < s.count; i++)
        munmap(s.ranges[i].host, s.ranges[i].size_B + 4096);
    return 0;
}
