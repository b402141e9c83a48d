/* SPDX-License-Identifier: MIT */
/* fault_plan.h - fault sites and the rules that fire them (E2, DESIGN section 7). */
#ifndef UMD_DIAG_FAULT_PLAN_H
#define UMD_DIAG_FAULT_PLAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <umd/umd_diag.h>

/*
 * Grammar, rules joined by ';' or newlines, '#' starts a comment:
 *   spec  := rule { ';' rule }          rule := "seed=" N | site '[' attr {',' attr} ']' '=' term { "->" term }
 *   term  := [ P '%' ] [ COUNT '*' ] action [ '(' arg {',' arg} ')' ]          the attribute block is optional
 *   attrs : nth=N (only the n-th hit, from 1)  interval=N (every n-th)  space=N (skip the first n)  times=N (at most n fires)
 *           ctx=N queue=N rank=N (only hits of that context, queue, rank)
 *   "->"  : the next term applies once the one before has used up its COUNT.
 *   e.g.    hw.cu.hang[nth=40]=fire          kmd.vram.alloc=5%3*fail      hw.cu.illegal[nth=10]=fire(0)
 * Sites are rows of fault_sites.def: FAULT_SITE(ID, "name", "actions", CODE, "text"). Ids are never used again.
 */
enum umd_fault_site {
#define FAULT_SITE(id_, name_, actions_, code_, text_) UMD_FAULT_##id_,
#include "fault_sites.def"
#undef FAULT_SITE
    UMD_FAULT_SITE_COUNT
};

struct umd_fault_site_info {
    const char *name;     /**< "hw.cu.hang" */
    const char *actions;  /**< "fire" or "fail,delay" */
    umdStatus code;       /**< of the record that tells of it, as the cause at least; UMD_SUCCESS: no record does, but a line of the log */
    const char *text;     /**< what happens, one sentence */
};
UMD_API const struct umd_fault_site_info *umd_fault_site_info(enum umd_fault_site site);

/** What a fired rule asks for. */
struct umd_fault_hit {
    const char *action;    /**< static or owned by the plan */
    uint64_t args[4];
    uint32_t arg_count;
};
/** Which hit this is; 0 where not known. */
struct umd_fault_where {
    uint64_t ctx, queue;
};

/** Process-wide plan: parsed whole or not at all. Replaces the one before; "" or NULL clears. UMD_ERR_FAULT_SPEC with position= column= expected=; UMD_ERR_CONFIG_VALUE for $PETREL_RANK. */
UMD_API UMD_MUST_CHECK umdStatus umd_fault_plan_set(const char *spec);
/** Reads a file, whose name may have an '@' before it, then as above. UMD_ERR_RES_FILE, UMD_ERR_FAULT_SPEC. */
UMD_API UMD_MUST_CHECK umdStatus umd_fault_plan_load(const char *path);
/** What a person wrote: a file where it starts with '@' or '/', else a specification. NULL clears. */
UMD_API UMD_MUST_CHECK umdStatus umd_fault_plan_from(const char *text);
/** How many plans were set so far: the number of the one that was set last. Undo brings back the one before it, unless another has been set since. */
UMD_API uint64_t umd_fault_plan_generation(void);
UMD_API void umd_fault_plan_undo(uint64_t number);
UMD_API uint64_t umd_fault_hits(enum umd_fault_site site);   /**< times reached while a plan was set */
UMD_API uint64_t umd_fault_fired(enum umd_fault_site site);

extern UMD_API _Atomic(bool) umd_fault_armed[UMD_FAULT_SITE_COUNT];
UMD_API bool umd_fault_check_slow(enum umd_fault_site site, struct umd_fault_where where, struct umd_fault_hit *hit_out);

/** At a site: one branch while no plan is set. True: the rule fired, act. */
static inline bool umd_fault(enum umd_fault_site site, struct umd_fault_where where, struct umd_fault_hit *hit_out)
{
    if (__builtin_expect(!atomic_load_explicit(&umd_fault_armed[site], memory_order_relaxed), 1))
        return false;
    return umd_fault_check_slow(site, where, hit_out);
}

#endif
