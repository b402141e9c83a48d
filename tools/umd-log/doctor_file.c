/* SPDX-License-Identifier: MIT */
/* doctor_file.c - reads a log for what it says about itself, and finds the process that has it. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "doctor.h"
#include "set.h"

/* Who holds the lock of an open log; asked of /proc/locks, since trying the lock could take it from a process that just starts. */
static uint32_t owner_of(const struct stat *st)
{
    char line[256];
    uint32_t pid = 0;
    FILE *f = fopen("/proc/locks", "re");

    while (f && fgets(line, sizeof(line), f)) {
        unsigned major, minor, found;
        unsigned long long inode;
        if (sscanf(line, "%*u: FLOCK %*s WRITE %u %x:%x:%llu", &found, &major, &minor, &inode) == 4 && inode == st->st_ino &&
            major == major(st->st_dev) && minor == minor(st->st_dev))
            pid = found;
    }
    if (f)
        fclose(f);
    return pid;
}

struct told {
    uint64_t of_module, of_module_by_level[UMD_LOG_TRACE + 1]; /* of --module; without it of all */
    uint64_t records, first_ns, last_ns, by_level[UMD_LOG_TRACE + 1];
    char sink[500], dropped[300], setting[500]; /* the last of each */
    bool sink_works_again;
    uint64_t lost, works_again_ns;      /* as sinks said when they worked again, and when that was last */
};

static void listen(const struct doctor *d, struct told *t, const struct log_rec *rec)
{
    char number[24];
    const size_t n = d->module ? strlen(d->module) : 0;

    t->records++;
    t->first_ns = t->first_ns ? t->first_ns : rec->real_ns;
    t->last_ns = rec->real_ns;
    t->by_level[rec->level]++;
    if (!n || (strncmp(rec->module, d->module, n) == 0 && (rec->module[n] == '\0' || rec->module[n] == '.'))) {
        t->of_module++;
        t->of_module_by_level[rec->level]++;
    }
    if (strncmp(rec->module, "diag", 4) != 0)
        return;
    if (strncmp(rec->message, "log sink fails", 14) == 0) {
        snprintf(t->sink, sizeof(t->sink), "%s", rec->message);
        t->sink_works_again = false;
    } else if (strncmp(rec->message, "log sink works again", 20) == 0) {
        t->sink_works_again = true;
        t->works_again_ns = rec->real_ns;
        if (log_figure_get(rec->message, "records_lost", number, sizeof(number)))
            t->lost += strtoull(number, NULL, 10);
    } else if (strncmp(rec->message, "setting ignored", 15) == 0) {
        snprintf(t->setting, sizeof(t->setting), "%s", rec->message);
    } else if (strstr(rec->message, "dropped")) {
        snprintf(t->dropped, sizeof(t->dropped), "%s", rec->message);
    }
}

static void conclude(struct doctor *d, const char *path, const struct told *t, const struct log_counts *c)
{
    char last[40];

    log_time_format(t->last_ns, last);
    if (t->records)
        doctor_say(d, VERDICT_FINE, "%s: %" PRIu64 " records (%" PRIu64 " ERROR, %" PRIu64 " WARN, %" PRIu64 " INFO, %" PRIu64 " DEBUG, %" PRIu64
                   " TRACE), the last at %s", path, t->records, t->by_level[1], t->by_level[2], t->by_level[3], t->by_level[4], t->by_level[5], last);
    d->module_seen = d->module_seen || (d->module && t->of_module);
    d->working = d->working || t->of_module;
    if (t->records && !t->of_module)
        doctor_say(d, VERDICT_NOTHING_HAPPENED, "%s: it has no record of %.60s", path, d->module);
    if (t->lost)
        doctor_say(d, VERDICT_LOST, "%s: it says that %" PRIu64 " records were lost while it could not be written", path, t->lost);
    else if (t->sink_works_again)
        doctor_say(d, VERDICT_FINE, "%s: it could not be written for a while, and has lost nothing by it", path);
    if (t->sink[0])
        doctor_say(d, t->sink_works_again ? VERDICT_FINE : VERDICT_SINK_FAILING, "%s: it says: %s", path, t->sink);
    if (t->dropped[0])
        doctor_say(d, VERDICT_LOST, "%s: it says: %s", path, t->dropped);
    if (t->setting[0])
        doctor_say(d, VERDICT_BAD_SETTING, "%s: it says: %s", path, t->setting);
    if (t->records && d->level > UMD_LOG_INFO && !t->of_module_by_level[d->level])
        doctor_say(d, VERDICT_FILTERED, "%s: it has no %s record%s%.60s: its level was %s or lower%s", path, log_level_name(d->level), d->module ? " of " : "",
                   d->module ? d->module : "", log_level_name(d->level - 1), d->module && doctor_has_module(d, d->module) ? "" :
                   ", or that of the program is not compiled in (-DUMD_DEBUG_ENABLE=1); umd-log sites PROGRAM tells");
}

static void owner(struct doctor *d, const char *path, uint32_t pid, const struct log_header *h, uint64_t records)
{
    if (pid)
        doctor_say(d, records ? VERDICT_FINE : VERDICT_NOTHING_HAPPENED, "%s: process %u has it open%s", path, pid,
                   records ? "" : " and has logged nothing that its level takes; see umd-log doctor --pid");
    else if (h->pid && !records)
        doctor_say(d, VERDICT_NOTHING_HAPPENED, "%s: process %u opened it, logged nothing and is gone", path, h->pid);
    else if (!records)
        doctor_say(d, VERDICT_NEVER_LOGGED, "%s: it is empty and no process has it open", path);
}

static bool can_be_read(struct doctor *d, const char *path, const struct stat *st)
{
    int err = 0;

    if (!S_ISREG(st->st_mode)) {
        doctor_say(d, VERDICT_PATH, "%s is %s", path, S_ISDIR(st->st_mode) ? "a directory" : "no file; a pipe or device keeps no log");
        return false;
    }
    struct log_reader *r = log_reader_open(path, &err);
    log_reader_close(r);
    if (!r)
        doctor_say(d, err == EBADMSG ? VERDICT_NO_LOG : VERDICT_PATH, "%s cannot be read: %s", path, log_reader_why(err));
    return r != NULL;
}

void doctor_file(struct doctor *d, const char *path)
{
    const char *const paths[] = { path };
    struct told t = { 0 };
    struct stat st;
    const struct log_rec *rec;

    if (stat(path, &st) != 0) {
        if (errno == ENOENT) {
            if (!d->settings_checked)
                doctor_path(d, "the log", path);
            doctor_say(d, VERDICT_NEVER_LOGGED, "%s is not there: it is made with the first record that its level takes, so no process has got that far, "
                       "or none was started with this path", path);
        } else {
            doctor_say(d, VERDICT_PATH, "%s cannot be reached: %s", path, strerror(errno));
        }
        return;
    }
    struct log_set *set = can_be_read(d, path, &st) ? log_set_open(paths, 1, LOG_ROTATED_RUN) : NULL;
    if (!set)
        return;
    while ((rec = log_set_next(set)) != NULL)
        listen(d, &t, rec);
    struct log_counts c = log_set_counts(set, 0);
    if (c.foreign && !t.records && !log_set_header(set, 0)->pid) { /* what follows is about logs */
        doctor_say(d, VERDICT_NO_LOG, "%s: none of its %" PRIu64 " lines is a record: it is no log of Petrel", path, c.lines);
        log_set_close(set);
        return;
    }
    conclude(d, path, &t, &c);
    const uint32_t pid = owner_of(&st);
    const struct log_header *h = log_set_header(set, 0);
    owner(d, path, pid, h, t.records);
    doctor_end(d, path, &c, pid);
    doctor_ring(d, path, h, t.works_again_ns);
    if (!d->settings_checked) /* its path has been looked at with them */
        doctor_disk(d, "the log", path);
    log_set_close(set);
}
