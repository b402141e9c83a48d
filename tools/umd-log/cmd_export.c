/* SPDX-License-Identifier: MIT */
/* cmd_export.c - export: logs for Perfetto, and for what takes OpenTelemetry. */
#include <stdio.h>

#include "cmd.h"
#include "export.h"

static int export(struct log_set *set, struct filter *filter, bool chrome)
{
    if (filter_needs_range(filter) && !filter_find_range(filter, set))
        return EXIT_ENVIRONMENT;
    bool good = chrome ? export_chrome(set, filter) : export_otlp(set, filter);
    fflush(stdout);
    if (!good)
        fprintf(stderr, "umd-log: out of memory; export fewer files at a time, or filter\n");
    return log_set_report(set) && good ? EXIT_DONE : EXIT_ENVIRONMENT;
}

static int run(const struct command *self, int argc, const char **argv)
{
    int chrome = 0, otlp = 0, history = 0, status;
    struct filter_options options = { 0 };
    struct filter filter;
    struct command_line line;
    const char *const *files;
    struct poptOption table[] = {
        { "chrome-trace", '\0', POPT_ARG_NONE, &chrome, 0, "JSON of the Trace Event Format", NULL },
        { "otlp", '\0', POPT_ARG_NONE, &otlp, 0, "OTLP/JSON, a LogsData object per line", NULL },
        { "history", 'a', POPT_ARG_NONE, &history, 0, "also the older files (FILE.1, ...) of earlier runs", NULL },
        { NULL, '\0', POPT_ARG_INCLUDE_TABLE, filter_table(&options), 0, "Which records:", NULL },
        POPT_TABLEEND
    };

    if (!command_parse(self, argc, argv, table, &line, &status)) {
        filter_options_finish(&options);
        return status;
    }
    status = EXIT_USAGE;
    uint32_t count = 0;
    if (chrome == otlp)
        (void)command_usage(self, "one of --chrome-trace and --otlp");
    else
        count = command_files(self, &line, &files);
    if (count && filter_start(&filter, &options)) {
        struct log_set *set = log_set_open(files, count, history ? LOG_ROTATED_ALL : LOG_ROTATED_RUN);
        status = set ? export(set, &filter, chrome) : EXIT_ENVIRONMENT;
        log_set_close(set);
        filter_finish(&filter);
    }
    filter_options_finish(&options);
    command_finish(&line);
    return status;
}

const struct command command_export = {
    .name = "export", .words = "--chrome-trace|--otlp [FILE...]", .text = "for Perfetto (ui.perfetto.dev), or as OpenTelemetry logs", .run = run,
    .help = "--chrome-trace: public calls are slices where the log has TRACE (UMD_LOG_FILE_LEVEL=umd.api=trace,info), all else are instants;\n"
            "arrows lead from causes to what failed because of them. Processes and threads are named.\n"
            "--otlp: resourceLogs, scopeLogs and logRecords, at most 1000 records a line, as a collector's otlpjsonfile receiver reads them and\n"
            "an OTLP/HTTP endpoint takes each line.\n"
            "\nExamples:\n  umd-log export --chrome-trace rank*.log >trace.json\n  umd-log export --otlp --level warn run.log >logs.otlp.json\n",
};
