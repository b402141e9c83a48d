/* SPDX-License-Identifier: MIT */
/* handle.c - the table of handles: who is alive, and who destroyed what is not. */
#include "handle.h"

#include <assert.h>
#include <inttypes.h>

#include "record.h"
#include "sys.h"

UMD_LOG_MODULE("umd.handle");

/*
 * A handle is generation << 32 | type << 24 | slot + 1. Generations of a slot count up and outlive umdShutdown, so a handle of an
 * earlier life of the library is told as destroyed. Free slots are used again in the order in which they became free: who destroyed
 * an object is known for as long as possible. The table is static: it costs pages only where it is touched.
 */
enum { SLOT_COUNT = 65536 };

struct slot {
    struct umd_object *obj;     /* NULL: free */
    uint32_t generation;        /* of obj, or of the last one */
    uint8_t type;
    uint32_t destroyed_tid;
    uint64_t destroyed_ns;
    uint32_t next_free;         /* slot + 1, 0: end */
};

static struct {
    struct umd_mutex lock;      /* rank 40 */
    struct slot slots[SLOT_COUNT];
    uint32_t touched;           /* slots ever used */
    uint32_t free_head, free_tail;
    uint32_t open[UMD_OBJ_TYPE_COUNT];
} table;

__attribute__((constructor)) static void table_init(void)
{
    umd_mutex_init(&table.lock, "umd handle table", 40);
}

const char *umd_object_type_name(enum umd_object_type type)
{
    static const char *const names[UMD_OBJ_TYPE_COUNT] = {
        [UMD_OBJ_NONE] = "none", [UMD_OBJ_DEVICE] = "device", [UMD_OBJ_CONTEXT] = "context", [UMD_OBJ_MODULE] = "module",
        [UMD_OBJ_KERNEL] = "kernel", [UMD_OBJ_STREAM] = "stream", [UMD_OBJ_EVENT] = "event",
    };
    return (unsigned)type < UMD_OBJ_TYPE_COUNT ? names[type] : "unknown";
}

static struct slot *slot_of(uint64_t handle)
{
    uint32_t index = (uint32_t)handle & 0xffffffu;

    return index >= 1 && index <= table.touched ? &table.slots[index - 1] : NULL;
}

umdStatus umd_handle_open(struct umd_object *obj, enum umd_object_type type)
{
    struct slot *s = NULL;

    assert(type > UMD_OBJ_NONE && type < UMD_OBJ_TYPE_COUNT);
    assert(obj->release);
    umd_mutex_lock(&table.lock);
    if (table.free_head && (table.touched == SLOT_COUNT || table.touched >= 1024)) {
        s = &table.slots[table.free_head - 1];
        table.free_head = s->next_free;
        if (!table.free_head)
            table.free_tail = 0;
    } else if (table.touched < SLOT_COUNT) {
        s = &table.slots[table.touched++];
    }
    if (!s) {
        umd_mutex_unlock(&table.lock);
        return UMD_FAIL(UMD_ERR_RES_HANDLES, "type=%s limit=%d", umd_object_type_name(type), SLOT_COUNT);
    }
    s->obj = obj;
    s->generation++;
    s->type = (uint8_t)type;
    table.open[type]++;
    obj->type = type;
    atomic_store(&obj->refs, 1);
    obj->handle = (uint64_t)s->generation << 32 | (uint64_t)type << 24 | (uint64_t)(s - table.slots + 1);
    umd_mutex_unlock(&table.lock);
    return UMD_SUCCESS;
}

/* Why a handle does not name a live object of the type. s is a copy of the slot, valid is false where the handle names no slot. */
static umdStatus explain(uint64_t handle, enum umd_object_type type, bool valid, struct slot s)
{
    uint32_t generation = (uint32_t)(handle >> 32);
    enum umd_object_type has = (enum umd_object_type)(handle >> 24 & 0xffu);

    if (!valid || !generation || generation > s.generation || has == UMD_OBJ_NONE || has >= UMD_OBJ_TYPE_COUNT ||
        (generation == s.generation && has != s.type))
        return UMD_FAIL(UMD_ERR_HANDLE_INVALID, "handle=0x%" PRIx64 " wanted=%s", handle, umd_object_type_name(type));
    if (generation == s.generation && s.obj)
        return UMD_FAIL(UMD_ERR_HANDLE_TYPE, "handle=0x%" PRIx64 " wanted=%s type=%s", handle, umd_object_type_name(type),
                        umd_object_type_name(has));
    if (generation == s.generation)
        return UMD_FAIL(UMD_ERR_HANDLE_DESTROYED, "handle=0x%" PRIx64 " type=%s destroyed_ns=%" PRIu64 " destroyed_by_tid=%u", handle,
                        umd_object_type_name(has), s.destroyed_ns, s.destroyed_tid);
    return UMD_FAIL(UMD_ERR_HANDLE_DESTROYED, "handle=0x%" PRIx64 " type=%s destroyed_ns=before-%" PRIu64 " generation=%u now=%u", handle,
                    umd_object_type_name(has), s.destroyed_ns, generation, s.generation);
}

static bool names(const struct slot *s, uint64_t handle, enum umd_object_type type)
{
    return s && s->obj && s->generation == (uint32_t)(handle >> 32) && s->type == type && (handle >> 24 & 0xffu) == type;
}

umdStatus umd_handle_get(uint64_t handle, enum umd_object_type type, struct umd_object **obj_out)
{
    umd_mutex_lock(&table.lock);
    struct slot *s = slot_of(handle);
    if (names(s, handle, type)) {
        umd_object_ref(s->obj);
        *obj_out = s->obj;
        umd_mutex_unlock(&table.lock);
        return UMD_SUCCESS;
    }
    struct slot copy = s ? *s : (struct slot){ 0 };
    umd_mutex_unlock(&table.lock);
    return explain(handle, type, s != NULL, copy);
}

/* True: closed. False: the handle names no live object of the type; *slot_out, *valid_out: why. */
static bool close_it(uint64_t handle, enum umd_object_type type, struct umd_object **obj_out, bool *valid_out, struct slot *slot_out)
{
    uint64_t now_ns = umd_sys()->mono_ns();
    uint32_t tid = umd_sys()->tid();

    umd_mutex_lock(&table.lock);
    struct slot *s = slot_of(handle);
    if (!names(s, handle, type)) {
        *valid_out = s != NULL;
        *slot_out = s ? *s : (struct slot){ 0 };
        umd_mutex_unlock(&table.lock);
        return false;
    }
    *obj_out = s->obj;
    s->obj = NULL;
    s->destroyed_ns = now_ns;
    s->destroyed_tid = tid;
    table.open[type]--;
    if (s->generation < UINT32_MAX) { /* a slot whose generations are used up is not used again */
        uint32_t index = (uint32_t)(s - table.slots) + 1;
        s->next_free = 0;
        if (table.free_tail)
            table.slots[table.free_tail - 1].next_free = index;
        else
            table.free_head = index;
        table.free_tail = index;
    }
    umd_mutex_unlock(&table.lock);
    return true;
}

umdStatus umd_handle_close(uint64_t handle, enum umd_object_type type, struct umd_object **obj_out)
{
    struct slot slot;
    bool valid;

    return close_it(handle, type, obj_out, &valid, &slot) ? UMD_SUCCESS : explain(handle, type, valid, slot);
}

struct umd_object *umd_handle_try_close(uint64_t handle, enum umd_object_type type)
{
    struct umd_object *obj;
    struct slot slot;
    bool valid;

    return close_it(handle, type, &obj, &valid, &slot) ? obj : NULL;
}

uint32_t umd_handle_count(enum umd_object_type type)
{
    umd_mutex_lock(&table.lock);
    uint32_t n = table.open[type];
    umd_mutex_unlock(&table.lock);
    return n;
}

uint64_t umd_handle_any(enum umd_object_type type)
{
    uint64_t handle = 0;

    umd_mutex_lock(&table.lock);
    for (uint32_t i = 0; i < table.touched && table.open[type] && !handle; i++)
        if (table.slots[i].obj && table.slots[i].type == type)
            handle = table.slots[i].obj->handle;
    umd_mutex_unlock(&table.lock);
    return handle;
}
