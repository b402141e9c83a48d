/* SPDX-License-Identifier: MIT */
/*
 * vm.c - GPU address spaces: create, map, unmap. Simplified: mappings are a sorted list, and a mapping is always of one contiguous
 * buffer. Entries are written while the device may walk them, so each is one atomic store; what is taken out is released only when
 * the rings have passed all they had been given, and rings are told to forget translations before the next job of the VM.
 */
#include <string.h>

#include "fault_plan.h"
#include "kmd_priv.h"

UMD_LOG_MODULE("kmd.vm");

#define PETREL_VMS_MAX 256u
#define HUGE_B (1ull << PETREL_HUGE_SHIFT)
#define VA_START HUGE_B   /* the first 2 MiB stay unmapped, so that a null pointer with an offset faults */

/* ---- Table pages ---- */

static void pt_free(struct petrel_pt *pt)
{
    drm_gem_put(&pt->page->base);
    umd_free(pt->children);
    umd_free(pt);
}

static void pt_zombie_release(struct petrel_zombie *zombie)
{
    pt_free((struct petrel_pt *)(void *)zombie);
}

static struct petrel_pt *pt_create(struct petrel_vm *vm, bool has_children)
{
    struct umd_fault_hit hit;
    if (umd_fault(UMD_FAULT_KMD_VA_ALLOC, (struct umd_fault_where){0}, &hit)) {
        struct petrel_heap_stats stats;
        petrel_heap_get_stats(&vm->dev->vram, &stats);
        petrel_heap_stats_short_of(&stats, PETREL_PAGE_SIZE);
        (void)UMD_FAIL(UMD_ERR_MEM_ALLOC_FAILED, "what=page_table vm=%u size_B=%u free_B=%" PRIu64 " largest_B=%" PRIu64, vm->id,
                       PETREL_PAGE_SIZE, stats.free_B, stats.largest_B);
        return NULL;
    }
    struct petrel_pt *pt = umd_alloc(sizeof(*pt));
    if (!pt)
        return NULL;
    pt->zombie.release = pt_zombie_release;
    if (has_children && !(pt->children = umd_alloc(PETREL_PT_ENTRIES * sizeof(struct petrel_pt *)))) {
        umd_free(pt);
        return NULL;
    }
    if (petrel_bo_create(vm->dev, PETREL_PAGE_SIZE, false, false, true, PETREL_PAGE_SIZE, &pt->page)) {
        umd_free(pt->children);
        umd_free(pt);
        return NULL;
    }
    return pt;
}

static uint64_t *pt_entries(const struct petrel_pt *pt)
{
    return (uint64_t *)(void *)(pt->page->heap->cpu + pt->page->block->start);
}

static uint64_t pt_addr(const struct petrel_pt *pt)
{
    return pt->page->block->start;
}

static void pt_write(struct petrel_pt *pt, uint32_t index, uint64_t pte)
{
    uint64_t *entry = pt_entries(pt) + index;
    bool was = *entry & PETREL_PTE_VALID, is = pte & PETREL_PTE_VALID;
    pt->used += (uint32_t)is - (uint32_t)was;
    __atomic_store_n(entry, pte, __ATOMIC_RELEASE);
}

static void pt_destroy_tree(struct petrel_pt *pt)
{
    for (uint32_t i = 0; pt->children && i < PETREL_PT_ENTRIES; i++) {
        if (pt->children[i])
            pt_destroy_tree(pt->children[i]);
    }
    pt_free(pt);
}

/* The table of `level` that covers va; creates what is missing when asked. NULL: absent, or no memory (a record is open). */
static struct petrel_pt *pt_walk(struct petrel_vm *vm, uint64_t va, int level, bool create)
{
    struct petrel_pt *pt = vm->root;
    for (int l = PETREL_PT_LEVELS - 1; l > level; l--) {
        uint32_t index = PETREL_PT_INDEX(va, l);
        struct petrel_pt *child = pt->children[index];
        if (!child) {
            if (!create || !(child = pt_create(vm, l - 1 > 0)))
                return NULL;
            pt->children[index] = child;
            pt_write(pt, index, pt_addr(child) | PETREL_PTE_VALID);
        }
        pt = child;
    }
    return pt;
}

/* Takes out the tables above va that hold nothing any more. */
static void pt_prune(struct petrel_vm *vm, uint64_t va)
{
    for (int level = 0; level < PETREL_PT_LEVELS - 1; level++) {
        struct petrel_pt *pt = pt_walk(vm, va, level, false);
        if (!pt)
            continue;
        if (pt->used)
            return;
        struct petrel_pt *parent = pt_walk(vm, va, level + 1, false);
        uint32_t index = PETREL_PT_INDEX(va, level + 1);
        pt_write(parent, index, 0);
        parent->children[index] = NULL;
        petrel_zombie_add(vm->dev, &pt->zombie);
    }
}

static struct petrel_pt *huge_leaf_at(struct petrel_vm *vm, uint64_t va)
{
    struct petrel_pt *pt = pt_walk(vm, va, 1, false);
    return pt && pt_entries(pt)[PETREL_PT_INDEX(va, 1)] & PETREL_PTE_LEAF ? pt : NULL;
}

/* Replaces the 2 MiB leaf across a boundary by 512 small ones that say the same. */
static int split_huge(struct petrel_vm *vm, uint64_t va)
{
    struct petrel_pt *pt = va % HUGE_B ? huge_leaf_at(vm, va) : NULL;
    if (!pt)
        return 0;
    struct petrel_pt *small = pt_create(vm, false);
    if (!small)
        return -ENOMEM;
    uint64_t leaf = pt_entries(pt)[PETREL_PT_INDEX(va, 1)];
    for (uint32_t i = 0; i < PETREL_PT_ENTRIES; i++)
        pt_write(small, i, leaf + (uint64_t)i * PETREL_PAGE_SIZE);
    pt->children[PETREL_PT_INDEX(va, 1)] = small;
    pt_write(pt, PETREL_PT_INDEX(va, 1), pt_addr(small) | PETREL_PTE_VALID);
    return 0;
}

static void clear_range(struct petrel_vm *vm, uint64_t va, uint64_t end)
{
    while (va < end) {
        struct petrel_pt *pt = huge_leaf_at(vm, va);
        uint64_t step = pt && va % HUGE_B == 0 && end - va >= HUGE_B ? HUGE_B : PETREL_PAGE_SIZE;
        if (step == HUGE_B) {
            pt_write(pt, PETREL_PT_INDEX(va, 1), 0);
        } else {
            assert(!pt);
            pt = pt_walk(vm, va, 0, false);
            if (pt)
                pt_write(pt, PETREL_PT_INDEX(va, 0), 0);
        }
        va += step;
        if (va >= end || va % HUGE_B == 0)
            pt_prune(vm, va - step);
    }
}

static int set_range(struct petrel_vm *vm, const struct petrel_vma *vma)
{
    uint64_t rights = PETREL_PTE_VALID | PETREL_PTE_LEAF;
    rights |= vma->flags & DRM_PETREL_BIND_READ ? PETREL_PTE_READ : 0;
    rights |= vma->flags & DRM_PETREL_BIND_WRITE ? PETREL_PTE_WRITE : 0;
    rights |= vma->flags & DRM_PETREL_BIND_EXEC ? PETREL_PTE_EXEC : 0;
    rights |= vma->bo->system ? PETREL_PTE_SYSTEM : 0;
    const uint64_t pa0 = vma->bo->block->start + vma->offset_B;
    for (uint64_t done = 0; done < vma->size_B;) {
        uint64_t va = vma->start + done, pa = pa0 + done, left = vma->size_B - done;
        bool huge = va % HUGE_B == 0 && pa % HUGE_B == 0 && left >= HUGE_B;
        struct petrel_pt *pt = pt_walk(vm, va, huge, true);
        if (huge && pt && pt->children[PETREL_PT_INDEX(va, 1)]) {
            huge = false; /* a table of small pages is there already, maybe empty for a moment */
            pt = pt_walk(vm, va, 0, true);
        }
        if (!pt) {
            clear_range(vm, vma->start, va);
            pt_prune(vm, va);
            return -ENOMEM;
        }
        pt_write(pt, PETREL_PT_INDEX(va, huge), pa | rights);
        done += huge ? HUGE_B : PETREL_PAGE_SIZE;
    }
    return 0;
}

/* ---- Mappings ---- */

static void vma_zombie_release(struct petrel_zombie *zombie)
{
    struct petrel_vma *vma = (struct petrel_vma *)(void *)zombie;
    drm_gem_put(&vma->bo->base);
    umd_free(vma);
}

static struct petrel_vma *overlap(struct petrel_vm *vm, uint64_t start, uint64_t size_B)
{
    struct petrel_vma *vma = vm->vmas;
    while (vma && vma->start + vma->size_B <= start)
        vma = vma->next;
    return vma && vma->start < start + size_B ? vma : NULL;
}

static void insert(struct petrel_vm *vm, struct petrel_vma *vma)
{
    struct petrel_vma **p = &vm->vmas;
    umd_mutex_lock(&vm->dev->sched_lock);
    while (*p && (*p)->start < vma->start)
        p = &(*p)->next;
    vma->next = *p;
    *p = vma;
    umd_mutex_unlock(&vm->dev->sched_lock);
}

bool petrel_vm_nearest_locked(struct petrel_vm *vm, uint64_t va, struct petrel_vma *vma_out, uint64_t *distance_out, bool *below_out)
{
    bool found = false;
    for (const struct petrel_vma *vma = vm->vmas; vma; vma = vma->next) {
        bool below = vma->start + vma->size_B <= va;
        uint64_t distance = below ? va - (vma->start + vma->size_B) + 1 : vma->start > va ? vma->start - va : 0;
        if (found && distance >= *distance_out)
            continue;
        found = true;
        *vma_out = *vma;
        *distance_out = distance;
        *below_out = below;
    }
    return found;
}

static int bind_map_locked(struct petrel_vm *vm, struct petrel_vma *vma)
{
    umd_mutex_assert_held(&vm->lock);
    const struct petrel_vma *there = overlap(vm, vma->start, vma->size_B);
    KMD_FIELD(there, "field=va value=0x%" PRIx64 " size_B=%" PRIu64 " reason=mapped there_va=0x%" PRIx64 " there_B=%" PRIu64, vma->start, vma->size_B,
              there->start, there->size_B);
    int ret = set_range(vm, vma);
    if (ret)
        return ret;
    insert(vm, vma);
    atomic_fetch_add(&vm->tlb_gen, 1);
    return 0;
}

static int bind_map(struct drm_file *drm, struct petrel_vm *vm, const struct drm_petrel_vm_bind *args)
{
    const uint32_t known = DRM_PETREL_BIND_READ | DRM_PETREL_BIND_WRITE | DRM_PETREL_BIND_EXEC;
    KMD_FIELD(args->flags == 0 || args->flags & ~known, "field=flags value=0x%x known=0x%x", args->flags, known);
    struct drm_gem_object *obj = drm_gem_lookup(drm, args->handle);
    if (!obj)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_HANDLE, "object=gem handle=%u", args->handle);
    struct petrel_vma *vma = NULL;
    int ret = 0;
    if (args->offset_B % PETREL_PAGE_SIZE || args->offset_B > obj->size_B || args->size_B > obj->size_B - args->offset_B)
        ret = UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, "field=offset_B value=%" PRIu64 " size_B=%" PRIu64 " buffer_B=%" PRIu64, (uint64_t)args->offset_B,
                             (uint64_t)args->size_B, obj->size_B);
    else if (!(vma = umd_alloc(sizeof(*vma))))
        ret = -ENOMEM;
    if (ret) {
        drm_gem_put(obj);
        return ret;
    }
    *vma = (struct petrel_vma){.zombie.release = vma_zombie_release, .start = args->va, .size_B = args->size_B, .offset_B = args->offset_B,
                               .bo = petrel_bo_of(obj), .flags = args->flags};
    umd_mutex_lock(&vm->lock);
    ret = bind_map_locked(vm, vma);
    umd_mutex_unlock(&vm->lock);
    if (ret)
        vma_zombie_release(&vma->zombie);
    return ret;
}

/* Cuts [start, end) out of the list. *spare becomes the right part when a mapping is split in two. Fully covered ones are returned. */
static struct petrel_vma *cut(struct petrel_vm *vm, uint64_t start, uint64_t end, struct petrel_vma **spare)
{
    struct petrel_vma *gone = NULL, **p = &vm->vmas;
    umd_mutex_lock(&vm->dev->sched_lock);
    while (*p && (*p)->start < end) {
        struct petrel_vma *vma = *p;
        uint64_t vma_end = vma->start + vma->size_B;
        if (vma_end <= start) {
            p = &vma->next;
        } else if (vma->start >= start && vma_end <= end) {
            *p = vma->next;
            vma->next = gone;
            gone = vma;
        } else if (vma->start < start && vma_end > end) {
            struct petrel_vma *right = *spare;
            *spare = NULL;
            *right = *vma;
            drm_gem_get(&right->bo->base);
            right->start = end;
            right->size_B = vma_end - end;
            right->offset_B += end - vma->start;
            vma->size_B = start - vma->start;
            vma->next = right;
            break;
        } else if (vma->start < start) {
            vma->size_B = start - vma->start;
            p = &vma->next;
        } else {
            vma->offset_B += end - vma->start;
            vma->start = end;
            vma->size_B = vma_end - end;
            break;
        }
    }
    umd_mutex_unlock(&vm->dev->sched_lock);
    return gone;
}

static int bind_unmap_locked(struct petrel_vm *vm, uint64_t start, uint64_t end, struct petrel_vma **spare)
{
    KMD_FIELD(!overlap(vm, start, end - start), "field=va value=0x%" PRIx64 " size_B=%" PRIu64 " reason=not_mapped", start, end - start);
    int ret = split_huge(vm, start);
    if (ret == 0)
        ret = split_huge(vm, end);
    if (ret)
        return ret;
    /* Nothing below can fail. */
    struct petrel_vma *gone = cut(vm, start, end, spare);
    clear_range(vm, start, end);
    atomic_fetch_add(&vm->tlb_gen, 1);
    while (gone) {
        struct petrel_vma *next = gone->next;
        petrel_zombie_add(vm->dev, &gone->zombie);
        gone = next;
    }
    return 0;
}

static int bind_unmap(struct petrel_vm *vm, const struct drm_petrel_vm_bind *args)
{
    KMD_FIELD(args->handle, "field=handle value=%u reason=unmap", args->handle);
    KMD_FIELD(args->flags, "field=flags value=0x%x reason=unmap", args->flags);
    KMD_FIELD(args->offset_B, "field=offset_B value=%" PRIu64 " reason=unmap", (uint64_t)args->offset_B);
    struct petrel_vma *spare = umd_alloc(sizeof(*spare));
    if (!spare)
        return -ENOMEM;
    umd_mutex_lock(&vm->lock);
    int ret = bind_unmap_locked(vm, args->va, args->va + args->size_B, &spare);
    umd_mutex_unlock(&vm->lock);
    umd_free(spare);
    return ret;
}

/* ---- Life ---- */

struct petrel_vm *petrel_vm_get(struct petrel_vm *vm)
{
    atomic_fetch_add(&vm->refs, 1);
    return vm;
}

/* Jobs hold references, so with the last one no ring uses the tables. */
void petrel_vm_put(struct petrel_vm *vm)
{
    if (!vm || atomic_fetch_sub(&vm->refs, 1) != 1)
        return;
    for (struct petrel_vma *vma = vm->vmas, *next; vma; vma = next) {
        next = vma->next;
        vma_zombie_release(&vma->zombie);
    }
    if (vm->root)
        pt_destroy_tree(vm->root);
    umd_mutex_fini(&vm->lock);
    umd_free(vm);
}

static struct petrel_vm *vm_lookup(struct drm_file *drm, uint32_t id)
{
    struct petrel_file *file = petrel_file_of(drm);
    umd_mutex_lock(&drm->lock);
    struct petrel_vm *vm = drm_idr_find(&file->vms, id);
    if (vm)
        petrel_vm_get(vm);
    umd_mutex_unlock(&drm->lock);
    return vm;
}

int petrel_vm_create_ioctl(struct drm_file *drm, void *data)
{
    struct drm_petrel_vm_create *args = data;
    struct petrel_file *file = petrel_file_of(drm);
    KMD_FIELD(args->flags, "field=flags value=0x%x", args->flags);
    int ret = petrel_check_lost(file->dev);
    if (ret)
        return ret;
    struct petrel_vm *vm = umd_alloc(sizeof(*vm));
    if (!vm)
        return -ENOMEM;
    vm->dev = file->dev;
    umd_mutex_init(&vm->lock, "kmd.vm", 58);
    atomic_init(&vm->refs, 1);
    atomic_init(&vm->tlb_gen, 1);
    vm->hw_id = atomic_fetch_add(&vm->dev->next_vmid, 1) + 1;
    vm->root = pt_create(vm, true);
    if (!vm->root) {
        petrel_vm_put(vm);
        return -ENOMEM;
    }
    umd_mutex_lock(&drm->lock);
    ret = drm_idr_add(&file->vms, vm, PETREL_VMS_MAX, &vm->id);
    const uint32_t id = vm->id;
    umd_mutex_unlock(&drm->lock);
    if (ret) {
        petrel_vm_put(vm);
        return ret;
    }
    args->vm_id = id; /* another thread may have destroyed the VM by its id already */
    return 0;
}

int petrel_vm_destroy_ioctl(struct drm_file *drm, void *data)
{
    const struct drm_petrel_vm_destroy *args = data;
    struct petrel_file *file = petrel_file_of(drm);
    KMD_FIELD(args->pad, "field=pad value=%u", args->pad);
    umd_mutex_lock(&drm->lock);
    struct petrel_vm *vm = drm_idr_find(&file->vms, args->vm_id);
    uint32_t queues = vm ? atomic_load(&vm->queues) : 0;
    if (vm && queues == 0)
        drm_idr_remove(&file->vms, args->vm_id);
    umd_mutex_unlock(&drm->lock);
    if (!vm)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_HANDLE, "object=vm id=%u", args->vm_id);
    if (queues)
        return UMD_FAIL_ERRNO(UMD_ERR_CTX_BUSY, "object=vm id=%u queues=%u", args->vm_id, queues);
    petrel_vm_put(vm);
    return 0;
}

int petrel_vm_bind_ioctl(struct drm_file *drm, void *data)
{
    const struct drm_petrel_vm_bind *args = data;
    KMD_FIELD(args->op > DRM_PETREL_BIND_UNMAP, "field=op value=%u max=%u", args->op, DRM_PETREL_BIND_UNMAP);
    KMD_FIELD(args->size_B == 0 || args->size_B % PETREL_PAGE_SIZE, "field=size_B value=%" PRIu64 " multiple_of=%u", (uint64_t)args->size_B, PETREL_PAGE_SIZE);
    KMD_FIELD(args->va % PETREL_PAGE_SIZE || args->va < VA_START || args->va >= PETREL_VA_USER_END || args->size_B > PETREL_VA_USER_END - args->va,
              "field=va value=0x%" PRIx64 " size_B=%" PRIu64 " first=0x%" PRIx64 " end=0x%" PRIx64, (uint64_t)args->va, (uint64_t)args->size_B,
              (uint64_t)VA_START, (uint64_t)PETREL_VA_USER_END);
    struct petrel_vm *vm = vm_lookup(drm, args->vm_id);
    if (!vm)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_HANDLE, "object=vm id=%u", args->vm_id);
    int ret;
    if (args->op == DRM_PETREL_BIND_MAP) {
        ret = petrel_check_lost(vm->dev);
        if (ret == 0)
            ret = bind_map(drm, vm, args);
    } else {
        ret = bind_unmap(vm, args); /* giving back works on a lost device too */
    }
    petrel_vm_put(vm);
    return ret;
}
