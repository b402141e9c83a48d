/* SPDX-License-Identifier: MIT */
/* cmd.h - what the commands of umd-log share: how they are listed, and how those over log files begin. */
#ifndef UMD_LOG_CMD_H
#define UMD_LOG_CMD_H

#include "env.h"
#include "filter.h"
#include "umd-tool.h"

struct command {
    struct tool tool;
    int (*run)(const struct command *self, int argc, const char **argv);
};

/*
 * The files to read, opened, and the filter: the words of the line, else what the environment names. NULL after one line on stderr:
 * *status_out is what main returns.
 */
struct log_set *command_open(const struct tool_line *line, const struct filter_options *options, enum log_rotated rotated,
                             struct filter *filter_out, int *status_out);
void command_close(struct log_set *set, struct filter *filter);
/* --pid, if it was given: of a process. False after a usage line. */
bool command_pid(const char *text, uint64_t *pid_out);
/* --level: a level's number. False after a usage line. */
bool command_level_of(const char *text, int *level_out);

/* ---- For tool.complete: complete.c ---- */
/* Codes, modules, processes as values of options; words are files. */
bool command_complete(const struct tool_at *at);
/* One word, a specification of levels; or no word at all. */
bool command_complete_spec(const struct tool_at *at);
bool command_complete_none(const struct tool_at *at);

extern const struct command command_show, command_merge, command_errors, command_stats, command_doctor, command_sites, command_emergency,
    command_export, command_level, command_reopen, command_status;

#endif
