/* SPDX-License-Identifier: MIT */
/* file.c - open device files: the ioctl table, maps of buffers, and what is left to clean up at the last close. */
#include <string.h>
#include <sys/mman.h>

#include "kmd_priv.h"

UMD_LOG_MODULE("kmd.file");

int petrel_info_ioctl(struct drm_file *drm, void *data)
{
    struct drm_petrel_info *args = data;
    struct petrel_device *dev = petrel_device_of(drm->dev);
    const uint64_t error_ptr = args->error_ptr;
    struct petrel_heap_stats vram, sysmem;
    const bool lost = petrel_check_lost_quietly(dev);
    petrel_heap_get_stats(&dev->vram, &vram);
    petrel_heap_get_stats(&dev->sysmem, &sysmem);
    *args = dev->info;
    args->error_ptr = error_ptr;
    args->vram_free_B = vram.free_B;
    args->vram_largest_free_B = vram.largest_B;
    args->sysmem_free_B = sysmem.free_B;
    args->device_ns = lost ? 0 : petrel_now(dev);
    args->host_ns = umd_sys()->mono_ns();
    args->lost_code = (uint32_t)atomic_load(&dev->lost_code);
    umd_mutex_lock(&dev->sched_lock);
    args->reset_count = dev->reset_count;
    umd_mutex_unlock(&dev->sched_lock);
    return 0;
}

/* Hands the thread's open record to whoever asked for it with error_ptr, the first field of every struct of ours. */
static void ioctl_exit(struct drm_file *drm, void *data, uint32_t size_B, int ret)
{
    uint64_t error_ptr = 0;
    uint32_t room_B = 0;
    umdErrorDetail detail;
    (void)drm;
    if (ret >= 0 || size_B < sizeof(error_ptr))
        return;
    memcpy(&error_ptr, data, sizeof(error_ptr));
    if (!error_ptr || !usercopy_try_from(&room_B, error_ptr, sizeof(room_B)) || room_B < sizeof(room_B))
        return;
    if (room_B > sizeof(detail))
        room_B = sizeof(detail);
    /* Is there room indeed? The record ends as delivered with the export. */
    if (umd_record_current().seq == 0 || !usercopy_try_from(&detail, error_ptr, room_B) || !usercopy_try_to(error_ptr, &detail, room_B))
        return;
    if (umd_record_export(&detail))
        usercopy_try_to(error_ptr, &detail, room_B);
}

#define ROW(nr_, name_, func_) [nr_] = {#nr_, sizeof(struct drm_petrel_##name_), DRM_CORE_RENDER, func_}
static const struct drm_ioctl_desc petrel_ioctls[] = {
    ROW(DRM_PETREL_INFO, info, petrel_info_ioctl),
    ROW(DRM_PETREL_GEM_CREATE, gem_create, petrel_gem_create_ioctl),
    ROW(DRM_PETREL_GEM_MMAP, gem_mmap, petrel_gem_mmap_ioctl),
    ROW(DRM_PETREL_VM_CREATE, vm_create, petrel_vm_create_ioctl),
    ROW(DRM_PETREL_VM_DESTROY, vm_destroy, petrel_vm_destroy_ioctl),
    ROW(DRM_PETREL_VM_BIND, vm_bind, petrel_vm_bind_ioctl),
    ROW(DRM_PETREL_QUEUE_CREATE, queue_create, petrel_queue_create_ioctl),
    ROW(DRM_PETREL_QUEUE_DESTROY, queue_destroy, petrel_queue_destroy_ioctl),
    ROW(DRM_PETREL_QUEUE_QUERY, queue_query, petrel_queue_query_ioctl),
    ROW(DRM_PETREL_EXEC, exec, petrel_exec_ioctl),
    ROW(DRM_PETREL_WAIT, wait, petrel_wait_ioctl),
};

const struct drm_driver petrel_drm_driver = {
    .name = "petrel",
    .desc = "Petrel simulated GPU",
    .date = "20250101",
    .major = 1,
    .ioctls = petrel_ioctls,
    .ioctl_count = sizeof(petrel_ioctls) / sizeof(petrel_ioctls[0]),
    .ioctl_exit = ioctl_exit,
    .wait_step = petrel_wait_step,
};

/* ---- Maps ---- */

static struct petrel_bo *bo_of_offset(struct petrel_file *file, uint64_t offset)
{
    const uint64_t inside = (1ull << 40) - 1;
    const uint32_t handle = (uint32_t)(offset >> 40) & 0x1ffff;
    struct drm_gem_object *obj = drm_gem_lookup(&file->drm, handle);
    if (!obj)
        return NULL;
    struct petrel_bo *bo = petrel_bo_of(obj);
    if (bo->cpu_visible && petrel_bo_offset(bo, handle) == (offset & ~inside))
        return bo;
    drm_gem_put(obj);
    return NULL;
}

static void *map_fail(struct petrel_bo *bo, struct petrel_map *map, int error, int *error_out)
{
    if (bo)
        drm_gem_put(&bo->base);
    umd_free(map);
    *error_out = error;
    return NULL;
}

void *petrel_file_mmap(struct petrel_file *file, uint64_t offset, size_t size_B, int *error_out)
{
    const uint64_t inside = offset & ((1ull << 40) - 1);
    struct petrel_bo *bo = bo_of_offset(file, offset);
    if (!bo)
        return map_fail(NULL, NULL, UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, "field=offset value=0x%" PRIx64 " reason=unknown", offset), error_out);
    if (size_B == 0 || inside % PETREL_PAGE_SIZE || inside > bo->base.size_B || size_B > bo->base.size_B - inside)
        return map_fail(bo, NULL, UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, "field=size_B value=%zu offset_B=%" PRIu64 " buffer_B=%" PRIu64, size_B, inside,
                                                 bo->base.size_B), error_out);
    int ret = petrel_check_lost(file->dev);
    if (ret)
        return map_fail(bo, NULL, ret, error_out);
    struct petrel_map *map = umd_alloc(sizeof(*map));
    if (!map)
        return map_fail(bo, NULL, -ENOMEM, error_out);
    const struct hw_aperture aperture = bo->system ? hw_sysmem(file->dev->hw) : hw_vram(file->dev->hw);
    void *addr = umd_sys()->mmap(NULL, size_B, PROT_READ | PROT_WRITE, MAP_SHARED, aperture.fd, (int64_t)(bo->block->start + inside));
    if (addr == MAP_FAILED)
        return map_fail(bo, map, UMD_FAIL_ERRNO(UMD_ERR_MEM_MAP_FAILED, "size_B=%zu errno=%d", size_B, errno), error_out);
    madvise(addr, size_B, MADV_DONTFORK); /* a child that writes here would race with its parent's device */
    *map = (struct petrel_map){.addr = addr, .size_B = size_B, .bo = bo};
    umd_mutex_lock(&file->drm.lock);
    map->next = file->maps;
    file->maps = map;
    umd_mutex_unlock(&file->drm.lock);
    return addr;
}

static void map_free(struct petrel_map *map)
{
    umd_sys()->munmap(map->addr, map->size_B);
    drm_gem_put(&map->bo->base);
    umd_free(map);
}

int petrel_file_munmap(struct petrel_file *file, void *addr, size_t size_B)
{
    struct petrel_map *map = NULL;
    umd_mutex_lock(&file->drm.lock);
    for (struct petrel_map **p = &file->maps; *p; p = &(*p)->next) {
        if ((*p)->addr == addr && (*p)->size_B == size_B) {
            map = *p;
            *p = map->next;
            break;
        }
    }
    umd_mutex_unlock(&file->drm.lock);
    if (!map)
        return UMD_FAIL_ERRNO(UMD_ERR_UAPI_ARGUMENT, "field=addr size_B=%zu reason=no_such_map", size_B);
    map_free(map);
    return 0;
}

/* ---- Open and close ---- */

int petrel_file_open(struct petrel_device *dev, bool render_node, struct petrel_file **file_out)
{
    struct petrel_file *file = umd_alloc(sizeof(*file));
    if (!file)
        return -ENOMEM;
    file->events = umd_alloc(PETREL_EVENTS * sizeof(*file->events));
    if (!file->events) {
        umd_free(file);
        return -ENOMEM;
    }
    file->dev = dev;
    file->id = atomic_fetch_add(&dev->next_file_id, 1) + 1;
    drm_file_init(&file->drm, &dev->drm, render_node);
    umd_mutex_init(&file->event_lock, "kmd.event", 68);
    umd_cond_init(&file->event_cond);
    umd_mutex_lock(&dev->sched_lock);
    file->next = dev->files;
    dev->files = file;
    umd_mutex_unlock(&dev->sched_lock);
    *file_out = file;
    return 0;
}

void petrel_file_close(struct petrel_file *file)
{
    struct petrel_device *dev = file->dev;
    struct petrel_queue *queue;
    struct petrel_vm *vm;
    while ((queue = drm_idr_pop(&file->queues)))
        petrel_queue_shutdown(queue);
    while ((vm = drm_idr_pop(&file->vms)))
        petrel_vm_put(vm);
    while (file->maps) {
        struct petrel_map *map = file->maps;
        file->maps = map->next;
        map_free(map);
    }
    umd_mutex_lock(&dev->sched_lock);
    for (struct petrel_file **p = &dev->files; *p; p = &(*p)->next) {
        if (*p == file) {
            *p = file->next;
            break;
        }
    }
    umd_mutex_unlock(&dev->sched_lock);
    drm_idr_fini(&file->queues);
    drm_idr_fini(&file->vms);
    drm_file_fini(&file->drm);
    umd_cond_fini(&file->event_cond);
    umd_mutex_fini(&file->event_lock);
    umd_free(file->events);
    umd_free(file);
}
