/* SPDX-License-Identifier: MIT */
/* umd-tool.c - the command line of every tool: one set-up of popt, one help, one way to say what is wrong. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <umd/umd_log.h>

#include "umd-text.h"
#include "umd-tool.h"

#define TEXTS_MAX 64u
#define TEXT_FIRST 100000   /* poptOption.val of a text option while it is parsed */

/* What popt has allocated for options with a text. */
struct tool_texts {
    struct { char **at; char *held; bool list; } text[TEXTS_MAX];
    uint32_t count;
    const char **argv;          /* popt's, with the full name first */
    char full[80];
};

static const char *name = "?";
static const struct tool *parsed;   /* says where help is */
static bool completing;

int tool_start(const char *tool_name, int argc, char **argv)
{
    name = tool_name;
    signal(SIGXFSZ, SIG_IGN);
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", O_RDONLY); /* writing to it fails, as it should */
    }
    completing = argc > 1 && strcmp(argv[1], "--complete") == 0;
    if (!completing)
        return argc;
    memmove(&argv[1], &argv[2], (size_t)(argc - 1) * sizeof(*argv)); /* with the NULL at the end */
    return argc - 1;
}

bool tool_is_completing(void) { return completing; }
const char *tool_name(void) { return name; }

bool tool_wants_console(void)
{
    const char *text = getenv("UMD_LOG_CONSOLE");
    return text && *text;
}

bool tool_quiet(void)
{
    if (tool_wants_console() || !umdFailed(umdLogSetConsole("off")))
        return true;
    tool_say("the log cannot be set up");
    return false;
}

/* Of the first write that failed: later ones need not know. */
static int write_errno;

void tool_flush(void)
{
    errno = 0;
    if (fflush(stdout) != 0 && !write_errno)
        write_errno = errno;
}

int tool_finish(int status)
{
    tool_flush();
    int err = write_errno;

    if (!err && !ferror(stdout))
        return status;
    if (!err) { /* a write between two flushes, whose reason is gone: the next one tells */
        clearerr(stdout);
        errno = 0;
        err = putchar('\n') == EOF || fflush(stdout) != 0 ? errno : 0;
    }
    tool_say("standard output could not be written: %s", err ? strerror(err) : "an earlier write failed");
    return status ? status : EXIT_ENVIRONMENT;
}

/* ---- What is wrong ---- */

static void say(const char *fmt, va_list ap, bool help)
{
    char text[4096]; /* names of files and what files say are in it */

    tool_flush();
    vsnprintf(text, sizeof(text), fmt, ap);
    text_clean(text);
    fprintf(stderr, "%s: %s", name, text);
    if (help)
        fprintf(stderr, "; try %s%s%s --help", name, parsed && parsed->command ? " " : "", parsed && parsed->command ? parsed->command : "");
    fputc('\n', stderr);
}

void tool_say(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(fmt, ap, false);
    va_end(ap);
}

int tool_usage(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(fmt, ap, true);
    va_end(ap);
    return EXIT_USAGE;
}

int tool_bad_value(const char *option, const char *value, const char *expected)
{
    return tool_usage("--%s is '%.200s', not %s", option, value, expected);
}

int tool_unknown(const char *what, const char *word, const char *near)
{
    return tool_usage("there is no %s '%.100s'%s%s%s", what, word, near ? "; was " : "", near ? near : "", near ? " meant?" : "");
}

bool tool_number(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
    char *end = NULL, expected[80];

    errno = 0;
    unsigned long long v = isdigit((unsigned char)*text) ? strtoull(text, &end, 10) : 0;
    if (end && !*end && !errno && v >= min && v <= max) {
        *out = v;
        return true;
    }
    snprintf(expected, sizeof(expected), "a whole number from %" PRIu64 " to %" PRIu64, min, max);
    (void)tool_bad_value(option, text, expected);
    return false;
}

bool tool_decimal(const char *option, const char *text, double max, double *out)
{
    char *end, expected[80];
    double v = strtod(text, &end);

    if (*text && !*end && v > 0.0 && v <= max) {
        *out = v;
        return true;
    }
    snprintf(expected, sizeof(expected), "a number above 0 and at most %g", max);
    (void)tool_bad_value(option, text, expected);
    return false;
}

const char *tool_fault_file(const char *text, bool command_line)
{
    if (text[0] == '@' || text[0] == '/')
        return text + (text[0] == '@');
    return command_line && (access(text, F_OK) == 0 || (strchr(text, '/') && !strchr(text, '='))) ? text : NULL;
}

/* ---- Parsing ---- */

static bool is_end(const struct poptOption *o) { return !o->longName && !o->shortName && !o->arg; }

/* Options with a text, those of included tables among them, are marked, so that popt hands them out one by one and none leaks. */
static void mark_texts(struct tool_texts *texts, struct poptOption *o)
{
    for (; !is_end(o); o++) {
        unsigned kind = o->argInfo & POPT_ARG_MASK;
        if (kind == POPT_ARG_INCLUDE_TABLE)
            mark_texts(texts, o->arg);
        else if ((kind == POPT_ARG_STRING || kind == POPT_ARG_ARGV) && o->arg && texts->count < TEXTS_MAX) {
            texts->text[texts->count].at = o->arg;
            texts->text[texts->count].list = kind == POPT_ARG_ARGV;
            o->val = kind == POPT_ARG_STRING ? (int)(TEXT_FIRST + texts->count) : 0;
            texts->count++;
        }
    }
}

static int next_option(poptContext pc, struct tool_texts *texts)
{
    int rc;

    while ((rc = poptGetNextOpt(pc)) >= TEXT_FIRST) {
        uint32_t i = (uint32_t)(rc - TEXT_FIRST);
        free(texts->text[i].held);
        texts->text[i].held = *texts->text[i].at;
    }
    return rc;
}

void tool_line_finish(struct tool_line *line)
{
    struct tool_texts *t = line->texts;

    if (!t)
        return;
    for (uint32_t i = 0; i < t->count; i++) {
        char **list = t->text[i].list ? *(char ***)t->text[i].at : NULL;
        for (uint32_t k = 0; list && list[k]; k++)
            free(list[k]);
        free(list);
        if (t->text[i].list || t->text[i].held)
            *t->text[i].at = NULL;
        free(t->text[i].held);
    }
    poptFreeContext(line->pc);
    free(t->argv);
    free(t);
    *line = (struct tool_line){ 0 };
}

/* "show the devices" as a sentence, after the words of the command line. */
static void put_help(const struct tool *tool, poptContext pc)
{
    char intro[600];

    snprintf(intro, sizeof(intro), "%s\n%c%s.", tool->words, toupper((unsigned char)tool->text[0]), tool->text + 1);
    poptSetOtherOptionHelp(pc, intro);
    poptPrintHelp(pc, stdout, 0);
    if (tool->lists) {
        putchar('\n');
        tool->lists();
    }
    printf("\n%s", tool->help);
}

/* What popt is to see: the full name first, since it begins the help. False: no memory. */
static bool begin(const struct tool *tool, int argc, const char **argv, struct tool_line *out)
{
    struct tool_texts *t = calloc(1, sizeof(*t));

    *out = (struct tool_line){ .texts = t };
    if (t)
        t->argv = calloc((size_t)argc + 2, sizeof(*t->argv));
    if (!t || !t->argv) {
        free(t);
        tool_say("out of memory");
        return false;
    }
    snprintf(t->full, sizeof(t->full), "%s%s%s", name, tool->command ? " " : "", tool->command ? tool->command : "");
    for (int i = 1; i < argc; i++)
        t->argv[i] = argv[i];
    t->argv[0] = t->full;
    return true;
}

bool tool_parse(const struct tool *tool, int argc, const char **argv, struct poptOption *options, struct tool_line *out, int *status_out)
{
    int help = 0, version = 0;
    struct poptOption common[] = {
        { "help", 'h', POPT_ARG_NONE, &help, 0, "show this", NULL },
        { "version", 'V', POPT_ARG_NONE, &version, 0, "show the version", NULL },
        POPT_TABLEEND
    };
    struct poptOption all[] = {
        { NULL, '\0', POPT_ARG_INCLUDE_TABLE, options, 0, is_end(options) ? NULL : "Options:", NULL },
        { NULL, '\0', POPT_ARG_INCLUDE_TABLE, common, 0, "Help:", NULL },
        POPT_TABLEEND
    };

    parsed = tool;
    *status_out = EXIT_DONE;
    if (completing) {
        tool_complete(tool, all, argc, argv);
        return false;
    }
    if (!begin(tool, argc, argv, out)) {
        *status_out = EXIT_ENVIRONMENT;
        return false;
    }
    mark_texts(out->texts, options);
    out->pc = poptGetContext(name, argc ? argc : 1, out->texts->argv, all, 0);
    int rc = next_option(out->pc, out->texts);
    if (rc < -1) {
        *status_out = tool_usage("%s: %s", poptBadOption(out->pc, POPT_BADOPTION_NOALIAS), poptStrerror(rc));
    } else if (help) {
        put_help(tool, out->pc);
    } else if (version) {
        printf("%s %s\n", name, PETREL_VERSION);
    } else {
        out->words = poptGetArgs(out->pc);
        while (out->words && out->words[out->count])
            out->count++;
        return true;
    }
    tool_line_finish(out);
    return false;
}

int tool_main(const char *tool_name, const struct tool *tool, int argc, char **argv, struct poptOption *table, tool_run run, void *options)
{
    struct tool_line line;
    int status;

    argc = tool_start(tool_name, argc, argv);
    if (!tool_quiet())
        return EXIT_ENVIRONMENT;
    if (tool_parse(tool, argc, (const char **)argv, table, &line, &status)) {
        status = run(&line, options);
        tool_line_finish(&line);
    }
    return tool_finish(status);
}
