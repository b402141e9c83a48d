/* SPDX-License-Identifier: MIT */
/* snapshot.c - what a crash snapshot holds: its sections, one after another, the surest first. */
#include "snapshot_internal.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "emergency.h"
#include "log_ring.h"
#include "log_site.h"
#include "stamp.h"

#define FRAMES_MAX 64u
#define FRAME_B_MAX (1u << 20)      /* a frame larger than this is no frame */
#define STATES_MAX 64u
#define LOG_MAX 4096u               /* lines of all threads together */

/* ---- State of the layers ---- */

static struct {
    _Atomic(umd_state_fn) fn;       /* NULL: free; written last */
    _Atomic(bool) taken;
    const char *name;
    const void *arg;
} states[STATES_MAX];

bool umd_state_register(const char *name, umd_state_fn fn, const void *arg)
{
    for (uint32_t i = 0; i < STATES_MAX; i++) {
        bool free_place = false;
        if (!atomic_compare_exchange_strong(&states[i].taken, &free_place, true))
            continue;
        states[i].name = name;
        states[i].arg = arg;
        atomic_store(&states[i].fn, fn);
        return true;
    }
    return false;
}

void umd_state_unregister(umd_state_fn fn, const void *arg)
{
    for (uint32_t i = 0; i < STATES_MAX; i++) {
        if (atomic_load(&states[i].fn) != fn || states[i].arg != arg)
            continue;
        atomic_store(&states[i].fn, NULL);
        atomic_store(&states[i].taken, false);
        return;
    }
}

void umd_state_u64(struct umd_state_out *out, const char *key, uint64_t value) { umd_raw_kv_u64(out, key, value); }
void umd_state_i64(struct umd_state_out *out, const char *key, int64_t value) { umd_raw_kv_i64(out, key, value); }
void umd_state_text(struct umd_state_out *out, const char *key, const char *value) { umd_raw_kv_text(out, key, value); }

void umd_state_write(struct umd_state_out *o)
{
    for (uint32_t i = 0; i < STATES_MAX; i++) {
        umd_state_fn fn = atomic_load(&states[i].fn);
        if (!fn)
            continue;
        umd_raw_text(o, states[i].name);
        umd_raw_flush(o); /* this one may be the one that crashes */
        fn(o, states[i].arg);
        umd_raw_text(o, "\n");
    }
}

size_t umd_state_format(char *buf, size_t size)
{
    struct umd_state_out o = { .fd = -1, .buf = buf, .size = size };

    if (size)
        buf[0] = '\0';
    umd_state_write(&o);
    return o.used;
}

/* ---- Sections ---- */

/* How stamps of calls and log entries map to time. */
static struct umd_stamp_pair stamp_now;
static double stamp_slope;
static uint64_t ns_of(uint64_t stamp) { return umd_stamp_mono(stamp, stamp_now, stamp_slope); }

static char out_buf[16384], line[1024], peeked[1024];

static void section(struct umd_state_out *o, const char *name)
{
    umd_raw_text(o, "[");
    umd_raw_text(o, name);
    umd_raw_text(o, "]\n");
    umd_raw_flush(o); /* what comes may crash */
}

const char *umd_snapshot_signal_name(int sig)
{
    switch (sig) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    case SIGILL: return "SIGILL";
    case SIGABRT: return "SIGABRT";
    default: return "signal";
    }
}

static uint64_t clock_of(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void put_crash(struct umd_state_out *o, int sig, const siginfo_t *info)
{
    char name[16] = "";
    struct umd_diag_thread *t = umd_diag_thread_peek();

    umd_raw_text(o, UMD_CRASH_MAGIC "\n");
    section(o, "crash");
    umd_raw_text(o, "version=" PETREL_VERSION);
    umd_raw_kv_u64(o, "pid", (uint64_t)getpid());
    umd_raw_kv_u64(o, "tid", umd_diag_host_tid());
    prctl(PR_GET_NAME, name);
    umd_raw_kv_text(o, "thread", name);
    umd_raw_kv_text(o, "program", program_invocation_short_name);
    umd_raw_kv_i64(o, "signal", sig);
    umd_raw_kv_text(o, "name", umd_snapshot_signal_name(sig));
    umd_raw_kv_i64(o, "code", info->si_code);
    umd_raw_kv_hex(o, "address", info->si_code > 0 ? (uint64_t)(uintptr_t)info->si_addr : 0);
    if (info->si_code <= 0)
        umd_raw_kv_i64(o, "sender_pid", info->si_pid);
    umd_raw_kv_u64(o, "real_ns", clock_of(CLOCK_REALTIME));
    umd_raw_kv_u64(o, "mono_ns", clock_of(CLOCK_MONOTONIC));
    umd_raw_kv_u64(o, "stepped", umd_sys_stepped());
    umd_raw_kv_u64(o, "context", t ? t->context_id : 0);
    umd_raw_kv_u64(o, "depth", t ? t->depth : 0);
#if defined(__x86_64__)
    umd_raw_text(o, " arch=x86_64\n");
#else
    umd_raw_text(o, " arch=other\n");
#endif
}

/* Program counter, stack pointer, frame pointer. */
struct where { uint64_t pc, sp, fp; };

static struct where put_registers(struct umd_state_out *o, const ucontext_t *uc)
{
    struct where w = { 0 };

    section(o, "registers");
#if defined(__x86_64__)
    static const struct { const char *name; int at; } regs[] = {
        { "rip", REG_RIP }, { "rsp", REG_RSP }, { "rbp", REG_RBP }, { "rax", REG_RAX }, { "rbx", REG_RBX }, { "rcx", REG_RCX },
        { "rdx", REG_RDX }, { "rsi", REG_RSI }, { "rdi", REG_RDI }, { "r8", REG_R8 }, { "r9", REG_R9 }, { "r10", REG_R10 },
        { "r11", REG_R11 }, { "r12", REG_R12 }, { "r13", REG_R13 }, { "r14", REG_R14 }, { "r15", REG_R15 }, { "eflags", REG_EFL },
        { "err", REG_ERR }, { "trapno", REG_TRAPNO }, { "cr2", REG_CR2 },
    };
    for (size_t i = 0; i < sizeof(regs) / sizeof(regs[0]); i++) {
        umd_raw_text(o, regs[i].name);
        umd_raw_text(o, "=");
        umd_raw_hex(o, (uint64_t)uc->uc_mcontext.gregs[regs[i].at]);
        umd_raw_text(o, "\n");
    }
    w = (struct where){ (uint64_t)uc->uc_mcontext.gregs[REG_RIP], (uint64_t)uc->uc_mcontext.gregs[REG_RSP],
                        (uint64_t)uc->uc_mcontext.gregs[REG_RBP] };
#else
    (void)uc;
#endif
    return w;
}

/* Frame pointers rise towards the caller; a chain that does not, or cannot be read, has ended. */
static void put_backtrace(struct umd_state_out *o, struct where w)
{
    uint64_t frame[2];

    section(o, "backtrace");
    umd_raw_hex(o, w.pc);
    umd_raw_text(o, "\n");
    for (uint32_t i = 0; i < FRAMES_MAX && w.fp && w.fp % 8 == 0; i++) {
        if (!umd_peek(frame, (const void *)(uintptr_t)w.fp, sizeof(frame)) || !frame[1])
            break;
        umd_raw_hex(o, frame[1]);
        umd_raw_text(o, "\n");
        if (frame[0] <= w.fp || frame[0] - w.fp > FRAME_B_MAX)
            break;
        w.fp = frame[0];
    }
}

static void put_stack(struct umd_state_out *o, struct where w)
{
    static uint8_t piece[4096];
    static const uint8_t zeros[32];
    uint64_t at = w.sp > 128 ? (w.sp - 128) & ~31ull : 0; /* a leaf function uses what is below, too */
    const uint64_t end = at + UMD_CRASH_STACK_B;

    section(o, "stack");
    while (at && at < end) {
        size_t n = sizeof(piece) - at % sizeof(piece);
        if (!umd_peek(piece, (const void *)(uintptr_t)at, n)) {
            at += n; /* after an overflow the stack pointer stands below what there is */
            continue;
        }
        for (size_t i = 0; i < n; i += 32) {
            if (memcmp(piece + i, zeros, 32) == 0)
                continue;
            umd_raw_hex(o, at + i);
            umd_raw_text(o, ": ");
            umd_raw_hex_bytes(o, piece + i, 32);
            umd_raw_text(o, "\n");
        }
        at += n;
    }
}

/* ---- Maps and modules ---- */

/* Calls fn for each whole line of a file, ended, cut to the buffer's length. */
static void each_line(const char *path, void (*fn)(struct umd_state_out *o, const char *text), struct umd_state_out *o)
{
    static char chunk[4096];
    size_t used = 0;
    ssize_t n;

    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    while ((n = read(fd, chunk, sizeof(chunk))) > 0 || (n < 0 && errno == EINTR)) {
        for (ssize_t i = 0; i < n; i++) {
            if (chunk[i] != '\n') {
                if (used + 1 < sizeof(line))
                    line[used++] = chunk[i];
                continue;
            }
            line[used] = '\0';
            used = 0;
            fn(o, line);
        }
    }
    close(fd);
}

static void put_map(struct umd_state_out *o, const char *map)
{
    umd_raw_text(o, map);
    umd_raw_text(o, "\n");
}

static const char *hex_of(const char *s, uint64_t *v_out)
{
    uint64_t v = 0;

    for (;; s++) {
        if (*s >= '0' && *s <= '9')
            v = v * 16 + (uint64_t)(*s - '0');
        else if (*s >= 'a' && *s <= 'f')
            v = v * 16 + (uint64_t)(*s - 'a' + 10);
        else
            break;
    }
    *v_out = v;
    return s;
}

/* The build-id from the notes in memory, in hex. */
static void put_build_id(struct umd_state_out *o, uint64_t notes, uint64_t size_B)
{
    static uint8_t buf[2048];
    uint64_t n = size_B < sizeof(buf) ? size_B : sizeof(buf);
    ElfW(Nhdr) h;

    if (!umd_peek(buf, (const void *)(uintptr_t)notes, n))
        return;
    for (uint64_t at = 0; at + sizeof(h) <= n;) {
        memcpy(&h, buf + at, sizeof(h));
        uint64_t name = at + sizeof(h), desc = name + ((h.n_namesz + 3ull) & ~3ull);
        if (desc + h.n_descsz > n)
            return;
        if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && memcmp(buf + name, "GNU", 4) == 0) {
            umd_raw_hex_bytes(o, buf + desc, h.n_descsz);
            return;
        }
        at = desc + ((h.n_descsz + 3ull) & ~3ull);
    }
}

static void put_module(struct umd_state_out *o, const char *map)
{
    static ElfW(Phdr) ph[32];
    uint64_t start, end, offset, first = UINT64_MAX;
    ElfW(Ehdr) eh;

    const char *s = hex_of(map, &start);
    s = hex_of(s + (*s == '-'), &end);
    s = strchr(s, ' ');
    s = s ? strchr(s + 1, ' ') : NULL;
    if (!s)
        return;
    s = hex_of(s + 1, &offset);
    const char *path = strchr(s, '/');
    if (offset != 0 || !path || end - start < sizeof(eh) || !umd_peek(&eh, (const void *)(uintptr_t)start, sizeof(eh)) ||
        memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 || eh.e_phentsize != sizeof(ph[0]))
        return;
    size_t count = eh.e_phnum < 32 ? eh.e_phnum : 32;
    if (!umd_peek(ph, (const void *)(uintptr_t)(start + eh.e_phoff), count * sizeof(ph[0])))
        return;
    umd_raw_text(o, "start=");
    umd_raw_hex(o, start);
    umd_raw_text(o, " build_id=");
    for (size_t i = 0; i < count; i++)
        if (ph[i].p_type == PT_LOAD && ph[i].p_vaddr < first)
            first = ph[i].p_vaddr & ~4095ull;
    for (size_t i = 0; i < count; i++)
        if (ph[i].p_type == PT_NOTE)
            put_build_id(o, start + ph[i].p_vaddr - first, ph[i].p_filesz);
    umd_raw_kv_text(o, "path", path);
    umd_raw_text(o, "\n");
}

/* ---- What the process was at ---- */

static void put_emergency(struct umd_state_out *o)
{
    static struct umd_emergency_slot s;
    uint64_t next = umd_emergency_next_seq();

    section(o, "emergency");
    for (uint64_t seq = next > UMD_EMERGENCY_SLOTS ? next - UMD_EMERGENCY_SLOTS : 1; seq < next; seq++) {
        if (!umd_emergency_peek(seq, &s))
            continue;
        umd_raw_text(o, "seq=");
        umd_raw_u64(o, s.seq);
        umd_raw_kv_u64(o, "mono_ns", s.mono_ns);
        umd_raw_kv_u64(o, "real_ns", s.real_ns);
        umd_raw_kv_u64(o, "tid", s.tid);
        umd_raw_kv_u64(o, "level", s.level);
        umd_raw_kv_i64(o, "code", s.code);
        umd_raw_kv_u64(o, "context", s.context_id);
        umd_raw_kv_u64(o, "record_boot", s.record.boot);
        umd_raw_kv_u64(o, "record_pid", s.record.pid);
        umd_raw_kv_u64(o, "record_seq", s.record.seq);
        umd_raw_kv_text(o, "module", s.module);
        umd_raw_kv_text(o, "func", s.func);
        umd_raw_kv_text(o, "file", s.file);
        umd_raw_kv_u64(o, "line", s.line);
        umd_raw_kv_text(o, "message", s.message);
        umd_raw_text(o, "\n");
    }
}

static void kv_peeked(struct umd_state_out *o, const char *key, const char *from)
{
    umd_raw_kv_text(o, key, umd_peek_text(peeked, sizeof(peeked), from) ? peeked : "(unreadable)");
}

struct caller { struct umd_state_out *o; uint32_t tid; };

static void put_call(void *arg, uint64_t seq, const struct umd_call_entry *e)
{
    const struct caller *c = arg;
    struct umd_state_out *o = c->o;
    struct umd_api_site site;

    umd_raw_text(o, "tid=");
    umd_raw_u64(o, c->tid);
    umd_raw_kv_u64(o, "seq", seq);
    umd_raw_kv_u64(o, "start_ns", ns_of(e->start_stamp));
    umd_raw_kv_u64(o, "end_ns", e->end_stamp ? ns_of(e->end_stamp) : 0);
    umd_raw_kv_i64(o, "code", e->code);
    if (!umd_peek(&site, e->site, sizeof(site)))
        site = (struct umd_api_site){ 0 };
    kv_peeked(o, "name", site.name);
    kv_peeked(o, "fmt", site.args_fmt);
    umd_raw_text(o, " args=");
    umd_raw_hex_bytes(o, e->args, e->args_B < sizeof(e->args) ? e->args_B : sizeof(e->args));
    umd_raw_text(o, "\n");
}

static void put_calls(struct umd_state_out *o)
{
    static struct umd_diag_thread t; /* a copy: the thread may end while it is looked at */
    struct umd_diag_thread *self = umd_diag_thread_peek();

    section(o, "calls");
    if (self)
        umd_callring_each(self, put_call, &(struct caller){ o, self->host_tid });
    for (uint32_t i = 0; i < UMD_DIAG_THREADS; i++) {
        const struct umd_diag_thread *other = umd_diag_thread_at(i);
        if (other && other != self && umd_peek(&t, other, sizeof(t)))
            umd_callring_each(&t, put_call, &(struct caller){ o, t.host_tid });
    }
}

static void put_site(struct umd_state_out *o, const umdLogSite *from, const uint8_t *args, size_t args_B)
{
    umdLogModule module;
    umdLogSite site;

    if (!umd_peek(&site, from, sizeof(site)))
        return;
    umd_raw_kv_u64(o, "level", site.level);
    kv_peeked(o, "module", umd_peek(&module, site.module, sizeof(module)) ? module.name : NULL);
    kv_peeked(o, "func", site.func);
    kv_peeked(o, "file", site.file);
    umd_raw_kv_u64(o, "line", site.line);
    kv_peeked(o, "fmt", site.fmt);
    umd_raw_text(o, " args=");
    umd_raw_hex_bytes(o, args, args_B);
}

static void put_text(struct umd_state_out *o, const uint8_t *payload, size_t size_B)
{
    static const char *const keys[] = { "module", "func", "file", "trace", "message" };
    struct umd_log_entry_text head;
    const char *s = (const char *)payload + sizeof(head), *end = (const char *)payload + size_B;

    if (size_B < sizeof(head))
        return;
    memcpy(&head, payload, sizeof(head));
    umd_raw_kv_u64(o, "context", head.context_id);
    umd_raw_kv_u64(o, "level", head.level);
    umd_raw_kv_i64(o, "code", head.code);
    umd_raw_kv_u64(o, "line", head.line);
    umd_raw_kv_u64(o, "record_boot", head.record.boot);
    umd_raw_kv_u64(o, "record_pid", head.record.pid);
    umd_raw_kv_u64(o, "record_seq", head.record.seq);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && s < end && memchr(s, '\0', (size_t)(end - s)); i++) {
        umd_raw_kv_text(o, keys[i], s);
        s += strlen(s) + 1;
    }
}

static void put_entry(void *arg, uint32_t tid, bool taken, const struct umd_log_entry *e)
{
    struct umd_state_out *o = arg;

    umd_raw_text(o, "mono_ns=");
    umd_raw_u64(o, ns_of(e->stamp));
    umd_raw_kv_u64(o, "tid", tid);
    umd_raw_kv_u64(o, "depth", e->depth);
    umd_raw_kv_u64(o, "taken", taken);
    if (e->site_id == UMD_ENTRY_TEXT) {
        put_text(o, e->payload, e->payload_B);
    } else {
        umd_raw_kv_u64(o, "context", e->context_id);
        put_site(o, umd_log_site_find(e->site_id), e->payload, e->payload_B);
    }
    umd_raw_text(o, "\n");
}

int umd_snapshot_write(int fd, int sig, const siginfo_t *info, const void *ucontext)
{
    struct umd_state_out o = { .fd = fd, .buf = out_buf, .size = sizeof(out_buf) };

    stamp_now = umd_stamp_now(&stamp_slope);
    put_crash(&o, sig, info);
    struct where w = put_registers(&o, ucontext);
    put_backtrace(&o, w);
    section(&o, "maps");
    each_line("/proc/self/maps", put_map, &o);
    section(&o, "modules");
    each_line("/proc/self/maps", put_module, &o);
    put_stack(&o, w);
    put_emergency(&o);
    put_calls(&o);
    section(&o, "log");
    umd_log_ring_each_last(umd_peek, put_entry, &o, LOG_MAX);
    section(&o, "state");
    umd_state_write(&o);
    section(&o, "end");
    umd_raw_flush(&o);
    return o.failed;
}
