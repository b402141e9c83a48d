/* SPDX-License-Identifier: MIT */
/* cmd.h - what the commands of umd-log share: the command line, exit statuses, the environment as it was found. */
#ifndef UMD_LOG_CMD_H
#define UMD_LOG_CMD_H

#include <popt.h>
#include <stdbool.h>
#include <stdint.h>

enum { EXIT_DONE = 0, EXIT_USAGE = 1, EXIT_ENVIRONMENT = 2, EXIT_DEVICE = 3, EXIT_WRONG = 4 };

struct command {
    const char *name, *words, *text;    /* for the list; words is what follows the options, as "FILE..." */
    const char *help;                   /* below the options: what it does, examples; lines of at most 110 columns */
    int (*run)(const struct command *self, int argc, const char **argv);
};

/* A parsed command line; its words live until it is finished. */
struct command_line {
    poptContext pc;
    const char **words;
    uint32_t count;
};

/*
 * Parses with the command's own options (and --help, --version). False: *status_out is what main returns, the rest has been said;
 * nothing is to be finished then.
 */
bool command_parse(const struct command *self, int argc, const char **argv, struct poptOption *options, struct command_line *out, int *status_out);
void command_finish(struct command_line *line);
/* One line on stderr that ends in where help is. Value: EXIT_USAGE. */
int command_usage(const struct command *self, const char *what) __attribute__((cold));
/* A number of 1 to max, else a usage line and false. */
bool command_number(const struct command *self, const char *option, const char *text, uint64_t max, uint64_t *out);

/*
 * Files to read: the words, or what the environment names (UMD_LOG_BINARY, UMD_LOG_FILE, UMD_LOG_JSON: the first that is set and exists).
 * Returns how many; 0 after a usage line.
 */
uint32_t command_files(const struct command *self, const struct command_line *line, const char *const **files_out);

/* ---- environment: env.c ---- */

/*
 * The library that is looked at is also linked into this tool. So that it writes no log, no emergency file and opens no socket here, its
 * variables are taken out of the environment before it starts. This is what they were; NULL: not set.
 */
const char *env_before(const char *name);
/* The i-th "NAME=value" that was taken out; NULL: no more. */
const char *env_before_at(uint32_t i);
/* First thing: the library keeps its emergency ring to itself, and finds the files of others. */
void env_start(void);

extern const struct command command_show, command_merge, command_errors, command_stats, command_doctor, command_sites, command_emergency,
    command_export, command_level, command_reopen, command_status;

#endif
