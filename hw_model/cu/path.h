/* SPDX-License-Identifier: MIT */
/* path.h - what path.c and cohort.c share: nodes, and lanes that go on from them. */
#ifndef HW_CU_PATH_H
#define HW_CU_PATH_H

#include "cu_priv.h"

/** A node above `parent`'s other lanes; NULL: no host memory, or the warp has too many. */
struct cu_node *cu_node_new(struct cu_warp *w, enum cu_node_kind kind, uint32_t mask, uint32_t depth, struct cu_node *parent);
void cu_node_free(struct cu_warp *w, struct cu_node *n);
/** Nodes that nobody takes part in any more go, and nodes where all have arrived let them go on. */
void cu_nodes_settle(struct cu_warp *w);
/** Lets `lanes` go on from node n's place, below `parent`. */
void cu_node_start(struct cu_warp *w, const struct cu_node *n, uint32_t lanes, struct cu_node *parent);
/** Innermost node that is a place. */
static inline struct cu_node *cu_node_place(struct cu_node *n)
{
    while (n && n->kind == CU_NODE_COHORT)
        n = n->parent;
    return n;
}

static inline uint64_t cu_path_pc(const struct cu_path *p) { return cu_pc(p->rg, p->u); }
void cu_path_free(struct cu_warp *w, const struct cu_path *p);
/** NULL: none can run. */
const struct cu_uop *cu_path_select(struct cu_warp *w);

/* cohort.c */
/** The lanes that wait at node n run on, and leave a cohort behind. */
void cu_cohort_let_go(struct cu_warp *w, struct cu_node *n);
/** Path p is about to split where no meeting point is known: a cohort stands for one. */
void cu_cohort_split(struct cu_warp *w, struct cu_path *p);
/** `lanes` have come to the place of `to`: they leave the cohorts between it and `from`. */
void cu_cohort_leave(struct cu_warp *w, struct cu_node *from, const struct cu_node *to, uint32_t lanes);
/** The current path passes a meeting point. */
void cu_cohort_pass(struct cu_warp *w, const struct cu_uop *u);
/** Lets those go that wait at a warp-wide operation for nobody any more. */
void cu_cohorts_settle(struct cu_warp *w);
/** Has path p, the current one, come to a state that it had before? 0: yes; else when to look again, in instructions. */
uint32_t cu_path_look(struct cu_warp *w, const struct cu_path *p);

#endif
