/* SPDX-License-Identifier: MIT */
/* log_site.h - call sites of the log by number: of every library that is loaded. */
#ifndef UMD_LOG_SITE_H
#define UMD_LOG_SITE_H

#include <umd/umd_log.h>

/* Sites of one linked object; counted per range, since each file of the object registers. Under the registry lock (90). */
void umd_log_sites_add(umdLogSite *sites, umdLogSite *end);
void umd_log_sites_remove(umdLogSite *sites);
/** The site of an id, NULL when its library is gone. Lock-free; valid as long as that library is loaded. */
UMD_API const umdLogSite *umd_log_site_find(uint32_t id);

#endif
