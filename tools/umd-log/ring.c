/* SPDX-License-Identifier: MIT */
/* ring.c - slots of an emergency ring into records. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ring.h"
#include "umd-tool.h"

bool log_ring_read(struct log_ring *ring, const char *path)
{
    umdErrorDetail unused;
    struct stat st;

    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) { /* a pipe would be waited for, and keeps no ring */
        *ring = (struct log_ring){ 0 };
        tool_say("%s is no file; name the file of UMD_EMERGENCY_FILE", path);
        return false;
    }
    *ring = (struct log_ring){ .path = path, .slots = calloc(UMD_EMERGENCY_SLOTS, sizeof(*ring->slots)) };
    if (!ring->slots) {
        tool_say("out of memory");
        return false;
    }
    if (!umdFailed(umd_emergency_read(path, ring->slots, UMD_EMERGENCY_SLOTS, &ring->count, &ring->damaged)))
        return true;
    FILE *f = fopen(path, "re");
    int err = f ? 0 : errno;
    (void)umd_record_export(&unused); /* it is told here */
    tool_say("%s: %s; name the file of UMD_EMERGENCY_FILE", path, f ? "this is no emergency ring of this version" : strerror(err));
    if (f)
        fclose(f);
    log_ring_finish(ring);
    return false;
}

void log_ring_finish(struct log_ring *ring)
{
    free(ring->slots);
    *ring = (struct log_ring){ 0 };
}

bool log_ring_rec(const struct log_ring *ring, uint32_t i, struct log_rec *rec)
{
    const struct umd_emergency_slot *s = &ring->slots[i];

    if (!log_rec_begin(rec, sizeof(*s) + 64)) {
        tool_say("out of memory");
        return false;
    }
    rec->real_ns = rec->observed_ns = s->real_ns;
    rec->mono_ns = s->mono_ns;
    rec->level = s->level <= UMD_LOG_TRACE ? (int)s->level : 0;
    rec->level_text = log_level_name(rec->level);
    rec->pid = s->pid;
    rec->tid = s->tid;
    rec->line = s->line;
    rec->context_id = s->context_id;
    rec->id = s->record;
    rec->code = s->code;
    rec->code_name = s->code ? umdStatusName((umdStatus)s->code) : "";
    rec->module = log_rec_text(rec, s->module, strnlen(s->module, sizeof(s->module)));
    rec->func = log_rec_text(rec, s->func, strnlen(s->func, sizeof(s->func)));
    rec->file = log_rec_text(rec, s->file, strnlen(s->file, sizeof(s->file)));
    rec->message = log_rec_text(rec, s->message, strnlen(s->message, sizeof(s->message)));
    rec->path = ring->path;
    return true;
}
