/* SPDX-License-Identifier: MIT */
/* path.c - divergence: paths of lanes, the nodes where they meet again, ageing so that no lane starves. */
/*
 * Lanes that run together are a path. A divergent branch with a known meeting point makes a node there (or shares the innermost
 * one, as a loop's exits do): lanes that arrive wait until all lanes of the node are there. Call depth is part of a place, so
 * recursion does not confuse it. EXIT nodes stand for "the function's return": each lane keeps its own return address.
 * After CU_AGE_NORMAL instructions while others stand still a starved path runs for CU_AGE_FORCED, or lanes that wait at a node do;
 * code without atomics and fences waits for nobody and has more time, since this tears lanes apart. Lanes from a node leave a GROUP
 * node behind: they still wait for their group at its next warp-wide operation.
 */
#include <assert.h>
#include <string.h>

#include "cu_priv.h"
#include "record.h"
#include "sys.h"

UMD_LOG_MODULE("hw.cu.path");

static uint64_t path_pc(const struct cu_path *p)
{
    return cu_pc(p->rg, p->u);
}

static struct cu_path *path_new(struct cu_warp *w)
{
    unsigned i = (unsigned)__builtin_ctz(~w->paths);

    assert(w->paths != UINT32_MAX); /* paths are disjoint and none is empty */
    w->paths |= 1u << i;
    return &w->path[i];
}

static void path_free(struct cu_warp *w, const struct cu_path *p)
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

/* Below the current lanes' innermost node, or NULL: no host memory. */
static struct cu_node *node_new(struct cu_warp *w, enum cu_node_kind kind, uint32_t mask, uint32_t depth, struct cu_node *parent)
{
    struct hw_cu *cu = w->cu;
    struct cu_node *n;

    if (!cu->free_nodes && !nodes_grow(cu))
        return NULL;
    n = cu->free_nodes;
    cu->free_nodes = n->next;
    n->kind = kind;
    n->calls = false;
    n->u = NULL;
    n->rg = w->rg;
    n->mask = mask;
    n->arrived = 0;
    n->turns = 0;
    n->depth = depth;
    n->parent = parent;
    n->stamp = ++w->stamp;
    n->next = w->nodes;
    n->link = &w->nodes;
    if (n->next)
        n->next->link = &n->next;
    w->nodes = n;
    w->group_nodes += kind == CU_NODE_GROUP;
    return n;
}

static void node_free(struct cu_warp *w, struct cu_node *n)
{
    struct cu_node *g;

    *n->link = n->next;
    if (n->next)
        n->next->link = n->link;
    w->group_nodes -= n->kind == CU_NODE_GROUP;
    node_release(w->cu, n);
    if (!w->group_nodes)
        return;
    do { /* groups that were forced out of this place met here */
        g = w->nodes;
        while (g && !(g->kind == CU_NODE_GROUP && g->parent == n))
            g = g->next;
        if (g)
            node_free(w, g);
    } while (g);
}

/* Innermost node that is a place. */
static struct cu_node *node_place(struct cu_node *n)
{
    while (n && n->kind == CU_NODE_GROUP)
        n = n->parent;
    return n;
}

void cu_path_start(struct cu_warp *w, uint32_t lanes, const struct cu_uop *u, struct cu_region *rg)
{
    w->paths = 1;
    w->nodes = NULL;
    w->group_nodes = 0;
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
        if (q != p && q->state == CU_PATH_RUN && q->u == p->u && q->depth == p->depth && q->node == p->node) {
            p->mask |= q->mask;
            path_free(w, q);
        }
    }
}

static bool force_some_node(struct cu_warp *w);

/* Deepest call, then lowest pc. */
static struct cu_path *best_path(struct cu_warp *w)
{
    struct cu_path *best = NULL, *p;

    CU_EACH_PATH(w, p) {
        if (p->state != CU_PATH_RUN)
            continue;
        if (!best || p->depth > best->depth || (p->depth == best->depth && path_pc(p) < path_pc(best)))
            best = p;
    }
    return best;
}

/* NULL: none can run. Lanes that wait at a node for lanes which wait at a barrier are let go: they may be about to return. */
static const struct cu_uop *select_path(struct cu_warp *w)
{
    struct cu_path *best;

    do {
        if (w->cu->array->faulted)
            return NULL;
        best = best_path(w);
    } while (!best && force_some_node(w));
    if (!best)
        return NULL;
    merge_equal(w, best);
    return make_current(w, best);
}

static void node_arrive(struct cu_warp *w, struct cu_node *n, uint32_t lanes, uint32_t turns);

/* A path starts at u below node `parent`; if that node's place is here, it arrives there at once. */
static void start_at(struct cu_warp *w, const struct cu_uop *u, struct cu_region *rg, uint32_t lanes, uint32_t depth, uint32_t turns,
                     struct cu_node *parent)
{
    struct cu_node *place = node_place(parent);
    struct cu_path *p;

    if (place && place->kind == CU_NODE_POINT && place->u == u && place->depth == depth) {
        node_arrive(w, place, lanes, turns);
        return;
    }
    p = path_new(w);
    *p = (struct cu_path){ .u = u, .rg = rg, .mask = lanes, .depth = depth, .turns = turns, .node = parent, .state = CU_PATH_RUN, .stamp = w->stamp };
}

/* Lets `lanes` go on from node n's place, below `parent`. */
static void start_lanes(struct cu_warp *w, const struct cu_node *n, uint32_t lanes, struct cu_node *parent)
{
    if (n->kind == CU_NODE_POINT) {
        start_at(w, n->u, n->rg, lanes, n->depth, n->turns, parent);
        return;
    }
    while (lanes) {
        uint64_t pc = n->pc[cu_first_lane(lanes)];
        uint32_t same = 0;
        struct cu_region *rg;
        const struct cu_uop *u;

        for (uint32_t m = lanes; m; m &= m - 1)
            same |= n->pc[cu_first_lane(m)] == pc ? m & -m : 0;
        u = cu_code_at(w, pc, &rg);
        if (!u)
            return;
        if (n->calls)
            cu_converge_function(w->cu->array, rg, (uint32_t)(u - rg->uops));
        start_at(w, u, rg, same, n->depth ? n->depth - 1u : 0, n->turns, parent);
        lanes &= ~same;
    }
}

static void node_check(struct cu_warp *w, struct cu_node *n)
{
    struct cu_node copy;

    if (!n->mask) {
        node_free(w, n);
    } else if (n->arrived == n->mask) {
        copy = *n;
        node_free(w, n);
        start_lanes(w, &copy, copy.arrived, copy.parent);
    }
}

static void node_arrive(struct cu_warp *w, struct cu_node *n, uint32_t lanes, uint32_t turns)
{
    assert((n->mask & lanes) == lanes);
    n->arrived |= lanes;
    n->turns = n->turns > turns ? n->turns : turns;
    node_check(w, n);
}

/* All of a forced group wait at a warp-wide operation: the same one, or they exclude each other. */
static void group_check(struct cu_warp *w, struct cu_node *g)
{
    struct cu_path *first = NULL, *p;

    if (g->arrived != g->mask)
        return;
    CU_EACH_PATH(w, p) {
        if (p->state != CU_PATH_GROUP || p->node != g)
            continue;
        if (!first) {
            first = p;
            continue;
        }
        if (p->u != first->u) {
            w->rg = first->rg;
            cu_fault(w, first->u, PETREL_FAULT_TRAP, PETREL_ACCESS_EXEC, path_pc(p), cu_first_lane(first->mask), PETREL_TRAP_BARRIER);
            return;
        }
        first->mask |= p->mask;
        path_free(w, p);
    }
    if (first) {
        first->state = CU_PATH_RUN;
        first->node = g->parent;
    }
    node_free(w, g);
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

    CU_EACH_PATH(w, q) {
        if (q == p || q->state != CU_PATH_RUN || q->node != p->node || q->depth != p->depth)
            continue;
        if (q->u == p->u) {
            p->mask |= q->mask;
            p->turns = q->turns > p->turns ? q->turns : p->turns;
            path_free(w, q);
        } else if (q->turns < low->turns || (q->turns == low->turns && path_pc(q) < path_pc(low))) {
            low = q;
        }
    }
    return low;
}

const struct cu_uop *cu_path_branch(struct cu_warp *w, const struct cu_uop *u, uint32_t taken, const struct cu_uop *to)
{
    struct cu_path *p = &w->path[w->cur], *q;
    const struct cu_uop *fall = u + u->step, *meeting = u->reconv < CU_RECONV_EXIT ? w->rg->uops + u->reconv : NULL;
    enum cu_node_kind kind = meeting ? CU_NODE_POINT : CU_NODE_EXIT;
    uint32_t other = p->mask & ~taken;
    struct cu_node *n = node_place(p->node);

    assert(taken && other);
    w->cu->array->counters.divergent_branches++;
    if (u->reconv != CU_RECONV_NONE) {
        if (!n || n->kind != kind || n->u != meeting || n->depth != p->depth) {
            n = node_new(w, kind, p->mask, p->depth, p->node);
            if (n) {
                n->u = meeting;
                p->node = n;
            }
        }
        if (n && meeting && (to == meeting || fall == meeting)) {
            n->arrived |= to == meeting ? taken : other;
            n->turns = n->turns > p->turns ? n->turns : p->turns;
            p->mask = to == meeting ? other : taken;
            p->u = to == meeting ? fall : to;
            cu_warp_set_mask(w, p->mask);
            return p->u;
        }
    }
    q = path_new(w);
    *q = *p;
    q->u = to < fall ? fall : to;
    q->mask = to < fall ? other : taken;
    q->stamp = w->stamp;
    p->u = to < fall ? to : fall;
    p->mask = to < fall ? taken : other;
    if (u->reconv == CU_RECONV_NONE)
        return select_path(w);
    return make_current(w, forced_turn(w) ? p : lowest_sibling(w, p));
}

const struct cu_uop *cu_path_join(struct cu_warp *w, const struct cu_uop *u)
{
    struct cu_path *p = &w->path[w->cur];

    for (;;) {
        struct cu_node *node = node_place(p->node);

        if (!node || node->kind != CU_NODE_POINT || node->u != u || node->depth != p->depth)
            return u;
        if (p->mask != node->mask) {
            cu_not_issued(w);
            path_free(w, p);
            node_arrive(w, node, p->mask, p->turns);
            return NULL;
        }
        p->node = node->parent;
        node_free(w, node);
    }
}

const struct cu_uop *cu_handle_join(struct cu_warp *w, const struct cu_uop *u)
{
    struct cu_path *p, *low;

    if (u->flags & CU_UOP_JOIN && !cu_path_join(w, u))
        return select_path(w);
    if (u->flags & CU_UOP_MERGE && w->paths & (w->paths - 1) && !forced_turn(w)) {
        p = &w->path[w->cur];
        p->u = u;
        low = lowest_sibling(w, p);
        if (low != p) {
            cu_not_issued(w);
            return make_current(w, low);
        }
        p->turns++;
        cu_warp_set_mask(w, p->mask);
    }
    return w->cu->array->handlers[u->op][w->partial](w, u);
}

static struct cu_node *due_node(const struct cu_warp *w)
{
    struct cu_node *n = w->nodes;

    while (n && n->mask && n->arrived != n->mask)
        n = n->next;
    return n;
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
    while (!w->cu->array->faulted && (n = due_node(w))) { /* each is freed, or the dispatch faults */
        if (n->kind == CU_NODE_GROUP && n->mask)
            group_check(w, n);
        else
            node_check(w, n);
    }
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
    path_free(w, p);
    lanes_exit(w, p->mask);
    sync_check(w);
    cu_group_barrier_check(w->group, w->now);
    return select_path(w);
}

/* Lanes that call different functions meet where they return to. Value: the node, or the old one when there is no room. */
static struct cu_node *call_node(struct cu_warp *w, const struct cu_uop *back, uint32_t lanes, const struct cu_path *old)
{
    struct cu_uop *own = old->rg->uops + (back - old->rg->uops);
    struct cu_node *n = node_new(w, CU_NODE_POINT, lanes, old->depth, old->node);

    if (!n)
        return old->node;
    n->u = back;
    n->rg = old->rg;
    own->flags |= CU_UOP_JOIN;
    cu_uop_bind(w->cu->array, own);
    return n;
}

/* Splits the current path by target. Lanes whose function returns wait for each other first. */
const struct cu_uop *cu_path_jump(struct cu_warp *w, const struct cu_uop *u, const uint64_t pc[CU_LANES], int depth_step, bool is_return)
{
    struct cu_path *p = &w->path[w->cur], old = *p;
    uint32_t gone = 0, lanes;
    struct cu_node *place = node_place(old.node), scatter = { .kind = CU_NODE_EXIT };

    for (uint32_t m = old.mask; m; m &= m - 1)
        gone |= pc[cu_first_lane(m)] == CU_RETURN_VA ? m & -m : 0;
    lanes = old.mask & ~gone;
    cu_account(w);
    path_free(w, p);
    if (gone) {
        lanes_exit(w, gone);
        sync_check(w);
        cu_group_barrier_check(w->group, w->now);
        if (!lanes)
            return select_path(w);
    }
    if (is_return && place && place->kind == CU_NODE_EXIT && place->depth == old.depth) {
        for (uint32_t m = lanes; m; m &= m - 1)
            place->pc[cu_first_lane(m)] = pc[cu_first_lane(m)];
        node_arrive(w, place, lanes, old.turns);
        return select_path(w);
    }
    if (depth_step > 0)
        old.node = call_node(w, u + u->step, lanes, &old);
    memcpy(scatter.pc, pc, sizeof(scatter.pc));
    scatter.depth = old.depth + (uint32_t)depth_step + 1; /* start_lanes takes one off */
    scatter.calls = depth_step > 0;
    scatter.turns = old.turns;
    w->mask = lanes;
    start_lanes(w, &scatter, lanes, old.node);
    return select_path(w);
}

/* Lets the lanes that wait at node n run on, as a group that stays together with the others. False: no room for that. */
static bool force_node(struct cu_warp *w, struct cu_node *n)
{
    struct cu_node copy = *n, *g = copy.parent;

    if (!g || g->kind != CU_NODE_GROUP) {
        g = node_new(w, CU_NODE_GROUP, copy.mask, copy.depth, copy.parent);
        if (!g)
            return false;
    }
    n->parent = g;
    n->mask &= ~copy.arrived;
    n->arrived = 0;
    n->stamp = ++w->stamp;
    start_lanes(w, &copy, copy.arrived, g);
    return true;
}

/* The node where lanes have waited for longest; NULL: none wait. */
static struct cu_node *waiting_node(const struct cu_warp *w)
{
    struct cu_node *old = NULL;

    for (struct cu_node *n = w->nodes; n; n = n->next)
        if (n->kind != CU_NODE_GROUP && n->arrived && (!old || n->stamp < old->stamp))
            old = n;
    return old;
}

static bool force_some_node(struct cu_warp *w)
{
    struct cu_node *n = waiting_node(w);

    return n && force_node(w, n);
}

static struct cu_path *oldest_path(struct cu_warp *w)
{
    struct cu_path *old = NULL, *p;

    CU_EACH_PATH(w, p)
        if (p != &w->path[w->cur] && p->state == CU_PATH_RUN && (!old || p->stamp < old->stamp))
            old = p;
    return old;
}

const struct cu_uop *cu_path_age(struct cu_warp *w, const struct cu_uop *u)
{
    struct cu_path *p = &w->path[w->cur], *q, *forced;
    struct cu_node *n;

    cu_fuel_set(w, CU_AGE_NORMAL);
    if (p->mask == w->live)
        return u;
    p->u = u;
    if (!forced_turn(w) && !w->synchronises && ++w->patience < CU_AGE_PATIENCE)
        return u;
    w->patience = 0;
    w->synchronises = false;
    if (w->ages++ & 1) /* a forced slice is over */
        return select_path(w);
    q = oldest_path(w);
    n = waiting_node(w);
    if (n && (!q || w->ages & 2)) {
        uint32_t lanes = n->arrived;

        if (force_node(w, n)) /* they may wait at the next node already */
            CU_EACH_PATH(w, forced)
                q = forced->state == CU_PATH_RUN && (forced->mask & lanes) ? forced : q;
    }
    if (w->cu->array->faulted)
        return NULL;
    if (!q) {
        w->ages++;
        return u;
    }
    cu_fuel_set(w, CU_AGE_FORCED);
    return make_current(w, q);
}

bool cu_path_gather(struct cu_warp *w, const struct cu_uop *u, const struct cu_uop **next_out)
{
    struct cu_path *p = &w->path[w->cur];
    struct cu_node *n = p->node;

    if (!n || n->kind != CU_NODE_GROUP)
        return true;
    cu_not_issued(w);
    p->u = u;
    p->state = CU_PATH_GROUP;
    n->arrived |= p->mask;
    group_check(w, n);
    *next_out = select_path(w);
    return false;
}

const struct cu_uop *cu_path_barrier(struct cu_warp *w, const struct cu_uop *u)
{
    struct cu_path *p = &w->path[w->cur];

    cu_account(w);
    p->u = u + u->step;
    p->state = CU_PATH_BARRIER;
    w->group->waiting += (uint32_t)__builtin_popcount(p->mask);
    cu_group_barrier_check(w->group, w->now);
    return select_path(w);
}

const struct cu_uop *cu_path_sync(struct cu_warp *w, const struct cu_uop *u)
{
    struct cu_path *p = &w->path[w->cur];

    p->u = u + u->step;
    p->state = CU_PATH_SYNC;
    sync_check(w);
    return select_path(w);
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
            w->u = select_path(w);
    }
    g->warp[0]->cu->array->counters.barriers++;
}
