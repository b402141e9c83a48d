/* SPDX-License-Identifier: MIT */
/* hw-run.c - runs a statically linked RV64 program on the device's compute units, without a driver. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hw/petrel_regs.h>

#include "hw-run-trace.h"
#include "sim.h"
#include "umd-text.h"
#include "umd-tool-env.h"
#include "umd-tool.h"

enum { TRAP_EXIT = 128, FILE_MAX_B = 1 << 30 };
/*
 * Causes of RISC-V's privileged manual, and two of its numbers for custom use. There is no address translation, so where nothing is
 * mapped is an access fault: page faults are for page tables.
 */
enum { CAUSE_FETCH_MISALIGNED = 0, CAUSE_FETCH_ACCESS, CAUSE_ILLEGAL, CAUSE_BREAKPOINT, CAUSE_LOAD_MISALIGNED, CAUSE_LOAD_ACCESS,
       CAUSE_STORE_MISALIGNED, CAUSE_STORE_ACCESS, CAUSE_ECALL, CAUSE_TRAP = 24, CAUSE_BARRIER };
#define POLL_CYCLES 65536u
#define HOST_PUTCHAR 0x0101u        /* device 1, command 1 */

struct options {
    int functional, base, trace;
    const char *lanes, *memory, *limit, *signature;
    uint64_t lane_count, memory_MiB, max_instructions;
};

struct run {
    const struct options *o;
    const char *path;
    uint8_t *image;
    size_t image_B;
    struct sim *sim;
    struct sim_symbols *symbols;
    struct sim_program program;
    uint64_t tohost_va;         /* 0: the program has none */
    uint64_t value[SIM_LANES_MAX];
    bool ended[SIM_LANES_MAX], told[SIM_LANES_MAX]; /* told: by tohost, whose value then counts */
    uint32_t first, count;      /* lanes that run */
    struct trace trace;
};
/* Lanes that run side by side: one warp. Each warp's code comes out of the memory of its first lane. */
#define TOGETHER 32u

static int say_error(const struct run *r, const struct sim_error *e)
{
    tool_say("%s: %s", r->path, e->text);
    return e->status;
}

static void on_exit_value(void *observer, uint64_t item, uint64_t a0)
{
    struct run *r = observer;

    if (!r->told[r->first + item])
        r->value[r->first + item] = a0;
    r->ended[r->first + item] = true;
}

static void on_trace(void *observer, const struct hw_cu_trace *t)
{
    trace_print(&((struct run *)observer)->trace, t);
}

/* ---- The file ---- */

static bool read_all(struct run *r, int fd)
{
    size_t done = 0;

    while (done < r->image_B) {
        ssize_t n = read(fd, r->image + done, r->image_B - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            tool_say("%s cannot be read: %s", r->path, n < 0 ? strerror(errno) : "it has become shorter");
            return false;
        }
        done += (size_t)n;
    }
    return true;
}

static bool read_file(struct run *r)
{
    struct stat st;
    int fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    bool ok = false;

    if (fd < 0 || fstat(fd, &st) != 0)
        tool_say("%s cannot be read: %s", r->path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        tool_say("%s cannot be read: it is no regular file", r->path);
    else if (st.st_size > FILE_MAX_B)
        tool_say("%s cannot be read: it has more than %d MiB", r->path, FILE_MAX_B >> 20);
    else if (!(r->image = malloc(st.st_size ? (size_t)st.st_size : 1)))
        tool_say("%s cannot be read: %s", r->path, strerror(ENOMEM));
    else {
        r->image_B = (size_t)st.st_size;
        ok = read_all(r, fd);
    }
    if (fd >= 0)
        close(fd);
    return ok;
}

/* ---- Traps ---- */

static uint32_t by_access(uint32_t access, uint32_t exec, uint32_t load, uint32_t store)
{
    return access == PETREL_ACCESS_EXEC ? exec : access == PETREL_ACCESS_READ ? load : store;
}

/* The cause's number; *text_out is its name. UINT32_MAX: no trap, the model could not go on. */
static uint32_t cause_of(const struct hw_cu_fault *f, const char **text_out)
{
    uint32_t access = PETREL_FAULT_INFO_ACCESS(f->info);
    static const char *const names[] = {
        [CAUSE_FETCH_MISALIGNED] = "misaligned instruction address", [CAUSE_FETCH_ACCESS] = "instruction access fault", [CAUSE_ILLEGAL] = "illegal instruction",
        [CAUSE_BREAKPOINT] = "breakpoint", [CAUSE_LOAD_MISALIGNED] = "misaligned load", [CAUSE_LOAD_ACCESS] = "load access fault",
        [CAUSE_STORE_MISALIGNED] = "misaligned store or atomic", [CAUSE_STORE_ACCESS] = "store access fault", [CAUSE_ECALL] = "environment call",
        [CAUSE_TRAP] = "trap instruction", [CAUSE_BARRIER] = "barrier that cannot be met",
    };
    uint32_t cause;

    switch (f->fault) {
    case PETREL_FAULT_PAGE: case PETREL_FAULT_ACCESS: cause = by_access(access, CAUSE_FETCH_ACCESS, CAUSE_LOAD_ACCESS, CAUSE_STORE_ACCESS); break;
    case PETREL_FAULT_MISALIGNED: cause = by_access(access, CAUSE_FETCH_MISALIGNED, CAUSE_LOAD_MISALIGNED, CAUSE_STORE_MISALIGNED); break;
    case PETREL_FAULT_ILLEGAL: cause = CAUSE_ILLEGAL; break;
    case PETREL_FAULT_TRAP:
        cause = f->data == PETREL_TRAP_EBREAK ? CAUSE_BREAKPOINT : f->data == PETREL_TRAP_ECALL ? CAUSE_ECALL :
                f->data == PETREL_TRAP_BARRIER ? CAUSE_BARRIER : CAUSE_TRAP;
        break;
    default: return UINT32_MAX;
    }
    *text_out = names[cause];
    return cause;
}

/* "0x80000128 <test_7+0x10> rv.S:31", as far as it is known. */
static const char *place_text(const struct run *r, uint64_t pc, char *out, size_t out_B)
{
    struct sim_location at;
    int n = snprintf(out, out_B, "0x%" PRIx64, pc);

    sim_locate(r->symbols, pc, &at);
    if (at.function[0])
        n += snprintf(out + n, out_B - (size_t)n, " <%s+0x%" PRIx64 ">", at.function, at.offset);
    if (at.file[0])
        snprintf(out + n, out_B - (size_t)n, " %s:%d", at.file, at.line);
    return out;
}

static int say_trap(const struct run *r, const struct hw_cu_fault *f)
{
    char place[600], other[600], text[64], what[640] = "";
    const char *name = NULL;
    uint32_t cause = cause_of(f, &name);
    unsigned item = r->first + PETREL_FAULT_INFO_LANE(f->info);

    if (cause == UINT32_MAX) {
        tool_say("%s cannot go on: %s", r->path, f->fault == PETREL_FAULT_HOST_MEMORY ? "no memory for the decoded code" : "the lanes do not fit on a compute unit");
        return EXIT_ENVIRONMENT;
    }
    if (cause == CAUSE_ILLEGAL) {
        sim_disasm((uint32_t)f->data, f->pc, text, sizeof(text));
        snprintf(what, sizeof(what), ": 0x%0*" PRIx64 " %s", (f->data & 3) == 3 ? 8 : 4, f->data, text);
    }
    if (cause == CAUSE_TRAP)
        snprintf(what, sizeof(what), ": code %" PRIu64, f->data);
    else if (cause == CAUSE_ECALL)
        snprintf(what, sizeof(what), ": only exit (a7 = 93) is served");
    else if (cause == CAUSE_BARRIER && f->va)
        snprintf(what, sizeof(what), ": others wait at %s", place_text(r, f->va, other, sizeof(other)));
    else if (f->fault == PETREL_FAULT_PAGE)
        snprintf(what, sizeof(what), ": nothing is mapped at 0x%" PRIx64, f->va);
    else if (cause != CAUSE_ILLEGAL && f->fault != PETREL_FAULT_TRAP)
        snprintf(what, sizeof(what), ": address 0x%" PRIx64, f->va);
    tool_say("%s (cause %u) at %s lane %u%s", name, cause, place_text(r, f->pc, place, sizeof(place)), item, what);
    return TRAP_EXIT + (int)cause;
}

/* ---- Running ---- */

/*
 * Programs for testbenches talk by the word `tohost`: bits 63:48 are a device and its command. An odd value for device 0 is the end.
 * A character for the console is printed if it is the first lane's. The word is zeroed then, so the program goes on; so it is for
 * devices that are not there. System calls, device 0's even values, are not served.
 */
static void read_host_word(struct run *r, uint32_t item)
{
    void *at = sim_host(r->sim, item, r->tohost_va, 8);
    uint64_t v = 0;

    if (!at || r->told[item])
        return;
    memcpy(&v, at, sizeof(v));
    if (v >> 48) {
        memset(at, 0, sizeof(v));
        if (v >> 48 == HOST_PUTCHAR && !item)
            putchar((int)(v & 0xff));
    } else if (v & 1) {
        r->value[item] = v >> 1;
        r->told[item] = r->ended[item] = true;
    }
}

/* True: all lanes have ended, in one way or another. */
static bool all_ended(struct run *r)
{
    bool all = true;

    for (uint32_t i = 0; i < r->count; i++) {
        if (r->tohost_va)
            read_host_word(r, r->first + i);
        all &= r->ended[r->first + i];
    }
    fflush(stdout);
    return all;
}

static int exit_status(const struct run *r)
{
    for (uint32_t i = 0; i < r->o->lane_count; i++)
        if (r->value[i] & 0xff)
            return (int)(r->value[i] & 0xff);
    return EXIT_DONE;
}

static int execute(struct run *r)
{
    struct petrel_dispatch d = { .entry_va = r->program.entry, .grid = { 1, 1, 1 }, .block = { r->count, 1, 1 },
                                 .code_va = r->program.code_va, .code_B = r->program.code_B };
    uint64_t step = r->tohost_va || r->o->max_instructions ? POLL_CYCLES : UINT64_MAX;
    struct hw_cu_counters before, counters;
    struct hw_cu_fault fault;
    enum sim_state state;

    sim_counters(r->sim, &before);
    if (!sim_start(r->sim, &d, &fault))
        return say_trap(r, &fault);
    while ((state = sim_run(r->sim, step, &fault)) == SIM_RUNNING) {
        sim_counters(r->sim, &counters);
        if (all_ended(r)) {
            sim_stop(r->sim);
            break;
        }
        if (r->o->max_instructions && counters.warp_instr - before.warp_instr >= r->o->max_instructions) {
            sim_stop(r->sim);
            tool_say("%s has not ended after %" PRIu64 " instructions", r->path, counters.warp_instr - before.warp_instr);
            return EXIT_ENVIRONMENT;
        }
    }
    /* What tohost says counts though nobody has looked at it before. A trap behind the end of all lanes is no matter. */
    return !all_ended(r) && state == SIM_FAULT ? say_trap(r, &fault) : EXIT_DONE;
}

/* One warp after the other, until one of them does not end as it should. */
static int execute_all(struct run *r)
{
    int status = EXIT_DONE;

    for (r->first = 0; !status && r->first < r->o->lane_count; r->first += TOGETHER) {
        r->count = (uint32_t)r->o->lane_count - r->first < TOGETHER ? (uint32_t)r->o->lane_count - r->first : TOGETHER;
        if (r->first)
            sim_set_first(r->sim, r->first);
        status = execute(r);
    }
    return status ? status : exit_status(r);
}

/* What lies between begin_signature and end_signature of the first lane, a word of 32 bits a line. */
static int write_signature(struct run *r)
{
    uint64_t begin, end;
    const uint8_t *at;
    bool ok;

    if (!sim_symbol(r->symbols, "begin_signature", &begin) || !sim_symbol(r->symbols, "end_signature", &end)) {
        tool_say("%s has no signature: the symbols begin_signature and end_signature are not there", r->path);
        return EXIT_ENVIRONMENT;
    }
    at = end >= begin ? sim_host(r->sim, 0, begin, end - begin) : NULL;
    if (!at) {
        tool_say("%s has no signature: begin_signature is 0x%" PRIx64 " and end_signature 0x%" PRIx64 ", %s", r->path, begin, end,
                 end < begin ? "the wrong way round" : "not all of which is mapped");
        return EXIT_ENVIRONMENT;
    }
    FILE *f = fopen(r->o->signature, "w");
    ok = f != NULL;
    for (uint64_t i = 0; ok && i + 4 <= end - begin; i += 4) {
        uint32_t word;
        memcpy(&word, at + i, sizeof(word));
        ok = fprintf(f, "%08" PRIx32 "\n", word) > 0;
    }
    if (f && fclose(f) != 0)
        ok = false;
    if (!ok)
        tool_say("%s cannot be written: %s", r->o->signature, strerror(errno));
    return ok ? EXIT_DONE : EXIT_ENVIRONMENT;
}

static int run_program(struct run *r)
{
    const struct sim_config config = { .lanes = (uint32_t)r->o->lane_count, .images = r->o->lane_count > 1, .bare = true, .units = 1,
                                       .functional = r->o->functional, .portable = r->o->base, .on_exit = on_exit_value, .on_trace = r->o->trace ? on_trace : NULL,
                                       .observer = r };
    struct sim_error error;

    if (!sim_create(&config, &r->sim, &error) || !sim_load(r->sim, r->image, r->image_B, r->o->memory_MiB << 20, &r->program, &error))
        return say_error(r, &error);
    sim_set_stack(r->sim, r->program.stack_va);
    r->symbols = sim_symbols_open(r->image, r->image_B);
    r->trace.symbols = r->symbols;
    (void)sim_symbol(r->symbols, "tohost", &r->tohost_va);
    int status = execute_all(r);
    int written = r->o->signature ? write_signature(r) : EXIT_DONE;
    return status ? status : written;
}

static int run(const struct tool_line *line, void *options)
{
    static struct run r;
    struct options *o = options;
    int status = EXIT_ENVIRONMENT;

    if (line->count != 1)
        return tool_usage(line->count ? "one program at a time" : "no program is named");
    if (!tool_number("lanes", o->lanes, 1, SIM_LANES_MAX, &o->lane_count) || !tool_number("memory", o->memory, 1, 1u << 20, &o->memory_MiB) ||
        (o->limit && !tool_number("max-instructions", o->limit, 1, UINT64_MAX, &o->max_instructions)))
        return EXIT_USAGE;
    r.o = o;
    r.path = line->words[0];
    if (read_file(&r))
        status = run_program(&r);
    sim_symbols_close(r.symbols);
    sim_destroy(r.sim);
    free(r.image);
    return status;
}

static const struct tool hw_run = {
    .words = "[OPTION...] FILE.elf", .text = "runs a statically linked RV64 program on the device's compute units, without a driver",
    .help = "The program is put at the addresses in its program headers and begins at its entry point, with a stack, and zeros for arguments.\n"
            "It ends by ecall with a7 = 93 or by returning, with its exit status in a0, or by an odd value in the word tohost, twice its exit\n"
            "status and 1, which counts before the others; what it writes there for the console is printed. Programs for bare\n"
            "machines run too: CSRs of privileged modes read zero and ignore writes, mret goes to mepc. There are no trap handlers,\n"
            "no interrupts and no page tables: tests of these (rv64mi, rv64si, -v-) are not for this tool. See docs/isa.md.\n"
            "With several lanes each runs the program in memory of its own; the exit status is the first that is not 0.\n"
            "\nExamples:\n"
            "  hw-run hello.elf\n"
            "  hw-run --lanes 32 --functional rv64ui-p-add\n"
            "\nExit status: the program's (modulo 256); 128 + cause after a trap, which is told in a line with its place (causes of\n"
            "RISC-V, 24 the trap instruction, 25 a barrier that cannot be met, with both places); 1 usage; 2 the program could not be\n"
            "read, loaded or ended.\n",
};

const enum tool_env tool_env = TOOL_ENV_TAKE_FILES;

int main(int argc, char **argv)
{
    struct options o = { .lanes = "1", .memory = "128" };
    struct poptOption table[] = {
        { "lanes", '\0', POPT_ARG_STRING, &o.lanes, 0, "so many lanes run the program, 1 to 1024 (default: 1)", "N" },
        { "functional", '\0', POPT_ARG_NONE, &o.functional, 0, "without timing: faster, and cycle counts instructions", NULL },
        { "base", '\0', POPT_ARG_NONE, &o.base, 0, "with the handlers for any x86-64, not the host's best", NULL },
        { "trace", '\0', POPT_ARG_NONE, &o.trace, 0, "print each instruction: lanes, address, place, bits, text, result", NULL },
        { "memory", '\0', POPT_ARG_STRING, &o.memory, 0, "memory from the program's first address on, in MiB (default: 128)", "MIB" },
        { "max-instructions", '\0', POPT_ARG_STRING, &o.limit, 0, "give up after so many warp instructions (default: never)", "N" },
        { "signature", '\0', POPT_ARG_STRING, &o.signature, 0, "write the words between begin_signature and end_signature there", "FILE" },
        POPT_TABLEEND
    };

    return tool_main("hw-run", &hw_run, argc, argv, table, run, &o);
}
