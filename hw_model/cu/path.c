/* SPDX-License-Identifier: MIT */
/* path.c - divergence: paths of lanes, the nodes where they meet again, ageing so that no lane starves. */
/*
 * Lanes that run together are a path. A divergent branch with a known meeting point makes a node there (or shares the innermost
 * one, as a loop's exits do): lanes that arrive wait until all lanes of the node are there. Call depth is part of a place, so
 * recursion does not confuse it. EXIT nodes stand for "the function's return": each lane keeps its own return address.
 * After CU_AGE_NORMAL instructions of one path a starved one runs for CU_AGE_FORCED: another path, or lanes that wait at a node.
 * The latter leave a GROUP node behind: they still wait for their group at its next warp-wide operation.
 */
#include <assert.h>
#include <string.h>

#include "cu_priv.h"

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

static bool node_used(const struct cu_warp *w, int n)
{
    return w->nodes >> n & 1;
}

static int node_new(struct cu_warp *w)
{
    int n = w->nodes == UINT64_MAX ? -1 : __builtin_ctzll(~w->nodes);

    if (n >= 0)
        w->nodes |= 1ull << n;
    return n;
}

static void node_free(struct cu_warp *w, int n)
{
    int i;

    assert(node_used(w, n));
    w->nodes &= ~(1ull << n);
    if (w->node[n].kind == CU_NODE_GROUP)
        w->group_nodes--;
    if (!w->group_nodes)
        return;
    /* Groups that were forced out of this place met here. */
    CU_EACH_NODE(w, i)
        if (node_used(w, i) && w->node[i].kind == CU_NODE_GROUP && w->node[i].parent == n)
            node_free(w, i);
}

/* Innermost node that is a place. */
static int node_place(const struct cu_warp *w, int n)
{
    while (n >= 0 && w->node[n].kind == CU_NODE_GROUP)
        n = w->node[n].parent;
    return n;
}

void cu_path_start(struct cu_warp *w, uint32_t lanes, const struct cu_uop *u, struct cu_region *rg)
{
    w->paths = 1;
    w->nodes = 0;
    w->group_nodes = 0;
    w->cur = 0;
    w->path[0] = (struct cu_path){ .u = u, .rg = rg, .mask = lanes, .node = -1, .state = CU_PATH_RUN };
    w->rg = rg;
    w->u = u;
    w->live = lanes;
    w->fuel = w->fuel_mark = CU_AGE_NORMAL;
    w->fuel_more = 0;
    cu_warp_set_mask(w, lanes);
}

static const struct cu_uop *make_current(struct cu_warp *w, struct cu_path *p, int32_t fuel)
{
    w->cur = (uint32_t)(p - w->path);
    w->rg = p->rg;
    cu_fuel_set(w, fuel);
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
    return make_current(w, best, CU_AGE_NORMAL);
}

static void node_arrive(struct cu_warp *w, int n, uint32_t lanes);

/* A path starts at u below node `parent`; if that node's place is here, it arrives there at once. */
static void start_at(struct cu_warp *w, const struct cu_uop *u, struct cu_region *rg, uint32_t lanes, unsigned depth, int parent)
{
    int place = node_place(w, parent);
    struct cu_path *p;

    if (place >= 0 && w->node[place].kind == CU_NODE_POINT && w->node[place].u == u && w->node[place].depth == depth) {
        node_arrive(w, place, lanes);
        return;
    }
    p = path_new(w);
    *p = (struct cu_path){ .u = u, .rg = rg, .mask = lanes, .depth = (uint16_t)depth, .node = (int16_t)parent,
                           .state = CU_PATH_RUN, .stamp = w->stamp };
}

/* Lets `lanes` go on from node n's place, below `parent`. */
static void start_lanes(struct cu_warp *w, const struct cu_node *n, uint32_t lanes, int parent)
{
    if (n->kind == CU_NODE_POINT) {
        start_at(w, n->u, n->rg, lanes, n->depth, parent);
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
        start_at(w, u, rg, same, n->depth ? n->depth - 1u : 0, parent);
        lanes &= ~same;
    }
}

static void node_check(struct cu_warp *w, int n)
{
    struct cu_node *node = &w->node[n], copy;

    if (!node_used(w, n) || node->kind == CU_NODE_GROUP)
        return;
    if (!node->mask) {
        node_free(w, n);
    } else if (node->arrived == node->mask) {
        copy = *node;
        node_free(w, n);
        start_lanes(w, &copy, copy.arrived, copy.parent);
    }
}

static void node_arrive(struct cu_warp *w, int n, uint32_t lanes)
{
    assert((w->node[n].mask & lanes) == lanes);
    w->node[n].arrived |= lanes;
    node_check(w, n);
}

/* All of a forced group wait at a warp-wide operation: the same one, or they exclude each other. */
static void group_check(struct cu_warp *w, int n)
{
    struct cu_node *g = &w->node[n];
    struct cu_path *first = NULL, *p;

    if (g->arrived != g->mask)
        return;
    CU_EACH_PATH(w, p) {
        if (p->state != CU_PATH_GROUP || p->node != n)
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
    node_free(w, n);
}

const struct cu_uop *cu_path_branch(struct cu_warp *w, const struct cu_uop *u, uint32_t taken, const struct cu_uop *to)
{
    struct cu_path *p = &w->path[w->cur], *q;
    const struct cu_uop *fall = u + u->step, *meeting = u->reconv < CU_RECONV_EXIT ? w->rg->uops + u->reconv : NULL;
    enum cu_node_kind kind = meeting ? CU_NODE_POINT : CU_NODE_EXIT;
    uint32_t other = p->mask & ~taken;
    int n = p->node;

    assert(taken && other);
    w->cu->array->counters.divergent_branches++;
    if (u->reconv != CU_RECONV_NONE) {
        if (n < 0 || w->node[n].kind != kind || w->node[n].u != meeting || w->node[n].depth != p->depth) {
            n = node_new(w);
            if (n >= 0) {
                struct cu_node *node = &w->node[n];

                node->kind = kind;
                node->u = meeting;
                node->rg = w->rg;
                node->mask = p->mask;
                node->arrived = 0;
                node->depth = p->depth;
                node->parent = p->node;
                p->node = (int16_t)n;
            }
        }
        if (n >= 0 && meeting && (to == meeting || fall == meeting)) {
            w->node[n].arrived |= to == meeting ? taken : other;
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
    cu_warp_set_mask(w, p->mask);
    return u->reconv == CU_RECONV_NONE ? select_path(w) : p->u;
}

const struct cu_uop *cu_path_join(struct cu_warp *w, const struct cu_uop *u)
{
    struct cu_path *p = &w->path[w->cur];

    for (;;) {
        int n = node_place(w, p->node);
        struct cu_node *node = n >= 0 ? &w->node[n] : NULL;

        if (!node || node->kind != CU_NODE_POINT || node->u != u || node->depth != p->depth)
            return u;
        if (p->mask != node->mask) {
            cu_not_issued(w);
            path_free(w, p);
            node_arrive(w, n, p->mask);
            return NULL;
        }
        p->node = node->parent;
        node_free(w, n);
    }
}

const struct cu_uop *cu_handle_join(struct cu_warp *w, const struct cu_uop *u)
{
    if (!cu_path_join(w, u))
        return select_path(w);
    return w->cu->array->handlers[u->op][w->partial](w, u);
}

/* Takes lanes out of the warp and of all nodes. */
static void lanes_exit(struct cu_warp *w, uint32_t lanes)
{
    int n;

    w->live &= ~lanes;
    w->group->live -= (uint32_t)__builtin_popcount(lanes);
    CU_EACH_NODE(w, n) {
        w->node[n].mask &= ~lanes;
        w->node[n].arrived &= ~lanes;
    }
    CU_EACH_NODE(w, n) {
        node_check(w, n);
        if (!node_used(w, n) || w->node[n].kind != CU_NODE_GROUP)
            continue;
        if (w->node[n].mask)
            group_check(w, n);
        else
            node_free(w, n);
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
static int call_node(struct cu_warp *w, const struct cu_uop *back, uint32_t lanes, const struct cu_path *old)
{
    struct cu_uop *own = old->rg->uops + (back - old->rg->uops);
    int n = node_new(w);

    if (n < 0)
        return old->node;
    w->node[n].kind = CU_NODE_POINT;
    w->node[n].u = back;
    w->node[n].rg = old->rg;
    w->node[n].mask = lanes;
    w->node[n].arrived = 0;
    w->node[n].depth = old->depth;
    w->node[n].parent = old->node;
    own->flags |= CU_UOP_JOIN;
    cu_uop_bind(w->cu->array, own);
    return n;
}

/* Splits the current path by target. Lanes whose function returns wait for each other first. */
const struct cu_uop *cu_path_jump(struct cu_warp *w, const struct cu_uop *u, const uint64_t pc[CU_LANES], int depth_step, bool is_return)
{
    struct cu_path *p = &w->path[w->cur], old = *p;
    uint32_t gone = 0, lanes;
    int place = node_place(w, old.node);
    struct cu_node scatter = { .kind = CU_NODE_EXIT };

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
    if (is_return && place >= 0 && w->node[place].kind == CU_NODE_EXIT && w->node[place].depth == old.depth) {
        for (uint32_t m = lanes; m; m &= m - 1)
            w->node[place].pc[cu_first_lane(m)] = pc[cu_first_lane(m)];
        node_arrive(w, place, lanes);
        return select_path(w);
    }
    if (depth_step > 0)
        old.node = (int16_t)call_node(w, u + u->step, lanes, &old);
    memcpy(scatter.pc, pc, sizeof(scatter.pc));
    scatter.depth = (uint16_t)(old.depth + depth_step + 1); /* start_lanes takes one off */
    scatter.calls = depth_step > 0;
    w->mask = lanes;
    start_lanes(w, &scatter, lanes, old.node);
    return select_path(w);
}

/* Lets the lanes that wait at node n run on, as a group that stays together with the others. False: no room for that. */
static bool force_node(struct cu_warp *w, int n)
{
    struct cu_node copy = w->node[n];
    int g = copy.parent;

    if (g < 0 || w->node[g].kind != CU_NODE_GROUP) {
        g = node_new(w);
        if (g < 0)
            return false;
        w->node[g].kind = CU_NODE_GROUP;
        w->node[g].u = NULL;
        w->node[g].mask = copy.mask;
        w->node[g].arrived = 0;
        w->node[g].depth = copy.depth;
        w->node[g].parent = copy.parent;
        w->group_nodes++;
    }
    w->node[n].parent = (int16_t)g;
    w->node[n].mask &= ~copy.arrived;
    w->node[n].arrived = 0;
    start_lanes(w, &copy, copy.arrived, g);
    return true;
}

/* A node where lanes wait, starting the search at `from`; -1: none. */
static int waiting_node(const struct cu_warp *w, unsigned from)
{
    for (unsigned i = 0; w->nodes && i < CU_NODES; i++) {
        int n = (int)((from + i) % CU_NODES);

        if (node_used(w, n) && w->node[n].kind != CU_NODE_GROUP && w->node[n].arrived)
            return n;
    }
    return -1;
}

static bool force_some_node(struct cu_warp *w)
{
    int n = waiting_node(w, 0);

    return n >= 0 && force_node(w, n);
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
    int n;

    cu_fuel_set(w, CU_AGE_NORMAL);
    if (p->mask == w->live)
        return u;
    p->u = u;
    if (w->ages++ & 1) /* a forced slice is over */
        return select_path(w);
    q = oldest_path(w);
    n = waiting_node(w, (unsigned)(w->ages / 2));
    if (n >= 0 && (!q || w->ages & 2)) {
        uint32_t lanes = w->node[n].arrived;

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
    return make_current(w, q, CU_AGE_FORCED);
}

bool cu_path_gather(struct cu_warp *w, const struct cu_uop *u, const struct cu_uop **next_out)
{
    struct cu_path *p = &w->path[w->cur];
    int n = p->node;

    if (n < 0 || w->node[n].kind != CU_NODE_GROUP)
        return true;
    cu_not_issued(w);
    p->u = u;
    p->state = CU_PATH_GROUP;
    w->node[n].arrived |= p->mask;
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
