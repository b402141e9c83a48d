/* SPDX-License-Identifier: MIT */
/* show.c - a crash as a story: what, where, what the process was at, what the driver's state was. */
#include "show.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include <umd/umd_log.h>

#include "umd-text.h"

#define THREADS_SHOWN 64u

static const char *level_name(uint64_t level)
{
    static const char *const names[] = { "OFF", "ERROR", "WARN", "INFO", "DEBUG", "TRACE" };

    return level < sizeof(names) / sizeof(names[0]) ? names[level] : "?";
}

/* What the kernel says the fault was. */
static const char *reason(int64_t sig, int64_t code)
{
    if (code <= 0)
        return sig == SIGABRT ? "the program ended itself: abort, or a failed assertion" : "sent by a process, not by a fault";
    if (sig == SIGSEGV)
        return code == SEGV_MAPERR ? "nothing is mapped there" : code == SEGV_ACCERR ? "that access is not allowed there"
                                                                                       : "an address that no memory can have";
    if (sig == SIGBUS)
        return code == BUS_ADRERR ? "behind the end of a mapped file" : code == BUS_ADRALN ? "a misaligned access" : "a hardware error";
    if (sig == SIGFPE)
        return code == FPE_INTDIV ? "an integer division by zero" : "an arithmetic fault";
    return sig == SIGILL ? "an illegal instruction: a compiler's trap, or a jump into something else" : "";
}

static void print_head(FILE *to, const char *path, const struct crash *c)
{
    const char *l = crash_line(c, "crash");
    char shown[4400], name[32], program[64], thread[64], version[32], when[64] = "";
    int64_t sig = crash_i64(l, "signal"), code = crash_i64(l, "code");
    time_t t = (time_t)(crash_u64(l, "real_ns") / 1000000000u);
    struct tm tm;

    snprintf(shown, sizeof(shown), "%s", path);
    text_clean(shown);
    crash_text(l, "name", name, sizeof(name));
    crash_text(l, "program", program, sizeof(program));
    crash_text(l, "thread", thread, sizeof(thread));
    crash_text(l, "version", version, sizeof(version));
    if (gmtime_r(&t, &tm))
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", &tm);
    fprintf(to, "%s (pid %" PRIu64 ") died of %s", program, crash_u64(l, "pid"), name);
    if (code > 0)
        fprintf(to, " at address 0x%" PRIx64, crash_u64(l, "address"));
    fprintf(to, ": %s\n", reason(sig, code));
    fprintf(to, "  thread    %s (tid %" PRIu64 "), context %" PRIu64 ", %" PRIu64 " API calls deep\n", thread, crash_u64(l, "tid"),
            crash_u64(l, "context"), crash_u64(l, "depth"));
    fprintf(to, "  when      %s, Petrel %s\n", when, version);
    fprintf(to, "  snapshot  %s\n", shown);
    if (!c->whole)
        fprintf(to, "  CUT SHORT in section [%s]: what comes after it is missing\n", c->section_count ? c->sections[c->section_count - 1].name : "");
}

static void print_frames(FILE *to, const struct crash_symbols *s)
{
    fprintf(to, "\nBacktrace (%s)\n", s->by_frame_information ? "from the saved stack" : "by frame pointers: frames of code without them are missing");
    for (size_t i = 0; i < s->frame_count; i++) {
        const struct crash_frame *f = &s->frames[i];
        fprintf(to, "  #%-2zu %s", i, f->function[0] ? f->function : "??");
        if (f->file[0])
            fprintf(to, " at %s:%d", f->file, f->line);
        if (f->module[0])
            fprintf(to, "  [%s+0x%" PRIx64 "]\n", f->module, f->offset);
        else
            fprintf(to, "  [0x%" PRIx64 "]\n", f->pc);
    }
    for (size_t i = 0; i < s->module_count; i++) {
        const struct crash_module *m = &s->modules[i];
        if (m->state == CRASH_MODULE_OTHER_BUILD)
            fprintf(to, "  note: %s on this machine is another build than the one that crashed (build-id %s): no names from it\n", m->path, m->build_id);
        else if (m->state == CRASH_MODULE_MISSING)
            fprintf(to, "  note: %s (build-id %s) is not on this machine: no names from it\n", m->path, m->build_id);
    }
}

static void print_call(FILE *to, const char *line)
{
    char name[64], args[CRASH_TEXT_B] = "";
    uint64_t start = crash_u64(line, "start_ns"), end = crash_u64(line, "end_ns");

    crash_text(line, "name", name, sizeof(name));
    crash_message(line, args, sizeof(args));
    if (end)
        fprintf(to, "  %s(%s) -> %s, %.3f ms\n", name, args, umdStatusName((umdStatus)crash_i64(line, "code")),
                end > start ? (double)(end - start) / 1e6 : 0.0);
    else
        fprintf(to, "  %s(%s) -> under way\n", name, args);
}

static void print_calls(FILE *to, const struct crash *c)
{
    const struct crash_section *s = crash_section(c, "calls");
    uint64_t self = crash_u64(crash_line(c, "crash"), "tid"), last = 0;

    for (size_t i = 0; i < s->count; i++) {
        uint64_t tid = crash_u64(s->lines[i], "tid");
        if (i == 0 || tid != last)
            fprintf(to, "\nAPI calls of %s %" PRIu64 ", newest first\n", tid == self ? "the crashed thread" : "thread", tid);
        last = tid;
        print_call(to, s->lines[i]);
    }
}

static void print_records(FILE *to, const struct crash *c, const char *section, const char *title)
{
    const struct crash_section *s = crash_section(c, section);

    if (s->count)
        fprintf(to, "\n%s\n", title);
    for (size_t i = 0; i < s->count; i++) {
        char module[64], func[64], file[64], message[CRASH_TEXT_B];
        const char *l = s->lines[i];
        message[0] = '\0';
        crash_text(l, "module", module, sizeof(module));
        crash_text(l, "func", func, sizeof(func));
        crash_text(l, "file", file, sizeof(file));
        crash_message(l, message, sizeof(message));
        uint64_t ns = crash_u64(l, "mono_ns");
        fprintf(to, "  %" PRIu64 ".%09" PRIu64 " %-5s %" PRIu64 " %s: %s [%s %s:%" PRIu64 "]%s\n", ns / 1000000000u, ns % 1000000000u,
                level_name(crash_u64(l, "level")), crash_u64(l, "tid"), module, message, func, file, crash_u64(l, "line"),
                strcmp(section, "log") == 0 && !crash_u64(l, "taken") ? " *" : "");
    }
}

static void print_lines(FILE *to, const struct crash *c, const char *section, const char *title, size_t per_row)
{
    const struct crash_section *s = crash_section(c, section);

    if (s->count)
        fprintf(to, "\n%s\n", title);
    for (size_t i = 0; i < s->count; i++)
        fprintf(to, "%s%-*s%s", i % per_row == 0 ? "  " : " ", per_row > 1 ? 25 : 0, s->lines[i], i % per_row == per_row - 1 || i + 1 == s->count ? "\n" : "");
}

void crash_show(FILE *to, const char *path, const struct crash *c, const struct crash_symbols *s)
{
    print_head(to, path, c);
    print_frames(to, s);
    print_calls(to, c);
    print_records(to, c, "emergency", "Last errors and events (emergency ring)");
    print_records(to, c, "log", "Last log lines of each thread; *: not in any log file yet");
    print_lines(to, c, "state", "State of the driver", 1);
    print_lines(to, c, "registers", "Registers", 4);
}
