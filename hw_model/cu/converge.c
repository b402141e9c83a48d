/* SPDX-License-Identifier: MIT */
/* converge.c - where lanes meet again: immediate post-dominators of a function's branches, found from its entry. */
/*
 * The code object's symbols are not visible here, so functions are discovered: the dispatch's entry, then what is called (jal and
 * auipc+jalr with a link), then at run time what an indirect call reaches. The graph has one node per instruction; functions are
 * small enough for that. Jumps out are returns. A jump through a register that is no return and no resolved tail call leaves
 * the function's branches without a meeting point: paths then fall back to deepest call, lowest pc. Traps and endless loops have
 * no way to the return and do not count. What a note of the code object says (notes.c) goes before what the graph says.
 */
#include <assert.h>
#include <string.h>

#include <hw/petrel_codeobj.h>

#include "cu_priv.h"
#include "record.h"
#include "sys.h"

UMD_LOG_MODULE("hw.cu.converge");

#define MAX_INSTRUCTIONS 65536u   /* of a function */
#define VISITS 64u                /* of each halfword of a region, by all functions of one analysis together: they may share what they lead to */
#define UNSET UINT32_MAX

struct graph {
    struct hw_cu_array *a;
    struct cu_region *rg;
    uint32_t *node_of;      /* by micro-op index; UNSET: not in the function */
    uint32_t *index;        /* micro-op index by node */
    uint32_t (*succ)[2];    /* micro-op indices while discovering, then nodes; UNSET: none; count: the return */
    uint32_t *stack;        /* work list */
    uint32_t *calls;        /* entries seen, to be analysed */
    uint32_t call_count, count;
    uint64_t visits_left;
    bool unresolved;
};

#define TO_RETURN (UNSET - 1u)

static void push_call(struct graph *g, uint64_t pc)
{
    uint64_t off = pc - g->rg->va;

    if (off < g->rg->size_B && !(g->rg->uops[off / 2].flags & CU_UOP_ENTRY) && g->call_count < g->rg->size_B / 2) {
        g->rg->uops[off / 2].flags |= CU_UOP_ENTRY;
        cu_region_touch(g->rg, off / 2);
        g->calls[g->call_count++] = (uint32_t)(off / 2);
    }
}

/* Target of jalr at u when the instruction before is the auipc that feeds it. */
static bool resolved_jalr(const struct cu_region *rg, const struct cu_uop *u, uint64_t *pc_out)
{
    const struct cu_uop *before = u - 2;

    if (before < rg->uops || !(before->flags & CU_UOP_DECODED) || before->op != CU_OP_auipc || before->rd != u->rs1)
        return false;
    *pc_out = (uint64_t)(before->imm + u->imm);
    return true;
}

/* A jump through a register that could go anywhere. */
static bool open_jump(const struct cu_region *rg, const struct cu_uop *u)
{
    uint64_t pc;

    return u->op == CU_OP_jalr && u->rd == CU_REG_SINK && u->rs1 != 1 && u->rs1 != 5 && !resolved_jalr(rg, u, &pc);
}

/* Does a call of pc come back, as far as is known? */
static bool call_returns(const struct graph *g, uint64_t pc)
{
    uint64_t off = pc - g->rg->va;

    return off >= g->rg->size_B || !(g->rg->uops[off / 2].flags & CU_UOP_NO_RETURN);
}

/* What is bound to trap: nothing comes behind it. `unimp`, say, which is a write to a read-only register. */
static bool traps(const struct hw_cu_array *a, const struct cu_uop *u)
{
    switch (u->op) {
    case CU_OP_ILLEGAL: case CU_OP_ebreak: case CU_OP_p_trap:
        return true;
    case CU_OP_mret: case CU_OP_wfi:
        return !a->config.bare;
    case CU_OP_csrrw: case CU_OP_csrrwi:
        return (unsigned)u->imm >> 10 == 3;
    case CU_OP_csrrs: case CU_OP_csrrc: case CU_OP_csrrsi: case CU_OP_csrrci:
        return (unsigned)u->imm >> 10 == 3 && u->rs1 != 0;
    default:
        return false;
    }
}

/* Where a note says that the lanes of the instruction at u meet. False: none says, or nothing that could be. */
static bool noted(const struct graph *g, const struct cu_uop *u, uint32_t *at_out)
{
    uint64_t to, off;

    if (!cu_notes_find(g->a, cu_pc(g->rg, u), &to))
        return false;
    off = to - g->rg->va;
    if (to == PETREL_MEET_RETURN || to == PETREL_MEET_NONE)
        *at_out = to == PETREL_MEET_RETURN ? TO_RETURN : UNSET;
    else if (!(to & 1) && off < g->rg->size_B)
        *at_out = (uint32_t)(off / 2);
    else
        return false;
    return true;
}

static void jalr_successors(struct graph *g, const struct cu_uop *u, uint32_t next, uint32_t succ[2])
{
    uint64_t pc;
    uint32_t at;
    bool link = u->rd != CU_REG_SINK, known = resolved_jalr(g->rg, u, &pc);

    if (known)
        push_call(g, pc);
    if (link)
        succ[0] = !known || call_returns(g, pc) ? next : UNSET;
    else
        succ[0] = TO_RETURN;
    if (open_jump(g->rg, u)) {
        if (noted(g, u, &at) && at != UNSET)
            succ[0] = at; /* whatever way it takes, there it comes by */
        else
            g->unresolved = true;
    }
}

/* Successors of the instruction at micro-op index i, as indices. */
static void successors(struct graph *g, uint32_t i, uint32_t succ[2])
{
    struct cu_uop *u = &g->rg->uops[i];
    uint32_t next;
    uint64_t to;

    succ[0] = succ[1] = UNSET;
    if (!cu_uop_prepare(g->a, g->rg, u) || traps(g->a, u))
        return;
    next = i + u->step < g->rg->size_B / 2 ? i + u->step : TO_RETURN;
    switch (u->op) {
    case CU_OP_jal:
        if (u->rd != CU_REG_SINK) {
            to = cu_pc(g->rg, u) + (uint64_t)u->imm;
            push_call(g, to);
            succ[0] = call_returns(g, to) ? next : UNSET;
        } else {
            succ[0] = u->flags & CU_UOP_FAR ? TO_RETURN : (uint32_t)(cu_uop_target(u) - g->rg->uops);
        }
        return;
    case CU_OP_jalr:
        jalr_successors(g, u, next, succ);
        return;
    case CU_OP_mret:
        succ[0] = TO_RETURN;
        return;
    case CU_OP_ecall: /* exits, or traps: see discover */
        return;
    default:
        succ[0] = next;
        if (cu_insns[u->op].format == CU_FMT_B)
            succ[1] = u->flags & CU_UOP_FAR ? TO_RETURN : (uint32_t)(cu_uop_target(u) - g->rg->uops);
        return;
    }
}

/*
 * Gives the ways to the return the number of its node. A function that none leads to does not come back to who calls it; where
 * it ends lanes by ecall, they meet there.
 */
static void number_return(struct graph *g, uint32_t entry)
{
    bool returns = false;

    for (uint32_t n = 0; n < g->count; n++)
        returns |= g->succ[n][0] == TO_RETURN || g->succ[n][1] == TO_RETURN;
    if (!returns)
        g->rg->uops[entry].flags |= CU_UOP_NO_RETURN;
    for (uint32_t n = 0; n < g->count; n++) {
        if (!returns && g->rg->uops[g->index[n]].op == CU_OP_ecall)
            g->succ[n][0] = TO_RETURN;
        for (unsigned s = 0; s < 2; s++)
            if (g->succ[n][s] == TO_RETURN)
                g->succ[n][s] = g->count;
    }
}

static void discover(struct graph *g, uint32_t entry)
{
    g->count = 0;
    g->unresolved = false;
    g->node_of[entry] = g->count;
    g->index[g->count++] = entry;
    for (uint32_t n = 0; n < g->count && g->visits_left && g->count <= MAX_INSTRUCTIONS; n++) {
        g->visits_left--;
        successors(g, g->index[n], g->succ[n]);
        for (unsigned s = 0; s < 2; s++) {
            uint32_t i = g->succ[n][s];

            if (i >= TO_RETURN)
                continue;
            if (g->node_of[i] == UNSET) {
                g->node_of[i] = g->count;
                g->index[g->count++] = i;
            }
            g->succ[n][s] = g->node_of[i];
        }
    }
}

static void forget_nodes(struct graph *g)
{
    for (uint32_t n = 0; n < g->count; n++)
        g->node_of[g->index[n]] = UNSET;
}

/* Scratch of the post-dominator pass; count + 1 nodes, the last is the return. */
struct postdom {
    uint32_t *first, *pred;       /* predecessors of node n: pred[first[n]] .. pred[first[n + 1] - 1] */
    uint32_t *order, *number;     /* nodes in post-order from the return; position of a node in it */
    uint32_t *idom, *cursor;
    uint32_t reached;
};

static bool postdom_alloc(struct postdom *p, uint32_t nodes)
{
    return (p->first = umd_alloc((nodes + 1) * sizeof(uint32_t))) && (p->pred = umd_alloc(2 * (uint64_t)nodes * sizeof(uint32_t))) &&
           (p->order = umd_alloc(nodes * sizeof(uint32_t))) && (p->number = umd_alloc(nodes * sizeof(uint32_t))) &&
           (p->idom = umd_alloc(nodes * sizeof(uint32_t))) && (p->cursor = umd_alloc((nodes + 1) * sizeof(uint32_t)));
}

static void postdom_free(struct postdom *p)
{
    umd_free(p->first);
    umd_free(p->pred);
    umd_free(p->order);
    umd_free(p->number);
    umd_free(p->idom);
    umd_free(p->cursor);
}

static void build_predecessors(const struct graph *g, struct postdom *p)
{
    uint32_t nodes = g->count + 1;

    for (uint32_t n = 0; n < g->count; n++)
        for (unsigned s = 0; s < 2; s++)
            if (g->succ[n][s] != UNSET)
                p->first[g->succ[n][s] + 1]++;
    for (uint32_t n = 0; n < nodes; n++)
        p->first[n + 1] += p->first[n];
    memcpy(p->cursor, p->first, nodes * sizeof(uint32_t));
    for (uint32_t n = 0; n < g->count; n++)
        for (unsigned s = 0; s < 2; s++)
            if (g->succ[n][s] != UNSET)
                p->pred[p->cursor[g->succ[n][s]]++] = n;
    memcpy(p->cursor, p->first, nodes * sizeof(uint32_t));
}

/* Depth first from the return, against the edges. */
static void number_nodes(struct graph *g, struct postdom *p)
{
    uint32_t root = g->count, top = 0;

    for (uint32_t n = 0; n <= root; n++) {
        p->number[n] = UNSET;
        p->idom[n] = UNSET;
    }
    g->stack[top++] = root;
    p->number[root] = 0;
    while (top) {
        uint32_t n = g->stack[top - 1];

        if (p->cursor[n] < p->first[n + 1]) {
            uint32_t m = p->pred[p->cursor[n]++];

            if (p->number[m] == UNSET) {
                p->number[m] = 0;
                g->stack[top++] = m;
            }
        } else {
            p->number[n] = p->reached;
            p->order[p->reached++] = n;
            top--;
        }
    }
}

static uint32_t meet(const struct postdom *p, uint32_t x, uint32_t y)
{
    while (x != y) {
        while (p->number[x] < p->number[y])
            x = p->idom[x];
        while (p->number[y] < p->number[x])
            y = p->idom[y];
    }
    return x;
}

static void solve(const struct graph *g, struct postdom *p)
{
    bool changed = true;

    p->idom[g->count] = g->count;
    while (changed) {
        changed = false;
        for (uint32_t k = p->reached - 1; k-- > 0;) { /* reverse post-order, without the return itself */
            uint32_t n = p->order[k], best = UNSET;

            for (unsigned s = 0; s < 2; s++) {
                uint32_t to = g->succ[n][s];

                if (to != UNSET && p->idom[to] != UNSET)
                    best = best == UNSET ? to : meet(p, best, to);
            }
            if (best != p->idom[n]) {
                p->idom[n] = best;
                changed = true;
            }
        }
    }
}

/* The node where the lanes of node n's branch meet; g->count: the return; UNSET: none is known. What a note says goes before. */
static uint32_t meeting_of(const struct graph *g, const struct postdom *p, uint32_t n)
{
    const struct cu_uop *u = &g->rg->uops[g->index[n]];
    uint32_t at;
    uint64_t to;

    if (noted(g, u, &at)) {
        if (at >= TO_RETURN)
            return at == TO_RETURN ? g->count : UNSET;
        if (g->node_of[at] != UNSET)
            return g->node_of[at];
    }
    g->a->notes.ignored += cu_notes_find(g->a, cu_pc(g->rg, u), &to);
    return g->unresolved ? UNSET : p->idom[n];
}

static void publish(const struct graph *g, const struct postdom *p)
{
    for (uint32_t n = 0; n < g->count; n++) {
        struct cu_uop *u = &g->rg->uops[g->index[n]];
        uint32_t at;

        if (!(u->flags & CU_UOP_DECODED) || u->op == CU_OP_ILLEGAL || (cu_insns[u->op].format != CU_FMT_B && !open_jump(g->rg, u)))
            continue;
        at = meeting_of(g, p, n);
        if (at == UNSET) {
            u->reconv = CU_RECONV_NONE;
        } else if (at == g->count) {
            u->reconv = CU_RECONV_EXIT;
        } else {
            struct cu_uop *meeting = &g->rg->uops[g->index[at]];

            u->reconv = g->index[at];
            meeting->flags |= CU_UOP_JOIN;
            cu_uop_bind(g->a, meeting);
        }
    }
}

/* Marks with `stamp`, and puts into the work list, what can be reached from `from` without passing `end`. 0: that is more than `left` allows. */
static uint32_t reach(struct graph *g, uint32_t from, uint32_t end, uint32_t *mark, uint32_t stamp, uint32_t *left)
{
    uint32_t count = 0;

    g->stack[count++] = from;
    mark[from] = stamp;
    for (uint32_t k = 0; k < count; k++) {
        if (!*left)
            return 0;
        --*left;
        for (unsigned s = 0; s < 2; s++) {
            uint32_t to = g->succ[g->stack[k]][s];

            if (to == UNSET || to == end || to == g->count || mark[to] == stamp)
                continue;
            mark[to] = stamp;
            g->stack[count++] = to;
        }
    }
    return count;
}

/*
 * Where one side of a branch may leave for good (a return from within a loop), the lanes must meet far behind, but most come by the
 * same places long before. Such places, where ways from both sides come together, are marked: paths wait there for each other by
 * lowest address, which costs little when it does not help.
 */
static void publish_merges(struct graph *g, struct postdom *p)
{
    const uint32_t room = g->count * 32u + 4096u, allowed = g->visits_left < room ? (uint32_t)g->visits_left : room;
    uint32_t left = allowed, *one = p->number, *two = p->cursor;

    memset(one, 0xff, (g->count + 1) * sizeof(*one));
    memset(two, 0xff, (g->count + 1) * sizeof(*two));
    for (uint32_t n = 0; n < g->count; n++) {
        uint32_t a = g->succ[n][0], b = g->succ[n][1], end = g->unresolved ? UNSET : p->idom[n], count;

        if (a == UNSET || b == UNSET || a == b || a == end || b == end || a == g->count || b == g->count)
            continue;
        if (!reach(g, a, end, one, n, &left) || !(count = reach(g, b, end, two, n, &left)))
            break;
        for (uint32_t k = 0; k < count; k++) {
            const uint32_t m = g->stack[k];
            struct cu_uop *u = &g->rg->uops[g->index[m]];

            if (one[m] != n || p->first[m + 1] - p->first[m] < 2 || u->flags & CU_UOP_MERGE)
                continue;
            u->flags |= CU_UOP_MERGE;
            cu_uop_bind(g->a, u);
        }
    }
    g->visits_left -= allowed - left;
}

static void slower(void)
{
    UMD_ABSORB(UMD_ERR_MEM_HOST_ALLOC_FAILED, "where paths part they go on by lowest address, which is slower and not wrong");
}

static bool graph_alloc(struct graph *g, uint64_t halves)
{
    return (g->node_of = umd_alloc(halves * sizeof(uint32_t))) && (g->index = umd_alloc(halves * sizeof(uint32_t))) &&
           (g->succ = umd_alloc(halves * sizeof(*g->succ))) && (g->stack = umd_alloc((halves + 1) * sizeof(uint32_t))) &&
           (g->calls = umd_alloc(halves * sizeof(uint32_t)));
}

/* Of the function that was discovered. */
static void solve_and_publish(struct graph *g, uint32_t entry)
{
    struct postdom p = { 0 };

    number_return(g, entry);
    if (postdom_alloc(&p, g->count + 1)) {
        build_predecessors(g, &p);
        number_nodes(g, &p);
        solve(g, &p);
        publish(g, &p);
        publish_merges(g, &p);
    } else {
        slower();
    }
    postdom_free(&p);
}

/* The functions that were pushed, and those that they call. Callees first: whether they come back says where the caller goes on. */
static void analyse_pushed(struct graph *g)
{
    while (g->call_count) {
        const uint32_t pushed = g->call_count, entry = g->calls[pushed - 1];

        discover(g, entry);
        const bool whole = g->visits_left && g->count <= MAX_INSTRUCTIONS; /* else paths of this one go on by lowest address */
        if (g->call_count == pushed || !whole) {
            memmove(&g->calls[pushed - 1], &g->calls[pushed], (g->call_count - pushed) * sizeof(uint32_t));
            g->call_count--;
            if (whole)
                solve_and_publish(g, entry);
        }
        forget_nodes(g);
    }
}

static bool graph_open(struct graph *g)
{
    const uint64_t halves = g->rg->size_B / 2;

    umd_record_scope_begin(); /* stepped: a caller's thread, whose record is none of this */
    if (!graph_alloc(g, halves)) {
        slower();
        return false;
    }
    memset(g->node_of, 0xff, halves * sizeof(uint32_t));
    g->visits_left = VISITS * (halves + PETREL_PAGE_SIZE);
    return true;
}

static void graph_close(struct graph *g)
{
    umd_record_scope_end();
    umd_free(g->node_of);
    umd_free(g->index);
    umd_free(g->succ);
    umd_free(g->stack);
    umd_free(g->calls);
}

void cu_converge_function(struct hw_cu_array *a, struct cu_region *rg, uint32_t entry)
{
    struct graph g = { .a = a, .rg = rg };

    if (entry >= rg->size_B / 2 || rg->uops[entry].flags & CU_UOP_ENTRY)
        return;
    if (graph_open(&g)) {
        push_call(&g, rg->va + 2ull * entry);
        analyse_pushed(&g);
    }
    graph_close(&g);
}

void cu_converge_region(struct hw_cu_array *a, struct cu_region *rg)
{
    struct graph g = { .a = a, .rg = rg };

    if (graph_open(&g)) {
        for (uint64_t begin = 0, end; cu_region_next_touched(rg, &begin, &end); begin = end)
            for (uint64_t i = begin; i < end; i++)
                if (rg->uops[i].flags & CU_UOP_ENTRY) {
                    rg->uops[i].flags &= (uint16_t)~(CU_UOP_ENTRY | CU_UOP_NO_RETURN);
                    push_call(&g, rg->va + 2 * i);
                }
        analyse_pushed(&g);
    }
    graph_close(&g);
}
