/* SPDX-License-Identifier: MIT */
/* main.c - umd-explain: what a return code means and what to do about it; what is known of an error record. */
#include <ctype.h>
#include <popt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <umd/umd_log.h>

#include "../umd-tool.h"
#include "explain.h"

enum { FILES_MAX = 64 };

struct options {
    int json, list, help, version;
    const char *logs[FILES_MAX], *rings[FILES_MAX];
    uint32_t log_count, ring_count;
};

static void print_help(poptContext pc)
{
    poptPrintHelp(pc, stdout, 0);
    printf("\nCODE is a name, in any case, whole or without UMD_ERR_ (mem_fragmented, fragmented), or a value, in decimal, hex or as an unsigned\n"
           "number (-2011, 0xfffff825, 4294965285). The names that codes have in CUDA, HIP, Level Zero, Vulkan and errno are read, too.\n"
           "RECORD-ID is as logs and reports print it, boot:pid:number; its story is read from the files of --log and --emergency, else from\n"
           "the log that UMD_LOG_FILE, UMD_LOG_JSON or UMD_LOG_BINARY names.\n"
           "\nExamples:\n"
           "  umd-explain UMD_ERR_MEM_FRAGMENTED\n"
           "  umd-explain -- -4002\n"
           "  umd-explain cudaErrorLaunchTimeout\n"
           "  umd-explain f3f0ca53:18470:2 --log run.log\n"
           "  umd-explain --list --json | jq -r '.[] | select(.sticky) | .name'\n"
           "\nExit status: 0 done, 1 usage, no such code or record, 2 a file could not be read or the output not be written.\n");
}

static int usage(const char *what)
{
    fprintf(stderr, "umd-explain: %s; try umd-explain --help\n", what);
    return EXIT_USAGE;
}

static int no_code(const char *word, const struct explain_word *w)
{
    char text[512] = "";
    size_t n = 0;
    char shown[64];

    snprintf(shown, sizeof(shown), "%s", word);
    tool_clean(shown);
    if (w->kind == EXPLAIN_UNKNOWN_VALUE) {
        fprintf(stderr, "umd-explain: %s is no code, and lies in no range of codes; umd-explain --list prints all\n", shown);
        return EXIT_USAGE;
    }
    for (uint32_t i = 0; i < w->near_count && n < sizeof(text); i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? i + 1 == w->near_count ? " or " : ", " : "; did you mean ", w->near[i]->name);
    fprintf(stderr, "umd-explain: there is no code '%s'%s%s\n", shown, text, w->near_count ? "?" : "; umd-explain --list prints all");
    return EXIT_USAGE;
}

/* The file that the environment has the log in. */
static bool log_of_environment(struct options *o)
{
    static const char *const variables[] = { "UMD_LOG_BINARY", "UMD_LOG_FILE", "UMD_LOG_JSON" };

    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *path = env_before(variables[i]);
        if (path && *path && !strchr(path, '%') && access(path, F_OK) == 0) {
            o->logs[o->log_count++] = path;
            return true;
        }
    }
    return false;
}

static int explain(const char *word, struct options *o)
{
    struct explain_word w;
    umdRecordId id;

    if (strchr(word, ':')) {
        if (!log_id_parse(word, strlen(word), &id))
            return usage("a record's id is boot:pid:number, as f3f0ca53:18470:2");
        if (!o->log_count && !o->ring_count && !log_of_environment(o))
            return usage("name the log that has the record with --log FILE, or a ring with --emergency FILE");
        return explain_record(id, o->logs, o->log_count, o->rings, o->ring_count, o->json);
    }
    if (o->log_count || o->ring_count)
        return usage("--log and --emergency are for a RECORD-ID");
    explain_look_up(word, &w);
    if (w.kind == EXPLAIN_CODE)
        explain_code(&w, o->json);
    else if (w.kind == EXPLAIN_FOREIGN)
        explain_foreign(word, o->json);
    else if (w.kind == EXPLAIN_UNKNOWN_VALUE && umd_status_range_info((umdStatus)w.value))
        explain_value(&w, o->json);
    else
        return no_code(word, &w);
    return EXIT_DONE;
}

/* popt would take -2011 for options: numbers are kept from it. */
static bool is_value(const char *arg) { return arg[0] == '-' && isdigit((unsigned char)arg[1]); }

static int take_options(poptContext pc, struct options *o)
{
    int rc;

    while ((rc = poptGetNextOpt(pc)) > 0) {
        uint32_t *count = rc == 'l' ? &o->log_count : &o->ring_count;
        const char **files = rc == 'l' ? o->logs : o->rings;
        if (*count == FILES_MAX)
            return usage("too many files");
        files[(*count)++] = poptGetOptArg(pc);
    }
    if (rc < -1) {
        fprintf(stderr, "umd-explain: %s: %s; try umd-explain --help\n", poptBadOption(pc, POPT_BADOPTION_NOALIAS), poptStrerror(rc));
        return EXIT_USAGE;
    }
    return EXIT_DONE;
}

static int run(poptContext pc, struct options *o, const char *value)
{
    int status = take_options(pc, o);
    const char *word = value ? value : status == EXIT_DONE ? poptGetArg(pc) : NULL;

    if (status != EXIT_DONE)
        return status;
    if (o->help) {
        print_help(pc);
    } else if (o->version) {
        printf("umd-explain %s\n", PETREL_VERSION);
    } else if (o->list) {
        if (word)
            return usage("--list takes no word");
        explain_list(o->json);
    } else if (!word || poptPeekArg(pc)) {
        return usage(word ? "one code or record at a time" : "no code or record is named");
    } else {
        return explain(word, o);
    }
    return EXIT_DONE;
}

int main(int argc, char **argv)
{
    static struct options o;
    const struct poptOption table[] = {
        { "log", 'l', POPT_ARG_STRING, NULL, 'l', "log to read, in any format; may be given several times", "FILE" },
        { "emergency", 'e', POPT_ARG_STRING, NULL, 'e', "file of an emergency ring to read", "FILE" },
        { "list", 0, POPT_ARG_NONE, &o.list, 0, "all codes", NULL },
        { "json", 0, POPT_ARG_NONE, &o.json, 0, "as JSON", NULL },
        { "help", 'h', POPT_ARG_NONE, &o.help, 0, "show this", NULL },
        { "version", 'V', POPT_ARG_NONE, &o.version, 0, "show the version", NULL },
        POPT_TABLEEND
    };
    const char **rest = calloc((size_t)argc + 1, sizeof(*rest)), *value = NULL;
    int count = 0, status;

    tool_start();
    env_start();
    if (!rest || umdFailed(umdLogSetConsole("off"))) { /* what is wrong is told by the tool itself */
        free(rest);
        return EXIT_ENVIRONMENT;
    }
    for (int i = 0; i < argc; i++) {
        if (i && !value && is_value(argv[i]))
            value = argv[i];
        else
            rest[count++] = argv[i];
    }
    if (value && count > 1 && strcmp(rest[count - 1], "--") == 0)
        count--;
    poptContext pc = poptGetContext("umd-explain", count, rest, table, 0);
    poptSetOtherOptionHelp(pc, "CODE|RECORD-ID [OPTION...]");
    if (value && poptPeekArg(pc))
        status = usage("one code or record at a time");
    else
        status = run(pc, &o, value);
    poptFreeContext(pc);
    free(rest);
    return tool_finish("umd-explain", status);
}
