/* SPDX-License-Identifier: MIT */
/* emergency_file.h - the emergency ring's file: making it, naming it, bounding the old ones; inside libumd_diag only. */
#ifndef UMD_DIAG_EMERGENCY_FILE_H
#define UMD_DIAG_EMERGENCY_FILE_H

#include "emergency.h"

#define UMD_EMERGENCY_PAGE_B 4096u
#define UMD_EMERGENCY_MAP_B (UMD_EMERGENCY_PAGE_B + UMD_EMERGENCY_SLOTS * sizeof(struct umd_emergency_slot))

void umd_emergency_init_head(uint8_t *base);
/*
 * A shared map of a new file at path, all blocks written, so that a full disk is an error here and not a SIGBUS later. What a process that is
 * gone has left there becomes path.1. The file of one that lives is left alone: path, an array of size bytes, becomes path.PID, and where that is
 * another's too, in another PID namespace, path.PID.TICKS. 0 or errno; EBUSY: all are in use. `plan`: a fault plan's sys.* sites apply.
 */
int umd_emergency_map_file(char *path, size_t size, bool plan, uint8_t **base_out);
/* In a child of fork: private memory takes the place of the parent's map, which thereby is the parent's alone. */
void umd_emergency_let_go(uint8_t *base);
/* The default file of this process, in the first directory that can be used. 0 or errno; path_out is what was made or tried last. */
int umd_emergency_map_default(uint8_t **base_out, char *path_out, size_t size);
/* Memory that a debugger finds by its name. NULL: none. */
uint8_t *umd_emergency_map_memory(void);
uint32_t umd_emergency_crc(const struct umd_emergency_slot *slot);

#endif
