/* SPDX-License-Identifier: MIT */
/* symbols.c - unwinds the saved stack with call frame information and names addresses, with libdwfl. */
#include "symbols.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot.h"
#include "umd-text.h"

struct stack {
    uint64_t start;             /* of bytes */
    uint8_t *bytes;
    size_t size_B;
};

struct work {
    const struct crash *c;
    struct crash_symbols *out;
    struct stack stack;
    char *debug_path;           /* for libdwfl, ':' between */
    Dwfl *dwfl;
};

/* ---- The snapshot's parts ---- */

static bool read_stack(const struct crash *c, struct stack *s)
{
    const struct crash_section *lines = crash_section(c, "stack");

    if (!lines->count)
        return true;
    s->start = strtoull(lines->lines[0], NULL, 16);
    s->size_B = UMD_CRASH_STACK_B + 4096;
    s->bytes = calloc(1, s->size_B);
    if (!s->bytes)
        return false;
    for (size_t i = 0; i < lines->count; i++) {
        char *end;
        uint64_t at = strtoull(lines->lines[i], &end, 16);
        if (end[0] == ':' && end[1] == ' ' && at >= s->start && at - s->start <= s->size_B - 32)
            crash_bytes(end + 2, "", s->bytes + (at - s->start), 32);
    }
    return true;
}

static uint64_t reg(const struct crash *c, const char *name)
{
    const struct crash_section *s = crash_section(c, "registers");
    size_t n = strlen(name);

    for (size_t i = 0; i < s->count; i++)
        if (strncmp(s->lines[i], name, n) == 0 && s->lines[i][n] == '=')
            return strtoull(s->lines[i] + n + 1, NULL, 0);
    return 0;
}

/* A line of the maps: "FROM-TO rights offset device inode NAME". */
struct mapping {
    uint64_t from, to;
    uint64_t last;              /* end of the last of those behind it, without another between, that are of the same name */
    const char *name;           /* NULL: none */
};

static int by_from(const void *a, const void *b)
{
    const struct mapping *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

static bool same_name(const char *a, const char *b) { return a && b && strcmp(a, b) == 0; }

/* In order of addresses. NULL: no memory. */
static struct mapping *read_maps(const struct crash *c, size_t *count_out)
{
    const struct crash_section *s = crash_section(c, "maps");
    struct mapping *all = calloc(s->count + 1, sizeof(*all));

    *count_out = s->count;
    for (size_t i = 0; all && i < s->count; i++) {
        char *end;
        all[i].from = strtoull(s->lines[i], &end, 16);
        all[i].to = *end == '-' ? strtoull(end + 1, NULL, 16) : 0;
        all[i].name = strchr(s->lines[i], '/');
    }
    if (all && s->count)
        qsort(all, s->count, sizeof(*all), by_from);
    for (size_t i = s->count; all && i-- > 0;)
        all[i].last = i + 1 < s->count && same_name(all[i].name, all[i + 1].name) ? all[i + 1].last : all[i].to;
    return all;
}

/* The end of the last mapping of the file that begins at start. */
static uint64_t end_of(const struct mapping *all, size_t count, uint64_t start, const char *path)
{
    const struct mapping key = { .from = start }, *found = count ? bsearch(&key, all, count, sizeof(*all), by_from) : NULL;

    if (!found)
        return start + 4096;
    return found + 1 < all + count && same_name(found[1].name, path) ? found[1].last : found->to;
}

static bool read_modules(struct work *w)
{
    const struct crash_section *s = crash_section(w->c, "modules");
    size_t count;
    struct mapping *maps = read_maps(w->c, &count);

    w->out->modules = calloc(s->count ? s->count : 1, sizeof(*w->out->modules));
    for (size_t i = 0; w->out->modules && maps && i < s->count; i++) {
        struct crash_module *m = &w->out->modules[w->out->module_count++];
        m->start = crash_u64(s->lines[i], "start");
        crash_text(s->lines[i], "build_id", m->build_id, sizeof(m->build_id));
        crash_text(s->lines[i], "path", m->path, sizeof(m->path));
        m->end = end_of(maps, count, m->start, m->path);
    }
    free(maps);
    return w->out->modules && maps;
}

/* ---- Files ---- */

/* The build-id of an open ELF file in hex; "": it has none, or is none. */
static void build_id_of(int fd, char *out, size_t size)
{
    const void *id;

    out[0] = '\0';
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    ssize_t n = elf ? dwelf_elf_gnu_build_id(elf, &id) : -1;
    for (ssize_t i = 0; i < n && 2 * (size_t)i + 3 <= size; i++)
        snprintf(out + 2 * i, size - 2 * (size_t)i, "%02x", ((const uint8_t *)id)[i]);
    elf_end(elf);
}

static bool has_build_id(const char *path, const char *want)
{
    char got[64];

    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* the snapshot names it: it may be a pipe by now */
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    build_id_of(fd, got, sizeof(got));
    close(fd);
    return *want && strcmp(got, want) == 0;
}

/* A debug file of the build-id in one of the folders of a ':' list. */
static bool find_by_build_id(const char *dirs, const char *id, char *path, size_t size)
{
    if (strlen(id) < 4)
        return false;
    for (const char *d = dirs; *d;) {
        size_t n = strcspn(d, ":");
        if (n && *d == '/' && snprintf(path, size, "%.*s/.build-id/%.2s/%s.debug", (int)n, d, id, id + 2) < (int)size && has_build_id(path, id))
            return true;
        d += n + (d[n] == ':');
    }
    return false;
}

static void report(struct work *w, struct crash_module *m)
{
    char *deleted = strstr(m->path, " (deleted)");

    if (deleted)
        *deleted = '\0';
    m->state = CRASH_MODULE_FOUND;
    if (has_build_id(m->path, m->build_id))
        snprintf(m->used, sizeof(m->used), "%s", m->path);
    else if (!find_by_build_id(w->debug_path, m->build_id, m->used, sizeof(m->used))) {
        m->used[0] = '\0';
        m->state = access(m->path, R_OK) == 0 ? CRASH_MODULE_OTHER_BUILD : CRASH_MODULE_MISSING;
        return; /* names from another build would be wrong ones */
    }
    (void)dwfl_report_elf(w->dwfl, m->path, m->used, -1, m->start, false);
}

/* ---- Unwinding ---- */

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
    (void)dwfl;
    if (*thread_arg)
        return 0;
    *thread_arg = arg;
    return 1;
}

static bool memory_read(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *result, void *arg)
{
    const struct stack *s = &((const struct work *)arg)->stack;

    (void)dwfl;
    if (!s->bytes || s->size_B < sizeof(*result) || addr < s->start || addr - s->start > s->size_B - sizeof(*result))
        return false;
    memcpy(result, s->bytes + (addr - s->start), sizeof(*result));
    return true;
}

/* In DWARF's order for x86-64 (psABI, figure 3.36). */
static bool set_registers(Dwfl_Thread *thread, void *arg)
{
    static const char *const names[] = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
                                         "r14", "r15", "rip" };
    const struct work *w = arg;
    Dwarf_Word values[17];

    for (size_t i = 0; i < 17; i++)
        values[i] = reg(w->c, names[i]);
    dwfl_thread_state_register_pc(thread, values[16]);
    return dwfl_thread_state_registers(thread, 0, 17, values);
}

/* Unit by unit: clang writes no .debug_aranges, which libdwfl's own search by address needs. */
static void find_line(Dwfl_Module *mod, uint64_t lookup, struct crash_frame *f)
{
    Dwarf_Addr bias;

    for (Dwarf_Die *unit = NULL; (unit = dwfl_module_nextcu(mod, unit, &bias));) {
        if (dwarf_haspc(unit, lookup - bias) != 1)
            continue;
        Dwarf_Line *line = dwarf_getsrc_die(unit, lookup - bias);
        const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
        if (!file || dwarf_lineno(line, &f->line) != 0)
            continue;
        snprintf(f->file, sizeof(f->file), "%s", file);
        text_clean(f->file);
        return;
    }
}

static void name_frame(struct work *w, struct crash_frame *f, uint64_t lookup)
{
    GElf_Off offset;
    GElf_Sym sym;

    f->offset = f->pc;
    for (size_t i = 0; i < w->out->module_count; i++) {
        const struct crash_module *m = &w->out->modules[i];
        if (f->pc < m->start || f->pc >= m->end)
            continue;
        snprintf(f->module, sizeof(f->module), "%.255s", strrchr(m->path, '/') ? strrchr(m->path, '/') + 1 : m->path);
        f->offset = f->pc - m->start;
    }
    Dwfl_Module *mod = dwfl_addrmodule(w->dwfl, lookup);
    if (!mod)
        return;
    const char *name = dwfl_module_addrinfo(mod, lookup, &offset, &sym, NULL, NULL, NULL);
    if (name)
        snprintf(f->function, sizeof(f->function), "%s", name);
    text_clean(f->function); /* the ELF file is one that the snapshot names */
    find_line(mod, lookup, f);
}

/* A return address points behind the call, which may be another line's. */
static void add_frame(struct work *w, uint64_t pc, bool exact)
{
    if (w->out->frame_count == CRASH_FRAMES)
        return;
    struct crash_frame *f = &w->out->frames[w->out->frame_count++];
    *f = (struct crash_frame){ .pc = pc };
    name_frame(w, f, exact ? pc : pc - 1);
}

static int on_frame(Dwfl_Frame *frame, void *arg)
{
    struct work *w = arg;
    Dwarf_Addr pc;
    bool exact = false;

    if (!dwfl_frame_pc(frame, &pc, &exact))
        return DWARF_CB_ABORT;
    add_frame(w, pc, exact || !w->out->frame_count);
    return w->out->frame_count == CRASH_FRAMES ? DWARF_CB_ABORT : DWARF_CB_OK;
}

static void unwind(struct work *w)
{
    static const Dwfl_Thread_Callbacks callbacks = { .next_thread = next_thread, .memory_read = memory_read, .set_initial_registers = set_registers };
    const struct crash_section *raw = crash_section(w->c, "backtrace");
    char arch[32];

    crash_text(crash_line(w->c, "crash"), "arch", arch, sizeof(arch));
    if (strcmp(arch, "x86_64") == 0 && w->stack.bytes && dwfl_attach_state(w->dwfl, NULL, 1, &callbacks, w))
        (void)dwfl_getthread_frames(w->dwfl, 1, on_frame, w);
    w->out->by_frame_information = w->out->frame_count > 1;
    if (w->out->frame_count >= raw->count)
        return;
    /* A call through a bad pointer, or code without call frame information: the frame pointers knew more. */
    if (w->out->frame_count > 1 && w->out->frame_count + 1 >= raw->count)
        return;
    w->out->frame_count = 0;
    w->out->by_frame_information = false;
    for (size_t i = 0; i < raw->count; i++)
        add_frame(w, strtoull(raw->lines[i], NULL, 16), i == 0);
}

/* Those given, those of the installation this tool is part of, the system's. */
static char *join_dirs(const char *const *dirs)
{
    char own[PATH_MAX] = "";
    size_t n = sizeof(own) + 64;

    ssize_t got = readlink("/proc/self/exe", own, sizeof(own) - 1);
    own[got > 0 ? got : 0] = '\0';
    for (int up = 0; up < 2 && strrchr(own, '/'); up++) /* bin/umd-crash */
        *strrchr(own, '/') = '\0';
    for (size_t i = 0; dirs && dirs[i]; i++)
        n += strlen(dirs[i]) + 1;
    char *all = malloc(n);
    if (!all)
        return NULL;
    all[0] = '\0';
    for (size_t i = 0; dirs && dirs[i]; i++) {
        strcat(all, dirs[i]);
        strcat(all, ":");
    }
    strcat(all, own);
    return strcat(all, "/lib/debug:/usr/lib/debug");
}

bool crash_symbols_find(const struct crash *c, const char *const *debug_dirs, struct crash_symbols *out)
{
    struct work w = { .c = c, .out = out };
    char *path = NULL;
    Dwfl_Callbacks callbacks = { .find_elf = dwfl_build_id_find_elf, .find_debuginfo = dwfl_standard_find_debuginfo, .debuginfo_path = &path };

    *out = (struct crash_symbols){ 0 };
    unsetenv("DEBUGINFOD_URLS"); /* what is on this machine */
    w.debug_path = join_dirs(debug_dirs);
    size_t n = w.debug_path ? strlen(w.debug_path) : 0;
    path = w.debug_path ? malloc(n + 16) : NULL;
    if (path)
        snprintf(path, n + 16, "+:.debug:%s", w.debug_path);
    elf_version(EV_CURRENT);
    w.dwfl = path ? dwfl_begin(&callbacks) : NULL;
    bool ok = w.dwfl && read_stack(c, &w.stack) && read_modules(&w);
    if (ok) {
        dwfl_report_begin(w.dwfl);
        for (size_t i = 0; i < out->module_count; i++)
            report(&w, &out->modules[i]);
        dwfl_report_end(w.dwfl, NULL, NULL);
        unwind(&w);
    }
    if (w.dwfl)
        dwfl_end(w.dwfl);
    free(w.stack.bytes);
    free(w.debug_path);
    free(path);
    return ok;
}

void crash_symbols_free(struct crash_symbols *s)
{
    free(s->modules);
    *s = (struct crash_symbols){ 0 };
}
