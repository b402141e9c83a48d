/* SPDX-License-Identifier: MIT */
/* campaign.c - random API programs over random faults in stepped mode; one seed is one run that can be played again. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <umd/umd.h>
#include <umd/umd_log.h>

#include "fault_plan.h"
#include "record.h"
#include "sys.h"

/*
 * Invariants, checked for every seed:
 *   1 every wait ends (an alarm of the host names the seed otherwise)
 *   2 no success for unfinished work: after a successful wait the memory is what the submitted work makes of it
 *   3 memory equals the host reference, word by word
 *   4 nothing leaks: device memory after the context is gone, host memory after shutdown; no record is swallowed
 *   5 with faults off, a fresh context works
 * and the cause reported is one that the injected fault can have.
 */
enum { WORDS = 1024, BUFFERS = 5, STREAMS = 3, OPS = 60, WAIT_NS = 2000000000 };

struct fault_case {
    int site;              /* enum umd_fault_site; NONE: no fault */
    const char *times;     /* before the action */
    int nth_max;
};

enum { NONE = -1 };

static const struct fault_case fault_cases[] = {
    { NONE, "", 0 },
    { NONE, "", 0 },
    { UMD_FAULT_HW_CU_HANG, "", 8 },
    { UMD_FAULT_HW_CU_WILD, "", 8 },
    { UMD_FAULT_HW_CU_ILLEGAL, "", 8 },
    { UMD_FAULT_HW_CP_HANG, "", 40 },
    { UMD_FAULT_HW_SDMA_HANG, "", 12 },
    { UMD_FAULT_HW_BUS_OFF, "", 20 },
    { UMD_FAULT_HW_IRQ_LOST, "1*", 20 },
    { UMD_FAULT_HW_IRQ_OVERFLOW, "1*", 20 },
    { UMD_FAULT_KMD_VRAM_ALLOC, "1*", 8 },
    { UMD_FAULT_KMD_RING_FULL, "1*", 20 },
    { UMD_FAULT_KMD_VA_ALLOC, "1*", 8 },
    { UMD_FAULT_UMD_STREAM_CREATE, "1*", 3 },
    { UMD_FAULT_UMD_VA_CORRUPT, "1*", 8 },
};

struct mix_args { umdDevicePtr dst, src; uint32_t a, n; };

struct buffer {
    umdDevicePtr ptr;
    int stream;                /* last user, -1: none */
    uint32_t ref[WORDS];
};

struct run {
    uint64_t seed, rng;
    const struct fault_case *fault;
    bool verbose, broken;      /* broken: the context or device failed, as it may */
    umdDevice dev;
    umdContext ctx;
    umdModule mod;
    umdKernel mix, steps;
    umdStream streams[STREAMS];
    umdEvent event;
    struct buffer buf[BUFFERS];
    int ops_done, cancelled;
};

static const char *kernel_path;

/* NULL: no fault in this run. */
static const struct umd_fault_site_info *injected(const struct run *r)
{
    return r->fault->site == NONE ? NULL : umd_fault_site_info((enum umd_fault_site)r->fault->site);
}

static uint32_t rnd(struct run *r, uint32_t n)
{
    r->rng += 0x9e3779b97f4a7c15ull;
    uint64_t z = r->rng;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return (uint32_t)((z ^ z >> 31) % n);
}

static void die(const struct run *r, const char *what)
{
    umdErrorDetail d = { .size_B = sizeof(d) };
    static char text[8192];

    text[0] = '\0';
    if (umdGetLastErrorDetail(&d) == UMD_SUCCESS)
        umdErrorDetailFormat(&d, text, sizeof(text));
    fprintf(stderr, "seed %" PRIu64 " (fault %s), after %d operations: %s\nlast error of the thread:\n%s\nplay again: campaign %s --first %" PRIu64 " --seeds 1 --verbose\n",
            r->seed, injected(r) ? injected(r)->name : "none", r->ops_done, what, text, kernel_path, r->seed);
    exit(1);
}

static void on_alarm(int sig)
{
    static const char msg[] = "a wait did not end\n";
    (void)sig;
    if (write(2, msg, sizeof(msg) - 1) < 0)
        _exit(3);
    _exit(2);
}

/* True: go on. False: the fault struck as it may, and the context is done for. */
static bool ok(struct run *r, umdStatus st, const char *what)
{
    if (r->verbose)
        fprintf(stderr, "%3d %s -> %s\n", r->ops_done, what, umdStatusName(st));
    if (!umdFailed(st)) {
        if (st != UMD_SUCCESS)
            die(r, what);
        return true;
    }
    const struct umd_fault_site_info *site = injected(r);
    if (!site)
        die(r, what);
    if (st == UMD_ERR_INTERNAL || st == UMD_ERR_INTERNAL_CODE)
        die(r, "a defect of the driver, or a code that the call does not document");
    umdErrorDetail d = { .size_B = sizeof(d) };
    if (umdGetLastErrorDetail(&d) != UMD_SUCCESS || d.code != st)
        die(r, "the detail is not that of the returned code");
    for (int depth = 0; depth < 8; depth++) {
        if (d.code == site->code || d.origin_code == site->code) {
            r->broken = true;
            return false;
        }
        d.size_B = sizeof(d);
        if (!d.cause.seq || umdGetErrorDetailById(d.cause, &d) != UMD_SUCCESS)
            break;
    }
    die(r, "the cause reported is not the one injected");
    return false;
}

#define TRY(r_, call_) do { if (!ok((r_), (call_), #call_)) return; } while (0)

/* Orders stream s behind the last user of the buffer. */
static bool acquire(struct run *r, int b, int s)
{
    struct buffer *buf = &r->buf[b];
    if (buf->stream >= 0 && buf->stream != s) {
        if (!ok(r, umdEventRecord(r->event, r->streams[buf->stream]), "umdEventRecord") ||
            !ok(r, umdStreamWaitEvent(r->streams[s], r->event), "umdStreamWaitEvent"))
            return false;
    }
    buf->stream = s;
    return true;
}

static void compare(struct run *r, int b, int s)
{
    static uint32_t host[WORDS];
    struct buffer *buf = &r->buf[b];

    if (!acquire(r, b, s))
        return;
    TRY(r, umdMemcpyDtoH(r->streams[s], host, buf->ptr, sizeof(host)));
    for (int i = 0; i < WORDS; i++)
        if (host[i] != buf->ref[i]) {
            char text[128];
            snprintf(text, sizeof(text), "buffer %d word %d is %08x, the reference says %08x", b, i, host[i], buf->ref[i]);
            die(r, text);
        }
}

static void op_upload(struct run *r, int b, int s)
{
    static uint32_t host[WORDS];
    uint32_t first = rnd(r, WORDS), n = 1 + rnd(r, WORDS - first);

    for (uint32_t i = 0; i < n; i++)
        host[i] = rnd(r, UINT32_MAX);
    if (!acquire(r, b, s))
        return;
    TRY(r, umdMemcpyHtoD(r->streams[s], r->buf[b].ptr + first * 4u, host, n * 4u));
    memcpy(&r->buf[b].ref[first], host, n * 4u);
    memset(host, 0xee, sizeof(host)); /* the call has taken its copy */
}

static void op_fill(struct run *r, int b, int s)
{
    static const uint32_t sizes[] = { 1, 2, 4 };
    uint32_t el = sizes[rnd(r, 3)], pattern = rnd(r, UINT32_MAX), first = rnd(r, WORDS), n = 1 + rnd(r, WORDS - first);

    if (!acquire(r, b, s))
        return;
    TRY(r, umdMemset(r->streams[s], r->buf[b].ptr + first * 4u, pattern, el, n * 4u));
    for (uint32_t i = 0; i < n; i++)
        r->buf[b].ref[first + i] = el == 4 ? pattern : el == 2 ? (pattern & 0xffffu) * 0x10001u : (pattern & 0xffu) * 0x1010101u;
}

static void op_copy(struct run *r, int b, int c, int s)
{
    if (b == c || !acquire(r, b, s) || !acquire(r, c, s))
        return;
    TRY(r, umdMemcpyDtoD(r->streams[s], r->buf[b].ptr, r->buf[c].ptr, sizeof(r->buf[b].ref)));
    memcpy(r->buf[b].ref, r->buf[c].ref, sizeof(r->buf[b].ref));
}

static void op_launch(struct run *r, int b, int c, int s)
{
    bool mix = rnd(r, 2);
    uint32_t block = 32u << rnd(r, 4);
    struct mix_args args = { .a = rnd(r, 1000), .n = 1 + rnd(r, WORDS) };
    umdLaunchDesc d = { .size_B = sizeof(d), .block = { block, 1, 1 }, .args = &args, .args_B = sizeof(args) };

    if (b == c || !acquire(r, b, s) || !acquire(r, c, s))
        return;
    d.grid[0] = (args.n + block - 1) / block, d.grid[1] = d.grid[2] = 1;
    args.dst = r->buf[b].ptr;
    args.src = r->buf[c].ptr;
    TRY(r, umdLaunchKernel(r->streams[s], mix ? r->mix : r->steps, &d));
    for (uint32_t i = 0; i < args.n; i++) {
        uint32_t *dst = &r->buf[b].ref[i], v = (r->buf[c].ref[i] & 1023u) + 1u, count = 0;
        if (mix) {
            *dst = *dst * args.a + r->buf[c].ref[i] + i;
            continue;
        }
        while (v != 1u && count < 200u) {
            v = v & 1u ? v * 3u + 1u : v / 2u;
            count++;
        }
        *dst += count * args.a;
    }
}

static void op_realloc(struct run *r, int b)
{
    TRY(r, umdMemFree(r->ctx, r->buf[b].ptr));
    r->buf[b].ptr = 0;
    r->buf[b].stream = -1;
    TRY(r, umdMemAlloc(r->ctx, sizeof(r->buf[b].ref), 0, 0, &r->buf[b].ptr));
    memset(r->buf[b].ref, 0, sizeof(r->buf[b].ref));
}

/* True: the work was cancelled as its producer was destroyed, and that is all that happened. Else *st is what did. */
static bool cancelled(struct run *r, umdStatus *st)
{
    if (*st != UMD_ERR_EXEC_CANCELLED)
        return false;
    umdStatus context = umdContextGetStatus(r->ctx);
    if (context != UMD_SUCCESS)
        *st = context;
    return context == UMD_SUCCESS;
}

/*
 * A stream waits for another one, which is destroyed at its work. Either the work was over by then, or nothing behind the wait runs, a call
 * says so once, and the stream works again.
 */
static void op_cancel(struct run *r, int b, int s)
{
    struct mix_args args = { .n = 0 }; /* touches nothing */
    umdLaunchDesc d = { .size_B = sizeof(d), .grid = { 1 + rnd(r, 64), 1, 1 }, .block = { 32, 1, 1 }, .args = &args, .args_B = sizeof(args) };
    const uint32_t pattern = rnd(r, UINT32_MAX);
    const bool more = rnd(r, 2);
    umdStatus st = UMD_SUCCESS;
    umdStream producer;

    if (!acquire(r, b, s))
        return;
    args.dst = args.src = r->buf[b].ptr;
    TRY(r, umdStreamCreate(r->ctx, UMD_STREAM_COMPUTE, 0, &producer));
    TRY(r, umdLaunchKernel(producer, r->mix, &d));
    TRY(r, umdEventRecord(r->event, producer));
    TRY(r, umdStreamWaitEvent(r->streams[s], r->event));
    TRY(r, umdMemset(r->streams[s], r->buf[b].ptr, pattern, 4, sizeof(r->buf[b].ref)));
    TRY(r, umdStreamDestroy(producer));
    if (more)
        st = umdMemset(r->streams[s], r->buf[b].ptr, pattern, 4, sizeof(r->buf[b].ref));
    if (st == UMD_SUCCESS)
        st = umdStreamSynchronize(r->streams[s], WAIT_NS);
    if (!cancelled(r, &st)) {
        if (ok(r, st, "work behind a destroyed stream"))
            for (int i = 0; i < WORDS; i++)
                r->buf[b].ref[i] = pattern;
        return;
    }
    if (r->verbose)
        fprintf(stderr, "%3d work behind a destroyed stream -> cancelled\n", r->ops_done);
    r->cancelled++;
    TRY(r, umdStreamSynchronize(r->streams[s], WAIT_NS));
    compare(r, b, s);
}

/* A call with a wrong argument gets its own code and changes nothing. */
static void op_wrong(struct run *r, int b, int s)
{
    umdDevicePtr untouched = 42;
    umdLaunchDesc d = { .size_B = sizeof(d), .grid = { 1, 1, 1 }, .block = { 0, 1, 1 } };
    umdStatus st, want;

    switch (rnd(r, 4)) {
    case 0:
        st = umdMemAlloc(r->ctx, 0, 0, 0, &untouched), want = UMD_ERR_MEM_SIZE;
        break;
    case 1:
        st = umdMemset(r->streams[s], r->buf[b].ptr, 0, 4, sizeof(r->buf[b].ref) * 1000), want = UMD_ERR_COPY_RANGE;
        break;
    case 2:
        st = umdMemFree(r->ctx, r->buf[b].ptr + 4), want = UMD_ERR_MEM_POINTER;
        break;
    default:
        st = umdLaunchKernel(r->streams[s], r->mix, &d), want = UMD_ERR_LAUNCH_ARGUMENTS;
        if (st == UMD_ERR_LAUNCH_DIMENSIONS)
            want = st;
        break;
    }
    if (st == want && untouched == 42)
        return;
    if (!ok(r, st, "a wrong call"))
        return; /* the context had failed before */
    die(r, "a wrong call succeeded");
}

static void one_op(struct run *r)
{
    int b = (int)rnd(r, BUFFERS), c = (int)rnd(r, BUFFERS), s = (int)rnd(r, STREAMS);

    switch (rnd(r, 13)) {
    case 0: case 1: op_upload(r, b, s); break;
    case 2: op_fill(r, b, s); break;
    case 3: op_copy(r, b, c, s); break;
    case 4: case 5: case 6: case 7: op_launch(r, b, c, s); break;
    case 8: compare(r, b, s); break;
    case 9: ok(r, umdStreamSynchronize(r->streams[s], WAIT_NS), "umdStreamSynchronize"); break;
    case 10: op_realloc(r, b); break;
    case 11: op_cancel(r, b, s); break;
    default: op_wrong(r, b, s); break;
    }
}

static void setup(struct run *r)
{
    TRY(r, umdContextCreate(r->dev, &r->ctx));
    TRY(r, umdModuleLoadFile(r->ctx, kernel_path, &r->mod));
    TRY(r, umdModuleGetKernel(r->mod, "mix", &r->mix));
    TRY(r, umdModuleGetKernel(r->mod, "steps", &r->steps));
    for (int i = 0; i < STREAMS; i++)
        TRY(r, umdStreamCreate(r->ctx, UMD_STREAM_COMPUTE, i - 1, &r->streams[i]));
    TRY(r, umdEventCreate(r->ctx, &r->event));
    for (int i = 0; i < BUFFERS; i++) {
        r->buf[i].ptr = 0;
        r->buf[i].stream = -1;
        memset(r->buf[i].ref, 0, sizeof(r->buf[i].ref));
        TRY(r, umdMemAlloc(r->ctx, sizeof(r->buf[i].ref), 0, 0, &r->buf[i].ptr));
    }
}

static void program(struct run *r, int ops)
{
    r->broken = false;
    r->ctx = (umdContext){ 0 };
    setup(r);
    for (r->ops_done = 0; r->ops_done < ops && !r->broken; r->ops_done++)
        one_op(r);
    for (int i = 0; i < BUFFERS && !r->broken; i++)
        compare(r, i, (int)rnd(r, STREAMS));
    if (r->ctx.id && umdContextDestroy(r->ctx) != UMD_SUCCESS)
        die(r, "umdContextDestroy failed");
}

static uint64_t vram_free(struct run *r)
{
    umdDeviceInfo info = { .size_B = sizeof(info) };
    if (umdDeviceGetInfo(r->dev, &info) != UMD_SUCCESS)
        die(r, "umdDeviceGetInfo failed");
    return info.vram_free_B;
}

static void start(struct run *r)
{
    umdInitDesc d = { .size_B = sizeof(d), .version = UMD_VERSION, .stepped = true, .seed = r->seed };

    if (umdInit(&d) != UMD_SUCCESS || umdDeviceGet(0, &r->dev) != UMD_SUCCESS)
        die(r, "the stack does not start");
}

static void stop(struct run *r, uint64_t live_B)
{
    struct umd_record_counts counts;
    uint64_t now_B, blocks;

    if (umdShutdown() != UMD_SUCCESS)
        die(r, "umdShutdown failed");
    umd_alloc_live(&now_B, &blocks);
    if (now_B > live_B) {
        char text[96];
        snprintf(text, sizeof(text), "%" PRIu64 " bytes of host memory leaked", now_B - live_B);
        die(r, text);
    }
    umd_record_get_counts(&counts);
    if (counts.swallowed)
        die(r, "a record was swallowed");
}

static void one_seed(uint64_t seed, bool verbose, uint64_t *fired, uint64_t *cancels)
{
    static struct run r;
    static uint64_t live_B;
    uint64_t base, blocks;
    char spec[128] = "";

    r = (struct run){ .seed = seed, .rng = seed, .verbose = verbose };
    r.fault = &fault_cases[rnd(&r, sizeof(fault_cases) / sizeof(fault_cases[0]))];
    alarm(120);
    if (!live_B) { /* what diag itself keeps for ever is there after the first start */
        start(&r);
        if (umdShutdown() != UMD_SUCCESS)
            die(&r, "umdShutdown failed");
        umd_alloc_live(&live_B, &blocks);
        live_B += 1;
    }
    start(&r);
    base = vram_free(&r);
    const struct umd_fault_site_info *site = injected(&r);
    if (site)
        snprintf(spec, sizeof(spec), "seed=%" PRIu64 ";%s[nth=%u]=%s%.*s", seed, site->name, 1 + rnd(&r, (uint32_t)r.fault->nth_max), r.fault->times,
                 (int)strcspn(site->actions, ","), site->actions);
    if (umd_fault_plan_set(spec) != UMD_SUCCESS)
        die(&r, "the fault specification was refused");
    program(&r, OPS);
    for (int i = 0; i < (int)UMD_FAULT_SITE_COUNT; i++)
        *fired += umd_fault_fired((enum umd_fault_site)i);
    if (umd_fault_plan_set(NULL) != UMD_SUCCESS)
        die(&r, "the fault plan cannot be cleared");

    umdDeviceInfo info = { .size_B = sizeof(info) };
    if (umdDeviceGetInfo(r.dev, &info) != UMD_SUCCESS)
        die(&r, "umdDeviceGetInfo failed");
    if (info.lost_code != UMD_SUCCESS) { /* a lost device takes a new start */
        stop(&r, live_B);
        start(&r);
        base = vram_free(&r);
    } else if (info.vram_free_B != base) {
        die(&r, "device memory leaked");
    }
    r.fault = &fault_cases[0];
    program(&r, OPS / 4);
    *cancels += (uint64_t)r.cancelled;
    if (r.broken)
        die(&r, "a fresh context does not work");
    if (vram_free(&r) != base)
        die(&r, "device memory leaked by the fresh context");
    stop(&r, live_B);
    alarm(0);
}

int main(int argc, char **argv)
{
    uint64_t first = 1, seeds = 100, fired = 0, cancels = 0;
    bool verbose = false;

    if (argc < 2)
        goto usage;
    kernel_path = argv[1];
    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[i], "--verbose"))
            verbose = true;
        else if (!strcmp(argv[i], "--first") && i + 1 < argc)
            first = strtoull(argv[++i], NULL, 0);
        else if (!strcmp(argv[i], "--seeds") && i + 1 < argc)
            seeds = strtoull(argv[++i], NULL, 0);
        else
            goto usage;
    }
    signal(SIGALRM, on_alarm);
    for (uint64_t s = first; s < first + seeds; s++)
        one_seed(s, verbose, &fired, &cancels);
    printf("%" PRIu64 " seeds, %" PRIu64 " faults fired, %" PRIu64 " times work was cancelled\n", seeds, fired, cancels);
    if (seeds >= 50 && (fired < seeds / 10 || cancels < seeds)) {
        fprintf(stderr, "too few faults fired or too little was cancelled: the campaign does not test what it should\n");
        return 1;
    }
    return 0;
usage:
    fprintf(stderr, "usage: campaign KERNELS.elf [--first SEED] [--seeds N] [--verbose]\n");
    return 1;
}
