/* SPDX-License-Identifier: MIT */
/* cohort.c - lanes that were let go from where they waited: at a warp-wide operation they wait for those they left behind. */
/*
 * A warp-wide operation must see the lanes that it would see had nobody been let go, however long others took. When lanes leave node N
 * before its time, a COHORT node goes between N and N's parent: it has all lanes of N. Those that are still to come to N are behind, and
 * go on as ever; the others are in front. When the last has come to N, all are in front: level, but scattered. So are, from the start,
 * lanes that part at a branch without a meeting point. In front:
 *
 * 1. A path stops at a warp-wide operation (state COHORT) while lanes are behind, or while a path of the cohort runs that can still come
 *    there. A barrier, which counts lanes wherever they stand, stops it only while lanes are behind: they might be in another barrier.
 * 2. A lane that comes to the place of a node around the cohort leaves the cohort.
 * 3. When nobody is behind and nobody comes, one operation goes: of those who will surely come by a meeting point where others have come
 *    by more often since N (they are a round of a loop back), else in the deepest call, then at the lowest pc. All paths that stand at it,
 *    called from the same places, in the same round, carry it out as one. The others go on waiting.
 *    (What is lacking: rounds of the loops of callers; a path would have to know its return addresses, not only a number for them.)
 *
 * Somebody can always go: a path that stops waits for one that runs, or for lanes behind. Those run, or stop for a cohort further in (and
 * so on to the innermost, where nobody is behind), or wait at a node, from where they are let go when no path of the warp runs, or in a
 * barrier: only that is a fault, see check_stuck.
 *
 * A cohort goes when its lanes are together in one path or below one node, or have left it. So those below each other are each smaller,
 * and there are few.
 */
#include <string.h>

#include "path.h"

#define PASSED_MAX 64u      /* of a cohort: what is not counted leaves order to depth and pc */
#define SURE_STEPS 4096u
#define FORKS_MAX 64u       /* branches between two places; with more, one may lead to the other */

/* Is the path that comes to cohort n by its child `below` (NULL: by none) in front? */
static bool in_front(const struct cu_node *n, const struct cu_node *below)
{
    return n->kind == CU_NODE_COHORT && !(n->behind && n->behind == below);
}

/* The outermost cohort in which path p is in front; NULL: none. *left_out: in one of these, lanes are behind. */
static struct cu_node *cohort_of(const struct cu_path *p, bool *left_out)
{
    struct cu_node *outer = NULL;
    const struct cu_node *below = NULL;

    *left_out = false;
    for (struct cu_node *n = p->node; n; below = n, n = n->parent) {
        if (!in_front(n, below))
            continue;
        outer = n;
        *left_out = *left_out || n->behind;
    }
    return outer;
}

/* A cohort of one path, or of the lanes below one node, is none and goes. */
static bool tidy(struct cu_warp *w, struct cu_node *g)
{
    struct cu_node *child = NULL;
    struct cu_path *own = NULL, *p;
    unsigned parts = 0;

    if (g->kind != CU_NODE_COHORT || g->behind)
        return false;
    CU_EACH_PATH(w, p)
        if (p->node == g) {
            own = p;
            parts++;
        }
    for (struct cu_node *n = w->nodes; n; n = n->next)
        if (n->parent == g) {
            child = n;
            parts++;
        }
    if (parts > 1)
        return false;
    if (own)
        own->node = g->parent;
    if (child)
        child->parent = g->parent;
    cu_node_free(w, g);
    return true;
}

void cu_cohort_leave(struct cu_warp *w, struct cu_node *from, const struct cu_node *to, uint32_t lanes)
{
    for (struct cu_node *n = from, *next; n != to; n = next) {
        next = n->parent;
        n->mask &= ~lanes;
        if (!n->mask)
            cu_node_free(w, n);
    }
}

/* ---- Who is let go ---- */

/* From now on nobody is released from what he stood at when there was no cohort. */
static struct cu_node *cohort_new(struct cu_warp *w, uint32_t mask, uint32_t depth, struct cu_node *parent)
{
    struct cu_path *p;

    if (!w->cohorts)
        CU_EACH_PATH(w, p)
            p->released = false;
    return cu_node_new(w, CU_NODE_COHORT, mask, depth, parent);
}

void cu_cohort_let_go(struct cu_warp *w, struct cu_node *n)
{
    const struct cu_node copy = *n;
    struct cu_node *g = copy.parent;

    if (!g || g->kind != CU_NODE_COHORT || g->behind != n) {
        g = cohort_new(w, copy.mask, copy.depth, copy.parent);
        if (g) { /* else they go without one: no host memory */
            g->behind = n;
            n->parent = g;
        }
    }
    n->mask &= ~copy.arrived;
    n->arrived = 0;
    n->stamp = ++w->stamp;
    cu_node_start(w, &copy, copy.arrived, g ? g : copy.parent);
}

void cu_cohort_split(struct cu_warp *w, struct cu_path *p)
{
    struct cu_node *g;

    if (p->node && p->node->kind == CU_NODE_COHORT)
        return;
    g = cohort_new(w, p->mask, p->depth, p->node);
    p->node = g ? g : p->node;
}

/* ---- Rounds ---- */

static struct cu_node *passed_at(const struct cu_node *g, const struct cu_uop *u, uint32_t depth)
{
    struct cu_node *n = g->passed;

    while (n && !(n->u == u && n->depth == depth))
        n = n->passed;
    return n;
}

static struct cu_node *passed_new(struct cu_warp *w, struct cu_node *g, const struct cu_uop *u, uint32_t depth)
{
    struct cu_node *n;
    unsigned count = 0;

    for (n = g->passed; n; n = n->passed)
        count++;
    n = count < PASSED_MAX ? cu_node_new(w, CU_NODE_PASSED, 0, depth, NULL) : NULL;
    if (!n)
        return NULL;
    n->u = u;
    memset(n->pc, 0, sizeof(n->pc));
    n->passed = g->passed;
    g->passed = n;
    return n;
}

void cu_cohort_pass(struct cu_warp *w, const struct cu_uop *u)
{
    const struct cu_path *p = &w->path[w->cur];
    const struct cu_node *below = NULL;

    if (p->released) /* counted when it came */
        return;
    for (struct cu_node *g = p->node; g; below = g, g = g->parent) {
        struct cu_node *n = in_front(g, below) ? passed_at(g, u, p->depth) : NULL;

        if (!n && in_front(g, below))
            n = passed_new(w, g, u, p->depth);
        for (uint32_t m = n ? p->mask : 0; m; m &= m - 1)
            n->pc[cu_first_lane(m)]++;
    }
}

static uint64_t times(const struct cu_node *n, uint32_t lanes)
{
    uint64_t most = 0;

    for (uint32_t m = lanes; m; m &= m - 1)
        most = n->pc[cu_first_lane(m)] > most ? n->pc[cu_first_lane(m)] : most;
    return most;
}

/* The next instruction of u's function that all ways from u come by; NULL: it is not known. */
static const struct cu_uop *surely_next(const struct cu_region *rg, const struct cu_uop *u)
{
    const struct cu_uop *next = u + u->step;

    if (!(u->flags & CU_UOP_DECODED) || u->op == CU_OP_ILLEGAL)
        return NULL;
    if (cu_insns[u->op].format == CU_FMT_B)
        next = u->reconv < CU_RECONV_EXIT ? rg->uops + u->reconv : NULL;
    else if (u->op == CU_OP_jal && u->rd == CU_REG_SINK)
        next = u->flags & CU_UOP_FAR ? NULL : cu_uop_target(u);
    else if ((u->op == CU_OP_jalr && u->rd == CU_REG_SINK) || u->op == CU_OP_mret)
        next = NULL;
    return next && next < rg->uops + rg->size_B / 2 ? next : NULL;
}

/* Will a surely come by a place where b has come by more often? */
static bool is_back(const struct cu_node *g, const struct cu_path *a, const struct cu_path *b)
{
    const struct cu_uop *u = g->passed ? surely_next(a->rg, a->u) : NULL;

    for (unsigned steps = 0; u && steps < SURE_STEPS; steps++, u = surely_next(a->rg, u)) {
        const struct cu_node *n = u->flags & CU_UOP_JOIN ? passed_at(g, u, a->depth) : NULL;

        if (n && times(n, b->mask) != times(n, a->mask))
            return times(n, b->mask) > times(n, a->mask);
    }
    return false;
}

/* ---- Who can still come ---- */

struct search {
    const struct cu_region *rg;
    const struct cu_uop *forks[FORKS_MAX];  /* branches seen */
    uint32_t count, done;                   /* of these; ways after how many have been gone */
    uint32_t steps;
};

/* Follows a way to its end, to the next branch that was seen, or to `to`: true. What is not known may lead there. */
static bool way_leads_to(struct search *s, const struct cu_uop *u, const struct cu_uop *to, const struct cu_uop *end)
{
    while (u != end && u < s->rg->uops + s->rg->size_B / 2) {
        if (u == to || !(u->flags & CU_UOP_DECODED) || ++s->steps > SURE_STEPS)
            return true;
        if (u->op == CU_OP_ILLEGAL || u->op == CU_OP_mret)
            return u->op == CU_OP_mret;
        if (u->op == CU_OP_jalr && u->rd == CU_REG_SINK)
            return u->rs1 != 1 && u->rs1 != 5;
        if (u->op == CU_OP_jal && u->rd == CU_REG_SINK) {
            if (u->flags & CU_UOP_FAR)
                return false;
            u = cu_uop_target(u);
            continue;
        }
        if (cu_insns[u->op].format == CU_FMT_B && !(u->flags & CU_UOP_FAR)) {
            for (uint32_t i = 0; i < s->count; i++)
                if (s->forks[i] == u)
                    return false;
            if (s->count == FORKS_MAX)
                return true;
            s->forks[s->count++] = u;
        }
        u += u->step;
    }
    return false;
}

/* Can r, which runs, come to where p stands, before the place where p's innermost node lets nobody by? */
static bool may_come(const struct cu_path *r, const struct cu_path *p)
{
    const struct cu_node *place = cu_node_place(p->node);
    const struct cu_uop *end = place && place->kind == CU_NODE_POINT && place->depth == p->depth ? place->u : NULL;
    struct search s = { .rg = p->rg };

    if (r->depth != p->depth || r->site != p->site || r->rg != p->rg) /* which calls and returns are before it is not known */
        return true;
    if (way_leads_to(&s, r->u, p->u, end))
        return true;
    for (; s.done < s.count; s.done++)
        if (way_leads_to(&s, cu_uop_target(s.forks[s.done]), p->u, end))
            return true;
    return false;
}

static bool anybody_comes(struct cu_warp *w, const struct cu_path *p, const struct cu_node *g)
{
    struct cu_path *r;

    CU_EACH_PATH(w, r) {
        const struct cu_node *n = r->state == CU_PATH_RUN ? r->node : NULL;

        while (n && n != g)
            n = n->parent;
        if (n && (may_come(r, p) || is_back(g, r, p)))
            return true;
    }
    return false;
}

/* ---- Operations ---- */

static bool counts_lanes(const struct cu_uop *u)
{
    return u->op == CU_OP_p_barrier || u->op == CU_OP_p_wsync;
}

static bool goes_before(const struct cu_node *g, const struct cu_path *a, const struct cu_path *b)
{
    if (is_back(g, a, b))
        return true;
    if (is_back(g, b, a))
        return false;
    return a->depth > b->depth || (a->depth == b->depth && cu_path_pc(a) < cu_path_pc(b));
}

static bool at_one_operation(const struct cu_node *g, const struct cu_path *a, const struct cu_path *b)
{
    return a->u == b->u && a->depth == b->depth && a->site == b->site && !is_back(g, a, b) && !is_back(g, b, a);
}

static unsigned places_below(const struct cu_node *n, const struct cu_node *g)
{
    unsigned count = 0;

    for (; n != g; n = n->parent)
        count += n->kind != CU_NODE_COHORT;
    return count;
}

/* `as` itself where it is above, though one of its place may lie further in: a note can have a place be left and come to again. */
static struct cu_node *same_place(struct cu_node *from, const struct cu_node *g, const struct cu_node *as)
{
    struct cu_node *same = NULL;

    for (struct cu_node *n = from; n != g; n = n->parent) {
        if (n == as)
            return n;
        if (!same && as->kind != CU_NODE_COHORT && n->kind == as->kind && n->u == as->u && n->depth == as->depth && n->site == as->site)
            same = n;
    }
    return same;
}

/* Node n is of the same place as `into`: one node of both. */
static void absorb(struct cu_warp *w, struct cu_node *into, struct cu_node *n, const struct cu_node *g)
{
    const uint32_t lanes = n->mask;
    struct cu_path *p;

    for (uint32_t m = n->kind == CU_NODE_EXIT ? n->arrived : 0; m; m &= m - 1)
        into->pc[cu_first_lane(m)] = n->pc[cu_first_lane(m)];
    into->arrived |= n->arrived;
    into->turns = n->turns > into->turns ? n->turns : into->turns;
    for (struct cu_node *k = n->parent; k != g; k = k->parent)
        k->mask &= ~lanes;
    for (struct cu_node *k = into; k != g; k = k->parent)
        k->mask |= lanes;
    CU_EACH_PATH(w, p)
        p->node = p->node == n ? into : p->node;
    for (struct cu_node *k = w->nodes; k; k = k->next)
        k->parent = k->parent == n ? into : k->parent;
    cu_node_free(w, n);
}

/* Path q stands where p does: they go on as p, below the nodes of that with more of them. */
static void unite(struct cu_warp *w, struct cu_path *p, struct cu_path *q, const struct cu_node *g)
{
    struct cu_node *other = q->node, *m, *next;
    uint32_t moved = q->mask;

    if (places_below(q->node, g) > places_below(p->node, g)) {
        other = p->node;
        moved = p->mask;
        p->node = q->node;
    }
    p->mask |= q->mask;
    p->turns = q->turns > p->turns ? q->turns : p->turns;
    cu_path_free(w, q);
    for (struct cu_node *n = other; n != g; n = next) {
        next = n->parent;
        m = same_place(p->node, g, n);
        if (m == n)
            break;
        if (m)
            absorb(w, m, n, g);
        else
            n->mask &= ~moved;
    }
    for (struct cu_node *n = p->node; n != g; n = n->parent)
        n->mask |= p->mask;
}

/* The operation that path p stands at, by all who stand at it. */
static void release(struct cu_warp *w, struct cu_path *p, struct cu_node *g)
{
    struct cu_path *q;
    bool left;

    p->state = CU_PATH_RUN;
    p->released = true;
    CU_EACH_PATH(w, q)
        if (q->state == CU_PATH_COHORT && cohort_of(q, &left) == g && !left && at_one_operation(g, p, q))
            unite(w, p, q, g);
    for (struct cu_node *n = g->passed; n; n = n->passed) {
        const uint64_t most = times(n, p->mask);

        for (uint32_t m = p->mask; m; m &= m - 1)
            n->pc[cu_first_lane(m)] = most;
    }
    cu_nodes_settle(w);
}

/* Of the paths of cohort g that stop, like p, the one that goes first. */
static struct cu_path *first_to_go(struct cu_warp *w, struct cu_path *p, const struct cu_node *g)
{
    struct cu_path *first = p, *q;
    bool left;

    CU_EACH_PATH(w, q)
        if (q->state == CU_PATH_COHORT && !counts_lanes(q->u) && cohort_of(q, &left) == g && !left && goes_before(g, q, first) && !anybody_comes(w, q, g))
            first = q;
    return first;
}

/* One of the paths that stop goes, with those at its operation. False: none can. */
static bool settle_one(struct cu_warp *w)
{
    struct cu_path *p;
    bool left;

    CU_EACH_PATH(w, p) {
        struct cu_node *g = p->state == CU_PATH_COHORT ? cohort_of(p, &left) : NULL;

        if (p->state != CU_PATH_COHORT || left || (g && !counts_lanes(p->u) && anybody_comes(w, p, g)))
            continue;
        if (g && !counts_lanes(p->u)) {
            release(w, first_to_go(w, p, g), g);
        } else {
            p->state = CU_PATH_RUN;
            p->released = true;
        }
        return true;
    }
    return false;
}

void cu_cohorts_settle(struct cu_warp *w)
{
    for (struct cu_node *g = w->nodes, *next; g; g = next) {
        next = g->next;
        if (tidy(w, g))
            next = w->nodes;
    }
    while (settle_one(w))
        ;
}

bool cu_path_gather(struct cu_warp *w, const struct cu_uop *u, const struct cu_uop **next_out)
{
    struct cu_path *p = &w->path[w->cur];
    bool left, released = p->released;
    struct cu_node *g = cohort_of(p, &left);

    p->released = false;
    if (released || !g || (!left && counts_lanes(u)))
        return true;
    cu_not_issued(w);
    p->u = u;
    p->state = CU_PATH_COHORT;
    *next_out = cu_path_select(w);
    return false;
}
