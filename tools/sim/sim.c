/* SPDX-License-Identifier: MIT */
/* sim.c - see sim.h: an array of compute units over memory of this process, and launches on it. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <hw/petrel_pte.h>

#include "cu/insn.h"
#include "profile.h"
#include "sim.h"
#include "umd-tool.h"

enum { RANGES_MAX = 64 };

struct range {
    uint64_t va, size_B;
    uint8_t *host;              /* images beside each other, size_B each */
    int fd;                     /* images: what each begins as, pages of which are copied when they are written; else -1 */
};

struct sim {
    struct sim_config config;
    struct hw_cu_config cu;
    struct hw_cu_array *cus;
    uint8_t *scratch;
    uint64_t scratch_B;
    struct range ranges[RANGES_MAX];
    uint32_t range_count;
    uint32_t first;             /* image of work-item 0 */
};

static const struct range *range_of(const struct sim *s, uint64_t va)
{
    for (uint32_t i = 0; i < s->range_count; i++)
        if (va - s->ranges[i].va < s->ranges[i].size_B)
            return &s->ranges[i];
    return NULL;
}

/* Pages of 2 MiB where the range has all of one. A range with copies is one run: it never is in a TLB. */
static uint32_t translate(void *priv, uint64_t root, uint64_t va, uint32_t access, struct hw_xlat *xlat_out)
{
    const struct sim *s = priv;
    const struct range *r = range_of(s, va);
    uint64_t page_B = 2u << 20, page = va & ~(page_B - 1);

    (void)root;
    (void)access;
    if (!r)
        return PETREL_FAULT_PAGE;
    if (page < r->va || page + page_B > r->va + r->size_B) {
        page_B = PETREL_PAGE_SIZE;
        page = va & ~(page_B - 1);
    }
    if (s->config.images) {
        page = r->va;
        page_B = r->size_B;
    }
    *xlat_out = (struct hw_xlat){ .host = r->host + s->first * r->size_B + (page - r->va), .page_va = page, .page_B = page_B,
                                  .rights = PETREL_PTE_READ | PETREL_PTE_WRITE | PETREL_PTE_EXEC,
                                  .lane_stride_B = s->config.images ? r->size_B : 0 };
    return 0;
}

static uint8_t *map_host(uint64_t size_B)
{
    void *p = mmap(NULL, size_B, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

static bool array_create(struct sim *s, struct sim_error *error_out)
{
    umdStatus st = hw_cu_array_create(&s->cu, &s->cus);
    return st >= 0 || sim_fail(error_out, EXIT_ENVIRONMENT, "the compute units cannot be had: %s", umdStatusString(st));
}

static bool configure(struct sim *s, struct sim_error *error_out)
{
    const struct sim_config *c = &s->config;
    struct hw_profile profile;
    uint32_t warps = (c->lanes + 31) / 32;

    umdStatus st = hw_profile_load(c->profile, &profile);
    if (st < 0)
        return sim_fail(error_out, EXIT_ENVIRONMENT, "the device's figures cannot be had: %s", umdStatusString(st));
    s->cu = profile.cu;
    if (c->units)
        s->cu.cu_count = c->units;
    if (c->threads)
        s->cu.host_threads = c->threads;
    if (s->cu.warps_per_cu < warps)
        s->cu.warps_per_cu = warps;
    if (s->cu.regs_per_cu < warps * 64)
        s->cu.regs_per_cu = 0; /* as many as it takes */
    s->cu.functional = c->functional;
    s->cu.portable = c->portable;
    s->cu.bare = c->bare;
    s->cu.on_exit = c->on_exit;
    s->cu.on_trace = c->on_trace;
    s->cu.observer = c->observer;
    s->cu.translate = translate;
    s->cu.translate_priv = s;
    s->cu.private_B = (uint32_t)c->private_B;
    s->scratch_B = (uint64_t)s->cu.cu_count * s->cu.warps_per_cu * 32u * c->private_B;
    if (s->scratch_B && !(s->scratch = map_host(s->scratch_B)))
        return sim_fail(error_out, EXIT_ENVIRONMENT, "no memory for %" PRIu64 " MiB of private memory", s->scratch_B >> 20);
    s->cu.scratch = s->scratch;
    return array_create(s, error_out);
}

bool sim_create(const struct sim_config *config, struct sim **sim_out, struct sim_error *error_out)
{
    struct sim *s = calloc(1, sizeof(*s));

    assert(config->lanes >= 1 && config->lanes <= SIM_LANES_MAX);
    if (!s)
        return sim_fail(error_out, EXIT_ENVIRONMENT, "no memory");
    s->config = *config;
    if (!configure(s, error_out)) {
        sim_destroy(s);
        return false;
    }
    *sim_out = s;
    return true;
}

uint32_t sim_copies(const struct sim *s)
{
    return s->config.images ? s->config.lanes : 1;
}

void sim_destroy(struct sim *s)
{
    if (!s)
        return;
    hw_cu_array_destroy(s->cus);
    if (s->scratch)
        munmap(s->scratch, s->scratch_B);
    for (uint32_t i = 0; i < s->range_count; i++) {
        munmap(s->ranges[i].host, s->ranges[i].size_B * sim_copies(s));
        if (s->ranges[i].fd >= 0)
            close(s->ranges[i].fd);
    }
    free(s);
}

/* Copies of a file that has no name, beside each other: a page of a copy is memory of its own once it is written. */
static bool map_copies(struct range *r, uint32_t copies)
{
    uint8_t *host = mmap(NULL, r->size_B * copies, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (host == MAP_FAILED)
        return false;
    r->fd = memfd_create("sim", MFD_CLOEXEC);
    bool ok = r->fd >= 0 && ftruncate(r->fd, (off_t)r->size_B) == 0;
    for (uint32_t i = 0; ok && i < copies; i++)
        ok = mmap(host + i * r->size_B, r->size_B, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, r->fd, 0) != MAP_FAILED;
    r->host = host;
    if (ok)
        return true;
    munmap(host, r->size_B * copies);
    if (r->fd >= 0)
        close(r->fd);
    return false;
}

bool sim_map(struct sim *s, uint64_t va, uint64_t size_B, struct sim_error *error_out)
{
    struct range *r = &s->ranges[s->range_count];

    assert(va % PETREL_PAGE_SIZE == 0 && size_B % PETREL_PAGE_SIZE == 0 && size_B);
    assert(va < SIM_VA_END && size_B <= SIM_VA_END - va);
    if (s->range_count == RANGES_MAX)
        return sim_fail(error_out, EXIT_ENVIRONMENT, "more than %d separate ranges of memory", RANGES_MAX);
    *r = (struct range){ .va = va, .size_B = size_B, .fd = -1 };
    if (size_B > SIZE_MAX / SIM_LANES_MAX / 2 || !(s->config.images ? map_copies(r, sim_copies(s)) : (r->host = map_host(size_B)) != NULL))
        return sim_fail(error_out, EXIT_ENVIRONMENT, "no memory for %" PRIu64 " times %" PRIu64 " MiB at 0x%" PRIx64, (uint64_t)sim_copies(s), size_B >> 20, va);
    s->range_count++;
    return true;
}

bool sim_fill(struct sim *s, uint64_t va, const void *bytes, uint64_t size_B, struct sim_error *error_out)
{
    const struct range *r = range_of(s, va);

    if (!size_B)
        return true;
    assert(r && size_B <= r->size_B - (va - r->va));
    if (r->fd < 0)
        memcpy(r->host + (va - r->va), bytes, size_B);
    for (uint64_t done = 0; r->fd >= 0 && done < size_B;) {
        ssize_t n = pwrite(r->fd, (const uint8_t *)bytes + done, size_B - done, (off_t)(va - r->va + done));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return sim_fail(error_out, EXIT_ENVIRONMENT, "no memory for %" PRIu64 " MiB at 0x%" PRIx64 ": %s", size_B >> 20, va, strerror(errno));
        done += (uint64_t)n;
    }
    return true;
}

uint64_t sim_free_B(const struct sim *s)
{
    FILE *f = s->config.free_B ? NULL : fopen("/proc/meminfo", "re");
    uint64_t KiB, free_B = s->config.free_B ? s->config.free_B : UINT64_MAX;
    char line[128];

    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "MemAvailable: %" SCNu64, &KiB) == 1)
            free_B = KiB << 10;
    if (f)
        fclose(f);
    return free_B;
}

void *sim_host(struct sim *s, uint32_t item, uint64_t va, uint64_t size_B)
{
    const struct range *r = range_of(s, va);

    if (!r || size_B > r->size_B - (va - r->va))
        return NULL;
    return r->host + (s->config.images ? item * r->size_B : 0) + (va - r->va);
}

void sim_set_first(struct sim *s, uint32_t item)
{
    assert(s->config.images && item < s->config.lanes);
    for (uint32_t old = s->first ? s->first : 1; old < item; old++)
        for (uint32_t i = 0; i < s->range_count; i++)
            (void)madvise(s->ranges[i].host + old * s->ranges[i].size_B, s->ranges[i].size_B, MADV_DONTNEED);
    s->first = item;
    hw_cu_invalidate(s->cus);
}

void sim_set_stack(struct sim *s, uint64_t stack_va)
{
    hw_cu_set_stack(s->cus, stack_va);
}

void sim_set_notes(struct sim *s, uint64_t va, uint64_t size_B)
{
    const struct petrel_code code = { .notes_va = va, .notes_B = size_B };

    hw_cu_set_code(s->cus, &code);
}

bool sim_start(struct sim *s, const struct petrel_dispatch *d, struct hw_cu_fault *fault_out)
{
    return hw_cu_start(s->cus, d, 1, NULL, fault_out);
}

enum sim_state sim_run(struct sim *s, uint64_t cycles, struct hw_cu_fault *fault_out)
{
    uint64_t passed = 0;

    switch (hw_cu_run(s->cus, cycles, &passed, fault_out)) {
    case HW_CU_DONE: return SIM_DONE;
    case HW_CU_FAULTED: hw_cu_kill(s->cus); return SIM_FAULT;
    default: return SIM_RUNNING;
    }
}

void sim_disasm(uint32_t bits, uint64_t pc, char *out, size_t out_B)
{
    cu_disasm(bits, pc, out, out_B);
}

const char *sim_register(unsigned number)
{
    return cu_register_name(number);
}

void sim_stop(struct sim *s)
{
    hw_cu_kill(s->cus);
}

void sim_counters(const struct sim *s, struct hw_cu_counters *counters_out)
{
    hw_cu_get_counters(s->cus, counters_out);
}
