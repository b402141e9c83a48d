/* SPDX-License-Identifier: MIT */
/* umd-tool.h - what the command-line tools share: the command line with help and completion, exit statuses, how they speak. */
#ifndef UMD_TOOL_H
#define UMD_TOOL_H

#include <popt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit statuses of all tools. */
enum { EXIT_DONE = 0, EXIT_USAGE = 1, EXIT_ENVIRONMENT = 2, EXIT_DEVICE = 3, EXIT_WRONG = 4 };

/* What is typed so far, where the shell asks how it may go on. */
struct tool_at {
    const char *option;         /* whose value it is, its long name; NULL: a word */
    const char *prefix;         /* what is there of it already */
    const char *const *words;   /* the words before it, options left out */
    uint32_t count;
};

/* A tool, or one command of a tool that has several with options of their own. */
struct tool {
    const char *command;        /* NULL: the tool itself */
    const char *words;          /* its command line, after the name */
    const char *text;           /* what it does: a fragment without a full stop; the first sentence of help and man page, and for lists */
    const char *help;           /* below the options: more about it, examples, exit status; lines of at most 130 columns */
    void (*lists)(void);        /* NULL, or prints between options and help: its commands, or what else a word may be */
    bool (*complete)(const struct tool_at *at); /* NULL, or offers what a word or a value may be; false: what is usual */
};

/* A parsed command line; its words and the texts of its options live until it is finished. */
struct tool_line {
    poptContext pc;
    const char **words;
    uint32_t count;
    struct tool_texts *texts;
};

/*
 * First thing in main. A file opened later must not take the number of a standard stream that the caller has closed; what is beyond the
 * limit of file sizes is told by EFBIG, not by a signal that ends the process without a word. Returns argc anew: where the shell asks
 * for completion ("NAME --complete WORD..."), that word is taken out of argv, and tool_parse answers.
 */
int tool_start(const char *name, int argc, char **argv);
/* The shell asks; whoever parses no further than this answers nothing. */
bool tool_is_completing(void);
/* The tools tell what is wrong themselves; lines of the log on the console tell it twice. False after one line: it cannot be had so. */
bool tool_quiet(void);
/* $UMD_LOG_CONSOLE asks for lines on the console all the same. Set but empty is not set. */
bool tool_wants_console(void);
/* Writes out what was printed, before something else is said; why that failed, if it did, is told by tool_finish. */
void tool_flush(void);
/* Last thing in main: what printf could not write is known only now. Value: the exit status, after one line if output is missing. */
int tool_finish(int status);
const char *tool_name(void);

/*
 * Parses by the table, and answers --help, --version and the shell. False: *status_out is what main returns, all has been said, and
 * nothing is to be finished. argv[0] is not looked at. What options held before is their default: it is not freed. An option with a text
 * may come again, then the last counts; POPT_ARG_ARGV gathers all.
 */
bool tool_parse(const struct tool *tool, int argc, const char **argv, struct poptOption *options, struct tool_line *out, int *status_out);
void tool_line_finish(struct tool_line *line);

/* All of main for a tool with one option table, which keeps the log off the console: start, parse, run, finish. options: run's. */
typedef int (*tool_run)(const struct tool_line *line, void *options);
int tool_main(const char *name, const struct tool *tool, int argc, char **argv, struct poptOption *table, tool_run run, void *options);

/* One line on stderr: "NAME: ...". */
void tool_say(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));
/* The same, ended by where help is. Value: EXIT_USAGE. */
int tool_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2), cold));
/* "--OPTION is 'VALUE', not EXPECTED". Value: EXIT_USAGE. */
int tool_bad_value(const char *option, const char *value, const char *expected) __attribute__((cold));
/* "there is no WHAT 'WORD'; was NEAR meant?"; near NULL: none is. Value: EXIT_USAGE. */
int tool_unknown(const char *what, const char *word, const char *near) __attribute__((cold));

/* A whole number from min to max; false after a usage line. */
bool tool_number(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *out);
/* A number above 0 and at most max; false after a usage line. */
bool tool_decimal(const char *option, const char *text, double max, double *out);

/*
 * The file that a fault specification stands for, NULL: it is one itself. "@FILE" and an absolute path are a file everywhere; on a command
 * line the name of a file that exists is, too, and so is what has a '/' but no '=' (then it cannot be read, and that is said).
 */
const char *tool_fault_file(const char *text, bool command_line);

/* Path of an installed or just built code object ("mlp.elf"), wherever the installation is; false with the places looked at in `out`. */
bool tool_kernel_path(const char *name, char *out, uint32_t out_B);

/* ---- Completion: for tool.complete ---- */

/* Offers a text, if it begins with what is there. */
void tool_offer(const struct tool_at *at, const char *text);
/* The same for one part of a list joined by commas, and each of a NULL-ended list. */
void tool_offer_part(const struct tool_at *at, const char *text);
void tool_offer_all(const struct tool_at *at, const char *const *texts);
void tool_offer_files(void);
void tool_offer_levels(const struct tool_at *at);
/* The command or name that comes first stands already, if it is this one. */
bool tool_after(const struct tool_at *at, const char *word);

/* tool_parse's part of it: umd-tool-complete.c. */
void tool_complete(const struct tool *tool, const struct poptOption *table, int argc, const char **argv);

#endif
