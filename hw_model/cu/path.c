/* SPDX-License-Identifier: MIT */
/* path.c - divergence: paths of lanes, the nodes where they meet again, ageing so that no lane starves. */
/*
 * Lanes that run together are a path. A divergent branch with a known meeting point makes a node there (or shares the innermost
 * one, as a loop's exits do): lanes that arrive wait until all lanes of the node are there. Call depth is part of a place, so
 * recursion does not confuse it. EXIT nodes stand for "the function's return": each lane keeps its own return address. Of the paths that
 * can run, the one in the deepest call does, then the one at the lowest pc; none: lanes that wait at a node are let go.
 * When the path that runs is found to wait (spin.c) while others stand still, a starved one runs for CU_AGE_FORCED instructions, or lanes
 * that wait at a node do; who gets on has much longer, since this tears lanes apart. What keeps them together all the same where they
 * see each other, at warp-wide operations, is in cohort.c.
 */
#include <assert.h>
#include <string.h>

#include "path.h"
#include "record.h"
#include "sys.h"

UMD_LOG_MODULE("hw.cu.path");

static struct cu_path *path_new(struct cu_warp *w)
{
    unsigned i = (unsigned)__builtin_ctz(~w->paths);

    assert(w->paths != UINT32_MAX); /* paths are disjoint and none is empty */
    w->paths |= 1u << i;
    return &w->path[i];
}

void cu_path_free(struct cu_warp *w, const struct cu_path *p)
{
    w->paths &= ~(1u << (p - w->path));
}

/* ---- Nodes ---- */

static void node_release(struct hw_cu *cu, struct cu_node *n)
{
    n->next = cu->free_nodes;
    cu->free_nodes = n;
}

void cu_nodes_reset(struct hw_cu *cu)
{
    cu->free_nodes = NULL;
    for (struct cu_node_chunk *c = cu->node_chunks; c; c = c->next)
        for (unsigned i = 0; i < CU_NODE_CHUNK; i++)
            node_release(cu, &c->node[i]);
}

void cu_nodes_destroy(struct hw_cu *cu)
{
    while (cu->node_chunks) {
        struct cu_node_chunk *c = cu->node_chunks;

        cu->node_chunks = c->next;
        umd_free(c);
    }
}

static bool nodes_grow(struct hw_cu *cu)
{
    struct cu_node_chunk *c;

    umd_record_scope_begin(); /* stepped: a caller's thread, whose record is none of this */
    c = umd_alloc(sizeof(*c));
    if (!c)
        UMD_ABSORB(UMD_ERR_MEM_HOST_ALLOC_FAILED, "lanes that part do not wait for each other, which is slower and not wrong");
    umd_record_scope_end();
    if (!c)
        return false;
    c->next = cu->node_chunks;
    cu->node_chunks = c;
    for (unsigned i = CU_NODE_CHUNK; i-- > 0;)
        node_release(cu, &c->node[i]);
    return true;
}

struct cu_node *cu_node_new(struct cu_warp *w, enum cu_node_kind kind, uint32_t mask, uint32_t depth, struct cu_node *parent)
{
    struct hw_cu *cu = w->cu;
    struct cu_node *n;

    if (w->node_count >= CU_NODES_MAX || (!cu->free_nodes && !nodes_grow(cu)))
        return NULL;
    n = cu->free_nodes;
    cu->free_nodes = n->next;
    n->kind = (uint8_t)kind;
    n->calls = false;
    n->returns = kind == CU_NODE_EXIT;
    n->u = NULL;
    n->behind = n->passed = NULL;
    n->rg = w->rg;
    n->mask = mask;
    n->arrived = 0;
    n->turns = 0;
    n->depth = depth;
    n->site = 0;
    n->parent = parent;
    n->stamp = ++w->stamp;
    w->node_count++;
    if (kind == CU_NODE_PASSED)
        return n; /* its cohort knows it */
    n->next = w->nodes;
    n->link = &w->nodes;
    if (n->next)
        n->next->link = &n->next;
    w->nodes = n;
    w->cohorts += kind == CU_NODE_COHORT;
    return n;
}

void cu_node_free(struct cu_warp *w, struct cu_node *n)
{
    *n->link = n->next;
    if (n->next)
        n->next->link = n->link;
    if (n->parent && n->parent->kind == CU_NODE_COHORT && n->parent->behind == n)
        n->parent->behind = NULL;
    w->cohorts -= n->kind == CU_NODE_COHORT;
    for (struct cu_node *next; n; n = next) {
        next = n->passed;
        w->node_count--;
        node_release(w->cu, n);
    }
}

/* Below path p, of the place that `kind` and u say. */
static struct cu_node *place_new(struct cu_warp *w, enum cu_node_kind kind, const struct cu_uop *u, uint32_t lanes, const struct cu_path *p)
{
    struct cu_node *n = cu_node_new(w, kind, lanes, p->depth, p->node);

    if (!n)
        return NULL;
    n->u = u;
    n->rg = p->rg;
    n->site = p->site;
    return n;
}

void cu_path_start(struct cu_warp *w, uint32_t lanes, const struct cu_uop *u, struct cu_region *rg)
{
    w->paths = 1;
    w->nodes = NULL;
    w->node_count = w->cohorts = 0;
    w->cur = 0;
    w->path[0] = (struct cu_path){ .u = u, .rg = rg, .mask = lanes, .state = CU_PATH_RUN };
    w->rg = rg;
    w->u = u;
    w->live = lanes;
    w->fuel = w->fuel_mark = CU_AGE_NORMAL;
    w->fuel_more = 0;
    cu_warp_set_mask(w, lanes);
}

static const struct cu_uop *make_current(struct cu_warp *w, struct cu_path *p)
{
    w->cur = (uint32_t)(p - w->path);
    w->rg = p->rg;
    p->stamp = ++w->stamp;
    cu_warp_set_mask(w, p->mask);
    return p->u;
}

/* Paths that came to one place without a node there become one. */
static void merge_equal(struct cu_warp *w, struct cu_path *p)
{
    struct cu_path *q;

    CU_EACH_PATH(w, q) {
        if (q != p && q->state == CU_PATH_RUN && q->u == p->u && q->depth == p->depth && q->site == p->site && q->node == p->node) {
            p->mask |= q->mask;
            p->turns = q->turns > p->turns ? q->turns : p->turns;
            cu_path_free(w, q);
        }
    }
}

static bool let_some_go(struct cu_warp *w);

/* Deepest call, then lowest pc. */
static struct cu_path *best_path(struct cu_warp *w)
{
    struct cu_path *best = NULL, *p;

    CU_EACH_PATH(w, p) {
        if (p->state != CU_PATH_RUN)
            continue;
        if (!best || p->depth > best->depth || (p->depth == best->depth && cu_path_pc(p) < cu_path_pc(best)))
            best = p;
    }
    return best;
}

/* Lanes that wait at a node for lanes which wait at a barrier are let go: they may be about to return. */
const struct cu_uop *cu_path_select(struct cu_warp *w)
{
    struct cu_path *best;

    do {
        if (w->cu->faulted)
            return NULL;
        if (w->cohorts)
            cu_cohorts_settle(w);
        best = best_path(w);
    } while (!best && let_some_go(w));
    if (!best)
        return NULL;
    merge_equal(w, best);
    return make_current(w, best);
}

static void node_arrive(struct cu_warp *w, struct cu_node *n, struct cu_node *from, uint32_t lanes, uint32_t turns);

/* Path `p`, not yet one of the warp's, starts; if the place of its innermost node is here, it arrives there at once. */
static void path_begin(struct cu_warp *w, const struct cu_path *p)
{
    struct cu_node *place = cu_node_place(p->node);

    if (place && place->kind == CU_NODE_POINT && place->u == p->u && place->depth == p->depth) {
        node_arrive(w, place, p->node, p->mask, p->turns);
        return;
    }
    *path_new(w) = *p;
}

void cu_node_start(struct cu_warp *w, const struct cu_node *n, uint32_t lanes, struct cu_node *parent)
{
    struct cu_path p = { .u = n->u, .rg = n->rg, .mask = lanes, .depth = n->depth, .site = n->site, .turns = n->turns, .node = parent,
                         .state = CU_PATH_RUN, .stamp = w->stamp };

    if (n->kind == CU_NODE_POINT) {
        path_begin(w, &p);
        return;
    }
    for (; lanes; lanes &= ~p.mask) {
        const uint64_t pc = n->pc[cu_first_lane(lanes)];

        p.mask = 0;
        for (uint32_t m = lanes; m; m &= m - 1)
            p.mask |= n->pc[cu_first_lane(m)] == pc ? m & -m : 0;
        p.u = cu_code_at(w, pc, &p.rg);
        if (!p.u)
            return;
        if (n->calls)
            cu_converge_function(w->cu->array, p.rg, (uint32_t)(p.u - p.rg->uops));
        p.depth = n->depth;
        p.site = n->site;
        if (n->returns)
            cu_path_returned(&p, pc);
        path_begin(w, &p);
    }
}

static void node_check(struct cu_warp *w, struct cu_node *n)
{
    struct cu_node copy;

    if (!n->mask) {
        cu_node_free(w, n);
    } else if (n->arrived == n->mask) {
        copy = *n;
        cu_node_free(w, n);
        cu_node_start(w, &copy, copy.arrived, copy.parent);
    }
}

/* Lanes whose innermost nodes begin with `from` are at the place of n. */
static void node_arrive(struct cu_warp *w, struct cu_node *n, struct cu_node *from, uint32_t lanes, uint32_t turns)
{
    assert((n->mask & lanes) == lanes);
    cu_cohort_leave(w, from, n, lanes);
    n->arrived |= lanes;
    n->turns = n->turns > turns ? n->turns : turns;
    node_check(w, n);
}

/* A turn that ageing gave: nobody is waited for. */
static bool forced_turn(const struct cu_warp *w)
{
    return w->ages & 1;
}

/* Of the paths that part below one node, the one at the lowest address; those at p's place become part of p. */
static struct cu_path *lowest_sibling(struct cu_warp *w, struct cu_path *p)
{
    struct cu_path *low = p, *q;

    merge_equal(w, p);
    CU_EACH_PATH(w, q) {
        if (q == p || q->state != CU_PATH_RUN || q->node != p->node || q->depth != p->depth || q->site != p->site)
            continue;
        if (q->turns < low->turns || (q->turns == low->turns && cu_path_pc(q) < cu_path_pc(low)))
            low = q;
    }
    return low;
}

const struct cu_uop *cu_path_branch(struct cu_warp *w, const struct cu_uop *u, uint32_t taken, const struct cu_uop *to)
{
    struct cu_path *p = &w->path[w->cur], *q;
    const struct cu_uop *fall = u + u->step, *meeting = u->reconv < CU_RECONV_EXIT ? w->rg->uops + u->reconv : NULL;
    enum cu_node_kind kind = meeting ? CU_NODE_POINT : CU_NODE_EXIT;
    uint32_t other = p->mask & ~taken;
    struct cu_node *n = cu_node_place(p->node);

    assert(taken && other);
    w->cu->counters.divergent_branches++;
    if (u->reconv != CU_RECONV_NONE) {
        if (!n || n->kind != kind || n->u != meeting || n->depth != p->depth) {
            n = place_new(w, kind, meeting, p->mask, p);
            p->node = n ? n : p->node;
        }
        if (n && meeting && (to == meeting || fall == meeting)) {
            cu_cohort_leave(w, p->node, n, to == meeting ? taken : other);
            n->arrived |= to == meeting ? taken : other;
            n->turns = n->turns > p->turns ? n->turns : p->turns;
            p->mask = to == meeting ? other : taken;
            p->u = to == meeting ? fall : to;
            cu_warp_set_mask(w, p->mask);
            return p->u;
        }
    }
    if (u->reconv == CU_RECONV_NONE)
        cu_cohort_split(w, p);
    q = path_new(w);
    *q = *p;
    q->u = to < fall ? fall : to;
    q->mask = to < fall ? other : taken;
    q->stamp = w->stamp;
    p->u = to < fall ? to : fall;
    p->mask = to < fall ? taken : other;
    if (u->reconv == CU_RECONV_NONE)
        return cu_path_select(w);
    return make_current(w, forced_turn(w) ? p : lowest_sibling(w, p));
}

const struct cu_uop *cu_path_join(struct cu_warp *w, const struct cu_uop *u)
{
    struct cu_path *p = &w->path[w->cur];

    for (;;) {
        struct cu_node *node = cu_node_place(p->node);

        if (!node || node->kind != CU_NODE_POINT || node->u != u || node->depth != p->depth)
            return u;
        if (p->mask != node->mask) {
            cu_not_issued(w);
            cu_path_free(w, p);
            node_arrive(w, node, p->node, p->mask, p->turns);
            return NULL;
        }
        cu_cohort_leave(w, p->node, node, p->mask);
        p->node = node->parent;
        cu_node_free(w, node);
    }
}

const struct cu_uop *cu_handle_join(struct cu_warp *w, const struct cu_uop *u)
{
    struct cu_path *p, *low;

    if (u->flags & CU_UOP_JOIN && !cu_path_join(w, u))
        return cu_path_select(w);
    if (u->flags & CU_UOP_MERGE && w->paths & (w->paths - 1) && !forced_turn(w)) {
        p = &w->path[w->cur];
        p->u = u;
        low = lowest_sibling(w, p);
        if (low != p) {
            cu_not_issued(w);
            return make_current(w, low);
        }
        p->turns++;
        if (p->mask != w->mask) { /* the instruction is all lanes' */
            cu_not_issued(w);
            cu_warp_set_mask(w, p->mask);
            w->fuel--;
        }
    }
    w->issued_mask = w->mask;
    if (w->cohorts && u->flags & CU_UOP_JOIN)
        cu_cohort_pass(w, u);
    return w->cu->array->handlers[u->op][w->partial](w, u);
}

static struct cu_node *due_node(const struct cu_warp *w)
{
    struct cu_node *n = w->nodes;

    while (n && n->mask && n->arrived != n->mask)
        n = n->next;
    return n;
}

void cu_nodes_settle(struct cu_warp *w)
{
    struct cu_node *n;

    while (!w->cu->faulted && (n = due_node(w))) /* each is freed, or the dispatch faults */
        node_check(w, n);
}

/* Takes lanes out of the warp and of all nodes. */
static void lanes_exit(struct cu_warp *w, uint32_t lanes)
{
    struct cu_node *n;

    cu_tell_exits(w, lanes);
    w->live &= ~lanes;
    w->group->live -= (uint32_t)__builtin_popcount(lanes);
    for (n = w->nodes; n; n = n->next) {
        n->mask &= ~lanes;
        n->arrived &= ~lanes;
    }
    cu_nodes_settle(w);
}

static void sync_check(struct cu_warp *w)
{
    uint32_t waiting = 0;
    struct cu_path *p;

    CU_EACH_PATH(w, p)
        waiting |= p->state == CU_PATH_SYNC ? p->mask : 0;
    if (!waiting || waiting != w->live)
        return;
    CU_EACH_PATH(w, p)
        if (p->state == CU_PATH_SYNC)
            p->state = CU_PATH_RUN;
}

const struct cu_uop *cu_path_exit(struct cu_warp *w)
{
    struct cu_path *p = &w->path[w->cur];

    cu_account(w);
    cu_path_free(w, p);
    lanes_exit(w, p->mask);
    sync_check(w);
    cu_group_barrier_check(w->group, w->now);
    return cu_path_select(w);
}

/* Lanes that call different functions meet where they return to. Value: the node, or the old one when there is no room. */
static struct cu_node *call_node(struct cu_warp *w, const struct cu_uop *back, uint32_t lanes, const struct cu_path *old)
{
    const uint64_t at = (uint64_t)(back - old->rg->uops);
    struct cu_uop *own = old->rg->uops + at;
    struct cu_node *n = at < old->rg->size_B / 2 ? place_new(w, CU_NODE_POINT, back, lanes, old) : NULL;

    if (!n) /* no room, or the place is one of another region: nobody would come to this one */
        return old->node;
    if (own->flags & CU_UOP_JOIN)
        return n;
    assert(w->cu->alone); /* else the unit has asked: cu_jump_ready */
    own->flags |= CU_UOP_JOIN;
    cu_uop_bind(w->cu->array, own);
    return n;
}

static bool one_target(const uint64_t pc[CU_LANES], uint32_t lanes)
{
    uint64_t differ = 0;

    for (uint32_t m = lanes; m; m &= m - 1)
        differ |= pc[cu_first_lane(m)] ^ pc[cu_first_lane(lanes)];
    return !differ;
}

/* Lanes part at a jump: below a node where a note says that they meet, else as at a branch without a meeting point. */
static void part_at_jump(struct cu_warp *w, const struct cu_uop *u, uint32_t lanes, struct cu_path *old)
{
    const struct cu_uop *meeting = u->reconv < CU_RECONV_EXIT ? old->rg->uops + u->reconv : NULL;
    const enum cu_node_kind kind = meeting ? CU_NODE_POINT : CU_NODE_EXIT;
    struct cu_node *n = cu_node_place(old->node);

    if (u->reconv == CU_RECONV_NONE) {
        cu_cohort_split(w, old);
    } else if (!n || n->kind != kind || n->u != meeting || n->depth != old->depth) {
        n = place_new(w, kind, meeting, lanes, old);
        old->node = n ? n : old->node;
    }
}

/* Splits the current path by target. Lanes whose function returns wait for each other first. */
const struct cu_uop *cu_path_jump(struct cu_warp *w, const struct cu_uop *u, const uint64_t pc[CU_LANES], int depth_step, bool is_return)
{
    struct cu_path *p = &w->path[w->cur], old = *p;
    uint32_t gone = 0, lanes;
    struct cu_node *place = cu_node_place(old.node);
    struct cu_node scatter = { .kind = CU_NODE_EXIT, .depth = old.depth, .site = old.site, .turns = old.turns,
                               .calls = depth_step > 0, .returns = depth_step < 0 };

    for (uint32_t m = old.mask; m; m &= m - 1)
        gone |= pc[cu_first_lane(m)] == CU_RETURN_VA ? m & -m : 0;
    lanes = old.mask & ~gone;
    cu_account(w);
    cu_path_free(w, p);
    if (gone) {
        lanes_exit(w, gone);
        sync_check(w);
        cu_group_barrier_check(w->group, w->now);
        if (!lanes)
            return cu_path_select(w);
    }
    if (is_return && place && place->kind == CU_NODE_EXIT && place->depth == old.depth) {
        for (uint32_t m = lanes; m; m &= m - 1)
            place->pc[cu_first_lane(m)] = pc[cu_first_lane(m)];
        cu_code_reach(w, pc, lanes);
        node_arrive(w, place, old.node, lanes, old.turns);
        return cu_path_select(w);
    }
    if (depth_step > 0) {
        if (!one_target(pc, lanes))
            old.node = call_node(w, u + u->step, lanes, &old);
        scatter.depth++;
        scatter.site = cu_site_in(old.site, cu_pc(old.rg, u + u->step));
    }
    memcpy(scatter.pc, pc, sizeof(scatter.pc));
    w->mask = lanes;
    if (!depth_step && !one_target(pc, lanes))
        part_at_jump(w, u, lanes, &old);
    cu_node_start(w, &scatter, lanes, old.node);
    return cu_path_select(w);
}

/* The node where lanes have waited for longest; NULL: none wait. */
static struct cu_node *waiting_node(const struct cu_warp *w)
{
    struct cu_node *old = NULL;

    for (struct cu_node *n = w->nodes; n; n = n->next)
        if (n->arrived && (!old || n->stamp < old->stamp))
            old = n;
    return old;
}

static bool let_some_go(struct cu_warp *w)
{
    struct cu_node *n = waiting_node(w);

    if (n)
        cu_cohort_let_go(w, n);
    return n;
}

static struct cu_path *oldest_path(struct cu_warp *w)
{
    struct cu_path *old = NULL, *p;

    CU_EACH_PATH(w, p)
        if (p != &w->path[w->cur] && p->state == CU_PATH_RUN && (!old || p->stamp < old->stamp))
            old = p;
    return old;
}

/* Instructions that others get now, since path p is seen to wait, says so, or has run for very long; 0: it runs on. */
static uint32_t turn_of_others(struct cu_warp *w, const struct cu_path *p)
{
    const uint32_t own = w->cu->array->config.age_instr, limit = own ? own : CU_AGE_LONG >> 2 * w->expired;
    uint32_t look;

    if (w->yields || !(look = cu_path_look(w, p)))
        return CU_AGE_FORCED;
    w->patience += w->patience ? look : CU_AGE_NORMAL;
    if (w->patience >= limit) {
        w->expired += w->expired < CU_AGE_EXPIRED_MAX;
        return limit / 4;
    }
    cu_fuel_set(w, (int32_t)look);
    return 0;
}

const struct cu_uop *cu_path_age(struct cu_warp *w, const struct cu_uop *u)
{
    struct cu_path *p = &w->path[w->cur], *q, *forced;
    struct cu_node *n;
    uint32_t turn = 0;

    cu_fuel_set(w, CU_AGE_NORMAL);
    if (p->mask == w->live) { /* nobody stands still */
        w->yields = false;
        w->patience = w->expired = 0;
        return u;
    }
    p->u = u;
    if (!forced_turn(w) && !(turn = turn_of_others(w, p)))
        return u;
    w->yields = false;
    w->patience = 0;
    if (w->ages++ & 1) { /* a forced slice is over */
        cu_fuel_set(w, CU_AGE_AGAIN);
        return cu_path_select(w);
    }
    if (w->cohorts)
        cu_cohorts_settle(w);
    q = oldest_path(w);
    n = waiting_node(w);
    if (n && (!q || w->ages & 2)) {
        uint32_t lanes = n->arrived;

        cu_cohort_let_go(w, n);
        CU_EACH_PATH(w, forced) /* they may wait at the next node already */
            q = forced->state == CU_PATH_RUN && (forced->mask & lanes) ? forced : q;
    }
    if (w->cu->faulted)
        return NULL;
    if (!q) {
        w->ages++;
        return u;
    }
    cu_fuel_set(w, (int32_t)turn);
    return make_current(w, q);
}

const struct cu_uop *cu_path_barrier(struct cu_warp *w, const struct cu_uop *u)
{
    struct cu_path *p = &w->path[w->cur];

    cu_account(w);
    p->u = u + u->step;
    p->state = CU_PATH_BARRIER;
    w->group->waiting += (uint32_t)__builtin_popcount(p->mask);
    cu_group_barrier_check(w->group, w->now);
    return cu_path_select(w);
}

const struct cu_uop *cu_path_sync(struct cu_warp *w, const struct cu_uop *u)
{
    struct cu_path *p = &w->path[w->cur];

    p->u = u + u->step;
    p->state = CU_PATH_SYNC;
    sync_check(w);
    return cu_path_select(w);
}

/* The workgroup barrier is met when every lane that has not exited waits. */
void cu_group_barrier_check(struct cu_group *g, uint64_t now)
{
    if (!g->live || g->waiting != g->live)
        return;
    g->waiting = 0;
    for (uint32_t i = 0; i < g->warps; i++) {
        struct cu_warp *w = g->warp[i];
        struct cu_path *p;

        CU_EACH_PATH(w, p)
            if (p->state == CU_PATH_BARRIER)
                p->state = CU_PATH_RUN;
        w->now = w->now > now ? w->now : now;
        if (!w->u) /* stands blocked; the warp that runs now selects for itself */
            w->u = cu_path_select(w);
    }
    g->warp[0]->cu->counters.barriers++;
}
