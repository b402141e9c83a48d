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
    tool_flush();
    if (!good)
        tool_say("out of memory; export fewer files at a time, or filter");
    return log_set_report(set) && good ? EXIT_DONE : EXIT_ENVIRONMENT;
}

static int run(const struct command *self, int argc, const char **argv)
{
    int chrome = 0, otlp = 0, history = 0, status;
    struct filter_options options = { 0 };
    struct filter filter;
    struct tool_line line;
    struct poptOption table[] = {
        { "chrome-trace", '\0', POPT_ARG_NONE, &chrome, 0, "JSON of the Trace Event Format", NULL },
        { "otlp", '\0', POPT_ARG_NONE, &otlp, 0, "OTLP/JSON, a LogsData object per line", NULL },
        { "history", 'a', POPT_ARG_NONE, &history, 0, "also the older files (FILE.1, ...) of earlier runs", NULL },
        { NULL, '\0', POPT_ARG_INCLUDE_TABLE, filter_table(&options), 0, "Which records:", NULL },
        POPT_TABLEEND
    };

    if (!tool_parse(&self->tool, argc, argv, table, &line, &status))
        return status;
    struct log_set *set = NULL;
    if (chrome == otlp)
        status = tool_usage("one of --chrome-trace and --otlp");
    else
        set = command_open(&line, &options, history ? LOG_ROTATED_ALL : LOG_ROTATED_RUN, &filter, &status);
    if (set) {
        status = export(set, &filter, chrome);
        command_close(set, &filter);
    }
    tool_line_finish(&line);
    return status;
}

const struct command command_export = {
    .run = run,
    .tool = {
        .command = "export", .words = "[OPTION...] --chrome-trace|--otlp [FILE...]", .text = "for Perfetto (ui.perfetto.dev), or as OpenTelemetry logs",
        .help = "--chrome-trace: public calls are slices where the log has TRACE (UMD_LOG_FILE_LEVEL=umd.api=trace,info), all else are instants;\n"
                "arrows lead from causes to what failed because of them. Processes and threads are named.\n"
                "--otlp: resourceLogs, scopeLogs and logRecords, at most 1000 records a line, as a collector's otlpjsonfile receiver reads them and\n"
                "an OTLP/HTTP endpoint takes each line.\n"
                "\nExamples:\n  umd-log export --chrome-trace rank*.log >trace.json\n  umd-log export --otlp --level warn run.log >logs.otlp.json\n",
        .complete = command_complete,
    },
};
