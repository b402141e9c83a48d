/* SPDX-License-Identifier: MIT */
/* library.c - start and end of the stack, defaults from the environment, and the checks that each call passes. */
#include "library.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "context.h"
#include "device.h"
#include "emergency.h"
#include "error.h"
#include "fault_plan.h"
#include "log_control.h"
#include "snapshot.h"
#include "struct_size.h"

UMD_LOG_MODULE("umd.library");

/* Published sizes stay; and none ends in padding, in which a later field would lie inside the size of an older program. */
static_assert(UMD_INIT_DESC_SIZE_V1 == 72 && sizeof(umdInitDesc) == UMD_INIT_DESC_SIZE_V1, "see docs/extending.md on how a struct grows");
static_assert(UMD_DEVICE_INFO_SIZE_V1 == 152 && sizeof(umdDeviceInfo) == UMD_DEVICE_INFO_SIZE_V1, "see docs/extending.md on how a struct grows");
static_assert(UMD_LAUNCH_DESC_SIZE_V1 == 48 && sizeof(umdLaunchDesc) == UMD_LAUNCH_DESC_SIZE_V1, "see docs/extending.md on how a struct grows");
static_assert(offsetof(umdInitDesc, version) == 4, "read before the size");

enum { DEVICES_MAX = 8, CLOSE_WAIT_MS = 1 };

static struct {
    struct umd_mutex lock;          /* rank 5: start and end */
    uint32_t starts;
    struct umd_winsys *ws;
    struct umd_device *devices[DEVICES_MAX];
    uint32_t device_count;
    bool stepped;
    _Atomic(bool) up, forked;
    _Atomic(uint32_t) changing;     /* threads at the lock: in a child, one that does not exist may hold it for ever */
    _Atomic(uint32_t) calls;        /* under way, umdInit and umdShutdown apart */
    pid_t pid;                      /* of the process that started the library */
} lib;

static void on_fork_child(void)
{
    if (atomic_load(&lib.up) || atomic_load(&lib.changing))
        atomic_store(&lib.forked, true);
}

/* For crash snapshots. */
static void write_state(struct umd_state_out *out, const void *arg)
{
    (void)arg;
    umd_state_u64(out, "up", atomic_load(&lib.up));
    umd_state_u64(out, "forked", atomic_load(&lib.forked));
    umd_state_u64(out, "calls_under_way", atomic_load(&lib.calls));
    umd_state_u64(out, "starts", lib.starts);
    umd_state_u64(out, "devices", lib.device_count);
}

static void library_lock(void)
{
    atomic_fetch_add(&lib.changing, 1);
    umd_mutex_lock(&lib.lock);
}

static void library_unlock(void)
{
    umd_mutex_unlock(&lib.lock);
    atomic_fetch_sub(&lib.changing, 1);
}

__attribute__((constructor)) static void library_init(void)
{
    umd_mutex_init(&lib.lock, "umd library", 5);
    pthread_atfork(NULL, NULL, on_fork_child);
    (void)umd_state_register("umd.library", write_state, NULL);
}

uint32_t umd_library_device_count(void)
{
    return lib.device_count;
}

struct umd_device *umd_library_device(uint32_t index)
{
    return lib.devices[index];
}

/* ---- Calls ---- */

static umdStatus check_fork(void)
{
    if (__builtin_expect(!atomic_load_explicit(&lib.forked, memory_order_relaxed), 1))
        return UMD_SUCCESS;
    return UMD_FAIL_ADVISED(UMD_ERR_CTX_FORKED, umd_advice_do(UMD_ERR_CTX_FORKED, UMD_ACTION_SKIP), (umdRecordId){ 0 },
                            "pid=%u started_by_pid=%d", umd_sys()->pid(), umd_sys_stepped() ? 1 : (int)lib.pid);
}

/* Stepped: virtual time and the device's work are the one thread's, and nothing guards them. */
static umdStatus check_thread(void)
{
    if (__builtin_expect(!umd_sys_step_foreign(), 1))
        return UMD_SUCCESS;
    return UMD_FAIL(UMD_ERR_INIT_STEPPED_THREAD, "mode=stepped tid=%u", umd_sys()->tid());
}

umdStatus umd_call_ready(struct umd_call *call)
{
    umdStatus st = check_fork();

    if (st < 0)
        return UMD_HOP(st);
    st = check_thread();
    if (st < 0)
        return UMD_HOP(st);
    atomic_fetch_add(&lib.calls, 1);
    call->counted = true;
    if (__builtin_expect(!atomic_load(&lib.up), 0))
        return UMD_FAIL(UMD_ERR_INIT_REQUIRED, "call=%s", call->api.site->name ? call->api.site->name : "-");
    return UMD_SUCCESS;
}

umdStatus umd_call_leave(struct umd_call *call, umdStatus st)
{
    umd_record_set_context(0);
    if (call->counted)
        atomic_fetch_sub(&lib.calls, 1);
    return umd_api_exit(&call->api, st);
}

/* ---- Configuration ---- */

static umdStatus env_number(const char *name, uint64_t min, uint64_t max, uint64_t *value_inout)
{
    const char *text = secure_getenv(name);
    char *end;

    if (!text || !*text)
        return UMD_SUCCESS;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 0);
    if (errno || *end || text[0] == '-' || v < min || v > max)
        return UMD_FAIL(UMD_ERR_CONFIG_VALUE, "key=%s value=\"%.64s\" min=%" PRIu64 " max=%" PRIu64, name, text, min, max);
    *value_inout = v;
    return UMD_SUCCESS;
}

/* PETREL_MODE: comma list of threaded, stepped, functional. */
static umdStatus env_mode(struct umd_winsys_config *c)
{
    const char *p = secure_getenv("PETREL_MODE");

    while (p && *p) {
        size_t n = strcspn(p, ",");
        if (n == 7 && !strncmp(p, "stepped", n))
            c->stepped = true;
        else if (n == 10 && !strncmp(p, "functional", n))
            c->functional = true;
        else if (!(n == 8 && !strncmp(p, "threaded", n)))
            return UMD_FAIL(UMD_ERR_CONFIG_VALUE, "key=PETREL_MODE value=\"%.64s\" expected=\"threaded stepped functional\"", p);
        p += n + (p[n] == ',');
    }
    return UMD_SUCCESS;
}

static umdStatus configure(const umdInitDesc *desc, struct umd_winsys_config *c)
{
    const char *carrier = secure_getenv("PETREL_CARRIER"), *profile = secure_getenv("PETREL_PROFILE");
    uint64_t devices = 1, watchdog_ms = 0, host_threads = 0;

    umdStatus st = env_number("PETREL_DEVICES", 1, DEVICES_MAX, &devices);
    if (st == UMD_SUCCESS)
        st = env_number("PETREL_WATCHDOG_MS", 1, 86400000, &watchdog_ms);
    if (st == UMD_SUCCESS)
        st = env_number("PETREL_HOST_THREADS", 1, 64, &host_threads);
    if (st == UMD_SUCCESS)
        st = env_mode(c);
    if (st < 0)
        return UMD_HOP(st);
    if (desc->device_count > DEVICES_MAX)
        return UMD_FAIL(UMD_ERR_CONFIG_VALUE, "key=device_count value=%u min=1 max=%d", desc->device_count, DEVICES_MAX);
    c->carrier = desc->carrier && *desc->carrier ? desc->carrier : carrier && *carrier ? carrier : "direct";
    c->profile = desc->profile && *desc->profile ? desc->profile : profile && *profile ? profile : NULL;
    c->device_count = desc->device_count ? desc->device_count : (uint32_t)devices;
    c->expected_count = desc->expected_count ? desc->expected_count : c->device_count;
    c->stepped |= desc->stepped;
    c->functional |= desc->functional;
    c->vram_B = desc->vram_B;
    c->host_threads = (uint32_t)host_threads;
    c->watchdog_ns = desc->watchdog_ns ? desc->watchdog_ns : watchdog_ms * 1000000u;
    return UMD_SUCCESS;
}

/* Without either the plan that is set stays. *number_out is what undoes this one; 0: none was set. */
static umdStatus set_faults(const umdInitDesc *desc, uint64_t *number_out)
{
    const char *spec = desc->faults ? desc->faults : secure_getenv("PETREL_FAULTS");

    if (!spec)
        return UMD_SUCCESS;
    umdStatus st = umd_fault_plan_from(spec);
    if (st < 0)
        return UMD_HOP(st);
    *number_out = umd_fault_plan_generation();
    return UMD_SUCCESS;
}

/* ---- Start ---- */

/* Undoes what start has done, in its reverse order; takes a half-started library. */
static void power_down(void)
{
    while (lib.device_count)
        umd_device_destroy(lib.devices[--lib.device_count]);
    umd_winsys_destroy(lib.ws);
    lib.ws = NULL;
    if (lib.stepped)
        umd_sys_step_end();
    lib.stepped = false;
}

static umdStatus power_up(const umdInitDesc *desc)
{
    struct umd_winsys_config config = { 0 };
    uint64_t plan = 0;

    umdStatus st = configure(desc, &config);
    if (st == UMD_SUCCESS)
        st = set_faults(desc, &plan);
    if (st < 0)
        return UMD_HOP(st);
    if (config.stepped)
        umd_sys_step_begin(desc->seed);
    lib.stepped = config.stepped;
    st = umd_winsys_create(&config, &lib.ws);
    for (uint32_t i = 0; st == UMD_SUCCESS && i < umd_winsys_device_count(lib.ws) && i < DEVICES_MAX; i++) {
        st = umd_device_create(lib.ws, i, config.stepped, &lib.devices[i]);
        if (st == UMD_SUCCESS)
            lib.device_count++;
    }
    if (st == UMD_SUCCESS && !lib.device_count)
        st = UMD_FAIL(UMD_ERR_INIT_NO_DEVICE, "configured=%u", config.device_count);
    if (st < 0) {
        umd_error_keep(st, power_down());
        if (plan)
            umd_fault_plan_undo(plan);
        return UMD_HOP(st);
    }
    UMD_LIFECYCLE("library started carrier=%s devices=%u mode=%s", config.carrier, lib.device_count, config.stepped ? "stepped" : "threaded");
    return UMD_SUCCESS;
}

/* The version stands at the same place in all versions, and says more than the size of a newer program's struct. */
static umdStatus take_desc(const umdInitDesc *given, umdInitDesc *desc)
{
    char figures[UMD_STRUCT_FIGURES];

    if (given->size_B >= offsetof(umdInitDesc, carrier) && given->version > UMD_VERSION)
        return UMD_FAIL(UMD_ERR_INIT_VERSION, "program=%u.%u library=%d.%d", given->version >> 16, given->version & 0xffffu, UMD_VERSION_MAJOR,
                        UMD_VERSION_MINOR);
    if (!umd_struct_in(desc, sizeof(*desc), given, UMD_INIT_DESC_SIZE_V1, figures))
        return UMD_FAIL(UMD_ERR_PARAM_STRUCT_SIZE, "argument=desc %s", figures);
    return UMD_SUCCESS;
}

umdStatus umdInit(const umdInitDesc *desc)
{
    umdInitDesc own = { .size_B = sizeof(own), .version = UMD_VERSION }; /* all defaults */
    struct umd_api_call call = { 0 };

    umd_api_enter(&call, __func__, "desc=%s", desc ? "given" : "NULL");
    umdStatus st = check_fork();
    if (st == UMD_SUCCESS)
        st = check_thread();
    if (st == UMD_SUCCESS && desc)
        st = take_desc(desc, &own);
    if (st == UMD_SUCCESS && umd_context_in_callback()) /* umdShutdown may hold the lock and wait for this callback */
        st = UMD_FAIL_ADVISED(UMD_ERR_CTX_BUSY, umd_advice_do(UMD_ERR_CTX_BUSY, UMD_ACTION_SKIP), (umdRecordId){ 0 },
                              "reason=\"called from an error callback\"");
    if (st < 0)
        return umd_api_exit(&call, st);
    library_lock();
    st = check_thread(); /* again: a start that was under way may have been a stepped one */
    if (st == UMD_SUCCESS && !lib.starts) {
        lib.pid = getpid();
        st = power_up(&own);
    }
    if (st == UMD_SUCCESS) {
        if (!lib.starts++)
            umd_log_control_open();
        atomic_store(&lib.up, true);
    }
    library_unlock();
    return umd_api_exit(&call, st);
}

/* ---- End ---- */

static void destroy_leaked(void)
{
    uint32_t n = 0;

    while (umd_context_destroy_any())
        n++;
    if (n)
        UMD_LOG(UMD_LOG_WARN, "contexts leaked count=%u", n);
}

/* Calls of other threads see a closed library or destroyed objects, and end soon. */
static void await_calls(void)
{
    struct timespec ts = { .tv_nsec = CLOSE_WAIT_MS * 1000000 };

    while (atomic_load(&lib.calls))
        nanosleep(&ts, NULL);
}

umdStatus umdShutdown(void)
{
    struct umd_api_call call = { 0 };

    umd_api_enter(&call, __func__, "%s", "");
    umdStatus st = check_fork();
    if (st == UMD_SUCCESS)
        st = check_thread();
    if (st == UMD_SUCCESS && umd_context_in_callback())
        st = UMD_FAIL_ADVISED(UMD_ERR_CTX_BUSY, umd_advice_do(UMD_ERR_CTX_BUSY, UMD_ACTION_SKIP), (umdRecordId){ 0 },
                              "reason=\"called from an error callback\"");
    if (st < 0)
        return umd_api_exit(&call, st);
    library_lock();
    if (!lib.starts) {
        st = UMD_FAIL(UMD_ERR_INIT_REQUIRED, "call=umdShutdown");
    } else if (!--lib.starts) {
        atomic_store(&lib.up, false);
        destroy_leaked();
        await_calls();
        destroy_leaked();
        umd_log_control_close();
        UMD_LIFECYCLE("library ends"); /* before virtual clocks end with the devices */
        power_down();
    }
    library_unlock();
    return umd_api_exit(&call, st);
}

uint32_t umdGetVersion(void)
{
    return UMD_VERSION;
}
