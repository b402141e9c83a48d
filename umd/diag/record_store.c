/* SPDX-License-Identifier: MIT */
/* record_store.c - records by id: the last 256, first causes that are kept longer, links to them, and the last errors of a context. */
#include <string.h>

#include "diag_internal.h"
#include "struct_size.h"

enum { STORE_COUNT = 256, LINK_COUNT = 2048, PIN_COUNT = 32, CONTEXT_COUNT = 32, CHAIN_MAX = 32 };

/* Which record a chain of causes begins with; kept far longer than the records between. */
struct link { umdRecordId id, first; };

/* A first cause that calls will go on to ask for: of a lost device, or of a context that takes no more work. */
struct pin { umdRecordId id; uint64_t age; bool device; umdErrorDetail rec; };

struct context_errors {
    uint64_t context_id, age, count; /* age 0: free */
    umdErrorNote notes[UMD_SCENE_ERRORS];
};

static struct {
    struct umd_mutex lock; /* rank 94 */
    uint64_t next, age;
    umdRecordId ids[STORE_COUNT];   /* of recs: searched often, so kept together */
    umdErrorDetail recs[STORE_COUNT];
    bool travels[STORE_COUNT];      /* it was taken out of its scope, and has not come back yet: there is more to come */
    struct link links[LINK_COUNT];  /* by number: the younger takes the place of the older */
    struct pin pins[PIN_COUNT];
    struct context_errors contexts[CONTEXT_COUNT];
} store = { .lock = { .m = PTHREAD_MUTEX_INITIALIZER, .name = "record store", .rank = 94 } };

static _Atomic(uint64_t) next_seq = 1;
static _Atomic(uint32_t) boot;

/* FNV-1a: the kernel's boot id in 32 bits. */
static uint32_t host_boot(void)
{
    char text[40];
    uint32_t h = 2166136261u;
    int fd = umd_sys_default()->open("/proc/sys/kernel/random/boot_id", 0, 0);
    ssize_t n = fd < 0 ? 0 : umd_sys_default()->read(fd, text, sizeof(text));

    if (fd >= 0)
        umd_sys_default()->close(fd);
    for (ssize_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h ? h : 1;
}

__attribute__((constructor(102))) static void boot_init(void) { atomic_store(&boot, host_boot()); }

umdRecordId umd_record_id(uint64_t seq)
{
    return (umdRecordId){ .boot = atomic_load_explicit(&boot, memory_order_relaxed), .pid = umd_sys()->pid(), .seq = seq };
}

umdRecordId umd_record_id_next(void)
{
    return umd_record_id(atomic_fetch_add_explicit(&next_seq, 1, memory_order_relaxed));
}

/* ---- Records ---- */

/* Newest first: what is asked for is mostly what was put last. */
static umdErrorDetail *find_locked(umdRecordId id)
{
    umd_mutex_assert_held(&store.lock);
    for (uint64_t i = 1; i <= STORE_COUNT && i <= store.next; i++) {
        uint64_t at = (store.next - i) % STORE_COUNT;
        if (store.ids[at].seq == id.seq && umd_id_equal(store.ids[at], id))
            return &store.recs[at];
    }
    return NULL;
}

static struct pin *find_pin_locked(umdRecordId id)
{
    umd_mutex_assert_held(&store.lock);
    for (uint32_t i = 0; i < PIN_COUNT; i++)
        if (store.pins[i].id.seq == id.seq && umd_id_equal(store.pins[i].id, id))
            return &store.pins[i];
    return NULL;
}

static const umdErrorDetail *look_up_locked(umdRecordId id)
{
    const umdErrorDetail *rec = id.seq ? find_locked(id) : NULL;
    const struct pin *pin = id.seq && !rec ? find_pin_locked(id) : NULL;

    return rec ? rec : pin ? &pin->rec : NULL;
}

static umdErrorDetail *take_place_locked(umdRecordId id)
{
    uint64_t at = store.next++ % STORE_COUNT;

    umd_mutex_assert_held(&store.lock);
    store.ids[at] = id;
    store.travels[at] = false;
    return &store.recs[at];
}

static bool begins_with(const char *text, const char *begin) { return strncmp(text, begin, strlen(begin)) == 0; }

/* What a layer has added to a record is not taken away again by a copy that was under way meanwhile. */
static void update_locked(umdErrorDetail *at, const umdErrorDetail *rec)
{
    umdErrorDetail before;

    umd_mutex_assert_held(&store.lock);
    memcpy(before.figures, at->figures, sizeof(before.figures));
    memcpy(before.text, at->text, sizeof(before.text));
    *at = *rec;
    if (begins_with(before.figures, rec->figures))
        memcpy(at->figures, before.figures, sizeof(at->figures));
    if (begins_with(before.text, rec->text))
        memcpy(at->text, before.text, sizeof(at->text));
}

void umd_record_store_put(const umdErrorDetail *rec)
{
    umd_mutex_lock(&store.lock);
    umdErrorDetail *at = find_locked(rec->id);
    struct pin *pin = find_pin_locked(rec->id);
    if (at)
        update_locked(at, rec);
    else
        *take_place_locked(rec->id) = *rec;
    if (pin)
        update_locked(&pin->rec, rec);
    umd_mutex_unlock(&store.lock);
}

bool umd_record_store_get(umdRecordId id, umdErrorDetail *out)
{
    umd_mutex_lock(&store.lock);
    const umdErrorDetail *at = look_up_locked(id);
    if (at)
        *out = *at;
    umd_mutex_unlock(&store.lock);
    return at != NULL;
}

void umd_record_store_set_travels(umdRecordId id, bool travels)
{
    umd_mutex_lock(&store.lock);
    const umdErrorDetail *at = find_locked(id);
    if (at)
        store.travels[at - store.recs] = travels;
    umd_mutex_unlock(&store.lock);
}

bool umd_record_store_travels(umdRecordId id)
{
    umd_mutex_lock(&store.lock);
    const umdErrorDetail *at = find_locked(id);
    bool travels = at && store.travels[at - store.recs];
    umd_mutex_unlock(&store.lock);
    return travels;
}

/* ---- First causes ---- */

static struct link *link_of(umdRecordId id) { return &store.links[id.seq % LINK_COUNT]; }

/* The id that the record's chain of causes begins with, as far as it is known; the id itself where it has no cause. */
static umdRecordId first_locked(umdRecordId id)
{
    umd_mutex_assert_held(&store.lock);
    for (uint32_t depth = 0; depth < CHAIN_MAX; depth++) { /* bounded: a peer's records may name each other */
        const struct link *l = link_of(id);
        if (umd_id_equal(l->id, id))
            return l->first;
        const umdErrorDetail *rec = look_up_locked(id);
        if (!rec || !rec->cause.seq || umd_id_equal(rec->cause, id))
            break;
        id = rec->cause;
    }
    return id;
}

static void link_locked(const umdErrorDetail *rec)
{
    if (rec->cause.seq && !umd_id_equal(rec->cause, rec->id))
        *link_of(rec->id) = (struct link){ .id = rec->id, .first = first_locked(rec->cause) };
}

/* A pin's place: a free one, else that of the oldest context, else that of the oldest device. */
static struct pin *pin_place_locked(void)
{
    struct pin *best = &store.pins[0];

    umd_mutex_assert_held(&store.lock);
    for (uint32_t i = 0; i < PIN_COUNT; i++) {
        struct pin *p = &store.pins[i];
        if (!p->id.seq)
            return p;
        if (p->device != best->device ? best->device : p->age < best->age)
            best = p;
    }
    return best;
}

static void pin_locked(const umdErrorDetail *rec, bool device)
{
    struct pin *p = find_pin_locked(rec->id);

    if (!p)
        p = pin_place_locked();
    *p = (struct pin){ .id = rec->id, .age = ++store.age, .device = device, .rec = *rec };
}

void umd_record_pin(const umdErrorDetail *rec, bool device)
{
    umd_mutex_lock(&store.lock);
    umdRecordId first = first_locked(rec->id);
    const umdErrorDetail *root = look_up_locked(first);
    if (root && !umd_id_equal(first, rec->id))
        pin_locked(root, device);
    pin_locked(rec, device);
    umd_mutex_unlock(&store.lock);
    umd_scene_pin(rec->id);
    if (!umd_id_equal(first, rec->id))
        umd_scene_pin(first);
}

umdStatus umdGetFirstCause(umdRecordId id, umdErrorDetail *detail)
{
    if (!detail)
        return UMD_ERR_PARAM_NULL;
    if (!umd_struct_fits(sizeof(*detail), detail, UMD_ERROR_DETAIL_SIZE_V1, NULL))
        return UMD_ERR_PARAM_STRUCT_SIZE;
    umd_mutex_lock(&store.lock);
    const umdErrorDetail *rec = id.seq ? look_up_locked(first_locked(id)) : NULL;
    if (rec)
        umd_struct_out(detail, rec, sizeof(*rec));
    umd_mutex_unlock(&store.lock);
    return rec ? UMD_SUCCESS : UMD_STATUS_NOT_READY;
}

/* ---- Errors of a context ---- */

static struct context_errors *errors_of_locked(uint64_t context_id)
{
    struct context_errors *oldest = &store.contexts[0];

    umd_mutex_assert_held(&store.lock);
    for (uint32_t i = 0; i < CONTEXT_COUNT; i++) {
        struct context_errors *c = &store.contexts[i];
        if (c->age && c->context_id == context_id)
            return c;
        if (c->age < oldest->age)
            oldest = c;
    }
    *oldest = (struct context_errors){ .context_id = context_id };
    return oldest;
}

/* Newest first. */
static uint32_t copy_notes(const struct context_errors *c, umdErrorNote *out)
{
    uint32_t n = 0;

    for (; n < UMD_SCENE_ERRORS && n < c->count; n++)
        out[n] = c->notes[(c->count - 1 - n) % UMD_SCENE_ERRORS];
    return n;
}

uint32_t umd_record_store_raised(const umdErrorDetail *rec, umdErrorNote before[UMD_SCENE_ERRORS])
{
    umd_mutex_lock(&store.lock);
    *take_place_locked(rec->id) = *rec; /* a new id: nothing of it is here yet */
    link_locked(rec);
    struct context_errors *c = errors_of_locked(rec->context_id);
    uint32_t count = copy_notes(c, before);
    c->age = ++store.age;
    if (rec->advice.severity >= UMD_SEVERITY_WARN) /* what is met every day would push out what is looked for */
        c->notes[c->count++ % UMD_SCENE_ERRORS] = (umdErrorNote){ .id = rec->id, .mono_ns = rec->mono_ns, .code = rec->code };
    umd_mutex_unlock(&store.lock);
    return count;
}

bool umd_record_store_contradicts(const umdErrorDetail *rec)
{
    umd_mutex_lock(&store.lock);
    const umdErrorDetail *at = look_up_locked(rec->id);
    bool other = at && at->line && /* 0: what stood for it while its origin was not known */
                 (at->origin_code != rec->origin_code || at->mono_ns != rec->mono_ns || at->line != rec->line ||
                  strcmp(at->func, rec->func) != 0 || strcmp(at->file, rec->file) != 0);
    umd_mutex_unlock(&store.lock);
    return other;
}

void umd_record_store_imported(const umdErrorDetail *rec)
{
    umd_mutex_lock(&store.lock);
    umdErrorDetail *at = find_locked(rec->id);
    if (at)
        update_locked(at, rec);
    else
        *take_place_locked(rec->id) = *rec;
    link_locked(rec);
    umd_mutex_unlock(&store.lock);
}

/* ---- Runs and forks ---- */

/* A stepped run starts with number one and an empty store, so that its ids depend on nothing before it. */
void umd_record_step_reset(uint64_t seed)
{
    uint32_t mixed = (uint32_t)(seed ^ (seed >> 32)) * 2654435761u;
    struct umd_diag_thread *t = umd_diag_thread_peek();

    atomic_store(&boot, mixed ? mixed : 1);
    atomic_store(&next_seq, 1);
    if (t)
        t->fold = (struct umd_fold_key){ 0 };
    umd_mutex_lock(&store.lock);
    store.next = store.age = 0;
    memset(store.ids, 0, sizeof(store.ids));
    memset(store.links, 0, sizeof(store.links));
    memset(store.pins, 0, sizeof(store.pins));
    memset(store.contexts, 0, sizeof(store.contexts));
    umd_mutex_unlock(&store.lock);
    umd_scene_reset();
    umd_limit_reset();
}

void umd_record_store_atfork(int stage)
{
    if (stage == 0)
        pthread_mutex_lock(&store.lock.m);
    else
        pthread_mutex_unlock(&store.lock.m);
    umd_limit_atfork(stage);
    if (stage == 2)
        umd_scene_reset(); /* one that a thread of the parent was writing would stay taken for ever */
}

umdStatus umdGetErrorDetailById(umdRecordId id, umdErrorDetail *detail)
{
    umdErrorDetail own;

    if (!detail)
        return UMD_ERR_PARAM_NULL;
    if (!umd_struct_fits(sizeof(*detail), detail, UMD_ERROR_DETAIL_SIZE_V1, NULL))
        return UMD_ERR_PARAM_STRUCT_SIZE;
    if (!umd_record_store_get(id, &own))
        return UMD_STATUS_NOT_READY;
    umd_struct_out(detail, &own, sizeof(own));
    return UMD_SUCCESS;
}
