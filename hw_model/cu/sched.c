/* SPDX-License-Identifier: MIT */
/* sched.c - dispatches: workgroups over compute units by occupancy, warps in device time, faults. */
/*
 * What the timing model simplifies. A compute unit runs in epochs of EPOCH cycles. Inside one, each warp runs on a time line of its
 * own: an instruction issues when its operands are there (scoreboard, latency classes, cache tags), at most one a cycle. The warps
 * share the unit as fluids do: the epoch takes as long as the longest of its own span, the issue slots that all warps together used, and
 * the bytes of DRAM against this unit's share of the bandwidth. So a warp is run in long batches (which is what makes the
 * model fast), and results and cycles do not depend on how the caller slices its budget: the work of an epoch is done when its
 * first cycle is asked for, and reported when its cycles have passed.
 * With host threads all units that are at most an epoch ahead of the last one run theirs at once, which is a round. What changes
 * code, a unit asks for: the round's parallel part ends, the caller's thread carries out these instructions in order of the units, and the rest
 * of the epochs follows. So what a round does depends on nothing but what was before it, and on how kernels race with each other.
 */
#include <assert.h>
#include <immintrin.h>
#include <string.h>

#include <umd/umd_log.h>

#include "cu_priv.h"
#include "record.h"
#include "sys.h"

UMD_LOG_MODULE("hw.cu");

#define EPOCH 1024u
#define BATCH_ALIGN 64u

static void pick_handlers(struct hw_cu_array *a)
{
    bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512vl");

    if (wide && !a->config.portable)
        a->exec = a->config.functional ? &cu_exec_avx512 : &cu_exec_avx512_timed;
    else
        a->exec = a->config.functional ? &cu_exec_base : &cu_exec_base_timed;
    a->handlers = a->exec->handlers;
}

static uint32_t at_least_one(uint32_t v)
{
    return v ? v : 1;
}

static void set_latencies(struct hw_cu_array *a)
{
    const struct hw_cu_config *c = &a->config;

    a->lat[CU_LAT_ALU] = at_least_one(c->lat_alu);
    a->lat[CU_LAT_MUL] = at_least_one(c->lat_mul);
    a->lat[CU_LAT_DIV] = at_least_one(c->lat_div);
    a->lat[CU_LAT_FP] = at_least_one(c->lat_fp);
    a->lat[CU_LAT_FDIV] = at_least_one(c->lat_fdiv);
    a->lat[CU_LAT_SPEC] = at_least_one(c->lat_special);
    a->lat[CU_LAT_MEM] = 1; /* the memory model says */
}

static bool tags_create(struct cu_tags *t, uint32_t size_B)
{
    uint32_t sets = 1;

    while (sets * 2 * 4 * 128 <= size_B)
        sets *= 2;
    t->sets = sets;
    t->line = umd_alloc((uint64_t)sets * 4 * sizeof(*t->line));
    return t->line != NULL;
}

static bool cu_create(struct hw_cu_array *a, uint32_t index, struct cu_warp *warps)
{
    struct hw_cu *cu = &a->cus[index];
    const struct hw_cu_config *c = &a->config;

    cu->array = a;
    cu->index = index;
    cu->warps = warps;
    for (uint32_t i = 0; i < c->warps_per_cu; i++) {
        warps[i].cu = cu;
        warps[i].slot = i;
    }
    cu->alone = true;
    cu->l2 = c->host_threads > 1 ? &cu->own_l2 : &a->l2;
    return (cu->groups = umd_alloc(c->warps_per_cu * sizeof(*cu->groups))) && (cu->local = umd_alloc(c->local_B + 8u)) && tags_create(&cu->l1, c->l1_B) &&
           (c->host_threads <= 1 || tags_create(&cu->own_l2, c->l2_B / c->cu_count));
}

/* All units, each on cache lines of its own, and the warps of one beside each other. */
static bool units_create(struct hw_cu_array *a)
{
    const struct hw_cu_config *c = &a->config;
    struct cu_warp *warps;
    bool ok = (a->cus_mem = umd_alloc(c->cu_count * sizeof(*a->cus) + CU_UNIT_ALIGN)) &&
              (a->warps_mem = umd_alloc((uint64_t)c->cu_count * c->warps_per_cu * sizeof(struct cu_warp) + BATCH_ALIGN)) &&
              (a->round_list = umd_alloc(2 * c->cu_count * sizeof(*a->round_list))) && (c->host_threads > 1 || tags_create(&a->l2, c->l2_B));

    if (!ok)
        return false;
    a->cus = (struct hw_cu *)(((uintptr_t)a->cus_mem + CU_UNIT_ALIGN - 1) & ~(uintptr_t)(CU_UNIT_ALIGN - 1));
    warps = (struct cu_warp *)(((uintptr_t)a->warps_mem + BATCH_ALIGN - 1) & ~(uintptr_t)(BATCH_ALIGN - 1));
    for (uint32_t i = 0; ok && i < c->cu_count; i++)
        ok = cu_create(a, i, warps + (uint64_t)i * c->warps_per_cu);
    return ok;
}

umdStatus hw_cu_array_create(const struct hw_cu_config *config, struct hw_cu_array **cus_out)
{
    struct hw_cu_array *a = umd_alloc(sizeof(*a));
    umdStatus st = UMD_SUCCESS;

    assert(config->host_threads <= HW_CU_THREADS_MAX);
    assert(!(config->private_B & (config->private_B - 1)));
    assert(config->cu_count && config->warps_per_cu && config->translate);
    if (!a)
        return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    umd_mutex_init(&a->resv_lock, "hw.cu.reservations", 72);
    a->config = *config;
    a->config.issue_per_cycle = at_least_one(config->issue_per_cycle);
    a->config.dram_B_per_clk = at_least_one(config->dram_B_per_clk);
    pick_handlers(a);
    set_latencies(a);
    if (!units_create(a))
        st = UMD_ERR_MEM_HOST_ALLOC_FAILED;
    else if (config->host_threads > 1)
        st = cu_pool_create(config->host_threads < config->cu_count ? config->host_threads : config->cu_count, &a->pool);
    if (st < 0) {
        hw_cu_array_destroy(a);
        return UMD_HOP(st);
    }
    *cus_out = a;
    return UMD_SUCCESS;
}

void hw_cu_array_destroy(struct hw_cu_array *cus)
{
    if (!cus)
        return;
    cu_pool_destroy(cus->pool);
    cu_regions_drop(cus);
    cu_notes_drop(cus);
    for (uint32_t i = 0; cus->cus && i < cus->config.cu_count; i++) {
        cu_nodes_destroy(&cus->cus[i]);
        umd_free(cus->cus[i].groups);
        umd_free(cus->cus[i].local);
        umd_free(cus->cus[i].l1.line);
        umd_free(cus->cus[i].own_l2.line);
    }
    umd_mutex_fini(&cus->resv_lock);
    umd_free(cus->l2.line);
    umd_free(cus->round_list);
    umd_free(cus->cus_mem);
    umd_free(cus->warps_mem);
    umd_free(cus);
}

void hw_cu_set_scratch(struct hw_cu_array *cus, uint8_t *scratch, uint32_t private_B)
{
    cus->config.scratch = scratch;
    cus->config.private_B = private_B;
}

void hw_cu_set_functional(struct hw_cu_array *cus, bool functional)
{
    if (cus->config.functional == functional)
        return;
    assert(cus->state != HW_CU_RUNNING && cus->state != HW_CU_HUNG);
    cus->config.functional = functional;
    pick_handlers(cus);
    cu_regions_drop(cus); /* micro-ops name handlers */
}

void hw_cu_set_stack(struct hw_cu_array *cus, uint64_t stack_va)
{
    cus->config.stack_va = stack_va;
}

static void cu_tlb_clear(struct hw_cu *cu)
{
    memset(cu->tlb, 0, sizeof(cu->tlb));
    memset(cu->tlb_huge, 0, sizeof(cu->tlb_huge));
    memset(&cu->image, 0, sizeof(cu->image));
}

void hw_cu_invalidate(struct hw_cu_array *cus)
{
    for (uint32_t i = 0; i < cus->config.cu_count; i++)
        cu_tlb_clear(&cus->cus[i]);
    cus->notes.loaded = false; /* what is there stays until the next dispatch */
    if (cus->state == HW_CU_RUNNING || cus->state == HW_CU_HUNG)
        cus->flush_code = true; /* warps stand in it; they decode it again */
    else
        cu_regions_drop(cus);
}

void hw_cu_get_counters(const struct hw_cu_array *cus, struct hw_cu_counters *counters_out)
{
    struct hw_cu_counters sum = cus->counters;

    for (uint32_t i = 0; i < cus->config.cu_count; i++) {
        const struct hw_cu_counters *c = &cus->cus[i].counters;

        sum.warp_instr += c->warp_instr;
        sum.lane_instr += c->lane_instr;
        sum.workgroups += c->workgroups;
        sum.divergent_branches += c->divergent_branches;
        sum.l1_hit += c->l1_hit;
        sum.l1_miss += c->l1_miss;
        sum.l2_miss += c->l2_miss;
        sum.dram_B += c->dram_B;
        sum.barriers += c->barriers;
    }
    *counters_out = sum;
}

/* ---- Faults ---- */

const struct cu_uop *cu_fault(struct cu_warp *w, const struct cu_uop *u, uint32_t fault, uint32_t access, uint64_t va, unsigned lane,
                              uint64_t data)
{
    struct hw_cu *cu = w->cu;

    if (cu->faulted)
        return NULL;
    cu->faulted = true;
    cu->fault = (struct hw_cu_fault){
        .fault = fault, .va = va, .pc = cu_pc(w->rg, u), .info = PETREL_FAULT_INFO(access, lane, w->index, cu->index),
        .wg = w->group->linear, .data = data,
    };
    cu_account(w);
    cu->fault_clock = cu->real + (w->now > cu->start ? w->now - cu->start : 0);
    return NULL;
}

/* Of units that have a fault, the first one in device time stops the dispatch; of several at once, that of the lowest unit. */
static void array_settle(struct hw_cu_array *a)
{
    const struct hw_cu *first = NULL;

    for (uint32_t i = 0; i < a->config.cu_count; i++) {
        const struct hw_cu *cu = &a->cus[i];

        if (cu->faulted && (!first || cu->fault_clock < first->fault_clock))
            first = cu;
    }
    if (!first)
        return;
    a->faulted = true;
    a->fault = first->fault;
    a->fault_clock = first->fault_clock;
    a->counters.faults++;
    UMD_LOG(UMD_LOG_DEBUG, "fault kind=%u va=0x%llx pc=0x%llx lane=%u warp=%u cu=%u wg=%llu", a->fault.fault, (unsigned long long)a->fault.va,
            (unsigned long long)a->fault.pc, (unsigned)PETREL_FAULT_INFO_LANE(a->fault.info), (unsigned)PETREL_FAULT_INFO_WARP(a->fault.info),
            first->index, (unsigned long long)a->fault.wg);
}

/* ---- Workgroups ---- */

static struct cu_group *free_group(struct hw_cu *cu, uint32_t *place_out)
{
    for (uint32_t i = 0; i < cu->array->groups_per_cu; i++) {
        if (!cu->groups[i].used) {
            *place_out = i;
            return &cu->groups[i];
        }
    }
    return NULL;
}

/*
 * Starts the next workgroup on cu if there is one and it has room. One distributor serves all units and hands out a workgroup a
 * cycle: so each unit gets one in cu_count cycles at most. Functional runs know no such gaps. On several host threads the workgroups
 * are dealt beforehand: to each unit those that it would have if all took as long.
 */
static bool group_launch(struct hw_cu *cu, uint64_t now)
{
    struct hw_cu_array *a = cu->array;
    const struct petrel_dispatch *d = &a->d;
    uint32_t place, lanes = d->block[0] * d->block[1] * d->block[2], slot = 0;
    uint64_t *next = a->parallel ? &cu->next_group : &a->next_group;
    struct cu_group *g = *next < a->group_total ? free_group(cu, &place) : NULL;

    if (!g)
        return false;
    if (!a->config.functional) {
        now = cu_later(now, cu->next_launch);
        cu->next_launch = now + a->config.cu_count;
    }
    g->used = true;
    g->linear = *next;
    *next += a->parallel ? a->config.cu_count : 1;
    g->id[0] = (uint32_t)(g->linear % d->grid[0]);
    g->id[1] = (uint32_t)(g->linear / d->grid[0] % d->grid[1]);
    g->id[2] = (uint32_t)(g->linear / d->grid[0] / d->grid[1]);
    g->live = lanes;
    g->waiting = 0;
    g->warps = a->warps_per_group;
    g->local = cu->local + (uint64_t)place * ((d->local_B + 7u) & ~7u);
    memset(g->local, 0, d->local_B);
    for (uint32_t i = 0; i < g->warps; i++, lanes -= lanes < CU_LANES ? lanes : CU_LANES) {
        while (cu->warps[slot].used)
            slot++;
        g->warp[i] = &cu->warps[slot];
        a->exec->warp_start(g->warp[i], g, i, lanes, now);
    }
    cu->group_count++;
    return true;
}

static void group_retire(struct hw_cu *cu, struct cu_group *g)
{
    for (uint32_t i = 0; i < g->warps; i++) {
        cu_resv_drop(g->warp[i], CU_ALL);
        g->warp[i]->used = false;
    }
    g->used = false;
    cu->group_count--;
    cu->counters.workgroups++;
}

static bool resources_fit(const struct hw_cu_array *a, const struct petrel_dispatch *d, struct hw_cu_fault *fault_out)
{
    uint64_t lanes = (uint64_t)d->block[0] * d->block[1] * d->block[2], warps = (lanes + CU_LANES - 1) / CU_LANES;

    if (lanes && warps <= CU_LANES && warps <= a->config.warps_per_cu && d->local_B <= a->config.local_B &&
        (!a->config.regs_per_cu || warps * 64 <= a->config.regs_per_cu))
        return true;
    *fault_out = (struct hw_cu_fault){ .fault = PETREL_FAULT_RESOURCES, .pc = d->entry_va };
    return false;
}

static uint32_t groups_fitting(const struct hw_cu_array *a)
{
    uint32_t n = a->config.warps_per_cu / a->warps_per_group, local = (a->d.local_B + 7u) & ~7u;

    if (local && a->config.local_B / local < n)
        n = a->config.local_B / local;
    if (a->config.regs_per_cu && a->config.regs_per_cu / (a->warps_per_group * 64) < n)
        n = a->config.regs_per_cu / (a->warps_per_group * 64);
    return at_least_one(n);
}

static bool load_code(struct hw_cu_array *a, struct hw_cu_fault *fault_out)
{
    const struct petrel_dispatch *d = &a->d;
    uint64_t va = d->code_va, size_B = d->code_B;
    struct hw_xlat x;
    uint32_t fault = d->entry_va & 1 ? PETREL_FAULT_MISALIGNED : d->entry_va >= PETREL_VA_USER_END ? PETREL_FAULT_PAGE :
                     a->config.translate(a->config.translate_priv, a->root, d->entry_va, PETREL_ACCESS_EXEC, &x);

    if (!fault && !(x.rights & PETREL_PTE_EXEC))
        fault = PETREL_FAULT_ACCESS;
    if (va >= PETREL_VA_USER_END || size_B > PETREL_VA_USER_END - va) /* the packet is user memory: it may say anything */
        size_B = 0;
    if (!fault && (d->entry_va - va >= size_B || va & 1)) { /* code outside of what was announced: by the page */
        va = d->entry_va & ~(uint64_t)(PETREL_PAGE_SIZE - 1);
        size_B = PETREL_PAGE_SIZE;
    }
    if (!fault) {
        a->code = cu_region_get(a, a->root, d->entry_va, va, size_B);
        if (a->code)
            return true;
        fault = PETREL_FAULT_HOST_MEMORY;
    }
    *fault_out = (struct hw_cu_fault){ .fault = fault, .va = d->entry_va, .pc = d->entry_va, .data = fault == PETREL_FAULT_HOST_MEMORY ? a->memory_record : 0,
                                       .info = PETREL_FAULT_INFO(PETREL_ACCESS_EXEC, 0, 0, 0) };
    return false;
}

static void cu_begin(struct hw_cu *cu)
{
    const struct hw_cu_array *a = cu->array;

    cu->start = cu->end = cu->real = cu->last = cu->issued = cu->lanes = cu->dram_B = cu->next_launch = 0;
    cu->hung = cu->faulted = false;
    cu->asks = NULL;
    cu->next_group = cu->index;
    cu_nodes_reset(cu);
    cu->group_count = 0;
    memset(cu->groups, 0, a->config.warps_per_cu * sizeof(*cu->groups));
    cu_tlb_clear(cu);
    memset(cu->l1.line, 0, (uint64_t)cu->l1.sets * 4 * sizeof(*cu->l1.line));
    for (uint32_t i = 0; i < a->config.warps_per_cu; i++) {
        struct cu_warp *w = &cu->warps[i];

        w->used = false;
        w->u = NULL;
        w->reserved = 0;
        memset(w->x, 0, sizeof(w->x)); /* nothing of another context is left to read */
        memset(w->f, 0, sizeof(w->f));
        memset(w->lid, 0, sizeof(w->lid));
    }
}

bool hw_cu_start(struct hw_cu_array *cus, const struct petrel_dispatch *d, uint64_t root, const struct hw_cu_sabotage *sabotage,
                 struct hw_cu_fault *fault_out)
{
    struct hw_cu_array *a = cus;
    bool launched = true;

    assert(a->state != HW_CU_RUNNING && a->state != HW_CU_HUNG);
    if (!resources_fit(a, d, fault_out))
        return false;
    a->d = *d;
    a->root = root;
    a->sabotage = sabotage ? *sabotage : (struct hw_cu_sabotage){ 0 };
    if (a->flush_code) /* the dispatch before ended first */
        cu_regions_drop(a);
    if (!load_code(a, fault_out) || !cu_notes_load(a, fault_out) || !cu_tls_load(a, fault_out))
        return false;
    cu_converge_function(a, a->code, (uint32_t)((d->entry_va - a->code->va) / 2));
    cu_notes_tell(a);
    a->warps_per_group = (d->block[0] * d->block[1] * d->block[2] + CU_LANES - 1) / CU_LANES;
    a->groups_per_cu = groups_fitting(a);
    a->group_total = (uint64_t)d->grid[0] * d->grid[1] * d->grid[2];
    a->next_group = 0;
    a->parallel = a->pool && !cu_sabotaged(a) && !a->config.on_trace && !a->config.on_exit;
    a->round_span = EPOCH;
    a->clock = 0;
    a->faulted = false;
    a->flush_code = false;
    a->resv_live = 0;
    memset(a->resv_filter, 0, sizeof(a->resv_filter));
    for (uint32_t i = 0; i < a->config.cu_count; i++)
        cu_begin(&a->cus[i]);
    while (launched) { /* one each in turn, until all is full */
        launched = false;
        for (uint32_t i = 0; i < a->config.cu_count; i++)
            launched |= group_launch(&a->cus[i], 0);
    }
    a->state = HW_CU_RUNNING;
    return true;
}

void hw_cu_kill(struct hw_cu_array *cus)
{
    for (uint32_t i = 0; i < cus->config.cu_count; i++) {
        cus->cus[i].group_count = 0;
        for (uint32_t k = 0; k < cus->config.warps_per_cu; k++) {
            cus->cus[i].groups[k].used = false;
            cus->cus[i].warps[k].used = false;
        }
    }
    cus->next_group = cus->group_total = 0;
    cus->state = HW_CU_IDLE;
    if (cus->flush_code)
        cu_regions_drop(cus);
    cus->flush_code = false;
}

/* ---- Epochs ---- */

/* The instruction that a path waits at; NULL: it does not wait. */
static const struct cu_uop *waits_at(const struct cu_path *p)
{
    return p->state == CU_PATH_COHORT ? p->u : p->state == CU_PATH_BARRIER || p->state == CU_PATH_SYNC ? p->u - 2 : NULL;
}

/* All warps of the group stand, not all lanes have exited: nobody can come to the rescue. The fault names two places that differ. */
static void check_stuck(struct cu_warp *w)
{
    struct cu_group *g = w->group;
    struct cu_warp *first = NULL;
    struct cu_path *at = NULL, *p;
    uint64_t other = 0;

    if (!g->live || w->cu->faulted)
        return;
    for (uint32_t i = 0; i < g->warps; i++)
        if (g->warp[i]->u)
            return;
    for (uint32_t i = 0; i < g->warps; i++) {
        CU_EACH_PATH(g->warp[i], p) {
            uint64_t pc = waits_at(p) ? cu_pc(p->rg, waits_at(p)) : 0;

            if (pc && !first) {
                first = g->warp[i];
                at = p;
            }
            if (pc && pc != cu_pc(at->rg, waits_at(at)))
                other = pc;
        }
    }
    assert(first && "lanes wait for nothing");
    if (!first)
        return;
    first->rg = at->rg;
    cu_fault(first, waits_at(at), PETREL_FAULT_TRAP, PETREL_ACCESS_EXEC, other, cu_first_lane(at->mask), PETREL_TRAP_BARRIER);
}

/* Behind what a warp issued: it goes on at u, or stands (NULL). */
static void warp_stands(struct cu_warp *w, const struct cu_uop *u)
{
    struct hw_cu *cu = w->cu;

    if (cu->asks == w)
        u = cu->asks_at;
    w->u = u;
    if (u)
        w->path[w->cur].u = u;
    else
        check_stuck(w);
    cu->last = cu_later(cu->last, w->now);
    if (!w->group->live && !cu->faulted) {
        group_retire(cu, w->group);
        group_launch(cu, w->now);
    }
}

/* Device cycles that the epoch took. Functional: an instruction each, and as many as the clock of any warp went on. */
static uint64_t epoch_span(struct hw_cu *cu)
{
    struct hw_cu_array *a = cu->array;
    uint64_t ran = cu_later(cu->last, cu->start) - cu->start, span = cu->group_count ? EPOCH : ran, busy = 0;

    if (a->config.functional)
        return cu->issued ? cu_later(cu->issued, ran < EPOCH ? ran : EPOCH) : span;
    for (uint32_t i = 0; i < a->config.cu_count; i++)
        busy += a->cus[i].group_count || &a->cus[i] == cu;
    span = cu_later(span, cu->issued / a->config.issue_per_cycle);
    return cu_later(span, cu->dram_B * busy / a->config.dram_B_per_clk);
}

static void epoch_begin(struct hw_cu *cu)
{
    cu->issued = cu->lanes = cu->dram_B = 0;
    cu->end = cu->start + EPOCH;
    cu->turn = 0;
}

/* Runs warps in turn until all have reached the end of the epoch or stand, or the unit has to ask. */
static void epoch_work(struct hw_cu *cu)
{
    bool again = true;

    while (again) {
        again = cu->turn != 0; /* what stands may have become able to run */
        for (; cu->turn < cu->array->config.warps_per_cu; cu->turn++) {
            struct cu_warp *w = &cu->warps[cu->turn];

            if (cu->faulted || cu->hung)
                return;
            if (!w->used || !w->u || w->now >= cu->end)
                continue;
            warp_stands(w, cu_warp_issue(w, w->u, cu->end));
            if (cu->asks)
                return;
            again = true;
        }
        cu->turn = 0;
    }
}

static void epoch_end(struct hw_cu *cu)
{
    uint64_t span = epoch_span(cu);

    cu->counters.warp_instr += cu->issued;
    cu->counters.lane_instr += cu->lanes;
    cu->real += span;
    cu->start = cu->end;
    cu->array->round_span = cu_later(cu->array->round_span, span);
}

/* Carries out what the unit asked for. */
static void unit_serve(struct hw_cu *cu)
{
    struct cu_warp *w = cu->asks;

    cu->asks = NULL;
    cu->asked++;
    if (cu->asks_code && w->u->flags & CU_UOP_DECODED) /* by another unit's ask: it comes again, and may be where others are met */
        warp_stands(w, w->u);
    else
        warp_stands(w, cu_warp_one(w, w->u));
}

/* Runs units of the list, which has not more than one unless the dispatch is spread; those that asked are served and lead the list. Value: how many. */
static uint32_t units_run(struct hw_cu_array *a, struct hw_cu **list, uint32_t count)
{
    uint32_t asked = 0;

    for (uint32_t i = 0; i < count; i++)
        list[i]->alone = !a->parallel;
    if (a->parallel)
        cu_pool_run(a->pool, list, count, epoch_work);
    else
        epoch_work(list[0]);
    for (uint32_t i = 0; i < count; i++)
        list[i]->alone = true;
    for (uint32_t i = 0; i < count; i++) {
        if (!list[i]->asks)
            continue;
        unit_serve(list[i]);
        list[asked++] = list[i];
    }
    return asked;
}

/* One epoch of the unit that is furthest behind, or of all that are at most an epoch ahead of it. */
static void round_run(struct hw_cu_array *a, struct hw_cu *first)
{
    struct hw_cu **list = a->round_list, **left = list + a->config.cu_count;
    uint32_t count = 0, left_count;

    if (a->flush_code)
        (void)cu_code_flush(a);
    for (uint32_t i = 0; i < a->config.cu_count; i++) {
        struct hw_cu *cu = &a->cus[i];

        if (cu == first || (a->parallel && !cu->hung && cu->group_count && cu->real - first->real <= a->round_span))
            list[count++] = cu;
    }
    for (uint32_t i = 0; i < count; i++)
        epoch_begin(list[i]);
    memcpy(left, list, count * sizeof(*list));
    for (left_count = count; left_count;)
        left_count = units_run(a, left, left_count);
    a->round_span = 0;
    for (uint32_t i = 0; i < count; i++)
        epoch_end(list[i]);
    array_settle(a);
}

/* ---- Running ---- */

/* The unit that is furthest behind; NULL: none can issue. *hung_out: one stands for ever. */
static struct hw_cu *next_cu(struct hw_cu_array *a, bool *hung_out)
{
    struct hw_cu *best = NULL;

    *hung_out = false;
    for (uint32_t i = 0; i < a->config.cu_count; i++) {
        struct hw_cu *cu = &a->cus[i];

        *hung_out |= cu->hung;
        if (!cu->hung && cu->group_count && (!best || cu->real < best->real))
            best = cu;
    }
    return best;
}

static uint64_t end_clock(const struct hw_cu_array *a)
{
    uint64_t end = 0;

    for (uint32_t i = 0; i < a->config.cu_count; i++)
        end = cu_later(end, a->cus[i].real);
    return end;
}

/* Runs what is due by `target`. Value: the state once `*end_out`, where it is DONE or FAULTED, has come. */
static enum hw_cu_state advance(struct hw_cu_array *a, uint64_t target, uint64_t *end_out)
{
    bool hung;

    for (;;) {
        struct hw_cu *cu = a->faulted ? NULL : next_cu(a, &hung);

        if (a->faulted) {
            *end_out = a->fault_clock;
            return HW_CU_FAULTED;
        }
        if (!cu && hung) {
            *end_out = target;
            return HW_CU_HUNG;
        }
        if (!cu) {
            *end_out = end_clock(a);
            return HW_CU_DONE;
        }
        if (cu->real >= target)
            return HW_CU_RUNNING;
        round_run(a, cu);
    }
}

enum hw_cu_state hw_cu_run(struct hw_cu_array *cus, uint64_t budget, uint64_t *cycles_out, struct hw_cu_fault *fault_out)
{
    struct hw_cu_array *a = cus;
    unsigned csr = _mm_getcsr();
    uint64_t target = budget > UINT64_MAX - a->clock ? UINT64_MAX : a->clock + budget, end = target;
    enum hw_cu_state state;

    if (a->state != HW_CU_RUNNING && a->state != HW_CU_HUNG)
        return a->state;
    state = advance(a, target, &end);
    _mm_setcsr(csr);
    if (end > target) { /* done, but not yet in device time */
        end = target;
        state = HW_CU_RUNNING;
    }
    end = cu_later(end, a->clock);
    *cycles_out += end - a->clock;
    a->counters.cycles += end - a->clock;
    a->clock = end;
    a->state = state;
    if (state == HW_CU_FAULTED)
        *fault_out = a->fault;
    return state;
}

/* Where a warp of the unit stands; false: none runs. */
static bool unit_where(struct hw_cu_array *cus, uint32_t unit, struct hw_cu_fault *where_out)
{
    for (uint32_t k = 0; k < cus->config.warps_per_cu; k++) {
        struct cu_warp *w = &cus->cus[unit].warps[k];

        if (!w->used || !w->u || !w->rg)
            continue;
        *where_out = (struct hw_cu_fault){ .pc = cu_pc(w->rg, w->u), .wg = w->group->linear,
                                           .info = PETREL_FAULT_INFO(PETREL_ACCESS_EXEC, cu_first_lane(w->mask), w->index, unit) };
        return true;
    }
    return false;
}

bool hw_cu_probe(struct hw_cu_array *cus, struct hw_cu_fault *where_out)
{
    bool found = false;

    *where_out = (struct hw_cu_fault){ 0 };
    for (uint32_t i = 0; i < cus->config.cu_count; i++) {
        if (cus->cus[i].hung) { /* it does not answer, but its program counter can be read from outside */
            unit_where(cus, i, where_out);
            return false;
        }
        found = found || unit_where(cus, i, where_out);
    }
    return true;
}
