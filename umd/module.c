/* SPDX-License-Identifier: MIT */
/* module.c - loading code objects, finding kernels, and naming the source line of a program counter (libdw). */
#include "module.h"

#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "library.h"
#include "nearest.h"
#include "stream.h"

UMD_LOG_MODULE("umd.module");

enum { PAGE_B = 4096, ARGS_MAX_B = 4096 };
#define IMAGE_MAX_B (256u << 20)

/* ---- Life ---- */

static void module_release(struct umd_object *obj)
{
    struct umd_module *m = (struct umd_module *)obj;

    if (m->bo.gem)
        umd_context_idle(m->ctx);
    umd_bo_destroy(m->ctx, &m->bo);
    if (obj->handle)
        UMD_LOG(UMD_LOG_INFO, "module unloaded module=%s context=%" PRIu64, m->name, m->ctx->id);
    umd_free(m->kernels);
    umd_free(m->image);
    if (obj->ctx)
        umd_context_disown(obj);
    umd_free(m);
}

/* Kernels are part of their module; each open one holds a reference to it. */
static void kernel_release(struct umd_object *obj)
{
    umd_object_put(&((struct umd_kernel *)obj)->module->obj);
}

static void module_teardown(struct umd_object *obj)
{
    struct umd_module *m = (struct umd_module *)obj;

    umd_mutex_lock(&m->ctx->lock);
    m->closed = true;
    umd_mutex_unlock(&m->ctx->lock);
    for (uint32_t i = 0; i < m->kernel_count; i++) {
        struct umd_object *k = NULL;
        umd_mutex_lock(&m->ctx->lock);
        bool open = m->kernels[i].open;
        m->kernels[i].open = false;
        umd_mutex_unlock(&m->ctx->lock);
        if (open && umd_handle_close(m->kernels[i].obj.handle, UMD_OBJ_KERNEL, &k) == UMD_SUCCESS)
            umd_object_put(k);
    }
}

/* ---- Loading ---- */

static umdStatus read_kernels(struct umd_module *m, const struct umd_code *c)
{
    m->kernels = umd_alloc(c->kernel_count * sizeof(*m->kernels));
    if (!m->kernels)
        return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    for (uint32_t i = 0; i < c->kernel_count; i++) {
        struct umd_kernel *k = &m->kernels[i];
        uint64_t start, size_B;
        memcpy(&k->meta, c->memory + c->kernels_at + i * sizeof(k->meta), sizeof(k->meta));
        uint64_t offset = k->meta.entry - m->bo.va;
        if (!memchr(k->meta.name, '\0', sizeof(k->meta.name)) || !k->meta.name[0] || k->meta.version != 1 || k->meta.args_B > ARGS_MAX_B)
            return UMD_FAIL(UMD_ERR_MODULE_FORMAT, "reason=\"kernel description\" index=%u version=%u args_B=%u", i, k->meta.version,
                            k->meta.args_B);
        if (offset & 1u || !umd_code_segment(m->image, m->image_B, offset, &start, &size_B))
            return UMD_FAIL(UMD_ERR_MODULE_FORMAT, "reason=\"kernel entry outside the code\" kernel=%s offset=0x%" PRIx64, k->meta.name, offset);
        k->module = m;
        k->entry_va = k->meta.entry;
        k->code_va = m->bo.va + start;
        k->code_B = size_B;
        k->obj.release = kernel_release;
        m->kernel_count = i + 1;
    }
    return UMD_SUCCESS;
}

/* Binds runs of pages with equal rights; pages between segments stay unmapped. */
static umdStatus bind_pages(struct umd_module *m, const struct umd_code *c)
{
    uint64_t pages = c->size_B / PAGE_B;

    for (uint64_t first = 0; first < pages;) {
        uint64_t end = first + 1;
        while (end < pages && c->rights[end] == c->rights[first])
            end++;
        if (c->rights[first]) {
            umdStatus st = umd_bo_bind(m->ctx, &m->bo, first * PAGE_B, (end - first) * PAGE_B, c->rights[first]);
            if (st < 0)
                return UMD_HOP(st);
            m->bo.bound = true;
        }
        first = end;
    }
    return UMD_SUCCESS;
}

static umdStatus load_code(struct umd_module *m)
{
    struct umd_code c;

    umdStatus st = umd_code_parse(m->image, m->image_B, &c);
    if (st < 0)
        return UMD_HOP(st);
    struct umd_bo_desc desc = { .size_B = c.size_B, .gem_flags = DRM_PETREL_GEM_VRAM | DRM_PETREL_GEM_CPU_VISIBLE, .map = true };
    st = umd_bo_create(m->ctx, &desc, &m->bo);
    if (st == UMD_SUCCESS)
        st = umd_code_relocate(m->image, m->image_B, &c, m->bo.va);
    if (st == UMD_SUCCESS)
        st = read_kernels(m, &c);
    m->has_code = c.tls_B || c.notes_B;
    if (c.tls_B)
        m->code = (struct petrel_code){ .tls_va = m->bo.va + c.tls_at, .tls_file_B = c.tls_file_B, .tls_B = c.tls_B, .tls_align = c.tls_align };
    if (c.notes_B) {
        m->code.notes_va = m->bo.va + c.notes_at;
        m->code.notes_B = c.notes_B;
    }
    if (st == UMD_SUCCESS) {
        memcpy(m->bo.map, c.memory, c.size_B);
        st = bind_pages(m, &c);
    }
    umd_code_free(&c);
    return st < 0 ? UMD_HOP(st) : UMD_SUCCESS;
}

/* Takes the image over, also on failure. */
static umdStatus module_load(struct umd_context *ctx, const char *name, uint8_t *image, size_t size_B, umdModule *module_out)
{
    struct umd_module *m = umd_alloc(sizeof(*m));

    if (!m) {
        umd_free(image);
        return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    }
    m->ctx = ctx;
    m->image = image;
    m->image_B = size_B;
    m->obj.release = module_release;
    m->obj.teardown = module_teardown;
    snprintf(m->name, sizeof(m->name), "%s", name);
    umdStatus st = load_code(m);
    if (st == UMD_SUCCESS)
        st = umd_handle_open(&m->obj, UMD_OBJ_MODULE);
    if (st < 0) {
        umd_error_keep(st, module_release(&m->obj));
        return UMD_HOP(st);
    }
    umdModule handle = { m->obj.handle };
    st = umd_context_adopt(ctx, &m->obj);
    if (st < 0) {
        struct umd_object *obj = NULL;
        umd_error_keep(st, if (umd_handle_close(handle.id, UMD_OBJ_MODULE, &obj) == UMD_SUCCESS) umd_object_put(obj));
        return UMD_HOP(st);
    }
    UMD_LOG(UMD_LOG_INFO, "module loaded module=%s context=%" PRIu64 " kernels=%u size_B=%" PRIu64, m->name, ctx->id, m->kernel_count,
            m->bo.size_B);
    *module_out = handle;
    return UMD_SUCCESS;
}

umdStatus umdModuleLoad(umdContext context, const void *image, size_t size_B, umdModule *module_out)
{
    struct umd_call call;
    struct umd_context *ctx;

    umdStatus st = UMD_CALL_ENTER(&call, "context=0x%" PRIx64 " size_B=%zu", context.id, size_B);
    if (st < 0)
        return umd_call_leave(&call, st);
    if (!image || !module_out)
        return umd_call_leave(&call, UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=%s", image ? "module_out" : "image"));
    st = umd_context_get(context, &ctx);
    if (st < 0)
        return umd_call_leave(&call, st);
    if (!size_B || size_B > IMAGE_MAX_B) {
        st = UMD_FAIL(UMD_ERR_MODULE_FORMAT, "reason=size size_B=%zu max_B=%u", size_B, IMAGE_MAX_B);
    } else {
        uint8_t *copy = umd_alloc(size_B);
        if (copy)
            memcpy(copy, image, size_B);
        st = copy ? module_load(ctx, "memory", copy, size_B, module_out) : UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
    }
    umd_object_put(&ctx->obj);
    return umd_call_leave(&call, st);
}

static umdStatus read_file(const char *path, uint8_t **image_out, size_t *size_out)
{
    const struct umd_sys *sys = umd_sys();
    size_t used = 0, capacity = 0;
    uint8_t *buf = NULL;
    ssize_t n = 0;

    int fd = sys->open(path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return UMD_FAIL(umd_record_file_code(errno), "path=\"%.200s\" operation=open errno=%d reason=\"%s\"", path, errno, strerrorname_np(errno));
    do {
        if (used == capacity) {
            capacity = capacity ? capacity * 2 : 64 * 1024;
            uint8_t *more = capacity <= IMAGE_MAX_B * 2ull ? umd_alloc(capacity) : NULL;
            if (!more) {
                umd_free(buf);
                sys->close(fd);
                if (capacity > IMAGE_MAX_B * 2ull)
                    return UMD_FAIL(UMD_ERR_MODULE_FORMAT, "reason=size path=\"%.200s\" max_B=%u", path, IMAGE_MAX_B);
                return UMD_HOP(UMD_ERR_MEM_HOST_ALLOC_FAILED);
            }
            if (used)
                memcpy(more, buf, used);
            umd_free(buf);
            buf = more;
        }
        n = sys->read(fd, buf + used, capacity - used);
        used += n > 0 ? (size_t)n : 0;
    } while (n > 0);
    int err = n < 0 ? errno : 0;
    sys->close(fd);
    if (err) {
        umd_free(buf);
        return UMD_FAIL(UMD_ERR_RES_FILE, "path=\"%.200s\" operation=read errno=%d reason=\"%s\"", path, err, strerrorname_np(err));
    }
    *image_out = buf;
    *size_out = used;
    return UMD_SUCCESS;
}

umdStatus umdModuleLoadFile(umdContext context, const char *path, umdModule *module_out)
{
    struct umd_call call;
    struct umd_context *ctx;
    uint8_t *image = NULL;
    size_t size_B = 0;

    umdStatus st = UMD_CALL_ENTER(&call, "context=0x%" PRIx64 " path=%.200s", context.id, path ? path : "NULL");
    if (st < 0)
        return umd_call_leave(&call, st);
    if (!path || !module_out)
        return umd_call_leave(&call, UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=%s", path ? "module_out" : "path"));
    st = umd_context_get(context, &ctx);
    if (st < 0)
        return umd_call_leave(&call, st);
    st = read_file(path, &image, &size_B);
    if (st == UMD_SUCCESS) {
        const char *slash = strrchr(path, '/');
        st = module_load(ctx, slash ? slash + 1 : path, image, size_B, module_out);
    }
    umd_object_put(&ctx->obj);
    return umd_call_leave(&call, st);
}

umdStatus umdModuleUnload(umdModule module)
{
    struct umd_call call;
    struct umd_object *obj;

    umdStatus st = UMD_CALL_ENTER(&call, "module=0x%" PRIx64, module.id);
    if (st == UMD_SUCCESS)
        st = umd_handle_close(module.id, UMD_OBJ_MODULE, &obj);
    if (st == UMD_SUCCESS) {
        umd_record_set_context(((struct umd_module *)obj)->ctx->id);
        module_teardown(obj);
        umd_context_idle(((struct umd_module *)obj)->ctx);
        umd_object_put(obj);
    }
    return umd_call_leave(&call, st);
}

/* ---- Kernels ---- */

/* The kernel that was probably meant. */
static const char *nearest_kernel(const struct umd_module *m, const char *name)
{
    const char *best = "none";
    size_t best_distance = SIZE_MAX;

    for (uint32_t i = 0; i < m->kernel_count; i++) {
        size_t d = umd_nearest_distance(name, strlen(name), m->kernels[i].meta.name);
        if (d < best_distance) {
            best_distance = d;
            best = m->kernels[i].meta.name;
        }
    }
    return best;
}

static umdStatus get_kernel(struct umd_module *m, const char *name, umdKernel *kernel_out)
{
    struct umd_kernel *k = NULL;
    umdStatus st = umd_context_check(m->ctx);

    if (st < 0)
        return UMD_HOP(st);
    for (uint32_t i = 0; i < m->kernel_count && !k; i++)
        if (!strcmp(m->kernels[i].meta.name, name))
            k = &m->kernels[i];
    if (!k)
        return UMD_FAIL(UMD_ERR_MODULE_SYMBOL, "kernel=\"%.64s\" module=%s kernels=%u nearest=%s", name, m->name, m->kernel_count,
                        nearest_kernel(m, name));
    umd_mutex_lock(&m->ctx->lock);
    if (m->closed) { /* a kernel opened now would hold its module for ever */
        umd_mutex_unlock(&m->ctx->lock);
        return UMD_FAIL(UMD_ERR_HANDLE_DESTROYED, "module=%s reason=\"unloaded by another thread during the call\"", m->name);
    }
    if (!k->open) {
        st = umd_handle_open(&k->obj, UMD_OBJ_KERNEL);
        if (st == UMD_SUCCESS) {
            umd_object_ref(&m->obj);
            k->open = true;
        }
    }
    if (st == UMD_SUCCESS)
        *kernel_out = (umdKernel){ k->obj.handle };
    umd_mutex_unlock(&m->ctx->lock);
    return st < 0 ? UMD_HOP(st) : UMD_SUCCESS;
}

umdStatus umdModuleGetKernel(umdModule module, const char *name, umdKernel *kernel_out)
{
    struct umd_call call;
    struct umd_object *obj;

    umdStatus st = UMD_CALL_ENTER(&call, "module=0x%" PRIx64 " name=%.64s", module.id, name ? name : "NULL");
    if (st < 0)
        return umd_call_leave(&call, st);
    if (!name || !kernel_out)
        return umd_call_leave(&call, UMD_FAIL(UMD_ERR_PARAM_NULL, "argument=%s", name ? "kernel_out" : "name"));
    st = umd_handle_get(module.id, UMD_OBJ_MODULE, &obj);
    if (st == UMD_SUCCESS) {
        umd_record_set_context(((struct umd_module *)obj)->ctx->id);
        st = get_kernel((struct umd_module *)obj, name, kernel_out);
        umd_object_put(obj);
    }
    return umd_call_leave(&call, st);
}

/* ---- Program counters ---- */

/* The function symbol that covers an offset. Value: where it begins; 0: there is none. */
static uint64_t find_function(Elf *elf, uint64_t offset, struct umd_location *out)
{
    for (Elf_Scn *scn = elf_nextscn(elf, NULL); scn; scn = elf_nextscn(elf, scn)) {
        GElf_Shdr sh;
        if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_SYMTAB || !sh.sh_entsize)
            continue;
        Elf_Data *data = elf_getdata(scn, NULL);
        for (uint64_t i = 0; data && i < sh.sh_size / sh.sh_entsize; i++) {
            GElf_Sym sym;
            if (!gelf_getsym(data, (int)i, &sym) || GELF_ST_TYPE(sym.st_info) != STT_FUNC || offset < sym.st_value ||
                offset - sym.st_value >= sym.st_size)
                continue;
            const char *name = elf_strptr(elf, sh.sh_link, sym.st_name);
            if (name)
                snprintf(out->function, sizeof(out->function), "%s", name);
            return sym.st_value;
        }
    }
    return 0;
}

/* The line of the code there. What the compiler gives none (line 0: it is of several, or of none) has that of the code before it in the function. */
static Dwarf_Line *line_at(Dwarf_Die *cu, uint64_t begin, uint64_t offset)
{
    Dwarf_Lines *lines;
    Dwarf_Line *found = NULL;
    size_t count;

    if (dwarf_getsrclines(cu, &lines, &count) != 0)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        Dwarf_Line *line = dwarf_onesrcline(lines, i);
        Dwarf_Addr at;
        bool end = true;
        int number = 0;
        if (!line || dwarf_lineaddr(line, &at) || at > offset)
            break; /* they are in order */
        if (dwarf_lineendsequence(line, &end) || end || at < begin)
            found = NULL;
        else if (dwarf_lineno(line, &number) == 0 && number > 0)
            found = line;
    }
    return found;
}

static void find_line(Elf *elf, uint64_t begin, uint64_t offset, struct umd_location *out)
{
    Dwarf *dw = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
    Dwarf_CU *cu = NULL;
    Dwarf_Die die;
    uint8_t type;

    while (dw && dwarf_get_units(dw, cu, &cu, NULL, &type, &die, NULL) == 0) {
        if (dwarf_haspc(&die, offset) != 1)
            continue;
        Dwarf_Line *line = line_at(&die, begin, offset);
        const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
        int number = 0;
        if (!file || dwarf_lineno(line, &number) || number <= 0)
            break;
        const char *slash = strrchr(file, '/');
        snprintf(out->file, sizeof(out->file), "%s", slash ? slash + 1 : file);
        out->line = (uint32_t)number;
        break;
    }
    dwarf_end(dw);
}

static struct umd_module *module_at(struct umd_context *ctx, uint64_t pc)
{
    struct umd_module *m = NULL;

    umd_mutex_lock(&ctx->lock);
    for (struct umd_object *o = ctx->children; o && !m; o = o->next) {
        struct umd_module *c = (struct umd_module *)o;
        if (o->type == UMD_OBJ_MODULE && pc >= c->bo.va && pc - c->bo.va < c->bo.size_B && umd_object_tryref(o))
            m = c;
    }
    umd_mutex_unlock(&ctx->lock);
    return m;
}

bool umd_module_locate(struct umd_context *ctx, uint64_t pc, struct umd_location *out)
{
    struct umd_module *m = module_at(ctx, pc);

    if (!m)
        return false;
    *out = (struct umd_location){ .offset = pc - m->bo.va };
    snprintf(out->module, sizeof(out->module), "%s", m->name);
    elf_version(EV_CURRENT);
    Elf *elf = elf_memory((char *)m->image, m->image_B);
    if (elf) {
        find_line(elf, find_function(elf, out->offset, out), out->offset, out);
        elf_end(elf);
    }
    umd_object_put(&m->obj);
    return true;
}
