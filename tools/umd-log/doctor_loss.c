/* SPDX-License-Identifier: MIT */
/* doctor_loss.c - what a log lacks at its end, and why: cut off, a full disk, what the emergency ring of its process says of it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "doctor.h"
#include "emergency.h"
#include "umd-text.h"

#define FULL_B (64u << 10)  /* less than this is less than the log writes at a time */
#define RINGS 16u

void doctor_disk(struct doctor *d, const char *what, const char *path)
{
    struct statvfs fs;

    if (statvfs(path, &fs) != 0 || !fs.f_blocks)
        return;
    /* What is kept for root is for root. */
    const uint64_t blocks = geteuid() == 0 ? fs.f_bfree : fs.f_bavail, free_B = blocks * (fs.f_frsize ? fs.f_frsize : fs.f_bsize);
    if (free_B < FULL_B)
        doctor_say(d, VERDICT_DISK_FULL, "%s: the file system of %s is full: %" PRIu64 " bytes are free", what, path, free_B);
    else if (fs.f_files && fs.f_favail == 0)
        doctor_say(d, VERDICT_DISK_FULL, "%s: the file system of %s has no inode left: no file can be made in it", what, path);
}

/* owner: the process that has it open, and may be within a write; 0: none. */
void doctor_end(struct doctor *d, const char *path, const struct log_counts *c, uint32_t owner)
{
    if (c->torn && owner)
        doctor_say(d, VERDICT_FINE, "%s: its last record is not whole; process %u may be writing it", path, owner);
    else if (c->torn)
        doctor_say(d, VERDICT_CUT_SHORT, "%s: it ends in the middle of a record: the disk was full, or the process was ended while it wrote", path);
    if (c->damaged)
        doctor_say(d, VERDICT_CUT_SHORT, "%s: %" PRIu64 " place(s) of it cannot be decoded: damaged, or cut off", path, c->damaged);
    if (c->nul_B)
        doctor_say(d, VERDICT_CUT_SHORT, "%s: %" PRIu64 " bytes of it are NUL: the host went down before they were on the disk", path, c->nul_B);
}

/* A failure of this file's sink, after that time. The path is as the process had it. */
static bool told_of(const struct umd_emergency_slot *s, const char *path, uint64_t since_ns)
{
    char named[UMD_EMERGENCY_TEXT];

    return s->real_ns >= since_ns && strncmp(s->message, "log sink fails", 14) == 0 && log_figure_get(s->message, "path", named, sizeof(named)) &&
           strcmp(text_base_name(named), text_base_name(path)) == 0;
}

void doctor_ring(struct doctor *d, const char *path, const struct log_header *h, uint64_t since_ns)
{
    static struct umd_emergency_found found[RINGS];
    struct umd_emergency_slot *slots = h->pid ? calloc(UMD_EMERGENCY_SLOTS, sizeof(*slots)) : NULL;
    uint32_t rings = slots ? umd_emergency_find(h->pid, found, RINGS) : 0, count, damaged;

    for (uint32_t r = 0; r < rings; r++) {
        const struct umd_emergency_slot *last = NULL;
        umdErrorDetail unused;
        if (umdFailed(umd_emergency_read(found[r].path, slots, UMD_EMERGENCY_SLOTS, &count, &damaged))) {
            (void)umd_record_export(&unused); /* of another version; not what is asked here */
            continue;
        }
        for (uint32_t i = 0; i < count; i++)
            last = told_of(&slots[i], path, h->opened_ns > since_ns ? h->opened_ns : since_ns) ? &slots[i] : last;
        if (last && !found[r].alive)
            doctor_say(d, VERDICT_CUT_SHORT, "%s: the emergency ring of its process, %s, says: %.500s", path, found[r].path, last->message);
    }
    free(slots);
}
