/* SPDX-License-Identifier: MIT */
/* doctor.h - findings about a log that is on but empty, and what comes of them. */
#ifndef UMD_LOG_DOCTOR_H
#define UMD_LOG_DOCTOR_H

#include <json-c/json.h>

#include "reader.h"
#include "settings.h"

/* The gravest is the verdict; each has one answer to what to do. */
enum verdict {
    VERDICT_FINE,               /* the log works, and holds records */
    VERDICT_NOTHING_HAPPENED,   /* it works; nothing that it would take was logged */
    VERDICT_NEVER_LOGGED,       /* no process has written to it */
    VERDICT_NO_FILE,            /* no file is asked for */
    VERDICT_NO_LOG,             /* the file is none of ours */
    VERDICT_FILTERED,           /* by level; the finding names the setting */
    VERDICT_COMPILED_OUT,
    VERDICT_LOST,               /* records were dropped or could not be written */
    VERDICT_CUT_SHORT,          /* the end of a file is missing */
    VERDICT_BAD_SETTING,        /* ignored by the library */
    VERDICT_NO_LIBRARY,         /* the process does not use the driver */
    VERDICT_SINK_FAILING,       /* with errno */
    VERDICT_DISK_FULL,
    VERDICT_PATH,               /* cannot be written */
};

#define FINDINGS_MAX 96u

struct doctor {
    struct settings settings;
    uint32_t pid;               /* of --pid; 0: none */
    const char *module;         /* of --module; NULL: any */
    int level;                  /* of --level; 0: any */
    int compiled;               /* highest level that is compiled in; 0: unknown */
    char **modules;             /* that have call sites in the libraries and programs that were looked into, each once */
    uint32_t module_count, module_size;
    int module_asked, module_compiled; /* of --module: the highest level of its call sites, and of those that are compiled in; 0: it has none */
    bool module_seen;           /* of --module: a record of it is in a file */
    bool settings_checked;      /* and with them their paths */
    bool working;               /* some file has records, or the process says its log works */
    struct finding { enum verdict verdict; char text[700]; } finding[FINDINGS_MAX];
    uint32_t count;
};

void doctor_say(struct doctor *d, enum verdict verdict, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
const char *doctor_word(enum verdict verdict);
const char *doctor_todo(enum verdict verdict);
enum verdict doctor_verdict(const struct doctor *d);

/* doctor_settings.c: settings that the library ignores, by its own word; names that are none. */
void doctor_ignored(struct doctor *d);
bool doctor_has_module(const struct doctor *d, const char *module);
/* NULL: none is near. */
const char *doctor_near_module(const struct doctor *d, const char *module, size_t n);
/* doctor_env.c: settings, levels, what is compiled in, paths. */
void doctor_settings(struct doctor *d);
/* Which modules there are, and up to which level they are compiled: of the process, or of the libraries that belong to this tool. */
void doctor_read_sites(struct doctor *d);
void doctor_compiled(struct doctor *d);
/* After all else: whether there is what --module asks for. */
void doctor_module(struct doctor *d);
/* What it means that a sink has this level by that setting. */
void doctor_level(struct doctor *d, int sink, int level, const char *by);
void doctor_path(struct doctor *d, const char *what, const char *path);
/* doctor_file.c: what a file says, and who has it open. */
void doctor_file(struct doctor *d, const char *path);
/* doctor_loss.c: room on the file system of a path; the end of a file; what its process's emergency ring says of it. */
void doctor_disk(struct doctor *d, const char *what, const char *path);
void doctor_end(struct doctor *d, const char *path, const struct log_counts *c, uint32_t owner);
/* since_ns: what it says of before has been mended since. */
void doctor_ring(struct doctor *d, const char *path, const struct log_header *h, uint64_t since_ns);
/* doctor_pid.c: a running process. False after one line on stderr: it is not there, or another user's. */
bool doctor_process(struct doctor *d);

#endif
