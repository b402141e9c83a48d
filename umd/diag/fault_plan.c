/* SPDX-License-Identifier: MIT */
/* fault_plan.c - the process-wide plan of faults. */
#include <stdlib.h>
#include <string.h>

#include "fault_plan.h"
#include "record.h"

UMD_LOG_MODULE("diag.fault");

static const struct umd_fault_site_info sites[] = {
#define FAULT_SITE(id_, name_, actions_, text_) [UMD_FAULT_##id_] = { name_, actions_, text_ },
#include "fault_sites.def"
#undef FAULT_SITE
};
_Atomic(bool) umd_fault_armed[UMD_FAULT_SITE_COUNT];

const struct umd_fault_site_info *umd_fault_site_info(enum umd_fault_site site) { return &sites[site]; }
bool umd_fault_check_slow(enum umd_fault_site site, struct umd_fault_where where, struct umd_fault_hit *hit_out) { (void)site; (void)where; (void)hit_out; return false; }
umdStatus umd_fault_plan_set(const char *spec) { return spec && *spec ? UMD_FAIL(UMD_ERR_INIT_UNSUPPORTED, "feature=faults") : UMD_SUCCESS; }
umdStatus umd_fault_plan_load(const char *path) { return UMD_FAIL(UMD_ERR_INIT_UNSUPPORTED, "feature=faults path=\"%s\"", path); }
uint64_t umd_fault_hits(enum umd_fault_site site) { (void)site; return 0; }
uint64_t umd_fault_fired(enum umd_fault_site site) { (void)site; return 0; }
umdStatus umd_fault_plan_from_env(void) { return umd_fault_plan_set(getenv("PETREL_FAULTS")); }
